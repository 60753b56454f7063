"""Vectors of passages and entities, made at the end of a run.

A commit that replaces a row takes its vector away, so a row without one is a row to embed. What
could not be embedded has none, and the next run finds it missing."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import islice
from typing import Any

import pyarrow as pa

from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import VECTOR_FORM, VECTORS
from graphrag_mcp.store.tables import Change, Snapshot, values_of
from graphrag_mcp.text.terms import written_language
from graphrag_mcp.trust.fencing import masked

Row = Mapping[str, Any]
LONGEST = 8_000  # characters of a text that are embedded; models cut at 512 to 8,192 tokens
BATCH = 1_000  # rows between two signs of progress: half a minute of a model in this process
AHEAD = 2  # batches that are asked for before the first is taken
COLUMNS = {"passages": ["id", "title", "text"], "entities": ["id", "title", "description"]}


def missing(snapshot: Snapshot | None) -> int:
    """How many rows have no vector."""
    if snapshot is None:
        return 0
    return sum(snapshot.count(table) - snapshot.count(vectors) for table, vectors in VECTORS.items())


def without_others(manifest: Manifest | None, embedding: str) -> Manifest | None:
    """Vectors of another model, of another length or in tables of another form cannot stand beside
    what comes now: all are made again. From the first commit on the manifest names whose they are: who goes back after a
    stop must not take these for others. Vectors of rows that no search compares (an earlier release made them of
    relationships and reports) go as well."""
    parameters = {"embedding": embedding, "vectors": VECTOR_FORM}
    if manifest is None or not embedding:
        return manifest
    same = all(manifest.parameters.get(name, "") == value for name, value in parameters.items())
    stay = set(VECTORS.values()) if same else set[str]()
    kept = {name: version for name, version in manifest.tables.items() if name in stay or not name.endswith("_vectors")}
    return replace(manifest, tables=kept, parameters={**manifest.parameters, **parameters})


class Vectors:
    """The vectors of a table's rows that have none. The first batches are asked for at once, so that the calls
    are on their way while the process does other work; each further one when a batch is taken."""

    def __init__(self, asker: Asker, snapshot: Snapshot, table: str) -> None:
        self._asker, self._table = asker, table
        self._texts = missing_texts(snapshot, (table,))
        self._asked: deque[tuple[dict[str, str], Future[list[bytes | None]]]] = deque()
        for _ in range(AHEAD):
            self._ask()

    def changes(self, take: Callable[[Future[Any]], Any]) -> Iterator[dict[str, Change]]:
        """A batch at a time. `take` waits for a future."""
        while self._asked:
            texts, future = self._asked.popleft()
            vectors = take(future)
            self._ask()
            yield _change(self._table, texts, vectors)

    def _ask(self) -> None:
        for _, texts in islice(self._texts, 1):
            future = self._asker.start(self._asker.embed(list(texts.values())))
            self._asked.append((texts, future))


def missing_texts(snapshot: Snapshot, named: Collection[str] = VECTORS.keys()) -> Iterator[tuple[str, dict[str, str]]]:
    """The table and the texts by id of rows without a vector, BATCH at a time, of the tables named."""
    for table in named:
        vectors = VECTORS[table]
        every: set[str] = set(values_of(snapshot.rows(table, columns=["id"])["id"]))
        left = sorted(every.difference(values_of(snapshot.rows(vectors, columns=["id"])["id"])))
        for start in range(0, len(left), BATCH):
            ids = left[start : start + BATCH]
            rows = snapshot.by_key(table, ids, "id", COLUMNS[table]).to_pylist()
            yield table, {row["id"]: embedded_text(table, row) for row in rows}


def embedded_text(table: str, row: Row) -> str:
    """The words of a row that its vector stands for. No model is sent a key that stands in a text;
    what is said of names was made of texts without."""
    if table == "passages":
        text = masked(f"{row['title']}\n{row['text']}")
    else:
        text = f"{row['title']}: {row['description']}"
    return text[:LONGEST]


def _change(table: str, texts: Mapping[str, str], found: Sequence[bytes | None]) -> dict[str, Change]:
    import numpy as np

    vectors = {id: vector for id, vector in zip(texts, found, strict=True) if vector}
    if not vectors:
        return {}
    raw = b"".join(vectors.values())
    numbers = pa.array(np.frombuffer(raw, "<f4").astype("<f2"))
    shas = [hashlib.sha256(texts[id].encode("utf-8", "replace")).hexdigest()[:32] for id in vectors]
    columns = {
        "id": pa.array(vectors, pa.string()),
        "sha": pa.array(shas, pa.string()),
        "language": pa.array([written_language(texts[id]) for id in vectors], pa.string()),
        # A list of fixed size is what Lance can search.
        "vector": pa.FixedSizeListArray.from_arrays(numbers, len(raw) // 4 // len(vectors)),
    }
    return {VECTORS[table]: Change((), pa.table(columns))}
