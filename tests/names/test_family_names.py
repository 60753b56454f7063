"""A family name alone is the person whose full name the same text gives; nothing is merged where two could be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.groups import overview
from graphrag_mcp.query.local import local_search
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


def test_two_bearers_of_a_family_name_stay_apart(tmp_path: Path) -> None:
    one = indexed(tmp_path / "one", "Gordon Merrick and Paula Merrick came to Oslo. Then they left with Merrick for Bergen, and Merrick sang.")
    assert {"Gordon Merrick", "Paula Merrick", "Merrick"} <= persons(one)
    two = indexed(tmp_path / "two", "Gordon Merrick came to Oslo. There they met Merrick.", "Paula Merrick came to Bergen. There they heard Merrick.")
    assert {"Gordon Merrick", "Paula Merrick", "Merrick"} <= persons(two)


def test_a_family_name_that_mostly_stands_alone_is_not_the_one_person_named_in_full(tmp_path: Path) -> None:
    letters = [f"Mr. Merrick spoke to Anna Berg on day {number}. Merrick laughed." for number in range(3)]
    snapshot = indexed(tmp_path / "c", "Paula Merrick wrote a letter. Merrick sealed it.", *letters)
    assert {"Paula Merrick", "Merrick"} <= persons(snapshot)
    few = indexed(tmp_path / "few", "Paula Merrick wrote a letter. Merrick sealed it.", *letters[:2])
    assert "Merrick" not in persons(few)


def test_a_given_name_of_another_person_and_an_acronym_are_no_family_names(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path / "c", "Anna Howard met Howard Wilkinson in Oslo. They heard Howard, and Howard laughed. Doug Williams of BT agreed. BT paid.")
    assert "Howard" in persons(snapshot) and "BT" not in get_entity(snapshot, "Doug Williams").aliases


def test_an_initial_and_a_name_without_the_one_in_the_middle_mean_the_person_named_in_full(tmp_path: Path) -> None:
    snapshot = indexed(
        tmp_path / "c",
        "Gordon P. Merrick lived in Oslo. There Gordon Merrick met Anna Berg. She wrote a letter. A. Berg sang and Merrick spoke. Gordon Merrick left.",
        "Merrick came home.",
    )
    assert persons(snapshot) == {"Gordon Merrick", "Anna Berg", "Oslo"}
    assert {"Gordon P. Merrick", "Merrick"} <= set(get_entity(snapshot, "Gordon Merrick").aliases)


def test_two_names_of_one_sentence_are_two_people(tmp_path: Path) -> None:
    text = "Gordon Merrick is the father of Gordon P. Merrick and came to Oslo. Then Gordon Merrick spoke."
    assert {"Gordon Merrick", "Gordon P. Merrick"} <= persons(indexed(tmp_path / "c", text))
    several = ["Gordon P. Merrick came to Oslo. Merrick spoke.", "Gordon Q. Merrick came to Rome. Merrick sang."]
    assert {"Gordon P. Merrick", "Gordon Q. Merrick", "Merrick"} <= persons(indexed(tmp_path / "d", *several))


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


def test_the_whole_name_of_a_speaker_in_capitals_stays(tmp_path: Path) -> None:
    minutes = "TOBIAS FENN, principal keeper, sworn.\nCOLE: Were you at the lamp?\nFENN: I was.\nCOLE: All night?\nFENN: Until four.\n"
    assert "TOBIAS FENN" in persons(indexed(tmp_path / "c", minutes))


def test_every_search_list_and_count_takes_a_family_name_for_its_bearer(tmp_path: Path) -> None:
    alone = "For a week the harbour was closed by Merrick."
    snapshot = indexed(tmp_path / "c", "Gordon Merrick met Anna Berg in Oslo. In the end Merrick wrote to Berg.", alone)
    assert "harbour was closed" in local_search(snapshot, "harbour", filters=["entity=Gordon Merrick"]).text
    assert "harbour was closed" not in local_search(snapshot, "harbour", filters=["entity!=Gordon Merrick"]).text
    assert "Gordon Merrick [e1] 2" in overview(snapshot)
    assert get_entity(snapshot, "Merrick").frequency == 2
