"""What a reference given to get_source names: an id, a list of ids, or the uri of a document."""

from __future__ import annotations

import pytest

from graphrag_mcp.errors import NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import lookup
from graphrag_mcp.query.lookup import get_source
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

REFERENCES = (
    InlineText("Marta Olsen built the harbour crane in Bergen.", "a", "Crane"),
    InlineText("Nils Olsen painted the harbour of Bergen.", "d1", "Painting"),
    InlineText("The harbour of Turku has a museum.", "t1", "Museum"),
    InlineText("Sofia Virta leads the museum of Turku.", "report t1", "Leader"),
    InlineText("The ferry to Mariehamn leaves at noon.", "[d1] ferry, d2", "Ferry"),
)


@pytest.fixture(scope="module")
def referenced(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("references")
    index_documents(home / "c", IndexRequest(texts=REFERENCES), Settings(home=home))
    return open_snapshot(home / "c")


@pytest.mark.parametrize("text", REFERENCES, ids=lambda text: str(text.id))
def test_a_uri_that_holds_an_id_is_read_as_a_uri(referenced: Snapshot, text: InlineText) -> None:
    for given in (f"text:{text.id}", f" text:{text.id} ", f"[text:{text.id}]"):
        (source,) = get_source(referenced, [given]).sources
        assert (source["uri"], source["title"]) == (f"text:{text.id}", text.title)


@pytest.mark.parametrize(
    "unknown",
    ["text:d3", "text:e1", "text:t2.1", "notes-d2", "d2-notes", "d2.md", "d2 notes.md", "notes/t2", "text:my d2", "chapter d2", "d2_old",
     "text:" + "0" * 32, "sources/t2", "text:d2, text:d3", "file:d2", "d2#page", "d2~2", "“d2”notes"],
)  # fmt: skip
def test_part_of_an_unknown_uri_is_no_id(referenced: Snapshot, unknown: str) -> None:
    with pytest.raises(NotFound):
        get_source(referenced, [unknown])
    assert unknown[:40] in get_source(referenced, ["t1", unknown]).hint


@pytest.mark.parametrize(
    "given",
    ["t1 t2", "t1, t2", "[t1][t2]", "[t1, t2]", "(t1; t2)", "t1/t2", "Sources (t1, t2)", "[Data: Sources (t1, t2, +more)]", "T1 and t2",
     "[Data: Sources (t1); Sources (t2)]"],
)  # fmt: skip
def test_a_list_of_ids_may_be_one_string(referenced: Snapshot, given: str) -> None:
    assert {one["id"] for one in get_source(referenced, [given]).sources} == {"t1", "t2"}


def test_an_id_is_not_cut_where_a_long_list_ends(referenced: Snapshot) -> None:
    aliases = lookup._aliases("t123456 " * 1_000)
    assert len(aliases) > 100 and set(aliases) == {"t123456"}


def test_an_id_is_the_document_that_results_call_so(referenced: Snapshot) -> None:
    (source,) = get_source(referenced, ["d1"]).sources
    assert source["document_id"] == "d1"
