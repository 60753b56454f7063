"""Doctor on other people's indexes: a sound folder has no faults, and every damage is named with its examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.doctor.foreign import Fault, examine
from graphrag_mcp.errors import BadInput
from graphrag_mcp.exchange.export import export
from graphrag_mcp.store.tables import open_snapshot
from tests.support import foreign_indexes as made
from tests.support.command import run_here

Change = Callable[[made.Tables], Any]


def faults(folder: Path) -> list[Fault]:
    return [one for one in examine(folder) if not one.remark]


def test_a_sound_folder_has_no_faults(tmp_path: Path) -> None:
    tables = made.graphrag()
    made.lance(made.write(tmp_path, tables), tables)
    assert faults(tmp_path) == []
    assert faults(made.write_lightrag(tmp_path / "light", made.lightrag())) == []
    with pytest.raises(BadInput, match=r"entities\.parquet"):
        examine(tmp_path / "nothing")


def test_what_we_export_is_sound(sample_home: Path, tmp_path: Path) -> None:
    export(open_snapshot(sample_home / "corpora" / "sample"), tmp_path / "out")
    assert faults(tmp_path / "out") == []


def row(table: str, place: int = 0, **values: Any) -> Change:
    return lambda tables: tables[table][place].update(values)


def twice(table: str, place: int = 0, **values: Any) -> Change:
    return lambda tables: tables[table].append({**tables[table][place], **values})


def lost(table: str, place: int = 0) -> Change:
    return lambda tables: tables[table].pop(place)


def append_an_update(tables: made.Tables) -> None:
    """What an update leaves: the new documents' communities behind the old ones, with numbers of their own."""
    shared = {"period": "2024-06-01", "parent": -1, "children": [], "level": 0}
    for number, members in ((4, ["e3", "e4"]), (5, ["e5", "e6"])):
        new = {**tables["communities"][1], **shared, "id": f"g{number}", "community": number, "size": 2,
               "human_readable_id": number, "entity_ids": members, "relationship_ids": [], "text_unit_ids": ["u2"]}  # fmt: skip
        tables["communities"].append(new)
        report = {**tables["community_reports"][1], **shared, "id": f"p{number}", "community": number, "size": 2,
                  "human_readable_id": number}  # fmt: skip
        tables["community_reports"].append(report)


DAMAGES: list[tuple[str, Change, str, str, str]] = [
    ("a unit names a document that is not there", row("text_units", document_id="d9"), "dangling", "text_units", "d9"),
    ("a unit names no document", row("text_units", document_id=""), "empty", "text_units", "u0"),
    ("a unit names an entity that is not there", row("text_units", entity_ids=["e0", "e9"]), "dangling", "text_units", "e9"),
    ("a unit names a relationship that is not there", row("text_units", relationship_ids=["r99"]), "dangling", "text_units", "r99"),
    ("a character is cut in halves", row("text_units", 2, text=made.MILL[:-1] + "\ufffd"), "broken", "text_units", "u2"),
    ("a unit has no text", row("text_units", 1, text=""), "empty", "text_units", "u1"),
    ("a document lists a unit that is not there", row("documents", text_unit_ids=["u0", "u1", "u9"]), "dangling", "documents", "u9"),
    ("a document has no units", twice("documents", id="d2", human_readable_id=2, text_unit_ids=[], text="Other."), "bare", "documents", "lamp"),
    ("an entity names a unit that is not there", row("entities", text_unit_ids=["u0", "u9"]), "dangling", "entities", "u9"),
    ("two entities have one title", twice("entities", id="e9", human_readable_id=9), "duplicate", "entities", "MIRA CASTELLAN"),
    ("two entities have one id", row("entities", id="e1"), "duplicate", "entities", "e1"),
    ("a degree is stale", row("entities", degree=40), "degree", "entities", "MIRA CASTELLAN: 40, recounted 3"),
    ("a frequency is stale", row("entities", frequency=7), "frequency", "entities", "MIRA CASTELLAN: 7, recounted 2"),
    ("a degree is missing", row("entities", degree=None), "degree", "entities", "MIRA CASTELLAN: None, recounted 3"),
    ("a description is empty", row("entities", 6, description=" "), "empty", "entities", "DEVI RAO"),
    ("an end is no entity", row("relationships", target="NOBODY"), "dangling", "relationships", "NOBODY"),
    ("a combined degree is stale", row("relationships", combined_degree=1), "combined_degree", "relationships", "MIRA"),
    ("a pair has two rows", twice("relationships", id="r9", human_readable_id=9), "duplicate", "relationships", "PORT ELLIS"),
    ("a relationship names a unit that is not there", row("relationships", text_unit_ids=["u9"]), "dangling", "relationships", "u9"),
    ("a relationship has no description", row("relationships", description="nan"), "empty", "relationships", "MIRA"),
    ("a community has no report", lost("community_reports", 3), "unreported", "communities", "community 3"),
    ("a report has no community", twice("community_reports", id="p9", community=9, human_readable_id=9), "dangling", "community_reports", "Report of group 0"),
    ("a community has two reports", twice("community_reports", id="p9", human_readable_id=9), "duplicate", "community_reports", "community 0"),
    ("a parent is not there", row("communities", 2, parent=77), "dangling", "communities", "77"),
    ("an entity is outside every community", row("communities", 1, entity_ids=["e5", "e6"], size=2), "outside", "entities", "HARROW MILL"),
    ("a community names an entity that is not there", row("communities", entity_ids=["e0", "e9"]), "dangling", "communities", "e9"),
    ("a size is stale", row("communities", size=40), "size", "communities", "40, recounted 4"),
    ("a report is empty", row("community_reports", summary=None), "empty", "community_reports", "community 0"),
    ("a report cites what is not there", row("community_reports", full_content="So it is [Data: Entities (99)]."), "reference", "community_reports", "Entities (99)"),
    ("a rank is no number", row("community_reports", rank=None), "empty", "community_reports", "community 0"),
    ("a claim names a unit that is not there", row("covariates", text_unit_id="u9"), "dangling", "covariates", "u9"),
    ("an update was appended", append_an_update, "overlap", "communities", "communities 1, 4 of level 0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind", "where", "example"), [one[1:] for one in DAMAGES], ids=[one[0] for one in DAMAGES]
)
def test_every_damage_is_named(tmp_path: Path, change: Change, kind: str, where: str, example: str) -> None:
    tables = made.graphrag()
    change(tables)
    found = faults(made.write(tmp_path, tables))
    wanted = [one for one in found if (one.kind, one.where) == (kind, where)]
    assert wanted, found
    assert any(example in said for one in wanted for said in one.examples), wanted
    assert all(one.count >= 1 and len(one.examples) <= 3 and one.repair for one in found)


def test_a_count_is_the_number_and_not_the_examples(tmp_path: Path) -> None:
    tables = made.graphrag()
    for one in tables["entities"]:
        one["degree"] = 99
    (found,) = faults(made.write(tmp_path, tables))
    assert (found.kind, found.count, len(found.examples)) == ("degree", len(made.PEOPLE), 3)


def test_files_that_are_missing_or_do_not_open_are_named_and_hide_nothing_else(tmp_path: Path) -> None:
    tables = made.graphrag()
    tables["entities"][0]["degree"] = 40
    folder = made.write(tmp_path, tables)
    (folder / "communities.parquet").write_bytes(b"PAR1 but no more")
    (folder / "community_reports.parquet").unlink()
    kinds = {(one.kind, one.where) for one in faults(folder)}
    assert {("unreadable", "communities.parquet"), ("missing", "community_reports.parquet"), ("degree", "entities")} <= kinds
    assert "dangling" not in {kind for kind, _ in kinds}  # nothing is said of a table that cannot be read


def test_a_vector_store_of_the_update_alone_is_named(tmp_path: Path) -> None:
    tables = made.graphrag()
    folder = made.write(tmp_path, tables)
    new = {name: rows[-2:] for name, rows in tables.items()}
    new["text_units"] = [*new["text_units"], {"id": "u77"}]
    made.lance(folder, new)
    found = {(one.kind, one.where): one for one in faults(folder)}
    entities = found["vectors", "lancedb/entity_description"]
    assert entities.count == len(made.PEOPLE) - 2 and "2 of 7" in entities.what
    assert found["orphans", "lancedb/text_unit_text"].examples == ["u77"]


def test_tables_under_their_old_names_are_read(tmp_path: Path) -> None:
    tables = made.graphrag()
    tables["entities"][0]["degree"] = 40
    assert [one.kind for one in faults(made.write(tmp_path, tables, "create_final_"))] == ["degree"]


# ---- LightRAG ------------------------------------------------------------------------------------


def drop(name: str, key: str) -> Change:
    return lambda files: files[name].pop(key)


LIGHT: list[tuple[str, Callable[[Any], Any], str, str]] = [
    ("a chunk's document is not there", drop("kv_store_full_docs.json", "doc-d1"), "dangling", "kv_store_text_chunks.json"),
    ("a chunk is not there", drop("kv_store_text_chunks.json", "chunk-u2"), "dangling", "graph_chunk_entity_relation.graphml"),
    ("a document has no chunk", lambda f: f["kv_store_full_docs.json"].update({"doc-x": {"content": "More."}}), "bare", "kv_store_full_docs.json"),
    ("a document failed", lambda f: f["kv_store_doc_status.json"]["doc-d1"].update(status="failed"), "failed", "kv_store_doc_status.json"),
    ("a character is cut in halves", lambda f: f["kv_store_text_chunks.json"]["chunk-u1"].update(content="lamp\ufffd"), "broken", "kv_store_text_chunks.json"),
    ("an entity has no description", lambda f: f["graph"]["nodes"]["Devi Rao"].update(description=""), "empty", "graph_chunk_entity_relation.graphml"),
    ("an entity has no vector", lambda f: f["vdb_entities.json"]["data"].pop(), "vectors", "vdb_entities.json"),
    ("a vector has no entity", lambda f: f["vdb_entities.json"]["data"].append({"__id__": "ent-x", "entity_name": "Ghost"}), "orphans", "vdb_entities.json"),
    ("a pair has no vector", lambda f: f["vdb_relationships.json"]["data"].pop(0), "vectors", "vdb_relationships.json"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "where"), [one[1:] for one in LIGHT], ids=[one[0] for one in LIGHT])
def test_every_damage_of_a_storage_is_named(
    tmp_path: Path, change: Callable[[Any], Any], kind: str, where: str
) -> None:
    files = made.lightrag()
    change(files)
    found = faults(made.write_lightrag(tmp_path, files))
    assert (kind, where) in {(one.kind, one.where) for one in found}, found


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_says_what_is_wrong_and_changes_nothing(tmp_path: Path) -> None:
    sound = made.write(tmp_path / "sound", made.graphrag())
    tables = made.graphrag()
    tables["entities"][0]["degree"] = 40
    damaged = made.write(tmp_path / "damaged", tables)
    before = {path.name: path.read_bytes() for path in damaged.iterdir()}
    fine = run_here("doctor", sound)
    assert fine.returncode == 0 and "No faults" in fine.stdout, fine.stdout + fine.stderr
    shown = run_here("doctor", damaged, "--json")
    assert shown.returncode == 1
    body = json.loads(shown.stdout)
    assert body["sound"] is False
    assert body["findings"][0] == {
        "kind": "degree", "where": "entities", "count": 1, "what": "values of degree are not what is counted",
        "examples": ["MIRA CASTELLAN: 40, recounted 3"], "repair": body["findings"][0]["repair"], "remark": False,
    }  # fmt: skip
    refused = run_here("doctor", damaged, "--repair")
    assert refused.returncode == 2 and "--repair" in refused.stderr
    assert before == {path.name: path.read_bytes() for path in damaged.iterdir()}
