"""TOML configuration of clients: one server entry added or removed, every other byte kept.

Takes the text of a configuration; gives the text with `[table.name]` set or removed, its sub-tables
with it. Only tables under headings of their own are edited; how else a table can be written is
found out by reading the result, and then refused. Raises Unreadable with the line. Knows nothing of
files or hosts.

JSON that people edit: one member put in or taken out, and every other byte left as it is.

Takes the text of a configuration, with comments and trailing commas if it has them; gives the text
with a member of one of its objects set or removed. Raises Unreadable with the line where the text
is not what it should be. Knows nothing of files or hosts.
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SPACE = " \t\r\n"
_DECODER = json.JSONDecoder(parse_constant=lambda name: _no_constant(name))


class Unreadable(ValueError):
    """The text cannot be read, or cannot be edited; `line` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


@dataclass
class Node:
    """A value and where it stands. Of an object also its members and where its last word inside
    ends.
    """

    value: Any
    start: int
    end: int = 0
    members: list[Member] = field(default_factory=list)
    inside: int = 0


@dataclass
class Member:
    name: str
    start: int
    node: Node
    comma: int = -1  # where the comma behind it stands


def parse_json(text: str) -> Node:
    """The whole text as one value; text without any is an empty object."""
    reader = _Reader(text)
    try:
        at = reader.skip(0)
        if at == len(text):
            return Node({}, at, at)
        root = reader.value(at)
    except RecursionError:
        raise Unreadable("it is nested too deeply", 1) from None
    if (end := reader.skip(root.end)) != len(text):
        raise reader.wrong("something follows the end of the document", end)
    return root


def lenient_line(text: str) -> int:
    """The line of the first thing that plain JSON does not have (a comment, a trailing comma); 0
    when there is none.
    """
    if not text.strip():
        return 0
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno
    return 0


def places(text: str, table: str, name: str) -> list[int]:
    """The lines in which members of that name stand, in every object `table`; more than one is
    allowed by JSON.
    """
    tables = [member.node for member in parse_json(text).members if member.name == table]
    found = [
        _line(text, member.start) for one in tables for member in one.members if member.name == name
    ]
    return (
        found if len(tables) < 2 or len(found) > 1 else [_line(text, one.start) for one in tables]
    )


def set_member(text: str, table: str, name: str, value: Any) -> str:
    """`text` with `value` as member `name` of the object `table`, which is made when it is missing."""
    if not text.strip():
        return json.dumps({table: {name: value}}, indent=2, ensure_ascii=False) + "\n"
    root = parse_json(text)
    if root.start == root.end:  # comments and nothing else
        return text.rstrip() + "\n" + set_member("", table, name, value)
    section = _section(text, root, table)
    if section is None:
        return _inserted(text, root, root, table, {name: value})
    known = [member for member in section.members if member.name == name]
    if known:
        node = known[-1].node
        return text[: node.start] + _written(text, root, node.start, value) + text[node.end :]
    return _inserted(text, root, section, name, value)


def remove_member(text: str, table: str, name: str) -> str:
    """`text` without the member, its comma, and the space before it."""
    while True:
        section = _section(text, parse_json(text), table)
        places = (
            [at for at, member in enumerate(section.members) if member.name == name]
            if section
            else []
        )
        if section is None or not places:
            return text
        text = _without(text, section.members, places[-1])


def _section(text: str, root: Node, table: str) -> Node | None:
    if not isinstance(root.value, dict):
        raise Unreadable("the document is not an object", _line(text, root.start))
    found = [member.node for member in root.members if member.name == table]
    if found and not isinstance(found[-1].value, dict):
        raise Unreadable(f'"{table}" is not an object', _line(text, found[-1].start))
    return found[-1] if found else None


def _without(text: str, members: list[Member], at: int) -> str:
    gone = members[at]
    end = gone.comma + 1 if gone.comma >= 0 else gone.node.end
    start = gone.start
    while text[start - 1] in " \t":
        start -= 1
    if text[start - 1] == "\n":
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
    text = text[:start] + text[end:]
    if (
        gone.comma < 0 and at > 0
    ):  # it was the last, and the one before it must not end with a comma
        comma = members[at - 1].comma
        text = text[:comma] + text[comma + 1 :]
    return text


def _inserted(text: str, root: Node, into: Node, name: str, value: Any) -> str:
    """A member at the end of an object, in the style of what is there."""
    newline, unit = _style(text, root)
    member = json.dumps(name, ensure_ascii=False) + ": "
    own = _indent(text, into.start)
    if into.members:
        last, trailing = into.members[-1], into.members[-1].comma >= 0
        head = text[: last.node.end] + ("" if trailing else ",") + text[last.node.end : into.inside]
        comma = "," if trailing else ""
        if "\n" not in text[into.start : into.end]:
            return f"{head} {member}{_flat(value)}{comma}{text[into.inside :]}"
        indent = _indent(text, last.start) if _first_of_line(text, last.start) else own + unit
        return (
            head
            + newline
            + indent
            + member
            + _lines(value, unit, indent, newline)
            + comma
            + text[into.inside :]
        )
    if "\n" not in text.strip() and root.members:  # all on one line
        return text[: into.inside] + member + _flat(value) + text[into.inside :]
    indent = own + unit
    rest = text[into.inside : into.end - 1]
    end = rest if "\n" in rest else newline + own
    body = member + _lines(value, unit, indent, newline)
    return text[: into.inside] + newline + indent + body + end + text[into.end - 1 :]


def _written(text: str, root: Node, start: int, value: Any) -> str:
    newline, unit = _style(text, root)
    if "\n" not in text.strip():
        return _flat(value)
    return _lines(value, unit, _indent(text, start), newline)


def _style(text: str, root: Node) -> tuple[str, str]:
    """Line ends and one step of indentation, as the document has them."""
    newline = "\r\n" if "\r\n" in text else "\n"
    first = root.members[0].start if root.members else root.start
    unit = _indent(text, first) if _first_of_line(text, first) and root.members else ""
    return newline, unit or "  "


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Any, unit: str, indent: str, newline: str) -> str:
    return (newline + indent).join(json.dumps(value, indent=unit, ensure_ascii=False).split("\n"))


def _indent(text: str, at: int) -> str:
    """What the line of `at` begins with."""
    start = text.rfind("\n", 0, at) + 1
    return re.match(r"[ \t]*", text[start:])[0]  # type: ignore[index]


def _first_of_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


class _Reader:
    """A reader of JSON, comments and trailing commas that remembers where everything stands."""

    def __init__(self, text: str) -> None:
        self.text = text

    def wrong(self, what: str, at: int) -> Unreadable:
        return Unreadable(what, _line(self.text, min(at, len(self.text))))

    def skip(self, at: int) -> int:
        """Behind white space and comments."""
        text = self.text
        while at < len(text):
            if text[at] in SPACE:
                at += 1
            elif text.startswith("//", at):
                end = text.find("\n", at)
                at = len(text) if end < 0 else end
            elif text.startswith("/*", at):
                end = text.find("*/", at + 2)
                if end < 0:
                    raise self.wrong("a comment is never closed", at)
                at = end + 2
            else:
                break
        return at

    def value(self, at: int, depth: int = 0) -> Node:
        first = self.text[at : at + 1]
        if first and first in "{[" and depth > 1:
            # Nothing is edited this deep, so where its parts stand does not matter: a hundred times
            # faster.
            with contextlib.suppress(ValueError):
                value, end = _DECODER.raw_decode(self.text, at)
                return Node(value, at, end)
        if first == "{":
            return self.object(at, depth)
        if first == "[":
            return self.list(at, depth)
        if not first:
            raise self.wrong("the document ends in the middle", at)
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.wrong(error.msg[0].lower() + error.msg[1:], error.pos) from None
        except ValueError as error:
            raise self.wrong(str(error), at) from None
        return Node(value, at, end)

    def object(self, start: int, depth: int) -> Node:
        node = Node({}, start)
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            if self.text[at : at + 1] != '"':
                raise self.wrong("a name in double quotes, or }, should stand here", at)
            key = self.value(at)
            colon = self.skip(key.end)
            if self.text[colon : colon + 1] != ":":
                raise self.wrong("a colon should stand here", colon)
            member = Member(key.value, at, self.value(self.skip(colon + 1), depth + 1))
            node.members.append(member)
            node.value[member.name] = member.node.value
            at = self.skip(member.node.end)
            if self.text[at : at + 1] == ",":
                member.comma = at
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != "}":
                raise self.wrong("a comma, or }, should stand here", at)
        node.end = at + 1
        node.inside = start + 1 + len(self.text[start + 1 : at].rstrip(SPACE))
        return node

    def list(self, start: int, depth: int) -> Node:
        node = Node([], start)
        at = self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            one = self.value(at, depth + 1)
            node.value.append(one.value)
            at = self.skip(one.end)
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
            elif self.text[at : at + 1] != "]":
                raise self.wrong("a comma, or ], should stand here", at)
        node.end = at + 1
        return node


QUOTES = ('"""', "'''", '"', "'")


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
    before = parse_toml(text)
    wanted = {**before, table: {**_tables(before, table, text), name: dict(value)}}
    newline = "\r\n" if "\r\n" in text else "\n"
    block = f"[{table}.{name}]\n" + "".join(
        f"{key} = {_value(one)}\n" for key, one in value.items()
    )
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
    before = parse_toml(text)
    servers = _tables(before, table, text)
    if name not in servers:
        return text
    spans = _spans(text, (table, name))
    left = {key: value for key, value in servers.items() if key != name}
    wanted = {key: value for key, value in before.items() if key != table} | (
        {table: left} if left else {}
    )
    at_end = bool(spans) and not text[spans[-1][1] :].strip()
    text = _cut(text, spans)
    if at_end:  # the blank line above it too
        blank = re.search(r"(\r?\n)\r?\n\Z", text)
        text = text[: blank.end(1)] if blank else text
    after = parse_toml(text)
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
        same = parse_toml(text) == wanted
    except Unreadable:
        same = False
    if not same:
        what = (
            f"{table} is written in a way that cannot be edited here (inline, or with dotted names)"
        )
        raise Unreadable(what, _line_of(text, table))
    return text


def _line_of(text: str, word: str) -> int:
    return text.count("\n", 0, max(0, text.find(word))) + 1


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _spans(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where the table and those below it stand: from each heading to the end of its last line that
    says something.

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
    """Every `[a.b]` and `[[a.b]]` of a valid document, with its place: not what stands in texts,
    lists or comments.
    """
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
    while (
        len(quote) == 3 and text[at : at + 1] == quote[0]
    ):  # """a"""" ends with a quotation mark of its own
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
    """JSON, which TOML reads alike for texts, numbers, truth values and lists; a table is written
    inline.
    """
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_text(key)} = {_value(one)}" for key, one in value.items()) + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
