"""Names out of real text in several scripts: what is found, what is left out, and that no input is slow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.names import VERSION
from graphrag_mcp.names.extract import PER_THOUSAND, extract
from graphrag_mcp.query.local import history_keywords
from graphrag_mcp.text.terms import normalise_name
from tests.support.command import ROOT
from tests.support.workload import linear

DATA = ROOT.parents[0] / "shared" / "data"

ENGLISH = (
    "The World Health Organization (WHO) was founded in Geneva in April 1948. However, many states joined later. "
    "J. R. R. Tolkien, who taught at the University of Oxford, never met President Franklin Roosevelt. "
    "Apollo 11 landed on the Moon on 20 July 1969, and Neil Armstrong's words were heard by NASA."
)
CHINESE = (
    "《战国无双3》是由光荣和ω-force开发的游戏。武田信玄与织田信长是其中的人物。北京大学位于北京市海淀区，"
    "世界卫生组织（简称世卫组织）总部设在日内瓦。莱昂纳多·迪卡普里奥是美国演员。锣鼓是戏曲的伴奏，锣鼓的节奏分明。"
)


def strong(text: str) -> list[str]:
    return list(dict.fromkeys(m.form for m in extract(text) if m.strong))


def weak(text: str) -> list[str]:
    return list(dict.fromkeys(m.form for m in extract(text) if not m.strong))


def types(text: str) -> dict[str, str]:
    return {m.form: m.type for m in extract(text)}


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


def test_a_chinese_passage_gives_titles_people_places_and_latin_names() -> None:
    found = types(CHINESE)
    assert found["战国无双3"] == "content"
    assert found["武田信玄"] == "person" and found["莱昂纳多·迪卡普里奥"] == "person"
    assert found["北京大学"] == "organization"
    assert found["日内瓦"] == "location"
    assert {"ω-force", "世界卫生组织", "织田信长"} <= set(found)
    assert "锣鼓" in weak(CHINESE) and "其中" not in found and "人物" not in found


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


def test_code_identifiers_survive_whole() -> None:
    text = "Call getUserName() or load_index in C++ or C#; see os.path.join, node.js, README.md and `fetch all`."
    assert strong(text) == [
        "getUserName", "load_index", "C++", "C#", "os.path.join", "node.js", "README.md", "fetch all",
    ]  # fmt: skip


def test_names_before_colons_are_people_where_lines_are_turns() -> None:
    talk = "AnnaBerg: Hello there.\nTomReed: It rains.\nAnnaBerg: It does.\n**TomReed**: Then stay in.\n"
    assert types(talk) | {"AnnaBerg": "person", "TomReed": "person"} == types(talk)
    notes = "Summary: it rains.\nAction: stay in.\nSummary: it does.\nAction: go out.\n"
    assert "person" not in types(notes).values()


def test_a_number_in_backticks_is_no_name() -> None:
    assert [m.form for m in extract("The port `p` is `8765`, see `serve_http`.")] == ["serve_http"]


def test_headings_do_not_become_one_long_name() -> None:
    text = "ANNUAL REPORT OF THE COMPANY AND ITS SUBSIDIARIES FOR THE YEAR\n\nHow To Choose The Best Theme For Your Store\n"
    assert max((len(m.form.split()) for m in extract(text)), default=0) <= 4


def test_traditional_chinese_is_read_too() -> None:
    found = types("美國總統訪問臺灣大學，並會見馬英九。臺灣大學位於臺北市。")
    assert found["臺灣大學"] == "organization" and found["臺北市"] == "location" and found["馬英九"] == "person"


def test_kin_are_no_names_in_chinese_so_that_a_question_back_names_nothing() -> None:
    for question in ("他的哥哥呢？", "那他的弟弟呢？", "她妹妹叫什么？"):
        assert [one for one in extract(question) if one.strong] == []
        assert history_keywords(["陈思远的父亲是谁？", "陈守仁。"], question) == ["陈思远"]


def test_japanese_and_korean_give_compounds() -> None:
    assert {"ヴァルキュリア", "任天堂", "京都市"} <= {m.form for m in extract("ヴァルキュリアは任天堂のゲームで、京都市で作られた。")}
    assert "서울" in {m.form for m in extract("서울은 한국의 수도이다. 서울에 사람이 많다.")}


@pytest.mark.parametrize("text", ["", " ", "\n\n", "。", "()", "the", "A", "1234 5678", "\ud800 \x00", "((((", "“”"])
def test_texts_without_names_give_none(text: str) -> None:
    assert extract(text) == []


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


@pytest.mark.parametrize("name", ["musique100", "hotpot_train100", "cmrc_zh", "chroma"])
def test_real_corpora_give_exact_spans(name: str) -> None:
    path = DATA / name / "corpus.jsonl"
    if not path.exists():
        pytest.skip("the evaluation data is not beside the checkout")
    lines = path.read_text("utf-8").splitlines()
    for line in lines[:: max(1, len(lines) // 60)]:
        _sound(json.loads(line)["text"][:60_000])


AWKWARD = [
    "cookie consent accept ", "A", "a", "A ", "a ", "A.", "A. ", "Ab-", "A'", "A'b", "A of ", "A of the ", "A & ", "A, Inc", "a.", "a.b", "_", "a_", "a-",
    '"', '"a', '"a b" ', "`", "`a`", "``a''", "'", "“", "《", "《a》", "「", "(", "((A", "(A)", "A (A) ", "Abc (ABC) ", "（", "，简称",
    "1", "1 ", "1990 Cup ", "\n", "\nA", "A\n", "A is a ", "\nA is a ", "的", "中国", "中·", "阿·", "站", "ア", "ア・", "あ", "한국은 ",
    "é", "ß-", "Я ", "ا", "ابجد ", "ก", "C++", "@", "-", "King's ", "Ab's Cd ", "May 5 ", "And The ", "@-@ A ", "𠀀", "😀", "A\u0301",
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


def test_english_text_loads_no_chinese_word_list() -> None:
    program = "import sys; from graphrag_mcp.names.extract import extract; extract('Ada Lovelace'); print('rjieba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.stdout.strip() == "False"


def test_the_version_names_the_extractor() -> None:
    assert VERSION.startswith("nlp-")


def test_words_of_a_programming_language_in_blocks_of_code_are_no_names_of_chinese_text() -> None:
    code = "```js\nfunction area(shape) {\n  return shape.width;\n}\nfunction edge(shape) {\n  return shape;\n}\n```\n"
    prose = "这一章介绍函数的写法，先写关键字，再写参数和大括号。每个参数都可以有默认值，也可以省略。"
    named = {mention.form for mention in extract(prose * 6 + "\n\n" + code + "迭代器有两种，一种叫 generator，很常用。"
                                                 "另一种 generator 可以暂停。")}  # fmt: skip
    assert "generator" in named and not {"function", "return", "shape"} & named
    assert "return" in {mention.form for mention in extract(prose * 6 + code.replace("```", ""))}


@pytest.mark.parametrize("mark", ["``\n    ''''", "«   »", "“  ”", "„  “"])
def test_quotation_marks_around_blanks_hold_no_name(mark: str) -> None:
    assert [one.form for one in extract(f"The option {mark} was added in Norway.")] == ["Norway"]


def test_a_speaker_with_a_title_is_the_person_without() -> None:
    script = "\n".join(["FENN: She steered south.", "MR COLQUHOUN: Yet she struck.", "FENN: She did.", "MR COLQUHOUN: In the dark?"])
    named = {mention.key: mention.type for mention in extract(script)}
    assert named["colquhoun"] == "person" and "mr colquhoun" not in named


def test_speakers_with_everyday_names_are_persons_and_what_opens_an_address_is_no_part_of_them() -> None:
    chat = "James: Did the ferry run?\n\nJohn: Hey James, it did. Wow James! You asked twice.\n\nJames: Cool, John!\n\nJohn: I saw it."
    found = {mention.key: mention.type for mention in extract(chat)}
    assert (found["james"], found["john"]) == ("person", "person")
    assert not {"wow james", "hey james"} & found.keys()


def test_a_legal_form_that_is_also_initials_says_the_type_and_stays_in_the_name() -> None:
    found = {mention.key: mention.type for mention in extract("Marta Olsen left Siemens AG for Nokia Oy. Siemens AG and Nokia Oy met her.")}
    assert (found["siemens ag"], found["nokia oy"]) == ("organization", "organization")


def test_labels_of_questions_and_answers_are_no_persons() -> None:
    faq = "Question: Does the ferry run in May?\nAnswer: It does, by notice.\nQuestion: Who pays the fare?\nAnswer: The question is settled on the pier, and the answer is posted there."
    assert "person" not in {mention.type for mention in extract(faq)}
    log = "Issue: The pump leaks.\nDecision: Replace it, see Issue 2.\nIssue: The lamp is out.\nDecision: As in Decision 1.\n"
    assert "person" not in {mention.type for mention in extract(log)}


def test_a_full_name_stays_whole_where_its_family_name_speaks() -> None:
    minutes = "Berg: We begin.\nHolm: Good.\nBerg: Anna Berg thanked the crew.\nHolm: Karl Holm closed the session."
    assert {"anna berg", "karl holm"} <= {mention.key for mention in extract(minutes)}
