"""A family name alone is the person whose full name the same text gives; nothing is merged where two could be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText


def indexed(folder: Path, *texts: str) -> Snapshot:
    request = IndexRequest(texts=tuple(InlineText(text, f"t{n}") for n, text in enumerate(texts)))
    index_documents(folder, request, Settings(home=folder.parent))
    return open_snapshot(folder)


def persons(snapshot: Snapshot) -> set[str]:
    return set(snapshot.rows("entities", "", ["title"])["title"].to_pylist())


def test_a_family_name_is_the_person_named_in_full_in_the_same_text(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path / "c", "Gordon Merrick met Anna Berg in Oslo. In the end Merrick wrote to Berg.", "We saw Merrick again.")
    assert {"Gordon Merrick", "Anna Berg"} <= persons(snapshot) and not {"Merrick", "Berg"} & persons(snapshot)
    found = get_entity(snapshot, "Merrick")
    assert found.title == "Gordon Merrick" and "Merrick" in found.aliases
    assert len(snapshot.rows("entities", "title = 'Gordon Merrick'", ["text_unit_ids"])["text_unit_ids"][0].as_py()) == 2


@pytest.mark.parametrize(
    "text",
    [
        "John Adams was the second of them. His son John Quincy Adams was the sixth. John Adams died in Oslo.",
        "George Merrick left in 1989. In 2001 came George W. Merrick of Oslo. Then George Merrick wrote to Anna Berg.",
    ],
)
def test_who_is_named_before_with_fewer_names_is_somebody_else(tmp_path: Path, text: str) -> None:
    long = "John Quincy Adams" if "Adams" in text else "George W. Merrick"
    assert {long, f"{long.split()[0]} {long.split()[-1]}"} <= persons(indexed(tmp_path / "c", text))
