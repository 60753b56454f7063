"""Descriptions that became too long, summarised by a model; one that no model could write stays
joined, and pending.

Names are those of the documents, also where an edit gave another: otherwise the description would
depend on which of edit and description came first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from graphrag_mcp.index import graph
from graphrag_mcp.index.describe import summarise
from graphrag_mcp.index.extract import Named
from graphrag_mcp.index.units import pending
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.edit_log import Overlay
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.text.terms import lists_of

if TYPE_CHECKING:
    from graphrag_mcp.index.models import Models

Row = dict[str, Any]
ENDS = ("id", "source_id", "target_id")
OF_TABLE = {"entity": "entities", "relationship": "relationships"}
# kind of the row, the row, and the description being written: text, by whom, why by no one
Started = list[tuple[str, Row, Future[tuple[str, str, str]]]]


def retitled(
    snapshot: Snapshot | None, changes: Mapping[str, Change], models: Models, edits: Overlay
) -> dict[str, str]:
    """Relationships (id -> kind) with a long description whose end the documents call by another
    name now: they themselves are not changed, but the question for their description is another
    one."""
    rows, ours = changes["entities"].rows, changes["relationships"]
    if snapshot is None or rows is None:
        return {}
    now = {row["id"]: row for row in rows.select(["id", "key", "title"]).to_pylist()}
    old = snapshot.served("entities", sorted(now), ["id", "title"])
    # Of a name that was given by hand no one knows what the documents said before.
    moved = [
        row["id"]
        for row in old
        if row["title"] != now[row["id"]]["title"] or "title" in edits.words(now[row["id"]]["key"])
    ]
    touched = {*ours.gone, *(ours.rows["id"].to_pylist() if ours.rows is not None else ())}
    by_hand = {edit.fields.get("description") for edit in edits.pairs.values()}
    found: dict[str, str] = {}
    for end in ENDS[1:] if moved else ():
        links = snapshot.by_key("relationships", moved, end, [*ENDS, "description"]).to_pylist()
        links = [row for row in links if row["description"] not in by_hand]
        fragments_of = _told_of_links(
            snapshot, [row["id"] for row in links if row["id"] not in touched]
        )
        found |= {
            id: "relationship"
            for id, fragments in fragments_of.items()
            if models.is_long(fragments)
        }
    return found


def begin(snapshot: Snapshot, subjects: Mapping[str, Sequence[str]], models: Models) -> Started:
    """Ask for the descriptions of these rows by kind; of rows that have gone meanwhile nothing."""
    started: Started = []
    if models.describe is None:
        return started
    for kind, table in OF_TABLE.items():
        rows = snapshot.by_key(table, sorted(subjects.get(kind, ())), "id").to_pylist()
        told_of = _told_of_entities if kind == "entity" else _told_of_pairs
        fragments_of = told_of(snapshot, rows) if rows else {}
        for row in rows:
            names, fragments = fragments_of[row["id"]]
            if models.is_long(fragments):
                work = summarise(models.asker, names, fragments, models.describe)
                started.append((kind, row, models.asker.start(work)))
    return started


def finish(
    started: Started, take: Callable[[Future[Any]], Any]
) -> tuple[dict[str, Change], list[Row]]:
    """Wait for the descriptions: the changes of the two tables, and rows still pending."""
    failed: list[Row] = []
    changed: dict[str, list[Row]] = {table: [] for table in OF_TABLE.values()}
    for kind, row, future in started:
        text, by, reason = take(future)
        if not by:
            failed.append(pending(kind, row["id"], "", reason))
        if text != row["description"]:
            changed[OF_TABLE[kind]].append(row | {"description": text})
    changes = {
        table: Change([row["id"] for row in rows], graph.graph_to_table(table, rows))
        for table, rows in changed.items()
        if rows
    }
    return changes, failed


def _told_of_entities(
    snapshot: Snapshot, rows: Sequence[Row]
) -> dict[str, tuple[list[str], list[str]]]:
    """Names and fragments by entity id."""
    found = _mentions(snapshot, rows)
    edits = logs.in_force(snapshot)
    return {
        row["id"]: ([_title(row, found[row["id"]], edits)], graph.told_of_entity(found[row["id"]]))
        for row in rows
    }


def _mentions(snapshot: Snapshot, rows: Sequence[Row]) -> dict[str, list[Named]]:
    keys = sorted({name for row in rows for name in row["names"]})
    mentions = graph.mentions_from_table(snapshot.by_key("mentions", keys, "key"))
    by_key = lists_of((named.key, named) for named in mentions)
    return {
        row["id"]: [mention for name in row["names"] for mention in by_key.get(name, ())]
        for row in rows
    }


def _title(row: Row, found: Sequence[Named], edits: Overlay) -> str:
    by_hand = found and "title" in edits.words(row["key"])
    return graph.called(row["key"], found)[0] if by_hand else row["title"]


def _told_of_pairs(
    snapshot: Snapshot, rows: Sequence[Row]
) -> dict[str, tuple[list[str], list[str]]]:
    """Names of both ends and fragments by relationship id."""
    fragments_of = _told_of_links(snapshot, [row["id"] for row in rows])
    ids = sorted({row[end] for row in rows for end in ENDS[1:]})
    ends = snapshot.served("entities", ids, ["id", "key", "title", "names"])
    edits = logs.in_force(snapshot)
    found = _mentions(snapshot, [row for row in ends if "title" in edits.words(row["key"])])
    titles = {row["id"]: _title(row, found.get(row["id"], ()), edits) for row in ends}
    return {
        row["id"]: (
            [titles[row["source_id"]], titles[row["target_id"]]],
            fragments_of.get(row["id"], []),
        )
        for row in rows
    }


def _told_of_links(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[str]]:
    """Fragments by relationship id."""
    pairs = graph.pairs_from_table(snapshot.by_key("evidence", ids, "relationship_id"))
    by_pair = lists_of((evidence.relationship_id, evidence) for evidence in pairs)
    return {id: graph.told_of_pair(found) for id, found in by_pair.items()}
