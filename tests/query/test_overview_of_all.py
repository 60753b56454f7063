"""Questions on a collection as a whole get its map; questions on something in it get sentences."""

import re
import tomllib
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.overview import asked_about
from graphrag_mcp.query.route import choose
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def test_points_cite_only_documents_that_pass(snapshot: Snapshot) -> None:
    whole = global_search(snapshot, "back-run", max_tokens=20_000)
    left_out = whole.citations[0].uri.rpartition("/")[2]
    for given in (f"document!={left_out}", f"document={left_out}"):
        found = global_search(snapshot, "back-run", filters=[given], max_tokens=20_000)
        cited = {one.uri.rpartition("/")[2] for one in found.citations}
        assert cited and (cited == {left_out} if "!" not in given else left_out not in cited)
WELLS = (
    "The well of Orrin fell by two metres in May. Farmers of Orrin asked the council for a second well. "
    "The council dug the well of Orrin deeper in June. A pump for the well cost 900 crowns.",
    "Marta Voss sells bread on the square of Tarn. She bakes 300 loaves a day. Her oven stands beside a well.",
    "The well of Hask gave brown water after the flood. A nurse closed the well of Hask for three weeks. "
    "Children fetched water from the well of Orrin instead. The well of Hask was opened again in August.",
)



def test_a_list_of_undated_documents_begins_with_the_best_and_names_repeats_with_it(tmp_path: Path) -> None:
    said = "After the flood the well of the mill had brown water. "
    texts = [("a", f"{said}Nobody drank."), ("b", WELLS[2]), ("c", "A ferry left."), ("d", f"{WELLS[2]} The end.")]
    index_documents(tmp_path / "corpus", IndexRequest(texts=tuple(InlineText(t, n) for n, t in texts)), Settings(home=tmp_path))
    listed = list_documents(open_snapshot(tmp_path / "corpus"), query="brown water of the well of Hask after the flood").text.splitlines()
    assert listed[0].endswith("best first.")
    assert [line.partition("] ")[2][0] for line in listed[1:]] == ["b", "a"] and listed[1].endswith("(also t4)")

SCORED = tomllib.loads(Path(__file__).with_name("asking.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def sample(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def has_sentences(snapshot: Snapshot, question: str) -> bool:
    lines = global_search(snapshot, question, max_tokens=1_500).text.splitlines()
    return any(line.startswith("- [t") for line in lines)


def test_scored_questions_get_the_map_or_sentences(tmp_path: Path) -> None:
    """95 % of what gets the map asks for all, and two thirds of what asks for all get it."""
    missed: list[str] = []
    wrong: list[str] = []
    count = 0
    for language, of_language in SCORED.items():
        read = {name: text.replace("\n", " ").split(" | ") for name, text in of_language.items()}
        texts = tuple(InlineText(text, f"n{n}") for n, text in enumerate(read["documents"]))
        index_documents(tmp_path / language, IndexRequest(texts=texts), Settings(home=tmp_path))
        snapshot = open_snapshot(tmp_path / language)
        missed += [q for q in read["whole"] if asked_about(snapshot, q) is not None]
        wrong += [q for q in read["other"] if asked_about(snapshot, q) is None]
        count += len(read["whole"])
    found = count - len(missed)
    assert found / (found + len(wrong)) >= 0.95 and found / count >= 0.66, (missed, wrong)


def test_a_question_in_chinese_on_the_whole_names_what_is_nowhere(sample: Snapshot) -> None:
    assert "Nowhere in this corpus: '火星'" in global_search(sample, "关于火星的所有文章", max_tokens=1_500).hint


@pytest.mark.parametrize(
    "question",
    ["What is this about?", "What's in here?", "What is this folder about?", "Provide a summary of the notes", "¿De qué trata esta carpeta?", "Give me an overview of this archive", "tldr", "Worum geht es in diesem Ordner?", "这些文件里有什么？", "這些文件主要講什麼？", "主要主题有哪些，各占多少篇"],
)
def test_plain_questions_get_the_map(sample: Snapshot, question: str) -> None:
    assert choose(question, sample)[0] == "global"
    found = global_search(sample, question, max_tokens=1_500)
    assert found.state == "context" and " topics.\n" in found.text.partition("\n\n")[0] + "\n"
    assert not has_sentences(sample, question)


def test_a_question_on_something_is_searched_for_whatever_words_frame_it(tmp_path: Path) -> None:
    texts = ["The board and the divers quarrel on the fee.", "Nine people walked to the pier.", "People sold herring here."]
    request = IndexRequest(texts=tuple(InlineText(text, f"n{at}") for at, text in enumerate(texts)))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    lines = global_search(snapshot, "Summarise everything: what do the divers quarrel about?").text.splitlines()
    assert [line for line in lines if line.startswith("- [t")] == ["- [t1] n0: The board and the divers quarrel on the fee."]


ENGLISH = ("The {0} of place {1} was opened again. It pleased the {0} keepers.", "", ("harbour", "orchard", "railway"))
OPENED = "{0}第{1}站在去年冬天的大风之后重新开放，管理员和附近的居民都很高兴，并且在门口挂上了三盏新的灯。"
CHINESE = (OPENED, "关于第{1}站{0}重新开放以及收费管理办法的通知、说明和附件", ("港口", "果园", "铁路"))


@pytest.mark.parametrize("text, title, things", [ENGLISH, CHINESE, (OPENED, "", CHINESE[2])])
def test_a_map_of_many_documents_says_how_to_list_all_titles_and_that_list_has_all(
    tmp_path: Path, text: str, title: str, things: tuple[str, ...]
) -> None:
    words = [(things[n % 3], n) for n in range(120)]
    texts = tuple(InlineText(text.format(*each), f"n{each[1]}.txt", title.format(*each)) for each in words)
    snapshot = snapshot_of(tmp_path / "many", texts)
    first = global_search(snapshot, "What are these documents about?").text.splitlines()[0]
    asked = re.search(r"The titles of all, about (\d+),000 characters: list_documents\(max_tokens=(\d+)\)", first)
    assert asked, first
    listed = list_documents(snapshot, max_tokens=int(asked[2]))
    assert abs(len(listed.text) - 1_000 * int(asked[1])) <= 1_000
    assert not listed.more and all((title.format(*each) or f"- n{each[1]}: ") in listed.text for each in words)
