"""Views of entities: one with its relationships, the most connected ones, and the ways between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from graphrag_mcp.errors import BadInput
from graphrag_mcp.explorer.citing import LONG, Row, Sources, Statement, left_out, numbered
from graphrag_mcp.explorer.topics import NUMBERED, TITLE, Brief, Named, brief, holding, named
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import entities, filters
from graphrag_mcp.query.graph import Path, between, connect, graph_of, strongest
from graphrag_mcp.store.tables import Snapshot

RELATIONS, STATEMENTS, ALIASES = 40, 12, 10  # in the lists of an entity
DRAWN = 400  # entities of the view of the graph
CITED = 3  # sentences of a relationship

Edge = list[Any]  # number, number, weight, first date of the sentences


class Mark(Named):
    """An entity as a mark of the graph; its importance is its number of relationships. In the view of
    the graph it also has the place of its topic on the map, and the number of its top topic."""

    degree: int
    x: NotRequired[float]
    y: NotRequired[float]
    topic: NotRequired[int]


class Relation(Statement):
    other: Mark
    weight: float


class Entity(Mark):
    """`texts`: how many text units name it; `edges`: what links its neighbours."""

    aliases: list[str]
    texts: int
    description: str
    communities: list[Brief]
    statements: list[Statement]
    relations: list[Relation]
    edges: list[Edge]
    more: dict[str, int]


class Coloured(Brief):
    colour: int


class EntityGraph(TypedDict):
    nodes: list[Mark]
    edges: list[Edge]
    topics: list[Coloured]
    more: int


# Some of the keys are words of Python.
Step = TypedDict("Step", {"from": Mark, "to": Mark, "weight": float, "text": str, "cites": list[Any]})
Ways = TypedDict("Ways", {"from": Mark, "to": Mark, "paths": list[list[Step]], "reached": list[int]})


def mark(row: Row) -> Mark:
    """A row of an entity as a mark."""
    return {**named(row), "degree": row["degree"]}


def entity(snapshot: Snapshot, n: int) -> Entity:
    """The entity e`n`: what is stated of it and where, its strongest neighbours and what links these.
    Raises NotFound."""
    row = numbered(snapshot, "entities", n, "e")
    id = row["id"]
    ranked = strongest(snapshot, id)
    links = snapshot.served("relationships", ranked[:RELATIONS])
    others = [link["target_id"] if link["source_id"] == id else link["source_id"] for link in links]
    neighbours = {other["id"]: other for other in snapshot.served("entities", others, NUMBERED)}
    cited = [sentence["text_unit_id"] for link in [row, *links] for sentence in link["evidence"]]
    sources = Sources(snapshot, cited)
    evidence = [sources.evidence(sentence) for sentence in row["evidence"][:STATEMENTS]]
    described = one_line(row["description"], LONG)
    if evidence and described[:40] in evidence[0]["text"]:
        described = ""
    return {
        **mark(row),
        "aliases": [one_line(alias, TITLE) for alias in row["aliases"][:ALIASES]],
        "texts": row["frequency"],
        "description": described,
        "communities": [brief(topic) for topic in holding(snapshot, [id]).get(id, [])],
        "statements": evidence,
        "relations": [
            {"other": mark(neighbours[other]), "weight": link["weight"], **_relationship(link, sources)}
            for link, other in zip(links, others, strict=True)
            if other in neighbours
        ],
        "edges": _edges(snapshot, neighbours),
        "more": {"relations": left_out(ranked, RELATIONS)},
    }


def entity_graph(snapshot: Snapshot) -> EntityGraph:
    """The most connected entities and the relationships among them. An entity begins at the place of
    its topic on the map, so that the layout has the entities of a topic beside each other."""
    rows = snapshot.served("entities", entities.central(snapshot, DRAWN), NUMBERED)
    edges = _edges(snapshot, {row["id"]: row for row in rows})
    ends = {n for edge in edges for n in edge[:2]}
    rows = [row for row in rows if row["n"] in ends] or rows  # the others have nothing to show here
    paths = holding(snapshot, [row["id"] for row in rows])
    nodes: list[Mark] = []
    tops: Counter[int] = Counter()
    for row in rows:
        node = mark(row)
        if path := paths.get(row["id"]):
            node["x"], node["y"] = round(path[-1].circle.x, 4), round(path[-1].circle.y, 4)
            node["topic"] = path[0].n
            tops[path[0].n] += 1
        nodes.append(node)
    by_number = {topic.n: topic for path in paths.values() for topic in path[:1]}
    listed = sorted(tops, key=lambda n: (-tops[n], n))
    total = snapshot.manifest.counters.get("entities", 0)
    return {
        "nodes": nodes,
        "edges": edges,
        "topics": [{**brief(by_number[n]), "colour": by_number[n].colour} for n in listed],
        "more": max(0, total - len(rows)),
    }


def path(snapshot: Snapshot, n: int, to: int) -> Ways:
    """How e`n` and e`to` are connected: the strongest way first, each step with its sentence. `reached`:
    how many entities each end reaches, where there is no way. Raises NotFound and BadInput."""
    start, goal = (numbered(snapshot, "entities", number, "e") for number in (n, to))
    if n == to:
        raise BadInput("a path needs two different names", "Choose another one")
    ways = connect(snapshot, start["id"], goal["id"])
    ways.sort(key=lambda way: -round(way.strength, 12))
    graph = graph_of(snapshot)
    reached = [0, 0] if ways else [graph.reached(row["id"]) - 1 for row in (start, goal)]
    return {"from": mark(start), "to": mark(goal), "paths": _steps(snapshot, ways), "reached": reached}


def _steps(snapshot: Snapshot, ways: Sequence[Path]) -> list[list[Step]]:
    """The steps of each way, without those whose rows are gone."""
    ids = [id for way in ways for id in way.entities]
    marks = {row["id"]: mark(row) for row in snapshot.served("entities", ids, NUMBERED)}
    ids = [id for way in ways for id in way.relationships]
    links = {row["id"]: row for row in snapshot.served("relationships", ids)}
    cited = [sentence["text_unit_id"] for row in links.values() for sentence in row["evidence"]]
    sources = Sources(snapshot, cited)
    found: list[list[Step]] = []
    for way in ways:
        steps: list[Step] = []
        for a, b, id in zip(way.entities, way.entities[1:], way.relationships, strict=False):
            if a in marks and b in marks and id in links:
                statement = _relationship(links[id], sources)
                weight = links[id]["weight"]
                steps.append({"from": marks[a], "to": marks[b], "weight": weight, **statement})
        found += [steps] if steps else []
    return found


def _edges(snapshot: Snapshot, rows: Mapping[str, Row]) -> list[Edge]:
    """The relationships among entities (`rows` by id): [n, n, weight, first date of their sentences]."""
    found = between(snapshot, rows)
    columns = ["id", "evidence"]
    links = snapshot.by_key("relationships", [id for _, id in found.values()], "id", columns)
    cited = {link["id"]: [sentence["text_unit_id"] for sentence in link["evidence"]] for link in links.to_pylist()}
    units = list(dict.fromkeys(unit for ids in cited.values() for unit in ids))
    documents = filters.documents(snapshot)
    date_of = {
        unit["id"]: documents[unit["document_id"]].date
        for unit in snapshot.served("text_units", units, ["id", "document_id"])
        if unit["document_id"] in documents
    }
    edges: list[Edge] = []
    for (a, b), (weight, id) in found.items():
        dates = [date for unit in cited.get(id, ()) if (date := date_of.get(unit, ""))]
        edges.append([rows[a]["n"], rows[b]["n"], weight, min(dates, default="")])
    return edges


def _relationship(row: Row, sources: Sources) -> Statement:
    """What is stated of a relationship: its first sentence where the description repeats it."""
    sentences = [sources.evidence(sentence) for sentence in row["evidence"][:CITED]]
    text = one_line(row["description"], LONG)
    if sentences and sentences[0]["text"] and sentences[0]["text"] in text:
        text = sentences[0]["text"]
    return {"text": text, "cites": [cite for sentence in sentences for cite in sentence["cites"]]}
