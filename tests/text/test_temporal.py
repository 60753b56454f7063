"""Temporal expressions: a scored set of sentences with their days, and what holds for every text.

dated_sentences.json has `sentences` (language, or "" to be recognised; text; the days that it means
to a reader on 10 May 2023, a Wednesday, or ""), `below` (text, date of its document, the days from
which its relative expressions count) and `first_lines` (a first line, and the date of its document)."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.text import dates
from graphrag_mcp.text.temporal import Anchor, anchors, expressions

SET = json.loads(Path(__file__).with_name("dated_sentences.json").read_text("utf-8"))
SAID = [Anchor(0, date.fromisoformat(SET["said"]))]
Interval = tuple[date, date]


def days(text: str, language: str = "", said: list[Anchor] = SAID) -> list[Interval]:
    found = expressions(text, said, language)
    return [(date.fromisoformat(one.start), date.fromisoformat(one.end)) for one in found]


def judged(found: list[Interval], meant: str) -> str:
    """`right` within a day, `coarse` where the days that are meant are part of what was found."""
    if not meant:
        return "invented" if found else "right"
    if not found:
        return "nothing"
    first, last = date.fromisoformat(meant[:10]), date.fromisoformat(meant[-10:])
    near = [max(abs(start - first), abs(end - last)) <= timedelta(days=1) for start, end in found]
    if near == [True]:
        return "right"
    return "coarse" if any(start <= first and last <= end for start, end in found) else "wrong"


def test_sentences_of_five_languages_mean_their_days_and_hardly_one_an_invented_day() -> None:
    """296 of 422 are right; parts of months, halves, weeks of a year, centuries and vague numbers are not read."""
    score = Counter(judged(days(text, language), meant) for language, text, meant in SET["sentences"])
    assert sum(score.values()) == 422
    assert score["right"] >= 294 and score["wrong"] == 0 and score["invented"] <= 4, score


@pytest.mark.parametrize(
    ("language", "text"),
    [
        row[:2]
        for row in SET["sentences"]
        if re.search(r"^\D*(clos|geschlossen|fermé|cerrad|关)\D*$", row[1]) and not row[2]
    ],
)
def test_what_is_usual_on_a_weekday_means_no_day(language: str, text: str) -> None:
    assert days(text, language) == []


def test_a_heading_a_turn_or_a_line_that_is_a_date_says_from_when_words_below_it_count() -> None:
    right = 0
    for text, document, wanted in SET["below"]:
        found = expressions(text, anchors(text, document), day_first=dates.day_first(text))
        relative = [one for one in found if re.match("(?i)yesterday|today|昨天", text[one.char_start :])]
        right += [one.anchor for one in relative] == wanted
    assert right >= 21 and len(SET["below"]) == 23


def test_first_lines_date_their_document() -> None:
    text = "{}\n\nThe pier was closed and nobody came."
    right = [dates.in_head(text.format(line)) == day for line, day in SET["first_lines"]]
    assert sum(right) >= 33 and len(right) == 40


@pytest.mark.parametrize(
    "text",
    """30 February 2024|February 30, 2024|31 April 2023|32 May 2024|2024-13-04|2024-02-30|13/13/2024|31.04.2024|2024年2月30日|2024年13月|5 to 3 May 2024|on 3/4/2024|3-4-2024
the financial year 2023|in tax year 2020|school year 2023/24|2023财年|2023年度|in 1500 BC|公元前1046年
the 5th century BC|read USA Today|闰四月初三|农历八月十五|they may 5 times|She will march 3 miles""".replace("\n", "|").split("|"),
)  # fmt: skip
def test_what_the_calendar_does_not_have_and_other_calendars_give_no_date(text: str) -> None:
    """Nor does a part of them: "February 2024" in "30 February 2024"."""
    assert days(text) == []


@pytest.mark.parametrize(
    "text",
    """The Mars 2020 rover landed.|As Di Marco, 2019 shows|(Marco, 2019)|Julio, 2018|Garcia and Abril, 2019|The Mayo 2021 study
共1000到1200元|1200至1500人参加|1000到1200|In the spring, 1200 lambs were born|finit vers 1500 mètres|A bag of 1000-1200kg""".replace("\n", "|").split("|"),
)  # fmt: skip
def test_names_and_amounts_are_no_months_and_years_of_another_language(text: str) -> None:
    assert days(text) == []


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Il est venu à la ville en mars 2020.", "2020-03-01"),
        ("Nel maggio 2020 il consiglio ha deciso di non vendere la casa.", "2020-05-01"),
        ("The letter of 12 mars 2020 is lost.", "2020-03-12"),
        ("从1990年至1995年", "1990-01-01"),
    ],
)
def test_months_count_in_texts_of_their_language_and_beside_a_day_in_all(text: str, start: str) -> None:
    assert [str(first) for first, _ in days(text)] == [start]


def test_without_an_anchor_nothing_relative_is_resolved() -> None:
    text = "Yesterday, last May, on the 8th, two weeks ago, gestern, hier, ayer; and in 1868."
    assert days(text, said=[]) == [(date(1868, 1, 1), date(1868, 12, 31))]


def test_a_date_inside_a_sentence_or_of_an_event_is_no_anchor() -> None:
    for line in (
        "The mill that burnt on 3 March 1921 stood by the river until the flood came.",
        "On 31 July 1862 Atlanta sailed.",
        "Born: 10 December 1815",
        "Deadline: 2024-05-01",
        "liability at december 31 2006 | $2014 | $12.6 | $19.2",
    ):
        assert anchors(line) == [], line


def test_the_order_of_days_is_learned_from_dates_that_tell() -> None:
    assert (dates.day_first("31/12/2023"), dates.day_first("3/14/24")) == (True, False)
    assert dates.day_first("1/2/2024") is dates.day_first("31/12/2023 and 12/31/2023") is None


@settings(deadline=None)  # the first example compiles every form
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from("on last next in the may 2 31 2023 30 february friday weeks ago 年 月 日 三 上 周 vor zwei".split()),
        max_size=30,
    ).map(" ".join),
    st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)),
)
def test_no_date_is_invented(text: str, anchor: date | None) -> None:
    """Every interval has its words in the text and runs forward; without an anchor all are stated."""
    found = expressions(text, [Anchor(0, anchor)] if anchor else [])
    for one in found:
        assert text[one.char_start : one.char_end].strip()
        assert date.fromisoformat(one.start) <= date.fromisoformat(one.end)
        assert one.kind == "stated" or anchor
        if one.kind == "stated":
            assert re.search(r"\d|[〇一二三四五六七八九]", text[one.char_start : one.char_end])
    spans = [(one.char_start, one.char_end) for one in found]
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))


@settings(deadline=None)  # the first example compiles every form
@given(st.text("# >-*\n[]:2024-05 Ana yesterday", max_size=200), st.sampled_from(["", "2024-05-15"]))
def test_anchors_of_any_text_are_sorted(text: str, document: str) -> None:
    starts = [one.at for one in anchors(text, document)]
    assert starts == sorted(starts)


NARRATIVE = "By the autumn of 1968 she had filled eleven rolls. The twelfth was meant for the Narrows.\n\nThe ship waited. On the night of 10 November she lay in Kell Sound."


@pytest.mark.parametrize(
    ("text", "day"),
    [
        (NARRATIVE, ""),  # printed thirty years later
        ("The ship waited. On the night of 10 November she lay in Kell Sound.", "1998-11-10"),
    ],
)
def test_a_day_of_a_narrative_is_none_of_the_year_in_which_it_was_printed(text: str, day: str) -> None:
    found = expressions(text, anchors(text, "1998-11-11"))
    assert [one.start for one in found if one.kind == "resolved" and " 10 " in f" {text[one.char_start : one.char_end]} "] == [day][: bool(day)]


@pytest.mark.parametrize("text", ["La réunion a lieu mardi.", "Le musée est fermé lundi.", "The hall is locked on Sunday.", "La tienda está cerrada el domingo."])
def test_a_weekday_of_the_present_is_no_day(text: str) -> None:
    assert not expressions(text, anchors(text, "2024-05-15"))


def test_a_weekday_behind_a_french_participle_is_a_day_of_the_past() -> None:
    text = "Il a vendu la maison mardi."
    assert [one.start for one in expressions(text, anchors(text, "2024-05-15"))] == ["2024-05-14"]


@pytest.mark.parametrize(
    ("said", "text", "days_found"),
    [
        ("2021-08-22", "The canister was opened on 9 September by the museum.", ["2021-09-09"]),
        ("2005-02-03", "The chancellor said the vote, expected to fall on 5 May, gives a choice.", ["2005-05-05"]),
        ("2005-02-03", "He left the firm on 31 December.", ["2004-12-31"]),
        ("2004-12-20", "It will be launched on 1 January.", ["2005-01-01"]),
        ("2023-07-15", "The lease will end on 1 March.", []),
        ("2024-08-20", "I need the parts delivered to Lydd by 2 September.", ["2024-09-02"]),
    ],
)
def test_a_day_without_a_year_is_the_nearest_within_a_quarter(said: str, text: str, days_found: list[str]) -> None:
    assert [one.start for one in expressions(text, [Anchor(0, date.fromisoformat(said))])] == days_found


@pytest.mark.parametrize("day", [8, 10, 14])  # a Monday, a Wednesday and a Sunday of one week
def test_next_week_begins_on_monday_and_last_week_are_the_seven_days_before(day: int) -> None:
    said = [Anchor(0, date(2023, 5, day))]
    assert days("Next week we move in.", said=said) == [(date(2023, 5, 15), date(2023, 5, 21))]
    assert days("We moved in last week.", said=said) == [(date(2023, 5, day) - timedelta(7), date(2023, 5, day) - timedelta(1))]


def test_a_verb_tells_the_tense_of_its_own_clause_in_chinese() -> None:
    found = expressions("他星期一去了北京，星期五将去上海。", [Anchor(0, date(2024, 5, 15))])
    assert [when.start for when in found] == ["2024-05-13", "2024-05-17"]
    assert expressions("我们每天开会，星期五他去了上海。", [Anchor(0, date(2024, 5, 15))])[0].start == "2024-05-10"
