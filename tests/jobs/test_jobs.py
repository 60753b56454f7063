"""Jobs when processes die: taken over and done again; done in order and together; their documents one by one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import queue, run, start
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult, InlineText
from tests.index.test_work import MIRA, TEXTS
from tests.server.test_hosts import by_hand
from tests.support.client import Caller, connected, item_texts
from tests.support.command import ROOT, clean_environment, run_cli
from tests.support.files import many_files
from tests.support.promises import doctor
from tests.support.workload import until

DEAD = {"pid": os.getpid(), "process": "1"}  # the mark of no process


def note(number: int) -> InlineText:
    return InlineText(f"Note {number}. Ada Quill met Henry Winstanley at Bell Rock on day {number}.", f"n{number}")


def left_open(home: Path, *texts: InlineText, **more: Any) -> queue.Job:
    """A job as a process leaves it that is killed in the middle."""
    request = json.loads(json.dumps(asdict(IndexRequest(texts=texts))))
    named = f"job-{len(list((home / 'jobs').glob('*.json'))):012x}"
    settings = queue.settings_record(Settings(home=home))
    fields = {"status": "running", "request": request, "settings": settings, "started": queue.now(), **DEAD, **more}
    job = queue.Job(named, "kb", **fields)
    queue.open_up(home, job)
    return job


def over(home: Path, job_id: str, seconds: float = 60.0) -> queue.Job:
    return until(lambda: (now := queue.load(home, job_id)).status in queue.FINAL and now, seconds)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def call(tmp_path: Path, root: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(root,))))) as caller:
        yield caller


# ---- when processes die -------------------------------------------------------------------------------


@pytest.mark.core
def test_a_large_job_whose_processes_are_killed_is_gone_on_with_by_another_server_that_nobody_calls(
    tmp_path: Path, root: Path
) -> None:
    home = tmp_path / "home"
    many_files(root / "notes", 150)
    with by_hand(home, root) as first, by_hand(home, root) as other:
        first.hello("2025-06-18")
        other.hello("2025-06-18")
        first.call(1, "index_documents", paths=["notes"], corpus="kb", wait_seconds=0)
        id = first.answer(1)["result"]["structuredContent"]["job_id"]
        job = until(lambda: (now := queue.load(home, id)).status == "running" and now)
        first.process.kill()
        os.kill(job.pid, signal.SIGKILL)
        until(lambda: queue.load(home, id).pid != job.pid, 5.0)
        done = over(home, id)
    assert (done.status, done.result["counts"]["documents_total"]) == ("done", 150), done.error
    assert done.attempt == 2


@pytest.mark.core
def test_a_small_job_of_a_dead_process_is_done_by_the_next_server_that_starts(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "home"
    job = left_open(home, note(1))
    shown = queue.load(home, job.job_id)
    assert shown.status == "queued" and "goes on with it" in shown.phase
    with connected(build_server(App(Settings(home=home, roots=(root,))))):
        assert over(home, job.job_id).result["counts"]["added"] == 1


def test_a_job_that_takes_three_processes_with_it_is_given_up_and_the_others_are_done(
    call: Caller, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    bad = left_open(home, note(1), attempt=3, generation=0)
    good = left_open(home, note(2))
    ended = over(home, bad.job_id)
    assert ended.status == "failed" and "3 processes" in ended.error and "index_documents" in ended.error
    assert over(home, good.job_id).status == "done"


def test_a_job_that_was_interrupted_is_done_again_and_says_so(call: Caller, tmp_path: Path) -> None:
    home = tmp_path / "home"
    index_documents(home / "corpora" / "kb", IndexRequest(texts=(note(1),)), Settings(home=home))
    generation = manifests.read(home / "corpora" / "kb").generation
    job = left_open(home, *map(note, (1, 2, 3, 4)), attempt=1, generation=generation)
    done = over(home, job.job_id)
    assert done.status == "done" and done.attempt == 2 and done.result["counts"]["added"] == 3
    shown = call.good("graph_status", job_id=job.job_id)
    assert shown["states"] == {"processed": 4} and "First: what an interrupted run" in shown["text"]


@pytest.mark.core
def test_a_cancelled_job_of_a_dead_process_stays_cancelled(call: Caller, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with start._lock(home, "kb", 5):  # somebody leads
        job = left_open(home, note(1), status="queued")
        assert start.cancel(home, job.job_id).status == "cancelled"
    until(lambda: not queue.waiting(home, "kb"))
    assert queue.read(home, job.job_id).status == "cancelled"
    assert manifests.read(home / "corpora" / "kb") is None


def test_a_job_that_is_cancelled_between_two_looks_is_not_called_queued(tmp_path: Path) -> None:
    seen = left_open(tmp_path, note(1), status="queued")
    queue.flag(tmp_path, seen.job_id).touch()
    queue.close(tmp_path, queue.read(tmp_path, seen.job_id), "cancelled")  # after `seen` was read
    assert queue.as_it_is(tmp_path, seen).status == "cancelled"


def test_a_server_whose_host_goes_away_leaves_what_waits_to_another_process(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "home"
    with by_hand(home, root) as wire:
        wire.hello("2025-06-18")
        with start._lock(home, "kb", 5):  # somebody leads
            wire.call(1, "index_documents", texts=["Ada Quill kept the lamp."], corpus="kb", wait_seconds=0)
            id = wire.answer(1)["result"]["structuredContent"]["job_id"]
            wire.process.stdin.close()
            assert wire.process.wait(60) == 0
    assert over(home, id).status == "done"


def test_the_command_line_does_first_what_dead_processes_have_left(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "home"
    job = left_open(home, note(1))
    (root / "a.md").write_text("Ada Quill kept the lamp.", "utf-8")
    done = run_cli("index", root, "--home", home, "--corpus", "kb", "--json")
    assert json.loads(done.stdout)["counts"]["documents_total"] == 2, done.stderr
    assert queue.load(home, job.job_id).status == "done"


DISK = """
import errno, logging, sys, time
from pathlib import Path
from graphrag_mcp.jobs import queue, run, start
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest
from tests.support.generation_processes import Disk, note, say
logging.disable(logging.CRITICAL)
settings = Settings(home=Path(sys.argv[1]))
def called(number):
    try:
        job = start.start(settings, "kb", IndexRequest(texts=(note(number),)))
    except GraphRAGError:
        return "refused"
    while queue.load(settings.home, job.job_id).status not in queue.FINAL:
        time.sleep(0.01)
    return queue.load(settings.home, job.job_id).status
called(0)
disk = Disk()
called(1)
calls, kinds = disk.seen, [errno.ENOSPC, errno.EIO, errno.EACCES]
for at in range(1, calls + 1, int(sys.argv[2])):
    disk.at, disk.error, disk.seen = at, kinds[at % 3], 0
    first = called(1 + at)
    disk.at = 0
    say(at, first, called(1 + at))
"""


def test_a_disk_that_fails_at_any_write_of_a_job_costs_at_most_that_call(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DISK, str(tmp_path), "18"]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=200)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) > 2 and not done.stderr, done.stderr
    assert {first for _, first, _ in lines} <= {"done", "failed", "refused"}
    assert {again for *_, again in lines} == {"done"}
    assert open_snapshot(tmp_path / "corpora" / "kb").count("documents") == len(lines) + 2
    assert [found for found in doctor(tmp_path / "corpora" / "kb") if not found.remark] == []


# ---- in order, and together -----------------------------------------------------------------------------


def test_calls_that_wait_for_one_another_are_done_in_one_run_and_each_is_told_its_own(
    tmp_path: Path, root: Path
) -> None:
    home, settings = tmp_path / "home", Settings(home=tmp_path / "home", roots=(root,))
    (root / "a.md").write_text("# A\n\nAda Quill kept the lamp of Bell Rock.\n", "utf-8")
    (root / "bad.parquet").write_bytes(b"PAR1 and nothing more")
    with start._lock(home, "kb", 5):  # somebody leads, so they wait
        started = [start.start(settings, "kb", IndexRequest(texts=(note(n), note(n + 50)))) for n in range(5)]
        started.append(start.start(settings, "kb", IndexRequest(paths=(str(root / "a.md"),))))
        started.append(start.start(settings, "kb", IndexRequest(paths=(str(root / "bad.parquet"),))))
        again = InlineText("Note 0 was wrong. Ada Quill was never there.", "n0")
        started.append(start.start(settings, "kb", IndexRequest(texts=(again,))))
        assert {queue.load(home, job.job_id).status for job in started} == {"queued"}
    done = [over(home, job.job_id) for job in started]
    until(lambda: not queue.waiting(home, "kb"))
    assert [job.result["counts"]["added"] for job in done] == [2] * 5 + [1, 0, 0]
    assert [job.result["counts"]["changed"] for job in done] == [0] * 7 + [1]
    assert [len(job.result["errors"]) for job in done] == [0] * 6 + [1, 0]
    rows = {row["uri"]: row["text"] for row in open_snapshot(home / "corpora" / "kb").rows("documents").to_pylist()}
    assert len(rows) == 11 and rows["text:n0"] == again.text
    manifest = manifests.read(home / "corpora" / "kb")
    assert manifest.generation <= 4 and not manifest.stale, "not one run a call"


def test_a_cancelled_call_does_not_end_those_in_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, settings = tmp_path / "home", Settings(home=tmp_path / "home")
    with start._lock(home, "kb", 5):
        first, second = (start.start(settings, "kb", IndexRequest(texts=(note(n),))) for n in range(2))
        queue.flag(home, first.job_id).touch()
        jobs = [queue.read(home, job.job_id) for job in (first, second)]
        assert run.together(jobs) == jobs
        result = IndexResult(status="cancelled", corpus="kb")
        monkeypatch.setattr(run, "_indexed", lambda *_: ([], {}, result))
        run.run(settings, jobs)
        monkeypatch.undo()
    assert queue.read(home, first.job_id).status == "cancelled"
    done = over(home, second.job_id)
    assert done.status == "done" and done.attempt == 1 and done.result["counts"]["added"] == 1


def test_one_call_that_cannot_be_done_fails_no_other(tmp_path: Path, root: Path) -> None:
    home, settings = tmp_path / "home", Settings(home=tmp_path / "home", roots=(root,))
    with start._lock(home, "kb", 5):
        started = [start.start(settings, "kb", IndexRequest(texts=(note(n),), method="auto")) for n in range(2)]
        started.append(start.start(settings, "kb", IndexRequest(texts=(note(3),), method="llm")))  # there is no model
    assert [over(home, job.job_id).status for job in started] == ["done", "done", "failed"]


def test_a_job_in_the_thread_of_a_process_that_ends_waits_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = left_open(tmp_path, note(1), attempt=1)

    def index(*_: Any, **__: Any) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr("graphrag_mcp.index.pipeline.index_documents", index)
        patch.setattr(run.threading, "main_thread", run.threading.Thread)
        run.run(Settings(home=tmp_path), [job])
        assert (queue.read(tmp_path, job.job_id).status, job.attempt) == ("queued", 0)
        assert not start._turn(Settings(home=tmp_path), "kb")
    assert start.run_job(Settings(home=tmp_path), job.job_id).status == "done"


def test_the_same_request_is_the_same_job_until_its_files_change(tmp_path: Path, root: Path) -> None:
    home, settings = tmp_path / "home", Settings(home=tmp_path / "home", roots=(root,))
    (root / "a.md").write_text("Ada Quill kept the lamp.", "utf-8")
    request = IndexRequest(paths=(str(root),))
    with start._lock(home, "kb", 5):
        first = start.start(settings, "kb", request)
        assert start.start(settings, "kb", request).job_id == first.job_id
        (root / "a.md").write_text("Henry Winstanley kept the lamp.", "utf-8")
        assert start.start(settings, "kb", request).job_id != first.job_id
    over(home, first.job_id)


# ---- its documents, one by one ----------------------------------------------------------------------


def test_the_documents_of_a_job_are_listed_by_state_and_page_by_page(call: Caller, root: Path) -> None:
    many_files(root / "notes", 60)
    (root / "notes" / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    done = call.good("index_documents", paths=["notes"], corpus="kb", wait_seconds=48)
    assert done["status"] == "done"
    shown = call.good("graph_status", job_id=done["job_id"])
    assert shown["states"] == {"processed": 60, "failed": 1} and shown["documents"] == []
    failed = call.good("graph_status", job_id=done["job_id"], documents="failed")["documents"]
    assert [(one["uri"], one["state"]) for one in failed] == [("notes/broken.parquet", "failed")] and failed[0]["error"]
    first = call.good("graph_status", job_id=done["job_id"], state="processed")
    assert len(first["documents"]) == 50 and first["next_cursor"] in first["text"]
    rest = call.good("graph_status", job_id=done["job_id"], documents="processed", cursor=first["next_cursor"])
    assert len(rest["documents"]) == 10 and not rest["next_cursor"]
    assert len({one["uri"] for one in [*first["documents"], *rest["documents"]]}) == 60
    assert "cursor is not of this list" in call.bad(
        "graph_status", job_id=done["job_id"], documents="all", cursor="x.1"
    )
    newest = call.good("graph_status", corpus="kb", documents="pending")
    assert newest["documents"] == [] and "None of them is pending" in newest["text"]


# ---- what agents hand in --------------------------------------------------------------------------------


def test_what_was_submitted_to_a_server_that_is_killed_is_merged_by_the_next(tmp_path: Path, root: Path) -> None:
    home, texts = tmp_path / "home", [{"id": id, "text": text} for id, text in TEXTS.items()]
    with by_hand(home, root) as wire:
        wire.hello("2025-06-18")
        wire.call(1, "index_documents", texts=texts, corpus="kb", method="agent", wait_seconds=40)
        assert wire.answer(1)["result"]["structuredContent"]["status"] == "done"
        wire.call(2, "claim_work", corpus="kb", kind="extract")
        claimed = wire.answer(2)["result"]["structuredContent"]
        work = next(id for id, text in item_texts(claimed).items() if "1904. Her" in text)
        wire.call(3, "submit_work", corpus="kb", results=[{"work_id": work, **MIRA}])
        assert wire.answer(3)["result"]["structuredContent"]["accepted"] == [work]
        wire.process.kill()
    assert queue.waiting(home, "kb") == ["merge"]

    def kinds() -> list[str]:
        return [row["type"] for row in open_snapshot(home / "corpora" / "kb").rows("entities").to_pylist()]

    assert "artifact" not in kinds()
    with connected(build_server(App(Settings(home=home, roots=(root,))))) as caller:
        until(lambda: "artifact" in kinds(), 120)
        claimed = caller.good("claim_work", corpus="kb", kind="extract")
        assert len(claimed["items"]) == 2, "the dead server's claims are free again"
