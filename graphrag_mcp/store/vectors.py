"""Nearest rows by cosine similarity. Tables of up to FLAT rows are kept in memory as one matrix (2
ms at 20,000 x 384), larger ones are searched by Lance."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import FLAT, Snapshot

# Digits of a similarity that are kept: the same text embedded in another batch differs in the
# seventh.
DIGITS = 5

Matrix = tuple[list[str], dict[str, int], Any]
_matrices: WeakKeyDictionary[Snapshot, dict[str, Matrix]] = WeakKeyDictionary()
_lock = threading.Lock()


def nearest(snapshot: Snapshot, table: str, vector: bytes, limit: int) -> list[tuple[str, float]]:
    """At most `limit` rows of `table` whose vectors point the same way as `vector` (float32 bytes);
    [] when there are none, or of another dimension: another model made them, and the next indexing
    replaces them."""
    found = similarities(snapshot, table, vector, limit)
    return sorted(found.items(), key=lambda one: (-one[1], one[0]))


def similarities(
    snapshot: Snapshot,
    table: str,
    vector: bytes,
    limit: int,
    also: Sequence[str] = (),
    flat: int = FLAT,
) -> dict[str, float]:
    """The similarity of the `limit` nearest rows, and of those in `also` that have a vector, by id.
    Tables of more than `flat` rows are left to Lance."""
    import numpy as np

    wanted = np.frombuffer(vector, "<f4")
    norm = float(np.linalg.norm(wanted))
    name = VECTORS[table]
    count = snapshot.count(name)
    if not count or not norm or limit < 1:
        return {}
    wanted = wanted / norm
    if count > flat:
        return _searched(snapshot, name, wanted, limit, also)
    ids, places, matrix = _matrix(snapshot, name)
    if matrix.shape[1] != len(wanted):
        return {}
    scores = _compared(matrix, wanted)
    if limit < count:
        # Of rows that are equally near, those whose ids come first, whatever their order in the
        # table.
        edge = np.partition(scores, count - limit)[count - limit]
        inside = np.flatnonzero(scores > edge).tolist()
        ties = sorted(np.flatnonzero(scores == edge).tolist(), key=ids.__getitem__)
        chosen = inside + ties[: limit - len(inside)]
    else:
        chosen = list(range(count))
    chosen += [places[id] for id in also if id in places]
    return {ids[at]: round(float(scores[at]), DIGITS) for at in chosen}


def _searched(
    snapshot: Snapshot, name: str, wanted: Any, limit: int, also: Sequence[str]
) -> dict[str, float]:
    """The same by Lance's index; the rows of `also` are read and compared here."""
    one = snapshot.rows(name, columns=["id", "vector"], limit=1)
    if _unit(one).shape[1] != len(wanted):
        return {}
    found = {id: round(score, DIGITS) for id, score in snapshot.nearest(name, wanted, limit)}
    missing = [id for id in also if id not in found]
    rows = snapshot.by_key(name, missing, "id", ["id", "vector"])
    if found and rows.num_rows:
        scores = (round(score, DIGITS) for score in _compared(_unit(rows), wanted).tolist())
        found |= dict(zip(rows["id"].to_pylist(), scores, strict=True))
    return found


def _compared(matrix: Any, wanted: Any) -> Any:
    """Not by `@`: that wakes a thread per core for a task of 2 ms, and its sums depend on how many
    there are."""
    import numpy as np

    return np.round(np.einsum("ij,j->i", matrix, wanted), DIGITS)


def _matrix(snapshot: Snapshot, name: str) -> Matrix:
    """The ids, their places and the unit vectors of a whole table, read once a snapshot."""
    with _lock:
        held = _matrices.setdefault(snapshot, {})
        if name not in held:
            rows = snapshot.rows(name, columns=["id", "vector"])
            ids = rows["id"].to_pylist()
            held[name] = (ids, {id: at for at, id in enumerate(ids)}, _unit(rows))
        return held[name]


def _unit(rows: pa.Table) -> Any:
    import numpy as np

    numbers = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    matrix = numbers.reshape(rows.num_rows, -1).astype("<f4")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths == 0, 1, lengths)
