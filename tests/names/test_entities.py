"""Which names of a document become entities, and which names mean the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.extract.rules import collect
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.names.extract import mentions
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.terms import normalise_name
from graphrag_mcp.types import IndexRequest, InlineText
from tests.names.test_scored import certain


def entities(folder: Path, *texts: str) -> dict[str, list[str]]:
    """Title -> aliases of the entities of an index of these texts."""
    given = tuple(InlineText(text, str(at), "") for at, text in enumerate(texts))
    index_documents(folder, IndexRequest(texts=given), Settings(home=folder.parent))
    rows = open_snapshot(folder).rows("entities", columns=["title", "aliases"]).to_pylist()
    return {row["title"]: row["aliases"] for row in rows}



def test_an_opening_word_phrases_in_lower_case_and_contractions_are_no_entities(
    tmp_path: Path,
) -> None:
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


def test_a_name_that_goes_on_in_the_next_line_has_a_title_of_one_line(tmp_path: Path) -> None:
    broken = "The old hall was given to the people of the town by Ada\nBrandt, who kept it in the years before."
    found = entities(
        tmp_path / "n",
        broken,
        f"{broken} So it was.",
        "They had a long talk with Ada Brandt about the harbour.",
    )
    assert found["Ada Brandt"] == []


def test_names_that_differ_in_case_are_one_entity_under_the_commonest_spelling(
    tmp_path: Path,
) -> None:
    texts = (
        "They have called `toString` here and `toString` there.",
        "It was `ToString` in the text before.",
    )
    assert entities(tmp_path / "case", *texts) == {"toString": ["ToString"]}


def test_a_company_is_the_same_with_and_without_its_legal_form() -> None:
    for written in ("Acme Inc.", "ACME Ltd", "Acme GmbH", "Acme"):
        assert normalise_name(written) == "acme"
    assert normalise_name("Royal Flying Corps") == "royal flying corps"
    assert normalise_name("Acme Group") == "acme group" and normalise_name("Inc.") == "inc"
    text = "The council chose Pellwick Systems GmbH. On Monday Pellwick Systems, Inc. had no comment."
    assert {key for key, *_ in mentions(text)} == {"pellwick system"}


@pytest.mark.parametrize("text", [
    "Tesla was sued by a driver on Monday, and Tesla Inc. denied the claim. Tesla Inc. is based in Austin.",
    "Shares of Kestrel rose after Kestrel Ltd. reported its figures. Kestrel makes cranes.",
    "Marley Foods, whose rival is Pellwick, grew. The town sued Marley Foods Ltd. Then Marley Foods Limited paid.",
])  # fmt: skip
def test_a_company_and_its_short_name_are_one(text: str) -> None:
    keys = {key for key, form, *_ in mentions(text) if form.startswith(("Tesla", "Kestrel", "Marley"))}
    assert len(keys) == 1, keys


def test_a_company_is_one_in_texts_with_and_without_its_founder(tmp_path: Path) -> None:
    texts = (
        "Mr Paul Smith founded Paul Smith Ltd. in Leeds. Paul Smith Ltd. has 130 shops.",
        "The shops of Paul Smith Limited in Leeds lost money. Paul Smith Limited is for sale.",
        "A court in Leeds fined Paul Smith Ltd. on Monday. Paul Smith Ltd. will pay.",
    )
    request = IndexRequest(texts=tuple(InlineText(text, f"{at}") for at, text in enumerate(texts)))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    found, others = resolve(open_snapshot(tmp_path / "c"), "Paul Smith Ltd")
    assert found and found["frequency"] == 3 and not others


def test_the_legal_form_of_a_company_shows_its_whole_name() -> None:
    german = "Der Vertrag wurde mit der Hydrowerk Sensorik GmbH geschlossen."
    found = {form: kind for _, form, kind, strong, *_ in mentions(german) if strong}
    assert found["Hydrowerk Sensorik GmbH"] == "organization"
    signed = "Greetings from us\n\nHugh Pemberton\nNorbridge Controls Ltd\n"
    assert "Hugh Pemberton\nNorbridge Controls Ltd" not in {
        form for _, form, _, strong, *_ in mentions(signed) if strong
    }


def test_units_and_currencies_are_no_names() -> None:
    text = "They paid 640,000 EUR for 400 kW. Later 20 kW went, for 12,000 EUR. The IBM 360 and the BBC 2 stayed."
    certain = {form for _, form, _, strong, *_ in mentions(text) if strong}
    assert not {"EUR", "kW"} & certain
    assert "BBC" in {form for _, form, _, strong, *_ in mentions("The BBC has 3 studios. In 400 BBC films it rains.") if strong}
    german = "Der Vertrag kostet 20 Euro. Das sind 30 Euro mehr als 50 Euro, sagt Ida Holm in Lindental."
    assert "Euro" not in {form for _, form, _, strong, *_ in mentions(german) if strong}
    german = (
        "Der Verein traf sich am Abend im alten Haus und sprach lange über die Lage. An dem Tag verkaufte er 20 Tesla. "
        "Die Aktie von Tesla stieg. Tesla baut Autos."
    )
    assert "Tesla" in {form for _, form, _, strong, *_ in mentions(german) if strong}
    spanish = "La bomba de Ana Ruiz funciona a 50 Hz en la central. Con 60 Hz se para, dijo Ana Ruiz."
    assert {form for _, form, _, strong, *_ in mentions(spanish) if strong} == {"Ana Ruiz"}


def test_an_everyday_word_behind_a_hyphen_is_no_part_of_a_name() -> None:
    text = "They sold T-shirts and caps. The team of London-based Ida Holm read of Wap-push and of T-shirts."
    names = {form for _, form, *_ in mentions(text)}
    assert {"London", "Ida Holm"} <= names
    assert not {"T-shirts", "Wap-push", "London-based"} & names


@pytest.mark.parametrize("head", [
    '+++\ntitle = "Notes on Norbridge"\nauthors = ["Mara Quist"]\n+++\n',
    "---\ntitle: Notes on Norbridge\nauthor: Mara Quist\n---\n",
])  # fmt: skip
def test_front_matter_and_code_cut_at_an_end_relate_no_names(tmp_path: Path, head: str) -> None:
    body = "\nThe harbour was closed for a week.\n\n```\n$ send Ida Holm Otto Brandt\nIda Holm got Otto Brandt\n"
    request = IndexRequest(texts=(InlineText(head + body, "a"), InlineText(head + body, "b")))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    assert snapshot.rows("entities").num_rows and not snapshot.rows("relationships").num_rows


def test_an_article_that_is_glued_to_a_name_at_the_start_of_a_sentence_is_no_part_of_it() -> None:
    text = "Les élèves sont dans la ville depuis lundi. L'Espagne est loin. Le maire a dit que l'Espagne est loin. L’Université de Lyon est fermée."
    names = {form for _, form, *_ in mentions(text)}
    assert {"Espagne", "Université de Lyon"} <= names and not {"L'Espagne", "L’Université de Lyon"} & names


def test_a_rule_between_two_parts_of_a_document_begins_no_front_matter() -> None:
    told = "Chair: Mara Quist\n\n- Ida Holm told Otto Brandt that the wall of the harbour is closed.\n\n"
    for text in (f"---\n## Minutes\n{told}---\n## Annex\n", f"---\n{told}"):
        named = {name.form: name.sentences for name in collect("u", text, 0)[0].named}
        assert named["Ida Holm"] == named["Otto Brandt"]


def test_speech_is_no_part_of_a_name() -> None:
    spoken = '"Now, Watson," said Holmes. "Now, Watson," he cried. They read "The Red Tide" at night.'
    assert {"Watson", "The Red Tide"} <= certain(spoken) and "Now, Watson" not in certain(spoken)


@pytest.mark.parametrize(("text", "names"), [
    ("Der Vertrag wurde von der Firma unterschrieben.\n\nMit freundlichen Grüßen\nPetra Schöller\nNorbridge GmbH\n", {"Norbridge GmbH"}),
    ("He wrote to us.\n\nSigned for the board in May\nIda Holm\nOtto Brandt\nHarbour Lane\n", {"Ida Holm", "Otto Brandt"}),
    ("The harbour of the town was seen long ago from the boat by young Mara\nQuillon and her brother, who stayed.", {"Mara\nQuillon"}),
])  # fmt: skip
def test_a_name_goes_on_in_the_next_line_of_wrapped_text_alone(text: str, names: set[str]) -> None:
    found = {form for _, form, *_ in mentions(text)}
    assert names <= found and not any("\n" in form for form in found - names)


def test_the_plural_of_an_acronym_is_the_acronym() -> None:
    text = "They read the PRs of Node.js in May and wrote to the API of it. All PRs and APIs were read by Ida Holm."
    assert {key for key, form, *_ in mentions(text) if form.startswith(("PR", "API"))} == {"pr", "api"}


def test_the_title_of_an_entity_stands_on_one_line(tmp_path: Path) -> None:
    text = "The harbour of the town was seen long ago from the boat by young Mara\nQuillon and her brother, who stayed."
    index_documents(tmp_path, IndexRequest(texts=(InlineText(text, "a"),)), Settings(home=tmp_path))
    assert open_snapshot(tmp_path).rows("entities", "", ["title"])["title"].to_pylist() == ["Mara Quillon"]
