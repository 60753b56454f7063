"""The reply cache: replies and vectors of models, durable, found by a hash of the request.

One SQLite file beside the index, `answers.db`, shared by indexing, querying and processes. It
belongs to no generation: a key names content. SQLite has no checksums, so each row has one."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import Busy, Damaged
from graphrag_mcp.store.manifest import now

NAME = "answers.db"
# Of a damaged book: rows read at once, looked for where it does not say, written at once.
ROWS_AT_ONCE, MOST_ROWS, TOGETHER = 16, 1 << 18, 256
REFUSED = "refused"  # the kind of an entry that holds why a model's replies could not be used
WAIT_SECONDS = 30.0  # for another process that is writing
# Vectors have a rowid: without one each takes a page beside its cell, and 11,000 of 384 numbers
# took 56 MB and 1.26 s of CPU with 699 answers instead of 28 MB and 0.57. Earlier books stay.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key TEXT, answerer TEXT, kind TEXT, text TEXT, prompt_tokens INTEGER,
    output_tokens INTEGER, time TEXT, mark TEXT, PRIMARY KEY (key, answerer)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS kinds ON answers (kind);
CREATE TABLE IF NOT EXISTS vectors (key TEXT, model TEXT, vector BLOB, tokens INTEGER, time TEXT, mark TEXT,
    PRIMARY KEY (key, model));
"""
_COLUMNS = {
    "answers": ("key", "answerer", "kind", "text", "prompt_tokens", "output_tokens", "time"),
    "vectors": ("key", "model", "vector", "tokens", "time"),
}

_REPAIR = "Run graphrag-mcp doctor --repair: what can be read of it is kept"
_MOVES = {
    sqlite3.SQLITE_FULL: "Free disk space, then run it again; what is done is kept",
    sqlite3.SQLITE_READONLY: "Give this user the right to write that folder",
    sqlite3.SQLITE_CANTOPEN: "Give this user the right to write that folder",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """One answer. `answerer` is "llm:<model>" or "agent:<name>"; tokens by the provider's figures."""

    key: str
    answerer: str
    kind: str
    text: str
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class _Line:
    """A connection, opened when first needed, and who may use it now."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: sqlite3.Connection | None = None


class AnswerBook:
    """The book of one corpus, for several threads. Damaged when the file cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        # A commit waits for the disk; a look-up must not wait for it.
        self._reads, self._writes = _Line(), _Line()
        self.torn = False  # SQLite said that the file is damaged, not that it cannot be reached

    # ---- answers --------------------------------------------------------------------------------

    def get(self, key: str, preferred: str = "") -> list[Stored]:
        """Answers to a question: the preferred answerer's, then models', then agents', by name."""
        rows = self._read("SELECT * FROM answers WHERE key = ? AND kind <> ?", (key, REFUSED))
        found = [Stored(*row[:6]) for row in rows if self._whole("answers", row)]
        return sorted(
            found, key=lambda stored: (stored.answerer != preferred, stored.answerer[:4] != "llm:", stored.answerer)
        )

    def refusal(self, key: str, answerer: str) -> str:
        """Why the replies of this model to a question were refused; "" where they were not."""
        query = "SELECT * FROM answers WHERE key = ? AND answerer = ? AND kind = ?"
        rows = self._read(query, (key, answerer, REFUSED))
        return next((row[3] for row in rows if self._whole("answers", row)), "")

    def put(self, answers: Iterable[Stored]) -> None:
        """Write answers durably; an answerer's later one replaces its own."""
        self._write("answers", map(_row, answers))

    def replace(self, answers: Iterable[Stored]) -> None:
        """As `put`; other agents' answers to the same questions go, those of models stay."""
        answers = list(answers)
        with self._session(self._writes) as connection:
            keys = [(answer.key, answer.answerer) for answer in answers]
            other = "key = ? AND answerer <> ? AND answerer LIKE 'agent:%'"
            connection.executemany(f"DELETE FROM answers WHERE {other}", keys)
            insert(connection, "answers", map(_row, answers))

    def kinds(self) -> dict[str, int]:
        """How many answers there are, by kind; vectors as "embedding"."""
        counts = dict(self._read("SELECT kind, COUNT(*) FROM answers GROUP BY kind ORDER BY kind"))
        vectors = sum(count for (count,) in self._read("SELECT COUNT(*) FROM vectors"))
        return counts | ({"embedding": vectors} if vectors else {})

    def has(self, kind: str) -> bool:
        return bool(self._read("SELECT 1 FROM answers WHERE kind = ? LIMIT 1", (kind,)))

    def listing(self, kind: str = "") -> Iterator[dict[str, Any]]:
        """Key, kind, answerer, tokens and time of each answer, without its text."""
        names = ("key", "kind", "answerer", "prompt_tokens", "output_tokens", "time")
        where = "WHERE ? IN ('', kind) ORDER BY time, key"
        for row in self._read(f"SELECT {', '.join(names)} FROM answers {where}", (kind,)):
            yield dict(zip(names, row, strict=True))

    def of_kind(self, kind: str, holding: str) -> list[Stored]:
        """The answers of a kind whose text holds these words, by key."""
        query = "SELECT * FROM answers WHERE kind = ? AND instr(text, ?) ORDER BY key, answerer"
        rows = self._read(query, (kind, holding))
        return [Stored(*row[:6]) for row in rows if self._whole("answers", row)]

    def clear(self, kind: str = "") -> int:
        """Forget the answers of a kind ("embedding": the vectors), or everything; gives how many."""
        with self._session(self._writes) as connection:
            if kind == "embedding":
                return connection.execute("DELETE FROM vectors").rowcount
            if kind:
                return connection.execute("DELETE FROM answers WHERE kind = ?", (kind,)).rowcount
            return sum(connection.execute(f"DELETE FROM {table}").rowcount for table in _COLUMNS)

    # ---- vectors --------------------------------------------------------------------------------

    def vectors(self, keys: Sequence[str], model: str) -> dict[str, bytes]:
        """float32 vectors by key, of those that are there and whole."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ", ".join("?" * len(part))
            query = f"SELECT * FROM vectors WHERE model = ? AND key IN ({marks})"
            rows = self._read(query, (model, *part))
            found.update({row[0]: row[2] for row in rows if self._whole("vectors", row)})
        return found

    def length(self, model: str) -> int:
        """The bytes of the first kept vector of this model; 0 when none is there."""
        first = "SELECT LENGTH(vector) FROM vectors WHERE model = ? LIMIT 1"
        return sum(length for (length,) in self._read(first, (model,)))

    def put_vectors(self, model: str, vectors: Mapping[str, bytes], tokens: int) -> None:
        """Write the vectors of one call, which cost `tokens` together."""
        time, share = now(), tokens // max(len(vectors), 1)
        rows = [(key, model, vector, share, time) for key, vector in vectors.items()]
        self._write("vectors", rows)

    # ---- upkeep ---------------------------------------------------------------------------------

    def probe(self) -> None:
        """Raises Damaged when the file cannot be used; costs one row of each table."""
        for table in _COLUMNS:
            self._read(f"SELECT * FROM {table} LIMIT 1")

    def verify(self) -> list[str]:
        """What is wrong, one line each: rows that do not match check values, SQLite's words."""
        if not self.path.exists():
            return []
        wrong = []
        try:
            for table in _COLUMNS:
                for row in self._read(f"SELECT * FROM {table}"):
                    if not self._whole(table, row):
                        named = f"{NAME}: {table} {str(row[0])[:12]}"
                        wrong.append(f"{named} does not match its check value")
            verdict = self._read("PRAGMA integrity_check")
        except Damaged as error:
            return [*wrong, f"{NAME}: {error.what}"]
        return wrong + [f"{NAME}: {line}" for (line,) in verdict if line != "ok"]

    def close(self) -> None:
        for line in (self._reads, self._writes):
            with line.lock:
                if line.connection is not None:
                    line.connection.close()
                    line.connection = None

    def _whole(self, table: str, row: Sequence[Any]) -> bool:
        if _mark(row[:-1]) == row[-1]:
            return True
        message = "%s: an entry of %s does not match its check value and is not used"
        log.warning(message, self.path, table)
        return False

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            if self._reads.connection is None and not self.path.exists():
                return []  # asking a question makes no file
        except OSError as error:
            raise self._unusable(error) from error
        with self._session(self._reads) as connection:
            return connection.execute(statement, values).fetchall()

    def _write(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        with self._session(self._writes) as connection:
            insert(connection, table, rows)

    @contextlib.contextmanager
    def _session(self, line: _Line) -> Iterator[sqlite3.Connection]:
        """A transaction on one of two connections; what SQLite says of damage is Damaged."""
        with line.lock:
            try:
                if line.connection is None:
                    line.connection = self._open()
                with line.connection:
                    yield line.connection
            except sqlite3.OperationalError as error:
                if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise self._unusable(error) from error
                what = f"another process has been writing {self.path} for long"
                raise Busy(what, "Run it again later") from error
            except (sqlite3.DatabaseError, OSError) as error:
                raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> Damaged:
        reason = error.strerror if isinstance(error, OSError) else error
        self.torn |= _code(error) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
        move = _REPAIR if os.path.isdir(self.path) else _MOVES.get(_code(error), _REPAIR)
        return Damaged(f"the reply cache {self.path} cannot be used ({reason})", move)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, check_same_thread=False)
        try:
            connection.text_factory = _text
            # Reading beside writing. Of two connections that ask at once one fails; that is enough.
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _row(stored: Stored) -> tuple[Any, ...]:
    return (stored.key, stored.answerer, stored.kind, stored.text, stored.prompt_tokens, stored.output_tokens, now())


def insert(connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Put rows into a table of the cache, each with a check value."""
    marks = ", ".join("?" * (len(_COLUMNS[table]) + 1))
    marked = [(*row, _mark(row)) for row in rows]
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", marked)


def salvage(folder: Path) -> int:
    """Copy the whole entries of a damaged book into a new one that replaces it; gives how many. A
    copy (`answers.db.damaged`) stays. Stopped on the way, the book is as it was."""
    path = folder / NAME
    aside, making = path.with_name(f"{NAME}.damaged"), path.with_name(f"{NAME}.made")
    if path.is_dir():  # no book at all, and perhaps someone's files
        path.rename(path.with_name(f"{NAME}.folder-{time.time_ns()}"))
        return 0
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for suffix in ("", "-wal", "-shm"):
        old, beside = (path.with_name(path.name + suffix) for path in (aside, path))
        old.unlink(missing_ok=True)  # of an earlier time
        if beside.exists():
            shutil.copyfile(beside, old)
    _lengthen(aside)
    saved = 0
    book = AnswerBook(making)
    with contextlib.closing(sqlite3.connect(aside)) as damaged:
        damaged.text_factory = _text
        for table in _COLUMNS:
            rows = _readable(damaged, table)
            while batch := list(islice(rows, TOGETHER)):
                book._write(table, batch)
                saved += len(batch)
    book.close()
    for suffix in ("-wal", "-shm"):  # beside another file they would be taken for its own
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    if saved:
        os.replace(making / NAME, path)
    else:
        path.unlink(missing_ok=True)
    shutil.rmtree(making, ignore_errors=True)
    return saved


def _lengthen(path: Path) -> None:
    """A file that lost its end is refused as a whole; with zeros in its place the rest can be read."""
    with contextlib.suppress(OSError), path.open("r+b") as file:
        head = file.read(32)
        page = int.from_bytes(head[16:18], "big")
        size = (65_536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
        if head.startswith(b"SQLite format 3") and path.stat().st_size < size <= 1 << 40:
            file.truncate(size)


def _readable(damaged: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """The whole rows of a damaged table, without their check values. It is read in parts as it is
    stored, by rowid or by key: a damaged page ends the reading of a part."""
    parts: list[tuple[Any, Any]] = [(f"{part:02x}", f"{part:02x}g") for part in range(256)]
    column = "key"
    with contextlib.suppress(sqlite3.DatabaseError):
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        (ddl,) = damaged.execute(query, (table,)).fetchone() or ("WITHOUT ROWID",)
        if "WITHOUT ROWID" not in ddl:
            column, last = "rowid", MOST_ROWS
            with contextlib.suppress(sqlite3.DatabaseError):
                (last,) = damaged.execute(f"SELECT max(rowid) FROM {table}").fetchone()
            parts = [(at, at + ROWS_AT_ONCE) for at in range(0, (last or 0) + 1, ROWS_AT_ONCE)]
    index = "NOT INDEXED" if column == "rowid" else ""
    query = f"SELECT * FROM {table} {index} WHERE {column} >= ? AND {column} < ?"
    for part in parts:
        with contextlib.suppress(sqlite3.DatabaseError):
            rows = damaged.execute(query, part)
            yield from (row[:-1] for row in rows if _mark(row[:-1]) == row[-1])


def _text(raw: bytes) -> str:
    """What is no UTF-8 was not written by us: such a row fails its check and is not used."""
    return raw.decode("utf-8", "replace")


def _code(error: Exception) -> int:
    if isinstance(error, OSError):
        return sqlite3.SQLITE_CANTOPEN
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _mark(row: Sequence[Any]) -> str:
    """The check value of a row: over every column, with lengths, so that no two rows look alike."""
    hashed = hashlib.sha256()
    for value in row:
        raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(raw))
        hashed.update(raw)
    return hashed.hexdigest()[:32]
