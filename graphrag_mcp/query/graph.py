"""The relationships of a generation as a graph in memory: what is around an entity, and paths
between two.

All relationships are read once for a generation, into arrays of 24 bytes for each of their two ends
(500,000 take 24 MB and less than a second). Entities are numbered in the order of their ids.

A neighbour is as strong as the weight of the relationship that leads to it / (1 + ln of its own
degree), times the strength of the entity before it. A path is as strong as the product of
weight / sqrt(degree x degree) over its relationships, each 0.99 at most (the normalised adjacency
matrix of spectral graph theory)."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of

HUB = 500  # an entity of more relationships says nothing of its neighbours: everything is one
Array = np.ndarray[Any, Any]
Edge = tuple[float, str]  # weight, id of the relationship
Pair = tuple[str, str]  # ids of two entities, the smaller first

_lock = threading.Lock()


class Graph:
    """The links of entity `n` stand at the positions `first[n]` to `first[n + 1]` of `there` (the
    other end), `strength` and `cost` (the negative logarithm of a step of a path)."""

    def __init__(self, snapshot: Snapshot) -> None:
        rows = snapshot.rows("relationships", "", ["source_id", "target_id", "weight"])
        columns = [rows["source_id"], rows["target_id"]]
        ids = pc.unique(pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string()))
        self.ids = ids.take(pc.sort_indices(ids))
        source, target = (pc.index_in(column, self.ids).to_numpy() for column in columns)
        ends, others = np.concatenate([source, target]), np.concatenate([target, source])
        order = np.lexsort((others, ends))
        self.there = others[order]
        self.first = np.searchsorted(ends[order], np.arange(len(self.ids) + 1))
        self.degree = np.diff(self.first)
        weight = np.tile(rows["weight"].to_numpy(), 2)[order]
        near, far = (self.degree[end].astype("f8") for end in (ends[order], self.there))
        self.strength = weight / (1 + np.log(far))
        self.cost = -np.log(np.minimum(0.99, weight / np.sqrt(near * far)))

    def number(self, id: str) -> int:
        """The number of an entity; -1 where it has no relationships."""
        return int(pc.index(self.ids, pa.scalar(id, self.ids.type)).as_py())

    def links(self, numbers: Array) -> tuple[Array, Array]:
        """The positions of all links of these entities, and the entity that each begins at."""
        counts = self.degree[numbers]
        before = np.cumsum(counts) - counts
        positions = np.arange(counts.sum()) + np.repeat(self.first[numbers] - before, counts)
        return positions, np.repeat(numbers, counts)

    def steps(self, start: int) -> Array:
        """How many steps away each entity is; -1 for those that cannot be reached."""
        steps = np.full(len(self.ids), -1)
        ring, distance = np.array([start]), 0
        while len(ring):
            steps[ring] = distance
            near = np.zeros(len(self.ids), bool)
            near[self.there[self.links(ring)[0]]] = True
            ring, distance = np.flatnonzero(near & (steps < 0)), distance + 1
        return steps

    def reached(self, id: str) -> int:
        """The number of entities that can be reached from an entity, which is counted as well; 1
        for an unknown id."""
        number = self.number(id)
        return int((self.steps(number) >= 0).sum()) if number >= 0 else 1

    def named(self, numbers: Sequence[int]) -> list[str]:
        return values_of(self.ids.take(pa.array(numbers, pa.int64())))


_graph = once(Graph)


def graph_of(snapshot: Snapshot) -> Graph:
    """The graph of a generation, read once."""
    with _lock:
        return _graph(snapshot)


def strongest(snapshot: Snapshot, id: str) -> list[str]:
    """The relationships of an entity (content ids), those to its strongest neighbours first."""
    where = f"source_id = '{id}' OR target_id = '{id}'"
    rows = list(rows_of(snapshot.rows("relationships", where, ["id", "weight", "source_id", "target_id"])))
    others = {link: target if source == id else source for link, _, source, target in rows}
    degree = dict(rows_of(snapshot.by_key("entities", list(others.values()), "id", ["id", "degree"])))
    strength = {link: weight / (1 + math.log(max(degree.get(others[link], 1), 1))) for link, weight, *_ in rows}
    return sorted(strength, key=lambda link: (-round(strength[link], 9), link))


def between(snapshot: Snapshot, ids: Iterable[str]) -> dict[Pair, Edge]:
    """The relationships among these entities."""
    listed = ", ".join(f"'{id}'" for id in ids) or "''"
    where = f"source_id IN ({listed}) AND target_id IN ({listed})"
    rows = snapshot.rows("relationships", where, ["source_id", "target_id", "weight", "id"])
    return {(min(a, b), max(a, b)): (weight, id) for a, b, weight, id in rows_of(rows)}


@dataclass
class Around:
    """The neighbourhood of an entity. `steps` gives the distance of each entity shown, the nearest
    ring first, in a ring the strongest first. `edges` are the relationships that lead to them,
    then others among them. `found` is the number of entities in each ring, shown or not."""

    steps: dict[str, int]
    edges: dict[Pair, Edge]
    found: list[int]


def around(snapshot: Snapshot, start: str, hops: int, most: int) -> Around:
    """The strongest entities within `hops` steps of `start`, at most `most`, `start` included. A ring has two thirds
    of the places that are left, the last one all."""
    graph = graph_of(snapshot)
    if (begin := graph.number(start)) < 0:
        return Around({start: 0}, {}, [0])
    strength = np.zeros(len(graph.ids))
    via = np.full(len(graph.ids), -1)
    strength[begin], rings = 1.0, [np.array([begin])]
    for _ in range(hops):
        positions, here = graph.links(rings[-1])
        there, new = graph.there[positions], strength[here] * graph.strength[positions]
        fresh = strength[there] == 0
        here, there, new = here[fresh], there[fresh], new[fresh]
        order = np.lexsort((here, -new, there))
        ring, best = np.unique(there[order], return_index=True)
        strength[ring], via[ring] = new[order][best], here[order][best]
        rings.append(ring[np.lexsort((ring, -strength[ring].round(9)))])
    found = [len(ring) for ring in rings[1:]]
    chosen = {begin: 0}
    for distance in range(1, hops + 1):
        left = most - len(chosen)
        places = left if distance == hops else math.ceil(left * 2 / 3)
        linked = [n for n in rings[distance].tolist() if via[n] in chosen]
        chosen |= dict.fromkeys(linked[:places], distance)
    id = dict(zip(chosen, graph.named([*chosen]), strict=True))
    links = between(snapshot, id.values())
    leading = [_pair(id[n], id[via[n]]) for n in chosen if n != begin]
    among = sorted(links, key=lambda pair: (-links[pair][0], pair))
    edges = {pair: links[pair] for pair in [*leading, *among] if pair in links}
    return Around({id[n]: distance for n, distance in chosen.items()}, edges, found)


def _pair(node: str, other: str) -> Pair:
    return min(node, other), max(node, other)


@dataclass(frozen=True, slots=True)
class Path:
    """Entities from start to goal, the relationships between them, how strong it is (0 to 1)."""

    entities: list[str]
    relationships: list[str]
    strength: float


def connect(snapshot: Snapshot, start: str, goal: str) -> list[Path]:
    """Paths between two entities: the strongest of the shortest paths, and the strongest of those at
    most one step longer, if it is a different path. [] if there is no path."""
    graph = graph_of(snapshot)
    first, last = graph.number(start), graph.number(goal)
    if min(first, last) < 0:
        return []
    before, behind = graph.steps(first), graph.steps(last)
    length = int(before[last])
    if length < 0:
        return []
    inside = (before >= 0) & (before + behind <= length + 1)
    cost = np.where(inside[graph.there], graph.cost, np.inf)
    ways = [_cheapest(graph, cost, first, last, longest) for longest in (length, length + 1)]
    found = ways[:1] if ways[0] == ways[1] else ways
    named = [graph.named(way) for way in found]
    edges = between(snapshot, dict.fromkeys(id for way in named for id in way))
    paths = []
    for way, ids in zip(found, named, strict=True):
        links = [edges[_pair(*ends)] for ends in pairwise(ids)]
        degrees = graph.degree[way].astype("f8")
        steps = [weight for weight, _ in links] / np.sqrt(degrees[1:] * degrees[:-1])
        strength = float(np.prod(np.minimum(0.99, steps)))
        paths.append(Path(ids, [id for _, id in links], strength))
    return paths


def _cheapest(graph: Graph, cost: Array, start: int, goal: int, longest: int) -> list[int]:
    """The path of at most so many steps that costs least; [] for none."""
    price = np.full(len(graph.ids), np.inf)
    price[start], rim = 0.0, np.array([start])
    before: list[Mapping[int, int]] = []  # of each step: the entity before one that it made cheaper
    for _ in range(longest):
        positions, here = graph.links(rim)
        there, new = graph.there[positions], price[here] + cost[positions]
        better = new < price[there] - 1e-9
        here, there, new = here[better], there[better], new[better]
        order = np.lexsort((here, new, there))
        rim, best = np.unique(there[order], return_index=True)
        price[rim] = new[order][best]
        before.append(dict(zip(rim.tolist(), here[order][best].tolist(), strict=True)))
    if np.isinf(price[goal]):
        return []
    way = [goal]
    for step in reversed(before):
        if way[-1] in step and way[-1] != start:
            way.append(step[way[-1]])
    return way[::-1]
