"""The ranking: passages that answer a question, best first.

A question (question.py) finds candidates (candidates.py), and two rounds of features score them. The
first round looks at a passage by itself. The second looks at it beside the passages that are high in
the first round, whose scores it does not change. The score is the sum of weight times feature, and
where there are vectors a weighted mean of that and of the nearness by vector. Ties are broken by id,
so that the order depends on what the index holds and not on its history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from graphrag_mcp.query import candidates, plugin
from graphrag_mcp.query import question as questions
from graphrag_mcp.query.candidates import Keep, Passage
from graphrag_mcp.query.features import FIRST, SECOND, WEIGHTS, Feature, FirstRound, Weights
from graphrag_mcp.query.question import NAME_CHARACTERS, Question, rarity
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import lists_of

SOURCES = 10  # high passages of the first round that the second starts from
RERANKED = 50  # passages that a reranker reads

Weigh = Callable[[Snapshot, Mapping[str, float]], Mapping[str, float]]
Rerank = Callable[[str, Sequence[str]], Sequence[float] | None]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found for a question. `meaning`: the share of the vectors in the scores, 0 to 1."""

    question: Question = Question()
    passages: Sequence[Passage] = ()  # best first
    meaning: float = 0.0
    considered: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[Mention]:
        return self.question.names

    @property
    def terms(self) -> Mapping[str, float]:
        return self.question.terms


def retrieve(
    snapshot: Snapshot,
    text: str,
    weights: Weights = WEIGHTS,
    *,
    vector: bytes | None = None,
    rerank: Rerank | None = None,
    keep: Keep | None = None,
    weigh: Weigh | None = None,
) -> Ranking:
    """Rank the passages for a question. There are none if no passage holds a word of it and there
    are no vectors.

    `vector` is the question's (float32 bytes). `rerank` scores texts for a question, or gives None
    when it cannot. `keep` gives of rows of passages those that pass the filters. `weigh` changes
    what the terms of the question are worth."""
    asked = questions.read(snapshot, text, vector)
    if weigh is not None:
        terms, of_summaries = weigh(snapshot, asked.terms), weigh(snapshot, asked.summary_terms)
        asked = replace(asked, terms=terms, summary_terms=of_summaries)
    found = candidates.find(snapshot, asked, keep)
    if not found.passages:
        return Ranking(asked)
    top = max(passage.bm25 for passage in found.passages.values())
    of_first, of_second = ([(each, getattr(weights, each.__name__)) for each in half] for half in (FIRST, SECOND))
    of_second += [(more.feature, more.weight) for each in plugin.plugins().values() for more in each.features]
    first = FirstRound(top, found.passages, candidates.copies(snapshot, found.passages.values()))
    found = candidates.extend(snapshot, asked, found, best(first, scored(of_first, asked, first)), keep)
    first = FirstRound(top, found.passages, candidates.copies(snapshot, found.passages.values()))
    alone = scored(of_first, asked, first)
    beside = scored(of_second, asked, replace(first, scores=alone, high=best(first, alone)))
    scores = {id: alone[id] + beside[id] for id in found.passages}
    total = snapshot.manifest.counters.get("passages", 0)
    meaning = share_of_meaning(asked, found.passages, total) if asked.vector else 0.0
    scores = with_meaning(scores, found.passages, meaning)
    ranked = in_order(replace(found.passages[id], total=score) for id, score in scores.items() if score)
    ordered = once(ranked, first.copies)
    considered = {"passages": len(ordered), "linked": found.linked}
    if asked.vector:
        considered["near"] = sum(passage.cosine is not None for passage in found.passages.values())
    if rerank is not None:
        ordered = reranked(snapshot, asked, ordered, rerank, weights.reranker)
    return Ranking(asked, ordered, meaning, considered)


def in_order(passages: Iterable[Passage]) -> list[Passage]:
    """The passages best first, with scores from 0 to 1, relative to the best."""
    ordered = sorted(passages, key=lambda passage: (-round(passage.total, 9), passage.id))
    top = ordered[0].total if ordered else 0.0
    return [replace(passage, score=passage.total / top if top > 0 else 0.0) for passage in ordered]


def once(ordered: Sequence[Passage], copies: Mapping[str, str]) -> list[Passage]:
    """The passages, each text once: further passages with the same text come last with the score 0. `copies` comes
    from `candidates.copies`."""
    if not copies:
        return list(ordered)
    same = lists_of((copies.get(passage.id, passage.id), passage) for passage in ordered)
    lost = [replace(passage, score=0.0, total=0.0) for _, *others in same.values() for passage in others]
    return [*(first for first, *_ in same.values()), *lost]


def scored(features: Iterable[tuple[Feature, float]], question: Question, first: FirstRound) -> dict[str, float]:
    """The sum of the weighted features of each passage."""
    found = dict.fromkeys(first.passages, 0.0)
    for feature, weight in features:
        if weight and (value := feature(question, first)) is not None:
            for id, passage in first.passages.items():
                found[id] += weight * value(passage)
    return found


def best(first: FirstRound, scores: Mapping[str, float]) -> list[Passage]:
    """The SOURCES best by the first round, each text once."""
    order = sorted((-round(score, 9), id) for id, score in scores.items())
    by_text: dict[str, Passage] = {}
    for _, id in order:
        by_text.setdefault(first.text(id), first.passages[id])
    return list(by_text.values())[:SOURCES]


# ---- meaning -------------------------------------------------------------------------------------


def share_of_meaning(question: Question, passages: Mapping[str, Passage], total: int) -> float:
    """The share of the vectors in the scores, from 0 to 1: what the best passage by words lacks of the
    question's worth, to the power of the root of how many of its terms it holds. One term that a
    passage holds may be chance, ten of twenty are not. A term that none of the `total` passages holds
    is worth more than any that one of them holds.

    With a multilingual model not below words alone on news, LoCoMo, HotpotQA, 2Wiki and CMRC, the sets
    that it was chosen on (docs/how-to/meaning.md)."""
    best = max(passages.values(), key=lambda passage: (passage.bm25, passage.id))
    worth = question.terms
    matched = [value for term, value in worth.items() if best.holds(term)] if best.bm25 else []
    if not matched:
        return 1.0
    asked = sum(worth.values()) + len(question.unknown) * rarity(total, 0)
    return (1 - sum(matched) / asked) ** math.sqrt(len(matched))


def with_meaning(scores: Mapping[str, float], passages: Mapping[str, Passage], share: float) -> Mapping[str, float]:
    """The scores times 1 - share, and times share how near each passage is by vector, from the middle
    candidate (0) to the nearest (the best score of the others): words are sparse, so their zero is no
    word at all; vectors are not."""
    cosines = {id: passage.cosine for id, passage in passages.items() if passage.cosine is not None}
    low = median(cosines.values()) if cosines else 0.0
    high = max(cosines.values(), default=0.0)
    if high <= low:
        return scores
    scale = share * (max(scores.values()) or 1.0) / (high - low)
    return {id: (1 - share) * score + scale * max(cosines.get(id, low) - low, 0.0) for id, score in scores.items()}


# ---- a reranker ----------------------------------------------------------------------------------


def reranked(
    snapshot: Snapshot, question: Question, ordered: Sequence[Passage], rerank: Rerank, weight: float
) -> list[Passage]:
    """The RERANKED best passages get a share of a reranker's opinion in place of the same share of
    their score. What it did not read counts as the worst that it did read."""
    head = [passage.id for passage in ordered[:RERANKED]]
    rows = snapshot.by_key("passages", head, "id", ("id", "title", "text")).to_pylist()
    texts = {row["id"]: f"{row['title']}\n{row['text']}" for row in rows}
    scores = rerank(question.text[:NAME_CHARACTERS], list(texts.values()))
    if not scores or len(scores) != len(texts) or min(scores) == max(scores):
        return list(ordered)
    low, high, top = min(scores), max(scores), ordered[0].total or 1.0
    opinion = {id: (score - low) / (high - low) for id, score in zip(texts, scores, strict=True)}

    def with_opinion(passage: Passage) -> Passage:
        read = top * opinion.get(passage.id, 0.0)
        return replace(passage, total=passage.total + weight * (read - passage.total))

    return in_order(map(with_opinion, ordered))
