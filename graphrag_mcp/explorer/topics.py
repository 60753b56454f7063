"""The communities of a generation for the map: titles, sizes, types, dates, circles.

Takes a snapshot; gives `Topics`, made once for a generation, and the data of the views map and
overview. The last map is kept beside the index (LAST), so that the next one has its places; a server
that only reads keeps it in memory.
"""

from __future__ import annotations

import datetime
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.explorer import places
from graphrag_mcp.explorer.places import Circle, sunflower
from graphrag_mcp.packing.budget import one_line, render_references
from graphrag_mcp.query import context, entities, filters
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import dates

LAST = "places.json"  # of a corpus folder: the last map that was drawn
TITLE = 160  # characters of a title in lists
FIRST = 400  # communities of the first answer, level by level
DOTS = 60  # entities shown in a community without children
MAIN = 5  # communities that the overview describes
NUMBERED = ["id", "n", "title", "type", "degree"]

Row = Mapping[str, Any]


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
    circle: Circle = Circle(0.0, 0.0, 0.0)
    type: str = ""
    day: int = 0
    colour: int = 0  # of the top community that it is in


@dataclass(slots=True)
class Topics:
    """All communities of a generation, by id; `roots` in the order of their places."""

    by_id: dict[str, Topic]
    roots: list[str]
    first_day: str = ""
    last_day: str = ""

    def numbered(self, n: int) -> Topic | None:
        return next((one for one in self.by_id.values() if one.n == n), None)

    def parents(self, id: str) -> list[Topic]:
        """Those above it, the coarsest first."""
        found: list[Topic] = []
        while (one := self.by_id.get(id)) is not None and one.parent in self.by_id:
            id = one.parent
            found.insert(0, self.by_id[id])
        return found


_known: WeakKeyDictionary[Snapshot, Topics] = WeakKeyDictionary()
_lock = threading.Lock()


def topics(snapshot: Snapshot, keep: bool = True) -> Topics:
    """The communities with their places; computed at the first question of a generation. With `keep`
    the map is written for the next one."""
    with _lock:
        if snapshot not in _known:
            _known[snapshot] = _made(snapshot, keep)
        return _known[snapshot]


def _made(snapshot: Snapshot, keep: bool) -> Topics:
    names = ["id", "n", "level", "title", "n_text_units", "text_unit_ids"]
    reports = snapshot.rows("reports", "", names)
    families = snapshot.rows("communities", "", ["id", "parent", "children"]).to_pylist()
    family = {row["id"]: row for row in families}
    by_id: dict[str, Topic] = {}
    for row in reports.select(names[:5]).to_pylist():
        kin = family.get(row["id"])
        if kin is not None:
            title = one_line(row["title"], TITLE)
            own = (row["id"], row["n"], row["level"], kin["parent"], title)
            by_id[row["id"]] = Topic(*own, row["n_text_units"], kin["children"])
    first, days = _units(snapshot, reports)
    order = {id: (first.get(id, 1 << 60), one.n) for id, one in by_id.items()}
    for id, one in by_id.items():
        one.children = sorted((c for c in one.children if c in by_id), key=order.__getitem__)
        one.day = days.get(id, 0)
    tops = (id for id, one in by_id.items() if one.parent not in by_id)
    roots = sorted(tops, key=order.__getitem__)
    held = dict(zip(reports["id"].to_pylist(), reports["text_unit_ids"].to_pylist(), strict=True))
    made = _placed(snapshot, by_id, roots, held, keep)
    types = _types(snapshot)
    for id, one in by_id.items():
        one.circle, one.type = made.unit(id), types.get(id, "")
    facts = filters.documents(snapshot).values()
    dated = sorted(fact["date"] for fact in facts if fact["date"])
    return Topics(by_id, roots, *((dated[0], dated[-1]) if dated else ("", "")))


def _placed(
    snapshot: Snapshot,
    by_id: Mapping[str, Topic],
    roots: Sequence[str],
    held: Mapping[str, Sequence[str]],
    keep: bool,
) -> places.Map:
    """The circles of the communities, where those of the same text units were on the last map."""
    path = snapshot.folder / LAST
    last, radius = places.read(path)
    before = places.anchors(held, {id: one.level for id, one in by_id.items()}, last)
    before |= {"": Circle(0.0, 0.0, radius)} if radius else {}
    children = {"": roots, **{id: one.children for id, one in by_id.items()}}
    made = places.arranged(children, lambda id: by_id[id].size, before)
    ways = {}
    for id, one in by_id.items():
        if not one.children:
            above = [id]
            while (parent := by_id[above[0]].parent) in by_id:
                above.insert(0, parent)
            ways[tuple(above)] = held[id]
    colours = _coloured(sorted(roots, key=lambda id: (-by_id[id].size, id)), held, last)
    for way in ways:
        for id in way:
            by_id[id].colour = colours[way[0]]
    places.write(path, made, ways, colours, keep)
    return made


def _coloured(
    roots: Sequence[str], held: Mapping[str, Sequence[str]], last: Mapping[str, places.Way]
) -> dict[str, int]:
    """A number for each top community: that of most of its text units on the last map, else a free one."""
    found: dict[str, int] = {}
    for id in roots:
        votes = Counter(int(last[unit][0][3]) for unit in held[id] if unit in last)
        free = (number for number in range(len(roots)) if number not in found.values())
        asked = (colour for colour, _ in votes.most_common() if colour not in found.values())
        found[id] = next(asked, -1)
        if found[id] < 0:
            found[id] = next(free)
    return found


def _units(snapshot: Snapshot, reports: pa.Table) -> tuple[dict[str, int], dict[str, int]]:
    """By community: the smallest number of its text units, and the mean day of their documents."""
    units = snapshot.rows("text_units", "", ["id", "n", "document_id"])
    dated = filters.documents(snapshot)
    day = {id: _ordinal(fact["date"]) for id, fact in dated.items() if fact["date"]}
    days = pa.array([day.get(id) for id in units["document_id"].to_pylist()], pa.int64())
    units = units.append_column("day", days)
    flat = _held(reports, "text_unit_ids", units.select(["id", "n", "day"]))
    found = flat.group_by("id").aggregate([("n", "min"), ("day", "mean")]).to_pylist()
    first = {row["id"]: row["n_min"] for row in found if row["n_min"] is not None}
    return first, {row["id"]: int(row["day_mean"]) for row in found if row["day_mean"]}


def _held(rows: pa.Table, column: str, members: pa.Table) -> pa.Table:
    """A row for every member of a row's list `column`: the member's columns, with the row's id."""
    at = pc.index_in(pc.list_flatten(rows[column]), members["id"])
    ids = rows["id"].take(pc.list_parent_indices(rows[column]))
    return members.take(at).set_column(members.column_names.index("id"), "id", ids)


def _types(snapshot: Snapshot) -> dict[str, str]:
    """By community: the type that most of its entities have, but for "other"."""
    rows = snapshot.rows("communities", "", ["id", "entity_ids"])
    entities = snapshot.rows("entities", "", ["id", "type"])
    flat = _held(rows, "entity_ids", entities)
    flat = flat.filter(pc.not_equal(flat["type"], "other"))
    counts: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in flat.group_by(["id", "type"]).aggregate([("type", "count")]).to_pylist():
        counts[row["id"]].append((-row["type_count"], row["type"] or ""))
    return {id: min(some)[1] for id, some in counts.items()}


def _ordinal(date: str) -> int:
    """The first day of a date as a number; 0 for none."""
    return datetime.date.fromisoformat(dates.days(date)[0]).toordinal() if date else 0


def brief(one: Topic) -> dict[str, Any]:
    """A community in a list."""
    return {"n": one.n, "title": one.title, "size": one.size}


def marks(found: Topics, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Communities as marks of the map; places in the unit circle around 0, 0."""
    listed = []
    for one in (found.by_id[id] for id in ids):
        above, circle = found.by_id.get(one.parent), one.circle
        facts = {"parent": above.n if above else 0, "children": len(one.children)}
        facts |= _place(circle.x, circle.y, circle.r)
        facts |= {"type": one.type, "day": one.day, "colour": one.colour}
        listed.append({**brief(one), **facts})
    return listed


def _place(x: float, y: float, r: float) -> dict[str, float]:
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
        return {"communities": marks(found, listed), "entities": [], **whole, **days}
    one = found.numbered(under)
    if one is None:
        return {"communities": [], "entities": []}
    dots = [] if one.children else _dots(snapshot, one)
    return {"communities": marks(found, one.children), "entities": dots}


def _dots(snapshot: Snapshot, one: Topic) -> list[dict[str, Any]]:
    """The entities of a community, those of most relationships in the middle."""
    held = snapshot.by_key("communities", [one.id], "id", ["entity_ids"]).to_pylist()
    ids = held[0]["entity_ids"] if held else []
    rows = snapshot.by_key("entities", ids, "id", NUMBERED).to_pylist()
    rows.sort(key=lambda row: (-row["degree"], row["n"]))
    rows = rows[:DOTS]
    around = sunflower(len(rows)) if rows else []
    size, circle = 0.55 / max(len(rows), 4) ** 0.5, one.circle
    reach = 0.86 * circle.r
    return [
        {
            **named(row),
            "community": one.n,
            **_place(circle.x + x * reach, circle.y + y * reach, circle.r * size * 0.5),
        }
        for row, (x, y) in zip(rows, around, strict=True)
    ]


def named(row: Row) -> dict[str, Any]:
    """An entity in a list."""
    return {"n": row["n"], "title": one_line(row["title"], TITLE), "type": row["type"]}


def overview(snapshot: Snapshot, corpora: Sequence[str]) -> dict[str, Any]:
    """What the corpus is: counts, its largest communities with their summaries, central names."""
    found, counters = topics(snapshot), snapshot.manifest.counters
    kinds = ("documents", "passages", "entities", "relationships", "communities")
    tops = [found.by_id[id] for id in found.roots]
    largest = sorted(tops, key=lambda one: (-one.size, one.n))[:MAIN]
    rows = snapshot.served("reports", [one.id for one in largest])
    texts = {row["id"]: render_references(row["summary"], {}) for row in rows}
    summary = {id: context.first_sentence(text, 280) for id, text in texts.items()}
    central = snapshot.served("entities", entities.central(snapshot, 20)[:12])
    return {
        "title": snapshot.manifest.corpus,
        "corpora": list(corpora),
        "counts": {kind: counters.get(kind, 0) for kind in kinds},
        "from": found.first_day,
        "to": found.last_day,
        "main": [{**brief(one), "summary": summary.get(one.id, "")} for one in largest],
        "central": [named(row) for row in central],
        "stale": "communities" in snapshot.manifest.stale,
    }
