"""One address served by several processes: sessions, shares, a worker that is killed, and a stop in good order."""

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

from graphrag_mcp.errors import BadInput
from graphrag_mcp.workers import Tally, checked
from tests.support.workload import PATIENCE, until
from tests.test_http import HELLO, running, served

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


def opened(port: int, token: str = "") -> str:
    status, session, said = posted(port, HELLO, token=token)
    assert status == 200 and session, said
    assert posted(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session, token)[0] == 202
    return session


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


def test_connections_are_spread_and_every_session_is_found_on_every_connection(home: Path) -> None:
    with workers(home, home.parent / "spread.log", 3) as (_, port):
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(9)]
        sessions = [posted(port, HELLO, connection=one)[1] for one in held]
        assert sorted(session[-2:] for session in sessions) == ["-0", "-0", "-0", "-1", "-1", "-1", "-2", "-2", "-2"]
        for one in held:  # each connection asks for all sessions, so it goes from worker to worker
            for session in sessions:
                status, _, said = posted(port, LIST, session, connection=one)
                assert status == 200 and "local_search" in said
        long = called("local_search", query="budget", context="x" * 300_000)
        for session in sessions:  # a request whose body is still under way
            status, _, said = posted(port, long, session)
            assert status == 200 and '"id":3' in said
        assert posted(port, LIST, f"{sessions[0][:-2]}-7")[0] == 404
        assert posted(port, LIST, f"{sessions[0][:-2]}-{(int(sessions[0][-1]) + 1) % 3}")[0] == 404


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_of_both_eras_index_and_walk(mode: str, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "home")

    async def use(url: str, number: int) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE) as http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            told: list[str] = []
            result = await client.call_tool("index_documents", {"texts": [{"id": f"n{number}", "text": f"Quorra{number} met Bellweather{number} in Lima."}], "corpus": f"own{number}", "wait_seconds": 60})
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
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(2)]
        sessions = {session[-1]: session for session in (posted(port, HELLO, connection=one)[1] for one in held)}
        assert set(sessions) == {"0", "1"}
        for session in sessions.values():
            assert posted(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)[0] == 202
        said = posted(port, called("drift_search", query="What did the harbour fear?"), sessions["0"])[2]
        walk, nodes = re.search(r"drift-[0-9a-f]+", said), re.findall(r"node_id[^0-9A-Za-z]+([0-9A-Za-z_.-]+)", said)
        assert walk and nodes, said
        first = processes(log)
        os.kill(first[0], signal.SIGKILL)
        assert posted(port, LIST, sessions["1"])[0] == 200  # the other worker has noticed nothing
        until(lambda: processes(log)[0] != first[0])
        until(lambda: "is replaced" in log.read_text("utf-8"))
        assert posted(port, LIST, sessions["0"])[0] == 404  # which tells a client to begin another session
        for answer in ("The tide.", "The storm."):  # by sessions of both workers
            step = called("drift_step", session_id=walk[0], node_id=nodes[0], answer=answer, score=50)
            said = posted(port, step, opened(port))[2]
            assert walk[0] in said and '"isError":true' not in said, said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_all_workers(number: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(served(tmp_path / "home", "--workers", "2"), log) as (process, port):
        session = opened(port)
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        stream.request("GET", "/mcp", headers={**ACCEPTED, "Mcp-Session-Id": session})
        assert stream.getresponse().status == 200
        process.send_signal(number)
        assert process.wait(PATIENCE) == (0 if number == signal.SIGTERM else 130)
        assert len(processes(log)) == 2 and all(map(gone, processes(log).values()))
        stream.close()


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with workers(tmp_path / "home", log) as (parent, _):
        os.kill(parent, signal.SIGKILL)
        until(lambda: all(map(gone, processes(log).values())))


def test_the_share_of_a_token_is_that_of_all_workers(tmp_path: Path) -> None:
    tokens = ",".join(f"name{number}=name{number}-canary-4f9c2d71e0b8" for number in range(100))  # 10 sessions each
    mine = "name7-canary-4f9c2d71e0b8"
    with workers(tmp_path / "home", tmp_path / "log", GRAPHRAG_MCP_TOKENS=tokens) as (_, port):
        other = opened(port, "name8-canary-4f9c2d71e0b8")
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(24)]
        sessions = [posted(port, HELLO, token=mine, connection=one)[1] for one in held]
        for session in sessions:
            posted(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session, mine)
        assert {session[-1] for session in sessions} == {"0", "1"}

        def working() -> list[str]:
            return [session for session in sessions if posted(port, LIST, session, mine)[0] == 200]

        until(lambda: len(working()) <= 10)
        assert sessions[-1] in working() and sessions[0] not in working()
        assert posted(port, LIST, other, "name8-canary-4f9c2d71e0b8")[0] == 200
        assert posted(port, LIST, sessions[-1], "name8-canary-4f9c2d71e0b8")[0] == 404  # of another token
        assert posted(port, LIST, sessions[-1])[0] == 401


def test_each_worker_counts_for_itself_and_sees_the_sum_of_the_others() -> None:
    tally = Tally(["a", "b"], 3)
    for number in range(3):
        tally.number = number
        tally.put(2, number + 1, "a")
        tally.put(2, 10, "b")
    tally.number = 1
    assert tally.others(2, "a") == 4 and tally.others(2, "b") == 20 and tally.of(1, 2, "a") == 2
    tally.clear(2)
    assert tally.others(2, "a") == 1 and tally.others(2, "b") == 10


@pytest.mark.parametrize("count", [0, -1, 65])
def test_a_number_of_workers_that_cannot_be_had_is_refused(count: int) -> None:
    with pytest.raises(BadInput, match="Give a number from 1 to 64"):
        checked(count)
