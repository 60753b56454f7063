"""The graph as GraphML, opened again by networkx and compared with the tables; the texts of exported communities."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest

from graphrag_mcp.exchange.export import export, graphml
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.command import run_here


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def test_the_file_holds_every_entity_and_relationship_with_its_attributes(snapshot: Snapshot, tmp_path: Path) -> None:
    counts = graphml(snapshot, tmp_path / "new" / "graph.graphml")
    graph = nx.read_graphml(tmp_path / "new" / "graph.graphml")
    rows = {f"e{row['n']}": row for row in snapshot.rows("entities").to_pylist()}
    links = {f"r{row['n']}": row for row in snapshot.rows("relationships").to_pylist()}
    assert counts == {"nodes": len(rows), "edges": len(links)}
    assert not graph.is_directed() and set(graph) == set(rows)
    for id, node in graph.nodes(data=True):
        assert (node["title"], node.get("type", ""), node["degree"]) == tuple(rows[id][name] for name in ("title", "type", "degree"))
        assert node["description"] == rows[id]["description"] and graph.degree(id) == rows[id]["degree"]
    assert {edge["id"]: edge["weight"] for _, _, edge in graph.edges(data=True)} == {id: row["weight"] for id, row in links.items()}
    number = {row["id"]: row["n"] for row in snapshot.rows("communities").to_pylist()}
    for row in snapshot.rows("memberships").to_pylist():
        node = next((graph.nodes[id] for id, one in rows.items() if one["id"] == row["entity_id"]), None)
        if node is None:
            continue  # a text unit
        assert [node[f"community_{level}"] for level in range(len(row["path"]))] == [number[id] for id in row["path"]]
    assert not list((tmp_path / "new").glob(".*"))


def test_a_community_is_exported_with_the_texts_that_are_placed_in_it_alone(snapshot: Snapshot, tmp_path: Path) -> None:
    export(snapshot, tmp_path)
    path = {row["entity_id"]: row["path"] for row in snapshot.rows("memberships").to_pylist()}
    units = [row["id"] for row in snapshot.rows("text_units").to_pylist()]
    for name in ("communities", "community_reports"):
        for row in pq.read_table(tmp_path / f"{name}.parquet").to_pylist():
            assert row["text_unit_ids"] == sorted(unit for unit in units if row["id"] in path.get(unit, ()))


def test_the_same_index_gives_the_same_bytes(snapshot: Snapshot, tmp_path: Path) -> None:
    for name in ("a", "b"):
        graphml(snapshot, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_text_that_xml_cannot_hold_breaks_nothing(tmp_path: Path) -> None:
    text = "Ada & Bea <Halden> met Cid \"Quote\" Berg at ]]> Halden\x0bBridge \x07 in Oslo. Ada Halden & Bo met Cid Berg again in Oslo, and Ada Halden left."
    texts = tuple(InlineText(f"{text} {n}", id=str(n)) for n in range(3))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    counts = graphml(open_snapshot(tmp_path / "c"), tmp_path / "g.graphml")
    assert nx.read_graphml(tmp_path / "g.graphml").number_of_nodes() == counts["nodes"] > 0


def test_the_commands_export_and_walk(sample_home: Path, tmp_path: Path) -> None:
    home = ("--home", sample_home, "--corpus", "sample")
    page = tmp_path / "graph.html"
    done = run_here("export", tmp_path / "out", "--graphml", "--html", page, *home)
    assert done.returncode == 0 and "entities.parquet" in done.stdout and f"{page} " in done.stdout and page.is_file()
    assert run_here("export", "--graphml", "--html", page, *home).returncode == 2, "GraphML is written into a folder"
    assert nx.read_graphml(tmp_path / "out" / "graph.graphml").number_of_nodes() > 80
    found = run_here("explore", "Tobias Fenn", "Ines Calloway", *home)
    assert found.returncode == 0 and "shortest" in found.stdout
    assert run_here("explore", "c99999", *home).returncode == 2
    assert "There is no DRIFT session" in run_here("drift", "--home", tmp_path / "none").stdout
    assert run_here("drift", "drift-0", "--home", tmp_path / "none").returncode == 2
