"""Edits as generations: the rows that change when the edit log says something new.

Takes the log, and how many of its rows the tables follow; gives a new manifest in which rows and log agree. Everything
of a call is visible at once, or nothing, and on disk when the call returns. Tables that were derived anew follow the
log before the first document goes in. Reads and writes only what the names concerned touch; knows no tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_mcp.index import commits
from graphrag_mcp.index.commits import Run
from graphrag_mcp.index.graph import Changed, Merge, merge, to_table
from graphrag_mcp.index.mentions import entity_id
from graphrag_mcp.index.model_units import pending
from graphrag_mcp.index.pairs import relationship_id
from graphrag_mcp.index.plan import Plan
from graphrag_mcp.index.vectors import forgotten
from graphrag_mcp.store import edits as logs
from graphrag_mcp.store import tables, truth
from graphrag_mcp.store.edits import APPLIED, LogRow, Overlay, differing, fold
from graphrag_mcp.store.manifest import Manifest, commit
from graphrag_mcp.store.tables import Change, Snapshot

TOUCHED = "touched"  # manifest parameter: {generation, ids}, entities that edits changed since the last reports
MOST_TOUCHED = 2_000  # beyond, the next indexing compares every report
NUMBERS = "numbers"  # manifest parameter: entity id -> the number behind its alias, of those that edits took away
MOST_NUMBERS = 5_000
NEXT = "u"  # the kind of number that undo ids are made of
BY_INDEX = "index_documents"


def begin(run: Run) -> None:
    """Read the log; go on with what edits have touched, where nothing else happened since the last reports."""
    run.edits = fold(logs.load(run.folder, run.manifest))
    if run.manifest is None:
        return
    touched = run.manifest.parameters.get(TOUCHED, {})
    if touched.get("generation") == run.manifest.generation:
        run.first_generation = run.manifest.communities_generation
        run.touched |= set(touched["ids"])


def catch_up(run: Run) -> None:
    """Let the tables follow the whole log: they were derived anew, or what was removed is asked for again."""
    manifest = run.manifest
    if manifest is None or manifest.parameters.get(APPLIED, 0) == len(run.edits.log):
        return
    numbers = dict(manifest.next)
    snapshot = run.snapshot()
    overlay, merged, told = merged_with(snapshot, run.edits.log, manifest, numbers, run.models.is_long)
    _go_on(run, written(run.folder, manifest, manifest.segments, merged, told, numbers, len(overlay.log)))
    run.touched |= merged.touched


def lift(run: Run, plan: Plan) -> None:
    """What was removed and is asked for by its own name is no longer removed; that is written down first."""
    uris = [*plan.asked, *sorted({edit.uri for edit in run.brought} & run.edits.removed.keys())]
    if not uris or run.manifest is None:
        return
    numbers = dict(run.manifest.next)
    row = LogRow(next_id(numbers), "restore", "document", tuple(uris), tuple(uris), {}, BY_INDEX, commits.now())
    segments = truth.appended(run.folder, run.manifest, truth.EDITS, logs.to_table([row]))
    run.edits = fold([*run.edits.log, row])
    applied = run.manifest.parameters.get(APPLIED, 0)
    applied += applied == len(run.edits.log) - 1  # a row about documents moves no table by itself
    _go_on(run, written(run.folder, run.manifest, segments, Merge(), set(), numbers, applied))


def _go_on(run: Run, manifest: Manifest) -> None:
    """What is known of all that was touched since the last reports stays known."""
    if run.first_generation == run.manifest.communities_generation:
        run.first_generation = manifest.communities_generation
    run.manifest = manifest


def next_id(numbers: dict[str, int]) -> str:
    number = numbers.get(NEXT, 1)
    numbers[NEXT] = number + 1
    return f"{NEXT}{number}"


def merged_with(
    snapshot: Snapshot | None, log: Sequence[LogRow], manifest: Manifest, numbers: dict[str, int],
    is_long: Callable[[Sequence[str]], bool] | None,
) -> tuple[Overlay, Merge, set[str]]:  # fmt: skip
    """What the log amounts to, what that does to the rows, and ids of rows whose description was given. No write."""
    old, new = fold(log[: manifest.parameters.get(APPLIED, 0)]), fold(log)
    keys, pairs = differing(old, new)
    if not keys:
        return new, Merge(), set()
    own = {one for one in keys if _said(old.entities, one) != _said(new.entities, one)}
    both = {one for one in pairs if _said(old.pairs, one) != _said(new.pairs, one)}
    merged = merge(snapshot, (), {}, numbers, is_long, new, Changed(keys, pairs, own | both))
    _number_as_before(merged, manifest.parameters.get(NUMBERS, {}))
    given = {entity_id(key) for key in own if _said(new.entities, key)}
    given |= {relationship_id(*sorted(map(entity_id, pair))) for pair in both if _said(new.pairs, pair)}
    return new, merged, given


def _number_as_before(merged: Merge, numbers: dict[str, int]) -> None:
    """An entity that an undo brings back has its alias again."""
    change = merged.changes["entities"]
    rows = change.rows.to_pylist() if change.rows is not None and numbers else []
    back = [row for row in rows if row["id"] in numbers and row["id"] not in change.gone]
    for row in back:
        row["n"] = numbers[row["id"]]
    if back:
        merged.changes["entities"] = replace(change, rows=to_table("entities", rows))


def _said(edits: dict[Any, Any], key: Any) -> Any:
    edit = edits.get(key)
    return edit.fields.get("description") if edit is not None else None


def written(
    folder: Path, manifest: Manifest, segments: Sequence[dict[str, Any]], merged: Merge, given: set[str],
    numbers: dict[str, int], applied: int,
) -> Manifest:  # fmt: skip
    """Commit a generation with these segments and rows. Only for the holder of the writer's lock."""
    changes = {name: change for name, change in merged.changes.items() if _counts(change)}
    if waiting := _pending(manifest, merged, given):
        changes["pending"] = waiting
    changes |= forgotten({**_NONE, **changes}, manifest.tables)
    versions = tables.apply(folder, manifest, changes) if changes else manifest.tables
    generation = manifest.generation + 1
    counters = Counter(manifest.counters)
    counters.update(entities=merged.entities, relationships=merged.relationships)
    parameters = _parameters(manifest, merged, applied)
    if lost := _lost(folder, manifest, changes.get("entities", Change())):
        parameters[NUMBERS] = lost
    settled = manifest.communities_generation == manifest.generation and not merged.touched
    new = replace(
        manifest, generation=generation, created=commits.now(), segments=list(segments), tables=dict(versions),
        counters=dict(counters), next=dict(numbers), parameters=parameters,
        stale=["communities"] if merged.touched or manifest.stale else [],
        communities_generation=generation if settled else manifest.communities_generation,
    )  # fmt: skip
    commit(folder, new)
    return new


_NONE = {"entities": Change(), "relationships": Change()}


def _counts(change: Change) -> bool:
    return bool(change.gone) or (change.rows is not None and change.rows.num_rows > 0)


def _parameters(manifest: Manifest, merged: Merge, applied: int) -> dict[str, Any]:
    """With the number of rows followed, and what was touched since the reports were made, where that is known."""
    parameters = {**manifest.parameters, APPLIED: applied}
    before = parameters.pop(TOUCHED, {})
    known = before.get("generation") == manifest.generation
    ids = {*(before["ids"] if known else ()), *merged.touched}
    complete = known or manifest.communities_generation == manifest.generation
    if ids and complete and len(ids) <= MOST_TOUCHED:
        parameters[TOUCHED] = {"generation": manifest.generation + 1, "ids": sorted(ids)}
    return parameters


def _lost(folder: Path, manifest: Manifest, change: Change) -> dict[str, int]:
    """The numbers of entities that went by an edit, now and before."""
    there = set(change.rows["id"].to_pylist()) if change.rows is not None else set()
    gone = sorted(set(change.gone) - there)
    numbers = dict(manifest.parameters.get(NUMBERS, {}))
    if gone:
        rows = Snapshot(folder, manifest).by_key("entities", gone, "id", ["id", "n"])
        numbers |= dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))
    return dict(list(numbers.items())[-MOST_NUMBERS:])


def _pending(manifest: Manifest, merged: Merge, given: set[str]) -> Change | None:
    """Nobody is asked any more to describe what is gone or has its description; whoever lost one is asked for."""
    rows = [pending(kind, id, "", "not yet asked") for id, (kind, _) in sorted(merged.long.items())]
    if "pending" not in manifest.tables:
        return Change((), to_table("pending", rows)) if rows else None
    gone = {row["id"] for row in rows}
    for table, kind in (("entities", "entity"), ("relationships", "relationship")):
        change = merged.changes.get(table, Change())
        there = set(change.rows["id"].to_pylist()) if change.rows is not None else set()
        gone |= {f"{kind}:{id}" for id in {*(set(change.gone) - there), *given}}
    return Change(sorted(gone), to_table("pending", rows)) if gone else None
