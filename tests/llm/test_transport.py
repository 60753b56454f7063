"""Models when things go wrong, over real HTTP: what is tried again, what ends a run, what an error may not show; and the
pace at which calls begin, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
import time
import traceback
from collections.abc import Coroutine
from email.utils import formatdate
from itertools import count
from typing import Any

import pytest

from graphrag_mcp.llm.openai_chat import OpenAIChat
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.transport import Pace
from graphrag_mcp.settings import Settings
from tests.llm.test_openai_chat import SCHEMA, Clock, ask, chat, embed, embedder, failure
from tests.support.openai_server import error, openai_server

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


@pytest.mark.parametrize(
    ("status", "said"),
    [(500, "input (800 tokens) is too large to process"), (501, "This server does not support embeddings"), (413, "`inputs` must have less than 512 tokens")],
)  # fmt: skip
def test_what_no_second_try_can_mend_is_not_tried_again(status: int, said: str) -> None:
    with openai_server(script=[(status, {}, error(said))] * 2) as server:
        failed = failure(lambda: embed(embedder(server, json_mode="none"), "a"))
    assert said in failed.what and server.stats["calls"] == 1
    assert failed.divisible == (status != 501)


@pytest.mark.parametrize("trouble", ["hang", "drip"])
def test_a_server_that_hangs_is_left_after_the_timeout(trouble: str) -> None:
    with openai_server(script=[trouble]) as server:
        assert ask(chat(server, timeout_seconds=0.3)).text
        assert server.stats["calls"] >= 2, "the call that hung was left, a later one answered"


def test_waits_grow_up_to_half_a_minute_and_end_with_the_tries() -> None:
    clock = Clock()
    with openai_server(script=[500] * 20) as server:
        failed = failure(lambda: ask(chat(server, clock, max_retries=9)))
    assert server.stats["calls"] == 10 and not failed.final and "500" in failed.what
    assert all(wait <= min(30, 0.5 * 2**tried) for tried, wait in enumerate(clock.waits))
    assert len(set(clock.waits)) > 5 and sum(clock.waits) > 5  # jitter


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


def test_a_server_that_was_never_there_ends_it_for_good_one_that_went_away_does_not() -> None:
    with openai_server() as server:
        model = chat(server, max_retries=1)
        ask(model)
    went = failure(lambda: ask(model))
    never = failure(lambda: ask(chat(server, max_retries=1)))
    assert not went.final and never.final and "cannot be reached" in never.what


def test_without_a_key_the_providers_own_address_is_not_called_and_a_local_one_is() -> None:
    made = OpenAIChat(Settings(chat_model="m", api_key_variable="MY_KEY"), {"OPENAI_API_KEY": "k"}, Pace())
    failed = failure(lambda: ask(made))
    assert failed.final and "MY_KEY" in failed.next_move
    with openai_server() as server:
        ask(chat(server))
        ask(chat(server, environ={"MY_KEY": " my-key\n"}, api_key_variable="MY_KEY"))
    assert [seen.headers["authorization"] for seen in server.requests] == ["Bearer none", "Bearer my-key"]


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


def test_a_login_in_the_address_is_used_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with openai_server(script=[(500, {}, error(f"no {KEY}")), None, (404, {}, error("not here"))]) as server:
        model = chat(server, base_url=server.url.replace("//", f"//me:{KEY}@"))
        ask(model)
        failed = failure(lambda: ask(model))
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert KEY not in "".join(traceback.format_exception(failed)) + caplog.text and "127.0.0.1" in str(failed)


# ---- the pace -----------------------------------------------------------------------------------------


class Time:
    """Time that passes only when everybody waits for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, asyncio.Future[None]]] = []
        self._number = count()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        done = asyncio.get_running_loop().create_future()
        heapq.heappush(self._due, (self.now + seconds, next(self._number), done))
        await done

    async def _drive(self, work: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.create_task(work)
        while not task.done():
            for _ in range(8):
                await asyncio.sleep(0)
            if self._due and not task.done():
                at, _, done = heapq.heappop(self._due)
                self.now = max(self.now, at)
                if not done.done():
                    done.set_result(None)
        return task.result()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(self._drive(work), 10))

    def pace(self, *numbers: int) -> Pace:
        return Pace(*numbers, clock=self.clock, sleep=self.sleep)


def begun(time: Time, pace: Pace, calls: list[int]) -> list[tuple[float, int]]:
    """When each of the calls (by tokens), all wanted at once, began."""
    starts: list[tuple[float, int]] = []

    async def call(tokens: int) -> None:
        await pace.turn(tokens)
        starts.append((time.now, tokens))

    async def everything() -> None:
        await asyncio.gather(*map(call, calls))

    time.run(everything())
    return starts


def most_in_a_minute(starts: list[tuple[float, int]]) -> int:
    return max(sum(amount for at, amount in starts if begin <= at < begin + 60 - 1e-6) for begin, _ in starts)


@pytest.mark.parametrize("limit", [1, 7, 60, 100])
def test_requests_keep_their_limit_in_every_minute_and_use_it_up(limit: int) -> None:
    time = Time()
    starts = [(at, 1) for at, _ in begun(time, time.pace(limit), [0] * (3 * limit))]
    assert most_in_a_minute(starts) <= limit
    assert starts[-1][0] <= 3 * 60


def test_tokens_keep_their_limit_in_every_minute_whatever_the_sizes() -> None:
    time = Time()
    sizes = random.Random(3).choices([50, 400, 900, 2500], k=60)
    starts = begun(time, time.pace(0, 10_000), sizes)
    assert most_in_a_minute(starts) <= 10_000 + max(sizes)
    assert sum(sizes) / (starts[-1][0] / 60 + 1) > 7_000  # and not far below it


def test_what_a_call_really_took_counts_instead_of_its_estimate() -> None:
    time, starts = Time(), []
    pace = time.pace(0, 600)

    async def everything(used: int) -> None:
        for _ in range(3):
            await pace.turn(100)
            starts.append(time.now)
            pace.correct(100, used)

    time.run(everything(0))
    assert starts == [0, 0, 0]
    starts.clear()
    time.run(everything(50))
    assert starts == [0, 5, 10]


def test_an_error_does_not_repeat_the_prompt() -> None:
    secret = "The treasure of Captain Aldous lies under the third stone of the old harbour wall."
    with openai_server(script=[(400, {}, error(f"Could not parse: {secret[10:75]}"))]) as server:
        failed = failure(lambda: ask(chat(server), [Message("user", f"Text: {secret}")]))
    assert "third stone" not in str(failed) and "repeats the prompt" in failed.what
