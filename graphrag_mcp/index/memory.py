"""A limit of the memory that indexing may take: watched by a thread, told as an error.

Takes a number of megabytes and the process's resident memory as the system tells it (Linux; where
it does not, nothing is limited). Over the limit the next look for a cancelled call raises
OutOfMemory. What is over it by half is not left to the system's choice of whom to end: the process
ends by itself, where its caller has said how to tell why. Both leave the index as it was at its
last commit.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphrag_mcp.errors import OutOfMemory

LOOK_EVERY = 0.1  # seconds
TOO_MUCH = 1.5  # times the limit, at which the process ends
Cancelled = Callable[[], bool]


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def limited(
    megabytes: int, cancelled: Cancelled, ended: Callable[[str], object] | None = None
) -> Iterator[Cancelled]:
    """`cancelled`, which raises OutOfMemory once the process has held more than `megabytes`; 0 is
    no limit. `ended`: told why, before the process ends because it did not stop by itself."""
    if not megabytes or not resident():
        yield cancelled
        return
    error = OutOfMemory(
        f"indexing took more than {megabytes:,} MB of memory and was stopped; the index is as it "
        "was at its last commit",
        "Index fewer or smaller files at a time, or raise the setting max_memory",
    )
    over, done = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_EVERY):
            held = resident()
            if held > megabytes * 1_000_000:
                over.set()
            if ended is not None and held > megabytes * 1_000_000 * TOO_MUCH:
                ended(str(error))
                os._exit(1)

    def look() -> bool:
        if over.is_set():
            raise error
        return cancelled()

    threading.Thread(target=watch, name="memory", daemon=True).start()
    try:
        yield look
    finally:
        done.set()
