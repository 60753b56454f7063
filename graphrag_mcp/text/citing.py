"""Citations of notes: marks in the text, and at its end Markdown reference definitions whose title is a
fingerprint of the text that was cited.

    Ines Calloway opened the canister [1].

    [1]: ../radar-station.md#L14 "cited 212 8f3ab2c4d5e6f708-51c0d2aa"

Any viewer of Markdown shows the mark as a link and not the definition. The address says where the text stood, the
title how many characters it has without white space, their hash, and a hash of where its words end; `cited all` says
that all of a document or of a row of a table is meant. So the text is found again wherever it has moved in its document, and what became of it needs nothing but
the note and the document. Notes of earlier releases have links of this form within their lines,
or no hash of words, which count as well, and a line `[documents-seen]`, which does not. The hash is the rolling hash of Karp and Rabin, "Efficient randomized pattern-matching algorithms"
(1987), modulo 2^64: all windows of a document are compared at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from graphrag_mcp.text.terms import dense_runs

MULTIPLIER = 0x9E3779B97F4A7C15  # any odd number whose bits are mixed
_CITED = r"cited (?P<all>all )?(?P<length>\d{1,9}) (?P<hash>[0-9a-f]{16})(?:-(?P<words>[0-9a-f]{8}))?"
_TITLE = rf'"{_CITED}"'
_SEEN = "documents-seen"
LONGEST = 3_000  # characters of a target
_TARGET = rf"(?P<target>[^\s()<>]{{1,{LONGEST}}})"
_LINK = re.compile(rf"\[(?P<label>[^\[\]\n]{{0,300}})\]\({_TARGET} {_TITLE}\)")
# A definition that a person or an editor has written otherwise counts as the same: with more blanks, the title on the
# next line or in other quotes, the target in angle brackets or with round ones in it.
_DEFINITION = re.compile(
    rf"^ {{0,3}}\[(?P<mark>\d{{1,6}}|{_SEEN})\]:[ \t]{{0,9}}"
    rf"(?:<(?P<within>[^<>\n]{{1,{LONGEST}}})>|(?P<target>[^\s<>]{{1,{LONGEST}}}))"
    rf"[ \t]{{0,9}}(?:(?<=[ \t])|\n[ \t]{{0,9}})(?P<quote>[\"'(]){_CITED}[\"')][ \t]*$\n?",
    re.MULTILINE,
)
MARK = re.compile(r"(?<!\\)\[(\d{1,6})\](?!\()")
_IN_LINE = re.compile(r' "cited (?:all )?\d{1,9} [0-9a-f]{16}(?:-[0-9a-f]{8})?"(?=\))')
_BLANK = [code for code in range(0x3001) if chr(code).isspace()]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`length`: characters that are no white space; `hash`: 16 hexadecimal digits of them; `words`: 8 of the places of
    the white space between them. With `words` "", as in notes of earlier releases, any white space will do, and the
    text may begin or end inside a word."""

    length: int
    hash: str
    words: str = ""

    @property
    def characters(self) -> Fingerprint:
        """The same without the places of the white space."""
        return replace(self, words="")

    def __str__(self) -> str:
        return f"{self.length} {self.hash}{self.words and '-'}{self.words}"


@dataclass(frozen=True, slots=True)
class Citation:
    """A source of a note. `path` and `fragment` are decoded; `whole`: all of the document is cited. `mark`: the
    number by which its text names it; "" for a link within a line. `start`, `end`: characters of the link or of
    the definition in the note."""

    label: str
    path: str
    fragment: str
    fingerprint: Fingerprint
    start: int
    end: int
    whole: bool = False
    mark: str = ""

    @property
    def key(self) -> tuple[str, str, Fingerprint]:
        """What it cites, wherever it stands in its note."""
        return self.path, self.fragment, self.fingerprint


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

    @cached_property
    def _glued(self) -> Any:
        """For each character that is no white space: does it belong to the word of the next one? No blanks stand between
        words of Chinese, Japanese or Thai, so a blank or a new line beside their characters says nothing."""
        import numpy as np

        places = self._sums[0]
        glued = np.diff(places, append=len(self.text) + 1) == 1
        if not self.text.isascii():
            dense = np.zeros(len(self.text), bool)
            for start, end in dense_runs(self.text):
                dense[start:end] = True
            dense = dense[places]
            glued &= ~(dense | np.append(dense[1:], False))
        return glued

    def _words(self, first: int, end: int) -> str:
        """8 hexadecimal digits of the places at which words end between these characters."""
        import numpy as np

        return sha256(np.packbits(self._glued[first : end - 1]).tobytes()).hexdigest()[:8]

    @cached_property
    def fingerprint(self) -> Fingerprint:
        places, _, sums = self._sums
        return Fingerprint(len(places), f"{int(sums[-1]):016x}", self._words(0, len(places)))

    def is_all(self, cited: Fingerprint) -> bool:
        """Is this the fingerprint of the whole text?"""
        return cited in (self.fingerprint, self.fingerprint.characters)

    def part(self, text: str) -> Fingerprint:
        """The fingerprint of a part of this text; without its words where it begins or ends inside one, so that it is
        found here."""
        found = fingerprint(text)
        return found if self.find(found) else found.characters

    def find(self, cited: Fingerprint) -> tuple[int, int] | None:
        """The characters (start, end) of the first text with this fingerprint; None without one."""
        return next(self.each(cited), None)

    def each(self, cited: Fingerprint) -> Iterator[tuple[int, int]]:
        """The characters (start, end) of each text with this fingerprint."""
        import numpy as np

        places, powers, sums = self._sums
        count = len(places) - cited.length + 1
        if count < 1 or not cited.length:
            return
        windows = sums[cited.length :] - sums[:count]
        for first in np.flatnonzero(windows == np.uint64(int(cited.hash, 16)) * powers[:count]).tolist():
            end = first + cited.length
            if cited.words and (
                (first and self._glued[first - 1]) or self._glued[end - 1] or self._words(first, end) != cited.words
            ):
                continue
            yield int(places[first]), int(places[end - 1]) + 1


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of a whole text."""
    return Searchable(text).fingerprint


def definition(mark: int | str, target: str, of: Fingerprint, whole: bool = False) -> str:
    """A citation as it is written at the end of a note; `target` is percent-encoded."""
    return f'[{mark}]: {target} "cited {"all " if whole else ""}{of}"'


def citations(text: str) -> Iterator[Citation]:
    """The citations of a note: links within its lines, and definitions whose mark stands in its text."""
    if "cited " not in text:
        return
    for found in _LINK.finditer(text):
        yield _citation(found, found["label"])
    marks: set[str] | None = None
    for found in _DEFINITION.finditer(text):
        if marks is None:
            marks = {mark[1] for mark in MARK.finditer(_DEFINITION.sub("\n", text))}
        if found["mark"] in marks:
            yield _citation(found, "", found["mark"])
            marks.discard(found["mark"])  # of two definitions of a mark the first counts


def _citation(found: re.Match[str], label: str, mark: str = "") -> Citation:
    path, fragment = place_of(_target_of(found))
    of = Fingerprint(int(found["length"]), found["hash"], found["words"] or "")
    whole = bool(found["all"]) or not fragment
    return Citation(label or _label(path, fragment), path, fragment, of, *found.span(), whole, mark)


def _target_of(found: re.Match[str]) -> str:
    return found["target"] or found["within"]


def place_of(target: str) -> tuple[str, str]:
    """The path and the fragment of a target, decoded."""
    path, _, fragment = target.partition("#")
    return unquote(path), unquote(fragment)


def _label(path: str, fragment: str) -> str:
    """`radar-station.md:14`, `report.pdf p. 3`, `costs.xlsx Costs!B7`"""
    file = path.rpartition("/")[2].removeprefix("text:")
    line = fragment.removeprefix("L").partition("-")[0]
    if fragment.startswith("L") and line.isdigit():
        return f"{file}:{line}"
    return f"{file} {fragment.replace('page=', 'p. ')}".strip()


def definitions(text: str) -> tuple[str, list[str]]:
    """The text without the definitions at its end, and these."""
    end = len(text)
    found: list[str] = []
    for match in reversed([*_DEFINITION.finditer(text)] if "cited " in text else []):
        if text[match.end() : end].strip():
            break
        found.insert(0, match[0].strip())
        end = match.start()
    return (text[:end].rstrip(), found) if found else (text, [])


def definition_spans(text: str) -> list[tuple[int, int]]:
    """Where the definitions of citations stand in a text: start and end of each, in characters."""
    return [found.span() for found in _DEFINITION.finditer(text)] if "cited " in text else []


def without_definitions(text: str) -> str:
    """The text without any definition of a citation."""
    return _DEFINITION.sub("", text) if "cited " in text else text


def without_fingerprints(text: str) -> str:
    """The text with its citations as plain links or marks: a fingerprint is no word to be found by."""
    return _IN_LINE.sub("", without_definitions(text)) if "cited " in text else text
