"""What a local search looks at, by its mode and its filters: fused retrieval, plain text, or the graph alone.

Takes a snapshot and a question; gives the fused `Retrieved`, narrowed and reordered. `local` and `fused` are the fused
retrieval as it is; `basic` has no graph in it and ends after ten passages; `hybrid` has no plain text in it: passages
count by the entities and relationships that they hold. Knows no budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphrag_mcp.query import context, fused, ranking
from graphrag_mcp.query.fused import Retrieved, Scored
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import is_cjk

if TYPE_CHECKING:
    from graphrag_mcp.ask import Asker
    from graphrag_mcp.query.filters import Filters

MODES = ("local", "fused", "hybrid", "basic")
BASIC = 10  # passages of the mode `basic`
ENTITIES, OVERSAMPLED = 10, 2  # entities that are chosen, from how many times as many
UNITS = 20  # text units of one entity whose passages are looked at
INCLUDED = 10  # passages that an `entity=` filter brings in beside the ranked ones
PAIR = 0.5  # worth of two chosen entities in one passage, beside their own
EMBED_SECONDS = 5.0
LOAD_SECONDS = 30.0  # a model in this process is loaded by its first question
# Words that ask and name nothing: that no text holds them says nothing about the corpus.
ASKING = frozenset(
    "much many often long far really exactly please tell know wieviel wieviele weshalb wieso combien pourquoi cuánto "
    "cuánta cuántos cuántas quanto quanta quanti hoeveel waarom".split()
)
FACTS = ["id", "document_id", "entity_ids"]


def find(
    snapshot: Snapshot, query: str, *, mode: str = "local", keywords: Sequence[str] = (),
    filters: Filters | None = None, vector: bytes | None = None, asker: Asker | None = None,
) -> Retrieved:  # fmt: skip
    """Passages best first, as the mode sees them, of those that pass the filters."""
    found = Retrieved()
    if query:
        weights = fused.Weights()
        if mode == "basic":
            weights = replace(weights, named=0.0, holds=0.0, link=0.0, shared=0.0, quiet=0.0, beside=0.0, defines=0.0)
        found = fused.retrieve(snapshot, query, weights=weights, keywords=keywords, vector=vector or b"",
                               rerank=asker.rerank if asker is not None and asker.reranks else None)  # fmt: skip
    if filters is not None:
        _narrow(snapshot, found, filters)
    if mode == "hybrid" and found.passages:
        _by_graph(snapshot, found, filters)
    if filters is not None and filters.first:
        _included_first(snapshot, found, filters, bool(query))
    if mode == "basic":
        found.passages = found.passages[:BASIC]
    return found


def chosen(
    snapshot: Snapshot, found: Retrieved, filters: Filters | None = None, read: int | None = None
) -> list[dict[str, Any]]:
    """Candidates among the entities, best first, twice as many as are used; included ones first, others refilled.
    `read`: no more than so many are wanted."""
    most = ENTITIES * OVERSAMPLED
    if filters is None:
        return [found.rows[one.id] for one in fused.entities(snapshot, found, most, read=read)]
    scored = fused.entities(snapshot, found, most * 5) if found.terms else []
    rows = {row["id"]: dict(row) for row in filters.first}
    found.rows |= rows
    for one in scored:
        if filters.entity(found.rows[one.id]):
            rows.setdefault(one.id, found.rows[one.id])
    return list(rows.values())[:most][:read]


def vector_of(asker: Asker | None, snapshot: Snapshot, query: str) -> tuple[bytes | None, str]:
    """The question's vector, where this index has vectors and a model embeds; and a sentence when that failed."""
    if asker is None or not query or not asker.embeds or not snapshot.count("passages_vectors"):
        return None, ""
    future = asker.start(asker.embed([query[:8_000]], query=True))
    try:
        (vector,) = future.result(LOAD_SECONDS if asker.embedding_model.startswith("local:") else EMBED_SECONDS)
    except Exception:  # a model that is late or fails in any way must not cost the search
        vector = None
    said = "" if vector else "The question could not be embedded, so its words alone decided."
    return vector, said


def narrowed(snapshot: Snapshot, filters: Sequence[str], min_rating: float = 0.0) -> tuple[Filters | None, Snapshot]:
    """The filters as read, and the snapshot that proposes only what passes."""
    if not filters and min_rating <= 0:
        return None, snapshot
    from graphrag_mcp.query.filters import Narrowed, read

    kept = read(snapshot, filters, min_rating)
    return kept, Narrowed(snapshot, kept) if kept is not None else snapshot


def told(note: str, kept: Filters | None) -> str:
    """The note, and what is to be said about the filters."""
    return " ".join(filter(None, [note, kept.note if kept is not None else ""]))


# No thing that could be missing.
_ASKING = re.compile(".*(?:[哪谁誰几幾何]|什么|什麼|怎)|어디|누구|누가|무엇|언제|어떻|얼마|어떤|무슨|몇|왜$")


def unheard_of(found: Retrieved) -> bool:
    """Has every name of the question a word that stands nowhere, and the corpus few of its other words?

    Half as many unknown words as known ones are still a question on this corpus in other words; with a vector its
    meaning decides. Words of Chinese cannot be counted, for their pairs of characters cross from one word to the next:
    there it is enough that nothing of any name stands anywhere. So of 250 questions on encyclopaedic text none is given
    up, and 85 when they are asked of classics and a textbook.
    """
    if found.names and not found.vector and all(is_cjk(mention.form[0]) for mention in found.names):
        alone = any(len(term) == 1 and is_cjk(term) for term in found.terms)  # a word by itself: 猫和红烧肉
        return not (alone or found.near) and all(_absent(mention.form, found) for mention in found.names)
    named = [mention.form for mention in found.names if mention.strong]
    known = {*found.terms, *found.near, *(term for word in found.near for term in fused.query_terms(word))}
    unknown = {term for term in found.unknown if term not in known and not is_cjk(term[0])}
    if found.vector or len(unknown) < 2 or not named or len(unknown) * 4 < len(found.terms) * 3:
        return False
    return all(any(ranking.stands_nowhere(word, known, unknown) for word in form.split()) for form in named)


def missing(found: Retrieved, query: str = "") -> str:
    """Names and words of the question that occur nowhere: an agent should know before it trusts the context.

    Single words are told where most of the question is known: of one in another language all would be. Words of the
    corpus that were looked for in their place are told always.
    """
    if not found.unknown:
        return ""
    told = [one.form for one in found.names if one.strong or (is_cjk(one.form[0]) and not _ASKING.match(one.form))]
    absent = [form for form in told if _absent(form, found)]
    if len(found.unknown) <= len(found.terms):
        unknown = set(found.unknown)
        words = [word for word in query.split() if ranking.stands_nowhere(word, found.terms, unknown)]
        words = [word.strip(ranking.MARKS) for word in words if any(map(str.isalnum, word))]
        words = [word for word in words if word.casefold() not in ASKING and not _ASKING.match(word)]
        named = [form for form in absent if is_cjk(form[0])]  # 동생은 is 동생
        words = [word for word in words if not any(form in word for form in named)]
        absent += [word for word in words if not any(word in form for form in absent)]
    said = f"Nowhere in this corpus: {', '.join(repr(form) for form in dict.fromkeys(absent[:5]))}." if absent else ""
    instead = dict.fromkeys(near for nearest in found.near.values() for near in nearest)
    return f"{said} Looked for instead: {', '.join(map(repr, [*instead][:6]))}.".strip() if instead else said


def _absent(form: str, found: Retrieved) -> bool:
    words = fused.query_terms(form)
    return bool(words) and not any(word in found.terms for word in words)


# ---- filters -----------------------------------------------------------------------------------


def facts(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
    """Document and named entities of passages: what filters ask of them."""
    rows = snapshot.by_key("passages", list(ids), "id", FACTS, hold=True)
    columns = (rows[name].to_pylist() for name in FACTS)
    return {id: (document, entities) for id, document, entities in zip(*columns, strict=True)}


def _narrow(snapshot: Snapshot, found: Retrieved, filters: Filters) -> None:
    """Drop what links and vectors brought in from outside; the scale begins at the best that is left."""
    known = facts(snapshot, [one.id for one in found.passages])
    kept = [one for one in found.passages if one.id in known and filters.passage(*known[one.id])]
    found.passages = _scaled(kept, lambda one: one.score)
    found.considered["filtered"] = len(kept)
    found.held = {}
    for place, one in enumerate(found.passages[:8], 1):
        for id in known[one.id][1]:
            found.held[id] = found.held.get(id, 0.0) + one.score / place
    for id in filters.without:
        found.held.pop(id, None)
        found.named.pop(id, None)


def _scaled(some: Sequence[Scored], score: Callable[[Scored], float]) -> list[Scored]:
    top = max(map(score, some), default=0.0) or 1.0
    return [replace(one, score=score(one) / top) for one in some]


def _included_first(snapshot: Snapshot, found: Retrieved, filters: Filters, asked: bool) -> None:
    """Passages that name an included entity before all others, with some of its own that no word brought in."""
    wanted = {row["id"] for row in filters.first}
    known = facts(snapshot, [one.id for one in found.passages])
    held = [one for one in found.passages if not wanted.isdisjoint(known[one.id][1])]
    rest = [one for one in found.passages if wanted.isdisjoint(known[one.id][1])]
    more = [id for row in filters.first for id in _own_passages(snapshot, row, filters) if id not in known]
    more = list(dict.fromkeys(more))[: INCLUDED if asked else None]
    found.passages = [replace(one, score=0.5 + one.score / 2, why={**one.why, "included": 1.0}) for one in held]
    found.passages += [Scored(id, 0.5, 0.0, {"included": 1.0}) for id in more]
    found.passages += [replace(one, score=min(one.score, 0.99) / 2) for one in rest]
    if found.passages and not held:
        found.passages = _scaled(found.passages, lambda one: one.score)


def _own_passages(snapshot: Snapshot, entity: Mapping[str, Any], filters: Filters | None = None) -> list[str]:
    """Passages that name the entity, in the order of its text units."""
    row = entity if "text_unit_ids" in entity else next(iter(context.rows(snapshot, "entities", [entity["id"]])), None)
    if row is None:
        return []
    units = snapshot.by_key("text_units", row["text_unit_ids"][:UNITS], "id", ["n"])["n"].to_pylist()
    found = snapshot.by_key("passages", units, "n", FACTS, hold=True).to_pylist()
    return [
        one["id"] for one in found
        if row["id"] in one["entity_ids"]
        and (filters is None or filters.passage(one["document_id"], one["entity_ids"]))
    ]  # fmt: skip


# ---- the graph alone ---------------------------------------------------------------------------


def _by_graph(snapshot: Snapshot, found: Retrieved, filters: Filters | None) -> None:
    """Passages by the chosen entities that they hold, rare ones counting more, and by the pairs of them."""
    scored = [one for one in fused.entities(snapshot, found, ENTITIES * OVERSAMPLED)][: ENTITIES * OVERSAMPLED]
    if filters is not None:
        scored = [one for one in scored if filters.entity(found.rows[one.id])]
    worth = {one.id: one.score / (1 + math.log(max(found.rows[one.id]["frequency"], 1))) for one in scored[:ENTITIES]}
    place = {one.id: number for number, one in enumerate(found.passages)}
    raw = {one.id: one.raw for one in found.passages}
    known = dict.fromkeys(place)
    for id in worth:
        known |= dict.fromkeys(_own_passages(snapshot, found.rows[id], filters))
    ranked = []
    for id, (_, entities) in facts(snapshot, known).items():
        values = sorted((worth[one] for one in worth.keys() & set(entities)), reverse=True)
        pairs = PAIR * sum(values[1:])
        if values:
            parts = {"entities": sum(values), "relationships": pairs}
            ranked.append(Scored(id, sum(values) + pairs, raw.get(id, 0.0), parts))
    ranked.sort(key=lambda one: (-round(one.score, 9), place.get(one.id, len(place)), one.id))
    found.passages = _scaled(ranked[: fused.CANDIDATES], lambda one: one.score)
    found.considered = {"passages": len(ranked), "entities": len(worth)}
