"""Every regular expression of the package is linear: no text, however it repeats itself, makes one take long.

Patterns are found in the source (calls of `re` with a text that can be worked out without running the module, and every
compiled pattern that a module holds), and given long texts made of their own letters, pumped and then spoiled at the end.
On such a text a linear pattern takes milliseconds and a quadratic one ten times SECONDS; the growth is measured in
campaigns/patterns.py.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.text.terms import Patterns
from tests.support.command import ROOT
from tests.support.workload import ends

PACKAGE = ROOT / "graphrag_mcp"
CALLS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
SIZE = 200_000  # characters of a text
SECONDS = 3.0  # of CPU for a text
PUMPS = 40
MATCHED = {"graphrag_mcp.llm.replies._AFTER"}  # collections whose patterns are only matched where they are to stand


def modules() -> list[str]:
    found = sorted(path.relative_to(ROOT).with_suffix("") for path in PACKAGE.rglob("*.py") if path.name != "__main__.py")
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


def calls(module: str) -> Iterator[tuple[ast.Call, str, Any]]:
    """Calls of methods whose names `re` and its patterns know: (call, method, what it is a method of), where names of the
    module alone say that."""
    held = vars(importlib.import_module(module))
    for node in ast.walk(ast.parse(Path(held["__file__"]).read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            owner = node.func.value
            if all(isinstance(one, ast.Name | ast.Attribute | ast.Load) for one in ast.walk(owner)):
                with suppress(NameError, AttributeError):  # a name of a function
                    yield node, node.func.attr, eval(ast.unparse(owner), dict(held))


def patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    """The compiled patterns of a value: itself, of a collection, or of a .toml file."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, Patterns):
        yield from (getattr(value, key) for key in value.forms)
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from patterns_in(one)


@lru_cache(maxsize=1)
def every_pattern() -> dict[tuple[str, int], tuple[re.Pattern[str], bool]]:
    """All patterns, each with whether it is looked for anywhere in a text or only matched where it is to stand."""
    found: dict[tuple[str, int], tuple[re.Pattern[str], bool]] = {}
    named: dict[int, re.Pattern[str]] = {}
    anywhere: set[int] = set()
    matched: set[int] = set()
    for module in modules():
        held = vars(importlib.import_module(module))
        for name, value in held.items():
            for pattern in patterns_in(value):
                named[id(pattern)] = pattern
                if pattern is not value and not isinstance(value, Patterns):
                    (matched if f"{module}.{name}" in MATCHED else anywhere).add(id(pattern))
        for node, method, owner in calls(module):
            if isinstance(owner, re.Pattern):
                (matched if method in ("match", "fullmatch") else anywhere).add(id(owner))
            elif owner is re and method != "compile" and node.args:
                try:
                    pattern = re.compile(eval(ast.unparse(node.args[0]), dict(held)), flags(node))
                except Exception:  # made of an argument, or a pattern that has a name
                    continue
                if isinstance(pattern.pattern, str):
                    found[pattern.pattern, pattern.flags] = pattern, method not in ("match", "fullmatch")
    for number, pattern in named.items():
        found[pattern.pattern, pattern.flags] = pattern, number in anywhere or number not in matched
    return found


def flags(call: ast.Call) -> int:
    """The flags written out in a call of `re`."""
    parts = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "flags")]
    named = [one.attr for part in parts for one in ast.walk(part) if isinstance(one, ast.Attribute)]
    return sum({int(getattr(re, name)) for name in named if name.isupper() and hasattr(re, name)})


def letters(pattern: re.Pattern[str]) -> list[str]:
    """What this pattern is made of: its literals, one character of each of its classes, and what spoils a match."""
    parser = re._parser  # type: ignore[attr-defined]
    found: dict[str, None] = {}
    words: dict[str, None] = {}

    def walk(value: Any) -> None:
        """A sequence of (kind, value), and every one inside of it."""
        if isinstance(value, parser.SubPattern | list):
            run = ""
            for kind, inner in (one for one in value if isinstance(one, tuple) and len(one) == 2):
                literal = str(kind) == "LITERAL" and isinstance(value, parser.SubPattern)  # and no member of a class
                run = run + chr(inner) if literal else words.setdefault(run) or ""
                if str(kind) in ("LITERAL", "RANGE"):
                    found.setdefault(chr(inner if isinstance(inner, int) else inner[0]))
                elif str(kind) == "CATEGORY":
                    found.setdefault({"SPACE": " ", "DIGIT": "1"}.get(str(inner).rpartition("_")[2], "a"))
                elif str(kind) in ("ANY", "NOT_LITERAL"):
                    found.setdefault("x")
            words.setdefault(run)
        if isinstance(value, parser.SubPattern | list | tuple):
            for one in value:
                walk(one)

    walk(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    return [*[word for word in words if len(word) > 1][:8], *list(found)[:14], " ", "\n", "a", "1"]


def pumped(pattern: re.Pattern[str]) -> list[str]:
    """Forty short texts to be repeated: each letter, pairs of them, and openings without an end."""
    own = letters(pattern)
    single = list(dict.fromkeys(own))
    pairs = [one + other for one in single[:8] for other in single[:8] if one != other]
    return list(dict.fromkeys([*single, *pairs]))[:PUMPS]


def is_linear(pattern: re.Pattern[str], anywhere: bool = True) -> bool:
    """Four matches in each text, one after another as finditer gives them, or one at its start."""
    for piece in pumped(pattern)[:8]:
        for end in ("", "\x01"):
            text = piece * (SIZE // len(piece)) + end
            try:
                with ends(SECONDS):
                    list(islice(pattern.finditer(text), 4)) if anywhere else pattern.match(text)
            except AssertionError:
                return False
    return True


def test_no_pattern_takes_more_than_linear_work() -> None:
    found = every_pattern().values()
    assert [pattern.pattern[:120] for pattern, anywhere in found if not is_linear(pattern, anywhere)] == []


@pytest.mark.parametrize("pattern", [r"\s+$", r"<.*?>", r"(a+)+b"])
def test_a_pattern_that_is_not_linear_would_be_found(pattern: str) -> None:
    assert not is_linear(re.compile(pattern))
