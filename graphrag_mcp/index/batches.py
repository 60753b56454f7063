"""The documents of a call, derived and committed in batches.

A batch is held back while the next is read: plug-ins link all documents with the last, and a model's
answers about a batch are on their way meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from graphrag_mcp.executors import InProcess
from graphrag_mcp.index import documents, pictures
from graphrag_mcp.index.chunk import ChunkParams, chunk_params, most_units
from graphrag_mcp.index.derive import Before, DocumentRows, assign_numbers, derive, derive_item, metadata_json
from graphrag_mcp.index.documents import Batch
from graphrag_mcp.index.run import Row, Run
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources import renames
from graphrag_mcp.sources.diff import Edit, Plan
from graphrag_mcp.sources.document import LINKS, PLACES, Document
from graphrag_mcp.store.schema import DOCUMENT_LOG
from graphrag_mcp.store.tables import notes_of, rows_of
from graphrag_mcp.types import IndexRequest

# A kill costs at most one batch of work. What is left joins the last batch when it is less than
# half of one more: a short tail would cost a merge, and a compaction of the indexes, of its own.
BATCH_PASSAGES = 2000


@dataclass(frozen=True, slots=True)
class Work:
    """What a call has to derive: `total` documents about, among them those of the uris `again`, though
    their files did not change. `rederive`: these are all that there are."""

    total: int
    again: set[str]
    rederive: bool


def write(run: Run, plan: Plan, request: IndexRequest, work: Work, numbers: dict[str, int]) -> Batch | None:
    """Commits all batches but the last, which is returned; None where there is none."""
    previous: Batch | None = None
    if run.models.extract is not None:
        run.models.asker.warm()
    batches = _batches(run, plan, request, work, numbers)
    while True:
        with run.stage("documents"):
            batch = next(batches, None)
        if batch is None:
            return previous
        if previous is not None:
            documents.commit_batch(run, plan.found.sources, previous, numbers)
        previous = batch


def _batches(run: Run, plan: Plan, request: IndexRequest, work: Work, numbers: dict[str, int]) -> Iterator[Batch]:
    """The edits of the call in batches; a batch's texts are asked about while it is being read."""
    done = 0
    batch, params = Batch(imports=run.apart), chunk_params(run.settings)
    renamed, there = _renames(run, plan), {*plan.live}

    def add(edit: Edit, derived: DocumentRows | None) -> None:
        run.check()
        known, document = plan.live.get(edit.uri), edit.document
        if document is None:
            there.discard(edit.uri)
            removed = plan.live[edit.uri]
            batch.gone.add(removed["id"])
            batch.log.append(_log_row("gone", edit.uri, removed["n"]))
            run.counts["removed"] += 1
            return
        if edit.what == "relog":
            n = plan.live[edit.uri]["n"]
            batch.log.append(_log_row("put", edit.uri, n, document))
            return
        imported = run.imports.of(document) if run.imports else None
        before = Before()
        if known is not None:
            rederive = work.rederive or imported is not None or _was_note(run, known["id"])
            before = _before(run, known, rederive)
            batch.gone.add(known["id"])
        rows = derived or derive(document, params, before, imported, run.check)
        assign_numbers(rows, before, numbers)
        if known is None:
            there.add(edit.uri)
            if edit.uri == document.file:
                renamed.add(edit.uri, document.text, document.file_sha)
        if edit.what == "put":
            plan.quota.text_units += len(rows.units)
            batch.log.append(_log_row("put", edit.uri, rows.document["n"], document))
            run.counts["changed" if known else "added"] += 1
        batch.add(rows)
        if run.imports is not None and imported is not None:
            batch.imports += run.imports.rows(document)
        elif run.models.extract is not None and not rows.plugin and not rows.note:
            batch.ask(run, document, rows)

    asker = run.models.asker
    describe = None
    if request.method != "fast":
        describe = pictures.describer(asker, run.folder, run.settings, run.take)
    found = planning.edits(run.folder, run.manifest, plan, request, run.settings, work.again, describe)
    for edit, derived in _derived(run, plan, chain(found, run.brought), work.total):
        add(edit, derived)
        done += 1
        size = batch.size
        full = size >= BATCH_PASSAGES and (work.total - done >= BATCH_PASSAGES // 2 or size >= 2 * BATCH_PASSAGES)
        if full or done % 50 == 0:
            run.progress("documents", min(done, work.total), max(work.total, done))
        if full:
            renamed.record(plan.found.sources, there)  # a kill may end the run here
            yield batch
            batch = Batch()
    renamed.record(plan.found.sources, there)
    if batch.log or batch.gone or batch.tables or batch.imports:
        yield batch
    run.progress("documents", max(work.total, done), max(work.total, done))


def _renames(run: Run, plan: Plan) -> renames.Renames:
    """The files that are gone and that links name, with their texts where others come."""
    known = renames.read(run.manifest.sources) if run.manifest else {}
    snapshot = run.snapshot_before() if plan.gone else None
    if snapshot is None:
        return renames.Renames(known, {}, {})
    targets = snapshot.column("links", "target") if "links" in snapshot.manifest.tables else ()
    files = [uri for uri in plan.gone if plan.live[uri]["file"] == uri]
    named = {*renames.linked([*files, *known], targets)}
    known = {old: new for old, new in known.items() if old in named}
    named |= {*known.values()}
    ids = {plan.live[uri]["id"]: uri for uri in files if uri in named}
    texts: dict[str, str] = {}
    if any(file.uri not in plan.by_file for file in plan.to_read):
        rows = snapshot.by_key("documents", [*ids], "id", ["id", "text"])
        texts = {ids[id]: text for id, text in rows_of(rows)}
    hashes = {uri: plan.live[uri]["file_sha"] for uri in ids.values()}
    return renames.Renames(known, texts, hashes)


def _derived(run: Run, plan: Plan, edits: Iterator[Edit], total: int) -> Iterator[tuple[Edit, DocumentRows | None]]:
    """The edits in order, each with what an executor has computed of its document; None where it is
    computed here, when it is needed."""
    waiting: deque[tuple[Edit, int]] = deque()
    ahead = 0  # text units of what waits, at most
    params = chunk_params(run.settings)

    def read() -> Iterator[tuple[Document | None, ChunkParams]]:
        """What an executor is given: as much ahead as cannot reach the limit of text units, so that
        the call ends with the same document whatever the engine."""
        nonlocal ahead
        while not waiting or plan.quota.text_units + ahead < plan.quota.settings.max_text_units:
            if (edit := next(edits, None)) is None:
                return
            document = edit.document if edit.what != "relog" else None
            units = most_units(document.text, params) if document else 0
            waiting.append((edit, units))
            ahead += units
            yield document, params

    executor = run.spread(total) if run.imports is None else InProcess()
    if not isinstance(executor, InProcess):
        for derived in executor.map(derive_item, read(), lambda item: len(item[0].text) if item[0] else 0):
            edit, units = waiting.popleft()
            ahead -= units
            yield edit, derived
    for edit in edits:
        yield edit, None


def _log_row(op: str, uri: str, n: int, document: Document | None = None) -> Row:
    row: Row = dict.fromkeys(DOCUMENT_LOG.names, "") | {"op": op, "uri": uri, "n": n}
    if document is not None:
        columns = ("id", "file", "file_sha", "title", "text", "created")
        row |= {name: getattr(document, name) for name in columns}
        kept = {PLACES: document.places, LINKS: document.links}
        kept = {name: value for name, value in kept.items() if value}
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
