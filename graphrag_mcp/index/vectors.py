"""Vectors of passages and entities, made at the end of a run.

A commit that replaces a row takes its vector away, so a row without one is a row to embed. What
could not be embedded has none, and the next run finds it missing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from threading import Event
from typing import Any

import pyarrow as pa

from graphrag_mcp.llm.asker import Asker, aside
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import VECTOR_FORM, VECTORS
from graphrag_mcp.store.tables import Change, Snapshot, values_of
from graphrag_mcp.text.terms import written_language
from graphrag_mcp.trust.fencing import masked

Row = Mapping[str, Any]
LONGEST = 8_000  # characters of a text that are embedded; models cut at 512 to 8,192 tokens
BATCH = 1_000  # rows between two signs of progress: half a minute of a model in this process
COLUMNS = {"passages": ["id", "title", "text"], "entities": ["id", "title", "description"]}


def missing(snapshot: Snapshot | None) -> int:
    """How many rows have no vector."""
    if snapshot is None:
        return 0
    return sum(
        snapshot.count(table) - snapshot.count(vectors) for table, vectors in VECTORS.items()
    )


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
    kept = {
        name: version
        for name, version in manifest.tables.items()
        if name in stay or not name.endswith("_vectors")
    }
    return replace(manifest, tables=kept, parameters={**manifest.parameters, **parameters})


def embed_missing(
    asker: Asker, snapshot: Snapshot, take: Callable[[Future[Any]], Any]
) -> Iterator[dict[str, Change]]:
    """The vectors of rows that have none, a batch at a time. `take` waits for a future."""
    asked: list[tuple[str, dict[str, str], Future[list[bytes | None]]]] = []
    for table, texts in missing_texts(snapshot):
        asked.append((table, texts, asker.start(asker.embed(list(texts.values())))))
        if len(asked) > 1:  # one is written while the next is under way
            yield _change(*asked.pop(0), take)
    yield from (_change(*batch, take) for batch in asked)


async def ask_ahead(asker: Asker, snapshot: Snapshot, table: str, due: Event) -> None:
    """Have the vectors of a table's rows that have none in the reply cache while other work goes on, until
    they are `due`: `embed_missing` finds them there."""
    batches = (list(texts.values()) for _, texts in missing_texts(snapshot, (table,)))
    while not due.is_set() and (texts := await aside(lambda: next(batches, None))):
        await asker.embed(texts)


def missing_texts(
    snapshot: Snapshot, named: Collection[str] = VECTORS.keys()
) -> Iterator[tuple[str, dict[str, str]]]:
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


def _change(
    table: str,
    texts: Mapping[str, str],
    future: Future[list[bytes | None]],
    take: Callable[[Future[Any]], Any],
) -> dict[str, Change]:
    import numpy as np

    vectors = {id: vector for id, vector in zip(texts, take(future), strict=True) if vector}
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
