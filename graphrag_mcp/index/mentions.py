"""Candidates per text unit: which names a text unit holds, in which of its sentences.

Takes a text unit's text and where its core begins (the part that no other unit repeats); gives one `Named` per
name. The same text always gives the same rows, so they can be kept, subtracted and recomputed.

Then resolves names: which mean the same thing, and which deserve an entity. Both depend on the mentions of those
names alone, never on totals of the corpus, so an edit can only change the names that it touches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from graphrag_mcp.extract import Fields, mentions
from graphrag_mcp.index.chunk import recent_sentences
from graphrag_mcp.store.edits import Overlay
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.text import composed
from graphrag_mcp.types import content_id


@dataclass(slots=True)
class Named:
    """One name in one text unit. Offsets count from the start of the unit's text; `sentences` is start, end, ..."""

    key: str
    text_unit_id: str
    form: str
    type: str
    strong: bool
    count: int
    sentences: list[int]
    start: int
    end: int
    alias_of: str
    description: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One relationship as a model or an agent stated it; start and end are of the sentence it rests on."""

    source: str  # names, normalised
    target: str
    description: str
    keywords: str
    weight: float
    start: int
    end: int


@dataclass(slots=True)
class UnitNames:
    """A text unit with its names; `text` is kept only while the unit is being indexed.

    `said`: its relationships where a model read it; None: they follow from names that share a sentence.
    """

    id: str
    text: str
    named: list[Named]
    said: list[Said] | None = None


@lru_cache(maxsize=1 << 18)
def entity_id(key: str) -> str:
    return content_id("entity", key)


def collect(unit_id: str, text: str, core: int) -> tuple[UnitNames, list[tuple[int, str]]]:
    """The unit's names grouped, and every single mention as its start in the unit's text and its key."""
    core_text = text[core:]
    spans = recent_sentences(core_text)
    starts = [start for start, _ in spans]
    groups: dict[str, list[Fields]] = {}
    every = mentions(core_text)
    for mention in every:
        if (group := groups.get(mention[0])) is None:
            groups[mention[0]] = [mention]
        else:
            group.append(mention)
    named = [_group(unit_id, found, spans, starts, core) for found in groups.values()]
    return UnitNames(unit_id, text, named), [(mention[4] + core, mention[0]) for mention in every]


def _group(unit_id: str, found: list[Fields], spans: list[tuple[int, int]], starts: list[int], shift: int) -> Named:
    flat: list[int] = []
    for mention in found:
        start, end = spans[max(0, bisect_right(starts, mention[4]) - 1)]
        if not flat or flat[-2] != start + shift:
            flat += (start + shift, end + shift)
    # All mentions of a key in one text have one type, one strength and one alias.
    key, form, kind, strong, start, end, alias_of = found[0]
    if len(found) > 1:
        form = majority(mention[1] for mention in found)
    return Named(key, unit_id, form, kind, strong, len(found), flat, start + shift, end + shift, alias_of)


def majority(values: Iterable[str]) -> str:
    """The most frequent value, the smallest of equals, "" of none."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value)) if counts else ""


def to_table(rows: Sequence[object], table: str = "mentions") -> pa.Table:
    """Rows whose attributes are called like the columns of `table`."""
    schema = TABLES[table]
    return pa.table(
        [pa.array([getattr(row, name) for row in rows], schema.field(name).type) for name in schema.names],
        schema=schema,
    )


def from_table(table: pa.Table) -> list[Named]:
    columns = [table.column(name).to_pylist() for name in TABLES["mentions"].names]
    return [Named(*values) for values in zip(*columns, strict=True)]


def called(key: str, found: Sequence[Named]) -> tuple[str, str, list[str]]:
    """Title, type and aliases by majority, their letters composed; under its own name where it has one."""
    forms: Counter[str] = Counter()
    own: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for row in found:
        form = composed(row.form)
        forms[form] += row.count
        if row.key == key:
            own[form] += row.count
        if row.type not in ("other", "unknown"):
            types[row.type] += row.count
    counted = own or forms
    title = min(counted, key=lambda form: (-counted[form], form))
    aliases = sorted((form for form in forms if form != title), key=lambda form: (-forms[form], form))[:10]
    vague = "unknown" if all(row.type == "unknown" for row in found) else "other"
    return title, min(types, key=lambda kind: (-types[kind], kind)) if types else vague, aliases


# ---- names that mean the same ----------------------------------------------------------------------


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


def group(
    by_key: Mapping[str, Sequence[Named]], edits: Overlay | None = None
) -> tuple[dict[str, list[Named]], dict[str, str]]:
    """Entity name -> all its mentions under any name; and name -> entity name for every name that has an entity.

    An edit decides over what the texts define: which name stands for which, which is hidden, and which has an entity
    although nothing mentions it.
    """
    canonical = canonical_names(by_key)
    edits = edits if edits is not None and edits.log else None
    if edits is not None:
        canonical = {key: edits.stands_for(key, found) for key, found in canonical.items()}
    groups: dict[str, list[Named]] = {}
    for key in sorted(by_key):
        target = canonical[key]
        if target and (by_key[key] or (edits is not None and edits.made(key))):
            groups.setdefault(target, []).extend(by_key[key])
    made = {key for key in groups if edits.made(key)} if edits is not None else set()
    groups = {key: rows for key, rows in groups.items() if key in made or (rows and is_entity(rows))}
    return groups, {key: target for key, target in canonical.items() if target in groups}
