"""Deletion of a corpus: its folder alone, and only while no process works on it.

A killed deletion leaves the corpus without its older generations, or parts that the next deletion
takes along. Records of jobs, DRIFT sessions and documents stay."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from graphrag_mcp.errors import BadInput, Busy, GraphRAGError, NotFound
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.store.manifest import mirrored, read, writer_lock, writing

LOCK_SECONDS = 1.0
LEFT = ".deleted-"  # begins the name of what is on its way out


@dataclass(frozen=True)
class Stored:
    """What a corpus takes on the disk."""

    corpus: str
    path: str
    documents: int
    files: int
    bytes: int


def stored(home: Path, corpus: str) -> Stored:
    """What a corpus is on disk. NotFound without one, BadInput where a link or a file is there."""
    folder = _folder(home, corpus)
    inside = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    try:
        manifest = read(folder)
    except GraphRAGError:  # damaged, or of a later release: it can be deleted all the same
        manifest = None
    documents = manifest.counters.get("documents", 0) if manifest else 0
    size = sum(os.lstat(path).st_size for path in inside)
    return Stored(corpus, str(folder), documents, len(inside), size)


def delete(home: Path, corpus: str) -> Stored:
    """Take it away. Raises as `stored`, and Busy while someone works on it."""
    found = stored(home, corpus)
    with _alone(home, corpus), writing(Path(found.path)):
        folder = _folder(home, corpus)
        with writer_lock(folder, LOCK_SECONDS):
            # Before the manifest: one of them would stand in.
            for path in (folder / "generations").glob("*.json"):
                path.unlink()
            if (store := mirrored(folder)) is not None:
                store.remove()
            (folder / "manifest.json").unlink(missing_ok=True)
            # Who waits for the lock finds an empty place; there, an open file keeps its folder.
            if os.name != "nt":
                os.rename(folder, folder.with_name(f"{LEFT}{secrets.token_hex(4)}-{corpus}"))
        beside = folder.parent.glob(f"{LEFT}*")
        named = {path: path.name.removeprefix(LEFT).partition("-") for path in beside}
        # What killed deletions of this corpus have left goes too.
        left = [path for path, (mark, _, of) in named.items() if len(mark) == 8 and of == corpus]
        for path in [*left, folder]:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)  # a link inside is removed and never followed
    return found


def _folder(home: Path, corpus: str) -> Path:
    folder = home / "corpora" / corpus
    if corpus.startswith(".") or folder.parent != home / "corpora" or folder.name != corpus:
        raise BadInput(f"{corpus[:40]!r} is no name of a corpus", "graphrag-mcp status lists them")
    try:
        kind = os.lstat(folder).st_mode
    except OSError as error:
        what = f"there is no corpus {corpus!r}"
        raise NotFound(what, "graphrag-mcp status lists them") from error
    if not stat.S_ISDIR(kind):
        what = f"{folder} is a link or a file, and not a corpus of this home"
        raise BadInput(what, "Remove it yourself")
    return folder


@contextlib.contextmanager
def _alone(home: Path, corpus: str) -> Generator[None]:
    """No job is open, none can be begun, and no process leads the corpus while this lasts."""
    what = f"corpus {corpus} is at work: a job is open, or another process leads it"
    busy = Busy(what, "Wait for it, stop it with cancel_job, or end the server that does it")
    with contextlib.ExitStack() as stack:
        try:
            for name in (f"{corpus}.start", corpus):
                stack.enter_context(writer_lock(home / "jobs" / "lead" / name, LOCK_SECONDS))
        except Busy as error:
            raise busy from error
        if records.waiting(home, corpus):
            raise busy
        yield
