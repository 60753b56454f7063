"""The files of a folder: which are read, and a count of the others with their reason.

A source is a folder with a label; a file's uri is `<label>/<relative path>` whatever call found it.
A folder or file inside a source belongs to the deepest one that holds it. Links in a folder are
never followed. `Quota` limits how much one call reads; what is left is read by the next."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase, translate
from importlib.util import find_spec
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from graphrag_mcp.errors import extra
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.opening import ANY, LINKED, Folder, blocks, entries, head, why
from graphrag_mcp.text.uris import suffix_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SECRET, HIDDEN, LOCK, MINIFIED = "looks like a secret", "hidden", "lock file", "minified file"
BINARY, UNSUPPORTED, DEPENDENCY = "binary", "unsupported type", "dependency or build folder"
OURS = "index of this server"
PICTURE = f"picture; {extra('ocr')} reads its text, the setting vision_model has it described"
OUTSIDE = "outside the folders this server may read"

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_SECRET_NAME = re.compile("|".join(map(translate, _NAMES["secrets"].split())))
_PRIVATE_KEY = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_DEPENDENCIES = frozenset(_NAMES["dependencies"].split())
_LOCKS = frozenset(_NAMES["locks"].split())
_BINARY = frozenset(_NAMES["binary"].split())
_UNSUPPORTED = frozenset(_NAMES["unsupported"].split())
_BUILT_BY: dict[str, list[str]] = {
    name: makers.split() for names, makers in _NAMES["built_by"].items() for name in names.split()
}
_MINIFIED = re.compile(r".*[.-](?:min\.(?:js|mjs|cjs|css|html|json)|bundle\.js)|.*\.(?:js|mjs|cjs|css|ts)\.map")
_PACKED = frozenset(_NAMES["packed"].split())  # hold NUL bytes by nature
_PICTURES = frozenset(_NAMES["pictures"].split())
_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CORPUS = {"manifest.json", "truth", "tables"}  # entries of its folder

# Folders and key of a home, which may lie among the documents: read as such, they would change with
# every run, and bring back what was removed and what belongs to another token.
OF_HOME = ("corpora", "drift", "explore", "jobs", "key", "tenants")
HEAD = 8192  # bytes of a file that are looked at before it is taken
NAMED_LIMIT = 200_000_000  # bytes of a file named itself
WALK_LIMIT = 2_000_000  # entries that one call looks at
IGNORE_FILES = (".gitignore", ".graphragignore")  # in one folder the latter has the last word
IGNORE_LIMIT = 256_000  # bytes of an ignore file; beyond it the folder is left out
NAMED, ALIKE = 500, 100  # files that a result names as passed over; those of one reason
MOST_STARS = 3  # of one part of a pattern


# ---- names ----------------------------------------------------------------------------------------


def ocr_installed() -> bool:
    """Whether the library that reads pictures is there, and the environment does not turn it off."""
    return os.environ.get("GRAPHRAG_MCP_OCR") != "off" and find_spec("rapidocr") is not None


def secret(name: str) -> bool:
    """Is it a name of files that hold credentials?"""
    return _SECRET_NAME.match(name.casefold()) is not None


def kind_of(name: str) -> str:
    """Why a file of this name holds no text to index, the one that names it; "" when it may."""
    suffix = suffix_of(name)
    return BINARY if suffix in _BINARY else UNSUPPORTED if suffix in _UNSUPPORTED else ""


def file_reason(name: str) -> str:
    """Why a walk leaves a file of this name out; "" to take it."""
    folded = name.casefold()
    if secret(name):
        return SECRET
    if name.startswith("."):
        return HIDDEN
    if folded in _LOCKS:
        return LOCK
    return MINIFIED if _MINIFIED.fullmatch(folded) else kind_of(name)


def folder_reason(name: str, beside: Collection[str]) -> str:
    """Why a walk does not enter a folder of this name; `beside`: casefolded names beside it."""
    folded = name.casefold()
    if name.startswith("."):
        return HIDDEN
    if folded in _DEPENDENCIES or folded.endswith((".egg-info", ".dist-info")):
        return DEPENDENCY
    makers = _BUILT_BY.get(folded, ())
    return DEPENDENCY if any(fnmatchcase(name, maker) for maker in makers for name in beside) else ""


def start_reason(name: str, start: bytes, described: bool = False) -> str:
    """Why the name and the first bytes say not to read a file; "" to read it. NUL bytes make it
    binary, unless a byte order mark says UTF-16 or UTF-32. `described`: a model describes pictures."""
    suffix = suffix_of(name)
    if suffix in _PICTURES and not described and not ocr_installed():
        return PICTURE
    if _PRIVATE_KEY.match(start):
        return SECRET
    marked = start.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))
    if b"\0" in start and not marked and suffix not in _PACKED:
        from graphrag_mcp.sources.decode import wide_encoding

        return "" if wide_encoding(start) else BINARY
    return ""


def shown(name: str) -> str:
    """A name as uris have it: NFC; what is no UTF-8, and characters that break lines, as \\xNN."""
    if not name.isascii():
        raw = os.fsencode(name) if os.name == "posix" else name.encode("utf-8", "surrogatepass")
        name = unicodedata.normalize("NFC", raw.decode("utf-8", "backslashreplace"))
    return _BREAKING.sub(lambda match: f"\\x{ord(match[0]):02x}", name)


# ---- ignore files -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one file `name` in a folder; `base` is its absolute path with a slash at its end."""

    base: str
    name: str
    spec: GitIgnoreSpec


def ignored(path: str, rules: list[Rules]) -> str:
    """The ignore file that leaves the absolute `path` (of a folder with a slash) out; "" where none does. The innermost
    rule decides."""
    path = PurePath(path).as_posix() + "/" * path.endswith("/")
    for rule in reversed(rules):
        if path.startswith(rule.base):
            verdict = rule.spec.check_file(path[len(rule.base) :]).include
            if verdict is not None:
                return rule.name if verdict else ""
    return ""


def ignored_below(top: str, path: str) -> str:
    """The ignore file that leaves the absolute `path` out of a walk of the folder `top` above it; "" where none does."""
    rules, folder, parts = _rules_above(top), top, Path(path).relative_to(top).parts
    for number, part in enumerate(parts, 1):
        with suppress(OSError):
            rules += _rules_in(folder, {".git", *IGNORE_FILES})
        folder = os.path.join(folder, part)
        at = f"{folder}/" if number < len(parts) or os.path.isdir(folder) else folder
        if name := ignored(at, rules):
            return name
    return ""


def _rules_in(folder: str, names: Collection[str]) -> list[Rules]:
    """The rules of one folder, weakest first. OSError when an ignore file cannot be used."""
    base = PurePath(folder).as_posix().rstrip("/") + "/"
    files = [os.path.join(".git", "info", "exclude")] if ".git" in names else []
    files += [name for name in IGNORE_FILES if name in names]
    if not files:
        return []
    from pathspec import GitIgnoreSpec

    rules = []
    for name in files:
        try:
            data = head(os.path.join(folder, name), IGNORE_LIMIT + 1)
        except OSError as error:
            # Not there, a link or no regular file: Git does not read those either.
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL):
                continue
            raise
        if len(data) > IGNORE_LIMIT:
            message = f"{os.path.basename(name)} is over 256 KB, so this folder is left out"
            raise OSError(errno.EFBIG, message)
        lines = map(_tame, data.decode("utf-8-sig", "replace").splitlines())
        rules.append(Rules(base, PurePath(name).as_posix(), GitIgnoreSpec.from_lines(filter(_valid, lines))))
    return rules


def _rules_above(top: str) -> list[Rules]:
    """The rules for `top` from the Git repository around it; none when they ignore `top` itself."""
    above: list[str] = []
    folder = top
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        above.append(parent)
        folder = parent
    rules: list[Rules] = []
    for folder in reversed(above):
        with suppress(OSError):
            rules += _rules_in(folder, {".git", *IGNORE_FILES})
    return [] if ignored(f"{top}/", rules) else rules


def _tame(line: str) -> str:
    """A pattern of many stars takes exponential time to match (`*a*a*a*a*b`); past three a part
    keeps its outer ones, which ignores a little more: the safe side for a hostile file."""
    if line.count("*") <= MOST_STARS:
        return line
    parts = []
    for part in line.split("/"):
        if part != "**" and part.count("*") > MOST_STARS:
            part = f"{part.partition('*')[0]}*{part.rpartition('*')[2]}"
        parts.append(part)
    if parts.count("**") > 1:  # from the first to the last of them anything may stand
        first, last = parts.index("**"), len(parts) - 1 - parts[::-1].index("**")
        parts[first : last + 1] = ["**"]
    return "/".join(parts)


def _valid(line: str) -> bool:
    """Git passes over a pattern that it cannot read; so do we, instead of failing the folder."""
    from pathspec import GitIgnoreSpec

    with suppress(ValueError):
        GitIgnoreSpec.from_lines([line])
        return True
    return False


# ---- what is found ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: absolute path without links, uri, label of its source; `named` by the call
    itself. `links`: how many names it may have when it is opened, as many as this call has seen."""

    path: str
    uri: str
    source: str
    named: bool = False
    links: int = 1


@dataclass(frozen=True, slots=True)
class Scope:
    """A folder read, as a prefix of uris ("docs/guide/"); not complete: missing files may exist."""

    prefix: str
    complete: bool


@dataclass
class Found:
    """What a walk found: files to read, what was passed over, and what failed."""

    files: list[FoundFile] = field(default_factory=list)  # by uri
    scopes: list[Scope] = field(default_factory=list)
    # label -> {"path", "kind": folder | files}
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    # reason -> files, and folders not entered
    skipped: dict[str, int] = field(default_factory=dict)
    # files that were passed over, {"path", "suffix", "reason"}; at most NAMED of them, and ALIKE of one reason
    named: list[dict[str, str]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)  # {"path", "reason"}

    def skip(self, reason: str, count: int = 1, path: str = "") -> None:
        """Count what is passed over; `path`: the uri of a file that might have been read."""
        self.skipped[reason] = self.skipped.get(reason, 0) + count
        if path and self.skipped[reason] <= ALIKE and len(self.named) < NAMED:
            self.named.append({"path": path, "suffix": suffix_of(path), "reason": reason})

    def fail(self, path: str, reason: str) -> None:
        self.errors.append({"path": path, "reason": reason})


@dataclass
class Quota:
    """How much one call reads."""

    settings: Settings
    files: int = 0
    bytes: int = 0
    text_units: int = 0

    def take(self, file: FoundFile) -> None:
        self.files += 1
        self.bytes += _size(file)

    def full(self) -> str:
        """The setting whose limit is reached; "" while there is room."""
        for name in ("files", "bytes", "text_units"):
            if getattr(self, name) >= getattr(self.settings, f"max_{name}"):
                return f"max_{name}"
        return ""

    def left(self, files: Sequence[FoundFile]) -> dict[str, str]:
        """What a result says of files that this call has not read: {"path", "reason"}."""
        name = self.full()
        many = "1 file"
        if len(files) > 1:
            many = f"{len(files):,} files, {sum(map(_size, files)) / 1e6:,.0f} MB"
        reason = (
            f"left for the next call ({many} from here on): one call takes {name} = {getattr(self.settings, name):,}. "
            f"Index again to go on, or raise {name} in the settings"
        )
        return {"path": files[0].uri, "reason": reason}


def _size(file: FoundFile) -> int:
    with suppress(OSError):
        return os.lstat(file.path).st_size
    return 0


def find(
    paths: Sequence[str], sources: Mapping[str, Mapping[str, str]], settings: Settings, within: Sequence[str] = ()
) -> Found:
    """The files under `paths` (folders or files, links resolved). Never raises for a path.

    `within`: folders without links in which the resolved paths must lie; none: anywhere."""
    found = Found(sources={label: dict(source) for label, source in sources.items()})
    walk = _Walk(found, settings)
    folders, singles = set(), set()
    for path in dict.fromkeys(paths):
        try:
            real = os.path.realpath(path)
            folder = stat.S_ISDIR(os.lstat(real).st_mode)
        except (OSError, ValueError) as error:
            found.fail(shown(path), why(error))
            continue
        if within and not any(_inside(real, root) for root in within):
            found.fail(shown(path), OUTSIDE)  # moved since the caller looked
        elif any(_inside(real, written) for written in walk.ours):
            found.fail(shown(path), f"{OURS}, and such files are never indexed")
        else:
            (folders if folder else singles).add(real)
    # Outer folders give the labels.
    for folder_path in sorted(folders, key=lambda path: (path.count(os.sep), path)):
        walk.folder(folder_path)
    walk.settle_links()
    for path in sorted(singles):
        walk.single(path)
    taken: set[str] = set()
    for file in sorted(walk.files.values(), key=lambda file: (file.uri, file.path)):
        uri = distinct(file.uri, taken)  # two spellings of one name may be equal after NFC
        taken.add(uri)
        found.files.append(replace(file, uri=uri))
    found.files.sort(key=lambda file: file.uri)
    found.skipped = dict(sorted(found.skipped.items()))
    return found


def absent(sources: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Labels of folders that are not there any more, are empty, or links that lead elsewhere."""
    known = ((label, source["path"]) for label, source in sources.items() if source["kind"] != "import")
    return [label for label, path in known if _absent(path)]


def _absent(path: str) -> bool:
    try:
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            return True
        return stat.S_ISDIR(os.lstat(path).st_mode) and not os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):  # it cannot be looked at: that says nothing
        return False


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def distinct(name: str, taken: Iterable[str]) -> str:
    """The name, or with the first number that makes it another than these."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}~{number}"
    return free


def _uri(label: str, root: str, path: str) -> str:
    below = path[len(root.rstrip(os.sep)) + 1 :]
    relative = below if _inside(path, root) else os.path.relpath(path, root)
    return f"{label}/{shown(relative.replace(os.sep, '/'))}"


# ---- the walk -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder to read: label and root of its source, prefix of its scope, rules from above."""

    folder: str
    label: str
    root: str
    prefix: str
    rules: list[Rules]


class _Walk:
    """The folders and files of one call, read with a stack (trees may be deeper than Python's)."""

    def __init__(self, found: Found, settings: Settings, most: int = WALK_LIMIT) -> None:
        """`most`: entries that are looked at."""
        self.found, self.settings, self.sees = found, settings, bool(settings.vision_model)
        self.most = most
        home = os.path.realpath(settings.home)
        self.ours = tuple(os.path.join(home, name) for name in OF_HOME)
        self.files: dict[str, FoundFile] = {}  # by path
        self.linked: dict[tuple[int, int], list[FoundFile]] = {}  # files of several names, by inode
        self.entries = 0  # looked at
        self.complete: dict[str, bool] = {}  # of the scopes of one named folder

    def folder(self, top: str) -> None:
        """Take the files of a folder named in the call."""
        label = self._label(top, "folder")
        sources = self.found.sources
        inner = {source["path"]: name for name, source in sources.items()}
        root = sources[label]["path"]
        prefix = _uri(label, root, top).rstrip("/") + "/"
        self.complete = {prefix: True}
        stack = [_Place(top, label, root, prefix, _rules_above(top))]
        while stack:
            place = stack.pop()
            folder = place.folder
            if folder != top and folder in inner:  # a source of its own: its files keep their uris
                label = inner[folder]
                place = _Place(folder, label, folder, f"{label}/", place.rules)
                sources[label]["kind"] = "folder"
                self.complete.setdefault(place.prefix, True)
            try:
                stack += self.enter(place, folder == top)
            except OSError as error:
                self._fail(place, folder, why(error))
            if self.entries > self.most:
                reason = f"over {self.most:,} entries were looked at; name a part of this folder"
                self._fail(place, folder, reason)
                self.complete |= {place.prefix: False for place in stack}
                break
        scopes = sorted(self.complete.items())
        self.found.scopes += [Scope(prefix, complete) for prefix, complete in scopes]

    def single(self, path: str) -> None:
        """Take a file named itself, even if ignored, hidden or large; else an error."""
        name, label = os.path.basename(path), self._label(os.path.dirname(path), "files")
        uri = _uri(label, self.found.sources[label]["path"], path)
        seen = self.files.pop(path, None)
        try:
            status = os.lstat(path)
        except OSError as error:
            self.found.fail(uri, why(error))
            return
        if stat.S_ISREG(status.st_mode) and not status.st_size:
            self.found.skip("empty", path=uri)
            return
        if not stat.S_ISREG(status.st_mode):
            reason = "not a regular file"
        elif secret(name):
            reason = f"{SECRET}, and such files are never indexed"
        elif status.st_size > NAMED_LIMIT:
            reason = f"over {NAMED_LIMIT / 1e6:g} MB"
        elif status.st_nlink > 1 and not self.settings.hard_links and seen is None:
            reason = LINKED
        else:
            reason = kind_of(name) or start_reason(name, _start(path), self.sees)
        if reason:
            self.found.fail(uri, reason)
        else:
            known = ANY if self.settings.hard_links else seen.links if seen else 1
            self.files[path] = FoundFile(path, uri, label, named=True, links=known)

    def settle_links(self) -> None:
        """A file of several names is taken when all were seen; else one may lie outside."""
        for linked in self.linked.values():
            if len(linked) < linked[0].links:
                self.found.skip(LINKED, len(linked))
            else:
                self.files |= {file.path: file for file in linked}

    def _label(self, folder: str, kind: str) -> str:
        """The label of the deepest source that holds `folder`; a new one where none does."""
        sources = self.found.sources
        holding = [label for label, source in sources.items() if _inside(folder, source["path"])]
        if holding:
            label = max(holding, key=lambda label: len(sources[label]["path"]))
            if kind == "folder" and sources[label]["path"] == folder:
                sources[label]["kind"] = "folder"
            return label
        # `text:` is the prefix of inline texts
        label = distinct(shown(os.path.basename(folder)).replace(":", "_") or "root", sources)
        sources[label] = {"path": folder, "kind": kind}
        return label

    def _fail(self, place: _Place, path: str, reason: str) -> None:
        self.complete[place.prefix] = False
        self.found.fail(_uri(place.label, place.root, path), reason)

    def enter(self, place: _Place, top: bool) -> list[_Place]:
        """Take or count entries; gives folders to enter. OSError when it cannot be listed."""
        inner, above = [], os.path.join(place.folder, "")
        with entries(place.folder) as listed, Folder() as within:
            listing = sorted(islice(listed, self.most + 1), key=lambda entry: entry.name)
            self.entries += len(listing)
            rules = place.rules + _rules_in(place.folder, {entry.name for entry in listing})
            names = {entry.name.casefold() for entry in listing}
            # A virtual environment, a cache (CACHEDIR.TAG) or a corpus of another home.
            machine_made = names & {"pyvenv.cfg", "cachedir.tag"} or _CORPUS <= names
            if not top and machine_made:
                self.found.skip(DEPENDENCY)
                return []
            for entry in listing:
                path = above + entry.name
                try:
                    folder = entry.is_dir(follow_symlinks=False)
                    if reason := self._reason(entry, path, folder, names, rules):
                        kind = not folder and reason in (BINARY, UNSUPPORTED)
                        uri = _uri(place.label, place.root, path) if kind else ""
                        self.found.skip(reason, path=uri)
                    elif folder:
                        inner.append(replace(place, folder=path, rules=rules))
                    else:
                        self._take(entry, path, place, within)
                except FileNotFoundError:
                    pass  # deleted while we looked
                except OSError as error:
                    self._fail(place, path, why(error))
        return inner

    def _reason(self, entry: os.DirEntry[str], path: str, folder: bool, beside: set[str], rules: list[Rules]) -> str:
        """Why an entry is passed over by its kind, its name or a rule; "" otherwise."""
        if entry.is_symlink() or getattr(entry, "is_junction", bool)():
            return "symbolic link"
        if not folder and not entry.is_file(follow_symlinks=False):
            return "not a regular file"
        if path in self.ours:
            return OURS
        named = folder_reason(entry.name, beside) if folder else file_reason(entry.name)
        if named or not rules:
            return named
        name = ignored(path + "/" * folder, rules)
        return f"ignored by {name}" if name else ""

    def _take(self, entry: os.DirEntry[str], path: str, place: _Place, within: Folder) -> None:
        status, settings = entry.stat(follow_symlinks=False), self.settings
        if status.st_size > settings.max_file_bytes:
            reason = f"over {settings.max_file_bytes / 1e6:g} MB"
        else:
            start = _start(path, within)
            blank = status.st_size <= len(start) and not start.strip()
            reason = "empty" if blank else start_reason(entry.name, start, self.sees)
        if reason:
            self.found.skip(reason, path=_uri(place.label, place.root, path))
            return
        several = not settings.hard_links and status.st_nlink > 1
        links = status.st_nlink if several else ANY if settings.hard_links else 1
        file = FoundFile(path, _uri(place.label, place.root, path), place.label, links=links)
        if not several:
            self.files[path] = file
            return
        same = self.linked.setdefault((status.st_dev, status.st_ino), [])
        if all(path != other.path for other in same):
            same.append(file)


def _start(path: str, within: Folder | None = None) -> bytes:
    """The first bytes; none where it cannot be read, which the reading says."""
    with suppress(OSError):
        return head(path, HEAD, within)
    return b""


def hash_of(file: FoundFile, within: Folder | None = None) -> str:
    """SHA-256 of the bytes. OSError when they cannot be read. `within`: as in `blocks`."""
    digest = hashlib.sha256()
    for block in blocks(file.path, NAMED_LIMIT + 1, file.links, within):
        digest.update(block)
    return digest.hexdigest()
