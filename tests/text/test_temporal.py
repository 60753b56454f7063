"""Temporal expressions: what they mean, against which day, and what is left unresolved."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_mcp.text import dates
from graphrag_mcp.text.temporal import anchors, expressions

ANCHOR = date(2023, 5, 10)  # a Wednesday


def meant(text: str, anchor: date | None = ANCHOR, language: str = "") -> list[str]:
    """Each expression as `words = start..end kind`, an interval of one day as that day."""
    found = expressions(text, [(0, anchor)] if anchor else [], language)
    return [
        f"{text[one.char_start : one.char_end]} = {one.start if one.start == one.end else f'{one.start}..{one.end}'}"
        for one in found
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We met yesterday and meet again tomorrow.", ["yesterday = 2023-05-09", "tomorrow = 2023-05-11"]),
        ("She left last Friday.", ["last Friday = 2023-05-05"]),
        ("He comes next Wednesday.", ["next Wednesday = 2023-05-17"]),
        ("This Wednesday it rains.", ["This Wednesday = 2023-05-10"]),
        ("It broke last week.", ["last week = 2023-05-03..2023-05-09"]),
        ("We sailed last weekend.", ["last weekend = 2023-05-06..2023-05-07"]),
        ("They moved last month.", ["last month = 2023-04-01..2023-04-30"]),
        ("It opened two years ago.", ["two years ago = 2021-01-01..2021-12-31"]),
        ("It opened three days ago.", ["three days ago = 2023-05-07"]),
        ("I have lived here for three years now.", ["for three years now = 2020-01-01..2023-05-10"]),
        ("It all began in August last year.", ["August last year = 2022-08-01..2022-08-31"]),
        ("It was built in 1868.", ["in 1868 = 1868-01-01..1868-12-31"]),
        ("The fair of late May 2021 was wet.", ["late May 2021 = 2021-05-21..2021-05-31"]),
        ("On 29 February 2024 we met.", ["On 29 February 2024 = 2024-02-29"]),
        ("The letter of May 7th, 2019 says so.", ["May 7th, 2019 = 2019-05-07"]),
        ("See 2019-05-07 and 25/12/2019.", ["2019-05-07 = 2019-05-07", "25/12/2019 = 2019-12-25"]),
        ("I met them on the 8th.", ["on the 8th = 2023-05-08"]),
        ("We met on Monday.", ["on Monday = 2023-05-08"]),
        ("We will meet on Monday.", ["on Monday = 2023-05-15"]),
        ("Jazz of the 1920s", ["the 1920s = 1920-01-01..1929-12-31"]),
        ("The war of 1939-1945", ["1939-1945 = 1939-01-01..1945-12-31"]),
        ("Call 1939-2500 or 2001-1999", []),
        ("Wir trafen uns gestern, am 3. März 2021 und vor zwei Wochen.",
         ["gestern = 2023-05-09", "am 3. März 2021 = 2021-03-03", "vor zwei Wochen = 2023-04-23..2023-04-29"]),
        ("Die Brücke wurde letzten Freitag gesperrt.", ["letzten Freitag = 2023-05-05"]),
        ("Le pont a été fermé hier, puis il y a trois jours le vendredi dernier.",
         ["hier = 2023-05-09", "il y a trois jours = 2023-05-07", "le vendredi dernier = 2023-05-05"]),
        ("El puente fue cerrado ayer y el 3 de marzo de 2021.", ["ayer = 2023-05-09", "el 3 de marzo de 2021 = 2021-03-03"]),
        ("La semana pasada llovió y no hubo clases.", ["La semana pasada = 2023-05-01..2023-05-07"]),
        ("会议定于2023年5月7日举行。", ["2023年5月7日 = 2023-05-07"]),
        ("他昨天来了，上个月也来过。", ["昨天 = 2023-05-09", "上个月 = 2023-04-01..2023-04-30"]),
        ("上周五下雨，下周一开会。", ["上周五 = 2023-05-05", "下周一 = 2023-05-15"]),
        ("去年三月开工，三年前获批。", ["去年三月 = 2022-03-01..2022-03-31", "三年前 = 2020-01-01..2020-12-31"]),
        ("二〇一八年十月九日，渡轮晚了一天。", ["二〇一八年十月九日 = 2018-10-09"]),
        ("民国二十五年", ["民国二十五年 = 1936-01-01..1936-12-31"]),
        ("民国25年开凿", ["民国25年 = 1936-01-01..1936-12-31"]),
    ],
)  # fmt: skip
def test_expressions_mean_days(text: str, expected: list[str]) -> None:
    assert meant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It arrived on 03/04/2024.",
        "Fiscal 2024 was good, and in FY 2023 too.",
        "版本 2024.1.2.3",
        "农历八月十五",
        "He may come in March formation.",
        "There were 1950 people and 2001 sheep.",
        "See you soon, one day.",
        "on 31 February 2020",
        "Call me at 555-2020.",
        "in 2000% of cases",
    ],
)
def test_what_could_mean_something_else_is_left_out(text: str) -> None:
    assert meant(text, anchor=None) == []
    assert [one for one in meant(text) if "2024" in one or "2020" in one or "2000" in one] == []


def test_years_that_are_counted_back_or_told_are_not_ahead() -> None:
    assert meant("It was the worst storm in 40 years.") == []
    assert meant("It feels like just yesterday that we met.") == meant("Rome wasn't built in a day, you know.") == []
    assert len(meant("Just yesterday we met at the pier.")) == 1
    assert meant("In the following decade and the following week the town grew.") == []
    assert len(meant("She will retire in 2 years.")) == len(meant("I am off to Rome in two weeks!")) == 1


def test_next_friday_said_on_a_friday_is_a_week_later() -> None:
    assert meant("We meet next Friday.", date(2023, 5, 12)) == ["next Friday = 2023-05-19"]
    assert meant("We met last Friday.", date(2023, 5, 12)) == ["last Friday = 2023-05-05"]


def test_without_an_anchor_nothing_relative_is_resolved() -> None:
    text = "Yesterday, last May, on the 8th, two weeks ago, gestern, hier, ayer; and in 1868."
    assert meant(text, anchor=None) == ["in 1868 = 1868-01-01..1868-12-31"]


def test_a_heading_or_turn_with_a_date_is_the_anchor_of_what_stands_below_it() -> None:
    text = (
        "# Notes\nYesterday it rained.\n\n## 2023-05-10\nYesterday we sailed.\n\n"
        "[12 June 2023, 10:15] Ada: I came home yesterday.\n2023年7月1日\n昨天很热。\n"
    )
    days = anchors(text)
    assert [one.day.isoformat() for one in days if one.day] == ["2023-05-10", "2023-06-12", "2023-07-01"]
    resolved = [one.start for one in expressions(text, days) if one.kind == "resolved"]
    assert resolved == ["2023-05-09", "2023-06-11", "2023-06-30"]
    assert anchors(text, "2020-01-02")[0][:2] == (0, date(2020, 1, 2))


def test_a_date_inside_a_sentence_is_no_anchor() -> None:
    assert anchors("The mill that burnt on 3 March 1921 stood by the river until the flood came.\n") == []


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from("on last next in the may 2 31 2023 30 february friday weeks ago 年 月 日 三 上 周 vor zwei".split()),
        max_size=30,
    ).map(" ".join),
    st.none() | st.dates(date(1, 1, 1), date(9999, 12, 31)),
)
def test_no_date_is_invented(text: str, anchor: date | None) -> None:
    """Every interval has its words in the text and runs forward; without an anchor all of them are stated."""
    found = expressions(text, [(0, anchor)] if anchor else [])
    for one in found:
        assert text[one.char_start : one.char_end].strip()
        assert date.fromisoformat(one.start) <= date.fromisoformat(one.end)
        assert one.kind == "stated" or anchor
        if one.kind == "stated":
            assert re.search(r"\d|[〇一二三四五六七八九]", text[one.char_start : one.char_end])
    spans = [(one.char_start, one.char_end) for one in found]
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))


@pytest.mark.parametrize(
    "line",
    [
        "[2023-05-25 10:12] Marta: we went there yesterday, a long way to the north of the town, and came back late.",
        "25.05.2023, 10:12 - Marta: we went there yesterday, a long way to the north of the town, and came back late.",
        "Marta (25 May 2023, 10:12): we went there yesterday, a long way to the north of the town, and came back late.",
        "Date: Thu, 25 May 2023 10:12:00 +0200",
        "## 25. Mai 2023 Protokoll der Sitzung",
    ],
)
def test_heads_of_turns_and_dated_headings_are_anchors(line: str) -> None:
    assert [one[:2] for one in anchors(line)] == [(0, date(2023, 5, 25))]


@pytest.mark.parametrize(
    "line",
    [
        "Carl Philipp Emanuel Bach (8 March 1714), also formerly spelled Karl Philipp Emanuel, was a German composer of the time.",
        "On 31 July 1862, under the command of Charles McBlair, Atlanta conducted her sea trials, and they went badly enough.",
        "On 31 July 1862 Atlanta sailed.",
        "Born: 10 December 1815",
        "Deadline: 2024-05-01",
        "liability at december 31 2006 | $2014 | $12.6 | $19.2",
    ],
)
def test_the_day_of_an_event_is_no_anchor(line: str) -> None:
    assert anchors(line) == []


def test_next_friday_on_a_friday_leap_days_clocks_and_years_before_1900() -> None:
    friday = date(2024, 3, 1)
    assert meant("We meet next Friday.", friday) == ["next Friday = 2024-03-08"]
    assert meant("We met last Friday.", friday) == ["last Friday = 2024-02-23"]
    assert meant("It broke yesterday at 23:30 UTC.", friday) == ["yesterday = 2024-02-29"]
    assert meant("It ended on 29 February 2023.") == []
    assert meant("It opened on 3 May 1789.", None) == ["on 3 May 1789 = 1789-05-03"]
    assert meant("Revenue of fiscal year 2023 grew; FY2024 follows.", friday) == []
    assert meant("It came on 3/4/2024.", friday) == []
    assert meant("我们农历正月初五见面。", friday) == []


SPANS = """
3 to 5 May 2024 = 2024-05-03..2024-05-05|from 3-5 May 2024 = 2024-05-03..2024-05-05|May 3 to 5, 2024 = 2024-05-03..2024-05-05
between 3 and 5 May 2024 = 2024-05-03..2024-05-05|from May to July 2023 = 2023-05-01..2023-07-31|May–July 2023 = 2023-05-01..2023-07-31
28 April to 3 May 2024 = 2024-04-28..2024-05-03|28 December to 3 January 2024 = 2023-12-28..2024-01-03
28 April 2024 to 3 May 2024 = 2024-04-28..2024-05-03|December 2023 until January 2024 = 2023-12-01..2024-01-31
Q3 2024 = 2024-07-01..2024-09-30|the third quarter of 2024 = 2024-07-01..2024-09-30|2024 Q3 = 2024-07-01..2024-09-30
winter 2023/24 = 2023-12-01..2024-02-29|2024 March 4 = 2024-03-04|the past three months = 2023-02-01..2023-05-10|Friday next week = 2023-05-19
vom 3. bis 5. Mai 2024 = 2024-05-03..2024-05-05|von Mai bis Juli 2023 = 2023-05-01..2023-07-31|im dritten Quartal 2024 = 2024-07-01..2024-09-30
vom 28. April bis zum 3. Mai 2024 = 2024-04-28..2024-05-03|du 3 au 5 mai 2024 = 2024-05-03..2024-05-05
de mai à juillet 2023 = 2023-05-01..2023-07-31|au 3e trimestre 2024 = 2024-07-01..2024-09-30
del 3 al 5 de mayo de 2024 = 2024-05-03..2024-05-05|de mayo a julio de 2023 = 2023-05-01..2023-07-31
en el tercer trimestre de 2024 = 2024-07-01..2024-09-30|2024年第三季度 = 2024-07-01..2024-09-30
2024年5月3日至5日 = 2024-05-03..2024-05-05|2023年5月至7月 = 2023-05-01..2023-07-31|2024年4月28日到5月3日 = 2024-04-28..2024-05-03
下下周五 = 2023-05-26|上上个月 = 2023-03-01..2023-03-31|大前年 = 2020-01-01..2020-12-31|二十年前 = 2003-01-01..2003-12-31|十五天后 = 2023-05-25
"""


def _language(text: str) -> str:
    known = {"de": ("Mai", "Quartal"), "fr": ("mai", "trimestre 2"), "es": (" de 20",)}
    return next((name for name, words in known.items() if any(one in text for one in words)), "")


@pytest.mark.parametrize("row", [row for line in SPANS.split("\n") for row in line.split("|") if row])
def test_spans_quarters_and_far_relative_words(row: str) -> None:
    said, _, days = row.rpartition(" = ")
    assert meant(said, language=_language(said))[0].rpartition(" = ")[2] == days


@pytest.mark.parametrize(
    "text",
    """30 February 2024|February 30, 2024|31 April 2023|32 May 2024|2024-13-04|2024-02-30|13/13/2024|31.04.2024|30. Februar 2024|32. Mai 2024
30 février 2024|30 de febrero de 2024|2024年2月30日|2024年13月|13月5日|2024年2月32日|5 to 3 May 2024|on 3/4/2024|3-4-2024|February 29
the financial year 2023|in tax year 2020|school year 2023/24|in 2023/24|Q3 of fiscal 2024|Wirtschaftsjahr 2023|exercice 2023|2023财年|2023年度
in 1500 BC|im Jahre 1500 v. Chr.|en 1500 a. C.|公元前1046年|in 1500 metres|from 1130 to 1215 GMT|of 1200 people|from 1500 to 2000 people|nach 2000 Metern|à 1500 mètres|a 2000 metros
twenty five years ago|2.5 weeks ago|一百年前|2000年前|两千年前|闰四月初三|在五月初五|腊月二十三|农历八月十五|大年初一
Q3 was bad|in the third quarter|between May and July|the last century|上世纪|上半年|第一季度
H1 FY2024|first half of fiscal 2024|année scolaire 2023-2024|the 5th century BC|the 3rd century B.C.|im 5. Jahrhundert v. Chr.|au Ve siècle av. J.-C.|siglo V a. C.|公元前3世纪|前5世纪
from 2000 to 3000 rpm|in 2019 pieces|they may 5 times|she will march 3 miles|read USA Today|hoy en día|前天津市长|后天性疾病|前日本首相|明天启三年|下周期|上周期|本月薪|本年度|今年度
the last week of the war|la dernière semaine de la guerre|la última semana de la guerra|letzte Woche des Krieges|正月初一|腊月廿九|冬月二十|大年三十|光绪二十四年|去年2月29日|29. Februar 2023|2023年2月29日""".replace("\n", "|").split("|"),
)  # fmt: skip
def test_impossible_fiscal_lunar_and_counted_words_give_no_date(text: str) -> None:
    """Nor does a part of them: "February 2024" in "30. Februar 2024"."""
    assert meant(text, language=_language(text)) == []


HALVES = """
H1 2024 = 2024-01-01..2024-06-30|2024 H2 = 2024-07-01..2024-12-31|the first half of 2024 = 2024-01-01..2024-06-30|the 2nd half of 2023 = 2023-07-01..2023-12-31
the 19th century = 1801-01-01..1900-12-31|the late nineteenth century = 1867-09-01..1900-12-31|18th and 19th centuries = 1701-01-01..1900-12-31
from the 16th to the 18th century = 1501-01-01..1800-12-31|21st-century skills = 2001-01-01..2100-12-31|the second half of the 18th century = 1751-01-01..1800-12-31
erstes Halbjahr 2024 = 2024-01-01..2024-06-30|im zweiten Halbjahr 2023 = 2023-07-01..2023-12-31|Ende des 19. Jahrhunderts = 1867-09-01..1900-12-31|vom 16. bis 18. Jahrhundert = 1501-01-01..1800-12-31
au premier semestre 2024 = 2024-01-01..2024-06-30|au XIXe siècle = 1801-01-01..1900-12-31|du XVIe au XVIIIe siècle = 1501-01-01..1800-12-31|la seconde moitié du XVIIIe siècle = 1751-01-01..1800-12-31
primer semestre de 2024 = 2024-01-01..2024-06-30|a finales del siglo XIX = 1867-09-01..1900-12-31|siglos XVIII y XIX = 1701-01-01..1900-12-31
2024年上半年 = 2024-01-01..2024-06-30|去年下半年 = 2022-07-01..2022-12-31|今年一季度 = 2023-01-01..2023-03-31|19世纪 = 1801-01-01..1900-12-31|十九世纪末 = 1867-09-01..1900-12-31
十八世纪上半叶 = 1701-01-01..1750-12-31|17至18世纪 = 1601-01-01..1800-12-31|20世纪80年代 = 1980-01-01..1989-12-31|1980年代 = 1980-01-01..1989-12-31
the week of 4 March 2024 = 2024-03-04..2024-03-10|week of May 7, 2024 = 2024-05-06..2024-05-12|fiscal year ending 30 June 2024 = 2024-06-30|on may 5 = 2023-05-05
大前天 = 2023-05-07|大后天 = 2023-05-13|下下周 = 2023-05-22..2023-05-28|上上周日 = 2023-04-30|in 1066 = 1066-01-01..1066-12-31|1898年 = 1898-01-01..1898-12-31
"""


@pytest.mark.parametrize("row", [row for line in HALVES.split("\n") for row in line.split("|") if row])
def test_half_years_centuries_and_words_beside_them(row: str) -> None:
    said, _, days = row.rpartition(" = ")
    known = {"de": "Halbjahr Jahrhundert", "es": "siglo siglos primer"}
    known["fr"] = "siècle semestre"
    language = next((name for name, words in known.items() if any(one in words.split() for one in re.findall(r"\w+?(?=s?\b)", said))), "")
    assert [one.rpartition(" = ")[2] for one in meant(said, language=language)] == [days]


def test_a_month_or_day_that_is_now_is_not_the_last_one_and_not_two_days() -> None:
    friday = date(2024, 3, 1)
    assert meant("We met last March.", friday) == ["last March = 2023-03-01..2023-03-31"]
    assert meant("Im letzten März war es kalt.", friday) == ["Im letzten März = 2023-03-01..2023-03-31"]
    assert meant("We will meet on Friday.", friday) == []  # today or in a week
    assert meant("We met on Friday.", friday) == ["on Friday = 2024-03-01"]  # a report of that day
    assert meant("I won on Monday, and you slept on Tuesday.", friday) == ["on Monday = 2024-02-26", "on Tuesday = 2024-02-27"]
    assert meant("It broke in the last week of May 2024.", friday) == ["May 2024 = 2024-05-01..2024-05-31"]
    assert meant("At 00:30 on 2024-03-01T00:30+14:00 it began, and at 1900 hours it ended.", friday) == ["2024-03-01 = 2024-03-01"]


def test_words_that_only_hold_letters_of_another_calendar_do_not_hide_a_date() -> None:
    assert meant("They will modify it on 3 May 2024.") == ["on 3 May 2024 = 2024-05-03"]
    assert meant("We sold 300 units in 2020 and 2000 units by 2021.") == ["in 2020 = 2020-01-01..2020-12-31", "by 2021 = 2021-01-01..2021-12-31"]

# language|text|days, by the reader's own calendar, from Wednesday 10 May 2023
READ = """
en|We met at 5 pm on 8 May.|2023-05-08
en|The train left at 23:59 on 31 December 2022.|2022-12-31
en|It began on 2024-02-29T23:30:00-08:00.|2024-02-29
en|It began on 2024-02-29T23:30:00Z and ended at 0:15.|2024-02-29
en|At 10:30 a.m. yesterday the bell rang.|2023-05-09
en|Call me at 1900 hours.|
en|It ended on 29 February 2023.|
en|It ended on 29 February 1900.|
en|It ended on 29 February 2000.|2000-02-29
en|On Feb. 29, 2024 she turned 30.|2024-02-29
en|Revenue of fiscal 2023 grew.|
en|In FY23 we grew.|
en|In the fiscal year ended September 30, 2023 we grew.|2023-09-30
en|It came on 3/4/2024.|
en|It came on 13/4/2024.|2024-04-13
en|It came on 4/13/2024.|2024-04-13
en|It came on 4/4/2024.|2024-04-04
en|We meet next Wednesday.|2023-05-17
en|We met last Wednesday.|2023-05-03
en|We meet this Friday.|2023-05-12
en|We will meet on Wednesday.|
en|The mayor resigned on Wednesday.|2023-05-10
en|The mayor resigned on Tuesday.|2023-05-09
en|He was born on 3 May 1789.|1789-05-03
en|The king died in 1066.|1066..1066
en|The war of 1618-1648|1618..1648
en|In the 1890s it grew.|1890..1899
en|It was the third fire in two months.|
en|She finished the book in two days.|
en|We will be back in two weeks.|2023-05-21..2023-05-27
en|In 1943 she married, and in July she moved.|1943..1943
en|The raid of late July 1943 failed.|1943-07-21..1943-07-31
en|the day before yesterday|2023-05-08
en|three weeks ago|2023-04-16..2023-04-22
en|I saw her the other day.|
en|They arrived at noon, May 3.|2023-05-03
en|Open 24/7, rated 4.5/5 in 2/3 of cases.|
de|Wir treffen uns nächsten Mittwoch.|2023-05-17
de|Letzten Mittwoch regnete es.|2023-05-03
de|Die Sitzung vom 29.02.2024 um 14:30 Uhr war kurz.|2024-02-29
de|Die Sitzung vom 29.02.2023 war kurz.|
de|Im Geschäftsjahr 2023 stieg der Umsatz.|
de|Am 3. Mai 1789 begann es.|1789-05-03
de|Es war der dritte Brand in zwei Monaten.|
de|Er kommt in zwei Wochen.|2023-05-21..2023-05-27
de|Vorgestern um 8 Uhr rief sie an.|2023-05-08
de|Übermorgen ist Markt.|2023-05-12
de|Anfang Mai 1945 endete der Krieg.|1945-05-01..1945-05-11
fr|Rendez-vous mercredi prochain.|2023-05-17
fr|Il est parti mercredi dernier.|2023-05-03
fr|Le 29 février 2024 à 14h30, il neigea.|2024-02-29
fr|Le 29 février 2023, il neigea.|
fr|L'exercice 2023 fut bon.|
fr|La prise de la Bastille eut lieu le 14 juillet 1789.|1789-07-14
fr|Elle revient dans deux semaines.|2023-05-21..2023-05-27
fr|Avant-hier, il a plu.|2023-05-08
fr|Le 1er mai 2023 était férié.|2023-05-01
fr|Il y a dix ans, il vivait ici.|2013..2013
es|Nos vemos el próximo miércoles.|2023-05-17
es|Se fue el miércoles pasado.|2023-05-03
es|El 29 de febrero de 2024 a las 14:30 llovió.|2024-02-29
es|El 29 de febrero de 2023 llovió.|
es|El ejercicio 2023 fue bueno.|
es|Nació el 3 de mayo de 1789.|1789-05-03
es|Volverá dentro de dos semanas.|2023-05-21..2023-05-27
es|Fue la tercera en dos meses.|
es|Anteayer llovió.|2023-05-08
es|Hace diez años vivía aquí.|2013..2013
es|El 1 de mayo de 2023 fue fiesta.|2023-05-01
zh|我们下周三见面。|2023-05-17
zh|上周三下雨了。|2023-05-03
zh|本周五开会。|2023-05-12
zh|2024年2月29日14点30分开始。|2024-02-29
zh|2023年2月29日|
zh|2023财年收入增长。|
zh|农历五月初五是端午节。|
zh|腊月二十三祭灶。|
zh|闰四月初三出生。|
zh|前天下午三点他来了。|2023-05-08
zh|后天出发。|2023-05-12
zh|十年前他住在这里。|2013..2013
zh|前年冬天很冷。|2021-12-01..2022-02-28
zh|光绪二十四年变法。|
zh|1898年6月11日变法开始。|1898-06-11
zh|民国三十八年十月一日成立。|1949-10-01
zh|两周后回来。|2023-05-21..2023-05-27
zh|上个月底他辞职了。|2023-04-21..2023-04-30
zh|今年年初开工。|2023-01-01..2023-05-02
zh|这个周末去爬山。|2023-05-13..2023-05-14
zh|公元前221年统一。|
zh|半年前他走了。|2022-11-01..2022-11-30
en|I was up at 2 a.m. this morning.|2023-05-10
en|The store opens on the 31st.|
en|Meeting moved to 3 pm PST on May 12, 2023.|2023-05-12
en|Easter 1916|
en|on the eve of 1 January 1900|1900-01-01
en|mid-March 2020|2020-03-11..2020-03-21
en|the summer of 1914|1914-06-01..1914-08-31
en|last summer|2022-06-01..2022-08-31
en|In December we moved.|2022-12-01..2022-12-31
en|We fly home in December.|
en|Tuesday of last week|2023-05-02
en|Chapter 12, May 2023 edition|2023-05-01..2023-05-31
en|He may 3 times try.|
zh|今年中国队赢了。|2023..2023
de|Wir treffen uns im Juni wieder.|2023-06-01..2023-06-30
de|Im Dezember fliegen wir nach Hause, das ist gebucht.|
de|Im Dezember war ich in Wien.|2022-12-01..2022-12-31
de|Im Dezember haben wir das Haus gekauft.|2022-12-01..2022-12-31
de|Der Zug kam um 1830 Uhr an.|
de|Das Haus wurde in zwei Wochen gebaut.|
fr|On se retrouve en juin.|2023-06-01..2023-06-30
fr|En décembre nous partons chez ma mère.|
fr|Il est arrivé en décembre.|2022-12-01..2022-12-31
fr|Il était parti, il revient dans deux semaines.|2023-05-21..2023-05-27
es|La tienda está cerrada hasta agosto.|2023-08-01..2023-08-31
es|En diciembre volamos a casa.|
es|En diciembre estuve en Viena.|2022-12-01..2022-12-31
zh|店铺到八月都关门。|2023-08-01..2023-08-31
zh|他在十二月回家。|
zh|我在十二月去了维也纳。|2022-12-01..2022-12-31
zh|2023年春节下雪。|2023..2023
zh|去年春节我们在家。|2022..2022
zh|2008年中国举办奥运会。|2008..2008
zh|2024年中秋节放假。|2024..2024
zh|去年的今天下雪。|2022-05-10
zh|两周后开会。农历三月初三休息。|2023-05-21..2023-05-27
zh|2024年第12周开会。|2024-03-18..2024-03-24
en|A week from tomorrow I leave.|2023-05-18
en|We met a year ago today.|2022-05-10
en|Two weeks from Friday it opens.|2023-05-26
en|He came half a year ago.|2022-11-01..2022-11-30
en|It ships in week 34 of 2023.|2023-08-21..2023-08-27
en|See 2023-W34.|2023-08-21..2023-08-27
en|In week 34 she rested.|
de|Die Lieferung kommt in KW 20.|2023-05-15..2023-05-21
de|Sie kam in KW52 an.|2022-12-26..2023-01-01
de|In der Kalenderwoche 3/2023 war frei.|2023-01-16..2023-01-22
de|KW 53 2021|
fr|La semaine 12 de 2024 est chargée.|2024-03-18..2024-03-24
es|La semana 12 de 2024 es larga.|2024-03-18..2024-03-24
en|Jazz came later than the 1800s.|1800..1899
en|Version 2023.5.1 is out, and v2023.5.2 follows.|
en|He fell in 44 BC and it was built in 1868.|1868..1868
"""


@pytest.mark.parametrize("row", READ.strip().split("\n"))
def test_clocks_zones_leap_days_fiscal_years_and_words_of_five_languages(row: str) -> None:
    language, text, days = row.split("|")
    first, _, last = days.partition("..")
    years = len(first) == 4
    expected = [(f"{first}-01-01", f"{last}-12-31") if years else (first, last or first)] if days else []
    assert [(one.start, one.end) for one in expressions(text, [(0, ANCHOR)], language)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The minister resigned on Monday.", ["on Monday = 2023-05-08"]),  # a report of that Monday
        ("It was the third fire in two months.", []),
        ("They struck twice in two weeks.", []),
        ("Es war der dritte Brand in zwei Monaten.", []),
        ("In 1943 she married, and in July she moved.", ["In 1943 = 1943-01-01..1943-12-31"]),
        ("He left on 3 May, in late July (1941) he was back.", []),
        ("In 2023 she married, and in April she moved.", ["In 2023 = 2023-01-01..2023-12-31", "in April = 2023-04-01..2023-04-30"]),
    ],
)  # fmt: skip
def test_a_day_or_month_of_a_report_is_that_of_its_words(text: str, expected: list[str]) -> None:
    assert meant(text, date(2023, 5, 8)) == expected


# ---- names, titles, numbers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    """a song by June Carter|the house of April Jones|a book by May Smith|by August Strindberg|Abschnitt 12.5.2024|see section 3.2.2024|§ 12.5.2024|Kapitel 1.2.2023
Version 12.5.2024|v3.5.2024|release 1.2.2023|Nr. 3.4.2019|they sang "Yesterday" again|“Tomorrow” was shown|《明天》很好看|「明天」是歌名|《2012年》上映|Der Film „Gestern“ läuft
la chanson « Hier »|they heard Yesterday on the radio|he was on the BBC's Today programme|童年中|在周末（周六、日）每日开行|boil the eggs at the weekend, you will need them""".replace("\n", "|").split("|"),
)  # fmt: skip
def test_names_titles_and_numbers_of_sections_and_versions_are_no_dates(text: str) -> None:
    assert meant(text, language="de" if "Film" in text else "fr" if "chanson" in text else "") == []
    assert anchors(text) == []


def test_what_is_said_in_quotation_marks_and_what_only_looks_like_a_name_is_read() -> None:
    assert meant('"I came yesterday," she said.') == ["yesterday = 2023-05-09"]
    assert meant("She said: “We leave tomorrow.”") == ["tomorrow = 2023-05-11"]
    assert meant("In April Jones resigned.") == ["In April = 2023-04-01..2023-04-30"]
    assert meant("Fassung vom 12.5.2024") == ["12.5.2024 = 2024-05-12"]
    assert meant('"2024-05-01"') == ["2024-05-01 = 2024-05-01"]


# ---- turns and headings -----------------------------------------------------------------------------


def said(text: str, document: str = "") -> list[str]:
    """Each expression with the day from which it counts."""
    return [f"{text[one.char_start : one.char_end]} {one.anchor}".strip() for one in expressions(text, anchors(text, document), day_first=dates.day_first(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[31/12/2023, 10:00] Ana: We sailed yesterday.\n[01/02/2024, 11:00] Ben: We rowed yesterday, and on 3/4/2024 too.",
         ["yesterday 2023-12-31", "yesterday 2024-02-01", "3/4/2024"]),
        ("[12/31/2023] Ana: We sailed yesterday.\n[01/02/2024] Ben: We rowed yesterday.", ["yesterday 2023-12-31", "yesterday 2024-01-02"]),
        ("[2023-05-10] Ana: We sailed yesterday.\n[01/02/2024] Ben: We rowed yesterday.", ["yesterday 2023-05-10"]),
        ("[3/14/24, 9:15 AM] Ana: I left yesterday.", ["yesterday 2024-03-14"]),
        ("14.03.24, 10:12 - Ana: I left yesterday.", ["yesterday 2024-03-14"]),
        ("## [1.2.24]\nWe fixed it yesterday.", []),
        ("[2023-05-25] Marta: we went there yesterday with the whole family", ["yesterday 2023-05-25"]),
        ("2024-05-03, the day of the storm, was long, and yesterday it was over, said the keeper of the light.", ["2024-05-03"]),
        ("12.05.2024 wurde das Haus verkauft, und gestern war der Notar da, der sehr lange sprach und dann ging.", ["12.05.2024"]),
        ("The council of 3 May 2024 decided: the pier is closed since yesterday, and so on, and so on, and so on.", ["of 3 May 2024"]),
        ("We met Anna 3 May 2024\nand yesterday we left.", ["3 May 2024"]),
        ("- Kickoff 3 May 2024\n- Yesterday was fun\n", ["3 May 2024"]),
        ("# Notes\n## 2023-05-10\nIt rained yesterday.\n### Boats\nWe sailed yesterday.\n## Plans\nWe slept yesterday.", ["yesterday 2023-05-10", "yesterday 2023-05-10"]),
        ("## 2023-05-10\n```\n# a comment\n```\nIt rained yesterday.\n# Plans\nWe slept yesterday.", ["yesterday 2023-05-10", "yesterday 2024-01-02"]),
    ],
)  # fmt: skip
def test_a_turn_has_its_own_day_and_a_heading_holds_for_what_is_below_it(text: str, expected: list[str]) -> None:
    found = said(text, "2024-01-02" if "```" in text else "")
    assert [one.replace("of 3 May", "3 May") for one in found] == [one.replace("of 3 May", "3 May") for one in expected]


def test_the_order_of_days_is_learned_from_dates_that_tell() -> None:
    assert (dates.day_first("31/12/2023"), dates.day_first("3/14/24"), dates.day_first("1/2/2024")) == (True, False, None)
    assert dates.day_first("31/12/2023 and 12/31/2023") is None
    assert meant("It came on 3/4/2024.") == []


@pytest.mark.parametrize(
    ("text", "anchor", "expected"),
    [
        ("Early next week we move.", date(2023, 5, 12), "2023-05-15..2023-05-17 approximate"),
        ("about a year ago", ANCHOR, "2022-03-01..2022-07-31 approximate"),
        ("a few years ago", ANCHOR, "2019-01-01..2021-12-31 approximate"),
        ("vor etwa drei Jahren", ANCHOR, "2020-01-01..2020-12-31 approximate"),
        ("a year ago today", ANCHOR, "2022-05-10..2022-05-10 resolved"),
        ("am Dienstag in einer Woche", ANCHOR, "2023-05-23..2023-05-23 resolved"),
        ("Dans quinze jours", ANCHOR, "2023-05-24..2023-05-24 resolved"),
        ("Antier llovió", ANCHOR, "2023-05-08..2023-05-08 resolved"),
        ("半个月前", ANCHOR, "2023-04-24..2023-04-26 resolved"),
        ("去年今日", ANCHOR, "2022-05-10..2022-05-10 resolved"),
    ],
)  # fmt: skip
def test_near_and_far_days_and_what_is_said_roughly(text: str, anchor: date, expected: str) -> None:
    language = next((name for name, word in (("de", "etwa"), ("de", "Woche"), ("fr", "Dans"), ("es", "Antier")) if word in text), "")
    (one,) = expressions(text, [(0, anchor)], language)
    assert f"{one.start}..{one.end} {one.kind}" == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bob Meyer — 03/19/2024 10:12 AM\nwe sailed there yesterday and it was fun", ["yesterday 2024-03-19"]),
        ("Bob Meyer — 03/04/2024 10:12 AM\nwe sailed there yesterday and it was fun", []),
        ("Comment by Bob on 2024-03-09\nthe lamp broke yesterday", ["yesterday 2024-03-09"]),
        ("2024-03-11 10:12:01 INFO started\n\nWe left yesterday.", ["yesterday 2026-01-01"]),
        ("2024-03-11 10:12:01 ERROR: it failed yesterday\n", ["yesterday 2024-03-11"]),
        ("[2024-03-11, 10:12:01 PM] Ana: We sailed\n\nWe left yesterday.", ["yesterday 2024-03-11"]),
        ("- 2024-03-11 The tank burst yesterday\n- 2024-03-20: we repaired it yesterday\n\nYesterday it rained.",
         ["yesterday 2024-03-11", "yesterday 2024-03-20", "Yesterday 2026-01-01"]),
        ("# 15 March 2024\nWe left yesterday.\n# 16 March\nWe came yesterday.\n# Boats\nWe slept yesterday.",
         ["yesterday 2024-03-15", "yesterday 2024-03-16", "yesterday 2026-01-01"]),
        ("31 December 2023\nWe left yesterday.\n\nMonday, 1 January\nWe came yesterday.\n", ["yesterday 2023-12-31", "yesterday 2024-01-01"]),
        ("2024年3月15日\n昨天很热。\n\n3月16日\n昨天很冷。\n", ["昨天 2024-03-15", "昨天 2024-03-16"]),
        ("On Mon, 4 Mar 2024 at 10:12, Bob Meyer <bob@example.com> wrote:\n\n> it broke yesterday\n>\n> and today\n\nWe repaired it yesterday.",
         ["yesterday 2024-03-04", "today 2024-03-04", "yesterday 2026-01-01"]),
        ("On Mon, 4 Mar 2024, Bob Meyer <bob@\nexample.com> wrote:\n> it broke yesterday\nWe repaired it yesterday.", ["yesterday 2024-03-04", "yesterday 2026-01-01"]),
        ("[2024-03-05] Ana: hello\nAm 4.3.2024 schrieb Bob:\n> it broke yesterday\nWe repaired it yesterday.", ["yesterday 2024-03-04", "yesterday 2024-03-05"]),
        *((f"{line}\nWe left yesterday.", ["yesterday 2024-05-03"]) for line in ("Friday 3 May 2024", "1:56 pm on 3 May, 2024", "2024年5月3日 星期五 晴",
          "**Date:** 2024-05-03", "Berlin, 3 May 2024", "3 May 2024, 10:00–11:00", "- 3 May 2024 -", "Ana Ruiz (3 May 2024 10:12)")),
        *((f"{line}\nWe left yesterday.", ["yesterday 2026-01-01"]) for line in ("Flight to Rome 3 May 2024", "Delivery date: 2024-04-20", "Photo taken 2010-05-03",
          "Mum's birthday 3 May 2024", "Version 2.1 (2023-11-02)", "Effective Date: 1 April 2024", "Wedding 3 May 2024")),
    ],
)  # fmt: skip
def test_only_a_heading_a_turn_or_a_line_that_is_a_date_says_when_what_is_below_was_said(text: str, expected: list[str]) -> None:
    found = said(text, "2026-01-01")
    assert [one for one in found if re.match("(?i)yesterday|today|昨天", one)] == expected


# From Wednesday 10 May 2023: the days, or nothing where the words count from what was told or could mean two things.
BOUND = """
en|Ten years earlier he had left Rome.|
en|The next month he was in Paris.|
en|The next month we will be in Paris.|2023-06-01..2023-06-30
en|In 1990 he came; the next year he left.|1990..1990
en|The previous year she had married.|
en|He came a week earlier than planned.|
en|He had worked there for two years when he left in 1995.|1995..1995
en|I've had it for two years.|2021-01-01..2023-05-10
en|In 1943 she married. On 3 May she moved.|1943..1943
en|I went to a few weeks ago.|2023-04-09..2023-04-29
en|Last year, on 3 May, we met.|2022-05-03
en|On 3 May of last year we met.|2022-05-03
en|Two years ago, in May, we met.|2021-05-01..2021-05-31
en|Two years ago, on May 3, we met.|2021-05-03
en|Last month, on the 3rd, we met.|2023-04-03
en|Last month we met on the 3rd.|2023-04-01..2023-04-30
en|Last summer, on 3 July, we met.|2022-06-01..2022-08-31
en|The last Friday of May 2023 was hot.|2023-05-26
en|The last Friday of the month was hot.|
en|A year and two months ago he left.|
en|Two or three days ago he left.|
en|Two to three weeks ago he left.|
en|Less than two years ago he left.|
en|This weekend was fun.|2023-05-06..2023-05-07
en|She won this Sunday.|2023-05-07
en|We will meet this Sunday.|2023-05-14
en|He who this January left is back.|2023-01-01..2023-01-31
en|This winter was cold.|2022-12-01..2023-02-28
en|She said we meet this Sunday.|
en|The party is this weekend, so I baked.|2023-05-13..2023-05-14
en|We need milk this weekend.|2023-05-13..2023-05-14
en|Open daily from 1830 until 2030.|
en|Lunch is from 0900, the doors close by 1900.|
en|The railway ran from 1830 until 2030.|1830..2030
en|By the end of October 2022 it was done.|2022-10-01..2022-10-31
de|Letztes Jahr am 3. Mai trafen wir uns.|2022-05-03
de|Vor zwei Jahren, im Mai, trafen wir uns.|2021-05-01..2021-05-31
de|Am letzten Freitag des Monats kamen wir.|
de|Vor einem Jahr und zwei Monaten ging er.|
de|Diesen Sonntag gewann sie.|2023-05-07
fr|L'année dernière, le 3 mai, il est parti.|2022-05-03
fr|Le dernier vendredi de mars, il est parti.|2023-03-31
fr|Le premier lundi du mois de juin 2021 fut chaud.|2021-06-07
fr|La fête a lieu chaque année le 3 mai.|
fr|Il est parti il y a un an et demi.|
es|El año pasado, el 3 de mayo, nos vimos.|2022-05-03
es|El último viernes de marzo se fue.|2023-03-31
es|El segundo martes de marzo de 2021 llovió.|2021-03-09
es|Cada año, el 3 de mayo, hay fiesta.|
es|Se fue hace dos años y medio.|
zh|去年5月3日和6月4日我们见面。|2022-05-03
zh|他12月前来了。|
zh|3月前后开工。|
zh|2023年5月的最后一个周五他走了。|2023-05-26
zh|2024年6月第一个星期一开会。|2024-06-03
zh|这周日她赢了。|
zh|这周一她赢了。|2023-05-08
zh|每年5月3日举行。|
en|He left on the last Friday of May 2022.|2022-05-27
en|We met on the second Tuesday in March, 2021.|2021-03-09
en|It rained on the fifth Monday of March 2021 and the fifth Monday of May.|2021-03-01..2021-03-31
en|The festival is held every year on 3 May.|
de|Am ersten Montag des Juni 2024 war frei.|2024-06-03
de|Das Fest ist jedes Jahr am 3. Mai.|
zh|三个月前他走了。|2023-02-01..2023-02-28
zh|春节前三天下雪。|
zh|两周前的周五下雨。|2023-04-23..2023-04-29
zh|一个半月前他走了。|
zh|一年零两个月前他走了。|
"""


@pytest.mark.parametrize("row", BOUND.strip().split("\n"))
def test_what_is_told_and_what_is_bound_by_the_words_beside_it(row: str) -> None:
    test_clocks_zones_leap_days_fiscal_years_and_words_of_five_languages(row)


# A day as it is, a month or week by its month.
BY_TENSE = r"""
We will fly to Rome on November 30.|2024-11-30
Am 10. Dezember werden wir fliegen.|2024-12-10
Le 10 décembre nous irons à Rome.|2024-12-10
El 10 de diciembre iremos a Roma.|2024-12-10
12月10日我们将去北京。|
3月5日会议纪要|2024-03-05
3月5日患者要求出院。|2024-03-05
Nächste Woche am Donnerstag werden wir liefern, sagt er.|2024-05-23
Il y a trois jours fériés en mai, dit-on dans la ville.|2024-05
I signed up for a marathon in October.|
He promised to pay on Friday.|
Salary: 1800-2000 EUR|
Lines 1990-2000 of the file|
Please reply by December 1.|2024-12-01
合同12月31日到期。|2024-12-31
Der Vertrag endet am 31. Dezember.|2024-12-31
The lease of the mill ends December 31.|
My father died on August 2.|
We visited grandma on June 20.|
Since June 20 we have not spoken.|
I was born on 3 June.|
Ich bin am 3. Juni geboren.|
We met on May 3.|2024-05-03
We visited her on 20 April.|2024-04-20
The party is on June 20.|2024-06-20
I've got a dentist appointment on Friday.|
We've got guests on Sunday.|
I've invited Tom for dinner on Saturday.|
I just found out the exam is on Monday.|
Tom said he has a game on Sunday.|
Did you know the shop opens on Monday?|
Er hat gesagt, dass er am Montag kommt.|
Wir haben am Montag gesprochen, am Freitag treffen wir uns wieder.|2024-05-13
J'ai acheté des billets pour samedi.|
He comprado entradas para el sábado.|
Me dijo que viene el sábado.|
我买了周六的电影票。|
会议改到周五了。|
火车票买好了，周六走。|
周六我去了北京。|2024-05-11
We have decided to move in September.|
I've bought tickets for the match in October.|
We met on Monday.|2024-05-13
On Monday, we went to the zoo.|2024-05-13
It was great, we met on Monday.|2024-05-13
Wir haben uns am Montag getroffen.|2024-05-13
Nous avons mangé chez Paul lundi.|2024-05-13
El lunes fuimos al cine.|2024-05-13
He came back in March.|2024-03
Am Freitag kommender Woche wird die Brücke gesperrt.|2024-05-24
Am Freitag nächster Woche wird die Brücke gesperrt.|2024-05-24
Am Dienstag vergangener Woche hat es geregnet.|2024-05-07
Le mardi de la semaine dernière il a démissionné de son poste.|2024-05-07
El martes de la semana pasada fuimos al cine con Ana.|2024-05-07
El lunes de la próxima semana vamos al cine con Ana.|2024-05-20
I saw her last week Monday.|2024-05-06
See you next week on Monday.|2024-05-20
上周的周二他走了。|2024-05-07
On se voit après demain à la gare avec Paul.|2024-05-17
Avant hier on a mangé chez Paul avec les enfants.|2024-05-13
The September 11 attacks happened there.|
We celebrated the Fourth of July.|
The January 6 committee met.|
Nous habitons rue du 8 mai 1945 à Lyon.|
Rendez-vous place du 14 juillet avec Paul.|
Wir gehen über die Straße des 17. Juni in Berlin.|
我在今日头条上看到的。|
Day 3 - 16 March 2024\nWe fly home tomorrow.|2024-03-17
| day | what |\n|---|---|\n| 2024-03-14 | Tom was ill yesterday |\n| 2024-03-20 | Tom is fine today ||2024-03-13 2024-03-20
**2024-10-01 Gustav Lind**: the pump failed again yesterday|2024-09-30
小红 2024/3/20 10:00:00\n昨天爬山太累了|2024-03-19
--- Day changed Wed Mar 20 2024\n09:00 < ana> the backup server crashed again yesterday|2024-03-19
Ben Lee added a comment - 25/Mar/24 10:00 AM\nThe printer broke again yesterday.|2024-03-24
[13.05.24, 09:00:00] Ana: I painted it today.\n‎[16.05.24, 10:00:03] Ben: I broke it yesterday.|2024-05-13 2024-05-15
Date:   Tue May 14 10:00:00 2024 +0200\n\n    Fix what was reported yesterday.|2024-05-13
--- Log opened Mon May 20 10:00:00 2024\n10:00 <ben> I mended the lamp yesterday.|2024-05-19
[14-May-24 10:00 AM] ana: I mended the lamp yesterday.|2024-05-13
## May 2024\nTom was ill last week.|2024-05
Patient: Meyer\nDOB: 05/13/1950\nVisit: 03/14/2024\n\nPatient reports nausea since yesterday.|1950-05-13 2024-03-14 2024-05-14
from 3 to 5 May 2024 we met|2024-05
Created: 2024-03-01\nUpdated: 2024-03-20\n\nThe printer fails since yesterday.|2024-03-20 2024-02-29
"""


@pytest.mark.parametrize("row", BY_TENSE.strip().split("\n"))
def test_tense_weeks_names_and_heads_say_which_day_is_meant(row: str) -> None:
    text, _, wanted = row.rpartition("|")
    text = text.replace("\\n", "\n")
    found = expressions(text, anchors(text, "2024-05-15"))  # a Wednesday
    assert [one.start if one.start == one.end else one.start[:7] for one in found] == wanted.split()


@pytest.mark.parametrize(("entry", "days"), [
    ("**June 8, 2023 -**Bo Lind is fined. In a second letter, sent on July 27, Bo Lind is fined again.", []),
    ("**8 June 2023** – Bo Lind was fined. The first letter had come on 27 May.", ["2023-05-27"]),
    ("**2023年6月8日：** 老张被罚款。7月27日又被罚款。", ["2023-07-27"]),
])  # fmt: skip
def test_an_entry_that_begins_with_a_bold_date_is_not_of_the_day_of_its_document(entry: str, days: list[str]) -> None:
    text = f"# Facts\n\nNovember 26, 2025\n\nSome words on it.\n\n{entry}\n\nMore.\n"
    found = expressions(text, anchors(text, "2025-11-26"))
    assert [one.start for one in found if one.anchor] == days


def test_the_day_on_which_a_page_was_saved_is_no_day_of_its_text() -> None:
    links = "\n".join(f"[{n}](https://a.example/{n})" for n in range(6))
    text = f"# The mill\n\n{links}\n\nDecember 2, 2025\n\nBo Lind sold the mill of Orl yesterday.\n"
    assert {one.day for one in anchors(text, "2014-04-11")} == {date(2014, 4, 11)}
    plain = text.replace("](https", "] (https")
    assert date(2025, 12, 2) in {one.day for one in anchors(plain, "2014-04-11")}, "a diary has no links"
