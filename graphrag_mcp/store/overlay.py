"""Generations in memory on top of a stored one, for dry runs. Of vectors only whose they are is
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.store.cache import ROW_ID, empty, names_of
from graphrag_mcp.store.checksums import prepared
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import KEY, TABLES, VECTORS
from graphrag_mcp.store.tables import Change, Snapshot

FIRST_ROW = 1 << 62  # row ids of rows that are in no file


@dataclass(frozen=True, slots=True)
class _Layer:
    """A table after some changes: is it `stored`, which rows of that are `gone`, which `rows` came."""

    stored: bool
    gone: Set[str]
    rows: pa.Table

    @property
    def untouched(self) -> bool:
        return self.stored and not self.gone and not self.rows.num_rows


class Imagination:
    """What one imagined run has written so far. Versions of its tables are below zero, those of
    stored ones above.
    """

    def __init__(self, folder: Path, manifest: Manifest | None) -> None:
        self.folder = folder
        self.base = Snapshot(folder, manifest or Manifest(corpus=folder.name))
        self._layers: dict[str, list[_Layer]] = {}

    def apply(self, manifest: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        """As `tables.apply`: {table: version} for the next manifest."""
        versions = dict(manifest.tables) if manifest else {}
        for name, change in changes.items():
            if name in versions or change.rows is not None:
                layers = self._layers.setdefault(name, [])
                layers.append(_changed(name, self.layer(name, versions.get(name)), change))
                versions[name] = -len(layers)
        return versions

    def layer(self, name: str, version: int | None) -> _Layer:
        if version is not None and version < 0:
            return self._layers[name][-version - 1]
        return _Layer(version is not None, frozenset(), _columns(name).empty_table())

    def snapshot(self, manifest: Manifest) -> Imagined:
        return Imagined(self, manifest)


def _columns(name: str) -> pa.Schema:
    return pa.schema([TABLES[name].field("id")]) if name in VECTORS.values() else TABLES[name]


def _changed(name: str, before: _Layer, change: Change) -> _Layer:
    key, rows = KEY.get(name, "id"), before.rows
    if change.gone and rows.num_rows:
        rows = rows.filter(
            pc.invert(pc.is_in(rows[key], pa.array(list(change.gone), rows[key].type)))
        )
    if change.rows is not None and change.rows.num_rows:
        new = change.rows if name in VECTORS.values() else prepared(name, change.rows)
        rows = pa.concat_tables([rows, new.select(_columns(name).names).cast(_columns(name))])
    return _Layer(
        before.stored, before.gone | frozenset(change.gone) if before.stored else before.gone, rows
    )


class Imagined(Snapshot):
    """A reader of an imagined generation, for those who write the next one; it cannot be searched."""

    def __init__(self, imagination: Imagination, manifest: Manifest) -> None:
        super().__init__(imagination.folder, manifest)
        self._base, self._imagination = imagination.base, imagination

    def count(self, table: str) -> int:
        if table not in self._counts:
            layer = self._layer(table)
            if layer.untouched:
                return self._base.count(table)
            stored = self._stored(table, layer, [KEY.get(table, "id")]).num_rows
            self._counts[table] = stored + layer.rows.num_rows
        return self._counts[table]

    def rows(
        self,
        table: str,
        where: str = "",
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        names, layer = names_of(table, columns), self._layer(table)
        if layer.untouched:
            return self._base.rows(table, where, columns, limit)
        if where:
            raise ValueError("an imagined table has no SQL")
        found = _together(self._stored(table, layer, names), _numbered(layer.rows, names))
        return found if limit is None else found.slice(0, limit)

    def at(self, table: str, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        stored = [id for id in row_ids if id < FIRST_ROW]
        here = [id - FIRST_ROW for id in row_ids if id >= FIRST_ROW]
        rows = self._layer(table).rows.take(pa.array(here, pa.int64())).select(list(columns))
        return _together(self._base.at(table, stored, columns), rows)

    def by_key(
        self,
        table: str,
        values: Sequence[str] | Sequence[int],
        key: str | None = None,
        columns: Sequence[str] | None = None,
        hold: bool = False,
    ) -> pa.Table:
        key = key or KEY.get(table, "id")
        values, names = list(dict.fromkeys(values)), names_of(table, columns)
        layer = self._layer(table)
        if layer.untouched:
            return self._base.by_key(table, values, key, names)
        wanted = pa.array(values, TABLES[table].field(key).type)
        read = list(dict.fromkeys([*names, key]))
        rows = _numbered(layer.rows, read)
        here = rows.filter(pc.is_in(rows[key], wanted))
        stored = empty(table, read)
        if layer.stored:
            own = KEY.get(table, "id")
            found = self._base.by_key(table, values, key, list(dict.fromkeys([*read, own])))
            stored = _without(found, own, layer.gone).select(read)
        found = _together(stored, here)
        return found.take(pc.sort_indices(pc.index_in(found[key], wanted))).select(names)

    def _layer(self, table: str) -> _Layer:
        return self._imagination.layer(table, self.manifest.tables.get(table))

    def _stored(self, table: str, layer: _Layer, names: Sequence[str]) -> pa.Table:
        if not layer.stored:
            return empty(table, names)
        own = KEY.get(table, "id")
        found = self._base.rows(table, columns=list(dict.fromkeys([*names, own])))
        return _without(found, own, layer.gone).select(list(names))


def _without(rows: pa.Table, key: str, gone: Set[str]) -> pa.Table:
    return (
        rows.filter(pc.invert(pc.is_in(rows[key], pa.array(sorted(gone), rows[key].type))))
        if gone
        else rows
    )


def _numbered(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """These columns; ROW_ID may be one of them."""
    if ROW_ID in names:
        rows = rows.append_column(
            ROW_ID, pa.array(range(FIRST_ROW, FIRST_ROW + rows.num_rows), pa.uint64())
        )
    return rows.select(list(names))


def _together(stored: pa.Table, here: pa.Table) -> pa.Table:
    if not stored.num_rows:
        return here
    return pa.concat_tables([stored, here.cast(stored.schema)]) if here.num_rows else stored
