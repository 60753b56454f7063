"""Walks over the stored graph: what lies around an entity, and how two entities are connected.

Takes a snapshot and content ids; gives rings of neighbours and paths as ids with weights. Edges are read by key and
only where the walk goes, so a graph of any size costs what is walked of it; a small one is read once and kept. Knows
no text, no result and no budget in tokens (query/explore.py).

Strength. A neighbour is as strong as the weight of the relationship that led to it / (1 + ln of its own degree), times
the strength of where the walk came from: what everything is linked with does not flood. A path is as strong as the
product of weight / sqrt(degree x degree) over its relationships, each 0.99 at most: the normalised adjacency matrix
of spectral graph theory, in which a way through an entity that knows everybody is worth little.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from graphrag_mcp.store.schema import in_lists
from graphrag_mcp.store.tables import Snapshot

SMALL = 25_000  # relationships up to which the whole graph is kept in memory
HUB = 500  # an entity of more relationships is shown, but neighbours behind it are not
WALKED = 40  # entities of one ring whose own neighbours are read, strongest first
EDGES = 60_000  # relationships that one search for paths may read
EXTRA = 12_000  # of these, for the step beyond the shortest path on which a stronger one may lie
LONGEST = 8  # steps of a path
PATHS = 5

PAIR = ["source_id", "target_id", "weight"]
Edge = tuple[float, str]  # weight, id of the relationship
_small: WeakKeyDictionary[Snapshot, dict[str, dict[str, float]]] = WeakKeyDictionary()
_lock = threading.Lock()


class Graph:
    """The part of the graph that a walk has read. `of[id]` has all neighbours of an entity that was read.

    `small`: relationships up to which all of it is kept; `most`: what a search for paths may read.
    """

    def __init__(self, snapshot: Snapshot, small: int = SMALL, most: int = EDGES) -> None:
        self.snapshot, self.most = snapshot, most
        self.whole = _whole(snapshot) if snapshot.count("relationships") <= small else None
        self.of: dict[str, dict[str, float]] = {}
        self.degree: dict[str, int] = {}
        self.edges = 0  # how many were read

    def read(self, ids: Iterable[str]) -> None:
        """All relationships of these entities."""
        missing = [id for id in dict.fromkeys(ids) if id not in self.of]
        if not missing:
            return
        if self.whole is not None:
            found = {id: self.whole.get(id, {}) for id in missing}
        else:
            found = {id: {} for id in missing}
            sides = zip(in_lists("source_id", missing), in_lists("target_id", missing), strict=True)
            for where in sides:  # both at once, and no more columns: 150 ms for 2,000 entities, else 200
                rows = self.snapshot.rows("relationships", " OR ".join(where), PAIR)
                for one, other, weight in zip(*(rows[name].to_pylist() for name in PAIR), strict=True):
                    if one in found:
                        found[one][other] = weight
                    if other in found:
                        found[other][one] = weight
        self.of |= found
        self.edges += sum(map(len, found.values()))

    def know(self, ids: Iterable[str]) -> None:
        """The degrees of these entities."""
        missing = [id for id in dict.fromkeys(ids) if id not in self.degree]
        rows = self.snapshot.by_key("entities", missing, "id", ["id", "degree"], hold=True)
        self.degree |= zip(rows["id"].to_pylist(), rows["degree"].to_pylist(), strict=True)

    def between(self, ids: Sequence[str]) -> dict[tuple[str, str], Edge]:
        """The relationships among these entities, by (smaller id, larger id)."""
        listed = ", ".join(f"'{id}'" for id in ids)
        where = f"source_id IN ({listed}) AND target_id IN ({listed})"
        rows = self.snapshot.rows("relationships", where, [*PAIR, "id"])
        columns = (rows[name].to_pylist() for name in (*PAIR, "id"))
        return {(min(a, b), max(a, b)): (weight, id) for a, b, weight, id in zip(*columns, strict=True)}


def _whole(snapshot: Snapshot) -> dict[str, dict[str, float]]:
    """Every entity's neighbours and weights, read once a snapshot."""
    with _lock:
        if snapshot not in _small:
            held: dict[str, dict[str, float]] = {}
            for row in snapshot.rows("relationships", "", PAIR).to_pylist():
                held.setdefault(row["source_id"], {})[row["target_id"]] = row["weight"]
                held.setdefault(row["target_id"], {})[row["source_id"]] = row["weight"]
            _small[snapshot] = held
        return _small[snapshot]


# ---- neighbours ----------------------------------------------------------------------------------


@dataclass
class Around:
    """Entities around one, nearest ring first and strongest first in it.

    `edges` lead to them or link them with each other: (smaller id, larger id) -> edge, in the order of worth.
    `found` counts all that were seen in each ring; `hubs` are entities behind which nothing was looked for.
    """

    hops: dict[str, int]
    edges: dict[tuple[str, str], Edge]
    found: list[int]
    hubs: list[str]


def around(graph: Graph, start: str, hops: int, most: int) -> Around:
    """The strongest entities within `hops` steps of one, at most `most` with itself.

    Each ring is sure of half as many places as the one before it; what a ring does not need goes to the nearest.
    A ring is reached through the WALKED strongest of the ring before, never through a hub.
    """
    graph.know([start])
    score, via, rings, hubs = {start: 1.0}, {start: start}, [[start]], []
    for distance in range(1, hops + 1):
        walked = [id for id in rings[-1] if distance == 1 or graph.degree.get(id, 0) <= HUB]
        hubs += [id for id in rings[-1][:WALKED] if id not in walked]
        graph.read(walked[:WALKED])
        links = {
            (here, there): weight for here in walked[:WALKED] for there, weight in graph.of[here].items()
            if there not in score
        }  # fmt: skip
        graph.know(there for _, there in links)
        ring: dict[str, float] = {}
        for (here, there), weight in links.items():
            worth = score[here] * weight / (1 + math.log(max(graph.degree.get(there, 1), 1)))
            if worth > ring.get(there, 0.0):
                ring[there], via[there] = worth, here
        score |= ring
        rings.append(sorted(ring, key=lambda id: (-round(ring[id], 9), id)))
    chosen = {start: 0}
    for distance, places in enumerate(_places([len(ring) for ring in rings[1:]], most - 1), 1):
        linked = [id for id in rings[distance] if via[id] in chosen]
        chosen |= dict.fromkeys(linked[:places], distance)
    leading = [(min(id, via[id]), max(id, via[id])) for id in chosen if id != start]
    links = graph.between(list(chosen))
    among = sorted(links, key=lambda pair: (-links[pair][0], pair))
    edges = {pair: links[pair] for pair in [*leading, *among] if pair in links}
    return Around(chosen, edges, [len(ring) for ring in rings[1:]], [id for id in hubs if id in chosen])


def _places(found: Sequence[int], most: int) -> list[int]:
    """How many of each ring are shown."""
    parts = 2 ** len(found) - 1
    sure = [min(count, most * 2 ** (len(found) - 1 - at) // parts) for at, count in enumerate(found)]
    for at, count in enumerate(found):
        sure[at] += min(count - sure[at], most - sum(sure))
    return sure


# ---- paths ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Path:
    """Entities from start to goal, the relationships between them, how strong it is (0 to 1)."""

    entities: tuple[str, ...]
    relationships: tuple[str, ...]
    strength: float


@dataclass
class Connection:
    """How two entities are connected. Without a path, `reached` says what lies on either side.

    `shortest` and `strongest` are places in `paths`, -1 when there is none. `whole`: everything that could lie on a
    path of this length was read; without a path, all of at least one side was.
    """

    paths: list[Path] = field(default_factory=list)
    shortest: int = -1
    strongest: int = -1
    whole: bool = True
    reached: tuple[dict[str, int], dict[str, int]] = ({}, {})
    ended: tuple[bool, bool] = (False, False)  # all that can be reached from this side was


def connect(graph: Graph, start: str, goal: str) -> Connection:
    """The shortest path, the strongest of those at most one step longer, and others that go through other entities.

    Both ends are searched towards each other, the side that costs fewer reads first (the degrees of its rim are
    known), so a hub is opened only when there is no other way.
    """
    reached: tuple[dict[str, int], dict[str, int]] = ({start: 0}, {goal: 0})
    rims, radius = [[start], [goal]], [0, 0]
    length, whole = 0, True
    while all(rims) and sum(radius) < (length + 1 if length else LONGEST):
        graph.know([*rims[0], *rims[1]])
        price = [sum(graph.degree.get(id, 0) for id in rim if id not in graph.of) for rim in rims]
        side = int(price[1] < price[0])
        room = graph.most - graph.edges if not length else min(graph.most - graph.edges, EXTRA)
        opened = _affordable(graph, rims[side], room) if price[side] > room else rims[side]
        whole = len(opened) == len(rims[side])
        if length and not whole:
            whole = sum(radius) >= length
            break
        graph.read(opened)
        radius[side] += 1
        rims[side] = [there for there in dict.fromkeys(there for here in opened for there in graph.of[here])
                      if there not in reached[side]]  # fmt: skip
        reached[side].update(dict.fromkeys(rims[side], radius[side]))
        met = [reached[0][id] + reached[1][id] for id in rims[side] if id in reached[1 - side]]
        length = min([*met, *([length] if length else [])], default=0)
        if not whole:
            break
    found = Connection(whole=whole, reached=reached, ended=(not rims[0] and whole, not rims[1] and whole))
    return _ways(graph, start, goal, length + 1, found) if length else found


def _affordable(graph: Graph, rim: Sequence[str], room: int) -> list[str]:
    """The entities of a rim with the fewest relationships, as many as may be read."""
    kept = []
    for id in sorted(rim, key=lambda id: (graph.degree.get(id, 0), id)):
        room -= graph.degree.get(id, 0)
        if room < 0:
            break
        kept.append(id)
    return kept


def _ways(graph: Graph, start: str, goal: str, longest: int, found: Connection) -> Connection:
    """Paths of at most `longest` steps over what was read: for each entity the strongest way through it."""
    links = _links(graph, start, goal, longest)
    graph.know(links)
    near = {here: {there: _cost(graph, here, there, weight) for there, weight in others.items()}
            for here, others in links.items()}  # fmt: skip
    there, back = _layers(near, start, longest), _layers(near, goal, longest)
    first = next(at for at, layer in enumerate(there) if goal in layer)
    shortest = _walked(there, goal, first)
    through: dict[str, tuple[float, int, int]] = {}
    for i, layer in enumerate(there):
        for j, other in enumerate(back[: longest - i + 1]):
            for id in layer.keys() & other.keys():
                price = round(layer[id][0] + other[id][0], 9)
                through[id] = min(through.get(id, (price, i, j)), (price, i, j))
    kept = [shortest]
    for id in sorted(through, key=lambda id: (*through[id], id)):
        _, i, j = through[id]
        way = (*_walked(there, id, i), *_walked(back, id, j)[::-1][1:])
        if len(set(way)) == len(way) and (len(kept) == 1 and way != shortest or _different(way, kept)):
            kept.append(way)
        if len(kept) == PATHS:
            break
    edges = graph.between(list(dict.fromkeys(id for way in kept for id in way)))
    for way in kept:
        steps = list(zip(way, way[1:], strict=False))
        strength = math.exp(-sum(near[a][b] for a, b in steps))
        found.paths.append(Path(way, tuple(edges[min(a, b), max(a, b)][1] for a, b in steps), strength))
    found.shortest = 0
    found.strongest = max(range(len(kept)), key=lambda at: (round(found.paths[at].strength, 12), -at))
    return found


def _cost(graph: Graph, one: str, other: str, weight: float) -> float:
    degrees = max(graph.degree.get(one, 1), 1) * max(graph.degree.get(other, 1), 1)
    return -math.log(min(0.99, weight / math.sqrt(degrees)))


def _different(way: Sequence[str], kept: Sequence[Sequence[str]]) -> bool:
    """Is this another way, and not only a detour from one that is kept?"""
    inner = set(way[1:-1])
    return all(not set(one[1:-1]) <= inner if len(one) > 2 else bool(inner) for one in kept)


def _layers(
    near: Mapping[str, Mapping[str, float]], start: str, longest: int
) -> list[dict[str, tuple[float, str]]]:
    """By the number of steps: the entities to which no way of fewer steps is as cheap, the cost, and from where."""
    best = {start: 0.0}
    layers = [{start: (0.0, "")}]
    for _ in range(longest):
        layer: dict[str, tuple[float, str]] = {}
        for here, (price, _before) in sorted(layers[-1].items()):
            for there, more in near[here].items():
                if price + more < min(best.get(there, math.inf), layer.get(there, (math.inf,))[0]) - 1e-12:
                    layer[there] = (price + more, here)
        best |= {id: price for id, (price, _before) in layer.items()}
        layers.append(layer)
    return layers


def _walked(layers: Sequence[Mapping[str, tuple[float, str]]], id: str, steps: int) -> tuple[str, ...]:
    """The way of so many steps to an entity, from the beginning of the layers."""
    way = [id]
    for at in range(steps, 0, -1):
        way.append(layers[at][way[-1]][1])
    return tuple(way[::-1])


def _links(graph: Graph, start: str, goal: str, longest: int) -> dict[str, dict[str, float]]:
    """What was read of the entities that lie on a path of at most so many steps, both directions of each edge."""
    every: dict[str, dict[str, float]] = {id: dict(others) for id, others in graph.of.items()}
    for here, others in graph.of.items():
        for there, weight in others.items():
            if there not in graph.of:
                every.setdefault(there, {})[here] = weight
    far = [_steps(every, start, longest), _steps(every, goal, longest)]
    inside = {id for id in far[0] if far[0][id] + far[1].get(id, longest) <= longest}
    return {id: {there: weight for there, weight in every[id].items() if there in inside} for id in inside}


def _steps(links: Mapping[str, Mapping[str, float]], start: str, longest: int) -> dict[str, int]:
    far, rim = {start: 0}, [start]
    for distance in range(1, longest + 1):
        rim = [id for id in dict.fromkeys(there for here in rim for there in links.get(here, ())) if id not in far]
        far |= dict.fromkeys(rim, distance)
    return far

