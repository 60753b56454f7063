"""The check value of a row: CRC-32 over all its columns but `check`.

Takes and gives `pyarrow` data; knows neither files nor LanceDB. The value depends on nothing but the row: not on
how rows are batched, not on which rows stand beside it.
"""

from __future__ import annotations

import zlib
from typing import Any

import pyarrow as pa

from graphrag_mcp.store.schema import TABLES, VECTORS

BATCH = 8_192  # rows taken apart at once


def seal(table_name: str, table: pa.Table) -> pa.Table:
    """The rows in the columns of their schema, with `check` computed where the schema has it."""
    schema = TABLES[table_name]
    if table_name in VECTORS.values():
        return table.select(schema.names)
    if "check" not in schema.names:
        return table.select(schema.names).cast(schema)
    bare = pa.schema([field for field in schema if field.name != "check"])
    table = table.select(bare.names).cast(bare)
    return table.append_column(schema.field("check"), check_values(table)).select(schema.names)


def check_values(table: pa.Table) -> pa.Array:
    """One value a row (int64): over numbers and lengths first, then over the bytes of texts and the parts of lists.

    Works on Arrow's buffers, 4 to 6 microseconds a row; a repr of every row costs about ten times that.
    """
    import numpy as np

    values: list[int] = []
    names = sorted(name for name in table.column_names if name != "check")
    for batch in table.select(names).to_batches(BATCH):
        numbers: list[Any] = []  # one int64 a row each
        pieces: list[tuple[memoryview, list[int]]] = []  # bytes, and where each row's part begins (and the last ends)
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


def _take_apart(array: pa.Array, rows: Any, top: bool, numbers: list[Any], pieces: list[Any]) -> None:
    """Sort the content of `array` into `numbers` (one a row, only at the `top`) and `pieces` (ranges of bytes).

    `rows[i]:rows[i + 1]` are the values of row i: themselves at the top, a list's items below.
    """
    import numpy as np

    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _take_apart(array.field(place), rows, top, numbers, pieces)
        return
    if pa.types.is_list(array.type) or pa.types.is_string(array.type):
        if len(array):
            offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
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
