"""What a model reads of a question: its sources, and the entities, relationships and community
reports around them, as sections of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_mcp.packing import references
from graphrag_mcp.packing.budget import Item, Section, columns, one_line, source_item
from graphrag_mcp.query import context, entities
from graphrag_mcp.query.context import Row
from graphrag_mcp.query.graph import HUB
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import bracketed

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

ENTITIES, REPORTS, RELATIONSHIPS = 10, 10, 10  # relationships: to the outside, of each entity
SMALL = 3_000  # tokens of a budget up to which text counts most
HEADERS = {
    "Sources": "",
    "Reports": "id|title|occurrence weight|content|rank",
    "Entities": "id|entity|description|number of relationships",
    "Relationships": "id|source|target|description|weight|links",
}
SHARES = {
    "Sources": 0.5, "Entities": 0.15, "Relationships": 0.15, "Reports": 0.2,
}  # fmt: skip
SMALL_SHARES = {**dict.fromkeys(context.ORDER, 0.05), "Sources": 0.8}


def sections_of(
    source: Source, budget: int, shares: Mapping[str, float] | None = None, *, graph: bool = True
) -> list[Section]:
    """The sections, sources first. With `graph` the relationships of the entities and all of their
    columns, else the entities as a list. `shares`: of the budget, by section."""
    snapshot, found, filters = source.snapshot, source.found, source.filters
    shares = shares or (SHARES if budget > SMALL else SMALL_SHARES)
    passages = max(8, budget // 90)  # a citation alone costs nearly as much
    items = {"Sources": source_items(source, passages)}
    # Entities and reports tell of all days.
    if not (filters and filters.of("said", "as_of")):
        chosen = _chosen(snapshot, found, filters)
        items["Entities"] = [_entity_item(row, graph) for row in chosen]
        items["Relationships"] = _relationships(snapshot, chosen, filters) if graph else []
        items["Reports"] = _reports(snapshot, chosen) if shares.get("Reports") else []
    return [
        Section(
            name,
            items[name],
            shares.get(name, 0.0),
            header=HEADERS[name] if graph or name != "Entities" else "",
            more=name == "Sources" and passages < len(found.passages),
            greedy=graph or name != "Entities",
        )
        for name in context.ORDER
        if name in items
    ]


def of_corpus(corpus: str, item: Item, factor: float = 1.0) -> Item:
    """The item with ids that name its corpus: at its head, in its citation, and in references that
    are not a source's."""
    id = f"{corpus}/{item.id}"
    text = item.text.replace(item.id, id, 1)
    if item.section != "Sources":
        text = context.marked(corpus, text)
    cited = item.citation and context.placed(corpus, item.citation, factor)
    data = dict(item.data or {})
    for key in {"id", "document_id"} & data.keys():
        data[key] = f"{corpus}/{data[key]}"
    return replace(item, id=id, text=text, citation=cited, data=data or None, tokens=0)


def source_items(source: Source, count: int) -> list[Item]:
    """The best passages as items; damaged passages are missing."""
    snapshot, found = source.snapshot, source.found
    score = {passage.id: passage.score for passage in found.passages[:count]}
    rows = snapshot.served("passages", list(score), context.PASSAGE)
    alias = context.document_aliases(snapshot, [row["document_id"] for row in rows])
    return [source_item(row, score[row["id"]], alias.get(row["document_id"], "")) for row in rows]


def _chosen(snapshot: Snapshot, found: Ranking, filters: Filters | None) -> list[Row]:
    """The entities of the context, best first; those that a filter includes come first."""
    if filters is None:
        return [scored.row for scored in entities.ranked(snapshot, found)[:ENTITIES]]
    chosen = {row["id"]: row for row in filters.first}
    for scored in entities.ranked(snapshot, found, 10 * ENTITIES) if found.terms else []:
        if filters.entity(scored.row):
            chosen.setdefault(scored.row["id"], scored.row)
    return list(chosen.values())[:ENTITIES]


def _entity_item(row: Row, columned: bool) -> Item:
    alias = f"e{row['n']}"
    if columned:
        text = columns(alias, row["title"], one_line(row["description"], 600), row["degree"])
    else:
        name = f"{one_line(row['title'], 100)} {bracketed(row['type'])}".strip()
        sentence = context.first_sentence(row["description"], 160)
        text = f"- [{alias}] {name}" + (f": {sentence}" if sentence else "")
    return Item(alias, text, None, "Entities")


def _relationships(
    snapshot: Snapshot, chosen: Sequence[Row], filters: Filters | None
) -> list[Item]:
    """All relationships between chosen entities; then those to others, by how many chosen ones each
    of these is linked to, by weight: `id|source|target|description|weight|links`."""
    if not chosen:
        return []
    inside = {row["id"] for row in chosen}
    small = {row["id"] for row in chosen if row["degree"] <= HUB}
    every, small_ids = (", ".join(f"'{id}'" for id in sorted(ids)) for ids in (inside, small))
    where = f"(source_id IN ({every}) AND target_id IN ({every}))"
    where += f" OR source_id IN ({small_ids}) OR target_id IN ({small_ids})" if small else ""
    names = ["id", "source_id", "target_id", "weight"]
    without = filters.without if filters is not None else frozenset()
    light = {
        row["id"]: row
        for row in snapshot.rows("relationships", where, names).to_pylist()
        if without.isdisjoint((row["source_id"], row["target_id"]))
    }
    ends = {id: (row["source_id"], row["target_id"]) for id, row in light.items()}
    links = Counter(end for pair in ends.values() for end in {*pair} - inside)
    linked = {id: max(map(links.__getitem__, pair)) for id, pair in ends.items()}
    order = sorted(light, key=lambda id: (-linked[id], -light[id]["weight"], id))
    network = [id for id in order if not linked[id]]
    outward = [id for id in order if linked[id]][: RELATIONSHIPS * len(chosen)]
    found = snapshot.served("relationships", network + outward)
    titles = context.titles(snapshot, found)
    items = []
    for row in found:
        ends = (titles.get(row[end], "?") for end in ("source_id", "target_id"))
        rest = one_line(row["description"], 300), f"{row['weight']:g}", linked[row["id"]]
        text = columns(f"r{row['n']}", *ends, *rest)
        items.append(Item(f"r{row['n']}", text, None, "Relationships"))
    return items


def _reports(snapshot: Snapshot, chosen: Sequence[Row]) -> list[Item]:
    """Reports of the communities that hold most of the chosen entities, then by rank:
    `id|title|occurrence weight|content|rank`."""
    members = snapshot.by_key("memberships", [row["id"] for row in chosen], "entity_id", ["path"])
    counts = Counter(id for path in values_of(members["path"]) for id in path)
    names = ["id", "rank", "level", "n_text_units"]
    light = snapshot.by_key("reports", list(counts), "id", names).to_pylist()
    light.sort(key=lambda row: (-counts[row["id"]], -row["rank"], -row["level"], row["id"]))
    most = max((row["n_text_units"] for row in light), default=0) or 1
    rows = snapshot.served("reports", [row["id"] for row in light[:REPORTS]])
    aliases, _ = context.resolve_references(snapshot, [row["summary"] for row in rows])
    items = []
    for row in rows:
        summary = references.render_references(row["summary"], aliases)
        weight = round(row["n_text_units"] / most, 2)
        text = columns(f"c{row['n']}", row["title"], weight, summary, f"{row['rank']:g}")
        items.append(Item(f"c{row['n']}", text, None, "Reports", counts[row["id"]]))
    return items
