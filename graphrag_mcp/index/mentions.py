"""Candidates per text unit: which names a text unit holds, in which of its sentences.

Takes a text unit's text and where its core begins (the part that no other unit repeats); gives one `Named` per
name. Knows nothing of the rest of the corpus: the same text always gives the same rows, so they can be kept,
subtracted and recomputed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from graphrag_mcp.extract import extract
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.text import sentences
from graphrag_mcp.types import Mention, content_id


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


@dataclass(slots=True)
class UnitNames:
    """A text unit with its names; `text` is kept only while the unit is being indexed."""

    id: str
    text: str
    named: list[Named]


@lru_cache(maxsize=1 << 18)
def entity_id(key: str) -> str:
    return content_id("entity", key)


def collect(unit_id: str, text: str, core: int) -> tuple[UnitNames, list[Mention]]:
    """The unit's names grouped, and every single mention with offsets in the unit's text."""
    shift = core
    core_text = text[core:]
    spans = sentences(core_text)
    starts = [start for start, _ in spans]
    groups: dict[str, list[Mention]] = {}
    every: list[Mention] = []
    for mention in extract(core_text):
        if shift:
            mention = Mention(
                mention.key, mention.form, mention.type, mention.strong,
                mention.start + shift, mention.end + shift, mention.alias_of,
            )  # fmt: skip
        groups.setdefault(mention.key, []).append(mention)
        every.append(mention)
    named = [_group(key, unit_id, found, spans, starts, shift) for key, found in groups.items()]
    return UnitNames(unit_id, text, named), every


def _group(
    key: str, unit_id: str, found: list[Mention], spans: list[tuple[int, int]], starts: list[int], shift: int
) -> Named:
    flat: list[int] = []
    for mention in found:
        at = max(0, bisect_right(starts, mention.start - shift) - 1)
        start, end = spans[at][0] + shift, spans[at][1] + shift
        if not flat or flat[-2] != start:
            flat += (start, end)
    first = found[0]
    if len(found) == 1:
        return Named(
            key, unit_id, first.form, first.type, first.strong, 1, flat, first.start, first.end, first.alias_of
        )
    return Named(
        key, unit_id, majority(m.form for m in found), majority(m.type for m in found if m.type != "other") or "other",
        any(m.strong for m in found), len(found), flat, first.start, first.end,
        majority(m.alias_of for m in found if m.alias_of),
    )  # fmt: skip


def majority(values: Iterable[str]) -> str:
    """The most frequent value, the smallest of equals, "" of none."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value)) if counts else ""


def to_table(rows: Sequence[Named]) -> pa.Table:
    schema = TABLES["mentions"]
    return pa.table(
        [pa.array([getattr(row, name) for row in rows], schema.field(name).type) for name in schema.names],
        schema=schema,
    )


def from_table(table: pa.Table) -> list[Named]:
    columns = [table.column(name).to_pylist() for name in TABLES["mentions"].names]
    return [Named(*values) for values in zip(*columns, strict=True)]
