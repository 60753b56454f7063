"""Global search: what the corpus as a whole says about a question.

Without a model: a map of the topics where the question names none (topics.py), else the best sentence
of each document on it (survey.py), after what written reports say (reports.py). With a model: reports are
rated down the tree, read for points in batches (map), and the points joined to an answer (reduce)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Item, Section, finish, one_line
from graphrag_mcp.packing.citations import data, restored
from graphrag_mcp.packing.page import Page, compose, finished, page_of
from graphrag_mcp.query import answer as answers
from graphrag_mcp.query import (
    context,
    local,
    note_hits,
    note_sources,
    render,
    reports,
    sections,
    survey,
    topics,
)
from graphrag_mcp.query import model_replies as replies
from graphrag_mcp.query.answer import answer, asked, failed
from graphrag_mcp.query.asking import rest_of_overview, without_asking
from graphrag_mcp.query.context import late, note
from graphrag_mcp.query.filters import Part
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.model_replies import Point
from graphrag_mcp.query.notes import joined
from graphrag_mcp.query.reports import Rated, Row
from graphrag_mcp.query.request import AnswerOptions, Fields, Request
from graphrag_mcp.query.survey import Line
from graphrag_mcp.store.tables import Snapshot, notes_alone, values_of
from graphrag_mcp.text.terms import content_id, counted, lists_of
from graphrag_mcp.text.tokens import count_tokens, packed
from graphrag_mcp.types import SearchResult

DEFAULT_TOKENS = 6_000
THEMES = 8  # titles shown when no report is relevant
SEED = "reports"  # of the hash that orders the reports of batches
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
# at an explicit level; the reports nearest to the question go in
MOST_BATCHES, MOST_REPORTS = 20, 1_000
REPORT_CHARACTERS, ACCOUNT = 12_000, 30  # of one report; tokens of what stands before it
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant


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
    budget, note = request.budget(DEFAULT_TOKENS)
    result, corpora = local.begun(corpora, "global"), local.with_text(corpora)
    if not corpora:
        return finish(local.without_text(result), budget)
    query = request.query.strip()
    block, names = local.read_history(request.history, query, budget)
    looked_for = " ".join([query, *names])
    form = request.level, request.explain
    asked = f"global|{looked_for}|{form}|{[*request.filters, request.min_rating]}"
    parts = local.narrowed(corpora, request.filters, request.min_rating)
    offsets, page = local.paging(corpora, asked, request.cursor, 1)
    if offsets is None:
        return finish(local.stale(result), budget)
    result.hint = joined(note, *(_notes(part, request.level) for part in parts))
    first = not request.cursor.strip()

    def plain(result: SearchResult) -> SearchResult:
        result.text = block if first else ""
        return show(result, parts, looked_for, budget, request, offsets[0], page)

    if request.answer and len(corpora) > 1:
        result.hint = joined(result.hint, local.ONE_ANSWER)
    elif request.answer and query and first and parts[0][1].count("reports"):
        name, snapshot, _ = parts[0]
        options, asker = replace(request.options, history=block), (askers or {}).get(name)
        question = answers.Question(snapshot, query, asker, options, budget, page((0,)))
        return with_answer(result, request.level, question, plain)
    return plain(result)


def _of_all(parts: Sequence[Part], query: str) -> bool:
    """Does the question ask what the corpora are about, and not after a subject?"""
    return all(reports.asked_about(snapshot, query) is None for _, snapshot, _ in parts)


def _notes(part: Part, level: int) -> str:
    name, snapshot, kept = part
    deep = ""
    if level > 0:
        levels = values_of(snapshot.rows("reports", "", ["level"])["level"])
        if level > (deepest := max(levels, default=0)):
            deep = f"There is no level {level}; the deepest, {deepest}, was used."
    text = joined(kept.note if kept else "", late(snapshot), deep)
    return f"In {name}: {text[0].lower()}{text[1:]}" if name and text else text


def show(
    result: SearchResult,
    parts: Sequence[Part],
    query: str,
    budget: int,
    request: Request,
    offset: int,
    cursor: Callable[[Sequence[int]], str],
) -> SearchResult:
    """The result without a model: a map of the topics, or the sentences of the documents on the
    question. A question of which the first clause asks for the map gets both; so does one with any such
    clause, whose other words find nothing. The text that the result has already stands first."""
    found: list[Source | None] | None = None
    if query and not offset and any(note_sources.ids(snapshot) for _, snapshot, _ in parts):
        found = [local.asked(part, query, request.explain) for part in parts]
        asked = [source for source in found if source is not None]
        budget = note_hits.put(result, asked, budget, request.for_notes())
    if _of_all(parts, query):
        level = request.level
        result = topics.overview(result, parts, budget, level=level, offset=offset, cursor=cursor)
        return result if result.communities or offset else _nothing(result, parts, budget)
    if rest := rest_of_overview(query):
        level = request.level
        if not _worth(parts, rest, asking=False):
            nothing = f"Nothing was found on the rest of the question: {one_line(rest, 160)}"
            result.hint = joined(result.hint, nothing)
            return topics.overview(result, parts, budget, level=level, offset=offset, cursor=cursor)
        found, query = [local.asked(part, rest, request.explain) for part in parts], rest
        if not offset:  # the map in half of the room, then what there is on the rest
            result = topics.overview(result, parts, budget // 2, level=level, cursor=cursor)
            result.next_cursor = ""
    if found is None:
        found = [local.asked(part, query, request.explain) for part in parts]
    sources = [source for source in found if source is not None]
    worth, left = _worth(parts, query), without_asking(query)
    if not worth and left != query and not any(local.asked(part, left) for part in parts):
        return _nothing(result, parts, budget)
    page = page_of(result, budget)
    if not offset:
        for part in parts:
            result.communities += _add_reports(page, part, query, request.level)
    surveyed = survey.survey(sources, worth)
    lines = surveyed.lines[offset:]
    topic_of = _topics_of(parts, lines) if any(line.summary for line in lines) else None
    taken = offset + render.show_survey(page, surveyed, offset, topic_of=topic_of)
    rest, on_it = len(surveyed.lines) - taken, surveyed.lines[: surveyed.on_it]
    documents = len({(line.hit.corpus, line.hit.document) for line in on_it})
    others = len(surveyed.documents()) - documents + surveyed.others
    result.coverage |= {"documents": documents, "weaker": others}
    if not lines and not result.communities and not result.citations and not offset:
        return _nothing(result, parts, budget)
    if not rest and surveyed.others:
        page.add(f"{counted(surveyed.others, 'more documents')} with some of these words.")
    return finished(result, page, rest, taken, cursor)


def _topics_of(parts: Sequence[Part], lines: Sequence[Line]) -> Callable[[Line], str]:
    """`[c5] Title` of the topic of each line's document; "" where the index has none."""
    heads: dict[tuple[str, str], str] = {}
    for corpus, snapshot, _ in parts:
        ids = {line.hit.document for line in lines if line.hit.corpus == corpus}
        prefix = f"{corpus}/" if corpus else ""
        for id, (n, title) in topics.titles_of(snapshot, ids).items():
            heads[corpus, id] = f"[{prefix}c{n}] {title}"
    return lambda line: heads.get((line.hit.corpus, line.hit.document), "")


def _worth(parts: Sequence[Part], query: str, *, asking: bool = True) -> dict[str, float]:
    """The worth of the terms that are asked about (`reports.asked_about`)."""
    asked = (reports.asked_about(snapshot, query, asking=asking) or {} for _, snapshot, _ in parts)
    return {term: worth for terms in asked for term, worth in terms.items()}


def _add_reports(page: Page, part: Part, query: str, level: int) -> list[str]:
    """Add the points of reports that a model or an agent wrote, in half of the room at most: ids of
    their communities."""
    corpus, snapshot, kept = part
    written = reports.written(snapshot)
    if not written:
        return []
    chosen, _ = reports.select(snapshot, query, level)
    if kept is not None and kept.first:
        chosen = reports.included_first(snapshot, chosen, kept)
    chosen = [report for report in chosen if report.id in written]
    documents = kept.documents if kept is not None else None
    items, _ = reports.finding_items(snapshot, query, chosen, documents)
    least, found = page.room // 2, []
    for item in items:
        item = sections.of_corpus(corpus, item) if corpus else item
        if page.room - count_tokens(item.text) < least or not page.add(item.text, item.also):
            break
        found.append(item.id.partition(".")[0])
    return found


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
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


# ---- a search with an answer ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reports to read, counts on the way, and why ratings were missing ("" for none)."""

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
    answer: answers.Answered | None = None

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


def with_answer(
    result: SearchResult,
    level: int,
    question: answers.Question,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The result of a global search with the model's answer. If no model answers, the result that
    `plain` makes."""
    snapshot, query, asker = question.snapshot, question.query, question.asker
    options, budget, cursor = question.options, question.budget, question.cursor
    if asker is None or not asker.may_answer("reduce"):
        note(result, answers.NO_MODEL)
        return plain(result)
    meter = answers.Meter(asker)

    async def work() -> tuple[Chosen, Points]:
        chosen = await select_with_model(asker, snapshot, query, level)
        words = answers.word_limit(budget)
        return chosen, await read(asker, snapshot, query, chosen.reports, options, words)

    outcome = answers.waited(asker, work(), options.seconds)
    result.usage = meter.usage()
    if outcome is None:
        answers.unfinished(result)
        return plain(result)
    chosen, found = outcome
    result.coverage = chosen.coverage | found.counts()
    if chosen.unrated:
        unrated = f"{chosen.coverage['unrated']} reports got no rating from the model"
        note(result, f"{unrated} ({chosen.unrated}), so their words decided.")
    if not found.points:  # nothing relevant was found, or the model did not answer
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
    if found.answer is None or not found.answer.by:
        result.state = "failed"
        note(result, failed(found.answer.reason if found.answer else ""))
        items = []
        for place, point in enumerate(found.points, 1):
            description = one_line(restored(point.description, found.names).text, 1_500)
            items.append(Item(f"p{place}", f"- {description} (score {point.score:g})"))
        return compose(result, [Section("Points", items, 1.0)], budget)
    _, communities = reports.finding_items(snapshot, query, chosen.reports[: reports.READ])
    result.communities = communities[:20]
    note(result, found.failures())
    result = answers.answered(result, found.answer, budget, snapshot=snapshot, cursor=cursor)
    result.state = "partial" if found.failed or chosen.unrated else "answered"
    return result


# ---- which reports are read -------------------------------------------------------------------------------


async def select_with_model(asker: Asker, snapshot: Snapshot, query: str, level: int) -> Chosen:
    """The reports to read, and how many were rated, kept and pruned.

    level -1: from the roots down, as far as the model finds a report relevant. level n: that level
    and the childless reports above it, the lexically nearest first. A question about nothing in
    particular takes the weightiest."""
    if level >= 0:
        return Chosen(*await asyncio.to_thread(reports.whole_level, snapshot, query, level))
    if reports.asked_about(snapshot, query) is None:
        return Chosen(*await asyncio.to_thread(reports.select, snapshot, query, level))
    every = await asyncio.to_thread(reports.all_rated, snapshot, query)
    coverage = {"reports": len(every), "rated": 0, "kept": 0, "pruned": 0}
    children = lists_of(
        (report.parent if report.parent in every else "", report) for report in every.values()
    )
    kept, rated, missing = await _descend_with_model(asker, snapshot, query, children)
    kept.sort(
        key=lambda report: (
            -report.rating,
            -round(report.own, 6),
            -round(report.weight, 6),
            report.id,
        )
    )
    kept = kept[: reports.READ]
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
    while frontier and rated < reports.READ:
        left = reports.READ - rated
        below = any(children.get(report.id) for report in frontier)
        frontier.sort(key=reports.by_rating)
        taken = frontier[: max(1, left // 2) if below else left]
        ratings, reasons = await _ratings(asker, snapshot, query, taken)
        missing += reasons
        rated += len(taken)
        marked = map(lambda report, value: replace(report, rating=float(value)), taken, ratings)
        relevant = [report for report in marked if report.rating >= reports.THRESHOLD]
        for report in relevant:
            kept[report.id] = report
            kept.pop(report.parent, None)
        if not relevant and not kept and fallback < FALLBACKS:
            fallback += 1
            relevant = frontier
        frontier = [child for report in relevant for child in children.get(report.id, [])]
    return list(kept.values()), rated, missing


async def _ratings(
    asker: Asker, snapshot: Snapshot, query: str, chosen: Sequence[Rated]
) -> tuple[list[float], list[str]]:
    """A rating of 0 to 5 for each report, asked for at once; and why some are missing."""
    found = await asyncio.to_thread(snapshot.served, "reports", [report.id for report in chosen])
    rows = {row["id"]: row for row in found}
    prompt = prompts.load("rate", snapshot.folder)
    missing: list[str] = []

    async def rating(report: Rated) -> float:
        row = rows.get(report.id)
        if row is None:
            return 0.0  # damaged: nothing of it may be read
        lines = [one_line(row["title"], 200), row["summary"]]
        found = context.findings(row)
        lines += [f"- {one_line(str(finding.get('summary', '')), 160)}" for finding in found]
        headlines = answers.without_references("\n".join(lines))[:RATED_CHARACTERS]
        text = prompt.substitute(report=data(headlines), question=data(query))
        message, schema = (Message("user", text),), replies.RATING_SCHEMA
        reply = await asked(asker, Ask("rate", message, replies.read_rating, lambda: -1, schema))
        if reply.by:
            return float(reply.value)
        missing.append(reply.reason or "no reply")
        return report.rating

    return list(await asyncio.gather(*(rating(report) for report in chosen))), missing


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
    weight = {report.id: report.weight for report in chosen}
    rows = await asyncio.to_thread(snapshot.served, "reports", list(weight)[:MOST_REPORTS])
    lines = answers.fitting((_line(row) for row in rows), MOST_BATCHES * BATCH_TOKENS, ACCOUNT)
    rows = sorted(rows[: len(lines)], key=lambda row: (-round(weight[row["id"]], 6), row["id"]))
    number = {row["id"]: f"c{place}" for place, row in enumerate(rows, 1)}
    batches = _batches(rows)
    found = Points({number[row["id"]]: f"c{row['n']}" for row in rows}, len(rows), len(batches))
    asks = [_map_question(snapshot, query, batch, weight, options.history) for batch in batches]
    batch_replies = await asyncio.gather(*(asked(asker, ask) for ask in asks))
    for batch, reply in zip(batches, batch_replies, strict=True):
        if not reply.by:
            found.failed += 1
            found.reason = found.reason or reply.reason or "no reply"
        names = {f"c{place}": number[row["id"]] for place, row in enumerate(batch, 1)}
        for point in reply.value:
            if description := restored(point.description, names).text.strip():
                found.points.append(replace(point, description=description))
    found.points.sort(key=lambda point: -(point.score or 0.0))
    if found.points:
        scored = (f"- (score {point.score:g}) {point.description}" for point in found.points)
        points, folder = "\n".join(answers.fitting(scored, BATCH_TOKENS)), snapshot.folder
        asking = asker, query, points, found.names, options
        found.answer = await answer(*asking, words=words, prompt="reduce", folder=folder)
    return found


def _line(row: Row) -> str:
    return answers.report_line(row, REPORT_CHARACTERS)


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Shuffled by a hash, so that none is one corner of the tree; inside in the order of rows."""
    shuffled = sorted(rows, key=lambda row: content_id(SEED, row["id"]))
    batches = packed(shuffled, lambda row: count_tokens(_line(row)) + ACCOUNT, BATCH_TOKENS)
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
    return Ask("map", messages, replies.read_points, tuple, replies.POINTS_SCHEMA, if_cut="shown")
