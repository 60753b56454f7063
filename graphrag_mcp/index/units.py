"""Text units read by a model: its records as rows of entities and statements. A unit
without a usable reply keeps the keyless names and is listed in `pending`."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from graphrag_mcp.index import extraction, places
from graphrag_mcp.index.extract import StatedRelation, UnitNames
from graphrag_mcp.index.extract.placing import Placing
from graphrag_mcp.index.losses import Losses, pending
from graphrag_mcp.index.records import Records
from graphrag_mcp.llm.asker import NO_MODEL, Asker, aside
from graphrag_mcp.sources.decode import find_title, front_matter, headings, top_title
from graphrag_mcp.sources.formats import FORMATS
from graphrag_mcp.sources.walk import suffix_of
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import normalise_name
from graphrag_mcp.text.uris import file_and_key
from graphrag_mcp.trust.fencing import masked

Row = dict[str, Any]
_JOINED = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")  # where a run-together name has its blanks
LONGEST_PART = 150  # characters of a title or a heading in the line on a document
HELD = 8  # documents whose headings are known at once
_NO_TAGS = str.maketrans("<>", "‹›")
UNKNOWN = "unknown"  # the type of an end of a relationship that is no entity of its own


class Context:
    """The line before the text of a unit: title, date and the headings above it, as the document
    states them. No file name and no number, and of the text only what stands above: neither a
    rename nor an edit elsewhere changes the line, which is a part of the reply cache's key."""

    def __init__(self, uri: str, title: str, text: str, metadata: Mapping[str, Any]) -> None:
        self._uri, self._title, self._text, self._metadata = uri, title, text, metadata

    def line(self, start: int) -> str:
        """That of the unit whose text begins at this character; "" where nothing is stated."""
        title, date = self._own
        offsets, over, above = *self._headings, list[str]()
        at = bisect_right(offsets, start) - 1
        if at >= 0 and offsets[at] == start:  # it stands in the text
            at = over[at][0]
        while at >= 0:
            at, words = over[at]
            above.insert(0, words)
        if above[:1] == [title]:
            above = above[1:]
        parts = (("Title", title), ("Date", date), ("Headings", " > ".join(above)))
        header = masked("; ".join(f"{name}: {part}" for name, part in parts if part))
        return f"<document>{header}</document>\n" if header else ""

    @cached_property
    def _own(self) -> tuple[str, str]:
        """Title and date."""
        known = {name.casefold(): value for name, value in self._metadata.items()}
        date = dates.of_metadata(known)
        title = front_matter(self._text)[0].get("title") or self._given
        if self._prose:
            date, title = date or dates.in_head(self._text), title or top_title(self._text)
        return _short(title), date

    @cached_property
    def _headings(self) -> tuple[list[int], list[tuple[int, str]]]:
        """Offsets of the headings, and of each the place of the one above it (-1) and its words."""
        offsets: list[int] = []
        over: list[tuple[int, str]] = []
        open_: list[tuple[int, int]] = []  # level, place
        for offset, level, words in headings(self._text) if self._prose else ():
            while open_ and open_[-1][0] >= level:
                open_.pop()
            offsets.append(offset)
            over.append((open_[-1][1] if open_ else -1, _short(words)))
            open_.append((level, len(over) - 1))
        return offsets, over

    @property
    def _prose(self) -> bool:
        """Is a `#` at the start of a line a heading, and no comment?"""
        return self._uri.startswith("text:") or suffix_of(file_and_key(self._uri)[0]) in FORMATS

    @property
    def _given(self) -> str:
        """A title beside the text, of a web page or a row; "" for one that is found in the text or
        made of the names of file and row."""
        title, uri = (" ".join(text.split()).replace(" #", "#") for text in (self._title, self._uri))
        uri = "/" + re.sub(r"~\d+$", "", uri.removeprefix("text:"))
        found = " ".join(find_title(self._text).split())
        return "" if uri.endswith(f"/{title}") or found[:300] == self._title else self._title


def stored(snapshot: Snapshot, ids: Sequence[str], known: dict[str, Context]) -> Iterator[tuple[str, str, str]]:
    """Text units as indexing asks about them: id, text, and the line on the document. `known` holds
    the last documents that were read."""
    columns = ["id", "text", "document_id", "char_start"]
    for row in snapshot.served("text_units", ids, columns):
        id = row["document_id"]
        if id not in known:
            if len(known) >= HELD:
                known.clear()
            columns = ["id", "uri", "title", "text", "metadata"]
            (document,) = snapshot.served("documents", [id], columns)
            metadata = json.loads(document["metadata"])
            known[id] = Context(document["uri"], document["title"], document["text"], metadata)
        yield row["id"], masked(row["text"]), known[id].line(row["char_start"])


def _short(words: object) -> str:
    """In one line that closes no tag."""
    return " ".join(str(words).split())[:LONGEST_PART].strip().translate(_NO_TAGS)


@dataclass(slots=True)
class Reading:
    uri: str
    future: Future[Read]


@dataclass(frozen=True, slots=True)
class Read:
    """What a model made of a unit: its names (None: no one answered), why something was not answered,
    and what was lost of its replies."""

    names: UnitNames | None
    reason: str = ""
    lost: Losses = Losses()


def begin(
    asker: Asker, params: extraction.ExtractParams | None, uri: str, unit: UnitNames, context: str
) -> Reading | None:
    """Have the unit read; None when no one could. `unit`: with what the keyless extractor finds in
    it; `context`: the line on its document."""
    if params is None or not asker.may_answer("extract"):
        return None
    return Reading(uri, asker.start(_read(asker, params, unit, context)))


async def _read(asker: Asker, params: extraction.ExtractParams, unit: UnitNames, context: str) -> Read:
    """Rows are made as replies arrive, while others are on their way."""
    known = [named.form for named in unit.named if named.strong]
    aliases = {named.key: named.alias_of for named in unit.named if named.alias_of}
    found = await extraction.extract_unit(asker, unit.text, known, params, context)
    read, lost, records = None, Losses(), found.records
    if records is not None:
        read = await aside(from_records, unit.id, unit.text, records, found.by, aliases)
        made_up = sum(1 for named in read.named if named.type == UNKNOWN and not named.description)
        repaired = {**records.losses.repaired, "end without an entity": made_up}
        lost = replace(records.losses, repaired=repaired)
    return Read(read, found.reason, lost)


def settle(
    asker: Asker,
    readings: Mapping[str, Reading],
    fresh: dict[str, UnitNames],
    unread: Mapping[str, str],
    take: Callable[[Future[Any]], Any],
) -> dict[str, list[Row]]:
    """Wait for the readings and replace the names of the units in `fresh` by what was read; rows of
    what is still to be asked (pending) and of what was lost (losses).

    `unread`: uri by unit that should have been read and that no one could."""
    rows: dict[str, list[Row]] = {"pending": [], "losses": []}
    for unit, uri in unread.items():
        rows["pending"].append(pending("extract", unit, uri, asker.why_off or NO_MODEL))
    for unit, reading in readings.items():
        read = take(reading.future)
        if read.reason:  # also of a second pass that was due: what the first found stays
            rows["pending"].append(pending("extract", unit, reading.uri, read.reason))
        if read.names is not None:
            fresh[unit] = read.names
        rows["losses"] += filter(None, [read.lost.row("extract", unit, reading.uri)])
    return rows


def from_records(
    unit: str, text: str, records: Records, by: str, aliases: Mapping[str, str] | None = None
) -> UnitNames:
    """Names with the places where they stand in the text, statements with the sentences they rest
    on.

    `aliases`: short forms that the text itself explains, as the keyless extractor found them ->
    what they stand for.

    An end of a relationship that is no entity of its own becomes one of type "unknown", so that
    nothing dangles."""
    placing = Placing(unit, text, by)
    statements: dict[tuple[str, str, str], StatedRelation] = {}

    def key_of(name: str) -> str:
        key = normalise_name(places.spelled(text, name))
        placing.find(key, name)
        return key

    def add(key: str, name: str, kind: str, description: str) -> None:
        placing.add(placing.row(key, places.spelled(text, name), kind, description))

    for entity in records.entities:
        if key := key_of(entity.name):  # the same name with two types keeps both
            add(key, entity.name, entity.type, entity.description)
    known = {row.key for row in placing.named.values()}
    for relation in records.relations:
        source, target = key_of(relation.source), key_of(relation.target)
        if not source or not target:
            continue
        for key, name in ((source, relation.source), (target, relation.target)):
            if key not in known:
                known.add(key)
                add(key, name, UNKNOWN, "")
        told = relation.description, ", ".join(relation.keywords), relation.strength
        words = f"{relation.source} {relation.target} {relation.description}"
        statement = placing.stated(source, target, told, words)
        statements.setdefault((source, target, relation.description), statement)
    for row in placing.named.values():
        spaced = normalise_name(_JOINED.sub(" ", row.form))  # of AnnaBerg: anna berg
        row.alias_of = (aliases or {}).get(row.key, "") or (spaced if spaced != row.key else "")
    return UnitNames(unit, text, list(placing.named.values()), list(statements.values()))
