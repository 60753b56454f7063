"""Safe opening of files: regular files only, and no link on the way.

A path is opened part by part from the root of the file system, so a folder swapped for a link
between the check and the reading gives an error; a FIFO or device is never waited for."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

LINKED = "hard link to a file elsewhere (see the setting hard_links)"
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_FOLDER = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_DIRECTORY", 0)
)


ANY = 1 << 30  # hard links to a file, where their number does not matter


def open_regular(path: str, links: int = ANY, at: int = -1) -> int:
    """A descriptor of the regular file at `path`, reached without following any link. OSError
    otherwise, and for a file that has more than `links` names: one of them may lie anywhere. `at`:
    its folder, opened by `entries`."""
    return _opened(path, links, at)[0]


def _opened(path: str, links: int, at: int) -> tuple[int, os.stat_result]:
    if at >= 0:
        descriptor = os.open(path[path.rfind("/") + 1 :], _FLAGS, dir_fd=at)
    elif os.open in os.supports_dir_fd:
        descriptor = _reach(path, _FLAGS)
    else:
        descriptor = os.open(path, _FLAGS | getattr(os, "O_BINARY", 0))
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            os.close(descriptor)
            raise OSError(errno.ELOOP, "reached through a link")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    if status.st_nlink > links:
        os.close(descriptor)
        raise OSError(errno.EMLINK, LINKED)
    return descriptor, status


def _reach(path: str, flags: int) -> int:
    """Opened part by part from the root, no link followed."""
    *folders, name = path.split("/")[1:]
    at = os.open("/", _FOLDER)
    try:
        for folder in folders:
            above, at = at, os.open(folder, _FOLDER, dir_fd=at)
            os.close(above)
        return os.open(name or ".", flags, dir_fd=at)
    finally:
        os.close(at)


@contextmanager
def entries(folder: str) -> Iterator[tuple[Iterator[os.DirEntry[str]], int]]:
    """The entries of the folder that is at `folder` and not of one that a link there names, and its
    descriptor, -1 where there are none. Their `path` is not to be used, and they answer only inside
    the `with`."""
    if os.open in os.supports_dir_fd and os.scandir in os.supports_fd:
        at = _reach(
            folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | getattr(os, "O_CLOEXEC", 0)
        )
        try:
            with os.scandir(at) as listed:
                yield listed, at
        finally:
            os.close(at)
    else:
        with os.scandir(folder) as listed:
            yield listed, -1


def blocks(path: str, limit: int, links: int = ANY, at: int = -1) -> Iterator[bytes]:
    descriptor = open_regular(path, links, at)
    try:
        while limit > 0 and (block := os.read(descriptor, min(1 << 20, limit))):
            limit -= len(block)
            yield block
    finally:
        os.close(descriptor)


def head(path: str, limit: int, at: int = -1) -> tuple[bytes, os.stat_result]:
    """The first bytes of a file, and what it is: a walk asks for both, of every file that there is."""
    descriptor, status = _opened(path, ANY, at)
    try:
        data = os.read(descriptor, limit)
        while len(data) < min(limit, status.st_size) and (
            more := os.read(descriptor, limit - len(data))
        ):
            data += more
        return data, status
    finally:
        os.close(descriptor)


def read(path: str, limit: int, *, whole: bool = True, links: int = ANY, at: int = -1) -> bytes:
    data = b"".join(blocks(path, limit + whole, links, at))
    if whole and len(data) > limit:
        raise OSError(errno.EFBIG, f"over {limit / 1e6:g} MB")
    return data


def why(error: Exception) -> str:
    """An error of the file system in plain words."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, OSError):
        linked = error.errno in (errno.ELOOP, errno.ENOTDIR)
        return "a symbolic link on the way" if linked else str(error.strerror or error)
    return "not a path"
