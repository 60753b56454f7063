"""Indexing: from a request to committed generations.

    plan       which files and texts are new, changed or gone          sources/diff.py
    derive     document -> text units, passages, names                 documents.py, chunk.py, graph.py
    commit     batches of about 2,000 passages, merged into the graph  documents.py (`commit_batch`)
    topics     communities, reports and vectors, and their commit      communities_stage.py
    result     counts, errors, what is left open                       outcome.py

One call holds the writer's lock from its first look to its last commit; readers never wait.
Blocking: run it in a thread or a process."""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import Busy
from graphrag_mcp.executors import RARELY, InProcess
from graphrag_mcp.index import communities_stage, documents, edits, models, pictures, vectors
from graphrag_mcp.index.chunk import ChunkParams, most_units
from graphrag_mcp.index.derive import (
    Before,
    DocumentRows,
    assign_numbers,
    chunk_params,
    derive,
    derive_item,
    metadata_json,
)
from graphrag_mcp.index.documents import Batch, Cancelled, Progress, Row, Run
from graphrag_mcp.index.imported import IMPORTS, ImportLog
from graphrag_mcp.index.memory import limited
from graphrag_mcp.index.outcome import result
from graphrag_mcp.index.rereading import open_units
from graphrag_mcp.index.summaries_stage import summaries
from graphrag_mcp.llm.asker import Asker, open_asker, priced
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.diff import Edit, Plan
from graphrag_mcp.sources.document import Document
from graphrag_mcp.sources.read import PLACES
from graphrag_mcp.store import edit_log, leases
from graphrag_mcp.store.edit_log import fold
from graphrag_mcp.store.manifest import IN_PART, Manifest, read, writer_lock
from graphrag_mcp.store.schema import DOCUMENT_LOG, VECTORS
from graphrag_mcp.store.segments import EDITS, tidy
from graphrag_mcp.store.tables import notes_of
from graphrag_mcp.types import IndexRequest, IndexResult

# A kill costs at most one batch of work. What is left joins the last batch when it is less than
# half of one more: a short tail would cost a merge, and a compaction of the indexes, of its own.
BATCH_PASSAGES = 2000
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
        folder,
        settings,
        refresh=request.refresh_answers,
        retry_refused=request.retry_refused,
        mend=not request.dry_run,
    )
    try:
        if request.dry_run:
            from graphrag_mcp.index.dry_run import estimate

            manifest = documents.of_this_release(folder, read(folder))
            run = Run(folder, settings, manifest, progress, cancelled)
            return estimate(run, request, asker, open_units)
        # A server's memory is not that of one call: it indexes, in other threads than the main one,
        # only what is little work.
        own_process = threading.current_thread() is threading.main_thread()
        most = settings.max_memory if own_process else 0
        if own_process:
            gc.set_threshold(*RARELY)
        with _lock(folder, cancelled), limited(most, cancelled, ended) as stop:
            manifest = documents.of_this_release(folder, read(folder))
            run = Run(folder, settings, manifest, progress, stop)
            return result(run, *_work(run, request, asker, bring))
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


def _work(
    run: Run, request: IndexRequest, asker: Asker, bring: Bring | None = None
) -> tuple[Plan, str]:
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
            run.imports = ImportLog(folder, manifest)
        if bring is not None:
            bring(run, plan)
    try:
        if EDITS in kinds:
            edits.lift(run, plan)
            edits.catch_up(run)
        _write_documents(run, plan, request)
        run.check()
        summaries(run, request.refresh_answers)
        communities_stage.communities(run, request.recluster)
        if run.corrections:
            leases.corrected(folder, run.corrections)
        if run.manifest is not None:
            run.manifest = tidy(folder, run.manifest)
            if run.manifest.generation < run.began:
                run.began = run.manifest.began or run.manifest.generation  # nothing else is in it
                communities_stage.compact(run, idle=True)
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
    wanted = documents.parameters(run.settings, run.models)
    before = run.manifest.parameters if run.manifest else {}
    rederive = run.manifest is not None and (
        any(before.get(name) != value for name, value in wanted.items())
        or (request.refresh_answers and run.models.extract is not None)
    )
    run.parameters = {**before, "derivation": IN_PART} if rederive else {**before, **wanted}
    numbers = dict(run.manifest.next) if run.manifest else dict(Manifest(corpus="").next)
    # One batch is held back while the next is read: plug-ins link all documents with the last, and a model's answers about a batch are on their way meanwhile.
    held: Batch | None = None
    for batch in _batches(run, plan, request, numbers, rederive):
        if held is not None:
            documents.commit_batch(run, plan.found.sources, held, numbers)
        held = batch
    run.parameters = {**before, **wanted}  # only now does all that is there follow them
    if held is not None:
        documents.commit_batch(run, plan.found.sources, held, numbers, last=True)
    elif run.manifest is not None and (
        run.manifest.parameters != run.parameters or plan.found.sources != run.manifest.sources
    ):
        documents.commit_draft(run, plan.found.sources, [], numbers, {})


def _batches(
    run: Run, plan: Plan, request: IndexRequest, numbers: dict[str, int], rederive: bool
) -> Iterator[Batch]:
    """The edits of the call in batches; a batch's texts are asked about while it is being read."""
    again = set(plan.live) if rederive else open_units(run)
    again -= {edit.uri for edit in run.brought}
    total = len(plan.to_read) + len(plan.gone) + len(request.texts) + len(again) + len(run.brought)
    done = 0
    batch, params = Batch(imports=run.apart), chunk_params(run.settings)

    def add(edit: Edit, derived: DocumentRows | None) -> None:
        run.check()
        known, document = plan.live.get(edit.uri), edit.document
        if document is None:
            gone = plan.live[edit.uri]
            batch.gone.add(gone["id"])
            batch.log.append(_log_row("gone", edit.uri, gone["n"]))
            run.counts["removed"] += 1
            return
        if edit.what == "relog":
            n = plan.live[edit.uri]["n"]
            batch.log.append(_log_row("put", edit.uri, n, document))
            return
        given = run.imports.of(document) if run.imports else None
        before = Before()
        if known is not None:
            with run.stage("merge"):
                anew = rederive or given is not None or _was_note(run, known["id"])
                before = _before(run, known, anew)
            batch.gone.add(known["id"])
        with run.stage("extract"):
            rows = derived or derive(document, params, before, given, run.check)
            assign_numbers(rows, before, numbers)
        if edit.what == "put":
            plan.quota.text_units += len(rows.units)
            batch.log.append(_log_row("put", edit.uri, rows.document["n"], document))
            run.counts["changed" if known else "added"] += 1
        batch.add(rows)
        if run.imports is not None and given is not None:
            batch.imports += run.imports.rows(document)
        elif run.models.extract is not None and not rows.plugin and not rows.note:
            batch.ask(run, document, rows)

    asker = run.models.asker
    describe = None
    if request.method != "fast":
        describe = pictures.describer(asker, run.folder, run.settings, run.take)
    found = planning.edits(run.folder, run.manifest, plan, request, run.settings, again, describe)
    for edit, derived in _derived(run, plan, chain(found, run.brought), total):
        add(edit, derived)
        done += 1
        size = batch.size
        full = size >= BATCH_PASSAGES and (
            total - done >= BATCH_PASSAGES // 2 or size >= 2 * BATCH_PASSAGES
        )
        if full or done % 50 == 0:
            run.progress("documents", min(done, total), max(total, done))
        if full:
            yield batch
            batch = Batch()
    if batch.log or batch.gone or batch.documents or batch.imports:
        yield batch
    run.progress("documents", max(total, done), max(total, done))


def _derived(
    run: Run, plan: Plan, edits: Iterator[Edit], total: int
) -> Iterator[tuple[Edit, DocumentRows | None]]:
    """The edits in order, each with what an executor has computed of its document; None where it is
    computed here, when it is needed."""
    waiting: deque[tuple[Edit, int]] = deque()
    ahead = 0  # text units of what waits, at most
    params = chunk_params(run.settings)

    def read() -> Iterator[tuple[Document | None, ChunkParams]]:
        """What an executor is given: as much ahead as cannot reach the limit of text units, so that
        the call ends with the same document whatever the engine."""
        nonlocal ahead
        while True:
            if waiting and plan.quota.text_units + ahead >= plan.quota.settings.max_text_units:
                return
            with run.stage("read"):
                edit = next(edits, None)
            if edit is None:
                return
            document = edit.document if edit.what != "relog" else None
            units = most_units(document.text, params) if document else 0
            waiting.append((edit, units))
            ahead += units
            yield document, params

    executor = run.spread(total) if run.imports is None else InProcess()
    if not isinstance(executor, InProcess):
        for derived in executor.map(derive_item, read(), _weight):
            edit, units = waiting.popleft()
            ahead -= units
            yield edit, derived
    while True:
        with run.stage("read"):
            edit = next(edits, None)
        if edit is None:
            return
        yield edit, None


def _weight(item: tuple[Document | None, ChunkParams]) -> int:
    return len(item[0].text) if item[0] is not None else 0


def _log_row(op: str, uri: str, n: int, document: Document | None = None) -> Row:
    row: Row = dict.fromkeys(DOCUMENT_LOG.names, "") | {"op": op, "uri": uri, "n": n}
    if document is not None:
        own = ("id", "file", "file_sha", "title", "text", "created")
        row |= {name: getattr(document, name) for name in own}
        kept = {PLACES: document.places} if document.places else {}
        row["metadata"] = metadata_json(document.metadata | kept)
    return row


def _was_note(run: Run, document: str) -> bool:
    """Was it a note, of which no names are stored?"""
    snapshot = run.snapshot_before()
    return snapshot is not None and document in notes_of(snapshot)


def _before(run: Run, known: Mapping[str, Any], rederive: bool) -> Before:
    snapshot = run.snapshot_before()
    if snapshot is None:
        return Before(known["n"])
    ids = [known["id"]]
    units = snapshot.by_key("text_units", ids, "document_id", ["id", "n"]).to_pylist()
    passages = []
    if not rederive:
        passages = snapshot.by_key("passages", ids, "document_id", ["id", "entity_ids"]).to_pylist()
    numbers = {row["id"]: row["n"] for row in units}
    names = {row["id"]: row["entity_ids"] for row in passages}
    return Before(known["n"], numbers, names, run.redo.get(known["uri"], frozenset()))
