"""What words are worth: the terms of a question, names in it, BM25 over the counters of one generation.

Takes a snapshot and a question's words; gives weights of terms, keys of names and a function that scores a row of
terms. Scores depend on what the index holds, not on how it came to hold it. Knows no vectors, no graph, no budget.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import normalise_name, query_terms, stop_word
from graphrag_mcp.types import Mention

K1, B = 1.2, 0.75  # BM25
LIGHT = ("id", "document_id", "title_id", "position", "n_terms", "entity_ids", "terms")
PLACED = LIGHT[:-1]  # what is kept in memory of a table that is too large to be kept
QUESTION_WORDS = 40  # of a question that are tried as names
_LETTER = r"[^\W_\u0900-\u0963\u0e31-\u0e4e]|[\u0900-\u0963\u0e31-\u0e4e]"  # Hindi and Thai have signs for vowels
_WORD = re.compile(rf"(?:{_LETTER})+(?:['’.&/+#-]+(?:{_LETTER})+)*")


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the parts; text itself counts 1, together with the vectors where there are any."""

    vector: float = 0.6  # of meaning where there are vectors and they bear out the words; the rest goes to the words
    entity: float = 0.3  # of an entity's meaning, beside 1 for its name
    rerank: float = 0.7  # of a reranker's opinion; the rest goes to the order it was given
    keyword: float = 0.5  # of a word that only a keyword holds
    near: float = 0.5  # of a word that stands for one of the question that no passage holds
    form: float = 0.4  # of a word's own form; the rest goes to its stem, since text holds both
    named: float = 0.3  # the document's title is a name of the question
    holds: float = 0.02  # the passage holds a name of the question as a name, not only its words
    link: float = 0.5  # x score of the best passage that names this one's title
    shared: float = 0.3  # x score of a high passage of another document with which it shares a rare name
    quiet: float = 0.1  # the same where titles are not named in other documents (chats, code, loose notes)
    beside: float = 0.1  # x score of the best passage next to it
    subword: float = 0.05  # x share of the question's 4-letter pieces in it: inflections, compounds, slips of the pen
    pieces: int = 40  # passages that are read for pieces
    rare: int = 6  # most candidates that hold a rare name
    sources: int = 10  # passages that links start from
    titles: int = 80  # most titles looked up
    leads: int = 2  # first passages of a linked document
    crowded: int = 5  # a title of more documents than this links nothing


@dataclass(frozen=True, slots=True)
class Scored:
    """A row id with its fused score (0 to 1), its raw BM25, what brought it in, and its raw cosine where it has one."""

    id: str
    score: float
    raw: float
    why: Mapping[str, float]
    similarity: float | None = None


@dataclass(slots=True)
class Passage:
    """A candidate with the parts of its score."""

    id: str
    raw: float
    title_id: str
    document_id: str
    entity_ids: list[str]
    terms: str
    position: int = 0
    parts: dict[str, float] = field(default_factory=dict)

    def score(self) -> float:
        return sum(self.parts.values())


def term_worth(
    snapshot: Snapshot, wanted: Sequence[str], weights: Weights = Weights()
) -> tuple[dict[str, float], list[str]]:
    """The terms of a query that occur, with weight x idf; and those that occur nowhere."""
    if not wanted:
        return {}, []
    known = snapshot.by_key("terms", wanted, "term", ["term", "passages"], hold=True)
    df = dict(zip(known["term"].to_pylist(), known["passages"].to_pylist(), strict=True))
    total = snapshot.manifest.counters.get("passages", 0)
    worth: dict[str, float] = {}
    unknown: list[str] = []
    for at, term in enumerate(wanted):
        share = 1.0
        if at + 1 < len(wanted) and is_stem(wanted[at + 1], term):
            share = weights.form
        elif at and is_stem(term, wanted[at - 1]):
            share = 1.0 - weights.form
        if df.get(term, 0) > 0:
            worth[term] = share * rarity(total, df[term])
        elif share >= 0.5 or not is_stem(wanted[at + 1], term):
            unknown.append(term)
    return worth, unknown


def rarity(total: int, holding: int) -> float:
    """What a term is worth that `holding` of `total` passages hold."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def stands_nowhere(word: str, known: Container[str], unknown: Set[str]) -> bool:
    """Has no form of this word been found? Of a word and its stem `unknown` holds one: where that is gone, both are."""
    found = query_terms(word)
    return not unknown.isdisjoint(found) and not any(term in known for term in found)


def name_keys(query: str, names: Sequence[Mention]) -> list[str]:
    """Keys under which the question may name something: the names found in it, and its runs of up to six words.

    A question is short, so titles that no rule recognises as a name ("How to Eat") can be tried one by one.
    """
    keys = dict.fromkeys(mention.key for mention in names)
    spans = [match.span() for match in _WORD.finditer(query)][:QUESTION_WORDS]
    plain = [query[a:b].islower() and stop_word(query[a:b]) for a, b in spans]
    for first in range(len(spans)):
        for last in range(first, min(first + 6, len(spans))):
            if plain[first] or plain[last] or (first == last and stop_word(query[slice(*spans[first])].casefold())):
                continue
            keys.setdefault(normalise_name(query[spans[first][0] : spans[last][1]]))
    return [key for key in keys if key]


def is_stem(term: str, form: str) -> bool:
    """Does `term` look like the stem that follows its form in a list of terms?"""
    return len(term) <= len(form) and term != form and len(term) > 2 and form.startswith(term[:-1]) and form.isalpha()


def bm25(snapshot: Snapshot, worth: Mapping[str, float]) -> Callable[[str, int], float]:
    """Okapi BM25 for terms with their weighted idf, as a function of a row's terms and how many they are.

    Counting in the joined string is ten times as fast as splitting it. A word that follows itself at once ("Duran
    Duran") counts as one there, which changes next to nothing.
    """
    counters = snapshot.manifest.counters
    average = counters.get("passage_terms", 0) / max(counters.get("passages", 0), 1) or 1.0
    needles = [(f" {term} ", idf * (K1 + 1)) for term, idf in worth.items()]

    def score(terms: str, length: int) -> float:
        spaced = f" {terms} "
        norm = K1 * (1 - B + B * length / average)
        total = 0.0
        for needle, idf in needles:
            count = spaced.count(needle)
            if count:
                total += idf * count / (count + norm)
        return total

    return score


def passages_of(rows: Any, score: Callable[[str, int], float]) -> list[Passage]:
    names = ("id", "title_id", "document_id", "entity_ids", "terms", "position", "n_terms")
    return [
        Passage(id, score(terms, length), title_id, document_id, entity_ids, terms, position)
        for id, title_id, document_id, entity_ids, terms, position, length in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        )
    ]


def best(passages: Mapping[str, Passage], count: int) -> list[Passage]:
    return heapq.nsmallest(count, passages.values(), key=lambda p: (-p.score(), p.id))
