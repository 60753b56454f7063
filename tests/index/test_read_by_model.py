"""What a model said of texts: its directions, its names with blanks, and reports beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.openai_server import Server, openai_server
from tests.support.promises import doctor
from tests.support.reply_forms import entity, records, relation

TEXT = (
    "AnnaBerg signed for the lock. The lock was repaired by Tidewright in May. Anna Berg wrote to Tidewright. "
    "Zeno asked about the price."
)


SAID = records(
    entity("AnnaBerg", "AnnaBerg signed the contract of 1.28 million euros."),
    entity("Anna Berg", "Anna Berg is the engineer of the lock."),
    entity("Tidewright", "Tidewright repaired the lock for 940,000 euros in 2019.", "organization"),
    entity("Zeno", "Zeno keeps the purse of the board."),
    relation("Zeno", "Tidewright", "Zeno paid Tidewright 12,500 euros."),
    relation("Tidewright", "Anna Berg", "Tidewright hired Anna Berg."),
    relation("Zeno", "Anna Berg", "Zeno employs Anna Berg."),
)


def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    assert '"rating_explanation"' not in messages[0]["content"]
    return SAID


def index(folder: Path, server: Server, **more: Any) -> Snapshot:
    given = {"chat_model": "m", "base_url": server.url, "max_retries": 0, "gleanings": "0", "report_min_units": 99}
    result = index_documents(folder, IndexRequest(texts=(InlineText(TEXT, "a"),), method="llm"), Settings(**{**given, **more}))
    assert result.status == "done" and not result.errors
    return open_snapshot(folder)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    with openai_server(answer) as server:
        return index(tmp_path / "c", server)


def test_a_direction_that_a_model_stated_is_kept(snapshot: Snapshot) -> None:
    names = {row["id"]: row["title"] for row in snapshot.rows("entities").to_pylist()}
    rows = snapshot.rows("relationships").to_pylist()
    ends = {(names[row["source_id"]], names[row["target_id"]]) for row in rows}
    assert ends == {("Zeno", "Tidewright"), ("Tidewright", "Anna Berg"), ("Zeno", "Anna Berg")}
    assert doctor(snapshot.folder) == []


def test_names_that_the_text_does_not_have_are_left_out_and_counted(tmp_path: Path) -> None:
    said = records(
        entity("Zeno", "Zeno asked."), entity("Greta Halloran", "She is named elsewhere."),
        relation("Zeno", "Greta Halloran", "They met."), relation("Zeno", "Tidewright", "Zeno asked Tidewright."),
    )  # fmt: skip
    with openai_server(lambda messages, body: said) as server:
        snapshot = index(tmp_path / "c", server)
    assert {row["title"] for row in snapshot.rows("entities").to_pylist()} == {"Tidewright", "Zeno"}
    (lost,) = snapshot.rows("losses").to_pylist()
    assert lost["dropped"] == 2 and "2 x name not in the text" in lost["reason"]
    for row in snapshot.rows("evidence").to_pylist():
        text = TEXT[row["start"] : row["end"]]
        assert "Zeno" in text or "Tidewright" in text
