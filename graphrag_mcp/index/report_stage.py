"""Reports of many communities at once, by a model where it pays and by their own sentences where it does not.

Takes the communities to report with their rows; gives a report for each. Every community is its own piece of
straight-line work: one whose rows fit its prompt waits for nobody, so all these are asked at once; only a community
too large for its prompt waits for the reports of its children. What the model cannot write is extractive, and said
so. Knows the asker, no store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from string import Template

from graphrag_mcp import prompts
from graphrag_mcp.ask import Asker, aside
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
from graphrag_mcp.index.reports import Report, Written, outline, stored, write
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import content_id

TOGETHER = 64  # reports that are embedded in one go while others are being written
BEGUN = 10  # reports that are begun at once: a thousand kept the loop busy for 0.2 s, and every call under way waiting


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
    """The reports of one run. `done` are those that need not be written; `types` and `descriptions` by row id.

    `embed`: told of reports that are ready, so that their vectors are asked for between the questions and not after
    the last of them.
    """

    asker: Asker
    prompt: ReportPrompt
    communities: Mapping[str, Community]
    entities: Mapping[str, EntityRow]
    edges: Mapping[str, Sequence[EdgeRow]]
    types: Mapping[str, str]
    descriptions: Mapping[str, str]
    claims: Mapping[str, Sequence[Claim]]
    done: dict[str, Written]
    embed: Callable[[Sequence[Report]], object] = lambda _: None
    degraded: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)  # these, and reports that a model made of such reports
    _tasks: dict[str, asyncio.Task[Written]] = field(default_factory=dict)
    _ready: list[Report] = field(default_factory=list)

    def fingerprint(self, id: str, extractive: str) -> str:
        """Changes when the model would be shown something else; `extractive` when its sentences changed."""
        community = self.communities[id]
        if not self._wanted(community):
            return extractive
        rows = [*community.members, *(edge.id for edge in self.edges[id])]
        told = [f"{row} {self.types.get(row, '')} {self.descriptions.get(row, '')}" for row in sorted(rows)]
        claims = self.claims.get(id, ())
        # With their text units: a claim may stand in one that no row of the community is named in.
        said = sorted(" ".join((c.subject, c.object, c.type, c.status, c.description, c.text_unit_id)) for c in claims)
        return content_id("report by a model", self.prompt.fingerprint, extractive, *told, *said)

    def _wanted(self, community: Community) -> bool:
        return self.prompt.wanted([self.entities[one] for one in community.members], self.edges[community.id])

    async def all(self, ids: Sequence[str]) -> dict[str, Written]:
        """The reports of these communities, by id. Those that a model writes are begun first: it answers while the
        others are made of their sentences."""
        for place, id in enumerate(sorted(ids, key=lambda id: not self._wanted(self.communities[id]))):
            self._of(id)
            if place % BEGUN == 0:
                await asyncio.sleep(0)
        made = await asyncio.gather(*map(self._of, ids))
        self.embed(self._ready)
        return dict(zip(ids, made, strict=True))

    def _of(self, id: str) -> asyncio.Task[Written]:
        if id not in self._tasks:
            self._tasks[id] = asyncio.get_running_loop().create_task(self._written(id))
        return self._tasks[id]

    async def _written(self, id: str) -> Written:
        if id in self.done:
            return self.done[id]
        made = await self._new(id)
        self._ready.append(made.report)
        if len(self._ready) >= TOGETHER:
            ready, self._ready = self._ready, []
            self.embed(ready)
        return made

    async def _new(self, id: str) -> Written:
        community = self.communities[id]
        members = [self.entities[one] for one in community.members]
        if self._wanted(community):
            made = await self._by_model(community, members)
            if made is not None:
                return made
        children = [await self._of(child) for child in community.children]
        made = partial(write, divided=self._divided(community))
        return await aside(made, community, members, self.edges[id], children)

    def _divided(self, community: Community) -> list[Sequence[str]]:
        return [self.communities[child].members for child in community.children]

    async def _by_model(self, community: Community, members: Sequence[EntityRow]) -> Written | None:
        given = ReportInput(
            community, members, self.edges[community.id], self.types, self.descriptions,
            self.claims.get(community.id, ()),
        )  # fmt: skip
        shown = await aside(context_alone, given, self.prompt.params)
        if shown is None:
            below = [(await self._of(child)).report for child in community.children]
            if not self.unsure.isdisjoint(community.children):
                self.unsure.add(community.id)
            divided = map(list, self._divided(community))  # a report lists only the heaviest
            given = replace(given, children=[
                replace(one, entity_ids=ids) for one, ids in zip(below, divided, strict=True)
            ])  # fmt: skip
            shown = await aside(context, given, self.prompt.params)
        answer = await self.asker.ask(report_ask(shown, self.prompt.template, language=self.prompt.language))
        if answer.value is None:
            self.degraded[community.id] = answer.reason
            self.unsure.add(community.id)
            return None
        draft = answer.value
        return await aside(lambda: stored(finish_report(given, shown, draft, outline(community, members, given.edges))))
