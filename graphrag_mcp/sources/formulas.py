"""Formulas as a line of text: `1/2`, `10^6`, `√(a+b)`. MathML Core, chapter 3; Office Math, ECMA-376 part 1, 22.1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

_OPERAND = re.compile(r"[^\W_]*(?:[.,]\d+)?")
_INVISIBLE = str.maketrans("", "", "\u2061\u2062\u2063\u2064")


def as_text(formula: Element) -> str:
    """The text of a `math` or `oMath` element, whose names are in lower case (`html.tree`)."""
    written: dict[Element, str] = {}
    options: dict[Element, dict[str, str]] = {}
    for element in reversed([*formula.iter()]):  # each behind those in it
        name = _local(element.tag)
        if name.endswith("pr"):  # properties, of Office
            options[element] = {_local(child.tag): _value(child) for child in element}
            continue
        about = dict(element.attrib)
        parts: list[str] = []
        beside = element.text or ""  # words that stand beside elements go with the nearest
        for child in element:
            if child in options:
                about |= options[child]
            else:
                parts.append((beside if beside.strip() else "") + written[child])
                beside = ""
            if parts and (child.tail or "").strip():
                parts[-1] += child.tail or ""
        text = _shown(name, parts, about) if parts else (element.text or "")
        text = re.sub(r"\s+", " ", text)
        written[element] = text if name == "t" or parts else text.strip()
    return written[formula].translate(_INVISIBLE).strip()


def _local(name: str) -> str:
    """A name without its prefix."""
    return name.rpartition(":")[2]


def _value(element: Element) -> str:
    return next((value for key, value in element.items() if _local(key) == "val"), "")


def _shown(name: str, parts: list[str], options: Mapping[str, str]) -> str:
    first, last = parts[0], _operand(parts[-1])
    if name in ("mfrac", "f"):
        return f"{_operand(first)}/{last}"
    if name in ("msup", "mover", "ssup"):
        return f"{_operand(first)}^{last}"
    if name in ("msub", "ssub"):
        return first + "".join(map(_operand, parts[1:]))
    if name in ("msubsup", "ssubsup"):
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
        begin, end = (("begchr", "endchr"), ("open", "close"))[name == "mfenced"]
        between = options.get("sepchr", "|" if name == "d" else ",")
        return f"{options.get(begin, '(')}{between.join(parts)}{options.get(end, ')')}"
    if name == "semantics":  # then the same in other notations
        return first
    return (" " if name in ("mtr", "mtable", "mr", "m", "eqarr", "func") else "").join(parts)


def _operand(text: str) -> str:
    text = text.strip()
    return text if _OPERAND.fullmatch(text) or text[:1] + text[-1:] == "()" else f"({text})"
