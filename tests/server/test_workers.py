"""One address served by several processes: a worker that is killed, and a stop in good order."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.http_server import running, served
from tests.support.workload import PATIENCE, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the processes are looked at in /proc")
ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def posted(port: int, body: dict, session: str = "", token: str = "", connection: http.client.HTTPConnection | None = None) -> tuple[int, str, str]:
    """(status, session, what came) of a request; on a connection of its own unless one is given."""
    one = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {**ACCEPTED, **({"Mcp-Session-Id": session} if session else {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    one.request("POST", "/mcp", json.dumps(body), headers)
    response = one.getresponse()
    found = response.status, response.getheader("Mcp-Session-Id", ""), response.read().decode()
    if connection is None:
        one.close()
    return found


def called(tool: str, **arguments: object) -> dict:
    return {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def processes(log: Path) -> dict[int, int]:
    """The process of each worker, the last where one was replaced."""
    return {int(number): int(process) for number, process in re.findall(r"worker (\d+) is process (\d+)", log.read_text("utf-8"))}


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@contextmanager
def workers(home: Path, log: Path, count: int = 2, **environment: str) -> Iterator[tuple[int, int]]:
    """(process, port) of a server with so many workers."""
    with running(served(home, "--workers", str(count)), log, **environment) as (process, port):
        yield process.pid, port


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("workers") / "home"
    shutil.copytree(sample_home, home)
    return home


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_of_both_eras_index_and_walk(mode: str, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "home")

    async def use(url: str, number: int) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE) as http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            told: list[str] = []
            given = {"texts": [{"id": f"n{number}", "text": f"Quorra{number} met Bellweather{number} in Lima."}], "corpus": f"own{number}", "wait_seconds": 60}
            result = await client.call_tool("index_documents", given)
            assert not result.is_error, result.content[0].text
            found = await client.call_tool("search_text", {"query": f"Quorra{number}", "corpus": f"own{number}"})
            told.append(found.content[0].text)
            assert f"Bellweather{number}" in told[0]

    async def all_of_them(url: str) -> None:
        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(use, url, number)

    with workers(tmp_path / "home", tmp_path / "log") as (_, port):
        anyio.run(all_of_them, f"http://127.0.0.1:{port}/mcp")


def test_a_killed_worker_is_replaced_and_what_was_begun_goes_on(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "home")
    log = tmp_path / "log"
    with workers(tmp_path / "home", log) as (_, port):
        said = posted(port, called("drift_search", query="What did the harbour fear?"))[2]
        walk, nodes = re.search(r"drift-[0-9a-f]+", said), re.findall(r"node_id[^0-9A-Za-z]+([0-9A-Za-z_.-]+)", said)
        assert walk and nodes, said
        first = until(lambda: len(found := processes(log)) == 2 and found)
        os.kill(first[0], signal.SIGKILL)
        assert posted(port, LIST)[0] == 200  # by the other worker
        until(lambda: processes(log)[0] != first[0])
        assert "is replaced" in log.read_text("utf-8")
        for answer in ("The tide.", "The storm."):
            step = called("drift_step", session_id=walk[0], node_id=nodes[0], answer=answer, score=50)
            said = posted(port, step)[2]
            assert walk[0] in said and '"isError":true' not in said, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_all_workers(number: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(served(tmp_path / "home", "--workers", "2"), log) as (process, port):
        assert posted(port, LIST)[0] == 200
        until(lambda: len(processes(log)) == 2)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert all(map(gone, processes(log).values()))


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with workers(tmp_path / "home", log) as (parent, _):
        until(lambda: len(processes(log)) == 2)
        os.kill(parent, signal.SIGKILL)
        until(lambda: all(map(gone, processes(log).values())))
