"""Which document a link leads to, as Obsidian resolves links: by its path from the top of the folder, by the end of its
path, by its name alone, by an alias of its front matter; in any case, with or without the suffix of Markdown.

A generation's documents decide, so a page that appears, goes or gets another name changes the links of documents that
did not change. Nothing of it is stored."""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Mapping
from typing import Any

from graphrag_mcp.query.times import documents
from graphrag_mcp.sources.links import IMAGE, INLINE, INLINE_TEXT, MARKDOWN, aliases
from graphrag_mcp.sources.walk import suffix_of
from graphrag_mcp.store.tables import Snapshot, once

RELATIVE = (INLINE, IMAGE)  # kinds of links whose paths begin at the folder of their document


class Pages:
    """The documents of a generation by number (in the order of their uris), under all names that a link may use."""

    def __init__(self, snapshot: Snapshot) -> None:
        facts = sorted(documents(snapshot).items(), key=lambda pair: str(pair[1]["uri"]))
        self.ids: list[str] = [id for id, _ in facts]
        self.number = {id: number for number, id in enumerate(self.ids)}
        self.paths = [path_of(fact["uri"]) for _, fact in facts]
        self.folders = _folders(snapshot.manifest.sources)
        self.by_path: dict[str, list[int]] = {}
        self.by_name: dict[str, list[int]] = {}
        self.by_alias: dict[str, list[int]] = {}
        for number, (_, fact) in enumerate(facts):
            for path in _spellings(self.paths[number]):
                self.by_path.setdefault(path.casefold(), []).append(number)
                self.by_name.setdefault(_name(path).casefold(), []).append(number)
            for alias in aliases(fact["metadata"]):
                self.by_alias.setdefault(_plain(alias).casefold(), []).append(number)
        self.known: dict[tuple[str, str, bool], int] = {}

    def target(self, link: Mapping[str, Any], source: int) -> int:
        """The number of the document that a link (`kind`, `target`, `part`) of document `source` leads to; -1 for
        none. A row of a table is meant by its file and, as the part, its key."""
        path, relative = path_of(link["target"]), link["kind"] in RELATIVE
        folder = posixpath.dirname(self.paths[source])
        row = (
            posixpath.normpath(posixpath.join(folder, f"{path}#{link['part']}"))
            if link["part"]
            else ""
        )
        if row.casefold() in self.by_path:
            return self._at(row, path, folder)
        asked = (folder, path, relative)
        if asked not in self.known:
            self.known[asked] = self.find(path, asked[0], relative)
        return self.known[asked]

    def find(self, path: str, folder: str = "", relative: bool = False) -> int:
        """The document at `path`, seen from `folder` (a path of documents); `relative`: where there is one below
        `folder` with just this path, it is that. -1 for none."""
        dotted = path.startswith(("./", "../"))
        if dotted or relative:
            found = self._at(posixpath.normpath(posixpath.join(folder, path)), path, folder)
            if found < 0 and folder:
                found = self._at(self._elsewhere(folder, path), path, folder)
            if found >= 0 or dotted:
                return found
        if path.startswith(INLINE_TEXT):
            return self._at(path, path, folder)
        bare = path.lstrip("/")
        ended = self.by_name.get(_name(bare).casefold(), ())
        found = [number for number in ended if self._ends(number, bare, whole=path != bare)]
        if not found and path != bare:
            return self._at(self._elsewhere(folder, path), path, folder)
        return self._best(found or self.by_alias.get(path.casefold(), ()), bare, folder)

    def _at(self, whole: str, path: str, folder: str) -> int:
        return self._best(self.by_path.get(whole.casefold(), ()), path, folder)

    def _ends(self, number: int, path: str, whole: bool) -> bool:
        """Is this the end of the document's path, or with `whole` all of it below the top folder?"""
        for spelled in _spellings(self.paths[number]):
            below = spelled.partition("/")[2].casefold()
            if below == path.casefold() or (not whole and below.endswith(f"/{path.casefold()}")):
                return True
        return False

    def _best(self, numbers: Any, path: str, folder: str) -> int:
        """Of several documents: the one below the same top folder, spelled as the link, with no folder but those of
        the link, in the folder of the link or below it, with the shortest path."""
        top = folder.partition("/")[0]

        def worse(number: int) -> tuple[Any, ...]:
            spelled = self.paths[number]
            below = spelled.partition("/")[2]
            return (
                spelled.partition("/")[0] != top,
                not any(one.endswith(_name(path)) for one in _spellings(spelled)),
                path.casefold() not in (one.casefold() for one in _spellings(below)),
                not spelled.startswith(f"{folder}/"),
                len(spelled),
                spelled,
            )

        return min(numbers, key=worse, default=-1)

    def _elsewhere(self, folder: str, path: str) -> str:
        """The path, among those of documents, of a file that a relative or absolute path names on this machine; ""
        where it lies in no folder that was indexed."""
        top, _, below = folder.partition("/")
        whole = posixpath.normpath(posixpath.join(self.folders.get(top, "/"), below, path))
        for label, root in self.folders.items():
            if root and whole.startswith(f"{root}/"):
                return f"{label}{whole[len(root) :]}"
        return ""


@once
def pages(snapshot: Snapshot) -> Pages:
    """The pages of a generation, read once."""
    return Pages(snapshot)


def path_of(uri: str) -> str:
    """The uri of a document as a path: label of its folder, folders, name. Texts without a file have one folder."""
    return _plain(f"text:/{uri.removeprefix(INLINE_TEXT)}" if uri.startswith(INLINE_TEXT) else uri)


def _plain(path: str) -> str:
    return unicodedata.normalize("NFC", path.strip()).replace("\\", "/")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def stem_of(path: str) -> str:
    """The name of a file without its suffix of Markdown."""
    return _name(_spellings(path)[-1])


def _spellings(path: str) -> list[str]:
    """A path; without its suffix where that is one of Markdown; of a document inside a file that of the file."""
    name = _name(path)
    suffix, (file, _, inside) = suffix_of(name), name.partition("#")
    found = [path]
    if suffix in MARKDOWN:
        found.append(path[: -len(suffix) - 1])
    elif inside and suffix_of(file):
        found.append(path[: -len(inside) - 1])
    return found


def _folders(sources: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The folder of each source on this machine by its label, the innermost first."""
    found = {label: _plain(str(one.get("path", ""))).rstrip("/") for label, one in sources.items()}
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))
