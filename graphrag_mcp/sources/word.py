"""What a docx file shows and its runs do not say, written as runs: results of fields, formulas, numbers of paragraphs,
signs of a font, words with a guide to their reading.

ECMA-376 part 1, 17.16 (fields), 22.1 (formulas), 17.9 (numbers), 17.3.3.30 (signs) and 17.3.3.25 (guides). A fraction
is three runs there with no sign between them, and the result of a field inside of the instruction of another is a run
beside the result of the other."""

from __future__ import annotations

import io
import re
import zipfile
from xml.sax.saxutils import escape

from graphrag_mcp.sources import archive, formulas, html
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import in_font
from graphrag_mcp.sources.word_lists import Lists

NUMBERED = "\ufdd2"  # behind the number of a paragraph: no character (Unicode 23.7)
_TOKEN = re.compile(
    rb"<(?P<prefix>\w+:)(?P<name>fldChar|t|oMath|ruby|sym|pPr|Choice|Fallback)(?P<rest>(?:\s[^<>]*?)?)(?P<empty>/?)>"
)
_KIND = re.compile(rb":fldCharType\s*=\s*[\"']([^\"']*)")
_FONT, _CHARACTER = re.compile(rb":font=\"([^\"]*)"), re.compile(rb":char=\"([0-9A-Fa-f]{2,4})\"")
_TEXT = re.compile(rb"<\w+:t(?:\s[^<>]*)?>([^<]*)<")
_PROPERTIES = re.compile(rb"<\w+:pPr(?:\s[^<>]*)?(?<!/)>")
# of the mark at the end of a paragraph
_TAKEN_OUT = re.compile(rb"<\w+:(?:del|moveFrom)[\s/>]")
_PARTS = re.compile(r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*)\.xml")
_REWRITTEN = (b"fldChar", b"oMath", b"ruby", b":sym ")


def as_shown(xml: bytes, lists: Lists | None = None) -> bytes:
    """The XML of a part with what is shown as runs, and without what a field shows inside of the instruction of
    another. `lists`: number its paragraphs."""
    written: list[bytes] = []
    fields: list[bool] = []  # open fields, the outermost first: has the result begun?
    done = 0
    choice, unnumbered = len(xml), 0  # where a choice begins, and where its fallback ends
    for token in _TOKEN.finditer(xml):
        name, prefix = token["name"], token["prefix"]
        if token.start() < done:
            continue
        if name == b"fldChar":
            found = _KIND.search(token["rest"])
            kind = found[1] if found else b""
            if kind == b"begin":
                fields.append(False)
            elif fields and kind == b"separate":
                fields[-1] = True
            elif fields and kind == b"end":
                fields.pop()
            continue
        closing = b"</%b%b>" % (prefix, name)
        if name in (b"Choice", b"Fallback"):  # two forms of one box: the first with words is shown
            if name == b"Fallback" and _TEXT.search(xml, choice, token.start()):
                unnumbered = xml.find(closing, token.end())
            choice = token.end()
            continue
        end = token.end() if token["empty"] else xml.find(closing, token.end())
        if end < 0 or (token["empty"] and name != b"sym"):
            continue
        inside, after = xml[token.end() : end], end + len(closing) * (not token["empty"])
        seen = all(fields[:-1])
        if name == b"t":
            if not seen:
                written.append(xml[done : token.end()])
                done = end
            continue
        if name == b"pPr":
            if lists is None or token.start() < unnumbered:
                continue
            properties, _, earlier = inside.partition(b"pPrChange")
            if _PROPERTIES.search(earlier) and (end := xml.find(closing, after)) > 0:
                after = end + len(closing)  # those before a change have a closing tag of their own
            gone = _TAKEN_OUT.search(properties)
            label = "" if gone else lists.label(properties)
            shown = b"" if gone else xml[token.start() : after]
            if label:
                shown += b"<%br>%b</%br>" % (prefix, _run(prefix, label + NUMBERED), prefix)
        elif name == b"oMath":
            formula = html.tree(f"<math>{inside.decode('utf-8', 'replace')}</math>")
            text = formulas.as_text(next(formula.iter("math")))
            shown = b"<%br>%b</%br>" % (prefix, _run(prefix, text), prefix)
        elif name == b"ruby":
            base = b"".join(_TEXT.findall(inside.partition(b"rubyBase")[2]))
            shown = b"<%bt>%b</%bt>" % (prefix, base, prefix)
        else:
            font, sign = _FONT.search(token["rest"]), _CHARACTER.search(token["rest"])
            text = in_font(chr(int(sign[1], 16)), font[1].decode() if font else "") if sign else ""
            shown = _run(prefix, text)
        written += [xml[done : token.start()], shown if seen else b""]
        done = after
    return b"".join(written) + xml[done:]


def _run(prefix: bytes, text: str) -> bytes:
    return b'<%bt xml:space="preserve">%b</%bt>' % (prefix, escape(text).encode(), prefix)


def rewritten(parts: zipfile.ZipFile, data: bytes) -> bytes:
    """The file with its texts as they are shown; `data` itself where that changes nothing, or where a part is damaged,
    which the reader says."""
    try:
        changed: dict[str, bytes] = {}
        for name in filter(_PARTS.fullmatch, parts.namelist()):
            xml = archive.part(parts, name)
            body = name == "word/document.xml" and "word/numbering.xml" in parts.namelist()
            if body or any(mark in xml for mark in _REWRITTEN):
                changed[name] = as_shown(xml, Lists(parts) if body else None)
        if not changed:
            return data
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as copy:
            for name in dict.fromkeys(parts.namelist()):
                copy.writestr(name, changed.get(name) or archive.part(parts, name))
        return out.getvalue()
    except ReadError:
        return data
