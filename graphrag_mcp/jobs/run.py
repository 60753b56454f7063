"""Jobs done in this process, alone or small ones together, and the states of their documents.

What the job names stands in `<home>/jobs/<job_id>.documents.json` from its begin on; what became of
each document follows from that list, the job's record and the index."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, Busy, GraphRAGError
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.jobs.queue import FINAL, RESUME, Job, close, flag, request_of, save
from graphrag_mcp.settings import Settings, from_record
from graphrag_mcp.store import manifest, stored
from graphrag_mcp.types import IndexResult

STATES = ("pending", "processing", "processed", "failed")
PAGE = 50
State = dict[str, str]  # {"uri", "state", "error"}
Held = dict[str, dict[str, str]]  # ids of documents by the uri of their file and their own
WRITE_EVERY = 0.5  # seconds between two progress writes
LOOK_EVERY = 0.05  # seconds between two looks for a flag
TOGETHER = 20  # jobs that one run does at most
DEATHS = 3  # processes that a job may take with it while the index does not move on

log = logging.getLogger(__name__)


# ---- its documents ------------------------------------------------------------------------------


def states(home: Path, job: Job) -> list[State]:
    """The documents of a job in the order in which they are read."""
    try:
        uris = stored.parsed(_file(home, job.job_id).read_bytes(), list[str])
    except (OSError, ValueError):
        uris = [*job.request.get("paths", ()), *_texts(job)] if job.status not in FINAL else []
    errors = job.result.get("errors", ())
    failed = {error["path"]: error["reason"] for error in errors if error.get("path")}
    known = {} if job.status in ("done", "queued") else _documents_by_file(home / "corpora" / job.corpus)
    begun = job.done if job.phase == "documents" else 0 if job.phase == "reading" else len(uris)
    found: list[State] = []
    for place, uri in enumerate(dict.fromkeys([*uris, *failed])):
        state = "processed" if job.status == "done" or uri in known else "pending"
        if job.status == "running":
            state = "pending" if place >= begun else state if uri in known else "processing"
        state = "failed" if uri in failed else state
        found.append({"uri": uri, "state": state, "error": failed.get(uri, "")})
    return found


def page(home: Path, job: Job, requested: str, cursor: str) -> tuple[list[State], dict[str, int], str]:
    """PAGE documents in a state ("all": in any), counts by state, the cursor of the next page."""
    start = 0
    if cursor:
        owner, _, number = cursor.rpartition(".")
        if owner != job.job_id or not number.isascii() or not number.isdigit():
            raise BadInput("that cursor is not of this list", "Leave it out to begin again")
        start = int(number)
    every = states(home, job)
    counts = {state: sum(document["state"] == state for document in every) for state in STATES}
    shown = [document for document in every if requested in ("all", document["state"])]
    more = f"{job.job_id}.{start + PAGE}" if start + PAGE < len(shown) else ""
    return shown[start : start + PAGE], {state: n for state, n in counts.items() if n}, more


def _file(home: Path, job_id: str) -> Path:
    return home / "jobs" / f"{job_id}.documents.json"


def _texts(job: Job) -> Iterable[str]:
    from graphrag_mcp.sources import read

    return (document.uri for document in read.inline(request_of(job).texts))


def _documents_by_file(folder: Path) -> Held:
    """Documents of the committed generation, uri and id, by the uri of their file or text."""
    from graphrag_mcp.store.segments import live_documents

    stored = manifest.read(folder)
    found: Held = {}
    rows = live_documents(folder, stored, ["file", "uri", "id"]).to_pylist() if stored else ()
    for row in rows:
        found.setdefault(row["file"], {})[row["uri"]] = row["id"]
    return found


def _write_names(settings: Settings, jobs: Sequence[Job]) -> list[list[str]]:
    """The uris that each job names, noted down; not worth a flush."""
    from graphrag_mcp.sources import diff
    from graphrag_mcp.store.segments import live_documents

    folder = settings.home / "corpora" / jobs[0].corpus
    stored = manifest.read(folder)
    named: list[list[str]] = []
    rows = cache(lambda: live_documents(folder, stored).to_pylist() if stored else [])
    for job in jobs:
        found, *_ = diff.look(request_of(job), stored, rows, settings)
        named.append([*sorted(file.uri for file in found.files), *_texts(job)])
        _file(settings.home, job.job_id).write_text(json.dumps(named[-1]), "ascii")
        if job.attempt > 1:
            job.repaired = ["what an interrupted run of this job had not committed is done again"]
        if stored is not None and stored.stale:
            job.repaired.append("the communities that an interrupted run left undone are made now")
    return named


# ---- doing it -----------------------------------------------------------------------------------


def begun(home: Path, job: Job) -> bool:
    """Count a process that begins the job; False when DEATHS did without the index moving on."""
    generation = -1
    with contextlib.suppress(GraphRAGError):  # the run says so, and the job has failed
        stored = manifest.read(home / "corpora" / job.corpus)
        generation = stored.generation if stored else 0
    job.attempt = job.attempt + 1 if job.generation == generation else 1
    job.generation = generation
    return job.attempt <= DEATHS


def together(jobs: Sequence[Job]) -> list[Job]:
    """The first job and those behind it that one run can do: texts and single files, the same
    settings and flags. It ends before a job that names again what one of them names, since the
    later one counts; and a job that has ended a process is done alone."""
    group: list[Job] = []
    taken: set[str] = set()
    for job in jobs[:TOGETHER]:
        paths = job.request.get("paths", ())
        named = {*map(os.path.basename, paths), *_texts(job)}  # errors tell a file by its name
        alone = not named or job.own or job.attempt or not all(map(os.path.isfile, paths))
        alike = job.settings == jobs[0].settings and _flags(job) == _flags(jobs[0])
        if group and (alone or not alike or named & taken):
            break
        group.append(job)
        taken |= named
        if alone:
            break
    return group


def _flags(job: Job) -> dict[str, Any]:
    return {**job.request, "paths": [], "texts": []}


def run(settings: Settings, jobs: Sequence[Job]) -> None:
    """One run for these jobs. Raises nothing of it, but what ends the process."""
    home, folder = settings.home, settings.home / "corpora" / jobs[0].corpus
    for job in jobs:
        job.status, job.error = "running", ""
        job.pid, job.process = os.getpid(), records.process_mark(os.getpid())
        save(home, job)
    try:
        named, before, result = _indexed(settings, jobs)
    except Busy:  # another writer held the corpus
        named, before, result = [], {}, IndexResult(status="cancelled", corpus=folder.name)
    except GraphRAGError as error:
        _failed(settings, jobs, str(error))
        return
    except BaseException as error:
        if not threading.main_thread().is_alive():  # Python starts no thread any more
            _queue_again(home, jobs)
            return
        name = type(error).__name__
        log.exception("%s failed", jobs[0].job_id)
        what = f"internal error while indexing ({name}, logged as {jobs[0].job_id}). {RESUME}"
        _failed(settings, jobs, what)
        if not isinstance(error, Exception):
            raise
        return
    if result.status == "cancelled":
        for job in jobs:  # whose flag it was is over, the others stay open
            if flag(home, job.job_id).exists():
                _close_with(home, job, result)
            else:
                _queue_again(home, [job])
        return
    after = _documents_by_file(folder) if len(jobs) > 1 else {}
    for place, job in enumerate(jobs):
        share = result if len(jobs) == 1 else _share(job, named[place], result, before, after)
        if place:  # what the run has cost is told once
            share = share.model_copy(
                update={"usage": {}, "seconds": {}, "skipped": {}, "skipped_files": [], "losses": {}}
            )
        _close_with(home, job, share)


def _close_with(home: Path, job: Job, result: IndexResult) -> None:
    job.result, job.done, job.total = result.model_dump(mode="json"), result.done, result.total
    job.phase = ""
    close(home, job, result.status)


def _indexed(settings: Settings, jobs: Sequence[Job]) -> tuple[list[list[str]], Held, IndexResult]:
    """What each job names, what the index held of it before, and the result of the run."""
    from graphrag_mcp.index.pipeline import index_documents

    home, job_settings = settings.home, from_record(settings, jobs[0].settings)
    folder, requests = home / "corpora" / jobs[0].corpus, [request_of(job) for job in jobs]
    paths = dict.fromkeys(path for request in requests for path in request.paths)
    texts = tuple(text for request in requests for text in request.texts)
    named, before = (_write_names(job_settings, jobs), _documents_by_file(folder) if len(jobs) > 1 else {})
    watch = _Watch(home, jobs)
    result = index_documents(
        folder,
        replace(requests[0], paths=tuple(paths), texts=texts),
        job_settings,
        progress=watch.progress,
        cancelled=watch.cancelled,
        ended=lambda why: [close(home, job, "failed", why) for job in jobs],
    )
    return named, before, result


def _failed(settings: Settings, jobs: Sequence[Job], error: str) -> None:
    """What fails for several is tried for each, so that none fails for another's reason."""
    if len(jobs) == 1:
        close(settings.home, jobs[0], "failed", error)
        return
    for job in jobs:
        run(settings, [job])


def _queue_again(home: Path, jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.status, job.attempt = "queued", job.attempt - 1  # that was not its fault
        save(home, job)


def _share(job: Job, named: Sequence[str], result: IndexResult, before: Held, after: Held) -> IndexResult:
    """What a run for several jobs did with the documents of one of them."""
    counts = dict.fromkeys(("added", "changed", "removed", "unchanged"), 0)
    for file in named:
        old, new = before.get(file, {}), after.get(file, {})
        for uri in old.keys() | new.keys():
            what = "unchanged" if old.get(uri) == new.get(uri) else "changed"
            counts["added" if uri not in old else "removed" if uri not in new else what] += 1
    ends = {*named, *map(os.path.basename, job.request.get("paths", ()))}
    paths = [error.get("path", "") for error in result.errors]
    pairs = zip(paths, result.errors, strict=True)
    errors = [error for path, error in pairs if {path, os.path.basename(path)} & ends]
    done = counts["added"] + counts["changed"] + counts["unchanged"]
    fields = {"errors": errors, "done": done, "total": done + len(errors)}
    return result.model_copy(update={**fields, "counts": {**result.counts, **counts}})


class _Watch:
    def __init__(self, home: Path, jobs: Sequence[Job]) -> None:
        self.home, self.jobs = home, jobs
        self.written = self.looked = time.monotonic()
        self.stop = False

    def progress(self, phase: str, done: int, total: int) -> None:
        for job in self.jobs:
            job.phase, job.done, job.total = phase, done, total
        if time.monotonic() - self.written >= WRITE_EVERY:
            self.written = time.monotonic()
            for job in self.jobs:
                save(self.home, job)

    def cancelled(self) -> bool:
        if not self.stop and time.monotonic() - self.looked >= LOOK_EVERY:
            self.looked = time.monotonic()
            self.stop = any(flag(self.home, job.job_id).exists() for job in self.jobs)
        return self.stop
