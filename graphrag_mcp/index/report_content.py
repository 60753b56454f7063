"""What the report of a community is made of: its rows, texts, documents and their summaries, read from the
tables of a generation."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from os.path import commonprefix
from typing import Any, NamedTuple

from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.terms import content_id, lists_of

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


def content_of(snapshot: Snapshot, tree: Hierarchy, communities: Collection[str], evidence: bool = True) -> Content:
    """`evidence`: are the sentences of rows read? Only a model is shown them."""
    members = sorted({id for community in communities for id in tree.communities[community].members})
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


@dataclass(frozen=True, slots=True)
class SummarisedText:
    """A document, or a section of a long one, with its summary. `identity` is another one where the
    text or the summary is; `unit` is the text unit that a reference leads to."""

    document: str
    identity: str
    unit: str
    title: str
    date: str
    text: str


def summaries_by_unit(snapshot: Snapshot, papers: Mapping[str, Paper]) -> dict[str, SummarisedText]:
    """The summary of the text in which each text unit stands: that of the section, else of the document."""
    if "summaries" not in snapshot.manifest.tables:
        return {}
    columns = ["document_id", "place", "char_start", "heading", "text", "sha"]
    rows = snapshot.rows("summaries", columns=columns).to_pylist()
    of = lists_of((row["document_id"], row) for row in sorted(rows, key=lambda row: row["place"]))
    units = snapshot.rows("text_units", columns=["document_id", "char_start", "id"]).to_pylist()
    units.sort(key=lambda row: (row["document_id"], row["char_start"]))
    found: dict[str, SummarisedText] = {}
    texts: dict[tuple[str, int], SummarisedText] = {}
    for unit in units:
        document, summaries = unit["document_id"], of.get(unit["document_id"], [])
        summaries = [row for row in summaries if row["place"]] or summaries
        if not summaries:
            continue
        at = max(bisect_right([row["char_start"] for row in summaries], unit["char_start"]) - 1, 0)
        if (document, at) not in texts:
            row, paper = summaries[at], papers[document]
            title = f"{paper.title}: {row['heading']}" if row["heading"] else paper.title
            identity = content_id("told", row["sha"], row["text"])
            facts = unit["id"], title, paper.date, row["text"]
            texts[document, at] = SummarisedText(document, identity, *facts)
        found[unit["id"]] = texts[document, at]
    return found


@dataclass(frozen=True)
class Topic:
    """A community with what its report may tell: its entities, and the relationships among them in order of
    id. `worth`: the terms that set it apart, with weights; `texts`: (id, text) of the text units that hold most of
    these; `title`: of a group that a plug-in made; `summaries`: those of its documents, where reports are told
    from these, and `parts`, those of its children."""

    community: Community
    entities: Sequence[EntityRow]
    edges: Sequence[EdgeRow]
    worth: Mapping[str, float] = field(default_factory=dict)
    texts: Sequence[tuple[str, str]] = ()
    papers: Sequence[Paper] = ()
    title: str = ""
    plugin: str = ""  # its name
    summaries: Sequence[SummarisedText] = ()
    parts: Sequence[Sequence[SummarisedText]] = ()

    @cached_property
    def units(self) -> Set[str]:
        return units_of(self.community, self.entities)

    @cached_property
    def weight(self) -> dict[str, float]:
        """Of each entity that of its relationships inside, whose fractions are added in order of id."""
        weight = dict.fromkeys((row.id for row in self.entities), 0.0)
        for edge in sorted(self.edges, key=lambda edge: edge.id):
            weight[edge.source_id] += edge.weight
            weight[edge.target_id] += edge.weight
        return weight

    def place(self, row: EntityRow) -> tuple[float, int, str, str]:
        """The heaviest entities come first."""
        return -self.weight[row.id], -len(row.text_unit_ids), row.title, row.id

    @cached_property
    def heaviest(self) -> list[EntityRow]:
        """At most LISTED."""
        return nsmallest(LISTED, self.entities, self.place)


def units_of(community: Community, entities: Iterable[EntityRow]) -> Set[str]:
    """The text units of a community; of one that an import brought, those that name its entities."""
    units = set(community.units)
    return units or {unit for row in entities for unit in row.text_unit_ids}
