"""Which document a link leads to, as Obsidian resolves links: by its path from the top of the folder, by the end of its
path, by its name alone, by an alias of its front matter; in any case, with or without the suffix of Markdown.

A generation's documents decide, so a page that appears, goes or gets another name changes the links of documents that
did not change. Nothing of it is stored."""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from graphrag_mcp.errors import NotFound
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.times import documents
from graphrag_mcp.sources import renames
from graphrag_mcp.sources.links import HREF, IMAGE, INLINE, INLINE_TEXT, MARKDOWN, aliases
from graphrag_mcp.sources.walk import suffix_of
from graphrag_mcp.store.tables import Snapshot, once
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import file_and_key


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
        spelled = [(n, text) for n, path in enumerate(self.paths) for text in _spellings(path)]
        self.by_path = lists_of((text.casefold(), n) for n, text in spelled)
        self.by_name = lists_of((_name(text).casefold(), n) for n, text in spelled)
        self.by_alias = lists_of(
            (_plain(alias).casefold(), n) for n, id in enumerate(self.ids) for alias in names.get(id, ())
        )
        self.ended: dict[str, dict[str, int]] = {}  # what `_ending` has found
        by_uri = {uri: self.number[id] for id, uri in uris.items()}
        self.now = {old: by_uri[new] for old, new in renamed.items() if new in by_uri}

    @cached_property
    def former(self) -> Pages | None:
        """The pages of names that are gone."""
        return Pages({uri: uri for uri in self.now}, {}, self.folders) if self.now else None

    def target(self, kind: str, written: str, part: str, source: int) -> int:
        """The number of the document that a link in document `source` leads to, under its name or the one that it had
        before; -1 for none."""
        folder = posixpath.dirname(self.paths[source])
        return self._now_or_before(lambda pages: pages._target(kind, written, part, folder))

    def find(self, name: str) -> int:
        """The number of the document that a link with this name leads to; -1 for none."""
        return self._now_or_before(lambda pages: pages._seen_from("", name, False))

    def _now_or_before(self, look: Callable[[Pages], int]) -> int:
        found = look(self)
        if found < 0 and self.former is not None and (before := look(self.former)) >= 0:
            return self.now[self.former.ids[before]]
        return found

    def _target(self, kind: str, written: str, part: str, folder: str) -> int:
        path, top = path_of(written), folder.partition("/")[0]
        if kind == HREF:  # as a browser: this file or none
            return self._at(posixpath.normpath(f"{top if path[:1] == '/' else folder}/{path}"))
        # A row of a table is meant by its file and, as the part, its key.
        row = self._at(posixpath.normpath(posixpath.join(folder, f"{path}#{part}"))) if part else -1
        return row if row >= 0 else self._seen_from(folder, path, kind in (INLINE, IMAGE))

    def _seen_from(self, folder: str, path: str, relative: bool) -> int:
        """The document at `path`, seen from `folder` (a path of documents). If `relative` and there is a document
        below `folder` with exactly this path, it is that document."""
        if path.startswith(INLINE_TEXT):
            return self._at(path)
        dotted, rooted = path.startswith(("./", "../")), path.startswith("/")
        if dotted or rooted or relative:
            top = folder.partition("/")[0]
            found = self._at(posixpath.normpath(f"{top}{path}" if rooted else f"{folder}/{path}"))
            if found < 0 and folder:
                found = self._at(self._on_disk(folder, path))
            if found >= 0 or dotted or rooted:
                return found
        return self._nearest(path, folder)

    def _at(self, path: str) -> int:
        """The document with this path, in any case; -1 for none."""
        numbers = self.by_path.get(path.removeprefix("/").casefold(), ())
        return min(numbers, key=lambda number: self._order(number, path), default=-1)

    def _nearest(self, path: str, folder: str) -> int:
        """Of the documents whose paths end so, those below the same top folder first: the best one, or one as good
        in the folder of the link or below it."""
        best = self._ending(path)
        first = best.get(folder.partition("/")[0], best.get("", -1))
        near = best.get(folder, first)
        as_good = near >= 0 and self._order(near, path)[:2] == self._order(first, path)[:2]
        return near if as_good else first

    def named(self, path: str) -> set[int]:
        """The documents with this path at the end of theirs, else those with this alias."""
        end = f"/{path.casefold()}"
        found = {
            number
            for number in self.by_name.get(_name(end), ())
            for spelling in _spellings(self.paths[number])
            if f"/{spelling.casefold()}".endswith(end)
        }
        return found or set(self.by_alias.get(path.casefold(), ()))

    def _ending(self, path: str) -> dict[str, int]:
        """Of the documents that are `named` so the best one in each folder or below it; "" for all. A name such as
        README is that of thousands, with thousands of links."""
        if path not in self.ended:
            best: dict[str, int] = {}
            for number in sorted(self.named(path), key=lambda number: self._order(number, path)):
                parts = self.paths[number].split("/")
                for depth in range(len(parts)):
                    best.setdefault("/".join(parts[:depth]), number)
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

    def _on_disk(self, folder: str, path: str) -> str:
        """The path, among those of documents, of a file that a relative or absolute path names on this machine; ""
        where it lies in no folder that was indexed."""
        top, _, below = folder.partition("/")
        whole = posixpath.join(self.folders.get(top) or "/", below, path)
        return next(iter(uris_of(self.folders, whole)), "")


@once
def pages(snapshot: Snapshot) -> Pages:
    """The pages of a generation, read once."""
    facts = documents(snapshot)
    uris = {id: str(fact.uri) for id, fact in facts.items()}
    names = {id: aliases(fact.metadata) for id, fact in facts.items()}
    return Pages(uris, names, folders(snapshot), renames.read(snapshot.manifest.sources))


def documents_of(snapshot: Snapshot, asked: str) -> list[str]:
    """The content ids of the documents that an id, uri, path, name, alias or title means: first the one that a link
    with this name leads to, then the others that have it as their name or title. NotFound."""
    folded, facts = asked.casefold(), documents(snapshot)
    for id, fact in facts.items():
        if folded in (fact.alias, id, fact.uri.casefold()):
            return [id]
    known, name = pages(snapshot), asked.strip("[]")
    titled = {known.number[id] for id, fact in facts.items() if folded == fact.title.casefold()}
    first = known.find(name)
    if first < 0 and not titled:
        what = f"there is no document {one_line(asked, 80)!r}"
        raise NotFound(what, "list_documents gives the ids of all")
    every = sorted(titled | known.named(path_of(name)) | ({first} - {-1}))
    return [known.ids[number] for number in sorted(every, key=lambda number: number != first)]


def path_of(uri: str) -> str:
    """The path of a document in its folder, from its uri: label of the folder, folders, name. Texts
    without a file share one folder."""
    return _plain(f"text:/{uri.removeprefix(INLINE_TEXT)}" if uri.startswith(INLINE_TEXT) else uri)


def _plain(path: str) -> str:
    return unicodedata.normalize("NFC", path.strip()).replace("\\", "/")


def _slashed(path: str) -> str:
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
    if suffix in MARKDOWN:
        return [path, path[: -len(suffix) - 1]]
    return [path, path[: -len(inside) - 1]] if inside and suffix_of(file) else [path]


def folders(snapshot: Snapshot) -> dict[str, str]:
    """The folder of each source on this machine by its label, the innermost first."""
    sources = snapshot.manifest.sources
    paths = {label: _slashed(str(source.get("path", ""))) for label, source in sources.items()}
    found = {label: path.rstrip("/") for label, path in paths.items() if path}
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def uris_of(folders: Mapping[str, str], path: str) -> list[str]:
    """The uris that an absolute path has below `folders` (by label), that of the innermost folder first."""
    whole = posixpath.normpath(_slashed(path))
    below = ((label, root) for label, root in folders.items() if whole.startswith(f"{root}/"))
    return [f"{label}{whole[len(root) :]}" for label, root in below]
