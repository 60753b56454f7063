"""Where a name stands in a text, in which spelling, and which sentence of the text shares most
words with a description."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from graphrag_mcp.text.terms import SIMPLIFY, composed, is_cjk, query_terms, terms, with_origins

Finder = Callable[[str, str, int], list[tuple[int, int]]]
MOST_HITS = 50

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_SAME_SIGN = SIMPLIFY | str.maketrans("’‘ʼ´`“”„«»–—‑−‐", "'''''\"\"\"\"\"-----")


@lru_cache(maxsize=512)
def locate(text: str, name: str) -> list[tuple[int, int]]:
    """Where `name` stands in `text`, at most MOST_HITS: exactly; else in any case, traditional or
    simplified; else whatever blanks and accents.

    Never inside a longer word, where a script has words. However the letters of either are
    composed."""
    return hits(text, " ".join(name.split()), MOST_HITS)


@lru_cache(maxsize=512)  # the ends of relationships are names of entities
def spelled(text: str, name: str) -> str:
    """The text's own spelling of `name`; the name itself where it does not stand in the text."""
    forms = Counter(" ".join(text[start:end].split()) for start, end in locate(text, name))
    return max(forms, key=lambda form: forms[form], default=" ".join(name.split()))


def best_sentence(
    text: str, spans_of_sentences: Sequence[tuple[int, int]], words: str
) -> tuple[int, int]:
    """The sentence with most distinct terms of `words` (a description); the first of equals."""
    description_terms = set(query_terms(words))
    shared = [
        len(description_terms & _terms_of(text[start:end])) for start, end in spans_of_sentences
    ]
    return spans_of_sentences[shared.index(max(shared))] if shared else (0, len(text))


@lru_cache(maxsize=4096)
def _terms_of(sentence: str) -> frozenset[str]:
    return frozenset(terms(sentence))


def exactly(text: str, name: str) -> list[tuple[int, int]]:
    """Where `name` stands in `text` letter for letter, at most MOST_HITS."""
    return _placed(_same, text, " ".join(name.split()), MOST_HITS)


def _same(text: str, name: str, most: int) -> list[tuple[int, int]]:
    return _bounded(text, text, name, most)


def hits(text: str, name: str, most: int) -> list[tuple[int, int]]:
    return _placed(_hits, text, name, most)


def _placed(find: Finder, text: str, name: str, most: int) -> list[tuple[int, int]]:
    """What `find` finds in the composed text, as places of the given one, letters whole."""
    name = composed(name)
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return find(text, name, most)
    whole, at = _composed(text)
    found = find(whole, name, most)
    return [(at[start], next(i for i in at[end:] if i > at[end - 1])) for start, end in found]


def _hits(text: str, name: str, most: int) -> list[tuple[int, int]]:
    exactly = _bounded(text, text, name, most)
    return exactly or _any_case(text, name, most) or _loosely(text, name, most)


def _any_case(text: str, name: str, most: int) -> list[tuple[int, int]]:
    lower = _lower(text)
    if len(lower) != len(text):
        return _loosely(text, name, most)
    spans = _bounded(lower, text, _lower(name), most)
    if len(name) <= 3:  # US is not `us`
        spans = [span for span in spans if text[span[0]].isupper() or not name[0].isupper()]
    return spans


def _loosely(text: str, name: str, most: int) -> list[tuple[int, int]]:
    if len(name) <= 3:
        return []
    folded, starts = folded_with_starts(text)
    spans = _bounded(folded, folded, folded_with_starts(name)[0].strip(), most)
    return [(starts[start], end_of(text, starts[end - 1])) for start, end in spans]


def _bounded(where: str, text: str, name: str, most: int) -> list[tuple[int, int]]:
    """Spans of `name` in `where` that cut no word of `text`, which has the same offsets."""
    spans: list[tuple[int, int]] = []
    at = where.find(name) if name else -1
    while at >= 0 and len(spans) < most:
        end = at + len(name)
        edges = (edge for edge in (at, end) if 0 < edge < len(text))
        inside = any(_of_word(text[edge - 1]) and _of_word(text[edge]) for edge in edges)
        if inside or (len(name) == 1 and text[end : end + 1] in ("+", "#")):  # C is not C++
            at = where.find(name, at + 1)
        else:
            spans.append((at, end))
            at = where.find(name, end)
    return spans


def _of_word(ch: str) -> bool:
    """A letter or digit of a script with blanks: not Han, kana, Hangul, Thai."""
    return ch.isalnum() and (ch < "\u0e00" or not (is_cjk(ch) or _UNSPACED.match(ch)))


_composed = lru_cache(maxsize=16)(with_origins)


@lru_cache(maxsize=16)
def _lower(text: str) -> str:
    """In lower case and in simplified Chinese, which changes no offset."""
    return text.lower() if text.isascii() else text.lower().translate(SIMPLIFY)


@lru_cache(maxsize=16)
def folded_with_starts(text: str) -> tuple[str, array[int]]:
    """Case, accents, width, kinds of quotes and dashes, traditional Chinese folded, blanks
    collapsed; and where each sign came from."""
    out: list[str] = []
    starts = array("q")
    for at, ch in enumerate(text):
        for sign in _fold(ch):
            if sign != " " or (out and out[-1] != " "):
                out.append(sign)
                starts.append(at)
    return "".join(out), starts


@lru_cache(maxsize=4096)
def _fold(ch: str) -> str:
    if ch.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", ch.translate(_SAME_SIGN)).casefold()
    signs = (sign for sign in plain if not unicodedata.combining(sign))
    return "".join(" " if sign.isspace() else sign for sign in signs)


def end_of(text: str, at: int) -> int:
    """The end of the character at `at`, accents that follow it included."""
    at += 1
    while at < len(text) and unicodedata.combining(text[at]):
        at += 1
    return at
