"""Words of one character in questions without blanks: they are looked for by themselves, and said truly."""

from __future__ import annotations

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

TEXTS = {
    "zh": ["猫和狗一起住在院子里。猫喜欢鱼，狗喜欢骨头。", "茶叶产自福建，茶要用热水泡。", "图书馆在三楼，周一休息。"],
    "ja": ["庭で猫が眠り、犬が吠えた。", "彼女の弟を駅で見かけた。", "図書館は三階にあり、月曜に休む。"],
    "ko": ["항구의 배가 매일 아침 바다로 나간다. 배의 이름은 백조호. 신호가 왔다.", "차가 보성에서 왔다.", "도서관은 삼 층에 있고 월요일에 쉰다."],
}  # fmt: skip


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    root = tmp_path_factory.mktemp("lone")
    for name, texts in TEXTS.items():
        inline = tuple(InlineText(text, str(place)) for place, text in enumerate(texts))
        index_documents(root / name, IndexRequest(texts=inline), Settings())
    return {name: open_snapshot(root / name) for name in TEXTS}


@pytest.mark.parametrize(("language", "question", "uri"), [
    ("zh", "狗吃什么？", "text:0"), ("zh", "茶从哪里来？", "text:1"), ("zh", "猫和红烧肉？", "text:0"),
    ("ja", "犬は何をした？", "text:0"), ("ja", "弟に会ったのは誰？", "text:1"), ("ja", "その弟は？", "text:1"),
    ("ko", "배는 어디로?", "text:0"), ("ko", "차는 어디서 왔나?", "text:1"),
])  # fmt: skip
def test_a_word_of_one_character_is_found_whatever_stands_beside_it(
    corpora: dict[str, Snapshot], language: str, question: str, uri: str
) -> None:
    found = local_search(corpora[language], question)
    assert found.state == "context" and found.citations[0].uri == uri
    if language != "ko":  # full text is for words as they are written
        assert search_text(corpora[language], question).citations[0].uri == uri
