"""Search tools: questions in, cited context out. A model's answer goes out as progress too."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import anyio
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult

from graphrag_mcp.tools import contract
from graphrag_mcp.tools.contract import Ctx, budgets, clamp, desk_of, read, remark
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.request import Request
    from graphrag_mcp.tools.contract import Parts

# Tokens of a result; for many places or several questions; of a map.
DEFAULT, WIDE, MAP = contract.NotGiven(1200), 2000, contract.NotGiven(3000)
ANSWER_SECONDS = 38.0  # for the model, so that what it has not finished is said in time
TELL_EVERY = 0.5  # seconds between two progress messages


async def local_search(
    ctx: Ctx,
    query: str = "",
    queries: list[str] = [],
    breadth: Literal["passages", "sentences"] = "passages",
    sort: Literal["rank", "time"] = "rank",
    filters: list[str] = [],
    cursor: contract.Cursor = "",
    corpus: str = "",
    max_tokens: int = DEFAULT,
    answer: bool = False,
    instructions: str = "",
) -> CallToolResult:
    """Passages on a question about people, things, events, details. For what is spread over many
    documents: list_documents with query."""
    from graphrag_mcp.query import batch, local
    from graphrag_mcp.query.render import Form
    from graphrag_mcp.query.request import Request

    default = WIDE if breadth == "sentences" or queries else DEFAULT
    tokens = default if isinstance(max_tokens, contract.NotGiven) else max_tokens
    inner, whole = budgets(ctx, tokens, default, corpus)
    beside, form = for_notes(ctx, max_tokens), Form(breadth, sort)
    request = Request(query, inner, cursor, filters=filters, form=form, answer=answer and not queries, beside=beside)
    if queries and answer:
        remark("answer is for one question: with queries it was ignored.")

    def work(parts: Parts, request: Request) -> Result:
        askers = _askers(ctx, parts, corpus, request.answer)
        if queries:
            return batch.several(parts, [*queries, query], request, askers)
        return local.search(parts, request, askers)

    return await _searched(ctx, "local_search", corpus, work, request, instructions, whole)


async def global_search(
    query: str,
    ctx: Ctx,
    corpus: str = "",
    level: int = -1,
    max_tokens: int = MAP,
    cursor: contract.Cursor = "",
    filters: list[str] = [],
    answer: bool = False,
    instructions: str = "",
) -> CallToolResult:
    """The whole corpus: its map of topics, or what many documents say on a subject, grouped."""
    from graphrag_mcp.query import global_
    from graphrag_mcp.query.request import Request

    inner, whole = budgets(ctx, max_tokens, MAP, corpus, page=True)
    level, beside = clamp("level", level, -1, 99), for_notes(ctx, max_tokens)
    request = Request(query, inner, cursor, filters=filters, level=level, answer=answer, beside=beside)

    def work(parts: Parts, request: Request) -> Result:
        several = len(parts) > 1
        askers = {} if several else _askers(ctx, parts, corpus, answer)
        found = global_.search(parts, request, askers)
        asked = quote(" ".join(query.split())[:2_000], safe="")
        found.view = "" if several else f"search/{asked}"
        return found

    return await _searched(ctx, "global_search", corpus, work, request, instructions, whole)


async def search_text(
    query: str,
    ctx: Ctx,
    corpus: str = "",
    max_tokens: int = DEFAULT,
    cursor: contract.Cursor = "",
    filters: list[str] = [],
) -> CallToolResult:
    """Exact words, names, numbers; "a phrase", "a" OR "b"."""
    from graphrag_mcp.query import text_search
    from graphrag_mcp.query.request import Request

    inner, whole = budgets(ctx, max_tokens, DEFAULT, corpus)
    beside = for_notes(ctx, max_tokens)
    request = Request(query, inner, cursor, filters, beside=beside)
    work = partial(text_search.search, request=request)
    return await read(ctx, "search_text", corpus, work, whole, ())


def for_notes(ctx: Ctx, max_tokens: int) -> int:
    """Tokens that a note may take beside the budget of a result: some where the caller gave none, and the
    host shows long results."""
    from graphrag_mcp.query.note_hits import TOKENS

    has_budget = not isinstance(max_tokens, contract.NotGiven)
    return 0 if has_budget or contract.shows_short(ctx) else TOKENS


# ---- a model's answer -------------------------------------------------------------------------------


async def _searched(
    ctx: Ctx,
    tool: str,
    corpus: str,
    work: Callable[[Parts, Request], Result],
    request: Request,
    instructions: str,
    whole: int,
) -> CallToolResult:
    """The call of a search; a model's answer goes out as progress while it is written."""
    from graphrag_mcp.query.request import AnswerOptions

    if instructions and not request.answer:
        remark("instructions changed nothing: they are for an answer, asked for with answer=true.")
    pieces: list[str] = []
    asked = replace(request, options=AnswerOptions(instructions, pieces.append, ANSWER_SECONDS))
    call = read(ctx, tool, corpus, lambda parts: work(parts, asked), whole, ())
    return await (with_progress(ctx, pieces, call) if request.answer else call)


def _askers(ctx: Ctx, parts: Parts, corpus: str, answer: bool = False) -> dict[str, Asker]:
    """Who asks models, by corpus ("": the one meant); none where no model has anything to do."""
    app = desk_of(ctx).app
    answers = answer and len(parts) == 1
    names = {name: name or app.corpus_for_reading(corpus) for name, _ in parts}
    asked = {name: corpus for name, corpus in names.items() if answers or app.reads_with_models(corpus)}
    return {name: app.asker(corpus) for name, corpus in asked.items()}


async def with_progress(ctx: Ctx, pieces: list[str], call: Awaitable[CallToolResult]) -> CallToolResult:
    """The call's result; what gathers in `pieces` meanwhile goes out as progress.

    Progress counts characters, so it only grows; a host that gave no token is sent nothing."""
    sent = 0

    async def tell() -> None:
        nonlocal sent
        upto = len(pieces)  # the model goes on writing
        if new := "".join(pieces[sent:upto]):
            sent = upto
            with contextlib.suppress(Exception):  # a client that stopped listening gets its result
                await ctx.report_progress(sum(map(len, pieces[:upto])), None, new)

    async def keep_telling() -> None:
        while True:
            await anyio.sleep(TELL_EVERY)
            await tell()

    result: CallToolResult | ToolError = ToolError("the call was cancelled")
    async with anyio.create_task_group() as group:
        group.start_soon(keep_telling)
        try:
            result = await call
        except ToolError as error:  # raised outside the group, which would wrap it
            result = error
        group.cancel_scope.cancel()
    if isinstance(result, ToolError):
        raise result
    await tell()
    return result
