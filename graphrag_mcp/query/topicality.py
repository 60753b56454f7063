"""How much a term tells of what a text is about: words that stand in all topics alike select none.

The information of a term on the topic of a passage (Kullback and Leibler 1951): how far the topics of the passages
that hold it diverge from those of all passages, as a share of the entropy of the topics. A divergence counted in n
passages is uncertain by (topics - 1) / 2n (Miller 1955), which is added, so that a rare term counts in full.

Of what `benchmarks/sections.py` lists on 668 news articles 83 % are of the section that is asked for, 76 % without; of
1,460 others, which are not among the data of the benchmark, 89 % and 83 %."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphrag_mcp.query import topics
from graphrag_mcp.query.question import is_stem
from graphrag_mcp.store.tables import Snapshot, once


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of the passages that are in a topic: all that are `known`; of each term of each passage its place among
    them, and the number of the passage's topic; and the share of each topic in the passages."""

    known: pa.Array
    places: NDArray[np.int64]
    topics: NDArray[np.int32]
    shares: NDArray[np.float64]


@once
def _terms(snapshot: Snapshot) -> _Terms:
    number = {unit: at for at, topic in enumerate(topics.of_main(snapshot)) for unit in topic.units}
    rows = [row for row in topics.count(snapshot).passages if row["text_unit_id"] in number]
    split = pc.split_pattern(pa.array([row["terms"] for row in rows], pa.string()), " ")
    encoded = split.flatten().dictionary_encode()
    of_row = np.array([number[row["text_unit_id"]] for row in rows], np.int32)
    # Each term of a passage once.
    number_of_terms = len(encoded.dictionary)
    places = pc.list_parent_indices(split).to_numpy().astype(np.int64) * number_of_terms + encoded.indices.to_numpy()
    row, term = np.divmod(np.unique(places), number_of_terms or 1)
    return _Terms(encoded.dictionary, term, of_row[row], np.bincount(of_row) / max(len(of_row), 1))


def weighed(snapshot: Snapshot, worth: Mapping[str, float]) -> dict[str, float]:
    """The worth of the terms of a question, in its order, times what each tells of the topic, 0 to 1. A form counts as
    its stem, which follows it."""
    stem = {term: term for term in worth} | {form: stem for form, stem in pairwise(worth) if is_stem(stem, form)}
    told = topicality(snapshot, list(dict.fromkeys(stem.values())))
    return {term: value * told[stem[term]] for term, value in worth.items()}


def topicality(snapshot: Snapshot, terms: Sequence[str]) -> dict[str, float]:
    """What each term tells of the topic, 0 to 1; 1 for a term of no topic, and for all where the corpus has one."""
    found = _terms(snapshot.whole)
    shares = found.shares
    if len(shares) < 2 or not terms:
        return dict.fromkeys(terms, 1.0)
    entropy = -np.sum(shares * np.log(shares))
    place = pc.index_in(found.known, pa.array(terms, pa.string())).fill_null(-1).to_numpy()[found.places]
    asked = place >= 0
    size = len(terms), len(shares)
    counts = np.bincount(place[asked] * size[1] + found.topics[asked], minlength=size[0] * size[1]).reshape(size)
    number = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        informs = counts / number * np.log(counts / number / shares)
        told = np.nansum(informs, axis=1) + (len(shares) - 1) / (2 * number[:, 0])
    return {term: min(float(value), 1.0) for term, value in zip(terms, told / entropy, strict=True)}
