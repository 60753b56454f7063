"""What a call has to do: the folder as it is against the documents as they were.

Takes the request, the previous manifest and the light columns of the document log; gives files to read, documents
to keep and documents that are gone. Opens no LanceDB: an unchanged folder costs a walk, a hash per file and
nothing else.

Gone has a scope: a document goes only when its file lay under a folder named in this call, that folder was read
completely, and the file is not there; or when its folder has moved, is named where it is now, and does not hold the
file any more (moved.py). Unreadable is not gone. What was removed by hand goes and stays out, wherever its
file lies, until a call names that file, or gives that text, itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index import quota, read
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.edits import Overlay
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.truth import live_documents
from graphrag_mcp.types import Document, IndexRequest

# One call may empty a small corpus, but not most of a larger one by mistake (a folder not mounted, a wrong path).
GUARDED = 20
REMOVED = "removed by remove_documents"  # why a file is skipped


@dataclass
class Plan:
    found: read.Found
    live: dict[str, dict[str, Any]]  # uri -> {id, file, file_sha, n} of every document there is
    by_file: dict[str, list[str]] = field(default_factory=dict)  # uri of a file -> uris of its documents
    to_read: list[read.FoundFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unchanged: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    quota: quota.Quota = field(default_factory=lambda: quota.of(Settings()))
    removed: set[str] = field(default_factory=set)  # uris of documents and files that stay out
    asked: list[str] = field(default_factory=list)  # those that do not any more, since this call names them
    notes: list[str] = field(default_factory=list)  # what whoever called has to know

    def stays_out(self, uri: str, file: str) -> bool:
        return uri in self.removed or file in self.removed


def make(
    folder: Path, manifest: Manifest | None, request: IndexRequest, settings: Settings, edits: Overlay | None = None
) -> Plan:
    """Walk and hash; raises BadInput where too much would go at once."""
    live: dict[str, dict[str, Any]] = {}
    if manifest is not None:
        live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    found, left, notes = look(request, manifest, live.values, settings)
    plan = Plan(found, live, errors=list(found.errors), quota=quota.of(settings), notes=notes)
    edits = edits or Overlay()
    plan.asked = _asked(found, request, edits) if edits.removed else []
    plan.removed = edits.removed.keys() - set(plan.asked)
    back = {uri for uri in (edits.back() | set(plan.asked)) if "#" in uri and uri not in live}  # rows of tables
    for uri, row in live.items():
        plan.by_file.setdefault(row["file"], []).append(uri)
    present = set()
    for file in found.files:
        present.add(file.uri)
        if file.uri in plan.removed:
            plan.found.skipped[REMOVED] = plan.found.skipped.get(REMOVED, 0) + 1
            continue
        known = plan.by_file.get(file.uri)
        if not known:
            plan.to_read.append(file)
            continue
        try:
            sha = file.sha or read.sha(file)
        except OSError as error:
            plan.errors.append({"path": file.uri, "reason": f"cannot be read ({error.strerror})"})
            continue
        if live[known[0]]["file_sha"] == sha and not any(uri.startswith(f"{file.uri}#") for uri in back):
            plan.unchanged += len(known)
        else:
            plan.to_read.append(file)
    unreadable = {error["path"] for error in plan.errors}
    for file_uri, uris in plan.by_file.items() if found.scopes or left else ():
        if file_uri in present or file_uri in unreadable or file_uri.startswith("text:"):
            continue
        if any(scope.complete and file_uri.startswith(scope.prefix) for scope in found.scopes):
            plan.gone += uris
        elif file_uri.partition("/")[0] in left:
            plan.gone += uris
    _guard(plan, request)
    if plan.removed:
        gone = set(plan.gone)
        plan.gone += [uri for uri, row in live.items() if uri not in gone and plan.stays_out(uri, row["file"])]
    return plan


def _asked(found: read.Found, request: IndexRequest, edits: Overlay) -> list[str]:
    """Of the removed ones those that this call names itself: a file, with its rows, or a text."""
    named = {document.uri for document in read.inline(request.texts)} | {file.uri for file in found.files if file.named}
    return sorted(uri for uri in edits.removed if uri in named or any(uri.startswith(f"{one}#") for one in named))


def look(
    request: IndexRequest, manifest: Manifest | None, live: Callable[[], Iterable[Mapping[str, Any]]],
    settings: Settings,
) -> tuple[read.Found, Set[str], list[str]]:  # fmt: skip
    """What is in the folders and files of the request; labels of folders that have moved there; what is to be said.
    `live` gives the light rows of all documents."""
    sources = manifest.sources if manifest else {}
    absent = read.absent(sources) if request.paths else []
    if not absent:
        return read.find(request.paths, sources, settings, request.within), set(), []
    from graphrag_mcp.index import moved

    seen = moved.find(request, sources, absent, live(), settings)
    return seen.found, seen.labels, seen.notes


def _guard(plan: Plan, request: IndexRequest) -> None:
    """What has only another name is not lost."""
    total = len(plan.live)
    if total <= GUARDED or len(plan.gone) * 2 <= total or request.remove_missing:
        return
    there = set()
    for file in plan.to_read:
        with suppress(OSError):
            there.add(file.sha or read.sha(file))
    lost = sum(plan.live[uri]["file_sha"] not in there for uri in plan.gone)
    if lost * 2 > total:
        raise BadInput(
            f"{lost} of the {total} documents of this corpus are no longer in the folders named",
            "Check that the folder is complete, then call again with remove_missing=true to remove them",
        )


@dataclass
class Edit:
    """One document: `put` (new or changed), `relog` (only its file's hash moved), `derive` (same text, other
    parameters) or `gone` (document is None)."""

    what: Literal["put", "relog", "derive", "gone"]
    uri: str
    document: Document | None = None


def edits(
    folder: Path, manifest: Manifest | None, plan: Plan, request: IndexRequest, settings: Settings, again: set[str]
) -> Iterator[Edit]:
    """The edits, goners first, then file by file; what cannot be read is added to `plan.errors`.

    `again`: uris of documents that are derived again, from the truth, although their files did not change: their
    chunking or extraction is not what it should be.
    """
    for uri in sorted(plan.gone):
        yield Edit("gone", uri)
    if again and manifest is not None:
        again = (again & plan.live.keys()) - set(plan.gone)
        read_again = {uri for file in plan.to_read for uri in plan.by_file.get(file.uri, ())}
        read_again |= {document.uri for document in read.inline(request.texts)}
        yield from _from_truth(folder, manifest, again - read_again)
    for position, file in enumerate(plan.to_read):
        if plan.quota.full():
            left = plan.to_read[position:]
            plan.errors.append(plan.quota.left(left))
            if again and manifest is not None:
                late = {uri for file in left for uri in plan.by_file.get(file.uri, ())}
                yield from _from_truth(folder, manifest, again & late)
            break
        try:
            documents = list(read.load(file, settings))
        except read.ReadError as error:
            plan.errors.append({"path": file.uri, "reason": str(error)})
            if again and manifest is not None:
                yield from _from_truth(folder, manifest, again & set(plan.by_file.get(file.uri, ())))
            continue
        plan.quota.take(file)
        if not documents:
            plan.found.skipped["empty"] = plan.found.skipped.get("empty", 0) + 1
        yield from _of_file(plan, documents, plan.by_file.get(file.uri, []), again)
    for document in read.inline(request.texts):
        yield from _of_file(plan, [document], [], again)


def _of_file(plan: Plan, documents: list[Document], before: list[str], again: Set[str]) -> Iterator[Edit]:
    now = set()
    for document in documents:
        now.add(document.uri)
        if plan.stays_out(document.uri, document.file):  # and if it is there, it is on its way out
            continue
        known = plan.live.get(document.uri)
        if known is None or known["id"] != document.id:
            yield Edit("put", document.uri, document)
            continue
        plan.unchanged += 1
        if known["file_sha"] != document.file_sha:
            yield Edit("relog", document.uri, document)
        if document.uri in again:
            yield Edit("derive", document.uri, document)
    for uri in sorted(set(before) - now):
        if not plan.stays_out(uri, plan.live[uri]["file"]):
            yield Edit("gone", uri)


def _from_truth(folder: Path, manifest: Manifest, uris: set[str]) -> Iterator[Edit]:
    columns = ["uri", "title", "text", "metadata", "created", "file", "file_sha"]
    for batch in live_documents(folder, manifest, columns).to_batches(max_chunksize=500):
        for row in batch.to_pylist():
            if row["uri"] in uris:
                yield Edit("derive", row["uri"], Document(**{**row, "metadata": json.loads(row["metadata"])}))
