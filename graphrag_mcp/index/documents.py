"""The first commit of a run: documents, text units, passages, mentions and their merge into the
graph.

A unit's id is a hash of the document's uri and the unit's own text, so text that did not change
keeps its id, alias and names wherever it has moved."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp import plugins
from graphrag_mcp.executors import Executor, InProcess, executor
from graphrag_mcp.index import descriptions, plugin
from graphrag_mcp.index.claims import Claim
from graphrag_mcp.index.derive import SIZES, DocumentRows, Row
from graphrag_mcp.index.extract import UnitNames
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.imported import GRAPHS, ImportLog
from graphrag_mcp.index.imported import segments as import_segments
from graphrag_mcp.index.merge import merge
from graphrag_mcp.index.units import Context, Reading, begin, claim_rows, pending, settle
from graphrag_mcp.names import extract
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import tables
from graphrag_mcp.store.edit_log import Overlay, renamed
from graphrag_mcp.store.leases import Correction
from graphrag_mcp.store.manifest import DERIVATION, FORMAT, Manifest, commit
from graphrag_mcp.store.schema import DOCUMENT_LOG, TABLES, VECTORS
from graphrag_mcp.store.segments import DOCUMENTS, append, live_documents
from graphrag_mcp.store.tables import Change, Snapshot, notes_of, rows_of, values_of
from graphrag_mcp.text.terms import content_id

if TYPE_CHECKING:
    from graphrag_mcp.index.models import Models


# ---- what rows depend on ------------------------------------------------------------------------


def of_this_release(folder: Path, manifest: Manifest | None) -> Manifest | None:
    """A generation whose tables have older columns goes on from its originals alone: everything is
    derived again. So does one with edits of names that were normalised otherwise: no document takes
    away what these made without any."""
    if manifest is None:
        return None
    if manifest.format == FORMAT and not (
        manifest.of_another_release() and renamed(folder, manifest)
    ):
        return manifest
    counters = {"documents": live_documents(folder, manifest).num_rows}
    kept = manifest.readers()
    return replace(manifest, format=FORMAT, tables={}, counters=counters, parameters=kept, stale=[])


def parameters(settings: Settings, chosen: Models) -> dict[str, Any]:
    """What derived rows depend on besides the documents; another value derives all again."""
    named = chosen.parameters()
    return {
        "derivation": DERIVATION,
        "extractor": extract.VERSION,
        **plugins.parameters(),
        **{name: getattr(settings, name) for name in SIZES},
        **{name: named[name] for name in ("extraction", "claims", "descriptions")},
    }


# ---- a run --------------------------------------------------------------------------------------

T = TypeVar("T")
Progress = Callable[[str, int, int], None]


class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


@dataclass
class Run:
    """One call while it runs: where it writes, what it counted, CPU seconds of each stage."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    # text units with names or pairs that were left out
    capped: set[str] = field(default_factory=set)
    began: int = 0  # the first generation that this call commits
    # what the next commit says its rows follow
    parameters: dict[str, Any] = field(default_factory=dict)
    models: Models = None  # type: ignore[assignment]  # chosen before anything is read
    # uri -> units that a model is asked about once more
    redo: dict[str, set[str]] = field(default_factory=dict)
    losses: list[Row] = field(default_factory=list)  # of the replies that this call read
    # questions whose answer was replaced after it had been merged
    corrections: list[Correction] = field(default_factory=list)
    edits: Overlay = field(default_factory=Overlay)  # what was changed by hand, as of this call
    imports: ImportLog | None = None  # where something was ever imported
    # edits of the documents that this call imports
    brought: list[Any] = field(default_factory=list)
    # rows for the log of imports that belong to no document
    apart: list[Row] = field(default_factory=list)
    executor: Executor = field(default_factory=InProcess)
    _draft: Manifest | None = None  # with the tables that were written since the last commit
    _snapshot: Snapshot | None = None

    def take(self, future: Future[T]) -> T:
        """The result of work on the asker's loop; looks now and then for a cancelled call."""
        while True:
            try:
                return future.result(0.25)
            except TimeoutError:
                if future.done():
                    return future.result()
                self.check()

    def spread(self, items: int) -> Executor:
        """Who computes what follows from so many documents alone."""
        if items and isinstance(self.executor, InProcess):
            of = self.settings
            self.executor = executor(of.engine, of.processes, of.engine_address, items)
        return self.executor

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled

    @property
    def committed(self) -> Manifest:
        """The last generation. Raises LookupError before the first."""
        if self.manifest is None:
            raise LookupError("nothing is committed yet")
        return self.manifest

    def snapshot(self) -> Snapshot:
        """The tables of the last generation. Raises LookupError before the first."""
        manifest = self.committed
        if self._snapshot is None or self._snapshot.manifest is not manifest:
            self._snapshot = self.opened(manifest)
        return self._snapshot

    def snapshot_before(self) -> Snapshot | None:
        """The tables of the last generation, None before the first."""
        return self.snapshot() if self.manifest is not None else None

    @property
    def draft(self) -> Manifest:
        """The generation to come, as far as it is written."""
        return self._draft or self.manifest or Manifest(corpus=self.folder.name)

    def draft_snapshot(self) -> Snapshot:
        return self.opened(self.draft)

    def write(self, changes: Mapping[str, Change]) -> None:
        """Write these changes, and those of vectors, into the draft. NOT a commit."""
        draft = self.draft
        changes = {**changes, **forgotten(changes, draft.tables)}
        self._draft = replace(draft, tables=self.apply(draft, changes))

    def opened(self, manifest: Manifest) -> Snapshot:
        return Snapshot(self.folder, manifest)

    def ask(self, uri: str, unit: UnitNames, context: str) -> Reading | None:
        """Have a text unit read; None when no one could. `context`: the line on its document."""
        return begin(self.models.reader, uri, unit, context)

    def originals(self, batch: Batch) -> list[Row]:
        """Write the documents of a batch into the log of originals; the entries for the manifest."""
        segments = import_segments(self.folder, batch.imports)
        if batch.log:
            log = pa.Table.from_pylist(batch.log, DOCUMENT_LOG)
            segments.insert(0, append(self.folder, DOCUMENTS, log))
        return segments

    def apply(self, base: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        """Write these changes beside what `base` names; the versions of all tables then."""
        return tables.apply(self.folder, base, changes)

    def commit(self, manifest: Manifest) -> None:
        """From now on this is the generation."""
        self._draft = None
        self.manifest = manifest = replace(manifest, began=self.began)
        commit(self.folder, manifest)

    def compacted(self, idle: bool = False) -> dict[str, int] | None:
        return tables.compact(self.folder, self.committed, idle=idle)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began


def forgotten(changes: Mapping[str, Change], named: Mapping[str, int]) -> dict[str, Change]:
    """The vectors of the rows that these changes take away, of the tables that there are."""
    return {
        vectors: Change(changes[table].gone)
        for table, vectors in VECTORS.items()
        if table in changes and changes[table].gone and vectors in named
    }


# ---- the commit of a batch ----------------------------------------------------------------------


# Passages of documents of plug-ins that count as one in the size of a batch: the last batch links all of
# them, so that others save no memory, and what they merge is merged again.
AS_ONE = 10


@dataclass
class Batch:
    """Edits of one commit: rows to write and what they replace."""

    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    documents: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    size: float = 0.0  # in passages
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    readings: dict[str, Reading] = field(default_factory=dict)  # units that a model is reading
    # units that one should read and no one can -> uri
    unread: dict[str, str] = field(default_factory=dict)
    imports: list[Row] = field(default_factory=list)  # for the log of imports
    facts: dict[str, list[Row]] = field(default_factory=dict)  # of the tables of plug-ins
    places: list[Row] = field(default_factory=list)
    links: list[Row] = field(default_factory=list)
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units
    notes: set[str] = field(default_factory=set)  # ids of document rows that are notes

    def add(self, rows: DocumentRows) -> None:
        self.documents.append(rows.document)
        self.units += rows.units
        self.passages += rows.passages
        self.size += len(rows.passages) / (AS_ONE if rows.plugin else 1)
        self.fresh |= rows.fresh
        self.kept |= rows.kept
        self.claims |= rows.claims
        for name, row in rows.facts.items():
            self.facts.setdefault(name, []).append(row)
        self.places += rows.places
        self.links += rows.links
        self.notes |= {rows.document["id"]} if rows.note else set()

    def only_notes(self, snapshot: Snapshot | None) -> bool:
        """Are all documents that come and go notes, so that the graph and the topics stay?"""
        if any(row["id"] not in self.notes for row in self.documents):
            return False
        before: frozenset[str] = (
            notes_of(snapshot) if snapshot is not None and self.gone else frozenset()
        )
        return self.gone <= before

    def ask(self, run: Run, document: Document, rows: DocumentRows) -> None:
        """Have the new text units of a document read by a model."""
        context = Context(document.uri, document.title, document.text, document.metadata)
        starts = {row["id"]: row["char_start"] for row in rows.units}
        for id, unit in rows.fresh.items():
            reading = run.ask(document.uri, unit, context.line(starts[id]))
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
        term_change, moved = _terms(snapshot, old_passages, batch.passages)
    moved.update(
        documents=len(batch.documents) - len(batch.gone),
        text_units=len(batch.units) - len(old_units),
        passages=len(batch.passages) - len(old_passages),
    )
    with run.stage("write"):
        segments = run.originals(batch)
        changes = {"terms": term_change}
        for name, gone, rows in (
            ("documents", batch.gone, batch.documents),
            ("text_units", old_units, batch.units),
            ("passages", old_passages, batch.passages),
        ):
            changes[name] = Change(sorted(gone), graph_to_table(name, rows))
        if snapshot is not None and "summaries" in run.draft.tables:
            changes["summaries"] = Change(sorted(batch.gone))
            moved["summarised"] -= len(summarised(snapshot, sorted(batch.gone)))
        for name, rows in (("places", batch.places), ("links", batch.links)):
            if rows or name in run.draft.tables:
                changes[name] = Change(sorted(batch.gone), graph_to_table(name, rows))
        run.write(changes)
        del term_change, changes, rows
        batch.units, batch.passages = [], []  # of a large text they are a third of the memory
    with run.stage("merge"):
        changes = _merged(run, snapshot, batch, set(old_units) - batch.kept, numbers, last, moved)
    with run.stage("write"):
        run.write(changes)
        commit_draft(run, sources, segments, numbers, moved, topics)


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
    known: dict[str, int] = {}  # claims of these units: id -> n
    if snapshot is not None:
        before = snapshot.by_key("claims", sorted(gone_units), "text_unit_id", ["id", "n"])
        known = dict(rows_of(before))
    read = settle(
        run.models.reader, batch.readings, batch.fresh, batch.unread, known, numbers, run.take
    )
    run.losses += read["losses"]
    for unit, claims in batch.claims.items():
        read["claims"] += claim_rows(unit, claims, known, numbers)
    units = gone_units | batch.fresh.keys()
    linked = _linked(run, snapshot, batch, gone_units, last)
    merged = merge(snapshot, gone_units, batch.fresh, numbers, run.models.is_long, run.edits)
    batch.fresh = {}
    if run.models.describe is not None:
        merged.long |= descriptions.retitled(snapshot, merged.changes, run.models, run.edits)
    for id in sorted(merged.long):
        read["pending"].append(pending(merged.long[id], id, "", "not yet asked"))
    moved.update(entities=merged.entities, relationships=merged.relationships)
    run.capped |= merged.capped
    changes, there = {**merged.changes, **linked}, run.draft.tables
    if read["claims"] or "claims" in there:
        changes["claims"] = Change(sorted(units), graph_to_table("claims", read["claims"]))
    for name in ("pending", "losses"):
        if read[name] or name in there:
            gone = {f"{kind}:{unit}" for unit in units for kind in ("extract", "claims")}
            gone.update(row["id"] for row in read[name])
            changes[name] = Change(sorted(gone), graph_to_table(name, read[name]))
    return changes


def _linked(
    run: Run, snapshot: Snapshot | None, batch: Batch, gone_units: set[str], last: bool
) -> dict[str, Change]:
    """The changes of the tables of plug-ins. With the `last` batch the facts of all documents are
    linked; text units of other documents whose names or statements change join the batch and
    `gone_units`."""
    changes: dict[str, Change] = {}
    for name, one in plugin.plugins().items():
        rows, gone = batch.facts.get(name, []), set(batch.gone)
        if not rows and (snapshot is None or name not in snapshot.manifest.tables):
            continue
        stored = snapshot.rows(name).to_pylist() if snapshot is not None else []
        left = [row for row in stored if row["id"] not in gone]
        if last:
            every, parameter = [*left, *rows], f"{name} linked"
            # After another batch, or a run that ended before its last one, nothing is linked.
            linked = run.parameters.get(parameter) == _ids_of(stored)
            before = [row for row in stored if row["id"] in gone] if linked else None
            done = one.link(every, before, snapshot, batch.fresh)
            run.parameters[parameter] = _ids_of(every)
            gone_units |= done.units
            again = {row["id"] for row in done.rows}
            rows = [*(row for row in rows if row["id"] not in again), *done.rows]
            gone |= again
        changes[name] = Change(sorted(gone), graph_to_table(name, rows))
    return changes


def _ids_of(rows: Sequence[Row]) -> str:
    return content_id(*sorted(row["id"] for row in rows))


def summarised(snapshot: Snapshot, documents: Sequence[str]) -> set[str]:
    """Those of these documents that have a summary of their whole text."""
    rows = snapshot.by_key("summaries", list(documents), "document_id", ["document_id", "place"])
    return {id for id, place in rows_of(rows) if place == 0}


def _replaced(snapshot: Snapshot | None, documents: set[str]) -> tuple[list[str], dict[str, Row]]:
    """Ids of the text units, and the passages by id, that the documents had."""
    if snapshot is None or not documents:
        return [], {}
    ids, columns = sorted(documents), ["id", "terms", "n_terms"]
    units = values_of(snapshot.by_key("text_units", ids, "document_id", ["id"])["id"])
    passages = snapshot.by_key("passages", ids, "document_id", columns).to_pylist()
    return units, {row["id"]: row for row in passages}


def _terms(
    snapshot: Snapshot | None, old: Mapping[str, Row], new: list[Row]
) -> tuple[Change, Counter[str]]:
    """Terms with how many passages hold each, where that moves; and how the total length moves."""
    rows = _counted(new)
    known: list[str] = []
    if snapshot is not None and (new or old):
        gone = _counted(list(old.values()))
        gone = gone.set_column(1, "passages", pc.negate(gone["passages"]))
        words = pa.chunked_array([*rows["term"].chunks, *gone["term"].chunks], pa.string()).unique()
        before = snapshot.by_key("terms", values_of(words), "term", ["term", "passages"])
        known = values_of(before["term"])
        summed = pa.concat_tables([rows, gone, before]).group_by("term")
        rows = summed.aggregate([("passages", "sum")]).rename_columns(TABLES["terms"].names)
        rows = rows.filter(pc.greater(rows["passages"], pa.scalar(0))).sort_by("term")
    length = sum(row["n_terms"] for row in new) - sum(row["n_terms"] for row in old.values())
    return Change(known, rows), Counter({"passage_terms": length})


def _counted(passages: Sequence[Row]) -> pa.Table:
    """In how many of the passages each term is, in order of term. In Arrow: all terms of a large
    text may be different, and Python would take ten times as much for each."""
    words = [
        pa.array([term for row in some for term in set(row["terms"].split())], pa.string())
        for some in (passages[at : at + 500] for at in range(0, len(passages), 500))
    ]
    found = pc.value_counts(pa.chunked_array(words, pa.string()))
    return pa.table(found.flatten(), schema=TABLES["terms"]).sort_by("term")


def commit_draft(
    run: Run,
    sources: Mapping[str, Any],
    segments: list[Row],
    numbers: Mapping[str, int],
    moved: Mapping[str, int],
    topics: bool = True,
) -> None:
    """Commit what was written. Communities are stale where the texts or the graph are others; without
    `topics` the texts that changed are in none."""
    old = run.manifest or Manifest(corpus=run.folder.name)
    counters = Counter(old.counters)
    counters.update(moved)
    versions = run.draft.tables
    tables_of_graph = ["entities", "relationships", "claims", *(["passages"] if topics else [])]
    if run.models.reports is not None:  # which are written from summaries
        tables_of_graph.append("summaries")
    stale = any(versions.get(name, 0) != old.tables.get(name, 0) for name in tables_of_graph)
    stale |= any(segment["kind"] == GRAPHS for segment in segments)  # of imported communities
    kept = {"communities_generation": old.communities_generation} if stale else {}
    run.commit(
        old.following(
            **kept,
            segments=[*old.segments, *segments],
            tables=dict(versions),
            counters=dict(counters),
            next=dict(numbers),
            sources=dict(sources),
            parameters=run.parameters,
            stale=["communities"] if stale or old.stale else [],
        )
    )
