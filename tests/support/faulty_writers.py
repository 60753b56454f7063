"""Victims with a planted fault, for the campaign of kills: each runs in a process of its own, and those that are to be
killed do it themselves once the fault is there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from campaigns import kills


def ends_at_once(folder: str, docs: str) -> None:
    """Is done before it can be killed."""
    kills.indexing(folder, docs)


def fails(folder: str, docs: str) -> None:
    raise RuntimeError("planted")


def breaks_its_manifest(folder: str, docs: str) -> None:
    """Leaves a generation that cannot be read."""
    kills.indexing(folder, docs)
    sorted((Path(folder) / "generations").glob("*.json"))[-1].write_text("{}")
    os.kill(os.getpid(), signal.SIGKILL)


def forgets_its_manifest(folder: str, docs: str) -> None:
    kills.indexing(folder, docs)
    (Path(folder) / "manifest.json").unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def acknowledges_too_early(folder: str, said: str, first: int) -> None:
    """Says that a note is committed when it is not."""
    kills.busy()
    kills.put(Path(folder), texts=[kills.note(first)])
    with open(said, "a") as file:
        for number in range(first, first + 20):
            file.write(f"{number}\n")
        file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
