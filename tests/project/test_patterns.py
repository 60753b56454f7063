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
from functools import lru_cache
from itertools import islice
from pathlib import Path

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


def calls(module: str) -> Iterator[ast.Call]:
    """Calls of methods whose names `re` and its patterns know."""
    file = importlib.import_module(module).__file__ or ""
    for node in ast.walk(ast.parse(Path(file).read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield node


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
            if isinstance(value, Patterns):  # those of a .toml file, compiled when they are used
                named |= {id(one): one for one in (getattr(value, key) for key in value.forms)}
                continue
            some = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
            for one in some:
                parts = one if isinstance(one, tuple) else (one,)
                for pattern in (part for part in parts if isinstance(part, re.Pattern) and isinstance(part.pattern, str)):
                    named[id(pattern)] = pattern
                    if pattern is not value:
                        (matched if f"{module}.{name}" in MATCHED else anywhere).add(id(pattern))
        for node in calls(module):
            assert isinstance(node.func, ast.Attribute)
            owner, method = node.func.value, node.func.attr
            if isinstance(owner, ast.Name) and isinstance(held.get(owner.id), re.Pattern):
                (matched if method in ("match", "fullmatch") else anywhere).add(id(held[owner.id]))
            elif isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name) and owner.value.id in held:
                if isinstance(pattern := getattr(held[owner.value.id], owner.attr, None), re.Pattern):
                    (matched if method in ("match", "fullmatch") else anywhere).add(id(pattern))
            elif isinstance(owner, ast.Name) and owner.id == "re" and method != "compile" and node.args:
                try:
                    text = eval(compile(ast.Expression(node.args[0]), module, "eval"), dict(held))
                    pattern = re.compile(text, flags(node))
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

    def walk(tree: object) -> None:
        run = ""
        for kind, value in tree:  # type: ignore[attr-defined]
            name = str(kind)
            if name == "LITERAL":
                run += chr(value)
                found.setdefault(chr(value))
                continue
            if len(run) > 1:
                words.setdefault(run)
            run = ""
            if name == "IN":
                for inner, one in value:
                    if str(inner) == "LITERAL":
                        found.setdefault(chr(one))
                    elif str(inner) == "RANGE":
                        found.setdefault(chr(one[0]))
                    elif str(inner) == "CATEGORY":
                        found.setdefault({"SPACE": " ", "DIGIT": "1"}.get(str(one).rpartition("_")[2], "a"))
            elif name in ("ANY", "NOT_LITERAL"):
                found.setdefault("x")
            elif name == "BRANCH":
                for branch in value[1]:
                    walk(branch)
            elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                walk(value[2])
            elif name == "SUBPATTERN":
                walk(value[3])
            elif name in ("ASSERT", "ASSERT_NOT"):
                walk(value[1])
            elif name == "ATOMIC_GROUP":
                walk(value)
        if len(run) > 1:
            words.setdefault(run)

    walk(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    return [*list(words)[:8], *list(found)[:14], " ", "\n", "a", "1"]


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
