"""Columns of tables in memory give what an index finds, and searches the same results without them."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from graphrag_mcp.query import rank
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import KEPT, Columns, Snapshot, open_snapshot

TEXTS = "a b é 灯 \U0001f30a \uffff aa".split()


@pytest.fixture
def folder(sample_home: Path) -> Path:
    return next((sample_home / "corpora").iterdir())


@pytest.mark.parametrize("kind", ["ids", "texts", "numbers"])
def test_places_of_values_are_those_that_a_dict_would_give(kind: str) -> None:
    draw, every = random.Random(4), {}
    make = {
        "ids": lambda: f"{draw.getrandbits(6):032x}",
        "texts": lambda: draw.choice(TEXTS) * draw.randrange(3),
        "numbers": lambda: draw.randrange(40),
    }[kind]
    values = [make() for _ in range(300)]
    for at, one in enumerate(values):
        every.setdefault(one, []).append(at)
    columns = Columns(pa.table({"key": pa.chunked_array([values[:100], values[100:]])}))
    for size in (0, 1, 60):
        wanted = [*dict.fromkeys(draw.sample(values, size)), -1 if kind == "numbers" else "nothing"]
        assert columns.places("key", wanted).to_pylist() == [at for one in wanted for at in every.get(one, ())]


def test_rows_in_memory_are_those_that_an_index_finds(folder: Path) -> None:
    kept, read = open_snapshot(folder), open_snapshot(folder, keep=False)
    for table, (_, columns) in KEPT.items():
        key = "term" if table == "terms" else "id"
        every = read.rows(table, "", [key])[key].to_pylist()
        wanted = [*random.Random(1).sample(every, min(len(every), 12)), "f" * 32, "nothing", every[0]]
        assert every and kept.by_key(table, wanted, key, columns).equals(read.by_key(table, wanted, key, columns))
        assert kept.by_key(table, wanted, key).equals(read.by_key(table, wanted, key))  # also what is not kept
        assert kept._kept[table] is not None and read._kept[table] is None
    for table in ("passages", "entities"):
        words = read.by_key(table, read.rows(table, limit=1)["id"].to_pylist(), "id", ["terms"])["terms"][0].as_py()
        ranked = read.full_text(table, words.split()[:2], 500, ["id"])
        assert ranked.num_rows and kept.full_text(table, words.split()[:2], 500, ["id"]).equals(ranked)


@pytest.mark.parametrize(
    "question", ["Who was right about the back-run?", "谁发现了回流？", "Harbour Tide Authority model T4", ""]
)
def test_searches_that_keep_nothing_in_memory_give_the_same_results(folder: Path, question: str) -> None:
    kept = open_snapshot(folder)
    bare = Snapshot(folder, kept.manifest)
    for search in (local_search, global_search):
        assert search(bare, question).model_dump() == search(kept, question).model_dump()
    found, other = (rank.retrieve(snapshot, question) for snapshot in (kept, bare))
    assert found.passages == other.passages
