"""The store without its tables: manifest and lock, truth segments, journals."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from graphrag_mcp.errors import Busy, Damaged, NewerFormat
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import schema, sessions
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.mirror import Head, Tag

# ---- manifest -----------------------------------------------------------------------------------


def test_a_manifest_that_counts_rows_of_tables_it_does_not_name_is_damaged(tmp_path: Path) -> None:
    whole = Manifest("c", 3, tables={"text_units": 2}, counters={"documents": 1, "text_units": 1})
    manifests.commit(tmp_path, whole)
    forged = dataclasses.replace(whole, generation=4, tables={})
    (tmp_path / "manifest.json").write_text(forged.to_json(), "utf-8")
    with pytest.raises(Damaged, match="counts text_units and names no table of them"):
        manifests.parse(forged.to_json().encode(), "it")
    stands_in = manifests.read(tmp_path)
    assert stands_in is not None and stands_in.generation == 3
    # What `doctor --repair` leaves until the next indexing has no table, and counts documents alone.
    manifests.parse(Manifest("c", 4, counters={"documents": 1}).to_json().encode(), "it")


def test_a_committed_manifest_reads_back_whole_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    manifest = Manifest(
        "kb", 3, created="2026-01-01T00:00:00Z",
        segments=[{"kind": "documents", "file": "x", "rows": 1, "sha256": "ab"}],
        tables={"passages": 7}, counters={"passages": 2}, sources={"kb": {"path": "/kb", "kind": "folder"}},
        parameters={"chunk_size": 1200, "名": "研究"}, stale=["communities"], communities_generation=2,
    )  # fmt: skip
    assert manifests.read(tmp_path) is None
    manifests.commit(tmp_path, manifest)
    assert manifests.read(tmp_path) == manifest
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["00000003.json", "generations", "manifest.json"]


def test_every_flipped_bit_of_a_lone_manifest_is_noticed(tmp_path: Path) -> None:
    manifests.commit(tmp_path, Manifest("kb", 1, tables={"passages": 7}))
    (tmp_path / "generations" / "00000001.json").unlink()
    path = tmp_path / "manifest.json"
    whole = path.read_bytes()
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            same = manifests.read(tmp_path) == Manifest("kb", 1, tables={"passages": 7})
        except Damaged:
            same = False
            noticed += 1
        assert same or noticed  # white space may change; content may not
    assert noticed > len(whole) * 0.7


def test_a_missing_or_torn_manifest_is_replaced_by_the_newest_whole_generation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for generation in (1, 2):
        manifests.commit(tmp_path, Manifest("kb", generation))
    path = tmp_path / "manifest.json"
    path.write_bytes(path.read_bytes()[:40])
    assert manifests.read(tmp_path) == Manifest("kb", 2)
    path.unlink()
    assert manifests.read(tmp_path) == Manifest("kb", 2)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    (tmp_path / "generations" / "00000002.json").write_text("{")
    assert manifests.read(tmp_path) == Manifest("kb", 1)


def test_a_manifest_of_a_later_release_is_refused_by_name(tmp_path: Path) -> None:
    manifests.commit(tmp_path, Manifest("kb", 1, format=manifests.FORMAT + 1))
    with pytest.raises(NewerFormat, match=f"format {manifests.FORMAT + 1}"):
        manifests.read(tmp_path)


def test_generations_are_kept_for_ten_minutes_and_the_last_twenty_for_ever(tmp_path: Path) -> None:
    for generation in range(1, 31):
        manifests.commit(tmp_path, Manifest("kb", generation))
    assert [m.generation for m in manifests.generations(tmp_path)] == list(range(1, 31))
    old = time.time() - 700
    for path in (tmp_path / "generations").iterdir():
        os.utime(path, (old, old))
    manifests.commit(tmp_path, Manifest("kb", 31))
    assert [m.generation for m in manifests.generations(tmp_path)] == list(range(12, 32))


def test_of_a_run_of_several_commits_the_last_is_kept(tmp_path: Path) -> None:
    """Half an index is nothing to go back to, and its files are as large as the whole."""
    for generation in range(1, 31):
        manifests.commit(tmp_path, Manifest("kb", generation, began=(generation - 1) // 5 * 5 + 1))
    manifests.commit(tmp_path, Manifest("kb", 31))  # an edit by hand
    old = time.time() - 700
    for path in (tmp_path / "generations").iterdir():
        os.utime(path, (old, old))
    for generation in (32, 33):
        manifests.commit(tmp_path, Manifest("kb", generation, began=32))
    assert [m.generation for m in manifests.generations(tmp_path)] == [5, 10, 15, 20, 25, 30, 31, 32, 33]


def test_the_second_writer_is_told_that_the_corpus_is_busy(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    refused: list[BaseException] = []

    def second() -> None:
        try:
            with manifests.writer_lock(folder, 0.05):
                pass
        except Busy as error:
            refused.append(error)

    with manifests.writer_lock(folder, 1):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert [str(error) for error in refused] == [
        "another process is indexing corpus kb. Wait for it with graph_status, or try again."
    ]
    with manifests.writer_lock(folder, 0.05):
        pass


# ---- truth --------------------------------------------------------------------------------------


def log_of(*rows: tuple[str, str, str]) -> pa.Table:
    blank = {"file": "", "file_sha": "", "title": "", "metadata": "{}", "created": "", "n": 1}
    made = [{**blank, "op": op, "uri": uri, "id": f"id-{text}", "text": text} for op, uri, text in rows]
    return pa.Table.from_pylist(made, schema.DOCUMENT_LOG)


def test_the_last_row_of_a_uri_wins_and_what_is_gone_is_gone(tmp_path: Path) -> None:
    segments = [
        segment_store.append(
            tmp_path, "documents", log_of(("put", "kb/b", "two"), ("put", "kb/a", "one"), ("put", "kb/c", "三"))
        ),
        segment_store.append(tmp_path, "documents", log_of(("put", "kb/a", "one again"), ("gone", "kb/b", ""))),
        segment_store.append(tmp_path, "documents", log_of(("put", "kb/b", "back"), ("gone", "kb/c", "")), generation=9),
    ]
    manifest = Manifest("kb", 1, segments=segments)
    live = segment_store.live_documents(tmp_path, manifest, ["uri", "text"])
    assert live.to_pylist() == [{"uri": "kb/a", "text": "one again"}, {"uri": "kb/b", "text": "back"}]
    assert segment_store.live_documents(tmp_path, manifest).column_names == ["uri", "id", "file", "file_sha", "n"]
    assert segment_store.load(tmp_path, manifest, "documents", ["uri"])["uri"].to_pylist() == [
        "kb/b", "kb/a", "kb/c", "kb/a", "kb/b", "kb/b", "kb/c",
    ]  # fmt: skip
    assert segments[2]["file"] == f"documents-00000009-{segments[2]['sha256'][:8]}.parquet"
    assert segment_store.verify(tmp_path, manifest.segments) == []


# ---- sessions -----------------------------------------------------------------------------------


def test_a_journal_gives_back_its_events_and_survives_a_torn_last_line(tmp_path: Path) -> None:
    path = tmp_path / "drift" / "s.jsonl"
    assert sessions.read(path) == []
    events = [{"op": "start", "query": "谁？\n\u2028 \ud800"}, {"op": "answer", "score": None}, {"op": "更多", "n": 3}]
    for event in events:
        sessions.append(path, event)
    assert sessions.read(path) == events
    whole = path.read_bytes()
    for cut in range(1, 20):
        path.write_bytes(whole[:-cut])
        kept = events if cut == 1 else events[:2]
        assert sessions.read(path) == kept
        sessions.append(path, {"op": "next"})
        assert sessions.read(path) == [*kept, {"op": "next"}]
    path.write_bytes(json.dumps([1]).encode() + b"\n" + whole)
    assert sessions.read(path) == events


# ---- JSON of another form --------------------------------------------------------------------------

ODD = (None, True, -1, 1.5, 10**30, "x", "../x", [], [[]], [1], {}, {"a": 1}, {"a": []}, {"a": {"path": 1}}, [{"kind": 1}],
       {"..": 1})  # fmt: skip
BROKEN = (b"", b"null", b"7", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"a":' * 5_000, b'{"a":' * 500 + b"1" + b"}" * 500,
          b'{"check":NaN}', b"1" * 9_000)  # fmt: skip


def test_a_manifest_of_other_types_is_damaged_and_the_kept_generation_stands_in(tmp_path: Path) -> None:
    manifests.commit(tmp_path, Manifest("c", generation=1, created="first"))
    manifests.commit(tmp_path, Manifest("c", generation=2, created="second"))
    whole = json.loads((tmp_path / "manifest.json").read_bytes())
    whole.pop("check")
    good = manifests.current(tmp_path)
    for name in whole:
        for value in ODD:
            body = {**whole, name: value}
            raw = json.dumps({**body, "check": manifests._check(body)}).encode()
            (tmp_path / "manifest.json").write_bytes(raw)
            try:
                found = manifests.read(tmp_path)
            except NewerFormat:
                assert name == "format"
                continue
            assert type(getattr(found, name)) is type(getattr(good, name)), (name, value)
    for raw in BROKEN:
        (tmp_path / "manifest.json").write_bytes(raw)
        assert manifests.read(tmp_path) == good
    negative = {**whole, "counters": {"passages": -1}}
    (tmp_path / "manifest.json").write_text(json.dumps({**negative, "check": manifests._check(negative)}), "utf-8")
    assert manifests.read(tmp_path) == good


def test_a_head_of_a_store_of_another_form_is_damaged() -> None:
    whole = {"manifest": '{"generation": 3, "format": 2, "check": ""}', "files": {"truth/a": [1, "0" * 64]}, "dropped": []}
    assert Head.of(json.dumps(whole).encode(), Tag("t")).generation() == 3
    for raw in BROKEN:
        with pytest.raises(Damaged):
            Head.of(raw, Tag("t"))
    for name in whole:
        for value in (*ODD, {"../../x": [1, "0" * 64]}, {"/etc/x": [1, "0" * 64]}, {"truth/a": [1, "../x"]}):
            if value in ({}, []) and isinstance(value, type(whole[name])):
                continue
            with pytest.raises(Damaged):
                Head.of(json.dumps({**whole, name: value}).encode(), Tag("t")).generation()
