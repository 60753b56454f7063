"""Reports of large communities: made in parts, they say what all rows say, and list only the heaviest."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index import report_content
from graphrag_mcp.index.communities import ClusterParams
from graphrag_mcp.index.communities_stage import (
    BEGINNING,
    HEADS,
    links_of,
    papers_of,
    stored_tree,
    tree_of,
)
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, content_of, inside_of, listed
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.reports import extractive_report

FIRST = "Ada Brynn Corvin Della Edda Falk Greta Hollis Ingrid Jonas Kira Lorne Mira Nils Orla Petra Quinn Rolf".split()
LAST = "Ashdown Brandt Castellan Drury Ekholm Farrow Gale Hargreave Imrie Jessop Kestrel Lindqvist Marlow".split()
DID = "wrote to|met|sued|painted|taught|followed|thanked|mistook".split("|")


def letters(folder: Path) -> None:
    """Two mayors who deal with 116 people each, who deal with one other each: two communities of many small parts."""
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    draw = random.Random(5)
    for number in range(0, 232, 2):
        mayor = "Orsalin Quelbrand" if number % 4 else "Tervis Amblecote"
        pairs = [(mayor, people[number]), (mayor, people[number + 1])] * 2 + [
            (people[number], people[number + 1])
        ]
        lines = [
            f"{one} {draw.choice(DID)} {other} in the year {draw.randrange(1700, 1900)}."
            for one, other in pairs
        ]
        (folder / f"{number:03d}.md").write_text("\n\n".join(lines) + "\n", "utf-8")


def put(corpus: Path, folder: Path) -> Snapshot:
    assert (
        index_documents(corpus, IndexRequest((str(folder),)), Settings(max_cluster_size=6)).status
        == "done"
    )
    return open_snapshot(corpus)


def everything(snapshot: Snapshot) -> tuple[list[EntityRow], list[EdgeRow]]:
    names = ["id", "title", "type", "description", "text_unit_ids", "evidence"]
    ends = ["id", "source_id", "target_id", "description", "weight", "text_unit_ids", "evidence"]
    return (
        [EntityRow(*row) for row in listed(snapshot.rows("entities", columns=names))],
        [EdgeRow(*row) for row in listed(snapshot.rows("relationships", columns=ends))],
    )


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Snapshot]]:
    folder = tmp_path_factory.mktemp("town")
    letters(folder)
    corpus = tmp_path_factory.mktemp("index") / "c"
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(report_content, "LISTED", 20)
        yield folder, corpus, put(corpus, folder)


def test_a_report_is_the_one_that_all_rows_give(town: tuple[Path, Path, Snapshot]) -> None:
    _, _, snapshot = town
    tree = tree_of(snapshot, ClusterParams(6), links_of(snapshot))
    every = tree.communities
    assert every == stored_tree(snapshot).communities
    entities, edges = everything(snapshot)
    texts = listed(snapshot.rows("text_units", columns=["id", "text"]))
    heads = {id: (id, text[:BEGINNING]) for id, text in texts}
    documents, known = papers_of(snapshot)
    spoken: dict[str, set[str]] = {unit: set() for unit in documents}
    for unit, said in listed(snapshot.rows("passages", columns=["text_unit_id", "terms"])):
        spoken[unit].update(said.split())
    stored = {row["id"]: row for row in snapshot.rows("reports").to_pylist()}
    made = {}
    for one in sorted(every.values(), key=lambda one: -one.level):
        weight = {
            unit: sum(tree.terms[one.id][term] for term in tree.terms[one.id].keys() & spoken[unit])
            for unit in one.units
        }
        central = sorted(one.units, key=lambda unit: (-round(weight[unit], 9), unit))[:HEADS]
        of = {unit: documents[unit] for unit in one.units}
        told: dict[str, set[str]] = {document: set() for document in of.values()}
        for unit in one.units:
            told[of[unit]] |= tree.terms[one.id].keys() & spoken[unit]
        papers = {"documents": of, "papers": {id: known[id] for id in sorted(told)}, "told": told}
        made[one.id] = extractive_report(
            one, entities, edges, tree.terms[one.id], [heads[unit] for unit in central], papers
        )
    assert max(len(one.members) for one in every.values()) > report_content.LISTED
    for id, one in made.items():
        assert {field.name: getattr(one, field.name) for field in fields(Report)} == {
            field.name: stored[id][field.name] for field in fields(Report)
        }


def test_numbers_are_of_the_whole_community_and_lists_are_short(
    town: tuple[Path, Path, Snapshot],
) -> None:
    _, _, snapshot = town
    tree = stored_tree(snapshot)
    content = content_of(snapshot, tree, set(tree.communities))
    largest = max(tree.communities.values(), key=lambda one: len(one.members))
    rows = [content.entities[id] for id in largest.members]
    found = inside_of(largest, rows, content.edges[largest.id])
    _, edges = everything(snapshot)
    inside = [edge.id for edge in edges if {edge.source_id, edge.target_id} <= set(largest.members)]
    assert sorted(found.edges) == sorted(inside)
    assert (
        len(found.entities) == len(largest.members) > report_content.LISTED == len(found.entity_ids)
    )
    assert found.n_units == len(largest.units)


def test_an_edit_deep_inside_a_large_community_leads_where_a_fresh_index_does(
    town: tuple[Path, Path, Snapshot], tmp_path: Path
) -> None:
    folder, corpus, _ = town
    for number in (4, 78, 140):
        path = folder / f"{number:03d}.md"
        path.write_text(
            path.read_text("utf-8").replace(" in the year", " before the year"), "utf-8"
        )
    edited = put(corpus, folder)
    assert digest(edited) == digest(put(tmp_path / "fresh", folder))
