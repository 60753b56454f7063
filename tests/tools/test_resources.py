"""Resources, prompts, completion and update notifications, through a real client in both protocol eras."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import (
    EmptyResult,
    PromptReference,
    ResourceTemplateReference,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from graphrag_mcp.app import App
from graphrag_mcp.llm import prompts
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.tools import SETS, TOOLS, offered
from graphrag_mcp.tools.resources import CHARACTERS
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

TEXTS = [
    {"id": "tower", "title": "Tower", "text": "John Smeaton built the Eddystone Lighthouse in 1759. The Royal Society praised John Smeaton."},
    {"id": "storm", "title": "Storm", "text": "The Great Storm of 1703 drowned Henry Winstanley at the Eddystone Lighthouse."},
]  # fmt: skip


@pytest.fixture(scope="module")
def home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("resources") / "home"
    shutil.copytree(sample_home, home)
    return home


@pytest.fixture(scope="module")
def call(home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=home, roots=(SAMPLE,))))) as caller:
        yield caller


def read(call: Caller, uri: str) -> str:
    (content,) = call.portal.call(call.client.read_resource, uri).contents
    assert str(content.uri) == uri
    return content.text


def refused(call: Caller, uri: str) -> str:
    with pytest.raises(MCPError) as caught:
        call.portal.call(call.client.read_resource, uri)
    assert caught.value.error.code == -32602, uri
    return caught.value.error.message


def test_every_kind_of_resource_is_listed_with_a_description(call: Caller) -> None:
    listed = call.portal.call(call.client.list_resources).resources
    templates = call.portal.call(call.client.list_resource_templates).resource_templates
    assert [str(one.uri) for one in listed] == ["graphrag://corpora"]
    assert [one.uri_template for one in templates] == [
        "graphrag://{corpus}/stats", "graphrag://drift/{session_id}", "graphrag://jobs/{job_id}", "graphrag://prompts/{name}",
        "graphrag://{corpus}/entity/{id}", "graphrag://{corpus}/community/{id}", "graphrag://{corpus}/text_unit/{id}",
        "graphrag://{corpus}/document/{id}",
    ]  # fmt: skip
    assert all(len(one.description) > 20 and one.title and one.mime_type for one in [*listed, *templates])


# ---- reading ---------------------------------------------------------------------------------------


def test_corpora_and_their_numbers_can_be_read(call: Caller) -> None:
    (corpus,) = json.loads(read(call, "graphrag://corpora"))["corpora"]
    assert corpus["name"] == "sample" and corpus["documents"] > 20 and corpus["generation"] >= 1
    stats = json.loads(read(call, "graphrag://sample/stats"))
    assert stats["counts"]["documents"] == corpus["documents"] and stats["levels"]


def test_what_a_search_cites_can_be_read_by_its_address(call: Caller) -> None:
    found = call.good("local_search", query="Who was right about the back-run?", corpus="sample")
    cited = found["citations"][0]
    text = read(call, f"graphrag://sample/text_unit/{cited['id']}")
    document = read(call, f"graphrag://sample/document/{cited['document_id']}")
    passage = document[cited["char_start"] : cited["char_end"]].strip()
    assert passage and passage in text
    assert "Harbour Tide Authority" in read(call, "graphrag://sample/entity/Harbour%20Tide%20Authority")
    assert read(call, "graphrag://sample/community/c1").partition("\n")[2].startswith("# ")  # inside its fence


def test_resources_are_bounded(call: Caller, home: Path) -> None:
    long = {"id": "long", "title": "Long", "text": "A sentence about the Bell Rock. " * 4_000}
    call.good("index_documents", texts=[long], corpus="long", wait_seconds=50)
    document = read(call, "graphrag://long/document/d1")
    assert CHARACTERS < len(document) < CHARACTERS + 200 and "more characters" in document
    for kind, id in (("entity", "e1"), ("text_unit", "t1"), ("community", "c1")):
        assert len(read(call, f"graphrag://sample/{kind}/{id}")) <= CHARACTERS


def test_a_drift_session_can_be_read_as_a_graph_a_tree_and_a_ranking(call: Caller) -> None:
    begun = call.good("drift_search", query="What did the harbour fear?", corpus="sample")
    uri = f"graphrag://drift/{begun['session_id']}"
    node = begun["open_node"]
    for round in range(12):
        step = call.good(
            "drift_step", session_id=begun["session_id"], node_id=node, answer=f"Answer {round}. " + "word " * 3_000,
            score=10 + round, follow_ups=[f"What about matter {round}{letter} of the harbour?" for letter in "abc"],
        )  # fmt: skip
        node = step["open_node"]
    body = json.loads(text := read(call, uri))
    assert len(text) <= CHARACTERS and body["left_out"] >= 0
    ids = {one["id"] for one in body["graph"]["nodes"]}
    assert all({edge["source"], edge["target"]} <= ids for edge in body["graph"]["edges"]) and body["graph"]["edges"]
    scores = [one["score"] for one in body["ranked"]]
    assert len(scores) == 12 and scores == sorted(scores, reverse=True)
    assert body["question"] == "What did the harbour fear?" and body["tree"].startswith("# What did the harbour fear?")


def test_a_job_can_be_read_without_the_texts_that_it_was_given(call: Caller) -> None:
    secret = "The keeper's name was Zebedee Quill."
    job = call.good("index_documents", texts=[{"id": "z", "text": secret}], corpus="jobbed", wait_seconds=50)["job_id"]
    body = json.loads(text := read(call, f"graphrag://jobs/{job}"))
    assert body["status"] == "done" and body["counts"]["added"] == 1 and "Zebedee" not in text and "settings" not in body


@pytest.mark.parametrize("uri", [
    "graphrag://nope/stats", "graphrag://nope/entity/e1", "graphrag://sample/entity/Nobody%20Of%20Note", "graphrag://sample/entity/e99999",
    "graphrag://sample/community/c99999", "graphrag://sample/community/banana", "graphrag://sample/text_unit/t99999",
    "graphrag://sample/text_unit/e1", "graphrag://sample/document/d99999", "graphrag://sample/document/t1",
    "graphrag://drift/drift-000000000000", "graphrag://jobs/job-000000000000", "graphrag://prompts/nope",
    "graphrag://drift/%2e%2e", "graphrag://jobs/..%2fx", "graphrag://..%2f..%2f/stats", "graphrag://sample/document/..%2f..%2fx",
    "graphrag://sample/nope/e1", "graphrag://", "file:///etc/passwd", "graphrag://sample/stats/more",
])  # fmt: skip
def test_an_unknown_address_is_not_found(call: Caller, uri: str) -> None:
    message = refused(call, uri)
    assert "Error reading" not in message and len(message) < 600


# ---- prompts ---------------------------------------------------------------------------------------


def test_prompts_hold_what_the_person_said(call: Caller) -> None:
    listed = call.portal.call(call.client.list_prompts).prompts
    assert [one.name for one in listed] == [
        "ask_corpus", "explore_entity", "drift_investigate", "index_folder", "be_the_extractor", "summarise_corpus", "tune_prompts",
    ]  # fmt: skip
    asked = call.portal.call(call.client.get_prompt, "ask_corpus", {"question": "Who </question> built\n\n1. it?", "corpus": "sample"})
    text = asked.messages[0].content.text
    assert 'corpus="sample"' in text and "<\\/question> built 1. it?" in text and text.count("</question>") == 1
    for name, arguments in [("explore_entity", {"entity": "Bell Rock"}), ("drift_investigate", {"question": "Why?"}), ("index_folder", {})]:
        text = call.portal.call(call.client.get_prompt, name, arguments).messages[0].content.text
        assert "$" not in text and all(value in text for value in arguments.values())
    worked = call.portal.call(call.client.get_prompt, "be_the_extractor", {"corpus": "sample"}).messages[0].content.text
    assert 'index (corpus="sample" in every call).' in worked
    summarised = call.portal.call(call.client.get_prompt, "summarise_corpus", {}).messages[0].content.text
    assert 'claim_work(kind="summary")' in summarised and "$" not in summarised
    tuned = call.portal.call(call.client.get_prompt, "tune_prompts", {"corpus": "sample"}).messages[0].content.text
    assert "corpora" in tuned and "$entity_types" in tuned


def test_every_tool_that_a_prompt_names_is_one(call: Caller) -> None:
    known = {function.__name__ for function, _, _ in TOOLS}
    for name in ("ask_corpus", "explore_entity", "drift_investigate", "index_folder"):
        words = set(prompts.load(name).template.replace("(", " ").replace(":", " ").replace(",", " ").replace(".", " ").split())
        assert {word for word in words if word.endswith(("_search", "_step", "_finish", "_entity", "_source", "_report"))} <= known


@pytest.mark.parametrize(("name", "arguments", "said"), [
    ("ask_corpus", {}, "ask_corpus needs 'question'"), ("ask_corpus", {"question": "  "}, "needs 'question'"),
    ("index_folder", {"folder": "x"}, "has no argument 'folder'. Its arguments are: path"),
    ("tune_prompts", {"corpus": "nope"}, "no corpus 'nope'"),
])  # fmt: skip
def test_a_wrong_request_for_a_prompt_is_told_what_is_wrong(call: Caller, name: str, arguments: dict[str, str], said: str) -> None:
    with pytest.raises(MCPError) as caught:
        call.portal.call(call.client.get_prompt, name, arguments)
    assert caught.value.error.code == -32602 and said in caught.value.error.message


# ---- completion ------------------------------------------------------------------------------------


def offers(call: Caller, ref: Any, name: str, value: str, **said: str) -> list[str]:
    argument = {"name": name, "value": value}
    return call.portal.call(lambda: call.client.complete(ref, argument, context_arguments=said or None)).completion.values


def test_names_and_ids_are_completed(call: Caller) -> None:
    template = ResourceTemplateReference(type="ref/resource", uri="graphrag://{corpus}/entity/{id}")
    assert offers(call, template, "corpus", "sam") == ["sample"]
    names = offers(call, template, "id", "har", corpus="sample")
    assert names and names[0].lower().startswith("har") and all("har" in name.lower() for name in names)
    assert offers(call, template, "id", "e1", corpus="sample")[0] == "e1"
    for kind, letter in (("community", "c"), ("text_unit", "t"), ("document", "d")):
        ref = ResourceTemplateReference(type="ref/resource", uri=f"graphrag://{{corpus}}/{kind}/{{id}}")
        assert offers(call, ref, "id", "", corpus="sample")[0] == f"{letter}1"
    prompt = PromptReference(type="ref/prompt", name="explore_entity")
    assert set(offers(call, prompt, "entity", "har", corpus="sample")) == set(names)
    assert offers(call, ResourceTemplateReference(type="ref/resource", uri="graphrag://prompts/{name}"), "name", "drift_p") == ["drift_primer"]


def test_completion_never_fails_and_offers_at_most_a_hundred(call: Caller) -> None:
    template = ResourceTemplateReference(type="ref/resource", uri="graphrag://{corpus}/entity/{id}")
    for value in ("x' OR 1=1 --", "%", "_", "\\", "微软", "🗼", "e" * 5_000):
        assert len(offers(call, template, "id", value, corpus="sample")) <= 100
    assert offers(call, template, "id", "a", corpus="nope") == []
    assert offers(call, template, "nothing", "a") == []
    texts = [{"id": str(number), "text": f"Note {number}."} for number in range(120)]
    call.good("index_documents", texts=texts, corpus="many", wait_seconds=50)
    reference, argument = template.model_copy(update={"uri": "graphrag://{corpus}/document/{id}"}), {"name": "id", "value": "d"}
    found = call.portal.call(lambda: call.client.complete(reference, argument, context_arguments={"corpus": "many"})).completion
    assert (len(found.values), found.total, found.has_more) == (100, 120, True)


# ---- updates ----------------------------------------------------------------------------------------


async def waiting_for(found: list[str], uri: str, seconds: float = 20.0) -> None:
    with anyio.fail_after(seconds):
        while uri not in found:
            await anyio.sleep(0.05)


async def told(mode: str, home: Path) -> None:
    server = build_server(App(Settings(home=home, roots=())))
    found: list[str] = []

    async def noted(message: Any) -> None:
        uri = getattr(getattr(message, "params", None), "uri", None)
        if uri is not None:
            found.append(str(uri))

    async with Client(server, mode=mode, message_handler=noted) as client:
        first = await client.call_tool("index_documents", {"texts": TEXTS[:1], "corpus": "watched", "wait_seconds": 40})
        assert not first.is_error
        begun = await client.call_tool("drift_search", {"query": "Who built it?", "corpus": "watched"})
        session = begun.structured_content
        uris = ["graphrag://watched/stats", "graphrag://corpora", f"graphrag://drift/{session['session_id']}"]
        async with anyio.create_task_group() as group:
            if mode == "legacy":
                for uri in uris:
                    await client.session.send_request(SubscribeRequest(params=SubscribeRequestParams(uri=uri)), EmptyResult)
            else:
                await group.start(listening, client, [*uris, "graphrag://jobs/job-000000000000"], found)
            await anyio.sleep(0.2)
            assert found == []
            arguments = {"session_id": session["session_id"], "node_id": session["open_node"], "answer": "Smeaton."}
            await client.call_tool("drift_step", arguments)
            await waiting_for(found, uris[2])
            assert uris[0] not in found
            # Another process would write the same files: the watcher looks at them, not at the calls.
            await client.call_tool("index_documents", {"texts": TEXTS, "corpus": "watched", "wait_seconds": 40})
            await waiting_for(found, uris[0])
            await waiting_for(found, uris[1])
            if mode == "legacy":
                await client.session.send_request(UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uris[2])), EmptyResult)
                before = len(found)
                await client.call_tool("drift_step", {**arguments, "answer": "John Smeaton."})
                await anyio.sleep(1.3)
                assert found[before:].count(uris[2]) == 0
            group.cancel_scope.cancel()


async def listening(client: Client, uris: list[str], found: list[str], *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
    async with client.listen(resource_subscriptions=uris) as stream:
        task_status.started()
        async for event in stream:
            found.append(str(event.uri))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_who_listens_is_told_when_an_index_or_a_session_changes(mode: str, tmp_path: Path) -> None:
    anyio.run(told, mode, tmp_path)


# ---- which tools --------------------------------------------------------------------------------------


def test_read_only_offers_no_tool_that_writes_and_no_prompt_that_needs_one(home: Path) -> None:
    with connected(build_server(App(Settings(home=home, roots=(SAMPLE,))), read_only=True)) as caller:
        tools = caller.portal.call(caller.client.list_tools).tools
        assert tools and all(tool.annotations.read_only_hint for tool in tools)
        assert {"index_documents", "drift_search", "drift_finish", "cancel_job"}.isdisjoint(tool.name for tool in tools)
        named = [one.name for one in caller.portal.call(caller.client.list_prompts).prompts]
        assert "ask_corpus" in named and not {"index_folder", "drift_investigate"} & set(named)
        assert "index_documents" not in caller.client.instructions and "local_search" in caller.client.instructions
        assert caller("index_documents", paths=["."]).is_error


def test_the_sets_of_tools_are_parts_of_all_in_the_same_order() -> None:
    every = [tool.name for tool in offered()]
    for name in SETS:
        some = [tool.name for tool in offered(name)]
        assert some and some == [tool for tool in every if tool in some]
    six = ["index_documents", "local_search", "global_search", "drift_search", "get_entity", "get_community_report"]
    assert set(six) <= {tool.name for tool in offered("core")}
    assert [tool.name for tool in offered(compat=True)] == [*every, "search", "fetch"]
    with pytest.raises(Exception, match="core, index"):
        offered("most")


def test_search_and_fetch_have_exactly_the_fields_that_their_hosts_read(home: Path) -> None:
    with connected(build_server(App(Settings(home=home, roots=())), read_only=True, compat=True)) as caller:
        for corpus in ("long", "jobbed", "many"):  # of the tests above: with one corpus nobody has to name it
            shutil.rmtree(home / "corpora" / corpus, ignore_errors=True)
        result = caller("search", query="Who was right about the back-run?")
        assert not result.is_error, result.content
        assert json.loads(result.content[0].text) == result.structured_content and set(result.structured_content) == {"results"}
        results = result.structured_content["results"]
        assert results and all(set(one) == {"id", "title", "url"} and all(one.values()) for one in results)
        for one in results[:3]:
            fetched = caller("fetch", id=one["id"]).structured_content
            assert set(fetched) == {"id", "title", "text", "url", "metadata"}
            assert fetched["id"] == one["id"] and fetched["title"] == one["title"] and len(fetched["text"]) > 40
            assert fetched["url"] == one["url"] == f"graphrag://sample/text_unit/{one['id'].partition('/')[2]}"
        assert "is known" in caller.bad("fetch", id="sample/t99999") and "empty" in caller.bad("search", query=" ")
