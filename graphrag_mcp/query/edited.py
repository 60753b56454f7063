"""The edits made by hand: their list, and what an entity owes to them.

An edit is in force, undone, or dormant: the documents do not name at present what it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.edit_log import LogRow, Overlay, in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, entity_id, relationship_id
from graphrag_mcp.types import EditResult

SHOWN = 50  # edits of a list


def log(snapshot: Snapshot) -> EditResult:
    """The edits so far, the latest first."""
    overlay, result = in_force(snapshot), EditResult(op="log")
    lines = ["Nothing was edited by hand."]
    if overlay.log:
        lines = [f"{counted(len(overlay.log), 'edits')}, the last one first."]
    for row in overlay.log[: -SHOWN - 1 : -1]:
        change, now = what(row), _state(snapshot, row, overlay)
        facts = {"undo_id": row.id, "op": row.op, "what": change, "by": row.by}
        result.edits.append(facts | {"time": row.time, "state": now})
        lines.append(f"- {row.id} ({now}): {change}, by {row.by}, {row.time[:19]}")
    result.text = "\n".join(lines)
    return result


def what(row: LogRow) -> str:
    names = [one_line(name, 60) for name in (row.forms or row.keys)]
    change = (" – " if row.kind == "relationship" else ", ").join(names[:3])
    if row.op == "merge":
        change = f"{', '.join(names[1:])} into {names[0]}"
    elif len(names) > 3:
        change += ", ..."
    fields = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in row.fields.items())
    return f"{row.op} {change}" + (f": {fields}" if fields else "")


def _state(snapshot: Snapshot, row: LogRow, overlay: Overlay) -> str:
    if row.id in overlay.undone:
        return f"undone by {overlay.undone[row.id]}"
    if row.op == "remove" and not any(overlay.removed.get(uri) == row.id for uri in row.keys):
        return "over"
    if row.op in ("undo", "delete", "reject", "remove", "restore"):
        return "in force"
    names = [overlay.alias.get(key, key) for key in row.keys]
    ids = [entity_id(name) for name in names]
    if row.kind == "relationship":
        table, id = "relationships", relationship_id(*sorted(ids))
    elif names[0] != row.keys[0] and row.op != "merge":
        return f"dormant, a name of {one_line(overlay.forms.get(names[0], names[0]), 60)} now"
    else:
        table, id = "entities", ids[0]
    return "in force" if snapshot.by_key(table, [id], "id", ["id"]).num_rows else "dormant"


def about(snapshot: Snapshot, row: Mapping[str, Any]) -> str:
    """What an entity owes to edits, in a line; "" for most."""
    overlay = in_force(snapshot)
    edit = overlay.entities.get(row["key"])
    edits = []
    if edit is not None and not edit.deleted:
        action = "Made" if edit.created and not row["frequency"] else "Edited"
        fields = f" ({', '.join(sorted(edit.fields))})" if edit.fields else ""
        edits.append(f"{action} by {edit.by}{fields}, {edit.time[:10]}, {edit.rows[-1]}")
        if edit.created and not row["frequency"]:
            edits[-1] += "; no document names it"
    merged = [name for name in overlay.names.get(row["key"], ()) if overlay.aliased.get(name)]
    for name in merged[:5]:
        form = one_line(overlay.forms.get(name, name), 60)
        edits.append(f"{form} was made a name of it, {overlay.aliased[name]}")
    return f"{'; '.join(edits)}." if edits else ""


def hidden(snapshot: Snapshot, key: str) -> str:
    """Which edit hides this name; "" where none does."""
    overlay = in_force(snapshot)
    return overlay.entities[key].rows[-1] if overlay.hidden(key) else ""
