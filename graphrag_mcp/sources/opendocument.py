"""Text of odt, odp and ods files (OpenDocument 1.2): paragraphs, lists, tables, notes, comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from graphrag_mcp.sources import archive, sheets
from graphrag_mcp.sources.archive import Element, attribute, local, tree
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece, Writer, grid, table_text

_REPEATED = 1_000  # cells or rows that one with a text may stand for; empty ones are skipped


def opendocument(data: bytes, suffix: str) -> Iterator[Piece]:
    parts = archive.checked(data, suffix)
    root, about = tree(parts, "content.xml"), tree(parts, "meta.xml")
    if root is None:
        raise ReadError(f"it is damaged, or no {suffix} file")
    if b"manifest:encryption-data" in archive.part(parts, "META-INF/manifest.xml"):
        raise ReadError("it is encrypted with a password")
    body = next((one for one in root if local(one.tag) == "body"), None)
    kind = next(iter(body), None) if body is not None else None
    if kind is None:
        raise ReadError(f"it is damaged, or no {suffix} file")
    if local(kind.tag) == "spreadsheet":
        hidden = _hidden_styles(root)
        yield sheets.written(_sheet(one, hidden) for one in kind if local(one.tag) == "table")
        return
    told = {
        local(one.tag): (one.text or "").strip()
        for one in (about.iter() if about is not None else ())
    }
    metadata = {"author": told["creator"]} if told.get("creator") else {}
    writer, reader = Writer(), _Reader()
    if local(kind.tag) == "presentation":
        for number, page in enumerate((one for one in kind if local(one.tag) == "page"), 1):
            for text in reader.page(page):
                writer.add(text, f"slide {number}")
    else:
        styles = tree(parts, "styles.xml")
        for text in _margins(styles, "header", reader):
            writer.add(text)
        for text in [*reader.blocks(kind), *reader.notes]:
            writer.add(text)
        for text in _margins(styles, "footer", reader):
            writer.add(text)
    yield writer.piece(told.get("title", ""), metadata=metadata)


def _margins(styles: Element | None, name: str, reader: _Reader) -> list[str]:
    """Headers or footers of the master pages, each once."""
    found = (
        one
        for one in (styles.iter() if styles is not None else ())
        if local(one.tag).startswith(name)
    )
    texts = (
        "\n\n".join(reader.blocks(one))
        for one in found
        if not local(one.tag).endswith(("style", "properties"))
    )
    return list(dict.fromkeys(text for text in texts if text))


@dataclass
class _Reader:
    notes: list[str] = field(default_factory=list)

    def blocks(self, parent: Element) -> list[str]:
        texts: list[str] = []
        for element in parent:
            kind = local(element.tag)
            if kind == "h":
                level = attribute(element, "outline-level")
                texts.append(
                    "#" * min(int(level) if level.isdigit() else 1, 6) + " " + self.inline(element)
                )
            elif kind == "p":
                texts.append(self.inline(element))
            elif kind == "list":
                texts.append(self.listed(element, 0))
            elif kind == "table":
                texts.append(self.table(element))
            elif kind not in ("tracked-changes", "sequence-decls", "forms", "notes"):
                texts += self.blocks(element)
        return [text for text in texts if text.strip()]

    def page(self, page: Element) -> Iterator[str]:
        yield from self.blocks(page)
        for notes in (one for one in page if local(one.tag) == "notes"):
            if said := "\n\n".join(self.blocks(notes)):
                yield f"Notes: {said}"
        yield from self.notes
        self.notes = []

    def listed(self, element: Element, level: int) -> str:
        lines: list[str] = []
        for item in element:
            for part in item:
                if local(part.tag) == "list":
                    lines.append(self.listed(part, level + 1))
                elif local(part.tag) in ("p", "h"):
                    lines.append("  " * min(level, 8) + "- " + self.inline(part))
        return "\n".join(lines)

    def table(self, element: Element) -> str:
        rows = [self.row(one) for one in element.iter() if local(one.tag) == "table-row"]
        return table_text([row for row in grid(rows) if any(row)])

    def row(self, row: Element) -> list[tuple[str, int, int]]:
        cells = []
        for cell in row:
            if local(cell.tag) == "table-cell":
                wide, tall = (
                    attribute(cell, "number-columns-spanned"),
                    attribute(cell, "number-rows-spanned"),
                )
                cells.append((" ".join(self.blocks(cell)), int(wide or 1), int(tall or 1)))
        return cells

    def inline(self, element: Element) -> str:
        parts = [element.text or ""]
        for one in element:
            kind = local(one.tag)
            if kind == "s":
                count = attribute(one, "c")
                parts.append(" " * min(int(count) if count.isdigit() else 1, 100))
            elif kind == "tab":
                parts.append("\t")
            elif kind == "line-break":
                parts.append("\n")
            elif kind == "note":
                body = next((x for x in one if local(x.tag) == "note-body"), None)
                mark = next(
                    ("".join(x.itertext()) for x in one if local(x.tag) == "note-citation"), ""
                )
                if body is not None:
                    self.notes.append(f"Note {mark}: {' '.join(self.blocks(body))}")
            elif kind == "annotation":
                who = next(("".join(x.itertext()) for x in one if local(x.tag) == "creator"), "")
                said = " ".join("".join(x.itertext()) for x in one if local(x.tag) in ("p", "list"))
                self.notes.append(f"Comment ({who}): {said}" if who else f"Comment: {said}")
            elif kind in ("frame", "custom-shape", "text-box", "image", "object", "g"):
                inner = " ".join(self.blocks(one))
                said = next(
                    ("".join(x.itertext()) for x in one if local(x.tag) in ("title", "desc")), ""
                )
                parts.append(inner or (f"[image: {said.strip()}]" if said.strip() else ""))
            else:
                parts.append(self.inline(one))
            parts.append(one.tail or "")
        return "".join(parts)


def _hidden_styles(root: Element) -> set[str]:
    hidden = set()
    for style in (one for one in root.iter() if local(one.tag) == "style"):
        if any(attribute(one, "display") == "false" for one in style):
            hidden.add(attribute(style, "name"))
    return hidden


def _sheet(element: Element, hidden: set[str]) -> sheets.Sheet:
    sheet = sheets.Sheet(attribute(element, "name"), attribute(element, "style-name") in hidden)
    reader, number = _Reader(), 1
    for row in (one for one in element.iter() if local(one.tag) == "table-row"):
        times, cells, column = _times(row, "number-rows-repeated"), {}, 0
        for cell in row:
            if local(cell.tag) not in ("table-cell", "covered-table-cell"):
                continue
            wide = _times(cell, "number-columns-repeated")
            text = " ".join(reader.blocks(cell))
            if not text and (formula := attribute(cell, "formula")):
                text = attribute(cell, "value") or "=" + formula.partition("=")[2]
            for at in range(column, column + min(wide, _REPEATED) if text else column):
                cells[at] = text
            for note in reader.notes:
                sheet.notes.append((f"{sheets.column_name(column)}{number}", note))
            reader.notes = []
            column += wide
        for at in range(number, number + min(times, _REPEATED) if cells else number):
            sheet.rows[at] = dict(cells)
        number += times
    return sheet


def _times(element: Element, name: str) -> int:
    value = attribute(element, name)
    return max(1, min(int(value), sheets.ROWS)) if value.isdigit() else 1
