"""Which document a link leads to, as Obsidian resolves links: by its path from the top of the folder, by the end of its
path, by its name alone, by an alias of its front matter; in any case, with or without the suffix of Markdown.

A generation's documents decide, so a page that appears, goes or gets another name changes the links of documents that
did not change. Nothing of it is stored."""

from __future__ import annotations

import os
import posixpath
import unicodedata
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
        self.ids = sorted(uris, key=lambda id: path_of(uris[id]))
        self.number = {id: number for number, id in enumerate(self.ids)}
        self.paths = [path_of(uris[id]) for id in self.ids]
        self.folders = folders
        self.by_path: dict[str, list[int]] = {}
        self.by_name: dict[str, list[int]] = {}
        self.by_alias: dict[str, list[int]] = {}
        for number, id in enumerate(self.ids):
            for path in _spellings(self.paths[number]):
                self.by_path.setdefault(path.casefold(), []).append(number)
                self.by_name.setdefault(_name(path).casefold(), []).append(number)
            for alias in names.get(id, ()):
                self.by_alias.setdefault(_plain(alias).casefold(), []).append(number)
        self.ended: dict[str, dict[str, int]] = {}  # what `_ending` has found
        by_uri = {uri: self.number[id] for id, uri in uris.items()}
        self.now = {old: by_uri[new] for old, new in renamed.items() if new in by_uri}
        self.former = Pages({uri: uri for uri in self.now}, {}, folders) if self.now else None

    def target(self, link: Mapping[str, Any], source: int) -> int:
        """The number of the document that a link (`kind`, `target`, `part`) of document `source` leads to, under its
        name or the one that it had before; -1 for none."""
        folder = posixpath.dirname(self.paths[source])
        found = self._target(link, folder)
        if found < 0 and self.former is not None:
            before = self.former._target(link, folder)
            return self.now[self.former.ids[before]] if before >= 0 else -1
        return found

    def _target(self, link: Mapping[str, Any], folder: str) -> int:
        path = path_of(link["target"])
        if link["kind"] == HREF:  # as a browser: this file or none
            top = folder.partition("/")[0] if path.startswith("/") else folder
            return self._at(posixpath.normpath(f"{top}/{path}"))
        # A row of a table is meant by its file and, as the part, its key.
        row = posixpath.normpath(posixpath.join(folder, f"{path}#{link['part']}"))
        if link["part"] and row.casefold() in self.by_path:
            return self._at(row)
        return self.find(path, folder, link["kind"] in RELATIVE)

    def find_renamed(self, path: str) -> int:
        """As `find`, for the name that the document had before; -1 for none."""
        found = self.former.find(path) if self.former else -1
        return self.now[self.former.ids[found]] if self.former and found >= 0 else -1

    def find(self, path: str, folder: str = "", relative: bool = False) -> int:
        """The number of the document at `path`, seen from `folder` (a path of documents); -1 if
        there is none. If `relative` and there is a document below `folder` with exactly this path, it
        is that document."""
        dotted = path.startswith(("./", "../"))
        if dotted or relative:
            found = self._at(posixpath.normpath(posixpath.join(folder, path)))
            if found < 0 and folder:
                found = self._at(self._elsewhere(folder, path))
            if found >= 0 or dotted:
                return found
        if path.startswith(INLINE_TEXT):
            return self._at(path)
        if path.startswith("/"):
            found = self._at(f"{folder.partition('/')[0]}{path}")
            return found if found >= 0 else self._at(self._elsewhere(folder, path))
        return self._nearest(path, folder)

    def _at(self, path: str) -> int:
        """The document with this path, in any case; -1 for none."""
        numbers = self.by_path.get(path.casefold(), ())
        return min(numbers, key=lambda number: self._order(number, path), default=-1)

    def _nearest(self, path: str, folder: str) -> int:
        """Of the documents whose paths end so, those below the same top folder first: the best one, or one as good
        in the folder of the link or below it."""
        best = self._ending(path)
        first = best.get(folder.partition("/")[0], best.get("", -1))
        near = best.get(folder, first)
        return (
            near
            if near >= 0 and self._order(near, path)[:2] == self._order(first, path)[:2]
            else first
        )

    def _ending(self, path: str) -> dict[str, int]:
        """Of the documents with this path at the end of theirs, else those with this alias, the best one in each
        folder or below it; "" for all."""
        if path not in self.ended:
            end = f"/{path.casefold()}"
            found = {
                number
                for number in self.by_name.get(_name(end), ())
                for spelling in _spellings(self.paths[number])
                if f"/{spelling.casefold()}".endswith(end)
            }
            found = found or set(self.by_alias.get(path.casefold(), ()))
            best: dict[str, int] = {}
            for number in sorted(found, key=lambda number: self._order(number, path)):
                best.setdefault("", number)
                at = self.paths[number].rfind("/")
                while at > 0 and self.paths[number][:at] not in best:
                    best[self.paths[number][:at]] = number
                    at = self.paths[number].rfind("/", 0, at)
            self.ended[path] = best
        return self.ended[path]

    def _order(self, number: int, path: str) -> tuple[bool, bool, int, str]:
        """How well a document is meant by a path, the best first: one that is spelled so, one with no other folder,
        the one with the shortest path."""
        spelled = self.paths[number]
        written = any(f"/{text}".endswith(f"/{path.lstrip('/')}") for text in _spellings(spelled))
        below = spelled.partition("/")[2]
        whole = path.casefold() in (text.casefold() for text in _spellings(below))
        return not written, not whole, len(spelled), spelled

    def _elsewhere(self, folder: str, path: str) -> str:
        """The path, among those of documents, of a file that a relative or absolute path names on this machine; ""
        where it lies in no folder that was indexed."""
        top, _, below = folder.partition("/")
        whole = posixpath.join(self.folders.get(top) or "/", below, path)
        return next(iter(uris_of(self.folders, whole)), "")


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
