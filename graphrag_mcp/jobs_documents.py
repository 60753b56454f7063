"""The documents of a job, one by one: pending, processing, processed or failed, and why.

Takes jobs and the log of their corpus; gives states by uri (a file's uri, or `text:<id>`), pages of them, and the
result of each job of a group that was indexed in one run. `<home>/jobs/<job_id>.documents.jsonl` holds what changed,
line by line, the last line of a uri counts: only the process that does the job appends to it. What the index itself
says is worth more: `mended` compares the two before a job goes on. Knows no tool and starts nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_mcp.errors import BadInput
from graphrag_mcp.jobs_record import FINAL, Job, request_of
from graphrag_mcp.settings import Settings
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
    """What one job names: uris in the order in which they are read; `files` are those that lie on disk."""

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


def note(home: Path, job: Job, uris: Iterable[str], state: str, errors: Mapping[str, str] | None = None) -> None:
    """Append what became of documents. Not worth a flush: after a power cut the index is asked."""
    lines = [json.dumps({"uri": uri, "state": state} | ({"error": errors[uri]} if errors else {})) for uri in uris]
    if lines:
        with open(_file(home, job.job_id), "a", encoding="ascii") as file:
            file.write("\n" + "\n".join(lines) + "\n")  # the first ends a line that a kill has torn


def page(home: Path, job: Job, wanted: str, cursor: str) -> tuple[list[State], dict[str, int], str]:
    """So many documents in that state ("all": in each), how many there are by state, and the cursor of the next."""
    start = 0
    if cursor:
        owner, _, number = cursor.rpartition(".")
        if owner != job.job_id or not number.isascii() or not number.isdigit():
            raise BadInput("that cursor is not of this list", "Leave it out to begin again")
        start = int(number)
    every = list(states(home, job).values())
    counts = {state: sum(1 for one in every if one["state"] == state) for state in STATES}
    shown = [one for one in every if wanted in ("all", one["state"])]
    more = f"{job.job_id}.{start + PAGE}" if start + PAGE < len(shown) else ""
    return shown[start : start + PAGE], {state: count for state, count in counts.items() if count}, more


def _file(home: Path, job_id: str) -> Path:
    return home / "jobs" / f"{job_id}.documents.jsonl"


# ---- what a job names -----------------------------------------------------------------------------


def scopes(group: Sequence[Job], settings: Settings, folder: Path, held: Manifest | None) -> dict[str, Scope]:
    """What each job of a group names, by job id. One look at the folders for all of them, as the run itself takes."""
    from graphrag_mcp.index import plan
    from graphrag_mcp.store import truth

    requests = {job.job_id: request_of(job) for job in group}
    found, *_ = plan.look(as_one(group), held, lambda: truth.live_documents(folder, held).to_pylist(), settings)
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
    from graphrag_mcp.index import read

    return [(document.uri, document.id) for document in read.inline(request.texts)]


def together(jobs: Sequence[Job], most: int) -> list[Job]:
    """The first job and those behind it that may go with it in one run: alike, of texts and single files, and none
    that names again what one before it names. The order of two that meet is kept: the later one waits."""
    first, group, size = jobs[0], [], 0
    taken: set[str] = set()
    for job in jobs:
        request, texts = request_of(job), len(json.dumps(job.request.get("texts", [])))
        # Two files of one name are kept apart, for errors tell a file by the end of its path.
        named = {*map(os.path.basename, request.paths), *(uri for uri, _ in _texts(request))}
        alike = job.settings == first.settings and _flags(request) == _flags(request_of(first)) and not job.own
        files = [path for path in request.paths if os.path.isfile(path)]
        size += texts + sum(os.path.getsize(path) for path in files)
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
    from graphrag_mcp.store import manifest, truth

    held = manifest.read(folder)
    if held is None:
        return {}
    rows = truth.live_documents(folder, held, ["uri", "id", "file"]).to_pylist()
    return {row["uri"]: (row["id"], row["file"]) for row in rows}


def shares(group: Sequence[Job], given: Mapping[str, Scope], result: IndexResult, before: Live, after: Live) -> None:
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
                counts["added" if not old else "removed" if not new else "unchanged" if old == new else "changed"] += 1
        ends = {os.path.basename(path) for path in request_of(job).paths}
        mine_too = {*scope.uris, *job.request.get("paths", ())}
        errors = [
            error for error in result.errors
            if (path := error.get("path", "")) in mine_too or path.rpartition("/")[2] in ends
        ]  # fmt: skip
        done = counts["added"] + counts["changed"] + counts["unchanged"]
        mine = result.model_copy(update={
            "counts": {**result.counts, **counts}, "errors": errors, "done": done, "total": done + len(errors),
        })  # fmt: skip
        if not first:  # what was spent is told once
            mine.usage, mine.seconds, mine.skipped = {}, {}, {}
        first = False
        job.result, job.done, job.total = mine.model_dump(mode="json"), done, done + len(errors)


def settle(home: Path, job: Job, scope: Scope) -> None:
    """Every document of a job that is over is processed, or failed with its reason."""
    failed = {error["path"]: error["reason"] for error in job.result.get("errors", ()) if error.get("path")}
    if not states_begun(home, job):
        note(home, job, [uri for uri in scope.uris if uri not in failed], "pending")
    note(home, job, failed, "failed", failed)
    note(home, job, [ALL], "processed")


def states_begun(home: Path, job: Job) -> bool:
    return _file(home, job.job_id).exists()


def mended(home: Path, folder: Path, job: Job, scope: Scope) -> list[str]:
    """Put right what a dead process left of this job, and say it: its documents against what the index holds."""
    earlier = states(home, job) if states_begun(home, job) else {}
    if not earlier:
        return []
    held = {file for _, file in live(folder).values()}
    lost = [uri for uri, one in earlier.items() if one["state"] == "processed" and uri not in held]
    middle = [uri for uri, one in earlier.items() if one["state"] == "processing" and uri not in held]
    written = [uri for uri, one in earlier.items() if one["state"] in ("processing", "pending") and uri in held]
    note(home, job, [*lost, *middle], "pending")
    note(home, job, written, "processed")
    said = []
    if middle:
        said.append(f"{len(middle)} documents that an interrupted run left in the middle were queued again")
    if lost:
        said.append(f"{len(lost)} documents that had been processed are no longer in the index and were queued again")
    if written:
        said.append(f"{len(written)} documents of an interrupted run were found in the index, whole")
    return said
