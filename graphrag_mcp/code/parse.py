"""Source code to symbols: which reader a file needs, and which files are not parsed.

`parse(uri, text)` gives a `SourceFile`, or None for a file in no known language. Python is read by
the interpreter's own parser; other languages, and Python of another version, by tree-sitter
grammars (extra `code`). Broken syntax, generated and minified files never raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from graphrag_mcp.code import grammars, python
from graphrag_mcp.code.resolve import COMMON
from graphrag_mcp.code.symbols import Reference, SourceFile, Symbol, module_name

PROSE = "prose"  # the language of a document whose names may mean symbols
PROSE_SUFFIXES = frozenset("md markdown mdx rst adoc asciidoc txt".split())
_SPOKEN = re.compile(
    r"`{1,2}~?(?P<quoted>[A-Za-z_][\w.]{2,100})(?:\([^`\n]{0,60}\))?`"
    r"|(?<![\w./`:-])(?P<called>[A-Za-z_][\w.]{2,100})\(\)"
    r"|(?<![\w./`@:-])(?P<dotted>[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{1,60}){1,6})(?![\w/@(-]|\.\w)"
)

LARGEST = 2_000_000  # characters of a file that is parsed; larger ones are generated
LONGEST_LINE = 20_000  # characters of a line; longer ones are minified

SUFFIXES: Mapping[str, str] = {
    suffix: language
    for language, suffixes in {
        "python": "py pyi",
        "javascript": "js mjs cjs jsx",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "java": "java",
        "go": "go",
        "rust": "rs",
        "c": "c h",
        "cpp": "cc cpp cxx hh hpp hxx",
        "c_sharp": "cs",
        "ruby": "rb",
        "php": "php",
        "kotlin": "kt kts",
        "scala": "scala",
        "swift": "swift",
    }.items()
    for suffix in suffixes.split()
}


def language_of(uri: str) -> str:
    """The language by the ending of a file's name, "" for none."""
    return SUFFIXES.get(uri.rpartition("/")[2].rpartition(".")[2].lower(), "")


@lru_cache(maxsize=4)
def parse(uri: str, text: str) -> SourceFile | None:
    """What a source file defines and uses; None where its language is unknown or it is generated."""
    language = language_of(uri)
    if not language or len(text) > LARGEST or _minified(text):
        return None
    file = SourceFile(uri, language, module_name(uri, language))
    file.symbols.append(Symbol(file.module, "module", 0, len(text)))
    if language == "python" and python.read(file, text):
        file.prose += [match.span() for match in _COMMENT.finditer(text)]
    elif not grammars.read(file, text):
        return None
    for start, end in file.prose:
        file.references += spoken(text[start:end], start, file.module)
    return _ordered(file)


def parse_prose(uri: str, text: str) -> SourceFile | None:
    """The names that a document writes as code; None where it writes none."""
    if uri.rpartition(".")[2].lower() not in PROSE_SUFFIXES:
        return None
    names = spoken(text, 0, "")
    return SourceFile(uri, PROSE, "", references=names) if names else None


def spoken(text: str, start: int, inside: str) -> list[Reference]:
    """Names in backticks, names with `()` behind them and dotted names, each once a place."""
    found = []
    for match in _SPOKEN.finditer(text):
        group = match.lastgroup or ""
        name = match[group].strip(".")
        plain = group == "quoted" and "." not in name and "(" not in match[0]
        if plain and name.islower() and "_" not in name and (len(name) < 4 or name in COMMON):
            continue
        at = start + match.start(group)
        found.append(Reference("documents", name, at, at + len(name), inside))
    return found


def _minified(text: str) -> bool:
    at = 0
    while len(text) - at > LONGEST_LINE:
        end = text.rfind("\n", at, at + LONGEST_LINE)
        if end < 0:
            return True
        at = end + 1
    return False


_COMMENT = re.compile(r"^[ \t]*#(?!!)[^\n]*", re.MULTILINE)


def _ordered(file: SourceFile) -> SourceFile:
    file.prose.sort()
    file.symbols[1:] = sorted(file.symbols[1:], key=lambda one: (one.start, -one.end, one.name))
    file.references.sort(key=lambda one: (one.start, one.end, one.kind))
    return file
