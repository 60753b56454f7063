"""The read model: LanceDB tables at the versions of one manifest, row by row checked, crash by crash rolled back."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.errors import Damaged, NotFound
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import KEY, TABLES, VECTORS, check_values, sealed
from graphrag_mcp.store.tables import Change, apply, compact, open_snapshot

PLAIN = [name for name in TABLES if name not in VECTORS.values()]  # vectors have a length that a model decides


def row_of(table: str, number: int, **values: object) -> dict[str, object]:
    """A row with something of the right type in every column."""
    made: dict[str, object] = {}
    for field in TABLES[table]:
        kind = field.type
        if pa.types.is_list(kind):
            made[field.name] = []
        elif pa.types.is_string(kind):
            made[field.name] = ""
        else:
            made[field.name] = {"int64": 0, "double": 0.0, "bool": False}[str(kind)]
    made[KEY.get(table, "id")] = f"{number:032x}"
    if "n" in made:
        made["n"] = number
    return made | values


def rows_of(table: str, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, TABLES[table])


def passages(*numbers: int, terms: str = "alpha") -> pa.Table:
    return rows_of("passages", [row_of("passages", n, text=f"text {n}", terms=f"{terms} only{n}") for n in numbers])


def keys(*numbers: int) -> list[str]:
    return [f"{n:032x}" for n in numbers]


def committed(folder: Path, manifest: Manifest | None, changes: dict[str, Change]) -> Manifest:
    tables = apply(folder, manifest, changes)
    new = replace(manifest or Manifest("kb"), generation=(manifest.generation if manifest else 0) + 1, tables=tables)
    manifests.commit(folder, new)
    return new


def numbers(table: pa.Table) -> list[int]:
    return table["n"].to_pylist()


# ---- check values -------------------------------------------------------------------------------

TEXTS = st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=8), max_size=3)
PLACE = st.integers(0, 9)
SENTENCE = {"text_unit_id": st.text("ab", max_size=3), "start": PLACE, "end": PLACE, "text": st.text("x研", max_size=4)}
EVIDENCE = st.lists(st.fixed_dictionaries(SENTENCE), max_size=3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS, EVIDENCE), min_size=1, max_size=8), st.data())
def test_a_check_value_depends_on_its_row_alone(rows: list, data: st.DataObject) -> None:
    made = [row_of("entities", i, aliases=a, names=n, evidence=e) for i, (a, n, e) in enumerate(rows)]
    table = sealed("entities", rows_of("entities", made))
    start = data.draw(st.integers(0, table.num_rows - 1))
    length = data.draw(st.integers(1, table.num_rows - start))
    assert check_values(table.slice(start, length)).equals(table["check"].slice(start, length).combine_chunks())
    alone = [sealed("entities", rows_of("entities", [row]))["check"][0] for row in made]
    assert table["check"].to_pylist() == [value.as_py() for value in alone]


@pytest.mark.parametrize("name", [name for name in TABLES if "check" in TABLES[name].names])
def test_changing_any_one_column_changes_the_check_value(name: str) -> None:
    plain = row_of(name, 1)
    before = sealed(name, rows_of(name, [plain]))["check"][0].as_py()
    evidence = {"text_unit_id": "t", "start": 1, "end": 2, "text": "x"}
    for field in TABLES[name]:
        if field.name == "check":
            continue
        other: object = evidence if str(field.type).startswith("list<element: struct") else "x"
        if pa.types.is_list(field.type):
            inner = field.type.value_type
            other = [evidence] if pa.types.is_struct(inner) else ["x"] if pa.types.is_string(inner) else [5]
        elif not pa.types.is_string(field.type):
            other = 5
        changed = sealed(name, rows_of(name, [plain | {field.name: other}]))["check"][0].as_py()
        assert changed != before, field.name


def test_a_row_that_does_not_match_its_check_value_is_dropped_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = open_snapshot(tmp_path, committed(tmp_path, None, {"passages": Change(rows=passages(1, 2, 3))}))
    rows = snapshot.rows("passages")
    assert snapshot.verified("passages", rows).equals(rows)
    text = ["text 1", "text 2 (changed)", "text 3"]
    spoiled = rows.set_column(rows.column_names.index("text"), "text", pa.array(text))
    with caplog.at_level(logging.WARNING):
        assert numbers(snapshot.verified("passages", spoiled)) == [1, 3]
    assert keys(2)[0] in caplog.text


# ---- tables -------------------------------------------------------------------------------------


@pytest.mark.core
def test_rows_come_back_by_key_in_the_order_asked_for(tmp_path: Path) -> None:
    rows = passages(*range(1200))
    snapshot = open_snapshot(tmp_path, committed(tmp_path, None, {"passages": Change(rows=rows)}))
    assert numbers(snapshot.by_key("passages", keys(7, 3, 5000, 7, 1))) == [7, 3, 1]
    assert snapshot.by_key("passages", [9, 2], "n", ["text"]).to_pylist() == [{"text": "text 9"}, {"text": "text 2"}]
    many = list(range(1199, -1, -1))
    assert numbers(snapshot.by_key("passages", keys(*many))) == many  # by scanning, not by an IN list
    assert snapshot.rows("passages", "n < 3 AND text = 'text 2'", ["n"]).to_pylist() == [{"n": 2}]
    assert snapshot.rows("passages", columns=["n"]).num_rows == snapshot.count("passages") == 1200
    assert [snapshot.rows("passages", limit=n).num_rows for n in (10, 0)] == [10, 0]
    assert sum(batch.num_rows for batch in snapshot.batches("passages", ["n"])) == 1200


def test_keys_with_quotes_and_any_script_are_plain_values(tmp_path: Path) -> None:
    names = ["o'brien", "a''b", "') OR ('1'='1", "研究", 'say "hi"', "back\\slash", "per%cent_", "🙂"]
    terms = rows_of("terms", [{"term": name, "passages": i} for i, name in enumerate(names)])
    manifest = committed(tmp_path, None, {"terms": Change(rows=terms)})
    assert open_snapshot(tmp_path, manifest).by_key("terms", names)["term"].to_pylist() == names
    after = committed(tmp_path, manifest, {"terms": Change(gone=names[:3])})
    left = open_snapshot(tmp_path, after).rows("terms", columns=["term"])["term"].to_pylist()
    assert sorted(left) == sorted(names[3:])


@pytest.mark.core
def test_full_text_takes_terms_as_they_are(tmp_path: Path) -> None:
    terms = ["c++", "c#", ".net", "研究", '"quoted"', "(paren)", "+plus", "-minus", "and", "o'neil", "a:b", "x*", "^z"]
    rows = rows_of("passages", [row_of("passages", i, terms=f"common {term}") for i, term in enumerate(terms)])
    snapshot = open_snapshot(tmp_path, committed(tmp_path, None, {"passages": Change(rows=rows)}))
    for place, term in enumerate(terms):
        assert numbers(snapshot.full_text("passages", [term])) == [place], term
    assert sorted(numbers(snapshot.full_text("passages", ["研究", "c++", "nowhere"], columns=["n"]))) == [0, 3]
    found = snapshot.full_text("passages", ["common"], limit=5, columns=["id"])
    assert (found.num_rows, found.column_names) == (5, ["id", "_score"])
    assert snapshot.full_text("passages", []).num_rows == 0


def test_rows_added_after_the_index_are_found_and_deleted_ones_are_not_at_each_pinned_version(tmp_path: Path) -> None:
    first = committed(tmp_path, None, {"passages": Change(rows=passages(*range(50)))})
    early = open_snapshot(tmp_path, first)
    assert early.count("passages") == 50
    change = Change(gone=keys(1, 2), rows=passages(2, 50, 51, terms="beta"))
    second = committed(tmp_path, first, {"passages": change})
    late = open_snapshot(tmp_path, second)
    assert sorted(numbers(late.full_text("passages", ["beta"]))) == [2, 50, 51]
    assert sorted(numbers(late.full_text("passages", ["only1", "only2", "only50"]))) == [2, 50]
    assert numbers(late.by_key("passages", keys(1, 2, 51))) == [2, 51]
    assert numbers(late.by_key("passages", [1, 2, 51], "n")) == [2, 51]
    assert (early.count("passages"), late.count("passages")) == (50, 51)
    for reader in (early, open_snapshot(tmp_path, first)):
        assert numbers(reader.full_text("passages", ["beta"])) == []
        assert numbers(reader.by_key("passages", keys(1, 2, 51))) == [1, 2]
        assert numbers(reader.full_text("passages", ["only1"])) == [1]


def test_every_table_works_when_it_is_absent_empty_emptied_and_filled_again(tmp_path: Path) -> None:
    empty = {name: Change(rows=TABLES[name].empty_table()) for name in PLAIN}
    absent = open_snapshot(tmp_path, Manifest("kb"))
    made = committed(tmp_path, None, empty)
    one = {name: Change(rows=rows_of(name, [row_of(name, 1)])) for name in PLAIN}
    filled = committed(tmp_path, made, one)
    emptied = committed(tmp_path, filled, {name: Change(gone=keys(1)) for name in PLAIN})
    again = committed(tmp_path, emptied, one)
    for manifest, expected in ((None, 0), (made, 0), (filled, 1), (emptied, 0), (again, 1)):
        snapshot = open_snapshot(tmp_path, manifest) if manifest else absent
        for name in PLAIN:
            assert snapshot.count(name) == expected
            assert snapshot.rows(name).schema.names == TABLES[name].names
            assert snapshot.rows(name).num_rows == snapshot.by_key(name, keys(1)).num_rows == expected
        for name in ("passages", "entities", "reports"):
            found = snapshot.full_text(name, ["alpha"])
            assert (found.num_rows, found.column_names) == (0, [*TABLES[name].names, "_score"])


@pytest.mark.core
def test_what_a_crash_left_uncommitted_is_rolled_back_by_the_next_write(tmp_path: Path) -> None:
    first = committed(tmp_path, None, {"passages": Change(rows=passages(1, 2))})
    apply(tmp_path, first, {"passages": Change(gone=keys(1), rows=passages(8, 9)), "terms": Change(
        rows=rows_of("terms", [{"term": "lost", "passages": 1}]))})  # fmt: skip
    reader = open_snapshot(tmp_path)
    assert sorted(numbers(reader.rows("passages"))) == [1, 2]
    assert reader.count("terms") == 0
    second = committed(tmp_path, manifests.read(tmp_path), {
        "passages": Change(rows=passages(3)), "terms": Change(rows=rows_of("terms", [{"term": "kept", "passages": 1}]))
    })  # fmt: skip
    assert sorted(numbers(open_snapshot(tmp_path).rows("passages"))) == [1, 2, 3]
    assert open_snapshot(tmp_path, second).rows("terms").to_pylist() == [{"term": "kept", "passages": 1}]
    assert sorted(numbers(reader.rows("passages"))) == [1, 2]
    assert sorted(numbers(reader.full_text("passages", ["alpha"]))) == [1, 2]


def test_a_table_torn_while_it_was_first_made_does_not_stop_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "tables" / "passages.lance" / "data").mkdir(parents=True)
    (tmp_path / "tables" / "passages.lance" / "data" / "x.lance").write_bytes(b"half a file")
    committed(tmp_path, None, {"passages": Change(rows=passages(1))})
    assert numbers(open_snapshot(tmp_path).full_text("passages", ["alpha"])) == [1]


def test_removing_most_of_a_big_table_leaves_the_rest_searchable_and_old_readers_alone(tmp_path: Path) -> None:
    first = committed(tmp_path, None, {"passages": Change(rows=passages(*range(4000)))})
    early = open_snapshot(tmp_path, first)
    change = Change(gone=keys(*range(3995)), rows=passages(3, 4, terms="beta"))
    snapshot = open_snapshot(tmp_path, committed(tmp_path, first, {"passages": change}))
    assert sorted(numbers(snapshot.rows("passages"))) == [3, 4, 3995, 3996, 3997, 3998, 3999]
    assert sorted(numbers(snapshot.full_text("passages", ["beta", "only3999", "only17"]))) == [3, 4, 3999]
    assert numbers(early.full_text("passages", ["only17"])) == [17]
    assert early.count("passages") == 4000


def test_nulls_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"passages\.text has 1 nulls"):
        apply(tmp_path, None, {"passages": Change(rows=rows_of("passages", [row_of("passages", 1, text=None)]))})


def test_many_small_commits_are_compacted_without_disturbing_any_reader(tmp_path: Path) -> None:
    manifest = committed(tmp_path, None, {"passages": Change(rows=passages(*range(10)))})
    assert compact(tmp_path, manifest) is None
    early = open_snapshot(tmp_path, manifest)
    for number in range(10, 75):
        gone = keys(number - 10) if number < 20 else ()
        manifest = committed(tmp_path, manifest, {"passages": Change(gone=gone, rows=passages(number))})
    before = open_snapshot(tmp_path, manifest)
    merged = compact(tmp_path, manifest)
    assert merged is not None and merged["passages"] > manifest.tables["passages"]
    # The generation that compacted is not committed yet: what the manifest names must still be there.
    for snapshot in (before, open_snapshot(tmp_path), open_snapshot(tmp_path, replace(manifest, tables=merged))):
        assert sorted(numbers(snapshot.rows("passages"))) == list(range(10, 75))
        assert numbers(snapshot.full_text("passages", ["only70", "only3"])) == [70]
    assert sorted(numbers(early.rows("passages"))) == list(range(10))


def test_compaction_frees_what_no_generation_names_and_tells_its_reader_to_search_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = committed(tmp_path, None, {"passages": Change(rows=passages(0))})
    first = manifest
    for number in range(1, 70):
        tables = apply(tmp_path, manifest, {"passages": Change(rows=passages(number))})
        manifest = replace(manifest, generation=manifest.generation + 1, tables=tables)
    time.sleep(2.5)
    manifests.commit(tmp_path, manifest)
    (tmp_path / "generations" / "00000001.json").unlink()
    last = committed(tmp_path, manifest, {"passages": Change(rows=passages(70))})
    (tmp_path / "generations" / f"{manifest.generation:08d}.json").unlink()
    time.sleep(2.5)
    last = committed(tmp_path, last, {"passages": Change(rows=passages(71))})
    (tmp_path / "generations" / f"{last.generation - 1:08d}.json").unlink()
    files = len(list((tmp_path / "tables").rglob("*")))
    other = tmp_path.with_name("slow")
    shutil.copytree(tmp_path, other)
    with monkeypatch.context() as slow:
        slow.setattr("graphrag_mcp.store.tables.MERGED", 1)  # rows a second: Lance may be at it for a minute
        assert compact(other, last, margin=2.0) is not None
    assert open_snapshot(other, first).rows("passages").num_rows == open_snapshot(tmp_path, first).rows("passages").num_rows
    assert compact(tmp_path, last, margin=2.0) is not None
    assert len(list((tmp_path / "tables").rglob("*"))) < files / 2
    assert sorted(numbers(open_snapshot(tmp_path).rows("passages"))) == list(range(72))
    with pytest.raises(NotFound, match="Search again"):
        open_snapshot(tmp_path, first).rows("passages")


def test_threads_share_one_snapshot(tmp_path: Path) -> None:
    terms = rows_of("terms", [{"term": "a", "passages": 1}])
    changes = {"passages": Change(rows=passages(*range(300))), "terms": Change(rows=terms)}
    snapshot, wrong = open_snapshot(tmp_path, committed(tmp_path, None, changes)), []

    def read(seed: int) -> None:
        for step in range(10):
            number = (seed * 37 + step) % 300
            if numbers(snapshot.by_key("passages", keys(number))) != [number] or snapshot.count("terms") != 1:
                wrong.append(number)
            if numbers(snapshot.full_text("passages", [f"only{number}"], columns=["n"])) != [number]:
                wrong.append(number)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.core
def test_no_index_and_a_missing_table_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="index_documents"):
        open_snapshot(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    manifest = committed(tmp_path, None, {"passages": Change(rows=passages(1))})
    manifests.commit(tmp_path, replace(manifest, tables={"passages": 99}))
    with pytest.raises(Damaged, match="doctor --repair"):
        open_snapshot(tmp_path).rows("passages")
    with pytest.raises(Damaged, match="doctor --repair"):
        apply(tmp_path, manifests.read(tmp_path), {"passages": Change(rows=passages(2))})


def test_a_corpus_deleted_and_made_again_shows_nothing_of_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    committed(folder, None, {"passages": Change(rows=passages(1, 2, terms="old"))})
    assert open_snapshot(folder).count("passages") == 2
    shutil.rmtree(folder)
    committed(folder, None, {"passages": Change(rows=passages(3, terms="new"))})
    assert numbers(open_snapshot(folder).full_text("passages", ["old", "new"])) == [3]


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_tables import *
folder = Path(sys.argv[1])
manifest = manifests.read(folder)
number = manifest.generation
while True:
    number += 1
    term = rows_of("terms", [{"term": f"{number:032x}", "passages": number}])
    manifest = committed(folder, manifest, {"passages": Change(rows=passages(number)), "terms": Change(rows=term)})
    print(number, flush=True)
"""


@pytest.mark.core
def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged_and_tears_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    committed(folder, None, {"passages": Change(rows=passages(1)), "terms": Change(rows=rows_of("terms", [
        {"term": keys(1)[0], "passages": 1}]))})  # fmt: skip
    for delay in (0.003, 0.031):
        command = [sys.executable, "-c", WRITER, str(folder), str(Path(__file__).parent)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        seen += [int(line) for line in process.stdout.read().split()]
        process.wait()
        process.stdout.close()
        snapshot = open_snapshot(folder)
        assert snapshot.manifest.generation >= seen[-1]
        everything = list(range(1, snapshot.manifest.generation + 1))
        assert sorted(numbers(snapshot.rows("passages"))) == everything
        assert sorted(snapshot.rows("terms")["passages"].to_pylist()) == everything
        assert snapshot.verified("passages", snapshot.rows("passages")).num_rows == len(everything)
