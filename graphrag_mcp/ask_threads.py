"""Threads of the asker: the one its loop lives in, and those that compute beside it.

Takes a loop, and work of milliseconds; gives the loop a life with an orderly end, and the work's result. Knows no
question, no model and no book.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")
# Replies have a thread of their own: one that waits behind the prompts of two hundred reports is not in the book yet.
READS, _ASIDE = ThreadPoolExecutor(1, "asker-reads"), ThreadPoolExecutor(1, "asker-writes")


async def aside(work: Callable[..., R], *given: Any, where: ThreadPoolExecutor = _ASIDE) -> R:
    """The result of a computation of milliseconds, made beside the loop: in it, every call under way would wait for it
    before its reply is taken and the next question goes out (a quarter of the wall time on a busy machine)."""
    return await asyncio.get_running_loop().run_in_executor(where, work, *given)


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """With an orderly end: a loop that is only stopped keeps its sockets and threads."""
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
