"""Where the text units of another index stand in its documents.

Takes a document's text and the units' texts in their order; gives a span for each, or None. Cutting by tokens and
writing down again leaves marks: blanks taken off, halves of characters, lines put before a unit, other line ends. What
was looked for and how it was found is told, so that nobody takes a near match for an exact one. Knows no table.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

HEAD_LINES = 30  # lines put before a unit (metadata of its document) that are looked behind
SHORTEST = 12  # characters that a found rest must have at least: less stands anywhere
_BROKEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start:end` of the document; `exact` when they are the unit's text to the letter."""

    start: int
    end: int
    exact: bool


def placed(document: str, units: Sequence[str]) -> list[Place | None]:
    """The place of each unit: after the start of the one before it where it can be, else anywhere."""
    places: list[Place | None] = []
    after = 0
    folded: tuple[str, array[int]] | None = None
    for text in units:
        place = _exact(document, text, after) or _without_marks(document, text, after)
        if place is None and text.strip():
            folded = folded or _flat(document)
            place = _loosely(folded, document, text, after)
        places.append(place)
        if place is not None:
            after = place.start
    return places


def _exact(document: str, text: str, after: int) -> Place | None:
    at = _find(document, text, after)
    return Place(at, at + len(text), True) if at >= 0 else None


def _find(document: str, text: str, after: int) -> int:
    """Where a text begins at or after a place, else before it; -1 for nowhere and for a blank one."""
    if not text.strip():
        return -1
    at = document.find(text, after)
    return at if at >= 0 else document.find(text)


def _without_marks(document: str, text: str, after: int) -> Place | None:
    """Without the halves of characters at both ends, or behind lines that were put before it."""
    bare = text.strip().strip(_BROKEN).strip()
    at = _find(document, bare, after)
    if at >= 0:
        return Place(at, at + len(bare), False)
    rest = bare
    for _ in range(HEAD_LINES):
        _, end, rest = rest.partition("\n")
        if not end or len(rest.strip()) < SHORTEST:
            return None
        at = _find(document, rest.strip(), after)
        if at >= 0:
            return Place(at, at + len(rest.strip()), False)
    return None


def _flat(text: str) -> tuple[str, array[int]]:
    """The text with each run of blanks as one, and where every sign came from."""
    starts = array("q")
    parts: list[str] = []
    for match in re.finditer(r"\S+|\s+", text):
        word = match[0]
        if word[0].isspace():
            parts.append(" ")
            starts.append(match.start())
        else:
            parts.append(word)
            starts.extend(range(match.start(), match.end()))
    return "".join(parts), starts


def _loosely(folded: tuple[str, array[int]], document: str, text: str, after: int) -> Place | None:
    """Whatever blanks stand between the words."""
    flat, starts = folded
    wanted = " ".join(text.strip(_BROKEN).split())
    if len(wanted) < SHORTEST:
        return None
    at = flat.find(wanted, bisect_left(starts, after))
    at = at if at >= 0 else flat.find(wanted)
    if at < 0:
        return None
    return Place(starts[at], starts[at + len(wanted) - 1] + 1, False)
