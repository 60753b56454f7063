"""A report between the two commits of a run: texts have gone, and communities are those from before."""

from __future__ import annotations

from pathlib import Path

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest
from graphrag_mcp.types import IndexRequest
from tests.support.client import connected

TEXTS = {
    "tower": "John Smeaton built the Eddystone Lighthouse in 1759. The Royal Society had recommended John Smeaton.",
    "leeds": "John Smeaton came from Leeds. The Royal Society heard John Smeaton speak on water wheels in Leeds.",
    "storm": "The Great Storm drowned Henry Winstanley at the Eddystone Lighthouse. John Smeaton read of the Great Storm.",
}


def test_a_report_that_cites_a_deleted_text_says_so_until_it_is_written_again(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / f"{name}.md").write_text(f"{text}\n", "utf-8")
    settings = Settings(home=home, roots=(root,))
    app, folder = App(settings, "c"), home / "corpora" / "c"
    request = IndexRequest((str(root),), remove_missing=True)
    index_documents(folder, request, settings)
    with connected(build_server(app)) as call:
        before = call.good("get_community_report", community_id="c1")
        assert "brought up to date" not in before["hint"]
        for name in ("tower", "leeds"):
            (root / f"{name}.md").unlink()
        late = index_documents(folder, request, settings, cancelled=lambda: bool(manifest.current(folder).stale))
        assert late.status == "cancelled" and manifest.current(folder).stale == ["communities"]
        hint = call.good("get_community_report", community_id="c1")["hint"]
        assert "being brought up to date" in hint and "2 texts that this report cites left the index" in hint
        drift = call.good("drift_search", query="Who was John Smeaton?")
        assert "water wheels" in drift["text"] and "being brought up to date" in drift["hint"]
        index_documents(folder, request, settings)
        assert not manifest.current(folder).stale
        after = call.good("list_documents")
        assert "brought up to date" not in call.good("drift_search", query="Who was John Smeaton?")["hint"]
        assert "tower" not in after["text"]
