"""Citations of notes: Markdown links whose title is a fingerprint of the text that was cited.

    [radar-station.md:14](../radar-station.md#L14 "cited 212 8f3ab2c4d5e6f708")

The address says where the text stood, the title how many characters it has without white space and
their hash. So the text is found again wherever it has moved in its document, and what became of it
needs nothing but the note and the document. The hash is the rolling hash of Karp and Rabin,
"Efficient randomized pattern-matching algorithms" (1987), modulo 2^64: all windows of a document are
compared at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

MULTIPLIER = 0x9E3779B97F4A7C15  # any odd number whose bits are mixed
TITLE = r'"cited \d{1,9} [0-9a-f]{16}"'
_LINK = re.compile(
    r"\[(?P<label>[^\[\]\n]{0,300})\]\((?P<target>[^\s()<>]{1,3000}) "
    r'"cited (?P<length>\d{1,9}) (?P<hash>[0-9a-f]{16})"\)'
)
_TITLE = re.compile(rf" {TITLE}(?=\))")
_BLANK = [code for code in range(0x3001) if chr(code).isspace()]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`length`: characters that are no white space; `hash`: 16 hexadecimal digits of them."""

    length: int
    hash: str

    def __str__(self) -> str:
        return f"{self.length} {self.hash}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A link of a note. `path` and `fragment` are decoded; a citation without a fragment is one of a
    whole document. `start`, `end`: characters of the link in the note."""

    label: str
    path: str
    fragment: str
    fingerprint: Fingerprint
    start: int
    end: int


class Searchable:
    """A text in which fingerprints are looked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _sums(self) -> tuple[Any, Any, Any]:
        """Where characters stand that are no white space, the powers of the multiplier, and the sums
        of characters times powers, which begin with 0."""
        import numpy as np

        codes = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), np.uint32)
        places = np.flatnonzero(~np.isin(codes, _BLANK))
        powers = np.full(len(places) + 1, MULTIPLIER, np.uint64)
        powers[0] = 1
        powers = np.cumprod(powers)
        terms = (codes[places].astype(np.uint64) + np.uint64(1)) * powers[:-1]
        return places, powers, np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])

    @property
    def fingerprint(self) -> Fingerprint:
        places, _, sums = self._sums
        return Fingerprint(len(places), f"{int(sums[-1]):016x}")

    def find(self, wanted: Fingerprint) -> tuple[int, int] | None:
        """The characters (start, end) of the first text with this fingerprint; None without one."""
        import numpy as np

        places, powers, sums = self._sums
        count = len(places) - wanted.length + 1
        if count < 1 or not wanted.length:
            return None
        windows = sums[wanted.length :] - sums[:count]
        same = np.flatnonzero(windows == np.uint64(int(wanted.hash, 16)) * powers[:count])
        if not len(same):
            return None
        first = int(same[0])
        return int(places[first]), int(places[first + wanted.length - 1]) + 1


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of a whole text."""
    return Searchable(text).fingerprint


def link(label: str, target: str, of: Fingerprint) -> str:
    """A citation as it is written; `target` is percent-encoded."""
    plain = re.sub(r"[\[\]\s]+", " ", label).strip()[:200]
    return f'[{plain}]({target} "cited {of}")'


def citations(text: str) -> Iterator[Citation]:
    """The citations of a note, in their order."""
    for found in _LINK.finditer(text):
        path, _, fragment = found["target"].partition("#")
        of = Fingerprint(int(found["length"]), found["hash"])
        yield Citation(found["label"], unquote(path), unquote(fragment), of, *found.span())


def without_fingerprints(text: str) -> str:
    """The text with its citations as plain links: a fingerprint is no word to be found by."""
    return _TITLE.sub("", text) if '"cited ' in text else text
