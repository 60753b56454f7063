"""Look-ups: an entity, a community report; and the door to words in the texts and to the text behind an id.

Takes a snapshot and ids or names as agents write them (`e12`, `c5`, full ids, names, brackets around them); gives
results within their budget. What is unknown is said, with the nearest names or the valid range of ids.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.pack import (
    HIGHEST,
    SMALL,
    Item,
    Section,
    clamp_budget,
    compose,
    finish,
    one_line,
    render_references,
    shorten,
)
from graphrag_mcp.query import context, edit_log
from graphrag_mcp.query.candidates import line, of_entity
from graphrag_mcp.query.names import resolve
from graphrag_mcp.query.sources import get_source, id_range, was_given
from graphrag_mcp.query.words import search_text
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import counted, normalise_name
from graphrag_mcp.types import Citation, EntityResult, ReportResult

__all__ = ["get_community_report", "get_entity", "get_source", "search_text", "sentence_citation"]

Row = dict[str, Any]
# ---- entity ------------------------------------------------------------------------------------


def get_entity(
    snapshot: Snapshot, id_or_name: str, *, max_tokens: int = 3_000, response_format: str = "concise"
) -> EntityResult:
    """One entity with its evidence and strongest relationships; candidates when the name is not exact."""
    budget, note = clamp_budget(max_tokens, 3_000)
    asked = id_or_name.strip().strip("[]` ")
    if not asked:
        raise BadInput("no entity was named", "Give its name or an id such as e12")
    row, candidates = resolve(snapshot, asked)
    if row is None:
        return _candidates(snapshot, asked, candidates, budget, note)
    own = normalise_name(asked) in {row["key"], *row["names"]} or asked in (f"e{row['n']}", row["id"])
    hint = "" if own else f"{asked[:80]!r} was read as {one_line(row['title'], 80)} (e{row['n']})."
    if candidates:
        hint += f" Others hold this name: {context.named_list(candidates)}."
    others = [_facts(row) for row in candidates]
    result = EntityResult(
        id=f"e{row['n']}", title=row["title"], type=row["type"], aliases=row["aliases"][:10],
        description=shorten(one_line(row["description"], 300), budget // 10), degree=row["degree"],
        frequency=row["frequency"],
        hint=" ".join(filter(None, [note, hint])), candidates=others,
    )  # fmt: skip
    path = snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"].to_pylist()
    groups = snapshot.by_key("reports", path[0] if path else [], "id", ["n", "title"]).to_pylist()
    result.communities = [f"c{group['n']}" for group in groups]
    also = f"\nAlso: {', '.join(one_line(alias, 60) for alias in result.aliases)}" if result.aliases else ""
    held = f"{counted(row['frequency'], 'text units')}, {counted(row['degree'], 'relationships')}."
    intro = f"# {one_line(row['title'], 200)} ({result.id}, {row['type']})\n{held}{also}"
    if edited := edit_log.about(snapshot, row):
        intro += f"\n{edited}"
    if groups:
        intro += "\nCommunities: " + "; ".join(f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups)
    said = one_line(row["description"], 600)  # a model's or an agent's words; ours are the evidence below
    sentences = [one_line(one["text"], 2_000) for one in row["evidence"]]
    if said and not any(said[:40] in one or one[:40] in said for one in sentences):
        intro += f"\n\n{shorten(said, budget // 4)}"
    most = 40 if response_format == "detailed" else 12
    sections = [
        Section("Evidence", _evidence(snapshot, row), 0.5),
        Section("Relationships", _relationships(snapshot, row, most), 0.4),
        Section("Claims", context.claims_about(snapshot, [row]), 0.1, header=context.CLAIMS),
        Section("Perhaps the same", _proposed(snapshot, row), 0.05),
    ]
    into = {"Relationships": "relationships"}
    result = compose(result, sections, budget, lambda _: "", intro=intro, first="Evidence", into=into)
    if result.truncated and not result.hint:
        result.hint = f'More text: get_source(ids=["{result.id}"]).'
    return finish(result, budget)


def _candidates(snapshot: Snapshot, asked: str, found: Sequence[Row], budget: int, note: str) -> EntityResult:
    """Several entities could be meant, or none: what tells them apart."""
    result = EntityResult(state="not_found", title=one_line(asked, 100))
    items = []
    for row in found:
        alias, title = f"e{row['n']}", one_line(row["title"], 100)
        facts = _facts(row)
        text = f"- [{alias}] {title} ({row['type']}, {counted(row['degree'], 'relationships')})"
        items.append(Item(alias, f"{text}: {context.first_sentence(row['description'], 160)}", data=facts))
    intro = f"There is no entity named {one_line(asked, 100)!r}." + (" Did you mean one of these?" if items else "")
    advice = "Call get_entity with an id from the list, or search_text for the words." if items else "Use search_text."
    if by := edit_log.hidden(snapshot, normalise_name(asked[:300])):
        undo = f'edit_graph(op="undo", ids=["{by}"], dry_run=false) brings it back'
        advice = f"{one_line(asked, 100)!r} was deleted by hand: {undo}. {advice}"
    result.hint = " ".join(filter(None, [note, advice]))
    sections, into = [Section("Candidates", items, 1.0)], {"Candidates": "candidates"}
    return compose(result, sections, budget, lambda _: "", intro=intro, first="Candidates", into=into)


def _facts(row: Row) -> dict[str, Any]:
    return {
        "id": f"e{row['n']}", "title": one_line(row["title"], 100), "type": row["type"], "degree": row["degree"]
    }  # fmt: skip


def _proposed(snapshot: Snapshot, row: Row) -> list[Item]:
    """Names that may mean this entity too; edit_graph merges or rejects them."""
    return [Item(f"p{number}", line(one)) for number, one in enumerate(of_entity(snapshot, row)[:3])]


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    units = context.unit_citations(snapshot, list(dict.fromkeys(one["text_unit_id"] for one in row["evidence"])))
    items = []
    for one in row["evidence"]:
        unit = units.get(one["text_unit_id"])
        if unit is not None:
            cited = sentence_citation(unit, one["start"], one["end"])
            items.append(Item(unit.id, f"- {one_line(one['text'], 500)} [{unit.id}]", cited, "Evidence"))
    return items


def sentence_citation(unit: Citation, start: int, end: int) -> Citation:
    """The place of a sentence, from the citation of its text unit and its offsets there. Lines stay the unit's."""
    return unit.model_copy(update={"char_start": unit.char_start + start, "char_end": unit.char_start + end})


def _relationships(snapshot: Snapshot, entity: Row, most: int) -> list[Item]:
    id = entity["id"]
    light = snapshot.rows("relationships", f"source_id = '{id}' OR target_id = '{id}'", ["id", "weight"]).to_pylist()
    light.sort(key=lambda row: (-row["weight"], row["id"]))
    found = context.rows(snapshot, "relationships", [row["id"] for row in light[:most]])
    others = [row["target_id"] if row["source_id"] == id else row["source_id"] for row in found]
    names = {row["id"]: row for row in snapshot.by_key("entities", others, "id", ["id", "n", "title"]).to_pylist()}
    items, shown = [], {}  # a sentence that names ten of them is written once
    for row, other_id in zip(found, others, strict=True):
        other = names.get(other_id)
        if other is None:
            continue
        title, alias = one_line(other["title"], 80), f"r{row['n']}"
        said = one_line(row["description"], 200)
        said = said if (again := shown.setdefault(said, alias)) == alias or len(said) < 30 else f"as {again}"
        text = f"- [{alias}] {title} (e{other['n']}), weight {row['weight']:g}: {said}"
        data = {"id": alias, "entity": title, "entity_id": f"e{other['n']}", "weight": row["weight"]}
        items.append(Item(alias, text, None, "Relationships", row["weight"], data=data))
    return items


# ---- report ------------------------------------------------------------------------------------


def get_community_report(
    snapshot: Snapshot, community_id: str, *, response_format: str = "concise", max_tokens: int = 4_000
) -> ReportResult:
    """One community's report, its members, parent and children."""
    budget, note = clamp_budget(max_tokens, 4_000)
    asked = str(community_id).strip().strip("[]` ")
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = context.rows(snapshot, "reports", [asked])
    if not found:
        known = f"{id_range(snapshot, 'c')}; global_search finds them"
        gone = " any more" if match and was_given(snapshot, f"c{match[1]}") else ""
        raise NotFound(f"there is no community {asked[:60]!r}{gone}", known)
    row = found[0]
    family = snapshot.by_key("communities", [row["id"]], "id", ["parent", "children", "size"]).to_pylist()
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    kin = snapshot.by_key("reports", [*([parent] if parent else []), *children], "id", ["id", "n"]).to_pylist()
    aliases = {one["id"]: f"c{one['n']}" for one in kin}
    members = snapshot.by_key("entities", row["entity_ids"], "id", ["id", "n", "title", "degree"]).to_pylist()
    members.sort(key=lambda one: (-one["degree"], one["id"]))
    body = re.sub(r"\A# .*\n+", "", row["full_content"]) if response_format == "detailed" else _brief(row)
    named, cited = context.resolve_references(snapshot, [body])
    result = ReportResult(
        id=f"c{row['n']}", title=row["title"], level=row["level"], rating=row["rank"], method=row["method"],
        parent=aliases.get(parent, ""), children=[aliases[id] for id in children if id in aliases][:40],
        members=[f"e{one['n']} {one_line(one['title'], 60)}" for one in members[:20]],
        stale="communities" in snapshot.manifest.stale, hint=note,
    )  # fmt: skip
    if budget >= SMALL:  # with less, words count more
        larger = min(2 * budget, HIGHEST)
        result.next_call = f'get_community_report(community_id="{result.id}", max_tokens={larger})'
    body = render_references(body, named)
    size = counted(family[0]["size"] if family else len(row["entity_ids"]), "entities")
    lines = f"Level {row['level']}, rating {row['rank']:g}, {size}, method {row['method']}."
    names = ", ".join(f"{one_line(one['title'], 60)} (e{one['n']})" for one in members[:20])
    head = f"# {one_line(row['title'], 200)} ({result.id})\n{lines}\nMembers: {names}"
    items = [_block(number, block, cited) for number, block in enumerate(re.split(r"\n{2,}", body.strip()))]
    result = compose(result, [Section("Report", items, 1.0)], budget, lambda _: "", intro=head, first="Report")
    if not result.truncated or budget >= HIGHEST:
        result.next_call = ""  # its place was kept for what did not fit
    return finish(result, budget)


def _brief(row: Row) -> str:
    """Summary and what each finding says, without the explanations."""
    found = [f"- {one.get('summary', '')} {_bracket(one.get('explanation', ''))}" for one in context.findings(row)]
    return row["summary"] + ("\n\n" + "\n\n".join(found) if found else "")


def _bracket(text: str) -> str:
    match = re.search(r"\[Data: [^\[\]]*\]", text)
    return match[0] if match else ""


def _block(number: int, text: str, cited: Mapping[str, Citation]) -> Item:
    """One paragraph of a report with the sources it refers to."""
    places = [cited[alias] for alias in re.findall(r"\bt\d+\b", text) if alias in cited]
    return Item(f"b{number}", text, None, "Report", also=tuple(places[:5]))
