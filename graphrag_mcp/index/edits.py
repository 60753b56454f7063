"""Edits of the graph by hand: checked, tried or made. An edit is a row of the edit log, which outlives
every re-indexing; what it does to the tables: edit_commit.py."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index.edit_commit import NEXT, editing, merged_with, moves_graph, next_id, write
from graphrag_mcp.index.merge import Merge
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.edit_log import LogRow, Overlay, fold
from graphrag_mcp.store.manifest import FORMAT, Manifest, current, now, writer_lock
from graphrag_mcp.store.tables import Snapshot, open_snapshot, values_of
from graphrag_mcp.text.terms import entity_id, normalise_name, relationship_id
from graphrag_mcp.trust.fencing import masked
from graphrag_mcp.types import EditResult

Row = dict[str, Any]
LONGEST = {"title": 300, "type": 80, "keywords": 1_000, "description": 20_000}  # characters
LONGEST_URI = 4_096  # as long as a path may be
HEAVIEST = 1e6


@dataclass(frozen=True)
class Target:
    """One entity (one name) or one relationship (two): names as keys, and as they are written."""

    keys: tuple[str, ...]
    forms: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "entity" if len(self.keys) == 1 else "relationship"


@dataclass(frozen=True)
class Wish:
    """`op` of store/edit_log.py; `targets`: rows, or the id to undo; `fields`: new values."""

    op: str
    targets: Sequence[Target]
    fields: Mapping[str, Any]
    by: str


OPS = ("create", "update", "rename", "merge", "delete", "undo", "reject")
OF_ONE = ("create", "update", "rename")


def rows(snapshot: Snapshot, log: Sequence[LogRow], id: str, wish: Wish) -> list[LogRow]:
    """The rows that the wish is, under the id of its undo. Raises BadInput or NotFound."""
    overlay, op, targets = fold(log), wish.op, wish.targets
    if op not in OPS:
        raise BadInput(f"op {op[:40]!r} is unknown", f"Use {', '.join(OPS)}")
    if not targets:
        what = 'Give ids=["e12"], a name, or of an undo its undo_id'
        raise BadInput(f"op {op!r} needs ids", what)
    if op in OF_ONE and len(targets) > 1:
        what = f"op {op!r} takes one, {len(targets)} are named"
        raise BadInput(what, "Make one call for each")
    target = targets[0]
    kind, keys, forms = target.kind, target.keys, target.forms
    row = partial(LogRow, id, by=wish.by, time=now())
    if op == "undo":
        for one in targets:
            _check_undoable(log, overlay, one.keys[0])
        return [row("undo", "", tuple(one.keys[0] for one in targets))]
    if op == "create":
        _check_creatable(snapshot, overlay, target)
        return [row("create", kind, keys, forms, cleaned(wish.fields, kind))]
    before = [_there(snapshot, one) for one in targets]
    if op == "delete":
        return [row("delete", one.kind, one.keys, one.forms) for one in targets]
    found = list[LogRow]()
    if op in ("merge", "reject"):
        keys, forms = _names(op, targets)
        known = (tuple(sorted((keys[0], other))) in overlay.rejected for other in keys[1:])
        if op == "reject":
            return [] if all(known) else [row("reject", "entity", keys, forms)]
        found.append(row("merge", "entity", keys, forms))
        fields = cleaned(wish.fields, "entity")
    else:
        fields = cleaned(wish.fields, kind)
        if op == "rename" and "title" not in fields:
            raise BadInput("a rename needs the new name", 'Give fields=["title=..."]')
        if not fields:
            what = 'Give fields=["description=..."], or type, keywords, weight'
            raise BadInput("there is nothing to update", what)
        fields = {name: value for name, value in fields.items() if before[0][name] != value}
    title = fields.get("title", "")
    key = normalise_name(title)
    if title and key not in keys:  # another name stands for the entity from then on
        _check_free(snapshot, overlay, target, title)
        keys, forms = (keys[0], key), (target.forms[0], title)
        if overlay.alias.get(key) == keys[0]:
            keys, forms = keys[:1], forms[:1]
        return [*found, row("rename", "entity", keys, forms, fields)]
    if fields and kind == "entity":  # one of the names that it has
        keys, forms, op = keys[:1], forms[:1], "rename" if title and op != "merge" else "update"
    return [*found, row(op, kind, keys, forms, fields)] if fields else found


def _there(snapshot: Snapshot, target: Target) -> Row:
    """The target's row. NotFound when it has gone since its id was read."""
    ids = sorted(map(entity_id, target.keys))
    if target.kind == "entity":
        found, known = snapshot.served("entities", ids), "Call get_entity for the names there are"
    else:
        found = snapshot.served("relationships", [relationship_id(*ids)])
        known = "Use op create to relate them"
    if not found:
        name = " and ".join(target.forms or target.keys)[:100]
        raise NotFound(f"the graph holds no {target.kind} {name!r}", known)
    return found[0]


def _is_there(snapshot: Snapshot, overlay: Overlay, target: Target) -> bool:
    """Does the graph hold the relationship, or an entity of this name?"""
    if target.kind == "entity":
        return _holder(snapshot, overlay, target.keys[0]) is not None
    id = relationship_id(*sorted(map(entity_id, target.keys)))
    return bool(snapshot.served("relationships", [id], ["n"]))


def _names(op: str, targets: Sequence[Target]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of two or more entities, as keys and as they are written."""
    if any(target.kind != "entity" for target in targets):
        raise BadInput(f"op {op!r} is for entities", "Give ids of entities (e12) or names")
    form_of = {target.keys[0]: target.forms[0] for target in targets}
    if len(form_of) < 2:
        what = "these names are one entity already"
        raise BadInput(what, 'Give two or more, e.g. ids=["e7", "e12"]')
    return tuple(form_of), tuple(form_of.values())


def _holder(snapshot: Snapshot, overlay: Overlay, key: str) -> Row | None:
    """The entity that holds a name: its own, one given to it, or one that texts define for it."""
    defined = values_of(snapshot.by_key("mentions", [key], "key", ["alias_of"])["alias_of"])
    keys = dict.fromkeys([key, overlay.alias.get(key, key), *filter(None, defined)])
    keys |= dict.fromkeys(overlay.alias.get(key, key) for key in keys)
    found = snapshot.served("entities", list(map(entity_id, keys)), ["n", "key", "names"])
    return next((row for row in found if key in row["names"]), None)


def _check_name(key: str, form: str) -> None:
    if not any(map(str.isalnum, key)):
        raise BadInput(f"{form[:60]!r} is no name: it has no letter or digit", "Give another one")


def _check_free(snapshot: Snapshot, overlay: Overlay, target: Target, title: str) -> None:
    """Raises BadInput where the title is no name, or that of another entity than the target."""
    key = normalise_name(title)
    _check_name(key, title)
    holder = _holder(snapshot, overlay, key)
    if holder is not None and holder["key"] != target.keys[0]:
        merge = f'Use op merge with ids=["e{holder["n"]}", ...] instead'
        raise BadInput(f"{title[:60]!r} is another entity, e{holder['n']}", merge)


def _check_creatable(snapshot: Snapshot, overlay: Overlay, target: Target, made: Collection[str] = ()) -> None:
    """Raises BadInput and NotFound. `made`: keys of entities that are created by the same edit."""
    for key, form in zip(target.keys, target.forms, strict=True):
        _check_name(key, form)
    if target.kind == "relationship":
        for key, form in zip(target.keys, target.forms, strict=True):
            if key not in made:
                _there(snapshot, Target((key,), (form,)))
        if target.keys[0] == target.keys[1]:
            raise BadInput("both ends are one entity", "Give two different ones")
        id = relationship_id(*sorted(map(entity_id, target.keys)))
        if found := values_of(snapshot.by_key("relationships", [id], "id", ["n"])["n"]):
            wrong = f"they have a relationship already, r{found[0]}"
            raise BadInput(wrong, f'Use op update with ids=["r{found[0]}"]')
        return
    key, name = target.keys[0], repr(target.forms[0][:60])
    if (holder := _holder(snapshot, overlay, key)) is not None:
        update = f'Use op update with ids=["e{holder["n"]}"]'
        raise BadInput(f"{name} is in the graph already, as e{holder['n']}", update)
    if key in overlay.aliased:
        other = overlay.forms.get(overlay.alias[key], overlay.alias[key])
        undo = f'Use op undo with ids=["{overlay.aliased[key]}"] first'
        raise BadInput(f"{name} was made another name of {other[:60]!r}", undo)


def _check_undoable(log: Sequence[LogRow], overlay: Overlay, id: str) -> None:
    known = list(dict.fromkeys(row.id for row in log))
    if id not in known:
        last = ", ".join(reversed(known[-5:]))
        advice = f"The last ones are {last}" if last else "Nothing was edited yet"
        raise NotFound(f"there is no edit {id[:40]!r}", advice)
    if id in overlay.undone:
        again = f'To have it again use op undo with ids=["{overlay.undone[id]}"]'
        raise BadInput(f"{id} is undone already", again)


def cleaned(arguments: Mapping[str, Any], kind: str) -> Row:
    """The fields under their names, as they are stored. BadInput names what cannot be set."""
    allowed = logs.ENTITY_FIELDS if kind == "entity" else logs.PAIR_FIELDS
    fields: Row = {}
    for name, value in arguments.items():
        name = str(name).strip().lower()
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            meant = f"Perhaps {near[0]} was meant" if near else f"Set {', '.join(allowed)}"
            raise BadInput(f"the field {name[:40]!r} cannot be set (on this {kind})", meant)
        fields[name] = _weight(value) if name == "weight" else _text(name, value)
    return fields


def _text(name: str, value: Any) -> str:
    if isinstance(value, list) and name == "keywords":
        value = ", ".join(str(keyword) for keyword in value)
    text = ""
    if isinstance(value, str | int | float):
        text = str(value).encode("utf-8", "replace").decode().replace("\0", " ")
    text = text.strip() if name == "description" else " ".join(text.split())
    if not text:
        raise BadInput(f"the field {name} must be a text", f'Give fields=["{name}=..."]')
    text = masked(text)  # a key that is stored would stand in exports and in prompts
    return text.lower() if name == "type" else text


def _weight(value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight <= HEAVIEST:
        what = f"weight {str(value)[:40]!r} is no number above 0"
        raise BadInput(what, "Give a weight such as 2.5")
    return round(weight, 6)


def within_limits(row: LogRow) -> None:
    """BadInput for a row with a text that is longer than what is stored."""
    longest = LONGEST_URI if row.kind == "document" else LONGEST["title"]
    texts = [("name", text) for text in (*row.keys, *row.forms)]
    texts += [(name, text) for name, text in row.fields.items() if isinstance(text, str)]
    texts += [(name, getattr(row, name)) for name in ("id", "op", "by", "time")]
    for name, text in texts:
        if len(text) > (most := LONGEST.get(name, longest)):
            what = f"the {name} {text[:40]!r} has {len(text):,} characters"
            raise BadInput(what, f"It may have up to {most:,}")


SAID = {
    "merge": "{others} as names of {first}",
    "rename": "{first}",
    "update": "{names}",
    "create": "{names} without evidence, by {by}",
    "delete": "{names} hidden, whatever the documents say",
    "reject": "{names} not to be proposed as one again",
    "remove": "{names} kept out",
    "restore": "{names} to come back",
}


def sentence(row: LogRow, overlay: Overlay) -> str:
    names = [" ".join(form.split())[:80] for form in (row.forms or row.keys)]
    if row.op == "undo":
        undone = [edit for edit in overlay.log if edit.id in row.keys and edit.op != "undo"]
        what = "; ".join(sentence(edit, overlay) for edit in undone[:3])
        return f"Undo of {', '.join(row.keys)}: {what or 'an undo.'}"
    joint, shown = " – " if row.kind == "relationship" else ", ", names[:3]
    more = [f"and {len(names) - 3} more"] if len(names) > 3 else []
    said = SAID[row.op].format(
        names=joint.join([*shown, *more]), first=names[0], others=", ".join(names[1:]), by=row.by
    )
    fields = ", ".join(f"{name} = {str(value)[:80]}" for name, value in row.fields.items())
    return f"{row.op.capitalize()}: {said}{': ' if fields else ''}{fields}."


LOCK_SECONDS = 20.0  # how long an edit waits for an indexing; hosts wait 50
NAMED = 8  # names that a sentence lists


def edit(folder: Path, wish: Wish, dry_run: bool = True) -> EditResult:
    """Make a change durable, or say what it is. Raises BadInput, NotFound, Busy, Damaged."""
    return _change(folder, dry_run, partial(rows, wish=wish))


def create(folder: Path, wishes: Iterable[tuple[Target, Row]], by: str) -> tuple[bool, list[Target]]:
    """Create entities, and relationships behind them, as one edit with one undo: was any of them new, and those that
    are neither there nor can be created. A field without a value is left out. Raises Busy and Damaged."""
    left_out: list[Target] = []

    def make(snapshot: Snapshot, log: Sequence[LogRow], id: str) -> list[LogRow]:
        overlay, made, names = fold(log), dict[tuple[str, ...], LogRow](), set[str]()
        for target, fields in wishes:
            if target.keys in made or _is_there(snapshot, overlay, target):
                continue
            try:
                _check_creatable(snapshot, overlay, target, names)
                given = cleaned({name: value for name, value in fields.items() if value}, target.kind)
                row = LogRow(id, "create", target.kind, target.keys, target.forms, given, by=by, time=now())
                within_limits(row)
            except (BadInput, NotFound):
                left_out.append(target)
            else:
                made[target.keys] = row
                names.update(target.keys)
        return list(made.values())

    return bool(_change(folder, False, make).undo_id), left_out


def replay(folder: Path, log: Sequence[LogRow]) -> EditResult:
    """Add the edits of another index; the rows keep their ids, makers and times."""
    known = {row.id for row in logs.load(folder, current(folder))}
    if twice := sorted({row.id for row in log} & known):
        what = f"this index has edits called {', '.join(twice[:5])} already"
        raise BadInput(what, "Replay into an index without any")
    return _change(folder, False, lambda *_: list(log))


Make = Callable[[Snapshot, Sequence[LogRow], str], list[LogRow]]


def _change(folder: Path, dry_run: bool, make: Make) -> EditResult:
    with nullcontext() if dry_run else writer_lock(folder, LOCK_SECONDS):
        manifest = ready(current(folder))
        snapshot = open_snapshot(folder, manifest, keep=False)
        log = logs.load(folder, manifest)
        numbers = dict(manifest.next)
        id = next_id(numbers)
        rows = make(snapshot, log, id)
        for row in rows:
            within_limits(row)
        if not rows:
            return EditResult(dry_run=dry_run, text="Nothing changes: the graph says that already.")
        if any(row.id != id for row in rows):  # replayed: no number is given twice
            last = max((int(row.id[1:]) for row in rows if row.id[1:].isdigit()), default=0)
            numbers[NEXT] = max(numbers[NEXT] - 1, last + 1)
        every = [*log, *rows]
        overlay, merged = merged_with(snapshot, every, manifest, numbers)
        result = EditResult(op=rows[-1].op, dry_run=dry_run, undo_id="" if dry_run else rows[-1].id)
        lines = [sentence(row, overlay) for row in rows[-5:]]
        for table in ("entities", "relationships"):
            lines += _moved(result, table, snapshot, merged)
        if not moves_graph(merged):
            lines.append(_dormant(rows, overlay))
        head = "Dry run, nothing is changed. " if dry_run else ""
        result.text = head + "\n".join(filter(None, lines))
        if not dry_run:
            kind, added = segment_store.EDITS, logs.to_table(rows)
            segments = segment_store.appended(folder, manifest, kind, added)
            write(editing(folder, manifest), segments, merged, numbers, len(every))
        return result


def ready(manifest: Manifest) -> Manifest:
    """Raises BadInput for rows whose names this release might take for others."""
    if manifest.format != FORMAT or manifest.of_another_release():
        what = "this index was made by an earlier release"
        raise BadInput(what, "Call index_documents once, then edit")
    return manifest


def _moved(result: EditResult, table: str, snapshot: Snapshot, merged: Merge) -> list[str]:
    """How many rows come, change and go, and the names of entities that do."""
    change = merged.changes.get(table)
    if change is None:
        return []
    rows = change.rows.to_pylist() if change.rows is not None else []
    after = {row["id"]: row for row in rows}
    removed = set(change.gone)
    parts = {"added": after.keys() - removed, "changed": after.keys() & removed}
    parts["removed"] = removed - after.keys()
    result.changes |= {f"{table}_{how}": len(ids) for how, ids in parts.items() if ids}
    lines = []
    for how, ids in parts.items():
        if not ids:
            continue
        named = ""
        if table == "entities":
            rows = snapshot.served(table, sorted(ids - after.keys()), ["id", "n", "title"])
            known = {row["id"]: row for row in rows} | after
            shown = sorted((known[id] for id in ids), key=lambda row: row["n"])
            result.ids += [f"e{row['n']}" for row in shown if row["id"] in after][:NAMED]
            more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
            titles = (f"{one_line(row['title'], 80)} (e{row['n']})" for row in shown[:NAMED])
            named = f": {', '.join(titles)}{more}"
        singular = {"entities": "entity", "relationships": "relationship"}[table]
        lines.append(f"- {len(ids)} {singular if len(ids) == 1 else table} {how}{named}")
    return lines


def _dormant(rows: Sequence[LogRow], overlay: logs.Overlay) -> str:
    """Why a change moves no row now."""
    last = rows[-1]
    if last.op in ("reject", "remove", "restore"):
        return ""
    undone = fold([row for row in overlay.log if row.id in last.keys and last.op == "undo"])
    if undone.removed and all(uri.startswith("text:") for uri in undone.removed):
        return "A text comes back when index_documents is given it again: texts=[...]."
    if undone.removed:
        return "What was removed comes back with the next index_documents of its folder."
    return "No row changes now: it lies dormant until documents name what it speaks of."
