"""All reports of a run that a model or an agent writes: which communities are worth a call, what they are
shown (their rows, or the summaries of their documents), and children before parents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from graphrag_mcp.index import report_topics
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import Content, inside_of
from graphrag_mcp.index.report_extractive import Report, outline
from graphrag_mcp.index.report_llm import (
    Draft,
    Prompted,
    Ref,
    ReportInput,
    Rows,
    context,
    finished,
    parse_report,
    report_ask,
)
from graphrag_mcp.index.report_topics import About, Earlier, SummarisedText
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Asker, aside
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.terms import content_id

# Times `min_size` entities that are worth a call however few text units speak of them: of 14 short
# documents 21 of 25 communities rested on fewer than four text units.
MANY = 2


@dataclass(frozen=True, slots=True)
class ReportPrompt:
    """How a model is asked for reports. Communities of fewer than `min_size` entities, or that rest
    on fewer than `min_units` text units and have fewer than MANY times `min_size` entities, are not
    worth a call. `levels`: only those of so many levels from the top are asked for; 0 for all. `topic`: the
    template for what is told from summaries."""

    template: Template
    topic: Template
    tokens: int  # of the rows shown; the instructions come on top
    language: str
    min_size: int
    min_units: int
    levels: int = 0

    @property
    def fingerprint(self) -> str:
        numbers = [self.tokens, self.min_size, self.min_units, MANY]
        numbers += [self.levels] if self.levels else []
        words = self.template.template, self.topic.template, self.language
        return content_id("report", *words, *map(str, numbers))

    @property
    def of_topics(self) -> str:
        """What a report from summaries is asked with; "" for the shipped prompt without a language, so that
        reports stay where a release changes its wording."""
        own = self.topic.template
        own = "" if own == prompts.load("topic").template else own
        return content_id("topic", own, self.language) if own or self.language else ""


def prompt_from(settings: Settings, corpus_folder: Path) -> ReportPrompt:
    return ReportPrompt(
        prompts.load("report", corpus_folder),
        prompts.load("topic", corpus_folder),
        settings.report_tokens,
        settings.output_language,
        settings.report_min_size,
        settings.report_min_units,
    )


@dataclass
class Writing:
    """Reports by a model. `done` are those that need not be written; `extractive`: the report of a
    community, from those of its children, without a model."""

    asker: Asker
    prompt: ReportPrompt
    communities: Mapping[str, Community]
    content: Content
    done: Mapping[str, Report]
    extractive: Callable[[str, Sequence[Report]], Report]
    # Of communities that are told from the summaries of their documents, these and the terms that are
    # characteristic.
    told: Mapping[str, Sequence[SummarisedText]] = field(default_factory=dict)
    terms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    degraded: dict[str, str] = field(default_factory=dict)
    # these, and reports that a model made of such reports
    unsure: set[str] = field(default_factory=set)
    _tasks: dict[str, asyncio.Task[Report]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._earlier = Earlier(self.asker)

    def wanted(self, community: Community) -> bool:
        """Is the model to be asked?"""
        prompt, members = self.prompt, community.members
        if community.id in self.told:
            deep = prompt.levels and community.level >= prompt.levels
            return not deep and len(self.told[community.id]) >= prompt.min_units
        if prompt.levels and community.level >= prompt.levels:
            return False
        if len(members) < prompt.min_size or len(members) >= MANY * prompt.min_size:
            return len(members) >= prompt.min_size
        rows = [*map(self.content.entities.get, members), *self.content.edges[community.id]]
        return len({unit for row in rows for unit in row.text_unit_ids}) >= prompt.min_units

    async def all(self, ids: Sequence[str]) -> dict[str, Report]:
        """The reports of these communities, by id."""
        return dict(zip(ids, await asyncio.gather(*map(self._of, ids)), strict=True))

    def _of(self, id: str) -> asyncio.Task[Report]:
        if id not in self._tasks:
            self._tasks[id] = asyncio.get_running_loop().create_task(self._written(id))
        return self._tasks[id]

    async def _written(self, id: str) -> Report:
        if id in self.done:
            return self.done[id]
        community = self.communities[id]
        report = await self._asked(community) if self.wanted(community) else None
        return report or self.extractive(
            id, [await self._of(child) for child in community.children]
        )

    async def _asked(self, community: Community) -> Report | None:
        """The report that a model writes from the summaries of the documents, or else from the rows, of a
        community; None where none answers."""
        id, texts = community.id, self.told.get(community.id)
        members = [self.content.entities[member] for member in community.members]
        edges = self.content.edges[id]
        report_input = ReportInput(community, members, edges)

        def shown_of(children: Sequence[Report] | None) -> Prompted | None:
            if texts is not None:
                parts = [self.told.get(child, ()) for child in community.children]
                worth = self.terms.get(id, {})
                return report_topics.context(texts, parts, worth, children, self.prompt.tokens)
            rows = Rows.of(report_input)
            return context(rows, rows.best_first(), children, self.prompt.tokens)

        shown = await aside(shown_of, None if community.children else ())
        if shown is None:
            children = [await self._of(child) for child in community.children]
            if not self.unsure.isdisjoint(community.children):
                self.unsure.add(id)
            shown = await aside(shown_of, children)
            assert shown is not None
        draft, note = None, ""
        if texts is None:
            ask = report_ask(shown, self.prompt.template, self.prompt.language)
        else:
            identity = {text.unit: text.identity for text in texts}
            sources = [identity[ref.sources[0]] for ref in shown.numbering.get("Sources", ())]
            texts_of = frozenset(identity.values())
            about = About(community.level, texts_of, sources, self.prompt.of_topics)
            ask = report_ask(shown, self.prompt.topic, self.prompt.language, about.kept)
            open_ = not self.asker.refreshes and self.asker.known(ask) is None
            if open_ and (found := self._earlier.nearest(about)):
                earlier, reply = found
                draft, shown = parse_report(reply), _shown_then(earlier, texts)
                same = len(earlier.texts & about.texts)
                note = f"This was written when {same} of these {len(texts)} texts were as they are now."
        if draft is None:
            answer = await self.asker.ask(ask)
            draft = answer.value
            if draft is None:
                self.degraded[id] = answer.reason
                self.unsure.add(id)
                return None
        return await aside(_finished, report_input, shown, draft, note)


def _finished(report_input: ReportInput, shown: Prompted, draft: Draft, note: str) -> Report:
    community, entities, edges = report_input.community, report_input.entities, report_input.edges
    base = outline(community, inside_of(community, entities, edges))
    report = finished(report_input, shown, draft, base)
    return replace(report, full_content=f"{report.full_content}\n\n{note}") if note else report


def _shown_then(about: About, texts: Sequence[SummarisedText]) -> Prompted:
    """What the rows of an earlier question stand for now: those of texts that are gone for nothing."""
    unit = {text.identity: text.unit for text in texts}
    refs = [
        Ref(sources=(unit[identity],)) if identity in unit else Ref() for identity in about.shown
    ]
    return Prompted("", {"Sources": refs})
