"""The job queue: one durable record per job, and the processes that do them.

`<home>/jobs/<job_id>.json` is written by the holder of the corpus's lease (jobs/start.py) alone
once it exists; `<home>/jobs/open/<corpus>/<job_id>` is there as long as the job is not over."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.executors import with_package
from graphrag_mcp.settings import Settings, record_of
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import write_durably
from graphrag_mcp.store.stored import Count, Moment
from graphrag_mcp.trust.fencing import may_open
from graphrag_mcp.trust.private import is_name
from graphrag_mcp.types import IndexRequest, IndexResult

log = logging.getLogger(__name__)


def started(home: Path, job_id: str) -> subprocess.Popen[Any]:
    """`graphrag_mcp index --job` in a session of its own: the end of the server does not reach it."""
    words = ("-P", "-m", "graphrag_mcp", "index", "--job", job_id, "--home", str(home))
    command = [sys.executable, *words]
    with open(home / "jobs" / f"{job_id}.log", "ab") as output:
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": with_package(os.environ)}
        options |= {"stdout": output, "stderr": output}
        if os.name == "nt":
            detached = 0x00000008 | 0x00000200  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
            try:  # out of the host's job object too, where that is permitted
                return subprocess.Popen(command, creationflags=detached | 0x01000000, **options)
            except OSError:
                return subprocess.Popen(command, creationflags=detached, **options)
        return subprocess.Popen(command, start_new_session=True, **options)


def process_mark(pid: int) -> str:
    """What tells a process from a later one with its number; "" when there is none."""
    if pid <= 0:
        return ""
    if sys.platform.startswith("linux"):
        try:
            raw = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return ""
        stat = raw.rpartition(")")[2].split()
        return "" if stat[0] in "ZX" else stat[19]  # state; start time in clock ticks since boot
    if os.name == "nt":
        return _windows_mark(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


def _windows_mark(pid: int) -> str:
    """The creation time of a running process; os.kill would end it there."""
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return ""
    try:
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.GetProcessTimes(handle, *(ctypes.byref(time) for time in times))
        return str(times[0].value) if code.value == 259 else ""  # STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)


FINAL = ("done", "failed", "cancelled")
MERGE = "merge"  # the mark in the queue that agents have handed in answers
# records older than that, or beyond so many and over an hour old, are forgotten
KEEP_DAYS, KEEP_JOBS = (30, 400)
STARTING = timedelta(seconds=20)  # that the process of a job may take until it writes its own pid
RESUME = "Call index_documents again with the same arguments; it goes on where it stopped."
WAITS = "waits for a server that may do it, or for cancel_job:"  # and why, as its phase
TAKEN_OVER_SOON = "its process is gone; a running server, or the next call of index_documents, goes on with it"


def _as(schema: Any) -> AfterValidator:
    """A field of a plain dictionary that must be one of `schema`; it stays as it is."""

    def checked(value: dict[str, Any]) -> dict[str, Any]:
        if value:
            stored.shaped(value, schema)
        return value

    return AfterValidator(checked)


def _named(name: str) -> str:
    if not is_name(name):
        raise ValueError("it is no name of a corpus")
    return name


JobId = Annotated[str, Field(pattern="^job-[0-9A-Za-z-]{1,56}$")]
CorpusName = Annotated[str, AfterValidator(_named)]
Pid = Annotated[int, Field(ge=0, lt=2**31)]


@dataclass(slots=True)
class Job:
    """The record on disk. Requests of one `key` are the same job; `process` tells a reused pid."""

    job_id: JobId
    corpus: CorpusName
    key: str = ""
    request: Annotated[dict[str, Any], _as(IndexRequest)] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    status: str = "queued"
    phase: str = ""
    done: Count = 0
    total: Count = 0
    result: Annotated[dict[str, Any], _as(IndexResult)] = field(default_factory=dict)
    error: str = ""
    subject: str = ""  # whose token started it; others do not see it
    pid: Pid = 0  # who does it; while it is queued, who asked for it
    process: str = ""
    started: str = ""
    updated: Moment = "2000-01-01T00:00:00+00:00"
    own: bool = False  # too large for a thread of a server: done by a process of its own
    attempt: int = 0  # processes that began it since the index last moved on
    generation: int = -1  # of the index when the last of them began
    # what had to be put right before it could go on
    repaired: list[str] = field(default_factory=list)


# ---- reading ------------------------------------------------------------------------------------


def load(home: Path, job_id: str) -> Job:
    """The job as it is now. NotFound lists recent jobs."""
    if not job_id.replace("-", "").isalnum() or len(job_id) > 60:
        what = f"job_id {job_id[:40]!r} is not one of ours"
        raise BadInput(what, "Take it from index_documents or graph_status")
    job = read(home, job_id)
    if job is None or not may_open(job.subject):
        recent = ", ".join(job.job_id for job in listing(home)[:5])
        what = f"there is no job {job_id!r}"
        raise NotFound(what, f"Recent jobs: {recent}" if recent else "No job has been started")
    return as_it_is(home, job)


def listing(home: Path, corpus: str = "") -> list[Job]:
    """The caller's jobs, or those of one corpus, newest first."""
    jobs = filter(None, map(_parsed, (home / "jobs").glob("job-*.json")))
    matching = (job for job in jobs if corpus in ("", job.corpus) and may_open(job.subject))
    mine: list[Job] = [as_it_is(home, job) for job in matching]
    return sorted(mine, key=lambda job: (job.started, job.job_id), reverse=True)


def read(home: Path, job_id: str) -> Job | None:
    """The record as it stands; None where there is none, or half of one."""
    return _parsed(record_path(home, job_id))


def as_it_is(home: Path, job: Job) -> Job:
    """A job of a dead process waits for another one; one that no one takes over has failed."""
    if job.status in FINAL:
        return job
    if job.status == "queued":
        if flag(home, job.job_id).exists():
            # the one that leads will find the flag and write it down
            return replace(job, status="cancelled")
        # unless that was just done: the record first, then the flag goes
        job = read(home, job.job_id) or job
    if job.status in FINAL or alive(job):
        return job
    if marker(home, job.corpus, job.job_id).exists():
        waits = job.phase.startswith(WAITS)
        return replace(job, status="queued", phase=job.phase if waits else TAKEN_OVER_SOON)
    age = abs(datetime.now(UTC) - datetime.fromisoformat(job.updated))
    if job.status == "queued" and age < STARTING:
        # its own process has not written itself down yet, and the server that started it has gone
        return job
    # Its last lines may have been written meanwhile: the record first, then the marker goes.
    later = read(home, job.job_id)
    if later is not None and later.status in FINAL:
        return later
    error = f"interrupted: the process that did it is gone. {RESUME}"
    return replace(job, status="failed", error=error)


def alive(job: Job) -> bool:
    """Does the process that does this job still run?"""
    return bool(job.process) and process_mark(job.pid) == job.process


def request_of(job: Job) -> IndexRequest:
    """The request of a job. ValueError where its record has another shape."""
    return stored.shaped(job.request, IndexRequest)


def settings_record(settings: Settings) -> dict[str, Any]:
    """The settings as JSON, without the values of keys."""
    return json.loads(json.dumps(record_of(settings), default=dict))


# ---- writing ------------------------------------------------------------------------------------


def save(home: Path, job: Job) -> None:
    """Write the record of a job, at once and whole."""
    job.updated = now()
    path = record_path(home, job.job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(asdict(job), ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
    # who waits for a job and who does it may write it at once
    write_durably(path, raw, f".{os.getpid()}-{threading.get_ident()}")


def open_up(home: Path, job: Job) -> None:
    """Make a job known: its marker first, so that no open record is without one."""
    path = marker(home, job.corpus, job.job_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(job.key, "ascii")
    save(home, job)


def close(home: Path, job: Job, status: str = "", error: str = "") -> None:
    """The job is over: the record says so, and no one looks for it any more."""
    job.status, job.error = status or job.status, error
    # texts are in the index or will be sent again: not kept twice
    job.request = {**job.request, "texts": []}
    save(home, job)
    marker(home, job.corpus, job.job_id).unlink(missing_ok=True)
    flag(home, job.job_id).unlink(missing_ok=True)


def waiting(home: Path, corpus: str) -> list[str]:
    """Names of what is open: ids of jobs, and MERGE."""
    return _entries(home / "jobs" / "open" / corpus)


def corpora_at_work(home: Path) -> list[str]:
    """Names of the corpora with jobs that are queued or running."""
    return [name for name in _entries(home / "jobs" / "open") if waiting(home, name)]


def _entries(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(os.listdir(folder))
    return []


def joined(home: Path, corpus: str, key: str) -> Job | None:
    """The open job of the same request, unless it is being cancelled."""
    for name in waiting(home, corpus):
        same = False
        if name.startswith("job-") and not flag(home, name).exists():
            with contextlib.suppress(OSError, ValueError):
                same = marker(home, corpus, name).read_text("ascii") == key
        if same and (job := read(home, name)) is not None and job.status not in FINAL:
            return job
    return None


def behind(home: Path, corpus: str) -> str:
    """The start of a job that comes now: later than those of all open ones, whatever the clock."""
    jobs = filter(None, (read(home, name) for name in waiting(home, corpus)))
    last, at = max((job.started for job in jobs), default=""), now()
    if at > last:
        return at
    later = datetime.fromisoformat(last) + timedelta(milliseconds=1)
    return later.isoformat(timespec="milliseconds")


def open_jobs(home: Path, corpus: str) -> Iterator[Job]:
    """Open records, oldest first; markers without work are cleared away. For the one that leads."""
    found: list[Job] = []
    for name in waiting(home, corpus):
        job, path = read(home, name), marker(home, corpus, name)
        if job is not None and job.status not in FINAL:
            found.append(job)
        elif name != MERGE and (job is not None or not _is_young(path)):
            if job is None:
                log.warning("the record of %s cannot be read; it is given up", name)
            path.unlink(missing_ok=True)
    yield from sorted(found, key=lambda job: (job.started, job.job_id))


def _is_young(path: Path) -> bool:
    """May the record behind this marker still be being written?"""
    with contextlib.suppress(OSError):
        return abs(time.time() - path.stat().st_mtime) < STARTING.total_seconds()
    return False


def forget_old(home: Path) -> None:
    """Records of long ago go, with what lies beside them."""
    at = time.time()
    ages: list[tuple[float, Path]] = []
    for path in (home / "jobs").glob("job-*.json"):
        with contextlib.suppress(OSError):
            ages.append((at - path.stat().st_mtime, path))
    for place, (age, path) in enumerate(sorted(ages)):
        if age > KEEP_DAYS * 86_400 or (place >= KEEP_JOBS and age > 3600):
            for beside in path.parent.glob(f"{path.stem}.*"):
                beside.unlink(missing_ok=True)


# ---- where things are -----------------------------------------------------------------------------


def record_path(home: Path, job_id: str) -> Path:
    """The file of a job's record."""
    return home / "jobs" / f"{job_id}.json"


def flag(home: Path, job_id: str) -> Path:
    """The file whose presence asks the job to stop."""
    return home / "jobs" / f"{job_id}.cancel"


def marker(home: Path, corpus: str, name: str) -> Path:
    """The file whose presence says that a job of the corpus is open."""
    return home / "jobs" / "open" / corpus / name


def now() -> str:
    """The time in UTC, ISO 8601 to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _parsed(path: Path) -> Job | None:
    try:
        job = stored.parsed(path.read_bytes(), Job)
    except OSError:
        return None
    except ValueError as error:
        log.debug("%s is no record of a job: %s", path, error)
        return None
    return job if job.job_id == path.stem else None
