"""A home on object storage: the first search of a machine with an empty cache, the next ones, and
many writers at once.

    python benchmarks/storage.py [--documents 3000] [--delay 50] [--writers 8] [--commits 50]

The store is the S3 server of moto on this machine, behind a door that waits `--delay` milliseconds
before each answer. Documents are those of `large.py`. Prints seconds, requests and megabytes of the
cold and of the warm search, and how many of the commits of `--writers` were kept while as many
readers looked on: a generation that mixes two would be an error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from large import NEW_A_DOCUMENT, write_out

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import load
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import mirror
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.object_store import BUCKET, ObjectStore, object_store


def machine(cache: Path, prefix: str, root: Path) -> App:
    """A machine with a cache of its own; its store is the one of the environment."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    return App(load({}, home=f"s3://{BUCKET}/{prefix}", roots=[str(root)]))


def timed(app: App, store: ObjectStore, question: str) -> str:
    before, began = len(store.trouble.requests), time.perf_counter()
    found = local_search(app.snapshot("big"), question)
    seconds = time.perf_counter() - began
    assert found.citations, found
    return f"{seconds:6.2f} s, {len(store.trouble.requests) - before} requests"


def searches(store: ObjectStore, folder: Path, documents: int, delay: float) -> None:
    texts = folder / "texts"
    texts.mkdir()
    count = write_out(texts, documents * NEW_A_DOCUMENT)
    writer = machine(folder / "writer", "searches", folder)
    began = time.perf_counter()
    index_documents(writer.folder("big"), IndexRequest(paths=(texts,)), writer.settings)
    print(f"{count} documents indexed into the store in {time.perf_counter() - began:.0f} s")
    questions = ("Which harbour was repaired after the flood?", "Who signed the treaty in spring?")
    for wait in (0.0, delay / 1000):
        store.trouble.delay = wait
        mirror.of.cache_clear()
        mirror.store_of.cache_clear()
        reader = machine(folder / f"reader{wait}", "searches", folder)
        for name, question in zip(("cold", "warm"), questions, strict=True):
            print(f"{wait * 1000:3.0f} ms a request, {name}: {timed(reader, store, question)}")
        size = sum(one.stat().st_size for one in (folder / f"reader{wait}").rglob("*") if one.is_file())
        print(f"       in its cache: {size / 1e6:.1f} MB")
    store.trouble.delay = 0.0


def commits(store: ObjectStore, folder: Path, writers: int, each: int) -> None:
    apps = [machine(folder / f"writer{number}", "commits", folder) for number in range(writers)]
    readers = [machine(folder / f"looker{number}", "commits", folder) for number in range(writers)]
    text = IndexRequest(texts=(InlineText("Quorra met Ida Bellweather in Port Lumen.", "n1"),))
    index_documents(apps[0].folder("notes"), text, apps[0].settings)
    first = apps[0].snapshot("notes").manifest.generation
    over, seen = threading.Event(), []

    def write(number: int) -> None:
        for _ in range(each):
            with manifests.writer_lock(apps[number].folder("notes"), 600) as _:
                base = manifests.read(apps[number].folder("notes"))
                assert base is not None
                counters = base.counters | {f"by{number}": base.counters.get(f"by{number}", 0) + 1}
                manifests.commit(
                    apps[number].folder("notes"), replace(base, generation=base.generation + 1, counters=counters)
                )

    def read(number: int) -> None:
        while not over.is_set():
            found = readers[number].snapshot("notes").manifest
            made = sum(value for name, value in found.counters.items() if name.startswith("by"))
            seen.append(found.generation - first == made)
            time.sleep(0.05)

    began = time.perf_counter()
    with ThreadPoolExecutor(2 * writers) as pool:
        reading = [pool.submit(read, number) for number in range(writers)]
        list(pool.map(write, range(writers)))
        over.set()
        for one in reading:
            one.result()
    kept = readers[0].snapshot("notes").manifest.counters
    made = sum(value for name, value in kept.items() if name.startswith("by"))
    seconds = time.perf_counter() - began
    print(f"{writers} writers: {made} of {writers * each} commits kept in {seconds:.0f} s;", end=" ")
    print(f"{len(seen)} looks of {writers} readers, {seen.count(False)} of mixed generations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=3_000)
    parser.add_argument("--delay", type=float, default=50.0, help="milliseconds")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--commits", type=int, default=50, help="of each writer")
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request
    with object_store() as store, tempfile.TemporaryDirectory() as folder:
        os.environ.update(store.environment)
        mirror.POLL_SECONDS = 0.0
        searches(store, Path(folder), options.documents, options.delay)
        commits(store, Path(folder), options.writers, options.commits)


if __name__ == "__main__":
    main()
