"""index_documents(method="client"): the client's model writes summaries and reports, in both eras of the protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CreateMessageResult, ErrorData, TextContent

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
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
        assert "was not asked anything" in build(caller) and len(model.prompts) == 1
        (row, *_) = open_snapshot(tmp_path / "corpora" / "kb", keep=False).rows("summaries").to_pylist()
        assert row["text"] == "It is told here." and row["written_by"].startswith("agent:")
    assert doctor(tmp_path / "corpora" / "kb") == []


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
    assert doctor(tmp_path / "corpora" / "kb") == []


@pytest.mark.parametrize("era", ERAS)
def test_a_client_without_sampling_is_told_in_a_sentence_and_the_index_is_built(tmp_path: Path, era: str) -> None:
    with connected(build_server(App(Settings(home=tmp_path))), mode=era) as caller:
        told = build(caller)
    assert "3 added" in told and sampling.NOT_OFFERED in told


@pytest.mark.parametrize("era", ERAS)
def test_a_reply_that_is_no_json_ends_the_asking(tmp_path: Path, era: str) -> None:
    model = Model(lambda prompt: "I would rather not.")
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode=era) as caller:
        assert "wrote 0 summaries and reports in 1 request." in build(caller)
    assert len(model.prompts) == 1


def test_what_the_user_declines_is_told(tmp_path: Path) -> None:
    model = Model(lambda prompt: "")
    with connected(build_server(App(Settings(home=tmp_path))), sampling_callback=model, mode="legacy") as caller:
        assert "The client ended it: The user declined." in build(caller)
    assert len(model.prompts) == 1


def test_a_configured_model_is_named_instead(tmp_path: Path) -> None:
    with connected(build_server(App(Settings(home=tmp_path, chat_model="m"))), sampling_callback=Model()) as caller:
        assert 'Use method="light"' in caller.bad("index_documents", texts=TEXTS, corpus="kb", method="client")
