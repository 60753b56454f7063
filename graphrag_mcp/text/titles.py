"""A title for texts: up to three names and words that set them apart, as their sentences write them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

from graphrag_mcp.text.terms import holds_cjk, is_cjk, tells_topic, terms

PARTS = 3  # of a title
_READ = 120  # sentences that are looked through for words
_LONG = 40  # characters of a part
_WORD = re.compile(r"[^\W\d_][\w'’&-]*[^\W_]|[^\W\d_]")
# A word counts half of a name: of words with the same weight the name says more.
_NAME, _OTHER = 1.0, 0.5


@lru_cache(maxsize=1 << 15)
def stems(form: str) -> frozenset[str]:
    """The stem of each word of a form; of Chinese and Japanese its pairs of letters."""
    if holds_cjk(form):
        return frozenset(term for term in terms(form) if len(term) > 1)
    return frozenset(found[-1] for word in _WORD.findall(form) if (found := _terms_of(word)))


@lru_cache(maxsize=1 << 15)
def _terms_of(word: str) -> tuple[str, ...]:
    """The terms of a word. Texts repeat their words."""
    return tuple(terms(word))


def parts(
    weights: Mapping[str, float],
    names: Iterable[str],
    sentences: Sequence[str],
    most: int = PARTS,
    known: str = "",
    share: Callable[[str], float] | None = None,
) -> list[str]:
    """The names and words of sentences that are worth most, best first; none whose words stand in
    what is `known` or in one before.

    `weights`: characteristic terms. A form counts the weights of its terms over the square root of
    their number, times the root of the `share` of texts that hold it."""
    worth: dict[str, float] = {}
    for form, kind in (*((name, _NAME) for name in names), *_words(sentences[:_READ], weights)):
        form_stems = stems(form)
        found = math.fsum(sorted(weights.get(stem, 0.0) for stem in form_stems))
        if found and len(form) <= _LONG and not any(map(str.isdigit, form)):
            value = kind * found / math.sqrt(len(form_stems))
            value *= math.sqrt(share(form)) if share else 1.0
            worth[form] = max(worth.get(form, 0.0), round(value, 9))
    used: Set[str] = {start for word in _WORD.findall(known) for start in _starts(word)}
    chosen: list[str] = []
    for form in sorted(worth, key=lambda form: (-worth[form], form)):
        if len(chosen) == most:
            break
        starts = _starts(form)
        if worth[form] and not starts & used:
            chosen.append(form)
            used |= starts
    return chosen


def phrases(texts: Iterable[str], weights: Mapping[str, float]) -> list[str]:
    """Two characteristic words beside each other in lower case, as in "interest rates", that stand in at least
    two of the texts. A capital is part of a name, or of the first word of a sentence."""
    found = Counter(phrase for text in texts for phrase in _phrases(text))
    return sorted(
        phrase
        for phrase, number in found.items()
        if number > 1 and all(_topic_stem(word) in weights for word in phrase.split())
    )


@lru_cache(maxsize=1 << 12)
def _phrases(text: str) -> frozenset[str]:
    """The pairs of words in lower case that may say a topic. Nested topics share texts."""
    words = [word for word in _WORD.finditer(text) if word[0].islower()]
    return frozenset(
        f"{first[0]} {second[0]}"
        for first, second in pairwise(words)
        if text[first.end() : second.start()] == " "
        and _topic_stem(first[0])
        and _topic_stem(second[0])
    )


def joined(parts: Sequence[str]) -> str:
    """The parts as one phrase, names first: "Apple, music and users", "广州、铁路"."""
    parts = sorted(parts, key=str.islower)
    if not parts:
        return ""
    if any(is_cjk(part[0]) for part in parts):
        return "、".join(parts)
    first = parts[0] if any(map(str.isupper, parts[0])) else parts[0].capitalize()
    *head, last = [first, *parts[1:]]
    return f"{', '.join(head)} and {last}" if head else last


def _starts(form: str) -> Set[str]:
    """The first letters of words, which two parts may not share: ferry and ferries."""
    if holds_cjk(form):
        return stems(form)
    return {word[:4].casefold() for word in _WORD.findall(form)}


@lru_cache(maxsize=1 << 12)
def _forms_of(sentence: str) -> list[tuple[str, str, bool]]:
    """The stem and the written form of each word that may say a topic, and whether it is a first word of a
    sentence, whose capital tells nothing. Nested topics share headings."""
    return [
        (stem, word.lower(), True) if not place and word.istitle() else (stem, word, False)
        for place, word in enumerate(_WORD.findall(sentence))
        if (stem := _topic_stem(word))
    ]


@lru_cache(maxsize=1 << 15)
def _topic_stem(word: str) -> str:
    """The stem of a word that may say a topic; "" for any other."""
    found = _terms_of(word)
    return found[-1] if found and tells_topic(found[0]) and not is_cjk(word[0]) else ""


def _words(sentences: Iterable[str], weights: Mapping[str, float]) -> list[tuple[str, float]]:
    """The commonest written form of each characteristic word, in lower case where it has one; first words
    count between forms that are as common without them."""
    forms: dict[str, set[str]] = {}
    within, first = Counter[str](), Counter[str]()
    for sentence in sentences:
        for stem, form, is_first in _forms_of(sentence):
            if stem in weights:
                forms.setdefault(stem, set()).add(form)
                (first if is_first else within)[form] += 1

    def commonness(form: str) -> tuple[int, int, str]:
        return within[form], first[form], form

    return [(max(written, key=commonness), _OTHER) for written in forms.values()]
