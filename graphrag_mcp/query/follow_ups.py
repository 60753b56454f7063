"""Questions that the graph proposes in a DRIFT session, where the agent or the model gives none.

They ask about neighbours of what an answer cites, the strongest first (`query/graph.py`), which no
question and no answer names yet. At most two begin at the same entity."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.drift_state import Walk, cited_aliases
from graphrag_mcp.query.graph import HUB, graph_of
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import normalise_name

QUESTIONS = 5
FROM_ONE = 2  # questions that begin at the same entity
STARTS, READ = 12, 60  # entities that proposals begin at, neighbours whose names are read
Row = dict[str, Any]


def propose(snapshot: Snapshot, walk: Walk, id: str, answer: str) -> list[str]:
    """At most 5 questions, best first; none at the last depth."""
    node = walk.graph.nodes[id]
    if node["depth"] >= walk.header["depth"]:
        return []
    nodes = [node for _, node in walk.graph.nodes(data=True)]
    texts = [answer, *(node[part] for node in nodes for part in ("query", "answer"))]
    named = _entities_of(snapshot, answer, node["context"])
    return _questions(snapshot, named, texts)


def after(snapshot: Snapshot, query: str, shown: Sequence[str]) -> list[str]:
    """At most 5 questions that follow a search for `query` that showed these sources (`t33.2`)."""
    return _questions(snapshot, _entities_of(snapshot, "", shown), [query])


def _questions(snapshot: Snapshot, named: Mapping[str, float], texts: Sequence[str]) -> list[str]:
    """`Ada Lind – Tern?` for neighbours of the entities `named` (id: how much they are cited) which
    these texts do not name. Names alone ask in any language."""
    columns = ["id", "title", "key", "degree"]
    rows = snapshot.served("entities", sorted(named), columns)
    rows.sort(key=lambda row: (-named[row["id"]] / (1 + math.log(1 + row["degree"])), row["id"]))
    starts = {row["id"]: row for row in rows[:STARTS] if 0 < row["degree"] <= HUB}
    best = _neighbours(snapshot, list(starts))
    there = {row["id"]: row for row in snapshot.served("entities", list(best), columns)}
    texts_so_far = " | ".join(map(normalise_name, texts))
    from_one: Counter[str] = Counter()
    chosen: list[str] = []
    for neighbour, here in best.items():
        known = neighbour not in there or _names(texts_so_far, there[neighbour]["key"])
        if known or from_one[here] >= FROM_ONE:
            continue
        keys = there[neighbour]["key"], starts[here]["key"]
        if _names(*keys) or _names(*keys[::-1]):  # one name is part of the other
            continue
        from_one[here] += 1
        chosen.append(neighbour)
    return [
        f"{one_line(there[id]['title'], 80)} – {one_line(starts[best[id]]['title'], 80)}?"
        for id in chosen[:QUESTIONS]
    ]


def _entities_of(snapshot: Snapshot, answer: str, shown: Sequence[str]) -> dict[str, float]:
    """The entities of what an answer cites, or else was shown: id -> how much they are cited."""
    cited = cited_aliases(answer)
    places = [alias for alias in cited if alias[0] == "t"] or shown[:4]
    numbers = [int(alias[1:].partition(".")[0]) for alias in places if alias[:1] == "t"]
    passages = values_of(snapshot.by_key("passages", numbers, "n", ["entity_ids"])["entity_ids"])
    found = Counter(id for ids in passages for id in ids)
    entity_numbers = [int(alias[1:]) for alias in cited if alias[0] == "e"]
    for id in values_of(snapshot.by_key("entities", entity_numbers, "n", ["id"])["id"]):
        found[id] += 5
    return dict(found)


def _neighbours(snapshot: Snapshot, starts: Sequence[str]) -> dict[str, str]:
    """The strongest neighbours, best first, each with the start that it is nearest to; of two starts
    the less cited one is the neighbour."""
    graph = graph_of(snapshot)
    numbers = [n for id in starts if (n := graph.number(id)) >= 0]
    place = {number: at for at, number in enumerate(numbers)}
    positions, here = graph.links(np.array(numbers, int))
    there, strength = graph.there[positions], graph.strength[positions].round(9)
    best: dict[int, int] = {}
    for at in np.lexsort((here, there, -strength)).tolist():
        neighbour, other = int(there[at]), int(here[at])
        if place.get(neighbour, len(place)) > place[other]:
            best.setdefault(neighbour, other)
    ends = list(best.items())[:READ]
    there, here = (graph.named([pair[side] for pair in ends]) for side in (0, 1))
    return dict(zip(there, here, strict=True))


def _names(text: str, key: str) -> bool:
    """Does the text name it, as a word of its own where words are apart?"""
    if not key.isascii():
        return key in text
    return re.search(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", text) is not None
