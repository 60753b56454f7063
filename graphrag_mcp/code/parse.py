"""Source code to symbols: which reader a file needs, and which files are not parsed.

`parse(uri, text)` gives a `SourceFile`, or None for a file in no known language. Python is read by
the interpreter's own parser. Broken syntax, generated and minified files never raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from graphrag_mcp.code import python
from graphrag_mcp.code.symbols import SourceFile, Symbol, module_name

LARGEST = 2_000_000  # characters of a file that is parsed; larger ones are generated
LONGEST_LINE = 20_000  # characters of a line; longer ones are minified

SUFFIXES: Mapping[str, str] = {"py": "python", "pyi": "python"}


def language_of(uri: str) -> str:
    """The language by the ending of a file's name, "" for none."""
    return SUFFIXES.get(uri.rpartition("/")[2].rpartition(".")[2].lower(), "")


@lru_cache(maxsize=4)
def parse(uri: str, text: str) -> SourceFile | None:
    """What a source file defines and uses; None where its language is unknown or it is generated."""
    language = language_of(uri)
    if not language or len(text) > LARGEST or _minified(text):
        return None
    file = SourceFile(uri, language, module_name(uri))
    file.symbols.append(Symbol(file.module, "module", 0, len(text)))
    return _ordered(file) if python.read(file, text) else None


def _minified(text: str) -> bool:
    at = 0
    while len(text) - at > LONGEST_LINE:
        end = text.rfind("\n", at, at + LONGEST_LINE)
        if end < 0:
            return True
        at = end + 1
    return False


def _ordered(file: SourceFile) -> SourceFile:
    file.symbols[1:] = sorted(file.symbols[1:], key=lambda one: (one.start, -one.end, one.name))
    file.references.sort(key=lambda one: (one.start, one.end, one.kind))
    return file
