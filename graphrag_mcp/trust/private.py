"""Folders of a home. File modes: 600 for files, 700 for folders; what an earlier release left open to
others is closed; nothing is done on Windows. Names: those that a folder may have on any system."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from pathlib import Path

OTHERS = 0o077
OURS = ("corpora", "jobs", "drift", "explore")


def keep_private(home: Path) -> None:
    """Call it before anything is written."""
    if os.name == "nt":
        return
    os.umask(OTHERS)  # also for the files of LanceDB and SQLite
    for name in OURS:
        folder = home / name
        with contextlib.suppress(OSError):
            if not folder.stat(follow_symlinks=False).st_mode & OTHERS:
                continue
            for inner, folders, files in os.walk(folder, topdown=False):
                for beneath in (*folders, *files):
                    _without_others(os.path.join(inner, beneath))
            _without_others(str(folder))  # last: a walk that was stopped is done again


def _without_others(path: str) -> None:
    with contextlib.suppress(OSError):  # it belongs to another user, or is gone
        mode = os.lstat(path).st_mode
        if mode & OTHERS and not os.path.islink(path):
            os.chmod(path, mode & 0o700)


def is_name(name: str) -> bool:
    """Can a corpus have this name? Letters of any script, digits, - _ . ~ in up to 200 bytes."""
    long = len(name.encode("utf-8", "surrogatepass")) > 200
    dots = name.startswith(".") or name.endswith(".")
    return bool(name) and not long and not dots and all(map(name_character, name))


def name_character(ch: str) -> bool:
    return ch in "-_.~" or unicodedata.category(ch)[0] in "LMN"  # letters, their marks, digits
