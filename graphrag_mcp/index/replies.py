"""A model's reply as text: thoughts, fences and end marks taken off, delimiters and JSON read, values cleaned.

Takes raw replies and parts of them; gives plain text, fields of a tuple, items of JSON, names and descriptions fit to
be stored. Every step is pure and linear in the length of the reply. Knows nothing of what the fields mean.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from graphrag_mcp.loose_json import without_thoughts

LONGEST_REPLY = 4_000_000  # characters that are looked at
MOST_TOKENS = 300_000  # signs and texts of JSON that are looked at; 1,500 records have some 40,000
DEEPEST = 64

# ---- the reply as a whole -------------------------------------------------------------------------

_MARK = re.compile(
    r"[<＜][ ]?[|｜#]{0,3}[ ]?COMPLETED?[ ]?(?:[|｜#]{1,3}[ ]?[>＞]?|[>＞])|[<＜][|｜#]{1,3}COMPLETED?\b"
    r"|(?<!\w)[|｜]COMPLETED?[|｜]",
    re.IGNORECASE,
)
_SPECIAL = re.compile(
    r"<[|｜](?:im_(?:start|end)|endoftext|eot_id|end_of_turn|end|eos|return|start|channel|message)[|｜]>|<end_of_turn>|</s>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[ \t]{0,8}\w{0,20}[ \t]{0,8}$", re.MULTILINE)
_LITERAL = re.compile(r"(?<!\\)(?:\\r)?\\n")
_ESCAPE = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-f]{1,5});", re.IGNORECASE)


def plain_reply(reply: str) -> tuple[str, bool]:
    """The reply without thoughts, fences, special tokens and end marks; and whether it had an end mark."""
    text = without_thoughts(reply[:LONGEST_REPLY].lstrip("\ufeff"))
    if "\\n" in text and "\n" not in text.strip() and text.lstrip()[:1] not in ("{", "["):
        text = _LITERAL.sub("\n", text)  # the reply of a model that escapes what nobody unescapes
    if "&lt;" in text and text.lstrip()[:1] not in ("{", "["):
        text = unescaped(text)
    # Patterns that may begin anywhere are tried at every letter: they are only shown what may hold what they look for.
    low = text.lower()
    at = max(0, low.find("complete") - 8) if len(low) == len(text) else 0
    tail, marks = _MARK.subn("\n", text[at:]) if "complete" in low else (text[at:], 0)
    text = _SPECIAL.sub("\n", text[:at] + tail)
    return (_FENCE.sub("", text) if "```" in text or "~~~" in text else text).strip(), marks > 0


def unescaped(text: str) -> str:
    """HTML entities as characters; only those that end in a semicolon, so that `?a=1&copy=2` stays."""
    return _ESCAPE.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


# ---- tuples ---------------------------------------------------------------------------------------

FULL = r"[<＜][ ]?[|｜#\\]{1,5}[ ]?[>＞]"
HALF = rf"{FULL}|[<＜][|｜]{{1,2}}|[|｜]{{1,2}}[>＞]"
_LEVELS = tuple(re.compile(level) for level in (FULL, HALF, rf"{HALF}|[|｜]|\t"))
_COMMA_FIELD = re.compile(
    r"\"((?:[^\"\\]|\\.)*+)\"?|'((?:[^'\\]|\\.)*+)'?|“([^”]*+)”?|(-?\d+(?:\.\d+)?)", re.DOTALL
)  # closing signs are optional: one that is missing must not be looked for again and again


def split_fields(body: str, enough: int = 3) -> list[str]:
    """The fields of a tuple by the strictest delimiter that gives enough of them; raw texts."""
    fields: list[str] = []
    for level in _LEVELS:
        fields = level.split(body)
        if len(fields) > 1 and not fields[0].strip(" \t\"'“”`*|｜"):
            fields = fields[1:]
        if len(fields) >= enough or (len(fields) > 1 and level is _LEVELS[1]):
            break
    else:
        if len(fields) <= 1 and body.lstrip().startswith((",", '"', "'", "“")):
            quoted = ("".join(groups) for groups in _COMMA_FIELD.findall(body, 0, 100_000))
            fields = [re.sub(r"\\([\"'\\])", r"\1", field) for field in quoted]
    if len(fields) > enough and not fields[-1].strip():
        fields = fields[:-1]  # the bar that closes a table's row
    return fields


# ---- JSON -----------------------------------------------------------------------------------------

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\]:]', re.DOTALL)
_COMMA_AT_END = re.compile(r",(?=\s{0,64}[}\]])")
_PAIR = re.compile(
    r"[\"'](\w{1,40})[\"'] ?: ?(?:\"((?:[^\"\\]|\\.|\"(?!\s{0,9}[,}\]]))*+)\"?|'((?:[^'\\]|\\.)*+)'?"
    r"|(-?\d+(?:\.\d+)?)|\[([^\]\[]*+)\]?)",
    re.DOTALL,
)  # a quotation mark ends a value only before a comma or bracket: models forget to escape those inside


def json_items(text: str) -> tuple[list[tuple[str, dict[str, Any] | list[Any]]], bool]:
    """Innermost objects, and arrays within arrays, each with the key that it stands under; and whether all was closed.

    A reply that was cut off gives the items that are whole, so does one with prose around it or an item that is no
    JSON. What an item is for is told from its own keys, so the shape around it does not matter.
    """
    begin = re.search(r"[{\[]\s{0,64}[\"'{\[}\]]", text)
    items: list[tuple[str, dict[str, Any] | list[Any]]] = []
    stack: list[_Open] = []
    key, last, closed = "", (0, 0), False
    tokens = _JSON_TOKEN.finditer(text, begin.start()) if begin else iter(())
    for count, match in enumerate(tokens):
        sign = match[0][0]
        if sign == '"':
            last = match.span()
        elif sign == ":":
            key = text[last[0] + 1 : min(last[1] - 1, last[0] + 300)]
        elif sign in "{[":
            outer = stack[-1] if stack else None
            if count > MOST_TOKENS or len(stack) >= DEEPEST:
                closed = False
                break
            stack.append(_Open(sign, match.start(), outer.key if outer and outer.sign == "[" else key))
            closed = False
        elif stack and stack[-1].sign == ("{" if sign == "}" else "["):
            inner, outer = stack.pop(), stack[-1] if stack else None
            if inner.holds_none and (sign == "}" or (outer and outer.sign == "[")):
                items += [(inner.key, item) for item in _decoded(text[inner.start : match.end()])]
            if outer:
                outer.holds_none &= inner.holds_none and sign == "]" and outer.sign == "{"
            closed = not stack
    return items, closed


class _Open:
    """A bracket not yet closed. `holds_none`: nothing in it is an item itself."""

    __slots__ = ("sign", "start", "key", "holds_none")

    def __init__(self, sign: str, start: int, key: str) -> None:
        self.sign, self.start, self.key, self.holds_none = sign, start, key, True


def _decoded(part: str) -> list[dict[str, Any] | list[Any]]:
    """The value as JSON; else with commas at ends removed; else the pairs that can be made out; [] of nothing."""
    for candidate in (part, _COMMA_AT_END.sub("", part)):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        return [value] if value else []
    if part[0] == "[":
        return []
    pairs: dict[str, Any] = {}
    for name, double, single, number, array in _PAIR.findall(part):
        words = [word for word in re.split(r"[\"',]+", array) if word.strip()]
        pairs[name] = words or double or single or number
    return [pairs] if pairs else []


# ---- values ---------------------------------------------------------------------------------------

# Control characters, lone halves of surrogate pairs, direction marks and other invisible signs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_WORD_OR_SIGN = re.compile(r"[^\W_]|[^\x00-\x7f\u2000-\u206f\u3000-\u303f\uff00-\uff0f\w]")
_PAIRS = ('""', "''", "“”", "‘’", "«»", "「」", "『』", "``", "**", "＂＂", "„“", "<>", "{}", "＜＞")


def clean(value: str, longest: int) -> str:
    """One line without invisible characters, blanks collapsed, wrapping quotes and emphasis off, at most `longest`."""
    text = unescaped(value[: 4 * longest + 400])
    text = " ".join((text if text.isprintable() else _INVISIBLE.sub("", text)).split())
    for _ in range(0 if text[:1].isalnum() else 6):  # what begins with a letter or digit is not wrapped
        before = text
        if len(text) > 1 and text[0] + text[-1] in _PAIRS and text[0] not in text[1:-1] and text[-1] not in text[1:-1]:
            text = text[1:-1].strip()
        elif len(text) > 4 and text[:2] == text[-2:] and text[:2] in ("**", '""'):
            text = text[2:-2].strip()
        if text == before:
            break
    return text[:longest].rstrip()


_MARKS = frozenset('"“”«»*`')


def clean_name(value: str) -> str:
    """A name as it is stored; "" for one without a letter, digit or sign of a language (`C++`, `😀` stay)."""
    name = clean(value, 1000).lstrip("#").strip()
    for sign in () if _MARKS.isdisjoint(name) else '"“”«»*`':
        if name.count(sign) == 1 and sign in (name[:1], name[-1:]):
            name = name.replace(sign, "").strip()  # its partner was lost
    name = name.rstrip(";,").strip()
    return name if _WORD_OR_SIGN.search(name) else ""
