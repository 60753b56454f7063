"""Bit rot: single bits flipped in everything that an index keeps on disk. Is each found, is
anything wrong served?

    python campaigns/bits.py [--places 200] [--each 25] [--repairs 12] [--seed 1]

`--places` are spread over all bytes alike, `--each` more over the files of each kind, however small
they are. The index has a model's answers and vectors (a server on this machine,
tests/support/scripted.py) and a history of edits. Prints found, harmless (SQLite does not use that
byte: every entry reads as before) and missed by kind; exit status 1 when a bit was missed or a
wrong row served.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns.model_campaign import EAGER, demo, document, write_documents
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import tables
from graphrag_mcp.store.reply_cache import NAME, AnswerBook
from graphrag_mcp.store.schema import KEY, TABLES
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import openai_server
from tests.support.promises import doctor

OFF = Settings(**{**EAGER, "embedding_model": ""})  # what was bought is looked up, nothing can be bought
KINDS = ("truth", "data", "_indices", "_versions", "_deletions", "_transactions", "files", "generations")


def build(home: Path, documents: int = 12) -> Path:
    """An index made with a model, with a history: documents added, changed, removed."""
    folder, docs = home / "kb", write_documents(home / "docs", documents)
    with openai_server(demo) as server:
        settings = Settings(**{**EAGER, "chat_model": "m", "base_url": server.url, "max_retries": 0})
        for step in range(4):
            request = IndexRequest(paths=(str(docs),), method="llm")
            done = index_documents(folder, request, settings)
            assert done.status == "done" and not done.errors and not done.pending, done
            chosen = sorted(docs.iterdir())
            chosen[step].unlink()
            chosen[-1 - step].write_text(document(random.Random(step)), "utf-8")
            (docs / f"more{step}.md").write_text(document(random.Random(50 + step)), "utf-8")
    assert doctor(folder) == []
    return folder


def kind(path: Path, folder: Path) -> str:
    parts = path.relative_to(folder).parts
    return next((name for name in KINDS if name in parts), parts[0])


def files(folder: Path) -> list[Path]:
    """All that an index is; the lock has no content, journals of sessions belong to no generation,
    and Lance does without its hint of the newest version."""
    left_out = ("lock", "drift", "sessions")
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [
        path
        for path in found
        if path.relative_to(folder).parts[0] not in left_out and path.name != manifests.HINT and path.stat().st_size
    ]


def places(folder: Path, count: int, each: int, seed: int) -> list[tuple[Path, int]]:
    chance = random.Random(seed)
    there = files(folder)
    sizes = [path.stat().st_size for path in there]
    chosen = [(path, chance.randrange(path.stat().st_size)) for path in chance.choices(there, sizes, k=count)]
    by_kind: dict[str, list[Path]] = {}
    for path in there:
        by_kind.setdefault(kind(path, folder), []).append(path)
    for _, group in sorted(by_kind.items()):
        for path in chance.choices(group, k=each):
            chosen.append((path, chance.randrange(path.stat().st_size)))
    return chosen


@contextmanager
def flipped(path: Path, place: int, bit: int) -> Iterator[None]:
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
    try:
        yield
    finally:
        path.write_bytes(whole)


def like_a_new_process(folder: Path) -> None:
    tables.disconnect(folder)
    manifests._seen.clear()


def contents(folder: Path) -> dict[str, set[str]]:
    """Every row as readers get it, whole and in parts, and every entry of the book; what is refused
    is not there.
    """
    like_a_new_process(folder)
    shown: dict[str, set[str]] = {}
    snapshot = open_snapshot(folder)
    for table in TABLES:
        found = shown.setdefault(table, set())
        key = KEY.get(table, "id")
        try:
            rows = snapshot.rows(table)
            found.update(map(repr, rows.to_pylist()))
            by_key = snapshot.by_key(table, rows[key].to_pylist())
            found.update(map(repr, by_key.to_pylist()))
            if "title" in TABLES[table].names:
                found.update(map(repr, snapshot.rows(table, columns=["id", "title"]).to_pylist()))
        except GraphRAGError:
            continue
    try:
        shown["truth"] = set(map(repr, segment_store.load(folder, snapshot.manifest, "documents").to_pylist()))
    except GraphRAGError:
        shown["truth"] = set()
    return shown | {"answers": answers(folder)}


def answers(folder: Path) -> set[str]:
    book = AnswerBook(folder)
    try:
        listed = list(book.listing())
        return {repr(one) for entry in listed for one in book.get(entry["key"])}
    except GraphRAGError:
        return set()
    finally:
        book.close()


def try_all(folder: Path, chosen: list[tuple[Path, int]], serve: bool = True, seed: int = 0) -> dict[str, Counter[str]]:
    """kind -> how many flips were found, harmless, missed; and `wrong`: rows served that are not
    the index's.
    """
    right = contents(folder)
    chance = random.Random(seed)
    told: dict[str, Counter[str]] = {}
    for path, place in chosen:
        counts = told.setdefault(kind(path, folder), Counter())
        with flipped(path, place, chance.randrange(8)):
            found = doctor(folder)
            now = contents(folder) if serve or not found else right
            same = path.name == NAME and now == right
            counts["found" if found else "harmless" if same else "missed"] += 1
            if not found and not same:
                print("missed:", path.relative_to(folder), place)
            wrong = {table: rows - right[table] for table, rows in now.items() if rows - right[table]}
            if wrong:
                counts["wrong"] += 1
                print("served:", path.relative_to(folder), place, {table: len(rows) for table, rows in wrong.items()})
    like_a_new_process(folder)
    return told


def mend(folder: Path, chosen: list[tuple[Path, int]], seed: int = 0) -> list[str]:
    """Flip one bit after another for good, and repair each; what went wrong, one line each."""
    chance = random.Random(seed)
    wanted, bad = digest(open_snapshot(folder)), []
    bought: list[Any] = []

    def rebuild(at: Path) -> None:
        bought.append(index_documents(at, IndexRequest(), OFF).usage.get("calls", 0))

    for path, place in chosen:
        if not path.exists() or path.stat().st_size <= place or kind(path, folder) == "truth":
            continue  # repaired away; or the original itself, which nothing can bring back
        raw = bytearray(path.read_bytes())
        raw[place] ^= 1 << chance.randrange(8)
        path.write_bytes(raw)
        like_a_new_process(folder)
        left = [found for found in doctor(folder, repair=True, rebuild=rebuild) if not found.repaired]
        like_a_new_process(folder)
        where = f"{path.relative_to(folder)} {place}"
        if left or doctor(folder):
            bad.append(f"{where}: {[*left, *doctor(folder)][:3]}")
            continue
        now = digest(open_snapshot(folder))
        if "memberships" in where:  # what communities were before is lost: they are clustered as for the first time
            wanted["communities"] = now["communities"]
        if now != wanted:
            bad.append(f"{where}: another digest")
    if any(bought):
        bad.append(f"{sum(bought)} calls were made")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("places", 200), ("each", 25), ("repairs", 12), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as home:
        folder = build(Path(home))
        print(f"{len(files(folder))} files, {sum(path.stat().st_size for path in files(folder)):,} bytes")
        total: Counter[str] = Counter()
        for count, each in ((options.places, 0), (0, options.each)):
            began = time.monotonic()
            told = try_all(folder, places(folder, count, each, options.seed), seed=options.seed)
            print(f"\n{'by kind' if each else 'over all bytes'}, {time.monotonic() - began:.0f} s")
            for name, counts in sorted(told.items()):
                print(f"  {name:15} " + ", ".join(f"{what} {n}" for what, n in sorted(counts.items())))
                total.update(counts)
        bad = mend(folder, places(folder, options.repairs, 2, options.seed + 1), options.seed)
        print("\nrepaired, each clean and with the same digest" if not bad else "\n".join(bad))
        return 1 if bad or total["missed"] or total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
