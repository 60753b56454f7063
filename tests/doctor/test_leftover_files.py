"""What a process that was killed, or somebody who put a file back, leaves in a corpus: told, and put right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.command import run_here
from tests.support.promises import doctor


def add(index: Path, *names: str) -> None:
    for name in names:
        request = IndexRequest(texts=(InlineText(f"Note {name}. Ada Quill met Henry Winstanley.", name),))
        index_documents(index, request, Settings(home=index.parent.parent))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "corpora" / "kb"
    add(folder, "first")
    return folder


def test_what_a_killed_process_left_is_a_remark_and_goes_with_the_next_commit_of_another(index: Path) -> None:
    """Also where the other process has committed before, as a server has when a job's process dies."""
    number = f"{manifests.read(index).generation + 1:08d}"  # what a commit that did not happen would have been
    left = [index / "truth" / f"documents-{number}-deadbeef.parquet", index / "files" / f"{number}-deadbeef.json"]
    for path in left:
        path.write_bytes(b"left")
    assert [(one.kind, one.remark) for one in doctor(index)] == [("orphan", True)] * 2
    home = ["--home", str(index.parent.parent), "--corpus", index.name]
    told = run_here("doctor", *home)
    assert told.returncode == 0 and told.stdout.count("remark: orphan") == 2 and "is sound" in told.stdout
    add(index, "after")
    assert doctor(index) == [] and not any(path.exists() for path in left)


@pytest.mark.slow
def test_an_older_manifest_that_was_put_back_is_a_finding_and_repair_drops_nothing(index: Path) -> None:
    """Before, it was called sound, and the next commit removed what had been acknowledged since."""
    old = (index / "manifest.json").read_bytes()
    add(index, "one", "two", "three")
    newest = manifests.read(index)
    (index / "manifest.json").write_bytes(old)
    for repair in (False, True):
        found = [one for one in doctor(index, repair=repair) if one.where == "manifest.json"]
        assert [one.what for one in found] == [f"generation {newest.generation} was committed after the one it names"]
        assert not found[0].repaired and manifests.generations(index)[-1] == newest
    (index / "manifest.json").unlink()
    doctor(index, repair=True)
    assert doctor(index) == [] and manifests.read(index) == newest
    (index / "generations" / f"{newest.generation + 1:08d}.json").write_bytes(
        replace(newest, generation=newest.generation + 1).to_json().encode()
    )
    assert doctor(index) == []  # one more is a commit that was killed
