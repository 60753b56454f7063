"""Places of communities on the map: nested circles that stay where they were when the index
changes.

An edit of one document can change the division of all. So a place belongs to text units: a community
goes to the median of the places that its text units had on the last map, and circles that then
overlap are moved apart. Without a last map, siblings are packed along a front chain (Wang et al.
2006, "Visualization of large hierarchical data by circle packing").
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GAP = 0.06  # of a circle's radius, left free around it
LOOSE = 1.6  # times the radius of a tight packing, from which circles are packed again
LEAST = 0.01  # the gap that is left between circles that had to be moved
# Room around the circles inside of one, so that it need not change when one of them grows.
SLACK = 1.06
STEPS = 200  # of moving circles apart
DIGITS = 6
CORPORA = 8  # of which a map is kept in memory: some 3 MB for 100,000 entities

# Of a text unit: [x, y, radius, colour] of its communities on the map, the coarsest first.
Way = list[list[float]]


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    r: float


@dataclass(slots=True)
class Map:
    """Circles by community in map units: a community of n text units without children has the radius
    sqrt(n). `radius`: of the circle around all of them, whose centre is 0, 0.
    """

    circles: dict[str, Circle]
    radius: float = 1.0

    def unit(self, id: str) -> Circle:
        """A circle in the unit circle."""
        one = self.circles[id]
        return Circle(one.x / self.radius, one.y / self.radius, one.r / self.radius)


def arranged(
    children: Mapping[str, Sequence[str]],
    size: Callable[[str], int],
    last: Mapping[str, Circle] | None = None,
    root: str = "",
) -> Map:
    """The circles of all communities. `children` gives the ids below an id in a stable order, `root`
    stands above the top ones; `last` are the places that communities, and the root, had before.
    """
    last = last or {}
    found = {root: Circle(0.0, 0.0, 0.0)}
    waiting = [root]
    while waiting:
        id = waiting.pop()
        below, outer = children.get(id, ()), found[id]
        if not below:
            continue
        waiting += below
        radii = [math.sqrt(max(size(one), 1)) for one in below]
        before = [last.get(one) for one in below] if id in last else []
        known = [one.r / r for one, r in zip(before, radii, strict=bool(before)) if one is not None]
        scale = sorted(known)[len(known) // 2] if known else 0.0
        placed = _inside(radii, before, last.get(id), scale)
        reach = max(math.hypot(one.x, one.y) + one.r for one in placed)
        if id == root:
            room = last[root].r if root in last else 0.0
            r = room if reach <= room <= LOOSE * reach else reach * SLACK
            outer = found[root] = Circle(0.0, 0.0, r)
            scale = 1.0
        elif not 0.8 * outer.r <= reach * scale <= outer.r:
            scale = outer.r / (reach * SLACK)
        for one, circle in zip(below, placed, strict=True):
            x = round(outer.x + circle.x * scale, DIGITS)
            y = round(outer.y + circle.y * scale, DIGITS)
            found[one] = Circle(x, y, circle.r * scale)
    whole = found.pop(root)
    return Map(found, whole.r or 1.0)


def _inside(
    radii: Sequence[float], before: Sequence[Circle | None], outer: Circle | None, scale: float
) -> list[Circle]:
    """Circles of these radii around 0, 0: where they were in `outer`, drawn at `scale`, moved apart
    where they overlap; packed where nothing is known or too much room would be left."""
    tight = pack([r * (1 + GAP) for r in radii])
    middle = _enclosing(tight)
    pairs = zip(tight, radii, strict=True)
    packed = [Circle(one.x - middle.x, one.y - middle.y, r) for one, r in pairs]
    if outer is None or not scale:
        return packed
    placed = list(packed)
    for at, (one, r) in enumerate(zip(before, radii, strict=True)):
        if one is not None:
            placed[at] = Circle((one.x - outer.x) / scale, (one.y - outer.y) / scale, r)
    placed = _apart(placed)
    reach = max(math.hypot(one.x, one.y) + one.r for one in placed)
    return placed if reach <= LOOSE * middle.r else packed


def _apart(circles: Sequence[Circle]) -> list[Circle]:
    """The same circles, those that overlap moved apart, small ones more than large ones."""
    import numpy as np

    at = np.array([[one.x, one.y] for one in circles])
    r = np.array([one.r for one in circles])
    room, weight = r[:, None] + r[None, :], r**2
    share = weight[None, :] / (weight[:, None] + weight[None, :])
    # Two at the same place part in a direction of their own.
    turn = np.arange(len(circles)) * 2.399963
    nudge = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    for _ in range(STEPS):
        line = at[:, None, :] - at[None, :, :]
        far = np.hypot(line[..., 0], line[..., 1])
        over = np.where(room - far > 1e-4 * room, room * (1 + LEAST) - far, 0.0)
        np.fill_diagonal(over, 0.0)
        if not over.any():
            break
        same = far < 1e-9
        line = np.where(same[..., None], nudge[:, None, :] - nudge[None, :, :], line)
        far = np.where(same, np.maximum(np.hypot(line[..., 0], line[..., 1]), 1e-9), far)
        push = (line / far[..., None]) * (over * share)[..., None]
        at = at + 0.9 * push.sum(axis=1)
    return [Circle(float(x), float(y), one.r) for (x, y), one in zip(at, circles, strict=True)]


# ---- the last map -------------------------------------------------------------------------------------


def anchors(
    held: Mapping[str, Sequence[str]], level: Mapping[str, int], last: Mapping[str, Way]
) -> dict[str, Circle]:
    """Where communities were: by id the median of the places of their text units at their level."""
    from statistics import median

    found = {}
    for id, units in held.items():
        ways = [last[unit] for unit in units if unit in last]
        known = [way[min(level[id], len(way) - 1)] for way in ways if way]
        if known:
            found[id] = Circle(*(float(median(one[part] for one in known)) for part in range(3)))
    return found


_unwritten: dict[Path, tuple[int, bytes]] = {}  # time of the file when it was not written, the map


def read(path: Path) -> tuple[dict[str, Way], float]:
    """The ways of text units on the last map and its radius; ({}, 0) where there is none. A map that
    could not be written is the last one until another process has written one.
    """
    try:
        at, text = _unwritten.get(path, (-1, b""))
        held = json.loads(text if text and at == _written(path) else path.read_bytes())
        ways = {unit: one["way"] for one in held["topics"] for unit in one["units"]}
        if not all(way and all(len(place) == 4 for place in way) for way in ways.values()):
            return {}, 0.0
        return ways, float(held["radius"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}, 0.0


def write(
    path: Path,
    made: Map,
    ways: Mapping[tuple[str, ...], Sequence[str]],
    colours: Mapping[str, int],
    keep: bool = True,
) -> None:
    """Keep a map for the next one. `ways`: communities from the top to one without children -> its
    text units; `colours` of those at the top. Where nothing can or may be written it is kept in
    memory.
    """
    topics: list[dict[str, Any]] = []
    for way, units in ways.items():
        circles = [made.circles[id] for id in way]
        places = [[one.x, one.y, round(one.r, DIGITS), colours[way[0]]] for one in circles]
        topics.append({"way": places, "units": [*units]})
    text = json.dumps({"radius": made.radius, "topics": topics}, separators=(",", ":")).encode()
    _unwritten.pop(path, None)
    if keep:
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with suppress(OSError):
            fresh.write_bytes(text)
            fresh.replace(path)
            return
    while len(_unwritten) >= CORPORA:
        del _unwritten[next(iter(_unwritten))]
    _unwritten[path] = (_written(path), text)


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# ---- packing ------------------------------------------------------------------------------------------


def sunflower(count: int) -> list[tuple[float, float]]:
    """Evenly spread points of the unit circle, the first in its middle (Vogel 1979)."""
    golden = math.pi * (3 - math.sqrt(5))
    spread = [(0.9 * math.sqrt((at + 0.5) / count), at * golden) for at in range(count)]
    return [(far * math.cos(turn), far * math.sin(turn)) for far, turn in spread]


def pack(radii: Sequence[float]) -> list[Circle]:
    """Circles side by side without overlap, spiralling outwards from the first ones."""
    if not radii:
        return []
    placed = [Circle(0.0, 0.0, radii[0])]
    if len(radii) > 1:
        placed.append(Circle(radii[0] + radii[1], 0.0, radii[1]))
    if len(radii) > 2:
        placed.append(_touching(placed[1], placed[0], radii[2]))
    after = {0: 1, 1: 2, 2: 0}
    before = {1: 0, 2: 1, 0: 2}
    nearest = 0
    at = 3
    while at < len(radii):
        a, b = nearest, after[nearest]
        circle = _touching(placed[a], placed[b], radii[at])
        hit = _overlapped(circle, placed, a, b, after, before)
        if hit is not None:
            a, b = hit
            after[a], before[b] = b, a
            nearest = a
            continue
        placed.append(circle)
        after[a], before[at], after[at], before[b] = at, a, b, at
        nearest = _closest(placed, at, after)
        at += 1
    return placed


def _touching(a: Circle, b: Circle, r: float) -> Circle:
    """The circle of radius r that touches both, on the outer side of the front from a to b."""
    dx, dy = b.x - a.x, b.y - a.y
    apart = math.hypot(dx, dy)
    far_a, far_b = a.r + r, b.r + r
    along = (apart**2 + far_a**2 - far_b**2) / (2 * apart)
    across = math.sqrt(max(far_a**2 - along**2, 0.0))
    x = a.x + (along * dx + across * dy) / apart
    return Circle(x, a.y + (along * dy - across * dx) / apart, r)


def _overlapped(
    circle: Circle,
    placed: Sequence[Circle],
    a: int,
    b: int,
    after: Mapping[int, int],
    before: Mapping[int, int],
) -> tuple[int, int] | None:
    """The shorter front, where a circle of the chain stands in the way; None where there is room."""
    ahead, behind = after[b], before[a]
    way_ahead, way_behind = placed[b].r, placed[a].r
    while ahead != after[behind]:
        if way_ahead <= way_behind:
            if _meet(placed[ahead], circle):
                return a, ahead
            way_ahead += placed[ahead].r
            ahead = after[ahead]
        else:
            if _meet(placed[behind], circle):
                return behind, b
            way_behind += placed[behind].r
            behind = before[behind]
    return None


def _meet(one: Circle, other: Circle) -> bool:
    room = one.r + other.r - 1e-6 * max(one.r, other.r)
    return (one.x - other.x) ** 2 + (one.y - other.y) ** 2 < room * room


def _closest(placed: Sequence[Circle], start: int, after: Mapping[int, int]) -> int:
    """The link of the front whose middle is nearest to the origin."""

    def score(at: int) -> float:
        a, b = placed[at], placed[after[at]]
        whole = a.r + b.r
        x, y = (a.x * b.r + b.x * a.r) / whole, (a.y * b.r + b.y * a.r) / whole
        return x * x + y * y

    best, least, at = start, score(start), after[start]
    while at != start:
        if (now := score(at)) < least:
            best, least = at, now
        at = after[at]
    return best


def _enclosing(circles: Sequence[Circle]) -> Circle:
    """A small circle around all of them: its centre moves towards what sticks out (Badoiu, Clarkson 2003)."""
    x = sum(one.x * one.r**2 for one in circles) / sum(one.r**2 for one in circles)
    y = sum(one.y * one.r**2 for one in circles) / sum(one.r**2 for one in circles)
    for turn in range(1, 60):
        far = max(circles, key=lambda one: math.hypot(one.x - x, one.y - y) + one.r)
        apart = math.hypot(far.x - x, far.y - y)
        if apart > 0:
            step = 1 / (turn + 1) * (1 + far.r / apart)
            x, y = x + (far.x - x) * min(step, 1.0), y + (far.y - y) * min(step, 1.0)
    return Circle(x, y, max(math.hypot(one.x - x, one.y - y) + one.r for one in circles))
