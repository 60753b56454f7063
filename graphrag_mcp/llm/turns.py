"""How many calls of models are under way at once, and which of those that wait goes next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

QUESTIONS, VECTORS = 0, 1  # a question goes before vectors: its reply may bring further questions


class Turns:
    """At most `most` calls at once, of one event loop. A call that ends gives its place to the first that
    waits, so that none that comes meanwhile takes it."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())

    @asynccontextmanager
    async def turn(self, kind: int) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            place = asyncio.get_running_loop().create_future()
            self._waiting[kind].append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():  # it was given before it was cancelled
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        for waiting in self._waiting:
            while waiting:
                place = waiting.popleft()
                if not place.done():
                    place.set_result(None)
                    return
        self._free += 1
