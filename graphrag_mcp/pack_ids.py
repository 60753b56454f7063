"""Short forms of where things stand: cursors, aliases of passages, references with aliases for content ids.

Takes offsets, rows and texts; gives strings for an agent to hand back, and reads them again. Part of packing, by which
these are used; knows no budget and no table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from graphrag_mcp.types import content_id

PER_GROUP = 5  # references of one kind in one bracket, then "+more"

_REFERENCES = re.compile(r"\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Reports|Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")


# ---- cursors ------------------------------------------------------------------------------------


def write_cursor(generation: int, query: str, offsets: Iterable[int]) -> str:
    """Where the next page starts, tied to one generation and one question; short, because it is sent three times."""
    listed = list(offsets)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return f"{generation}.{_mark(query)}." + "-".join(map(str, listed))


def read_cursor(cursor: str, generation: int, query: str, count: int) -> tuple[int, ...] | None:
    """The offsets of a cursor; zeros for none; None when it belongs to another generation or question."""
    if not cursor.strip():
        return (0,) * count
    match = re.fullmatch(r"(\d{1,12})\.(\d{6})\.(\d{1,6}(?:-\d{1,6})*)", cursor.strip())
    if match is None or int(match[1]) != generation or match[2] != _mark(query):
        return None
    offsets = tuple(int(part) for part in match[3].split("-"))
    return (*offsets, *(0,) * (count - len(offsets))) if len(offsets) <= count else None


def _mark(query: str) -> str:
    """Six digits (two tokens) that tell one question from another."""
    return f"{int(content_id(query), 16) % 1_000_000:06d}"


# ---- aliases ------------------------------------------------------------------------------------


def passage_alias(row: Mapping[str, Any]) -> str:
    """`t33`, or `t33.2` where the text unit has several passages."""
    return f"t{row['n']}" if row["parts"] <= 1 else f"t{row['n']}.{row['part']}"


def referenced_ids(text: str) -> dict[str, list[str]]:
    """Content ids inside `[Data: Entities (hex, hex); Sources (hex)]`, by group name, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for bracket in _REFERENCES.finditer(text):
        for group in _GROUP.finditer(bracket[1]):
            found.setdefault(group[1], {}).update(dict.fromkeys(_HEX.findall(group[2])))
    return {name: list(ids) for name, ids in found.items()}


def render_references(text: str, aliases: Mapping[str, Mapping[str, str]]) -> str:
    """References with aliases instead of content ids: at most 5 per group, then `+more`; unknown ids are removed.

    `aliases` maps group name -> content id -> alias. A bracket that loses all its ids goes altogether.
    """

    def bracket(match: re.Match[str]) -> str:
        groups = []
        for group in _GROUP.finditer(match[1]):
            known = aliases.get(group[1], {})
            names = list(dict.fromkeys(known[one] for one in _HEX.findall(group[2]) if one in known))
            if names:
                more = ["+more"] if len(names) > PER_GROUP or "+more" in group[2] else []
                groups.append(f"{group[1]} ({', '.join(names[:PER_GROUP] + more)})")
        return f"[Data: {'; '.join(groups)}]" if groups else ""

    return re.sub(r" +([.,;。]|$)", r"\1", _REFERENCES.sub(bracket, text), flags=re.MULTILINE)
