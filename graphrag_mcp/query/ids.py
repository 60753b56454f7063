"""What an id stands for, as agents write them: `e12`, `t33.2`, `d4#3`, full ids, uris, paths, lines of a
file. And the passages behind it."""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from graphrag_mcp import plugins
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.query import context, plugin
from graphrag_mcp.query.pages import folders, uris_of
from graphrag_mcp.query.times import documents
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot, values_of

Row = dict[str, Any]

# What an id begins with: its table, and what the rows are called.
KINDS = {
    "t": ("passages", "text units"),
    "d": ("documents", "documents"),
    "e": ("entities", "entities"),
    "r": ("relationships", "relationships"),
    "c": ("reports", "communities"),
}
SAME = 5  # entities that documents define under one name and that are given at once
UNITS_PER_ID = 10  # of one entity, relationship or community, when its sources are asked for
IDS = 50
GIVEN = 2_000  # characters of one string of ids
_ALIAS = re.compile(r"([tderc])(\d{1,12})(?:\.(\d{1,6}))?(\+)?", re.IGNORECASE | re.ASCII)
# A place as citations and editors write it: notes/b.md:1-3, notes/b.md:3, notes/b.md#L3-L5
_CITED_LINES = re.compile(r"(?P<path>[^\n]{1,1000}?)(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?")
_FULL_ID = re.compile(r"[0-9a-f]{32}")
_SECTION = re.compile(r"d(\d{1,12})#(\d{1,6})", re.IGNORECASE | re.ASCII)
_IN_LIST = r"\b[tderc]\d{1,12}(?:\.\d{1,6})?\b\+?"
_LIST = re.compile(  # with the words of a citation of ours, [Data: Sources (t1, t3, +more)]
    rf"(?:[\s,;|/()\[\]`'\"]|Data:|\+more|\b(?:Sources|Entities|Relationships|Reports|and|see)\b|{_IN_LIST})+",
    re.IGNORECASE | re.ASCII,
)


def meant_by(snapshot: Snapshot, reference: str) -> list[str]:
    """The ids that one reference stands for. An id is one only where it is the whole reference or
    stands in a list of ids: `text:d2` and `notes/t33.md` are uris, known or not."""
    alone = reference.strip().strip("[]()`'\" ")
    if _SECTION.fullmatch(alone) or _ALIAS.fullmatch(alone):
        return [alone.lower()]
    if _FULL_ID.fullmatch(alone):
        return _of_full_id(snapshot, alone)
    if found := _by_uri(snapshot, reference, alone) or listed_ids(reference):
        return found
    if cited := _CITED_LINES.fullmatch(alone):
        path, first, last = cited["path"], int(cited["first"]), int(cited["last"] or cited["first"])
        if found := [id for of in _by_uri(snapshot, path, path) for id in _at_lines(snapshot, of, first, last)]:
            return found
    if named := plugin.named(snapshot, alone[:300])[:SAME]:
        return [f"e{row['n']}" for row in named]
    facts = documents(snapshot).values()
    same = [fact.alias for fact in facts if PurePosixPath(fact.uri).stem == alone]  # a name without .txt
    return same if len(same) == 1 else []


def _at_lines(snapshot: Snapshot, document: str, first: int, last: int) -> list[str]:
    """The passages that these lines of a document (`d4`) lie in, in reading order."""
    rows = context.numbered(snapshot, "documents", [int(document[1:])])
    place = " OR ".join(f"document_id = '{row['id']}'" for row in rows)
    where = f"({place}) AND line_start <= {last} AND line_end >= {first}"
    columns = ["n", "part", "parts", "position"]
    found = snapshot.rows("passages", where, columns).to_pylist()
    return [packing.passage_alias(row) for row in sorted(found, key=lambda row: row["position"])]


def _of_full_id(snapshot: Snapshot, id: str) -> list[str]:
    """The short id of the row with this content id."""
    for letter, table in [("t", "text_units"), *((letter, kind[0]) for letter, kind in KINDS.items())]:
        for row in snapshot.served(table, [id]):
            return [packing.passage_alias(row) if table == "passages" else f"{letter}{row['n']}"]
    return []


def listed_ids(reference: str) -> list[str]:
    """The ids of a list, as `t1, t3` or `[Data: Sources (t1, t3)]`; [] for anything else."""
    if len(reference) > GIVEN or not _LIST.fullmatch(reference):
        return []
    return [id.lower() for id in re.findall(_IN_LIST, reference, re.IGNORECASE | re.ASCII)]


def _by_uri(snapshot: Snapshot, reference: str, bare: str) -> list[str]:
    """Aliases of the documents with this uri or path, or whose uri ends with it."""
    if not bare or len(reference) > 1_000:
        return []
    spellings = [reference, reference.strip(), bare, *_uris_of(snapshot, bare)]
    alias = {fact.uri: fact.alias for fact in documents(snapshot).values()}
    for name in spellings:
        for uri in (name, f"text:{name}"):
            if uri in alias:
                return [alias[uri]]
    end, row = f"/{spellings[-1]}", f"{spellings[-1]}#"
    return [alias[uri] for uri in sorted(alias) if uri.endswith(end) or uri.startswith(row)][:IDS]


def _uris_of(snapshot: Snapshot, path: str) -> list[str]:
    """The uris that a path may have in this index: in the form of their accents (NFC), and for an
    absolute path `<label>/<path below the folder>`, the innermost folder last."""
    name = unicodedata.normalize("NFC", path)
    if name.startswith("file://"):
        name = unquote(name.removeprefix("file://"))
    if not os.path.isabs(name):
        return [name, posixpath.normpath(name)]
    return uris_of(folders(snapshot), name)[::-1]


def passages_of(snapshot: Snapshot, alias: str) -> list[Row]:
    """Passages that an id stands for, in reading order."""
    match = _ALIAS.fullmatch(alias)
    assert match is not None
    letter, number = match[1], int(match[2])
    found = context.numbered(snapshot, KINDS[letter][0], [number])
    if letter == "t":
        part = int(match[3] or 0)
        rows = _ordered([row for row in found if not part or row["part"] == part])
        if not match[4] or not rows:
            return rows
        place = f"document_id = '{rows[0]['document_id']}'"  # and what follows in it
        return _passages(snapshot, f"{place} AND position >= {rows[0]['position']}")
    if not found:
        return []
    row = found[0]
    if letter == "d":  # its whole text is in its passages already
        return _passages(snapshot, f"document_id = '{row['id']}'")
    if letter == "e" and (of := plugin.plugin_of(row)) and (passages := of.text(snapshot, row)):
        return passages
    ids = row["text_unit_ids"][:UNITS_PER_ID]
    units = values_of(snapshot.by_key("text_units", ids, "id", ["n"])["n"])
    rows = context.numbered(snapshot, "passages", units)
    names = {"e": {row["id"]}, "r": {row.get("source_id"), row.get("target_id")}}.get(letter, set())
    return _ordered([row for row in rows if names <= set(row["entity_ids"])] or rows)


def section_of(text: str, number: int, uri: str = "") -> tuple[int, int] | None:
    """The characters of the heading with this number (from 1) and what stands under it, or of the part
    that a plug-in lists."""
    if outline := plugins.outline(uri, text):
        parts = outline.parts()
        if 0 < number <= len(parts):
            return parts[number - 1].start, parts[number - 1].end
        return None
    listed = list(headings(text))
    if not 0 < number <= len(listed):
        return None
    start, level, _ = listed[number - 1]
    ends = (place for place, other, _ in listed[number:] if other <= level)
    return start, next(ends, len(text))


def section(snapshot: Snapshot, alias: str) -> list[Row]:
    """The section under a heading of the outline, as parts of passages: `d4#3`, the third one."""
    match = _SECTION.fullmatch(alias)
    assert match is not None
    for document in context.numbered(snapshot, "documents", [int(match[1])]):
        if span := section_of(document["text"], int(match[2]), document["uri"]):
            place = f"char_start < {span[1]} AND char_end > {span[0]}"
            rows = _passages(snapshot, f"document_id = '{document['id']}' AND {place}")
            return [context.part_of(row, *span) for row in snapshot.with_places(rows)]
    return []


def _passages(snapshot: Snapshot, where: str) -> list[Row]:
    return _ordered(snapshot.rows("passages", where).to_pylist())


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["uri"], row["document_id"], row["position"]))


def with_neighbours(snapshot: Snapshot, rows: list[Row], around: int) -> list[Row]:
    if not around or not rows:
        return rows
    near = []
    for row in rows[:50]:
        low, high = row["position"] - around, row.get("last", row["position"]) + around
        near.append(f"(document_id = '{row['document_id']}' AND position BETWEEN {low} AND {high})")
    return _passages(snapshot, " OR ".join(near))


def was_given(snapshot: Snapshot, id: str) -> bool:
    """Did an id once name something here? Ids are never given twice."""
    match = _ALIAS.fullmatch(id)
    return match is not None and 0 < int(match[2]) < snapshot.manifest.next.get(match[1], 1)


def id_range(snapshot: Snapshot, *letters: str) -> str:
    """Which ids were ever given: `text units t1 to t40, ...`."""
    following = snapshot.manifest.next
    ever = (letter for letter in letters if following.get(letter, 1) > 1)
    known = [f"{KINDS[letter][1]} {letter}1 to {letter}{following[letter] - 1}" for letter in ever]
    return "Known are " + ", ".join(known) if known else "The corpus has none yet"
