"""Columns of a table in memory, found by key or by Lance's row id. Reading ids beside row ids costs
3 ms of CPU for 200 rows less than asking Lance.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
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
    "passages": 40_000,
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


class Kept:
    """Rows of a table, without their row ids, each column in one piece; and the places of rows in
    it.
    """

    def __init__(self, parts: Iterable[pa.Table]) -> None:
        """`parts`: tables of the same columns, at least one."""
        import numpy as np

        rows = pa.concat_tables(parts).combine_chunks()
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


class Ids:
    """The places of content ids in a column, in 40 bytes a row; a dict takes 200."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        import numpy as np

        ids = column.to_numpy().astype(f"S{DIGITS}")
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]

    def places(self, ids: Sequence[str]) -> list[int]:
        """Of the rows with one of these ids, in their order; what is no id has no row."""
        import numpy as np

        wanted = np.array([id for id in ids if _ID.fullmatch(id)], f"S{DIGITS}")
        low, high = (np.searchsorted(self._ids, wanted, side) for side in ("left", "right"))
        found = zip(low.tolist(), high.tolist(), strict=True)
        return [place for first, end in found for place in self._order[first:end].tolist()]


def ids_of(column: pa.ChunkedArray) -> Ids | None:
    """None for a column that holds anything but ids."""
    if not pa.types.is_string(column.type):
        return None
    same = pc.all(pc.match_substring_regex(column, f"^{_ID.pattern}$"), min_count=0).as_py()
    return Ids(column) if same else None


class Ordered:
    """The places of any other values in a column, by their order, in 8 bytes a row; a dict takes
    250.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._values = column.combine_chunks()
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
