"""Whether texts are cut, and names found, by the parameters that the manifest names.

Takes a snapshot and how a document is cut by given parameters (that is the index workshop's, and handed in); gives
(kind, table, what) for rows that other parameters have made: an indexing with new settings that was stopped half way,
and then called with the old ones again. Every document is cut once more; names are looked up in a sample, as finding
them is most of the work of indexing. What was imported is cut as it came, and not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.store import truth
from graphrag_mcp.store.manifest import IN_PART
from graphrag_mcp.store.tables import Snapshot

Broken = tuple[str, str, str]
Row = dict[str, Any]
Spans = set[tuple[int, int]]
Cutter = Callable[[Mapping[str, Any], Mapping[str, Any], bool], "tuple[Spans, Spans, dict[str, set[str]]] | None"]
TEXTS = 200  # documents whose texts are in memory at once
SAMPLE = 20  # documents in which names are looked up
IMPORTED = "import:"  # begins the file of a document that came by an import
NAMED = ("chunk_size", "chunk_overlap", "chunk_mode", "passage_size", "extractor")


def cut_otherwise(snapshot: Snapshot, cut: Cutter) -> Iterator[Broken]:
    named = snapshot.manifest.parameters
    said = ", ".join(f"{name} {named[name]}" for name in NAMED if name in named)
    if named.get("derivation") == IN_PART:
        what = "an indexing with other settings was stopped half way, and only some documents are not as the manifest"
        yield "parameters", "text_units", f"{what} names it ({said})"
        return
    try:
        log = truth.live_documents(snapshot.folder, snapshot.manifest, ["uri", "id", "file"]).to_pylist()
    except GraphRAGError:  # a finding of its own
        return
    ids = sorted(row["id"] for row in log if not row["file"].startswith(IMPORTED))
    looked_into = set(ids[:: max(1, len(ids) // SAMPLE)])
    wrong: dict[str, list[str]] = {"text_units": [], "passages": [], "mentions": []}
    for start in range(0, len(ids), TEXTS):
        some = ids[start : start + TEXTS]
        there = {table: _spans(snapshot, table, some) for table in ("text_units", "passages")}
        for row in snapshot.by_key("documents", some, "id", ["id", "uri", "title", "text"]).to_pylist():
            found = cut(row, named, row["id"] in looked_into)
            if found is None:
                return
            other = [table for table, spans in zip(there, found, strict=False) if there[table].get(row["id"]) != spans]
            if not other and _other_names(snapshot, found[2]):
                other = ["mentions"]
            for table in other:
                wrong[table].append(row["uri"])
    for table, uris in wrong.items():
        if uris:
            what = "the names found in them are" if table == "mentions" else "they are cut"
            which = f"{len(uris)} documents ({uris[0]} first)"
            yield "parameters", table, f"{which}: {what} not as the manifest names it ({said})"


def _spans(snapshot: Snapshot, table: str, documents: list[str]) -> dict[str, Spans]:
    found: dict[str, Spans] = {}
    for row in snapshot.by_key(table, documents, "document_id", ["document_id", "char_start", "char_end"]).to_pylist():
        found.setdefault(row["document_id"], set()).add((row["char_start"], row["char_end"]))
    return found


def _other_names(snapshot: Snapshot, wanted: Mapping[str, set[str]]) -> bool:
    """Do text units hold other names than these? Not looked at where a model has read them."""
    held: dict[str, set[str]] = {unit: set() for unit in wanted}
    read = set()
    for row in snapshot.by_key("mentions", sorted(wanted), "text_unit_id", ["text_unit_id", "key", "by"]).to_pylist():
        held[row["text_unit_id"]].add(row["key"])
        read |= {row["text_unit_id"]} if row["by"] else set()
    return any(held[unit] != names for unit, names in wanted.items() if unit not in read)
