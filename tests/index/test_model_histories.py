"""A corpus that a model read in parts, at different times and under different settings is that of one undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from campaigns.model_campaign import EAGER, demo, same, write_documents
from campaigns.model_histories import Model, history
from graphrag_mcp.index import batches
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.openai_server import Server, openai_server
from tests.support.promises import doctor

Messages = list[dict[str, Any]]
# A report of more rows than this is made of the reports below it.
DEEP = {**EAGER, "embedding_model": "", "report_tokens": 400, "max_cluster_size": 5}


def run(corpus: Path, docs: Path, server: Server, recluster: bool = False, **more: Any) -> IndexResult:
    chosen = Settings(**{**DEEP, "chat_model": "m", "base_url": server.url, "max_retries": 0, **more})
    method = "llm" if chosen.chat_model else "auto"
    request = IndexRequest(paths=(str(docs),), method=method, recluster=recluster, retry_refused=True)
    result = index_documents(corpus, request, chosen)
    assert result.status == "done" and not result.errors
    return result


def but(refused: Callable[[str], object]) -> Callable[[Messages, Any], str]:
    """A model that says nothing where the words of the question are such."""
    return lambda messages, body: "" if refused("\n".join(str(one["content"]) for one in messages)) else demo(messages)


def is_report(words: str) -> bool:
    return '"rating_explanation"' in words


def odd(words: str) -> int:
    """Of a question, the same when it is asked once more."""
    return crc32(words.partition("A first reply")[0].strip().encode()) % 2


def reports(corpus: Path) -> dict[str, tuple[str, str]]:
    return {
        row["id"]: (row["method"], row["full_content"]) for row in open_snapshot(corpus).rows("reports").to_pylist()
    }


def test_a_report_made_of_reports_is_made_again_when_one_of_them_is_repaired(tmp_path: Path) -> None:
    docs = write_documents(tmp_path / "docs", 12)
    with openai_server(demo) as server:
        run(tmp_path / "calm", docs, server)
        wanted = reports(tmp_path / "calm")
        # every other report that is made of rows alone: of the rest the reports above are made
        server.answer = but(lambda words: is_report(words) and "id,title,content" not in words and odd(words))
        result = run(tmp_path / "c", docs, server)
        assert result.pending["report"] and {"llm", "extractive"} == {
            how for how, _ in reports(tmp_path / "c").values()
        }
        server.answer = demo
        assert not run(tmp_path / "c", docs, server).pending
    assert reports(tmp_path / "c") == wanted and doctor(tmp_path / "c") == []


def test_a_report_that_no_model_could_write_stays_listed_while_there_is_none(tmp_path: Path) -> None:
    docs = write_documents(tmp_path / "docs", 4)
    with openai_server(but(is_report)) as server:
        corpus = tmp_path / "c"
        assert run(corpus, docs, server).pending["report"]
        (docs / "note000.md").write_text((docs / "note001.md").read_text("utf-8"), "utf-8")
        assert run(corpus, docs, server, chat_model="").pending["report"]
        server.answer = demo
        assert not run(corpus, docs, server, recluster=True).pending
        run(tmp_path / "calm", docs, server)
    assert same(corpus) == same(tmp_path / "calm")


def test_vectors_of_a_model_that_was_tried_and_given_up_are_not_taken_for_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_PASSAGES", 2)
    corpus, docs = tmp_path / "c", write_documents(tmp_path / "docs", 3)
    with openai_server(demo) as server:
        run(corpus, docs, server, embedding_model="old")
        write_documents(docs, 18)
        server.dimension, generation = 12, open_snapshot(corpus).manifest.generation

        def later() -> bool:
            return open_snapshot(corpus).manifest.generation > generation + 2

        new = Settings(**{**DEEP, "chat_model": "m", "base_url": server.url, "embedding_model": "new"})
        assert index_documents(corpus, IndexRequest(paths=(str(docs),), method="llm"), new, cancelled=later).status == "cancelled"
        server.dimension = 8
        assert not run(corpus, docs, server, embedding_model="old").pending
    snapshot = open_snapshot(corpus)
    for table, vectors in VECTORS.items():
        assert {len(row["vector"]) for row in snapshot.rows(vectors).to_pylist()} == {8}
        assert snapshot.count(vectors) == snapshot.count(table)


def test_a_report_that_is_not_worth_a_call_any_more_is_not_waited_for(tmp_path: Path) -> None:
    docs, corpus = write_documents(tmp_path / "docs", 4), tmp_path / "c"
    with openai_server(but(is_report)) as server:
        assert run(corpus, docs, server).pending["report"]
        assert not run(corpus, docs, server, report_min_size=99).pending
        server.answer = demo
        assert not run(corpus, docs, server).pending
        run(tmp_path / "calm", docs, server)
    assert same(corpus) == same(tmp_path / "calm")


def test_a_random_history_ends_where_a_fresh_index_does(tmp_path: Path) -> None:
    model = Model()
    with openai_server(model) as server:
        wrong, told = history(tmp_path, 2, server, model)
    assert not wrong, told
