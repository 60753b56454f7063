"""The server as a host meets it: a real client over stdio, good and bad arguments, one process for most tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App, corpus_name
from graphrag_mcp.index.pipeline import index_documents as indexed
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.tools import all_tools, offered
from graphrag_mcp.tools.contract import accepted
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import Caller, connected
from tests.support.command import clean_environment

NAMES = [
    "index_documents", "local_search", "global_search", "drift_search", "get_entity", "get_community_report", "drift_step",
    "drift_finish", "search_text", "list_documents", "get_source", "explore_graph", "graph_status", "cancel_job",
    "remove_documents", "edit_graph", "claim_work", "submit_work",
]  # fmt: skip
DOCUMENTS = {
    "lighthouse.md": "# The Eddystone Lighthouse\n\nJohn Smeaton built the Eddystone Lighthouse in 1759 from dovetailed granite. "
    "The Royal Society had recommended John Smeaton. Henry Winstanley built the first tower, which the Great Storm destroyed.\n",
    "smeaton.md": "# John Smeaton\n\nJohn Smeaton was a civil engineer from Leeds. He gave the Royal Society papers on water wheels. "
    "The Eddystone Lighthouse made John Smeaton famous, and Leeds remembers him.\n",
    "storm.md": "# The Great Storm\n\nThe Great Storm of 1703 drowned Henry Winstanley at the Eddystone Lighthouse. "
    "Daniel Defoe described the Great Storm.\n",
    "research.md": "# 微软研究院\n\n微软研究院在北京成立。北京的微软研究院研究人工智能。清华大学与微软研究院合作研究人工智能。\n",
    "empty.txt": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work") / "project"
    root.mkdir()
    for name, text in DOCUMENTS.items():
        (root / name).write_text(text, "utf-8")
    (root / "invalid.txt").write_bytes(b"The keeper wrote \xff\xfe\xfa in the Eddystone Lighthouse log.\n")
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8)
    if sys.platform == "linux":  # a file name that is not UTF-8
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("# Kaffee\n\nDaniel Defoe drank coffee.\n", "utf-8")
    outside = root.parent / "secret"
    outside.mkdir()
    (outside / "key.txt").write_text("the password is swordfish", "utf-8")
    return root


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def extra(project: Path) -> Path:
    """A second root, for what must not be in the project's corpus."""
    folder = project.parent / "extra"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def call(home: Path, project: Path, extra: Path) -> Iterator[Caller]:
    target = build_server(App(Settings(home=home, roots=(project, extra))))  # over stdio: tests/server/test_hosts.py
    with connected(target) as caller:
        first = caller.good("graph_status")
        assert first["next_call"] == 'index_documents(paths=["."])' and first["text"].startswith("Nothing is indexed")
        result = caller.good("index_documents", paths=["."], wait_seconds=50)
        assert result["status"] == "done", result
        yield caller


# ---- the list of tools ----------------------------------------------------------------------------


def test_the_tools_are_these_in_this_order_each_with_true_annotations(call: Caller) -> None:
    tools = call.portal.call(call.client.list_tools).tools
    assert [tool.name for tool in tools] == NAMES
    writes = {tool.name for tool in tools if not tool.annotations.read_only_hint}
    assert writes == {
        "index_documents", "drift_search", "drift_step", "cancel_job", "claim_work", "submit_work", "remove_documents",
        "edit_graph",
    }  # fmt: skip
    destructive = ["index_documents", "remove_documents", "edit_graph"]
    assert [tool.name for tool in tools if tool.annotations.destructive_hint] == destructive
    assert not any(tool.annotations.open_world_hint for tool in tools)
    structured = {tool.name for tool in tools if tool.output_schema}
    assert structured == {
        "index_documents", "drift_search", "drift_step", "drift_finish", "graph_status", "cancel_job", "remove_documents",
        "edit_graph", "claim_work", "submit_work",
    }  # fmt: skip


def listed_of(home: Path, *corpora: str) -> list[Any]:
    """The core tools of a server whose corpora hold a text each."""
    for name in corpora:
        texts = (InlineText(DOCUMENTS["storm.md"], "storm"),)
        indexed(home / "corpora" / name, IndexRequest(texts=texts), Settings(home=home))
    with connected(build_server(App(Settings(home=home)), "core")) as caller:
        return caller.portal.call(caller.client.list_tools).tools


def test_the_core_tools_cost_an_agent_at_most_6500_characters(tmp_path: Path) -> None:
    """With the two that write summaries; what is said of an argument stands once."""
    listed = listed_of(tmp_path, "one")
    text = "\n\n".join(
        f"## {tool.name}\n{tool.description}\n{json.dumps(tool.input_schema, ensure_ascii=False)}" for tool in listed
    )
    assert len(text) <= 6_500, "list a rare argument under [seldom] in tools/contract.toml: calls take it all the same"
    assert len(listed) == 14
    described: set[str] = set()
    for tool in offered("core", model=False):
        parts = tool.parameters["properties"]
        described |= {name for name, part in parts.items() if part.get("description")}
        assert set(parts) <= described, tool.name
        assert not {"answer", "instructions"} & set(parts) or tool.name == "drift_step"
    with_model = {tool.name: tool for tool in offered("core", model=True)}
    assert "answer" in with_model["local_search"].parameters["properties"]


def test_searches_list_the_argument_corpus_where_there_are_several(tmp_path: Path) -> None:
    with_it = [tool.name for tool in listed_of(tmp_path, "one") if "corpus" in tool.input_schema["properties"]]
    assert with_it == ["index_documents"]
    several = listed_of(tmp_path, "two")
    without = [tool.name for tool in several if "corpus" not in tool.input_schema["properties"]]
    assert len(several) == 14 and without == ["drift_step"]


def test_starting_imports_nothing_heavy() -> None:
    program = (
        "import sys, graphrag_mcp.server as s; from graphrag_mcp.app import App; from graphrag_mcp.settings import Settings\n"
        "s.build_server(App(Settings()))\n"
        "print([m for m in ('lancedb','pyarrow','pandas','numpy','openai','networkx','rjieba','sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=clean_environment(), check=True)
    assert done.stdout.strip() == "[]"


# ---- both eras ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_both_protocol_eras_get_the_same_answers_and_the_same_lessons(mode: str, call: Caller, home: Path, project: Path) -> None:
    with connected(build_server(App(Settings(home=home, roots=(project,)))), mode=mode) as memory:
        assert memory.good("search_text", query="dovetailed granite") == call.good("search_text", query="dovetailed granite")
        for tool, arguments in [("global_search", {}), ("get_entity", {"id": ["x"]}), ("index_documents", {"dry_run": True})]:
            assert memory.bad(tool, **arguments) == call.bad(tool, **arguments)


# ---- good calls --------------------------------------------------------------------------------------


def test_indexing_says_what_went_in_what_did_not_and_why(call: Caller, project: Path) -> None:
    again = call.good("index_documents", paths=".")  # a string for a list
    assert again["status"] == "done" and again["corpus"] == corpus_name(project)
    assert again["counts"]["added"] == 0 and again["counts"]["unchanged"] >= 5
    assert sum(again["skipped"].values()) + len(again["errors"]) >= 1  # the picture


def test_searches_cite_what_get_source_gives_back_exactly(call: Caller, project: Path) -> None:
    found = call.good("local_search", query="Who built the Eddystone Lighthouse?")
    assert found["state"] == "context" and found["corpus"] == corpus_name(project)
    cited = found["citations"][0]
    source = call.good("get_source", ids=cited["id"])
    path = project / cited["uri"].partition("/")[2]
    assert path.read_text("utf-8")[cited["char_start"] : cited["char_end"]].strip() in source["text"]
    assert "John Smeaton" in source["text"]


def test_chinese_and_emoji_are_questions_like_others(call: Caller) -> None:
    assert "微软研究院" in call.good("local_search", query="微软研究院在哪里？")["text"]
    assert "微软研究院" in call.good("search_text", query="人工智能")["text"]
    assert call.good("search_text", query="🗼🌊")["state"] == "not_found"
    assert call.good("local_search", query="🗼")["state"] in ("not_found", "context")


def test_entity_community_and_status_hang_together(call: Caller) -> None:
    entity = call.good("get_entity", name="john smeaton")
    assert entity["title"] == "John Smeaton" and entity["communities"]
    report = call.good("get_community_report", id=entity["communities"][0])
    assert report["id"] == entity["communities"][0]
    status = call.good("graph_status")
    assert status["counts"]["documents"] >= 5 and sum(status["levels"].values()) == status["counts"]["communities"]
    assert "GRAPHRAG_MCP_CHAT_MODEL" in status["text"] and status["jobs"][0]["status"] == "done"


def test_texts_go_in_by_themselves_and_replace_by_id(call: Caller) -> None:
    body = {"id": "note", "text": "Grace Hopper found a moth in the Harvard Mark II.", "title": "Moth"}
    first = call.good("index_documents", texts=[body, {"title": "no text"}, 7], corpus="notes-1")
    assert first["counts"]["added"] == 1
    assert [error["path"] for error in first["errors"]] == ["texts[1]", "texts[2]"]
    assert "moth" in call.good("search_text", query="moth", corpus="notes-1")["text"]
    second = call.good("index_documents", texts=json.dumps([{**body, "text": "The moth is in a museum."}]), collection="notes-1")
    assert second["counts"]["changed"] == 1
    third = call.good("index_documents", text="A second note, given as a bare string.", corpus="notes-1")
    assert third["counts"]["added"] == 1 and third["counts"]["documents_total"] == 2


# ---- forgiving arguments -----------------------------------------------------------------------------


def test_names_that_models_guess_are_accepted(call: Caller) -> None:
    expected = call.good("search_text", query="granite", max_tokens=1000)
    for names in ({"q": "granite"}, {"question": "granite"}, {"text": "granite"}):
        assert call.good("search_text", **names, budget="1,000") == expected
    assert call.good("search_text", query="granite", token_budget=1000.4, index=None) == expected
    for tool in all_tools():
        assert set(accepted(tool).values()) == set(tool.parameters["properties"])


@pytest.mark.parametrize("asked", [50, "100000", -3, 10**30, 200, 1234, 20000])
@pytest.mark.parametrize("tool", ["local_search", "search_text", "global_search", "get_entity", "get_source"])
def test_results_stay_within_the_budget_and_a_changed_budget_is_said(call: Caller, tool: str, asked: Any) -> None:
    arguments = {"get_entity": {"name": "Eddystone Lighthouse"}, "get_source": {"ids": ["d1", "d2", "d3", "d4"]}}
    result = call.good(tool, **arguments.get(tool, {"query": "Eddystone Lighthouse"}), max_tokens=asked)
    number = int(asked)
    usual = {"search_text": 1200, "local_search": 1200, "get_source": 4000, "get_entity": 2000}.get(tool, 3000)
    assert count_tokens(result["text"]) <= (usual if number <= 0 else min(max(number, 200), 20_000))
    assert len(result["text"]) <= 48_000
    assert ("max_tokens" in result["hint"]) == (not 200 <= number <= 20_000)


def test_other_numbers_are_clamped_with_a_hint_too(call: Caller) -> None:
    assert "level" in call.good("global_search", query="storm", level=-7)["hint"]
    assert "around" in call.good("get_source", ids=["d1"], around=99)["hint"]
    assert "wait_seconds" in call.good("index_documents", paths=["storm.md"], corpus="one", wait_seconds="9000")["hint"]
    assert "max_nodes" in call.good("drift_search", query="storm", max_nodes=100000)["hint"]


def test_wishes_for_an_answer_that_nobody_asked_for_are_said_to_change_nothing(call: Caller) -> None:
    for tool in ("local_search", "global_search"):
        told = call.good(tool, query="storm", response_type="a table of three rows")["hint"]
        assert "instructions changed nothing" in told and "answer=true" in told
        assert "changed nothing" not in call.good(tool, query="storm", response_type="a table", answer=True)["hint"]


def test_a_reading_tool_names_an_unknown_argument_and_answers_all_the_same(call: Caller) -> None:
    result = call.good("local_search", query="storm", max_token_count=500, colour="red", extra=None)
    assert "no argument 'max_token_count'; did you mean 'max_tokens'?" in result["hint"]
    assert "'colour'" in result["hint"] and "ignored" in result["hint"] and "extra" not in result["hint"]
    assert result["hint"] in result["text"]
    for gone, near in ("keywords", "query"), ("history", "query"), ("general_knowledge", "instructions"):
        hint = call.good("local_search", query="storm", **{gone: ["tide"]})["hint"]
        assert f"no argument {gone!r}; did you mean {near!r}?" in hint


def test_a_writing_tool_refuses_an_unknown_argument(call: Caller) -> None:
    text = call.bad("index_documents", paths=["."], remove_missings=True)
    assert "did you mean 'remove_missing'?" in text and "index_documents(paths=" in text
    assert "dry_run" in call.bad("index_documents", paths=["."], dry_run=True)


# ---- bad calls ---------------------------------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("global_search", {}, "needs 'query'"),
    ("local_search", {"query": {"a": 1}}, "query must be text"),
    ("local_search", {"query": "x", "max_tokens": "many"}, "max_tokens must be a whole number"),
    ("local_search", {"query": "x", "breadth": "words"}, 'breadth must be "passages" or "sentences"'),
    ("local_search", {"query": "x", "corpus": "nope"}, "no corpus 'nope'"),
    ("search_text", {"query": ""}, "empty"),
    ("drift_search", {"query": "x", "mode": "quick"}, 'mode must be "step" or "auto"'),
    ("drift_step", {"session_id": "nope", "node_id": "n", "answer": "x"}, "drift_search"),
    ("drift_finish", {"session_id": "nope"}, "drift_search"),
    ("get_community_report", {"community_id": "c99999"}, "c1"),
    ("get_source", {"ids": ["t99999"]}, "t99999"),
    ("get_source", {"ids": {"a": 1}}, "ids[0] must be text"),
    ("index_documents", {"paths": ["no-such-folder"]}, "no file or folder"),
    ("index_documents", {"paths": ["../secret"]}, "GRAPHRAG_MCP_ROOTS"),
    ("index_documents", {"paths": ["."], "method": "magic"}, 'method must be "auto"'),
    ("index_documents", {"paths": ["."], "method": "llm"}, "GRAPHRAG_MCP_CHAT_MODEL"),
    ("index_documents", {"paths": ["."], "corpus": "a/b"}, "cannot be used"),
    ("index_documents", {"paths": ["."], "remove_missing": "perhaps"}, "true or false"),
    ("graph_status", {"job_id": "job-000000000000"}, "no job"),
    ("cancel_job", {"job_id": "../manifest"}, "not one of ours"),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "said"), BAD, ids=lambda value: json.dumps(value)[:60])
def test_a_wrong_call_is_told_what_is_wrong_and_what_to_do(call: Caller, tool: str, arguments: dict[str, Any], said: str) -> None:
    text = call.bad(tool, **arguments)
    assert said in text
    assert "swordfish" not in text
