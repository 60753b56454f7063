"""Dates as people write them: of a document, in its metadata, file name or first lines, and of an argument.

Takes what was written; gives ISO 8601 as exact as it was said: `2024`, `2024-Q3`, `2024-03` or
`2024-03-04`, or "". Knows how a dozen languages write a day, a month or a quarter with its year, and
nothing where day and month could be taken for each other (03/04/2024). The time of day is read of
metadata alone (`clock`)."""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from graphrag_mcp.text.prose import navigation, readable
from graphrag_mcp.text.terms import compiled, folded, table

KEYS = tuple("date created published updated time timestamp".split())  # of metadata
# of metadata: where a page stands on its site
ADDRESSES = tuple("path url permalink slug link aliases".split())
# A date stands in one of the first lines that say something, and that line is short.
LINES, SHORT = 6, 100
# Of a web page the beginning in characters, and the lines of it without menus.
PAGE, PAGE_LINES = 16_000, 60
LINKED = 5  # links to other sites in it
# Characters of a line that is a paragraph, and how many are read: banners, then the article begins.
PARAGRAPH, PARAGRAPHS = 200, 4
STORIES = 3  # bylines of one day are those of other stories, which a page leads to
# What a page writes for a date that it does not know: the first second of a computer's clock.
EPOCH = "1969-12-31", "1970-01-01"
BEFORE = 9  # words before the date of a byline
# Words beside the date in a line that dates a text; more are a sentence, and its date is that of
# what it tells. A time of day beside the date is that of a meeting or message: twice as many.
BESIDE = 5
_TABLE = table(__file__)
_SAID = compiled(_TABLE["patterns"])
EVENT = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_TABLE['event_words'])})(?![^\W_])|{_TABLE['event_signs']}", re.I
)
_NUMBER = {folded(word): at for at, said in enumerate(_TABLE["months"], 1) for word in said.split()}
_QUARTER = {word: at for at, said in enumerate(_TABLE["quarters"], 1) for word in said.split()}
_PARTS = _TABLE["parts"]
_BYLINE = frozenset(_TABLE["byline_words"].split())


def _forms(name: str, flags: int = 0) -> list[re.Pattern[str]]:
    part = re.compile("|".join(map(re.escape, _PARTS)))
    return [re.compile(part.sub(lambda m: _PARTS[m[0]], form), flags) for form in _TABLE[name]]


# Stamps of turns have the year in two digits.
NUMERIC, STAMPS = _forms("figures"), _forms("stamps")
DAYS = [*NUMERIC, *_forms("days")]
_SPANS, _ALONE = _forms("spans", re.IGNORECASE), _forms("alone")
_NUMBERED = re.compile(rf"(?:(?<!\w)(?:{_TABLE['numbered']})\.?|§) ?\Z", re.IGNORECASE)


def read(written: str) -> str:
    """A date that is written in a usual form: `2024`, `2024-Q3`, `2024-03` or `2024-03-04`; "" for
    what is no date of the calendar, and where day and month could be exchanged."""
    if not written:
        return ""
    text = unicodedata.normalize("NFKC", written).strip(" .\"'“”")
    text = _SAID.weekday.sub("", _SAID.before.sub("", text), count=1)
    text = _SAID.time.sub("", _SAID.time.sub("", text))
    matches = (form.fullmatch(text) for form in (*DAYS, *_SPANS, *_ALONE))
    return next(filter(None, (_iso(match.groupdict()) for match in matches if match)), "")


def advice(written: str) -> str:
    """How to write an argument that `read` does not take."""
    match = NUMERIC[0].fullmatch(unicodedata.normalize("NFKC", written).strip())
    if match and 0 < int(match["a"]) <= 12 >= int(match["b"]) > 0:
        year, first, second = match["y"], int(match["a"]), int(match["b"])
        return f"{year}-{second:02}-{first:02} or {year}-{first:02}-{second:02}, whichever is meant"
    return "a date that exists as 2024, 2024-05, 2024-05-03, Q3 2024 or 3 May 2024"


def days(date: str) -> tuple[str, str]:
    """First and last day of what `read` gives."""
    year, rest = int(date[:4]), date[5:]
    if len(rest) == 5:
        return date, date
    first, last = (int(rest), int(rest)) if len(rest) == 2 and rest[0] != "Q" else (1, 12)
    if rest[:1] == "Q":
        first, last = 3 * int(rest[1]) - 2, 3 * int(rest[1])
    end = monthrange(year, last)[1]
    return f"{date[:4]}-{first:02}-01", f"{date[:4]}-{last:02}-{end:02}"


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
    said = f"{int(hour):02}:{minute}" + (f":{second}" if second else "")
    zone = f"{east}:{rest}" if east else "+00:00" if utc else ""
    return "" if not said.strip("0:") else said + zone.replace("+00:00", "Z")


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
    days = {day for *_, day in found(name.replace("_", " "), DAYS)}
    return days.pop() if len(days) == 1 else ""  # 14.05.2024 Protokoll.md


def in_address(metadata: Mapping[str, Any]) -> str:
    """path = "2014/11/20/Cargo", as blogs lay their pages out."""
    for key, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            match = _SAID.path.search(one) if isinstance(one, str) else None
            if match and key.casefold() in ADDRESSES:
                return _iso(dict(zip("ymd", match.groups(), strict=True)))
    return ""


def in_head(text: str) -> str:
    """The first date of its first lines: `Date: 2024-03-02`, `27. Mai 2025`, `日期：2024年3月2日`, or the
    head of a turn; of a web page its byline or address; where none states a day, the first month,
    quarter or `Year: 2024`."""
    lines = [line for line in text[:2_000].splitlines() if line.strip()][:LINES]
    short = [line for line in lines if len(line) <= SHORT]
    listed = [line for line in short if read(line.strip(" -*•|\t"))]  # months of an archive
    first = day_first(text)
    is_page = text.count("](http", 0, PAGE) >= LINKED
    for line in lines:
        stamped = next((one for one in found(line, (*DAYS, *STAMPS), first) if one[2]), None)
        if stamped and _begins(line, *stamped[:2]):
            return stamped[2]
        dated = next((one for one in found(line, DAYS) if one[2]), None) if line in short else None
        captured = is_page and _SAID.captured.fullmatch(line.strip())
        if dated and not captured and dates_text(line, *dated[:2]):
            masthead = is_page and line is not lines[0]
            read_on = masthead and _SAID.today.search(line, 0, dated[0])
            return (read_on and _of_page(text[:PAGE], first)) or dated[2]
        if line is lines[0] and (in_title := _set_apart(line, first)):
            return in_title
    for line in short:
        dated = next((one for one in found(line, _SPANS) if one[2]), None)
        several = line in listed and len(listed) > 1
        if dated and not several and dates_text(line, *dated[:2]):
            return dated[2]
    declared = (_SAID.declared.fullmatch(line.strip(" *#_>-")) for line in short)
    said = next(filter(None, (read(match[1].strip(" *_")) for match in declared if match)), "")
    return said or (_of_page(text[:PAGE], first) if is_page else "")


def _set_apart(title: str, first: bool | None) -> str:
    """The date that stands alone in a title of several words: Coastal news of all towns - 07/02/2020
    - The Herald. A shorter one is judged as any other line."""
    if len(_SAID.words.findall(title)) <= BESIDE:
        return ""
    for start, end, day in found(title, DAYS, first):
        if day and _SAID.apart.search(title, 0, start) and _SAID.ends.match(title, end):
            return day
    return ""


def _of_page(head: str, first: bool | None) -> str:
    """The date of a web page: in its own address, unless a line says when it was updated, else in
    its byline, else in an address which ends with words of its title, else in a line without other
    words. Comments and other stories follow the first PARAGRAPHS."""
    head = _SAID.archive.sub("", head)
    lines = [line for line in readable(head).split("\n") if line.strip()][:PAGE_LINES]
    alone, paragraphs, has_menu = "", 0, bool(navigation(head))
    bylines: list[str] = []
    own = _own_address(head)
    for line in lines:
        paragraphs += len(line) > PARAGRAPH
        if paragraphs > PARAGRAPHS:
            break
        if len(line) <= SHORT and not line.startswith(">"):
            words = _SAID.joined.sub(" ", line)  # HonorofSeptember 25
            days = [one for one in found(words, DAYS, first) if one[2] and one[2] not in EPOCH]
            if days and _is_byline(words, days) and (not own[7:] or _SAID.updated.search(words)):
                bylines.append(days[0][2])
            if has_menu and len(days) == 1 and _says_no_more(words, days[0]):
                alone = alone or days[0][2]
    if bylines and (len(bylines) < STORIES or len(set(bylines)) > 1):
        return bylines[0]
    return own or _of_story(head, "".join(lines[:1]).casefold(), alone)


def _says_no_more(line: str, day: tuple[int, int, str]) -> bool:
    """Thursday 20 March 2014; not 1-5 December 2025"""
    before = _SAID.words.findall(line[: day[0]])
    spanned = line[: day[0]].rstrip()[-1:] in ("-", "–")
    said = len(before) < 2 and not any(word[0] > "\u2e80" for word in before)
    return said and not spanned and not _SAID.words.search(line, day[1])


def _own_address(head: str) -> str:
    """The date in the address of the page itself, which links to its own parts have: on the site to
    which most of its links lead, and no day of an event or of a version."""
    sites = Counter(match[1] for match in _SAID.site.finditer(head)).most_common(1)
    links = Counter(match["url"] for match in _SAID.own.finditer(head)).most_common(1)
    own = [match["url"] for match in _SAID.archived.finditer(head[:2_000])]
    own += [
        url for url, times in links if times > 1 and any(f"//{site}/" in url for site, _ in sites)
    ]
    own = [url for url in own if not _SAID.undated.search(url)]
    dates = (_iso(_parts(found)) for url in own if (found := _SAID.dated.search(url)))
    return next((date for date in dates if date and date not in EPOCH), "")


def _of_story(head: str, top: str, alone: str) -> str:
    """The date of the first address that ends with words of the title in the line at the top."""
    title = _SAID.words.findall(top)
    for match in _SAID.address.finditer(head):
        slug = _SAID.words.findall(match["slug"].casefold())
        same = {word for word in title if word[2:]}.intersection(slug)
        years = set(_SAID.year.findall(match["slug"])) - set(_SAID.year.findall(top))
        if len(same) >= 3 and len(same) >= 0.6 * len(set(title)) and not years:
            date = _iso(_parts(match))
            return date if date and date not in EPOCH else alone
    return alone


def _parts(match: re.Match[str]) -> dict[str, str | None]:
    return {name: match[name] for name in "ymd" if match[name]}


def _is_byline(line: str, days: list[tuple[int, int, str]]) -> bool:
    """Does the line say by whom or when a page was written, and nothing else? Of the words before
    the date only names are not those of a byline."""
    start, end, _ = days[0]
    before = [word for word in _SAID.words.findall(line[:start]) if word[0] < "\u2e80"]
    strange = [word for word in before if word.islower() and word not in _BYLINE]
    updated = _SAID.updated.search(line, end)
    if strange or len(before) > BEFORE or EVENT.search(line) or (len(days) > 1 and not updated):
        return False
    begins = _SAID.byline.match(line)
    clock = _SAID.timed_after.match(line, end)
    behind = _SAID.words.findall(line[clock.end() :]) if clock else ()
    event = not all(word.isupper() or word.lower() in _BYLINE for word in behind[:1])  # Uhr, GMT
    said = clock and not event and not _SAID.comment.search(line)
    return bool(said or updated or (begins and begins.end() <= start))


def _begins(line: str, start: int, end: int) -> bool:
    """Does the line begin with a date and a clock, as the head of a turn does whatever it says?"""
    return not line[:start].strip(" [(") and bool(_SAID.timed_after.match(line, end))


def found(
    text: str, forms: Iterable[re.Pattern[str]], day_first: bool | None = None
) -> list[tuple[int, int, str]]:
    """Where a form stands in the text, and its date, "" for one that the calendar does not have,
    whose day could be its month (if no order is given), or that is the number of a section or
    version."""
    matches = (match for form in forms for match in form.finditer(text))
    return sorted(
        (*match.span(), "" if _is_number(match) else _iso(match.groupdict(), day_first))
        for match in matches
    )


def _is_number(match: re.Match[str]) -> bool:
    """Is 12.5.2024 the number of a section or of a version?"""
    before = match.start() - 16
    dotted = match[0].replace(".", "").isdecimal()
    return dotted and bool(_NUMBERED.search(match.string, max(before, 0), match.start()))


def day_first(text: str) -> bool | None:
    """Does this text write the day before the month (31/12/2023) or after it? None where none of
    its dates tells, or where they differ."""
    pairs = {
        (int(match["a"]) > 12, int(match["b"]) > 12)
        for form in (NUMERIC[0], STAMPS[0])
        for match in form.finditer(text)
    } & {(True, False), (False, True)}
    return pairs.pop()[0] if len(pairs) == 1 else None


def dates_text(line: str, start: int, end: int) -> bool:
    """Does a line with a date at `start:end` say little else, and no event? Then it dates what
    stands below it."""
    before, after = _SAID.timed_before.search(line, 0, start), _SAID.timed_after.match(line, end)
    start, end = before.start() if before else start, after.end() if after else end
    rest = line[:start] + " " + line[end:]
    # Of a script without blanks two letters are a word.
    words = (
        1 if word[0] < "\u2e80" else (len(word) + 1) // 2 for word in _SAID.words.findall(rest)
    )
    return not EVENT.search(rest) and (
        line.startswith("#") or sum(words) <= BESIDE * (2 if before or after else 1)
    )


def _iso(fields: Mapping[str, str | None], day_first: bool | None = None) -> str:
    """The groups of a form as ISO 8601; "" for what the calendar does not have."""
    year = str(fields.get("y"))
    year = year if len(year) > 2 else f"20{year}"
    if "q" in fields:
        number = _QUARTER.get(folded(fields["q"] or ""), 0)
        return f"{year}-Q{number}" if number else ""
    month, day = fields.get("m"), fields.get("d")
    if fields.get("word"):
        month = str(_NUMBER.get(folded(fields["word"] or ""), 0))
    if fields.get("a"):
        month, day = _month_and_day(int(fields["a"] or 0), int(fields["b"] or 0), day_first)
    try:
        found = date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return ""
    return found.isoformat()[: 4 if month is None else 7 if day is None else 10]


def _month_and_day(first: int, second: int, day_first: bool | None) -> tuple[str, str]:
    """Of two numbers of which one can be no month; month 0 where both could."""
    if first == second or second <= 12 < first or (day_first and first <= 12 >= second):
        return str(second), str(first)
    clear = first <= 12 and (second > 12 or day_first is False)
    return (str(first), str(second)) if clear else ("0", "1")
