"""The graph that is clustered, as arrays: who is linked with whom and how strongly, and what a partition of it wants.

Takes weighted edges; gives an `Adjacency`, its links as Python lists where they are asked for, and of a partition of
the whole graph the nodes and groups that would gain by moving. Sums are added up in the order in which
communities.py adds them, one after another, so that both find the same to the bit: what does not move here would not
move there. Knows no levels, no ids of communities and no Leiden.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

ENDS = ("source_id", "target_id", "weight")
DENSE = 4_000_000  # pairs of groups up to which their links are added up in one array


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Nodes are numbered in order of `ids`. The links of node v are `first[v]:first[v + 1]` of `other` (rising) and
    `weight`; `node` says whose link each is, `strength` adds up a node's."""

    ids: list[str]
    first: Any
    node: Any
    other: Any
    weight: Any
    strength: Any


class Links(dict[int, list[tuple[int, float]]]):
    """Node -> (neighbour, weight) in order of neighbour, made when first looked at: an update looks at few."""

    def __init__(self, graph: Adjacency) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, v: int) -> list[tuple[int, float]]:
        graph = self._graph
        own = slice(graph.first[v], graph.first[v + 1])
        found = self[v] = list(zip(graph.other[own].tolist(), graph.weight[own].tolist(), strict=True))
        return found

    def fill(self) -> None:
        """All that were not looked at yet, at once."""
        graph = self._graph
        pairs = list(zip(graph.other.tolist(), graph.weight.tolist(), strict=True))
        ends = graph.first.tolist()
        for v in range(len(graph.ids)):
            if v not in self:
                self[v] = pairs[ends[v] : ends[v + 1]]


def of(edges: pa.Table | Iterable[tuple[str, str, float]]) -> Adjacency:
    """From the columns ENDS of a table, or from triples. Undirected, in any order; repeated pairs add up, loops and
    weights not above 0 are dropped."""
    import numpy as np

    if not isinstance(edges, pa.Table):
        columns = list(zip(*edges, strict=True)) or [(), (), ()]
        edges = pa.table([pa.array(column, kind) for column, kind in zip(
            columns, (pa.string(), pa.string(), pa.float64()), strict=True)], names=list(ENDS))  # fmt: skip
    edges = edges.select(ENDS)
    edges = edges.filter(pc.and_(pc.greater(edges["weight"], 0), pc.not_equal(edges["source_id"], edges["target_id"])))
    named = pa.chunked_array([*edges["source_id"].chunks, *edges["target_id"].chunks], pa.string())
    coded = named.combine_chunks().dictionary_encode()
    order = pc.array_sort_indices(coded.dictionary)
    ids, size = coded.dictionary.take(order), len(order)
    rank = np.empty(size, np.int64)
    rank[order.to_numpy()] = np.arange(size)
    ends = rank[coded.indices.to_numpy()].reshape(2, edges.num_rows)
    weight = edges["weight"].to_numpy().astype(float)
    pair = ends.min(axis=0) * size + ends.max(axis=0)
    order = np.argsort(pair, kind="stable")
    pair, weight = pair[order], weight[order]
    fresh = np.ones(len(pair), bool)
    fresh[1:] = pair[1:] != pair[:-1]
    if not fresh.all():  # pairs that come several times are added up from the smallest on, whatever their order was
        weight = weight[np.lexsort((weight, pair))]
        weight, pair = np.bincount(np.cumsum(fresh) - 1, weight), pair[fresh]
    low, high = pair // max(size, 1), pair % max(size, 1)
    # By node, first those that come before it, then those after it: rising.
    back = np.argsort(high, kind="stable")
    node = np.concatenate([high[back], low])
    order = np.argsort(node, kind="stable")
    node, other = node[order], np.concatenate([low[back], high])[order]
    weight = np.concatenate([weight[back], weight])[order]
    first = np.searchsorted(node, np.arange(size + 1))
    return Adjacency(ids.to_pylist(), first, node, other, weight, np.bincount(node, weight, size))


def modularity(graph: Adjacency, labels: Any) -> float:
    """Newman's, of a partition of all nodes; 0.0 without links."""
    import numpy as np

    whole = _total(graph.strength)
    inside = _total(graph.weight[labels[graph.node] == labels[graph.other]])
    return inside / whole - _total((np.bincount(labels, graph.strength) / whole) ** 2) if whole else 0.0


def _total(values: Any) -> float:
    """One after another: the same on every machine."""
    import numpy as np

    return float(np.bincount(np.zeros(len(values), np.int64), values, 1)[0])


def groups_of(labels: Any) -> list[list[int]]:
    """The members of each label, rising, in order of the first."""
    import numpy as np

    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(part.tolist() for part in np.split(order, starts) if len(part))


def move_nodes(graph: Adjacency, links: Links, labels: Any, whole: float, inertia: float) -> set[int]:
    """Local moving of single nodes, in place: the moves that communities.py makes by looking at every node, found by
    looking at those that want to move, and after a move at those that are in or beside its two groups. Gives the
    labels that lost or gained a node."""
    import numpy as np

    total = np.bincount(labels, graph.strength)
    look = _movers(graph, labels, total, whole, inertia)
    concerned: set[int] = set()
    later: deque[int] = deque()
    queued: set[int] = set()
    v = -1
    while True:
        v += 1
        if v < len(look):
            v += int(look[v:].argmax())
            if not look[v]:
                v = len(look)
        if v < len(look):
            at = v
        elif later:
            at = later.popleft()
            queued.discard(at)
        else:
            return concerned
        pull: dict[int, float] = {}
        for u, weight in links[at]:
            label = int(labels[u])
            pull[label] = pull.get(label, 0.0) + weight
        own, mine = int(labels[at]), float(graph.strength[at])
        best = own
        gain = pull.get(own, 0.0) - mine * (total[own] - mine) / whole + inertia * mine
        for label, weight in pull.items():
            if label != own and weight - mine * total[label] / whole > gain:
                best, gain = label, weight - mine * total[label] / whole
        if best == own:
            continue
        labels[at] = best
        total[own] -= mine
        total[best] += mine
        concerned |= {own, best}
        fresh = [u for u, _ in links[at] if labels[u] != best and u <= v and u not in queued]
        later.extend(fresh)
        queued.update(fresh)
        if v < len(look):
            two = (labels == own) | (labels == best)
            look |= two
            look[graph.node[two[graph.other]]] = True


def _movers(graph: Adjacency, labels: Any, total: Any, whole: float, inertia: float) -> Any:
    """Which nodes gain by joining the group of a neighbour, as everything is now."""
    import numpy as np

    width = int(labels.max()) + 1
    places, inverse = np.unique(graph.node * width + labels[graph.other], return_inverse=True)
    pull = np.bincount(inverse, graph.weight)
    node, label = places // width, places % width
    own = label == labels[node]
    held = np.zeros(len(labels))
    held[node[own]] = pull[own]
    mine = graph.strength
    stay = held - mine * (total[labels] - mine) / whole + inertia * mine
    node, label, pull = node[~own], label[~own], pull[~own]
    found = np.zeros(len(labels), bool)
    found[node[pull - mine[node] * total[label] / whole > stay[node]]] = True
    return found


def merges(graph: Adjacency, labels: Any, whole: float, inertia: float) -> bool:
    """Does a whole group gain by joining another, as everything is now?"""
    import numpy as np

    width = int(labels.max()) + 1
    apart = labels[graph.node] != labels[graph.other]
    places = labels[graph.node[apart]] * width + labels[graph.other[apart]]
    if width * width <= DENSE:
        between = np.bincount(places, graph.weight[apart], width * width)
        places = np.flatnonzero(between)
        between = between[places]
    else:
        places, inverse = np.unique(places, return_inverse=True)
        between = np.bincount(inverse, graph.weight[apart])
    total = np.bincount(labels, graph.strength, width)
    one, other = places // width, places % width
    return bool((between - total[one] * total[other] / whole > inertia * total[one]).any())
