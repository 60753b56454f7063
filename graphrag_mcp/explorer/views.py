"""The data of single views: a community, an entity, a passage, a document, paths between two
entities.

Takes a snapshot and the numbers behind ids; gives plain dictionaries. Every statement comes with
`cites`: {id, start, end, title, uri, line, date}, where start and end are characters (code points)
of the text unit `id`, 0 and 0 where the whole text unit is cited. NotFound for unknown numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.explorer.topics import NUMBERED, TITLE, Topic, brief, named, topics
from graphrag_mcp.packing.budget import one_line, referenced_ids
from graphrag_mcp.query import context, filters
from graphrag_mcp.store.tables import Snapshot

MEMBERS, DOCUMENTS, RELATIONS, STATEMENTS, PARTS = 60, 40, 40, 12, 400
LONG = 1_200  # characters of a statement or description
NAMES = 24  # entities named beside a passage

Row = Mapping[str, Any]
Data = dict[str, Any]
_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")


class Sources:
    """The text units that a view cites, read once."""

    def __init__(self, snapshot: Snapshot, ids: Iterable[str], texts: bool = False) -> None:
        names = ["id", "n", "document_id", "line_start", *(["text"] if texts else [])]
        rows = snapshot.by_key("text_units", list(dict.fromkeys(ids)), "id", names).to_pylist()
        self.units = {row["id"]: row for row in rows}
        self.documents = filters.documents(snapshot)

    def cite(self, unit: str, start: int = 0, end: int = 0) -> Data | None:
        """One citation; None where the text unit is gone."""
        row = self.units.get(unit)
        fact = self.documents.get(row["document_id"]) if row else None
        if row is None or fact is None:
            return None
        place = {"id": f"t{row['n']}", "start": start, "end": end, "line": row["line_start"]}
        return {**place, **_document(fact)}

    def quoted(self, unit: str, said: str) -> Data | None:
        """The citation of a sentence, with its place in the text unit where it stands there."""
        row = self.units.get(unit)
        start, end = place_of(said, row.get("text", "")) if row else (0, 0)
        return self.cite(unit, start, end)


def place_of(said: str, text: str) -> tuple[int, int]:
    """Where a sentence stands in a text, line breaks and spaces aside; (0, 0) where it does not."""
    said = said.strip().removesuffix("…").removesuffix("...").strip()
    if (at := text.find(said)) >= 0 and said:
        return at, at + len(said)
    words = said[:1_000].split()
    if len(words) < 3:
        return 0, 0
    found = re.search(r"[\s*_>#|-]{1,40}".join(map(re.escape, words)), text)
    return found.span() if found else (0, 0)


def _document(fact: Row) -> Data:
    _, _, title, uri, name = fact["document"]
    place = {"title": one_line(title or name, TITLE), "uri": one_line(uri, TITLE)}
    return {**place, "date": fact["date"]}


def paper(fact: Row) -> Data:
    """A document in a list."""
    return {"n": int(fact["document"][0][1:]), **_document(fact)}


def _numbered(snapshot: Snapshot, table: str, n: int, what: str) -> Row:
    found = context.numbered(snapshot, table, [n])
    if not found:
        raise NotFound(f"there is no {what}{n} in this index any more", "Search for it")
    return found[0]


def _communities(snapshot: Snapshot, id: str) -> list[Topic]:
    """Those that hold an entity or a text unit, the coarsest first."""
    rows = snapshot.by_key("memberships", [id], "entity_id", ["path"]).to_pylist()
    known = topics(snapshot).by_id
    return [known[one] for one in (rows[0]["path"] if rows else ()) if one in known]


# ---- community --------------------------------------------------------------------------------------


def community(snapshot: Snapshot, n: int) -> Data:
    """One community: its report with citations, what it holds, where it stands."""
    row, found = _numbered(snapshot, "reports", n, "c"), topics(snapshot)
    one = found.by_id.get(row["id"])
    if one is None:
        raise NotFound(f"c{n} is no community of this generation", "Search for it")
    findings = context.findings(row)
    texts = [row["summary"], *(finding.get("explanation", "") for finding in findings)]
    cited = [id for text in texts for id in referenced_ids(text).get("Sources", ())]
    sources = Sources(snapshot, cited, texts=True)
    members = snapshot.by_key("entities", row["entity_ids"], "id", NUMBERED)
    ranked = sorted(members.to_pylist(), key=lambda one: (-one["degree"], one["n"]))
    units = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["document_id"])
    documents = list(dict.fromkeys(units["document_id"].to_pylist()))
    papers = [paper(sources.documents[id]) for id in documents if id in sources.documents]
    papers.sort(key=lambda one: (one["date"] or "9999", one["title"]))
    return {
        **brief(one),
        "level": one.level,
        "parents": [brief(above) for above in found.parents(one.id)],
        "report": {
            "method": row["method"],
            "paragraphs": statements(row["summary"], sources),
            "findings": [_finding(finding, sources) for finding in findings],
        },
        "children": [brief(found.by_id[id]) for id in one.children],
        "members": [named(member) for member in ranked[:MEMBERS]],
        "documents": papers[:DOCUMENTS],
        "more": {
            "members": max(0, len(ranked) - MEMBERS),
            "documents": max(0, len(papers) - DOCUMENTS),
        },
    }


def _finding(one: Mapping[str, str], sources: Sources) -> Data:
    """What is found, with a title where its first statement does not say the same."""
    summary, said = one.get("summary", ""), one.get("explanation", "")
    title = "" if said.startswith(summary) else one_line(_DATA.sub("", summary), 200)
    return {"title": title, "statements": statements(said, sources)}


def statements(text: str, sources: Sources) -> list[Data]:
    """The sentences of a report, each with the text units that its reference names."""
    found: list[Data] = []
    at = 0
    for match in _DATA.finditer(text):
        said = text[at : match.start()].strip()
        at = match.end()
        ids = referenced_ids(match[0]).get("Sources", [])[:5]
        cites = [cite for id in ids if (cite := sources.quoted(id, said)) is not None]
        if said.strip(" .;,"):
            found.append({"text": one_line(said, LONG), "cites": cites})
        elif found:
            found[-1]["cites"] += cites
    rest = text[at:].strip()
    if rest.strip(" .;,。"):
        found.append({"text": one_line(rest, LONG), "cites": []})
    return found


# ---- entity -----------------------------------------------------------------------------------------


def entity(snapshot: Snapshot, n: int) -> Data:
    """One entity: what is said of it and where, its strongest neighbours and what links these."""
    from graphrag_mcp.query.explore import Graph

    row = _numbered(snapshot, "entities", n, "e")
    id = row["id"]
    of_it = f"source_id = '{id}' OR target_id = '{id}'"
    light = snapshot.rows("relationships", of_it, ["id", "weight"])
    ranked = sorted(light.to_pylist(), key=lambda one: (-one["weight"], one["id"]))
    links = snapshot.served("relationships", [one["id"] for one in ranked[:RELATIONS]])
    others = [one["target_id"] if one["source_id"] == id else one["source_id"] for one in links]
    rows = snapshot.by_key("entities", others, "id", ["id", "n", "title", "type"]).to_pylist()
    names = {other["id"]: other for other in rows}
    claims = context.claim_rows(snapshot, [row])[:STATEMENTS]
    cited = [one["text_unit_id"] for link in [row, *links] for one in link["evidence"]]
    sources = Sources(snapshot, [*cited, *(claim["text_unit_id"] for claim in claims)])
    said = [_evidence(one, sources) for one in row["evidence"][:STATEMENTS]]
    between = Graph(snapshot).between(list(names)) if len(names) > 1 else {}
    described = one_line(row["description"], LONG)
    return {
        **named(row),
        "aliases": [one_line(one, TITLE) for one in row["aliases"][:10]],
        "texts": row["frequency"],
        "description": "" if said and said[0]["text"] in described else described,
        "communities": [brief(one) for one in _communities(snapshot, id)],
        "statements": said,
        "claims": [_claim(one, sources) for one in claims],
        "relations": [
            {"other": named(names[other]), "weight": link["weight"], **_link(link, sources)}
            for link, other in zip(links, others, strict=True)
            if other in names
        ],
        "edges": [
            [names[a]["n"], names[b]["n"], weight] for (a, b), (weight, _) in between.items()
        ],
        "more": {"relations": max(0, len(ranked) - RELATIONS)},
    }


def _evidence(one: Row, sources: Sources) -> Data:
    cite = sources.cite(one["text_unit_id"], one["start"], one["end"])
    return {"text": one_line(one["text"], LONG), "cites": [cite] if cite else []}


def _link(row: Row, sources: Sources) -> Data:
    """What is said of a relationship, with its sentences."""
    told = [_evidence(one, sources) for one in row["evidence"][:3]]
    text = one_line(row["description"], LONG) or (told[0]["text"] if told else "")
    if told and told[0]["text"] and told[0]["text"] in text:
        text = told[0]["text"]
    return {"text": text, "cites": [cite for one in told for cite in one["cites"]]}


def _claim(row: Row, sources: Sources) -> Data:
    spans = row["spans"]
    cite = sources.cite(row["text_unit_id"], *(spans[:2] if len(spans) > 1 else (0, 0)))
    dates = " to ".join(dict.fromkeys(filter(None, (row["start_date"][:10], row["end_date"][:10]))))
    about = ", ".join(filter(None, (row["type"].lower(), row["status"].lower(), dates)))
    return {
        "text": f"{one_line(row['description'], LONG)} ({about})",
        "cites": [cite] if cite else [],
    }


# ---- paths ------------------------------------------------------------------------------------------


def path(snapshot: Snapshot, n: int, to: int) -> Data:
    """How two entities are connected: the strongest way first, each step with its sentence."""
    from graphrag_mcp.query.explore import Graph, connect

    ends = [_numbered(snapshot, "entities", one, "e") for one in (n, to)]
    if n == to:
        raise BadInput("a path needs two different names", "Choose another one")
    found = connect(Graph(snapshot), ends[0]["id"], ends[1]["id"])
    ways = sorted(found.paths, key=lambda one: -round(one.strength, 12))
    ids = [id for way in ways for id in way.entities]
    rows = snapshot.by_key("entities", ids, "id", ["id", "n", "title", "type"]).to_pylist()
    names = {row["id"]: named(row) for row in rows}
    ids = [id for way in ways for id in way.relationships]
    links = {row["id"]: row for row in snapshot.served("relationships", ids)}
    cited = [one["text_unit_id"] for row in links.values() for one in row["evidence"][:3]]
    sources, paths = Sources(snapshot, cited), []
    for way in ways:
        steps = []
        for a, b, link in zip(way.entities, way.entities[1:], way.relationships, strict=False):
            if a in names and b in names and link in links:
                step = {"from": names[a], "to": names[b], "weight": links[link]["weight"]}
                steps.append({**step, **_link(links[link], sources)})
        paths += [steps] if steps else []
    reached = [len(side) - 1 for side in found.reached]
    result = {"from": named(ends[0]), "to": named(ends[1]), "paths": paths}
    return {**result, "whole": found.whole, "reached": reached}


# ---- texts ------------------------------------------------------------------------------------------


def passage(snapshot: Snapshot, n: int) -> Data:
    """A text unit in full. `parts`: [start, end] of its passages, in its own characters."""
    found = context.numbered(snapshot, "text_units", [n])
    if not found:
        what = f"t{n} is not in this index any more: its document was changed or removed"
        raise NotFound(what, "Search")
    unit = found[0]
    facts = filters.documents(snapshot)
    if unit["document_id"] not in facts:
        raise NotFound(f"the document of t{n} cannot be read", "Run doctor")
    document = paper(facts[unit["document_id"]])
    start, near = unit["char_start"], [unit["chunk_index"] - 1, unit["chunk_index"] + 1]
    where = f"document_id = '{unit['document_id']}' AND chunk_index IN ({near[0]}, {near[1]})"
    beside = snapshot.rows("text_units", where, ["n", "chunk_index"]).to_pylist()
    neighbour = {row["chunk_index"]: f"t{row['n']}" for row in beside}
    rows = sorted(context.numbered(snapshot, "passages", [n]), key=lambda row: row["part"])
    ids = list(dict.fromkeys(id for row in rows for id in row["entity_ids"]))
    people = snapshot.by_key("entities", ids, "id", NUMBERED).to_pylist()
    people.sort(key=lambda row: (-row["degree"], row["n"]))
    return {
        "id": f"t{n}",
        "title": document["title"],
        "document": document,
        "line": unit["line_start"],
        "last_line": unit["line_end"],
        "text": unit["text"],
        "parts": [[row["char_start"] - start, row["char_end"] - start] for row in rows],
        "before": neighbour.get(near[0], ""),
        "after": neighbour.get(near[1], ""),
        "entities": [named(row) for row in people[:NAMES]],
        "communities": [brief(one) for one in _communities(snapshot, unit["id"])],
    }


def document(snapshot: Snapshot, n: int) -> Data:
    """A document: how each of its text units begins, and the communities that these are in."""
    rows = snapshot.by_key("documents", [n], "n", ["id"]).to_pylist()
    fact = filters.documents(snapshot).get(rows[0]["id"]) if rows else None
    if fact is None:
        raise NotFound(f"d{n} is not in this index any more", "Search")
    columns = ["id", "n", "chunk_index", "line_start", "text"]
    units = snapshot.by_key("text_units", [rows[0]["id"]], "document_id", columns).to_pylist()
    units.sort(key=lambda row: row["chunk_index"])
    ids = [unit["id"] for unit in units]
    known = topics(snapshot).by_id
    ways: Sequence[Row] = snapshot.by_key("memberships", ids, "entity_id", ["path"]).to_pylist()
    ends = (way["path"][-1] for way in ways if way["path"])
    last = dict.fromkeys(end for end in ends if end in known)
    return {
        **paper(fact),
        "communities": [brief(known[id]) for id in last][:12],
        "units": [
            {
                "id": f"t{unit['n']}",
                "line": unit["line_start"],
                "first": one_line(unit["text"][:800], 200),
            }
            for unit in units[:PARTS]
        ],
        "more": max(0, len(units) - PARTS),
    }
