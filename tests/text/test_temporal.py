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
    """298 of 424 are right; parts of months, halves, weeks of a year, centuries and vague numbers are not read."""
    score = Counter(judged(days(text, language), meant) for language, text, meant in SET["sentences"])
    assert sum(score.values()) == 424
    assert score["right"] >= 296 and score["wrong"] == 0 and score["invented"] <= 4, score


def test_a_heading_a_turn_or_a_line_that_is_a_date_says_from_when_words_below_it_count() -> None:
    right = 0
    for text, document, wanted in SET["below"]:
        found = expressions(text, anchors(text, document), day_first=dates.day_first(text))
        relative = [one for one in found if re.match("(?i)yesterday|today|昨天", text[one.char_start :])]
        right += [one.anchor for one in relative] == wanted
    assert right >= 21 and len(SET["below"]) == 23


@pytest.mark.parametrize(
    "text",
    """30 February 2024|February 30, 2024|31 April 2023|32 May 2024|2024-13-04|2024-02-30|13/13/2024|31.04.2024|2024年2月30日|2024年13月|5 to 3 May 2024|on 3/4/2024|3-4-2024
the financial year 2023|in tax year 2020|school year 2023/24|2023财年|2023年度|in 1500 BC|公元前1046年
the 5th century BC|read USA Today|闰四月初三|农历八月十五|they may 5 times|She will march 3 miles""".replace("\n", "|").split("|"),
)  # fmt: skip
def test_what_the_calendar_does_not_have_and_other_calendars_give_no_date(text: str) -> None:
    """Nor does a part of them: "February 2024" in "30 February 2024"."""
    assert days(text) == []


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
