"""Doctor, digest and export, over a small real index in English and Chinese."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_mcp.doctor.doctor import DERIVE, Finding
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.exchange.export import SCHEMAS, export
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.schema import KEY, TABLES, VECTORS
from graphrag_mcp.store.tables import Change, apply, lancedb, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.promises import doctor

TEXTS = {
    "harbour.md": "# The harbour of Port Ellis\n\nPort Ellis was built by Mira Castellan in 1871. The Castellan family "
    "sold the harbour to the Northern Ferry Company. The Northern Ferry Company (NFC) still runs ships from Port Ellis "
    "to Skerry Island.\n\n## Trade\n\nNFC carries wool for Anton Brandt. Anton Brandt met Mira Castellan in Port Ellis.",
    "island.md": "# Skerry Island\n\nSkerry Island has one lighthouse, kept by Anton Brandt. The lighthouse on Skerry "
    "Island was paid for by the Northern Ferry Company. Mira Castellan never saw the lighthouse.",
    "wool.txt": "The wool trade\n\nAnton Brandt sold wool to the Harrow Mill. The Harrow Mill stands in Lower Fenton. "
    "Lower Fenton and Port Ellis are joined by the Fenton Road. The Harrow Mill uses C++ programs by Devi Rao.",
    "研究院.md": "# 微软亚洲研究院\n\n微软亚洲研究院位于北京市海淀区。李开复创办了微软亚洲研究院。李开复后来在谷歌中国工作。"
    "谷歌中国的办公室也在北京市海淀区。张亚勤接替李开复领导微软亚洲研究院。",
}
Index = tuple[Path, Path]  # the corpus folder, the folder of texts


def build(home: Path, names: list[str] | None = None, recluster: bool = False) -> Index:
    source, folder = home / "kb", home / "corpora" / "kb"
    source.mkdir(parents=True, exist_ok=True)
    for name in names or TEXTS:
        (source / name).write_text(TEXTS[name], "utf-8")
    run(folder, source, recluster)
    return folder, source


def run(folder: Path, source: Path, recluster: bool = False) -> None:
    settings = replace(Settings(), chunk_size=80, chunk_overlap=10, passage_size=40)
    done = index_documents(folder, IndexRequest(paths=(str(source),), recluster=recluster), settings)
    assert (done.status, done.errors) == ("done", [])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture
def index(built: Index, tmp_path: Path) -> Path:
    """A copy of the index to spoil."""
    return Path(shutil.copytree(built[0], tmp_path / "kb"))


# ---- doctor -------------------------------------------------------------------------------------


def test_a_sound_index_has_no_findings_and_none_is_not_sound(built: Index, tmp_path: Path) -> None:
    assert doctor(built[0]) == []
    counts = {name: open_snapshot(built[0]).count(name) for name in TABLES}
    # of a model, of source code, of files with pages, of links
    empty = {"summaries", "pending", "losses", *VECTORS.values(), "code", "places", "links"}
    assert {name for name, count in counts.items() if not count} == empty, counts
    with pytest.raises(NotFound, match="index_documents"):
        doctor(tmp_path / "nothing")


def spoil(folder: Path, table: str, change: dict[str, Any], column: str = "") -> None:
    """Commit one row of `table` with other values, its check value made to fit, as a mistaken program would."""
    manifest = manifests.read(folder)
    assert manifest is not None
    snapshot = open_snapshot(folder, manifest)
    key = KEY.get(table, "id")
    first = min(row[key] for row in snapshot.rows(table).to_pylist() if not column or row[column])
    rows = snapshot.by_key(table, [first]).to_pylist()
    rows[0] |= {name: value(rows[0]) if callable(value) else value for name, value in change.items()}
    changed = Change(gone=[first], rows=pa.Table.from_pylist(rows, TABLES[table]))
    tables = apply(folder, manifest, {table: changed})
    manifests.commit(folder, replace(manifest, generation=manifest.generation + 1, tables=tables))


LIES: list[tuple[str, dict[str, Any], str, str]] = [
    ("documents", {"uri": "kb/elsewhere.md"}, "", "truth"),
    ("documents", {"text": lambda row: row["text"] + "!"}, "", "content"),
    ("documents", {"metadata": "{}x"}, "", "content"),
    ("documents", {"n": 2**40}, "", "number"),
    ("text_units", {"line_start": 99}, "", "span"),
    ("text_units", {"char_start": lambda row: row["char_start"] + 1}, "", "span"),
    ("text_units", {"document_id": "0" * 32}, "", "dangling"),
    ("passages", {"text": "another text"}, "", "span"),
    ("passages", {"part": 7}, "", "passages"),
    ("passages", {"id": "0" * 32}, "", "id"),
    ("passages", {"n": lambda row: row["n"] + 1}, "", "passages"),
    ("passages", {"uri": "kb/elsewhere.md"}, "", "passages"),
    ("passages", {"entity_ids": ["0" * 32]}, "", "mentions"),
    ("passages", {"terms": "other terms"}, "", "terms"),
    ("mentions", {"text_unit_id": "0" * 32}, "", "dangling"),
    ("evidence", {"source_id": "0" * 32}, "", "dangling"),
    ("evidence", {"weight": 77.0}, "", "weight"),
    ("evidence", {"target_id": lambda row: row["source_id"]}, "", "evidence"),
    ("entities", {"key": "another name"}, "", "id"),
    ("entities", {"frequency": 99}, "", "frequency"),
    ("entities", {"degree": 99}, "", "degree"),
    ("entities", {"text_unit_ids": []}, "", "mentions"),
    ("entities", {"evidence": lambda row: [{**row["evidence"][0], "text": "never said"}]}, "evidence", "evidence"),
    ("relationships", {"target_id": "f" * 32}, "", "dangling"),
    ("relationships", {"weight": 0.25}, "", "weight"),
    ("relationships", {"text_unit_ids": ["0" * 32]}, "", "evidence"),
    ("communities", {"parent": "0" * 32}, "", "dangling"),
    ("communities", {"size": 99}, "", "size"),
    ("communities", {"children": ["0" * 32]}, "", "children"),
    ("memberships", {"path": []}, "", "membership"),
    ("reports", {"id": "0" * 32}, "", "dangling"),
    ("reports", {"entity_ids": ["0" * 32]}, "", "dangling"),
    ("reports", {"summary": f"Ada built it. [Data: Entities ({'0' * 32})]"}, "", "dangling"),
    ("reports", {"level": 9}, "", "report"),
    ("reports", {"n": lambda row: row["n"] + 1}, "", "report"),
    ("terms", {"passages": 99}, "", "terms"),
]


@pytest.mark.parametrize(("table", "change", "column", "kind"), LIES, ids=[f"{lie[0]}-{[*lie[1]][0]}" for lie in LIES])
def test_every_broken_promise_is_found(
    index: Path, table: str, change: dict[str, Any], column: str, kind: str
) -> None:
    spoil(index, table, change, column)
    found = doctor(index)
    assert kind in {finding.kind for finding in found}, found
    assert {finding.repair for finding in found} == {DERIVE}


@pytest.mark.parametrize("table", ["mentions", "memberships", "reports", "terms", "passages"])
def test_a_row_that_stands_twice_is_found(index: Path, table: str) -> None:
    manifest = manifests.read(index)
    assert manifest is not None
    once = open_snapshot(index).rows(table).slice(1, 1)
    tables = apply(index, manifest, {table: Change((), once)})
    counters = {name: count + (name == table) for name, count in manifest.counters.items()}
    new = replace(manifest, generation=manifest.generation + 1, tables={**manifest.tables, **tables}, counters=counters)
    manifests.commit(index, new)
    found = doctor(index)
    assert table in {finding.where for finding in found} and {finding.repair for finding in found} == {DERIVE}


def test_a_lost_row_is_found_by_what_names_it_and_by_the_counters(index: Path) -> None:
    manifest = manifests.read(index)
    assert manifest is not None
    lost = open_snapshot(index).rows("entities", "degree > 0", ["id"])["id"].to_pylist()[0]
    tables = apply(index, manifest, {"entities": Change(gone=[lost])})
    manifests.commit(index, replace(manifest, generation=manifest.generation + 1, tables=tables))
    kinds = {(finding.kind, finding.where) for finding in doctor(index)}
    assert {("count", "entities"), ("dangling", "evidence"), ("dangling", "relationships")} <= kinds


def test_flipped_bits_anywhere_in_the_truth_and_the_manifest_are_found(index: Path) -> None:
    chance = random.Random(7)
    for path in [*(index / "truth").iterdir(), index / "manifest.json"]:
        whole = path.read_bytes()
        for place in chance.sample(range(len(whole)), 2):
            if path.suffix == ".json" and whole[place : place + 1].isspace():
                continue
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
            kind = "manifest" if path.name == "manifest.json" else "truth"
            assert kind in {finding.kind for finding in doctor(index)}
        path.write_bytes(whole)
    assert doctor(index) == []


def test_a_damaged_row_and_a_damaged_table_file_are_found_and_derived_again(index: Path, built: Index) -> None:
    files = sorted((index / "tables" / "text_units.lance" / "data").glob("*.lance"))
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"Castellan", b"Castelhan"))
    shutil.rmtree(index / "tables" / "entities.lance")
    found = doctor(index)
    assert {("row", "text_units"), ("table", "entities")} <= {(finding.kind, finding.where) for finding in found}
    wanted = digest(open_snapshot(built[0]))
    mended = doctor(index, repair=True, rebuild=lambda folder: run(folder, built[1]))
    assert mended and [finding for finding in mended if not finding.repaired] == []
    assert doctor(index) == []
    assert digest(open_snapshot(index)) == wanted


def test_an_index_that_lost_all_its_tables_is_derived_from_the_truth(index: Path, built: Index) -> None:
    shutil.rmtree(index / "tables")
    assert {finding.kind for finding in doctor(index)} == {"table"}
    mended = doctor(index, repair=True, rebuild=lambda folder: run(folder, built[1]))
    assert all(finding.repaired for finding in mended)
    assert (doctor(index), digest(open_snapshot(index))) == ([], digest(open_snapshot(built[0])))
    assert [path.name for path in index.glob(".*")] == []


def test_an_index_file_that_cannot_be_read_is_a_finding_and_no_crash(index: Path) -> None:
    for file in (index / "tables" / "passages.lance" / "_indices").rglob("*.lance"):
        file.write_bytes(file.read_bytes()[:-40] + b"\0" * 40)
    found = doctor(index)
    assert {(finding.kind, finding.repair) for finding in found} == {("file", DERIVE), ("table", DERIVE)}


@pytest.mark.parametrize(("table", "column"), [("entities", "n"), ("relationships", "source_id"), ("mentions", "key")])
def test_a_lost_file_of_any_index_is_found_and_derived_again(index: Path, built: Index, table: str, column: str) -> None:
    version = open_snapshot(index).manifest.tables[table]
    opened = lancedb().connect(str(index / "tables")).open_table(table)
    opened.checkout(version)
    (used,) = [one.index_uuid for one in opened.list_indices() if one.columns == [column]]
    (index / "tables" / f"{table}.lance" / "_indices" / used / "page_data.lance").unlink()
    moved = index.rename(index.parent / "elsewhere")  # what this process has read of the file, it remembers by its path
    found = doctor(moved)
    assert found and {finding.repair for finding in found} == {DERIVE}
    mended = doctor(moved, repair=True, rebuild=lambda folder: run(folder, built[1]))
    assert all(finding.repaired for finding in mended) and doctor(moved) == []


def test_repair_removes_only_what_nobody_names_and_mends_the_manifest(index: Path) -> None:
    manifest = manifests.read(index)
    assert manifest is not None
    (index / "truth" / "documents-00000099-deadbeef.parquet").write_bytes(b"left")
    (index / "truth" / ".documents-00000099.1.tmp").write_bytes(b"left")
    (index / "tables" / "forgotten.lance").mkdir()
    (index / "manifest.json").write_bytes(b"{ torn")
    kinds = Counter(finding.kind for finding in doctor(index))
    assert kinds == {"manifest": 1, "orphan": 3}
    assert all(finding.repaired for finding in doctor(index, repair=True))
    assert doctor(index) == []
    assert manifests.parse((index / "manifest.json").read_bytes(), "") == manifest


def test_without_the_original_nothing_is_derived_and_the_finding_says_what_to_do(index: Path) -> None:
    segment = next((index / "truth").iterdir())
    segment.unlink()
    called: list[Path] = []
    found = doctor(index, repair=True, rebuild=called.append)
    assert called == []
    assert Finding(
        "truth", segment.name, "cannot be read (No such file or directory)",
        "Restore the file from a backup, or index the folders again into a new corpus",
    ) in found  # fmt: skip


# ---- digest -------------------------------------------------------------------------------------


def test_the_digest_knows_content_and_not_history(built: Index, tmp_path: Path) -> None:
    wanted = digest(open_snapshot(built[0]))
    assert [len(value) for value in wanted.values()] == [64, 64]
    folder, source = build(tmp_path, ["wool.txt"])
    assert digest(open_snapshot(folder)) != wanted
    (source / "wool.txt").write_text("Something else about Port Ellis and the Harrow Mill.", "utf-8")
    (source / "more.txt").write_text("A text that will go. It names Devi Rao.", "utf-8")
    run(folder, source)
    (source / "more.txt").unlink()
    build(tmp_path, recluster=True)
    assert digest(open_snapshot(folder)) == wanted
    assert doctor(folder) == []


@pytest.mark.parametrize(
    ("table", "change", "moved"),
    [
        ("documents", {"metadata": '{"a": 1}'}, ["content"]),
        ("text_units", {"char_end": 3}, ["content"]),
        ("entities", {"title": "Another"}, ["content"]),
        ("relationships", {"weight": 9.0}, ["content"]),
        ("relationships", {"weight": lambda row: row["weight"] + 1e-12}, []),
        ("entities", {"n": 4_000}, []),
        ("documents", {"created": "1999-01-01"}, []),
        ("reports", {"summary": "Another"}, ["communities"]),
        ("communities", {"parent": "nobody"}, ["communities"]),
    ],
)
def test_each_hash_moves_with_what_it_covers(index: Path, table: str, change: dict[str, Any], moved: list[str]) -> None:
    before = digest(open_snapshot(index))
    spoil(index, table, change)
    after = digest(open_snapshot(index))
    assert [name for name in before if before[name] != after[name]] == moved


# ---- export -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exported(built: Index, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("out")
    (folder / "notes.txt").write_text("mine")
    counts = export(open_snapshot(built[0]), folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*(f"{name}.parquet" for name in SCHEMAS), "notes.txt"])
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in SCHEMAS}
    assert {name: table.num_rows for name, table in tables.items()} == counts
    keywords = SCHEMAS["relationships"].get_field_index("keywords")  # rules give none
    expected = SCHEMAS | {"relationships": SCHEMAS["relationships"].remove(keywords)}
    assert {name: table.schema for name, table in tables.items()} == expected
    return {name: table.to_pylist() for name, table in tables.items()}


def test_every_id_in_the_export_resolves_both_ways(exported: dict[str, list[dict[str, Any]]]) -> None:
    by_id = {name: {row["id"]: row for row in rows} for name, rows in exported.items()}
    for name in ("documents", "text_units", "entities", "relationships", "communities"):
        numbers = [row["human_readable_id"] for row in exported[name]]
        assert numbers == sorted(set(numbers)) and numbers
    for unit in exported["text_units"]:
        document = by_id["documents"][unit["document_id"]]
        assert document["text"][unit["char_start"] : unit["char_end"]] == unit["text"]
        assert unit["id"] in document["text_unit_ids"]
        assert all(unit["id"] in by_id["entities"][id]["text_unit_ids"] for id in unit["entity_ids"])
        assert all(unit["id"] in by_id["relationships"][id]["text_unit_ids"] for id in unit["relationship_ids"])
    for name, column in (("entities", "entity_ids"), ("relationships", "relationship_ids")):
        for row in exported[name]:
            assert all(row["id"] in by_id["text_units"][unit][column] for unit in row["text_unit_ids"])


def test_communities_hold_what_lies_inside_and_every_one_has_its_report(
    exported: dict[str, list[dict[str, Any]]],
) -> None:
    title = {row["id"]: row["title"] for row in exported["entities"]}
    by_number = {row["community"]: row for row in exported["communities"]}
    for row in exported["communities"]:
        members = {title[id] for id in row["entity_ids"]}
        inside = [r["id"] for r in exported["relationships"] if {r["source"], r["target"]} <= members]
        assert (sorted(row["relationship_ids"]), row["size"]) == (sorted(inside), len(members))
        assert all(by_number[child]["parent"] == row["community"] for child in row["children"])
        assert row["parent"] == -1 or row["community"] in by_number[row["parent"]]["children"]
    assert {row["community"] for row in exported["community_reports"]} == by_number.keys()
    for row in exported["community_reports"]:
        whole = json.loads(row["full_content_json"])
        assert (whole["title"], whole["rating"], whole["findings"]) == (row["title"], row["rank"], row["findings"])
        assert row["title"] == by_number[row["community"]]["title"]
        assert "[Data: " in row["full_content"] and not any(id in row["full_content"] for id in title)


def test_an_export_never_goes_into_the_index_itself(index: Path) -> None:
    for folder in (index, index / "truth", index / "x" / ".." / "out"):
        with pytest.raises(BadInput, match="inside the index"):
            export(open_snapshot(index), folder)
    assert doctor(index) == []
