"""Folders that were moved or renamed: a source that is no longer where it was, and whose files are found again.

Takes the paths of a call, the sources of the corpus and the light rows of its documents; gives what the walk found,
under the labels that a fresh index would give, and the labels of sources that have moved: what of them was not found
again is gone. Only a source whose folder is not there any more is looked for, by the hashes of its files. Where too few
of them are found, nothing is taken for moved; it is said, with what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_mcp.index import read
from graphrag_mcp.index.find import shown
from graphrag_mcp.index.read import Found, FoundFile
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest

# A folder that was moved has been worked on since, as a rule; half of its files unchanged is no chance.
ENOUGH = 0.5
Sources = Mapping[str, Mapping[str, str]]
Known = tuple[str, str]  # the name of a file, and its hash


@dataclass
class Moved:
    found: Found
    labels: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def find(
    request: IndexRequest, sources: Sources, absent: Iterable[str], live: Iterable[Mapping[str, Any]],
    settings: Settings,
) -> Moved:  # fmt: skip
    """`absent`: labels of the folders that are not where they were; `live`: {uri, file, file_sha} of every document.
    With `remove_missing` whoever calls says that what is missing is to leave."""
    paths, within, sure = request.paths, request.within, request.remove_missing
    found = read.find(paths, sources, settings, within)
    files = {row["file"]: row["file_sha"] for row in live}
    away = {label: old for label in absent if (old := _files_of(label, files))}
    if not away or not found.files:
        return Moved(found)
    wanted = {name for old in away.values() for name, _ in old}
    found.files = [_hashed(file) if _name(file.uri) in wanted else file for file in found.files]
    new = {(_name(file.uri), file.sha) for file in found.files if file.uri not in files}
    every = {(_name(file.uri), file.sha) for file in found.files}
    complete = all(scope.complete for scope in found.scopes) and not found.errors
    moved, notes = set(), []
    for label, old in away.items():
        again = sum(one in new for one in old)
        if again >= ENOUGH * len(old) and complete:
            moved.add(label)
            notes.append(_said(sources[label]["path"], again, len(old)))
        elif there := sum(one in every for one in old):
            if sure and complete:
                moved.add(label)
                notes.append(_said(sources[label]["path"], there, len(old)))
            else:
                notes.append(_doubtful(sources[label]["path"], there, len(old)))
    if not moved:
        return Moved(found, notes=notes)
    if sure:  # what was doubled by earlier calls has the label of a second folder
        named = {os.path.realpath(path) for path in paths}
        moved |= {label for label, source in sources.items() if source["path"] in named}
    hashes = {file.path: file.sha for file in found.files}
    left = {label: source for label, source in sources.items() if label not in moved}
    found = read.find(paths, left, settings, within)
    found.files = [replace(file, sha=hashes.get(file.path) or file.sha) for file in found.files]
    return Moved(found, moved, notes)


def _files_of(label: str, files: Mapping[str, str]) -> list[Known]:
    return [(_name(file), sha) for file, sha in files.items() if file.startswith(f"{label}/")]


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]


def _hashed(file: FoundFile) -> FoundFile:
    """The file with its SHA-256, where it can be read."""
    try:
        return file if file.sha else replace(file, sha=read.sha(file))
    except OSError:
        return file  # the reading will say why


def _said(path: str, found: int, total: int) -> str:
    return f"{shown(path)} is no longer there, {found} of its {total} files were found again: it was taken as moved."


def _doubtful(path: str, found: int, total: int) -> str:
    return (
        f"{shown(path)} is no longer there; {found} of its {total} files are also in what was named now. If it was "
        "moved, call again with remove_missing=true and its old documents leave; else they stay."
    )
