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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import Patterns, folded, latin_language, table

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


def expressions(
    text: str, anchors: Sequence[Anchor] = (), language: str = "", day_first: bool | None = None
) -> list[When]:
    """Temporal expressions of a text, in order, none inside another.

    `anchors` are sorted by offset. `language` is one of en, de, fr, es, zh;
    by default it is recognised. `day_first`: the order of 3/4/2024, if the document tells it."""
    languages = [language] if language else _languages(text)
    matches = list(_stated(text, day_first, languages))
    starts = [anchor.at for anchor in anchors]
    for vocabulary in map(_vocabulary, languages if anchors else ()):
        for match, words in vocabulary.matches(text):
            at = bisect_right(starts, match.start()) - 1
            anchor = anchors[at].day if at >= 0 else None
            if anchor and (found := _resolved(match, words, anchor)):
                matches.append(found)
    heads = [(anchor.at, anchor.until) for anchor in anchors if anchor.until]
    return [match.when() for match in _kept(text, _outermost(matches), heads)]


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
        heading = None if code else dates.HEADING.match(line)
        level = len(heading[1]) if heading else dates.QUOTE if line[0] == ">" else dates.TURN
        dated = None if at < body else dates.dated_line(line, first, bool(heading))
        day = dated.date if dated else dates.without_year(line, now) if now else ""
        if level == dates.QUOTE and not dated:
            open_ += [(level, None)] * (not quoted)
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
        now, quoted = here, line[0] == ">" or (quoted and line.isspace())
        at += len(line)
    return found


def _day(iso_date: str) -> date | None:
    return date.fromisoformat(iso_date) if iso_date else None


# ---- which expressions count -------------------------------------


@dataclass(frozen=True, slots=True)
class _Match:
    """Words that may mean an interval; without one they mean none, and hide what is in them.
    `kind`: a "weekday", or what says no "year"."""

    start: int
    end: int
    interval: Interval | None
    anchor: date | None = None
    kind: str = ""
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


def _kept(text: str, found: Sequence[_Match], heads: Sequence[tuple[int, int]]) -> Iterator[_Match]:
    """Those that mean an interval and stand in no head; no weekday before its date, and no day without a
    year, unless it is to come, where the last year that the text says is another one than the anchor's
    ("In 1943 she married. On 3 May she moved.")."""
    years: Interval | None = None  # that the text says last
    for expression, after in zip(found, [*found[1:], None], strict=False):
        head = bisect_right(heads, (expression.start, len(text) + 1)) - 1
        if expression.interval is None or (head >= 0 and expression.start < heads[head][1]):
            continue
        if expression.kind == "weekday" and after:
            if _TO_DATE.fullmatch(text, expression.end, after.start):
                continue
        if expression.kind != "year":
            years = expression.interval
        elif years and expression.anchor:
            if not years[0].year <= expression.anchor.year <= years[1].year:
                continue
        yield expression


# ---- stated dates -------------------------------------


_SEASONS = {
    word: month
    for name in ("en", "de", "fr", "es", "zh")
    for words, month in _TABLES[name]["season"].items()
    for word in words.split("|")
}
_BEFORE, _TO = (
    {name: _TABLES[name][kind].split("|") for name in ("en", "de", "fr", "es")}
    for kind in ("before", "to")
)
_WORDS = ("before", "to", "word", "word2", "season")  # parts of forms that a language has
_EDGE = r"(?<![\w-])(?<!\d[.,])(?:", r")(?![\w%]|-\w|[.,/]\d)"


def _compiled() -> Iterator[re.Pattern[str]]:
    places = dates.PARTS | _TABLES["places"]
    places["{season}"] = f"(?P<season>{'|'.join(_SEASONS)})"
    places["{before}"] = f"(?P<before>{'|'.join(chain(*_BEFORE.values()))})"
    places["{to}"] = f"(?: (?P<to>{'|'.join(chain(*_TO.values()))}) | ?[-–] ?)"
    for form in _TABLES["stated"]:
        whole = form if "年" in form else form.join(_EDGE)
        yield re.compile(dates.filled(whole, places), re.IGNORECASE)


_DAYS = [  # 61131-3 Mars 1999
    form
    if "年" in form.pattern or form in dates.NUMERIC
    else re.compile(rf"(?<!\w-){form.pattern}")
    for form in dates.DAYS
]
_FORMS_OF_DATES = [*_DAYS, *dates.SPANS], [*_compiled()]
_WITHOUT_HAN = [[form for form in forms if "〇" not in form.pattern] for forms in _FORMS_OF_DATES]


def _stated(text: str, day_first: bool | None, languages: Sequence[str]) -> Iterator[_Match]:
    """Days, months and quarters as dates.toml has them, years, decades, seasons and spans. What says
    no day of a month has the words of a language of the text: Marco 2019 is no month in English."""
    if dates.DIGITS.search(text) is None:
        return
    days, others = _FORMS_OF_DATES if "年" in text or "년" in text else _WITHOUT_HAN
    known = frozenset(dates.MONTHS_OF["ru"]).union(*map(_words, languages))
    for start, end, day in dates.dates_in(text, days, day_first, known.intersection(dates.MONTHS)):
        first, last = map(date.fromisoformat, dates.days(day)) if day else (None, None)
        interval = (first, last) if first and last else None
        other = _of_calendar(text, start, end, len(day) == 10)
        yield _Match(start, end, None if other else interval)
    for form in others:
        for match in form.finditer(text):
            fields = {name: word for name, word in match.groupdict().items() if word}
            if "d" not in fields and not known.issuperset(
                folded(fields[name]) for name in _WORDS if name in fields
            ):
                continue
            other = _of_calendar(text, *match.span(), "d" in fields)
            try:
                interval = _span(fields)
            except ValueError:  # a day that the calendar does not have
                interval, other = None, True
            if interval or other:
                yield _Match(*match.span(), None if other else interval)


@cache
def _words(language: str) -> frozenset[str]:
    """The words of stated dates of a language, in folded form; those of English where it has none
    here."""
    name = language if language in _TABLES else "en"
    seasons = "|".join(_TABLES[name]["season"]).split("|")
    words = map(folded, [*_BEFORE.get(name, ()), *_TO.get(name, ()), *seasons])
    return frozenset(words).union(dates.MONTHS_OF.get(language, dates.MONTHS_OF["en"]))


def _of_calendar(text: str, start: int, end: int, exact: bool) -> bool:
    """Is this of another calendar, or a year that begins on another day?"""
    around = text[max(start - _AROUND, 0) : end + _AROUND // 2]
    return bool(_FORMS.calendar.search(around) or (not exact and _FORMS.fiscal.search(around)))


def _span(fields: Mapping[str, str]) -> Interval | None:
    """The days from the first to the second date of a form, or of its year, season or decade; None
    where its words are no months."""
    numbers = {name: dates.number(word) for name, word in fields.items()}
    if decade := numbers.get("decade"):
        century = not decade % 100 and decade != 2000  # the 1800s
        return _months(decade, 1, 1200 if century else 120)
    year = numbers["y"]
    if "season" in fields:
        month = _SEASONS.get(fields["season"].casefold())
        return _months(year, month, 3) if month else None
    for name, key in (("word", "m"), ("word2", "m2")):
        if name in fields:
            numbers[key] = dates.MONTHS.get(folded(fields[name]), 0)
            if not numbers[key]:
                return None
    if "m" not in numbers:
        last = numbers.get("y2", year)
        return _months(year, 1, 12 * (last - year + 1)) if 0 <= last - year <= 300 else None
    month, month2 = numbers["m"], numbers.get("m2", numbers["m"])
    if "d" not in numbers:
        begins = year - (month2 < month)  # December to January 2024
        return _months(begins, month)[0], _months(year, month2)[1]
    day, day2 = numbers["d"], numbers.get("d2", numbers["d"])
    first, last = date(year, month, day), date(year, month2, day2)
    if first > last:
        raise ValueError("ends before it begins")
    return first, last


# ---- intervals -------------------------------------


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


# ---- relative expressions -------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """What the words of a match say; an absent one is None. `which`: -1 last, 0 this, 1 next, or
    the direction of a number. `tense`: -1 past, 1 future, 0 none."""

    day: int | None = None
    number: int | None = None
    unit: str = ""
    weekday: int | None = None
    month: int | None = None
    d: int | None = None
    season: int | None = None
    which: int | None = None
    open: bool = False  # in two weeks, in 40 years: ahead, if the verb is of the future
    lasting: bool = False  # the last two weeks, since three years
    of_year: bool = False  # a month, day or season of last year
    tense: int = 0
    every: bool = False  # every year, each Sunday: no one day
    about: bool = False
    few: bool = False
    language: str = "en"

    @property
    def kind(self) -> str:
        """As `_Match` has it."""
        if self.weekday is not None:
            return "weekday"
        # "Last May" counts from the anchor, and a day to come is none of a narrative.
        open_year = self.which is None and self.tense <= 0
        return "year" if (self.month or self.d) and open_year else ""


def _resolved(match: re.Match[str], words: _Words, anchor: date) -> _Match | None:
    """What a relative expression means; None where that is unclear."""
    if words.every and words.which is None and (words.weekday is not None or words.month):
        return None
    hides = _of_calendar(match.string, *match.span(), words.d is not None)
    try:
        interval = None if hides else _interval(anchor, words)
    except (ValueError, OverflowError, IndexError, StopIteration):
        interval, hides = None, True  # a day that the calendar does not have
    if interval is None and not hides:
        return None
    about = words.about or words.few
    return _Match(*match.span(), interval, anchor, words.kind, about)


def _interval(anchor: date, words: _Words) -> Interval | None:
    which, tense = words.which, words.tense
    if words.day is not None:
        return _period(anchor, "day", words.day)
    if words.number is not None:
        # "The worst storm in 40 years" and "he made it in two days" do not look ahead.
        if words.open and tense <= 0:
            return None
        if words.lasting:
            return _away(anchor, words.unit, -words.number)[0], anchor
        return _away(anchor, words.unit, (which or 0) * words.number, int(words.few))
    if words.of_year:
        year = anchor.year + (which or 0)
        if words.d:
            day = date(year, words.month or 0, words.d)
            return day, day
        if words.month or words.season:
            return _months(year, words.month or words.season or 0, 1 if words.month else 3)
        return _months(year, 1, 12)
    if words.unit and words.weekday is None:
        return _unit(anchor, words)
    if words.weekday is not None:
        return _named_weekday(anchor, words, words.weekday)
    return _day_of_month(anchor, words, words.d) if words.d else _named_month(anchor, words)


def _unit(anchor: date, words: _Words) -> Interval | None:
    """This, the last or the next unit; in English the last week is the seven days before."""
    which = words.which or 0
    elsewhere = which > 0 and words.tense < 0  # the next month he was in Paris
    if elsewhere or words.unit in ("day", "fortnight", "decade"):
        return None
    if words.unit == "weekend" and which == 0 and words.tense < 0 and anchor.weekday() < 5:
        which = -1
    if words.unit == "week" and words.language == "en" and abs(which) == 1:
        first = anchor + timedelta(days=1 if which > 0 else -7)
        return first, first + timedelta(days=6)
    return _period(anchor, words.unit, which)


def _named_weekday(anchor: date, words: _Words, weekday: int) -> Interval | None:
    """Last, next or this Sunday; "this Sunday" of the past is one that was. Without such a word it
    goes by the tense; a report of that Monday in the past tense means the same day."""
    which, tense, same = words.which, words.tense, anchor.weekday() == weekday
    if words.unit and which is not None:  # Tuesday of last week, 下周三
        if words.unit != "week":
            return None
        found = _period(_period(anchor, "week", which)[0], "day", weekday)
        return None if found[0] > anchor and not which and tense < 0 else found
    if which is None:
        if not tense or (same and tense > 0):
            return None
        return (anchor, anchor) if same else _weekday(anchor, weekday, tense)
    return _weekday(anchor, weekday, -1 if which == 0 and tense < 0 and not same else which)


def _named_month(anchor: date, words: _Words) -> Interval | None:
    """Last May, this summer; in May by the tense, without one the nearest at most a quarter away."""
    month, count = (words.month, 1) if words.month else (words.season or 0, 3)
    every = [_months(anchor.year + shift, month, count) for shift in range(-3, 4)]
    if not words.which:
        found = _by_tense(anchor, every, 1 if words.which == 0 and not words.tense else words.tense)
        far = abs((found[0] - anchor).days) > _QUARTER
        return None if far and words.which is None and not words.tense else found
    if words.which < 0:
        return [interval for interval in every if interval[1] < anchor][words.which]
    return [interval for interval in every if interval[0] > anchor][words.which - 1]


def _day_of_month(anchor: date, words: _Words, number: int) -> Interval | None:
    """3 May without a year, or the 3rd: by "last" or "next", else by the tense. In the past or without a tense 3 May
    is the nearest within a quarter, since the verb is often that of another clause ("said the vote on 5 May")."""
    if words.month is None and not words.tense:
        return None
    firsts = (_months(anchor.year, anchor.month + shift)[0] for shift in range(-12, 13))
    days = [
        (first.replace(day=number), first.replace(day=number))
        for first in firsts
        if words.month in (None, first.month) and number <= monthrange(first.year, first.month)[1]
    ]
    if not days:
        raise ValueError("not in these years")
    if words.which:
        return _by_tense(anchor, [day for day in days if day[0] != anchor], words.which)
    nearest = _by_tense(anchor, days, 0)
    if words.month and words.tense <= 0 and abs((nearest[0] - anchor).days) <= _QUARTER:
        return nearest
    return _by_tense(anchor, days, words.tense)


# ---- vocabularies -------------------------------------

_HAN = re.compile(r"[\u4e00-\u9fff]")


class _Vocabulary:
    """The words of one language, its patterns compiled."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self._name, self._han, self._few = name, name == "zh", re.compile(table["few"])
        self._words: dict[str, dict[str, Any]] = {
            "unit": {words: unit for unit, words in table["unit"].items()},
            "weekday": {words: at for at, words in enumerate(table["weekday"])},
            "month": {words: at for at, words in enumerate(table["month"], 1)},
            "number": {words: at for at, words in enumerate(table["number"], 1)}
            | {table["few"]: 3},
            "year_unit": {table["unit"]["year"]: ""},
        } | {kind: table.get(kind, {}) for kind in ("day", "which", "which_year", "season")}
        places = {
            kind: "|".join(sorted("|".join(words).split("|"), key=len, reverse=True)) or "(?!)"
            for kind, words in self._words.items()
        }
        places |= {"about": f"(?:{table['about']})", "d": _TABLES["day_of_month"][self._han]}
        numerals = _TABLES["numerals"][self._han]
        places["number"] = numerals if self._han else f"{places['number']}|{numerals}"
        before, behind = ("(?:", ")") if self._han else _EDGE
        self._patterns: list[tuple[re.Pattern[str], int | None]] = []
        for template, *which in table["patterns"]:
            pattern = re.sub(
                r"\{([a-z_]+)(2?)\}", lambda m: f"(?P<{m[1]}{m[2]}>{places[m[1]]})", template
            )
            compiled = re.compile(before + pattern + behind, re.IGNORECASE)
            self._patterns.append((compiled, which[0] if which else None))
        bounds = ("", "") if self._han else (r"(?<![\w’'])", r"(?![\w])")
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
        clause, at = self._clause(match)
        values: dict[str, Any] = {"which": which, "language": self._name}
        values |= {"tense": self._tense(clause, at), "every": bool(self._every.search(clause))}
        for name, text in match.groupdict().items():
            kind, word = name.rstrip("2"), " ".join((text or "").lower().split())
            if not word:
                continue
            if kind in ("which_year", "year_unit"):
                values["of_year"] = True
            if kind != "year_unit":
                flag = kind in ("about", "open", "lasting")
                values[kind.removesuffix("_year")] = flag or self._value(kind, word)
            values["few"] = (
                values.get("few") or kind == "number" and bool(self._few.fullmatch(word))
            )
        return _Words(**values)

    def _clause(self, match: re.Match[str]) -> tuple[str, int]:
        """The clause around an expression without it, and where it stood; the sentence where the
        clause has no words of its own."""
        line = match.string[max(match.start() - _NEAR, 0) : match.start()].rpartition("\n")[2]
        after = match.string[match.end() : match.end() + _NEAR].partition("\n")[0]
        for ends in (r"[,;.!?。，！？；]", r"[.!?。！？]"):
            parts = re.split(ends, line)[-1], re.split(ends, after)[0]
            size = len("".join(parts)) if self._han else len(" ".join(parts).split())
            if size >= (1 if self._han else _DATED):
                break
        return f"{parts[0]} {parts[1]}", len(parts[0])

    def _tense(self, clause: str, at: int) -> int:
        """The tense of the last verb before the expression, else of the first behind it."""
        verbs = list(self._verbs.finditer(clause))
        before = [verb for verb in verbs if verb.start() < at]
        verb = before[-1] if before else verbs[0] if verbs else None
        return {"past": -1, "future": 1}.get(str(verb and verb.lastgroup), 0)

    def _value(self, kind: str, word: str) -> Any:
        for words, value in self._words.get(kind, {}).items():
            if re.fullmatch(words, word, re.IGNORECASE):
                return value
        return dates.number(word)


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
    return ["zh"] * bool(_HAN.search(text)) + latin
