"""Tools for ids and names (entities, reports, sources, documents) and the graph around them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Literal

from mcp.types import CallToolResult

from graphrag_mcp.tools import contract
from graphrag_mcp.tools.contract import MOST, Ctx, budgets, clamp, desk_of, read, telling
from graphrag_mcp.tools.notes import kept_text, remember
from graphrag_mcp.trust.fencing import SUBJECT
from graphrag_mcp.types import ExploreResult, Result

if TYPE_CHECKING:
    from graphrag_mcp.tools.contract import Parts


GIVEN, NODES = 2000, 30  # tokens and entities where the caller says nothing


async def explore_graph(
    ctx: Ctx,
    start: str = "",
    goal: str = "",
    hops: int = 1,
    max_nodes: int = NODES,
    kinds: list[str] = [],
    direction: Literal["", "in", "out"] = "",
    corpus: str = "",
    max_tokens: int = 2000,
) -> CallToolResult:
    """An entity's neighbours, or how start and goal are connected.
    With kinds: links of documents, who uses what in code."""
    from graphrag_mcp.query import explore, federated

    steps, most = clamp("hops", hops, 1, 4), clamp("max_nodes", max_nodes, 2, 200)
    inner, whole = budgets(ctx, max_tokens, GIVEN, corpus, page=True)
    if "/" in start + goal:  # sample/e1: an id of that corpus
        with telling("explore_graph"):
            corpus, start, goal = federated.ends(start, goal, corpus, desk_of(ctx).app.corpora())

    def work(parts: Parts) -> Result:
        found = explore.explore_graph(
            parts[0][1], start, goal, hops=steps, max_nodes=most, max_tokens=inner, kinds=kinds, direction=direction
        )
        if found.truncated and found.start and whole < MOST:
            found.next_call = _rest(found, steps, most, kinds, direction, max_tokens)
        return found

    return await read(ctx, "explore_graph", corpus, work, whole)


def _rest(found: ExploreResult, hops: int, most: int, kinds: list[str], direction: str, max_tokens: int) -> str:
    """The call for what did not fit. There are no pages: a larger budget from a caller that gives
    one, else less at a time, since the list of tools names no budget here (SELDOM)."""
    larger = f", max_tokens={min(2 * max_tokens, MOST)}" if max_tokens != GIVEN else ""
    if not larger and not found.goal and hops > 1:
        hops -= 1
    elif not larger and len(kinds) > 1:
        kinds = kinds[:1]
    elif not larger:
        return found.next_call
    ends = f'goal="{found.goal}"' if found.goal else f"hops={hops}"
    over = f", kinds={json.dumps(kinds)}" if kinds else ""
    over += f', direction="{direction}"' if direction else ""
    over += f", max_nodes={most}" if most != NODES else ""
    return f'explore_graph(start="{found.start}", {ends}{over}{larger})'


async def list_documents(
    ctx: Ctx,
    query: str = "",
    filters: list[str] = [],
    sort: Literal["date", "title", "size"] = "date",
    by: Literal["", "year", "month", "day", "statement"] = "",
    document: str = "",
    cursor: contract.Cursor = "",
    corpus: str = "",
    max_tokens: int = 2000,
) -> CallToolResult:
    """With query: a line for each document on it; without, all by topic. Counts by month; an
    outline."""
    from graphrag_mcp.query import documents

    inner, whole = budgets(ctx, max_tokens, GIVEN, corpus)

    def work(parts: Parts) -> Result:
        return documents.list_documents(
            parts[0][1],
            max_tokens=inner,
            query=query,
            filters=filters,
            sort=sort,
            by=by,
            document=document,
            cursor=cursor,
        )

    return await read(ctx, "list_documents", corpus, work, whole)


async def get_entity(
    id_or_name: str,
    ctx: Ctx,
    corpus: str = "",
    max_tokens: int = 2000,
    order: Literal["", "time"] = "",
    other: str = "",
) -> CallToolResult:
    """A person, organization, place or thing: description, relationships, documents."""
    from graphrag_mcp.query import federated

    inner, whole = budgets(ctx, max_tokens, GIVEN, corpus)
    work = partial(federated.get_entity, name=id_or_name, max_tokens=inner, order=order, other=other)
    return await read(ctx, "get_entity", corpus, work, whole, [id_or_name])


async def get_community_report(community_id: str, ctx: Ctx, corpus: str = "", max_tokens: int = 1200) -> CallToolResult:
    """The report on a topic, its documents and subtopics."""
    from graphrag_mcp.query import federated

    inner, whole = budgets(ctx, max_tokens, 1200, corpus)

    def work(parts: Parts) -> Result:
        found = federated.get_community_report(parts, community_id, max_tokens=inner)
        if found.truncated and max_tokens == 1200 and len(parts) == 1:
            found.next_call = f'get_source(ids=["{found.id}"])'  # no budget is listed here (SELDOM)
        return found

    return await read(ctx, "get_community_report", corpus, work, whole, [community_id])


async def get_source(
    ids: list[str],
    ctx: Ctx,
    corpus: str = "",
    max_tokens: int = 4000,
    query: str = "",
    around: int = 0,
    raw: bool = False,
    changes: bool = False,
) -> CallToolResult:
    """The text behind ids: t33.2 a passage, t33.2+ from there to the end, d4 a document, d4#3 a section
    of its outline, e12 a definition of code."""
    from graphrag_mcp.query import federated

    near = clamp("around", around, 0, 10)
    inner, whole = budgets(ctx, max_tokens, 4000, corpus)
    app, by = desk_of(ctx).app, SUBJECT.get() or contract.who(ctx)

    def work(parts: Parts) -> Result:
        if changes:
            return federated.changes(parts, ids, kept_text(app.settings.notes), max_tokens=inner)
        result = federated.get_source(parts, ids, max_tokens=inner, around=near, raw=raw, query=query)
        remember(app, parts, result, by)
        return result

    return await read(ctx, "get_source", corpus, work, whole, ids)
