"""Text of odt, odp and ods files (OpenDocument 1.2): paragraphs, lists, tables, notes, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import normpath
from zipfile import ZipFile

from graphrag_mcp.sources import archive, sheets
from graphrag_mcp.sources.archive import Element, tree
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import NotRead, Piece, Writer, grid, raised, table_text

_DRAWN = frozenset("frame custom-shape text-box image object g".split())
_IMAGE = re.compile(r"\[image: [^\]]*\]")
_SPACE = re.compile(r"[ \t\r\n]+")  # one space (part 1, 6.1.2)
_REFERENCE = re.compile(r"\[([^\[\]]*)\]")
_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")
_INTEGER = re.compile("[0-9]{1,6}")
_REPEATED = 1_000  # cells or rows that one with a text may stand for; empty ones are skipped


def opendocument(data: bytes, suffix: str) -> Iterator[Piece | NotRead]:
    """A text, sheet or presentation of OpenDocument. ReadError for a damaged or an encrypted one."""
    parts = archive.checked(data, suffix)
    root, meta = tree(parts, "content.xml"), tree(parts, "meta.xml")
    if b"manifest:encryption-data" in archive.part(parts, "META-INF/manifest.xml"):
        raise ReadError("it is encrypted with a password")
    kind = root.find("body/*")
    if kind is None:
        raise ReadError(f"it is damaged, or no {suffix} file")
    styles = tree(parts, "styles.xml")
    reader = _Reader(parts, above=_raised_styles([root, styles]))
    hidden = _hidden_styles(root)
    if kind.tag == "spreadsheet":
        yield sheets.written(_sheet(table, hidden, reader) for table in kind.iterfind("table"))
        yield from reader.not_read
        return
    writer = Writer()
    if kind.tag == "presentation":
        margins = {  # each is given with the first slide that shows it
            element.get("name", ""): "".join(element.itertext())
            for name in ("header-decl", "footer-decl")
            for element in kind.iterfind(name)
        }
        for number, page in enumerate(kind.iterfind("page"), 1):
            if page.get("style-name", "") in hidden:
                writer.add("(hidden slide)", f"slide {number}")
            shown = (page.get(f"use-{name}-name", "") for name in ("header", "footer"))
            for text in [*reader.page(page), *(margins.pop(name, "") for name in shown)]:
                writer.add(text, f"slide {number}")
    else:
        # of two styles of one name that of the content counts, which stands below the common ones
        reader.numbered = _numbered([*styles.iterfind("styles/list-style"), *root.iterfind("*/list-style")])
        # headers and footers below the text, whose first line is its title, each once
        margins_of = [
            "\n\n".join(reader.blocks(element))
            for name in ("header", "footer")
            for element in styles.iter()
            if element.tag in (name, f"{name}-left", f"{name}-first")
        ]
        for text in [*reader.blocks(kind), *reader.notes, *dict.fromkeys(margins_of)]:
            writer.add(text)
    about = {x.tag: (x.text or "").strip() for x in meta.iter()}
    author = about.get("creator", "")
    yield writer.piece(about.get("title", ""), metadata={"author": author} if author else {})
    yield from reader.not_read


def _numbered(styles: Iterable[Element]) -> dict[str, dict[int, int]]:
    """Style of lists -> level from 0 -> number of the first item. Levels with letters, with Roman numbers
    or with the numbers of the levels above are left out."""
    numbered: dict[str, dict[int, int]] = {}
    for style in styles:
        levels = numbered[style.get("name", "")] = {}
        for level in style.iterfind("list-level-style-number[@num-format='1']"):
            number, start = level.get("level", ""), level.get("start-value") or "1"
            plain = not any(map(str.isalnum, level.get("num-prefix", "")))
            if (
                plain
                and level.get("display-levels", "1") == "1"
                and _INTEGER.fullmatch(number)
                and _INTEGER.fullmatch(start)
            ):
                levels[int(number) - 1] = int(start)
    return numbered


def _rows(table: Element) -> Iterator[Element]:
    """The rows of a table, none of those of tables in its cells."""
    for child in table:
        if child.tag == "table-row":
            yield child
        elif child.tag in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(child)


@dataclass
class _Reader:
    """`parts`: the file, for the charts in it; None inside of one."""

    parts: ZipFile | None
    notes: list[str] = field(default_factory=list)
    not_read: list[NotRead] = field(default_factory=list)  # charts
    after: list[str] = field(default_factory=list)  # tables and charts in the open paragraph
    numbered: dict[str, dict[int, int]] = field(default_factory=dict)  # as _numbered has them
    following: dict[tuple[str, int], int] = field(default_factory=dict)  # next number of a style and a level
    above: frozenset[str] = frozenset()  # styles of raised text

    def blocks(self, parent: Iterable[Element]) -> list[str]:
        texts: list[str] = []
        for element in parent:
            kind = element.tag
            if kind in ("p", "h"):
                text, *after = self.paragraph(element)
                level = element.get("outline-level", "")
                mark = "#" * min(int(level) if level.isdigit() else 1, 6)
                texts += [f"{mark} {text}" if kind == "h" else text, *after]
            elif kind == "list":
                texts.append(self.listed(element, 0))
            elif kind == "table":
                texts.append(self.table(element))
            elif kind == "annotation":
                self.notes.append(self.comment(element))
            elif kind == "object":
                texts += self.chart(element)
            elif kind in _DRAWN:
                texts += self.drawn(element)
            elif kind not in ("tracked-changes", "sequence-decls", "forms", "notes"):
                texts += self.blocks(element)
        return [text for text in texts if text.strip()]

    def paragraph(self, element: Element) -> list[str]:
        """The words of a paragraph or heading, and what stands in it that is no part of a line."""
        outer, self.after = self.after, []
        text = self.inline(element)
        after, self.after = self.after, outer
        return [text, *after]

    def page(self, page: Element) -> Iterator[str]:
        yield from self.blocks(page)
        for notes in page.iterfind("notes"):
            if text := "\n\n".join(self.blocks(notes)):
                yield f"Notes: {text}"
        yield from self.notes
        self.notes = []

    def listed(self, element: Element, level: int, style: str = "", sure: bool = True) -> str:
        """A list with a line for each paragraph, the first of an item with its number or a bullet. It may go on from
        the last one of its style. One that is not `sure` has bullets."""
        style = element.get("style-name", style)
        number = self.numbered.get(style, {}).get(level, 0) if sure else 0
        if number and (element.get("continue-list") or element.get("continue-numbering") == "true"):
            number = self.following.get((style, level), number)
        lines: list[str] = []
        for item in element:
            mark, inner = "- ", 0
            # an item that holds a list alone is the rest of the one before it
            if number and item.tag == "list-item" and any(x.tag in ("p", "h") for x in item):
                start = item.get("start-value", "")
                number = int(start) if _INTEGER.fullmatch(start) else number
                mark, number = f"{number}. ", number + 1
            indent = " " * len(mark) if mark != "- " else mark
            for part in item:
                if part.tag == "list":  # of a second one programs go on, or begin again
                    lines.append(self.listed(part, level + 1, style, sure and not inner))
                    inner += 1
                elif part.tag in ("p", "h"):
                    words, *after = self.paragraph(part)
                    lines += ["  " * min(level, 8) + mark + words, *after]
                    mark = indent
                else:
                    lines += self.blocks([part])
        self.following[style, level] = number
        return "\n".join(lines)

    def table(self, element: Element) -> str:
        rows = [self.row(row) for row in _rows(element)]
        return table_text([row for row in grid(rows) if any(row)])

    def row(self, row: Element) -> list[tuple[str, int, int]]:
        cells = []
        for cell in row.iterfind("table-cell"):
            wide, tall = (cell.get(f"number-{of}-spanned") or 1 for of in ("columns", "rows"))
            cells.append((" ".join(self.blocks(cell)), int(wide), int(tall)))
        return cells

    def inline(self, element: Element) -> str:
        parts = [_SPACE.sub(" ", element.text or "")]
        for child in element:
            kind = child.tag
            if kind == "s":
                count = child.get("c", "")
                parts.append(" " * min(int(count) if count.isdigit() else 1, 100))
            elif kind == "tab":
                parts.append("\t")
            elif kind == "line-break":
                parts.append("\n")
            elif kind == "note":
                body = next((x for x in child if x.tag == "note-body"), None)
                mark = next(("".join(x.itertext()) for x in child if x.tag == "note-citation"), "")
                if body is not None:
                    self.notes.append(f"Note {mark}: {' '.join(self.blocks(body))}")
            elif kind == "annotation":
                self.notes.append(self.comment(child))
            elif kind in _DRAWN:
                drawn = self.drawn(child)
                if len(drawn) == 1 and _IMAGE.fullmatch(drawn[0]):
                    parts.append(drawn[0])
                else:  # a caption, a box: no part of the paragraph at which it is anchored
                    self.after += drawn
            elif kind != "ruby-text":  # how the word before it is read aloud
                words = self.inline(child)
                parts.append(raised(words) if child.get("style-name", "") in self.above else words)
            parts.append(_SPACE.sub(" ", child.tail or ""))
        return "".join(parts)

    def comment(self, element: Element) -> str:
        who = _said(element.find("creator"))
        words = self.blocks(child for child in element if child.tag in ("p", "list"))
        text = " ".join(" ".join(words).split())
        return f"Comment ({who}): {text}" if who else f"Comment: {text}"

    def drawn(self, element: Element) -> list[str]:
        """The words of a frame or a shape; of a picture its title and description."""
        texts = (_said(x).strip() for x in element if x.tag in ("title", "desc"))
        about = ": ".join(dict.fromkeys(filter(None, texts)))
        return self.blocks(element) or ([f"[image: {about}]"] if about else [])

    def chart(self, element: Element) -> list[str]:
        """The titles and the table of a chart, which is a document of its own in the file."""
        path = normpath(element.get("href", ""))
        try:
            root = tree(self.parts, f"{path}/content.xml") if self.parts else element
        except ReadError as error:
            self.not_read.append(NotRead(path, str(error)))
            root = element
        return _Reader(None).blocks(root) if len(root) and root is not element else self.blocks(element)


def _said(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext())


def _raised_styles(roots: Iterable[Element]) -> frozenset[str]:
    """Styles of text above the line: `super 58%` or `33% 58%`."""
    return frozenset(
        style.get("name", "")
        for root in roots
        for style in root.iter("style")
        if any(re.match("super|[1-9]", child.get("text-position", "")) for child in style)
    )


def _hidden_styles(root: Element) -> frozenset[str]:
    """Styles of sheets and of slides that are not shown."""
    return frozenset(
        style.get("name", "")
        for style in root.iter("style")
        for child in style
        if child.get("display") == "false" or child.get("visibility") == "hidden"
    )


def _sheet(element: Element, hidden: frozenset[str], reader: _Reader) -> sheets.Sheet:
    sheet = sheets.Sheet(element.get("name", ""), element.get("style-name", "") in hidden)
    number = 1
    for shapes in element.iterfind("shapes"):
        sheet.texts += reader.blocks(shapes)
    for row in _rows(element):
        times, cells, column = _times(row, "number-rows-repeated"), {}, 0
        for cell in row:
            if cell.tag not in ("table-cell", "covered-table-cell"):
                continue
            wide = _times(cell, "number-columns-repeated")
            drawn = [child for child in cell if child.tag in _DRAWN]
            text = " ".join(reader.blocks(child for child in cell if child not in drawn))
            sheet.texts += reader.blocks(drawn)
            text = text or next(filter(None, (cell.get(name, "") for name in _VALUES)), "")
            if not text and (formula := cell.get("formula", "")):
                text = "=" + _REFERENCE.sub(_cells, formula.partition("=")[2])
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


def _cells(reference: re.Match[str]) -> str:
    """`A2:A3` for `[.A2:.A3]`, as a formula is shown."""
    return ":".join(cell.removeprefix(".") for cell in reference[1].split(":"))


def _times(element: Element, name: str) -> int:
    value = element.get(name, "")
    return max(1, min(int(value), sheets.ROWS)) if value.isdigit() else 1
