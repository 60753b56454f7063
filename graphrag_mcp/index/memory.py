"""The limit on the memory of a process that indexes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphrag_mcp.errors import OutOfMemory

# Seconds between two looks at the memory, and how many times its limit ends the process.
WATCH_EVERY, TOO_MUCH = 0.1, 1.5


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def limited(
    megabytes: int, cancelled: Callable[[], bool], ended: Callable[[str], object] | None = None
) -> Iterator[Callable[[], bool]]:
    """`cancelled`, which raises OutOfMemory once the process has held more than `megabytes`; 0 is
    no limit. `ended`: told why, before the process ends because it held half as much again and did
    not stop by itself. Both leave the index as it was at its last commit."""
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
        while not done.wait(WATCH_EVERY):
            resident_bytes = resident()
            if resident_bytes > megabytes * 1_000_000:
                over.set()
            if ended is not None and resident_bytes > megabytes * 1_000_000 * TOO_MUCH:
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
