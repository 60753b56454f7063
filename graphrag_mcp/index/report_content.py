"""The content of a community for its report: its rows, its counts and its texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from os.path import commonprefix
from typing import Any, NamedTuple

import pyarrow as pa

from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.store.tables import Snapshot, values_of

Evidence = tuple[str, str]  # id of the text unit, sentence
# Ids of a kind in the row of a report. With all of them an edit would write 100 KB for each
# thousand members.
LISTED = 100


@dataclass(slots=True)
class EntityRow:
    id: str
    title: str
    type: str = ""
    description: str = ""
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()


@dataclass(slots=True)
class EdgeRow:
    id: str
    source_id: str
    target_id: str
    description: str = ""
    weight: float = 1.0
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()


@dataclass
class Content:
    """The rows of some communities: entities by id, and of each community the relationships with
    both ends inside, in order of id."""

    entities: dict[str, EntityRow]
    edges: dict[str, list[EdgeRow]]


def content_of(snapshot: Snapshot, tree: Hierarchy, communities: Collection[str]) -> Content:
    members = sorted(
        {id for community in communities for id in tree.communities[community].members}
    )
    columns = ["id", "title", "type", "description", "text_unit_ids", "evidence"]
    rows = (EntityRow(*row) for row in listed(snapshot.by_key("entities", members, "id", columns)))
    entities = {row.id: row for row in rows}
    columns = ["id", "source_id", "target_id", "description", "weight", "text_unit_ids", "evidence"]
    links = snapshot.by_key("relationships", members, "source_id", columns).sort_by("id")
    edges: dict[str, list[EdgeRow]] = defaultdict(list)
    for edge in (EdgeRow(*row) for row in listed(links)):
        paths = [tree.path.get(end, ()) for end in (edge.source_id, edge.target_id)]
        for community in filter(communities.__contains__, commonprefix(paths)):
            edges[community].append(edge)
    return Content(entities, edges)


def listed(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    """The rows as Python values. A struct of evidence becomes (text unit, sentence), and equal
    strings of a column are one object: a sentence stands in the rows of many relationships."""
    for batch in table.to_batches():
        yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()
        words = values_of(encoded.dictionary)
        return [words[at] for at in values_of(encoded.indices)]
    if not isinstance(column, pa.ListArray):
        return values_of(column)
    inner = column.flatten()
    if isinstance(inner, pa.StructArray):
        parts = (_values(inner.field(name)) for name in ("text_unit_id", "text"))
        flat = iter(zip(*parts, strict=True))
    else:
        flat = iter(_values(inner))
    return [list(islice(flat, length)) for length in values_of(column.value_lengths())]


class Paper(NamedTuple):
    """What a report says of a document: its title, its year and its date ("" for none). `of_file`: is the
    title the name of its file, as of a document without one?"""

    title: str
    year: str = ""
    date: str = ""
    of_file: bool = False


@dataclass(slots=True)
class Inside:
    """One community. `weight` of an entity is that of its relationships inside."""

    entities: Mapping[str, EntityRow]
    edges: Mapping[str, EdgeRow]
    weight: Mapping[str, float]
    n_units: int
    total: float  # weight of all relationships
    relationship_ids: list[str]  # at most LISTED of a kind
    text_unit_ids: list[str]
    entity_ids: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)  # the heaviest entities, at most LISTED
    terms: Mapping[str, float] = field(default_factory=dict)  # what sets it apart, with weights
    texts: Sequence[tuple[str, str]] = ()  # (id, text) of the text units that hold most terms
    title: str = ""  # of a group that a plug-in made
    plugin: str = ""  # its name
    documents: Mapping[str, str] = field(default_factory=dict)  # of its text units
    papers: Mapping[str, Paper] = field(default_factory=dict)  # its documents
    told: Mapping[str, set[str]] = field(default_factory=dict)  # which `terms` its documents hold

    def place(self, id: str) -> tuple[float, int, str, str]:
        row = self.entities[id]
        return -self.weight[id], -len(row.text_unit_ids), row.title, id


def inside_of(community: Community, rows: Iterable[EntityRow], edges: Iterable[EdgeRow]) -> Inside:
    """`edges` in order of id, so that a sum of fractions is the same in every build."""
    entities, links = {row.id: row for row in rows}, {edge.id: edge for edge in edges}
    weight = dict.fromkeys(entities, 0.0)
    for edge in links.values():
        weight[edge.source_id] += edge.weight
        weight[edge.target_id] += edge.weight
    units = community.units or set().union(*(row.text_unit_ids for row in entities.values()))
    inside = Inside(
        entities,
        links,
        weight,
        n_units=len(units),
        total=sum(edge.weight for edge in links.values()),
        relationship_ids=[edge.id for edge in nsmallest(LISTED, links.values(), _strength)],
        text_unit_ids=nsmallest(LISTED, units),
    )
    inside.order = nsmallest(LISTED, entities, inside.place)
    inside.entity_ids = inside.order if len(entities) > LISTED else sorted(inside.order)
    if len(links) <= LISTED:
        inside.relationship_ids.sort()
    return inside


def _strength(edge: EdgeRow) -> tuple[float, str]:
    return -edge.weight, edge.id
