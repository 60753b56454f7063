"""The communities of a generation for the map: titles, sizes, types, dates, circles.

Takes a snapshot; gives `Topics`, made once for a generation, and the data of the views map and
overview. The last map is kept beside the index (LAST), so that the next one has its places; a server
that only reads keeps it in memory."""

from __future__ import annotations

import datetime
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.explorer import places
from graphrag_mcp.explorer.places import Circle
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
    type: str
    day: int
    circle: Circle = places.WHOLE
    colour: int = 0  # of the top community that it is in


@dataclass(slots=True)
class Topics:
    """All communities of a generation, by id, the largest first; `roots` are those at the top."""

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
    communities = snapshot.rows("communities", "", ["id", "parent", "children", "entity_ids"])
    family = {row["id"]: row for row in communities.drop(["entity_ids"]).to_pylist()}
    rows = [row for row in reports.to_pylist() if row["id"] in family]
    rows.sort(key=lambda row: (-row["n_text_units"], row["n"]))
    units = {row["id"]: row["text_unit_ids"] for row in rows}
    days, types = _days(snapshot, reports), _types(snapshot, communities)
    place = {id: at for at, id in enumerate(units)}
    by_id: dict[str, Topic] = {}
    for row in rows:
        id, kin = row["id"], family[row["id"]]
        children = sorted((one for one in kin["children"] if one in place), key=place.__getitem__)
        own = id, row["n"], row["level"], kin["parent"], one_line(row["title"], TITLE)
        facts = row["n_text_units"], children, types.get(id, ""), days.get(id, 0)
        by_id[id] = Topic(*own, *facts)
    roots = [id for id, one in by_id.items() if one.parent not in by_id]
    found = Topics(by_id, roots)
    _place(snapshot, found, units, keep)
    facts = filters.documents(snapshot).values()
    dated = sorted(fact["date"] for fact in facts if fact["date"])
    if dated:
        found.first_day, found.last_day = dated[0], dated[-1]
    return found


def _place(
    snapshot: Snapshot, found: Topics, units: Mapping[str, Sequence[str]], keep: bool
) -> None:
    """Give the communities their circles and colours, where those of the same text units were on the
    last map."""
    path, by_id = snapshot.folder / LAST, found.by_id
    last = places.read(path)
    before = places.anchors(units, {id: one.level for id, one in by_id.items()}, last)
    children = {"": found.roots, **{id: one.children for id, one in by_id.items()}}
    circles = places.arranged(children, lambda id: by_id[id].size, before)
    colours = _coloured(found.roots, units, last)
    ways = {}
    for id, one in by_id.items():
        way = (*(above.id for above in found.parents(id)), id)
        one.circle, one.colour = circles[id], colours[way[0]]
        if not one.children:
            ways[way] = units[id]
    places.write(path, circles, ways, colours, keep)


def _coloured(
    roots: Sequence[str], units: Mapping[str, Sequence[str]], last: Mapping[str, places.Way]
) -> dict[str, int]:
    """A number for each top community: that of most of its text units on the last map, else a free one."""
    found: dict[str, int] = {}
    for id in roots:
        votes = Counter(int(last[unit][0][3]) for unit in units[id] if unit in last)
        wanted = [*(colour for colour, _ in votes.most_common()), *range(len(roots))]
        found[id] = next(colour for colour in wanted if colour not in found.values())
    return found


def _days(snapshot: Snapshot, reports: pa.Table) -> dict[str, int]:
    """By community the mean day of the documents of its text units."""
    units = snapshot.rows("text_units", "", ["id", "document_id"])
    dates = {id: fact["date"] for id, fact in filters.documents(snapshot).items()}
    day = [_ordinal(dates.get(id, "")) or None for id in units["document_id"].to_pylist()]
    units = units.append_column("day", pa.array(day, pa.int64()))
    means = _members(reports, "text_unit_ids", units).group_by("id").aggregate([("day", "mean")])
    return {row["id"]: int(row["day_mean"]) for row in means.to_pylist() if row["day_mean"]}


def _types(snapshot: Snapshot, communities: pa.Table) -> dict[str, str]:
    """By community: the type that most of its entities have, but for "other"."""
    entities = snapshot.rows("entities", "type != 'other'", ["id", "type"])
    members = _members(communities, "entity_ids", entities)
    counts = members.group_by(["id", "type"]).aggregate([("type", "count")]).to_pylist()
    counts.sort(key=lambda row: (-row["type_count"], row["type"]), reverse=True)
    return {row["id"]: row["type"] for row in counts}  # the last one, of most entities, counts


def _members(rows: pa.Table, column: str, members: pa.Table) -> pa.Table:
    """A row for every member of a row's list `column`: the member's columns, with the row's id."""
    at = pc.index_in(pc.list_flatten(rows[column]), members["id"])
    ids = rows["id"].take(pc.list_parent_indices(rows[column]))
    found = members.take(at).set_column(0, "id", ids)
    return found.filter(pc.is_valid(found[found.column_names[-1]]))


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
        facts |= _rounded(circle.x, circle.y, circle.r)
        facts |= {"type": one.type, "day": one.day, "colour": one.colour}
        listed.append({**brief(one), **facts})
    return listed


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
        return {"communities": marks(found, listed), "entities": [], **whole, **days}
    one = found.numbered(under)
    if one is None:
        return {"communities": [], "entities": []}
    dots = [] if one.children else _dots(snapshot, one)
    return {"communities": marks(found, one.children), "entities": dots}


def _dots(snapshot: Snapshot, one: Topic) -> list[dict[str, Any]]:
    """The entities of a community, those of most relationships in the middle."""
    community = snapshot.by_key("communities", [one.id], "id", ["entity_ids"]).to_pylist()
    ids = community[0]["entity_ids"] if community else []
    rows = snapshot.by_key("entities", ids, "id", NUMBERED).to_pylist()
    rows.sort(key=lambda row: (-row["degree"], row["n"]))
    rows = rows[:DOTS]
    around = places.spiral([1.0] * len(rows))
    size, circle = 0.55 / max(len(rows), 4) ** 0.5, one.circle
    reach = 0.86 * circle.r
    return [
        {
            **named(row),
            "community": one.n,
            **_rounded(circle.x + x * reach, circle.y + y * reach, circle.r * size * 0.5),
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
