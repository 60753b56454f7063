"""Communities: hierarchical Leiden that a small edit does not turn over.

Takes weighted edges between entity ids and, for an update, the path of communities that each entity had; gives the
new hierarchy with content ids. Knows no text, no tables and no reports.

Leiden (Traag, Waltman, van Eck 2019, arXiv:1810.08473), in Rust by `graspologic-native`, divides what has no history:
the whole graph, then each community over `max_cluster_size` by a call of its own. Its refinement is random, so even
a partition that it found itself comes back changed when given as the start. An update therefore begins at the
previous partition of each level and moves single nodes, then whole groups, only where modularity gains. That ends
where nothing gains any more, so an unchanged subgraph keeps its subtree exactly. A short Leiden run beside it tells
when greedy moves have fallen behind, and only then is that one community divided by Leiden again. Both can sit in one
valley while a deeper one is near, so now and then the top is also found without a history, and taken where it is
better.

Where an update knows which entities were touched, it does not even look at the rest: a community of the same members
with no touched one among them keeps its subtree, and the whole graph is looked at as arrays (adjacency.py). Both give
what looking at everything would have given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from graphrag_mcp.index import adjacency
from graphrag_mcp.index.adjacency import Links
from graphrag_mcp.index.greedy import (
    Labels,
    Part,
    array,
    connected,
    labels_of,
    part_of,
    polish,
    quality_of,
    touch_up,
    whole,
)
from graphrag_mcp.types import content_id

VERSION = 1  # another number when the same graph and the same tree before would give another tree
Edges = pa.Table | Iterable[tuple[str, str, float]]


@dataclass(frozen=True)
class ClusterParams:
    """What the clustering may be turned by. The figures: 17,124 names, 61,664 edges from 2,884 passages."""

    max_cluster_size: int = 10
    seed: int = 42
    iterations: int = 10  # of level 0: modularity 0.6391; 5 give 0.6383, and 20 give 0.6393 for twice the time
    inner_iterations: int = 3  # of the levels below and of checks: no level came out better with 10
    inertia: float = 0.02  # a move must gain this share of what it moves: near ties do not flip to and fro
    tolerance: float = 0.003  # level 0 is divided anew when Leiden finds this share more modularity
    inner_tolerance: float = 0.05  # the same below: small subgraphs are noisier, and redoing one costs its subtree
    behind: float = 0.005  # level 0 is that of a fresh clustering when this has so much more modularity
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
    """Communities in order of level, then id; `path` is coarsest first; `modularity` is that of level 0; `previous` is
    the path that each entity had."""

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

    Edges are undirected and may come in any order; repeated pairs add up, loops and weights not above 0 are dropped.
    `previous` is the `path` of an earlier hierarchy, None or empty for a fresh one. The result depends on nothing
    else: not on the order of edges, the process or the hash seed. `touched` only makes it faster: when `previous` came
    from here, with the same `params`, the ends of all edges that are other than they were then. Without `check` the
    whole graph is not compared with Leiden, which costs with all of it; with `afresh` it is also compared with what
    there would be without `previous`.
    """
    params = params or ClusterParams()
    graph = adjacency.of(edges)
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
            groups = _divide(part, _start(part, past, level, params), parent in past[members[0]], level, params)
            if len(groups) == 1:
                continue  # it cannot be split: a leaf, whatever its size
        else:
            part = whole(graph, links)
            groups = _divide(part, _start(part, past, 0, params), same_nodes, 0, params, moved, check)
            if afresh and previous:
                groups = _better(part, groups, params)
            quality = adjacency.modularity(graph, array(groups, len(ids)))
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
    return Hierarchy(_communities(found, ids), dict(zip(ids, map(tuple, path), strict=True)), quality)


def modularity(edges: Edges, group_of: Mapping[str, Hashable]) -> float:
    """Newman's modularity of a partition of all nodes that have an edge; 0.0 without edges."""
    import numpy as np

    graph = adjacency.of(edges)
    number: dict[Hashable, int] = {}
    labels = [number.setdefault(group_of[i], len(number)) for i in graph.ids]
    return adjacency.modularity(graph, np.array(labels, np.int64))


def _kept(
    group: list[int], past: list[Sequence[str]], level: int, path: list[Sequence[str]],
    found: dict[str, tuple[int, str, list[int]]], params: ClusterParams,
) -> list[tuple[list[int], str]]:  # fmt: skip
    """Nothing in this community is other than it was, so it is divided as it was. Gives the leaves in it that are to
    be divided: what was made one by merging may come apart without a history."""
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
    return [(found[name][2], name) for name in leaves
            if len(found[name][2]) > params.max_cluster_size and found[name][0] + 1 < params.max_depth]  # fmt: skip


# ---- dividing one community ---------------------------------------------------------------------


def _divide(
    part: Part, start: Labels | None, same: bool, level: int, params: ClusterParams, touched: set[int] | None = None,
    check: bool = True,
) -> list[list[int]]:  # fmt: skip
    """Groups of the part's members, each connected, in order of their first member.

    `start` is the previous partition, None without one; `same` says that it divided exactly these members; `touched`
    are the only members with other links than they had then, where that is known.
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
    return fresh if quality_of(part, labels_of(fresh)) - kept > params.behind * abs(kept) else groups


def _start(part: Part, past: list[Sequence[str]], level: int, params: ClusterParams) -> Labels | None:
    """The previous partition at this level; a node new to it starts with its strongest neighbour.

    None when there is no partition to start from, or more than half of the nodes are new to it.
    """
    number: dict[str, int] = {}
    labels = {v: number.setdefault(past[v][level], len(number)) for v in part.members if len(past[v]) > level}
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
    """Leiden without a history. A separate component that is small enough is a group by itself, whatever the rest."""
    components = connected(part, dict.fromkeys(part.members, 0))
    small = [piece for piece in components if len(piece) <= params.max_cluster_size] if len(components) > 1 else []
    labels = labels_of(small)
    large = [v for v in part.members if v not in labels]
    if large:
        _, found = _leiden(part, large, params, params.inner_iterations if level else params.iterations)
        labels.update((v, len(small) + label) for v, label in found.items())
    return labels


def _leiden(
    part: Part, members: list[int], params: ClusterParams, iterations: int, start: Labels | None = None
) -> tuple[float, Labels]:
    """One call of the Rust core: modularity and labels. Members in rising order make the edges canonical."""
    from graspologic_native import leiden

    if part.graph is not None:
        part.links.fill()
    name = {v: str(v) for v in members}
    edges = [(name[v], name[u], weight) for v in members for u, weight in part.links[v] if v < u]
    starts = {name[v]: label for v, label in start.items()} if start else None
    quality, found = leiden(edges=edges, starting_communities=starts, iterations=iterations, seed=params.seed)
    return quality, {v: found[name[v]] for v in members}


def _cut(members: list[int], links: Links) -> None:
    """Drops, in place, the links that leave `members`."""
    inside = set(members)
    for v in members:
        links[v] = [link for link in links[v] if link[0] in inside]


def _communities(found: dict[str, tuple[int, str, list[int]]], ids: list[str]) -> dict[str, Community]:
    """Communities in order of level and id, with their children in the same order."""
    order = sorted(found)
    order.sort(key=lambda name: found[name][0])
    children: dict[str, list[str]] = {}
    for name in order:
        children.setdefault(found[name][1], []).append(name)
    return {
        name: Community(name, level, parent, tuple(children.get(name, ())), tuple(map(ids.__getitem__, group)))
        for name in order
        for level, parent, group in (found[name],)
    }
