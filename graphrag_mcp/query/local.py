"""Local search: the passages that answer a question, with the entities, relationships, claims and
reports around them.

Takes a snapshot, a question and a budget; gives a `SearchResult` whose citations stand in the order
of the ranking. An empty question gives an overview. `history` adds names of earlier turns of a
conversation; `explain` says of each item why it is there. Modes: `local` and `fused` are the fused
ranking; `basic` leaves out the graph and ends after ten passages; `hybrid` leaves out plain text, so
that passages count by the entities and relationships that they hold. Asks no model.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    clamp_budget,
    columns,
    compose,
    finish,
    one_line,
    passage_alias,
    read_cursor,
    shorten,
    write_cursor,
)
from graphrag_mcp.packing.wire import outgoing
from graphrag_mcp.query import context, passages, ranking, retrieval, topics
from graphrag_mcp.query.context import MARKS
from graphrag_mcp.query.hits import Source, parts_of
from graphrag_mcp.query.passages import DEFAULT_TOKENS, Form
from graphrag_mcp.query.ranking import Scored
from graphrag_mcp.query.retrieval import Retrieved
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import terms
from graphrag_mcp.text.terms import counted, is_cjk, query_terms, stop_word
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.answer import Meter
    from graphrag_mcp.query.filters import Filters


TURNS = 5  # user turns that are kept, the newest
HEADING = "-----Conversation History-----\nturn|content"
SHARE = 0.1  # of the budget at most
NAMES = 8  # looked for beside the question
LEAST = 10  # tokens of a turn below which it is left out

_ROLE = re.compile(r"\s*(user|human|me|assistant|ai|bot|system|tool)\s*[:：|]\s*", re.IGNORECASE)
_USER = {"user", "human", "me"}


def user_turns(history: Sequence[str]) -> list[str]:
    """The last user turns, oldest first. A turn without a role is the user's."""
    turns = []
    for one in history:
        match = _ROLE.match(one)
        body = one[match.end() :] if match else one
        if body.strip() and (match is None or match[1].casefold() in _USER):
            turns.append(body.strip())
    return turns[-TURNS:]


def history_keywords(turns: Sequence[str], query: str) -> list[str]:
    """Names of earlier turns, the newest first: of all when the question names nothing itself, else
    of the newest.

    Where no turn names anything, the content words of the newest, as they are written: they may be
    told.
    """
    own = {mention.key for mention in extract(query[:4_000]) if mention.strong}
    found: dict[str, str] = {}
    for turn in list(reversed(turns))[: 1 if own else TURNS]:
        for mention in extract(turn[:4_000]):
            if mention.strong and mention.key not in own:
                found.setdefault(mention.key, mention.form)
    if found or own or not turns:
        return list(found.values())[:NAMES]
    words = [word.strip(MARKS) for word in turns[-1][:1_000].split()]
    return [word for word in words if not all(map(stop_word, query_terms(word)))][:NAMES]


def history_block(turns: Sequence[str], budget: int) -> str:
    """The block, with as many of the newest turns as its share of the budget holds; "" when that is
    not one.
    """
    left = int(budget * SHARE) - count_tokens(HEADING)
    kept: list[str] = []
    for turn in reversed(turns):
        line = columns("user", one_line(turn, 2_000))
        if count_tokens(line) + 1 > left:
            if kept or left < LEAST + 4:
                break
            line = columns("user", shorten(one_line(turn, 2_000), left - 4) + " …")
            left = 0
        left -= count_tokens(line) + 1
        kept.insert(0, line)
        if left <= 0:
            break
    return "\n".join([HEADING, *kept]) if kept else ""


SOURCES = 20  # high passages from which a path may start
ROW = ["id", "n", "part", "parts", "title_id", "document_id", "entity_ids"]
WORDS = {
    "text": "words",
    "vector": "meaning",
    "named": "its title is named in the question",
    "holds": "holds a name of the question",
    "link": "its title is named in",
    "shared": "shares a rare name with",
    "beside": "next to a high passage",
    "subword": "parts of words",
    "included": "holds an included entity",
    "defines": "defines a word of the question",
    "file": "other passages of its file",
    "lead": "clearly best by itself",
    "entities": "entities",
    "relationships": "pairs of them",
    "rerank": "reranker",
}


def explained(item: Item, said: str) -> Item:
    """The item with its reason under the text, and in its citation."""
    gap = "\n" if "\n" in item.text else " "
    cited = item.citation.model_copy(update={"why": said}) if item.citation else None
    return replace(
        item, text=f"{item.text}{gap}(why: {said})", citation=cited, tokens=0, span=(0, 0)
    )


def of_passages(snapshot: Snapshot, found: Retrieved, ids: Sequence[str]) -> dict[str, str]:
    """For each passage: its rank, the parts of its score, and for a link the passage that it comes
    from.
    """
    place = {one.id: number for number, one in enumerate(found.passages, 1)}
    by_words = sorted(found.passages, key=lambda one: (-one.why.get("text", 0.0), one.id))
    rank = {one.id: number for number, one in enumerate(by_words, 1)}
    high = [one.id for one in found.passages[:SOURCES]]
    rows = {
        row["id"]: row for row in snapshot.by_key("passages", [*high, *ids], "id", ROW).to_pylist()
    }
    scored = {one.id: one for one in found.passages}
    said = {}
    for id in ids:
        parts = _parts(scored[id], rank[id], rows, high)
        said[id] = f"rank {place[id]}: " + (", ".join(parts) or "no channel of its own")
    return said


def _parts(
    one: Scored, rank: int, rows: Mapping[str, Mapping[str, Any]], high: Sequence[str]
) -> list[str]:
    listed = []
    for name, value in sorted(one.why.items(), key=lambda pair: (-pair[1], pair[0])):
        if round(value, 2) <= 0:
            continue
        text = f"{WORDS.get(name, name)} {value:.2f}"
        if name == "text":
            text += f" (BM25 {one.raw:.1f}, rank {rank})"
        elif name in ("link", "shared"):
            source = _source(rows.get(one.id), rows, high, name)
            text = f"{WORDS[name]} {source or 'a high passage'} {value:.2f}"
        listed.append(text)
    return listed


def _source(
    row: Mapping[str, Any] | None,
    rows: Mapping[str, Mapping[str, Any]],
    high: Sequence[str],
    kind: str,
) -> str:
    """The best passage of another document that names this one's title, or shares an entity with
    it.
    """
    if row is None:
        return ""
    own = {row["title_id"]} if kind == "link" else set(row["entity_ids"])
    for id in high:
        other = rows.get(id)
        if (
            other
            and other["document_id"] != row["document_id"]
            and not own.isdisjoint(other["entity_ids"])
        ):
            return passage_alias(other)
    return ""


def of_entities(scored: Sequence[Scored], first: Sequence[str]) -> dict[str, str]:
    """For each entity: rank, and how far its name, its words and the best passages speak for it."""
    names = {
        "name": "named in the question",
        "words": "words of its title",
        "passages": "named in the best passages",
    }
    said = {id: "asked for by a filter" for id in first}
    for place, one in enumerate(scored, 1):
        parts = [
            f"{names.get(name, name)} {value:.2f}"
            for name, value in one.why.items()
            if round(value, 2) > 0
        ]
        said.setdefault(one.id, f"rank {place}: " + ", ".join(parts))
    return said


MODES = ("local", "fused", "hybrid", "basic")
BASIC = 10  # passages of the mode `basic`
FALL, LEAST_PASSAGES = 1 / 3, 3  # of the best score; passages that a model reads in any case
ENTITIES, OVERSAMPLED = 10, 2  # entities that are chosen, from how many times as many
UNITS = 20  # text units of one entity whose passages are looked at
INCLUDED = 10  # passages that an `entity=` filter brings in beside the ranked ones
PAIR = 0.5  # worth of two chosen entities in one passage, beside their own
EMBED_SECONDS = 5.0
LOAD_SECONDS = 30.0  # a model in this process is loaded by its first question
FACTS = ["id", "document_id", "entity_ids"]


def find(
    snapshot: Snapshot,
    query: str,
    *,
    mode: str = "local",
    keywords: Sequence[str] = (),
    filters: Filters | None = None,
    vector: bytes | None = None,
    asker: Asker | None = None,
) -> Retrieved:
    """Passages best first, as the mode sees them, of those that pass the filters."""
    found = Retrieved()
    if query:
        weights = ranking.Weights()
        if mode == "basic":
            weights = replace(
                weights,
                named=0.0,
                holds=0.0,
                link=0.0,
                shared=0.0,
                quiet=0.0,
                beside=0.0,
                defines=0.0,
            )
        found = retrieval.retrieve(
            snapshot,
            query,
            weights=weights,
            keywords=keywords,
            vector=vector or b"",
            rerank=asker.rerank if asker is not None and asker.reranks else None,
        )
    if filters is not None:
        _narrow(snapshot, found, filters)
    if mode == "hybrid" and found.passages:
        _by_graph(snapshot, found, filters)
    if filters is not None and filters.first:
        _included_first(snapshot, found, filters, bool(query))
    if mode == "basic":
        found.passages = found.passages[:BASIC]
    return found


def chosen_entities(
    snapshot: Snapshot, found: Retrieved, filters: Filters | None = None, read: int | None = None
) -> list[dict[str, Any]]:
    """Candidates among the entities, best first, twice as many as are used; included ones first,
    others refilled. `read`: no more than so many are wanted."""
    most = ENTITIES * OVERSAMPLED
    if filters is None:
        return [found.rows[one.id] for one in retrieval.entities(snapshot, found, most, read=read)]
    scored = retrieval.entities(snapshot, found, most * 5) if found.terms else []
    rows = {row["id"]: dict(row) for row in filters.first}
    found.rows |= rows
    for one in scored:
        if filters.entity(found.rows[one.id]):
            rows.setdefault(one.id, found.rows[one.id])
    return list(rows.values())[:most][:read]


def vector_of(asker: Asker | None, snapshot: Snapshot, query: str) -> tuple[bytes | None, str]:
    """The question's vector, where this index has vectors and a model embeds; and a sentence when
    that failed.
    """
    if asker is None or not query or not asker.embeds or not snapshot.count("passages_vectors"):
        return None, ""
    future = asker.start(asker.embed([query[:8_000]], query=True))
    try:
        (vector,) = future.result(
            LOAD_SECONDS if asker.embedding_model.startswith("local:") else EMBED_SECONDS
        )
    except Exception:  # a model that is late or fails in any way must not cost the search
        vector = None
    said = "" if vector else "The question could not be embedded, so its words alone decided."
    return vector, said


def narrowed(
    snapshot: Snapshot, filters: Sequence[str], min_rating: float = 0.0
) -> tuple[Filters | None, Snapshot]:
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
_ASKING = re.compile(
    ".*(?:[哪谁誰几幾何]|什么|什麼|怎)|어디|누구|누가|무엇|언제|어떻|얼마|어떤|무슨|몇|왜$"
)


def unheard_of(found: Retrieved) -> bool:
    """Has every name of the question a word that stands nowhere, and the corpus few of its other
    words?

    Half as many unknown words as known ones are still a question on this corpus in other words;
    with a vector its meaning decides. Words of Chinese cannot be counted, for their pairs of
    characters cross from one word to the next: there it is enough that nothing of any name stands
    anywhere. So of 250 questions on encyclopaedic text none is given up, and 85 when they are asked
    of classics and a textbook.
    """
    if found.names and not found.vector and all(is_cjk(mention.form[0]) for mention in found.names):
        alone = any(
            len(term) == 1 and is_cjk(term) for term in found.terms
        )  # a word by itself: 猫和红烧肉
        return not (alone or found.near) and all(
            _absent(mention.form, found) for mention in found.names
        )
    named = [mention.form for mention in found.names if mention.strong]
    known = {
        *found.terms,
        *found.near,
        *(term for word in found.near for term in terms.query_terms(word)),
    }
    unknown = {term for term in found.unknown if term not in known and not is_cjk(term[0])}
    if found.vector or len(unknown) < 2 or not named or len(unknown) * 4 < len(found.terms) * 3:
        return False
    return all(
        any(ranking.stands_nowhere(word, known, unknown) for word in form.split()) for form in named
    )


def missing(found: Retrieved, query: str = "") -> str:
    """Names, numbers and quoted words of the question that occur nowhere: an agent should know before
    it trusts the context. Words of the corpus that were looked for in their place are told always.
    """
    if not found.unknown:
        return ""
    told = [
        one.form
        for one in found.names
        if one.strong or (is_cjk(one.form[0]) and not _ASKING.match(one.form))
    ]
    absent = [form for form in told if _absent(form, found)]
    words = _nowhere(query, found)
    named = [form for form in absent if is_cjk(form[0])]  # 동생은 is 동생
    words = [word for word in words if not any(form in word for form in named)]
    absent += [word for word in words if not any(word in form for form in absent)]
    said = (
        f"Nowhere in this corpus: {', '.join(repr(form) for form in dict.fromkeys(absent[:5]))}."
        if absent
        else ""
    )
    instead = dict.fromkeys(near for nearest in found.near.values() for near in nearest)
    return (
        f"{said} Looked for instead: {', '.join(map(repr, [*instead][:6]))}.".strip()
        if instead
        else said
    )


def _nowhere(query: str, found: Retrieved) -> list[str]:
    """Numbers and quoted words of the question that occur nowhere; capitalised ones too where most of
    the question is known, since in a language that the corpus does not hold all would be."""
    unknown = set(found.unknown)
    words = [word for word in query.split() if ranking.stands_nowhere(word, found.terms, unknown)]
    words = [word.strip(context.MARKS) for word in words if any(map(str.isalnum, word))]
    first = query.split()[0].strip(context.MARKS) if query.split() else ""
    quoted = set(re.findall(r"\w+", " ".join(re.findall(r"[\"“«]([^\"“”«»]{1,200})[\"”»]", query))))
    known = len(found.unknown) <= len(found.terms)
    return [
        word
        for word in words
        if any(map(str.isdigit, word))
        or word in quoted
        or (known and word[0].isupper() and word != first)
    ]


def _absent(form: str, found: Retrieved) -> bool:
    words = terms.query_terms(form)
    return bool(words) and not any(word in found.terms for word in words)


# ---- filters -----------------------------------------------------------------------------------


def facts(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
    """Document and named entities of passages: what filters ask of them."""
    rows = snapshot.by_key("passages", list(ids), "id", FACTS)
    columns = (rows[name].to_pylist() for name in FACTS)
    return {id: (document, entities) for id, document, entities in zip(*columns, strict=True)}


def _narrow(snapshot: Snapshot, found: Retrieved, filters: Filters) -> None:
    """Drop what links and vectors brought in from outside; the scale begins at the best that is
    left.
    """
    known = facts(snapshot, [one.id for one in found.passages])
    kept = [one for one in found.passages if one.id in known and filters.passage(*known[one.id])]
    timely = filters.timely(snapshot, [one.id for one in kept])
    kept = [one for one in kept if one.id in timely]
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
    """Only passages that name an included entity: those that the question found, then some that no
    word brought in."""
    wanted = {row["id"] for row in filters.first}
    known = facts(snapshot, [one.id for one in found.passages])
    held = [one for one in found.passages if not wanted.isdisjoint(known[one.id][1])]
    more = [
        id
        for row in filters.first
        for id in _own_passages(snapshot, row, filters)
        if id not in known
    ]
    more = list(dict.fromkeys(more))[: INCLUDED if asked else None]
    found.passages = [
        replace(one, score=0.5 + one.score / 2, why={**one.why, "included": 1.0}) for one in held
    ]
    found.passages += [Scored(id, 0.5, 0.0, {"included": 1.0}) for id in more]
    if found.passages and not held:
        found.passages = _scaled(found.passages, lambda one: one.score)


def _own_passages(
    snapshot: Snapshot, entity: Mapping[str, Any], filters: Filters | None = None
) -> list[str]:
    """Passages that name the entity, in the order of its text units."""
    row = (
        entity
        if "text_unit_ids" in entity
        else next(iter(context.rows(snapshot, "entities", [entity["id"]])), None)
    )
    if row is None:
        return []
    units = snapshot.by_key("text_units", row["text_unit_ids"][:UNITS], "id", ["n"])[
        "n"
    ].to_pylist()
    found = snapshot.by_key("passages", units, "n", FACTS).to_pylist()
    own = [
        one["id"]
        for one in found
        if row["id"] in one["entity_ids"]
        and (filters is None or filters.passage(one["document_id"], one["entity_ids"]))
    ]
    timely = own if filters is None else filters.timely(snapshot, own)
    return [id for id in own if id in timely]


# ---- the graph alone ---------------------------------------------------------------------------


def _by_graph(snapshot: Snapshot, found: Retrieved, filters: Filters | None) -> None:
    """Passages by the chosen entities that they hold, rare ones counting more, and by the pairs of
    them.
    """
    scored = [one for one in retrieval.entities(snapshot, found, ENTITIES * OVERSAMPLED)][
        : ENTITIES * OVERSAMPLED
    ]
    if filters is not None:
        scored = [one for one in scored if filters.entity(found.rows[one.id])]
    worth = {
        one.id: one.score / (1 + math.log(max(found.rows[one.id]["frequency"], 1)))
        for one in scored[:ENTITIES]
    }
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
    found.passages = _scaled(ranked[: retrieval.CANDIDATES], lambda one: one.score)
    found.considered = {"passages": len(ranked), "entities": len(worth)}


QUERIES_TOKENS = 2_000  # for several questions at once
MOST_QUERIES = 5
RELATIONSHIPS_PER_ENTITY = 10
REPORTS = 10
HUB = 500  # an entity of more relationships adds none from outside the selection
SMALL, SMALL_SOURCES = (
    3_000,
    0.8,
)  # with so few tokens text counts most; entities are then named, not described
LISTED = (
    400  # tokens of the budget for which the detailed format lists one more candidate of each kind
)
ORDER = (
    "Sources",
    "Entities",
    "Relationships",
    "Claims",
    "Reports",
)  # of offsets in a cursor, and of concise blocks
DETAILED = ("Reports", "Entities", "Relationships", "Claims", "Sources")
HEADERS = {
    "Reports": "id|title|occurrence weight|content|rank",
    "Entities": "id|entity|description|number of relationships",
    "Relationships": "id|source|target|description|weight|links",
    "Claims": context.CLAIMS,
}


def local_search(
    snapshot: Snapshot,
    query: str,
    *,
    max_tokens: int = DEFAULT_TOKENS,
    response_format: str = "concise",
    cursor: str = "",
    shares: Mapping[str, float] | None = None,
    keywords: Sequence[str] = (),
    filters: Sequence[str] = (),
    min_rating: float = 0.0,
    history: Sequence[str] = (),
    explain: bool = False,
    mode: str = "local",
    form: Form = Form(),  # noqa: B008 (frozen)
    asker: Asker | None = None,
    answer: bool = False,
    response_type: str = "",
    instructions: str = "",
    general_knowledge: bool = False,
    on_text: Callable[[str], None] | None = None,
    seconds: float = 0.0,
) -> SearchResult:
    """Cited context for a question, and with `answer` what a model makes of it.

    `shares` of the budget by section replace the usual ones (at most 1 in all). `keywords` are
    looked for beside the question. `asker` embeds the question where it can, and is asked for no
    words without `answer`. `mode`: local and fused are the whole, hybrid leaves out plain text,
    basic is ten passages. `seconds`: how long to wait for the model, 0 for as long as it takes; a
    later page has no answer.
    """
    began = time.monotonic()
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if mode not in MODES:
        raise BadInput(f"there is no search mode {mode[:40]!r}", f"Use one of {', '.join(MODES)}")
    nothing = context.empty_corpus(snapshot, mode)
    if nothing is not None:
        return finish(nothing, budget)
    query, detailed = query.strip(), response_format == "detailed"
    meter = None
    turns, keywords = with_history(history, query, keywords)
    if answer and query and asker is not None and not keywords:
        meter, keywords = _model_keywords(asker, snapshot, query, seconds)
    settings = (
        response_format,
        mode,
        explain,
        sorted((shares or {}).items()),
        [*filters, min_rating],
        [*keywords],
        (form.breadth, form.sort),
    )
    asked, generation = f"{mode}|{query}|{settings}|{turns}", snapshot.manifest.generation
    offsets = read_cursor(cursor, generation, asked, len(ORDER))
    if offsets is None:
        return finish(context.stale(snapshot, mode), budget)
    kept, snapshot = narrowed(snapshot, filters, min_rating)
    note = told(note, kept)
    vector, unembedded = vector_of(asker, snapshot, query)
    found = find(
        snapshot, query, mode=mode, keywords=keywords, filters=kept, vector=vector, asker=asker
    )
    if not found.passages or (not keywords and not (kept and kept.first) and unheard_of(found)):
        return _nothing(snapshot, query, found, budget, note, kept)
    result = SearchResult(
        mode=mode, corpus=snapshot.manifest.corpus, coverage=dict(found.considered)
    )
    long = context.query_length_note(query, retrieval.QUERY_CHARACTERS)
    result.hint = " ".join(filter(None, [note, long, unembedded, missing(found, query)]))
    before = block(turns, budget) if not cursor.strip() else ""

    def plain(result: SearchResult) -> SearchResult:
        result.text = before
        following = partial(write_cursor, generation, asked)
        source = source_of(snapshot, found, explain=explain)
        return passages.concise(result, [source], budget, offsets[0], following, form)

    if not detailed and (not answer or not query or cursor.strip()):
        return plain(result)
    sections = sections_of(
        snapshot, found, budget, detailed, offsets, shares, filters=kept, explain=explain, mode=mode
    )

    def page(after: tuple[int, ...]) -> str:
        reached = {section.name: offset for section, offset in zip(sections, after, strict=True)}
        return write_cursor(generation, asked, [reached.get(name, 0) for name in ORDER])

    if not answer or not query or cursor.strip():
        if mode != "basic":
            return _with_candidates(result, sections, budget, page, before, snapshot, found, kept)
        return compose(result, sections, budget, page, intro=before)
    from graphrag_mcp.query.answer import READ_TOKENS, Wish, with_answer

    read = sections_of(
        snapshot,
        _near_the_best(found),
        max(budget, READ_TOKENS),
        True,
        shares=shares,
        filters=kept,
        mode=mode,
    )
    read.sort(key=lambda section: ORDER.index(section.name))  # t1 is the best passage
    left = max(seconds - (time.monotonic() - began), 0.05) if seconds else 0.0
    wish = Wish(response_type, instructions, general_knowledge, on_text, left, before)
    return with_answer(
        result,
        sections,
        budget,
        page,
        snapshot=snapshot,
        query=query,
        asker=asker,
        wish=wish,
        meter=meter,
        plain=plain,
        read=read,
    )


def _near_the_best(found: Retrieved) -> Retrieved:
    """Without the passages behind a fall of relevance: what a model reads should be on topic."""
    best = found.passages[0].score if found.passages else 0.0
    kept = [
        one
        for place, one in enumerate(found.passages)
        if place < LEAST_PASSAGES or one.score >= FALL * best
    ]
    return replace(found, passages=kept)


def source_of(
    snapshot: Snapshot,
    found: Retrieved,
    corpus: str = "",
    factor: float = 1.0,
    explain: bool = False,
) -> Source:
    """What was found, for `passages`; scores times `factor`."""
    scored = [(one.id, one.score * factor) for one in found.passages]
    why = partial(of_passages, snapshot, found) if explain else None
    named = list(found.named)
    parts = parts_of(found.query)
    near = found.near.keys()
    return Source(snapshot, scored, found.terms, corpus, found.names, named, why, parts, near)


def several(
    parts: Sequence[tuple[str, Snapshot]],
    queries: Sequence[str],
    *,
    max_tokens: int = QUERIES_TOKENS,
    filters: Sequence[str] = (),
    askers: Mapping[str, Asker] | None = None,
    form: Form,
) -> SearchResult:
    """Several questions in one result, of one corpus (named "") or several."""
    budget, note = clamp_budget(max_tokens, QUERIES_TOKENS)
    wanted = list(dict.fromkeys(one.strip() for one in queries if one.strip()))
    dropped = len(wanted) - MOST_QUERIES
    note += f" Only the first {MOST_QUERIES} queries were asked." if dropped > 0 else ""
    result = SearchResult(mode="local", corpus=",".join(name for name, _ in parts if name))
    result.hint = note.strip()
    asked = []
    for query in wanted[:MOST_QUERIES]:
        sources = []
        for name, whole in parts:
            if context.empty_corpus(whole, "local") is not None:
                continue
            kept, snapshot = narrowed(whole, filters)
            asker = (askers or {}).get(name)
            vector, _ = vector_of(asker, snapshot, query)
            found = find(snapshot, query, filters=kept, vector=vector, asker=asker)
            if found.passages and not unheard_of(found):
                sources.append(source_of(snapshot, found, name))
        asked.append((query, sources))
    return passages.several(result, asked, budget, form)


def _nothing(
    snapshot: Snapshot,
    query: str,
    found: Retrieved,
    budget: int,
    note: str,
    filters: Filters | None,
) -> SearchResult:
    """No passage: an overview when nothing was asked, else an honest nothing."""
    if not query and not (filters and filters.first):
        result = SearchResult(mode="overview", corpus=snapshot.manifest.corpus)
        result.hint = " ".join(filter(None, [note, topics.UNASKED]))
        return topics.overview(result, [("", snapshot, filters)], budget)
    return _not_found(snapshot, query, found, budget, note, filters)


def _not_found(
    snapshot: Snapshot,
    query: str,
    found: Retrieved,
    budget: int,
    note: str,
    filters: Filters | None = None,
) -> SearchResult:
    """An honest nothing: what was searched, the nearest names, another tool."""
    counters = snapshot.manifest.counters
    result = SearchResult(
        state="not_found", mode="local", corpus=snapshot.manifest.corpus, coverage={"passages": 0}
    )
    searched = " and ".join(
        counted(counters.get(kind, 0), kind) for kind in ("passages", "entities")
    )
    near: dict[str, Mapping[str, Any]] = {}
    words = (word for word in query[:200].split() if not stop_word(word.lower().strip("?!.,")))
    wanted = dict.fromkeys([*(mention.form for mention in found.names), query[:100], *words])
    for name in [name for name in wanted if len(name) > 1][:6]:
        near.update((row["id"], row) for row in context.nearest_names(snapshot, name, 3))
    result.text = (
        f"No word of this question occurs in the {searched} of corpus {snapshot.manifest.corpus}."
    )
    advice = (
        "Try a name from above with get_entity."
        if near
        else "Try global_search for what the corpus is about."
    )
    if found.passages:
        told = missing(found, query).partition(" Looked for")[0]
        result.text = (
            f"{told} Of this question only common words occur in corpus {snapshot.manifest.corpus}."
        )
        advice = "Ask without these names, or in words of the corpus, if something else is meant."
    elif filters is not None:
        from graphrag_mcp.query.filters import described, listed

        documents = counters.get("documents", 0)
        passed = documents if filters.documents is None else len(filters.documents)
        result.text = (
            f"Nothing that passes the filters ({described(filters)}) speaks of this question."
        )
        result.text += f" {passed} of {counted(documents, 'documents')} pass."
        result.text += listed(snapshot, filters)
        advice = "Ask again with fewer filters" + (
            ", or read one with get_source." if passed else "."
        )
    if near:
        result.text += f"\nNearest names: {context.named_list(list(near.values())[:5])}."
    result.hint = " ".join(filter(None, [note, advice]))
    return finish(result, budget)


def with_history(
    history: Sequence[str], query: str, keywords: Sequence[str]
) -> tuple[list[str], Sequence[str]]:
    """The user turns, and the keywords with the names that earlier turns add."""
    if not history:
        return [], keywords

    turns = user_turns(history)
    return turns, [*keywords, *history_keywords(turns, query)] if query else keywords


def block(turns: Sequence[str], budget: int) -> str:
    if not turns:
        return ""

    return history_block(turns, budget)


# ---- sections ----------------------------------------------------------------------------------


def sections_of(
    snapshot: Snapshot,
    found: Retrieved,
    budget: int,
    detailed: bool = False,
    offsets: Sequence[int] = (0,) * len(ORDER),
    shares: Mapping[str, float] | None = None,
    *,
    filters: Filters | None = None,
    explain: bool = False,
    mode: str = "local",
    window: int = 0,
) -> list[Section]:
    """Sources, entities, relationships, claims and reports in the order of reading; concise begins
    with the sources.
    """
    share = dict(shares) if shares else _shares(budget, detailed)
    parts = {
        "Sources": _sources(
            snapshot, found, offsets[0], budget, share.get("Sources", 0.0), explain, window
        )
    }
    if mode != "basic":
        wanted = None if detailed else ENTITIES  # the list of candidates names more
        chosen = chosen_entities(snapshot, found, filters, wanted)[:ENTITIES]
        claims = context.claims_about(snapshot, chosen)
        listed = {
            "Entities": context.entity_items(chosen, detailed, budget > SMALL),
            "Relationships": _relationships(snapshot, chosen, filters) if detailed else [],
            "Claims": claims,
            "Reports": _reports(snapshot, chosen) if share.get("Reports") else [],
        }
        if explain:
            listed = _explained(snapshot, found, listed, chosen, filters)
        for at, name in enumerate(ORDER[1:], 1):
            header = HEADERS[name] if detailed or name != "Entities" else ""
            items = listed[name][offsets[at] :]
            greedy = detailed or budget <= SMALL or name not in ("Entities", "Claims")
            parts[name] = Section(
                name, items, share.get(name, 0.0), offsets[at], header, greedy=greedy
            )
    return [parts[name] for name in (DETAILED if detailed else ORDER) if name in parts]


def _shares(budget: int, detailed: bool) -> dict[str, float]:
    """Reports 0.15, text 0.5, the rest for entities, relationships and claims; what one does not
    use goes to the text."""
    if budget <= SMALL and not detailed:
        return {"Sources": 1.0}  # others take what is too little for one more passage
    if budget <= SMALL:
        return {
            "Sources": SMALL_SOURCES,
            "Entities": 0.05,
            "Relationships": 0.05,
            "Claims": 0.05,
            "Reports": 0.05,
        }
    usual = {"Sources": 0.5, "Entities": 0.15, "Relationships": 0.15, "Claims": 0.05}
    return usual | {"Reports": 0.15} if detailed else usual


def _sources(
    snapshot: Snapshot,
    found: Retrieved,
    start: int,
    budget: int,
    share: float,
    explain: bool,
    window: int,
) -> Section:
    """The passages of the ranking from `start` on, as many as could fit, and `window` more."""
    stop = start + window + max(8, budget // 90)  # a citation alone costs nearly as much
    chosen = found.passages[start:stop]
    scored = [(one.id, one.score) for one in chosen]
    if explain or window:
        items, places = context.passage_items(snapshot, scored)
    else:
        items, places, read = context.enough_items(snapshot, scored, budget)
        stop = min(stop, start + read)
    if explain:
        said = of_passages(snapshot, found, [one.id for one in chosen])
        items = [
            explained(item, said[chosen[at].id]) for item, at in zip(items, places, strict=True)
        ]
    return Section(
        "Sources",
        items,
        share,
        start,
        places=[start + place for place in places],
        more=stop < len(found.passages),
        cut=partial(context.excerpt, worth=found.terms) if not explain else None,
    )


def _reports(snapshot: Snapshot, chosen: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Reports of the communities that hold most of the chosen entities, then by rank."""
    members = snapshot.by_key(
        "memberships", [row["id"] for row in chosen], "entity_id", ["entity_id", "path"]
    )
    held: Counter[str] = Counter()
    for path in members["path"].to_pylist():
        held.update(path)
    light = snapshot.by_key(
        "reports", list(held), "id", ["id", "rank", "level", "n_text_units"]
    ).to_pylist()
    light.sort(key=lambda row: (-held[row["id"]], -row["rank"], -row["level"], row["id"]))
    most = max((row["n_text_units"] for row in light), default=0) or 1
    occurrence = {row["id"]: row["n_text_units"] / most for row in light}
    found = context.rows(snapshot, "reports", [row["id"] for row in light[:REPORTS]])
    items = context.report_items(snapshot, found, occurrence)
    return [replace(item, score=held[row["id"]]) for item, row in zip(items, found, strict=True)]


def _relationships(
    snapshot: Snapshot, chosen: Sequence[Mapping[str, Any]], filters: Filters | None = None
) -> list[Item]:
    """All relationships between chosen entities; then outward ones, by how many chosen ones they
    link, by weight.
    """
    inside = {row["id"] for row in chosen}
    names = ["id", "source_id", "target_id", "weight"]
    open_ids = [row["id"] for row in chosen if row["degree"] <= HUB]
    every, some = _listed([row["id"] for row in chosen]), _listed(open_ids)
    where = f"(source_id IN ({every}) AND target_id IN ({every}))"
    if open_ids:
        where += f" OR source_id IN ({some}) OR target_id IN ({some})"
    light = snapshot.rows("relationships", where, names).to_pylist() if chosen else []
    if filters is not None and filters.without:
        light = [
            row for row in light if filters.without.isdisjoint((row["source_id"], row["target_id"]))
        ]
    links: Counter[str] = Counter()
    for row in light:
        links.update(end for end in (row["source_id"], row["target_id"]) if end not in inside)
    linked = {row["id"]: max(links[row["source_id"]], links[row["target_id"]]) for row in light}
    network = [row for row in light if row["source_id"] in inside and row["target_id"] in inside]
    outward = [
        row for row in light if row["source_id"] not in inside or row["target_id"] not in inside
    ]
    network.sort(key=lambda row: (-row["weight"], row["id"]))
    outward.sort(key=lambda row: (-linked[row["id"]], -row["weight"], row["id"]))
    kept = network + outward[: RELATIONSHIPS_PER_ENTITY * len(chosen)]
    found = context.rows(snapshot, "relationships", [row["id"] for row in kept])
    ends = list(dict.fromkeys(end for row in found for end in (row["source_id"], row["target_id"])))
    titles = snapshot.by_key("entities", ends, "id", ["id", "title"])
    named = dict(zip(titles["id"].to_pylist(), titles["title"].to_pylist(), strict=True))
    return context.relationship_items(found, named, linked)


def _explained(
    snapshot: Snapshot,
    found: Retrieved,
    listed: Mapping[str, list[Item]],
    chosen: Sequence[Mapping[str, Any]],
    filters: Filters | None,
) -> dict[str, list[Item]]:
    """Every item with why it is there; sources have theirs already."""

    first = [row["id"] for row in filters.first] if filters else []
    scored = retrieval.entities(snapshot, found, ENTITIES * OVERSAMPLED) if found.terms else []
    said = of_entities(scored, first)
    entities = [
        explained(item, said.get(row["id"], "refilled after others were left out"))
        for item, row in zip(listed["Entities"], chosen, strict=True)
    ]
    relationships = [
        explained(
            item,
            f"outside, linked to {links} chosen entities" if links else "joins two chosen entities",
        )
        for item in listed["Relationships"]
        for links in [int(item.text.rpartition("|")[2])]
    ]
    reports = [
        explained(item, f"holds {item.score:g} of the chosen entities")
        for item in listed["Reports"]
    ]
    claims = [explained(item, "about a chosen entity") for item in listed["Claims"]]
    return {
        "Entities": entities,
        "Relationships": relationships,
        "Claims": claims,
        "Reports": reports,
    }


def _with_candidates(
    result: SearchResult,
    sections: Sequence[Section],
    budget: int,
    page: Callable[[tuple[int, ...]], str],
    before: str,
    snapshot: Snapshot,
    found: Retrieved,
    filters: Filters | None,
) -> SearchResult:
    """As `pack.compose`, with the list of what was considered, each marked as in the context or
    not.
    """
    most = min(max(budget // LISTED, 6), 20)
    entities = [f"e{row['n']}" for row in chosen_entities(snapshot, found, filters)][:most]
    window = [(one.id, one.score) for one in found.passages[:most]]
    sources = [item.id for item in context.passage_items(snapshot, window)[0]]
    wanted = [*entities, *sources] if budget > SMALL else []
    room = 23 * len(wanted) + 30 * bool(wanted)
    result = compose(result, sections, budget - room, page, intro=before)
    shown = {
        item.id for section in sections for item in section.items if _stands(item.id, result.text)
    }
    result.candidates = [{"id": id, "in_context": id in shown} for id in wanted]
    block = [
        ", ".join(id for id in wanted if (id in shown) is inside) or "none"
        for inside in (True, False)
    ]
    text = result.text
    if wanted:
        result.text = f"{text}\n\n## Candidates\nin context: {block[0]}\nnot in context: {block[1]}"
    if outgoing(result) > budget:
        result.text, result.candidates = text, []
    return finish(result, budget)


def _stands(id: str, text: str) -> bool:
    """Does the item with this id stand in the text, at the head of its line or behind the one that
    it was joined to?
    """
    return any(mark in text for mark in (f"\n{id}|", f"\n[{id}] ", f"\n- [{id}] ", f"] [{id}] "))


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(f"'{id}'" for id in ids)


def _model_keywords(
    asker: Asker, snapshot: Snapshot, query: str, seconds: float
) -> tuple[Meter, Sequence[str]]:
    """Keywords from a model, where the extractor finds no name in the question: then words alone
    would decide.
    """
    from graphrag_mcp.query.answer import Meter, keywords_of

    meter = Meter(asker)
    named = any(mention.strong for mention in extract(query[: retrieval.NAME_CHARACTERS]))
    return meter, () if named else keywords_of(asker, query, snapshot.folder, seconds)
