"""The reports of a run that a model or an agent writes: which topics are worth a call, children before
parents, and the earlier report that still tells of nearly all of a topic.

A report that is told from summaries stays as long as fewer than a fifth of them changed. That is decided
by the reply cache alone: a reply is kept with what it was made of, and a question without a reply takes
the reply of the same level that shares most documents. So an index after edits has the reports that a
fresh one has with the same replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import SummarisedText, Topic
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.index.report_prompt import Prompted, Ref, ReportPrompt, prompted
from graphrag_mcp.index.report_reply import Draft, finished, parse_report, report_ask
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import Asker, aside
from graphrag_mcp.llm.replies import BadReply

# Times `min_size` entities that are worth a call however few text units speak of them: of 14 short
# documents 21 of 25 communities rested on fewer than four text units.
MANY = 2
SHARED = 0.8  # of the summaries, from which a report stays
ABOUT = "about"  # of a kept reply: what it was made of


@dataclass
class Writing:
    """Reports by a model. `topic`: that of a community, by its id. `done` are those that need not be
    written; `extractive`: the report of a topic, from those of its parts, without a model."""

    asker: Asker
    prompt: ReportPrompt
    topic: Callable[[str], Topic]
    done: Mapping[str, Report]
    extractive: Callable[[Topic, Sequence[Report]], Report]
    degraded: dict[str, str] = field(default_factory=dict)
    # these, and reports that a model made of such reports
    unsure: set[str] = field(default_factory=set)
    _tasks: dict[str, asyncio.Task[Report]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._earlier = Earlier(self.asker)

    def wanted(self, topic: Topic) -> bool:
        """Is the model to be asked?"""
        prompt, many = self.prompt, len(topic.entities)
        if prompt.levels and topic.community.level >= prompt.levels:
            return False
        if topic.summaries:
            return len(topic.summaries) >= prompt.min_units
        enough = len(topic.units) >= prompt.min_units or many >= MANY * prompt.min_size
        return enough and many >= prompt.min_size

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
        topic = self.topic(id)
        report = await self._asked(topic) if self.wanted(topic) else None
        return report or self.extractive(topic, await self._children(topic.community))

    async def _children(self, community: Community) -> list[Report]:
        return [await self._of(child) for child in community.children]

    async def _asked(self, topic: Topic) -> Report | None:
        """The report that a model writes; None where none answers."""
        community, tokens = topic.community, self.prompt.tokens
        id = community.id
        shown = await aside(prompted, topic, None if community.children else (), tokens)
        if shown is None:
            parts = await self._children(community)
            if not self.unsure.isdisjoint(community.children):
                self.unsure.add(id)
            shown = await aside(prompted, topic, parts, tokens)
        assert shown is not None
        identity = {text.unit: text.identity for text in topic.summaries}
        sources = [identity[ref.sources[0]] for ref in shown.numbering.get("Sources", ())]
        about = About(community.level, frozenset(identity.values()), sources, self.prompt.own)
        ask = report_ask(shown, self.prompt, about.kept if identity else lambda reply: reply)
        known = self.asker.refreshes or self.asker.known(ask) is not None
        if identity and not known and (found := self._earlier.nearest(about)):
            earlier, draft, by = found
            then = _shown_then(earlier, topic.summaries)
            same = len(earlier.texts & about.texts)
            note = f"This was written when {same} of these {len(identity)} texts were as they are now."
            report = await aside(finished, topic, then, draft, by)
            return replace(report, full_content=f"{report.full_content}\n\n{note}")
        answer = await self.asker.ask(ask)
        if answer.value is None:
            self.degraded[id] = answer.reason
            self.unsure.add(id)
            return None
        return await aside(finished, topic, shown, answer.value, answer.by)


def _shown_then(about: About, texts: Sequence[SummarisedText]) -> Prompted:
    """What the rows of an earlier question stand for now: those of texts that are gone for nothing."""
    unit = {text.identity: text.unit for text in texts}
    refs = [Ref(sources=(unit[identity],)) if identity in unit else Ref() for identity in about.shown]
    then = [text for text in texts if text.identity in about.texts]
    # Texts that are gone, and reports on parts that were shown in their place, are not known any more.
    all_known = len(then) == len(about.texts) == len(about.shown)
    words = "\n".join(f"{text.title}\n{text.date}\n{text.text}" for text in then)
    return Prompted("", {"Sources": refs}, words if all_known else None)


# ---- replies that are kept ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class About:
    """What a reply was made of: the level of the topic, all its texts, and those that its rows of
    Sources show, in their order. `asked`: of a prompt of one's own or a language that is set, which."""

    level: int
    texts: frozenset[str]
    shown: Sequence[str] = ()
    asked: str = ""

    def kept(self, reply: str) -> str:
        """The reply with this in it; as it is, where it is no object."""
        try:
            value = replies.read(reply).values[0]
        except BadReply:
            return reply
        if not isinstance(value, dict):
            return reply
        about = {"level": self.level, "texts": sorted(self.texts), "shown": list(self.shown)}
        about |= {"asked": self.asked} if self.asked else {}
        return json.dumps({**value, ABOUT: about}, ensure_ascii=False)


@dataclass
class Earlier:
    """The replies on topics that were there before a run, read once."""

    asker: Asker

    def nearest(self, about: About) -> tuple[About, Draft, str] | None:
        """The reply to the same prompt in the same language, with what it is about and who wrote it, that shares
        most texts with a topic, at least SHARED of either's; None where none does."""
        best, found = SHARED, None
        for other, draft, by in self._replies:
            common = len(other.texts & about.texts) / max(len(other.texts), len(about.texts), 1)
            alike = (other.level, other.asked) == (about.level, about.asked)
            if alike and (common > best or (common == best and found is None)):
                best, found = common, (other, draft, by)
        return found

    @cached_property
    def _replies(self) -> list[tuple[About, Draft, str]]:
        """In the order of their texts."""
        found = []
        stored = self.asker.book.of_kind("report", f'"{ABOUT}"') if self.asker.book else []
        for text, by in sorted((reply.text, reply.answerer) for reply in stored):
            try:
                value: Any = json.loads(text).get(ABOUT)
                texts, shown = frozenset(value["texts"]), tuple(value["shown"])
                about = About(value["level"], texts, shown, value.get("asked", ""))
                found.append((about, parse_report(text), by))
            except (ValueError, TypeError, KeyError, AttributeError, BadReply):
                continue  # of another form
        return found
