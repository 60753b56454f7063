"""Rows of one document: its text units, their passages, search terms and names.

Takes a `Document` and what the previous generation held of it; gives rows for three tables and the units whose
names are new. A unit's id is a hash of the document's uri and the unit's own text, so text that did not change
keeps its id, its short alias and its names, wherever an edit above has moved it.

In two steps: `cut` says what the text units are, in a quarter of the time, so that a model can be asked about them
while `fill` looks for names and search terms.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.credentials import masked
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.claims import Claim
from graphrag_mcp.index.imported import DocumentRecord, UnitRecord
from graphrag_mcp.index.mentions import UnitNames, collect, entity_id
from graphrag_mcp.text import count_tokens, normalise_name, terms
from graphrag_mcp.types import Document, Unit, content_id

Row = dict[str, Any]


@dataclass
class Before:
    """What the previous generation held of a document (empty for a new one)."""

    n: int = 0
    units: dict[str, int] = field(default_factory=dict)  # id -> n
    passages: dict[str, Sequence[str]] = field(default_factory=dict)  # id -> entity_ids
    redo: set[str] = field(default_factory=set)  # units to be read again although their text is the same


class Names:
    """The keyless names of a text unit, looked for once, by whichever thread needs them first."""

    def __init__(self, id: str, text: str, core: int) -> None:
        self.id, self.text, self._core = id, text, core
        self._lock = threading.Lock()
        self._found: tuple[UnitNames, list[tuple[int, str]]] | None = None

    def found(self) -> tuple[UnitNames, list[tuple[int, str]]]:
        with self._lock:
            if self._found is None:
                self._found = collect(self.id, self.text, self._core)
            return self._found

    def repeated(self) -> UnitNames:
        """Those in the part that the unit before holds as well: who reads the whole text finds them again."""
        return collect(self.id, self.text[: self._core], 0)[0]


@dataclass
class DocumentRows:
    """Rows of a document; `passages`, `fresh` and `claims` only once they are filled."""

    document: Row
    source: Document
    before: Before
    given: DocumentRecord | None
    cuts: list[tuple[Unit, UnitRecord | None]] = field(default_factory=list)  # as `units` are
    to_read: dict[str, Names] = field(default_factory=dict)  # units whose names are new, by id
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)  # units to merge into the graph
    kept: set[str] = field(default_factory=set)  # units whose names are already there
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units


def build(document: Document, before: Before, params: ChunkParams, number: dict[str, int]) -> DocumentRows:
    """Both steps at once."""
    rows = cut(document, before, params, number)
    fill(rows)
    return rows


def cut(
    document: Document, before: Before, params: ChunkParams, number: dict[str, int], given: DocumentRecord | None = None
) -> DocumentRows:
    """`number` holds the next free alias number of "d" and "t" and is advanced.

    `given`: what an import says of the document; then units and names are those, and nothing is extracted.
    """
    document_id = document.id  # a hash over the whole text: once a document, not once a unit
    n = before.n
    if not n:
        n, number["d"] = number["d"], number["d"] + 1
    row = {
        "id": document_id, "n": n, "uri": document.uri, "title": document.title, "text": document.text,
        "metadata": metadata_json(document.metadata), "created": document.created,
    }  # fmt: skip
    rows = DocumentRows(row, document, before, given)
    rows.cuts = given.cut(document.text, params) if given else [(unit, None) for unit in chunk(document.text, params)]
    name_of = unit_ids(document.uri)
    for unit, _ in rows.cuts:
        start, end = unit.span.start, unit.span.end
        text = document.text[start:end]
        unit_id = name_of(unit, text)
        number_of_unit = before.units.get(unit_id)
        if number_of_unit is None:
            number_of_unit, number["t"] = number["t"], number["t"] + 1
        rows.units.append({
            "id": unit_id, "n": number_of_unit, "document_id": document_id, "chunk_index": unit.index,
            "char_start": start, "char_end": end, "line_start": unit.span.line_start,
            "line_end": unit.span.line_end, "n_tokens": unit.n_tokens, "text": text,
        })  # fmt: skip
        known = unit_id in before.units and unit_id not in before.redo
        if known and all(id in before.passages for id in _passage_ids(unit, unit_id)):
            rows.kept.add(unit_id)
        else:  # a key in a text is no name, stands in no evidence, and no model is shown it
            rows.to_read[unit_id] = Names(unit_id, masked(text), unit.passages[0].start - start)
    return rows


def fill(rows: DocumentRows, check: Callable[[], object] = lambda: None) -> None:
    """Names, passages and search terms; `check` may raise to stop early."""
    title_terms = terms(rows.source.title)
    title_key = normalise_name(rows.source.title)
    shared = {
        "document_id": rows.document["id"], "uri": rows.source.uri, "title": rows.source.title,
        "title_id": entity_id(title_key) if title_key else "",
    }  # fmt: skip
    for (unit, record), row in zip(rows.cuts, rows.units, strict=True):
        check()
        _passages(rows, unit, record, row["id"], row["n"], shared, title_terms)


def unit_ids(uri: str) -> Callable[[Unit, str], str]:
    """Names the units of one document, in their order: by their text, and equal ones by their place among these."""
    seen: Counter[str] = Counter()

    def name(unit: Unit, text: str) -> str:
        same = content_id(uri, str(unit.passages[0].start - unit.span.start), text)
        seen[same] += 1
        return content_id("unit", same, str(seen[same] - 1))

    return name


def _passage_ids(unit: Unit, unit_id: str) -> list[str]:
    origin = unit.span.start
    return [content_id("passage", unit_id, str(p.start - origin), str(p.end - origin)) for p in unit.passages]


def _passages(
    rows: DocumentRows, unit: Unit, record: UnitRecord | None, unit_id: str, n: int, shared: Mapping[str, str],
    title_terms: Sequence[str],
) -> None:  # fmt: skip
    document, origin = rows.source, unit.span.start
    ids = _passage_ids(unit, unit_id)
    if unit_id in rows.kept:
        entity_ids = [rows.before.passages[id] for id in ids]
    else:
        if rows.given is None:
            names, mentions = rows.to_read[unit_id].found()
        else:
            text = rows.to_read[unit_id].text
            names, mentions = rows.given.names_of(unit_id, text, record)
            rows.claims[unit_id] = rows.given.claims_of(text, record)
        rows.fresh[unit_id] = names
        if len(ids) == 1:
            entity_ids = [[entity_id(named.key) for named in names.named]]
        else:
            entity_ids = [
                list(dict.fromkeys(entity_id(key) for start, key in mentions if p.start <= start + origin < p.end))
                for p in unit.passages
            ]
    for part, (id, span, named) in enumerate(zip(ids, unit.passages, entity_ids, strict=True), 1):
        text = document.text[span.start : span.end]
        n_tokens = unit.n_tokens if span == unit.span else count_tokens(text)
        words = [*title_terms, *terms(text)]
        rows.passages.append({
            "id": id, "n": n, "part": part, "parts": len(ids), "text_unit_id": unit_id, **shared,
            "position": len(rows.passages), "char_start": span.start, "char_end": span.end,
            "line_start": span.line_start, "line_end": span.line_end, "n_tokens": n_tokens, "text": text,
            "terms": " ".join(words), "n_terms": len(words), "entity_ids": list(named),
        })  # fmt: skip


def metadata_json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, ensure_ascii=False, sort_keys=True) if metadata else "{}"
