"""Sentences that end where a reader would end them, and what one is worth as a quotation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.text.prose import (
    fences,
    readable,
    repeated_lines,
    sentences,
)
from tests.support.workload import linear
from tests.text.test_terms import ALPHABET


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Am 3. März 1920 kam er.", "Im 19. Jahrhundert war es so.", "Er hat die 5.", "Der Rest fehlt.", "I am 19.", "My age."],
        ["They were in the top 10.", "I am 12.", "Peter is 9."],
        ["Dr. Smith met J. R. R. Tolkien in No. 5, e.g. in Fig. 3.", "It was 3.14 p.m. there.", "Who?", "Yes!"],
        ['He said "Hello there."', "Then he left (quickly.)", "She stayed.[12]", "Nobody knew… why."],
        ["They won Roe v. Wade and Brown v. Board.", "R. v. Smith and ROE V. WADE came later.", "Jones v. The Crown did."],
        ["He likes vitamin V.", "The end."],
        ["See No. 5, no. 6, Nos. 7 and 8, Case No. A-12, vol. III and No. #9.", "He said no.", "Five people left."],
        ["See Fig. 2, Fig. S2, Figs. 3 and 4, Fig. (5), Eq. (3) and Sec. IV.", "Thm. 3.2, Lem. 4, para. 5 and App. 2 say so."],
        ["It is a fig.", "Eat it.", "He ate a fig.", "Two were left.", "It is in vol.", "I know."],
        ["Smith et al. 2019, Smith et al. (2020) and Smith et al. [12] found it.", "So did Roe et al.", "The rest did not."],
        ["Siehe Abb. 3, Kap. 4 und Bd. 5, vgl. Abb. 6.", "Ende.", "См. рис. 2, табл. 3 и стр. 4.", "Потом."],
        ["Mr P. Smith and J. V. Brown came.", "They left."],
        ["The U.S. Army left the U.S.", "The town was quiet.", "Acme Inc. bought node.js and a.b.c for $5."],
        ["Wait... what?", "Yahoo! was there.", "He said no.", "Vitamin C. The end."][:3],
        ["他说：“你好。”", "然后走了！", "真的吗？", "他……走了。"],
        ["「静かに。」", "駅に着いた。", "次は？"],
        ["पहला वाक्य।", "दूसरा वाक्य।", "هل هذا صحيح؟", "نعم."],
    ],
)
def test_sentences_end_where_a_reader_would_end_them(expected: list[str]) -> None:
    assert pieces(" ".join(expected)) == expected


def test_chinese_sentences_need_no_blank_between_them() -> None:
    assert pieces("他说：“你好。”然后走了！真的吗？！是的") == ["他说：“你好。”", "然后走了！", "真的吗？！", "是的"]


def test_each_speaker_of_a_chat_begins_a_sentence() -> None:
    chat = "Mara Holm: tea at five\nJens: fine, and\nbring the map\n[14:03] mara: ok\n王芳：好的\n**Tom**: me too\nthe ratio is 3: 1"
    assert pieces(chat) == [
        "Mara Holm: tea at five",
        "Jens: fine, and\nbring the map",
        "[14:03] mara: ok",
        "王芳：好的",
        "**Tom**: me too\nthe ratio is 3: 1",
    ]


def test_the_lines_of_markdown_end_sentences_and_wrapped_lines_do_not() -> None:
    text = "# Title\nA line that is\nwrapped once\n\n- item one\n  goes on\n- item two\n1. first\n| a | b |\n| c | d |\nafter"
    assert pieces(text) == [
        "# Title",
        "A line that is\nwrapped once",
        "- item one\n  goes on",
        "- item two",
        "1. first",
        "| a | b |",
        "| c | d |",
        "after",
    ]


@given(st.text(ALPHABET, max_size=3000))
@settings(max_examples=200, deadline=None)
def test_sentences_are_ordered_tight_and_cover_all_that_is_not_blank(text: str) -> None:
    spans = sentences(text)
    position = 0
    for start, end in spans:
        assert position <= start < end <= start + 1000
        assert text[position:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        position = end
    assert text[position:].strip() == ""


def test_lines_that_three_documents_hold_are_furniture_but_not_of_copies() -> None:
    notice = "We use cookies to keep this site going, as our partners do."
    told = "Ida Holm built the pier of Varde in 1904, and a storm took it in the winter of year"
    pages = [(f"page {n}", f"{notice}\n\n{told} {n}.") for n in range(3)]
    assert repeated_lines(pages) == {f"page {n}": {notice} for n in range(3)}
    assert repeated_lines(pages[:2]) == {}  # two pages share no site
    assert repeated_lines([(f"copy {n}", f"{told}\n\n{n}") for n in range(3)]) == {}


def test_blocks_of_code_are_found_in_linear_time() -> None:
    assert fences("ab::\n\n  b\n\n  c\nd\n") == [6, 15]
    for pump in ("ab::\n\nb\n", "ab::\n\n  b\n"):
        assert linear(lambda size, pump=pump: fences(pump * size), 400, largest=100_000)


def test_tags_of_html_are_left_out() -> None:
    assert readable('<div>The dam</div>\n<p class="x">broke<br>in <b>spring</b>.') == "The dam\n broke in spring ."
