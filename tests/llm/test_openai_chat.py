"""Chat and embedding models over real HTTP: what servers do well, badly and not at all, and what is made of it."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.openai_chat import OpenAIChat, OpenAIEmbedder, Preview
from graphrag_mcp.llm.protocols import Embedded, Message, Reply
from graphrag_mcp.llm.transport import Pace
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from tests.support.openai_server import Server, error, openai_server, vector

ASKED = [Message("system", "Be brief."), Message("user", "What is the capital of France?")]
SCHEMA = {"title": "capital", "type": "object", "properties": {"said": {"type": "string"}}}


class Clock:
    """Waits that take no time, and what they were."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.now += seconds
        await asyncio.sleep(0)


def pace(clock: Clock | None = None) -> Pace:
    clock = clock or Clock()
    return Pace(clock=lambda: clock.now, sleep=clock.sleep)


def chat(
    server: Server, clock: Clock | None = None, environ: dict[str, str] | None = None, **settings: Any
) -> OpenAIChat:
    made = Settings(**{"chat_model": "m", "base_url": server.url, "timeout_seconds": 5.0, **settings})
    return OpenAIChat(made, environ or {}, pace(clock))


def embedder(server: Server, clock: Clock | None = None, **settings: Any) -> OpenAIEmbedder:
    made = Settings(**{"embedding_model": "e", "base_url": server.url, "timeout_seconds": 5.0, **settings})
    return OpenAIEmbedder(made, {}, pace(clock))


def ask(model: OpenAIChat, messages: list[Message] = ASKED, times: int = 1, **wishes: Any) -> Reply:
    """The last of `times` replies."""

    async def asked() -> Reply:
        try:
            return [await model.complete(messages, **wishes) for _ in range(times)][-1]
        finally:
            await model.close()

    return asyncio.run(asked())


def embed(model: OpenAIEmbedder, *texts: str) -> Embedded:
    async def asked() -> Embedded:
        try:
            return await model.embed(texts)
        finally:
            await model.close()

    return asyncio.run(asked())


def failure(work: Callable[[], Any]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        work()
    return caught.value


def reply(
    message: dict[str, Any] | None = None, finish: str | None = "stop", **more: Any
) -> tuple[int, dict[str, str], str]:
    choices = [] if message is None else [{"message": message, "finish_reason": finish}]
    return 200, {}, json.dumps({"choices": choices, **more})


# ---- what is said and heard -------------------------------------------------------------------------


def test_a_reply_comes_with_the_providers_own_usage() -> None:
    with openai_server(lambda messages, body: "Paris") as server:
        got = ask(chat(server, chat_options={"seed": 7}), max_output=50)
    assert (got.text, got.finish, got.usage.estimated) == ("Paris", "stop", False)
    assert (got.usage.prompt_tokens, got.usage.output_tokens) == (14, 1)
    sent = server.requests[0].body
    assert sent["messages"] == [{"role": m.role, "content": m.content} for m in ASKED]
    assert (sent["model"], sent["max_tokens"], sent["seed"]) == ("m", 50, 7)
    assert "response_format" not in sent and "temperature" not in sent and "stream" not in sent


def test_usage_that_a_server_does_not_give_is_counted_and_marked() -> None:
    with openai_server(lambda messages, body: "Paris", manners="sloppy") as server:
        got = ask(chat(server))
    assert got.text == "Paris"  # which came in parts
    assert got.usage.estimated
    assert got.usage.prompt_tokens == sum(count_tokens(message.content) for message in ASKED)
    assert got.usage.output_tokens == count_tokens("Paris")


def test_thinking_is_no_part_of_a_reply_whole_or_streamed() -> None:
    pieces: list[str] = []
    with openai_server(lambda messages, body: "Paris, of course", manners="local") as server:
        whole = ask(chat(server))
        streamed = ask(chat(server), on_text=pieces.append)
    assert whole.text == streamed.text == "".join(pieces) == "Paris, of course"
    assert streamed.usage.estimated and streamed.usage.output_tokens > count_tokens("Paris, of course")


def test_a_stream_gives_pieces_as_they_come_and_usage_at_its_end() -> None:
    pieces: list[str] = []
    said = "One, two\u2028日记 🙂\x85 three\r\n"
    with openai_server(lambda messages, body: said) as server:
        got = ask(chat(server), on_text=pieces.append)
    assert len(pieces) > 3 and "".join(pieces) == got.text == said
    assert (got.usage.prompt_tokens, got.usage.estimated) == (14, False)


def streamed(*events: dict[str, Any]) -> tuple[int, dict[str, str], str]:
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return 200, {"Content-Type": "text/event-stream"}, lines


def test_a_stream_that_breaks_off_is_asked_again_without_showing_anything_twice() -> None:
    pieces: list[str] = []
    with openai_server(lambda messages, body: "All of it", script=["break", None]) as server:
        got = ask(chat(server), on_text=pieces.append)
    assert got.text == "All of it"
    assert "".join(pieces) == "The beginning of an answer that is never"
    assert "stream" not in server.requests[1].body


EMPTY = {
    "no choices": (reply(None), "empty"),
    "null content": (reply({"content": None}, "content_filter"), "content_filter"),
    "reasoning only": (reply({"content": "", "reasoning_content": "Hm"}, "length"), "length"),
    "thinking that was cut off": (reply({"content": "<think>Well"}, "stop"), "length"),
    "a refusal": (reply({"content": None, "refusal": "I will not"}), "refusal"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_a_reply_without_text_says_how_it_ended(kind: str) -> None:
    planned, finish = EMPTY[kind]
    with openai_server(script=[planned]) as server:
        got = ask(chat(server))
    assert (got.text, got.finish) == ("", finish)
    assert (got.usage.output_tokens > 0) == (kind in ("reasoning only", "thinking that was cut off"))


# ---- what servers do not take -----------------------------------------------------------------------


def forms(server: Server) -> list[str]:
    return [(seen.body.get("response_format") or {}).get("type", "none") for seen in server.requests]


def test_json_is_asked_for_by_schema_first_and_a_servers_refusals_are_remembered() -> None:
    with openai_server(manners="good") as good, openai_server(manners="local") as local:
        ask(chat(good), schema=SCHEMA)
        got = ask(chat(local), times=2, schema=SCHEMA)
    sent = good.requests[0].body["response_format"]["json_schema"]
    assert sent == {"name": "capital", "schema": SCHEMA, "strict": False}
    assert forms(local) == ["json_schema", "json_object", "json_object"]
    assert got.text == '```json\n{"said": "it"}\n```'


def test_parameters_that_a_server_refuses_are_left_out_from_then_on() -> None:
    with openai_server(manners="strict") as server:
        model = chat(server, environ={"OPENAI_API_KEY": "right-key"}, chat_options={"temperature": 0})
        ask(model, times=2, max_output=20)
    extra = [sorted(set(seen.body) - {"model", "messages"}) for seen in server.requests]
    assert extra == [
        ["max_tokens", "temperature"],
        ["max_tokens"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]


# ---- vectors ----------------------------------------------------------------------------------------


def packed(text: str, dimension: int = 8) -> bytes:
    return struct.pack(f"<{dimension}f", *vector(text, dimension))


@pytest.mark.parametrize("manners", ["good", "local", "sloppy"])
def test_vectors_come_in_the_order_of_the_texts_whatever_the_server_makes_of_it(manners: str) -> None:
    texts = ["one", "two", "three"]
    with openai_server(manners=manners) as server:
        got = embed(embedder(server), *texts)
    assert (got.vectors, got.dimension) == (tuple(map(packed, texts)), 8)
    assert got.usage.estimated == (manners == "sloppy") and got.usage.prompt_tokens > 0
    assert server.requests[0].body == {"model": "e", "input": texts, "encoding_format": "base64"}


def test_a_server_that_refuses_base64_is_asked_for_numbers_from_then_on() -> None:
    with openai_server(script=[(400, {}, error("Unknown parameter: 'encoding_format'"))]) as server:
        model = embedder(server)
        assert [embed(model, "a").vectors, embed(model, "a").vectors] == [(packed("a"),)] * 2
    assert ["encoding_format" in seen.body for seen in server.requests] == [True, False, False]


def test_a_wanted_dimension_is_sent_and_a_server_that_ignores_it_is_found_out() -> None:
    with openai_server() as server:
        assert embed(embedder(server, embedding_dimensions=4), "a").dimension == 4
    data = json.dumps({"data": [{"index": 0, "embedding": [0.5] * 6}]})
    with openai_server(script=[(200, {}, data)]) as server:
        failed = failure(lambda: embed(embedder(server, embedding_dimensions=4), "a"))
    assert failed.final and "embedding_dimensions to 6" in failed.next_move


USELESS = {
    "too few": [{"index": 0, "embedding": [1, 2]}],
    "too many": [{"index": n, "embedding": [1, 2]} for n in range(3)],
    "one number twice": [{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}],
    "not a number": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, float("nan")]}],
    "infinite": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, float("inf")]}],
    "too large": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1, 1e39]}],
    "two sizes": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}],
    "no numbers": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}],
    "null": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": None}],
    "words": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": "no base64!"}],
    "half a number": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}],
    "nothing but text": ["a", "b"],
}


@pytest.mark.parametrize("kind", USELESS)
def test_vectors_that_are_none_are_an_error(kind: str) -> None:
    with openai_server(script=[(200, {}, json.dumps({"data": USELESS[kind]}))]) as server:
        failed = failure(lambda: embed(embedder(server), "a", "b"))
    assert "'e'" in failed.what and not failed.final and server.stats["calls"] == 1


def test_vectors_may_come_from_another_server() -> None:
    with openai_server() as server:
        embed(embedder(server, base_url="http://127.0.0.1:9/v1", embedding_base_url=server.url), "a")
    assert server.requests[0].path == "/v1/embeddings"


PREVIEWS = {
    ("no thoughts",): "no thoughts",
    ("<th", "ink>a", "\nb</thi", "nk>\n", "\nAnswer"): "Answer",
    (" \n<thinking>a</thinking>", "<think>b", "</think>", " {}"): "{}",
    ("<think>it never ends",): "",
    ("<", "b>bold</b>"): "<b>bold</b>",
    ("The tag <think> opens it",): "The tag <think> opens it",
}


@pytest.mark.parametrize("pieces", PREVIEWS)
def test_a_preview_leaves_out_the_thinking_before_an_answer(pieces: tuple[str, ...]) -> None:
    for one in (pieces, tuple("".join(pieces))):
        given: list[str] = []
        preview = Preview(given.append)
        for piece in one:
            preview.feed(piece)
        assert "".join(given) == PREVIEWS[pieces] and preview.shown == bool(given)
