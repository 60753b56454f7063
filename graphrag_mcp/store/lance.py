"""LanceDB, imported without what is never used here.

Takes nothing; gives the module `lancedb`. By itself it imports `lance_namespace` and builds several hundred pydantic
models of a REST API, for connections that are never made here, and pandas.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from graphrag_mcp.lean import imported

# A server that commits all day puts every version it ever opened into these caches, and Lance's own limits are 6 GB and
# 1 GB: half an hour of notes took 1 GB. Searches over 105,000 entities fill 32 MB of the two together. What they hold
# takes twice what they count. Both are shared by all corpora of the process.
INDEX_CACHE, METADATA_CACHE = 32 << 20, 16 << 20
UNUSED = ("lance_namespace", "lance_namespace_urllib3_client")


def lancedb() -> Any:
    """The module, imported at the first call; as it is when somebody has imported it before."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else Lance writes warnings to stderr; read when it is imported
    imported("pyarrow.dataset", missing=("pandas",))  # it only looks whether that is there
    return imported("lancedb", stand_ins=UNUSED)


@lru_cache(maxsize=1)
def session() -> Any:
    """What all connections of this process share."""
    return lancedb().Session(index_cache_size_bytes=INDEX_CACHE, metadata_cache_size_bytes=METADATA_CACHE)
