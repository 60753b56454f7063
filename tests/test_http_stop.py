"""A server over HTTP that is told to stop ends soon, whatever its callers leave half done."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.workload import PATIENCE
from tests.test_http import running, served


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM there")
def test_a_stop_does_not_wait_for_bodies_that_never_come(tmp_path: Path) -> None:
    head = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    begun = ['Content-Length: 1000\r\n\r\n{"jsonrpc"', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"jso', "Content-Le"]
    with running(served(tmp_path, "--port", "0"), tmp_path / "log") as (process, port):
        doors = []
        for rest in begun * 3:
            door = socket.create_connection(("127.0.0.1", port))
            door.sendall((head + rest).encode())
            doors.append(door)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        for door in doors:
            door.close()
