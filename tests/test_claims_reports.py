"""Claims reach the reports and the answers: when they come later than the names, and under another of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from campaigns.model_campaign import EAGER, demo, same, write_documents
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.lookup import get_entity
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import Server, openai_server

# What these names do in each of three notes; the claim about the first uses its short name.
NOTES = {
    "a.md": "The Northern Harbour Board (NHB) runs Ember Bay with Nordlys Shipping. The NHB was fined by Nordlys Shipping.",
    "b.md": "Northern Harbour Board and Nordlys Shipping rebuilt Ember Bay.",
    "c.md": "Ember Bay is where Nordlys Shipping met the Northern Harbour Board.",
}
CLAIM = "(NHB<|>Nordlys Shipping<|>FINE<|>TRUE<|>NONE<|>NONE<|>The board was fined.<|>The NHB was fined by Nordlys Shipping.)<|COMPLETE|>"


def run(corpus: Path, docs: Path, server: Server, **more: Any) -> None:
    chosen = Settings(**{**EAGER, "embedding_model": "", "chat_model": "m", "base_url": server.url, "max_retries": 0})
    assert index_documents(corpus, IndexRequest(paths=(str(docs),), **more), chosen).status == "done"


def asks_for_claims(messages: list[dict[str, Any]]) -> bool:
    return "QUOTE" in str(messages[0]["content"])


def test_claims_that_come_in_a_later_run_are_in_its_reports(tmp_path: Path) -> None:
    docs = write_documents(tmp_path / "docs", 4)

    def without(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        return "" if asks_for_claims(messages) else demo(messages)

    with openai_server(demo) as server:
        run(tmp_path / "calm", docs, server)
        server.answer = without
        run(tmp_path / "c", docs, server)
        assert not open_snapshot(tmp_path / "c").count("claims")
        poorer = same(tmp_path / "c")
        server.answer = demo
        run(tmp_path / "c", docs, server)
    assert open_snapshot(tmp_path / "c").count("claims")
    assert same(tmp_path / "c") == same(tmp_path / "calm") != poorer


def test_claims_about_another_name_of_an_entity_are_its_claims(tmp_path: Path) -> None:
    docs, corpus = tmp_path / "docs", tmp_path / "c"
    docs.mkdir()
    for name, text in NOTES.items():
        (docs / name).write_text(text, "utf-8")
    shown: list[str] = []

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        if asks_for_claims(messages):
            return CLAIM if "was fined by" in str(messages) else "<|COMPLETE|>"
        if '"rating_explanation"' in str(messages[0]["content"]):
            shown.append(str(messages))
        return demo(messages)

    with openai_server(answer) as server:
        run(corpus, docs, server)
        snapshot = open_snapshot(corpus)
        (board,) = [row for row in snapshot.rows("entities").to_pylist() if "nhb" in row["names"]]
        assert board["title"] == "Northern Harbour Board"
        assert any("The board was fined." in one for one in shown)
        assert "The board was fined." in get_entity(snapshot, "Northern Harbour Board", max_tokens=2000).text
        assert "The board was fined." in local_search(snapshot, "Northern Harbour Board", max_tokens=4000).text
        shown.clear()
        (docs / "a.md").write_text(NOTES["a.md"].replace("was fined by", "was thanked by"), "utf-8")
        run(corpus, docs, server)
        fresh = tmp_path / "fresh"
        run(fresh, docs, server)
    assert not open_snapshot(corpus).count("claims") and shown
    assert same(corpus) == same(fresh)
