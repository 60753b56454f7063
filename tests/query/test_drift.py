"""DRIFT: a walk over processes, branches, repeats, prunings, careless agents, a torn journal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.explorer.drift import listed_sessions
from graphrag_mcp.packing import sending
from graphrag_mcp.query.drift import KEEP_DAYS, Drift, Limits
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.query.drift_view import export
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot, open_snapshot, values_of
from graphrag_mcp.types import DriftResult
from tests.support.command import clean_environment

QUESTION = "Why was the Meridian Tern lost, and who was right about the back-run?"
FOLLOW_UPS = [
    "What did the court of inquiry of 1969 conclude?",
    "What did Tobias Fenn see from the gallery?",
    "Where was the wreck found?",
    "What does the radar at Corrie Head show?",
    "Who was Ines Calloway?",
]


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


@pytest.fixture
def drift(snapshot: Snapshot, tmp_path: Path) -> Drift:
    return Drift(snapshot, tmp_path / "walk-1.jsonl")


def begun(drift: Drift) -> DriftResult:
    """A session whose root has been answered, with the first follow-up open."""
    root = drift.start(QUESTION).open_node
    return drift.step(root, "The court blamed the master [t1].", 60, FOLLOW_UPS)


def statuses(drift: Drift) -> dict[str, str]:
    return {node["query"]: node["status"] for _, node in drift.walk().graph.nodes(data=True)}


def test_a_session_opens_with_cited_context_and_says_the_next_call(drift: Drift) -> None:
    result = Drift(drift.snapshot, drift.path, 3000).start(QUESTION)
    assert (result.session_id, result.state, result.answered, result.done) == ("walk-1", "context", 0, False)
    assert result.citations and "## Reports" in result.text and "## Sources" in result.text
    assert result.next_call == (
        f'drift_step(session_id="walk-1", node_id="{result.open_node}", answer="...", score=0-100, follow_ups=["..."])'
    )
    assert result.tokens <= 3000 and sending.size(result)[0] <= 3000


def opened(snapshot: Snapshot, folder: Path, question: str, tokens: int = 6000) -> set[str]:
    """The topics of the highest level whose reports, or reports on a part of them, stand before the first step."""
    session = Drift(snapshot, folder / f"walk-{len(question)}-{tokens}.jsonl", tokens)
    shown = re.findall(r"^- \[c(\d+)\]", session.start(question).text, re.MULTILINE)
    numbers = dict(zip(*(values_of(snapshot.rows("reports", "", ["id", "n"])[name]) for name in ("n", "id")), strict=True))
    parents = dict(zip(*(values_of(snapshot.rows("communities", "", ["id", "parent"])[name]) for name in ("id", "parent")), strict=True))
    found = [numbers[int(number)] for number in shown]
    while any(parents[id] for id in found):
        found = [parents[id] or id for id in found]
    return set(found)


def test_an_answer_opens_the_best_follow_up_and_keeps_the_others_on_the_frontier(drift: Drift) -> None:
    result = begun(drift)
    walk = drift.walk()
    assert (result.answered, result.budget_left) == (1, 38)
    assert walk.graph.nodes[result.open_node]["query"] in FOLLOW_UPS and result.citations
    assert [node.id for node in result.frontier] == walk.frontier() and len(result.frontier) == 4
    assert {node.parent for node in result.frontier} == {walk.root}


@pytest.mark.slow
def test_a_session_is_walked_over_three_processes(sample_home: Path, tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from graphrag_mcp.query.drift import Drift;"
        "from graphrag_mcp.store.tables import open_snapshot;"
        "d = Drift(open_snapshot(Path(sys.argv[1])), Path(sys.argv[2])); r = getattr(d, sys.argv[3])(*json.loads(sys.argv[4]));"
        "print(json.dumps([r.open_node, r.answered, r.text]))"
    )

    def process(method: str, *arguments: object) -> list:
        command = [sys.executable, "-c", code, str(sample_home / "corpora" / "sample"), str(tmp_path / "s.jsonl")]
        done = subprocess.run(
            [*command, method, json.dumps(arguments)], capture_output=True, encoding="utf-8", env=clean_environment()
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    root, _, _ = process("start", QUESTION)
    opened, answered, _ = process("step", root, "The master was blamed [t1].", 70, FOLLOW_UPS)
    assert answered == 1 and opened not in ("", root)
    _, answered, text = process("finish")
    assert answered == 1 and "The master was blamed [t1]." in text


def test_two_branches_grow_from_one_node(drift: Drift) -> None:
    begun(drift)
    walk = drift.walk()
    first, second = walk.frontier()[:2]
    drift.step(first, open_next="none")
    drift.step(first, "One branch.", 50, ["What is the sill?"], open_next="none")
    drift.step(second, "Another, never opened.", 40, ["What is the Sule Channel?"], open_next="none")
    graph = drift.walk().graph
    assert isinstance(graph, nx.MultiDiGraph)
    assert {graph.nodes[one]["status"] for one in (first, second)} == {"answered"}
    assert [graph.nodes[next(iter(graph.successors(one)))]["query"] for one in (first, second)] == [
        "What is the sill?", "What is the Sule Channel?",
    ]  # fmt: skip


def test_a_follow_up_given_twice_is_one_node_with_two_edges(drift: Drift) -> None:
    begun(drift)
    walk = drift.walk()
    repeat = walk.graph.nodes[walk.frontier()[-1]]["query"]
    source = walk.frontier()[0]
    result = drift.step(source, "Answered.", 30, [f"{repeat.rstrip('?')} ?"], open_next="none")
    after = drift.walk()
    assert set(after.graph) == set(walk.graph)
    assert after.graph.in_degree(walk.frontier()[-1]) == 2
    assert "repeat" in result.hint


def test_a_pruned_node_is_never_opened(drift: Drift) -> None:
    opened = begun(drift).open_node
    pruned = drift.walk().frontier()
    result = drift.step(opened, "Answer.", 20, ["Who is Marit Fenn?"], prune=pruned)
    assert drift.walk().graph.nodes[result.open_node]["query"] == "Who is Marit Fenn?"
    assert all(drift.walk().graph.nodes[id]["status"] == "pruned" for id in pruned)
    with pytest.raises(BadInput, match="was pruned"):
        drift.step(pruned[0])


def test_a_new_answer_replaces_the_old_one_and_the_old_is_kept(drift: Drift) -> None:
    root = drift.start(QUESTION).open_node
    drift.step(root, "First thought.", 10, FOLLOW_UPS)
    drift.step(root, "Second thought.", 90, open_next="none")
    node = drift.walk().graph.nodes[root]
    assert (node["answer"], node["score"]) == ("Second thought.", 90)
    assert node["history"] == [{"answer": "First thought.", "score": 10}]


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_last_line_is_ignored_and_the_walk_goes_on(drift: Drift, cut: int) -> None:
    opened = begun(drift).open_node
    drift.path.write_bytes(drift.path.read_bytes()[:-cut])
    result = drift.step(opened, "After the crash.", 50, ["Who was Samuel Iversen?"])
    assert statuses(drift)["Who was Samuel Iversen?"] in ("frontier", "open")
    assert result.answered == 2


def test_a_step_that_fails_has_recorded_nothing(drift: Drift) -> None:
    opened = begun(drift)
    before = drift.path.read_bytes()
    for wrong in ({"open_next": "bogus"}, {"prune": ["bogus"]}):
        with pytest.raises(NotFound):
            drift.step(opened.open_node, "Overwritten?", 1, ["One more?"], **wrong)
    assert drift.path.read_bytes() == before


def test_the_graph_proposes_follow_ups_when_the_agent_gives_none(drift: Drift, snapshot: Snapshot) -> None:
    root = drift.start(QUESTION)
    cited = ", ".join(citation.id for citation in root.citations[:2])
    result = drift.step(root.open_node, f"The inquiry did not believe the keeper [{cited}].", 60)
    queries = [node["query"] for _, node in drift.walk().graph.nodes(data=True)][1:]
    assert 1 <= len(queries) <= 5 and all(query.endswith("?") and "keeper" not in query[:6] for query in queries)
    titles = set(snapshot.rows("entities", "", ["title"])["title"].to_pylist())
    assert all(sum(title in query for title in titles) >= 2 for query in queries)
    assert "graph proposed" in result.hint and result.open_node


def test_a_session_is_not_opened_on_another_corpus(drift: Drift, snapshot: Snapshot) -> None:
    begun(drift)
    other = Snapshot(snapshot.folder, replace(snapshot.manifest, corpus="other"))
    for call in (lambda d: d.finish(), lambda d: d.step("x" * 12), lambda d: d.start(QUESTION)):
        with pytest.raises(BadInput, match="belongs to corpus 'sample', not to 'other'"):
            call(Drift(other, drift.path))


def test_sessions_that_nobody_touched_for_30_days_are_forgotten(drift: Drift) -> None:
    begun(drift)
    old = drift.path.with_name("old.jsonl")
    old.write_bytes(drift.path.read_bytes())
    os.utime(old, (time.time() - 31 * 86_400,) * 2)
    assert sessions.forget(drift.path.parent, KEEP_DAYS * 86_400) == 1
    assert drift.path.exists() and not old.exists()


def test_depth_and_the_budget_of_nodes_end_the_walk(snapshot: Snapshot, tmp_path: Path) -> None:
    drift = Drift(snapshot, tmp_path / "short.jsonl")
    result = drift.start(QUESTION, Limits(depth=1, max_nodes=3))
    result = drift.step(result.open_node, "One.", 50, FOLLOW_UPS)
    result = drift.step(result.open_node, "Two.", 50, ["Is this too deep?"])
    assert "Is this too deep?" not in statuses(drift) and not result.done
    result = drift.step(result.open_node, "Three.", 50)
    assert (result.done, result.budget_left, result.open_node) == (True, 0, "")
    assert result.next_call == 'drift_step(session_id="short", finish=true)'


def test_finish_ranks_merges_and_cites_within_the_budget(drift: Drift, snapshot: Snapshot) -> None:
    opened = begun(drift).open_node
    other, third = drift.walk().frontier()[:2]
    drift.step(opened, "The wreck lay north of the strait, as the keeper had said [t2; t99999].", 95, open_next="none")
    drift.step(other, "The wreck lay north of the strait, as the keeper had said [t2; t99999].", 30, open_next="none")
    drift.step(third, "It is not known.", "unreadable", open_next="none")
    result = Drift(drift.snapshot, drift.path, 1500).finish()
    assert result.tokens <= 1500
    assert not result.done and "still wait" in result.hint and "drift_step" in result.next_call  # two were never opened
    assert result.text.index("score 95") < result.text.index("score 60") < result.text.index("no score")
    assert result.text.count("as the keeper had said") == 1 and "Also answers:" in result.text
    assert "t99999 (gone)" in result.text and "t99999" in result.hint
    assert any(citation.id.startswith("t2") for citation in result.citations)


def test_a_step_without_a_node_opens_the_one_that_waits_or_says_what_to_give(drift: Drift) -> None:
    root = drift.start(QUESTION).open_node
    assert drift.step("").open_node == root
    opened = drift.step("", "The court blamed the master [t1].", 60, FOLLOW_UPS).open_node  # the only open one
    assert drift.walk().graph.nodes[root]["status"] == "answered" and drift.step(" ").open_node == opened
    drift.step(drift.walk().frontier()[0])
    with pytest.raises(BadInput, match="Give node_id, one of: .*" + opened):
        drift.step("", "Of which question?")
    done = Drift(drift.snapshot, drift.path.with_name("short.jsonl"))
    done.start(QUESTION, Limits(depth=1, max_nodes=2))
    done.step("", "The court blamed the master [t1].", 60, FOLLOW_UPS)
    done.step("", "It is not known.")
    assert "finish=true" in done.step("").next_call


def test_the_state_is_shown_as_json_mermaid_and_a_tree(drift: Drift) -> None:
    begun(drift)
    data, chart, tree = (export(drift, form) for form in ("json", "mermaid", "tree"))
    assert {node["id"] for node in json.loads(data)["nodes"]} == set(drift.walk().graph) and len(json.loads(data)["edges"]) == 5
    assert json.loads(data)["session"]["query"] == QUESTION
    assert chart.startswith("flowchart TD") and chart.count("-->") == 5
    assert all(query in tree for query in [QUESTION, *FOLLOW_UPS])


def test_two_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    code = (
        "import sys; from pathlib import Path; from graphrag_mcp.store import sessions\n"
        "for n in range(100): sessions.append(Path(sys.argv[1]), {'who': sys.argv[2], 'n': n, 'pad': 'x' * 3000})"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), who], env=clean_environment()) for who in ("a", "b")
    ]
    assert [process.wait() for process in running] == [0, 0]
    events = sessions.read(path)
    assert [[event["n"] for event in events if event["who"] == who] for who in ("a", "b")] == [list(range(100))] * 2


def test_records_that_are_damaged_are_left_out_and_counted(drift: Drift) -> None:
    begun(drift)
    whole = export(drift, "json")
    sessions.append(drift.path, {"op": "open", "node": 7, "tokens": "many"})
    result = drift.finish()
    assert "1 record of this session cannot be read and is left out." in result.hint
    assert export(drift, "json") == whole


def test_the_same_events_fold_into_the_same_graph(drift: Drift) -> None:
    begun(drift)
    events = sessions.read(drift.path)
    assert nx.utils.graphs_equal(Walk(events).graph, drift.walk().graph)


def test_questions_that_wait_count_among_the_nodes_of_a_session_and_the_least_promising_gives_way(drift: Drift) -> None:
    root = drift.start(QUESTION, Limits(max_nodes=4)).open_node
    opened = drift.step(root, "The court blamed the master [t1].", 60, FOLLOW_UPS).open_node
    walk = drift.walk()
    assert len(walk.with_status("answered", "open", "frontier")) == 4 and len(walk.with_status("dropped")) == 2
    (listed,) = listed_sessions(drift.snapshot, drift.path.parent)["sessions"]
    assert (listed["answered"], listed["open"], listed["frontier"], listed["dropped"]) == (1, 1, 2, 2)
    worst = walk.frontier()[-1]
    better = "Who was right about the Meridian Tern in 1969?"
    drift.step(opened, "He saw the back-run [t1].", 100, [better], open_next="none")
    walk = drift.walk()
    assert better in [walk.graph.nodes[id]["query"] for id in walk.frontier()] and walk.graph.nodes[worst]["status"] == "dropped"
    with pytest.raises(BadInput, match="gave way to better ones"):
        drift.step(worst)


def test_a_session_whose_budget_is_spent_goes_on_with_what_is_open(drift: Drift) -> None:
    """The next call named a question that may not be opened any more."""
    root = drift.start(QUESTION, Limits(max_nodes=2)).open_node
    opened = drift.step(root, "The court blamed the master [t1].", 60, FOLLOW_UPS).open_node
    result = drift.step(root, "The court blamed him alone [t1].", 70, open_next="none")
    assert (result.done, result.next_call) == (False, f'drift_step(session_id="walk-1", node_id="{opened}")')
    assert result.text.count("- `") == 1 and "1 wait" in result.text, result.text


def test_finish_without_an_answer_says_so(drift: Drift) -> None:
    drift.start(QUESTION)
    result = drift.finish()
    assert (result.state, result.done) == ("not_found", False) and "drift_step" in result.next_call
