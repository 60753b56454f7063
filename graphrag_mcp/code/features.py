"""Features of the ranking for passages of source code. A definition is said once, its uses everywhere,
and a file that speaks of the matter in several definitions comes before one that repeats its words
in one.

What they find is measured by benchmarks/code.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from graphrag_mcp.code.languages import language_of
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.features import FirstRound, Value
from graphrag_mcp.query.plugin import PluggedFeature
from graphrag_mcp.query.question import Question, is_stem
from graphrag_mcp.text.terms import lists_of

DEFINING = frozenset(
    "class const def define enum fn fun func function interface macro_rules mod module namespace"
    " object package protocol record struct trait type typedef union".split()
)
SHORTEST = 3  # letters of a name that is defined; `i` and `do` are in too many places
IN_FULL = 4  # passages of a file that count in full
FURTHER = 0.4  # of the words of the two next best passages of a file


def defines(question: Question, first: FirstRound) -> Value | None:
    """The passage defines terms of the question: 1 for the term that is worth most. A term counts with
    its stem, which follows it in the question."""
    names = {
        term: value + (more if is_stem(after, term) else 0.0)
        for (term, value), (after, more) in pairwise([*question.terms.items(), ("", 0.0)])
        if len(term) >= SHORTEST and term not in DEFINING
    }
    top = max(names.values(), default=0.0)
    if top <= 0 or not any(map(_is_code, first.passages.values())):
        return None

    def value(passage: Passage) -> float:
        if not _is_code(passage):
            return 0.0
        defined = {name for word, name in pairwise(passage.terms.split()) if word in DEFINING}
        return max((names[name] for name in defined & names.keys()), default=0.0) / top

    return value


def same_file(question: Question, first: FirstRound) -> Value | None:
    """A share of what the two next best passages of the file are worth by their words. The best passage
    of all code keeps its score, so that code stands to prose as before."""
    after: dict[str, float] = {}
    for passages in _files(first.passages.values()):
        words = sorted((first.words(passage) for passage in passages), reverse=True)
        more = FURTHER * sum(words[1:3])
        after |= {passage.id: first.score(passage) + more for passage in passages}
    if not after:
        return None
    most = max(after.values())
    before = max(first.scores[id] for id in after)
    scale = before / most if most > 0 else 1.0
    return lambda passage: scale * after[passage.id] - first.score(passage) if passage.id in after else 0.0


def crowded_file(question: Question, first: FirstRound) -> Value | None:
    """What the passages behind the IN_FULL best of a file lose of their score: a file must not fill a
    result."""
    behind: set[str] = set()
    for passages in _files(first.passages.values()):
        order = sorted(passages, key=lambda passage: (-round(first.score(passage), 9), passage.id))
        behind.update(passage.id for passage in order[IN_FULL:])
    return (lambda passage: -first.score(passage) if passage.id in behind else 0.0) if behind else None


FEATURES = (PluggedFeature(defines, 0.7), PluggedFeature(same_file, 1.0), PluggedFeature(crowded_file, 0.3))


def defines_one(text: str, names: Sequence[str]) -> bool:
    """Does a text define a symbol of one of these names?"""
    words, listed = "|".join(sorted(DEFINING)), "|".join(map(re.escape, names))
    return bool(listed) and re.search(rf"\b(?:{words})\s+(?:{listed})\b", text) is not None


def _is_code(passage: Passage) -> bool:
    return bool(language_of(passage.uri))


def _files(passages: Iterable[Passage]) -> Iterable[list[Passage]]:
    """The passages of source code by their file."""
    return lists_of((passage.document_id, passage) for passage in filter(_is_code, passages)).values()
