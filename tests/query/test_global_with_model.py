"""Global search with a model: one answer over numbered reports, and honest failures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing import sending
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.request import AnswerOptions
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import Snapshot
from tests.support.scripted import ScriptedChat

QUESTION = "How does the back-run affect the eelgrass?"
ANSWER = "The meadow grows [Data: Reports (c1, c99)]."


@pytest.fixture(scope="module")
def snapshot(deep_sample: Snapshot) -> Snapshot:
    return deep_sample


def asker(*rules: Any, book: Path | None = None, **options: Any) -> tuple[Asker, ScriptedChat]:
    chat = ScriptedChat([*rules, ("<context>", ANSWER)], **options)
    return Asker(AnswerBook(book) if book else None, chat, None), chat


def rows_of(chat: ScriptedChat) -> list[str]:
    """The reports of the one prompt, as rows."""
    (call,) = chat.calls
    return re.findall(r"^- \[c\d+\] .+$", call[-1].content, re.MULTILINE)


def reports_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    return {f"c{row['n']}": row for row in snapshot.rows("reports").to_pylist()}


def test_one_question_over_reports_is_asked_and_what_the_answer_cites_resolves(snapshot: Snapshot) -> None:
    door, chat = asker()
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert (result.state, result.method) == ("answered", "llm:scripted")
    read, rows = rows_of(chat), reports_of(snapshot)
    assert len(read) > 3 and any("eelgrass" in row.lower() for row in read)
    cited = re.findall(r"\bc\d+\b", result.answer)
    assert len(set(cited)) == 1 and cited[0] in rows and "c99" in result.hint
    assert f"* [{cited[0]}] {rows[cited[0]]['title']}" in result.answer and result.text.startswith(result.answer)
    assert re.search(r", lines \d+-\d+", result.answer)
    assert result.usage["by_stage"]["answer"]["calls"] == 1 and sending.size(result)[0] <= 6000


def test_the_prompt_holds_no_stored_number(snapshot: Snapshot) -> None:
    door, chat = asker()
    global_search(snapshot, QUESTION, asker=door, answer=True)
    numbers = re.findall(r"^- \[c(\d+)\]", "\n".join(rows_of(chat)), re.MULTILINE)
    assert numbers == [str(n + 1) for n in range(len(numbers))]
    assert not re.search(r"[0-9a-f]{32}", chat.calls[0][-1].content)


def test_the_book_answers_the_same_question_and_a_slow_one_later(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker(book=tmp_path, latency=0.2)
    first = global_search(snapshot, QUESTION, asker=door, answer=True, options=AnswerOptions(seconds=0.1))
    assert first.state == "partial" and "- [t" in first.text and "same call again" in first.hint
    second = global_search(snapshot, QUESTION, asker=door, answer=True, options=AnswerOptions(seconds=10))
    again = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert second.state == again.state == "answered" and again.answer == second.answer
    assert len(chat.calls) == 1 and again.usage["calls"] == 0


def test_a_model_that_fails_leaves_the_search_without_a_model(snapshot: Snapshot) -> None:
    door, _ = asker(("", ModelError("the server said 503", "Try later")))
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert (result.state, result.answer) == ("failed", "") and "- [t" in result.text and "503" in result.hint


@pytest.mark.parametrize("budget", [200, 500, 1500, 6000])
def test_no_answered_result_passes_its_budget(snapshot: Snapshot, budget: int) -> None:
    door, _ = asker(("", "The meadow grows. " * 40 + "[Data: Reports (c1)]"))
    result = global_search(snapshot, QUESTION, asker=door, answer=True, max_tokens=budget)
    assert sending.size(result)[0] <= budget and result.state == "answered"


def test_a_level_is_read_and_one_too_deep_is_said(snapshot: Snapshot) -> None:
    deepest = max(row["level"] for row in reports_of(snapshot).values())
    door, chat = asker()
    result = global_search(snapshot, QUESTION, level=deepest + 5, asker=door, answer=True)
    assert f"no level {deepest + 5}" in result.hint and str(deepest) in result.hint and len(rows_of(chat)) > 5
    assert f"no level {deepest + 5}" in global_search(snapshot, QUESTION, level=deepest + 5).hint
    assert "no level" not in global_search(snapshot, QUESTION, level=deepest).hint
