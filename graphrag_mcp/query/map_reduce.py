"""Global search with a model: reports rated down the tree, read in batches for points, the points joined to an answer.

Takes a snapshot, a question and an asker; gives the `SearchResult` of a global search with its answer. Cheap where it
can be: a question that names nothing rates nothing, ratings stop at 40, a batch holds as much as a model reads well.
Reports are numbered inside each prompt in the order of their weight, never by stored ids. Shows no point itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphrag_mcp import prompts
from graphrag_mcp.ask import Ask, Asker
from graphrag_mcp.pack import Item, Section, compose, finish, one_line
from graphrag_mcp.query import context, global_
from graphrag_mcp.query.answer import (
    NO_MODEL,
    Answered,
    Meter,
    Wish,
    answer,
    answered,
    asked,
    failed,
    note,
    unfinished,
    waited,
    word_limit,
)
from graphrag_mcp.query.global_ import READ, THRESHOLD, Rated, Row
from graphrag_mcp.query.numbering import Checked, data, restored
from graphrag_mcp.query.replies import POINTS_SCHEMA, RATING_SCHEMA, Point, read_points, read_rating
from graphrag_mcp.seams import Message
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import count_tokens
from graphrag_mcp.types import SearchResult, content_id

SEED = "reports"  # the order in which reports meet in batches comes from a hash of this and their ids
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
MOST_BATCHES, MOST_REPORTS = 20, 1_000  # at an explicit level; the reports nearest to the question go in
REPORT_CHARACTERS = 12_000  # of one report
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant
_OWN_REFERENCES = re.compile(r"(?<!\s)\s*\[Data: [^\[\]\n]*\]")


@dataclass(slots=True)
class Read:
    """What came of reading: `points` with references to `names` (number -> alias), best first; how batches fared."""

    points: list[Point]
    names: dict[str, str]
    reports: int = 0
    batches: int = 0
    failed: int = 0
    reason: str = ""
    reduced: Answered | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reports to read, what was counted on the way to them, and why ratings were missing ("" when none was)."""

    reports: list[Rated]
    coverage: dict[str, int]
    unrated: str = ""


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    snapshot: Snapshot, query: str, level: int, result: SearchResult, kept: Sequence[Rated], budget: int,
    page: Callable[[tuple[int, ...]], str], asker: Asker | None, wish: Wish,
) -> SearchResult:  # fmt: skip
    """The result of a global search with its answer. `kept`: what the search without a model would show."""
    if asker is None or not asker.may_answer("reduce"):
        note(result, NO_MODEL)
        return _shown(snapshot, query, level, result, kept, budget, page)
    meter = Meter(asker)

    async def work() -> tuple[Chosen, Read]:
        chosen = await select(asker, snapshot, query, level)
        return chosen, await read(asker, snapshot, query, chosen.reports, wish, word_limit(budget))

    given = waited(asker, work(), wish.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return _shown(snapshot, query, level, result, kept, budget, page)
    (selected, outcome), chosen = given, given[0].reports
    result.coverage = selected.coverage | {
        "read": outcome.reports, "batches": outcome.batches, "batches_answered": outcome.batches - outcome.failed,
        "batches_failed": outcome.failed, "points": len(outcome.points),
    }  # fmt: skip
    if selected.unrated:
        note(result, f"{selected.coverage['unrated']} reports got no rating from the model ({selected.unrated}), "
                     "so their words decided.")  # fmt: skip
    if not outcome.points:
        return _without_points(snapshot, query, level, result, selected, outcome, budget, page)
    reduced = outcome.reduced
    if reduced is None or not reduced.by:
        result.state = "failed"
        note(result, failed(reduced.reason if reduced else ""))
        return compose(result, [Section("Points", point_items(outcome), 1.0)], budget, lambda _: "", first="Points")
    items, result.communities = _points(snapshot, query, chosen)
    section = Section("Points", items, 1.0)
    partly = f"{outcome.failed} of {outcome.batches} batches of reports gave no answer ({outcome.reason})."
    if outcome.failed:
        note(result, partly)
    result = answered(result, reduced, [section], budget, page, snapshot=snapshot, shown=items, first="Points")
    result.state = "partial" if outcome.failed or selected.unrated else "answered"
    return result


def _without_points(
    snapshot: Snapshot, query: str, level: int, result: SearchResult, selected: Chosen, outcome: Read, budget: int,
    page: Callable[[tuple[int, ...]], str],
) -> SearchResult:  # fmt: skip
    """Nothing relevant was said, or nobody said anything: two different things."""
    chosen = selected.reports
    if selected.unrated and not chosen:
        note(result, failed(selected.unrated))
        result.state = "failed"
        return _shown(snapshot, query, level, result, chosen, budget, page)
    if not outcome.failed:
        result.method = ""
        said = f"{outcome.reports} reports were read and none says anything on it." if outcome.reports else ""
        note(result, said)
        return finish(global_.nothing_said(snapshot, result, level), budget)
    if outcome.failed == outcome.batches:
        note(result, failed(outcome.reason))
        result = _shown(snapshot, query, level, result, chosen, budget, page)
        result.state = "failed"
        return result
    result = _shown(snapshot, query, level, result, chosen, budget, page)
    result.state = "partial"
    note(result, f"{outcome.failed} of {outcome.batches} batches of reports gave no answer ({outcome.reason}).")
    return finish(result, budget)


def _shown(
    snapshot: Snapshot, query: str, level: int, result: SearchResult, kept: Sequence[Rated], budget: int,
    page: Callable[[tuple[int, ...]], str],
) -> SearchResult:  # fmt: skip
    """The reports' own findings, no model's."""
    if not kept:
        before = result.state
        result = global_.nothing_said(snapshot, result, level)
        result.state = before if before in ("partial", "failed") else result.state
        return finish(result, budget)
    items, result.communities = _points(snapshot, query, kept)
    return finish(compose(result, [Section("Points", items, 1.0)], budget, page, first="Points"), budget)


def _points(snapshot: Snapshot, query: str, kept: Sequence[Rated]) -> tuple[list[Item], list[str]]:
    items, communities = global_.points(snapshot, query, kept[:READ], False)
    return items, communities[:20]


# ---- which reports -------------------------------------------------------------------------------


async def select(asker: Asker, snapshot: Snapshot, query: str, level: int) -> Chosen:
    """The reports to read, and how many were rated, kept and pruned.

    level -1: from the roots down, as far as the model finds a report relevant. level n: that level and the childless
    reports above it, the lexically nearest first. A question about nothing in particular takes the weightiest.
    """
    if level >= 0:
        return Chosen(*await asyncio.to_thread(global_.whole_level, snapshot, query, level))
    if global_.asked_about(snapshot, query) is None:
        return Chosen(*await asyncio.to_thread(global_.select, snapshot, query, level))
    every = await asyncio.to_thread(global_.all_rated, snapshot, query)
    coverage = {"reports": len(every), "rated": 0, "kept": 0, "pruned": 0}
    children: dict[str, list[Rated]] = {}
    for one in every.values():
        children.setdefault(one.parent if one.parent in every else "", []).append(one)
    kept, rated, missing = await _descend(asker, snapshot, query, children)
    kept.sort(key=lambda one: (-one.rating, -round(one.own, 6), -round(one.weight, 6), one.id))
    kept = kept[:READ]
    coverage.update(rated=rated, kept=len(kept), pruned=rated - len(kept))
    if missing:
        coverage["unrated"] = len(missing)
    return Chosen(kept, coverage, missing[0] if missing else "")


async def _descend(
    asker: Asker, snapshot: Snapshot, query: str, children: dict[str, list[Rated]]
) -> tuple[list[Rated], int, list[str]]:
    """Reports kept, how many were rated, and why ratings are missing.

    Level by level: rate, go on below what is relevant. A parent is kept only where no rated child is relevant.

    On each level at most half of the ratings that are left are spent while there are levels below it, so that a broad
    top does not keep the search from going down; lexically nearest first. Where the model gives no rating the
    lexical one stands in.
    """
    frontier = children.get("", [])
    kept: dict[str, Rated] = {}
    missing: list[str] = []
    rated = fallback = 0
    while frontier and rated < READ:
        left = READ - rated
        below = any(children.get(one.id) for one in frontier)
        frontier.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
        taken = frontier[: max(1, left // 2) if below else left]
        ratings, reasons = await _ratings(asker, snapshot, query, taken)
        missing += reasons
        rated += len(taken)
        marked = [replace(one, rating=float(value)) for one, value in zip(taken, ratings, strict=True)]
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
    """One rating of 0 to 5 for each report, all asked for at once; and the reasons where the model gave none."""
    found = await asyncio.to_thread(context.rows, snapshot, "reports", [one.id for one in some])
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
    return _OWN_REFERENCES.sub("", "\n".join(lines))[:RATED_CHARACTERS]


# ---- map and reduce ------------------------------------------------------------------------------


async def read(asker: Asker, snapshot: Snapshot, query: str, chosen: Sequence[Rated], wish: Wish, words: int) -> Read:
    """Points out of the reports, in batches at once, and the answer that they come to."""
    weight = {one.id: one.weight for one in chosen}
    rows = await asyncio.to_thread(_rows, snapshot, list(weight)[:MOST_REPORTS])
    rows.sort(key=lambda row: (-round(weight[row["id"]], 6), row["id"]))
    number = {row["id"]: f"c{place}" for place, row in enumerate(rows, 1)}
    outcome = Read([], {number[row["id"]]: f"c{row['n']}" for row in rows}, len(rows))
    batches = _batches(rows)
    outcome.batches = len(batches)
    work = (_map(asker, snapshot, query, batch, weight, number, wish.history) for batch in batches)
    given = await asyncio.gather(*work)
    found: list[tuple[float, int, int, Point]] = []
    for at, (points, reason) in enumerate(given):
        outcome.failed += bool(reason)
        outcome.reason = outcome.reason or reason
        found += [(-point.score, at, place, point) for place, point in enumerate(points)]
    outcome.points = [point for *_, point in sorted(found, key=lambda one: one[:3])]
    if outcome.points:
        outcome.reduced = await answer(
            asker, query, _point_rows(outcome.points), outcome.names, wish, words=words, prompt="reduce", kind="reduce",
            folder=snapshot.folder,
        )  # fmt: skip
    return outcome


def _rows(snapshot: Snapshot, ids: Sequence[str]) -> list[Row]:
    """The reports in this order, as many as the batches hold."""
    left = MOST_BATCHES * BATCH_TOKENS
    rows = []
    for row in context.rows(snapshot, "reports", ids):
        left -= count_tokens(_report(row)) + 30
        if left < 0 and rows:
            break
        rows.append(row)
    return rows


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Shuffled by a hash, so that no batch holds one corner of the tree; inside a batch the weightiest first."""
    batches: list[list[Row]] = []
    size = 0
    for row in sorted(rows, key=lambda row: content_id(SEED, row["id"])):
        tokens = count_tokens(_report(row)) + 30
        if not batches or size + tokens > BATCH_TOKENS:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += tokens
    order = {row["id"]: place for place, row in enumerate(rows)}
    return [sorted(batch, key=lambda row: order[row["id"]]) for batch in batches]


def _report(row: Row) -> str:
    """A report on one line: summary and findings. Its own references are left out, points refer to the report."""
    parts = [row["summary"]]
    for one in context.findings(row):
        parts.append(f"{one.get('summary', '')}: {one.get('explanation', '')}")
    return one_line(_OWN_REFERENCES.sub("", " ".join(parts)), REPORT_CHARACTERS).replace("|", "/")


async def _map(
    asker: Asker, snapshot: Snapshot, query: str, batch: Sequence[Row], weight: dict[str, float],
    number: dict[str, str], before: str = "",
) -> tuple[list[Point], str]:  # fmt: skip
    """The points of one batch with references to the whole's numbers, and why there are none when it failed.

    `before`: the block of earlier turns, which stands first.
    """
    lines = [
        f"{place}|{one_line(row['title'], 200).replace('|', '/')}|{weight[row['id']]:.2f}|{_report(row)}"
        for place, row in enumerate(batch, 1)
    ]
    rows = "\n\n".join(filter(None, [before, "\n".join(lines)]))
    text = prompts.load("map", snapshot.folder).substitute(reports=data(rows), question=data(query))
    ask = Ask("map", (Message("user", text),), read_points, lambda: (), POINTS_SCHEMA, if_cut="shown")
    given = await asked(asker, ask)
    if not given.by:
        return [], given.reason or "no reply"
    names = {f"c{place}": number[row["id"]] for place, row in enumerate(batch, 1)}
    points = [replace(point, description=restored(point.description, names).text.strip()) for point in given.value]
    return [point for point in points if point.description], ""


def _point_rows(points: Sequence[Point]) -> str:
    """Points for the reduce prompt, best first, as many as fit; at least one."""
    lines: list[str] = []
    left = BATCH_TOKENS
    for point in points:
        line = f"- (score {point.score:g}) {point.description}"
        left -= count_tokens(line) + 1
        if left < 0 and lines:
            break
        lines.append(line)
    return "\n".join(lines)


def point_items(outcome: Read) -> list[Item]:
    """The model's points as rows of context, for when they could not be joined."""
    items = []
    for place, point in enumerate(outcome.points, 1):
        checked: Checked = restored(point.description, outcome.names)
        items.append(Item(f"p{place}", f"- {one_line(checked.text, 1_500)} (score {point.score:g})", None, "Points"))
    return items
