"""Which names of a document become entities, and which names mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.names.extract import mentions
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.terms import normalise_name
from graphrag_mcp.types import IndexRequest, InlineText


def entities(folder: Path, *texts: str) -> dict[str, list[str]]:
    """Title -> aliases of the entities of an index of these texts."""
    given = tuple(InlineText(text, str(at), "") for at, text in enumerate(texts))
    index_documents(folder, IndexRequest(texts=given), Settings(home=folder.parent))
    rows = open_snapshot(folder).rows("entities", columns=["title", "aliases"]).to_pylist()
    return {row["title"]: row["aliases"] for row in rows}


def test_an_opening_word_phrases_in_lower_case_and_contractions_are_no_entities(tmp_path: Path) -> None:
    texts = (
        "Picnics were held by the tide gauge. They'll come to Skerrow.",
        "Picnics were held by the tide gauge of Skerrow.",
    )
    assert set(entities(tmp_path / "c", *texts)) == {"Skerrow"}


def test_a_name_that_is_seldom_certain_is_no_entity(tmp_path: Path) -> None:
    seldom = ["Quarrel came up again and again in the talk of the day."] * 4
    assert "Quarrel" in entities(tmp_path / "a", "They had a talk with Quarrel.", *seldom[:3])
    assert "Quarrel" not in entities(tmp_path / "b", "They had a talk with Quarrel.", *seldom)


def test_a_given_name_is_the_one_person_of_its_text_with_that_name(tmp_path: Path) -> None:
    told = "Hannah Merrick opened the hall of Oslo in May. In the end Hannah wrote home."
    assert entities(tmp_path / "a", told)["Hannah Merrick"] == ["Hannah"]
    other = "Hannah Quill opened the hall of Bergen in May. In the end Hannah wrote home."
    apart = entities(tmp_path / "b", told, other)
    assert {"Hannah Merrick", "Hannah Quill", "Hannah"} <= set(apart)


@pytest.mark.parametrize(
    "full, short, named, alone, joined",
    [
        ("Hannah Merrick", "Hannah", 3, 2, True),
        ("Hannah Merrick", "Hannah", 2, 2, False),
        ("Hannah Merrick", "Merrick", 2, 4, True),
        ("Hannah Merrick", "Merrick", 1, 4, False),
    ],
)
def test_a_shorter_name_is_the_person_where_enough_texts_with_it_name_the_person_in_full(
    tmp_path: Path, full: str, short: str, named: int, alone: int, joined: bool
) -> None:
    """Of texts with a given name more than half, of those with a family name a third."""
    texts = [f"{full} opened the hall of Oslo in May {at}. In the end {short} wrote home." for at in range(named)]
    texts += [f"They had a long talk with {short} about the harbour {at}." for at in range(alone)]
    found = entities(tmp_path / "c", *texts)
    assert (found[full] == [short]) == joined and (short in found) != joined, found


def test_a_company_is_the_same_with_and_without_its_legal_form() -> None:
    for written in ("Acme Inc.", "ACME Ltd", "Acme GmbH", "Acme"):
        assert normalise_name(written) == "acme"
    assert normalise_name("Royal Flying Corps") == "royal flying corps"
    assert normalise_name("Acme Group") == "acme group" and normalise_name("Inc.") == "inc"
    text = "The council chose Pellwick Systems GmbH. On Monday Pellwick Systems, Inc. had no comment."
    assert {key for key, *_ in mentions(text)} == {"pellwick system"}


def test_the_plural_of_an_acronym_is_the_acronym() -> None:
    text = "They read the PRs of Node.js in May and wrote to the API of it. All PRs and APIs were read by Ida Holm."
    assert {key for key, form, *_ in mentions(text) if form.startswith(("PR", "API"))} == {"pr", "api"}


def test_the_title_of_an_entity_stands_on_one_line(tmp_path: Path) -> None:
    text = "The harbour of the town was seen long ago from the boat by young Mara\nQuillon and her brother, who stayed."
    index_documents(tmp_path, IndexRequest(texts=(InlineText(text, "a"),)), Settings(home=tmp_path))
    assert open_snapshot(tmp_path).rows("entities", "", ["title"])["title"].to_pylist() == ["Mara Quillon"]
