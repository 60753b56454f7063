"""What the system refuses, and a clock that is put back: what is said, and what goes on all the same."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import delete, queue, start
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import leases
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.jobs.test_jobs import over

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


def test_a_deletion_that_stops_half_way_leaves_no_older_generation_in_place_of_the_newest(tmp_path: Path) -> None:
    corpus = tmp_path / "corpora" / "kb"
    for generation in (1, 2, 3):
        manifests.commit(corpus, manifests.Manifest("kb", generation))
    (corpus / "generations" / "00000003.json").unlink()
    (corpus / "generations" / "00000003.json").mkdir()
    with pytest.raises(GraphRAGError, match=ADVICE):
        delete.delete(tmp_path, "kb")
    assert manifests.read(corpus) == manifests.Manifest("kb", 3)


# ---- a clock that is put back ---------------------------------------------------------------------


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
