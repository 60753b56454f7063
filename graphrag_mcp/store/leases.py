"""Who is at work on what: leases of work items, so that several agents share a queue and none waits
for a lost one.

Takes the keys of questions; gives short ids (`w1a2b3c4d5e6`) that stay the same for the same
question, and says which of them somebody else has claimed and not yet given back. One small SQLite
file beside the index, `work.db`; losing it loses nothing but the leases. Knows no text and no
answer.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphrag_mcp.errors import Damaged, GraphRAGError

SECONDS = 900.0  # until a claimed item is free again: an agent reads a few texts in that time
KEPT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Lease:
    """A claimed question. `kind` and `subject` are those of the row in the table `pending`; `who`
    tells its holder from every other, those of the same name included."""

    work_id: str
    key: str
    kind: str
    subject: str
    who: str = ""


def work_id(key: str) -> str:
    """The short id of a question: 48 bits of its key."""
    return f"w{key[:12]}"


def taken(folder: Path, who: str) -> set[str]:
    """Keys of what others have claimed and hold."""
    with _open(folder) as db:
        rows = db.execute("SELECT key FROM leases WHERE until > ? AND who <> ?", (time.time(), who))
        return {key for (key,) in rows}


def take(folder: Path, leases: Iterable[Lease], seconds: float = SECONDS) -> set[str]:
    """Claim items, or claim them for longer; gives the work ids that were had: another may have
    been quicker.
    """
    now, had = time.time(), set()
    with _open(folder) as db:
        db.execute("DELETE FROM leases WHERE until < ?", (now - KEPT_DAYS * 86_400,))
        for one in leases:
            row = (one.work_id, one.key, one.kind, one.subject, one.who, now + seconds, now)
            done = db.execute(
                "INSERT INTO leases VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (work_id) DO UPDATE SET kind = ?3,"
                " subject = ?4, who = ?5, until = ?6 WHERE until <= ?7 OR who = ?5",
                row,
            )
            had |= {one.work_id} if done.rowcount else set()
    return had


def free(folder: Path, gone: Callable[[str], bool]) -> None:
    """Items of holders that are gone may be claimed at once. None is held for longer than SECONDS
    from now: what says so was written before the clock was put back."""
    now = time.time()
    with _open(folder) as db:
        db.execute("UPDATE leases SET until = ?1 WHERE until > ?1", (now + SECONDS,))
        holders = [
            who for (who,) in db.execute("SELECT DISTINCT who FROM leases WHERE until > ?", (now,))
        ]
        db.executemany(
            "UPDATE leases SET until = ? WHERE who = ?",
            [(now, who) for who in holders if gone(who)],
        )


def find(folder: Path, ids: Sequence[str]) -> dict[str, Lease]:
    """Claimed items by work id, also those whose lease has run out."""
    marks = ", ".join("?" * len(ids))
    with _open(folder) as db:
        rows = db.execute(
            f"SELECT work_id, key, kind, subject, who FROM leases WHERE work_id IN ({marks})", ids
        )
        return {row[0]: Lease(*row) for row in rows}


def give_back(folder: Path, ids: Iterable[str]) -> None:
    """These are done, or nobody works on them any more; they can still be found."""
    now = time.time()
    with _open(folder) as db:
        db.executemany("UPDATE leases SET until = ? WHERE work_id = ?", [(now, one) for one in ids])


@contextlib.contextmanager
def _open(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file; one that is no database any more goes, and with it the leases, which is all that is
    lost.
    """
    path = folder / "work.db"
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS leases (work_id TEXT PRIMARY KEY, key TEXT, kind TEXT, subject TEXT,"
                " who TEXT, until REAL) WITHOUT ROWID"
            )
            with db:
                yield db
    except (
        sqlite3.OperationalError
    ) as error:  # locked, or the disk is full: the file is as good as it was
        what = f"the list of who works on what, {path}, cannot be written ({error})"
        advice = "Free disk space or give this user the right to write there, then call again"
        raise GraphRAGError(what, f"{advice}; what was submitted is kept") from error
    except sqlite3.DatabaseError as error:
        for name in ("work.db", "work.db-journal"):
            (folder / name).unlink(missing_ok=True)
        what = f"the list of who works on what was damaged ({error}), and a new one has been begun"
        raise Damaged(what, "Call claim_work again; what was submitted before is kept") from error
