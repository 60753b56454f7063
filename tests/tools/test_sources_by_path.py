"""get_source: a document by its path, as a person or an editor names it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.support.client import connected


def test_a_document_is_found_by_its_absolute_path_and_in_either_form_of_its_accents(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "inner").mkdir(parents=True)
    name = "Käthe Ångström.md"
    (root / unicodedata.normalize("NFD", name)).write_text("Käthe Ångström drew the map of the harbour.\n", "utf-8")
    (root / "inner" / "plan.md").write_text("The plan names a second harbour.\n", "utf-8")
    (root / "plan.md").write_text("The first plan was thrown away.\n", "utf-8")
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(root,))))) as call:
        call.good("index_documents", paths=["."], wait_seconds=50)
        for form in ("NFC", "NFD"):
            for path in (str(root / name), name, f"notes/{name}"):
                found = call.good("get_source", ids=[unicodedata.normalize(form, path)])
                assert "drew the map" in found["text"], (form, path)
        for path, words in ((root / "inner" / "plan.md", "second harbour"), (root / "plan.md", "thrown away")):
            found = call.good("get_source", ids=[str(path)])
            assert len(found["sources"]) == 1 and words in found["text"]
        assert "none of these ids is known" in call.bad("get_source", ids=[str(tmp_path / "elsewhere" / "plan.md")])


def test_a_place_is_found_as_citations_and_editors_write_it(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a b.md").write_text("The mill was built.\n\nThe dam broke in spring.\n\nIt was mended.\n", "utf-8")
    path, uri = str(root / "a b.md"), (root / "a b.md").as_uri()
    relative = "notes/a b.md"
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(root,))))) as call:
        call.good("index_documents", paths=["."], wait_seconds=50)
        for place in (f"{relative}:3", f"{relative}:3-4", f"{relative}#L3-L4", f"./{relative}:3", f"{path}:3-3", uri, f"{uri}#L3"):
            assert "The dam broke in spring." in call.good("get_source", ids=[place])["text"], place
        assert "none of these ids is known" in call.bad("get_source", ids=[f"{relative}:900"])
