"""One word in two spellings: traditional and simplified Chinese, letters whole and in pieces; what is shown stays."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest

from graphrag_mcp.names.extract import extract, terms_of
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import SIMPLIFY, composed, normalise_name, terms, with_origins
from graphrag_mcp.types import InlineText
from tests.support.files import snapshot_of

SIMPLIFIED = "陈国华在台湾大学图书馆发现了一份旧账簿。台湾大学位于台北市，馆长吴丽云说账簿写于一九四七年。"
TRADITIONAL = "陳國華在臺灣大學圖書館發現了一份舊賬簿。臺灣大學位於臺北市，館長吳麗雲說賬簿寫於一九四七年。"
OTHER = "渔船在清晨离开港口，灯塔的灯还亮着。\n\n渔民们唱着歌，海鸥跟在船的后面。"


def indexed(home: Path, *texts: str) -> Snapshot:
    given = tuple(InlineText(text, f"note{at}", f"Note {at}") for at, text in enumerate(texts))
    return snapshot_of(home / "c", given)


# ---- Chinese ------------------------------------------------------------------------------------


def test_every_character_is_read_as_one_other_that_stays_as_it_is() -> None:
    assert len(SIMPLIFY) > 2_500
    for code, other in SIMPLIFY.items():
        assert 0x4E00 <= code <= 0x9FFF and len(other) == 1 and 0x3400 <= ord(other) <= 0x9FFF
        assert ord(other) not in SIMPLIFY


@pytest.mark.parametrize(("text", "question"), [(SIMPLIFIED, TRADITIONAL), (TRADITIONAL, SIMPLIFIED)])
def test_names_terms_and_literals_of_one_spelling_find_the_other(tmp_path: Path, text: str, question: str) -> None:
    snapshot = indexed(tmp_path, text, OTHER)
    person, place = question[:3], "臺北市" if question is TRADITIONAL else "台北市"
    found = local_search(snapshot, f"{person}在{question[4:11]}發現了什麼？")
    assert found.state == "context" and found.citations[0].title == "Note 0" and text in found.text
    assert "Nowhere" not in found.hint
    for name in (person, place):
        entity = get_entity(snapshot, name)
        assert entity.state == "context" and name.translate(SIMPLIFY) in entity.text.translate(SIMPLIFY), name
    literal = search_text(snapshot, f"「{question[4:11]}」")
    assert literal.state == "context" and literal.citations[0].title == "Note 0"
    assert search_text(snapshot, "「臺灣中學」").state == "not_found"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """More passages made of some words than words propose, and one long passage in which these stand before a sign."""
    common = [f"東京東京東京 서울 서울 서울 office office office cafés cafés 番号{at}" for at in range(260)]
    rare = "行き先は東\n京。" + unicodedata.normalize("NFD", "서울! cafés!") + " ｏﬃce! cafés…… OFFİCE?"
    tale = "猫と犬と鳥が海の近くで静かに暮らしていて、長い話が続く。" * 8
    return indexed(tmp_path_factory.mktemp("crowded"), *common, tale + rare + tale)


@pytest.mark.parametrize(
    "literal", ["東京。", "东京。", "서울!", unicodedata.normalize("NFD", "서울!"), "OFFICE!", "Cafés!", "cafés......", "OFFİCE?"]
)
def test_a_literal_that_its_words_do_not_find_is_found_in_the_spelling_of_the_text(
    crowded: Snapshot, literal: str
) -> None:
    found = search_text(crowded, f'"{literal}"')
    assert found.state == "context" and [one.title for one in found.citations] == ["Note 260"]


def test_both_spellings_are_one_entity_that_is_called_as_it_is_written_most(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path, SIMPLIFIED, TRADITIONAL, "臺北市的圖書館。臺北市的鐵道。")
    named = [row for row in snapshot.rows("entities").to_pylist() if row["title"] in ("台北市", "臺北市")]
    assert [row["title"] for row in named] == ["臺北市"] and named[0]["frequency"] == 3
    assert TRADITIONAL in snapshot.rows("passages", columns=["text"])["text"].to_pylist()


def test_terms_and_keys_are_folded_and_keys_are_their_own_keys() -> None:
    assert terms(TRADITIONAL) == terms(SIMPLIFIED) and terms_of("誰發現了舊賬簿？") == terms_of("谁发现了旧账簿？")
    for name in ("臺灣大學", "馬英九", "後藤健", "乾隆", "著作"):
        key = normalise_name(name)
        assert key == normalise_name(name.translate(SIMPLIFY)) == normalise_name(key)


# ---- letters in pieces ----------------------------------------------------------------------------

KOREAN = "김민수는 서울특별시에서 태어났다. 서울특별시는 한강을 끼고 있다. 김민수는 부산대학교에서 공부했다."
GERMAN = "Jürgen Müller zog nach Düsseldorf. In Düsseldorf traf Jürgen Müller die Künstlerin Zoë Kühn."
JAPANESE = "ガリレオ・ガリレイはピサで生まれた。高橋さんはピザが好きだ。"


@pytest.mark.parametrize("text", [KOREAN, GERMAN, JAPANESE, f"{GERMAN} {KOREAN} Ωmega \u2126 \u212b q\u0307\u0323"])
def test_names_of_decomposed_text_are_those_of_the_composed_one_at_their_places_in_it(text: str) -> None:
    pieces = unicodedata.normalize("NFD", text)
    assert pieces != composed(pieces) == unicodedata.normalize("NFC", text)
    found, wanted = extract(pieces), extract(composed(text))
    assert [(one.key, one.type, one.strong, composed(one.form)) for one in found] == [
        (one.key, one.type, one.strong, one.form) for one in wanted
    ]
    assert wanted and all(pieces[one.start : one.end] == one.form for one in found)
    assert terms(pieces) == terms(composed(text))


def test_whatever_is_composed_leads_back_to_where_it_began() -> None:
    chance = random.Random(5)
    marks = [chr(code) for code in range(0x300, 0x1200) if unicodedata.combining(chr(code)) or code >= 0x1100]
    others = [chr(code) for code in (*range(0x20, 0x600), *range(0xAC00, 0xAD00), *range(0xF900, 0xFB50), 0x2126, 0x0958)]
    for _ in range(3_000):
        text = "".join(chance.choice(marks if chance.random() < 0.5 else others) for _ in range(chance.randrange(1, 9)))
        text = unicodedata.normalize("NFD", text) if chance.random() < 0.5 else text
        whole, at = with_origins(text)
        assert whole == unicodedata.normalize("NFC", text)
        assert len(at) == len(whole) + 1 and at == sorted(at) and at[-1] == len(text)
