"""The product's server over HTTP, with or without the fixtures of the conformance suite, on a free port.

Run as `python -m tests.conformance.app [--fixtures] HOME`; prints its address on the first line and serves until it is
stopped. The server is `build_server()` behind the product's own HTTP door: the same lifespan, middleware and checks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import EmptyResult, ImageContent, InputRequiredResult, SetLevelRequestParams

from graphrag_mcp.app import App
from graphrag_mcp.http import address_of, http_app, listening
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.conformance import fixtures


def with_fixtures(app: App) -> MCPServer[Any]:
    """The product's server with what the suite asks for by name."""
    server = build_server(app, more=fixtures.tools())

    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A line of text."""
        return "Text of a resource that never changes."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """An image."""
        return fixtures.png()

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> dict[str, str]:
        """What belongs to an id."""
        return {"id": id, "data": f"what belongs to {id}"}

    @server.prompt()
    def test_simple_prompt() -> str:
        """A prompt without arguments"""
        return "A prompt that says this."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two arguments"""
        return f"The first is {arg1}, the second is {arg2}."

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        """A prompt with a resource inside"""
        return [UserMessage(fixtures.embedded(resourceUri, "Its text.")), UserMessage("Read this.")]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """A prompt with an image inside"""
        return [UserMessage(ImageContent(type="image", data=fixtures.PNG, mime_type="image/png")), UserMessage("Look.")]

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> Any:
        """A prompt that asks first"""
        if "user_context" not in (ctx.input_responses or {}):
            return InputRequiredResult(input_requests={"user_context": fixtures.form("Which context?", context=fixtures.NAME)})
        return "The prompt, with its context."

    async def set_level(_: Any, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    server._lowlevel_server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    return server


def main(arguments: list[str]) -> None:
    app = App(Settings(home=Path(arguments[-1]), roots=()))
    server = with_fixtures(app) if "--fixtures" in arguments else build_server(app, compat=True)
    listener = listening("127.0.0.1", 0)
    sys.stdout.write(address_of(listener) + "\n")
    sys.stdout.flush()
    config = uvicorn.Config(http_app(server), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1:])
