"""A corpus that a model read in parts, at different times and under different settings is that of one undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

from campaigns.model_campaign import EAGER, demo, write_documents
from campaigns.model_histories import Model, history
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
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


def test_a_random_history_ends_where_a_fresh_index_does(tmp_path: Path) -> None:
    model = Model()
    with openai_server(model) as server:
        wrong, told = history(tmp_path, 2, server, model)
    assert not wrong, told
