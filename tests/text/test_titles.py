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


def test_parts_of_a_path_and_an_adverb_with_its_word_are_no_pair_of_words() -> None:
    weights = {"usr": 1.0, "includ": 0.9, "include": 0.9, "compiler": 0.5, "compil": 0.5}
    said = ["The compiler reads /usr/include here.", "The compiler needs /usr/include too."]
    assert "usr include" not in phrase(weights, [], said).lower()
    weights = dict.fromkeys(("incredibly", "incredibli", "important", "import", "bank"), 1.0)
    said = ["It is incredibly important for a bank.", "It was incredibly important for the bank."]
    assert "incredibly important" not in phrase(weights, [], said).lower()


def test_a_name_is_not_said_again_by_its_short_form() -> None:
    weights = dict.fromkeys(("deborah", "deb", "yoga"), 1.0)
    said = ["Deborah and Deb met for the yoga.", "Deb has the yoga in mind."]
    title = phrase(weights, ["Deborah", "Deb"], said)
    assert title == "Deborah and yoga"


def test_three_chinese_names_of_one_kind_are_called_by_the_kind() -> None:
    names = ["广茂铁路", "河茂铁路", "龙烟铁路", "上海"]
    weights = {"铁路": 1.0, "广茂": 0.9, "茂铁": 0.9, "上海": 0.8}
    said = ["广茂铁路通车。", "河茂铁路通车。", "龙烟铁路通车。"]
    assert phrase(weights, names, said) == "铁路、上海"
    assert phrase(weights, names[:2], said[:2]).startswith("广茂铁路")
