"""The file that a document was read from: below the folder of its source, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphrag_mcp.text.uris import file_and_key


def file_of(uri: str, sources: Mapping[str, Mapping[str, str]]) -> Path | None:
    """The file of a document below its source's folder; None where there is none."""
    label, _, rest = uri.partition("/")
    folder = sources.get(label, {})
    if folder.get("kind") == "import" or not rest:
        return None
    for name in (rest, file_and_key(rest)[0]):  # a row of a table: sample/log.csv#3
        path = Path(folder.get("path", ""), name)
        if name and path.is_file():
            return path
    return None


def real_file_of(uri: str, sources: Mapping[str, Mapping[str, str]]) -> Path | None:
    """As `file_of`, with links resolved; None for a file that a link has outside of the folder."""
    path = file_of(uri, sources)
    if path is None:
        return None
    folder = Path(sources[uri.partition("/")[0]].get("path", ""))
    real = path.resolve()
    return real if real.is_relative_to(folder.resolve()) else None
