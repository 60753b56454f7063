"""Truth: append-only Parquet segments of what cannot be recomputed for free.

Takes and gives `pyarrow.Table`; a segment becomes part of the index only when a manifest names it. Bytes are
checked on every read (page checksums: without the read flag flipped bits are served silently) and, by
`verify`, against the SHA-256 in the manifest. Knows the document log's columns and no other meaning.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_mcp.errors import Damaged
from graphrag_mcp.store.manifest import Manifest, read, replace_file
from graphrag_mcp.store.schema import DOCUMENT_LOG

DOCUMENTS = "documents"  # the kind of the document log
SCHEMAS = {DOCUMENTS: DOCUMENT_LOG}
LIGHT = ("uri", "id", "file", "file_sha", "n")
_REPAIR = "Restore that file from a backup, or index the folder anew into a new corpus"


def append(folder: Path, kind: str, table: pa.Table, generation: int | None = None) -> dict[str, Any]:
    """Write one segment durably and give its manifest entry {kind, file, rows, sha256}.

    `generation` only names the file; by default it is the one after the committed generation.
    """
    if generation is None:
        current = read(folder)
        generation = current.generation + 1 if current else 1
    if kind in SCHEMAS:
        table = table.select(SCHEMAS[kind].names).cast(SCHEMAS[kind])
    parent = folder / "truth"
    parent.mkdir(parents=True, exist_ok=True)
    temporary = parent / f".{kind}-{generation:08d}.{os.getpid()}.tmp"
    try:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)
        with open(temporary, "r+b") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        name = f"{kind}-{generation:08d}-{digest[:8]}.parquet"
        replace_file(temporary, parent / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return {"kind": kind, "file": name, "rows": table.num_rows, "sha256": digest}


def load(folder: Path, manifest: Manifest, kind: str, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a kind in the order they were written. Raises Damaged when a segment cannot be trusted."""
    parts = [_load_segment(folder, segment, columns) for segment in manifest.segments if segment["kind"] == kind]
    if parts:
        return pa.concat_tables(parts)
    schema = SCHEMAS.get(kind, pa.schema([]))
    names = [name for name in columns or schema.names if name in schema.names]
    return pa.schema([schema.field(name) for name in names]).empty_table()


def live_documents(folder: Path, manifest: Manifest, columns: Sequence[str] = LIGHT) -> pa.Table:
    """The documents as of this generation, by uri: the last row of a uri wins, those whose last is gone are out.

    Reads the heavy columns segment by segment, so that memory holds what lives and one segment.
    """
    last: dict[str, tuple[str, int, int]] = {}
    segments = [segment for segment in manifest.segments if segment["kind"] == DOCUMENTS]
    for place, segment in enumerate(segments):
        log = _load_segment(folder, segment, ["op", "uri"])
        for row, (op, uri) in enumerate(zip(log["op"].to_pylist(), log["uri"].to_pylist(), strict=True)):
            last[uri] = (op, place, row)
    alive: list[list[int]] = [[] for _ in segments]
    for op, place, row in last.values():
        if op == "put":
            alive[place].append(row)
    wanted = list(dict.fromkeys(["uri", *columns]))
    schema = pa.schema([DOCUMENT_LOG.field(name) for name in wanted])
    parts = [schema.empty_table()]
    for segment, rows in zip(segments, alive, strict=True):
        if rows:
            parts.append(_load_segment(folder, segment, wanted).take(pa.array(sorted(rows), pa.int64())).cast(schema))
    return pa.concat_tables(parts).sort_by("uri").select(list(columns))


def verify(folder: Path, manifest: Manifest) -> list[str]:
    """What is wrong with the segments, one line each: missing, or other bytes than the manifest promises."""
    wrong = []
    for segment in manifest.segments:
        path = folder / "truth" / segment["file"]
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            wrong.append(f"{segment['file']}: cannot be read ({error.strerror})")
            continue
        if digest != segment["sha256"]:
            wrong.append(f"{segment['file']}: its SHA-256 is not the one in the manifest")
    return wrong


def _load_segment(folder: Path, segment: dict[str, Any], columns: Sequence[str] | None) -> pa.Table:
    path = folder / "truth" / segment["file"]
    wanted = None if columns is None else list(columns)
    try:
        table = pq.read_table(path, columns=wanted, page_checksum_verification=True, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"the truth segment {path} cannot be read ({error})", _REPAIR) from error
    if table.num_rows != segment["rows"]:
        raise Damaged(f"the truth segment {path} has {table.num_rows} rows instead of {segment['rows']}", _REPAIR)
    return table
