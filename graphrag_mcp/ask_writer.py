"""Answers on their way into the book: durable when a write returns, and those that arrive together in one flush.

Takes answers and vectors on the asker's loop; gives nothing. Whoever waits for a write hears of any failure of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_mcp.store.answers import AnswerBook, Stored


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of one call, by key, and what they cost together."""

    model: str
    vectors: Mapping[str, bytes]
    tokens: int


class Writer:
    """The way into one book; only for one event loop. `task` is at work while something is being written."""

    def __init__(self, book: AnswerBook | None) -> None:
        self._book = book
        self._waiting: list[tuple[Stored | Vectors, asyncio.Future[None]]] = []
        self.task: asyncio.Task[None] | None = None

    async def write(self, entry: Stored | Vectors) -> None:
        """Durable when this returns."""
        if self._book is None:
            return
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.append((entry, written))
        if self.task is None:
            self.task = loop.create_task(self._flush())
        await asyncio.shield(written)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    await asyncio.to_thread(self._put, [entry for entry, _ in batch])
                except Exception as error:  # whatever it is, whoever waits for it must hear of it
                    for _, written in batch:
                        written.set_exception(error)
                    continue
                for _, written in batch:
                    written.set_result(None)
        finally:
            self.task = None

    def _put(self, entries: Sequence[Stored | Vectors]) -> None:
        assert self._book is not None
        answers = [entry for entry in entries if not isinstance(entry, Vectors)]
        if answers:
            self._book.put(answers)
        for entry in entries:
            if isinstance(entry, Vectors):
                self._book.put_vectors(entry.model, entry.vectors, entry.tokens)


def storable(text: str) -> str:
    """Halves of characters replaced, as a reply cut inside one has them: nothing can store them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
