"""Connections that keep the HTTP server waiting: slow, silent, many, and a server without descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from graphrag_mcp.connections import Server, listening
from tests.support.http_server import HOST, asked, running, served
from tests.support.workload import until

resource = pytest.importorskip("resource", reason="Windows has no limit of open files to set")

GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
PATIENCE = 60  # seconds until a hang fails


# ---- a server with 128 descriptors and 500 connections ------------------------------------------------


@pytest.fixture
def sockets() -> Iterator[None]:
    """This process may open enough of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY and hard < 2000 else 2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def with_few_files(command: list[str]) -> list[str]:
    return ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", *command]


ATTACKS = {
    "connections that never send anything": b"",
    "halves of headers": HEAD,
    "bodies that do not come": HEAD + b"Content-Length: 1000\r\n\r\n{",
    "connections that are kept and not used": GET,
    "requests that do not wait for answers": GET * 2000,
}


@pytest.mark.parametrize("sent", ATTACKS.values(), ids=ATTACKS)
def test_a_client_is_served_beside_500_connections_that_are_not_done(sent: bytes, tmp_path: Path, sockets: None) -> None:
    log = tmp_path / "log"
    with running(with_few_files(served(tmp_path / "home")), log) as (_, port), contextlib.ExitStack() as kept:
        for _ in range(500):
            one = kept.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            with contextlib.suppress(ConnectionError):
                one.sendall(sent)
        for _ in range(10):
            assert asked(port, [HOST], "GET", "/health")[0] == 200
            assert asked(port, [HOST])[0] == 200
    said = log.read_text("utf-8")
    assert len(said) < 2_000, said[:2_000]
    assert said.count("the one that waited longest was closed") <= 1


# ---- how long a connection may wait -------------------------------------------------------------------

LARGE = b"x" * (1 << 20)


async def app(scope: dict, receive: Callable[[], Awaitable[dict]], send: Callable[[dict], Awaitable[None]]) -> None:
    """Answers by path: /large writes 64 MB, /slow takes as long as its query says, /refused reads no body."""
    if scope["type"] != "http":
        return
    kind, seconds = scope["path"], float(scope["query_string"] or 0)
    if kind != "/refused":
        while (await receive()).get("more_body"):
            pass
    await send({"type": "http.response.start", "status": 401 if kind == "/refused" else 200, "headers": []})
    for _ in range(64 if kind == "/large" else 0):
        await send({"type": "http.response.body", "body": LARGE, "more_body": True})
    for _ in range(int(seconds * 10)):
        await send({"type": "http.response.body", "body": b".", "more_body": True})
        await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"done", "more_body": False})


@contextlib.asynccontextmanager
async def serving(most: int = 100, patience: float = 0.5) -> AsyncIterator[int]:
    listener = listening("127.0.0.1", 0)
    server = Server(app, most=most, patience=patience)
    running = asyncio.create_task(server.serve([listener]))
    async with asyncio.timeout(4 * PATIENCE):
        yield listener.getsockname()[1]
    server.should_exit = True
    await running


async def until_closed(port: int, sent: bytes, then: bytes = b"", reads: bool = True) -> bytes:
    """What comes until the server closes; `then` is sent again and again meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16 if reads else 1)
    writer.write(sent)

    async def trickle() -> None:
        with contextlib.suppress(ConnectionError):
            while then:
                await asyncio.sleep(0.05)
                writer.write(then)
                await writer.drain()

    trickling = asyncio.create_task(trickle())
    try:
        if not reads:
            await asyncio.sleep(2)  # longer than the server waits
        return await reader.read(-1)
    except ConnectionError:
        return b""
    finally:
        trickling.cancel()
        writer.close()


WAITS: dict[str, tuple[bytes, bytes, bytes]] = {
    "nothing is sent": (b"", b"", b""),
    "half a header": (b"GET / HTTP/1.1\r\n", b"", b""),
    "a header that never ends": (b"GET / HTTP/1.1\r\n", b"X-More: 1\r\n", b""),
    "half a body": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n.", b"", b""),
    "a body that never ends": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n", b".", b""),
    "chunks that never end": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n.\r\n", b""),
    "a body that nobody wants": (b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n", b".", b"401"),
    "a second header that never ends": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", b"x", b"done"),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "then", "answered"), WAITS.values(), ids=WAITS)
def test_a_connection_that_keeps_the_server_waiting_is_closed(sent: bytes, then: bytes, answered: bytes) -> None:
    async def story() -> None:
        async with serving() as port:
            assert answered in await until_closed(port, sent, then)

    asyncio.run(story())


def test_a_response_that_is_not_read_is_given_up_and_one_that_is_read_comes_whole() -> None:
    async def story() -> None:
        async with serving() as port:
            asked = b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            assert (await until_closed(port, asked)).endswith(b"done\r\n0\r\n\r\n")
            assert not (await until_closed(port, asked, reads=False)).endswith(b"done\r\n0\r\n\r\n")

    asyncio.run(story())


def test_calls_and_streams_go_on_for_longer_than_any_limit() -> None:
    async def story() -> None:
        async with serving() as port:
            answer = await until_closed(port, b"GET /slow?3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert answer.endswith(b"done\r\n0\r\n\r\n") and answer.count(b".\r\n") == 30

    asyncio.run(story())


def test_requests_that_do_not_wait_for_the_answer_before_are_not_served() -> None:
    async def story() -> None:
        async with serving() as port:
            assert (await until_closed(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)).count(b"done") == 1

    asyncio.run(story())


# ---- how many --------------------------------------------------------------------------------------------


def test_when_all_connections_are_served_another_is_refused() -> None:
    async def get(port: int, path: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            return await reader.read(-1)
        return b""

    async def story() -> None:
        async with serving(6) as port:
            calls = [asyncio.create_task(get(port, "/slow?3")) for _ in range(6)]
            await asyncio.sleep(0.5)
            assert b"done" not in await get(port, "/")
            assert all(b"done" in answer for answer in await asyncio.gather(*calls))
            assert b"done" in await get(port, "/")

    asyncio.run(story())


NO_LIMITS = """
import asyncio, logging, sys
from pathlib import Path
from graphrag_mcp import http
from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
logging.getLogger().handlers[0].addFilter(http.Repeats())
listener = http.listening("127.0.0.1", 0)
server = build_server(App(Settings(home=Path(sys.argv[1]))))
logging.info("listening on %s", http.address_of(listener))
asyncio.run(http.run(http.Door.of_servers({"": server}), listener, most=10_000))
"""


def test_a_server_without_descriptors_says_so_once_and_goes_on(tmp_path: Path, sockets: None) -> None:
    (program := tmp_path / "no_limits.py").write_text(NO_LIMITS, "utf-8")
    log = tmp_path / "log"
    with running(with_few_files([sys.executable, str(program), str(tmp_path / "home")]), log) as (_, port):
        with contextlib.ExitStack() as kept:
            for _ in range(300):
                kept.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE)).sendall(HEAD)
            until(lambda: b"out of system resource" in log.read_bytes())
        assert asked(port, [HOST], "GET", "/health")[0] == 200  # once some are free again
    said = log.read_text("utf-8")
    assert said.count("socket.accept() out of system resource") == 1 and "Too many open files" in said
    assert len(said) < 3_000
