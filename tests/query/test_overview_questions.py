"""Questions about a corpus as a whole, in many languages: answered by its reports, not by 'not found'."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.query.asking import (
    asking_terms,
    asks_for_all,
    names_an_overview,
    rest_of_overview,
    without_asking,
)
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.reports import LITTLE, asked_about
from graphrag_mcp.query.route import choose
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

WHOLE = [
    "Summarise the news", "What are the main themes?", "Fasse die Themen zusammen", "Quels sont les thèmes principaux ?",
    "¿Cuáles son los temas principales?", "Каковы основные темы?", "总结一下这些新闻的主题", "概述一下", "文書の要約をしてください",
    "この資料の要約", "주요 주제는 무엇인가요?", "문서의 내용을 요약해 주세요", "Was sind die wichtigsten Themen?",
    "Gib mir einen Überblick", "What trends appear across the documents?", "résume les documents",
    "Dame un resumen de los documentos", "主要テーマは何ですか", "この文書の概要を教えてください", "全体の要約をお願いします",
    "전체 내용을 요약해 주세요", "ما هي المواضيع الرئيسية؟", "Ana temalar nelerdir?",
    "この資料全体はどんなテーマについてですか", "О чём все эти документы?", "¿De qué tratan todos estos documentos?",
    "इन दस्तावेज़ों के मुख्य विषय क्या हैं?", "Bu belgelerin ana konuları nelerdir?", "Chủ đề chính của các tài liệu này là gì?",
    "เอกสารทั้งหมดนี้เกี่ยวกับอะไร", "De quoi parlent tous ces documents ?",
]
ALSO = [  # where global_search was chosen already
    "What is this about?", "What's it all about?", "What is in here?", "What do these documents contain?", "What topics are covered?",
    "What are the most important people and events?", "Who are the main characters?", "Who are the key people, places and organisations?",
    "这些文档主要讲了哪些人物和事件？", "重要的人物和事件有哪些？", "主要人物是谁？", "这里有什么内容？", "有哪些话题？", "這些文檔主要講了哪些人物和事件？", "這裡有什麼內容？",
    "What are these chats about?", "What are these chats about: who talks with whom, main subjects of each pair", "What is this collection about: subjects, shares, kinds of sources?", "What topics do these pages cover?",
    "What are the main subjects, and how large is each of them?", "Who are the people in these chats and what do they talk about?",
    "Which topics come up most often?", "Worum geht es in diesen Chats?", "Was liegt hier alles drin?", "Sur quoi portent ces fichiers ?", "このフォルダには何が入っていますか", "これらのメモの概要を教えて", "这些聊天记录都在讲什么？", "这些笔记主要涉及哪些主题，各占多大比例？",
]  # fmt: skip


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


@pytest.mark.parametrize("question", WHOLE)
def test_what_is_chosen_to_be_about_the_whole_corpus_is_answered_by_its_weightiest_reports(
    snapshot: Snapshot, question: str
) -> None:
    assert choose(question, snapshot)[0] == "global"
    result = global_search(snapshot, question, max_tokens=1_500)
    assert result.state == "context" and result.communities, result.hint


@pytest.mark.parametrize("question", ALSO)
def test_plain_questions_on_all_of_it_are_answered_by_the_weightiest_reports(snapshot: Snapshot, question: str) -> None:
    assert asked_about(snapshot, question) is None
    assert global_search(snapshot, question, max_tokens=1_500).state == "context"


def test_important_people_of_something_are_asked_about_that(snapshot: Snapshot) -> None:
    worth = asked_about(snapshot, "Who were the main people on the island?")
    assert worth and max(worth, key=worth.__getitem__) == "island" and worth.get("peopl", 0) < LITTLE * 10


@pytest.mark.parametrize(
    "question", ["What are the trends in quantum physics?", "量子物理学的概述", "Überblick über Quantenphysik", "Quantum の要約"]
)
def test_an_overview_of_what_is_not_here_is_not_an_overview_of_all(snapshot: Snapshot, question: str) -> None:
    assert asked_about(snapshot, question) is not None
    assert global_search(snapshot, question, max_tokens=1_500).state == "not_found"


NUMBERED = [
    "What happened in 2008?", "What happened on 12/05/2023?", "What changed between 2010 and 2020?",
    "Which people are mentioned in document 17?", "What is said about 5G?", "What does it say about C++?",
    "What is the size of B2B?", "Who is K?", "What does part 2 cover?", "2008年发生了什么?", "第5个文件讲了什么?",
]  # fmt: skip
NAMED = [
    "Who is Ana?", "who is ana", "Who is Metin?", "Who is Konur?", "Tell me about Temasek", "Why did Base issue shares?",
    "What does Vault do?", "When were talks resumed?", "Who is Key?", "What about the US?", "Metin", "Wer ist Ana?",
    "가을은 무엇인가요?", "Was ist der Nennwert?", "Что такое текстиль?",
]  # fmt: skip


@pytest.mark.parametrize("question", NUMBERED + NAMED)
def test_a_number_a_letter_or_a_name_is_asked_about(snapshot: Snapshot, question: str) -> None:
    assert not asks_for_all(question) and asked_about(snapshot, question) is not None
    assert not choose(question, snapshot)[1].endswith("so it is about the corpus as a whole.")


@pytest.mark.parametrize("question", ["Who founded Trend Micro?", "When were talks resumed?", "Tell me about Temasek"])
def test_a_name_is_no_word_for_an_overview(question: str) -> None:
    assert not names_an_overview(question)


@pytest.mark.parametrize(
    "question",
    [
        "What are the 5 main themes?", "Give me 5 key points", "List 10 topics", "Nenne die 5 wichtigsten Themen", "总结5个主题",
        "What do I have in these PDFs?", "Give me a TLDR of ALL documents", "What Are These Documents About?",
        "Quais são os principais temas?", "Які основні теми?", "주요 내용을 요약해줘", "Fass mir alles zusammen",
    ],
)  # fmt: skip
def test_a_count_and_capitals_that_tell_nothing_leave_an_overview_of_all(question: str) -> None:
    assert asks_for_all(question)


def test_of_thai_and_korean_only_whole_words_ask() -> None:
    assert without_asking("หลักฐาน") == "หลักฐาน" and without_asking("전체주의") == "전체주의"
    assert not without_asking("주제는 무엇인가요").strip()


def test_words_that_ask_in_another_language_weigh_in_full() -> None:
    assert "ana" in asking_terms("Bu belgelerin ana temalar nedir?")
    assert "ana" not in asking_terms("Who saw Ana?") and "base" not in asking_terms("Who founded Base?")
    assert "main" in asking_terms("Who is the main captain?") and "main" not in asking_terms("Who sailed down the Main?")


def test_a_sign_of_grammar_within_a_word_stays_in_it(tmp_path: Path) -> None:
    texts = (InlineText("きのこは秋に採れる。高井美咲は長野で毎年きのこを探す。", "a"), InlineText("春には山菜が採れる。", "b"))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    asked = asked_about(open_snapshot(tmp_path / "c"), "きのこの概要")
    assert asked is not None and set(asked) == {"きの", "のこ"}


def test_points_cite_only_documents_that_pass(snapshot: Snapshot) -> None:
    whole = global_search(snapshot, "back-run", max_tokens=20_000)
    left_out = whole.citations[0].uri.rpartition("/")[2]
    for given in (f"document!={left_out}", f"document={left_out}"):
        found = global_search(snapshot, "back-run", filters=[given], max_tokens=20_000)
        cited = {one.uri.rpartition("/")[2] for one in found.citations}
        assert cited and (cited == {left_out} if "!" not in given else left_out not in cited)


HARBOUR = (
    "The harbour board of Ardvane voted to raise the pilot fees by a tenth.",
    "Harbour master Ewan Reid wants a new quay for the ferry before winter.",
    "Fishermen of the harbour refused to land their herring at the north pier.",
    "A storm broke the harbour wall, and forty metres of it fell into the basin.",
    "The board sold the old harbour crane to a yard in Leith for its scrap.",
    "Dredging of the harbour mouth costs the board more than all its other work.",
    "Ferry passengers may now use the board's pier without a ticket for the harbour.",
)
BAKERY = (
    "Several events of the period were covered with sugar, and the ovens decided which.",
    "Which rye loaf is sold was decided in a period of events that butter covered.",
    "The ginger bun covered its period, and the events of the oven were decided by yeast.",
    "Flour prices decided the period, which events of the bakery never covered.",
    "Oat cakes are covered by Lorna Blythe, who decided over events in the baking period.",
)


def test_words_about_how_it_is_asked_choose_no_sentences(tmp_path: Path) -> None:
    """The bakery's sentences hold "events", "period" and "decided", the harbour's what is asked about."""
    texts = tuple(InlineText(text, f"n{at}") for at, text in enumerate(HARBOUR + BAKERY))
    index_documents(tmp_path / "corpus", IndexRequest(texts=texts), Settings(home=tmp_path))
    asked = "Which events of the period decided what the harbour board did, and what was covered?"
    found = global_search(open_snapshot(tmp_path / "corpus"), asked)
    shown = [line for line in found.text.splitlines() if line.startswith("- [")]
    assert len(shown) >= 4 and not any(word in line for word in ("oven", "rye", "ginger", "Flour", "Oat") for line in shown[:4])


def test_the_map_is_not_flagged_for_its_own_words(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "What is this about?")
    assert "More: get_community_report" in result.text
    text, flags = packing_budget.dressed(result, result.text, packing_budget.footer(result))
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
PLACES = (
    "the town hall of Leith for days", "a dentist in Varde last winter", "nine ferries between islands", "the library at Ribe again",
    "some farmers beyond the moor", "her brother's garage on Sunday", "every cinema along the coast", "two schools near Hobro",
    "an airport during the night", "our brewery before Christmas",
)  # fmt: skip


def documents_shown(tmp_path: Path, texts: Sequence[str], *questions: str) -> list[set[int]]:
    given = tuple(InlineText(text, f"n{at}") for at, text in enumerate(texts))
    index_documents(tmp_path / "corpus", IndexRequest(texts=given), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "corpus")
    found = (global_search(snapshot, question, max_tokens=4_000).citations for question in questions)
    return [{int(one.uri.rpartition("n")[2]) for one in some} for some in found]


def test_each_thing_of_a_list_is_found_although_one_document_holds_them_all(tmp_path: Path) -> None:
    texts = ["A virus, a worm, spam and phishing reached the computers of the bank on one day."]
    texts += [f"A virus quickly stopped {place}." for place in PLACES] + [f"Lots of spam annoyed {place}." for place in PLACES]
    texts += [f"The tennis club soon visited {place}." for place in PLACES]
    wanted = set(range(21))
    for shown in documents_shown(tmp_path, texts, "virus, worm, phishing, spam", "phishing, virus and spam"):
        assert len(shown & wanted) >= 15 and not shown - wanted


def test_few_documents_with_all_words_of_a_question_leave_room_for_others(tmp_path: Path) -> None:
    texts = ["The cruel wardens of Leith locked the harbour gates.", "Two cruel wardens still keep the gates of the harbour locked for fear of thieves."]
    texts += [f"The harbour gates then looked cruel to {place}." for place in PLACES for _ in range(5)]
    texts += [f"The tennis club soon visited {place}, as {at} people saw." for at in range(40) for place in PLACES]
    (shown,) = documents_shown(tmp_path, texts, "Why were the harbour gates locked by cruel wardens?")
    assert {0, 1} <= shown and len(shown) >= 6 and all(at < 52 for at in shown)


SEVERAL = {  # a question whose first clause asks for all, and what it asks besides
    "What are these documents about, and which disagreements run through them?": "which disagreements run through them?",
    "Summarise everything here and tell me where the authors disagree.": "tell me where the authors disagree.",
    "Give me an overview of the corpus, then point out contradictions.": "then point out contradictions.",
    "What do these notes contain? Who disagrees with whom?": "Who disagrees with whom?",
    "Worum geht es in diesen Dokumenten und welche Konflikte ziehen sich durch?": "welche Konflikte ziehen sich durch?",
    "De quoi parlent ces documents, et quels désaccords les traversent ?": "quels désaccords les traversent ?",
    "¿De qué tratan estos documentos y qué desacuerdos aparecen?": "qué desacuerdos aparecen?",
    "Di cosa parlano questi documenti e quali conflitti emergono?": "quali conflitti emergono?",
    "这些资料的主题是什么，作者们在哪里意见不同？": "作者们在哪里意见不同？",
}
ON_A_SUBJECT = [  # a clause says where, how, or refers to what was asked before
    "In these documents, who is Anna?", "In which documents, and when, was the dam built?", "在这些文件里，安娜是谁？",
    "In short and simple words, who paid for the dam?", "What happened and who was involved in the strike?",
    "When did the dam fail, and what reasons are given?", "Which documents mention the strike, and what do they say?",
    "What is this about, and what did Anna Meier do?", "What are these files about, and what happened in 1968?",
    "Summarise the article about coral and list its sources.", "Who decided, and why did the talks fail?",
]  # fmt: skip


@pytest.mark.parametrize("question", SEVERAL)
def test_a_clause_that_asks_for_all_gets_the_map(snapshot: Snapshot, question: str) -> None:
    assert rest_of_overview(question) == SEVERAL[question]
    found, whole = (global_search(snapshot, one, max_tokens=1_500) for one in (question, "What is this about?"))
    assert found.communities[:3] == whole.communities[:3] and " topics.\n" in found.text
    assert found.tokens <= 1_500


@pytest.mark.parametrize("question", [*ON_A_SUBJECT, *WHOLE, *ALSO])
def test_a_clause_that_only_says_where_or_refers_back_asks_for_no_map(question: str) -> None:
    assert not rest_of_overview(question)
