"""The explorer's search box: names, communities and passages for words, with their places on the
map.

Takes a snapshot and what was typed; gives a dictionary. The ranking is that of local_search and
global_search without a model.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphrag_mcp.explorer.topics import brief, named, topics
from graphrag_mcp.explorer.views import Sources, place_of
from graphrag_mcp.query import context, hits, local, retrieval
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.readable import readable

PASSAGES, ENTITIES, COMMUNITIES, LIT = 20, 12, 6, 40
SENTENCE = 320  # characters of a passage in the list


def search(snapshot: Snapshot, query: str) -> dict[str, Any]:
    """Hits of all kinds, best first. `lit`: [number of a community, how much of the hits it holds]."""
    from graphrag_mcp.query import global_

    query = " ".join(query.split())[:2_000]
    found = local.find(snapshot, query)
    passages = [] if local.unheard_of(found) else found.passages[:LIT]
    entities = retrieval.entities(snapshot, found, ENTITIES) if passages else []
    rows = [found.rows[one.id] for one in entities if one.score >= 0.3]
    row, others = context.resolve(snapshot, query) if len(query) <= 300 and query else (None, [])
    first = [*([row] if row else []), *(others if row else [])]
    people = list({one["id"]: one for one in [*first, *rows]}.values())[:ENTITIES]
    near = [] if people or passages else context.nearest_names(snapshot, query, 5)
    known = topics(snapshot)
    rated, _ = global_.select(snapshot, query) if passages else ([], {})
    chosen = [known.by_id[one.id] for one in rated[:COMMUNITIES] if one.id in known.by_id]
    read = hits.read(snapshot, [(one.id, one.score) for one in passages[:PASSAGES]])
    top = max((hit.score for _, hit in read), default=0.0)
    kept = [(id, hit) for id, hit in read if hit.score >= hits.WEAK * top]
    return {
        "query": query,
        "hint": local.missing(found, query) if query else "",
        "entities": [named(one) for one in people],
        "near": [named(one) for one in near],
        "communities": [brief(one) for one in chosen],
        "passages": _passages(snapshot, [id for id, _ in kept], found.terms),
        "lit": _lit(snapshot, [id for id, _ in kept]),
    }


def _passages(snapshot: Snapshot, ids: list[str], worth: dict[str, float]) -> list[dict[str, Any]]:
    """The best sentence of each passage, with its place in the text unit."""
    rows = snapshot.served("passages", ids)
    sources = Sources(snapshot, [row["text_unit_id"] for row in rows], texts=True)
    listed = []
    for row in rows:
        said = hits.best_sentence(readable(row["text"]), worth, (), SENTENCE)
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
