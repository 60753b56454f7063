"""The edit log: changes by people and agents, and their sum (an `Overlay`).

A row is never changed; an undo is a row of its own. Rows speak of normalised names and uris, never
of ids or numbers, so a log means the same in every index of the same documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_mcp.errors import Damaged
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import REPAIR, Manifest
from graphrag_mcp.store.schema import EDIT_LOG
from graphrag_mcp.store.segments import EDITS
from graphrag_mcp.store.tables import Snapshot, once
from graphrag_mcp.text.terms import entity_id, normalise_name, relationship_id

OPS = ("create", "update", "rename", "merge", "delete", "reject", "remove", "restore", "undo")
ENTITY_FIELDS = ("title", "type", "description")
PAIR_FIELDS = ("description", "keywords", "weight")
APPLIED = "edits"  # manifest parameter: how many rows of the log the tables follow
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LogRow:
    """One change; those of a call have one `id`. `keys`: the names it speaks of, normalised, or
    uris, or the id that an undo names; `forms`: the same as written. Of a merge the first name
    stays."""

    id: str
    op: str
    kind: str  # entity, relationship, document, or "" of an undo
    keys: tuple[str, ...]
    forms: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    by: str = ""
    time: str = ""


@dataclass(slots=True)
class Edit:
    """All that was done to one name or one pair. `rows`: ids of the log, the last one last."""

    keys: tuple[str, ...]
    created: bool = False
    deleted: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)
    by: str = ""
    time: str = ""
    order: int = 0


@dataclass(slots=True)
class Overlay:
    """All edits that are in force."""

    log: tuple[LogRow, ...] = ()
    undone: dict[str, str] = field(default_factory=dict)  # id -> id of the undo that is in force
    # Name -> the name it stands for; never a chain.
    alias: dict[str, str] = field(default_factory=dict)
    aliased: dict[str, str] = field(default_factory=dict)  # name -> id of the row that made it one
    names: dict[str, list[str]] = field(default_factory=dict)  # the reverse, sorted
    forms: dict[str, str] = field(default_factory=dict)
    entities: dict[str, Edit] = field(default_factory=dict)
    pairs: dict[Pair, Edit] = field(default_factory=dict)
    pairs_of: dict[str, list[Edit]] = field(default_factory=dict)
    # Uri of a document or file -> id of the row.
    removed: dict[str, str] = field(default_factory=dict)
    rejected: dict[Pair, str] = field(default_factory=dict)

    def hidden(self, key: str) -> bool:
        edit = self.entities.get(key)
        return edit is not None and edit.deleted

    def made(self, key: str) -> bool:
        """Is there an entity of this name whatever the documents say?"""
        known = (self.entities.get(name) for name in (key, *self.names.get(key, ())))
        return any(edit is not None and edit.created for edit in known) and not self.hidden(key)

    def stands_for(self, key: str, found: str) -> str:
        """The entity that `key` means, `found` by what texts define; "" where it is hidden."""
        if key in self.alias:
            found = self.alias[key]
        elif self.hidden(key):
            return ""
        else:
            found = self.alias.get(found, found)
        return "" if self.hidden(found) else found

    def back(self) -> set[str]:
        """Uris of documents that were removed once and are not any more."""
        once = {uri for row in self.log if row.op == "remove" for uri in row.keys}
        return once - self.removed.keys()

    def words(self, key: str) -> Mapping[str, Any]:
        """The fields of an entity that win over what was extracted."""
        edit = self.entities.get(key)
        return edit.fields if edit is not None and not edit.deleted else {}


def load(folder: Path, manifest: Manifest | None) -> list[LogRow]:
    """The whole log, oldest first. Raises Damaged when a segment cannot be trusted."""
    if manifest is None:
        return []
    found = []
    for row in segment_store.load(folder, manifest, EDITS).to_pylist():
        try:
            fields = stored.parsed(row["fields"], dict[str, Any])
        except ValueError as error:
            what = f"an edit of the log of corpus {folder.name} cannot be read ({error})"
            raise Damaged(what, REPAIR) from error
        row |= {"keys": _keys(row), "forms": tuple(row["forms"]), "fields": fields}
        found.append(LogRow(**row))
    return found


def _keys(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Names as this release normalises them: an earlier one may have folded less."""
    named = row["kind"] in ("entity", "relationship")
    return tuple(map(normalise_name, row["keys"]) if named else row["keys"])


def renamed(folder: Path, manifest: Manifest) -> bool:
    """Does this release normalise names of the log otherwise than the one that wrote them?"""
    rows = segment_store.load(folder, manifest, EDITS).to_pylist()
    return any(tuple(row["keys"]) != _keys(row) for row in rows)


def to_table(rows: Iterable[LogRow]) -> pa.Table:
    """Rows of the log as a table of the schema EDIT_LOG."""
    plain = []
    for row in rows:
        fields = json.dumps(dict(row.fields), ensure_ascii=False, sort_keys=True)
        plain.append({**asdict(row), "fields": fields})
    return pa.Table.from_pylist(plain, EDIT_LOG)


@once
def in_force(snapshot: Snapshot) -> Overlay:
    """The overlay of a snapshot's generation."""
    return fold(load(snapshot.folder, snapshot.manifest))


def undone(log: Iterable[LogRow]) -> dict[str, str]:
    """Ids that do not count -> the id of the undo that says so. An undo may itself be undone."""
    off: dict[str, str] = {}
    for row in reversed(list(log)):
        if row.op == "undo" and row.id not in off:
            off.update((target, row.id) for target in row.keys if target not in off)
    return off


def fold(log: Iterable[LogRow]) -> Overlay:
    """What the rows amount to. A row that does not fit what came before changes nothing."""
    overlay = Overlay(log=tuple(log))
    overlay.undone = undone(overlay.log)
    for order, row in enumerate(overlay.log):
        if row.id in overlay.undone or row.op == "undo":
            continue
        overlay.forms.update(zip(row.keys, row.forms, strict=False))
        if row.kind == "document" and row.op == "remove":
            overlay.removed |= dict.fromkeys(row.keys, row.id)
        elif row.kind == "document":
            for uri in row.keys:
                overlay.removed.pop(uri, None)
        elif row.op == "reject":
            first, *others = row.keys
            overlay.rejected |= {(min(first, other), max(first, other)): row.id for other in others}
        elif row.kind == "relationship":
            pair: Pair = (min(row.keys[:2]), max(row.keys[:2]))
            _change(overlay.pairs.setdefault(pair, Edit(pair)), row, order)
        elif row.op == "merge":
            for key in row.keys[1:]:
                _link(overlay, key, row.keys[0], row.id)
        else:
            _on_entity(overlay, row, order)
    for key, target in sorted(overlay.alias.items()):
        overlay.names.setdefault(target, []).append(key)
    for edit in overlay.pairs.values():
        for key in edit.keys:
            overlay.pairs_of.setdefault(key, []).append(edit)
    return overlay


def _link(overlay: Overlay, key: str, target: str, id: str) -> None:
    """`key` is another name of `target` from now on, and so is what was another name of `key`."""
    target = overlay.alias.get(target, target)
    if key == target:
        return
    overlay.alias[key], overlay.aliased[key] = target, id
    for name, old in overlay.alias.items():
        if old == key:
            overlay.alias[name] = target


def _on_entity(overlay: Overlay, row: LogRow, order: int) -> None:
    for key in row.keys[:1] if row.op in ("create", "update", "rename") else row.keys:
        edit = overlay.entities.setdefault(key, Edit((key,)))
        _change(edit, row, order)
        if row.op == "rename" and len(row.keys) > 1:
            _link(overlay, row.keys[1], key, row.id)


def _change(edit: Edit, row: LogRow, order: int) -> None:
    if row.op == "delete":
        edit.deleted, edit.created, edit.fields = True, False, {}
    else:
        if row.op == "create":
            edit.created, edit.deleted = True, False
        edit.fields = {**edit.fields, **row.fields}
    edit.rows.append(row.id)
    edit.by, edit.time, edit.order = row.by, row.time, order


def differing(old: Overlay, new: Overlay) -> tuple[set[str], set[Pair]]:
    """The names, and the pairs of names, about which two overlays say different things."""
    keys: set[str] = set()
    for key in old.alias.keys() | new.alias.keys():
        if old.alias.get(key) != new.alias.get(key):
            keys |= {key, old.alias.get(key, key), new.alias.get(key, key)}
    for key in old.entities.keys() | new.entities.keys():
        if old.entities.get(key) != new.entities.get(key):
            keys |= {key, new.alias.get(key, key), old.alias.get(key, key)}
    every = old.pairs.keys() | new.pairs.keys()
    pairs = {pair for pair in every if old.pairs.get(pair) != new.pairs.get(pair)}
    return keys.union(*pairs), pairs


# ---- which relationship a pair of names is -------------------------------------------------------------


@dataclass
class PairFact:
    """Edits of one relationship: hidden, or there without evidence; the fields that win."""

    source_id: str
    target_id: str
    hidden: bool = False
    created: bool = False
    fields: dict[str, Any] = field(default_factory=dict)

    def weight(self, found: float) -> float:
        """What was given, else what the evidence sums up to; without evidence 1."""
        return round(float(self.fields.get("weight", found or 1.0)), 6)


def concerned(edits: Overlay, keys: Collection[str]) -> list[Edit]:
    """Edits of pairs with an end among these names, in the order in which they were made."""
    found = {edit.keys: edit for key in keys for edit in edits.pairs_of.get(key, ())}
    return sorted(found.values(), key=lambda edit: edit.order)


def pair_id(edit: Edit, entity_of: Mapping[str, str]) -> tuple[str, str, str] | None:
    """(id, source, target) of the relationship that a pair of names is; None where it is none now.
    A pair that was changed or hidden is that pair of names alone, one that was made follows its
    names."""
    ends = [entity_of.get(key, "") for key in edit.keys]
    if not all(ends) or ends[0] == ends[1] or (not edit.created and tuple(ends) != edit.keys):
        return None
    source, target = sorted(map(entity_id, ends))
    return relationship_id(source, target), source, target


def facts(edits: Iterable[Edit], entity_of: Mapping[str, str]) -> dict[str, PairFact]:
    """Edits by relationship: of several that are one now, the pair of own names counts most."""
    columns = {edit.keys: tuple(entity_of.get(key, "") for key in edit.keys) == edit.keys for edit in edits}
    found: dict[str, PairFact] = {}
    for edit in sorted(edits, key=lambda edit: (columns[edit.keys], edit.order)):
        place = pair_id(edit, entity_of)
        if place is None:
            continue
        fact = found.setdefault(place[0], PairFact(place[1], place[2]))
        fact.hidden = edit.deleted
        fact.created |= edit.created
        fact.fields = {**fact.fields, **edit.fields}
    return found
