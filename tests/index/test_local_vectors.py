"""An index with a real small model that is damaged, changed, missing, or whose run was killed: one sentence says so,
search by words goes on, and the next run with a good model completes the vectors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.opening import open_asker
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import reply_cache
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.small_model import shortened, write_model

NOTES = {
    "vessel": "The vessel sank in a storm off the cape.",
    "bread": "Flour and yeast rise overnight.",
    "tax": "The council raised the levy on houses.",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("minilm"))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    return folder


def index(notes: Path, model: Path) -> IndexResult:
    settings = Settings(home=notes.parent / "home", embedding_model=f"local:{model}")
    return index_documents(corpus_of(notes), IndexRequest(paths=(str(notes),)), settings)


def corpus_of(notes: Path) -> Path:
    return notes.parent / "home" / "corpora" / "notes"


def asked(notes: Path, question: str, model: Path | None = None) -> tuple[bool, str]:
    """Whether the words of the question find the vessel, and the hint where no vector was compared."""
    settings = Settings(home=notes.parent / "home", embedding_model=f"local:{model}" if model else "")
    snapshot = open_snapshot(corpus_of(notes))
    asker = open_asker(corpus_of(notes), settings, limited=False)
    found = local_search(snapshot, question, asker=asker)
    told = found.hint if "decided" in found.hint else ""
    return found.citations[0].uri.endswith("vessel.txt"), told


def test_a_model_that_is_gone_or_of_another_size_costs_the_vectors_alone(
    notes: Path, model: Path, tmp_path: Path
) -> None:
    used = shutil.copytree(model, tmp_path / "used")
    assert not index(notes, used).pending
    assert asked(notes, "storm off the cape") == (True, "")
    shutil.rmtree(used)
    found, told = asked(notes, "the cape in a storm")
    assert found and f"is gone ({used})" in told and "graphrag-mcp index FOLDER --vectors" in told
    used.mkdir()
    (used / "model.onnx").write_bytes(b"cut")
    shutil.copy(model / "tokenizer.json", used)
    found, told = asked(notes, "the cape in storms")
    assert found and f"the model {used / 'model.onnx'} cannot be read" in told
    shortened(model, used, 64)
    found, told = asked(notes, "a vessel off the cape")
    assert found and "64 numbers, and those of this index have 384" in told
    (notes / "ink.txt").write_text("The scribe dips his quill.", "utf-8")
    result = index(notes, used)
    assert result.pending["embedding"] > 0
    assert any("64 numbers, and those of this index have 384" in row["reason"] for row in result.degraded)


def test_vectors_of_another_model_are_not_compared_and_are_made_again(
    notes: Path, model: Path, tmp_path: Path
) -> None:
    assert not index(notes, model).pending
    other = shortened(model, tmp_path / "other", 64)
    found, told = asked(notes, "storm off the cape", other)
    assert found and f"made with local:{model}, not with local:{other}" in told
    assert not index(notes, other).pending
    assert asked(notes, "storm off the cape", other) == (True, "")


@pytest.mark.skipif(sys.platform == "win32", reason="ends the process by a signal")
def test_vectors_that_were_made_before_a_kill_are_not_made_again(notes: Path, model: Path) -> None:
    for number in range(300):
        (notes / f"{number}.txt").write_text(f"The boat {number} of the cape. " + f"It carries salt {number}. " * 12, "utf-8")
    home, corpus = notes.parent / "home", corpus_of(notes)
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(notes), "--corpus", "notes", "--home", str(home)]
    environment = {**os.environ, "GRAPHRAG_MCP_EMBEDDING_MODEL": f"local:{model}"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None and not vectors_kept(corpus):
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = vectors_kept(corpus)
    result = index(notes, model)
    made = vectors_kept(corpus) - kept
    assert kept and made and not result.pending
    most = made + Settings().embedding_batch * len(VECTORS)  # each table ends with a call that is not full
    assert result.usage["by_stage"]["embedding"]["calls"] * Settings().embedding_batch <= most


def vectors_kept(corpus: Path) -> int:
    """How many vectors the reply cache holds."""
    exists = (corpus / reply_cache.NAME).exists()
    return reply_cache.AnswerBook(corpus).kinds().get("embedding", 0) if exists else 0
