"""Text of odt, odp and ods files (OpenDocument 1.2): paragraphs, lists, tables, notes, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from posixpath import normpath
from zipfile import ZipFile

from graphrag_mcp.sources import archive, sheets
from graphrag_mcp.sources.archive import Element, attribute, local, tree
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
    root, about = tree(parts, "content.xml"), tree(parts, "meta.xml")
    if root is None:
        raise ReadError(f"it is damaged, or no {suffix} file")
    if b"manifest:encryption-data" in archive.part(parts, "META-INF/manifest.xml"):
        raise ReadError("it is encrypted with a password")
    body = next((child for child in root if local(child.tag) == "body"), None)
    kind = next(iter(body), None) if body is not None else None
    if kind is None:
        raise ReadError(f"it is damaged, or no {suffix} file")
    if local(kind.tag) == "spreadsheet":
        hidden = _hidden_styles(root)
        reader = _Reader(parts, above=_raised_styles([root]))
        tables = (table for table in kind if local(table.tag) == "table")
        yield sheets.written(_sheet(table, hidden, reader) for table in tables)
        yield from reader.not_read
        return
    properties = {
        local(element.tag): (element.text or "").strip()
        for element in (about.iter() if about is not None else ())
    }
    metadata = {"author": properties["creator"]} if properties.get("creator") else {}
    styles = tree(parts, "styles.xml")
    writer = Writer()
    reader = _Reader(parts, above=_raised_styles([root, *([] if styles is None else [styles])]))
    if local(kind.tag) == "presentation":
        hidden = _hidden_styles(root)
        margins = {  # each is given with the first slide that shows it
            attribute(declaration, "name"): "".join(declaration.itertext())
            for declaration in kind
            if local(declaration.tag) in ("header-decl", "footer-decl")
        }
        for number, page in enumerate((page for page in kind if local(page.tag) == "page"), 1):
            if attribute(page, "style-name") in hidden:
                writer.add("(hidden slide)", f"slide {number}")
            shown = (attribute(page, f"use-{name}-name") for name in ("header", "footer"))
            for text in [*reader.page(page), *(margins.pop(name, "") for name in shown)]:
                writer.add(text, f"slide {number}")
    else:
        common = [part for part in styles or () if local(part.tag) == "styles"]
        reader.numbered = _numbered([*common, *root])
        texts = [*reader.blocks(kind), *reader.notes]
        # below the text, whose first line is its title
        texts += [*_margins(styles, "header", reader), *_margins(styles, "footer", reader)]
        for text in texts:
            writer.add(text)
    yield writer.piece(properties.get("title", ""), metadata=metadata)
    yield from reader.not_read


def _margins(styles: Element | None, name: str, reader: _Reader) -> list[str]:
    """Headers or footers of the master pages, each once."""
    found = (
        element
        for element in (styles.iter() if styles is not None else ())
        if local(element.tag).startswith(name)
    )
    texts = (
        "\n\n".join(reader.blocks(element))
        for element in found
        if not local(element.tag).endswith(("style", "properties"))
    )
    return list(dict.fromkeys(text for text in texts if text))


def _numbered(parts: Iterable[Element]) -> dict[str, dict[int, int]]:
    """Style of lists -> level from 0 -> number of the first item. Levels with letters, with Roman numbers
    or with the numbers of the levels above are left out."""
    styles: dict[str, dict[int, int]] = {}
    for style in (style for part in parts for style in part if local(style.tag) == "list-style"):
        levels = styles[attribute(style, "name")] = {}  # one of the content hides a common one
        for level in style:
            number, start = attribute(level, "level"), attribute(level, "start-value") or "1"
            if (
                local(level.tag) == "list-level-style-number"
                and attribute(level, "num-format") == "1"
                and attribute(level, "display-levels") in ("", "1")
                and not any(map(str.isalnum, attribute(level, "num-prefix")))
                and _INTEGER.fullmatch(number)
                and _INTEGER.fullmatch(start)
            ):
                levels[int(number) - 1] = int(start)
    return styles


def _next(item: Element, count: _Count, level: int, first: int) -> int | None:
    """Count an item. One that holds a list alone is the rest of the item before it and has no number."""
    start = attribute(item, "start-value")
    if not any(local(part.tag) in ("p", "h") for part in item):
        count[level] = None if start else count.get(level)
        return None
    for below in [below for below in count if below > level]:
        del count[below]
    before = count.get(level, first - 1)
    if _INTEGER.fullmatch(start):
        count[level] = int(start)
    else:
        count[level] = None if before is None or start else before + 1
    return count[level]


def _rows(table: Element) -> Iterator[Element]:
    """The rows of a table, none of those of tables in its cells."""
    for child in table:
        if local(child.tag) == "table-row":
            yield child
        elif local(child.tag) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(child)


_Count = dict[int, "int | None"]  # level from 0 -> number of its last item; None: not certain


@dataclass
class _Reader:
    """`parts`: the file, for the charts in it; None inside of one."""

    parts: ZipFile | None
    notes: list[str] = field(default_factory=list)
    not_read: list[NotRead] = field(default_factory=list)  # charts
    after: list[str] = field(default_factory=list)  # tables and charts in the open paragraph
    numbered: dict[str, dict[int, int]] = field(default_factory=dict)  # as _numbered has them
    counts: dict[str, _Count] = field(default_factory=dict)  # of the lists, by their ids
    above: frozenset[str] = frozenset()  # styles of raised text
    last: tuple[str, _Count] = ("", {})  # style and count of the list before

    def blocks(self, parent: Iterable[Element]) -> list[str]:
        texts: list[str] = []
        for element in parent:
            kind = local(element.tag)
            if kind in ("p", "h"):
                text, *after = self.paragraph(element)
                level = attribute(element, "outline-level")
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
        for notes in (child for child in page if local(child.tag) == "notes"):
            if text := "\n\n".join(self.blocks(notes)):
                yield f"Notes: {text}"
        yield from self.notes
        self.notes = []

    def listed(
        self, element: Element, level: int, style: str = "", count: _Count | None = None
    ) -> str:
        """A list with a line for each paragraph, the first of an item with its number or a bullet. Where
        the number is not certain it is a bullet."""
        lines: list[str] = []
        style = attribute(element, "style-name") or style
        first = self.numbered.get(style, {}).get(level)
        if count is None:
            count = self.count(element, style)
        elif level in count and attribute(element, "continue-numbering") != "true":
            count[level] = None  # a second list below one item: programs go on, or begin again
        for item in element:
            mark = "- "
            if local(item.tag) == "list-item":
                number = _next(item, count, level, first or 1)
                mark = "- " if first is None or number is None else f"{number}. "
            indent = " " * len(mark) if mark != "- " else mark
            for part in item:
                if local(part.tag) == "list":
                    lines.append(self.listed(part, level + 1, style, count))
                elif local(part.tag) in ("p", "h"):
                    words, *after = self.paragraph(part)
                    lines += ["  " * min(level, 8) + mark + words, *after]
                    mark = indent
                else:
                    lines += self.blocks([part])
        return "\n".join(lines)

    def count(self, element: Element, style: str) -> _Count:
        """What an outermost list counts on from."""
        count: _Count = {}
        if continued := attribute(element, "continue-list"):
            count = self.counts.get(continued, {0: None})
        elif attribute(element, "continue-numbering") == "true":
            count = self.last[1] if self.last[0] == style else {0: None}
        self.last = style, count
        self.counts[attribute(element, "id")] = count
        return count

    def table(self, element: Element) -> str:
        rows = [self.row(row) for row in _rows(element)]
        return table_text([row for row in grid(rows) if any(row)])

    def row(self, row: Element) -> list[tuple[str, int, int]]:
        cells = []
        for cell in row:
            if local(cell.tag) == "table-cell":
                wide, tall = (attribute(cell, f"number-{of}-spanned") for of in ("columns", "rows"))
                cells.append((" ".join(self.blocks(cell)), int(wide or 1), int(tall or 1)))
        return cells

    def inline(self, element: Element) -> str:
        parts = [_SPACE.sub(" ", element.text or "")]
        for child in element:
            kind = local(child.tag)
            if kind == "s":
                count = attribute(child, "c")
                parts.append(" " * min(int(count) if count.isdigit() else 1, 100))
            elif kind == "tab":
                parts.append("\t")
            elif kind == "line-break":
                parts.append("\n")
            elif kind == "note":
                body = next((x for x in child if local(x.tag) == "note-body"), None)
                mark = next(
                    ("".join(x.itertext()) for x in child if local(x.tag) == "note-citation"), ""
                )
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
                parts.append(
                    raised(words) if attribute(child, "style-name") in self.above else words
                )
            parts.append(_SPACE.sub(" ", child.tail or ""))
        return "".join(parts)

    def comment(self, element: Element) -> str:
        who = next(("".join(x.itertext()) for x in element if local(x.tag) == "creator"), "")
        words = self.blocks(child for child in element if local(child.tag) in ("p", "list"))
        text = " ".join(" ".join(words).split())
        return f"Comment ({who}): {text}" if who else f"Comment: {text}"

    def drawn(self, element: Element) -> list[str]:
        """The words of a frame or a shape; of a picture its title and description."""
        texts = ("".join(x.itertext()) for x in element if local(x.tag) in ("title", "desc"))
        about = ": ".join(dict.fromkeys(filter(None, map(str.strip, texts))))
        return self.blocks(element) or ([f"[image: {about}]"] if about else [])

    def chart(self, element: Element) -> list[str]:
        """The titles and the table of a chart, which is a document of its own in the file."""
        path = normpath(attribute(element, "href"))
        root = None
        if self.parts is not None:
            try:
                root = tree(self.parts, f"{path}/content.xml")
            except ReadError as error:
                self.not_read.append(NotRead(path, str(error)))
        return _Reader(None).blocks(root) if root is not None else self.blocks(element)


def _raised_styles(roots: Iterable[Element]) -> frozenset[str]:
    """Styles of text above the line: `super 58%` or `33% 58%`."""
    return frozenset(
        attribute(style, "name")
        for root in roots
        for style in root.iter()
        if local(style.tag) == "style"
        for child in style
        if re.match("super|[1-9]", attribute(child, "text-position"))
    )


def _hidden_styles(root: Element) -> set[str]:
    """Styles of sheets and of slides that are not shown."""
    hidden = set()
    for style in (style for style in root.iter() if local(style.tag) == "style"):
        if any(
            attribute(child, "display") == "false" or attribute(child, "visibility") == "hidden"
            for child in style
        ):
            hidden.add(attribute(style, "name"))
    return hidden


def _sheet(element: Element, hidden: set[str], reader: _Reader) -> sheets.Sheet:
    sheet = sheets.Sheet(attribute(element, "name"), attribute(element, "style-name") in hidden)
    number = 1
    for shapes in (child for child in element if local(child.tag) == "shapes"):
        sheet.texts += reader.blocks(shapes)
    for row in _rows(element):
        times, cells, column = _times(row, "number-rows-repeated"), {}, 0
        for cell in row:
            if local(cell.tag) not in ("table-cell", "covered-table-cell"):
                continue
            wide = _times(cell, "number-columns-repeated")
            drawn = [child for child in cell if local(child.tag) in _DRAWN]
            text = " ".join(reader.blocks(child for child in cell if child not in drawn))
            sheet.texts += reader.blocks(drawn)
            text = text or next(filter(None, (attribute(cell, name) for name in _VALUES)), "")
            if not text and (formula := attribute(cell, "formula")):
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
    value = attribute(element, name)
    return max(1, min(int(value), sheets.ROWS)) if value.isdigit() else 1
