"""Views of time: what changed since a generation, and documents by the dates that they state."""

from __future__ import annotations

from typing import Any, TypedDict

from graphrag_mcp.doctor import generations
from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.citing import Paper, left_out, paper
from graphrag_mcp.explorer.topics import TITLE, Brief, brief, topics
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import filters
from graphrag_mcp.query.groups import characteristic
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import lists_of

LISTED, GENERATIONS = 200, 30
PERIODS, NAMED = 400, 6  # periods of the timeline, and documents named in each
YEARS = 4  # distinct years from which the timeline has a row a year

Data = dict[str, Any]


class Gone(TypedDict):
    title: str
    uri: str


class Documents(TypedDict):
    added: list[Paper]
    changed: list[Paper]
    removed: list[Gone]


class Communities(TypedDict):
    """Topics with other members than before: as they are now, and the titles that they had."""

    added: list[Brief]
    removed: list[Data]
    kept: int


class Changes(TypedDict):
    """`since` is None where no earlier generation is kept; `names`: entities that came."""

    since: int | None
    now: int
    generations: list[Data]
    documents: Documents
    communities: Communities
    names: list[Data]
    more: int


class Period(TypedDict):
    period: str
    count: int
    terms: list[str]
    documents: list[Paper]
    more: int


class Timeline(TypedDict):
    periods: list[Period]
    undated: int


def changes(snapshot: Snapshot, since: int = -1) -> Changes:
    """What came, changed and went since a generation that is kept; with -1 since the last one. Raises
    NotFound for a generation that is not kept."""
    older = _older(snapshot)
    if since >= 0:
        older_than_now = [manifest for manifest in older if manifest.generation == since]
        if not older_than_now:
            raise NotFound(f"generation {since} is not kept", "Choose another one")
        chosen = older_than_now[0]
    elif older:
        chosen = older[-1]
    else:
        return {
            "since": None,
            "now": snapshot.manifest.generation,
            "generations": [],
            "documents": {"added": [], "changed": [], "removed": []},
            "communities": {"added": [], "removed": [], "kept": 0},
            "names": [],
            "more": 0,
        }
    found = generations.changes(snapshot.folder, chosen.generation)
    papers = {fact.uri: paper(fact) for fact in filters.documents(snapshot).values()}
    added = [papers[uri] for uri in found.added if uri in papers]
    changed = [papers[uri] for uri in found.changed if uri in papers]
    removed = [one_line(uri, TITLE) for uri in found.removed]
    old = Snapshot(snapshot.folder, chosen)
    names = generations.names(old, snapshot)[:LISTED]
    return {
        "since": chosen.generation,
        "now": snapshot.manifest.generation,
        "generations": [
            {"generation": manifest.generation, "time": manifest.created} for manifest in older[-GENERATIONS:]
        ],
        "documents": {
            "added": added[:LISTED],
            "changed": changed[:LISTED],
            "removed": [{"title": uri, "uri": uri} for uri in removed[:LISTED]],
        },
        "communities": _communities(snapshot, old),
        "names": [{"n": row["n"], "title": one_line(row["title"], TITLE)} for row in names],
        "more": sum(left_out(rows, LISTED) for rows in (added, changed, removed)),
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


def _communities(snapshot: Snapshot, old: Snapshot) -> Communities:
    known = topics(snapshot).by_id
    before = {row["id"]: row for row in old.rows("reports", "", ["id", "title", "level"]).to_pylist()}
    added = [topic for id, topic in known.items() if id not in before]
    added.sort(key=lambda topic: (topic.level, -topic.size, topic.n))
    removed = [row for id, row in before.items() if id not in known]
    removed.sort(key=lambda row: (row["level"], row["title"]))
    return {
        "added": [brief(topic) for topic in added[:LISTED]],
        "removed": [{"title": one_line(row["title"], TITLE)} for row in removed[:LISTED]],
        "kept": sum(id in known for id in before),
    }


def timeline(snapshot: Snapshot) -> Timeline:
    """Documents by the date that they state: a row a month, or a year where there are YEARS or more."""
    facts = filters.documents(snapshot)
    dates = {id: fact.date for id, fact in facts.items() if fact.date}
    length = 4 if len({date[:4] for date in dates.values()}) >= YEARS else 7
    order = sorted(dates, key=lambda id: (dates[id], facts[id].uri))
    by_period = lists_of((dates[id][:length], id) for id in order)
    terms = characteristic(snapshot, dates, length)
    periods: list[Period] = [
        {
            "period": period,
            "count": len(ids),
            "terms": terms.get(period, []),
            "documents": [paper(facts[id]) for id in ids[:NAMED]],
            "more": left_out(ids, NAMED),
        }
        for period, ids in sorted(by_period.items())
    ]
    return {"periods": periods[-PERIODS:], "undated": len(facts) - len(dates)}
