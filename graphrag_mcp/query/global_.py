"""Global search: what the corpus as a whole says about a question.

Without a model: a map of the topics where the question names none (topics.py), else sentences from
many documents by topic, after what community reports say (reports.py). With a model: reports are
rated down the tree, read for points in batches (map), and the points joined to an answer (reduce).

A sentence counts by the terms of the question that it and its passage hold, more for words that
documents keep coming back to; a general word of the question stands for those of `related.toml`."""

from __future__ import annotations

import asyncio
import math
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Item, Section, compose, finish, one_line
from graphrag_mcp.packing.citations import data, restored
from graphrag_mcp.query import context, local, passages, sections, topics
from graphrag_mcp.query.answer import (
    NO_MODEL,
    Answered,
    AnswerOptions,
    Meter,
    Question,
    answer,
    answered,
    asked,
    failed,
    fitting,
    note,
    report_line,
    unfinished,
    waited,
    without_references,
    word_limit,
)
from graphrag_mcp.query.filters import Filters, Part
from graphrag_mcp.query.local import Request, joined
from graphrag_mcp.query.model_replies import (
    POINTS_SCHEMA,
    RATING_SCHEMA,
    Point,
    read_points,
    read_rating,
)
from graphrag_mcp.query.passages import Line, Page, Source
from graphrag_mcp.query.reports import (
    READ,
    THRESHOLD,
    Rated,
    Row,
    all_rated,
    asked_about,
    finding_items,
    included_first,
    select,
    whole_level,
)
from graphrag_mcp.query.retrieval import is_stem
from graphrag_mcp.query.topics import Counts, Topic
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import eventful, says_something, sentences, stands_alone, substance
from graphrag_mcp.text.terms import counted, query_terms, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult, content_id

DEFAULT_TOKENS = 6_000
FEW, MOST, ROOMY = 40, 80, 4_000  # sentences on a question, the more of them from that budget on
THEMES = 8  # titles shown when no report is relevant
ASKED = 240  # passages on a question that are read, by the search and by the worth of their words
LEAST_SAID, FIRST = 0.25, 0.3  # share of the best sentence's worth; half of it for the first of all
SOME = 4  # passages below which all are on the question
MARKS = 3  # commas, semicolons and colons from which a sentence with a question mark is a list
OF_TOPIC = 8  # sentences of a topic
OF_DOCUMENT, AGAIN = 3, 0.5  # sentences of a document; share of the best from the second on
# Share of what the best passage holds of the question, from which another is on it; where a question
# lists things, or too few passages hold so much.
ON_TOPIC, ON_LISTED = 0.5, 0.25
# Where a question lists things: what a sentence holds of all of them, as a share of its worth.
OF_ALL = 0.25
_MARK = re.compile(f"{passages.LISTED.pattern}|[:：]")
SUBJECT = 0.3  # worth of a word beside others that all documents on the question hold
RELATED = 0.7  # worth of a word that says the same as a general one
LONG, MOSTLY = 8, 0.4  # passages of a long document; share of them that hold what it is about
TAIL = 30  # characters by which a sentence is found in its passage
CONTEXT = 0.5  # of the worth of a word of the question that stands in the passage beside a sentence
OFTEN, WORDS = 0.25, 200  # share of the passages that hold a word which tells little; words read
SAME = 0.6  # share of common terms from which two sentences say the same
SEED = "reports"  # of the hash that orders the reports of batches
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
# at an explicit level; the reports nearest to the question go in
MOST_BATCHES, MOST_REPORTS = 20, 1_000
REPORT_CHARACTERS, ACCOUNT = 12_000, 30  # of one report; tokens of what stands before it
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant

Related = Sequence[tuple[frozenset[str], frozenset[str]]]


def global_search(
    snapshot: Snapshot, query: str, *, asker: Asker | None = None, **wishes: Any
) -> SearchResult:
    """What the documents say by topic, and with `answer` what a model makes of the reports. `wishes`
    are the fields of a `Request`."""
    return search([("", snapshot)], Request(query, **wishes), {"": asker} if asker else {})


def search(
    corpora: Sequence[local.Corpus], request: Request, askers: Mapping[str, Asker] | None = None
) -> SearchResult:
    """The same in one corpus or several."""
    budget, note = request.budget(DEFAULT_TOKENS)
    result, corpora = local.begun(corpora, "global"), local.with_text(corpora)
    if not corpora:
        return finish(local.without_text(result), budget)
    query = request.query.strip()
    block, names = local.read_history(request.history, query, budget)
    looked_for = " ".join([query, *names])
    form = request.level, request.response_format, request.explain
    asked = f"global|{looked_for}|{form}|{[*request.filters, request.min_rating]}"
    offsets, page = local.paging(corpora, asked, request.cursor, 1)
    if offsets is None:
        return finish(local.stale(result), budget)
    parts = local.narrowed(corpora, request.filters, request.min_rating)
    result.hint = joined(note, *(_notes(part, request.level) for part in parts))
    first = not request.cursor.strip()

    def plain(result: SearchResult) -> SearchResult:
        result.text = block if first else ""
        return show(result, parts, looked_for, budget, request, offsets[0], page)

    if request.answer and len(corpora) > 1:
        result.hint = joined(result.hint, local.ONE_ANSWER)
    elif request.answer and query and first and parts[0][1].count("reports"):
        name, snapshot, _ = parts[0]
        options, asker = request.answer_options(request.seconds, block), (askers or {}).get(name)
        question = Question(snapshot, query, asker, options, budget, page((0,)))
        return with_answer(result, request.level, question, plain)
    return plain(result)


def _notes(part: Part, level: int) -> str:
    """What is to be said of a corpus."""
    name, snapshot, kept = part
    late = deep = ""
    if "communities" in snapshot.manifest.stale:
        late = "Communities are being brought up to date."
    if level > 0:
        levels = snapshot.rows("reports", "", ["level"])["level"].to_pylist()
        if level > (deepest := max(levels, default=0)):
            deep = f"There is no level {level}; the deepest, {deepest}, was used."
    said = joined(kept.note if kept else "", late, deep)
    return f"In {name}: {said[0].lower()}{said[1:]}" if name and said else said


def show(
    result: SearchResult,
    parts: Sequence[Part],
    query: str,
    budget: int,
    request: Request,
    offset: int,
    cursor: Callable[[Sequence[int]], str],
) -> SearchResult:
    """The result without a model: a map of the topics, or what the documents say on the question.
    What stands in the result's text already comes first."""
    level, detailed = request.level, request.response_format == "detailed"
    if all(asked_about(snapshot, query) is None for _, snapshot, _ in parts):
        result = topics.overview(
            result, parts, budget, level=level, offset=offset, cursor=cursor, detailed=detailed
        )
        return result if result.communities or offset else _nothing(result, parts, budget)
    page = passages.page_of(result, budget)
    lines: list[tuple[str, Line]] = []
    for part in parts:
        if not offset:
            result.communities += _add_reports(page, part, query, level)
        for head, id, line in _by_topic(part, query, request, MOST if budget >= ROOMY else FEW):
            lines.append((head, line))
            result.communities += [id] if id and not offset else []
    result.communities = list(dict.fromkeys(result.communities))
    result.coverage |= {"documents": len({line.hit.document for _, line in lines})}
    taken = 0
    for head, group in groupby(lines[offset:], key=lambda one: one[0]):
        held = [line for _, line in group]
        added = passages.show_lines(page, held, head=head)
        taken += added
        if added < len(held):
            break
    if not taken and not result.communities and not offset:
        return _nothing(result, parts, budget)
    return passages.finished(result, page, len(lines) - offset - taken, offset + taken, cursor)


def _add_reports(page: Page, part: Part, query: str, level: int) -> list[str]:
    """Add the points of reports that a model or an agent wrote, in half of the room at most: ids of
    their communities."""
    corpus, snapshot, kept = part
    chosen, _ = select(snapshot, query, level)
    if kept is not None and kept.first:
        chosen = included_first(snapshot, chosen, kept)
    ids = [one.id for one in chosen]
    rows = snapshot.by_key("reports", ids, "id", ["id", "method"]).to_pylist()
    written = {row["id"] for row in rows if row["method"] != "extractive"}
    chosen = [one for one in chosen if one.id in written]
    documents = kept.documents if kept is not None else None
    items, _ = finding_items(snapshot, query, chosen, documents)
    least, found = page.room // 2, []
    for item in items:
        item = sections.of_corpus(corpus, item) if corpus else item
        if page.room - count_tokens(item.text) < least or not page.add(item.text, item.also):
            break
        found.append(item.id.partition(".")[0])
    return found


def _by_topic(part: Part, query: str, request: Request, most: int) -> list[tuple[str, str, Line]]:
    """At most so many sentences on the question as (heading of the topic, id of the topic, line); by
    time within a topic if most have a date."""
    corpus, snapshot, kept = part
    found = local.find(snapshot, query, filters=kept)
    general = general_words(query)
    if (not found.passages or local.only_common_words(found)) and not general:
        return []
    source = local.source_of(snapshot, found, corpus, kept, request.explain)
    asked = asked_about(snapshot, query)
    worth = dict(found.terms if asked is None else asked)
    known = max(worth.values(), default=1.0)
    worth = {term: known for term in general if term not in worth} | worth
    worth = passages.without_people(worth, found.names)
    lines: list[tuple[str, str, Line]] = []
    for topic, held in on_question(worth, source, request.level, most):
        id = f"{corpus}/c{topic.n}".removeprefix("/") if topic and topic.n >= 0 else ""
        head = f"## {f'[{id}] ' if id else ''}{topic.title}" if topic else "## Of no topic"
        if sum(bool(line.hit.date) for line in held) * 2 > len(held):
            held = sorted(held, key=lambda line: (line.hit.moment or "9999", -line.value))
        lines += [(head, id, line) for line in held]
    return lines


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
    """No document speaks of the question: say so, and what they do speak of."""
    result.state = "not_found"
    said, listed = [], []
    for name, snapshot, kept in parts:
        total = snapshot.manifest.counters.get("documents", 0)
        passed = total if kept is None or kept.documents is None else len(kept.documents)
        among = f", of which {passed} pass the filters" if passed != total else ""
        corpus = name or snapshot.manifest.corpus
        said.append(f"corpus {corpus} ({counted(total, 'documents')}{among})")
        prefix = f"{name}/" if name else ""
        for topic, _ in topics.largest(snapshot, THEMES, kept):
            listed.append((f"{prefix}c{topic.n}", topic.title))
    result.text = f"Nothing on this was found in {' or '.join(said)}."
    result.communities = [id for id, _ in listed]
    advice = "Ask again with other filters, or without."
    if listed:
        lines = [f"- [{id}] {title}" for id, title in listed]
        result.text = "\n".join([result.text, "The largest topics are:", *lines])
        advice = "Ask with names or words from these titles, or use local_search."
    result.hint = joined(result.hint, advice)
    return finish(result, budget)


# ---- sentences on a question, by topic -------------------------------------------------------------


@dataclass(slots=True)
class _Asked:
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
            about |= {id for id, n in held.items() if n >= MOSTLY / 2 * size[id]}
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
    written = Path(__file__).with_name("related.toml").read_text("utf-8")
    groups = tomllib.loads(written)["group"]
    return [
        (frozenset(query_terms(one["asked"])), frozenset(query_terms(one["said"], WORDS)))
        for one in groups
    ]


def on_question(
    worth: Mapping[str, float], source: Source, level: int = -1, most: int = FEW
) -> list[tuple[Topic | None, list[Line]]]:
    """What the documents say on a question: sentences by topic, the topic of the best one first; None
    for sentences of no topic. `worth` of the terms of the question, `source` what a search for it
    found."""
    snapshot, kept = source.snapshot, source.filters
    passing = None if topics.all_pass(kept) else set(kept.units(snapshot))
    asked = _asked(snapshot, worth, passing, source.found.query)
    in_series = topics.of_series(snapshot, kept) if level < 0 else []
    level = 1 if level < 0 else level
    of_level = {one.id: one for one in in_series or topics.of_level(snapshot, level, kept)}
    of_unit = {unit: topic.id for topic in of_level.values() for unit in topic.units}
    first = sorted(asked.passages, key=lambda id: (-round(asked.passages[id], 9), id))
    searched = [one.id for one in source.found.passages[:ASKED]]
    ids = list(dict.fromkeys([*searched, *first[:ASKED]]))
    rows = snapshot.by_key("passages", ids, "id", ["id", "text_unit_id"]).to_pylist()
    topic_of = {
        row["id"]: of_unit.get(row["text_unit_id"], "")
        for row in rows
        if passing is None or row["text_unit_id"] in passing
    }
    score = {one.id: one.score for one in source.found.passages}
    scored = [(id, score.get(id, 0.0)) for id in ids if id in topic_of]
    ranked = [id for id, _ in scored if id in score]
    why = source.found.why(ranked) if source.explained else {}
    hits = [
        hit
        for hit in passages.read(topics.whole(snapshot), scored, source.corpus, why)
        if passages.names_all(hit, source.found.names)
    ]
    around = {
        hit.passage: asked.held_by(set(terms(f"{hit.citation.title}\n{hit.body}"))) for hit in hits
    }
    top = sorted(around.values(), reverse=True)[: most // 2] or [0.0]
    least = ON_TOPIC * top[0]
    if asked.things or len(top) == most // 2:
        least = max(ON_LISTED * top[0], 0.0 if asked.things else min(top[-1], least))
    least = least if sum(value >= least for value in top) >= SOME else 0.0
    every = [
        (topic_of[hit.passage], line)
        for hit in hits
        if around[hit.passage] >= least and (not asked.about or hit.document in asked.about)
        for line in _lines(hit, asked, around[hit.passage])
    ]
    each = max(OF_TOPIC, 2.5 * most / len(in_series)) if in_series else OF_TOPIC * most / FEW
    lines: dict[str, list[Line]] = defaultdict(list)
    for id, line in _joined(_chosen(every, each, most)):
        lines[id].append(line)
    if in_series:
        return [(one, lines[one.id]) for one in in_series if one.id in lines]
    return _grouped(snapshot, lines, of_level, level, kept)


def _listed(query: str, worth: Mapping[str, float]) -> Sequence[passages.Worth]:
    """The things that a question lists, of which each passage need not hold more than one; none for
    a sentence with a comma or two."""
    if query.endswith(("?", "？")) and len(_MARK.findall(query)) < MARKS:
        return []
    things = passages.things_of(query, worth)
    return things if len(things) > 1 else []


def _asked(
    snapshot: Snapshot, worth: Mapping[str, float], passing: set[str] | None, query: str
) -> _Asked:
    known = topics.count(snapshot)
    worth = _topical(known, worth)
    subject, about = _subject(known, worth)
    whole = sum(worth.values()) or 1.0
    shares = {term: value / whole for term, value in worth.items()}
    things = [one for each in _listed(query, shares) if (one := each.keys() - subject)]
    asked = _Asked(shares, _related(known, worth), subject, about, things)
    held: dict[int, set[str]] = defaultdict(set)
    for term in {*worth, *(one for _, said in asked.related for one in said)}:
        for place in known.places.get(term, ()):
            held[place].add(term)
    rows = (
        (known.passages[place], asked.held_by(some))
        for place, some in held.items()
        if not about or known.documents[known.passages[place]["text_unit_id"]] in about
    )
    on_it = {row["id"]: v for row, v in rows if passing is None or row["text_unit_id"] in passing}
    best = max(on_it.values(), default=1.0) or 1.0
    asked.passages = {id: value / best for id, value in on_it.items()}
    return asked


def _lines(hit: passages.Hit, asked: _Asked, around: float) -> Iterable[Line]:
    """The sentences of a passage that say something on the question, with their worth. `around`: the
    share of the question that the passage holds with its title."""
    on_it = max(asked.passages.get(hit.passage, 0.0), hit.score)
    for start, end in sentences(hit.body):
        said = hit.body[start:end]
        if not says_something(said) or not (own := asked.held_by(set(terms(said)))):
            continue
        doing = eventful(said)
        value = (own * (1 - CONTEXT) + around * CONTEXT) * math.sqrt(doing)
        value *= substance(said) if doing > 1 else stands_alone(said)
        value *= (0.25 + 0.75 * on_it) * (1 + 0.4 * min(passages.facts(said), 5) / 5)
        yield Line(hit, passages.with_speaker(hit.body, start, said), value)


def _chosen(
    lines: Sequence[tuple[str, Line]], of_one: float, in_all: int
) -> list[tuple[str, Line]]:
    """The best sentences with their topics, none that repeats another: first
    one of each document, then others of theirs that are worth more than half of the best.
    `of_one`: sentences of a topic."""
    order = sorted(
        lines, key=lambda one: (-round(one[1].value, 9), one[1].hit.passage, one[1].text)
    )
    of_document, of_topic = Counter[str](), Counter[str]()
    seen: list[set[str]] = []
    chosen: list[tuple[str, Line]] = []
    for most in (1, OF_DOCUMENT):
        for id, line in order:
            least = LEAST_SAID / (1 if len(chosen) >= FIRST * in_all else 2)
            least = least if most == 1 else AGAIN
            if line.value < least * order[0][1].value or len(chosen) == in_all:
                break
            held = set(terms(line.text))
            if (
                of_document[line.hit.document] >= most
                or of_topic[id] >= of_one
                or any(len(held & one) > SAME * len(held | one) for one in seen)
            ):
                continue
            of_document[line.hit.document] += 1
            of_topic[id] += 1
            seen.append(held)
            chosen.append((id, passages.shortened(line)))
    return chosen


def _joined(chosen: Sequence[tuple[str, Line]]) -> Iterable[tuple[str, Line]]:
    """The same with the sentences of one passage on one line, in its order."""
    of_passage: dict[str, list[tuple[str, Line]]] = defaultdict(list)
    for id, line in chosen:
        of_passage[line.hit.passage].append((id, line))
    for (id, first), *rest in of_passage.values():
        said = [first.text, *(line.text for _, line in rest)]
        said.sort(key=lambda one: first.hit.body.find(one.rstrip("…")[-TAIL:]))
        yield id, replace(first, text=" … ".join(said))


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


# ---- the answer of a model ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reports to read, what was counted on the way to them, and why ratings were missing (""
    when none was)."""

    reports: list[Rated]
    coverage: dict[str, int]
    unrated: str = ""


@dataclass(slots=True)
class Points:
    """What came of reading reports: points with references to `names` (number -> alias), best first;
    how many batches gave none, and why; the answer made of the points."""

    names: dict[str, str]
    reports: int
    batches: int
    points: list[Point] = field(default_factory=list)
    failed: int = 0
    reason: str = ""
    answer: Answered | None = None

    def counts(self) -> dict[str, int]:
        return {
            "read": self.reports,
            "batches": self.batches,
            "batches_answered": self.batches - self.failed,
            "batches_failed": self.failed,
            "points": len(self.points),
        }

    def failures(self) -> str:
        which = f"{self.failed} of {self.batches} batches of reports"
        return f"{which} gave no answer ({self.reason})." if self.failed else ""


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    result: SearchResult,
    level: int,
    question: Question,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The result of a global search with its answer; without one, what `plain` makes of it."""
    snapshot, query, asker = question.snapshot, question.query, question.asker
    options, budget, cursor = question.options, question.budget, question.cursor
    if asker is None or not asker.may_answer("reduce"):
        note(result, NO_MODEL)
        return plain(result)
    meter = Meter(asker)

    async def work() -> tuple[Chosen, Points]:
        chosen = await select_with_model(asker, snapshot, query, level)
        words = word_limit(budget)
        return chosen, await read(asker, snapshot, query, chosen.reports, options, words)

    given = waited(asker, work(), options.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return plain(result)
    chosen, found = given
    result.coverage = chosen.coverage | found.counts()
    if chosen.unrated:
        unrated = f"{chosen.coverage['unrated']} reports got no rating from the model"
        note(result, f"{unrated} ({chosen.unrated}), so their words decided.")
    if not found.points:
        return _without_points(result, chosen, found, plain)
    if found.answer is None or not found.answer.by:
        result.state = "failed"
        note(result, failed(found.answer.reason if found.answer else ""))
        section = Section("Points", _point_items(found), 1.0)
        return compose(result, [section], budget, first="Points")
    _, communities = finding_items(snapshot, query, chosen.reports[:READ])
    result.communities = communities[:20]
    note(result, found.failures())
    result = answered(result, found.answer, budget, snapshot=snapshot, cursor=cursor)
    result.state = "partial" if found.failed or chosen.unrated else "answered"
    return result


def _without_points(
    result: SearchResult,
    chosen: Chosen,
    found: Points,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The model gave no point: it found nothing relevant, or it did not answer."""
    state = ""
    if chosen.unrated and not chosen.reports:
        state = "failed"
        note(result, failed(chosen.unrated))
    elif not found.failed:
        looked = max(found.reports, chosen.coverage.get("rated", 0))
        result.method = ""
        note(result, f"The model found nothing on it in {counted(looked, 'reports')}.")
    else:
        state = "failed" if found.failed == found.batches else "partial"
        note(result, failed(found.reason) if state == "failed" else found.failures())
    result = plain(result)
    result.state = state or result.state
    return result


# ---- which reports are read -------------------------------------------------------------------------------


async def select_with_model(asker: Asker, snapshot: Snapshot, query: str, level: int) -> Chosen:
    """The reports to read, and how many were rated, kept and pruned.

    level -1: from the roots down, as far as the model finds a report relevant. level n: that level
    and the childless reports above it, the lexically nearest first. A question about nothing in
    particular takes the weightiest."""
    if level >= 0:
        return Chosen(*await asyncio.to_thread(whole_level, snapshot, query, level))
    if asked_about(snapshot, query) is None:
        return Chosen(*await asyncio.to_thread(select, snapshot, query, level))
    every = await asyncio.to_thread(all_rated, snapshot, query)
    coverage = {"reports": len(every), "rated": 0, "kept": 0, "pruned": 0}
    children: dict[str, list[Rated]] = {}
    for one in every.values():
        children.setdefault(one.parent if one.parent in every else "", []).append(one)
    kept, rated, missing = await _descend_with_model(asker, snapshot, query, children)
    kept.sort(key=lambda one: (-one.rating, -round(one.own, 6), -round(one.weight, 6), one.id))
    kept = kept[:READ]
    coverage.update(rated=rated, kept=len(kept), pruned=rated - len(kept))
    if missing:
        coverage["unrated"] = len(missing)
    return Chosen(kept, coverage, missing[0] if missing else "")


async def _descend_with_model(
    asker: Asker, snapshot: Snapshot, query: str, children: dict[str, list[Rated]]
) -> tuple[list[Rated], int, list[str]]:
    """Reports kept, how many were rated, and why ratings are missing.

    Level by level: rate, go on below what is relevant. A parent is kept only where no rated child
    is relevant.

    On each level at most half of the ratings that are left are spent while there are levels below
    it, so that a broad top does not keep the search from going down; lexically nearest first. Where
    the model gives no rating the lexical one stands in."""
    frontier = children.get("", [])
    kept: dict[str, Rated] = {}
    missing: list[str] = []
    rated = fallback = 0
    while frontier and rated < READ:
        left = READ - rated
        below = any(children.get(one.id) for one in frontier)
        frontier.sort(
            key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id)
        )
        taken = frontier[: max(1, left // 2) if below else left]
        ratings, reasons = await _ratings(asker, snapshot, query, taken)
        missing += reasons
        rated += len(taken)
        marked = [
            replace(one, rating=float(value)) for one, value in zip(taken, ratings, strict=True)
        ]
        relevant = [one for one in marked if one.rating >= THRESHOLD]
        for one in relevant:
            kept[one.id] = one
            kept.pop(one.parent, None)
        if not relevant and not kept and fallback < FALLBACKS:
            fallback += 1
            relevant = frontier
        frontier = [child for one in relevant for child in children.get(one.id, [])]
    return list(kept.values()), rated, missing


async def _ratings(
    asker: Asker, snapshot: Snapshot, query: str, some: Sequence[Rated]
) -> tuple[list[float], list[str]]:
    """One rating of 0 to 5 for each report, all asked for at once; and the reasons where the model
    gave none."""
    found = await asyncio.to_thread(snapshot.served, "reports", [one.id for one in some])
    rows = {row["id"]: row for row in found}
    prompt = prompts.load("rate", snapshot.folder)
    missing: list[str] = []

    async def rating(one: Rated) -> float:
        row = rows.get(one.id)
        if row is None:
            return 0.0  # damaged: nothing of it may be read
        text = prompt.substitute(report=data(_headlines(row)), question=data(query))
        ask = Ask("rate", (Message("user", text),), read_rating, lambda: -1, RATING_SCHEMA)
        given = await asked(asker, ask)
        if given.by:
            return float(given.value)
        missing.append(given.reason or "no reply")
        return one.rating

    return list(await asyncio.gather(*(rating(one) for one in some))), missing


def _headlines(row: Row) -> str:
    lines = [one_line(row["title"], 200), row["summary"]]
    lines += [f"- {one_line(str(one.get('summary', '')), 160)}" for one in context.findings(row)]
    return without_references("\n".join(lines))[:RATED_CHARACTERS]


# ---- map and reduce ------------------------------------------------------------------------------


async def read(
    asker: Asker,
    snapshot: Snapshot,
    query: str,
    chosen: Sequence[Rated],
    options: AnswerOptions,
    words: int,
) -> Points:
    """Points out of the reports, in batches at once, and the answer that they come to."""
    weight = {one.id: one.weight for one in chosen}
    ids = list(weight)[:MOST_REPORTS]
    rows = await asyncio.to_thread(snapshot.served, "reports", ids)
    lines = fitting((_line(row) for row in rows), MOST_BATCHES * BATCH_TOKENS, ACCOUNT)
    rows = sorted(rows[: len(lines)], key=lambda row: (-round(weight[row["id"]], 6), row["id"]))
    number = {row["id"]: f"c{place}" for place, row in enumerate(rows, 1)}
    batches = _batches(rows)
    found = Points({number[row["id"]]: f"c{row['n']}" for row in rows}, len(rows), len(batches))
    asks = [_map_question(snapshot, query, batch, weight, options.history) for batch in batches]
    given = await asyncio.gather(*(asked(asker, ask) for ask in asks))
    for batch, reply in zip(batches, given, strict=True):
        if not reply.by:
            found.failed, found.reason = (
                found.failed + 1,
                found.reason or reply.reason or "no reply",
            )
        names = {f"c{place}": number[row["id"]] for place, row in enumerate(batch, 1)}
        for point in reply.value:
            if description := restored(point.description, names).text.strip():
                found.points.append(replace(point, description=description))
    found.points.sort(key=lambda point: -(point.score or 0.0))
    if found.points:
        scored = (f"- (score {point.score:g}) {point.description}" for point in found.points)
        points, folder = "\n".join(fitting(scored, BATCH_TOKENS)), snapshot.folder
        context_of = points, found.names, options
        found.answer = await answer(
            asker, query, *context_of, words=words, prompt="reduce", folder=folder
        )
    return found


def _line(row: Row) -> str:
    return report_line(row, REPORT_CHARACTERS)


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Shuffled by a hash, so that no batch holds one corner of the tree; inside a batch in the order
    of the rows."""
    batches: list[list[Row]] = []
    size = 0
    for row in sorted(rows, key=lambda row: content_id(SEED, row["id"])):
        tokens = count_tokens(_line(row)) + ACCOUNT
        if not batches or size + tokens > BATCH_TOKENS:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += tokens
    order = {row["id"]: place for place, row in enumerate(rows)}
    return [sorted(batch, key=lambda row: order[row["id"]]) for batch in batches]


def _map_question(
    snapshot: Snapshot, query: str, batch: Sequence[Row], weight: dict[str, float], history: str
) -> Ask[tuple[Point, ...]]:
    """`history`: the block of earlier turns, which stands first."""
    lines = [
        f"{place}|{one_line(row['title'], 200).replace('|', '/')}|{weight[row['id']]:.2f}|{_line(row)}"
        for place, row in enumerate(batch, 1)
    ]
    rows = "\n\n".join(filter(None, [history, "\n".join(lines)]))
    text = prompts.load("map", snapshot.folder).substitute(reports=data(rows), question=data(query))
    messages = (Message("user", text),)
    return Ask("map", messages, read_points, tuple, POINTS_SCHEMA, if_cut="shown")


def _point_items(found: Points) -> list[Item]:
    """The model's points as rows of context, for when they could not be joined."""
    items = []
    for place, point in enumerate(found.points, 1):
        description = one_line(restored(point.description, found.names).text, 1_500)
        items.append(
            Item(f"p{place}", f"- {description} (score {point.score:g})", section="Points")
        )
    return items
