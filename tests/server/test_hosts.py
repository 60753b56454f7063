"""Hosts with their own ways, each played by a few lines: what a model gets to see, how long they wait, how they leave."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.jobs import queue
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.support.client import connected, over_stdio
from tests.support.command import clean_environment, run_cli
from tests.support.files import many_files
from tests.support.workload import until

NOTES = {
    "tower.md": "# The Eddystone Lighthouse\n\nJohn Smeaton built the Eddystone Lighthouse in 1759. The Royal Society praised John Smeaton.\n",
    "storm.md": "# The Great Storm\n\nThe Great Storm of 1703 drowned Henry Winstanley at the Eddystone Lighthouse.\n" + "Waves rose. " * 300,
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    for name, text in NOTES.items():
        (root / name).write_text(text, "utf-8")
    return root


# ---- what the model sees ---------------------------------------------------------------------------------


def test_a_host_that_shows_only_text_can_work(project: Path, tmp_path: Path) -> None:
    """Ids, cursors, sessions and jobs stand in the text itself."""
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(project,))))) as call:

        def seen(tool: str, **arguments: Any) -> str:
            return call(tool, **arguments).content[0].text

        begun = seen("index_documents", paths=["."], wait_seconds=0)
        job = re.search(r"job-[0-9a-f]{12}", begun)
        if job:  # else it was done at once
            until(lambda: "done" in seen("graph_status", job_id=job[0]))
        found = seen("local_search", query="Who built the Eddystone Lighthouse?")
        cited = re.search(r"\[(t\d+(?:\.\d+)?)\b", found) or re.search(r"\b(t\d+(?:\.\d+)?)\b", found)
        assert "John Smeaton" in found and cited
        assert "John Smeaton" in seen("get_source", ids=[cited[1]])
        walk = seen("drift_search", query="What did the Great Storm do?")
        session, node = re.search(r'session_id="([^"]+)"', walk), re.search(r'node_id="([^"]+)"', walk)
        assert session and node
        step = seen("drift_step", session_id=session[1], node_id=node[1], answer="It drowned him.", score=70)
        assert re.search(r'node_id="([^"]+)"', step)[1] != node[1]
        assert "drowned" in seen("drift_finish", session_id=session[1])


@pytest.mark.parametrize("offer", [{}, {"tools": "core"}, {"tools": "index"}, {"read_only": True}, {"compat": True}], ids=str)
def test_a_host_that_rejects_choices_and_references_takes_every_tool(offer: dict[str, Any], tmp_path: Path) -> None:
    def wrong(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            yield from {"anyOf", "oneOf", "allOf", "$ref", "$defs", "not", "const"} & set(schema)
            for value in schema.values():
                yield from wrong(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from wrong(value)

    with connected(build_server(App(Settings(home=tmp_path, roots=())), **offer)) as call:
        tools = call.portal.call(call.client.list_tools).tools
    assert tools and {tool.name: sorted(wrong(tool.input_schema)) for tool in tools if list(wrong(tool.input_schema))} == {}
    assert {tool.name: sorted(wrong(tool.output_schema)) for tool in tools if list(wrong(tool.output_schema))} == {}
    assert all(re.fullmatch(r"[a-z_]{3,40}", tool.name) and len(tool.description) <= 1_024 for tool in tools)


def test_the_command_line_says_what_is_offered(project: Path, tmp_path: Path) -> None:
    command = over_stdio(tmp_path / "home", project)
    command.args += ["--tools", "core", "--read-only", "--chatgpt"]
    with connected(command) as call:
        named = [tool.name for tool in call.portal.call(call.client.list_tools).tools]
        assert named[-2:] == ["search", "fetch"] and "local_search" in named and "cancel_job" not in named
        assert "index_documents" not in named and "index_documents" not in call.client.instructions
    done = run_cli("serve", "--tools", "most", "--home", tmp_path)
    assert done.returncode == 2 and "core" in done.stderr


# ---- the wire by hand ------------------------------------------------------------------------------------------


class Wire:
    """A host that writes its own JSON: one server over stdio."""

    def __init__(self, home: Path, root: Path) -> None:
        command = over_stdio(home, root)
        self.process = subprocess.Popen(
            [command.command, *command.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment(**command.env), cwd=root,
        )  # fmt: skip
        self.lines: Queue[dict[str, Any]] = Queue()
        self.seen: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def send(self, method: str, params: dict[str, Any] | None = None, id: Any = None) -> None:
        message = {"jsonrpc": "2.0", "method": method} | ({"params": params} if params is not None else {})
        self.process.stdin.write((json.dumps(message | ({"id": id} if id is not None else {})) + "\n").encode())
        self.process.stdin.flush()

    def answer(self, id: Any, seconds: float = 60.0) -> dict[str, Any]:
        while True:  # `seconds` of silence fail
            message = self.lines.get(timeout=seconds)
            self.seen.append(message)
            if message.get("id") == id:
                return message

    def hello(self, version: str) -> dict[str, Any]:
        client = {"name": "by hand", "version": "1"}
        self.send("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}, 0)
        result = self.answer(0)["result"]
        self.send("notifications/initialized")
        return result

    def call(self, id: Any, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, id)


@contextmanager
def by_hand(home: Path, root: Path) -> Iterator[Wire]:
    wire = Wire(home, root)
    try:
        yield wire
    finally:
        wire.process.kill()
        wire.process.wait(60)


def test_a_host_of_the_first_protocol_revision_is_served(project: Path, tmp_path: Path) -> None:
    with by_hand(tmp_path / "home", project) as wire:
        result = wire.hello("2024-11-05")
        assert result["protocolVersion"] == "2024-11-05" and {"tools", "resources", "prompts"} <= set(result["capabilities"])
        wire.send("tools/list", None, "a")
        assert len(wire.answer("a")["result"]["tools"]) > 10
        wire.call("b", "index_documents", paths=["."], wait_seconds=40)
        assert "is up to date" in wire.answer("b")["result"]["content"][0]["text"]
        wire.call("c", "local_search", query="Who built the lighthouse?")
        assert "John Smeaton" in wire.answer("c")["result"]["content"][0]["text"]
        wire.call("d", "global_search")
        refused = wire.answer("d")["result"]
        assert refused["isError"] and "needs 'query'" in refused["content"][0]["text"]
        wire.send("resources/read", {"uri": "graphrag://corpora"}, "e")
        assert json.loads(wire.answer("e")["result"]["contents"][0]["text"])["corpora"]
        wire.send("prompts/get", {"name": "ask_corpus", "arguments": {"question": "Why?"}}, "f")
        assert "Why?" in wire.answer("f")["result"]["messages"][0]["content"]["text"]
        wire.send("nobody/knows", {}, "g")
        assert wire.answer("g")["error"]["code"] == -32601


def test_a_host_that_waits_five_seconds_gets_the_work_done(tmp_path: Path) -> None:
    """No progress token, a cancelled call after 5 seconds, the same call again: one job, which ends."""
    root = tmp_path / "project"
    root.mkdir()
    many_files(root / "notes", 400)
    with by_hand(tmp_path / "home", root) as wire:
        wire.hello("2025-06-18")
        arguments = {"paths": ["notes"], "corpus": "slow", "wait_seconds": 50}
        result: dict[str, Any] = {}
        for attempt in range(12):
            wire.call(f"try {attempt}", "index_documents", **arguments)
            try:
                result = wire.answer(f"try {attempt}", 5.0)["result"]
                break
            except Empty:
                wire.send("notifications/cancelled", {"requestId": f"try {attempt}", "reason": "timeout"})
        assert result["structuredContent"]["status"] == "done", result
        assert result["structuredContent"]["counts"]["documents_total"] == 400
        assert not any(message.get("method") == "notifications/progress" for message in wire.seen)
    # Whoever asks again after the end starts a second, empty run; the work was done by one.
    assert sum(1 for job in queue.listing(tmp_path / "home", "slow") if job.result.get("counts", {}).get("added")) == 1


def test_requests_that_are_cancelled_or_sent_twice_do_no_harm(project: Path, tmp_path: Path) -> None:
    with by_hand(tmp_path / "home", project) as wire:
        wire.hello("2025-06-18")
        wire.send("notifications/cancelled", {"requestId": "never sent"})
        wire.send("notifications/cancelled", {})
        wire.call(1, "index_documents", paths=["."], wait_seconds=40)
        wire.call(1, "index_documents", paths=["."], wait_seconds=40)  # the same id while it runs
        assert wire.answer(1)["id"] == 1
        for number in range(20):
            wire.call(f"s{number}", "local_search", query="lighthouse")
            wire.send("notifications/cancelled", {"requestId": f"s{number}"})
            wire.send("notifications/cancelled", {"requestId": f"s{number}"})
        wire.call(2, "local_search", query="Who built the lighthouse?")
        assert "John Smeaton" in wire.answer(2)["result"]["content"][0]["text"]
        wire.send("ping", None, 3)
        assert wire.answer(3)["result"] == {}
        wire.call(4, "graph_status")
        assert wire.answer(4)["result"]["structuredContent"]["counts"]["documents"] == 2


LINES = (  # what is sent, the id of the answer, its error; "" = none at all
    (b"this is no JSON", None, -32700),
    (b'{"jsonrpc": "2.0", "id": 10, "method": "ping"', None, -32700),
    (b"[" * 100_000 + b"]" * 100_000, None, -32700),
    (b'[{"jsonrpc": "2.0", "id": 11, "method": "ping"}]', None, -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
    (b'{"id": 12, "method": "ping"}', 12, -32600),
    (b'{"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": ["graph_status"]}', "x", -32600),
    (b'{"jsonrpc": "2.0", "method": "tools/call", "params": ["graph_status"]}', "", 0),
    (b'{"jsonrpc": "2.0", "id": 13, "error": {"code": "x"}}', "", 0),
    (b"", "", 0),
    (b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 14, "method": "ping"}', 14, 0),
    (b'{"jsonrpc": "2.0", "id": 15, "method": "ping"}\r', 15, 0),
)


def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(project: Path, tmp_path: Path) -> None:
    """Whoever gets no answer waits for a minute. Only what wants none gets none."""
    with by_hand(tmp_path / "home", project) as wire:
        wire.hello("2025-06-18")
        for line, name, error in LINES:
            wire.process.stdin.write(line + b"\n")
            wire.send("ping", None, 99)
            if name != "":
                answer = wire.answer(name)
                assert answer.get("error", {}).get("code", 0) == error, (line[:80], answer)
            assert wire.answer(99)["result"] == {}, line[:80]
        assert len(wire.seen) == 1 + len(LINES) + sum(name != "" for _, name, _ in LINES)


def test_half_an_emoji_in_an_argument_is_a_character_like_others(project: Path, tmp_path: Path) -> None:
    with by_hand(tmp_path / "home", project) as wire:
        wire.hello("2025-06-18")
        wire.call(1, "index_documents", texts=[{"id": "a", "text": "John Smeaton built it \ud83d again."}], corpus="c")
        assert wire.answer(1)["result"]["structuredContent"]["counts"]["added"] == 1
        wire.call(2, "local_search", query="Who built \udc00it, 😀?", corpus="c")
        assert "John Smeaton" in wire.answer(2)["result"]["content"][0]["text"]


# ---- hosts that leave --------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="as the tests of HTTP")
def test_a_web_client_that_hangs_up_in_the_middle_harms_nobody(project: Path, tmp_path: Path) -> None:
    from tests.support.http_server import running, served

    with running([*served(tmp_path / "home"), "--root", str(project)], tmp_path / "log") as (_, port):
        request = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "index_documents", "arguments": {"texts": [{"id": "a", "text": "Ada Quill kept the lamp."}], "corpus": "hung"},
                       "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                                 "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}},
        }  # fmt: skip
        body = json.dumps(request).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: index_documents\r\nAccept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        for cut in (20, len(head) // 2, len(head), len(head) + len(body) // 2, len(head) + len(body)):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as hanging:
                hanging.sendall((head + body)[:cut])
        home = tmp_path / "home"
        job = until(lambda: (found := queue.listing(home, "hung")) and found[0].status in queue.FINAL and found[0])
        assert job.status == "done"
        with connected(f"http://127.0.0.1:{port}/mcp") as call:
            assert "Ada Quill" in call.good("search_text", query="lamp", corpus="hung")["text"]
