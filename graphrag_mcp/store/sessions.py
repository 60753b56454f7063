"""Journals: append-only files with one JSON object a line, such as DRIFT sessions. A crash can tear
only the last line, which reading ignores.

In a home on object storage a journal is an object too, so that any machine may resume it. Each
append swaps the object; lines that could not be sent go with the next append or read."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.settings import address_of
from graphrag_mcp.store import stored

if TYPE_CHECKING:
    from graphrag_mcp.store.mirror import Store

FOLDER = "drift"  # of a home
TRIES = 12  # at an object that other machines go on replacing
BACK_OFF = 60.0  # after a failure of the store: a call must not wait for it each time

log = logging.getLogger(__name__)

_failed: dict[Path, float] = {}  # homes whose store was not there, and when


def append(path: Path, event: dict[str, Any]) -> None:
    """Add one event durably. Parents are made; a torn tail is closed first."""
    text = json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    line = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    path.parent.mkdir(parents=True, exist_ok=True)
    with _shared(path) as store:
        with open(path, "a+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    line = b"\n" + line
            file.write(line + b"\n")  # one write: appends of two processes do not interleave
            file.flush()
            os.fsync(file.fileno())
        if store is not None:
            _exchange(store, path)


def read(path: Path) -> list[dict[str, Any]]:
    """All events in order; [] without a journal. What is no JSON object is left out and logged."""
    with _shared(path) as store:
        if store is not None:
            _exchange(store, path)
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            events.append(stored.parsed(line, dict[str, Any]))
        except ValueError as error:
            log.warning("%s: line %d is not an event (%s); left out", path, number, error)
    return events


def listing(folder: Path) -> list[Path]:
    """The journals of a folder, the one touched last first."""
    home = _home(folder / "any")
    with _reached(home) as store:
        if store is not None:
            for entry in store.listed(f"{folder.relative_to(home).as_posix()}/"):
                path = home / entry["path"]
                size = path.stat().st_size if path.exists() else -1
                if path.parent == folder and size != entry["size"]:  # lines are only added
                    read(path)
                    os.utime(path, (entry["last_modified"].timestamp(),) * 2)
    return sorted(folder.glob("*.jsonl"), key=lambda path: (-path.stat().st_mtime, path.name))


def forget(folder: Path, seconds: float) -> int:
    """Remove the journals of a folder that no one touched for so long; how many went."""
    old, home = time.time() - seconds, _home(folder / "any")
    expired = {path for path in folder.glob("*.jsonl") if path.stat().st_mtime < old}
    with _reached(home) as store:
        if store is not None:
            objects = store.listed(f"{folder.relative_to(home).as_posix()}/")
            alive = {home / entry["path"] for entry in objects if entry["last_modified"].timestamp() >= old}
            expired -= alive
            dead = {home / entry["path"] for entry in objects} - alive
            store.delete([_object(path) for path in sorted(dead) if path.parent == folder])
    for path in expired:
        path.unlink(missing_ok=True)
        _lock(path).unlink(missing_ok=True)
    return len(expired)


@contextlib.contextmanager
def _shared(path: Path) -> Iterator[Store | None]:
    """The store that has this journal too, while no other process of this machine is at it."""
    home = _home(path)
    if not address_of(home):
        yield None
        return
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(str(_lock(path))), _reached(home) as store:
        yield store


@contextlib.contextmanager
def _reached(home: Path) -> Iterator[Store | None]:
    """The store of a home. What cannot be read from it or sent there now is only logged."""
    if not address_of(home) or time.monotonic() - _failed.get(home, -BACK_OFF) < BACK_OFF:
        yield None
        return
    from graphrag_mcp.store import mirror

    store = mirror.store_of(home)
    try:
        yield store
    except GraphRAGError as error:
        _failed[home] = time.monotonic()
        log.warning("sessions are those of this machine: %s", error.what)


def _home(path: Path) -> Path:
    """The home of a journal, which is in its folder or in that of a caller."""
    folder = path.parent
    return folder.parent if folder.name == FOLDER else folder.parent.parent


def _object(path: Path) -> str:
    return path.relative_to(_home(path)).as_posix()


def _lock(path: Path) -> Path:
    return path.with_name(f".{path.stem}.lock")


def _exchange(store: Store, path: Path) -> None:
    """Bring file and object to the same lines: the object's, then those of this machine."""
    from graphrag_mcp.store.manifest import write_durably
    from graphrag_mcp.store.mirror import Absent

    for number in range(TRIES):
        local = path.read_bytes().splitlines() if path.exists() else []
        try:
            raw, tag = store.get(_object(path))
        except Absent:
            raw, tag = b"", None
        remote = raw.splitlines()
        known = set(remote)
        lines = [*remote, *(line for line in local if line not in known)]
        whole = b"".join(line + b"\n" for line in lines)
        if lines != local:
            write_durably(path, whole)
        if len(lines) == len(remote) or store.swap(_object(path), whole, tag) is not None:
            return
        time.sleep(random.uniform(0, 0.02 * (number + 1)))  # writers of the same rhythm meet again
    log.warning("%s is written by other machines faster than by this one", path)
