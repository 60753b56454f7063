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
from graphrag_mcp.query.graph import around, connect
from graphrag_mcp.query.notes import joined
from graphrag_mcp.store.tables import Snapshot, notes_alone, rows_of, values_of
from graphrag_mcp.text.terms import bracketed, counted
from graphrag_mcp.types import EntityResult, ExploreResult

Found = TypeVar("Found", EntityResult, ExploreResult)

Row = dict[str, Any]
DEFAULT_TOKENS = 4_000
HOPS = (1, 1, 4)  # default, least, most
NODES = (30, 2, 200)
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
    kinds = [kind.strip().lower() for kind in kinds if kind.strip()]
    known = [kind for extension in plugin.plugins().values() for kind in extension.kinds]
    unknown = [kind for kind in kinds if known and kind not in known]
    if unknown and kinds != [links.LINKS]:
        raise BadInput(f"there is no kind {unknown[0][:40]!r}", f"Use {links.LINKS} alone, or {', '.join(known)}")
    if direction not in ("", "in", "out"):
        raise BadInput(f"there is no direction {direction[:40]!r}", "Use in or out")
    if kinds == [links.LINKS]:
        return links.explore(snapshot, result, start, goal, direction, budget)
    if not snapshot.manifest.counters.get("entities", snapshot.count("entities")):
        alone = notes_alone(snapshot)
        result.state, result.text = "not_found", "This corpus has no entities yet."
        result.hint = joined(result.hint, alone)
        result.next_call = "list_documents()" if alone else 'index_documents(paths=["..."])'
        return finish(result, budget)
    topic = re.fullmatch(r"[cC](\d{1,12})", start)
    if not goal and (not start or topic):
        return finish(_from_above(snapshot, result, budget, int(topic[1]) if topic else 0), budget)
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
        return finish(_neighbours(snapshot, result, ends[0], hops, nodes, budget), budget)
    result.goal = f"e{ends[1]['n']}"
    if result.start == result.goal:
        what = f"{start[:60]!r} and {goal[:60]!r} are one entity, {_named(ends[0])}"
        raise BadInput(what, "Give two different ones, or no goal for what is around it")
    return finish(_connected(snapshot, result, ends, budget), budget)


def candidates(snapshot: Snapshot, result: Found, asked: str, found: Sequence[Row], budget: int, advice: str) -> Found:
    """Several entities could be meant, or none: what tells them apart."""
    result.state = "not_found"
    items = []
    for row in found:
        facts = entity_facts(row)
        described = context.first_sentence(row["description"], 160)
        items.append(Item(facts["id"], f"{_shown(facts)}: {described}", data=facts))
    intro = f"There is no entity named {one_line(asked, 100)!r}."
    intro += " Did you mean one of these?" if items else ""
    context.note(result, joined(notes_alone(snapshot), advice))
    sections = [Section("Candidates", items, 1.0, into="candidates")]
    return compose(result, sections, budget, intro=intro)


# ---- entities and relationships ------------------------------------------------------------------


def _entities(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, Row]:
    """Rows by id, in the order of the ids; an entity whose row is gone is missing."""
    return {row["id"]: row for row in snapshot.served("entities", list(ids), NAMES)}


def _named(row: Row) -> str:
    return f"{one_line(row['title'], 80)} (e{row['n']})"


def _shown(node: Mapping[str, Any]) -> str:
    facts = bracketed(node["type"], counted(node["degree"], "relationships"))
    return f"- [{node['id']}] {node['title']} {facts}"


def entity_facts(row: Row) -> dict[str, Any]:
    title, id = one_line(row["title"], 80), f"e{row['n']}"
    return {"id": id, "title": title, "type": row["type"], "degree": row["degree"]}


def _nodes(rows: Mapping[str, Row], hops: Mapping[str, int]) -> list[dict[str, Any]]:
    """The entities at these distances."""
    return [entity_facts(rows[id]) | {"hops": hop} for id, hop in hops.items() if id in rows]


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
            place = f"[{cited.id}]{context.where(cited)}"
            sentence = f"{sentence} {place}" if again == id else f"as {again} [{cited.id}]"
        names = " - ".join(_named(end) for end in ends if end["id"] != start)
        data = {"id": id, "source": f"e{ends[0]['n']}", "target": f"e{ends[1]['n']}"}
        data["weight"] = round(row["weight"], 3)
        line = f"- [{id}] {names}, weight {row['weight']:g}: {sentence}"
        items.append(Item(id, line, cited, score=row["weight"], data=data))
    return items


# ---- what is shown -------------------------------------------------------------------------------


def _neighbours(
    snapshot: Snapshot, result: ExploreResult, row: Row, hops: int, most: int, budget: int
) -> ExploreResult:
    """The entities around one, with the relationships that lead to them."""
    found = around(snapshot, row["id"], hops, most)
    rows = _entities(snapshot, found.steps)
    head = f"# {one_line(row['title'], 120)} {bracketed(result.start, row['type'])}\n"
    if len(found.steps) == 1:
        result.text = f"{head}It has no relationships."
        context.note(result, f'Where it is named: get_entity(id_or_name="{result.start}").')
        return result
    at_steps = [*found.steps.values()]
    rings = [f"{at_steps.count(at)} of {every} at {counted(at, 'steps')}" for at, every in enumerate(found.found, 1)]
    head += f"Entities near it, strongest first: {', '.join(rings)}."
    edges = statements(snapshot, [id for _, id in found.edges.values()][:SENTENCES], row["id"])
    nodes = _nodes(rows, found.steps)
    in_edges = {item.data[end] for item in edges if item.data for end in ("source", "target")}
    others = [Item(node["id"], _shown(node)) for node in nodes[1:] if node["id"] not in in_edges]
    sections = [
        Section("Relationships", edges, 0.7, more=len(edges) < len(found.edges), into="edges"),
        Section("Also near it", others, 0.3),
    ]
    result = compose(result, sections, budget, intro=head)
    result.nodes = nodes
    result.next_call = f'explore_graph(start="{result.start}", goal="{nodes[1]["id"]}")'
    if hops < HOPS[2] and sum(found.found) < most and not result.truncated:
        result.next_call = f'explore_graph(start="{result.start}", hops={hops + 1})'
    return result


def _connected(snapshot: Snapshot, result: ExploreResult, ends: Sequence[Row], budget: int) -> ExploreResult:
    """The shortest and the strongest path between two entities, with the sentences of each step."""
    paths = connect(snapshot, ends[0]["id"], ends[1]["id"])
    if not paths:
        result.state = "not_found"
        result.text = f"There is no path between {_named(ends[0])} and {_named(ends[1])}."
        query = " ".join(one_line(row["title"], 60).replace('"', "'") for row in ends)
        result.next_call = f'local_search(query="{query}")'
        return result
    steps = {id: at for path in reversed(paths) for at, id in enumerate(path.entities)}
    rows = _entities(snapshot, steps)
    links = list(dict.fromkeys(id for path in paths for id in path.relationships))
    numbers = snapshot.served("relationships", links, ["id", "n"])
    alias = {row["id"]: f"r{row['n']}" for row in numbers}
    items = []
    kinds = ["shortest", "strongest"] if len(paths) > 1 else ["shortest, strongest"]
    for number, (path, kind) in enumerate(zip(paths, kinds, strict=True), 1):
        ids = [alias[id] for id in path.relationships]
        chain = _named(rows[path.entities[0]])
        for id, entity in zip(ids, path.entities[1:], strict=True):
            chain += f" -[{id}]- {_named(rows[entity])}"
        data = {"kind": kind, "entities": [f"e{rows[id]['n']}" for id in path.entities]}
        data |= {"relationships": ids, "strength": float(f"{path.strength:.3g}")}
        items.append(Item(f"p{number}", f"{number}. {kind}: {chain}", data=data))
    sections = [
        Section("Paths", items, 0.4, into="paths"),
        Section("Relationships", statements(snapshot, links[:SENTENCES]), 0.6, into="edges"),
    ]
    intro = f"# How {_named(ends[0])} and {_named(ends[1])} are connected"
    result = compose(result, sections, budget, intro=intro)
    result.nodes = _nodes(rows, dict(sorted(steps.items(), key=lambda step: step[1])))
    return result


def _from_above(snapshot: Snapshot, result: ExploreResult, budget: int, number: int) -> ExploreResult:
    """Central entities and the largest communities, of the corpus or directly under one community."""
    columns, members = ["id", "n", "level", "size"], None
    if not number:
        found = snapshot.rows("communities", "level = 0", columns).to_pylist()
        counters = snapshot.manifest.counters
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
    central = entities.central(snapshot, CENTRAL, members)
    nodes = _nodes(_entities(snapshot, central), dict.fromkeys(central, 0))
    items = [Item(node["id"], _shown(node), data=node) for node in nodes]
    below = _communities(snapshot, found, f"c{number}" if number else "")
    sections = [Section("Entities", items, 0.5, into="nodes"), Section("Communities", below, 0.5, into="communities")]
    result = compose(result, sections, budget, intro=intro)
    if nodes:
        result.next_call = f'explore_graph(start="{nodes[0]["id"]}")'
    advice = "Give start= an entity for what is around it, start= a community (c5) for what is under it."
    context.note(result, advice)
    return result


def _communities(snapshot: Snapshot, communities: Sequence[Row], parent: str) -> list[Item]:
    """The largest of these communities, which are under community `parent`, or at the top."""
    largest = sorted(communities, key=lambda row: (-row["size"], row["id"]))[:LARGEST]
    titles = snapshot.by_key("reports", [row["id"] for row in largest], "id", ["id", "title"])
    title = dict(rows_of(titles))
    items = []
    for row in largest:
        id, name = f"c{row['n']}", one_line(title.get(row["id"], "(no report yet)"), 100)
        data = {"id": id, "title": name, "level": row["level"], "size": row["size"]}
        line = f"- [{id}] {name} ({counted(row['size'], 'entities')})"
        items.append(Item(id, line, data=data | {"parent": parent}))
    return items
