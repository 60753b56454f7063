"""Questions on a collection as a whole get its map; questions on something in it get sentences."""

import re
import tomllib
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import asking
from graphrag_mcp.query.asking import asks_for_all, rest_of_overview, without_asking
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.route import choose
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import LANGUAGES, STOP_WORDS, folded, query_terms
from graphrag_mcp.types import IndexRequest, InlineText

SCORED = tomllib.loads(Path(__file__).with_name("asking.toml").read_text("utf-8"))
PLAIN, FACTS = (SCORED.pop(name).replace("\n", " ").split(" | ") for name in ("plain", "facts"))


@pytest.fixture(scope="module")
def sample(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def has_sentences(snapshot: Snapshot, question: str) -> bool:
    lines = global_search(snapshot, question, max_tokens=1_500).text.splitlines()
    return any(line.startswith("- [t") for line in lines)


def test_scored_questions_get_the_map_or_sentences(tmp_path: Path) -> None:
    """All that gets topics alone asks for all (120 of 240 do), and 80 % of what asks for all gets them."""
    missed: list[str] = []
    wrong: list[str] = []
    count = 0
    for language, of_language in SCORED.items():
        read = {name: text.replace("\n", " ").split(" | ") for name, text in of_language.items()}
        texts = tuple(InlineText(text, f"n{n}") for n, text in enumerate(read["documents"]))
        index_documents(tmp_path / language, IndexRequest(texts=texts), Settings(home=tmp_path))
        snapshot = open_snapshot(tmp_path / language)
        missed += [question for question in read["whole"] if has_sentences(snapshot, question)]
        wrong += [question for question in read["other"] if not has_sentences(snapshot, question)]
        count += len(read["whole"])
    found = count - len(missed)
    assert found / (found + len(wrong)) >= 0.95 and found / count >= 0.75, (missed, wrong)


def test_plain_questions_get_the_map(sample: Snapshot) -> None:
    for question in PLAIN:
        assert asks_for_all(question) and choose(question, sample)[0] == "global", question
        found = global_search(sample, question, max_tokens=1_500)
        assert found.state == "context" and " topics.\n" in found.text.partition("\n\n")[0] + "\n"


@pytest.mark.parametrize(
    ("question", "rest"),
    [
        ("What are these documents about, and which disagreements run through them?", "which disagreements run through them?"),
        ("Summarise everything here and tell me where the authors disagree.", "tell me where the authors disagree."),
        ("Worum geht es in diesen Dokumenten und welche Konflikte ziehen sich durch?", "welche Konflikte ziehen sich durch?"),
        ("这些资料的主题是什么，作者们在哪里意见不同？", "作者们在哪里意见不同？"),
        ("What happened and who was involved in the strike?", ""),
        ("在这些文件里，安娜是谁？", ""),
        ("この文書で、アンナは誰ですか？", ""),
        ("Across all documents, who is Anna?", ""),
        ("In which documents, and when, was the dam built?", ""),
        ("Summarise the article about coral and list its sources.", ""),
    ],
)  # fmt: skip
def test_a_first_clause_that_asks_for_all_gets_the_map_and_leaves_a_rest(
    sample: Snapshot, question: str, rest: str
) -> None:
    assert rest_of_overview(question) == rest
    assert not rest or " topics.\n" in global_search(sample, question, max_tokens=1_500).text


def test_the_rest_of_an_overview_gets_its_sentences_or_a_hint(sample: Snapshot) -> None:
    begun = "What are these documents about, and what do they say on"
    found = global_search(sample, f"{begun} turbines?", max_tokens=1_500)
    lines = found.text.splitlines()
    first = {
        mark: next(n for n, line in enumerate(lines) if line.startswith(mark))
        for mark in ("[c", "- [t")
    }
    assert (
        first["[c"] < first["- [t"]
        and "turbines" in lines[first["- [t"]]
        and "rest of the question" not in found.hint
    )
    nothing = global_search(sample, f"{begun} quarks?", max_tokens=1_500)
    assert (
        nothing.state == "context"
        and "Nothing was found on the rest of the question: what do they say on quarks?" in nothing.hint
        and "- [t" not in nothing.text
    )
    silent = global_search(sample, "What are these documents about, and what do people disagree on?")
    assert "Nothing was found on the rest" in silent.hint and " topics.\n" in silent.text
    few = global_search(sample, f"{begun} boats?", max_tokens=900)
    if few.next_cursor:
        more = global_search(sample, f"{begun} boats?", max_tokens=900, cursor=few.next_cursor)
        assert " topics.\n" not in more.text and more.text.count("\n- ") and more.text != few.text


def test_what_people_disagree_on_is_searched_for_behind_the_map_and_alone(tmp_path: Path) -> None:
    texts = ["The board and the divers disagree on the fee.", "Nine people walked to the pier.", "People sold herring here."]
    request = IndexRequest(texts=tuple(InlineText(text, f"n{at}") for at, text in enumerate(texts)))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot, asked = open_snapshot(tmp_path / "c"), "what do people disagree on?"
    for question in (f"What are these documents about, and {asked}", asked):
        lines = global_search(snapshot, question).text.splitlines()
        assert [line for line in lines if line.startswith("- [t")] == ["- [t1] n0: The board and the divers disagree on the fee."]
    for question in ("What are these documents about, and what are the main topics?", "Summarise these documents and list the people."):
        assert not has_sentences(snapshot, question)


def test_a_question_that_only_asks_is_searched_for_whole_where_no_framing_word_occurs(tmp_path: Path) -> None:
    texts = ["The fire happened at night.", "The divers want a new crane."]
    request = IndexRequest(texts=tuple(InlineText(text, f"n{at}") for at, text in enumerate(texts)))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for question in ("What happened next?", "What happened last?"):
        assert texts[0] in global_search(snapshot, question).text, question
    for question in ("What did they want to change?", "What do people agree and want?"):
        assert texts[1] in global_search(snapshot, question).text, question


@pytest.mark.parametrize(
    "question",
    [
        "What are the trends in quantum physics?",
        "量子物理学的概述",
        "Überblick über Quantenphysik",
        "Who disagrees about quarks?",
    ],
)
def test_what_is_not_here_is_not_found(sample: Snapshot, question: str) -> None:
    assert global_search(
        sample, question, max_tokens=1_500
    ).state == "not_found" and not has_sentences(sample, question)


def test_a_number_a_name_or_a_part_of_another_word_is_asked_about() -> None:
    for question in (
        "What happened in 2008?",
        "What does it say about C++?",
        "Who is K?",
        "What about the US?",
        "Metin",
        "가을은 무엇인가요?",
        "",
    ):
        assert not asks_for_all(question), question
    assert asks_for_all("What are the 5 main themes?") and asks_for_all(
        "Give me a TLDR of ALL documents"
    )


def test_a_compound_keeps_all_its_parts() -> None:
    assert without_asking("What is said on the back-run?").split()[-1] == "back-run?"
    assert not without_asking("Give me a high-level summary").replace("a", "").replace("me", "").strip()


def test_a_question_after_one_fact_does_not_ask_for_all_and_keeps_its_words() -> None:
    for question in FACTS:
        assert not asks_for_all(question), question
        assert query_terms(without_asking(question)) == query_terms(question)


def test_a_capital_within_a_sentence_makes_any_word_a_name() -> None:
    """Tom, Will, Van and An are words of some language: of grammar, or of asking.toml with or without marks."""
    lists = tomllib.loads(Path(asking.__file__).with_suffix(".toml").read_text("utf-8"))
    words = {word for group in lists.values() for listed in group.values() for word in listed.split()}
    words |= STOP_WORDS.union(*LANGUAGES.values()) | {folded(word) for word in words} | {"tom", "van", "phoebe"}
    names = {word.capitalize() for word in words if word[0] != word[0].upper()} - {"I"}
    assert len(names) > 1_000
    for name in names:
        for question in ("What did {} say?", "Who is {}?", "Tell me about {}"):
            assert not asks_for_all(question.format(name)), question.format(name)
    for question, name in (("what did NEXT report", "NEXT"), ("IT overview", "IT"), ("And what did «Will» say?", "Will")):
        assert not asks_for_all(question) and name in without_asking(question)
    assert asks_for_all("Main Themes") and asks_for_all("WHAT IS THIS ABOUT?")


def test_a_map_of_many_documents_says_how_to_list_all_titles_and_that_list_has_all(tmp_path: Path) -> None:
    things = ("harbour", "orchard", "railway")
    texts = tuple(
        InlineText(f"The {things[n % 3]} of place {n} was opened again. It pleased the {things[n % 3]} keepers.", f"n{n}.txt")
        for n in range(120)
    )
    index_documents(tmp_path / "many", IndexRequest(texts=texts), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "many")
    first = global_search(snapshot, "What are these documents about?").text.splitlines()[0]
    asked = re.search(r"The titles of all: list_documents\(max_tokens=(\d+)\)", first)
    assert asked, first
    listed = list_documents(snapshot, max_tokens=int(asked[1]))
    assert not listed.more and all(f"n{n}.txt" in listed.text for n in range(120))


def test_a_list_shows_how_each_document_begins_and_of_a_chat_what_it_says(tmp_path: Path) -> None:
    report = "The dam at Orrin broke on Monday night. " + "A zoologist counted seventeen ptarmigans nearby. " * 3
    chat = "Ana: Hi Ben, how are you today?\nBen: Fine, thanks a lot.\nAna: The dam at Orrin broke on Monday night.\n"
    texts = (InlineText(report, "report.txt"), InlineText(chat, "chat.txt"))
    index_documents(tmp_path / "two", IndexRequest(texts=texts), Settings(home=tmp_path))
    report_line, chat_line = (
        next(line for line in list_documents(open_snapshot(tmp_path / "two")).text.splitlines() if name in line)
        for name in ("report.txt", "chat.txt")
    )
    assert "characters: The dam at Orrin broke" in report_line and "Ana: The dam at Orrin broke" in chat_line
