"""Formulas and fields of a docx file, written so that a reader of its runs gives them as they are shown.

ECMA-376 part 1, chapters 17.16 (fields) and 22.1 (Office Math). A fraction is three runs with no sign between them
there, and the result of a field inside of the instruction of another is a run beside the result of the other."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.decode import ReadError

_TOKEN = re.compile(
    rb"<(?P<end>/?)(?P<prefix>\w+:)?(?P<name>fldChar|t|num|den|sup|rad|d|begChr|endChr)(?P<rest>(?:\s[^<>]*?)?)(?P<empty>/?)>"
)
_VALUE = re.compile(rb":(?:val|fldCharType)\s*=\s*[\"']([^\"']*)")
_OPERAND = re.compile(rb"[^\W_]*(?:[.,]\d+)?")
_PARTS = re.compile(r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml")


@dataclass
class _Open:
    """An element of a formula whose end is not reached."""

    at: int  # index of what follows its start in the written parts
    text: list[bytes] = field(default_factory=list)
    signs: dict[bytes, bytes] = field(default_factory=dict)


def as_shown(xml: bytes) -> bytes:
    """The XML of a part with `/`, `^`, `√` and brackets as runs of its formulas, and without what a field shows inside of
    the instruction of another."""
    written: list[bytes] = []
    fields: list[bool] = []  # open fields, the outermost first: has the result begun?
    formula: list[_Open] = []
    done = 0
    for token in _TOKEN.finditer(xml):
        name, prefix = token["name"], token["prefix"] or b""
        if token.start() < done:
            continue
        if name == b"fldChar":
            kind = _value(token["rest"])
            if kind == b"begin":
                fields.append(False)
            elif fields and kind == b"separate":
                fields[-1] = True
            elif fields and kind == b"end":
                fields.pop()
        elif name == b"t":
            end = xml.find(b"</" + prefix + b"t>", token.end())
            if token["end"] or token["empty"] or end < 0:
                continue
            text = xml[token.end() : end]
            if not all(fields[:-1]):
                written.append(xml[done : token.end()])
                done = end
            for element in formula:
                element.text.append(text)
        elif prefix == b"w:":
            continue
        elif name in (b"begChr", b"endChr"):
            if formula:
                formula[-1].signs[name] = _value(token["rest"])
        elif not token["end"] and not token["empty"]:
            written.append(xml[done : token.end()])
            done = token.end()
            formula.append(_Open(len(written)))
            written += [b""]
        elif token["end"] and formula:
            element = formula.pop()
            before, after = _signs(name, b"".join(element.text), element.signs)
            written[element.at] = _run(prefix, before)
            written += [xml[done : token.start()], _run(prefix, after)]
            done = token.start()
    return b"".join(written) + xml[done:]


def _value(attributes: bytes) -> bytes:
    found = _VALUE.search(attributes)
    return found[1] if found else b""


def _signs(name: bytes, text: bytes, signs: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """What stands before and after the text of an element."""
    if name == b"d":
        return signs.get(b"begChr", b"("), signs.get(b"endChr", b")")
    left, right = (b"", b"") if _OPERAND.fullmatch(text) else (b"(", b")")
    mark = {b"den": b"/", b"sup": b"^", b"rad": "√".encode()}.get(name, b"")
    return mark + left, right


def _run(prefix: bytes, text: bytes) -> bytes:
    return b"<%br><%bt>%b</%bt></%br>" % (prefix, prefix, text, prefix, prefix) if text else b""


def rewritten(parts: zipfile.ZipFile, data: bytes) -> bytes:
    """The file with its texts as they are shown; `data` itself where that changes nothing, or where a part is damaged,
    which the reader says."""
    try:
        changed: dict[str, bytes] = {}
        for name in filter(_PARTS.fullmatch, parts.namelist()):
            xml = archive.part(parts, name)
            if b"fldChar" in xml or b"oMath" in xml:
                changed[name] = as_shown(xml)
        if not changed:
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as copy:
            for name in dict.fromkeys(parts.namelist()):
                copy.writestr(name, changed.get(name) or archive.part(parts, name))
        return out.getvalue()
    except ReadError:
        return data
