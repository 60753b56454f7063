"""Import of LightRAG's storage and of our own export; the command; and a kill in its middle."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.exchange.export import export
from graphrag_mcp.index.edits import Target, Wish, edit
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import entities
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.edit_log import in_force
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.exchange.test_import import Row, bring, rows
from tests.support import foreign_indexes as made
from tests.support.command import ROOT, SAMPLE, clean_environment, run_here
from tests.support.promises import doctor

SECRET = "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc"

# ---- LightRAG ------------------------------------------------------------------------------------


def test_a_storage_of_lightrag_becomes_a_corpus(tmp_path: Path) -> None:
    files = made.lightrag()
    files["graph"]["nodes"]["Devi Rao"]["description"] = "An engineer.<SEP>Born in Lower Fenton."
    files["graph"]["nodes"]["Port Ellis"]["source_id"] = "chunk-u0"  # cut short; the list of chunks is whole
    source = made.write_lightrag(tmp_path / "storage", files)
    counts, notes = bring(tmp_path / "c", source)
    assert (counts["added"], counts["entities"], counts["relationships"], notes) == (2, 7, 8, [])
    snapshot = open_snapshot(tmp_path / "c")
    entities = {row["title"]: row for row in rows(snapshot, "entities")}
    assert entities["Devi Rao"]["description"] == "An engineer.\nBorn in Lower Fenton."
    assert (entities["Port Ellis"]["type"], entities["Port Ellis"]["frequency"]) == ("geo", 2)
    assert {(row["weight"], row["keywords"]) for row in rows(snapshot, "relationships")} >= {(9.0, "harbour, trade")}
    assert {row["by"] for row in rows(snapshot, "mentions")} == {"imported:lightrag"}
    assert {row["uri"] for row in rows(snapshot, "documents")} == {
        f"{tmp_path.name}/lamp.txt",
        f"{tmp_path.name}/mill.txt",
    }
    assert snapshot.count("communities") > 0 and {row["method"] for row in rows(snapshot, "reports")} == {"extractive"}
    assert doctor(tmp_path / "c") == []
    (source / "graph_chunk_entity_relation.graphml").unlink()
    counts, notes = bring(tmp_path / "other", source)
    assert counts["documents_total"] == 2 and any("graphml is missing" in note for note in notes)


# ---- our own export ------------------------------------------------------------------------------

GROUPS = {"documents": "Documents", "text_units": "Sources", "entities": "Entities", "relationships": "Relationships",
          "communities": "Reports"}  # fmt: skip


def content(folder: Path) -> dict[str, dict[str, Row]]:
    """The exported rows by id, every short number replaced by the id that it stands for."""
    tables = {path.stem: pq.read_table(path).to_pylist() for path in sorted(folder.glob("*.parquet"))}
    numbers = {
        group: {str(row["human_readable_id"]): row["id"] for row in tables[name]} for name, group in GROUPS.items()
    }
    community = {row["community"]: row["id"] for row in tables["communities"]} | {-1: ""}

    def named(value: Any) -> Any:
        if isinstance(value, str):
            groups = "|".join(numbers)
            return re.sub(rf"\b({groups}) \(([^)]*)\)", lambda found: f"{found[1]} " + ", ".join(
                numbers[found[1]].get(one.strip(), one) for one in found[2].split(",")), value)  # fmt: skip
        if isinstance(value, dict):
            return {name: named(one) for name, one in value.items()}
        return [named(one) for one in value] if isinstance(value, list) else value

    for row in (row for name in tables for row in tables[name]):
        del row["human_readable_id"]
        row.pop("period", None)  # the day of the index, which no text says
        if "community" in row:
            row["community"], row["parent"] = community[row["community"]], community[row["parent"]]
            row["children"] = sorted(community[child] for child in row["children"])
        for name, value in row.items():
            row[name] = sorted(value) if name.endswith("_ids") and value else named(value)
        row["keywords"] = sorted(row.get("keywords", "").split(", "))
    return {name: {row["id"]: row for row in tables[name]} for name in tables}


def test_what_was_exported_and_imported_is_exported_the_same(tmp_path: Path) -> None:
    """Without source code: the names of symbols differ in case, those of an import do not."""
    shutil.copytree(SAMPLE, tmp_path / "sample", ignore=shutil.ignore_patterns("tools"))
    request = IndexRequest(paths=(str(tmp_path / "sample"),))
    index_documents(tmp_path / "corpora" / "sample", request, Settings(home=tmp_path, roots=(tmp_path,)))
    export(open_snapshot(tmp_path / "corpora" / "sample"), tmp_path / "first")
    counts, notes = bring(tmp_path / "again", tmp_path / "first")
    assert notes == [] and counts["added"] == 25
    export(open_snapshot(tmp_path / "again"), tmp_path / "second")
    first, second = content(tmp_path / "first"), content(tmp_path / "second")
    assert first.keys() == second.keys()
    for name in first:
        if name.startswith("communit"):  # an import does not know them: it goes by their entities
            for row in (*first[name].values(), *second[name].values()):
                del row["text_unit_ids"]
        assert first[name] == second[name], name
    assert doctor(tmp_path / "again") == []


def test_what_people_made_by_hand_comes_with_an_export_of_ours(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("Mara Quill founded the Lantern Guild. Mara Quill left it.", "utf-8")
    index_documents(tmp_path / "c", IndexRequest(paths=(str(folder),)), Settings())
    archive, guild = ("quill archive", "Quill Archive"), ("lantern guild", "Lantern Guild")
    both = Target((archive[0], guild[0]), (archive[1], guild[1]))
    for wish in (
        Wish(
            "create",
            [Target(archive[:1], archive[1:])],
            {"type": "organization", "description": f"Key {SECRET}."},
            "me",
        ),
        Wish("create", [both], {"description": "It keeps its papers.", "weight": 3}, "me"),
        Wish("rename", [Target(("mara quill",), ("Mara Quill",))], {"title": "The Founder"}, "me"),
    ):
        edit(tmp_path / "c", wish, dry_run=False)
    export(open_snapshot(tmp_path / "c"), tmp_path / "out")
    for _ in range(2):  # the second time changes nothing
        counts, notes = bring(tmp_path / "again", tmp_path / "out")
        found = open_snapshot(tmp_path / "again")
        assert not notes and counts["entities"] == found.count("entities")
        (made,) = [row for row in found.rows("entities").to_pylist() if row["title"] == "Quill Archive"]
        assert made["type"] == "organization" and made["degree"] == 1 and found.manifest.parameters["edits"] == 2
        assert "It keeps its papers." in found.rows("relationships")["description"].to_pylist()
        assert len({row.id for row in in_force(found).log}) == 1, "one edit, and one commit"
        renamed = [entities.resolve(found, name)[0] for name in ("The Founder", "Mara Quill")]
        assert [row and row["title"] for row in renamed] == ["The Founder"] * 2
        assert made["description"].startswith("Key sk-p***") and SECRET not in made["description"]
    assert doctor(tmp_path / "again") == []
    path = tmp_path / "out" / "entities.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter(pc.not_equal(table["title"], "Quill Archive")), path)
    what = "1 relationship: left out, they were made by hand and an end is not there"
    assert bring(tmp_path / "without", tmp_path / "out")[1] == [what]


# ---- the command, and a kill ---------------------------------------------------------------------


def test_the_command_imports_and_searches_cite(tmp_path: Path) -> None:
    source = made.write(tmp_path / "out", made.graphrag())
    done = run_here("import", source, "--home", tmp_path / "home", "--corpus", "c", "--json")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert (body["corpus"], body["counts"]["entities"], body["notes"]) == ("c", 7, ["1 claim: left out (GraphRAG's covariates)"])
    found = run_here("search", "What did Mira Castellan sell?", "--home", tmp_path / "home", "--corpus", "c", "--json")
    told = json.loads(found.stdout)
    assert "[t1] lamp.txt\n" in told["text"] and "Mira Castellan" in told["text"], found.stdout + found.stderr
    assert {(one["title"], one["uri"]) for one in told["citations"]} == {("lamp.txt", "out/lamp.txt")}


def test_killed_in_the_middle_the_old_generation_stays_and_the_next_import_finishes(tmp_path: Path) -> None:
    home, source = tmp_path / "home", made.write(tmp_path / "out", made.graphrag())
    corpus = home / "corpora" / "c"
    bring(corpus, source)
    before, digests = manifests.read(corpus), digest(open_snapshot(corpus))
    segments = len(list((corpus / "truth").iterdir()))
    made.write(source, made.changed())
    command = [sys.executable, "-m", "graphrag_mcp", "import", str(source), "--home", str(home), "--corpus", "c"]
    child = subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stdout=subprocess.DEVNULL)
    while child.poll() is None and len(list((corpus / "truth").iterdir())) == segments:
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    after = manifests.read(corpus)
    if after == before:  # else it was faster than the signal, and what it committed is whole
        assert digest(open_snapshot(corpus)) == digests
    assert [found for found in doctor(corpus) if not found.remark] == []
    bring(corpus, source)
    bring(tmp_path / "fresh", source)
    assert digest(open_snapshot(corpus)) == digest(open_snapshot(tmp_path / "fresh"))
