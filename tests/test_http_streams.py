"""What a client is told over HTTP: of a stream that it lost, and why it was refused."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.test_http import ALICE, HOST, TOKENS, asked, running, served


def test_who_wants_a_stream_resumed_gets_a_new_one(tmp_path: Path) -> None:
    with running(served(tmp_path), tmp_path / "log") as (_, port):
        session = asked(port, [HOST])[2]["mcp-session-id"]
        with socket.create_connection(("127.0.0.1", port), timeout=20) as door:
            wanted = f"Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: 7\r\n"
            door.sendall(f"GET /mcp HTTP/1.1\r\n{wanted}\r\n".encode())
            assert door.recv(2000).startswith(b"HTTP/1.1 200")
        assert b"Traceback" not in (tmp_path / "log").read_bytes()


def test_a_client_is_told_why_it_may_not_come_in_and_what_is_too_large(tmp_path: Path) -> None:
    """Before, a client said "Server returned an error response" of all of them."""
    with running(served(tmp_path), tmp_path / "log", GRAPHRAG_MCP_TOKENS=TOKENS) as (_, port):
        url, alice = f"http://127.0.0.1:{port}/mcp", {"Authorization": f"Bearer {ALICE}"}

        async def story() -> None:
            for headers, said in (
                ({"Authorization": "Bearer wrong-canary-91aa30c7f6d2"}, "a valid bearer token is needed"),
                ({**alice, "Origin": "http://evil.example"}, "pages of that Origin may not use this server"),
            ):
                with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match=said), flatten_subgroups=True, allow_unwrapped=True):
                    async with httpx2.AsyncClient(headers=headers) as http:
                        async with Client(streamable_http_client(url, http_client=http), mode="legacy"):
                            pass
            async with httpx2.AsyncClient(headers=alice, timeout=60) as http:
                async with Client(streamable_http_client(url, http_client=http)) as client:
                    with pytest.raises(MCPError, match="over 4 MiB. Give long texts as files"):
                        await client.call_tool("index_documents", {"texts": [{"id": "x", "text": "word " * 900_000}]})

        anyio.run(story)
