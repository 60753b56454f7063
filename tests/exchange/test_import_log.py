"""The log of imports: many become few, what counts stays, and a kill at any moment loses nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns import kills
from graphrag_mcp.doctor.generations import digest, rollback
from graphrag_mcp.index.imported import GRAPHS, IMPORT_LOG, IMPORTS, row_of
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.command import clean_environment
from tests.support.promises import doctor


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compaction with nearly every commit."""
    for name, value in (("SEGMENTS", 3), ("DEAD", 4), ("DEAD_GRAPHS", 2)):
        monkeypatch.setattr(segment_store, name, value)
    yield


def segments(folder: Path, kind: str) -> list[dict]:
    return [one for one in manifests.read(folder).segments if one["kind"] == kind]


def test_imports_of_a_folder_that_changes_stay_few_and_mean_the_same(tmp_path: Path, few: None) -> None:
    folder, variants = tmp_path / "kb", tmp_path / "variants"
    kills.exported(tmp_path / "exported", variants)
    earlier = 0
    for number in range(9):
        kills.bring(folder, variants, number % kills.VARIANTS)
        earlier = earlier or (manifests.read(folder).generation if number == 7 else 0)
    for kind, most in ((IMPORTS, 9 + 9), (GRAPHS, 1 + 2)):
        own = segments(folder, kind)
        assert len(own) <= 4 and sum(one["rows"] for one in own) <= most, own
    assert doctor(folder) == []
    kills.bring(tmp_path / "fresh", variants, 8 % kills.VARIANTS)
    wanted = digest(open_snapshot(tmp_path / "fresh"))["content"]
    assert digest(open_snapshot(folder))["content"] == wanted
    rollback(folder, earlier)  # the generations before keep their own
    assert doctor(folder) == []
    kills.bring(folder, variants, 8 % kills.VARIANTS)
    tables = folder / "tables"
    tables.rename(folder / "lost")
    left = doctor(folder, True, lambda folder: index_documents(folder, IndexRequest(), Settings()))
    assert all(one.repaired for one in left), left
    assert digest(open_snapshot(folder))["content"] == wanted, "and derived again from the log it is the same"


def test_only_rows_that_no_document_needs_are_left_out(tmp_path: Path) -> None:
    import pyarrow as pa

    from tests.store.test_store import log_of

    live = [row_of(f"kb/{at}", f"data {at}") for at in range(3)]
    dead = [row_of(f"kb/{at % 3}", f"old {at}") for at in range(600)]
    log = log_of(*[("put", f"kb/{at}", f"text {at}") for at in range(3)]).to_pylist()
    log = [row | {"file_sha": live[at]["id"]} for at, row in enumerate(log)]
    made = [segment_store.append(tmp_path, "documents", pa.Table.from_pylist(log), 1)]
    made += [
        segment_store.append(tmp_path, IMPORTS, pa.Table.from_pylist(rows, IMPORT_LOG), 1)
        for rows in (dead[:300], live, dead[300:])
    ]
    manifest = manifests.Manifest("kb", 1, segments=made, counters={"documents": 3})
    manifests.commit(tmp_path, manifest)
    merged = segment_store.tidy(tmp_path, manifest)
    assert [(one["kind"], one["rows"]) for one in merged.segments] == [("documents", 3), (IMPORTS, 3)]
    assert segment_store.load(tmp_path, merged, IMPORTS).to_pylist() == live
    assert segment_store.tidy(tmp_path, merged) is merged and segment_store.verify(tmp_path, merged.segments) == []


@pytest.mark.skipif(sys.platform == "win32", reason="copies of a process")
def test_kills_while_imports_are_compacted_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANCEDB_LOG", "PYTHONWARNINGS"):
        monkeypatch.setenv(name, clean_environment().get(name, ""))
    kills.quiet()
    kills.CONTEXT.set_forkserver_preload(["campaigns.kills"])
    wrong, done = kills.campaign(tmp_path, 1, ["imports"], seed=5)
    assert wrong == [] and done["imports"] == 1
