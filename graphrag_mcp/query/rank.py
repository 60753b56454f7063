"""Retrieval: the passages that answer a question, best first.

Full text proposes candidates and BM25 scores them. Vectors propose more, and say how near in
meaning each is. A passage gains if the question names the title of its document, if a high passage
does, if it shares a rare name with a high passage, or if it stands next to one. The score is the
sum of these parts, with ties broken by id. Scores depend on what the index holds, not on its
history. docs/dev/decisions.md has the figures behind the weights."""

from __future__ import annotations

import math
import re
import tomllib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.names.extract import extract, terms_of
from graphrag_mcp.query import times
from graphrag_mcp.query.question import (
    NAME_CHARACTERS,
    QUERY_CHARACTERS,
    add_near,
    is_stem,
    name_keys,
    rarity,
    term_worth,
)
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text import temporal
from graphrag_mcp.text.prose import OWN, language_of, sentences
from graphrag_mcp.text.terms import (
    composed,
    entity_id,
    lists_of,
    normalise_name,
    query_terms,
    terms,
)
from graphrag_mcp.types import Mention

CANDIDATES = 200  # passages that full text proposes, and as many by vector
RERANKED = 50  # passages that a reranker reads
KEYWORDS = 20  # that are read
LONG = 40  # terms of a text that is searched for, from which on repeated ones count more
K1, B = 1.2, 0.75  # BM25
RARE = 1.6  # a name's term is rare from this multiple of the median worth of a question's terms
SOURCES = 10  # high passages that links, shared names and neighbours start from
TITLES, LEADS = 80, 2  # titles that are looked up; first passages of a document with such a title
CROWDED = 5  # a title of more documents than this links nothing
SHARING = 6  # most candidates that hold a rare name
ENCYCLOPAEDIC = 0.1  # share of the high passages that name another document's title
FOCUS = 4.0  # power of a passage's own score as a share of the best in its document
BEHIND, BEFORE = 1.0, 0.7  # an answer follows its question more often than it precedes it
PASSED = 1e-6  # by which the first passage leads, and neighbours stay behind the second
# passages that are read for the first person; words from them
FIRST_PERSON_READ, WORDS_IN_COMMON = (80, 40)
FROM_FILE = 4  # passages of a file of source code that count in full
DEFINITIONS_READ = 40  # passages in which definitions are looked for
# Shares of a question's worth that the best passage holds, from all to nothing left to vectors.
WORDS_LACK, WORDS_DECIDE = 0.5, 0.9
LEADING, CHANCE, CLEAR = 5, 0.5, 0.8  # of `agreement`
LIGHT = ("id", "document_id", "title_id", "position", "n_terms", "entity_ids", "terms")
PASSAGE = ("id", "title", "text")  # what a reranker is shown
BY_NAME = frozenset({"link", "shared", "named"})  # parts of a score that a name brings

Place = tuple[str, int]  # document, position in it
Rerank = Callable[[str, Sequence[str]], Sequence[float] | None]


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the parts. Text counts 1, together with the vectors where there are any."""

    vector: float = 0.6  # of meaning, where the vectors bear out the words
    rerank: float = 0.7  # of a reranker's opinion; the rest goes to the order it was given
    keyword: float = 0.5  # of a word of a keyword, beside a question that names something
    name: float = 1.75  # factor for a rare term of a name of the question
    unnamed: float = 0.65  # factor for the words of a passage that holds no rare name
    named: float = 0.3  # the question names the title of the document
    holds: float = 0.02  # the passage holds the names of the question as names, not only as words
    link: float = 0.5  # of the best passage that names the title of the document
    shared: float = 0.3  # of a high passage of another document with the same rare name
    quiet: float = 0.1  # the same where documents do not name each other's titles (chats, code)
    beside: float = 0.1  # of the best passage next to it
    around: float = 0.4  # the same for neighbours of the best, but not past the second best
    own: float = 0.6  # of words in the first person, where the question is in the first person
    common: float = 0.2  # of a word's mean worth: words that the best of these have in common
    side: float = 0.6  # of the best passage on one of two sides that are compared in time
    late: float = 0.6  # of a passage's own score, for the latest of the high ones
    period: float = 0.6  # of a passage's own score, where it was written when the question says
    defines: float = 0.7  # source code that defines a word of the question
    file: float = 0.4  # of the words of the two next best passages in a file of source code
    further: float = 0.3  # that further passages of such a file lose
    lead: float = 0.8  # share of the best passage's own worth below which no other comes near


# without the graph
WORDS_ALONE = Weights(named=0, holds=0, link=0, shared=0, quiet=0, beside=0, around=0, defines=0)


def why(rank: int, parts: Mapping[str, float], names: Mapping[str, str]) -> str:
    """`rank 2: words 0.81, next to a high passage 0.10`"""
    order = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    said = [f"{names[name]} {value:.2f}" for name, value in order if round(value, 2) > 0]
    return f"rank {rank}: {', '.join(said) or 'nothing of its own'}"


@dataclass(slots=True)
class Ranked:
    """A candidate: its BM25, the parts of its score, and the score as a share of the best one."""

    id: str
    raw: float
    title_id: str = ""
    document_id: str = ""
    entity_ids: list[str] = field(default_factory=list)
    terms: str = ""
    position: int = 0
    parts: dict[str, float] = field(default_factory=dict)
    score: float = 0.0

    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(slots=True)
class Ranking:
    """What was found for a question, and how the question was read."""

    query: str = ""
    passages: list[Ranked] = field(default_factory=list)  # best first
    names: list[Mention] = field(default_factory=list)  # of the question
    named: list[str] = field(default_factory=list)  # ids that entities of these names have
    terms: dict[str, float] = field(default_factory=dict)  # that occur, with their worth
    unknown: list[str] = field(default_factory=list)  # terms that no passage holds
    near: dict[str, list[str]] = field(default_factory=dict)  # words that replace unknown ones
    vector: bytes = b""  # of the question
    trust: float = 0.0  # how far the vectors bear out the words, 0 to 1
    considered: dict[str, int] = field(default_factory=dict)

    def why(self, ids: Sequence[str]) -> dict[str, str]:
        """Of these passages the rank and the parts of the score."""
        ranks = {one.id: rank for rank, one in enumerate(self.passages, 1)}
        return {id: why(ranks[id], self.passages[ranks[id] - 1].parts, PARTS) for id in ids}


def retrieve(
    snapshot: Snapshot,
    query: str,
    weights: Weights = Weights(),
    keywords: Sequence[str] = (),
    *,
    vector: bytes | None = None,
    rerank: Rerank | None = None,
) -> Ranking:
    """Rank the passages for a question. There are none if no passage holds a word of it and there
    are no vectors.

    `keywords` are searched for as well: each counts as a name, its words half, or whole where the
    question names nothing. `vector` is the question's (float32 bytes). `rerank` scores texts for a
    question, or gives None when it cannot."""
    query = composed(query)
    found = Ranking(query, names=extract(query[:NAME_CHARACTERS]), vector=vector or b"")
    wanted = terms_of(query[:QUERY_CHARACTERS])
    own = in_first_person(query)
    if own:
        wanted = [term for term in wanted if term not in MEASURES] or wanted
    found.terms, found.unknown = term_worth(snapshot, wanted)
    # An issue, or another long text, repeats what it is about.
    said = Counter(terms(query[:QUERY_CHARACTERS]) if len(wanted) > LONG else ())
    for term in found.terms:
        found.terms[term] *= 1 + math.log(max(said[term], 1))
    _add_keywords(snapshot, found, keywords, weights)
    found.near = add_near(snapshot, found.terms, wanted)
    keys = name_keys(query[:NAME_CHARACTERS], found.names)
    found.named = list(dict.fromkeys(entity_id(key) for key in keys))
    rare = _rare_terms(found.names, found.terms)
    found.terms.update((term, weights.name * found.terms[term]) for term in rare)
    candidates = _Candidates(snapshot, found, weights)
    candidates.propose(own)
    if not candidates.passages:
        return found
    candidates.score_alone()
    _give_sides(candidates)
    _focus(candidates.passages.values(), "named")
    linked, encyclopaedic = _follow_titles(candidates)
    _focus(candidates.passages.values(), "link")
    _share_names(candidates, weights.shared if encyclopaedic else weights.quiet)
    give_definitions(candidates.best(DEFINITIONS_READ), found.terms, weights)
    give_files(candidates.passages.values(), weights)
    _give_neighbours(candidates)
    _favour_latest(candidates)
    _favour_period(candidates)
    _spread(candidates.passages.values(), weights)
    _put_leader_first(candidates.passages.values(), weights)
    _demote_unnamed(candidates.passages.values(), found, rare, weights)
    found.passages = candidates.best()
    if rerank is not None:
        found.passages = _reranked(snapshot, found, rerank, weights)
    scaled(found.passages)
    found.considered = {"passages": len(found.passages), "linked": linked}
    if candidates.similar:
        found.considered["near"] = len(candidates.similar)
    return found


def scaled(ranked: list[Ranked]) -> list[Ranked]:
    """The passages, best first, with scores as shares of the best one's."""
    top = ranked[0].total() if ranked else 0.0
    for passage in ranked:
        passage.score = passage.total() / top if top > 0 else 0.0
    return ranked


class _Candidates:
    """The passages that are ranked for one question, and how each is scored by itself."""

    def __init__(self, snapshot: Snapshot, found: Ranking, weights: Weights) -> None:
        self.snapshot, self.found, self.weights = snapshot, found, weights
        self.passages: dict[str, Ranked] = {}
        self._named = frozenset(found.named)
        self.similar: dict[str, float] = {}  # by vector
        self._worth: Mapping[str, float] = found.terms
        self._score = bm25(snapshot, found.terms)
        self._own: dict[str, list[str]] = {}  # terms of what passages say in the first person
        self._top = 0.0  # the best BM25
        self._meaning = 0.0  # share of the vectors; the rest is for words
        self._low = self._high = 0.0  # similarities that count as nothing and as all

    def propose(self, own: bool) -> None:
        """What full text and vectors find. `own`: the question is in the first person."""
        self._find(self.found.terms)
        if own and self.passages:
            self._weigh_first_person()
            self._find(self.found.terms | self._common())
            self._weigh_first_person()
        if vector := self.found.vector:
            known = list(self.passages)
            self.similar = tables.similarities(self.snapshot, "passages", vector, CANDIDATES, known)
            ids = [id for id in self.similar if id not in self.passages]
            self._add(self.snapshot.by_key("passages", ids, "id", LIGHT))

    def _find(self, worth: Mapping[str, float]) -> None:
        self._worth, self._score, self.passages = worth, bm25(self.snapshot, worth), {}
        self._add(self.snapshot.full_text("passages", list(worth), CANDIDATES, LIGHT))

    def _add(self, rows: pa.Table) -> list[Ranked]:
        """The passages of these rows that are no candidates yet become some."""
        names = ["id", "title_id", "document_id", "entity_ids", "terms", "position", "n_terms"]
        added = [
            Ranked(id, self._score(terms, length), title_id, document_id, entity_ids, terms, at)
            for id, title_id, document_id, entity_ids, terms, at, length in rows_of(
                rows.select(names)
            )
            if id not in self.passages
        ]
        self.passages.update((passage.id, passage) for passage in added)
        return added

    def _weigh_first_person(self) -> None:
        """Count what the best passages say in the first person again, to the same scale."""
        best = self._by_words()[:FIRST_PERSON_READ]
        new = [one.id for one in best if one.id not in self._own]
        for id, text in rows_of(self.snapshot.by_key("passages", new, "id", ("id", "text"))):
            spans = sentences(text) if OWN.search(text) else ()
            said = filter(OWN.search, (text[start:end] for start, end in spans))
            self._own[id] = terms(" ".join(said))
        heard = [self._own[one.id] for one in best]
        average = sum(map(len, heard)) / (sum(map(bool, heard)) or 1)
        score = bm25(self.snapshot, self._worth, average)
        own = [score(" ".join(said), len(said)) for said in heard]
        scale = self.weights.own * best[0].raw / (max(own) or 1.0)
        for one, value in zip(best, own, strict=True):
            one.raw += scale * value

    def _common(self) -> dict[str, float]:
        """Words that several of the best passages hold in the first person, with their worth."""
        best, terms = self._by_words()[:SOURCES], self.found.terms
        shares: dict[str, float] = defaultdict(float)
        for one in best:
            for term in {*self._own[one.id]} - terms.keys():
                shares[term] += one.raw / best[0].raw
        often = {term: share for term, share in shares.items() if share > SEVERAL}
        rows = self.snapshot.by_key("terms", sorted(often), "term", ["term", "passages"])
        total = self.snapshot.manifest.counters.get("passages", 0)
        worth = {term: often[term] * rarity(total, count) for term, count in rows_of(rows)}
        first = sorted(worth, key=lambda term: (-round(worth[term], 9), term))[:WORDS_IN_COMMON]
        mean = self.weights.common * sum(terms.values()) / len(terms)
        return {term: mean * worth[term] / worth[first[0]] for term in first}

    def _by_words(self) -> list[Ranked]:
        return sorted(self.passages.values(), key=lambda one: (-round(one.raw, 9), one.id))

    def score_alone(self) -> None:
        """Set the scales of words and meaning by what the candidates reach, and score them.

        Words are sparse, so their zero is no word at all. Vectors are not: their zero is the middle
        candidate. From the worst one up, everything would be half alike and links would drown
        (MuSiQue 68.7 instead of 71.4)."""
        self._top = max((passage.raw for passage in self.passages.values()), default=0.0)
        if self.similar:
            self._low, self._high = median(self.similar.values()), max(self.similar.values())
            if self._high > self._low:
                opened = openness(self.passages, self.found.terms, len(self.found.unknown))
                self.found.trust = opened * agreement(self.passages, self.similar)
            self._meaning = self.weights.vector * self.found.trust if self._top else 1.0
        for passage in self.passages.values():
            self._score_alone(passage)

    def _score_alone(self, passage: Ranked) -> None:
        if self._top:
            passage.parts["text"] = (1 - self._meaning) * min(passage.raw / self._top, 1.0)
        if self._meaning and passage.id in self.similar and self._high > self._low:
            value = (self.similar[passage.id] - self._low) / (self._high - self._low)
            passage.parts["vector"] = self._meaning * min(max(value, 0.0), 1.0)
        if passage.title_id in self._named:
            passage.parts["named"] = self.weights.named
        if held := len(self._named.intersection(passage.entity_ids)):
            share = min(held / max(len(self.found.names), 1), 1.0)
            passage.parts["holds"] = self.weights.holds * share

    def join(self, rows: pa.Table) -> list[Ranked]:
        """The passages of these rows that were no candidates, scored by themselves."""
        added = self._add(rows)
        if self.similar and added:
            ids = [passage.id for passage in added]
            asked = self.snapshot, "passages", self.found.vector
            self.similar |= tables.similarities(*asked, 1, ids)
        for passage in added:
            self._score_alone(passage)
        return added

    def best(self, count: int | None = None) -> list[Ranked]:
        order = [(-round(one.total(), 9), one.id, one) for one in self.passages.values()]
        return [one for _, _, one in sorted(order)[:count]]


def _holds(passage: Ranked, term: str) -> bool:
    return f" {term} " in f" {passage.terms} "


# ---- the question --------------------------------------------------------------------------------


def _add_keywords(
    snapshot: Snapshot, found: Ranking, keywords: Sequence[str], weights: Weights
) -> None:
    """The names and terms of keywords that the question lacks."""
    known = {mention.key for mention in found.names}
    share = weights.keyword if any(mention.strong for mention in found.names) else 1.0
    for form in dict.fromkeys(one.strip()[:200] for one in keywords[:KEYWORDS]):
        key = normalise_name(form)
        if key and key not in known:
            known.add(key)
            found.names.append(Mention(key, form, "other", False, 0, 0))
        more, _ = term_worth(snapshot, query_terms(form))
        for term, value in more.items():
            found.terms.setdefault(term, share * value)


def _rare_terms(names: Sequence[Mention], worth: Mapping[str, float]) -> list[str]:
    """Terms of the question's names that few passages hold, compared with its other words: the name
    says which thing is meant, the other words only what is asked of it."""
    held = {term for one in names if one.strong for term in terms_of(one.form)}
    usual = median(worth.values()) if worth else 0.0
    return [term for term, value in worth.items() if term in held and value >= RARE * usual]


# ---- the score of a passage ----------------------------------------------------------------------


def bm25(
    snapshot: Snapshot, worth: Mapping[str, float], average: float = 0.0
) -> Callable[[str, int], float]:
    """Okapi BM25 for terms with their weighted idf, as a function of a row's terms and how many
    they are. `average`: terms of a row, by default of a passage.

    Counting in the joined string is ten times as fast as splitting it. A word that follows itself
    at once ("Duran Duran") counts as one there, which changes next to nothing."""
    counters = snapshot.manifest.counters
    usual = counters.get("passage_terms", 0) / max(counters.get("passages", 0), 1)
    average = average or usual or 1.0
    needles = [(term, f" {term} ", idf * (K1 + 1)) for term, idf in worth.items()]

    def score(terms: str, length: int) -> float:
        spaced = f" {terms} "
        norm = K1 * (1 - B + B * length / average)
        total = 0.0
        for term, needle, idf in needles:
            if term in terms:  # most rows do not hold it, and this is faster than with blanks
                count = spaced.count(needle)
                total += idf * count / (count + norm)
        return total

    return score


def openness(passages: Mapping[str, Ranked], worth: Mapping[str, float], unknown: int) -> float:
    """How much words leave open, 0 to 1: nothing where one passage holds nearly all that was asked
    for, everything where the best one holds half of it or less. Unknown words count as an average
    word each, as far as they outnumber the known ones."""
    best = max(passages.values(), key=lambda one: (one.raw, one.id))
    total = sum(worth.values()) if best.raw else 0.0
    if not total:
        return 1.0
    held = sum(value for term, value in worth.items() if _holds(best, term))
    total += max(unknown - len(worth) / 2, 0.0) * total / len(worth)
    return min(max((WORDS_DECIDE - held / total) / (WORDS_DECIDE - WORDS_LACK), 0.0), 1.0)


def agreement(passages: Mapping[str, Ranked], similar: Mapping[str, float]) -> float:
    """How far the vectors bear out the words of this question, 0 to 1: a model that does not know
    the language or the matter tells the passages that hold most of the question's words from the
    others no better than chance.

    It is the share of pairs (one of the best by words, any other candidate) that the vectors put in
    the same order, from CHANCE to CLEAR."""
    by_words = sorted((p for p in passages.values() if p.raw > 0), key=lambda p: (-p.raw, p.id))
    leading = {passage.id for passage in by_words[:LEADING]}
    others = sorted(value for id, value in similar.items() if id not in leading)
    if not leading or len(others) < LEADING:
        return 1.0  # nothing to judge by
    lower = sum(bisect_left(others, similar.get(id, others[0])) for id in leading)
    share = lower / (len(leading) * len(others))
    return min(max((share - CHANCE) / (CLEAR - CHANCE), 0.0), 1.0)


def _focus(passages: Collection[Ranked], part: str) -> None:
    """What a title brings belongs where the document speaks of the matter: it is whole for the
    passage that is best by its words and meaning, and hardly any for those far behind it."""
    given = [passage for passage in passages if part in passage.parts]
    own = [one.parts.get("text", 0.0) + one.parts.get("vector", 0.0) for one in given]
    top: dict[str, float] = defaultdict(float)
    for passage, value in zip(given, own, strict=True):
        top[passage.document_id] = max(top[passage.document_id], value)
    for passage, value in zip(given, own, strict=True):
        if (most := top[passage.document_id]) > 0:
            passage.parts[part] *= (value / most) ** FOCUS


def _put_leader_first(passages: Collection[Ranked], weights: Weights) -> None:
    """A passage that by itself is clearly the best comes before all that the graph brings."""
    own = [
        (-round(sum(one.parts.get(part, 0.0) for part in ("text", "vector", "defines")), 9), one.id)
        for one in passages
    ]
    (best, id), *others = sorted(own)[:2] or [(0.0, "")]
    if others and others[0][0] >= weights.lead * best:
        first = next(one for one in passages if one.id == id)
        if (ahead := max(one.total() for one in passages) - first.total()) > 0:
            first.parts["lead"] = ahead + PASSED


def _demote_unnamed(
    passages: Collection[Ranked], found: Ranking, rare: Collection[str], weights: Weights
) -> None:
    """A passage that holds no rare name of the question, that is not next to one that does, and
    that no title or name connects with one, counts less by its words."""
    strong = (terms_of(one.form) for one in found.names if one.strong)
    known = ([term for term in name if term in found.terms] for name in strong)
    names = [name for name in known if not {*rare}.isdisjoint(name)]
    holding = {
        (one.document_id, one.position)
        for one in passages
        if any(all(_holds(one, term) for term in name) for name in names)
    }
    for one in passages if names else ():
        around = {(one.document_id, one.position + step) for step in (-1, 0, 1)}
        if "text" in one.parts and BY_NAME.isdisjoint(one.parts) and around.isdisjoint(holding):
            one.parts["text"] *= weights.unnamed


# ---- the graph -----------------------------------------------------------------------------------


def _follow_titles(candidates: _Candidates) -> tuple[int, bool]:
    """Give the passages of documents whose title a high passage names a share of its score; the
    first passages of such documents become candidates. Returns how many were added, and whether
    documents of this corpus name each other by title."""
    named, weights = candidates.found.named, candidates.weights
    sources = candidates.best(SOURCES)
    reach: dict[str, float] = {}
    for source in sources:
        for id in source.entity_ids:
            if id != source.title_id and len(reach) < TITLES:
                reach[id] = max(reach.get(id, 0.0), source.total())
    wanted = list(dict.fromkeys([*named, *reach]))[:TITLES]
    if not wanted:
        return 0, False
    rows = candidates.snapshot.by_key("passages", wanted, "title_id", LIGHT)
    rows = rows.filter(pc.less(rows["position"], LEADS))
    documents = lists_of({*rows_of(rows.select(["title_id", "document_id"]))})
    titles = {title for title, ids in documents.items() if len(ids) <= CROWDED}
    titled = pc.is_in(rows["title_id"], pa.array(sorted(titles), pa.string()))
    fresh = candidates.join(rows.filter(titled))
    linked = titles & reach.keys()
    for passage in candidates.passages.values():
        if passage.title_id in linked:
            passage.parts["link"] = weights.link * reach[passage.title_id]
    naming = sum(not linked.isdisjoint({*one.entity_ids} - {one.title_id}) for one in sources)
    return len(fresh), naming >= ENCYCLOPAEDIC * len(sources)


def _share_names(candidates: _Candidates, share: float) -> None:
    """A rare name that a high passage and a few others hold, not the question, ties them."""
    sources = candidates.best(SOURCES)
    holders: dict[str, list[Ranked]] = {id: [] for one in sources for id in one.entity_ids}
    for id in candidates.found.named:
        holders.pop(id, None)
    for passage in candidates.passages.values():
        for id in holders.keys() & passage.entity_ids:
            holders[id].append(passage)
    gain: dict[str, float] = defaultdict(float)
    for source in sources:
        for id in source.entity_ids:
            others = holders.get(id, ())
            if 2 <= len(others) <= SHARING:
                value = source.total() / (len(others) - 1)
                for other in others:
                    if other.document_id != source.document_id:
                        gain[other.id] = max(gain[other.id], value)
    for id, value in gain.items():
        candidates.passages[id].parts["shared"] = share * value


def _give_neighbours(candidates: _Candidates) -> None:
    """Passages next to the best ones get a share of their score, since an answer is often a few
    lines before or behind the words of a question: a small share always, a large one for neighbours
    of what stands out, which may not pass the two best."""
    weights, high = candidates.weights, candidates.best(SOURCES)
    if not weights.beside or not high or high[0].total() <= 0:
        return
    limit = high[:2][-1].total()
    shares: dict[Place, tuple[float, float]] = {}
    for source in high:
        score = source.total()
        for step, share in ((1, BEHIND), (-1, BEFORE)):
            place = source.document_id, source.position + step
            always, most = shares.get(place, (0.0, 0.0))
            around = weights.around * share * score * score / high[0].total()
            shares[place] = max(always, weights.beside * share * score), max(most, around)
    known = {(one.document_id, one.position): one for one in candidates.passages.values()}
    # before the first and behind the last of a document: none
    places = shares.keys() - known.keys()
    documents = sorted({document for document, _ in places})
    light = ["id", "document_id", "position"]
    rows = candidates.snapshot.by_key("passages", documents, "document_id", light)
    ids = [id for id, *place in rows_of(rows) if tuple(place) in places]
    fresh = candidates.join(candidates.snapshot.by_key("passages", ids, "id", LIGHT))
    known |= {(one.document_id, one.position): one for one in fresh}
    for place, (always, most) in shares.items():
        if place in known:
            room = limit - known[place].total() - PASSED
            known[place].parts["beside"] = max(min(most, room), always)


# ---- the first person ----------------------------------------------------------------------------
# "How many bikes do I own?" is answered by what people say of themselves. In a chat with an assistant
# that is one sentence beside a long reply.

TABLES = tomllib.loads(Path(__file__).with_name("asking.toml").read_text("utf-8"))
_AID = re.compile(TABLES["AID"].replace("\n", ""))
MEASURES = frozenset(terms(TABLES["MEASURES"]))
PARTS: Mapping[str, str] = TABLES["parts"]  # of a score, as they are explained
SEVERAL = 1.5  # of the best passage's score: more than one passage holds the word


def in_first_person(query: str) -> bool:
    """Does the question ask of the one who asks? "Tell me" and "how do I" do not."""
    return bool(OWN.search(_AID.sub(" ", query[:QUERY_CHARACTERS])))


# ---- time ----------------------------------------------------------------------------------------

LATE = 20  # high passages of which the latest are favoured
DATED = 100  # high passages of which those of a stated time are favoured
PERIOD, AFTER = timedelta(days=31), timedelta(days=7)
_LATEST, _SIDES = (re.compile(TABLES[name].replace("\n", ""), re.I) for name in ("LATEST", "SIDES"))


def _give_sides(candidates: _Candidates) -> None:
    """ "Did she move before or after the race?" needs a passage on each of the two."""
    sides = _SIDES.search(candidates.found.query[:NAME_CHARACTERS])
    for side in filter(None, sides.groups()) if sides else ():
        held = {*terms_of(side)}
        worth = {t: value for t, value in candidates.found.terms.items() if t in held}
        score = bm25(candidates.snapshot, worth)
        every = candidates.passages.values()
        values = [score(one.terms, len(one.terms.split())) for one in every]
        top = max(values, default=0.0) or 1.0
        for parts, value in zip([one.parts for one in every], values, strict=True):
            parts["side"] = max(parts.get("side", 0.0), candidates.weights.side * value / top)


def _favour_latest(candidates: _Candidates) -> None:
    """Where the latest is asked for, the later of the high passages count more."""
    if not _LATEST.search(candidates.found.query[:NAME_CHARACTERS]):
        return
    facts = times.documents(candidates.snapshot)
    best = candidates.best(LATE)
    dated = [(facts.get(one.document_id, {}).get("moment", ""), one) for one in best]
    days = sorted({day for day, _ in dated if day})
    for day, one in dated:
        if day:
            share = (days.index(day) + 1) / len(days)
            one.parts["late"] = candidates.weights.late * share * one.total()


def _favour_period(candidates: _Candidates) -> None:
    """What was written in a stated month or days, or in the week after, counts more."""
    spans = []
    for one in temporal.expressions(candidates.found.query[:NAME_CHARACTERS]):
        last = date.fromisoformat(one.end)
        if last - date.fromisoformat(one.start) <= PERIOD:
            spans.append((one.start, (last + AFTER).isoformat()))
    facts = times.documents(candidates.snapshot) if spans else {}
    for one in candidates.best(DATED) if spans else ():
        day = facts.get(one.document_id, {}).get("date", "")[:10]
        if any(first <= day <= last for first, last in spans):
            one.parts["period"] = candidates.weights.period * one.total()


# ---- source code ---------------------------------------------------------------------------------
# A definition is said once, its uses everywhere. The terms of a passage begin with the name of its
# file, which says whether it is source code.

DEFINING = frozenset(
    "class const def define enum fn fun func function interface macro_rules mod module namespace"
    " object package protocol record struct trait type typedef union".split()
)
SHORTEST = 3  # letters of a name that is defined; `i` and `do` are in too many places


def _is_code(passage: Ranked) -> bool:
    return bool(language_of(passage.terms.partition(" ")[0]))


def _files(passages: Iterable[Ranked]) -> Iterable[list[Ranked]]:
    """The passages of source code by their file."""
    return lists_of((one.document_id, one) for one in filter(_is_code, passages)).values()


def give_definitions(
    passages: Sequence[Ranked], worth: Mapping[str, float], weights: Weights
) -> None:
    """Give each passage that defines terms of the question a share, whole for the term that is
    worth most. A term counts with its stem, which follows it."""
    names = {
        term: value + (more if is_stem(after, term) else 0.0)
        for (term, value), (after, more) in pairwise([*worth.items(), ("", 0.0)])
        if len(term) >= SHORTEST and term not in DEFINING
    }
    top = max(names.values(), default=0.0)
    for passage in filter(_is_code, passages) if weights.defines and top > 0 else ():
        words = passage.terms.split()
        defined = {name for word, name in pairwise(words) if word in DEFINING}
        if held := defined & names.keys():
            passage.parts["defines"] = weights.defines * max(map(names.__getitem__, held)) / top


def give_files(passages: Iterable[Ranked], weights: Weights) -> None:
    """Give each passage of source code a share of what the two next best passages of its file are
    worth by their words: a file that speaks of the matter in several definitions comes before one
    that repeats its words in one. The best passage of all source code keeps its score, so that it
    stands to prose as before."""
    after: list[tuple[Ranked, float]] = []
    for some in _files(passages):
        own = sorted((passage.parts.get("text", 0.0) for passage in some), reverse=True)
        after += [(one, one.total() + weights.file * sum(own[1:3])) for one in some]
    if not after:
        return
    scale = max(one.total() for one, _ in after) / (max(score for _, score in after) or 1.0)
    for passage, score in after:
        passage.parts["file"] = scale * score - passage.total()


def _spread(passages: Iterable[Ranked], weights: Weights) -> None:
    """Passages behind the FROM_FILE best of a file count less: it must not fill a result."""
    for some in _files(passages):
        some.sort(key=lambda one: (-round(one.total(), 9), one.id))
        for one in some[FROM_FILE:]:
            one.parts["file"] = one.parts.get("file", 0.0) - weights.further * one.total()


# ---- a reranker ----------------------------------------------------------------------------------


def _reranked(snapshot: Snapshot, found: Ranking, rerank: Rerank, weights: Weights) -> list[Ranked]:
    """The best passages get a share of a reranker's opinion in place of the same share of what they
    were worth. What it did not read counts as the worst that it did read."""
    head = [passage.id for passage in found.passages[:RERANKED]]
    rows = snapshot.by_key("passages", head, "id", PASSAGE).to_pylist()
    texts = {row["id"]: f"{row['title']}\n{row['text']}" for row in rows}
    said = rerank(found.query[:NAME_CHARACTERS], list(texts.values()))
    if not said or len(said) != len(texts) or min(said) == max(said):
        return found.passages
    low, high, top = min(said), max(said), found.passages[0].total() or 1.0
    opinion = {id: (one - low) / (high - low) for id, one in zip(texts, said, strict=True)}
    for passage in found.passages:
        value = top * opinion.get(passage.id, 0.0) - passage.total()
        passage.parts["rerank"] = weights.rerank * value
    return sorted(found.passages, key=lambda one: (-round(one.total(), 9), one.id))
