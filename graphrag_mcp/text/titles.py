"""A title for texts: up to three names and words that set them apart, as their sentences write them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

from graphrag_mcp.text.terms import holds_cjk, is_cjk, tells_topic, terms

PARTS = 3  # of a title
LONG = 40  # characters of a part
WORD = 0.5  # worth of a word beside a name with the same weights, which says more
_WORD = re.compile(r"[^\W\d_][\w'’&-]*[^\W_]|[^\W\d_]")


@lru_cache(maxsize=1 << 15)
def _topic_stem(word: str) -> str:
    """The stem of a word that may say a topic; "" for any other. Texts repeat their words."""
    found = terms(word)
    return found[-1] if found and tells_topic(found[0]) and not is_cjk(word[0]) else ""


@lru_cache(maxsize=1 << 15)
def _stems(form: str) -> frozenset[str]:
    """The stem of each word of a form; of Chinese and Japanese its pairs of letters."""
    if holds_cjk(form):
        return frozenset(term for term in terms(form) if len(term) > 1)
    return frozenset(found[-1] for word in _WORD.findall(form) if (found := terms(word)))


def parts(
    weights: Mapping[str, float],
    names: Iterable[str],
    sentences: Sequence[str],
    most: int = PARTS,
    known: str = "",
    texts: Sequence[str] = (),
    nouns: Iterable[str] = (),
) -> list[str]:
    """The names and words of sentences that are worth most, best first; none whose words stand in
    what is `known` or in one before.

    `weights`: characteristic terms. `nouns`: words of texts without blanks (Chinese, Japanese). A form counts the
    mean weight of its terms, times the share of the `texts` that hold it, where these are given: Andy Robinson is
    named in 10 of the 21 articles on England in the Six Nations."""
    worth: dict[str, float] = {}
    folded = [text.casefold() for text in texts]
    words = ((word, WORD) for word in (*_words(sentences, weights), *nouns))
    for form, share in (*((name, 1.0) for name in names), *words):
        stems = _stems(form)
        found = math.fsum(weights.get(stem, 0.0) for stem in stems)
        if found and len(form) <= LONG and not any(map(str.isdigit, form)):
            held = sum(form.casefold() in text for text in folded) / len(folded) if folded else 1.0
            worth[form] = max(worth.get(form, 0.0), round(held * share * found / len(stems), 9))
    used = {start for word in _WORD.findall(known) for start in _starts(word)}
    chosen: list[str] = []
    for form in sorted(worth, key=lambda form: (-worth[form], form)):
        if len(chosen) == most:
            break
        starts = _starts(form)
        if not starts & used:
            chosen.append(form)
            used |= starts
    return chosen


def _starts(form: str) -> Set[str]:
    """The first letters of words, which two parts may not share: ferry and ferries."""
    if holds_cjk(form):
        return _stems(form)
    return {word[:4].casefold() for word in _WORD.findall(form)}


def _words(sentences: Iterable[str], weights: Mapping[str, float]) -> list[str]:
    """The commonest written form of each characteristic word, one in lower case where there is any: a
    capital may be that of the first word of a sentence."""
    forms: dict[str, Counter[str]] = {}
    for word in (word for sentence in sentences for word in _WORD.findall(sentence)):
        if (stem := _topic_stem(word)) in weights:
            forms.setdefault(stem, Counter())[word] += 1
    return [max(written, key=lambda form: (form.islower(), written[form], form)) for written in forms.values()]


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
        if text[first.end() : second.start()] == " " and _topic_stem(first[0]) and _topic_stem(second[0])
    )


def joined(parts: Sequence[str]) -> str:
    """The parts as one phrase, names first: "Apple, music and users", "广州、铁路"."""
    parts = sorted(parts, key=str.islower)
    if any(is_cjk(part[0]) for part in parts):
        return "、".join(parts)
    if parts and not any(map(str.isupper, parts[0])):
        parts[0] = parts[0].capitalize()
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
