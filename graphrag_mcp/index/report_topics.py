"""Reports on topics from the summaries of their documents: what a model or an agent is shown, and the
earlier report that still tells of nearly all of them.

A report stays as long as fewer than a fifth of its documents changed. That is decided by the reply cache
alone: a reply is kept with what it was made of, and a question without a reply takes the reply of the
same level that shares most documents. So an index after edits has the reports that a fresh one has with
the same replies."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from graphrag_mcp.index import report_llm
from graphrag_mcp.index.report_content import Paper
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.index.report_llm import Line, Prompted, Ref
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import content_id, lists_of, terms

SHARED = 0.8  # of the documents, from which a report stays
ABOUT = "about"  # of a kept reply: what it was made of


@dataclass(frozen=True, slots=True)
class SummarisedText:
    """A document, or a section of a long one, with its summary. `identity` is another one where the
    text or the summary is; `unit` is the text unit that a reference leads to."""

    document: str
    identity: str
    unit: str
    title: str
    date: str
    text: str

    def line(self) -> Line:
        return Line((self.title, self.date, self.text), Ref(sources=(self.unit,)), (self.unit,))


def by_unit(snapshot: Snapshot, papers: Mapping[str, Paper]) -> dict[str, SummarisedText]:
    """What was written of the text in which each text unit stands."""
    if "summaries" not in snapshot.manifest.tables:
        return {}
    columns = ["document_id", "place", "char_start", "heading", "text", "sha"]
    rows = snapshot.rows("summaries", columns=columns).to_pylist()
    of = lists_of((row["document_id"], row) for row in sorted(rows, key=lambda row: row["place"]))
    columns = ["document_id", "char_start", "id"]
    units = snapshot.rows("text_units", columns=columns).to_pylist()
    units.sort(key=lambda row: (row["document_id"], row["char_start"]))
    found: dict[str, SummarisedText] = {}
    texts: dict[tuple[str, int], SummarisedText] = {}
    for unit in units:
        summaries = of.get(unit["document_id"], [])
        summaries = [row for row in summaries if row["place"]] or summaries
        if not summaries:
            continue
        at = max(bisect_right([row["char_start"] for row in summaries], unit["char_start"]) - 1, 0)
        row, key = summaries[at], (unit["document_id"], at)
        if key not in texts:
            paper = papers[unit["document_id"]]
            title = f"{paper.title}: {row['heading']}" if row["heading"] else paper.title
            identity = content_id("told", row["sha"], row["text"])
            facts = unit["id"], title, paper.date, row["text"]
            texts[key] = SummarisedText(unit["document_id"], identity, *facts)
        found[unit["id"]] = texts[key]
    return found


def of_units(known: Mapping[str, SummarisedText], units: Iterable[str]) -> list[SummarisedText]:
    """What was written of these text units, each once, by time, title and text."""
    texts = {text.identity: text for unit in units if (text := known.get(unit)) is not None}
    return sorted(texts.values(), key=lambda text: (text.date or "9999", text.title, text.identity))


def context(
    texts: Sequence[SummarisedText],
    parts: Iterable[Sequence[SummarisedText]],
    worth: Mapping[str, float],
    children: Sequence[Report] | None,
    tokens: int,
) -> Prompted | None:
    """The summaries within so many tokens, as `report_llm.context` has it: of each part and of all in turn
    the one that holds most of the characteristic terms (`worth`)."""
    value = {
        text.identity: math.fsum(worth.get(term, 0.0) for term in set(terms(text.text)))
        for text in texts
    }
    lines = {text.identity: text.line() for text in texts}

    def place(text: SummarisedText) -> tuple[float, str]:
        return -round(value[text.identity], 9), text.identity

    sorted_parts = [
        sorted((text for text in part if text.identity in value), key=place) for part in parts
    ]
    sorted_parts.sort(key=lambda part: (-len(part), list(map(place, part))))
    turns = zip_longest(sorted(texts, key=place), *sorted_parts)
    best = dict.fromkeys(text.identity for turn in turns for text in turn if text is not None)
    rows = report_llm.Rows({"Sources": list(lines.values())})
    return report_llm.context(rows, map(lines.__getitem__, best), children, tokens)


# ---- replies that are kept -----------------------------------------------------------------------


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
    _read: list[tuple[About, str]] | None = field(default=None)

    def nearest(self, about: About) -> tuple[About, str] | None:
        """The reply to the same prompt in the same language, with what it is about, that shares most texts
        with a topic, at least SHARED of either's; None where none does."""
        if self._read is None:
            self._read = list(self._replies())
        best: tuple[float, str, tuple[About, str]] | None = None
        for reply in self._read:
            texts = reply[0].texts
            common = len(texts & about.texts) / max(len(texts), len(about.texts), 1)
            alike = (reply[0].level, reply[0].asked) == (about.level, about.asked)
            if alike and common >= SHARED:
                place = (-common, reply[1], reply)
                best = min(best, place, key=lambda each: each[:2]) if best else place
        return best[2] if best else None

    def none_of(self, asked: str) -> bool:
        """Is there no reply to this prompt in this language, or is each asked for again?"""
        return self.asker.refreshes or all(about.asked != asked for about, _ in self._replies())

    def _replies(self) -> Iterable[tuple[About, str]]:
        for stored in self.asker.book.of_kind("report", f'"{ABOUT}"') if self.asker.book else ():
            try:
                value: Any = json.loads(stored.text).get(ABOUT)
                texts, shown = frozenset(value["texts"]), tuple(value["shown"])
                about = About(value["level"], texts, shown, value.get("asked", ""))
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # of another form
            yield about, stored.text
