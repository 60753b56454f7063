"""Nouns of German texts, whose capitals say nothing."""

from __future__ import annotations

import re
from collections import Counter

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.terms import LANGUAGES, LOWER, UPPER, WORD

_NOUN = rf"[{UPPER}][{LOWER}]++(?:-[{UPPER}][{LOWER}]++)*+"
_BEFORE_NOUN = re.compile(  # der Markt, einem geregelten Markt, unter besonderer Berücksichtigung
    rf"(?<![{WORD}])(?:(?P<article>(?i:{lex.either(lex.ARTICLES | lex.INDEFINITE_ARTICLES)})[ \n](?:[{LOWER}]++[ \n])?)"
    rf"|(?P<adjective>[{LOWER}]++(?<=e[mrs]))[ \n])(?P<noun>{_NOUN})(?![{WORD}-])"
)
_CAPITAL = re.compile(rf"(?<![{WORD}-]){_NOUN}")
DECLINED = ("e", "em", "en", "er", "es")  # endings of adjectives, of which verbs have the first and the third
_NOUN_ENDINGS = ("e", "n", "en", "es", "er", "ern")  # a name takes an s alone
_LEAST_TAIL = 4  # letters of a noun that another one ends with: Sitzungsprotokoll, Protokoll


def nouns(text: str) -> frozenset[str]:
    """The nouns of a German text, whose capitals say nothing: words that stand mostly behind an article or an
    adjective (einem geregelten Markt), that take endings of nouns, or with which longer words end."""
    every = Counter(_CAPITAL.findall(text))
    determined = Counter(
        match["noun"]
        for match in _BEFORE_NOUN.finditer(text)
        if match["article"] or match["adjective"] not in LANGUAGES["de"]
    )
    tails = {word[at:] for word in every for at in range(2, len(word) - _LEAST_TAIL + 1)}
    return frozenset(
        word
        for word, count in every.items()
        if 2 * determined[word] > count
        or any(word + ending in every for ending in _NOUN_ENDINGS)
        or any(word.endswith(end) and word.removesuffix(end) in every for end in _NOUN_ENDINGS)
        or word.lower() in tails
    )
