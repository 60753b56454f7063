"""What global search shows of many documents: which sentences, of which documents, and the map."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def test_points_cite_only_documents_that_pass(snapshot: Snapshot) -> None:
    whole = global_search(snapshot, "back-run", max_tokens=20_000)
    left_out = whole.citations[0].uri.rpartition("/")[2]
    for given in (f"document!={left_out}", f"document={left_out}"):
        found = global_search(snapshot, "back-run", filters=[given], max_tokens=20_000)
        cited = {one.uri.rpartition("/")[2] for one in found.citations}
        assert cited and (cited == {left_out} if "!" not in given else left_out not in cited)


DIARY = (
    "I lost my purse at the harbour yesterday.", "I was ill in bed last week and had a fever.", "We had hail on the roof of the hall last night.",
    "I fell off my bicycle near the mill last Friday.", "I failed my exam in the town hall yesterday.", "I took the ferry four times last month.",
)  # fmt: skip


def _shown(home: Path, texts: tuple[str, ...], question: str, tokens: int) -> list[str]:
    index_documents(home / "corpus", IndexRequest(texts=tuple(InlineText(text, f"n{at}") for at, text in enumerate(texts))), Settings(home=home))
    return [line for line in global_search(open_snapshot(home / "corpus"), question, max_tokens=tokens).text.splitlines() if line.startswith("- [")]


def test_a_question_that_lists_things_finds_what_speaks_of_one_of_them(tmp_path: Path) -> None:
    both = (
        "A purse and a bicycle lay in the hail behind the mill for days.", "After the exam came the fever, and then the hail broke every window.",
        "Her bicycle was sold for the exam and for medicine against fever.", "The purse held a pill for the fever and the pass for the exam.",
    )  # fmt: skip
    lines = _shown(tmp_path, (*DIARY, *both), "purse, fever, hail, bicycle, exam", 2_000)
    assert sum(any(text[:20] in line for line in lines) for text in DIARY[:5]) >= 3
    assert not any("ferry" in line for line in lines)


# Each sentence has words of its own: sentences that say nearly the same are shown once.
def test_a_question_about_a_name_that_stands_nowhere_gets_titles_and_no_map(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "What did Zebediah say?")
    assert result.state == "not_found" and result.text.startswith("Nothing on this was found")
    assert len(result.text) < 600
