"""One entity with its evidence, documents and relationships, or its timeline (get_entity)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.budget import Item, Section, one_line
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context, edited, entities, links, plugin, summaries, timeline, times
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.query.explore import candidates, entity_facts, statements
from graphrag_mcp.query.graph import strongest
from graphrag_mcp.query.hits import named
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import bracketed, counted, lists_of, normalise_name
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import EntityResult

Row = dict[str, Any]

RELATED = 12  # relationships of an entity that are shown
TIMELINE_FRAME = 60  # tokens around a timeline: its heading, fences and the hint


def get_entity(
    snapshot: Snapshot, id_or_name: str, *, max_tokens: int = 3_000, order: str = "", other: str = ""
) -> EntityResult:
    """One entity with its evidence and strongest relationships; candidates when the name is not
    exact. With `order="time"` its timeline, or that of what names it and `other`."""
    budget, note = packing.clamp_budget(max_tokens, 3_000)
    asked = id_or_name.strip().strip("[]` ")
    if not asked:
        raise BadInput("no entity was named", "Give its name or an id such as e12")
    row, found = resolve(snapshot, asked)
    if row is None:
        return _candidates(snapshot, asked, found, budget, note)
    hints, of = [note], plugin.plugin_of(row)
    names = {row["key"], *row["names"], f"e{row['n']}", row["id"]}
    if of is None and names.isdisjoint((asked, normalise_name(asked))):
        title = f"{one_line(row['title'], 80)} (e{row['n']})"
        hints.append(f"{asked[:80]!r} was read as {title}.")
    if found:
        hints.append(f"Also with this name: {entities.named_list(found)}.")
    hint = " ".join(filter(None, hints))
    if order == "time" or other:
        return _timeline(snapshot, row, other.strip().strip("[]` "), budget, hint)
    path = values_of(snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"])
    groups = snapshot.served("reports", path[0] if path else [], ["id", "n", "title"])
    page, links_of_page = links.of_entity(snapshot, [row["title"], *row["aliases"]])
    documents = [] if of else _documents(snapshot, row)
    result = EntityResult(
        id=f"e{row['n']}",
        title=row["title"],
        type=row["type"],
        aliases=row["aliases"][:10],
        description=packing.shorten(one_line(row["description"], 300), budget // 10),
        degree=row["degree"],
        frequency=row["frequency"],
        communities=[f"c{group['n']}" for group in groups],
        hint=hint,
        next_call=links_of_page,
        candidates=[entity_facts(entity) for entity in found],
    )
    lines = [f"# {one_line(row['title'], 200)} {bracketed(result.id, row['type'])}"]
    units = counted(row["frequency"], "text units")
    within = f"{units} of {counted(len(documents), 'documents')}" if documents else units
    lines.append(f"{within}, {counted(row['degree'], 'relationships')}.")
    if row["aliases"]:
        lines.append(f"Also: {', '.join(one_line(alias, 60) for alias in result.aliases)}")
    lines += filter(None, [edited.about(snapshot, row), page])
    if groups:
        named = (f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups)
        lines.append(f"Communities: {'; '.join(named)}")
    evidence = _evidence(snapshot, row)
    description = one_line(row["description"], 600)
    # Without a model the description is a sentence of the evidence.
    if description and (of or not any(description[:40] in item.text for item in evidence)):
        lines += ["", packing.shorten(description, budget // 4)]
    sections = of.sections(snapshot, row, groups, 3 * RELATED) if of else []
    sections += [Section("Evidence", evidence, 0.3 if of else 0.35), Section("Documents", documents, 0.2)]
    if of is None:
        related = statements(snapshot, strongest(snapshot, row["id"])[:RELATED], row["id"])
        sections.append(Section("Relationships", related, 0.35, into="relationships"))
    result = compose(result, sections, budget, intro="\n".join(lines))
    if of is not None:
        result.hint = f"{result.hint} {text_of(result.id)}".strip()
    elif not result.hint and len(documents) > 1:
        every = counted(len(documents), "documents")
        result.hint = f'What each of {every} says of it: list_documents(query="{result.id}").'
    return finish(result, budget)


def text_of(id: str) -> str:
    return f'Its text: get_source(ids=["{id}"]).'


def _timeline(snapshot: Snapshot, row: Row, other: str, budget: int, note: str) -> EntityResult:
    """What is said of an entity, or of it and another one, by the days that it speaks of."""
    both = [row]
    if other:
        second, candidates = resolve(snapshot, other)
        if second is None:
            return _candidates(snapshot, other, candidates, budget, note)
        both.append(second)
    title = " and ".join(f"{one_line(entity['title'], 100)} (e{entity['n']})" for entity in both)
    used = count_tokens(title) + count_tokens(note) + TIMELINE_FRAME
    items, how_many, undated = timeline.of(snapshot, both, budget - used)
    facts = {"id": f"e{row['n']}", "title": row["title"], "type": row["type"]}
    result = EntityResult(**facts, hint=f"{note} {undated}".strip())
    intro = f"# {title}: {how_many}, by time"
    return finish(compose(result, [Section("Timeline", items, 1.0)], budget, intro=intro), budget)


def _candidates(snapshot: Snapshot, asked: str, found: Sequence[Row], budget: int, note: str) -> EntityResult:
    """Several entities could be meant, or none; or the name was deleted by hand."""
    advice = "Use search_text."
    if found:
        advice = "Call get_entity with an id from the list, or search_text for the words."
    if by := edited.hidden(snapshot, normalise_name(asked[:300])):
        undo = f'edit_graph(op="undo", ids=["{by}"], dry_run=false) brings it back'
        advice = f"{one_line(asked, 100)!r} was deleted by hand: {undo}. {advice}"
    result = EntityResult(title=one_line(asked, 100), hint=note)
    return candidates(snapshot, result, asked, found, budget, advice)


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    unit_ids = dict.fromkeys(sentence["text_unit_id"] for sentence in row["evidence"])
    units, items = context.unit_citations(snapshot, list(unit_ids)), []
    for sentence in row["evidence"]:
        unit = units.get(sentence["text_unit_id"])
        if unit is not None:
            cited = context.sentence_citation(unit, sentence["start"], sentence["end"])
            text = one_line(quote.one_line(readable(sentence["text"])), 500)
            if quote.plain(text) == quote.plain(unit.title):
                continue  # its title stands in the list of documents
            items.append(Item(unit.id, f"- {text} [{unit.id}]{context.where(cited)}", cited, "Evidence"))
    return items


def _documents(snapshot: Snapshot, row: Row) -> list[Item]:
    """The documents that name an entity, oldest first and undated ones last: `- [t12] 2024-05-03 Title`,
    with the number of text units that name it where there are several, and what was written of it."""
    found = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["document_id", "n"])
    units = lists_of(rows_of(found))
    facts = times.documents(snapshot)
    written = summaries.of_documents(snapshot, list(units))
    items = []
    for id in sorted(units, key=lambda id: facts[id].order):
        first = f"t{min(units[id])}"
        dated = f"{facts[id].date} {named(snapshot, id)}".strip()
        several = f" ({len(units[id])} text units)" if len(units[id]) > 1 else ""
        about = f": {written[id]}" if id in written else ""
        items.append(Item(first, f"- [{first}] {dated}{several}{about}"))
    return items
