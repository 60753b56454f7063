"""Changes of folders on disk, and the watch of a corpus that indexes its folders after each."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.jobs import start
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest

LOOK_EVERY = 0.5  # seconds in which a watch sees that its folder is another one

log = logging.getLogger(__name__)


def changes(
    paths: Sequence[Path], ignored: Path, removed: Callable[[str], None], stop: threading.Event | None = None
) -> Generator[tuple[Path, ...]]:
    """Yields at once, and after every change of a file under these paths but in `ignored`, until
    `stop` is set: the paths that are there. `removed` is told of each that is not; it is waited for, while the
    others are watched.

    The system watches what stands at a path when it is asked, and what may be read then. What is
    removed and made again, replaced under its name (a checkout, a mount, an editor that renames), or given
    other rights is watched and reported like the first."""
    from watchfiles import Change, watch

    waiting: set[Path] = set()
    while stop is None or not stop.is_set():
        watched = [_identity(path) for path in paths]
        present = tuple(path for path, watches in zip(paths, watched, strict=True) if watches)
        for path in paths:
            if path not in present and path not in waiting:
                removed(str(path))
        waiting = {path for path in paths if path not in present}
        if not present:
            time.sleep(LOOK_EVERY)
            continue
        first = True
        places = [os.path.realpath(path) for path in present]
        ends = {(Change.deleted, place) for place in places}  # a new folder may get the old inode
        # The first turn is a timeout: what changes while the corpus is indexed is then seen already.
        turns = watch(
            *places,
            watch_filter=heeded(places, ignored),
            stop_event=stop,
            yield_on_timeout=True,
            rust_timeout=int(1000 * LOOK_EVERY),
            ignore_permission_denied=True,
        )
        try:
            for seen in turns:
                if ends & seen or [_identity(path) for path in paths] != watched:
                    break
                # A folder is modified when its rights are: what could not be read had no watch. The new
                # watch yields, so that one change is told once, but for the first.
                folders = any(at == Change.modified and os.path.isdir(path) for at, path in seen)
                if first or (seen and not folders):
                    first = False
                    yield present
                if folders:
                    break
            else:
                return
        except FileNotFoundError:  # it went between the look and the watch
            continue


def heeded(places: Sequence[str], ignored: Path) -> Callable[[Any, str], bool]:
    """Whether a change says anything: not one in `ignored`, of a cache or of an editor's own file. Only
    names below the watched places count: a folder in `node_modules` that is named is meant."""
    from watchfiles import DefaultFilter

    usual, above = DefaultFilter(), [os.path.join(place, "") for place in places]

    def heeds(change: Any, path: str) -> bool:
        if path in places:
            return True
        if Path(path).is_relative_to(ignored):
            return False
        below = [path[len(start) :] for start in above if path.startswith(start)]
        return any(usual(change, name) for name in below or [path])

    return heeds


def _identity(path: Path) -> tuple[int, ...]:
    """What tells a file or folder from another of the same name, and whether it may be read; () where there
    is none."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino, os.access(path, os.R_OK)
    return ()


class Watches:
    """The watches of one process: a thread for each corpus that is watched."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._ends: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def watched(self, corpus: str) -> bool:
        return corpus in self._ends

    def set(self, corpus: str, paths: Sequence[str], on: bool) -> None:
        """Watch the folders of a corpus, or end its watch. BadInput where it has no folder."""
        if on and not paths:
            what = "this index has no folder that can be watched"
            raise BadInput(what, "Index a folder first")
        with self._lock:
            end = self._ends.pop(corpus, None)
            if end is not None:
                end.set()
            if on:
                self._ends[corpus] = end = threading.Event()
                watch = (corpus, tuple(paths), end)
                name = f"watch-{corpus}"
                threading.Thread(target=self._watch, args=watch, name=name, daemon=True).start()

    def _watch(self, corpus: str, paths: tuple[str, ...], end: threading.Event) -> None:
        within = tuple(str(root.resolve()) for root in self.settings.roots)
        home = self.settings.home.resolve()
        try:
            for present in changes([Path(path) for path in paths], home, self._gone, end):
                request = IndexRequest(tuple(map(str, present)), within=within)
                try:
                    start.start(self.settings, corpus, request)
                except GraphRAGError as error:
                    log.warning("%s was not indexed after a change: %s", corpus, error)
        except Exception as error:  # of the system, such as too many watches
            log.warning("%s is watched no more: %s", corpus, error)
            with self._lock:
                if self._ends.get(corpus) is end:
                    del self._ends[corpus]

    def _gone(self, path: str) -> None:
        log.warning("%s is gone; its watch waits until it is there again", path)
