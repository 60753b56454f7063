"""Temporal expressions: what a text says about when, as intervals of days.

`expressions` finds stated dates (7 May 2023, May 2023, 2023年5月, in 1868) and simple relative ones
(yesterday, last Friday, vor zwei Wochen, 上个月) in English, German, French, Spanish and Chinese; the
words are in temporal.toml. A relative expression is resolved against its anchor: the nearest dated
heading or turn above it, else the date of the document (`anchors`). Without an anchor it is not
resolved, and it is never resolved against today. A weekday, month or day without "last", "next" or
a year is resolved by the tense of the nearest verb of its clause; a weekday without a past or a
future verb means no day, and 3 May without a future verb is the nearest within a quarter. What could mean two things (03/04/2024, fiscal years, the lunar calendar)
and what the calendar does not have (30 February) is left out, with all that stands in it. Weeks
begin on Monday; seasons are those of the northern hemisphere."""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import Patterns, latin_language, table

Kind = Literal["stated", "resolved", "approximate", "document"]
Interval = tuple[date, date]


class Anchor(NamedTuple):
    """From the character `at` on, relative expressions count from this day, if there is one. The
    words up to `until` say it; they tell of no event."""

    at: int
    day: date | None
    until: int = 0


@dataclass(frozen=True, slots=True, order=True)
class When:
    """An interval of days, both included (ISO 8601), and the characters that say it. `anchor`: the
    day from which a relative expression counts. Kind `document` is the day on which a text without
    an expression was said; it has an anchor and no characters."""

    char_start: int
    char_end: int
    start: str
    end: str
    kind: Kind
    anchor: str = ""


_TABLES = table(__file__)
ENGLISH_VERB = re.compile(  # a form that has a tense
    rf"(?:{'|'.join(_TABLES['en'][tense] for tense in _TABLES['en']['tenses'])})(?!\w)"
)
DAY_WORDS = frozenset(  # of one word: yesterday, heute
    word
    for name in ("en", "de", "fr", "es")
    for words in _TABLES[name]["day"]
    for word in words.split("|")
    if word.isalpha()
)
_FORMS = Patterns(_TABLES["forms"])
_NEAR = 200  # characters of a clause that are read for its verb
_AROUND = 20  # characters in which a word of another calendar counts
_DATED = 2  # words of a clause that has a tense of its own; "On Monday, we left" has none
_QUARTER = 100  # days up to which the nearest month, or day of a named month, is taken
_TO_DATE = re.compile(r",? (?:the |de[nm] |le |el )?")  # between a weekday and its date
_TOGETHER = re.compile(" |的")  # between expressions that mean one day: heute vor einem Jahr


def expressions(
    text: str, anchors: Sequence[Anchor] = (), language: str = "", day_first: bool | None = None
) -> list[When]:
    """Temporal expressions of a text, in order, none inside another.

    `anchors` are sorted by offset. `language` is one of en, de, fr, es, zh;
    by default it is recognised. `day_first`: the order of 3/4/2024, if the document tells it."""
    figures = dates.dates_in(text, dates.NUMERIC, day_first)
    matches = [_Match(start, end, "figures", _days_of(day)) for start, end, day in figures]
    starts = [anchor.at for anchor in anchors]
    for vocabulary in _vocabularies(text, language):
        for match, rule, which in vocabulary.matches(text):
            at = bisect_right(starts, match.start()) - 1
            anchor = anchors[at].day if at >= 0 else None
            found = _meant(vocabulary, match, rule, which, anchor)
            if found:
                matches.append(found)
    hidden = [(anchor.at, anchor.until, False) for anchor in anchors if anchor.until]
    hidden = sorted([*hidden, *_titles(text)])
    return [match.when() for match in _kept(text, _outermost(matches), hidden)]


def anchors(text: str, document_date: str = "") -> list[Anchor]:
    """The days from which relative expressions count, with the offsets from which on they hold: the
    date of the document (ISO 8601), and every line that dates what stands below it
    (`dates.dated_line`). A heading holds until the next of its level or a higher one, a turn until
    the next turn or heading, an entry of a list for its paragraph, the head of a quoted mail for
    what is quoted."""
    base = date.fromisoformat(document_date) if len(document_date) == 10 else None
    found = [Anchor(0, base)] if base else []
    open_: list[tuple[int, date | None]] = []  # level and day of what is in force
    first, above, code = dates.day_first(text), ["", ""], False
    at, now, body = 0, base, dates.front_matter_end(text)
    for line in text.splitlines(keepends=True):
        code ^= line.startswith(("```", "~~~"))
        heading = None if code else dates.HEADING.match(line)
        level = len(heading[1]) if heading else dates.QUOTE if line[0] == ">" else dates.TURN
        dated = None if at < body else dates.dated_line(line, first, bool(heading))
        day = dated.date if dated else dates.without_year(line, now) if now else ""
        if level == dates.QUOTE and not dated:
            if above[1][:1] != ">":
                head = dates.of_quoted(above[1], first) or dates.of_quoted("".join(above), first)
                open_.append((level, _day(head)))
        elif dated or day or heading:
            level = dates.PARAGRAPH if dated and dated.is_entry else level
            open_ = [entry for entry in open_ if entry[0] < level]
            open_ += [(level, _day(day))] if dated or day else []
        elif line.isspace():
            open_ = [entry for entry in open_ if entry[0] != dates.PARAGRAPH]
        else:
            lowest = dates.PARAGRAPH if dates.ENTRY.match(line) else dates.QUOTE
            open_ = [entry for entry in open_ if entry[0] < lowest]
        here = open_[-1][1] if open_ else base
        if dated or here != now:
            found.append(Anchor(at, here, at + dated.end if dated else 0))
        now, above = here, above if line.isspace() else [above[1], line]
        at += len(line)
    return found


def _day(iso_date: str) -> date | None:
    return date.fromisoformat(iso_date) if iso_date else None


# ---- which expressions count -------------------------------------


@dataclass(frozen=True, slots=True)
class _Match:
    """Words that may mean an interval; without one they mean none, and hide what is in them."""

    start: int
    end: int
    rule: str
    interval: Interval | None
    anchor: date | None = None
    approximate: bool = False

    def when(self) -> When:
        assert self.interval
        first, last = (day.isoformat() for day in self.interval)
        kind: Kind = "approximate" if self.approximate else "resolved" if self.anchor else "stated"
        anchor = self.anchor.isoformat() if self.anchor else ""
        return When(self.start, self.end, first, last, kind, anchor)


def _outermost(found: Sequence[_Match]) -> list[_Match]:
    """The longest of the matches that overlap."""
    kept: list[_Match] = []
    for expression in sorted(found, key=lambda match: (match.start, -match.end)):
        if not kept or expression.start >= kept[-1].end:
            kept.append(expression)
        elif expression.end - expression.start > kept[-1].end - kept[-1].start:
            kept[-1] = expression
    return kept


def _kept(
    text: str, found: Sequence[_Match], hidden: Sequence[tuple[int, int, bool]]
) -> Iterator[_Match]:
    """Those that mean an interval and stand in no head and no title; no weekday before its date, no
    part of "three months ago today", and no day without a year beside another year ("In 1943 she
    married. On 3 May she moved.")."""
    for at, expression in enumerate(found):
        place = bisect_right(hidden, (expression.start, len(text) + 1, True)) - 1
        _, end, relative = hidden[place] if place >= 0 else (0, 0, False)
        if expression.interval is None or (
            expression.start < end and (expression.anchor or not relative)
        ):
            continue
        before, after = found[max(at - 1, 0)], found[min(at + 1, len(found) - 1)]
        if expression.rule.startswith("weekday") and _TO_DATE.fullmatch(
            text, expression.end, after.start
        ):
            continue
        if expression.anchor and any(
            _TOGETHER.fullmatch(text, first.end, last.start) and "day" in (first.rule, last.rule)
            for first, last in ((before, expression), (expression, after))
            if first is not last
        ):
            continue
        if expression.rule in _OF_A_YEAR and expression.anchor and _other_year(text, found, at):
            continue
        yield expression


def _other_year(text: str, found: Sequence[_Match], at: int) -> bool:
    """Does an expression in the two sentences up to this one say another year than its anchor, or do all of the
    text that say a year, and one of them before it? A narrative of 1968, printed in 1998, names its year once,
    goes on with days, and never counts from the day on which it was printed."""
    expression = found[at]
    assert expression.anchor
    years = [other for other in found if other.interval and other.rule not in _OF_A_YEAR]
    same_year = [
        other.interval[0].year <= expression.anchor.year <= other.interval[1].year
        for other in years
        if other.interval
    ]
    past = expression.interval is not None and expression.interval[1] < expression.anchor
    narrated = (
        years and years[0].start < expression.start and not any(other.anchor for other in years)
    )
    if past and narrated and not any(same_year):
        return True
    for other in found[max(at - 2, 0) : at + 2]:
        if other is expression or not other.interval or other.rule in _OF_A_YEAR:
            continue
        first, last = sorted([expression, other], key=lambda match: match.start)
        near = len(re.findall(r"[.!?。！？\n]", text[first.end : last.start])) <= 1
        if near and not other.interval[0].year <= expression.anchor.year <= other.interval[1].year:
            return True
    return False


def _titles(text: str) -> Iterator[tuple[int, int, bool]]:
    """Titles of songs, films and books hide relative dates: what stands in 《》, and in quotation
    marks where every word is capitalised."""
    for match in _FORMS.quoted.finditer(text):
        if match[0][0] == "《" or _FORMS.title.fullmatch(match[0][1:-1].strip()):
            yield *match.span(), True


# ---- intervals -------------------------------------


def _days_of(day: str) -> Interval | None:
    return (date.fromisoformat(day), date.fromisoformat(day)) if day else None


def _months(year: int, month: int, count: int = 1) -> Interval:
    """`count` months from this one on; the month may be less than 1 or more than 12."""
    first, last = year * 12 + month - 1, year * 12 + month + count - 2
    end = date(last // 12, last % 12 + 1, monthrange(last // 12, last % 12 + 1)[1])
    return date(first // 12, first % 12 + 1, 1), end


_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def _period(anchor: date, unit: str, shift: int) -> Interval:
    """The day, week, weekend, month, quarter, year or decade `shift` after that of the anchor."""
    if unit == "day":
        day = anchor + timedelta(days=shift)
        return day, day
    if unit in _MONTHS:
        count = _MONTHS[unit]
        first = ((anchor.year * 12 + anchor.month - 1) // count + shift) * count
        return _months(first // 12, first % 12 + 1, count)
    monday = anchor - timedelta(days=anchor.weekday()) + timedelta(weeks=shift)
    return monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6)


def _away(anchor: date, unit: str, shift: int, slack: int = 0) -> Interval:
    """The day, the week around it, the month or year `shift` units away; `slack` units more."""
    times = {"decade": 10, "fortnight": 2}.get(unit, 1)
    unit = {"decade": "year", "fortnight": "week"}.get(unit, unit)
    if unit in ("week", "weekend"):
        middle, days = anchor + timedelta(weeks=shift * times), timedelta(days=3 + 7 * slack)
        return middle - days, middle + days
    first, last = shift * times - slack, shift * times + slack
    return _period(anchor, unit, first)[0], _period(anchor, unit, last)[1]


def _weekday(anchor: date, weekday: int, which: int) -> Interval:
    """-1: the last such day before the anchor; 0: the first on or after it; 1: the first after it;
    2 and -2 a week beyond."""
    if which < 0:
        shift = -((anchor.weekday() - weekday - 1) % 7 + 1) + 7 * (which + 1)
    else:
        shift = (weekday - anchor.weekday() - min(which, 1)) % 7 + which + 6 * (which > 1)
    return _period(anchor, "day", shift)


def _by_tense(anchor: date, named: Sequence[Interval], tense: int) -> Interval:
    """Of the intervals of one name the last that has begun (-1), the first that is not over (1), or
    the nearest (0)."""
    if tense < 0:
        return [interval for interval in named if interval[0] <= anchor][-1]
    if tense > 0:
        return next(interval for interval in named if interval[1] >= anchor)
    return min(named, key=lambda interval: abs((interval[0] - anchor).days))


# ---- rules: what the words of a match mean -------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of a match say; an absent one is None. `tense`: -1 past, 1 future, 0 none."""

    y: int | None = None
    y2: int | None = None
    month: int | None = None
    month2: int | None = None
    d: int | None = None
    d2: int | None = None
    q: int | None = None
    season: int | None = None
    decade: int | None = None
    weekday: int | None = None
    day: int = 0
    unit: str = ""
    number: int = 1
    which: int | None = None
    year_word: int = 0
    rolling: bool = False
    tense: int = 0
    every: bool = False  # every year, each Sunday: no one day


class _Unclear(Exception):
    """The words say no day here: their clause lacks a tense."""


def _date(words: _Words, year: int | None = None) -> Interval:
    """A year, quarter, season, month or day, or the span from the first to the second of two."""
    year = words.y if year is None else year
    assert year is not None
    if words.q:
        return _months(year, 3 * words.q - 2, 3)
    if words.season:
        return _months(year, words.season, 3)
    if words.month is None:
        last = words.y2 or year
        if not 0 <= last - year <= 300:
            raise _Unclear
        return _months(year, 1, 12 * (last - year + 1))
    month2 = words.month2 or words.month
    begins = year - (month2 < words.month)  # December to January 2024
    if words.d is None:
        return _months(begins, words.month)[0], _months(year, month2)[1]
    span = date(begins, words.month, words.d), date(year, month2, words.d2 or words.d)
    if span[0] > span[1]:
        raise ValueError("ends before it begins")
    return span


def _unit(anchor: date, words: _Words) -> Interval:
    """This, the last or the next unit; in English the last week is the seven days before."""
    which = words.which or 0
    elsewhere = which > 0 and words.tense < 0  # the next month he was in Paris
    if elsewhere or words.unit in ("day", "fortnight", "decade"):
        raise _Unclear
    if words.unit == "weekend" and which == 0 and words.tense < 0 and anchor.weekday() < 5:
        which = -1
    if words.unit == "week" and words.rolling and abs(which) == 1:
        first = anchor + timedelta(days=1 if which > 0 else -7)
        return first, first + timedelta(days=6)
    return _period(anchor, words.unit, which)


def _named_weekday(anchor: date, words: _Words) -> Interval:
    """Last, next or this Sunday; "this Sunday" of the past is one that was."""
    assert words.weekday is not None
    past = words.which == 0 and words.tense < 0 and anchor.weekday() != words.weekday
    return _weekday(anchor, words.weekday, -1 if past else words.which or 0)


def _weekday_by_tense(anchor: date, words: _Words) -> Interval:
    """A report of that Monday in the past tense means the same day."""
    assert words.weekday is not None
    same = anchor.weekday() == words.weekday
    if not words.tense or (same and words.tense > 0):
        raise _Unclear
    return (anchor, anchor) if same else _weekday(anchor, words.weekday, words.tense)


def _named_month(anchor: date, words: _Words) -> Interval:
    """Last May, this summer; in May by the tense, without one the nearest at most a quarter away."""
    month, count = (words.month, 1) if words.month else (words.season, 3)
    assert month
    every = [_months(anchor.year + shift, month, count) for shift in range(-3, 4)]
    if not words.which:
        found = _by_tense(anchor, every, 1 if words.which == 0 and not words.tense else words.tense)
        if words.which is None and not words.tense and abs((found[0] - anchor).days) > _QUARTER:
            raise _Unclear
        return found
    if words.which < 0:
        return [interval for interval in every if interval[1] < anchor][words.which]
    return [interval for interval in every if interval[0] > anchor][words.which - 1]


def _day_of_month(anchor: date, words: _Words) -> Interval:
    """3 May without a year, or the 3rd: by "last" or "next", else by the tense. In the past or without a tense 3 May
    is the nearest within a quarter, since the verb is often that of another clause ("said the vote on 5 May")."""
    assert words.d
    if words.month is None and not words.tense:
        raise _Unclear
    firsts = (_months(anchor.year, anchor.month + shift)[0] for shift in range(-12, 13))
    days = [
        (first.replace(day=words.d), first.replace(day=words.d))
        for first in firsts
        if words.month in (None, first.month) and words.d <= monthrange(first.year, first.month)[1]
    ]
    if not days:
        raise ValueError("not in these years")
    if words.which:
        return _by_tense(anchor, [day for day in days if day[0] != anchor], words.which)
    nearest = _by_tense(anchor, days, 0)
    if words.month and words.tense <= 0 and abs((nearest[0] - anchor).days) <= _QUARTER:
        return nearest
    return _by_tense(anchor, days, words.tense)


def _ahead(anchor: date, words: _Words) -> Interval:
    """In two weeks. "The worst storm in 40 years" and "he made it in two days" do not look ahead."""
    if words.tense <= 0:
        raise _Unclear
    return _away(anchor, words.unit, words.number)


def _lasting(anchor: date, words: _Words) -> Interval:
    return _away(anchor, words.unit, -words.number)[0], anchor


def _weekday_of_week(anchor: date, words: _Words) -> Interval:
    monday = _period(anchor, "week", words.which or 0)[0]
    found = _period(monday, "day", words.weekday or 0)
    if found[0] > anchor and not words.which and words.tense < 0:
        raise _Unclear
    return found


_STATED: dict[str, Callable[[_Words], Interval]] = {
    "date": _date,
    "quarter": _date,
    "season": _date,
    # the 1800s are a century
    "decade": lambda w: _months(
        w.decade or 0, 1, 1200 if not (w.decade or 0) % 100 and w.decade != 2000 else 120
    ),
}
_RELATIVE: dict[str, Callable[[date, _Words], Interval]] = {
    "day": lambda a, w: _period(a, "day", w.day),
    "unit": _unit,
    "ago": lambda a, w: _away(a, w.unit, -w.number),
    "from now": lambda a, w: _away(a, w.unit, w.number),
    "ahead": _ahead,
    "lasting": _lasting,
    "weekday": _named_weekday,
    "weekday by tense": _weekday_by_tense,
    "weekday of week": _weekday_of_week,
    "month": _named_month,
    "month of year": lambda a, w: _date(w, a.year + (w.which or 0)),
    "day of month": _day_of_month,
    "of year word": lambda a, w: _date(w, a.year + w.year_word),
}
_OF_A_YEAR = frozenset({"month", "day of month"})  # say no year
_BY_TENSE = _OF_A_YEAR | {"weekday by tense"}


def _meant(
    vocabulary: _Vocabulary, match: re.Match[str], rule: str, which: int | None, anchor: date | None
) -> _Match | None:
    """What a match means; None where that is unclear. `which`: a value that the rule gives."""
    text, (start, end) = match.string, match.span()
    around = text[max(start - _AROUND, 0) : end + _AROUND // 2]
    if _FORMS.calendar.search(around) or (
        _FORMS.fiscal.search(around) and "d" not in match.re.groupindex
    ):
        return _Match(start, end, rule, None)
    words, few = vocabulary.words(match, which)
    try:
        if rule in _STATED:
            return _Match(start, end, rule, _STATED[rule](words))
        if anchor is None or (words.every and rule in _BY_TENSE):
            return None
        interval = _RELATIVE[rule](anchor, words)
        if few:
            interval = (
                _away(interval[0], words.unit, 0, 1)[0],
                _away(interval[1], words.unit, 0, 1)[1],
            )
    except _Unclear:
        return None
    except (ValueError, OverflowError, IndexError, StopIteration):
        return _Match(start, end, rule, None)  # a day that the calendar does not have
    return _Match(start, end, rule, interval, anchor, few or "about" in vocabulary.said(match))


# ---- vocabularies -------------------------------------

_HAN_DIGITS = {ch: str(at) for at, ch in enumerate("〇一二三四五六七八九")} | {"零": "0", "○": "0"}
_HAN = re.compile(r"[\u4e00-\u9fff]")


class _Rule(NamedTuple):
    """A pattern of expressions; a text that has one holds words of all kinds of one set of `needed`."""

    pattern: re.Pattern[str]
    rule: str
    given: int | None
    needed: tuple[frozenset[str], ...]


def _needed(template: str) -> tuple[frozenset[str], ...]:
    """For each alternative of a template the kinds of words that it cannot do without."""
    flat, before = template, ""
    while flat != before:  # what stands in brackets may be absent
        before, flat = flat, re.sub(r"\([^()]*\)\??", "", flat)
    return tuple(frozenset(re.findall(r"\{([a-z_]+)2?\}(?!\?)", part)) for part in flat.split("|"))


class _Vocabulary:
    """The words of one language, its patterns compiled."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.han = name == "zh"
        self._rolling = name == "en"
        self._few = frozenset(table["few"].split("|"))
        numbered = ("month", "number", "quarter")
        listed = {kind: dict(zip(table[kind], range(1, 32), strict=False)) for kind in numbered}
        listed["weekday"] = {words: at for at, words in enumerate(table["weekday"])}
        listed["unit"] = {words: unit for unit, words in table["unit"].items()}
        for kind in ("day", "which", "season", "year_word"):
            listed[kind] = table.get(kind, {})
        self._words = {
            kind: {word: value for words, value in of_kind.items() for word in _alternatives(words)}
            for kind, of_kind in listed.items()
        }
        self._words["number"] |= dict.fromkeys(self._few, 3)
        places = dict(_TABLES["places"]) | (_TABLES["han_places"] if self.han else {})
        places["about"] = f"(?:{table['about']})"
        for kind, of_kind in self._words.items():
            longest = sorted(of_kind, key=lambda word: (-len(word), word))
            places.setdefault(kind, "|".join(longest) if longest else "(?!)")
        if not self.han:
            places["number"] += r"|\d{1,3}"
        edge = (
            ("(?:", ")") if self.han else (r"(?<![\w-])(?<!\d[.,])(?:", r")(?![\w%]|-\w|[.,/]\d)")
        )
        self._rules: list[_Rule] = []
        for template, rule, *which in table["patterns"]:
            pattern = re.sub(
                r"\{([a-z_]+)(2?)\}", lambda m: f"(?P<{m[1]}{m[2]}>{places[m[1]]})", template
            )
            compiled = re.compile(edge[0] + pattern + edge[1], re.IGNORECASE)
            self._rules.append(
                _Rule(compiled, rule, which[0] if which else None, _needed(template))
            )
        needed = {kind for rule in self._rules for kinds in rule.needed for kind in kinds}
        self._kinds = {kind: re.compile(places[kind]) for kind in sorted(needed)}
        bounds = ("", "") if self.han else (r"(?<![\w’'])", r"(?![\w])")
        verbs = "|".join(f"(?P<{tense}>{table[tense]})" for tense in table["tenses"])
        self._every = re.compile(f"{bounds[0]}(?:{table['every']}){bounds[1]}", re.IGNORECASE)
        self._verbs = re.compile(f"{bounds[0]}(?:{verbs}){bounds[1]}", re.IGNORECASE)

    def matches(self, text: str) -> Iterator[tuple[re.Match[str], str, int | None]]:
        # Ten searches for words tell which of the thirty patterns are worth trying.
        lower = text.lower()
        present = {kind for kind, words in self._kinds.items() if words.search(lower)}
        for rule in self._rules:
            if not any(kinds <= present for kinds in rule.needed):
                continue
            for match in rule.pattern.finditer(text):
                if not _is_name(match, rule.rule):
                    yield match, rule.rule, rule.given

    @staticmethod
    def said(match: re.Match[str]) -> set[str]:
        return {name.rstrip("2") for name, word in match.groupdict().items() if word}

    def words(self, match: re.Match[str], which: int | None) -> tuple[_Words, bool]:
        """The values of the placeholders, and whether the number is "a few"."""
        clause, at = self._clause(match)
        values: dict[str, Any] = {"rolling": self._rolling, "tense": self._tense(clause, at)}
        values["every"] = bool(self._every.search(clause))
        values |= {} if which is None else {"which": which}
        few = False
        for name, text in match.groupdict().items():
            if text is None:
                continue
            word, kind = " ".join(text.lower().split()), name.rstrip("2")
            name = name if name in ("y2", "d2", "month2") and name[:-1] in values else kind
            name = "q" if name == "quarter" else name
            few |= kind == "number" and word in self._few
            if kind in self._words:
                values[name] = self._value(kind, word)
            elif kind != "about":
                values[name] = _number(re.sub(r"\D+\Z", "", word) if kind == "decade" else word)
        return _Words(**values), few

    def _clause(self, match: re.Match[str]) -> tuple[str, int]:
        """The clause around an expression without it, and where it stood; the sentence where the
        clause has no words of its own."""
        line = match.string[max(match.start() - _NEAR, 0) : match.start()].rpartition("\n")[2]
        after = match.string[match.end() : match.end() + _NEAR].partition("\n")[0]
        for ends in (r"[,;.!?。，！？；]", r"[.!?。！？]"):
            parts = re.split(ends, line)[-1], re.split(ends, after)[0]
            size = len("".join(parts)) if self.han else len(" ".join(parts).split())
            if size >= (1 if self.han else _DATED):
                break
        return f"{parts[0]} {parts[1]}", len(parts[0])

    def _tense(self, clause: str, at: int) -> int:
        """The tense of the last verb before the expression, else of the first behind it."""
        verbs = list(self._verbs.finditer(clause))
        before = [verb for verb in verbs if verb.start() < at]
        verb = before[-1] if before else verbs[0] if verbs else None
        return {"past": -1, "future": 1}.get(str(verb and verb.lastgroup), 0)

    def _value(self, kind: str, word: str) -> Any:
        words = self._words[kind]
        if word in words:
            return words[word]
        for pattern, value in words.items():  # a word with an ending: letzte[nrsm]?
            if re.fullmatch(pattern, word):
                return value
        return _number(word)


def _alternatives(words: str) -> list[str]:
    return [words] if "(?:" in words else words.split("|")


def _is_name(match: re.Match[str], rule: str) -> bool:
    """Is a word in lower case a verb and no month or weekday (they may, to march, the sun), or a
    capitalised day word inside a sentence a name (USA Today)?"""
    if rule == "day":
        before = match.string[max(match.start() - 2, 0) : match.start()]
        return match[0][0].isupper() and before[:1].isalnum()
    groups = match.groupdict()
    word = groups.get("month") or groups.get("weekday") or ""
    return word in ("may", "march", "mar", "sun", "sat", "mon", "wed") and not groups.get("y")


def _number(word: str) -> int:
    """12, 二〇二三, 二十三."""
    if word.isdecimal():
        return int(word)
    if "十" in word:
        tens, _, ones = word.partition("十")
        return 10 * int(_HAN_DIGITS.get(tens, "1")) + int(_HAN_DIGITS.get(ones, "0"))
    return int("".join(_HAN_DIGITS.get(ch, "") for ch in word) or "0")


@cache
def _vocabulary(name: str) -> _Vocabulary:
    return _Vocabulary(name, _TABLES[name])


def _vocabularies(text: str, language: str) -> list[_Vocabulary]:
    names = [language] if language else ["zh"] * bool(_HAN.search(text))
    if not language and re.search(r"[A-Za-z]", text):
        latin = latin_language(text)
        names.append(latin if latin in _TABLES else "en")
    return [_vocabulary(name) for name in names]
