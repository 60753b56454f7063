"""Jobs: started or joined by any process, done by the one with the corpus's lease.

The lease is a lock that ends with its process: then another one takes over. Its holder does what is
open in the order it came, small jobs that wait in one run (jobs/run.py). All others try the lock a
few times a second. Large jobs have a process of their own, which neither the end of the server nor
a cancelled call stops."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from graphrag_mcp.errors import Busy
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.jobs import run, takeover
from graphrag_mcp.jobs.queue import FINAL, MERGE, RESUME, Job, close, flag, load, read, save
from graphrag_mcp.settings import Settings, from_record
from graphrag_mcp.store import manifest, stored
from graphrag_mcp.store.manifest import writer_lock, writing
from graphrag_mcp.store.stored import Finite
from graphrag_mcp.trust.fencing import SUBJECT
from graphrag_mcp.types import IndexRequest

LOOKED_AT = 20_000  # files whose size and time tell two requests for one folder apart
# Up to so many files and characters a job is over before a process of its own has started.
SMALL_FILES, SMALL_SIZE = 100, 1_000_000
PACKED = frozenset(".docx .pptx .xlsx .xlsm .epub .odt .zip .pdf .parquet .doc .xls .ppt .gz".split())
UNPACKED = 8  # characters of text of a byte of these
LOOK_EVERY = 0.5  # seconds in which a server sees that somewhere work is open
LEAD_EVERY = 0.15  # seconds in which who waits for the lead tries it again
GATHER_SECONDS = 0.2  # in which those who have just been answered together call again
QUIET_SECONDS, LONGEST = 2.0, 30.0  # they are merged so long after the last or the first of them
IN_PROCESS = threading.BoundedSemaphore(2)  # engine threads at a time; the rest wait as "queued"

TOO_MANY = f"{run.DEATHS} processes ended while they did it"

log = logging.getLogger(__name__)
_starting, _leading = threading.Lock(), threading.Lock()
_leaders: dict[tuple[Path, str], threading.Thread] = {}
# why this process cannot do what is open, where no record can say so
_troubles: dict[tuple[Path, str], str] = {}


# ---- starting and stopping ----------------------------------------------------------------------


def start(settings: Settings, corpus: str, request: IndexRequest) -> Job:
    """Write the record, see to it, return at once. An open job of the same request is joined."""
    home, small, state = settings.home, *_survey(request)
    body = json.loads(json.dumps(asdict(request)))
    named = json.dumps([corpus, SUBJECT.get(), body, state], sort_keys=True)
    key = hashlib.sha256(named.encode()).hexdigest()[:32]
    with _starting, _lock(home, f"{corpus}.start", 30.0):
        records.forget_old(home)
        job = records.joined(home, corpus, key)
        new = job is None
        if job is None:
            job = Job(
                job_id=f"job-{secrets.token_hex(6)}",
                corpus=corpus,
                key=key,
                request=body,
                started=records.behind(home, corpus),
                settings=records.settings_record(settings),
                subject=SUBJECT.get(),
                own=not small,
                pid=os.getpid(),
                process=records.process_mark(os.getpid()),
            )
            with writing(home / "corpora" / corpus):
                # May this user take the lead, which may be another's? Else the job would wait for ever.
                lead = home / "jobs" / "lead" / corpus / "lock"
                lead.parent.mkdir(parents=True, exist_ok=True)
                open(lead, "ab").close()
                takeover.remember(job)
                records.open_up(home, job)
    if new and job.own and run.begun(home, job):
        _spawn(home, job)
    _lead(settings, corpus)
    return job


def cancel(home: Path, job_id: str) -> Job:
    """Ask a job to stop; it does at its next look. A job that is over stays as it is."""
    job = load(home, job_id)
    if job.status not in FINAL:
        flag(home, job_id).touch()
        if not records.marker(home, job.corpus, job_id).exists():
            flag(home, job_id).unlink(missing_ok=True)  # it came to its end meanwhile
        return load(home, job_id)
    if job.status == "failed" and (stored := read(home, job_id)) and stored.status not in FINAL:
        close(home, job, "cancelled")  # its process is gone, so no one else writes this record
    return job


def run_job(settings: Settings, job_id: str) -> Job:
    """Do a job here as soon as the lead is free, then what else is open. Gives the final record."""
    job = load(settings.home, job_id)
    while (stored := read(settings.home, job_id)) is not None and stored.status not in FINAL:
        with _lead_of(settings.home, job.corpus) as led:
            mine = read(settings.home, job_id) if led else None
            if mine is not None and mine.status not in FINAL:
                run.run(settings, [mine])
        time.sleep(0 if led else LEAD_EVERY)
    _lead(settings, job.corpus)
    return load(settings.home, job_id)


def finish_open(settings: Settings, corpus: str) -> None:
    """Do in this thread what dead processes have left open; nothing while another one leads."""
    if records.waiting(settings.home, corpus):
        with _lead_of(settings.home, corpus) as led:
            if led:
                _turn(settings, corpus)


def merge_later(settings: Settings, corpus: str) -> None:
    """Have what agents handed in merged once it is quiet.

    A mark on disk, which says when the first of it came and is as old as the last: the one that
    leads the corpus then merges, whatever becomes of this process."""
    path = records.marker(settings.home, corpus, MERGE)
    body = {"since": time.time(), "settings": records.settings_record(settings)}
    with writing(settings.home / "corpora" / corpus):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(path, "x", encoding="ascii") as file:
            json.dump(body, file)
        os.utime(path)
    _lead(settings, corpus)


@contextlib.contextmanager
def keeping(settings: Settings) -> Generator[None]:
    """Meanwhile a thread looks for work that no one does, as after a start or another's death."""
    over = threading.Event()
    threading.Thread(target=_keep, args=(settings, over), name="keeper", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def trouble(home: Path, corpus: str) -> str:
    """What keeps this process from doing the open jobs of a corpus, tried again every second; ""
    when nothing does. On a disk that is quite full a record cannot say that it failed."""
    return _troubles.get((home, corpus), "")


def hand_over(settings: Settings) -> None:
    """This process ends: leave what is open to a process that does nothing else."""
    for corpus in records.corpora_at_work(settings.home):
        mine = [job for job in records.open_jobs(settings.home, corpus) if job.pid == os.getpid()]
        if mine:
            with contextlib.suppress(OSError):
                records.started(settings.home, mine[0].job_id)


def _keep(settings: Settings, over: threading.Event) -> None:
    while not over.is_set():
        try:
            for corpus in records.corpora_at_work(settings.home):
                _lead(settings, corpus)
        except Exception as error:  # the next look may do better
            log.warning("open jobs were not looked at: %s", error)
        over.wait(LOOK_EVERY)


# ---- leading ------------------------------------------------------------------------------------


def _lead(settings: Settings, corpus: str) -> None:
    """See that a thread waits for the lead of the corpus as long as something is open there."""
    place = (settings.home, corpus)
    with _leading:
        if place not in _leaders:
            # Not a daemon: an orderly exit lets a small job finish.
            work = partial(_wait_and_lead, settings, corpus)
            _leaders[place] = threading.Thread(target=work, name=f"waits-{corpus}")
            _leaders[place].start()


def _wait_and_lead(settings: Settings, corpus: str) -> None:
    place, me = (settings.home, corpus), threading.current_thread()
    while True:
        worked = led = False
        try:
            with IN_PROCESS, _lead_of(settings.home, corpus) as led:
                # whom the end of the server waits for a moment
                me.name = f"job-{corpus}" if led else me.name
                worked = led and _turn(settings, corpus)
            _troubles.pop(place, None)
        except Exception as error:
            known = (getattr(error, name, None) for name in ("strerror", "what"))
            reason = next(filter(None, known), type(error).__name__)
            if _troubles.get(place) != reason:  # once, not every second of a night with a full disk
                said_once = "the open jobs of %s were not done; tried again until they are"
                log.exception(said_once, corpus)
            _troubles[place] = reason
            time.sleep(1.0)
        me.name = f"waits-{corpus}"
        with _leading:
            if not records.waiting(settings.home, corpus) or not threading.main_thread().is_alive():
                del _leaders[place]
                return
        if not worked:  # with the lead: what is open is not for this process
            time.sleep(LOOK_EVERY if led else LEAD_EVERY)


@contextlib.contextmanager
def _lead_of(home: Path, corpus: str) -> Generator[bool]:
    """Hold the lead of a corpus, if no one else does. The system takes it from a process that dies."""
    with contextlib.ExitStack() as stack:
        led = False
        with contextlib.suppress(Busy):
            stack.enter_context(_lock(home, corpus, 0.0))
            led = True
        yield led


def _lock(home: Path, name: str, seconds: float) -> contextlib.AbstractContextManager[None]:
    return writer_lock(home / "jobs" / "lead" / name, seconds)


def _turn(settings: Settings, corpus: str) -> bool:
    """What is open, until nothing is or it is another process's turn; whether anything was done."""
    home, did = settings.home, False
    while threading.main_thread().is_alive():  # else Python starts no thread any more
        queue: list[Job] = []
        for job in records.open_jobs(home, corpus):
            if flag(home, job.job_id).exists():
                close(home, job, "cancelled")
            elif why := takeover.objection(settings, job):
                _leave(home, job, why)
            else:
                queue.append(takeover.confined(settings, job))
        if not queue:
            if not _merge_is_due(home, corpus):
                return did
            from graphrag_mcp.index.work import method_of

            # The job first: killed between the two, the merge is done twice and not never. It runs
            # when this process has removed the mark, so what is handed in meanwhile is in it.
            path = records.marker(home, corpus, MERGE)
            record = _mark(path).get("settings", {})
            foreign = takeover.of_settings(settings, record)
            handed = settings if foreign else from_record(settings, record)
            current = manifest.read(home / "corpora" / corpus)
            start(handed, corpus, IndexRequest(method=method_of(current) if current else "agent"))
            path.unlink(missing_ok=True)
            did = True
            continue
        first, *others = queue
        if (first.own or not _ours(first)) and records.alive(first):
            return did  # it waits for the lead
        if first.own:
            _again(home, first)
            return did
        group = run.together([first, *takewhile(_ours, others)])
        if all([run.begun(home, job) for job in group]):
            run.run(settings, group)
            time.sleep(GATHER_SECONDS if len(group) > 1 else 0)
        else:
            close(home, first, "failed", f"{TOO_MANY}. {RESUME}")
        did = True
    return did


def _leave(home: Path, job: Job, why: str) -> None:
    """Leave a job to another process, and say why where no one is at it."""
    phase = f"{records.WAITS} {why}"
    if job.phase != phase and not records.alive(job):
        job.phase = phase
        save(home, job)


def _ours(job: Job) -> bool:
    """May any process do this? Not where a model answers: its key is in one's environment."""
    stored = {**job.settings, **job.settings.get("templates", {})}
    asks = stored.get("chat_model") or stored.get("embedding_model")
    return takeover.asked_here(job) or not asks


def _merge_is_due(home: Path, corpus: str) -> bool:
    path = records.marker(home, corpus, MERGE)
    with contextlib.suppress(OSError):
        last, first = path.stat().st_mtime, _mark(path).get("since", 0.0)
        # or the clock was put back
        return not last - 60.0 < time.time() < min(last + QUIET_SECONDS, first + LONGEST)
    return False


class _Mark(TypedDict, total=False):
    """What the mark MERGE holds."""

    since: Finite
    settings: dict[str, Any]


def _mark(path: Path) -> _Mark:
    with contextlib.suppress(ValueError):  # half of it, on a disk that was full
        return stored.parsed(path.read_bytes(), _Mark)
    return {}


# ---- processes of their own ---------------------------------------------------------------------


def _again(home: Path, job: Job) -> None:
    """Another process for a job whose own has died; no more when it has taken so many with it."""
    if not run.begun(home, job):
        close(home, job, "failed", f"{TOO_MANY} ({job.job_id}.log says more). {RESUME}")
        return
    log.warning("%s: its process is gone; another one goes on with it", job.job_id)
    _spawn(home, job)


def _spawn(home: Path, job: Job) -> None:
    """A process of its own for this job, written down as who does it."""
    try:
        process = records.started(home, job.job_id)
    except OSError as error:
        close(home, job, "failed", f"no process could be started ({error.strerror}). {RESUME}")
        return
    job.pid, job.process = process.pid, records.process_mark(process.pid)
    save(home, job)
    threading.Thread(target=process.wait, daemon=True).start()  # or it would stay as a zombie


# ---- small parts --------------------------------------------------------------------------------


def _survey(request: IndexRequest) -> tuple[bool, str]:
    """Does the request fit a thread of this process, and a digest of its files as they are now."""
    files, size = 0, sum(len(text.text) for text in request.texts)
    seen = hashlib.sha256()
    for path in islice(_files_of(request), LOOKED_AT):
        with contextlib.suppress(OSError):
            status = os.stat(path)
            files += 1
            size += status.st_size * (UNPACKED if Path(path).suffix.lower() in PACKED else 1)
            mark = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n"
            seen.update(mark.encode("utf-8", "surrogateescape"))
    return files <= SMALL_FILES and size <= SMALL_SIZE, seen.hexdigest()


def _files_of(request: IndexRequest) -> Iterator[str]:
    """The files that a request names, in order, with those under its folders."""
    for start in request.paths:
        if os.path.isfile(start):
            yield start
        for folder, folders, names in os.walk(start):
            hidden = (".", "node_modules")
            folders[:] = sorted(name for name in folders if not name.startswith(hidden))
            yield from (os.path.join(folder, name) for name in sorted(names))
