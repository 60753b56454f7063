"""The first commit: what a batch of documents writes into the next generation.

Takes the run of a call and a batch of rows; gives a new manifest in `run.manifest`. Everything of a batch becomes
visible at once, or nothing. Knows no files and no formats, and no communities (finish.py).
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index import descriptions
from graphrag_mcp.index.claims import Claim
from graphrag_mcp.index.graph import merge, to_table
from graphrag_mcp.index.imported import ImportLog
from graphrag_mcp.index.imported import segments as import_segments
from graphrag_mcp.index.mentions import UnitNames
from graphrag_mcp.index.model_units import Reading, begin, claims_as_rows, pending, settle
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.rows import DocumentRows, Names
from graphrag_mcp.index.vectors import Vectors, forgotten
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.edits import Overlay
from graphrag_mcp.store.manifest import Manifest, commit
from graphrag_mcp.store.schema import DOCUMENT_LOG
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.store.truth import DOCUMENTS, append
from graphrag_mcp.text import normalise_name

Row = dict[str, Any]
T = TypeVar("T")
Progress = Callable[[str, int, int], None]


class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


@dataclass
class Run:
    """One call while it runs: where it writes, what it has counted, how long each stage took (CPU seconds)."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    touched: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)  # names of which claims came or went
    first_generation: int = 0  # the generation this call found
    parameters: dict[str, Any] = field(default_factory=dict)  # what the next commit says its rows follow
    models: Models | None = None
    redo: dict[str, set[str]] = field(default_factory=dict)  # uri -> units that a model is asked about once more
    degraded: list[dict[str, str]] = field(default_factory=list)  # what was asked for in this call and not had
    vectors: Vectors | None = None
    edits: Overlay = field(default_factory=Overlay)  # what was changed by hand, as of this call
    imports: ImportLog | None = None  # where something was ever imported
    asked: descriptions.Asked = field(default_factory=dict)  # long descriptions that are being made one already
    brought: list[Any] = field(default_factory=list)  # edits of the documents that this call imports
    apart: list[Row] = field(default_factory=list)  # rows for the log of imports that belong to no document
    _snapshot: Snapshot | None = None

    def take(self, future: Future[T]) -> T:
        """The result of work on the asker's loop, looking now and then whether the call was cancelled meanwhile."""
        while True:
            try:
                return future.result(0.25)
            except TimeoutError:
                if future.done():
                    return future.result()
                if self.cancelled():
                    raise Cancelled from None

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled

    def snapshot(self) -> Snapshot | None:
        """The generation that this call builds upon, opened once."""
        if self.manifest is None:
            return None
        if self._snapshot is None or self._snapshot.manifest is not self.manifest:
            self._snapshot = self.opened(self.manifest)
        return self._snapshot

    # ---- whatever leaves a trace: a run that is only rehearsed has other ways (estimate.py) ----

    writes: ClassVar[bool] = True

    def opened(self, manifest: Manifest) -> Snapshot:
        return tables.open_snapshot(self.folder, manifest)

    def begin(self, uri: str, id: str, unit: Names) -> Reading | None:
        """Have a text unit read; None when nobody could."""
        return begin(self.models.reader, uri, id, unit.text, lambda: unit.found()[0])

    def originals(self, batch: Batch) -> list[Row]:
        """Write the documents of a batch into the log of originals; the entries for the manifest."""
        segments = []
        if batch.log:
            segments.append(append(self.folder, DOCUMENTS, pa.Table.from_pylist(batch.log, DOCUMENT_LOG)))
        return segments + (import_segments(self.folder, batch.imports) if batch.imports else [])

    def apply(self, base: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        """Write these changes beside what `base` names; versions for the next manifest. NOT a commit."""
        return tables.apply(self.folder, base, changes)

    def commit(self, manifest: Manifest) -> None:
        """From now on this is the generation."""
        self.manifest = manifest
        commit(self.folder, manifest)

    def compacted(self) -> dict[str, int] | None:
        return tables.compact(self.folder, self.manifest)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began


@dataclass
class Batch:
    """Edits of one commit: rows to write and what they replace."""

    opened: list[DocumentRows] = field(default_factory=list)  # documents that are cut and not yet rows
    size: int = 0  # passages, those of `opened` included
    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    documents: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    readings: dict[str, Reading] = field(default_factory=dict)  # units that a model is reading
    unread: dict[str, str] = field(default_factory=dict)  # units that one should read and nobody can -> uri
    imports: list[Row] = field(default_factory=list)  # for the log of imports
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units


def documents(
    run: Run, sources: Mapping[str, Any], batch: Batch, numbers: dict[str, int], last: bool = False
) -> None:
    """Everything of one batch becomes visible at once, or not at all.

    What no model has a part in is written first, while its answers are still on their way; and when the `last` batch is
    written, long descriptions are asked for.
    """
    snapshot = run.snapshot()
    with run.stage("terms"):
        old_units, old_passages = _replaced(snapshot, batch.gone)
        term_change, moved = _terms(snapshot, old_passages, batch.passages)
    with run.stage("write"):
        segments = run.originals(batch)
        first = {
            "terms": term_change,
            "documents": Change(sorted(batch.gone), to_table("documents", batch.documents)),
            "text_units": Change(sorted(old_units), to_table("text_units", batch.units)),
            "passages": Change(sorted(old_passages), to_table("passages", batch.passages)),
        }
        if run.vectors is not None:
            run.vectors.want("passages", first["passages"].rows, old_passages)
            first |= dict(run.vectors.changes())
        versions = run.apply(run.manifest, first)
    gone_units = set(old_units) - batch.kept
    with run.stage("merge"):
        read = _read(run, snapshot, batch, gone_units, numbers)
        is_long = run.models.is_long if run.models else None
        merged = merge(snapshot, gone_units, batch.fresh, numbers, is_long, run.edits)
        if run.models is not None and run.models.describe is not None:
            merged.long |= descriptions.retitled(snapshot, merged.changes, run.models, run.edits)
        for id, (kind, _) in sorted(merged.long.items()):
            read["pending"].append(pending(kind, id, "", "not yet asked"))
        if last and run.models is not None and run.models.asker.on:
            run.asked = descriptions.early(run.models, merged.long, merged.changes, snapshot, run.edits)
        changes = {**merged.changes, **_side_tables(run, gone_units | batch.fresh.keys(), read)}
        if run.vectors is not None:
            changes |= forgotten(changes, versions)
    moved.update(
        documents=len(batch.documents) - len(batch.gone), text_units=len(batch.units) - len(old_units),
        passages=len(batch.passages) - len(old_passages), entities=merged.entities, relationships=merged.relationships,
    )  # fmt: skip
    run.touched |= merged.touched
    if run.vectors is not None:  # their embedding fills the time of writing, relationships are named by what is written
        _want(run, "entities", changes["entities"], merged.long)
    with run.stage("write"):
        base = run.manifest or Manifest(corpus=run.folder.name)
        versions = run.apply(replace(base, tables=versions), changes)
        swap(run, sources, versions, segments, numbers, moved)
    if run.vectors is not None:
        _want(run, "relationships", changes["relationships"], merged.long)


def _want(run: Run, table: str, change: Change, long: Collection[str]) -> None:
    """Have the rows embedded, but for those whose long descriptions are made one first."""
    rows = change.rows
    short = rows.filter(pc.invert(pc.is_in(rows["id"], pa.array(list(long), pa.string()))))
    run.vectors.want(table, short, change.gone, run.snapshot())


def _read(
    run: Run, snapshot: Snapshot | None, batch: Batch, gone_units: set[str], numbers: dict[str, int]
) -> dict[str, list[Row]]:
    """Wait for the model's reading of the batch; rows of claims and of what is still to be asked."""
    before = _claims(snapshot, gone_units)
    known = dict(zip(before["id"].to_pylist(), before["n"].to_pylist(), strict=True))
    given = claims_as_rows(batch.claims, known, numbers) if batch.claims else []
    read: dict[str, list[Row]] = {"claims": given, "pending": []}
    if run.models is not None and (batch.readings or batch.unread):
        settled = settle(run.models.reader, batch.readings, batch.fresh, batch.unread, known, numbers, run.take)
        read = {"claims": settled.claims + read["claims"], "pending": settled.pending}
    # A unit that is only read again keeps its place and perhaps its names: then nothing else says what changed.
    subjects = [*before["subject"].to_pylist(), *(str(row["subject"]) for row in read["claims"])]
    run.claimed.update(map(normalise_name, subjects))
    return read


def _claims(snapshot: Snapshot | None, units: Collection[str]) -> pa.Table:
    columns = ["id", "n", "subject"]
    if snapshot is None:
        return to_table("claims", []).select(columns)
    return snapshot.by_key("claims", sorted(units), "text_unit_id", columns)


def _side_tables(run: Run, units: set[str], read: Mapping[str, list[Row]]) -> dict[str, Change]:
    """Changes of claims and of the list of what is pending; nothing where there was and is none."""
    there = run.manifest.tables if run.manifest else {}
    changes = {}
    if read["claims"] or "claims" in there:
        changes["claims"] = Change(sorted(units), to_table("claims", read["claims"]))
    if read["pending"] or "pending" in there:
        gone = {f"{kind}:{unit}" for unit in units for kind in ("extract", "claims")}
        gone.update(row["id"] for row in read["pending"])
        changes["pending"] = Change(sorted(gone), to_table("pending", read["pending"]))
    return changes


def _replaced(snapshot: Snapshot | None, documents: set[str]) -> tuple[list[str], dict[str, Row]]:
    """Ids of the text units, and the passages by id, that the documents had."""
    if snapshot is None or not documents:
        return [], {}
    units = snapshot.by_key("text_units", sorted(documents), "document_id", ["id"]).column("id").to_pylist()
    passages = snapshot.by_key("passages", sorted(documents), "document_id", ["id", "terms", "n_terms"]).to_pylist()
    return units, {row["id"]: row for row in passages}


def _terms(snapshot: Snapshot | None, old: Mapping[str, Row], new: list[Row]) -> tuple[Change, Counter[str]]:
    """How many passages hold each term, for the terms whose number moves; and by how much the total length moves."""
    moved: Counter[str] = Counter()
    for row in new:
        moved.update(set(row["terms"].split()))
    for row in old.values():
        moved.subtract(set(row["terms"].split()))
    moved = Counter({term: by for term, by in moved.items() if by})
    before: dict[str, int] = {}
    if snapshot is not None and moved:
        known = snapshot.by_key("terms", sorted(moved), "term", ["term", "passages"])
        before = dict(zip(known.column("term").to_pylist(), known.column("passages").to_pylist(), strict=True))
    after = {term: before.get(term, 0) + by for term, by in sorted(moved.items())}
    rows = [{"term": term, "passages": count} for term, count in after.items() if count > 0]
    length = sum(row["n_terms"] for row in new) - sum(row["n_terms"] for row in old.values())
    return Change(sorted(before), to_table("terms", rows)), Counter({"passage_terms": length})


def swap(
    run: Run,
    sources: Mapping[str, Any],
    versions: Mapping[str, int],
    segments: list[Row],
    numbers: Mapping[str, int],
    moved: Counter[str],
) -> None:
    old = run.manifest or Manifest(corpus=run.folder.name)
    counters = Counter(old.counters)
    counters.update(moved)
    run.commit(replace(
        old, generation=old.generation + 1, created=now(), segments=[*old.segments, *segments],
        tables={**old.tables, **versions}, counters=dict(counters), next=dict(numbers),
        sources=dict(sources), parameters=run.parameters,
        stale=["communities"] if run.touched or run.claimed or old.stale else [],
    ))  # fmt: skip


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
