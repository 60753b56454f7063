"""A dry run beside the run itself, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaigns.model_campaign import write_documents
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import Server, demonstrated, openai_server


@pytest.fixture
def server() -> Iterator[Server]:
    with openai_server(demonstrated(), count=lambda text, sent: len(text.encode()) // 4) as running:
        yield running


def settings(server: Server, **more: Any) -> Settings:
    prices = {"price_prompt": 0.4, "price_output": 1.6, "price_embedding": 0.02}
    return Settings(**{"chat_model": "m", "embedding_model": "v", "base_url": server.url, **prices, **more})


def both(folder: Path, files: Path, chosen: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a dry run foresees, and what the run then uses."""
    request = IndexRequest(paths=(str(files),), method="llm")
    guess = index_documents(folder, replace(request, dry_run=True), chosen)
    assert guess.status == "estimate"
    return guess.estimate, index_documents(folder, request, chosen).usage


def exact(guess: dict[str, Any], used: dict[str, Any], *kinds: str) -> bool:
    """The questions about texts are foreseen call by call and token by token, as this test counts tokens."""
    return all(
        guess["by_stage"].get(kind, {}).get("calls", 0) == used["by_stage"].get(kind, {}).get("calls", 0) for kind in kinds
    )


def test_the_questions_about_texts_are_counted_exactly_and_nothing_is_asked_the_second_time(server: Server, tmp_path: Path) -> None:
    notes, chosen = write_documents(tmp_path / "notes", 40), settings(server, chunk_size=200)
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract") and guess["by_stage"]["extract"]["calls"] >= 40
    assert guess["by_stage"].keys() >= {"extract", "report", "embedding"}
    again, nothing = both(tmp_path / "c", notes, chosen)
    assert again["calls"] == nothing["calls"] == 0


def test_of_a_corpus_that_was_read_only_new_texts_are_counted(server: Server, tmp_path: Path) -> None:
    notes, chosen = write_documents(tmp_path / "notes", 40), settings(server)
    index_documents(tmp_path / "c", IndexRequest(paths=(str(notes),), method="llm"), chosen)
    write_documents(tmp_path / "more", 12, seed=2)
    for file in sorted((tmp_path / "more").iterdir()):
        file.rename(notes / f"later-{file.name}")
    (notes / "note003.md").unlink()
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract") and used["by_stage"]["extract"]["calls"] == 12
    prompts = (one["by_stage"]["extract"]["prompt_tokens"] for one in (guess, used))
    assert 0.8 < next(prompts) / next(prompts) < 1.25
    guess, used = both(tmp_path / "c", notes, replace(chosen, embedding_model="w"))
    assert guess["by_stage"].keys() == used["by_stage"].keys() == {"embedding"} and 0.5 < guess["calls"] / used["calls"] < 2


def foreseen(folder: Path, files: Path, chosen: Settings, method: str, **more: Any) -> dict[str, Any]:
    request = IndexRequest(paths=(str(files),), method=method, dry_run=True, **more)
    result = index_documents(folder, request, chosen)
    assert not result.hint  # nothing is other than before
    return result.estimate


def test_what_is_asked_again_and_what_follows_a_new_text_are_foreseen(tmp_path: Path, server: Server) -> None:
    files = write_documents(tmp_path / "files", 12)
    chosen = settings(server, embedding_model="", report_min_size=1, report_min_units=1)
    for method, kind in (("light", "summary"), ("llm", "extract")):
        folder = tmp_path / method
        index_documents(folder, IndexRequest(paths=(str(files),), method=method), chosen)
        assert foreseen(folder, files, chosen, "auto")["calls"] == 0
        again = foreseen(folder, files, chosen, "auto", refresh_answers=True)["by_stage"]
        assert again[kind]["calls"] and again["report"]["calls"]
    write_documents(tmp_path / "more", 1, seed=2)
    (tmp_path / "more" / "note000.md").rename(files / "later.md")
    assert foreseen(tmp_path / "llm", files, chosen, "auto")["by_stage"]["report"]["calls"]
