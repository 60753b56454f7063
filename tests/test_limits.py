"""How many model calls run at once and how fast they begin, on a clock that the test moves; what thinking is removed."""

from __future__ import annotations

import asyncio
import heapq
import random
import threading
from collections.abc import Coroutine
from itertools import count
from typing import Any

import pytest

from graphrag_mcp.llm.openai_chat import Screen, without_thinking
from graphrag_mcp.llm.transport import PRIORITY, Limits
from tests.support.workload import linear


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

    def limits(self, *numbers: int) -> Limits:
        return Limits(*numbers, clock=self.clock, sleep=self.sleep)


def begun(time: Time, limits: Limits, calls: list[int], lasting: float = 1.0) -> list[tuple[float, int]]:
    """When each of the calls (by tokens), all wanted at once, began."""
    starts: list[tuple[float, int]] = []

    async def call(tokens: int) -> None:
        async with limits.slot(tokens):
            starts.append((time.now, tokens))
            await time.sleep(lasting)

    async def everything() -> None:
        await asyncio.gather(*map(call, calls))

    time.run(everything())
    return starts


def most_in_a_minute(starts: list[tuple[float, int]]) -> int:
    return max(sum(amount for at, amount in starts if begin <= at < begin + 60) for begin, _ in starts)


def test_never_more_than_the_limit_is_in_flight_and_no_slot_is_left_unused() -> None:
    time = Time()
    starts = begun(time, time.limits(4), [1] * 10, lasting=2.0)
    assert [at for at, _ in starts] == [0, 0, 0, 0, 2, 2, 2, 2, 4, 4]


@pytest.mark.parametrize("limit", [1, 7, 60, 100])
def test_requests_keep_their_limit_in_every_minute_and_use_it_up(limit: int) -> None:
    time = Time()
    starts = [(at, 1) for at, _ in begun(time, time.limits(25, limit), [0] * (3 * limit))]
    assert most_in_a_minute(starts) <= limit
    assert starts[-1][0] <= 3 * 60


def test_tokens_keep_their_limit_in_every_minute_whatever_the_sizes() -> None:
    time = Time()
    sizes = random.Random(3).choices([50, 400, 900, 2500, 6000], k=60)
    starts = begun(time, time.limits(25, 0, 10_000), sizes)
    assert most_in_a_minute(starts) <= 10_000
    assert sum(sizes) / (starts[-1][0] / 60 + 1) > 7_000  # and not far below it


def test_calls_are_spread_over_the_minute() -> None:
    time = Time()
    starts = begun(time, time.limits(100, 60), [0] * 60)
    assert [sum(at < until for at, _ in starts) for until in (1, 10, 30)] == [11, 20, 40]


def test_a_call_larger_than_the_whole_limit_begins_alone_and_does_not_block_for_ever() -> None:
    time = Time()
    starts = begun(time, time.limits(5, 0, 1000), [100, 3000, 100])
    assert [tokens for _, tokens in starts] == [100, 3000, 100]
    assert starts[1][0] == 60 and starts[2][0] - starts[1][0] == 180  # three minutes' worth


def test_what_a_call_really_took_counts_instead_of_its_estimate() -> None:
    time, starts = Time(), []
    limits = time.limits(1, 0, 600)

    async def everything(used: int) -> None:
        for _ in range(3):
            async with limits.slot(100) as turn:
                starts.append(time.now)
                turn.used = used

    time.run(everything(10))
    assert starts == [0, 0, 0]
    starts.clear()
    time.now = 1000.0
    time.run(everything(500))
    assert starts[1] >= 1040


def test_a_lower_priority_number_goes_first_and_equals_stay_in_order() -> None:
    time, order = Time(), []
    limits = time.limits(1)

    async def call(name: str, priority: float | None = None) -> None:
        async with limits.slot(0, priority):
            order.append(name)
            await time.sleep(1)

    async def person() -> None:
        PRIORITY.set(-1)
        await call("person")

    async def everything() -> None:
        run = [asyncio.create_task(call(f"run {n}")) for n in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(*run, call("later", 5), person(), call("run 3"))

    time.run(everything())
    assert order == ["run 0", "person", "run 1", "run 2", "run 3", "later"]


def test_one_that_arrives_later_may_overtake_one_that_waits_for_its_minute() -> None:
    time, order = Time(), []
    limits = time.limits(5, 1)

    async def call(name: str, priority: float) -> None:
        async with limits.slot(0, priority):
            order.append((name, time.now))

    async def everything() -> None:
        first = [asyncio.create_task(call(f"run {n}", 0)) for n in range(2)]
        await time.sleep(3)
        await asyncio.gather(*first, call("person", -1))

    time.run(everything())
    assert order == [("run 0", 0), ("person", 60), ("run 1", 120)]


def test_a_cancelled_call_takes_no_slot_with_it() -> None:
    time = Time()
    limits = time.limits(1)

    async def call() -> float:
        async with limits.slot():
            await time.sleep(5)
            return time.now

    async def everything() -> list[Any]:
        calls = [asyncio.create_task(call()) for _ in range(5)]
        await time.sleep(1)
        for cancelled in (calls[0], calls[1], calls[3]):  # one under way, two in the queue
            cancelled.cancel()
        return await asyncio.gather(*calls, return_exceptions=True)

    ended = time.run(everything())
    assert [end for end in ended if isinstance(end, float)] == [6.0, 11.0]


def test_nobody_begins_while_the_provider_wants_a_rest() -> None:
    time = Time()
    limits = time.limits(5)
    limits.rest(20)
    assert {at for at, _ in begun(time, limits, [1, 1])} == {20.0}


def test_one_object_serves_several_loops_and_threads() -> None:
    limits, lock, now, most, done = Limits(3), threading.Lock(), [0], [0], [0]

    async def call() -> None:
        async with limits.slot():
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            await asyncio.sleep(0.001)
            with lock:
                now[0] -= 1
                done[0] += 1

    async def many() -> None:
        await asyncio.wait_for(asyncio.gather(*(call() for _ in range(60))), 10)

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    assert (done[0], most[0]) == (240, 3)


# ---- thinking ---------------------------------------------------------------------------------------

THOUGHTS = {
    "no thoughts": ("no thoughts", False),
    "<think>a\nb</think>\n\nAnswer": ("Answer", False),
    "Before <think>x</think>after": ("Before after", False),
    "<THINKING>a</THINKING>{}": ("{}", False),
    "  <think>it never ends": ("", True),
    "<think>a</think> <think>b": ("", True),
    "The tag <think> opens it": ("The tag <think> opens it", False),
    "It began in the prompt.\n</think>\nAnswer": ("Answer", False),
    "One writes </think> to end it": ("One writes </think> to end it", False),
    "<think></think>": ("", False),
}


@pytest.mark.parametrize("said", THOUGHTS)
def test_thinking_is_no_part_of_the_answer(said: str) -> None:
    assert without_thinking(said) == THOUGHTS[said]


def test_the_pieces_of_a_stream_make_up_the_answer_wherever_they_are_cut() -> None:
    chance = random.Random(1)
    bits = ["<think>", "</think>", "word ", "\n", "<", "<th", "</", ">", " "]
    for _ in range(3000):
        said = "Yes" + "".join(chance.choices(bits, k=8)) if chance.random() < 0.3 else "".join(chance.choices(bits, k=8))
        if "</think>" in said.partition("<think>")[0]:
            continue  # thinking that began in the prompt cannot be told before its end
        given: list[str] = []
        screen, at = Screen(given.append), 0
        while at < len(said):
            size = chance.randint(1, 4)
            screen.feed(said[at : at + size])
            at += size
        screen.finish()
        assert (screen.text, screen.cut_off) == without_thinking(said)
        assert "".join(given) == (screen.text if screen.text.strip() else ""), said


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<think>a</think>", "<thin", "<"])
def test_taking_thinking_out_takes_linear_time(piece: str) -> None:
    def read(length: int) -> None:
        text = piece * (length // len(piece))
        without_thinking(text)
        screen = Screen(lambda _: None)
        for at in range(0, len(text), 100):
            screen.feed(text[at : at + 100])
        screen.finish()

    assert linear(read, 10_000, largest=400_000)
