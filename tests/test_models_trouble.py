"""Models when things go wrong, over real HTTP: what is tried again, what ends a run, and what an error may not show."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from email.utils import formatdate
from typing import Any

import pytest

from graphrag_mcp.llm.openai_chat import OpenAIChat, chat_from, embedder_from
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.transport import Limits
from graphrag_mcp.settings import Settings
from tests.support.openai_server import PAGE, Server, error, openai_server
from tests.support.workload import PATIENCE
from tests.test_models import ASKED, SCHEMA, Clock, ask, chat, embed, embedder, failure

# ---- trying again -----------------------------------------------------------------------------------

PASSING = [408, 409, 429, 500, 503, 529, "reset", "html", "empty", "cut", (200, {}, "[]"), (200, {}, '{"id": 1}'),
           (200, {}, error("overloaded", code=503)), (200, {}, "\udcff".encode("utf-8", "surrogatepass").decode("latin-1")),
           (200, {"Content-Encoding": "gzip"}, "no gzip")]  # fmt: skip


@pytest.mark.parametrize("trouble", PASSING, ids=str)
def test_trouble_that_may_pass_is_tried_again(trouble: Any) -> None:
    clock = Clock()
    with openai_server(lambda messages, body: "Paris", script=[trouble, trouble]) as server:
        assert ask(chat(server, clock)).text == "Paris"
    assert server.stats["calls"] == 3
    assert 0 <= clock.waits[0] <= 0.5 and 0 <= clock.waits[1] <= 1.0


def test_an_error_inside_a_stream_is_an_error() -> None:
    event = {"Content-Type": "text/event-stream"}
    busy = (200, event, f"data: {error('busy', code=503)}\n\n")
    wrong = (200, event, f"data: {error('no such key', code='401')}\n\n")
    pieces: list[str] = []
    with openai_server(script=[busy, None, wrong]) as server:
        model = chat(server)
        assert ask(model, on_text=pieces.append).text == "".join(pieces)
        assert failure(lambda: ask(model, on_text=pieces.append)).final


HALF = {"message": {"content": "half an ans"}, "delta": {"content": "half an ans"}}
HALVES = [
    {**HALF, "finish_reason": "error", "error": {"code": 502, "message": "the provider died"}},
    {**HALF, "finish_reason": "error"},
    {**HALF, "finish_reason": "abort"},
]


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_half_a_reply_beside_the_error_that_ended_it_is_no_answer(half: dict[str, Any]) -> None:
    said = json.dumps({"choices": [half]})
    stream = (200, {"Content-Type": "text/event-stream"}, f"data: {said}\n\ndata: [DONE]\n\n")
    with openai_server(lambda messages, body: "Paris", script=[(200, {}, said), None, stream, None]) as server:
        model = chat(server)
        assert ask(model).text == "Paris"
        assert ask(model, on_text=lambda piece: None).text == "Paris"


EVENTS = 'data: {"choices": [{"delta": {"content": "Pa"}}]}\n\n' + (
    'data: {"choices": [{"delta": {"content": "ris"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize(
    ("kind", "events"),
    [("text/plain", EVENTS), ("", EVENTS), ("Text/Event-Stream", EVENTS), ("text/plain", f": wait\n\n{EVENTS}"),
     ("text/event-stream", f"data:\n\ndata: \n\n{EVENTS}"), ("text/event-stream", f"\ufeff{EVENTS}")],
)  # fmt: skip
def test_a_stream_is_known_by_its_lines_and_read_whole(kind: str, events: str) -> None:
    with openai_server(script=[(200, {"Content-Type": kind}, events)]) as server:
        assert ask(chat(server), on_text=lambda piece: None).text == "Paris"
    assert server.stats["calls"] == 1


def test_a_server_that_refuses_a_stream_without_a_reason_is_asked_without_until_it_answers() -> None:
    mute = (400, {}, '{"detail": "Bad Request"}')
    for refused, ways in ((1, [(1, 1), (1, 0), (1, 0)]), (2, [(1, 1), (1, 0), (0, 0), (0, 0)])):
        with openai_server(script=[mute] * refused) as server:
            model = chat(server)
            for _ in range(2):
                assert ask(model, on_text=lambda piece: None).text
        assert [("stream" in s.body, "stream_options" in s.body) for s in server.requests] == [
            (bool(a), bool(b)) for a, b in ways
        ]
    with openai_server(script=[None, mute]) as server:
        model = chat(server)
        ask(model, on_text=lambda piece: None)
        assert not failure(lambda: ask(model, on_text=lambda piece: None)).final, "a stream has worked: it is the text"
    assert server.stats["calls"] == 2


def test_a_firewalls_page_about_one_text_does_not_end_the_run_and_a_key_called_wrong_does() -> None:
    page = (403, {"Content-Type": "text/html"}, PAGE)
    with openai_server(script=[None, page, None]) as server:
        model = chat(server, environ={"OPENAI_API_KEY": "canary-key"})
        ask(model)
        assert not failure(lambda: ask(model)).final
        assert ask(model).text
    wrong = json.dumps([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}])
    for body in (page, (400, {}, wrong)):
        with openai_server(script=[body]) as server:
            assert failure(lambda: ask(chat(server, environ={"OPENAI_API_KEY": "canary-key"}))).final


@pytest.mark.parametrize(
    ("status", "said"),
    [(500, "input (800 tokens) is too large to process"), (500, "json: unsupported value: NaN"),
     (501, "This server does not support embeddings"), (413, "`inputs` must have less than 512 tokens")],
)  # fmt: skip
def test_what_no_second_try_can_mend_is_not_tried_again(status: int, said: str) -> None:
    with openai_server(script=[(status, {}, error(said))] * 2) as server:
        failed = failure(lambda: embed(embedder(server, json_mode="none"), "a"))
    assert said in failed.what and server.stats["calls"] == (2 if status == 501 else 1)
    assert failed.divisible == (status != 501)


@pytest.mark.parametrize("trouble", ["hang", "drip"])
def test_a_server_that_hangs_is_left_after_the_timeout(trouble: str) -> None:
    with openai_server(script=[trouble]) as server:
        assert ask(chat(server, timeout_seconds=0.3)).text
        assert server.stats["calls"] == 2, "the call that hung was left, the next one answered"


def test_the_timeout_is_for_silence_not_for_a_long_answer() -> None:
    with openai_server(script=["slow"]) as server:
        got = ask(chat(server, timeout_seconds=0.5), on_text=lambda piece: None)
    assert got.text == "It takes its time, word by word" and server.stats["calls"] == 1


def test_waits_grow_up_to_half_a_minute_and_end_with_the_tries() -> None:
    clock = Clock()
    with openai_server(script=[500] * 20) as server:
        failed = failure(lambda: ask(chat(server, clock, max_retries=9)))
    assert server.stats["calls"] == 10 and not failed.final and "500" in failed.what
    assert all(wait <= min(30, 0.5 * 2**tried) for tried, wait in enumerate(clock.waits))
    assert len(set(clock.waits)) > 5 and sum(clock.waits) > 5  # jitter


def test_a_reply_of_two_megabytes_is_read() -> None:
    with openai_server(script=["huge"]) as server:
        assert len(ask(chat(server)).text) == 2_000_000


@pytest.mark.parametrize("headers, least, most", [
    ({"Retry-After": "7"}, 7, 7.5),
    ({"Retry-After": "9", "retry-after-ms": "1500"}, 1.5, 2),
    ({"Retry-After": "in 90 seconds, as a date"}, 60, 91),
    ({"Retry-After": "soon"}, 0, 0.5),
    ({"Retry-After": "-3"}, 0, 0.5),
])  # fmt: skip
def test_the_pause_that_a_server_asks_for_is_kept(headers: dict[str, str], least: float, most: float) -> None:
    clock = Clock()
    if "date" in headers["Retry-After"]:
        headers = {"Retry-After": formatdate(time.time() + 90, usegmt=True)}
    with openai_server(script=[(429, headers, error("slow down"))]) as server:
        ask(chat(server, clock))
    assert least <= sum(clock.waits) <= most


def test_a_call_that_waits_for_its_next_try_gives_its_slot_back() -> None:
    async def both(server: Server) -> list[str]:
        order: list[str] = []
        shared = Limits(1)
        settings = Settings(chat_model="m", embedding_model="e", base_url=server.url)
        model, vectors = chat_from(settings, {}, limits=shared), embedder_from(settings, {}, limits=shared)

        async def first() -> None:
            await model.complete(ASKED)
            order.append("chat")

        async def second() -> None:
            await asyncio.sleep(0.05)
            await vectors.embed(["a"])
            order.append("embedding")

        await asyncio.gather(first(), second())
        await model.close()
        await vectors.close()
        return order

    with openai_server(script=[(500, {"Retry-After": "0.3"}, error("busy"))]) as server:
        assert asyncio.run(both(server)) == ["embedding", "chat"]
    assert server.stats["in_flight_max"] == 1


def test_no_more_calls_are_in_flight_than_allowed_and_connections_are_kept() -> None:
    async def many(server: Server) -> None:
        model = OpenAIChat(Settings(chat_model="m", base_url=server.url), {}, Limits(4))
        await asyncio.gather(*(model.complete(ASKED) for _ in range(40)))
        await model.close()

    with openai_server(latency=0.01) as server:
        asyncio.run(many(server))
    assert server.stats == {"calls": 40, "in_flight_max": 4, "connections": 4}


def test_single_refusals_without_a_pause_do_not_stop_the_others() -> None:
    async def many(server: Server) -> None:
        async def until_all_have_asked(_: float) -> None:
            while len(server.requests) < 30:  # for ever, if a refusal stopped the others
                await asyncio.sleep(0.005)

        model = OpenAIChat(Settings(chat_model="m", base_url=server.url), {}, Limits(10, sleep=until_all_have_asked))
        await asyncio.wait_for(asyncio.gather(*(model.complete(ASKED) for _ in range(30))), PATIENCE)
        await model.close()

    with openai_server(script=[429] * 10) as server:
        asyncio.run(many(server))
    assert server.stats["calls"] == 40


def test_too_many_requests_hold_everybody_back_not_only_the_one_that_was_told() -> None:
    now, at_request = [0.0], []

    async def sleep(seconds: float) -> None:
        at_request.append((len(server.requests), seconds))
        if len(at_request) == 2:  # both wait: time goes on
            now[0] += 1
        while not now[0]:
            await asyncio.sleep(0.005)

    async def two(server: Server) -> None:
        limits = Limits(1, clock=lambda: now[0], sleep=sleep)
        model = OpenAIChat(Settings(chat_model="m", base_url=server.url), {}, limits)
        await asyncio.wait_for(asyncio.gather(model.complete(ASKED), model.complete(ASKED)), PATIENCE)
        await model.close()

    with openai_server(script=[(429, {"retry-after-ms": "300"}, error("slow down"))]) as server:
        asyncio.run(two(server))
    assert [count for count, _ in at_request] == [1, 1] and all(seconds >= 0.3 for _, seconds in at_request)
    assert server.stats["calls"] == 3


# ---- giving up --------------------------------------------------------------------------------------

FINAL = {
    "no credit": ((429, {}, error("You exceeded your current quota", code="insufficient_quota")), "credit"),
    "payment": ((402, {}, error("Insufficient Balance")), "credit"),
    "key": ((401, {}, error("Incorrect API key")), "OPENAI_API_KEY"),
    "forbidden": ((403, {}, error("Country not supported")), "OPENAI_API_KEY"),
    "model": ((404, {}, error("The model 'm' does not exist")), "chat_model"),
    "endpoint": ((200, {}, error("Unexpected endpoint or method")), "chat_model"),
    "quota of a day": ((429, {"Retry-After": "40000"}, error("slow down")), "667 minutes"),
}


@pytest.mark.parametrize("kind", FINAL)
def test_what_no_further_try_can_mend_ends_at_once_and_for_good(kind: str) -> None:
    planned, said = FINAL[kind]
    with openai_server(script=[planned] * 3) as server:
        failed = failure(lambda: ask(chat(server, environ={"OPENAI_API_KEY": "wrong-key"})))
    assert failed.final and said in str(failed) and server.stats["calls"] == 1


@pytest.mark.parametrize(
    "said", ["This model's maximum context length is 8192 tokens", "The prompt was flagged by content policy"]
)
@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_concerns_one_text_alone_ends_that_call_only(status: int, said: str) -> None:
    with openai_server(script=[(status, {}, error(said, code="context_length_exceeded"))]) as server:
        failed = failure(lambda: ask(chat(server), schema=SCHEMA))
    assert not failed.final and said in failed.what and server.stats["calls"] == 1


def test_an_address_without_its_v1_is_recognised() -> None:
    with openai_server() as server:
        root = server.url.removesuffix("/v1")
        failed = failure(lambda: ask(chat(server, base_url=root)))
        whole = failure(lambda: ask(chat(server, base_url=server.url + "/chat/completions")))
    assert failed.final and f"{root}/v1," in failed.next_move and "OPENAI_BASE_URL" in failed.next_move
    assert whole.final and f"to {server.url}:" in whole.next_move


def test_a_web_page_at_the_address_is_named_as_such() -> None:
    page = (200, {"Content-Type": "text/html"}, PAGE)
    with openai_server(script=[page] * 9) as server:
        failed = failure(lambda: ask(chat(server, base_url=server.url.removesuffix("/v1"), max_retries=1)))
    assert "web page" in failed.what and "/v1" in failed.next_move and "Log in" not in str(failed)


def test_a_server_that_was_never_there_ends_it_for_good_one_that_went_away_does_not() -> None:
    with openai_server() as server:
        model = chat(server, max_retries=1)
        ask(model)
    went = failure(lambda: ask(model))
    never = failure(lambda: ask(chat(server, max_retries=1)))
    assert not went.final and never.final and "cannot be reached" in never.what


@pytest.mark.parametrize("url", ["localhost:11434/v1", "http://", "http://localhost:port/v1", "ftp://x/v1"])
def test_an_address_that_is_none_is_told_before_anything_is_sent(url: str) -> None:
    made = chat_from(Settings(chat_model="m", base_url=url), {})
    failed = failure(lambda: ask(made))
    assert failed.final and "OPENAI_BASE_URL" in failed.next_move


def test_without_a_key_the_providers_own_address_is_not_called_and_a_local_one_is() -> None:
    failed = failure(
        lambda: ask(chat_from(Settings(chat_model="m", api_key_variable="MY_KEY"), {"OPENAI_API_KEY": "k"}))
    )
    assert failed.final and "MY_KEY" in failed.next_move
    with openai_server() as server:
        ask(chat(server))
        ask(chat(server, environ={"MY_KEY": " my-key\n"}, api_key_variable="MY_KEY"))
    assert [seen.headers["authorization"] for seen in server.requests] == ["Bearer none", "Bearer my-key"]


def test_a_header_of_the_environment_goes_instead_of_ours_and_a_charset_that_is_none_harms_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "authorization: Bearer other")
    broken = (400, {"Content-Type": "text/plain; charset=hex"}, "no such model")
    with openai_server(script=[None, broken]) as server:
        made = chat(server, environ={"MY_KEY": "my-key"}, api_key_variable="MY_KEY")
        ask(made)
        assert "no such model" in str(failure(lambda: ask(made)))
    assert [seen.headers["authorization"] for seen in server.requests] == ["Bearer other"] * 2


def test_no_model_is_made_where_none_is_set() -> None:
    assert chat_from(Settings(), {}) is None and embedder_from(Settings(), {}) is None


KEY = "canary-5f2e9b1c77d04a-key"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 200])
def test_the_key_is_in_no_error_no_log_and_no_name(status: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echoed = error(f"{KEY[:9]}*****{KEY[-4:]}: bad key in 'Bearer {KEY}' of {'x' * 200} {KEY}", param=KEY)
    with openai_server(script=[(status, {"X-Echo": KEY}, echoed)] * 9) as server:
        model = chat(server, environ={"OPENAI_API_KEY": KEY}, max_retries=2)
        failed = failure(lambda: ask(model, max_output=5, on_text=print))
    shown = "".join(traceback.format_exception(failed)) + repr(failed) + repr(model) + caplog.text
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}" and "selector" in caplog.text
    assert KEY not in shown and KEY[:9] not in shown and KEY[-8:] not in shown
    assert failed.__context__ is None and failed.__cause__ is None


def test_a_key_that_cannot_be_sent_is_told_without_being_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with openai_server() as server:
        failed = failure(lambda: ask(chat(server, environ={"OPENAI_API_KEY": f"{KEY}\nsecond"})))
    assert failed.final and "OPENAI_API_KEY" in failed.next_move and server.stats["calls"] == 0
    assert KEY not in "".join(traceback.format_exception(failed)) + caplog.text


def test_an_error_does_not_repeat_the_prompt() -> None:
    secret = "The treasure of Captain Aldous lies under the third stone of the old harbour wall."
    with openai_server(script=[(400, {}, error(f"Could not parse: {secret[10:75]}"))]) as server:
        failed = failure(lambda: ask(chat(server), [Message("user", f"Text: {secret}")]))
    assert "third stone" not in str(failed) and "repeats the prompt" in failed.what


def test_a_login_in_the_address_is_used_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with openai_server(script=[(500, {}, error(f"no {KEY}")), None, (404, {}, error("not here"))]) as server:
        model = chat(server, base_url=server.url.replace("//", f"//me:{KEY}@"))
        ask(model)
        failed = failure(lambda: ask(model))
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert KEY not in "".join(traceback.format_exception(failed)) + caplog.text and "127.0.0.1" in str(failed)
