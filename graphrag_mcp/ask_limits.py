"""What holds an asker back: how many calls at once, and where a run stops.

Takes numbers from the settings; gives turns and an account of what was spent. Knows no model and no question.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.errors import ModelError


@dataclass
class Spent:
    """What was asked of models in the life of one asker. `by_stage`: the same by kind of question."""

    calls: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    by_stage: dict[str, Counter[str]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        total: dict[str, Any] = {
            "calls": self.calls, "prompt_tokens": self.prompt_tokens, "output_tokens": self.output_tokens,
        }  # fmt: skip
        if self.cost:
            total["cost"] = round(self.cost, 6)
        return total | {"by_stage": {kind: dict(counts) for kind, counts in sorted(self.by_stage.items())}}


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a run stops, 0 for nowhere; prices are per million tokens."""

    max_calls: int = 0
    max_tokens: int = 0
    max_cost: float = 0.0
    price_prompt: float = 0.0
    price_output: float = 0.0
    price_embedding: float = 0.0

    def spent(self, spent: Spent) -> bool:
        tokens = spent.prompt_tokens + spent.output_tokens
        return bool(
            (self.max_calls and spent.calls >= self.max_calls)
            or (self.max_tokens and tokens >= self.max_tokens)
            or (self.max_cost and spent.cost >= self.max_cost)
        )


def batches(texts: Mapping[str, str], most: int, characters: int) -> list[dict[str, str]]:
    """Texts by key in calls of at most so many texts and characters; one that is longer goes alone."""
    found: list[dict[str, str]] = []
    size = 0
    for key, text in texts.items():
        if not found or len(found[-1]) >= most or size + len(text) > characters:
            found.append({})
            size = 0
        found[-1][key] = text
        size += len(text)
    return found


class Gate:
    """So many at once; of those who wait, the lowest number first, then the first come. Only for one event loop."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._queue: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = 0

    def slot(self, priority: int) -> _Slot:
        return _Slot(self, priority)

    async def enter(self, priority: int) -> None:
        if self._free > 0:
            self._free -= 1
            return
        self._tickets += 1
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._queue, (priority, self._tickets, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the place had been given to us already
            raise

    def leave(self) -> None:
        while self._queue:
            *_, turn = heapq.heappop(self._queue)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


@dataclass(frozen=True, slots=True)
class _Slot:
    gate: Gate
    priority: int

    async def __aenter__(self) -> None:
        await self.gate.enter(self.priority)

    async def __aexit__(self, *_: object) -> None:
        self.gate.leave()


class Streak:
    """Calls in a row that gave up. Nobody may be there any more: then each of thousands would wait through all its
    tries. What MANY gave up, and twice as many as are under way at once (`places`), is given up for all; with 0 places,
    as in a server that lives on, never."""

    MANY = 50

    def __init__(self, places: int) -> None:
        self._most, self._count = max(self.MANY, 2 * places) if places else 0, 0

    def failed(self, error: ModelError) -> bool:
        """One more; is it time to ask nothing more? Who refuses one text is there for the others."""
        self._count = 0 if error.divisible else self._count + 1
        return bool(self._most) and self._count >= self._most

    def ended(self) -> None:
        self._count = 0


def other_length(model: str, now: int, before: int) -> str:
    what = f"the embedding model {model!r} gave vectors of {now} numbers, and those of this index have {before}. "
    return f"{what}Use the model that made them, or set embedding_dimensions to {now} to make all of them anew."
