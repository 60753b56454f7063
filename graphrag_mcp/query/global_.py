"""Global search: what the corpus as a whole says about a question.

Without a model: a map of the topics where the question names none (topic_map.py), else a line for
each document on it (survey.py), after what written reports say (reports.py). With a model: an answer from
the reports nearest to the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing.page import Page, finish, finished, page_of
from graphrag_mcp.query import answer as answers
from graphrag_mcp.query import local, note_hits, note_sources, render, reports, survey, topic_map, topics
from graphrag_mcp.query.context import late, of_corpus
from graphrag_mcp.query.filters import Part
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.notes import joined, not_there
from graphrag_mcp.query.overview import asked
from graphrag_mcp.query.request import Fields, Request
from graphrag_mcp.store.tables import Snapshot, notes_alone, values_of
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

DEFAULT_TOKENS = 6_000
THEMES = 8  # titles shown when no report is relevant


def global_search(
    snapshot: Snapshot, query: str, *, asker: Asker | None = None, **fields: Unpack[Fields]
) -> SearchResult:
    """What the documents say on a question, and with `answer` what a model makes of the reports."""
    return search([("", snapshot)], Request(query, **fields), {"": asker} if asker else {})


def search(
    corpora: Sequence[local.Corpus], request: Request, askers: Mapping[str, Asker] | None = None
) -> SearchResult:
    """Global search in one corpus or in several: `request` against `corpora`, with the models of
    `askers` by corpus."""
    request = replace(request, query=request.query.strip())
    asked = f"global|{request.query}|{request.level}|{[*request.filters, request.min_rating]}"
    begun = local.begin(corpora, request, asked, DEFAULT_TOKENS)
    result, budget, parts, cursor = begun.result, begun.budget, begun.parts, begun.cursor
    if begun.over:
        return result
    result.hint = joined(result.hint, *(_notes(part, request.level) for part in parts))

    def plain(result: SearchResult) -> SearchResult:
        result.communities = []
        return show(result, parts, budget, request, begun.offset, cursor)

    if not request.answer or len(parts) > 1:
        result.hint = joined(result.hint, local.ONE_ANSWER if request.answer else "")
        return plain(result)
    name, snapshot, _ = parts[0]
    if not request.query or request.cursor.strip() or not snapshot.count("reports"):
        return plain(result)
    section = answers.reports_section(snapshot, request.query, request.level)
    result.communities = [item.id for item in section.items]
    asker, first = (askers or {}).get(name), cursor((0,))
    asking = snapshot, request.query, asker, request.options, budget, first, answers.REPORTS_TOKENS
    return answers.with_answer(result, [section], answers.Question(*asking), plain)


def _notes(part: Part, level: int) -> str:
    """What is said of one corpus: of its filters, its reports, and a level that it does not have."""
    name, snapshot, kept = part
    deep = ""
    if level > 0:
        levels = values_of(snapshot.rows("reports", "", ["level"])["level"])
        if level > (deepest := max(levels, default=0)):
            deep = f"There is no level {level}; the deepest, {deepest}, was used."
    text = joined(kept.note if kept else "", late(snapshot), deep)
    return f"In {name}: {text[0].lower()}{text[1:]}" if name and text else text


def show(
    result: SearchResult, parts: Sequence[Part], budget: int, request: Request, offset: int, cursor: local.Cursor
) -> SearchResult:
    """The result without a model: a map of the topics where the question asks what the corpora are about, else the
    sentences of the documents on it."""
    about = [asked(snapshot, request.query) for _, snapshot, _ in parts]
    whole, sources = not any(each.worth for each in about), list[Source]()
    noted = not offset and any(note_sources.ids(snapshot) for _, snapshot, _ in parts)
    if request.query and (noted or not whole):
        found = (local.asked(part, request.query) for part in parts)
        sources = [source for source in found if source is not None]
    page = page_of(result, budget)
    if noted:
        result.beside = note_hits.add(page, sources, request.for_notes())
    if not whole:
        worth = {term: value for each in about for term, value in each.worth.items()}
        surveyed = survey.survey(sources, worth, beginnings=True)
        return _said(result, page, parts, budget, request, offset, cursor, surveyed)
    if absent := list(dict.fromkeys(word for each in about for word in each.absent)):
        told = not_there([snapshot for _, snapshot, _ in parts], absent)
        result.hint = joined(result.hint, told)
        named = any(word[0].isupper() and not request.query.startswith(word) for word in absent)
        if named or not any(each.wide for each in about):
            return _nothing(result, parts, budget)
    result = topic_map.overview(result, parts, page, level=request.level, offset=offset, cursor=cursor)
    if result.communities:
        return result
    if any(topics.of_level(snapshot, request.level, kept) for _, snapshot, kept in parts):
        of = f" of {len(parts)} corpora" if len(parts) > 1 else ""
        more = f"The topics{of} need more than max_tokens={budget}."
        result.text = joined(result.text, more)
        return result
    return _nothing(result, parts, budget)


def _said(
    result: SearchResult,
    page: Page,
    parts: Sequence[Part],
    budget: int,
    request: Request,
    offset: int,
    cursor: local.Cursor,
    surveyed: survey.Survey,
) -> SearchResult:
    """What written reports say on the question, then the sentences of the documents."""
    for part in parts if not offset else ():
        result.communities += _add_reports(page, part, request.query, request.level)
    taken = offset + render.show_survey(page, surveyed, offset, told=True)
    rest, on_it = len(surveyed.lines) - taken, surveyed.lines[: surveyed.on_it]
    documents = len({(line.hit.corpus, line.hit.document) for line in on_it})
    others = len(surveyed.documents()) - documents + surveyed.others
    result.coverage |= {"documents": documents, "weaker": others}
    if not (surveyed.lines or result.communities or page.citations or offset):
        return _nothing(result, parts, budget)
    if not rest and surveyed.others:
        page.add(f"{counted(surveyed.others, 'more documents')} with some of these words.")
    return finished(result, page, rest, taken, cursor)


def _add_reports(page: Page, part: Part, query: str, level: int) -> list[str]:
    """Add the points of reports that a model or an agent wrote, in half of the room at most: ids of
    their communities."""
    corpus, snapshot, kept = part
    written = reports.written(snapshot)
    if not written:
        return []
    chosen = [each for each in reports.select(snapshot, query, level) if each.id in written]
    documents = kept.documents if kept is not None else None
    least, found = page.room // 2, []
    for item in reports.finding_items(snapshot, query, chosen, documents):
        item = of_corpus(corpus, item) if corpus else item
        if page.room - count_tokens(item.text) < least or not page.add(item.text, item.also):
            break
        found.append(item.id.partition(".")[0])
    return found


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
    """An honest nothing: how many documents were looked at, and the largest topics."""
    result.state = "not_found"
    corpora, listed = [], []
    for name, snapshot, kept in parts:
        total = snapshot.manifest.counters.get("documents", 0)
        passed = total if kept is None or kept.documents is None else len(kept.documents)
        among = f", of which {passed} pass the filters" if passed != total else ""
        corpus = name or snapshot.manifest.corpus
        corpora.append(f"corpus {corpus} ({counted(total, 'documents')}{among})")
        prefix = f"{name}/" if name else ""
        for topic, _ in topics.largest(snapshot, THEMES, kept):
            listed.append((f"{prefix}c{topic.n}", topic.title))
    result.text = f"Nothing on this was found in {' or '.join(corpora)}."
    result.communities = [id for id, _ in listed]
    advice = "Ask again with other filters, or without."
    if alone := joined(*(notes_alone(snapshot) for _, snapshot, _ in parts)):
        advice, result.next_call = alone, "list_documents()"
    if listed:
        lines = [f"- [{id}] {title}" for id, title in listed]
        result.text = "\n".join([result.text, "The largest topics are:", *lines])
        advice = "Ask with names or words from these titles, or use local_search."
    result.hint = joined(result.hint, advice)
    return finish(result, budget)
