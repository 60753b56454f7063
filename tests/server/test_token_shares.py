"""Ten tokens and one of them with more sessions, streams and calls than its share: the nine others are served."""

from __future__ import annotations

import http.client
import json
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest

from graphrag_mcp.http import SESSIONS, Door
from tests.support.http_server import HELLO, asked, running, served

NAMES = [f"name{number}" for number in range(10)]
SHARE = SESSIONS // len(NAMES)
PATIENCE = 60  # seconds until a hang fails


def headers(name: str, session: str = "") -> dict[str, str]:
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    return {**accepted, "Authorization": f"Bearer {name}-canary-4f9c2d71e0b8", **({"Mcp-Session-Id": session} if session else {})}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("shares")
    tokens = ",".join(f"{name}={name}-canary-4f9c2d71e0b8" for name in NAMES)
    with running(served(folder / "home"), folder / "log", GRAPHRAG_MCP_TOKENS=tokens) as (_, port):
        yield port


def posted(connection: http.client.HTTPConnection, name: str, body: dict, session: str = "") -> tuple[int, str, str]:
    """(status, session, what came) of a request on a connection that stays open."""
    connection.request("POST", "/mcp", json.dumps(body), headers(name, session))
    response = connection.getresponse()
    return response.status, response.getheader("Mcp-Session-Id", ""), response.read().decode()


def opened(connection: http.client.HTTPConnection, name: str) -> str:
    """A new session, through its whole handshake."""
    status, session, said = posted(connection, name, HELLO)
    assert status == 200 and session, said
    assert posted(connection, name, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)[0] == 202
    return session


def works(connection: http.client.HTTPConnection, name: str, session: str) -> bool:
    status, _, said = posted(connection, name, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, session)
    return status == 200 and "local_search" in said


def test_a_token_with_a_thousand_sessions_stops_no_other_token(port: int) -> None:
    greedy, *others = NAMES
    mine = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    first, used = opened(mine, greedy), opened(mine, greedy)
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    stream.request("GET", "/mcp", headers=headers(greedy, used))
    assert stream.getresponse().status == 200  # a session with an event stream is not idle
    before = {name: opened(mine, name) for name in others}
    opening = [posted(mine, greedy, HELLO)[:2] for _ in range(SESSIONS + 100)]
    assert {status for status, _ in opening} == {200}
    assert not works(mine, greedy, first) and not works(mine, greedy, opening[0][1])  # idle for longest
    assert works(mine, greedy, used) and works(mine, greedy, opening[-1][1]) and works(mine, greedy, opening[2 - SHARE][1])
    assert not works(mine, greedy, opening[-SHARE][1])
    for name in others:
        assert works(mine, name, before[name]) and works(mine, name, opened(mine, name)), name
    stream.close()


def test_a_session_ends_for_its_own_token_only(port: int) -> None:
    mine = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    session = opened(mine, NAMES[1])
    for name, status in ((NAMES[2], 404), (NAMES[1], 200)):
        assert asked(port, [("Host", "localhost"), *list(headers(name, session).items())[2:]], "DELETE")[0] == status


def test_half_of_the_connections_are_the_most_of_one_token_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_mcp.http.most_connections", lambda: 4)
    door, statuses = Door({"": slow}, tokens={b"a": "ada", b"b": "ben"}), []

    async def send(message: dict) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def story() -> None:
        async with anyio.create_task_group() as group:
            for digest in [b"a"] * 3 + [b"b"]:
                monkeypatch.setattr(door, "owner", lambda _, name=door.tokens[digest]: name)
                group.start_soon(door, {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}, None, send)
                await anyio.sleep(0.05)

    anyio.run(story)
    assert statuses == [503, 200, 200, 200] and not any(door.requests.values())
    assert Door({"": slow}, tokens={b"a": "ada"}).most_requests > 1000


async def slow(scope: dict, receive: object, send: Callable[[dict], Awaitable[None]]) -> None:
    await anyio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
