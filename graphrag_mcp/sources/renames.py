"""Files that have another name: what links to the old one leads to the new one.

Of every file that was gone after a run and that links name, the index remembers what became of it: its new name, or
that it was deleted. It is the new name of the file that came in the same run and holds most of its lines, at least half
of those of both. Nothing is remembered of a file that is there again. It stands in the sources of the manifest, for a
folder does not tell it: an index that is made anew knows no old names."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from graphrag_mcp.sources.links import MARKDOWN
from graphrag_mcp.store import stored
from graphrag_mcp.text.citing import file_and_key, suffix_of

KEY = "renamed"  # of a source: JSON of {uri of a file that is gone: its uri now, "" for none}
ENOUGH = 0.5  # of the lines


def read(sources: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The uris of files that are gone, each with that under which the file is now; "" where it was deleted."""
    found: dict[str, str] = {}
    for source in sources.values():
        with suppress(ValueError):
            found |= stored.parsed(source.get(KEY, "{}"), dict[str, str])
    return found


def linked(gone: Iterable[str], targets: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Of the files that are gone those whose name is that of a link's target, or that were renamed before (`known`)."""
    names = {_name(target) for target in targets}
    files = (uri for uri in gone if not file_and_key(uri)[1])
    before = {*known.values()}
    return [uri for uri in files if _name(uri) in names or uri in before]


def _name(path: str) -> str:
    """The name of a file as links have it: in one case, without the suffix of Markdown."""
    name = unicodedata.normalize("NFC", path.replace("\\", "/")).casefold().rpartition("/")[2]
    suffix = suffix_of(name)
    return name.removesuffix(f".{suffix}") if suffix in MARKDOWN else name


class Renames:
    """The files that are gone in a run, by uri with their texts, and those that come."""

    def __init__(self, gone: Mapping[str, str]) -> None:
        self.lines = {uri: _lines(text) for uri, text in gone.items()}
        self.same: dict[frozenset[str], list[str]] = {}
        self.holding: dict[str, list[str]] = {}  # the files with a line
        for uri, lines in self.lines.items():
            self.same.setdefault(lines, []).append(uri)
            for line in lines:
                self.holding.setdefault(line, []).append(uri)
        self.best: dict[
            str, tuple[float, bool, str]
        ] = {}  # by uri: share of lines, name is the same, new uri

    def came(self, uri: str, text: str) -> None:
        """A file that was not there before. One without text is no evidence."""
        lines = _lines(text) if self.lines else frozenset()
        if not lines:
            return
        if same := self.same.get(lines):
            shares = dict.fromkeys(same, 1.0)
        else:
            shared = Counter(old for line in lines for old in self.holding.get(line, ()))
            shares = {
                old: count / max(len(lines), len(self.lines[old])) for old, count in shared.items()
            }
        for old, share in shares.items():
            found = (share, _name(old) == _name(uri), uri)
            if share >= ENOUGH and found > self.best.get(old, (0.0, False, "")):
                self.best[old] = found

    def record(self, sources: Mapping[str, dict[str, str]], there: Collection[str]) -> None:
        """Write into the sources what became of the files; `there`: the uris of documents after the run."""
        now = {old: self.best[old][2] if old in self.best else "" for old in self.lines}
        known = {old: now.get(new, new) for old, new in read(sources).items()} | now
        for label, source in sources.items():
            mine = {
                old: new if new in there else ""
                for old, new in sorted(known.items())
                if old.startswith(f"{label}/") and old not in there
            }
            source.pop(KEY, None)
            if mine:
                source[KEY] = json.dumps(mine, ensure_ascii=False)


def _lines(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split("\n"))))
