"""Text of docx, pptx, doc, ppt and xls files, by office-oxide.

Runs in the parser's process only (parser_child.py). What a file would unpack to is added up first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece, Writer, grid, parser, table_text

_UNSEEN = frozenset(("thumbnail", "page_break", "column_break", "horizontal_rule"))

Node = Mapping[str, Any]


# What office-oxide calls the format of a suffix.
_KINDS: dict[str, Literal["docx", "pptx", "doc", "ppt", "xls"]] = {
    "docx": "docx",
    "docm": "docx",
    "pptx": "pptx",
    "pptm": "pptx",
    "doc": "doc",
    "dot": "doc",
    "ppt": "ppt",
    "pps": "ppt",
    "xls": "xls",
}


def office(data: bytes, suffix: str) -> Iterator[Piece]:
    """docx, pptx, doc, ppt, xls: what office-oxide finds, as plain text."""
    import office_oxide

    if suffix in ("docx", "pptx", "docm", "pptm"):
        archive.checked(data, suffix)
    elif not data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError(f"it is damaged, or no {suffix} file")
    kind = _KINDS[suffix]
    try:
        found = office_oxide.Document.from_bytes(data, kind).to_ir()
    except Exception as error:  # whatever the library says of bytes that it does not expect
        locked = "encrypt" in str(error).lower() or "password" in str(error).lower()
        reason = (
            "it is encrypted with a password" if locked else f"it is damaged, or no {suffix} file"
        )
        raise ReadError(reason) from error
    slides = kind in ("pptx", "ppt")
    writer, seen = Writer(), set[str]()
    for number, section in enumerate(found.get("sections", ()), 1):
        place = f"slide {number}" if slides else ""
        for text in _section(section, kind, seen):
            writer.add(text, place)
    metadata: dict[str, Any] = {"parser": parser("office-oxide")}
    told = found.get("metadata", {})
    if author := str(told.get("author") or "").strip():
        metadata["author"] = author
    if told.get("text_truncated"):
        metadata["not_read"] = "a part of its text"
    if slides:
        metadata["slides"] = len(found.get("sections", ()))
    title = str(told.get("title") or "")
    borne = (
        "".join(title.split()).casefold() in "".join("".join(writer.parts[:2]).split()).casefold()
    )
    yield writer.piece(
        title if borne and kind != "xls" else "", metadata=metadata, prose=kind != "xls"
    )


def _section(section: Node, kind: str, seen: set[str]) -> Iterator[str]:
    """The texts of a section, a slide or a sheet, in reading order. `seen`: headers and footers
    that were given already."""
    notes: list[str] = []
    hidden = " (hidden)" if section.get("hidden") else ""
    if kind == "xls":
        yield f"## {section.get('title', '')}{hidden}"
    elif hidden:
        yield "(hidden slide)"
    for element in section.get("elements", ()):
        yield _block(element, notes)
    yield from notes
    if said := "\n\n".join(_block(one, []) for one in section.get("speaker_notes", ()) or ()):
        yield f"Notes: {said}"
    for name in (
        "header",
        "first_page_header",
        "even_page_header",
        "footer",
        "first_page_footer",
        "even_page_footer",
    ):
        yield from _once(section.get(name), seen)


def _once(part: Node | None, seen: set[str]) -> Iterator[str]:
    text = _blocks((part or {}).get("content", ()), [])
    if text and text not in seen:
        seen.add(text)
        yield text


def _blocks(nodes: Sequence[Node], notes: list[str], gap: str = "\n\n") -> str:
    return gap.join(text for text in (_block(one, notes) for one in nodes) if text)


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
                (
                    _blocks(cell.get("content") or (), notes, " "),
                    cell.get("col_span") or 1,
                    cell.get("row_span") or 1,
                )
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
        said = str(node.get("alt_text") or node.get("alt") or node.get("description") or "").strip()
        return f"[image: {said}]" if said else ""
    if all(isinstance(one, Mapping) and one.get("type") in _INLINE for one in content):
        return _inline(content).strip()
    inner = [*content, *(node.get("elements") or ()), *(node.get("items") or ())]
    return _blocks([one for one in inner if isinstance(one, Mapping)], notes)


def _list(node: Node, notes: list[str]) -> str:
    indent = "  " * min(int(node.get("level") or 0), 8)
    lines = []
    for number, item in enumerate(node.get("items", ()), int(node.get("start") or 1)):
        mark = f"{number}." if node.get("ordered") else "-"
        text = _blocks(item.get("content") or (), notes, "\n").replace("\n", f"\n{indent}  ")
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
    for node in nodes:
        kind = node.get("type")
        if kind == "text":
            parts.append(str(node.get("text", "")))
        elif kind == "line_break":
            parts.append("\n")
        elif kind == "tab":
            parts.append("\t")
        elif kind == "image":
            parts.append(_block(node, []))
        elif isinstance(node.get("content"), list):
            parts.append(_inline(node["content"]))
    return "".join(parts)
