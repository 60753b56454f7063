"""Editing as agents and people do it: the two tools over a real client, the two commands, names proposed as one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index import removal
from graphrag_mcp.query.duplicates import proposals
from graphrag_mcp.query.edited import log
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from tests.index.test_edits import content, do, entities, made, target, undo
from tests.index.test_index import index
from tests.support.client import Caller, connected
from tests.support.command import run_here
from tests.support.workload import until

NAMES = {
    "a.md": "John Smith met Mary Stone in Leeds. Mary Stone praised John Smith.",
    "b.md": "In Leeds, J. Smith wrote to the Hydrographic Trust Authority. HTA replied to Mary Stone.",
    "c.md": "Dr. John Smith saw the Tide-Mill. The Tidemill was old, said the HTA.",
    "d.md": "科考队描述了海草床《丝带》（the Ribbon）。丝带很大。 The Ribbon grows, said Ada Calloway. Ada Caloway agreed.",
    "e.md": "Mary Stone spoke at the Hydrographic Trust Authority (Ada Calloway). Route 12 and Route 13 met.",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("tools")
    made(home / "corpora")
    return home


@pytest.fixture(scope="module")
def call(home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=home)))) as caller:
        yield caller


def pairs(snapshot: Snapshot, *names: str) -> dict[frozenset[str], str]:
    return {frozenset(one["names"]): one["kind"] for one in proposals(snapshot, names).proposals}


# ---- proposals ---------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for name, text in NAMES.items():
        (tmp_path / "docs" / name).write_text(text, "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    return tmp_path / "kb"


def test_names_that_may_be_one_are_proposed_with_the_reason(named: Path) -> None:
    found = pairs(open_snapshot(named))
    assert found[frozenset({"John Smith", "J. Smith"})] == "initials"
    assert found[frozenset({"丝带", "Ribbon"})] == "gloss"
    assert found[frozenset({"Hydrographic Trust Authority", "HTA"})] == "acronym"
    assert found[frozenset({"Ada Calloway", "Ada Caloway"})] == "typo"
    assert not any({"Mary Stone"} & pair or {"Route 12"} & pair for pair in found)
    assert (
        frozenset({"Hydrographic Trust Authority", "Ada Calloway"}) not in found
    )  # who works there, and no other name
    assert pairs(open_snapshot(named), "J. Smith") == {frozenset({"John Smith", "J. Smith"}): "initials"}


def test_a_proposal_is_accepted_refused_and_taken_back(named: Path) -> None:
    smith, ribbon = frozenset({"John Smith", "J. Smith"}), frozenset({"丝带", "Ribbon"})
    before = content(named)
    accepted = do(named, "merge", target("John Smith"), target("J. Smith"))
    refused = do(named, "reject", target("丝带"), target("Ribbon"))
    assert do(named, "reject", target("Ribbon"), target("丝带")).text.startswith("Nothing changes")
    assert not {smith, ribbon} & pairs(open_snapshot(named)).keys()
    (named.parent / "docs" / "f.md").write_text("《丝带》（the Ribbon）又大了。", "utf-8")
    index(named, named.parent / "docs")
    assert ribbon not in pairs(open_snapshot(named))
    undo(named, accepted.undo_id)
    undo(named, refused.undo_id)
    assert {smith, ribbon} <= pairs(open_snapshot(named)).keys()
    (named.parent / "docs" / "f.md").unlink()
    index(named, named.parent / "docs")
    assert content(named) == before
    assert [one["state"] for one in log(open_snapshot(named)).edits] == ["in force"] * 2 + [
        "undone by u4",
        "undone by u3",
    ]


# ---- the tools -----------------------------------------------------------------------------------------


def test_an_agent_tries_does_and_takes_back_an_edit(call: Caller, home: Path) -> None:
    kb = home / "corpora" / "kb"
    before = content(kb)
    tried = call.good("edit_graph", op="merge", ids=["John Smith", "J. Smith"], fields={"type": "person"})
    assert tried["dry_run"] and tried["changes"]["entities_removed"] == 1 and content(kb) == before
    assert tried["next_call"].endswith("dry_run=false)") and '"John Smith", "J. Smith"' in tried["next_call"]
    done = call.good("edit_graph", op="merge", ids=["John Smith", "J. Smith"], fields=["type=person"], dry_run="false")
    assert done["changes"] == tried["changes"] and done["undo_id"] in done["text"]
    found = call.good("get_entity", id_or_name="J. Smith")
    assert found["title"] == "John Smith" and f"was made a name of it, {done['undo_id']}" in found["text"]
    edits = call.good("edit_graph", op="log")["edits"]
    assert {one["by"] for one in edits} == {"agent:mcp"} and edits[0]["state"] == "in force"
    until(lambda: not call.good("graph_status")["stale"])  # communities follow by themselves
    call.good("edit_graph", op="undo", ids=[done["undo_id"]], dry_run=False)
    assert content(kb) == before


def test_communities_follow_the_edits_of_two_tenants_with_corpora_of_one_name(tmp_path: Path) -> None:
    made(tmp_path / "ada" / "corpora")
    shutil.copytree(tmp_path / "ada", tmp_path / "ben")
    servers = [build_server(App(Settings(home=tmp_path / name))) for name in ("ada", "ben")]
    with connected(servers[0]) as ada, connected(servers[1]) as ben:
        for call in (ada, ben):
            call.good("edit_graph", op="merge", ids=["John Smith", "J. Smith"], dry_run=False)
        for call in (ada, ben):
            until(lambda call=call: not call.good("graph_status")["stale"])


def test_relationships_are_edited_by_id_and_by_their_ends(call: Caller) -> None:
    link = call.good("get_entity", id_or_name="Clara Voss")["relationships"][0]["id"]
    done = call.good("edit_graph", op="delete", ids=[link], dry_run=False)
    assert done["changes"]["relationships_removed"] == 1
    assert link not in [one["id"] for one in call.good("get_entity", id_or_name="Clara Voss")["relationships"]]
    call.good("edit_graph", op="create", ids=["Ada Keene", "Tidal Power Board"], fields={"weight": 3}, dry_run=False)
    assert any(one["weight"] == 3 for one in call.good("get_entity", id_or_name="Ada Keene")["relationships"])
    tried = call.good("edit_graph", op="create", fields=["title=Orla Quist", "type=person"])
    assert tried["changes"] == {"entities_added": 1} and "Orla Quist" in tried["text"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"op": "merge", "ids": ["York", "Clara Vos"]}, "no entity 'Clara Vos'. The nearest are e"),
        ({"op": "update", "ids": ["York"], "fields": ["type"]}, "has no value"),
        ({"op": "delete", "ids": ["r999"]}, "no relationship r999"),
        ({"op": "undo", "ids": ["u999"]}, "no edit 'u999'"),
        ({"op": "create", "ids": ["York", "Nobody Here"]}, "no entity 'Nobody Here'"),
    ],
)
def test_a_wrong_edit_is_told_what_to_do(call: Caller, arguments: dict[str, object], said: str) -> None:
    import re

    assert re.search(said, call.bad("edit_graph", **arguments))


def test_an_agent_removes_a_document(call: Caller, home: Path) -> None:
    tried = call.good("remove_documents", ids=["c.md", "zz.md"])
    assert tried["counts"]["documents"] == 1 and tried["unknown"][0]["id"] == "zz.md" and tried["dry_run"]
    assert "next_call" in tried and "Tidal Power Board" in tried["text"]
    done = call.good("remove_documents", ids=["c.md"], dry_run=False)
    assert not done.get("suspicious") and "edit_graph(" in done["hint"] and "edit_graph(" not in done["text"].partition("</documents")[0]
    assert (done["status"], done["documents"]) == ("done", ["docs/c.md"])
    assert "Tidal Power Board" not in entities(home / "corpora" / "kb")
    assert "nearest" in call.bad("remove_documents", ids=["bb.md"])


# ---- the commands -----------------------------------------------------------------------------------------


def test_the_commands_try_first_and_a_log_is_carried_to_another_index(tmp_path: Path) -> None:
    kb = made(tmp_path / "corpora")
    home = ("--home", tmp_path, "--corpus", "kb")
    before = content(kb)
    tried = run_here("remove", "c.md", *home)
    assert tried.returncode == 0 and "--yes" in tried.stdout and content(kb) == before
    assert run_here("edit", "merge", "John Smith", "J. Smith", *home, "--yes", "--json").returncode == 0
    undo_id = removal.write_down(kb, removal.choose(kb, ["c.md"]), "cli:ada")
    index(kb, kb.parent / "docs")
    assert "Tidal Power Board" not in entities(kb) and entities(kb)["John Smith"]["aliases"] == ["J. Smith"]
    written = run_here("edit", "log", *home, "--json").stdout
    assert [one["op"] for one in json.loads(written)["edits"]] == ["merge", "remove"]
    (tmp_path / "log.json").write_text(written, "utf-8")
    index(tmp_path / "corpora" / "other", tmp_path / "corpora" / "docs")
    done = run_here("edit", "replay", tmp_path / "log.json", "--home", tmp_path, "--corpus", "other", "--yes")
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "corpora" / "other") == content(kb)
    assert undo_id == "u2"
