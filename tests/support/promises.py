"""What the rows of an index promise each other, for tests and campaigns: whatever an indexing, an edit or a kill does,
counts are those of the rows that are counted, spans and quotes are the text that stands there, children divide their
parent. Only a mistake in a program can break this: against damage of files the shipped `doctor` has checksums."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_mcp.doctor import doctor as shipped
from graphrag_mcp.doctor.doctor import DERIVE, Finding, pairs_by_hand
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.index.extract import SUMMARY
from graphrag_mcp.index.summaries import parts_of
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.sources.read import Document
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.edit_log import PairFact, in_force
from graphrag_mcp.store.tables import Snapshot, notes_of, rows_of, values_of
from graphrag_mcp.text.terms import Lines, content_id, normalise_name

Broken = tuple[str, str, str]
Row = dict[str, Any]
TEXTS = 200  # documents whose texts are in memory at once
ASKED = {"extract": "text_units", "entity": "entities", "summary": "documents"}
ASKED |= {"relationship": "relationships", "report": "communities"}
GROUPS = {"Entities": "entities", "Relationships": "relationships", "Sources": "text_units"}
GROUPS |= {"Reports": "communities"}


def doctor(folder: Path, repair: bool = False, rebuild: Callable[[Path], object] | None = None) -> list[Finding]:
    """What the shipped doctor finds, and every broken promise where all tables can be read."""
    found = shipped.doctor(folder, repair, rebuild)
    if any(one.kind == "table" and not one.repaired for one in found):
        return found
    try:
        manifest = manifests.read(folder)
        assert manifest is not None
        snapshot = Snapshot(folder, manifest, examine=True)
        return [*found, *(Finding(*broken, DERIVE) for broken in broken_promises(snapshot))]
    except GraphRAGError:  # a finding already
        return found


def broken_promises(snapshot: Snapshot) -> Iterator[Broken]:
    """Every one, in a stable order."""
    yield from _relationships(snapshot, pairs_by_hand(snapshot, in_force(snapshot)))
    for check in (_spans, _passages, _entities, _communities, _memberships, _reports):
        yield from check(snapshot)
    yield from _pending(snapshot)
    yield from _summaries(snapshot)
    yield from _terms(snapshot)


def _column(snapshot: Snapshot, table: str, column: str) -> list[Any]:
    return snapshot.rows(table, columns=[column])[column].to_pylist()


def _rows(snapshot: Snapshot, table: str, *columns: str) -> Iterator[Row]:
    for batch in snapshot.batches(table, list(columns) or None):
        yield from batch.to_pylist()


def _chunks(values: Iterable[str]) -> Iterator[list[str]]:
    listed = sorted(values)
    return (listed[start : start + TEXTS] for start in range(0, len(listed), TEXTS))


def _spans(snapshot: Snapshot) -> Iterator[Broken]:
    """Ids are made of the content; text units and passages are what stands at their spans."""
    named = "id document_id char_start char_end line_start line_end text".split()
    for chunk in _chunks(_column(snapshot, "documents", "id")):
        documents = {row["id"]: row for row in snapshot.by_key("documents", chunk).to_pylist()}
        for row in documents.values():
            if _document_id(row) != row["id"]:
                what = f"{row['uri']}: its text is not the one that its id was made of"
                yield "content", "documents", what
        line = {id: Lines(row["text"]).at for id, row in documents.items()}
        for table in ("text_units", "passages"):
            for row in snapshot.by_key(table, chunk, "document_id", named).to_pylist():
                start, end, home = row["char_start"], row["char_end"], row["document_id"]
                lines = (line[home](start), line[home](max(start, end - 1)))
                if documents[home]["text"][start:end] != row["text"]:
                    yield "span", table, f"{row['id']}: the text at its span is another"
                elif (row["line_start"], row["line_end"]) != lines:
                    yield "span", table, f"{row['id']}: its lines are not those of its span"


def _document_id(row: Row) -> str:
    """What its content makes it; nothing where its metadata is no JSON."""
    try:
        metadata = json.loads(row["metadata"] or "{}")
    except ValueError:
        return ""
    return Document(row["uri"], row["title"], row["text"], metadata).id


def _passages(snapshot: Snapshot) -> Iterator[Broken]:
    """Passages divide their text unit, repeat what its document is called, and name only what the
    text unit names. The last is not looked at where a model has read the unit: passages keep what
    was found by the rules."""
    columns = ("id", "n", "document_id", "char_start")
    units = {row["id"]: row for row in _rows(snapshot, "text_units", *columns)}
    documents = {row["id"]: row for row in _rows(snapshot, "documents", "id", "uri", "title")}
    named: dict[str, set[str]] = defaultdict(set)
    read: set[str] = set()
    for row in _rows(snapshot, "mentions", "key", "text_unit_id", "by"):
        named[row["text_unit_id"]].add(content_id("entity", row["key"]))
        read |= {row["text_unit_id"]} if row["by"] not in ("", SUMMARY) else set()
    parts: dict[str, list[tuple[int, int]]] = {id: [] for id in units}
    columns = tuple("id n text_unit_id document_id uri title title_id char_start char_end".split())
    for row in _rows(snapshot, "passages", *columns, "part", "parts", "entity_ids"):
        unit, document = units.get(row["text_unit_id"]), documents.get(row["document_id"])
        if unit is None or document is None:  # a finding of its own
            continue
        parts[unit["id"]].append((row["part"], row["parts"]))
        span = (str(row[end] - unit["char_start"]) for end in ("char_start", "char_end"))
        if row["id"] != content_id("passage", unit["id"], *span):
            what = f"{row['id']} is not the id of that span of text unit {unit['id']}"
            yield "id", "passages", what
        key = normalise_name(document["title"])
        said = (document["uri"], document["title"], content_id("entity", key) if key else "")
        home = (unit["n"], unit["document_id"])
        if (row["uri"], row["title"], row["title_id"], row["n"], row["document_id"]) != said + home:
            what = f"{row['id']}: it says otherwise than its text unit or document"
            yield "passages", "passages", what
        if unit["id"] in named.keys() - read and not named[unit["id"]].issuperset(row["entity_ids"]):
            yield "mentions", "passages", f"{row['id']} names what its text unit does not"
    for id, numbers in sorted(parts.items()):
        whole = [(part, len(numbers)) for part in range(1, len(numbers) + 1)]
        if not numbers or sorted(numbers) != whole:
            yield "passages", "passages", f"text unit {id} has the parts {sorted(numbers)}"


def _terms(snapshot: Snapshot) -> Iterator[Broken]:
    counted: Counter[str] = Counter()
    length = 0
    for row in _rows(snapshot, "passages", "terms", "n_terms"):
        counted.update(set(row["terms"].split()))
        length += row["n_terms"]
    there = {row["term"]: row["passages"] for row in _rows(snapshot, "terms")}
    for term in sorted(counted.keys() | there.keys()):
        if counted[term] != there.get(term, 0):
            what = f"{term!r}: {there.get(term, 0)} passages, recounted {counted[term]}"
            yield "terms", "terms", what
    wanted = snapshot.manifest.counters.get("passage_terms", length)
    if wanted != length:
        yield "count", "passages", f"{length} terms in all, the manifest counts {wanted}"


def _quotes(snapshot: Snapshot, of_unit: Mapping[str, list[tuple[str, int, int, str]]]) -> Iterator[tuple[str, str]]:
    """(row, text unit) of quotes (row, start, end, text), by text unit, that are not its own words."""
    for chunk in _chunks(of_unit):
        for unit in snapshot.by_key("text_units", chunk, columns=["id", "text"]).to_pylist():
            for id, start, end, text in of_unit[unit["id"]]:
                if unit["text"][start:end] != text:
                    yield id, unit["id"]


def _evidence_texts(snapshot: Snapshot, table: str) -> Iterator[Broken]:
    wanted: dict[str, list[tuple[str, int, int, str]]] = defaultdict(list)
    for row in _rows(snapshot, table, "id", "evidence"):
        for item in row["evidence"]:
            quote = (row["id"], item["start"], item["end"], item["text"])
            wanted[item["text_unit_id"]].append(quote)
    for id, unit in _quotes(snapshot, wanted):
        yield "evidence", table, f"{id}: its evidence is not the text of {unit}"


def _entities(snapshot: Snapshot) -> Iterator[Broken]:
    units_of: dict[str, set[str]] = defaultdict(set)
    for row in _rows(snapshot, "mentions", "key", "text_unit_id"):
        units_of[row["key"]].add(row["text_unit_id"])
    ends = snapshot.rows("relationships", columns=["source_id", "target_id"]).columns
    degree = Counter(id for column in ends for id in column.to_pylist())
    columns = ("id", "key", "names", "frequency", "degree", "text_unit_ids")
    for row in _rows(snapshot, "entities", *columns):
        units = set().union(*(units_of.get(name, ()) for name in row["names"]))
        if row["id"] != content_id("entity", row["key"]):
            yield "id", "entities", f"{row['id']} is not the id of {row['key']!r}"
        if set(row["text_unit_ids"]) != units:
            yield "mentions", "entities", f"{row['id']}: its text units are not those of its names"
        for column, counted in (("frequency", len(units)), ("degree", degree[row["id"]])):
            if row[column] != counted:
                yield column, "entities", f"{row['id']}: {row[column]}, recounted {counted}"
    yield from _evidence_texts(snapshot, "entities")


def _relationships(snapshot: Snapshot, by_hand: Mapping[str, PairFact]) -> Iterator[Broken]:
    weight: Counter[str] = Counter()
    units_of: dict[str, set[str]] = defaultdict(set)
    columns = ("relationship_id", "source_id", "target_id", "text_unit_id", "weight")
    for row in _rows(snapshot, "evidence", *columns):
        id, ends = row["relationship_id"], (row["source_id"], row["target_id"])
        # No id: a model said it of two names that mean one entity now.
        if id != (content_id("relationship", *ends) if id else "".join(ends)):
            what = f"{id}: evidence in {row['text_unit_id']} names another pair"
            yield "evidence", "evidence", what
        weight[id] += row["weight"]
        units_of[id].add(row["text_unit_id"])
    columns = ("id", "source_id", "target_id", "weight", "text_unit_ids")
    for row in _rows(snapshot, "relationships", *columns):
        id, ends = row["id"], (row["source_id"], row["target_id"])
        if id != content_id("relationship", *sorted(ends)) or ends[0] == ends[1]:
            yield "id", "relationships", f"{id} is not the id of the pair that it names"
        if set(row["text_unit_ids"]) != units_of[id]:
            what = f"{id}: its text units are not those of its evidence"
            yield "evidence", "relationships", what
        wanted = by_hand[id].weight(weight[id]) if id in by_hand else weight[id]
        if abs(row["weight"] - wanted) > 1e-5:
            yield "weight", "relationships", f"{id}: {row['weight']}, recounted {wanted}"
    yield from _evidence_texts(snapshot, "relationships")


def _communities(snapshot: Snapshot) -> Iterator[Broken]:
    rows = {row["id"]: row for row in _rows(snapshot, "communities")}
    children: dict[str, set[str]] = defaultdict(set)
    for row in rows.values():
        children[row["parent"]].add(row["id"])
    for id, row in rows.items():
        parent = rows.get(row["parent"])
        if row["level"] != (parent["level"] + 1 if parent else 0):
            what = f"{id}: level {row['level']} under {row['parent'] or 'no parent'}"
            yield "level", "communities", what
        if set(row["children"]) != children[id]:
            what = f"{id}: its children are not those that name it as parent"
            yield "children", "communities", what
        there = [rows[child] for child in row["children"] if child in rows]
        below = Counter(member for child in there for member in child["entity_ids"])
        if row["children"] and below != Counter(row["entity_ids"]):
            yield "members", "communities", f"{id}: its children do not divide its members"
        if row["size"] != len(row["entity_ids"]):
            yield "size", "communities", f"{id}: {row['size']}, recounted {len(row['entity_ids'])}"


def _memberships(snapshot: Snapshot) -> Iterator[Broken]:
    """Entities, of which communities say it too, and text units."""
    communities = {row["id"]: row for row in _rows(snapshot, "communities")}
    wanted: dict[str, list[str]] = defaultdict(list)
    for row in sorted(communities.values(), key=lambda row: row["level"]):
        for member in row["entity_ids"]:
            wanted[member].append(row["id"])
    there = {row["entity_id"]: row["path"] for row in _rows(snapshot, "memberships")}
    units = there.keys() - wanted.keys()
    for id in sorted(units):
        rows = [communities.get(one, {}) for one in there[id]]
        whole = rows and [row.get("parent") for row in rows] == ["", *there[id][:-1]]
        if not whole or rows[-1]["children"]:
            yield "membership", "memberships", f"{id}: its path is not one of communities"
    for id in sorted(wanted):
        if wanted[id] != there.get(id):
            yield "membership", "memberships", f"{id}: its path is not the communities that hold it"
    if not snapshot.manifest.stale:
        texts: dict[str, str] = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
        notes = notes_of(snapshot)
        placed = {id for id, document in texts.items() if document not in notes}
        linked = snapshot.rows("relationships", columns=["source_id", "target_id"])
        ends: set[str] = {id for column in linked.columns for id in values_of(column)}
        for id in sorted((ends | placed if units else ends) - there.keys()):
            yield "membership", "memberships", f"{id} is in no community"
        for id in sorted(units - texts.keys()):
            yield ("dangling", "memberships", f"{id} is neither an entity of a community nor a text unit")


def _reports(snapshot: Snapshot) -> Iterator[Broken]:
    columns = ("id", "n", "level", "entity_ids")
    communities = {row["id"]: row for row in _rows(snapshot, "communities", *columns)}
    known = {group: set(_column(snapshot, table, "id")) for group, table in GROUPS.items()}
    for row in _rows(snapshot, "reports", *columns, "summary", "full_content", "findings"):
        community = communities.get(row["id"], row)
        if (row["n"], row["level"]) != (community["n"], community["level"]):
            what = f"{row['id']}: its number or level is not that of its community"
            yield "report", "reports", what
        if not set(community["entity_ids"]).issuperset(row["entity_ids"]):
            what = f"{row['id']} names entities that its community does not hold"
            yield "report", "reports", what
        said = referenced_ids(f"{row['summary']}\n{row['full_content']}\n{row['findings']}")
        for group in GROUPS if not snapshot.manifest.stale else ():
            for id in sorted({*said.get(group, ())} - known[group]):
                yield "dangling", "reports", f"{row['id']} names {id}, which is not there"


def _summaries(snapshot: Snapshot) -> Iterator[Broken]:
    """Sections tile their document, and each summary is of the text that it was made from."""
    texts = {row["id"]: row for row in _rows(snapshot, "documents", "id", "uri", "title", "text", "metadata")}
    held: dict[str, dict[int, str]] = {}
    for row in _rows(snapshot, "summaries", "document_id", "place", "sha"):
        held.setdefault(row["document_id"], {})[row["place"]] = row["sha"]
    for id, shas in held.items():
        parts = {part.place: content_id(part.text) for part in parts_of(texts[id])}
        if any(parts.get(place, sha) != sha for place, sha in shas.items() if place or len(parts) == 1):
            yield "summary", "summaries", f"{id} has a summary of another text"


def _pending(snapshot: Snapshot) -> Iterator[Broken]:
    known = {table: set(_column(snapshot, table, "id")) for table in set(ASKED.values())}
    for row in _rows(snapshot, "pending"):
        if row["subject"] not in known.get(ASKED.get(row["kind"], ""), ()):
            yield "dangling", "pending", f"{row['id']}: {row['subject']} is not there"
