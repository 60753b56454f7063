"""The graph of rules follows the names and types of summaries, in the commit of these.

The names of a text unit are what rules find in it and what the summaries of its document name
(`extract/summarised.py`), whichever came first. When the summaries of a document change,
rules read its units again, and the units whose names changed are merged."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from graphrag_mcp import plugins
from graphrag_mcp.index.derive import ids_of_names
from graphrag_mcp.index.extract import SUMMARY, Named, UnitNames
from graphrag_mcp.index.extract.rules import RuleExtractor
from graphrag_mcp.index.graph import graph_to_table, mentions_from_table
from graphrag_mcp.index.imported import PREFIX
from graphrag_mcp.index.merge import merge
from graphrag_mcp.index.run import Run
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import Change, Snapshot, rows_of, values_of
from graphrag_mcp.text.spans import Span, Unit
from graphrag_mcp.text.terms import lists_of, normalise_name
from graphrag_mcp.text.uris import LICENCE
from graphrag_mcp.trust.fencing import masked

Row = dict[str, Any]
DOCUMENTS = 500  # merged at once, so that the memory is bounded by them


def names_of(summaries: Iterable[Row]) -> dict[str, dict[str, str]]:
    """By document the names that its summaries have, each with the type that most of them give, an
    empty one only where none gives another; not those that the text does not have."""
    names: dict[str, set[str]] = {}
    # by document and key: `Acme` and `ACME` have one key
    types: dict[tuple[str, str], Counter[str]] = {}
    for row in summaries:
        document = row["document_id"]
        for name, kind in zip(row["names"], row["types"], strict=True):
            if name not in row["unsupported"]:
                names.setdefault(document, set()).add(name)
                types.setdefault((document, normalise_name(name)), Counter())[kind] += 1
    most = {key: min(count, key=lambda kind: (not kind, -count[kind], kind)) for key, count in types.items()}
    return {
        document: {name: most[document, normalise_name(name)] for name in sorted(found)}
        for document, found in names.items()
    }


def correct(
    run: Run, documents: Sequence[str], names: Mapping[str, dict[str, str]], numbers: dict[str, int]
) -> Counter[str]:
    """Write the names of these documents, whose summaries may have others than before (`names`), into
    the draft; how the counters change. What is no prose that rules read is left as it is."""
    counters = Counter[str]()
    left_out = _read_otherwise(run)
    documents = [id for id in documents if id not in left_out]
    linked = _linked(run.draft_snapshot()) if documents else set()
    for start in range(0, len(documents), DOCUMENTS):
        run.check()
        snapshot, part = run.draft_snapshot(), documents[start : start + DOCUMENTS]
        fresh, passages = _corrected(snapshot, part, names, linked)
        if not fresh and not passages:
            continue
        merged = merge(snapshot, fresh, fresh, numbers, edits=run.edits)
        run.capped |= merged.capped
        counters.update(entities=merged.entities, relationships=merged.relationships)
        rows = graph_to_table("passages", passages)
        merged.changes["passages"] = Change([row["id"] for row in passages], rows)
        run.write(merged.changes, keeps_vectors=["passages"])
    return counters


def _read_otherwise(run: Run) -> set[str]:
    """Documents of plug-ins and imports, and texts of licences, which hold no names."""
    snapshot = run.snapshot()
    imported = set[str]()
    if run.imports is not None:
        live = rows_of(live_documents(run.folder, run.committed, ["id", "file"]))
        imported = {id for id, file in live if file.startswith(PREFIX)}
    rows = rows_of(snapshot.rows("documents", columns=["id", "uri", "metadata"]))
    return imported | {
        id
        for id, uri, metadata in rows
        if plugins.verbatim(uri) or (LICENCE in metadata and json.loads(metadata).get(LICENCE))
    }


def _corrected(
    snapshot: Snapshot, documents: Sequence[str], names: Mapping[str, dict[str, str]], linked: Set[str]
) -> tuple[dict[str, UnitNames], list[Row]]:
    """The text units of these documents whose names are others now, and such passages. The names of
    `linked` stay."""
    columns = ["id", "document_id", "char_start", "text"]
    units = snapshot.by_key("text_units", documents, "document_id", columns).to_pylist()
    ids = [row["id"] for row in units]
    before = lists_of(
        (row.text_unit_id, row)
        for row in mentions_from_table(snapshot.by_key("mentions", ids, "text_unit_id", TABLES["mentions"].names))
    )
    table = snapshot.by_key("passages", documents, "document_id", TABLES["passages"].names)
    parts_of = lists_of((row["text_unit_id"], row) for row in table.to_pylist())
    fresh: dict[str, UnitNames] = {}
    passages: list[Row] = []
    for row in units:
        id, named = row["id"], before.get(row["id"], [])
        if any(name.stated for name in named):
            continue
        known = names.get(row["document_id"], {}) if id not in linked else {}
        parts = sorted(parts_of[id], key=lambda part: part["part"])
        spans = tuple(Span(part["char_start"], part["char_end"]) for part in parts)
        unit = Unit(0, Span(row["char_start"], row["char_start"] + len(row["text"])), 0, spans)
        found, places = RuleExtractor(known).extract(unit, id, masked(row["text"]))
        if id not in linked and _sorted(found.named) != _sorted(named):
            fresh[id] = found
        for part, entity_ids in zip(parts, ids_of_names(unit, found, places), strict=True):
            if part["entity_ids"] != entity_ids:
                passages.append(part | {"entity_ids": entity_ids})
    return fresh, passages


def _sorted(named: Iterable[Named]) -> list[str]:
    return sorted(map(repr, named))


def _linked(snapshot: Snapshot) -> set[str]:
    """Text units whose names a plug-in linked with its own: these stay."""
    found: set[str] = set()
    for name in plugins.PLUGGED.keys() & snapshot.manifest.tables.keys():
        for links in values_of(snapshot.rows(name, columns=["links"])["links"]):
            found.update(unit for unit, digest in json.loads(links).items() if digest)
    return found


def corrected_documents(snapshot: Snapshot) -> set[str]:
    """Documents with text units whose names summaries corrected."""
    rows = snapshot.rows("mentions", f"by = '{SUMMARY}'", ["text_unit_id"])
    units = sorted({*values_of(rows["text_unit_id"])})
    return {*values_of(snapshot.by_key("text_units", units, "id", ["document_id"])["document_id"])}
