"""Communities: hierarchical Leiden that a small edit does not turn over.

Takes weighted edges between entity ids and, for an update, the path of communities that each entity had; gives the
new hierarchy with content ids. Knows no text, no tables and no reports.

Leiden (Traag, Waltman, van Eck 2019, arXiv:1810.08473), in Rust by `graspologic-native`, divides what has no history:
the whole graph, then each community over `max_cluster_size` by a call of its own. Its refinement is random, so even
a partition that it found itself comes back changed when given as the start. An update therefore begins at the
previous partition of each level and moves single nodes, then whole groups, only where modularity gains. That ends
where nothing gains any more, so an unchanged subgraph keeps its subtree exactly. A short Leiden run beside it tells
when greedy moves have fallen behind, and only then is that one community divided by Leiden again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphrag_mcp.types import content_id

Links = list[list[tuple[int, float]]]  # node number -> (neighbour, weight), in order of neighbour
Labels = dict[int, int]  # node number -> group, within the one community that is being divided


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
    max_depth: int = 32  # a guard against a chain of lopsided splits; 5 levels are usual


@dataclass(frozen=True)
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
    edges: Iterable[tuple[str, str, float]],
    previous: Mapping[str, Sequence[str]] | None = None,
    params: ClusterParams | None = None,
) -> Hierarchy:
    """The hierarchy of all nodes that have an edge, in every component.

    Edges are undirected and may come in any order; repeated pairs add up, loops and weights not above 0 are dropped.
    `previous` is the `path` of an earlier hierarchy, None or empty for a fresh one. The result depends on nothing
    else: not on the order of edges, the process or the hash seed.
    """
    params = params or ClusterParams()
    ids, links = _graph(edges)
    past: list[Sequence[str]] = [previous.get(i, ()) for i in ids] if previous else [()] * len(ids)
    same_nodes = bool(previous) and len(previous) == len(ids) and all(past)
    path: list[tuple[str, ...]] = [()] * len(ids)
    found: dict[str, tuple[int, str, list[int]]] = {}
    quality = 0.0
    todo = [(list(range(len(ids))), "")] if ids else []
    while todo:
        members, parent = todo.pop()
        level = len(path[members[0]])
        if level:
            _cut(members, links)
        part = _part(members, links)
        same = parent in past[members[0]] if level else same_nodes
        groups = _divide(part, _start(part, past, level, params), same, level, params)
        if not level:
            quality = _modularity(part, _labels_of(groups))
        elif len(groups) == 1:
            continue  # it cannot be split: a leaf, whatever its size
        for group in groups:
            name = content_id("community", str(level), *(ids[v] for v in group))
            found[name] = (level, parent, group)
            for v in group:
                path[v] = (*path[v], name)
            if len(group) > params.max_cluster_size and level + 1 < params.max_depth:
                todo.append((group, name))
    return Hierarchy(_communities(found, ids), dict(zip(ids, path, strict=True)), quality)


def modularity(edges: Iterable[tuple[str, str, float]], group_of: Mapping[str, Hashable]) -> float:
    """Newman's modularity of a partition of all nodes that have an edge; 0.0 without edges."""
    ids, links = _graph(edges)
    number: dict[Hashable, int] = {}
    labels = {v: number.setdefault(group_of[i], len(number)) for v, i in enumerate(ids)}
    return _modularity(_part(list(range(len(ids))), links), labels)


# ---- dividing one community ---------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """Nodes to be divided, in rising order, with no link that leaves them."""

    members: list[int]
    links: Links
    strength: dict[int, float]  # sum of a node's link weights
    whole: float


def _part(members: list[int], links: Links) -> _Part:
    strength = {v: sum([weight for _, weight in links[v]]) for v in members}
    return _Part(members, links, strength, sum(strength.values()))


def _divide(part: _Part, start: Labels | None, same: bool, level: int, params: ClusterParams) -> list[list[int]]:
    """Groups of the part's members, each connected, in order of their first member.

    `start` is the previous partition, None without one; `same` says that it divided exactly these members.
    """
    if start is None:
        return _polish(part, _fresh(part, level, params), params)[0]
    groups, moved = _polish(part, start, params)
    if same and not moved:
        return groups
    labels = _labels_of(groups)
    kept = _modularity(part, labels)
    reachable, found = _leiden(part, part.members, params, params.inner_iterations, labels)
    if reachable - kept <= (params.inner_tolerance if level else params.tolerance) * abs(kept):
        return groups
    if not level:
        _, found = _leiden(part, part.members, params, params.iterations, labels)
    return _polish(part, found, params)[0]


def _start(part: _Part, past: list[Sequence[str]], level: int, params: ClusterParams) -> Labels | None:
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
        fresh = _fresh(_part(waiting, part.links), level, params)
        labels.update((v, len(number) + label) for v, label in fresh.items())
    return labels


def _fresh(part: _Part, level: int, params: ClusterParams) -> Labels:
    """Leiden without a history. A separate component that is small enough is a group by itself, whatever the rest."""
    components = _connected(part, dict.fromkeys(part.members, 0))
    small = [piece for piece in components if len(piece) <= params.max_cluster_size] if len(components) > 1 else []
    labels = _labels_of(small)
    large = [v for v in part.members if v not in labels]
    if large:
        _, found = _leiden(part, large, params, params.inner_iterations if level else params.iterations)
        labels.update((v, len(small) + label) for v, label in found.items())
    return labels


def _leiden(
    part: _Part, members: list[int], params: ClusterParams, iterations: int, start: Labels | None = None
) -> tuple[float, Labels]:
    """One call of the Rust core: modularity and labels. Members in rising order make the edges canonical."""
    from graspologic_native import leiden

    name = {v: str(v) for v in members}
    edges = [(name[v], name[u], weight) for v in members for u, weight in part.links[v] if v < u]
    starts = {name[v]: label for v, label in start.items()} if start else None
    quality, found = leiden(edges=edges, starting_communities=starts, iterations=iterations, seed=params.seed)
    return quality, {v: found[name[v]] for v in members}


# ---- moving greedily to where nothing gains -----------------------------------------------------


def _polish(part: _Part, labels: Labels, params: ClusterParams) -> tuple[list[list[int]], bool]:
    """Moves nodes, splits what came apart and merges groups until nothing gains; whether anything changed."""
    moved = False
    while True:
        before = len(set(labels.values()))
        moves = _move_nodes(part, labels, params.inertia)
        pieces = _connected(part, labels)
        groups = _merge(part, pieces, params.inertia)
        if not moves and len(groups) == len(pieces) == before:
            return groups, moved
        moved = True
        labels = _labels_of(groups)


def _move_nodes(part: _Part, labels: Labels, inertia: float) -> int:
    """Local moving of single nodes, in place, in order of id, then as they are disturbed; the number of moves."""
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


def _merge(part: _Part, groups: list[list[int]], inertia: float) -> list[list[int]]:
    """Whole groups, lightest first, join the neighbour that gains most; what is left, in order of first member."""
    labels = _labels_of(groups)
    total = [sum([part.strength[v] for v in group]) for group in groups]
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
        gains = {other: weight - total[number] * total[other] / part.whole for other, weight in pull.items()}
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


def _root(home: list[int], number: int) -> int:
    while home[number] != number:
        number = home[number]
    return number


# ---- the graph ----------------------------------------------------------------------------------


def _graph(edges: Iterable[tuple[str, str, float]]) -> tuple[list[str], Links]:
    """Sorted ids and the links of each; weights are summed in canonical order, so sums are the same to the bit."""
    pairs: dict[tuple[str, str], float] = {}
    for source, target, weight in sorted((min(a, b), max(a, b), w) for a, b, w in edges if a != b and w > 0):
        pairs[source, target] = pairs.get((source, target), 0.0) + weight
    ids = sorted({node for pair in pairs for node in pair})
    number = {node: v for v, node in enumerate(ids)}
    links: Links = [[] for _ in ids]
    for (source, target), weight in pairs.items():  # in order, so that each row comes out in order of neighbour
        links[number[source]].append((number[target], weight))
        links[number[target]].append((number[source], weight))
    return ids, links


def _cut(members: list[int], links: Links) -> None:
    """Drops, in place, the links that leave `members`."""
    inside = set(members)
    for v in members:
        links[v] = [link for link in links[v] if link[0] in inside]


def _connected(part: _Part, labels: Labels) -> list[list[int]]:
    """The connected pieces of each group, sorted, in order of first member."""
    seen: set[int] = set()
    pieces = []
    for first in part.members:
        if first in seen:
            continue
        seen.add(first)
        piece, label = [first], labels[first]
        for v in piece:
            for u, _ in part.links[v]:
                if u not in seen and labels[u] == label:
                    seen.add(u)
                    piece.append(u)
        pieces.append(sorted(piece))
    return pieces


def _labels_of(groups: Iterable[Iterable[int]]) -> Labels:
    return {v: number for number, group in enumerate(groups) for v in group}


def _modularity(part: _Part, labels: Labels) -> float:
    inside, total = 0.0, dict.fromkeys(labels.values(), 0.0)
    for v in part.members:
        label = labels[v]
        total[label] += part.strength[v]
        inside += sum([weight for u, weight in part.links[v] if labels[u] == label])
    return inside / part.whole - sum((t / part.whole) ** 2 for t in total.values()) if part.whole else 0.0


def _communities(found: dict[str, tuple[int, str, list[int]]], ids: list[str]) -> dict[str, Community]:
    """Communities in order of level and id, with their children in the same order."""
    order = sorted(found, key=lambda name: (found[name][0], name))
    children: dict[str, list[str]] = {}
    for name in order:
        children.setdefault(found[name][1], []).append(name)
    return {
        name: Community(name, level, parent, tuple(children.get(name, ())), tuple(ids[v] for v in group))
        for name in order
        for level, parent, group in (found[name],)
    }
