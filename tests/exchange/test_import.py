"""Import: folders of GraphRAG and LightRAG, and our own export, become corpora that cite, and stay what they are."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from campaigns.model_campaign import EAGER, demo, write_documents
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput
from graphrag_mcp.exchange.export import export
from graphrag_mcp.exchange.importing import import_folder
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support import foreign_indexes as made
from tests.support.openai_server import openai_server
from tests.support.promises import doctor

Row = dict[str, Any]


def rows(snapshot: Snapshot, table: str) -> list[Row]:
    return snapshot.rows(table).to_pylist()


def bring(corpus: Path, source: Path, **settings: Any) -> tuple[dict[str, int], list[str]]:
    result, notes = import_folder(corpus, source, replace(Settings(), **settings))
    assert (result.status, result.errors, result.usage.get("calls", 0)) == ("done", [], 0)
    return result.counts, notes


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A corpus and the GraphRAG folder it was imported from. Do not write to them."""
    home = tmp_path_factory.mktemp("imported")
    source = made.write(home / "project" / "output", made.graphrag())
    counts, notes = bring(home / "c", source, chat_model="a-model-that-is-never-asked")
    assert counts["added"] == 2
    assert notes == ["1 claim: left out (GraphRAG's covariates)"]
    return home / "c", source


def test_what_graphrag_extracted_is_what_the_corpus_holds(imported: tuple[Path, Path]) -> None:
    snapshot = open_snapshot(imported[0])
    entities = {row["title"]: row for row in rows(snapshot, "entities")}
    assert {title: (row["type"], row["description"], row["frequency"]) for title, row in entities.items()} == {
        title: (kind, told, len(units)) for title, kind, told, units in made.PEOPLE
    }
    title_of = {row["id"]: title for title, row in entities.items()}
    links = {
        frozenset((title_of[row["source_id"]], title_of[row["target_id"]])): row
        for row in rows(snapshot, "relationships")
    }
    assert {pair: (row["weight"], row["description"]) for pair, row in links.items()} == {
        frozenset((a, b)): (weight, told) for a, b, told, weight, _ in made.LINKS
    }
    assert {row["by"] for row in rows(snapshot, "mentions")} == {"imported:graphrag"}
    assert doctor(imported[0]) == []


def test_every_span_gives_the_text_unit_that_was_imported(imported: tuple[Path, Path]) -> None:
    snapshot = open_snapshot(imported[0])
    documents = {row["id"]: row for row in rows(snapshot, "documents")}
    assert {row["uri"]: row["text"] for row in documents.values()} == {
        "project/lamp.txt": made.LAMP, "project/mill.txt": made.MILL,
    }  # fmt: skip
    units = rows(snapshot, "text_units")
    assert sorted(row["text"] for row in units) == sorted(text for _, text in made.UNITS.values())
    for row in units:
        assert documents[row["document_id"]]["text"][row["char_start"] : row["char_end"]] == row["text"]
    for row in rows(snapshot, "passages"):
        assert documents[row["document_id"]]["text"][row["char_start"] : row["char_end"]] == row["text"]


def test_communities_and_reports_come_with_it_and_lead_to_sources(imported: tuple[Path, Path]) -> None:
    snapshot = open_snapshot(imported[0])
    title_of = {row["id"]: row["title"] for row in rows(snapshot, "entities")}
    groups = {frozenset(title_of[id] for id in row["entity_ids"]): row for row in rows(snapshot, "communities")}
    wanted = {frozenset(made.PEOPLE[n][0] for n in members): parent for parent, members in made.GROUPS.values()}
    assert {group: 0 if parent < 0 else 1 for group, parent in wanted.items()} == {
        g: row["level"] for g, row in groups.items()
    }
    reports = {row["title"]: row for row in rows(snapshot, "reports")}
    assert {title: (row["method"], row["rank"]) for title, row in reports.items()} == {
        f"Report of group {n}": ("imported:graphrag", 5.0 + n) for n in made.GROUPS
    }
    known = {row["id"] for table in ("entities", "relationships", "text_units") for row in rows(snapshot, table)}
    for row in reports.values():
        ids = re.findall(r"\b[0-9a-f]{32}\b", row["full_content"])
        assert len(ids) >= 3 and set(ids) <= known
        assert "Sources (" in row["full_content"]  # GraphRAG named rows alone; a statement leads to its text here


def test_the_same_folder_again_changes_nothing(imported: tuple[Path, Path], tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(imported[0], tmp_path / "c"))
    before = manifests.read(corpus)
    counts, _ = bring(corpus, imported[1], chat_model="a-model-that-is-never-asked")
    assert {name: counts[name] for name in ("added", "changed", "removed", "unchanged")} == {
        "added": 0, "changed": 0, "removed": 0, "unchanged": 2,
    }  # fmt: skip
    assert manifests.read(corpus) == before


def test_a_changed_folder_brings_its_changes_and_equals_a_fresh_import(tmp_path: Path) -> None:
    source = made.write(tmp_path / "out", made.graphrag())
    bring(tmp_path / "c", source)
    made.write(source, made.changed())
    counts, _ = bring(tmp_path / "c", source)
    assert (counts["changed"], counts["removed"]) == (1, 1)
    bring(tmp_path / "fresh", source)
    now = open_snapshot(tmp_path / "c")
    assert digest(now) == digest(open_snapshot(tmp_path / "fresh"))
    assert "Another title" in {row["title"] for row in rows(now, "reports")}
    assert doctor(tmp_path / "c") == []


def test_other_folders_beside_it_repair_and_other_settings_leave_it_what_it_is(
    imported: tuple[Path, Path], tmp_path: Path
) -> None:
    corpus = Path(shutil.copytree(imported[0], tmp_path / "c"))
    other = tmp_path / "project"  # the name that the import took
    other.mkdir()
    (other / "lamp.txt").write_text("The Fenton Road joins Selby Green with Hallow Ford. Hallow Ford is old.", "utf-8")
    settings = Settings()
    done = index_documents(corpus, IndexRequest(paths=(str(other),)), settings)
    assert (done.counts["added"], done.counts["removed"]) == (1, 0)
    snapshot = open_snapshot(corpus)
    assert {row["uri"] for row in rows(snapshot, "documents")} == {
        "project/lamp.txt",
        "project/mill.txt",
        "project~2/lamp.txt",
    }
    methods = [row["method"] for row in rows(snapshot, "reports")]
    assert methods.count("imported:graphrag") == len(made.GROUPS) and len(methods) > len(made.GROUPS)
    before = digest(snapshot)
    shutil.rmtree(corpus / "tables" / "entities.lance")
    shutil.rmtree(corpus / "tables" / "reports.lance")
    doctor(corpus, True, lambda folder: index_documents(folder, IndexRequest(), settings))
    assert digest(open_snapshot(corpus)) == before
    index_documents(corpus, IndexRequest(), replace(settings, chunk_size=300, passage_size=60))
    assert digest(open_snapshot(corpus))["communities"] == before["communities"]
    assert doctor(corpus) == []
    index_documents(corpus, IndexRequest(recluster=True), settings)
    assert digest(open_snapshot(corpus)) == before


def test_a_report_goes_when_its_community_is_another_one(imported: tuple[Path, Path], tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(imported[0], tmp_path / "c"))
    (tmp_path / "more").mkdir()
    joined = "Devi Rao works with Osric Penhallow. Osric Penhallow admires Devi Rao. "
    (tmp_path / "more" / "a.txt").write_text(joined * 3, "utf-8")
    index_documents(corpus, IndexRequest(paths=(str(tmp_path / "more"),)), Settings())
    reports = {row["title"]: row["method"] for row in rows(open_snapshot(corpus), "reports")}
    assert "Report of group 1" not in reports  # Osric Penhallow has joined it
    assert reports["Report of group 2"] == "imported:graphrag"
    assert doctor(corpus) == []


@pytest.mark.parametrize(
    "lost", ["documents", "entities", "relationships", "communities", "community_reports"]
)
def test_without_a_table_the_rest_is_imported_and_the_loss_is_named(tmp_path: Path, lost: str) -> None:
    source = made.write(tmp_path / "out", made.graphrag())
    (source / f"{lost}.parquet").write_bytes(b"PAR1 and no more")
    counts, notes = bring(tmp_path / "c", source)
    assert any(note.startswith(f"{lost}.parquet cannot be read") for note in notes), notes
    assert counts["documents_total"] == (3 if lost == "documents" else 2)
    assert counts["entities"] == 7
    assert doctor(tmp_path / "c") == []


@pytest.mark.parametrize("lost", ["documents", "entities", "communities"])
def test_a_folder_that_was_damaged_later_takes_nothing_away(tmp_path: Path, lost: str) -> None:
    source = made.write(tmp_path / "out", made.graphrag())
    bring(tmp_path / "c", source)
    before = manifests.read(tmp_path / "c")
    (source / f"{lost}.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match=rf"{lost}\.parquet cannot be read"):
        bring(tmp_path / "c", source)
    assert manifests.read(tmp_path / "c") == before
    made.write(source, made.graphrag())
    assert bring(tmp_path / "c", source)[0]["unchanged"] == 2


def test_communities_that_an_update_appended_are_computed_again_and_the_others_keep_their_reports(tmp_path: Path) -> None:
    tables = made.graphrag()
    shared = {"level": 0, "parent": -1, "children": [], "community": 4, "human_readable_id": 4}
    tables["communities"].append({**tables["communities"][1], **shared, "id": "g4", "entity_ids": ["e3", "e4"]})
    tables["community_reports"].append({**tables["community_reports"][1], **shared, "id": "p4"})
    _, notes = bring(tmp_path / "c", made.write(tmp_path / "out", tables))
    assert [note.split(" ", 2)[:2] for note in notes[1:]] == [["1", "community:"], ["1", "report:"]]
    reports = rows(open_snapshot(tmp_path / "c"), "reports")
    assert [row["method"] for row in reports].count("imported:graphrag") == len(made.GROUPS)
    assert doctor(tmp_path / "c") == []


def test_texts_that_do_not_stand_in_their_document_to_the_letter_are_placed_or_kept_apart(tmp_path: Path) -> None:
    tables = made.graphrag()
    tables["text_units"][0]["text"] = "\ufffd" + tables["text_units"][0]["text"][3:]
    tables["text_units"][1]["text"] = " " + tables["text_units"][1]["text"] + "\n\ufffd"
    tables["text_units"][2]["text"] = "Nobody wrote this about DEVI RAO. It stands in no document."
    counts, notes = bring(tmp_path / "c", made.write(tmp_path / "out", tables))
    assert counts["documents_total"] == 3
    assert [note.split(" ", 1)[0] for note in notes[1:]] == ["1", "2"] and "nowhere" in notes[1]
    snapshot = open_snapshot(tmp_path / "c")
    documents = {row["id"]: row for row in rows(snapshot, "documents")}
    own = next(row for row in documents.values() if "Nobody wrote this" in row["text"])
    assert own["title"] == "mill.txt (graphrag text unit 2)"
    for row in rows(snapshot, "text_units"):
        assert documents[row["document_id"]]["text"][row["char_start"] : row["char_end"]] == row["text"]
    assert any(row["text"] == made.MILL for row in rows(snapshot, "text_units"))  # what no unit holds is found too
    assert doctor(tmp_path / "c") == []


def test_an_export_has_keywords_only_where_some_were_given(imported: tuple[Path, Path], tmp_path: Path) -> None:
    snapshot = open_snapshot(imported[0])
    export(snapshot, tmp_path / "bare")
    assert "keywords" not in pq.read_schema(tmp_path / "bare" / "relationships.parquet").names
    assert import_folder(tmp_path / "again", tmp_path / "bare", Settings())[0].counts["relationships"] == len(made.LINKS)


def test_a_model_that_comes_later_is_not_asked_about_what_was_imported_and_keeps_what_it_said(tmp_path: Path) -> None:
    source = made.write(tmp_path / "out", made.graphrag())
    docs = write_documents(tmp_path / "docs", 2)
    with openai_server(demo) as server:
        settings = Settings(
            **{"chat_model": "m", "base_url": server.url, "max_retries": 0, **EAGER, "embedding_model": ""}
        )
        index_documents(tmp_path / "c", IndexRequest(paths=(str(docs),), method="llm"), settings)
        asked = len(server.requests)
        read = {row["form"] for row in rows(open_snapshot(tmp_path / "c"), "mentions") if row["by"] == "llm:m"}
        assert read
        result, _ = import_folder(tmp_path / "c", source, settings)
        assert (result.status, len(server.requests)) == ("done", asked)
        mentions = rows(open_snapshot(tmp_path / "c"), "mentions")
        assert {row["form"] for row in mentions if row["by"] == "llm:m"} == read
        index_documents(tmp_path / "c", IndexRequest(paths=(str(docs),)), settings)
        said = [json.dumps(request) for request in server.requests[asked:]]
        assert not [one for one in said if "harbour lamp of Port Ellis" in one or "Report of group" in one]
    snapshot = open_snapshot(tmp_path / "c")
    assert [row["method"] for row in rows(snapshot, "reports")].count("imported:graphrag") == len(made.GROUPS)
    told = {row["title"]: row["description"] for row in rows(snapshot, "entities")}
    assert {title: told[title] for title, *_ in made.PEOPLE} == {title: said for title, _, said, _ in made.PEOPLE}
    assert doctor(tmp_path / "c") == []
