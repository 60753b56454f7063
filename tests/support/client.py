"""Shared by the tests of the server: a client whose calls look synchronous, and the command that a host starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.from_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult

from graphrag_mcp.packing.sending import wire
from graphrag_mcp.tools import contract
from graphrag_mcp.types import Result
from tests.support.command import ROOT

FIELDS: dict[str, dict[str, Any]] = {}  # of the results of servers in this process, by their text
_send = contract._sent


def _sent(result: Result) -> CallToolResult:
    """As the server sends it; what the engine gave is kept for `Caller.good`."""
    sent = _send(result)
    FIELDS[sent.content[0].text] = wire(result)
    return sent


contract._sent = _sent


@dataclass
class Caller:
    """A client whose calls look synchronous."""

    portal: anyio.from_thread.BlockingPortal
    client: Client

    def __call__(self, tool: str, **arguments: Any) -> CallToolResult:
        return self.portal.call(lambda: self.client.call_tool(tool, arguments))

    def good(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call that must work: what is sent, and where the server runs in this process the fields
        that the engine gave beside its text."""
        result = self(tool, **arguments)
        text = result.content[0].text
        assert not result.is_error, text
        assert text.strip()
        if result.structured_content is not None:
            assert result.structured_content["text"] == text
            return {**FIELDS.get(text, {}), **result.structured_content}
        return {**FIELDS.get(text, {}), "text": text}

    def bad(self, tool: str, **arguments: Any) -> str:
        """What a call that cannot work says: two sentences without the SDK's or pydantic's own words."""
        result = self(tool, **arguments)
        text = result.content[0].text
        assert result.is_error, text
        for noise in ("Error executing", "pydantic", "validation error", "Traceback", "internal error"):
            assert noise not in text
        assert text.endswith((".", "?")) and text.count(". ") + text.count("? ") + text.count("; ") >= 1, text
        assert len(text) < 1500
        return text


@contextmanager
def connected(target: Any, **options: Any) -> Iterator[Caller]:
    with anyio.from_thread.start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(Client(target, **options)) as client:
            yield Caller(portal, client)


def over_stdio(home: Path, *roots: Path) -> StdioServerParameters:
    """The command that a host's configuration starts."""
    environment = {
        "GRAPHRAG_MCP_HOME": str(home), "GRAPHRAG_MCP_ROOTS": os.pathsep.join(map(str, roots)),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return StdioServerParameters(command=sys.executable, args=["-m", "graphrag_mcp", "serve", "--tools", "all"], env=environment, cwd=str(roots[0]))


def item_texts(claimed: dict[str, Any]) -> dict[str, str]:
    """What claim_work gives to read, by work id."""
    found: dict[str, str] = {}
    for item in claimed["items"]:
        head = f"## {item['work_id']} ({item['kind']})\n"
        found[item["work_id"]] = claimed["text"].partition(head)[2].partition("\n\n## ")[0]
    return found
