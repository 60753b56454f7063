"""Temporal expressions: what a text says about when, as intervals of days.

`expressions` finds stated dates (7 May 2023, May 2023, 2023年5月, in 1868) and relative ones
(yesterday, last Friday, vor zwei Wochen, 上个月) in English, Chinese, German, French and Spanish; the
words are in temporal.toml. A relative expression is resolved against its anchor: the nearest dated
heading or turn above it, else the date of the document (`anchors`). Without an anchor it is not
resolved, and it is never resolved against today. What could mean two things (03/04/2024, fiscal
years, days of the lunar calendar) and what the calendar does not have (30 February) is left out, with
all that stands in it. Weeks begin on Monday; seasons are those of the
northern hemisphere."""

from __future__ import annotations

import re
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import compiled, latin_language, table

Kind = Literal["stated", "resolved", "approximate", "document"]
Interval = tuple[date, date]


class Anchor(NamedTuple):
    """From the character `at` on, relative expressions count from this day, if there is one. The
    words up to `until` say it; they tell of no event."""

    at: int
    day: date | None
    until: int = 0


_TABLES = table(__file__)
_FORMS = compiled(_TABLES["forms"])
TURN = 7  # level of a turn or short line, below all headings
HEADING = 80  # characters of a line whose date holds for what stands below it
SHORT = 20  # characters of a day without its year
RANKED = 60  # characters before "in two weeks" in which "the third" or "twice" counts
CLAUSE = 3  # words of a clause that has its own tense; one character of Chinese
NEARLY = 100  # days to a day without its year and tense
TOLD = 500  # characters above a day without its year in which another year counts
NEAR = 200  # characters in which a word of the future or of another calendar counts


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


class _Unclear(Exception):
    """The words say no day here: they lack an anchor or a tense."""


def expressions(
    text: str, anchors: Sequence[Anchor] = (), language: str = "", day_first: bool | None = None
) -> list[When]:
    """Temporal expressions of a text, in order, none inside another.

    `anchors` are sorted by offset. `language` is one of en, de, fr, es, zh;
    by default it is recognised. `day_first`: the order of 3/4/2024, if the document tells it."""
    starts = [one[0] for one in anchors]
    # 2023-05-07, 07.05.2023 and, where the day cannot be a month, 25/12/2023, in any language. An
    # empty date stands for words that mean no day: nor do parts of them, 30 [February 2024].
    figures = dates.found(text, dates.NUMERIC, day_first) if _FORMS.figures.search(text) else []
    found = [When(start, end, day, day, "stated") for start, end, day in figures]
    for vocabulary in _vocabularies(text, language):
        for match, rule, given in vocabulary.matches(text):
            at = bisect_right(starts, match.start()) - 1
            day = anchors[at][1] if at >= 0 else None
            try:
                (first, last), kind = _meaning(vocabulary, match, rule, given, day)
            except _Unclear:
                continue
            except (ValueError, OverflowError):
                found.append(When(*match.span(), "", "", "stated"))
                continue
            span = match.span("span" if match.groupdict().get("span") else 0)
            anchor = day.isoformat() if day and kind != "stated" else ""
            found.append(When(*span, first.isoformat(), last.isoformat(), kind, anchor))
    stamps = [(one[0], one[2], False) for one in anchors if one[2:] and one[2]]
    hidden = sorted([*stamps, *_titles(text)])
    kept = [one for one in _outermost(found) if one.start]
    shown = []
    for one in _joined(text, kept):  # none in one of these parts; some hide only relative ones
        at = bisect_right(hidden, (one.char_start, one.char_end, True)) - 1
        start, end, relative = hidden[at] if at >= 0 else (0, 0, False)
        if not start <= one.char_start < end or (relative and not one.anchor):
            shown.append(one)
    return shown


def _titles(text: str) -> Iterator[tuple[int, int, bool]]:
    """Titles of songs, films and books, and whether they hide only relative dates: what stands in
    《》, and in quotation marks where every word is capitalised. What ends with a mark of a sentence
    is said by someone."""
    for match in _FORMS.quoted.finditer(text):
        words = match[0][1:-1].strip()
        title = match[0][0] in "《〈"
        if title or (words[-1:] not in ".,!?。，！？…" and (_FORMS.title.fullmatch(words))):
            yield *match.span(), not title


def anchors(text: str, document_date: str = "") -> list[Anchor]:
    """The days from which relative expressions count, with the offsets from which on they hold.

    The date of the document, every heading with a date, line that is a date alone (with a weekday,
    place or `Date:`), and head of a turn or message. A heading holds until the next of its level or
    a higher one, a turn until the next turn or heading, a dated entry of a list or log for its
    paragraph, the head of a quoted mail for what is quoted; a turn whose day cannot be read has
    none. Of front matter only the date of a document counts, where none is given."""
    base = _date(document_date[:10])
    found = [Anchor(0, base)] if base else []
    above: list[_Head] = []  # what holds, by level
    matter, first = _FORMS.front_matter.match(text), dates.day_first(text)
    page = text.count("](http", 0, dates.PAGE) >= dates.LINKED
    at, day, code, before, before_key = 0, base, False, "", False
    for line in text.splitlines(keepends=True):
        at += len(line)
        code ^= line.startswith(("```", "~~~"))
        heading = None if code else _FORMS.heading.match(line)
        above = [one for one in above if one.holds(line)]
        key = line.partition(":")[0].strip().lower() in dates.KEYS
        again = key and line.lower().lstrip().startswith("updated") and before_key
        before_key, said = key, None
        if matter is None or at > matter.end() or (key and base is None):
            quotes = _depth(text, at) if line.rstrip().endswith((":", "：")) else 0
            said = _quotes(before, line, quotes, first) if quotes > _depth(line) else None
            if said is None and not again and (heading or _FORMS.digit.search(line)):
                said = _said(line, first, above[-1].day if above else base)
        if page and said and said.day and base and said.day.year > base.year:
            said = said if heading or _FORMS.turn.match(line) else None  # the day of saving a page
        if said or heading:
            level = 0 if key else len(heading[1]) if heading else TURN + abs(said.depth)  # type: ignore[union-attr]
            above = [one for one in above if one.level < level]
            above += [said._replace(level=level)] if said else []
        now, before = above[-1].day if above else base, line
        if said or now != day:
            found.append(Anchor(at - len(line), now, at - len(line) + said.end if said else 0))
        day = now
    return found


class _Head(NamedTuple):
    """What says the day of the lines below, up to the character `end` of its own. It holds at this
    `depth` of quotation (`> `) or more, with -1 only in its paragraph."""

    day: date | None
    end: int = 0
    depth: int = 0
    level: int = 0

    def holds(self, line: str) -> bool:
        if self.depth < 0:
            return not (line.isspace() or _FORMS.item.match(line))
        return self.depth <= _depth(line) or line.isspace()


def _depth(text: str, at: int = 0) -> int:
    return _FORMS.quotation.match(text, at)[0].count(">")  # type: ignore[index]


def _quotes(before: str, line: str, depth: int, first: bool | None) -> _Head | None:
    """`On Mon, 4 Mar 2024 Bob wrote:` above what is quoted, on one line or two."""
    for head in (line, before + line):
        if days := dates.found(head, dates.DAYS, first):
            known = {day for *_, day in days}
            end = days[-1][1] if head is line else 0
            return _Head(_date(known.pop() if len(known) == 1 else ""), end, depth)
    return None


def _date(day: str) -> date | None:
    return date.fromisoformat(day) if day else None


def _said(line: str, first: bool | None, last: date | None) -> _Head | None:
    """The day that the lines below this one, or the words behind its head, were said; no day where
    the stamp of a turn cannot be read. None for any other line. `last`: the day of what is above."""
    turn, listed, depth = _FORMS.turn.match(line), _FORMS.item.match(line), _depth(line)
    if turn:
        forms = (*dates.DAYS, *dates.STAMPS) if turn["stamp"] else dates.DAYS
        days = dates.found(line[: turn.end() + 8], forms, first)  # with its clock
        if one := _only([day for day in days if day[1] <= turn.end()], turn[0]):
            start, end, day = one
            before, after = line[:start], turn[0][end:]
            named = _FORMS.before_day.fullmatch(before) and _FORMS.after_day.fullmatch(after)
            if (turn["stamp"] or (named and day)) and dates.dates_text(turn[0], start, end):
                entry = listed or (turn["stamp"] and _FORMS.logged.match(line, end))
                return _Head(_date(day), end, -1 if entry else depth)
    if (row := _FORMS.row.match(line)) and len(of_row := dates.read(row[1])) == 10:
        return _Head(_date(of_row), row.end(1), -1)
    if line[0] == "#" and 0 < len(dates.read(line.strip(" #*\n"))) < 10:
        return _Head(None, 0, depth)  # of a month or a year
    line = line[:HEADING] if listed or len(line) <= HEADING else ""
    days = dates.found(line, (*dates.DAYS, *dates.STAMPS), first)
    if not days and not listed and last:
        return _without_year(line, last)
    if not (one := _only(days, line)):
        return None
    start, end, day = one
    before, after = line[:start], line[end:]
    if listed and before == listed[0] and _FORMS.entry.match(after):
        return _Head(_date(day), end, -1)
    named = after.strip() and _FORMS.named.fullmatch(before)
    sent = (named or _FORMS.sender.fullmatch(before)) and _FORMS.clock.fullmatch(after)
    alone = _FORMS.before_date.fullmatch(before) and _FORMS.after_date.fullmatch(after)
    titled = line[0] == "#" and not line.rstrip().endswith((".", "。", "!", "?", "|"))
    dated = (sent or (day and (alone or titled))) and dates.dates_text(line, start, end)
    return _Head(_date(day), end, depth) if dated else None


def _only(days: Sequence[tuple[int, int, str]], line: str) -> tuple[int, int, str] | None:
    """The one day of a line that is no row of a table."""
    several = len({day for *_, day in days if day}) > 1 or line.count("|") > 1
    return None if several else max(days, key=lambda one: bool(one[2]), default=None)


def _without_year(line: str, last: date) -> _Head | None:
    """A heading or line that is a day and month alone: the one nearest to the day above it."""
    said = line.strip(" #*_\n")
    said = said[_FORMS.before_date.match(said).end() :]  # type: ignore[union-attr]
    years = (last.year - 1, last.year, last.year + 1) if len(said) < SHORT else ()
    read = [dates.read(f"{said} {year}") or dates.read(f"{year}年{said}") for year in years]
    days = [date.fromisoformat(one) for one in read if len(one) == 10]
    near = [day for day in days if abs((day - last).days) <= 100]
    return _Head(near[0] if near else None, 0, _depth(line)) if days else None


def _outermost(found: Sequence[When]) -> list[When]:
    """The longest of expressions that overlap."""
    kept: list[When] = []
    for one in sorted(found, key=lambda when: (when.char_start, -when.char_end, when.start)):
        if not kept or one.char_start >= kept[-1].char_end:
            kept.append(one)
        elif one.char_end - one.char_start > kept[-1].char_end - kept[-1].char_start:
            kept[-1] = one
    return kept


def _joined(text: str, found: Sequence[When]) -> list[When]:
    """Two stated dates with "to" between them as one span."""
    kept: list[When] = []
    for one in found:
        last = kept[-1] if kept else one
        joint = _FORMS.joint.match(text, last.char_end)
        joins = joint and one.char_start <= joint.end() < one.char_end
        if joins and last.kind == one.kind == "stated" and last.end < one.start:
            kept[-1] = replace(last, char_end=one.char_end, end=one.end)
        else:
            kept.append(one)
    return kept


# ---- intervals -------------------------------------


def _day(year: int, month: int, day: int) -> Interval:
    one = date(year, month, day)
    return one, one


def _months(year: int, month: int, count: int = 1) -> Interval:
    """`count` months from this one on; the month may be less than 1 or more than 12."""
    first, last = year * 12 + month - 1, year * 12 + month + count - 2
    year, month = divmod(last, 12)
    end = date(year, month + 1, monthrange(year, month + 1)[1])
    return date(first // 12, first % 12 + 1, 1), end


def _years(year: int, count: int = 1) -> Interval:
    return date(year, 1, 1), date(year + count - 1, 12, 31)


def _span(first: int, last: int) -> Interval:
    if not 0 < last - first <= 300:
        raise _Unclear
    return _years(first, last - first + 1)


def _centuries(first: int, last: int) -> Interval:
    """The 19th century is 1801 to 1900."""
    return _to(_years(100 * first - 99)[0], _years(100 * last)[1])


def _half(interval: Interval, half: int) -> Interval:
    first, last = interval
    middle = _months(first.year, 7)[0] if last.year == first.year else _years(first.year + 50)[0]
    return (first, middle - timedelta(days=1)) if half == 1 else (middle, last)


def _to(first: date, last: date) -> Interval:
    if first >= last:
        raise ValueError("ends before it begins")
    return first, last


def _period(anchor: date, unit: str, shift: int) -> Interval:
    """The day, week, weekend, month, quarter, year or decade `shift` after that of the anchor."""
    if unit == "day":
        return (anchor + timedelta(days=shift),) * 2
    if unit in ("week", "weekend"):
        monday = anchor - timedelta(days=anchor.weekday()) + timedelta(weeks=shift)
        return monday + timedelta(days=5 * (unit == "weekend")), monday + timedelta(days=6)
    count = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[unit]
    first = ((anchor.year * 12 + anchor.month - 1) // count + shift) * count
    return _months(first // 12, first % 12 + 1, count)


_MULTIPLES = {"decade": ("year", 10), "fortnight": ("week", 2)}


def _around(anchor: date, unit: str, shift: int, slack: int) -> Interval:
    """The day, the week around it, the month or year `shift` units away; `slack` units more."""
    unit, times = _MULTIPLES.get(unit, (unit, 1))
    shift *= times
    if unit == "week":
        middle = anchor + timedelta(weeks=shift)
        return middle - timedelta(days=3 + 7 * slack), middle + timedelta(days=3 + 7 * slack)
    return _period(anchor, unit, shift - slack)[0], _period(anchor, unit, shift + slack)[1]


def _weekday(anchor: date, weekday: int, which: int) -> Interval:
    """-1: the last such day before the anchor; 0: the first on or after it; 1: the first after it;
    2 and -2 a week beyond."""
    if which < 0:
        shift = -((anchor.weekday() - weekday - 1) % 7 + 1) + 7 * (which + 1)
    else:
        shift = (weekday - anchor.weekday() - min(which, 1)) % 7 + which + 6 * (which > 1)
    return _period(anchor, "day", shift)


def _weekday_within(interval: Interval, values: Values) -> Interval:
    """Its second Tuesday, or (-1) its last one."""
    first, last = interval
    if "quarter" in values:
        found = _weekday(first + timedelta(weeks=values["quarter"] - 1), values["weekday"], 0)
    elif values["which"] < 0:
        found = _weekday(last + timedelta(days=1), values["weekday"], values["which"])
    else:
        raise _Unclear
    return found if found[0] <= last else _to(last, first)


def _exactly(day: date, unit: str, shift: int) -> Interval:
    """The day that is exactly `shift` units after this one."""
    unit, times = _MULTIPLES.get(unit, (unit, 1))
    if unit in ("day", "week"):
        return _period(day, "day", shift * times * (7 if unit == "week" else 1))
    first = _period(day, unit, shift * times)[0]
    return _day(first.year, day.month if unit == "year" else first.month, day.day)


def _week(year: int, week: int) -> Interval:
    return _period(date.fromisocalendar(year, week, 1), "week", 0)


def _nearest(anchor: date, named: Iterable[Interval], most: int = 400) -> Interval:
    """The one of that name that begins nearest to the anchor, so many days away at most."""
    near = min(named, key=lambda one: abs((one[0] - anchor).days), default=None)
    if near is None or abs((near[0] - anchor).days) > most:  # of a year that is not meant
        raise ValueError("none near")
    return near


def _by_tense(anchor: date, named: Iterable[Interval], tense: int) -> Interval:
    """The last one of that name that has begun, or (0) the next one that is not over."""
    if tense < 0:
        return [one for one in named if one[0] <= anchor][-1]
    return next(one for one in named if one[1] >= anchor)


def _which(anchor: date, named: Iterable[Interval], values: Values) -> Interval:
    """-1: the last one of that name that is over; 0: the next one that is not, or the last one of
    which is told; 1: the next that begins; -2 and 2 are one further."""
    which = values["which"]
    if which == 0:
        return _by_tense(anchor, named, -_told(values))
    if which < 0:
        return [one for one in named if one[1] < anchor][which]
    return [one for one in named if one[0] > anchor][which - 1]


def _every(anchor: date, month: int, count: int = 1) -> list[Interval]:
    """That month, or the season that begins with it, of the years around the anchor."""
    return [_months(anchor.year + shift, month, count) for shift in range(-3, 4)]


def _days_around(anchor: date, day: int, month: int = 0) -> list[Interval]:
    """The days of that number, of a month or of all months, around the anchor."""
    firsts = (_months(anchor.year, anchor.month + shift)[0] for shift in range(-12, 13))
    return [
        (first.replace(day=day),) * 2
        for first in firsts
        if month in (0, first.month) and day <= monthrange(first.year, first.month)[1]
    ]


def _part_of(interval: Interval, part: str) -> Interval:
    """Its early, mid or late third."""
    start, end = interval
    third, at = timedelta(days=(end - start).days // 3), ("early", "mid", "late").index(part)
    return (start, start + third, end - third)[at], (start + third, end - third, end)[at]


# ---- rules: what the words of a match mean -------------------------------------

# of the placeholders: day, weekday, month, unit, number, slack, which, season, y, d
Values = Mapping[str, Any]


def _base(anchor: date, values: Values) -> date:
    """The day or the next weekday that is named, else the anchor."""
    if "weekday" in values:
        return _weekday(anchor, values["weekday"], 0)[0]
    return _period(anchor, "day", values.get("day", 0))[0]


def _from_now(anchor: date, values: Values) -> Interval:
    """About a year ago is a time of that year."""
    unit, number = values["unit"], values["number"] * values.get("way", -1)
    if unit == "year" and number == -1 and values.get("about"):
        return _around(anchor, "month", -12, 2)
    return _around(anchor, unit, number, values["slack"])


def _halves(unit: str, way: int) -> tuple[str, int, int]:
    if unit not in ("year", "month"):
        raise _Unclear
    return ("month", 6 * way, 0) if unit == "year" else ("day", 15 * way, 1)


def _days(values: Values) -> Interval:
    """From a day to another one of that year, or of the year after."""
    first, last = values["month"], values.get("month2", values["month"])
    begin = date(values["y"] - (first > last), first, values["d"])
    return _to(begin, date(values["y"], last, values["d2"]))


def _part_by_tense(anchor: date, values: Values) -> Interval:
    """The end of the month, early next week: what is told of the past is not still to come."""
    if values["unit"] not in ("week", "month", "year", "quarter", "decade"):
        raise _Unclear
    found = _period(anchor, values["unit"], values.get("which2", values.get("which", 0)))
    first, last = _part_of(found, values["part"]) if "part" in values else found
    tense = values["past"] - values["future"]
    against = first > anchor if tense > 0 else tense < 0 and last < anchor
    if against and not values.keys() & {"which", "which2"}:
        raise _Unclear
    return found


def _weekend_past(anchor: date, values: Values) -> Interval:
    """The last weekend that has begun; what is planned or usual for the weekend says none."""
    if _tense(values) == 0:
        raise _Unclear
    return _period(anchor, "weekend", -1 if anchor.weekday() < 5 else 0)


def _tense(values: Values) -> int:
    """-1 where the sentence speaks of the past, 0 where it speaks of the future."""
    if values["future"] == values["past"]:
        raise _Unclear
    return 0 if values["future"] else -1


def _weekday_by_tense(anchor: date, values: Values) -> Interval:
    """On Monday: a report of that Monday in the past tense means the same day."""
    which, same = _tense(values), anchor.weekday() == values["weekday"]
    if same and which == 0:
        raise _Unclear  # today or in a week
    return (anchor, anchor) if same else _weekday(anchor, values["weekday"], which)


def _month_by_tense(anchor: date, values: Values) -> Interval:
    """Where no word tells the past from the future: the nearest such month, up to a quarter away."""
    if values["future"] != values["past"]:
        return _by_tense(anchor, _every(anchor, values["month"]), _tense(values))
    ahead = (values["month"] - anchor.month + 3) % 12 - 3
    if ahead > 3:
        raise _Unclear
    return _months(anchor.year, anchor.month + ahead)


def _day_by_tense(anchor: date, values: Values) -> Interval:
    """The nearest such day; where it is far, or on the other side than the tense of its words, only
    the next one of a future."""
    days = _days_around(anchor, values["d"], values["month"])
    tense = values["past"] - values["future"]
    found = _nearest(anchor, days, 183)
    far, ahead = abs((found[0] - anchor).days) > NEARLY, found[0] >= anchor
    if tense < 0 and far:
        return _by_tense(anchor, days, 0)
    if (tense == 0 and far) or (tense < 0 and not ahead) or (tense > 0 and found[0] > anchor):
        raise _Unclear
    return found


def _told(values: Values) -> bool:
    """Is this Sunday one that is told of, with a verb in the past tense beside it? Unclear where the
    verb stands elsewhere, or tells of what was said."""
    told = values["which"] == 0 and values["past"] and not values["future"]
    if told and (values["saying"] or not values["beside"]):
        raise _Unclear
    return bool(told)


def _weekday_of_week(anchor: date, values: Values) -> Interval:
    """A day of this week that is still to come is none that is told of."""
    found = _period(anchor, "week", values["which"])[0] + timedelta(days=values["weekday"])
    if found > anchor and values["which"] == 0 and values["past"] and not values["future"]:
        raise ValueError("neither this week's day nor this week")
    return found, found


def _unit(anchor: date, values: Values) -> Interval:
    """This, the last or the next unit; in English the last week is the seven days before."""
    unit, which = values["unit"], values["which"]
    # "The last day", "this day"; the last decade is not over at a round year.
    if unit in ("day", "fortnight") or (unit == "decade" and which == -1):
        raise _Unclear
    if unit == "week" and values["rolling_week"] and abs(which) == 1:
        first = anchor + timedelta(days=1 if which > 0 else -7)
        return first, first + timedelta(days=6)
    over = unit == "weekend" and anchor.weekday() < 5 and _told(values)
    return _period(anchor, unit, which - over)


def _ahead(anchor: date, values: Values) -> Interval:
    """In two weeks. "The worst storm in 40 years", "the third in two months" and "he made it in two
    days" do not look ahead: years need a word of the future."""
    back = values["past"] or values["unit"] in ("year", "decade")
    if values["ranked"] or (back and not values["future"]):
        raise _Unclear
    return _around(anchor, values["unit"], values["number"], values["slack"])


def _within(year: int, values: Values) -> Interval:
    """A year, or the season, month or day of it that is named."""
    if "d" in values:
        return _day(year, values["month"], values["d"])
    if "month" in values:
        return _months(year, values["month"])
    if "quarter" in values:
        return _months(year, 3 * values["quarter"] - 2, 3)
    if "half" in values:
        return _half(_years(year), values["half"])
    return _months(year, values["season"], 3) if "season" in values else _years(year)


_STATED: dict[str, Callable[[Values], Interval]] = {
    **dict.fromkeys(
        ("date", "month of year", "season of year", "quarter of year", "half of year", "year"),
        lambda v: _within(v["y"], v),
    ),
    "weekday of month": lambda v: _weekday_within(_within(v["y"], v), v),
    "week of date": lambda v: _period(_within(v["y"], v)[0], "week", 0),
    "days": _days,
    "months": lambda v: _to(
        _months(v["y"] - (v["month"] > v["month2"]), v["month"])[0], _months(v["y"], v["month2"])[1]
    ),
    "week of year": lambda v: _week(v["y"], v["week"]),
    "century": lambda v: _centuries(v["ordinal"], v.get("ordinal2", v["ordinal"])),
    "half of century": lambda v: _half(_centuries(v["ordinal"], v["ordinal"]), v["half"]),
    "decade of century": lambda v: _years(100 * v["ordinal"] - 100 + v["tens"], 10),
    "decade of year": lambda v: _years(v["y"], 10),
    "years": lambda v: _span(v["y"], v["z"]),
    # the 1800s are a century
    "decade": lambda v: _years(
        v["decade"], 10 if v["decade"] % 100 or v["decade"] == 2000 else 100
    ),
    "minguo": lambda v: _within(1911 + v["minguo"], v),
}
_RELATIVE: dict[str, Callable[[date, Values], Interval]] = {
    "day": lambda a, v: _period(a, "day", v["day"]),
    "unit": _unit,
    "unit told": lambda a, v: _unit(a, v) if not v["past"] else _day(0, 0, 0),
    "part of unit": _part_by_tense,
    "weekend past": _weekend_past,
    "weekdays ago": lambda a, v: _weekday(a, v["weekday"], -v["number"]),
    "ago": _from_now,
    "half unit": lambda a, v: _around(a, *_halves(v["unit"], v["way"])),
    "exactly": lambda a, v: _exactly(_base(a, v), v["unit"], v["way"] * v["number"]),
    "day of year": lambda a, v: _exactly(a, "year", v["year_word"]),
    "day of which month": lambda a, v: (
        (_months(a.year, a.month + v["which"])[0].replace(day=v["d"]),) * 2
    ),
    "ahead": _ahead,
    "weekday": lambda a, v: _weekday(
        a + timedelta(days=_told(v)), v["weekday"], v["which"] - _told(v)
    ),
    "weekday of that month": lambda a, v: _weekday_within(_month_by_tense(a, v), v),
    "weekday of week": _weekday_of_week,
    "month which": lambda a, v: _which(a, _every(a, v["month"]), v),
    "month of which year": lambda a, v: _within(a.year + v["which"], v),
    "month years ago": lambda a, v: _within(a.year - v["number"], v),
    "season which": lambda a, v: _which(a, _every(a, v["season"], 3), v),
    "weekday by tense": _weekday_by_tense,
    "day of month": _day_by_tense,
    "day of this month": lambda a, v: _by_tense(a, _days_around(a, v["d"]), _tense(v)),
    "lasting": lambda a, v: (_around(a, v["unit"], -v["number"], v["slack"])[0], a),
    "month": _month_by_tense,
    "week near": lambda a, v: _nearest(
        a, [_week(a.year + shift, v["week"]) for shift in (-1, 0, 1)]
    ),
    "day from a day": lambda a, v: _day(0, 0, 0),  # a week from tomorrow: "tomorrow" is another day
    "relative year": lambda a, v: _within(a.year + v["year_word"], v),
}

# These say no year: where their sentence says another one than the anchor's, it may be theirs.
_OF_A_YEAR = frozenset(
    {"day of month", "month", "weekday of that month", "month which", "season which"}
)
# These are bound by "last year", "every year" or "last month" in their sentence.
_BOUND = dict.fromkeys(("day of month", "month", "weekday of that month"), "elsewhere") | {
    "day of this month": "other_month"
}


def _meaning(
    vocabulary: _Vocabulary, match: re.Match[str], rule: str, given: Values, anchor: date | None
) -> tuple[Interval, Kind]:
    """`given`: values that the words do not say."""
    if not rule:
        raise ValueError("of another calendar, or no year")
    values, kind = vocabulary.values(match) | given, "stated"
    if rule in _STATED:
        found = _STATED[rule](values)
    elif anchor is None or values.get(_BOUND.get(rule, "")):
        raise _Unclear
    elif rule in _OF_A_YEAR and values["years"] - {anchor.year}:
        raise _Unclear
    else:
        about = values["slack"] or values.get("about") or "part" in values
        kind = "approximate" if about else "resolved"
        found = _RELATIVE[rule](anchor, values)
    return (_part_of(found, values["part"]) if "part" in values else found), kind  # type: ignore[return-value]


# ---- vocabularies -------------------------------------

_HAN_DIGITS = {ch: str(at) for at, ch in enumerate("〇一二三四五六七八九")} | {"零": "0", "○": "0"}


# A pattern is tried around the words of the first of these that it holds.
KEY_KINDS = tuple(
    "month weekday season day unit year_word minguo century decade calendar_week y d".split()
)
BEFORE, AFTER = 70, 40  # characters before and after such a word


class _Vocabulary:
    """The words of one language, its patterns compiled."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.name = name
        self.rolling_week = bool(table.get("rolling_week"))
        self._few = frozenset(str(table["few"]).split("|"))
        self._words: dict[str, dict[str, Any]] = {
            "weekday": _words({words: at for at, words in enumerate(table["weekday"])}),
            "unit": _words({words: unit for unit, words in table["unit"].items()}),
        }
        for kind in ("day", "which", "season", "part", "year_word", "century", "calendar_week"):
            self._words[kind] = _words(table.get(kind, {}))
        for kind in ("month", "number", "quarter", "half", "ordinal"):
            listed = enumerate(table.get(kind, ()), 1)
            self._words[kind] = _words({words: at for at, words in listed})
        self._words["number"] |= dict.fromkeys(self._few, 3)
        named = ("future", "past", "present", *_BOUND.values())
        self._tenses = {name: self._tense(table.get(name, "(?!)")) for name in named}
        han = name == "zh"
        places = _TABLES["places"] | (_TABLES["han_places"] if han else {})
        places |= {"about": f"(?:{table['about']})"} | {
            kind: "|".join(sorted(words, key=lambda one: (-len(one), one)))
            for kind, words in self._words.items()
            if words
        }
        # Of twenty-five years, "five years" is no part.
        places["number"] = (
            _TABLES["han_places"]["number"] if han else rf"{places['number']}|\d{{1,3}}"
        )
        counted = table.get("counted", "(?!)")
        self._counted = re.compile(
            rf"(?: ?(?:to|bis|à|a|-|–) ?\d+)? (?:{counted})\b", re.IGNORECASE
        )
        self._ranked = re.compile(table["ranked"] + r"(?:[ ,][\w'’-]+){0,3} \Z", re.IGNORECASE)
        self._rules: list[tuple[re.Pattern[str], str, str, Values]] = []
        # the last token of each word of a key kind, with its kind; characters in Chinese
        kinds = {kind: self._words[kind] for kind in KEY_KINDS if self._words.get(kind)}
        ends = ("", *table.get("weekday_ends", ()))  # Freitagabend
        self._triggers = {
            _FORMS.token.findall(word)[-1] + end: kind
            for kind in reversed(kinds)
            for word in kinds[kind]
            for end in (ends if kind == "weekday" else ends[:1])
        }
        edges = (r"(?<![\w-])(?<!\d[.,])(?:", r")(?![\w%]|-\w|[.,/]\d)")
        bounds = ("(?:", ")") if han else edges
        for template, rule, *given in table["patterns"]:
            kind = next((kind for kind in KEY_KINDS if f"{{{kind}}}" in template), "day")
            pattern = re.sub(
                r"\{([a-z_]+)(2?)\}", lambda m: f"(?P<{m[1]}{m[2]}>{places[m[1]]})", template
            )
            pattern = re.compile(bounds[0] + pattern + bounds[1], re.IGNORECASE)
            self._rules.append((pattern, rule, kind, given[0] if given else {}))

    def matches(self, text: str) -> Iterator[tuple[re.Match[str], str, Values]]:
        """Patterns are tried only around words of their key kind, in a third of the time."""
        windows = self._windows(text)
        for pattern, rule, kind, given in self._rules:
            for start, end in windows.get(kind, ()):
                for match in pattern.finditer(text, start, end):
                    if not self._is_name(match, rule):
                        yield match, "" if self._is_none(match, rule) else rule, given

    def _is_none(self, match: re.Match[str], rule: str) -> bool:
        """Is this of another calendar, a number of things, or behind the number of no day?"""
        text, start, end = match.string, match.start(), match.end()
        first = start - len(_FORMS.clause.split(text[max(start - 12, 0) : start])[-1])
        last = end + len(_FORMS.clause.split(text[end : end + 12])[0])
        if _FORMS.calendar.search(text, first, last) or _FORMS.christ.search(text, start, last):
            return True
        fiscal = _FORMS.fiscal.search(text, max(start - 20, 0), end + 12)
        if fiscal and "d" not in match.groupdict():
            return True
        if rule in ("year", "years"):
            said = _FORMS.hours.match(match[0]) and _sentence_around(text, start, end)
            counted = self._counted.match(text, end) or _FORMS.to_number.match(text, end)
            named = match[0][0].isdigit() and text[max(start - 16, 0) : start]
            counted = counted or (named and _FORMS.things.search(named))
            return bool(counted or (said and _FORMS.clock_words.search(said)))
        before = text[max(start - 8, 0) : start]
        return rule in ("month of year", "months") and bool(_FORMS.day_before.search(before))

    def _windows(self, text: str) -> dict[str, list[tuple[int, int]]]:
        """Around each trigger the part of the text in which its patterns are tried, by kind, joined
        where they overlap."""
        found: dict[str, list[tuple[int, int]]] = {}
        han = self.name == "zh"
        for one in (_FORMS.han_triggers if han else _FORMS.token).finditer(text):
            if kind := "day" if han else self._kind(one[0]):
                start, end = one.span()
                spans = found.setdefault(kind, [])
                first = max(start - BEFORE, 0)
                if spans and first <= spans[-1][1]:
                    spans[-1] = (spans[-1][0], end + AFTER)
                else:
                    spans.append((first, end + AFTER))
        return dict.fromkeys(KEY_KINDS, found.get("day", [])) if han else found

    def _kind(self, token: str) -> str:
        kind = self._triggers.get(token.lower().rstrip("0123456789"), "")  # KW12
        if kind or not token[0].isdigit():
            return kind
        if len(token) >= 4 and token[:4].isdecimal():
            return "y" if token.isdecimal() else "decade"
        return "d" if token[-2:].lower() in ("st", "nd", "rd", "th") else ""

    @staticmethod
    def _is_name(match: re.Match[str], rule: str) -> bool:
        """Is a month or weekday in lower case a verb or a name (may, march, sun), or a day word part of one?"""
        before = match.string[max(match.start() - 20, 0) : match.start()]
        if rule == "day":  # USA Today, they sang Yesterday
            return match[0][0].isupper() and bool(_FORMS.capitalised.search(before))
        if rule == "month" and _FORMS.of_person.match(match[0]):  # a song by June Carter
            return bool(_FORMS.surname.match(match.string, match.end()))
        word = match.groupdict().get("month") or match.groupdict().get("weekday") or ""
        if word not in ("may", "march", "mar", "sun", "sat", "mon", "wed"):
            return False
        if rule == "day of month":  # they may 5 times, on may 5, may 5th
            return not re.match(r"on |the |.*\d(?:st|nd|rd|th)", match[0])
        return rule not in ("date", "month of year", "days", "days of months")

    def values(self, match: re.Match[str]) -> dict[str, Any]:
        """The values of a match's placeholders."""
        found: dict[str, Any] = {"rolling_week": self.rolling_week}
        for name, said in match.groupdict().items():
            if said is None:
                continue
            word, kind = " ".join(said.lower().split()), name.rstrip("2")
            if kind in ("span", "about", "over"):
                found["about"] = found.get("about") or kind != "span"
                continue
            if kind in self._words:
                found[kind if kind in ("quarter", "half") else name] = self._value(kind, word)
            elif name == "decade":
                found[name] = int(word[:4])
            else:
                found[name] = _number(word)
        found["slack"] = int("number" in found and match["number"].lower() in self._few)
        sentence, told = (_sentence_around(match.string, *match.span(), n) for n in (1, 2))
        above = match.string[max(match.start() - TOLD, 0) : match.start()]
        last = _FORMS.year.findall(above)[-1:]  # of a history, whose day it may be
        found["years"] = {int(year) for year in (*_FORMS.year.findall(told), *last)}
        found["saying"] = bool(_FORMS.saying.search(sentence))
        before = match.string[max(match.start() - RANKED, 0) : match.start()]
        found["ranked"] = bool(self._ranked.search(before))
        found |= {name: bool(words.search(sentence)) for name, words in self._tenses.items()}
        found |= self._tense_of_clause(match)
        after = match.string[match.end() : match.end() + 12]
        near = (_FORMS.clause.split(before[-30:])[-1], _FORMS.clause.split(after)[0])
        found["beside"] = any(map(self._tenses["past"].search, near))
        return found

    def _tense_of_clause(self, match: re.Match[str]) -> dict[str, bool]:
        """The tense of the clause of an expression, if it has words enough; not the past where a verb
        of the present follows it ("I found out the exam is on Monday")."""
        text, start, end = match.string, match.start(), match.end()
        before = _FORMS.clause.split(text[max(start - NEAR, 0) : start])[-1]
        after = _FORMS.clause.split(text[end : end + NEAR])[0]
        least = 1 if self.name == "zh" else CLAUSE
        if len(f"{before} {after}".split()) < least:
            return {}
        told = {
            name: bool(self._tenses[name].search(f"{before} {after}"))
            for name in ("past", "future")
        }
        last = max((one.end() for one in self._tenses["past"].finditer(before)), default=0)
        told["past"] &= not (last and self._tenses["present"].search(before, last))
        told["past"] &= not _FORMS.planning.search(before)
        return told

    def _tense(self, words: str) -> re.Pattern[str]:
        bounds = ("", "") if self.name == "zh" else (r"(?<!\w)", r"(?!\w)")
        return re.compile(f"{bounds[0]}(?:{words}){bounds[1]}", re.IGNORECASE)

    def _value(self, name: str, word: str) -> Any:
        words = self._words[name]
        if word in words:
            return words[word]
        for pattern, value in words.items():  # a word with a class of characters: aujourd['’]hui
            if re.fullmatch(pattern, word):
                return value
        return _number(word)


def _sentence_around(text: str, start: int, end: int, before: int = 1) -> str:
    """The text around an expression up to the next marks that end a sentence, at most NEAR
    characters a side; with 2 also the sentence before, on the same line."""
    line = text[max(start - NEAR, 0) : start].rpartition("\n")[2]
    above = " ".join(re.split(r"[.!?。！？]", line)[-before:])
    return above + " " + re.split(r"[.!?。！？\n]", text[end : end + NEAR])[0]


def _words(table: Mapping[str, Any]) -> dict[str, Any]:
    """`{"last|past": -1}` as `{"last": -1, "past": -1}`."""
    return {one: value for words, value in table.items() for one in words.split("|")}


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
    names = [language] if language else ["zh"] * bool(re.search(r"[\u4e00-\u9fff]", text))
    if not language and re.search(r"[A-Za-z]", text):
        latin = latin_language(text)
        names.append(latin if latin in _TABLES else "en")
    return [_vocabulary(name) for name in names]
