"""Documents, citations and statements as the views of the explorer show them.

A citation names a text unit and a span of it in code points, so that the page can open the text and
mark the sentence; a span of 0, 0 cites the whole text unit."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NotRequired, TypedDict

from graphrag_mcp import plugins
from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.topics import TITLE
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.query import context, filters, times
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import places
from graphrag_mcp.text.prose import fences, readable
from graphrag_mcp.types import Citation

LONG = 1_200  # characters of a statement or description
WITHIN = 50_000  # characters of a text unit in which a sentence is looked for; imported ones have any size
# Between the words of a sentence stand line breaks, and marks of Markdown.
_WORDS = re.compile(r"[^\s*_>#|-]+")
_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")

Row = dict[str, Any]


class Paper(TypedDict):
    """A document in a list. `n` is its number (d4), `code` is there for source code."""

    n: int
    title: str
    uri: str
    date: str
    code: NotRequired[bool]


class Cite(TypedDict):
    """A span of a text unit, with the document that it stands in. `code`: it touches a block of code."""

    id: str
    start: int
    end: int
    line: int
    place: str
    title: str
    uri: str
    date: str
    code: NotRequired[bool]


class Statement(TypedDict):
    """A sentence and where it stands."""

    text: str
    cites: list[Cite]


class Sources:
    """The text units that a view cites, with their documents. They are read once."""

    def __init__(self, snapshot: Snapshot, ids: Iterable[str]) -> None:
        names = ["id", "n", "document_id", "line_start", "char_start", "text"]
        rows = snapshot.served("text_units", list(dict.fromkeys(ids)), names)
        self.units: dict[str, Row] = {row["id"]: row for row in rows}
        self.documents = filters.documents(snapshot)

    def cite(self, unit: str, start: int = 0, end: int = 0) -> Cite | None:
        """The citation of a span of a text unit; None where the text unit or its document is gone."""
        row = self.units.get(unit)
        fact = self.documents.get(row["document_id"]) if row else None
        if row is None or fact is None:
            return None
        document = paper(fact)
        cited = Cite(
            id=f"t{row['n']}",
            start=start,
            end=end,
            line=row["line_start"],
            place=places.of_row(row, start, end or -1),
            title=document["title"],
            uri=document["uri"],
            date=document["date"],
        )
        if "code" in document or (end > start and in_code(row["text"], start, end)):
            cited["code"] = True
        return cited

    def quoted(self, unit: str, sentence: str) -> Cite | None:
        """The citation of a sentence, with its place in the text unit where it stands there."""
        row = self.units.get(unit)
        start, end = place_of(sentence, row["text"]) if row else (0, 0)
        return self.cite(unit, start, end)

    def evidence(self, sentence: Row) -> Statement:
        """A row of evidence (text, text_unit_id, start, end) as a statement."""
        cited = self.cite(sentence["text_unit_id"], sentence["start"], sentence["end"])
        text = one_line(readable(sentence["text"]), LONG)
        return Statement(text=text, cites=[cited] if cited else [])


def paper(document: times.Document) -> Paper:
    """A document as the page names it."""
    found = Paper(
        n=int(document.alias[1:]),
        title=one_line(document.title or document.file, TITLE),
        uri=one_line(document.uri, TITLE),
        date=document.date,
    )
    if plugins.verbatim(document.uri):
        found["code"] = True
    return found


def whole(citation: Citation) -> Cite:
    """A citation of the engine, which the page marks by the number of its passage."""
    return Cite(
        id=citation.id,
        start=0,
        end=0,
        line=citation.line_start,
        place=citation.place,
        title=one_line(citation.title, TITLE),
        uri=one_line(citation.uri, TITLE),
        date="",
    )


def statements(text: str, sources: Sources) -> list[Statement]:
    """The sentences of a report, each with the text units that its reference (`[Data: ...]`) names."""
    found: list[Statement] = []
    at = 0
    for reference in _DATA.finditer(text):
        sentence = text[at : reference.start()].strip()
        at = reference.end()
        ids = referenced_ids(reference[0]).get("Sources", [])[:5]
        cites = [cite for id in ids if (cite := sources.quoted(id, sentence)) is not None]
        if sentence.strip(" .;,"):
            found.append(Statement(text=one_line(sentence, LONG), cites=cites))
        elif found:
            found[-1]["cites"] += cites
    rest = text[at:].strip()
    if rest.strip(" .;,。"):
        found.append(Statement(text=one_line(rest, LONG), cites=[]))
    return found


def without_references(text: str) -> str:
    """A text of a report without its references."""
    return _DATA.sub("", text)


def numbered(snapshot: Snapshot, table: str, n: int, letter: str) -> Row:
    """The row with a number, such as 12 of e12. Raises NotFound."""
    found = context.numbered(snapshot, table, [n])
    if not found:
        raise NotFound(f"there is no {letter}{n} in this index any more", "Search for it")
    return found[0]


def left_out(rows: Sequence[Any], shown: int) -> int:
    """How many of the rows are not among the first `shown`."""
    return max(0, len(rows) - shown)


def in_code(text: str, start: int, end: int) -> bool:
    """Does a span of a Markdown text touch a block of code, fenced or indented? Its signs are text then."""
    blocks = fences(text)
    before = bisect_right(blocks, start)
    line = text[text.rfind("\n", 0, start) + 1 : end]
    indented = line.startswith(("    ", "\t"))
    return before % 2 == 1 or bisect_left(blocks, end) > before or indented


def place_of(sentence: str, text: str) -> tuple[int, int]:
    """Where a sentence stands in a text, line breaks and spaces aside; (0, 0) where it does not."""
    sentence = sentence.strip().removesuffix("…").removesuffix("...").strip()
    if (at := text.find(sentence)) >= 0 and sentence:
        return at, at + len(sentence)
    # A pattern of the words would try a text of equal words from each of them.
    words = _WORDS.findall(sentence[:1_000])
    if len(words) < 3:
        return 0, 0
    runs = list(_WORDS.finditer(text[:WITHIN]))
    phrase, flat = " ".join(words), " ".join(run[0] for run in runs)
    if (at := flat.find(phrase)) < 0:
        return 0, 0
    begins = list(accumulate((len(run[0]) + 1 for run in runs), initial=0))

    def offset(place: int) -> int:
        number = bisect_right(begins, place) - 1
        return runs[number].start() + place - begins[number]

    return offset(at), offset(at + len(phrase) - 1) + 1
