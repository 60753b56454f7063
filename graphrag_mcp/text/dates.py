"""Dates as people write them: of a document, in its metadata, file name or first lines, and of an argument.

Takes what was written; gives ISO 8601 as exact as it was said: `2024`, `2024-03` or `2024-03-04`, or "".
The forms of `dates.toml` say how a dozen languages write a day, a month or a year; nothing is read where day and
month could be taken for each other (03/04/2024). The time of day is read of metadata alone (`clock`)."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from graphrag_mcp.text.terms import LETTERS, Patterns, folded, table

KEYS = tuple("date created published updated time timestamp".split())  # of metadata
LINES, HEAD = 6, 100  # first lines of a text, and characters of a line, in which its date is read
BESIDE = 5  # words beside the date of a title
_LONGEST = 300  # years of a span; 1500 and 2100 are hours or amounts
ENTRY = re.compile(r"\s*[-*+•]\s+")  # of a list

_TABLE = table(__file__)
_SAID = Patterns(_TABLE["patterns"])
MONTH_WORDS = {language: months.split() for language, months in _TABLE["months"].items()}
MONTHS_OF = {  # by language, and by a word in folded form
    language: {folded(word): at for at, words in enumerate(months, 1) for word in words.split("|")}
    for language, months in MONTH_WORDS.items()
}
MONTHS = {word: at for months in MONTHS_OF.values() for word, at in months.items()}
_PARTS = _TABLE["parts"] | {"{before}": f"(?:{_TABLE['before']})", "{to}": f"(?: (?:{_TABLE['to']}) | ?[-–] ?)"}
_PLACE = re.compile("|".join(map(re.escape, _PARTS)))


def _forms(name: str, flags: int = 0) -> list[re.Pattern[str]]:
    filled = (_PLACE.sub(lambda place: _PARTS[place[0]], form) for form in _TABLE[name])
    return [re.compile(form, flags) for form in filled]


# Stamps of turns have the year in two digits; days are exact; spans are months with a year, and ranges what a sentence
# says from one day to another and of years alone.
NUMERIC, STAMPS, _COMPACT = _forms("figures"), _forms("stamps"), _forms("compact")
DAYS = [*NUMERIC, *_forms("days")]
SPANS, RANGES = _forms("spans", re.IGNORECASE), _forms("ranges", re.IGNORECASE)
_ALONE = _forms("alone")
# Around the date of a line: `Published on`, `By Ana Ruiz,`, `Berlin, den`, `Friday`, `10:12 am on`; a clock and a zone;
# the speaker of a turn.
_NAME = r"[^\W\d_a-zß-ÿ][\w.'’-]*(?: [^\W\d_a-zß-ÿ][\w.'’-]*){0,3}"
_TIME = (
    r"(?:T|[ ,]{0,3}(?:at |um |à |a las )?\(?)(?:[01]?\d|2[0-3])[:.h][0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?"
    r"(?: ?(?i:[ap]\.?m\b\.?|uhr))?(?: ?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d))?(?: ?\([A-Z]{2,5}\))?"
)
_WEEKDAY = rf"(?i:{_TABLE['weekdays']})"
_CLOCK, _LABEL = re.compile(_TIME), re.compile(rf"(?i)\W*(?:{_TABLE['labels']})\W*[:：]")
_BEFORE = re.compile(
    rf"\W*(?:(?i:{_TABLE['labels']})\W{{0,3}}(?:\s|(?<=[:：=])))?"
    rf"(?:(?i:by|from|von|par|por|de)\s{_NAME}[,\s]\s?|{_NAME}(?:,|\s?[(（–—|·•-])\s?)?(?:{_WEEKDAY}\.?,?\s)?"
    rf"(?:{_TIME},?\s)?(?:(?i:on|the|am|den|dem|le|du|el)\s)?"
)
_AFTER = re.compile(
    rf"(?:\W*{_WEEKDAY}\W?)?(?:{_TIME})?(?:\s?[-–—]\s?\d\d?:\d\d)?[\W]*(?:{_WEEKDAY}\W*)?(?:(?i:by|von|par|por)\s{_NAME})?"
)
_SPEAKER = re.compile(rf"(?:{_TIME})?[\s)\]*_]*+[-–—]?\s*+(?:{_NAME})?[*_)]*[:：](?:\s|\Z)")
# What every date holds, and every date in figures: found ten times as fast as the forms.
DIGITS, _PAIR = re.compile(r"\d\d|[一二][〇○零一二三四五六七八九]{3}"), re.compile(r"\d[/-]\d")
_ENTRY_END = re.compile(r"[\])*_]*(?: ?[:：–—|]| -\s| (?=[^\W\d_a-zß-ÿ]))")
# "Dive report, 22 August 2021", "Chat of Ida and Omar, 1:15 pm on 1 May, 2023"
_APART = re.compile(rf"[,;|(\[–—-]\s*(?:{_TIME}\s*(?:on )?)?\Z")


class Stated(NamedTuple):
    """The characters of a date, and its first and last date as exact as they are said: mostly one and the same.
    Both are "" for what the calendar does not have, where the day could be the month, and of a span over _LONGEST."""

    start: int
    end: int
    first: str
    last: str


def dates_in(
    text: str, forms: Iterable[re.Pattern[str]], day_first: bool | None = None, months: Set[str] = MONTHS.keys()
) -> list[Stated]:
    """The dates of these forms in a text, in order. `months`: the words (folded) that are months in a date without a
    day."""
    if DIGITS.search(text) is None:  # every form has a year
        return []
    found: list[Stated] = []
    for match in (match for form in forms for match in form.finditer(text)):
        fields = {name: part for name, part in match.groupdict().items() if part}
        words = {folded(fields[name]) for name in ("word", "word2") if name in fields}
        if words <= (MONTHS.keys() if "d" in fields else months):
            found.append(Stated(*match.span(), *_said(fields, day_first)))
    return sorted(found)


def months_of(languages: Iterable[str]) -> set[str]:
    """The months (folded) of texts of these languages: of a language that has none here those of English; and those of
    Russian, which no other language has."""
    return {*MONTHS_OF["ru"]}.union(*(MONTHS_OF.get(name, MONTHS_OF["en"]) for name in languages))


def _said(fields: Mapping[str, str], day_first: bool | None) -> tuple[str, str]:
    """The first and the last date of the groups of a form."""
    if decade := int(fields.get("decade", 0)):  # the 1800s are a century
        return iso(decade), iso(decade + (9 if decade % 100 or decade == 2000 else 99))
    first = _iso(fields, day_first)
    if not any(name[-1] == "2" for name in fields):
        return first, first
    last = _iso({**fields, **{name[:-1]: part for name, part in fields.items() if name[-1] == "2"}})
    if first > last and "word2" in fields:  # December to January 2024
        first = _iso({**fields, "y": str(number(fields["y"]) - 1)})
    is_span = "" < first <= last and int(last[:4]) - int(first[:4]) <= _LONGEST
    return (first, last) if is_span else ("", "")


def _iso(fields: Mapping[str, str], day_first: bool | None = None) -> str:
    """The groups of a day, month or year as ISO 8601; "" for what the calendar does not have."""
    year, day = fields["y"], number(fields.get("d", ""))
    month = MONTHS.get(folded(fields["word"]), 0) if "word" in fields else number(fields.get("m", ""))
    if "a" in fields:
        month, day = _month_and_day(int(fields["a"]), int(fields["b"]), day_first)
    exact = "d" in fields or "a" in fields
    if (exact and not day) or (not month and fields.keys() & {"m", "word", "a"}):
        return ""
    return iso(number(year if len(year) > 2 else f"20{year}"), month, day)


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


_HAN_DIGITS = str.maketrans("零一二三四五六七八九〇○两兩", "01234567890022")


def number(figures: str) -> int:
    """12, 二〇二三, 二十三; 0 for what is no number."""
    tens, ten, ones = figures.rpartition("十")
    figures = (f"{(tens or '1') + (ones or '0')}" if ten else figures).translate(_HAN_DIGITS)
    return int(figures) if figures.isdecimal() else 0


# ---- dates of arguments and metadata ------------------------------------------------------------


def read(written: str) -> str:
    """A date that stands alone, or beside a weekday, a clock or a label: `2024`, `2024-03` or `2024-03-04`; "" for
    what is no date of the calendar, and where day and month could be exchanged."""
    text = unicodedata.normalize("NFKC", written).strip(" .\"'“”")
    for found in dates_in(text, (*_COMPACT, *DAYS, *SPANS, *_ALONE)):
        before, after = text[: found.start], text[found.end :]
        if found.first and _BEFORE.fullmatch(before) and _AFTER.fullmatch(after):
            return found.first
    return ""


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
    """minutes-2024-03-02.md, 14.05.2024 Protokoll.md; "" for a day that the calendar does not have."""
    text = name.replace("_", " ")
    if compact := dates_in(text, _COMPACT):
        return compact[0].first
    days = {found.first for found in dates_in(text, DAYS)}
    return days.pop() if len(days) == 1 else ""


# ---- lines that date what stands below them -----------------------------------------------------


class Dated(NamedTuple):
    """The words with which a line dates a text: their end, and the date (ISO 8601; "" for one that
    cannot be read). An entry dates only its own paragraph."""

    end: int
    date: str
    is_entry: bool = False


def in_head(text: str) -> str:
    """The first date of the first lines that say something: `Date: 2024-03-02`, `By Ana Ruiz, 4 May
    2023`, `# Minutes of 27 May 2025`, a line that ends in a date, or the head of a turn; where none states a day, the month,
    or year of a title or of a line that says it alone."""
    lines = [line for line in text[:2_000].splitlines() if line.strip()][:LINES]
    first = day_first(text)
    for forms in (DAYS, SPANS):
        candidates = [
            dated_line(line, first, line is lines[0] or line[0] == "#", forms is DAYS, forms) for line in lines
        ]
        dated = [candidate.date for candidate in candidates if candidate and candidate.date]
        if dated and (forms is DAYS or len(dated) == 1):  # not the months of an archive
            return dated[0]
    labelled = (read(line.strip(" *#_>-")) for line in lines if _LABEL.match(line))
    return next(filter(None, labelled), "")


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
    dated instead of 1, and none more of 5,958 documents of seven other sets)."""
    line = line.rstrip()
    days = dates_in(line[:HEAD], (*forms, *STAMPS), day_first)
    if not days:
        return None
    start, end, day, _ = days[0]
    before, after = line[:start], line[end:]
    spoken, bare = _SPEAKER.match(after), not before.strip(" -*+>[(\t")
    if (spoken or _AFTER.fullmatch(after)) and _BEFORE.fullmatch(before):
        return Dated(end, day, bool(spoken and ENTRY.match(line)))
    if any(not line[end : other.start].strip(" -–—") for other in days[1:]):
        return None  # from one day to another
    if bare and (_CLOCK.match(after) or _ENTRY_END.match(after)):
        return Dated(end, day, True)
    if not day or not (title or head) or len(line) > HEAD or len({one.first for one in days}) > 1:
        return None
    if line.endswith((".", "!", "?", "。")) or before.rstrip().endswith((":", "：")):
        return None
    if _APART.search(before) and not after.strip(" *_#)]"):
        return Dated(end, day)
    words = LETTERS.findall(_CLOCK.sub("", f"{before} {after}"))
    # Of a script without blanks two letters are a word.
    size = sum(1 if word[0] < "\u2e80" else (len(word) + 1) // 2 for word in words)
    return Dated(end, day) if title and size <= BESIDE else None


def without_year(line: str, last: date) -> str:
    """A line that is a day and month alone: of the years around `last` that in which it is nearest;
    "" for any other line."""
    day = line.strip(" #*_\n")
    years = (last.year - 1, last.year, last.year + 1) if len(day) < _DAY else ()
    read_days = [read(f"{day} {year}") or read(f"{year}年{day}") for year in years]
    exact = [day for day in read_days if len(day) == 10]
    return min(exact, key=lambda day: abs((date.fromisoformat(day) - last).days), default="")


_DAY = 20  # characters of a line that is a day without its year


def front_matter_end(text: str) -> int:
    """Where the front matter of a text ends; 0 where it has none."""
    match = _SAID.front_matter.match(text)
    return match.end() if match else 0
