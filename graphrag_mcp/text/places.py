"""Where in its original a part of a document stands: page, slide, cell of a sheet, time of a cue.

A place is a list of (offset, name), ascending: the text from `offset` on stands at `name`. Names are
`p. 3`, `slide 4`, `Costs!A7` (the first cell of a row; each further line of a table is the next row),
`Costs!A$1` (row 1, the header, shown again below) and `00:03:06` (hours, minutes, seconds). Text before the first
offset has no place."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Places = Sequence[tuple[int, str]]

BAR, TALL_BAR = ("|", "│")  # between the cells of a row; the second in tables whose cells hold the first
_CELL = re.compile(r"(.+)!([A-Z]{1,3})(?P<again>\$?)([0-9]{1,7})\Z", re.DOTALL)
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
    cell = _CELL.match(places[last][1])
    return _joined(places[first][1], f"{cell[1]}!{cell[2]}{cell[4]}" if cell else places[last][1])


def _joined(first: str, last: str) -> str:
    if first == last:
        return first
    first_match, last_match = _NUMBERED.match(first), _NUMBERED.match(last)
    if first_match and last_match:
        kind = "pp." if first_match[1] == "p." else "slides"
        return f"{kind} {first_match[2]}-{last_match[2]}"
    return f"{first}-{last}"


def _cells(document: Placed, first: int, last: int, start: int, end: int) -> str:
    """The cells from the first to the last character; rows of one sheet as one range. A header that is shown again and
    a comment below a table are outside of it, unless the text holds nothing else."""
    places, text = document.places, document.text
    ends = [offset for offset, _ in places[first + 1 : last + 1]] + [end]
    runs: list[tuple[int, int, str]] = []  # first and last character, place
    for (offset, name), stop in zip(places[first : last + 1], ends, strict=True):
        begin = max(offset, start)
        runs.append((begin, max(begin, begin + len(text[begin:stop].rstrip()) - 1), name))
    rows = [
        run
        for run in runs
        if text.startswith((BAR, TALL_BAR), text.rfind("\n", 0, run[0]) + 1)
        and (cell := _CELL.match(run[2]))
        and not cell["again"]
    ]
    cells = [run for run in rows or runs if _CELL.match(run[2])]
    offsets = [(at, places[bisect_right(places, at, key=_offset) - 1]) for run in cells for at in run[:2]]
    found = [_CELL.match(_cell_at(text, place, at)) for at, place in offsets]
    ranges = [(cell[1], cell[2], int(cell[4])) for cell in found if cell]
    sheet, final = ranges[0][0], f"{ranges[-1][0]}!{ranges[-1][1]}{ranges[-1][2]}"
    beyond = next((name for _, _, name in runs if not _CELL.match(name) and name != sheet), "")
    if beyond or any(name != sheet for name, _, _ in ranges):
        return f"{sheet}!{ranges[0][1]}{ranges[0][2]}-{beyond or final}"
    lowest, highest = min(row for _, _, row in ranges), max(row for _, _, row in ranges)
    numbers = sorted(column_number(column) for _, column, _ in ranges)
    columns = [numbers[0], numbers[-1]]
    if lowest != highest:  # whole rows, which are as wide as the last
        columns[0] = min(column_number(cell[2]) for run in cells if (cell := _CELL.match(run[2])))
        line = text.rfind("\n", 0, cells[-1][1] + 1) + 1
        bars = text.count(_bar(text, line), line, _line_end(text, line))
        columns[1] = columns[0] + max(bars - 2, 0)
    top, bottom = f"{column_name(columns[0])}{lowest}", f"{column_name(columns[1])}{highest}"
    return f"{sheet}!{top}" + (f":{bottom}" if top != bottom else "")


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
    row = int(found[4]) + text.count("\n", offset, at)
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
            found[0] = (0, f"{cell[1]}!{cell[2]}{int(cell[4]) + lines}")
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
    cells = ((offset, _CELL.match(name)) for offset, name in document.places)
    return frozenset(offset for offset, cell in cells if cell and cell["again"])


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
