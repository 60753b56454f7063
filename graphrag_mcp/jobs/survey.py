"""An estimate of a request's work: characters of its texts and files, and names they likely hold,
counted no further than it matters."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import PurePath

from graphrag_mcp.types import IndexRequest

# Work is counted in characters of plain prose; a name costs as much as so many of them.
NAME = 20
# Up to this a job is over before a process of its own has started, and takes little of a server.
SMALL_WORK, SMALL_FILES = 1_000_000, 100
# What may begin a name in a script with capitals, and what code calls things.
_NAMES = re.compile(rb"\b[A-Z]|\w[_.@/]\w")
_ASCII = bytes(range(128))
_LETTER = 8  # bytes of a likely name where a script is not ASCII: words of four letters of two
_ZIPPED = frozenset({".docx", ".pptx", ".xlsx", ".xlsm", ".epub", ".odt", ".zip"})
_PACKED = frozenset({".pdf", ".parquet", ".doc", ".xls", ".ppt", ".gz"})
_FACTOR = 8  # bytes of text of a byte that is packed otherwise


def work_of(request: IndexRequest, most: int = SMALL_WORK) -> int:
    """The work of a request, counted until it is more than `most`."""
    work = 0
    for text in request.texts:
        work += _of_text(text.text.encode("utf-8", "replace"))
        if work > most:
            return work
    for path in files_of(request):
        work += _of_file(path, most)
        if work > most:
            return work
    return work


def files_of(request: IndexRequest) -> Iterator[str]:
    """The files that a request names, in order, with those under its folders."""
    for start in request.paths:
        if os.path.isfile(start):
            yield start
            continue
        for folder, folders, names in os.walk(start):
            folders[:] = sorted(
                name for name in folders if not name.startswith(".") and name != "node_modules"
            )
            yield from (os.path.join(folder, name) for name in sorted(names))


def _of_text(data: bytes) -> int:
    names = sum(1 for _ in _NAMES.finditer(data)) + len(data.translate(None, _ASCII)) // _LETTER
    return len(data) + NAME * names


def _of_file(path: str, most: int) -> int:
    suffix = PurePath(path).suffix.lower()
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return 0
        if suffix in _PACKED:
            return status.st_size * _FACTOR
        if status.st_size > most:
            return status.st_size
        if suffix in _ZIPPED and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                return sum(entry.file_size for entry in file.infolist())
        with open(path, "rb") as file:
            return _of_text(file.read(most))
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return 0  # the run that indexes it says why
