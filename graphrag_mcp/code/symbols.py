"""Symbols of source code: what a file defines, imports, extends and calls, with exact spans.

The data types that readers of languages fill (code/parse.py), and what is asked of one file. Knows
one file at a time and no grammar."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

from graphrag_mcp.plugins import Part

NAME = "code"  # of this plug-in
_LISTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
WORDS = {name: frozenset(words.split()) for name, words in _LISTS.items()}
SIGNATURE = 400  # characters kept of a signature, and of a docstring's first paragraph
# Types of entities that are symbols.
TYPES = ("module", "class", "interface", "type", "function", "method", "constant")
HEAD = 300  # characters of a definition or statement that are quoted

# Files that stand for their folder, and languages in which all files of a folder do.
PACKAGE_FILES = {
    "python": ("__init__",),
    "rust": ("mod", "lib", "main"),
    **dict.fromkeys(("javascript", "typescript", "tsx"), ("index",)),
}
BY_FOLDER = frozenset(("go", "java", "kotlin", "scala", "c_sharp", "swift", "php"))
MODULE = ":"  # before the name of a module as a key: a definition may have the same name
# A line of a comment, a decorator or an attribute that belongs to the definition under it.
_ABOVE = re.compile(r"[ \t]*(?:#|//|/\*|\*|--|@)[^\n]*\n\Z")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition. `name` is qualified (`requests.sessions.Session.send`); spans are characters."""

    name: str
    kind: str
    start: int
    end: int
    signature: str = ""
    doc: str = ""  # the first paragraph of its documentation
    parent: str = ""  # qualified name of what contains it
    returns: str = ""  # the type of what a function gives, as `Reference.type`

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name: `kind` is calls, inherits or documents (a name that prose writes as code),
    `inside` the qualified name of what uses it.

    `receiver` is what stands before the last dot ("" for a bare name, "?" for an expression), `type`
    the receiver's type as far as the file states it: a dotted name, `name()` for what a call gives.
    What is in a collection has no type.
    Of a bare name: "?" a variable, "=" an import of its block, "<" in a comprehension of a class; "!"
    in the arguments of a macro, also of a path.
    """

    kind: str
    name: str
    start: int
    end: int
    inside: str
    receiver: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """`local` is bound to `target`, a name in a module or with MODULE a module; "*" for all its names.
    `module`: the inline module of Rust in which it is, each of which binds "self" to itself."""

    local: str
    target: str
    start: int
    end: int
    module: str = ""


@dataclass
class SourceFile:
    """Symbols begin with the module; all lists are in the order of the text."""

    by: ClassVar[str] = NAME

    uri: str
    language: str
    module: str
    symbols: list[Symbol] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    prose: list[tuple[int, int]] = field(default_factory=list)  # comments and docstrings
    # What a variable of the module stands for: `Crate` under another name, `Crate()` an instance.
    variables: dict[str, str] = field(default_factory=dict)
    broken: bool = False  # Python that only a grammar can read

    @cached_property
    def by_name(self) -> dict[str, Symbol]:
        """Of several definitions of a name the described one, or the longest, or the first; no setter."""

        def rank(symbol: Symbol) -> tuple[bool, bool, int]:
            return not symbol.signature.startswith("@"), bool(symbol.doc), symbol.end - symbol.start

        return {symbol.name: symbol for symbol in sorted(self.symbols[::-1], key=rank)}

    @cached_property
    def starts(self) -> list[int]:
        return [symbol.start for symbol in self.symbols]

    def key(self, name: str) -> str:
        """The key of a symbol: its name, of the module with a mark."""
        return MODULE + name if name == self.module else name

    def begin_in(self, start: int, end: int) -> list[Symbol]:
        """The symbols that begin between two places."""
        return self.symbols[bisect_left(self.starts, start) : bisect_left(self.starts, end)]

    def around(self, at: int) -> list[Symbol]:
        """The symbols in which a place lies, the innermost first."""
        symbol = self.symbols[bisect_right(self.starts, at) - 1] if self.symbols else None
        found = []
        while symbol is not None:
            found += [symbol] if symbol.start <= at < symbol.end else []
            symbol = self.by_name.get(symbol.parent)
        return found

    def breaks(self, text: str) -> dict[int, int]:
        """Offset -> depth (1 for the outermost) of the definitions, comments above them included."""
        found: dict[int, int] = {}
        base = self.module.count(".")
        for symbol in self.symbols:
            if symbol.kind not in ("module", "constant"):
                start = _with_comment(text, symbol.start)
                found.setdefault(start, max(symbol.name.count(".") - base, 1))
        return found

    def names(self, start: int, end: int) -> list[str]:
        """What a passage is found by beside its text: its module, and the definitions that it lies in
        or that begin in it (`Session.send`)."""
        inside = [*self.around(start)[::-1], *self.begin_in(start + 1, end)]
        titles = [symbol.name for symbol in inside if symbol.kind not in ("module", "constant")]
        return [called(self.module), *(name[len(self.module) + 1 :] for name in titles)]

    def parts(self) -> list[Part]:
        """The definitions, without the module."""
        top = self.module.count(".") + 1
        return [
            Part(
                symbol.start,
                symbol.end,
                max(symbol.name.count(".") - top, 0),
                symbol.signature or f"{symbol.kind} {symbol.short}",
                symbol.doc,
            )
            for symbol in self.symbols[1:]
        ]


class Offsets:
    """Characters of (line from 0, column in UTF-8 bytes)."""

    def __init__(self, text: str, line_end: str = r"\n") -> None:
        self.text, self.ascii = text, text.isascii()
        self.starts = [0, *(match.end() for match in re.finditer(line_end, text)), len(text)]

    def at(self, line: int, column: int) -> int:
        start = self.starts[min(line, len(self.starts) - 1)]
        if not self.ascii:
            before = self.text[start : start + column].encode("utf-8", "replace")[:column]
            column = len(before.decode("utf-8", "ignore"))
        return start + column


def _with_comment(text: str, start: int) -> int:
    """The first character of the comment lines directly above a definition."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return start
    above = line
    while above:
        before = text.rfind("\n", 0, above - 1) + 1
        if not _ABOVE.match(text, before, above):
            break
        above = before
    if above == line:
        return start
    return above + len(text[above:start]) - len(text[above:start].lstrip(" \t"))


def module_name(uri: str, language: str = "python") -> str:
    """The dotted path of a file with the label of its source; a package's file stands for it. In
    languages whose files share what their folder defines it is the folder."""
    folder, _, file = uri.rpartition("/")
    stem = file.rpartition(".")[0] or file
    parts = [part for part in folder.split("/") if part]
    whole = language in BY_FOLDER or stem in PACKAGE_FILES.get(language, ())
    parts += [] if whole and parts else [stem]
    return ".".join(part.replace(".", "_").replace(" ", "_") for part in parts)


def called(name: str) -> str:
    """A qualified name without the label of the source."""
    label, _, rest = name.removeprefix(MODULE).partition(".")
    return rest or label


class UnitSpan(NamedTuple):
    """Where a text unit stands in its file: `core` is the first character that no unit before it
    has."""

    id: str
    core: int
    start: int
    end: int


def dumped(file: SourceFile, units: Sequence[UnitSpan]) -> str:
    """The file as JSON with its text units."""
    kinds = (file.symbols, file.references, file.imports)
    rows = ([[getattr(record, name) for name in record.__slots__] for record in records] for records in kinds)
    body = [file.uri, file.language, file.module, *rows, units, file.variables, file.broken]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def loaded(text: str) -> tuple[SourceFile, list[UnitSpan]]:
    """A parsed file and the spans of its units, from what `dumped` wrote. ValueError for other
    text."""
    uri, language, module, symbols, references, imports, units, *later = json.loads(text)
    file = SourceFile(uri, language, module)
    # Rows of older releases have fewer fields.
    file.variables = later[0] if later else {}
    file.broken = bool(later[1:] and later[1])
    file.symbols = [Symbol(*values) for values in symbols]
    file.references = [Reference(*values) for values in references]
    file.imports = [Import(*values) for values in imports]
    return file, [UnitSpan(*unit) for unit in units]


def placed(units: Sequence[UnitSpan], starts: Sequence[int], start: int, end: int) -> tuple[str, int, int]:
    """The text unit whose own part (`starts`) holds the place, and the place in it."""
    id, _, first, last = units[max(bisect_right(starts, start) - 1, 0)]
    start = min(max(start, first), last - 1)
    return id, start - first, min(max(end, start + 1), last, start + HEAD) - first
