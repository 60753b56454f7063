"""The graph as an agent walks it: neighbours, paths against a brute-force search, no path, names, budgets, the tool."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pyarrow as pa
import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import sending
from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.query.graph import around, connect
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import tables
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import content_id
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

EMPTY = {pa.string(): "", pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False}
Links = dict[tuple[str, str], float]


def written(folder: Path, links: Links) -> Snapshot:
    """A corpus of these relationships between entities named as they are, one text unit for all."""
    names = sorted({name for pair in links for name in pair})
    degree = {name: sum(name in pair for pair in links) for name in names}
    id = {name: content_id("entity", name.lower()) for name in names}
    rows = {
        "documents": [{"id": "d", "n": 1, "uri": "f/a.md", "title": "A"}],
        "text_units": [{"id": "u", "n": 1, "document_id": "d", "char_end": 100}],
        "entities": [
            {"id": id[name], "n": n, "key": name.lower(), "title": name, "type": "other", "degree": degree[name],
             "names": [name.lower()], "terms": name.lower(), "text_unit_ids": ["u"]} for n, name in enumerate(names, 1)
        ],
        "relationships": [
            {"id": content_id("r", one, other), "n": n, "source_id": min(id[one], id[other]), "target_id": max(id[one], id[other]),
             "weight": weight, "description": f"{one} met {other}.",
             "evidence": [{"text_unit_id": "u", "start": n, "end": n + 9, "text": f"{one} met {other}."}]}
            for n, ((one, other), weight) in enumerate(links.items(), 1)
        ],
    }  # fmt: skip
    changes = {}
    for table, listed in rows.items():
        full = [{field.name: row.get(field.name, EMPTY.get(field.type, [])) for field in TABLES[table]} for row in listed]
        changes[table] = tables.Change(rows=pa.Table.from_pylist(full, TABLES[table]))
    versions = tables.apply(folder, None, changes)
    counters = {"entities": len(names), "relationships": len(links)}
    manifests.commit(folder, manifests.Manifest("made", 1, tables=versions, counters=counters))
    return open_snapshot(folder)


def named(snapshot: Snapshot) -> dict[str, str]:
    rows = snapshot.rows("entities", "", ["id", "title"])
    return dict(zip(rows["id"].to_pylist(), rows["title"].to_pylist(), strict=True))


def chain(*names: str) -> Links:
    return dict.fromkeys(pairwise(names), 1.0)


@pytest.fixture(scope="module")
def sample(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


# ---- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_shortest_and_strongest_paths_are_those_of_a_search_through_everything(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    names = [f"N{at}" for at in range(24)]
    links: Links = {}
    while len(links) < 40:
        one, other = sorted(draw.sample(names, 2))
        links[one, other] = draw.choice((0.5, 1.0, 2.0, 5.0))
    snapshot = written(tmp_path / "c", links)
    title = named(snapshot)
    id = {name: one for one, name in title.items()}
    graph = nx.Graph()
    graph.add_weighted_edges_from((one, other, weight) for (one, other), weight in links.items())

    def strength(way: list[str]) -> float:
        steps = [graph[a][b]["weight"] / math.sqrt(graph.degree(a) * graph.degree(b)) for a, b in pairwise(way)]
        return math.prod(min(0.99, step) for step in steps)

    for _ in range(12):
        one, other = draw.sample(sorted(graph), 2)
        found = connect(snapshot, id[one], id[other])
        if not nx.has_path(graph, one, other):
            assert found == []
            continue
        shortest = nx.shortest_path_length(graph, one, other)
        every = list(nx.all_simple_paths(graph, one, other, cutoff=shortest + 1))
        assert len(found[0].relationships) == shortest
        assert math.isclose(found[0].strength, max(strength(way) for way in every if len(way) == shortest + 1))
        assert math.isclose(max(path.strength for path in found), max(map(strength, every)))
        for path in found:
            way = [title[one] for one in path.entities]
            assert way in every and math.isclose(path.strength, strength(way))
        assert len({tuple(path.entities) for path in found}) == len(found) <= 2


def test_without_a_path_the_next_call_is_a_search(tmp_path: Path) -> None:
    links = chain("Ada", "Bea", "Cid") | chain("Xan", "Yul") | {("Yul", f"Z{at}"): 1.0 for at in range(5)}
    snapshot = written(tmp_path / "c", links)
    result = explore_graph(snapshot, "Ada", "Xan")
    assert (result.state, result.paths, result.edges) == ("not_found", [], [])
    assert "no path between Ada (e1) and Xan" in result.text
    assert result.next_call == 'local_search(query="Ada Xan")'


# ---- neighbours ------------------------------------------------------------------------------------


def test_neighbours_come_strongest_first_and_the_next_ring_has_its_places(tmp_path: Path) -> None:
    links = {("A", f"B{at}"): 1.0 + at for at in range(9)} | {(f"B{at}", f"C{at}"): 1.0 for at in range(9)}
    snapshot = written(tmp_path / "c", links)
    id = {name: one for one, name in named(snapshot).items()}
    found = around(snapshot, id["A"], 2, 7)
    title = named(snapshot)
    assert [(title[one], hop) for one, hop in found.steps.items()] == [
        ("A", 0), ("B8", 1), ("B7", 1), ("B6", 1), ("B5", 1), ("C8", 2), ("C7", 2),
    ]  # fmt: skip
    assert found.found == [9, 9] and len(found.edges) == 6


def test_a_hub_is_shown_but_does_not_flood(tmp_path: Path) -> None:
    links = chain("A", "Hub") | chain("A", "B", "C") | {("Hub", f"Z{at:03}"): 1.0 for at in range(600)}
    snapshot = written(tmp_path / "c", links)
    result = explore_graph(snapshot, "A", hops=2, max_nodes=4)
    assert sorted(node["title"] for node in result.nodes) == ["A", "B", "C", "Hub"]
    own = explore_graph(snapshot, "Hub", max_nodes=20)  # asked for itself, it is
    assert len(own.nodes) == 20 and "of 601 at 1 step" in own.text


def test_every_relationship_has_the_sentence_that_says_so_and_its_place(sample: Snapshot) -> None:
    result = explore_graph(sample, "Tobias Fenn", "Ines Calloway", max_tokens=6_000)
    title = {node["id"]: node["title"] for node in result.nodes}
    rows = sample.rows("documents", "", ["id", "n", "text"]).to_pylist()
    text_of = {name: row["text"] for row in rows for name in (row["id"], f"d{row['n']}")}
    lines = {line.split("]")[0][3:]: line for line in result.text.splitlines() if line.startswith("- [r")}
    assert result.state == "context" and {edge["id"] for edge in result.edges} == set(lines)
    used = {id for path in result.paths for id in path["relationships"]}
    assert used == set(lines)
    for edge in result.edges:
        assert title[edge["source"]] in lines[edge["id"]] and title[edge["target"]] in lines[edge["id"]]
        assert f"[{lines[edge['id']].rsplit('[', 1)[1]}" in lines[edge["id"]]
    for cited in result.citations:
        said = " ".join(text_of[cited.document_id][cited.char_start : cited.char_end].split())
        assert said[:60] in " ".join(result.text.split())


# ---- what is asked for -----------------------------------------------------------------------------


def test_without_a_start_the_central_entities_and_the_top_topics_are_shown(deep_sample: Snapshot) -> None:
    sample = deep_sample
    result = explore_graph(sample)
    degrees = [node["degree"] for node in result.nodes]
    assert degrees == sorted(degrees, reverse=True) and max(sample.rows("entities", "", ["degree"])["degree"].to_pylist()) == degrees[0]
    assert {(one["level"], one["parent"]) for one in result.communities} == {(0, "")}
    under = {one["id"]: explore_graph(sample, one["id"]).communities for one in result.communities}
    parent, below = next((id, children) for id, children in under.items() if children)
    assert {(one["level"], one["parent"]) for one in below} == {(1, parent)}
    leaf = next(one for one in below if not explore_graph(sample, one["id"]).communities)
    assert "0 communities directly under it" in explore_graph(sample, leaf["id"]).text


def test_an_unknown_or_ambiguous_name_gives_candidates(sample: Snapshot) -> None:
    result = explore_graph(sample, "Tobias Fenn", "East Sea")
    assert result.state == "not_found" and result.candidates[0]["title"].startswith("East Sea")
    assert "Did you mean" in result.text and "again with an id" in result.hint
    assert "Also named 'Fenn'" in explore_graph(sample, "Fenn").hint
    assert explore_graph(sample, "zzqx").candidates == []


def test_one_entity_twice_and_an_unknown_community_are_refused(sample: Snapshot) -> None:
    with pytest.raises(BadInput, match="are one entity"):
        explore_graph(sample, "Tobias Fenn", "tobias fenn")
    with pytest.raises(NotFound, match="c9999"):
        explore_graph(sample, "c9999")


@pytest.mark.parametrize("budget", [200, 400, 1_000, 20_000])
@pytest.mark.parametrize("ends", [(), ("Harbour Tide Authority",), ("Tobias Fenn", "Brightwater Tidal"), ("沈若岚", "T4"), ("East Sea",)])
def test_the_budget_holds(sample: Snapshot, budget: int, ends: tuple[str, ...]) -> None:
    result = explore_graph(sample, *ends, hops=2, max_nodes=200, max_tokens=budget)
    assert result.tokens <= budget and sending.size(result)[0] <= budget and result.text


@pytest.fixture
def call(sample_home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))) as caller:
        yield caller


def test_the_tool_answers_as_agents_ask(call: Caller) -> None:
    assert call.good("explore_graph", corpus="sample")["communities"]
    found = call.good("explore_graph", source="Tobias Fenn", target="Ines Calloway", corpus="sample")
    assert found["paths"][0]["kind"].startswith("shortest") and found["citations"] and found["corpus"] == "sample"
    around = call.good("explore_graph", entity="e3", hops="9", limit=4, corpus="sample")
    assert 2 <= len(around["nodes"]) <= 4 and "hops 9 was changed to 4" in around["hint"]
    assert "one entity" in call.bad("explore_graph", start="e3", goal="e3", corpus="sample")
    assert "no corpus" in call.bad("explore_graph", start="e3", corpus="none")
