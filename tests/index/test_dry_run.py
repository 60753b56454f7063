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


def test_no_model_is_asked_about_a_note(server: Server, tmp_path: Path) -> None:
    notes, chosen = write_documents(tmp_path / "notes", 3), settings(server, embedding_model="")
    file = next(notes.iterdir())
    file.write_text(f"---\nkind: note\n---\n\n{file.read_text('utf-8')}", "utf-8")
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract") and guess["by_stage"]["extract"]["calls"] == 2


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


@pytest.mark.parametrize("gleanings, each", [("0", 0), ("1", 1)])
def test_second_looks_are_foreseen_as_they_are_set(server: Server, tmp_path: Path, gleanings: str, each: int) -> None:
    notes, chosen = write_documents(tmp_path / "notes", 20), settings(server, gleanings=gleanings, embedding_model="")
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    stages = index_documents(tmp_path / "c", request, chosen).estimate["by_stage"]
    assert stages.get("glean", {}).get("calls", 0) == each * stages["extract"]["calls"]


def test_reports_are_foreseen_as_short_as_they_are_set(server: Server, tmp_path: Path) -> None:
    notes, chosen = write_documents(tmp_path / "notes", 20), settings(server, report_tokens=1000)
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    report = index_documents(tmp_path / "c", request, chosen).estimate["by_stage"]["report"]
    assert report["prompt_tokens"] <= 1800 * report["calls"]


def test_a_dry_run_tells_what_is_derived_again_and_that_it_was_stopped(server: Server, tmp_path: Path) -> None:
    notes = write_documents(tmp_path / "notes", 3)
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    index_documents(tmp_path / "c", replace(request, method="auto", dry_run=False), Settings())
    hint = index_documents(tmp_path / "c", replace(request, method="auto"), Settings(chunk_size=300)).hint
    assert hint.startswith("All 3 documents are derived again")
    assert index_documents(tmp_path / "d", request, settings(server), cancelled=lambda: True).status == "cancelled"


def foreseen(folder: Path, files: Path, chosen: Settings, method: str, **more: Any) -> dict[str, Any]:
    request = IndexRequest(paths=(str(files),), method=method, dry_run=True, **more)
    return index_documents(folder, request, chosen).estimate


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
