"""The rows that follow from a document and the parameters alone.

A process of the executor does this and imports nothing else, so that it starts in a third of a second: no
tables, no models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphrag_mcp import plugins
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.extract import Extractor, UnitNames, plugin
from graphrag_mcp.index.extract.rules import RuleExtractor
from graphrag_mcp.sources.document import Document
from graphrag_mcp.sources.links import rows_of_links
from graphrag_mcp.text import places
from graphrag_mcp.text.prose import searched
from graphrag_mcp.text.spans import Span, Unit
from graphrag_mcp.text.terms import content_id, entity_id, normalise_name, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.text.uris import LICENCE, is_note
from graphrag_mcp.trust.fencing import masked

if TYPE_CHECKING:
    from graphrag_mcp.index.imported import DocumentRecord

Row = dict[str, Any]


@dataclass(frozen=True)
class Before:
    """What the previous generation held of a document (empty for a new one)."""

    n: int = 0
    units: Mapping[str, int] = field(default_factory=dict)  # id -> n
    passages: Mapping[str, Sequence[str]] = field(default_factory=dict)  # id -> entity_ids
    # units to be read again although their text is the same
    redo: Collection[str] = frozenset()


@dataclass(slots=True)
class DocumentRows:
    """What follows from a document and the parameters alone. `n` of each row is 0 until `assign_numbers`."""

    document: Row
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    # of further tables: places, links and tags of its Markdown, and those of plug-ins
    more: dict[str, list[Row]] = field(default_factory=dict)
    fresh: dict[str, UnitNames] = field(default_factory=dict)  # units to merge into the graph
    kept: set[str] = field(default_factory=set)  # units whose names are already there
    plugin: str = ""  # the plug-in that read it
    note: bool = False  # in no graph and no topic: it stands beside its sources

    @property
    def tables(self) -> dict[str, list[Row]]:
        named = {"documents": [self.document], "text_units": self.units, "passages": self.passages}
        return {**named, **self.more}


def derive(
    document: Document,
    params: ChunkParams,
    before: Before | None = None,
    imported: DocumentRecord | None = None,
    check: Callable[[], object] = lambda: None,
) -> DocumentRows:
    """`imported`: what an import says of the document; then units and names are those, and nothing is
    extracted. `check` may raise to stop early."""
    before, text = before or Before(), document.text
    outline = None if imported else plugins.outline(document.uri, text)
    if imported:
        cuts = imported.cut(text, params)
    else:
        cuts = [(unit, None) for unit in units_of(document, params, outline)]
    row = row_of(document)
    note = imported is None and is_note(document.uri, document.metadata)
    rows = DocumentRows(row, plugin=outline.by if outline else "", note=note)
    rows.more["links"] = rows_of_links(row["id"], document.uri, text, document.links)
    rows.more["places"] = found = list[Row]()
    extractor: Extractor = RuleExtractor()
    if outline:
        extractor = plugin.plugins()[outline.by].extractor(outline)
    name_of, table = unit_ids(document.uri), _Passages(document, row["id"], outline)
    for unit, record in cuts:
        check()
        start = unit.span.start
        unit_text = text[start : unit.span.end]
        id = name_of(unit, unit_text)
        numbered = {"id": id, "n": 0, "document_id": row["id"], "chunk_index": unit.index}
        rows.units.append(numbered | _place(unit.span) | {"n_tokens": unit.n_tokens, "text": unit_text})
        parts = [(str(part.start - start), str(part.end - start)) for part in unit.passages]
        passages = [content_id("passage", id, *part) for part in parts]
        # What a plug-in reads depends on what stands in other units.
        known = id in before.units and id not in before.redo and outline is None
        if note or document.metadata.get(LICENCE):  # neither is what its folder is about
            rows.fresh[id], named = UnitNames(id, unit_text, []), [[] for _ in passages]
        elif known and all(passage in before.passages for passage in passages):
            rows.kept.add(id)
            named = [before.passages[passage] for passage in passages]
        else:
            unit_text = masked(unit_text)  # a key in a text is no name, and stands in no evidence
            reader = imported.extractor(record) if imported else extractor
            names, mentions = reader.extract(unit, id, unit_text)
            rows.fresh[id] = names
            named = ids_of_names(unit, names, mentions)
        rows.passages += table.rows(unit, id, passages, named, len(rows.passages))
        found += _places(document, row["id"], id, unit, passages)
    if cuts and imported is None and not note:
        units = {unit_row["id"]: unit for unit_row, (unit, _) in zip(rows.units, cuts, strict=True)}
        for name, plug_in in plugin.plugins().items():
            read = outline if rows.plugin == name else None
            if (facts := plug_in.facts(document.uri, text, read, units)) is not None:
                known_as = {"id": row["id"], "uri": document.uri}
                rows.more[name] = [{**known_as, "facts": facts, "links": plugin.UNLINKED}]
    return rows


def units_of(document: Document, params: ChunkParams, outline: plugins.Outline | None) -> list[Unit]:
    """The text units of a document that no import cut."""
    breaks = outline.breaks(document.text) if outline else None
    pages, headers = places.divisions(document.places), places.headers(document)
    return chunk(document.text, params, breaks, pages, headers)


def row_of(document: Document) -> Row:
    row = {name: getattr(document, name) for name in ("id", "uri", "title", "text", "created")}
    return row | {"n": 0, "metadata": metadata_json(document.metadata)}


def derive_item(item: tuple[Document | None, ChunkParams]) -> DocumentRows | None:
    """As an executor is given it."""
    document, params = item
    return derive(document, params) if document is not None else None


def unit_ids(uri: str) -> Callable[[Unit, str], str]:
    """Names the units of a document in their order: by their text, equal ones by their place."""
    seen: Counter[str] = Counter()

    def name(unit: Unit, text: str) -> str:
        same = content_id(uri, str(unit.passages[0].start - unit.span.start), text)
        seen[same] += 1
        return content_id("unit", same, str(seen[same] - 1))

    return name


def metadata_json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, ensure_ascii=False, sort_keys=True) if metadata else "{}"


def _places(document: Document, document_id: str, id: str, unit: Unit, passages: Sequence[str]) -> Iterator[Row]:
    """Where a unit and its passages stand, of a document whose places are known."""
    for of, span in zip((id, *passages), (unit.span, *unit.passages), strict=True):
        if found := places.part(document.places, document.text, span.start, span.end):
            yield {"id": of, "document_id": document_id, "places": places.write(found)}


def _place(span: Span) -> Row:
    lines = {"line_start": span.line_start, "line_end": span.line_end}
    return {"char_start": span.start, "char_end": span.end, **lines}


def ids_of_names(unit: Unit, names: UnitNames, mentions: Sequence[tuple[int, str]]) -> list[list[str]]:
    """The ids of the names of each passage of a unit."""
    if len(unit.passages) == 1:
        return [[entity_id(name.key) for name in names.named]]
    origin = unit.span.start
    by_passage = ([key for at, key in mentions if part.start <= at + origin < part.end] for part in unit.passages)
    return [list(dict.fromkeys(map(entity_id, keys))) for keys in by_passage]


class _Passages:
    """Rows of passages, with their tokens and the terms by which they are found: their own, those
    of the title, and those of the names that an outline defines there."""

    def __init__(self, document: Document, id: str, outline: plugins.Outline | None) -> None:
        self.document, self.document_id, self.outline = document, id, outline
        self.title_terms = terms(document.title)
        title_key = normalise_name(document.title)
        self.title_id = entity_id(title_key) if title_key else ""

    def rows(
        self, unit: Unit, unit_id: str, ids: Sequence[str], entity_ids: Sequence[Sequence[str]], position: int
    ) -> Iterator[Row]:
        document = self.document
        for part, (id, span) in enumerate(zip(ids, unit.passages, strict=True)):
            text = document.text[span.start : span.end]
            names = self.outline.names(span.start, span.end) if self.outline else []
            searchable = text if plugins.verbatim(document.uri) else searched(text)
            words = [*self.title_terms, *terms(" ".join(names)), *terms(searchable)]
            yield {
                "id": id,
                "n": 0,
                "part": part + 1,
                "parts": len(ids),
                "text_unit_id": unit_id,
                "document_id": self.document_id,
                "uri": document.uri,
                "title": document.title,
                "title_id": self.title_id,
                "position": position + part,
                **_place(span),
                "n_tokens": unit.n_tokens if span == unit.span else count_tokens(text),
                "text": text,
                "terms": " ".join(words),
                "n_terms": len(words),
                "entity_ids": list(entity_ids[part]),
            }


def assign_numbers(rows: DocumentRows, before: Before, numbers: dict[str, int]) -> None:
    """Give the rows their alias numbers: those from before, else the next free ones of "d" and "t"
    in `numbers`, which is advanced."""
    rows.document["n"] = before.n or numbers["d"]
    numbers["d"] += not before.n
    of_unit = dict(before.units)
    for row in rows.units:
        if row["id"] not in of_unit:
            of_unit[row["id"]], numbers["t"] = numbers["t"], numbers["t"] + 1
        row["n"] = of_unit[row["id"]]
    for row in rows.passages:
        row["n"] = of_unit[row["text_unit_id"]]
