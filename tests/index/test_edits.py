"""Edits by hand: what they change, that they outlast every re-indexing, and that an undo is exact."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaigns.model_campaign import EAGER, demo, write_documents
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.exchange.export import export
from graphrag_mcp.index.edits import Target, Wish, edit, replay
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.edited import log as listed
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.manifest import read
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.terms import normalise_name
from graphrag_mcp.types import EditResult, IndexRequest
from tests.doctor.test_doctor import spoil
from tests.index.test_index import document, index
from tests.support.command import ROOT, clean_environment
from tests.support.openai_server import openai_server
from tests.support.promises import doctor

TEXTS = {
    "a.md": "John Smith built the Harlow Mill with Ada Keene. Ada Keene paid John Smith.",
    "b.md": "J. Smith kept the books of Harlow Mill. In York, J. Smith met Clara Voss.",
    "c.md": "Clara Voss sold Harlow Mill to the Tidal Power Board in York.",
}


def made(home: Path) -> Path:
    (home / "docs").mkdir(parents=True)
    for name, text in TEXTS.items():
        (home / "docs" / name).write_text(text, "utf-8")
    index(home / "kb", home / "docs")
    return home / "kb"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For those who only read."""
    return made(tmp_path_factory.mktemp("edits"))


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return made(tmp_path)


def entities(kb: Path) -> dict[str, dict[str, Any]]:
    return {row["title"]: row for row in open_snapshot(kb).rows("entities").to_pylist()}


def links(kb: Path) -> dict[tuple[str, str], dict[str, Any]]:
    title = {row["id"]: row["title"] for row in entities(kb).values()}
    rows = open_snapshot(kb).rows("relationships").to_pylist()
    return {tuple(sorted((title[row["source_id"]], title[row["target_id"]]))): row for row in rows}


def target(*names: str) -> Target:
    return Target(tuple(map(normalise_name, names)), names)


def do(kb: Path, op: str, *targets: Target, dry_run: bool = False, **fields: Any) -> EditResult:
    return edit(kb, Wish(op, targets, fields, "agent:ada"), dry_run)


def undo(kb: Path, id: str) -> EditResult:
    return do(kb, "undo", Target((id,)))


def content(kb: Path) -> str:
    return digest(open_snapshot(kb))["content"]


def fresh(kb: Path, name: str = "fresh") -> Path:
    """A new index of the same folder with the same edit log."""
    other = kb.parent / name
    index(other, kb.parent / "docs")
    rows = logs.load(kb, read(kb))
    if rows:
        replay(other, rows)
        index(other, kb.parent / "docs")
    return other


def test_a_merged_name_resolves_and_its_relationships_move(kb: Path) -> None:
    before, john = content(kb), entities(kb)["John Smith"]
    tried = do(kb, "merge", target("John Smith"), target("J. Smith"), dry_run=True)
    assert content(kb) == before and not tried.undo_id
    done = do(kb, "merge", target("John Smith"), target("J. Smith"))
    assert done.changes == tried.changes and done.changes["entities_removed"] == 1
    row = entities(kb)["John Smith"]
    assert (row["id"], row["n"], row["frequency"], row["aliases"]) == (john["id"], john["n"], 2, ["J. Smith"])
    assert {("Clara Voss", "John Smith"), ("John Smith", "York")} <= links(kb).keys()
    found = get_entity(open_snapshot(kb), "j smith")
    assert found.id == f"e{row['n']}" and done.undo_id in found.text
    assert doctor(kb) == []


@pytest.mark.core
def test_an_undo_is_exact_and_so_is_its_undo(kb: Path) -> None:
    before, rows = content(kb), entities(kb)
    done = do(kb, "merge", target("John Smith"), target("J. Smith"), target("Clara Voss"), description="A family.")
    after = content(kb)
    first = undo(kb, done.undo_id)
    assert content(kb) == before and {t: r["n"] for t, r in entities(kb).items()} == {
        t: r["n"] for t, r in rows.items()
    }
    with pytest.raises(BadInput, match=f"undone already.*{first.undo_id}"):
        undo(kb, done.undo_id)
    second = undo(kb, first.undo_id)
    assert content(kb) == after and entities(kb)["John Smith"]["description"] == "A family."
    undo(kb, second.undo_id)
    assert content(kb) == before
    with pytest.raises(NotFound, match="no edit 'u99'.*u4"):
        undo(kb, "u99")


def test_what_was_given_wins_over_what_was_found(kb: Path) -> None:
    do(kb, "update", target("Harlow Mill"), type="Artifact", description="A tide mill.")
    do(kb, "rename", target("York"), title="Eboracum")
    do(kb, "update", target("Clara Voss", "Harlow Mill"), description="She sold it.", keywords="sale", weight=7)
    (kb.parent / "docs" / "d.md").write_text(
        "York is old. Clara Voss left York and Harlow Mill. Eboracum is York.", "utf-8"
    )
    index(kb, kb.parent / "docs")
    mill, york = entities(kb)["Harlow Mill"], entities(kb)["Eboracum"]
    assert (mill["type"], mill["description"]) == ("artifact", "A tide mill.")
    assert "York" in york["aliases"] and york["frequency"] == 3 and "York" not in entities(kb)
    link = links(kb)["Clara Voss", "Harlow Mill"]
    assert (link["description"], link["keywords"], link["weight"]) == ("She sold it.", "sale", 7.0)
    assert len(link["text_unit_ids"]) == 2  # the evidence goes on being counted
    assert get_entity(open_snapshot(kb), "Eboracum").title == get_entity(open_snapshot(kb), "york").title == "Eboracum"
    assert content(kb) == content(fresh(kb)) and doctor(kb) == []


def test_what_was_deleted_stays_hidden_though_documents_name_it(kb: Path) -> None:
    done = do(kb, "delete", target("York"), target("Ada Keene", "John Smith"))
    assert done.changes["entities_removed"] == 1
    (kb.parent / "docs" / "d.md").write_text("They saw York again, said Clara Voss. Ada Keene paid John Smith.", "utf-8")
    index(kb, kb.parent / "docs")
    assert "York" not in entities(kb) and ("Ada Keene", "John Smith") not in links(kb)
    assert not any("York" in pair for pair in links(kb))
    assert done.undo_id in get_entity(open_snapshot(kb), "York").hint
    assert doctor(kb) == [] and content(kb) == content(fresh(kb))
    undo(kb, done.undo_id)
    assert entities(kb)["York"]["frequency"] == 3 and len(links(kb)["Ada Keene", "John Smith"]["text_unit_ids"]) == 2


def test_what_was_made_by_hand_says_so_and_cites_nothing(kb: Path, tmp_path: Path) -> None:
    do(kb, "create", target("Wren Abbott"), type="person", description="Said to have owned the mill.")
    do(kb, "create", target("Wren Abbott", "Harlow Mill"), description="Owned it.", weight=2)
    found = get_entity(open_snapshot(kb), "Wren Abbott")
    assert "Made by agent:ada" in found.text and not found.citations and found.relationships[0]["weight"] == 2.0
    index(kb, kb.parent / "docs")  # communities and reports
    assert doctor(kb) == []
    assert export(open_snapshot(kb), tmp_path / "out")["relationships"] == len(links(kb))
    for name in TEXTS:
        (kb.parent / "docs" / name).write_text(TEXTS[name].replace("Harlow Mill", "the house"), "utf-8")
    index(kb, kb.parent / "docs")
    assert not any("Wren Abbott" in pair for pair in links(kb))  # one end is gone, and the edit sleeps
    states = {one["undo_id"]: one["state"] for one in listed(open_snapshot(kb)).edits}
    assert states == {"u1": "in force", "u2": "dormant"}
    (kb.parent / "docs" / "a.md").write_text(TEXTS["a.md"] + " Wren Abbott left. The Harlow Mill stays.", "utf-8")
    index(kb, kb.parent / "docs")
    assert entities(kb)["Wren Abbott"]["frequency"] == 1 and ("Harlow Mill", "Wren Abbott") in links(kb)
    assert content(kb) == content(fresh(kb)) and doctor(kb) == []


def test_edits_survive_other_settings_repair_and_rollback(kb: Path) -> None:
    do(kb, "merge", target("John Smith"), target("J. Smith"))
    do(kb, "create", target("Wren Abbott"))
    do(kb, "delete", target("York"))
    before = content(kb)
    generation = read(kb).generation
    index(kb, kb.parent / "docs", settings=Settings(chunk_size=30, chunk_overlap=0, passage_size=20))
    assert entities(kb)["John Smith"]["aliases"] == ["J. Smith"] and "York" not in entities(kb)
    index(kb, kb.parent / "docs")
    assert content(kb) == before
    from graphrag_mcp.doctor.generations import rollback

    undo(kb, "u3")
    rollback(kb, generation)
    assert content(kb) == before and do(kb, "update", target("Ada Keene"), description="Hers.").undo_id == "u5"
    before = content(kb)
    shutil.rmtree(kb / "tables" / "entities.lance")
    findings = doctor(kb, repair=True, rebuild=lambda folder: index_documents(folder, IndexRequest(), Settings()))
    assert findings and all(one.repaired for one in findings)
    assert content(kb) == before and doctor(kb) == []


@pytest.mark.parametrize("seed", [pytest.param(11, marks=pytest.mark.core), 23])  # campaigns/edits.py tries many, and compares after every step
def test_any_history_of_edits_and_documents_is_a_fresh_index_with_the_same_log(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    docs, kb = tmp_path / "docs", tmp_path / "kb"
    docs.mkdir()
    for number in range(4):
        (docs / f"{number}.md").write_text(document(rng), "utf-8")
    index(kb, docs)
    ids: list[str] = []
    for step in range(9):
        if rng.random() < 0.3:
            (docs / f"{rng.randrange(5)}.md").write_text(document(rng), "utf-8")
            index(kb, docs)
            continue
        try:
            ids.append(do(kb, *random_edit(rng, kb, ids, step)).undo_id)
        except GraphRAGError as error:
            assert error.next_move
    assert len(ids) > 2 and content(kb) == content(fresh(kb))
    degrees = [{t: r["degree"] for t, r in entities(one).items()} for one in (kb, kb.parent / "fresh")]
    assert degrees[0] == degrees[1] and doctor(kb) == []


def random_edit(rng: random.Random, kb: Path, ids: list[str], step: int) -> tuple[Any, ...]:
    names = sorted(entities(kb))
    op = rng.choice(["merge", "merge", "update", "rename", "delete", "create", "create", "undo", "undo"])
    if op == "undo":
        return "undo", Target((rng.choice(ids or ["u1"]),))
    if op == "create" and rng.random() < 0.5:
        return "create", target(rng.choice(["Alan Turing", "Bombe", "London", "Turin"]))
    picked = [Target((entities(kb)[name]["key"],), (name,)) for name in rng.sample(names, 2)]
    if op == "create":
        return "create", Target(tuple(one.keys[0] for one in picked), tuple(one.forms[0] for one in picked))
    return op, *(picked if op == "merge" else picked[:1])


def test_a_log_may_come_before_the_documents(kb: Path) -> None:
    do(kb, "merge", target("John Smith"), target("J. Smith"))
    do(kb, "update", target("Tidal Power Board"), type="utility")
    other = kb.parent / "other"
    index(other, kb.parent / "docs" / "a.md")
    replay(other, logs.load(kb, read(kb)))
    with pytest.raises(BadInput, match="u1, u2"):
        replay(other, logs.load(kb, read(kb)))
    states = [one["state"] for one in listed(open_snapshot(other)).edits]
    assert states == ["dormant", "in force"]
    index(other, kb.parent / "docs")
    assert entities(other)["Tidal Power Board"]["type"] == "utility"


def test_one_edit_writes_only_the_rows_concerned(kb: Path) -> None:
    before = read(kb)
    do(kb, "update", target("Harlow Mill"), description="A tide mill.")
    after = read(kb)
    assert {name for name in after.tables if after.tables[name] != before.tables[name]} == {"entities"}
    assert after.stale == ["communities"]
    assert do(kb, "update", target("Harlow Mill"), description="A tide mill.").text.startswith("Nothing changes")
    assert read(kb) == after
    index(kb, kb.parent / "docs")
    assert read(kb).stale == []


@pytest.mark.core
def test_an_acknowledged_edit_survives_a_kill(kb: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.index.test_edits import do, target\n"
        "kb = Path(sys.argv[1])\n"
        "for name in ('York', 'Ada Keene', 'Clara Voss'): print(do(kb, 'delete', target(name)).undo_id, flush=True)\n"
        "import time; time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(kb)], cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().decode().strip() for _ in range(2)]
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert acknowledged == ["u1", "u2"]
    assert not {"York", "Ada Keene"} & entities(kb).keys() and [one for one in doctor(kb) if one.kind != "orphan"] == []


def test_a_flipped_bit_in_the_log_is_found_and_nothing_is_indexed_without_it(kb: Path) -> None:
    do(kb, "delete", target("York"))
    segment = next((kb / "truth").glob("edits-*.parquet"))
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 3] ^= 4
    segment.write_bytes(raw)
    assert [one.where for one in doctor(kb) if one.kind == "truth"] == [segment.name]


@pytest.mark.parametrize("change", [{"description": "Another."}, {"title": "Else"}])
def test_a_row_that_does_not_follow_the_log_is_found_and_derived_again(kb: Path, change: dict[str, str]) -> None:
    row = min(entities(kb).values(), key=lambda row: row["id"])  # the one that is spoiled
    do(kb, "rename", Target((row["key"],), (row["title"],)), title="The Mill", description="A tide mill.")
    before = content(kb)
    spoil(kb, "entities", change)
    assert any(one.kind == "edit" for one in doctor(kb))
    doctor(kb, repair=True, rebuild=lambda folder: index_documents(folder, IndexRequest(), Settings()))
    assert content(kb) == before and doctor(kb) == []


@pytest.mark.parametrize(
    ("op", "targets", "fields", "said"),
    [
        ("update", ["Nobody Here"], {"type": "x"}, "holds no entity"),
        ("update", ["York"], {"colour": "x"}, "field 'colour' cannot be set"),
        ("update", ["York"], {}, "nothing to update"),
        ("update", ["York", "Clara Voss"], {"type": "x"}, "takes one"),
        ("rename", ["York"], {"title": "Clara Voss"}, "another entity.*merge"),
        ("rename", ["York"], {"title": "???"}, "no letter or digit|no name"),
        ("create", ["York"], {}, "in the graph already"),
        ("merge", ["York", "York"], {}, "one entity already"),
        ("delete", [], {}, "needs ids"),
        ("explode", ["York"], {}, "unknown"),
    ],
)
def test_what_cannot_be_edited_is_said_with_what_to_do(
    built: Path, op: str, targets: list[str], fields: dict[str, str], said: str
) -> None:
    with pytest.raises(GraphRAGError, match=said):
        do(built, op, *map(target, targets), dry_run=True, **fields)


def test_with_a_model_an_edit_keeps_what_it_wrote_of_others_and_buys_nothing(tmp_path: Path) -> None:
    docs, kb = write_documents(tmp_path / "docs", 6), tmp_path / "kb"
    with openai_server(demo) as server:
        settings = Settings(**{"chat_model": "m", "base_url": server.url, "max_retries": 0, **EAGER})
        index_documents(kb, IndexRequest(paths=(str(docs),), method="llm"), settings)
        asked, before = len(server.requests), entities(kb)
        longest = sorted(before.values(), key=lambda row: -row["frequency"])[:2]
        one, other = (Target((row["key"],), (row["title"],)) for row in longest)
        edit(kb, Wish("update", [one], {"description": "By hand."}, "agent:ada"), False)
        after = entities(kb)
        assert {t: r["description"] for t, r in after.items() if t != one.forms[0]} == {
            t: r["description"] for t, r in before.items() if t != one.forms[0]
        }
        assert after[one.forms[0]]["description"] == "By hand." and doctor(kb) == []
        assert len(server.requests) == asked
        index(kb, docs, settings=settings)  # reports of the communities concerned
        assert entities(kb)[one.forms[0]]["description"] == "By hand."
        edit(kb, Wish("undo", [Target(("u1",))], {}, "agent:ada"), False)
        edit(kb, Wish("merge", [one, other], {}, "agent:ada"), False)
        edit(kb, Wish("undo", [Target(("u3",))], {}, "agent:ada"), False)
        index(kb, docs, settings=settings)
        assert {t: r["description"] for t, r in entities(kb).items()} == {
            t: r["description"] for t, r in before.items()
        }
        assert open_snapshot(kb).count("pending") == 0 and doctor(kb) == []


def test_an_entity_that_was_edited_stays_while_one_text_names_it(tmp_path: Path) -> None:
    texts = {"a.md": "In York the clerk saw Zorbex. Later John Smith spoke to Zorbex.", "b.md": "In York the clerk saw Zorbex again with Ada Keene."}
    (tmp_path / "docs").mkdir()
    for name, text in texts.items():
        (tmp_path / "docs" / name).write_text(text, "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    do(tmp_path / "kb", "update", target("Zorbex"), description="Makers of pumps.")
    (tmp_path / "docs" / "a.md").write_text("Nothing here.", "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    assert entities(tmp_path / "kb")["Zorbex"]["description"] == "Makers of pumps."
    assert content(tmp_path / "kb") == content(fresh(tmp_path / "kb")) and doctor(tmp_path / "kb") == []


def test_a_merge_leaves_the_sentences_of_relationships_as_a_fresh_index_has_them(tmp_path: Path) -> None:
    said = "The Royal Society (RS) was described by 钱学森 in {}. "
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "0.md").write_text(said.format("Bournemouth") + "Then Ada Keene slept in York.", "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    do(tmp_path / "kb", "merge", target("Royal Society"), target("Bournemouth"))
    do(tmp_path / "kb", "rename", target("York"), title="Eboracum")
    (tmp_path / "docs" / "9.md").write_text(said.format("Turin") + "York.", "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    assert content(tmp_path / "kb") == content(fresh(tmp_path / "kb"))
