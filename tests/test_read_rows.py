"""Objects and rows as documents: a file that is one, and a file that is far too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.read import load
from graphrag_mcp.sources.walk import find
from graphrag_mcp.types import IndexRequest
from tests.support.workload import ends
from tests.test_read import one, rows


def test_a_json_file_of_one_object_with_a_text_is_that_document(tmp_path: Path) -> None:
    whole = '{"title": "Lamps", "text": "The lamp was lit.", "date": "2024-05-06", "n": 3, "tags": ["a"], "id": "x7"}'
    (document,) = one(tmp_path, "a.json", whole)
    assert (document.uri, document.title, document.text) == ("d/a.json", "Lamps", "The lamp was lit.")
    assert document.metadata == {"date": "2024-05-06", "n": 3, "tags": ["a"]} and document.created.startswith(
        "2024-05-06"
    )
    for text in (
        '{"Title": "Lamps", "Body": "It burns.", "by": {"name": "Ada"}}',
        '{"content": "It burns.", "title": "Lamps"}',
    ):
        (document,) = one(tmp_path, "a.json", text)
        assert (document.uri, document.title, document.text) == ("d/a.json", "Lamps", "It burns.")
    for plain in (
        '{"title": "Lamps"}',
        '{"text": "", "title": "L"}',
        '{"text": "a", "children": [{"text": "b"}]}',
        '{"text": 3}',
    ):
        assert rows(one(tmp_path, "a.json", plain)) == [("d/a.json", "a.json", plain, {})]


def test_a_small_file_of_very_many_rows_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("n\n" + "1\n" * 500_000)
    (folder / "b.jsonl").write_text('{"text": "a"}\n' * 31)
    (folder / "c.csv").write_text("n\n" + "1\n" * 30)
    with ends():
        result = index_documents(
            tmp_path / "c", IndexRequest(paths=(str(folder),)), Settings(home=tmp_path, max_text_units=30)
        )
    assert result.counts["documents_total"] == 30
    assert {error["path"] for error in result.errors} == {"d/a.csv", "d/b.jsonl"}
    assert all("over 30 rows" in error["reason"] and "max_text_units" in error["reason"] for error in result.errors)
    (file,) = find([str(folder / "a.csv")], {}, Settings(home=tmp_path)).files
    with pytest.raises(ReadError, match="over 200,000 rows.*Split it"):
        list(load(file, Settings(home=tmp_path)))
