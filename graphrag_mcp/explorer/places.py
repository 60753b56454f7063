"""Places of communities on the map: nested circles, the same in every process.

Siblings are packed along a front chain (Wang et al. 2006, "Visualization of large hierarchical data by
circle packing"), in the order of a key that survives edits, with radii that change in steps of a factor
of 1.4, so that an edit leaves the circles of other communities where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

GAP = 0.06  # of a circle's radius, left free around it
STEPS = 2.0  # radii per doubling of a size


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    r: float


def nested(
    children: Mapping[str, Sequence[str]], size: Callable[[str], int], root: str = ""
) -> dict[str, Circle]:
    """Circles of all communities inside the unit circle around 0, 0.

    `children` gives the ids below an id in their stable order; `root` stands above the top ones.
    `size` is asked for communities without children.
    """
    radius: dict[str, float] = {}
    inside: dict[str, list[Circle]] = {}
    for id in _bottom_up(children, root):
        below = children.get(id, ())
        if not below:
            radius[id] = 2.0 ** (round(STEPS * math.log2(max(size(id), 1))) / STEPS / 2)
            continue
        packed = pack([radius[one] * (1 + GAP) for one in below])
        centre = _enclosing(packed)
        inside[id] = [Circle(one.x - centre.x, one.y - centre.y, one.r) for one in packed]
        radius[id] = centre.r
    found = {root: Circle(0.0, 0.0, 1.0)}
    for id in reversed(_bottom_up(children, root)):
        outer = found[id]
        scale = outer.r / radius[id]
        for one, circle in zip(children.get(id, ()), inside.get(id, ()), strict=True):
            found[one] = Circle(
                outer.x + circle.x * scale,
                outer.y + circle.y * scale,
                circle.r * scale / (1 + GAP),
            )
    del found[root]
    return found


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
    return Circle(
        a.x + (along * dx + across * dy) / apart, a.y + (along * dy - across * dx) / apart, r
    )


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


def _bottom_up(children: Mapping[str, Sequence[str]], root: str) -> list[str]:
    order, stack = [], [root]
    while stack:
        id = stack.pop()
        order.append(id)
        stack.extend(children.get(id, ()))
    return order[::-1]
