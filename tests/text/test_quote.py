"""The sentence picker: spans point into the text, statements come before headings and menus, the
asked terms decide."""

import pytest

from graphrag_mcp.text.quote import best, lead, quotes, with_speaker
from graphrag_mcp.text.terms import query_terms

REPORT = """# Safety report 2024

Contact | Imprint | Privacy

The bridge at Olten was closed after the inspection. Repairs cost 2.4 million francs in all.
Who pays for them? The canton pays for the repairs of the bridge. The canton pays for the bridge's repairs.
"""


def worth(query: str) -> dict[str, float]:
    return dict.fromkeys(query_terms(query), 1.0)


def test_a_quotation_points_to_its_place_in_the_text() -> None:
    for one in quotes(REPORT, worth("bridge repairs cost"), 5):
        assert " ".join(REPORT[one.start : one.end].split()).endswith(one.text)


def test_the_sentence_with_most_of_the_terms_comes_first_and_repeats_are_left_out() -> None:
    found = quotes(REPORT, worth("who pays for the repairs of the bridge"), 3)
    assert found[0].text == "The canton pays for the repairs of the bridge."
    assert not any("bridge's repairs" in one.text for one in found)


def test_a_literal_must_be_seen() -> None:
    found = best(REPORT, worth("bridge canton"), literals=["2.4 million"])
    assert found is not None and "2.4 million" in found.text


def test_a_turn_is_quoted_with_its_speaker() -> None:
    chat = "Ana: I went to Bern. I bought a red canoe there.\nBen: That sounds like a good trip."
    found = best(chat, worth("canoe"))
    assert found is not None and with_speaker(chat, found).text == "Ana: I bought a red canoe there."


def test_a_text_without_words_has_no_quotation() -> None:
    assert best("", {"bridge": 1.0}) is None
    assert best(" \n\n ", {}) is None


def test_headings_and_menus_come_after_statements() -> None:
    order = [one.text for one in quotes(REPORT, {}, 9)]
    assert order[0].startswith("The bridge at Olten")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Budget\n\nTotal: 460,250 euros. Links: [[Plan]], [[Harbour board]].", "Total: 460,250 euros."),
        ("总计：460250欧元。链接：[[预算]]", "总计：460250欧元。"), ("Page 12\n\n10:12 Chapter 3.\n\nContact", ""),
    ],
)  # fmt: skip
def test_a_figure_with_a_label_says_something_and_numbers_of_pages_do_not(text: str, shown: str) -> None:
    assert lead(text, 140, "Budget") == shown
