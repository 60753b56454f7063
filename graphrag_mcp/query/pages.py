"""Which document a link leads to, as Obsidian resolves links: by its path from the top of the folder, by the end of its
path, by its name alone, by an alias of its front matter; in any case, with or without the suffix of Markdown.

A generation's documents decide, so a page that appears, goes or gets another name changes the links of documents that
did not change. Nothing of it is stored."""

from __future__ import annotations

import os
import posixpath
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.query.times import documents
from graphrag_mcp.sources import renames
from graphrag_mcp.sources.links import HREF, IMAGE, INLINE, INLINE_TEXT, MARKDOWN, aliases
from graphrag_mcp.sources.walk import suffix_of
from graphrag_mcp.store.tables import Snapshot, once
from graphrag_mcp.text.citing import file_and_key

RELATIVE = (INLINE, IMAGE)  # kinds of links whose paths begin at the folder of their document


class Pages:
    """The documents of a generation by number (in the order of their paths), under all names that a link may use."""

    def __init__(
        self,
        uris: Mapping[str, str],
        names: Mapping[str, Sequence[str]],
        folders: Mapping[str, str],
        renamed: Mapping[str, str] = {},
    ) -> None:
        """`uris` and aliases (`names`) by content id; `folders`: of the labels of sources, on this machine;
        `renamed`: uris of files that are gone, with those that they have now (sources/renames.py)."""
        order = sorted(uris, key=lambda id: path_of(uris[id]))
        self.ids = order
        self.number = {id: number for number, id in enumerate(order)}
        self.paths = [path_of(uris[id]) for id in order]
        self.folders = folders
        self.by_path: dict[str, list[int]] = {}
        self.by_name: dict[str, list[int]] = {}
        self.by_alias: dict[str, list[int]] = {}
        for number, id in enumerate(order):
            for path in _spellings(self.paths[number]):
                self.by_path.setdefault(path.casefold(), []).append(number)
                self.by_name.setdefault(_name(path).casefold(), []).append(number)
            for alias in names.get(id, ()):
                self.by_alias.setdefault(_plain(alias).casefold(), []).append(number)
        self.known: dict[tuple[str, str, bool], int] = {}
        self.ended: dict[str, list[int]] = {}  # what `_ending` has found
        self.first: dict[tuple[str, str], int] = {}  # the best of these in no folder
        by_uri = {uri: self.number[id] for id, uri in uris.items()}
        self.now = {old: by_uri[new] for old, new in renamed.items() if new in by_uri}
        self.former = Pages({uri: uri for uri in self.now}, {}, folders) if self.now else None

    def target(self, link: Mapping[str, Any], source: int) -> int:
        """The number of the document that a link (`kind`, `target`, `part`) of document `source` leads to; -1 for
        none, less for one of several (`rivals`). A row of a table is meant by its file and, as the part, its key."""
        return self._target(link, posixpath.dirname(self.paths[source]))

    def renamed(self, link: Mapping[str, Any], source: int) -> int:
        """As `target`, for the name that the document had before; -1 for none."""
        if self.former is None:
            return -1
        found = self.former._target(link, posixpath.dirname(self.paths[source]))
        return self.now[self.former.ids[found]] if found >= 0 else -1

    def find_renamed(self, path: str) -> int:
        """As `find`, for the name that the document had before; -1 for none."""
        found = self.former.find(path) if self.former else -1
        return self.now[self.former.ids[found]] if self.former and found >= 0 else -1

    def _target(self, link: Mapping[str, Any], folder: str) -> int:
        path, relative = path_of(link["target"]), link["kind"] in RELATIVE
        if link["kind"] == HREF:  # as a browser: this file or none
            top = folder.partition("/")[0] if path.startswith("/") else folder
            return self._at(posixpath.normpath(f"{top}/{path}"), folder)
        row = posixpath.normpath(posixpath.join(folder, f"{path}#{link['part']}"))
        if link["part"] and row.casefold() in self.by_path:
            return self._at(row, folder)
        asked = (folder, path, relative)
        if asked not in self.known:
            self.known[asked] = self.find(path, folder, relative)
        return self.known[asked]

    def find(self, path: str, folder: str = "", relative: bool = False) -> int:
        """The number of the document at `path`, seen from `folder` (a path of documents); -1 if
        there is none, less for one of several (`rivals`). If `relative` and there is a document below `folder` with exactly
        this path, it is that document."""
        dotted = path.startswith(("./", "../"))
        if dotted or relative:
            found = self._at(posixpath.normpath(posixpath.join(folder, path)), folder)
            if found == -1 and folder:
                found = self._at(self._elsewhere(folder, path), folder)
            if found != -1 or dotted:
                return found
        if path.startswith(INLINE_TEXT):
            return self._at(path, folder)
        if path.startswith("/"):
            found = self._at(f"{folder.partition('/')[0]}{path}", folder)
            return found if found != -1 else self._at(self._elsewhere(folder, path), folder)
        return self._nearest(path, folder)

    def rivals(self, target: int) -> list[int]:
        """The documents that a link may mean whose target is below -1: their paths differ in case alone, and the link
        has none of their spellings."""
        return self._alike(-2 - target)

    def _at(self, whole: str, folder: str) -> int:
        """The document with this path."""
        numbers = self.by_path.get(whole.casefold(), ())
        best = min(numbers, key=lambda number: self._worse(number, whole, folder), default=-1)
        return self._meant(best, whole)

    def _meant(self, number: int, path: str) -> int:
        """This document, or that it is one of several: it has this path in another case, and so have others."""
        written = number < 0 or self._is_written(number, path)
        by_alias = not written and not self._is_written(number, path, fold=True)
        return number if written or by_alias or not self._alike(number) else -2 - number

    def _is_written(self, number: int, path: str, fold: bool = False) -> bool:
        """Does the path of a document end with this one, in this case or (`fold`) in any?"""
        end, spellings = (
            f"/{path.lstrip('/')}",
            [f"/{text}" for text in _spellings(self.paths[number])],
        )
        if fold:
            end, spellings = end.casefold(), [text.casefold() for text in spellings]
        return any(text.endswith(end) for text in spellings)

    def _alike(self, number: int) -> list[int]:
        """The documents whose paths are that of this document but for case; [] where it is the only one."""
        path = self.paths[number].casefold()
        found = [other for other in self.by_path[path] if self.paths[other].casefold() == path]
        return found if len(found) > 1 else []

    def _nearest(self, path: str, folder: str) -> int:
        """Of the documents whose paths end so: the one below the same top folder, spelled as the link, with no folder
        but those of the link, in the folder of the link or below it, with the shortest path."""
        numbers, top = self._ending(path), folder.partition("/")[0]
        if not numbers:
            return -1
        if (path, top) not in self.first:
            self.first[path, top] = min(
                numbers, key=lambda number: self._worse(number, path, folder)
            )
        first = self.first[path, top]
        # Paths are in order, so those below one folder follow each other; 0 is the sign behind /.
        start = bisect_left(numbers, f"{folder}/", key=self.paths.__getitem__)
        end = bisect_left(numbers, f"{folder}0", key=self.paths.__getitem__)
        near = min(
            numbers[start:end], key=lambda number: self._worse(number, path, folder), default=first
        )
        as_good = self._worse(near, path, folder)[:3] == self._worse(first, path, folder)[:3]
        return self._meant(near if as_good else first, path)

    def _ending(self, path: str) -> list[int]:
        """The documents with this path at the end of theirs, else those with this alias; in order of their paths."""
        if path not in self.ended:
            folded = f"/{path.casefold()}"
            named = self.by_name.get(_name(folded), ())
            found = [
                number
                for number in named
                if any(
                    spelling.casefold().endswith(folded)
                    for spelling in _spellings(self.paths[number])
                )
            ]
            self.ended[path] = sorted(set(found or self.by_alias.get(path.casefold(), ())))
        return self.ended[path]

    def _worse(self, number: int, path: str, folder: str) -> tuple[bool, bool, bool, int, str]:
        spelled = self.paths[number]
        top, _, below = spelled.partition("/")
        return (
            top != folder.partition("/")[0],
            not self._is_written(number, path),
            path.casefold() not in (spelling.casefold() for spelling in _spellings(below)),
            len(spelled),
            spelled,
        )

    def _elsewhere(self, folder: str, path: str) -> str:
        """The path, among those of documents, of a file that a relative or absolute path names on this machine; ""
        where it lies in no folder that was indexed."""
        top, _, below = folder.partition("/")
        return next(
            iter(uris_of(self.folders, posixpath.join(self.folders.get(top) or "/", below, path))),
            "",
        )


@once
def pages(snapshot: Snapshot) -> Pages:
    """The pages of a generation, read once."""
    facts = documents(snapshot)
    uris = {id: str(fact["uri"]) for id, fact in facts.items()}
    names = {id: aliases(fact["metadata"]) for id, fact in facts.items()}
    return Pages(uris, names, folders(snapshot), renames.read(snapshot.manifest.sources))


def path_of(uri: str) -> str:
    """The path of a document in its folder, from its uri: label of the folder, folders, name. Texts
    without a file share one folder."""
    return _plain(f"text:/{uri.removeprefix(INLINE_TEXT)}" if uri.startswith(INLINE_TEXT) else uri)


def _plain(path: str) -> str:
    return unicodedata.normalize("NFC", path.strip()).replace("\\", "/")


def _on_disk(path: str) -> str:
    """A path of this machine with `/` between its parts: a backslash may be a part of a name."""
    return unicodedata.normalize("NFC", path.strip()).replace(os.sep, "/")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def stem_of(path: str) -> str:
    """The name of a file without its suffix of Markdown."""
    return _name(_spellings(path)[-1])


def _spellings(path: str) -> list[str]:
    """A path; without its suffix where that is one of Markdown; of a document inside a file that of the file."""
    name = _name(path)
    suffix, (file, inside) = suffix_of(name), file_and_key(name)
    found = [path]
    if suffix in MARKDOWN:
        found.append(path[: -len(suffix) - 1])
    elif inside and suffix_of(file):
        found.append(path[: -len(inside) - 1])
    return found


def folders(snapshot: Snapshot) -> dict[str, str]:
    """The folder of each source on this machine by its label, the innermost first."""
    sources = snapshot.manifest.sources
    paths = {label: _on_disk(str(source.get("path", ""))) for label, source in sources.items()}
    found = {label: path.rstrip("/") for label, path in paths.items() if path}
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def uris_of(folders: Mapping[str, str], path: str) -> list[str]:
    """The uris that an absolute path has below `folders` (by label), that of the innermost folder first."""
    whole = posixpath.normpath(_on_disk(path))
    below = ((label, root) for label, root in folders.items() if whole.startswith(f"{root}/"))
    return [f"{label}{whole[len(root) :]}" for label, root in below]
