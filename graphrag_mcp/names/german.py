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


def nouns(text: str) -> frozenset[str]:
    """The nouns of a German text, whose capitals say nothing: words that stand mostly behind an article or an
    adjective (einem geregelten Markt)."""
    every = Counter(_CAPITAL.findall(text))
    determined = Counter(
        match["noun"]
        for match in _BEFORE_NOUN.finditer(text)
        if match["article"] or match["adjective"] not in LANGUAGES["de"]
    )
    return frozenset(word for word, count in determined.items() if 2 * count > every[word])
