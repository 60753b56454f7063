"""Which files there are: folders walked, what is left out counted with its reason.

Takes paths and the sources of the corpus; gives the files to index, the scopes that were read, new sources, what was
skipped and what went wrong. Reads no file beyond its first 8 KB and knows nothing of what is already indexed.

A source is a folder with a label; a file's uri is `<label>/<relative path>` whatever call found it. A folder or file
inside a source belongs to the deepest one that holds it. Links in a folder are never followed.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import PurePath

from graphrag_mcp.index import formats, skip
from graphrag_mcp.index.opening import read, why
from graphrag_mcp.settings import Settings

NAMED_LIMIT = 200_000_000  # bytes of a file named itself
NO_EXTRA = "needs the extra graphrag-mcp[docs]"
_IGNORE_LIMIT = 256_000  # bytes of an ignore file; beyond it the folder is left out rather than half ignored
_PACKED = formats.OFFICE | {"parquet"}  # holds NUL bytes by nature


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: absolute path without links, uri, label of its source; `named` when a call named it itself."""

    path: str
    uri: str
    source: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """A folder read in this call, as a prefix of uris ("docs/guide/"); not complete: missing files may still exist."""

    prefix: str
    complete: bool


@dataclass
class Found:
    files: list[FoundFile] = field(default_factory=list)  # by uri
    scopes: list[Scope] = field(default_factory=list)
    sources: dict[str, dict[str, str]] = field(default_factory=dict)  # label -> {"path", "kind": folder | files}
    skipped: dict[str, int] = field(default_factory=dict)  # reason -> files, and folders not entered
    errors: list[dict[str, str]] = field(default_factory=list)  # {"path", "reason"}


def find(paths: Sequence[str], sources: Mapping[str, Mapping[str, str]], settings: Settings) -> Found:
    """The files under `paths` (folders or files; links among them are resolved first). Never raises for a path."""
    found = Found(sources={label: dict(source) for label, source in sources.items()})
    folders: list[str] = []
    singles: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            real = os.path.realpath(path)
            mode = os.lstat(real).st_mode
        except (OSError, ValueError) as error:
            found.errors.append({"path": path, "reason": why(error)})
            continue
        (folders if stat.S_ISDIR(mode) else singles).append(real)
    files: dict[str, FoundFile] = {}  # by path
    for folder in sorted(set(folders), key=lambda path: (path.count(os.sep), path)):  # outer folders give the labels
        label = _label(folder, found.sources, kind="folder")
        walk = _Walk(found, settings, files, label)
        walk.folder(folder)
        found.scopes += [Scope(prefix, prefix not in walk.incomplete) for prefix in sorted(walk.scopes)]
    for path in sorted(set(singles)):
        _single(path, found, files)
    taken: set[str] = set()
    for file in sorted(files.values(), key=lambda file: (file.uri, file.path)):
        uri = _distinct(file.uri, taken)  # two spellings of one name may be equal after NFC
        taken.add(uri)
        found.files.append(FoundFile(file.path, uri, file.source, file.named))
    found.files.sort(key=lambda file: file.uri)
    found.skipped = dict(sorted(found.skipped.items()))
    return found


def _label(folder: str, sources: dict[str, dict[str, str]], *, kind: str) -> str:
    """The label of the deepest source that holds `folder`; a new one where none does."""
    holding = [label for label, source in sources.items() if _inside(folder, source["path"])]
    if holding:
        label = max(holding, key=lambda label: len(sources[label]["path"]))
        if kind == "folder" and sources[label]["path"] == folder:
            sources[label]["kind"] = "folder"
        return label
    name = shown(os.path.basename(folder)).replace(":", "_") or "root"  # `text:` is the prefix of inline texts
    label = _distinct(name, sources)
    sources[label] = {"path": folder, "kind": kind}
    return label


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _distinct(name: str, taken: Iterable[str]) -> str:
    number, distinct = 1, name
    while distinct in taken:
        number += 1
        distinct = f"{name}~{number}"
    return distinct


def shown(name: str) -> str:
    """A name as uris hold it: NFC, and bytes that are no UTF-8 written as \\xNN."""
    if not name.isascii():
        name = os.fsencode(name).decode("utf-8", "backslashreplace") if os.name == "posix" else name
    return unicodedata.normalize("NFC", name)


def _uri(label: str, root: str, path: str) -> str:
    relative = os.path.relpath(path, root)
    return label + "/" if relative == "." else f"{label}/{shown(PurePath(relative).as_posix())}"


class _Walk:
    """One folder named in a call, read with an explicit stack (a tree may be deeper than Python's)."""

    def __init__(self, found: Found, settings: Settings, files: dict[str, FoundFile], label: str) -> None:
        self.found, self.limit, self.files = found, settings.max_file_bytes, files
        self.label, self.root = label, found.sources[label]["path"]
        self.scopes: set[str] = set()
        self.incomplete: set[str] = set()
        self._inner = {source["path"]: name for name, source in found.sources.items()}

    def folder(self, top: str) -> None:
        prefix = _uri(self.label, self.root, top).rstrip("/") + "/"
        self.scopes.add(prefix)
        # (folder, label and root of its source, prefix of its scope, rules of the folders above)
        stack = [(top, self.label, self.root, prefix, _rules_above(top))]
        while stack:
            folder, label, root, prefix, rules = stack.pop()
            if folder != top and folder in self._inner:  # a source of its own: its documents keep their uris
                label, root = self._inner[folder], folder
                prefix = f"{label}/"
                self.found.sources[label]["kind"] = "folder"
                self.scopes.add(prefix)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
                rules = rules + _rules_in(folder, {entry.name for entry in entries})
            except OSError as error:
                self.incomplete.add(prefix)
                self.found.errors.append({"path": _uri(label, root, folder), "reason": why(error)})
                continue
            names = {entry.name.casefold() for entry in entries}
            if folder != top and skip.machine_made(names):
                self._skip(skip.DEPENDENCY)
                continue
            for entry in entries:
                try:
                    if self._entry(entry, names, label, root, rules):
                        stack.append((entry.path, label, root, prefix, rules))
                except FileNotFoundError:
                    pass  # deleted while we looked
                except OSError as error:
                    self.incomplete.add(prefix)
                    self.found.errors.append({"path": _uri(label, root, entry.path), "reason": why(error)})

    def _entry(self, entry: os.DirEntry[str], beside: set[str], label: str, root: str, rules: list[skip.Rules]) -> bool:
        """Takes or counts one entry; True when it is a folder to enter."""
        if entry.is_symlink() or getattr(entry, "is_junction", bool)():
            self._skip("symbolic link")
        elif entry.is_dir(follow_symlinks=False):
            reason = skip.folder_reason(entry.name, beside) or self._ignored(entry.path + "/", rules)
            if not reason:
                return True
            self._skip(reason)
        elif not entry.is_file(follow_symlinks=False):
            self._skip("not a regular file")
        elif reason := skip.file_reason(entry.name) or self._ignored(entry.path, rules) or self._content(entry):
            self._skip(reason)
        else:
            self.files[entry.path] = FoundFile(entry.path, _uri(label, root, entry.path), label)
        return False

    def _ignored(self, path: str, rules: list[skip.Rules]) -> str:
        path = PurePath(path).as_posix() + "/" * path.endswith("/")
        return skip.IGNORED if rules and skip.ignored(path, rules) else ""

    def _content(self, entry: os.DirEntry[str]) -> str:
        size = entry.stat(follow_symlinks=False).st_size
        if size > self.limit:
            return f"over {self.limit / 1e6:g} MB"
        return "empty" if not size else _head_reason(entry.path)

    def _skip(self, reason: str) -> None:
        self.found.skipped[reason] = self.found.skipped.get(reason, 0) + 1


def _head_reason(path: str) -> str:
    """Why the name and the first 8 KB say not to read a file; "" also when it cannot be opened: `sha` will say so."""
    suffix = skip.suffix_of(os.path.basename(path))
    if suffix in formats.OFFICE and find_spec("markitdown") is None:
        return NO_EXTRA
    try:
        head = read(path, 8192, whole=False)
    except OSError:
        return ""
    if skip.private_key(head):
        return skip.SECRET
    return skip.BINARY if suffix not in _PACKED and skip.binary(head) else ""


def _single(path: str, found: Found, files: dict[str, FoundFile]) -> None:
    """A file named itself: taken even if ignored, hidden or large; what cannot be taken is an error."""
    name = os.path.basename(path)
    label = _label(os.path.dirname(path), found.sources, kind="files")
    uri = _uri(label, found.sources[label]["path"], path)
    try:
        status = os.lstat(path)
    except OSError as error:
        found.errors.append({"path": uri, "reason": why(error)})
        return
    if not stat.S_ISREG(status.st_mode):
        reason = "not a regular file"
    elif skip.secret(name):
        reason = f"{skip.SECRET}, and such files are never indexed"
    elif status.st_size > NAMED_LIMIT:
        reason = f"over {NAMED_LIMIT / 1e6:g} MB"
    elif not status.st_size:
        found.skipped["empty"] = found.skipped.get("empty", 0) + 1
        return
    else:
        reason = skip.kind_of(name) or _head_reason(path)
    if reason:
        found.errors.append({"path": uri, "reason": reason})
        files.pop(path, None)
    else:
        files[path] = FoundFile(path, uri, label, named=True)


def _rules_in(folder: str, names: set[str]) -> list[skip.Rules]:
    """The rules of one folder, weakest first. OSError when an ignore file is there but cannot be used."""
    base = PurePath(folder).as_posix().rstrip("/") + "/"
    files = [name for name in skip.IGNORE_FILES if name in names]
    if ".git" in names:
        files.insert(0, os.path.join(".git", "info", "exclude"))
    rules = [skip.read_rules(base, lambda name: _ignore_file(os.path.join(folder, name)), name) for name in files]
    return [rule for rule in rules if rule is not None]


def _ignore_file(path: str) -> bytes | None:
    try:
        data = read(path, _IGNORE_LIMIT + 1, whole=False)
    except OSError as error:
        # Not there, a link or no regular file: Git does not read those either.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL):
            return None
        raise
    if len(data) > _IGNORE_LIMIT:
        raise OSError(errno.EFBIG, f"{os.path.basename(path)} is over 256 KB, so this folder is left out")
    return data


def _rules_above(top: str) -> list[skip.Rules]:
    """The rules that hold for `top` from the Git repository around it; none when they ignore `top` itself, which
    was named all the same."""
    above: list[str] = []
    folder = top
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        above.append(parent)
        folder = parent
    rules: list[skip.Rules] = []
    for folder in reversed(above):
        try:
            rules += _rules_in(folder, {".git", *skip.IGNORE_FILES})
        except OSError:
            continue
    return [] if skip.ignored(PurePath(top).as_posix() + "/", rules) else rules
