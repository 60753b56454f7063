"""Index: from a request to committed generations.

read -> diff -> chunk -> extract -> resolve -> merge -> commit, in batches of about 2,000 passages; then
communities -> reports -> commit. Takes a corpus folder, a request and settings; gives an `IndexResult`. One call
holds the writer's lock from its first look to its last commit; readers never wait. Blocking: run it in a thread
or a process. Knows nothing of MCP and prints nothing.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from graphrag_mcp import extract
from graphrag_mcp.errors import Busy
from graphrag_mcp.index import commits
from graphrag_mcp.index import plan as planning
from graphrag_mcp.index import rows as building
from graphrag_mcp.index.chunk import ChunkParams
from graphrag_mcp.index.commits import Batch, Progress, Row, Run
from graphrag_mcp.index.plan import Edit, Plan
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.manifest import Manifest, read, writer_lock
from graphrag_mcp.store.schema import DOCUMENT_LOG
from graphrag_mcp.types import IndexRequest, IndexResult

# A kill costs at most one batch of work. What is left joins the last batch when it is less than half of one more:
# a short tail would cost a merge, and a compaction of the indexes, of its own.
BATCH_PASSAGES = 2000
# How long a call waits for another writer, looking every second whether it was cancelled meanwhile.
LOCK_SECONDS = 3600
# Bump when the meaning of stored rows changes: everything is then derived again from the truth.
DERIVATION = 1



class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


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
    with _lock(folder, cancelled), _few_collections():
        manifest = read(folder)
        run = Run(folder, settings, manifest, progress, cancelled)
        run.first_generation = manifest.generation if manifest else 0
        progress("reading", 0, 0)
        with run.stage("read"):
            plan = planning.make(folder, run.manifest, request, settings)
        if plan.to_read or plan.gone or request.texts or request.recluster:
            with run.stage("start"):
                tables.prepare(folder)
        status = "done"
        try:
            _write_documents(run, plan, request)
            if cancelled():
                raise Cancelled
            commits.communities(run, request.recluster)
        except Cancelled:
            status = "cancelled"
        return _result(run, plan, status)


@contextmanager
def _lock(folder: Path, cancelled: Callable[[], bool]) -> Iterator[None]:
    with ExitStack() as stack:
        for waited in range(LOCK_SECONDS):
            try:
                stack.enter_context(writer_lock(folder, 1.0))
                break
            except Busy:
                if cancelled() or waited == LOCK_SECONDS - 1:
                    raise
        yield


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
    s = settings
    return ChunkParams(s.chunk_size, s.chunk_overlap, s.chunk_mode, s.chunk_separator, s.passage_size)


def _write_documents(run: Run, plan: Plan, request: IndexRequest) -> None:
    rederive = run.manifest is not None and run.manifest.parameters != parameters(run.settings)
    run.parameters = run.manifest.parameters if rederive else parameters(run.settings)
    total = len(plan.to_read) + len(plan.gone) + len(request.texts) + (len(plan.live) if rederive else 0)
    done = 0
    numbers = dict(run.manifest.next) if run.manifest else dict(Manifest(corpus="").next)
    batch = Batch()
    edits = planning.edits(run.folder, run.manifest, plan, request, run.settings, rederive)
    while True:
        with run.stage("read"):
            edit = next(edits, None)
        if edit is None:
            break
        _add(run, plan, batch, edit, numbers, rederive)
        done += 1
        if len(batch.passages) >= BATCH_PASSAGES and total - done >= BATCH_PASSAGES // 2:
            run.progress("documents", min(done, total), max(total, done))
            commits.documents(run, plan.found.sources, batch, numbers)
            batch = Batch()
            gc.collect()
        elif done % 50 == 0:
            run.progress("documents", min(done, total), max(total, done))
    run.parameters = parameters(run.settings)  # only now does all that is there follow them
    if batch.log or batch.gone or batch.documents:
        commits.documents(run, plan.found.sources, batch, numbers)
    elif run.manifest is not None and (rederive or plan.found.sources != run.manifest.sources):
        commits.swap(run, plan.found.sources, run.manifest.tables, [], numbers, Counter())
    run.progress("documents", max(total, done), max(total, done))


def _add(run: Run, plan: Plan, batch: Batch, edit: Edit, numbers: dict[str, int], rederive: bool) -> None:
    def check() -> None:
        if run.cancelled():
            raise Cancelled

    check()
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
        rows = building.build(document, before, _chunk_params(run.settings), numbers, check)
    if edit.what == "put":
        batch.log.append(_log_row("put", edit.uri, rows.document["n"], edit))
        run.counts["changed" if known else "added"] += 1
    batch.documents.append(rows.document)
    batch.units += rows.units
    batch.passages += rows.passages
    batch.fresh |= rows.fresh
    batch.kept |= rows.kept


def _log_row(op: str, uri: str, n: int, edit: Edit | None = None) -> Row:
    row: Row = dict.fromkeys(DOCUMENT_LOG.names, "") | {"op": op, "uri": uri, "n": n}
    if edit is not None and edit.document is not None:
        d = edit.document
        row |= {
            "id": d.id, "file": d.file, "file_sha": d.file_sha, "title": d.title, "text": d.text,
            "metadata": building.metadata_json(d.metadata), "created": d.created,
        }  # fmt: skip
    return row


def _before(run: Run, known: Mapping[str, Any], rederive: bool) -> building.Before:
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


def _result(run: Run, plan: Plan, status: str) -> IndexResult:
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
