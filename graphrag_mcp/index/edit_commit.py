"""The tables follow the log of edits: what an edit changes in the rows, and the generation that has it.

The same merge that reads documents works out what an edit does, so only what the names concerned touch is
read and written. An entity that an edit took away keeps the number behind its alias, should it come
back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.merge import Changed, Merge, merge
from graphrag_mcp.index.run import Run, commit_draft
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.diff import Plan
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.edit_log import APPLIED, LogRow, Overlay, fold
from graphrag_mcp.store.manifest import Manifest, now
from graphrag_mcp.store.tables import Change, Snapshot, rows_of, values_of

# manifest parameter: entity id -> the number behind its alias, of those that edits took away
NUMBERS = "numbers"
MOST_NUMBERS = 5_000
NEXT = "u"  # the kind of number that undo ids are made of
BY_INDEX = "index_documents"


def editing(folder: Path, manifest: Manifest | None) -> Run:
    """A run that reads no documents. Only the holder of the writer's lock may write with it."""
    return Run(folder, Settings(), manifest, lambda *_: None, lambda: False)


def catch_up(run: Run) -> None:
    """Let the tables follow the log: they are new, or what was removed is asked for."""
    manifest = run.manifest
    if manifest is None or manifest.parameters.get(APPLIED, 0) == len(run.edits.log):
        return
    numbers = dict(manifest.next)
    overlay, merged = merged_with(run.snapshot(), run.edits.log, manifest, numbers)
    write(run, manifest.segments, merged, numbers, len(overlay.log))


def lift(run: Run, plan: Plan) -> None:
    """What was removed and is asked for by name comes back; that is written down first."""
    uris = [*plan.asked, *sorted({edit.uri for edit in run.brought} & run.edits.removed.keys())]
    if uris and run.manifest is not None:
        run.edits = fold([*run.edits.log, of_documents(run, "restore", uris, BY_INDEX)])


def of_documents(run: Run, op: str, uris: Sequence[str], by: str) -> LogRow:
    """Write a row about documents, which moves no table by itself."""
    manifest, kind = run.committed, segment_store.EDITS
    numbers = dict(manifest.next)
    row = LogRow(next_id(numbers), op, "document", tuple(uris), tuple(uris), {}, by, now())
    segments = segment_store.appended(run.folder, manifest, kind, logs.to_table([row]))
    applied = manifest.parameters.get(APPLIED, 0)
    applied += applied == sum(segment["rows"] for segment in manifest.of_kind(kind))
    write(run, segments, Merge(), numbers, applied)
    return row


def next_id(numbers: dict[str, int]) -> str:
    number = numbers.get(NEXT, 1)
    numbers[NEXT] = number + 1
    return f"{NEXT}{number}"


def merged_with(
    snapshot: Snapshot | None, log: Sequence[LogRow], manifest: Manifest, numbers: dict[str, int]
) -> tuple[Overlay, Merge]:
    """The log folded, and what it does to the rows."""
    old, new = fold(log[: manifest.parameters.get(APPLIED, 0)]), fold(log)
    keys, pairs = logs.differing(old, new)
    if not keys:
        return new, Merge()
    merged = merge(snapshot, (), {}, numbers, new, Changed(keys, pairs))
    numbers_before = manifest.parameters.get(NUMBERS, {})
    change = merged.changes["entities"]
    rows = change.rows.to_pylist() if numbers_before and change.rows is not None else []
    back = [row for row in rows if row["id"] in numbers_before and row["id"] not in change.gone]
    for row in back:  # an entity that an undo brings back has its alias again
        row["n"] = numbers_before[row["id"]]
    if back:
        merged.changes["entities"] = replace(change, rows=graph_to_table("entities", rows))
    return new, merged


def write(run: Run, segments: Sequence[dict[str, Any]], merged: Merge, numbers: dict[str, int], applied: int) -> None:
    """Commit a generation with these segments and rows, which follow `applied` rows of the log."""
    manifest = run.committed
    run.parameters = {**manifest.parameters, APPLIED: applied}
    lost = dict(manifest.parameters.get(NUMBERS, {}))  # of entities that went by an edit
    if removed := vanished(merged.changes.get("entities", Change())):
        lost |= dict(rows_of(run.snapshot().by_key("entities", removed, "id", ["id", "n"])))
    if lost:
        run.parameters[NUMBERS] = dict(list(lost.items())[-MOST_NUMBERS:])
    if changes := {name: made for name, made in merged.changes.items() if _is_something(made)}:
        run.write(changes)
    moved = {"entities": merged.entities, "relationships": merged.relationships}
    commit_draft(run, manifest.sources, segments, numbers, moved)


def _is_something(change: Change) -> bool:
    return bool(change.gone) or (change.rows is not None and change.rows.num_rows > 0)


def moves_graph(merged: Merge) -> bool:
    changes = (merged.changes.get(name, Change()) for name in ("entities", "relationships"))
    return any(map(_is_something, changes))


def vanished(change: Change) -> list[str]:
    """Ids of rows that go and do not come again."""
    there = values_of(change.rows["id"]) if change.rows is not None else ()
    return sorted({*change.gone} - {*there})
