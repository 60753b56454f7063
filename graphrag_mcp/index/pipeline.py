"""Indexing: from a request to committed generations.

    plan       which files and texts are new, changed or gone          sources/diff.py
    derive     document -> text units, passages, names                 batches.py, derive.py, chunk.py
    commit     batches of about 2,000 passages, merged into the graph  documents.py (`commit_batch`)
    topics     communities, reports and vectors, and their commit      communities_stage.py
    result     counts, errors, what is left open                       outcome.py

A stage is imported when it has something to do (`_..._due`): most calls change nothing, and of such a call
half the time were imports.

One call holds the writer's lock from its first look to its last commit; readers never wait.
Blocking: run it in a thread or a process."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from graphrag_mcp.errors import Busy
from graphrag_mcp.executors import RARELY
from graphrag_mcp.index import models, vectors
from graphrag_mcp.index.memory import limited
from graphrag_mcp.index.outcome import result
from graphrag_mcp.index.run import Cancelled, Progress, Run, commit_draft, derives_all, of_this_release, parameters
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.llm.opening import open_asker, priced
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.diff import Plan
from graphrag_mcp.store import edit_log, leases
from graphrag_mcp.store.edit_log import fold
from graphrag_mcp.store.manifest import IN_PART, Manifest, read, writer_lock
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.segments import EDITS, IMPORTS, tidy
from graphrag_mcp.types import IndexRequest, IndexResult

# How long a call waits for another writer, looking every second whether it was cancelled meanwhile.
LOCK_SECONDS = 3600
# puts the edits of an import into the run, its label into the plan
Bring = Callable[[Run, Plan], None]


def index_documents(
    folder: Path,
    request: IndexRequest,
    settings: Settings,
    *,
    progress: Progress = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
    asker: Asker | None = None,
    bring: Bring | None = None,
    ended: Callable[[str], object] | None = None,
) -> IndexResult:
    """Bring the corpus in `folder` to what the request's folders, files and texts are.

    Returns counts {added, changed, removed, unchanged}, what was skipped and why, an error per
    document that could not be read, what a model was asked and could not answer, and CPU seconds
    per stage. `asker`: whom to ask instead of the models that the settings name. `bring`: what is
    imported in this call (exchange/importing.py). `ended`: told why, before this process ends because
    it held far more memory than the settings allow. Raises GraphRAGError (Busy, BadInput, Damaged, ...).
    """
    ours, run = asker is None, None
    if ours and not request.dry_run and request.method != "fast":
        priced(settings)
    collects = gc.get_threshold()
    asker = asker or open_asker(
        folder, settings, refresh=request.refresh_answers, retry_refused=request.retry_refused, mend=not request.dry_run
    )
    try:
        if request.dry_run:
            from graphrag_mcp.index.dry_run import estimate

            manifest = of_this_release(folder, read(folder))
            run = Run(folder, settings, manifest, progress, cancelled)
            return estimate(run, request, asker)
        # A server's memory is not that of one call: it indexes, in other threads than the main one,
        # only what is little work.
        own_process = threading.current_thread() is threading.main_thread()
        most = settings.max_memory if own_process else 0
        if own_process:
            gc.set_threshold(*RARELY)
        with _lock(folder, cancelled), limited(most, cancelled, ended) as stop:
            manifest = of_this_release(folder, read(folder))
            run = Run(folder, settings, manifest, progress, stop)
            try:
                return result(run, *_work(run, request, asker, bring))
            finally:  # its thread reads files that another process with the lock may delete
                run.ended.set()
                run.beside.shutdown(cancel_futures=True)
    finally:
        gc.set_threshold(*collects)
        if run is not None:
            run.executor.close()
        if ours:
            asker.close()


@contextmanager
def _lock(folder: Path, cancelled: Callable[[], bool]) -> Iterator[None]:
    with ExitStack() as stack:
        for left in reversed(range(LOCK_SECONDS)):
            try:
                stack.enter_context(writer_lock(folder, 1.0))
                break
            except Busy:
                if cancelled() or not left:
                    raise
        yield


# ---- the steps of a call ------------------------------------------------------------------------


def _work(run: Run, request: IndexRequest, asker: Asker, bring: Bring | None = None) -> tuple[Plan, str]:
    """All of a call, from first look to last commit: what was to be done; "done" or "cancelled"."""
    folder, manifest = run.folder, run.manifest
    run.began = 1 + (manifest.generation if manifest else 0)
    run.models = models.choose(request.method, run.settings, manifest, folder, asker)
    run.manifest = manifest = vectors.without_others(manifest, run.models.embedding)
    asker.length = _vector_bytes(run) if run.models.embedding else 0
    if (run.models.extract or run.models.summaries) and manifest is not None:
        run.corrections = leases.corrections(folder)
    kinds = {segment["kind"] for segment in (manifest.segments if manifest else ())}
    run.progress("reading", 0, 0)
    with run.stage("read"):
        if EDITS in kinds:
            run.edits = fold(edit_log.load(folder, manifest))
        plan = planning.make(folder, manifest, request, run.settings, run.edits)
        if bring is not None or IMPORTS in kinds:
            from graphrag_mcp.index.imported import ImportLog

            run.imports = ImportLog(folder, manifest)
        if bring is not None:
            bring(run, plan)
    try:
        if EDITS in kinds:
            from graphrag_mcp.index.edit_commit import catch_up, lift

            lift(run, plan)
            catch_up(run)
        _write_documents(run, plan, request)
        run.check()
        if _summaries_due(run):
            from graphrag_mcp.index.summaries_stage import summaries

            summaries(run, request.refresh_answers)
        if _communities_due(run, request.recluster):
            from graphrag_mcp.index.communities_stage import communities

            communities(run, request.recluster)
        elif _embedding_due(run):
            from graphrag_mcp.index.communities_stage import embed

            embed(run)
        if run.corrections:
            leases.corrected(folder, run.corrections)
        if run.manifest is not None:
            run.manifest = tidy(folder, run.manifest)
            if run.manifest.generation < run.began:
                run.began = run.manifest.began or run.manifest.generation  # nothing else is in it
                run.compact(idle=True)
            else:
                run.compact()
    except Cancelled:
        asker.stop()
        return plan, "cancelled"
    return plan, "done"


def _vector_bytes(run: Run) -> int:
    """The bytes of a vector in the tables, 0 without any: no other length fits into them."""
    if run.manifest is None:
        return 0
    for name in sorted(VECTORS.values() & run.manifest.tables.keys()):
        if row := run.snapshot().rows(name, columns=["vector"], limit=1).to_pylist():
            return 4 * len(row[0]["vector"])
    return 0


def _write_documents(run: Run, plan: Plan, request: IndexRequest) -> None:
    run_parameters = parameters(run.settings, run.models)
    before = run.manifest.parameters if run.manifest else {}
    rederive = derives_all(run, request)
    again = set(plan.live) if rederive else set[str]()
    if not rederive and run.manifest is not None and run.models.extract is not None:
        from graphrag_mcp.index.rereading import open_units

        again = open_units(run)
    again -= {edit.uri for edit in run.brought}
    total = len(plan.to_read) + len(plan.gone) + len(request.texts) + len(again) + len(run.brought)
    numbers = dict(run.manifest.next) if run.manifest else dict(Manifest(corpus="").next)
    if total or run.apart:
        from graphrag_mcp.index import batches, documents

        run.parameters = {**before, "derivation": IN_PART} if rederive else {**before, **run_parameters}
        last = batches.write(run, plan, request, batches.Work(total, again, rederive), numbers)
        plan.finish()
        run.parameters = {**before, **run_parameters}  # only now does all that is there follow them
        if last is not None:
            documents.commit_batch(run, plan.found.sources, last, numbers, last=True)
            return
    else:
        plan.finish()
        run.progress("documents", 0, 0)
    run.parameters = {**before, **run_parameters}
    if run.manifest is not None and (
        run.manifest.parameters != run.parameters or plan.found.sources != run.manifest.sources
    ):
        commit_draft(run, plan.found.sources, run.manifest.segments, numbers, {})


# ---- what is due besides the documents: asked before the stage that does it is imported ----------


def _summaries_due(run: Run) -> bool:
    """Are there summaries, or are there to be some?"""
    if run.manifest is None:
        return False
    return bool(run.models.summaries or run.manifest.parameters.get("summaries", ""))


def _communities_due(run: Run, recluster: bool) -> bool:
    """Did the graph as a whole change, or was something of it left open?"""
    manifest, models = run.manifest, run.models
    if manifest is None:
        return False
    before, now = manifest.parameters, models.parameters()
    again = any(before.get(name, "") != now[name] for name in ("reports", "report_form"))
    return bool(manifest.stale or recluster or again or _is_open(run))


def _embedding_due(run: Run) -> bool:
    """Are there rows without a vector that a model would give one?"""
    if run.manifest is None:
        return False
    asked = run.models.embedding and run.models.asker.embeds
    return bool(asked and vectors.missing(run.snapshot()))


def _is_open(run: Run) -> bool:
    """Is there something that a model may answer now, or that no one is to answer any more?"""
    if run.manifest is None or "pending" not in run.manifest.tables:
        return bool(run.corrections)
    kinds = set(run.snapshot().rows("pending", columns=["kind"])["kind"].to_pylist())
    if run.models.reports is None:
        return bool(kinds - {"summary"})
    open_ = "report" in kinds and run.models.asker.may_answer("report")
    return bool(run.corrections) or open_
