"""The data of every view of the explorer: a view's name and parameters in, JSON out.

Views: the map, a community, an entity, a passage, a document, a path, the search box, DRIFT sessions,
changes since a generation, documents by time, the most connected entities, documents by their links.
Every statement comes with `cites`: {id, start, end, title, uri, line, date}, where start and end are
characters (code points) of the text unit `id`, 0 and 0 where the whole text unit is cited; `code` is true
where a hit or a sentence of a report touches a block of code. Credentials that stand in documents are
masked, in the text of a passage with as many characters, so that offsets stay right. GraphRAGError for
what is not there."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, cast

from graphrag_mcp import plugins
from graphrag_mcp.doctor import generations
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.explorer import topics as maps
from graphrag_mcp.explorer.library import library
from graphrag_mcp.explorer.topics import NUMBERED, TITLE, Topic, brief, named, topics
from graphrag_mcp.packing.budget import one_line, referenced_ids
from graphrag_mcp.query import (
    context,
    entities,
    filters,
    follow_ups,
    links,
    local,
    notes,
    render,
    reports,
    spelling,
    summaries,
    threads,
)
from graphrag_mcp.query.drift import marked, references
from graphrag_mcp.query.drift_state import STATUS, Walk, cited_aliases
from graphrag_mcp.query.graph import between, connect, graph_of
from graphrag_mcp.query.groups import characteristic
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.overview import asked_about
from graphrag_mcp.query.rank import Ranked
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import places
from graphrag_mcp.text.citing import file_and_key
from graphrag_mcp.text.prose import fences, readable
from graphrag_mcp.text.quote import best, clipped, marks
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.trust.fencing import SHOW_SECRETS, masked, spans
from graphrag_mcp.types import Citation

if TYPE_CHECKING:
    from graphrag_mcp.app import App

MEMBERS, DOCUMENTS, RELATIONS, STATEMENTS, PARTS = 60, 40, 40, 12, 400
SESSIONS, ANSWER, CITES, LISTED = 100, 4_000, 12, 200
LINKED = 400  # documents of the view of links
DRAWN = 400  # entities of the view of the graph
HELD = 40  # text units listed for a topic without subtopics
PASSAGES, ENTITIES, COMMUNITIES, LIT = 20, 12, 6, 40
FACETS = 60  # kinds of files, and folders, that a search can be narrowed to
YEARS = 4  # distinct years from which a timeline has a row a year
LONG = 1_200  # characters of a statement or description
SENTENCE = 320  # characters of a passage in the list
WITHIN = 50_000  # characters of a text unit in which a sentence is looked for; those of imports have any size
NAMES = 24  # entities named beside a passage

Row = dict[str, Any]
Data = dict[str, Any]
View = Callable[["App", Snapshot, Mapping[str, str]], Data]
# Between the words of a sentence stand line breaks, and marks of Markdown.
_WORDS = re.compile(r"[^\s*_>#|-]+")
_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")


# ---- citations ---------------------------------------------------------------------------------------


class Sources:
    """The text units that a view cites, read once."""

    def __init__(self, snapshot: Snapshot, ids: Iterable[str], texts: bool = False) -> None:
        names = ["id", "n", "document_id", "line_start", "char_start"]
        names += ["text"] if texts else []
        rows = snapshot.served("text_units", list(dict.fromkeys(ids)), names)
        self.units = {row["id"]: row for row in rows}
        placed = [row["id"] for row in rows if "places" in row and not texts]
        for row in snapshot.by_key("text_units", placed, "id", ["id", "text"]).to_pylist():
            self.units[row["id"]] |= row
        self.documents = filters.documents(snapshot)

    def cite(self, unit: str, start: int = 0, end: int = 0) -> Data | None:
        """One citation; None where the text unit is gone."""
        row = self.units.get(unit)
        fact = self.documents.get(row["document_id"]) if row else None
        if row is None or fact is None:
            return None
        place = {"id": f"t{row['n']}", "start": start, "end": end, "line": row["line_start"]}
        if end > start and in_code(row.get("text", ""), start, end):
            place["code"] = True
        return {**place, "place": places.of_row(row, start, end or -1), **_document(fact)}

    def quoted(self, unit: str, sentence: str) -> Data | None:
        """The citation of a sentence, with its place in the text unit where it stands there."""
        row = self.units.get(unit)
        start, end = place_of(sentence, row.get("text", "")) if row else (0, 0)
        return self.cite(unit, start, end)


def in_code(text: str, start: int, end: int) -> bool:
    """Does a part of a Markdown text touch a block of code, fenced or indented? Its signs are text then."""
    blocks = fences(text)
    before = bisect_right(blocks, start)
    line = text[text.rfind("\n", 0, start) + 1 : end]
    indented = line.startswith(("    ", "\t"))
    return before % 2 == 1 or bisect_left(blocks, end) > before or indented


def place_of(sentence: str, text: str) -> tuple[int, int]:
    """Where a sentence stands in a text, line breaks and spaces aside; (0, 0) where it does not."""
    sentence = sentence.strip().removesuffix("…").removesuffix("...").strip()
    if (at := text.find(sentence)) >= 0 and sentence:
        return at, at + len(sentence)
    # A pattern of the words would try a text of equal words from each of them.
    words = _WORDS.findall(sentence[:1_000])
    if len(words) < 3:
        return 0, 0
    runs = list(_WORDS.finditer(text[:WITHIN]))
    phrase, flat = " ".join(words), " ".join(run[0] for run in runs)
    if (at := flat.find(phrase)) < 0:
        return 0, 0
    begins = list(accumulate((len(run[0]) + 1 for run in runs), initial=0))

    def real(place: int) -> int:
        number = bisect_right(begins, place) - 1
        return runs[number].start() + place - begins[number]

    return real(at), real(at + len(phrase) - 1) + 1


def _document(fact: Mapping[str, Any]) -> Data:
    _, _, title, uri, name = fact["document"]
    place = {"title": one_line(title or name, TITLE), "uri": one_line(uri, TITLE)}
    code = {"code": True} if plugins.verbatim(uri) else {}
    return {**place, "date": fact["date"], **code}


def paper(fact: Mapping[str, Any]) -> Data:
    """A document in a list."""
    return {"n": int(fact["document"][0][1:]), **_document(fact)}


def _numbered(snapshot: Snapshot, table: str, n: int, what: str, why: str = "") -> Row:
    found = context.numbered(snapshot, table, [n])
    if not found:
        raise NotFound(f"there is no {what}{n} in this index any more{why}", "Search for it")
    return found[0]


def _communities(snapshot: Snapshot, id: str) -> list[maps.Topic]:
    """Those that hold an entity or a text unit, the coarsest first."""
    rows = snapshot.by_key("memberships", [id], "entity_id", ["path"]).to_pylist()
    known = topics(snapshot).by_id
    return [
        known[community_id]
        for community_id in (rows[0]["path"] if rows else ())
        if community_id in known
    ]


# ---- community --------------------------------------------------------------------------------------


def community(snapshot: Snapshot, n: int) -> Data:
    """One community: its report with citations, what it holds, where it stands."""
    row, found = _numbered(snapshot, "reports", n, "c"), topics(snapshot)
    topic = found.by_id.get(row["id"])
    if topic is None:
        raise NotFound(f"c{n} is no community of this generation", "Search for it")
    findings = context.findings(row)
    texts = [row["summary"], *(finding.get("explanation", "") for finding in findings)]
    cited = [id for text in texts for id in referenced_ids(text).get("Sources", ())]
    sources = Sources(snapshot, cited, texts=True)
    members = snapshot.by_key("entities", row["entity_ids"], "id", NUMBERED)
    ranked = sorted(members.to_pylist(), key=lambda member: (-member["degree"], member["n"]))
    units = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["document_id"])
    documents = list(dict.fromkeys(str(id) for id in units["document_id"].to_pylist()))
    written = summaries.of_documents(snapshot, documents)
    papers = [
        {**paper(sources.documents[id]), "summary": written.get(id, "")}
        for id in documents
        if id in sources.documents
    ]
    papers.sort(key=lambda document: (document["date"] or "9999", document["title"]))
    return {
        **brief(topic),
        "level": topic.level,
        "parents": [brief(above) for above in found.parents(topic.id)],
        "report": {
            "method": row["method"],
            "paragraphs": statements(row["summary"], sources),
            "findings": [_finding(finding, sources) for finding in findings],
        },
        "children": [brief(found.by_id[id]) for id in topic.children],
        "shared": [
            {**brief(other), "documents": count}
            for other, count in maps.beside(found, topic.id)[:COMMUNITIES]
        ],
        "passages": [] if topic.children else _beginnings(snapshot, row["text_unit_ids"], sources),
        "members": [named(member) for member in ranked[:MEMBERS]],
        "documents": papers[:DOCUMENTS],
        "more": {"members": _rest(ranked, MEMBERS), "documents": _rest(papers, DOCUMENTS)},
    }


def _beginnings(snapshot: Snapshot, ids: Sequence[str], sources: Sources) -> list[Data]:
    """How each text unit of a topic begins, in the order of the documents."""
    columns = ["n", "document_id", "chunk_index", "text"]
    units = snapshot.by_key("text_units", ids, "id", columns).to_pylist()
    facts = sources.documents
    units = [row for row in units if row["document_id"] in facts]
    units.sort(key=lambda row: (facts[row["document_id"]]["uri"], row["chunk_index"]))
    return [
        {
            "id": f"t{row['n']}",
            "title": paper(facts[row["document_id"]])["title"],
            "first": one_line(readable(row["text"][:800]), SENTENCE),
        }
        for row in units[:HELD]
    ]


def _rest(rows: Sequence[Any], shown: int) -> int:
    return max(0, len(rows) - shown)


def _finding(finding: Mapping[str, str], sources: Sources) -> Data:
    """What is found, with a title where its first statement does not say the same."""
    summary, explanation = finding.get("summary", ""), finding.get("explanation", "")
    title = "" if explanation.startswith(summary) else one_line(_DATA.sub("", summary), 200)
    return {"title": title, "statements": statements(explanation, sources)}


def statements(text: str, sources: Sources) -> list[Data]:
    """The sentences of a report, each with the text units that its reference names."""
    found: list[Data] = []
    at = 0
    for match in _DATA.finditer(text):
        sentence = text[at : match.start()].strip()
        at = match.end()
        ids = referenced_ids(match[0]).get("Sources", [])[:5]
        cites = [cite for id in ids if (cite := sources.quoted(id, sentence)) is not None]
        if sentence.strip(" .;,"):
            found.append({"text": one_line(sentence, LONG), "cites": cites})
        elif found:
            found[-1]["cites"] += cites
    rest = text[at:].strip()
    if rest.strip(" .;,。"):
        found.append({"text": one_line(rest, LONG), "cites": []})
    return found


# ---- entity -----------------------------------------------------------------------------------------


def entity(snapshot: Snapshot, n: int) -> Data:
    """One entity: what is said of it and where, its strongest neighbours and what links these."""
    row = _numbered(snapshot, "entities", n, "e")
    id = row["id"]
    of_it = f"source_id = '{id}' OR target_id = '{id}'"
    light = snapshot.rows("relationships", of_it, ["id", "weight"])
    ranked = sorted(light.to_pylist(), key=lambda link: (-link["weight"], link["id"]))
    links = snapshot.served("relationships", [link["id"] for link in ranked[:RELATIONS]])
    others = [link["target_id"] if link["source_id"] == id else link["source_id"] for link in links]
    rows = snapshot.served("entities", others, ["id", *NUMBERED[1:]])
    names = {other["id"]: other for other in rows}
    claims = context.claim_rows(snapshot, [row])[:STATEMENTS]
    cited = [sentence["text_unit_id"] for link in [row, *links] for sentence in link["evidence"]]
    sources = Sources(snapshot, [*cited, *(claim["text_unit_id"] for claim in claims)])
    evidence = [_evidence(sentence, sources) for sentence in row["evidence"][:STATEMENTS]]
    described = one_line(row["description"], LONG)
    return {
        **marked_entity(row),
        "aliases": [one_line(alias, TITLE) for alias in row["aliases"][:10]],
        "texts": row["frequency"],
        "description": "" if evidence and described[:40] in evidence[0]["text"] else described,
        "communities": [brief(topic) for topic in _communities(snapshot, id)],
        "statements": evidence,
        "claims": [_claim(claim, sources) for claim in claims],
        "relations": [
            {"other": marked_entity(names[other]), "weight": link["weight"], **_link(link, sources)}
            for link, other in zip(links, others, strict=True)
            if other in names
        ],
        "edges": _edges(snapshot, names),
        "more": {"relations": _rest(ranked, RELATIONS)},
    }


def marked_entity(row: Row) -> Data:
    """An entity as a mark of the graph: its importance is its number of relationships."""
    return {**named(row), "degree": row["degree"]}


def _edges(snapshot: Snapshot, names: Mapping[str, Row]) -> list[list[Any]]:
    """The relationships among entities: [n, n, weight, first date of their sentences]."""
    found = between(snapshot, names)
    ids = [id for _, id in found.values()]
    rows = snapshot.by_key("relationships", ids, "id", ["id", "evidence"]).to_pylist()
    cited = {row["id"]: [sentence["text_unit_id"] for sentence in row["evidence"]] for row in rows}
    sources = Sources(snapshot, [unit for units in cited.values() for unit in units])

    def first(id: str) -> str:
        cites = [cite for unit in cited.get(id, ()) if (cite := sources.cite(unit)) is not None]
        return min((cite["date"] for cite in cites if cite["date"]), default="")

    return [
        [names[a]["n"], names[b]["n"], weight, first(id)] for (a, b), (weight, id) in found.items()
    ]


def entity_graph(snapshot: Snapshot) -> Data:
    """The most connected entities and the relationships among them. An entity begins at the place (x, y)
    of its topic on the map, so that the layout of the page has a topic's entities beside each other.
    `topic` is the top one that it is in; `topics` those of most entities first."""
    rows = snapshot.served("entities", entities.central(snapshot, DRAWN), ["id", *NUMBERED[1:]])
    total = snapshot.manifest.counters.get("entities", 0)
    edges = _edges(snapshot, {row["id"]: row for row in rows})
    ends = {n for a, b, *_ in edges for n in (a, b)}
    rows = [row for row in rows if row["n"] in ends] or rows  # the others have nothing to show here
    known = topics(snapshot).by_id
    memberships = snapshot.by_key("memberships", [row["id"] for row in rows], "entity_id", None)
    paths: dict[str, list[Topic]] = {
        row["entity_id"]: [known[id] for id in row["path"] if id in known]
        for row in memberships.to_pylist()
    }
    nodes = [marked_entity(row) for row in rows]
    counts: Counter[str] = Counter()
    for node, row in zip(nodes, rows, strict=True):
        if path := paths.get(row["id"]):
            circle = path[-1].circle
            node |= {"x": round(circle.x, 4), "y": round(circle.y, 4), "topic": path[0].n}
            counts[path[0].id] += 1
    tops = sorted((known[id] for id in counts), key=lambda topic: (-counts[topic.id], topic.n))
    listed = [{**brief(topic), "colour": topic.colour} for topic in tops]
    return {"nodes": nodes, "edges": edges, "topics": listed, "more": max(0, total - len(rows))}


def _evidence(sentence: Row, sources: Sources) -> Data:
    cite = sources.cite(sentence["text_unit_id"], sentence["start"], sentence["end"])
    return {"text": one_line(readable(sentence["text"]), LONG), "cites": [cite] if cite else []}


def _link(row: Row, sources: Sources) -> Data:
    """What is said of a relationship, with its sentences."""
    sentences = [_evidence(sentence, sources) for sentence in row["evidence"][:3]]
    text = one_line(row["description"], LONG)
    if sentences and sentences[0]["text"] and sentences[0]["text"] in text:
        text = sentences[0]["text"]
    return {"text": text, "cites": [cite for sentence in sentences for cite in sentence["cites"]]}


def _claim(row: Row, sources: Sources) -> Data:
    spans = row["spans"]
    cite = sources.cite(row["text_unit_id"], *(spans[:2] if len(spans) > 1 else (0, 0)))
    days: list[str] = [row["start_date"][:10], row["end_date"][:10]]
    dates = " to ".join(dict.fromkeys(day for day in days if day))
    about = ", ".join(filter(None, (row["type"].lower(), row["status"].lower(), dates)))
    text = f"{one_line(row['description'], LONG)} ({about})"
    return {"text": text, "cites": [cite] if cite else []}


# ---- paths ------------------------------------------------------------------------------------------


def path(snapshot: Snapshot, n: int, to: int) -> Data:
    """How two entities are connected: the strongest way first, each step with its sentence."""
    ends = [_numbered(snapshot, "entities", number, "e") for number in (n, to)]
    if n == to:
        raise BadInput("a path needs two different names", "Choose another one")
    found = connect(snapshot, ends[0]["id"], ends[1]["id"])
    ways = sorted(found, key=lambda way: -round(way.strength, 12))
    ids = [id for way in ways for id in way.entities]
    rows = snapshot.served("entities", ids, ["id", *NUMBERED[1:]])
    names = {row["id"]: marked_entity(row) for row in rows}
    ids = [id for way in ways for id in way.relationships]
    links = {row["id"]: row for row in snapshot.served("relationships", ids)}
    cited = [sentence["text_unit_id"] for row in links.values() for sentence in row["evidence"][:3]]
    sources = Sources(snapshot, cited)
    paths: list[list[Data]] = []
    for way in ways:
        steps: list[Data] = []
        for a, b, link in zip(way.entities, way.entities[1:], way.relationships, strict=False):
            if a in names and b in names and link in links:
                step = {"from": names[a], "to": names[b], "weight": links[link]["weight"]}
                steps.append({**step, **_link(links[link], sources)})
        paths += [steps] if steps else []
    reached = [0, 0] if ways else [graph_of(snapshot).reached(row["id"]) - 1 for row in ends]
    return {
        "from": marked_entity(ends[0]),
        "to": marked_entity(ends[1]),
        "paths": paths,
        "reached": reached,
    }


# ---- texts ------------------------------------------------------------------------------------------


def passage(snapshot: Snapshot, n: int) -> Data:
    """A text unit in full. `parts`: [start, end] of its passages, in its own characters; `places`: the
    page, slide, cells or time of each."""
    unit = _numbered(snapshot, "text_units", n, "t", ": its document was changed or removed")
    snapshot.with_places([unit])
    facts = filters.documents(snapshot)
    if unit["document_id"] not in facts:
        raise NotFound(f"the document of t{n} cannot be read", "Run doctor")
    document = paper(facts[unit["document_id"]])
    start, near = unit["char_start"], [unit["chunk_index"] - 1, unit["chunk_index"] + 1]
    where = f"document_id = '{unit['document_id']}' AND chunk_index IN ({near[0]}, {near[1]})"
    columns = ["n", "chunk_index", "char_start", "text"]
    neighbours = snapshot.rows("text_units", where, columns).to_pylist()
    neighbour = {row["chunk_index"]: f"t{row['n']}" for row in neighbours}
    around = [_beside(unit, row, near) for row in neighbours]
    rows = sorted(context.numbered(snapshot, "passages", [n]), key=lambda row: row["part"])
    ids = list(dict.fromkeys(id for row in rows for id in row["entity_ids"]))
    people = snapshot.served("entities", ids, NUMBERED)
    people.sort(key=lambda row: (-row["degree"], row["n"]))
    parts = [[row["char_start"] - start, row["char_end"] - start] for row in rows]
    return {
        "id": f"t{n}",
        "title": document["title"],
        "document": document,
        "line": unit["line_start"],
        "last_line": unit["line_end"],
        "place": places.of_row(unit),
        "text": unit["text"],
        "parts": parts,
        "places": [places.of_row(unit, *part) for part in parts],
        "before": neighbour.get(near[0], ""),
        "after": neighbour.get(near[1], ""),
        "around": dict(around),
        "entities": [named(row) for row in people[:NAMES]],
        "communities": [brief(topic) for topic in _communities(snapshot, unit["id"])],
    }


def _beside(unit: Row, row: Row, near: Sequence[int]) -> tuple[str, Data]:
    """ "before" or "after", and what the text unit there has that this one has not."""
    text = (
        row["text"] if SHOW_SECRETS.get() else _starred(row["text"])
    )  # before a cut may halve one
    if row["chunk_index"] == near[0]:
        return "before", {"text": text[: max(0, unit["char_start"] - row["char_start"])]}
    return "after", {"text": text[max(0, unit["char_end"] - row["char_start"]) :]}


def document(snapshot: Snapshot, n: int) -> Data:
    """A document: how each of its text units begins, and the communities that these are in."""
    ids = [str(id) for id in snapshot.by_key("documents", [n], "n", ["id"])["id"].to_pylist()]
    fact = filters.documents(snapshot).get(ids[0]) if ids else None
    if fact is None:
        raise NotFound(f"d{n} is not in this index any more", "Search")
    columns = ["id", "n", "chunk_index", "char_start", "line_start", "text"]
    units = snapshot.by_key("text_units", ids[:1], "document_id", columns).to_pylist()
    units.sort(key=lambda row: row["chunk_index"])
    document_summaries = summaries.read(snapshot, ids[:1]).get(ids[0], [])
    begins: dict[str, str] = {}  # the summary of each section, with its first text unit
    for summary in filter(lambda summary: summary.place, document_summaries):
        first = next((row["id"] for row in units if row["char_start"] >= summary.start), "")
        begins.setdefault(first, summary.text)
    snapshot.with_places(units[:PARTS])
    ids = [unit["id"] for unit in units]
    known = topics(snapshot).by_id
    ways: Sequence[Row] = snapshot.by_key("memberships", ids, "entity_id", ["path"]).to_pylist()
    ends = (way["path"][-1] for way in ways if way["path"])
    last = dict.fromkeys(end for end in ends if end in known)
    shown = [
        {
            "id": f"t{row['n']}",
            "line": row["line_start"],
            "place": places.of_row(row),
            "first": one_line(row["text"][:800], 200),
            "summary": begins.get(row["id"], ""),
        }
        for row in units[:PARTS]
    ]
    thread = [paper(message) for message in threads.of_document(snapshot, fact["document"][1])]
    contents = {
        "summary": "".join(summary.text for summary in document_summaries if summary.place == 0),
        "communities": [brief(known[id]) for id in last][:12],
        "units": shown,
        "thread": thread[:LISTED],
        "links": _links_of(snapshot, fact["document"][1]),
    }
    return {**paper(fact), **contents, "more": _rest(units, PARTS)}


# ---- links ------------------------------------------------------------------------------------------


def _links_of(snapshot: Snapshot, id: str) -> Data:
    """The links in and out of a document with the lines that hold them, those that lead to nothing, and its tags."""
    found = links.links(snapshot)
    number = found.pages.number[id]
    out, into = found.out(number), found.into(number)
    tags = list(dict.fromkeys(link.written for link in found.tags(number)))
    return {
        "in": _linked(snapshot, into[:LISTED]),
        "out": _linked(snapshot, [link for link in out if link.target >= 0][:LISTED]),
        "missing": _linked(snapshot, [link for link in out if link.target == -1][:LISTED]),
        "tags": [one_line(tag, TITLE) for tag in tags[:LISTED]],
        "more": _rest(into, LISTED) + _rest(out, LISTED),
    }


def _linked(snapshot: Snapshot, listed: Sequence[links.Link]) -> list[Data]:
    """`from` and `to`: documents; `written`: what the link says, with its `part`."""
    facts, ids = filters.documents(snapshot), links.pages(snapshot).ids
    return [
        {
            "from": paper(facts[ids[link.source]]),
            "to": paper(facts[ids[link.target]]) if link.target >= 0 else None,
            "kind": link.kind,
            "written": one_line(link.written, TITLE),
            "part": one_line(link.part, TITLE),
            "line": link.line,
            "text": text,
            "cites": [_cite(cited)] if cited else [],
        }
        for link, text, cited in links.quoted(snapshot, listed)
    ]


def link_graph(snapshot: Snapshot) -> Data:
    """Documents by their links: `nodes` with `degree`, the number of other documents that link to them, most first;
    `edges` between these nodes as [n of the one, n of the other, links]; pages that links miss; tags."""
    found, facts = links.links(snapshot), filters.documents(snapshot)
    degrees, counts = found.degrees(), Counter[tuple[int, int]]()
    for a, b in zip(found.source.tolist(), found.target.tolist(), strict=True):
        if b >= 0 and a != b:
            counts[a, b] += 1
    linked = {end for pair in counts for end in pair}
    ranked = sorted(linked, key=lambda number: (-int(degrees[number]), number))
    node = {number: paper(facts[found.pages.ids[number]]) for number in ranked[:LINKED]}
    lost = found.missing_pages()
    return {
        "nodes": [{**node[number], "degree": int(degrees[number])} for number in node],
        "edges": [
            [node[a]["n"], node[b]["n"], n]
            for (a, b), n in counts.items()
            if a in node and b in node
        ],
        "missing": [
            {
                "written": one_line(target, TITLE),
                "count": len(mentions),
                "documents": [
                    paper(facts[found.pages.ids[n]])
                    for n in dict.fromkeys(link.source for link in mentions)
                ][:6],
            }
            for target, mentions in lost[:LISTED]
        ],
        "tags": [
            {"tag": one_line(tag, TITLE), "count": n}
            for tag, n in found.all_tags().most_common(LISTED)
        ],
        "more": {"nodes": _rest(ranked, LINKED), "missing": _rest(lost, LISTED)},
    }


# ---- DRIFT -------------------------------------------------------------------------------------------


def drift(snapshot: Snapshot, folder: Path, id: str = "") -> Data:
    """The sessions on this corpus, the one touched last first; with an id its questions as a tree."""
    if id:
        return _session(snapshot, folder / f"{id}.jsonl")
    corpus = snapshot.manifest.corpus
    listed: list[Data] = []
    for path in sessions.listing(folder)[:SESSIONS]:
        walk = Walk(sessions.read(path))
        if walk.header.get("corpus") == corpus:
            counts = {name: len(walk.with_status(name)) for name in STATUS}
            listed.append({"id": path.stem, "query": one_line(walk.header["query"], 300), **counts})
    return {"sessions": listed}


def _session(snapshot: Snapshot, path: Path) -> Data:
    walk = Walk(sessions.read(path))
    if walk.header.get("corpus") != snapshot.manifest.corpus:
        raise NotFound("there is no such DRIFT session on this corpus", "Choose another one")
    nodes: list[Data] = []
    for name, node in walk.graph.nodes(data=True):
        named = " ".join(f"[{alias}]" for alias in node["context"][:CITES])
        known, removed = references(snapshot, [node["answer"], named])
        lists = {"cites": cited_aliases(node["answer"]), "context": node["context"]}
        shown = {
            "id": name,
            **{field: node[field] for field in ("parent", "query", "status", "score")},
        }
        shown["answer"] = marked(node["answer"], removed)[:ANSWER]
        for field, aliases in lists.items():
            shown[field] = [_cite(known[alias]) for alias in aliases if alias in known][:CITES]
        nodes.append(shown)
    header = {"id": path.stem, "query": walk.header["query"]}
    return {**header, "began": walk.header.get("generation", 0), "nodes": nodes}


def _cite(citation: Citation) -> Data:
    """A citation of a passage: the page marks it by its number."""
    place = {
        "id": citation.id,
        "start": 0,
        "end": 0,
        "line": citation.line_start,
        "place": citation.place,
        "date": "",
    }
    return {**place, "title": one_line(citation.title, TITLE), "uri": one_line(citation.uri, TITLE)}


# ---- generations ------------------------------------------------------------------------------------


def changes(snapshot: Snapshot, since: int = -1) -> Data:
    """What came, changed and went since a generation that is kept; without one since the last."""
    current = snapshot.manifest
    older = _older(snapshot)
    listed = [{"generation": manifest.generation, "time": manifest.created} for manifest in older][
        -30:
    ]
    chosen = next((manifest for manifest in older if manifest.generation == since), None)
    if since >= 0 and chosen is None:
        raise NotFound(f"generation {since} is not kept", "Choose another one")
    chosen = chosen or (older[-1] if older else None)
    nothing: Data = {"added": [], "changed": [], "removed": []}
    if chosen is None:
        none: Data = {
            "since": None,
            "generations": [],
            "documents": nothing,
            "communities": nothing,
        }
        return {**none, "now": current.generation, "names": [], "more": 0}
    found = generations.changes(snapshot.folder, chosen.generation)
    papers = {fact["uri"]: paper(fact) for fact in filters.documents(snapshot).values()}
    documents = {
        "added": [papers[uri] for uri in found.added if uri in papers],
        "changed": [papers[uri] for uri in found.changed if uri in papers],
        "removed": [dict.fromkeys(("title", "uri"), one_line(uri, TITLE)) for uri in found.removed],
    }
    old = Snapshot(snapshot.folder, chosen)
    came = generations.names(old, snapshot)[:LISTED]
    return {
        "since": chosen.generation,
        "now": current.generation,
        "generations": listed,
        "documents": {name: rows[:LISTED] for name, rows in documents.items()},
        "communities": _changed_communities(snapshot, old),
        "names": [{"n": row["n"], "title": one_line(row["title"], TITLE)} for row in came],
        "more": sum(_rest(rows, LISTED) for rows in documents.values()),
    }


def _older(snapshot: Snapshot) -> list[manifests.Manifest]:
    """Generations of other documents or edits than the current one, oldest first; of several with
    the same ones the last, whose communities are computed."""
    current = snapshot.manifest
    by_content: dict[tuple[str, ...], manifests.Manifest] = {}
    for manifest in manifests.generations(snapshot.folder):
        content = tuple(segment["file"] for segment in manifest.segments)
        if manifest.generation < current.generation and manifest.format == current.format:
            by_content[content] = manifest
    by_content.pop(tuple(segment["file"] for segment in current.segments), None)
    return list(by_content.values())


def _changed_communities(snapshot: Snapshot, old: Snapshot) -> Data:
    """Communities of which the members are others than before: as they are now, and as they were."""
    known = topics(snapshot).by_id
    was = {row["id"]: row for row in old.rows("reports", "", ["id", "title", "level"]).to_pylist()}
    came = [topic for id, topic in known.items() if id not in was]
    came.sort(key=lambda topic: (topic.level, -topic.size, topic.n))
    removed = [row for id, row in was.items() if id not in known]
    removed.sort(key=lambda row: (row["level"], row["title"]))
    return {
        "added": [brief(topic) for topic in came[:LISTED]],
        "removed": [{"title": one_line(row["title"], TITLE)} for row in removed[:LISTED]],
        "kept": sum(id in known for id in was),
    }


# ---- time -------------------------------------------------------------------------------------------


def timeline(snapshot: Snapshot) -> Data:
    """Documents by the date that they state: a row a month, or a year where there are YEARS or more."""
    facts = filters.documents(snapshot)
    dates = {id: fact["date"] for id, fact in facts.items() if fact["date"]}
    length = 4 if len({date[:4] for date in dates.values()}) >= YEARS else 7
    order = sorted(dates, key=lambda id: (dates[id], facts[id]["uri"]))
    by_period = lists_of((dates[id][:length], id) for id in order)
    names = characteristic(snapshot, dates, length)
    periods: list[Data] = [
        {
            "period": period,
            "count": len(by_period[period]),
            "terms": names.get(period, []),
            "documents": [paper(facts[id]) for id in by_period[period][:6]],
            "more": _rest(by_period[period], 6),
        }
        for period in sorted(by_period)
    ]
    return {"periods": periods[-400:], "undated": len(facts) - len(dates)}


# ---- search ------------------------------------------------------------------------------------------


def search(snapshot: Snapshot, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Hits of all kinds, best first, of the documents that `arguments` narrow them to. `lit`: [number of
    a community, how much of the hits it holds]. `whole`: the question asks about the corpus as a whole."""
    query, narrowed = " ".join(arguments.get("query", "").split())[:2_000], narrowing(arguments)
    kept = filters.read(snapshot, narrowed) if narrowed else None
    found = local.find(snapshot, query, filters=kept)
    known: Sequence[Ranked] = [] if notes.only_common_words(found) else found.passages[:LIT]
    ranked = entities.ranked(snapshot, found, ENTITIES) if known else []
    rows = [entity.row for entity in ranked if entity.score() >= 0.3]
    row, others = entities.resolve(snapshot, query) if len(query) <= 300 and query else (None, [])
    first = [*([row] if row else []), *(others if row else [])]
    people = list({row["id"]: row for row in [*first, *rows]}.values())[:ENTITIES]
    near = [] if people or known else spelling.nearest_names(snapshot, query, 5)
    by_id = topics(snapshot).by_id
    rated, _ = reports.select(snapshot, query) if known else ([], {})
    chosen = [by_id[report.id] for report in rated[:COMMUNITIES] if report.id in by_id]
    shown = [hit.id for hit in known[:PASSAGES] if hit.score >= render.WEAK * known[0].score]
    hits = snapshot.served("passages", shown)
    units = list(dict.fromkeys(row["text_unit_id"] for row in hits))
    ways = snapshot.by_key("memberships", units, "entity_id", ["path"]).to_pylist()
    counts = Counter(id for way in ways for id in way["path"] if id in by_id)
    aliases = [f"t{row['n']}.{row['part']}" for row in hits]
    return {
        "query": query,
        "whole": bool(query) and asked_about(snapshot, query) is None,
        "filters": narrowed,
        "facets": facets(snapshot),
        "hint": notes.absences([Source(snapshot, found)])[0] if query else "",
        "entities": [named(row) for row in people],
        "near": [named(row) for row in near],
        "communities": [brief(topic) for topic in chosen],
        "passages": _passages(snapshot, hits, found.terms),
        "documents": _hit_documents(snapshot, hits),
        "follow_ups": follow_ups.after(snapshot, query, aliases) if aliases else [],
        "lit": [[by_id[id].n, round(n / len(ways), 3)] for id, n in counts.most_common(200)],
    }


def narrowing(arguments: Mapping[str, str]) -> list[str]:
    """Filters for a kind of file, a folder and days, as a search takes them. Of one field several are
    alternatives, so kind and folder are one pattern; a row of a table stands behind `#`."""
    kind, folder = (
        re.sub(r"[\[\]*?]", "?", arguments.get(name, "").strip()[:300])
        for name in ("kind", "folder")
    )
    found: list[str] = []
    if kind or folder:
        pattern = f"{folder.strip('/')}/*" if folder else "*"
        ends = (f".{kind}", f".{kind}#*") if kind else ("",)
        found += [f"uri={pattern}{end}" for end in ends]
    for name, op in (("from", ">="), ("to", "<=")):
        if day := arguments.get(name, "").strip()[:10]:
            found.append(f"date{op}{day}")
    return found


def facets(snapshot: Snapshot) -> Data:
    """What a search can be narrowed to: kinds of files and folders, those of most documents first,
    and the first and last day."""
    kinds: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    days: list[str] = []
    for fact in filters.documents(snapshot).values():
        file = file_and_key(str(fact["uri"]))[0]
        *above, name = file.split("/")
        kinds[name.rpartition(".")[2].lower() if "." in name else ""] += 1
        folders.update("/".join(above[: depth + 1]) for depth in range(min(len(above), 4)))
        days += [fact["date"]] if fact["date"] else []
    del kinds[""]
    listed = {
        name: [{"name": one_line(key, TITLE), "count": n} for key, n in counts.most_common(FACETS)]
        for name, counts in (("kinds", kinds), ("folders", folders))
    }
    return {**listed, "from": min(days, default=""), "to": max(days, default="")}


def _hit_documents(snapshot: Snapshot, hits: Sequence[Row]) -> list[Data]:
    """The documents of the hits, each with its summary and how many of the hits it holds."""
    counts = Counter(row["document_id"] for row in hits)
    facts, summary_of = filters.documents(snapshot), summaries.of_documents(snapshot, list(counts))
    return [
        {**paper(facts[id]), "summary": clipped(summary_of.get(id, ""), {}, SENTENCE), "hits": n}
        for id, n in counts.items()
        if id in facts
    ]


def _passages(snapshot: Snapshot, rows: Sequence[Row], weights: Mapping[str, float]) -> list[Data]:
    """The best sentence of each passage, with its place in the text unit; not the title, which the citation
    names, unless there is no other sentence. Where no sentence holds a word of the question, a part of the
    text says more than one of them."""
    sources = Sources(snapshot, [row["text_unit_id"] for row in rows], texts=True)
    listed: list[Data] = []
    for row in rows:
        unit = sources.units.get(row["text_unit_id"])
        cite = sources.cite(unit["id"]) if unit else None
        if unit is None or cite is None:
            continue
        titled = (f"# {cite['title']}", cite["title"])
        quote = best(row["text"], weights, skip=titled) or best(row["text"], weights)
        if quote is None:
            continue
        shift = row["char_start"] - unit["char_start"]
        end = quote.end if quote.share else min(quote.start + SENTENCE, len(row["text"]))
        if (cite := sources.cite(unit["id"], quote.start + shift, end + shift)) is not None:
            if plugins.verbatim(cite["uri"]):  # whole lines, as they are indented
                first = row["text"].rfind("\n", 0, quote.start) + 1
                last = row["text"].find("\n", end)
                text = dedent(row["text"][first : last if last >= 0 else None]).strip("\n")
            else:
                text = one_line(readable(row["text"][quote.start : end]), LONG)
            sentence = clipped(text, weights, SENTENCE)
            listed.append({"text": sentence, "marks": marks(sentence, weights), "cites": [cite]})
    return listed


# ---- all views ---------------------------------------------------------------------------------------


VIEWS: dict[str, View] = {
    "overview": lambda app, snapshot, _: maps.overview(snapshot, app.corpora()),
    "map": lambda _, snapshot, arguments: maps.map_(snapshot, _number(arguments, "under", "c")),
    "community": lambda _, snapshot, arguments: community(snapshot, _number(arguments, "id", "c")),
    "entity": lambda _, snapshot, arguments: entity(snapshot, _number(arguments, "id", "e")),
    "passage": lambda _, snapshot, arguments: passage(snapshot, _number(arguments, "id", "t")),
    "document": lambda _, snapshot, arguments: document(snapshot, _number(arguments, "id", "d")),
    "path": lambda _, snapshot, arguments: path(
        snapshot, _number(arguments, "id", "e"), _number(arguments, "to", "e")
    ),
    "search": lambda _, snapshot, arguments: search(snapshot, arguments),
    "library": lambda app, snapshot, _: library(app, snapshot),
    "drift": lambda app, snapshot, arguments: drift(
        snapshot, app.drift_path("x").parent, _session_id(arguments)
    ),
    "changes": lambda _, snapshot, arguments: changes(
        snapshot, _number(arguments, "since", "", -1)
    ),
    "timeline": lambda _, snapshot, __: timeline(snapshot),
    "links": lambda _, snapshot, __: link_graph(snapshot),
    "graph": lambda _, snapshot, __: entity_graph(snapshot),
}


def load(app: App, view: str, arguments: Mapping[str, str], corpus: str = "") -> dict[str, Any]:
    """The data of a view of a corpus; opened once more where its generation has been cleaned away."""
    if view not in VIEWS:
        raise BadInput(f"the explorer has no view {view[:40]!r}", f"Use one of {', '.join(VIEWS)}")
    if view == "drift" and arguments.get("id") and not corpus:
        session = Walk(sessions.read(app.drift_path(_session_id(arguments))))
        corpus = str(session.header.get("corpus", ""))
    name = app.corpus_for_reading(corpus)

    def shown(snapshot: Snapshot) -> Data:
        topics(snapshot)  # before a view asks for them
        found = VIEWS[view](app, snapshot, arguments)
        found = found if SHOW_SECRETS.get() else _without_secrets(found)
        return {**found, "generation": snapshot.manifest.generation, "corpus": name}

    return app.newest(name, shown)


def _number(arguments: Mapping[str, str], name: str, letter: str, without: int = 0) -> int:
    """The number behind an id (`c5` or `5`); `without` where it is left out."""
    text = arguments.get(name, "").strip()
    match = re.fullmatch(rf"(?:{letter})?([0-9]{{1,12}})(?:\.[0-9]{{1,6}})?", text, re.IGNORECASE)
    if text and match is None:
        raise BadInput(f"{text[:40]!r} is no id of the explorer", "Choose one from a list")
    return int(match[1]) if match else without


def _session_id(arguments: Mapping[str, str]) -> str:
    id = arguments.get("id", "")
    if id and not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", id):
        raise BadInput(f"{id[:40]!r} is no DRIFT session", "Choose one from the list")
    return id


def _without_secrets(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return _starred(value) if name == "text" else masked(value)
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: _without_secrets(field, key) for key, field in fields.items()}
    if isinstance(value, list):
        return [_without_secrets(element) for element in cast(list[Any], value)]
    return value


def _starred(text: str) -> str:
    """The text with a star for each character of a credential."""
    for start, end in reversed(spans(text)):
        text = f"{text[:start]}{'*' * (end - start)}{text[end:]}"
    return text
