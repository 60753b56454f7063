"""Dates as people write them: of a document, in its metadata, file name or first lines, and of an argument.

Takes what was written; gives ISO 8601 as exact as it was said: `2024`, `2024-03` or
`2024-03-04`, or "". Knows how a dozen languages write a day or a month with its year, and nothing where day and month could be taken for each other (03/04/2024). The time of day is read of
metadata alone (`clock`)."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from graphrag_mcp.text.terms import Patterns, folded, table

KEYS = tuple("date created published updated time timestamp".split())  # of metadata
LINES, HEAD = 6, 100  # first lines of a text, and characters of a line, in which its date is read
BESIDE = 5  # words beside the date of a title
DAY = 20  # characters of a line that is a day without its year
# Levels of what dates the lines below: a heading has 1 to 6, the others are below all headings.
TURN, PARAGRAPH, QUOTE = 7, 8, 9
HEADING = re.compile(r"(#{1,6})\s")
ENTRY = re.compile(r"\s*[-*+•]\s+")  # of a list
_TABLE = table(__file__)
_SAID = Patterns(_TABLE["patterns"])
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
# Around the date of a line: `Published on`, `By Ana Ruiz,`, `Berlin, den`, `Friday`, `10:12 am on`; a clock and a zone;
# the speaker of a turn.
_NAME = r"[^\W\d_a-zß-ÿ][\w.'’-]*(?: [^\W\d_a-zß-ÿ][\w.'’-]*){0,3}"
_TIME = r"(?:T|[ ,]{0,3}(?:at |um |à |a las )?\(?)(?:[01]?\d|2[0-3])[:.h][0-5]\d(?::[0-6]\d(?:\.\d+)?)?(?: ?(?i:[ap]\.?m\b\.?|uhr))?(?: ?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d))?"
_BEFORE = re.compile(
    rf"""\W*(?:(?i:{_TABLE["labels"]})\W{{0,3}}(?:\s|(?<=[:：=])))?"""
    rf"""(?:(?i:by|from|von|par|por|de)\s{_NAME}[,\s]\s?|{_NAME}(?:,|\s?[(（–—|·•-])\s?)?(?:(?i:{_TABLE["weekdays"]})\.?,?\s)?"""
    rf"""(?:{_TIME},?\s)?(?:(?i:on|the|am|den|dem|le|du|el)\s)?"""
)
_CLOCK = re.compile(_TIME)
_AFTER = re.compile(
    rf"""(?:{_TIME})?(?:\s?[-–—]\s?\d\d?:\d\d)?[\W]*(?:(?i:{_TABLE["weekdays"]})\W*)?(?:[+-]\d{{4}}|(?i:by|von|par|por)\s{_NAME})?"""
)
_SPEAKER = re.compile(
    rf"(?:{_TIME})?[\s)\]*_]*[-–—]?\s*(?:{_NAME})?(?: (?:wrote|schrieb|a écrit|escribió))?[*_)]*[:：](?:\s|\Z)"
)
# What every date holds, and every date in figures: found ten times as fast as the forms.
DIGITS, _PAIR = re.compile(r"\d\d|[一二][〇○零一二三四五六七八九]{3}"), re.compile(r"\d[/-]\d")
_STAMP = re.compile(r"\W*\[?\d")
_ENTRY_END = re.compile(r"[\])*_]*(?: ?[:：–—|]| -\s| (?=[^\W\d_a-zß-ÿ]))")
_LABELLED = re.compile(rf"(?i)(?:{_TABLE['labels']})\s*[:：]\s*(.+)")


def read(written: str) -> str:
    """A date that is written in a usual form: `2024`, `2024-03` or `2024-03-04`; "" for what is no date of the calendar, and where day and month could be exchanged."""
    if not written:
        return ""
    text = unicodedata.normalize("NFKC", written).strip(" .\"'“”")
    text = _SAID.weekday.sub("", _SAID.before.sub("", text), count=1)
    text = _SAID.time.sub("", _SAID.time.sub("", text))
    matches = (form.fullmatch(text) for form in (*DAYS, *SPANS, *_ALONE))
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
        if re.fullmatch(r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]+)?", text):
            return datetime.fromtimestamp(int(text[:10]), UTC).isoformat()
        if read(text):
            return text
    return ""


def clock(metadata: Mapping[str, Any]) -> str:
    """The time of day beside the date of metadata: `02:21`, `23:30:05`, `23:30-07:00`; "" for none,
    and for midnight, which programs write where they know a day alone."""
    written = _written(metadata)
    match = _SAID.hour.search(written)
    if match is None or len(read(written)) < 10:  # 10:30 of a month
        return ""
    hour, minute, second, half, utc, east, rest = match.groups()
    if half and int(hour) <= 12:
        hour = str(int(hour) % 12 + 12 * (half in "pP"))
    time_of_day = f"{int(hour):02}:{minute}" + (f":{second}" if second else "")
    zone = f"{east}:{rest}" if east else "+00:00" if utc else ""
    return "" if not time_of_day.strip("0:") else time_of_day + zone.replace("+00:00", "Z")


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
    if match := _SAID.named.search(name):
        return _iso(dict(zip("ymd", match.group(1, 3, 4), strict=True)))
    days = {day for *_, day in dates_in(name.replace("_", " "), DAYS)}
    return days.pop() if len(days) == 1 else ""  # 14.05.2024 Protokoll.md


def in_head(text: str) -> str:
    """The first date of the first lines that say something: `Date: 2024-03-02`, `By Ana Ruiz, 4 May
    2023`, `# Minutes of 27 May 2025`, a line that ends in a date, or the head of a turn; where none states a day, the month,
    or year of a title or of a line that says it alone."""
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
    labelled = (_LABELLED.fullmatch(line.strip(" *#_>-")) for line in lines)
    return next(filter(None, (read(match[1].strip(" *_")) for match in labelled if match)), "")


class Dated(NamedTuple):
    """The words with which a line dates a text: their end, and the date (ISO 8601; "" for one that
    cannot be read). An entry dates only its own paragraph."""

    end: int
    date: str
    is_entry: bool = False


# "Dive report, 22 August 2021", "Chat of Ida and Omar, 1:15 pm on 1 May, 2023"
_APART = re.compile(
    r"[,;|(\[–—-]\s*(?:\d{1,2}:\d\d(?::\d\d)?\s*(?:[ap]\.?m\.?)?\s*(?:on )?)?\Z", re.I
)
_LINE_END = re.compile(r"[\s*_#)\]]*")


def dated_line(
    line: str,
    day_first: bool | None = None,
    title: bool = False,
    head: bool = False,
    forms: Sequence[re.Pattern[str]] = DAYS,
) -> Dated | None:
    """The date with which a line dates what stands below or behind it; None for any other line.

    A date dates the text if nothing but a label of a date, a weekday or a name stands before it,
    and nothing, a clock, or a speaker with a colon behind it. In a title up to BESIDE other words
    may stand beside it, and in a title or a line of the head any before a date that a mark sets
    apart at its end: `The Gazette, Ana Ruiz and Bo Lee, 4 May 2023` (of 477 news articles 475 are
    dated instead of 1, and none more of 5,958 documents of seven other sets). A line with several
    dates has none of its own but that of its speaker."""
    line = line.rstrip()
    days = dates_in(line[:HEAD], (*forms, *STAMPS * bool(_STAMP.match(line))), day_first)
    if not days or line.count("|") > 1:
        return None
    start, end, day = days[0]
    before, after = line[:start], line[end:]
    spoken, bare = _SPEAKER.match(after), not before.strip(" -*+>[(\t")
    if (spoken or _AFTER.fullmatch(after)) and _BEFORE.fullmatch(before):
        return Dated(end, day, bool(spoken and ENTRY.match(line)))
    begun = [line[end:other].strip(" -–—") for other, *_ in days if other > start]
    if "" in begun:  # from one day to another
        return None
    if bare and (_CLOCK.match(after) or _ENTRY_END.match(after)):
        return Dated(end, day, True)
    if not day or not (title or head):
        return None
    only = len({day for *_, day in days}) == 1 and not line.endswith((".", "!", "?", "。"))
    if not only or before.rstrip().endswith((":", "：")):
        return None
    fits, apart = len(line) <= HEAD, _APART.search(before) and _LINE_END.fullmatch(after)
    if apart and (title or fits):
        return Dated(end, day)
    words = _SAID.words.findall(_CLOCK.sub("", f"{before} {after}"))
    # Of a script without blanks two letters are a word.
    size = sum(1 if word[0] < "\u2e80" else (len(word) + 1) // 2 for word in words)
    return Dated(end, day) if title and fits and size <= BESIDE else None


def without_year(line: str, last: date) -> str:
    """A line that is a day and month alone: of the years around `last` that in which it is nearest;
    "" for any other line."""
    day_text = re.sub(rf"(?i)\A(?:{_TABLE['weekdays']})\W*", "", line.strip(" #*_\n"))
    years = (last.year - 1, last.year, last.year + 1) if len(day_text) < DAY else ()
    days = [read(f"{day_text} {year}") or read(f"{year}年{day_text}") for year in years]
    exact = [day for day in days if len(day) == 10]
    return min(exact, key=lambda day: abs((date.fromisoformat(day) - last).days), default="")


_HAN_DIGITS = {ch: str(at) for at, ch in enumerate("零一二三四五六七八九")} | dict(
    zip("〇○两兩", "0022", strict=True)
)


def number(figures: str) -> int:
    """12, 二〇二三, 二十三; 0 for what is no number."""
    tens, ten, ones = figures.rpartition("十")
    figures = f"{(tens or '1') + (ones or '0')}" if ten else figures
    figures = "".join(_HAN_DIGITS.get(ch, ch) for ch in figures)
    return int(figures) if figures.isdecimal() else 0


def front_matter_end(text: str) -> int:
    match = _SAID.front_matter.match(text)
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
