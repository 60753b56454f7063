"""Bit rot: one flipped bit anywhere on disk is found, never served, and repaired without buying anything."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from campaigns.bits import OFF, build, contents, flipped, like_a_new_process, mend, places, try_all
from graphrag_mcp.doctor.doctor import DERIVE
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import Damaged
from graphrag_mcp.index.merge import merge
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import Snapshot, compact, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.promises import doctor


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("bits"), 6)


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "kb"))


def biggest(folder: Path, pattern: str) -> Path:
    return max((folder / "tables").glob(pattern), key=lambda path: path.stat().st_size)


def test_a_bit_flipped_anywhere_is_found_and_nothing_wrong_is_served(index: Path) -> None:
    told = try_all(index, places(index, 8, 1, seed=3), seed=3)
    assert {"truth", "data", "_indices", "_versions", "_deletions", "_transactions"} <= told.keys()
    assert {"files", "generations", "manifest.json", "answers.db"} <= told.keys()
    assert {name: counts for name, counts in told.items() if counts["missed"] or counts["wrong"]} == {}
    assert doctor(index) == []


def test_repair_gives_the_same_content_without_a_call(index: Path) -> None:
    chosen = [(biggest(index, "*/data/*"), 900), (biggest(index, "passages.lance/_versions/*.manifest"), 30)]
    assert mend(index, [*chosen, *places(index, 1, 0, seed=5)]) == []


def test_a_damaged_row_is_left_out_also_where_only_some_of_its_columns_are_read(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = contents(index)["entities"]
    titles = set(open_snapshot(index).rows("entities", columns=["title"])["title"].to_pylist())
    for path in (index / "tables" / "entities.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes().replace(b"Royal", b"Rogal"))
    like_a_new_process(index)
    with caplog.at_level(logging.WARNING):
        snapshot = open_snapshot(index)
        shown = set(snapshot.rows("entities", columns=["title"])["title"].to_pylist())
        assert shown < titles and contents(index)["entities"] < right
        assert {row["title"] for part in snapshot.batches("entities", ["title"]) for row in part.to_pylist()} == shown
    assert "does not match its check value" in caplog.text and "doctor --repair" in caplog.text


@pytest.mark.parametrize("where", ["memberships.lance/data/*", "terms.lance/data/*", "passages.lance/_indices/*/*",
                                   "terms.lance/_deletions/*"])  # fmt: skip
def test_what_rows_cannot_say_of_themselves_is_refused_as_a_whole(index: Path, where: str) -> None:
    path = biggest(index, where)
    with flipped(path, path.stat().st_size // 2, 0):
        like_a_new_process(index)
        table = where.split(".")[0]
        with pytest.raises(Damaged, match="doctor --repair"):
            open_snapshot(index).rows(table)
        assert (f"tables/{path.relative_to(index / 'tables')}", DERIVE) in {
            (found.where, found.repair) for found in doctor(index)
        }
    like_a_new_process(index)
    assert doctor(index) == []


def test_damage_is_not_copied_into_new_files_by_a_compaction(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    manifest = manifests.read(index)
    assert manifest is not None

    path = biggest(index, "mentions.lance/data/*")
    kept, tables.TAIL_FRAGMENTS = tables.TAIL_FRAGMENTS, 1
    try:
        with flipped(path, 40, 2), caplog.at_level(logging.WARNING):
            like_a_new_process(index)
            versions = compact(index, manifest)
            assert versions is not None and versions["mentions"] == manifest.tables["mentions"]
            assert versions["passages"] > manifest.tables["passages"]
        assert "mentions is not compacted" in caplog.text
    finally:
        tables.TAIL_FRAGMENTS = kept


def test_an_update_does_not_build_on_rows_that_are_damaged(index: Path) -> None:
    for path in (index / "tables" / "entities.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes().replace(b"Royal", b"Rogal"))
    like_a_new_process(index)
    manifest = manifests.read(index)
    assert manifest is not None
    rows = Snapshot(index, manifest, examine=True).rows("entities", columns=["text_unit_ids", "evidence"]).to_pylist()
    told = [row for row in rows if "Rogal" in str(row["evidence"]) and len(row["text_unit_ids"]) > 1]
    assert told
    for row in told:  # left out, it would be written a second time under its id
        with pytest.raises(Damaged, match="check values"):
            merge(Snapshot(index, manifest), {row["text_unit_ids"][0]}, {}, {"e": 10_000, "r": 10_000})


def test_the_answers_of_a_damaged_book_that_are_whole_are_kept(index: Path) -> None:
    path = index / "answers.db"
    entries = contents(index)["answers"]
    raw = path.read_bytes()
    place = raw.index(b'{"entities": ')
    path.write_bytes(raw[:place] + b"{" + bytes([raw[place + 1] ^ 1]) + raw[place + 2 :])
    assert {found.kind for found in doctor(index)} == {"answers"}
    assert all(found.repaired for found in doctor(index, repair=True))
    assert doctor(index) == []
    left = contents(index)["answers"]
    assert left < entries and len(entries) - len(left) == 1


@pytest.mark.parametrize("lie", [b'{"version":1}', b'{"version":99}', b"{", b""])
def test_lance_does_without_its_hint_of_the_newest_version(index: Path, lie: bytes) -> None:
    wanted = digest(open_snapshot(index))
    (index / "tables" / "passages.lance" / "_versions" / manifests.HINT).write_bytes(lie)
    like_a_new_process(index)
    assert (doctor(index), digest(open_snapshot(index))) == ([], wanted)
    assert index_documents(index, IndexRequest(recluster=True), OFF).status == "done"  # writes that table, too
    assert (doctor(index), digest(open_snapshot(index))["content"]) == ([], wanted["content"])


# ---- records -------------------------------------------------------------------------------------


def test_records_of_before_have_a_crc_too_and_are_held_to_their_sha(index: Path) -> None:
    before = manifests.read(index)
    assert before is not None
    known, _ = manifests.recorded(index, before.files)
    raw = json.dumps({table: {path: [*value, 7] for path, value in paths.items()} for table, paths in known.items()})
    (index / "files" / "old.json").write_text(raw)
    entries = [{"file": "old.json", "sha256": hashlib.sha256(raw.encode()).hexdigest()}]
    path = biggest(index, "passages.lance/data/*")
    for records in (before.files, entries):
        for flip in (False, True):
            like_a_new_process(index)
            with flipped(path, 40, 2) if flip else nullcontext():
                wrong = manifests.spoiled(index, records, "passages")
            assert ["SHA-256" in line for line in wrong] == [True] * flip


def test_several_records_of_an_earlier_release_are_read_together(index: Path) -> None:
    before = manifests.read(index)
    assert before is not None
    known, _ = manifests.recorded(index, before.files)
    entries = []
    for number, table in enumerate(known):
        raw = json.dumps({table: known[table]}).encode()
        (index / "files" / f"{number}.json").write_bytes(raw)
        entries.append({"file": f"{number}.json", "sha256": hashlib.sha256(raw).hexdigest()})
    assert manifests.recorded(index, entries) == (known, [])
    (index / "files" / "0.json").write_bytes(b"{}")
    now, raw = manifests.record(index, entries, before.tables, before.tables, 99)
    assert raw and now[:-1] == entries[:1], "the damaged record stays named for doctor"
