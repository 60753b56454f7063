"""Retrieval: which passages answer a question, and which entities it is about.

Full text proposes candidates; our own BM25 scores them. Vectors propose more and say how near in
meaning each is. The graph adds a passage of a document whose title is named in a high passage
(title links), and passages that share a rare name with one.

Passages next to the best ones get a share of their score, since an answer is often a few lines
before or behind the words of a question: a small share always, a large one for neighbours of what
stands out, which may not carry them past the two best. Evidence within 2,000 tokens, with a small
share and with both: chats 43 and 83 (Chinese 42 and 73), transcripts 65 and 81, long documents 94.8
and 96.1."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.names.extract import extract, terms_of
from graphrag_mcp.query import context, ranking
from graphrag_mcp.query.context import LIGHT
from graphrag_mcp.query.ranking import (
    Passage,
    Scored,
    Weights,
    best,
    bm25,
    name_keys,
    passages_of,
    term_worth,
)
from graphrag_mcp.store import vectors
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import composed, normalise_name, query_terms
from graphrag_mcp.types import Mention, content_id

Place = tuple[str, int]  # document, position in it
BEHIND, BEFORE = 1.0, 0.7  # an answer follows its question more often than it comes before it
FIRST, BEHIND_IT = 2, 1e-6  # passages that a large share carries no one past


def lead(passages: Collection[Passage], weights: Weights) -> None:
    """A passage that by itself, by its words, its meaning and what it defines, is clearly better
    than any other comes before whatever titles, shared names and neighbours bring: who asks for one
    thing finds it there. The right document came first for 90.7 -> 93.1 of 246 questions on an
    encyclopaedia in Chinese and 44.5 -> 46.5 of HotpotQA, for no fewer in any of sixteen sets, and
    no recall@5 changed; with a limit of 0.9 instead of 0.8 MuSiQue lost 0.3."""
    parts = ("text", "vector", "defines")
    own = sorted(
        [
            (-round(sum(one.parts.get(part, 0.0) for part in parts), 9), one.id, one)
            for one in passages
        ]
    )
    if len(own) > 1 and own[1][0] >= weights.lead * own[0][0]:
        first = own[0][2]
        if (ahead := max(passage.score() for passage in passages) - first.score()) > 0:
            first.parts["lead"] = ahead + BEHIND_IT


def worth(high: Sequence[Passage], weights: Weights) -> dict[Place, tuple[float, float]]:
    """{place: (share that is free, share up to the limit)} of the places next to the best passages,
    best first."""
    found: dict[Place, tuple[float, float]] = {}
    top = high[0].score() if high else 0.0
    for source in high if weights.beside and top > 0 else ():
        score = source.score()
        for step, share in ((1, BEHIND), (-1, BEFORE)):
            place = source.document_id, source.position + step
            free, most = found.get(place, (0.0, 0.0))
            around = weights.around * share * score * score / top
            found[place] = max(free, weights.beside * share * score), max(most, around)
    return found


def give(
    snapshot: Snapshot,
    passages: dict[str, Passage],
    score: Callable[[str, int], float],
    own: Callable[[Passage], None],
    weights: Weights,
) -> None:
    """Give passages next to the best ones their share; those that were no candidates become some,
    with `own` parts."""
    high = best(passages, weights.sources)
    shares = worth(high, weights)
    limit = high[:FIRST][-1].score() if high else 0.0
    known = {(passage.document_id, passage.position): passage for passage in passages.values()}
    ids = _at(snapshot, shares.keys() - known.keys())
    fresh = passages_of(snapshot.by_key("passages", ids, "id", LIGHT), score) if ids else []
    for passage in fresh:
        passages[passage.id] = known[passage.document_id, passage.position] = passage
        own(passage)
    for place, (free, most) in shares.items():
        if place in known:
            room = limit - known[place].score() - BEHIND_IT
            known[place].parts["beside"] = max(min(most, room), free)


def _at(snapshot: Snapshot, places: Collection[Place]) -> Sequence[str]:
    """Ids of the passages at these places; a place before the first or behind the last has none."""
    wanted = {place for place in places if place[1] >= 0}
    if not wanted:
        return []
    documents, columns = (
        sorted({document for document, _ in wanted}),
        ["id", "document_id", "position"],
    )
    rows = snapshot.by_key("passages", documents, "document_id", columns)
    positions = pa.array(sorted({position for _, position in wanted}), pa.int64())
    rows = rows.filter(pc.is_in(rows["position"], positions))
    found = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return sorted(id for id, document, position in found if (document, position) in wanted)


CANDIDATES = 200  # passages that full text proposes, and as many by vector
WEIGHTS = Weights()
CONNECTED = frozenset({"link", "shared", "named"})  # parts of a score that a name brings
RARE = 1.6  # a name's term is rare from so many times the median worth of a question's terms on
RERANKED = 50  # passages that a reranker reads
# of a very long query; most keywords
QUERY_CHARACTERS, NAME_CHARACTERS, KEYWORDS = (20_000, 4_000, 20)
LEADING, CHANCE, CLEAR = 5, 0.5, 0.8  # of `agreement`
# of `openness`: shares of a question's worth that one passage holds
WORDS_LACK, WORDS_DECIDE = (0.5, 0.9)
ENCYCLOPAEDIC = 0.1  # share of the high passages that name another document's title
ENTITY = ("id", "n", "key", "title", "type", "description", "names", "frequency", "degree", "terms")
RANKED = ("id", "key", "names", "frequency", "terms")  # what entities are ranked by
Rerank = Callable[[str, Sequence[str]], Sequence[float] | None]


@dataclass(slots=True)
class Retrieved:
    """Passages best first. `unknown` are terms of the question that no passage holds; `names` are
    its names."""

    passages: list[Scored] = field(default_factory=list)
    names: list[Mention] = field(default_factory=list)
    terms: dict[str, float] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    # words of the corpus that stand for unknown ones
    near: dict[str, list[str]] = field(default_factory=dict)
    considered: dict[str, int] = field(default_factory=dict)
    # ids that an entity named in the question would have
    named: dict[str, None] = field(default_factory=dict)
    # ids of what the best passages name, with their worth
    held: dict[str, float] = field(default_factory=dict)
    # of the entities, by id, columns ENTITY
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    vector: bytes = b""  # of the question
    query: str = ""
    trust: float = 0.0  # how far the vectors of this index bear out its words, 0 to 1


def retrieve(
    snapshot: Snapshot,
    query: str,
    weights: Weights = WEIGHTS,
    keywords: Sequence[str] = (),
    *,
    vector: bytes | None = None,
    rerank: Rerank | None = None,
) -> Retrieved:
    """Rank passages for a question; none when no passage holds any of its words and there are no
    vectors.

    `keywords` are looked for beside the question's own words: each counts as a name, its words as
    half a word of it or, where it names nothing itself, a whole one. `vector` is the question's
    (float32 bytes); `rerank` scores texts for a question (None: it cannot just now). `entities`
    adds the entities."""
    query = composed(query)
    found = Retrieved(names=extract(query[:NAME_CHARACTERS]), vector=vector or b"", query=query)
    wanted = terms_of(query[:QUERY_CHARACTERS])
    worth, found.unknown = term_worth(snapshot, wanted, weights)
    _add_keywords(snapshot, found, worth, keywords, weights)
    found.near, found.terms = ranking.add_nearest(snapshot, worth, wanted, weights), worth
    rare = _rare_names(found.names, worth)
    worth.update((term, weights.name * worth[term]) for term in rare)
    score = bm25(snapshot, worth)
    passages = {
        passage.id: passage
        for terms in (list(worth), rare)
        for passage in passages_of(snapshot.full_text("passages", terms, CANDIDATES, LIGHT), score)
        if terms
    }
    near = _nearest(snapshot, passages, found.vector, score)
    if not passages:
        return found
    named = dict.fromkeys(
        content_id("entity", key) for key in name_keys(query[:NAME_CHARACTERS], found.names)
    )
    found.named = named
    own = _Own(weights, named, len(found.names), found.vector, near)
    found.trust = own.scale(
        passages, openness(passages, worth, len(found.unknown)) if near else 0.0
    )
    for passage in passages.values():
        own.give(passage)
    ranking.focus(passages.values(), "named", weights)
    linked, encyclopaedic = _follow_titles(snapshot, passages, own, score, weights)
    ranking.focus(passages.values(), "link", weights)
    _shared_names(passages, named, weights, weights.shared if encyclopaedic else weights.quiet)
    _subwords(high := best(passages, weights.pieces), [*worth, *found.unknown], weights)
    ranking.give_definitions(high, worth, weights)
    ranking.give_files(passages.values(), weights)
    give(snapshot, passages, score, own.give, weights)
    lead(passages.values(), weights)
    _demote_unnamed(passages.values(), _words_of(found.names, rare, worth), weights)
    ranked = ranking.ordered(passages.values())
    if rerank is not None:
        ranked = _reranked(snapshot, query, ranked, rerank, weights)
    top, near = ranked[0].score(), own.near
    found.passages = [
        Scored(p.id, p.score() / top if top > 0 else 0.0, p.raw, p.parts, near.get(p.id))
        for p in ranked
    ]
    for place, passage in enumerate(ranked[:8], 1):
        for id in passage.entity_ids:
            found.held[id] = found.held.get(id, 0.0) + passage.score() / place
    found.considered = {"passages": len(passages), "linked": linked} | (
        {"near": len(near)} if near else {}
    )
    return found


def _rare_names(names: Sequence[Mention], worth: Mapping[str, float]) -> list[str]:
    """Terms of the question's names that few passages hold, as far as its other words are more
    common: the name says which thing is meant, the other words only what is asked of it.

    MuSiQue recall@5 68.7 -> 71.1, recall@20 83.8 -> 85.3, evidence within 2,000 tokens 76.8 ->
    78.8; with `_demote_unnamed` recall@5 72.2 and 85.8. HotpotQA recall@5 93.5 -> 93.0."""
    held = {term for one in names if one.strong for term in terms_of(one.form) if term in worth}
    usual = median(worth.values()) if worth else 0.0
    return [term for term in worth if term in held and worth[term] >= RARE * usual]


def _words_of(
    names: Sequence[Mention], rare: Sequence[str], worth: Mapping[str, float]
) -> list[list[str]]:
    """The terms of each name with a rare one, as they stand between blanks: of "Howard Flight" both,
    since passages on flights hold one."""
    held = ([term for term in terms_of(one.form) if term in worth] for one in names if one.strong)
    return [[f" {term} " for term in terms] for terms in held if not {*rare}.isdisjoint(terms)]


def _demote_unnamed(
    passages: Collection[Passage], names: Sequence[Sequence[str]], weights: Weights
) -> None:
    """A passage that holds no rare name of the question, that is not next to one that does, and
    that no title or name connects with one, counts less by its words."""
    spaced = [(one, f" {one.terms} ") for one in passages] if names else []
    holding = {
        (one.document_id, one.position)
        for one, terms in spaced
        if any(all(term in terms for term in name) for name in names)
    }
    for one, _ in spaced:
        near = {(one.document_id, one.position + step) for step in (-1, 0, 1)}
        if "text" in one.parts and CONNECTED.isdisjoint(one.parts) and near.isdisjoint(holding):
            one.parts["text"] *= weights.unnamed


def _add_keywords(
    snapshot: Snapshot,
    found: Retrieved,
    worth: dict[str, float],
    keywords: Sequence[str],
    weights: Weights,
) -> None:
    """The names and terms of keywords that the question lacks; worth as much as its own when it
    names none."""
    known = {mention.key for mention in found.names}
    share = weights.keyword if any(mention.strong for mention in found.names) else 1.0
    for form in dict.fromkeys(one.strip()[:200] for one in keywords[:KEYWORDS]):
        key = normalise_name(form)
        if key and key not in known:
            known.add(key)
            found.names.append(Mention(key, form, "other", False, 0, 0))
        more, _ = term_worth(snapshot, query_terms(form), weights)
        for term, value in more.items():
            worth.setdefault(term, share * value)


# ---- meaning -----------------------------------------------------------------------------------


def _nearest(
    snapshot: Snapshot,
    passages: dict[str, Passage],
    vector: bytes,
    score: Callable[[str, int], float],
) -> dict[str, float]:
    """The similarity of every candidate, after the nearest passages by vector have joined them."""
    if not vector:
        return {}
    near = vectors.similarities(snapshot, "passages", vector, CANDIDATES, list(passages))
    fresh = [id for id in near if id not in passages]
    rows = snapshot.by_key("passages", fresh, "id", LIGHT)
    passages.update((passage.id, passage) for passage in passages_of(rows, score))
    return near


@dataclass(slots=True)
class _Own:
    """What a passage is worth by itself: its words, its meaning, its title, the names it holds."""

    weights: Weights
    named: Mapping[str, None]
    names: int
    vector: bytes
    near: dict[str, float]
    top: float = 0.0  # the best BM25
    share: float = 0.0  # of meaning; the rest is for words
    low: float = 0.0
    high: float = 0.0

    def scale(self, passages: Mapping[str, Passage], openness: float) -> float:
        """Set the scales by what the candidates reach; gives the trust in the vectors."""
        self.top = max((passage.raw for passage in passages.values()), default=0.0)
        if not self.near:
            return 0.0
        # Words are sparse: most candidates hold few of them. Vectors are not, so their zero is the
        # middle candidate; from the worst one up, everything would be half alike and links would
        # drown (MuSiQue 68.7 instead of 71.4).
        self.low, self.high = median(self.near.values()), max(self.near.values())
        trust = openness * agreement(passages, self.near) if self.high > self.low else 0.0
        self.share = self.weights.vector * trust if self.top else 1.0
        return trust

    def more(self, snapshot: Snapshot, ids: Sequence[str]) -> None:
        """Further passages are to be scored."""
        if self.near and ids:
            self.near |= vectors.similarities(snapshot, "passages", self.vector, 1, ids)

    def give(self, passage: Passage) -> None:
        if self.top:
            passage.parts["text"] = (1 - self.share) * min(passage.raw / self.top, 1.0)
        if self.share and passage.id in self.near and self.high > self.low:
            value = (self.near[passage.id] - self.low) / (self.high - self.low)
            passage.parts["vector"] = self.share * min(max(value, 0.0), 1.0)
        if passage.title_id in self.named:
            passage.parts["named"] = self.weights.named
        held = len(self.named.keys() & passage.entity_ids) if self.named else 0
        if held:
            passage.parts["holds"] = self.weights.holds * min(1.0, held / max(self.names, 1))


def openness(passages: Mapping[str, Passage], worth: Mapping[str, float], unknown: int) -> float:
    """How much words leave open, 0 to 1: nothing where one passage holds nearly all that was asked
    for, everything where the best one holds half of it or less.

    Without this, vectors cost more than they bring where questions quote their text: 93 -> 44 on
    made-up chats, 100 -> 88 on long Chinese text. Unknown words are an average word each, as far as
    they outnumber the known ones."""
    best_one = max(passages.values(), key=lambda p: (p.raw, p.id))
    total = sum(worth.values()) if best_one.raw else 0.0
    if not total:
        return 1.0
    spaced = f" {best_one.terms} "
    held = sum(value for term, value in worth.items() if f" {term} " in spaced)
    total += max(unknown - len(worth) / 2, 0.0) * total / len(worth)
    return min(max((WORDS_DECIDE - held / total) / (WORDS_DECIDE - WORDS_LACK), 0.0), 1.0)


def agreement(passages: Mapping[str, Passage], near: Mapping[str, float]) -> float:
    """How far the vectors bear out the words of this question, 0 to 1: a model that does not know
    the language, or the matter, tells the passages that hold most of the question's words from the
    others no better than chance.

    The share of pairs (one of the best by words, any other candidate) that the vectors put in the
    same order, from CHANCE to CLEAR. Means: 0.66 for Chinese and an English model, 0.9 and more
    where the model knows the language."""
    by_words = sorted((p for p in passages.values() if p.raw > 0), key=lambda p: (-p.raw, p.id))[
        :LEADING
    ]
    leading = {passage.id for passage in by_words}
    others = sorted(value for id, value in near.items() if id not in leading)
    if not leading or len(others) < LEADING:
        return 1.0  # nothing to judge by: words found nothing, or nearly everything was found
    share = sum(bisect_left(others, near.get(id, others[0])) for id in leading) / (
        len(leading) * len(others)
    )
    return min(max((share - CHANCE) / (CLEAR - CHANCE), 0.0), 1.0)


# ---- the graph ---------------------------------------------------------------------------------


def _follow_titles(
    snapshot: Snapshot,
    passages: dict[str, Passage],
    own: _Own,
    score: Callable[[str, int], float],
    weights: Weights,
) -> tuple[int, bool]:
    """Give the passages of documents whose title a high passage names a share of that passage's
    score.

    Adds the first passages of such documents when full text did not propose them. Returns how many
    it added, and whether this is text whose documents name each other by title."""
    sources = best(passages, weights.sources)
    reach: dict[str, float] = {}
    for source in sources:
        for id in source.entity_ids:
            if id != source.title_id and len(reach) < weights.titles:
                reach[id] = max(reach.get(id, 0.0), source.score())
    wanted = list(dict.fromkeys([*own.named, *reach]))[: weights.titles]
    if not wanted:
        return 0, False
    titled = snapshot.by_key("passages", wanted, "title_id", ("id", "position"))
    leading = titled.filter(pc.less(titled["position"], weights.leads))["id"].to_pylist()
    rows = snapshot.by_key("passages", leading, "id", LIGHT)
    documents: dict[str, set[str]] = defaultdict(set)
    arrived = passages_of(rows, score)
    for passage in arrived:
        documents[passage.title_id].add(passage.document_id)
    quiet = {title for title, ids in documents.items() if len(ids) > weights.crowded}
    fresh = [p for p in arrived if p.title_id not in quiet and p.id not in passages]
    own.more(snapshot, [passage.id for passage in fresh])
    for passage in fresh:
        passages[passage.id] = passage
        own.give(passage)
    for passage in passages.values():
        if (
            passage.title_id in reach
            and passage.title_id in documents
            and passage.title_id not in quiet
        ):
            passage.parts["link"] = weights.link * reach[passage.title_id]
    titles = (reach.keys() & documents.keys()) - quiet
    naming = sum(
        not titles.isdisjoint(set(source.entity_ids) - {source.title_id}) for source in sources
    )
    return len(fresh), naming >= ENCYCLOPAEDIC * len(sources)


def _shared_names(
    passages: Mapping[str, Passage], named: Mapping[str, None], weights: Weights, share: float
) -> None:
    """A rare name that a high passage and a few others hold, and the question does not, ties them
    together."""
    sources = best(passages, weights.sources)
    holders: dict[str, list[Passage]] = {
        id: [] for source in sources for id in source.entity_ids if id not in named
    }
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


def _subwords(passages: Sequence[Passage], words: Sequence[str], weights: Weights) -> None:
    """The sparse second channel, over the best passages only."""
    every = dict.fromkeys(
        word[at : at + 4] for word in words if word.isalpha() for at in range(len(word) - 3)
    )
    pieces = list(every)[:60]
    share = {p.id: sum(map(p.terms.__contains__, pieces)) for p in passages}
    top = max(share.values(), default=0)
    for passage in passages if top else ():
        passage.parts["subword"] = weights.subword * share[passage.id] / top


# ---- a second reading --------------------------------------------------------------------------


def _reranked(
    snapshot: Snapshot, query: str, ranked: list[Passage], rerank: Rerank, weights: Weights
) -> list[Passage]:
    """The best passages get a share of a reranker's opinion in place of the same share of what they
    were worth."""
    head = ranked[:RERANKED]
    rows = snapshot.served("passages", [passage.id for passage in head], context.PASSAGE)
    texts = {row["id"]: f"{row['title']}\n{row['text']}" for row in rows}
    head = [passage for passage in head if passage.id in texts]
    said = rerank(query[:NAME_CHARACTERS], [texts[passage.id] for passage in head])
    if said is None or len(said) != len(head) or not head:
        return ranked
    low, high, top = min(said), max(said), ranked[0].score() or 1.0
    opinion = {}
    if high > low:
        opinion = {p.id: (one - low) / (high - low) for p, one in zip(head, said, strict=True)}
    for passage in (
        ranked if opinion else ()
    ):  # what it did not read counts as the worst that it did read
        passage.parts["rerank"] = weights.rerank * (
            top * opinion.get(passage.id, 0.0) - passage.score()
        )
    return ranking.ordered(ranked)


# ---- entities ----------------------------------------------------------------------------------


def entities(
    snapshot: Snapshot,
    found: Retrieved,
    count: int = 20,
    weights: Weights = WEIGHTS,
    read: int | None = None,
) -> list[Scored]:
    """Entities the question names (else those whose titles share its words), those of the best
    passages, and those near it in meaning; with `read` the best of them. Their rows are put into
    `found.rows`; damaged ones are missing."""
    weight, named = found.held, found.named
    often = sorted(weight, key=lambda id: (-round(weight[id], 9), id))[:count]
    near = meaning(snapshot, "entities", found.vector, count)
    rows = snapshot.served("entities", list(dict.fromkeys([*named, *often, *near])), RANKED)
    keys = {mention.key for mention in found.names}
    inflected = ranking.inflections(keys)
    if not any(row["key"] in keys for row in rows):
        by_words = snapshot.full_text("entities", list(found.terms), 20, ["id"])["id"].to_pylist()
        rows = [*rows, *snapshot.served("entities", by_words, RANKED)]
    top = max(weight.values(), default=0.0) or 1.0
    scored: dict[str, Scored] = {}
    for row in rows:
        words = row["terms"].split()
        parts = {
            "name": 1.0 if keys & {row["key"], *row["names"]} else 0.0,
            "words": 0.5 * sum(word in found.terms for word in words) / max(len(words), 1),
            "passages": 0.4
            * weight.get(row["id"], 0.0)
            / top
            / (1 + math.log(max(row["frequency"], 1))),
        }
        if not parts["name"] and (row["id"] in named or inflected(row["key"])):
            parts["name"] = 0.7
        if row["id"] in near:
            parts["vector"] = weights.entity * found.trust * near[row["id"]]
        held = sum(found.terms.get(word, 0.0) for word in words)
        scored[row["id"]] = Scored(row["id"], sum(parts.values()), held, parts)
    best_ones = sorted(scored.values(), key=lambda s: (-round(s.score, 9), s.id))[:count][:read]
    found.rows |= {
        row["id"]: row for row in snapshot.served("entities", [one.id for one in best_ones], ENTITY)
    }
    return [one for one in best_ones if one.id in found.rows]


def relationships(snapshot: Snapshot, found: Retrieved, count: int = 20) -> list[Scored]:
    """Relationships whose description is near the question in meaning; none where there are no
    vectors."""
    near = meaning(snapshot, "relationships", found.vector, count)
    return [Scored(id, found.trust * value, value, {"vector": value}) for id, value in near.items()]


def meaning(snapshot: Snapshot, table: str, vector: bytes, count: int) -> dict[str, float]:
    """The nearest rows of a table, best first, with how far each stands out: 1 for the best, 0 for
    the middle of the CANDIDATES nearest."""
    if not vector:
        return {}
    nearest = vectors.nearest(snapshot, table, vector, CANDIDATES)
    low, high = (median(value for _, value in nearest), nearest[0][1]) if nearest else (0.0, 0.0)
    return {id: (value - low) / (high - low) for id, value in nearest[:count] if value > low}
