"""Where a name stands in a text, in which spelling, and which sentence of the text shares most
words with a description."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from graphrag_mcp.text.terms import SIMPLIFY, composed, is_cjk, query_terms, terms

Spans = list[tuple[int, int]]
MOST_HITS = 50

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_SAME_SIGN = SIMPLIFY | str.maketrans("’‘ʼ´`“”„«»–—‑−‐", "'''''\"\"\"\"\"-----")


@lru_cache(maxsize=512)
def locate(text: str, name: str) -> Spans:
    """Where `name` stands in `text`, at most MOST_HITS times, as `hits` finds it."""
    return hits(text, name, MOST_HITS)


@lru_cache(maxsize=512)  # the ends of relationships are names of entities
def spelled(text: str, name: str) -> str:
    """The text's own spelling of `name`; the name itself where it does not stand in the text."""
    forms = Counter(" ".join(text[start:end].split()) for start, end in locate(text, name))
    return max(forms, key=lambda form: forms[form], default=" ".join(name.split()))


def best_sentence(text: str, spans_of_sentences: Sequence[tuple[int, int]], words: str) -> tuple[int, int]:
    """The sentence with most distinct terms of `words` (a description); the first of equals."""
    description_terms = set(query_terms(words))
    shared = [len(description_terms & _terms_of(text[start:end])) for start, end in spans_of_sentences]
    return spans_of_sentences[shared.index(max(shared))] if shared else (0, len(text))


@lru_cache(maxsize=4096)
def _terms_of(sentence: str) -> frozenset[str]:
    return frozenset(terms(sentence))


def exactly(text: str, name: str, most: int = MOST_HITS) -> Spans:
    """Where `name` stands in `text` letter for letter, however the letters of either are composed."""
    name = composed(" ".join(name.split()))
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return _bounded(text, name, most)
    return [(start, end) for start, end in _folded(text, name, most) if composed(text[start:end]) == name]


def hits(text: str, name: str, most: int) -> Spans:
    """Where `name` stands in `text`: exactly; else in any case, with any accents and blanks, traditional
    or simplified. Never inside a longer word, where a script has words."""
    name = composed(" ".join(name.split()))
    return exactly(text, name, most) or _folded(text, name, most)


def _folded(text: str, name: str, most: int) -> Spans:
    folded, starts = folded_with_starts(text)
    found = _bounded(folded, folded_with_starts(name)[0].strip(), most)
    spans = [(starts[start], end_of(text, starts[end - 1])) for start, end in found]
    if len(name) > 3:
        return spans
    # Of a short name the letters must be the same: Zoe is not ZOË, and US is not `us`.
    plain, big = name.translate(SIMPLIFY).lower(), name[:1].isupper()
    return [
        (start, end)
        for start, end in spans
        if composed(text[start:end]).translate(SIMPLIFY).lower() == plain and (text[start].isupper() or not big)
    ]


def _bounded(text: str, name: str, most: int) -> Spans:
    """Spans of `name` in `text` that cut no word."""
    spans: Spans = []
    at = text.find(name) if name else -1
    while at >= 0 and len(spans) < most:
        end = at + len(name)
        edges = (edge for edge in (at, end) if 0 < edge < len(text))
        inside = any(_of_word(text[edge - 1]) and _of_word(text[edge]) for edge in edges)
        if inside or (len(name) == 1 and text[end : end + 1] in ("+", "#")):  # C is not C++
            at = text.find(name, at + 1)
        else:
            spans.append((at, end))
            at = text.find(name, end)
    return spans


def _of_word(ch: str) -> bool:
    """A letter or digit of a script with blanks: not Han, kana, Hangul, Thai."""
    return ch.isalnum() and (ch < "\u0e00" or not (is_cjk(ch) or _UNSPACED.match(ch)))


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
    """The end of the character at `at`, with the accents, and parts of a Hangul syllable, that follow it."""
    at += 1
    while at < len(text) and (unicodedata.combining(text[at]) or "\u1160" <= text[at] <= "\u11ff"):
        at += 1
    return at
