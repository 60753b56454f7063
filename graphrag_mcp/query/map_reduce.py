"""The answer of a model to a question on the corpus: reports rated down the tree, read for points,
joined."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Item, Section, compose, one_line
from graphrag_mcp.packing.citations import Checked, data, restored
from graphrag_mcp.query import context
from graphrag_mcp.query.answer import (
    NO_MODEL,
    POINTS_SCHEMA,
    RATING_SCHEMA,
    Answered,
    Meter,
    Point,
    Wish,
    answer,
    answered,
    asked,
    failed,
    note,
    read_points,
    read_rating,
    unfinished,
    waited,
    word_limit,
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

SEED = (
    "reports"  # the order in which reports meet in batches comes from a hash of this and their ids
)
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
# at an explicit level; the reports nearest to the question go in
MOST_BATCHES, MOST_REPORTS = (20, 1_000)
REPORT_CHARACTERS = 12_000  # of one report
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant
_OWN_REFERENCES = re.compile(r"(?<!\s)\s*\[Data: [^\[\]\n]*\]")


@dataclass(slots=True)
class Read:
    """What came of reading: `points` with references to `names` (number -> alias), best first; how
    batches fared."""

    points: list[Point]
    names: dict[str, str]
    reports: int = 0
    batches: int = 0
    failed: int = 0
    reason: str = ""
    reduced: Answered | None = None

    def counts(self) -> dict[str, int]:
        return {
            "read": self.reports,
            "batches": self.batches,
            "batches_answered": self.batches - self.failed,
            "batches_failed": self.failed,
            "points": len(self.points),
        }

    def partly(self) -> str:
        which = f"{self.failed} of {self.batches} batches of reports"
        return f"{which} gave no answer ({self.reason})."


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reports to read, what was counted on the way to them, and why ratings were missing (""
    when none was)."""

    reports: list[Rated]
    coverage: dict[str, int]
    unrated: str = ""


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    snapshot: Snapshot,
    query: str,
    level: int,
    result: SearchResult,
    budget: int,
    page: Callable[[tuple[int, ...]], str],
    asker: Asker | None,
    wish: Wish,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The result of a global search with its answer. `plain` gives the one without a model, where
    there is no answer."""
    if asker is None or not asker.may_answer("reduce"):
        note(result, NO_MODEL)
        return plain(result)
    meter = Meter(asker)

    async def work() -> tuple[Chosen, Read]:
        chosen = await select_with_model(asker, snapshot, query, level)
        return chosen, await read(asker, snapshot, query, chosen.reports, wish, word_limit(budget))

    given = waited(asker, work(), wish.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return plain(result)
    selected, outcome = given
    result.coverage = selected.coverage | outcome.counts()
    if selected.unrated:
        unrated = f"{selected.coverage['unrated']} reports got no rating from the model"
        note(result, f"{unrated} ({selected.unrated}), so their words decided.")
    if not outcome.points:
        return _without_points(result, selected, outcome, plain)
    reduced = outcome.reduced
    if reduced is None or not reduced.by:
        result.state = "failed"
        note(result, failed(reduced.reason if reduced else ""))
        section = Section("Points", mapped_point_items(outcome), 1.0)
        return compose(result, [section], budget, lambda _: "", first="Points")
    _, communities = finding_items(snapshot, query, selected.reports[:READ])
    result.communities = communities[:20]
    if outcome.failed:
        note(result, outcome.partly())
    result = answered(result, reduced, budget, snapshot=snapshot, cursor=page((0,)))
    result.state = "partial" if outcome.failed or selected.unrated else "answered"
    return result


def _without_points(
    result: SearchResult,
    selected: Chosen,
    outcome: Read,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The model gave no point: it found nothing relevant, or it did not answer."""
    if selected.unrated and not selected.reports:
        state, said = "failed", failed(selected.unrated)
    elif not outcome.failed:
        looked = max(outcome.reports, selected.coverage.get("rated", 0))
        state, said = "", f"The model found nothing on it in {counted(looked, 'reports')}."
        result.method = ""
    elif outcome.failed == outcome.batches:
        state, said = "failed", failed(outcome.reason)
    else:
        state = "partial"
        said = outcome.partly()
    note(result, said)
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
    return _OWN_REFERENCES.sub("", "\n".join(lines))[:RATED_CHARACTERS]


# ---- map and reduce ------------------------------------------------------------------------------


async def read(
    asker: Asker, snapshot: Snapshot, query: str, chosen: Sequence[Rated], wish: Wish, words: int
) -> Read:
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
            asker,
            query,
            _point_rows(outcome.points),
            outcome.names,
            wish,
            words=words,
            prompt="reduce",
            kind="reduce",
            folder=snapshot.folder,
        )
    return outcome


def _rows(snapshot: Snapshot, ids: Sequence[str]) -> list[Row]:
    left = MOST_BATCHES * BATCH_TOKENS
    rows = []
    for row in snapshot.served("reports", ids):
        left -= count_tokens(_report(row)) + 30
        if left < 0 and rows:
            break
        rows.append(row)
    return rows


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Shuffled by a hash, so that no batch holds one corner of the tree; inside a batch the
    weightiest first."""
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
    """A report on one line: summary and findings. Its own references are left out, points refer to
    the report."""
    parts = [row["summary"], *map(context.finding, context.findings(row))]
    return one_line(_OWN_REFERENCES.sub("", " ".join(parts)), REPORT_CHARACTERS).replace("|", "/")


async def _map(
    asker: Asker,
    snapshot: Snapshot,
    query: str,
    batch: Sequence[Row],
    weight: dict[str, float],
    number: dict[str, str],
    before: str = "",
) -> tuple[list[Point], str]:
    """The points of one batch with references to the whole's numbers, and why there are none when
    it failed.

    `before`: the block of earlier turns, which stands first."""
    lines = [
        f"{place}|{one_line(row['title'], 200).replace('|', '/')}|{weight[row['id']]:.2f}|{_report(row)}"
        for place, row in enumerate(batch, 1)
    ]
    rows = "\n\n".join(filter(None, [before, "\n".join(lines)]))
    text = prompts.load("map", snapshot.folder).substitute(reports=data(rows), question=data(query))
    ask = Ask(
        "map", (Message("user", text),), read_points, lambda: (), POINTS_SCHEMA, if_cut="shown"
    )
    given = await asked(asker, ask)
    if not given.by:
        return [], given.reason or "no reply"
    names = {f"c{place}": number[row["id"]] for place, row in enumerate(batch, 1)}
    points = [
        replace(point, description=restored(point.description, names).text.strip())
        for point in given.value
    ]
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


def mapped_point_items(outcome: Read) -> list[Item]:
    """The model's points as rows of context, for when they could not be joined."""
    items = []
    for place, point in enumerate(outcome.points, 1):
        checked: Checked = restored(point.description, outcome.names)
        items.append(
            Item(
                f"p{place}",
                f"- {one_line(checked.text, 1_500)} (score {point.score:g})",
                None,
                "Points",
            )
        )
    return items
