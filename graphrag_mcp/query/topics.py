"""The topics of a corpus: its communities, with what is characteristic of each (their map: topic_map.py).

What a model or an agent wrote about a community stands in place of what is found by counting."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.query import context, groups, hits, note_sources, summaries, times
from graphrag_mcp.query.filters import Filters
from graphrag_mcp.query.hits import Hit
from graphrag_mcp.store.sheets import sheets_of
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.terms import counted, is_cjk, lists_of
from graphrag_mcp.types import Citation

SAMPLED = 6_000  # passages that are counted; every k-th of more
READ = 30  # passages of a community whose sentences are compared
NAMES, DOCUMENTS = 5, 12  # shown of a topic
BELOW = 4  # topics inside a topic that are named with it
LENGTH = 220  # characters of a sentence
WIDE = 1 / 3  # share of the documents of a topic that only the topics inside it describe
LEVELS = 3  # of topics by which titles are listed
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references

Row = Mapping[str, Any]


@dataclass(slots=True)
class Topic:
    """One community with what is characteristic of it."""

    id: str
    n: int
    units: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    main: set[str] = field(default_factory=set)  # documents most of whose text units are here
    share: float = 0.0  # of all documents, where the rows of one sheet count as one
    names: list[str] = field(default_factory=list)
    title: str = ""
    said: list[tuple[str, Citation]] = field(default_factory=list)
    central: list[str] = field(default_factory=list)  # the best passage of each document, by content id


@dataclass(slots=True)
class Counts:
    """What a snapshot holds, counted once."""

    communities: dict[str, dict[str, Any]]  # n, level and rank by id
    path: dict[str, list[str]]  # the communities of a text unit, the coarsest first
    passages: list[dict[str, Any]]  # id, text unit, terms and entities; a sample of many
    documents: dict[str, str]  # text unit -> document
    sheets: dict[str, str]  # row of a sheet (a document) -> file
    entities: Counter[str]
    described: dict[str, Topic] = field(default_factory=dict)


def of_main(snapshot: Snapshot, kept: Filters | None = None) -> list[Topic]:
    """The topics with documents of their own, of the coarsest level that has two; else the only one."""
    found: list[Topic] = []
    for level in range(LEVELS):
        found = [topic for topic in of_level(snapshot, level, kept) if topic.main]
        if len(found) > 1:
            break
    return found


def number_of(known: Counts, documents: Iterable[str]) -> int:
    """How many documents these are, where the rows of a sheet count as one."""
    return len({known.sheets.get(document, document) for document in documents})


def listed(snapshot: Snapshot, topics: Sequence[Topic], kept: Filters | None, prefix: str = "") -> str:
    """`Latin America [c64], 3 documents; ...`"""
    for topic in topics:
        describe(snapshot, topic, kept)
    return "; ".join(f"{topic.title} [{prefix}c{topic.n}], {counted(len(topic.main), 'documents')}" for topic in topics)


def topic_of(snapshot: Snapshot, id: str) -> tuple[Topic, str]:
    """The topic of a community (content id), and a line with its share of the corpus."""
    known = count(snapshot)
    row = known.communities[id]
    every = of_level(snapshot, row["level"])
    topic = next((topic for topic in every if topic.id == id), Topic(id, row["n"]))
    describe(snapshot, topic)
    return topic, share_line(snapshot, topic, number_of(known, known.documents.values()))


def inside(snapshot: Snapshot, topic: Topic, kept: Filters | None = None, prefix: str = "") -> str:
    """The largest topics a level below a topic, by title, each with the documents that both have; "" where
    there are fewer than two."""
    level = int(count(snapshot).communities[topic.id]["level"])
    below = [
        replace(part, main=part.main & topic.main)
        for part in of_level(snapshot, level + 1, kept)
        if part.id != topic.id and part.units <= topic.units and part.main & topic.main
    ]
    if len(below) < 2:
        return ""
    most = 3 * BELOW if topic.share > WIDE else BELOW
    rest = f"; {len(below) - most} more" if len(below) > most else ""
    return listed(snapshot, below[:most], kept, prefix) + rest


def largest(snapshot: Snapshot, most: int, kept: Filters | None = None) -> list[tuple[Topic, str]]:
    """The largest topics, each with the share of the documents that it holds."""
    found = of_level(snapshot, 0, kept)[:most]
    known = count(snapshot)
    total = number_of(known, known.documents.values())
    for topic in found:
        describe(snapshot, topic, kept)
    return [(topic, share_line(snapshot, topic, total).partition(", ")[0]) for topic in found]


def share_line(snapshot: Snapshot, topic: Topic, total: int) -> str:
    """`12 % of the documents, 1972-10-06 to 2017-09-11`: each document counts in one topic of a
    level."""
    share = f"{100 * topic.share:.0f} % of the documents"
    if total <= 20:
        share = counted(len(topic.main), "documents")
    elif topic.main & count(snapshot).sheets.keys():
        share += f" ({len(topic.main):,} with each row of a sheet)"
    facts = times.documents(snapshot)
    topic_facts = (facts[id] for id in topic.documents if id in facts)
    dates = sorted(fact.date for fact in topic_facts if fact.date)
    return f"{share}, {dates[0]} to {dates[-1]}" if dates and dates[0] != dates[-1] else share


# ---- communities ---------------------------------------------------------------------------------


@once
def count(snapshot: Snapshot) -> Counts:
    names = ["id", "n", "level", "rank"]
    communities = {row["id"]: row for row in snapshot.rows("reports", "", names).to_pylist()}
    documents = dict(rows_of(snapshot.rows("text_units", "", ["id", "document_id"])))
    names = ["id", "text_unit_id", "terms", "entity_ids"]
    rows = sorted(snapshot.rows("passages", "", names).to_pylist(), key=lambda row: row["id"])
    if notes := note_sources.ids(snapshot):
        documents = {unit: of for unit, of in documents.items() if of not in notes}
        rows = [row for row in rows if row["text_unit_id"] in documents]
    rows = rows[:: max(len(rows) // SAMPLED, 1)]
    path = context.topic_paths(snapshot, documents)
    entities = Counter(id for row in rows for id in row["entity_ids"])
    return Counts(communities, path, rows, documents, _sheets(snapshot), entities)


@once
def _sheets(snapshot: Snapshot) -> dict[str, str]:
    return sheets_of(snapshot, times.documents(snapshot).keys() - note_sources.ids(snapshot))


def of_level(snapshot: Snapshot, level: int, kept: Filters | None = None) -> list[Topic]:
    """The communities of a level (of a coarser level where a branch ends sooner), those of most
    documents first, with the text units that pass the filters. The rows of one sheet count as one
    document: 1,500 of them are not what a folder of 40 files is about."""
    known = count(snapshot)
    passing = kept.units if kept is not None and kept.narrows else None
    found: dict[str, Topic] = {}
    shown: dict[str, str] = {}
    for unit, path in known.path.items():
        if not path or (passing is not None and unit not in passing):
            continue
        id = context.topic_at(path, level)
        row = known.communities.get(id)
        if row is not None and (kept is None or kept.report(row["rank"])):
            topic = found.setdefault(id, Topic(id, row["n"]))
            topic.units.add(unit)
            topic.documents.add(known.documents[unit])
            shown[unit] = id
    main = context.main_topics(shown, known.documents)
    rows = Counter(known.sheets.get(document, document) for document in main)
    for document, id in main.items():
        found[id].main.add(document)
    for topic in found.values():
        parts = (rows[known.sheets.get(document, document)] for document in topic.main)
        topic.share = math.fsum(1 / number for number in parts) / len(rows)

    def order(topic: Topic) -> tuple[float, int, int, str]:
        return -round(topic.share, 9), -len(topic.main), -len(topic.units), topic.id

    return sorted(found.values(), key=order)


def describe(snapshot: Snapshot, topic: Topic, kept: Filters | None = None, corpus: str = "") -> None:
    """Fill in what is characteristic of a topic, among its text units that pass the filters."""
    known, snapshot, key = count(snapshot), snapshot.whole, f"{corpus}/{topic.id}"
    if kept is None and (done := known.described.get(key)) is not None:
        topic.title, topic.names, topic.said = done.title, done.names, done.said
        topic.central = done.central
        return
    rows = [row for row in known.passages if row["text_unit_id"] in topic.units]
    report = next(iter(snapshot.served("reports", [topic.id])), None)
    worth = _worth(report)
    topic.names = _names(snapshot, rows, known)
    topic.title = one_line(report["title"], 120) if report else ", ".join(topic.names[:3])
    main = [row for row in rows if known.documents[row["text_unit_id"]] in topic.main] or rows
    value = {row["id"]: density(row["terms"].split(), worth) for row in main}
    best = sorted(value, key=lambda id: (-round(value[id], 9), id))[:READ]
    found = hits.read(snapshot, [(id, 1.0) for id in best], corpus)
    first = {hit.document: hit for hit in reversed(found)}  # the best passage of each
    documents = list(dict.fromkeys(hit.document for hit in found))
    topic.central = [first[id].passage for id in documents[:DOCUMENTS]]
    topic.said = []
    if report is not None and report["method"] != "extractive":
        if kept is None or kept.documents is None:  # it speaks of all documents
            topic.said = _written(snapshot, report["summary"])
    if not topic.said and found:
        written = summaries.of_documents(snapshot, documents)
        id = next((id for id in documents if id in written), "")
        topic.said = [(written[id], first[id].cited()[0])] if id else _central(worth, found)
    if kept is None:
        known.described[key] = topic


def summarised(snapshot: Snapshot, topic: Topic, report: Row) -> list[str]:
    """`- [t12] 2024-05-03 Title: summary` for the documents of a topic that have a summary.
    Documents come first whose summaries contain most of the terms that are typical of the topic."""
    worth = _worth(report)
    summary_terms = summaries.terms_of(snapshot, topic.main)
    value = {id: math.fsum(worth[term] for term in terms & worth.keys()) for id, terms in summary_terms.items()}
    order = sorted(value, key=lambda id: (-round(value[id], 9), id))
    written = summaries.of_documents(snapshot, order)
    first, facts = context.first_ids(snapshot, order), times.documents(snapshot)
    dates = times.shown(facts[id] for id in order)
    lines: list[str] = []
    for id in (id for id in order if id in written):
        name = f"{hits.named(snapshot, id)}:"
        lines.append(" ".join(filter(None, (f"- [{first[id]}]", dates[id], name, written[id]))))
    return lines


def _worth(report: Row | None) -> dict[str, float]:
    """The characteristic terms that a report stores, the first of them worth 1, the last next to nothing."""
    known = report["terms"].rpartition("#")[2].split()[1:] if report else []
    return {term: 1 - at / len(known) for at, term in enumerate(known)}


def _written(snapshot: Snapshot, summary: str) -> list[tuple[str, Citation]]:
    """The first statement that a model or an agent wrote of a text, and that text."""
    for statement in _STATEMENTS.split(summary):
        text, _, references = statement.partition("[Data:")
        sources = referenced_ids(f"[Data:{references}").get("Sources", ())
        cited = context.unit_citations(snapshot, sources[:1])
        if cited:
            return [(one_line(text, LENGTH + 80), next(iter(cited.values())))]
    return []


def density(terms: Sequence[str], worth: Mapping[str, float]) -> float:
    """The worth of the terms of a text, for its length."""
    return math.fsum(worth.get(term, 0.0) for term in set(terms)) / math.sqrt(1 + len(terms))


def _names(snapshot: Snapshot, rows: Sequence[Row], known: Counts) -> list[str]:
    """Entities that many passages name here, and more of them than elsewhere; those with a type first."""
    documents = {row["id"]: known.documents[row["text_unit_id"]] for row in rows}
    of = lists_of((id, documents[row["id"]]) for row in rows for id in row["entity_ids"])
    least = min(groups.NAMED_BY, len(set(documents.values())) // 2)
    here = {id: len(group) for id, group in of.items() if len(set(group)) >= least}
    score = {id: number * number / known.entities[id] for id, number in here.items()}
    best = sorted(score, key=lambda id: (-round(score[id], 9), id))[: 4 * NAMES]
    found = snapshot.served("entities", best, ["id", "title", "type"])
    titles = [
        (row["type"] in ("", "other"), one_line(row["title"], 40))
        for row in found
        if is_cjk(row["title"][0]) or row["title"][0].isupper()
    ]
    return [title for _, title in sorted(titles, key=lambda pair: pair[0])][:NAMES]


def _central(worth: Mapping[str, float], found: Iterable[Hit]) -> list[tuple[str, Citation]]:
    """The sentence that holds most of what is characteristic, with its citation."""
    pairs = [(hit, best) for hit in found if (best := quote.best(hit.body, worth)) is not None]
    if not pairs:
        return []
    hit, _ = max(pairs, key=lambda pair: round(pair[1].score, 9))
    return [(quote.best_line(hit.body, worth, LENGTH), hit.cited()[0])]
