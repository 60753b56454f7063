"""Does a question ask what a collection is about, and not after anything in it?

One rule: all of its words are words of grammar, words for the collection itself, words that ask for an
overview, or words that help to ask beside one of these, so that no word selects a document before another."""

from __future__ import annotations

import re
from functools import cache

from graphrag_mcp.text.terms import LANGUAGES, STOP_WORDS, is_cjk, table

_WORD = re.compile(r"[^\W\d_]+")
LONGEST = 200  # characters of such a question


@cache
def _words() -> tuple[frozenset[str], frozenset[str], re.Pattern[str]]:
    """The words, those that only help to ask, and a pattern of those of Chinese, the longest first."""
    known = table(__file__)
    words = STOP_WORDS.union(
        *LANGUAGES.values(), known["collection"].split(), known["asking"].split()
    )
    han = sorted(known["han"].split(), key=len, reverse=True)
    helping = frozenset(known["helping"].split()) - words
    return frozenset(words), helping, re.compile("|".join(map(re.escape, han)))


def asks_for_all(query: str) -> bool:
    """Is it an overview of all that is asked for? An empty question is none of these."""
    if not query.strip() or len(query) > LONGEST:
        return False
    known, helping, han = _words()
    words = [word.casefold() for word in _WORD.findall(query)]
    words = [word for word in words if len(word) > 1 or is_cjk(word)]  # what's, l'archive
    latin = [word for word in words if not any(map(is_cjk, word))]
    dense = "".join(word for word in words if any(map(is_cjk, word)))
    asked = [word for word in latin if word not in helping]
    return bool(asked or dense) and known.issuperset(asked) and not han.sub("", dense)
