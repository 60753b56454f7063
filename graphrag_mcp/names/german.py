"""Nouns of German texts, whose capitals say nothing."""

from __future__ import annotations

import re
from collections import Counter

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.terms import LANGUAGES, LOWER, UPPER, WORD

_BEFORE_CAPITAL = re.compile(rf"(?<![{WORD}])([{WORD}]++)[ \n]([{UPPER}][{LOWER}]++)(?![{WORD}-])")
_CAPITAL = re.compile(rf"(?<![{WORD}-])[{UPPER}][{LOWER}]++")
DECLINED = ("e", "em", "en", "er", "es")  # endings of German adjectives
_NOUN_ENDINGS = ("e", "n", "en", "es", "er", "ern")  # a name takes an s alone
_LEAST_TAIL = 4  # letters of a noun that another one ends with: Sitzungsprotokoll, Protokoll


def nouns(text: str) -> frozenset[str]:
    """The nouns of a German text, whose capitals say nothing: words that stand mostly behind an article or an
    adjective (einem geregelten Markt), that take endings of nouns, or with which longer words end."""
    every = Counter(_CAPITAL.findall(text))
    declined = Counter(
        noun for word, noun in _BEFORE_CAPITAL.findall(text) if _declines(word.lower())
    )
    tails = {word[at:] for word in every for at in range(2, len(word) - _LEAST_TAIL + 1)}
    return frozenset(
        word
        for word, count in every.items()
        if 2 * declined[word] > count
        or any(word + ending in every for ending in _NOUN_ENDINGS)
        or any(word.endswith(end) and word.removesuffix(end) in every for end in _NOUN_ENDINGS)
        or word.lower() in tails
    )


def _declines(word: str) -> bool:
    """Is this lower-case word of German an article or, by its ending, an adjective?"""
    article = word in lex.ARTICLES or word in lex.INDEFINITE_ARTICLES
    return article or (word.endswith(DECLINED) and word not in LANGUAGES["de"])
