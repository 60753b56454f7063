"""One run for everything in the queue that can go together, and what of it belongs to which job.

Takes the open jobs of a corpus from the one process that leads it; writes their records while they run and when they
are over. While others wait, a run ends with its documents: they are visible and durable then, and the communities of
all of them are made once, when the queue is empty (`communities`), at the latest after SETTLED_AFTER seconds. Knows
neither who waits nor how it came to lead.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from graphrag_mcp import jobs_documents as documents
from graphrag_mcp import jobs_record as records
from graphrag_mcp.errors import Busy, GraphRAGError
from graphrag_mcp.jobs_record import RESUME, Job, close, flag, marker, save
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest, IndexResult

SETTLE = "settle"  # the mark in the queue that communities are still to be made, with what they are to follow
SETTLED_AFTER = 20.0
WRITE_EVERY = 0.5  # seconds between two progress writes
LOOK_EVERY = 0.05  # seconds between two looks for a flag
DEATHS = 3  # processes that a job may take with it while the index does not move on
TOGETHER = 1_000_000  # bytes of a run for several jobs: one batch of the pipeline, so its documents are one commit
TRIES = 3
FOLLOW = "Other calls wait; communities and reports follow when all of them are done."

log = logging.getLogger(__name__)


def group(settings: Settings, queue: Sequence[Job], others: Callable[[], int]) -> None:
    """Do the first of the queue, and with it what can go with it. `others` counts what is open by now."""
    home, able = settings.home, []
    jobs = documents.together(queue, TOGETHER)
    for job in jobs:
        if begun(home, job):
            able.append(job)
        else:
            close(home, job, "failed", f"{DEATHS} processes ended while they did it. {RESUME}")
    if any(job.attempt > 1 for job in able):
        able = able[:1]  # who ends a process does so alone
    if able:
        run(settings, able, lambda: others() > len(able))


def begun(home: Path, job: Job) -> bool:
    """Count a process that begins the job; False when too many have died of it without the index moving on."""
    generation = _generation(home / "corpora" / job.corpus)
    job.attempt = job.attempt + 1 if job.generation == generation else 1
    job.generation = generation
    return job.attempt <= DEATHS


def run(settings: Settings, jobs: list[Job], more: Callable[[], bool]) -> None:
    """One run of the pipeline for these jobs in this process. Raises nothing of it, but what ends the process."""
    home, folder = settings.home, settings.home / "corpora" / jobs[0].corpus
    for job in jobs:
        job.status, job.error, job.pid, job.process = "running", "", os.getpid(), records.process_mark(os.getpid())
        save(home, job, durably=False)
    try:
        watch = _Watch(home, folder, jobs, more, records.settings_from(settings, jobs[0].settings))
        result = watch.index()
    except Busy:  # cancelled while another writer held the corpus
        _stopped(home, jobs, IndexResult(status="cancelled", corpus=folder.name))
        return
    except GraphRAGError as error:
        _apart(settings, jobs, str(error))
        return
    except BaseException as error:
        name = type(error).__name__
        log.exception("%s failed", jobs[0].job_id)
        _apart(settings, jobs, f"internal error while indexing ({name}, logged as {jobs[0].job_id}). {RESUME}")
        if not isinstance(error, Exception):
            raise
        return
    after = watch.after()
    if result.status == "cancelled" and not (watch.put_off and watch.whole(result, after)):
        _stopped(home, jobs, result)
        return
    if not watch.put_off:
        marker(home, jobs[0].corpus, SETTLE).unlink(missing_ok=True)
    else:
        result.hint = f"{result.hint} {FOLLOW}".strip()
    result.status = "done"
    documents.shares(jobs, watch.scopes, result, watch.before, after)
    for job in jobs:
        documents.settle(home, job, watch.scopes[job.job_id])
        job.phase = ""
        close(home, job, "done")


def _stopped(home: Path, jobs: Sequence[Job], result: IndexResult) -> None:
    """Whose flag it was is over; the others stay open, and are begun again."""
    for job in jobs:
        if flag(home, job.job_id).exists():
            job.result = result.model_dump(mode="json")
            close(home, job, "cancelled")
        else:
            job.status, job.attempt = "queued", job.attempt - 1  # that was not its fault
            save(home, job, durably=False)


def _apart(settings: Settings, jobs: list[Job], error: str) -> None:
    """What failed for several is tried for each, so that none fails for another's reason."""
    if len(jobs) == 1:
        close(settings.home, jobs[0], "failed", error)
        return
    for job in jobs:
        run(settings, [job], lambda: False)


def communities(settings: Settings, corpus: str) -> bool:
    """Make what runs have put off; False when there is nothing. Tried a few times, for a disk may be full."""
    path = marker(settings.home, corpus, SETTLE)
    try:
        told = json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        told = {}
    from graphrag_mcp.index.pipeline import index_documents

    chosen = records.settings_from(settings, told.get("settings", {}))
    began, tries = _stamp(path), int(told.get("tries", 0)) + 1
    try:
        index_documents(settings.home / "corpora" / corpus, IndexRequest(method=told.get("method", "auto")), chosen)
    except Exception as error:
        log.warning("the communities of %s were not made: %s", corpus, error)
        if tries < TRIES:
            path.write_text(json.dumps({**told, "tries": tries}), "utf-8")
            raise
    if _stamp(path) == began:
        path.unlink(missing_ok=True)
    return True


class _Watch:
    """A run while it goes on: what its callbacks have to know of each other."""

    def __init__(
        self, home: Path, folder: Path, jobs: Sequence[Job], more: Callable[[], bool], settings: Settings
    ) -> None:
        from graphrag_mcp.store import manifest

        held = manifest.read(folder)
        self.home, self.folder, self.jobs, self.more, self.settings = home, folder, jobs, more, settings
        self.scopes = documents.scopes(jobs, settings, folder, held)
        self.before = documents.live(folder) if len(jobs) > 1 else {}
        self.put_off = False
        self.began = self.committed = _stamp(folder / "manifest.json")
        self.told = self.looked = self.since = time.monotonic()
        self.stop = self.read = False
        self.phase = ""
        for job in jobs:
            scope = self.scopes[job.job_id]
            job.repaired = documents.mended(home, folder, job, scope) if job.attempt > 1 or job.own else []
            if held is not None and held.stale and not marker(home, job.corpus, SETTLE).exists():
                job.repaired.append("the communities that an interrupted run left undone are made now")
            if job.own:
                documents.note(home, job, scope.uris, "pending")

    def index(self) -> IndexResult:
        from graphrag_mcp.index.pipeline import index_documents

        request = documents.as_one(self.jobs)
        return index_documents(self.folder, request, self.settings, progress=self.progress, cancelled=self.cancelled)

    def progress(self, phase: str, done: int, total: int) -> None:
        at = time.monotonic()
        for job in self.jobs:
            if self.phase:
                job.phases[self.phase] = round(job.phases.get(self.phase, 0.0) + at - self.since, 2)
            job.phase, job.done, job.total = phase, done, total
        self.phase, self.since = phase, at
        if phase == "reading":  # from here on nobody else writes
            self.began = self.committed = _stamp(self.folder / "manifest.json")
        self.read = phase == "documents" and done >= total
        if at - self.told >= WRITE_EVERY:
            self.told = at
            for job in self.jobs:
                save(self.home, job, durably=False)
                if job.own and phase == "documents":
                    self._states(job, done)

    def _states(self, job: Job, done: int) -> None:
        """What a long run has committed is processed, and the next it reads are in the middle."""
        stamp = _stamp(self.folder / "manifest.json")
        uris = self.scopes[job.job_id].uris
        known = documents.states(self.home, job)
        if stamp != self.committed:
            self.committed = stamp
            held = {file for _, file in documents.live(self.folder).values()}
            documents.note(self.home, job, [uri for uri in uris if uri in held], "processed")
            known = documents.states(self.home, job)
        begun = [uri for uri in uris[:done] if known.get(uri, {}).get("state") == "pending"]
        documents.note(self.home, job, begun, "processing")

    def cancelled(self) -> bool:
        """Somebody asked to stop; or the documents are in, others wait, and the communities can be made with theirs."""
        at = time.monotonic()
        if not self.stop and at - self.looked >= LOOK_EVERY:
            self.looked = at
            self.stop = any(flag(self.home, job.job_id).exists() for job in self.jobs)
        if not self.stop and self.read and _stamp(self.folder / "manifest.json") != self.began:
            self.stop = self.put_off = self._may_be_put_off()
        return self.stop

    def _may_be_put_off(self) -> bool:
        request = records.request_of(self.jobs[0])
        if self.jobs[0].own or request.recluster or not self.more():
            return False
        path = marker(self.home, self.jobs[0].corpus, SETTLE)
        try:
            return abs(time.time() - path.stat().st_mtime) < SETTLED_AFTER  # or the clock was put back
        except OSError:
            told = {"settings": records.settings_record(self.settings), "method": request.method}
            path.write_text(json.dumps(told), "utf-8")
            return True

    def after(self) -> documents.Live:
        return documents.live(self.folder) if len(self.jobs) > 1 or self.put_off else {}

    def whole(self, result: IndexResult, after: documents.Live) -> bool:
        """Is everything in, of a run that was ended behind its documents?"""
        held = {file for _, file in after.values()} | {error.get("path", "") for error in result.errors}
        missing = [uri for scope in self.scopes.values() for uri in scope.uris if uri not in held]
        return len(missing) <= result.skipped.get("empty", 0)


def _generation(folder: Path) -> int:
    from graphrag_mcp.store import manifest

    try:
        held = manifest.read(folder)
    except GraphRAGError:  # the run says so, and the job has failed
        return -1
    return held.generation if held else 0


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_ino)
