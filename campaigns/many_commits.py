"""Many small commits: what hundreds of notes, one call each, leave on disk, and what they cost a
search and a start.

    python campaigns/many_commits.py [--commits 200] [--every 25] [--readers 0] [--wait 130]

Indexes the sample folder, then one short text a call, as an agent writes notes. Prints files,
bytes, truth segments and the CPU milliseconds of a commit; then, after `--wait` seconds (kept
generations must be past keeping; their age is set back for that) and 40 more notes, the same again,
and search latency and opening time against a fresh index of the same content. `--readers`: so many
processes search all the while; any error, or an answer that mixes generations, is told.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

SAMPLE = ROOT / "docs" / "sample"
QUESTIONS = [
    "Who was right about the back-run?",
    "What did the inquiry of 1969 find?",
    "tidal array proposal Narrows",
    "Calloway notebooks lighthouse",
    "Meridian Tern wreck dive report",
]
MORE = 40  # notes that are written after the wait: so many that every table is compacted once


def note(number: int) -> InlineText:
    people = ("Calloway", "Ingrid Moe", "Tomas Reyes", "Harbour Master Quill")
    text = f"Note {number}. {people[number % 4]} met {people[(number + 1) % 4]} at the Harbour Trust on day {number}. "
    return InlineText(id=f"note{number}", text=text + f"They spoke of buoy B{number} and of the Corrie Accord.")


def write(folder: Path, *notes: InlineText) -> float:
    """CPU milliseconds of a call."""
    began = time.process_time()
    index_documents(folder, IndexRequest(texts=notes), Settings())
    return 1000 * (time.process_time() - began)


def disk(folder: Path) -> str:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    manifest = manifests.read(folder)
    assert manifest is not None
    kept = len(manifests.generations(folder))
    return (
        f"{len(sizes):6} files {sum(sizes) / 1e6:7.1f} MB  {len(manifest.segments):3} segments {len(manifest.files):3} "
        f"records {kept:4} generations"
    )


def median_ms(work: Callable[[], object], times: int = 5) -> float:
    spent = []
    for _ in range(times):
        began = time.process_time()
        work()
        spent.append(1000 * (time.process_time() - began))
    return statistics.median(spent)


def searches(folder: Path) -> tuple[float, float]:
    """CPU milliseconds of a search with a snapshot in use, and of the first one of a new snapshot."""
    snapshot = open_snapshot(folder)
    for question in QUESTIONS:
        local_search(snapshot, question)
    warm = statistics.median(median_ms(lambda q=q: local_search(snapshot, q)) for q in QUESTIONS)
    return warm, median_ms(lambda: local_search(open_snapshot(folder), QUESTIONS[0]))


def opening(folder: Path) -> float:
    manifest = manifests.read(folder)
    assert manifest is not None
    return median_ms(lambda: live_documents(folder, manifest))


READER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from campaigns.many_commits import read_for_ever
read_for_ever(Path(sys.argv[1]))
"""


def read_for_ever(folder: Path) -> None:
    """Each round one generation: what its tables say of each other must fit. Prints what does not,
    and how often.
    """
    rounds = again = 0
    stop = folder / "stop-reading"
    while not stop.exists():
        try:
            snapshot = open_snapshot(folder)
            documents = snapshot.rows("documents", columns=["id"])["id"].to_pylist()
            owners = set(snapshot.rows("passages", columns=["document_id"])["document_id"].to_pylist())
            found = local_search(snapshot, QUESTIONS[rounds % len(QUESTIONS)])
            if owners != set(documents) or snapshot.manifest.counters["documents"] != len(documents) or not found:
                print("mixed", snapshot.manifest.generation, flush=True)
        except NotFound:  # its generation has been cleaned away: one more look is what a reader does
            again += 1
        except Exception as error:
            print("error", repr(error)[:300], flush=True)
        rounds += 1
    print(f"{rounds} rounds, {again} began again", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("commits", 200), ("every", 25), ("readers", 0), ("wait", 130)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as home:
        folder, fresh = Path(home) / "many", Path(home) / "fresh"
        index_documents(folder, IndexRequest(paths=(str(SAMPLE),)), Settings())
        command = [sys.executable, "-c", READER, str(folder), str(ROOT)]
        readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(options.readers)]
        print(f"{0:5}  {disk(folder)}")
        spent: list[float] = []
        for number in range(options.commits):
            spent.append(write(folder, note(number)))
            if (number + 1) % options.every == 0:
                print(f"{number + 1:5}  {disk(folder)}  {statistics.median(spent):6.0f} ms CPU a call", flush=True)
                spent = []
        print("\nagainst a fresh index      search   first search   opening the log (CPU ms)")
        notes = [note(number) for number in range(options.commits + MORE)]
        index_documents(fresh, IndexRequest(paths=(str(SAMPLE),), texts=tuple(notes[: options.commits])), Settings())
        compared(folder, fresh, "right after")
        time.sleep(options.wait)
        for path in (folder / "generations").iterdir():
            os.utime(path, (path.stat().st_mtime - 900,) * 2)
        for number in range(options.commits, len(notes)):
            write(folder, notes[number])
        index_documents(fresh, IndexRequest(texts=tuple(notes[options.commits :])), Settings())
        print(f"\n{len(notes):5}  {disk(folder)}\nfresh  {disk(fresh)}")
        ratios = compared(folder, fresh, "later")
        same = digest(open_snapshot(folder))["content"] == digest(open_snapshot(fresh))["content"]
        print("same content" if same else "OTHER CONTENT", doctor(folder)[:3] or "and doctor finds nothing")
        (folder / "stop-reading").touch()
        told = [line for reader in readers for line in reader.communicate()[0].splitlines()]
        print("\n".join(told))
        bad = [line for line in told if line.startswith(("mixed", "error"))]
        return 1 if bad or not same or ratios[0] > 1.5 else 0


def compared(folder: Path, fresh: Path, when: str) -> list[float]:
    figures = [(*searches(at), opening(at)) for at in (folder, fresh)]
    for name, row in zip((when, "fresh"), figures, strict=True):
        print(f"  {name:22} " + " ".join(f"{value:11.1f}" for value in row), flush=True)
    return [one / other for one, other in zip(*figures, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
