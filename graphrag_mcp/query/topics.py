"""The map of a corpus by topics, and what it says on one question, topic by topic.

Terms of a community are weighed by p(term | community) * log(p(term | community) / p(term)). What a
model or an agent wrote about a community stands in place of what is found by counting."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from graphrag_mcp.packing.budget import one_line, referenced_ids
from graphrag_mcp.query import context, hits, named
from graphrag_mcp.query.filters import Filters, Narrowed
from graphrag_mcp.query.hits import Source
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
ASKED, READ_OF_TOPIC = 120, 8  # passages on a question that are read, and of a topic near to it
FEEDBACK, FEW = 30, 5  # documents whose passages tell the terms that they share; too few for that
SHARED = 0.7  # worth of the shared terms against those of the question
PRIOR = 8  # passages that a term is taken to stand in beside those it does, spread as all are
NEAR = 14  # topics near to a question
LEAST_SAID, SOME = 0.25, 10  # share of the best sentence's worth; half of it for the first SOME
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
    places: dict[str, array[int]]  # of the passages that hold a term
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
    if not first:
        passes = _passing(snapshot, known, kept)
        of = None if passes is None else {known.documents[unit] for unit in passes}
        page.add(named.overview(snapshot, of, prefix))
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
            f'More: get_community_report with id="{id}" on one topic, level={finer} for finer ones.'
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


def on_question(
    snapshot: Snapshot,
    worth: Mapping[str, float],
    source: Source,
    level: int = -1,
    kept: Filters | None = None,
) -> list[tuple[Topic | None, list[hits.Line]]]:
    """What the documents say on a question: sentences by topic, the topic of most worth first; None
    for sentences of no topic.

    `worth` of the terms of the question, `source` what a search for it found. A sentence counts by the terms of the question, by terms that the
    passages on the question share (Lavrenko and Croft's relevance model), and by what is
    characteristic of its topic, as far as the topic is on the question."""
    known = _count(snapshot)
    passes = _passing(snapshot, known, kept)
    asked = _asked(known, worth, passes)
    level = 1 if level < 0 else level
    topics = {topic.id: topic for topic in _topics(snapshot, known, level, kept)}
    of_unit = {unit: topic.id for topic in topics.values() for unit in topic.units}
    near = _near(known, asked, topics)
    inside: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in known.passages:
        if (id := of_unit.get(row["text_unit_id"], "")) in near:
            inside[id].append(row)
    weights = {id: _weights(rows, known) for id, rows in inside.items()}
    ids = _to_read(asked, source, inside, weights)
    rows = snapshot.by_key("passages", ids, "id", ["id", "text_unit_id"]).to_pylist()
    topic_of_passage = {
        row["id"]: of_unit.get(row["text_unit_id"], "")
        for row in rows
        if passes is None or row["text_unit_id"] in passes
    }
    score, ids = dict(source.scored), [id for id in ids if id in topic_of_passage]
    why = source.why([id for id in ids if id in score]) if source.why is not None else {}
    scored = [(id, score.get(id, 0.0)) for id in ids]
    listed = hits.read(_whole(snapshot), scored, source.corpus, why)
    lines: dict[str, list[hits.Line]] = defaultdict(list)
    every = [
        (topic_of_passage[id], line)
        for id, hit in listed
        if hits.names_all(hit, source.names)
        for line in _said_in(
            hit, asked, weights.get(topic_of_passage[id], {}), near.get(topic_of_passage[id], 0.0)
        )
    ]
    for id, line in _chosen(every, near, len({known.documents[unit] for unit in of_unit})):
        lines[id].append(line)
    return _grouped(snapshot, known, lines, topics, level, kept)


@dataclass(slots=True)
class _Asked:
    """What a question is about: the worth of its terms and of words of the same root, that of terms
    which the passages on it share, and how much each passage is on it."""

    terms: dict[str, float]
    shared: dict[str, float]
    passages: dict[str, float]


def _asked(known: _Counted, worth: Mapping[str, float], passes: set[str] | None) -> _Asked:
    telling = _telling(known, worth)
    asked = {term: value * telling[term] for term, value in worth.items()}
    for term in list(asked):
        for other in _of_one_root(known, term):
            asked.setdefault(other, asked[term] / 2)
    on_it = _held(known, asked, passes)
    first: dict[str, dict[str, Any]] = {}  # the best passage of each document
    order = sorted(on_it, key=lambda place: (-round(on_it[place], 9), place))
    for place in order:
        if on_it[place] < 0.4 * on_it[order[0]] or len(first) == FEEDBACK:
            break
        row = known.passages[place]
        first.setdefault(known.documents[row["text_unit_id"]], row)
    shared: dict[str, float] = {}
    if len(first) >= FEW:
        here = Counter(term for row in first.values() for term in set(row["terms"].split()))
        least = max(3, len(first) // 8)
        shared = {
            term: value
            for term, value in _weights(list(first.values()), known).items()
            if term not in asked and here[term] >= least
        }
        scale = SHARED * sum(asked.values()) / (sum(shared.values()) or 1.0)
        shared = {term: value * scale for term, value in shared.items()}
    on_it = _held(known, {**shared, **asked}, passes)
    by_id = {known.passages[place]["id"]: value for place, value in on_it.items()}
    return _Asked(asked, shared, by_id)


def _held(known: _Counted, worth: Mapping[str, float], passes: set[str] | None) -> dict[int, float]:
    """The worth of the terms that each passage holds, by its place; of those above 0."""
    found: dict[int, float] = defaultdict(float)
    for term, value in sorted(worth.items()):
        for place in known.places.get(term, ()):
            found[place] += value
    return {
        place: value
        for place, value in found.items()
        if value > 0 and (passes is None or known.passages[place]["text_unit_id"] in passes)
    }


def _telling(known: _Counted, worth: Mapping[str, float]) -> dict[str, float]:
    """How much a term tells topics apart, from 0.05 to 1: by the divergence (Kullback and Leibler)
    of its passages' topics from those of all passages. "Decided" stands in every topic, "election"
    in one."""
    top = [(*known.path.get(row["text_unit_id"], ()), "")[0] for row in known.passages]
    every = Counter(filter(None, top))
    total, found = sum(every.values()), {}
    for term in worth:
        held = Counter(filter(None, (top[place] for place in known.places.get(term, ()))))
        count = held.total()
        apart = 0.0
        for topic, number in every.items():
            p = (held[topic] + PRIOR * number / total) / (count + PRIOR)
            apart += p * math.log(p * total / number)
        found[term] = 0.05 + 0.95 * apart / (apart + 0.25) if count and len(every) > 1 else 1.0
    return found


def _of_one_root(known: _Counted, term: str) -> list[str]:
    """Words of the corpus that begin as a word of the question does: rivalry, rivals."""
    if len(term) < 5 or not term.isalpha() or is_cjk(term[0]):
        return []
    root = term[: max(5, len(term) - 2)]
    found = [
        other
        for other in known.places
        if other.startswith(root) and len(other) <= len(term) + 4 and other.isalpha()
    ]
    return sorted(found, key=lambda other: (-len(known.places[other]), other))[:6]


def _near(known: _Counted, asked: _Asked, topics: Mapping[str, Topic]) -> dict[str, float]:
    """How much the topics are on the question, as a share of the one that is most; those with a
    quarter of that or more."""
    of_unit = {unit: topic.id for topic in topics.values() for unit in topic.units}
    worth: dict[str, list[float]] = defaultdict(list)
    above: dict[str, str] = {}
    top: Counter[str] = Counter()
    for row in known.passages:
        id = of_unit.get(row["text_unit_id"])
        if id is None:
            continue
        value = asked.passages.get(row["id"], 0.0) ** 2
        worth[id].append(value)
        above[id] = known.path[row["text_unit_id"]][0]
        top[above[id]] += value
    value = {
        id: sum(some) / math.sqrt(len(some)) * top[above[id]]
        for id, some in worth.items()
        if sum(some)
    }
    best = max(value.values(), default=1.0)
    near = {id: one / best for id, one in value.items() if one >= 0.25 * best}
    return dict(sorted(near.items(), key=lambda one: (-round(one[1], 9), one[0]))[:NEAR])


def _to_read(
    asked: _Asked,
    source: Source,
    inside: Mapping[str, Sequence[Mapping[str, Any]]],
    weights: Mapping[str, Mapping[str, float]],
) -> list[str]:
    """The ids of passages whose sentences are compared: the best of the search, those most on the
    question, and the most characteristic of each topic near to it."""

    def by_worth(worth: Mapping[str, float], most: int) -> list[str]:
        return sorted(worth, key=lambda id: (-round(worth[id], 9), id))[:most]

    ids = [id for id, _ in source.scored[:ASKED]] + by_worth(asked.passages, ASKED)
    best = max(asked.passages.values(), default=1.0)
    for topic, rows in inside.items():
        central = {
            row["id"]: _value(row["terms"].split(), weights[topic])
            * (0.3 + asked.passages.get(row["id"], 0.0) / best)
            for row in rows
        }
        ids += by_worth(central, READ_OF_TOPIC)
    return list(dict.fromkeys(ids))


def _said_in(
    hit: hits.Hit, asked: _Asked, own: Mapping[str, float], near: float
) -> Iterator[hits.Line]:
    """The sentences of a passage that say something on the question, with their worth."""
    whole, all_shared = sum(asked.terms.values()) or 1.0, sum(asked.shared.values()) or 1.0
    best, all_own = max(asked.passages.values(), default=1.0), sum(own.values()) or 1.0
    on_it = asked.passages.get(hit.passage, 0.0) / best
    for start, end in sentences(hit.body):
        said = hit.body[start:end]
        if not says_something(said):
            continue
        held = set(terms(said))
        value = math.fsum(asked.terms[term] for term in asked.terms.keys() & held) / whole
        value += (
            SHARED
            * math.fsum(asked.shared[term] for term in asked.shared.keys() & held)
            / all_shared
        )
        value += near * math.fsum(own[term] for term in own.keys() & held) / all_own
        value *= stands_alone(said) * (0.4 + 0.6 * max(on_it, hit.score))
        if value > 0:
            yield hits.Line(hit, said, value)


def _chosen(
    lines: Sequence[tuple[str, hits.Line]], near: Mapping[str, float], documents: int
) -> list[tuple[str, hits.Line]]:
    """The best sentences with their topics, none that repeats another: one of a passage, a few of a
    document, more of a topic the more it is on the question."""
    order = sorted(
        lines, key=lambda one: (-round(one[1].value, 9), one[1].hit.passage, one[1].text)
    )
    of_document, of_topic, of_passage = Counter[str](), Counter[str](), set[str]()
    seen: list[set[str]] = []
    chosen = []
    for id, line in order:
        least = LEAST_SAID if len(chosen) >= SOME else LEAST_SAID / 2
        if line.value < least * order[0][1].value or len(chosen) == hits.MOST_LINES:
            break
        held = set(terms(line.text))
        if (
            line.hit.passage in of_passage
            or of_document[line.hit.part_of] > hits.MOST_LINES // (documents or 1)
            or of_topic[id] >= 4 + 10 * near.get(id, 0.0)
            or any(len(held & one) > 0.6 * len(held | one) for one in seen)
        ):
            continue
        of_document[line.hit.part_of] += 1
        of_topic[id] += 1
        of_passage.add(line.hit.passage)
        seen.append(held)
        chosen.append((id, hits.shortened(line)))
    return chosen


def _grouped(
    snapshot: Snapshot,
    known: _Counted,
    lines: Mapping[str, list[hits.Line]],
    topics: Mapping[str, Topic],
    level: int,
    kept: Filters | None,
) -> list[tuple[Topic | None, list[hits.Line]]]:
    """Lines by topic, the topic of most worth first. A topic with one line is shown as the topic
    that it lies in."""
    above = (
        {topic.id: topic for topic in _topics(snapshot, known, level - 1, kept)} if level else {}
    )
    parent = {unit: id for id, topic in above.items() for unit in topic.units}
    found: dict[str, list[hits.Line]] = defaultdict(list)
    for id, held in lines.items():
        lone = len(held) == 1 and id in topics and len(lines) > 1
        found[parent.get(min(topics[id].units), id) if lone else id] += held
    every = {**topics, **above}
    order = sorted(found, key=lambda id: (-round(sum(one.value for one in found[id]), 9), id))
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
    places: dict[str, array[int]] = defaultdict(lambda: array("H"))
    entities = Counter[str]()
    for place, row in enumerate(passages):
        for term in set(row["terms"].split()):
            places[term].append(place)
        entities.update(row["entity_ids"])
    _counted[snapshot] = _Counted(communities, path, passages, documents, dict(places), entities)
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
        p, q = count / len(inside), len(known.places[term]) / len(known.passages)
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
        chosen.append((hits.clipped(said, weights, LENGTH), next(hit.sources())))
        documents.add(hit.part_of)
        held |= own
        if len(chosen) == SENTENCES:
            break
    return chosen


def _unquoted(said: str) -> str:
    """Without a quotation mark whose other half stands in another sentence."""
    return said.strip('"').strip() if said.count('"') % 2 else said
