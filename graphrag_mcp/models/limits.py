"""How many calls may be under way, and how fast they may begin.

Takes the three limits of the settings; gives `slot`, entered around every attempt of a call. One object serves any
number of models, event loops and threads, so that a process as a whole keeps its limits. Knows no model and no HTTP.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar

# Set by whoever asks (each task has its own): a person's question goes before the calls of a long run.
PRIORITY: ContextVar[float] = ContextVar("priority", default=0)

MINUTE = 60.0
# So much of a minute may be used at once; after that calls begin at an even pace. A run that used up its minute in the
# first seconds would leave a person's question waiting for the rest of it.
AT_ONCE = 10.0


class Turn:
    """One call under way. Set `used` to the tokens that it really took; until then its estimate counts."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0


class _Rate:
    """At most `limit` of something in any 60 seconds, evenly. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun: deque[list[float]] = deque()  # [when, amount] of what still counts, oldest first
        self._sum = 0.0
        self._paid = 0.0  # up to when the limit is used up, at an even pace

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may begin. More than the whole limit may when nothing else counts any more."""
        while self._begun and self._counts_until(self._begun[0]) <= now:
            self._sum -= self._begun.popleft()[1]
        over = self._sum + amount - self._limit
        until = max(now, self._paid - AT_ONCE)
        for entry in self._begun:
            if over <= 1e-9:
                break
            over -= entry[1]
            until = max(until, self._counts_until(entry))
        return until - now

    def begin(self, amount: float, now: float) -> list[float]:
        entry = [now, amount]
        self._begun.append(entry)
        self._sum += amount
        self._paid = max(self._paid, now) + MINUTE * amount / self._limit
        return entry

    def correct(self, entry: list[float], amount: float) -> None:
        if any(one is entry for one in self._begun):
            self._sum += amount - entry[1]
            self._paid += MINUTE * (amount - entry[1]) / self._limit
            entry[1] = amount

    def _counts_until(self, entry: list[float]) -> float:
        return entry[0] + MINUTE * max(1.0, entry[1] / self._limit)


class _Waiter:
    """A place in the queue; the smallest (priority, number) is served first."""

    __slots__ = ("loop", "order", "woken")

    def __init__(self, order: tuple[float, int]) -> None:
        self.order, self.loop = order, asyncio.get_running_loop()
        self.woken: asyncio.Future[None] | None = None

    def __lt__(self, other: _Waiter) -> bool:
        return self.order < other.order


class Limits:
    """At most `concurrency` calls at once, and at most so many requests and tokens in any 60 seconds (0: no limit)."""

    def __init__(
        self, concurrency: int, requests_per_minute: int = 0, tokens_per_minute: int = 0, *,
        clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        self.counts_tokens = tokens_per_minute > 0  # else nobody need count a prompt
        self.sleep = sleep
        self._clock = clock
        self._free = max(1, concurrency)
        self._requests = _Rate(requests_per_minute) if requests_per_minute > 0 else None
        self._tokens = _Rate(tokens_per_minute) if tokens_per_minute > 0 else None
        self._rest_until = 0.0
        self._lock = threading.Lock()
        self._queue: list[_Waiter] = []
        self._number = 0

    @asynccontextmanager
    async def slot(self, tokens: int = 0, priority: float | None = None) -> AsyncIterator[Turn]:
        """Inside, the call counts as under way. The lower priority first, then who came first."""
        begun = await self._enter(max(0, tokens), PRIORITY.get() if priority is None else priority)
        turn = Turn()
        try:
            yield turn
        finally:
            with self._lock:
                if turn.used and self._tokens and begun:
                    self._tokens.correct(begun, turn.used)
                self._free += 1
                self._wake_first()

    def rest(self, seconds: float) -> None:
        """Nobody begins for so long: the provider said that there is too much, and more calls would only fail too."""
        with self._lock:
            self._rest_until = max(self._rest_until, self._clock() + seconds)

    async def _enter(self, tokens: int, priority: float) -> list[float]:
        with self._lock:
            self._number += 1
            me = _Waiter((priority, self._number))
            heapq.heappush(self._queue, me)
        try:
            while True:
                with self._lock:
                    wait = 0.0
                    if first := self._free > 0 and self._queue[0] is me:
                        now = self._clock()
                        wait = self._wait(tokens, now)
                        if wait <= 0:
                            self._free -= 1
                            if self._requests:
                                self._requests.begin(1, now)
                            return self._tokens.begin(tokens, now) if self._tokens else []
                    else:
                        me.woken = me.loop.create_future()
                if first:
                    await self.sleep(wait)
                else:
                    await me.woken
        finally:  # begun or cancelled: either way the next one looks whether it may begin
            with self._lock:
                if self._queue[0] is me:
                    heapq.heappop(self._queue)
                else:
                    self._queue.remove(me)
                    heapq.heapify(self._queue)
                self._wake_first()

    def _wait(self, tokens: int, now: float) -> float:
        requests = self._requests.wait(1, now) if self._requests else 0.0
        return max(self._rest_until - now, requests, self._tokens.wait(tokens, now) if self._tokens else 0.0)

    def _wake_first(self) -> None:
        """The first in the queue looks again. It takes its slot itself, so one that is cancelled takes none along."""
        while self._queue and self._queue[0].loop.is_closed():
            heapq.heappop(self._queue)  # its loop ended without it
        if self._queue and self._free > 0:
            waiter = self._queue[0]
            if (woken := waiter.woken) is not None:
                waiter.woken = None
                with suppress(RuntimeError):  # the loop closes just now
                    waiter.loop.call_soon_threadsafe(lambda: woken.done() or woken.set_result(None))
