"""Global search: what the corpus as a whole says about a question.

Without a model: a map of the topics where the question names none (topics.py), else sentences from
many documents by topic, after what community reports say (reports.py). With a model: an answer
(map_reduce.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing.budget import (
    clamp_budget,
    finish,
    one_line,
    read_cursor,
    render_references,
    write_cursor,
)
from graphrag_mcp.query import context, hits, local, topics
from graphrag_mcp.query.answer import AnswerOptions
from graphrag_mcp.query.map_reduce import with_answer
from graphrag_mcp.query.reports import (
    asked_about,
    included_first,
    passing,
    ranked,
    select,
    too_deep,
)
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters


Part = tuple[str, Snapshot, "Filters | None"]  # name of the corpus, what passes, the filters
DEFAULT_TOKENS = 6_000
THEMES = 8  # titles shown when no report is relevant


def global_search(
    snapshot: Snapshot,
    query: str,
    *,
    level: int = -1,
    max_tokens: int = DEFAULT_TOKENS,
    cursor: str = "",
    response_format: str = "concise",
    filters: Sequence[str] = (),
    min_rating: float = 0.0,
    history: Sequence[str] = (),
    explain: bool = False,
    asker: Asker | None = None,
    answer: bool = False,
    response_type: str = "",
    instructions: str = "",
    general_knowledge: bool = False,
    on_text: Callable[[str], None] | None = None,
    seconds: float = 0.0,
) -> SearchResult:
    """Points from community reports, and with `answer` what a model makes of the reports.

    level -1 goes down the tree where it is relevant; n takes that level. `filters` and `min_rating`
    leave reports out before any is chosen. `seconds`: how long to wait for the model, 0 for as long
    as it takes. A later page has points alone."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    nothing = context.empty_corpus(snapshot, "global")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    looked_for, before = with_history(history, query, budget)
    settings = (level, response_format, explain, [*filters, min_rating])
    asked, generation = f"global|{looked_for}|{settings}", snapshot.manifest.generation
    offset = read_cursor(cursor, generation, asked, 1)
    if offset is None:
        return finish(context.stale(snapshot, "global"), budget)
    narrowing, snapshot = local.narrowed(snapshot, filters, min_rating)
    result = SearchResult(mode="global", corpus=snapshot.manifest.corpus)
    told = [local.told(note, narrowing), _late(snapshot), too_deep(snapshot, level)]
    result.hint = " ".join(filter(None, told))
    page = partial(write_cursor, generation, asked)

    def plain(result: SearchResult) -> SearchResult:
        result.text = "" if cursor.strip() else before
        parts: list[Part] = [("", snapshot, narrowing)]
        place = {"level": level, "offset": offset[0]}
        shown = {"detailed": response_format == "detailed", "explain": explain}
        return show(result, parts, looked_for, budget, cursor=page, **place, **shown)

    if answer and query and snapshot.count("reports") and not cursor.strip():
        options = AnswerOptions(
            response_type, instructions, general_knowledge, on_text, seconds, before
        )
        given = snapshot, query, level, result, budget, options, asker
        return with_answer(*given, plain, page((0,)))
    return plain(result)


def _late(snapshot: Snapshot) -> str:
    late = "communities" in snapshot.manifest.stale
    return "Communities are being brought up to date." if late else ""


def show(
    result: SearchResult,
    parts: Sequence[Part],
    query: str,
    budget: int,
    *,
    level: int = -1,
    offset: int = 0,
    cursor: Callable[[tuple[int, ...]], str] = lambda _: "",
    detailed: bool = False,
    explain: bool = False,
) -> SearchResult:
    """The result without a model, of one corpus (named "") or several: a map of the topics, or what
    the documents say on the question. What stands in the result's text already comes first."""
    if all(asked_about(snapshot, query) is None for _, snapshot, _ in parts):
        result = topics.overview(
            result, parts, budget, level=level, offset=offset, cursor=cursor, detailed=detailed
        )
        return result if result.communities or offset else _nothing(result, parts, budget)
    page = hits.page_of(result, budget)
    left, taken = _extract(page, parts, query, result, level, offset, explain)
    if not taken and not result.communities and not offset:
        return _nothing(result, parts, budget)
    return hits.finished(result, page, left, offset + taken, cursor)


def _extract(
    page: hits.Page,
    parts: Sequence[Part],
    query: str,
    result: SearchResult,
    level: int,
    offset: int,
    explain: bool,
) -> tuple[int, int]:
    """Add what was written on the question in reports, then one sentence from each of many places,
    by topic: how many sentences have had no room, and how many are shown."""
    order: list[tuple[str, hits.Line]] = []
    for name, snapshot, kept in parts:
        if not offset:
            result.communities += _written(page, name, snapshot, query, level, kept)
        found = local.find(snapshot, query, filters=kept)
        if not found.passages or local.unheard_of(found):
            continue
        source = local.source_of(snapshot, found, name, explain=explain)
        worth = hits.without_people(asked_about(snapshot, query) or source.worth, source.names)
        prefix = f"{name}/" if name else ""
        for topic, held in topics.on_question(snapshot, worth, source, level, kept):
            head = f"## [{prefix}c{topic.n}] {topic.title}" if topic else "## Of no topic"
            dated = sum(bool(line.hit.date) for line in held) * 2 > len(held)
            order += [(head, line) for line in (sorted(held, key=_when) if dated else held)]
            if topic and not offset:
                result.communities.append(f"{prefix}c{topic.n}")
    result.communities = list(dict.fromkeys(result.communities))
    result.coverage |= {"documents": len({line.hit.part_of for _, line in order})}
    shown = 0
    for head, group in groupby(order[offset:], key=lambda one: one[0]):
        held = [line for _, line in group]
        added = hits.show_lines(page, held, head=head)
        shown += added
        if added < len(held):
            break
    return len(order) - offset - shown, shown


def _when(line: hits.Line) -> tuple[str, float]:
    return line.hit.date or "9999", -line.value


def _written(
    page: hits.Page, name: str, snapshot: Snapshot, query: str, level: int, kept: Filters | None
) -> list[str]:
    """Add the points of reports that a model or an agent wrote, in half of the room at most: ids of
    their communities."""
    chosen, _ = select(snapshot, query, level)
    if kept is not None and kept.first:
        chosen = included_first(snapshot, chosen, kept)
    ids = [one.id for one in chosen]
    rows = snapshot.by_key("reports", ids, "id", ["id", "method"]).to_pylist()
    written = {row["id"] for row in rows if row["method"] != "extractive"}
    found = ranked(
        snapshot, asked_about(snapshot, query) or {}, [one for one in chosen if one.id in written]
    )
    if kept is not None and kept.documents is not None:
        found = passing(snapshot, found, kept.documents)
    aliases, cited = context.resolve_references(snapshot, [one[4] for one in found])
    least, communities = page.room // 2, []
    prefix = f"{name}/" if name else ""
    for _, _, _, row, text in found:
        shown = render_references(text, aliases)
        shown = context.marked(name, shown) if name else shown
        alias = f"{prefix}c{row['n']}"
        places = [
            context.placed(name, place, 1.0) if name else place
            for id, place in cited.items()
            if f"{prefix}{id})" in shown or f"{prefix}{id}," in shown
        ]
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        if page.room - count_tokens(line) < least or not page.add(line, places):
            break
        communities.append(alias)
    return list(dict.fromkeys(communities))


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
    """No document speaks of the question: say so, and what they do speak of."""
    result.state = "not_found"
    said = []
    for name, snapshot, kept in parts:
        total = snapshot.manifest.counters.get("documents", 0)
        passed = total if kept is None or kept.documents is None else len(kept.documents)
        among = f", of which {passed} pass the filters" if passed != total else ""
        said.append(
            f"corpus {name or snapshot.manifest.corpus} ({counted(total, 'documents')}{among})"
        )
    result.text = f"Nothing on this was found in {' or '.join(said)}."
    listed = []
    for name, snapshot, kept in parts:
        prefix = f"{name}/" if name else ""
        listed += [(f"{prefix}{id}", title) for id, title in topics.titles(snapshot, kept, THEMES)]
    result.communities = [id for id, _ in listed]
    advice = "Ask again with other filters, or without."
    if listed:
        lines = [f"- [{id}] {title}" for id, title in listed]
        result.text = "\n".join([result.text, "The largest topics are:", *lines])
        advice = "Ask with names or words from these titles, or use local_search."
    result.hint = " ".join(filter(None, [result.hint, advice]))
    return finish(result, budget)


def with_history(history: Sequence[str], query: str, budget: int) -> tuple[str, str]:
    """The question with the names that earlier turns add, and the block of these turns."""
    if not history:
        return query, ""
    turns = local.user_turns(history)
    asked = " ".join([query, *local.history_keywords(turns, query)] if query else [])
    return asked, local.history_block(turns, budget)
