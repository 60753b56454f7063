"""What one table repeats of another: that both say the same, and that no row stands twice.

Takes a snapshot whose tables can be read; gives (kind, table, what) for every row that its table has twice, whose id is
not that of what it is about, or that repeats another table wrongly: a passage its document and text unit, evidence its
relationship, a report its community, a text unit's names its passages. Reads no text, and repairs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from graphrag_mcp.store.schema import KEY, TABLES
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import normalise_name
from graphrag_mcp.types import content_id

Row = dict[str, Any]
Broken = tuple[str, str, str]
# Rows of these share a key with others; what none of them shares is this.
TOGETHER = {"mentions": ("key", "text_unit_id", "form", "type", "by"), "evidence": ()}


def disagreements(snapshot: Snapshot) -> Iterator[Broken]:
    """Every row that stands twice or does not say what the table says that it is taken from."""
    yield from _twice(snapshot)
    units = {row["id"]: row for row in _rows(snapshot, "text_units", ["id", "n", "document_id", "char_start"])}
    yield from _passages(snapshot, units)
    yield from _names(snapshot)
    yield from _graph(snapshot)
    yield from _reports(snapshot)


def _twice(snapshot: Snapshot) -> Iterator[Broken]:
    for table in TABLES:
        columns = TOGETHER.get(table, (KEY.get(table, "id"),))
        if table == "claims" or table.endswith("_vectors") or not columns:
            continue
        seen: Counter[str] = Counter()
        for row in _rows(snapshot, table, columns):
            seen[" ".join(row[name] for name in columns)] += 1
        yield from (("twice", table, f"{id} stands {count} times") for id, count in sorted(seen.items()) if count > 1)


def _passages(snapshot: Snapshot, units: dict[str, Row]) -> Iterator[Broken]:
    documents = {row["id"]: row for row in _rows(snapshot, "documents", ["id", "uri", "title"])}
    columns = ["id", "n", "text_unit_id", "document_id", "uri", "title", "title_id", "char_start", "char_end"]
    for row in _rows(snapshot, "passages", columns):
        unit, document = units.get(row["text_unit_id"]), documents.get(row["document_id"])
        if unit is None or document is None:  # a finding of its own
            continue
        span = (str(row[end] - unit["char_start"]) for end in ("char_start", "char_end"))
        if row["id"] != content_id("passage", unit["id"], *span):
            yield "id", "passages", f"{row['id']} is not the id of that span of text unit {unit['id']}"
        if (row["n"], row["document_id"]) != (unit["n"], unit["document_id"]):
            yield "passages", "passages", f"{row['id']}: its number or document is not that of its text unit"
        key = normalise_name(document["title"])
        said = (document["uri"], document["title"], content_id("entity", key) if key else "")
        if (row["uri"], row["title"], row["title_id"]) != said:
            yield "passages", "passages", f"{row['id']}: its uri or title is not that of its document"


def _names(snapshot: Snapshot) -> Iterator[Broken]:
    """A passage speaks only of what its text unit names. Not looked at where a model has read the unit: passages keep
    what was found by the rules, and of a unit without a name nobody knows who read it."""
    named: dict[str, set[str]] = {}
    read = set()
    for row in _rows(snapshot, "mentions", ["key", "text_unit_id", "by"]):
        named.setdefault(row["text_unit_id"], set()).add(content_id("entity", row["key"]))
        read |= {row["text_unit_id"]} if row["by"] else set()
    for row in _rows(snapshot, "passages", ["id", "text_unit_id", "entity_ids"]):
        unit = row["text_unit_id"]
        if unit in named and unit not in read and not named[unit].issuperset(row["entity_ids"]):
            yield "mentions", "passages", f"{row['id']} names what its text unit does not"


def _graph(snapshot: Snapshot) -> Iterator[Broken]:
    for row in _rows(snapshot, "entities", ["id", "key", "names"]):
        if row["id"] != content_id("entity", row["key"]):
            yield "id", "entities", f"{row['id']} is not the id of {row['key']!r}"
    for row in _rows(snapshot, "relationships", ["id", "source_id", "target_id"]):
        if row["id"] != content_id("relationship", row["source_id"], row["target_id"]):
            yield "id", "relationships", f"{row['id']} is not the id of the pair that it names"
    for row in _rows(snapshot, "evidence", ["relationship_id", "source_id", "target_id", "text_unit_id"]):
        id = row["relationship_id"]
        if id and id != content_id("relationship", row["source_id"], row["target_id"]):
            yield "evidence", "evidence", f"{id}: evidence in {row['text_unit_id']} names another pair"


def _reports(snapshot: Snapshot) -> Iterator[Broken]:
    communities = {row["id"]: row for row in _rows(snapshot, "communities", ["id", "n", "level", "entity_ids"])}
    for row in _rows(snapshot, "reports", ["id", "n", "level", "entity_ids"]):
        community = communities.get(row["id"])
        if community is None:  # a finding of its own
            continue
        if (row["n"], row["level"]) != (community["n"], community["level"]):
            yield "report", "reports", f"{row['id']}: its number or level is not that of its community"
        if not set(community["entity_ids"]).issuperset(row["entity_ids"]):
            yield "report", "reports", f"{row['id']} names entities that its community does not hold"


def _rows(snapshot: Snapshot, table: str, columns: Any) -> Iterator[Row]:
    for batch in snapshot.batches(table, list(columns)):
        yield from batch.to_pylist()
