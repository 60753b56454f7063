"""What global search shows of many documents: which sentences, of which documents, and the map."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import sending
from graphrag_mcp.query.documents import list_documents
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


def test_the_map_is_not_flagged_for_its_own_words(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "What is this about?")
    text, flags = sending.dressed(result, result.text, sending.footer(result))
    assert not flags and "Flagged" not in text


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


WELLS = (
    "The well of Orrin fell by two metres in May. Farmers of Orrin asked the council for a second well. "
    "The council dug the well of Orrin deeper in June. A pump for the well cost 900 crowns.",
    "Marta Voss sells bread on the square of Tarn. She bakes 300 loaves a day. Her oven stands beside a well.",
    "The well of Hask gave brown water after the flood. A nurse closed the well of Hask for three weeks. "
    "Children fetched water from the well of Orrin instead. The well of Hask was opened again in August.",
)


def test_a_list_on_a_subject_says_as_much_of_each_document_as_has_room_and_little_of_those_beside_it(tmp_path: Path) -> None:
    filler = [InlineText(f"Line {n} of the log says that ferry {n} left the pier of Lund at noon.", f"ferry-{n}") for n in range(30)]
    texts = [*(InlineText(text, f"d{n}") for n, text in enumerate(WELLS)), *filler]
    index_documents(tmp_path / "corpus", IndexRequest(texts=tuple(texts)), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "corpus")
    narrow, wide = (list_documents(snapshot, query="the wells: water, digging, cost", max_tokens=budget).text for budget in (180, 1_500))
    said = [sentence for text in (WELLS[0], WELLS[2]) for sentence in text.rstrip(".").split(". ")]
    few, many = (sum(sentence in text for sentence in said) for text in (narrow, wide))
    assert few <= many >= 3, wide
    assert "300 loaves" not in wide and "ferry" not in wide


def test_a_list_of_undated_documents_begins_with_the_best_and_names_repeats_with_it(tmp_path: Path) -> None:
    said = "After the flood the well of the mill had brown water. "
    texts = [("a", f"{said}Nobody drank."), ("b", WELLS[2]), ("c", "A ferry left."), ("d", f"{WELLS[2]} The end.")]
    index_documents(tmp_path / "corpus", IndexRequest(texts=tuple(InlineText(t, n) for n, t in texts)), Settings(home=tmp_path))
    listed = list_documents(open_snapshot(tmp_path / "corpus"), query="brown water of the well of Hask after the flood").text.splitlines()
    assert listed[0].endswith("best first.")
    assert [line.partition("] ")[2][0] for line in listed[1:]] == ["b", "a"] and listed[1].endswith("(also t4)")


# Each sentence has words of its own: sentences that say nearly the same are shown once.
def test_a_question_about_a_name_that_stands_nowhere_gets_titles_and_no_map(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "What did Zebediah say?")
    assert result.state == "not_found" and result.text.startswith("Nothing on this was found")
    assert len(result.text) < 600
