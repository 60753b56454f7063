"""Names out of real text in several scripts: what is found, what is left out, and that no input is slow."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.names.extract import PER_THOUSAND, extract
from graphrag_mcp.text.terms import normalise_name
from tests.support.command import ROOT
from tests.support.workload import linear

ENGLISH = (
    "The World Health Organization (WHO) was founded in Geneva in April 1948. However, many states joined later. "
    "J. R. R. Tolkien, who taught at the University of Oxford, never met President Franklin Roosevelt. "
    "Apollo 11 landed on the Moon on 20 July 1969, and Neil Armstrong's words were heard by NASA."
)
CHINESE = (
    "《战国无双3》是由光荣和ω-force开发的游戏。武田信玄与织田信长是其中的人物。北京大学位于北京市海淀区，"
    "世界卫生组织（简称世卫组织）总部设在日内瓦。莱昂纳多·迪卡普里奥是美国演员。锣鼓是戏曲的伴奏，锣鼓的节奏分明。"
)


def test_an_acronym_that_the_text_spells_out_points_to_its_long_form() -> None:
    for text in ("The World Health Organization (WHO) met.", "Staff of the WHO (World Health Organization) met."):
        aliases = {m.form: m.alias_of for m in extract(text)}
        assert aliases == {"World Health Organization": "", "WHO": "world health organization"}
    lower = {m.form: m.alias_of for m in extract("We study natural language processing (NLP) here.")}
    assert lower["NLP"] == "natural language processing"
    wrong = {m.form: m.alias_of for m in extract("The Ministry of Health (WHO) met in Geneva.")}
    assert wrong["WHO"] == ""


def test_a_chinese_short_name_points_to_its_long_form() -> None:
    aliases = {m.form: m.alias_of for m in extract("世界卫生组织（简称世卫组织）总部设在日内瓦。")}
    assert aliases["世卫组织"] == "世界卫生组织"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("who founded microsoft", ["microsoft"]),
        ("what is the capital of new zealand", ["zealand"]),
        ("Who was the wife of Albert Einstein?", ["Albert Einstein"]),
        ("《战国无双3》是由哪两个公司合作开发的？", ["战国无双3"]),
        ("锣鼓经常用的节奏型称为什么？", ["锣鼓"]),
        ("固始站位于哪里？", ["固始站"]),
        ("司马晏是谁的儿子呀？", ["司马晏"]),
        ("莱昂德罗·内托的国籍是哪个国家？", ["莱昂德罗·内托"]),
        ("東京大学はどこにありますか", ["東京大学"]),
        ("세종대왕은 누구인가", ["세종대왕"]),
        ("Кто написал роман Война и мир?", ["Война"]),
        ("Qui a fondé l'Académie française ?", ["Académie"]),
    ],
)
def test_a_question_gives_the_names_in_it(question: str, names: list[str]) -> None:
    found = {m.form for m in extract(question)}
    assert set(names) <= found


def test_japanese_and_korean_give_compounds() -> None:
    assert {"ヴァルキュリア", "任天堂", "京都市"} <= {m.form for m in extract("ヴァルキュリアは任天堂のゲームで、京都市で作られた。")}
    assert "서울" in {m.form for m in extract("서울은 한국의 수도이다. 서울에 사람이 많다.")}


def _sound(text: str) -> None:
    """What every answer must satisfy, whatever the text."""
    found = extract(text)
    assert found == sorted(found, key=lambda m: m.start)
    kinds: dict[str, tuple[str, bool]] = {}
    open_until = 0
    for m in found:
        assert text[m.start : m.end] == m.form and m.key == normalise_name(m.form) and m.key
        assert kinds.setdefault(m.key, (m.type, m.strong)) == (m.type, m.strong)
        assert m.start >= open_until or m.end <= open_until  # beside the one before, or inside it
        open_until = max(open_until, m.end)
    assert len(kinds) <= PER_THOUSAND * (1 + len(text) // 1000)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300) | st.text(alphabet="Aa bC.'’-\"“”《》「」()（）的国大学·・アnあ한은 1é&_@\n", max_size=120))
def test_any_text_gives_exact_spans_that_nest_or_stand_apart(text: str) -> None:
    _sound(text)


def test_names_of_links_are_found_and_words_of_their_targets_are_not() -> None:
    text = 'Ida Holm built [Bo](https://a.example/Oslo "Paris here") Lind\'s pier in Varde.\n\n[[Ashby]] and [Porto](https://a.example/Lisbon)\n'
    found = {m.form for m in extract(text + "The end of it is near. " * 20)}
    assert {"Ida Holm", "Varde", "Ashby", "Porto"} <= found and not {"Oslo", "Paris", "Lisbon"} & found


AWKWARD = [
    "cookie consent accept ", "A", "a", "A ", "a ", "A.", "A. ", "Ab-", "A'", "A'b", "A of ", "A of the ", "A & ", "A, Inc", "a.", "a.b", "_", "a_", "a-",
    '"', '"a', '"a b" ', "`", "`a`", "``a''", "'", "“", "《", "《a》", "「", "(", "((A", "(A)", "A (A) ", "Abc (ABC) ", "（", "，简称",
    "1", "1 ", "1990 Cup ", "\n", "\nA", "A\n", "A is a ", "\nA is a ", "的", "中国", "中·", "阿·", "站", "ア", "ア・", "あ", "한국은 ",
    "é", "ß-", "Я ", "ا", "ابجد ", "ก", "C++", "@", "-", "King's ", "Ab's Cd ", "May 5 ", "And The ", "@-@ A ", "𠀀", "😀", "A\u0301",
    "<!--", "<a ", "<a b=", "https://", "'a' :", "12:00 <", "12:00 a a ", "+++\n", "+++\na/",
    "[a](http", "[a](http://b) ", "\n* [a](http://b",
]  # fmt: skip


@pytest.mark.parametrize("pump", AWKWARD)
def test_no_repeated_pattern_is_slow(pump: str) -> None:
    extract("中国的大学 warm")
    assert linear(lambda length: extract((pump * length)[:length]), 2_000, largest=100_000)


def test_the_same_text_gives_the_same_answer_under_any_hash_seed() -> None:
    program = "import sys; from graphrag_mcp.names.extract import extract; print(extract(sys.stdin.buffer.read().decode()))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=(ENGLISH + CHINESE).encode(),
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1 and outputs != {b"[]\n"}
