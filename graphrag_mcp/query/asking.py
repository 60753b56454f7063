"""Does a question ask what a collection is about, or after something in it?

One rule: a question whose words are all words of grammar, words for a collection or words that ask, selects no document
before another, so it asks for an overview of all. Otherwise the words that ask count little (query/asking.toml)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from graphrag_mcp.text.terms import LANGUAGES, SIMPLIFY, STOP_WORDS, is_cjk, table, terms

LONGEST = 1_000  # characters of a question that are read
# Letters with the signs of their script: vowels of Hindi and Thai are no letters.
_LETTER = r"[^\W\d_\u0e00-\u0e7f]|[\u0900-\u0903\u093a-\u094f\u064b-\u065f]"
_WORD = re.compile(rf"(?:{_LETTER})+|[\u0e00-\u0e7f]+")

_HIRAGANA = re.compile("[ぁ-ゖ]")


@dataclass(frozen=True, slots=True)
class Words:
    """Some words of asking.toml: whole ones, beginnings, and those of scripts without blanks."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]
    dense: re.Pattern[str]

    def hold(self, word: str) -> bool:
        return word in self.whole or word.startswith(self.beginnings)


def _dense(word: str) -> bool:
    """Is the word of a script without blanks, or with endings at its words (Korean)?"""
    return any(is_cjk(ch) or "\u0e00" <= ch <= "\u0e7f" for ch in word)


@cache
def words_of(*groups: str) -> Words:
    """The words of groups of asking.toml in all languages."""
    groups_of = table(__file__)
    text = " ".join(words for group in groups for words in groups_of[group].values())
    listed = text.translate(SIMPLIFY).split()
    dense = sorted(filter(_dense, listed), key=lambda word: (-len(word), word))
    return Words(
        frozenset(listed),
        tuple(word[:-1] for word in listed if word.endswith("*")),
        re.compile("|".join(map(re.escape, dense)) or "(?!)"),
    )


@cache
def _grammar() -> tuple[frozenset[str], re.Pattern[str]]:
    words = STOP_WORDS.union(*LANGUAGES.values())
    dense = sorted(filter(_dense, words), key=lambda word: (-len(word), word))
    return words, re.compile("|".join(map(re.escape, dense)))


def _split(query: str) -> tuple[list[str], str]:
    """The words of a question of two characters or more in lower case, and those of scripts without blanks as one."""
    found = [word.casefold() for word in _WORD.findall(query[:LONGEST].translate(SIMPLIFY))]
    plain = [word for word in found if len(word) > 1 and not _dense(word)]
    return plain, "".join(filter(_dense, found))


def asks_for_all(query: str) -> bool:
    """Is it an overview of all that is asked for? An empty question is none of these."""
    plain, dense = _split(query)
    asking, framing = words_of("overview", "collection", "asking"), words_of("framing")
    grammar, particles = _grammar()

    def asks(word: str) -> bool:
        return word in grammar or asking.hold(word)

    asked = [word for word in plain if asks(word) or not framing.hold(word)]
    if not (asked or dense) or not all(map(asks, asked)):
        return False
    return not particles.sub("", asking.dense.sub("", dense))


def names_an_overview(query: str) -> str:
    """The word of a question that asks for themes, a summary or the like; "" for none."""
    plain, dense = _split(query)
    overview = words_of("overview")
    found = overview.dense.search(dense)
    return next(filter(overview.hold, plain), found[0] if found else "")


@cache
def asking_terms() -> frozenset[str]:
    """The terms of words that ask or frame, which say little of what is asked about."""
    return frozenset(terms(" ".join(words_of("overview", "asking", "framing").whole)))


def without_asking(query: str) -> str:
    """A question, simplified, without the words that ask of scripts without blanks. Those of one character
    or with Hiragana stay: they may be parts of other words (きのこ)."""
    dense = words_of("overview", "asking").dense

    def kept(word: re.Match[str]) -> str:
        return word[0] if len(word[0]) < 2 or _HIRAGANA.search(word[0]) else " "

    return dense.sub(kept, query.translate(SIMPLIFY))
