"""What results advise is true: missing words are named, one is one, next calls lead to the whole, budgets are honest.

A real index and a real client; the corpora are as small as they can be, so that singulars come up.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.support.client import Caller, connected

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


def test_an_identifier_finds_what_holds_it_and_not_what_holds_some_part_of_it(crew: Caller) -> None:
    for query, held in (("KX-417-B", ["text:b"]), ("KX-991", ["text:c"]), ("KX-99", ["text:c"]), ("KX-1", ["text:b", "text:c"])):
        found = crew.good("search_text", query=query, corpus="crew")
        assert sorted(one["uri"] for one in found["citations"]) == held, query
    marked = crew.good("search_text", query="KX-417-B?", corpus="crew")
    assert [one["uri"] for one in marked["citations"]] == ["text:b"] and "as it is written" not in marked["hint"]
    assert crew.good("search_text", query="e", corpus="crew")["state"] == "not_found", "Pleiße is one word"


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


# ---- what a result owes to its circumstances ----------------------------------------------------


def test_an_argument_under_two_of_its_names_is_refused_where_one_value_would_be_lost(call: Caller) -> None:
    said = call.bad("local_search", corpus="dated", query="Port Kell", filters=["date>=2020"], where=["uri=*a"])
    assert "filters and where are one argument, filters: give it once." in said
    call.good("local_search", corpus="dated", query="Port Kell", q="Port Kell")
    call.good("local_search", corpus="dated", query="Port Kell", filters=["date>=2020"], where=None)
