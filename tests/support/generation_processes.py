"""Children of test_generations: a writer that compacts and goes back all the time, one that reads, one whose disk fails."""

from __future__ import annotations

import builtins
import errno
import io
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from graphrag_mcp.doctor.generations import digest, kept, rollback
from graphrag_mcp.errors import GraphRAGError, NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

PEOPLE = ("Anton Brandt", "Mira Castellan", "Devi Rao", "Ingrid Moe")


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def note(number: int, what: str = "wool") -> InlineText:
    said = f"{PEOPLE[number % 4]} met {PEOPLE[(number + 1) % 4]} in Port Ellis and spoke of {what} number {number}."
    return InlineText(id=f"note{number:04d}", text=said)


def write(folder: Path, *notes: InlineText) -> None:
    assert index_documents(folder, IndexRequest(texts=notes), Settings()).status == "done"


def busy() -> None:
    """Compaction of everything and cleaning up with nearly every commit."""
    tables.TAIL_FRAGMENTS = 3
    segment_store.SEGMENTS, segment_store.DEAD = 3, 4
    manifests.KEEP_SECONDS, manifests.KEEP_LAST = 1.0, 4
    tables.compact.__defaults__ = (0.2,)


def writer(folder: Path, count: int, back: int) -> None:
    """`count` notes, one a commit; after every `back` of them back by two generations and forward again."""
    busy()
    for number in range(count):
        write(folder, note(number % 40, f"wool {number}"))
        if back and number % back == back - 1:
            current = manifests.read(folder)
            rollback(folder, kept(folder)[-3].generation)
            rollback(folder, current.generation)
        say(number)


def reader(folder: Path) -> None:
    """Until the file `stop` is there: tables of one generation must agree with each other and with their counters."""
    rounds = 0
    while not (folder.parent / "stop").exists():
        try:
            snapshot = open_snapshot(folder)
            documents = snapshot.rows("documents", columns=["id", "text"]).to_pylist()
            owners = set(snapshot.rows("passages", columns=["document_id"])["document_id"].to_pylist())
            whole = {row["id"] for row in documents} == owners
            counted = snapshot.manifest.counters["documents"] == len(documents)
            last = sorted(row["text"] for row in documents)[0].split()
            found = snapshot.full_text("passages", [last[0].casefold()], columns=["document_id"])["document_id"].to_pylist()
            if not (whole and counted and found and set(found) <= owners):
                say("mixed", snapshot.manifest.generation)
        except NotFound:
            pass  # its generation was cleaned away: begin again
        except Exception as error:
            say("error", repr(error)[:400])
        rounds += 1
    say("rounds", rounds)


class Disk:
    """Counts our writes, fsyncs, renames and openings for writing, and lets the `at`-th fail with `error`."""

    def __init__(self) -> None:
        self.at, self.error, self.seen = 0, 0, 0
        self._open, self._fsync, self._replace = builtins.open, os.fsync, os.replace
        builtins.open, os.fsync, os.replace = self.open, self.fsync, self.replace  # type: ignore[assignment]

    def step(self, path: object) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise OSError(self.error, os.strerror(self.error), str(path))

    def fsync(self, descriptor: int) -> None:
        self.step(descriptor)
        self._fsync(descriptor)

    def replace(self, source: Any, target: Any, **more: Any) -> None:
        self.step(target)
        self._replace(source, target, **more)

    def open(self, file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "w" not in mode or "b" not in mode:
            return self._open(file, mode, *more, **named)
        self.step(file)
        disk = self

        class Failing(io.BufferedRandom):
            def write(self, data: Any) -> int:
                disk.step(file)
                return super().write(data)

        return Failing(io.FileIO(file, "w+"))


def disk(home: Path, stride: int, kinds: list[str]) -> None:
    """A change is indexed again and again, and each time another call fails, every `stride`-th. Says what ended ill."""
    logging.disable(logging.CRITICAL)
    first, folder, wanted = home / "first", home / "kb", {}
    write(first, note(1), note(2))
    busy()
    write(first, note(3))
    faulty = Disk()
    shutil.copytree(first, folder)
    write(folder, note(4))
    calls, wanted = faulty.seen, digest(open_snapshot(folder))
    say("calls", calls)
    for place, kind in enumerate(kinds):
        for at in range(1 + place, calls + 1, stride):
            shutil.rmtree(folder)
            shutil.copytree(first, folder)
            before = digest(open_snapshot(folder))
            faulty.at, faulty.error, faulty.seen = at, getattr(errno, kind), 0
            try:
                write(folder, note(4))
                faulty.at = 0
                if faulty.seen < at:  # how often the disk is asked depends a little on the clock
                    break
                say(f"{kind} {at}: no error")
            except GraphRAGError:
                pass
            except Exception as error:
                say(f"{kind} {at}: {error!r}")
            faulty.at = 0
            now = digest(open_snapshot(folder))
            wrong = [found for found in doctor(folder) if not found.remark]
            left = [found for found in doctor(folder, repair=True) if not found.repaired]
            write(folder, note(4))
            after = [found for found in doctor(folder) if not found.remark]
            if now["content"] not in (before["content"], wanted["content"]) or wrong or left or after or (
                digest(open_snapshot(folder)) != wanted
            ):
                say(f"{kind} {at}: {wrong} {left} {after}")
    say("done")


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    if what == "writer":
        writer(Path(place), int(rest[0]), int(rest[1]))
    elif what == "reader":
        reader(Path(place))
    else:
        disk(Path(place), int(rest[0]), rest[1:])
