"""Columns of one generation's table in memory, and where their rows are: by the value of a key, by Lance's row ids.

Takes rows as they were read, with their row ids; gives places in them. What a search is told by a ranking of Lance, or
knows by id, it then finds without the table: reading ids beside row ids costs 3 ms of CPU for 200 rows, asking an index
for 20 ids 3 ms more than asking for 20 row ids. Opens nothing and knows no generation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from graphrag_mcp.store.schema import TABLES

ROW_ID = "_rowid"  # Lance's own number of a row, in one version of a table
DIGITS = 32  # of an id (types.content_id)
# Rows up to which searches keep a table in memory (a read then costs 0.2 ms instead of 2 to 5), up to 70 MB each; from
# the second question on also a larger one, where a SAMPLE of its rows says that it takes no more BYTES.
HELD = {"terms": 200_000, "passages": 25_000, "entities": 25_000, "reports": 6_000, "relationships": 25_000}
LATE, BYTES, SAMPLE = {"entities": 150_000}, 72 << 20, 256
COLUMNS = 60_000  # rows up to which they keep the columns they rank by: 14 MB for 33,000 passages
ADDRESSED = 400_000  # rows up to which they keep where each id is: 2 MB and 40 ms of CPU, once, for 105,000
KEPT = 4_000  # rows of a table remembered between searches, some 10 MB
_ID = re.compile(r"[0-9a-f]{32}")
_HALF = (1 << 64) - 1


class Kept:
    """Rows of a table, without their row ids, in few chunks; and the places of rows in it."""

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np

        self.rows = _in_few_chunks(rows.drop_columns([ROW_ID]))
        self.row_ids = rows[ROW_ID].to_numpy()
        self._parts = self.rows.to_batches()
        self._starts = np.cumsum([0, *map(len, self._parts)])[:-1]
        self._order = np.argsort(self.row_ids, kind="stable")
        self._sorted = self.row_ids[self._order]
        self._by: dict[str, Ids | dict[Any, list[int]]] = {}

    def places(self, key: str, values: Sequence[Any]) -> list[int]:
        """Of the rows whose `key` is one of these, in the order of the values."""
        if key not in self._by:
            self._by[key] = ids_of(self.rows[key]) or _places(self.rows[key])
        by = self._by[key]
        return by.places(values) if isinstance(by, Ids) else [at for value in values for at in by.get(value, ())]

    def find(self, key: str, values: Sequence[Any], names: Sequence[str] | None = None) -> pa.Table:
        """These rows, of them these columns or all."""
        return self.take(self.places(key, values), names)

    def take(self, places: Sequence[int], names: Sequence[str] | None = None) -> pa.Table:
        """The rows at these places, of them these columns or all; Arrow would first copy all chunks into one."""
        import numpy as np

        names = self.rows.column_names if names is None else list(names)
        at = np.asarray(places, np.int64)
        if not len(at):
            return self.rows.select(names).slice(0, 0)
        if len(self._parts) == 1:
            return self.rows.select(names).take(pa.array(at))
        part = np.searchsorted(self._starts, at, "right") - 1
        taken, order = [], []
        for number in np.unique(part):
            here = (part == number).nonzero()[0]
            taken.append(self._parts[number].select(names).take(pa.array(at[here] - self._starts[number])))
            order.append(here)
        found = pa.Table.from_batches(taken)
        return found if len(taken) < 2 else found.combine_chunks().take(pa.array(np.argsort(np.concatenate(order))))

    def joined(self, read: pa.Table, places: Sequence[int], names: Sequence[str]) -> pa.Table:
        """The rows at these places, in their order: columns that were read, with the row ids, beside those kept."""
        at, here = self.behind(read[ROW_ID])
        row = dict(zip(at.tolist(), here.nonzero()[0].tolist(), strict=True))
        found = [place for place in places if place in row]
        fresh = read.take(pa.array([row[place] for place in found], pa.int64()))
        kept = self.take(found, [name for name in names if name not in fresh.column_names])
        return pa.table([fresh[name] if name in fresh.column_names else kept[name] for name in names], list(names))

    def behind(self, row_ids: pa.ChunkedArray) -> tuple[Any, Any]:
        """The places of rows by Lance's ids, and which of these ids are here at all."""
        import numpy as np

        wanted = row_ids.to_numpy()
        if not len(self._sorted):
            return np.zeros(0, np.int64), np.zeros(len(wanted), bool)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        here = self._sorted[at] == wanted
        return self._order[at[here]], here


def _in_few_chunks(rows: pa.Table) -> pa.Table:
    """In their order, the largest chunk as it is and what stands before and behind it as one each. One copy of all
    would take as much memory again, of which the allocators keep half: 150 MB for 70 MB of entities."""
    parts = rows.to_batches()
    if len(parts) < 2:
        return rows
    largest = max(range(len(parts)), key=lambda at: len(parts[at]))
    around = (parts[:largest], [parts[largest]], parts[largest + 1 :])
    return pa.concat_tables([pa.Table.from_batches(some).combine_chunks() for some in around if some])


class Ids:
    """The places of content ids in a column, in 24 bytes a row; a dict takes 200."""

    def __init__(self, halves: Any) -> None:
        import numpy as np

        self._order = np.argsort(halves[:, 0], kind="stable")
        self._first, self._second = (np.ascontiguousarray(halves[self._order, part]) for part in (0, 1))

    def places(self, ids: Sequence[str]) -> list[int]:
        """Of the rows with one of these ids, in their order; what is no id is nowhere."""
        import numpy as np

        numbers = [int(id, 16) for id in ids if _ID.fullmatch(id)]
        first, second = (np.array([(one >> shift) & _HALF for one in numbers], np.uint64) for shift in (64, 0))
        low, high = (np.searchsorted(self._first, first, side) for side in ("left", "right"))
        if (many := high - low).max(initial=0) > 1:  # the rows of each one after another
            second, low = np.repeat(second, many), np.repeat(low, many)
            low += np.arange(len(low)) - np.repeat(np.cumsum(many) - many, many)
        else:
            second, low = second[many > 0], low[many > 0]
        return self._order[low[self._second[low] == second]].tolist()


def ids_of(column: pa.ChunkedArray) -> Ids | None:
    """None for a column that holds anything but ids."""
    if not pa.types.is_string(column.type) or (halves := _halves(column.combine_chunks())) is None:
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


def _places(column: pa.ChunkedArray) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for at, value in enumerate(column.to_pylist()):
        found.setdefault(value, []).append(at)
    return found


def fits(sample: pa.Table, count: int) -> bool:
    """May so many rows like these be kept?"""
    return sample.nbytes * count <= BYTES * sample.num_rows


def names_of(table: str, columns: Sequence[str] | None) -> list[str]:
    """The columns, or all of the table."""
    return TABLES[table].names if columns is None else list(columns)


def empty(table: str, columns: Sequence[str] | None) -> pa.Table:
    """No rows, in these columns (or all of the table), of which one may be ROW_ID; the score of a ranking is none."""
    row_id = {ROW_ID: pa.field(ROW_ID, pa.uint64())}
    names = [name for name in names_of(table, columns) if name != "_score"]
    return pa.schema([row_id.get(name) or TABLES[table].field(name) for name in names]).empty_table()
