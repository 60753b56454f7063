"""The columns of every table, as Parquet segments and as LanceDB tables; checksums of rows.

Nothing depends on the whole corpus: a row changes only when the text it speaks of changes. `n` is
the number behind the short alias (e12, t33, c5, d4, r7): given once, never reused, in no digest.
`check` is a CRC-32 over the row's other columns."""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa

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

# The edit log, the same way: one row a change, those of one call with one id. fields is JSON
# (store/edit_log.py).
EDIT_LOG = columns("id op kind keys:list forms:list fields by time")

TABLES: dict[str, pa.Schema] = {
    "documents": columns("id n:int uri title text metadata created check:int"),
    "text_units": columns(
        "id n:int document_id chunk_index:int char_start:int char_end:int line_start:int "
        "line_end:int n_tokens:int text check:int"
    ),
    # Passages tile their text unit. entity_ids: every candidate named there, entity or not.
    # title_id: the entity id that the document's title would have, so that who names a title finds
    # its passages.
    "passages": columns(
        "id n:int part:int parts:int text_unit_id document_id uri title position:int "
        "char_start:int char_end:int line_start:int line_end:int n_tokens:int text terms "
        "n_terms:int entity_ids:list title_id check:int"
    ),
    # One row per (name, text unit): what makes deletion a subtraction. Offsets here, in evidence
    # and in the evidence of entities and relationships count from the start of the text unit, so
    # that an insertion above moves no row. sentences: start, end, start, end, ... of the sentences
    # that hold the name. description, by: what a model or an agent said of it, and who; else "".
    "mentions": columns(
        "key text_unit_id form type strong:bool count:int sentences:ints start:int end:int "
        "alias_of description by"
    ),
    # One row per (pair, text unit), only between entities; source_id < target_id. What a model said
    # keeps the names it used, so that it can be resolved again; where both now mean one entity, the
    # ids are "".
    "evidence": columns(
        "relationship_id source_id target_id text_unit_id weight:float start:int end:int "
        "source_key target_key description keywords"
    ),
    # What texts claim about names (only with a model, and when asked for). spans: of the quotes, in
    # the text unit.
    "claims": columns(
        "id n:int text_unit_id subject object subject_id object_id type status start_date "
        "end_date description quotes:list spans:ints check:int"
    ),
    # What a model still has to answer: kind is extract, claims (subject: a text unit), entity,
    # relationship or report.
    "pending": columns("id kind subject uri reason"),
    # Text units of which records of a reply were left out (`dropped`) or kept with a value that the
    # reply did not say (`repaired`), with the reasons; kind is extract or claims, subject the text
    # unit.
    "losses": columns("id kind subject uri dropped:int repaired:int reason"),
    "entities": columns(
        "id n:int key title type description aliases:list names:list frequency:int degree:int "
        "text_unit_ids:list evidence:evidence terms check:int"
    ),
    "relationships": columns(
        "id n:int source_id target_id description keywords weight:float text_unit_ids:list "
        "evidence:evidence check:int"
    ),
    "communities": columns(
        "id n:int level:int parent children:list entity_ids:list size:int check:int"
    ),
    # path: ids of the communities that hold the entity or, by its id, the text unit; coarsest first.
    "memberships": columns("entity_id path:list"),
    "reports": columns(
        "id n:int level:int title summary full_content rank:float rating_explanation findings "
        "entity_ids:list relationship_ids:list text_unit_ids:list n_text_units:int method "
        "fingerprint terms check:int"
    ),
    # One row a document that defines or names symbols of source code. facts: JSON of what it defines,
    # imports, extends and calls (code/symbols.py); links: JSON of a digest by text unit of what that
    # was resolved to, so that a change elsewhere is seen.
    "code": columns("id uri facts links"),
    # How many passages hold a term: the df of our own BM25, so that scores do not depend on
    # history.
    "terms": columns("term passages:int"),
}

# Vectors of the rows of four tables, where an embedding model is configured. `sha` is of the text
# that was embedded; `vector` is in truth a list of fixed size, whose length is the model's.
VECTORS = {name: f"{name}_vectors" for name in ("passages", "entities", "relationships", "reports")}
TABLES |= {
    name: pa.schema([("id", S), ("sha", S), ("vector", pa.list_(pa.float32()))])
    for name in VECTORS.values()
}

# What one row is known by when it is replaced, the columns with a scalar index, and with full text.
KEY = {
    "mentions": "text_unit_id", "evidence": "text_unit_id", "claims": "text_unit_id", "memberships": "entity_id",
    "terms": "term",
}  # fmt: skip
SCALAR = {
    "documents": ("id", "n", "uri"),
    "text_units": ("id", "n", "document_id"),
    "passages": ("id", "n", "document_id", "title_id"),
    "mentions": ("key", "text_unit_id"),
    "evidence": ("relationship_id", "text_unit_id"),
    "entities": ("id", "n"),
    "relationships": ("id", "n", "source_id", "target_id"),
    "communities": ("id", "n"),
    "memberships": ("entity_id",),
    "reports": ("id", "n"),
    "terms": ("term",),
    "claims": ("text_unit_id", "subject_id", "object_id"),
    "pending": ("id",),
    "losses": ("id",),
    "code": ("id",),
    **{name: ("id",) for name in VECTORS.values()},
}
FULL_TEXT = {"passages": "terms", "entities": "terms", "reports": "terms"}

# ---- checksums of rows ---------------------------------------------------------------------------

BATCH = 8_192  # rows taken apart at once


def sealed(table_name: str, rows: pa.Table) -> pa.Table:
    """The rows as they are written: in the columns of their schema, with `check` computed where the
    schema has it. ValueError where there are nulls."""
    schema = TABLES[table_name]
    bare = [name for name in schema.names if name != "check"]
    rows = rows.select(bare)
    if table_name not in VECTORS.values():  # whose length is the model's
        rows = rows.cast(pa.schema([schema.field(name) for name in bare]))
    for column in bare:
        if rows[column].null_count:
            raise ValueError(
                f"{table_name}.{column} has {rows[column].null_count} nulls; they are never stored"
            )
    if "check" in schema.names:
        rows = rows.append_column(schema.field("check"), check_values(rows))
    return rows.select(schema.names)


def check_values(table: pa.Table) -> pa.Array:
    """One value a row (int64): over numbers and lengths first, then over the bytes of texts and the
    parts of lists.

    Works on Arrow's buffers, 4 to 6 microseconds a row; a repr of every row costs about ten times
    that."""
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
        for row in range(batch.num_rows):
            crc = zlib.crc32(fixed[row * width : (row + 1) * width])
            for data, ends in pieces:
                if ends[row] != ends[row + 1]:
                    crc = zlib.crc32(data[ends[row] : ends[row + 1]], crc)
            values.append(crc)
    return pa.array(values, pa.int64())


def _take_apart(
    array: pa.Array, rows: Any, top: bool, numbers: list[Any], pieces: list[Any]
) -> None:
    """Sort the content of `array` into `numbers` (one a row, only at the `top`) and `pieces`
    (ranges of bytes).

    `rows[i]:rows[i + 1]` are the values of row i: themselves at the top, a list's items below."""
    import numpy as np

    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _take_apart(array.field(place), rows, top, numbers, pieces)
        return
    if pa.types.is_list(array.type) or pa.types.is_string(array.type):
        if len(array):
            offsets = np.frombuffer(array.buffers()[1], np.int32)[
                array.offset : array.offset + len(array) + 1
            ]
        else:
            offsets = np.zeros(1, np.int32)
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
