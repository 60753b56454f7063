"""Questions about a corpus as a whole, in many languages: answered by its reports, not by 'not found'."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.query.choose import choose
from graphrag_mcp.query.global_ import asked_about, global_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot

WHOLE = [
    "Summarise the news", "What are the main themes?", "Fasse die Themen zusammen", "Quels sont les thèmes principaux ?",
    "¿Cuáles son los temas principales?", "Каковы основные темы?", "总结一下这些新闻的主题", "概述一下", "文書の要約をしてください",
    "この資料の要約", "주요 주제는 무엇인가요?", "문서의 내용을 요약해 주세요",
]  # fmt: skip


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


@pytest.mark.parametrize("question", WHOLE)
def test_what_is_chosen_to_be_about_the_whole_corpus_is_answered_by_its_weightiest_reports(
    snapshot: Snapshot, question: str
) -> None:
    assert choose(question, snapshot)[0] == "global"
    result = global_search(snapshot, question, max_tokens=1_500)
    assert result.state == "context" and result.communities, result.hint


@pytest.mark.parametrize(
    "question", ["What are the trends in quantum physics?", "量子物理学的概述", "Überblick über Quantenphysik", "Quantum の要約"]
)
def test_an_overview_of_what_is_not_here_is_not_an_overview_of_all(snapshot: Snapshot, question: str) -> None:
    assert asked_about(snapshot, question) is not None
    assert global_search(snapshot, question, max_tokens=1_500).state == "not_found"
