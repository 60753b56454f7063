"""The searches: questions in, cited context out.

Takes a question and a budget; gives the passages, entities or reports that answer it. Each tool is one call of
query/*; nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp.types import CallToolResult
from pydantic import BeforeValidator, Field

from graphrag_mcp.tools.arguments import Budget4000, Budget6000, Corpus, Cursor, Format, Query, as_int, names
from graphrag_mcp.tools.results import Ctx, budgets, clamp, read, too_long
from graphrag_mcp.types import Result, SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

Level = Annotated[int, BeforeValidator(as_int(-1)), Field(
    description="-1 picks reports by relevance; 0 is the coarsest level, higher is finer",
    validation_alias=names("level", "community_level"),
)]


async def local_search(
    query: Query, ctx: Ctx, corpus: Corpus = "", max_tokens: Budget6000 = 6000, response_format: Format = "concise",
    cursor: Cursor = "",
) -> Annotated[CallToolResult, SearchResult]:
    """Answer a specific question about people, things, events or details: the best passages with their entities
    and relationships, each with an id to cite. Start here."""
    inner, whole = budgets(max_tokens, 6000)

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.local import local_search as search

        return search(snapshot, query, max_tokens=inner, response_format=response_format, cursor=cursor)

    late = too_long(SearchResult, "local_search", "search_text(query=...)")
    return await read(ctx, "local_search", corpus, work, late, whole)


async def global_search(
    query: Query, ctx: Ctx, corpus: Corpus = "", level: Level = -1, max_tokens: Budget6000 = 6000,
    response_format: Format = "concise", cursor: Cursor = "",
) -> Annotated[CallToolResult, SearchResult]:
    """Answer a question about the whole corpus (main themes, overview, trends): points from the community reports
    that matter most, with citations."""
    wanted = clamp("level", level, -1, 30)
    inner, whole = budgets(max_tokens, 6000)

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.global_ import global_search as search

        return search(
            snapshot, query, level=wanted, max_tokens=inner, response_format=response_format, cursor=cursor
        )

    late = too_long(SearchResult, "global_search", "local_search(query=...)")
    return await read(ctx, "global_search", corpus, work, late, whole)


async def search_text(
    query: Query, ctx: Ctx, corpus: Corpus = "", max_tokens: Budget4000 = 4000, cursor: Cursor = "",
) -> Annotated[CallToolResult, SearchResult]:
    """Find exact words, names, numbers, identifiers or "quoted strings" in the original texts. Use it to verify, or
    when local_search misses a literal."""

    inner, whole = budgets(max_tokens, 4000)

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.lookup import search_text as search

        return search(snapshot, query, max_tokens=inner, cursor=cursor)

    late = too_long(SearchResult, "search_text", "local_search(query=...)")
    return await read(ctx, "search_text", corpus, work, late, whole)
