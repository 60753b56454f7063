"""What a model or an agent wrote and its source does not have: numbers, and names word by word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from graphrag_mcp.index.places import locate
from graphrag_mcp.text.prose import sentences

_NUMBER = re.compile(r"\d(?:[\d.,’']*\d)?")
_GROUPS = re.compile(r"(?<![\d.,’'])\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?!\d)")  # 2 100 000
_DATE = re.compile(r"\d{1,4}\.\d{1,2}\.\d{1,4}")
_NAME_IN_TEXT = re.compile(r"(?<!\w)[^\W\d_a-z][\w’'-]*(?: [^\W\d_a-z][\w’'-]*)+")
_POSSESSIVE = re.compile(r"['’]s?\Z")


def numbers(written: str, source: str) -> list[str]:
    """The numbers that the source does not have; the signs between groups of digits do not count."""
    known = _known(source)
    text = _GROUPS.sub(lambda match: "" if _digits(match[0]) in known else match[0], _folded(written))
    return [number for number in _NUMBER.findall(text) if _digits(number) not in known]


@lru_cache(maxsize=16)  # each statement of a report is compared with one source
def _known(source: str) -> frozenset[str]:
    text = _folded(source)
    found = _NUMBER.findall(text)
    found += [part for date in found if _DATE.fullmatch(date) for part in date.split(".")]
    return frozenset(map(_digits, (*found, *_GROUPS.findall(text))))


def names(written: str, source: str) -> Iterator[str]:
    """Two or more capitalised words in a row of which the source lacks one: a word alone may be any
    German noun."""
    text = _folded(written)
    begins = {start for start, _ in sentences(text)}
    for match in _NAME_IN_TEXT.finditer(text):
        words = match[0].split()[match.start() in begins :]  # a sentence begins with a capital
        words = [word for word in words if word[0].isupper()]  # a script may have no capitals
        if not has_words(source, words):
            yield match[0]


def has_words(source: str, words: Iterable[str]) -> bool:
    """Does each of the words stand in the source, with or without 's?"""
    return all(locate(source, word) or locate(source, _POSSESSIVE.sub("", word)) for word in words)


def _folded(text: str) -> str:
    """In compatibility form, in which the full-width comma that ends a number stays no part of it."""
    return unicodedata.normalize("NFKC", text.replace("，", "， "))


def _digits(number: str) -> str:
    return re.sub(r"[^\d]", "", number).lstrip("0")
