"""index/report_extractive.py: titles are phrases of the texts, and empty sentences are not quoted."""

from __future__ import annotations

from graphrag_mcp.index.report_extractive import telling
from graphrag_mcp.text.prose import stands_alone, substance
from graphrag_mcp.text.titles import phrase

WEIGHTS = {"rates": 0.9, "rate": 1.0, "interest": 0.8, "yukos": 0.95, "raised": 0.3, "rais": 0.3}
SENTENCES = [
    "Interest rates were raised after Yukos went under.",
    "The bank raised interest rates again.",
    "Nobody expected interest rates of that kind.",
]


def test_a_title_says_words_as_they_are_written_and_words_beside_each_other_together() -> None:
    assert phrase(WEIGHTS, ["Yukos"], SENTENCES) == "Yukos and interest rates"
    assert phrase(WEIGHTS, [], SENTENCES[1:]) == "Interest rates"
    assert phrase({}, ["Yukos"], SENTENCES) == ""


def test_a_name_is_said_whole() -> None:
    assert (
        phrase({"dorothea": 1.0}, ["Dorothea Calloway"], ["Dorothea came."]) == "Dorothea Calloway"
    )


def test_a_chinese_title_is_made_of_names() -> None:
    assert (
        phrase({"铁路": 1.0, "广州": 0.6}, ["大莱龙铁路", "广州"], ["大莱龙铁路通车。"])
        == "广州、大莱龙铁路"
    )


def test_a_sentence_of_characteristic_terms_tells_more_and_a_figure_helps() -> None:
    assert telling("Yukos paid interest.", WEIGHTS) > telling("Yukos paid nothing.", WEIGHTS) > 0
    assert telling("Yukos paid 12.", WEIGHTS) > telling("Yukos paid up.", WEIGHTS)
    assert telling("It was late.", WEIGHTS) == 0


def test_greetings_tables_code_and_notices_have_little_substance() -> None:
    for text in (
        "Hi Anna, see you tomorrow.", "Thanks for the call.", "你好，大家。", "| 2008 | 2007 |",
        "LENGTH = timedelta(minutes=52)", "Copyright 2011, all rights reserved.", "See https://example.org for more.",
    ):  # fmt: skip
        assert substance(text) <= 0.1, text
    assert substance("The bank raised interest rates in May.") == 1.0
    assert substance("Can't wait for our next jam!") == 0.2


def test_lists_menus_and_entries_of_bibliographies_are_worth_less_than_sentences() -> None:
    for text in (
        "D. J. Bernstein, Proving primality in essentially quartic random time, Math.",
        "Smith, J. A. (2004). On the nature of things.",
        "Home About Contact News Weather Sport Travel",
        "Quill, M., Night watches of the northern harbours, vol. 3, 1911.",
    ):
        assert substance(text) <= 0.3, text
    assert substance("Warnings by the president and the secretary.") == 0.5  # no verb
    for text in (
        "The building was listed in 1972.",
        "Der Vertrag wurde am 3. Mai in Wien unterzeichnet.",
        "Le pont relie les deux rives de la rivière.",
        "公司于2003年在深圳成立。",
    ):
        assert substance(text) == stands_alone(text) == 1.0, text
    assert stands_alone("They moved it to May.") < 1.0
