"""Configuration files of clients: one server entry put in or taken out, in JSON (values, order,
indentation and line ends are kept) and in TOML (every other line is kept)."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table, Whitespace


class Unreadable(ValueError):
    """The text cannot be read, or cannot be edited; `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def parse_json(text: str) -> dict[str, Any]:
    """A document of plain JSON; text without any is an empty object."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:  # writing it again would drop one
                lines = _lines_of(text, json.dumps(name, ensure_ascii=False))
                where = f"lines {', '.join(map(str, lines))}"
                what = f"an object has {name[:80]!r} more than once ({where})"
                raise Unreadable(what, lines[-1])
            found[name] = value
        return found

    try:
        document = json.loads(text if text.strip() else "{}", object_pairs_hook=members)
        json.dumps(document, allow_nan=False)
    except Unreadable:
        raise
    except json.JSONDecodeError as error:
        what = f"{error.msg[0].lower()}{error.msg[1:]}, at column {error.colno}"
        raise Unreadable(f"it is not plain JSON, without comments ({what})", error.lineno) from None
    except (ValueError, RecursionError):
        raise Unreadable("a number is too large, or it is nested too deeply", 1) from None
    if not isinstance(document, dict):
        raise Unreadable("the document is not an object", _lines_of(text, text.split()[0])[0])
    return document


def set_member(text: str, table: str, name: str, value: Mapping[str, Any]) -> str:
    """`text` with `value` as member `name` of the object `table`, which is made when it is missing."""
    document = parse_json(text)
    section = document.setdefault(table, {})
    if not isinstance(section, dict):
        raise Unreadable(f'"{table}" is not an object', _lines_of(text, f'"{table}"')[0])
    section[name] = dict(value)
    return _printed(document, text)


def remove_member(text: str, table: str, name: str) -> str:
    document = parse_json(text)
    document[table].pop(name)
    return _printed(document, text)


def _printed(document: dict[str, Any], text: str) -> str:
    """A document with the indentation, the line ends and the escapes that its text has."""
    step = re.search(r"\n([ \t]+)\S", text)
    indent = step[1] if step else None if text.strip() and "\n" not in text.strip() else 2
    escaped = bool(text.strip()) and text.isascii()
    made = json.dumps(document, indent=indent, ensure_ascii=escaped)
    end = text[len(text.rstrip()) :] if text.strip() else "\n"
    return made.replace("\n", "\r\n" if "\r\n" in text else "\n") + end


def parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        what = re.sub(r" \(at [^()]*\)$", "", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        raise Unreadable(what[:1].lower() + what[1:], line) from None
    except RecursionError:
        raise Unreadable("it is nested too deeply", 1) from None


def set_table(text: str, table: str, name: str, value: Mapping[str, Any]) -> str:
    """`text` with `[table.name]` holding `value`: where the table stands already, else at the end."""
    document = parse_toml(text)
    servers = document.get(table, {})
    if not isinstance(servers, dict):
        raise Unreadable(f"{table} is not a table", _lines_of(text, table)[0])
    block = tomlkit.dumps({table: {name: dict(value)}})
    if name in servers:
        after = _replaced(text, table, name, _as_in(text, block))
    else:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        after = text + _as_in(text, gap + block)
    return _checked(after, document | {table: {**servers, name: dict(value)}}, table, text)


def remove_table(text: str, table: str, name: str) -> str:
    document = parse_toml(text)
    left = {key: one for key, one in document[table].items() if key != name}
    return _checked(_replaced(text, table, name, ""), document | {table: left}, table, text)


def _replaced(text: str, table: str, name: str, block: str) -> str:
    """A document with `block` in place of the first of the tables `table.name`, without the others."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise Unreadable(str(error), getattr(error, "line", 1)) from None
    for key, part in document.body:  # tables of one name may stand apart
        if key is not None and key.key == table and isinstance(part, Table):
            body = part.value.body
            for at, (inner, node) in enumerate(body):
                if inner is not None and inner.key == name:
                    body[at] = (None, Whitespace(block + _end(node.as_string())))
                    block = ""
    return tomlkit.dumps(document)


def _end(table: str) -> str:
    """Blank lines and comments at the end of a table, which belong to what follows it."""
    lines = table.splitlines(keepends=True)
    end = itertools.takewhile(
        lambda line: not line.strip() or line.lstrip().startswith("#"), reversed(lines)
    )
    return "".join(reversed(list(end)))


def _as_in(text: str, made: str) -> str:
    """Line ends as a text has them throughout."""
    windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
    return re.sub(r"\r?\n", "\r\n", made) if windows else made


def _checked(after: str, wanted: dict[str, Any], table: str, text: str) -> str:
    """The edited text, when a second parser reads in it what it should say."""
    try:
        same = {table: {}} | parse_toml(after) == wanted
    except Unreadable:
        same = False
    if not same:
        what = f"{table} is written in a way that cannot be edited (inline, or with dotted names)"
        raise Unreadable(what, _lines_of(text, table)[0])
    return after


def _lines_of(text: str, word: str) -> list[int]:
    """The lines that have a word; the first line when none has."""
    return [at for at, line in enumerate(text.splitlines(), 1) if word in line] or [1]
