"""What global search shows of many documents: which sentences, of which documents, and the map."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.store.tables import Snapshot, open_snapshot


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


# Each sentence has words of its own: sentences that say nearly the same are shown once.
def test_a_question_about_a_name_that_stands_nowhere_gets_titles_and_no_map(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "What did Zebediah say?")
    assert result.state == "not_found" and result.text.startswith("Nothing on this was found")
    assert len(result.text) < 600
