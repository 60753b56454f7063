"""What a sentence is worth as a quotation."""

from __future__ import annotations

import pytest

from graphrag_mcp.text.prose import eventful


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("I lost my job as a banker yesterday, so I started my own firm.", "Dancing has always been a source of joy and peace."),
        ("Evan: My son hurt his ankle at the match last Saturday.", "Sam: It is hard to see someone you love in pain."),
        ("We just moved to Lisbon with our two dogs.", "You should move to Lisbon with your two dogs."),
        ("我上周去了北京出差，见到了老同学。", "工作和生活的平衡对每个人都非常重要。"),
        ("Ich habe gestern mein altes Auto verkauft.", "Ein Auto kostet im Jahr mehr, als man denkt."),
    ],
)
def test_what_somebody_did_says_more_than_an_opinion_or_an_address(more: str, less: str) -> None:
    assert eventful(more) > 1.5 * eventful(less)


def test_a_statement_of_the_third_person_is_neither_raised_nor_lowered() -> None:
    assert eventful("The commission approved the plan in May 1942.") == 1.0
