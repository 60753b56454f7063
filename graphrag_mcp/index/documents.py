"""The first commit of a run: documents, text units, passages, mentions and their merge into the
graph.

A unit's id is a hash of the document's uri and the unit's own text, so text that did not change
keeps its id, alias and names wherever it has moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index import communities_stage, plugin
from graphrag_mcp.index.derive import DocumentRows
from graphrag_mcp.index.extract import UnitNames
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.imported import segments as import_segments
from graphrag_mcp.index.merge import merge
from graphrag_mcp.index.run import Row, Run, commit_draft
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store.schema import DOCUMENT_LOG, TABLES
from graphrag_mcp.store.segments import DOCUMENTS, append
from graphrag_mcp.store.tables import Change, Snapshot, notes_of, values_of
from graphrag_mcp.text.terms import content_id

if TYPE_CHECKING:
    from graphrag_mcp.index.units import Reading

# Passages of documents of plug-ins that count as one in the size of a batch: the last batch links all of
# them, so that others save no memory, and what they merge is merged again.
AS_ONE = 10


@dataclass
class Batch:
    """Edits of one commit: rows to write and what they replace."""

    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    tables: dict[str, list[Row]] = field(default_factory=dict)
    size: float = 0.0  # in passages
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    readings: dict[str, Reading] = field(default_factory=dict)  # units that a model is reading
    # units that one should read and no one can -> uri
    unread: dict[str, str] = field(default_factory=dict)
    imports: list[Row] = field(default_factory=list)  # for the log of imports
    notes: set[str] = field(default_factory=set)  # ids of document rows that are notes

    def add(self, rows: DocumentRows) -> None:
        for name, found in rows.tables.items():
            self.tables.setdefault(name, []).extend(found)
        self.size += len(rows.passages) / (AS_ONE if rows.plugin else 1)
        self.fresh |= rows.fresh
        self.kept |= rows.kept
        self.notes |= {rows.document["id"]} if rows.note else set()

    def only_notes(self, snapshot: Snapshot | None) -> bool:
        """Are all documents that come and go notes, so that the graph and the topics stay?"""
        if any(row["id"] not in self.notes for row in self.tables.get("documents", ())):
            return False
        before: frozenset[str] = notes_of(snapshot) if snapshot is not None and self.gone else frozenset()
        return self.gone <= before

    def ask(self, run: Run, document: Document, rows: DocumentRows) -> None:
        """Have the new text units of a document read by a model."""
        from graphrag_mcp.index.units import Context, begin

        context = Context(document.uri, document.title, document.text, document.metadata)
        starts = {row["id"]: row["char_start"] for row in rows.units}
        for id, unit in rows.fresh.items():
            reading = begin(run.models.asker, run.models.extract, document.uri, unit, context.line(starts[id]))
            if reading is None:
                self.unread[id] = document.uri
            else:
                self.readings[id] = reading


def commit_batch(
    run: Run, sources: Mapping[str, Any], batch: Batch, numbers: dict[str, int], last: bool = False
) -> None:
    """Everything of one batch becomes visible at once, or not at all.

    What no model has a part in is written first, while its answers are still on their way."""
    snapshot = run.snapshot_before()
    topics = not batch.only_notes(snapshot)
    with run.stage("terms"):
        old_units, old_passages = _replaced(snapshot, batch.gone)
        term_change, moved = _terms(snapshot, old_passages, batch.tables.get("passages", []))
    gone = {"documents": batch.gone, "text_units": old_units, "passages": old_passages}
    with run.stage("write"):
        segments = _originals(run, batch)
        changes = {"terms": term_change}
        for name in (*gone, "places", "links"):
            rows = batch.tables.pop(name, [])  # of a large text they are a third of the memory
            if name in gone:
                moved[name] += len(rows) - len(gone[name])
            if rows or name in gone or name in run.draft.tables:
                removed = gone.get(name, batch.gone)
                changes[name] = Change(sorted(removed), graph_to_table(name, rows))
        changes |= _without_summaries(snapshot, batch.gone, moved)
        run.write(changes)
        del term_change, changes
    if last and topics and run.imports is None:  # an import groups texts by what they name
        communities_stage.begin_topics(run)
    if last:
        communities_stage.ask_vectors(run, "passages")
    with run.stage("merge"):
        changes = _merged(run, snapshot, batch, set(old_units) - batch.kept, numbers, last, moved)
    with run.stage("write"):
        run.write(changes)
        segments = [*run.draft.segments, *segments]
        commit_draft(run, sources, segments, numbers, moved, topics)


def _originals(run: Run, batch: Batch) -> list[Row]:
    """Write the documents of a batch into the log of originals; the entries for the manifest."""
    segments = import_segments(run.folder, batch.imports)
    if batch.log:
        log = pa.Table.from_pylist(batch.log, DOCUMENT_LOG)
        segments.insert(0, append(run.folder, DOCUMENTS, log))
    return segments


def _merged(
    run: Run,
    snapshot: Snapshot | None,
    batch: Batch,
    gone_units: set[str],
    numbers: dict[str, int],
    last: bool,
    moved: Counter[str],
) -> dict[str, Change]:
    """Changes of the graph and of what models said, whose answers it waits for; `moved` gains
    counters."""
    read: dict[str, list[Row]] = {"pending": [], "losses": []}
    if batch.readings or batch.unread:
        from graphrag_mcp.index.units import settle

        read = settle(run.models.asker, batch.readings, batch.fresh, batch.unread, run.take)
    run.losses += read["losses"]
    units = gone_units | batch.fresh.keys()
    of_batch = set(gone_units)
    linked = _linked(run, snapshot, batch, gone_units, last)
    # The summaries of a document whose text units have new links are read again from the reply cache, and correct
    # the names again (summarised.py).
    linked |= _without_summaries(snapshot, _documents_of(snapshot, gone_units - of_batch) - batch.gone, moved)
    merged = merge(snapshot, gone_units, batch.fresh, numbers, run.edits)
    batch.fresh = {}
    moved.update(entities=merged.entities, relationships=merged.relationships)
    run.capped |= merged.capped
    changes, there = {**merged.changes, **linked}, run.draft.tables
    for name in ("pending", "losses"):
        if read[name] or name in there:
            removed = {f"extract:{unit}" for unit in units}
            removed.update(row["id"] for row in read[name])
            changes[name] = Change(sorted(removed), graph_to_table(name, read[name]))
    return changes


def _linked(run: Run, snapshot: Snapshot | None, batch: Batch, gone_units: set[str], last: bool) -> dict[str, Change]:
    """The changes of the tables of plug-ins. With the `last` batch the facts of all documents are
    linked; text units of other documents whose names or statements change join the batch and
    `gone_units`."""
    changes: dict[str, Change] = {}
    for name, plug_in in plugin.plugins().items():
        rows, removed = batch.tables.get(name, []), set(batch.gone)
        if not rows and (snapshot is None or name not in snapshot.manifest.tables):
            continue
        stored = snapshot.rows(name).to_pylist() if snapshot is not None else []
        left = [row for row in stored if row["id"] not in removed]
        if last:
            every, parameter = [*left, *rows], f"{name} linked"
            # After another batch, or a run that ended before its last one, nothing is linked.
            linked = run.parameters.get(parameter) == _ids_of(stored)
            before = [row for row in stored if row["id"] in removed] if linked else None
            done = plug_in.link(every, before, snapshot, batch.fresh)
            run.parameters[parameter] = _ids_of(every)
            gone_units |= done.units
            again = {row["id"] for row in done.rows}
            rows = [*(row for row in rows if row["id"] not in again), *done.rows]
            removed |= again
        changes[name] = Change(sorted(removed), graph_to_table(name, rows))
    return changes


def _documents_of(snapshot: Snapshot | None, units: set[str]) -> set[str]:
    """The documents of these stored text units."""
    if snapshot is None or not units:
        return set()
    return {*values_of(snapshot.by_key("text_units", sorted(units), "id", ["document_id"])["document_id"])}


def _without_summaries(snapshot: Snapshot | None, documents: set[str], moved: Counter[str]) -> dict[str, Change]:
    """The change that drops the summaries of these documents; none where they have none, since a table of which
    nothing is deleted has another version too, by which all topics would be stale. `moved` is advanced."""
    if snapshot is None or not documents:
        return {}
    rows = snapshot.by_key("summaries", sorted(documents), "document_id", ["document_id", "place"])
    moved["summarised"] -= sum(place == 0 for place in values_of(rows["place"]))
    return {"summaries": Change(sorted(documents))} if rows.num_rows else {}


def _ids_of(rows: Sequence[Row]) -> str:
    return content_id(*sorted(row["id"] for row in rows))


def _replaced(snapshot: Snapshot | None, documents: set[str]) -> tuple[list[str], dict[str, Row]]:
    """Ids of the text units, and the passages by id, that the documents had."""
    if snapshot is None or not documents:
        return [], {}
    ids, columns = sorted(documents), ["id", "terms", "n_terms"]
    units = values_of(snapshot.by_key("text_units", ids, "document_id", ["id"])["id"])
    passages = snapshot.by_key("passages", ids, "document_id", columns).to_pylist()
    return units, {row["id"]: row for row in passages}


def _terms(snapshot: Snapshot | None, old: Mapping[str, Row], new: list[Row]) -> tuple[Change, Counter[str]]:
    """Terms with how many passages hold each, where that moves; and how the total length moves."""
    rows = _counted(new)
    known: list[str] = []
    if snapshot is not None and (new or old):
        removed = _counted(list(old.values()))
        removed = removed.set_column(1, "passages", pc.negate(removed["passages"]))
        words = pa.chunked_array([*rows["term"].chunks, *removed["term"].chunks], pa.string()).unique()
        before = snapshot.by_key("terms", values_of(words), "term", ["term", "passages"])
        known = values_of(before["term"])
        summed = pa.concat_tables([rows, removed, before]).group_by("term")
        rows = summed.aggregate([("passages", "sum")]).rename_columns(TABLES["terms"].names)
        rows = rows.filter(pc.greater(rows["passages"], pa.scalar(0))).sort_by("term")
    length = sum(row["n_terms"] for row in new) - sum(row["n_terms"] for row in old.values())
    return Change(known, rows), Counter({"passage_terms": length})


def _counted(passages: Sequence[Row]) -> pa.Table:
    """In how many of the passages each term is, in order of term. In Arrow: all terms of a large
    text may be different, and Python would take ten times as much for each."""
    words = [
        pa.array([term for row in batch for term in set(row["terms"].split())], pa.string())
        for batch in (passages[at : at + 500] for at in range(0, len(passages), 500))
    ]
    found = pc.value_counts(pa.chunked_array(words, pa.string()))
    return pa.table(found.flatten(), schema=TABLES["terms"]).sort_by("term")
