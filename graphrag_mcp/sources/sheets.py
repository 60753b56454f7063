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
from itertools import islice, zip_longest
from typing import Any
from xml.etree.ElementTree import iterparse
from zipfile import ZipFile

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.archive import Element, tree
from graphrag_mcp.sources.decode import ReadError, library
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
        path = next((name for name in parts.namelist() if name.endswith("xl/workbook.xml")), "")
        root = tree(parts, path)
        if not path:
            raise ReadError("it is damaged, or no xlsx file")
        self.root = root
        self.links = archive.links(parts, path)
        of_kind = dict(reversed(self.links.values()))
        self.texts = [_rich(string) for string in tree(parts, of_kind.get("sharedStrings", ""))]
        self.formats = self._formats(of_kind.get("styles", ""))
        since_1904 = any(x.get("date1904") in ("1", "true") for x in root.iterfind("workbookPr"))
        self.epoch = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)
        self.persons = {
            person.get("id", ""): person.get("displayName", "")
            for name in parts.namelist()
            if name.startswith("xl/persons/")
            for person in tree(parts, name)
        }

    def _formats(self, path: str) -> list[str]:
        """The number format of each cell style."""
        root = tree(self.parts, path)
        codes = dict(_BUILT_IN)
        codes |= {x.get("numFmtId", ""): x.get("formatCode", "") for x in root.iter("numFmt")}
        return [codes.get(style.get("numFmtId", "0"), "") for style in root.iterfind("cellXfs/*")]

    def sheets(self) -> Iterator[Sheet]:
        for element in self.root.iter("sheet"):
            _, path = self.links.get(element.get("id", ""), ("", ""))
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
        """Read a sheet row by row: a tree of all rows takes six times as long."""
        shared: dict[str, tuple[str, int, int]] = {}
        addresses: list[tuple[str, str]] = []  # (cells, id) of links
        number = 0
        if path not in self.parts.namelist():
            return  # a sheet that is named and not there
        damaged = "it is damaged: a sheet of it cannot be read"
        with library(damaged), self.parts.open(path) as stream:
            for _, element in iterparse(stream):
                archive.bare(element)
                if element.tag == "row":
                    number = int(element.get("r") or number + 1)
                    if number > ROWS:
                        raise ReadError("a sheet has more rows than Excel allows")
                    if cells := self._row(element, number, shared):
                        sheet.rows[number] = cells
                    element.clear()
                elif element.tag == "hyperlink":
                    addresses.append((element.get("ref", ""), element.get("id", "")))
        links = archive.links(self.parts, path, external=True) if addresses else {}
        done = set[tuple[int, int]]()  # a cell has one link
        for reference, id in addresses:
            for cell in sheet.cells(reference) if id in links else ():
                if cell not in done:
                    done.add(cell)
                    sheet.link(*cell, links[id][1])

    def _row(self, row: Element, number: int, shared: dict[str, tuple[str, int, int]]) -> dict[int, str]:
        """The cells of a row as they are shown. `shared`: formulas that several cells have, with the row and the column
        of the first."""
        cells: dict[int, str] = {}
        column = -1
        for cell in row:
            found = _CELL.match(cell.get("r", ""))
            column = column_number(found[1]) if found else column + 1
            value = cell.findtext("v") or "".join(map(_rich, cell.iterfind("is")))
            formula = index = ""
            for part in cell.iterfind("f"):
                formula, index = part.text or "", part.get("si", "")
            if formula and index:
                shared[index] = (formula, number, column)
            elif index in shared:
                first, above, beside = shared[index]
                formula = moved(first, number - above, column - beside)
            text = self._shown(cell.get("t", "n"), cell.get("s", ""), value, formula)
            if value and (address := _HYPERLINK.match(formula)):
                text = linked(text, address[1])
            if text and column < COLUMNS:
                cells[column] = text
        return cells

    def _shown(self, kind: str, style: str, value: str, formula: str) -> str:
        """A cell as it is shown."""
        if not value:
            # a string that is stored and empty is what is shown
            return f"={formula}" if formula and kind != "str" else ""
        if kind == "s":
            return _at(self.texts, value)
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind in ("str", "e", "d", "inlineStr"):
            return value
        try:
            return as_shown(float(value), _at(self.formats, style), self.epoch)
        except (ValueError, OverflowError):
            return value

    def _comments(self, path: str, sheet: Sheet) -> None:
        root = tree(self.parts, path)
        authors = [(author.text or "").strip() for author in root.iter("author")]
        for comment in root.iter("comment"):
            who = _at(authors, comment.get("authorId", ""))
            text = comment.find("text")
            # one of `tc=` stands for a threaded comment, which is read itself
            if not who.startswith("tc="):
                words = _rich(comment if text is None else text)
                sheet.add_note(comment.get("ref", ""), words, who)
        for comment in root.iter("threadedComment"):
            who = self.persons.get(comment.get("personId", ""), "")
            sheet.add_note(comment.get("ref", ""), comment.findtext("text", ""), who)

    def _drawing(self, path: str, sheet: Sheet) -> None:
        """Text of boxes, and of charts the titles and the names of the series."""
        links = archive.links(self.parts, path).values()
        charts = [target for kind, target in links if kind == "chart"]
        for part in (tree(self.parts, name) for name in [path, *charts]):
            lines = ["".join(x.text or "" for x in p.iter("t")) for p in part.iter("p")]
            lines += map(_series, part.iter("ser"))
            if text := "\n".join(line for line in lines if line.strip()):
                sheet.texts.append(text)


def _at(texts: Sequence[str], index: str) -> str:
    """The text with the number that is written; "" for none."""
    return texts[int(index)] if index.isdigit() and int(index) < len(texts) else ""


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
    name, labels, values = (
        [x.text or "" for part in series.iterfind(kind) for x in islice(part.iter("v"), 200)]
        for kind in ("tx", "cat", "val")
    )
    pairs = zip_longest(labels[: len(values)], values, fillvalue="")
    points = ", ".join(f"{label} {value}".strip() for label, value in pairs)
    return f"{' '.join(name)}: {points}" if points else ""


def _rich(element: Element) -> str:
    """The text of a string with runs of formats, without phonetic guides."""
    parts: list[str] = []
    for child in element:
        if child.tag == "t":
            parts.append(child.text or "")
        elif child.tag == "r":
            text = "".join(x.text or "" for x in child.iterfind("t"))
            above = child.find(".//vertAlign[@val='superscript']") is not None
            parts.append(raised(text) if above else text)
    return "".join(parts)


# ---- xls -----------------------------------------------------------------------------------------


def old_sheets(data: bytes) -> list[Sheet] | None:
    """The sheets of an xls file, of Excel 97 to 2003 and older; None where xlrd cannot read them."""
    import io

    import xlrd

    with suppress(ReadError), library("xlrd cannot read it"):
        book = xlrd.open_workbook(file_contents=data, formatting_info=True, on_demand=True, logfile=io.StringIO())
        return [_old_sheet(book, number) for number in range(book.nsheets)]
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
    codes = [token.time for token in section if token.time]
    for index, code in enumerate(codes):
        between = "".join(codes[max(0, index - 1) : index])[:1], "".join(codes[index + 1 :])[:1]
        if code in ("m", "mm") and (between[0] == "h" or between[1] == "s"):
            codes[index] = code.replace("m", "n")  # minutes, as Visual Basic has them
    has_day = any(code[0] in "yd" or code.startswith("m") for code in codes)
    midnight = has_day and moment.hour == moment.minute == moment.second == 0
    hour = "%I" if any(code[0] == "a" for code in codes) else "%H"
    parts: list[str] = []
    left = iter(codes)
    for token in section:
        code = next(left) if token.time else ""
        if midnight and code[:1] in tuple("hnsa"):
            return "".join(parts).rstrip(" T,")
        if token.kind == "elapsed":
            parts.append(str(int(value * {"h": 24, "m": 1440, "n": 1440, "s": 86_400}[code[0]] + 1e-6)))
        else:
            parts.append(_of_moment(moment, code, hour) if code else token.literal)
    return "".join(parts).strip()


def _of_moment(moment: datetime, code: str, hour: str) -> str:
    """A part of a date or a time. `hour`: how strftime calls the hour."""
    kind, size = code[0], len(code.partition(".")[0])
    if kind == "a":  # AM/PM
        return f"{moment:%p}"
    if kind == "y":
        return f"{moment:%Y}" if size > 2 else f"{moment:%y}"
    if size > 2 and kind in "md":
        name = f"{moment:%B}" if kind == "m" else f"{moment:%A}"
        return name if size == 4 or (kind == "d" and size > 4) else name[:3]
    two = moment.strftime({"m": "%m", "d": "%d", "h": hour, "n": "%M", "s": "%S"}[kind])
    return two if size > 1 else two.lstrip("0") or "0"
