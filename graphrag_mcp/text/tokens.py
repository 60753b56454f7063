"""A built-in token counter, so that chunks are the same on every machine. Counts of documents are
never under those of `o200k_base`."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise
from operator import add
from pathlib import Path

from graphrag_mcp.text.folding import bare_latin

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
_PAIR_ROWS = (
    "e025re0g98931558847066711bh 5ej53eer80g1a73mj3643igbb9h 183v0rmc1u00c62de2c02kpib39 288527bm1ng2133ki4362585ca2 "
    "060040b8a9d611950215b270c99 0eao11eo0ni0e80fk0k00hkl6jc 7c6g0c310nc04989k04449kl802 00ep08fj0e947015j0a20bjkij1 "
    "4116710ih3c742026881f0j8e6l 6pge7ghzgekmhf39he3h0djklil 25052c4a13c9d37ka8534g6kac8 488215d906810545f81118d60c8 "
    "46b70f7q3ei63981jf3g4jrmeh9 5f035733438b1834jf0132mbg9a 5301b05ea2950010d063030072d 5f8f3nd07es10a40i0008ki60sb "
    "ghjitimi9mj5hiiifa0f0ieljkk 3715171i3d6710417612687m087 7r190aj51kg9695126005h0j837 5b0h27l00qg70c31x2524d0k0za "
    "320a258k37a00201d220ijm665m 3ndl0i0n0eg8ce4hj6dfajkkdkd 0k8108q00hjdj009h00lcg7jgj2 0g0g66qo2kif0i60ji209hs3r5a "
    "805iaiggccf73a02l9037h0mg50 2a7b1lbzdlo530aakam41cdia5d 23075675348816416212541d092 "
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_KEYS = (a + b for a in _LETTERS + "^" for b in _LETTERS + "$")


class _PairCosts(dict[str, int]):
    """Cost by pair; of one with another sign than a letter it is 20, and is not kept: there is no end of these."""

    def __missing__(self, pair: str) -> int:
        return 20


_PAIR = _PairCosts(zip(_KEYS, (int(cost, 36) for cost in _PAIR_ROWS.replace(" ", "")), strict=True))
_TITLE, _MARK = 7, 12  # same fit: a capital first letter, an accent
# First character of a block, cost of each of its characters; in words what was measured on the worst text (names).
_BLOCKS = (
    (0x80, 32), (0x370, 12), (0x400, 16), (0x410, 14), (0x430, 9), (0x450, 16),  # Greek 0.57, Cyrillic 0.53
    (0x530, 10), (0x590, 16), (0x5D0, 10), (0x600, 11), (0x656, 18),  # Armenian 0.42, Hebrew 0.54, Arabic 0.57
    (0x900, 12), (0xA00, 15), (0xA80, 12), (0xB00, 22), (0xB80, 13), (0xD80, 14),  # Hindi 0.58, Punjabi 0.8, Oriya 1.16
    (0xE00, 11), (0xE80, 20), (0xF00, 30), (0x1000, 12), (0x10A0, 10), (0x1100, 32),  # Thai 0.58, Tibetan 1.6
    (0x1780, 14), (0x1800, 32), (0x200D, 12), (0x200E, 32), (0x2010, 16), (0x2027, 32),  # Khmer 0.72; “ ” — …
    (0x2300, 40), (0x2500, 24), (0x2600, 34), (0x26C0, 50), (0x2700, 34), (0x27C0, 48),  # signs: 1 to 3 tokens
    (0x2E80, 40), (0x3001, 18), (0x3003, 32), (0x3005, 18), (0x3012, 32), (0x3041, 16), (0x3100, 32),  # kana 0.86
    (0x3400, 48), (0x4E00, 34), (0xA000, 48), (0xAC00, 17), (0xD7A4, 48), (0xFE00, 12),  # rare Han 2.06, Hangul 0.99
    (0xFE10, 40), (0xFF01, 24), (0xFFF0, 48), (0x10000, 70),
    (0x1F1E6, 36), (0x1F200, 48), (0x1F300, 36), (0x1F3C0, 40), (0x1F3FB, 24), (0x1F400, 40), (0x1F440, 36),  # emoji go
    (0x1F540, 51), (0x1F600, 36), (0x1F6C0, 51), (0x1F900, 36), (0x1F940, 40), (0x1F980, 51), (0x20000, 64),  # by 64
)  # fmt: skip
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
        return (
            _COMMON_HAN
            if piece in _common_han()
            else _BLOCKS[bisect_right(_BLOCK_STARTS, ord(piece)) - 1][1]
        )
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
        return cost + 6 * (
            len(signs) < len(piece)
        )  # a line end after a sign is mostly one token with it
    return 16


def _word_cost(word: str) -> int:
    if word.lower() in ONE_TOKEN and not word[1:].isupper():
        return 16
    bare = bare_latin(word)
    pairs = sum(map(_PAIR.__getitem__, map(add, f"^{bare}", f"{bare}$")))
    if word.isascii() and word.isupper():  # 0.37 a letter in English headings, 0.6 at random
        return max(16, 2 + 5 * len(word) + pairs * 7 // 16) if len(word) > 1 else 16
    marks = (
        0 if word.isascii() else sum(not ch.isascii() for ch in unicodedata.normalize("NFD", word))
    )
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
    total = sum(
        sum(map(cost, PIECE.findall(text, at, at + _WINDOW))) for at in range(0, len(text), _WINDOW)
    )
    return -(-(total + min(total, SLACK)) // 16)
