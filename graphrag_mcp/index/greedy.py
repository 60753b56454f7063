"""Moving greedily to where modularity gains nothing any more: single nodes, then whole groups.

Takes the nodes of one community with the links among them and a partition of them; gives the groups that it ends in,
each connected. `touch_up` ends where `polish` does, without looking at every node. Knows no tree, no ids and no Leiden.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.index import adjacency
from graphrag_mcp.index.adjacency import Adjacency, Links

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
    """Moves nodes, splits what came apart and merges groups until nothing gains; whether anything changed."""
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


def touch_up(part: Part, start: Labels, inertia: float, touched: set[int]) -> tuple[list[list[int]], bool]:
    """What `polish` gives, of the whole graph, where a partition that it gave was touched in a few places."""
    import numpy as np

    graph, moved = part.graph, False
    labels = np.fromiter(map(start.__getitem__, part.members), np.int64, len(part.members))
    loose = {int(labels[v]) for v in touched}  # groups that may have come apart
    while True:
        before = len(np.unique(labels))
        changed = adjacency.move_nodes(graph, part.links, labels, part.whole, inertia)
        pieces: list[list[int]] = []
        for group in adjacency.groups_of(labels):
            label = int(labels[group[0]])
            pieces += connected(part, dict.fromkeys(group, label)) if label in loose | changed else [group]
        pieces.sort()
        labels = array(pieces, len(labels))
        groups = pieces
        if adjacency.merges(graph, labels, part.whole, inertia):
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


def _merge(part: Part, groups: list[list[int]], inertia: float) -> list[list[int]]:
    """Whole groups, lightest first, join the neighbour that gains most; what is left, in order of first member."""
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


def _added(weights: Iterable[float]) -> float:
    """One after another, as numpy adds them in adjacency.py; `sum` is more exact in newer releases of Python."""
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

        return adjacency.modularity(part.graph, np.array([labels[v] for v in part.members], np.int64))
    inside, total = 0.0, dict.fromkeys(labels.values(), 0.0)
    for v in part.members:
        label = labels[v]
        total[label] += part.strength[v]
        inside += sum([weight for u, weight in part.links[v] if labels[u] == label])
    return inside / part.whole - sum((t / part.whole) ** 2 for t in total.values()) if part.whole else 0.0
