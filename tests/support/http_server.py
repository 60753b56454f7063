"""A server over HTTP in a process of its own, requests to it, and MCP clients of it."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.command import ROOT, SAMPLE, clean_environment
from tests.support.workload import until

ALICE, BOB = "alice-canary-4f9c2d71e0b8", "bob-canary-91aa30c7f6d2"
TOKENS = f"alice={ALICE},bob={BOB}"
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


HOST = ("Host", "127.0.0.1:{port}")


@contextmanager
def running(command: list[str], log: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server in a process of its own, and its port."""
    with open(log, "wb") as errors:
        process = subprocess.Popen(command, stderr=errors, cwd=ROOT, env=clean_environment(**environment))
    try:
        pattern = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)/mcp")
        until(lambda: pattern.search(log.read_bytes()) or process.poll() is not None)
        said = pattern.search(log.read_bytes())
        assert said and process.poll() is None, log.read_text("utf-8")
        yield process, int(said[1])
    finally:
        process.kill()
        process.wait(60)


def served(home: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "graphrag_mcp", "serve", "--http", "--tools", "all", "--port", "0", "--home", str(home), "--root", str(SAMPLE), *options]


def asked(port: int, headers: list[tuple[str, str]], method: str = "POST", path: str = "/mcp") -> tuple[int, str, dict[str, str]]:
    """One request with exactly these headers; {port} in a value is the server's. The status is 0 where the server closed the
    connection before it had read all of the request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    body = json.dumps(HELLO).encode() if method == "POST" else b""
    usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"), ("Content-Length", str(len(body)))]
    for name, value in [*headers, *usual]:
        connection.putheader(name, value.replace("{port}", str(port)))
    connection.endheaders(body)
    try:
        response = connection.getresponse()
    except ConnectionResetError:
        return 0, "", {}
    found = response.status, response.read(4_000).decode("utf-8", "replace"), {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return found


@asynccontextmanager
async def client(port: int, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as transport:
        async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=transport), mode=mode) as connected:
            yield connected


async def good(who: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await who.call_tool(tool, arguments)
    assert not result.is_error, result.content
    text = result.content[0].text
    cursor = re.search(r'cursor="([^"]+)"', text)
    read = {"text": text, "next_cursor": cursor[1] if cursor else "", "ids": re.findall(r"^\[(t[\d.]+)\]", text, re.MULTILINE)}
    return result.structured_content or read


async def bad(who: Client, tool: str, **arguments: Any) -> str:
    result = await who.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text


