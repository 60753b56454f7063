"""Nearest rows by vector: cosine similarity over the vector tables of one generation.

Takes a snapshot, a table and a vector; gives (id, similarity), best first. Tables of up to FLAT rows are kept in
memory as one matrix (a search costs 2 ms at 20,000 x 384), larger ones are searched by Lance. Knows no model.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import FLAT, Snapshot

_matrices: WeakKeyDictionary[Snapshot, dict[str, tuple[list[str], Any]]] = WeakKeyDictionary()
_lock = threading.Lock()


def nearest(snapshot: Snapshot, table: str, vector: bytes, limit: int) -> list[tuple[str, float]]:
    """At most `limit` rows of `table` whose vectors point the same way as `vector` (float32 bytes); [] when there are
    none, or of another dimension: another model made them, and the next indexing replaces them."""
    import numpy as np

    wanted = np.frombuffer(vector, "<f4")
    norm = float(np.linalg.norm(wanted))
    name = VECTORS[table]
    count = snapshot.count(name)
    if not count or not norm or limit < 1:
        return []
    if count > FLAT:
        return snapshot.nearest(name, wanted / norm, limit)
    ids, matrix = _matrix(snapshot, name)
    if matrix.shape[1] != len(wanted):
        return []
    scores = matrix @ (wanted / norm)
    best = np.argpartition(-scores, min(limit, count) - 1)[:limit]
    found = [(ids[at], round(float(scores[at]), 6)) for at in best]
    return sorted(found, key=lambda one: (-one[1], one[0]))


def _matrix(snapshot: Snapshot, name: str) -> tuple[list[str], Any]:
    """The ids and unit vectors of a whole table, read once a snapshot."""
    import numpy as np

    with _lock:
        held = _matrices.setdefault(snapshot, {})
        if name not in held:
            rows = snapshot.rows(name, columns=["id", "vector"]).combine_chunks()
            column = rows["vector"].combine_chunks() if isinstance(rows["vector"], pa.ChunkedArray) else rows["vector"]
            matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(rows.num_rows, -1).astype("<f4")
            lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
            held[name] = (rows["id"].to_pylist(), matrix / np.where(lengths == 0, 1, lengths))
        return held[name]
