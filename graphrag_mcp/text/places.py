"""Where in its original a part of a document stands: page, slide, cell of a sheet, time of a cue.

A place is a list of (offset, name), ascending: the text from `offset` on stands at `name`. Names are
`p. 3`, `slide 4`, `Costs!A7` (the first cell of a row; each further line of a table is the next row)
and `00:03:06` (hours, minutes, seconds). Text before the first offset has no place."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Places = Sequence[tuple[int, str]]

BAR, TALL_BAR = (
    "|",
    "│",
)  # between the cells of a row; the second in tables whose cells hold the first
_CELL = re.compile(r"(.+)!([A-Z]{1,3})([0-9]{1,7})\Z", re.DOTALL)
_NUMBERED = re.compile(r"(p\.|slide) ([0-9]+)\Z")


class Placed(Protocol):
    """What has a place: a document, or a passage with offsets of its own text."""

    @property
    def text(self) -> str: ...
    @property
    def places(self) -> Places: ...


def place_of(document: Placed, start: int, end: int) -> str:
    """The place of `document.text[start:end]`: `p. 3`, `pp. 3-5`, `slide 4`, `Costs!B7`,
    `Costs!A7:D9`, `00:03:06`; "" where none is known."""
    places = document.places
    if not places or end <= start:
        return ""
    starts = [offset for offset, _ in places]
    first = max(bisect_right(starts, start) - 1, 0)
    last = bisect_right(starts, end - 1) - 1
    if last < 0:
        return ""
    start = max(start, starts[first])
    if _CELL.match(places[first][1]):
        return _cells(document, first, last, start, end)
    return _joined(places[first][1], places[last][1])


def _joined(first: str, last: str) -> str:
    if first == last:
        return first
    first_match, last_match = _NUMBERED.match(first), _NUMBERED.match(last)
    if first_match and last_match:
        kind = "pp." if first_match[1] == "p." else "slides"
        return f"{kind} {first_match[2]}-{last_match[2]}"
    return f"{first}-{last}"


def _cells(document: Placed, first: int, last: int, start: int, end: int) -> str:
    """The cells from the first to the last character; rows of one sheet as one range."""
    places, text = document.places, document.text
    begin = _cell_at(text, places[first], start)
    before = text[start:end].rstrip()
    if _CELL.match(places[last][1]) is None:
        return f"{begin}-{places[last][1]}"
    final = _cell_at(text, places[last], start + max(len(before) - 1, 0))
    first_cell, last_cell = _CELL.match(begin), _CELL.match(final)
    assert first_cell is not None and last_cell is not None
    if first_cell[1] != last_cell[1]:
        return f"{begin}-{final}"
    rows = sorted((int(first_cell[3]), int(last_cell[3])))
    columns = sorted((first_cell[2], last_cell[2]), key=lambda name: (len(name), name))
    if rows[0] != rows[1]:  # whole rows, which are as wide as the last
        lowest = min(
            column_number(found[2])
            for _, name in places[first : last + 1]
            if (found := _CELL.match(name))
        )
        line = text.rfind("\n", 0, start + len(before)) + 1
        bars = text.count(_bar(text, line), line, _line_end(text, line))
        columns = [column_name(lowest), column_name(lowest + max(bars - 2, 0))]
    top, bottom = f"{columns[0]}{rows[0]}", f"{columns[1]}{rows[1]}"
    return f"{first_cell[1]}!{top}" + (f":{bottom}" if top != bottom else "")


def _bar(text: str, line: int) -> str:
    return TALL_BAR if text.startswith(TALL_BAR, line) else BAR


def _line_end(text: str, line: int) -> int:
    end = text.find("\n", line)
    return len(text) if end < 0 else end


def _cell_at(text: str, place: tuple[int, str], at: int) -> str:
    """The cell of a character: rows are lines from the place's offset on, cells stand between bars."""
    offset, name = place
    found = _CELL.match(name)
    assert found is not None
    row = int(found[3]) + text.count("\n", offset, at)
    line = text.rfind("\n", offset, at) + 1 or offset
    column = max(text.count(_bar(text, line), line, at) - 1, 0)
    return f"{found[1]}!{column_name(column_number(found[2]) + column)}{row}"


def column_name(number: int) -> str:
    """`A` for 0, `Z` for 25, `AA` for 26."""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(65 + digit) + name
    return name


def column_number(name: str) -> int:
    """0 for `A`, 26 for `AA`."""
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _offset(place: tuple[int, str]) -> int:
    return place[0]


def part(places: Places, text: str, start: int, end: int) -> list[tuple[int, str]]:
    """The places of `text[start:end]`, with offsets from its start."""
    first = bisect_right(places, start, key=_offset) - 1
    beyond = bisect_left(places, end, key=_offset)
    found = [(max(offset - start, 0), name) for offset, name in places[max(first, 0) : beyond]]
    if first >= 0 and found:
        offset, name = places[first]
        cell = _CELL.match(name)
        if cell and (lines := text.count("\n", offset, start)):  # a later row of the same run
            found[0] = (0, f"{cell[1]}!{cell[2]}{int(cell[3]) + lines}")
    return found


def divisions(places: Places) -> frozenset[int]:
    """The offsets at which a page, a slide or a sheet begins."""
    found: list[int] = []
    before = ""
    for offset, name in places:
        cell = _CELL.match(name)
        division = cell[1] if cell else name if _NUMBERED.match(name) else ""
        if division and division != before:
            found.append(offset)
            before = division
    return frozenset(found)


def headers(document: Placed) -> frozenset[int]:
    """The offsets at which a long table of a sheet shows the row of its header again."""
    found: list[int] = []
    row = 0
    for offset, name in document.places:
        cell = _CELL.match(name)
        if cell and int(cell[3]) < row and document.text[offset] in (BAR, TALL_BAR):
            found.append(offset)
        row = int(cell[3]) if cell else 0
    return frozenset(found)


def write(places: Places) -> str:
    """As a column of a table holds it; "" for none."""
    return json.dumps(list(places), ensure_ascii=False, separators=(",", ":")) if places else ""


def read(stored: str) -> list[tuple[int, str]]:
    """What `write` has written; [] for "" and for what is no list of places."""
    try:
        return [(int(offset), str(name)) for offset, name in json.loads(stored)] if stored else []
    except (ValueError, TypeError):
        return []


@dataclass(frozen=True)
class Part:
    """A text with places of its own offsets."""

    text: str
    places: Places


def of_row(row: Mapping[str, Any], start: int = 0, end: int = -1) -> str:
    """The place of a row of passages or text units, or of `row["text"][start:end]`; "" for none."""
    stored = row.get("places", "")
    if not stored:
        return ""
    text = row["text"]
    return place_of(Part(text, read(stored)), start, len(text) if end < 0 else end)
