"""One question to several corpora: one ranking, ids that lead back, pages without repeats."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.cli.main import main
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


def test_a_next_call_stays_in_the_corpus_that_was_named_whatever_the_ids_look_like(call: Caller) -> None:
    """A uri may hold a "/", as an id of another corpus does."""
    documents = ["d1", "d2", "d3"]
    whole = call.good("get_source", ids=documents, corpus="sample", max_tokens=20_000)["sources"]
    for ids in ([*(one["uri"] for one in whole), "x/none.md"], documents):
        cut = call.good("get_source", ids=ids, corpus="sample", max_tokens=400)
        assert cut["next_call"].endswith(', corpus="sample")'), (ids, cut["next_call"])


def test_a_hint_stays_in_the_corpus_that_was_named(call: Caller) -> None:
    """Without it `e1` would be looked up in another corpus, and be found there."""
    whole = call.good("get_entity", name="e1", corpus="sample", max_tokens=500)
    assert whole["hint"].endswith('says of it: list_documents(query="e1", corpus="sample").')
    marked = call.good("get_entity", name="sample/e1", corpus="notes", max_tokens=700)
    assert 'list_documents(query="e1", corpus="sample")' in marked["hint"] and whole["title"] == marked["title"]
    reports = [call.good("get_community_report", id=f"c{n}", corpus="sample", max_tokens=440) for n in range(1, 6)]
    called = [report["next_call"] for report in reports if report["next_call"]]
    assert called and all(one.endswith(', corpus="sample")') for one in called)
    walk = call.good("explore_graph", start="e1", corpus="sample", max_tokens=400)
    assert walk["next_call"].endswith(', corpus="sample")')


# ---- one corpus of several is kept --------------------------------------------------------------


@pytest.mark.parametrize("id", ["nope/t4", "nope/T4", "notes/t33.md", "a/b/t4"])
def test_an_id_of_no_known_corpus_is_not_read_as_one_of_this(call: Caller, id: str) -> None:
    assert "none of these ids is known" in call.bad("get_source", ids=[id], corpus="sample")


def ran(capsys: pytest.CaptureFixture[str], home: Path, line: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command as it is typed."""
    capsys.readouterr()
    status = main([*shlex.split(line), "--home", str(home)])
    return status, *capsys.readouterr()


def test_an_id_that_names_its_corpus_is_read_there_on_the_command_line(
    call: Caller, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = itemgetter("uri", "char_start", "char_end")
    wanted = call.good("get_source", ids=["t4"], corpus="sample")["sources"]
    for line in ("source sample/t4 --corpus notes", "source sample/t4", "source sample/T4 --corpus notes,zh"):
        status, out, _ = ran(capsys, home, f"{line} --json")
        found = json.loads(out)["sources"]
        assert status == 0 and [place(one) for one in found] == [place(one) for one in wanted], line
        assert found[0]["id"].startswith("sample/t4")
    title = call.good("get_entity", name="e1", corpus="sample")["title"]
    assert json.loads(ran(capsys, home, "entity sample/e1 --corpus notes --json")[1])["title"] == title
    assert json.loads(ran(capsys, home, "explore sample/e1 --corpus notes --json")[1])["corpus"] == "sample"
    report = call.good("get_community_report", id="c1", corpus="sample")["title"]
    assert json.loads(ran(capsys, home, "report sample/c1 --corpus notes --json")[1])["title"] == report
    assert "none of these ids is known" in ran(capsys, home, "source nope/t4 --corpus notes")[2]
