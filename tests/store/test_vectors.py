"""Vectors in the store and in retrieval: nearest rows, the same whatever the history, trusted as far as words agree."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.query import entities, rank
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import tables
from graphrag_mcp.store.schema import VECTOR_FORM
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.store.test_tables import row_of, rows_of
from tests.support.scripted import ScriptedEmbedder

NOTES = {
    "Boats": "The harbour keeps nine boats. Each boat is painted in spring by its owner.",
    "Bread": "The bakery in Port Kell sells rye bread and salt cakes before sunrise.",
    "Bells": "The chapel bell was cast in 1904 and cracked in the great frost.",
    "Birds": "Terns nest on the northern cliffs; wardens count the nests in June.",
    "Roads": "The coast road was washed away twice and is closed in winter.",
    "Wells": "Water is drawn from three wells, of which one is brackish.",
}  # fmt: skip


def vector(values: list[float]) -> bytes:
    return np.asarray(values, "<f4").tobytes()


def table(rows: dict[str, list[float]]) -> pa.Table:
    flat = pa.array(np.asarray([x for values in rows.values() for x in values], "<f2"))
    width = len(next(iter(rows.values())))
    languages = [id.partition("-")[2] for id in rows]  # "p1-cjk"
    listed = pa.FixedSizeListArray.from_arrays(flat, width)
    return pa.table({"id": list(rows), "sha": [""] * len(rows), "language": languages, "vector": listed})


def stored(folder: Path, *steps: tables.Change, passages: pa.Table | None = None) -> Snapshot:
    """A generation whose passages have these vectors; `passages`: the rows themselves."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = manifests.Manifest("c", parameters={"vectors": VECTOR_FORM})
    for change in steps:
        more = {} if passages is None else {"passages": tables.Change([], passages)}
        versions = tables.apply(folder, manifest, {"passages_vectors": change, **more})
        manifest = manifests.replace(manifest, tables=versions, generation=manifest.generation + 1)
        manifests.commit(folder, manifest)
    return open_snapshot(folder)


SPREAD = {"a": [1.0, 0.0], "b": [0.8, 0.6], "c": [0.0, 1.0], "d": [-1.0, 0.0], "e": [1.6, 1.2]}


def test_the_nearest_come_first_and_length_does_not_count(tmp_path: Path) -> None:
    snapshot = stored(tmp_path / "c", tables.Change([], table(SPREAD)))
    found = tables.nearest(snapshot, "passages", vector([2.0, 0.0]), 4)
    assert found == [(id, pytest.approx(near, abs=1e-3)) for id, near in (("a", 1), ("b", 0.8), ("e", 0.8), ("c", 0))]


def test_of_equally_near_rows_the_first_ids_are_kept_whatever_came_first(tmp_path: Path) -> None:
    ids = [f"p{number:02}" for number in range(12)]
    forward = stored(tmp_path / "f", tables.Change([], table({id: [1.0, 0.0] for id in ids})))
    back = [tables.Change([], table({id: [1.0, 0.0]})) for id in ids[::-1]]
    backward = stored(tmp_path / "b", *back)
    wanted = [(id, 1.0) for id in ids[:5]]
    assert tables.nearest(forward, "passages", vector([1.0, 0.0]), 5) == wanted
    assert tables.nearest(backward, "passages", vector([1.0, 0.0]), 5) == wanted


def test_rows_that_are_asked_for_are_compared_too(tmp_path: Path) -> None:
    snapshot = stored(tmp_path / "c", tables.Change([], table(SPREAD)))
    assert tables.similarities(snapshot, "passages", vector([1.0, 0.0]), 1, ["d", "gone"]) == {"a": 1.0, "d": -1.0}


def test_a_passage_in_another_language_is_not_behind_all_those_in_the_language_of_the_question(tmp_path: Path) -> None:
    """A direction for the language, one for the matter: the model puts the languages apart."""
    english = {f"e{n}": [1.0, 0.1 * n / 20, 0.0] for n in range(20)}
    chinese = {f"c{n}-cjk": [0.0, 0.1 * n / 20, 1.0] for n in range(20)}
    answer = {"c-cjk": [0.0, 0.5, 0.87]}
    asked = vector([0.87, 0.5, 0.0])
    mixed = stored(tmp_path / "m", tables.Change([], table({**english, **chinese, **answer})))
    assert tables.nearest(mixed, "passages", asked, 1)[0][0] == "c-cjk"
    alone = stored(tmp_path / "a", tables.Change([], table(english)))
    assert tables.nearest(alone, "passages", asked, 1)[0] == ("e19", pytest.approx(0.91, abs=0.01))


def test_the_language_of_a_file_does_not_depend_on_the_order_of_its_rows(tmp_path: Path) -> None:
    rows = {"a": [1.0, 0.0, 0.1], "b-cjk": [0.0, 1.0, 0.1], "c-cjk": [0.1, 0.9, 0.2], "d": [0.9, 0.1, 0.3], "e": [0.8, 0.1, 0.5]}
    files = {"a": "box.mbox#1", "b-cjk": "box.mbox#2", "c-cjk": "box.mbox#3"}
    found: list[dict[str, float]] = []
    for name, ids in (("f", list(rows)), ("b", list(rows)[::-1])):
        named = rows_of("passages", [row_of("passages", 0, id=id, uri=files.get(id, id)) for id in ids])
        snapshot = stored(tmp_path / name, tables.Change([], table({id: rows[id] for id in ids})), passages=named)
        found.append(tables.similarities(snapshot, "passages", vector([1.0, 0.1, 0.4]), 5))
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_large_tables_are_searched_by_the_store_with_the_same_result(tmp_path: Path) -> None:
    snapshot = stored(tmp_path / "c", tables.Change([], table(SPREAD)))
    small = tables.similarities(snapshot, "passages", vector([1.0, 0.1]), 2, ["d"])
    large = tables.similarities(snapshot, "passages", vector([1.0, 0.1]), 2, ["d"], flat=1)
    assert large == pytest.approx(small, abs=1e-4)
    assert tables.similarities(snapshot, "passages", vector([1.0, 0.1, 0.0]), 2, ["d"], flat=1) == {}


def test_vectors_of_another_length_or_of_nothing_find_nothing(tmp_path: Path) -> None:
    snapshot = stored(tmp_path / "c", tables.Change([], table(SPREAD)))
    assert tables.nearest(snapshot, "passages", vector([1.0, 0.0, 0.0]), 3) == []
    assert tables.nearest(snapshot, "passages", vector([0.0, 0.0]), 3) == []
    assert tables.nearest(snapshot, "entities", vector([1.0, 0.0]), 3) == []


# ---- in retrieval -------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> tuple[Snapshot, ScriptedEmbedder]:
    """An index whose vectors come from an embedder that knows words alone."""
    embedder = ScriptedEmbedder()
    asker = Asker(None, None, embedder)
    texts = tuple(InlineText(text, name, name) for name, text in NOTES.items())
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path), asker=asker)
    return open_snapshot(tmp_path / "c"), embedder


def embedded(embedder: ScriptedEmbedder, text: str) -> bytes:
    return asyncio.run(embedder.embed([text])).vectors[0]


def titles(snapshot: Snapshot, found: rank.Ranking) -> list[str]:
    ids = [one.id for one in found.passages]
    return snapshot.by_key("passages", ids, "id", ["title"])["title"].to_pylist()


def test_a_passage_without_any_word_of_the_question_is_found_by_its_vector(
    notes: tuple[Snapshot, ScriptedEmbedder],
) -> None:
    snapshot, embedder = notes
    near = embedded(embedder, f"Birds\n{NOTES['Birds']}")
    assert not rank.retrieve(snapshot, "gulls offspring").passages
    found = rank.retrieve(snapshot, "gulls offspring", vector=near)
    assert titles(snapshot, found)[0] == "Birds" and found.passages[0].total > 0
    assert found.considered["near"] == len(NOTES)


def test_a_question_without_a_vector_is_ranked_as_ever(notes: tuple[Snapshot, ScriptedEmbedder]) -> None:
    snapshot, _ = notes
    assert rank.retrieve(snapshot, "terns nest", vector=b"").passages == rank.retrieve(snapshot, "terns nest").passages
    other = rank.retrieve(snapshot, "terns nest", vector=vector([1.0, 2.0, 3.0]))
    assert [one.score for one in other.passages] == [one.score for one in rank.retrieve(snapshot, "terns nest").passages]


def test_entities_near_the_question_in_meaning_are_proposed(tmp_path: Path) -> None:
    embedder = ScriptedEmbedder()
    said = ("Ada Keene met Bram Olde in Port Kell.", "Cora Vane sold rye bread to Dirk Moss.", "Edna Rook keeps bees at Long Marsh.")
    texts = tuple(InlineText(text, f"n{number}") for number, text in enumerate(said))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path), asker=Asker(None, None, embedder))
    snapshot = open_snapshot(tmp_path / "c")
    (row,) = snapshot.rows("entities", "title = 'Cora Vane'", ["id", "title", "description"]).to_pylist()
    near = embedded(embedder, f"{row['title']}: {row['description']}")
    found = rank.retrieve(snapshot, "zebra crossing", vector=near)
    listed = {one.row["title"]: one for one in entities.ranked(snapshot, found)}
    assert listed[row["title"]].parts["vector"] > 0
