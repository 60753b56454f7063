"""Extracts: what the documents of a corpus say on a question, sentences by topic or by document.

A sentence counts by the terms of the question that it and its passage hold, more for words that
documents keep coming back to; a general word of the question stands for those of `related.toml`."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from graphrag_mcp.query import local, passages, topics
from graphrag_mcp.query.filters import Filters, Part
from graphrag_mcp.query.passages import Hit, Line, Source
from graphrag_mcp.query.question import is_stem
from graphrag_mcp.query.reports import asked_about
from graphrag_mcp.query.topics import Counts, Topic
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import eventful, says_something, sentences, stands_alone, substance
from graphrag_mcp.text.terms import entity_id, lists_of, normalise_name, query_terms, terms

FEW = 40  # sentences on a question
ASKED = 240  # passages on a question that are read, by the search and by the worth of their words
LEAST_SAID, FIRST = 0.12, 0.3  # share of the best sentence's worth; half of it for the first of all
# share of the best document's worth that another must hold, half of it for so many documents
DOCUMENT, FEW_DOCUMENTS = 0.25, 10
# Passages from which a document comes later in a list, by this power: it holds every word somewhere.
# Of 34 questions on 1,258 web pages the nDCG of the first 30 is 0.608, before 0.606.
GIANT, IN_PASSING = 50, 0.3
# What the best sentences of a document and its best passages in the search add to its worth: each
# next one FADING of the one before. Measured on 34 questions on 1,260 web pages (decisions.md).
BESIDE = 0.1  # of a sentence's worth that does not depend on its document
SENTENCES, FOUND, FADING, OF_SEARCH = 4, 2, 0.5, 0.5
# Passages of a topic, of a corpus, that say how full of a question the topic is.
FEW_PASSAGES, MANY_PASSAGES = 5, 500
NAMES = 3  # in a row of words, from which each is a thing of its own
MARKS = 3  # commas, semicolons and colons from which a sentence with a question mark is a list
OF_TOPIC = 8  # sentences of a topic
# sentences of a document, and their share of the best: first one of each, then more where room is left
OF_DOCUMENT = ((1, 0.0), (3, 0.5), (6, 0.35))
# Share of what the best passage holds of the question, from which another is on it.
ON_TOPIC = 0.33
# Where a question lists things: what a sentence holds of all of them, as a share of its worth.
OF_ALL = 0.25
_MARK = re.compile(f"{passages.LISTED.pattern}|[:：]")
SUBJECT = 0.6  # worth of a word beside others that all documents on the question hold
RELATED = 0.7  # worth of a word that says the same as a general one
LONG, MOSTLY = 8, 0.4  # passages of a long document; share of them that hold what it is about
TAIL = 30  # characters by which a sentence is found in its passage
CONTEXT = 0.5  # of the worth of a word of the question that stands in the passage beside a sentence
OFTEN, WORDS = 0.25, 200  # share of the passages that hold a word which tells little; words read
SAME = 0.6  # share of common terms from which two sentences say the same

Related = Sequence[tuple[frozenset[str], frozenset[str]]]


@dataclass(slots=True)
class Asked:
    """What a question is about: the worth of its terms, as shares of all of it; words that say what
    a general word of it asks after, with the terms of that word; how much each passage is on it, by
    content id, as a share of the best."""

    terms: Mapping[str, float]
    related: Related
    subject: Set[str] = frozenset()  # of the terms those that say which documents it is about
    about: Set[str] = frozenset()  # these; none: any
    things: Sequence[Set[str]] = ()  # the terms of each thing that the question lists
    passages: dict[str, float] = field(default_factory=dict)

    def held_by(self, held: Set[str]) -> float:
        """The share of the question, or of one thing that it lists, that these terms hold."""
        value = self._worth(held, self.terms.keys())
        if not self.things:
            return value
        whole = [math.fsum(self.terms[term] for term in one) for one in self.things]
        top = max(whole)
        return OF_ALL * value + (1 - OF_ALL) * max(
            self._worth(held, one) / own * math.sqrt(own / top)
            for one, own in zip(self.things, whole, strict=True)
        )

    def _worth(self, held: Set[str], wanted: Set[str]) -> float:
        """The worth of the wanted terms that are held, where a word that says the same stands for a
        general one."""
        value = math.fsum(
            self.terms[term] * (SUBJECT if term in self.subject else 1.0) for term in wanted & held
        )
        for general, said in self.related:
            own = general & wanted
            if own and not (said.isdisjoint(held) and own.isdisjoint(held)):
                whole = RELATED * math.fsum(self.terms[term] for term in own)
                value += max(whole - math.fsum(self.terms[term] for term in own & held), 0.0)
        return value


def _topical(known: Counts, worth: Mapping[str, float]) -> dict[str, float]:
    """More for terms that a document on them keeps coming back to: `primes`, but not `methods`."""
    found = {}
    for term, value in worth.items():
        rows = [known.passages[place] for place in known.places.get(term, ())]
        documents = {known.documents[row["text_unit_id"]] for row in rows}
        found[term] = value * (1 + math.log(len(rows) / len(documents))) if rows else value
    return found


def _subject(known: Counts, worth: Mapping[str, float]) -> tuple[Set[str], Set[str]]:
    """The terms that say which documents a question is about, and these: `typhoon` of "typhoons: dead,
    homeless, cost" where some long documents have it in most passages and hardly any other has it.
    None where documents are short, or where the question has no other terms."""
    size = Counter(known.documents[row["text_unit_id"]] for row in known.passages)
    long = {id for id, passages in size.items() if passages >= LONG}
    found: set[str] = set()
    about: set[str] = set()
    for term, after in pairwise([*worth, ""]):
        forms = {term, after} if after and is_stem(after, term) else {term}
        places = {place for form in forms for place in known.places.get(form, ())}
        held = Counter(known.documents[known.passages[place]["text_unit_id"]] for place in places)
        full = [id for id in long & held.keys() if held[id] >= MOSTLY * size[id]]
        if len(full) >= max(3, 0.05 * len(long), 0.2 * len(long & held.keys())):
            found |= forms
            about |= held.keys()
    return (found, about) if worth.keys() - found else (set(), set())


def _related(known: Counts, worth: Mapping[str, float]) -> Related:
    """Of the general words among these terms (their own terms, words that say the same); of these
    only words that few passages hold."""
    most = OFTEN * len(known.passages)
    found = []
    for general, said in _related_words():
        if own := general & worth.keys():
            kept = (term for term in said if len(known.places.get(term, ())) <= most)
            found.append((frozenset(own), frozenset(kept) - own))
    return found


def general_words(query: str) -> list[str]:
    """The words of a question that ask after others, as in `related.toml`, each once."""
    wanted = set(query_terms(query))
    found = (sorted(asked & wanted) for asked, _ in _related_words())
    return list(dict.fromkeys(term for some in found for term in some[:1]))


@cache
def _related_words() -> list[tuple[frozenset[str], frozenset[str]]]:
    groups = tomllib.loads(Path(__file__).with_name("related.toml").read_text("utf-8"))["group"]
    return [
        (frozenset(query_terms(one["asked"])), frozenset(query_terms(one["said"], WORDS)))
        for one in groups
    ]


def source_of(part: Part, query: str, explain: bool = False) -> Source | None:
    """What a search for a question finds; None where that says nothing on it."""
    corpus, snapshot, kept = part
    found = local.find(snapshot, query, filters=kept)
    if (not found.passages or local.only_common_words(found)) and not general_words(query):
        return None
    return local.source_of(snapshot, found, corpus, kept, explain)


def by_topic(
    source: Source, level: int = -1, most: int = FEW
) -> list[tuple[Topic | None, list[Line]]]:
    """What the documents say on a question: sentences by topic, the topic of the best one first; None
    for sentences of no topic. `source`: what a search for it found."""
    snapshot, kept = source.snapshot, source.filters
    in_series = topics.of_series(snapshot, kept) if level < 0 else []
    level = 1 if level < 0 else level
    of_level = {one.id: one for one in in_series or topics.of_level(snapshot, level, kept)}
    of_unit = {unit: topic.id for topic in of_level.values() for unit in topic.units}
    found, worth = _sentences(source)
    every = [
        (
            of_unit.get(unit, ""),
            replace(line, value=line.value * (BESIDE + (1 - BESIDE) * worth[line.hit.document])),
        )
        for unit, line in found
    ]
    each = max(OF_TOPIC, 2.5 * most / len(in_series)) if in_series else OF_TOPIC * most / FEW
    lines = lists_of(_joined(_chosen(every, each, most)))
    if in_series:
        return [(one, lines[one.id]) for one in in_series if one.id in lines]
    return _grouped(snapshot, lines, of_level, level, kept)


def by_document(source: Source, most: int) -> dict[str, list[Line]]:
    """The same by document (content ids), at most so many: the sentences of each that say something
    on the question, best first; a document that repeats another is named with it."""
    found, worth = _sentences(source)
    lines = lists_of((line.hit.document, line) for _, line in sorted(found, key=_order))
    best = max((held[0].value for held in lines.values()), default=0.0)
    kept: dict[str, list[Line]] = {}
    shown: list[tuple[frozenset[int], Hit]] = []
    for id in sorted(lines, key=lambda id: (-round(worth[id], 9), id)):
        held = lines[id]
        if worth[id] < DOCUMENT / (1 if len(kept) >= FEW_DOCUMENTS else 2) or len(kept) == most:
            break
        runs = passages.runs_of(held[0].hit.body)
        same = next((hit for other, hit in shown if passages.alike(runs, other)), None)
        if same is not None:
            same.also.append(held[0].hit.id)
            continue
        shown.append((runs, held[0].hit))
        rest = (one for one in held[1:] if one.value >= OF_DOCUMENT[-1][1] * best)
        kept[id] = [held[0], *rest]
    known = topics.count(source.snapshot)
    size = Counter(known.documents[row["text_unit_id"]] for row in known.passages)
    value = {id: worth[id] * (max(size[id], GIANT) / GIANT) ** -IN_PASSING for id in kept}
    return {id: kept[id] for id in sorted(kept, key=lambda id: (-round(value[id], 9), id))}


def fitting(lines: Sequence[Line], room: int) -> list[Line]:
    """Of the sentences of a document, best first, those that fit into `room` characters, at least
    one; in its order, those of a passage as one line."""
    chosen: list[Line] = []
    seen: list[set[str]] = []
    for line in map(passages.shortened, lines):
        held = set(terms(line.text))
        if chosen and (len(line.text) > room or _repeats(held, seen)):
            continue
        chosen.append(line)
        seen.append(held)
        room -= len(line.text) + 2
    joined = [line for _, line in _joined([("", line) for line in chosen])]
    return sorted(joined, key=lambda line: line.hit.citation.char_start)


def _repeats(held: Set[str], seen: Iterable[Set[str]]) -> bool:
    return any(len(held & one) > SAME * len(held | one) for one in seen)


def _order(one: tuple[str, Line]) -> tuple[float, str, str]:
    return -round(one[1].value, 9), one[1].hit.passage, one[1].text


def _sentences(source: Source) -> tuple[list[tuple[str, Line]], dict[str, float]]:
    """The sentences of the passages that are on the question, each with its text unit; and what the
    documents that hold them are worth."""
    snapshot, kept = source.snapshot, source.filters
    passing = None if topics.all_pass(kept) else set(kept.units(snapshot))
    asked = question_of(snapshot, _worth(source), source.found.query, passing)
    first = sorted(asked.passages, key=lambda id: (-round(asked.passages[id], 9), id))
    searched = [one.id for one in source.found.passages[:ASKED]]
    ids = list(dict.fromkeys([*searched, *first[:ASKED]]))
    rows = snapshot.by_key("passages", ids, "id", ["id", "text_unit_id"]).to_pylist()
    unit_of = {
        row["id"]: row["text_unit_id"]
        for row in rows
        if passing is None or row["text_unit_id"] in passing
    }
    score = {one.id: one.score for one in source.found.passages}
    scored = [(id, score.get(id, 0.0)) for id in ids if id in unit_of]
    ranked = [id for id, _ in scored if id in score]
    why = source.found.why(ranked) if source.explained else {}
    hits = [
        passages.of_then(hit, kept)
        for hit in passages.read(topics.whole(snapshot), scored, source.corpus, why)
        if passages.names_all(hit, source.found.names)
    ]
    known = topics.count(snapshot)
    weight = _weights(known, asked)
    around = {
        hit.passage: asked.held_by(set(terms(f"{hit.citation.title}\n{hit.body}"))) for hit in hits
    }
    least = ON_TOPIC * max(around.values(), default=0.0)
    found = [
        (unit_of[hit.passage], replace(line, value=line.value * weight(unit_of[hit.passage])))
        for hit in hits
        if around[hit.passage] >= least and (not asked.about or hit.document in asked.about)
        for line in _lines(hit, asked, around[hit.passage], known.own(hit.document, hit.body))
    ]
    return found, _documents(source, found)


def _documents(source: Source, found: Iterable[tuple[str, Line]]) -> dict[str, float]:
    """The worth of documents (content ids) as a share of the best: by the sentences that say most,
    and by what the search found in them."""
    said = lists_of((line.hit.document, line.value) for _, line in found)
    searched = lists_of((one.document_id, one.score) for one in source.found.passages)
    of_sentences, of_search = _fading(said, SENTENCES), _fading(searched, FOUND)
    return _shares({id: of_sentences[id] + OF_SEARCH * of_search.get(id, 0.0) for id in said})


def _fading(values: Mapping[str, list[float]], most: int) -> dict[str, float]:
    best = {id: sorted(some, reverse=True)[:most] for id, some in values.items()}
    return _shares(
        {id: sum(v * FADING**n for n, v in enumerate(some)) for id, some in best.items()}
    )


def _shares(values: dict[str, float]) -> dict[str, float]:
    top = max(values.values(), default=0.0) or 1.0
    return {id: value / top for id, value in values.items()}


def _weights(known: Counts, asked: Asked) -> Callable[[str], float]:
    """What a sentence of a text unit counts by the topic that it lies in: all of it in the topic that
    is fullest of the question, half in one that has nothing of it. Topics of few passages tell nothing."""
    if len(known.passages) < MANY_PASSAGES:
        return lambda _: 1.0
    top = {unit: path[0] for unit, path in known.path.items() if path}
    value, size = Counter[str](), Counter[str]()
    for row in known.passages:
        topic = top.get(row["text_unit_id"], "")
        size[topic] += 1
        value[topic] += asked.passages.get(row["id"], 0.0) ** 2
    full = {topic: value[topic] / (size[topic] + FEW_PASSAGES) for topic in size}
    most = max(full.values(), default=0.0) or 1.0
    return lambda unit: 0.5 + 0.5 * full.get(top.get(unit, ""), 0.0) / most


def _worth(source: Source) -> dict[str, float]:
    asked = asked_about(source.snapshot, source.found.query)
    worth = source.found.terms if asked is None else asked
    return passages.without_people(worth, source.found.names)


def _listed(snapshot: Snapshot, query: str, worth: Mapping[str, float]) -> Sequence[Set[str]]:
    """The terms of the things that a question lists, of which each passage need not hold more than one:
    in a row of words ("Cuba Chile Peru oil") each name with the rest; none for a sentence with a comma
    or two."""
    if query.endswith(("?", "？")) and len(_MARK.findall(query)) < MARKS:
        return []
    things = passages.things_of(query, worth)
    if len(things) > 1 or {*map(str.lower, query.split())} - {*query_terms(query)}:
        return [one.keys() for one in things] if len(things) > 1 else []  # no row of words
    words = query.split()
    runs = [words[at : at + n] for at, one in enumerate(words) if one.istitle() for n in (3, 2, 1)]
    forms = {entity_id(normalise_name(form)): form for form in map(" ".join, runs)}
    rows = snapshot.by_key("entities", [*forms], "id", ["id"])["id"].to_pylist()
    held = [worth.keys() & query_terms(forms[id]) for id in rows]
    names = [one for one in held if one and not any(one < other for other in held)]
    rest = worth.keys() - {term for own in names for term in own}
    return [own | rest for own in names] if len(names) >= NAMES else []


def question_of(
    snapshot: Snapshot, worth: Mapping[str, float], query: str, passing: set[str] | None = None
) -> Asked:
    """What a question is about. `worth` of its terms: a general word counts although no passage
    holds it; `passing`: the text units that pass its filters."""
    known, most = topics.count(snapshot), max(worth.values(), default=1.0)
    general = {term: most for term in general_words(query) if term not in worth}
    worth = _topical(known, general | dict(worth))
    whole = sum(worth.values()) or 1.0
    shares = {term: value / whole for term, value in worth.items()}
    subject, about = _subject(known, worth)
    things = [one for each in _listed(snapshot, query, shares) if (one := each - subject)]
    asked = Asked(shares, _related(known, worth), subject, about, things)
    wanted = {*worth, *(one for _, said in asked.related for one in said)}
    held = lists_of((place, term) for term in wanted for place in known.places.get(term, ()))
    rows = ((known.passages[place], asked.held_by({*some})) for place, some in held.items())
    on_it = {row["id"]: v for row, v in rows if passing is None or row["text_unit_id"] in passing}
    best = max(on_it.values(), default=1.0) or 1.0
    asked.passages = {id: value / best for id, value in on_it.items()}
    return asked


def _lines(hit: passages.Hit, asked: Asked, around: float, body: str) -> Iterable[Line]:
    """The sentences of a passage that say something on the question, with their worth. `around`: the
    share of the question that the passage holds with its title; `body`: its text."""
    on_it = max(asked.passages.get(hit.passage, 0.0), hit.score)
    for start, end in sentences(body):
        said = body[start:end]
        if not says_something(said) or not (own := asked.held_by(set(terms(said)))):
            continue
        doing = eventful(said)
        value = (own * (1 - CONTEXT) + around * CONTEXT) * math.sqrt(doing)
        value *= substance(said) if doing > 1 else stands_alone(said)
        value *= (0.25 + 0.75 * on_it) * (1 + 0.4 * min(passages.facts(said), 5) / 5)
        yield Line(hit, passages.with_speaker(body, start, said), value)


def _chosen(
    lines: Sequence[tuple[str, Line]], of_one: float, in_all: int
) -> list[tuple[str, Line]]:
    """The best sentences with their topics, none that repeats another: first
    one of each document, then others of theirs that are worth more than half of the best.
    `of_one`: sentences of a topic, in the first round."""
    order = sorted(lines, key=_order)
    of_document, of_topic = Counter[str](), Counter[str]()
    seen: list[set[str]] = []
    chosen: list[tuple[str, Line]] = []
    for most, again in OF_DOCUMENT:
        for id, line in order:
            least = again or LEAST_SAID / (1 if len(chosen) >= FIRST * in_all else 2)
            if line.value < least * order[0][1].value or len(chosen) == in_all:
                break
            held = set(terms(line.text))
            if (
                of_document[line.hit.document] >= most
                or of_topic[id] >= of_one * most
                or _repeats(held, seen)
            ):
                continue
            of_document[line.hit.document] += 1
            of_topic[id] += 1
            seen.append(held)
            chosen.append((id, passages.shortened(line)))
    return chosen


def _joined(chosen: Sequence[tuple[str, Line]]) -> Iterable[tuple[str, Line]]:
    """The same with the sentences of one passage on one line, in its order."""
    of_passage = lists_of((line.hit.passage, (id, line)) for id, line in chosen)
    for (id, first), *rest in of_passage.values():
        body = first.hit.body
        said = [first.text, *(line.text for _, line in rest)]
        said.sort(key=lambda one: body.find(one.rstrip("…")[-TAIL:]))
        text = said[0]
        for one in said[1:]:
            apart = (gap for gap in ("", " ") if f"{text[-TAIL:]}{gap}{one[:TAIL]}" in body)
            text += next(apart, " … ") + one
        yield id, replace(first, text=text)


def _grouped(
    snapshot: Snapshot,
    lines: Mapping[str, list[Line]],
    of_level: Mapping[str, Topic],
    level: int,
    kept: Filters | None,
) -> list[tuple[Topic | None, list[Line]]]:
    """Lines by topic, the topic of the best one first. A topic with one line is shown as the topic
    that it lies in."""
    above = topics.of_level(snapshot, level - 1, kept) if level else []
    parent = {unit: topic.id for topic in above for unit in topic.units}
    found: dict[str, list[Line]] = defaultdict(list)
    for id, held in lines.items():
        lone = len(held) == 1 and id in of_level and len(lines) > 1
        found[parent.get(min(of_level[id].units), id) if lone else id] += held
    every = {**of_level, **{topic.id: topic for topic in above}}
    order = sorted(found, key=lambda id: (-round(max(one.value for one in found[id]), 9), id))
    for id in order:
        if id in every:
            topics.describe(snapshot, every[id])
    return [(every.get(id), found[id]) for id in order]
