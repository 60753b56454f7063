"""Relationships of one text unit: which entities stand in one sentence, how strongly, and what the sentence says.

Takes the names of a unit and which of them are entities; gives evidence rows. Also chooses the sentences that
describe an entity or a relationship. Knows one unit, one name or one pair at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from graphrag_mcp.index.mentions import Named, Said, entity_id
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.types import content_id

# A sentence that lists many names says little about any far pair: each name is linked to the next six.
REACH = 6
# Sentences kept with an entity or a relationship. More would only repeat what the text units say.
SENTENCES = 3


@dataclass(slots=True)
class Evidence:
    """One pair of entities in one text unit; start and end are of its best sentence, in the unit's text."""

    relationship_id: str
    source_id: str
    target_id: str
    text_unit_id: str
    weight: float
    start: int
    end: int
    source_key: str = ""
    target_key: str = ""
    description: str = ""
    keywords: str = ""


def relationship_id(source_id: str, target_id: str) -> str:
    return content_id("relationship", source_id, target_id)


def pairs(named: Iterable[Named], entity_of: Mapping[str, str]) -> list[Evidence]:
    """Evidence rows of one unit. Weight 1 a sentence between two proper names, a half where a common noun takes part.

    entity_of: name -> name of its entity, for names that have one.
    """
    by_sentence: dict[tuple[int, int], dict[str, tuple[bool, int]]] = {}
    unit = ""
    for name in named:
        target = entity_of.get(name.key)
        if target is None:
            continue
        unit = name.text_unit_id
        for at in range(0, len(name.sentences), 2):
            members = by_sentence.setdefault((name.sentences[at], name.sentences[at + 1]), {})
            strong, first = members.get(target, (False, name.start))
            members[target] = (strong or name.strong, min(first, name.start))
    found: dict[tuple[str, str], Evidence] = {}
    for (start, end), members in sorted(by_sentence.items()):
        if len(members) < 2:
            continue
        order = sorted(members, key=lambda key: (members[key][1], key))
        ids = [entity_id(key) for key in order]
        for i, a in enumerate(ids):
            for j in range(i + 1, min(i + 1 + REACH, len(ids))):
                weight = 1.0 if members[order[i]][0] and members[order[j]][0] else 0.5
                pair = (a, ids[j]) if a < ids[j] else (ids[j], a)
                known = found.get(pair)
                if known is None:
                    found[pair] = Evidence(relationship_id(*pair), *pair, unit, weight, start, end)
                else:
                    known.weight += weight
                    if end - start < known.end - known.start:  # the shorter sentence is more about the pair
                        known.start, known.end = start, end
    return list(found.values())


def stated(unit: str, said: Iterable[Said], entity_of: Mapping[str, str]) -> list[Evidence]:
    """Evidence rows of a unit that a model read. A statement about one entity and itself keeps its row, without ids:
    when its two names part again, it counts again."""
    rows = []
    for one in said:
        ends = entity_of.get(one.source, ""), entity_of.get(one.target, "")
        pair = sorted(entity_id(key) for key in ends)
        told = (one.source, one.target, one.description, one.keywords)
        if ends[0] == ends[1] or not all(ends):
            rows.append(Evidence("", "", "", unit, one.weight, one.start, one.end, *told))
        else:
            id = relationship_id(pair[0], pair[1])
            rows.append(Evidence(id, pair[0], pair[1], unit, one.weight, one.start, one.end, *told))
    return rows


def as_said(rows: Iterable[Evidence]) -> list[Said]:
    """What `stated` made its rows of."""
    return [
        Said(row.source_key, row.target_key, row.description, row.keywords, row.weight, row.start, row.end)
        for row in rows
        if row.source_key
    ]


def best_for_entity(rows: Sequence[Named]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of the sentences that say most about a name: where it stands first, and often."""
    if len(rows) == 1:
        return [(rows[0].text_unit_id, rows[0].sentences[0], rows[0].sentences[1])]
    ranked = sorted(rows, key=lambda r: (min(r.start - r.sentences[0], 60) // 4, -r.count, r.text_unit_id, r.key))
    chosen: list[tuple[str, int, int]] = []
    for row in ranked:
        place = (row.text_unit_id, row.sentences[0], row.sentences[1])
        if place not in chosen:
            chosen.append(place)
        if len(chosen) == SENTENCES:
            break
    return chosen


def best_for_pair(rows: Sequence[Evidence]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of a pair's strongest sentences."""
    if len(rows) == 1:
        return [(rows[0].text_unit_id, rows[0].start, rows[0].end)]
    ranked = sorted(rows, key=lambda r: (-r.weight, r.text_unit_id, r.start))
    return list(dict.fromkeys((row.text_unit_id, row.start, row.end) for row in ranked))[:SENTENCES]


def from_table(table: pa.Table) -> list[Evidence]:
    columns = [table.column(name).to_pylist() for name in TABLES["evidence"].names]
    return [Evidence(*values) for values in zip(*columns, strict=True)]
