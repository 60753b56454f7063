"""Tools for indexing. How long a call waits never changes what its job does."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import anyio
import anyio.to_thread
from mcp.types import CallToolResult

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, Damaged, NotFound
from graphrag_mcp.index.losses import RECORDS, refused_kinds, totals
from graphrag_mcp.index.losses import in_words as losses_told
from graphrag_mcp.jobs import queue, run, start
from graphrag_mcp.jobs.queue import FINAL, Job
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.text.terms import by_reason, counted
from graphrag_mcp.tools import contract
from graphrag_mcp.tools.contract import Ctx, clamp, desk_of, remark, reply, serve, telling
from graphrag_mcp.tools.limits import too_much
from graphrag_mcp.trust.fencing import SUBJECT, TELL_PATHS
from graphrag_mcp.types import IndexRequest, IndexResult, InlineText, Result, StatusResult, is_object

if TYPE_CHECKING:
    from graphrag_mcp.store.manifest import Manifest
    from graphrag_mcp.store.tables import Snapshot

T = TypeVar("T")
LONGEST_WAIT = 50  # as documented; the last 2 s of it are for the reply, hosts want it within 50
SHOWN_ERRORS = 50  # in the structured result; the text shows 10
SHOWN_CHANGES = 100  # lines on what changed
RECENT_JOBS = 5
LONGEST = {"id": 300, "title": 1_000}  # characters of what is stored of a text
POLL = 0.05  # seconds between two looks at a job
SHOWN_UNREAD = 10
SHOWN_LOSSES = 5  # text units whose losses are told with their reasons
_TAKEN = (
    "Taken are text, Markdown, HTML, tables (csv, json, jsonl, parquet), source code, PDF, office documents, "
    "mail, subtitles and zips of these; pictures with the extra graphrag-mcp[ocr]."
)
SUMMARISES = 'has it write summaries and reports (method="llm" reads every text in full)'
_TEXTS = 'texts=[{"id": "a", "text": "..."}]'


async def index_documents(
    ctx: Ctx,
    paths: list[str] = [],
    texts: contract.Objects = [],
    corpus: str = "",
    method: Literal["auto", "fast", "light", "llm", "agent"] = "auto",
    remove_missing: bool = False,
    wait_seconds: int = 20,
) -> Annotated[CallToolResult, IndexResult]:
    """Build or update the index from folders, files or texts: first, and after changes. It reads only
    changed files, and removes deleted files."""
    desk = desk_of(ctx)
    wait = clamp("wait_seconds", wait_seconds, 0, LONGEST_WAIT)

    def begin() -> tuple[Job, list[dict[str, str]]]:
        name, request, errors = _request(desk.app, paths, texts, corpus, method, remove_missing)
        return start.start(desk.app.settings, name, request), errors

    with telling("index_documents"):
        job, errors = await shielded(desk, begin)
        job = await watch(ctx, job, min(wait, LONGEST_WAIT - 2))
        result = await _aside(desk, lambda: reply(_outcome(desk.app.home, job, errors)))
        result.is_error = job.status == "failed"
        return result


async def graph_status(
    ctx: Ctx,
    corpus: str = "",
    job_id: str = "",
    documents: Literal["counts", "all", "pending", "processing", "processed", "failed"] = "counts",
    cursor: contract.Cursor = "",
    since: str = "",
    about: str = "",
) -> Annotated[CallToolResult, StatusResult]:
    """What is indexed: corpora, counts, model, jobs, what changed."""

    def work(app: App) -> Result:
        name, job, page = corpus.strip(), job_id.strip(), cursor.strip()
        if since.strip() or about.strip():
            return _changes(app, name, since, about)
        if not job and (documents != "counts" or page):
            if not (started := queue.listing(app.home, name)):
                raise NotFound("no job has been started there", "Call index_documents first")
            job = started[0].job_id
        return _job_status(app, job, documents, page) if job else status(app, name)

    return await serve(ctx, "graph_status", work)


async def cancel_job(job_id: str, ctx: Ctx) -> Annotated[CallToolResult, StatusResult]:
    """Stop an indexing job. What it stored stays; index_documents continues from there."""
    desk = desk_of(ctx)
    with telling("cancel_job"):
        job = await _aside(desk, lambda: start.cancel(desk.app.home, job_id.strip()))
        job = await watch(ctx, job, 5)
        if job.status not in FINAL:
            remark("It stops at its next step.")
        return await _aside(desk, lambda: reply(_job_status(desk.app, job.job_id)))


async def shielded(desk: contract.Desk, work: Callable[[], T]) -> T:
    """Work that a cancelled call does not stop: a job that has started is written down and named."""
    with anyio.CancelScope(shield=True):
        return await _aside(desk, work)
    raise AssertionError("a shielded scope is not cancelled")


async def _aside(desk: contract.Desk, work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work, limiter=desk.threads)


# ---- the request ----------------------------------------------------------------------------------


def _request(
    app: App, paths: list[str], texts: list[Any], corpus: str, method: str, remove_missing: bool
) -> tuple[str, IndexRequest, list[dict[str, str]]]:
    """The corpus, the request, and what is wrong with single texts (the others go in)."""
    if not paths and not texts:
        corpus, paths = _indexed(app, corpus.strip())
    found = tuple(str(app.allowed(path)) for path in dict.fromkeys(paths))
    good, errors = _texts(texts)
    if not found and not good:
        if errors:
            what = f"none of the {len(errors)} texts can be used: {errors[0]['reason']}"
            raise BadInput(what, f"Give {_TEXTS}")
        where = ", ".join(map(str, app.settings.roots)) or "GRAPHRAG_MCP_ROOTS, which is not set"
        raise BadInput("there is nothing to index", f'Give paths=["."] (under {where}) or {_TEXTS}')
    name = app.corpus_to_update(corpus.strip(), found)
    if found and app.settings.notes and _notes_apart(app, name, base := app.notes_folder()):
        found += (str(base),)
    within = tuple(str(root.resolve()) for root in app.settings.roots)
    return name, IndexRequest(found, good, method, remove_missing, within=within), errors


def _indexed(app: App, corpus: str) -> tuple[str, list[str]]:
    """The corpus that a call without paths and texts updates, and the folders and files that it was made of;
    no paths where nothing is indexed yet."""
    if not app.corpora():
        return corpus, []
    name = corpus or app.corpus_for_reading()
    manifest = manifests.read(app.folder(name))
    sources = manifest.sources.values() if manifest else ()
    return name, [source["path"] for source in sources if source.get("path")]


def _notes_apart(app: App, corpus: str, base: Path) -> bool:
    """Do notes of this corpus lie in the folder `base`, and in no other folder of it? What people edit there is
    indexed with their documents, and what was written before a process ended as well."""
    from graphrag_mcp.notes import folder

    manifest = manifests.read(app.folder(corpus))
    sources = [Path(source["path"]) for source in (manifest.sources.values() if manifest else ()) if source.get("path")]
    has_notes = base in sources or folder.marked(base, corpus)
    return has_notes and not any(base != path and base.is_relative_to(path) for path in sources)


def _tells_paths() -> bool:
    """May the caller know where folders lie? One with a token may sit at another machine."""
    return TELL_PATHS.get() or not SUBJECT.get()


def _texts(texts: list[Any]) -> tuple[tuple[InlineText, ...], list[dict[str, str]]]:
    good: dict[str, InlineText] = {}
    errors: list[dict[str, str]] = []
    for at, item in enumerate(texts):
        body: Any = {"text": item} if isinstance(item, str) else item
        reason = _wrong_text(body)
        if not reason:
            id, title = contract.as_text(body.get("id")), contract.as_text(body.get("title"))
            if id and id in good:
                reason = f"id {id[:60]!r} is given twice; the later text is used"
            good[id or f"#{at}"] = InlineText(body["text"], id, title, body.get("metadata") or {})
        if reason:
            errors.append({"path": f"texts[{at}]", "reason": reason})
    return tuple(good.values()), errors


def _wrong_text(body: Any) -> str:
    """Why a text cannot be used, or ""."""
    if not is_object(body):
        return "it is neither a string nor an object with text"
    if not isinstance(body.get("text"), str) or not body["text"].strip():
        return "text is missing or empty"
    if not all(isinstance(contract.as_text(body.get(name)), str) for name in ("id", "title")):
        return "id and title must be strings"
    for name, most in LONGEST.items():
        text = contract.as_text(body.get(name))
        if len(text) > most:
            return f"{name} has {len(text):,} characters, and may have up to {most:,}"
    metadata: Any = body.get("metadata") or {}
    if not is_object(metadata):
        return "metadata must be an object"
    if what := too_much(metadata):
        return f"metadata has {what}"
    return ""


# ---- jobs -----------------------------------------------------------------------------------------


async def watch(ctx: Ctx, job: Job, seconds: float) -> Job:
    """The job when it has ended or the time is up. Reports progress twice a second at most."""
    began = reported = time.monotonic()
    home = desk_of(ctx).app.home
    while job.status not in FINAL and (left := began + seconds - time.monotonic()) > 0:
        await anyio.sleep(min(POLL, left))
        job = await anyio.to_thread.run_sync(queue.load, home, job.job_id, abandon_on_cancel=True)
        now = time.monotonic()
        if now - reported >= 0.5:
            reported = now
            # Phases start again at 0, seconds only grow: progress must never go back.
            await ctx.report_progress(round(now - began, 2), None, _where(job))
    return job


def _where(job: Job) -> str:
    if job.status == "running" and job.phase:
        return f"{job.phase} {job.done} of {job.total}" if job.total else job.phase
    return (job.phase or "waiting for its turn") if job.status == "queued" else job.status


def _outcome(home: Path, job: Job, errors: list[dict[str, str]]) -> IndexResult:
    result = IndexResult(**(job.result or {"done": job.done, "total": job.total}))
    result.job_id, result.status, result.corpus = job.job_id, job.status, job.corpus
    errors = [*errors, *result.errors]
    result.errors = errors[:SHOWN_ERRORS]
    lines = [_headline(home, job, result), *(f"First: {repair}." for repair in job.repaired)]
    if result.skipped:
        paths = by_reason(result.skipped_files)
        named = {
            f"{reason} ({paths[reason]})" if reason in paths else reason: n for reason, n in result.skipped.items()
        }
        lines.append(f"Skipped: {_pairs(named)}.")
    if errors:
        lines.append(f"Not indexed ({len(errors)}):")
        reasons = [f"- {paths}: {reason}" for reason, paths in by_reason(errors).items()]
        lines += reasons[:10] + ([f"- {len(reasons) - 10} more reasons"] if len(reasons) > 10 else [])
    if result.usage.get("calls"):
        lines.append(f"Asked models {counted(result.usage['calls'], 'times')}.")
    if result.pending:
        lines.append(_open_questions(result))
    if losses := losses_told(result.losses):
        lost = [loss for loss in result.degraded if loss["kind"] == RECORDS]
        lines.append(f"Records of the replies: {losses}.")
        lines += [f"- {loss['id']}: {loss['reason']}" for loss in lost[:SHOWN_LOSSES]]
    result.degraded = result.degraded[:SHOWN_ERRORS]
    if job.status not in FINAL:
        result.poll_after_ms = 2000
        result.next_call = f'graph_status(job_id="{job.job_id}")'
    elif job.status == "done" and not _nothing(job, result):
        result.next_call = result.next_call or f'local_search(query="...", corpus="{job.corpus}")'
    result.text = "\n".join(lines)
    return result


def _open_questions(result: IndexResult) -> str:
    """What a model, or the agent in its place, has still to answer."""
    from graphrag_mcp.llm.asker import FOR_AGENTS

    why = next((question["reason"] for question in result.degraded), "")
    if why == FOR_AGENTS:
        result.next_call = f'claim_work(corpus="{result.corpus}")'
        how = "Searchable now by rule. For you to read with claim_work and submit_work"
        return f"{how}: {_pairs(result.pending)}."
    open_ = Counter(result.pending) - Counter(result.refused)
    if not open_:
        return _refused(result.refused)
    again = "Call index_documents again to go on."
    sentence = f"A model has still to answer: {_pairs(open_)} ({why}). {again}"
    return " ".join(filter(None, [sentence, _refused(result.refused)]))


def _refused(counts: Mapping[str, int]) -> str:
    """What no further run asks: the replies were refused twice. "" where there is nothing."""
    if not counts:
        return ""
    ways = "claim_work takes them, or graphrag-mcp index --retry-refused asks again."
    return f"Replies of the model were refused twice: {_pairs(counts)}. {ways}"


def _headline(home: Path, job: Job, result: IndexResult) -> str:
    counts = result.counts
    if job.status == "failed":
        return f"Indexing corpus {job.corpus} failed ({job.job_id}): {job.error}"
    if job.status not in FINAL:
        goes_on = f"Indexing corpus {job.corpus} goes on as {job.job_id}: {_where(job)}."
        if trouble := start.trouble(home, job.corpus):
            goes_on += f" It is held up ({trouble}) and tried again until that is put right."
        return goes_on
    unread = not result.done and not counts.get("removed")
    if job.status == "done" and result.errors and unread:
        return f"Nothing was indexed: none of what was named could be read. Corpus {job.corpus} is as it was."
    if _nothing(job, result):
        paths = job.request.get("paths", ())
        where = ", ".join(map(repr, paths[:3]))
        where += f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        return f"Nothing to index was found under {where}, so there is no corpus {job.corpus} yet. {_TAKEN}"
    changes = _listed(counts, "added", "changed", "removed", "unchanged") or "nothing to do"
    if job.status == "done" and job.request.get("paths") and not result.total and unread:
        changes = "nothing to index was found there"
    kinds = ("documents_total", "text_units", "entities", "relationships", "communities")
    contents = _listed(counts, *kinds)
    verb = "is up to date" if job.status == "done" else "was cancelled; what was committed stays"
    return f"Corpus {job.corpus} {verb}: {changes}." + (f" It holds {contents}." if contents else "")


def _nothing(job: Job, result: IndexResult) -> bool:
    """Done, and there is still no index: what was named holds nothing that is taken."""
    return job.status == "done" and not result.total and not result.counts.get("documents_total")


def _listed(counts: Mapping[str, int], *kinds: str) -> str:
    present = [kind for kind in kinds if counts.get(kind)]
    return ", ".join(counted(counts[kind], kind.removesuffix("_total")) for kind in present)


def _pairs(counts: Mapping[str, int]) -> str:
    """`2 texts, 1 report`, with names as they are."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())


# ---- status -----------------------------------------------------------------------------------------


def _changes(app: App, corpus: str, since: str, about: str) -> StatusResult:
    """What came, changed and went since a generation or a day."""
    from graphrag_mcp.doctor.generations import change_lines, changes, generation_of

    folder = app.fetched(corpus)
    name = folder.name
    found = changes(folder, generation_of(folder, since), about)
    lines = change_lines(found, about)
    more = len(lines) - SHOWN_CHANGES
    text = "\n".join(lines[:SHOWN_CHANGES]) + (f"\nand {more} more lines." if more > 0 else "")
    return StatusResult(corpus=name, generation=found.generation, text=text, truncated=more > 0)


def _job_status(app: App, job_id: str, listed: str = "counts", cursor: str = "") -> StatusResult:
    job = queue.load(app.home, job_id)
    outcome = _outcome(app.home, job, [])
    result = StatusResult(corpus=job.corpus, jobs=[_view(job)], counts=outcome.counts)
    result.corpora = app.corpora()
    lines = [f"{job.job_id}: {job.status}. {outcome.text}"]
    state = "all" if listed == "counts" else listed
    shown, result.states, more = run.page(app.home, job, state, cursor)
    if result.states:
        lines.append(f"Documents: {_pairs(result.states)}.")
    if listed != "counts" or cursor:
        result.documents, result.next_cursor = shown, more
        lines += [f"- {document['uri']}: {document['error'] or document['state']}" for document in shown]
        lines += [] if shown else [f"None of them is {listed}."]
    result.text, result.next_call = "\n".join(lines), outcome.next_call
    return result


def status(app: App, corpus: str) -> StatusResult:
    """What the tool says, without its wire."""
    result = _status(app, corpus)
    result.text += f"\n{warning}" if (warning := app.misnamed()) else ""
    return result


def _status(app: App, corpus: str) -> StatusResult:
    known = app.corpora()
    if not known and not corpus:
        running = queue.listing(app.home)[:RECENT_JOBS]
        text = "\n".join(["Nothing is indexed yet.", *map(_job_line, running)])
        next_call = 'index_documents(paths=["."])'
        return StatusResult(text=text, jobs=[_view(job) for job in running], next_call=next_call)
    try:
        name = app.corpus_for_reading(corpus)
    except NotFound as error:
        if corpus and (started := queue.listing(app.home, corpus)):
            return _job_status(app, started[0].job_id)  # its first job has not committed yet
        if corpus:
            raise
        listed = [f"- {corpus_name}: {_documents(app, corpus_name)}" for corpus_name in known]
        # What to do stands outside of the fence, inside which it would be flagged as an order.
        text = "\n".join([f"{error.what}.", *listed])
        return StatusResult(text=text, corpora=known, hint=f"{error.next_move}.")
    return _corpus_status(app, name, known)


def _corpus_status(app: App, name: str, known: list[str]) -> StatusResult:
    from graphrag_mcp.query import links

    snapshot = app.snapshot(name)
    manifest = snapshot.manifest
    kinds = "documents text_units passages entities relationships communities reports".split()
    counts = {kind: snapshot.count(kind) for kind in kinds}
    levels = Counter(snapshot.column("communities", "level"))
    recent = queue.listing(app.home, name)[:RECENT_JOBS]
    result = StatusResult(
        corpus=name,
        corpora=known,
        generation=manifest.generation,
        counts=counts,
        jobs=[_view(job) for job in recent],
        levels={str(level): levels[level] for level in sorted(levels)},
        stale=list(manifest.stale),
    )
    created = manifest.created or "an unknown time"
    by_level = ", ".join(f"{level}: {n}" for level, n in result.levels.items()) or "none"
    lines = [
        f"Corpus {name}, generation {manifest.generation} of {created}.",
        ", ".join(counted(count, kind) for kind, count in counts.items()) + ".",
        *_notes(snapshot),
        f"Communities per level: {by_level}.",
        _models(app, snapshot, result),
    ]
    sources = sorted(manifest.sources.items())[:10]
    with_paths = _tells_paths()
    if folders := [f"{label} ({source.get('path', '')})" if with_paths else label for label, source in sources]:
        lines.append(f"Folders: {', '.join(folders)}.")
    linked, sentences, result.hint = links.status(snapshot)
    result.counts |= linked
    lines += [*sentences, *_unread(manifest)]
    lines += [*_losses(snapshot, result), *_vectors(app, snapshot)]
    if manifest.stale:
        lines.append(f"Out of date until the next indexing: {', '.join(manifest.stale)}.")
    if manifest.of_another_release():
        result.hint = "Another release read these texts, so some words are not found: index_documents reads them again."
    lines += map(_job_line, recent)
    if others := [f"{other} ({_documents(app, other)})" for other in known if other != name]:
        more = " and more." if len(others) > 20 else "."
        lines.append(f"Other corpora: {', '.join(others[:20])}{more}")
    result.text = "\n".join(lines)
    return result


def _notes(snapshot: Snapshot) -> list[str]:
    """How many documents are notes, for an agent that begins with the status."""
    from graphrag_mcp.query import note_sources
    from graphrag_mcp.store.tables import notes_alone

    if alone := notes_alone(snapshot):
        return [alone]
    count = len(note_sources.ids(snapshot))
    advice = "a search that one answers shows it first and whole"
    return [f"Of the documents {count} are notes: {advice}."] if count else []


def _unread(manifest: Manifest) -> list[str]:
    """The files of folders that could not be read, which no search finds; scans apart."""
    from graphrag_mcp.sources import ocr
    from graphrag_mcp.sources.diff import unread_files

    files = {uri: file for source in manifest.sources.values() for uri, file in unread_files(source).items()}
    scans = sorted(uri for uri, file in files.items() if file.scanned)
    others = sorted(files.keys() - scans)
    lines: list[str] = []
    if others:
        what = f"{counted(len(others), 'files')} could not be read and cannot be found"
        lines.append(f"{what}: {_names(others)}.")
    if scans:
        what = f"{counted(len(scans), 'scans')} (pictures of pages, without text) cannot be found"
        lines.append(f"{what}: {_names(scans)}; {ocr.SCANS}.")
    return lines


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_UNREAD:,} more" if len(names) > SHOWN_UNREAD else ""
    return ", ".join(names[:SHOWN_UNREAD]) + more


def _losses(snapshot: Snapshot, result: StatusResult) -> list[str]:
    """What was lost of the replies that this index is made of; fills the result's field."""
    rows = snapshot.rows("losses").to_pylist()
    rows.sort(key=lambda row: (-row["dropped"] - row["repaired"], row["id"]))
    result.losses = totals(rows)
    if not rows:
        return []
    shown = rows[:SHOWN_LOSSES]
    subjects = [row["subject"] for row in shown]
    units = snapshot.served("text_units", subjects, ["id", "n"])
    ids = {row["id"]: f"t{row['n']}" for row in units}
    lines = [f"- {ids.get(row['subject'], 'a text unit')}: {row['reason']}" for row in shown]
    return [f"Records of the replies: {losses_told(result.losses)}.", *lines]


def _models(app: App, snapshot: Snapshot, result: StatusResult) -> str:
    """Who is the model, and what it has still to answer; fills the result's fields."""
    from graphrag_mcp.store.tables import open_questions

    settings = app.settings
    result.model = f"llm:{settings.chat_model}" if settings.chat_model else result.model
    rows = open_questions(snapshot)
    pending = Counter(row["kind"] for row in rows)
    result.pending = dict(sorted(pending.items()))
    result.refused = refused_kinds(rows)
    vectors = f", vectors by {settings.embedding_model}" if settings.embedding_model else ""
    text = f"Model: {result.model}{vectors}. "
    who = "Waiting for an agent (claim_work) or a model:"
    if settings.chat_model:
        from graphrag_mcp.index.models import last_reading

        full = last_reading(snapshot.manifest) in ("llm", "agent")
        read = "reads every text with it" if full else SUMMARISES
        text += f"Indexing {read}; searches with answer=true use it."
        who = "It has still to answer"
    else:
        text += "Searches return cited context and you write the answer. "
        text += "To turn one on, set GRAPHRAG_MCP_CHAT_MODEL where the server is started."
    open_ = pending - Counter(result.refused)
    waiting = f"{who} {_pairs(dict(sorted(open_.items())))}." if open_ else ""
    return " ".join(filter(None, [text, waiting, _refused(result.refused)]))


def _vectors(app: App, snapshot: Snapshot) -> list[str]:
    """By which model this corpus is searched by meaning, and what lacks a vector; nothing for an empty
    corpus."""
    from graphrag_mcp.llm.opening import vector_space, with_vectors

    space = vector_space(with_vectors(app.settings, snapshot.folder))
    passages = snapshot.count("passages")
    missing = passages - snapshot.count("passages_vectors")
    made_with = str(snapshot.manifest.parameters.get("embedding", ""))
    if not passages:
        return []
    if missing == passages and not space:
        finds = "graphrag-mcp index FOLDER --vectors finds texts by questions in other words"
        return [f"Vectors: none. {finds}."]
    if made_with and not space:
        return [f"Vectors: made with {made_with}; no embedding model is set, so they are not compared."]
    if made_with and space != made_with:
        what = f"made with {made_with}, not with {space} of the settings, and not compared"
        return [f"Vectors: {what}; index_documents makes them again."]
    if missing:
        lack = f"{missing:,} of {counted(passages, 'passages')} have none"
        return [f"Vectors: {lack} and are found by words alone; index_documents makes them."]
    return [f"Vectors: every passage has one, by {made_with or space}."]


def _documents(app: App, corpus: str) -> str:
    try:  # one that is damaged must not keep the others from being listed
        manifest = manifests.read(app.folder(corpus))
    except Damaged:
        return f"damaged (graphrag-mcp doctor --corpus {corpus})"
    return counted(manifest.counters.get("documents", 0) if manifest else 0, "documents")


def _job_line(job: Job) -> str:
    more = [_where(job)] if job.status == "running" else [job.error] if job.error else []
    return f"{job.job_id} ({job.started[:19]}): " + ", ".join([job.status, *more])


def _view(job: Job) -> dict[str, Any]:
    names = "job_id corpus status phase done total error started updated repaired".split()
    return {name: getattr(job, name) for name in names}
