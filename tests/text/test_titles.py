"""Titles of topics from characteristic terms and names."""

from __future__ import annotations

from graphrag_mcp.text.titles import phrase, terms_of

SENTENCES = ["The takeover of the bank began.", "A bid for the bank followed.", "The takeover and the bid of a bank ended."]


def test_a_rare_name_of_common_words_is_no_title() -> None:
    """ "Bank Takeover Roundtable" stands once, its words everywhere."""
    rare = terms_of("Roundtable")
    weights = dict.fromkeys(terms_of("bank takeover bid"), 0.8) | dict.fromkeys(rare, 0.02)
    title = phrase(weights, ["Bank Takeover Roundtable"], SENTENCES)
    assert "Roundtable" not in title and "bid" in title.lower()
    weights |= dict.fromkeys(rare, 0.8)
    assert "Bank Takeover Roundtable" in phrase(weights, ["Bank Takeover Roundtable"], SENTENCES)
