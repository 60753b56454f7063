"""DRIFT sessions as data: every form whole and within any budget, ids that the index lost, the tool's own view."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import sending
from graphrag_mcp.query.drift import Drift
from graphrag_mcp.query.drift_view import export, shortened, view
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE, run_here

QUESTION = 'Why was the "Meridian Tern" lost [in 1968]?'
FIRST = ["What did the court conclude?", "沈若岚发现了什么？", "Where was the wreck found?", "Who was Ines Calloway?"]


@pytest.fixture
def drift(sample_home: Path, tmp_path: Path) -> Drift:
    """A session with a tree of three levels; the answers cite what exists and what does not."""
    session = Drift(open_snapshot(sample_home / "corpora" / "sample"), tmp_path / "walk.jsonl")
    root = session.start(QUESTION).open_node
    opened = session.step(root, "The court blamed the master [t1; t99999].", 60, FIRST).open_node
    session.step(opened, "It did. " * 200 + "[t2]", 85, ["Who sat in the court?"], open_next="none")
    return session


def test_json_is_a_graph_that_networkx_opens_again(drift: Drift) -> None:
    text = export(drift, "json")
    graph = nx.node_link_graph(json.loads(text), edges="edges")
    walk = drift.walk()
    gone = {id: node["gone"] for id, node in graph.nodes(data=True)}
    assert isinstance(graph, nx.MultiDiGraph)
    for id, ids in gone.items():
        walk.graph.nodes[id]["gone"] = ids
    assert nx.utils.graphs_equal(graph, walk.graph)
    assert set(graph) == set(walk.graph) and graph.number_of_edges() == 5
    assert graph.nodes[walk.root]["gone"] == ["t99999"]
    assert json.loads(text)["session"]["generation_now"] == drift.snapshot.manifest.generation


def test_the_tree_is_ranked_and_marks_what_is_gone(drift: Drift) -> None:
    lines = export(drift, "tree").splitlines()
    assert lines[0] == f"# {QUESTION}" and "t99999 (gone)" in lines[2]
    assert "score 85" in lines[3]  # the best answered comes first under its question
    assert sum("[frontier]" in line for line in lines) == 4


def test_a_chart_has_a_box_for_every_question_and_none_that_breaks_it(drift: Drift) -> None:
    text = export(drift, "mermaid")
    assert text.count("-->") == 5 and text.count('"]') == text.count('["') == 6
    assert all(line.count('"') in (0, 2) for line in text.splitlines())


@pytest.mark.parametrize("budget", [200, 500, 900, 2_000, 20_000])
def test_a_tree_and_data_fit_their_room_and_are_never_broken(drift: Drift, budget: int) -> None:
    opened = drift.walk().frontier()
    for id in opened:  # a session of some size
        drift.step(id, f"Answer to {id}. " * 60, 50, [f"What of {id} in {year}?" for year in range(1960, 1965)], open_next="none")
    result = view(Drift(drift.snapshot, drift.path, budget))
    assert result.tokens <= budget and sending.size(result)[0] <= budget
    assert result.text.startswith(f"# {QUESTION[:20]}")
    lines = [line for line in export(drift, "tree").splitlines()[1:] if line not in result.text]
    assert result.truncated == bool(lines)
    data = shortened(drift, 10 * budget)
    kept = nx.node_link_graph(data, edges="edges")
    assert drift.walk().root in kept and nx.is_weakly_connected(kept)
    assert len(kept) == 1 or len(json.dumps(data, ensure_ascii=False)) <= 10 * budget


def test_a_session_outlives_its_documents_and_says_what_is_gone(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "files", tmp_path / "home" / "corpora" / "c"
    shutil.copytree(SAMPLE, folder)
    settings = Settings(home=tmp_path / "home")
    index_documents(corpus, IndexRequest(paths=(str(folder),)), settings)
    drift = Drift(open_snapshot(corpus), tmp_path / "s.jsonl")
    root = drift.start("What did Ines Calloway see?")
    place = next(one for one in root.citations if "calloway-notebooks" in one.uri)
    drift.step(root.open_node, f"The back-run [{place.id}].", 70, ["Who is Marit Fenn?"], open_next="none")
    (folder / "calloway-notebooks.md").unlink()
    index_documents(corpus, IndexRequest(paths=(str(folder),)), settings)
    later = Drift(open_snapshot(corpus), drift.path)
    result = view(later)
    node = next(one for one in json.loads(export(later, "json"))["nodes"] if one["id"] == root.open_node)
    assert place.id in node["gone"] and place.id in result.hint and "index has changed" in result.hint
    assert f"{place.id} (gone)" in later.finish().text and f"{place.id} (gone)" in export(later, "tree")
    assert later.step(later.walk().frontier()[0]).citations  # and the walk goes on


# ---- through the tool ------------------------------------------------------------------------------


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    shutil.copytree(sample_home, tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def call(home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=home, roots=(SAMPLE,))))) as caller:
        yield caller


def test_the_command_lists_sessions_and_shows_each_form(call: Caller, home: Path) -> None:
    begun = call.good("drift_search", query=QUESTION, corpus="sample")
    session = begun["session_id"]
    call.good("drift_step", session_id=session, node_id=begun["open_node"], answer="Yes [t1].", follow_ups=FIRST)
    listed = run_here("drift", "--home", home).stdout
    assert listed.split()[:3] == [session, "sample", "1/5"] and QUESTION in listed
    assert run_here("drift", session, "--home", home).stdout.startswith("# Why")
    assert run_here("drift", session, "--format", "mermaid", "--home", home).stdout.startswith("flowchart TD")
    for arguments in (("--format", "json"), ("--json",)):
        done = run_here("drift", session, *arguments, "--home", home)
        assert len(nx.node_link_graph(json.loads(done.stdout), edges="edges")) == 5
    wrong = run_here("drift", session, "--format", "svg", "--home", home)
    assert wrong.returncode == 2 and "tree, json, mermaid" in wrong.stderr
