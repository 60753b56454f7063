"""Descriptions that became too long, summarised by a model; one that no model could write stays
joined, and pending.

Names are those of the documents, also where an edit gave another: otherwise the description would
depend on which of edit and description came first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphrag_mcp.index.describe import summarise
from graphrag_mcp.index.graph import (
    Evidence,
    Named,
    called,
    entity_id,
    graph_to_table,
    mentions_from_table,
    pairs_from_table,
    told_of_entity,
    told_of_pair,
)
from graphrag_mcp.index.units import pending
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.edit_log import Overlay
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Change, Snapshot

if TYPE_CHECKING:
    from graphrag_mcp.index.models import Models

Row = dict[str, Any]
ENDS = ("id", "source_id", "target_id")
OF_TABLE = {"entity": "entities", "relationship": "relationships"}
Writing = Future[tuple[str, str, str]]
# row id -> names, fragments, the description being written
Asked = dict[str, tuple[list[str], list[str], Writing]]


@dataclass
class Started:
    """Rows by kind and id, and the description of each that is being written."""

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)
    futures: dict[tuple[str, str], Writing] = field(default_factory=dict)


@dataclass
class Described:
    """`changes` of the two tables; `texts`: new descriptions by row id; `done` and `failed` ids of
    pending rows."""

    changes: dict[str, Change] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)


def early(
    models: Models,
    long: Mapping[str, tuple[str, list[str]]],
    changes: Mapping[str, Change],
    snapshot: Snapshot | None,
    edits: Overlay,
) -> Asked:
    """Ask for the long descriptions of rows that are yet to be written: a model answers while they
    are. Whether the question was the right one is seen when they stand there (`begin`), so this
    only saves time."""
    if models.describe is None or not long:
        return {}
    entities, pairs = changes["entities"].rows, changes["relationships"].rows
    titles = dict(zip(entities["id"].to_pylist(), entities["title"].to_pylist(), strict=True))
    ends = {
        id: ends
        for id, *ends in zip(*(pairs[name].to_pylist() for name in ENDS), strict=True)
        if id in long
    }
    unknown = sorted({end for pair in ends.values() for end in pair} - titles.keys())
    if unknown and snapshot is not None:
        titles |= _titles(snapshot, unknown)
    by_hand = {entity_id(key) for key, edit in edits.entities.items() if "title" in edit.fields}
    # those are asked for by `begin`
    titles = {id: title for id, title in titles.items() if id not in by_hand}
    asked: Asked = {}
    for id, (_, fragments) in sorted(long.items()):
        names = [titles.get(one, "") for one in ends.get(id, [id])]
        if all(names):
            work = summarise(models.asker, names, fragments, models.describe)
            asked[id] = (names, fragments, models.asker.start(work))
    return asked


def retitled(
    snapshot: Snapshot | None, changes: Mapping[str, Change], models: Models, edits: Overlay
) -> dict[str, tuple[str, list[str]]]:
    """Relationships with a long description whose end the documents call by another name now, with
    what was said of them: they themselves are not touched, but the question for their description
    is another one."""
    rows, ours = changes["entities"].rows, changes["relationships"]
    if snapshot is None or rows is None:
        return {}
    now = {row["id"]: row for row in rows.select(["id", "key", "title"]).to_pylist()}
    old = snapshot.by_key("entities", sorted(now), "id", ["id", "title"]).to_pylist()
    # Of a name that was given by hand no one knows what the documents said before.
    moved = [
        row["id"]
        for row in old
        if row["title"] != now[row["id"]]["title"] or "title" in edits.words(now[row["id"]]["key"])
    ]
    touched = {*ours.gone, *(ours.rows["id"].to_pylist() if ours.rows is not None else ())}
    given = {edit.fields.get("description") for edit in edits.pairs.values()}
    found: dict[str, tuple[str, list[str]]] = {}
    for end in ENDS[1:] if moved else ():
        links = snapshot.by_key("relationships", moved, end, [*ENDS, "description"]).to_pylist()
        links = [
            row for row in links if row["id"] not in touched and row["description"] not in given
        ]
        told = _told_of_links(snapshot, [row["id"] for row in links])
        found |= {id: ("relationship", said) for id, said in told.items() if models.is_long(said)}
    return found


def begin(snapshot: Snapshot, waiting: Sequence[Row], models: Models, asked: Asked) -> Started:
    """Ask for every description that is waited for, but for those that were `asked` in the same
    words; rows that have gone meanwhile are left out."""
    started = Started()
    if models.describe is None:
        return started
    wanted = {
        kind: sorted(row["subject"] for row in waiting if row["kind"] == kind) for kind in OF_TABLE
    }
    for kind, ids in wanted.items():
        if not ids:
            continue
        rows = snapshot.by_key(OF_TABLE[kind], ids, "id").to_pylist()
        started.rows[kind] = {row["id"]: row for row in rows}
        told = (
            _told_of_entities(snapshot, rows)
            if kind == "entity"
            else _told_of_pairs(snapshot, rows)
        )
        for id, (names, fragments) in told.items():
            if id in asked and asked[id][:2] == (names, fragments):
                started.futures[kind, id] = asked[id][2]
            elif models.is_long(fragments):
                work = summarise(models.asker, names, fragments, models.describe)
                started.futures[kind, id] = models.asker.start(work)
    return started


def finish(
    started: Started, waiting: Sequence[Row], take: Callable[[Future[Any]], Any]
) -> Described:
    """Wait for the descriptions and put them into their rows."""
    described = Described()
    changed: dict[str, list[Row]] = {kind: [] for kind in OF_TABLE}
    for (kind, id), future in started.futures.items():
        text, by, reason = take(future)
        row = started.rows[kind][id]
        if not by:
            described.failed.append(pending(kind, id, "", reason))
        if text != row["description"]:
            row["description"] = described.texts[id] = text
            changed[kind].append(row)
    failed = {row["id"] for row in described.failed}
    described.done = [
        row["id"] for row in waiting if row["kind"] in OF_TABLE and row["id"] not in failed
    ]
    for kind, rows in changed.items():
        if rows:
            ids = [row["id"] for row in rows]
            described.changes[OF_TABLE[kind]] = Change(ids, graph_to_table(OF_TABLE[kind], rows))
    return described


def _told_of_entities(
    snapshot: Snapshot, rows: Sequence[Row]
) -> dict[str, tuple[list[str], list[str]]]:
    """Names and fragments by entity id."""
    found = _mentions(snapshot, rows)
    edits = logs.in_force(snapshot)
    return {
        row["id"]: ([_title(row, found[row["id"]], edits)], told_of_entity(found[row["id"]]))
        for row in rows
    }


def _mentions(snapshot: Snapshot, rows: Sequence[Row]) -> dict[str, list[Named]]:
    """All mentions of entities, by entity id."""
    keys = sorted({name for row in rows for name in row["names"]})
    by_key: dict[str, list[Named]] = {}
    for named in mentions_from_table(
        snapshot.by_key("mentions", keys, "key", TABLES["mentions"].names)
    ):
        by_key.setdefault(named.key, []).append(named)
    return {
        row["id"]: [one for name in row["names"] for one in by_key.get(name, ())] for row in rows
    }


def _title(row: Row, found: Sequence[Named], edits: Overlay) -> str:
    by_hand = found and "title" in edits.words(row["key"])
    return called(row["key"], found)[0] if by_hand else row["title"]


def _told_of_pairs(
    snapshot: Snapshot, rows: Sequence[Row]
) -> dict[str, tuple[list[str], list[str]]]:
    """Names of both ends and fragments by relationship id."""
    told = _told_of_links(snapshot, [row["id"] for row in rows])
    titles = _titles(snapshot, sorted({row[end] for row in rows for end in ENDS[1:]}))
    return {
        row["id"]: ([titles[row["source_id"]], titles[row["target_id"]]], told.get(row["id"], []))
        for row in rows
    }


def _told_of_links(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[str]]:
    """Fragments by relationship id."""
    by_pair: dict[str, list[Evidence]] = {}
    for one in pairs_from_table(
        snapshot.by_key("evidence", ids, "relationship_id", TABLES["evidence"].names)
    ):
        by_pair.setdefault(one.relationship_id, []).append(one)
    return {id: told_of_pair(found) for id, found in by_pair.items()}


def _titles(snapshot: Snapshot, ends: Sequence[str]) -> dict[str, str]:
    """What the documents call entities, by id."""
    rows = snapshot.by_key("entities", ends, "id", ["id", "key", "title", "names"]).to_pylist()
    edits = logs.in_force(snapshot)
    by_hand = [row for row in rows if "title" in edits.words(row["key"])]
    found = _mentions(snapshot, by_hand)
    return {row["id"]: _title(row, found.get(row["id"], ()), edits) for row in rows}
