"""Documents taken out by hand: which ones ids name, what would go with them, and the row of the log that
keeps them out until they are asked for by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.edit_commit import editing, of_documents, vanished
from graphrag_mcp.index.edits import LOCK_SECONDS
from graphrag_mcp.index.merge import Merge, merge
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.manifest import current, writer_lock
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import Change, open_snapshot, values_of
from graphrag_mcp.text.terms import lists_of

Row = dict[str, Any]
NAMED = 8  # entities that would vanish and are named
NEAR = 3  # nearest uris for an unknown id


@dataclass
class Chosen:
    """`uris` as they are written down: of a file with many rows its own, if all is meant."""

    documents: dict[str, Row] = field(default_factory=dict)  # uri -> {uri, id, file, n}
    uris: list[str] = field(default_factory=list)
    # what was asked for -> nearest uris
    unknown: dict[str, list[str]] = field(default_factory=dict)


def choose(folder: Path, ids: Sequence[str]) -> Chosen:
    """The documents that ids name. Raises BadInput for none, NotFound without an index."""
    manifest = current(folder)
    references = [
        reference for reference in dict.fromkeys(str(id).strip().strip("[]()`'\" ") for id in ids) if reference
    ]
    if not references:
        advice = 'Give ids=["d4"], a uri or a file name; a whole corpus is deleted by graphrag-mcp delete CORPUS'
        raise BadInput("no documents are named", advice)
    live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    files = lists_of((row["file"], uri) for uri, row in live.items())
    chosen = Chosen()
    for reference in references:
        found = _named(reference, live, files)
        if not found:
            names = [*live, *(name.rpartition("/")[2] for name in live)]
            near = difflib.get_close_matches(reference, names, NEAR, 0.5)
            uris = {next((uri for uri in live if uri.endswith(name)), name) for name in near}
            chosen.unknown[reference] = sorted(uris)
        for uri in found:
            chosen.uris.append(uri)
            chosen.documents |= {each: live[each] for each in files.get(uri, [uri])}
    chosen.uris = list(dict.fromkeys(chosen.uris))
    return chosen


def _named(asked: str, live: Mapping[str, Row], files: Mapping[str, Sequence[str]]) -> list[str]:
    """Uris of documents or files that an id means: several where a file name is not unique."""
    if match := re.fullmatch(r"d(\d{1,12})", asked, re.IGNORECASE):
        return [uri for uri, row in live.items() if row["n"] == int(match[1])]
    if re.fullmatch(r"[0-9a-f]{32}", asked):
        return [uri for uri, row in live.items() if row["id"] == asked]
    for uri in (asked, f"text:{asked}"):
        if uri in files or uri in live:
            return [uri]
    return sorted(file for file in files if file.endswith(f"/{asked}"))


def loss(folder: Path, chosen: Chosen) -> tuple[dict[str, int], list[str]]:
    """What would go: rows by table, and names of the entities among them, the most named first.
    Worked out by the merge that would do it, and nothing is written."""
    snapshot = open_snapshot(folder, keep=False)
    ids = sorted(row["id"] for row in chosen.documents.values())
    units = values_of(snapshot.by_key("text_units", ids, "document_id", ["id"])["id"])
    passages = snapshot.by_key("passages", ids, "document_id", ["id"]).num_rows
    merged = Merge()
    if units:
        numbers = dict(snapshot.manifest.next)
        merged = merge(snapshot, units, {}, numbers, edits=logs.in_force(snapshot))
    removed = vanished(merged.changes.get("entities", Change()))
    lost = snapshot.served("entities", removed, ["title", "frequency", "n"])
    lost.sort(key=lambda row: (-row["frequency"], row["n"]))
    relationships = len(vanished(merged.changes.get("relationships", Change())))
    counts = {"documents": len(ids), "text_units": len(units), "passages": passages}
    counts |= {"entities": len(removed), "relationships": relationships}
    return counts, [f"{row['title']} (e{row['n']})" for row in lost[:NAMED]]


def write_down(folder: Path, chosen: Chosen, by: str) -> str:
    """Keep these documents out, durably; the id of the undo. Indexing takes their rows away."""
    with writer_lock(folder, LOCK_SECONDS):
        return of_documents(editing(folder, current(folder)), "remove", chosen.uris, by).id
