"""Local search: the passages that answer a question, with the entities, relationships and
reports around them, in one corpus or several.

Takes snapshots, a question and a budget; gives a `SearchResult` whose citations stand in the order
of the ranking. An empty question gives an overview. Without `answer` it asks no model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.protocols import LOCAL
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.page import finish, finished, page_of
from graphrag_mcp.query import hits, note_hits, rank, render
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.notes import absences, connected, joined, length_note
from graphrag_mcp.query.rank import Ranked, Ranking
from graphrag_mcp.query.render import DEFAULT_TOKENS, Limits
from graphrag_mcp.query.request import Fields, Request
from graphrag_mcp.query.survey import survey
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, query_terms, stop_word
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.filters import Filters, Part

Corpus = tuple[str, Snapshot]  # its name, "" where one alone is searched

FALL, LEAST_PASSAGES = 1 / 3, 3  # of the best score; passages that a model reads in any case
INCLUDED = 10  # passages that an `entity=` filter brings in beside the ranked ones
EMBED_SECONDS, LOAD_SECONDS = 5.0, 30.0  # for a question; a local model is loaded by the first one
IN_TIME = 75  # tokens of the room for each passage in order of time, so that all of them are seen
ONE_ANSWER = "An answer is made of one corpus: ask with that corpus alone."


def local_search(
    snapshot: Snapshot, query: str, *, asker: Asker | None = None, **fields: Unpack[Fields]
) -> SearchResult:
    """Cited passages for a question, and with `answer` what a model makes of them. `asker` embeds the
    question where it can, and is asked for no words without `answer`."""
    return search([("", snapshot)], Request(query, **fields), {"": asker} if asker else {})


def search(
    corpora: Sequence[Corpus], request: Request, askers: Mapping[str, Asker] | None = None
) -> SearchResult:
    """Local search in one corpus or in several. Scores of a corpus are relative to its best
    passage; among several corpora they are weighed by the share of the question that this
    passage contains."""
    return _Search(corpora, replace(request, query=request.query.strip()), askers or {}).result()


class _Search:
    """One local search: what is asked of which corpora, and where its page begins."""

    def __init__(
        self, corpora: Sequence[Corpus], request: Request, askers: Mapping[str, Asker]
    ) -> None:
        self.request, self.askers, self.began = request, askers, time.monotonic()
        self.budget, note = request.budget(DEFAULT_TOKENS)
        self.corpora = with_text(corpora)
        self.parts: list[Part] = []
        self.found = begun(corpora, "local")
        self.found.hint = note
        self.answers = request.answer and bool(request.query) and len(corpora) == 1
        form = request.form.breadth, request.form.sort
        asked = f"local|{request.query}|{form}"
        asked += f"|{[*request.filters, request.min_rating]}"
        self.offsets, self.page = paging(self.corpora, asked, request.cursor, 1)
        self.first = not request.cursor.strip()

    def result(self) -> SearchResult:
        if not self.corpora:
            return finish(without_text(self.found), self.budget)
        if self.offsets is None:
            return finish(stale(self.found), self.budget)
        request = self.request
        self.parts = narrowed(self.corpora, request.filters, request.min_rating)
        if not request.query and not any(kept and kept.first for _, _, kept in self.parts):
            from graphrag_mcp.query import topic_map

            self.found.mode = "overview"
            self.found.hint = joined(self.found.hint, topic_map.UNASKED)
            return topic_map.overview(self.found, self.parts, self.budget)
        sources, notes = found_in(self.parts, request, self.askers)
        useful = [source for source in sources if source.useful]
        self.found.hint = joined(self.found.hint, *notes)
        if request.answer and len(self.corpora) > 1:
            self.found.hint = joined(self.found.hint, ONE_ANSWER)
        if not useful:
            return self._not_found(sources)
        for kind in {kind for source in useful for kind in source.found.considered}:
            self.found.coverage[kind] = sum(
                source.found.considered.get(kind, 0) for source in useful
            )
        if empty := [source.corpus for source in sources if not source.useful]:
            self.found.hint = joined(self.found.hint, f"Nothing in {', '.join(empty)}.")
        if self.answers and self.first:
            self.found.hint = joined(self.found.hint, absences(useful)[0])
            return self._answered(useful[0])
        return self._shown(self.found, useful)

    def _shown(self, result: SearchResult, sources: Sequence[Source]) -> SearchResult:
        offset = (self.offsets or (0,))[0]
        return show(result, sources, self.budget, offset, self.page, self.request)

    def _answered(self, source: Source) -> SearchResult:
        """The result with a model's answer from the sections of a prompt; else what was found."""
        from graphrag_mcp.query import sections
        from graphrag_mcp.query.answer import READ_TOKENS, Question, with_answer

        request = self.request
        near = replace(source.found, passages=near_the_best(source.found.passages))
        on_topic = replace(source, found=near)
        budget = max(self.budget, READ_TOKENS)
        read = sections.sections_of(on_topic, budget)
        left = request.options.seconds
        if left:
            left = max(left - (time.monotonic() - self.began), 0.05)
        asker = self.askers.get(source.corpus)
        options = replace(request.options, seconds=left)
        asked = source.snapshot, request.query, asker, options
        question = Question(*asked, self.budget, self.page((0,)))
        plain = partial(self._shown, sources=[source])
        return with_answer(self.found, read, question, plain)

    def _not_found(self, sources: Sequence[Source]) -> SearchResult:
        """An honest nothing: what was searched, the nearest names, another tool."""
        from graphrag_mcp.query.entities import named_list

        result = self.found
        result.state, result.mode = "not_found", "local"
        result.coverage |= {"passages": 0}
        counters = [snapshot.manifest.counters for _, snapshot, _ in self.parts]
        kinds = ("passages", "entities")
        counts = [
            counted(sum(counter.get(kind, 0) for counter in counters), kind) for kind in kinds
        ]
        near = {} if len(counters) > 1 else self._near_names(sources[0])
        advice = "Try global_search for what the corpus is about."
        if near:
            advice = "Try a name from above with get_entity."
        if len(counters) > 1:
            result.text = f"Nothing on this was found in {len(counters)} corpora ({counts[0]})."
            advice = "Ask with other words, or one corpus alone for nearest names."
        elif filters := sources[0].filters:
            result.text, advice = filters.nothing()
        else:
            searched = f"{' and '.join(counts)} of corpus {result.corpus}"
            result.text = f"No word of this question occurs in the {searched}."
        if near:
            result.text += f"\nNearest names: {named_list(near.values())}."
        result.hint = joined(result.hint, advice)
        return finish(result, self.budget)

    def _near_names(self, source: Source) -> dict[str, dict[str, Any]]:
        """Entities with names like those of the question, or like its words; five at most."""
        from graphrag_mcp.query.spelling import nearest_names

        query = self.request.query
        words = [word.lower().strip("?!.,") for word in query[:200].split()]
        names = [mention.form for mention in source.found.names]
        phrases = dict.fromkeys(
            [*names, query[:100], *(word for word in words if not stop_word(word))]
        )
        near: dict[str, dict[str, Any]] = {}
        for name in [name for name in phrases if len(name) > 1][:6]:
            near |= {row["id"]: row for row in nearest_names(source.snapshot, name, 3)}
        return dict(islice(near.items(), 5))


# ---- what is shown -----------------------------------------------------------------------------


def show(
    result: SearchResult,
    sources: Sequence[Source],
    budget: int,
    offset: int,
    cursor: Callable[[tuple[int]], str],
    request: Request,
) -> SearchResult:
    """The result for one question, from the hit or line `offset` on, in the form that is asked for,
    after notes on the question."""
    form = request.form
    in_time = form.sort == "time"
    generous = not form.every and (budget > DEFAULT_TOKENS or in_time)  # not by the room of a note
    if not form.every:
        if not offset:
            budget = note_hits.put(result, sources, budget, request.for_notes())
        sources = hits.apart(sources)
    sentences = form.breadth == "sentences"
    if sentences and not offset:
        result.hint = joined(result.hint, absences(sources)[0])
    page = page_of(result, budget)
    if sentences:
        surveyed = survey(sources)
        taken = offset + render.show_survey(page, surveyed, offset, in_time)
        if not surveyed.lines and not result.citations:
            result.state = "not_found"
            page.add(
                "No sentence says something on this. Ask with breadth=passages, or in other words."
            )
        return finished(result, page, len(surveyed.lines) - taken, taken, cursor)
    ranked = hits.merged(sources)
    best = ranked[0][0] if ranked else 0.0
    floor = 0.0 if form.every else render.WEAK * best
    scored = ranked[offset : offset + max(20, budget // 50)]
    if in_time:
        scored = [triple for triple in scored if triple[0] >= floor][: max(page.room // IN_TIME, 1)]
    found = hits.of_ranked(sources, scored, openings=True)
    for hit in found if form.every else ():  # what stands in quotes may be in a menu
        if not any(literal.casefold() in hit.body.casefold() for literal in form.literals):
            hit.body = hit.raw
    if in_time and found:
        found.sort(key=hits.by_time)
        form = replace(form, window=max(page.room // len(found) - render.HEAD, render.PART))
    without = False
    if not offset:
        if not form.every:
            line, without = absences(sources, [passage for *_, passage in scored])
            if line not in result.hint:
                result.hint = joined(result.hint, line)
                page.room = max(page.room - count_tokens(line), render.PART)
        if text := connected(sources):
            page.add(text)
    full = 0 if without else None
    limits = Limits(full, floor=floor, generous=generous)
    taken = offset + render.show(page, found, hits.worth_of(sources), form, limits)
    rest = sum(score >= floor for score, _, _ in ranked[taken:])
    return finished(result, page, rest, taken, cursor)


# ---- corpora -----------------------------------------------------------------------------------


def begun(corpora: Sequence[Corpus], mode: str) -> SearchResult:
    names = [name or snapshot.manifest.corpus for name, snapshot in corpora]
    coverage = {"corpora": len(names)} if len(names) > 1 else {}
    return SearchResult(mode=mode, corpus=",".join(names), coverage=coverage)


def with_text(corpora: Iterable[Corpus]) -> list[Corpus]:
    """Those that hold any passage."""
    return [corpus for corpus in corpora if corpus[1].manifest.counters.get("passages", 0)]


def without_text(result: SearchResult) -> SearchResult:
    """The result where there is nothing to search in."""
    result.state, result.text = "not_found", "This corpus holds no text yet."
    result.hint = "Add documents with index_documents."
    result.next_call = 'index_documents(paths=["..."])'
    return result


def stale(result: SearchResult) -> SearchResult:
    """The result for a cursor of another generation or another question."""
    result.state, result.hint = "stale", "Search again without a cursor."
    result.text = "This cursor belongs to another question or to an earlier state of the index."
    return result


def paging(
    corpora: Sequence[Corpus], asked: str, cursor: str, count: int
) -> tuple[tuple[int, ...] | None, Callable[[Sequence[int]], str]]:
    """Where this page starts, None for a stale cursor; and how the cursor of the next page is
    written. It is tied to the question and to the generation of every corpus."""
    generations = [(name, snapshot.manifest.generation) for name, snapshot in corpora]
    generation, whole = sum(number for _, number in generations), f"{generations}|{asked}"
    write = partial(packing.write_cursor, generation, whole)
    return packing.read_cursor(cursor, generation, whole, count), write


def narrowed(
    corpora: Iterable[Corpus], filters: Sequence[str], min_rating: float = 0.0
) -> list[Part]:
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


def found_in(
    parts: Sequence[Part], request: Request, askers: Mapping[str, Asker]
) -> tuple[list[Source], list[str]]:
    """The findings of the question in each corpus, and sentences on how it was searched."""
    sources, notes = [], []
    for name, snapshot, kept in parts:
        asker = askers.get(name)
        vector, late = vector_of(asker, snapshot, request.query)
        found = find(snapshot, request.query, kept, vector, asker)
        sources.append(source_of(snapshot, found, name, kept))
        sentences = [kept.note if kept else "", length_note(request.query), late]
        notes += [
            f"In {name}: {sentence[0].lower()}{sentence[1:]}" if name else sentence
            for sentence in sentences
            if sentence
        ]
    return sources, notes


def find(
    snapshot: Snapshot,
    query: str,
    filters: Filters | None = None,
    vector: bytes | None = None,
    asker: Asker | None = None,
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
        )
    if filters is not None:
        found = replace(found, considered={**found.considered, "filtered": len(found.passages)})
    if filters is not None and filters.first:
        passages = filters.including(found.passages, INCLUDED if query else None)
        found = replace(found, passages=passages)
    return found


def asked(part: Part, query: str) -> Source | None:
    """The findings of a search in one corpus; None if the corpus says nothing on the question."""
    corpus, snapshot, kept = part
    found = find(snapshot, query, filters=kept)
    if not found.passages:
        return None
    return source_of(snapshot, found, corpus, kept)


def near_the_best(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Without the passages behind a fall of relevance: what a model reads should be on topic."""
    least = FALL * ranked[0].score
    return [
        passage for n, passage in enumerate(ranked) if n < LEAST_PASSAGES or passage.score >= least
    ]


def source_of(
    snapshot: Snapshot, found: Ranking, corpus: str = "", filters: Filters | None = None
) -> Source:
    """The findings of a corpus, ready to be shown. Among several corpora the score of its best
    passage is 0.5, plus up to 0.5 by the share of the question that this passage contains."""
    source = Source(snapshot, found, corpus, filters)
    if corpus and found.passages and (terms := set(query_terms(found.query))):
        matched = terms.intersection(found.passages[0].terms.split())
        source.factor = 0.5 + 0.5 * len(matched) / len(terms)
    return source


OTHER_MODEL = (
    "The vectors of this index were made with {}, not with {}, so the words of the question alone"
    " decided; index again, or set embedding_model to the former."
)

NOT_EMBEDDED = "The question could not be embedded, so its words alone decided: {}."


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
