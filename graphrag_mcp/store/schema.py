"""The columns of every table, as Parquet segments and as LanceDB tables; checksums of rows.

Nothing depends on the whole corpus: a row changes only when the text it speaks of changes. `n` is
the number behind the short alias (e12, t33, c5, d4, r7): given once, never reused, in no digest.
`check` is a CRC-32 over the row's other columns."""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_mcp.plugins import PLUGGED

S, N, LIST = pa.string(), pa.int64(), pa.list_(pa.string())
TYPES = {
    "": S,
    "int": N,
    "float": pa.float64(),
    "bool": pa.bool_(),
    "list": LIST,
    "ints": pa.list_(N),
    "evidence": pa.list_(pa.struct([("text_unit_id", S), ("start", N), ("end", N), ("text", S)])),
    "findings": pa.list_(pa.struct([("summary", S), ("explanation", S)])),
}


def columns(text: str) -> pa.Schema:
    """`id n:int names:list` as a schema; a column without a type is text."""
    pairs = (name.partition(":") for name in text.split())
    return pa.schema([(name, TYPES[type]) for name, _, type in pairs])


# Truth: appended, never changed. op is "put" or "gone"; the last row of a uri wins.
DOCUMENT_LOG = columns("op uri id file file_sha title text metadata created n:int")

# The edit log: one row a change, those of one call with one id. fields is JSON (edit_log.py).
EDIT_LOG = columns("id op kind keys:list forms:list fields by time")

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
TABLES: dict[str, pa.Schema] = {name: columns(text) for name, text in _LISTS["tables"].items()}

# Vectors of passages and entities, where an embedding model is configured. `sha` is of the text
# that was embedded, `language` what tells its language from others; `vector` is in truth a list of
# fixed size, whose length is the model's. Half precision moves a similarity by less than 0.001.
# Tables of another form than VECTOR_FORM (the manifest's parameter `vectors`) are made again.
VECTOR_FORM = "half"
# Raise it when reports come out differently, with or without a model: the next indexing makes them again.
REPORT_FORM = "32"
VECTORS = {name: f"{name}_vectors" for name in ("passages", "entities")}
TABLES |= {
    name: pa.schema([("id", S), ("sha", S), ("language", S), ("vector", pa.list_(pa.float16()))])
    for name in VECTORS.values()
}

# Of each plug-in a row for a document that it knows something of. `facts`: JSON of what; `links`: JSON of a
# digest by text unit of what that was linked to, so that a change elsewhere is seen.
TABLES |= dict.fromkeys(PLUGGED, columns("id uri facts links"))

# What one row is known by when it is replaced, the columns with a scalar index, and with full text.
KEY = {
    "mentions": "text_unit_id", "evidence": "text_unit_id", "memberships": "entity_id",
    "terms": "term", "summaries": "document_id", "places": "document_id",
    "links": "document_id",
}  # fmt: skip
SCALAR = {name: tuple(text.split()) for name, text in _LISTS["indexed"].items()}
SCALAR |= dict.fromkeys([*VECTORS.values(), *PLUGGED], ("id",))
FULL_TEXT = {"passages": "terms", "entities": "terms", "reports": "terms"}

# Kinds of rows of `pending` that this release asks about. An index of an earlier one may hold others, which
# the next run deletes.
ASKED = ("extract", "report", "summary")
# In the column `unsupported` of a summary, beside numbers and names that its text does not have.
OTHER_SCRIPT = "written in another script than its text"


def doubts(unsupported: Sequence[str]) -> str:
    """`not in the text: 1909; written in another script than its text`; "" for none."""
    names = [name for name in unsupported if name != OTHER_SCRIPT]
    missing = f"not in the text: {', '.join(names)}" if names else ""
    return "; ".join(filter(None, (missing, OTHER_SCRIPT if len(names) < len(unsupported) else "")))


# (table, column) -> the table whose ids the column holds; the second of communities and reports,
# which are older than the graph until the second commit of a run.
REFERENCES, REFERENCES_OF_COMMUNITIES = (
    {(table, name): of for table, names in _LISTS[column].items() for name, of in names.items()}
    for column in ("references", "references_of_communities")
)
REFERENCES |= {(vectors, "id"): table for table, vectors in VECTORS.items()}
REFERENCES |= {(name, "id"): "documents" for name in PLUGGED}

# ---- checksums of rows ---------------------------------------------------------------------------

BATCH = 8_192  # rows taken apart at once


def sealed(table_name: str, rows: pa.Table) -> pa.Table:
    """The rows as they are written: in the schema's columns, with `check`. ValueError for nulls."""
    schema = TABLES[table_name]
    bare = [name for name in schema.names if name != "check"]
    rows = rows.select(bare)
    if table_name not in VECTORS.values():  # whose length is the model's
        rows = rows.cast(pa.schema([schema.field(name) for name in bare]))
    for column in bare:
        if rows[column].null_count:
            nulls = rows[column].null_count
            raise ValueError(f"{table_name}.{column} has {nulls} nulls; they are never stored")
    if "check" in schema.names:
        rows = rows.append_column(schema.field("check"), check_values(rows))
    return rows.select(schema.names)


def check_values(table: pa.Table) -> pa.Array:
    """One value a row (int64): over numbers and lengths, then bytes of texts and parts of lists.

    Works on Arrow's buffers, 4 to 6 microseconds a row; a repr of each costs ten times that."""
    import numpy as np

    values: list[int] = []
    names = sorted(name for name in table.column_names if name != "check")
    for batch in table.select(names).to_batches(BATCH):
        numbers: list[Any] = []  # one int64 a row each
        # bytes, and where each row's part begins (and the last ends)
        pieces: list[tuple[memoryview, list[int]]] = []
        for column in batch.columns:
            _take_apart(column, np.arange(batch.num_rows + 1), True, numbers, pieces)
        width = 8 * len(numbers)
        fixed = memoryview(np.stack(numbers, axis=1).tobytes())
        checks = [zlib.crc32(fixed[at : at + width]) for at in range(0, len(fixed), width)]
        for data, ends in pieces:
            parts = zip(checks, ends, ends[1:], strict=False)
            checks = [check if start == end else zlib.crc32(data[start:end], check) for check, start, end in parts]
        values += checks
    return pa.array(values, pa.int64())


def _take_apart(array: Any, rows: Any, top: bool, numbers: list[Any], pieces: list[Any]) -> None:
    """Sort content of `array` into `numbers` (one a row, at the `top`) and `pieces` (of bytes).

    `rows[i]:rows[i + 1]` are the values of row i: themselves at the top, a list's items below."""
    import numpy as np

    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _take_apart(array.field(place), rows, top, numbers, pieces)
        return
    if pa.types.is_list(array.type) or pa.types.is_string(array.type):
        offsets = np.zeros(1, np.int32)
        if len(array):
            offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        ends = offsets.astype(np.int64)
        content = np.diff(ends)
        if pa.types.is_list(array.type):
            _take_apart(array.values, ends[rows], False, numbers, pieces)
        else:
            pieces.append((memoryview(array.buffers()[2] or b""), ends[rows].tolist()))
    else:
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int64())
        content = array.to_numpy(zero_copy_only=False)
    if top:
        numbers.append(content.view(np.int64))
    else:
        pieces.append((memoryview(content.tobytes()), (rows * 8).tolist()))
