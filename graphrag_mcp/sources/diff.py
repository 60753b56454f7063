"""The difference between a folder and the index: documents to add, update and remove.

Opens no LanceDB: an unchanged folder costs a walk, a hash per file and nothing else. A document
goes only when its file is not in a folder that this call names and that was read completely; or
when its folder has moved. Unreadable is not gone. What was removed by hand stays out until a call
names that file, or gives that text, itself.

A source whose folder is gone is looked for by the hashes of its files. Where too few of them are
found, nothing is taken for moved; it is said, with what to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graphrag_mcp.errors import BadInput
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import walk
from graphrag_mcp.sources.document import LINKS, PLACES, Document
from graphrag_mcp.sources.opening import Folder
from graphrag_mcp.sources.walk import Found, FoundFile, shown
from graphrag_mcp.store import stored
from graphrag_mcp.store.edit_log import Overlay
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.types import IndexRequest

if TYPE_CHECKING:
    from graphrag_mcp.sources.piece import NotRead
    from graphrag_mcp.sources.read import Describe

# A moved folder has been worked on since, as a rule; half of its files unchanged is no chance.
ENOUGH = 0.5
# A call may empty a small corpus, not most of a larger one by mistake (a folder not mounted).
GUARDED = 20
REMOVED = "removed by remove_documents"  # why a file is skipped
# The kind of an error of a file that lies in a folder of the call. It is no failure of the run: the
# folder may hold it for ever.
UNREAD = "unread"
# Raise it when a reader gives another text for a file, or reads a new suffix: the next indexing reads every file once
# more, and derives those again whose text is another.
READERS = 19
OCR, VISION = "ocr", "vision"  # conditions on which a file is read again
Sources = Mapping[str, Mapping[str, str]]
Rows = Iterable[Mapping[str, Any]]  # {uri, file, file_sha} of every document


# ---- folders that have moved ----------------------------------------------------------------------


def look(
    request: IndexRequest, manifest: Manifest | None, live: Callable[[], Rows], settings: Settings
) -> tuple[Found, Set[str], list[str]]:
    """What the request holds; labels of sources that moved there; notes. `live`: all documents."""
    sources: Sources = manifest.sources if manifest else {}
    paths, within = request.paths, request.within
    found = walk.find(paths, sources, settings, within)
    missing = walk.absent(sources) if paths and found.files else []
    if not missing:
        return found, set(), []
    hashes = {row["file"]: row["file_sha"] for row in live()}
    moved, notes = _moved(found, sources, missing, hashes, request.remove_missing)
    if moved:
        if request.remove_missing:  # what earlier calls doubled has the label of a second folder
            named = {os.path.realpath(path) for path in paths}
            moved |= {label for label, source in sources.items() if source["path"] in named}
        left = {label: source for label, source in sources.items() if label not in moved}
        found = walk.find(paths, left, settings, within)
    return found, moved, notes


def _moved(
    found: Found, sources: Sources, missing: Iterable[str], hashes: Mapping[str, str], sure: bool
) -> tuple[set[str], list[str]]:
    """Of the sources whose folder is missing those that were found again, by names and hashes of
    their files; and what is to be said. `sure`: the caller says that what is missing is to leave."""
    files = {
        label: [(_name(uri), sha) for uri, sha in hashes.items() if uri.startswith(f"{label}/")] for label in missing
    }
    names = {name for old in files.values() for name, _ in old}
    same = [file for file in found.files if _name(file.uri) in names]
    present = {file.uri: (_name(file.uri), _hash(file)) for file in same}
    new = {pair for uri, pair in present.items() if uri not in hashes}
    complete = all(scope.complete for scope in found.scopes) and not found.errors
    moved, notes = set(), []
    for label, old in files.items():
        path, total = shown(sources[label]["path"]), len(old)
        again = sum(pair in new for pair in old)
        doubled = sum(pair in present.values() for pair in old)
        certain = again > 0 and again >= ENOUGH * total
        if complete and (certain or (sure and doubled)):
            moved.add(label)
            count = again if certain else doubled
            notes.append(
                f"{path} is no longer there, {count} of its {total} files were found again: it was taken as moved."
            )
        elif doubled:
            notes.append(
                f"{path} is no longer there; {doubled} of its {total} files are also in what was named now. If it "
                "was moved, call again with remove_missing=true and its old documents leave; else they stay."
            )
    return moved, notes


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _hash(file: FoundFile) -> str:
    """The file's SHA-256; "" where it cannot be read, which the reading says."""
    with suppress(OSError):
        return walk.hash_of(file)
    return ""


# ---- the plan -------------------------------------------------------------------------------------


@dataclass
class Plan:
    """What a run has to do: files to read, documents that are gone, and what stays."""

    found: Found
    live: dict[str, dict[str, Any]]  # uri -> {id, file, file_sha, n} of every document there is
    quota: walk.Quota
    # uri of a file -> uris of its documents
    by_file: dict[str, list[str]] = field(default_factory=dict)
    to_read: list[FoundFile] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unchanged: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)  # uris of documents and files that stay out
    # those that do not any more, since this call names them
    asked: list[str] = field(default_factory=list)
    # label of a source -> files that were read: whether they are to be read again, as `_again` has it
    read: dict[str, dict[str, str | None]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what the one that called has to know

    def stays_out(self, uri: str, file: str) -> bool:
        return uri in self.removed or file in self.removed

    def finish(self) -> None:
        """Mark what was read. A run that ends before its last batch may not have committed all of it, so its
        sources keep the marks that were there."""
        for label, files in self.read.items():
            _store(self.found.sources[label], "again", files)


def make(
    folder: Path, manifest: Manifest | None, request: IndexRequest, settings: Settings, edits: Overlay | None = None
) -> Plan:
    """Walk and hash; raises BadInput where too much would go at once."""
    live: dict[str, dict[str, Any]] = {}
    if manifest is not None:
        live = {row["uri"]: row for row in live_documents(folder, manifest).to_pylist()}
    found, moved, notes = look(request, manifest, live.values, settings)
    plan = Plan(found, live, walk.Quota(settings), errors=list(found.errors), notes=notes)
    edits = edits or Overlay()
    plan.asked = _asked(found, request, edits) if edits.removed else []
    plan.removed = edits.removed.keys() - set(plan.asked)
    for uri, row in live.items():
        plan.by_file.setdefault(row["file"], []).append(uri)
    # Files with rows that were removed and come back are read again.
    back = edits.back() | set(plan.asked)
    _compare(plan, [uri for uri in back if "#" in uri and uri not in live], settings.vision_model)
    if found.scopes or moved:
        plan.gone += _missing(plan, moved)
    _guard(plan, request)
    missing = set(plan.gone)
    out = [uri for uri, row in live.items() if plan.stays_out(uri, row["file"])]
    plan.gone += [uri for uri in out if uri not in missing]
    return plan


def _compare(plan: Plan, back: Sequence[str], vision: str) -> None:
    """Which files are to be read: new ones, changed ones, those of the rows that are `back`, and those that are to
    be read again. `vision`: the model that describes pictures."""
    for label in {file.source for file in plan.found.files}:
        _mark(plan, label, vision)
    holds = {"": True, OCR: walk.ocr_installed(), VISION: bool(vision)}
    again = chain.from_iterable(_again(source).items() for source in plan.found.sources.values())
    due = {uri for uri, condition in again if holds.get(condition)}
    with Folder() as within:
        for file in plan.found.files:
            if file.uri in plan.removed:
                plan.found.skip(REMOVED)
                continue
            known = plan.by_file.get(file.uri)
            try:
                sha = walk.hash_of(file, within) if known else ""
            except OSError as error:
                _left(plan, file, f"cannot be read ({error.strerror})")
                continue
            if (
                known
                and plan.live[known[0]]["file_sha"] == sha
                and not any(uri.startswith(f"{file.uri}#") for uri in back)
                and file.uri not in due
            ):
                plan.unchanged += len(known)
            else:
                plan.to_read.append(file)


def _mark(plan: Plan, label: str, vision: str) -> None:
    """Mark the files of a source that are to be read again: all that readers of another version read, and with
    another model for pictures those that may hold some."""
    source = plan.found.sources[label]
    files = [uri for uri in plan.by_file if uri.startswith(f"{label}/")]
    if source.get("vision", "") != vision:  # without a model what is read lacks its pictures
        from graphrag_mcp.sources.pictures import HOLDERS

        source["vision"] = vision
        at_once = [uri for uri, condition in _again(source).items() if not condition]
        holders = {uri: VISION for uri in files if vision and walk.suffix_of(uri) in HOLDERS}
        _store(source, "again", holders | dict.fromkeys(at_once, ""))
    if source.get("readers", "") != str(READERS):
        source["readers"] = str(READERS)
        _store(source, "again", dict.fromkeys(files, ""))


def _left(plan: Plan, file: FoundFile, reason: str) -> None:
    """A file that cannot be read: an error, and its hash is kept, by which `changes` knows that it was tried."""
    error = {"path": file.uri, "reason": reason}
    plan.errors.append(error if file.named else error | {"kind": UNREAD})
    sha = _hash(file)
    _set_unread(plan.found.sources[file.source], file.uri, Unread(sha, reason) if sha else None)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read: SHA-256 of the bytes that were tried, and why not."""

    sha: str
    reason: str = ""

    @property
    def scanned(self) -> bool:
        """Are its pages pictures, that `[ocr]` reads?"""
        from graphrag_mcp.sources.ocr import PAGES

        return PAGES in self.reason


def unread_files(source: Mapping[str, str]) -> dict[str, Unread]:
    """Files of a source that could not be read, by uri. They are stored as `SHA-256 reason`."""
    parts = {uri: value.partition(" ") for uri, value in _stored(source, "unread").items()}
    return {uri: Unread(sha, reason) for uri, (sha, _, reason) in parts.items()}


def _set_unread(source: dict[str, str], uri: str, unread: Unread | None) -> None:
    """Remember that a file could not be read; forget it with None."""
    # Called for each file that is read: parsing 1,000 unread ones took 1.3 ms each time.
    if unread is None and json.dumps(uri, ensure_ascii=False) not in source.get("unread", ""):
        return
    _store(source, "unread", {uri: f"{unread.sha} {unread.reason}".rstrip() if unread else None})


def _again(source: Mapping[str, str]) -> dict[str, str]:
    """Files that are to be read again although they are the same, by uri, and when: at once (""), with OCR installed,
    or with a model that describes pictures."""
    return _stored(source, "again")


def _stored(source: Mapping[str, str], key: str) -> dict[str, str]:
    """What a source says of its files, by uri; its values are texts, so it is JSON."""
    with suppress(ValueError):
        return stored.parsed(source.get(key, "{}"), dict[str, str])
    return {}


def _store(source: dict[str, str], key: str, files: Mapping[str, str | None]) -> None:
    """Add files to what `_stored` gives; None takes one away."""
    every = {**_stored(source, key), **files}
    kept = {uri: value for uri, value in every.items() if value is not None}
    source.pop(key, None)
    if kept:
        source[key] = json.dumps(kept, sort_keys=True, ensure_ascii=False)


def _missing(plan: Plan, moved: Set[str]) -> Iterator[str]:
    """Documents whose files are not where they were."""
    present = {file.uri for file in plan.found.files} | {error["path"] for error in plan.errors}
    prefixes = tuple(scope.prefix for scope in plan.found.scopes if scope.complete)
    for source in plan.found.sources.values():
        for key in ("unread", "again"):
            left = (uri for uri in _stored(source, key) if uri.startswith(prefixes))
            _store(source, key, dict.fromkeys(uri for uri in left if uri not in present))
    for file, uris in plan.by_file.items():
        if file in present or file.startswith("text:"):
            continue
        if file.startswith(prefixes) or file.partition("/")[0] in moved:
            yield from uris


def _guard(plan: Plan, request: IndexRequest) -> None:
    """Refuse to let most of a corpus go at once. What has only another name is not lost."""
    total = len(plan.live)
    if total <= GUARDED or len(plan.gone) * 2 <= total or request.remove_missing:
        return
    present = {_hash(file) for file in plan.to_read}
    lost = sum(plan.live[uri]["file_sha"] not in present for uri in plan.gone)
    if lost * 2 > total:
        raise BadInput(
            f"{lost} of the {total} documents of this corpus are no longer in the folders named",
            "Check that the folder is complete, then call again with remove_missing=true to remove them",
        )


def _inline(request: IndexRequest) -> Iterator[Document]:
    if request.texts:
        from graphrag_mcp.sources.read import inline

        yield from inline(request.texts)


def _asked(found: Found, request: IndexRequest, edits: Overlay) -> list[str]:
    """Of the removed ones those that this call names itself: a file, with its rows, or a text."""
    named = {document.uri for document in _inline(request)}
    named |= {file.uri for file in found.files if file.named}
    rows = tuple(f"{uri}#" for uri in named)
    return sorted(uri for uri in edits.removed if uri in named or uri.startswith(rows))


def changes(folder: Path, manifest: Manifest, settings: Settings, below: str = "") -> dict[str, list[str]]:
    """Uris of files that are new, changed or deleted since the index was made, of those that could not be
    read then and are the same, and of those of which pictures were left out; nothing is read but to be hashed. Of a source whose folder is gone every
    file counts as deleted. `below`: a folder without links, and only files in it."""
    sources = manifest.sources
    paths = [source["path"] for source in sources.values() if source["kind"] == "folder"]
    known: dict[str, str] = {}  # uri of a file -> its hash
    for row in live_documents(folder, manifest).to_pylist():
        label, _, rest = row["file"].partition("/")
        source = sources.get(label, {"kind": "import"})
        if source["kind"] == "import":  # imported, or given as text
            continue
        path = os.path.join(source["path"], *rest.split("/"))
        if below and not path.startswith(os.path.join(below, "")):
            continue
        known[row["file"]] = row["file_sha"]
        if source["kind"] == "files":
            paths.append(path)
    present = [path for path in ([below] if below else paths) if os.path.exists(path)]
    walked = walk.find(present, sources, settings)
    found = {file.uri: file for file in walked.files}
    tried = {uri: file for source in sources.values() for uri, file in unread_files(source).items()}
    unread = {uri for uri, file in tried.items() if uri in found and _hash(found[uri]) == file.sha}
    scans = {uri for uri in unread if tried[uri].scanned}
    pictures = sorted(file["path"] for file in walked.named if file["reason"] == walk.PICTURE)
    again = chain.from_iterable(_again(source).items() for source in sources.values())
    waiting = {uri for uri, condition in again if condition == OCR}
    both = sorted((found.keys() & known.keys()) - unread)
    return {
        "new": sorted(found.keys() - known.keys() - unread),
        "changed": [uri for uri in both if _hash(found[uri]) not in ("", known[uri])],
        "deleted": sorted(known.keys() - found.keys()),
        "unread": sorted(unread),
        "scans": sorted(scans),
        "pictures": pictures,
        "pictures_left_out": sorted(waiting & found.keys()),
    }


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
    describe: Describe | None = None,
) -> Iterator[Edit]:
    """The edits, lost first, then file by file; what cannot be read is added to `plan.errors`.
    `describe`: has the pictures in files described by a model.

    `again`: uris of documents that are derived again, from the truth, although their files did not
    change: their chunking or extraction is not what it should be."""
    from graphrag_mcp.sources import decode, ocr, read

    for uri in sorted(plan.gone):
        yield Edit("gone", uri)
    again = (again & plan.live.keys()) - set(plan.gone)

    def derived(uris: Iterable[str]) -> Iterator[Edit]:
        return _from_truth(folder, manifest, again & set(uris))

    reads = {uri for file in plan.to_read for uri in plan.by_file.get(file.uri, ())}
    reads |= {document.uri for document in _inline(request)}
    yield from derived(again - reads)
    try:
        for position, file in enumerate(plan.to_read):
            before = plan.by_file.get(file.uri, [])
            if plan.quota.full():
                left = plan.to_read[position:]
                plan.errors.append(plan.quota.left(left))
                yield from derived(uri for file in left for uri in plan.by_file.get(file.uri, ()))
                break
            source = plan.found.sources[file.source]
            read_files = plan.read.setdefault(file.source, {})
            try:
                not_read: list[NotRead] = []
                documents = list(read.load(file, settings, not_read, describe))
            except decode.ReadError as error:
                _left(plan, file, str(error))
                read_files[file.uri] = None
                yield from derived(before)
                continue
            plan.quota.take(file)
            _set_unread(source, file.uri, None)
            read_files[file.uri] = None
            if any(ocr.INSTALL in part.reason for part in not_read):
                read_files[file.uri] = OCR
                _store(source, "again", {file.uri: OCR} | _again(source))
            for part in not_read:
                reason = f"in another file: {part.reason}" if part.name else part.reason
                plan.found.skip(reason, path=f"{file.uri}#{part.name}" if part.name else file.uri)
            if not documents and not not_read:
                plan.found.skip("empty", path=file.uri)
            yield from _of_file(plan, documents, before, again)
    finally:
        read.close()
    for document in _inline(request):
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


def _from_truth(folder: Path, manifest: Manifest | None, uris: Set[str]) -> Iterator[Edit]:
    if not uris or manifest is None:
        return
    from graphrag_mcp.sources.decode import clean

    columns = ["uri", "title", "text", "metadata", "created", "file", "file_sha"]
    for batch in live_documents(folder, manifest, columns).to_batches(max_chunksize=500):
        for row in batch.to_pylist():
            if row["uri"] in uris:
                metadata = json.loads(row["metadata"])
                places = tuple((at, name) for at, name in metadata.pop(PLACES, ()))
                links = tuple(tuple(link) for link in metadata.pop(LINKS, ()))
                row |= {"metadata": metadata, "text": clean(row["text"])}
                row |= {"places": places, "links": links}
                yield Edit("derive", row["uri"], Document(**row))
