"""LanceDB, imported without what is never used here, its connections, and the loop that its reads run in.

Takes folders; gives the module `lancedb` and databases. By itself it imports `lance_namespace` and builds several
hundred pydantic models of a REST API, for connections that are never made here, and pandas.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from graphrag_mcp.lean import imported

# A server that commits all day puts every version it ever opened into these caches, and Lance's own limits are 6 GB and
# 1 GB: half an hour of notes took 1 GB. Searches over 105,000 entities are as fast with these as with 32 and 16 MB, of
# which they fill 37. What they hold takes twice what they count. Both are shared by all corpora of the process.
INDEX_CACHE, METADATA_CACHE = 24 << 20, 4 << 20
TOGETHER = 1 << 16  # rows that are handed over at once
T = TypeVar("T")
_connections: dict[tuple[str, int, bool], Any] = {}
_connecting = threading.Lock()
UNUSED = ("lance_namespace", "lance_namespace_urllib3_client")
# Before Python 3.12 lancedb marks its methods by a package that compares each with what it overrides: 0.12 of 0.4 s.
UNCHECKED = {"overrides": {"override": lambda method: method, "EnforceOverrides": type("EnforceOverrides", (), {})}}


def lancedb() -> Any:
    """The module, imported at the first call; as it is when somebody has imported it before."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else Lance writes warnings to stderr; read when it is imported
    imported("pyarrow.dataset", missing=("pandas",))  # it only looks whether that is there
    return imported("lancedb", stand_ins=UNUSED, instead=UNCHECKED)


@lru_cache(maxsize=1)
def session() -> Any:
    """What all connections of this process share."""
    return lancedb().Session(index_cache_size_bytes=INDEX_CACHE, metadata_cache_size_bytes=METADATA_CACHE)


def connect(folder: Path, reader: bool = False) -> Any:
    """The folder's database, once per process. Readers take the asynchronous one: lancedb's synchronous tables fetch
    the schema three times a query, each a hand-over between threads (3.2 against 1.7 ms CPU for 20 rows by key)."""
    path = folder / "tables"
    key = (str(path), path.stat().st_ino, reader)  # a corpus deleted and made again must not meet cached versions
    with _connecting:
        if key not in _connections:
            made = (lancedb().connect_async if reader else lancedb().connect)(path, session=session())
            _connections[key] = wait(made) if reader else made
        return _connections[key]


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own answers the reads of all threads."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="lance-reads", daemon=True).start()
    return loop


def wait(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


async def collected(query: Any) -> pa.Table:
    """All rows. Left to itself LanceDB hands them over by 1,024, each time between two threads: half of the CPU of
    reading 200,000 ids."""
    reader = await query.to_batches(max_batch_length=TOGETHER)
    return pa.Table.from_batches(await reader.read_all(), reader.schema)


async def following(reader: Any) -> pa.RecordBatch | None:
    return await anext(reader, None)


def disconnect(folder: Path) -> None:
    """Forget what is cached of the folder's tables: the next snapshot looks at the disk again."""
    with _connecting:
        for key in [key for key in _connections if key[0] == str(folder / "tables")]:
            del _connections[key]
