"""The view of a search: entities, topics, passages and documents for a question, and what it may be
narrowed to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Any, TypedDict

from graphrag_mcp import plugins
from graphrag_mcp.explorer.citing import LONG, Paper, Row, Sources, Statement, paper
from graphrag_mcp.explorer.topics import TITLE, Brief, Named, brief, holding, named, topics
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import entities, filters, follow_ups, local, notes, render, reports, spelling, summaries
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.overview import asked_about
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.quote import best, clipped, marks
from graphrag_mcp.text.uris import file_and_key

PASSAGES, ENTITIES, COMMUNITIES, NEAR = 20, 12, 6, 5  # in the lists
LIT, LIT_TOPICS = 40, 200  # passages that are read for the map, and topics that it lights
FACETS, DEPTH = 60, 4  # kinds of files and folders that are listed, and levels of folders
QUESTION, NAME = 2_000, 300  # characters of a question, and of one that may be a name
SENTENCE = 320  # characters of a passage in the list
LEAST = 0.3  # of the best score of an entity


class Hit(Statement):
    """`marks`: spans of the text that hold words of the question."""

    marks: list[Any]


class HitDocument(Paper):
    summary: str
    hits: int


class Choice(TypedDict):
    name: str
    count: int


# One of the keys is a word of Python.
Facets = TypedDict("Facets", {"kinds": list[Choice], "folders": list[Choice], "from": str, "to": str})


class Found(TypedDict):
    """`whole`: the question asks about the corpus as a whole. `near`: names that are written alike, where
    nothing was found. `lit`: [number of a topic, share of the hits that it holds]."""

    query: str
    whole: bool
    filters: list[str]
    facets: Facets
    hint: str
    entities: list[Named]
    near: list[Named]
    communities: list[Brief]
    passages: list[Hit]
    documents: list[HitDocument]
    follow_ups: list[str]
    lit: list[list[float]]


def search(snapshot: Snapshot, arguments: Mapping[str, str]) -> Found:
    """Hits of all kinds, best first, of the documents that `arguments` narrow them to."""
    query = " ".join(arguments.get("query", "").split())[:QUESTION]
    conditions = narrowing(arguments)
    kept = filters.read(snapshot, conditions) if conditions else None
    found = local.find(snapshot, query, filters=kept)
    known = found.passages[:LIT]
    matches = _entities(snapshot, query, found, bool(known))
    near = [] if matches or known else spelling.nearest_names(snapshot, query, NEAR)
    shown = [hit.id for hit in known[:PASSAGES] if hit.score >= render.WEAK * known[0].score]
    hits = snapshot.served("passages", shown)
    aliases = [f"t{row['n']}.{row['part']}" for row in hits]
    return {
        "query": query,
        "whole": bool(query) and asked_about(snapshot, query) is None,
        "filters": conditions,
        "facets": facets(snapshot),
        "hint": notes.absences([Source(snapshot, found)])[0] if query else "",
        "entities": [named(row) for row in matches],
        "near": [named(row) for row in near],
        "communities": _communities(snapshot, query) if known else [],
        "passages": _passages(snapshot, hits, found.terms),
        "documents": _documents(snapshot, hits),
        "follow_ups": follow_ups.after(snapshot, query, aliases) if aliases else [],
        "lit": _lit(snapshot, hits),
    }


def _entities(snapshot: Snapshot, query: str, found: Ranking, ranked: bool) -> list[Row]:
    """The entities that the question names, before those that rank well for it."""
    rows: list[Row] = []
    if query and len(query) <= NAME:
        row, others = entities.resolve(snapshot, query)
        rows += [row, *others] if row else []
    if ranked:
        candidates = entities.ranked(snapshot, found, ENTITIES)
        rows += [entity.row for entity in candidates if entity.score() >= LEAST]
    return list({row["id"]: row for row in rows}.values())[:ENTITIES]


def _communities(snapshot: Snapshot, query: str) -> list[Brief]:
    by_id = topics(snapshot).by_id
    rated = reports.select(snapshot, query)
    return [brief(by_id[report.id]) for report in rated[:COMMUNITIES] if report.id in by_id]


def _lit(snapshot: Snapshot, hits: Sequence[Row]) -> list[list[float]]:
    """The topics of the hits, those of most hits first."""
    paths = holding(snapshot, list(dict.fromkeys(row["text_unit_id"] for row in hits)))
    counts = Counter(topic.n for path in paths.values() for topic in path)
    return [[n, round(count / len(paths), 3)] for n, count in counts.most_common(LIT_TOPICS)]


def narrowing(arguments: Mapping[str, str]) -> list[str]:
    """Filters for a kind of file, a folder and days, as a search takes them. Of one field several are
    alternatives, so kind and folder are one pattern; a row of a table stands behind `#`."""
    kind, folder = (re.sub(r"[\[\]*?]", "?", arguments.get(name, "").strip()[:300]) for name in ("kind", "folder"))
    found: list[str] = []
    if kind or folder:
        pattern = f"{folder.strip('/')}/*" if folder else "*"
        ends = (f".{kind}", f".{kind}#*") if kind else ("",)
        found += [f"uri={pattern}{end}" for end in ends]
    for name, op in (("from", ">="), ("to", "<=")):
        if day := arguments.get(name, "").strip()[:10]:
            found.append(f"date{op}{day}")
    return found


def facets(snapshot: Snapshot) -> Facets:
    """What a search can be narrowed to: kinds of files and folders, those of most documents first,
    and the first and last day."""
    kinds: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    days: list[str] = []
    for fact in filters.documents(snapshot).values():
        *above, name = file_and_key(str(fact.uri))[0].split("/")
        if "." in name:
            kinds[name.rpartition(".")[2].lower()] += 1
        folders.update("/".join(above[: depth + 1]) for depth in range(min(len(above), DEPTH)))
        if fact.date:
            days.append(fact.date)
    return {
        "kinds": _choices(kinds),
        "folders": _choices(folders),
        "from": min(days, default=""),
        "to": max(days, default=""),
    }


def _choices(counts: Counter[str]) -> list[Choice]:
    return [{"name": one_line(name, TITLE), "count": count} for name, count in counts.most_common(FACETS)]


def _documents(snapshot: Snapshot, hits: Sequence[Row]) -> list[HitDocument]:
    """The documents of the hits, each with its summary and how many of the hits it holds."""
    counts = Counter(row["document_id"] for row in hits)
    facts, summary_of = filters.documents(snapshot), summaries.of_documents(snapshot, list(counts))
    return [
        {**paper(facts[id]), "summary": clipped(summary_of.get(id, ""), {}, SENTENCE), "hits": count}
        for id, count in counts.items()
        if id in facts
    ]


def _passages(snapshot: Snapshot, rows: Sequence[Row], weights: Mapping[str, float]) -> list[Hit]:
    """The best sentence of each passage, with its place in the text unit; whole lines of source code.
    The title, which the citation names, is shown only where there is no other sentence. Where no
    sentence holds a word of the question, a part of the text says more than a sentence."""
    sources = Sources(snapshot, [row["text_unit_id"] for row in rows])
    listed: list[Hit] = []
    for row in rows:
        text, unit = row["text"], sources.units.get(row["text_unit_id"])
        cited = sources.cite(unit["id"]) if unit else None
        if unit is None or cited is None:
            continue
        title = cited["title"]
        quote = best(text, weights, skip=(f"# {title}", title)) or best(text, weights)
        if quote is None:
            continue
        end = quote.end if quote.share else min(quote.start + SENTENCE, len(text))
        if plugins.verbatim(cited["uri"]):
            first = text.rfind("\n", 0, quote.start) + 1
            last = text.find("\n", end)
            shown = dedent(text[first : last if last >= 0 else None]).strip("\n")
        else:
            shown = one_line(readable(text[quote.start : end]), LONG)
        shift = row["char_start"] - unit["char_start"]
        span = sources.cite(unit["id"], quote.start + shift, end + shift)
        sentence = clipped(shown, weights, SENTENCE)
        cites = [span] if span else []
        listed.append({"text": sentence, "marks": marks(sentence, weights), "cites": cites})
    return listed
