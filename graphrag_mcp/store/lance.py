"""LanceDB: its import, connections, event loop and indexes.

Takes folders; gives the module `lancedb`, which takes 1.2 s of CPU to import, and databases."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from graphrag_mcp.errors import Damaged
from graphrag_mcp.store.schema import FULL_TEXT, SCALAR, VECTORS

# A server that commits all day puts every version it ever opened into these caches, and Lance's own
# limits are 6 GB and 1 GB: half an hour of notes took 1 GB. Searches over 105,000 entities are as
# fast with these as with 32 and 16 MB, of which they fill 37. What they hold takes twice what they
# count. Both are shared by all corpora of the process.
INDEX_CACHE, METADATA_CACHE = 24 << 20, 4 << 20
# rows up to which vectors are compared one by one: 5 ms at 60,000 x 384; an index there took 40 s
FLAT = 60_000
REPAIR = "Run graphrag-mcp doctor --repair"
TOGETHER = 1 << 18  # rows that are handed over at once, and so stand in one piece of memory
T = TypeVar("T")
_connections: dict[tuple[str, int, bool], Any] = {}
_connecting = threading.Lock()


def lancedb() -> Any:
    """The module, imported at the first call; as it is when someone has imported it before."""
    os.environ.setdefault(
        "LANCEDB_LOG", "error"
    )  # else Lance writes warnings to stderr; read when it is imported
    import lancedb

    _few_heaps()
    return lancedb


@lru_cache(maxsize=1)
def _few_heaps() -> None:
    """Have glibc keep two heaps, at most 2 MB free at the end of each, and map blocks from 1 MB on
    by themselves. Otherwise each of Lance's threads has a heap that keeps what it frees: indexing
    14,000 documents then holds 766 MB at its peak in place of 628 (docs/dev/decisions.md)."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            libc = ctypes.CDLL("libc.so.6")
            for parameter, value in ((-8, 2), (-1, 2 << 20), (-3, 1 << 20)):  # <malloc.h>
                libc.mallopt(parameter, value)


@lru_cache(maxsize=1)
def session() -> Any:
    """What all connections of this process share."""
    return lancedb().Session(
        index_cache_size_bytes=INDEX_CACHE, metadata_cache_size_bytes=METADATA_CACHE
    )


def connect(folder: Path, reader: bool = False) -> Any:
    """The folder's database, once per process. Readers take the asynchronous one: lancedb's
    synchronous tables fetch the schema three times a query, each a hand-over between threads (3.2
    against 1.7 ms CPU for 20 rows by key)."""
    path = folder / "tables"
    key = (
        str(path),
        path.stat().st_ino,
        reader,
    )  # a corpus deleted and made again must not meet cached versions
    with _connecting:
        if key not in _connections:
            opened = lancedb().connect_async if reader else lancedb().connect
            made = opened(path, session=session())
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
    """All rows. Left to itself LanceDB hands them over by 1,024, each time between two threads:
    half of the CPU of reading 200,000 ids."""
    reader = await query.to_batches(max_batch_length=TOGETHER)
    return pa.Table.from_batches(await reader.read_all(), reader.schema)


async def following(reader: Any) -> pa.RecordBatch | None:
    return await anext(reader, None)


def writable(database: Any, name: str, version: int) -> Any:
    """The table at its latest version, which is made equal to `version` first if a crash left
    others behind it."""
    try:
        table = database.open_table(name)
        if table.version != version:
            table.restore(version)
        return table
    except Exception as error:
        raise Damaged(
            f"table {name} cannot be opened at version {version} ({error})", REPAIR
        ) from error


def indexed(table: Any, name: str) -> None:
    """Index all rows that the table has now, as its kind is looked up (schema.py)."""
    from lancedb.index import FTS, BTree, IvfPq

    if name in VECTORS.values() and table.count_rows() > FLAT:
        table.create_index("vector", config=IvfPq(distance_type="cosine"), replace=True)
    for column in SCALAR[name]:
        table.create_index(column, config=BTree(), replace=True)
    if name in FULL_TEXT:
        # Our tokens are separated by spaces already: Lance's filters would lose some.
        config = FTS(
            base_tokenizer="whitespace",
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
            lower_case=False,
            max_token_length=None,
            with_position=False,
        )
        table.create_index(FULL_TEXT[name], config=config, replace=True)


def disconnect(folder: Path) -> None:
    """Forget what is cached of the folder's tables: the next snapshot looks at the disk again."""
    with _connecting:
        for key in [key for key in _connections if key[0] == str(folder / "tables")]:
            del _connections[key]
