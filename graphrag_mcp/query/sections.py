"""What a model reads of a question: its sources, and the entities, relationships and community
reports around them, as sections of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_mcp.packing.budget import CHARACTERS, Item, Section, one_line, source_item
from graphrag_mcp.query import context, entities, reports
from graphrag_mcp.query.context import Row
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.query.times import Document, documents
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import bracketed

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

ENTITIES, REPORTS = 10, 10
SHARES = {"Sources": 0.5, "Entities": 0.15, "Relationships": 0.15, "Reports": 0.2}


def sections_of(source: Source, budget: int, shares: Mapping[str, float] = SHARES) -> list[Section]:
    """The sections that have a share of the budget, sources first."""
    snapshot, found, filters = source.snapshot, source.found, source.filters
    most = max(8, budget // 90)  # rows of a section: a citation alone costs nearly as much
    scores = {passage.id: passage.score for passage in found.passages[:most]}
    rows, facts = snapshot.served("passages", list(scores), context.PASSAGE), documents(snapshot)
    items = {
        "Sources": [
            source_item(row, scores[row["id"]], facts.get(row["document_id"], Document()).alias) for row in rows
        ]
    }
    # Entities and reports tell of all days.
    if not (filters and filters.of("said", "as_of")):
        chosen = _chosen(snapshot, found, filters)
        items["Entities"] = [_entity_item(row) for row in chosen]
        items["Relationships"] = _relationships(snapshot, chosen, filters, most)
        items["Reports"] = reports.items(snapshot, _reports(snapshot, chosen), CHARACTERS)
    return [Section(name, items.get(name, []), share) for name, share in shares.items()]


def _chosen(snapshot: Snapshot, found: Ranking, filters: Filters | None) -> list[Row]:
    """The entities of the context, best first; those that a filter includes come first."""
    if filters is None:
        return [scored.row for scored in entities.ranked(snapshot, found)[:ENTITIES]]
    chosen = {row["id"]: row for row in filters.first}
    for scored in entities.ranked(snapshot, found, 10 * ENTITIES) if found.terms else []:
        if filters.entity(scored.row):
            chosen.setdefault(scored.row["id"], scored.row)
    return list(chosen.values())[:ENTITIES]


def _entity_item(row: Row) -> Item:
    alias, name = f"e{row['n']}", one_line(row["title"], 100)
    description = one_line(row["description"], CHARACTERS)
    head = f"- [{alias}] {name} {bracketed(row['type'])}".rstrip()
    return Item(alias, f"{head}: {description}" if description else head, None, "Entities")


def _relationships(snapshot: Snapshot, chosen: Sequence[Row], filters: Filters | None, most: int) -> list[Item]:
    """`most` relationships: those among the chosen entities, then those to others, by weight."""
    ids = {row["id"] for row in chosen}
    listed = ", ".join(f"'{id}'" for id in sorted(ids)) or "''"
    where = f"source_id IN ({listed}) OR target_id IN ({listed})"
    columns = ["id", "source_id", "target_id", "weight"]
    without = filters.without if filters is not None else frozenset[str]()
    found = [
        (not {row["source_id"], row["target_id"]} <= ids, -row["weight"], row["id"])
        for row in snapshot.rows("relationships", where, columns).to_pylist()
        if without.isdisjoint((row["source_id"], row["target_id"]))
    ]
    best = [id for *_, id in sorted(found)[:most]]
    return [
        Item(alias, f"- [{alias}] {said}", None, "Relationships")
        for alias, said in context.connections(snapshot, best, CHARACTERS)
    ]


def _reports(snapshot: Snapshot, chosen: Sequence[Row]) -> list[str]:
    """The reports of the communities that hold most of the chosen entities, then by rank."""
    members = snapshot.by_key("memberships", [row["id"] for row in chosen], "entity_id", ["path"])
    counts = Counter(id for path in values_of(members["path"]) for id in path)
    rows = snapshot.by_key("reports", list(counts), "id", ["id", "rank", "level"]).to_pylist()
    rows.sort(key=lambda row: (-counts[row["id"]], -row["rank"], -row["level"], row["id"]))
    return [row["id"] for row in rows[:REPORTS]]
