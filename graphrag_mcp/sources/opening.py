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
ANY = 1 << 30  # hard links to a file, where their number does not matter
_READ, _PART = os.O_RDONLY, getattr(os, "O_PATH", os.O_RDONLY)
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READ |= getattr(os, _name, 0)
for _name in ("O_NOFOLLOW", "O_DIRECTORY"):
    _PART |= getattr(os, _name, 0)


def _reach(path: str, flags: int) -> int:
    """Opened part by part from the root, no link followed."""
    *folders, name = path.split("/")[1:]
    at = os.open("/", _PART)
    try:
        for folder in folders:
            above, at = at, os.open(folder, _PART, dir_fd=at)
            os.close(above)
        return os.open(name or ".", flags, dir_fd=at)
    finally:
        os.close(at)


class Folder:
    """The folder that a file was last opened in, kept open: of the next file in it only the name is
    opened. Reaching it took ten calls of the system for each file of /home/ada/papers/2024."""

    def __init__(self) -> None:
        self._path, self._descriptor = "", -1

    def open(self, path: str) -> int:
        """A descriptor of the file at `path`, reached without following any link."""
        above, _, name = path.rpartition("/")
        if self._descriptor < 0 or above != self._path:
            self.close()
            self._path, self._descriptor = above, _reach(above or "/", _PART)
        return os.open(name, _READ, dir_fd=self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def entries(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of the folder that is at `folder` and not of one that a link there names. Their
    `path` is not to be used, and they answer only inside the `with`."""
    if os.open in os.supports_dir_fd and os.scandir in os.supports_fd:
        at = _reach(folder, _READ | os.O_DIRECTORY)
        try:
            with os.scandir(at) as listed:
                yield listed
        finally:
            os.close(at)
    else:
        with os.scandir(folder) as listed:
            yield listed


def blocks(path: str, limit: int, links: int = ANY, within: Folder | None = None) -> Iterator[bytes]:
    """The bytes of the regular file at `path`, reached without following any link. OSError
    otherwise, and for a file that has more than `links` names: one of them may lie anywhere.
    `within`: given for several files one after another, so that the folder of each is reached once."""
    apart = os.open in os.supports_dir_fd
    if not apart:
        descriptor = os.open(path, _READ)
    else:
        descriptor = within.open(path) if within is not None else _reach(path, _READ)
    try:
        if not apart and os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            raise OSError(errno.ELOOP, "reached through a link")
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_nlink > links:
            raise OSError(errno.EMLINK, LINKED)
        while limit > 0 and (block := os.read(descriptor, min(1 << 20, limit))):
            limit -= len(block)
            yield block
    finally:
        os.close(descriptor)


def head(path: str, limit: int, within: Folder | None = None) -> bytes:
    """The first bytes of a file, at most so many. `within`: as in `blocks`."""
    return b"".join(blocks(path, limit, ANY, within))


def read(path: str, limit: int, links: int = ANY) -> bytes:
    """All bytes of a file. OSError where there are more than `limit`."""
    data = b"".join(blocks(path, limit + 1, links))
    if len(data) > limit:
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
