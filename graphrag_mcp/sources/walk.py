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
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate
from itertools import islice
from pathlib import PurePath

from pathspec import GitIgnoreSpec

from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import office
from graphrag_mcp.sources.opening import ANY, LINKED, entries, head, read, why

SECRET, HIDDEN, DEPENDENCY, LOCK, MINIFIED, BINARY = (
    "looks like a secret",
    "hidden",
    "dependency or build folder",
    "lock file",
    "minified file",
    "binary",
)
UNSUPPORTED, IGNORED, OURS = "unsupported type", "ignored by .gitignore", "index of this server"

_SECRETS = (
    ".env* *.env *.pem *.key *.p12 *.pfx *.jks *.keystore *.keytab *.kdbx *.ppk *.ovpn *.tfstate *.tfstate.* *.tfvars "
    "id_rsa* id_dsa* id_ecdsa* id_ed25519* credentials credentials.* client_secret*.json service?account*.json "
    "secret.json secret.y*ml secret.toml secrets.json secrets.y*ml secrets.toml secrets.ini .netrc _netrc .npmrc "
    ".pypirc .pgpass .htpasswd .git-credentials .dockercfg .vault-token .my.cnf wallet.dat"
).split()
_SECRET_NAME = re.compile("|".join(f"(?:{translate(pattern)})" for pattern in _SECRETS))
_PRIVATE_KEY = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")

# Always machine-made, whatever stands beside them.
_DEPENDENCIES = frozenset(
    "node_modules bower_components jspm_packages __pycache__ __pypackages__ site-packages dist-packages pods "
    "deriveddata elm-stuff cmakefiles".split()
)
# Ordinary words: skipped only where a project file beside them says that a tool writes there. A
# folder of notes may well be called "build" or "vendor".
_JS_PY_C = tuple(
    (
        "package.json pyproject.toml setup.py setup.cfg cmakelists.txt build.gradle "
        "build.gradle.kts meson.build makefile gulpfile.js pubspec.yaml angular.json "
        "deno.json"
    ).split()
)
_BUILT_BY: dict[str, tuple[str, ...]] = {
    "dist": _JS_PY_C,
    "build": _JS_PY_C,
    "out": _JS_PY_C,
    "coverage": _JS_PY_C,
    "htmlcov": _JS_PY_C,
    "target": ("cargo.toml", "pom.xml", "build.sbt", "project.clj"),
    "vendor": ("go.mod", "composer.json", "gemfile", "cargo.toml", "package.json"),
    "_build": ("mix.exs", "conf.py", "dune-project", "rebar.config", "makefile"),
    "deps": ("mix.exs", "rebar.config"),
    "obj": ("*.csproj", "*.fsproj", "*.vbproj"),
    "bin": ("*.csproj", "*.fsproj", "*.vbproj"),
    "venv": ("pyproject.toml", "setup.py", "requirements.txt"),
}
_LOCKS = frozenset(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock deno.lock uv.lock poetry.lock pdm.lock "
    "pipfile.lock pixi.lock conda-lock.yml cargo.lock gemfile.lock composer.lock go.sum go.work.sum flake.lock "
    "mix.lock pubspec.lock podfile.lock package.resolved gradle.lockfile packages.lock.json module.bazel.lock".split()
)
_MINIFIED = re.compile(
    r".*[.-](?:min\.(?:js|mjs|cjs|css|html|json)|bundle\.js)|.*\.(?:js|mjs|cjs|css|ts)\.map"
)
_BINARY = frozenset(
    "7z a aac apk avi avif bin bmp br bz2 cab class dat db deb dex dll dmg dylib ear eot exe feather flac gif "
    "glb gz heic icns ico img iso jar jpeg jpg jp2 lib lz4 m4a m4v mdb mkv mo mov mp3 mp4 mpeg mpg msi node "
    "npy npz o obj ogg ogv onnx opus otf pack parq pdb pickle pkl png psd pt pth pyc pyd pyo rar rlib rmeta "
    "rpm safetensors so sqlite sqlite3 swf tar tgz tif tiff ttf wasm wav webm webp whl wmv woff woff2 xz zip "
    "zst".split()
)
_UNSUPPORTED = frozenset(
    "doc dot xls ppt pps rtf odt ods odp pages numbers svg ps eps mobi azw azw3".split()
)


def suffix_of(name: str) -> str:
    """`md` of `Notes.MD`; "" for a name without one."""
    return name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""


def secret(name: str) -> bool:
    return _SECRET_NAME.match(name.casefold()) is not None


def private_key(head: bytes) -> bool:
    return _PRIVATE_KEY.match(head) is not None


def binary(head: bytes) -> bool:
    """NUL bytes in the first 8 KB, unless a byte order mark says UTF-16 or UTF-32."""
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))


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
    """Why a walk does not enter a folder of this name; `beside`: casefolded names in the folder
    that holds it."""
    folded = name.casefold()
    if name.startswith("."):
        return HIDDEN
    if folded in _DEPENDENCIES or folded.endswith((".egg-info", ".dist-info")):
        return DEPENDENCY
    makers = _BUILT_BY.get(folded, ())
    if any(
        maker in beside if maker[0] != "*" else any(n.endswith(maker[1:]) for n in beside)
        for maker in makers
    ):
        return DEPENDENCY
    return ""


def machine_made(names: Collection[str]) -> bool:
    """A folder whose own entries say so: a Python virtual environment, a cache by the CACHEDIR.TAG
    convention, or a corpus of another home than `ours`."""
    return (
        "pyvenv.cfg" in names
        or "cachedir.tag" in names
        or {"manifest.json", "truth", "tables"} <= set(names)
    )


def is_our_home(home: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders that a home keeps indexes, walks and jobs in, and its key. A home may lie among the documents:
    its own files read as such would change with every run, and bring back what was removed and what
    belongs to another token."""
    return tuple(
        os.path.join(os.path.realpath(home), name)
        for name in ("corpora", "drift", "jobs", "key", "tenants")
    )


# ---- ignore files -------------------------------------------------------------------------------

IGNORE_FILES = (".gitignore", ".graphragignore")  # in one folder the latter has the last word
_STARS = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one folder; `base` is its absolute path with a slash at its end."""

    base: str
    spec: GitIgnoreSpec


def read_rules(base: str, opener: Callable[[str], bytes | None], name: str) -> Rules | None:
    """The rules in the ignore file `name`; None when there is no such file. OSError when it cannot
    be read."""
    data = opener(name)
    if data is None:
        return None
    lines = [_tame(line) for line in data.decode("utf-8-sig", "replace").splitlines()]
    return Rules(base, GitIgnoreSpec.from_lines(line for line in lines if _valid(line)))


def ignored(path: str, rules: list[Rules]) -> bool:
    """Is the absolute `path` (a folder with a slash at its end) ignored? The innermost rule that
    speaks decides."""
    for rule in reversed(rules):
        if (
            path.startswith(rule.base)
            and (verdict := rule.spec.check_file(path[len(rule.base) :]).include) is not None
        ):
            return verdict
    return False


def _tame(line: str) -> str:
    """A pattern of many stars takes exponential time to match (`*a*a*a*a*b`); past three a part
    keeps its outer ones, which ignores a little more: the safe side for a hostile file."""
    if line.count("*") <= _STARS:
        return line
    parts = []
    for part in re.sub(r"(?:\*\*/)+", "**/", line).split("/"):
        part = re.sub(r"\*+", "*", part) if part != "**" else part
        parts.append(
            part
            if part.count("*") <= _STARS
            else f"{part.partition('*')[0]}*{part.rpartition('*')[2]}"
        )
    if parts.count("**") > 2:
        first, last = parts.index("**"), len(parts) - 1 - parts[::-1].index("**")
        parts[first : last + 1] = ["**"]
    return "/".join(parts)


def _valid(line: str) -> bool:
    """Git passes over a pattern that it cannot read; so do we, instead of failing the folder."""
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


@dataclass
class Quota:
    max_files: int
    max_bytes: int
    max_text_units: int
    files: int = 0
    bytes: int = 0
    text_units: int = 0

    def take(self, file: FoundFile) -> None:
        self.files += 1
        self.bytes += _size(file)

    def full(self) -> str:
        """The setting whose limit is reached; "" while there is room."""
        for name in ("files", "bytes", "text_units"):
            if getattr(self, name) >= getattr(self, f"max_{name}"):
                return f"max_{name}"
        return ""

    def left(self, files: Sequence[FoundFile]) -> dict[str, str]:
        """What a result says of files that this call has not read: {"path", "reason"}."""
        name = self.full()
        many = "1 file"
        if len(files) > 1:
            many = f"{len(files):,} files, {sum(map(_size, files)) / 1e6:,.0f} MB"
        reason = (
            f"left for the next call ({many} from here on): one call takes {name} = {getattr(self, name):,}. "
            f"Index again to go on, or raise {name} in the settings"
        )
        return {"path": files[0].uri, "reason": reason}


def too_many(pieces: int, settings: Settings) -> str:
    """Why a file of so many documents is not read; "" while it may be. Each is at least one text
    unit."""
    if pieces <= settings.max_text_units:
        return ""
    return (
        f"it holds over {settings.max_text_units:,} rows, and each would be a document. "
        "Split it, join rows that belong together, or raise max_text_units in the settings"
    )


def of(settings: Settings) -> Quota:
    return Quota(settings.max_files, settings.max_bytes, settings.max_text_units)


def _size(file: FoundFile) -> int:
    try:
        return os.lstat(file.path).st_size
    except OSError:
        return 0


HEAD = 8192  # bytes of a file that are looked at before it is taken
NAMED_LIMIT = 200_000_000  # bytes of a file named itself
WALK_LIMIT = 2_000_000  # entries that one call looks at
_BREAKING = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_IGNORE_LIMIT = (
    256_000  # bytes of an ignore file; beyond it the folder is left out rather than half ignored
)
_PACKED = office.OFFICE | {"parquet"}  # holds NUL bytes by nature


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to index: absolute path without links, uri, label of its source; `named` when a call
    named it itself. `links`: how many names it may have when it is opened, which is how many of
    them this call has seen. `sha`: its SHA-256 where looking at its beginning was reading it
    whole. `commit`: the blob and the day of its last commit, where these were asked for."""

    path: str
    uri: str
    source: str
    named: bool = False
    links: int = 1
    sha: str = ""
    commit: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Scope:
    """A folder read in this call, as a prefix of uris ("docs/guide/"); not complete: missing files
    may still exist."""

    prefix: str
    complete: bool


@dataclass
class Found:
    files: list[FoundFile] = field(default_factory=list)  # by uri
    scopes: list[Scope] = field(default_factory=list)
    # label -> {"path", "kind": folder | files}
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    # reason -> files, and folders not entered
    skipped: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, str]] = field(default_factory=list)  # {"path", "reason"}
    entries: int = 0  # looked at
    # files of several names, by inode
    linked: dict[tuple[int, int], list[FoundFile]] = field(default_factory=dict)

    def skip(self, reason: str, count: int = 1) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + count


def find(
    paths: Sequence[str],
    sources: Mapping[str, Mapping[str, str]],
    settings: Settings,
    within: Sequence[str] = (),
) -> Found:
    """The files under `paths` (folders or files; links among them are resolved first). Never raises
    for a path.

    `within`: folders without links that the paths must lie in when all links are resolved; none:
    anywhere."""
    found = Found(sources={label: dict(source) for label, source in sources.items()})
    folders: list[str] = []
    singles: list[str] = []
    ours = is_our_home(settings.home)
    for path in dict.fromkeys(paths):
        try:
            real = os.path.realpath(path)
            mode = os.lstat(real).st_mode
        except (OSError, ValueError) as error:
            found.errors.append({"path": shown(path), "reason": why(error)})
            continue
        if within and not any(
            _inside(real, folder) for folder in within
        ):  # moved since the caller looked
            found.errors.append(
                {"path": shown(path), "reason": "outside the folders this server may read"}
            )
            continue
        if any(_inside(real, folder) for folder in ours):
            found.errors.append(
                {"path": shown(path), "reason": f"{OURS}, and such files are never indexed"}
            )
            continue
        (folders if stat.S_ISDIR(mode) else singles).append(real)
    files: dict[str, FoundFile] = {}  # by path
    for folder in sorted(
        set(folders), key=lambda path: (path.count(os.sep), path)
    ):  # outer folders give the labels
        label = _label(folder, found.sources, kind="folder")
        walk = _Walk(found, settings, files, label)
        walk.folder(folder)
        found.scopes += [
            Scope(prefix, prefix not in walk.incomplete) for prefix in sorted(walk.scopes)
        ]
    _settle_links(found, files)
    for path in sorted(set(singles)):
        _single(path, found, files, settings)
    taken: set[str] = set()
    for file in sorted(files.values(), key=lambda file: (file.uri, file.path)):
        uri = _distinct(file.uri, taken)  # two spellings of one name may be equal after NFC
        taken.add(uri)
        found.files.append(file if uri == file.uri else replace(file, uri=uri))
    found.files.sort(key=lambda file: file.uri)
    found.skipped = dict(sorted(found.skipped.items()))
    return found


def absent(sources: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Labels of folders that are not where they were: nothing is there, an empty folder, or a link
    that leads elsewhere."""
    return [
        label
        for label, source in sources.items()
        if source["kind"] != "import" and _absent(source["path"])
    ]


def _absent(path: str) -> bool:
    try:
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            return True
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return False
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):  # it cannot be looked at: that says nothing
        return False


def _label(folder: str, sources: dict[str, dict[str, str]], *, kind: str) -> str:
    """The label of the deepest source that holds `folder`; a new one where none does."""
    holding = [label for label, source in sources.items() if _inside(folder, source["path"])]
    if holding:
        label = max(holding, key=lambda label: len(sources[label]["path"]))
        if kind == "folder" and sources[label]["path"] == folder:
            sources[label]["kind"] = "folder"
        return label
    # `text:` is the prefix of inline texts
    name = shown(os.path.basename(folder)).replace(":", "_") or "root"
    label = _distinct(name, sources)
    sources[label] = {"path": folder, "kind": kind}
    return label


def _settle_links(found: Found, files: dict[str, FoundFile]) -> None:
    """A file of several names is taken when all of them were seen in this call; else one may lie
    outside."""
    for linked in found.linked.values():
        if len(linked) < linked[0].links:
            found.skip(LINKED, len(linked))
        else:
            files.update((file.path, file) for file in linked)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _distinct(name: str, taken: Iterable[str]) -> str:
    number, distinct = 1, name
    while distinct in taken:
        number += 1
        distinct = f"{name}~{number}"
    return distinct


def shown(name: str) -> str:
    """A name as uris hold it: NFC; bytes that are no UTF-8, and characters that would break a line,
    as \\xNN."""
    if not name.isascii():
        given = os.fsencode(name) if os.name == "posix" else name.encode("utf-8", "surrogatepass")
        name = unicodedata.normalize("NFC", given.decode("utf-8", "backslashreplace"))
    return _BREAKING.sub(lambda match: f"\\x{ord(match[0]):02x}", name)


def _uri(label: str, root: str, path: str) -> str:
    relative = (
        path[len(root.rstrip(os.sep)) + 1 :] if _inside(path, root) else os.path.relpath(path, root)
    )
    return f"{label}/{shown(relative.replace(os.sep, '/'))}"


class _Walk:
    """One folder named in a call, read with an explicit stack (a tree may be deeper than Python's)."""

    def __init__(
        self, found: Found, settings: Settings, files: dict[str, FoundFile], label: str
    ) -> None:
        self.found, self.settings, self.files = found, settings, files
        self.label, self.root = label, found.sources[label]["path"]
        self.scopes: set[str] = set()
        self.incomplete: set[str] = set()
        self._inner = {source["path"]: name for name, source in found.sources.items()}
        self._ours = is_our_home(settings.home)

    def folder(self, top: str) -> None:
        prefix = _uri(self.label, self.root, top).rstrip("/") + "/"
        self.scopes.add(prefix)
        # (folder, label and root of its source, prefix of its scope, rules of the folders above)
        stack = [(top, self.label, self.root, prefix, _rules_above(top))]
        while stack:
            folder, label, root, prefix, rules = stack.pop()
            if (
                folder != top and folder in self._inner
            ):  # a source of its own: its documents keep their uris
                label, root = self._inner[folder], folder
                prefix = f"{label}/"
                self.found.sources[label]["kind"] = "folder"
                self.scopes.add(prefix)
            try:
                inner = self._folder(folder, folder == top, label, root, prefix, rules)
            except OSError as error:
                self._incomplete(prefix, _uri(label, root, folder), why(error))
                continue
            stack += [(path, label, root, prefix, below) for path, below in inner]
            if self.found.entries > WALK_LIMIT:
                reason = f"over {WALK_LIMIT:,} entries were looked at; name a part of this folder"
                self._incomplete(prefix, _uri(label, root, folder), reason)
                self.incomplete |= {prefix for _, _, _, prefix, _ in stack}
                return

    def _incomplete(self, prefix: str, uri: str, reason: str) -> None:
        self.incomplete.add(prefix)
        self.found.errors.append({"path": uri, "reason": reason})

    def _folder(
        self, folder: str, top: bool, label: str, root: str, prefix: str, rules: list[Rules]
    ) -> list[tuple[str, list[Rules]]]:
        """Takes or counts the entries of one folder; gives the folders to enter. OSError when it
        cannot be listed."""
        inner: list[tuple[str, list[Rules]]] = []
        above, uris = os.path.join(folder, ""), _uri(label, root, folder).rstrip("/") + "/"
        with entries(folder) as (listed, at):
            there = sorted(islice(listed, WALK_LIMIT + 1), key=lambda entry: entry.name)
            self.found.entries += len(there)
            rules = rules + _rules_in(folder, {entry.name for entry in there})
            names = {entry.name.casefold() for entry in there}
            if not top and machine_made(names):
                self.found.skip(DEPENDENCY)
                return []
            for entry in there:
                path = above + entry.name
                try:
                    if self._entry(entry, path, names, label, uris, rules, at):
                        inner.append((path, rules))
                except FileNotFoundError:
                    pass  # deleted while we looked
                except OSError as error:
                    self._incomplete(prefix, uris + shown(entry.name), why(error))
        return inner

    def _entry(
        self,
        entry: os.DirEntry[str],
        path: str,
        beside: set[str],
        label: str,
        uris: str,
        rules: list[Rules],
        at: int,
    ) -> bool:
        """Takes or counts one entry of the open folder `at`, whose uris begin with `uris`; True
        when it is a folder to enter."""
        if entry.is_symlink() or getattr(entry, "is_junction", bool)():
            self.found.skip("symbolic link")
        elif entry.is_dir(follow_symlinks=False):
            reason = folder_reason(entry.name, beside) or self._ignored(path + "/", rules)
            reason = OURS if path in self._ours else reason
            if not reason:
                return True
            self.found.skip(reason)
        elif not entry.is_file(follow_symlinks=False):
            self.found.skip("not a regular file")
        elif path in self._ours:
            self.found.skip(OURS)
        elif reason := file_reason(entry.name) or self._ignored(path, rules):
            self.found.skip(reason)
        else:
            self._file(entry, path, label, uris, at)
        return False

    def _file(self, entry: os.DirEntry[str], path: str, label: str, uris: str, at: int) -> None:
        try:
            start, status = head(path, HEAD, at)
        except OSError:  # `sha` will say why
            start, status = None, entry.stat(follow_symlinks=False)
        if status.st_size > self.settings.max_file_bytes:
            reason, sha = f"over {self.settings.max_file_bytes / 1e6:g} MB", ""
        else:
            reason, sha = _head_reason(entry.name, start) if status.st_size else ("empty", "")
        if reason:
            self.found.skip(reason)
            return
        several = not self.settings.hard_links and status.st_nlink > 1
        links = status.st_nlink if several else ANY if self.settings.hard_links else 1
        file = FoundFile(path, uris + shown(entry.name), label, links=links, sha=sha)
        if not several:
            self.files[path] = file
            return
        same = self.found.linked.setdefault((status.st_dev, status.st_ino), [])
        if all(path != other.path for other in same):
            same.append(file)

    def _ignored(self, path: str, rules: list[Rules]) -> str:
        if not rules:
            return ""
        path = PurePath(path).as_posix() + "/" * path.endswith("/")
        return IGNORED if ignored(path, rules) else ""


def _head_reason(name: str, start: bytes | None) -> tuple[str, str]:
    """Why the name and the first 8 KB say not to read a file; "" also when it cannot be opened:
    `sha` will say so. And its SHA-256 where that is all of it: most files are read once, and not
    twice."""
    suffix = suffix_of(name)
    if office.missing(suffix):
        return f"{suffix} {office.NO_EXTRA}", ""
    if start is None:
        return "", ""
    if private_key(start):
        return SECRET, ""
    reason = BINARY if suffix not in _PACKED and binary(start) else ""
    return reason, hashlib.sha256(start).hexdigest() if len(start) < HEAD else ""


def _single(path: str, found: Found, files: dict[str, FoundFile], settings: Settings) -> None:
    """A file named itself: taken even if ignored, hidden or large; what cannot be taken is an
    error."""
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
    elif secret(name):
        reason = f"{SECRET}, and such files are never indexed"
    elif status.st_size > NAMED_LIMIT:
        reason = f"over {NAMED_LIMIT / 1e6:g} MB"
    elif not status.st_size:
        found.skip("empty")
        return
    elif status.st_nlink > 1 and not settings.hard_links and path not in files:
        reason = LINKED
    else:
        reason = kind_of(name) or _head_reason(name, _start(path))[0]
    if reason:
        found.errors.append({"path": uri, "reason": reason})
        files.pop(path, None)
    else:
        known = ANY if settings.hard_links else files[path].links if path in files else 1
        files[path] = FoundFile(path, uri, label, named=True, links=known)


def _start(path: str) -> bytes | None:
    try:
        return head(path, HEAD)[0]
    except OSError:
        return None


def _rules_in(folder: str, names: set[str]) -> list[Rules]:
    """The rules of one folder, weakest first. OSError when an ignore file is there but cannot be
    used."""
    base = PurePath(folder).as_posix().rstrip("/") + "/"
    files = [name for name in IGNORE_FILES if name in names]
    if ".git" in names:
        files.insert(0, os.path.join(".git", "info", "exclude"))
    rules = [
        read_rules(base, lambda name: _ignore_file(os.path.join(folder, name)), name)
        for name in files
    ]
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
        raise OSError(
            errno.EFBIG, f"{os.path.basename(path)} is over 256 KB, so this folder is left out"
        )
    return data


def _rules_above(top: str) -> list[Rules]:
    """The rules that hold for `top` from the Git repository around it; none when they ignore `top`
    itself, which was named all the same."""
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
        try:
            rules += _rules_in(folder, {".git", *IGNORE_FILES})
        except OSError:
            continue
    return [] if ignored(PurePath(top).as_posix() + "/", rules) else rules
