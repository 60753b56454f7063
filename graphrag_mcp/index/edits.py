"""Edits by hand: changes of the graph and removal of documents, checked, tried or made.

An edit is a row of the edit log, which outlives every re-indexing; the same merge that reads
documents works out what it does to the tables, and only what the names concerned touch is read and
written. Removed documents stay out until they are asked for by name."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.merge import Changed, Merge, merge
from graphrag_mcp.index.run import Run, forgotten
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.sources.diff import Plan
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import tables
from graphrag_mcp.store.edit_log import APPLIED, LogRow, Overlay, fold
from graphrag_mcp.store.manifest import FORMAT, Manifest, commit, current, now, writer_lock
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import Change, Snapshot, open_snapshot, rows_of, values_of
from graphrag_mcp.text.terms import counted, entity_id, lists_of, normalise_name, relationship_id
from graphrag_mcp.types import EditResult

Row = dict[str, Any]
LONGEST = {"title": 300, "type": 80, "keywords": 1_000, "description": 20_000}  # characters
LONGEST_URI = 4_096  # as long as a path may be
HEAVIEST = 1e6
SAME_FIELD = {
    "name": "title",
    "new_name": "title",
    "entity_type": "type",
    "desc": "description",
    "strength": "weight",
}


@dataclass(frozen=True)
class Target:
    """One entity (one name) or one relationship (two): names as keys, and as they are written."""

    keys: tuple[str, ...]
    forms: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "entity" if len(self.keys) == 1 else "relationship"


MakeRow = Callable[..., LogRow]  # op, kind, keys, forms, fields: the log row of this wish


def rows(snapshot: Snapshot, log: Sequence[LogRow], id: str, wish: Wish) -> list[LogRow]:
    """The rows that the wish is, under the id of its undo. Raises BadInput or NotFound."""
    overlay, row = fold(log), partial(LogRow, id, by=wish.by, time=now())
    if not wish.targets:
        what = f"op {wish.op!r} needs ids"
        raise BadInput(what, 'Give ids=["e12"], a name, or of an undo its undo_id')
    if wish.op == "undo":
        _undoable(log, overlay, wish.targets)
        return [row("undo", "", tuple(target.keys[0] for target in wish.targets))]
    if wish.op == "create":
        target = _only_target(wish)
        _creatable(snapshot, overlay, target)
        fields = cleaned(wish.fields, target.kind)
        return [row("create", target.kind, target.keys, target.forms, fields)]
    found = [_there(snapshot, target) for target in wish.targets]
    if wish.op == "delete":
        return [row("delete", target.kind, target.keys, target.forms) for target in wish.targets]
    if wish.op in ("merge", "reject"):
        return _several(snapshot, overlay, wish, row)
    if wish.op in ("update", "rename"):
        target = _only_target(wish)
        fields = cleaned(wish.fields, target.kind)
        if wish.op == "rename" and "title" not in fields:
            raise BadInput("a rename needs the new name", 'Give fields=["title=..."]')
        if not fields:
            what = "there is nothing to update"
            raise BadInput(what, 'Give fields=["description=..."], or type, keywords, weight')
        fields = {name: value for name, value in fields.items() if found[0][name] != value}
        return _worded(snapshot, overlay, target, fields, row)
    what = f"op {wish.op[:40]!r} is unknown"
    raise BadInput(what, "Use create, update, rename, merge, delete, undo or reject")


def _only_target(wish: Wish) -> Target:
    if len(wish.targets) != 1:
        what = f"op {wish.op!r} takes one, {len(wish.targets)} are named"
        raise BadInput(what, "Make one call for each")
    return wish.targets[0]


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


def _several(snapshot: Snapshot, overlay: Overlay, wish: Wish, row: MakeRow) -> list[LogRow]:
    if any(target.kind != "entity" for target in wish.targets):
        raise BadInput(f"op {wish.op!r} is for entities", "Give ids of entities (e12) or names")
    targets = list({target.keys: target for target in wish.targets}.values())
    if len(targets) < 2:
        what = "these names are one entity already"
        raise BadInput(what, 'Give two or more, e.g. ids=["e7", "e12"]')
    keys, forms = zip(*((target.keys[0], target.forms[0]) for target in targets), strict=True)
    if wish.op == "reject":
        known = all(tuple(sorted((keys[0], other))) in overlay.rejected for other in keys[1:])
        return [] if known else [row("reject", "entity", keys, forms)]
    log_rows = [row("merge", "entity", keys, forms)]
    if wish.fields:
        fields = cleaned(wish.fields, "entity")
        if normalise_name(fields.get("title", "")) in keys:  # one of the merged names
            log_rows.append(row("update", "entity", keys[:1], forms[:1], fields))
        else:
            log_rows += _worded(snapshot, overlay, targets[0], fields, row)
    return log_rows


def _worded(
    snapshot: Snapshot, overlay: Overlay, target: Target, fields: Row, row: MakeRow
) -> list[LogRow]:
    """New words for a row; another name of an entity stands for it from then on."""
    if not fields:
        return []
    title = fields.get("title", "")
    if not title:
        return [row("update", target.kind, target.keys, target.forms, fields)]
    key = normalise_name(title)
    if not _is_name(key):
        what = f"{title[:60]!r} is no name: it has no letter or digit"
        raise BadInput(what, "Give another title")
    holder = _holder(snapshot, overlay, key)
    if holder is not None and holder["key"] != target.keys[0]:
        merge = f'Use op merge with ids=["e{holder["n"]}", ...] instead'
        raise BadInput(f"{title[:60]!r} is another entity, e{holder['n']}", merge)
    keys, forms = target.keys, target.forms
    if key != keys[0] and overlay.alias.get(key) != keys[0]:
        keys, forms = (*keys, key), (*forms, title)
    return [row("rename", "entity", keys, forms, fields)]


def _is_name(key: str) -> bool:
    return any(map(str.isalnum, key))


def _holder(snapshot: Snapshot, overlay: Overlay, key: str) -> Row | None:
    """The entity that holds a name: its own, one given to it, or one that texts define for it."""
    defined = values_of(snapshot.by_key("mentions", [key], "key", ["alias_of"])["alias_of"])
    keys = dict.fromkeys([key, overlay.alias.get(key, key), *filter(None, defined)])
    keys |= dict.fromkeys(overlay.alias.get(key, key) for key in keys)
    found = snapshot.served("entities", list(map(entity_id, keys)), ["n", "key", "names"])
    return next((row for row in found if key in row["names"]), None)


def _creatable(snapshot: Snapshot, overlay: Overlay, target: Target) -> None:
    if not all(map(_is_name, target.keys)):
        raise BadInput("a name needs a letter or digit", 'Give ids=["its name"]')
    if target.kind == "relationship":
        for key, form in zip(target.keys, target.forms, strict=True):
            _there(snapshot, Target((key,), (form,)))
        if target.keys[0] == target.keys[1]:
            raise BadInput("both ends are one entity", "Give two different ones")
        id = relationship_id(*sorted(map(entity_id, target.keys)))
        if found := values_of(snapshot.by_key("relationships", [id], "id", ["n"])["n"]):
            wrong = f"they have a relationship already, r{found[0]}"
            raise BadInput(wrong, f'Use op update with ids=["r{found[0]}"]')
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
            what = f"{id} is undone already"
            raise BadInput(what, f'To have it again use op undo with ids=["{by}"]')


def cleaned(arguments: Mapping[str, Any], kind: str) -> Row:
    """The fields under their names, as they are stored. BadInput names what cannot be set."""
    allowed = logs.ENTITY_FIELDS if kind == "entity" else logs.PAIR_FIELDS
    fields: Row = {}
    for name, value in arguments.items():
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
        value = ", ".join(str(keyword) for keyword in value)
    text = ""
    if isinstance(value, str | int | float):
        text = str(value).encode("utf-8", "replace").decode().replace("\0", " ")
    text = text.strip() if name == "description" else " ".join(text.split())
    if not text:
        raise BadInput(f"the field {name} must be a text", f'Give fields=["{name}=..."]')
    return text.lower() if name == "type" else text


def within_limits(row: LogRow) -> None:
    """BadInput for a row with a text that is longer than what is stored."""
    longest = LONGEST_URI if row.kind == "document" else LONGEST["title"]
    texts = [("name", text, longest) for text in (*row.keys, *row.forms)]
    texts += [
        (name, text, LONGEST.get(name, longest))
        for name, text in row.fields.items()
        if isinstance(text, str)
    ]
    texts += [(name, getattr(row, name), LONGEST["title"]) for name in ("id", "op", "by", "time")]
    for name, text, most in texts:
        if len(text) > most:
            what = f"the {name} {text[:40]!r} has {len(text):,} characters"
            raise BadInput(what, f"It may have up to {most:,}")


def _weight(value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight <= HEAVIEST:
        what = f"weight {str(value)[:40]!r} is no number above 0"
        raise BadInput(what, "Give a weight such as 2.5")
    return round(weight, 6)


def sentence(row: LogRow, overlay: Overlay) -> str:
    names = [" ".join(form.split())[:80] for form in (row.forms or row.keys)]
    fields = ", ".join(f"{name} = {str(value)[:80]}" for name, value in row.fields.items())
    pair = " – ".join(names[:2])
    texts = {
        "merge": f"{', '.join(names[1:])} {'becomes a name' if len(names) == 2 else 'become names'} of {names[0]}",
        "rename": f"{names[0]}: {fields}",
        "update": f"{pair if row.kind == 'relationship' else names[0]}: {fields}",
        "create": f"{row.kind} {pair if row.kind == 'relationship' else names[0]} without evidence, by {row.by}"
        + (f": {fields}" if fields else ""),
        "delete": f"{row.kind} {pair} is hidden, whatever the documents say",
        "reject": f"{names[0]} and {', '.join(names[1:])} are not proposed as one again",
        "remove": f"{counted(len(names), 'documents')} kept out: {', '.join(names[:3])}",
        "restore": f"{counted(len(names), 'documents')} to come back: {', '.join(names[:3])}",
    }
    if row.op == "undo":
        undone = [edit for edit in overlay.log if edit.id in row.keys and edit.op != "undo"]
        what = "; ".join(sentence(edit, overlay) for edit in undone[:3])
        return f"Undo of {', '.join(row.keys)}: {what or 'an undo.'}"
    return f"{row.op.capitalize()}: {texts[row.op]}."


LOCK_SECONDS = 20.0  # how long an edit waits for an indexing; hosts wait 50
NAMED = 8  # names that a sentence lists


@dataclass(frozen=True)
class Wish:
    """`op` of store/edit_log.py; `targets`: rows, or the id to undo; `fields`: new values."""

    op: str
    targets: Sequence[Target]
    fields: Mapping[str, Any]
    by: str


def edit(folder: Path, wish: Wish, dry_run: bool = True) -> EditResult:
    """Make a change durable, or say what it is. Raises BadInput, NotFound, Busy, Damaged."""
    return _change(folder, dry_run, partial(rows, wish=wish))


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
        if not _moves_graph(merged):
            lines.append(_dormant(rows, overlay))
        head = "Dry run, nothing is changed. " if dry_run else ""
        result.text = head + "\n".join(filter(None, lines))
        if not dry_run:
            kind, added = segment_store.EDITS, logs.to_table(rows)
            segments = segment_store.appended(folder, manifest, kind, added)
            written(folder, manifest, segments, merged, numbers, len(every))
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
    if rows[-1].op in ("reject", "remove", "restore"):
        return ""
    what = overlay
    if rows[-1].op == "undo":
        what = fold([row for row in overlay.log if row.id == rows[-1].keys[0]])
    if what.removed:
        if all(uri.startswith("text:") for uri in what.removed):
            return "A text comes back when index_documents is given it again: texts=[...]."
        return "What was removed comes back with the next index_documents of its folder."
    return "No row changes now: it lies dormant until documents name what it speaks of."


# manifest parameter: entity id -> the number behind its alias, of those that edits took away
NUMBERS = "numbers"
MOST_NUMBERS = 5_000
NEXT = "u"  # the kind of number that undo ids are made of
BY_INDEX = "index_documents"


def catch_up(run: Run) -> None:
    """Let the tables follow the log: they are new, or what was removed is asked for."""
    manifest = run.manifest
    if manifest is None or manifest.parameters.get(APPLIED, 0) == len(run.edits.log):
        return
    numbers = dict(manifest.next)
    snapshot = run.snapshot_before()
    overlay, merged = merged_with(snapshot, run.edits.log, manifest, numbers)
    segments, applied = manifest.segments, len(overlay.log)
    run.manifest = written(run.folder, manifest, segments, merged, numbers, applied)


def lift(run: Run, plan: Plan) -> None:
    """What was removed and is asked for by name comes back; that is written down first."""
    uris = [*plan.asked, *sorted({edit.uri for edit in run.brought} & run.edits.removed.keys())]
    if not uris or run.manifest is None:
        return
    row, run.manifest = _of_documents(run.folder, run.manifest, "restore", uris, BY_INDEX)
    run.edits = fold([*run.edits.log, row])


def _of_documents(
    folder: Path, manifest: Manifest, op: str, uris: Sequence[str], by: str
) -> tuple[LogRow, Manifest]:
    """Write a row about documents, which moves no table by itself; the row and the generation."""
    numbers = dict(manifest.next)
    row = LogRow(next_id(numbers), op, "document", tuple(uris), tuple(uris), {}, by, now())
    kind = segment_store.EDITS
    segments = segment_store.appended(folder, manifest, kind, logs.to_table([row]))
    applied = manifest.parameters.get(APPLIED, 0)
    applied += applied == sum(
        segment["rows"] for segment in manifest.segments if segment["kind"] == kind
    )
    return row, written(folder, manifest, segments, Merge(), numbers, applied)


def next_id(numbers: dict[str, int]) -> str:
    number = numbers.get(NEXT, 1)
    numbers[NEXT] = number + 1
    return f"{NEXT}{number}"


def merged_with(
    snapshot: Snapshot | None, log: Sequence[LogRow], manifest: Manifest, numbers: dict[str, int]
) -> tuple[Overlay, Merge]:
    """The log folded, and what it does to the rows."""
    old, new = fold(log[: manifest.parameters.get(APPLIED, 0)]), fold(log)
    keys, pairs = logs.differing(old, new)
    if not keys:
        return new, Merge()
    merged = merge(snapshot, (), {}, numbers, new, Changed(keys, pairs))
    numbers_before = manifest.parameters.get(NUMBERS, {})
    change = merged.changes["entities"]
    rows = change.rows.to_pylist() if numbers_before and change.rows is not None else []
    back = [row for row in rows if row["id"] in numbers_before and row["id"] not in change.gone]
    for row in back:  # an entity that an undo brings back has its alias again
        row["n"] = numbers_before[row["id"]]
    if back:
        merged.changes["entities"] = replace(change, rows=graph_to_table("entities", rows))
    return new, merged


def written(
    folder: Path,
    manifest: Manifest,
    segments: Sequence[dict[str, Any]],
    merged: Merge,
    numbers: dict[str, int],
    applied: int,
) -> Manifest:
    """Commit a generation with these segments and rows. Only for the holder of the writer's lock."""
    changes = {name: change for name, change in merged.changes.items() if _is_something(change)}
    changes |= forgotten(changes, manifest.tables)
    versions = tables.apply(folder, manifest, changes) if changes else manifest.tables
    counters = Counter(manifest.counters)
    counters.update(entities=merged.entities, relationships=merged.relationships)
    parameters = {**manifest.parameters, APPLIED: applied}
    lost = dict(manifest.parameters.get(NUMBERS, {}))  # of entities that went by an edit
    if removed := _vanished(changes.get("entities", Change())):
        rows = Snapshot(folder, manifest).by_key("entities", removed, "id", ["id", "n"])
        lost |= dict(rows_of(rows))
    if lost:
        parameters[NUMBERS] = dict(list(lost.items())[-MOST_NUMBERS:])
    moves = _moves_graph(merged)
    kept = {"communities_generation": manifest.communities_generation} if moves else {}
    new = manifest.following(
        segments=list(segments),
        tables=dict(versions),
        counters=dict(counters),
        next=dict(numbers),
        parameters=parameters,
        stale=["communities"] if moves or manifest.stale else [],
        began=0,
        **kept,
    )
    new = tables.with_open_questions(folder, manifest, new)
    commit(folder, new)
    return new


def _is_something(change: Change) -> bool:
    return bool(change.gone) or (change.rows is not None and change.rows.num_rows > 0)


def _moves_graph(merged: Merge) -> bool:
    changes = (merged.changes.get(name, Change()) for name in ("entities", "relationships"))
    return any(map(_is_something, changes))


NEAR = 3  # nearest uris for an unknown id


@dataclass
class Chosen:
    """`uris` as they are written down: of a file with many rows its own, if all is meant."""

    documents: dict[str, Row] = field(default_factory=dict)  # uri -> {uri, id, file, n}
    uris: list[str] = field(default_factory=list)
    # what was asked for -> nearest uris
    unknown: dict[str, list[str]] = field(default_factory=dict)


def choose(folder: Path, ids: Sequence[str]) -> Chosen:
    """The documents that ids name. Raises BadInput for none, NotFound without an index."""
    manifest = current(folder)
    references = [
        reference
        for reference in dict.fromkeys(str(id).strip().strip("[]()`'\" ") for id in ids)
        if reference
    ]
    if not references:
        advice = 'Give ids=["d4"], a uri or a file name; a whole corpus is deleted by graphrag-mcp delete CORPUS'
        raise BadInput("no documents are named", advice)
    live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    files = lists_of((row["file"], uri) for uri, row in live.items())
    chosen = Chosen()
    for reference in references:
        found = _named(reference, live, files)
        if not found:
            names = [*live, *(name.rpartition("/")[2] for name in live)]
            near = difflib.get_close_matches(reference, names, NEAR, 0.5)
            uris = {next((uri for uri in live if uri.endswith(name)), name) for name in near}
            chosen.unknown[reference] = sorted(uris)
        for uri in found:
            chosen.uris.append(uri)
            chosen.documents |= {each: live[each] for each in files.get(uri, [uri])}
    chosen.uris = list(dict.fromkeys(chosen.uris))
    return chosen


def _named(asked: str, live: Mapping[str, Row], files: Mapping[str, Sequence[str]]) -> list[str]:
    """Uris of documents or files that an id means: several where a file name is not unique."""
    if match := re.fullmatch(r"d(\d{1,12})", asked, re.IGNORECASE):
        return [uri for uri, row in live.items() if row["n"] == int(match[1])]
    if re.fullmatch(r"[0-9a-f]{32}", asked):
        return [uri for uri, row in live.items() if row["id"] == asked]
    for uri in (asked, f"text:{asked}"):
        if uri in files or uri in live:
            return [uri]
    return sorted(file for file in files if file.endswith(f"/{asked}"))


def loss(folder: Path, chosen: Chosen) -> tuple[dict[str, int], list[str]]:
    """What would go: rows by table, and names of the entities among them, the most named first.
    Worked out by the merge that would do it, and nothing is written."""
    snapshot = open_snapshot(folder, keep=False)
    ids = sorted(row["id"] for row in chosen.documents.values())
    units = values_of(snapshot.by_key("text_units", ids, "document_id", ["id"])["id"])
    passages = snapshot.by_key("passages", ids, "document_id", ["id"]).num_rows
    merged = Merge()
    if units:
        numbers = dict(snapshot.manifest.next)
        merged = merge(snapshot, units, {}, numbers, edits=logs.in_force(snapshot))
    removed = _vanished(merged.changes.get("entities", Change()))
    lost = snapshot.served("entities", removed, ["title", "frequency", "n"])
    lost.sort(key=lambda row: (-row["frequency"], row["n"]))
    relationships = len(_vanished(merged.changes.get("relationships", Change())))
    counts = {"documents": len(ids), "text_units": len(units), "passages": passages}
    counts |= {"entities": len(removed), "relationships": relationships}
    return counts, [f"{row['title']} (e{row['n']})" for row in lost[:NAMED]]


def _vanished(change: Change) -> list[str]:
    """Ids of rows that go and do not come again."""
    there = values_of(change.rows["id"]) if change.rows is not None else ()
    return sorted({*change.gone} - {*there})


def write_down(folder: Path, chosen: Chosen, by: str) -> str:
    """Keep these documents out, durably; the id of the undo. Indexing takes their rows away."""
    with writer_lock(folder, LOCK_SECONDS):
        row, _ = _of_documents(folder, current(folder), "remove", chosen.uris, by)
        return row.id
