"""Work that outlives a call: one durable record per job, and the two places where a job runs.

Takes `Settings` and an `IndexRequest`; gives `Job` records. The file `<home>/jobs/<job_id>.json` is the truth:
it exists before the first reply, only the process that does the work writes it, and whoever reads it can tell
whether that process still lives. Small jobs run in a thread here, others in a process of their own, so that
neither the end of the server nor a cancelled call stops them. Knows no MCP and nothing about how indexing works.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, Busy, GraphRAGError, NotFound
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import write_durably
from graphrag_mcp.subject import SUBJECT, may_open
from graphrag_mcp.types import IndexRequest, InlineText

FINAL = ("done", "failed", "cancelled")
KEEP_DAYS, KEEP_FILES = 30, 400  # records older than that, or beyond so many and over an hour old, are forgotten
SMALL_BYTES, SMALL_FILES = 2_000_000, 100  # up to this a job is over before a process of its own has started
STARTING = timedelta(seconds=20)  # that the process of a job may take until it writes its own pid
WRITE_EVERY = 0.5  # seconds between two progress writes
IN_PROCESS = threading.BoundedSemaphore(2)  # engine threads at a time; the rest wait as "queued"

log = logging.getLogger(__name__)
_starting = threading.Lock()


@dataclass(slots=True)
class Job:
    """The record on disk. `key` is what makes two requests the same job; `process` tells a reused pid apart."""

    job_id: str
    corpus: str
    key: str = ""
    request: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    status: str = "queued"
    phase: str = ""
    done: int = 0
    total: int = 0
    result: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    subject: str = ""  # whose token started it; others do not see it
    pid: int = 0
    process: str = ""
    started: str = ""
    updated: str = "2000-01-01T00:00:00+00:00"


# ---- records ------------------------------------------------------------------------------------

def load(home: Path, job_id: str) -> Job:
    """The job as it is now: one whose process has died is shown as failed. NotFound lists recent jobs."""
    if not job_id.replace("-", "").isalnum() or len(job_id) > 60:
        raise BadInput(f"job_id {job_id[:40]!r} is not one of ours", "Take it from index_documents or graph_status")
    job = _read(_path(home, job_id))
    if job is None or not may_open(job.subject):
        recent = ", ".join(job.job_id for job in listing(home)[:5])
        raise NotFound(f"there is no job {job_id!r}", f"Recent jobs: {recent}" if recent else "No job has been started")
    return _as_it_is(job)


def listing(home: Path, corpus: str = "") -> list[Job]:
    """The caller's jobs, or those of one corpus, newest first."""
    jobs = [_read(path) for path in (home / "jobs").glob("job-*.json")]
    mine = [_as_it_is(job) for job in jobs if job and corpus in ("", job.corpus) and may_open(job.subject)]
    return sorted(mine, key=lambda job: (job.started, job.job_id), reverse=True)


def request_of(job: Job) -> IndexRequest:
    """The request as the pipeline takes it."""
    texts = tuple(InlineText(**text) for text in job.request.get("texts", ()))
    return IndexRequest(**{**job.request, "paths": tuple(job.request.get("paths", ())), "texts": texts})


def is_small(request: IndexRequest) -> bool:
    """Whether the request fits a thread of this process; stops looking as soon as it does not."""
    size, files = sum(len(text.text.encode("utf-8", "replace")) for text in request.texts), 0
    for start in request.paths:
        for path in _files_under(start):
            files += 1
            try:
                size += os.stat(path).st_size
            except OSError:
                continue
            if size > SMALL_BYTES or files > SMALL_FILES:
                return False
    return size <= SMALL_BYTES


# ---- starting and stopping ----------------------------------------------------------------------

def start(settings: Settings, corpus: str, request: IndexRequest) -> Job:
    """Write the record, start the work, return at once. The same request while it runs is the same job."""
    body = json.loads(json.dumps(asdict(request)))
    key = hashlib.sha256(json.dumps([corpus, body], sort_keys=True).encode()).hexdigest()[:32]
    with _starting:
        _forget_old(settings.home)
        for job in listing(settings.home, corpus):
            if job.key == key and job.status not in FINAL and job.subject == SUBJECT.get():
                return job
        job = Job(
            job_id=f"job-{secrets.token_hex(6)}", corpus=corpus, key=key, request=body, started=_now(),
            settings=_settings_record(settings), subject=SUBJECT.get(), pid=os.getpid(),
            process=process_mark(os.getpid()),
        )  # fmt: skip
        _save(settings.home, job)
    if is_small(request):
        # Not a daemon: an orderly exit of the server lets a small job finish.
        threading.Thread(target=_run_in_thread, args=(settings, job.job_id), name=job.job_id).start()
        return job
    try:
        _spawn(settings.home, job)
    except OSError as error:
        job.status, job.error = "failed", f"no process could be started ({error.strerror}). {_RESUME}"
        _save(settings.home, job)
    return job


def cancel(home: Path, job_id: str) -> Job:
    """Ask a job to stop; it does at its next look. A job that is over stays as it is."""
    job = load(home, job_id)
    if job.status not in FINAL:
        _flag(home, job_id).touch()
    elif job.status == "failed" and (stored := _read(_path(home, job_id))) and stored.status not in FINAL:
        job.status, job.error = "cancelled", ""  # its process is gone, so nobody else writes this record
        _save(home, job)
    return job


def run(settings: Settings, job_id: str) -> Job:
    """Do the work of a job in this process, writing its progress. Returns the final record, raises nothing of it."""
    home = settings.home
    job = load(home, job_id)
    stored = _read(_path(home, job_id))
    if stored is not None and stored.status in FINAL:
        return stored
    job.status, job.error, job.pid, job.process = "queued", "", os.getpid(), process_mark(os.getpid())
    _save(home, job)
    settings = _settings_from(settings, job.settings)
    last = 0.0

    def progress(phase: str, done: int, total: int) -> None:
        nonlocal last
        job.status, job.phase, job.done, job.total = "running", phase, done, total
        if time.monotonic() - last >= WRITE_EVERY:
            last = time.monotonic()
            _save(home, job)

    try:
        _index(settings, job, progress)
    except GraphRAGError as error:
        job.status, job.error = "failed", str(error)
    except BaseException as error:
        log.exception("%s failed", job_id)
        job.status = "failed"
        job.error = f"internal error while indexing ({type(error).__name__}, logged as {job_id}). {_RESUME}"
        if not isinstance(error, Exception):
            raise
    finally:
        job.request = {**job.request, "texts": []}  # texts are in the index or will be sent again: not kept twice
        _save(home, job)
        _flag(home, job_id).unlink(missing_ok=True)
    return job


def _index(settings: Settings, job: Job, progress: Any) -> None:
    from graphrag_mcp.index.pipeline import index_documents

    folder = settings.home / "corpora" / job.corpus
    flag = _flag(settings.home, job.job_id)
    while not flag.exists():
        try:
            result = index_documents(folder, request_of(job), settings, progress=progress, cancelled=flag.exists)
        except Busy:
            job.status = "queued"  # another writer holds the corpus: our turn comes
            time.sleep(0.5)
            continue
        job.result = result.model_dump(mode="json")
        job.status = result.status if result.status in FINAL else "done"
        job.done, job.total = result.done, result.total
        return
    job.status = "cancelled"


def _run_in_thread(settings: Settings, job_id: str) -> None:
    with IN_PROCESS:
        run(settings, job_id)


def _spawn(home: Path, job: Job) -> None:
    """Start `graphrag_mcp index --job` in a session of its own: the end of the server does not reach it."""
    command = [sys.executable, "-P", "-m", "graphrag_mcp", "index", "--job", job.job_id, "--home", str(home)]
    environment = dict(os.environ)
    package = Path(__file__).resolve().parents[1]
    if package.name not in ("site-packages", "dist-packages"):  # run from a checkout
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package), environment.get("PYTHONPATH")]))
    with open(home / "jobs" / f"{job.job_id}.log", "ab") as output:
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "env": environment,
        }
        if os.name == "nt":
            detached = 0x00000008 | 0x00000200  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
            try:  # out of the host's job object too, where that is permitted
                process = subprocess.Popen(command, creationflags=detached | 0x01000000, **options)
            except OSError:
                process = subprocess.Popen(command, creationflags=detached, **options)
        else:
            process = subprocess.Popen(command, start_new_session=True, **options)
    threading.Thread(target=_reap, args=(home, job.job_id, process), daemon=True).start()


def _reap(home: Path, job_id: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for the child, and close the record of one that died without doing it itself."""
    code = process.wait()
    job = _read(_path(home, job_id))
    if job is not None and job.status not in FINAL:
        log.warning("%s: its process ended with status %s", job_id, code)
        job.status = "failed"
        job.error = f"the indexing process ended with status {code} ({job_id}.log says more). {_RESUME}"
        _save(home, job)


# ---- small parts --------------------------------------------------------------------------------

_RESUME = "Call index_documents again with the same arguments; it goes on where it stopped."


def process_mark(pid: int) -> str:
    """What tells this process from a later one with the same number; "" when there is no such process."""
    if pid <= 0:
        return ""
    if sys.platform.startswith("linux"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            return ""
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
        kernel.GetProcessTimes(handle, *(ctypes.byref(one) for one in times))
        return str(times[0].value) if code.value == 259 else ""  # STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)


def _as_it_is(job: Job) -> Job:
    if job.status in FINAL or (job.process and process_mark(job.pid) == job.process):
        return job
    if job.status == "queued" and datetime.now(UTC) - datetime.fromisoformat(job.updated) < STARTING:
        return job  # its own process has not written itself down yet, and the server that started it has gone
    return replace(job, status="failed", error=f"interrupted: the process that did it is gone. {_RESUME}")


def _files_under(start: str) -> Any:
    if os.path.isfile(start):
        yield start
        return
    for folder, folders, names in os.walk(start):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        yield from (os.path.join(folder, name) for name in names)


def _settings_record(settings: Settings) -> dict[str, Any]:
    plain = {item.name: getattr(settings, item.name) for item in fields(settings) if item.name != "home"}
    return {name: [str(part) for part in value] if name == "roots" else value for name, value in plain.items()}


def _settings_from(settings: Settings, record: dict[str, Any]) -> Settings:
    """The settings that the job was started with, whatever this process was started with."""
    known = {item.name for item in fields(Settings)}
    values = {name: value for name, value in record.items() if name in known}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    if "roots" in values:
        values["roots"] = tuple(Path(part) for part in values["roots"])
    return replace(settings, **values)


def _read(path: Path) -> Job | None:
    try:
        body = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    known = {item.name for item in fields(Job)}
    return Job(**{name: value for name, value in body.items() if name in known}) if "job_id" in body else None


def _save(home: Path, job: Job) -> None:
    job.updated = _now()
    (home / "jobs").mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(job), ensure_ascii=False, indent=1)
    write_durably(_path(home, job.job_id), text.encode("utf-8", "backslashreplace"))


def _forget_old(home: Path) -> None:
    now, ages = time.time(), []
    for path in (home / "jobs").glob("job-*"):
        try:
            ages.append((now - path.stat().st_mtime, path))
        except OSError:
            continue
    for place, (age, path) in enumerate(sorted(ages)):
        if age > KEEP_DAYS * 86_400 or (place >= KEEP_FILES and age > 3600):
            path.unlink(missing_ok=True)


def _path(home: Path, job_id: str) -> Path:
    return home / "jobs" / f"{job_id}.json"


def _flag(home: Path, job_id: str) -> Path:
    return home / "jobs" / f"{job_id}.cancel"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
