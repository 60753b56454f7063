"""What was changed by hand: the last edits with their state, and what an entity owes to them.

Takes a snapshot; gives the log as a result of edit_graph, and lines about one entity. An edit is in force, undone, or
dormant: the documents do not name at present what it speaks of. Reads the log and looks names up; changes nothing.
"""

from __future__ import annotations

from typing import Any

from graphrag_mcp.pack import one_line
from graphrag_mcp.store.edits import LogRow, Overlay, in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import counted
from graphrag_mcp.types import EditResult, content_id

SHOWN = 50
Row = dict[str, Any]


def log(snapshot: Snapshot) -> EditResult:
    """The edits so far, the last one first."""
    overlay = in_force(snapshot)
    there = _entities(snapshot, overlay)
    result = EditResult(op="log")
    for row in reversed(overlay.log):
        result.edits.append({
            "undo_id": row.id, "op": row.op, "what": what(row), "by": row.by, "time": row.time,
            "state": state(row, overlay, there, snapshot),
        })  # fmt: skip
    shown = result.edits[:SHOWN]
    lines = [f"- {one['undo_id']} ({one['state']}): {one['what']}, by {one['by']}, {one['time'][:19]}" for one in shown]
    head = f"{counted(len(result.edits), 'edits')}, the last one first." if lines else "Nothing was edited by hand."
    result.text, result.edits = "\n".join([head, *lines]), shown
    return result


def what(row: LogRow) -> str:
    names = [one_line(name, 60) for name in (row.forms or row.keys)]
    if row.op == "merge":
        said = f"{', '.join(names[1:])} into {names[0]}"
    else:
        said = (" – " if row.kind == "relationship" else ", ").join(names[:3]) + (", ..." if len(names) > 3 else "")
    fields = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in row.fields.items())
    return f"{row.op} {said}" + (f": {fields}" if fields else "")


def state(row: LogRow, overlay: Overlay, there: set[str], snapshot: Snapshot) -> str:
    if row.id in overlay.undone:
        return f"undone by {overlay.undone[row.id]}"
    if row.op == "remove" and not any(overlay.removed.get(uri) == row.id for uri in row.keys):
        return "over"
    if row.op in ("undo", "delete", "reject", "remove", "restore"):
        return "in force"
    if row.kind == "relationship":
        ends = sorted(content_id("entity", overlay.alias.get(key, key)) for key in row.keys)
        found = snapshot.by_key("relationships", [content_id("relationship", *ends)], "id", ["id"]).num_rows
        return "in force" if found else "dormant"
    own = overlay.alias.get(row.keys[0], row.keys[0])
    if own != row.keys[0] and row.op != "merge":
        return f"dormant, a name of {one_line(overlay.forms.get(own, own), 60)} now"
    return "in force" if own in there else "dormant"


def _entities(snapshot: Snapshot, overlay: Overlay) -> set[str]:
    """Names in the log that are entities now."""
    keys = {overlay.alias.get(key, key) for row in overlay.log if row.kind == "entity" for key in row.keys}
    ids = {content_id("entity", key): key for key in keys}
    return {ids[id] for id in snapshot.by_key("entities", sorted(ids), "id", ["id"])["id"].to_pylist()}


def about(snapshot: Snapshot, row: Row) -> str:
    """What an entity owes to edits, in a line; "" for most."""
    overlay = in_force(snapshot)
    edit = overlay.entities.get(row["key"])
    said = []
    if edit is not None and not edit.deleted:
        made = "Made" if edit.created and not row["frequency"] else "Edited"
        fields = f" ({', '.join(sorted(edit.fields))})" if edit.fields else ""
        said.append(f"{made} by {edit.by}{fields}, {edit.time[:10]}, {edit.rows[-1]}")
        if edit.created and not row["frequency"]:
            said[-1] += "; no document names it"
    merged = [name for name in overlay.names.get(row["key"], ()) if overlay.aliased.get(name)]
    said += [
        f"{one_line(overlay.forms.get(name, name), 60)} was made a name of it, {overlay.aliased[name]}"
        for name in merged[:5]
    ]
    return f"{'; '.join(said)}." if said else ""


def hidden(snapshot: Snapshot, key: str) -> str:
    """Which edit hides this name; "" where none does."""
    overlay = in_force(snapshot)
    return overlay.entities[key].rows[-1] if overlay.hidden(key) else ""
