"""Sheets of xlsx, xls and ods files: values as they are shown, each in its column, with the cells as places.

ECMA-376 part 1 (SpreadsheetML), chapters 18.3 (worksheets) and 18.8.30 (number formats); OpenDocument
1.2 part 1, chapter 9 (tables). A formula without a stored value is shown as the formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from typing import Any
from xml.parsers import expat
from zipfile import ZipFile

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.archive import Element, attribute, local, tree
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece, Writer, blocks, raised, tables
from graphrag_mcp.text.places import column_name, column_number

ROWS, COLUMNS = 1_048_576, 16_384  # of a sheet, as Excel has it
WIDE = 256  # columns from which on empty cells are left out, else a stray cell takes 16,000 bars
_HYPERLINK = re.compile(r'HYPERLINK\("([^"]+)"')
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})\Z")


@dataclass
class Sheet:
    """One sheet of a workbook: its cells as text."""

    name: str
    hidden: bool = False
    # row from 1 -> column from 0 -> text
    rows: dict[int, dict[int, str]] = field(default_factory=dict)
    notes: list[tuple[str, str]] = field(default_factory=list)  # (cell, comment)
    texts: list[str] = field(default_factory=list)  # of boxes and charts on it

    def cells(self, reference: str) -> Iterator[tuple[int, int]]:
        """The row and the column of each cell of a range, as `A1:A9`, in which something stands."""
        first, _, last = reference.partition(":")
        begin, end = _CELL.match(first), _CELL.match(last or first)
        if not begin or not end:
            return
        rows = range(int(begin[2]), int(end[2]) + 1)
        columns = range(column_number(begin[1]), column_number(end[1]) + 1)
        for row in _both(rows, self.rows):
            yield from ((row, column) for column in _both(columns, self.rows[row]))

    def link(self, row: int, column: int, address: str) -> None:
        if column in self.rows.get(row, ()):
            self.rows[row][column] = linked(self.rows[row][column], address)

    def add_note(self, cell: str, text: str, author: str) -> None:
        """A comment, which often begins with the name of its author."""
        text = " ".join(text.split())
        text = text.removeprefix(f"{author}:").strip() if author else text
        if text:
            note = f"Comment ({author}): {text}" if author else f"Comment: {text}"
            self.notes.append((cell, note))


def _both(wanted: range, filled: Mapping[int, object]) -> list[int]:
    fewer = wanted if len(wanted) < len(filled) else filled
    return [number for number in fewer if number in wanted and number in filled]


def linked(text: str, address: str) -> str:
    """The text of a cell with the address on the web or of mail that it leads to, unless it shows it itself."""
    address = address.removeprefix("mailto:").partition("?subject=")[0].strip()
    leads = re.match(r"\w+://|[^@\s]+@", address) and address.rstrip("/") not in text
    return f"[{text}]({address})" if text and leads else text


def xlsx(data: bytes, suffix: str) -> Iterator[Piece]:
    """A workbook as one piece, each sheet below its name. ReadError for a damaged one."""
    book = _Book(archive.checked(data, suffix))
    yield written(book.sheets())


def written(sheets: Iterable[Sheet]) -> Piece:
    """All sheets as one text: a table each, with the cells as places, then its comments."""
    writer = Writer()
    for sheet in sheets:
        title = "## " + " ".join(sheet.name.split()) + (" (hidden sheet)" if sheet.hidden else "")
        if not sheet.rows and not sheet.notes and not sheet.texts:
            continue
        numbers = [n for n in sorted(sheet.rows) if any(map(str.strip, sheet.rows[n].values()))]
        width = max((max(sheet.rows[number]) for number in numbers), default=-1) + 1
        lowest = min((min(sheet.rows[number]) for number in numbers), default=0)
        first = f"{column_name(lowest)}{numbers[0]}" if numbers else "A1"
        writer.add(title, f"{sheet.name}!{first}" if sheet.rows or sheet.notes else sheet.name)
        rows = {
            n: [sheet.rows[n].get(column, "") for column in range(lowest, width)]
            if width <= WIDE
            else [text for _, text in sorted(sheet.rows[n].items())]
            for n in numbers
        }
        left = iter(numbers)
        every = range(numbers[0], numbers[-1] + 1) if numbers else ()
        for table in map(list, tables(rows.get(number, ()) for number in every)):
            of_table, last = list(islice(left, len(table))), 0
            for lines, indices in blocks(table):
                below = [of_table[index] for index in indices]
                again = indices[0] < last  # the header
                last = indices[-1]
                writer.add("\n".join(lines), places=_places(sheet, lines, below, lowest, again))
        for cell, note in sheet.notes:
            writer.add(f"{cell} {note}", f"{sheet.name}!{cell}")
        for text in sheet.texts:
            writer.add(text, sheet.name)
    return writer.piece(prose=False)


def _places(
    sheet: Sheet, lines: Sequence[str], numbers: Sequence[int], lowest: int, again: bool
) -> list[tuple[int, str]]:
    """The place of each line that is not the row below the line before. `again`: the first line is a header that was
    shown before."""
    places, offset, before = [], 0, -1
    for line, number in zip(lines, numbers, strict=True):
        if number != before + 1:
            row = f"${number}" if again and not places else f"{number}"
            places.append((offset, f"{sheet.name}!{column_name(lowest)}{row}"))
        offset += len(line) + 1
        before = number
    return places


# ---- xlsx ----------------------------------------------------------------------------------------


class _Book:
    def __init__(self, parts: ZipFile) -> None:
        self.parts = parts
        self.path = next(
            (name for name in parts.namelist() if name.endswith("xl/workbook.xml")), ""
        )
        root = tree(parts, self.path) if self.path else None
        if root is None:
            raise ReadError("it is damaged, or no xlsx file")
        self.root = root
        self.links = archive.links(self.parts, self.path)
        self.texts = self._shared()
        self.formats = self._formats()
        settings = next((child for child in root if local(child.tag) == "workbookPr"), None)
        since_1904 = settings is not None and attribute(settings, "date1904") in ("1", "true")
        self.epoch = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)
        self.persons = self._persons()

    def _first(self, kind: str) -> Element | None:
        path = next((path for link_kind, path in self.links.values() if link_kind == kind), "")
        return tree(self.parts, path) if path else None

    def _shared(self) -> list[str]:
        root = self._first("sharedStrings")
        return [_rich(string) for string in root] if root is not None else []

    def _formats(self) -> list[str]:
        """The number format of each cell style."""
        root = self._first("styles")
        if root is None:
            return []
        codes = {
            element.get("numFmtId", ""): element.get("formatCode", "")
            for element in root.iter()
            if local(element.tag) == "numFmt"
        }
        styles = next((child for child in root if local(child.tag) == "cellXfs"), ())
        ids = [style.get("numFmtId", "0") for style in styles]
        return [codes.get(id, _BUILT_IN.get(id, "")) for id in ids]

    def _persons(self) -> dict[str, str]:
        return {
            attribute(person, "id"): attribute(person, "displayName")
            for name in self.parts.namelist()
            if name.startswith("xl/persons/")
            for person in archive.elements(self.parts, name)
        }

    def sheets(self) -> Iterator[Sheet]:
        for element in self.root.iter():
            if local(element.tag) != "sheet":
                continue
            _, path = self.links.get(attribute(element, "id"), ("", ""))
            sheet = Sheet(element.get("name", ""), element.get("state", "visible") != "visible")
            if path and "chartsheets/" not in path:
                self._cells(path, sheet)
            for kind, target in sorted(archive.links(self.parts, path).values()) if path else ():
                if kind in ("comments", "threadedComment"):
                    self._comments(target, sheet)
                elif kind == "drawing":
                    self._drawing(target, sheet)
            yield sheet

    def _cells(self, path: str, sheet: Sheet) -> None:
        reader = _SheetReader(self, sheet)
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = reader.start
        parser.EndElementHandler = reader.end
        parser.CharacterDataHandler = reader.words
        try:
            with self.parts.open(path) as stream:
                parser.ParseFile(stream)
        except KeyError:
            return  # a sheet that is named and not there
        except (expat.ExpatError, ValueError, LookupError, EOFError, OSError) as error:
            raise ReadError("it is damaged: a sheet of it cannot be read") from error
        addresses = archive.links(self.parts, path, external=True) if reader.addresses else {}
        done = set[tuple[int, int]]()  # a cell has one link
        for reference, id in reader.addresses:
            for cell in sheet.cells(reference) if id in addresses else ():
                if cell not in done:
                    done.add(cell)
                    sheet.link(*cell, addresses[id][1])

    def value(self, kind: str, style: str, value: str, formula: str) -> str:
        """A cell as it is shown."""
        if not value:
            # a string that is stored and empty is what is shown
            return f"={formula}" if formula and kind != "str" else ""
        if kind == "s":
            return (
                self.texts[int(value)] if value.isdigit() and int(value) < len(self.texts) else ""
            )
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind in ("str", "e", "d", "inlineStr"):
            return value
        code = (
            self.formats[int(style)] if style.isdigit() and int(style) < len(self.formats) else ""
        )
        try:
            return as_shown(float(value), code, self.epoch)
        except (ValueError, OverflowError):
            return value

    def _comments(self, path: str, sheet: Sheet) -> None:
        root = tree(self.parts, path)
        if root is None:
            return
        authors = [
            (author.text or "").strip() for author in root.iter() if local(author.tag) == "author"
        ]
        for element in root.iter():
            text, who = "", ""
            if local(element.tag) == "comment":
                text = _rich(next((x for x in element if local(x.tag) == "text"), element))
                index = element.get("authorId", "")
                who = authors[int(index)] if index.isdigit() and int(index) < len(authors) else ""
                if who.startswith("tc="):  # stands for a threaded comment, which is read itself
                    continue
            elif local(element.tag) == "threadedComment":
                text = "".join(x.text or "" for x in element if local(x.tag) == "text")
                who = self.persons.get(element.get("personId", ""), "")
            sheet.add_note(element.get("ref", ""), text, who)

    def _drawing(self, path: str, sheet: Sheet) -> None:
        """Text of boxes, and of charts the titles and the names of the series."""
        root = tree(self.parts, path)
        charts = [
            target for kind, target in archive.links(self.parts, path).values() if kind == "chart"
        ]
        for part in [root, *(tree(self.parts, chart) for chart in charts)]:
            if part is None:
                continue
            lines = [
                "".join(x.text or "" for x in p.iter() if local(x.tag) == "t")
                for p in part.iter()
                if local(p.tag) == "p"
            ]
            for series in (element for element in part.iter() if local(element.tag) == "ser"):
                lines.append(_series(series))
            if text := "\n".join(line for line in lines if line.strip()):
                sheet.texts.append(text)


class _SheetReader:
    """The cells of a sheet's XML, element by element: a tree of it takes six times as long."""

    def __init__(self, book: _Book, sheet: Sheet) -> None:
        self.book, self.sheet = book, sheet
        self.row, self.column = 0, -1
        self.cells: dict[int, str] = {}
        self.cell: dict[str, str] = {}  # attributes of the open cell
        self.formula: dict[str, str] = {}
        self.into: list[str] | None = None  # what the words are added to
        self.parts: dict[str, list[str]] = {}  # of a cell: v, t, f
        # formulas that several cells have, with the row and column of the first
        self.shared: dict[str, tuple[str, int, int]] = {}
        self.addresses: list[tuple[str, str]] = []  # (cells, id) of links
        self.phonetic = self.raised = False
        self.begun = 0  # parts of `into` before the open element

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if name == "c":
            self.cell, self.parts, self.formula = attributes, {}, {}
            found = _CELL.match(attributes.get("r", ""))
            self.column = column_number(found[1]) if found else self.column + 1
        elif name == "row":
            self.row = int(attributes.get("r") or self.row + 1)
            if self.row > ROWS:
                raise ReadError("a sheet has more rows than Excel allows")
            self.cells, self.column = {}, -1
        elif name in ("v", "f", "t"):
            self.into = None if self.phonetic else self.parts.setdefault(name, [])
            self.begun = len(self.into or ())
            if name == "f":
                self.formula = attributes
        elif name == "hyperlink":
            linked = next((text for key, text in attributes.items() if key.endswith(":id")), "")
            self.addresses.append((attributes.get("ref", ""), linked))
        elif name == "rPh":
            self.phonetic = True
        elif name == "vertAlign":
            self.raised = attributes.get("val") == "superscript"

    def words(self, text: str) -> None:
        if self.into is not None:
            self.into.append(text)

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name in ("v", "f", "t"):
            if self.raised and self.into is not None:
                self.into[self.begun :] = [raised("".join(self.into[self.begun :]))]
            self.into, self.raised = None, False
        elif name == "rPh":
            self.phonetic = False
        elif name == "c":
            formula, index = "".join(self.parts.get("f", ())), self.formula.get("si", "")
            if formula and index:
                self.shared[index] = (formula, self.row, self.column)
            elif index in self.shared:
                first, row, column = self.shared[index]
                formula = moved(first, self.row - row, self.column - column)
            value = "".join(self.parts.get("v") or self.parts.get("t", ()))
            text = self.book.value(self.cell.get("t", "n"), self.cell.get("s", ""), value, formula)
            if value and (address := _HYPERLINK.match(formula)):
                text = linked(text, address[1])
            if text and self.column < COLUMNS:
                self.cells[self.column] = text
        elif name == "row" and self.cells:
            self.sheet.rows[self.row] = self.cells


_REFERENCE = re.compile(
    r"""("[^"]*"|'[^']*')|(?<![A-Za-z0-9_.])(\$?)([A-Z]{1,3})(\$?)([0-9]{1,7})(?![A-Za-z0-9_(!.])"""
)


def moved(formula: str, rows: int, columns: int) -> str:
    """A formula as it stands so many rows below and columns beside: references without `$` move with
    it (ECMA-376 part 1, 18.3.1.40)."""

    def move(found: re.Match[str]) -> str:
        quoted, fixed_column, column, fixed_row, row = found.groups()
        if quoted:
            return quoted
        across, down = column_number(column), int(row)
        across = across if fixed_column else max(0, min(across + columns, COLUMNS - 1))
        down = down if fixed_row else max(1, min(down + rows, ROWS))
        return f"{fixed_column}{column_name(across)}{fixed_row}{down}"

    return _REFERENCE.sub(move, formula)


def _series(series: Element) -> str:
    """`Sales 2024: East 19.2, West 21.4` of a chart's series."""
    values: dict[str, list[str]] = {"tx": [], "cat": [], "val": []}
    for part in series:
        if local(part.tag) in values:
            found = (x.text or "" for x in part.iter() if local(x.tag) == "v")
            values[local(part.tag)] = list(islice(found, 200))
    labels = values["cat"] + [""] * len(values["val"])
    points = ", ".join(
        f"{label} {value}".strip() for label, value in zip(labels, values["val"], strict=False)
    )
    return f"{' '.join(values['tx'])}: {points}" if points else ""


def _rich(element: Element) -> str:
    """The text of a string with runs of formats, without phonetic guides."""
    parts: list[str] = []
    for child in element:
        if local(child.tag) == "t":
            parts.append(child.text or "")
        elif local(child.tag) == "r":
            text = "".join(x.text or "" for x in child if local(x.tag) == "t")
            marks = (x for x in child.iter() if local(x.tag) == "vertAlign")
            above = any(mark.get("val") == "superscript" for mark in marks)
            parts.append(raised(text) if above else text)
    return "".join(parts)


# ---- xls -----------------------------------------------------------------------------------------


def old_sheets(data: bytes) -> list[Sheet] | None:
    """The sheets of an xls file, of Excel 97 to 2003 and older; None where xlrd cannot read them."""
    import io

    import xlrd

    try:
        book = xlrd.open_workbook(
            file_contents=data, formatting_info=True, on_demand=True, logfile=io.StringIO()
        )
        return [_old_sheet(book, number) for number in range(book.nsheets)]
    except MemoryError:
        raise
    except Exception:  # whatever the library says of bytes that it does not expect
        return None


def _old_sheet(book: Any, number: int) -> Sheet:
    import xlrd

    found = book.sheet_by_index(number)
    sheet = Sheet(found.name, found.visibility != 0)
    epoch = datetime(1904, 1, 1) if book.datemode else datetime(1899, 12, 30)
    for row in range(found.nrows):
        cells: dict[int, str] = {}
        for column in range(found.row_len(row)):
            cell = found.cell(row, column)
            text = str(cell.value)
            if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
                key = book.xf_list[cell.xf_index].format_key
                code = book.format_map[key].format_str if key in book.format_map else ""
                # a time after the last, an infinite number
                with suppress(ValueError, OverflowError):
                    text = as_shown(cell.value, _BUILT_IN.get(str(key), code), epoch)
            elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                text = "TRUE" if cell.value else "FALSE"
            elif cell.ctype == xlrd.XL_CELL_ERROR:
                text = xlrd.error_text_from_code.get(cell.value, "")
            if text:
                cells[column] = text
        if cells:
            sheet.rows[row + 1] = cells
    for (row, column), link in found.hyperlink_map.items():
        sheet.link(row + 1, column, str(link.url_or_path or ""))
    for (row, column), note in sorted(found.cell_note_map.items()):
        sheet.add_note(f"{column_name(column)}{row + 1}", note.text, note.author)
    book.unload_sheet(number)
    return sheet


# ---- number formats --------------------------------------------------------------------------------

_BUILT_IN = {
    "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "11": "0.00E+00",
    "12": "# ?/?", "13": "# ??/??",
    "14": "yyyy-mm-dd", "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy", "18": "h:mm AM/PM",
    "19": "h:mm:ss AM/PM", "20": "h:mm", "21": "h:mm:ss", "22": "yyyy-mm-dd h:mm", "37": "#,##0;(#,##0)",
    "38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)", "45": "mm:ss",
    "46": "[h]:mm:ss", "47": "mm:ss", "48": "0.0E+0", "32": "h:mm", "33": "h:mm:ss",
    # dates of East Asia, which each language shows in another form
    **dict.fromkeys("27 28 29 30 31 36 50 51 52 53 54 57 58".split(), "yyyy-mm-dd"),
    **dict.fromkeys("34 35 55 56".split(), "yyyy-mm-dd h:mm"),
}  # fmt: skip
_TOKEN = re.compile(  # matched where a token is to stand
    r"(?P<date>AM/PM|A/P|y+|m+|d+|h+|s+(?:\.0+)?)|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*,*)?|\.[#0?]+,*)"
    r"|(?P<power>E[+-]0+)|(?P<general>General)|(?P<sign>.)",
    re.IGNORECASE | re.DOTALL,
)
_MONTHS = (
    "January February March April May June July August September October November December".split()
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a number format. `kind`: literal, date, elapsed (`[h]`), condition (`[>9]`), digits, power, general
    or sign."""

    kind: str
    text: str

    @property
    def literal(self) -> str:
        return self.text if self.kind in ("literal", "sign") else ""

    @property
    def time(self) -> str:
        """The letters of a date or a time; "" for any other token."""
        return self.text.lower() if self.kind in ("date", "elapsed") else ""


def as_shown(value: float, code: str, epoch: datetime = datetime(1899, 12, 30)) -> str:
    """A number as its format shows it. Dates have the English names of months; midnight is left out
    where the format has a time."""
    sections = _sections(code)
    section = sections[0]
    if any(token.kind == "condition" for section in sections for token in section):
        return _general(value)
    shown = value
    if value < 0 and len(sections) > 1:
        section, shown = sections[1], -value
    elif value == 0 and len(sections) > 2:
        section = sections[2]
    if not section and len(sections) > 1:  # `;;;` hides what the cell holds
        return ""
    if any(token.time for token in section):
        return _date(shown, section, epoch)
    written = _number(shown, section)
    return _general(value) if written is None else written


@lru_cache(maxsize=1_000)
def _sections(code: str) -> list[list[Token]]:
    """The tokens of each section of a format code: positive, negative, zero, text."""
    sections: list[list[Token]] = [[]]
    at = 0
    while at < len(code):
        sign = code[at]
        if sign in '"[':
            end = code.find('"' if sign == '"' else "]", at + 1)
            inside = code[at + 1 : end if end >= 0 else len(code)]
            at += len(inside) + 2
            if sign == '"':
                sections[-1].append(Token("literal", inside))
            elif inside.startswith("$"):  # [$€-407]: a currency and a language
                sections[-1].append(Token("literal", inside[1:].partition("-")[0]))
            elif inside.startswith(("<", ">", "=")):
                sections[-1].append(Token("condition", inside))
            elif inside and not inside.lower().strip("hms"):
                sections[-1].append(Token("elapsed", inside))
        elif sign == "\\":
            sections[-1].append(Token("literal", code[at + 1 : at + 2]))
            at += 2
        elif sign in "_*":  # a gap as wide as the next character, and one that is repeated
            at += 2
        elif sign == ";":
            sections.append([])
            at += 1
        else:
            found = _TOKEN.match(code, at)
            assert found is not None and found.lastgroup is not None
            sections[-1].append(Token(found.lastgroup, found[0]))
            at = found.end()
    return sections


def _number(value: float, section: Sequence[Token]) -> str | None:
    """A number in a section of its format; None for a section without digits, or with several groups of them,
    as a fraction (`# ?/?`) or a telephone number (`000-0000`) has."""
    groups = [token.text for token in section if token.kind == "digits"]
    general = [token for token in section if token.kind == "general"]
    if value == 0 and not general and not any(group.strip("?") for group in groups):
        # accounts show a zero as `"-"??`
        if words := "".join(token.literal for token in section).replace("@", "").strip():
            return words
    if general:
        written = _general(value)
    elif len(groups) != 1:
        return None
    else:
        percent = 100 ** sum(token == Token("sign", "%") for token in section)
        power = any(token.kind == "power" for token in section)
        written = _digits(value * percent, groups[0], power)
    shown = (written if token.kind in ("digits", "general") else token.literal for token in section)
    return "".join(shown).strip()


def _digits(value: float, code: str, power: bool) -> str:
    """A number by a code such as `#,##0.00`: commas at the end of a part divide by 1,000, others separate thousands;
    `0` is a digit that is always shown. `power`: in scientific notation."""
    whole, _, decimals = code.partition(".")
    for part in (whole, decimals):
        if part.rstrip(","):
            value /= 1000 ** (len(part) - len(part.rstrip(",")))
    whole, decimals = whole.rstrip(","), decimals.rstrip(",")
    if power:
        return f"{value:.{len(decimals)}E}"
    thousands = "," if "," in whole else ""
    written = f"{_rounded(value, len(decimals)):{thousands}.{len(decimals)}f}"
    before, _, after = written.partition(".")
    least = decimals.count("0")
    after = after[:least] + after[least:].rstrip("0")
    if not thousands:
        before = before.zfill(whole.count("0") + before.startswith("-"))
    return f"{before}.{after}" if after else before


def _rounded(value: float, decimals: int) -> Decimal | float:
    """As sheets round: 12.25 with one decimal is 12.3, of the 15 digits that a number has."""
    try:
        return Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    except InvalidOperation:  # of over 28 digits
        return value


def _general(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


def _date(value: float, section: Sequence[Token], epoch: datetime) -> str:
    if not 0 <= value < 2_958_466:  # the last day is 9999-12-31
        return _general(value)
    moment = epoch + timedelta(seconds=round(value * 86_400))
    times = [token.time for token in section if token.time]
    has_day = any(code[0] in "yd" or code.startswith("mmm") for code in times)
    midnight = has_day and moment.hour == moment.minute == moment.second == 0
    twelve = any(code in ("am/pm", "a/p") for code in times)
    parts: list[str] = []
    index = 0  # of the next of `times`
    for token in section:
        code = token.time
        if not code:
            parts.append(token.literal)
            continue
        before = times[index - 1] if index else ""
        following = times[index + 1] if index + 1 < len(times) else ""
        index += 1
        minutes = code in ("m", "mm") and (before[:1] == "h" or following[:1] == "s")
        if midnight and (code[0] in "hs" or minutes or code in ("am/pm", "a/p")):
            return "".join(parts).rstrip(" T,")
        if token.kind == "elapsed":
            parts.append(str(int(value * {"h": 24, "m": 1440, "s": 86_400}[code[0]] + 1e-6)))
        else:
            parts.append(
                f"{moment.minute:0{len(code)}d}" if minutes else _date_part(moment, code, twelve)
            )
    return "".join(parts).strip()


def _date_part(moment: datetime, code: str, twelve: bool) -> str:
    if code in ("am/pm", "a/p"):
        return "AM" if moment.hour < 12 else "PM"
    if code[0] == "y":
        return f"{moment.year:04d}" if len(code) > 2 else f"{moment.year % 100:02d}"
    if code[0] == "m" and len(code) > 2:
        return _MONTHS[moment.month - 1][: None if len(code) == 4 else 3]
    if code[0] == "d" and len(code) > 2:
        return _DAYS[moment.weekday()][: None if len(code) > 3 else 3]
    hour = (moment.hour % 12 or 12) if twelve else moment.hour
    number = {"m": moment.month, "d": moment.day, "h": hour, "s": moment.second}[code[0]]
    return f"{number:0{min(len(code), 2)}d}"
