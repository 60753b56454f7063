"""Ten tokens and one of them with more sessions, streams and calls than its share: the nine others are served."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from graphrag_mcp.http import SESSIONS, Shares
from tests.test_http import HELLO, asked, running, served

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


# ---- the counting itself -----------------------------------------------------------------------------


def test_sessions_in_use_are_kept_and_when_all_are_another_is_refused() -> None:
    shares = Shares(100, 1000)
    for number in range(10):
        shares.opened("a", f"s{number}")
    with shares.request("a", "s0", False), shares.request("a", "s3", True):
        shares.opened("a", "new")
        shares.opened("a", "newer")
        assert shares.excess("a") == ["s1", "s2"] and shares.excess("a") == [] and shares.excess("b") == []
    assert list(shares.open["a"])[-2:] == ["s3", "s0"]  # used last
    shares.ended("a", "s3")
    shares.opened("a", "newest")
    held = [shares.request("a", session, False) for session in shares.open["a"]]
    for one in held:
        one.__enter__()
    assert "10 sessions of this token are in use" in shares.refusal("a", False, True)
    assert shares.refusal("a", False, False) == "" and shares.refusal("b", False, True) == ""


def test_one_token_of_several_is_given_half_of_the_connections_and_streams_half_of_all() -> None:
    shares = Shares(2, 8)
    held = [shares.request("a", "", stream) for stream in (True, True, False, False)]
    for one in held:
        one.__enter__()
    assert "4 requests of this token" in shares.refusal("a", False, False) and not shares.refusal("b", True, False)
    more = [shares.request("b", "", True) for _ in range(2)]
    for one in more:
        one.__enter__()
    assert "4 event streams are open" in shares.refusal("b", True, False) and not shares.refusal("b", False, False)
    for one in [*held, *more]:
        one.__exit__(None, None, None)
    assert not shares.refusal("a", True, False) and not shares.serving and not shares.streaming
    assert Shares(1, 8).requests == 8 and Shares(0, 8).sessions == SESSIONS
