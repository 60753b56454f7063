"""References of reports and answers, `[Data: Entities (1, 2); Sources (3, +more)]`: the ids in them, and how
they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

PER_GROUP = 5  # references of one kind in one bracket, then "+more"

_REFERENCES = re.compile(r"(?<! )( *)\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Reports|Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")


def referenced_ids(text: str) -> dict[str, list[str]]:
    """Content ids inside `[Data: Entities (hex); Sources (hex)]`, by group, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for bracket in _REFERENCES.finditer(text):
        for group in _GROUP.finditer(bracket[2]):
            found.setdefault(group[1], {}).update(dict.fromkeys(_HEX.findall(group[2])))
    return {name: list(ids) for name, ids in found.items()}


def render_references(text: str, aliases: Mapping[str, Mapping[str, str]]) -> str:
    """References with aliases instead of content ids: at most 5 per group, then `+more`; unknown
    ids are removed.

    `aliases` maps group name -> content id -> alias. A bracket that loses all its ids goes."""

    def written(match: re.Match[str]) -> str:
        groups, more = [], set()
        for name, ids in _GROUP.findall(match[2]):
            known = aliases.get(name, {})
            groups.append((name, [known[id] for id in _HEX.findall(ids) if id in known]))
            more |= {name} if "+more" in ids else set()
        return reference(groups, more=more)

    return _with_references(text, written)


def reference(groups: Iterable[tuple[str, Iterable[str]]], most: int = PER_GROUP, more: Collection[str] = ()) -> str:
    """`[Data: Entities (1, 2); Sources (3, +more)]`: each id once, at most so many of a group; ""
    without any. `more`: the groups that have others beside these."""
    parts = []
    for name, listed in groups:
        ids = list(dict.fromkeys(listed))
        rest = ["+more"] if len(ids) > most or name in more else []
        if ids:
            parts.append(f"{name} ({', '.join([*ids[:most], *rest])})")
    return f"[Data: {'; '.join(parts)}]" if parts else ""


def _with_references(text: str, written: Callable[[re.Match[str]], str]) -> str:
    """The text with its references as they are `written`; one that is gone takes the blanks before it along."""

    def bracket(match: re.Match[str]) -> str:
        reference = written(match)
        return match[1] + reference if reference else ""

    return _REFERENCES.sub(bracket, text)


SOURCES = 2  # shown of a short reference


def short_references(text: str, aliases: Mapping[str, Mapping[str, str]]) -> str:
    """References as ids of their sources alone, `[t3, t7]`; of entities where they name none."""

    def written(match: re.Match[str]) -> str:
        ids = referenced_ids(match[0])
        for group in ("Sources", "Entities", "Relationships", "Reports"):
            known = aliases.get(group, {})
            found = list(dict.fromkeys(known[id] for id in ids.get(group, ()) if id in known))
            if found:
                return f"[{', '.join(found[:SOURCES])}]"
        return ""

    return _with_references(text, written)
