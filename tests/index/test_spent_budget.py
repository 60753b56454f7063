"""An update that buys nothing: what models answered stays, what is new is read by rules, what is missing is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.store.tables import open_snapshot
from tests.support.files import written
from tests.support.openai_server import demonstrated, openai_server


@pytest.mark.slow
def test_a_budget_of_nothing_buys_nothing_keeps_what_was_paid_for_and_lists_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, home = written(tmp_path / "docs", 4), tmp_path / "home"

    def index(*options: str) -> dict:
        assert main(["index", str(docs), "--home", str(home), "--corpus", "kb", "--method", "llm", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    def by() -> list[str]:
        return open_snapshot(home / "corpora" / "kb").rows("mentions", columns=["by"])["by"].to_pylist()

    with openai_server(answer=demonstrated()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("GRAPHRAG_MCP_CHAT_MODEL", "demo")
        monkeypatch.setenv("GRAPHRAG_MCP_EMBEDDING_MODEL", "demo-vectors")
        assert index()["calls"] > 0
        answered = sum(map(bool, by()))
        assert answered
        (docs / "new.md").write_text("# Another\n\nMary Somerville met Luigi Menabrea in Turin.", "utf-8")
        asked = len(server.requests)
        for budget in ("--max-calls", "--max-tokens", "--max-cost"):
            record = index(budget, "0")
            assert len(server.requests) == asked and record["calls"] == 0
            assert record["pending"]["extract"] == 1 and record["pending"]["embedding"] >= 1
            assert {one["reason"] for one in record["degraded"]} == {"budget"}
            assert sum(map(bool, by())) == answered and record["counts"]["documents_total"] == 5
        record = index()
        assert record["calls"] > 0 and record["pending"] == {}, "the next run buys what is missing"
