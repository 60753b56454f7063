"""Generations: few files after many commits, the way back, readers beside a writer, kills and failing disks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import (
    changes,
    digest,
    kept,
    rollback,
)
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import batches
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.store.test_store import log_of
from tests.support.command import ROOT, clean_environment
from tests.support.generation_processes import note, write
from tests.support.promises import doctor


def child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.generation_processes", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, text=True)


def current(folder: Path) -> manifests.Manifest:
    manifest = manifests.read(folder)
    assert manifest is not None
    return manifest


def segments_of(folder: Path, count: int, documents: int = 0) -> manifests.Manifest:
    """A generation of a log of `count` segments; uris come round again after `documents` of them."""
    written = [
        segment_store.append(folder, "documents", log_of(("put", f"kb/{at % (documents or count):03d}", f"text {at}")), at + 1)
        for at in range(count)
    ]
    manifest = manifests.Manifest("kb", 1, segments=written, counters={"documents": documents or count})
    manifests.commit(folder, manifest)
    return manifest


# ---- the log is merged -----------------------------------------------------------------------------


def test_many_segments_become_few_and_the_documents_stay(tmp_path: Path) -> None:
    manifest = segments_of(tmp_path, segment_store.SEGMENTS)
    assert segment_store.tidy(tmp_path, manifest) is manifest
    extra = segment_store.append(tmp_path, "documents", log_of(("gone", "kb/005", ""), ("put", "kb/006", "again")))
    manifest = manifests.Manifest(
        "kb", 2, segments=[*manifest.segments, extra], counters={"documents": segment_store.SEGMENTS - 1}
    )
    manifests.commit(tmp_path, manifest)
    wanted = segment_store.live_documents(tmp_path, manifest, ["uri", "text"])
    merged = segment_store.tidy(tmp_path, manifest)
    assert (merged.generation, len(merged.segments), current(tmp_path)) == (3, 1, merged)
    assert merged.segments[0]["rows"] == segment_store.SEGMENTS - 1
    assert segment_store.live_documents(tmp_path, merged, ["uri", "text"]).equals(wanted)
    assert segment_store.verify(tmp_path, merged.segments) == []
    assert segment_store.live_documents(tmp_path, manifest, ["uri", "text"]).equals(wanted), "older generations keep theirs"
    assert segment_store.tidy(tmp_path, merged) is merged


def test_what_is_gone_stays_gone_when_segments_are_merged(tmp_path: Path) -> None:
    rows = [("put", f"kb/{at:03d}", f"text {at}") for at in range(40)]
    large = segment_store.append(tmp_path, "documents", log_of(*rows), 1)
    small = [segment_store.append(tmp_path, "documents", log_of(("gone", f"kb/{at % 30:03d}", "")), at + 2) for at in range(64)]
    manifest = manifests.Manifest("kb", 1, segments=[large, *small], counters={"documents": 10})
    manifests.commit(tmp_path, manifest)
    merged = segment_store.tidy(tmp_path, manifest)
    assert [segment["rows"] for segment in merged.segments] == [10]
    left = segment_store.live_documents(tmp_path, merged, ["uri"])["uri"].to_pylist()
    assert left == [f"kb/{at:03d}" for at in range(30, 40)]


def test_a_log_of_mostly_dead_rows_is_written_again_whole(tmp_path: Path) -> None:
    rows = [("put", f"kb/{at % 10}", f"text {at}") for at in range(600)]
    one = segment_store.append(tmp_path, "documents", log_of(*rows), 1)
    manifest = manifests.Manifest("kb", 1, segments=[one], counters={"documents": 10})
    manifests.commit(tmp_path, manifest)
    merged = segment_store.tidy(tmp_path, manifest)
    assert [segment["rows"] for segment in merged.segments] == [10]
    texts = segment_store.live_documents(tmp_path, merged, ["text"])["text"].to_pylist()
    assert texts == [f"text {at}" for at in range(590, 600)]


def test_a_damaged_segment_is_never_merged_into_a_sound_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manifest = segments_of(tmp_path, segment_store.SEGMENTS + 1)
    path = tmp_path / "truth" / manifest.segments[9]["file"]
    path.write_bytes(path.read_bytes().replace(b"PAR1", b"PAR2", 1))
    assert segment_store.tidy(tmp_path, manifest) is manifest
    assert "nothing is merged" in caplog.text


def test_what_only_forgotten_generations_named_is_removed(tmp_path: Path) -> None:
    manifest = segment_store.tidy(tmp_path, segments_of(tmp_path, segment_store.SEGMENTS + 1))
    assert len(list((tmp_path / "truth").iterdir())) == segment_store.SEGMENTS + 2
    for path in (tmp_path / "generations").iterdir():
        os.utime(path, (time.time() - 700,) * 2)
    for number in range(3, 3 + manifests.KEEP_LAST):
        manifests.commit(tmp_path, manifests.replace(manifest, generation=number))
    assert [path.name for path in (tmp_path / "truth").iterdir()] == [manifest.segments[0]["file"]]


# ---- the way back ----------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Three calls: two notes; a third one; the first changed and the second gone."""
    folder, docs = tmp_path / "kb", tmp_path / "docs"
    docs.mkdir()
    for number in (1, 2):
        (docs / f"{number}.txt").write_text(note(number).text)
    for step in range(3):
        if step == 1:
            (docs / "3.txt").write_text(note(3).text)
        if step == 2:
            (docs / "1.txt").write_text("Greta Holm built a mill in Lower Fenton. Greta Holm knew Devi Rao.")
            (docs / "2.txt").unlink()
        assert index_documents(folder, IndexRequest(paths=(str(docs),)), Settings()).status == "done"
    return folder


def test_going_back_gives_the_old_content_under_a_new_number_and_forward_again(history: Path) -> None:
    numbers = [manifest.generation for manifest in kept(history)]
    contents = {number: digest(open_snapshot(history, kept(history)[at])) for at, number in enumerate(numbers)}
    assert numbers == list(range(1, numbers[-1] + 1)) and len({one["content"] for one in contents.values()}) == 3
    for number in (2, numbers[-1], 4):
        was = current(history)
        new = rollback(history, number)
        assert new.generation == was.generation + 1 == current(history).generation
        assert digest(open_snapshot(history)) == contents[number]
        assert all(new.next[letter] >= n for letter, n in was.next.items()), "aliases are never given again"
        assert doctor(history) == []
    docs = history.parent / "docs"
    assert index_documents(history, IndexRequest(paths=(str(docs),)), Settings()).counts["removed"] == 1
    assert digest(open_snapshot(history))["content"] == contents[numbers[-1]]["content"]
    assert doctor(history) == []


def test_a_generation_that_is_not_kept_is_refused_with_those_that_are(history: Path) -> None:
    last = current(history).generation
    (history / "generations" / "00000002.json").unlink()
    listed = ", ".join(str(number) for number in range(1, last + 1) if number != 2)
    for number in (2, 99, -1, 0):
        for look in (rollback, changes) if number else (rollback,):  # since 0 all is new
            with pytest.raises(NotFound, match=f"generation {number} of kb is not kept. Kept are {listed}"):
                look(history, number)
    with pytest.raises(BadInput, match="is the current one"):
        rollback(history, last)
    with pytest.raises(NotFound, match="index_documents"):
        changes(history.parent / "nothing", 1)
    assert current(history).generation == last


def test_what_changed_is_told_by_uri_and_counted(history: Path) -> None:
    found = changes(history, 2)
    assert (found.since, found.generation) == (2, current(history).generation)
    assert (found.added, found.changed, found.removed) == (["docs/3.txt"], ["docs/1.txt"], ["docs/2.txt"])
    titles = [set(open_snapshot(history, kept(history)[at]).rows("entities")["id"].to_pylist()) for at in (1, -1)]
    assert found.counts["entities"] == {
        "before": len(titles[0]), "now": len(titles[1]), "added": len(titles[1] - titles[0]),
        "removed": len(titles[0] - titles[1]),
    }  # fmt: skip
    nothing = changes(history, current(history).generation)
    assert (nothing.added, nothing.changed, nothing.removed) == ([], [], [])
    assert nothing.counts["relationships"]["added"] == 0


# ---- readers, kills, failing disks -------------------------------------------------------------------


def test_readers_beside_a_writer_that_compacts_and_goes_back_see_one_generation_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    write(folder, *[note(number) for number in range(4)])
    readers = [child("reader", folder) for _ in range(2)]
    told, _ = child("writer", folder, 10, 5).communicate(timeout=120)
    (tmp_path / "stop").touch()
    said = [line for one in readers for line in one.communicate(timeout=60)[0].splitlines()]
    assert told.split() == [str(number) for number in range(10)]
    assert [line for line in said if not line.startswith("rounds")] == []
    assert all(int(line.split()[1]) > 3 for line in said), said
    assert len(current(folder).segments) <= 4
    assert doctor(folder) == []


def test_a_writer_killed_while_it_compacts_or_goes_back_leaves_a_sound_index(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    chance = random.Random(11)
    write(folder, note(0))
    for _ in range(3):
        process = child("writer", folder, 200, 2)
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(chance.random())
        process.kill()
        seen += [int(line) for line in process.stdout.read().split()]
        process.wait()
        process.stdout.close()
        texts = " ".join(open_snapshot(folder).rows("documents", columns=["text"])["text"].to_pylist())
        assert f"wool {seen[-1]} " in texts, "what was acknowledged is there"
        assert [found for found in doctor(folder) if not found.remark] == []
        assert [found for found in doctor(folder, repair=True) if not found.repaired] == []
        assert doctor(folder) == []


def test_a_disk_that_fails_at_any_call_gives_an_error_and_costs_nothing(tmp_path: Path) -> None:
    told, _ = child("disk", tmp_path, 75, "ENOSPC", "EIO", "EACCES").communicate(timeout=280)
    first, *wrong = told.splitlines()
    assert int(first.removeprefix("calls ")) > 20
    assert wrong == ["done"]


def test_a_text_beside_the_log_counts_as_well(tmp_path: Path) -> None:
    write(tmp_path / "kb", InlineText(id="a", text="Ingrid Moe met Devi Rao."))
    assert changes(tmp_path / "kb", 1).counts["entities"]["before"] == 2


# ---- what a run leaves behind ------------------------------------------------------------------------


def test_a_run_that_finds_nothing_to_do_frees_what_the_run_before_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_PASSAGES", 20)
    docs, folder = tmp_path / "docs", tmp_path / "corpora" / "kb"
    docs.mkdir()
    for number in range(120):
        (docs / f"{number}.md").write_text(note(number).text, "utf-8")

    def run() -> tuple[int, list[int], int]:
        """The generation, those that are kept, and the bytes of the tables; ten minutes go by."""
        assert index_documents(folder, IndexRequest(paths=(docs,)), Settings()).status == "done"
        for path in (folder / "generations").iterdir():
            os.utime(path, (time.time() - 700,) * 2)
        files = [path for path in (folder / "tables").rglob("*") if path.is_file()]
        numbers = [one.generation for one in manifests.generations(folder)]
        return current(folder).generation, numbers, sum(path.stat().st_size for path in files)

    assert index_documents(folder, IndexRequest(paths=(docs,)), Settings()).status == "done"
    made = current(folder)
    first = run()
    assert current(folder) == made, "what was committed a moment ago is left alone"
    content, reader = digest(open_snapshot(folder)), open_snapshot(folder)
    assert first[0] > 5 and first[1] == list(range(1, first[0] + 1))
    for _ in range(4):
        second = run()
    assert second[1] == [second[0]] and second[2] < 0.6 * first[2]
    assert run() == second, "a run with nothing left to free changes nothing"
    assert digest(open_snapshot(folder)) == content and not doctor(folder)
    with pytest.raises(NotFound):  # one that has been open for longer than ten minutes
        reader.rows("text_units")
    (docs / "new.md").write_text("Ida Bellweather came to Port Ellis.", "utf-8")
    last = run()
    assert second[0] in last[1], "the last generation of a run is something to go back to"
