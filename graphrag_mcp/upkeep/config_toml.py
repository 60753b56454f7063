"""TOML that people edit: one table of servers put in or taken out, and every other byte left as it is.

Takes the text of a configuration; gives the text with `[table.name]` set or removed, its sub-tables with it. Only
tables under headings of their own are edited; how else a table can be written is found out by reading the result, and
then refused. Raises Unreadable with the line. Knows nothing of files or hosts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from graphrag_mcp.upkeep.config_json import Unreadable

QUOTES = ('"""', "'''", '"', "'")


def parse(text: str) -> dict[str, Any]:
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
    before = parse(text)
    wanted = {**before, table: {**_tables(before, table, text), name: dict(value)}}
    newline = "\r\n" if "\r\n" in text else "\n"
    block = f"[{table}.{name}]\n" + "".join(f"{key} = {_value(one)}\n" for key, one in value.items())
    block = block.replace("\n", newline)
    spans = _spans(text, (table, name))
    if spans:
        first = spans[0][0]
        text = text[:first] + block + _cut(text, spans)[first:]
    else:
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        text += gap + block
    return _checked(text, wanted, table)


def remove_table(text: str, table: str, name: str) -> str:
    before = parse(text)
    servers = _tables(before, table, text)
    if name not in servers:
        return text
    spans = _spans(text, (table, name))
    left = {key: value for key, value in servers.items() if key != name}
    wanted = {key: value for key, value in before.items() if key != table} | ({table: left} if left else {})
    at_end = bool(spans) and not text[spans[-1][1] :].strip()
    text = _cut(text, spans)
    if at_end:  # the blank line above it too
        blank = re.search(r"(\r?\n)\r?\n\Z", text)
        text = text[: blank.end(1)] if blank else text
    after = parse(text)
    if not left and after.get(table) == {}:
        wanted[table] = {}
    return _checked(text, wanted, table)


def _tables(document: dict[str, Any], table: str, text: str) -> dict[str, Any]:
    found = document.get(table, {})
    if not isinstance(found, dict):
        raise Unreadable(f"{table} is not a table", _line_of(text, table))
    return found


def _checked(text: str, wanted: dict[str, Any], table: str) -> str:
    try:
        same = parse(text) == wanted
    except Unreadable:
        same = False
    if not same:
        what = f"{table} is written in a way that cannot be edited here (inline, or with dotted names)"
        raise Unreadable(what, _line_of(text, table))
    return text


def _line_of(text: str, word: str) -> int:
    return text.count("\n", 0, max(0, text.find(word))) + 1


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _spans(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the table and those below it stand: from each heading to the end of its last line that says something.

    Blank lines and comments behind it belong to what follows.
    """
    headings = _headings(text)
    ends = [at for at, _ in headings[1:]] + [len(text)]
    spans: list[tuple[int, int]] = []
    for (start, found), end in zip(headings, ends, strict=False):
        if found[: len(path)] != path:
            continue
        end = start + len(_trimmed(text[start:end]))
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _trimmed(block: str) -> str:
    """Without the blank lines and comments at its end."""
    lines = block.splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines)


def _headings(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Every `[a.b]` and `[[a.b]]` of a valid document, with its place: not what stands in texts, lists or comments."""
    found: list[tuple[int, tuple[str, ...]]] = []
    at, depth, line = 0, 0, True
    while at < len(text):
        ch = text[at]
        quote = next((mark for mark in QUOTES if text.startswith(mark, at)), "")
        if ch == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif quote:
            at = _behind(text, at, quote)
            line = False
        elif ch == "[" and line and depth == 0:
            end = _end_of_heading(text, at)
            found.append((text.rfind("\n", 0, at) + 1, _path(text[at:end])))
            at, line = end, False
        else:
            depth += (ch in "[{") - (ch in "]}")
            line = ch == "\n" or (line and ch.isspace())
            at += 1
    return found


def _behind(text: str, at: int, quote: str) -> int:
    """The place after a text that begins at `at`."""
    at += len(quote)
    while at < len(text) and not text.startswith(quote, at):
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    at += len(quote)
    while len(quote) == 3 and text[at : at + 1] == quote[0]:  # """a"""" ends with a quotation mark of its own
        at += 1
    return at


def _end_of_heading(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text[at] in "\"'":
            at = _behind(text, at, text[at])
            continue
        depth += (text[at] == "[") - (text[at] == "]")
        at += 1
        if depth == 0:
            break
    return at


def _path(heading: str) -> tuple[str, ...]:
    found: Any = tomllib.loads(heading)
    path = []
    while isinstance(found, list | dict) and found:
        if isinstance(found, list):
            found = found[0]
            continue
        name, found = next(iter(found.items()))
        path.append(name)
    return tuple(path)


def _value(value: Any) -> str:
    """JSON, which TOML reads alike for texts, numbers, truth values and lists; a table is written inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_text(key)} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
