"""Communities: hierarchical Leiden that a small edit does not turn over.

Takes weighted edges between entity ids and, for an update, the path of communities that each entity
had; gives the new hierarchy with content ids. Knows no text, no tables and no reports.

Leiden (Traag, Waltman, van Eck 2019, arXiv:1810.08473), in Rust by `graspologic-native`, divides
what has no history: the whole graph, then each community over `max_cluster_size` by a call of its
own. Its refinement is random, so even a partition that it found itself comes back changed when
given as the start. An update therefore begins at the previous partition of each level and moves
single nodes, then whole groups, only where modularity gains. That ends where nothing gains any
more, so an unchanged subgraph keeps its subtree exactly. A short Leiden run beside it tells when
greedy moves have fallen behind, and only then is that one community divided by Leiden again. Both
can sit in one valley while a deeper one is near, so now and then the top is also found without a
history, and taken where it is better.

Where an update knows which entities were touched, it does not even look at the rest: a community of
the same members with no touched one among them keeps its subtree, and the whole graph is looked at
as arrays (adjacency.py). Both give what looking at everything would have given.

The graph that is clustered, as arrays: who is linked with whom and how strongly, and what a
partition of it wants.

Takes weighted edges; gives an `Adjacency`, its links as Python lists where they are asked for, and
of a partition of the whole graph the nodes and groups that would gain by moving. Sums are added up
in the order in which communities.py adds them, one after another, so that both find the same to the
bit: what does not move here would not move there. Knows no levels, no ids of communities and no
Leiden.

Moving greedily to where modularity gains nothing any more: single nodes, then whole groups.

Takes the nodes of one community with the links among them and a partition of them; gives the groups
that it ends in, each connected. `touch_up` ends where `polish` does, without looking at every node.
Knows no tree, no ids and no Leiden.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.types import content_id

ENDS = ("source_id", "target_id", "weight")
DENSE = 4_000_000  # pairs of groups up to which their links are added up in one array


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Nodes are numbered in order of `ids`. The links of node v are `first[v]:first[v + 1]` of
    `other` (rising) and `weight`; `node` says whose link each is, `strength` adds up a node's."""

    ids: list[str]
    first: Any
    node: Any
    other: Any
    weight: Any
    strength: Any


class Links(dict[int, list[tuple[int, float]]]):
    """Node -> (neighbour, weight) in order of neighbour, made when first looked at: an update looks
    at few.
    """

    def __init__(self, graph: Adjacency) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, v: int) -> list[tuple[int, float]]:
        graph = self._graph
        own = slice(graph.first[v], graph.first[v + 1])
        found = self[v] = list(
            zip(graph.other[own].tolist(), graph.weight[own].tolist(), strict=True)
        )
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
    """From the columns ENDS of a table, or from triples. Undirected, in any order; repeated pairs
    add up, loops and weights not above 0 are dropped."""
    import numpy as np

    if not isinstance(edges, pa.Table):
        columns = list(zip(*edges, strict=True)) or [(), (), ()]
        edges = pa.table(
            [
                pa.array(column, kind)
                for column, kind in zip(
                    columns, (pa.string(), pa.string(), pa.float64()), strict=True
                )
            ],
            names=list(ENDS),
        )
    edges = edges.select(ENDS)
    edges = edges.filter(
        pc.and_(
            pc.greater(edges["weight"], 0), pc.not_equal(edges["source_id"], edges["target_id"])
        )
    )
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
    if (
        not fresh.all()
    ):  # pairs that come several times are added up from the smallest on, whatever their order was
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
    return (
        inside / whole - _total((np.bincount(labels, graph.strength) / whole) ** 2)
        if whole
        else 0.0
    )


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


def move_nodes(
    graph: Adjacency, links: Links, labels: Any, whole: float, inertia: float
) -> set[int]:
    """Local moving of single nodes, in place: the moves that communities.py makes by looking at
    every node, found by looking at those that want to move, and after a move at those that are in
    or beside its two groups. Gives the labels that lost or gained a node."""
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


Labels = dict[int, int]  # node number -> group, within the one community that is being divided


@dataclass(frozen=True)
class Part:
    """Nodes to be divided, in rising order, with no link that leaves them."""

    members: list[int]
    links: Links
    strength: dict[int, float]  # sum of a node's link weights
    whole: float
    graph: Adjacency | None = None  # of all nodes


def part_of(members: list[int], links: Links) -> Part:
    strength = {v: sum([weight for _, weight in links[v]]) for v in members}
    return Part(members, links, strength, sum(strength.values()))


def whole(graph: Adjacency, links: Links) -> Part:
    strength = dict(enumerate(graph.strength.tolist()))
    return Part(list(strength), links, strength, sum(strength.values()), graph)


def polish(part: Part, labels: Labels, inertia: float) -> tuple[list[list[int]], bool]:
    """Moves nodes, splits what came apart and merges groups until nothing gains; whether anything
    changed.
    """
    if part.graph is not None:
        part.links.fill()
    moved = False
    while True:
        before = len(set(labels.values()))
        moves = _move_nodes(part, labels, inertia)
        pieces = connected(part, labels)
        groups = _merge(part, pieces, inertia)
        if not moves and len(groups) == len(pieces) == before:
            return groups, moved
        moved = True
        labels = labels_of(groups)


def touch_up(
    part: Part, start: Labels, inertia: float, touched: set[int]
) -> tuple[list[list[int]], bool]:
    """What `polish` gives, of the whole graph, where a partition that it gave was touched in a few
    places.
    """
    import numpy as np

    graph, moved = part.graph, False
    labels = np.fromiter(map(start.__getitem__, part.members), np.int64, len(part.members))
    loose = {int(labels[v]) for v in touched}  # groups that may have come apart
    while True:
        before = len(np.unique(labels))
        changed = move_nodes(graph, part.links, labels, part.whole, inertia)
        pieces: list[list[int]] = []
        for group in groups_of(labels):
            label = int(labels[group[0]])
            pieces += (
                connected(part, dict.fromkeys(group, label))
                if label in loose | changed
                else [group]
            )
        pieces.sort()
        labels = array(pieces, len(labels))
        groups = pieces
        if merges(graph, labels, part.whole, inertia):
            part.links.fill()
            groups = _merge(part, pieces, inertia)
        if not changed and len(groups) == len(pieces) == before:
            return groups, moved
        moved, loose = True, set()
        labels = array(groups, len(labels))


def array(groups: Sequence[Sequence[int]], size: int) -> Any:
    import numpy as np

    labels = np.zeros(size, np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def _move_nodes(part: Part, labels: Labels, inertia: float) -> int:
    """Local moving of single nodes, in place, in order of id, then as they are disturbed; the
    number of moves.
    """
    links, strength, whole = part.links, part.strength, part.whole
    total: dict[int, float] = {}
    for v in part.members:
        total[labels[v]] = total.get(labels[v], 0.0) + strength[v]
    queue, queued, moves = deque(part.members), set(part.members), 0
    while queue:
        v = queue.popleft()
        queued.discard(v)
        pull: dict[int, float] = {}
        for u, weight in links[v]:
            label = labels[u]
            pull[label] = pull.get(label, 0.0) + weight
        own, mine = labels[v], strength[v]
        if len(pull) == 1 and own in pull:
            continue
        best = own
        gain = pull.get(own, 0.0) - mine * (total[own] - mine) / whole + inertia * mine
        for label, weight in pull.items():
            if label != own and weight - mine * total[label] / whole > gain:
                best, gain = label, weight - mine * total[label] / whole
        if best != own:
            labels[v] = best
            total[own] -= mine
            total[best] += mine
            moves += 1
            disturbed = [u for u, _ in links[v] if labels[u] != best and u not in queued]
            queue.extend(disturbed)
            queued.update(disturbed)
    return moves


def _merge(part: Part, groups: list[list[int]], inertia: float) -> list[list[int]]:
    """Whole groups, lightest first, join the neighbour that gains most; what is left, in order of
    first member.
    """
    labels = labels_of(groups)
    total = [_added(part.strength[v] for v in group) for group in groups]
    between: list[dict[int, float]] = [{} for _ in groups]
    for number, group in enumerate(groups):
        pull = between[number]
        for v in group:
            for u, weight in part.links[v]:
                if labels[u] != number:
                    pull[labels[u]] = pull.get(labels[u], 0.0) + weight
    home = list(range(len(groups)))
    for number in sorted(range(len(groups)), key=lambda n: (total[n], n)):
        pull = {}
        for other, weight in between[number].items():
            other = _root(home, other)
            if other != number:
                pull[other] = pull.get(other, 0.0) + weight
        gains = {
            other: weight - total[number] * total[other] / part.whole
            for other, weight in pull.items()
        }
        best = max(gains, key=lambda other: (gains[other], -other), default=number)
        if best != number and gains[best] > inertia * total[number]:
            home[number] = best
            total[best] += total[number]
            for other, weight in between[number].items():
                between[best][other] = between[best].get(other, 0.0) + weight
    merged: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        merged.setdefault(_root(home, number), []).extend(group)
    return sorted(sorted(group) for group in merged.values())


def _added(weights: Iterable[float]) -> float:
    """One after another, as numpy adds them in adjacency.py; `sum` is more exact in newer releases
    of Python.
    """
    total = 0.0
    for weight in weights:
        total += weight
    return total


def _root(home: list[int], number: int) -> int:
    while home[number] != number:
        number = home[number]
    return number


def connected(part: Part, labels: Labels) -> list[list[int]]:
    """The connected pieces of each group, sorted, in order of first member."""
    seen: set[int] = set()
    pieces = []
    for first in labels if len(labels) < len(part.members) else part.members:
        if first in seen:
            continue
        seen.add(first)
        piece, label = [first], labels[first]
        for v in piece:
            for u, _ in part.links[v]:
                if u not in seen and labels.get(u, -1) == label:
                    seen.add(u)
                    piece.append(u)
        pieces.append(sorted(piece))
    return pieces


def labels_of(groups: Iterable[Iterable[int]]) -> Labels:
    return {v: number for number, group in enumerate(groups) for v in group}


def quality_of(part: Part, labels: Labels) -> float:
    """The modularity of a partition of the part's members."""
    if part.graph is not None:
        import numpy as np

        return modularity(part.graph, np.array([labels[v] for v in part.members], np.int64))
    inside, total = 0.0, dict.fromkeys(labels.values(), 0.0)
    for v in part.members:
        label = labels[v]
        total[label] += part.strength[v]
        inside += sum([weight for u, weight in part.links[v] if labels[u] == label])
    return (
        inside / part.whole - sum((t / part.whole) ** 2 for t in total.values())
        if part.whole
        else 0.0
    )


VERSION = 1  # another number when the same graph and the same tree before would give another tree
Edges = pa.Table | Iterable[tuple[str, str, float]]


@dataclass(frozen=True)
class ClusterParams:
    """What the clustering may be turned by. The figures: 17,124 names, 61,664 edges from 2,884
    passages.
    """

    max_cluster_size: int = 10
    seed: int = 42
    iterations: int = (
        10  # of level 0: modularity 0.6391; 5 give 0.6383, and 20 give 0.6393 for twice the time
    )
    inner_iterations: int = 3  # of the levels below and of checks: no level came out better with 10
    inertia: float = (
        0.02  # a move must gain this share of what it moves: near ties do not flip to and fro
    )
    tolerance: float = 0.003  # level 0 is divided anew when Leiden finds this share more modularity
    inner_tolerance: float = (
        0.05  # the same below: small subgraphs are noisier, and redoing one costs its subtree
    )
    behind: float = (
        0.005  # level 0 is that of a fresh clustering when this has so much more modularity
    )
    max_depth: int = 32  # a guard against a chain of lopsided splits; 5 levels are usual
    few: float = 0.1  # share of touched nodes up to which it pays not to look at the others


@dataclass(frozen=True, slots=True)
class Community:
    """`children` divide `members` (entity ids, sorted). A root has parent "", a leaf no children."""

    id: str
    level: int
    parent: str
    children: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True)
class Hierarchy:
    """Communities in order of level, then id; `path` is coarsest first; `modularity` is that of
    level 0; `previous` is the path that each entity had."""

    communities: dict[str, Community]
    path: dict[str, tuple[str, ...]]
    modularity: float
    previous: Mapping[str, tuple[str, ...]] | None = None


def cluster(
    edges: Edges,
    previous: Mapping[str, Sequence[str]] | None = None,
    params: ClusterParams | None = None,
    touched: Set[str] | None = None,
    check: bool = True,
    afresh: bool = False,
) -> Hierarchy:
    """The hierarchy of all nodes that have an edge, in every component.

    Edges are undirected and may come in any order; repeated pairs add up, loops and weights not
    above 0 are dropped. `previous` is the `path` of an earlier hierarchy, None or empty for a fresh
    one. The result depends on nothing else: not on the order of edges, the process or the hash
    seed. `touched` only makes it faster: when `previous` came from here, with the same `params`,
    the ends of all edges that are other than they were then. Without `check` the whole graph is not
    compared with Leiden, which costs with all of it; with `afresh` it is also compared with what
    there would be without `previous`.
    """
    params = params or ClusterParams()
    graph = of(edges)
    ids, links = graph.ids, Links(graph)
    past: list[Sequence[str]] = [previous.get(i, ()) for i in ids] if previous else [()] * len(ids)
    same_nodes = bool(previous) and len(previous) == len(ids) and all(past)
    moved: set[int] | None = None
    if previous and touched is not None:
        moved = {v for v, id in enumerate(ids) if id in touched or not past[v]}
    if moved is None or len(moved) > params.few * len(ids):
        moved = None
        links.fill()
    path: list[Sequence[str]] = [()] * len(ids)
    found: dict[str, tuple[int, str, list[int]]] = {}
    quality = 0.0
    todo = [(list(range(len(ids))), "")] if ids else []
    while todo:
        members, parent = todo.pop()
        level = len(path[members[0]])
        if level:
            _cut(members, links)
            part = part_of(members, links)
            groups = _divide(
                part, _start(part, past, level, params), parent in past[members[0]], level, params
            )
            if len(groups) == 1:
                continue  # it cannot be split: a leaf, whatever its size
        else:
            part = whole(graph, links)
            groups = _divide(
                part, _start(part, past, 0, params), same_nodes, 0, params, moved, check
            )
            if afresh and previous:
                groups = _better(part, groups, params)
            quality = modularity(graph, array(groups, len(ids)))
        for group in groups:
            name = content_id("community", str(level), *(ids[v] for v in group))
            found[name] = (level, parent, group)
            if moved is not None and name in past[group[0]] and moved.isdisjoint(group):
                todo += _kept(group, past, level, path, found, params)
                continue
            for v in group:
                path[v] = (*path[v], name)
            if len(group) > params.max_cluster_size and level + 1 < params.max_depth:
                todo.append((group, name))
    return Hierarchy(
        _communities(found, ids), dict(zip(ids, map(tuple, path), strict=True)), quality
    )


def tree_modularity(edges: Edges, group_of: Mapping[str, Hashable]) -> float:
    """Newman's modularity of a partition of all nodes that have an edge; 0.0 without edges."""
    import numpy as np

    graph = of(edges)
    number: dict[Hashable, int] = {}
    labels = [number.setdefault(group_of[i], len(number)) for i in graph.ids]
    return modularity(graph, np.array(labels, np.int64))


def _kept(
    group: list[int],
    past: list[Sequence[str]],
    level: int,
    path: list[Sequence[str]],
    found: dict[str, tuple[int, str, list[int]]],
    params: ClusterParams,
) -> list[tuple[list[int], str]]:
    """Nothing in this community is other than it was, so it is divided as it was. Gives the leaves
    in it that are to be divided: what was made one by merging may come apart without a history."""
    above = path[group[0]]  # what it lies in may be new
    leaves: dict[str, list[int]] = {}
    for v in group:
        leaves.setdefault(past[v][-1], []).append(v)
    several: dict[str, None] = {}
    for members in leaves.values():
        way = past[members[0]]
        whole_way = (*above, *way[level:]) if level else way
        for v in members:
            path[v] = whole_way
        for below, name in enumerate(way[level + 1 :], level + 1):
            if name in found:
                found[name][2].extend(members)
                several[name] = None
            else:
                found[name] = (below, way[below - 1], [*members])
    for name in several:
        found[name][2].sort()
    return [
        (found[name][2], name)
        for name in leaves
        if len(found[name][2]) > params.max_cluster_size and found[name][0] + 1 < params.max_depth
    ]


# ---- dividing one community ---------------------------------------------------------------------


def _divide(
    part: Part,
    start: Labels | None,
    same: bool,
    level: int,
    params: ClusterParams,
    touched: set[int] | None = None,
    check: bool = True,
) -> list[list[int]]:
    """Groups of the part's members, each connected, in order of their first member.

    `start` is the previous partition, None without one; `same` says that it divided exactly these
    members; `touched` are the only members with other links than they had then, where that is
    known.
    """
    if start is None:
        return polish(part, _fresh(part, level, params), params.inertia)[0]
    if touched is None:
        groups, moved = polish(part, start, params.inertia)
    else:
        groups, moved = touch_up(part, start, params.inertia, touched)
    if not check or (same and not moved):
        return groups
    labels = labels_of(groups)
    kept = quality_of(part, labels)
    reachable, found = _leiden(part, part.members, params, params.inner_iterations, labels)
    if reachable - kept <= (params.inner_tolerance if level else params.tolerance) * abs(kept):
        return groups
    if not level:
        _, found = _leiden(part, part.members, params, params.iterations, labels)
    return polish(part, found, params.inertia)[0]


def _better(part: Part, groups: list[list[int]], params: ClusterParams) -> list[list[int]]:
    """The groups, or those that a fresh clustering gives where it is clearly better."""
    fresh, _ = polish(part, _fresh(part, 0, params), params.inertia)
    kept = quality_of(part, labels_of(groups))
    return (
        fresh if quality_of(part, labels_of(fresh)) - kept > params.behind * abs(kept) else groups
    )


def _start(
    part: Part, past: list[Sequence[str]], level: int, params: ClusterParams
) -> Labels | None:
    """The previous partition at this level; a node new to it starts with its strongest neighbour.

    None when there is no partition to start from, or more than half of the nodes are new to it.
    """
    number: dict[str, int] = {}
    labels = {
        v: number.setdefault(past[v][level], len(number))
        for v in part.members
        if len(past[v]) > level
    }
    waiting = [v for v in part.members if v not in labels]
    if len(waiting) > len(labels) or (level and len(number) < 2):
        return None
    while waiting:
        reached: Labels = {}
        for v in waiting:
            pull: dict[int, float] = {}  # in order of neighbour, so that ties break by id
            for u, weight in part.links[v]:
                if u in labels:
                    pull[labels[u]] = pull.get(labels[u], 0.0) + weight
            if pull:
                reached[v] = max(pull, key=pull.__getitem__)
        if not reached:
            break
        labels.update(reached)
        waiting = [v for v in waiting if v not in reached]
    if waiting:  # whole components that are new
        fresh = _fresh(part_of(waiting, part.links), level, params)
        labels.update((v, len(number) + label) for v, label in fresh.items())
    return labels


def _fresh(part: Part, level: int, params: ClusterParams) -> Labels:
    """Leiden without a history. A separate component that is small enough is a group by itself,
    whatever the rest.
    """
    components = connected(part, dict.fromkeys(part.members, 0))
    small = (
        [piece for piece in components if len(piece) <= params.max_cluster_size]
        if len(components) > 1
        else []
    )
    labels = labels_of(small)
    large = [v for v in part.members if v not in labels]
    if large:
        _, found = _leiden(
            part, large, params, params.inner_iterations if level else params.iterations
        )
        labels.update((v, len(small) + label) for v, label in found.items())
    return labels


def _leiden(
    part: Part,
    members: list[int],
    params: ClusterParams,
    iterations: int,
    start: Labels | None = None,
) -> tuple[float, Labels]:
    """One call of the Rust core: modularity and labels. Members in rising order make the edges
    canonical.
    """
    from graspologic_native import leiden

    if part.graph is not None:
        part.links.fill()
    name = {v: str(v) for v in members}
    edges = [(name[v], name[u], weight) for v in members for u, weight in part.links[v] if v < u]
    starts = {name[v]: label for v, label in start.items()} if start else None
    quality, found = leiden(
        edges=edges, starting_communities=starts, iterations=iterations, seed=params.seed
    )
    return quality, {v: found[name[v]] for v in members}


def _cut(members: list[int], links: Links) -> None:
    """Drops, in place, the links that leave `members`."""
    inside = set(members)
    for v in members:
        links[v] = [link for link in links[v] if link[0] in inside]


def _communities(
    found: dict[str, tuple[int, str, list[int]]], ids: list[str]
) -> dict[str, Community]:
    """Communities in order of level and id, with their children in the same order."""
    order = sorted(found)
    order.sort(key=lambda name: found[name][0])
    children: dict[str, list[str]] = {}
    for name in order:
        children.setdefault(found[name][1], []).append(name)
    return {
        name: Community(
            name, level, parent, tuple(children.get(name, ())), tuple(map(ids.__getitem__, group))
        )
        for name in order
        for level, parent, group in (found[name],)
    }
