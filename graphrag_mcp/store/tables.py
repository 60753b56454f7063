"""LanceDB: its import (1.2 s of CPU), connections, indexes and tables. They are read at the
versions that a manifest names and written by the holder of the lock.

A table's files are compared with their records when it is opened (manifest.py); of a damaged one
only rows that match their check values are given. What a crash left behind is rolled back.

Vectors of up to FLAT rows are one matrix in memory (2 ms at 20,000 x 384), else Lance searches."""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import Damaged, NotFound
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import schema
from graphrag_mcp.store.manifest import REPAIR, Manifest, spoiled
from graphrag_mcp.store.schema import ASKED, BATCH, FULL_TEXT, KEY, SCALAR, TABLES, VECTOR_FORM, VECTORS, sealed
from graphrag_mcp.text.prose import repeated_lines
from graphrag_mcp.text.uris import LICENCE, file_and_key, is_note

# ---- LanceDB -------------------------------------------------------------------------------------

# A server that commits all day puts every version it opened into these caches: with Lance's limits,
# 6 and 1 GB, half an hour of notes took 1 GB. Searches over 105,000 entities are as fast with these
# as with 32 and 16 MB. Both are shared by all corpora of the process.
INDEX_CACHE, METADATA_CACHE = 24 << 20, 4 << 20
# rows up to which vectors are compared one by one: 5 ms at 60,000 x 384; an index there took 40 s
FLAT = 60_000
TOGETHER = 1 << 18  # rows that are handed over at once, and so stand in one piece of memory
T = TypeVar("T")
_connections: dict[tuple[str, int, bool], Any] = {}
_connecting = threading.Lock()
_importing = threading.Lock()


def lancedb() -> Any:
    """The module, imported at the first call; as it is when someone has imported it before."""
    # Else Lance writes warnings to stderr. Read when it is imported.
    os.environ.setdefault("LANCEDB_LOG", "error")
    if "lancedb" in sys.modules:
        import lancedb
    else:
        with _importing, _without_rest_client(), _without_overrides():
            import lancedb

    _few_heaps()
    return lancedb


_REST = "lance_namespace_urllib3_client"


class _Placeholders(MetaPathFinder, Loader):
    """Gives for each module of the REST client one whose classes are empty."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:
        if fullname == _REST or fullname.startswith(f"{_REST}."):
            return spec_from_loader(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        def placeholder(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module.__dict__["__getattr__"] = placeholder


@contextmanager
def _without_rest_client() -> Iterator[None]:
    """Within it, LanceDB is imported without the client of its catalogue service, for which pydantic
    makes hundreds of classes and validators: more than half of the CPU of the import. Tables in a
    folder have no such service. A later import of the client gives the real one."""
    finder = _Placeholders()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # A copy: other threads import modules meanwhile.
        for name in [name for name in list(sys.modules) if name.partition(".")[0] == _REST]:
            if getattr(sys.modules[name].__spec__, "loader", None) is finder:
                del sys.modules[name]


@contextmanager
def _without_overrides() -> Iterator[None]:
    """Within it, LanceDB's `@override` checks nothing, as with Python 3.12 and later: the checks read
    the bytecode of each class, for half of the CPU of the rest of the import."""
    known = sys.modules.get("overrides")
    if known is None:
        checks: Any = ModuleType("overrides")
        checks.override, checks.EnforceOverrides = lambda method: method, object
        sys.modules["overrides"] = checks
    try:
        yield
    finally:
        if known is None:
            del sys.modules["overrides"]


@lru_cache(maxsize=1)
def _few_heaps() -> None:
    """Have glibc keep two heaps, at most 2 MB free at the end of each, and map blocks from 1 MB on
    by themselves. Otherwise each of Lance's threads has a heap that keeps what it frees: indexing
    14,000 documents then holds 766 MB at its peak in place of 628 (docs/dev/decisions.md)."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL("libc.so.6")
            for parameter, value in ((-8, 2), (-1, 2 << 20), (-3, 1 << 20)):  # <malloc.h>
                libc.mallopt(parameter, value)


@lru_cache(maxsize=1)
def session() -> Any:
    """What all connections of this process share."""
    sizes = {"index_cache_size_bytes": INDEX_CACHE, "metadata_cache_size_bytes": METADATA_CACHE}
    return lancedb().Session(**sizes)


def connect(folder: Path, reader: bool = False) -> Any:
    """The folder's database, once per process. Readers take the asynchronous one: lancedb's
    synchronous tables fetch the schema three times a query, each a hand-over between threads (3.2
    against 1.7 ms CPU for 20 rows by key)."""
    path = folder / "tables"
    # A corpus deleted and made again must not meet cached versions.
    key = (str(path), path.stat().st_ino, reader)
    with _connecting:
        if key not in _connections:
            opened = lancedb().connect_async if reader else lancedb().connect
            database = opened(path, session=session())
            _connections[key] = wait(database) if reader else database
        return _connections[key]


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own answers the reads of all threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lance-reads", daemon=True).start()
    return loop


def wait(work: Coroutine[Any, Any, T]) -> T:
    """The result of work on the event loop of LanceDB, from any thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


async def collected(query: Any) -> pa.Table:
    """All rows at once: by 1,024 as usual, threads take half of the CPU of 200,000 ids."""
    reader = await query.to_batches(max_batch_length=TOGETHER)
    return pa.Table.from_batches(await reader.read_all(), reader.schema)


async def following(reader: Any) -> pa.RecordBatch | None:
    """The next batch of a reader; None behind the last one."""
    return await anext(reader, None)


def writable(database: Any, name: str, version: int) -> Any:
    """The table at its latest version, first made equal to `version` if a crash left others."""
    try:
        table = database.open_table(name)
        if table.version != version:
            table.restore(version)
        return table
    except Exception as error:
        what = f"table {name} cannot be opened at version {version} ({error})"
        raise Damaged(what, REPAIR) from error


def indexed(table: Any, name: str) -> None:
    """Index all rows that the table has now, as its kind is looked up (schema.py)."""
    from lancedb.index import FTS, BTree, IvfPq

    if name in VECTORS.values() and table.count_rows() > FLAT:
        table.create_index("vector", config=IvfPq(distance_type="cosine"), replace=True)
    for column in SCALAR[name]:
        table.create_index(column, config=BTree(), replace=True)
    if name in FULL_TEXT:
        # Our tokens are separated by spaces already: Lance's filters would lose some.
        filters = ("stem", "remove_stop_words", "ascii_folding", "lower_case", "with_position")
        off = dict.fromkeys(filters, False)
        config = FTS(base_tokenizer="whitespace", max_token_length=None, **off)
        table.create_index(FULL_TEXT[name], config=config, replace=True)


def disconnect(folder: Path) -> None:
    """Forget what is cached of the folder's tables: the next snapshot looks at the disk again."""
    with _connecting:
        for key in [key for key in _connections if key[0] == str(folder / "tables")]:
            del _connections[key]


Wanted = Sequence[str] | None  # columns; None: all of them
Rows = list[dict[str, Any]]
Values = Sequence[str] | Sequence[int]  # of a key
ROW_ID = "_rowid"  # Lance's own number of a row, in one version of a table
# In memory a read takes 0.2 ms, not 2 to 5: a table's most rows, columns that are kept (None: all).
KEPT: dict[str, tuple[int, Sequence[str] | None]] = {
    "terms": (200_000, None),
    "passages": (60_000, None),
    "entities": (120_000, None),
    "relationships": (25_000, None),
    "reports": (60_000, ("id", "n", "level", "rank", "n_text_units", "title")),
    "communities": (60_000, ("id", "parent", "children", "size")),
    "documents": (60_000, ("id", "n", "title", "uri")),
}
# When `compact` acts; the last in versions.
TAIL_ROWS, TAIL_SHARE, TAIL_FRAGMENTS, LEFT_BEHIND = 256, 0.02, 32, 64
MERGED = 1_000  # rows that are merged and indexed in a second, at the least: 105,000 took 1.7

log = logging.getLogger(__name__)


@dataclass
class Change:
    """What one commit does to a table: rows whose KEY value is in `gone` go, then `rows` come.

    A changed row's key must be in `gone`. `rows`: columns of the schema, `check` optional, no
    nulls."""

    gone: Sequence[str] = ()
    rows: pa.Table | None = None


class Columns:
    """Columns of a table in memory, ROW_ID among them, each in one piece."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows.combine_chunks()
        self._indexes: dict[str, tuple[Any, Any]] = {}

    def have(self, names: Sequence[str]) -> bool:
        return not set(names) - set(self.rows.column_names)

    def places(self, key: str, values: Sequence[Any]) -> pa.Array:
        """Of the rows whose `key` is one of these, in the order of the values."""
        import numpy as np

        if key not in self._indexes:
            order = pc.sort_indices(self.rows[key]).to_numpy()
            self._indexes[key] = order, self.rows[key].to_numpy()[order]
        order, ordered = self._indexes[key]
        sought = np.array(values, ordered.dtype)
        first, last = (np.searchsorted(ordered, sought, side) for side in ("left", "right"))
        found = [order[low:high] for low, high in zip(first, last, strict=True)]
        return pa.array(np.concatenate([order[:0], *found]))

    def take(self, places: pa.Array, names: Sequence[str]) -> pa.Table:
        return self.rows.select(list(names)).take(places)


# values in one IN list; 500 cost 12 ms, 5,000 cost 41 ms at 50k rows, one scan of a column 4 ms
STATEMENT = 2_000


def in_lists(key: str, values: Values) -> Iterator[str]:
    """SQL conditions `key IN (...)` of at most STATEMENT values each."""
    for start in range(0, len(values), STATEMENT):
        part = values[start : start + STATEMENT]
        texts = (str(value) if isinstance(value, int) else value.replace("'", "''") for value in part)
        quote = "" if isinstance(part[0], int) else "'"
        yield f"{key} IN ({', '.join(f'{quote}{text}{quote}' for text in texts)})"


class Snapshot:
    """A reader of one generation. Opens tables when first asked, never locks, for any thread.

    NotFound when its generation has been cleaned away (open a new snapshot and ask once more),
    Damaged when a table cannot be read: Lance raises anything, panics of Rust included."""

    def __init__(self, folder: Path, manifest: Manifest, keep: bool = False, examine: bool = False) -> None:
        """`keep`: searches ask, and will ask again (KEPT). `examine`: what is damaged is shown as
        well, for doctor."""
        self.folder, self.manifest = folder, manifest
        self._keep, self._examine = keep, examine
        self._kept: dict[str, Columns | None] = {}
        self.left_out = 0  # rows of damaged tables that did not match their check values
        self._spoiled: set[str] = set()  # damaged tables
        self._columns: dict[str, Set[str]] = {}  # those that a table of an earlier release lacks
        self._handles: dict[str, Any] = {}
        self._opening = threading.Lock()
        self._counts: dict[str, int] = {}

    @property
    def whole(self) -> Snapshot:
        """The snapshot itself; of one that is narrowed by filters, the one that it is made of. Caches hold to it."""
        return self

    def count(self, table: str) -> int:
        if table not in self._counts:
            if (kept := self._kept.get(table)) is not None:
                return kept.rows.num_rows
            handle = self._handle(table)
            try:
                self._counts[table] = wait(handle.count_rows()) if handle is not None else 0
            except Exception as error:
                raise self._failed(table, error) from error
        return self._counts[table]

    def rows(self, table: str, where: str = "", columns: Wanted = None, limit: int | None = None) -> pa.Table:
        """Rows that fulfil an SQL condition (all when empty), unordered. ROW_ID may be a column."""
        names = names_of(table, columns)
        if (kept := self._in_memory(table, names)) is not None and not where:
            return kept.rows.select(names).slice(0, limit)
        handle = self._handle(table)
        if handle is None or (limit is not None and limit < 1):
            return empty(table, columns)
        query = handle.query().where(where) if where else handle.query()
        return self._run(table, query.limit(limit) if limit is not None else query, names)

    def column(self, table: str, name: str) -> list[Any]:
        """The values of one column of a table, unordered."""
        return self.rows(table, columns=[name])[name].to_pylist()

    def by_key(self, table: str, values: Values, key: str | None = None, columns: Wanted = None) -> pa.Table:
        """Rows whose `key` (default: KEY of the table, else id) is in `values`, in their order."""
        key, names = key or KEY.get(table, "id"), names_of(table, columns)
        distinct = list(dict.fromkeys(values))
        if (kept := self._in_memory(table, [key, *names])) is not None:
            return kept.take(kept.places(key, distinct), names)
        handle = self._handle(table)
        if handle is None or not distinct:
            return empty(table, columns)
        searched = pa.array(values, TABLES[table].field(key).type)
        read = names if key in names else [*names, key]
        if len(values) > 500 and len(values) * 200 > self.count(table):
            # one pass over the keys, then the rows: faster than that many questions to an index
            keys = [part.filter(pc.is_in(part[key], searched)) for part in self.batches(table, [key, ROW_ID])]
            ids = [id for part in keys for id in part[ROW_ID].to_pylist()]
            parts = [self._run(table, handle.take_row_ids(ids), read)] if ids else []
        else:
            queries = (handle.query().where(where) for where in in_lists(key, values))
            parts = [self._run(table, query, read) for query in queries]
        found = pa.concat_tables(parts) if parts else empty(table, read)
        # A stable sort.
        return found.take(pc.sort_indices(pc.index_in(found[key], searched))).select(names)

    def served(self, table: str, ids: Sequence[str], columns: Wanted = None) -> Rows:
        """Rows in the order of `ids`; unknown and damaged ones are missing. Those of text units and
        passages have their `places`."""
        rows = self.by_key(table, ids, "id", columns).to_pylist()
        return self.with_places(rows) if table in ("text_units", "passages") else rows

    def with_places(self, rows: Rows) -> Rows:
        """Rows of text units or passages; those that stand on a page, a slide or in a sheet gain
        `places` (text/places.py)."""
        if "places" in self.manifest.tables:
            ids = [row["id"] for row in rows if "id" in row]
            found = dict(rows_of(self.by_key("places", ids, "id", ["id", "places"])))
            for row in rows:
                if stored := found.get(row.get("id")):
                    row["places"] = stored
        return rows

    def full_text(self, table: str, terms: Sequence[str], limit: int = 200, columns: Wanted = None) -> pa.Table:
        """Rows that hold a term, best first by Lance's `_score` (which depends on history)."""
        from lancedb.query import MatchQuery

        names = [name for name in names_of(table, columns) if name != "_score"]
        handle = self._handle(table)
        if handle is None or not terms or limit < 1:
            return empty(table, names).append_column("_score", pa.array([], pa.float32()))
        # Its stub asks for every argument.
        match = MatchQuery(" ".join(terms), FULL_TEXT[table])  # pyright: ignore[reportCallIssue]
        query = handle.query().nearest_to_text(match).limit(limit)
        if (kept := self._in_memory(table, names)) is None:
            return self._run(table, query, [*names, "_score"])
        ranking = self._run(table, query, [ROW_ID, "_score"])
        at = pc.index_in(ranking[ROW_ID], kept.rows[ROW_ID])
        found = kept.take(at.drop_null(), names)
        return found.append_column("_score", ranking["_score"].filter(pc.is_valid(at)))

    def nearest(self, table: str, vector: Any, limit: int) -> list[tuple[str, float]]:
        """(id, cosine similarity) of rows of a vector table, by its index if any, best first."""
        query = self._handle(table).query().nearest_to(vector).column("vector")
        query = query.distance_type("cosine").nprobes(20).refine_factor(5).limit(limit)
        found = self._run(table, query, ["id", "_distance"])
        return [(id, round(1 - far, 6)) for id, far in rows_of(found)]

    def batches(self, table: str, columns: Wanted = None, size: int = BATCH) -> Iterator[pa.Table]:
        """The whole table, at most `size` rows at a time."""
        names = names_of(table, columns)
        if (kept := self._kept.get(table)) is not None and kept.have(names):
            yield kept.rows.select(names)
            return
        handle = self._handle(table)
        try:
            query = self._asked_for(table, handle.query(), names) if handle is not None else None
            reader = wait(query.to_batches(max_batch_length=size)) if query is not None else None
            while reader is not None and (batch := wait(following(reader))) is not None:
                yield self._shown(table, pa.Table.from_batches([batch]), names)
        except Exception as error:
            raise self._failed(table, error) from error

    # ---- columns in memory ----------------------------------------------------------------------

    def _in_memory(self, table: str, names: Sequence[str]) -> Columns | None:
        """What is kept of a table, where that is these columns or more."""
        if table not in self._kept:
            loaded, (most, columns) = None, KEPT.get(table, (-1, None))
            if self._keep and self.count(table) <= most:
                whole = [*names_of(table, columns), ROW_ID]
                # By BATCH rows: at once, Lance would need half as much again beside what it gives.
                parts = [empty(table, whole), *self.batches(table, whole)]
                loaded = Columns(pa.concat_tables(parts))
            self._kept[table] = loaded
        kept = self._kept[table]
        return kept if kept is not None and kept.have(names) else None

    # ---- what Lance gives -----------------------------------------------------------------------

    def _handle(self, table: str) -> Any:
        version = self.manifest.tables.get(table)
        if version is None:
            return None
        with self._opening:
            if table not in self._handles:
                # Damaged rows are left out where rows have check values; else files are no use.
                files = [] if self._examine else spoiled(self.folder, self.manifest.files, table)
                for file in files:
                    log.warning("%s, %s", file, REPAIR.lower())
                    data = file.startswith(f"{table}.lance/data/")
                    if "check" not in TABLES[table].names or not data:
                        raise self._failed(table, Damaged(file, REPAIR))
                    self._spoiled.add(table)
                try:
                    database = connect(self.folder, reader=True)
                    self._handles[table] = wait(database.open_table(table, version=version))
                except Exception as error:
                    raise self._failed(table, error) from error
            return self._handles[table]

    def _run(self, table: str, query: Any, names: Sequence[str]) -> pa.Table:
        try:
            found = wait(collected(self._asked_for(table, query, names)))
        except Exception as error:
            raise self._failed(table, error) from error
        return self._shown(table, found, names)

    def _asked_for(self, table: str, query: Any, names: Sequence[str]) -> Any:
        """The query for these columns; for all of them where rows have to be verified."""
        whole = TABLES[table].names if table in self._spoiled else []
        query = query.with_row_id() if ROW_ID in names else query
        lacking = {ROW_ID, *self._lacking(table)}
        return query.select(list(dict.fromkeys(n for n in (*whole, *names) if n not in lacking)))

    def _shown(self, table: str, rows: pa.Table, names: Sequence[str]) -> pa.Table:
        rows = self.verified(table, rows) if table in self._spoiled else rows
        for name in self._lacking(table) & set(names):
            rows = rows.append_column(name, pa.array([""] * rows.num_rows, pa.string()))
        return rows.select(list(names))

    def _lacking(self, table: str) -> Set[str]:
        """Columns of text that an earlier release did not write; they read as empty until the table
        is derived again."""
        if self.manifest.parameters.get("derivation") == manifests.DERIVATION:
            return frozenset()
        if table not in self._columns and (handle := self._handle(table)) is not None:
            stored = wait(handle.schema()).names
            columns = {column.name: column.type for column in TABLES[table]}
            missing = columns.keys() - set(stored)
            self._columns[table] = {name for name in missing if pa.types.is_string(columns[name])}
        return self._columns.get(table, frozenset())

    def verified(self, table: str, rows: pa.Table) -> pa.Table:
        """Of rows with all columns those that match their check values; others are logged."""
        if not rows.num_rows:
            return rows
        written = [name for name in TABLES[table].names if name not in self._lacking(table)]
        right = pc.equal(rows["check"], schema.check_values(rows.select(written)))
        for wrong in rows.filter(pc.invert(right))["id"].to_pylist():
            self.left_out += 1
            message = "row %r of %s does not match its check value and is not served"
            log.warning(message, wrong, table)
        return rows.filter(right)

    def _failed(self, table: str, error: Exception) -> Exception:
        current = manifests.read(self.folder)
        if current is None or current.generation != self.manifest.generation:
            message = f"generation {self.manifest.generation} of {self.folder.name} is gone"
            return NotFound(message, "Search again")
        return Damaged(f"table {table} of {self.folder.name} cannot be read ({error})", REPAIR)


def once(make: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """`make` of a whole snapshot, worked out once and kept as long as that is."""
    known: WeakKeyDictionary[Snapshot, T] = WeakKeyDictionary()

    @wraps(make, updated=())
    def made(snapshot: Snapshot) -> T:
        snapshot = snapshot.whole
        if snapshot not in known:
            known[snapshot] = make(snapshot)
        return known[snapshot]

    return made


def names_of(table: str, columns: Wanted) -> list[str]:
    """The names of the wanted columns; of all where none are wanted."""
    return TABLES[table].names if columns is None else list(columns)


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python objects."""
    return column.to_pylist()


def rows_of(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as tuples, in the order of its columns."""
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


@once
def notes_of(snapshot: Snapshot) -> frozenset[str]:
    """The content ids of all notes, read once a generation."""
    rows = snapshot.rows("documents", columns=["id", "uri", "metadata"])
    rows = rows.filter(pc.match_substring(rows["metadata"], "note", ignore_case=True))
    return frozenset(id for id, uri, metadata in rows_of(rows) if is_note(uri, json.loads(metadata)))


def notes_alone(snapshot: Snapshot) -> str:
    """What a corpus lacks whose documents are all notes; "" for another corpus."""
    counters = snapshot.manifest.counters
    count = counters.get("documents", 0)
    if not count or counters.get("entities") or len(notes_of(snapshot)) < count:
        return ""
    return (
        f"All {count} documents say kind: note of themselves, and notes give no entities and no topics."
        if count > 1
        else "The only document is a note (kind: note), and notes give no entities and no topics."
    )


@once
def licences_of(snapshot: Snapshot) -> frozenset[str]:
    """The content ids of the documents that are texts of licences, read once a generation."""
    rows = snapshot.rows("documents", columns=["id", "metadata"])
    rows = rows.filter(pc.match_substring(rows["metadata"], f'"{LICENCE}"'))
    return frozenset(id for id, metadata in rows_of(rows) if json.loads(metadata).get(LICENCE))


def repeated_lines_of(snapshot: Snapshot) -> dict[str, set[str]]:
    """The lines of documents with links (content ids) that repeat those of others, notes aside."""
    passages = snapshot.rows("passages", columns=["document_id", "text"])
    if notes := notes_of(snapshot):
        passages = passages.filter(pc.invert(pc.is_in(passages["document_id"], pa.array(sorted(notes)))))
    pages = passages["document_id"].filter(pc.match_substring(passages["text"], "]("))
    return repeated_lines(rows_of(passages.filter(pc.is_in(passages["document_id"], pages.unique()))))


def empty(table: str, columns: Wanted) -> pa.Table:
    """No rows, in these columns (or all of the table), of which one may be ROW_ID."""
    row_id = pa.field(ROW_ID, pa.uint64())
    fields = (row_id if n == ROW_ID else TABLES[table].field(n) for n in names_of(table, columns))
    return pa.Table.from_batches([], pa.schema(fields))  # `empty_table` imports pandas


def with_open_questions(folder: Path, before: Manifest | None, manifest: Manifest) -> Manifest:
    """The manifest with the counter `pending`, the questions that a model or an agent has still to answer:
    what asks for it, such as a list of tools, must not wait for a table to be opened. Earlier releases did
    not count them."""
    version = manifest.tables.get("pending")
    counted = version is None or "pending" in manifest.counters
    if counted and version == (before.tables.get("pending") if before else None):
        return manifest
    kinds = open_questions(Snapshot(folder, manifest), ["kind"]) if version is not None else []
    return replace(manifest, counters={**manifest.counters, "pending": len(kinds)})


def open_questions(snapshot: Snapshot, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """The rows of `pending` that this release asks about."""
    rows = snapshot.rows("pending", columns=columns or TABLES["pending"].names).to_pylist()
    return [row for row in rows if row["kind"] in ASKED]


def open_snapshot(folder: Path, manifest: Manifest | None = None, keep: bool = True) -> Snapshot:
    """A reader of that generation, else the current one (or NotFound). `keep`: for searches."""
    return Snapshot(folder, manifest or manifests.current(folder), keep)


def apply(folder: Path, manifest: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
    """Write changes beside what `manifest` names; gives {table: version} of the next. NOT a commit.

    Only for the holder of the writer's lock. For a second call before the commit pass
    `replace(manifest, tables=<what the first gave>)`, else the first call's writes are rolled
    back. A table of an earlier release that this one does not know is left out."""
    tables = manifest.tables if manifest else {}
    named = {name: version for name, version in tables.items() if name in TABLES}
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    database, versions = connect(folder), dict(named)
    for name in sorted(changes):
        new = changes[name].rows
        rows = None if new is None else sealed(name, new)
        with manifests.writing(folder):
            if name in named:
                removed = changes[name].gone
                versions[name] = _change_table(database, name, named[name], removed, rows)
            elif rows is not None:  # what lies there under this name belongs to no generation
                table = database.create_table(name, data=rows, mode="overwrite")
                if rows.num_rows:
                    indexed(table, name)
                versions[name] = table.version
    return versions


def compact(folder: Path, manifest: Manifest, margin: float = 60.0, *, idle: bool = False) -> dict[str, int] | None:
    """Merge tails and small files where it pays; new versions, or None. NOT a commit.

    Only for the holder of the writer's lock. Also frees the versions that are older, by `margin`
    seconds, than every version that a kept generation names: so what `manifest` names stays,
    whether or not a commit follows. More for many rows: Lance takes the age from the time at which
    it has merged them. `idle`: nothing else was to be done, so that a table of which the kept
    generations name one version is left with that alone, once the run's earlier generations have
    expired. Where all rows lie in one file, older versions hold nothing to free."""
    kept = [manifest, *manifests.prune(folder, manifest.generation)]
    runs = {generation.began or generation.generation for generation in kept}
    if idle and len({generation.generation for generation in kept}) > len(runs):
        return None  # LanceDB is not imported for that
    versions, named, left = dict(manifest.tables), {}, {}
    current = sorted(TABLES.keys() & manifest.tables.keys())  # an earlier release had others
    for name in current:
        named[name] = {generation.tables[name] for generation in kept if name in generation.tables}
        left[name] = _older(folder, name, min(named[name]))
    alone = {name for name in named if idle and left[name] and len(named[name]) == 1 and _parts(folder, name) > 1}
    if idle and not alone:
        return None
    database = connect(folder)
    for name in current:
        version = manifest.tables[name]
        table = database.open_table(name, version=version)
        if not (name in alone or left[name] >= LEFT_BEHIND or _worth_compacting(table, name)):
            continue
        # Else damage is copied, and looks sound.
        if wrong := spoiled(folder, manifest.files, name):
            log.warning("%s; table %s is not compacted", wrong[0], name)
            continue
        written = {version["version"]: version["timestamp"] for version in table.list_versions()}
        if not named[name] <= written.keys():
            continue  # a kept generation that cannot be read
        age = max(_age(written[version]) for version in named[name])
        age += margin + table.count_rows() / MERGED
        with manifests.writing(folder):
            table = writable(database, name, version)
            table.optimize(cleanup_older_than=timedelta(seconds=age))
            # Nothing was merged, so nothing will be, and Lance keeps the newest version.
            if name in alone and table.version == version:
                table.optimize(cleanup_older_than=timedelta(milliseconds=1))
            versions[name] = table.version
    return versions if versions != manifest.tables else None


def _age(written: datetime) -> float:
    """In seconds, of instants: local times are an hour off at the end of summer."""
    return max(time.time() - written.timestamp(), 0.0)


def _parts(folder: Path, table: str) -> int:
    """In how many files the rows of all versions of a table lie."""
    data = folder / "tables" / f"{table}.lance" / "data"
    return len(os.listdir(data)) if data.exists() else 0


def _older(folder: Path, table: str, version: int) -> int:
    """How many versions of a table lie there that are older than this one. A table that is written
    again each time has no tail, so nothing else tells that it leaves files behind."""
    names = os.listdir(folder / "tables" / f"{table}.lance" / "_versions")
    # Lance counts its files down, so that the newest is first.
    stems = (name[:-9] for name in names)
    return sum(stem.isdigit() and (1 << 64) - 1 - int(stem) < version for stem in stems)


def _change_table(database: Any, name: str, version: int, removed: Sequence[str], rows: pa.Table | None) -> int:
    table = writable(database, name, version)
    removed = list(dict.fromkeys(removed))
    if not removed and (rows is None or not rows.num_rows):
        return version
    key = KEY.get(name, "id")
    for where in in_lists(key, removed):
        table.delete(where)
    before = table.count_rows()
    if rows is not None and rows.num_rows:
        table.add(rows)
        if rows.num_rows >= max(before, 1) and (before == 0 or rows.num_rows > TAIL_ROWS):
            indexed(table, name)  # the tail would outweigh what is indexed
    return table.version


def _worth_compacting(table: Any, name: str) -> bool:
    if table.stats()["fragment_stats"]["num_fragments"] >= TAIL_FRAGMENTS:
        return True
    stats = table.index_stats(f"{FULL_TEXT.get(name) or SCALAR[name][0]}_idx")
    most = max(TAIL_ROWS, TAIL_SHARE * table.count_rows())
    return stats is not None and stats.num_unindexed_rows > most


# ---- nearest rows --------------------------------------------------------------------------------

# Digits of a similarity: the same text in another batch of an embedding differs in the seventh.
DIGITS = 5

# Passages for which the mean of a language is taken for that of all: 1, 5 and 10 give 81, 78 and 78 of
# 100 hits across languages, and 30, 67 and 67 where the passage is the only one in its language.
PRIOR = 5.0


@dataclass(frozen=True, slots=True)
class Matrix:
    """Vectors of unit length, (rows, numbers), with the ids of the rows, their places, for each row
    the number of its language, and what its similarities owe to being near to everything."""

    ids: list[str]
    places: dict[str, int]
    vectors: Any
    languages: Any
    central: Any


_matrices: WeakKeyDictionary[Snapshot, dict[str, Matrix]] = WeakKeyDictionary()
_lock = threading.Lock()


def nearest(snapshot: Snapshot, table: str, vector: bytes, limit: int) -> list[tuple[str, float]]:
    """At most `limit` rows of `table` with vectors nearest to `vector` (float32 bytes); [] when
    there are none, or of another dimension (another model's, until the next indexing)."""
    found = similarities(snapshot, table, vector, limit)
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def similarities(
    snapshot: Snapshot, table: str, vector: bytes, limit: int, also: Sequence[str] = (), flat: int = FLAT
) -> dict[str, float]:
    """Similarities of the `limit` nearest rows and of `also`, by id, with the languages of the rows
    on an equal footing, and in several languages without what a row owes to being near to everything;
    over `flat` rows by Lance, and then as they are."""
    import numpy as np

    query = np.frombuffer(vector, "<f4")
    norm = float(np.linalg.norm(query))
    name = VECTORS[table]
    count = snapshot.count(name)
    if not count or not norm or limit < 1:
        return {}
    query = query / norm
    if count > flat:
        return _searched(snapshot, name, query, limit, also)
    matrix = _matrix(snapshot, name)
    if matrix.vectors.shape[1] != len(query):
        return {}
    scores = _compared(matrix.vectors, query) - matrix.central
    scores = np.round(scores - _of_language(scores, matrix.languages), DIGITS)
    ids, places = matrix.ids, matrix.places
    if limit < count:
        # Of rows that are equally near, those whose ids come first.
        edge = np.partition(scores, count - limit)[count - limit]
        inside = np.flatnonzero(scores > edge).tolist()
        ties = sorted(np.flatnonzero(scores == edge).tolist(), key=ids.__getitem__)
        chosen = inside + ties[: limit - len(inside)]
    else:
        chosen = list(range(count))
    chosen += [places[id] for id in also if id in places]
    return {ids[at]: round(float(scores[at]), DIGITS) for at in chosen}


def _searched(snapshot: Snapshot, name: str, query: Any, limit: int, also: Sequence[str]) -> dict[str, float]:
    """The same by Lance's index; the rows of `also` are read and compared here."""
    first = snapshot.rows(name, columns=["id", "vector"], limit=1)
    if _unit(first).shape[1] != len(query):
        return {}
    nearest = snapshot.nearest(name, query, limit)
    found: dict[str, float] = {id: round(score, DIGITS) for id, score in nearest}
    missing = [id for id in also if id not in found]
    rows = snapshot.by_key(name, missing, "id", ["id", "vector"])
    if found and rows.num_rows:
        scores = (round(score, DIGITS) for score in _compared(_unit(rows), query).tolist())
        found |= dict(zip(values_of(rows["id"]), scores, strict=True))
    return found


def _compared(matrix: Any, query: Any) -> Any:
    """Not by `@`: that wakes a thread per core for 2 ms, and their number decides the sums."""
    import numpy as np

    return np.round(np.einsum("ij,j->i", matrix, query), DIGITS)


def _of_language(scores: Any, languages: Any) -> Any:
    """For each row what its similarity owes to its language: a model puts the texts of one language
    together, so that a question is nearer to all texts of its own language than to the one that
    answers it in another. It is the mean of the language less that of all rows, shrunk to 0 for
    languages of few rows (Efron and Morris 1975), and 0 where all rows are in one language."""
    import numpy as np

    counts = np.bincount(languages)
    means = np.bincount(languages, scores) / counts
    return ((means - scores.mean()) * counts / (counts + PRIOR))[languages]


def _matrix(snapshot: Snapshot, name: str) -> Matrix:
    """The vectors of a whole table, read once a snapshot."""
    import numpy as np

    snapshot = snapshot.whole
    with _lock:
        matrices = _matrices.setdefault(snapshot, {})
        if name not in matrices:
            current = snapshot.manifest.parameters.get("vectors") == VECTOR_FORM
            rows = snapshot.rows(name, columns=["id", "vector", *(["language"] if current else ())])
            ids = values_of(rows["id"])
            named = values_of(rows["language"]) if current else [""] * len(ids)
            languages = np.unique(named, return_inverse=True)[1]
            places = {id: at for at, id in enumerate(ids)}
            vectors = _unit(rows)
            central = np.zeros(len(ids), "<f4")
            if name == VECTORS["passages"] and languages.any():
                central = _central(vectors, languages, _files(snapshot, ids))
            matrices[name] = Matrix(ids, places, vectors, languages, central)
        return matrices[name]


def _files(snapshot: Snapshot, ids: Sequence[str]) -> list[str]:
    """The file of each of these passages: rows of a sheet and mails of a box are parts of one."""
    named = dict(rows_of(snapshot.rows("passages", columns=["id", "uri"])))
    return [file_and_key(named.get(id, id))[0] for id in ids]


def _central(vectors: Any, languages: Any, files: Sequence[str]) -> Any:
    """For each row its similarity to the middle of all files, less the mean of that, times the chance
    that two files are in different languages (Simpson 1949). Some texts, such as instructions for
    programs, are near to whatever is asked (hubs: Radovanović et al. 2010), and nearer than the answer
    in another language. In one language the middle is also what the texts are about: 0 there. Each file
    counts once, so that the 1,500 rows of a sheet are no middle, in the language of most of its rows.

    Hits across languages by vectors alone, of 72: 56 to 67 among 50 texts, 51 to 65 in a folder that
    also has READMEs, licences and generated files; in the same language 22 to 23, and 24 as before. News
    beside Chinese texts 73.3 to 73.1, chats beside others 82.5 to 80.0."""
    import numpy as np

    numbers = np.unique(files, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    middle = (np.add.reduceat(vectors[order], starts, dtype="<f8") / sizes[:, None]).mean(axis=0)
    known = languages.max() + 1
    rows = np.bincount(numbers * known + languages, minlength=len(starts) * known)
    main = rows.reshape(len(starts), known).argmax(axis=1)  # the first by name of equally many rows
    shares = np.bincount(main) / len(starts)
    near = np.einsum("ij,j->i", vectors, middle)
    apart = 1 - float((shares**2).sum())
    return np.round(apart * (near - near.mean()), DIGITS)


def _unit(rows: pa.Table) -> Any:
    import numpy as np

    vectors: Any = rows["vector"].combine_chunks()
    numbers = vectors.flatten().to_numpy(zero_copy_only=False)
    matrix = numbers.reshape(rows.num_rows, -1).astype("<f4")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths == 0, 1, lengths)
