"""index/communities.py: communities follow topics, hold every text unit and depend on the content alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import Busy
from graphrag_mcp.index import tree as trees
from graphrag_mcp.index.communities import ClusterParams, Hierarchy, Texts, cluster, texts_of
from graphrag_mcp.index.pipeline import IndexRequest, index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import writer_lock
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import content_id
from tests.support.promises import doctor

ROOT = Path(__file__).resolve().parents[2]
TOPICS = {
    "orchard": "apple pear graft blossom pruning rootstock harvest cider scion canker ladder pollen windfall quince",
    "harbour": "tide pilot mooring anchor dredger buoy quay hull berth swell ballast channel winch towing",
    "kiln": "glaze clay porcelain firing stoneware wheel slip bisque cobalt feldspar crackle saggar throwing ember",
    "signal": "antenna relay voltage circuit oscillator filter decibel carrier modulation receiver coil beacon noise phase",
}
COMMON = "report meeting people morning number another several because during between result group".split()
NAMES = {topic: [f"{first} {topic.title()}son" for first in ("Ada", "Boris", "Celia", "Dmitri")] for topic in TOPICS}


def text_of(rnd: random.Random, topic: str) -> str:
    """Six sentences of a topic's words among words of all; two people of the topic and one of all."""
    said = []
    for _ in range(6):
        words = rnd.sample(TOPICS[topic].split(), 5) + rnd.sample(COMMON, 4)
        rnd.shuffle(words)
        said.append(f"{rnd.choice(NAMES[topic])} told Everard Alltown that {' '.join(words)}.")
    return " ".join(said)


def written(folder: Path, documents: int = 8) -> Path:
    folder.mkdir()
    rnd = random.Random(1)
    for topic in TOPICS:
        for number in range(documents):
            (folder / f"{topic}-{number}.md").write_text(text_of(rnd, topic), "utf-8")
    return folder


def put(corpus: Path, folder: Path, **more: bool) -> Snapshot:
    result = index_documents(corpus, IndexRequest((str(folder),), remove_missing=True, **more), Settings())
    assert result.status == "done"
    return open_snapshot(corpus)


def topic_of_units(snapshot: Snapshot) -> dict[str, str]:
    uris = {row["id"]: row["uri"] for row in snapshot.rows("documents", columns=["id", "uri"]).to_pylist()}
    rows = snapshot.rows("text_units", columns=["id", "document_id"]).to_pylist()
    return {row["id"]: Path(uris[row["document_id"]]).stem.split("-")[0] for row in rows}


def made_up(seed: int, topics: int, units: int, words: int = 40) -> tuple[Texts, dict[str, str], dict[str, list[str]]]:
    """Text units of invented topics, the topic of each, and a name in every third unit of a topic."""
    rnd, passages, topic_of, entities = random.Random(seed), [], {}, {}
    for number in range(units):
        topic = number % topics
        id = content_id("unit", str(number))
        own = [f"w{topic}x{rnd.randrange(60)}" for _ in range(words)]
        passages.append({"text_unit_id": id, "terms": " ".join([*own, *(f"all{rnd.randrange(30)}" for _ in own)])})
        topic_of[id] = f"topic {topic}"
        entities.setdefault(f"name {topic} {number // topics % 3}", []).append(id)
    return texts_of([pa.Table.from_pylist(passages)], dict.fromkeys(topic_of, "d")), topic_of, entities


def tops(tree: Hierarchy) -> list[tuple[str, ...]]:
    return [one.units for one in tree.communities.values() if not one.parent]


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = written(tmp_path_factory.mktemp("town") / "docs")
    corpus = tmp_path_factory.mktemp("index") / "c"
    put(corpus, folder)
    return folder, corpus


def test_top_communities_follow_the_topics_and_hold_every_document(town: tuple[Path, Path]) -> None:
    snapshot = open_snapshot(town[1])
    topic = topic_of_units(snapshot)
    tree = trees.stored_tree(snapshot)
    found = tops(tree)
    assert sorted(unit for units in found for unit in units) == sorted(topic)
    assert [len(Counter(topic[unit] for unit in units)) for units in found] == [1, 1, 1, 1]
    title = dict(zip(*(snapshot.rows("entities", columns=["id", "title"])[name].to_pylist() for name in ("id", "title")),
                     strict=True))  # fmt: skip
    for one in tree.communities.values():
        if not one.parent:
            held = topic[one.units[0]]
            assert set(NAMES[held]) <= {title[id] for id in one.members} <= {*NAMES[held], "Everard Alltown"}


def test_an_edited_index_has_the_communities_of_a_fresh_one(tmp_path: Path) -> None:
    folder = written(tmp_path / "docs", 5)
    put(tmp_path / "kb", folder)
    rnd = random.Random(2)
    (folder / "kiln-9.md").write_text(text_of(rnd, "kiln"), "utf-8")
    put(tmp_path / "kb", folder)
    (folder / "signal-1.md").write_text(text_of(rnd, "harbour"), "utf-8")
    (folder / "plain.md").write_text("nothing but small words and a windfall of apple blossom\n", "utf-8")
    (folder / "orchard-0.md").unlink()
    edited = digest(put(tmp_path / "kb", folder))
    assert edited == digest(put(tmp_path / "fresh", folder))
    assert edited == digest(put(tmp_path / "kb", folder, recluster=True))
    assert doctor(tmp_path / "kb") == []
    tree = trees.stored_tree(open_snapshot(tmp_path / "kb"))
    topic = topic_of_units(open_snapshot(tmp_path / "kb"))
    plain = next(unit for unit, name in topic.items() if name == "plain")
    mine = tree.communities[tree.path[plain][0]].units
    assert Counter(topic[unit] for unit in mine).most_common(1)[0][0] == "orchard"


def test_the_tree_holds_together_at_every_level() -> None:
    texts, _, entities = made_up(4, 9, 400)
    tree = cluster(texts, entities, [("by hand", "name 1 1", 2.0), ("alone", "alone too", 1.0)])
    assert list(tree.communities.values()) == sorted(tree.communities.values(), key=lambda one: (one.level, one.id))
    assert set(tree.path) == {*texts.ids, *entities, "by hand", "alone", "alone too"}
    assert tree.path["by hand"] == tree.path["name 1 1"] and tree.path["alone"] == tree.path["alone too"]
    for one in tree.communities.values():
        assert one.id == content_id("community", str(one.level), *(one.members or one.units))
        assert list(one.members) == sorted(one.members) and list(one.units) == sorted(one.units)
        children = [tree.communities[child] for child in one.children]
        assert len(children) != 1 and all(child.parent == one.id and child.level == one.level + 1 for child in children)
        if children:
            assert sorted(id for child in children for id in child.members) == list(one.members)
            assert sorted(id for child in children for id in child.units) == list(one.units)
            assert max(len(child.units) for child in children) <= 0.85 * len(one.units)
        assert all(tree.path[id][one.level] == one.id for id in (*one.members, *one.units))
    for path in tree.path.values():
        assert not tree.communities[path[-1]].children
        assert [tree.communities[id].parent for id in path] == ["", *path[:-1]]


@pytest.mark.parametrize(("topics", "units", "least", "most"), [(40, 1200, 5, 30), (9, 400, 9, 9), (2, 300, 2, 30)])
def test_there_are_at_most_thirty_top_communities_and_none_is_tiny(
    topics: int, units: int, least: int, most: int
) -> None:
    texts, topic_of, _ = made_up(5, topics, units)
    found = tops(cluster(texts, {}))
    assert least <= len(found) <= most and min(map(len, found)) >= 3
    assert sorted(unit for held in found for unit in held) == sorted(topic_of)
    if topics == 9:
        assert all(len({topic_of[unit] for unit in held}) == 1 for held in found)


def told(shuffled: int) -> str:
    """A hash of the hierarchy of passages in one order or another."""
    rnd = random.Random(shuffled)
    rows = [{"text_unit_id": content_id("u", str(number)), "terms": text_of(random.Random(number), topic)}
            for number, topic in enumerate(list(TOPICS) * 12)]  # fmt: skip
    rnd.shuffle(rows)
    batches = [pa.Table.from_pylist(rows[start : start + 7]) for start in range(0, len(rows), 7)]
    documents = {row["text_unit_id"]: row["text_unit_id"] for row in rows}
    tree = cluster(texts_of(batches, documents), {"Ada": [row["text_unit_id"] for row in sorted(rows, key=str)[:9]]})
    return content_id(*tree.communities, *(one for id in sorted(tree.path) for one in tree.path[id]))


def test_order_of_rows_does_not_matter_nor_does_another_process_with_another_hash_seed() -> None:
    code = "from tests.index.test_communities import told\nprint(told(3))"
    run = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
                       capture_output=True, check=True).stdout.strip()
        for seed in ("1", "2")
    ]  # fmt: skip
    assert {*run, told(1), told(2)} == {told(0)}


def test_a_cancelled_run_stops_dividing_its_texts_and_has_the_lock_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, told = threading.Event(), list[str]()

    def ways(texts: Texts, params: ClusterParams, sheets: Any, check: Callable[[], None]) -> Any:
        began.set()
        try:
            for _ in range(40):
                threading.Event().wait(0.1)
                check()
        except Exception as error:
            told.append(type(error).__name__)
        try:
            with writer_lock(tmp_path / "c", 0.5):
                told.append("free")
        except Busy:
            told.append("locked")
        return {}

    monkeypatch.setattr(trees, "ways_of", ways)
    request = IndexRequest(paths=(str(written(tmp_path / "docs")),))
    result = index_documents(tmp_path / "c", request, Settings(), cancelled=began.is_set)
    assert (result.status, told) == ("cancelled", ["Cancelled", "locked"])
