"""The HTTP door over real sockets: who may come in, what belongs to whom, many at once, and a stop in good order."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError

from graphrag_mcp.errors import BadInput
from graphrag_mcp.http import listening, tokens_of
from tests.support.command import run_cli
from tests.support.http_server import (
    ALICE,
    BOB,
    HOST,
    TOKENS,
    asked,
    bad,
    client,
    good,
    running,
    served,
)
from tests.support.workload import PATIENCE, until


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("http") / "home"
    shutil.copytree(sample_home, home)
    return home


@pytest.fixture(scope="module")
def log(home: Path) -> Path:
    return home.parent / "tokens.log"


@pytest.fixture(scope="module")
def open_port(home: Path) -> Iterator[int]:
    with running(served(home), home.parent / "open.log") as (_, port):
        yield port


@pytest.fixture(scope="module")
def token_port(home: Path, log: Path) -> Iterator[int]:
    with running(served(home), log, GRAPHRAG_MCP_TOKENS=TOKENS) as (_, port):
        yield port


# ---- R19: a web page cannot drive the server ----------------------------------------------------------

HEADERS: list[tuple[str, list[tuple[str, str]], set[int]]] = [
    ("its address", [HOST], {200}), ("its name", [("Host", "localhost:{port}")], {200}), ("its address in version 6", [("Host", "[::1]:{port}")], {200}),
    ("its name without a port", [("Host", "localhost")], {200}), ("a foreign name", [("Host", "evil.example")], {421}),
    ("a name that begins like ours", [("Host", "127.0.0.1.evil.example:{port}")], {421}), ("a name behind our port", [("Host", "localhost:80.evil.example")], {421}),
    ("a name behind a user", [("Host", "localhost@evil.example")], {421}), ("a user before its address", [("Host", "evil:secret@127.0.0.1:{port}")], {421}),
    ("the address of all addresses", [("Host", "0.0.0.0:{port}")], {421}), ("version 4 within version 6", [("Host", "[::ffff:127.0.0.1]:{port}")], {421}),
    ("a zone", [("Host", "[::1%25eth0]:{port}")], {421}), ("its address as one number", [("Host", "2130706433")], {421}), ("a port that is none", [("Host", "127.0.0.1:evil")], {421}),
    ("a path behind its name", [("Host", "localhost/evil.example")], {421}), ("white space in its name", [("Host", "localhost evil.example")], {400, 421}),
    ("no name", [], {0, 400, 421}), ("two names", [HOST, ("Host", "evil.example")], {400, 421}),
    ("a forwarded name beside a foreign one", [("Host", "evil.example"), ("X-Forwarded-Host", "localhost")], {421}),
    ("a foreign name that was forwarded", [HOST, ("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil.example")], {200}),
    ("a page of this machine", [HOST, ("Origin", "http://localhost:3000")], {200}), ("a page of this machine in version 6", [HOST, ("Origin", "http://[::1]:3000")], {200}),
    ("a foreign page", [HOST, ("Origin", "http://evil.example")], {403}), ("a foreign page with TLS", [HOST, ("Origin", "https://127.0.0.1.evil.example")], {403}),
    ("a page of no site", [HOST, ("Origin", "null")], {403}), ("an empty page", [HOST, ("Origin", "")], {403}), ("a file", [HOST, ("Origin", "file://")], {403}),
    ("a page behind our port", [HOST, ("Origin", "http://localhost:80.evil.example")], {403}), ("a page with a user", [HOST, ("Origin", "http://localhost@evil.example")], {403}),
    ("an extension of a browser", [HOST, ("Origin", "chrome-extension://abcdefghijklmnop")], {403}),
    ("two pages", [HOST, ("Origin", "http://localhost"), ("Origin", "http://evil.example")], {403}),
    ("a page of a rebound name", [("Host", "evil.example"), ("Origin", "http://evil.example")], {421}),
    ("our own page", [HOST, ("Sec-Fetch-Site", "same-origin")], {200}),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "statuses"), [case[1:] for case in HEADERS], ids=[case[0] for case in HEADERS])
def test_only_this_machine_and_its_pages_come_in(open_port: int, headers: list[tuple[str, str]], statuses: set[int]) -> None:
    status, text, _ = asked(open_port, headers)
    assert status in statuses, text
    if status >= 400:
        assert "graphrag-mcp" not in text and "sample" not in text
    for method, path in (("GET", "/mcp"), ("DELETE", "/mcp"), ("OPTIONS", "/mcp"), ("GET", "/health")):
        if not {200} & statuses:
            assert asked(open_port, headers, method, path)[0] in statuses, (method, path)


def test_what_a_foreign_page_embeds_is_not_given(open_port: int) -> None:
    assert asked(open_port, [HOST, ("Sec-Fetch-Site", "cross-site")])[0] == 403


TOKEN_HEADERS: list[tuple[str, list[tuple[str, str]], int]] = [
    ("no token", [], 401), ("an empty one", [("Authorization", "Bearer ")], 401), ("a wrong one", [("Authorization", "Bearer " + "x" * 24)], 401),
    ("a part of one", [("Authorization", f"Bearer {ALICE[:-1]}")], 401), ("another scheme", [("Authorization", f"Basic {ALICE}")], 401),
    ("the name with it", [("Authorization", f"Bearer alice={ALICE}")], 401), ("no scheme", [("Authorization", ALICE)], 401),
    ("two", [("Authorization", f"Bearer {ALICE}"), ("Authorization", f"Bearer {BOB}")], 401),
    ("Basic with its name", [("Authorization", "Basic " + base64.b64encode(f"alice:{ALICE}".encode()).decode())], 401),
    ("only the scheme", [("Authorization", "Bearer")], 401), ("two in one", [("Authorization", f"Bearer {ALICE}, Bearer {BOB}")], 401),
    ("in a cookie", [("Cookie", f"token={ALICE}")], 401), ("in another header", [("X-Authorization", f"Bearer {ALICE}")], 401),
    ("not ASCII", [("Authorization", "Bearer \xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9\xe9")], 401),
    ("the right one", [("Authorization", f"Bearer {ALICE}")], 200), ("the right one, lower case", [("authorization", f"bearer {BOB}")], 200),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "status"), [case[1:] for case in TOKEN_HEADERS], ids=[case[0] for case in TOKEN_HEADERS])
def test_without_a_valid_token_nobody_comes_in(token_port: int, headers: list[tuple[str, str]], status: int) -> None:
    found, text, given = asked(token_port, [HOST, *headers])
    assert found == status, text
    assert (status == 401) == given.get("www-authenticate", "").startswith('Bearer realm="graphrag-mcp"')
    assert asked(token_port, [("Host", "evil.example"), *headers])[0] == 421
    assert asked(token_port, [HOST, ("Origin", "https://evil.example"), *headers])[0] == 403
    assert asked(token_port, [HOST, *headers], path=f"/mcp?access_token={ALICE}")[0] == status


def test_health_needs_no_token_and_names_nothing(token_port: int) -> None:
    status, text, _ = asked(token_port, [HOST], "GET", "/health")
    assert (status, json.loads(text)) == (200, {"status": "ok"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.test"])
def test_another_address_without_tokens_is_refused_with_a_lesson(host: str, tmp_path: Path) -> None:
    done = run_cli("serve", "--http", "--host", host, "--port", "0", "--home", tmp_path)
    assert done.returncode == 2 and "GRAPHRAG_MCP_TOKENS" in done.stderr and host in done.stderr


@pytest.mark.parametrize("text", ["justatoken-canary", "alice=short", "=canary-canary-canary", "a b=canary-canary-canary", "alice=canary canary canary",
                                  "a=canary-canary-canary,b=canary-canary-canary", "ü=canary-canary-canary"])  # fmt: skip
def test_tokens_that_cannot_be_used_are_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        tokens_of(text)
    assert "canary" not in str(caught.value).replace("token_urlsafe", "") and "short" not in str(caught.value).replace("shorter", "")


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with listening("127.0.0.1", 0) as taken:
        done = run_cli("serve", "--http", "--port", str(taken.getsockname()[1]), "--home", tmp_path)
    assert done.returncode == 2 and "Choose another --port" in done.stderr


# ---- what belongs to whom ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_sessions_jobs_and_cursors_belong_to_the_token_that_began_them(token_port: int, mode: str) -> None:
    async def story() -> None:
        async with client(token_port, ALICE, mode) as alice, client(token_port, BOB, mode) as bob:
            walk = await good(alice, "drift_search", query="What did the harbour fear?", corpus="sample")
            session, node = walk["session_id"], walk["open_node"]
            text = [{"id": mode, "text": f"The lamp of {mode} was lit by Ada Quill."}]
            job = (await good(alice, "index_documents", texts=text, corpus=f"own-{mode}", wait_seconds=40))["job_id"]
            page = await good(alice, "search_text", query="harbour", corpus="sample", max_tokens=400)
            assert page["next_cursor"] and page["next_cursor"] in page["text"]
            # Hers:
            await good(alice, "drift_step", session_id=session, node_id=node, answer="The tide.", score=50)
            assert (await good(alice, "graph_status", job_id=job))["jobs"][0]["job_id"] == job
            more = await good(alice, "search_text", query="harbour", corpus="sample", max_tokens=400, cursor=page["next_cursor"])
            assert more["ids"] and more["ids"][0] != page["ids"][0]
            assert session in (await alice.read_resource(f"graphrag://drift/{session}")).contents[0].text
            # Not his:
            assert "no DRIFT session" in await bad(bob, "drift_step", session_id=session, node_id=node, answer="x")
            assert "no DRIFT session" in await bad(bob, "drift_finish", session_id=session)
            assert "no job" in await bad(bob, "graph_status", job_id=job)
            assert "no job" in await bad(bob, "cancel_job", job_id=job)
            given = page["next_cursor"].partition("~")[0]
            guessed = [hashlib.sha256(name).hexdigest()[:10] for name in (b"alice", b"bob")]
            for cursor in (page["next_cursor"], given, *(f"{given}~{mark}" for mark in guessed)):
                stolen = await good(bob, "search_text", query="harbour", corpus="sample", max_tokens=400, page=cursor)
                assert "belongs to another question" in stolen["text"] and not stolen["ids"]
            for uri in (f"graphrag://drift/{session}", f"graphrag://jobs/{job}"):
                with pytest.raises(MCPError):
                    await bob.read_resource(uri)
            status = await good(bob, "graph_status", corpus=f"own-{mode}")
            assert status["counts"]["documents"] == 1 and status["jobs"] == [] and job not in status["text"]

    anyio.run(story)


def test_a_session_of_the_old_protocol_cannot_be_entered_with_another_token(token_port: int) -> None:
    _, _, given = asked(token_port, [HOST, ("Authorization", f"Bearer {ALICE}")])
    session = ("Mcp-Session-Id", given["mcp-session-id"])
    assert asked(token_port, [HOST, session, ("Authorization", f"Bearer {BOB}")], "DELETE")[0] == 404
    assert asked(token_port, [HOST, session, ("Authorization", f"Bearer {ALICE}")], "DELETE")[0] == 200


def test_nobody_can_listen_to_anothers_job(token_port: int) -> None:
    async def story() -> None:
        async with client(token_port, ALICE, "2026-07-28") as alice, client(token_port, BOB, "2026-07-28") as bob:
            text = [{"id": "l", "text": "Listened to."}]
            job = (await good(alice, "index_documents", texts=text, corpus="listened", wait_seconds=40))["job_id"]
            uris = [f"graphrag://jobs/{job}", "graphrag://corpora"]
            async with alice.listen(resource_subscriptions=uris) as hers, bob.listen(resource_subscriptions=uris) as his:
                assert list(hers.honored.resource_subscriptions) == uris
                assert list(his.honored.resource_subscriptions) == uris[1:]

    anyio.run(story)


def test_no_token_is_written_anywhere(home: Path, log: Path, token_port: int) -> None:
    asked(token_port, [HOST, ("Authorization", f"Bearer {ALICE}x")])
    asked(token_port, [("Host", "evil.example"), ("Authorization", f"Bearer {BOB}")])
    files = [path for path in [log, *home.rglob("*")] if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if ALICE.encode() in path.read_bytes() or BOB.encode() in path.read_bytes()] == []


# ---- stopping ------------------------------------------------------------------------------------------------

SLOW = """
import asyncio, logging, sys
from pathlib import Path
import anyio
from mcp.server.mcpserver.tools import Tool
from graphrag_mcp import http
from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
async def slow() -> str:
    "Takes two seconds."
    Path(sys.argv[1] + " called").touch()
    await anyio.sleep(2)
    return "done after all"
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
listener = http.listening("127.0.0.1", 0)
server = build_server(App(Settings(home=Path(sys.argv[1]))), more=[Tool.from_function(slow, structured_output=False)])
logging.info("listening on %s", http.address_of(listener))
asyncio.run(http.run(http.Door.of_servers({"": server}), listener))
logging.info("ended in good order")
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM there")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_stop_lets_calls_finish_and_ends_streams(mode: str, tmp_path: Path) -> None:
    (program := tmp_path / "slow.py").write_text(SLOW, "utf-8")
    log = tmp_path / "log"
    with running([sys.executable, str(program), str(tmp_path / "home")], log) as (process, port):
        answers: list[str] = []

        async def call() -> None:
            async with client(port, mode=mode) as who:
                await who.list_tools()
                calling.set()
                answers.append((await who.call_tool("slow", {})).content[0].text)
                answered.set()

        async def stream() -> None:
            async with client(port, mode="2026-07-28") as who:
                async with who.listen(resource_subscriptions=["graphrag://corpora"]) as events:
                    listening_now.set()
                    async for _ in events:
                        pass
                    answers.append("the stream was closed in good order")

        async def story() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(suppressed, stream)
                await listening_now.wait()
                group.start_soon(suppressed, call)
                await calling.wait()
                await anyio.to_thread.run_sync(until, (tmp_path / "home called").exists)  # it takes two seconds more
                process.send_signal(signal.SIGTERM)
                with anyio.fail_after(PATIENCE):
                    await answered.wait()
                group.cancel_scope.cancel()

        async def suppressed(work: Any) -> None:
            try:
                await work()
            except Exception:  # what a client says of a server that went away is its own affair
                pass

        calling, answered, listening_now = anyio.Event(), anyio.Event(), anyio.Event()
        anyio.run(story)
        assert process.wait(PATIENCE) == 0
        assert sorted(answers) == ["done after all", "the stream was closed in good order"]
    text = log.read_text("utf-8")
    assert "ended in good order" in text and "Traceback" not in text and "exceeded" not in text


# ---- a server over HTTP that is told to stop ends soon, whatever its callers leave half done ----


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


# ---- what a client is told over HTTP: of a stream that it lost, and why it was refused ----


def test_who_wants_a_stream_resumed_gets_a_new_one(tmp_path: Path) -> None:
    with running(served(tmp_path), tmp_path / "log") as (_, port):
        session = asked(port, [HOST])[2]["mcp-session-id"]
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as door:
            wanted = f"Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\nLast-Event-ID: 7\r\n"
            door.sendall(f"GET /mcp HTTP/1.1\r\n{wanted}\r\n".encode())
            assert door.recv(2000).startswith(b"HTTP/1.1 200")
        assert b"Traceback" not in (tmp_path / "log").read_bytes()


def test_a_request_of_too_many_values_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with running(served(tmp_path), tmp_path / "log") as (_, port):
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            call = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_source", "arguments": %s}}'
            dense = '{"ids": [' + "[]," * 1_300_000 + "0]}"
            headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            replies = [client.post("/mcp", content=call % dense, headers=headers), client.post("/api/get_source", content=dense, headers=headers)]
            for reply in replies:
                assert reply.status_code == 413 and "the request holds over 200,000 values" in reply.text
            told = client.post("/mcp", content=call % '{"ids": ["t1"]}', headers=headers)
            assert "values" not in told.text and told.status_code in (200, 400)
