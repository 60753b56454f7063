"""Doctor: looks at everything on disk and says what is wrong, and what would repair it.

Takes a corpus folder; gives findings, none for a sound index. First the files (manifest, truth segments, tables at
their versions), then, where all tables open, what their rows promise each other (upkeep/consistency.py). Repairs
by itself only what loses nothing: the manifest from its kept copy, files that no generation names. Tables are
derived, so they are repaired by deriving them again; that needs the index workshop, which is handed in.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.compute as pc

from graphrag_mcp.errors import Damaged, GraphRAGError, NewerFormat, NotFound
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import truth
from graphrag_mcp.store.checks import check_values
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.upkeep.consistency import inconsistencies

LOCK_SECONDS = 30.0
SHOWN = 10  # findings of one kind and place; the rest is counted
DERIVE = "Run graphrag-mcp doctor --repair: the tables are derived again from the stored originals"
RESTORE = "Restore the file from a backup, or index the folders anew into a new corpus"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `repair` is the next move; `repaired` says that it has been done."""

    kind: str  # manifest, truth, orphan, table, row, or the name of a broken promise between rows
    where: str
    what: str
    repair: str
    repaired: bool = False


def doctor(folder: Path, repair: bool = False, rebuild: Callable[[Path], object] | None = None) -> list[Finding]:
    """Everything that is wrong with the index in `folder`; with `repair`, what could be repaired has been.

    `rebuild(folder)` must derive all tables from the truth and take the writer's lock itself. It is called after a
    generation was committed that names no tables, and only when the truth is whole: readers find nothing until it
    is done, and if it fails the next index call derives everything. Raises NotFound when there is no index, Busy
    when another process holds the lock (repair only), NewerFormat.
    """
    if not repair:
        return _examined(folder)
    with manifests.writer_lock(folder, LOCK_SECONDS):
        before = _examined(folder)
        _repair_files(folder)
        left = _examined(folder)
        derivable = [finding for finding in left if finding.repair == DERIVE]
        whole = not any(finding.kind == "truth" for finding in left)
        if derivable and whole and rebuild is not None:
            _forget_tables(folder)
    if derivable and whole and rebuild is not None:
        rebuild(folder)
        with manifests.writer_lock(folder, LOCK_SECONDS):
            _repair_files(folder)  # what the forgotten generation had
            left = _examined(folder)
    still = {(finding.kind, finding.where, finding.what) for finding in left}
    done = [replace(found, repaired=True) for found in before if (found.kind, found.where, found.what) not in still]
    return [*done, *left]


def _examined(folder: Path) -> list[Finding]:
    try:
        manifest = manifests.read(folder)
    except Damaged as error:
        return [Finding("manifest", "manifest.json", error.what, RESTORE)]
    if manifest is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    found = [*_manifest(folder), *_truth(folder, manifest), *_orphans(folder)]
    snapshot = open_snapshot(folder, manifest)
    broken = list(_tables(snapshot))
    found += broken
    if not any(finding.kind == "table" for finding in broken):
        try:
            found += [Finding(kind, where, what, DERIVE) for kind, where, what in inconsistencies(snapshot)]
        except GraphRAGError as error:  # rows can be read, an index cannot
            found.append(Finding("table", "indexes", error.what, DERIVE))
    return _shortened(found)


def _manifest(folder: Path) -> Iterator[Finding]:
    advice = "Run graphrag-mcp doctor --repair: it is written again from the newest whole generation"
    for path in [folder / "manifest.json", *sorted((folder / "generations").glob("*.json"))]:
        try:
            manifests.parse(path.read_bytes(), path.name)
        except FileNotFoundError:
            yield Finding("manifest", path.name, f"{path.name} is missing", advice)
        except (Damaged, NewerFormat) as error:
            yield Finding("manifest", path.name, error.what, advice)


def _truth(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    for problem in truth.verify(folder, manifest):
        where, _, what = problem.partition(": ")
        yield Finding("truth", where, what, RESTORE)


def _orphans(folder: Path) -> Iterator[Finding]:
    for path, what in _orphaned(folder):
        where = path.relative_to(folder).as_posix()
        yield Finding("orphan", where, what, "Run graphrag-mcp doctor --repair: it is removed")


def _orphaned(folder: Path) -> list[tuple[Path, str]]:
    """Files that no kept generation names: left by a crash, or by generations that have been forgotten."""
    current = manifests.read(folder)
    kept = [*([current] if current else []), *manifests.generations(folder)]
    segments = {segment["file"] for manifest in kept for segment in manifest.segments}
    named = {f"{name}.lance" for manifest in kept for name in manifest.tables}
    found = [
        (path, "a truth segment that no generation names" if path.suffix == ".parquet" else "left by a crash")
        for path in sorted((folder / "truth").glob("*"))
        if path.name not in segments
    ]
    temporary = sorted([*folder.glob(".*.tmp"), *folder.glob("generations/.*.tmp")])
    found += [(path, "left by a crash") for path in temporary]
    found += [
        (path, "a table that no generation names")
        for path in sorted((folder / "tables").glob("*.lance"))
        if path.name not in named
    ]
    return found


def _tables(snapshot: Snapshot) -> Iterator[Finding]:
    """Every table is read whole, once, in batches: that it opens, and that rows match their check values."""
    for name in TABLES:
        wanted = snapshot.manifest.counters.get(name)
        try:
            count = snapshot.count(name)
            for rows in snapshot.batches(name):
                if "check" in rows.column_names:
                    wrong = pc.not_equal(rows["check"], check_values(rows))
                    for id in rows.filter(wrong)["id"].to_pylist():
                        yield Finding("row", name, f"row {id} does not match its check value", DERIVE)
        except GraphRAGError as error:
            yield Finding("table", name, error.what, DERIVE)
            continue
        if wanted is not None and wanted != count:
            yield Finding("count", name, f"{count} rows, the manifest counts {wanted}", DERIVE)


def _repair_files(folder: Path) -> None:
    """What loses nothing: manifest and copies made equal, copies that cannot be read and orphans removed."""
    try:
        manifest = manifests.read(folder)
    except Damaged:
        return
    for path in (folder / "generations").glob("*.json"):
        try:
            manifests.parse(path.read_bytes(), path.name)
        except Damaged:
            path.unlink()
    if manifest is not None:
        manifests.commit(folder, manifest)
    for path, _ in _orphaned(folder):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _forget_tables(folder: Path) -> None:
    """A generation without tables: whoever indexes next derives everything from the truth. Numbers are not reused."""
    manifest = manifests.read(folder)
    assert manifest is not None
    # Deriving replaces each document of the log, so these count as there; all other counters start again.
    counters = {"documents": truth.live_documents(folder, manifest).num_rows}
    empty = replace(manifest, generation=manifest.generation + 1, tables={}, counters=counters, parameters={}, stale=[])
    manifests.commit(folder, empty)


def _shortened(findings: list[Finding]) -> list[Finding]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.where), []).append(finding)
    shown = []
    for (kind, where), group in groups.items():
        shown += group[:SHOWN]
        if len(group) > SHOWN:
            shown.append(Finding(kind, where, f"and {len(group) - SHOWN} more like these", group[0].repair))
    return shown
