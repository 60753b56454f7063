"""Opening files so that what is read is what was allowed: regular files only, and no link on the way.

Takes absolute paths without links (as `os.path.realpath` gives them); gives bytes or an OSError. A path is opened part
by part from the root of the file system, so a folder swapped for a link between the check and the reading gives an
error and not a file from elsewhere; a FIFO or device is never waited for. Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)


def open_regular(path: str) -> int:
    """A descriptor of the regular file at `path`, reached without following any link. OSError otherwise."""
    if os.open in os.supports_dir_fd:
        *folders, name = path.split("/")[1:]
        at = os.open("/", _FOLDER)
        try:
            for folder in folders:
                above, at = at, os.open(folder, _FOLDER, dir_fd=at)
                os.close(above)
            descriptor = os.open(name, _FLAGS, dir_fd=at)
        finally:
            os.close(at)
    else:
        descriptor = os.open(path, _FLAGS | getattr(os, "O_BINARY", 0))
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            os.close(descriptor)
            raise OSError(errno.ELOOP, "reached through a link")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def blocks(path: str, limit: int) -> Iterator[bytes]:
    descriptor = open_regular(path)
    try:
        while limit > 0 and (block := os.read(descriptor, min(1 << 20, limit))):
            limit -= len(block)
            yield block
    finally:
        os.close(descriptor)


def read(path: str, limit: int, *, whole: bool = True) -> bytes:
    data = b"".join(blocks(path, limit + whole))
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
