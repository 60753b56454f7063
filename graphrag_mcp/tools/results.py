"""From engine to MCP result: worker threads, time limits, errors, one shape of result. Only here a
`GraphRAGError` becomes a `ToolError`."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError, out_of_files, too_many_files
from graphrag_mcp.logs import place_of
from graphrag_mcp.packing import wire
from graphrag_mcp.trust import fencing
from graphrag_mcp.trust.principal import SUBJECT, sealed
from graphrag_mcp.types import DriftResult, ExploreResult, Result

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

SECONDS = 45.0  # hosts cut a call at 60; what is not done by then is answered with what to do next
MOST = 20_000  # tokens of any reply: hosts cut at 25,000
# VS Code's chat shows its model no result of more than 8,192 characters of JSON, but the name of a
# file with it, of whose lines (our text is one) its read_file shows 2,000 characters. See
# docs/hosts.md.
SHORT = 2_000
# how it calls itself
SHOW_SHORT = re.compile("visual studio code|code - oss|code-server|vscodium", re.IGNORECASE)
EXPLORER = "graphrag/explorer"  # in `_meta` of a result: {"view", "corpus"}
SHOWN = ("explore_graph", "global_search", "drift_search")  # tools whose results the page shows
LONGEST_VIEW = "drift/drift-0123456789ab"  # of those that are not known before the result
MOST_OF_VIEW = 160  # characters in an address: some 60 tokens
THREADS = 4  # engine calls at a time

# in hints
ADVISED = re.compile(
    r'\b(?:get_source|get_entity|edit_graph)\((?![^()]*corpus=)(?:[^()"]|"[^"]*")+(?=\))'
)

# What a hint says of the corpus, not of this call: told once in a session.
OF_CORPUS = re.compile(
    r"Nowhere in (?:this corpus|these corpora): .*?\.(?= |$)|"
    r"\d+ of \d+ documents? states? no date and pass(?:es)? no date filter\."
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """What every call of one server shares."""

    app: App
    threads: anyio.CapacityLimiter
    told: set[str] = field(default_factory=set)  # remarks on a corpus, where one client is served


Ctx = Context[Desk]

# Remarks about the arguments of the call being served (clamped, unknown, cut); they end in its
# `hint`.
REMARKS: ContextVar[list[str] | None] = ContextVar("REMARKS", default=None)


def remark(sentence: str) -> None:
    """Say something about this call's arguments in its hint."""
    remarks = REMARKS.get()
    if remarks is None:
        REMARKS.set(remarks := [])
    if sentence and sentence not in remarks:
        remarks.append(sentence)


def clamp(name: str, value: int, low: int, high: int) -> int:
    """`value` brought into its range, with a remark when it was not in it."""
    used = min(max(value, low), high)
    if used != value:
        remark(f"{name} {_short(value)} was changed to {used} ({low} to {high}).")
    return used


def budgets(
    max_tokens: int, default: int, corpus: str = "", ctx: Ctx | None = None, view: str = ""
) -> tuple[int, int]:
    """(for the engine, for the whole reply); a remark when what was asked for had to be changed.

    A `corpus` that was named is named in the next call too, whose place is kept free, and so is
    that of the address of a `view`. With `ctx` a default is less in a host that does not show
    longer results."""
    from graphrag_mcp.packing.budget import LOWEST, clamp_budget
    from graphrag_mcp.text.tokens import count_tokens

    if ctx is not None and max_tokens == default and SHOW_SHORT.match(client_name(ctx)):
        max_tokens = min(default, SHORT)
    used, hint = clamp_budget(min(max(max_tokens, -(10**9)), 10**9), default)
    remark(hint)
    said = " ".join(REMARKS.get() or ())  # it will stand in the hint and under the text
    kept = (count_tokens(said) + 6 if said else 0) + (30 if SUBJECT.get() else 0)  # a cursor's mark
    kept += count_tokens(corpus) + 6 if corpus.strip() else 0
    page = ""
    if ctx is not None and view:
        with suppress(GraphRAGError):  # the call itself says what is wrong with a corpus
            named = ctx.request_context.lifespan_context.app.corpus_for_reading(corpus)
            page = address(ctx, view, named)
    kept += count_tokens(page) + 8 if page else 0
    return max(LOWEST, used - kept), used


def client_name(ctx: Ctx) -> str:
    """How the client calls itself; "" if it did not say."""
    params = getattr(ctx.session, "client_params", None)
    return str(getattr(getattr(params, "client_info", None), "name", "") or "")


def who(ctx: Ctx) -> str:
    """The client's name for itself, as provenance."""
    return re.sub(r"[^\w.@-]+", "-", client_name(ctx) or "unknown")[:60]


def reply(result: Result, budget: int = MOST, page: str = "") -> CallToolResult:
    """The result as it is sent. Hint, next page, next call and the address of the page end the text.

    No reply passes its budget: what is below the text gives way before the text does."""
    from graphrag_mcp.packing import budget as packing_budget

    if result.next_cursor and SUBJECT.get():
        result.next_cursor = sealed(result.next_cursor)
    body = result.text.rstrip()
    if fits_whole(result, budget, page):
        return _sent(result)
    result.text, result.suspicious = body, {}
    room = budget - (wire.outgoing(result, below=False) - wire.size(result)[0])
    for _ in range(8):  # what fence and flags cost depends on the text that is left
        packing_budget.finish(result, max(room, 60))
        result.text, result.suspicious = wire.dressed(result, body := result.text)
        result.tokens, characters = wire.size(result)
        if result.tokens <= budget and characters <= packing_budget.CHARACTERS:
            break
        room -= max(result.tokens - budget, (characters - packing_budget.CHARACTERS) // 3, 4)
        result.text, result.suspicious = body, {}
    return _sent(result)


def fits_whole(result: Result, budget: int, page: str = "") -> bool:
    """Make the result ready to be sent with its text uncut; False where it passes its budget even
    without what ends the text."""
    from graphrag_mcp.packing import budget as packing_budget

    own, remarks, body = result.hint.strip(), " ".join(REMARKS.get() or ()), result.text.rstrip()
    for hint in dict.fromkeys((f"{own} {remarks}".strip(), remarks or own)):
        result.hint, result.text = hint, body
        footer = wire.footer(result, page)
        for shown in range(len(footer), -1, -1):
            result.text, result.suspicious = wire.dressed(result, body, footer[:shown])
            result.tokens, characters = wire.size(result)
            if result.tokens <= budget and characters <= packing_budget.CHARACTERS:
                return True
    return False


def _sent(result: Result) -> CallToolResult:
    """Text; and for results on which programs act, their fields. A host that is given fields may
    show the model these alone, so other results have none."""
    text = [TextContent(type="text", text=_encodable(result.text))]
    meta = meta_of(result)
    if not wire.structured(result):
        return CallToolResult(content=text, _meta=meta)
    fields = encodable(wire.fields(result))
    return CallToolResult(content=text, structured_content=fields, _meta=meta)


def meta_of(result: Result) -> dict[str, Any] | None:
    """Which view of the page shows a result; None for results that it does not show."""
    view = result.view
    if isinstance(result, ExploreResult):
        view = view or "map"
        if result.start.startswith("e"):
            view = f"entity/{result.start[1:]}"
        if result.goal.startswith("e"):
            view = f"path/{result.start[1:]}/{result.goal[1:]}"
    elif isinstance(result, DriftResult) and result.session_id:
        view = f"drift/{result.session_id}"
    corpus = getattr(result, "corpus", "")
    return {EXPLORER: {"view": view, "corpus": corpus}} if view and "," not in corpus else None


def search_view(query: str) -> str:
    """The view of the page that searches for a question."""
    return f"search/{quote(' '.join(query.split())[:2_000], safe='')}"


def address(ctx: Ctx, view: str, corpus: str) -> str:
    """Where the page shows a view, as this client reaches the server; "" where no page is served.

    It never holds a token: the page asks for one where it has none. For a long question it is that
    of the map.
    """
    app, request = ctx.request_context.lifespan_context.app, ctx.request_context.request
    if not app.page or request is None:
        return ""
    several = f"?corpus={quote(corpus, safe='')}" if corpus and len(app.corpora()) > 1 else ""
    view = view if len(view) <= MOST_OF_VIEW else "map"
    return f"{request.url.scheme}://{request.url.netloc}{app.page}{several}#{view}"


def fresh(hint: str, told: set[str]) -> str:
    """The hint without remarks on the corpus that were told before; adds those that are new."""

    def once(match: re.Match[str]) -> str:
        if match[0] in told:
            return ""
        told.add(match[0])
        return match[0]

    return " ".join(OF_CORPUS.sub(once, hint).split()) if hint else hint


def encodable(value: Any) -> Any:
    """The value as the wire can carry it; a text of its own (an error, a resource) with nothing in
    it unseen.

    Lone surrogates, which file names that are not UTF-8 have, are escaped. Values inside are as
    pack.py made them."""
    return _encodable(fencing.shown(value) if isinstance(value, str) else value)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
        )
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return value


async def serve(
    ctx: Ctx,
    tool: str,
    work: Callable[[App], Result],
    late: Result,
    budget: int = MOST,
    seconds: float = SECONDS,
) -> CallToolResult:
    """Run `work` in a worker thread and reply; `late` is the answer when it takes longer than a
    host waits.

    A cancelled call stops waiting at once; the thread it leaves behind only reads.
    """
    desk = ctx.request_context.lifespan_context

    def finished() -> CallToolResult:
        try:
            result = work(desk.app)
        except GraphRAGError as error:
            if not error.names or "state" not in type(late).model_fields:
                raise
            # outside the fence; names of documents are within
            advice = str(error)[:1].upper() + str(error)[1:]
            result = type(late).model_validate(
                {"state": "not_found", "text": f"{error.names}.", "hint": advice}
            )
        if ctx.request_context.request is None:  # stdio: one client, whose session this is
            result.hint = fresh(result.hint, desk.told)
        shown = (meta_of(result) or {}).get(EXPLORER) if tool in SHOWN else None
        return reply(result, budget, address(ctx, **shown) if shown else "")

    with telling(tool):
        with anyio.move_on_after(seconds):
            return await anyio.to_thread.run_sync(
                finished, abandon_on_cancel=True, limiter=desk.threads
            )
        return reply(late)


async def read(
    ctx: Ctx,
    tool: str,
    corpus: str,
    work: Callable[[Snapshot], Result],
    late: Result,
    budget: int = 0,
) -> CallToolResult:
    """`serve` for work on the newest generation of a corpus; opened once more when it was cleaned
    away meanwhile.
    """

    def on_snapshot(app: App) -> Result:
        name = app.corpus_for_reading(corpus)
        snapshot = app.snapshot(name)
        try:
            result = work(snapshot)
        except GraphRAGError:
            app.forget(name)
            newer = app.snapshot(name)
            if newer.manifest.generation == snapshot.manifest.generation:
                raise
            result = work(newer)
        if corpus.strip():  # without it, what is advised might mean another corpus
            result.next_call = staying(result.next_call, name)
            result.hint = ADVISED.sub(rf'\g<0>, corpus="{name}"', result.hint)
        if "corpus" in type(result).model_fields:
            setattr(result, "corpus", name)  # noqa: B010 (not every result has it)
        return result

    return await serve(ctx, tool, on_snapshot, late, budget)


def staying(call: str, corpus: str) -> str:
    """The next call in the corpus that was named: without a name it might mean another one."""
    ours = re.match(
        r"(?:get_source|get_community_report|explore_graph|local_search|index_documents)\(", call
    )
    if not ours or "corpus=" in call:
        return call
    return f'{call[:-1]}{"" if call.endswith("()") else ", "}corpus="{corpus}")'


@contextmanager
def telling(tool: str) -> Iterator[None]:
    """The one place where failures become text for a model: ours as they are, anything else without
    its insides."""
    try:
        yield
    except ToolError:
        raise
    except GraphRAGError as error:
        said = str(too_many_files() if out_of_files(error) else error)
        raise ToolError(encodable(" ".join([said, *(REMARKS.get() or ())]))) from None
    except Exception as error:
        raise _untaught(tool, error) from None


def _untaught(tool: str, error: Exception) -> ToolError:
    """What a model is told of a failure that is not one of ours."""
    if out_of_files(error):
        log.error("%s could not open a file", tool, exc_info=error)
        return ToolError(str(too_many_files()))
    if isinstance(error, OSError):
        log.error("%s could not read or write", tool, exc_info=error)
        said = f"{error.strerror or type(error).__name__}: {error.filename or 'the index folder'}"
        advice = (
            "Free disk space or give this user the right to read and write there, then call again."
        )
        return ToolError(encodable(f"{tool} could not read or write ({said}). {advice}"))
    # The same error has the same mark: a log that counts repetitions has it once.
    mark = hashlib.sha256(repr((type(error).__name__, place_of(error))).encode()).hexdigest()[:8]
    log.error("internal error in %s (%s)", tool, mark, exc_info=error)
    other = (
        "graph_status" if tool.startswith(("search", "graph", "index", "cancel")) else "search_text"
    )
    return ToolError(
        f"internal error in {tool} (logged as {mark}). Try {other}, or other arguments."
    )


def too_long(model: type[Result], tool: str, call: str) -> Result:
    """What a call says that ran out of time."""
    return model(
        state="partial",
        text=f"{tool} was not finished after {SECONDS:.0f} s.",
        hint="Try again (what was read is warm now), with a shorter question or a smaller max_tokens.",
        next_call=call,
    )


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**12 else "of that size"
