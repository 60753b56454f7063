"""Dates as people write them: of a document, in its metadata, file name or first lines, and of an argument.

Takes what was written; gives ISO 8601 as exact as it was said: `2024`, `2024-03` or `2024-03-04`, or "". Knows how a
dozen languages write a day or a month with its year (dates.toml), and nothing where day and month could be taken for
each other (03/04/2024). The time of day is read of metadata alone (`clock`)."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from graphrag_mcp.text.terms import folded, table

KEYS = tuple("date created published updated time timestamp".split())  # of metadata
LINES, HEAD = 6, 100  # first lines of a text, and characters of a line, in which its date is read
BESIDE = 5  # words beside the date of a title
DAY = 20  # characters of a line that is a day without its year
# Levels of what dates the lines below: a heading has 1 to 6, the others are below all headings.
TURN, PARAGRAPH, QUOTE = 7, 8, 9
HEADING = re.compile(r"(#{1,6})\s")
ENTRY = re.compile(r"\s*[-*+•]\s+")  # of a list
_TABLE = table(__file__)
MONTH_WORDS = {language: months.split() for language, months in _TABLE["months"].items()}
MONTHS_OF = {  # by language, and by a word in folded form
    language: {folded(word): at for at, words in enumerate(months, 1) for word in words.split("|")}
    for language, months in MONTH_WORDS.items()
}
MONTHS = {word: at for months in MONTHS_OF.values() for word, at in months.items()}
PARTS = _TABLE["parts"]


def filled(form: str, parts: Mapping[str, str]) -> str:
    """A form with the patterns that its placeholders stand for."""
    return re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], form)


def _forms(name: str, flags: int = 0) -> list[re.Pattern[str]]:
    return [re.compile(filled(form, PARTS), flags) for form in _TABLE[name]]


# Stamps of turns have the year in two digits.
NUMERIC, STAMPS = _forms("figures"), _forms("stamps")
DAYS = [*NUMERIC, *_forms("days")]
SPANS, _ALONE = _forms("spans", re.IGNORECASE), _forms("alone")
# What every date holds, and every date in figures: found ten times as fast as the forms.
DIGITS, _PAIR = re.compile(r"\d\d|[一二][〇○零一二三四五六七八九]{3}"), re.compile(r"\d[/-]\d")
_CLOCK = re.compile(_TABLE["clock"])
# What may stand around the date of a line and says nothing more: a label at its start; a weekday, a clock, small words.
_LABEL = re.compile(rf"(?i)\A[^\w:：]*(?:{_TABLE['labels']})(?![^\W\d_])[*_]*\s?[:：=]?")
_FRAME = re.compile(
    rf"(?i:(?:{_TABLE['weekdays']})|\b(?:{_TABLE['small']})\b)"
    rf"|{re.sub('[?]P<[a-z]+>', '?:', _TABLE['clock'])}|[^\w:：]+"
)
_SPEAKER = re.compile(r"[^\w:：]*(?:[^\W\d_a-zß-ÿ][\w.'’-]* ?){0,4}[*_)]*[:：](?:\s|\Z)")
_BY = frozenset("by from von par por".split())
_NAMED = re.compile(_TABLE["named"])
_FRONT_MATTER = re.compile(_TABLE["front_matter"])


def read(written: str) -> str:
    """A date that is written in a usual form: `2024`, `2024-03` or `2024-03-04`; "" for what is no date of the
    calendar, and where day and month could be exchanged."""
    text = unicodedata.normalize("NFKC", written)
    found = [(day, text[:start], text[end:]) for start, end, day in dates_in(text, DAYS)]
    if found:
        day, before, after = found[0]
        return "" if _FRAME.sub("", before) or _FRAME.sub("", after) else day
    text = text.strip(" .\"'“”")
    matches = (form.fullmatch(text) for form in (*SPANS, *_ALONE))
    return next(filter(None, (_iso(match.groupdict()) for match in matches if match)), "")


def advice(written: str) -> str:
    """How to write an argument that `read` does not take."""
    match = NUMERIC[0].fullmatch(unicodedata.normalize("NFKC", written).strip())
    if match and 0 < int(match["a"]) <= 12 >= int(match["b"]) > 0:
        year, first, second = match["y"], int(match["a"]), int(match["b"])
        return f"{year}-{second:02}-{first:02} or {year}-{first:02}-{second:02}, whichever is meant"
    return "a date that exists as 2024, 2024-05, 2024-05-03 or 3 May 2024"


def days(date: str) -> tuple[str, str]:
    """First and last day of what `read` gives."""
    if len(date) == 10:
        return date, date
    if len(date) == 4:
        return f"{date}-01-01", f"{date}-12-31"
    return f"{date}-01", f"{date}-{monthrange(int(date[:4]), int(date[5:]))[1]}"


def of_metadata(metadata: Mapping[str, Any]) -> str:
    """The date that the metadata of a document (names in lower case) give, in the form of `read`."""
    return read(_written(metadata))


def _written(metadata: Mapping[str, Any]) -> str:
    """The first date of metadata as it is written; of seconds or milliseconds since 1970 in UTC."""
    for name in KEYS:
        text = str(metadata.get(name) or "").strip()
        whole = text.partition(".")[0]
        if whole.isascii() and whole.isdigit() and len(whole) in (10, 13):
            return datetime.fromtimestamp(int(whole[:10]), UTC).isoformat()
        if read(text):
            return text
    return ""


def clock(metadata: Mapping[str, Any]) -> str:
    """The time of day beside the date of metadata: `02:21`, `23:30:05`, `23:30-07:00`; "" for none,
    and for midnight, which programs write where they know a day alone."""
    written = _written(metadata)
    match = _CLOCK.search(written)
    if match is None or len(read(written)) < 10:  # 10:30 of a month
        return ""
    hour, half, zone = int(match["hour"]), match["half"], match["zone"] or ""
    if half and hour <= 12:
        hour = hour % 12 + 12 * (half in "pP")
    time_of_day = f"{hour:02}:{match['minute']}" + (
        f":{match['second']}" if match["second"] else ""
    )
    if not time_of_day.strip("0:"):
        return ""
    if zone[:1] in ("+", "-"):
        east = f"{zone[:3]}:{zone[-2:]}"
        return time_of_day + (east if east != "+00:00" else "Z")
    return time_of_day + "Z" * (zone in ("Z", "UTC", "GMT"))


def moment(date: str, clock: str) -> str:
    """What sorts documents by time: the first day of what `read` gives, and the second of that day,
    in UTC where a zone is written. A day without a clock comes before all its hours."""
    day = days(date)[0] if date else ""
    if not day or not clock:
        return day
    at = datetime.fromisoformat(f"{day}T{clock}")
    local = at.replace(tzinfo=None) - (at.utcoffset() or timedelta())
    return f"{day}T{int((local - datetime.fromisoformat(day)).total_seconds()) + 86_400:06}"


def in_name(name: str) -> str:
    """minutes-2024-03-02.md; "" for a day that the calendar does not have."""
    if match := _NAMED.search(name):
        return _iso(dict(zip("ymd", match.group(1, 3, 4), strict=True)))
    days = {day for *_, day in dates_in(name.replace("_", " "), DAYS)}
    return days.pop() if len(days) == 1 else ""  # 14.05.2024 Protokoll.md


def in_head(text: str) -> str:
    """The first date of the first lines that say something: `Date: 2024-03-02`, `By Ana Ruiz, 4 May
    2023`, `# Minutes of 27 May 2025`, a line that ends in a date, or the head of a turn; where none states a day, the
    month, or year of a title or of a line that says it alone."""
    lines = [line for line in text[:2_000].splitlines() if line.strip()][:LINES]
    first = day_first(text)
    for forms in (DAYS, SPANS):
        candidates = [
            dated_line(line, first, line is lines[0] or line[0] == "#", forms is DAYS, forms)
            for line in lines
        ]
        dated = [candidate.date for candidate in candidates if candidate and candidate.date]
        if dated and (forms is DAYS or len(dated) == 1):  # not the months of an archive
            return dated[0]
    labels = ((line, _LABEL.match(line)) for line in lines)
    years = (read(line[label.end() :].strip(" *_")) for line, label in labels if label)
    return next(filter(None, years), "")


class Dated(NamedTuple):
    """The words with which a line dates a text: their end, and the date (ISO 8601; "" for one that
    cannot be read). An entry dates only its own paragraph."""

    end: int
    date: str
    is_entry: bool = False


def dated_line(
    line: str,
    day_first: bool | None = None,
    title: bool = False,
    head: bool = False,
    forms: Sequence[re.Pattern[str]] = DAYS,
) -> Dated | None:
    """The date with which a line dates what stands below or behind it; None for any other line.

    A date dates the text if nothing but a label, a weekday, a clock or a name stands beside it, or a speaker with a
    colon behind it. What follows a date that begins a line is an entry. In a title up to BESIDE other words may stand
    beside the date, and in a title or a line of the head any before a date that a comma or a bracket sets apart at its
    end: `The Gazette, Ana Ruiz and Bo Lee, 4 May 2023` (of 477 news articles 475 are dated instead of 1). A line with
    several dates has none of its own but that of its speaker."""
    line = line.rstrip()
    is_stamp = line.lstrip(" -*+>[(\t")[:1].isdigit()
    found = dates_in(line[:HEAD], (*forms, *STAMPS * is_stamp), day_first)
    if not found or line.count("|") > 1:
        return None
    start, end, day = found[0]
    before = _FRAME.sub(" ", _LABEL.sub("", line[:start], count=1)).split()
    after = _FRAME.sub(" ", line[end:]).split()
    if before and before[-1][-1] in ":：":  # Deadline: 2024-05-01
        return None
    spoken = _SPEAKER.match(_CLOCK.sub("", line[end:]))
    marked = line[:start].rstrip()[-1:] in ",;|([–—-·•"
    byline = not _BY.isdisjoint(line[:start].lower().split())
    named = all(word[0].isupper() for word in before) and (marked or byline or not before)
    if named and (
        spoken
        or not after
        or (not before and len(after) < BESIDE and all(word[0].isupper() for word in after))
    ):
        return Dated(end, day, bool(spoken and ENTRY.match(line)))
    if any(not line[end:other].strip(" -–—") for other, *_ in found if other > start):
        return None  # from one day to another
    if not line[:start].strip(" -*+>[(\t"):  # 2024-03-11 10:12:01 INFO started
        return Dated(end, day, True) if line[end : end + 1] in "T]),:： " and after else None
    only = len({other for *_, other in found}) == 1 and line[-1] not in ".!?。:："
    if not day or not only or not (title or head):
        return None
    if marked and not after and (title or len(line) <= HEAD):
        return Dated(end, day)
    # Of a script without blanks two letters are a word.
    size = sum(1 if word[0] < "\u2e80" else (len(word) + 1) // 2 for word in before + after)
    return Dated(end, day) if title and size <= BESIDE and len(line) <= HEAD else None


def without_year(line: str, last: date) -> str:
    """A line that is a day and month alone: of the years around `last` that in which it is nearest;
    "" for any other line."""
    text = line.strip(" #*_\n")
    years = (last.year - 1, last.year, last.year + 1) if len(text) < DAY else ()
    days = [read(f"{text} {year}") or read(f"{year}年{text}") for year in years]
    exact = [day for day in days if len(day) == 10]
    return min(exact, key=lambda day: abs((date.fromisoformat(day) - last).days), default="")


_HAN_DIGITS = str.maketrans("零〇○一二两兩三四五六七八九", "00012223456789")


def number(figures: str) -> int:
    """12, 二〇二三, 二十三; 0 for what is no number."""
    tens, ten, ones = figures.rpartition("十")
    figures = f"{tens or '一'}{ones or '〇'}" if ten else figures
    figures = figures.translate(_HAN_DIGITS)
    return int(figures) if figures.isdecimal() else 0


def front_matter_end(text: str) -> int:
    match = _FRONT_MATTER.match(text)
    return match.end() if match else 0


def dates_in(
    text: str,
    forms: Iterable[re.Pattern[str]],
    day_first: bool | None = None,
    months: Container[str] = MONTHS,
) -> list[tuple[int, int, str]]:
    """Where a form stands in the text, and its date, "" for one that the calendar does not have, or
    whose day could be its month (if no order is given). `months`: words (folded) that are months without
    a day beside them."""
    if DIGITS.search(text) is None:  # every form has a year
        return []
    matches = (match for form in forms for match in form.finditer(text))
    return sorted(
        (*match.span(), _iso(match.groupdict(), day_first))
        for match in matches
        if "word" not in match.re.groupindex
        or folded(match["word"]) in (MONTHS if "d" in match.re.groupindex else months)
    )


def day_first(text: str) -> bool | None:
    """Does this text write the day before the month (31/12/2023) or after it? None where none of
    its dates tells, or where they differ."""
    if _PAIR.search(text) is None:
        return None
    pairs = {
        (int(match["a"]) > 12, int(match["b"]) > 12)
        for form in (NUMERIC[0], STAMPS[0])
        for match in form.finditer(text)
    } & {(True, False), (False, True)}
    return pairs.pop()[0] if len(pairs) == 1 else None


def _iso(fields: Mapping[str, str | None], day_first: bool | None = None) -> str:
    """The groups of a form as ISO 8601; "" for what the calendar does not have."""
    year = str(fields.get("y"))
    year = year if len(year) > 2 else f"20{year}"
    month, day = number(fields.get("m") or ""), number(fields.get("d") or "")
    if fields.get("word"):
        month = MONTHS.get(folded(fields["word"] or ""), 0)
    if fields.get("a"):
        month, day = _month_and_day(int(fields["a"] or 0), int(fields["b"] or 0), day_first)
    exact = "d" in fields or "a" in fields
    if (exact and not day) or (not month and fields.keys() & {"m", "word", "a"}):
        return ""
    return iso(number(year), month, day)


def iso(year: int, month: int = 0, day: int = 0) -> str:
    """2024, 2024-03 or 2024-03-04; "" for what the calendar does not have."""
    try:
        found = date(year, month or 1, day or 1).isoformat()
    except ValueError:
        return ""
    return found[: 10 if day else 7 if month else 4]


def _month_and_day(first: int, second: int, day_first: bool | None) -> tuple[int, int]:
    """Of two numbers of which one can be no month; month 0 where both could."""
    if first == second or second <= 12 < first or (day_first and first <= 12 >= second):
        return second, first
    clear = first <= 12 and (second > 12 or day_first is False)
    return (first, second) if clear else (0, 0)
