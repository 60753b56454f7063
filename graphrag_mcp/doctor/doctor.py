"""Doctor: finds damage in everything that is stored, and says how to repair it.

Every file is compared with what is known of it, then the rows of a generation with each other.
Repaired is what loses nothing: the manifest from its kept copy, files that no generation names,
older generations that cannot be read, damaged entries of the reply cache. Tables are derived again;
that needs `index/`, so the function is handed in."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import Damaged, GraphRAGError, NewerFormat
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import schema
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.edit_log import APPLIED, OPS, Overlay, PairFact, facts, in_force
from graphrag_mcp.store.manifest import IN_PART, Manifest, differing
from graphrag_mcp.store.reply_cache import AnswerBook, salvage
from graphrag_mcp.store.tables import Snapshot, disconnect
from graphrag_mcp.text.terms import lists_of

LOCK_SECONDS = 30.0
SHOWN = 10  # findings of one kind and place; the rest is counted
_REPAIR = "Run graphrag-mcp doctor --repair"
DERIVE = f"{_REPAIR}: the tables are derived again from the stored originals"
RESTORE = "Restore the file from a backup, or index the folders again into a new corpus"
UNREADABLE = "Give this user the right to read it, or take away what stands in its place"
REMOVE = f"{_REPAIR}: it is removed"
LEFT = "The next run that writes removes it, or graphrag-mcp doctor --repair"
FORGET = f"{_REPAIR}: the older generations that need it are forgotten"
OVERTAKEN = (
    "Delete manifest.json and run graphrag-mcp doctor --repair to go on from there; was the older one put back on "
    "purpose, delete the later files in generations. The next commit would drop them"
)
SALVAGE = f"{_REPAIR} while no server runs: what can be read of the book is kept"
REWRITE = f"{_REPAIR}: it is written again from the newest whole generation"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `repair` is the next move; `repaired` says that it has been done. A
    `remark` is nothing wrong: what a process that was killed has left, which no one reads."""

    # manifest, truth, generation, answers, orphan, file, table, row, or a promise of the rows
    kind: str
    where: str
    what: str
    repair: str
    repaired: bool = False
    remark: bool = False


def doctor(folder: Path, repair: bool = False, rebuild: Callable[[Path], object] | None = None) -> list[Finding]:
    """Everything that is wrong with the index in `folder`; with `repair`, what could be repaired
    has been.

    `rebuild(folder)` must derive all tables from the truth and take the writer's lock itself. It is
    called after a generation was committed that names no tables, and only when the truth is whole:
    readers find nothing until it is done, and if it fails the next index call derives everything.
    Raises NotFound when there is no index, Busy when another process holds the lock (repair only),
    NewerFormat."""
    if not repair:
        return _examined(folder)
    with manifests.writer_lock(folder, LOCK_SECONDS), manifests.writing(folder):
        before = _examined(folder)
        _repair_files(folder, before)
        left = _examined(folder)
        if any(finding.repair in (REMOVE, LEFT) for finding in left):
            # A newer whole generation took the place of a torn manifest.
            _repair_files(folder, left)
            left = _examined(folder)
        derivable = [finding for finding in left if finding.repair == DERIVE]
        whole = not any(finding.kind == "truth" and finding.repair != DERIVE for finding in left)
        if derivable and whole and rebuild is not None:
            _forget_tables(folder)
    if derivable and whole and rebuild is not None:
        rebuild(folder)
        with manifests.writer_lock(folder, LOCK_SECONDS), manifests.writing(folder):
            _repair_files(folder, [])  # what the forgotten generation had
            left = _examined(folder)
    still = {(finding.kind, finding.where, finding.what) for finding in left}
    done = [replace(found, repaired=True) for found in before if (found.kind, found.where, found.what) not in still]
    return [*done, *left]


def _examined(folder: Path) -> list[Finding]:
    try:
        manifest = manifests.current(folder)
    except Damaged as error:
        return [Finding("manifest", "manifest.json", error.what, RESTORE)]
    disconnect(folder)  # what this process remembers of a file is not what is on disk
    found = [*_manifest(folder), *_truth(folder, manifest), *_answers(folder), *_orphans(folder)]
    for where, what in differing(folder / "files", manifest.files):
        found.append(Finding("file", f"files/{where}", what, DERIVE))
    # Every file of the tables that the records list, with older ones and indexes.
    wrong = manifests.verify(folder, manifest.files, manifest.tables)
    found += [Finding("file", where, what, DERIVE) for where, what in wrong]
    snapshot = Snapshot(folder, manifest, examine=True)
    broken = list(_tables(snapshot))
    found += broken
    if not any(finding.kind == "table" for finding in broken):
        try:
            promises = inconsistencies(snapshot)
            found += [Finding(kind, where, what, DERIVE) for kind, where, what in promises]
        except GraphRAGError as error:  # rows can be read, an index cannot
            found.append(Finding("table", "indexes", error.what, DERIVE))
    shown = []
    for (kind, where), group in lists_of(((finding.kind, finding.where), finding) for finding in found).items():
        shown += group[:SHOWN]
        if len(group) > SHOWN:
            what = f"and {len(group) - SHOWN} more like these"
            shown.append(Finding(kind, where, what, group[0].repair))
    return shown


def _manifest(folder: Path) -> Iterator[Finding]:
    if later := _overtaken(folder):
        what = f"generation {later} was committed after the one it names"
        yield Finding("manifest", "manifest.json", what, OVERTAKEN)
    for path in [folder / "manifest.json", *sorted((folder / "generations").glob("*.json"))]:
        try:
            generation = manifests.parse(path.read_bytes(), path.name).generation
            if path.stem.isdigit() and int(path.stem) != generation:
                yield Finding("manifest", path.name, f"it holds generation {generation}", REWRITE)
        except FileNotFoundError:
            yield Finding("manifest", path.name, f"{path.name} is missing", REWRITE)
        except (Damaged, NewerFormat) as error:
            yield Finding("manifest", path.name, error.what, REWRITE)
        except OSError as error:
            what = f"{path.name} cannot be read ({error.strerror})"
            yield Finding("manifest", path.name, what, UNREADABLE)


def _overtaken(folder: Path) -> int:
    """The newest whole generation, where manifest.json names an earlier one; else 0. The one after
    the current may be of a commit that was killed before its end. Two are of commits that came to
    theirs: an older file was put back."""
    path = folder / "manifest.json"
    try:
        current = manifests.parse(path.read_bytes(), path.name).generation
    except (OSError, Damaged, NewerFormat):
        return 0
    later = [kept.generation for kept in manifests.generations(folder) if kept.generation > current]
    return later[-1] if len(later) > 1 else 0


def _truth(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Segments of the current generation, and all that older ones need beside it."""
    for where, what in differing(folder / "truth", manifest.segments):
        yield Finding("truth", where, what, RESTORE)
    kept = manifests.generations(folder)
    named = {entry["file"] for entry in (*manifest.segments, *manifest.files)}
    parts = {"truth": [old.segments for old in kept], "files": [old.files for old in kept]}
    for part, lists in parts.items():
        older = {entry["file"]: entry for entries in lists for entry in entries if entry["file"] not in named}
        for where, what in differing(folder / part, [older[name] for name in sorted(older)]):
            yield Finding("generation", where, what, FORGET)


def _answers(folder: Path) -> Iterator[Finding]:
    with contextlib.closing(AnswerBook(folder)) as book:
        for problem in book.verify():
            where, _, what = problem.partition(": ")
            yield Finding("answers", where, what, SALVAGE)


def _orphans(folder: Path) -> Iterator[Finding]:
    kinds = {"truth": "truth segment", "files": "record", "tables": "table"}
    for path in _orphaned(folder):
        what = f"a {kinds.get(path.parent.name)} that no generation names"
        what = "left by a crash" if path.suffix == ".tmp" else what
        where = path.relative_to(folder).as_posix()
        yield Finding("orphan", where, what, REMOVE if path.is_dir() else LEFT, remark=True)


def _orphaned(folder: Path) -> list[Path]:
    """Files that no kept generation names: left by a crash, or by forgotten generations."""
    kept = [*filter(None, [manifests.read(folder)]), *manifests.generations(folder)]
    named = {f"{name}.lance" for manifest in kept for name in manifest.tables}
    temporary = sorted([*folder.glob(".*.tmp"), *folder.glob("generations/.*.tmp")])
    tables = sorted((folder / "tables").glob("*.lance"))
    unnamed = [path for path in tables if path.name not in named]
    return [*manifests.unnamed(folder, kept), *temporary, *unnamed]


def _tables(snapshot: Snapshot) -> Iterator[Finding]:
    """Every table is read whole, once, in batches: that it opens, and its check values."""
    for name in schema.TABLES:
        expected = snapshot.manifest.counters.get(name)
        try:
            count = snapshot.count(name)
            for rows in snapshot.batches(name):
                if "check" in rows.column_names:
                    wrong = pc.not_equal(rows["check"], schema.check_values(rows))
                    for id in rows.filter(wrong)["id"].to_pylist():
                        what = f"row {id} does not match its check value"
                        yield Finding("row", name, what, DERIVE)
        except GraphRAGError as error:
            yield Finding("table", name, error.what, DERIVE)
            continue
        if expected is not None and expected != count:
            yield Finding("count", name, f"{count} rows, the manifest counts {expected}", DERIVE)


def _repair_files(folder: Path, found: list[Finding]) -> None:
    """What loses nothing: manifest and copies made equal, unreadable copies and orphans removed."""
    if any(finding.kind == "answers" for finding in found):
        salvage(folder)
    lost = {finding.where for finding in found if finding.kind == "generation"}
    try:
        manifest = manifests.read(folder)
    except Damaged:
        return
    for path in (folder / "generations").glob("*.json"):
        try:
            kept = manifests.parse(path.read_bytes(), path.name)
            files = {entry["file"] for entry in (*kept.segments, *kept.files)}
            if kept.generation != int(path.stem) or lost & files:
                path.unlink()
        except Damaged:
            path.unlink()
        except OSError:  # found, and not ours to mend
            continue
    if manifest is not None and not _overtaken(folder):  # a commit forgets what is later
        manifests.commit(folder, manifest)
    for path in _orphaned(folder):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _forget_tables(folder: Path) -> None:
    """A generation without tables: the one that indexes next derives everything from the truth. Numbers
    are not reused.

    Older generations are forgotten, as their tables go. The new ones come into a folder of their
    own, since processes that have the old one open remember parts of it. Killed anywhere here, the
    next repair begins again."""
    manifest = manifests.current(folder)
    # Deriving replaces each document of the log, so these count as there.
    counters = {"documents": segment_store.live_documents(folder, manifest).num_rows}
    empty = replace(
        manifest,
        generation=manifest.generation + 1,
        tables={},
        counters=counters,
        parameters=manifest.readers(),
        stale=[],
    )
    manifests.commit(folder, empty)
    for path in (folder / "generations").glob("*.json"):
        if int(path.stem) != empty.generation:
            path.unlink()
    disconnect(folder)
    if (folder / "tables").exists():
        old = folder / f".tables-old-{os.getpid()}.tmp"
        os.replace(folder / "tables", old)
        shutil.rmtree(old)


# ---- rows against each other ---------------------------------------------------------------------


Broken = tuple[str, str, str]
Row = dict[str, Any]
PROBES = 20  # rows of a table that are looked up through its indexes
# What no two rows share, where that is not KEY or "id"; nothing of evidence.
UNIQUE: dict[str, Sequence[str]] = {"evidence": ()}
UNIQUE["summaries"] = UNIQUE["places"] = ("id",)
UNIQUE["links"] = ("document_id", "kind", "target", "char_start", "char_end")
UNIQUE["mentions"] = ("key", "text_unit_id", "form", "type", "by")
NUMBERED = {name: name[0] for name in ("documents", "text_units", "entities", "relationships")}
NUMBERED["communities"] = "c"


def inconsistencies(snapshot: Snapshot) -> Iterator[Broken]:
    """Rows that name what is not there or are there twice, numbers, documents that are not those of
    the log, entities that are not those of edits, indexes that do not find their rows."""
    overlay = Overlay()
    with contextlib.suppress(GraphRAGError):  # a finding of its own
        overlay = in_force(snapshot)
    pairs = pairs_by_hand(snapshot, overlay)
    hidden = {id for id, fact in pairs.items() if fact.hidden}  # evidence stays, for an undo
    if snapshot.manifest.parameters.get("derivation") == IN_PART:
        what = "an indexing with other settings was stopped half way"
        yield "parameters", "text_units", f"{what}: some rows are of the old ones"
    yield from _references(snapshot, hidden)
    yield from _edits(snapshot, overlay)
    for check in (_numbers, _twice, _against_truth, _indexes):
        yield from check(snapshot)


def _column(snapshot: Snapshot, table: str, column: str) -> list[Any]:
    return snapshot.column(table, column)


def _rows(snapshot: Snapshot, table: str, *columns: str) -> Iterator[Row]:
    for batch in snapshot.batches(table, list(columns) or None):
        yield from batch.to_pylist()


def _references(snapshot: Snapshot, hidden: Collection[str]) -> Iterator[Broken]:
    ids: dict[str, pa.ChunkedArray] = {}
    fresh = {} if snapshot.manifest.stale else schema.REFERENCES_OF_COMMUNITIES
    for (table, column), other in {**schema.REFERENCES, **fresh}.items():
        if other not in ids:
            ids[other] = snapshot.rows(other, columns=["id"])["id"]
        named = snapshot.rows(table, columns=[column])[column]
        named = pc.list_flatten(named) if pa.types.is_list(named.type) else named
        lost = set(named.filter(pc.invert(pc.is_in(named, ids[other]))).to_pylist())
        for id in sorted(lost - {"", *hidden}):
            yield "dangling", table, f"{column} {id} is not in {other}"


def _twice(snapshot: Snapshot) -> Iterator[Broken]:
    for table in schema.TABLES:
        columns = list(UNIQUE.get(table, (schema.KEY.get(table, "id"),)))
        if columns:
            groups = snapshot.rows(table, columns=columns).group_by(columns)
            counts = groups.aggregate([([], "count_all")])
            for row in counts.filter(pc.field("count_all") > 1).to_pylist():
                name = " ".join(str(row[column]) for column in columns)
                yield "twice", table, f"{name} stands {row['count_all']} times"


def _numbers(snapshot: Snapshot) -> Iterator[Broken]:
    for table, letter in NUMBERED.items():
        numbers = Counter(_column(snapshot, table, "n"))
        for n in (n for n, count in numbers.items() if count > 1):
            yield "number", table, f"{letter}{n} stands for several rows"
        if numbers and max(numbers) >= snapshot.manifest.next.get(letter, 1):
            what = f"{letter}{max(numbers)} is in use, but the next number is not above it"
            yield "number", table, what


def _indexes(snapshot: Snapshot) -> Iterator[Broken]:
    """Rows spread over each table are found through its indexes, in texts by their rarest term."""
    columns = ((name, column) for name in schema.TABLES for column in schema.SCALAR[name])
    for table, column in columns:
        values = sorted(set(_column(snapshot, table, column)))
        probes = values[:: max(1, len(values) // PROBES)]
        found = snapshot.by_key(table, probes, column, [column])[column].to_pylist()
        for value in sorted(set(probes) - set(found)):
            yield "index", table, f"{value} is not found by its {column}"
    for table, column in schema.FULL_TEXT.items():
        texts = {row["id"]: row[column].split() for row in _rows(snapshot, table, "id", column)}
        seen = Counter(term for terms in texts.values() for term in terms)
        for id in sorted(texts)[:: max(1, len(texts) // PROBES)]:
            if texts[id]:
                rarest = min(texts[id], key=lambda term: (seen[term], term))
                found = snapshot.full_text(table, [rarest], seen[rarest] + 10, ["id"])
                if id not in found["id"].to_pylist():
                    yield "index", table, f"{id} is not found by its term {rarest!r}"


def _against_truth(snapshot: Snapshot) -> Iterator[Broken]:
    columns = ["uri", "id", "n"]
    try:
        log = segment_store.live_documents(snapshot.folder, snapshot.manifest, columns)
    except GraphRAGError:  # a finding of its own
        return
    expected = {row["uri"]: row for row in log.to_pylist()}
    stored = {row["uri"]: row for row in _rows(snapshot, "documents", *columns)}
    for uri in sorted(expected.keys() | stored.keys()):
        if expected.get(uri) != stored.get(uri):
            yield "truth", "documents", f"{uri} is not the row of the document log"


def pairs_by_hand(snapshot: Snapshot, overlay: Overlay) -> dict[str, PairFact]:
    """What edits say of relationships, by id."""
    rows = _rows(snapshot, "entities", "key", "names") if overlay.pairs else ()
    entity_of = {name: row["key"] for row in rows for name in row["names"]}
    return facts(sorted(overlay.pairs.values(), key=lambda edit: edit.order), entity_of)


def _edits(snapshot: Snapshot, overlay: Overlay) -> Iterator[Broken]:
    """The tables follow the whole edit log, and each row of it is an edit. No entity
    is one that an edit hides, joins or says otherwise."""
    for place, row in enumerate(overlay.log, 1):
        if row.op not in OPS or not row.keys:
            yield "edit", "truth", f"row {place} of the edit log is no edit ({row.op!r})"
    followed = snapshot.manifest.parameters.get(APPLIED, 0)
    if followed != len(overlay.log):
        what = f"the tables follow {followed} of {len(overlay.log)} rows of the edit log"
        yield "edit", "entities", what
    for row in _rows(snapshot, "entities", "key", "title", "type", "description"):
        words = overlay.words(row["key"])
        if overlay.hidden(row["key"]) or row["key"] in overlay.alias or words.items() - row.items():
            yield "edit", "entities", f"{row['key']!r} is not as an edit made it"
