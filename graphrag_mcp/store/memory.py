"""Memory given back: what an indexing process asks of its allocators.

Takes nothing, gives nothing. Arrow's own pool and glibc's arenas keep what they once had; while an index is written
that is 100 MB of some 500 that nobody uses. Knows no table.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

M_TRIM_THRESHOLD, M_ARENA_MAX = -1, -8  # <malloc.h>
KEPT = 256 * 1024  # bytes of free memory at the top of the heap that are kept for later
ARENAS = 2  # threads share so many heaps instead of one each (up to eight a core)


def thrifty() -> None:
    """From now on free memory goes back to the system. Does nothing where there is no glibc."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            c = ctypes.CDLL("libc.so.6")
            c.mallopt(M_ARENA_MAX, ARENAS)
            c.mallopt(M_TRIM_THRESHOLD, KEPT)
