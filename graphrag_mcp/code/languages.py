"""The programming languages that are read, by the ending of a file's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec

_LANGUAGES = """python py pyi|javascript js mjs cjs jsx|typescript ts mts cts|tsx tsx|java java|go go
rust rs|c c h|cpp cc cpp cxx hh hpp hxx|c_sharp cs|ruby rb|php php|kotlin kt kts|scala scala|swift swift"""
SUFFIXES: Mapping[str, str] = {
    suffix: language for language, *suffixes in map(str.split, re.split(r"[|\n]", _LANGUAGES)) for suffix in suffixes
}


def language_of(uri: str) -> str:
    """The language by the ending of a file's name, "" for none."""
    return SUFFIXES.get(uri.rpartition("/")[2].rpartition(".")[2].lower(), "")


def grammars_installed() -> bool:
    """Is the extra `[code]` installed? Without it only Python is parsed."""
    return find_spec("tree_sitter") is not None
