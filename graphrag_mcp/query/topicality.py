"""How much a term tells of what a text is about: words that stand in all topics alike select none.

The information of a term on the topic of a passage (Kullback and Leibler 1951): how far the topics of the passages
that hold it diverge from those of all passages, as a share of the entropy of the topics. A divergence counted in n
passages is uncertain by (topics - 1) / 2n (Miller 1955), which is added, so that a rare term counts in full.

Of what `benchmarks/sections.py` lists on 668 news articles 83 % are of the section that is asked for, 76 % without; of
1,460 others 86 % and 83 %."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.query import topics
from graphrag_mcp.query.question import is_stem
from graphrag_mcp.store.tables import Snapshot, once


@dataclass(slots=True)
class _Passages:
    """The passages that are in a topic: their terms between blanks, the number of the topic of each, and how many each
    topic has. `known`: terms that were asked for."""

    terms: pa.Array
    topics: pa.Array
    counts: Counter[int]
    known: dict[str, float] = field(default_factory=dict)


@once
def _passages(snapshot: Snapshot) -> _Passages:
    number = {unit: at for at, topic in enumerate(topics.of_main(snapshot)) for unit in topic.units}
    rows = [row for row in topics.count(snapshot).passages if row["text_unit_id"] in number]
    numbers = [number[row["text_unit_id"]] for row in rows]
    terms = pa.array([f" {row['terms']} " for row in rows], pa.string())
    return _Passages(terms, pa.array(numbers, pa.int32()), Counter(numbers))


def weighed(snapshot: Snapshot, worth: Mapping[str, float]) -> dict[str, float]:
    """The worth of the terms of a question, in its order, times what each tells of the topic, 0 to 1. A form counts as
    its stem, which follows it."""
    terms = list(worth)
    stem = {form: after for form, after in zip(terms, terms[1:], strict=False) if is_stem(after, form)}
    found = topicality(snapshot, list(dict.fromkeys(stem.get(term, term) for term in terms)))
    return {term: value * found[stem.get(term, term)] for term, value in worth.items()}


def topicality(snapshot: Snapshot, terms: Sequence[str]) -> dict[str, float]:
    """What each term tells of the topic, 0 to 1; 1 for all of a corpus that has one topic."""
    passages = _passages(snapshot.whole)
    total = passages.counts.total()
    shares = {number: count / total for number, count in passages.counts.items()}
    entropy = -math.fsum(share * math.log(share) for share in shares.values())
    for term in terms if entropy else ():
        if term not in passages.known:
            holding = passages.topics.filter(pc.match_substring(passages.terms, f" {term} "))
            counts = Counter[int](holding.to_pylist())
            passages.known[term] = _informs(counts, shares) / entropy
    return {term: min(passages.known.get(term, 1.0), 1.0) for term in terms}


def _informs(counts: Counter[int], shares: Mapping[int, float]) -> float:
    """The divergence of these counts by topic from the shares of all, with its uncertainty, in nats."""
    number = counts.total()
    if not number:
        return math.inf
    divergence = math.fsum(n / number * math.log(n / number / shares[topic]) for topic, n in counts.items())
    return divergence + (len(shares) - 1) / (2 * number)
