"""Which names mean the same thing, and which of them deserve an entity.

Takes the mentions of some names; gives for each name the name it stands for (itself, or the expansion that the
texts define for an acronym) and the groups that are entities. Both depend on the mentions of those names alone,
never on totals of the corpus, so an edit can only change the names that it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from graphrag_mcp.index.mentions import Named


def canonical_names(by_key: Mapping[str, Sequence[Named]]) -> dict[str, str]:
    """Name -> the name it stands for. An acronym defined in several ways follows the most frequent definition.

    Only one step: an expansion that is itself defined as an alias is not followed, so there are no chains.
    """
    definitions: dict[str, Counter[str]] = {}
    for key, rows in by_key.items():
        for row in rows:
            if row.alias_of and row.alias_of != key:
                definitions.setdefault(key, Counter())[row.alias_of] += row.count
    canonical = {key: key for key in by_key}
    for key, targets in definitions.items():
        usable = [target for target in targets if by_key.get(target) and target not in definitions]
        if usable:
            canonical[key] = min(usable, key=lambda target: (-targets[target], target))
    return canonical


def is_entity(rows: Sequence[Named]) -> bool:
    """A proper name at its first mention; a common noun phrase only when a second text unit uses it too."""
    if any(row.strong for row in rows):
        return True
    first = rows[0].text_unit_id
    return any(row.text_unit_id != first for row in rows)


def group(by_key: Mapping[str, Sequence[Named]]) -> tuple[dict[str, list[Named]], dict[str, str]]:
    """Entity name -> all its mentions under any name; and name -> entity name for every name that has an entity."""
    canonical = canonical_names(by_key)
    groups: dict[str, list[Named]] = {}
    for key in sorted(by_key):
        if by_key[key]:
            groups.setdefault(canonical[key], []).extend(by_key[key])
    groups = {key: rows for key, rows in groups.items() if is_entity(rows)}
    return groups, {key: target for key, target in canonical.items() if target in groups}
