"""Folders of files, and indexes of texts, for tests."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.index.test_index import document


def snapshot_of(corpus: Path, texts: Iterable[InlineText]) -> Snapshot:
    """A new index of these texts, without a model."""
    index_documents(corpus, IndexRequest(texts=tuple(texts)), Settings(home=corpus.parent))
    return open_snapshot(corpus)


def write(base: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return base


def many_files(folder: Path, count: int = 130) -> Path:
    """More files than a thread of the server takes: a job for a process of its own."""
    folder.mkdir()
    for number in range(count):
        text = f"# Note {number}\n\nKeeper {chr(65 + number % 26)}ldous Finch met Mary Somerville at Bell Rock on day {number}.\n"
        (folder / f"note{number}.md").write_text(text, "utf-8")
    return folder


def written(folder: Path, count: int = 5, seed: int = 1) -> Path:
    rng = random.Random(seed)
    (folder / "sub").mkdir(parents=True)
    for number in range(count):
        place = folder / "sub" if number % 3 == 2 else folder
        (place / f"{number}.md").write_text(f"{document(rng)}\n\nThis is file {number} of {seed}.", "utf-8")
    return folder
