"""Checks of the rows of one generation against each other.

Takes a snapshot whose tables can be read; gives (kind, table, what) for every promise that is
broken: ids that lead nowhere, spans that do not give the text, counts that do not recount, tables
that contradict each other, edits that the rows do not follow, rows made by other parameters than
the manifest names (every document is cut once more, names are looked up in a sample). Repairs
nothing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.packing.budget import referenced_ids
from graphrag_mcp.store import edit_log
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.edit_log import APPLIED, OPS, Overlay, PairFact, facts, in_force
from graphrag_mcp.store.manifest import IN_PART
from graphrag_mcp.store.schema import FULL_TEXT, KEY, SCALAR, TABLES, VECTORS
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import Lines, normalise_name
from graphrag_mcp.types import Document, content_id

Broken = tuple[str, str, str]
Row = dict[str, Any]


def pairs_by_hand(snapshot: Snapshot) -> dict[str, PairFact]:
    """What edits say of relationships, by id."""
    overlay = _overlay(snapshot)
    if not overlay.pairs:
        return {}
    rows = snapshot.rows("entities", columns=["key", "names"]).to_pylist()
    entity_of = {name: row["key"] for row in rows for name in row["names"]}
    return facts(sorted(overlay.pairs.values(), key=lambda edit: edit.order), entity_of)


def broken(snapshot: Snapshot, by_hand: Mapping[str, PairFact]) -> Iterator[Broken]:
    """Every edit that the rows do not follow, and every row of the log that cannot be one."""
    overlay = _overlay(snapshot)
    if not overlay.log:
        return
    yield from _log(snapshot, overlay)
    keys = {*overlay.entities, *overlay.alias, *overlay.alias.values()}
    columns = ["key", "names", "title", "type", "description"]
    ids = sorted(content_id("entity", key) for key in keys)
    rows = {row["key"]: row for row in snapshot.by_key("entities", ids, "id", columns).to_pylist()}
    for key, target in sorted(overlay.alias.items()):
        if key in rows:
            what = f"{key!r} is an entity, but {overlay.aliased[key]} made it a name of {target!r}"
            yield "edit", "entities", what
        elif target in rows and key not in rows[target]["names"]:
            what = f"{key!r} is no name of {target!r}, which {overlay.aliased[key]} made it"
            yield "edit", "entities", what
    for key, edit in sorted(overlay.entities.items()):
        row = rows.get(key)
        if edit.deleted and row is not None:
            yield "edit", "entities", f"{key!r} is there, but {edit.rows[-1]} hides it"
        elif row is None and overlay.made(key) and key not in overlay.alias:
            yield "edit", "entities", f"{key!r} is not there, but {edit.rows[-1]} made it"
        elif row is not None:
            yield from _fields("entities", repr(key), row, overlay.words(key))
    columns = ["id", "description", "keywords", "weight"]
    there = snapshot.by_key("relationships", sorted(by_hand), "id", columns)
    related = {row["id"]: row for row in there.to_pylist()}
    for id, fact in sorted(by_hand.items()):
        if fact.hidden and id in related:
            yield "edit", "relationships", f"{id} is there, but an edit hides it"
        elif fact.created and not fact.hidden and id not in related:
            yield "edit", "relationships", f"{id} is not there, but an edit made it"
        elif id in related and not fact.hidden:
            yield from _fields("relationships", id, related[id], fact.fields)


def _overlay(snapshot: Snapshot) -> Overlay:
    try:
        return in_force(snapshot)
    except GraphRAGError:  # a finding of its own
        return Overlay()


def _log(snapshot: Snapshot, overlay: Overlay) -> Iterator[Broken]:
    known: list[str] = []
    for place, row in enumerate(overlay.log, 1):
        if row.op not in OPS or not row.keys:
            yield "edit", "truth", f"row {place} of the edit log is no edit ({row.op!r})"
        if row.op == "undo" and not known.count(row.keys[0]):
            what = f"{row.id} undoes {row.keys[0]!r}, which is not in the log before it"
            yield "edit", "truth", what
        if row.id in known and known[-1] != row.id:
            yield "edit", "truth", f"two edits are called {row.id}"
        known.append(row.id)
    followed = snapshot.manifest.parameters.get(APPLIED, 0)
    if followed != len(overlay.log):
        what = f"the tables follow {followed} of {len(overlay.log)} rows of the edit log"
        yield "edit", "entities", what


def _fields(table: str, name: str, row: Row, given: Mapping[str, Any]) -> Iterator[Broken]:
    for field, value in given.items():
        if row[field] != value:
            yield "edit", table, f"{name}: its {field} is not the one that was given to it"


Spans = set[tuple[int, int]]
Cutter = Callable[
    [Mapping[str, Any], Mapping[str, Any], bool], "tuple[Spans, Spans, dict[str, set[str]]] | None"
]
TEXTS = 200  # documents whose texts are in memory at once
SAMPLE = 20  # documents in which names are looked up
IMPORTED = "import:"  # begins the file of a document that came by an import
NAMED = ("chunk_size", "chunk_overlap", "chunk_mode", "passage_size", "extractor")


def cut_otherwise(snapshot: Snapshot, cut: Cutter) -> Iterator[Broken]:
    named = snapshot.manifest.parameters
    said = ", ".join(f"{name} {named[name]}" for name in NAMED if name in named)
    if named.get("derivation") == IN_PART:
        what = "an indexing with other settings was stopped half way, and only some documents are not as the manifest"
        yield "parameters", "text_units", f"{what} names it ({said})"
        return
    try:
        log = segment_store.live_documents(
            snapshot.folder, snapshot.manifest, ["uri", "id", "file"]
        ).to_pylist()
    except GraphRAGError:  # a finding of its own
        return
    ids = sorted(row["id"] for row in log if not row["file"].startswith(IMPORTED))
    looked_into = set(ids[:: max(1, len(ids) // SAMPLE)])
    wrong: dict[str, list[str]] = {"text_units": [], "passages": [], "mentions": []}
    for start in range(0, len(ids), TEXTS):
        some = ids[start : start + TEXTS]
        there = {table: _spans(snapshot, table, some) for table in ("text_units", "passages")}
        columns = ["id", "uri", "title", "text"]
        for row in snapshot.by_key("documents", some, "id", columns).to_pylist():
            found = cut(row, named, row["id"] in looked_into)
            if found is None:
                return
            cuts = zip(there.items(), found, strict=False)
            other = [table for (table, spans), own in cuts if spans.get(row["id"]) != own]
            if not other and _other_names(snapshot, found[2]):
                other = ["mentions"]
            for table in other:
                wrong[table].append(row["uri"])
    for table, uris in wrong.items():
        if uris:
            what = "the names found in them are" if table == "mentions" else "they are cut"
            which = f"{len(uris)} documents ({uris[0]} first)"
            yield "parameters", table, f"{which}: {what} not as the manifest names it ({said})"


def _spans(snapshot: Snapshot, table: str, documents: list[str]) -> dict[str, Spans]:
    found: dict[str, Spans] = defaultdict(set)
    columns = ["document_id", "char_start", "char_end"]
    for row in snapshot.by_key(table, documents, "document_id", columns).to_pylist():
        found[row["document_id"]].add((row["char_start"], row["char_end"]))
    return found


def _other_names(snapshot: Snapshot, wanted: Mapping[str, set[str]]) -> bool:
    """Do text units hold other names than these? Not looked at where a model has read them."""
    columns = ["text_unit_id", "key", "by"]
    rows = snapshot.by_key("mentions", sorted(wanted), "text_unit_id", columns).to_pylist()
    held, read = _named(rows)
    return any(held[unit] != names for unit, names in wanted.items() if unit not in read)


def _named(mentions: Iterable[Row]) -> tuple[dict[str, set[str]], set[str]]:
    """By text unit the keys of the names in it, and the text units that a model has read."""
    held: dict[str, set[str]] = defaultdict(set)
    read = set()
    for row in mentions:
        held[row["text_unit_id"]].add(row["key"])
        if row["by"]:
            read.add(row["text_unit_id"])
    return held, read


# Rows of these share a key with others; what none of them shares is this.
TOGETHER = {"mentions": ("key", "text_unit_id", "form", "type", "by"), "evidence": ()}
PROBES = 20  # rows of a table that are looked up through its indexes
ALIASES = {name: name[0] for name in ("documents", "text_units", "entities", "relationships")}
ALIASES |= {"communities": "c"}
NUMBERED = {**ALIASES, "claims": "k"}
ASKED = {"extract": "text_units", "claims": "text_units", "entity": "entities"}
ASKED |= {"relationship": "relationships", "report": "communities"}
Ids = Mapping[str, set[str]]  # of the tables of ALIASES


def inconsistencies(snapshot: Snapshot) -> Iterator[Broken]:
    """Every broken promise, in a stable order: also rows that stand twice, and those that do not
    say what the table says that they are taken from."""
    ids = {name: _ids(snapshot, name) for name in ALIASES}
    by_hand = pairs_by_hand(snapshot)
    yield from _numbers(snapshot)
    yield from _against_truth(snapshot)
    yield from _check_spans(snapshot, ids)
    yield from _entities(snapshot, ids)
    yield from _relationships(snapshot, ids, by_hand)
    yield from broken(snapshot, by_hand)
    for check in (_communities, _reports, _claims, _pending, _losses):
        yield from check(snapshot, ids)
    for look in (_vectors, _terms, _twice, _passages, _names, _indexes):
        yield from look(snapshot)


def _rows(snapshot: Snapshot, table: str, columns: Iterable[str] | None = None) -> Iterator[Row]:
    for batch in snapshot.batches(table, None if columns is None else list(columns)):
        yield from batch.to_pylist()


def _twice(snapshot: Snapshot) -> Iterator[Broken]:
    for table in TABLES:
        columns = TOGETHER.get(table, (KEY.get(table, "id"),))
        if table == "claims" or table.endswith("_vectors") or not columns:
            continue
        rows = _rows(snapshot, table, columns)
        seen = Counter(" ".join(row[name] for name in columns) for row in rows)
        for id, count in sorted(seen.items()):
            if count > 1:
                yield "twice", table, f"{id} stands {count} times"


def _passages(snapshot: Snapshot) -> Iterator[Broken]:
    columns = ["id", "n", "document_id", "char_start"]
    units = {row["id"]: row for row in _rows(snapshot, "text_units", columns)}
    documents = {row["id"]: row for row in _rows(snapshot, "documents", ["id", "uri", "title"])}
    columns = "id n text_unit_id document_id uri title title_id char_start char_end".split()
    for row in _rows(snapshot, "passages", columns):
        unit, document = units.get(row["text_unit_id"]), documents.get(row["document_id"])
        if unit is None or document is None:  # a finding of its own
            continue
        span = (str(row[end] - unit["char_start"]) for end in ("char_start", "char_end"))
        if row["id"] != content_id("passage", unit["id"], *span):
            what = f"{row['id']} is not the id of that span of text unit {unit['id']}"
            yield "id", "passages", what
        if (row["n"], row["document_id"]) != (unit["n"], unit["document_id"]):
            what = f"{row['id']}: its number or document is not that of its text unit"
            yield "passages", "passages", what
        key = normalise_name(document["title"])
        said = (document["uri"], document["title"], content_id("entity", key) if key else "")
        if (row["uri"], row["title"], row["title_id"]) != said:
            what = f"{row['id']}: its uri or title is not that of its document"
            yield "passages", "passages", what


def _names(snapshot: Snapshot) -> Iterator[Broken]:
    """A passage speaks only of what its text unit names. Not looked at where a model has read the
    unit: passages keep what was found by the rules, and of a unit without a name no one knows who
    read it."""
    held, read = _named(_rows(snapshot, "mentions", ["key", "text_unit_id", "by"]))
    named = {unit: {content_id("entity", key) for key in keys} for unit, keys in held.items()}
    for row in _rows(snapshot, "passages", ["id", "text_unit_id", "entity_ids"]):
        unit = row["text_unit_id"]
        if unit in named and unit not in read and not named[unit].issuperset(row["entity_ids"]):
            yield "mentions", "passages", f"{row['id']} names what its text unit does not"


def _ids(snapshot: Snapshot, table: str) -> set[str]:
    return set(snapshot.rows(table, columns=["id"])["id"].to_pylist())


def _numbers(snapshot: Snapshot) -> Iterator[Broken]:
    for table, letter in NUMBERED.items():
        numbers = Counter(snapshot.rows(table, columns=["n"])["n"].to_pylist())
        for n in numbers:
            if numbers[n] > 1:
                yield "number", table, f"{letter}{n} stands for several rows"
        if numbers and max(numbers) >= snapshot.manifest.next.get(letter, 1):
            what = f"{letter}{max(numbers)} is in use, but the next number is not above it"
            yield "number", table, what


def _against_truth(snapshot: Snapshot) -> Iterator[Broken]:
    columns = ["uri", "id", "n"]
    try:
        log = segment_store.live_documents(snapshot.folder, snapshot.manifest, columns)
    except GraphRAGError:  # a finding of its own
        return
    wanted = {row["uri"]: row for row in log.to_pylist()}
    there = {row["uri"]: row for row in _rows(snapshot, "documents", columns=columns)}
    for uri in sorted(wanted.keys() | there.keys()):
        if uri not in there:
            yield "truth", "documents", f"{uri} is in the document log but not in the table"
        elif uri not in wanted:
            yield "truth", "documents", f"{uri} is in the table but not in the document log"
        elif wanted[uri] != there[uri]:
            yield "truth", "documents", f"{uri} is another version than in the document log"


def _check_spans(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    for table in ("text_units", "passages"):
        owners = snapshot.rows(table, columns=["id", "document_id"]).to_pylist()
        pairs = ((row["id"], row["document_id"]) for row in owners)
        yield from _dangling(table, pairs, ids["documents"])
    with_passages: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in _rows(snapshot, "passages", columns=["text_unit_id", "part", "parts"]):
        with_passages[row["text_unit_id"]].append((row["part"], row["parts"]))
    for unit in sorted(ids["text_units"] | with_passages.keys()):
        parts = sorted(with_passages.get(unit, ()))
        if unit not in ids["text_units"]:
            what = f"{len(parts)} passages of text unit {unit}, which is not there"
            yield "dangling", "passages", what
        elif not parts or parts != [(part, len(parts)) for part in range(1, len(parts) + 1)]:
            yield "passages", "passages", f"text unit {unit} has the parts {parts}"
    named = {"id", "document_id", "char_start", "char_end", "line_start", "line_end", "text"}
    for chunk in _chunks(sorted(ids["documents"])):
        documents = {row["id"]: row for row in snapshot.by_key("documents", chunk).to_pylist()}
        for row in documents.values():
            if _document_id(row) != row["id"]:
                what = f"{row['uri']}: its text is not the one that its id was made of"
                yield "content", "documents", what
        line = {id: Lines(row["text"]).at for id, row in documents.items()}
        for table in ("text_units", "passages"):
            for row in snapshot.by_key(table, chunk, "document_id", sorted(named)).to_pylist():
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


def _entities(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    units_of: dict[str, set[str]] = defaultdict(set)
    for row in _rows(snapshot, "mentions", columns=["key", "text_unit_id"]):
        units_of[row["key"]].add(row["text_unit_id"])
    for id in sorted({unit for units in units_of.values() for unit in units} - ids["text_units"]):
        yield "dangling", "mentions", f"names of text unit {id}, which is not there"
    degree: Counter[str] = Counter()
    ends = snapshot.rows("relationships", columns=["source_id", "target_id"])
    for column in ends.columns:
        degree.update(column.to_pylist())
    columns = ["id", "key", "names", "frequency", "degree", "text_unit_ids"]
    for row in _rows(snapshot, "entities", columns):
        units = set().union(*(units_of.get(name, ()) for name in row["names"]))
        if row["id"] != content_id("entity", row["key"]):
            yield "id", "entities", f"{row['id']} is not the id of {row['key']!r}"
        if set(row["text_unit_ids"]) != units:
            yield "mentions", "entities", f"{row['id']}: its text units are not those of its names"
        for column, counted in (("frequency", len(units)), ("degree", degree[row["id"]])):
            if row[column] != counted:
                yield column, "entities", f"{row['id']}: {row[column]}, recounted {counted}"
    yield from _evidence_texts(snapshot, "entities", ids)


def _relationships(
    snapshot: Snapshot, ids: Ids, by_hand: Mapping[str, edit_log.PairFact]
) -> Iterator[Broken]:
    # their evidence stays, for an undo
    hidden = {id for id, fact in by_hand.items() if fact.hidden}
    known = {
        "source_id": ids["entities"],
        "target_id": ids["entities"],
        "text_unit_id": ids["text_units"],
        "relationship_id": ids["relationships"] | hidden,
    }
    weight: Counter[str] = Counter()
    units_of: dict[str, set[str]] = defaultdict(set)
    for row in _rows(snapshot, "evidence"):
        id, unit, ends = (
            row["relationship_id"],
            row["text_unit_id"],
            (row["source_id"], row["target_id"]),
        )
        if not id:  # a model said it of two names that mean one entity now
            said = (f"{row['source_key']} and {row['target_key']}", unit)
            yield from _dangling("evidence", [said], ids["text_units"])
            if any(ends):
                what = f"{unit}: a statement without relationship names entities"
                yield "evidence", "evidence", what
            continue
        weight[id] += row["weight"]
        units_of[id].add(unit)
        for column, there in known.items():
            yield from _dangling("evidence", [(id, row[column])], there)
        if id != content_id("relationship", *ends):
            yield "evidence", "evidence", f"{id}: evidence in {unit} names another pair"
    columns = ["id", "source_id", "target_id", "weight", "text_unit_ids"]
    for row in _rows(snapshot, "relationships", columns):
        id, ends = row["id"], (row["source_id"], row["target_id"])
        yield from _dangling("relationships", ((id, end) for end in ends), ids["entities"])
        if id != content_id("relationship", *sorted(ends)):
            yield "id", "relationships", f"{id} is not the id of the pair that it names"
        if ends[0] == ends[1]:
            yield "order", "relationships", f"{id}: its ends are one entity"
        if set(row["text_unit_ids"]) != units_of[id]:
            what = f"{id}: its text units are not those of its evidence"
            yield "evidence", "relationships", what
        wanted = by_hand[id].weight(weight[id]) if id in by_hand else weight[id]
        if abs(row["weight"] - wanted) > 1e-5:
            yield "weight", "relationships", f"{id}: {row['weight']}, recounted {wanted}"
    yield from _evidence_texts(snapshot, "relationships", ids)


def _evidence_texts(snapshot: Snapshot, table: str, ids: Ids) -> Iterator[Broken]:
    """Sentences kept with a row are the text units' own words."""
    wanted: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for row in _rows(snapshot, table, columns=["id", "evidence"]):
        for item in row["evidence"]:
            wanted[item["text_unit_id"]].append((row["id"], item))
    for unit in sorted(wanted.keys() - ids["text_units"]):
        what = f"{wanted[unit][0][0]}: evidence from text unit {unit}, which is not there"
        yield "dangling", table, what
    for chunk in _chunks(sorted(wanted.keys() & ids["text_units"])):
        for unit in snapshot.by_key("text_units", chunk, columns=["id", "text"]).to_pylist():
            for id, item in wanted[unit["id"]]:
                if unit["text"][item["start"] : item["end"]] != item["text"]:
                    yield "evidence", table, f"{id}: its evidence is not the text of {unit['id']}"


def _communities(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    rows = {row["id"]: row for row in _rows(snapshot, "communities")}
    # until the second commit, communities speak of the graph before
    fresh = not snapshot.manifest.stale
    children: dict[str, set[str]] = defaultdict(set)
    for row in rows.values():
        children[row["parent"]].add(row["id"])
    for id, row in rows.items():
        parent = rows.get(row["parent"])
        if row["parent"] and parent is None:
            yield "dangling", "communities", f"{id}: its parent {row['parent']} is not there"
        elif row["level"] != (parent["level"] + 1 if parent else 0):
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
        if fresh:
            pairs = ((id, member) for member in row["entity_ids"])
            yield from _dangling("communities", pairs, ids["entities"])
    yield from _memberships(snapshot, rows, ids, fresh)


def _memberships(
    snapshot: Snapshot, communities: Mapping[str, Row], ids: Ids, fresh: bool
) -> Iterator[Broken]:
    """Entities, of which communities say it too, and text units."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for row in sorted(communities.values(), key=lambda row: row["level"]):
        for member in row["entity_ids"]:
            wanted[member].append(row["id"])
    there = {row["entity_id"]: row["path"] for row in _rows(snapshot, "memberships")}
    units = there.keys() - wanted.keys()
    for id in sorted(units):
        rows = [communities.get(one, {}) for one in there[id]]
        whole = rows and [row.get("parent") for row in rows] == ["", *there[id][:-1]]
        if not whole or rows[-1]["children"] or (fresh and id not in ids["text_units"]):
            yield "membership", "memberships", f"{id}: its path is not one of communities"
    for id in sorted(wanted):
        if wanted[id] != there.get(id):
            yield "membership", "memberships", f"{id}: its path is not the communities that hold it"
    if fresh:
        linked = snapshot.rows("relationships", columns=["source_id", "target_id"])
        ends = {id for column in linked.columns for id in column.to_pylist()}
        alone = sorted((ends | ids["text_units"] if units else ends) - there.keys())
        for id in alone:
            yield "membership", "memberships", f"{id} is in no community"


def _reports(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    columns = ["id", "n", "level", "entity_ids"]
    communities = {row["id"]: row for row in _rows(snapshot, "communities", columns)}
    there = {"Entities": ids["entities"], "Relationships": ids["relationships"]}
    there |= {"Sources": ids["text_units"], "Reports": ids["communities"]}
    lists = {"Entities": "entity_ids", "Relationships": "relationship_ids"}
    lists["Sources"] = "text_unit_ids"
    columns = ["id", "n", "level", "summary", "full_content", "findings", *lists.values()]
    told = set()
    for row in _rows(snapshot, "reports", columns):
        told.add(row["id"])
        community = communities.get(row["id"])
        if community is None:
            yield "report", "reports", f"community {row['id']} has a report but is not there"
        elif (row["n"], row["level"]) != (community["n"], community["level"]):
            what = f"{row['id']}: its number or level is not that of its community"
            yield "report", "reports", what
        if community and not set(community["entity_ids"]).issuperset(row["entity_ids"]):
            what = f"{row['id']} names entities that its community does not hold"
            yield "report", "reports", what
        if snapshot.manifest.stale:
            continue
        said = referenced_ids(f"{row['summary']}\n{row['full_content']}\n{row['findings']}")
        for group, known in there.items():
            named = {*said.get(group, ()), *(row[lists[group]] if group in lists else ())}
            yield from _dangling("reports", ((row["id"], id) for id in sorted(named)), known)
    for id in sorted(ids["communities"] - told):
        yield "report", "reports", f"community {id} has no report"


def _claims(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    """Every quote stands in its text unit where the claim says. Subjects are names; not every name
    is an entity."""
    of_unit: dict[str, list[Row]] = defaultdict(list)
    columns = "id text_unit_id subject subject_id object object_id quotes spans".split()
    for row in _rows(snapshot, "claims", columns):
        of_unit[row["text_unit_id"]].append(row)
        for end in ("subject", "object"):
            key = normalise_name(row[end])
            if row[f"{end}_id"] not in ("", content_id("entity", key) if key else ""):
                what = f"{row['id']}: its {end} {row[end]!r} has another name's id"
                yield "dangling", "claims", what
    for unit in sorted(of_unit.keys() - ids["text_units"]):
        what = f"{of_unit[unit][0]['id']} names text unit {unit}, which is not there"
        yield "dangling", "claims", what
    for chunk in _chunks(sorted(of_unit.keys() & ids["text_units"])):
        for unit in snapshot.by_key("text_units", chunk, columns=["id", "text"]).to_pylist():
            for row in of_unit[unit["id"]]:
                ends = zip(row["spans"][::2], row["spans"][1::2], strict=False)
                quotes = [unit["text"][start:end] for start, end in ends]
                if quotes != row["quotes"] or not quotes:
                    what = f"{row['id']}: its quotes are not the text of {unit['id']}"
                    yield "span", "claims", what


def _pending(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    uris = set(snapshot.rows("documents", columns=["uri"])["uri"].to_pylist())
    for row in _rows(snapshot, "pending"):
        kind, subject = row["kind"], row["subject"]
        if row["id"] != f"{kind}:{subject}" or kind not in ASKED:
            what = f"{row['id']} is no question of kind {kind!r} about {subject}"
            yield "pending", "pending", what
        elif subject not in ids[ASKED[kind]]:
            yield "dangling", "pending", f"{row['id']}: {subject} is not there"
        elif ASKED[kind] == "text_units" and row["uri"] not in uris:
            yield "dangling", "pending", f"{row['id']}: the document {row['uri']} is not there"


def _losses(snapshot: Snapshot, ids: Ids) -> Iterator[Broken]:
    for row in _rows(snapshot, "losses"):
        if row["subject"] not in ids["text_units"]:
            yield "dangling", "losses", f"{row['id']}: {row['subject']} is not there"


def _vectors(snapshot: Snapshot) -> Iterator[Broken]:
    """At most one vector a row, none of a row that is gone, all of one length. A row may be
    without: a model was not there when it was written, and the next indexing with one makes it."""
    lengths: Counter[int] = Counter()
    for table, vectors in VECTORS.items():
        there, rows = _ids(snapshot, table), Counter[str]()
        for batch in snapshot.batches(vectors, ["id", "vector"]):
            rows.update(batch["id"].to_pylist())
            lengths.update(pc.list_value_length(batch["vector"]).to_pylist())
        for id, count in sorted(rows.items()):
            if count > 1:
                yield "vector", vectors, f"{id} has {count} vectors"
            if id not in there:
                yield "dangling", vectors, f"a vector of {id}, which is not there"
    if len(lengths) > 1:
        yield "vector", "vectors", f"vectors of the lengths {', '.join(map(str, sorted(lengths)))}"


def _terms(snapshot: Snapshot) -> Iterator[Broken]:
    counted: Counter[str] = Counter()
    length = 0
    for batch in snapshot.batches("passages", ["terms", "n_terms"]):
        for text in batch["terms"].to_pylist():
            counted.update(set(text.split()))
        length += sum(batch["n_terms"].to_pylist())
    there = {row["term"]: row["passages"] for row in _rows(snapshot, "terms")}
    for term in sorted(counted.keys() | there.keys()):
        said = there.get(term, 0)
        if counted[term] != said:
            yield "terms", "terms", f"{term!r}: {said} passages, recounted {counted[term]}"
    wanted = snapshot.manifest.counters.get("passage_terms", length)
    if wanted != length:
        yield "count", "passages", f"{length} terms in all, the manifest counts {wanted}"


def _indexes(snapshot: Snapshot) -> Iterator[Broken]:
    """Rows spread over each table are found through each of its indexes, through full text by their
    rarest term."""
    seen: Counter[str] = Counter()
    for table in FULL_TEXT:
        for batch in snapshot.batches(table, [FULL_TEXT[table]]):
            for text in batch[FULL_TEXT[table]].to_pylist():
                seen.update({f"{table} {term}" for term in text.split()})
    for table, column in ((name, column) for name in TABLES for column in SCALAR[name]):
        values = sorted(set(snapshot.rows(table, columns=[column])[column].to_pylist()))
        probes = values[:: max(1, len(values) // PROBES)]
        worded = table in FULL_TEXT and column == "id"
        columns = [column, FULL_TEXT[table]] if worded else [column]
        rows = snapshot.by_key(table, probes, column, columns).to_pylist()
        for value in sorted(set(probes) - {row[column] for row in rows}):
            yield "index", table, f"{value} is not found by its {column}"
        for row in rows if worded else ():
            terms = [(seen[f"{table} {term}"], term) for term in row[FULL_TEXT[table]].split()]
            if terms:
                count, rarest = min(terms)
                found = snapshot.full_text(table, [rarest], limit=count + 10, columns=["id"])
                if row["id"] not in found["id"].to_pylist():
                    yield "index", table, f"{row['id']} is not found by its term {rarest!r}"


def _dangling(table: str, pairs: Iterable[tuple[str, str]], there: set[str]) -> Iterator[Broken]:
    for id, other in pairs:
        if other not in there:
            yield "dangling", table, f"{id} names {other}, which is not there"


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + TEXTS] for start in range(0, len(values), TEXTS))
