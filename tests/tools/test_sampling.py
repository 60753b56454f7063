"""index_documents(method="client"): the client's model writes summaries and reports, in both eras of the protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CreateMessageResult, ErrorData, TextContent

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import leases
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.tools import sampling
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE
from tests.support.promises import doctor
from tests.support.workload import until

ERAS = ("auto", "legacy")
TEXT = "Mira Okafor built the tide mill at Sable Point in 1904. " * 8
TEXTS = [{"id": str(n), "text": f"{TEXT}So says note {n}."} for n in range(3)]
REPORT = {"title": "The mill", "summary": "It is about a mill.", "rating": 5, "rating_explanation": "So it is.",
          "findings": [{"summary": "A mill", "explanation": "It stands there. [Data: Entities (1)]"}]}  # fmt: skip


class Model:
    """The client's model: it writes what is asked of it, and keeps the prompts."""

    def __init__(self, reply: Callable[[str], str] | None = None) -> None:
        self.prompts: list[str] = []
        self._reply = reply or self._written

    async def __call__(self, context: Any, params: Any) -> Any:
        self.prompts.append(params.messages[0].content.text)
        said = self._reply(self.prompts[-1])
        if not said:
            return ErrorData(code=-1, message="The user declined")
        return CreateMessageResult(role="assistant", content=TextContent(type="text", text=said), model="theirs")

    def _written(self, prompt: str) -> str:
        items = re.findall(r"^## (\S+) \((\w+)\)$", prompt, re.MULTILINE)
        summary = {"text": "It is told here.", "labels": ["a label"], "names": []}
        return json.dumps({"results": [{"work_id": id, **(REPORT if kind == "report" else summary)} for id, kind in items]})


def build(caller: Caller, **more: Any) -> str:
    given = {"texts": TEXTS, "corpus": "kb", "method": "client", "wait_seconds": 40, **more}
    return caller.good("index_documents", **given)["text"]


def summaries(home: Path) -> int:
    return open_snapshot(home / "corpora" / "kb", keep=False).count("summaries")


@pytest.mark.parametrize("era", ERAS)
def test_the_clients_model_writes_the_summaries_once(tmp_path: Path, era: str) -> None:
    model = Model()
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        assert "The client's model wrote 3 summaries and reports in 1 request." in build(caller)
        until(lambda: summaries(tmp_path) == 3)
        assert len(model.prompts) == 1 and '"results"' in model.prompts[0]
        assert "wrote nothing. Nothing is open for it." in build(caller) and len(model.prompts) == 1
        (row, *_) = open_snapshot(tmp_path / "corpora" / "kb", keep=False).rows("summaries").to_pylist()
        assert row["text"] == "It is told here." and row["written_by"].startswith("agent:")
    until(lambda: doctor(tmp_path / "corpora" / "kb") == [])  # what was handed in is merged by a job


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
def test_reports_of_the_top_topics_follow_within_the_limit_of_requests(tmp_path: Path, era: str) -> None:
    model = Model()
    app = App(Settings(home=tmp_path, roots=(SAMPLE,), max_calls=2))
    with connected(build_server(app), sampling_callback=model, mode=era) as caller:
        told = build(caller, texts=[], paths=[str(SAMPLE)])
        assert len(model.prompts) == 2 and "The limit of requests of a call is reached" in told
        for _ in range(6):
            if "(report)" in model.prompts[-1]:
                break
            build(caller, texts=[], paths=[str(SAMPLE)])
        assert "(report)" in model.prompts[-1]
    until(lambda: doctor(tmp_path / "corpora" / "kb") == [])  # what was handed in is merged by a job


@pytest.mark.parametrize("era", ERAS)
def test_a_client_without_sampling_is_told_in_a_sentence_and_the_index_is_built(tmp_path: Path, era: str) -> None:
    with connected(build_server(App(Settings(home=tmp_path))), mode=era) as caller:
        told = build(caller)
    assert "3 added" in told and sampling.NOT_OFFERED in told


@pytest.mark.parametrize("era", ERAS)
def test_a_reply_that_is_no_json_ends_the_asking(tmp_path: Path, era: str) -> None:
    model = Model(lambda prompt: "I would rather not.")
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        told = build(caller)
    assert "wrote 0 summaries and reports in 1 request. Nothing of its last reply could be used" in told
    assert len(model.prompts) == 1 and held(tmp_path) == set()


def held(home: Path) -> set[str]:
    """What another agent could not claim."""
    return leases.taken(home / "corpora" / "kb", "another agent")


@pytest.mark.parametrize("era", ERAS)
def test_what_the_user_declines_is_told_and_stays_open_to_others(tmp_path: Path, era: str) -> None:
    """A client of the newer protocol does not come back with a refusal: it raises it itself."""
    model = Model(lambda prompt: "")
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        if era == "legacy":
            assert "wrote nothing. The client ended it: The user declined." in build(caller)
        else:
            with pytest.raises(MCPError, match="The user declined"):
                build(caller)
        assert len(model.prompts) == 1 and held(tmp_path) == set()
        model._reply = model._written
        assert "wrote 3 summaries and reports in 1 request." in build(caller)


@pytest.mark.parametrize("era", ERAS)
def test_what_an_agent_has_claimed_stays_claimed_when_the_model_of_its_client_is_asked(tmp_path: Path, era: str) -> None:
    model = Model(lambda prompt: "I would rather not.")
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        caller.good("index_documents", texts=TEXTS, corpus="kb", wait_seconds=40)
        claimed = caller.good("claim_work", corpus="kb", kind="summary", max_items=1)["items"]
        before = held(tmp_path)
        build(caller)
        assert len(claimed) == len(before) == 1 and held(tmp_path) == before
        assert len(re.findall("^## w", model.prompts[0], re.MULTILINE)) == 3


@pytest.mark.parametrize("era", ERAS)
def test_a_question_that_gets_no_useful_reply_is_asked_once(tmp_path: Path, era: str) -> None:
    model = Model()

    def first(prompt: str) -> str:
        results = json.loads(model._written(prompt))["results"]
        return json.dumps({"results": results[:1] if len(model.prompts) == 1 else []})

    model._reply = first
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        assert "wrote 1 summaries and reports in 2 requests. They are merged" in build(caller)
    assert len(model.prompts) == 2


def test_a_client_that_comes_back_without_a_reply_is_not_asked_again(tmp_path: Path) -> None:
    given = {"texts": TEXTS, "corpus": "kb", "method": "client", "wait_seconds": 40}
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=Model()) as caller:
        session = caller.client.session
        asked: Any = caller.portal.call(lambda: session.call_tool("index_documents", given, allow_input_required=True))
        more: Any = {"request_state": asked.request_state, "input_responses": {}, "allow_input_required": True}
        done = caller.portal.call(lambda: session.call_tool("index_documents", given, **more))
    assert "wrote nothing. The client gave no reply." in done.content[0].text


def test_a_client_that_leaves_while_it_is_asked_leaves_the_questions_open(tmp_path: Path) -> None:
    async def silent(context: Any, params: Any) -> Any:
        asked.set()
        await anyio.sleep_forever()

    async def leave() -> None:
        async with Client(build_server(App(Settings(home=tmp_path))), sampling_callback=silent, mode="legacy") as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "index_documents", {"texts": TEXTS, "corpus": "kb", "method": "client", "wait_seconds": 40})
                await asked.wait()
                group.cancel_scope.cancel()

    asked = anyio.Event()
    anyio.run(leave)
    assert held(tmp_path) == set()
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=Model()) as caller:
        assert "wrote 3 summaries and reports in 1 request." in build(caller)


def test_a_configured_model_is_named_instead(tmp_path: Path) -> None:
    with connected(build_server(App(Settings(home=tmp_path, chat_model="m"))), sampling_callback=Model()) as caller:
        assert 'Use method="light"' in caller.bad("index_documents", texts=TEXTS, corpus="kb", method="client")
