"""Rows of one document: its text units, their passages, search terms and names.

Takes a `Document` and what the previous generation held of it; gives rows for three tables and the units whose
names are new. A unit's id is a hash of the document's uri and the unit's own text, so text that did not change
keeps its id, its short alias and its names, wherever an edit above has moved it.
"""

from __future__ import annotations

import json
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


@dataclass
class DocumentRows:
    document: Row
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)  # units to merge into the graph
    kept: set[str] = field(default_factory=set)  # units whose names are already there
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units


def build(
    document: Document,
    before: Before,
    params: ChunkParams,
    number: dict[str, int],
    check: Callable[[], object] = lambda: None,
    given: DocumentRecord | None = None,
) -> DocumentRows:
    """`number` holds the next free alias number of "d" and "t" and is advanced; `check` may raise to stop early.

    `given`: what an import says of the document; then units and names are those, and nothing is extracted.
    """
    document_id = document.id  # a hash over the whole text: once a document, not once a unit
    n = before.n
    if not n:
        n, number["d"] = number["d"], number["d"] + 1
    rows = DocumentRows({
        "id": document_id, "n": n, "uri": document.uri, "title": document.title, "text": document.text,
        "metadata": metadata_json(document.metadata), "created": document.created,
    })  # fmt: skip
    title_terms = terms(document.title)
    title_key = normalise_name(document.title)
    shared = {
        "document_id": document_id, "uri": document.uri, "title": document.title,
        "title_id": entity_id(title_key) if title_key else "",
    }  # fmt: skip
    units = given.cut(document.text, params) if given else [(unit, None) for unit in chunk(document.text, params)]
    name_of = unit_ids(document.uri)
    for unit, record in units:
        check()
        text = document.text[unit.span.start : unit.span.end]
        unit_id = name_of(unit, text)
        number_of_unit = before.units.get(unit_id)
        if number_of_unit is None:
            number_of_unit, number["t"] = number["t"], number["t"] + 1
        rows.units.append({
            "id": unit_id, "n": number_of_unit, "document_id": document_id, "chunk_index": unit.index,
            "char_start": unit.span.start, "char_end": unit.span.end, "line_start": unit.span.line_start,
            "line_end": unit.span.line_end, "n_tokens": unit.n_tokens, "text": text,
        })  # fmt: skip
        read = (given, record) if given else None
        _passages(rows, document, unit, unit_id, number_of_unit, before, shared, title_terms, read)
    return rows


def unit_ids(uri: str) -> Callable[[Unit, str], str]:
    """Names the units of one document, in their order: by their text, and equal ones by their place among these."""
    seen: Counter[str] = Counter()

    def name(unit: Unit, text: str) -> str:
        same = content_id(uri, str(unit.passages[0].start - unit.span.start), text)
        seen[same] += 1
        return content_id("unit", same, str(seen[same] - 1))

    return name


def _passages(
    rows: DocumentRows, document: Document, unit: Unit, unit_id: str, n: int, before: Before,
    shared: Mapping[str, str], title_terms: Sequence[str], read: tuple[DocumentRecord, UnitRecord | None] | None,
) -> None:  # fmt: skip
    origin = unit.span.start
    ids = [content_id("passage", unit_id, str(p.start - origin), str(p.end - origin)) for p in unit.passages]
    if unit_id in before.units and unit_id not in before.redo and all(id in before.passages for id in ids):
        rows.kept.add(unit_id)
        entity_ids = [before.passages[id] for id in ids]
    else:
        core = unit.passages[0].start - origin
        # A key in a text is no name, stands in no evidence, and no model is shown it.
        unit_text = masked(document.text[origin : unit.span.end])
        if read is None:
            names, mentions = collect(unit_id, unit_text, core)
        else:
            names, mentions = read[0].names_of(unit_id, unit_text, read[1])
            rows.claims[unit_id] = read[0].claims_of(unit_text, read[1])
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
