"""Append-only Parquet segments of what cannot be computed again for free.

A segment becomes part of the index only when a manifest names it. Bytes are checked on every read
(page checksums: without the read flag flipped bits are served silently) and, by `verify`, against
the SHA-256 in the manifest. Small segments are merged when they have become many (`tidy`)."""

from __future__ import annotations

import hashlib
import logging
import os
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_mcp.errors import Damaged
from graphrag_mcp.store.manifest import Manifest, commit, differing, read, replace_file, writing
from graphrag_mcp.store.schema import DOCUMENT_LOG, EDIT_LOG

DOCUMENTS = "documents"  # the kind of the document log
EDITS = "edits"  # and that of the edit log
# What was imported: {uri, id, data}. Of documents a row counts whose id is the `file_sha` of the
# document there is; of communities and reports, whose rows are large, the last row of a uri.
IMPORTS, GRAPHS = "imports", "import-graphs"
SCHEMAS = {DOCUMENTS: DOCUMENT_LOG, EDITS: EDIT_LOG}
LIGHT = ("uri", "id", "file", "file_sha", "n")
SEGMENTS = 24  # every call opens each segment for its uris: 42 ms of CPU with 64 of them
DEAD = 256  # rows that no longer count, up to which no one is bothered
DEAD_GRAPHS = 4  # the same for communities and reports of imports
_REPAIR = "Restore that file from a backup, or index the folder again into a new corpus"

Segment = dict[str, Any]  # {kind, file, rows, sha256}, as in a manifest
Columns = Sequence[str] | None  # None: all

log = logging.getLogger(__name__)


def append(folder: Path, kind: str, table: pa.Table, generation: int = 0) -> Segment:
    """Write one segment durably and give its manifest entry {kind, file, rows, sha256}.

    `generation` only names the file; 0 is the one after the committed generation."""
    if not generation:
        committed = read(folder)
        generation = committed.generation + 1 if committed else 1
    if kind in SCHEMAS:
        table = table.select(SCHEMAS[kind].names).cast(SCHEMAS[kind])
    with writing(folder):
        return _written(folder, kind, generation, table.schema, [table])


def appended(folder: Path, manifest: Manifest | None, kind: str, table: pa.Table) -> list[Segment]:
    """The segments of `manifest` with these rows after all others of their kind. Where these have
    become many, all of the kind are written as one: their rows stay as they are."""
    segments = list(manifest.segments) if manifest else []
    of_kind = [segment for segment in segments if segment["kind"] == kind]
    if manifest and len(of_kind) >= SEGMENTS:
        _trusted(folder, of_kind)
        segments = [segment for segment in segments if segment["kind"] != kind]
        table = pa.concat_tables([load(folder, manifest, kind), table])
    return [*segments, append(folder, kind, table)]


def _trusted(folder: Path, segments: Sequence[Segment]) -> None:
    """Damaged where one of the segments has other bytes than the manifest promises."""
    if wrong := verify(folder, segments):
        raise Damaged(f"the truth segment {wrong[0]}", _REPAIR)


def tidy(folder: Path, manifest: Manifest) -> Manifest:
    """Merge the segments of a kind where there are many, or more dead rows than live ones, as a
    generation; gives the current one. Only for the holder of the writer's lock.

    Older generations keep their segments. What cannot be trusted is left to doctor."""
    segments = list(manifest.segments)
    try:
        for kind in (DOCUMENTS, IMPORTS, GRAPHS):
            of_kind = manifest.of_kind(kind)
            if _pays(folder, manifest, kind, of_kind):
                _trusted(folder, of_kind)
                merged_segment = _merged(folder, manifest, kind, of_kind)
                kept = [segment for segment in segments if segment["kind"] != kind]
                segments = [*kept, *([merged_segment] if merged_segment["rows"] else [])]
    except Damaged as error:
        log.warning("%s; nothing is merged", error.what)
        return manifest
    if segments == manifest.segments:
        return manifest
    merged = manifest.following(segments=segments)
    commit(folder, merged)
    return merged


def _pays(folder: Path, manifest: Manifest, kind: str, segments: Sequence[Segment]) -> bool:
    rows = sum(segment["rows"] for segment in segments)
    live, few = manifest.counters.get("documents", rows), DEAD
    if kind == GRAPHS:
        live, few = rows, DEAD_GRAPHS
        if rows > few:
            live = len(set(load(folder, manifest, GRAPHS, ["uri"])["uri"].to_pylist()))
    return len(segments) > SEGMENTS or rows - live > max(few, live)


def _merged(folder: Path, manifest: Manifest, kind: str, segments: Sequence[Segment]) -> Segment:
    documents: set[tuple[str, str]] | None = None
    if kind == IMPORTS:
        log = live_documents(folder, manifest, ["uri", "file_sha"])
        documents = {(row["uri"], row["file_sha"]) for row in log.to_pylist()}
    with writing(folder):
        schema = SCHEMAS.get(kind) or pq.read_schema(folder / "truth" / segments[0]["file"])
        parts = (part.cast(schema) for part in _live(folder, segments, None, documents))
        return _written(folder, kind, manifest.generation + 1, schema, parts)


def load(folder: Path, manifest: Manifest, kind: str, columns: Columns = None) -> pa.Table:
    """All rows of a kind as they were written. Damaged when a segment cannot be trusted."""
    parts = [_load_segment(folder, segment, columns) for segment in manifest.of_kind(kind)]
    if parts:
        return pa.concat_tables(parts)
    schema = SCHEMAS.get(kind, pa.schema([]))
    names = [name for name in columns or schema.names if name in schema.names]
    return pa.schema([schema.field(name) for name in names]).empty_table()


def live_documents(folder: Path, manifest: Manifest, columns: Sequence[str] = LIGHT) -> pa.Table:
    """The documents of this generation, by uri: the last row of each, unless it is "gone"."""
    names = list(dict.fromkeys(["uri", "op", *columns]))
    schema = pa.schema([DOCUMENT_LOG.field(name) for name in names])
    parts = [part.cast(schema) for part in _live(folder, manifest.of_kind(DOCUMENTS), names)]
    live = pa.concat_tables(parts) if parts else schema.empty_table()
    # `sort_by` would import pandas.
    return live.take(pc.sort_indices(live["uri"])).select(list(columns))


def _live(
    folder: Path, segments: Sequence[Segment], columns: Columns, documents: Collection[tuple[str, str]] | None = None
) -> Iterator[pa.Table]:
    """The rows of segments of one kind that count, those of the newest segment first, so that
    memory holds what lives and one segment: the last row of each uri, unless the document is gone;
    with `documents` the last of each of these pairs of uri and id."""
    seen: set[Any] = set()
    for segment in reversed(segments):
        table = _load_segment(folder, segment, columns)
        keys: Sequence[Any] = table["uri"].to_pylist()
        if documents is not None:
            keys = list(zip(keys, table["id"].to_pylist(), strict=True))
        last = {key: row for row, key in enumerate(keys) if key not in seen}
        seen |= last.keys()
        rows = sorted(row for key, row in last.items() if documents is None or key in documents)
        if "op" in table.column_names:
            op = table["op"].to_pylist()
            rows = [row for row in rows if op[row] == "put"]
        # `pa.array` of a list and `pc.equal` would import pandas.
        places = pa.py_buffer(array("q", rows))
        yield table.take(pa.Array.from_buffers(pa.int64(), len(rows), [None, places]))


def verify(folder: Path, segments: Sequence[Segment]) -> list[str]:
    """What is wrong with segments, one line each: missing, or other bytes than the manifest's."""
    return [f"{file}: {what}" for file, what in differing(folder / "truth", segments)]


def _load_segment(folder: Path, segment: Segment, columns: Columns) -> pa.Table:
    path = folder / "truth" / segment["file"]
    names = None if columns is None else list(columns)
    try:
        # A third of what read_table costs; threads begin too late for a few short columns.
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False) as file:
            table = file.read(columns=names, use_threads=names is None or "text" in names)
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"the truth segment {path} cannot be read ({error})", _REPAIR) from error
    # Page checksums do not speak for names and types of columns.
    known = SCHEMAS.get(segment["kind"], table.schema)
    fields = list(known) if names is None else [known.field(name) for name in names]
    if len(table.schema) != len(fields) or any(field not in fields for field in table.schema):
        raise Damaged(f"the truth segment {path} has other columns than were written", _REPAIR)
    if table.num_rows != segment["rows"]:
        what = f"the truth segment {path} has {table.num_rows} rows instead of {segment['rows']}"
        raise Damaged(what, _REPAIR)
    return table


def _written(folder: Path, kind: str, generation: int, schema: pa.Schema, parts: Iterable[pa.Table]) -> Segment:
    """One segment, durable under its name before this returns."""
    parent = folder / "truth"
    parent.mkdir(parents=True, exist_ok=True)
    temporary = parent / f".{kind}-{generation:08d}.{os.getpid()}.tmp"
    rows = 0
    try:
        with open(temporary, "w+b") as file:
            options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
            with pq.ParquetWriter(file, schema, **options) as writer:
                for part in parts:
                    writer.write_table(part)
                    rows += part.num_rows
            file.flush()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        name = f"{kind}-{generation:08d}-{digest[:8]}.parquet"
        replace_file(temporary, parent / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return {"kind": kind, "file": name, "rows": rows, "sha256": digest}
