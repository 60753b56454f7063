"""The difference between a folder and the index: documents to add, update and remove.

Opens no LanceDB: an unchanged folder costs a walk, a hash per file and nothing else. A document
goes only when its file lay under a folder named in this call, that folder was read completely, and
the file is not there; or when its folder has moved. Unreadable is not gone. What was removed by
hand stays out until a call names that file, or gives that text, itself.

A source whose folder is gone is looked for by the hashes of its files. Where too few of them are
found, nothing is taken for moved; it is said, with what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from graphrag_mcp.errors import BadInput
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import decode, git, read, walk
from graphrag_mcp.sources.walk import Found, FoundFile, shown
from graphrag_mcp.store.edit_log import Overlay
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.types import Document, IndexRequest

# A folder that was moved has been worked on since, as a rule; half of its files unchanged is no
# chance.
ENOUGH = 0.5
Sources = Mapping[str, Mapping[str, str]]
Known = tuple[str, str]  # the name of a file, and its hash


@dataclass
class Moved:
    found: Found
    labels: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def find(
    request: IndexRequest,
    sources: Sources,
    absent: Iterable[str],
    live: Iterable[Mapping[str, Any]],
    settings: Settings,
) -> Moved:
    """`absent`: labels of the folders that are not where they were; `live`: {uri, file, file_sha}
    of every document. With `remove_missing` the one that calls says that what is missing is to leave."""
    paths, within, sure = request.paths, request.within, request.remove_missing
    found = walk.find(paths, sources, settings, within)
    files = {row["file"]: row["file_sha"] for row in live}
    away = {label: old for label in absent if (old := _files_of(label, files))}
    if not away or not found.files:
        return Moved(found)
    wanted = {name for old in away.values() for name, _ in old}
    found.files = [_hashed(file) if _name(file.uri) in wanted else file for file in found.files]
    new = {(_name(file.uri), file.sha) for file in found.files if file.uri not in files}
    every = {(_name(file.uri), file.sha) for file in found.files}
    complete = all(scope.complete for scope in found.scopes) and not found.errors
    moved, notes = set(), []
    for label, old in away.items():
        again = sum(one in new for one in old)
        if again >= ENOUGH * len(old) and complete:
            moved.add(label)
            notes.append(_said(sources[label]["path"], again, len(old)))
        elif there := sum(one in every for one in old):
            if sure and complete:
                moved.add(label)
                notes.append(_said(sources[label]["path"], there, len(old)))
            else:
                notes.append(_doubtful(sources[label]["path"], there, len(old)))
    if not moved:
        return Moved(found, notes=notes)
    if sure:  # what was doubled by earlier calls has the label of a second folder
        named = {os.path.realpath(path) for path in paths}
        moved |= {label for label, source in sources.items() if source["path"] in named}
    hashes = {file.path: file.sha for file in found.files}
    left = {label: source for label, source in sources.items() if label not in moved}
    found = walk.find(paths, left, settings, within)
    found.files = [replace(file, sha=hashes.get(file.path) or file.sha) for file in found.files]
    return Moved(found, moved, notes)


def _files_of(label: str, files: Mapping[str, str]) -> list[Known]:
    return [(_name(file), sha) for file, sha in files.items() if file.startswith(f"{label}/")]


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _hashed(file: FoundFile) -> FoundFile:
    """The file with its SHA-256, where it can be read."""
    try:
        return file if file.sha else replace(file, sha=read.sha(file))
    except OSError:
        return file  # the reading will say why


def _said(path: str, found: int, total: int) -> str:
    return f"{shown(path)} is no longer there, {found} of its {total} files were found again: it was taken as moved."


def _doubtful(path: str, found: int, total: int) -> str:
    return (
        f"{shown(path)} is no longer there; {found} of its {total} files are also in what was named now. If it was "
        "moved, call again with remove_missing=true and its old documents leave; else they stay."
    )


# One call may empty a small corpus, but not most of a larger one by mistake (a folder not mounted,
# a wrong path).
GUARDED = 20
REMOVED = "removed by remove_documents"  # why a file is skipped


@dataclass
class Plan:
    found: walk.Found
    live: dict[str, dict[str, Any]]  # uri -> {id, file, file_sha, n} of every document there is
    # uri of a file -> uris of its documents
    by_file: dict[str, list[str]] = field(default_factory=dict)
    to_read: list[walk.FoundFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unchanged: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    quota: walk.Quota = field(default_factory=lambda: walk.of(Settings()))
    removed: set[str] = field(default_factory=set)  # uris of documents and files that stay out
    # those that do not any more, since this call names them
    asked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what the one that called has to know

    def stays_out(self, uri: str, file: str) -> bool:
        return uri in self.removed or file in self.removed


def make(
    folder: Path,
    manifest: Manifest | None,
    request: IndexRequest,
    settings: Settings,
    edits: Overlay | None = None,
) -> Plan:
    """Walk and hash; raises BadInput where too much would go at once."""
    live: dict[str, dict[str, Any]] = {}
    if manifest is not None:
        live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    found, left, notes = look(request, manifest, live.values, settings)
    plan = Plan(found, live, errors=list(found.errors), quota=walk.of(settings), notes=notes)
    edits = edits or Overlay()
    plan.asked = _asked(found, request, edits) if edits.removed else []
    plan.removed = edits.removed.keys() - set(plan.asked)
    # rows of tables
    back = {uri for uri in (edits.back() | set(plan.asked)) if "#" in uri and uri not in live}
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
        if live[known[0]]["file_sha"] == sha and not any(
            uri.startswith(f"{file.uri}#") for uri in back
        ):
            plan.unchanged += len(known)
        else:
            plan.to_read.append(file)
    _committed(plan, folder, manifest, settings)
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
        plan.gone += [
            uri for uri, row in live.items() if uri not in gone and plan.stays_out(uri, row["file"])
        ]
    return plan


def _committed(plan: Plan, folder: Path, manifest: Manifest | None, settings: Settings) -> None:
    """Give files the days of their commits. Where another commit is checked out than when the
    source was read last, files whose day is another are read again, although their text is the same."""
    sources = plan.found.sources
    inside = git.repositories(plan.found.files) if settings.git_dates else {}
    heads = {label: git.heads(inside.get(label, ())) for label in sources}
    other = {label for label in sources if heads[label] != sources[label].get("commits", "")}
    reading = {file.path for file in plan.to_read}
    days = git.commits(
        pair
        for label, pairs in inside.items()
        for pair in pairs
        if label in other or pair[1].path in reading
    )
    if other and manifest is not None:
        known = _days(folder, manifest)
        for file in plan.found.files:
            same = days.get(file.path, ("", ""))[1] == known.get(file.uri, "")
            unread = file.path not in reading and file.uri in plan.by_file
            if file.source in other and unread and not same and file.uri not in plan.removed:
                plan.to_read.append(file)
                plan.unchanged -= len(plan.by_file[file.uri])
    plan.to_read = [replace(file, commit=days.get(file.path, ("", ""))) for file in plan.to_read]
    plan.to_read.sort(key=lambda file: file.uri)
    whole = {scope.prefix for scope in plan.found.scopes if scope.complete}
    for label, source in sources.items():
        if f"{label}/" in whole:
            source.pop("commits", None)
            source |= {"commits": heads[label]} if heads[label] else {}


def _days(folder: Path, manifest: Manifest) -> dict[str, str]:
    """The days of commits that the index holds, by uri of the file."""
    rows = live_documents(folder, manifest, ["uri", "metadata"]).to_pylist()
    held = {row["uri"]: json.loads(row["metadata"] or "{}") for row in rows}
    return {uri: str(said[read.COMMITTED]) for uri, said in held.items() if read.COMMITTED in said}


def changes(folder: Path, manifest: Manifest, settings: Settings) -> dict[str, list[str]]:
    """Uris of files that are new, changed or deleted since the index was made; nothing is read
    but to be hashed. Of a source whose folder is gone every file counts as deleted."""
    live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    kinds = {label: source["kind"] for label, source in manifest.sources.items()}
    paths = [one["path"] for one in manifest.sources.values() if one["kind"] == "folder"]
    known: dict[str, str] = {}  # uri of a file -> its hash
    for row in live.values():
        label, _, rest = row["file"].partition("/")
        if kinds.get(label, "import") == "import":  # imported, or given as text
            continue
        known[row["file"]] = row["file_sha"]
        if kinds[label] != "folder":
            paths.append(os.path.join(manifest.sources[label]["path"], rest))
    there = [path for path in paths if os.path.exists(path)]
    found = {one.uri: one for one in walk.find(there, manifest.sources, settings).files}
    told: dict[str, list[str]] = {
        "new": sorted(found.keys() - known.keys()),
        "changed": [],
        "deleted": sorted(known.keys() - found.keys()),
    }
    for uri in sorted(found.keys() & known.keys()):
        with suppress(OSError):
            if (found[uri].sha or read.sha(found[uri])) != known[uri]:
                told["changed"].append(uri)
    return told


def _asked(found: walk.Found, request: IndexRequest, edits: Overlay) -> list[str]:
    """Of the removed ones those that this call names itself: a file, with its rows, or a text."""
    named = {document.uri for document in read.inline(request.texts)} | {
        file.uri for file in found.files if file.named
    }
    return sorted(
        uri
        for uri in edits.removed
        if uri in named or any(uri.startswith(f"{one}#") for one in named)
    )


def look(
    request: IndexRequest,
    manifest: Manifest | None,
    live: Callable[[], Iterable[Mapping[str, Any]]],
    settings: Settings,
) -> tuple[walk.Found, Set[str], list[str]]:
    """What is in the folders and files of the request; labels of folders that have moved there;
    what is to be said. `live` gives the light rows of all documents."""
    sources = manifest.sources if manifest else {}
    absent = walk.absent(sources) if request.paths else []
    if not absent:
        return walk.find(request.paths, sources, settings, request.within), set(), []

    seen = find(request, sources, absent, live(), settings)
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
    """One document: `put` (new or changed), `relog` (only its file's hash moved), `derive` (same
    text, other parameters) or `gone` (document is None)."""

    what: Literal["put", "relog", "derive", "gone"]
    uri: str
    document: Document | None = None


def edits(
    folder: Path,
    manifest: Manifest | None,
    plan: Plan,
    request: IndexRequest,
    settings: Settings,
    again: set[str],
) -> Iterator[Edit]:
    """The edits, lost first, then file by file; what cannot be read is added to `plan.errors`.

    `again`: uris of documents that are derived again, from the truth, although their files did not
    change: their chunking or extraction is not what it should be."""
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
            for source in plan.found.sources.values():
                source.pop("commits", None)  # not all of it was compared
            plan.errors.append(plan.quota.left(left))
            if again and manifest is not None:
                late = {uri for file in left for uri in plan.by_file.get(file.uri, ())}
                yield from _from_truth(folder, manifest, again & late)
            break
        try:
            documents = list(read.load(file, settings))
        except decode.ReadError as error:
            plan.errors.append({"path": file.uri, "reason": str(error)})
            if again and manifest is not None:
                yield from _from_truth(
                    folder, manifest, again & set(plan.by_file.get(file.uri, ()))
                )
            continue
        plan.quota.take(file)
        if not documents:
            plan.found.skipped["empty"] = plan.found.skipped.get("empty", 0) + 1
        yield from _of_file(plan, documents, plan.by_file.get(file.uri, []), again)
    for document in read.inline(request.texts):
        yield from _of_file(plan, [document], [], again)


def _of_file(
    plan: Plan, documents: list[Document], before: list[str], again: Set[str]
) -> Iterator[Edit]:
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
                yield Edit(
                    "derive",
                    row["uri"],
                    Document(**{**row, "metadata": json.loads(row["metadata"])}),
                )
