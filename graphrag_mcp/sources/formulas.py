"""Formulas as a line of text: `1/2`, `10^6`, `√(a+b)`. MathML Core, chapter 3; Office Math, ECMA-376 part 1, 22.1."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from xml.etree import ElementTree

_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos|#\w+);)\w+;?")
_MARKUP = re.compile(r"<[^<>]*>")
_PREFIX = re.compile(r"(</?|\s)\w+:(?=\w)")
_OPERAND = re.compile(r"[^\W_]*(?:[.,]\d+)?")
_INVISIBLE = str.maketrans("", "", "\u2061\u2062\u2063\u2064")


def as_text(inside: str) -> str:
    """What stands inside of a `math` or `oMath` element. Of markup that is no XML, the text of its elements."""
    inside = _ENTITY.sub(lambda found: html.escape(html.unescape(found[0])), inside)
    bare = _MARKUP.sub(lambda tag: _PREFIX.sub(r"\1", tag[0]), inside)
    try:
        text = ""
        for _, element in ElementTree.iterparse(io.StringIO(f"<math>{bare}</math>")):
            if element.tag.endswith("Pr"):  # properties, of Office
                element.attrib = {child.tag: child.get("val", "") for child in element}
                del element[:]
                continue
            options = dict(element.attrib)
            parts: list[str] = []
            beside = element.text or ""  # words that stand beside elements go with the nearest
            for child in element:
                if child.tag.endswith("Pr"):
                    options |= child.attrib
                else:
                    parts.append((beside if beside.strip() else "") + (child.text or ""))
                    beside = ""
                if parts and (child.tail or "").strip():
                    parts[-1] += child.tail or ""
            text = _shown(element.tag, parts, options) if parts else (element.text or "")
            text = re.sub(r"\s+", " ", text)
            del element[:]
            element.text = text if element.tag == "t" or parts else text.strip()
        return text.translate(_INVISIBLE).strip()
    except ElementTree.ParseError:
        return " ".join(html.unescape(_MARKUP.sub(" ", inside)).split())


def _shown(name: str, parts: list[str], options: Mapping[str, str]) -> str:
    first, last = parts[0], _operand(parts[-1])
    if name in ("mfrac", "f"):
        return f"{_operand(first)}/{last}"
    if name in ("msup", "mover", "sSup"):
        return f"{_operand(first)}^{last}"
    if name in ("msub", "sSub"):
        return first + "".join(map(_operand, parts[1:]))
    if name in ("msubsup", "sSubSup"):
        return f"{first}{''.join(map(_operand, parts[1:-1]))}^{last}"
    if name == "munderover":
        return f"{''.join(parts[:-1])}^{last}"
    if name == "acc":
        return _operand(first) + options.get("chr", "\u0302")
    if name == "nary":  # a sum or an integral: from, to, what is added
        above = f"^{_operand(parts[1])}" if len(parts) > 2 and parts[1].strip() else ""
        return f"{options.get('chr', '∫')}{first}{above} {parts[-1]}"
    if name == "msqrt":
        return f"√{_operand(''.join(parts))}"
    if name in ("mroot", "rad"):
        of, degree = (first, parts[-1]) if name == "mroot" else (parts[-1], "".join(parts[:-1]))
        return f"{_operand(of)}^(1/{_operand(degree)})" if degree.strip() else f"√{_operand(of)}"
    if name in ("d", "mfenced"):
        begin, end = (("begChr", "endChr"), ("open", "close"))[name == "mfenced"]
        between = options.get("sepChr", "|" if name == "d" else ",")
        return f"{options.get(begin, '(')}{between.join(parts)}{options.get(end, ')')}"
    if name == "semantics":  # then the same in other notations
        return first
    return (" " if name in ("mtr", "mtable", "mr", "m", "eqArr", "func") else "").join(parts)


def _operand(text: str) -> str:
    text = text.strip()
    return text if _OPERAND.fullmatch(text) or text[:1] + text[-1:] == "()" else f"({text})"
