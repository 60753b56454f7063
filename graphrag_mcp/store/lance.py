"""LanceDB, imported without what is never used here.

Takes nothing; gives the module `lancedb`. By itself it imports `lance_namespace` and builds several hundred pydantic
models of a REST API, for connections that are never made here, and pandas.
"""

from __future__ import annotations

import os
from typing import Any

from graphrag_mcp.lean import imported

UNUSED = ("lance_namespace", "lance_namespace_urllib3_client")


def lancedb() -> Any:
    """The module, imported at the first call; as it is when somebody has imported it before."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else Lance writes warnings to stderr; read when it is imported
    imported("pyarrow.dataset", missing=("pandas",))  # it only looks whether that is there
    return imported("lancedb", stand_ins=UNUSED)
