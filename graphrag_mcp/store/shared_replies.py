"""The reply cache of a corpus on object storage: what one machine was answered, the others know.

A corpus's book is the SQLite file of this machine, of which rows go to the store a moment after
they were written, and into which those of other machines come when a question finds no answer. On
the store rows are Parquet segments under the SHA-256 of their content, by kind. Of two rows with
one key, deletions too, the later counts: the order of segments changes nothing."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import Damaged, GraphRAGError
from graphrag_mcp.store import mirror
from graphrag_mcp.store.manifest import mirrored, writer_lock
from graphrag_mcp.store.reply_cache import REFUSED, WAIT_SECONDS, AnswerBook, Stored, insert, salvage

if TYPE_CHECKING:
    import sqlite3

SEND_SECONDS = 1.0  # after a row was written; rows of that time make one segment
BACK_OFF = 60.0  # after a failure of the store: a question must not wait for it each time
TOGETHER = 5_000  # rows of a segment
SEGMENTS = 32  # of a kind; more are merged
EMBEDDING = "embedding"
# What indexing asks. It is most of a book, and a search has no use for it.
OF_INDEXING = frozenset({"extract", "glean", "report", "summary", "picture", REFUSED, EMBEDDING})
# A trigger sees each row written or deleted. `gone` keeps deletions for merges of segments.
_TABLES = """
CREATE TABLE IF NOT EXISTS fetched (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT, key TEXT, by TEXT, kind TEXT);
CREATE TABLE IF NOT EXISTS gone (place TEXT, key TEXT, by TEXT, kind TEXT, time TEXT, PRIMARY KEY (place, key, by))
    WITHOUT ROWID;
"""
_OF_TABLE = (
    """CREATE TRIGGER written_{place} AFTER INSERT ON {place} BEGIN
    DELETE FROM gone WHERE place = '{place}' AND key = NEW.key AND by = NEW.{by};
    INSERT INTO outbox (place, key, by, kind) VALUES ('{place}', NEW.key, NEW.{by}, {new});
END""",
    """CREATE TRIGGER deleted_{place} AFTER DELETE ON {place} BEGIN
    INSERT OR REPLACE INTO gone VALUES ('{place}', OLD.key, OLD.{by}, {old}, strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now'));
    INSERT INTO outbox (place, key, by, kind) VALUES ('{place}', OLD.key, OLD.{by}, {old});
END""",
    "INSERT INTO outbox (place, key, by, kind) SELECT '{place}', key, {by}, {all} FROM {place}",
)
_BY = {"answers": "answerer", "vectors": "model"}
_ROWS = {
    "answers": "SELECT 'answers', key, answerer, kind, text, NULL, prompt_tokens, output_tokens, time, 0 FROM answers",
    "vectors": "SELECT 'vectors', key, model, 'embedding', NULL, vector, tokens, 0, time, 0 FROM vectors",
}
_GONE = "SELECT place, key, by, kind, NULL, NULL, 0, 0, time, 1 FROM gone"
_FIELDS = ("place", "key", "by", "kind", "text", "vector", "tokens", "output", "time", "gone")

log = logging.getLogger(__name__)


class SharedBook(AnswerBook):
    """The book of a corpus on object storage. With `indexing` it knows what all kinds of questions
    were answered, else what those of searches were."""

    def __init__(self, folder: Path, store: mirror.Store, *, indexing: bool) -> None:
        super().__init__(folder)
        self._store, self._prefix = store, f"corpora/{folder.name}/{mirror.REPLIES}"
        self._indexing = indexing
        self._next_look = self._next_send = 0.0
        self._pulling, self._sending = threading.Lock(), threading.Lock()
        self._timer: threading.Timer | None = None
        self._timing = threading.Lock()

    # ---- as a book ------------------------------------------------------------------------------

    def get(self, key: str, preferred: str = "") -> list[Stored]:
        return super().get(key, preferred) or (self._pull() and super().get(key, preferred)) or []

    def has(self, kind: str) -> bool:
        return super().has(kind) or (self._pull() and super().has(kind))

    def vectors(self, keys: Sequence[str], model: str) -> dict[str, bytes]:
        found = super().vectors(keys, model)
        if self._indexing and len(found) < len(set(keys)) and self._pull():
            return super().vectors(keys, model)
        return found

    def probe(self) -> None:
        super().probe()
        self._pull()
        self._later()  # what a killed process has left

    def replace(self, answers: Iterable[Stored]) -> None:
        super().replace(answers)
        self._later()

    def clear(self, kind: str = "") -> int:
        self._pull()
        cleared = super().clear(kind)
        self._later()
        return cleared

    def close(self) -> None:
        with self._timing:
            waits, self._timer = self._timer, None
        if waits is not None:
            waits.cancel()
            self._send()
        atexit.unregister(self.close)
        with self._sending:
            super().close()

    def _write(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        super()._write(table, rows)
        self._later()

    def _open(self) -> sqlite3.Connection:
        connection = super()._open()
        connection.executescript(_TABLES)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            for place, by in _BY.items():
                if f"written_{place}" in known:
                    continue
                kinds = {"new": "NEW.kind", "old": "OLD.kind", "all": "kind"}
                if place == "vectors":
                    kinds = dict.fromkeys(kinds, f"'{EMBEDDING}'")
                for statement in _OF_TABLE:
                    connection.execute(statement.format(place=place, by=by, **kinds))
        return connection

    # ---- to the store ---------------------------------------------------------------------------

    def _later(self) -> None:
        with self._timing:
            if self._timer is None and self.path.exists():
                self._timer = threading.Timer(SEND_SECONDS, self._on_time)
                self._timer.daemon = True
                self._timer.start()
                atexit.register(self.close)  # of a command that ends sooner

    def _on_time(self) -> None:
        with self._timing:
            self._timer = None
        self._send()

    def _send(self) -> None:
        """Take what was written to the store; what fails goes with the next row or opening."""
        with self._sending:
            if time.monotonic() < self._next_send:
                return
            try:
                while waiting := self._read(f"SELECT * FROM outbox ORDER BY id LIMIT {TOGETHER}"):
                    self._send_rows(waiting)
            except GraphRAGError as error:
                self._next_send = time.monotonic() + BACK_OFF
                log.warning("replies of models are kept on this machine only: %s", error.what)

    def _send_rows(self, waiting: Sequence[tuple[int, str, str, str, str]]) -> None:
        sent = []
        for kind in sorted({kind for *_, kind in waiting}):
            keys = {(place, key, by) for _, place, key, by, row_kind in waiting if row_kind == kind}
            rows = [row for key in sorted(keys) for row in self._current(*key)]
            if rows:
                sent.append(self._put(kind, _segment(rows)))
        with self._session(self._writes) as connection:
            connection.executemany("DELETE FROM outbox WHERE id = ?", [(id,) for id, *_ in waiting])
            connection.executemany("INSERT OR IGNORE INTO fetched VALUES (?)", sent)
        for (name,) in sent:
            self._merge(name.partition("/")[0])

    def _current(self, place: str, key: str, by: str) -> list[tuple[Any, ...]]:
        return self._read(f"{_ROWS[place]} WHERE key = ? AND {_BY[place]} = ?", (key, by)) or self._read(
            f"{_GONE} WHERE place = ? AND key = ? AND by = ?", (place, key, by)
        )

    def _put(self, kind: str, raw: bytes) -> tuple[str]:
        name = f"{kind}/{hashlib.sha256(raw).hexdigest()}"
        self._store.put(f"{self._prefix}{name}", raw)
        return (name,)

    def _merge(self, kind: str) -> None:
        """Make one of many small segments of a kind. Two that do so at once leave rows twice."""
        objects = self._store.listed(f"{self._prefix}{kind}/")
        if len(objects) <= SEGMENTS:
            return
        chosen: list[dict[str, Any]] = []
        for file in sorted(objects, key=lambda file: (file["size"], file["path"])):
            if len(chosen) >= SEGMENTS // 2 and file["size"] > sum(each["size"] for each in chosen):
                break
            chosen.append(file)
        with contextlib.suppress(mirror.Absent):  # merged by another machine meanwhile
            newest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
            for row in (row for file in chosen for row in self._rows(file["path"])):
                if row[:3] not in newest or row[-2:] > newest[row[:3]][-2:]:
                    newest[row[:3]] = row
            merged = self._put(kind, _segment([newest[key] for key in sorted(newest)]))
            if self._import([file["path"] for file in chosen]):
                with self._session(self._writes) as connection:
                    connection.execute("INSERT OR IGNORE INTO fetched VALUES (?)", merged)
            path = f"{self._prefix}{merged[0]}"
            self._store.delete([file["path"] for file in chosen if file["path"] != path])

    # ---- from the store -------------------------------------------------------------------------

    def _pull(self) -> bool:
        """Take in others' answers, unless that was done a moment ago. Is anything new?"""
        with self._pulling:
            if time.monotonic() < self._next_look:
                return False
            try:
                new = self._take_in()
            except GraphRAGError as error:
                self._next_look = time.monotonic() + BACK_OFF
                log.warning("replies that other machines have are not known: %s", error.what)
                return False
            self._next_look = time.monotonic() + mirror.POLL_SECONDS
            return new

    def _take_in(self) -> bool:
        known = {name for (name,) in self._read("SELECT name FROM fetched")}
        for _ in range(mirror.TRIES):
            listed = [file["path"] for file in self._store.listed(self._prefix)]
            missing = [
                path
                for path in listed
                if (name := path.removeprefix(self._prefix)) not in known
                and (self._indexing or name.partition("/")[0] not in OF_INDEXING)
            ]
            if not missing or self._import(missing):
                return bool(missing)
        return True

    def _import(self, paths: Sequence[str]) -> bool:
        """Take in these segments. False when one is gone, as where it was merged meanwhile."""
        for path in paths:
            name = path.removeprefix(self._prefix)
            if self._read("SELECT 1 FROM fetched WHERE name = ?", (name,)):
                continue
            try:
                rows = self._rows(path)
            except mirror.Absent:
                return False
            with self._session(self._writes) as connection:
                (last,) = connection.execute("SELECT max(id) FROM outbox").fetchone()
                for row in rows:
                    _take(connection, dict(zip(_FIELDS, row, strict=True)))
                # What came from the store is not sent there.
                connection.execute("DELETE FROM outbox WHERE id > ?", (last or 0,))
                connection.execute("INSERT OR IGNORE INTO fetched VALUES (?)", (name,))
        return True

    def _rows(self, path: str) -> list[tuple[Any, ...]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        raw, _ = self._store.get(path)
        if hashlib.sha256(raw).hexdigest() != path.rpartition("/")[2]:
            log.warning("object %s of the store is not what was written, and is not used", path)
            return []
        try:
            table = pq.read_table(io.BytesIO(raw), columns=list(_FIELDS))
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"object {path} of the store cannot be read", "Delete it") from error
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _take(connection: sqlite3.Connection, row: Mapping[str, Any]) -> None:
    """One row of another machine: it counts when it is later than what is known of its key. Of a
    row and a deletion of the same second the deletion counts: at worst a question is asked again."""
    place, key, by = row["place"], row["key"], row["by"]
    where = f"key = ? AND {_BY[place]} = ?"
    here = connection.execute(f"SELECT time FROM {place} WHERE {where}", (key, by)).fetchone()
    query = "SELECT time FROM gone WHERE place = ? AND key = ? AND by = ?"
    removed = connection.execute(query, (place, key, by)).fetchone()
    known = max((*(here or ("",)), 0), (*(removed or ("",)), 1))
    if (row["time"], row["gone"]) <= known:
        return
    if row["gone"]:
        connection.execute(f"DELETE FROM {place} WHERE {where}", (key, by))
        values = (place, key, by, row["kind"], row["time"])
        connection.execute("INSERT OR REPLACE INTO gone VALUES (?, ?, ?, ?, ?)", values)
    elif place == "vectors":
        insert(connection, place, [(key, by, row["vector"], row["tokens"], row["time"])])
    else:
        row_values = (key, by, row["kind"], row["text"], row["tokens"], row["output"], row["time"])
        insert(connection, place, [row_values])


def _segment(rows: Sequence[Sequence[Any]]) -> bytes:
    """Rows as a Parquet file; the same rows give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = dict.fromkeys(_FIELDS, pa.string())
    types |= {"vector": pa.binary(), "tokens": pa.int64(), "output": pa.int64(), "gone": pa.int8()}
    sink, schema = io.BytesIO(), pa.schema(list(types.items()))
    table = pa.table(dict(zip(_FIELDS, map(list, zip(*rows, strict=True)), strict=True)), schema)
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def book(folder: Path, *, indexing: bool = True) -> AnswerBook:
    """The book of a corpus, shared with other machines where it is on object storage."""
    if (store := mirrored(folder)) is None:
        return AnswerBook(folder)
    return SharedBook(folder, store.store, indexing=indexing)


def open_book(folder: Path, *, mend: bool, needed: bool) -> tuple[AnswerBook | None, str]:
    """The book of a corpus, and what its reader should be told.

    One that SQLite says is damaged is set aside when `mend` is given, and a new one has what could
    be read of it. One that is not `needed`, as searches do not, is done without when it cannot be
    used; else Damaged says so at the first look."""
    found = book(folder, indexing=needed)
    try:
        found.probe()
        return found, ""
    except Damaged as error:
        found.close()
        if mend and found.torn:
            with writer_lock(folder, WAIT_SECONDS):
                again = book(folder, indexing=needed)  # who held the lock may have mended it
                with contextlib.suppress(Damaged):
                    again.probe()
                    return again, ""
                saved = salvage(folder)
            message = f"The reply cache was damaged; {saved:,} whole answers and vectors were kept."
            return book(folder, indexing=needed), message
        if needed:
            return found, ""
        log.warning("%s", error)
        return None, str(error)
