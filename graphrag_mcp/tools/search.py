"""Search tools: questions in, cited context out. A model's answer goes out as progress while it is
written."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult

from graphrag_mcp.tools.contract import (
    Answer,
    Breadth,
    Budget1200,
    Budget3000,
    Corpora,
    Cursor,
    Explain,
    Filters,
    Format,
    GeneralKnowledge,
    History,
    Instructions,
    Keywords,
    Queries,
    Query,
    ResponseType,
    Sort,
    number,
)
from graphrag_mcp.tools.results import (
    Ctx,
    budgets,
    clamp,
    read,
    remark,
    search_view,
    serve,
    too_long,
)
from graphrag_mcp.types import Result, SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.store.tables import Snapshot

    Parts = list[tuple[str, Snapshot]]

DEFAULT, WIDE = 1200, 2000  # tokens of a result; for many places or several questions
ANSWER_SECONDS = (
    38.0  # for the model, so that what it has not finished is said before the call's own limit
)
TELL_EVERY = 0.5  # seconds between two progress messages

Level = number(-1, "-1: by relevance; 0: the coarsest; higher: finer", "level community_level")


async def local_search(
    ctx: Ctx,
    query: Query = "",
    queries: Queries = [],
    breadth: Breadth = "passages",
    sort: Sort = "rank",
    filters: Filters = [],
    cursor: Cursor = "",
    corpus: Corpora = "",
    max_tokens: Budget1200 = DEFAULT,
    keywords: Keywords = [],
    response_format: Format = "concise",
    history: History = [],
    explain: Explain = False,
    answer: Answer = False,
    response_type: ResponseType = "",
    instructions: Instructions = "",
    general_knowledge: GeneralKnowledge = False,
) -> CallToolResult:
    """Passages that answer a question on people, things, events or details, by meaning and by the
    graph. Start here. Strong hits come in full, weaker ones as one line; open more with
    get_source(ids=["t33.2"]). For questions whose answer is spread over many documents use
    breadth="sentences" or global_search; for exact strings search_text."""
    wishes: dict[str, Any] = {"response_type": response_type, "instructions": instructions}
    wishes["general_knowledge"] = general_knowledge
    _unasked(answer, **wishes)
    wide = breadth == "sentences" or bool(queries)
    default = WIDE if wide else DEFAULT
    wanted = default if max_tokens == DEFAULT else max_tokens
    inner, whole = budgets(wanted, default, corpus, ctx)
    form = breadth, sort
    if queries:
        return await _several(ctx, [*queries, query], corpus, inner, whole, filters, form)
    pieces: list[str] = []
    given: dict[str, Any] = {
        "max_tokens": inner,
        "response_format": response_format,
        "cursor": cursor,
        "keywords": keywords,
        "filters": filters,
        "history": history,
        "explain": explain,
        "answer": answer,
    }

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.local import local_search as search
        from graphrag_mcp.query.passages import Form

        return search(
            snapshot,
            query,
            **given,
            form=Form(*form),
            asker=_asker(ctx, corpus, answer),
            **wishes,
            on_text=pieces.append,
            seconds=ANSWER_SECONDS,
        )

    def many(parts: Parts) -> Result:
        from graphrag_mcp.query.local import Request, search
        from graphrag_mcp.query.passages import Form

        return search(parts, Request(query, **given, form=Form(*form)), _askers(ctx, parts))

    late = too_long(SearchResult, "local_search", "search_text(query=...)")
    call = searched(ctx, "local_search", corpus, work, many, late, whole)
    return await (told(ctx, pieces, call) if answer else call)


async def _several(
    ctx: Ctx,
    queries: list[str],
    corpus: str,
    inner: int,
    whole: int,
    filters: list[str],
    form: tuple[str, str],
) -> CallToolResult:
    """Several questions in one result."""

    def many(parts: Parts) -> Result:
        from graphrag_mcp.query.local import several
        from graphrag_mcp.query.passages import Form

        given = {"max_tokens": inner, "filters": filters, "askers": _askers(ctx, parts)}
        return several(parts, queries, **given, form=Form(*form))

    def work(snapshot: Snapshot) -> Result:
        return many([("", snapshot)])

    late = too_long(SearchResult, "local_search", "local_search(query=...)")
    return await searched(ctx, "local_search", corpus, work, many, late, whole)


async def global_search(
    query: Query,
    ctx: Ctx,
    corpus: Corpora = "",
    level: Level = -1,
    max_tokens: Budget3000 = 3000,
    response_format: Format = "concise",
    cursor: Cursor = "",
    filters: Filters = [],
    history: History = [],
    explain: Explain = False,
    answer: Answer = False,
    response_type: ResponseType = "",
    instructions: Instructions = "",
    general_knowledge: GeneralKnowledge = False,
) -> CallToolResult:
    """Questions about the whole corpus. What it is about: a map of its topics. A question on one
    topic: what many documents say, by topic, with ids to cite. Not for single facts: local_search."""
    wanted = clamp("level", level, -1, 99)
    wishes: dict[str, Any] = {"response_type": response_type, "instructions": instructions}
    wishes["general_knowledge"] = general_knowledge
    _unasked(answer, **wishes)
    asked = search_view(query)
    inner, whole = budgets(max_tokens, 3000, corpus, ctx, asked)
    pieces: list[str] = []
    given: dict[str, Any] = {
        "level": wanted,
        "max_tokens": inner,
        "response_format": response_format,
        "cursor": cursor,
        "filters": filters,
        "history": history,
        "explain": explain,
        "answer": answer,
    }

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.global_ import global_search as search

        found = search(
            snapshot,
            query,
            **given,
            asker=_asker(ctx, corpus, answer),
            **wishes,
            on_text=pieces.append,
            seconds=ANSWER_SECONDS,
        )
        found.view = asked
        return found

    def many(parts: Parts) -> Result:
        from graphrag_mcp.query.global_ import search
        from graphrag_mcp.query.local import Request

        return search(parts, Request(query, **given))

    late = too_long(SearchResult, "global_search", "local_search(query=...)")
    call = searched(ctx, "global_search", corpus, work, many, late, whole)
    return await (told(ctx, pieces, call) if answer else call)


async def search_text(
    query: Query,
    ctx: Ctx,
    corpus: Corpora = "",
    max_tokens: Budget1200 = DEFAULT,
    cursor: Cursor = "",
    filters: Filters = [],
) -> CallToolResult:
    """Exact words, names, numbers, identifiers; what stands in "quotes" must occur as it is. To
    verify, or where local_search misses a literal."""

    inner, whole = budgets(max_tokens, DEFAULT, corpus, ctx)

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.text_search import search_text as search

        return search(snapshot, query, max_tokens=inner, cursor=cursor, filters=filters)

    def many(parts: Parts) -> Result:
        from graphrag_mcp.query.text_search import search

        return search(parts, query, max_tokens=inner, cursor=cursor, filters=filters)

    late = too_long(SearchResult, "search_text", "local_search(query=...)")
    return await searched(ctx, "search_text", corpus, work, many, late, whole)


def _unasked(answer: bool, **wishes: object) -> None:
    """A remark on wishes for an answer that no one is asked for."""
    named = [name for name, value in wishes.items() if value]
    if named and not answer:
        remark(
            f"{', '.join(named)} changed nothing: that is for an answer by a model, asked for with answer=true."
        )


# ---- which corpora ----------------------------------------------------------------------------------


async def searched(
    ctx: Ctx,
    tool: str,
    corpus: str,
    one: Callable[[Snapshot], Result],
    many: Callable[[Parts], Result],
    late: Result,
    budget: int,
) -> CallToolResult:
    """The call on the one corpus that is meant, or on all that are named."""
    if not several_named(corpus):
        return await read(ctx, tool, corpus, one, late, budget)
    return await serve(ctx, tool, lambda app: many(parts_of(app, corpus)), late, budget)


def several_named(corpus: str) -> bool:
    return corpus.strip() in ("*", "all") or any(mark in corpus for mark in ",，、;")


def parts_of(app: App, corpus: str) -> Parts:
    """The corpora that are named, each as its newest generation."""
    from graphrag_mcp.query.federated import wanted

    named = [app.corpus_for_reading(name) for name in wanted(corpus, app.corpora())]
    named = named or [
        app.corpus_for_reading("" if corpus.strip() in ("*", "all") else corpus.strip(" ,，、;"))
    ]
    return [(name, app.snapshot(name)) for name in named]


# ---- a model's answer -------------------------------------------------------------------------------


def _asker(ctx: Ctx, corpus: str, wanted: bool) -> Asker | None:
    """The one door to models, only where an answer is wanted or the question can be embedded."""
    app = ctx.request_context.lifespan_context.app
    return app.asker(app.corpus_for_reading(corpus)) if wanted or _models(app) else None


def _askers(ctx: Ctx, parts: Parts) -> dict[str, Asker]:
    """Who embeds the question, by corpus."""
    app = ctx.request_context.lifespan_context.app
    return {name: app.asker(name) for name, _ in parts} if _models(app) else {}


async def told(ctx: Ctx, pieces: list[str], call: Awaitable[CallToolResult]) -> CallToolResult:
    """The call's result; what gathers in `pieces` meanwhile goes out as progress, at most twice a
    second.

    Progress counts characters, so it only grows; a host that gave no token is sent nothing.
    """
    sent, last = 0, 0.0

    async def tell() -> None:
        nonlocal sent, last
        upto = len(pieces)  # the model goes on writing
        new = "".join(pieces[sent:upto])
        if new and time.monotonic() - last >= TELL_EVERY:
            sent, last = upto, time.monotonic()
            with contextlib.suppress(Exception):  # a client that stopped listening gets its result
                await ctx.report_progress(sum(map(len, pieces[:upto])), None, new)

    async def keep_telling() -> None:
        while True:
            await anyio.sleep(TELL_EVERY / 5)
            await tell()

    refused: ToolError | None = None
    result: CallToolResult | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(keep_telling)
        try:
            result = await call
        except ToolError as error:  # outside the group, which would wrap it
            refused = error
        group.cancel_scope.cancel()
    if refused is not None or result is None:
        raise refused or ToolError("the search gave no result. Try it again.")
    await tell()
    return result


def _models(app: App) -> bool:
    """Do searches use a model even without an answer: for the question's vector, or to look at
    passages again?"""
    return bool(app.settings.embedding_model or app.settings.rerank_model)
