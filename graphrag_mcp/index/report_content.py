"""The content of a community for its report: its rows, its counts and its texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from os.path import commonprefix
from typing import Any, NamedTuple

from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.store.tables import Snapshot, rows_of

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


def content_of(
    snapshot: Snapshot, tree: Hierarchy, communities: Collection[str], evidence: bool = True
) -> Content:
    """`evidence`: are the sentences of rows read? Only a model is shown them."""
    members = sorted(
        {id for community in communities for id in tree.communities[community].members}
    )
    more = ["text_unit_ids", "evidence"] if evidence else ["text_unit_ids"]
    columns = ["id", "title", "type", "description", *more]
    rows = rows_of(snapshot.by_key("entities", members, "id", columns))
    entities = {row[0]: EntityRow(*_with_pairs(row, 5)) for row in rows}
    columns = ["id", "source_id", "target_id", "description", "weight", *more]
    links = snapshot.by_key("relationships", members, "source_id", columns).sort_by("id")
    edges: dict[str, list[EdgeRow]] = defaultdict(list)
    for edge in (EdgeRow(*_with_pairs(row, 6)) for row in rows_of(links)):
        paths = [tree.path.get(end, ()) for end in (edge.source_id, edge.target_id)]
        for community in filter(communities.__contains__, commonprefix(paths)):
            edges[community].append(edge)
    return Content(entities, edges)


def _with_pairs(row: Sequence[Any], at: int) -> list[Any]:
    """The row with its evidence, the column `at` if it was read, as pairs."""
    evidence = ([(item["text_unit_id"], item["text"]) for item in items] for items in row[at:])
    return [*row[:at], *evidence]


class Paper(NamedTuple):
    """What a report says of a document: its title and its date ("" for none)."""

    title: str
    date: str = ""


@dataclass(slots=True)
class Inside:
    """One community. `weight` of an entity is that of its relationships inside."""

    entities: Mapping[str, EntityRow]
    edges: Mapping[str, EdgeRow]
    weight: Mapping[str, float]
    n_units: int
    relationship_ids: list[str]  # at most LISTED of a kind
    text_unit_ids: list[str]
    entity_ids: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)  # the heaviest entities, at most LISTED
    terms: Mapping[str, float] = field(default_factory=dict)  # what sets it apart, with weights
    texts: Sequence[tuple[str, str]] = ()  # (id, text) of the text units that hold most terms
    title: str = ""  # of a group that a plug-in made
    plugin: str = ""  # its name
    papers: Sequence[Paper] = ()  # its documents

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
