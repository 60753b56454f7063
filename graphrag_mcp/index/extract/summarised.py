"""Names that rules find in a text, corrected by the names and types in the summaries of its document.

A name of a summary is a name wherever the text has it, with the type that the summary gives: what rules
took of its words goes, a longer name that holds it stays. Nothing goes because no summary names it.
A single word of a person's name is that person, unless rules found an organization, a place or the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from graphrag_mcp.index.places import exactly
from graphrag_mcp.names.extract import Fields, without_markup
from graphrag_mcp.text.terms import lists_of, normalise_name


def corrected(
    found: Sequence[Fields], text: str, names: Mapping[str, str]
) -> tuple[list[Fields], Set[str]]:
    """The mentions that rules found in a text, corrected by `names` (name -> type), and the keys of those
    that follow from these."""
    if not names:
        return list(found), frozenset()
    kinds = {normalise_name(name): kind for name, kind in names.items()}
    bearers = _bearers(kinds)
    of_summaries = set(kinds)
    kept: list[Fields] = []
    for key, form, kind, strong, start, end, alias in found:
        if key in kinds:
            kept.append((key, form, kinds[key] or kind, True, start, end, alias))
        elif key in bearers and not alias and kind in ("person", "other"):
            of_summaries.add(key)
            kept.append((key, form, "person", strong, start, end, bearers[key]))
        else:
            kept.append((key, form, kind, strong, start, end, alias))
    aliases = {row[0]: row[6] for row in kept}
    plain = without_markup(text)
    for name in sorted(names, key=lambda name: (-len(name), name)):
        key = normalise_name(name)
        for start, end in exactly(plain, name):
            over = [row for row in kept if row[4] < end and start < row[5]]
            if any(row[0] == key or (row[4] <= start and end <= row[5]) for row in over):
                continue
            place = text[start:end], kinds[key] or "other", True, start, end
            kept = [(key, *place, aliases.get(key, "")), *(row for row in kept if row not in over)]
    return sorted(kept, key=lambda row: (row[4], -row[5])), of_summaries


def _bearers(kinds: Mapping[str, str]) -> dict[str, str]:
    """First and last words of the names of people -> the only one of them who is called so."""
    people = [key for key, kind in kinds.items() if kind == "person" and " " in key]
    parts = lists_of((part, key) for key in people for part in {*key.split(" ")[:: key.count(" ")]})
    return {part: keys[0] for part, keys in parts.items() if len(keys) == 1}
