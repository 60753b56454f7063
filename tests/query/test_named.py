"""Names of a question and names by their documents: which passages a rare name decides, who is named most."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import groups, rank
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


def test_a_word_that_a_longer_name_holds_lists_every_document_that_speaks_of_it(
    notes: Snapshot,
) -> None:
    text = list_documents(notes, query="broadband").text
    assert "harbour library" not in text.splitlines()[0]
    assert sum(line.startswith("- [t") for line in text.splitlines()) == 3, text


def test_the_map_of_a_corpus_ends_with_who_is_named_most(notes: Snapshot) -> None:
    for question in (
        "What is this about?",
        "What are these documents about and who matters?",
        "What is this collection about: main topics and sizes",
    ):
        text = global_search(notes, question).text
        assert re.search(r"People: Clara Whitlock \[e\d+\] 3, Ned Farrow \[e\d+\] 2", text), text


def test_a_rare_name_of_a_question_decides_before_its_common_words(tmp_path: Path) -> None:
    texts = {
        f"o{at}": f"The founder of the company number {at} built the bridge in the city and opened the factory."
        for at in range(240)
    }
    texts["x"] = (
        "Quillmark was set up by Dora Penhallow after the war. It made pens. It was sold twice. It moved north."
    )
    snapshot = made(tmp_path, texts)
    found = rank.retrieve(
        snapshot,
        "Which city did the founder of the company Quillmark build the bridge and the factory in?",
    )
    row = snapshot.by_key("passages", [found.passages[0].id], "id", ["text"]).to_pylist()[0]
    assert (
        row["text"].startswith("Quillmark")
        and found.passages[1].score < 0.75 * found.passages[0].score
    )


def test_a_filter_finds_an_organization_where_its_longer_names_stand(tmp_path: Path) -> None:
    snapshot = made(tmp_path, {
        "a": "Marley Foods Ltd opened a shop. Marley Foods Ltd hired Ned Farrow.",
        "b": "The Marley Foods Ltd Museum shows old tins. The Marley Foods Ltd Museum is free.",
        "c": "Ned Farrow walked to the pier, and the day was fine.",
    })  # fmt: skip
    found = list_documents(snapshot, filters=["entity=Marley Foods Ltd"]).text
    assert found.count("- [t") == 2, found
    found = list_documents(snapshot, filters=["entity!=Marley Foods Ltd"]).text
    assert found.count("- [t") == 1, found


def test_documents_with_a_title_before_a_full_name_count_for_the_person(tmp_path: Path) -> None:
    texts = {f"a{n}": f"Zelda W Quillmore spoke of pier {n}. In May Zelda W Quillmore left." for n in range(3)}
    texts |= {f"b{n}": f"Ambassadors met Governess Zelda W Quillmore at pier {n}. Then Governess Zelda W Quillmore left." for n in range(2)}
    text = groups.overview(made(tmp_path / "c", texts))
    assert re.search(r"People: Zelda W Quillmore \[e\d+\] 5", text), text


def test_documents_with_a_family_name_alone_count_for_the_person_whom_they_mean(tmp_path: Path) -> None:
    both = {f"both{n}": f"Peter Dahlgren said that pier {n} was late. Mr Dahlgren left with Ned Farrow." for n in range(2)}
    alone = {f"alone{n}": f"Mr Dahlgren went to Varde by ship {n}. Mr Dahlgren came back with a cold." for n in range(5)}
    text = groups.overview(made(tmp_path / "one", both | alone))
    assert re.search(r"Peter Dahlgren \[e\d+\] 7", text) and not re.search(r"(?<!Peter )Dahlgren", text), text
    two = {
        "a": "Alex Ferguson met Barry Ferguson. Mr Ferguson said that Alex Ferguson was late.",
        "b": "Barry Ferguson wrote to Ned Farrow. Barry Ferguson left.",
        "c": "Mr Ferguson came alone. Mr Ferguson left with Ned Farrow.",
    }
    text = groups.overview(made(tmp_path / "two", two))
    assert "Barry Ferguson" in text and not re.search(r"(?<!Alex |arry )Ferguson", text), text


def test_a_person_is_counted_under_a_name_that_several_documents_hold(tmp_path: Path) -> None:
    """One text that broke the name at an initial made `W Bush` of 37 documents."""
    texts = {f"p{n}": f"President George W Bush met farmers of Orl on day {n}. He said it was late." for n in range(3)}
    texts |= {f"g{n}": f"The farmers wrote to George W Bush in letter {n}. He said that the harvest was poor." for n in range(2)}
    texts["w"] = "Mr W Bush was named in a list. He said nothing."
    snapshot = made(tmp_path, texts)
    assert re.search(r"People: George W Bush \[e\d+\] 5", global_search(snapshot, "").text)
