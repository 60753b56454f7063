"""The graph around an entity, between two, or an overview from the most central ones down. No model
is asked.

Edges are read by key and only where the search goes; a small graph is read once and kept. A
neighbour is as strong as the weight of the relationship that led to it / (1 + ln of its own
degree), times the strength of where it was reached from. A path is as strong as the product of
weight / sqrt(degree x degree) over its relationships, each 0.99 at most (the normalised adjacency
matrix of spectral graph theory). The most central entities are those of the highest degree."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import Item, Section, clamp_budget, compose, finish, one_line
from graphrag_mcp.query import context, symbols
from graphrag_mcp.query.context import resolve
from graphrag_mcp.store.schema import in_lists
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import bracketed, counted
from graphrag_mcp.types import ExploreResult

SMALL = 25_000  # relationships up to which the whole graph is kept in memory
HUB = 500  # an entity of more relationships is shown, but neighbours behind it are not
WALKED = 40  # entities of one ring whose own neighbours are read, strongest first
EDGES = 60_000  # relationships that one search for paths may read
EXTRA = 12_000  # of these, for the step beyond the shortest path on which a stronger one may lie
LONGEST = 8  # steps of a path
PATHS = 3

PAIR = ["source_id", "target_id", "weight"]
Edge = tuple[float, str]  # weight, id of the relationship
_small: WeakKeyDictionary[Snapshot, dict[str, dict[str, float]]] = WeakKeyDictionary()
_lock = threading.Lock()


class Graph:
    """The part of the graph that a walk has read. `of[id]` has all neighbours of an entity that was
    read.

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
            for (
                where
            ) in sides:  # both at once, and no more columns: 150 ms for 2,000 entities, else 200
                rows = self.snapshot.rows("relationships", " OR ".join(where), PAIR)
                for one, other, weight in zip(
                    *(rows[name].to_pylist() for name in PAIR), strict=True
                ):
                    if one in found:
                        found[one][other] = weight
                    if other in found:
                        found[other][one] = weight
        self.of |= found
        self.edges += sum(map(len, found.values()))

    def know(self, ids: Iterable[str]) -> None:
        """The degrees of these entities."""
        missing = [id for id in dict.fromkeys(ids) if id not in self.degree]
        rows = self.snapshot.by_key("entities", missing, "id", ["id", "degree"])
        self.degree |= zip(rows["id"].to_pylist(), rows["degree"].to_pylist(), strict=True)

    def between(self, ids: Sequence[str]) -> dict[tuple[str, str], Edge]:
        """The relationships among these entities, by (smaller id, larger id)."""
        listed = ", ".join(f"'{id}'" for id in ids)
        where = f"source_id IN ({listed}) AND target_id IN ({listed})"
        rows = self.snapshot.rows("relationships", where, [*PAIR, "id"])
        columns = (rows[name].to_pylist() for name in (*PAIR, "id"))
        return {
            (min(a, b), max(a, b)): (weight, id) for a, b, weight, id in zip(*columns, strict=True)
        }


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

    `edges` lead to them or link them with each other: (smaller id, larger id) -> edge, in the order
    of worth. `found` counts all that were seen in each ring; `hubs` are entities behind which
    nothing was looked for."""

    hops: dict[str, int]
    edges: dict[tuple[str, str], Edge]
    found: list[int]
    hubs: list[str]


def around(graph: Graph, start: str, hops: int, most: int) -> Around:
    """The strongest entities within `hops` steps of one, at most `most` with itself.

    Each ring is sure of half as many places as the one before it; what a ring does not need goes to
    the nearest. A ring is reached through the WALKED strongest of the ring before, never through a
    hub."""
    graph.know([start])
    score, via, rings, hubs = {start: 1.0}, {start: start}, [[start]], []
    for distance in range(1, hops + 1):
        walked = [id for id in rings[-1] if distance == 1 or graph.degree.get(id, 0) <= HUB]
        hubs += [id for id in rings[-1][:WALKED] if id not in walked]
        graph.read(walked[:WALKED])
        links = {
            (here, there): weight
            for here in walked[:WALKED]
            for there, weight in graph.of[here].items()
            if there not in score
        }
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
    return Around(
        chosen, edges, [len(ring) for ring in rings[1:]], [id for id in hubs if id in chosen]
    )


def _places(found: Sequence[int], most: int) -> list[int]:
    """How many of each ring are shown."""
    parts = 2 ** len(found) - 1
    sure = [
        min(count, most * 2 ** (len(found) - 1 - at) // parts) for at, count in enumerate(found)
    ]
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

    `shortest` and `strongest` are places in `paths`, -1 when there is none. `whole`: everything
    that could lie on a path of this length was read; without a path, all of at least one side was.
    """

    paths: list[Path] = field(default_factory=list)
    shortest: int = -1
    strongest: int = -1
    whole: bool = True
    reached: tuple[dict[str, int], dict[str, int]] = ({}, {})
    ended: tuple[bool, bool] = (False, False)  # all that can be reached from this side was


def connect(graph: Graph, start: str, goal: str) -> Connection:
    """The shortest path, the strongest of those at most one step longer, and others that go through
    other entities.

    Both ends are searched towards each other, the side that costs fewer reads first (the degrees of
    its rim are known), so a hub is opened only when there is no other way."""
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
        rims[side] = [
            there
            for there in dict.fromkeys(there for here in opened for there in graph.of[here])
            if there not in reached[side]
        ]
        reached[side].update(dict.fromkeys(rims[side], radius[side]))
        met = [reached[0][id] + reached[1][id] for id in rims[side] if id in reached[1 - side]]
        length = min([*met, *([length] if length else [])], default=0)
        if not whole:
            break
    found = Connection(
        whole=whole, reached=reached, ended=(not rims[0] and whole, not rims[1] and whole)
    )
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
    """Paths of at most `longest` steps over what was read: for each entity the strongest way
    through it."""
    links = _links(graph, start, goal, longest)
    graph.know(links)
    near = {
        here: {there: _cost(graph, here, there, weight) for there, weight in others.items()}
        for here, others in links.items()
    }
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
        if len(set(way)) == len(way) and (
            len(kept) == 1 and way != shortest or _different(way, kept)
        ):
            kept.append(way)
        if len(kept) == PATHS:
            break
    edges = graph.between(list(dict.fromkeys(id for way in kept for id in way)))
    for way in kept:
        steps = list(zip(way, way[1:], strict=False))
        strength = math.exp(-sum(near[a][b] for a, b in steps))
        found.paths.append(
            Path(way, tuple(edges[min(a, b), max(a, b)][1] for a, b in steps), strength)
        )
    found.shortest = 0
    found.strongest = max(
        range(len(kept)), key=lambda at: (round(found.paths[at].strength, 12), -at)
    )
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
    """By the number of steps: the entities to which no way of fewer steps is as cheap, the cost,
    and from where."""
    best = {start: 0.0}
    layers = [{start: (0.0, "")}]
    for _ in range(longest):
        layer: dict[str, tuple[float, str]] = {}
        for here, (price, _before) in sorted(layers[-1].items()):
            for there, more in near[here].items():
                if (
                    price + more
                    < min(best.get(there, math.inf), layer.get(there, (math.inf,))[0]) - 1e-12
                ):
                    layer[there] = (price + more, here)
        best |= {id: price for id, (price, _before) in layer.items()}
        layers.append(layer)
    return layers


def _walked(
    layers: Sequence[Mapping[str, tuple[float, str]]], id: str, steps: int
) -> tuple[str, ...]:
    """The way of so many steps to an entity, from the beginning of the layers."""
    way = [id]
    for at in range(steps, 0, -1):
        way.append(layers[at][way[-1]][1])
    return tuple(way[::-1])


def _links(graph: Graph, start: str, goal: str, longest: int) -> dict[str, dict[str, float]]:
    """What was read of the entities that lie on a path of at most so many steps, both directions of
    each edge."""
    every: dict[str, dict[str, float]] = {id: dict(others) for id, others in graph.of.items()}
    for here, others in graph.of.items():
        for there, weight in others.items():
            if there not in graph.of:
                every.setdefault(there, {})[here] = weight
    far = [_steps(every, start, longest), _steps(every, goal, longest)]
    inside = {id for id in far[0] if far[0][id] + far[1].get(id, longest) <= longest}
    return {
        id: {there: weight for there, weight in every[id].items() if there in inside}
        for id in inside
    }


def _steps(links: Mapping[str, Mapping[str, float]], start: str, longest: int) -> dict[str, int]:
    far, rim = {start: 0}, [start]
    for distance in range(1, longest + 1):
        rim = [
            id
            for id in dict.fromkeys(there for here in rim for there in links.get(here, ()))
            if id not in far
        ]
        far |= dict.fromkeys(rim, distance)
    return far


Row = dict[str, Any]
DEFAULT_TOKENS = 4_000
HOPS = (1, 1, 4)  # default, least, most
NODES = (30, 2, 200)
GROUP = 5  # entities in one line
# relationships of one result: with more, the longest results would have no room for entities
SENTENCES = 44
SIDE = 6  # entities shown of either side where there is no path
ROOTS, BRANCHES = 12, 4  # communities of the tree, and of each the largest under it
NAMES = ["id", "n", "title", "type", "degree"]
INTO = {
    "Paths": "paths",
    "Relationships": "edges",
    "Entities": "nodes",
    "Communities": "communities",
}


def explore_graph(
    snapshot: Snapshot,
    start: str = "",
    goal: str = "",
    *,
    hops: int = HOPS[0],
    max_nodes: int = NODES[0],
    max_tokens: int = DEFAULT_TOKENS,
    kinds: Sequence[str] = (),
    direction: str = "",
) -> ExploreResult:
    """Neighbours of `start`; with `goal` how the two are connected; with neither an overview of the
    graph. `kinds` (of statements on source code: calls, contains, imports, inherits, impact, tests)
    and `direction` (in: what uses `start`, out: what it uses): a walk over these alone."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    hops, nodes = min(max(hops, HOPS[1]), HOPS[2]), min(max(max_nodes, NODES[1]), NODES[2])
    result = ExploreResult(corpus=snapshot.manifest.corpus, hint=note)
    start, goal = (str(one).strip().strip("[]`\"' ") for one in (start, goal))
    if not snapshot.manifest.counters.get("entities", snapshot.count("entities")):
        result.state, result.text = "not_found", "This corpus has no entities yet."
        result.next_call = 'index_documents(paths=["..."])'
        return finish(result, budget)
    if not start and not goal:
        return _overview(snapshot, result, budget)
    if re.fullmatch(r"c\d{1,12}", start, re.IGNORECASE) and not goal:
        return _overview(snapshot, result, budget, int(start[1:]))
    if (kinds or direction) and not goal and (names := symbols.asked_for(snapshot, start)):
        result.start = start if len(names) > 1 else f"e{names[0][1][0]['n']}"
        asked = kinds or ("calls",)
        return symbols.explore(snapshot, result, names, asked, direction, hops, nodes, budget)
    ends: list[Row] = []
    for end in filter(None, (start, goal)):
        row, others = resolve(snapshot, end)
        if row is None:
            return _candidates(result, end, others, budget)
        if others:
            _note(result, f"Others hold the name {end[:60]!r}: {context.named_list(others)}.")
        ends.append(row)
    result.start = f"e{ends[0]['n']}"
    graph = Graph(snapshot)
    if len(ends) == 1:
        return _neighbours(graph, result, ends[0], hops, nodes, budget)
    if ends[0]["id"] == ends[1]["id"]:
        said = f"{start[:60]!r} and {goal[:60]!r} are one entity, {one_line(ends[0]['title'], 80)} ({result.start})"
        raise BadInput(said, "Give two different ones, or no goal for what is around it")
    result.goal = f"e{ends[1]['n']}"
    found = connect(graph, ends[0]["id"], ends[1]["id"])
    if found.paths:
        return _connected(graph, result, ends, found, budget)
    return _apart(graph, result, ends, found, budget)


# ---- neighbours ----------------------------------------------------------------------------------


def _neighbours(
    graph: Graph, result: ExploreResult, row: Row, hops: int, most: int, budget: int
) -> ExploreResult:
    found = around(graph, row["id"], hops, most)
    rows = _entities(graph.snapshot, found.hops)
    title = one_line(row["title"], 120)
    rings = [
        f"{sum(hop == at for hop in found.hops.values())} of {seen} at {counted(at, 'steps')}"
        for at, seen in enumerate(found.found, 1)
    ]
    head = f"# {title} {bracketed(result.start, row['type'])}\n"
    if len(found.hops) == 1:
        result.text = f"{head}It has no relationships."
        _note(result, f'Where it is named: get_entity(id_or_name="{result.start}").')
        return finish(result, budget)
    head += f"Entities near it, strongest first: {', '.join(rings)}."
    if found.hubs:
        named = ", ".join(_named(rows[id]) for id in found.hubs[:5])
        _note(result, f"Not followed further, because they are linked with everything: {named}.")
    edges = _edge_items(graph.snapshot, found.edges, rows, budget, row["id"])
    said = {row["id"], *(id for item in edges for id in (item.data or {})["ends"])}
    others = {id: hop for id, hop in found.hops.items() if id not in said}
    sections = [
        Section("Relationships", edges, 0.7, more=len(edges) < len(found.edges)),
        Section("Also near it", _entity_items(rows, others), 0.3),
    ]
    result.nodes = [_node(rows[id], hop) for id, hop in found.hops.items() if id in rows]
    other = next(rows[id] for id in found.hops if id != row["id"])
    result = _composed(result, sections, budget, head, "Relationships")
    result.next_call = f'explore_graph(start="{result.start}", goal="e{other["n"]}")'
    if hops < HOPS[2] and sum(found.found) < most and not result.truncated:
        result.next_call = f'explore_graph(start="{result.start}", hops={hops + 1})'
    return finish(result, budget)


def _entities(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, Row]:
    return {
        row["id"]: row for row in snapshot.by_key("entities", list(ids), "id", NAMES).to_pylist()
    }


def _named(row: Row) -> str:
    return f"{one_line(row['title'], 80)} (e{row['n']})"


def _entity_items(rows: Mapping[str, Row], hops: Mapping[str, int]) -> list[Item]:
    """GROUP entities of one ring in a line, in the order of `hops`; an entity whose row is gone is
    missing."""
    rings: dict[int, list[Row]] = {}
    for id, hop in hops.items():
        if id in rows:
            rings.setdefault(hop, []).append(rows[id])
    items = []
    for hop, ring in rings.items():
        for at in range(0, len(ring), GROUP):
            nodes = [_node(row, hop) for row in ring[at : at + GROUP]]
            named = [
                f"[{one['id']}] {one['title']} {bracketed(one['type'], counted(one['degree'], 'relationships'))}"
                for one in nodes
            ]
            items.append(
                Item(
                    nodes[0]["id"], f"- {'; '.join(named)}", None, "Entities", data={"group": nodes}
                )
            )
    return items


def _node(row: Row, hop: int) -> dict[str, Any]:
    return {
        "id": f"e{row['n']}",
        "title": one_line(row["title"], 80),
        "type": row["type"],
        "degree": row["degree"],
        "hops": hop,
    }


def _composed(
    result: ExploreResult, sections: Sequence[Section], budget: int, intro: str, first: str
) -> ExploreResult:
    """The sections within the budget; of nodes, which come in groups, each one."""
    nodes = result.nodes
    result = compose(result, sections, budget, lambda _: "", intro=intro, first=first, into=INTO)
    result.nodes = nodes or [one for group in result.nodes for one in group["group"]]
    for edge in result.edges:
        edge.pop("ends", None)
    return result


def _edge_items(
    snapshot: Snapshot,
    edges: Mapping[tuple[str, str], Edge],
    rows: Mapping[str, Row],
    budget: int,
    start: str = "",
) -> list[Item]:
    """One line per relationship with the best sentence that says so, or its description, and the
    place of it. The name of `start`, which stands above, is left out."""
    longest = 120 if budget < 1_500 else 260
    wanted = [id for _, id in edges.values()][: max(12, min(budget // 40, SENTENCES))]
    found = context.rows(snapshot, "relationships", wanted)
    units = context.unit_citations(
        snapshot, [one["evidence"][0]["text_unit_id"] for one in found if one["evidence"]]
    )
    items: list[Item] = []
    shown: dict[
        tuple[str, int], str
    ] = {}  # a sentence that says it of several pairs is written once
    for row in found:
        ends = [rows.get(row["source_id"]), rows.get(row["target_id"])]
        if None in ends:
            continue
        data = {"id": f"r{row['n']}", "source": f"e{ends[0]['n']}", "target": f"e{ends[1]['n']}"}
        data |= {"weight": round(row["weight"], 3), "ends": [end["id"] for end in ends]}
        said, cited = context.relationship_statement(row, units, longest)
        if cited is not None:
            again = shown.setdefault((cited.id, cited.char_start), data["id"])
            said = f"{said if again == data['id'] else f'as {again}'} [{cited.id}]"
        names = " - ".join(_named(end) for end in ends if end["id"] != start)
        head = f"- [{data['id']}] {names}, weight {row['weight']:g}"
        items.append(Item(data["id"], f"{head}: {said}", cited, "Relationships", data=data))
    return items


# ---- paths ---------------------------------------------------------------------------------------


def _connected(
    graph: Graph, result: ExploreResult, ends: Sequence[Row], found: Connection, budget: int
) -> ExploreResult:
    far: dict[str, int] = {}
    edges: dict[tuple[str, str], Edge] = {}
    for path in found.paths:
        for at, id in enumerate(path.entities):
            far[id] = min(at, far.get(id, at))
        for one, other, id in zip(
            path.entities, path.entities[1:], path.relationships, strict=False
        ):
            edges[min(one, other), max(one, other)] = (0.0, id)
    rows = _entities(graph.snapshot, far)
    relationships = graph.snapshot.by_key(
        "relationships", [id for _, id in edges.values()], "id", ["id", "n"]
    )
    alias = dict(zip(relationships["id"].to_pylist(), relationships["n"].to_pylist(), strict=True))
    items = []
    for number, path in enumerate(found.paths):
        kind = (
            ", ".join(
                name
                for name, at in (("shortest", found.shortest), ("strongest", found.strongest))
                if at == number
            )
            or "another"
        )
        names = [_named(rows[id]) for id in path.entities]
        numbers = [f"r{alias[id]}" for id in path.relationships]
        chain = names[0] + "".join(
            f" -[{id}]- {name}" for id, name in zip(numbers, names[1:], strict=True)
        )
        data = {
            "kind": kind,
            "entities": [f"e{rows[id]['n']}" for id in path.entities],
            "relationships": numbers,
            "strength": float(f"{path.strength:.3g}"),
        }
        items.append(Item(f"p{number}", f"{number + 1}. {kind}: {chain}", None, "Paths", data=data))
    sections = [
        Section("Paths", items, 0.4),
        Section("Relationships", _edge_items(graph.snapshot, edges, rows, budget), 0.6),
    ]
    result.nodes = [_node(rows[id], hop) for id, hop in far.items() if id in rows]
    if not found.whole:
        _note(
            result, "Not everything between them was read, so a shorter or stronger path may exist."
        )
    intro = f"# How {_named(ends[0])} and {_named(ends[1])} are connected"
    result = _composed(result, sections, budget, intro, "Paths")
    shown = {id for path in result.paths for id in path["relationships"]} - {
        edge["id"] for edge in result.edges
    }
    if shown:
        _note(
            result,
            f"No room for the evidence of {counted(len(shown), 'relationships')}: get_source gives each.",
        )
    return finish(result, budget)


def _apart(
    graph: Graph, result: ExploreResult, ends: Sequence[Row], found: Connection, budget: int
) -> ExploreResult:
    """No path: what each side reaches, and what brings them nearest all the same."""
    snapshot = graph.snapshot
    result.state = "not_found" if any(found.ended) else "partial"
    names = [_named(row) for row in ends]
    limit = "No path was found in what was read between"
    if found.whole:
        limit = f"No path of up to {LONGEST} steps joins"
    said = "There is no path between" if any(found.ended) else limit
    lines = [f"{said} {names[0]} and {names[1]}."]
    sides: dict[str, int] = {}
    for row, reached, ended in zip(ends, found.reached, found.ended, strict=True):
        graph.know(reached)
        central = sorted(reached, key=lambda id: (-graph.degree.get(id, 0), id))
        central = [id for id in central if id != row["id"]][:SIDE]
        sides |= {id: reached[id] for id in (row["id"], *central)}
        rows = _entities(snapshot, central)
        among = ""
        if central:
            among = f", among them {', '.join(_named(rows[id]) for id in central if id in rows)}"
        size = (
            counted(len(reached), "entities")
            if ended
            else f"at least {counted(len(reached), 'entities')}"
        )
        lines.append(f"- {_named(row)} {'is in a part of' if ended else 'reaches'} {size}{among}.")
    meeting = _meeting(snapshot, ends)
    lines.append(
        f"Nearest to a meeting: {'; '.join(meeting)}." if meeting else "No document names both."
    )
    sections = [Section("Entities", _entity_items(_entities(snapshot, sides), sides), 1.0)]
    if not found.whole:
        _note(
            result,
            "So many relationships lie between them that reading stopped; name something in between.",
        )
    result = _composed(result, sections, budget, "\n".join(lines), "Entities")
    query = " ".join(one_line(row["title"], 60).replace('"', "'") for row in ends)
    result.next_call = f'local_search(query="{query}")'
    return finish(result, budget)


def _meeting(snapshot: Snapshot, ends: Sequence[Row]) -> list[str]:
    """Documents that name both, and the smallest community that holds both."""
    held = [
        dict.fromkeys(
            snapshot.by_key("text_units", row["text_unit_ids"][:500], "id", ["document_id"])[
                "document_id"
            ].to_pylist()
        )
        for row in ends
    ]
    both = [id for id in held[0] if id in held[1]][:5]
    rows = snapshot.by_key("documents", both, "id", ["n", "title"]).to_pylist()
    found = [f"{one_line(row['title'], 80)} (d{row['n']}) names both" for row in rows]
    ways = snapshot.by_key("memberships", [row["id"] for row in ends], "entity_id", ["path"])[
        "path"
    ].to_pylist()
    common = [a for a, b in zip(*ways, strict=False) if a == b] if len(ways) == 2 else []
    for row in snapshot.by_key("reports", common[-1:], "id", ["n", "title"]).to_pylist():
        found.append(f"{one_line(row['title'], 80)} (c{row['n']}) is a community of both")
    return found


# ---- where to begin ------------------------------------------------------------------------------


def _overview(
    snapshot: Snapshot, result: ExploreResult, budget: int, community: int = 0
) -> ExploreResult:
    """Central entities and the top of the community tree: of the whole corpus, or of one community."""
    names = ["id", "n", "level", "parent", "children", "size"]
    wanted = "level <= 1"
    if community:
        tops = snapshot.by_key("communities", [community], "n", [*names, "entity_ids"]).to_pylist()
        if not tops:
            what = f"there is no community c{community}"
            raise NotFound(what, "Call explore_graph() for the top of the tree")
        below = ", ".join(f"'{id}'" for id in tops[0]["children"]) or "'none'"
        wanted = f"id IN ({below}) OR parent IN ({below})"
        members = snapshot.by_key("entities", tops[0]["entity_ids"], "id", ["id", "degree"])
        middle = _central(members, 20)
    else:
        middle = context.central(snapshot, 20)
    found = snapshot.rows("communities", wanted, names).to_pylist()
    inside = {row["id"] for row in found}
    roots = [row for row in found if row["parent"] not in inside]
    tree = _tree_items(snapshot, roots, found)
    rows = _entities(snapshot, middle)
    central = _entity_items(rows, dict.fromkeys(rows, 0))
    counters = snapshot.manifest.counters
    held = ", ".join(counted(counters.get(name, 0), name) for name in ("entities", "relationships"))
    intro = (
        f"# The graph of {result.corpus}\n{held}, {counted(len(roots), 'communities')} at the top."
    )
    if community:
        report = snapshot.by_key("reports", [community], "n", ["title"])["title"].to_pylist()
        title = one_line(report[0], 120) if report else "Community"
        held = f"{counted(tops[0]['size'], 'entities')}, {counted(len(roots), 'communities')} directly under it."
        intro = f"# {title} (c{community})\n{held}"
        result.view = f"community/{community}"
    sections = [Section("Entities", central, 0.5), Section("Communities", tree, 0.5)]
    result = _composed(result, sections, budget, intro, "Entities")
    first = next(iter(rows.values()), None)
    result.next_call = f'explore_graph(start="e{first["n"]}")' if first else ""
    _note(
        result,
        "Give start= an entity for what is around it, start= a community (c5) for what is under it.",
    )
    return finish(result, budget)


def _central(members: pa.Table, count: int) -> list[str]:
    best = pc.sort_indices(members, sort_keys=[("degree", "descending"), ("id", "ascending")])[
        :count
    ]
    return members.take(best)["id"].to_pylist()


def _tree_items(snapshot: Snapshot, roots: Sequence[Row], every: Sequence[Row]) -> list[Item]:
    """The largest roots, each followed by the largest communities under it, indented."""
    below: dict[str, list[Row]] = {}
    for row in every:
        below.setdefault(row["parent"], []).append(row)
    shown: list[tuple[Row, Row | None]] = []
    for root in sorted(roots, key=_largest)[:ROOTS]:
        shown.append((root, None))
        shown += [(row, root) for row in sorted(below.get(root["id"], ()), key=_largest)[:BRANCHES]]
    titles = snapshot.by_key("reports", [row["id"] for row, _ in shown], "id", ["id", "title"])
    title = dict(zip(titles["id"].to_pylist(), titles["title"].to_pylist(), strict=True))
    items = []
    for row, parent in shown:
        alias, name = f"c{row['n']}", one_line(title.get(row["id"], "(no report yet)"), 100)
        more = f", {len(row['children'])} under it" if row["children"] else ""
        text = (
            f"{'  ' if parent else ''}- [{alias}] {name} ({counted(row['size'], 'entities')}{more})"
        )
        data = {"id": alias, "title": name, "level": row["level"], "size": row["size"]}
        data["parent"] = f"c{parent['n']}" if parent else ""
        items.append(Item(alias, text, None, "Communities", data=data))
    return items


def _largest(row: Row) -> tuple[int, str]:
    return (-row["size"], row["id"])


# ---- names ---------------------------------------------------------------------------------------


def _candidates(
    result: ExploreResult, asked: str, found: Sequence[Row], budget: int
) -> ExploreResult:
    """Several entities could be meant, or none: what tells them apart."""
    result.state = "not_found"
    items = []
    for row in found:
        data = {"id": f"e{row['n']}", "title": one_line(row["title"], 100)}
        data |= {"type": row["type"], "degree": row["degree"]}
        said = context.first_sentence(row["description"], 160)
        text = f"- [{data['id']}] {data['title']} {bracketed(row['type'], counted(row['degree'], 'relationships'))}: {said}"
        items.append(Item(data["id"], text, data=data))
    intro = f"There is no entity named {one_line(asked, 100)!r}." + (
        " Did you mean one of these?" if items else ""
    )
    _note(
        result,
        "Call explore_graph again with an id."
        if items
        else "Call explore_graph() for the central entities.",
    )
    section = Section("Candidates", items, 1.0)
    return compose(
        result,
        [section],
        budget,
        lambda _: "",
        intro=intro,
        first="Candidates",
        into={"Candidates": "candidates"},
    )


def _note(result: ExploreResult, sentence: str) -> None:
    result.hint = f"{result.hint} {sentence}".strip()
