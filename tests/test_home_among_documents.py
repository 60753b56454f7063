"""A home that lies in a folder that is indexed: its own files are no documents."""

from __future__ import annotations

from pathlib import Path

from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.walk import find
from tests.test_read import uris, write


def test_a_home_among_the_documents_is_none_of_them(tmp_path: Path) -> None:
    """Read as documents, an index would hold itself, what was removed from it, and what others asked."""
    base = write(tmp_path / "d", {
        "a.md": "a", "idx/b.md": "b", "idx/corpora/k/manifest.json": "{}", "idx/jobs/j.json": '{"text": "x"}',
        "idx/drift/s.jsonl": '{"text": "x"}', "theirs/corpora/k/manifest.json": '{"text": "x"}',
        "theirs/corpora/k/truth/x.md": "x", "theirs/corpora/k/tables/x.md": "x", "drift/c.md": "c", "idx/key": "of the home",
    })  # fmt: skip
    settings = Settings(home=base / "idx")
    found = find([str(base)], {}, settings)
    assert uris(found) == ["d/a.md", "d/drift/c.md", "d/idx/b.md"] and not found.errors
    assert found.skipped == {"dependency or build folder": 1, "index of this server": 4}
    named = find([str(base / "idx/corpora"), str(base / "idx/jobs/j.json"), str(base / "idx/key")], {}, settings)
    assert named.files == [] and named.sources == {} and named.scopes == []
    assert {error["reason"] for error in named.errors} == {"index of this server, and such files are never indexed"}
