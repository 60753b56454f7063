"""The answer of a model to a question on the corpus: reports rated down the tree, read for points,
joined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Item, Section, compose, one_line
from graphrag_mcp.packing.citations import data, restored
from graphrag_mcp.query import context
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
from graphrag_mcp.query.model_replies import (
    POINTS_SCHEMA,
    RATING_SCHEMA,
    Point,
    read_points,
    read_rating,
)
from graphrag_mcp.query.reports import (
    READ,
    THRESHOLD,
    Rated,
    Row,
    all_rated,
    asked_about,
    finding_items,
    select,
    whole_level,
)
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult, content_id

SEED = "reports"  # of the hash that orders the reports of batches
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
# at an explicit level; the reports nearest to the question go in
MOST_BATCHES, MOST_REPORTS = 20, 1_000
REPORT_CHARACTERS, ACCOUNT = 12_000, 30  # of one report; tokens of what stands before it
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant


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
        return compose(result, [section], budget, lambda _: "", first="Points")
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
    """Title, summary and the headlines of the findings, without references."""
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
