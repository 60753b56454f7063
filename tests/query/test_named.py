"""Names of a question and names by their documents: which passages a rare name decides, who is named most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

NOTES = {
    "a": "Clara Whitlock opened the harbour library. Clara Whitlock thanked Ned Farrow for the broadband cable.",
    "b": "Clara Whitlock told the Harbour Tide Authority that the masts would stay. Ned Farrow agreed.",
    "c": "The Harbour Tide Authority paid Clara Whitlock for broadband on the pier.",
    "d": "A clerk visited the Broadband Britain office in Leeds. The day was fine.",
}


def made(tmp_path: Path, texts: dict[str, str]) -> Snapshot:
    request = IndexRequest(texts=tuple(InlineText(text, id) for id, text in texts.items()))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    return open_snapshot(tmp_path / "c")


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return made(tmp_path_factory.mktemp("notes"), NOTES)


def test_an_unknown_list_is_an_error_that_names_the_known_ones(notes: Snapshot) -> None:
    with pytest.raises(BadInput, match="statement"):
        list_documents(notes, by="colour")


def test_the_map_of_a_corpus_ends_with_who_is_named_most(notes: Snapshot) -> None:
    for question in (
        "What is this about?",
        "What are these documents about and who matters?",
        "What is this collection about: main topics and sizes",
    ):
        text = global_search(notes, question).text
        assert re.search(r"People: Clara Whitlock \[e\d+\] 3, Ned Farrow \[e\d+\] 2", text), text
