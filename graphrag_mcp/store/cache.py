"""Columns of a table in memory, found by key or by Lance's row id.

Takes rows as they were read, with their row ids; gives places in them. What a search is told by a
ranking of Lance, or knows by id, it then finds without the table: reading ids beside row ids costs
3 ms of CPU for 200 rows, asking an index for 20 ids 3 ms more than asking for 20 row ids. Opens
nothing and knows no generation.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.store.schema import TABLES

ROW_ID = "_rowid"  # Lance's own number of a row, in one version of a table
STEP = 64  # of the values that `Ordered` looks at first: half of its time
DIGITS = 32  # of an id (types.content_id)
# Rows up to which searches keep a table in memory (a read then costs 0.2 ms instead of 2 to 5), up
# to 20 MB each; from the second question on columns of larger ones, where a SAMPLE of the rows says
# that they take no more BYTES.
HELD = {
    "terms": 200_000,
    "passages": 25_000,
    "entities": 25_000,
    "reports": 6_000,
    "relationships": 25_000,
}
BYTES, SAMPLE = 72 << 20, 256
COLUMNS = 60_000  # rows up to which they keep the columns they rank by: 14 MB for 33,000 passages
ADDRESSED = (
    400_000  # rows up to which they keep where each id is: 2 MB and 40 ms of CPU, once, for 105,000
)
KEPT = 4_000  # rows of a table remembered between searches, some 10 MB
_ID = re.compile(r"[0-9a-f]{32}")
_HALF = (1 << 64) - 1


class Kept:
    """Rows of a table, without their row ids, each column in one piece; and the places of rows in
    it.
    """

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        """`parts`: tables of the same columns, at least one, which are copied and let go one after
        another.
        """
        import numpy as np

        rows = _gathered(parts)
        self.rows = rows.drop_columns([ROW_ID])
        (self._batch,) = self.rows.to_batches() or [
            pa.RecordBatch.from_pylist([], self.rows.schema)
        ]
        self.row_ids = rows[ROW_ID].to_numpy()
        self._order = np.argsort(self.row_ids, kind="stable")
        self._sorted = self.row_ids[self._order]
        self._by: dict[str, Ids | Ordered] = {}

    def places(self, key: str, values: Sequence[Any]) -> list[int]:
        """Of the rows whose `key` is one of these, in the order of the values."""
        if key not in self._by:
            self._by[key] = ids_of(self.rows[key]) or Ordered(self.rows[key])
        return self._by[key].places(values)

    def find(self, key: str, values: Sequence[Any], names: Sequence[str] | None = None) -> pa.Table:
        """These rows, of them these columns or all."""
        return self.take(self.places(key, values), names)

    def take(self, places: Sequence[int], names: Sequence[str] | None = None) -> pa.Table:
        """The rows at these places, of them these columns or all."""
        import numpy as np

        names = self.rows.column_names if names is None else list(names)
        return pa.Table.from_batches(
            [self._batch.select(names).take(pa.array(np.asarray(places, np.int64)))]
        )

    def joined(self, read: pa.Table, places: Sequence[int], names: Sequence[str]) -> pa.Table:
        """The rows at these places, in their order: columns that were read, with the row ids,
        beside those kept.
        """
        at, here = self.behind(read[ROW_ID])
        row = dict(zip(at.tolist(), here.nonzero()[0].tolist(), strict=True))
        found = [place for place in places if place in row]
        fresh = read.take(pa.array([row[place] for place in found], pa.int64()))
        kept = self.take(found, [name for name in names if name not in fresh.column_names])
        return pa.table(
            [fresh[name] if name in fresh.column_names else kept[name] for name in names],
            list(names),
        )

    def behind(self, row_ids: pa.ChunkedArray) -> tuple[Any, Any]:
        """The places of rows by Lance's ids, and which of these ids are here at all."""
        import numpy as np

        wanted = row_ids.to_numpy()
        if not len(self._sorted):
            return np.zeros(0, np.int64), np.zeros(len(wanted), bool)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        here = self._sorted[at] == wanted
        return self._order[at[here]], here


# ---- in one piece ------------------------------------------------------------------------------


def _gathered(parts: Iterable[pa.Table]) -> pa.Table:
    """The rows of all in one chunk. Arrow would hold the parts and the whole at once, and of what
    is freed then the allocators keep half: 150 MB for 70 MB of entities. So each part is copied to
    the end of buffers that grow."""
    columns: dict[str, _Column] = {}
    for part in parts:
        columns = columns or {field.name: _column(field.type) for field in part.schema}
        for batch in part.to_batches():
            for name, column in columns.items():
                column.add(batch[name])
    return pa.table({name: column.array() for name, column in columns.items()})


class _Column:
    """Values of a fixed width, without nulls, one array after another."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind, self.count, self.data = kind, 0, bytearray()

    def add(self, array: pa.Array) -> None:
        width = self.kind.bit_width // 8
        self.count += len(array)
        self.data += memoryview(array.buffers()[1] or b"")[
            array.offset * width : (array.offset + len(array)) * width
        ]

    def array(self) -> pa.Array:
        return pa.Array.from_buffers(self.kind, self.count, [None, pa.py_buffer(self.data)])


class _Texts(_Column):
    """Strings, by where each ends."""

    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.ends, self.last = bytearray(bytes(4)), 0

    def add(self, array: pa.Array) -> None:
        first, last = self.grow(array)
        self.data += memoryview(array.buffers()[2] or b"")[first:last]

    def grow(self, array: pa.Array) -> tuple[int, int]:
        """Add the ends; what they are the ends of begins and ends here."""
        import numpy as np

        if not len(array):
            return 0, 0
        ends = np.frombuffer(array.buffers()[1], np.int32)[
            array.offset : array.offset + len(array) + 1
        ]
        self.ends += memoryview(ends[1:] + np.int32(self.last - int(ends[0])))
        self.last += int(ends[-1] - ends[0])
        self.count += len(array)
        return int(ends[0]), int(ends[-1])

    def array(self) -> pa.Array:
        return pa.Array.from_buffers(
            self.kind, self.count, [None, pa.py_buffer(self.ends), pa.py_buffer(self.data)]
        )


class _Lists(_Texts):
    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.items = _column(kind.value_type)

    def add(self, array: pa.Array) -> None:
        first, last = self.grow(array)
        self.items.add(array.values.slice(first, last - first))

    def array(self) -> pa.Array:
        ends = pa.Array.from_buffers(pa.int32(), self.count + 1, [None, pa.py_buffer(self.ends)])
        return pa.ListArray.from_arrays(ends, self.items.array(), self.kind)


class _Structs(_Column):
    def __init__(self, kind: pa.DataType) -> None:
        super().__init__(kind)
        self.fields = [_column(field.type) for field in kind]

    def add(self, array: pa.Array) -> None:
        for column, field in zip(self.fields, array.flatten(), strict=True):
            column.add(field)

    def array(self) -> pa.Array:
        return pa.StructArray.from_arrays(
            [column.array() for column in self.fields], fields=list(self.kind)
        )


def _column(kind: pa.DataType) -> _Column:
    of = {pa.types.is_string: _Texts, pa.types.is_list: _Lists, pa.types.is_struct: _Structs}
    made = next((made for test, made in of.items() if test(kind)), _Column)
    assert made is not _Column or kind.bit_width % 8 == 0, (
        f"no copy of {kind}: its values share bytes"
    )
    return made(kind)


# ---- where rows are ----------------------------------------------------------------------------


class Ids:
    """The places of content ids in a column, in 24 bytes a row; a dict takes 200."""

    def __init__(self, halves: Any) -> None:
        import numpy as np

        self._order = np.argsort(halves[:, 0], kind="stable")
        self._first, self._second = (
            np.ascontiguousarray(halves[self._order, part]) for part in (0, 1)
        )

    def places(self, ids: Sequence[str]) -> list[int]:
        """Of the rows with one of these ids, in their order; what is no id is nowhere."""
        import numpy as np

        numbers = [int(id, 16) for id in ids if _ID.fullmatch(id)]
        first, second = (
            np.array([(one >> shift) & _HALF for one in numbers], np.uint64) for shift in (64, 0)
        )
        low, high = (np.searchsorted(self._first, first, side) for side in ("left", "right"))
        if (many := high - low).max(initial=0) > 1:  # the rows of each one after another
            second, low = np.repeat(second, many), np.repeat(low, many)
            low += np.arange(len(low)) - np.repeat(np.cumsum(many) - many, many)
        else:
            second, low = second[many > 0], low[many > 0]
        return self._order[low[self._second[low] == second]].tolist()


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def ids_of(column: pa.ChunkedArray) -> Ids | None:
    """None for a column that holds anything but ids."""
    if not pa.types.is_string(column.type) or (halves := _halves(_one(column))) is None:
        return None
    return Ids(halves)


def _halves(ids: pa.Array) -> Any:
    """Each id as two numbers; None where one is not of DIGITS hexadecimal digits."""
    import numpy as np

    if not len(ids):
        return np.zeros((0, 2), np.uint64)
    ends = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
    if (np.diff(ends) != DIGITS).any():
        return None
    values = _digits()[np.frombuffer(ids.buffers()[2], np.uint8)[ends[0] : ends[-1]]]
    if (values > 15).any():
        return None
    return (values[::2] << 4 | values[1::2]).view(">u8").astype(np.uint64).reshape(-1, 2)


@lru_cache(maxsize=1)
def _digits() -> Any:
    """What each byte is as a hexadecimal digit in lower case; 255 for all others."""
    import numpy as np

    table = np.full(256, 255, np.uint8)
    table[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint8)
    return table


class Ordered:
    """The places of any other values in a column, by their order, in 8 bytes a row; a dict takes
    250.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._values = _one(column)
        self._order = pc.sort_indices(
            self._values
        ).to_numpy()  # stable, and by code points as Python compares
        self._heads = [self[at] for at in range(0, len(self), STEP)]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, at: int) -> Any:
        return self._values[int(self._order[at])].as_py()

    def places(self, values: Sequence[Any]) -> list[int]:
        """Of the rows with one of these values, in their order."""
        found: list[int] = []
        for value in values:
            after = bisect_left(self._heads, value) * STEP
            first = last = bisect_left(self, value, max(after - STEP, 0), min(after, len(self)))
            while last < len(self) and self[last] == value:
                last = last + 1 if last - first < 4 else bisect_right(self, value, last)
            found += self._order[first:last].tolist()
        return found


def fits(sample: pa.Table, count: int) -> bool:
    """May so many rows like these be kept?"""
    return sample.nbytes * count <= BYTES * sample.num_rows


def names_of(table: str, columns: Sequence[str] | None) -> list[str]:
    """The columns, or all of the table."""
    return TABLES[table].names if columns is None else list(columns)


def empty(table: str, columns: Sequence[str] | None) -> pa.Table:
    """No rows, in these columns (or all of the table), of which one may be ROW_ID; the score of a
    ranking is none.
    """
    row_id = {ROW_ID: pa.field(ROW_ID, pa.uint64())}
    names = [name for name in names_of(table, columns) if name != "_score"]
    return pa.schema(
        [row_id.get(name) or TABLES[table].field(name) for name in names]
    ).empty_table()
