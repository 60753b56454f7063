"""Requests that hold too much are refused before anything else is done with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import PromptReference

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import stored
from graphrag_mcp.tools.limits import too_many_values
from tests.support.client import Caller, connected


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    home = tmp_path_factory.mktemp("home")
    with connected(build_server(App(Settings(home=home), "notes"), compat=True)) as caller:
        text = "Ada Lovelace met Charles Babbage in London. \x1b[31mShe wrote\x1b[0m about the \u202eengine."
        caller.good("index_documents", texts=[{"id": "a", "text": text}], wait_seconds=50)
        yield caller


TOO_MUCH: dict[str, tuple[str, dict[str, Any], str]] = {
    "arguments": ("get_entity", {"id_or_name": "Ada"} | {f"arg{at}": 1 for at in range(40_000)}, "40,001 arguments"),
    "name": ("get_entity", {"id_or_name": "Ada", "x" * 50_000: 1}, "name of an argument has 50,000 characters"),
    "objects": ("get_source", {"ids": [{}] * 300_000}, "'ids' has 300,000 items"),
    "nested": ("get_source", {"ids": [[["a"] * 400] * 3]}, "at most 1,000 are read"),
    "json": ("get_source", {"ids": "[" + "1," * 5_000 + "1]"}, "'ids' has 5,001 items"),
    "name of an entity": ("get_entity", {"id_or_name": "ab cd " * 700_000}, "at most 20,000 are read"),
    "queries": ("local_search", {"queries": ["long words " * 1_000] * 90}, "over 200,000 characters"),
    "part of a list": ("list_documents", {"filters": [{"role": "user", "content": "y" * 30_000}]}, "30,000"),
    "fields": ("edit_graph", {"op": "create", "ids": ["Zed"], "fields": {"description": "z" * 10**6}}, "1,000,000"),
    "texts": ("index_documents", {"texts": ["x"] * 20_000}, "'texts' has 20,000 items, and at most 10,000"),
    "pair": ("fetch", {"id": "q" * 10**6}, "1,000,000"),
    "quotes": ("search_text", {"query": " ".join(f'"w{at}"' for at in range(500))}, "500 quoted strings"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_call_that_holds_too_much_is_refused_with_the_limit(call: Caller, name: str) -> None:
    tool, arguments, words = TOO_MUCH[name]
    assert words in call.bad(tool, **arguments)


def test_a_question_of_megabytes_is_cut_and_answered(call: Caller) -> None:
    found = call.good("local_search", question="Ada Lovelace and Babbage " * 160_000)
    assert "Charles Babbage" in found["text"] and "of 4,000,000 characters was cut to 19,999" in found["hint"]


def test_a_tool_that_is_not_there_is_named_short_and_visible(call: Caller) -> None:
    async def ask(name: str) -> str:
        with pytest.raises(MCPError) as error:
            await call.client.call_tool(name, {})
        return str(error.value)

    for name in ("x" * 10**6, "no\x1b[31m\u202etool"):
        told = call.portal.call(ask, name)
        assert "there is no tool" in told and len(told) < 120 and told.isprintable()


def test_values_of_a_request_are_counted_outside_of_its_strings() -> None:
    plain = {"texts": ['a, "b" [c]\\', "{,,,"], "more": {"x": 1, "y": []}}
    assert stored.values_in(json.dumps(plain).encode(), 100) == 7
    for unit in (b"[],", b'"",', b"0,", b'"a":1,', b'{"a":[]},'):
        assert "over 200,000 values" in too_many_values(b'{"ids":[' + unit * 500_000 + b"0]}")
    quoted = r'{"query": "\"", "ids": [' + "[]," * 500_000 + "0]}"
    for encoding in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):  # all that `json.loads` reads
        assert "over 200,000 values" in too_many_values(quoted.encode(encoding))
    assert not too_many_values(json.dumps({"text": '[],"' * 10**6}).encode())


def test_texts_to_be_indexed_and_what_agents_hand_in_may_be_long(call: Caller) -> None:
    texts = [{"id": f"t{at}", "text": "A sentence about the harbour. " * 800} for at in range(12)]
    assert call.good("index_documents", texts=texts, corpus="long", wait_seconds=50)["counts"]["added"] == 12
    result = {"work_id": "w1a2b3c4d5e6", "text": "A long report. " * 2_000}
    assert "rejected 1" in call.good("submit_work", results=[result], corpus="long")["text"]


def test_more_ids_than_are_looked_up_are_counted(call: Caller) -> None:
    ids = ["d1", *(f"name {at}" for at in range(400))]
    found = call.good("get_source", ids=ids)
    assert "401 ids were given; the first 100 were looked up." in found["hint"]
    found = call.good("edit_graph", op="proposals", ids=ids)
    assert "401 ids were given; the first 100 were looked up." in found["text"]


def test_other_requests_have_the_same_limits(call: Caller) -> None:
    long = "x" * 10**6

    async def ask(request: Any) -> None:
        with pytest.raises(MCPError, match="at most 20,000 are read"):
            await request()

    client = call.client
    call.portal.call(ask, lambda: client.read_resource(f"graphrag://{long}/stats"))
    call.portal.call(ask, lambda: client.get_prompt("ask_corpus", {"question": long}))
    reference = PromptReference(type="ref/prompt", name="ask_corpus")
    call.portal.call(ask, lambda: client.complete(reference, {"name": "corpus", "value": long}))


def test_every_text_that_is_stored_has_a_limit(call: Caller) -> None:
    long = "z" * 15_000
    assert "may have up to 300" in call.bad("edit_graph", op="create", ids=[long], dry_run=False)
    assert "may have up to 300" in call.bad("edit_graph", op="rename", ids=["Ada Lovelace"], fields={"title": long}, dry_run=False)
    assert "may have up to 80" in call.bad("edit_graph", op="update", ids=["Ada Lovelace"], fields={"type": long}, dry_run=False)
    assert call.good("edit_graph", op="update", ids=["Ada Lovelace"], fields={"description": long}, dry_run=False)["undo_id"]
    for wrong, words in (
        ({"id": "x" * 301}, "id has 301 characters"),
        ({"title": "x" * 2_000}, "title has 2,000 characters"),
        ({"metadata": {"a": "x" * 30_000}}, "metadata has a text of 30,000 characters"),
        ({"metadata": {str(at): at for at in range(2_000)}}, "metadata has 2,000 items"),
    ):
        assert words in call.bad("index_documents", texts=[{"text": "A sentence.", **wrong}], wait_seconds=50)
