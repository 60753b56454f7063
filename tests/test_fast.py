"""What makes searches fast must change nothing: columns kept in memory, hidden characters."""

from __future__ import annotations

import pytest

from graphrag_mcp.query import context, reports
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import terms as text_terms
from graphrag_mcp.trust import fencing


def test_columns_kept_in_memory_are_those_of_the_table(sample_home) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")
    ids = snapshot.rows("reports", "", ["id"])["id"].to_pylist()[::-2]
    kept = context.light(snapshot, "reports", [*ids, "nothing"], context.NUMBERS)
    assert len(ids) > 2 and kept.to_pylist() == snapshot.by_key("reports", ids, "id", context.NUMBERS).to_pylist()
    assert context.columns_of(snapshot, "reports", context.NUMBERS) is not None


def test_a_search_that_keeps_no_tables_in_memory_gives_the_same_result(sample_home) -> None:
    held = open_snapshot(sample_home / "corpora" / "sample")
    bare = Snapshot(held.folder, held.manifest, hold={})
    for query in ("Who was right about the back-run?", "Corrie Head", "灯塔", ""):
        for search in (local_search, global_search):
            assert search(bare, query).model_dump() == search(held, query).model_dump()
    assert context.short(bare) is not None and context.short(held) is None


def test_ids_behind_a_statement_of_a_report_are_no_words_that_a_question_could_mean() -> None:
    ids = "88b71c1990ab4e5d8c3f2a6b7d9e0f1a, 71e88a00c1990bb4e5d8c3f2a6b7d9e0"
    _, words = reports._point("", f"The road was closed in 1990. [Data: Entities ({ids})]")
    assert words.split() == text_terms("The road was closed in 1990. [Data: Entities]")


@pytest.mark.parametrize("text", ["plain\n\ttext", "a\x00b", "a\x7fb", "é\u200bé", "é \u202e é" * 200, "é" * 500, "tab\x0bline"])
def test_hidden_characters_are_seen_in_short_and_long_texts(text: str) -> None:
    hidden = fencing._HIDDEN.search(text) is not None
    assert fencing._holds_hidden(text) is hidden
    assert (fencing.uncovered(text)[0] != text) is hidden


