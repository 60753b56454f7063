"""What makes searches fast must change nothing: ids in reports, hidden characters."""

from __future__ import annotations

import pytest

from graphrag_mcp.query import reports
from graphrag_mcp.text.terms import terms as text_terms
from graphrag_mcp.trust import fencing


def test_ids_behind_a_statement_of_a_report_are_no_words_that_a_question_could_mean() -> None:
    ids = "88b71c1990ab4e5d8c3f2a6b7d9e0f1a, 71e88a00c1990bb4e5d8c3f2a6b7d9e0"
    _, words = reports._point("", f"The road was closed in 1990. [Data: Entities ({ids})]")
    assert words.split() == text_terms("The road was closed in 1990. [Data: Entities]")


@pytest.mark.parametrize("text", ["plain\n\ttext", "a\x00b", "a\x7fb", "é\u200bé", "é \u202e é" * 200, "é" * 500, "tab\x0bline"])
def test_hidden_characters_are_seen_in_short_and_long_texts(text: str) -> None:
    hidden = fencing._HIDDEN.search(text) is not None
    assert fencing._holds_hidden(text) is hidden
    assert (fencing.uncovered(text)[0] != text) is hidden


