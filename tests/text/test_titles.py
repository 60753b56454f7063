"""Titles: up to three names and words that set texts apart, in the spelling of the sentences."""

from __future__ import annotations

from graphrag_mcp.text.titles import joined, parts

WEIGHTS = {"rate": 1.0, "interest": 0.8, "yuko": 0.95, "yukos": 0.95, "rais": 0.3}
SENTENCES = ["Interest rates were raised after Yukos went under.", "The bank raised interest rates again."]


def test_names_come_before_words_and_words_stand_as_they_are_written() -> None:
    found = parts(WEIGHTS, ["Yukos"], SENTENCES)
    assert found[0] == "Yukos" and set(found) <= {"Yukos", "interest", "rates", "raised"}
    assert joined(found).startswith("Yukos")
    assert parts({}, ["Yukos"], SENTENCES) == [] and joined([]) == ""


def test_two_parts_do_not_say_the_same_and_nothing_that_is_known_is_said() -> None:
    weights = {"ferri": 1.0, "ferryman": 0.9, "harbour": 0.5}
    assert parts(weights, ["Ferry", "Ferryman"], ["The harbour of Ems."]) == ["Ferry", "harbour"]
    assert parts(weights, ["Ferry"], ["The harbour of Ems."], known="The ferries") == ["harbour"]


def test_a_chinese_title_is_made_of_names() -> None:
    assert joined(parts({"铁路": 1.0, "广州": 0.6}, ["大莱龙铁路", "广州"], ["大莱龙铁路通车。"])) in ("广州、大莱龙铁路", "大莱龙铁路、广州")
