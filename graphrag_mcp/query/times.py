"""Times of documents and passages: a document's date and validity; on which day a passage was said,
and of which days it speaks.

The day of a passage is that of the nearest dated heading or turn above it, else the date of its
document. The time of a file's last change dates nothing."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.temporal import Anchor, When, anchors, expressions
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import is_note

COLUMNS = ("id", "document_id", "char_start", "char_end", "text")
AT_ONCE = 64  # documents whose texts are read at once
SHOWN = 6  # resolved expressions that are shown beside one passage

Row = Mapping[str, Any]

OUTDATED = frozenset(  # values of `status` in front matter that are shown beside each quote
    "deprecated superseded obsolete withdrawn archived draft rejected replaced expired".split()
)
# Names of metadata, without hyphens and underscores.
VALID_FROM = "validfrom effectivedate effectivefrom effective".split()
VALID_UNTIL = "validuntil expires expirydate expirationdate effectiveuntil".split()


@dataclass(frozen=True, slots=True)
class Document:
    """A document as lists and filters know it. `alias` is its id in results (d4), `id` its content id. `date` is the day
    that it states, with the `clock` of that day and the `moment` that sorts by both; `valid`: its first and last day, "" for none."""

    alias: str = ""
    id: str = ""
    title: str = ""
    uri: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""
    clock: str = ""
    moment: str = ""
    valid: tuple[str, str] = ("", "")

    @property
    def file(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be called by."""
        return self.alias, self.id, self.title, self.uri, self.file

    @property
    def order(self) -> tuple[str, str]:
        """The key that sorts documents by time, those without a date last."""
        return self.moment or "9999", self.uri


@once
def documents(snapshot: Snapshot) -> dict[str, Document]:
    """Every document by content id, read once a generation."""
    rows = snapshot.rows("documents", "", ["n", "id", "title", "uri", "metadata"])
    return {id: _document(f"d{n}", id, *names) for n, id, *names in rows_of(rows)}


@lru_cache(maxsize=20_000)  # most documents of a generation are those of the one before
def _document(alias: str, id: str, title: str, uri: str, metadata: str) -> Document:
    known = {name.casefold(): value for name, value in json.loads(metadata or "{}").items()}
    date, clock = dates.of_metadata(known) or dates.in_name(uri.rpartition("/")[2]), dates.clock(known)
    valid = _stated(known, VALID_FROM), _stated(known, VALID_UNTIL)
    moment = dates.moment(date, clock)
    return Document(alias, id, title, uri, known, date, clock, moment, valid)


def _stated(metadata: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first date of metadata under one of these names: valid-until, validUntil, valid_until."""
    plain = {re.sub("[-_ ]", "", name): value for name, value in metadata.items()}
    return next(filter(None, (dates.read(str(plain.get(key) or "")) for key in keys)), "")


def shown(facts: Iterable[Document]) -> dict[str, str]:
    """The date of each document by content id, with the time of day if several documents have this
    date."""
    found: dict[str, str] = {}
    for date, group in lists_of((fact.date, fact) for fact in facts).items():
        for fact in group:
            found[fact.id] = f"{date} {fact.clock}".strip() if group[1:] else date
    return found


@once
def validity(snapshot: Snapshot) -> dict[str, str]:
    """What documents say about their validity, by content id: their status, if it is not a usual
    one; until when they are valid; and which document supersedes them. Read once a generation."""
    facts, found = documents(snapshot), defaultdict[str, list[str]](list)
    names = ((name, id) for id, fact in facts.items() for name in (*fact.names, fact.file.rpartition(".")[0]))
    by_name = lists_of({(name.casefold(), id) for name, id in names})
    for id, fact in facts.items():
        for name in _listed(fact, "supersedes"):
            same = {*by_name.get(name.casefold(), ())} - {id}
            if len(same) == 1:  # and no other
                found[same.pop()].append(f"superseded by {fact.alias}")
    for id, fact in facts.items():
        stated = [word for word in _listed(fact, "status") if word.casefold() in OUTDATED]
        found[id] += [f"status: {word}" for word in stated]
        begins, ends = fact.valid
        found[id] += [f"valid from {begins}"] * bool(begins) + [f"valid until {ends}"] * bool(ends)
    return {id: f"({'; '.join(texts)})" for id, texts in found.items() if texts}


def _listed(fact: Document, name: str) -> list[str]:
    """The words of metadata under this name."""
    value = fact.metadata.get(name) or []
    return [str(word).strip() for word in (value if isinstance(value, list) else [value])]


# The anchors of a document, and whether it writes the day before the month.
Known = tuple[list[Anchor], bool | None]


@once
def _anchors(snapshot: Snapshot) -> dict[str, Known]:
    """By document, filled by `read`."""
    return {}


@lru_cache(maxsize=2048)  # 2 to 6 MB
def _expressions(text: str, here: tuple[Anchor, ...], day_first: bool | None) -> tuple[When, ...]:
    """The expressions of a passage. Each takes 2 ms, and the searches of a session cite the same ones."""
    return tuple(expressions(text, here, day_first=day_first))


@dataclass(frozen=True)
class Times:
    """The times of a passage. Offsets are those of the document."""

    text: str = ""
    start: int = 0
    anchors: tuple[Anchor, ...] = ()  # in force in the passage
    day_first: bool | None = None  # as the document writes its days
    document: Document = Document()

    @cached_property
    def said(self) -> tuple[str, ...]:
        """The days (ISO 8601) on which parts of the passage were written or spoken, in the order of
        the text."""
        return tuple(dict.fromkeys(day for _, _, day in self.parts() if day))

    @cached_property
    def when(self) -> tuple[When, ...]:
        """The days of which it speaks. Read when it is asked for: that takes time."""
        start = self.start
        here = tuple(Anchor(at - start, day, until - start) for at, day, until in self.anchors)
        return tuple(
            replace(
                expression, char_start=expression.char_start + self.start, char_end=expression.char_end + self.start
            )
            for expression in _expressions(self.text, here, self.day_first)
        )

    def said_at(self, offset: int) -> str:
        """The day (ISO 8601) on which the text at an offset was written or spoken; "" if it is
        unknown."""
        return next((day for start, _, day in reversed(self.parts()) if start <= offset), "")

    def parts(self) -> list[tuple[int, int, str]]:
        """The parts of the passage that were written or spoken on one day each: (start, end, day),
        with offsets in the document and "" for an unknown day."""
        marks = [(anchor.at, anchor.day.isoformat() if anchor.day else "") for anchor in self.anchors]
        if not marks or marks[0][0] > self.start:
            marks.insert(0, (self.start, ""))
        ends = [at for at, _ in marks[1:]] + [self.start + len(self.text)]
        return [(at, end, day) for (at, day), end in zip(marks, ends, strict=True)]

    def moment(self, day: str) -> str:
        """The key that sorts texts of a day by time: that of the document if this is its day, else
        the day."""
        return self.document.moment if day and day == self.document.date else day

    def days(self) -> tuple[When, ...]:
        """The times of which the passage speaks (`when`), and of kind `document` the days that its headings
        state, and those on which parts that speak of no time were written or spoken."""
        spans = (part for part in self.parts() if part[2])
        at = [expression.char_start for expression in self.when]
        silent = dict.fromkeys(day for a, b, day in spans if not any(a <= place < b for place in at))
        heads = (anchor.day for anchor in self.anchors if anchor.until > self.start)
        silent |= dict.fromkeys(day.isoformat() for day in heads if day)
        return (*self.when, *(When(-1, -1, day, day, "document", day) for day in silent))

    def cited(self) -> list[dict[str, Any]]:
        """`days` as citations carry them."""
        return [asdict(time) for time in self.days()]

    def words(self, when: When) -> str:
        """The words of an expression."""
        return one_line(self.text[when.char_start - self.start : when.char_end - self.start], 80)

    def note(self, shown: str, among: Iterable[When] | None = None, date: str = "") -> str:
        """`(said 2023-05-25; last Saturday = 2023-05-20)`: the resolved expressions of the part
        that is shown, "" for none. `date` already stands beside the part. `among` are the
        expressions of the part."""
        if not self.anchors:
            return ""
        flat, date = " ".join(shown.split()), date[:10]
        resolved = [when for when in (self.when if among is None else among) if when.anchor]
        seen = [when for when in resolved if self.words(when) in flat][:SHOWN]
        parts = list[str]()
        for anchor, group in groupby(seen, key=lambda when: when.anchor):
            parts += [f"said {anchor}"] if anchor != date else []
            for when in group:
                days = span(when.start, when.end)
                parts += [f"{self.words(when)} = {days}"] if days != date else []
        return f"({'; '.join(dict.fromkeys(parts))})" if parts else ""


def span(start: str, end: str) -> str:
    """2019, 2019-05, 2019-05-07, 2019-05 to 2019-07: as exact as it was said."""
    if start.endswith("-01") and end == dates.days(end[:7])[1]:
        length = 4 if (start[5:7], end[5:7]) == ("01", "12") else 7
        start, end = start[:length], end[:length]
    return start if start == end else f"{start} to {end}"


def read(snapshot: Snapshot, rows: Sequence[Row]) -> dict[str, Times]:
    """The times of passages by id, from rows with COLUMNS."""
    known, facts = _anchors(snapshot), documents(snapshot)
    missing = sorted({row["document_id"] for row in rows} - known.keys())
    for at in range(0, len(missing), AT_ONCE):
        texts = snapshot.by_key("documents", missing[at : at + AT_ONCE], "id", ["id", "text"])
        for document in texts.to_pylist():
            fact = facts[document["id"]]
            if is_note(fact.uri, fact.metadata):  # what it says was said in its sources
                known[document["id"]] = [], None
                continue
            day = fact.date
            document_anchors = anchors(document["text"], day if len(day) == 10 else "")
            known[document["id"]] = document_anchors, dates.day_first(document["text"])
    found = {}
    for row in rows:
        anchored, day_first = known.get(row["document_id"], ([], None))
        start, end = row["char_start"], row["char_end"]
        above = [anchor._replace(at=start) for anchor in anchored if anchor.at <= start][-1:]
        here = (*above, *(anchor for anchor in anchored if start < anchor.at < end))
        fact = facts.get(row["document_id"], Document())
        found[row["id"]] = Times(row["text"], start, here, day_first, fact)
    return found


def of_passages(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, Times]:
    return read(snapshot, snapshot.by_key("passages", list(ids), "id", list(COLUMNS)).to_pylist())
