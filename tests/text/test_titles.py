"""Titles of topics from characteristic terms and names."""

from __future__ import annotations

from graphrag_mcp.text.titles import Spread, apart, heading, phrase, telling, terms_of

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


def test_each_part_of_a_title_adds_documents_and_one_in_headings_is_worth_more() -> None:
    """The best three terms all stand in the same two documents of six."""
    weights = {"lathe": 1.0, "chisel": 0.95, "bandsaw": 0.9, "loom": 0.8, "kiln": 0.7}
    told = [{"lath", "chisel", "bandsaw"}] * 2 + [{"loom"}] * 2 + [{"kiln"}] * 2
    said = [f"The {word} of the town is old. They sold the {word}." for word in weights]
    alone = phrase(weights, [], said)
    assert alone == "Lathe, chisel and bandsaw"
    assert phrase(weights, [], said, spread=Spread([""] * 6, told, {})) == "Lathe, loom and kiln"
    headings = ["Old things"] * 4 + ["A kiln burns", "The kiln at night"]
    assert phrase(weights, [], said, spread=Spread(headings, told, {})).startswith("Kiln")
    named = {"Ida Holm": {0}, "Jon Berg": {1, 2, 3}}  # one document is not what six are about
    weights |= dict.fromkeys(("ida", "holm"), 1.0) | dict.fromkeys(("jon", "berg"), 0.5)
    assert phrase(weights, list(named), said, spread=Spread([""] * 6, told, named)).startswith("Jon Berg")


def test_words_in_a_row_of_several_headings_are_one_part_and_a_verb_ends_none() -> None:
    headings = ["Varde Announces Harbour Works", "Varde Announces Tide Tables", "Tide Tables for May", "New Tide Tables"]
    told = [{"varde", "announc"}, {"varde", "announc", "tide"}, {"tide"}, {"tide"}]
    weights = {"tide": 1.0, "tabl": 0.3, "varde": 0.9, "announc": 0.8}
    said = ["The tide is high.", "The harbour of Varde has a tide."]
    assert phrase(weights, ["Varde"], said, spread=Spread(headings, told, {"Varde": {0, 1}})) == "Varde and tide tables"


def test_the_title_of_a_document_stands_without_its_site_and_only_where_it_tells_of_the_topic() -> None:
    weights = {"pier": 1.0, "storm": 0.8, "人工": 1.0, "工智": 0.9, "智能": 0.8}
    assert heading(weights, "The pier after the storm | Varde Daily - News") == "The pier after the storm"
    assert heading(weights, "科技周刊（第 220 期）：人工智能的机会在哪里") == "人工智能的机会在哪里"
    assert heading(weights, "CHAPTER II.") == "" and heading(weights, "The pier") == ""
    assert len(heading(weights, "The pier after the storm " * 9)) <= 90


def test_pieces_that_several_titles_have_are_left_out_of_each() -> None:
    assert apart(["The pier | Varde Daily", "Storm: a night | Varde Daily"]) == ["The pier", "Storm: a night"]
    costs = "Costs of dredging | Site"  # of two documents
    assert apart([costs, costs, "Boats | Site", "Site"]) == ["Costs of dredging", "Costs of dredging", "Boats", "Site"]
    assert apart([costs, costs]) == [costs, costs]
    assert apart(["周刊（第 1 期）：港口", "周刊（第 2 期）：灯塔"]) == ["周刊（第 1 期）：港口", "周刊（第 2 期）：灯塔"]


def test_titles_that_together_say_most_are_chosen() -> None:
    weights = {"pier": 1.0, "storm": 0.9, "tide": 0.4, "tables": 0.3, "tabl": 0.3}
    titles = {"The pier in the storm": 1.0, "Pier and storm": 1.0, "Tide tables for May": 1.0, "Other matters": 1.0}
    assert telling(titles, weights) == ["Pier and storm", "Tide tables for May"]


def test_a_part_that_less_than_a_third_of_the_documents_hold_comes_behind_what_more_of_them_hold() -> None:
    weights = {"lathe": 1.0, "loom": 0.6, "kiln": 0.55}
    told = [{"lath", "lathe"}] * 2 + [{"loom"}] * 5 + [{"kiln"}] * 5
    said = [f"The {word} of the town is old. They sold the {word}." for word in weights]
    assert phrase(weights, [], said, spread=Spread([""] * 12, told, {})) == "Loom, kiln and lathe"
