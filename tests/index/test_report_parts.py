"""Reports of large communities list only the heaviest rows, and are the same after an edit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index import report_content, report_extractive
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.report_content import Topic, content_of
from graphrag_mcp.index.report_extractive import outline
from graphrag_mcp.index.tree import stored_tree
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot, rows_of
from graphrag_mcp.types import IndexRequest

FIRST = "Ada Brynn Corvin Della Edda Falk Greta Hollis Ingrid Jonas Kira Lorne Mira Nils Orla Petra Quinn Rolf".split()
LAST = "Ashdown Brandt Castellan Drury Ekholm Farrow Gale Hargreave Imrie Jessop Kestrel Lindqvist Marlow".split()
DID = "wrote to|met|sued|painted|taught|followed|thanked|mistook".split("|")


def letters(folder: Path) -> None:
    """Two mayors who deal with 116 people each, who deal with one other each: two communities of many small parts."""
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    draw = random.Random(5)
    for number in range(0, 232, 2):
        mayor = "Orsalin Quelbrand" if number % 4 else "Tervis Amblecote"
        pairs = [(mayor, people[number]), (mayor, people[number + 1])] * 2 + [(people[number], people[number + 1])]
        lines = [f"{one} {draw.choice(DID)} {other} in the year {draw.randrange(1700, 1900)}." for one, other in pairs]
        (folder / f"{number:03d}.md").write_text("\n\n".join(lines) + "\n", "utf-8")


def put(corpus: Path, folder: Path) -> Snapshot:
    assert index_documents(corpus, IndexRequest((str(folder),)), Settings(max_cluster_size=6)).status == "done"
    return open_snapshot(corpus)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Snapshot]]:
    folder = tmp_path_factory.mktemp("town")
    letters(folder)
    corpus = tmp_path_factory.mktemp("index") / "c"
    with pytest.MonkeyPatch.context() as smaller:
        for module in (report_content, report_extractive):
            smaller.setattr(module, "LISTED", 20)
        yield folder, corpus, put(corpus, folder)


def test_numbers_are_of_the_whole_community_and_lists_are_short(town: tuple[Path, Path, Snapshot]) -> None:
    _, _, snapshot = town
    tree = stored_tree(snapshot)
    content = content_of(snapshot, tree, set(tree.communities))
    largest = max(tree.communities.values(), key=lambda one: len(one.members))
    rows = [content.entities[id] for id in largest.members]
    topic = Topic(largest, rows, content.edges[largest.id])
    found = outline(topic)
    edges = rows_of(snapshot.rows("relationships", columns=["id", "source_id", "target_id"]))
    inside = [id for id, *ends in edges if {*ends} <= set(largest.members)]
    assert sorted(edge.id for edge in topic.edges) == sorted(inside)
    assert len(largest.members) > report_extractive.LISTED == len(found.entity_ids)
    assert found.n_text_units == len(largest.units)


def test_an_edit_deep_inside_a_large_community_leads_where_a_fresh_index_does(
    town: tuple[Path, Path, Snapshot], tmp_path: Path
) -> None:
    folder, corpus, _ = town
    for number in (4, 78, 140):
        path = folder / f"{number:03d}.md"
        path.write_text(path.read_text("utf-8").replace(" in the year", " before the year"), "utf-8")
    edited = put(corpus, folder)
    assert digest(edited) == digest(put(tmp_path / "fresh", folder))
