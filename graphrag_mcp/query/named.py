"""Entities by how many documents name them.

Takes a snapshot and a type; gives the entities of that type that most documents name, or most of
some documents, and a line on each with a sentence that names it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import entities
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import readable, says_something
from graphrag_mcp.text.terms import counted

KINDS = {
    "person": "People",
    "organization": "Organizations",
    "location": "Places",
    "event": "Events",
}
SENTENCE = 160  # characters of the sentence that names an entity
TOP = 10  # names of a kind in an overview
LEAST = 2  # documents that name what an overview shows

SHARED = 2  # full names that hold a single name, from which on it means none of them
_all: WeakKeyDictionary[Snapshot, dict[str, list[tuple[str, int]]]] = WeakKeyDictionary()


def most_named(
    snapshot: Snapshot, kind: str, documents: Collection[str] | None = None
) -> list[tuple[str, int]]:
    """(id, number of documents) of the entities of a type, those that most documents name first.
    `documents` are the content ids of those that count; None: all."""
    if documents is not None:
        return _counted(snapshot, kind, documents)
    known = _all.setdefault(snapshot, {})
    if kind not in known:
        known[kind] = _counted(snapshot, kind, None)
    return known[kind]


def _counted(
    snapshot: Snapshot, kind: str, documents: Collection[str] | None
) -> list[tuple[str, int]]:
    typed = snapshot.rows("entities", f"type = '{kind}'", ["id", "title", "degree"]).to_pylist()
    if kind == "person":
        typed = _without_shared(typed)
    degree = {row["id"]: row["degree"] for row in typed}
    parts = entities.part_of(snapshot) if kind == "organization" else {}
    named: dict[str, set[str]] = {id: set() for id in degree}
    rows = snapshot.rows("passages", "", ["document_id", "entity_ids"])
    for document, ids in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        if documents is None or document in documents:
            for id in (one for entity in ids for one in (entity, *parts.get(entity, ()))):
                if id in named:
                    named[id].add(document)
    found = [(id, len(found_in)) for id, found_in in named.items() if found_in]
    return sorted(found, key=lambda one: (-one[1], -degree[one[0]], one[0]))


def _without_shared(people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """People without single names that several full names share: "Ferguson" beside Alex Ferguson
    and Barry Ferguson is no third person."""
    full = [row["title"].split() for row in people if " " in row["title"]]
    shared = Counter(name for words in full for name in {words[0], words[-1]})
    return [row for row in people if shared[row["title"]] < SHARED]


def line(snapshot: Snapshot, id: str, number: int, documents: Collection[str] | None = None) -> str:
    """`- [e3] Tony Blair, 55 documents: a sentence that names him. [t12]`"""
    row = snapshot.served("entities", [id])[0]
    sentence = _sentence(snapshot, row["evidence"], documents)
    return (
        f"- [e{row['n']}] {one_line(row['title'], 80)}, {counted(number, 'documents')}: {sentence}"
    )


def _sentence(
    snapshot: Snapshot, evidence: Sequence[Mapping[str, str]], documents: Collection[str] | None
) -> str:
    """The first sentence of the evidence that says something, of these documents where one is."""
    units = snapshot.by_key(
        "text_units", [one["text_unit_id"] for one in evidence], "id", ["id", "n", "document_id"]
    )
    place = {row["id"]: row for row in units.to_pylist()}
    known = [(place[id], one["text"]) for one in evidence if (id := one["text_unit_id"]) in place]
    inside = [one for one in known if documents is None or one[0]["document_id"] in documents]
    telling = [one for one in inside if says_something(one[1])]
    for unit, text in telling or inside or known:
        return f"{one_line(readable(text), SENTENCE)} [t{unit['n']}]"
    return ""


def overview(snapshot: Snapshot, documents: Collection[str] | None = None, prefix: str = "") -> str:
    """`People, Tony Blair [e3] 55, ...`, one line a type; "" where
    none is named by two documents. `prefix` stands before ids."""
    lines = []
    for kind in ("person", "organization"):
        found = [one for one in most_named(snapshot, kind, documents)[:TOP] if one[1] >= LEAST]
        if not found:
            continue
        rows = {row["id"]: row for row in snapshot.served("entities", [id for id, _ in found])}
        shown = [
            f"{one_line(rows[id]['title'], 40)} [{prefix}e{rows[id]['n']}] {number}"
            for id, number in found
            if id in rows
        ]
        lines.append(f"{KINDS[kind]}: {', '.join(shown)}")
    return "\n".join(["Named by most documents:", *lines]) if lines else ""
