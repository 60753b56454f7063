"""The MCP server: from settings to tools, served over stdio.

The SDK is imported inside functions only: a host waits for `initialize` and `tools/list`, so what
the first search needs is imported behind them. A line on stdin that the SDK would drop without a
word is corrected (half an emoji) or refused with its id, else the host waits."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import partial
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, cast

from graphrag_mcp import __version__
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import start
from graphrag_mcp.llm.prompts import load as load_prompt
from graphrag_mcp.logs import to_stderr
from graphrag_mcp.settings import Settings
from graphrag_mcp.trust.fencing import HOME, SHOW_SECRETS, SUBJECT
from graphrag_mcp.types import is_object

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.tools import Tool

    from graphrag_mcp.app import App
    from graphrag_mcp.tools.contract import Desk
    from graphrag_mcp.tools.resources import Updates


PARSE_ERROR, INVALID_REQUEST = -32700, -32600
WARM_AFTER = 1.5  # seconds: hosts that never list tools are warmed too
LONGEST_NAME = 200  # characters of a tool's name
LAST_MOMENTS = 1.5  # seconds for small jobs to end after the client has gone; hosts kill after 2

_HALVES = re.compile("[\ud800-\udfff]")  # after parsing, whole pairs are one character
_NO_JSON = "this line is no JSON that can be read. Send each message on a line of its own."
_NO_REQUEST = (
    'this is no request. It needs jsonrpc "2.0", an id that is text or a whole number, a method, and '
    "params that are an object, not nested 200 levels deep. Send each on a line of its own."
)

log = logging.getLogger(__name__)


# ---- lines on stdin -------------------------------------------------------------------------------


class Incoming:
    """The lines of a file, for `stdio_server`. `answer` sends a message to the other side."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines
        self.answer: Callable[[Any], Awaitable[None]] | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        from mcp.shared.message import SessionMessage
        from mcp.types import ErrorData, JSONRPCError

        async for line in self.lines:
            good, refusal = checked(line.strip().lstrip("\ufeff"))
            if good:
                yield good
            elif refusal and self.answer is not None:
                id, code, message = refusal
                error = ErrorData(code=code, message=message)
                await self.answer(SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error)))


def checked(line: str) -> tuple[str, tuple[str | int | None, int, str] | None]:
    """The line, corrected, or "" and a refusal (id, code, message; none of what has no id)."""
    from mcp.types import jsonrpc_message_adapter

    if not line:
        return "", None
    try:
        message = json.loads(line)
        if "\\u" in line:
            line = _HALVES.sub("\ufffd", json.dumps(message, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "", (None, PARSE_ERROR, _NO_JSON)
    if not isinstance(message, dict):
        return "", (None, INVALID_REQUEST, _NO_REQUEST)
    message = cast(dict[str, Any], message)
    id = message.get("id")
    named = isinstance(id, int | str) and not isinstance(id, bool) and not _HALVES.search(str(id))
    if named or "id" not in message:  # else the SDK takes it for a notification
        with contextlib.suppress(ValueError):
            jsonrpc_message_adapter.validate_json(line, by_name=False)
            return line, None
    if "id" not in message and "method" in message or message.keys() & {"result", "error"}:
        return "", None
    return "", (id if named else None, INVALID_REQUEST, _NO_REQUEST)


# ---- the server -----------------------------------------------------------------------------------


def build_server(
    app: App,
    tools: str = "all",
    read_only: bool = False,
    compat: bool = False,
    *,
    more: Sequence[Tool] = (),
    warm: bool = False,
) -> MCPServer[Any]:
    """A server over `app`: the same over stdio, HTTP, in memory, or any other transport.

    `tools` is all, core or index; `read_only` leaves out every tool that writes; `compat` adds
    search and fetch; `more` are tools of the one who embeds it. With `warm`, the heavy imports and
    the default corpus are opened in a thread, after the first tools/list."""
    return build(app, tools, read_only, compat, more=more, warm=warm)[0]


def build(
    app: App,
    tools: str = "all",
    read_only: bool = False,
    compat: bool = False,
    *,
    more: Sequence[Tool] = (),
    warm: bool = False,
) -> tuple[MCPServer[Any], Desk]:
    """The server of `build_server`, and what its calls share, for calls that come without MCP."""
    import anyio
    from mcp.server import MCPServer

    from graphrag_mcp.tools import WRITERS, offered, prompts, resources, with_page
    from graphrag_mcp.tools.contract import THREADS, WAITING, Desk

    app.read_only = app.read_only or read_only
    warmer = _Once(app.warm if warm else lambda: None)
    has = {"model": bool(app.settings.chat_model), "notes": bool(app.settings.notes)}
    plain = [*offered(tools, read_only, compat, writers=True, **has), *more]
    if app.settings.notes and not read_only:
        app.notes_folder()  # or the server does not start
    all_tools, extensions = with_page(plain)
    updates = resources.Updates(app)
    names = {tool.name for tool in all_tools}
    waits = app.settings.chat_model or app.settings.embedding_model or app.store
    desk = Desk(app, anyio.CapacityLimiter(WAITING if waits else THREADS), all_tools)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[Desk]:
        warmer.start(WARM_AFTER)
        # One that only reads leaves the work of dead processes to others.
        keeping = contextlib.nullcontext() if read_only else start.keeping(app.settings)
        async with anyio.create_task_group() as updates.tasks:
            tasks = updates.tasks
            with keeping:
                yield desk
            tasks.cancel_scope.cancel()

    server: MCPServer[Any] = MCPServer(
        "graphrag-mcp",
        title="GraphRAG",
        version=__version__,
        tools=all_tools,
        instructions=_instructions(names),
        lifespan=lifespan,
        middleware=[
            cast(Any, _door(app, updates, warmer, WRITERS.get(tools, frozenset())))
        ],  # its type asks for a coroutine of the compiler's
        extensions=extensions,
        subscriptions=updates.bus,
        log_level="WARNING",
    )
    resources.register(server, app)
    prompts.register(server, app, names)
    prompts.register_completion(server, app)
    updates.attach(server)
    return server, desk


def _door(app: App, updates: Updates, warmer: _Once, writers: Collection[str]) -> Callable[..., Awaitable[Any]]:
    """Middleware: who calls and whose home it is, then what some methods need beside the SDK. The
    tools `writers` are listed while there is something to write, and the argument `corpus` where
    there are several (but for the tool that makes them)."""

    import anyio.to_thread
    from mcp import MCPError
    from mcp.types import INVALID_PARAMS

    from graphrag_mcp.tools.limits import excess

    async def door(ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        user = getattr(ctx.request, "scope", {}).get("user")  # of a token that http.py has verified
        if ctx.method != "tools/call" and (what := excess(ctx.params or {})):
            raise MCPError(INVALID_PARAMS, f"{what[:1].upper()}{what[1:]}")
        params = ctx.params if is_object(ctx.params) else {}
        called = str(params.get("name", "")) if ctx.method == "tools/call" else ""
        if len(called) > LONGEST_NAME or not called.isprintable():  # the SDK would repeat it
            raise MCPError(INVALID_PARAMS, f"there is no tool {called[:60]!r}")
        SUBJECT.set(str(user.display_name) if user is not None and user.is_authenticated else "")
        SHOW_SECRETS.set(app.settings.show_secrets)
        HOME.set(app.home)
        if ctx.method == "subscriptions/listen":
            return await updates.listen(ctx, call_next)
        if ctx.method == "tools/list":
            warmer.start(0.1)  # the answer is written first
        if ctx.method in ("tools/list", "resources/list"):
            result = await _without_page(ctx, call_next)
            if is_object(result) and "tools" in result:
                hidden = writers if await anyio.to_thread.run_sync(app.all_written) else ()
                kept = [tool for tool in result["tools"] if tool["name"] not in hidden]
                if len(await anyio.to_thread.run_sync(app.corpora)) < 2:
                    kept = [_of_the_only_corpus(tool) for tool in kept]
                result = {**result, "tools": kept}
            return result
        return await call_next(ctx)

    return door


def _of_the_only_corpus(tool: dict[str, Any]) -> dict[str, Any]:
    """The tool as it is listed where no call has to say which corpus it means."""
    schema = tool["inputSchema"]
    if tool["name"] == "index_documents" or "corpus" not in schema["properties"]:
        return tool
    kept = {name: argument for name, argument in schema["properties"].items() if name != "corpus"}
    return {**tool, "inputSchema": {**schema, "properties": kept}}


async def _without_page(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """A list of tools or resources; for a client that renders no apps without what is the page's."""
    from mcp.server.apps import client_supports_apps

    from graphrag_mcp.tools.explorer import TOOL, URI

    result = await call_next(ctx)
    if client_supports_apps(ctx) or not isinstance(result, dict):
        return result
    result = cast(dict[str, list[dict[str, Any]]], result)
    for name in {"tools", "resources"} & result.keys():
        kept = [entry for entry in result[name] if entry["name"] != TOOL and entry.get("uri") != URI]
        result[name] = [{key: value for key, value in entry.items() if key != "_meta"} for entry in kept]
    return result


def _instructions(names: set[str]) -> str:
    """When to use which tool, without the lines about tools that this server does not offer."""
    from graphrag_mcp.tools import TOOLS

    absent = {function.__name__ for function, _, _ in TOOLS} - names
    lines = load_prompt("server_instructions").template.splitlines()
    return "\n".join(line for line in lines if absent.isdisjoint(re.findall(r"\w+", line)))


class _Once:
    """Runs a function in a daemon thread, once, after the shortest of the delays given."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work, self.begun = work, threading.Lock()

    def start(self, delay: float) -> None:
        timer = threading.Timer(delay, self._run)
        timer.daemon = True
        timer.start()

    def _run(self) -> None:
        if not self.begun.acquire(blocking=False):
            return
        try:
            self.work()
        except Exception as error:
            log.warning("warming up failed: %s", error)


# ---- over stdio -----------------------------------------------------------------------------------


def serve(settings: Settings, *, corpus: str = "", read_only: bool = False, **offer: Any) -> None:
    """Serve `build_server(app, **offer)` over stdio until the client goes away, then end the process
    whatever threads run."""
    wire = take_stdio()
    to_stderr()

    def work() -> None:
        import anyio

        from graphrag_mcp.app import App

        server = build_server(App(settings, corpus), read_only=read_only, **offer, warm=True)
        anyio.run(_serve, server, wire)

    afterwards = (lambda: None) if read_only else partial(start.hand_over, settings)
    to_the_end(work, LAST_MOMENTS, afterwards)


async def _serve(server: MCPServer[Any], wire: tuple[Any, Any]) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    # run_stdio_async would take fd 1 as it finds it, which is stderr by now.
    lowlevel = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    incoming: Any = Incoming(anyio.wrap_file(wire[0]))
    async with stdio_server(incoming, anyio.wrap_file(wire[1])) as (read, write):
        incoming.answer = write.send
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


def take_stdio() -> tuple[TextIOWrapper, TextIOWrapper]:
    """The protocol's (in, out); fd 0 is empty, fd 1 and sys.stdout are stderr from now on.

    Unlike the SDK's for good: C libraries write their buffers when the process ends."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    sys.stdout.flush()  # what was printed before goes to stderr too
    sys.stdout = sys.stderr
    sys.stdin = open(os.devnull, encoding="utf-8")
    # closefd=False: a thread may block on it when the interpreter ends.
    return (
        TextIOWrapper(os.fdopen(incoming, "rb", closefd=False), encoding="utf-8", errors="replace"),
        TextIOWrapper(os.fdopen(outgoing, "wb", closefd=False), encoding="utf-8", newline="\n"),
    )


def to_the_end(work: Callable[[], None], seconds: float, afterwards: Callable[[], None] = lambda: None) -> None:
    """Do `work`, leave small jobs in threads of this process some seconds, and end the process. A
    thread may still read stdin, or an abandoned search run: they are not waited for."""
    status = 0
    try:
        work()
    except KeyboardInterrupt:
        status = 130
    except Exception as error:
        # Of what the person can mend, the reason is enough.
        log.error("the server ended: %s", error, exc_info=not isinstance(error, GraphRAGError))
        status = 1
    end = time.monotonic() + seconds
    for thread in threading.enumerate():
        if thread.name.startswith("job-"):
            thread.join(max(0.0, end - time.monotonic()))
    afterwards()
    logging.shutdown()
    os._exit(status)
