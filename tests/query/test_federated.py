"""One question to several corpora: one ranking, ids that lead back, pages without repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import Request, search
from graphrag_mcp.query.text_search import search as exact_search
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.query.test_filters import three_corpora
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, sample_home: Path) -> Path:
    return three_corpora(tmp_path_factory.mktemp("home"), sample_home)


@pytest.fixture(scope="module")
def call(home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=home, roots=(SAMPLE,))))) as caller:
        yield caller


def test_several_corpora_are_one_ranking_with_ids_that_lead_back(call: Caller) -> None:
    found = call.good("local_search", query="Marta Olsen 茶馆 Tobias Fenn", corpus="notes, zh,sample", max_tokens=2_000)
    assert found["corpus"] == "notes,zh,sample" and {one["id"].split("/")[0] for one in found["citations"]} == {"notes", "zh", "sample"}
    scores = [one["score"] for one in found["citations"]]
    assert scores == sorted(scores, reverse=True)
    for cited in found["citations"][:4]:
        assert f"[{cited['id']}]" in found["text"]
        source = call.good("get_source", ids=[cited["id"]])["sources"][0]
        assert (source["id"], source["uri"], source["char_start"]) == (cited["id"], cited["uri"], cited["char_start"])
        assert call.good("get_source", ids=[cited["document_id"]])["sources"][0]["uri"] == cited["uri"]
    overview = call.good("local_search", query="", corpus="notes,zh,sample")["text"]
    for name in ("notes", "zh", "sample"):
        topic = re.search(rf"\[({name}/c\d+)\]", overview)
        assert topic and call.good("get_community_report", id=topic[1])["id"] == topic[1]


def test_every_corpus_is_meant_by_a_star(call: Caller) -> None:
    for tool in ("local_search", "search_text"):
        found = call.good(tool, query="museum 茶馆 lighthouse", corpus="*")
        assert {one["id"].split("/")[0] for one in found["citations"]} == {"notes", "sample", "zh"}
    points = call.good("global_search", query="", corpus="*")
    report = call.good("get_community_report", id=points["communities"][0])
    assert report["id"] == points["communities"][0] and report["text"].count(report["id"]) >= 1
    overview = call.good("local_search", query="", corpus="*")
    assert "in corpus notes" in overview["text"] and "sample/c" in overview["text"]


def test_pages_of_several_corpora_show_every_item_once(home: Path) -> None:
    parts = [(name, open_snapshot(home / "corpora" / name)) for name in ("notes", "sample", "zh")]
    shown, cursor = [], ""
    for _ in range(60):
        page = search(parts, Request("harbour lighthouse 茶馆", max_tokens=1500, cursor=cursor))
        assert page.tokens <= 1500
        shown += [one.id for one in page.citations]
        cursor = page.next_cursor
        if not cursor:
            break
    assert not cursor and len(shown) == len(set(shown)) > 10
    whole = search(parts, Request("harbour lighthouse 茶馆", max_tokens=20_000))
    assert {one.id for one in whole.citations} <= set(shown)


def test_an_entity_is_looked_for_in_all_of_them(call: Caller) -> None:
    assert call.good("get_entity", name="Marta Olsen", corpus="sample,notes")["id"].startswith("notes/e")
    near = call.good("get_entity", name="Marta Olson", corpus="sample,notes")["candidates"]
    assert "Marta Olsen" in [one["title"] for one in near if one["id"].startswith("notes/e")]
    assert "Say which" in call.bad("get_community_report", id="c1", corpus="sample,notes")
    assert "no corpus 'nope'" in call.bad("local_search", query="x", corpus="notes,nope")


def test_a_filter_that_only_one_corpus_knows_leaves_the_others_out(call: Caller) -> None:
    found = call.good("local_search", query="harbour", corpus="*", filters=["author=Ben"])
    assert [one["uri"] for one in found["citations"]] == ["text:painting"]
    assert "Known are" in call.good("local_search", query="harbour", corpus="*", filters=["nothing=1"])["hint"]
    answered = call.good("local_search", query="harbour", corpus="*", filters=["author=Ben"], answer=True)
    assert "An answer is made of one corpus" in answered["hint"]


def test_exact_hits_of_several_corpora_take_turns(tmp_path: Path) -> None:
    parts = []
    for name in ("ca", "cb"):
        texts = tuple(InlineText(f"Keeper {n} of {name} lit the lamp in the tower.", f"{name}{n}") for n in range(8))
        index_documents(tmp_path / name, IndexRequest(texts=texts), Settings(home=tmp_path))
        parts.append((name, open_snapshot(tmp_path / name)))
    found = exact_search(parts, Request('"lamp"', max_tokens=300))
    assert [one.id.partition("/")[0] for one in found.citations][:4] == ["ca", "cb", "ca", "cb"]


# ---- one corpus of several is kept --------------------------------------------------------------


@pytest.mark.parametrize("id", ["nope/t4", "nope/T4", "notes/t33.md", "a/b/t4"])
def test_an_id_of_no_known_corpus_is_not_read_as_one_of_this(call: Caller, id: str) -> None:
    assert "none of these ids is known" in call.bad("get_source", ids=[id], corpus="sample")
