"""Index: from a request to committed generations.

read -> diff -> chunk -> extract -> resolve -> merge -> commit, in batches of about 2,000 passages; then
communities -> reports -> commit. Takes a corpus folder, a request and settings; gives an `IndexResult`. One call
holds the writer's lock from its first look to its last commit; readers never wait. Blocking: run it in a thread
or a process. Knows nothing of MCP and prints nothing.
"""

from __future__ import annotations

import datetime
import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_mcp import extract
from graphrag_mcp.index import hierarchy
from graphrag_mcp.index import plan as planning
from graphrag_mcp.index import rows as building
from graphrag_mcp.index.chunk import ChunkParams
from graphrag_mcp.index.communities import ClusterParams
from graphrag_mcp.index.graph import merge, to_table
from graphrag_mcp.index.mentions import UnitNames
from graphrag_mcp.index.plan import Edit, Plan
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.manifest import Manifest, commit, read, writer_lock
from graphrag_mcp.store.schema import DOCUMENT_LOG
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.store.truth import DOCUMENTS, append
from graphrag_mcp.types import IndexRequest, IndexResult

# A kill costs at most one batch of work. Larger batches are a little cheaper, smaller ones merge more often.
BATCH_PASSAGES = 2000
LOCK_SECONDS = 3600.0
# Bump when the meaning of stored rows changes: everything is then derived again from the truth.
DERIVATION = 1

Row = dict[str, Any]
Progress = Callable[[str, int, int], None]


class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


@dataclass
class _Run:
    """One call while it runs: where it writes, what it has counted, how long each stage took (CPU seconds)."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    touched: set[str] = field(default_factory=set)
    first_generation: int = 0  # the generation this call found
    parameters: dict[str, Any] = field(default_factory=dict)  # what the next commit says its rows follow
    _snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot | None:
        """The generation that this call builds upon, opened once."""
        if self.manifest is None:
            return None
        if self._snapshot is None or self._snapshot.manifest is not self.manifest:
            self._snapshot = tables.open_snapshot(self.folder, self.manifest)
        return self._snapshot

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began


@dataclass
class _Batch:
    """Edits of one commit: rows to write and what they replace."""

    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    documents: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    old_units: set[str] = field(default_factory=set)
    old_passages: list[Row] = field(default_factory=list)


def _nothing(*_: object) -> None:
    return None


def index_documents(
    folder: Path,
    request: IndexRequest,
    settings: Settings,
    *,
    progress: Progress = _nothing,
    cancelled: Callable[[], bool] = lambda: False,
) -> IndexResult:
    """Bring the corpus in `folder` to what the request's folders, files and texts are.

    Returns counts {added, changed, removed, unchanged}, what was skipped and why, an error per document that could
    not be read, and CPU seconds per stage. Raises GraphRAGError (Busy, BadInput, Damaged, ...).
    """
    if request.dry_run:
        return _estimate(folder, request, settings)
    with writer_lock(folder, LOCK_SECONDS), _few_collections():
        manifest = read(folder)
        run = _Run(folder, settings, manifest, progress, cancelled)
        run.first_generation = manifest.generation if manifest else 0
        with run.stage("read"):
            plan = planning.make(folder, run.manifest, request, settings)
        status = "done"
        try:
            _write_documents(run, plan, request)
            _write_communities(run, request)
        except Cancelled:
            status = "cancelled"
        return _result(run, plan, status)


@contextmanager
def _few_collections() -> Iterator[None]:
    """The collector walks all rows again and again and finds nothing: they hold no cycles. A third of the CPU."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parameters(settings: Settings) -> dict[str, Any]:
    """What the derived rows depend on besides the documents; another value here means deriving everything again."""
    return {
        "derivation": DERIVATION, "extractor": extract.VERSION, "chunk_size": settings.chunk_size,
        "chunk_overlap": settings.chunk_overlap, "chunk_mode": settings.chunk_mode,
        "chunk_separator": settings.chunk_separator, "passage_size": settings.passage_size,
    }  # fmt: skip


def _chunk_params(settings: Settings) -> ChunkParams:
    return ChunkParams(
        settings.chunk_size, settings.chunk_overlap, settings.chunk_mode, settings.chunk_separator, settings.passage_size
    )


def _write_documents(run: _Run, plan: Plan, request: IndexRequest) -> None:
    rederive = run.manifest is not None and run.manifest.parameters != parameters(run.settings)
    run.parameters = run.manifest.parameters if rederive else parameters(run.settings)
    total = len(plan.to_read) + len(plan.gone) + len(request.texts) + (len(plan.live) if rederive else 0)
    done = 0
    numbers = dict(run.manifest.next) if run.manifest else dict(Manifest(corpus="").next)
    batch = _Batch()
    edits = planning.edits(run.folder, run.manifest, plan, request, run.settings, rederive)
    while True:
        with run.stage("read"):
            edit = next(edits, None)
        if edit is None:
            break
        _add(run, plan, batch, edit, numbers, rederive)
        done += 1
        if len(batch.passages) >= BATCH_PASSAGES:
            run.progress("documents", min(done, total), max(total, done))
            _commit_batch(run, plan, batch, numbers)
            batch = _Batch()
            gc.collect()
        elif done % 50 == 0:
            run.progress("documents", min(done, total), max(total, done))
    run.parameters = parameters(run.settings)  # only now does all that is there follow them
    if batch.log or batch.gone or batch.documents or run.manifest is None:
        _commit_batch(run, plan, batch, numbers)
    elif rederive or plan.found.sources != run.manifest.sources:
        _commit_manifest(run, plan, run.manifest.tables, [], numbers, Counter())
    run.progress("documents", max(total, done), max(total, done))


def _add(run: _Run, plan: Plan, batch: _Batch, edit: Edit, numbers: dict[str, int], rederive: bool) -> None:
    if run.cancelled():
        raise Cancelled
    known = plan.live.get(edit.uri)
    if edit.what == "gone":
        batch.gone.add(known["id"])
        batch.log.append(_log_row("gone", edit.uri, known["n"]))
        run.counts["removed"] += 1
        return
    document = edit.document
    assert document is not None
    before = building.Before()
    if edit.what == "relog":
        batch.log.append(_log_row("put", edit.uri, known["n"], edit))
        return
    if known is not None:
        with run.stage("merge"):
            before = _before(run, known, rederive)
        batch.gone.add(known["id"])
    with run.stage("extract"):
        rows = building.build(document, before, _chunk_params(run.settings), numbers)
    if edit.what == "put":
        batch.log.append(_log_row("put", edit.uri, rows.document["n"], edit))
        run.counts["changed" if known else "added"] += 1
    batch.documents.append(rows.document)
    batch.units += rows.units
    batch.passages += rows.passages
    batch.fresh |= rows.fresh
    batch.kept |= rows.kept


def _before(run: _Run, known: Mapping[str, Any], rederive: bool) -> building.Before:
    before = building.Before(n=known["n"])
    snapshot = run.snapshot()
    if snapshot is None:
        return before
    units = snapshot.by_key("text_units", [known["id"]], "document_id", ["id", "n"])
    before.units = dict(zip(units.column("id").to_pylist(), units.column("n").to_pylist(), strict=True))
    if not rederive:
        passages = snapshot.by_key("passages", [known["id"]], "document_id", ["id", "entity_ids"])
        before.passages = dict(
            zip(passages.column("id").to_pylist(), passages.column("entity_ids").to_pylist(), strict=True)
        )
    return before


def _log_row(op: str, uri: str, n: int, edit: Edit | None = None) -> Row:
    row: Row = dict.fromkeys(DOCUMENT_LOG.names, "") | {"op": op, "uri": uri, "n": n}
    if edit is not None and edit.document is not None:
        d = edit.document
        row |= {
            "id": d.id, "file": d.file, "file_sha": d.file_sha, "title": d.title, "text": d.text,
            "metadata": building.metadata_json(d.metadata), "created": d.created,
        }  # fmt: skip
    return row


def _commit_batch(run: _Run, plan: Plan, batch: _Batch, numbers: dict[str, int]) -> None:
    """Everything of one batch becomes visible at once, or not at all."""
    snapshot = run.snapshot()
    with run.stage("merge"):
        old_units, old_passages = _replaced(snapshot, batch.gone)
        gone_units = set(old_units) - batch.kept
        merged = merge(snapshot, gone_units, batch.fresh, numbers)
    with run.stage("terms"):
        term_change, moved = _terms(snapshot, old_passages, batch.passages)
    changes = {
        **merged.changes,
        "terms": term_change,
        "documents": Change(sorted(batch.gone), to_table("documents", batch.documents)),
        "text_units": Change(sorted(old_units), to_table("text_units", batch.units)),
        "passages": Change(sorted(old_passages), to_table("passages", batch.passages)),
    }
    moved.update(
        documents=len(batch.documents) - len(batch.gone), text_units=len(batch.units) - len(old_units),
        passages=len(batch.passages) - len(old_passages), entities=merged.entities, relationships=merged.relationships,
    )  # fmt: skip
    run.touched |= merged.touched
    with run.stage("write"):
        segments = []
        if batch.log:
            log = pa.Table.from_pylist(batch.log, DOCUMENT_LOG)
            segments.append(append(run.folder, DOCUMENTS, log))
        versions = tables.apply(run.folder, run.manifest, changes)
        _commit_manifest(run, plan, versions, segments, numbers, moved)


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


def _commit_manifest(
    run: _Run, plan: Plan, versions: Mapping[str, int], segments: list[Row], numbers: Mapping[str, int], moved: Counter[str]
) -> None:
    old = run.manifest or Manifest(corpus=run.folder.name)
    counters = Counter(old.counters)
    counters.update(moved)
    run.manifest = replace(
        old, generation=old.generation + 1, created=now(), segments=[*old.segments, *segments],
        tables={**old.tables, **versions}, counters=dict(counters), next=dict(numbers), sources=dict(plan.found.sources),
        parameters=run.parameters, stale=["communities"] if run.touched or old.stale else [],
    )  # fmt: skip
    commit(run.folder, run.manifest)


def _write_communities(run: _Run, request: IndexRequest) -> None:
    """The second commit: the hierarchy of the graph as it is now, and reports where their content changed."""
    if run.manifest is None or not (run.manifest.stale or request.recluster):
        return
    if run.cancelled():
        raise Cancelled
    numbers = dict(run.manifest.next)
    # Without a complete list of what earlier calls touched (one was killed), every report is compared.
    complete = run.manifest.communities_generation == run.first_generation
    params = ClusterParams(max_cluster_size=run.settings.max_cluster_size, seed=run.settings.seed)
    with run.stage("communities"):
        tree = hierarchy.recluster(run.snapshot(), params, fresh=request.recluster)
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        changes, moved = hierarchy.report(run.snapshot(), tree, run.touched if complete else None, numbers)
    with run.stage("write"):
        versions = tables.apply(run.folder, run.manifest, changes)
        run.manifest = replace(
            run.manifest, generation=run.manifest.generation + 1, created=now(), tables=versions, next=numbers, stale=[],
            counters={**run.manifest.counters, **moved}, communities_generation=run.manifest.generation + 1,
        )  # fmt: skip
        commit(run.folder, run.manifest)
    with run.stage("compact"):
        versions = tables.compact(run.folder, run.manifest)
        if versions is not None:
            generation = run.manifest.generation + 1
            run.manifest = replace(
                run.manifest, generation=generation, created=now(), tables=versions, communities_generation=generation
            )
            commit(run.folder, run.manifest)
    run.progress("reports", len(tree.communities), len(tree.communities))


def _result(run: _Run, plan: Plan, status: str) -> IndexResult:
    counters = run.manifest.counters if run.manifest else {}
    done = sum(run.counts[name] for name in ("added", "changed")) + plan.unchanged
    counts = {name: run.counts[name] for name in ("added", "changed", "removed")} | {"unchanged": plan.unchanged}
    kinds = ("documents", "text_units", "passages", "entities", "relationships", "communities")
    return IndexResult(
        status=status, corpus=run.folder.name, done=done, total=done + len(plan.errors), errors=plan.errors,
        counts=counts | {f"{kind}_total" if kind == "documents" else kind: counters.get(kind, 0) for kind in kinds},
        skipped=dict(sorted(plan.found.skipped.items())),
        seconds={name: round(value, 3) for name, value in run.seconds.items()},
    )  # fmt: skip


def _estimate(folder: Path, request: IndexRequest, settings: Settings) -> IndexResult:
    """What a call would read, without a model, a lock or a write."""
    plan = planning.make(folder, read(folder), request, settings)
    size = sum(Path(file.path).stat().st_size for file in plan.to_read)
    return IndexResult(
        status="estimate", corpus=folder.name, total=len(plan.to_read) + len(request.texts), errors=plan.errors,
        counts={"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged},
        skipped=dict(sorted(plan.found.skipped.items())),
        estimate={"files": len(plan.to_read), "bytes": size, "model_calls": 0, "cost": 0.0},
    )  # fmt: skip


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
