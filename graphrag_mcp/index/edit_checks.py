"""What may be edited: a wish against the graph as it is and the log as it is, as rows of the log.

Takes an operation with its names and fields; gives the rows to append, none where everything is so already. What
cannot be done is said with what to do instead. Also says in a sentence what a row means. Reads single rows, writes
none.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import commits
from graphrag_mcp.index.mentions import entity_id
from graphrag_mcp.index.pairs import relationship_id
from graphrag_mcp.store.edits import ENTITY_FIELDS, PAIR_FIELDS, LogRow, Overlay, fold
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import counted, normalise_name

if TYPE_CHECKING:
    from graphrag_mcp.index.edits import Wish

Row = dict[str, Any]
LONGEST = {"title": 300, "type": 80, "keywords": 1_000, "description": 20_000}  # characters
HEAVIEST = 1e6
SAME_FIELD = {"name": "title", "new_name": "title", "entity_type": "type", "desc": "description", "strength": "weight"}


@dataclass(frozen=True)
class Target:
    """One entity (one name) or one relationship (two): names as keys, and as they are written."""

    keys: tuple[str, ...]
    forms: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "entity" if len(self.keys) == 1 else "relationship"


def rows(snapshot: Snapshot, log: Sequence[LogRow], wish: Wish, id: str) -> list[LogRow]:
    """The rows that the wish is, under the id of its undo. Raises BadInput or NotFound."""
    overlay = fold(log)
    now = commits.now()

    def row(op: str, kind: str, keys: Sequence[str], forms: Sequence[str] = (), fields: Row | None = None) -> LogRow:
        return LogRow(id, op, kind, tuple(keys), tuple(forms), fields or {}, wish.by, now)

    if not wish.targets:
        raise BadInput(f"op {wish.op!r} needs ids", 'Give ids=["e12"], a name, or of an undo its undo_id')
    if wish.op == "undo":
        _undoable(log, overlay, wish.targets)
        return [row("undo", "", [target.keys[0] for target in wish.targets])]
    if wish.op == "create":
        target = _one(wish)
        _creatable(snapshot, overlay, target)
        return [row("create", target.kind, target.keys, target.forms, cleaned(wish.fields, target.kind))]
    found = [_there(snapshot, target) for target in wish.targets]
    if wish.op == "delete":
        return [row("delete", target.kind, target.keys, target.forms) for target in wish.targets]
    if wish.op in ("merge", "reject"):
        return _several(snapshot, overlay, wish, row)
    if wish.op in ("update", "rename"):
        target = _one(wish)
        fields = _new(cleaned(wish.fields, target.kind), found[0], wish)
        return _worded(snapshot, overlay, target, fields, row)
    raise BadInput(f"op {wish.op[:40]!r} is unknown", "Use create, update, rename, merge, delete, undo or reject")


def _one(wish: Wish) -> Target:
    if len(wish.targets) != 1:
        raise BadInput(f"op {wish.op!r} takes one, {len(wish.targets)} are named", "Make one call for each")
    return wish.targets[0]


def _there(snapshot: Snapshot, target: Target) -> Row:
    """The target's row. NotFound when it has gone since its id was read."""
    if target.kind == "entity":
        found = snapshot.by_key("entities", [entity_id(target.keys[0])], "id", TABLES["entities"].names)
    else:
        id = relationship_id(*sorted(map(entity_id, target.keys)))
        found = snapshot.by_key("relationships", [id], "id", TABLES["relationships"].names)
    if not found.num_rows:
        name = " and ".join(target.forms or target.keys)[:100]
        known = "Call get_entity for the names there are" if target.kind == "entity" else "Use op create to relate them"
        raise NotFound(f"the graph holds no {target.kind} {name!r}", known)
    return found.to_pylist()[0]


def _several(snapshot: Snapshot, overlay: Overlay, wish: Wish, row: Any) -> list[LogRow]:
    """Merges, and proposals that are refused."""
    if any(target.kind != "entity" for target in wish.targets):
        raise BadInput(f"op {wish.op!r} is for entities", "Give ids of entities (e12) or names")
    targets = list({target.keys: target for target in wish.targets}.values())
    if len(targets) < 2:
        raise BadInput("these names are one entity already", 'Give two or more, e.g. ids=["e7", "e12"]')
    keys, forms = [one.keys[0] for one in targets], [one.forms[0] for one in targets]
    if wish.op == "reject":
        known = all(tuple(sorted((keys[0], other))) in overlay.rejected for other in keys[1:])
        return [] if known else [row("reject", "entity", keys, forms)]
    made = [row("merge", "entity", keys, forms)]
    if wish.fields:
        fields = cleaned(wish.fields, "entity")
        title = normalise_name(fields.get("title", ""))
        if title in keys:  # one of the merged names
            made.append(row("update", "entity", keys[:1], forms[:1], fields))
        else:
            made += _worded(snapshot, overlay, targets[0], fields, row)
    return made


def _worded(snapshot: Snapshot, overlay: Overlay, target: Target, fields: Row, row: Any) -> list[LogRow]:
    """New words for an entity or a relationship; another name of an entity stands for it from then on."""
    if not fields:
        return []
    title = fields.get("title", "")
    if not title:
        return [row("update", target.kind, target.keys, target.forms, fields)]
    key = normalise_name(title)
    if not _is_name(key):
        raise BadInput(f"{title[:60]!r} is no name: it has no letter or digit", "Give another title")
    holder = _holder(snapshot, overlay, key)
    if holder is not None and holder["key"] != target.keys[0]:
        merge = f'Use op merge with ids=["e{holder["n"]}", ...] instead'
        raise BadInput(f"{title[:60]!r} is another entity, e{holder['n']}", merge)
    known = key == target.keys[0] or overlay.alias.get(key) == target.keys[0]
    keys, forms = (target.keys, target.forms) if known else ((*target.keys, key), (*target.forms, title))
    return [row("rename", "entity", keys, forms, fields)]


def _is_name(key: str) -> bool:
    return any(map(str.isalnum, key))


def _holder(snapshot: Snapshot, overlay: Overlay, key: str) -> Row | None:
    """The entity that holds a name: its own, one given to it, or one that texts define for it."""
    said = snapshot.by_key("mentions", [key], "key", ["alias_of"])["alias_of"].to_pylist()
    keys = dict.fromkeys([key, overlay.alias.get(key, key), *filter(None, said)])
    keys |= dict.fromkeys(overlay.alias.get(one, one) for one in keys)
    found = snapshot.by_key("entities", [entity_id(one) for one in keys], "id", ["id", "n", "key", "names", "title"])
    return next((row for row in found.to_pylist() if key in row["names"]), None)


def _creatable(snapshot: Snapshot, overlay: Overlay, target: Target) -> None:
    if not all(map(_is_name, target.keys)):
        raise BadInput("a name needs a letter or digit", 'Give ids=["its name"]')
    if target.kind == "relationship":
        for key, form in zip(target.keys, target.forms, strict=True):
            _there(snapshot, Target((key,), (form,)))
        if target.keys[0] == target.keys[1]:
            raise BadInput("both ends are one entity", "Give two different ones")
        id = relationship_id(*sorted(map(entity_id, target.keys)))
        if found := snapshot.by_key("relationships", [id], "id", ["n"])["n"].to_pylist():
            raise BadInput(f"they have a relationship already, r{found[0]}", f'Use op update with ids=["r{found[0]}"]')
        return
    holder = _holder(snapshot, overlay, target.keys[0])
    if holder is not None:
        name = f"{target.forms[0][:60]!r} is in the graph already, as e{holder['n']}"
        raise BadInput(name, f'Use op update with ids=["e{holder["n"]}"]')
    if target.keys[0] in overlay.aliased:
        other = overlay.alias[target.keys[0]]
        undo = f'Use op undo with ids=["{overlay.aliased[target.keys[0]]}"] first'
        what = f"{target.forms[0][:60]!r} was made another name of {overlay.forms.get(other, other)[:60]!r}"
        raise BadInput(what, undo)


def _undoable(log: Sequence[LogRow], overlay: Overlay, targets: Sequence[Target]) -> None:
    known = list(dict.fromkeys(row.id for row in log))
    for target in targets:
        id = target.keys[0]
        if id not in known:
            last = ", ".join(reversed(known[-5:]))
            advice = f"The last ones are {last}" if last else "Nothing was edited yet"
            raise NotFound(f"there is no edit {id[:40]!r}", advice)
        if id in overlay.undone:
            by = overlay.undone[id]
            raise BadInput(f"{id} is undone already", f'To have it again use op undo with ids=["{by}"]')


def cleaned(given: Mapping[str, Any], kind: str) -> Row:
    """The fields under their names, as they are stored. BadInput names what cannot be set."""
    allowed = ENTITY_FIELDS if kind == "entity" else PAIR_FIELDS
    fields: Row = {}
    for name, value in given.items():
        name = str(name).strip().lower()
        name = SAME_FIELD.get(name, name)
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            meant = f"Perhaps {near[0]} was meant" if near else f"Set {', '.join(allowed)}"
            raise BadInput(f"the field {name[:40]!r} cannot be set (on this {kind})", meant)
        fields[name] = _weight(value) if name == "weight" else _text(name, value)
    return fields


def _text(name: str, value: Any) -> str:
    if isinstance(value, list) and name == "keywords":
        value = ", ".join(str(one) for one in value)
    text = str(value).encode("utf-8", "replace").decode() if isinstance(value, str | int | float) else ""
    text = text.replace("\0", "").strip() if name == "description" else " ".join(text.replace("\0", " ").split())
    if not text:
        raise BadInput(f"the field {name} must be a text", f'Give fields=["{name}=..."]')
    return (text.lower() if name == "type" else text)[: LONGEST[name]]


def _weight(value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight <= HEAVIEST:
        raise BadInput(f"weight {str(value)[:40]!r} is no number above 0", "Give a weight such as 2.5")
    return round(weight, 6)


def _new(fields: Row, row: Row, wish: Wish) -> Row:
    """The fields that differ from what is stored."""
    if wish.op == "rename" and "title" not in fields:
        raise BadInput("a rename needs the new name", 'Give fields=["title=..."]')
    if not fields:
        raise BadInput("there is nothing to update", 'Give fields=["description=..."], or type, keywords, weight')
    return {name: value for name, value in fields.items() if row[name] != value}


def sentence(row: LogRow, overlay: Overlay) -> str:
    """What a row means, for people."""
    names = [" ".join(form.split())[:80] for form in (row.forms or row.keys)]
    fields = ", ".join(f"{name} = {str(value)[:80]}" for name, value in row.fields.items())
    pair = " – ".join(names[:2])
    said = {
        "merge": f"{', '.join(names[1:])} {'becomes a name' if len(names) == 2 else 'become names'} of {names[0]}",
        "rename": f"{names[0]}: {fields}", "update": f"{pair if row.kind == 'relationship' else names[0]}: {fields}",
        "create": f"{row.kind} {pair if row.kind == 'relationship' else names[0]} without evidence, by {row.by}"
        + (f": {fields}" if fields else ""),
        "delete": f"{row.kind} {pair} is hidden, whatever the documents say",
        "reject": f"{names[0]} and {', '.join(names[1:])} are not proposed as one again",
        "remove": f"{counted(len(names), 'documents')} kept out: {', '.join(names[:3])}",
        "restore": f"{counted(len(names), 'documents')} to come back: {', '.join(names[:3])}",
    }  # fmt: skip
    if row.op == "undo":
        undone = [one for one in overlay.log if one.id in row.keys and one.op != "undo"]
        what = "; ".join(sentence(one, overlay) for one in undone[:3])
        return f"Undo of {', '.join(row.keys)}: {what or 'an undo.'}"
    return f"{row.op.capitalize()}: {said[row.op]}."
