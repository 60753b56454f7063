"""What explore_graph shows: the neighbours of an entity, how two are connected, or an overview from
the most central entities down. No model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import Item, Section, clamp_budget, one_line
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context, entities, links, plugin
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.query.graph import Path, around, connect
from graphrag_mcp.query.notes import joined
from graphrag_mcp.store.tables import Snapshot, notes_alone, rows_of, values_of
from graphrag_mcp.text.terms import bracketed, counted, lists_of, normalise_name
from graphrag_mcp.types import EntityResult, ExploreResult

Found = TypeVar("Found", EntityResult, ExploreResult)

Row = dict[str, Any]
DEFAULT_TOKENS = 4_000
HOPS = (1, 1, 4)  # default, least, most
NODES = (30, 2, 200)
GROUP = 5  # entities in one line, text units of a name
SENTENCES = 44  # relationships of one result: with more, the longest results would have no room for entities
STATEMENT = 260  # characters of a sentence on a relationship
CENTRAL, LARGEST = 20, 40  # entities and communities of an overview
NAMES = ["id", "n", "title", "type", "degree"]


def explore_graph(
    snapshot: Snapshot,
    start: str = "",
    goal: str = "",
    *,
    hops: int = HOPS[0],
    max_nodes: int = NODES[0],
    max_tokens: int = DEFAULT_TOKENS,
    kinds: Sequence[str] = (),
    direction: str = "",
) -> ExploreResult:
    """Neighbours of `start`; with `goal` how the two are connected; with neither an overview of the
    graph. `kinds` (of statements that a plug-in makes, as calls or imports; links: those between
    documents) and `direction` (in: what uses `start`, out: what it uses): a walk over these alone."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    hops, nodes = min(max(hops, HOPS[1]), HOPS[2]), min(max(max_nodes, NODES[1]), NODES[2])
    result = ExploreResult(corpus=snapshot.manifest.corpus, hint=note)
    start, goal = (str(end).strip().strip("[]`\"' ") for end in (start, goal))
    if [kind.strip().lower() for kind in kinds] == [links.LINKS]:
        return links.explore(snapshot, result, start, goal, direction, budget)
    if not snapshot.manifest.counters.get("entities", snapshot.count("entities")):
        result.state, result.text = "not_found", "This corpus has no entities yet."
        result.next_call = 'index_documents(paths=["..."])'
        if alone := notes_alone(snapshot):
            result.hint = joined(result.hint, alone)
            result.next_call = "list_documents()"
        return finish(result, budget)
    if not start and not goal:
        return _from_above(snapshot, result, budget)
    if re.fullmatch(r"c\d{1,12}", start, re.IGNORECASE) and not goal:
        return _from_above(snapshot, result, budget, int(start[1:]))
    if (kinds or direction) and not goal:
        walk = plugin.Walk(start, kinds, direction, hops, nodes)
        for extension in plugin.plugins().values():
            if (found := extension.walk(snapshot, result, walk, budget)) is not None:
                return found
    ends: list[Row] = []
    for end in filter(None, (start, goal)):
        row, others = resolve(snapshot, end)
        if row is None:
            advice = "Call explore_graph() for the central entities."
            if others:
                advice = "Call explore_graph again with an id."
            return candidates(snapshot, result, end, others, budget, advice)
        if others:
            context.note(result, f"Also named {end[:60]!r}: {entities.named_list(others)}.")
        ends.append(row)
    result.start = f"e{ends[0]['n']}"
    if len(ends) == 1:
        return _neighbours(snapshot, result, ends[0], hops, nodes, budget)
    if ends[0]["id"] == ends[1]["id"]:
        what = f"{start[:60]!r} and {goal[:60]!r} are one entity, {one_line(ends[0]['title'], 80)} ({result.start})"
        raise BadInput(what, "Give two different ones, or no goal for what is around it")
    result.goal = f"e{ends[1]['n']}"
    paths = connect(snapshot, ends[0]["id"], ends[1]["id"])
    if paths:
        return _connected(snapshot, result, ends, paths, budget)
    return _apart(result, ends, budget)


def candidates(
    snapshot: Snapshot, result: Found, asked: str, found: Sequence[Row], budget: int, advice: str
) -> Found:
    """Several entities could be meant, or none: what tells them apart."""
    result.state = "not_found"
    items = []
    for row in found:
        facts = entity_facts(row)
        described = context.first_sentence(row["description"], 160)
        items.append(Item(facts["id"], f"- {_shown(facts)}: {described}", data=facts))
    intro = f"There is no entity named {one_line(asked, 100)!r}."
    intro += _where_named(snapshot, asked)
    advice = joined(notes_alone(snapshot), advice)
    intro += " Did you mean one of these?" if items else ""
    context.note(result, advice)
    sections = [Section("Candidates", items, 1.0, into="candidates")]
    return compose(result, sections, budget, intro=intro)


def _where_named(snapshot: Snapshot, asked: str) -> str:
    """Text units that hold the name: what stands once, of no known type, has no entity."""
    key = normalise_name(asked[:300]).encode("utf-8", "replace").decode("utf-8")
    units = values_of(snapshot.by_key("mentions", [key], "key", ["text_unit_id"])["text_unit_id"])
    rows = snapshot.by_key("text_units", sorted(set(units)), "id", ["n"]).to_pylist()
    ids = [f"[t{n}]" for n in sorted(row["n"] for row in rows)]
    more = f" and {len(ids) - GROUP} more" if len(ids) > GROUP else ""
    return f" It is named in {', '.join(ids[:GROUP])}{more}." if ids else ""


# ---- entities and relationships ------------------------------------------------------------------


def _entities(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, Row]:
    """Rows by id, in the order of the ids; an entity whose row is gone is missing."""
    rows = snapshot.served("entities", list(ids), NAMES)
    return {row["id"]: row for row in rows}


def _named(row: Row) -> str:
    return f"{one_line(row['title'], 80)} (e{row['n']})"


def _shown(node: Mapping[str, Any]) -> str:
    facts = bracketed(node["type"], counted(node["degree"], "relationships"))
    return f"[{node['id']}] {node['title']} {facts}"


def entity_facts(row: Row) -> dict[str, Any]:
    title, id = one_line(row["title"], 100), f"e{row['n']}"
    return {"id": id, "title": title, "type": row["type"], "degree": row["degree"]}


def _node(row: Row, hop: int) -> dict[str, Any]:
    return entity_facts(row) | {"title": one_line(row["title"], 80), "hops": hop}


def _entity_items(rows: Mapping[str, Row], hops: Mapping[str, int]) -> list[Item]:
    """GROUP entities of one ring in a line, in the order of `hops`."""
    rings = lists_of((hop, _node(rows[id], hop)) for id, hop in hops.items() if id in rows)
    items = []
    for ring in rings.values():
        for at in range(0, len(ring), GROUP):
            nodes = ring[at : at + GROUP]
            text = f"- {'; '.join(map(_shown, nodes))}"
            items.append(Item(nodes[0]["id"], text, data={"group": nodes}))
    return items


def statements(snapshot: Snapshot, ids: Sequence[str], start: str = "") -> list[Item]:
    """`- [r7] Ida Holm (e3) - Orl (e5), weight 2: a sentence [t12]`: relationships, each with the best
    sentence that says so, or its description. The name of `start`, which stands above, is left out. A
    sentence that says it of several pairs is written once."""
    found = snapshot.served("relationships", ids)
    rows = _entities(snapshot, {row[end] for row in found for end in ("source_id", "target_id")})
    first = [row["evidence"][0]["text_unit_id"] for row in found if row["evidence"]]
    units = context.unit_citations(snapshot, first)
    shown: dict[tuple[str, int], str] = {}
    items = []
    for row in found:
        if row["source_id"] not in rows or row["target_id"] not in rows:
            continue
        ends, id = [rows[row["source_id"]], rows[row["target_id"]]], f"r{row['n']}"
        sentence, cited = context.relationship_statement(row, units, STATEMENT)
        if cited is not None:
            again = shown.setdefault((cited.id, cited.char_start), id)
            text = sentence if again == id else f"as {again}"
            sentence = f"{text} [{cited.id}]{context.where(cited) if text is sentence else ''}"
        names = " - ".join(_named(end) for end in ends if end["id"] != start)
        data = {"id": id, "source": f"e{ends[0]['n']}", "target": f"e{ends[1]['n']}"}
        data["weight"] = round(row["weight"], 3)
        line = f"- [{id}] {names}, weight {row['weight']:g}: {sentence}"
        items.append(Item(id, line, cited, score=row["weight"], data=data))
    return items


def _composed(
    result: ExploreResult, sections: Sequence[Section], budget: int, intro: str
) -> ExploreResult:
    """The sections within the budget, the first before others; of groups of nodes each node."""
    nodes = result.nodes
    result = compose(result, sections, budget, intro=intro)
    result.nodes = nodes or [node for group in result.nodes for node in group["group"]]
    return result


# ---- neighbours ----------------------------------------------------------------------------------


def _neighbours(
    snapshot: Snapshot, result: ExploreResult, row: Row, hops: int, most: int, budget: int
) -> ExploreResult:
    found = around(snapshot, row["id"], hops, most)
    rows = _entities(snapshot, found.steps)
    head = f"# {one_line(row['title'], 120)} {bracketed(result.start, row['type'])}\n"
    if len(found.steps) == 1:
        result.text = f"{head}It has no relationships."
        context.note(result, f'Where it is named: get_entity(id_or_name="{result.start}").')
        return finish(result, budget)
    at_steps = [*found.steps.values()]
    seen = enumerate(found.found, 1)
    rings = [f"{at_steps.count(at)} of {all_} at {counted(at, 'steps')}" for at, all_ in seen]
    head += f"Entities near it, strongest first: {', '.join(rings)}."
    ids = [id for _, id in found.edges.values()][:SENTENCES]
    edges = statements(snapshot, ids, row["id"])
    in_edges = {item.data[end] for item in edges if item.data for end in ("source", "target")}
    near = {id: row for id, row in rows.items() if f"e{row['n']}" not in in_edges}
    others = {id: hop for id, hop in found.steps.items() if hop and id in near}
    sections = [
        Section("Relationships", edges, 0.7, more=len(edges) < len(found.edges), into="edges"),
        Section("Also near it", _entity_items(rows, others), 0.3),
    ]
    result.nodes = [_node(rows[id], hop) for id, hop in found.steps.items() if id in rows]
    other = next(rows[id] for id in found.steps if id != row["id"])
    result = _composed(result, sections, budget, head)
    result.next_call = f'explore_graph(start="{result.start}", goal="e{other["n"]}")'
    if hops < HOPS[2] and sum(found.found) < most and not result.truncated:
        result.next_call = f'explore_graph(start="{result.start}", hops={hops + 1})'
    return finish(result, budget)


# ---- paths ---------------------------------------------------------------------------------------


def _connected(
    snapshot: Snapshot,
    result: ExploreResult,
    ends: Sequence[Row],
    paths: Sequence[Path],
    budget: int,
) -> ExploreResult:
    steps: dict[str, int] = {}
    for path in paths:
        for at, id in enumerate(path.entities):
            steps[id] = min(at, steps.get(id, at))
    rows = _entities(snapshot, steps)
    links = list(dict.fromkeys(id for path in paths for id in path.relationships))
    numbers = snapshot.served("relationships", links, ["id", "n"])
    alias = {row["id"]: f"r{row['n']}" for row in numbers}
    strongest = max(paths, key=lambda path: round(path.strength, 12))
    items = []
    for number, path in enumerate(paths):
        kinds = ["shortest"] * (number == 0) + ["strongest"] * (path is strongest)
        kind = ", ".join(kinds) or "another"
        ids = [alias[id] for id in path.relationships]
        chain = _named(rows[path.entities[0]])
        for id, entity in zip(ids, path.entities[1:], strict=True):
            chain += f" -[{id}]- {_named(rows[entity])}"
        data = {"kind": kind, "entities": [f"e{rows[id]['n']}" for id in path.entities]}
        data |= {"relationships": ids, "strength": float(f"{path.strength:.3g}")}
        items.append(Item(f"p{number}", f"{number + 1}. {kind}: {chain}", data=data))
    edges = statements(snapshot, links[:SENTENCES])
    sections = [
        Section("Paths", items, 0.4, into="paths"),
        Section("Relationships", edges, 0.6, into="edges"),
    ]
    result.nodes = [_node(rows[id], hop) for id, hop in steps.items() if id in rows]
    intro = f"# How {_named(ends[0])} and {_named(ends[1])} are connected"
    result = _composed(result, sections, budget, intro)
    shown = {edge["id"] for edge in result.edges}
    if left := {id for path in result.paths for id in path["relationships"]} - shown:
        left_out = f"No room for the evidence of {counted(len(left), 'relationships')}"
        context.note(result, f"{left_out}: get_source gives each.")
    return finish(result, budget)


def _apart(result: ExploreResult, ends: Sequence[Row], budget: int) -> ExploreResult:
    result.state = "not_found"
    result.text = f"There is no path between {_named(ends[0])} and {_named(ends[1])}."
    query = " ".join(one_line(row["title"], 60).replace('"', "'") for row in ends)
    result.next_call = f'local_search(query="{query}")'
    return finish(result, budget)


# ---- where to begin ------------------------------------------------------------------------------


def _from_above(
    snapshot: Snapshot, result: ExploreResult, budget: int, number: int | None = None
) -> ExploreResult:
    """Central entities and the largest communities, of the corpus or directly under one community."""
    columns = ["id", "n", "level", "parent", "size"]
    if number is None:
        found = snapshot.rows("communities", "level = 0", columns).to_pylist()
        counters, members = snapshot.manifest.counters, None
        counts = [counted(counters.get(name, 0), name) for name in ("entities", "relationships")]
        counts.append(f"{counted(len(found), 'communities')} at the top")
        intro = f"# The graph of {result.corpus}\n{', '.join(counts)}."
    else:
        tops = snapshot.by_key("communities", [number], "n", [*columns, "entity_ids"]).to_pylist()
        if not tops:
            what = f"there is no community c{number}"
            raise NotFound(what, "Call explore_graph() for the top of the tree")
        found = snapshot.by_key("communities", [tops[0]["id"]], "parent", columns).to_pylist()
        members = snapshot.by_key("entities", tops[0]["entity_ids"], "id", ["id", "degree"])
        report = values_of(snapshot.by_key("reports", [number], "n", ["title"])["title"])
        title = one_line(report[0], 120) if report else "Community"
        under = f"{counted(len(found), 'communities')} directly under it"
        intro = f"# {title} (c{number})\n{counted(tops[0]['size'], 'entities')}, {under}."
        result.view = f"community/{number}"
    rows = _entities(snapshot, entities.central(snapshot, CENTRAL, members))
    sections = [
        Section("Entities", _entity_items(rows, dict.fromkeys(rows, 0)), 0.5, into="nodes"),
        Section("Communities", _communities(snapshot, found, number), 0.5, into="communities"),
    ]
    result = _composed(result, sections, budget, intro)
    if rows:
        result.next_call = f'explore_graph(start="e{next(iter(rows.values()))["n"]}")'
    context.note(
        result,
        "Give start= an entity for what is around it, start= a community (c5) for what is under it.",
    )
    return finish(result, budget)


def _communities(snapshot: Snapshot, communities: Sequence[Row], parent: int | None) -> list[Item]:
    """The largest of these communities, which are under community `parent`, or at the top."""
    largest = sorted(communities, key=lambda row: (-row["size"], row["id"]))[:LARGEST]
    titles = snapshot.by_key("reports", [row["id"] for row in largest], "id", ["id", "title"])
    title = dict(rows_of(titles))
    items = []
    for row in largest:
        id, name = f"c{row['n']}", one_line(title.get(row["id"], "(no report yet)"), 100)
        data = {"id": id, "title": name, "level": row["level"], "size": row["size"]}
        data["parent"] = f"c{parent}" if parent else ""
        items.append(Item(id, f"- [{id}] {name} ({counted(row['size'], 'entities')})", data=data))
    return items
