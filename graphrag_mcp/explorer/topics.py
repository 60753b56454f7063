"""The communities of a generation for the map: titles, sizes, types, dates, and nested circles.

Siblings begin on a spiral, the largest in the middle; circles that overlap are then moved apart. All
places are in the unit circle, which is the whole map."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.references import render_references
from graphrag_mcp.query import context, entities, filters
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import lists_of

TITLE = 160  # characters of a title in lists
FIRST = 400  # communities of the first answer, level by level
DOTS = 60  # entities shown in a community without children
MAIN = 5  # communities that the overview describes
NEAREST = 3  # edges drawn from each topic to others that share documents
NUMBERED = ["id", "n", "title", "type", "degree"]

Row = dict[str, Any]


class Brief(TypedDict):
    """A community in a list; `size` counts its text units."""

    n: int
    title: str
    size: int


class Named(TypedDict):
    """An entity in a list."""

    n: int
    title: str
    type: str


FILLED = 0.6  # of the area of a circle, by the circles inside of it, before they are moved apart
SLACK = 1.06  # room around each circle, and around all circles inside of one
GATHERED = 10  # circles side by side up to which they are drawn together
GAP = 0.01  # of the radii of circles that had to be moved, left free between them
STEPS = 100  # of moving circles apart
ROUNDS = 16  # of drawing circles together
PULL = (0.94, 0.86)  # how far each time, along x and y: the room of the map is wide


@dataclass(frozen=True, slots=True)
class Circle:
    """A circle of the map: its middle and radius, within the unit circle."""

    x: float
    y: float
    r: float

    def within(self, outer: Circle) -> Circle:
        """This circle, in the coordinates of `outer`, as a circle of the map."""
        return Circle(outer.x + self.x * outer.r, outer.y + self.y * outer.r, self.r * outer.r)


WHOLE = Circle(0.0, 0.0, 1.0)


@dataclass(slots=True)
class Topic:
    """One community. `size` counts text units; `day` is the mean date of its documents as an
    ordinal, 0 where they state none."""

    id: str
    n: int
    level: int
    parent: str
    title: str
    size: int
    children: list[str]
    type: str
    day: int
    circle: Circle = WHOLE
    colour: int = 0  # of the top community that it is in


@dataclass(slots=True)
class Topics:
    """All communities of a generation, by id, the largest first; `roots` are those at the top."""

    by_id: dict[str, Topic]
    roots: list[str]
    first_day: str = ""
    last_day: str = ""
    documents: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    # By parent: the topics below it that hold a document.
    holders: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])

    def numbered(self, n: int) -> Topic | None:
        return next((topic for topic in self.by_id.values() if topic.n == n), None)

    def parents(self, id: str) -> list[Topic]:
        """Those above it, the coarsest first."""
        found: list[Topic] = []
        while (topic := self.by_id.get(id)) is not None and topic.parent in self.by_id:
            id = topic.parent
            found.insert(0, self.by_id[id])
        return found


@once
def topics(snapshot: Snapshot) -> Topics:
    """The communities with their places; computed at the first question of a generation."""
    names = ["id", "n", "level", "title", "n_text_units", "text_unit_ids"]
    reports = snapshot.rows("reports", "", names)
    communities = snapshot.rows("communities", "", ["id", "parent", "children", "entity_ids"])
    family = {row["id"]: row for row in communities.drop(["entity_ids"]).to_pylist()}
    rows = [row for row in reports.to_pylist() if row["id"] in family]
    rows.sort(key=lambda row: (-row["n_text_units"], row["n"]))
    units = {row["id"]: row["text_unit_ids"] for row in rows}
    typed = snapshot.rows("entities", "type != 'other'", ["id", "type"])
    members = _members(communities, "entity_ids", typed).group_by(["id", "type"])
    counts = members.aggregate([("type", "count")]).to_pylist()
    counts.sort(key=lambda row: (-row["type_count"], row["type"]), reverse=True)
    types = {row["id"]: row["type"] for row in counts}  # the last one, of most entities, counts
    days = _days(snapshot, reports)
    place = {id: at for at, id in enumerate(units)}
    by_id: dict[str, Topic] = {}
    for row in rows:
        id, kin = row["id"], family[row["id"]]
        children = sorted((child for child in kin["children"] if child in place), key=place.__getitem__)
        identity = id, row["n"], row["level"], kin["parent"], one_line(row["title"], TITLE)
        facts = row["n_text_units"], children, types.get(id, ""), days.get(id, 0)
        by_id[id] = Topic(*identity, *facts)
    found = Topics(by_id, [id for id, topic in by_id.items() if topic.parent not in by_id])
    _place(found)
    texts = snapshot.rows("text_units", "", ["id", "document_id"])
    document = dict(zip(*(texts[name].to_pylist() for name in texts.column_names), strict=True))
    for id, unit_ids in units.items():
        found.documents[id] = frozenset(document[unit] for unit in unit_ids if unit in document)
    facts = filters.documents(snapshot).values()
    dated = sorted(fact.date for fact in facts if fact.date)
    if dated:
        found.first_day, found.last_day = dated[0], dated[-1]
    return found


def holding(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Topic]]:
    """The topics that hold each of these entities or text units, the coarsest first."""
    known = topics(snapshot).by_id
    paths = rows_of(snapshot.by_key("memberships", ids, "entity_id", ["entity_id", "path"]))
    return {id: [known[above] for above in path if above in known] for id, path in paths}


def _place(found: Topics) -> None:
    """Circles, and colours: one for each top community."""
    by_id = found.by_id
    children = {"": found.roots, **{id: topic.children for id, topic in by_id.items()}}
    circles = arranged(children, lambda id: by_id[id].size)
    colour = {id: at for at, id in enumerate(found.roots)}
    for id, topic in by_id.items():
        top = [*(above.id for above in found.parents(id)), id][0]
        topic.circle, topic.colour = circles[id], colour[top]


def _days(snapshot: Snapshot, reports: pa.Table) -> dict[str, int]:
    """By community the mean day of the documents of its text units."""
    units = snapshot.rows("text_units", "", ["id", "document_id"])
    dates = {id: fact.date for id, fact in filters.documents(snapshot).items()}
    day = [_ordinal(dates.get(str(id), "")) or None for id in units["document_id"].to_pylist()]
    units = units.append_column("day", pa.array(day, pa.int64()))
    means = _members(reports, "text_unit_ids", units).group_by("id").aggregate([("day", "mean")])
    return {row["id"]: int(row["day_mean"]) for row in means.to_pylist() if row["day_mean"]}


def _members(rows: pa.Table, column: str, members: pa.Table) -> pa.Table:
    """A row for every member of a row's list `column`: the member's columns, with the row's id."""
    at = pc.index_in(pc.list_flatten(rows[column]), members["id"])  # pyright: ignore[reportUnknownMemberType]
    ids = rows["id"].take(pc.list_parent_indices(rows[column]))
    found = members.take(at).set_column(0, "id", ids)
    return found.filter(pc.is_valid(found[found.column_names[-1]]))  # pyright: ignore[reportUnknownMemberType]


def _ordinal(date: str) -> int:
    """The first day of a date as a number; 0 for none."""
    return datetime.date.fromisoformat(dates.days(date)[0]).toordinal() if date else 0


def brief(topic: Topic) -> Brief:
    """A community in a list."""
    return {"n": topic.n, "title": topic.title, "size": topic.size}


def marks(found: Topics, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Communities as marks of the map; places in the unit circle around 0, 0."""
    listed: list[dict[str, Any]] = []
    for topic in (found.by_id[id] for id in ids):
        above, circle = found.by_id.get(topic.parent), topic.circle
        facts = {"parent": above.n if above else 0, "children": len(topic.children)}
        facts |= _rounded(circle.x, circle.y, circle.r)
        facts |= {"type": topic.type, "day": topic.day, "colour": topic.colour}
        listed.append({**brief(topic), **facts})
    return listed


def beside(found: Topics, id: str) -> list[tuple[Topic, int]]:
    """The topics under the same parent that share documents with one, with the number of these,
    most first."""
    above = found.by_id.get(found.by_id[id].parent)
    key = above.id if above else ""
    if key not in found.holders:
        by_document = lists_of(
            (document, other)
            for other in (above.children if above else found.roots)
            for document in found.documents.get(other, ())
        )
        found.holders[key] = dict(by_document)
    holders, ours = found.holders[key], found.documents.get(id, frozenset[str]())
    counts = Counter(other for document in ours for other in holders.get(document, ()))
    del counts[id]
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], found.by_id[pair[0]].n))
    return [(found.by_id[other], count) for other, count in ranked]


def shared(found: Topics, ids: Iterable[str]) -> list[list[int]]:
    """Edges of the map: [n, n, documents that both topics hold], of each topic the strongest ones."""
    kept = set(ids)
    edges: dict[tuple[int, int], int] = {}
    for id in kept:
        topic = found.by_id[id]
        for other, count in beside(found, id)[:NEAREST]:
            if other.id in kept:
                edges[min(topic.n, other.n), max(topic.n, other.n)] = count
    return [[a, b, count] for (a, b), count in sorted(edges.items())]


def _rounded(x: float, y: float, r: float) -> dict[str, float]:
    return {"x": round(x, 7), "y": round(y, 7), "r": round(r, 7)}


def map_(snapshot: Snapshot, under: int = 0) -> dict[str, Any]:
    """The first levels of the map, or what lies in one community: its children, else its entities."""
    found = topics(snapshot)
    if not under:
        listed, level = list(found.roots), list(found.roots)
        while level and len(listed) < FIRST:
            level = [child for id in level for child in found.by_id[id].children]
            listed += level if len(listed) + len(level) <= FIRST else []
        whole = {"from": found.first_day, "to": found.last_day, "total": len(found.by_id)}
        days = {"first": _ordinal(found.first_day), "last": _ordinal(found.last_day)}
        drawn = {"communities": marks(found, listed), "shared": shared(found, listed)}
        return {**drawn, "entities": [], **whole, **days}
    topic = found.numbered(under)
    if topic is None:
        return {"communities": [], "entities": []}
    dots = [] if topic.children else _dots(snapshot, topic)
    drawn = {"communities": marks(found, topic.children), "shared": shared(found, topic.children)}
    return {**drawn, "entities": dots}


def _dots(snapshot: Snapshot, topic: Topic) -> list[dict[str, Any]]:
    """The entities of a community, those of most relationships in the middle."""
    community = snapshot.served("communities", [topic.id], ["entity_ids"])
    ids: list[str] = community[0]["entity_ids"] if community else []
    rows = snapshot.served("entities", ids, NUMBERED)
    rows.sort(key=lambda row: (-row["degree"], row["n"]))
    rows = rows[:DOTS]
    around = spiral([1.0] * len(rows))
    size, circle = 0.55 / max(len(rows), 4) ** 0.5, topic.circle
    reach = 0.86 * circle.r
    dots: list[dict[str, Any]] = []
    for row, (x, y) in zip(rows, around, strict=True):
        radius = circle.r * size * 0.5 * max(row["degree"] / max(rows[0]["degree"], 1), 0.1) ** 0.5
        place = _rounded(circle.x + x * reach, circle.y + y * reach, radius)
        dots.append({**named(row), "community": topic.n, **place})
    return dots


def named(row: Row) -> Named:
    """An entity in a list."""
    return {"n": row["n"], "title": one_line(row["title"], TITLE), "type": row["type"]}


def overview(snapshot: Snapshot, corpora: Sequence[str]) -> dict[str, Any]:
    """What the corpus is: counts, its largest communities with their summaries, central names."""
    found, counters = topics(snapshot), snapshot.manifest.counters
    kinds = ("documents", "passages", "entities", "relationships", "communities")
    tops = [found.by_id[id] for id in found.roots]
    largest = sorted(tops, key=lambda topic: (-topic.size, topic.n))[:MAIN]
    rows = snapshot.served("reports", [topic.id for topic in largest])
    texts = {row["id"]: render_references(row["summary"], {}) for row in rows}
    summary = {id: context.first_sentence(text, 280) for id, text in texts.items()}
    central = snapshot.served("entities", entities.central(snapshot, 20)[:12])
    return {
        "title": snapshot.manifest.corpus,
        "corpora": list(corpora),
        "counts": {kind: counters.get(kind, 0) for kind in kinds},
        "from": found.first_day,
        "to": found.last_day,
        "main": [{**brief(topic), "summary": summary.get(topic.id, "")} for topic in largest],
        "central": [named(row) for row in central],
        "stale": "communities" in snapshot.manifest.stale,
    }


# ---- places on the map ---------------------------------------------------------------------------


def arranged(children: Mapping[str, Sequence[str]], size: Callable[[str], int]) -> dict[str, Circle]:
    """The circles of all communities: beside each other the area shows the size. `children` gives
    the ids below an id in a stable order, "" stands above the top ones."""
    found, waiting = {"": WHOLE}, [""]
    while waiting:
        id = waiting.pop()
        if below := children.get(id, ()):
            waiting += below
            placed = zip(below, _placed([max(size(child), 1) for child in below]), strict=True)
            found |= {child: circle.within(found[id]) for child, circle in placed}
    del found[""]
    return found


def _placed(areas: Sequence[float]) -> list[Circle]:
    """Circles of areas that are as these to each other, in the unit circle."""
    scale = math.sqrt(FILLED / sum(areas))
    found = _apart(spiral(areas), [math.sqrt(area) * scale for area in areas])
    for _ in range(0 if len(areas) > GATHERED else ROUNDS):
        nearer = [(circle.x * PULL[0], circle.y * PULL[1]) for circle in found]
        found = _apart(nearer, [circle.r for circle in found])
    fit = 1 / (max(math.hypot(circle.x, circle.y) + circle.r for circle in found) * SLACK)
    return [Circle(circle.x * fit, circle.y * fit, circle.r * fit / SLACK) for circle in found]


def spiral(areas: Sequence[float]) -> list[tuple[float, float]]:
    """Points of the unit circle in a spiral from its middle (Vogel 1979), each in the middle of its
    share of the area, the largest first; one alone in the middle."""
    if len(areas) == 1:
        return [(0.0, 0.0)]
    golden, whole, before = math.pi * (3 - math.sqrt(5)), sum(areas), 0.0
    points: dict[int, tuple[float, float]] = {}
    for turn, at in enumerate(sorted(range(len(areas)), key=lambda at: -areas[at])):
        far = 0.9 * math.sqrt((before + areas[at] / 2) / whole)
        before += areas[at]
        points[at] = far * math.cos(turn * golden), far * math.sin(turn * golden)
    return [points[at] for at in range(len(areas))]


def _apart(places: Sequence[tuple[float, float]], radii: Sequence[float]) -> list[Circle]:
    """Circles at these places, those that overlap moved apart, small ones more than large ones; where
    that is not enough, all are made smaller."""
    import numpy as np

    r, count = np.array(radii), len(radii)
    at = np.array(places) + 1e-7 * np.array(spiral([1.0] * count))  # none at the place of another
    room, weight = r[:, None] + r[None, :], r**2
    share = weight[None, :] / (weight[:, None] + weight[None, :])
    far = np.full((count, count), np.inf)
    for _ in range(STEPS):
        line = at[:, None, :] - at[None, :, :]
        far = np.hypot(line[..., 0], line[..., 1])
        np.fill_diagonal(far, np.inf)
        over = np.where(far < (1 - 1e-4) * room, (1 + GAP) * room - far, 0.0)
        if not over.any():
            break
        at = at + 0.9 * ((line / far[..., None]) * (over * share)[..., None]).sum(axis=1)
    r *= min(1.0, (far / room).min()) if count > 1 else 1.0
    return [Circle(float(x), float(y), float(radius)) for (x, y), radius in zip(at, r, strict=True)]
