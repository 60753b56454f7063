"""The last step of the ranking: a reranker's opinion over the best passages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphrag_mcp.query import rank
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import InlineText
from tests.support.files import snapshot_of

COUNT = 70


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Seventy notes about kettles, of which higher numbers mention them less."""
    home = tmp_path_factory.mktemp("home")
    texts = tuple(
        InlineText("kettle " * (COUNT - at) + f"and shelf{at} " + "dust " * at, f"note{at:02}", f"Note {at:02}")
        for at in range(COUNT)
    )
    return snapshot_of(home / "c", texts)


def uris(snapshot: Snapshot, found: rank.Ranking) -> list[str]:
    return snapshot.by_key("passages", [one.id for one in found.passages], "id", ["uri"])["uri"].to_pylist()


def test_the_reranker_reads_the_question_and_the_best_passages_with_their_titles(snapshot: Snapshot) -> None:
    read: list[tuple[str, int, str]] = []

    def rerank(query: str, texts: Sequence[str]) -> list[float]:
        read.append((query, len(texts), texts[0]))
        return [0.0] * len(texts)

    rank.retrieve(snapshot, "kettle", rerank=rerank)
    assert len(read) == 1 and read[0][:2] == ("kettle", rank.RERANKED) and read[0][2].startswith("Note ")


def test_what_it_likes_rises_and_what_it_did_not_read_stays_behind(snapshot: Snapshot) -> None:
    before = rank.retrieve(snapshot, "kettle")
    wanted = before.passages[rank.RERANKED - 1]
    place = uris(snapshot, before)[rank.RERANKED - 1].removeprefix("text:note")

    def rerank(query: str, texts: Sequence[str]) -> list[float]:
        return [float(text.startswith(f"Note {place}")) for text in texts]

    after = rank.retrieve(snapshot, "kettle", rerank=rerank)
    assert after.passages[0].id == wanted.id and after.passages[0].total > wanted.total
    assert after.passages[0].terms == wanted.terms and {one.id for one in after.passages} == {
        one.id for one in before.passages
    }
    assert [one.id for one in after.passages[1:]] == [one.id for one in before.passages if one.id != wanted.id]


@pytest.mark.parametrize("said", [None, [1.0], []])
def test_a_reranker_that_fails_changes_nothing(snapshot: Snapshot, said: list[float] | None) -> None:
    assert (
        rank.retrieve(snapshot, "kettle", rerank=lambda query, texts: said).passages
        == rank.retrieve(snapshot, "kettle").passages
    )
