"""A built-in token counter, so that chunks are the same on every machine. Counts of documents are
never under those of `o200k_base`."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import TypeVar

from graphrag_mcp.text.terms import bare_latin, table

T = TypeVar("T")

# Words and runs of signs that are one token of `o200k_base`, where the counter would think that they are more: common
# English words in lower case, one token with the blank before them and mostly with a capital as well; words of
# programs; runs of signs as prose, JSON and programs have them.
ONE_TOKEN = frozenset(Path(__file__).with_name("one_token.txt").read_text("utf-8").split())


# Costs are in sixteenths of a token. Rows: a letter (last row: start of the word); columns: the letter after it (last
# column: end of the word); base 36. A fit of o200k_base counts on running text in 100 languages that asked for a mean
# of 1.2 in each and at most 1.36 in English and code. Pairs that English hardly uses cost most, which is what tells a
# common word from a rare name; fitted with a third of the languages held out, the least mean on those was 1.08.
# Common English words and runs of signs, which this took for more, stand in one_token.txt and cost one token; what
# is left of the words costs a sixteenth more, because the common ones had made up for the rare.
_COSTS = table(__file__)
_BLOCKS = _COSTS["blocks"]  # first characters, with the costs of each of theirs
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KEYS = (a + b for a in _LETTERS + "^" for b in _LETTERS + "$")


class _PairCosts(dict[str, int]):
    """Cost by pair; of one with another sign than a letter it is 20, and is not kept: there is no end of these."""

    def __missing__(self, pair: str) -> int:
        return 20


_PAIR = _PairCosts(zip(_KEYS, (int(cost, 36) for cost in "".join(_COSTS["pairs"].split())), strict=True))
_TITLE, _MARK = 7, 12  # same fit: a capital first letter, an accent
_BLOCK_STARTS = [start for start, _ in _BLOCKS]
_COMMON_HAN = 18  # 0.90 in encyclopaedic prose, 1.01 in lists of names
SLACK = 24  # means are safe on long text; this covers a short one that happens to be all rare words
# Cut as o200k_base cuts, where that is simple: digits by three, capitals apart, a blank belongs to the word after it.
# No piece begins with a blank before a word, which is first, so that nothing is tried there: half the time.
PIECE = re.compile(
    r"(?! [!-/:-~])(?:[A-Z]{1,16}(?![a-z])|[A-Z]?[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]{1,24}"
    r"|'(?:s|t|re|ve|m|ll|d)(?![a-z])|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,16}[\r\n]{0,2}|[\r\n]{1,8}"
    r"|[ \t]{1,64}(?= [0-9])|[ \t]{2,64}|\t| (?![!-/:-~\u00c0-\u0dff\u2600-\u27bf\U0001f000-\U0001faff])"
    r"|[^\x00-\x7f]|[\x00-\x1f\x7f])"
)
_WINDOW = 1 << 20  # characters at a time, so that the list of pieces stays small


class _Costs(dict[str, int]):
    """Cost by piece, worked out once; emptied when full, since random text has no end of pieces."""

    def __missing__(self, piece: str) -> int:
        if len(self) > 100_000:
            self.clear()
        return self.setdefault(piece, _cost(piece))


COSTS = _Costs()


def _cost(piece: str) -> int:
    first, last = piece[0], piece[-1]
    if not piece.isascii() and len(piece) == 1:
        block = _BLOCKS[bisect_right(_BLOCK_STARTS, ord(piece)) - 1]
        return _COMMON_HAN if piece in _common_han() else block[1]
    if first.isalpha():
        return _word_cost(piece)
    if piece == "_":
        return 10  # mostly one token with the part of an identifier after it
    if "!" <= first <= "~" and not last.isalnum():
        signs = piece.rstrip("\r\n")
        if len(signs) == 1 or signs in ONE_TOKEN:
            return 16  # and the line end after it mostly goes with it
        runs = 1 + sum(a != b for a, b in pairwise(signs))  # `-----` is one token, `({[` seldom
        cost = 8 + 8 * min(runs, 4) + 13 * max(0, runs - 4) if runs > 1 or len(signs) < 5 else 24
        # A line end after a sign is mostly one token with it.
        return cost + 6 * (len(signs) < len(piece))
    return 16


def _word_cost(word: str) -> int:
    if word.lower() in ONE_TOKEN and not word[1:].isupper():
        return 16
    bare = bare_latin(word)
    pairs = sum(map(_PAIR.__getitem__, map(add, f"^{bare}", f"{bare}$")))
    if word.isascii() and word.isupper():  # 0.37 a letter in English headings, 0.6 at random
        return max(16, 2 + 5 * len(word) + pairs * 7 // 16) if len(word) > 1 else 16
    marks = 0
    if not word.isascii():
        marks = sum(not ch.isascii() for ch in unicodedata.normalize("NFD", word))
    return max(16, (1 + pairs + _TITLE * word[0].isupper() + _MARK * marks) * 17 // 16)


@lru_cache(maxsize=1)
def _common_han() -> frozenset[str]:
    """The 3,755 Han characters of level 1 of GB 2312, the ones in daily use."""
    cells = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return frozenset("".join(cell.decode("gb2312", "ignore") for cell in cells))


def count_tokens(text: str) -> int:
    """Tokens of `text`: on documents never under the o200k_base count; 1.09 to 1.18 times it in English prose, 1.2 to
    1.25 in code and markup, 1.3 in Chinese (means of many files; small odd files reach 1.8). Of random cuts of 1 to
    2,000 characters from text in 93 languages 0.7 % came out under it, mostly by 1; rows of hashes can, too. Parts
    add up to the whole or more (cut within a word: less 6)."""
    cost = COSTS.__getitem__
    total = sum(sum(map(cost, PIECE.findall(text, at, at + _WINDOW))) for at in range(0, len(text), _WINDOW))
    return -(-(total + min(total, SLACK)) // 16)


def packed(items: Iterable[T], size: Callable[[T], int], room: int, most: int | None = None) -> list[list[T]]:
    """The items in their order, in groups that are at most `room` in size and `most` in number; one
    that is larger stands alone."""
    groups: list[list[T]] = []
    left = 0
    for item in items:
        price = size(item)
        if not groups or price > left or len(groups[-1]) == most:
            groups.append([])
            left = room
        groups[-1].append(item)
        left -= price
    return groups
