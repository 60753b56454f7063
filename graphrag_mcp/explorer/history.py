"""The explorer's history views: DRIFT sessions, changes since a generation, documents by time.

Takes a snapshot, and for sessions the folder of their journals; gives dictionaries. Reads only.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from graphrag_mcp.doctor import generations
from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.topics import TITLE, brief, topics
from graphrag_mcp.explorer.views import paper
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import filters
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments, sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import Citation

SESSIONS, ANSWER, CITES, LISTED = 100, 4_000, 12, 200
YEARS = 4  # distinct years from which a timeline has a row a year

Data = dict[str, Any]


def drift(snapshot: Snapshot, folder: Path, id: str = "") -> Data:
    """The sessions on this corpus, the one touched last first; with an id its questions as a tree."""
    if id:
        return _session(snapshot, folder / f"{id}.jsonl")
    corpus, listed = snapshot.manifest.corpus, []
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (-path.stat().st_mtime, path.name))
    for path in paths[:SESSIONS]:
        walk = Walk(sessions.read(path))
        if walk.header.get("corpus") == corpus:
            counts = {
                name: len(walk.with_status(name))
                for name in ("answered", "open", "frontier", "pruned")
            }
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
        answered = drifting.cited_aliases(node["answer"])
        nodes.append(
            {
                "id": name,
                "parent": node["parent"],
                "query": node["query"],
                "status": node["status"],
                "score": node["score"],
                "answer": drifting.marked(node["answer"], gone)[:ANSWER],
                "cites": [_cite(known[one]) for one in answered if one in known][:CITES],
                "context": [_cite(known[one]) for one in node["context"] if one in known][:CITES],
            }
        )
    header = {
        "id": path.stem,
        "query": walk.header["query"],
        "began": walk.header.get("generation", 0),
    }
    return {**header, "nodes": nodes}


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
        return {"since": None, "now": current.generation, "generations": [], "documents": nothing,
                "communities": nothing, "names": [], "more": 0}  # fmt: skip
    before, now = (
        {row["uri"]: row for row in segments.live_documents(snapshot.folder, one, ("uri", "id", "title")).to_pylist()}
        for one in (chosen, current)
    )  # fmt: skip
    facts = filters.documents(snapshot)
    papers = {fact["uri"]: paper(fact) for fact in facts.values()}
    documents = {
        "added": [papers[uri] for uri in sorted(now.keys() - before.keys()) if uri in papers],
        "changed": [
            papers[uri]
            for uri in sorted(now.keys() & before.keys())
            if now[uri]["id"] != before[uri]["id"] and uri in papers
        ],
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
    came = sorted(
        (one for id, one in known.items() if id not in was),
        key=lambda one: (one.level, -one.size, one.n),
    )
    gone = sorted(
        (row for id, row in was.items() if id not in known),
        key=lambda row: (row["level"], row["title"]),
    )
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
    names = characteristic(snapshot, list(dates), dates, length)
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
