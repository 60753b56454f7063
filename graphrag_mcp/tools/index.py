"""Tools for indexing: index_documents, graph_status, cancel_job. How long a call waits never
changes what its job does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import anyio.to_thread
from mcp.types import CallToolResult
from pydantic import BeforeValidator

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index.losses import RECORDS, told, totals
from graphrag_mcp.jobs import queue, run, start
from graphrag_mcp.jobs.queue import FINAL, Job
from graphrag_mcp.tools.contract import (
    Corpus,
    Cursor,
    Flag,
    JobId,
    Strings,
    Text,
    Texts,
    argument,
    as_text,
    as_word,
    choice,
    number,
)
from graphrag_mcp.tools.results import Ctx, clamp, remark, reply, serve, telling
from graphrag_mcp.types import IndexRequest, IndexResult, InlineText, Result, StatusResult

if TYPE_CHECKING:
    from pathlib import Path

    from graphrag_mcp.store.tables import Snapshot

LONGEST_WAIT = 50  # as documented; the last 2 s of it are for the reply, hosts want it within 50
SHOWN_ERRORS = 50  # in the structured result; the text shows 10
RECENT_JOBS = 5
SHOWN_LOSSES = 5  # text units whose losses are told with their reasons
_TAKEN = (
    "Taken are text, Markdown, HTML, tables (csv, json, jsonl, parquet) and source code; with the extra "
    "graphrag-mcp[docs] PDF and office documents too."
)
_TEXTS = 'texts=[{"id": "a", "text": "..."}]'

Paths = argument(Strings, "Folders or files", "paths path folder folders files file directory dir")
Method = choice(
    ("auto", "fast", "llm", "agent"),
    "auto: with the server's model if it has one; fast: without; agent: you read them (claim_work)",
)
RemoveMissing = argument(
    Flag,
    "Allow removing over half of the corpus: its files are gone",
    "remove_missing delete_missing prune",
)
Wait = number(20, "0 to 50; longer work goes on as a job", "wait_seconds wait timeout")
Listed = argument(
    Annotated[
        Literal["counts", "all", "pending", "processing", "processed", "failed"],
        BeforeValidator(
            lambda value: {"": "counts", "any": "all"}.get(str(as_word(value)), as_word(value))
        ),
    ],
    "List the job's",
    "documents state states status filter",
)


def counted(count: int, things: str) -> str:
    # its patterns are compiled by a call, not when a server starts
    from graphrag_mcp.text.terms import counted as said

    return said(count, things)


async def index_documents(
    ctx: Ctx,
    paths: Paths = [],
    texts: Texts = [],
    corpus: Corpus = "",
    method: Method = "auto",
    remove_missing: RemoveMissing = False,
    wait_seconds: Wait = 20,
) -> Annotated[CallToolResult, IndexResult]:
    """Build or update the knowledge graph from folders, files or texts. Call it first, and after
    changes: only what changed is done again. A folder is synchronised: files that vanished from it
    leave the index."""
    desk = ctx.request_context.lifespan_context
    wait = clamp("wait_seconds", wait_seconds, 0, LONGEST_WAIT)
    home = desk.app.home

    def begin() -> tuple[Job, list[dict[str, str]]]:
        name, request, errors = _request(desk.app, paths, texts, corpus, method, remove_missing)
        return start.start(desk.app.settings, name, request), errors

    with telling("index_documents"):
        # Shielded for its moment: a job that has started is always written down and named.
        with anyio.CancelScope(shield=True):
            job, errors = await anyio.to_thread.run_sync(begin, limiter=desk.threads)
        job = await _watch(
            ctx, home, job, min(wait, LONGEST_WAIT - 2), lambda job: job.status in FINAL
        )
        result = await anyio.to_thread.run_sync(
            lambda: reply(_outcome(home, job, errors)), limiter=desk.threads
        )
        result.is_error = job.status == "failed"
        return result


SHOWN_CHANGES = 100  # lines on what changed

Since = argument(
    Annotated[Text, BeforeValidator(str)], "Day or generation: what changed since", "since after"
)
AboutEntity = argument(Text, "With since: what is new on this entity", "about entity")


async def graph_status(
    ctx: Ctx,
    corpus: Corpus = "",
    job_id: JobId = "",
    documents: Listed = "counts",
    cursor: Cursor = "",
    since: Since = "",
    about: AboutEntity = "",
) -> Annotated[CallToolResult, StatusResult]:
    """What is indexed: corpora, counts, levels, generation, model in use, recent jobs. With job_id:
    that job's progress."""

    def work(app: App) -> Result:
        job = job_id.strip()
        if since.strip():
            return _changes(app, corpus.strip(), since, about)
        if not job and (documents != "counts" or cursor.strip()):
            job = _newest(app, corpus.strip())
        return (
            _job_status(app, job, documents, cursor.strip()) if job else status(app, corpus.strip())
        )

    late = StatusResult(
        text="graph_status was not finished in time.", hint="Try again.", next_call="graph_status()"
    )
    return await serve(ctx, "graph_status", work, late)


def _changes(app: App, corpus: str, since: str, about: str) -> StatusResult:
    """What came, changed and went since a generation or a day."""
    from graphrag_mcp.doctor.generations import changes, generation_of, told

    name = app.corpus_for_reading(corpus)
    folder = app.folder(name)
    found = changes(folder, generation_of(folder, since), about)
    lines = told(found)
    more = len(lines) - SHOWN_CHANGES
    text = "\n".join(lines[:SHOWN_CHANGES]) + (f"\nand {more} more lines." if more > 0 else "")
    return StatusResult(corpus=name, generation=found.generation, text=text, truncated=more > 0)


async def cancel_job(job_id: JobId, ctx: Ctx) -> Annotated[CallToolResult, StatusResult]:
    """Stop an indexing job. What it committed stays; index_documents goes on from there."""
    desk = ctx.request_context.lifespan_context
    with telling("cancel_job"):
        job = await anyio.to_thread.run_sync(
            start.cancel, desk.app.home, job_id.strip(), limiter=desk.threads
        )
        job = await _watch(ctx, desk.app.home, job, 5, lambda job: job.status in FINAL)
        if job.status not in FINAL:
            remark("It stops at its next step.")
        return await anyio.to_thread.run_sync(
            lambda: reply(_job_status(desk.app, job.job_id)), limiter=desk.threads
        )


# ---- the request ----------------------------------------------------------------------------------


def _request(
    app: App, paths: list[str], texts: list[Any], corpus: str, method: str, remove_missing: bool
) -> tuple[str, IndexRequest, list[dict[str, str]]]:
    """The corpus, the request, and what is wrong with single texts (the others go in)."""
    found = tuple(str(app.allowed(path)) for path in dict.fromkeys(paths))
    good, errors = _texts(texts)
    if not found and not good:
        if errors:
            what = f"none of the {len(errors)} texts can be used: {errors[0]['reason']}"
            raise BadInput(what, f"Give {_TEXTS}")
        where = ", ".join(map(str, app.settings.roots)) or "GRAPHRAG_MCP_ROOTS, which is not set"
        raise BadInput("there is nothing to index", f'Give paths=["."] (under {where}) or {_TEXTS}')
    name = app.corpus_for_writing(corpus.strip(), found[0] if found else "")
    within = tuple(str(root.resolve()) for root in app.settings.roots)
    wanted = IndexRequest(
        paths=found, texts=good, method=method, remove_missing=remove_missing, within=within
    )
    return name, wanted, errors


def _texts(texts: list[Any]) -> tuple[tuple[InlineText, ...], list[dict[str, str]]]:
    good: dict[str, InlineText] = {}
    errors: list[dict[str, str]] = []
    for at, item in enumerate(texts):
        body = {"text": item} if isinstance(item, str) else item
        reason = _wrong_text(body)
        if reason:
            errors.append({"path": f"texts[{at}]", "reason": reason})
            continue
        id, title = as_text(body.get("id")), as_text(body.get("title"))
        text = InlineText(body["text"], id, title, body.get("metadata") or {})
        if id and id in good:
            reason = f"id {id[:60]!r} is given twice; the later text is used"
            errors.append({"path": f"texts[{at}]", "reason": reason})
        good[text.id or f"#{at}"] = text
    return tuple(good.values()), errors


def _wrong_text(body: Any) -> str:
    """Why a text cannot be used, or ""."""
    if not isinstance(body, dict):
        return "it is neither a string nor an object with text"
    if not isinstance(body.get("text"), str) or not body["text"].strip():
        return "text is missing or empty"
    if not isinstance(as_text(body.get("id")), str) or not isinstance(
        as_text(body.get("title")), str
    ):
        return "id and title must be strings"
    if not isinstance(body.get("metadata") or {}, dict):
        return "metadata must be an object"
    return ""


# ---- watching a job ---------------------------------------------------------------------------------


async def _watch(
    ctx: Ctx, home: Any, job: Job, seconds: float, enough: Callable[[Job], bool]
) -> Job:
    """The job as it is when `enough` or when the time is up, reporting progress at most twice a
    second.
    """
    began = told = time.monotonic()
    pause = 0.01
    while not enough(job) and time.monotonic() - began < seconds:
        await anyio.sleep(min(pause, max(0.0, seconds - (time.monotonic() - began))))
        pause = min(pause * 1.3, 0.1 if time.monotonic() - began < 5 else 0.25)
        job = await anyio.to_thread.run_sync(queue.load, home, job.job_id, abandon_on_cancel=True)
        now = time.monotonic()
        if now - told >= 0.5:
            told = now
            # Phases start again at 0, seconds only grow: progress must never go back.
            await ctx.report_progress(round(now - began, 2), None, _where(job))
    return job


def _where(job: Job) -> str:
    if job.status == "running" and job.phase:
        return f"{job.phase} {job.done} of {job.total}" if job.total else job.phase
    return (job.phase or "waiting for its turn") if job.status == "queued" else job.status


def _outcome(home: Path, job: Job, errors: list[dict[str, str]]) -> IndexResult:
    """The job as the result of index_documents."""
    result = IndexResult(**(job.result or {"done": job.done, "total": job.total}))
    result.job_id, result.status, result.corpus = job.job_id, job.status, job.corpus
    every = [*errors, *result.errors]
    result.errors = every[:SHOWN_ERRORS]
    lines = [_headline(home, job, result), *(f"First: {one}." for one in job.repaired)]
    if result.skipped:
        lines.append(
            "Skipped: "
            + ", ".join(f"{count} {reason}" for reason, count in result.skipped.items())
            + "."
        )
    if every:
        shown = [f"- {error.get('path', '')}: {error.get('reason', '')}" for error in every[:10]]
        more = [f"- and {len(every) - 10} more"] if len(every) > 10 else []
        lines.append("\n".join([f"Not indexed ({len(every)}):", *shown, *more]))
    if result.usage.get("calls"):
        lines.append(f"Asked models {counted(result.usage['calls'], 'times')}.")
    if result.pending:
        open_ = ", ".join(f"{count} {kind}" for kind, count in result.pending.items())
        from graphrag_mcp.llm.asker import FOR_AGENTS

        why = next((one["reason"] for one in result.degraded), "")
        if why == FOR_AGENTS:
            result.next_call = f'claim_work(corpus="{job.corpus}")'
            lines.append(
                f"Searchable now by rule. For you to read with claim_work and submit_work: {open_}."
            )
        else:
            lines.append(
                f"A model has still to answer: {open_} ({why}). Call index_documents again to go on."
            )
    if said := told(result.losses):
        why = [
            f"- {one['id']}: {one['reason']}" for one in result.degraded if one["kind"] == RECORDS
        ]
        lines.append("\n".join([f"Records of the replies: {said}.", *why[:SHOWN_LOSSES]]))
    result.degraded = result.degraded[:SHOWN_ERRORS]
    if job.status not in FINAL:
        result.poll_after_ms = 2000
        result.next_call = f'graph_status(job_id="{job.job_id}")'
    elif job.status == "done" and not _nothing(job, result):
        result.next_call = result.next_call or f'local_search(query="...", corpus="{job.corpus}")'
    result.text = "\n".join(lines)
    return result


def _headline(home: Path, job: Job, result: IndexResult) -> str:
    counts = result.counts
    if job.status == "failed":
        return f"Indexing corpus {job.corpus} failed ({job.job_id}): {job.error}"
    if job.status not in FINAL:
        goes_on = f"Indexing corpus {job.corpus} goes on as {job.job_id}: {_where(job)}."
        if trouble := start.trouble(home, job.corpus):
            goes_on += f" It is held up ({trouble}) and tried again until that is put right."
        return goes_on
    changes = _listed(counts, "added", "changed", "removed", "unchanged")
    held = _listed(
        counts, "documents_total", "text_units", "entities", "relationships", "communities"
    )
    if job.status == "done" and result.errors and not result.done and not counts.get("removed"):
        return f"Nothing was indexed: none of what was named could be read. Corpus {job.corpus} is as it was."
    if _nothing(job, result):
        paths = job.request.get("paths", ())
        where = ", ".join(map(repr, paths[:3])) + (
            f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        )
        return f"Nothing to index was found under {where}, so there is no corpus {job.corpus} yet. {_TAKEN}"
    if (
        job.status == "done"
        and job.request.get("paths")
        and not result.total
        and not counts.get("removed")
    ):
        changes = "nothing to index was found there"
    verb = "is up to date" if job.status == "done" else "was cancelled; what was committed stays"
    return f"Corpus {job.corpus} {verb}: {changes or 'nothing to do'}." + (
        f" It holds {held}." if held else ""
    )


def _nothing(job: Job, result: IndexResult) -> bool:
    """Done, and there is still no index: what was named holds nothing that is taken."""
    return job.status == "done" and not result.total and not result.counts.get("documents_total")


def _listed(counts: dict[str, int], *kinds: str) -> str:
    shown = [
        counted(counts[kind], kind.removesuffix("_total")) for kind in kinds if counts.get(kind)
    ]
    return ", ".join(shown)


# ---- status -----------------------------------------------------------------------------------------


def _job_status(app: App, job_id: str, listed: str = "counts", cursor: str = "") -> StatusResult:
    job = queue.load(app.home, job_id)
    outcome = _outcome(app.home, job, [])
    result = StatusResult(
        corpus=job.corpus, corpora=app.corpora(), jobs=[_view(job)], counts=outcome.counts
    )
    lines = [f"{job.job_id}: {job.status}. {outcome.text}"]
    shown, result.states, more = run.page(
        app.home, job, "all" if listed == "counts" else listed, cursor
    )
    if result.states:
        lines.append(
            "Documents: "
            + ", ".join(f"{count} {state}" for state, count in result.states.items())
            + "."
        )
    if listed != "counts" or cursor:
        result.documents, result.next_cursor = shown, more
        lines += [f"- {one['uri']}: " + (one["error"] or one["state"]) for one in shown]
        lines += [] if shown else [f"None of them is {listed}."]
    result.text, result.next_call = "\n".join(lines), outcome.next_call
    return result


def _newest(app: App, corpus: str) -> str:
    """The newest job of a corpus. NotFound where there is none."""
    started = queue.listing(app.home, corpus)
    if not started:
        raise NotFound("no job has been started there", "Call index_documents first")
    return started[0].job_id


def status(app: App, corpus: str) -> StatusResult:
    known = app.corpora()
    if not known and not corpus:
        running = queue.listing(app.home)[:RECENT_JOBS]
        result = StatusResult(text="Nothing is indexed yet.", jobs=[_view(job) for job in running])
        result.text += "".join(f"\n{_job_line(job)}" for job in running)
        result.next_call = 'index_documents(paths=["."])'
        return result
    try:
        name = app.corpus_for_reading(corpus)
    except NotFound as error:
        if corpus and (
            started := queue.listing(app.home, corpus)
        ):  # its first job has not committed yet
            return _job_status(app, started[0].job_id)
        if corpus:
            raise
        listed = "\n".join(
            f"- {one}: {counted(_documents(app, one), 'documents')}" for one in known
        )
        # What to do stands outside of the fence: inside it our own advice would be flagged as
        # someone's order.
        return StatusResult(
            text=f"{error.what}.\n{listed}", corpora=known, hint=f"{error.next_move}."
        )
    return _corpus_status(app, name, known)


def _corpus_status(app: App, name: str, known: list[str]) -> StatusResult:
    snapshot = app.snapshot(name)
    manifest = snapshot.manifest
    kinds = tuple(
        "documents text_units passages entities relationships communities reports".split()
    )
    counts = {kind: snapshot.count(kind) for kind in kinds}
    levels: dict[str, int] = {}
    for level in snapshot.rows("communities", columns=["level"]).column("level").to_pylist():
        levels[str(level)] = levels.get(str(level), 0) + 1
    recent = queue.listing(app.home, name)[:RECENT_JOBS]
    result = StatusResult(
        corpus=name,
        corpora=known,
        generation=manifest.generation,
        counts=counts,
        jobs=[_view(job) for job in recent],
        levels=dict(sorted(levels.items(), key=lambda item: int(item[0]))),
        stale=list(manifest.stale),
    )
    lines = [
        f"Corpus {name}, generation {manifest.generation} of {manifest.created or 'an unknown time'}.",
        ", ".join(counted(count, kind) for kind, count in counts.items()) + ".",
        "Communities per level: "
        + (", ".join(f"{level}: {n}" for level, n in result.levels.items()) or "none")
        + ".",
        _models(app, snapshot, result),
    ]
    folders = [
        f"{label} ({source.get('path', '')})" for label, source in sorted(manifest.sources.items())
    ]
    lines += [f"Folders: {', '.join(folders[:10])}."] if folders else []
    lines += _losses(snapshot, result)
    lines += (
        [f"Out of date until the next indexing: {', '.join(manifest.stale)}."]
        if manifest.stale
        else []
    )
    if manifest.of_another_release():
        result.hint = "Another release read these texts, so some words are not found: index_documents reads them again."
    lines += _asked_again(app, snapshot)
    lines += [_job_line(job) for job in recent]
    if others := [
        f"{one} ({counted(_documents(app, one), 'documents')})" for one in known if one != name
    ]:
        lines.append(
            "Other corpora: " + ", ".join(others[:20]) + (" and more." if len(others) > 20 else ".")
        )
    result.text = "\n".join(lines)
    return result


def _asked_again(app: App, snapshot: Snapshot) -> list[str]:
    """What the next run asks the model again because prompts or settings are others."""
    from graphrag_mcp.index import models  # with it the whole of indexing is loaded

    kinds = models.asked_again(app.settings, snapshot.manifest, snapshot.folder)
    methods = snapshot.rows("reports", columns=["method"])["method"].to_pylist() if kinds else []
    count = {
        "texts": counted(snapshot.count("text_units"), "text_units"),
        "claims": f"the claims of {counted(snapshot.count('text_units'), 'text_units')}",
        "reports": counted(sum(one.startswith("llm") for one in methods), "reports"),
    }
    if not kinds:
        return []
    listed = ", ".join(count[kind] for kind in kinds)
    return [f"The next index_documents asks the model again: {listed} (other prompts or settings)."]


def _losses(snapshot: Snapshot, result: StatusResult) -> list[str]:
    """What was lost of the replies that this index is made of; fills the result's field."""
    rows = sorted(
        snapshot.rows("losses").to_pylist(),
        key=lambda row: (-row["dropped"] - row["repaired"], row["id"]),
    )
    result.losses = totals(rows)
    if not rows:
        return []
    shown = rows[:SHOWN_LOSSES]
    units = snapshot.by_key(
        "text_units", [row["subject"] for row in shown], "id", ["id", "n"]
    ).to_pylist()
    numbers = {row["id"]: f"t{row['n']}" for row in units}
    said = [f"- {numbers.get(row['subject'], 'a text unit')}: {row['reason']}" for row in shown]
    return ["\n".join([f"Records of the replies: {told(result.losses)}.", *said])]


def _models(app: App, snapshot: Snapshot, result: StatusResult) -> str:
    """Who is the model, and what it has still to answer; fills the result's fields."""
    settings = app.settings
    if settings.chat_model:
        result.model = f"llm:{settings.chat_model}"
    pending: dict[str, int] = {}
    for kind in snapshot.rows("pending", columns=["kind"])["kind"].to_pylist():
        pending[kind] = pending.get(kind, 0) + 1
    result.pending = dict(sorted(pending.items()))
    vectors = f", vectors by {settings.embedding_model}" if settings.embedding_model else ""
    if settings.chat_model:
        said = f"Model: {result.model}{vectors}. Indexing uses it; searches with answer=true."
    else:
        how = "To turn one on, set GRAPHRAG_MCP_CHAT_MODEL where the server is started."
        said = f"Model: {result.model}{vectors}. Searches return cited context and you write the answer. {how}"
    if pending:
        who = "Waiting for an agent (claim_work) or a model:"
        if settings.chat_model:
            who = "It has still to answer"
        said += f" {who} {', '.join(f'{count} {kind}' for kind, count in result.pending.items())}."
    return said


def _documents(app: App, corpus: str) -> int:
    from graphrag_mcp.store import manifest

    held = manifest.read(app.folder(corpus))
    return held.counters.get("documents", 0) if held else 0


def _job_line(job: Job) -> str:
    more = [_where(job)] if job.status == "running" else [job.error] if job.error else []
    return f"{job.job_id} ({job.started[:19]}): " + ", ".join([job.status, *more])


def _view(job: Job) -> dict[str, Any]:
    shown = "job_id corpus status phase done total error started updated repaired".split()
    return {name: getattr(job, name) for name in shown}
