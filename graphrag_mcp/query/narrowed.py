"""A snapshot whose full text, reports and passages are limited to what passes filters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.query.filters import Filters
from graphrag_mcp.store.tables import Snapshot, Values, Wanted, values_of

FIRST_PROBE = 800  # candidates that are read at first; four times as many each time after


class Narrowed(Snapshot):
    """A snapshot whose full text and reports are limited to what passes the filters; everything
    else is read through the snapshot that it is made of. It counts as the same key in caches by
    snapshot."""

    def __init__(self, inner: Snapshot, filters: Filters) -> None:
        self.__dict__["inner"], self.__dict__["filters"] = inner, filters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    @property
    def whole(self) -> Snapshot:
        return self.inner.whole

    def full_text(
        self, table: str, terms: Sequence[str], limit: int = 200, columns: Wanted = None
    ) -> pa.Table:
        """From as many candidates as it takes to find `limit` that pass."""
        if table not in ("passages", "reports"):
            return self.inner.full_text(table, terms, limit, columns)
        probe, total = max(limit, FIRST_PROBE), self.count(table)
        while True:
            found = self.inner.full_text(table, terms, min(probe, total))
            passages = table == "passages"
            kept = self.filters.rows(self.inner, found) if passages else self._reports(found)
            if kept.num_rows >= limit or probe >= total or found.num_rows < probe:
                names = columns or [name for name in kept.column_names if name != "_score"]
                return kept.slice(0, limit).select([*names, "_score"])
            probe *= 4

    def rows(
        self, table: str, where: str = "", columns: Wanted = None, limit: int | None = None
    ) -> pa.Table:
        if table != "reports":
            return self.inner.rows(table, where, columns, limit)
        found = self._reports(self.inner.rows(table, where, None, limit))
        return found.select(columns or found.column_names)

    def by_key(
        self, table: str, values: Values, key: str | None = None, columns: Wanted = None
    ) -> pa.Table:
        if table != "reports":
            return self.inner.by_key(table, values, key, columns)
        found = self._reports(self.inner.by_key(table, values, key))
        return found.select(columns or found.column_names)

    def served(
        self, table: str, ids: Sequence[str], columns: Wanted = None
    ) -> list[dict[str, Any]]:
        rows = self.inner.served(table, ids, columns)
        return self.filters.in_time(self.inner, rows) if table == "passages" else rows

    def _reports(self, found: pa.Table) -> pa.Table:
        """Reports of enough rating, on text of a document that passes, on communities without
        excluded entities."""
        passes = [self.filters.report(rank) for rank in values_of(found["rank"])]
        found = found.filter(pa.array(passes, pa.bool_()))
        if self._allowed is None:
            return found
        return found.filter(pc.is_in(found["id"], self._allowed))

    @cached_property
    def _allowed(self) -> pa.Array | None:
        """Communities with no excluded entity, with one of a wanted type, and with one that a
        document that passes names; None for all. A report lists only the heaviest members."""
        filters = self.filters
        types, documents = filters.of("type"), filters.documents
        if documents is None and not types and not filters.without:
            return None
        rows = self.inner.rows("entities", "", ["id", "type", "text_unit_ids"]).to_pylist()
        groups = []
        if types:
            groups.append({row["id"] for row in rows if filters.entity(row)})
        if documents is not None:
            listed = self.inner.by_key("text_units", sorted(documents), "document_id", ["id"])
            units = set(values_of(listed["id"]))
            groups.append({row["id"] for row in rows if not units.isdisjoint(row["text_unit_ids"])})
        members = self.inner.rows("communities", "", ["id", "entity_ids"]).to_pylist()
        allowed = [
            row["id"]
            for row in members
            if filters.without.isdisjoint(row["entity_ids"])
            and not any(group.isdisjoint(row["entity_ids"]) for group in groups)
        ]
        return pa.array(allowed, pa.string())
