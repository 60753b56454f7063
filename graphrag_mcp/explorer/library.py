"""What an index holds and where it comes from, for the view in which a person looks after it.

Every document with its state, files that could not be read with the reason, documents that were taken
out with what brings them back, the folders, what a model has still to answer, and the settings, none
of which is a key."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp import plugins
from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.files import path_for_caller
from graphrag_mcp.explorer.topics import TITLE
from graphrag_mcp.jobs import queue
from graphrag_mcp.jobs.queue import Job
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import filters, summaries
from graphrag_mcp.settings import record_of
from graphrag_mcp.sources.diff import changes, unread_files
from graphrag_mcp.sources.links import INLINE_TEXT
from graphrag_mcp.store import edit_log
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.tables import Snapshot, open_questions
from graphrag_mcp.text.uris import file_and_key
from graphrag_mcp.trust.fencing import TELL_PATHS

if TYPE_CHECKING:
    from graphrag_mcp.app import App

DOCUMENTS = 5_000  # in the list; a search finds the others
ON_DISK = 2_000  # documents up to which files are compared with the index when the view is opened
LISTED = 200  # of files that could not be read or are new, and of documents that were taken out
SETTINGS = 200  # characters of a value
JOBS = 10
PATHS = ("home", "roots", "notes")  # settings that say where something is on this machine
LOCAL = re.compile(r"local:.*[/\\]")  # a model in a folder
COUNTED = ("added", "changed", "removed", "unchanged")

Data = dict[str, Any]


def library(app: App, snapshot: Snapshot) -> Data:
    """The data of the view."""
    manifest = snapshot.manifest
    facts = filters.documents(snapshot)
    on_disk: dict[str, list[str]] = {}
    if len(facts) <= ON_DISK:
        on_disk = changes(snapshot.folder, manifest, app.settings)
    state = {uri: name for name in ("changed", "deleted") for uri in on_disk.get(name, ())}
    summarised = summaries.of_documents(snapshot, list(facts))
    documents = [
        {
            "n": int(fact.alias[1:]),
            "title": one_line(fact.title or fact.file, TITLE),
            "uri": one_line(fact.uri, TITLE),
            "date": fact.date,
            "state": state.get(file_and_key(str(fact.uri))[0], "indexed"),
            "summary": id in summarised,
            "code": plugins.verbatim(fact.uri),
        }
        for id, fact in facts.items()
    ]
    documents.sort(key=lambda document: (document["uri"], document["n"]))
    overlay = edit_log.fold(edit_log.load(snapshot.folder, manifest))
    out = {file_and_key(uri)[0] for uri in overlay.removed}
    jobs = queue.listing(app.home, manifest.corpus)[:JOBS]
    rows = open_questions(snapshot)
    return {
        "title": manifest.corpus,
        "documents": documents[:DOCUMENTS],
        "more": max(0, len(documents) - DOCUMENTS),
        "new": [one_line(uri, TITLE) for uri in on_disk.get("new", ()) if uri not in out][:LISTED],
        "unread": _unread(manifest, jobs),
        "jobs": [_job(job) for job in jobs[:JOBS]],
        "removed": _removed(overlay),
        "folders": [
            {"name": one_line(label, TITLE), "path": path_for_caller(app, Path(source["path"]))}
            for label, source in sorted(manifest.sources.items())
            if source.get("kind") in ("folder", "files") and source.get("path")
        ],
        "pending": dict(sorted(Counter(row["kind"] for row in rows).items())),
        "unsummarised": len(facts) - len(summarised),
        "settings": _settings(app),
    }


def kept_text(snapshot: Snapshot, uri: str) -> Data:
    """A text without a file that was taken out, as index_documents takes it: from the newest of the kept
    generations that hold it. NotFound where none does any more."""
    for manifest in reversed(manifests.generations(snapshot.folder)):
        if manifest.format == snapshot.manifest.format:
            older, columns = Snapshot(snapshot.folder, manifest), ["title", "text", "metadata"]
            for row in older.by_key("documents", [uri], "uri", columns).to_pylist():
                row["metadata"] = json.loads(row["metadata"] or "{}")
                return {"id": uri.removeprefix(INLINE_TEXT), **row}
    raise NotFound("the index no longer holds this text: paste it again", "Paste it again")


def folders_of(manifest: manifests.Manifest) -> list[str]:
    """The folders of an index that are there."""
    sources = manifest.sources.values()
    paths = [source.get("path", "") for source in sources if source.get("kind") == "folder"]
    return [path for path in paths if path and Path(path).is_dir()]


def _unread(manifest: manifests.Manifest, jobs: Sequence[Job]) -> list[Data]:
    """Files that could not be read, with what the newest job that tried them says."""
    uris = {uri for source in manifest.sources.values() for uri in unread_files(source)}
    why: dict[str, str] = {}
    for job in jobs:
        for error in (job.result or {}).get("errors", ()):
            why.setdefault(error.get("path", ""), error.get("reason", ""))
    listed = sorted(uris)[:LISTED]
    return [{"uri": one_line(uri, TITLE), "why": one_line(why.get(uri, ""), TITLE)} for uri in listed]


def _job(job: Job) -> Data:
    """A job in a list, with the files that it passed over."""
    result: Data = job.result or {}
    skipped = [
        {"uri": one_line(file.get("path", ""), TITLE), "why": one_line(file.get("reason", ""), TITLE)}
        for file in [*result.get("errors", ()), *result.get("skipped_files", ())]
    ]
    counts = {name: n for name, n in result.get("counts", {}).items() if name in COUNTED and n}
    fields = {"id": job.job_id, "status": job.status, "started": job.started[:19], "error": job.error}
    return {**fields, "counts": counts, "skipped": skipped[:LISTED], "more": len(skipped[LISTED:])}


def _removed(overlay: edit_log.Overlay) -> list[Data]:
    """Documents that were taken out and are still out, the last ones first."""
    when = {row.id: row.time for row in overlay.log}
    removed = [
        {"uri": one_line(uri, TITLE), "undo_id": id, "time": when.get(id, "")} for uri, id in overlay.removed.items()
    ]
    removed.sort(key=lambda document: (document["time"], document["uri"]), reverse=True)
    return removed[:LISTED]


def _settings(app: App) -> list[list[str]]:
    """[name, value] of the settings; of those that hold a key the name alone, and also of those with a
    path, where the caller is not the user of this machine."""
    record = record_of(app.settings)
    withheld: list[str] = record.pop("withheld", [])
    record = {"home": str(app.home), **record, **record.pop("templates", {})}
    if not TELL_PATHS.get():
        paths = [*PATHS, *(name for name, value in record.items() if LOCAL.match(str(value)))]
        withheld += [name for name in dict.fromkeys(paths) if record.pop(name, None)]
    pairs = [[name, one_line(str(value), SETTINGS)] for name, value in record.items() if value]
    return [*pairs, *([name, "(not shown)"] for name in withheld)]
