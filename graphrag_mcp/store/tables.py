"""LanceDB tables, read at the versions that a manifest names and written by the holder of the lock.

Lance keeps no checksums, so rows carry one, verified on rows that are served (`Snapshot.verified`),
and a table's files are compared with their records when it is opened. The manifest says which
versions belong together; what a crash left behind is rolled back before the next write.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import Damaged, NotFound
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.cache import (
    ADDRESSED,
    COLUMNS,
    HELD,
    KEPT,
    ROW_ID,
    SAMPLE,
    Ids,
    Kept,
    empty,
    fits,
    ids_of,
    names_of,
)
from graphrag_mcp.store.checksums import BATCH, check_values, prepared, spoiled
from graphrag_mcp.store.lance import (
    REPAIR,
    collected,
    connect,
    following,
    indexed,
    started,
    wait,
    writable,
)
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import FULL_TEXT, KEY, SCALAR, STATEMENT, TABLES, VECTORS, in_lists

# When `compact` acts; the last in versions.
TAIL_ROWS, TAIL_SHARE, TAIL_FRAGMENTS, LEFT_BEHIND = 256, 0.02, 32, 64
MERGED = 1_000  # rows that are merged and indexed in a second, at the least: 105,000 took 1.7

log = logging.getLogger(__name__)


@dataclass
class Change:
    """What one commit does to a table: rows whose KEY value is in `gone` go, then `rows` come.

    A changed row's key must be in `gone`. `rows` has the columns of its schema, `check` optional,
    no nulls.
    """

    gone: Sequence[str] = ()
    rows: pa.Table | None = None


class Snapshot:
    """A reader pinned to one generation. Opens tables when first asked, never locks, may be used by
    threads.

    Raises NotFound when its generation has been cleaned away (open a new snapshot and ask once
    more) and Damaged when the table itself cannot be read: on damaged files Lance raises anything,
    panics of its Rust code included.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        hold: Mapping[str, int] | None = None,
        examine: bool = False,
    ) -> None:
        self.folder, self.manifest = folder, manifest
        self._examine = examine  # what is damaged is shown as well: for doctor
        # Tables with damaged data, of which only rows that match are given.
        self._spoiled: set[str] = set()
        self.left_out = 0  # rows that did not match
        self._limits = HELD if hold is None else hold
        self._handles: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._served: dict[tuple[str, bool], dict[str, dict[str, Any]]] = {}
        self._held: dict[str, Kept] = {}
        self._light: dict[str, Kept] = {}
        self._addresses: dict[str, tuple[Ids | None, Any]] = {}
        self._asked: set[tuple[str, str]] = set()
        # A generation's tables never change: 3 ms each, several a search.
        self._counts: dict[str, int] = {}

    def count(self, table: str) -> int:
        if table not in self._counts:
            handle = self._handle(table)
            try:
                self._counts[table] = wait(handle.count_rows()) if handle is not None else 0
            except Exception as error:
                raise self._failed(table, error) from error
        return self._counts[table]

    def rows(
        self,
        table: str,
        where: str = "",
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Rows that fulfil an SQL condition (all when empty), in no promised order. ROW_ID may be a
        column.
        """
        handle = self._handle(table)
        if handle is None or (limit is not None and limit < 1):
            return empty(table, columns)
        query = handle.query().where(where) if where else handle.query()
        return self._run(
            table, query.limit(limit) if limit is not None else query, names_of(table, columns)
        )

    def at(self, table: str, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """The rows that another read of this snapshot gave these row ids for, in no promised order."""
        handle = self._handle(table)
        return (
            self._run(table, handle.take_row_ids(row_ids), columns)
            if row_ids
            else empty(table, columns)
        )

    def by_key(
        self,
        table: str,
        values: Sequence[str] | Sequence[int],
        key: str | None = None,
        columns: Sequence[str] | None = None,
        hold: bool = False,
    ) -> pa.Table:
        """Rows whose `key` (default: KEY of the table, else id) is one of `values`, in the order of
        `values`.

        `hold`: a search asks, and will ask again, so a table of few enough rows (HELD) is kept in
        memory from now on.
        """
        key = key or KEY.get(table, "id")
        handle, values = self._handle(table), list(dict.fromkeys(values))
        if handle is None or not values:
            return empty(table, columns)
        if hold and (held := self._hold(table)) is not None:
            return held.find(key, values, names_of(table, columns))
        if hold and key == "id" and table in self._light and table not in self._spoiled:
            return self._beside(table, self._light[table], values, names_of(table, columns))
        wanted, names = pa.array(values, TABLES[table].field(key).type), names_of(table, columns)
        read = names if key in names else [*names, key]
        if len(values) > 500 and len(values) * 20 > self.count(table):
            parts: Iterable[pa.Table] = self.batches(table, read)
        elif hold and key == "id" and (row_ids := self._addressed(table, values)) is not None:
            parts = [self._run(table, handle.take_row_ids(row_ids), read)] if row_ids else []
        else:
            parts = (
                self._run(table, handle.query().where(where), read)
                for where in in_lists(key, values)
            )
        kept = [
            part.filter(pc.is_in(part[key], wanted)) for part in parts
        ]  # a damaged index finds others, too
        found = pa.concat_tables(kept) if kept else empty(table, read)
        return found.take(pc.sort_indices(pc.index_in(found[key], wanted))).select(
            names
        )  # a stable sort

    def full_text(
        self,
        table: str,
        terms: Sequence[str],
        limit: int = 200,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows that hold at least one of the terms, best first by Lance's own `_score` (which
        depends on history).
        """
        from lancedb.query import MatchQuery

        handle = self._handle(table)
        if handle is None or not terms or limit < 1:
            return empty(table, columns).append_column("_score", pa.array([], pa.float32()))
        names = [name for name in names_of(table, columns) if name not in ("_score", ROW_ID)]
        query = (
            handle.query()
            .nearest_to_text(MatchQuery(" ".join(terms), FULL_TEXT[table]))
            .limit(limit)
        )
        if (held := self._hold(table)) is None:
            return self._run(
                table, query, names, "_score", *([ROW_ID] if columns and ROW_ID in columns else [])
            )
        found = self._run(
            table, query, [], "_score", ROW_ID
        )  # only the ranking, for the rows are here
        places, here = held.behind(found[ROW_ID])
        return held.take(places, names).append_column(
            "_score", found["_score"].filter(pa.array(here))
        )

    def nearest(self, table: str, vector: Any, limit: int) -> list[tuple[str, float]]:
        """(id, cosine similarity) of the rows of a vector table, by Lance's index where there is
        one, best first.
        """
        query = (
            self._handle(table).query().nearest_to(vector).column("vector").distance_type("cosine")
        )
        found = self._run(
            table, query.nprobes(20).refine_factor(5).limit(limit), ["id"], "_distance"
        )
        near = zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)
        return [(id, round(1 - far, 6)) for id, far in near]

    def held(self, table: str) -> bool:
        """Is the table small enough that searches keep it in memory?"""
        return self._hold(table) is not None

    def columns(
        self,
        table: str,
        names: Sequence[str],
        most: int = COLUMNS,
        later: bool = False,
        also: Sequence[Sequence[str]] = (),
    ) -> Kept | None:
        """These columns of a whole table, `id` among them, read once and kept (always ask for the
        same ones), and of what there may be `also` the first that fits; None for more rows than
        `most` and, with `later`, at the first question, which would pay for all."""
        if table not in self._light:
            first = later and (table, "columns") not in self._asked
            self._asked.add((table, "columns"))
            if self.count(table) > most:
                return None
            if first:
                self._asked.add((table, "soon"))  # so that no one reads its addresses before
                return None
            sample = self.rows(table, limit=SAMPLE) if also else None
            wider = ([*names, *more] for more in also)
            names = next(
                (some for some in wider if fits(sample.select(some), self.count(table))), names
            )
            self._light[table] = self._whole(table, names)
        return self._light[table]

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The whole table, at most BATCH rows at a time."""
        handle, names = self._handle(table), names_of(table, columns)
        try:
            query = self._asked_for(table, handle.query(), names) if handle is not None else None
            reader = wait(started(query, BATCH)) if query is not None else None
            while reader is not None and (batch := wait(following(reader))) is not None:
                yield self._shown(table, pa.Table.from_batches([batch]), names)
        except Exception as error:
            raise self._failed(table, error) from error

    def verified(self, table: str, rows: pa.Table) -> pa.Table:
        """`rows` (all columns of the schema) without those whose check value is wrong; these are
        logged.
        """
        if "check" not in TABLES[table].names or not rows.num_rows:
            return rows
        right = pc.equal(rows["check"], check_values(rows.select(TABLES[table].names)))
        if pc.all(right).as_py():
            return rows
        for wrong in rows.filter(pc.invert(right))["id"].to_pylist():
            self.left_out += 1
            log.warning(
                "row %r of %s does not match its check value and is not served", wrong, table
            )
        return rows.filter(right)

    def _hold(self, table: str) -> Kept | None:
        """The whole table, read once; None when it is too large for that."""
        if table not in self._held:
            if self.count(table) > self._limits.get(table, -1):
                return None
            self._held[table] = self._whole(table, TABLES[table].names)
        return self._held[table]

    def _whole(self, table: str, names: Sequence[str]) -> Kept:
        """Read by BATCH rows: at once, Lance would need half as much again beside what it gives."""
        names = [*names, ROW_ID]
        return Kept(chain([empty(table, names)], self.batches(table, names)))

    def _beside(self, table: str, kept: Kept, ids: Sequence[Any], names: Sequence[str]) -> pa.Table:
        """Rows by id, of which only columns that are not kept are read: each costs Lance 16 us of
        CPU a row.
        """
        places = kept.places("id", ids)
        missing = [name for name in names if name not in kept.rows.column_names]
        if not missing:
            return kept.take(places, names)
        read = self.at(table, kept.row_ids[places].tolist(), [*missing, ROW_ID])
        return kept.joined(read, places, names)

    def _addressed(self, table: str, ids: Sequence[Any]) -> list[int] | None:
        """Row ids of these; None where an index has to say it, and at the first question, which
        would pay for all.
        """
        if (
            (table, "id") not in self._asked
            or table in self._spoiled
            or self.count(table) > ADDRESSED
        ):
            self._asked.add((table, "id"))
            return None
        if (table, "soon") in self._asked:
            return None
        if table not in self._addresses:
            kept = self._whole(table, ["id"])
            self._addresses[table] = ids_of(kept.rows["id"]), kept.row_ids
        known, row_ids = self._addresses[table]
        return row_ids[known.places(ids)].tolist() if known is not None else None

    def served(
        self, table: str, ids: Sequence[str], columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Whole verified rows in the order of `ids`, or these columns of them (of a table always
        the same), as dicts not to be changed; unknown and damaged ones are missing. The last KEPT
        are remembered: a generation's rows never change."""
        known = self._served.get(kind := (table, columns is None), {})
        missing = [id for id in ids if id not in known]
        fresh = (
            self.verified(table, self.by_key(table, missing, "id", hold=True)) if missing else None
        )
        if fresh is not None and fresh.num_rows:
            known = known | {
                row["id"]: row for row in fresh.select(names_of(table, columns)).to_pylist()
            }
            self._served[kind] = (
                known if len(known) <= KEPT else dict(list(known.items())[-KEPT // 2 :])
            )
        return [known[id] for id in ids if id in known]

    def _handle(self, table: str) -> Any:
        version = self.manifest.tables.get(table)
        if version is None:
            return None
        with self._opening:
            if table not in self._handles:
                self._look_at_files(table)
                try:
                    self._handles[table] = wait(
                        connect(self.folder, reader=True).open_table(table, version=version)
                    )
                except Exception as error:
                    raise self._failed(table, error) from error
            return self._handles[table]

    def _look_at_files(self, table: str) -> None:
        """Damaged rows can be left out where rows have check values; an index, or a table without,
        cannot be used.
        """
        version, files = self.manifest.tables[table], self.manifest.files
        for file in [] if self._examine else spoiled(self.folder, files, table, version):
            log.warning("%s, %s", file, REPAIR.lower())
            if "check" not in TABLES[table].names or not file.startswith(f"{table}.lance/data/"):
                raise self._failed(table, Damaged(file, REPAIR))
            self._spoiled.add(table)

    def _run(self, table: str, query: Any, names: Sequence[str], *computed: str) -> pa.Table:
        try:
            found = wait(collected(self._asked_for(table, query, [*names, *computed])))
        except Exception as error:
            raise self._failed(table, error) from error
        return self._shown(table, found, [*names, *computed])

    def _asked_for(self, table: str, query: Any, names: Sequence[str]) -> Any:
        """The query for these columns; for all of them where rows have to be verified."""
        whole = TABLES[table].names if table in self._spoiled else []
        query = query.with_row_id() if ROW_ID in names else query
        return query.select(
            list(dict.fromkeys([*whole, *(name for name in names if name != ROW_ID)]))
        )

    def _shown(self, table: str, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        return self.verified(table, rows).select(list(names)) if table in self._spoiled else rows

    def _failed(self, table: str, error: Exception) -> Exception:
        current = manifests.read(self.folder)
        if current is None or current.generation != self.manifest.generation:
            return NotFound(
                f"generation {self.manifest.generation} of {self.folder.name} is gone",
                "Search again",
            )
        return Damaged(f"table {table} of {self.folder.name} cannot be read ({error})", REPAIR)


def prepare(folder: Path) -> None:
    """Make the folder ready to be written. The first call of a process imports lancedb: 1 to 2
    seconds of CPU.
    """
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    connect(folder)


def open_snapshot(folder: Path, manifest: Manifest | None = None) -> Snapshot:
    """A reader of the given generation, or of the current one. NotFound when nothing was ever
    indexed there.
    """
    manifest = manifest or manifests.read(folder)
    if manifest is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    return Snapshot(folder, manifest)


def apply(folder: Path, manifest: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
    """Write the changes beside what `manifest` names; gives {table: version} for the next manifest.
    NOT a commit.

    Only for the holder of the writer's lock. For a second call before the commit pass
    `dataclasses.replace(manifest, tables=<what the first gave>)`, else the first call's writes are
    rolled back.
    """
    named = dict(manifest.tables) if manifest else {}
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    database, versions = connect(folder), dict(named)
    for name in sorted(changes):
        rows = prepared(name, changes[name].rows)
        with manifests.writing(folder):
            if name in named:
                versions[name] = _change_table(
                    database, name, named[name], changes[name].gone, rows
                )
            elif rows is not None:  # what lies there under this name belongs to no generation
                versions[name] = _fresh_table(database, name, [rows]).version
    return versions


def compact(
    folder: Path, manifest: Manifest, margin: float = 60.0, *, idle: bool = False
) -> dict[str, int] | None:
    """Merge tails into indexes and small files into big ones where it pays; new versions, or None.
    NOT a commit.

    Only for the holder of the writer's lock. Also frees the versions that are older, by `margin`
    seconds, than every version that a kept generation names: so what `manifest` names stays,
    whether or not a commit follows. More for many rows: Lance takes the age from the time at which
    it has merged them. `idle`: nothing else was to be done, so that what the commits before the
    last one of a run have left is freed, once they are not kept any more.
    """
    versions, left = dict(manifest.tables), manifests.left_behind(folder)
    freed = _freed(folder, manifest) if idle and any(left.values()) else set()
    if idle and not any(left.get(name) for name in freed):
        return None  # LanceDB is not imported for that
    database = connect(folder)
    for name, version in sorted(manifest.tables.items()):
        few = 1 if name in freed else LEFT_BEHIND
        table = database.open_table(name, version=version)
        if not _worth_compacting(table, name) and left.get(name, 0) < few:
            continue
        if wrong := spoiled(
            folder, manifest.files, name, version, 1 << 60
        ):  # else it is copied, and looks sound
            log.warning("%s; table %s is not compacted", wrong[0], name)
            continue
        age = manifests.age_of_oldest(folder, manifest, name, table.list_versions())
        age += timedelta(seconds=margin + table.count_rows() / MERGED)
        with manifests.writing(folder):
            table = writable(database, name, version)
            table.optimize(cleanup_older_than=age)
            # Nothing was merged, so nothing will be, and Lance keeps the newest version.
            if name in freed and table.version == version:
                table.optimize(cleanup_older_than=timedelta(milliseconds=1))
            versions[name] = table.version
    return versions if versions != manifest.tables else None


def _freed(folder: Path, manifest: Manifest) -> set[str]:
    """Tables of which no kept generation needs another version, where the run of this generation had
    others before it that are not kept any more."""
    if manifest.began in (0, manifest.generation):
        return set()
    manifests.prune(folder, manifest.generation)
    kept = manifests.generations(folder)
    if any(manifest.began <= one.generation < manifest.generation for one in kept):
        return set()
    tables = manifest.tables.items()
    return {
        name
        for name, version in tables
        if all(one.tables.get(name, version) == version for one in kept)
    }


def _change_table(
    database: Any, name: str, version: int, gone: Sequence[str], rows: pa.Table | None
) -> int:
    table = writable(database, name, version)
    gone = list(dict.fromkeys(gone))
    if not gone and (rows is None or not rows.num_rows):
        return version
    key = KEY.get(name, "id")
    if len(gone) > STATEMENT and name not in VECTORS.values():
        wanted = pa.array(gone, TABLES[name].field(key).type)
        hit = sum(
            pc.sum(pc.is_in(b[key], wanted)).as_py() or 0
            for b in table.search().select([key]).to_batches(BATCH)
        )
        if hit * 2 > table.count_rows():  # writing what stays is less than marking what goes
            old = database.open_table(name, version=table.version)
            kept = (
                b.filter(pc.invert(pc.is_in(b[key], wanted)))
                for b in old.search().to_batches(BATCH)
            )
            parts = (
                pa.Table.from_batches([batch], TABLES[name]) for batch in kept if batch.num_rows
            )
            return _fresh_table(
                database, name, [*parts, *([rows] if rows is not None else [])]
            ).version
    for where in in_lists(key, gone):
        table.delete(where)
    before = table.count_rows()
    if rows is not None and rows.num_rows:
        table.add(rows)
        if rows.num_rows >= max(before, 1) and (before == 0 or rows.num_rows > TAIL_ROWS):
            indexed(table, name)  # the tail would outweigh what is indexed
    return table.version


def _fresh_table(database: Any, name: str, parts: Sequence[pa.Table]) -> Any:
    """Overwrite the table; its earlier versions stay readable. Indexed when it has rows."""
    rows = pa.concat_tables(parts) if parts else TABLES[name].empty_table()
    table = database.create_table(name, data=rows, mode="overwrite")
    if rows.num_rows:
        indexed(table, name)
    return table


def _worth_compacting(table: Any, name: str) -> bool:
    if table.stats()["fragment_stats"]["num_fragments"] >= TAIL_FRAGMENTS:
        return True
    column = FULL_TEXT.get(name) or SCALAR[name][0]
    stats = table.index_stats(f"{column}_idx")
    return stats is not None and stats.num_unindexed_rows > max(
        TAIL_ROWS, TAIL_SHARE * table.count_rows()
    )
