"""The server beside its calls: jobs that outlive it, a wire that nothing else writes on, time and failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.types import CallToolResult

from graphrag_mcp.app import App
from graphrag_mcp.errors import NotFound
from graphrag_mcp.jobs import queue
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.tools import contract
from graphrag_mcp.tools.contract import Ctx, Desk, OurTool, serve
from graphrag_mcp.types import SearchResult
from tests.support.client import Caller, connected, over_stdio
from tests.support.files import many_files
from tests.support.workload import until


@pytest.fixture(scope="module")
def extra(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def call(home: Path, extra: Path) -> Iterator[Caller]:
    with connected(over_stdio(home, extra)) as caller:
        yield caller


# ---- jobs ---------------------------------------------------------------------------------------------


def test_a_large_job_outlives_the_server_and_the_same_request_joins_it(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    many_files(root / "notes")
    with connected(over_stdio(home, root)) as caller:
        begun = caller.good("index_documents", paths=["notes"], wait_seconds=0)
        assert begun["status"] in ("queued", "running") and begun["poll_after_ms"] > 0
        assert begun["next_call"] == f'graph_status(job_id="{begun["job_id"]}")'
        assert begun["next_call"] in begun["text"]
        joined = caller.good("index_documents", paths=["notes"], wait_seconds=0)
        assert joined["job_id"] == begun["job_id"]
        shown = caller.good("graph_status", job_id=begun["job_id"])
        assert [job["job_id"] for job in shown["jobs"]] == [begun["job_id"]]
    job = until(lambda: (now := queue.load(home, begun["job_id"])).status in queue.FINAL and now)
    assert (job.status, job.result["counts"]["added"]) == ("done", 130), job.error
    assert job.pid not in (0, os.getpid())


def test_a_call_without_paths_reads_the_folders_of_the_index_again(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "a.md").write_text("The lamp at Orl is lit by Ida Holm.")
    with connected(over_stdio(home, root)) as caller:
        assert "nothing to index" in caller.bad("index_documents")
        caller.good("index_documents", paths=["notes"])
        (root / "notes" / "b.md").write_text("The crane at Sund is painted by Oskar Lind.")
        (root / "c.md").write_text("The barge at Kron is towed by Ole Moe.")
        again = caller.good("index_documents")
        assert "1 added" in again["text"] and "2 documents" in again["text"], again["text"]


def test_a_cancelled_job_stops_and_a_later_call_finishes_the_work(call: Caller, extra: Path, home: Path) -> None:
    arguments = {"paths": [str(many_files(extra / "notes"))], "corpus": "jobs"}
    begun = call.good("index_documents", **arguments, wait_seconds=0)
    cancelled = call.good("cancel_job", job_id=begun["job_id"])
    job = until(lambda: (now := queue.load(home, begun["job_id"])).status in queue.FINAL and now)
    assert job.status == "cancelled" and "cancel" in cancelled["text"]
    seen: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen.append(done)

    async def impatient_then_patient() -> CallToolResult:
        with anyio.move_on_after(0.3):  # a wait that is cancelled leaves its job alone
            await call.client.call_tool("index_documents", {**arguments, "wait_seconds": 50})
        return await call.client.call_tool("index_documents", {**arguments, "wait_seconds": 50}, progress_callback=progress)

    done = call.portal.call(impatient_then_patient).structured_content
    assert done["status"] == "done" and done["counts"]["documents_total"] == 130
    assert [job.job_id for job in queue.listing(home, "jobs")] == [done["job_id"], begun["job_id"]]
    assert seen == sorted(set(seen))


def test_a_job_that_fails_is_an_error_that_says_what_to_do(call: Caller, extra: Path) -> None:
    folder = many_files(extra / "vanishing", 24)
    assert call.good("index_documents", paths=[str(folder)], corpus="vanishing", wait_seconds=50)["counts"]["added"] == 24
    for number in range(20):
        (folder / f"note{number}.md").unlink()
    result = call("index_documents", paths=[str(folder)], corpus="vanishing", wait_seconds=50)
    assert result.is_error and "remove_missing" in result.content[0].text and result.structured_content["status"] == "failed"
    removed = call.good("index_documents", paths=[str(folder)], corpus="vanishing", remove_missing="true", wait_seconds=50)
    assert removed["counts"]["removed"] == 20
NOISY = """
import ctypes, os, sys, threading, time
libc, early = ctypes.CDLL(None), sys.stdout
early.write("printed before serving\\n"); libc.printf(b"C printed before serving\\n")
def noise():
    while sys.stdout is early:
        time.sleep(0.001)
    while True:
        print("python noise", flush=True)
        print("kept in a buffer")
        os.write(1, b"raw noise\\n")
        libc.puts(b"C noise")
        libc.fflush(None)
        libc.puts(b"kept in a buffer of C")
        time.sleep(0.005)
threading.Thread(target=noise, daemon=True).start()
from graphrag_mcp.cli.main import main
main([])
"""


@pytest.mark.skipif(os.name == "nt", reason="ctypes.CDLL(None)")
def test_nothing_that_any_library_prints_reaches_the_protocol(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nMary Somerville met Ada Lovelace.\n", "utf-8")
    parameters = over_stdio(tmp_path / "home", tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", NOISY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **parameters.env, "PYTHONUNBUFFERED": ""}, cwd=tmp_path,
    )  # fmt: skip
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "index_documents", "arguments": {"paths": ["a.md"]}}},
    ]  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    for message in messages:
        process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    process.stdin.flush()
    noise: list[bytes] = []
    drain = threading.Thread(target=lambda: noise.append(process.stderr.read()))
    drain.start()
    lines: list[bytes] = []
    while len([line for line in lines if b'"id"' in line]) < 3:
        lines.append(process.stdout.readline())
        assert lines[-1], "the server went away"
    process.stdin.close()
    lines += process.stdout.readlines()
    assert process.wait(20) == 0
    drain.join()
    assert [json.loads(line)["id"] for line in lines if b'"id"' in line] == [1, 2, 3]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    assert all(kind in noise[0] for kind in (b"python noise", b"raw noise", b"C noise"))


# ---- time and failure -----------------------------------------------------------------------------------


def odd_server(app: App) -> MCPServer[Any]:
    """A server with tools that misbehave in the ways that `serve` must catch."""
    async def local_slow(ctx: Ctx) -> CallToolResult:
        return await serve(ctx, "local_search", lambda app: time.sleep(1.0) or SearchResult(text="done"))

    async def local_crash(ctx: Ctx) -> CallToolResult:
        return await serve(ctx, "local_search", lambda app: SearchResult(text=str(1 // len(app.corpora()))))

    async def local_missing(ctx: Ctx) -> CallToolResult:
        def work(app: App) -> SearchResult:
            raise NotFound("there is no such thing", "Look elsewhere")

        return await serve(ctx, "local_search", work)

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield Desk(app, anyio.CapacityLimiter(2))

    tools = [OurTool.from_function(tool) for tool in (local_slow, local_crash, local_missing)]
    return MCPServer("odd", tools=tools, lifespan=lifespan, log_level="WARNING")


def test_time_running_out_and_crashes_become_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "SECONDS", 0.1)
    with connected(odd_server(App(Settings(home=tmp_path)))) as caller:
        slow = caller("local_slow")
        assert "not finished" in slow.content[0].text and "Next: search_text" in slow.content[0].text, slow.content[0].text
        crash = caller("local_crash")
        assert crash.is_error and crash.content[0].text.startswith("internal error in local_search (logged as ")
        assert "division" not in crash.content[0].text and "division" in caplog.text
        assert caller.bad("local_missing") == "there is no such thing. Look elsewhere."


def test_graph_status_names_the_files_that_could_not_be_read(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("The mill was built.\n", "utf-8")
    (root / "broken.docx").write_bytes(b"PK\x03\x04 no archive")
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(root,))))) as call:
        call.good("index_documents", paths=["."], wait_seconds=50)
        told = call.good("graph_status")["text"]
        assert "1 file could not be read and cannot be found: notes/broken.docx." in told
