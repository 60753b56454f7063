"""Leases of work items among agents, and corrections of submissions, in SQLite (`work.db`).

An item's short id (`w1a2b3c4d5e6`) is that of its question. A lease belongs to a client, not to its
connection. Corrections are questions whose answer was replaced after it was merged."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_mcp.errors import Damaged, GraphRAGError

SECONDS = 900.0  # until a claimed item is free again: an agent reads a few texts in that time
KEPT_DAYS = 30

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed question: `kind` and `subject` as in the table `pending`, `client` who claimed it
    last, `process` the server that it came through (0: none that could end)."""

    work_id: str
    key: str
    kind: str
    subject: str
    client: str = ""
    process: int = 0


@dataclass(frozen=True, slots=True)
class Correction:
    """A question whose answer was replaced; `id` tells two of one question apart."""

    id: int
    kind: str
    subject: str


def work_id(key: str) -> str:
    """The short id of a question: 48 bits of its key."""
    return f"w{key[:12]}"


def of_client(folder: Path, client: str) -> list[Lease]:
    """What a client has claimed and not yet given back."""
    return [lease for lease in _active(folder) if lease.client == client]


def taken(folder: Path, client: str) -> set[str]:
    """Keys of what other clients have claimed and hold."""
    return {lease.key for lease in _active(folder) if lease.client != client}


def _active(folder: Path) -> list[Lease]:
    with _open(folder) as db:
        query = f"SELECT {_COLUMNS} FROM leases WHERE until > ? ORDER BY work_id"
        return list(map(_lease, db.execute(query, (time.time(),))))


def take(
    folder: Path, leases: Iterable[Lease], seconds: float = SECONDS, answered: Callable[[str], bool] = lambda key: False
) -> set[str]:
    """Claim items, or extend a claim. Returns the work ids that were claimed; another client may have
    claimed the others first.

    `answered` tells whether the question of a key has a reply. It is called while the leases are
    locked, so a client that listed the open questions earlier is not given a question that another
    client has answered since."""
    now, had = time.time(), set()
    with _open(folder) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM leases WHERE until < ?", (now - KEPT_DAYS * 86_400,))
        for lease in leases:
            query = "SELECT who FROM leases WHERE work_id = ? AND until > ?"
            holder = db.execute(query, (lease.work_id, now)).fetchone()
            free = holder is None or _parts(holder[0])[0] == lease.client
            if free and not answered(lease.key):
                who = f"{lease.client}@{lease.process}"
                row = (lease.work_id, lease.key, lease.kind, lease.subject, who, now + seconds)
                db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, ?)", row)
                had.add(lease.work_id)
    return had


def free(folder: Path, is_gone: Callable[[int], bool]) -> None:
    """Items that were claimed through a process that is gone may be claimed at once. None is held
    for longer than SECONDS from now: what says so was written before the clock was put back."""
    now = time.time()
    with _open(folder) as db:
        db.execute("UPDATE leases SET until = ?1 WHERE until > ?1", (now + SECONDS,))
        holders = db.execute("SELECT DISTINCT who FROM leases WHERE until > ?", (now,)).fetchall()
        dead = [who for (who,) in holders if (process := _parts(who)[1]) and is_gone(process)]
        db.executemany("UPDATE leases SET until = ? WHERE who = ?", [(now, who) for who in dead])


def find(folder: Path, ids: Sequence[str]) -> dict[str, Lease]:
    """Claimed items by work id, also those whose lease has run out."""
    marks = ", ".join("?" * len(ids))
    with _open(folder) as db:
        rows = db.execute(f"SELECT {_COLUMNS} FROM leases WHERE work_id IN ({marks})", ids)
        return {lease.work_id: lease for lease in map(_lease, rows)}


def give_back(folder: Path, ids: Iterable[str], client: str) -> None:
    """These are done by `client`; they can still be found."""
    rows = [(time.time(), f"{client}@0", id) for id in ids]
    with _open(folder) as db:
        db.executemany("UPDATE leases SET until = ?, who = ? WHERE work_id = ?", rows)


def correct(folder: Path, leases: Iterable[Lease]) -> None:
    """The answers of these questions were replaced: the next run takes them in again."""
    with _open(folder) as db:
        rows = [(lease.kind, lease.subject) for lease in leases]
        db.executemany("INSERT INTO corrections (kind, subject) VALUES (?, ?)", rows)


def corrections(folder: Path) -> list[Correction]:
    """What waits to be taken in again, oldest first. Makes no file."""
    if not (folder / "work.db").exists():
        return []
    try:
        with _open(folder) as db:
            rows = db.execute("SELECT id, kind, subject FROM corrections ORDER BY id")
            return [Correction(*row) for row in rows]
    except GraphRAGError as error:
        # An index that is made all the same is worth more than a correction.
        log.warning("%s", error)
        return []


def corrected(folder: Path, done: Iterable[Correction]) -> None:
    """These have been taken in."""
    with _open(folder) as db:
        db.executemany("DELETE FROM corrections WHERE id = ?", [(correction.id,) for correction in done])


_COLUMNS = "work_id, key, kind, subject, who"
_TABLES = """
CREATE TABLE IF NOT EXISTS leases (work_id TEXT PRIMARY KEY, key TEXT, kind TEXT, subject TEXT, who TEXT,
    until REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS corrections (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, subject TEXT);
"""


def _lease(row: Sequence[str]) -> Lease:
    work_id, key, kind, subject, who = row
    return Lease(work_id, key, kind, subject, *_parts(who))


def _parts(who: str) -> tuple[str, int]:
    """Client and process of the column `who`."""
    client, _, process = who.rpartition("@")
    return (client, int(process)) if process.isdigit() and process.isascii() else (who, 0)


@contextlib.contextmanager
def _open(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file. One that is no database any more goes; only leases are lost."""
    path = folder / "work.db"
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as db:
            db.executescript(_TABLES)
            with db:
                yield db
    except sqlite3.OperationalError as error:
        # Locked, or the disk is full: the file is as good as it was.
        what = f"the list of who works on what, {path}, cannot be written ({error})"
        advice = "Free disk space or give this user the right to write there, then call again"
        raise GraphRAGError(what, f"{advice}; what was submitted is kept") from error
    except sqlite3.DatabaseError as error:
        for name in ("work.db", "work.db-journal"):
            (folder / name).unlink(missing_ok=True)
        what = f"the list of who works on what was damaged ({error}), and a new one has been begun"
        raise Damaged(what, "Call claim_work again; what was submitted before is kept") from error
