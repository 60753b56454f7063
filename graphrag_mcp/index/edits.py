"""Editing the graph by hand: one change checked, tried or made, and said in plain words.

Takes what to do with which names (already resolved to the entities that hold them) and who does it; gives an
`EditResult`: what changes, and the id by which it is undone. A change is a row of the edit log, which outlives every
re-indexing; what it does to the tables is worked out by the same merge that reads documents. Knows no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import apply_edits, edit_checks
from graphrag_mcp.index.describe import needs_summary
from graphrag_mcp.index.edit_checks import Target
from graphrag_mcp.index.graph import Merge
from graphrag_mcp.index.models import with_tuned
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import edits as logs
from graphrag_mcp.store import truth
from graphrag_mcp.store.edits import LogRow, fold
from graphrag_mcp.store.manifest import FORMAT, Manifest, read, writer_lock
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import EditResult

LOCK_SECONDS = 20.0  # how long an edit waits for an indexing; hosts wait 50
NAMED = 8  # names that a sentence lists


@dataclass(frozen=True)
class Wish:
    """`op` of store/edits.py; `targets` entities, relationships, or of an undo its id; `fields` new values."""

    op: str
    targets: Sequence[Target]
    fields: Mapping[str, Any]
    by: str


def edit(folder: Path, settings: Settings, wish: Wish, dry_run: bool = True) -> EditResult:
    """Make the change durable and visible, or say what it would be. Raises BadInput, NotFound, Busy, Damaged."""
    return _change(folder, settings, dry_run, lambda snapshot, log, id: edit_checks.rows(snapshot, log, wish, id))


def replay(folder: Path, settings: Settings, log: Sequence[LogRow]) -> EditResult:
    """Put the edits of another index after those that are here; the rows keep their ids, makers and times."""
    known = {row.id for row in logs.load(folder, read(folder))}
    if twice := sorted({row.id for row in log} & known):
        raise BadInput(
            f"this index has edits called {', '.join(twice[:5])} already", "Replay into an index without any"
        )
    return _change(folder, settings, False, lambda *_: list(log))


Make = Callable[[Snapshot, Sequence[LogRow], str], list[LogRow]]


def _change(folder: Path, settings: Settings, dry_run: bool, make: Make) -> EditResult:
    with nullcontext() if dry_run else writer_lock(folder, LOCK_SECONDS):
        manifest = ready(read(folder), folder)
        snapshot = open_snapshot(folder, manifest)
        log = logs.load(folder, manifest)
        numbers = dict(manifest.next)
        id = apply_edits.next_id(numbers)
        rows = make(snapshot, log, id)
        if not rows:
            return EditResult(dry_run=dry_run, text="Nothing changes: the graph says that already.")
        if any(row.id != id for row in rows):  # replayed: no number is given twice
            last = max((int(row.id[1:]) for row in rows if row.id[1:].isdigit()), default=0)
            numbers[apply_edits.NEXT] = max(numbers[apply_edits.NEXT] - 1, last + 1)
        every = [*log, *rows]
        is_long = _is_long(settings, manifest, folder)
        overlay, merged, given = apply_edits.merged_with(snapshot, every, manifest, numbers, is_long)
        result = EditResult(op=rows[-1].op, dry_run=dry_run, undo_id="" if dry_run else rows[-1].id)
        _say(result, rows, overlay, snapshot, merged)
        if not dry_run:
            segments = truth.appended(folder, manifest, truth.EDITS, logs.to_table(rows))
            apply_edits.written(folder, manifest, segments, merged, given, numbers, len(every))
        return result


def ready(manifest: Manifest | None, folder: Path) -> Manifest:
    """Raises NotFound without an index, BadInput for rows whose names this release might take for others."""
    if manifest is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    if manifest.format != FORMAT or manifest.of_another_release():
        raise BadInput("this index was made by an earlier release", "Call index_documents once, then edit")
    return manifest


def _is_long(settings: Settings, manifest: Manifest, folder: Path) -> Callable[[Sequence[str]], bool] | None:
    """Which descriptions a model is to join, in an index in which one does."""
    if not manifest.parameters.get("descriptions"):
        return None
    tuned = with_tuned(settings, folder)
    return lambda fragments: needs_summary(fragments, tuned)


# ---- saying it -----------------------------------------------------------------------------------


def _say(
    result: EditResult, rows: Sequence[LogRow], overlay: logs.Overlay, snapshot: Snapshot, merged: Merge
) -> None:  # fmt: skip
    lines = [edit_checks.sentence(row, overlay) for row in rows[-5:]]
    for table in ("entities", "relationships"):
        lines += _moved(result, table, snapshot, merged)
    if not merged.touched:
        lines.append(_dormant(rows, overlay))
    head = "Dry run, nothing is changed. " if result.dry_run else ""
    result.text = head + "\n".join(filter(None, lines))


def _moved(result: EditResult, table: str, snapshot: Snapshot, merged: Merge) -> list[str]:
    """How many rows come, change and go, and the names of entities that do."""
    change = merged.changes.get(table)
    if change is None:
        return []
    after = {row["id"]: row for row in change.rows.to_pylist()} if change.rows is not None else {}
    gone = set(change.gone)
    parts = {"added": after.keys() - gone, "changed": after.keys() & gone, "removed": gone - after.keys()}
    result.changes |= {f"{table}_{how}": len(ids) for how, ids in parts.items() if ids}
    lines = []
    for how, ids in parts.items():
        if not ids:
            continue
        named = ""
        if table == "entities":
            lost = sorted(ids - after.keys())
            old = {row["id"]: row for row in snapshot.by_key(table, lost, "id", ["id", "n", "title"]).to_pylist()}
            shown = sorted(({**old, **after}[id] for id in ids), key=lambda row: row["n"])
            result.ids += [f"e{row['n']}" for row in shown if row["id"] in after][:NAMED]
            more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
            named = ": " + ", ".join(f"{_line(row['title'])} (e{row['n']})" for row in shown[:NAMED]) + more
        one = {"entities": "entity", "relationships": "relationship"}[table]
        lines.append(f"- {len(ids)} {one if len(ids) == 1 else table} {how}{named}")
    return lines


def _line(text: str) -> str:
    return " ".join(text.split())[:80]


def _dormant(rows: Sequence[LogRow], overlay: logs.Overlay) -> str:
    """Why a change moves no row now."""
    if rows[-1].op in ("reject", "remove", "restore"):
        return ""
    what = fold([row for row in overlay.log if row.id == rows[-1].keys[0]]) if rows[-1].op == "undo" else overlay
    if what.removed:
        return "What was removed comes back with the next index_documents of its folder."
    return "No row changes now: it lies dormant until documents name what it speaks of."
