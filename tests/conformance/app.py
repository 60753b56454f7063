"""The product's server over HTTP, with or without the fixtures of the conformance suite, on a free port.

Run as `python -m tests.conformance.app [--fixtures] HOME`; prints its address on the first line and serves until it is
stopped. The server is `build_server()` behind the product's own HTTP door: the same lifespan, middleware and checks.
Without fixtures, the names of fixtures that a client asks for are written to HOME/asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import EmptyResult, ImageContent, InputRequiredResult, SetLevelRequestParams

from graphrag_mcp.app import App
from graphrag_mcp.http import Door, address_of, listening, run
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


class Asked:
    """An application that writes down which fixtures requests name, in front of one that has none."""

    def __init__(self, app: Any, path: Path) -> None:
        self.app, self.path, self.router = app, path, getattr(app, "router", None)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""

        async def noting() -> Any:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            if message["type"] == "http.request" and not message.get("more_body"):
                self.note(body)
            return message

        await self.app(scope, noting if scope["type"] == "http" else receive, send)

    def note(self, body: bytes) -> None:
        try:
            params = json.loads(body).get("params") or {}
        except ValueError:
            return
        parts = (params, params.get("ref") or {})
        names = [str(part.get(key, "")) for part in parts for key in ("name", "uri")]
        # One scenario asks for what no server has, on purpose.
        found = [name for name in names if name.startswith(("test_", "test://")) and "nonexistent" not in name]
        if found:
            with open(self.path, "a", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in found)


def main(arguments: list[str]) -> None:
    home, fixed = Path(arguments[-1]), "--fixtures" in arguments
    home.mkdir(parents=True, exist_ok=True)
    app = App(Settings(home=home, roots=()))
    door = Door.of_servers({"": with_fixtures(app) if fixed else build_server(app, compat=True)})
    if not fixed:
        door.apps = {"": Asked(door.apps[""], home / "asked")}
    listener = listening("127.0.0.1", 0)
    sys.stdout.write(address_of(listener) + "\n")
    sys.stdout.flush()
    asyncio.run(run(door, listener))


if __name__ == "__main__":
    main(sys.argv[1:])
