"""Indexing: from a request to committed generations.

read -> diff -> chunk -> extract -> resolve -> merge -> commit, in batches of about 2,000 passages
(of source code 20,000); then communities -> reports -> vectors -> commit. One call holds the
writer's lock from its first look to its last commit; readers never wait. Blocking: run it in a
thread or a process."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import Busy, OutOfMemory
from graphrag_mcp.executors import RARELY, InProcess
from graphrag_mcp.index import communities_stage, documents, edits, models, vectors
from graphrag_mcp.index.chunk import ChunkParams, most_units
from graphrag_mcp.index.documents import Batch, Before, Cancelled, DocumentRows, Progress, Row, Run
from graphrag_mcp.index.imported import IMPORTS, ImportLog
from graphrag_mcp.index.losses import RECORDS, totals
from graphrag_mcp.index.summaries_stage import summaries
from graphrag_mcp.index.units import Context, stored
from graphrag_mcp.llm.asker import Asker, key_of, open_asker, priced
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.diff import Edit, Plan
from graphrag_mcp.sources.read import Document
from graphrag_mcp.store import edit_log, leases
from graphrag_mcp.store.edit_log import fold
from graphrag_mcp.store.manifest import IN_PART, Manifest, read, writer_lock
from graphrag_mcp.store.schema import DOCUMENT_LOG, VECTORS
from graphrag_mcp.store.segments import EDITS, tidy
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.types import IndexRequest, IndexResult

# A kill costs at most one batch of work. What is left joins the last batch when it is less than
# half of one more: a short tail would cost a merge, and a compaction of the indexes, of its own.
BATCH_PASSAGES = 2000
# How long a call waits for another writer, looking every second whether it was cancelled meanwhile.
LOCK_SECONDS = 3600
# Seconds between two looks at the memory, and how many times its limit ends the process.
WATCH_EVERY, TOO_MUCH = 0.1, 1.5
DEGRADED = 1_000  # rows of the list of what a model could not answer
# The tables that rows of `pending` speak of, by kind, and the letters of their aliases.
TABLES_OF = {
    "entity": ("entities", "e"),
    "relationship": ("relationships", "r"),
    "report": ("reports", "c"),
}
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
        folder, settings, refresh=request.refresh_answers, mend=not request.dry_run
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
            return _result(run, *_work(run, request, asker, bring))
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


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def limited(
    megabytes: int, cancelled: Callable[[], bool], ended: Callable[[str], object] | None = None
) -> Iterator[Callable[[], bool]]:
    """`cancelled`, which raises OutOfMemory once the process has held more than `megabytes`; 0 is
    no limit. `ended`: told why, before the process ends because it held half as much again and did
    not stop by itself. Both leave the index as it was at its last commit."""
    if not megabytes or not resident():
        yield cancelled
        return
    error = OutOfMemory(
        f"indexing took more than {megabytes:,} MB of memory and was stopped; the index is as it "
        "was at its last commit",
        "Index fewer or smaller files at a time, or raise the setting max_memory",
    )
    over, done = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(WATCH_EVERY):
            held = resident()
            if held > megabytes * 1_000_000:
                over.set()
            if ended is not None and held > megabytes * 1_000_000 * TOO_MUCH:
                ended(str(error))
                os._exit(1)

    def look() -> bool:
        if over.is_set():
            raise error
        return cancelled()

    threading.Thread(target=watch, name="memory", daemon=True).start()
    try:
        yield look
    finally:
        done.set()


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
    for name in sorted(VECTORS.values() & run.manifest.tables.keys()) if run.manifest else ():
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
    # One batch is held back while the next is read: names of source code are resolved with the
    # last, and a model's answers about a batch are on their way meanwhile.
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
    batch, params = Batch(imports=run.apart), documents.chunk_params(run.settings)

    def add(edit: Edit, derived: DocumentRows | None) -> None:
        run.check()
        known, document = plan.live.get(edit.uri), edit.document
        if document is None:
            batch.gone.add(known["id"])
            batch.log.append(_log_row("gone", edit.uri, known["n"]))
            run.counts["removed"] += 1
            return
        if edit.what == "relog":
            batch.log.append(_log_row("put", edit.uri, known["n"], document))
            return
        given = run.imports.of(document) if run.imports else None
        before = Before()
        if known is not None:
            with run.stage("merge"):
                before = _before(run, known, rederive or given is not None)
            batch.gone.add(known["id"])
        with run.stage("extract"):
            rows = derived or documents.derive(document, params, before, given, run.check)
            documents.assign_numbers(rows, before, numbers)
        if edit.what == "put":
            plan.quota.text_units += len(rows.units)
            batch.log.append(_log_row("put", edit.uri, rows.document["n"], document))
            run.counts["changed" if known else "added"] += 1
        batch.add(rows)
        if given is not None:
            batch.imports += run.imports.rows(document)
        elif run.models.extract is not None and not rows.is_source_code:
            batch.ask(run, document, rows)

    found = planning.edits(run.folder, run.manifest, plan, request, run.settings, again)
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
    params = documents.chunk_params(run.settings)

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
        for derived in executor.map(documents.derive_item, read(), _weight):
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
        row["metadata"] = documents.metadata_json(document.metadata)
    return row


def _before(run: Run, known: Mapping[str, Any], rederive: bool) -> Before:
    snapshot = run.snapshot()
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


# ---- text units that a model is asked about again -----------------------------------------------


def open_units(run: Run) -> set[str]:
    """Uris of documents with text units that a model may read now and could not before, or whose
    answer was replaced; fills `run.redo`."""
    if run.manifest is None or not run.models.extract:
        return set()
    rows = run.snapshot().rows("pending").to_pylist()
    open_ = {row["subject"]: row["uri"] for row in rows if row["kind"] in ("extract", "claims")}
    if not run.models.asker.on:
        by_document = sorted(open_, key=lambda unit: (open_[unit], unit))
        open_ = {unit: open_[unit] for unit in _answered(run, by_document)}
    for unit, uri in chain(open_.items(), _corrected_units(run).items()):
        run.redo.setdefault(uri, set()).add(unit)
    return set(run.redo)


def _corrected_units(run: Run) -> dict[str, str]:
    """Text units whose answer was replaced, with the uri of their document."""
    ids = {one.subject for one in run.corrections if one.kind in ("extract", "claims")}
    snapshot = run.snapshot()
    units = snapshot.served("text_units", sorted(ids), ["id", "document_id"])
    of = sorted({row["document_id"] for row in units})
    found = snapshot.served("documents", of, ["id", "uri"])
    uris = {row["id"]: row["uri"] for row in found}
    return {row["id"]: uris[row["document_id"]] for row in units if row["document_id"] in uris}


def _answered(run: Run, units: list[str]) -> Iterator[str]:
    """Those of the units about which the book holds an answer by now: an agent has read them."""
    asker = run.models.asker
    if not (asker.may_answer("extract") or asker.may_answer("claims")):
        return
    readers = [one for one in (run.models.extract, run.models.claims) if one is not None]
    known: dict[str, Context] = {}
    for start in range(0, len(units), 500):
        for id, text, context in stored(run.snapshot(), units[start : start + 500], known):
            if any(asker.answered(key_of(*one.question(text, context))) for one in readers):
                yield id


# ---- what became of it --------------------------------------------------------------------------


def _result(run: Run, plan: Plan, status: str) -> IndexResult:
    rows = run.snapshot().rows("pending").to_pylist() if run.manifest else []
    rows.sort(key=lambda row: row["id"])
    pending, degraded = (
        dict(sorted(Counter(row["kind"] for row in rows).items())),
        _degraded(run, rows),
    )
    if run.models.embedding and (without := vectors.missing(run.snapshot())):
        pending["embedding"] = without
        why = run.models.asker.why_no_vectors
        degraded.append({"kind": "embedding", "id": "", "document": "", "reason": why})
    capped = ""
    if run.capped:
        one = len(run.capped) == 1
        capped = "1 text unit lists" if one else f"{len(run.capped):,} text units list"
        capped += " more names, or pairs of names, than the graph keeps of one: "
        capped += "search_text finds the others."
    lost = sorted(run.losses, key=lambda row: (-row["dropped"] - row["repaired"], row["id"]))
    degraded += _degraded(run, lost, RECORDS)
    counters = run.manifest.counters if run.manifest else {}
    counts = {name: run.counts[name] for name in ("added", "changed", "removed")}
    done = counts["added"] + counts["changed"] + plan.unchanged
    counts |= {"unchanged": plan.unchanged, "documents_total": counters.get("documents", 0)}
    kinds = ("text_units", "passages", "entities", "relationships", "communities")
    return IndexResult(
        status=status,
        corpus=run.folder.name,
        done=done,
        total=done + len(plan.errors),
        errors=plan.errors,
        counts=counts | {kind: counters.get(kind, 0) for kind in kinds},
        skipped=dict(sorted(plan.found.skipped.items())),
        usage=run.models.asker.spent().record(),
        pending=pending,
        degraded=degraded,
        hint=" ".join(filter(None, [*plan.notes, capped, run.models.asker.note])),
        losses=totals(run.losses),
        seconds={name: round(value, 3) for name, value in run.seconds.items()},
    )


def _degraded(run: Run, rows: list[Row], kind: str = "") -> list[dict[str, str]]:
    """The first rows of `pending` or `losses`, with their aliases; of `kind`, where given."""
    shown, texts = rows[:DEGRADED], ("text_units", "t")
    ids = lists_of((TABLES_OF.get(row["kind"], texts), row["subject"]) for row in shown)
    alias: dict[str, str] = {}
    for (table, letter), subjects in ids.items():
        found = run.snapshot().by_key(table, sorted(subjects), "id", ["id", "n"]).to_pylist()
        alias |= {row["id"]: f"{letter}{row['n']}" for row in found}
    found = []
    for row in shown:
        subject = alias.get(row["subject"], row["subject"])
        own = {"kind": kind or row["kind"], "id": subject}
        found.append(own | {"document": row["uri"], "reason": row["reason"]})
    return found
