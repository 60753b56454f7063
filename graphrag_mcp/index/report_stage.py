"""Reports of many communities at once, by a model where it pays and by their own sentences where it does not.

Takes the communities to report with their rows; gives a report for each. Every community is its own piece of
straight-line work: one whose rows fit its prompt waits for nobody, so all these are asked at once; only a community
too large for its prompt waits for the reports of its children. What the model cannot write is extractive, and said
so. Knows the asker, no store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from graphrag_mcp import prompts
from graphrag_mcp.ask import Asker
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.evidence import EdgeRow, EntityRow
from graphrag_mcp.index.report_llm import (
    Claim,
    PromptParams,
    ReportInput,
    context,
    context_alone,
    finish_report,
    report_ask,
)
from graphrag_mcp.index.reports import Written, outline, stored, write
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import content_id


@dataclass(frozen=True, slots=True)
class ReportPrompt:
    """How a model is asked for reports. Communities of fewer than `min_size` entities, or that rest on fewer than
    `min_units` text units, are not worth a call."""

    template: Template
    params: PromptParams
    language: str
    min_size: int
    min_units: int

    @property
    def fingerprint(self) -> str:
        numbers = (self.params.tokens, self.min_size, self.min_units)
        return content_id("report", self.template.template, self.language, *map(str, numbers))

    def wanted(self, members: Sequence[EntityRow], edges: Sequence[EdgeRow]) -> bool:
        """Is a report by a model worth its call?"""
        if len(members) < self.min_size:
            return False
        units: set[str] = set()
        for row in (*members, *edges):
            units.update(row.text_unit_ids)
            if len(units) >= self.min_units:
                return True
        return False


def prompt_from(settings: Settings, corpus_folder: Path) -> ReportPrompt:
    template = prompts.load("report", corpus_folder)
    return ReportPrompt(
        template, PromptParams(tokens=settings.report_tokens), settings.output_language, settings.report_min_size,
        settings.report_min_units,
    )  # fmt: skip


@dataclass
class Writing:
    """The reports of one run. `done` are those that need not be written; `types` and `descriptions` by row id."""

    asker: Asker
    prompt: ReportPrompt
    communities: Mapping[str, Community]
    entities: Mapping[str, EntityRow]
    edges: Mapping[str, Sequence[EdgeRow]]
    types: Mapping[str, str]
    descriptions: Mapping[str, str]
    claims: Mapping[str, Sequence[Claim]]
    done: dict[str, Written]
    degraded: dict[str, str] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[Written]] = field(default_factory=dict)

    def fingerprint(self, id: str, extractive: str) -> str:
        """Changes when the model would be shown something else; `extractive` when its sentences changed."""
        community = self.communities[id]
        if not self._wanted(community):
            return extractive
        rows = [*community.members, *(edge.id for edge in self.edges[id])]
        told = [f"{row} {self.types.get(row, '')} {self.descriptions.get(row, '')}" for row in sorted(rows)]
        claims = self.claims.get(id, ())
        said = [f"{one.subject} {one.object} {one.type} {one.status} {one.description}" for one in claims]
        return content_id("report by a model", self.prompt.fingerprint, extractive, *told, *said)

    def _wanted(self, community: Community) -> bool:
        return self.prompt.wanted([self.entities[one] for one in community.members], self.edges[community.id])

    async def all(self, ids: Sequence[str]) -> dict[str, Written]:
        """The reports of these communities, by id."""
        made = await asyncio.gather(*(self._of(id) for id in ids))
        return dict(zip(ids, made, strict=True))

    def _of(self, id: str) -> asyncio.Task[Written]:
        if id not in self._tasks:
            self._tasks[id] = asyncio.get_running_loop().create_task(self._written(id))
        return self._tasks[id]

    async def _written(self, id: str) -> Written:
        if id in self.done:
            return self.done[id]
        community = self.communities[id]
        members = [self.entities[one] for one in community.members]
        if self._wanted(community):
            made = await self._by_model(community, members)
            if made is not None:
                return made
        children = [await self._of(child) for child in community.children]
        return write(community, members, self.edges[id], children)

    async def _by_model(self, community: Community, members: Sequence[EntityRow]) -> Written | None:
        given = ReportInput(
            community, members, self.edges[community.id], self.types, self.descriptions,
            self.claims.get(community.id, ()),
        )  # fmt: skip
        shown = context_alone(given, self.prompt.params)
        if shown is None:
            given = replace(given, children=[(await self._of(child)).report for child in community.children])
            shown = context(given, self.prompt.params)
        answer = await self.asker.ask(report_ask(shown, self.prompt.template, language=self.prompt.language))
        if answer.value is None:
            self.degraded[community.id] = answer.reason
            return None
        report = finish_report(given, shown, answer.value, outline(community, members, given.edges))
        return stored(report)
