"""JSON that people edit: one member put in or taken out, and every other byte left as it is.

Takes the text of a configuration, with comments and trailing commas if it has them; gives the text with a member of
one of its objects set or removed. Raises Unreadable with the line where the text is not what it should be. Knows
nothing of files or hosts.
"""

from __future__ import annotations

import contextlib
import json
import re
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
    """A value and where it stands. Of an object also its members and where its last word inside ends."""

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


def parse(text: str) -> Node:
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
    """The line of the first thing that plain JSON does not have (a comment, a trailing comma); 0 when there is none."""
    if not text.strip():
        return 0
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno
    return 0


def places(text: str, table: str, name: str) -> list[int]:
    """The lines in which members of that name stand, in every object `table`; more than one is allowed by JSON."""
    tables = [member.node for member in parse(text).members if member.name == table]
    found = [_line(text, member.start) for one in tables for member in one.members if member.name == name]
    return found if len(tables) < 2 or len(found) > 1 else [_line(text, one.start) for one in tables]


def set_member(text: str, table: str, name: str, value: Any) -> str:
    """`text` with `value` as member `name` of the object `table`, which is made when it is missing."""
    if not text.strip():
        return json.dumps({table: {name: value}}, indent=2, ensure_ascii=False) + "\n"
    root = parse(text)
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
        section = _section(text, parse(text), table)
        places = [at for at, member in enumerate(section.members) if member.name == name] if section else []
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
    if gone.comma < 0 and at > 0:  # it was the last, and the one before it must not end with a comma
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
        return head + newline + indent + member + _lines(value, unit, indent, newline) + comma + text[into.inside :]
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
            # Nothing is edited this deep, so where its parts stand does not matter: a hundred times faster.
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
