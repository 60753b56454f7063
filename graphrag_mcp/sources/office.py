"""Text of docx, pptx, doc, ppt and xls files, by office-oxide and xlrd.

Runs in the parser's process only (parser_child.py). What a file would unpack to is added up first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from graphrag_mcp.sources import archive, word
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import NotRead, Piece, Writer, borne, grid, in_font, parser, raised, table_text
from graphrag_mcp.sources.sheets import Sheet, old_sheets, written
from graphrag_mcp.sources.word import NUMBERED
from graphrag_mcp.sources.word_lists import counted

_UNSEEN = frozenset(("thumbnail", "page_break", "column_break", "horizontal_rule"))

Node = Mapping[str, Any]
Kind = Literal["docx", "pptx", "doc", "ppt", "xls"]
# What office-oxide writes in place of text that it leaves out.
_CUT = re.compile(r"\[(?:nested tables? deeper than|output truncated:) ")
PLACED = 4_000_000  # bytes of an xls file: 2 MB of cells take xlrd 8 s


# Suffix -> what office-oxide calls its format.
KINDS: dict[str, Kind] = {
    **dict.fromkeys("docx docm dotx dotm".split(), "docx"),
    **dict.fromkeys("pptx pptm potx potm ppsx ppsm".split(), "pptx"),
    **dict.fromkeys("doc dot".split(), "doc"),
    **dict.fromkeys("ppt pps".split(), "ppt"),
}


def _read(data: bytes, suffix: str, kind: Kind) -> Node:
    """What office-oxide finds; ReadError for a file that is damaged, or has a password."""
    import office_oxide

    if kind in ("docx", "pptx"):
        parts = archive.checked(data, suffix)
        data = word.rewritten(parts, data) if kind == "docx" else data
    elif not data.startswith((b"\xd0\xcf\x11\xe0", b"\x09")):  # or Excel before 5.0
        raise ReadError(f"it is damaged, or no {suffix} file")
    try:
        return office_oxide.Document.from_bytes(data, kind).to_ir()
    except Exception as error:  # whatever the library says of bytes that it does not expect
        locked = "encrypt" in str(error).lower() or "password" in str(error).lower()
        reason = "it is encrypted with a password" if locked else f"it is damaged, or no {suffix} file"
        raise ReadError(reason) from error


def xls(data: bytes, suffix: str) -> Iterator[Piece]:
    """Sheets with cells as places and values as they are shown, by xlrd; those that it cannot read,
    and large files, without. xlrd takes ten times as long as office-oxide, and knows no charts."""
    found = _read(data, suffix, "xls")
    metadata: dict[str, Any] = {"parser": parser("office-oxide")}
    if author := str(found.get("metadata", {}).get("author") or "").strip():
        metadata["author"] = author
    sections = found.get("sections", ())
    read = old_sheets(data) if len(data) <= PLACED else None
    if read is not None:
        sections = [section for section in sections if not section.get("sheet_kind")]
        metadata["parser"] = parser("xlrd")
    piece = written([*(read or ()), *map(_sheet, sections)])
    yield replace(piece, metadata=metadata)


def _sheet(section: Node) -> Sheet:
    """A sheet, or the texts of charts, without the places of cells."""
    texts = [text for text in _section(section, set()) if text]
    return Sheet(str(section.get("title") or ""), bool(section.get("hidden")), texts=texts)


def office(data: bytes, suffix: str) -> Iterator[Piece | NotRead]:
    """docx, pptx, doc, ppt: what office-oxide finds, as plain text."""
    kind = KINDS[suffix]
    found = _read(data, suffix, kind)
    slides = kind in ("pptx", "ppt")
    writer, seen = Writer(), set[str]()
    for number, section in enumerate(found.get("sections", ()), 1):
        place = f"slide {number}" if slides else ""
        for text in _section(section, seen):
            writer.add(text.replace(NUMBERED, " "), place)
    metadata: dict[str, Any] = {"parser": parser("office-oxide")}
    properties = found.get("metadata", {})
    if author := str(properties.get("author") or "").strip():
        metadata["author"] = author
    if slides:
        metadata["slides"] = len(found.get("sections", ()))
    title = borne(str(properties.get("title") or ""), "\n".join(writer.parts[:2]))
    yield writer.piece(title, metadata=metadata)
    if properties.get("text_truncated") or any(map(_CUT.search, writer.parts)):
        yield NotRead("", "a part of its text: it is too long, or stands in over 100 tables in tables")


def _section(section: Node, seen: set[str]) -> Iterator[str]:
    """The texts of a section, or a slide, in reading order. `seen`: headers and footers
    that were given already."""
    notes: list[str] = []
    if section.get("hidden") and not section.get("sheet_kind"):
        yield "(hidden slide)"
    for element in section.get("elements", ()):
        yield _block(element, notes)
    yield from notes
    if text := "\n\n".join(_block(node, []) for node in section.get("speaker_notes", ()) or ()):
        yield f"Notes: {text}"
    for name in ("header", "first_page_header", "even_page_header", "footer", "first_page_footer", "even_page_footer"):
        yield from _once(section.get(name), seen)


def _once(part: Node | None, seen: set[str]) -> Iterator[str]:
    text = _blocks((part or {}).get("content", ()), [])
    if text and text not in seen:
        seen.add(text)
        yield text


def _blocks(nodes: Sequence[Node], notes: list[str], gap: str = "\n\n") -> str:
    return gap.join(text for text in (_block(node, notes) for node in nodes) if text)


def _block(node: Node, notes: list[str]) -> str:
    """The text of an element; footnotes, endnotes and comments are put into `notes`."""
    kind = node.get("type", "")
    content = node.get("content") or ()
    if kind in _UNSEEN:
        return ""
    if kind == "heading":
        return "#" * max(1, min(int(node.get("level") or 1), 6)) + " " + _inline(content).strip()
    if kind == "list":
        return _list(node, notes)
    if kind == "table":
        rows = (
            [
                (_blocks(cell.get("content") or (), notes, " "), cell.get("col_span") or 1, cell.get("row_span") or 1)
                for cell in row.get("cells", ())
            ]
            for row in node.get("rows", ())
        )
        return table_text([row for row in grid(rows) if any(row)])
    if kind in ("footnote", "endnote", "comment"):
        mark = node.get("marker") or (f"Comment ({node['author']})" if node.get("author") else "")
        mark = mark or f"Note {node.get('id', '')}".strip()
        notes.append(f"{mark}: {_blocks(content, notes, ' ')}")
        return ""
    if kind in ("image", "picture"):
        text = str(node.get("alt_text") or node.get("alt") or node.get("description") or "").strip()
        return f"[image: {text}]" if text else ""
    if all(isinstance(child, Mapping) and child.get("type") in _INLINE for child in content):
        return _inline(content).strip()
    inner = [*content, *(node.get("elements") or ()), *(node.get("items") or ())]
    return _blocks([child for child in inner if isinstance(child, Mapping)], notes)


def _list(node: Node, notes: list[str]) -> str:
    indent = "  " * min(int(node.get("level") or 0), 8)
    lines = []
    for number, item in enumerate(node.get("items", ()), int(node.get("start_number") or 1)):
        mark = f"{counted(number, str(node.get('style')))}." if node.get("ordered") else "-"
        text = _blocks(item.get("content") or (), notes, "\n").replace("\n", f"\n{indent}  ")
        label, numbered, words = text.partition(NUMBERED)
        mark, text = (label, words) if numbered and "\n" not in label else (mark, text)
        lines.append(f"{indent}{mark} {text}")
        nested = item.get("nested") or item.get("children")
        for inner in nested if isinstance(nested, list) else [nested] if nested else []:
            below = dict(inner)
            below["level"] = int(node.get("level") or 0) + 1
            lines.append(_list(below, notes))
    return "\n".join(lines)


_INLINE = frozenset(
    "text line_break tab footnote_ref endnote_ref comment_ref comment_start comment_end image bookmark".split()
)


def _inline(nodes: Sequence[Node]) -> str:
    parts: list[str] = []
    above = ""  # raised text, which several runs may hold
    for node in [*nodes, {}]:
        kind = node.get("type")
        text = in_font(str(node.get("text", "")), str(node.get("font_name")))
        if kind == "text" and node.get("vertical_align") == "superscript":
            above += text
            continue
        if above:
            parts.append(raised(above))
            above = ""
        if kind == "text":
            parts.append(text)
        elif kind == "line_break":
            parts.append("\n")
        elif kind == "tab":
            parts.append("\t")
        elif kind == "image":
            parts.append(_block(node, []))
        elif isinstance(node.get("content"), list):
            parts.append(_inline(node["content"]))
    return "".join(parts)
