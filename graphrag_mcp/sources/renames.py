"""Files that have another name: what links to the old one leads to the new one.

Of every file that was gone after a run and that links name, the index remembers what became of it: its new name, or
that it was deleted. A file that came in the same run has its place if it holds most of its lines, at least half of
those of both, and of one file alone; a file that comes later, if its bytes are the same. Nothing is remembered of a
file that is there again. It stands in the sources of the manifest, for a folder does not tell it: a new index knows no
old names."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from graphrag_mcp.sources.links import MARKDOWN
from graphrag_mcp.store import stored
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import suffix_of

# Of a source: JSON of {uri of a file that is gone: its uri now}; the SHA-256 of a file that was deleted stands for one.
KEY = "renamed"
ENOUGH = 0.5  # of the lines
FEW = 10  # files that hold a line, at most, for it to tell one from another: 2,000 of one template take 0.1 s


def read(sources: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The uris of files that are gone, each with that under which the file is now; "" where it was deleted."""
    found: dict[str, str] = {}
    for source in sources.values():
        with suppress(ValueError):
            found |= stored.parsed(source.get(KEY, "{}"), dict[str, str])
    return found


def linked(uris: Iterable[str], targets: Iterable[str]) -> list[str]:
    """Of these files those whose name is that of a link's target."""
    names = {_name(target) for target in targets}
    return [uri for uri in uris if _name(uri) in names]


def _name(path: str) -> str:
    """The name of a file as links have it: in one case, without the suffix of Markdown."""
    name = unicodedata.normalize("NFC", path.replace("\\", "/")).casefold().rpartition("/")[2]
    suffix = suffix_of(name)
    return name.removesuffix(f".{suffix}") if suffix in MARKDOWN else name


class Renames:
    """The files that are gone in a run, and those that come."""

    def __init__(self, known: Mapping[str, str], texts: Mapping[str, str], hashes: Mapping[str, str]) -> None:
        """`known`: as `read` gives it, before the run; `texts` and `hashes` of the files that are gone, by uri."""
        self.known, self.hashes = known, hashes
        self.gone = {uri: _lines(text) for uri, text in texts.items()}
        self.gone_lines = frozenset[str]().union(*self.gone.values())
        # Of each file: which of these lines it holds, how many lines it has, and its SHA-256.
        self.came: dict[str, tuple[frozenset[str], int, str]] = {}

    def add(self, uri: str, text: str, sha: str) -> None:
        """A file that was not there before. One without text is no evidence."""
        if (self.gone or self.known) and text.strip():
            lines = _lines(text)
            self.came[uri] = lines & self.gone_lines, len(lines), sha

    def record(self, sources: Mapping[str, dict[str, str]], uris: Collection[str]) -> None:
        """Write into the sources what became of the files; `uris`: those of documents by now."""
        now = {**self.hashes, **self._pairs()}
        taken = {*now.values()}
        later = {sha: uri for uri, (*_, sha) in self.came.items() if sha and uri not in taken}
        known = {old: now.get(new, later.get(new, new)) for old, new in self.known.items()} | now
        for source in sources.values():
            source.pop(KEY, None)
        kept: dict[str, dict[str, str]] = {}
        for old, new in sorted(known.items()):
            label, _, rest = old.partition("/")
            if label not in sources:  # its folder has moved
                label = new.partition("/")[0]
            if label in sources and f"{label}/{rest}" not in uris:
                is_known = new in uris or "/" not in new
                kept.setdefault(label, {})[f"{label}/{rest}"] = new if is_known else ""
        for label, names in kept.items():
            sources[label][KEY] = json.dumps(names, ensure_ascii=False)

    def _pairs(self) -> dict[str, str]:
        """The files that are gone, each with the one that came in its place."""
        pairs: dict[str, str] = {}
        taken = set[str]()
        for name in (_name, lambda _: ""):  # of those with the same lines first one of the same name
            same = lists_of(
                ((lines, name(uri)), uri)
                for uri, (lines, total, _) in sorted(self.came.items(), reverse=True)
                if len(lines) == total and uri not in taken
            )
            for before, lines in sorted(self.gone.items()):
                if before not in pairs and (uris := same.get((lines, name(before)))):
                    pairs[before] = uris.pop()
                    taken.add(pairs[before])
        holding = lists_of((line, uri) for uri, lines in self.gone.items() for line in lines)
        shares: list[tuple[float, bool, str, str]] = []
        for after, (lines, total, _) in self.came.items():
            holders = (holding.get(line, ()) for line in lines)
            for before in {uri for uris in holders if len(uris) <= FEW for uri in uris}:
                share = len(lines & self.gone[before]) / max(total, len(self.gone[before]))
                if share >= ENOUGH:
                    shares.append((-share, _name(before) != _name(after), before, after))
        for *_, before, after in sorted(shares):
            if before not in pairs and after not in taken:
                pairs[before] = after
                taken.add(after)
        return pairs


def _lines(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split("\n"))))
