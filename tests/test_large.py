"""Searches when tables are too large to be held in memory: the other way through the store, the same answers."""

from __future__ import annotations

from pathlib import Path

from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot


def test_a_corpus_too_large_for_memory_is_searched_with_the_same_result(sample_home: Path) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")
    large = Snapshot(snapshot.folder, snapshot.manifest, hold={})
    assert snapshot.held("passages") and not large.held("passages")
    for question in ("What did Tobias Fenn see in the Narrows?", "谁发现了回流？", "Harbour Tide Authority model T4"):
        assert local_search(large, question) == local_search(snapshot, question)
        assert global_search(large, question) == global_search(snapshot, question)
        assert large.full_text("entities", ["fenn"]).num_rows == snapshot.full_text("entities", ["fenn"]).num_rows > 0
