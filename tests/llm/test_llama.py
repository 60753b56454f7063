"""A real model behind a real server: llama.cpp with SmolLM2 (135 million parameters).

What so small a model says is poor, so nothing here looks at it. Looked at is the way: every question is answered or is
named as open with its reason, streams, limits, a full context, a server that dies, a wrong key, prices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.check import SCHEMA, Named
from graphrag_mcp.llm.openai_chat import OpenAIChat
from graphrag_mcp.llm.opening import open_asker
from graphrag_mcp.llm.protocols import Message, Reply
from graphrag_mcp.llm.transport import Pace
from graphrag_mcp.query import drift_llm
from graphrag_mcp.query.drift import Drift, Limits
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult, InlineText
from tests.support.llama_server import CONTEXT, PARALLEL, Llama, llama_server, model_file
from tests.support.promises import doctor

pytestmark = pytest.mark.skipif(model_file() is None, reason="no wheel of llama.cpp here")
KEY = "right-key"
MILL = "Mira Okafor built the tide mill at Sable Point in 1904. Her brother Jonas Okafor kept its books."
FIRE = "The tide mill at Sable Point burned in 1931. Jonas Okafor rebuilt it with the Sable Cooperative."


@pytest.fixture(scope="module")
def server() -> Iterator[Llama]:
    with llama_server(key=KEY) as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def settings(server: Llama, *, tokens: int = 100, **more: Any) -> Settings:
    """Short replies, always the same ones."""
    options = {"max_tokens": tokens, "temperature": 0, "seed": 1}
    given = {
        "gleanings": "0",
        "report_min_units": 99,
        "max_retries": 0,
        "timeout_seconds": 240,
        "concurrency": PARALLEL,
    }
    return Settings(chat_model="smollm2", base_url=server.url, chat_options=options, **{**given, **more})


def index(folder: Path, chosen: Settings, method: str, *texts: str, **more: Any) -> IndexResult:
    given = tuple(InlineText(text, str(number)) for number, text in enumerate(texts))
    return index_documents(folder, IndexRequest(texts=given, method=method, **more), chosen)


def ask(chosen: Settings, *prompts: str, key: str = KEY, **more: Any) -> list[Reply]:
    """The replies to these prompts, asked at the same time."""

    async def replied() -> list[Reply]:
        chat = OpenAIChat(chosen, {"OPENAI_API_KEY": key}, Pace())
        try:
            return await asyncio.gather(*(chat.complete([Message("user", prompt)], **more) for prompt in prompts))
        finally:
            await chat.close()

    return asyncio.run(replied())


@pytest.fixture(scope="module")
def indexed(server: Llama, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings, IndexResult]:
    """An index of two texts that the model has read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        folder, chosen = tmp_path_factory.mktemp("llama") / "c", settings(server, price_prompt=1.0, price_output=2.0)
        return folder, chosen, index(folder, chosen, "llm", MILL, FIRE)


def test_every_text_is_read_or_named_as_open_and_no_question_is_paid_for_twice(
    indexed: tuple[Path, Settings, IndexResult],
) -> None:
    folder, chosen, result = indexed
    used = result.usage["by_stage"]["extract"]
    assert result.status == "done" and not result.errors and used["calls"] >= 2
    assert all(one["reason"] for one in result.degraded) and doctor(folder) == []
    read = {row["text_unit_id"] for row in open_snapshot(folder).rows("mentions").to_pylist() if row["by"]}
    assert len(read) + result.pending.get("extract", 0) == 2 and read, "the schema makes a small model write records"
    assert index(folder, chosen, "llm", MILL, FIRE).usage["calls"] == 0


def test_a_question_is_answered_from_the_context(indexed: tuple[Path, Settings, IndexResult]) -> None:
    folder, chosen, _ = indexed
    asker = open_asker(folder, chosen, limited=False)
    try:
        found = local_search(
            open_snapshot(folder), "Who built the tide mill at Sable Point?", asker=asker, answer=True, max_tokens=600
        )
        assert found.state == "answered" and found.answer and found.method == "llm:smollm2"
    finally:
        asker.close()


def test_drift_walks_with_the_model_and_ends_with_a_result(
    indexed: tuple[Path, Settings, IndexResult], tmp_path: Path
) -> None:
    folder, chosen, _ = indexed
    asker = open_asker(folder, chosen, limited=False)
    try:
        question = "What happened to the tide mill?"
        session = Drift(open_snapshot(folder), tmp_path / "w.jsonl", 800)
        result = drift_llm.run(session, question, asker, Limits(depth=1))
        assert result.state in ("answered", "partial", "context") and result.text
        assert asker.spent().calls >= 1
    finally:
        asker.close()


@pytest.mark.parametrize("mode", ["schema", "object"])
def test_json_comes_in_the_form_of_the_schema(server: Llama, mode: str) -> None:
    (reply,) = ask(
        settings(server, tokens=60, json_mode=mode),
        'Name two people of this text as {"names": [...]}. ' + MILL,
        schema=SCHEMA,
    )
    if mode == "schema":
        assert replies.validated(Named, reply.text).names is not None
    else:
        assert reply.text.lstrip().startswith("{")


def test_a_reply_comes_in_pieces_and_one_that_is_given_up_makes_room_for_the_next(server: Llama) -> None:
    async def cancelled() -> tuple[list[str], Reply]:
        chat = OpenAIChat(settings(server, tokens=1500), {"OPENAI_API_KEY": KEY}, Pace())
        pieces: list[str] = []
        begun = asyncio.Event()

        def take(piece: str) -> None:
            pieces.append(piece)
            begun.set()

        told = [Message("user", "Count to one thousand in words, one number a line.")]
        running = [asyncio.create_task(chat.complete(told, on_text=take)) for _ in range(PARALLEL)]
        await begun.wait()
        for task in running:
            task.cancel()
        assert all(
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*running, return_exceptions=True)
        )
        next_ = OpenAIChat(settings(server, tokens=5), {"OPENAI_API_KEY": KEY}, Pace())
        reply = await next_.complete([Message("user", "Say yes.")])
        await chat.close()
        await next_.close()
        return pieces, reply

    pieces, reply = asyncio.run(cancelled())
    assert 1 <= len(pieces) < 1000 and reply.text


def test_a_prompt_that_does_not_fit_is_told_and_the_rest_is_read(server: Llama, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="too long") as raised:
        ask(settings(server), "mill " * (CONTEXT + 100))
    assert not raised.value.final
    huge = "The mill stood at Sable Point. " * 1400
    result = index(tmp_path / "c", settings(server, tokens=30, chunk_size=20_000), "llm", huge)
    (open_,) = [one for one in result.degraded if one["kind"] == "extract"]
    assert result.status == "done" and "too long" in open_["reason"] and doctor(tmp_path / "c") == []


def test_a_server_that_was_killed_goes_on_where_it_stopped(server: Llama, tmp_path: Path) -> None:
    """The last test: the server is another process afterwards."""
    server.kill()
    down = index(tmp_path / "c", settings(server, tokens=60), "llm", MILL)
    assert down.status == "done" and down.pending == {"extract": 1} and not down.refused
    assert "cannot be reached" in down.degraded[0]["reason"]
    server.start()
    again = index(tmp_path / "c", settings(server, tokens=60), "llm", MILL)
    assert again.usage["by_stage"]["extract"]["calls"] >= 1
    assert not any("reached" in one["reason"] for one in again.degraded) and doctor(tmp_path / "c") == []
