"""Places of communities on the map: nested circles that stay where they were when the index
changes.

An edit of one document can change the division of all. So a place belongs to text units: a community
goes to the median of the places that its text units had on the last map. Without a last map, siblings
begin on a spiral. Circles that overlap are then moved apart. All places are in the unit circle, which
is the whole map."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median
from typing import Any

FILLED = 0.6  # of the area of a circle, by the circles inside of it, before they are moved apart
# Room around each circle of a new map, and around all circles inside of one, so that the others need
# not move when one of them grows; and the least that these reach before they are drawn larger.
SLACK, LEAST = 1.06, 0.7
GAP = 0.01  # of the radii of circles that had to be moved, left free between them
STEPS = 100  # of moving circles apart

# Of a text unit: [x, y, radius, colour] of its communities on the map, the coarsest first.
Way = list[list[float]]


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    r: float

    def inside(self, outer: Circle) -> Circle:
        """This circle of the map in the coordinates of a circle around it."""
        return Circle((self.x - outer.x) / outer.r, (self.y - outer.y) / outer.r, self.r / outer.r)

    def within(self, outer: Circle) -> Circle:
        """The reverse: a circle in the coordinates of `outer` as a circle of the map."""
        return Circle(outer.x + self.x * outer.r, outer.y + self.y * outer.r, self.r * outer.r)


WHOLE = Circle(0.0, 0.0, 1.0)


def arranged(
    children: Mapping[str, Sequence[str]],
    size: Callable[[str], int],
    last: Mapping[str, Circle] | None = None,
) -> dict[str, Circle]:
    """The circles of all communities: beside each other the area shows the size. `children` gives
    the ids below an id in a stable order, "" stands above the top ones; `last` are the places that
    communities had before."""
    last = {"": WHOLE, **(last or {})}
    found, waiting = {"": WHOLE}, [""]
    while waiting:
        id = waiting.pop()
        if below := children.get(id, ()):
            waiting += below
            radii = [math.sqrt(max(size(one), 1)) for one in below]
            before = [
                last[one].inside(last[id]) if one in last and id in last else None for one in below
            ]
            placed = zip(below, _placed(radii, before), strict=True)
            found |= {one: circle.within(found[id]) for one, circle in placed}
    del found[""]
    return found


def _placed(radii: Sequence[float], before: Sequence[Circle | None]) -> list[Circle]:
    """Circles whose radii are as these to each other, in the unit circle: where and as large as they
    were before, moved apart where they overlap."""
    known = [one.r / r for one, r in zip(before, radii, strict=True) if one is not None]
    areas = [r * r for r in radii]
    scale = median(known) if known else math.sqrt(FILLED / sum(areas))
    fresh = spiral(areas)
    places = [(one.x, one.y) if one else point for one, point in zip(before, fresh, strict=True)]
    found = _apart(places, [r * scale for r in radii])
    reach = max(math.hypot(one.x, one.y) + one.r for one in found)
    fit = 1.0 if LEAST <= reach <= 1.0 else 1 / (reach * SLACK)
    radius = fit if known else fit / SLACK
    return [Circle(one.x * fit, one.y * fit, one.r * radius) for one in found]


def spiral(areas: Sequence[float]) -> list[tuple[float, float]]:
    """Points of the unit circle in a spiral from its middle (Vogel 1979), each in the middle of its
    share of the area, the largest first."""
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
    for _ in range(STEPS):
        line = at[:, None, :] - at[None, :, :]
        far = np.hypot(line[..., 0], line[..., 1])
        np.fill_diagonal(far, np.inf)
        over = np.where(far < (1 - 1e-4) * room, (1 + GAP) * room - far, 0.0)
        if not over.any():
            break
        at = at + 0.9 * ((line / far[..., None]) * (over * share)[..., None]).sum(axis=1)
    r *= min(1.0, (far / room).min()) if count > 1 else 1.0
    return [Circle(float(x), float(y), float(one)) for (x, y), one in zip(at, r, strict=True)]


# ---- the last map -------------------------------------------------------------------------------------


def anchors(
    units_of: Mapping[str, Sequence[str]], level: Mapping[str, int], last: Mapping[str, Way]
) -> dict[str, Circle]:
    """Where communities were: by id the median of the places of their text units at their level."""
    found = {}
    for id, units in units_of.items():
        ways = [last[unit] for unit in units if unit in last]
        known = [way[min(level[id], len(way) - 1)] for way in ways if way]
        if known:
            found[id] = Circle(*(float(median(one[part] for one in known)) for part in range(3)))
    return found


_unwritten: dict[Path, bytes] = {}  # maps of servers that only read


def read(path: Path) -> dict[str, Way]:
    """The ways of text units on the last map; {} where there is none."""
    try:
        stored = json.loads(_unwritten.get(path) or path.read_bytes())
        whole = float(stored["radius"])
        found = {}
        for topic in stored["topics"]:
            way = [[x / whole, y / whole, r / whole, colour] for x, y, r, colour in topic["way"]]
            found |= dict.fromkeys(topic["units"], way)
        return found if all(found.values()) else {}
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return {}


def write(
    path: Path,
    circles: Mapping[str, Circle],
    ways: Mapping[tuple[str, ...], Sequence[str]],
    colours: Mapping[str, int],
    keep: bool = True,
) -> None:
    """Keep a map for the next one. `ways`: communities from the top to one without children -> its
    text units; `colours` of those at the top. Where nothing can or may be written it is kept in
    memory."""
    topics: list[dict[str, Any]] = []
    for way, units in ways.items():
        places = [[round(one, 9) for one in astuple(circles[id])] for id in way]
        topics.append({"way": [[*one, colours[way[0]]] for one in places], "units": [*units]})
    text = json.dumps({"radius": 1.0, "topics": topics}, separators=(",", ":")).encode()
    _unwritten[path] = text
    if keep:
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with suppress(OSError):
            fresh.write_bytes(text)
            fresh.replace(path)
            del _unwritten[path]
