"""What the conformance suite calls by fixed names, beside the product's own tools: content of every kind, input asked for.

Takes a context of the SDK; gives the smallest thing that the specification accepts. Nothing of the product is tested by
these alone: they show that its server, middleware and transports carry everything that the protocol has.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    MissingRequiredClientCapabilityErrorData,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png() -> bytes:
    """One red pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00")) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def wav() -> bytes:
    """Eight samples of silence."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", 8) + b"\x80" * 8
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNG, WAV = base64.b64encode(png()).decode(), base64.b64encode(wav()).decode()


def embedded(uri: str, text: str, mime: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime, text=text))


# ---- content of every kind ----------------------------------------------------------------------------


async def test_simple_text() -> str:
    """Answers with a line of text."""
    return "One line of text."


async def test_image_content() -> list[ImageContent]:
    """Answers with an image."""
    return [ImageContent(type="image", data=PNG, mime_type="image/png")]


async def test_audio_content() -> list[AudioContent]:
    """Answers with a sound."""
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


async def test_embedded_resource() -> list[EmbeddedResource]:
    """Answers with a resource inside."""
    return [embedded("test://embedded-resource", "Text of an embedded resource.")]


async def test_multiple_content_types() -> list[Any]:
    """Answers with text, image and resource together."""
    return [
        TextContent(type="text", text="Three kinds of content:"),
        ImageContent(type="image", data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", json.dumps({"kinds": 3}), "application/json"),
    ]


async def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This call fails on purpose. Expect that.")


# ---- notifications on the way ----------------------------------------------------------------------------


async def test_tool_with_progress(ctx: Context) -> str:
    """Tells its progress three times."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await anyio.sleep(0.05)
    return "Told three times."


async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three times, in the protocol revisions that have logging."""
    for text in ("begun", "at work", "done"):
        message = LoggingMessageNotification(params=LoggingMessageNotificationParams(level="info", data=text))
        await ctx.session.send_notification(message, related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    return "Logged three times."


async def test_logging_tool() -> str:
    """Logs nothing: nobody set a level."""
    return "Nothing was logged."


async def test_trigger_tool_change(ctx: Context) -> str:
    """Says that the list of tools changed."""
    await ctx.notify_tools_changed()
    return "Said."


async def test_trigger_prompt_change(ctx: Context) -> str:
    """Says that the list of prompts changed."""
    await ctx.notify_prompts_changed()
    return "Said."


# ---- asking back: the revisions with sessions -------------------------------------------------------------


async def _asked(ctx: Context, request: Any, answer: type[Any]) -> Any:
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, answer, metadata=metadata)


def form(message: str, **properties: Any) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Lets the client's model answer."""
    reply = await _asked(ctx, sampling(prompt), CreateMessageResult)
    return f"The model said: {getattr(reply.content, 'text', '')}"


async def _elicited(ctx: Context, request: ElicitRequest) -> str:
    reply = await _asked(ctx, request, ElicitResult)
    return f"action={reply.action}, content={json.dumps(reply.content)}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user for two fields."""
    text = {"type": "string", "description": "as the user writes it"}
    return await _elicited(ctx, form(message, username=text, email=text))


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user for fields that have defaults."""
    return await _elicited(ctx, form(
        "Correct what is wrong", name={"type": "string", "default": "John Doe"}, age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5}, verified={"type": "boolean", "default": True},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    ))  # fmt: skip


async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user to choose, in the five ways that a schema can say it."""
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["First", "Second", "Third"]}
    return await _elicited(ctx, form(
        "Choose", untitledSingle={"type": "string", "enum": plain}, titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", **legacy}, untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    ))  # fmt: skip


# ---- asking back: the stateless revision --------------------------------------------------------------------

NAME = {"type": "string"}
Again = InputRequiredResult


def _answers(ctx: Context, *wanted: str) -> dict[str, Any] | None:
    """The client's answers when all that are wanted are there and usable; else None."""
    given = ctx.input_responses or {}
    usable = all(key in given and getattr(given[key], "action", "accept") == "accept" for key in wanted)
    return dict(given) if usable else None


async def test_input_required_result_elicitation(ctx: Context) -> Any:
    """Asks for a name, then greets."""
    given = _answers(ctx, "user_name")
    if given is None:
        return Again(input_requests={"user_name": form("What is your name?", name=NAME)})
    return f"Hello, {given['user_name'].content['name']}!"


async def test_input_required_result_sampling(ctx: Context) -> Any:
    """Lets the client's model answer in a second round."""
    given = _answers(ctx, "capital_question")
    if given is None:
        return Again(input_requests={"capital_question": sampling("What is the capital of France?")})
    return str(getattr(given["capital_question"].content, "text", "no text"))


async def test_input_required_result_list_roots(ctx: Context) -> Any:
    """Asks for the client's folders."""
    given = _answers(ctx, "client_roots")
    if given is None:
        return Again(input_requests={"client_roots": ListRootsRequest()})
    return ", ".join(str(root.uri) for root in given["client_roots"].roots)


async def test_input_required_result_request_state(ctx: Context) -> Any:
    """Carries its state through the client."""
    given = _answers(ctx, "confirm")
    if given is None or ctx.request_state is None:
        return Again(input_requests={"confirm": form("Go on?", ok={"type": "boolean"})}, request_state="first round")
    return "state-ok" if ctx.request_state == "first round" else "state-lost"


async def test_input_required_result_multiple_inputs(ctx: Context) -> Any:
    """Asks for three things at once."""
    given = _answers(ctx, "user_name", "greeting", "client_roots")
    if given is None:
        requests = {"user_name": form("What is your name?", name=NAME), "greeting": sampling("Greet"),
                    "client_roots": ListRootsRequest()}  # fmt: skip
        return Again(input_requests=requests, request_state="three things")
    return f"{len(given)} answers, state {ctx.request_state}"


async def test_input_required_result_multi_round(ctx: Context) -> Any:
    """Asks twice, one after the other."""
    given, state = ctx.input_responses or {}, ctx.request_state
    if state == "round 2" and "step2" in given:
        return "Both steps are done."
    if state == "round 1" and "step1" in given:
        return Again(input_requests={"step2": form("Step 2: your colour?", color=NAME)}, request_state="round 2")
    return Again(input_requests={"step1": form("Step 1: your name?", name=NAME)}, request_state="round 1")


async def test_input_required_result_tampered_state(ctx: Context) -> Any:
    """Has state that nobody may change on the way."""
    if _answers(ctx, "confirm") is None:
        return Again(input_requests={"confirm": form("Go on?", ok={"type": "boolean"})}, request_state="sealed")
    return f"state was {ctx.request_state}"


async def test_input_required_result_capabilities(ctx: Context) -> Any:
    """Asks only for what the client said that it can do."""
    can = ctx.client_capabilities
    requests: dict[str, Any] = {}
    if can is not None and can.sampling is not None:
        requests["greeting"] = sampling("Greet")
    if can is not None and can.elicitation is not None:
        requests["user_name"] = form("What is your name?", name=NAME)
    return Again(input_requests=requests) if requests and not ctx.input_responses else "Nothing more is needed."


async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that has a model."""
    if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
        needed = MissingRequiredClientCapabilityErrorData(
            required_capabilities=ClientCapabilities(sampling=SamplingCapability())
        )
        data = needed.model_dump(by_alias=True, mode="json", exclude_none=True)
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling.", data)
    return "The client has a model."


async def test_streaming_elicitation(ctx: Context) -> Any:
    """Tells its progress and then asks, on one stream."""
    await ctx.report_progress(1, 2)
    if _answers(ctx, "user_name") is None:
        return Again(input_requests={"user_name": form("What is your name?", name=NAME)})
    return "Thank you."


def tools() -> list[Tool]:
    """All of them, as the product's server takes more tools."""
    found: list[Callable[..., Any]] = [
        value for name, value in globals().items() if name.startswith("test_") and callable(value)
    ]
    return [Tool.from_function(function, structured_output=False) for function in found]
