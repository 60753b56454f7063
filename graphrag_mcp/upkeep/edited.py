"""What the tables owe to the edit log: that every edit in force can be seen in the rows, and none that is not.

Takes a snapshot whose tables can be read; gives (kind, table, what) for every edit that the rows do not follow, and for
what is wrong with the log itself. Repairs nothing: the tables are derived again, and the log is the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.store.edits import APPLIED, OPS, Overlay, PairFact, facts, in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import content_id

Broken = tuple[str, str, str]
Row = dict[str, Any]


def pairs_by_hand(snapshot: Snapshot) -> dict[str, PairFact]:
    """What edits say of relationships, by id."""
    overlay = _overlay(snapshot)
    if not overlay.pairs:
        return {}
    rows = snapshot.rows("entities", columns=["key", "names"]).to_pylist()
    entity_of = {name: row["key"] for row in rows for name in row["names"]}
    return facts(sorted(overlay.pairs.values(), key=lambda edit: edit.order), entity_of)


def broken(snapshot: Snapshot, by_hand: Mapping[str, PairFact]) -> Iterator[Broken]:
    """Every edit that the rows do not follow, and every row of the log that cannot be one."""
    overlay = _overlay(snapshot)
    if not overlay.log:
        return
    yield from _log(snapshot, overlay)
    keys = {*overlay.entities, *overlay.alias, *overlay.alias.values()}
    columns = ["key", "names", "title", "type", "description"]
    found = snapshot.by_key("entities", sorted(content_id("entity", key) for key in keys), "id", columns).to_pylist()
    rows = {row["key"]: row for row in found}
    for key, target in sorted(overlay.alias.items()):
        if key in rows:
            yield "edit", "entities", f"{key!r} is an entity, but {overlay.aliased[key]} made it a name of {target!r}"
        elif target in rows and key not in rows[target]["names"]:
            yield "edit", "entities", f"{key!r} is no name of {target!r}, which {overlay.aliased[key]} made it"
    for key, edit in sorted(overlay.entities.items()):
        row = rows.get(key)
        if edit.deleted and row is not None:
            yield "edit", "entities", f"{key!r} is there, but {edit.rows[-1]} hides it"
        elif row is None and overlay.made(key) and key not in overlay.alias:
            yield "edit", "entities", f"{key!r} is not there, but {edit.rows[-1]} made it"
        elif row is not None:
            yield from _fields("entities", repr(key), row, overlay.words(key))
    there = snapshot.by_key("relationships", sorted(by_hand), "id", ["id", "description", "keywords", "weight"])
    related = {row["id"]: row for row in there.to_pylist()}
    for id, fact in sorted(by_hand.items()):
        if fact.hidden and id in related:
            yield "edit", "relationships", f"{id} is there, but an edit hides it"
        elif fact.created and not fact.hidden and id not in related:
            yield "edit", "relationships", f"{id} is not there, but an edit made it"
        elif id in related and not fact.hidden:
            yield from _fields("relationships", id, related[id], fact.fields)


def _overlay(snapshot: Snapshot) -> Overlay:
    try:
        return in_force(snapshot)
    except GraphRAGError:  # a finding of its own
        return Overlay()


def _log(snapshot: Snapshot, overlay: Overlay) -> Iterator[Broken]:
    known: list[str] = []
    for place, row in enumerate(overlay.log, 1):
        if row.op not in OPS or not row.keys:
            yield "edit", "truth", f"row {place} of the edit log is no edit ({row.op!r})"
        if row.op == "undo" and not known.count(row.keys[0]):
            yield "edit", "truth", f"{row.id} undoes {row.keys[0]!r}, which is not in the log before it"
        if row.id in known and known[-1] != row.id:
            yield "edit", "truth", f"two edits are called {row.id}"
        known.append(row.id)
    followed = snapshot.manifest.parameters.get(APPLIED, 0)
    if followed != len(overlay.log):
        yield "edit", "entities", f"the tables follow {followed} of {len(overlay.log)} rows of the edit log"


def _fields(table: str, name: str, row: Row, given: Mapping[str, Any]) -> Iterator[Broken]:
    for field, value in given.items():
        if row[field] != value:
            yield "edit", table, f"{name}: its {field} is not the one that was given to it"
