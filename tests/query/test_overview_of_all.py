"""Every way to ask what a collection is about gives the map; a question on something in it does not."""

from pathlib import Path

import pytest

from graphrag_mcp.query.asking import asks_for_all
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.route import choose
from graphrag_mcp.store.tables import open_snapshot

ALL = [
    "What is this folder about?", "What are these notes about?", "What is in these files?", "What's in this corpus?",
    "Give me an overview of this archive", "What does this collection contain?", "What is the content of the folder?",
    "What do I have in my notes?", "Tell me about this dataset", "Summarize everything",
    "Worum geht es in diesem Ordner?", "Was steht in diesen Dateien?", "Wovon handeln diese Notizen?",
    "Gib mir einen Überblick über die Sammlung", "De quoi parle ce dossier ?", "Que contient cette collection ?",
    "De quoi parlent mes notes ?", "¿De qué trata esta carpeta?", "¿Qué hay en estos archivos?", "¿De qué hablan mis notas?",
    "Provide a high-level summary of the corpus", "Key takeaways from my notes", "whats this about", "tldr",
    "Kannst du mir die Unterlagen zusammenfassen?", "Fais-moi un résumé de ces fichiers", "Hazme un resumen de esta carpeta",
    "Fammi un riassunto di questi file", "给我概括一下所有文件",
    "这个文件夹是关于什么的？", "这些文件里有什么？", "我的笔记讲了什么？",
]  # fmt: skip
NOT_ALL = [
    "What is the folder on Corrie Head about?", "What do the notes say on eelgrass?", "Was steht in den Dateien über Seegras?",
    "De quoi parle le dossier du phare ?", "¿Qué dicen las notas sobre el faro?", "这些笔记怎么说海草？", "lighthouse", "", "map", "key points",
    "Summarize the contract", "Which documents are about the bridge?", "an introduction to eelgrass", "What is the picture about?",
]  # fmt: skip


@pytest.mark.parametrize("question", ALL)
def test_an_overview_of_all_is_the_map(sample_home: Path, question: str) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")
    found = global_search(snapshot, question, max_tokens=1_500)
    assert asks_for_all(question) and found.communities and " topics.\n" in found.text.partition("\n\n")[0] + "\n"
    assert choose(question, snapshot)[0] == "global"


@pytest.mark.parametrize("question", NOT_ALL)
def test_a_question_on_something_is_none(question: str) -> None:
    assert not asks_for_all(question)


@pytest.mark.parametrize("question", ["What are these documents about, and who disagrees with whom?", "这些文件是关于什么的，谁和谁吵架？"])
def test_a_question_gets_the_map_if_one_clause_asks_for_it_and_the_rest_finds_nothing(sample_home: Path, question: str) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")
    found = global_search(snapshot, question, max_tokens=1_500)
    assert " topics.\n" in found.text.partition("\n\n")[0] + "\n" and found.state != "not_found"
    assert "Nothing was found on the rest" in found.hint
    further = global_search(snapshot, question, max_tokens=1_500, cursor=found.next_cursor)
    assert not found.next_cursor or (further.text and further.text != found.text)


def test_a_question_on_something_gets_no_map(sample_home: Path) -> None:
    found = global_search(open_snapshot(sample_home / "corpora" / "sample"), "Who disagrees about quarks?", max_tokens=1_500)
    assert "rest of the question" not in found.hint and " topics.\n" not in found.text


def test_a_first_clause_on_all_gets_the_map_and_the_rest_its_sentences(sample_home: Path) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")
    found = global_search(snapshot, "What are these documents about, and what do they say on turbines?", max_tokens=1_500)
    topics = [at for at, line in enumerate(found.text.splitlines()) if line.startswith("[c")]
    lines = [at for at, line in enumerate(found.text.splitlines()) if line.startswith("- [t")]
    assert " topics.\n" in found.text and topics[0] < lines[0] and "turbines" in found.text.splitlines()[lines[0]]
    assert "rest of the question" not in found.hint
    further = global_search(snapshot, "What are these documents about, and what do they say on boats?", max_tokens=900)
    if further.next_cursor:
        more = global_search(snapshot, "What are these documents about, and what do they say on boats?", max_tokens=900, cursor=further.next_cursor)
        assert " topics.\n" not in more.text and more.text.count("\n- ") and more.text != further.text
