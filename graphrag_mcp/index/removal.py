"""Removing documents by hand: which ones are meant, what goes with them, and writing down that they stay out.

Takes ids as agents write them (d12, full ids, uris, file names, ids of inline texts); gives what would go, or a row of
the edit log by which these documents stay out of the index, whatever folder they lie in, until they are asked for by
name. The rows themselves go with the indexing that follows, or with any later one. Knows no tool.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import apply_edits, commits
from graphrag_mcp.index.graph import Merge, merge
from graphrag_mcp.store import edits as logs
from graphrag_mcp.store import truth
from graphrag_mcp.store.edits import APPLIED, LogRow
from graphrag_mcp.store.manifest import read, writer_lock
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.store.truth import live_documents

LOCK_SECONDS = 20.0
NEAR = 3  # nearest uris for an unknown id
Row = dict[str, Any]


@dataclass
class Chosen:
    """`uris` as they are written down: of a file with many rows the file's own, when all of it is meant."""

    documents: dict[str, Row] = field(default_factory=dict)  # uri -> {uri, id, file, n}
    uris: list[str] = field(default_factory=list)
    unknown: dict[str, list[str]] = field(default_factory=dict)  # what was asked for -> nearest uris


def choose(folder: Path, ids: Sequence[str]) -> Chosen:
    """The documents that the ids name. Raises BadInput when none was given, NotFound when there is no index."""
    manifest = read(folder)
    if manifest is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    wanted = [one for one in dict.fromkeys(str(id).strip().strip("[]()`'\" ") for id in ids) if one]
    if not wanted:
        advice = 'Give ids=["d4"], a uri or a file name; a whole corpus is deleted by graphrag-mcp delete CORPUS'
        raise BadInput("no documents are named", advice)
    live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    files: dict[str, list[str]] = {}
    for uri, row in live.items():
        files.setdefault(row["file"], []).append(uri)
    chosen = Chosen()
    for one in wanted:
        found = _named(one, live, files)
        if not found:
            names = [*live, *(name.rpartition("/")[2] for name in live)]
            near = difflib.get_close_matches(one, names, NEAR, 0.5)
            chosen.unknown[one] = sorted({next((uri for uri in live if uri.endswith(name)), name) for name in near})
        for uri in found:
            chosen.uris.append(uri)
            chosen.documents |= {each: live[each] for each in files.get(uri, [uri])}
    chosen.uris = list(dict.fromkeys(chosen.uris))
    return chosen


def _named(asked: str, live: Mapping[str, Row], files: Mapping[str, Sequence[str]]) -> list[str]:
    """Uris of documents, or of whole files, that one id means: several when a file name is not the only one."""
    if match := re.fullmatch(r"d(\d{1,12})", asked, re.IGNORECASE):
        return [uri for uri, row in live.items() if row["n"] == int(match[1])]
    if re.fullmatch(r"[0-9a-f]{32}", asked):
        return [uri for uri, row in live.items() if row["id"] == asked]
    for uri in (asked, f"text:{asked}"):
        if uri in files or uri in live:
            return [uri]
    return sorted(file for file in files if file.endswith(f"/{asked}"))


@dataclass
class Loss:
    """What goes with documents."""

    documents: int
    text_units: int
    passages: int
    entities: int
    relationships: int
    names: list[str]  # of entities that vanish, the most named first

    def counts(self) -> dict[str, int]:
        kinds = ("documents", "text_units", "passages", "entities", "relationships")
        return {kind: getattr(self, kind) for kind in kinds}


def loss(folder: Path, chosen: Chosen, names: int = 8) -> Loss:
    """What would go: worked out by the merge that would do it, and nothing is written."""
    snapshot = open_snapshot(folder)
    ids = sorted(row["id"] for row in chosen.documents.values())
    units = snapshot.by_key("text_units", ids, "document_id", ["id"])["id"].to_pylist()
    passages = snapshot.by_key("passages", ids, "document_id", ["id"]).num_rows
    merged = (
        merge(snapshot, units, {}, dict(snapshot.manifest.next), edits=logs.in_force(snapshot)) if units else Merge()
    )
    gone = _vanished(snapshot, merged, "entities")
    lost = snapshot.by_key("entities", gone, "id", ["title", "frequency", "n"]).to_pylist()
    lost.sort(key=lambda row: (-row["frequency"], row["n"]))
    relationships = len(_vanished(snapshot, merged, "relationships"))
    shown = [f"{row['title']} (e{row['n']})" for row in lost[:names]]
    return Loss(len(ids), len(units), passages, len(gone), relationships, shown)


def _vanished(snapshot: Snapshot, merged: Merge, table: str) -> list[str]:
    change = merged.changes.get(table)
    if change is None:
        return []
    return sorted(set(change.gone) - set(change.rows["id"].to_pylist() if change.rows is not None else ()))


def write_down(folder: Path, chosen: Chosen, by: str) -> str:
    """From now on these documents stay out, durably; gives the id of the undo. Any indexing takes their rows away."""
    with writer_lock(folder, LOCK_SECONDS):
        manifest = read(folder)
        assert manifest is not None
        numbers = dict(manifest.next)
        id = apply_edits.next_id(numbers)
        row = LogRow(id, "remove", "document", tuple(chosen.uris), tuple(chosen.uris), {}, by, commits.now())
        segments = truth.appended(folder, manifest, truth.EDITS, logs.to_table([row]))
        applied = manifest.parameters.get(APPLIED, 0)
        follows = applied == sum(one["rows"] for one in manifest.segments if one["kind"] == truth.EDITS)
        apply_edits.written(folder, manifest, segments, Merge(), set(), numbers, applied + 1 if follows else applied)
        return id
