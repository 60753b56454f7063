"""The sentence picker: spans point into the text, statements come before headings and menus, the
asked terms decide, and most gold documents give their evidence."""

import math
from collections import Counter
from pathlib import Path

import pytest

from graphrag_mcp.sources.mail import eml
from graphrag_mcp.sources.piece import Piece
from graphrag_mcp.text.quote import best, clipped, lead, one_line, quotes, speaker, with_speaker
from graphrag_mcp.text.terms import query_terms, terms

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
REPORT = """# Safety report 2024

Contact | Imprint | Privacy

The bridge at Olten was closed after the inspection. Repairs cost 2.4 million francs in all.
Who pays for them? The canton pays for the repairs of the bridge. The canton pays for the bridge's repairs.
"""


def worth(query: str) -> dict[str, float]:
    return dict.fromkeys(query_terms(query), 1.0)


def test_a_quotation_points_to_its_place_in_the_text() -> None:
    for one in quotes(REPORT, worth("bridge repairs cost"), 5):
        assert " ".join(REPORT[one.start : one.end].split()).endswith(one.text)


def test_the_sentence_with_most_of_the_terms_comes_first_and_repeats_are_left_out() -> None:
    found = quotes(REPORT, worth("who pays for the repairs of the bridge"), 3)
    assert found[0].text == "The canton pays for the repairs of the bridge."
    assert not any("bridge's repairs" in one.text for one in found)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("- -5 degrees were measured.", "-5 degrees were measured."), ("-5 degrees", "-5 degrees"), ("+3 points", "+3 points"),
        ("> - The canton\n  pays.", "The canton pays."), ("•The canton", "The canton"), ("- 5 bridges", "5 bridges"),
        ("4. **The fund.** It pays.", "4. **The fund.** It pays."), ("**The fund.** It pays.", "**The fund.** It pays."), ("* *All* pay.", "*All* pay."),
    ],
)  # fmt: skip
def test_marks_of_lists_are_left_out_and_signs_of_numbers_are_not(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_headings_and_menus_come_after_statements() -> None:
    order = [one.text for one in quotes(REPORT, {}, 9)]
    assert order[0].startswith("The bridge at Olten")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Budget\n\nTotal: 460,250 euros. Links: [[Plan]], [[Harbour board]].", "Total: 460,250 euros."),
        ("总计：460250欧元。链接：[[预算]]", "总计：460250欧元。"), ("Page 12\n\n10:12 Chapter 3.\n\nContact", ""),
    ],
)  # fmt: skip
def test_a_figure_with_a_label_says_something_and_numbers_of_pages_do_not(text: str, shown: str) -> None:
    assert lead(text, 140, "Budget") == shown


def test_a_literal_must_be_seen() -> None:
    found = best(REPORT, worth("bridge canton"), literals=["2.4 million"])
    assert found is not None and "2.4 million" in found.text


def test_a_turn_is_quoted_with_its_speaker() -> None:
    chat = "Ana: I went to Bern. I bought a red canoe there.\nBen: That sounds like a good trip."
    found = best(chat, worth("canoe"))
    assert (
        found is not None and with_speaker(chat, found).text == "Ana: I bought a red canoe there."
    )


def test_a_text_without_words_has_no_quotation() -> None:
    assert best("", {"bridge": 1.0}) is None
    assert best(" \n\n ", {}) is None


def test_a_cut_sentence_shows_the_terms() -> None:
    said = clipped(
        f"{'many words before ' * 40}the decisive canoe{' and words behind' * 40}",
        {"canoe": 1.0},
        120,
    )
    assert "canoe" in said and len(said) <= 124


@pytest.mark.parametrize(
    ("name", "least"), [("hotpot_train100", 0.80), ("chroma", 0.53), ("cmrc_zh", 0.75)]
)
def test_the_best_sentence_of_a_gold_document_is_its_evidence(name: str, least: float) -> None:
    if not (DATA / name).is_dir():
        pytest.skip("the evaluation data is not beside the checkout")
    from benchmarks.quotes import cases, held

    rows = cases(DATA / name)
    texts = list(dict.fromkeys(text for _, text, _ in rows))
    number = Counter(term for text in texts for term in set(terms(text)))
    right = 0
    for question, text, evidence in rows:
        weights = {t: math.log(1 + len(texts) / (number[t] + 0.5)) for t in query_terms(question)}
        found = best(text, weights)
        right += found is not None and any(held(one, found.text) for one in evidence)
    assert right >= least * len(rows)


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("Mara Lindt: The boat comes. It is blue.\nTom Reed: Who?\n", "Mara Lindt: "),
        ("Mara Lindt:\nThe boat comes. It is blue.\n\nTom Reed:\nWho?\n", "Mara Lindt: "),
        ("MARA: The boat comes.\nIt is blue.\nTOM: Who?\n", "MARA: "),
        ("王建国：船来。 It is blue.\n陈丽华：谁？\n", "王建国："),
        ("MARA: The boat comes.\nTOM: Who?\n\nIt is blue.\n", ""),
        ("Note: The boat comes. It is blue.\n", ""),
    ],
)
def test_a_sentence_of_a_turn_has_its_speaker_on_whichever_line_it_stands(
    text: str, who: str
) -> None:
    assert speaker(text, text.index("It is")).strip() == who.strip()


def test_the_head_of_a_mail_is_not_what_the_mail_says() -> None:
    mail = (
        b"From: Ida Holm <ida@a.example>\nTo: Otto Moe <otto@a.example>\nSubject: Course\n"
        b"Date: Mon, 17 Feb 2025 09:12:00 +0100\n\nGood morning,\n\nthe course for the night shift is put off"
        b" to April, since the teacher is ill.\n\nIda Holm\n"
    )
    (piece,) = eml(mail, ".eml")
    assert isinstance(piece, Piece) and "Ida Holm wrote to Otto Moe." in piece.text
    found = best(piece.text, worth("Ida Holm Otto Moe course"))
    assert found and found.text.startswith("the course for the night shift")
    prose = "From here on it rained.\n\nIda Holm wrote to Otto Moe of it."
    found = best(prose, worth("Ida Holm Otto Moe"))
    assert found and found.text == "Ida Holm wrote to Otto Moe of it."


@pytest.mark.parametrize("receivers", ["", "To: Otto Moe\n", "To: Otto Moe\nCc: Bo Ek\n"])
def test_what_a_mail_says_itself_of_letters_is_what_it_says(receivers: str) -> None:
    first = "Ida Holm wrote to Otto Moe on the course for the night shift."
    text = f"From: Ida Holm <ida@a.example>\n{receivers}Date: 2025-02-17 09:12\n\n{first}\n\nThe room is warm and it is clean.\n"
    found = best(text, worth("Ida Holm Otto Moe course room"))
    assert found and found.text == first


def test_the_sentence_on_sender_and_many_receivers_is_known() -> None:
    people = [f"Person{letter} Moe <{letter}@a.example>" for letter in "abcdefghijkl"]
    mail = (
        "From: Dr. Holm and Sons Ltd. <ida@a.example>\n" + f"To: {', '.join(people)}\nCc: Bo Ek\nSubject: Course\n"
        "Date: Mon, 17 Feb 2025 09:12:00 +0100\n\nThe course is put off to April, since the teacher is ill.\n"
    )
    (piece,) = eml(mail.encode(), ".eml")
    assert isinstance(piece, Piece) and "Ltd. wrote to Persona Moe, " in piece.text
    found = best(piece.text, worth("Persona Personb Moe course teacher"))
    assert found and found.text.startswith("The course is put off")
