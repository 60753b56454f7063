"""Fused retrieval, the heart of plain questions: which passages answer it, and which entities it is about.

Takes a snapshot and a question; gives passages and entities with scores between 0 and 1 and the raw parts they
are made of. Full text proposes candidates; our own BM25, from the generation's counters, scores them, so the
history of the index does not change a ranking. The graph adds what words cannot: a passage of a document whose
title is named in a high passage (title links), and passages that share a rare name with one. Knows no budget.

What each part is worth was measured on questions over encyclopaedic text, long documents and Chinese; where no
title is ever named (chats, code) the graph has nothing to say and plain text decides.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.extract import extract
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import normalise_name, query_terms, stop_word
from graphrag_mcp.types import Mention, content_id

K1, B = 1.2, 0.75  # BM25
CANDIDATES = 200  # passages that full text proposes
QUERY_CHARACTERS, NAME_CHARACTERS = 20_000, 4_000  # of a very long query
QUESTION_WORDS, KEYWORDS = 40, 20
ENCYCLOPAEDIC = 0.1  # share of the high passages that name another document's title
_WORD = re.compile(r"[^\W_]+(?:['’.&/+#-]+[^\W_]+)*")
LIGHT = ("id", "document_id", "title_id", "terms", "n_terms", "entity_ids")
ENTITY = ("id", "n", "key", "title", "type", "description", "names", "frequency", "degree", "terms")


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the parts; text itself counts 1."""

    keyword: float = 0.5  # of a word that only a keyword holds
    form: float = 0.4  # of a word's own form; the rest goes to its stem, since text holds both
    named: float = 0.3  # the document's title is a name of the question
    holds: float = 0.02  # the passage holds a name of the question as a name, not only its words
    link: float = 0.5  # x score of the best passage that names this one's title
    shared: float = 0.3  # x score of a high passage of another document with which it shares a rare name
    quiet: float = 0.1  # the same where titles are not named in other documents (chats, code, loose notes)
    subword: float = 0.05  # x share of the question's 4-letter pieces in it: inflections, compounds, slips of the pen
    pieces: int = 40  # passages that are read for pieces
    rare: int = 6  # most candidates that hold a rare name
    sources: int = 10  # passages that links start from
    titles: int = 80  # most titles looked up
    leads: int = 2  # first passages of a linked document
    crowded: int = 5  # a title of more documents than this links nothing


@dataclass(frozen=True, slots=True)
class Scored:
    """A row id with its fused score (0 to 1), its raw BM25, and what brought it in."""

    id: str
    score: float
    raw: float
    why: Mapping[str, float]


@dataclass(slots=True)
class Retrieved:
    """Passages best first. `unknown` are terms of the question that no passage holds; `names` are its names."""

    passages: list[Scored] = field(default_factory=list)
    names: list[Mention] = field(default_factory=list)
    terms: dict[str, float] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    considered: dict[str, int] = field(default_factory=dict)
    named: dict[str, None] = field(default_factory=dict)  # ids that an entity named in the question would have
    held: dict[str, float] = field(default_factory=dict)  # ids of what the best passages name, with their worth
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the entities, by id, columns ENTITY


@dataclass(slots=True)
class _Passage:
    id: str
    raw: float
    title_id: str
    document_id: str
    entity_ids: list[str]
    terms: str
    parts: dict[str, float] = field(default_factory=dict)

    def score(self) -> float:
        return sum(self.parts.values())


def retrieve(
    snapshot: Snapshot, query: str, weights: Weights = Weights(), keywords: Sequence[str] = ()
) -> Retrieved:
    """Rank passages for a question; none when no passage holds any of its words. `entities` adds the entities.

    `keywords` are looked for beside the question's own words: each counts as a name, its words as half a word of it.
    """
    found = Retrieved(names=extract(query[:NAME_CHARACTERS]))
    wanted = query_terms(query[:QUERY_CHARACTERS])
    worth, found.unknown = term_worth(snapshot, wanted, weights)
    if keywords:
        _add_keywords(snapshot, found, worth, keywords, weights)
    found.terms = worth
    if not worth:
        return found
    rows = snapshot.full_text("passages", list(worth), CANDIDATES, LIGHT)
    score = bm25(snapshot, worth)
    passages = {passage.id: passage for passage in _passages(rows, score)}
    named = dict.fromkeys(content_id("entity", key) for key in name_keys(query[:NAME_CHARACTERS], found.names))
    found.named = named
    _own_scores(passages, named, len(found.names), weights)
    linked, encyclopaedic = _follow_titles(snapshot, passages, named, score, weights)
    _shared_names(passages, named, weights, weights.shared if encyclopaedic else weights.quiet)
    _subwords(_best(passages, weights.pieces), [*worth, *found.unknown], weights)
    ranked = sorted(passages.values(), key=lambda p: (-round(p.score(), 9), p.id))
    top = ranked[0].score() if ranked else 1.0
    found.passages = [Scored(p.id, p.score() / top if top > 0 else 0.0, p.raw, p.parts) for p in ranked]
    for place, passage in enumerate(ranked[:8], 1):
        for id in passage.entity_ids:
            found.held[id] = found.held.get(id, 0.0) + passage.score() / place
    found.considered = {"passages": len(passages), "linked": linked}
    return found


# ---- words -------------------------------------------------------------------------------------


def _add_keywords(
    snapshot: Snapshot, found: Retrieved, worth: dict[str, float], keywords: Sequence[str], weights: Weights
) -> None:
    """The names and terms of keywords, where the question does not have them already."""
    known = {mention.key for mention in found.names}
    for form in dict.fromkeys(one.strip()[:200] for one in keywords[:KEYWORDS]):
        key = normalise_name(form)
        if key and key not in known:
            known.add(key)
            found.names.append(Mention(key, form, "other", False, 0, 0))
        more, _ = term_worth(snapshot, query_terms(form), weights)
        for term, value in more.items():
            worth.setdefault(term, weights.keyword * value)


def term_worth(
    snapshot: Snapshot, wanted: Sequence[str], weights: Weights = Weights()
) -> tuple[dict[str, float], list[str]]:
    """The terms of a query that occur, with weight x idf; and those that occur nowhere."""
    if not wanted:
        return {}, []
    known = snapshot.by_key("terms", wanted, "term", ["term", "passages"], hold=True)
    df = dict(zip(known["term"].to_pylist(), known["passages"].to_pylist(), strict=True))
    total = snapshot.manifest.counters.get("passages", 0)
    worth: dict[str, float] = {}
    unknown: list[str] = []
    for at, term in enumerate(wanted):
        share = 1.0
        if at + 1 < len(wanted) and _is_stem(wanted[at + 1], term):
            share = weights.form
        elif at and _is_stem(term, wanted[at - 1]):
            share = 1.0 - weights.form
        if df.get(term, 0) > 0:
            worth[term] = share * math.log(1 + (total - df[term] + 0.5) / (df[term] + 0.5))
        elif share >= 0.5 or not _is_stem(wanted[at + 1], term):
            unknown.append(term)
    return worth, unknown


def name_keys(query: str, names: Sequence[Mention]) -> list[str]:
    """Keys under which the question may name something: the names found in it, and its runs of up to six words.

    A question is short, so titles that no rule recognises as a name ("How to Eat") can be tried one by one.
    """
    keys = dict.fromkeys(mention.key for mention in names)
    spans = [match.span() for match in _WORD.finditer(query)][:QUESTION_WORDS]
    plain = [query[a:b].islower() and stop_word(query[a:b]) for a, b in spans]
    for first in range(len(spans)):
        for last in range(first, min(first + 6, len(spans))):
            if plain[first] or plain[last] or (first == last and stop_word(query[slice(*spans[first])].casefold())):
                continue
            keys.setdefault(normalise_name(query[spans[first][0] : spans[last][1]]))
    return [key for key in keys if key]


def _is_stem(term: str, form: str) -> bool:
    """Does `term` look like the stem that follows its form in a list of terms?"""
    return len(term) <= len(form) and term != form and len(term) > 2 and form.startswith(term[:-1]) and form.isalpha()


def bm25(snapshot: Snapshot, worth: Mapping[str, float]) -> Callable[[str, int], float]:
    """Okapi BM25 for terms with their weighted idf, as a function of a row's terms and how many they are.

    Counting in the joined string is ten times as fast as splitting it. A word that follows itself at once ("Duran
    Duran") counts as one there, which changes next to nothing.
    """
    counters = snapshot.manifest.counters
    average = counters.get("passage_terms", 0) / max(counters.get("passages", 0), 1) or 1.0
    needles = [(f" {term} ", idf * (K1 + 1)) for term, idf in worth.items()]

    def score(terms: str, length: int) -> float:
        spaced = f" {terms} "
        norm = K1 * (1 - B + B * length / average)
        total = 0.0
        for needle, idf in needles:
            count = spaced.count(needle)
            if count:
                total += idf * count / (count + norm)
        return total

    return score


def _passages(rows: Any, score: Callable[[str, int], float]) -> list[_Passage]:
    names = ("id", "title_id", "document_id", "entity_ids", "terms", "n_terms")
    return [
        _Passage(id, score(terms, length), title_id, document_id, entity_ids, terms)
        for id, title_id, document_id, entity_ids, terms, length in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        )
    ]


# ---- the graph ---------------------------------------------------------------------------------


def _own_scores(passages: Mapping[str, _Passage], named: Mapping[str, None], names: int, weights: Weights) -> None:
    """What a passage is worth by itself: its words, its title, the names it holds."""
    top = max((passage.raw for passage in passages.values()), default=0.0)
    for passage in passages.values():
        passage.parts["text"] = passage.raw / top if top else 0.0
        if passage.title_id in named:
            passage.parts["named"] = weights.named
        held = len(named.keys() & passage.entity_ids) if named else 0
        if held:
            passage.parts["holds"] = weights.holds * min(1.0, held / max(names, 1))


def _best(passages: Mapping[str, _Passage], count: int) -> list[_Passage]:
    return heapq.nsmallest(count, passages.values(), key=lambda p: (-p.score(), p.id))


def _follow_titles(
    snapshot: Snapshot, passages: dict[str, _Passage], named: Mapping[str, None], score: Callable[[str, int], float],
    weights: Weights,
) -> tuple[int, bool]:  # fmt: skip
    """Give the passages of documents whose title a high passage names a share of that passage's score.

    Adds the first passages of such documents when full text did not propose them. Returns how many it added, and
    whether this is text whose documents name each other by title.
    """
    sources = _best(passages, weights.sources)
    reach: dict[str, float] = {}
    for source in sources:
        for id in source.entity_ids:
            if id != source.title_id and len(reach) < weights.titles:
                reach[id] = max(reach.get(id, 0.0), source.score())
    wanted = list(dict.fromkeys([*named, *reach]))[: weights.titles]
    if not wanted:
        return 0, False
    if snapshot.held("passages"):
        rows = snapshot.by_key("passages", wanted, "title_id", [*LIGHT, "position"], hold=True)
        rows = rows.filter(pc.less(rows["position"], weights.leads))
    else:
        listed = ", ".join(f"'{id}'" for id in wanted)
        rows = snapshot.rows("passages", f"title_id IN ({listed}) AND position < {weights.leads}", LIGHT)
    documents: dict[str, set[str]] = defaultdict(set)
    arrived = _passages(rows, score)
    for passage in arrived:
        documents[passage.title_id].add(passage.document_id)
    quiet = {title for title, ids in documents.items() if len(ids) > weights.crowded}
    fresh = [p for p in arrived if p.title_id not in quiet and p.id not in passages]
    if fresh:
        top = max((passage.raw for passage in passages.values()), default=0.0) or 1.0
        for passage in fresh:
            passages[passage.id] = passage
            passage.parts["text"] = min(passage.raw / top, 1.0)
            if passage.title_id in named:
                passage.parts["named"] = weights.named
    for passage in passages.values():
        if passage.title_id in reach and passage.title_id in documents and passage.title_id not in quiet:
            passage.parts["link"] = weights.link * reach[passage.title_id]
    titles = (reach.keys() & documents.keys()) - quiet
    naming = sum(not titles.isdisjoint(set(source.entity_ids) - {source.title_id}) for source in sources)
    return len(fresh), naming >= ENCYCLOPAEDIC * len(sources)


def _shared_names(passages: Mapping[str, _Passage], named: Mapping[str, None], weights: Weights, share: float) -> None:
    """A rare name that a high passage and a few others hold, and the question does not, ties them together."""
    sources = _best(passages, weights.sources)
    holders: dict[str, list[_Passage]] = {id: [] for source in sources for id in source.entity_ids if id not in named}
    for passage in passages.values():
        for id in holders.keys() & passage.entity_ids:
            holders[id].append(passage)
    gain: dict[str, float] = defaultdict(float)
    for source in sources:
        for id in source.entity_ids:
            others = holders.get(id, ())
            if 2 <= len(others) <= weights.rare:
                value = source.score() / (len(others) - 1)
                for other in others:
                    if other.document_id != source.document_id:
                        gain[other.id] = max(gain[other.id], value)
    for id, value in gain.items():
        passages[id].parts["shared"] = share * value


def _subwords(passages: Sequence[_Passage], words: Sequence[str], weights: Weights) -> None:
    """The sparse second channel, over the best passages only."""
    pieces = dict.fromkeys(word[at : at + 4] for word in words if word.isalpha() for at in range(len(word) - 3))
    pieces = list(pieces)[:60]
    share = {p.id: sum(piece in p.terms for piece in pieces) for p in passages}
    top = max(share.values(), default=0)
    for passage in passages:
        if top:
            passage.parts["subword"] = weights.subword * share[passage.id] / top


# ---- entities ----------------------------------------------------------------------------------


def entities(snapshot: Snapshot, found: Retrieved, count: int = 20) -> list[Scored]:
    """Entities the question names (else those whose titles share its words), then those of the best passages.

    Their rows are put into `found.rows`.
    """
    weight, named = found.held, found.named
    often = sorted(weight, key=lambda id: (-round(weight[id], 9), id))[:count]
    rows = snapshot.by_key("entities", list(dict.fromkeys([*named, *often])), "id", hold=True)
    keys = {mention.key for mention in found.names}
    if not keys & set(rows["key"].to_pylist()):
        by_words = snapshot.full_text("entities", list(found.terms), 20).select(rows.column_names)
        rows = pa.concat_tables([rows, by_words])
    rows = snapshot.verified("entities", rows).select(ENTITY)
    top = max(weight.values(), default=0.0) or 1.0
    scored: dict[str, Scored] = {}
    for row in rows.to_pylist():
        words = row["terms"].split()
        parts = {
            "name": 1.0 if keys & {row["key"], *row["names"]} else 0.7 if row["id"] in named else 0.0,
            "words": 0.5 * sum(word in found.terms for word in words) / max(len(words), 1),
            "passages": 0.4 * weight.get(row["id"], 0.0) / top / (1 + math.log(max(row["frequency"], 1))),
        }
        held = sum(found.terms.get(word, 0.0) for word in words)
        scored[row["id"]] = Scored(row["id"], sum(parts.values()), held, parts)
        found.rows[row["id"]] = row
    return sorted(scored.values(), key=lambda s: (-round(s.score, 9), s.id))[:count]
