"""One run for all queued jobs that can go together, and each job's share of the result.

While others wait, a run ends with its documents; the communities of all of them are made once, when
the queue is empty, at the latest after SETTLED_AFTER seconds. The state of each document stands in
`<home>/jobs/<job_id>.documents.jsonl`, to which only the process that does the job appends; the
last line of a uri counts, and the index itself counts more (`mended`)."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_mcp.errors import BadInput, Busy, GraphRAGError
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.jobs.queue import FINAL, RESUME, Job, close, flag, marker, request_of, save
from graphrag_mcp.jobs.survey import SMALL_WORK, work_of
from graphrag_mcp.settings import Settings, from_record
from graphrag_mcp.types import IndexRequest, IndexResult

if TYPE_CHECKING:
    from graphrag_mcp.store.manifest import Manifest


STATES = ("pending", "processing", "processed", "failed")
PAGE = 50
ALL = "*"  # as a uri: every document that has failed or not is meant, but those that have failed
Live = Mapping[str, tuple[str, str]]  # uri -> (document id, uri of its file)
State = dict[str, str]  # {"uri", "state", "error"}


@dataclass
class Scope:
    """What one job names: uris in the order in which they are read; `files` are those that lie on
    disk."""

    uris: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)


# ---- states -------------------------------------------------------------------------------------


def states(home: Path, job: Job) -> dict[str, State]:
    """The documents of a job by uri, in order. Before it has begun: what the request names."""
    found: dict[str, State] = {}
    try:
        lines = _file(home, job.job_id).read_bytes().splitlines()
    except OSError:
        lines = []
    for line in lines:
        try:
            one = json.loads(line)
            uri, state, error = one["uri"], one["state"], one.get("error", "")
        except (ValueError, KeyError, TypeError):  # torn by a kill
            continue
        if uri != ALL:
            found[uri] = {"uri": uri, "state": state, "error": error}
            continue
        for other in found.values():
            if other["state"] != "failed":
                other["state"] = state
    if not found and job.status not in FINAL:
        named = [*job.request.get("paths", ()), *(text for text, _ in _texts(request_of(job)))]
        found = {uri: {"uri": uri, "state": "pending", "error": ""} for uri in named}
    return found


def note(
    home: Path, job: Job, uris: Iterable[str], state: str, errors: Mapping[str, str] | None = None
) -> None:
    """Append what became of documents. Not worth a flush: after a power cut the index is asked."""
    lines = [
        json.dumps({"uri": uri, "state": state} | ({"error": errors[uri]} if errors else {}))
        for uri in uris
    ]
    if lines:
        with open(_file(home, job.job_id), "a", encoding="ascii") as file:
            file.write("\n" + "\n".join(lines) + "\n")  # the first ends a line that a kill has torn


def page(home: Path, job: Job, wanted: str, cursor: str) -> tuple[list[State], dict[str, int], str]:
    """So many documents in that state ("all": in each), how many there are by state, and the cursor
    of the next."""
    start = 0
    if cursor:
        owner, _, number = cursor.rpartition(".")
        if owner != job.job_id or not number.isascii() or not number.isdigit():
            raise BadInput("that cursor is not of this list", "Leave it out to begin again")
        start = int(number)
    every = list(states(home, job).values())
    counts = {state: sum(one["state"] == state for one in every) for state in STATES}
    shown = [one for one in every if wanted in ("all", one["state"])]
    more = f"{job.job_id}.{start + PAGE}" if start + PAGE < len(shown) else ""
    return shown[start : start + PAGE], {state: n for state, n in counts.items() if n}, more


def _file(home: Path, job_id: str) -> Path:
    return home / "jobs" / f"{job_id}.documents.jsonl"


# ---- what a job names -----------------------------------------------------------------------------


def scopes(
    group: Sequence[Job], settings: Settings, folder: Path, held: Manifest | None
) -> dict[str, Scope]:
    """What each job of a group names, by job id. One look at the folders for all of them, as the
    run itself takes."""
    from graphrag_mcp.sources import diff
    from graphrag_mcp.store import segments as segment_store

    requests = {job.job_id: request_of(job) for job in group}
    found, *_ = diff.look(
        as_one(group),
        held,
        lambda: segment_store.live_documents(folder, held).to_pylist(),
        settings,
    )
    by_path = {file.path: file.uri for file in found.files}
    given: dict[str, Scope] = {}
    for id, request in requests.items():
        own = {os.path.realpath(path) for path in request.paths}
        mine = [uri for path, uri in by_path.items() if path in own or len(group) == 1]
        scope = Scope([*sorted(mine), *(uri for uri, _ in _texts(request))])
        if len(group) == 1:
            scope.skipped = dict(found.skipped)
        given[id] = scope
    return given


def _texts(request: IndexRequest) -> list[tuple[str, str]]:
    """(uri, id of the document) of inline texts."""
    from graphrag_mcp.sources import read

    return [(document.uri, document.id) for document in read.inline(request.texts)]


def together(jobs: Sequence[Job], most: int) -> list[Job]:
    """The first job and those behind it that may go with it in one run: alike, of texts and single
    files, and none that names again what one before it names. The order of two that meet is kept:
    the later one waits."""
    first, group, size = jobs[0], [], 0
    taken: set[str] = set()
    for job in jobs:
        request = request_of(job)
        # Two files of one name are kept apart, for errors tell a file by the end of its path.
        named = {*map(os.path.basename, request.paths), *(uri for uri, _ in _texts(request))}
        alike = (
            job.settings == first.settings
            and _flags(request) == _flags(request_of(first))
            and not job.own
        )
        files = [path for path in request.paths if os.path.isfile(path)]
        size += work_of(request, most)
        if group and (not alike or len(files) < len(request.paths) or named & taken or size > most):
            break
        group.append(job)
        taken |= named
        if len(files) < len(request.paths) or size > most:  # a folder is a run of its own
            break
    return group


def as_one(group: Sequence[Job]) -> IndexRequest:
    """The request of a run for all of them."""
    requests = [request_of(job) for job in group]
    paths = dict.fromkeys(path for request in requests for path in request.paths)
    texts = tuple(text for request in requests for text in request.texts)
    return replace(requests[0], paths=tuple(paths), texts=texts)


def _flags(request: IndexRequest) -> IndexRequest:
    return replace(request, paths=(), texts=())


# ---- what became of it ----------------------------------------------------------------------------


def live(folder: Path) -> Live:
    """Every document of the committed generation."""
    from graphrag_mcp.store import manifest
    from graphrag_mcp.store import segments as segment_store

    held = manifest.read(folder)
    if held is None:
        return {}
    rows = segment_store.live_documents(folder, held, ["uri", "id", "file"]).to_pylist()
    return {row["uri"]: (row["id"], row["file"]) for row in rows}


def shares(
    group: Sequence[Job], given: Mapping[str, Scope], result: IndexResult, before: Live, after: Live
) -> None:
    """Give every job of a group its part of what one run did. A job alone has all of it."""
    if len(group) == 1:
        group[0].result = result.model_dump(mode="json")
        group[0].done, group[0].total = result.done, result.total
        return
    of_file: dict[str, set[str]] = {uri: set() for scope in given.values() for uri in scope.uris}
    for uri, (_, file) in [*before.items(), *after.items()]:
        if file in of_file:
            of_file[file].add(uri)
    first = True
    for job in group:
        scope = given[job.job_id]
        counts = dict.fromkeys(("added", "changed", "removed", "unchanged"), 0)
        for named in scope.uris:
            for uri in of_file[named]:
                old, new = before.get(uri, ("",))[0], after.get(uri, ("",))[0]
                same = "unchanged" if old == new else "changed"
                counts["added" if not old else "removed" if not new else same] += 1
        ends = {os.path.basename(path) for path in request_of(job).paths}
        mine_too = {*scope.uris, *job.request.get("paths", ())}
        errors = [
            error
            for error in result.errors
            if (path := error.get("path", "")) in mine_too or path.rpartition("/")[2] in ends
        ]
        done = counts["added"] + counts["changed"] + counts["unchanged"]
        own = {"errors": errors, "done": done, "total": done + len(errors)}
        mine = result.model_copy(update={**own, "counts": {**result.counts, **counts}})
        if not first:  # what was spent is told once
            mine.usage, mine.seconds, mine.skipped, mine.losses = {}, {}, {}, {}
        first = False
        job.result, job.done, job.total = mine.model_dump(mode="json"), done, done + len(errors)


def settle(home: Path, job: Job, scope: Scope) -> None:
    """Every document of a job that is over is processed, or failed with its reason."""
    errors = job.result.get("errors", ())
    failed = {error["path"]: error["reason"] for error in errors if error.get("path")}
    if not states_begun(home, job):
        note(home, job, [uri for uri in scope.uris if uri not in failed], "pending")
    note(home, job, failed, "failed", failed)
    note(home, job, [ALL], "processed")


def states_begun(home: Path, job: Job) -> bool:
    return _file(home, job.job_id).exists()


def mended(home: Path, folder: Path, job: Job, scope: Scope) -> list[str]:
    """Put right what a dead process left of this job, and say it: its documents against what the
    index holds."""
    if not states_begun(home, job):
        return []
    earlier = states(home, job)
    held = {file for _, file in live(folder).values()}
    found = [(one["state"], uri in held, uri) for uri, one in earlier.items()]
    lost = [uri for state, there, uri in found if state == "processed" and not there]
    middle = [uri for state, there, uri in found if state == "processing" and not there]
    written = [uri for state, there, uri in found if state in ("processing", "pending") and there]
    note(home, job, [*lost, *middle], "pending")
    note(home, job, written, "processed")
    queued = "were queued again"
    said = (
        (middle, f"documents that an interrupted run left in the middle {queued}"),
        (lost, f"documents that had been processed are no longer in the index and {queued}"),
        (written, "documents of an interrupted run were found in the index, whole"),
    )
    return [f"{len(uris)} {what}" for uris, what in said if uris]


# the mark in the queue that communities are still to be made, with what they are to follow
SETTLE = "settle"
SETTLED_AFTER = 20.0
WRITE_EVERY = 0.5  # seconds between two progress writes
LOOK_EVERY = 0.05  # seconds between two looks for a flag
DEATHS = 3  # processes that a job may take with it while the index does not move on
# work of a run for several jobs: less than one batch of the pipeline, so its documents are one
# commit, and no more than a server may do by itself
TOGETHER = SMALL_WORK
TRIES = 3
FOLLOW = "Other calls wait; communities and reports follow when all of them are done."

log = logging.getLogger(__name__)


def group(settings: Settings, queue: Sequence[Job], others: Callable[[], int]) -> None:
    """Do the first of the queue, and with it what can go with it. `others` counts what is open by
    now."""
    home, able = settings.home, []
    jobs = together(queue, TOGETHER)
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
    """Count a process that begins the job; False when too many have died of it without the index
    moving on."""
    generation = _generation(home / "corpora" / job.corpus)
    job.attempt = job.attempt + 1 if job.generation == generation else 1
    job.generation = generation
    return job.attempt <= DEATHS


def run(settings: Settings, jobs: list[Job], more: Callable[[], bool]) -> None:
    """One run of the pipeline for these jobs in this process. Raises nothing of it, but what ends
    the process."""
    home, folder = settings.home, settings.home / "corpora" / jobs[0].corpus
    for job in jobs:
        job.status, job.error = "running", ""
        job.pid, job.process = os.getpid(), records.process_mark(os.getpid())
        save(home, job, durably=False)
    try:
        watch = _Watch(home, folder, jobs, more, from_record(settings, jobs[0].settings))
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
        what = f"internal error while indexing ({name}, logged as {jobs[0].job_id}). {RESUME}"
        _apart(settings, jobs, what)
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
    shares(jobs, watch.scopes, result, watch.before, after)
    for job in jobs:
        settle(home, job, watch.scopes[job.job_id])
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
    """Make what runs have put off; False when there is nothing. Tried a few times, for a disk may
    be full."""
    path = marker(settings.home, corpus, SETTLE)
    try:
        told = json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        told = {}
    from graphrag_mcp.index.pipeline import index_documents

    chosen = from_record(settings, told.get("settings", {}))
    began, tries = _stamp(path), int(told.get("tries", 0)) + 1
    try:
        index_documents(
            settings.home / "corpora" / corpus,
            IndexRequest(method=told.get("method", "auto")),
            chosen,
        )
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
        self,
        home: Path,
        folder: Path,
        jobs: Sequence[Job],
        more: Callable[[], bool],
        settings: Settings,
    ) -> None:
        from graphrag_mcp.store import manifest

        held = manifest.read(folder)
        self.home, self.folder, self.jobs = home, folder, jobs
        self.more, self.settings = more, settings
        self.scopes = scopes(jobs, settings, folder, held)
        self.before = live(folder) if len(jobs) > 1 else {}
        self.put_off = False
        self.began = self.committed = _stamp(folder / "manifest.json")
        self.told = self.looked = self.since = time.monotonic()
        self.stop = self.read = False
        self.phase = ""
        for job in jobs:
            scope = self.scopes[job.job_id]
            job.repaired = mended(home, folder, job, scope) if job.attempt > 1 or job.own else []
            if held is not None and held.stale and not marker(home, job.corpus, SETTLE).exists():
                job.repaired.append(
                    "the communities that an interrupted run left undone are made now"
                )
            if job.own:
                note(home, job, scope.uris, "pending")

    def index(self) -> IndexResult:
        from graphrag_mcp.index.pipeline import index_documents

        request = as_one(self.jobs)
        return index_documents(
            self.folder,
            request,
            self.settings,
            progress=self.progress,
            cancelled=self.cancelled,
            ended=self.ended,
        )

    def ended(self, why: str) -> None:
        """This process ends at once, because of what it was given to do."""
        for job in self.jobs:
            close(self.home, job, "failed", why)

    def progress(self, phase: str, done: int, total: int) -> None:
        at = time.monotonic()
        for job in self.jobs:
            if self.phase:
                job.phases[self.phase] = round(job.phases.get(self.phase, 0.0) + at - self.since, 2)
            job.phase, job.done, job.total = phase, done, total
        self.phase, self.since = phase, at
        if phase == "reading":  # from here on no one else writes
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
        known = states(self.home, job)
        if stamp != self.committed:
            self.committed = stamp
            held = {file for _, file in live(self.folder).values()}
            note(self.home, job, [uri for uri in uris if uri in held], "processed")
            known = states(self.home, job)
        begun = [uri for uri in uris[:done] if known.get(uri, {}).get("state") == "pending"]
        note(self.home, job, begun, "processing")

    def cancelled(self) -> bool:
        """Someone asked to stop; or the documents are in, others wait, and the communities can be
        made with theirs."""
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
            # or the clock was put back
            return abs(time.time() - path.stat().st_mtime) < SETTLED_AFTER
        except OSError:
            told = {"settings": records.settings_record(self.settings), "method": request.method}
            path.write_text(json.dumps(told), "utf-8")
            return True

    def after(self) -> Live:
        return live(self.folder) if len(self.jobs) > 1 or self.put_off else {}

    def whole(self, result: IndexResult, after: Live) -> bool:
        """Is everything in, of a run that was ended behind its documents?"""
        held = {file for _, file in after.values()} | {
            error.get("path", "") for error in result.errors
        }
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
