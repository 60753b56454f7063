"""Words of a question that stand nowhere: read as the nearest ones of the corpus, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import rank
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.spelling import nearest
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of

TOWNS = {
    "fi": ("Koivula", "{} on kunta joen rannalla. Kirkko rakennettiin vuonna 1{}."),
    "hu": ("Mezőkút", "{} község egy folyó mellett fekszik. A templom 1{}-ben épült."),
    "pl": ("Sosnowica", "Miejscowość {} leży nad rzeką. Kościół zbudowano w 1{} roku."),
    "cs": ("Lipnice", "Obec {} leží u řeky. Kostel byl postaven v roce 1{}."),
    "en": ("Renwick Harbour", "{} lies on the river. The church was built in 1{}."),
}
OTHERS = ("Mäntyharju", "Bodrogvár", "Rudawa", "Kamenice", "Marlowe")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("towns")
    texts = []
    for number, (language, (name, said)) in enumerate(TOWNS.items()):
        for at, town in enumerate((name, *OTHERS)):
            texts.append(InlineText(said.format(town, 400 + 9 * number + at), f"{language}{at}", town))
    return snapshot_of(home / "c", texts)


@pytest.mark.parametrize(
    ("question", "year"),
    [
        ("Koivulassa", "1400"), ("Mezőkútról mit tudunk?", "1409"), ("Ludność Sosnowicy", "1418"),
        ("Co je v Lipnici?", "1427"), ("Who runs Renwikc?", "1436"), ("reenwick", "1436"),
    ],
)  # fmt: skip
def test_a_word_with_another_ending_or_a_slip_finds_the_passage_that_is_meant_and_says_so(
    snapshot: Snapshot, question: str, year: str
) -> None:
    result = local_search(snapshot, question, max_tokens=2_000)
    assert result.state == "context" and year in result.text[:400]
    assert "Looked for instead: " in result.hint


def test_a_word_that_is_known_in_one_form_is_read_as_nothing_else(snapshot: Snapshot) -> None:
    found = rank.retrieve(snapshot, "Which churches stand in Koivula?")
    assert found.question.near == {} and "church" in found.terms


@pytest.mark.parametrize("word", ["Zanzibar", "refuse", "koi", "1437", "Koivuranta", "海槛", "snake_koivulassa"])
def test_what_is_near_to_nothing_is_read_as_nothing(snapshot: Snapshot, word: str) -> None:
    assert nearest(snapshot, [word.casefold()], ()) == {}


@pytest.mark.parametrize(
    ("asked", "word"), [("wifi", "Wi-Fi"), ("Wi-Fi", "wifi"), ("email", "e-mail"), ("entête", "en-tête")]
)
def test_a_word_written_with_a_hyphen_is_found_without_it_and_the_other_way_round(
    tmp_path: Path, asked: str, word: str
) -> None:
    texts = (InlineText(f"The {word} of the harbour office is down.", "a"), InlineText("Boats came in late today.", "b"))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    found = rank.retrieve(open_snapshot(tmp_path / "c"), asked)
    assert len(found.passages) == 1 and list(found.question.near.values()) == [[word.casefold().replace("ê", "e")]]


def test_a_chinese_question_of_known_and_unknown_words_finds_the_known_ones_and_names_the_others(tmp_path: Path) -> None:
    texts = ("蒙恬率军修筑长城。他怎么做到的，没有人知道，只知道工期很长。", "扁鹊是名医，做法和别人不同。他的学生子阳也很有名。")
    request = IndexRequest(texts=tuple(InlineText(text, f"a{at}") for at, text in enumerate(texts)))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for question, known in (("工期 租赁合同", "工期很长"), ("租赁合同 名医", "扁鹊"), ("红烧肉的做法是什么？", "扁鹊")):
        found = local_search(snapshot, question)
        assert found.state == "context" and known in found.text, found.text
    assert "'红烧肉'" in found.hint
    assert local_search(snapshot, "名医 在哪里").hint == ""
    for nowhere in ("比特币", "租赁合同 价格"):
        assert global_search(snapshot, nowhere).state == "not_found"
    assert global_search(snapshot, "这些文件里有什么？").state == "context"
    partly = local_search(snapshot, "扁鹊会做红烧肉吗？")
    assert partly.state == "context" and "'红烧肉'" in partly.hint and "扁鹊" in partly.text
    for question in ("扁鹊有什么学生？", "哪几种工期很长？"):
        known = local_search(snapshot, question)
        assert (known.state, known.hint) == ("context", "")


@pytest.mark.parametrize(
    "question", ["Tobais Fen", "What did Tobais Fenn say?", "when did tobais fen die?", "Tobias Fen's evidence", "Tobiass Fenn"]
)
def test_a_misspelt_name_of_several_words_is_read_as_the_name_that_get_entity_offers(sample_home: Path, question: str) -> None:
    found = local_search(open_snapshot(sample_home / "corpora" / "sample"), question)
    assert "Looked for instead: 'Tobias Fenn'." in found.hint, found.hint
    assert "Tobias Fenn" in found.text[:4_000] or "TOBIAS FENN" in found.text
