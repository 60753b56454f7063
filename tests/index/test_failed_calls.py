"""Texts that a model refuses, and servers that refuse or go away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.index.test_index_with_model import demo, index, on, same, write_documents
from tests.support.openai_server import openai_server

NOTE = "Ada Lovelace met George Boole in Lincoln."


@pytest.mark.slow
def test_a_text_that_a_model_never_reads_costs_its_calls_once(tmp_path: Path) -> None:
    docs, corpus, refused = write_documents(tmp_path / "docs", 4), tmp_path / "c", [True]
    (docs / "new.md").write_text(NOTE, "utf-8")

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        said = messages[0]["content"]
        return "I cannot say." if refused[0] and "<text" in said and NOTE in said else demo(messages)

    with openai_server(answer) as server:
        chosen = on(server)
        before = index(corpus, docs, chosen)
        assert before.pending == {"extract": 1}
        result = index(corpus, docs, chosen)
        assert result.usage["calls"] == 0 and (result.pending, result.degraded) == (before.pending, before.degraded)
        (docs / "other.md").write_text("Charles Babbage wrote to Ada Lovelace.", "utf-8")
        assert index(corpus, docs, chosen).pending == {"extract": 1}  # beside what has to be written anyway
        refused[0] = False
        assert not index(corpus, docs, chosen, retry_refused=True).pending
        index(corpus, docs, chosen, recluster=True)
        index(tmp_path / "fresh", docs, chosen)
        assert same(corpus) == same(tmp_path / "fresh")


def letters(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_text(f"Ada Lovelace wrote letter {number} to Charles Babbage in London.", "utf-8")
    return folder


@pytest.mark.slow
def test_a_server_that_goes_away_is_not_tried_with_every_text_that_is_left(tmp_path: Path) -> None:
    docs = letters(tmp_path / "docs", 150)
    with openai_server(demo) as server:
        chosen = on(server, embedding_model="", max_retries=0, concurrency=4)
        server.script = [None] * 20 + [503] * 1_000
        result = index(tmp_path / "c", docs, chosen)
        assert result.status == "done" and len(server.requests) < 20 + 60
        assert result.pending["extract"] >= 100 and all(one["reason"] for one in result.degraded)
        server.script = []
        assert not index(tmp_path / "c", docs, chosen).pending


def test_texts_that_a_provider_refuses_do_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    docs = letters(tmp_path / "docs", 90)
    with openai_server(demo) as server:
        server.script = [(400, {}, '{"error": {"message": "flagged by the content filter"}}')] * 60
        result = index(tmp_path / "c", docs, on(server, embedding_model="", max_retries=0, concurrency=4))
    assert sum(result.pending.values()) == 60
