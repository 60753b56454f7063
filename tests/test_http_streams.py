"""Streams over HTTP: what a client may ask of one that lost it."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.test_http import HOST, asked, running, served


def test_who_wants_a_stream_resumed_gets_a_new_one(tmp_path: Path) -> None:
    with running(served(tmp_path), tmp_path / "log") as (_, port):
        session = asked(port, [HOST])[2]["mcp-session-id"]
        with socket.create_connection(("127.0.0.1", port), timeout=20) as door:
            wanted = f"Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: 7\r\n"
            door.sendall(f"GET /mcp HTTP/1.1\r\n{wanted}\r\n".encode())
            assert door.recv(2000).startswith(b"HTTP/1.1 200")
        assert b"Traceback" not in (tmp_path / "log").read_bytes()
