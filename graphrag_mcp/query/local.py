"""Local search: the passages that answer a question, with the entities, relationships and
reports around them, in one corpus or several.

Takes snapshots, a question and a budget; gives a `SearchResult` whose citations stand in the order
of the ranking. An empty question gives an overview. Without `answer` it asks no model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.protocols import LOCAL
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.page import Page, finish, finished, page_of
from graphrag_mcp.query import answer, hits, note_hits, rank, render, spelling, topicality
from graphrag_mcp.query.entities import named_list
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.notes import absences, connected, joined, length_note
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.query.render import DEFAULT_TOKENS, Limits
from graphrag_mcp.query.request import Fields, Request
from graphrag_mcp.query.sections import sections_of
from graphrag_mcp.query.survey import survey
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, query_terms, stop_word
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.filters import Filters, Part

Corpus = tuple[str, Snapshot]  # its name, "" where one alone is searched
Cursor = Callable[[Sequence[int]], str]
Row = dict[str, Any]

FALL, LEAST_PASSAGES = 1 / 3, 3  # of the best score; passages that a model reads in any case
INCLUDED = 10  # passages that an `entity=` filter brings in beside the ranked ones
EMBED_SECONDS, LOAD_SECONDS = 5.0, 30.0  # for a question; a local model is loaded by the first one
IN_TIME = 75  # tokens of the room for each passage in order of time, so that all of them are seen
NEAR = 5  # names that are told where nothing was found
ONE_ANSWER = "An answer is made of one corpus: ask with that corpus alone."
UNSAID = "No sentence says something on this. Ask with breadth=passages, or in other words."
STALE = "This cursor belongs to another question or to an earlier state of the index."
OTHER_MODEL = (
    "The vectors of this index were made with {}, not with {}, so the words of the question alone"
    " decided; index again, or set embedding_model to the former."
)
NOT_EMBEDDED = "The question could not be embedded, so its words alone decided: {}."


def local_search(
    snapshot: Snapshot, query: str, *, asker: Asker | None = None, **fields: Unpack[Fields]
) -> SearchResult:
    """Cited passages for a question, and with `answer` what a model makes of them. `asker` embeds the
    question where it can, and is asked for no words without `answer`."""
    return search([("", snapshot)], Request(query, **fields), {"": asker} if asker else {})


def search(corpora: Sequence[Corpus], request: Request, askers: Mapping[str, Asker] | None = None) -> SearchResult:
    """Local search in one corpus or in several. Scores of a corpus are relative to its best
    passage; among several corpora they are weighed by the share of the question that this
    passage contains."""
    left = answer.deadline(request.options.seconds)
    request = replace(request, query=request.query.strip())
    form = request.form.breadth, request.form.sort
    asked = f"local|{request.query}|{form}|{[*request.filters, request.min_rating]}"
    begun = begin(corpora, request, asked, DEFAULT_TOKENS)
    result, budget, parts, cursor = begun.result, begun.budget, begun.parts, begun.cursor
    if begun.over:
        return result
    if not request.query and not any(kept and kept.first for _, _, kept in parts):
        from graphrag_mcp.query import topic_map

        result.mode = "overview"
        result.hint = joined(result.hint, topic_map.UNASKED)
        return topic_map.overview(result, parts, page_of(result, budget))
    sources, notes = found_in(parts, request, askers or {})
    useful = [source for source in sources if source.useful]
    several = ONE_ANSWER if request.answer and len(corpora) > 1 else ""
    result.hint = joined(result.hint, *notes, several)
    if not useful:
        return _not_found(result, sources, budget)
    for source in useful:
        for kind, number in source.found.considered.items():
            result.coverage[kind] = result.coverage.get(kind, 0) + number
    if empty := [source.corpus for source in sources if not source.useful]:
        result.hint = joined(result.hint, f"Nothing in {', '.join(empty)}.")

    def plain(result: SearchResult) -> SearchResult:
        return show(result, useful, budget, begun.offset, cursor, request)

    asks = request.answer and request.query and not request.cursor.strip()
    if not asks or len(corpora) > 1:
        return plain(result)
    result.hint = joined(result.hint, absences(useful)[0])
    (source,) = useful
    found = source.found.passages  # what a model reads should be on topic: without those behind a fall of relevance
    near = [
        passage for at, passage in enumerate(found) if at < LEAST_PASSAGES or passage.score >= FALL * found[0].score
    ]
    source = replace(source, found=replace(source.found, passages=near))
    read = sections_of(source, max(budget, answer.READ_TOKENS))
    options = replace(request.options, seconds=left())
    asker = (askers or {}).get(source.corpus)
    question = answer.Question(source.snapshot, request.query, asker, options, budget, cursor((0,)))
    return answer.with_answer(result, read, question, plain)


def _not_found(result: SearchResult, sources: Sequence[Source], budget: int) -> SearchResult:
    """An honest nothing: what was searched, the nearest names, another tool."""
    result.state = "not_found"
    result.coverage |= {"passages": 0}
    counters = [source.snapshot.manifest.counters for source in sources]
    passages = counted(sum(counter.get("passages", 0) for counter in counters), "passages")
    advice = "Try global_search for what the corpus is about."
    if len(sources) > 1:
        result.text = f"Nothing on this was found in {len(sources)} corpora ({passages})."
        advice = "Ask with other words, or one corpus alone for nearest names."
    elif sources[0].filters:
        result.text, advice = sources[0].filters.nothing()
    else:
        entities = counted(counters[0].get("entities", 0), "entities")
        searched = f"{passages} and {entities} of corpus {result.corpus}"
        result.text = f"No word of this question occurs in the {searched}."
    if len(sources) == 1:
        found = sources[0].found
        words = [word.lower().strip("?!.,") for word in found.question.text[:200].split()]
        names = [mention.form for mention in found.names]
        names += [word for word in words if len(word) > 1 and not stop_word(word)]
        near: dict[str, Row] = {}
        for name in islice(dict.fromkeys(names), NEAR):
            near |= {row["id"]: row for row in spelling.nearest_names(sources[0].snapshot, name, 3)}
        if near:
            result.text += f"\nNearest names: {named_list(islice(near.values(), NEAR))}."
            advice = "Try a name from above with get_entity."
    result.hint = joined(result.hint, advice)
    return finish(result, budget)


# ---- what is shown -----------------------------------------------------------------------------


def show(
    result: SearchResult, sources: Sequence[Source], budget: int, offset: int, cursor: Cursor, request: Request
) -> SearchResult:
    """The result for one question, from the hit or line `offset` on, in the form that is asked for,
    after notes on the question."""
    form = request.form
    if form.breadth == "sentences" and not offset:
        result.hint = joined(result.hint, absences(sources)[0])
    page = page_of(result, budget)
    if not offset:
        result.beside = note_hits.add(page, sources, request.for_notes())
    if form.breadth == "passages":
        generous = not form.every and (budget > DEFAULT_TOKENS or form.sort == "time")
        return _show_passages(result, page, sources, offset, cursor, form, generous)
    surveyed = survey(sources)
    taken = offset + render.show_survey(page, surveyed, offset, form.sort == "time")
    if not surveyed.lines and not page.citations:
        result.state = "not_found"
        page.add(UNSAID)
    return finished(result, page, len(surveyed.lines) - taken, taken, cursor)


def _show_passages(
    result: SearchResult,
    page: Page,
    sources: Sequence[Source],
    offset: int,
    cursor: Cursor,
    form: render.Form,
    generous: bool,
) -> SearchResult:
    """The best passages in full, and weaker ones as lines. `generous`: weaker ones in full as well."""
    ranked = hits.merged(sources)
    floor = render.WEAK * ranked[0][0] if ranked and not form.every else 0.0
    scored = ranked[offset : offset + max(25, page.room // 40)]
    if form.sort == "time":
        scored = [triple for triple in scored if triple[0] >= floor]
        scored = scored[: max(page.room // IN_TIME, 1)]
    found = hits.of_ranked(sources, scored, openings=True)
    for hit in found if form.every else ():  # what stands in quotes may be in a menu
        if not any(literal.casefold() in hit.body.casefold() for literal in form.literals):
            hit.body = hit.raw
    if form.sort == "time" and found:
        found.sort(key=hits.by_time)
        form = replace(form, window=max(page.room // len(found) - render.HEAD, render.PART))
    without = False  # do these passages lack all names of the question?
    if not offset and not form.every:
        line, without = absences(sources, [passage for *_, passage in scored])
        if line not in result.hint:
            result.hint = joined(result.hint, line)
            page.room = max(page.room - count_tokens(line), render.PART)
    if not offset and (text := connected(sources)):
        page.add(text)
    limits = Limits(0 if without else None, floor=floor, generous=generous)
    taken = offset + render.show(page, found, hits.worth_of(sources), form, limits)
    rest = sum(score >= floor for score, _, _ in ranked[taken:])
    return finished(result, page, rest, taken, cursor)


# ---- corpora -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """A search that has begun: its result, still empty, its budget, the corpora that hold text with their filters,
    where its page begins, and how the cursor of the next one is written. `over`: there is nothing to search or
    to go on with, and the result says so."""

    result: SearchResult
    budget: int
    parts: Sequence[Part]
    offset: int
    cursor: Cursor
    over: bool = False


def begin(corpora: Sequence[Corpus], request: Request, asked: str, default: int) -> Begun:
    """Begin a search. `asked`: its mode and all that its pages depend on, behind lines; `default`: its budget where
    none is given."""
    budget, note = request.budget(default)
    names = [name or snapshot.manifest.corpus for name, snapshot in corpora]
    result = SearchResult(mode=asked.partition("|")[0], corpus=",".join(names), hint=note)
    result.coverage = {"corpora": len(names)} if len(names) > 1 else {}
    searched = [corpus for corpus in corpora if corpus[1].manifest.counters.get("passages", 0)]
    offsets, cursor = paging(searched, asked, request.cursor, 1)
    if searched and offsets is not None:
        parts = narrowed(searched, request.filters, request.min_rating)
        return Begun(result, budget, parts, offsets[0], cursor)
    if not searched:
        result.state, result.text = "not_found", "This corpus holds no text yet."
        result.hint = "Add documents with index_documents."
        result.next_call = 'index_documents(paths=["..."])'
    else:
        result.state, result.hint = "stale", "Search again without a cursor."
        result.text = STALE
    return Begun(finish(result, budget), budget, (), 0, cursor, over=True)


def paging(corpora: Sequence[Corpus], asked: str, cursor: str, count: int) -> tuple[tuple[int, ...] | None, Cursor]:
    """Where this page starts, None for a stale cursor; and how the cursor of the next page is
    written. It is tied to the question and to the generation of every corpus."""
    generations = [(name, snapshot.manifest.generation) for name, snapshot in corpora]
    generation, whole = sum(number for _, number in generations), f"{generations}|{asked}"
    write = partial(packing.write_cursor, generation, whole)
    return packing.read_cursor(cursor, generation, whole, count), write


def narrowed(corpora: Iterable[Corpus], filters: Sequence[str], min_rating: float = 0.0) -> list[Part]:
    """The corpora with their filters, without those that know no such field, unless none does."""
    if not filters and min_rating <= 0:
        return [(name, snapshot, None) for name, snapshot in corpora]
    from graphrag_mcp.query.filters import Narrowed, read

    parts: list[Part] = []
    refused: BadInput | None = None
    for name, snapshot in corpora:
        try:
            kept = read(snapshot, filters, min_rating)
        except BadInput as error:
            refused = refused or error
            continue
        parts.append((name, Narrowed(kept) if kept else snapshot, kept))
    if refused and not parts:
        raise refused
    return parts


# ---- finding -----------------------------------------------------------------------------------


def found_in(parts: Sequence[Part], request: Request, askers: Mapping[str, Asker]) -> tuple[list[Source], list[str]]:
    """The findings of the question in each corpus, and sentences on how it was searched."""
    sources, notes = [], [length_note(request.query)]
    for name, snapshot, kept in parts:
        asker = askers.get(name)
        vector, late = vector_of(asker, snapshot, request.query)
        found = find(snapshot, request.query, kept, vector, asker)
        sources.append(_source(snapshot, found, name, kept))
        for message in filter(None, (kept.note if kept else "", late)):
            notes.append(f"In {name}: {message[0].lower()}{message[1:]}" if name else message)
    return sources, notes


def find(
    snapshot: Snapshot,
    query: str,
    filters: Filters | None = None,
    vector: bytes | None = None,
    asker: Asker | None = None,
    weigh: rank.Weigh | None = None,
) -> Ranking:
    """Passages best first, of those that pass the filters."""
    found = Ranking()
    if query:
        found = rank.retrieve(
            snapshot,
            query,
            vector=vector,
            rerank=asker.rerank if asker is not None and asker.reranks else None,
            keep=filters.rows if filters is not None else None,
            weigh=weigh,
        )
    if filters is not None:
        found = replace(found, considered={**found.considered, "filtered": len(found.passages)})
        if filters.first:
            passages = filters.including(found.passages, INCLUDED if query else None)
            found = replace(found, passages=passages)
    return found


def asked(part: Part, query: str) -> Source | None:
    """The documents of one corpus on a subject, by the terms that tell of topics; None if it says nothing on it."""
    corpus, snapshot, kept = part
    found = find(snapshot, query, filters=kept, weigh=topicality.weighed)
    return _source(snapshot, found, corpus, kept) if found.passages else None


def _source(snapshot: Snapshot, found: Ranking, corpus: str, filters: Filters | None) -> Source:
    """The findings of a corpus, ready to be shown. Among several corpora the score of its best
    passage is 0.5, plus up to 0.5 by the share of the question that this passage contains."""
    notes = hits.notes_apart(snapshot, found.passages, filters)
    source = Source(snapshot, found, corpus, filters, notes=notes)
    if corpus and found.passages and (terms := set(query_terms(found.question.text))):
        matched = terms.intersection(found.passages[0].terms.split())
        source.factor = 0.5 + 0.5 * len(matched) / len(terms)
    return source


def vector_of(asker: Asker | None, snapshot: Snapshot, query: str) -> tuple[bytes | None, str]:
    """The question's vector, where this index has vectors; and why not when that failed."""
    model = asker.embedding_model if asker is not None else ""
    if asker is None or not model or not query or not snapshot.count("passages_vectors"):
        return None, ""
    made_with = str(snapshot.manifest.parameters.get("embedding", ""))
    if made_with and made_with != model:  # cosines between two models mean nothing
        return None, OTHER_MODEL.format(made_with, model)
    future = asker.start(asker.embed([query[:8_000]], query=True))
    patience = LOAD_SECONDS if model.startswith(LOCAL) else EMBED_SECONDS
    vector, why = None, ""
    try:
        (vector,) = future.result(patience)
        why = asker.why_no_vectors
    except TimeoutError:
        why = f"{model} gave no vector within {patience:g} seconds"
    except Exception as error:  # a model that fails in any way must not cost the search
        why = str(error) or type(error).__name__
    return vector, "" if vector else NOT_EMBEDDED.format(why.rstrip(". "))
