"""The data of every view of the explorer: a view's name and parameters in, JSON out.

Views: the map, a community, an entity, a passage, a path, the search box, DRIFT sessions, changes
since a generation, documents by time. Credentials that stand in documents are masked, in the text of
a passage with as many characters, so that offsets stay right. GraphRAGError for what is not there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.doctor import generations
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.explorer import views
from graphrag_mcp.explorer.topics import TITLE, brief, map_, named, overview, topics
from graphrag_mcp.explorer.views import Sources, paper, place_of
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import entities, filters, local, passages
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments, sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.readable import readable
from graphrag_mcp.trust.credentials import masked, spans
from graphrag_mcp.trust.fencing import SHOW_SECRETS
from graphrag_mcp.types import Citation

if TYPE_CHECKING:
    from graphrag_mcp.app import App


SESSIONS, ANSWER, CITES, LISTED = 100, 4_000, 12, 200
YEARS = 4  # distinct years from which a timeline has a row a year

Data = dict[str, Any]


def drift(snapshot: Snapshot, folder: Path, id: str = "") -> Data:
    """The sessions on this corpus, the one touched last first; with an id its questions as a tree."""
    if id:
        return _session(snapshot, folder / f"{id}.jsonl")
    corpus, listed = snapshot.manifest.corpus, []
    for path in sessions.listing(folder)[:SESSIONS]:
        walk = Walk(sessions.read(path))
        if walk.header.get("corpus") == corpus:
            states = ("answered", "open", "frontier", "pruned")
            counts = {name: len(walk.with_status(name)) for name in states}
            listed.append({"id": path.stem, "query": one_line(walk.header["query"], 300), **counts})
    return {"sessions": listed}


def corpus_of(path: Path) -> str:
    """The corpus that a session is on; "" for none."""
    return str(Walk(sessions.read(path)).header.get("corpus", ""))


def _session(snapshot: Snapshot, path: Path) -> Data:
    from graphrag_mcp.query import drift as drifting

    walk = Walk(sessions.read(path))
    if walk.header.get("corpus") != snapshot.manifest.corpus:
        raise NotFound("there is no such DRIFT session on this corpus", "Choose another one")
    nodes = []
    for name, node in walk.graph.nodes(data=True):
        named = " ".join(f"[{alias}]" for alias in node["context"][:CITES])
        known, gone = drifting.references(snapshot, [node["answer"], named])
        lists = {"cites": drifting.cited_aliases(node["answer"]), "context": node["context"]}
        nodes.append(
            {
                "id": name,
                **{one: node[one] for one in ("parent", "query", "status", "score")},
                "answer": drifting.marked(node["answer"], gone)[:ANSWER],
                **{
                    one: [_cite(known[alias]) for alias in aliases if alias in known][:CITES]
                    for one, aliases in lists.items()
                },
            }
        )
    header = {"id": path.stem, "query": walk.header["query"]}
    return {**header, "began": walk.header.get("generation", 0), "nodes": nodes}


def _cite(one: Citation) -> Data:
    """A citation of a passage: the page marks it by its number."""
    place = {"id": one.id, "start": 0, "end": 0, "line": one.line_start, "date": ""}
    return {**place, "title": one_line(one.title, TITLE), "uri": one_line(one.uri, TITLE)}


# ---- generations ------------------------------------------------------------------------------------


def changes(snapshot: Snapshot, since: int = -1) -> Data:
    """What came, changed and went since a generation that is kept; without one since the last."""
    current = snapshot.manifest
    older = _older(snapshot)
    listed = [{"generation": one.generation, "time": one.created} for one in older][-30:]
    chosen = next((one for one in older if one.generation == since), None)
    if since >= 0 and chosen is None:
        raise NotFound(f"generation {since} is not kept", "Choose another one")
    chosen = chosen or (older[-1] if older else None)
    nothing: Data = {"added": [], "changed": [], "removed": []}
    if chosen is None:
        none = {"since": None, "generations": [], "documents": nothing, "communities": nothing}
        return {**none, "now": current.generation, "names": [], "more": 0}
    before, now = (_documents(snapshot.folder, one) for one in (chosen, current))
    facts = filters.documents(snapshot)
    papers = {fact["uri"]: paper(fact) for fact in facts.values()}
    others = (uri for uri in now.keys() & before.keys() if now[uri]["id"] != before[uri]["id"])
    documents = {
        "added": [papers[uri] for uri in sorted(now.keys() - before.keys()) if uri in papers],
        "changed": [papers[uri] for uri in sorted(others) if uri in papers],
        "removed": [
            {"title": one_line(before[uri]["title"] or uri, TITLE), "uri": one_line(uri, TITLE)}
            for uri in sorted(before.keys() - now.keys())
        ],
    }
    more = {name: max(0, len(rows) - LISTED) for name, rows in documents.items()}
    old = Snapshot(snapshot.folder, chosen)
    came = generations.names(old, snapshot)[:LISTED]
    return {
        "since": chosen.generation,
        "now": current.generation,
        "generations": listed,
        "documents": {name: rows[:LISTED] for name, rows in documents.items()},
        "communities": _communities(snapshot, old),
        "names": [{"n": row["n"], "title": one_line(row["title"], TITLE)} for row in came],
        "more": sum(more.values()),
    }


def _documents(folder: Path, manifest: manifests.Manifest) -> dict[str, Data]:
    rows = segments.live_documents(folder, manifest, ("uri", "id", "title")).to_pylist()
    return {row["uri"]: row for row in rows}


def _older(snapshot: Snapshot) -> list[manifests.Manifest]:
    """Generations of other documents or edits than the current one, oldest first; of several with
    the same ones the last, whose communities are computed.
    """
    current = snapshot.manifest
    by_content: dict[tuple[str, ...], manifests.Manifest] = {}
    for one in manifests.generations(snapshot.folder):
        content = tuple(segment["file"] for segment in one.segments)
        if one.generation < current.generation and one.format == current.format:
            by_content[content] = one
    by_content.pop(tuple(segment["file"] for segment in current.segments), None)
    return list(by_content.values())


def _communities(snapshot: Snapshot, old: Snapshot) -> Data:
    """Communities of which the members are others than before: as they are now, and as they were."""
    known = topics(snapshot).by_id
    rows = old.rows("reports", "", ["id", "title", "level"]).to_pylist()
    was = {row["id"]: row for row in rows}
    came = [one for id, one in known.items() if id not in was]
    came.sort(key=lambda one: (one.level, -one.size, one.n))
    gone = [row for id, row in was.items() if id not in known]
    gone.sort(key=lambda row: (row["level"], row["title"]))
    return {
        "added": [brief(one) for one in came[:LISTED]],
        "removed": [{"title": one_line(row["title"], TITLE)} for row in gone[:LISTED]],
        "kept": sum(id in known for id in was),
    }


# ---- time -------------------------------------------------------------------------------------------


def timeline(snapshot: Snapshot) -> Data:
    """Documents by the date that they state: a row a month, or a year where there are YEARS or more."""
    from graphrag_mcp.query.listing import characteristic

    facts = filters.documents(snapshot)
    dates = {id: fact["date"] for id, fact in facts.items() if fact["date"]}
    length = 4 if len({date[:4] for date in dates.values()}) >= YEARS else 7
    held: dict[str, list[str]] = defaultdict(list)
    for id in sorted(dates, key=lambda id: (dates[id], facts[id]["uri"])):
        held[dates[id][:length]].append(id)
    names = characteristic(snapshot, dates, length)
    periods = [
        {
            "period": period,
            "count": len(held[period]),
            "terms": names.get(period, []),
            "documents": [paper(facts[id]) for id in held[period][:6]],
            "more": max(0, len(held[period]) - 6),
        }
        for period in sorted(held)
    ]
    return {"periods": periods[-400:], "undated": len(facts) - len(dates)}


PASSAGES, ENTITIES, COMMUNITIES, LIT = 20, 12, 6, 40
SENTENCE = 320  # characters of a passage in the list


def search(snapshot: Snapshot, query: str) -> dict[str, Any]:
    """Hits of all kinds, best first. `lit`: [number of a community, how much of the hits it holds]."""
    from graphrag_mcp.query import reports

    query = " ".join(query.split())[:2_000]
    found = local.find(snapshot, query)
    known = [] if local.only_common_words(found) else found.passages[:LIT]
    ranked = entities.ranked(snapshot, found, ENTITIES) if known else []
    rows = [one.row for one in ranked if one.score() >= 0.3]
    row, others = entities.resolve(snapshot, query) if len(query) <= 300 and query else (None, [])
    first = [*([row] if row else []), *(others if row else [])]
    people = list({one["id"]: one for one in [*first, *rows]}.values())[:ENTITIES]
    near = [] if people or known else entities.nearest_names(snapshot, query, 5)
    by_id = topics(snapshot).by_id
    rated, _ = reports.select(snapshot, query) if known else ([], {})
    chosen = [by_id[one.id] for one in rated[:COMMUNITIES] if one.id in by_id]
    kept = [one.id for one in known[:PASSAGES] if one.score >= passages.WEAK * known[0].score]
    return {
        "query": query,
        "hint": local.missing(found) if query else "",
        "entities": [named(one) for one in people],
        "near": [named(one) for one in near],
        "communities": [brief(one) for one in chosen],
        "passages": _passages(snapshot, kept, found.terms),
        "lit": _lit(snapshot, kept),
    }


def _passages(snapshot: Snapshot, ids: list[str], worth: dict[str, float]) -> list[dict[str, Any]]:
    """The best sentence of each passage, with its place in the text unit."""
    rows = snapshot.served("passages", ids)
    sources = Sources(snapshot, [row["text_unit_id"] for row in rows], texts=True)
    listed = []
    for row in rows:
        said = passages.best_sentence(readable(row["text"]), worth, (), SENTENCE)
        unit = sources.units.get(row["text_unit_id"])
        if unit is None:
            continue
        start, end = place_of(said.strip("…"), unit["text"])
        cite = sources.cite(row["text_unit_id"], start, end)
        if cite is not None:
            listed.append({"text": said, "cites": [cite]})
    return listed


def _lit(snapshot: Snapshot, ids: list[str]) -> list[list[float]]:
    """Communities that hold the text units of the hits, as [number, share of the hits]."""
    rows = snapshot.served("passages", ids)
    units = list(dict.fromkeys(row["text_unit_id"] for row in rows))
    ways = snapshot.by_key("memberships", units, "entity_id", ["path"]).to_pylist()
    known = topics(snapshot).by_id
    counts = Counter(id for way in ways for id in way["path"] if id in known)
    return [[known[id].n, round(count / len(ways), 3)] for id, count in counts.most_common(200)]


View = Callable[["App", "Snapshot", Mapping[str, str]], dict[str, Any]]

VIEWS: dict[str, View] = {
    "overview": lambda app, snapshot, _: overview(snapshot, app.corpora()),
    "map": lambda _, snapshot, given: map_(snapshot, _number(given, "under", "c")),
    "community": lambda _, snapshot, given: views.community(snapshot, _number(given, "id", "c")),
    "entity": lambda _, snapshot, given: views.entity(snapshot, _number(given, "id", "e")),
    "passage": lambda _, snapshot, given: views.passage(snapshot, _number(given, "id", "t")),
    "document": lambda _, snapshot, given: views.document(snapshot, _number(given, "id", "d")),
    "path": lambda _, snapshot, given: views.path(
        snapshot, _number(given, "id", "e"), _number(given, "to", "e")
    ),
    "search": lambda _, snapshot, given: search(snapshot, given.get("query", "")),
    "drift": lambda app, snapshot, given: drift(
        snapshot, app.drift_path("x").parent, _session_id(given.get("id", ""))
    ),
    "changes": lambda _, snapshot, given: changes(
        snapshot, _number(given, "since", "") if given.get("since") else -1
    ),
    "timeline": lambda _, snapshot, __: timeline(snapshot),
}


def load(app: App, view: str, given: Mapping[str, str], corpus: str = "") -> dict[str, Any]:
    """The data of a view of a corpus; opened once more where its generation has been cleaned away."""
    if view not in VIEWS:
        raise BadInput(f"the explorer has no view {view[:40]!r}", f"Use one of {', '.join(VIEWS)}")
    if view == "drift" and given.get("id") and not corpus:
        corpus = corpus_of(app.drift_path(_session_id(given["id"])))
    name = app.corpus_for_reading(corpus)
    snapshot = app.snapshot(name)
    try:
        found = _shown(app, view, snapshot, given)
    except GraphRAGError:
        app.forget(name)
        newer = app.snapshot(name)
        if newer.manifest.generation == snapshot.manifest.generation:
            raise
        snapshot, found = newer, _shown(app, view, newer, given)
    shown = found if SHOW_SECRETS.get() else _without_secrets(found)
    return {**shown, "generation": snapshot.manifest.generation, "corpus": name}


def _shown(app: App, view: str, snapshot: Snapshot, given: Mapping[str, str]) -> dict[str, Any]:
    topics(snapshot, not app.read_only)  # before a view asks for them
    return VIEWS[view](app, snapshot, given)


def _number(given: Mapping[str, str], name: str, letter: str) -> int:
    """The number behind an id (`c5` or `5`); 0 where it is left out."""
    text = given.get(name, "").strip()
    match = re.fullmatch(rf"{letter}?(\d{{1,12}})(?:\.\d{{1,6}})?", text, re.IGNORECASE)
    if text and match is None:
        raise BadInput(f"{text[:40]!r} is no id of the explorer", "Choose one from a list")
    return int(match[1]) if match else 0


def _session_id(id: str) -> str:
    if id and not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", id):
        raise BadInput(f"{id[:40]!r} is no DRIFT session", "Choose one from the list")
    return id


def _without_secrets(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return _starred(value) if name == "text" else masked(value)
    if isinstance(value, dict):
        return {key: _without_secrets(one, key) for key, one in value.items()}
    return [_without_secrets(one) for one in value] if isinstance(value, list) else value


def _starred(text: str) -> str:
    """The text with a star for each character of a credential."""
    for start, end in reversed(spans(text)):
        text = f"{text[:start]}{'*' * (end - start)}{text[end:]}"
    return text
