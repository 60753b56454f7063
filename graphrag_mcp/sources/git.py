"""Dates of commits: on which day the text that a file has was committed.

Gives the last commit of files (blob, day of its author) from one `git log` a repository.

Git runs in an empty repository that borrows the objects: no configuration is read, so that no
setting changes what is printed, no program that it names (core.fsmonitor, pagers, helpers, filters)
runs, nothing is fetched. What a shallow clone begins with has no date."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from graphrag_mcp.sources.opening import read
from graphrag_mcp.sources.walk import FoundFile
from graphrag_mcp.text.terms import content_id

SECONDS = 60.0  # for the history of one repository; what is not dated by then has no date
_REFS = 50_000_000  # bytes of the list of packed references
_LONGEST = 1 << 20  # bytes of one name
_KEPT = ("PATH", "SYSTEMROOT", "WINDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"ref:\s*(refs/[^\s~^:?*\[\\\x00-\x1f]+)\s*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = "1970-01-01"  # of commits that programs make without a clock


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository whose checkout holds files of a corpus."""

    root: str  # the folder of its files
    folder: str  # of its objects and references
    head: str  # id of the commit that is checked out


Commit = tuple[str, str]  # id of a file's blob, and the day by its author's clock


def is_blob(id: str, data: bytes) -> bool:
    """Is this what was committed? Line ends may be those of the checkout."""
    for text in (data, data.replace(b"\r\n", b"\n")):
        digest = hashlib.sha1(usedforsecurity=False) if len(id) == 40 else hashlib.sha256()
        digest.update(b"blob %d\0" % len(text) + text)
        if digest.hexdigest() == id:
            return True
    return False


def repositories(files: Iterable[FoundFile]) -> dict[str, list[tuple[Repository, FoundFile]]]:
    """The files that lie in a checkout, by the label of their source."""
    known: dict[str, Repository | None] = {}
    found: dict[str, list[tuple[Repository, FoundFile]]] = {}
    for file in files:
        repository = _around(os.path.dirname(file.path), known)
        if repository is not None:
            found.setdefault(file.source, []).append((repository, file))
    return found


def heads(inside: Iterable[tuple[Repository, FoundFile]]) -> str:
    """What changes when another commit is checked out."""
    every = {(repository.root, repository.head) for repository, _ in inside}
    return content_id(*(part for pair in sorted(every) for part in pair)) if every else ""


def commits(inside: Iterable[tuple[Repository, FoundFile]]) -> dict[str, Commit]:
    """The last commit of each file, by its path."""
    by_repository: dict[Repository, dict[str, str]] = {}
    for repository, file in inside:
        name = file.path[len(repository.root.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
        by_repository.setdefault(repository, {})[unicodedata.normalize("NFC", name)] = file.path
    git = shutil.which("git") or ""
    found: dict[str, Commit] = {}
    for repository, names in by_repository.items():
        # A program in a folder of documents, or of the working directory, is not Git.
        if os.path.isabs(git) and not git.startswith(os.path.join(repository.root, "")):
            with suppress(OSError):
                found |= _history(git, repository, names)
    return found


def _around(folder: str, known: dict[str, Repository | None]) -> Repository | None:
    """The repository whose files lie around this folder; None without one."""
    if folder not in known:
        above = os.path.dirname(folder)
        if os.path.lexists(os.path.join(folder, ".git")):
            known[folder] = _opened(folder)
        else:
            known[folder] = None if above == folder else _around(above, known)
    return known[folder]


def _opened(root: str) -> Repository | None:
    place = os.path.join(root, ".git")
    try:
        if stat.S_ISREG(os.lstat(place).st_mode):  # of a linked work tree or a submodule
            target = os.fsdecode(read(place, 4_096)).strip().removeprefix("gitdir:").strip()
            place = os.path.realpath(os.path.join(root, target))
        common = _line(os.path.join(place, "commondir"))
        folder = os.path.realpath(os.path.join(place, common)) if common else place
        head = _commit(place, folder)
    except (OSError, ValueError):
        return None
    return Repository(root, folder, head) if head else None


def _line(path: str, limit: int = 4_096) -> str:
    """The text of a small file; "" where there is none."""
    with suppress(FileNotFoundError):
        return os.fsdecode(read(path, limit)).strip()
    return ""


def _commit(place: str, folder: str) -> str:
    reference = _line(os.path.join(place, "HEAD"))
    for _ in range(5):  # a reference may name another one
        named = _REF.fullmatch(reference)
        if named is None:
            return reference if _ID.fullmatch(reference) else ""
        if ".." in named[1]:
            return ""
        reference = _line(os.path.join(folder, *named[1].split("/"))) or _packed(folder, named[1])
    return ""


def _packed(folder: str, name: str) -> str:
    lines = _line(os.path.join(folder, "packed-refs"), _REFS).splitlines()
    parts = (line.partition(" ") for line in lines)
    return next((id for id, _, reference in parts if reference == name), "")


def _history(git: str, repository: Repository, names: Mapping[str, str]) -> dict[str, Commit]:
    """The last commits of files (name -> path), newest first, until each file has one."""
    folder = posixpath.commonpath([posixpath.dirname(name) for name in names])
    found: dict[str, Commit] = {}
    with tempfile.TemporaryDirectory() as scratch:
        began = _prepared(scratch, repository)
        # Letters beyond ASCII may be composed otherwise there.
        limits = ["--", folder] if folder and folder.isascii() else []
        with _running(git, scratch, repository, "ls-tree", "-r", "-z", repository.head, *limits) as out:
            blobs = {name: blob for name, blob in _listed(out) if name in names}
        form = ["--raw", "-z", "--no-abbrev", "--no-renames", "-c", "--date=short"]
        form += ["--format=%H %ad", repository.head, *limits]
        with _running(git, scratch, repository, "log", *form) as out:
            for commit, day, name, blob in _logged(out):
                if blobs.get(name) != blob:
                    continue
                del blobs[name]
                if commit not in began and day != _EPOCH:
                    found[names[name]] = (blob, day)
                if not blobs:
                    break
    return found


def _prepared(scratch: str, repository: Repository) -> frozenset[str]:
    """An empty repository; gives the commits with which a shallow clone begins."""
    for name in ("objects", "refs"):
        os.mkdir(os.path.join(scratch, name))
    shallow = _line(os.path.join(repository.folder, "shallow"), _REFS)
    began = frozenset(id for id in shallow.split() if _ID.fullmatch(id))
    version, form = (1, "sha256") if len(repository.head) == 64 else (0, "")
    config = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n"
    config += f"[extensions]\n\tobjectformat = {form}\n" if form else ""
    written = {"HEAD": f"{repository.head}\n", "config": config}
    written |= {"shallow": "".join(f"{id}\n" for id in sorted(began))} if began else {}
    for name, text in written.items():
        with open(os.path.join(scratch, name), "w", encoding="ascii", newline="\n") as file:
            file.write(text)
    return began


@contextmanager
def _running(git: str, scratch: str, repository: Repository, *words: str) -> Iterator[IO[bytes]]:
    """What a command prints; it is ended at the end of the block, and after a minute."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "GIT_DIR"), scratch)
    environment |= {
        "GIT_OBJECT_DIRECTORY": os.path.join(repository.folder, "objects"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "LC_ALL": "C",
    }
    process = subprocess.Popen(
        [git, "--no-pager", "--literal-pathspecs", *words],
        env=environment,
        cwd=scratch,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    watch = threading.Timer(SECONDS, process.kill)
    watch.daemon = True
    watch.start()
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        watch.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def _parts(out: IO[bytes]) -> Iterator[str]:
    """What stands between NUL bytes."""
    rest = b""
    while len(rest) < _LONGEST and (block := os.read(out.fileno(), 1 << 16)):
        *whole, rest = (rest + block).split(b"\0")
        yield from map(os.fsdecode, whole)


def _listed(out: IO[bytes]) -> Iterator[tuple[str, str]]:
    """(name, blob) of regular files, from `mode blob id<TAB>name`."""
    for part in _parts(out):
        about, _, name = part.partition("\t")
        if about.startswith("100"):
            yield unicodedata.normalize("NFC", name), about.rpartition(" ")[2]


def _logged(out: IO[bytes]) -> Iterator[tuple[str, str, str, str]]:
    """(commit, day, name, blob) of every change. A merge shows what none of its parents has."""
    commit = day = blob = ""
    for part in _parts(out):
        if blob:
            if _DAY.fullmatch(day):
                yield commit, day, unicodedata.normalize("NFC", part), blob
            blob = ""
        elif part.lstrip().startswith(":"):
            blob = part.rpartition(" ")[0].rpartition(" ")[2]
        elif part.strip():
            commit, _, day = part.strip().partition(" ")
