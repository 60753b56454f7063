"""What makes searches fast must change nothing: tokens counted by parts, columns kept in memory, hidden characters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.packing.wire import LONGEST_SENTENCE, WORDS, _words, tokens_of
from graphrag_mcp.query import context, global_
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import terms as text_terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust import fencing

PIECES = ["a", "B", "the ", "x. ", ". ", "..", "  ", "\n", "\\n", "。", "，", "中文", "12", "3,4", "\t", '"', "(", "é", "ß", "😀", "'s", "\r\n",
          "A. B", "  9", "“", "…", "&lt;", "#"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.booleans())
def test_tokens_counted_by_parts_are_those_of_the_whole(text: str, quoted: bool) -> None:
    text = json.dumps(text, ensure_ascii=False) if quoted else text
    assert tokens_of(text) == count_tokens(text) == tokens_of(text)


@pytest.mark.parametrize("text", ["中文测试。" * LONGEST_SENTENCE, "中" * 3 * LONGEST_SENTENCE + "。末", "word " * LONGEST_SENTENCE, "x" * 5000])
def test_tokens_of_a_long_text_without_sentences_are_those_of_the_whole(text: str) -> None:
    assert tokens_of(text) == count_tokens(text)


def test_a_text_without_ends_of_sentences_is_cut_into_pieces_once_and_no_more_words_are_remembered_than_told() -> None:
    text = json.dumps("\n\n".join(f"Quorvane{one:x} met the Board, again." for one in range(50)), ensure_ascii=False)
    assert tokens_of(text) == count_tokens(text)
    assert all(word in _words for word in text.split(" ")[1:])
    tokens_of(" ".join(f"w{one}" for one in range(WORDS + 10)))
    assert 0 < len(_words) <= WORDS


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
    _, words = global_._point("", f"The road was closed in 1990. [Data: Entities ({ids})]", False)
    assert words.split() == text_terms("The road was closed in 1990. [Data: Entities]")


@pytest.mark.parametrize("text", ["plain\n\ttext", "a\x00b", "a\x7fb", "é\u200bé", "é \u202e é" * 200, "é" * 500, "tab\x0bline"])
def test_hidden_characters_are_seen_in_short_and_long_texts(text: str) -> None:
    hidden = fencing._HIDDEN.search(text) is not None
    assert fencing._holds_hidden(text) is hidden
    assert (fencing.uncovered(text)[0] != text) is hidden


