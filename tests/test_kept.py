"""Rows that searches keep in memory: their places by content id, by any other key, by Lance's row ids."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa

from graphrag_mcp.store.cache import ROW_ID, Kept, ids_of
from graphrag_mcp.store.tables import Snapshot, open_snapshot

RANKED = ("id", "key", "names", "frequency", "terms")
COLUMNS = (None, ["id", "key"], ["title"], ["evidence", "id", "terms"])


def ids(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [f"{draw.getrandbits(128):032x}" for _ in range(count)]


def test_places_of_ids_are_those_that_a_dict_would_give_also_where_halves_are_shared_and_ids_repeat() -> None:
    known = ids(500, 1)
    known += [one[:16] + other[16:] for one, other in zip(known[:50], ids(50, 2), strict=True)] + known[100:160]
    random.Random(3).shuffle(known)
    column, places = pa.chunked_array([known[:200], known[200:]]), {}
    for at, one in enumerate(known):
        places.setdefault(one, []).append(at)
    found = ids_of(column)
    assert found is not None
    for seed in range(40):
        draw = random.Random(seed)
        wanted = [*draw.sample(known, draw.choice([0, 1, 7, 60])), "", "no id", f"{5:032x}", known[0].upper()]
        draw.shuffle(wanted)
        assert found.places(wanted) == [at for one in wanted for at in places.get(one, ())]


def test_a_column_of_anything_else_is_looked_up_all_the_same() -> None:
    assert ids_of(pa.chunked_array([["a" * 32, ""]])) is None
    assert ids_of(pa.chunked_array([[1, 2]])) is None
    rows = pa.table({"title_id": ["", "a" * 32, ""], "n": [7, 8, 9], ROW_ID: pa.array([5, 3, 4], pa.uint64())})
    kept = Kept([rows])
    assert kept.rows.column_names == ["title_id", "n"]
    assert kept.places("title_id", ["a" * 32, "", "b"]) == [1, 0, 2]
    assert kept.find("n", [9, 6, 7], ["n"])["n"].to_pylist() == [9, 7]


def test_row_ids_lead_to_their_rows_whatever_order_lance_read_them_in() -> None:
    kept = Kept([pa.table({"n": [7, 8, 9], ROW_ID: pa.array([5, 1 << 40, 4], pa.uint64())})])
    places, here = kept.behind(pa.chunked_array([pa.array([1 << 40, 6, 4, 1 << 50], pa.uint64())]))
    assert places.tolist() == [1, 2]
    assert here.tolist() == [True, False, True, False]


def test_rows_that_lance_gave_in_several_pieces_are_kept_in_one_and_taken_in_any_order() -> None:
    sizes, some = [5, 0, 2, 60, 1, 9], {"text": "a", "start": 1, "weight": 0.5}
    whole = pa.table({
        "n": list(range(77)), "names": [["é" * one, ""] * (one % 3) for one in range(77)],
        "evidence": [[{**some, "start": one}] * (one % 4) for one in range(77)], "terms": ["灯" * (one % 5) for one in range(77)],
        ROW_ID: pa.array(range(1000, 1077), pa.uint64()),
    })  # fmt: skip
    pieces = [whole.slice(sum(sizes[:at]), size) for at, size in enumerate(sizes)]
    kept, every = Kept(iter(pieces)), whole.drop_columns([ROW_ID])
    kept.rows.validate(full=True)
    assert kept.rows.equals(every) and kept.row_ids.tolist() == list(range(1000, 1077))
    assert {column.num_chunks for column in kept.rows.columns} == {1}
    for seed in range(60):
        draw = random.Random(seed)
        places = [draw.randrange(77) for _ in range(draw.choice([0, 1, 3, 40]))]
        names = draw.choice([None, ["n"], ["names", "n"], ["evidence", "terms"]])
        assert kept.take(places, names).equals(every.select(names or every.column_names).take(pa.array(places, pa.int64())))
    assert kept.find("n", [70, 2, 99, 8])["n"].to_pylist() == [70, 2, 8]
    assert Kept([whole.slice(0, 0)]).find("terms", ["灯"]).num_rows == 0


def test_places_by_any_value_are_those_that_a_dict_would_give() -> None:
    draw, places = random.Random(4), {}
    for values in ([draw.choice("a b é 灯 \U0001f30a \uffff aa".split()) * draw.randrange(3) for _ in range(300)],
                   [draw.randrange(40) for _ in range(300)]):  # fmt: skip
        places = {}
        for at, one in enumerate(values):
            places.setdefault(one, []).append(at)
        kept = Kept([pa.table({"key": values, ROW_ID: pa.array(range(300), pa.uint64())})])
        other = "nothing" if isinstance(values[0], str) else -1
        wanted = [*dict.fromkeys(draw.sample(values, 60)), other]
        assert kept.places("key", wanted) == [at for one in wanted for at in places.get(one, ())]


def test_rows_by_their_addresses_and_by_memory_are_those_that_an_index_finds(sample_home: Path) -> None:
    folder = next((sample_home / "corpora").iterdir())
    held, read = open_snapshot(folder), Snapshot(folder, open_snapshot(folder).manifest, hold={})
    for table in ("passages", "entities"):
        every = read.rows(table, "", ["id"])["id"].to_pylist()
        wanted = [*random.Random(1).sample(every, min(len(every), 12)), "f" * 32, "nothing"]
        by_index = read.by_key(table, wanted, "id")
        for _ in range(3):  # the first asks the index, later ones go by row id
            assert read.by_key(table, wanted, "id", hold=True).equals(by_index)
        assert held.by_key(table, wanted, "id", hold=True).equals(by_index)
        words = read.by_key(table, wanted[:1], "id", ["terms"])["terms"][0].as_py().split()[:2]
        ranked = read.full_text(table, words, 500, ["id"])
        assert ranked.num_rows and held.full_text(table, words, 500, ["id"]).equals(ranked)


def test_rows_of_which_columns_are_kept_are_the_same_and_a_wrong_value_in_memory_is_not_served(
    sample_home: Path,
) -> None:
    folder = next((sample_home / "corpora").iterdir())
    read = Snapshot(folder, open_snapshot(folder).manifest, hold={})
    every = read.rows("entities", "", ["id"])["id"].to_pylist()
    wanted = [*random.Random(2).sample(every, 9), "f" * 32, "nothing", every[0]]
    by_index = {tuple(names or ()): read.by_key("entities", wanted, "id", names) for names in COLUMNS}
    assert read.columns("entities", RANKED, later=True) is None  # the first question does not pay for all
    kept = read.columns("entities", RANKED, later=True)
    assert kept is not None and read.columns("passages", ("id",), most=1) is None
    for names in COLUMNS:
        assert read.by_key("entities", wanted, "id", names, hold=True).equals(by_index[tuple(names or ())])
    served = read.served("entities", wanted)
    assert {row["id"]: row for row in served} == {row["id"]: row for row in by_index[()].to_pylist()}
    other = pa.array([one + 1 for one in kept.rows["frequency"].to_pylist()], pa.int64())
    kept._batch = kept._batch.set_column(kept.rows.column_names.index("frequency"), "frequency", other)
    read._served.clear()
    assert read.served("entities", wanted) == [] and read.left_out == len(by_index[()])
