"""The tools as JSON over HTTP, without MCP: `POST /api/TOOL`, described by `GET /api/openapi.json`.

A call takes the arguments of the tool as a JSON object. Its result is the whole result of the engine:
the fields that MCP clients get only as text, such as the citations of a search, are there as well. With
`Accept: text/event-stream` the answer is a stream of events: `progress` while the tool works, then one
`result` or `error`. The door of http.py has checked Host, Origin and token before a request comes here,
and has named the caller; a request of another content type than JSON is refused, so that a web page of
another origin cannot send one without asking first, which nothing here answers."""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, TextContent

from graphrag_mcp import __version__, types
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound, OutsideRoots
from graphrag_mcp.explorer.page import body_of, caller, json_response
from graphrag_mcp.packing.sending import shown
from graphrag_mcp.tools import all_tools
from graphrag_mcp.tools.contract import API_CALL, LATE, ApiCall, Desk, encodable, sendable
from graphrag_mcp.tools.limits import too_many_values
from graphrag_mcp.trust import fencing
from graphrag_mcp.types import is_object

if TYPE_CHECKING:
    from mcp.server.mcpserver.tools import Tool
    from starlette.requests import Request
    from starlette.responses import Response

BASE = "/api"
LONGEST = 4 * 1024 * 1024  # bytes of a call, as over MCP
EVENTS = "text/event-stream"
# Kinds of result of tools that never take too long (contract.toml lists those of the others).
KINDS: dict[str, type[types.Result]] = {
    **{tool: kind for tool, (kind, _) in LATE.items()},
    "index_documents": types.IndexResult,
    "cancel_job": types.StatusResult,
}
_NO_JSON = 'The body is no JSON object. Send the arguments of the tool, such as {"query": "..."}.'
_NO_TYPE = "The content type must be application/json."

log = logging.getLogger(__name__)

Handler = Callable[["Request"], Awaitable["Response"]]
Send = Callable[[str, Any], None]


def routes(desk: Desk, as_owner: bool = False) -> list[tuple[str, str, Handler]]:
    """(path, method, handler) of the tools of a desk. With `as_owner` the caller is the user of this
    machine, whatever token was given."""
    return [
        (f"{BASE}/openapi.json", "GET", partial(_openapi, cache(partial(openapi, desk)))),
        (f"{BASE}/{{tool}}", "POST", partial(_called, desk, as_owner)),
    ]


# ---- calls ------------------------------------------------------------------------------------------


@dataclass
class _Session:
    """What tools ask of a client's session: its name, and to be told of progress."""

    send: Send

    client_params = SimpleNamespace(client_info=SimpleNamespace(name="api"))
    client_capabilities = None
    can_send_request = False

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        fields = {"progress": progress, "total": total, "message": message}
        self.send("progress", {name: value for name, value in fields.items() if value is not None})


async def _called(desk: Desk, as_owner: bool, request: Request) -> Response:
    name = request.path_params["tool"]
    tool = next((tool for tool in desk.tools if tool.name == name), None)
    if tool is None:
        return _failed(404, _no_tool(desk, name))
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != ("application/json"):
        return _failed(415, _NO_TYPE)
    body = await body_of(request, LONGEST)
    if body is None:
        return _failed(413, f"The request is over {LONGEST // 2**20} MiB.")
    if what := too_many_values(body):
        return _failed(413, what)
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        arguments = None
    if not is_object(arguments):
        return _failed(400, _NO_JSON)
    caller(desk.app, request, as_owner)
    if EVENTS in request.headers.get("accept", ""):
        return _streamed(partial(_answer, desk, tool, arguments, request))
    status, found = await _answer(desk, tool, arguments, request, lambda _, __: None)
    return json_response(found, status)


async def _answer(
    desk: Desk, tool: Tool, arguments: dict[str, Any], request: Request, send: Send
) -> tuple[int, dict[str, Any]]:
    """(HTTP status, JSON) of a call. `send(event, data)` is told of progress."""
    session = cast(Any, _Session(send))
    request_context = ServerRequestContext[Desk, Any](
        session=session, lifespan_context=desk, protocol_version="", method="tools/call", request=request
    )
    call = ApiCall()
    token = API_CALL.set(call)
    try:
        sent = await tool.run(arguments, Context(request_context=request_context), convert_result=True)
    except UnexpectedToolError as error:
        log.error("%s failed", tool.name, exc_info=error)
        return 500, {"error": f"internal error in {tool.name}."}
    except ToolError as error:
        return _status(call.error), {"error": encodable(str(error))}
    finally:
        API_CALL.reset(token)
    if call.result is not None and call.error is None:  # a failed job is a result as well
        fields = shown(call.result.model_dump(mode="json"), fencing.clean)
        fields["text"] = call.result.text  # clean, and in marks of its own: cleaned again they would be broken
        return 200, sendable(fields)
    if not isinstance(sent, CallToolResult):  # of a tool that an embedder has added
        return 200, {"result": sendable(sent)}
    text = "\n".join(part.text for part in sent.content if isinstance(part, TextContent))
    if sent.is_error:
        return _status(call.error), {"error": text}
    return 200, sent.structured_content or {"text": text}


def _status(error: Exception | None) -> int:
    """The HTTP status of a failed call; wrong arguments have no exception."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, OutsideRoots):
        return 403
    if error is None or isinstance(error, BadInput | GraphRAGError):
        return 400
    return 500


def _streamed(answer: Callable[[Send], Awaitable[tuple[int, dict[str, Any]]]]) -> Response:
    """The call as events; it ends when its client goes away."""
    from starlette.responses import StreamingResponse

    from graphrag_mcp.explorer.page import HEADERS

    async def events() -> AsyncGenerator[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()

        def send(event: str, data: Any) -> None:
            text = json.dumps(sendable(data), ensure_ascii=False)
            queue.put_nowait(f"event: {event}\ndata: {text}\n\n")

        async def work() -> None:
            try:
                status, found = await answer(send)
                send("result" if status == 200 else "error", found)
            finally:
                queue.put_nowait("")  # the end

        task = asyncio.create_task(work())
        try:
            while text := await queue.get():
                yield text
            await task
        finally:
            task.cancel()

    return StreamingResponse(events(), 200, HEADERS, EVENTS)


def _failed(status: int, text: str) -> Response:
    return json_response({"error": text}, status)


def _no_tool(desk: Desk, name: str) -> str:
    names = [tool.name for tool in desk.tools]
    near = difflib.get_close_matches(name[:60], names, n=1)
    advice = f"The nearest is {near[0]}." if near else f"There are {', '.join(names)}."
    return encodable(f"This server has no tool {name[:60]!r}. {advice}")


# ---- its description --------------------------------------------------------------------------------


async def _openapi(described: Callable[[], dict[str, Any]], request: Request) -> Response:
    """Made once, apart from the loop that serves all others: it takes half a second."""
    from starlette.concurrency import run_in_threadpool

    return json_response(await run_in_threadpool(described))


def openapi(desk: Desk) -> dict[str, Any]:
    """The description of the tools of a desk in OpenAPI 3.1, from their schemas."""
    whole = {tool.name: tool for tool in all_tools()}  # with the arguments that lists leave out
    schemas: dict[str, Any] = {
        "Error": {
            "type": "object",
            "properties": {"error": {"type": "string", "description": "what is wrong, what to do"}},
            "required": ["error"],
        }
    }
    paths = {
        f"{BASE}/{tool.name}": {"post": _operation(tool, whole.get(tool.name, tool), schemas)} for tool in desk.tools
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "graphrag-mcp",
            "version": __version__,
            "description": "The tools of graphrag-mcp as JSON over HTTP.",
        },
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _operation(tool: Tool, whole: Tool, schemas: dict[str, Any]) -> dict[str, Any]:
    """One call. Adds the schemas of its result."""
    kind = KINDS.get(tool.name)
    if kind is not None:
        template = "#/components/schemas/{model}"
        found = kind.model_json_schema(ref_template=template, mode="serialization")
        schemas |= found.pop("$defs", {})
        schemas[kind.__name__] = found
        result: Mapping[str, Any] = {"$ref": template.format(model=kind.__name__)}
    else:
        result = tool.fn_metadata.output_schema or {"type": "object"}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    text = {"type": "string", "description": "events: progress, then result or error"}
    arguments = whole.parameters
    reads = tool.annotations is not None and tool.annotations.read_only_hint
    return {
        "operationId": tool.name,
        "summary": tool.title or tool.name,
        "description": tool.description,
        "tags": ["read" if reads else "write"],
        "requestBody": {
            "required": bool(arguments.get("required")),
            "content": {"application/json": {"schema": arguments}},
        },
        "responses": {
            "200": {
                "description": "the result",
                "content": {"application/json": {"schema": result}, EVENTS: {"schema": text}},
            },
            "400": {"description": "arguments that cannot be used", "content": error},
            "401": {"description": "no valid token"},
            "403": {"description": "a path outside of the allowed folders", "content": error},
            "404": {"description": "something named is not there", "content": error},
            "413": {"description": "a request over 4 MiB", "content": error},
            "500": {"description": "a fault of the server", "content": error},
        },
    }
