"""Which call goes next."""

from __future__ import annotations

import asyncio

from graphrag_mcp.llm.turns import QUESTIONS, VECTORS, Turns


def test_of_those_that_wait_questions_go_before_vectors_and_each_kind_in_its_order() -> None:
    begun: list[str] = []

    async def call(turns: Turns, kind: int, name: str) -> None:
        async with turns.turn(kind):
            begun.append(name)
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        turns = Turns(1)
        waiting = [(VECTORS, "v1"), (VECTORS, "v2"), (QUESTIONS, "q1"), (VECTORS, "v3"), (QUESTIONS, "q2")]
        await asyncio.gather(*(call(turns, *one) for one in waiting))

    asyncio.run(all_of_them())
    assert begun == ["v1", "q1", "q2", "v2", "v3"]


def test_a_place_is_not_lost_with_a_call_that_is_cancelled_before_or_after_it_was_given() -> None:
    async def held(turns: Turns, until: asyncio.Event) -> None:
        async with turns.turn(QUESTIONS):
            await until.wait()

    async def places_left() -> int:
        turns, end = Turns(2), asyncio.Event()
        calls = [asyncio.create_task(held(turns, end)) for _ in range(4)]
        await asyncio.sleep(0)
        calls[2].cancel()  # it waits
        await asyncio.sleep(0)
        calls[0].cancel()  # it has a place, which the last one is given
        await asyncio.sleep(0)
        calls[3].cancel()  # it has been given the place and does not know it yet
        await asyncio.gather(*calls[:1], *calls[2:], return_exceptions=True)
        end.set()
        await calls[1]
        most = under_way = 0

        async def counted() -> None:
            nonlocal most, under_way
            async with turns.turn(VECTORS):
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)
                under_way -= 1

        await asyncio.gather(*(counted() for _ in range(5)))
        return most

    assert asyncio.run(places_left()) == 2
