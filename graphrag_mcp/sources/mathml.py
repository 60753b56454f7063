"""MathML of web pages as a line of text: `1/2`, `10^6`, `√(a+b)`. MathML Core, chapter 3."""

from __future__ import annotations

import html
import io
import re
from xml.etree import ElementTree

_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos|#\w+);)\w+;?")
_MARKUP = re.compile(r"<[^<>]*>")
_OPERAND = re.compile(r"[^\W_]*(?:[.,]\d+)?")
_INVISIBLE = str.maketrans("", "", "\u2061\u2062\u2063\u2064")


def as_text(inside: str) -> str:
    """What stands inside of a `math` element. Of markup that is no XML, the text of its elements."""
    inside = _ENTITY.sub(lambda found: html.escape(html.unescape(found[0])), inside)
    try:
        stream = io.StringIO(f"<math>{inside}</math>")
        text = ""
        for _, element in ElementTree.iterparse(stream):
            parts = [child.text or "" for child in element]
            text = _shown(element.tag.rpartition("}")[2], parts) if parts else (element.text or "")
            text = " ".join(text.split())
            element.clear()
            element.text = text
        return text.translate(_INVISIBLE)
    except ElementTree.ParseError:
        return " ".join(html.unescape(_MARKUP.sub(" ", inside)).split())


def _shown(name: str, parts: list[str]) -> str:
    first, last = parts[0], _operand(parts[-1])
    if name == "mfrac":
        return f"{_operand(first)}/{last}"
    if name in ("msup", "mover"):
        return f"{_operand(first)}^{last}"
    if name in ("msubsup", "munderover"):
        return f"{''.join(parts[:-1])}^{last}"
    if name == "msqrt":
        return f"√{_operand(''.join(parts))}"
    if name == "mroot":
        return f"{_operand(first)}^(1/{last})"
    if name == "semantics":  # then the same in other notations
        return first
    return (" " if name in ("mtr", "mtable") else "").join(parts)


def _operand(text: str) -> str:
    return text if _OPERAND.fullmatch(text) or text[:1] + text[-1:] == "()" else f"({text})"
