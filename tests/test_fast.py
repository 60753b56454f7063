"""What makes searches fast must change nothing: ids in reports, hidden characters."""

from __future__ import annotations

import pytest

from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.trust import fencing


def test_a_search_that_keeps_no_tables_in_memory_gives_the_same_result(sample_home) -> None:
    held = open_snapshot(sample_home / "corpora" / "sample")
    bare = Snapshot(held.folder, held.manifest)
    for query in ("Who was right about the back-run?", "Corrie Head", "灯塔", ""):
        for search in (local_search, global_search):
            assert search(bare, query).model_dump() == search(held, query).model_dump()


@pytest.mark.parametrize("text", ["plain\n\ttext", "a\x00b", "a\x7fb", "é\u200bé", "é \u202e é" * 200, "é" * 500, "tab\x0bline"])
def test_hidden_characters_are_seen_in_short_and_long_texts(text: str) -> None:
    hidden = fencing._HIDDEN.search(text) is not None
    assert fencing._holds_hidden(text) is hidden
    assert (fencing.uncovered(text)[0] != text) is hidden


