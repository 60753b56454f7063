"""Another program's communities as one sound hierarchy.

Takes communities by their numbers and the entities that are here; gives rows of communities with content ids, in which
children divide their parent and every entity has one place a level, which number became which of them, and what had to
be put right. A community that lost or gained members on the way is another one: its report speaks of another set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from graphrag_mcp.index.foreign import SourceCommunity
from graphrag_mcp.types import content_id

Row = dict[str, Any]  # id, level, parent (id or ""), members
Said = list[tuple[int, str]]
DEEPEST = 32


def tree_of(
    communities: Sequence[SourceCommunity], ids: Mapping[str, str], there: Collection[str]
) -> tuple[list[Row], dict[int, str], Said]:
    """`ids`: the other index's entity ids as ours; `there`: entities that have a relationship."""
    members = {
        one.number: {ids[id] for id in one.entities if ids.get(id) in there} for one in reversed(communities)
    }  # fmt: skip
    wanted = {number: set(found) for number, found in members.items()}
    parent = _parents(communities, members)
    children: dict[int, list[int]] = defaultdict(list)
    for number in sorted(members):
        children[parent[number]].append(number)
    rows: list[Row] = []
    number_of: dict[int, str] = {}
    rests = doubled = 0
    # (numbers of one level below one parent, its id, level, the members that they divide; None: all)
    todo: list[tuple[list[int], str, int, set[str] | None]] = [(children[-1], "", 0, None)]
    while todo:
        numbers, above, level, whole = todo.pop()
        taken: set[str] = set()
        for number in numbers:
            mine = (members[number] if whole is None else members[number] & whole) - taken
            doubled += len(members[number] & taken)
            taken |= mine
            if not mine:
                continue
            row = _row(mine, level, above)
            rows.append(row)
            if mine == wanted[number]:
                number_of[number] = row["id"]
            if children[number] and level + 1 < DEEPEST:
                todo.append((children[number], row["id"], level + 1, mine))
        if whole is not None and taken and whole - taken:
            rows.append(_row(whole - taken, level, above))
            rests += 1
    lost = len(communities) - len(number_of)
    said = [
        (lost, "communities have no two linked entities here, or not the ones they had: they are computed anew"),
        (doubled, "entities are in two communities of one level (an update was appended): the first holds"),
        (rests, "communities have entities that are in none of their children: these form one of their own"),
    ]
    return sorted(rows, key=lambda row: (row["level"], row["id"])), number_of, said


def _row(members: set[str], level: int, parent: str) -> Row:
    ordered = sorted(members)
    return {"id": content_id("community", str(level), *ordered), "level": level, "parent": parent, "members": ordered}


def _parents(communities: Sequence[SourceCommunity], members: Mapping[int, set[str]]) -> dict[int, int]:
    """The number of each one's parent, -1 for the top; where the other index names none, the one that holds it."""
    levels = {one.number: one.level for one in communities}
    found: dict[int, int] = {}
    for one in communities:
        parent = one.parent
        if parent is None:
            above = [number for number, level in levels.items() if level == one.level - 1
                     and members[one.number] and members[one.number] <= members[number]]  # fmt: skip
            parent = min(above, default=-1)
        found[one.number] = parent if parent in levels and parent != one.number else -1
    for number in found:  # a circle has no top: it is opened where it is met
        seen, at = {number}, found[number]
        while at != -1:
            if at in seen:
                found[number] = -1
                break
            seen.add(at)
            at = found[at]
    return found
