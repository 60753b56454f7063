"""How much one call of indexing may read and make, so that a huge tree fills neither the disk nor the day.

Takes the settings, and each file as it is read; says when the call has had enough and what is left. Counts only files
that were read and taken: what is left is read by the next call, which finds the others unchanged. A file is never cut,
so one call can pass a limit by one file. Knows nothing of how a file is read or what becomes of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_mcp.index.find import FoundFile
from graphrag_mcp.settings import Settings


@dataclass
class Quota:
    max_files: int
    max_bytes: int
    max_text_units: int
    files: int = 0
    bytes: int = 0
    text_units: int = 0

    def take(self, file: FoundFile) -> None:
        self.files += 1
        self.bytes += _size(file)

    def full(self) -> str:
        """The setting whose limit is reached; "" while there is room."""
        for name in ("files", "bytes", "text_units"):
            if getattr(self, name) >= getattr(self, f"max_{name}"):
                return f"max_{name}"
        return ""

    def left(self, files: Sequence[FoundFile]) -> dict[str, str]:
        """What a result says of files that this call has not read: {"path", "reason"}."""
        name = self.full()
        many = f"{len(files):,} files, {sum(map(_size, files)) / 1e6:,.0f} MB" if len(files) > 1 else "1 file"
        reason = (
            f"left for the next call ({many} from here on): one call takes {name} = {getattr(self, name):,}. "
            f"Index again to go on, or raise {name} in the settings"
        )
        return {"path": files[0].uri, "reason": reason}


def too_many(pieces: int, settings: Settings) -> str:
    """Why a file of so many documents is not read; "" while it may be. Each is at least one text unit."""
    if pieces <= settings.max_text_units:
        return ""
    return (
        f"it holds over {settings.max_text_units:,} rows, and each would be a document. "
        "Split it, join rows that belong together, or raise max_text_units in the settings"
    )


def of(settings: Settings) -> Quota:
    return Quota(settings.max_files, settings.max_bytes, settings.max_text_units)


def _size(file: FoundFile) -> int:
    try:
        return os.lstat(file.path).st_size
    except OSError:
        return 0
