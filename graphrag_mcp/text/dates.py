"""The date that a document states of itself, in its file name or first lines.

Takes a name or a text; gives the day as ISO 8601, or "". Knows the ways in which a dozen languages
write a day with its month and year; no times, and nothing where day and month could be taken for
each other (03/04/2024).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from graphrag_mcp.text.folding import folded

KEYS = (
    "date",
    "created",
    "published",
    "updated",
    "time",
    "timestamp",
)  # of metadata, that date a document
ADDRESSES = (
    "path",
    "url",
    "permalink",
    "slug",
    "link",
    "aliases",
)  # of metadata: where a page stands on its site
LINES, SHORT = (
    6,
    100,
)  # a date stands in one of the first lines that say something, and that line is short
# words beside it in a line that dates a text; more are a sentence, and its date is that of what it
# tells
BESIDE = 5

_MONTHS = [
    "january jan januar janner janvier enero gennaio janeiro januari янв января",
    "february feb februar fevrier fevr febrero febbraio fevereiro februari фев февраля",
    "march mar marz mars marzo marco maart мар марта",
    "april apr avril avr abril aprile апр апреля",
    "may mai mayo maggio maio mei мая",
    "june jun juni juin junio giugno junho июн июня",
    "july jul juli juillet juil julio luglio julho июл июля",
    "august aug aout agosto augustus авг августа",
    "september sep sept septembre septiembre settembre setembro сен сентября",
    "october oct okt oktober octobre octubre ottobre outubro окт октября",
    "november nov novembre noviembre novembro ноя ноября",
    "december dec dez dezember decembre diciembre dicembre dezembro дек декабря",
]
_NUMBER = {folded(word): at for at, words in enumerate(_MONTHS, 1) for word in words.split()}
_NAMED = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")
_PATH = re.compile(r"(?:^|/)((?:19|20)\d\d)/(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/")
_PARTS = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_YEAR, _WORD = r"(?P<y>(?:19|20)\d\d)(?!\d)", r"(?P<word>[^\W\d_]{3,10})"
_FORMS = [
    re.compile(form)
    for form in (
        r"(?<!\d)(?P<y>(?:19|20)\d\d)([-/.])(?P<m>\d\d?)\2(?P<d>\d\d?)(?![\d.]\d|\d)",
        r"(?<!\d)(?P<y>(?:19|20)\d\d) ?[年년] ?(?P<m>\d\d?) ?[月월] ?(?P<d>\d\d?) ?[日号號일]",
        rf"(?<!\d)(?P<d>\d\d?)\.(?P<m>\d\d?)\.{_YEAR}",
        rf"(?<!\d)(?P<d>\d\d?)(?:\.|st|nd|rd|th|er|º)?,? (?:of |de )?{_WORD}\.?,? (?:de )?{_YEAR}",
        rf"\b{_WORD}\.? (?P<d>\d\d?)(?:st|nd|rd|th)?,? {_YEAR}",
    )
]
_WORDS = re.compile(r"[^\W\d_]+")


def exists(written: str) -> bool:
    """Is this a year, a month or a day of the calendar: 2024, 2024-05, 2024-05-03?"""
    match = _PARTS.fullmatch(written)
    if match is None:
        return False
    year, month, day = match.groups(default="01")
    return bool(_day({"y": year, "m": month, "d": day}))


def in_name(name: str) -> str:
    """minutes-2024-03-02.md"""
    found = _NAMED.search(name)
    return "-".join(found.group(1, 3, 4)) if found else ""


def in_address(metadata: Mapping[str, Any]) -> str:
    """path = "2014/11/20/Cargo", as blogs lay their pages out."""
    for key, said in metadata.items():
        for one in said if isinstance(said, list) else [said]:
            if (
                key.casefold() in ADDRESSES
                and isinstance(one, str)
                and (found := _PATH.search(one))
            ):
                return _day(dict(zip("ymd", found.groups(), strict=True)))
    return ""


def in_head(text: str) -> str:
    """The first date of its first lines: `Date: 2024-03-02`, `27. Mai 2025`, `日期：2024年3月2日`."""
    lines = [line for line in text[:2_000].splitlines() if line.strip()][:LINES]
    for line in lines:
        found = [
            (match.start(), match.end(), day)
            for form in _FORMS
            if len(line) <= SHORT
            for match in form.finditer(line)
            if (day := _day(match.groupdict()))
        ]
        if found:
            start, end, day = min(found)
            if line.startswith("#") or _beside(line[:start] + " " + line[end:]) <= BESIDE:
                return day
    return ""


def _beside(rest: str) -> int:
    """Words, of a script without blanks as many as it has letters by two."""
    return sum(1 if word[0] < "\u2e80" else (len(word) + 1) // 2 for word in _WORDS.findall(rest))


def _day(held: dict[str, str]) -> str:
    month = _NUMBER.get(folded(held["word"]), 0) if "word" in held else int(held["m"])
    try:
        return date(int(held["y"]), month, int(held["d"])).isoformat()
    except ValueError:
        return ""
