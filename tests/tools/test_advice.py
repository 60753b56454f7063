"""What results advise is true: missing words are named, one is one, next calls lead to the whole, budgets are honest.

A real index and a real client; the corpora are as small as they can be, so that singulars come up.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.source import get_source
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.tools.contract import reply
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

LONG = " ".join(
    f"Entry {number} says that Ada Keene sailed to Port Kell with {number * 7} feet of chain." for number in range(900)
)


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """A server with a corpus of one document, one of a long one, and one of dated and undated texts."""
    root = tmp_path_factory.mktemp("advice")
    settings = Settings(home=root / "home", roots=(root,))
    with connected(build_server(App(settings))) as caller:
        for corpus, texts in {
            "one": [{"id": "a", "text": "Ada Keene joined the Tidal Power Board."}],
            "long": [{"id": "a", "text": LONG}],
            "dated": [{"id": "a", "text": "Ada Keene came to Port Kell.", "metadata": {"date": "2020-05-01"}},
                      {"id": "b", "text": "Ada Keene left Port Kell."}],
        }.items():  # fmt: skip
            done = caller.good("index_documents", texts=texts, corpus=corpus, wait_seconds=50)
            assert done["status"] == "done", done
        yield caller


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=tmp_path_factory.mktemp("crew"))))) as caller:
        texts = [{"id": "a", "text": "Ada Keene sailed with Bram Olde after Cora Vane had left Dirk Moss behind."},
                 {"id": "b", "text": "Order KX-417-B went to the yard."},
                 {"id": "c", "text": "Order KX-991 is late, said team B at the Pleiße."}]  # fmt: skip
        caller.good("index_documents", texts=texts, corpus="crew", wait_seconds=50)
        yield caller


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return App(Settings(home=sample_home)).snapshot("sample")


# ---- words that stand nowhere -------------------------------------------------------------------


@pytest.mark.parametrize("query, lost", [
    ("zebra", "'zebra'"), ("giraffe Keene", "'giraffe'"), ('"purple tide" Keene', "'purple tide'"),
    ('Keene "Tidal Power" quux', "'quux'"), ('"Ada Keene" "zebra crossing"', "'zebra crossing'"), ("熊猫 Keene", "'熊猫'"),
])  # fmt: skip
def test_words_and_phrases_that_stand_nowhere_are_named(call: Caller, query: str, lost: str) -> None:
    hint = call.good("search_text", query=query, corpus="one")["hint"]
    assert f"Nowhere in this corpus: {lost}." in hint and hint.count("'") == 2


def test_what_is_ignored_with_several_queries_is_said(call: Caller) -> None:
    asked = {"queries": ["Ada Keene", "the Board"], "corpus": "one"}
    assert "with queries it was ignored" in call.good("local_search", **asked, answer=True)["hint"]
    assert "ignored" not in call.good("local_search", **asked)["hint"]


def test_nothing_is_called_missing_that_is_there(call: Caller) -> None:
    for query in ("Ada Keene", '"Tidal Power Board"', "the Board of Ada"):
        assert "Nowhere" not in call.good("search_text", query=query, corpus="one")["hint"]
    apart = call.good("search_text", query='"Entry 3 says" "Entry 800 says"', corpus="long")
    assert apart["citations"] and "No passage holds all of these" in apart["hint"]
    hidden = call.good("search_text", query="Keene", corpus="dated", filters=["date<=1900"])
    assert "Without the filters there is something." in hidden["text"]


def test_an_identifier_of_which_only_parts_were_found_is_said_to_be_missing(call: Caller) -> None:
    parts = call.good("search_text", query="Entry_900_Kell", corpus="long")["hint"]
    assert "None holds 'Entry_900_Kell' as it is written" in parts
    assert "as it is written" not in call.good("search_text", query="Keene", corpus="one")["hint"]


def test_an_identifier_finds_what_holds_it_and_not_what_holds_some_part_of_it(crew: Caller) -> None:
    for query, held in (("KX-417-B", ["text:b"]), ("KX-991", ["text:c"]), ("KX-99", ["text:c"]), ("KX-1", ["text:b", "text:c"])):
        found = crew.good("search_text", query=query, corpus="crew")
        assert sorted(one["uri"] for one in found["citations"]) == held, query
    marked = crew.good("search_text", query="KX-417-B?", corpus="crew")
    assert [one["uri"] for one in marked["citations"]] == ["text:b"] and "as it is written" not in marked["hint"]
    assert crew.good("search_text", query="e", corpus="crew")["state"] == "not_found", "Pleiße is one word"


def test_over_several_corpora_only_what_none_has_is_missing(call: Caller) -> None:
    hint = call.good("search_text", query="zebra Tidal chain", corpus="one,long")["hint"]
    assert "Nowhere in these corpora: 'zebra'." in hint


# ---- errors -------------------------------------------------------------------------------------


def test_an_id_with_its_corpus_is_walked_there_and_advice_keeps_the_corpus(call: Caller) -> None:
    there = call.good("explore_graph", start="long/e1", corpus="one")
    assert there["corpus"] == "long" and there["start"] == "e1"
    for hint in (call.good("explore_graph", start="e1", corpus="one")["hint"], there["hint"]):
        assert hint.count("get_entity(") == hint.count('", corpus="'), hint


@pytest.mark.parametrize("op, ids, said", [
    ("merge", [], "none is named"), ("merge", ["e1"], "only 'e1' is named"), ("merge", ["e1", "E1"], "only 'e1' is named"),
    ("reject", ["e1"], "only 'e1' is named"), ("undo", [], "no edit is named"),
])  # fmt: skip
def test_an_edit_of_too_few_says_how_many_it_takes(call: Caller, op: str, ids: list[str], said: str) -> None:
    text = call.bad("edit_graph", op=op, ids=ids, corpus="one")
    assert said in text and ('ids=["e7", "e12"]' in text or 'op="log"' in text)


# ---- reading on ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tool, given", [
    ("get_source", {"ids": ["d1"], "max_tokens": 600}), ("get_source", {"ids": ["t1"], "max_tokens": 300}),
])  # fmt: skip
def test_who_follows_next_call_alone_reads_all_of_it(call: Caller, tool: str, given: dict[str, Any]) -> None:
    """From a budget that is far too small; a passage that was cut comes whole, and none is left out."""
    result = call.good(tool, corpus="long", **given)
    assert result["truncated"] and result["next_call"]
    wanted = {"d1": LONG}.get(given.get("ids", [""])[0]) or whole(call, result)
    read = ""
    for _ in range(40):
        read += result["text"]
        if not result.get("next_call"):
            break
        assert 'corpus="long"' in result["next_call"]
        name, arguments = parsed(result["next_call"])
        result = call.good(name, **arguments)
    assert not result.get("next_call")
    missing = [one for one in re.findall(r"Entry \d+ says[^.]*\.", wanted) if one not in " ".join(read.split())]
    assert missing == [] and wanted


@pytest.mark.parametrize("tool, given", [
    ("get_community_report", {"community_id": "c1"}), ("explore_graph", {"start": "Ada Keene", "max_nodes": 12}),
    ("explore_graph", {"start": "Ada Keene", "goal": "Port Kell"}),
])  # fmt: skip
def test_what_has_no_pages_says_with_which_budget_the_rest_comes(
    call: Caller, tool: str, given: dict[str, Any]
) -> None:
    result = call.good(tool, corpus="long", max_tokens=500, **given)
    budget = 500
    while result["truncated"]:
        name, arguments = parsed(result["next_call"])
        assert name == tool and arguments["max_tokens"] > budget and arguments["corpus"] == "long"
        budget = arguments["max_tokens"]
        result = call.good(name, **arguments)
    assert budget < 20_000 and "max_tokens" not in result["next_call"]


@pytest.mark.parametrize("tool, given", [
    ("get_community_report", {"community_id": "c1"}), ("explore_graph", {"start": "Ada Keene", "hops": 2}),
    ("explore_graph", {"start": "Ada Keene"}), ("get_entity", {"id_or_name": "Ada Keene"}),
])  # fmt: skip
def test_the_next_call_has_only_arguments_that_the_list_of_tools_names(
    call: Caller, tool: str, given: dict[str, Any]
) -> None:
    from graphrag_mcp.tools import offered

    listed = {one.name: set(one.parameters["properties"]) for one in offered()}
    result = call.good(tool, corpus="long", **given)
    name, arguments = parsed(result["next_call"] or "get_source(ids=[])")
    assert set(arguments) <= listed[name]


def whole(call: Caller, result: dict[str, Any]) -> str:
    """The text unit, or the passage, that stands first in a result."""
    first = (result.get("sources") or result["citations"])[0]["id"]
    id = first.partition(".")[0] if "sources" in result else first
    return call.good("get_source", ids=[id], corpus="long", max_tokens=8000)["text"]


def parsed(said: str) -> tuple[str, dict[str, Any]]:
    name, _, rest = said.partition("(")
    node = ast.parse(f"f({rest}").body[0].value  # type: ignore[attr-defined]
    return name, {one.arg: ast.literal_eval(one.value) for one in node.keywords}


def test_a_passage_of_three_thousand_tokens_is_reached_from_a_budget_of_six_hundred(tmp_path: Path) -> None:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.store.tables import open_snapshot
    from graphrag_mcp.types import IndexRequest, InlineText

    text = LONG[:10_000]
    settings = Settings(home=tmp_path, chunk_size=8_000, passage_size=6_000)
    index_documents(tmp_path / "corpora" / "x", IndexRequest(texts=(InlineText(text, "a"),)), settings)
    snapshot = open_snapshot(tmp_path / "corpora" / "x")
    assert snapshot.count("passages") == 1 and count_tokens(text) > 2_500
    found = local_search(snapshot, "Entry 3", max_tokens=600)
    assert found.citations[0].id == "t1" and "…" in found.text
    cut = get_source(snapshot, ["t1"], max_tokens=600)
    name, arguments = parsed(cut.next_call)
    assert name == "get_source" and text.strip()[-60:] not in cut.text
    assert text.strip() in get_source(snapshot, **arguments).text


# ---- what a result owes to its circumstances ----------------------------------------------------


def test_a_level_that_does_not_exist_is_said_with_the_one_that_was_used(call: Caller) -> None:
    said = call.good("global_search", query="Ada Keene", level=7, corpus="one")["hint"]
    assert "There is no level 7; the deepest, 0, was used." in said
    several = call.good("global_search", query="Ada Keene", level=7, corpus="one,dated")["hint"]
    assert "In one: there is no level 7; the deepest, 0, was used." in several
    assert "level" not in call.good("global_search", query="Ada Keene", level=0, corpus="one")["hint"]


def test_documents_without_a_date_are_counted_where_dates_are_filtered(tmp_path: Path) -> None:
    texts = (InlineText("Ada Keene came to Port Kell.", "a", metadata={"date": "2020-05-01"}), InlineText("Ada Keene left Port Kell.", "b"))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    dated = open_snapshot(tmp_path / "c")
    for search in (local_search, global_search, search_text):
        found = search(dated, "Ada Keene", filters=["date>=2020"])
        assert found.hint == "1 of 2 documents state no date and pass no date filter."
        assert {one.uri for one in found.citations} == {"text:a"}
        assert "of 2 documents" not in search(dated, "Ada Keene", filters=["uri!=x"]).hint


def test_the_budget_holds_for_the_text_that_is_sent(snapshot: Snapshot) -> None:
    for search in (local_search, global_search):
        for budget in (600, 1_500, 3_000):
            sent = reply(search(snapshot, "Why was the array moved out of the Narrows?", max_tokens=budget), budget)
            text = sent.content[0].text  # type: ignore[union-attr]
            assert sent.structured_content is None and 100 < count_tokens(text) <= budget, (search, budget)
    assert SAMPLE.is_dir()


def test_an_argument_under_two_of_its_names_is_refused_where_one_value_would_be_lost(call: Caller) -> None:
    said = call.bad("local_search", corpus="dated", query="Port Kell", filters=["date>=2020"], where=["uri=*a"])
    assert "filters and where are one argument, filters: give it once." in said
    call.good("local_search", corpus="dated", query="Port Kell", q="Port Kell")
    call.good("local_search", corpus="dated", query="Port Kell", filters=["date>=2020"], where=None)
