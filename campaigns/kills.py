"""Kill -9 at random moments: of a first indexing, a synchronisation, small commits with compaction,
jobs, imports.

    python campaigns/kills.py [--kills 500] [--kinds index,sync,notes,jobs,imports] [--seed 0]
    [--minutes 0]

After each kill the index must open, hold everything that had been acknowledged, and have no finding
of doctor but remarks (files that no generation names); gone on with, its content must be that of an
index that was never disturbed. A job whose process has been killed must be under way in another
process within five seconds and come to its end there. Counted are processes that the signal ended:
one that had come to its end is tried again, one that failed is a fault.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns.edit_scripts import digests, document, edit, put
from graphrag_mcp.errors import NotFound
from graphrag_mcp.exchange.export import export
from graphrag_mcp.exchange.importing import import_folder
from graphrag_mcp.index import batches
from graphrag_mcp.jobs import queue, start
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

KINDS = ("index", "sync", "notes", "jobs", "imports")
TAKEN_OVER = 5.0
VARIANTS = 3  # of the export that is imported
TRIES = 4  # for each kill that is wanted: a victim may come to its end first
# A process that has imported everything and started no thread, of which each victim is a copy.
CONTEXT = multiprocessing.get_context("forkserver")


def busy() -> None:
    """Several commits a run, and compaction and cleaning up with nearly each of them."""
    logging.disable(logging.CRITICAL)
    batches.BATCH_PASSAGES = 12
    tables.TAIL_FRAGMENTS = 3
    segment_store.SEGMENTS, segment_store.DEAD, segment_store.DEAD_GRAPHS = 3, 4, 2
    manifests.KEEP_SECONDS, manifests.KEEP_LAST = 1.0, 4


def quiet() -> None:
    """Nobody reads what the victims' libraries say. A copy is killed anyway, should it hang."""
    os.environ.update(LANCEDB_LOG="error", PYTHONWARNINGS="ignore")


def note(number: int) -> InlineText:
    return InlineText(document(random.Random(number)) + f"\n\nThis is note {number}.", f"note{number % 30}")


# ---- victims ------------------------------------------------------------------------------------------


def indexing(folder: str, docs: str) -> None:
    busy()
    put(Path(folder), Path(docs))


def noting(folder: str, said: str, first: int) -> None:
    """Notes, one a commit; what is committed is acknowledged in a file."""
    busy()
    with open(said, "a") as file:
        for number in range(first, first + 1000):
            put(Path(folder), texts=[note(number)])
            file.write(f"{number}\n")
            file.flush()


def importing(folder: str, said: str, variants: str) -> None:
    """An export that changes, imported again and again; what is committed is acknowledged in a
    file.
    """
    busy()
    with open(said, "a") as file:
        for number in range(1000):
            bring(Path(folder), Path(variants), number % VARIANTS)
            file.write(f"{number % VARIANTS}\n")
            file.flush()


def bring(folder: Path, variants: Path, number: int) -> None:
    """Import one of the variants, always from the same folder."""
    shutil.copytree(variants / str(number), variants / "now", dirs_exist_ok=True)
    import_folder(folder, variants / "now", Settings())


def serving(home: str) -> None:
    """What a server does beside its calls: looks for work that nobody does."""
    busy()
    with start.keeping(Settings(home=Path(home))):
        time.sleep(3600)


def calling(home: str, said: str, first: int) -> None:
    """A server with calls: notes as jobs, several at a time; acknowledged when a job is done."""
    busy()
    settings = Settings(home=Path(home))
    with open(said, "a") as file, start.keeping(settings):
        for number in range(first, first + 1000, 3):
            begun = [start.start(settings, "kb", IndexRequest(texts=(note(number + at),))) for at in range(3)]
            for at, job in enumerate(begun):
                file.write(f"begun {job.job_id}\n")
                file.flush()
                while queue.load(settings.home, job.job_id).status not in queue.FINAL:
                    time.sleep(0.005)
                file.write(f"{number + at}\n")
                file.flush()


@dataclass(frozen=True)
class Death:
    """How a victim ended: after how many seconds, and with which status (negative: a signal)."""

    lived: float
    status: int

    @property
    def by_kill(self) -> bool:
        return self.status == -signal.SIGKILL


def killed(target: Callable[..., None], delay: float, *arguments: Any, after: Callable[[], bool]) -> Death:
    """Start a victim, wait until `after`, and kill it `delay` seconds later."""
    victim = CONTEXT.Process(target=target, args=arguments)
    victim.start()
    end = time.monotonic() + 60
    while not after() and victim.is_alive() and time.monotonic() < end:
        time.sleep(0.002)
    began = time.monotonic()
    victim.join(delay)
    lived = time.monotonic() - began
    victim.kill()
    victim.join()
    status = victim.exitcode
    victim.close()
    return Death(lived, status if status is not None else 0)


# ---- what must hold -----------------------------------------------------------------------------------


def sound(folder: Path) -> list[str]:
    """What is wrong with an index whose writer was killed just now."""
    if manifests.read(folder) is None:
        return []
    wrong = []
    try:
        open_snapshot(folder).rows("documents")
    except Exception as error:
        wrong.append(f"it does not open: {error!r}"[:300])
    found = [one for one in doctor(folder) if not one.remark]
    return wrong + [f"doctor: {one.kind} {one.where} {one.what}" for one in found]


def texts(folder: Path) -> dict[str, str]:
    try:
        rows = open_snapshot(folder).rows("documents", columns=["uri", "text"]).to_pylist()
    except NotFound:
        return {}
    return {row["uri"]: row["text"] for row in rows}


def missing(folder: Path, acknowledged: list[int]) -> list[str]:
    """Acknowledged notes of which neither they nor a later one of their id is there."""
    held, last = texts(folder), {}
    for number in acknowledged:
        last[number % 30] = number
    lost = []
    for id, number in last.items():
        there = held.get(f"text:note{id}", "").rpartition("This is note ")[2].rstrip(".\n")
        if not there.isdigit() or int(there) < number:
            lost.append(f"note {number} was acknowledged and is not there ({there or 'nothing'} is)")
    return lost


def exported(corpus: Path, variants: Path) -> None:
    """Exports of an index between whose documents some change; all of the variants have the same
    tables.
    """
    for number in range(VARIANTS):
        put(corpus, texts=[note(at if at < 6 else at + 30 * number) for at in range(9)])
        export(open_snapshot(corpus), variants / str(number))


def texts_of(exported: Path) -> set[str]:
    return set(pq.read_table(exported / "documents.parquet", columns=["text"])["text"].to_pylist())


def acknowledged(said: Path) -> list[int]:
    """The numbers of the last notes that a victim said were committed."""
    return [int(line) for line in lines(said) if line.isdigit()][-200:]


def lines(path: Path) -> list[str]:
    return path.read_text("ascii").splitlines() if path.exists() else []


class Campaign:
    """The folders that a row of kills works on, and what an undisturbed run would take."""

    def __init__(self, home: Path, seed: int) -> None:
        self.rng, self.home, self.docs = random.Random(seed), home, home / "docs"
        self.docs.mkdir(parents=True)
        for number in range(24):
            (self.docs / f"{number}.md").write_text(document(self.rng), "utf-8")
        self.seconds, self.first = {"index": 4.0, "sync": 3.0}, 0
        self.takeovers: list[float] = []
        self.kills = Counter[str]()

    def count(self, kind: str, death: Death) -> list[str]:
        """Count a kill, when it was one; what is wrong with a victim that ended by itself."""
        self.kills[kind] += death.by_kill
        return [] if death.by_kill or death.status == 0 else [f"the victim failed by itself (status {death.status})"]

    def fresh(self) -> dict[str, str]:
        shutil.rmtree(self.home / "fresh", ignore_errors=True)
        put(self.home / "fresh", self.docs)
        return digests(self.home / "fresh")

    def index(self) -> list[str]:
        folder = self.home / "index"
        shutil.rmtree(folder, ignore_errors=True)
        return self._run("index", folder)

    def sync(self) -> list[str]:
        folder = self.home / "sync"
        put(folder, self.docs)
        for _ in range(self.rng.randint(1, 12)):
            edit(self.rng, self.docs)
        return self._run("sync", folder)

    def _run(self, kind: str, folder: Path) -> list[str]:
        folder.mkdir(exist_ok=True)
        before = _times(folder)
        began = lambda: _times(folder) != before  # noqa: E731
        death = killed(indexing, self.rng.random() * self.seconds[kind], str(folder), str(self.docs), after=began)
        # As long as a run takes: one that ended says how long, and after a kill it may be longer.
        self.seconds[kind] = 1.1 * self.seconds[kind] if death.by_kill else max(death.lived, 0.2)
        wrong = self.count(kind, death) + sound(folder)
        put(folder, self.docs)
        if digests(folder)["content"] != self.fresh()["content"]:
            wrong.append("gone on with, its content is another one")
        left = [one for one in doctor(folder, repair=True) if not one.repaired]
        return wrong + [f"not repaired: {one.what}" for one in left]

    def notes(self) -> list[str]:
        folder, said = self.home / "notes", self.home / "said"
        folder.mkdir(exist_ok=True)
        count = len(lines(said))
        begun = lambda: len(lines(said)) > count  # noqa: E731
        death = killed(noting, self.rng.random(), str(folder), str(said), self.first, after=begun)
        self.first += 1000 - self.first % 30
        return self.count("notes", death) + sound(folder) + missing(folder, acknowledged(said))

    def imports(self) -> list[str]:
        """What was acknowledged last, or the one after it, is there; gone on with, it is a fresh
        import.
        """
        folder, said, variants = (self.home / "imports", self.home / "imported", self.home / "variants")
        if not variants.exists():
            exported(self.home / "exported", variants)
        count = len(lines(said))
        began = lambda: len(lines(said)) > count  # noqa: E731
        death = killed(importing, 2 * self.rng.random(), str(folder), str(said), str(variants), after=began)
        last = int(lines(said)[-1])
        wrong, there = self.count("imports", death) + sound(folder), texts(folder)
        wanted = [texts_of(variants / str((last + step) % VARIANTS)) for step in (0, 1)]
        if set(there.values()) not in wanted:
            wrong.append(f"neither variant {last} nor the next is there")
        bring(folder, variants, last)
        shutil.rmtree(self.home / "fresh", ignore_errors=True)
        bring(self.home / "fresh", variants, last)
        if digests(folder)["content"] != digests(self.home / "fresh")["content"]:
            wrong.append("imported again, its content is another one")
        left = [one for one in doctor(folder, repair=True) if not one.repaired]
        return wrong + [f"not repaired: {one.what}" for one in left]

    def jobs(self) -> list[str]:
        home, said = self.home / "home", self.home / "called"
        folder = home / "corpora" / "kb"
        other = CONTEXT.Process(target=serving, args=(str(home),))
        other.start()
        try:
            count = len(lines(said))
            begun = lambda: len(lines(said)) > count + 1  # noqa: E731
            death = killed(calling, self.rng.random(), str(home), str(said), self.first, after=begun)
            at, taken = time.monotonic(), False
            self.first += 3000 - self.first % 30
            wrong = self.count("jobs", death) + missing(folder, acknowledged(said))
            named = [line.split()[1] for line in lines(said)[count:] if line.startswith("begun")]
            while open_ := [id for id in named if queue.load(home, id).status not in queue.FINAL]:
                waited = time.monotonic() - at
                if not taken and any(queue.load(home, id).pid == other.pid for id in open_):
                    taken = True
                    self.takeovers.append(waited)
                if waited > (TAKEN_OVER if not taken else 60.0):
                    wrong.append(f"nobody took {open_[0]} over within {TAKEN_OVER:.0f} s")
                    break
                time.sleep(0.02)
            bad = [id for id in named if queue.load(home, id).status != "done"]
            wrong += [f"{id}: {queue.load(home, id).status} {queue.load(home, id).error}" for id in bad]
        finally:
            other.kill()
            other.join()
        return wrong + sound(folder)


def _times(folder: Path) -> list[int]:
    """When something last was written in the folders of the truth and the tables."""
    return sorted(path.stat().st_mtime_ns for path in folder.glob("*"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    for name, default in (("kills", 500), ("seed", 0), ("minutes", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    quiet()
    CONTEXT.set_forkserver_preload(["campaigns.kills", "lancedb", "graspologic_native", "numpy"])
    with tempfile.TemporaryDirectory() as place:
        wrong, done = campaign(Path(place), options.kills, options.kinds.split(","), options.seed, options.minutes)
    print(f"{sum(done.values())} kills ({', '.join(f'{count} {kind}' for kind, count in done.items())})")
    print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong else 0


def campaign(place: Path, kills: int, kinds: list[str], seed: int, minutes: int = 0) -> tuple[list[str], Counter[str]]:
    """So many kills, of the kinds in turn; what was wrong, and how many of each there were."""
    row, wrong = Campaign(place, seed), []
    done = row.kills
    end = time.monotonic() + (60 * minutes or 10**9)
    for number in range(TRIES * kills):
        if done.total() == kills or time.monotonic() > end:
            break
        kind = kinds[done.total() % len(kinds)]
        bad = [f"try {number} ({kind}): {one}" for one in getattr(row, kind)()]
        wrong += bad
        for one in bad:
            print(one, flush=True)
    if done.total() < kills and time.monotonic() < end:
        wrong.append(f"only {done.total()} of {kills} victims were alive when they were killed")
    if row.takeovers:
        taken = sorted(row.takeovers)
        print(f"taken over after {taken[len(taken) // 2]:.2f} s (median), {taken[-1]:.2f} s (longest)")
    if done["notes"]:
        put(place / "notes", texts=[note(number) for number in range(30)])
        put(place / "whole", texts=[note(number) for number in range(30)])
        if digests(place / "notes")["content"] != digests(place / "whole")["content"]:
            wrong.append("the notes' content is not that of an index that was never disturbed")
    return wrong, done


if __name__ == "__main__":
    sys.exit(main())
