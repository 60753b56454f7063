"""The topics of a corpus: its communities, with what is characteristic of each, and their map.

Terms of a community are weighed by p(term | community) * log(p(term | community) / p(term)). What a
model or an agent wrote about a community stands in place of what is found by counting.

And the entities of a type that most documents name, each with a sentence that names it."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_mcp.packing.budget import HIGHEST, located, one_line, referenced_ids
from graphrag_mcp.packing.page import Page, finished, page_of
from graphrag_mcp.query import (
    context,
    digests,
    entities,
    hits,
    note_sources,
    render,
    series,
    summaries,
    times,
)
from graphrag_mcp.query.filters import Filters, Narrowed, Part
from graphrag_mcp.query.hits import Hit, names_of
from graphrag_mcp.store.sheets import sheets_of
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable, sentences
from graphrag_mcp.text.terms import counted, is_cjk, lists_of, tells_topic, terms
from graphrag_mcp.text.titles import parts
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, SearchResult

# ---- names by the number of documents that hold them ---------------------------------------------

KINDS = {
    "person": "People",
    "organization": "Organizations",
    "location": "Places",
    "event": "Events",
}
NAMING = 160  # characters of the sentence that names an entity
NAME = 40  # characters of the name of its document
MOST_NAMED = 10  # names of a kind in an overview
NAMED_BY = 2  # documents that name what an overview shows

SHARED = 2  # full names that hold a single name, from which on it may mean none of them
INITIAL = 2  # characters of one, with its point
CLEAR = 3  # times as many documents must name a person as any other of the same family name
_all = once(lambda _: dict[str, list[tuple[str, int]]]())


def most_named(
    snapshot: Snapshot, kind: str, documents: Collection[str] | None = None
) -> list[tuple[str, int]]:
    """(id, number of documents) of the entities of a type, those that most documents name first.
    `documents` are the content ids of those that count; None: all."""
    if documents is not None:
        return _counted(snapshot, kind, documents)
    known = _all(snapshot)
    if kind not in known:
        known[kind] = _counted(snapshot, kind, None)
    return known[kind]


def _counted(
    snapshot: Snapshot, kind: str, documents: Collection[str] | None
) -> list[tuple[str, int]]:
    typed = snapshot.rows("entities", f"type = '{kind}'", ["id", "title", "degree"]).to_pylist()
    degree = {row["id"]: row["degree"] for row in typed}
    parts = entities.part_of(snapshot) if kind == "organization" else {}
    named: dict[str, set[str]] = {id: set() for id in degree}
    rows = snapshot.rows("passages", "", ["document_id", "entity_ids"])
    for document, ids in rows_of(rows):
        if documents is None or document in documents:
            for id in (named_id for entity in ids for named_id in (entity, *parts.get(entity, ()))):
                if id in named:
                    named[id].add(document)
    if kind == "person":
        _credit(named, {row["id"]: row["title"] for row in typed})
    found = [(id, len(found_in)) for id, found_in in named.items() if found_in]
    return sorted(found, key=lambda pair: (-pair[1], -degree[pair[0]], pair[0]))


def _credit(named: dict[str, set[str]], title: Mapping[str, str]) -> None:
    """Count a person once: George Bush with George W. Bush, and the documents that give a family
    name alone with the person whom they mean, if more than half of those that name that person give
    it too (Hitler, Adolf Hitler). A name that may mean several people counts only if few documents
    give a full name."""
    bearers: dict[str, dict[str, str]] = defaultdict(dict)  # the names before a family name -> id
    for id in sorted(title, key=lambda id: (-len(named[id]), id)):
        if len(words := title[id].split()) > 1 and named[id]:
            before = " ".join(words[:1] + [word for word in words[1:-1] if len(word) > INITIAL])
            best = bearers[words[-1]].setdefault(before, id)
            if best != id:
                named[best] |= named[id]
                named[id] = set()
    given_names = Counter(before.split()[0] for names in bearers.values() for before in names)
    for id, name in title.items():
        of_bearers = sorted(
            (named[bearer] for bearer in bearers.get(name, {}).values()), key=len, reverse=True
        )
        if " " in name or not named[id]:
            continue
        clear = bool(of_bearers) and (
            len(of_bearers) == 1 or len(of_bearers[0]) >= CLEAR * len(of_bearers[1])
        )
        if clear and 2 * len(named[id] & of_bearers[0]) > max(len(of_bearers[0]), SHARED):
            of_bearers[0] |= named[id]
            named[id] = set()
        many = len(of_bearers) + given_names[name] >= SHARED
        if many and (given_names[name] or len(named[id]) <= 2 * len(set().union(*of_bearers))):
            named[id] = set()


def line_named(
    snapshot: Snapshot, id: str, number: int, documents: Collection[str] | None = None
) -> str:
    """`- [e3] Tony Blair, 55 documents: a sentence that names him. [t12] report.txt`; no bare name as a sentence,
    and without `documents` no sentence."""
    row = snapshot.served("entities", [id])[0]
    sentence = "" if documents is None else _naming(snapshot, row["evidence"], documents)
    text = f": {sentence}" if sentence else ""
    return f"- [e{row['n']}] {one_line(row['title'], 80)}, {counted(number, 'documents')}{text}"


def _naming(
    snapshot: Snapshot, evidence: Sequence[Mapping[str, str]], documents: Collection[str] | None
) -> str:
    """The first sentence of the evidence that says something, of these documents where one is."""
    units = snapshot.by_key(
        "text_units",
        [sentence["text_unit_id"] for sentence in evidence],
        "id",
        ["id", "n", "document_id"],
    )
    place = {row["id"]: row for row in units.to_pylist()}
    known = [
        (place[id], sentence["text"])
        for sentence in evidence
        if (id := sentence["text_unit_id"]) in place
    ]
    inside = [pair for pair in known if documents is None or pair[0]["document_id"] in documents]
    if not known:
        return ""
    unit, text = max(inside or known, key=lambda pair: quote.says(pair[1]))
    if not any(word[:1].islower() or is_cjk(word[0]) for word in text.split()):
        return ""  # a byline or a title
    name = one_line(names_of(snapshot).get(unit["document_id"], ""), NAME)
    return f"{one_line(readable(text), NAMING)} [t{unit['n']}] {name}".rstrip()


def named_overview(
    snapshot: Snapshot, documents: Collection[str] | None = None, prefix: str = ""
) -> str:
    """`People, Tony Blair [e3] 55, ...`: a line for each type; "" if no name of the type occurs in
    two documents. `prefix` is put before ids."""
    lines = []
    for kind in ("person", "organization"):
        found = [
            pair
            for pair in most_named(snapshot, kind, documents)[:MOST_NAMED]
            if pair[1] >= NAMED_BY
        ]
        if not found:
            continue
        rows = {row["id"]: row for row in snapshot.served("entities", [id for id, _ in found])}
        shown = [
            f"{one_line(rows[id]['title'], 40)} [{prefix}e{rows[id]['n']}] {number}"
            for id, number in found
            if id in rows
        ]
        lines.append(f"{KINDS[kind]}: {', '.join(shown)}")
    return "\n".join(["Named by most documents:", *lines]) if lines else ""


# ---- topics --------------------------------------------------------------------------------------

SAMPLED = 6_000  # passages that are counted; every k-th of more
READ = 30  # passages of a community whose sentences are compared
TERMS = 40  # characteristic terms of a community
NAMES, DOCUMENTS = 5, 12  # shown of a topic
LARGEST = 8  # topics of all where a map shows series
PER_SENTENCE = 45  # tokens of a sentence of a series
ABOUT = 10  # names and nouns of a series
BELOW = 4  # topics inside a topic that are named with it
LENGTH = 220  # characters of a sentence
WIDE = 1 / 3  # share of the documents of a topic that only the topics inside it describe
LEAST = 5  # topics that a map shows even if fewer hold that share
LISTED = 20  # tokens of a topic in the list of those without an entry
MANY = 100  # documents from which on a map says how to list the titles of all
A_TITLE = 20  # tokens of a title in that list
HEADS = 500  # tokens of its topics
ROOM = 140  # tokens of a topic for which the topics inside it are shown
UNASKED = "The question was empty; this is an overview. Ask with query=..."
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
    central: list[str] = field(
        default_factory=list
    )  # the best passage of each document, by content id


@dataclass(slots=True)
class Counts:
    """What a snapshot holds, counted once."""

    communities: dict[str, dict[str, Any]]  # n, level and rank by id
    path: dict[str, list[str]]  # the communities of a text unit, the coarsest first
    passages: list[dict[str, Any]]  # id, text unit, terms and entities; a sample of many
    documents: dict[str, str]  # text unit -> document
    sheets: dict[str, str]  # row of a sheet (a document) -> file
    places: dict[str, array[int]]  # of the passages that hold a term
    entities: Counter[str]
    described: dict[str, Topic] = field(default_factory=dict)


# ---- the map -------------------------------------------------------------------------------------


def overview(
    result: SearchResult,
    corpora: Sequence[Part],
    budget: int,
    *,
    level: int = -1,
    offset: int = 0,
    cursor: Callable[[tuple[int, ...]], str] = lambda _: "",
) -> SearchResult:
    """The result with the map of each corpus, which gets an equal share of the budget. The map of a
    single corpus has pages."""
    if not offset:  # beside the text, which is a quotation
        missing = (summaries.missing(snapshot) for _, snapshot, _ in corpora)
        result.hint = " ".join(filter(None, (result.hint, *missing)))
    page = page_of(result, budget)
    room, left, documents = page.room, 0, 0
    for number, part in enumerate(corpora):
        share = room // (len(corpora) - number)
        part_page = Page(share, page.characters)
        groups = series.grouped(part[1], passing(part[1], part[2])) if level < 0 else {}
        if len(groups) > 1:
            shown, rest = _add_series(part_page, part, groups, offset)
        else:
            shown, rest = _add_map(part_page, part, level, offset)
        room -= share - part_page.room
        left += rest if len(corpora) == 1 else 0
        page.blocks += part_page.blocks
        page.citations |= part_page.citations
        result.communities += shown
        documents += len(set(count(part[1]).documents.values()))
    result.coverage |= {"documents": documents, "topics": left + offset + len(result.communities)}
    return finished(result, page, left, offset + len(result.communities), cursor)


def passing(snapshot: Snapshot, kept: Filters | None) -> set[str]:
    """The content ids of the documents that pass the filters."""
    if kept is None or all_pass(kept):
        return set(times.documents(snapshot)) - note_sources.ids(snapshot)
    return set(kept.passing_documents(snapshot))


def _add_series(
    page: Page, part: Part, groups: Mapping[series.Series | None, Sequence[str]], first: int
) -> tuple[list[str], int]:
    """Add the series from the place `first` on, each with its topics, names and the sentences that
    say most: ids of the topics shown, and how many series have had no room."""
    corpus, snapshot, kept = part
    total, topics = sum(map(len, groups.values())), of_level(snapshot, 0, kept)
    shown: list[str] = []
    if not first:
        page.add(f"{counted(total, 'documents')} in {len(groups)} series.\n")
        prefix = f"{corpus}/" if corpus else ""
        found = largest(snapshot, LARGEST, kept)
        shown = [f"{prefix}c{topic.n}" for topic, _ in found]
        titles = [f"{topic.title} [{id}]" for (topic, _), id in zip(found, shown, strict=True)]
        page.add(f"Topics of all: {'; '.join(titles)}; {max(len(topics) - LARGEST, 0)} more.\n")
        page.add(named_overview(snapshot, passing(snapshot, kept), prefix) + "\n")
    for number, (group, ids) in enumerate(list(groups.items())[first:], first):
        room = page.room // (len(groups) - number)
        head = series.described(snapshot, group, ids)
        block = f"{head}\n  About: {_about(snapshot, ids, head)}"
        if not page.add(block):
            return shown, len(groups) - number
        most = (room - count_tokens(block)) // PER_SENTENCE
        lines = digests.of_documents(snapshot, ids, max(most, 1), corpus)
        render.show_lines(page, lines, indent="  ")
    return shown, 0


def _about(snapshot: Snapshot, ids: Sequence[str], title: str) -> str:
    """The names and nouns that set these documents (content ids) apart from the others."""
    known, within = count(snapshot), set(ids)
    rows = [row for row in known.passages if known.documents[row["text_unit_id"]] in within]
    worth = weights(rows, known)
    rows.sort(key=lambda row: (-round(density(row["terms"].split(), worth), 9), row["id"]))
    found = hits.read(whole(snapshot), [(row["id"], 1.0) for row in rows[:READ]])
    texts = [hit.body[start:end] for hit in found for start, end in sentences(hit.body)]
    return ", ".join(parts(worth, _names(snapshot, rows, known), texts, ABOUT, title))


def _add_map(page: Page, part: Part, level: int, first: int) -> tuple[list[str], int]:
    """Add the topics of a level to the page, those of most documents first, from the place `first` on:
    ids of those that are shown, and how many have had no room. Each document counts in one topic, and
    the last line says how many topics and documents are not shown, so that the shares add up."""
    corpus, snapshot, kept = part
    known, prefix = count(snapshot), f"{corpus}/" if corpus else ""
    found = of_level(snapshot, level, kept)
    documents: set[str] = set().union(*(topic.documents for topic in found))
    total = _number(known, documents)
    if not first:
        of = f" in corpus {corpus}" if corpus else ""
        rows = "" if total == len(documents) else " The rows of a sheet count as one."
        tokens = math.ceil(len(documents) * A_TITLE / 100) * 100 + HEADS
        all_titles = f" The titles of all: list_documents(max_tokens={tokens})."
        titles = (
            all_titles
            if kept is None and MANY < len(documents) <= (HIGHEST - HEADS) // A_TITLE
            else ""
        )
        page.add(
            f"{counted(len(documents), 'documents')} on {counted(len(found), 'topics')}{of}.{rows}{titles}\n"
        )
    shown: list[str] = []
    reserve = min(len(found) * LISTED, page.room // 4)  # for the rest, by title
    page.room -= reserve
    for number, topic in enumerate(found[first:], first):
        describe(snapshot, topic, kept, corpus)
        share = page.room // max(min(len(found) - number, 3 * LEAST), 1)
        head = f"[{prefix}c{topic.n}] {topic.title}: {_share(snapshot, topic, total)}"
        names = f"  Names: {', '.join(topic.names)}" if topic.names else ""
        below = ""
        if topic.share > WIDE or share > ROOM:
            below = inside(snapshot, topic, level, kept, prefix)
        statements = topic.said if share > ROOM // 2 or number < LEAST else []
        lines = [
            *filter(None, [head, names, f"  Inside: {below}" if below else ""]),
            *(f"  - {text} [{place.id}]{context.where(place)}" for text, place in statements),
        ]
        if not page.add("\n".join(lines), [place for _, place in statements]) and not page.add(
            head
        ):
            break
        shown.append(f"{prefix}c{topic.n}")
    rest = found[first + len(shown) :]
    page.room += reserve
    more = sum(len(topic.main) for topic in rest)
    others = f"{counted(len(rest), 'more topics')} with {counted(more, 'more documents')}"
    for most in (len(rest), len(rest) // 2, 0) if rest else ():
        listed = _listed(snapshot, rest[:most], kept, prefix)
        if page.add(f"{others}{': ' if most else ''}{listed}."):
            break
    if not first:
        passing: set[str] | None = None
        if kept is not None and not all_pass(kept):
            passing = {known.documents[unit] for unit in kept.units(snapshot)}
        page.add(named_overview(snapshot, passing, prefix))
    return shown, len(rest)


def _number(known: Counts, documents: Iterable[str]) -> int:
    """How many documents these are, where the rows of a sheet count as one."""
    return len({known.sheets.get(document, document) for document in documents})


def _listed(
    snapshot: Snapshot, topics: Sequence[Topic], kept: Filters | None, prefix: str = ""
) -> str:
    """`Latin America [c64], 3 documents; ...`"""
    for topic in topics:
        describe(snapshot, topic, kept)
    return "; ".join(
        f"{topic.title} [{prefix}c{topic.n}], {counted(len(topic.main), 'documents')}"
        for topic in topics
    )


def topic_of(snapshot: Snapshot, id: str) -> tuple[Topic, str]:
    """The topic of a community (content id), and a line with its share of the corpus."""
    known = count(snapshot)
    row = known.communities[id]
    every = of_level(snapshot, row["level"])
    topic = next((topic for topic in every if topic.id == id), Topic(id, row["n"]))
    describe(snapshot, topic)
    return topic, _share(snapshot, topic, _number(known, known.documents.values()))


def titles_of(snapshot: Snapshot, documents: Collection[str]) -> dict[str, tuple[int, str]]:
    """Number and title of the coarsest topic of most of the text of each of these documents."""
    main = {id: topic for topic in of_level(snapshot, 0) for id in topic.main & set(documents)}
    names = ["id", "title"]
    rows = whole(snapshot).by_key(
        "reports", sorted({topic.id for topic in main.values()}), "id", names
    )
    title = dict(rows_of(rows))
    return {id: (topic.n, one_line(title[topic.id], 120)) for id, topic in main.items()}


def inside(
    snapshot: Snapshot,
    topic: Topic,
    level: int | None = None,
    kept: Filters | None = None,
    prefix: str = "",
) -> str:
    """The largest topics inside a topic, by title, each with its documents; "" where there are fewer
    than two."""
    below, more = within(snapshot, topic, level, kept)
    rest = f"; {more} more" if more else ""
    return _listed(snapshot, below, kept, prefix) + rest if below else ""


def within(
    snapshot: Snapshot, topic: Topic, level: int | None = None, kept: Filters | None = None
) -> tuple[list[Topic], int]:
    """The largest topics inside a topic, each with the documents that both have, and the number of the
    others; none where there are fewer than two."""
    parts = parts_of(snapshot, topic, level, kept)
    below = [replace(part, main=main) for part in parts if (main := part.main & topic.main)]
    if len(below) < 2:
        return [], 0
    most = BELOW * (3 if topic.share > WIDE else 1)
    return below[:most], max(len(below) - most, 0)


def parts_of(
    snapshot: Snapshot, topic: Topic, level: int | None = None, kept: Filters | None = None
) -> list[Topic]:
    """The topics a level below a topic, those of most documents first."""
    if level is None:
        level = int(count(snapshot).communities[topic.id]["level"])
    below = of_level(snapshot, max(level, 0) + 1, kept)
    return [part for part in below if part.id != topic.id and part.units <= topic.units]


def is_wide(topic: Topic, total: int) -> bool:
    """Does the topic hold so many of all documents that only those inside it say what they are
    about?"""
    return len(topic.main) > WIDE * total


def largest(snapshot: Snapshot, most: int, kept: Filters | None = None) -> list[tuple[Topic, str]]:
    """The largest topics, each with the share of the documents that it holds."""
    found = of_level(snapshot, 0, kept)[:most]
    known = count(snapshot)
    total = _number(known, known.documents.values())
    for topic in found:
        describe(snapshot, topic, kept)
    return [(topic, _share(snapshot, topic, total).partition(", ")[0]) for topic in found]


def _share(snapshot: Snapshot, topic: Topic, total: int) -> str:
    """`12 % of the documents, 1972-10-06 to 2017-09-11`: each document counts in one topic of a
    level."""
    share = f"{100 * topic.share:.0f} % of the documents"
    if total <= 20:
        share = counted(len(topic.main), "documents")
    elif topic.main & count(snapshot).sheets.keys():
        share += f" ({len(topic.main):,} with each row of a sheet)"
    facts = times.documents(snapshot)
    topic_facts = (facts[id] for id in topic.documents if id in facts)
    dates = sorted(fact["date"] for fact in topic_facts if fact["date"] and not fact["by"])
    return f"{share}, {dates[0]} to {dates[-1]}" if dates and dates[0] != dates[-1] else share


# ---- communities ---------------------------------------------------------------------------------


def whole(snapshot: Snapshot) -> Snapshot:
    return snapshot.inner if isinstance(snapshot, Narrowed) else snapshot


def count(snapshot: Snapshot) -> Counts:
    return _counts(whole(snapshot))


@once
def _counts(snapshot: Snapshot) -> Counts:
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
    places: dict[str, array[int]] = defaultdict(lambda: array("H"))
    entities = Counter[str]()
    for place, row in enumerate(rows):
        for term in set(row["terms"].split()):
            places[term].append(place)
        entities.update(row["entity_ids"])
    return Counts(communities, path, rows, documents, _sheets(snapshot), dict(places), entities)


@once
def _sheets(snapshot: Snapshot) -> dict[str, str]:
    return sheets_of(snapshot, times.documents(snapshot).keys() - note_sources.ids(snapshot))


def all_pass(kept: Filters | None) -> bool:
    """Do all text units pass?"""
    return kept is None or (kept.documents is None and not kept.first and not kept.without)


def of_level(snapshot: Snapshot, level: int, kept: Filters | None = None) -> list[Topic]:
    """The communities of a level (of a coarser level where a branch ends sooner), those of most
    documents first, with the text units that pass the filters. The rows of one sheet count as one
    document: 1,500 of them are not what a folder of 40 files is about."""
    known = count(snapshot)
    passing = None if kept is None or all_pass(kept) else set(kept.units(snapshot))
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


def describe(
    snapshot: Snapshot, topic: Topic, kept: Filters | None = None, corpus: str = ""
) -> None:
    """Fill in what is characteristic of a topic, among its text units that pass the filters."""
    known, snapshot, key = count(snapshot), whole(snapshot), f"{corpus}/{topic.id}"
    if kept is None and (done := known.described.get(key)) is not None:
        topic.title, topic.names, topic.said = done.title, done.names, done.said
        topic.central = done.central
        return
    rows = [row for row in known.passages if row["text_unit_id"] in topic.units]
    report = next(iter(snapshot.served("reports", [topic.id])), None)
    topic.names = _names(snapshot, rows, known)
    topic.title = one_line(report["title"], 120) if report else ", ".join(topic.names[:3])
    worth = _worth(report, topic.title) or weights(rows, known)
    main = [row for row in rows if known.documents[row["text_unit_id"]] in topic.main] or rows
    value = {row["id"]: density(row["terms"].split(), worth) for row in main}
    best = sorted(value, key=lambda id: (-round(value[id], 9), id))[:READ]
    found = hits.read(snapshot, [(id, 1.0) for id in best], corpus)
    topic.said = _central(worth, found)
    passages = {hit.document: hit.passage for hit in reversed(found)}
    topic.central = list(dict.fromkeys(passages[hit.document] for hit in found))[:DOCUMENTS]
    if topic.said and (
        written := summaries.of_documents(snapshot, [hit.document for hit in found])
    ):
        cited = {hit.document: hit for hit in reversed(found)}
        id = next(hit.document for hit in found if hit.document in written)
        topic.said = [(written[id], cited[id].cited()[0])]
    if report is not None and report["method"] != "extractive":
        if kept is None or kept.documents is None:  # it speaks of all documents
            topic.said = _written(snapshot, report["summary"]) or topic.said
    if kept is None:
        known.described[key] = topic


def summarised(snapshot: Snapshot, topic: Topic, report: Row) -> list[str]:
    """`- [t12] 2024-05-03 Title: summary` for the documents of a topic that have a summary.
    Documents come first whose summaries contain most of the terms that are typical of the topic.
    Of documents with the same text one is shown."""
    worth = _worth(report, topic.title)
    summary_terms = summaries.terms_of(snapshot, topic.main)
    value = {
        id: math.fsum(worth[term] for term in terms & worth.keys())
        for id, terms in summary_terms.items()
    }
    order = sorted(value, key=lambda id: (-round(value[id], 9), id))
    written = summaries.of_documents(snapshot, order)
    first, facts = context.first_ids(snapshot, order), times.documents(snapshot)
    names, dates = hits.names_of(snapshot), times.shown(facts[id] for id in order)
    rows = snapshot.by_key("passages", order, "document_id", ["document_id", "text"])
    texts = lists_of(rows_of(rows))
    lines: list[str] = []
    seen: list[frozenset[int]] = []
    for id in order:
        runs = render.runs_of(" ".join(sorted(texts[id])))
        if id not in written or any(render.alike(runs, other) for other in seen):
            continue
        seen.append(runs)
        date = "" if facts[id]["by"] else dates[id]
        name = f"{names[id]} {located(facts[id]['uri'], '', names[id])}".rstrip()
        lines.append(" ".join(filter(None, (f"- [{first[id]}]", date, f"{name}:", written[id]))))
    return lines


def _worth(report: Mapping[str, Any] | None, title: str) -> dict[str, float]:
    """The characteristic terms that a report stores, by rank; those of its title count twice."""
    known = report["terms"].rpartition("#")[2].split()[1:] if report else []
    named = set(terms(title))
    return {term: (1 + (term in named)) / (1 + at / 10) for at, term in enumerate(known)}


def _written(snapshot: Snapshot, summary: str) -> list[tuple[str, Citation]]:
    """The first statement that a model or an agent wrote of a text, and that text."""
    for statement in _STATEMENTS.split(summary):
        text, _, references = statement.partition("[Data:")
        sources = referenced_ids(f"[Data:{references}").get("Sources", ())
        cited = context.unit_citations(snapshot, sources[:1])
        if cited:
            return [(one_line(text, LENGTH + 80), next(iter(cited.values())))]
    return []


def _apart(
    here: Mapping[str, int], rows: int, every: Callable[[str], int], total: int
) -> dict[str, float]:
    """How much each key sets these rows apart from all: p log(p / q)."""
    found = {}
    for key, number in here.items():
        p, q = number / rows, every(key) / total
        found[key] = p * math.log(p / q) if p > q else p * 1e-3
    return found


def weights(rows: Sequence[Row], known: Counts) -> dict[str, float]:
    """The characteristic terms of some passages, with their weights."""
    here = Counter(term for row in rows for term in set(row["terms"].split()))
    telling = {
        term: number
        for term, number in here.items()
        if tells_topic(term) and not any(map(str.isdigit, term)) and (number > 1 or len(rows) <= 2)
    }
    every = _apart(telling, len(rows), lambda term: len(known.places[term]), len(known.passages))
    best = sorted(every, key=lambda term: (-round(every[term], 9), term))[:TERMS]
    return {term: every[term] for term in best}


def density(terms: Sequence[str], worth: Mapping[str, float]) -> float:
    """The worth of the terms of a text, for its length."""
    return math.fsum(worth.get(term, 0.0) for term in set(terms)) / math.sqrt(1 + len(terms))


def _names(snapshot: Snapshot, rows: Sequence[Row], known: Counts) -> list[str]:
    """Entities that stand here more than elsewhere, by how often; those with a type first."""
    documents = {row["id"]: known.documents[row["text_unit_id"]] for row in rows}
    of = lists_of((id, documents[row["id"]]) for row in rows for id in row["entity_ids"])
    least = min(NAMED_BY, len(set(documents.values())) // 2)
    here = {id: len(group) for id, group in of.items() if len(set(group)) >= least}
    score = _apart(here, len(rows), known.entities.__getitem__, len(known.passages))
    best = sorted(score, key=lambda id: (-round(score[id], 9), id))[: NAMES * 4]
    found = snapshot.served("entities", best, ["id", "title", "type"])
    shown = [
        (score[row["id"]] * (1 if row["type"] in ("", "other") else 2), one_line(row["title"], 40))
        for row in found
        if is_cjk(row["title"][0]) or row["title"][0].isupper()
    ]
    return [title for _, title in sorted(shown, key=lambda pair: -pair[0])][:NAMES]


def _central(worth: Mapping[str, float], found: Iterable[Hit]) -> list[tuple[str, Citation]]:
    """The sentence that holds most of what is characteristic, with its citation."""
    pairs = [(hit, best) for hit in found if (best := quote.best(hit.body, worth)) is not None]
    if not pairs:
        return []
    hit, best = max(pairs, key=lambda pair: round(pair[1].score, 9))
    text = quote.with_speaker(hit.body, best).text
    return [(quote.clipped(text, worth, LENGTH), hit.cited()[0])]
