"""Temporal expressions: what a text says about when, as intervals of days.

`expressions` finds stated dates (7 May 2023, May 2023, 2023年5月, in 1868, 1939-1945) and simple
relative ones (yesterday, last Friday, vor zwei Wochen, 上个月) in English, German, French, Spanish and
Chinese; the words are in temporal.toml. A relative expression counts from its anchor: the nearest
dated heading or turn above it, else the date of the document (`anchors`); without one it means no
day. A month or 3 May without a year is the nearest within a quarter. A weekday alone goes by the
nearest verb of its sentence, and means no day without a past or a future one ("is closed on Sunday").
What could mean two things (03/04/2024, fiscal years, the lunar calendar) and what the calendar does
not have (30 February) is left out, with all that stands in it. Weeks begin on Monday."""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import Patterns, holds_cjk, latin_language, table

Kind = Literal["stated", "resolved", "document"]
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
_FORMS = Patterns(_TABLES["forms"])
_AROUND = 20  # characters in which a word of another calendar counts
_SENTENCE = 200  # characters of a sentence that are read for its verb
_SENTENCE_END = re.compile(r"[.!?。！？，；\n]")  # a comma ends a clause in Chinese
_TO_DATE = frozenset("the den dem le el".split())  # between a weekday and its date
# Levels of what dates the lines below: a heading has 1 to 6, the others are below all headings.
_TURN, _PARAGRAPH, _QUOTE = 7, 8, 9
_QUARTER = 100  # days up to which the nearest month, or day of a month, is taken


def expressions(
    text: str, anchors: Sequence[Anchor] = (), language: str = "", day_first: bool | None = None
) -> list[When]:
    """Temporal expressions of a text, in order, none inside another.

    `anchors` are sorted by offset. `language` is one of en, de, fr, es, zh;
    by default it is recognised. `day_first`: the order of 3/4/2024, if the document tells it."""
    languages = [language] if language else _languages(text)
    found = list(_stated(text, day_first, languages))
    starts = [anchor.at for anchor in anchors]
    for name in languages if anchors else ():
        found += _relative(text, _vocabulary(name), starts, anchors)
    heads = [(anchor.at, anchor.until) for anchor in anchors if anchor.until]
    kept: list[_Match] = []
    for match in sorted(found, key=lambda match: (match.start, -match.end)):
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
        elif match.end - match.start > kept[-1].end - kept[-1].start:
            kept[-1] = match
    years: Interval | None = None  # that the text says last
    result = []
    for match, after in zip(kept, [*kept[1:], None], strict=False):
        head = bisect_right(heads, (match.start, len(text) + 1)) - 1
        if match.interval is None or (head >= 0 and match.start < heads[head][1]):
            continue
        if match.weekday and after and _TO_DATE.issuperset(text[match.end : after.start].strip(", ").split()):
            continue
        if match.without_year and match.anchor and years:
            # "In 1943 she married. On 3 May she moved." is not of the year of the document.
            if not years[0].year <= match.anchor.year <= years[1].year:
                continue
        if not match.without_year:
            years = match.interval
        result.append(match.when(match.interval))
    return result


def anchors(text: str, document_date: str = "") -> list[Anchor]:
    """The days from which relative expressions count, with the offsets from which on they hold: the
    date of the document (ISO 8601), and every line that dates what stands below it
    (`dates.dated_line`). A heading holds until the next of its level or a higher one, a turn until
    the next turn or heading, an entry of a list for its paragraph. What is quoted behind ">" has
    no day, unless a line of it is dated."""
    base = date.fromisoformat(document_date) if len(document_date) == 10 else None
    found = [Anchor(0, base)] if base else []
    open_: list[tuple[int, date | None]] = []  # level and day of what is in force
    first, quoted, code = dates.day_first(text), False, False
    at, now, body = 0, base, dates.front_matter_end(text)
    for line in text.splitlines(keepends=True):
        code ^= line.startswith(("```", "~~~"))
        marks = len(line) - len(line.lstrip("#"))
        heading = not code and 0 < marks < _TURN and line[marks : marks + 1].isspace()
        level = marks if heading else _QUOTE if line[0] == ">" else _TURN
        dated = None if at < body else dates.dated_line(line, first, heading)
        day = dated.date if dated else dates.without_year(line, now) if now else ""
        if level == _QUOTE and not dated:
            open_ += [(level, None)] * (not quoted)
        elif dated or day or heading:
            level = _PARAGRAPH if dated and dated.is_entry else level
            open_ = [entry for entry in open_ if entry[0] < level]
            if dated or day:
                open_.append((level, date.fromisoformat(day) if day else None))
        elif line.isspace():
            open_ = [entry for entry in open_ if entry[0] != _PARAGRAPH]
        else:
            lowest = _PARAGRAPH if dates.ENTRY.match(line) else _QUOTE
            open_ = [entry for entry in open_ if entry[0] < lowest]
        here = open_[-1][1] if open_ else base
        if dated or here != now:
            found.append(Anchor(at, here, at + dated.end if dated else 0))
        now, quoted = here, line[0] == ">" or (quoted and line.isspace())
        at += len(line)
    return found


@dataclass(frozen=True, slots=True)
class _Match:
    """Words that may mean an interval; without one they mean none, and hide what is in them."""

    start: int
    end: int
    interval: Interval | None
    anchor: date | None = None
    weekday: bool = False
    without_year: bool = False

    def when(self, interval: Interval) -> When:
        first, last = (day.isoformat() for day in interval)
        anchor = self.anchor.isoformat() if self.anchor else ""
        return When(self.start, self.end, first, last, "resolved" if anchor else "stated", anchor)


# ---- stated dates -------------------------------------


def _stated(text: str, day_first: bool | None, languages: Sequence[str]) -> Iterator[_Match]:
    """Days, months, years and spans. What says no day of a month has the months of a language of the text: Mars 2020
    is no month in English."""
    forms = (*dates.DAYS, *dates.SPANS, *dates.RANGES)
    for start, end, first, last in dates.dates_in(text, forms, day_first, dates.months_of(languages)):
        other = not first or _of_calendar(text, start, end, len(first) == 10)
        yield _Match(start, end, None if other else _interval(first, last))


def _of_calendar(text: str, start: int, end: int, exact: bool) -> bool:
    """Is this of another calendar, or a year that begins on another day?"""
    around = text[max(start - _AROUND, 0) : end + _AROUND // 2]
    return bool(_FORMS.calendar.search(around) or (not exact and _FORMS.fiscal.search(around)))


def _interval(first: str, last: str) -> Interval:
    return date.fromisoformat(dates.days(first)[0]), date.fromisoformat(dates.days(last)[1])


# ---- relative expressions -------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of a match say; an absent one is None. `which`: -1 last, 0 this, 1 next, or
    the direction of a number."""

    day: int | None = None
    number: int | None = None
    unit: str = ""
    weekday: int | None = None
    month: int | None = None
    season: int | None = None  # its first month
    d: int | None = None
    which: int | None = None


def _relative(text: str, words: _Vocabulary, starts: Sequence[int], anchors: Sequence[Anchor]) -> Iterator[_Match]:
    for match, said in words.matches(text):
        at = bisect_right(starts, match.start()) - 1
        anchor = anchors[at].day if at >= 0 else None
        named = said.weekday is not None or said.month is not None
        if anchor is None or (named and said.which is None and words.is_usual(match)):
            continue
        hides = _of_calendar(text, *match.span(), said.d is not None)
        try:
            interval = None if hides else _resolved(anchor, said, words, match)
        except (ValueError, OverflowError, IndexError):  # a day that the calendar does not have
            interval, hides = None, True
        if interval or hides:
            without_year = said.month is not None and said.which is None
            yield _Match(*match.span(), interval, anchor, said.weekday is not None, without_year)


def _resolved(anchor: date, said: _Words, words: _Vocabulary, match: re.Match[str]) -> Interval | None:
    which, month, count = said.which or 0, said.month or said.season or 0, 1 if said.month else 3
    if said.day is not None:
        return _period(anchor, "day", said.day)
    if said.number is not None:
        return _away(anchor, said.unit, which * said.number)
    if said.unit == "year" and month:  # 去年八月
        iso = dates.iso(anchor.year + which, said.month or 0, said.d or 0)
        return _months(anchor.year + which, month, 3) if said.season else _interval(iso, iso)
    if month:
        return _named(anchor, said, month, count)
    if said.weekday is not None:
        return _weekday(anchor, said, said.weekday, words.tense(match))
    tense = words.tense(match)
    if said.unit == "day" or (which > 0 > tense):  # the next month he was in Paris
        return None
    if said.unit == "weekend" and which == 0 and anchor.weekday() < 5:
        which = min(tense, 0)  # this weekend was fun
    if said.unit == "week" and words.name == "en" and which == -1:
        return anchor - timedelta(days=7), anchor - timedelta(days=1)
    return _period(anchor, said.unit, which)


def _months(year: int, month: int, count: int = 1) -> Interval:
    """`count` months from this one on; the month may be less than 1 or more than 12."""
    first, last = year * 12 + month - 1, year * 12 + month + count - 2
    end = date(last // 12, last % 12 + 1, monthrange(last // 12, last % 12 + 1)[1])
    return date(first // 12, first % 12 + 1, 1), end


def _period(anchor: date, unit: str, shift: int) -> Interval:
    """The day, week, weekend, month or year `shift` after that of the anchor."""
    if unit == "day":
        day = anchor + timedelta(days=shift)
        return day, day
    if unit == "month":
        return _months(anchor.year, anchor.month + shift)
    if unit == "year":
        return _months(anchor.year + shift, 1, 12)
    monday = anchor - timedelta(days=anchor.weekday()) + timedelta(weeks=shift)
    return monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6)


def _away(anchor: date, unit: str, shift: int) -> Interval:
    """The day, the week around it, the month or year `shift` units away."""
    if unit not in ("week", "weekend"):
        return _period(anchor, unit, shift)
    middle = anchor + timedelta(weeks=shift)
    return middle - timedelta(days=3), middle + timedelta(days=3)


def _weekday(anchor: date, said: _Words, weekday: int, tense: int) -> Interval | None:
    """Last, next or this Sunday, and Tuesday of last week. Without such a word it goes by the tense;
    a report of that Monday in the past tense means the same day."""
    which, same = said.which, anchor.weekday() == weekday
    if said.unit and which is not None:
        monday = _period(anchor, "week", which)[0]
        found = _period(monday, "day", weekday)
        return found if said.unit == "week" and (which or found[0] <= anchor or tense >= 0) else None
    if which is None and (not tense or (same and tense > 0)):
        return None
    if not which:
        if same:
            return anchor, anchor
        which = tense or 1
    # The first such day behind the anchor, or the last before it, and whole weeks beyond.
    ahead, behind = ((weekday - anchor.weekday() - 1) % 7 + 1, (anchor.weekday() - weekday - 1) % 7 + 1)
    shift = ahead + 7 * (which - 1) if which > 0 else -behind + 7 * (which + 1)
    return _period(anchor, "day", shift)


def _named(anchor: date, said: _Words, month: int, count: int) -> Interval | None:
    """The last, next or this month or season of a name, or day of a month; without such a word the
    nearest within a quarter."""
    years = range(anchor.year - 2, anchor.year + 3)
    every = [_months(year, month, count) for year in years]
    if said.d:
        isos = [dates.iso(year, month, said.d) for year in years]
        every = [_interval(iso, iso) for iso in isos if iso]
    if not every:
        raise ValueError("a day that no year has")
    which = said.which
    if which:
        before = [interval for interval in every if interval[1] < anchor]
        after = [interval for interval in every if interval[0] > anchor]
        return before[which] if which < 0 else after[which - 1]
    found = min(every, key=lambda interval: abs((interval[0] - anchor).days))
    return found if which == 0 or abs((found[0] - anchor).days) <= _QUARTER else None


# ---- vocabularies -------------------------------------

_TENSES = {"past": -1, "present": 0, "future": 1}


class _Vocabulary:
    """The words of one language, its patterns compiled."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.name, han = name, name == "zh"
        months = dates.MONTH_WORDS.get(name) or table["month"]
        self._values: dict[str, dict[str, Any]] = {
            "day": table["day"],
            "which": table["which"],
            "year": table.get("year", {}),
            "unit": {words: unit for unit, words in table["unit"].items()},
            "weekday": {words: at for at, words in enumerate(table["weekday"])},
            "season": table["season"],
            "month": {words: at for at, words in enumerate(months, 1)},
            "number": {words: at for at, words in enumerate(table["number"], 1)},
        }
        places = {
            kind: "|".join(sorted("|".join(words).split("|"), key=len, reverse=True)) or "(?!)"
            for kind, words in self._values.items()
        }
        numerals = _TABLES["numerals"][han]
        places["number"] = numerals if han else f"{places['number']}|{numerals}"
        places["d"] = _TABLES["day_of_month"][han]
        before, behind = ("(?:", ")") if han else (r"(?<![\w-])(?<!\d[.,])(?:", r")(?![\w%]|-\w|[.,/]\d)")
        self._patterns: list[tuple[re.Pattern[str], int | None]] = []
        for template, *which in table["patterns"]:
            pattern = re.sub(r"\{([a-z_]+)(2?)\}", lambda m: f"(?P<{m[1]}{m[2]}>{places[m[1]]})", template)
            compiled = re.compile(before + pattern + behind, re.IGNORECASE)
            self._patterns.append((compiled, which[0] if which else None))
        bounds = ("", "") if han else (r"(?<![\w’'])", r"(?![\w])")
        verbs = "|".join(f"(?P<{tense}>{table[tense]})" for tense in table["tenses"])
        self._every = re.compile(f"{bounds[0]}(?:{table['every']}){bounds[1]}", re.IGNORECASE)
        self._verbs = re.compile(f"{bounds[0]}(?:{verbs}){bounds[1]}", re.IGNORECASE)

    def matches(self, text: str) -> Iterator[tuple[re.Match[str], _Words]]:
        for pattern, which in self._patterns:
            for match in pattern.finditer(text):
                if not _is_name(match):
                    yield match, self._read(match, which)

    def _read(self, match: re.Match[str], which: int | None) -> _Words:
        """The values of the words of a match."""
        values: dict[str, Any] = {"which": which}
        for name, text in match.groupdict().items():
            if text:
                kind = name.rstrip("2")
                values[kind] = self._value(kind, " ".join(text.lower().split()))
        if "year" in values:
            values |= {"which": values.pop("year"), "unit": "year"}
        return _Words(**values)

    def _value(self, kind: str, word: str) -> Any:
        for words, value in self._values.get(kind, {}).items():
            if re.fullmatch(words, word, re.IGNORECASE):
                return value
        return dates.number(word)

    def is_usual(self, match: re.Match[str]) -> bool:
        """Does the sentence speak of every year, or each Sunday?"""
        return any(map(self._every.search, _sentence(match)))

    def tense(self, match: re.Match[str]) -> int:
        """The tense of the last verb before the expression in its sentence, else of the first behind
        it: -1 past, 1 future, 0 for the present and without a verb."""
        before, after = _sentence(match)
        verbs = list(self._verbs.finditer(f"{before} {after}"))
        verb = next((verb for verb in reversed(verbs) if verb.start() < len(before)), None)
        verb = verb or next(iter(verbs), None)
        return _TENSES[verb.lastgroup or ""] if verb else 0


def _sentence(match: re.Match[str]) -> tuple[str, str]:
    """The sentence around an expression, before and behind it."""
    before = match.string[max(match.start() - _SENTENCE, 0) : match.start()]
    after = match.string[match.end() : match.end() + _SENTENCE]
    return _SENTENCE_END.split(before)[-1], _SENTENCE_END.split(after)[0]


def _is_name(match: re.Match[str]) -> bool:
    """Is a word in lower case a verb and no month or weekday (they may, to march, the sun), or a
    capitalised day word inside a sentence a name (USA Today)?"""
    groups = match.groupdict()
    if groups.get("day"):
        before = match.string[max(match.start() - 2, 0) : match.start()]
        return match[0][0].isupper() and before[:1].isalnum()
    word = groups.get("month") or groups.get("weekday") or ""
    return word in ("may", "march", "mar", "sun", "sat", "mon", "wed")


@cache
def _vocabulary(language: str) -> _Vocabulary:
    """Of another language than these five the words of English, which its texts quote."""
    name = language if language in _TABLES else "en"
    return _Vocabulary(name, _TABLES[name])


def _languages(text: str) -> list[str]:
    """Chinese where a text has its letters, and the language of its Latin letters."""
    latin = [latin_language(text) or "en"] if re.search(r"[A-Za-z]", text) else []
    return ["zh"] * holds_cjk(text) + latin
