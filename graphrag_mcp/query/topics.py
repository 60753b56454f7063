"""The map of a corpus by topics, and what it says on one question, topic by topic.

Takes a snapshot; gives for each community what is characteristic of it: terms, names, dates, central
sentences. For a question with a topic it gives sentences from many documents, grouped by community.
What a model or an agent wrote about a community stands in place of what is found by counting.
Terms of a community are weighed by p(term | community) * log(p(term | community) / p(term)).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from graphrag_mcp.packing.budget import one_line, referenced_ids
from graphrag_mcp.query import breadth, context, hits
from graphrag_mcp.query.filters import Filters, Narrowed
from graphrag_mcp.query.times import stated_date
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import says_something, stands_alone
from graphrag_mcp.text.terms import counted, is_cjk, sentences, tells_topic, terms
from graphrag_mcp.types import Citation, SearchResult

SAMPLED = 6_000  # passages that are counted; every k-th of more
READ = 30  # passages of a community whose sentences are compared
TERMS = 40  # characteristic terms of a community
NAMES, SENTENCES, DOCUMENTS = 5, 2, 5  # shown of a topic
BELOW = 4  # topics inside a topic that are named with it
LENGTH = 220  # characters of a sentence
COVERED = 0.9  # share of the documents that the topics of a map hold; the rest is counted
LEAST = 5  # topics that a map shows even if fewer hold that share
STRAY = 0.1  # share of all worth up to which a topic needs ...
GOOD = 0.7  # ... a line of this share of the best one's worth
MORE = 40  # tokens of the line that leads on
UNASKED = "The question was empty; this is an overview. Ask with query=..."
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references
ROOM = 140  # tokens of a topic for which more than one sentence is shown


@dataclass(slots=True)
class Topic:
    """One community with what is characteristic of it."""

    id: str
    n: int
    units: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    title: str = ""
    said: list[tuple[str, Citation]] = field(default_factory=list)
    central: list[str] = field(default_factory=list)  # `[d12] Title` of documents


@dataclass(slots=True)
class _Counted:
    """What a snapshot holds, counted once: communities by level, passages by community."""

    communities: dict[str, dict[str, Any]]  # n, level and rank by id
    path: dict[str, list[str]]  # of text units
    passages: list[dict[str, Any]]
    documents: dict[str, str]  # text unit -> document
    terms: Counter[str]  # in how many passages
    entities: Counter[str]
    described: dict[str, Topic] = field(default_factory=dict)


_counted: WeakKeyDictionary[Snapshot, _Counted] = WeakKeyDictionary()


def corpus_map(
    page: hits.Page,
    snapshot: Snapshot,
    *,
    level: int = 0,
    kept: Filters | None = None,
    corpus: str = "",
    first: int = 0,
    detailed: bool = False,
) -> tuple[list[str], int]:
    """Add the topics of a level to the page, those of most text first: ids of those that are shown,
    and how many have had no room.

    `first`: the place of the first topic. `detailed`: more sentences, and the topics inside each.
    """
    known = _count(snapshot)
    found = _topics(snapshot, known, level, kept)
    total = len(set().union(*(topic.documents for topic in found)))
    if not first:
        of = f" in corpus {corpus}" if corpus else ""
        page.add(f"{counted(total, 'documents')} on {counted(len(found), 'topics')}{of}.\n")
    shown: list[str] = []
    seen: set[str] = set().union(*(topic.documents for topic in found[:first]))
    prefix = f"{corpus}/" if corpus else ""
    for number, topic in enumerate(found[first:], first):
        if number >= LEAST and len(seen) >= COVERED * total and page.room < 2 * ROOM:
            break
        _describe(snapshot, known, topic, kept, corpus)
        share = page.room // min(max(len(found) - number, 1), 3 * LEAST)
        said = SENTENCES if share > ROOM or number < LEAST else 1
        inside = _below(snapshot, known, topic, level, kept) if detailed or share > 2 * ROOM else ""
        head = (
            f"[{prefix}c{topic.n}] {topic.title}: {_share(topic, total)}{_dates(snapshot, topic)}"
        )
        more = [f"  Inside: {inside}"] if inside else []
        if not _add(page, [head, *more], topic, said) and not _add(page, [head], topic, 0):
            break
        shown.append(f"{prefix}c{topic.n}")
        seen |= topic.documents
    left = len(found) - first - len(shown)
    if left:
        page.add(
            f"{counted(left, 'more topics')} with {counted(total - len(seen), 'more documents')}."
        )
    return shown, left


def overview(
    result: SearchResult,
    parts: Sequence[tuple[str, Snapshot, Filters | None]],
    budget: int,
    *,
    level: int = 0,
    offset: int = 0,
    cursor: Callable[[tuple[int, ...]], str] = lambda _: "",
    detailed: bool = False,
) -> SearchResult:
    """The result with the map of each corpus, each with its share of the budget."""
    page = hits.page_of(result, budget)
    room, left, documents = page.room - MORE, 0, 0
    for number, (name, snapshot, kept) in enumerate(parts):
        share = room // (len(parts) - number)
        part = hits.Page(share, page.characters)
        shown, rest = corpus_map(
            part, snapshot, level=level, kept=kept, corpus=name, first=offset, detailed=detailed
        )
        room -= share - part.room
        left += rest
        page.blocks += part.blocks
        page.citations |= part.citations
        result.communities += shown
        documents += len(set(_count(snapshot).documents.values()))
    result.coverage |= {"documents": documents, "topics": left + offset + len(result.communities)}
    if result.communities and not offset:
        page.room = MORE
        finer = max(level, 0) + 1
        id = result.communities[0]
        page.add(
            f'More: get_community_report(id="{id}") on one topic, level={finer} for finer ones.'
        )
    return hits.finished(result, page, left, offset + len(result.communities), cursor)


def topic_of(snapshot: Snapshot, id: str) -> tuple[Topic, str]:
    """A community by content id, with one line that says how much of the corpus it holds."""
    known = _count(snapshot)
    row = known.communities[id]
    topic = next(
        (one for one in _topics(snapshot, known, row["level"], None) if one.id == id),
        Topic(id, row["n"]),
    )
    _describe(snapshot, known, topic, None)
    total = len(set(known.documents.values()))
    return topic, f"{_share(topic, total)}{_dates(snapshot, topic)}"


def inside(snapshot: Snapshot, topic: Topic) -> str:
    """The largest topics inside a topic, by title; "" where there are fewer than two."""
    known = _count(snapshot)
    return _below(snapshot, known, topic, known.communities[topic.id]["level"], None)


def largest(snapshot: Snapshot, most: int) -> list[tuple[Topic, str]]:
    """The largest topics, each with the share of the documents that it holds."""
    known = _count(snapshot)
    found = _topics(snapshot, known, 0, None)[:most]
    total = len(set(known.documents.values()))
    for topic in found:
        _describe(snapshot, known, topic, None)
    return [(topic, _share(topic, total)) for topic in found]


def titles(snapshot: Snapshot, kept: Filters | None = None, most: int = 8) -> list[tuple[str, str]]:
    """(alias, title) of the largest topics."""
    known = _count(snapshot)
    found = _topics(snapshot, known, 0, kept)[:most]
    for topic in found:
        _describe(snapshot, known, topic, kept)
    return [(f"c{topic.n}", topic.title) for topic in found]


def groups(
    snapshot: Snapshot,
    lines: Sequence[breadth.Line],
    level: int = 0,
    kept: Filters | None = None,
) -> list[tuple[Topic | None, list[breadth.Line]]]:
    """Lines by the topic of their text unit, the topic of most worth first; None for those without.

    A topic that has no good line, and little of all worth, is left out, and what does not pass the
    filters.
    """
    known = _count(snapshot)
    ids = [line.hit.passage for line in lines]
    rows = snapshot.by_key("passages", ids, "id", ["id", "text_unit_id"], hold=True)
    unit = dict(zip(rows["id"].to_pylist(), rows["text_unit_id"].to_pylist(), strict=True))
    topics = _topics(snapshot, known, level, kept)
    of_unit = {id: topic.id for topic in topics for id in topic.units}
    every = {topic.id: topic for topic in topics}
    found: dict[str, list[breadth.Line]] = defaultdict(list)
    for line in lines:
        id = of_unit.get(unit.get(line.hit.passage, ""), "")
        if id or kept is None:
            found[id].append(line)
    worth = {id: sum(line.value for line in held) for id, held in found.items()}
    best = max((line.value for line in lines), default=0.0)
    order = [
        id
        for id in sorted(found, key=lambda id: (-round(worth[id], 9), id))
        if worth[id] >= STRAY * sum(worth.values())
        or max(line.value for line in found[id]) >= GOOD * best
    ]
    for id in order:
        if id in every:
            _describe(snapshot, known, every[id], None)
    return [(every.get(id), found[id]) for id in order]


def _share(topic: Topic, total: int) -> str:
    if total <= 20:
        return counted(len(topic.documents), "documents")
    return f"{100 * len(topic.documents) / total:.0f} % of the documents"


def _add(page: hits.Page, head: Sequence[str], topic: Topic, most: int) -> bool:
    names = [f"  Names: {', '.join(topic.names)}"] if topic.names else []
    said = [f"  - {said} [{place.id}]" for said, place in topic.said[:most]]
    text = "\n".join([*head, *names, *said, ""])
    return page.add(text, [place for _, place in topic.said[:most]])


def _below(
    snapshot: Snapshot, known: _Counted, topic: Topic, level: int, kept: Filters | None
) -> str:
    """The largest topics inside a topic, by title."""
    inside = [
        one
        for one in _topics(snapshot, known, max(level, 0) + 1, kept)
        if one.id != topic.id and one.units <= topic.units
    ]
    if len(inside) < 2:
        return ""
    for one in inside[:BELOW]:
        _describe(snapshot, known, one, kept)
    said = [f"{one.title} [c{one.n}]" for one in inside[:BELOW]]
    rest = [f"{len(inside) - BELOW} more"] if len(inside) > BELOW else []
    return "; ".join([*said, *rest])


def _dates(snapshot: Snapshot, topic: Topic) -> str:
    """First and last day that the documents of a topic state."""
    some = sorted(topic.documents)[:2_000]
    rows = snapshot.by_key("documents", some, "id", ["uri", "metadata"]).to_pylist()
    dates = sorted(filter(None, map(stated_date, rows)))
    return f", {dates[0]} to {dates[-1]}" if dates and dates[0] != dates[-1] else ""


# ---- communities -----------------------------------------------------------------------------------


def _count(snapshot: Snapshot) -> _Counted:
    snapshot = _whole(snapshot)
    if (known := _counted.get(snapshot)) is not None:
        return known
    names = ["id", "n", "level", "rank"]
    communities = {row["id"]: row for row in snapshot.rows("reports", "", names).to_pylist()}
    units = snapshot.rows("text_units", "", ["id", "document_id"])
    documents = dict(zip(units["id"].to_pylist(), units["document_id"].to_pylist(), strict=True))
    paths = snapshot.rows("memberships", "", ["entity_id", "path"])
    path_of = dict(zip(paths["entity_id"].to_pylist(), paths["path"].to_pylist(), strict=True))
    names = ["id", "text_unit_id", "terms", "entity_ids"]
    passages = snapshot.rows("passages", "", names).to_pylist()
    passages.sort(key=lambda row: row["id"])
    passages = passages[:: max(len(passages) // SAMPLED, 1)]
    path = {id: path_of[id] for id in documents if id in path_of}
    if not path:  # an index of an earlier release: a text unit goes with most of its entities
        votes: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for row in passages:
            votes[row["text_unit_id"]].update(
                tuple(path_of[id]) for id in row["entity_ids"] if path_of.get(id)
            )
        path = {id: list(max(sorted(one), key=one.__getitem__)) for id, one in votes.items() if one}
    terms_, entities = Counter[str](), Counter[str]()
    for row in passages:
        terms_.update(set(row["terms"].split()))
        entities.update(row["entity_ids"])
    _counted[snapshot] = _Counted(communities, path, passages, documents, terms_, entities)
    return _counted[snapshot]


def _whole(snapshot: Snapshot) -> Snapshot:
    return snapshot.inner if isinstance(snapshot, Narrowed) else snapshot


def _topics(snapshot: Snapshot, known: _Counted, level: int, kept: Filters | None) -> list[Topic]:
    """Communities of a level (a coarser one where it ends sooner), those of most text first, with
    the text units that pass the filters."""
    passes = _passing(snapshot, known, kept)
    found: dict[str, Topic] = {}
    for unit, path in known.path.items():
        if not path or (passes is not None and unit not in passes):
            continue
        id = path[min(max(level, 0), len(path) - 1)]
        row = known.communities.get(id)
        if row is not None and (kept is None or kept.report(row["rank"])):
            topic = found.setdefault(id, Topic(id, row["n"]))
            topic.units.add(unit)
            topic.documents.add(known.documents[unit])
    return sorted(found.values(), key=lambda topic: (-len(topic.units), topic.id))


def _passing(snapshot: Snapshot, known: _Counted, kept: Filters | None) -> set[str] | None:
    """The text units that pass the filters; None for all of them."""
    if kept is None or (kept.documents is None and not kept.first and not kept.without):
        return None
    units = {
        unit
        for unit, document in known.documents.items()
        if kept.documents is None or document in kept.documents
    }

    def of(ids: Iterable[str]) -> set[str]:
        rows = snapshot.by_key("entities", sorted(ids), "id", ["text_unit_ids"])
        return {id for row in rows["text_unit_ids"].to_pylist() for id in row}

    if kept.first:
        units &= of(row["id"] for row in kept.first)
    return units - of(kept.without) if kept.without else units


def _describe(
    snapshot: Snapshot, known: _Counted, topic: Topic, kept: Filters | None, corpus: str = ""
) -> None:
    """Fill in what is characteristic of a topic, among its text units that pass the filters."""
    key = f"{corpus}/{topic.id}"
    if kept is None and (done := known.described.get(key)) is not None:
        topic.title, topic.names, topic.said = done.title, done.names, done.said
        topic.central = done.central
        return
    inside = [row for row in known.passages if row["text_unit_id"] in topic.units]
    weights = _weights(inside, known)
    inside.sort(key=lambda row: (-round(_value(row["terms"].split(), weights), 9), row["id"]))
    scored = [(row["id"], 1.0) for row in inside[:READ]]
    listed = [hit for _, hit in hits.read(_whole(snapshot), scored, corpus)]
    topic.names = _names(snapshot, inside, known)
    topic.said = _central(weights, listed)
    documents = {hit.part_of: f"[{hit.citation.document_id}] {hit.name()}" for hit in listed}
    topic.central = list(documents.values())[:DOCUMENTS]
    report = next(iter(context.rows(_whole(snapshot), "reports", [topic.id])), None)
    topic.title = one_line(report["title"], 120) if report else ", ".join(topic.names[:3])
    if report is not None and report["method"] != "extractive":
        if kept is None or kept.documents is None:  # it speaks of all documents
            topic.said = _written(_whole(snapshot), report["summary"]) or topic.said[:1]
    if kept is None:
        known.described[key] = topic


def _written(snapshot: Snapshot, summary: str) -> list[tuple[str, Citation]]:
    """The first statements that a model or an agent wrote, each with the text that it rests on."""
    found: list[tuple[str, Citation]] = []
    for said in _STATEMENTS.split(summary):
        text, _, references = said.partition("[Data:")
        sources = referenced_ids(f"[Data:{references}").get("Sources", ())
        cited = context.unit_citations(snapshot, sources[:1])
        if cited:
            found.append((one_line(text, LENGTH + 80), next(iter(cited.values()))))
    return found[:SENTENCES]


def _weights(inside: Sequence[Mapping[str, Any]], known: _Counted) -> dict[str, float]:
    """The characteristic terms of some passages, with their weights."""
    here: Counter[str] = Counter()
    for row in inside:
        here.update(set(row["terms"].split()))
    weights = {}
    for term, count in here.items():
        if not tells_topic(term) or any(map(str.isdigit, term)) or (count < 2 < len(inside)):
            continue
        p, q = count / len(inside), known.terms[term] / len(known.passages)
        weights[term] = p * math.log(p / q) if p > q else p * 1e-3
    best = sorted(weights, key=lambda term: (-round(weights[term], 9), term))[:TERMS]
    return {term: weights[term] for term in best}


def _value(held: Iterable[str], weights: Mapping[str, float]) -> float:
    listed = list(held)
    return math.fsum(weights.get(term, 0.0) for term in set(listed)) / math.sqrt(1 + len(listed))


def _names(snapshot: Snapshot, inside: Sequence[Mapping[str, Any]], known: _Counted) -> list[str]:
    """Entities that stand here more than elsewhere, by how often; those with a type first."""
    here = Counter(id for row in inside for id in row["entity_ids"])
    score = {}
    for id, count in here.items():
        p, q = count / len(inside), known.entities[id] / len(known.passages)
        score[id] = p * math.log(p / q) if p > q else p * 1e-3
    best = sorted(score, key=lambda id: (-round(score[id], 9), id))[: NAMES * 4]
    rows = snapshot.by_key("entities", best, "id", ["id", "title", "type"]).to_pylist()
    typed = {row["id"]: row["type"] not in ("", "other") for row in rows}
    title = {row["id"]: one_line(row["title"], 40) for row in rows}
    best = [id for id in best if id in title and (is_cjk(title[id][0]) or title[id][0].isupper())]
    best.sort(key=lambda id: -score[id] * (2 if typed[id] else 1))
    return [title[id] for id in best][:NAMES]


def _central(
    weights: Mapping[str, float], listed: Sequence[hits.Hit]
) -> list[tuple[str, Citation]]:
    """Sentences that hold most of what is characteristic, of different documents, none twice."""
    scored: list[tuple[float, int, str, hits.Hit]] = []
    for place, hit in enumerate(listed):
        for start, end in sentences(hit.body)[:12]:
            said = _unquoted(one_line(hit.body[start:end], 2_000))
            letters = sum(ch.isalpha() or ch.isspace() for ch in said)
            if not 40 <= len(said) <= 320 or letters < 0.85 * len(said) or "http" in said:
                continue
            if not says_something(said):
                continue
            value = _value(terms(said), weights) * stands_alone(said)
            scored.append((-round(value, 9), place, said, hit))
    chosen: list[tuple[str, Citation]] = []
    documents: set[str] = set()
    held: set[str] = set()
    for _, _, said, hit in sorted(scored, key=lambda one: one[:3]):
        own = set(terms(said)) & weights.keys()
        if hit.part_of in documents or (held and len(own & held) > 0.7 * len(own)):
            continue
        chosen.append((hits.clipped(said, weights, LENGTH), hit.citation))
        documents.add(hit.part_of)
        held |= own
        if len(chosen) == SENTENCES:
            break
    return chosen


def _unquoted(said: str) -> str:
    """Without a quotation mark whose other half stands in another sentence."""
    return said.strip('"').strip() if said.count('"') % 2 else said
