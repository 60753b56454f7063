"""What the system refuses, and a clock that is put back: what is said, and what goes on all the same."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from graphrag_mcp.errors import Damaged, GraphRAGError
from graphrag_mcp.jobs import delete, queue, start
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import leases, tables
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.tools.contract import telling
from graphrag_mcp.types import IndexRequest, InlineText
from tests.jobs.test_jobs import over
from tests.support.workload import until

FILE_IN_THE_WAY = "in the way"  # refused to everybody; rights are not, to an administrator
ADVICE = "give this user the right to"


def test_a_lock_that_cannot_be_made_is_said_with_a_next_move(tmp_path: Path) -> None:
    (tmp_path / "corpora").write_text(FILE_IN_THE_WAY)
    with pytest.raises(GraphRAGError, match=ADVICE), manifests.writer_lock(tmp_path / "corpora" / "kb", 0.0):
        pass
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "lead").write_text(FILE_IN_THE_WAY)
    with pytest.raises(GraphRAGError, match=ADVICE):
        start.start(Settings(home=tmp_path), "kb", IndexRequest(texts=(InlineText("Ada met Ida."),)))


def test_a_job_that_nobody_could_lead_is_refused_and_does_not_wait_for_ever(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "lead").mkdir(parents=True)
    (tmp_path / "jobs" / "lead" / "kb").write_text(FILE_IN_THE_WAY)
    with pytest.raises(GraphRAGError, match=ADVICE):
        start.start(Settings(home=tmp_path), "kb", IndexRequest(texts=(InlineText("Ada met Ida."),)))
    assert records.waiting(tmp_path, "kb") == [] and queue.listing(tmp_path) == []


def test_a_job_on_an_index_that_cannot_be_read_fails_and_says_why(tmp_path: Path) -> None:
    later = manifests.Manifest("kb", 1, format=manifests.FORMAT + 1)
    manifests.commit(tmp_path / "corpora" / "kb", later)
    job = start.start(Settings(home=tmp_path), "kb", IndexRequest(texts=(InlineText("Ada met Ida."),)))
    until(lambda: queue.load(tmp_path, job.job_id).status in queue.FINAL)
    found = queue.load(tmp_path, job.job_id)
    start.cancel(tmp_path, job.job_id)  # or its thread would go on for ever
    assert found.status == "failed" and "Upgrade graphrag-mcp" in found.error


def test_a_deletion_that_stops_half_way_leaves_no_older_generation_in_place_of_the_newest(tmp_path: Path) -> None:
    corpus = tmp_path / "corpora" / "kb"
    for generation in (1, 2, 3):
        manifests.commit(corpus, manifests.Manifest("kb", generation))
    (corpus / "generations" / "00000003.json").unlink()
    (corpus / "generations" / "00000003.json").mkdir()
    with pytest.raises(GraphRAGError, match=ADVICE):
        delete.delete(tmp_path, "kb")
    assert manifests.read(corpus) == manifests.Manifest("kb", 3)


def test_leases_and_answers_that_cannot_be_opened_are_said_with_a_next_move(tmp_path: Path) -> None:
    (tmp_path / "work.db").mkdir()
    with pytest.raises(GraphRAGError, match=ADVICE):
        leases.taken(tmp_path, "me")
    with pytest.raises(Damaged, match="cannot be used"):
        AnswerBook(tmp_path / ("long" * 100)).probe()


def test_what_the_system_refuses_in_a_tool_is_said_and_no_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolError, match=r"Permission denied: /home/x\)\. Free disk space"), telling("graph_status"):
        raise PermissionError(13, "Permission denied", "/home/x")
    assert "graph_status could not" in caplog.text


# ---- a clock that is put back ---------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="no zone can be set there")
def test_the_age_of_a_version_is_right_in_the_hour_that_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    end = time.gmtime(now - 1200 + 3600)  # summer, an hour ahead, ended 20 minutes ago
    at = f"{end.tm_hour}:{end.tm_min}:{end.tm_sec}"
    monkeypatch.setenv("TZ", f"STD0DST-1,{(end.tm_yday + 199) % 365}/0,{end.tm_yday - 1}/{at}")
    time.tzset()
    try:
        written = datetime.fromtimestamp(now - 1800)
        assert datetime.now() < written, "half an hour ago the clocks showed more than now"
        age = tables._age(written)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert 1790 < age < 1900


def test_of_two_texts_with_one_id_the_later_call_wins_though_the_clock_was_put_back(tmp_path: Path) -> None:
    home, settings = tmp_path, Settings(home=tmp_path)
    with start._lock(home, "kb", 5):  # somebody leads, so they wait
        first = start.start(settings, "kb", IndexRequest(texts=(InlineText("Ada Quill kept the lamp.", "n"),)))
        ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="milliseconds")
        records.save(home, replace(first, started=ahead))
        second = start.start(settings, "kb", IndexRequest(texts=(InlineText("Devi Rao kept the lamp.", "n"),)))
    assert [over(home, job.job_id).status for job in (first, second)] == ["done", "done"]
    texts = open_snapshot(home / "corpora" / "kb").rows("documents", columns=["text"])["text"].to_pylist()
    assert texts == ["Devi Rao kept the lamp."]


def test_marks_from_the_future_hold_nothing_up(tmp_path: Path) -> None:
    ahead = (time.time() + 7200,) * 2
    path = records.marker(tmp_path, "kb", "job-000000000000")  # its record was never written
    path.parent.mkdir(parents=True)
    path.write_text("key", "ascii")
    os.utime(path, ahead)
    assert list(records.open_jobs(tmp_path, "kb")) == [] and records.waiting(tmp_path, "kb") == []
    gone = datetime.now(UTC) + timedelta(hours=2)
    job = records.Job("job-1", "kb", pid=1, process="another", updated=gone.isoformat(timespec="milliseconds"))
    assert records.as_it_is(tmp_path, job).status == "failed"
    merge = records.marker(tmp_path, "kb", records.MERGE)
    merge.write_text("{}", "utf-8")
    os.utime(merge, ahead)
    assert start._merge_is_due(tmp_path, "kb")


def test_a_lease_from_the_future_ends_as_soon_as_any_other(tmp_path: Path) -> None:
    lease = leases.Lease("w1", "key", "extract", "unit", "gone")
    leases.take(tmp_path, [lease], seconds=7200)
    leases.free(tmp_path, lambda who: False)
    with sqlite3.connect(tmp_path / "work.db") as db:
        [(until,)] = db.execute("SELECT until FROM leases")
    db.close()
    assert time.time() < until <= time.time() + leases.SECONDS
