"""Text of RTF files (Rich Text Format 1.9.1): words, characters in code pages and in Unicode, tables,
notes and comments, without what tracked changes have deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from graphrag_mcp.sources.decode import ReadError, web_encoding
from graphrag_mcp.sources.piece import Piece, Writer, borne, in_font, raised, table_text

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([^\\{}\r\n]+)|[\r\n]+", re.DOTALL
)
# Groups whose words are not those of the document.
_OTHER = frozenset(
    b"fonttbl colortbl stylesheet info pict objdata objclass objname objalias objsect themedata colorschememapping datastore latentstyles listtable "
    b"listoverridetable rsidtbl generator xmlnstbl fldinst filetbl revtbl bkmkstart bkmkend nonshppict panose "
    b"private userprops pntext pntxta pntxtb mmathPr nonesttables sp".split()
)
# Groups whose words stand elsewhere than where the group does.
_MARGINS = frozenset(b"header headerl headerr headerf footer footerl footerr footerf".split())
_TOLD = frozenset((b"title", b"author"))
_APART = _MARGINS | _TOLD | {b"footnote", b"annotation", b"atnauthor"}
_SHOWN = frozenset(b"shpinst fldrslt shptxt annotation atnauthor".split())  # behind \\*
_SIGNS = {
    b"emdash": "—", b"endash": "–", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”",
    b"bullet": "•", b"tab": "\t", b"line": "\n", b"par": "\n\n", b"sect": "\n\n", b"page": "\n\n", b"emspace": " ",
    b"enspace": " ",
}  # fmt: skip
_PARAGRAPH = "\n\n"
_NEXT_CELL = ", "
_ROWS = frozenset(b"cell row trowd intbl pard".split())
_CHARSETS = {
    0: "cp1252", 2: "signs", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251",
    222: "cp874", 238: "cp1250",
}  # fmt: skip


@dataclass(slots=True)
class _State:
    """What a group inherits. `encoding`: of its font; `after_unicode`: characters behind \\u that stand
    for it; `apart`: the word that opened a group whose words are put into `into`."""

    skipped: bool = False
    hidden: bool = False
    deleted: bool = False
    about: bool = False  # of the document: title, author
    marks: bool = False  # the number or the bullet of an item
    above: bool = False  # raised text
    encoding: str = ""
    font: int = -1
    after_unicode: int = 1
    apart: bytes = b""
    into: list[str] | None = None


def rtf(data: bytes, suffix: str) -> Iterator[Piece]:
    """Text, tables, notes and comments of an RTF file. ReadError where it is none."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise ReadError("it is damaged, or no rtf file")
    reader, at = _Reader(), 0
    while at < len(data):
        for token in _TOKEN.finditer(data, at):
            if token[1] == b"bin":  # so many bytes that are no text
                at = token.end() + max(0, int(token[2] or 0))
                break
            reader.take(token)
        else:
            break
    reader.end()
    writer = Writer()
    body = "".join(reader.parts)
    for text in [*body.split("\n\n"), *reader.notes, *reader.margins]:
        writer.add(text)
    author = reader.info.get(b"author", "")
    title = borne(reader.info.get(b"title", ""), body)
    yield writer.piece(title, metadata={"author": author} if author else {})


class _Reader:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.notes: list[str] = []
        self.footnotes = 0
        # headers and footers, each once; below the text, whose first line is its title
        self.margins: dict[str, None] = {}
        self.info: dict[bytes, str] = {}  # title, author; of the open comment its author
        self.cell: list[str] = []  # the parts of the open cell
        self.cells: list[str] = []  # of the open row
        self.rows: list[list[str]] = []
        self.stack: list[_State] = []
        self.state = _State()
        self.default = "cp1252"
        self.fonts: dict[int, str] = {}  # their encodings
        self.names: dict[int, str] = {}
        self.font = -1
        self.in_fonts = 0
        self.pending = bytearray()  # bytes of a code page, which may be halves of a character
        self.skip = 0  # characters that stand for the one of \u before them
        self.half = ""  # the first half of a character beyond U+FFFF
        self.ignorable = False
        self.in_row = False
        self.in_table = False  # the paragraph, by \intbl
        self.outside = False  # the open cell has a paragraph outside of the table

    def take(self, token: re.Match[bytes]) -> None:
        word, number, code, sign, brace, text = token.groups()
        if code or text:
            self._bytes(bytes.fromhex(code.decode()) if code else text, single=bool(code))
            return
        self._flush()
        if brace == b"{":
            if len(self.stack) < 10_000:
                self.stack.append(self.state)
                self.state = replace(self.state)
            self.ignorable = False
        elif brace == b"}":
            self._end_group()
        elif word:
            self._word(word, int(number) if number else None)
        elif sign == b"*":
            self.ignorable = True
        elif sign == b"~":
            self._put(" ")
        elif sign == b"_":
            self._put("-")
        elif sign in (b"\\", b"{", b"}"):
            self._bytes(sign)
        elif sign in (b"\n", b"\r"):
            self._put("\n\n")

    def _end_group(self) -> None:
        if self.in_fonts and len(self.stack) <= self.in_fonts:
            self.in_fonts = 0
        closed, self.state = self.state, self.stack.pop() if self.stack else _State()
        if closed.into is not None and closed.into is not self.state.into:
            self._end_apart(closed.apart, "".join(closed.into))
        self.skip = 0

    def _word(self, word: bytes, number: int | None) -> None:
        if word == b"fonttbl":
            self.in_fonts = len(self.stack)
        if word in _OTHER or (self.ignorable and word not in _SHOWN):
            self.state.skipped = True
        self.ignorable = False
        if word == b"pict" and self.state.into is None and not self.in_row:
            self.end_table()
        if word == b"info":
            self.state.about = True
        elif word in _APART and self.state.about == (word in _TOLD):
            self.state.skipped = self.state.skipped and not self.state.about
            self.state.apart, self.state.into = word, []
        elif word == b"nestrow" and self.cell[-1:] == [_NEXT_CELL]:  # in a group that is skipped
            self.cell[-1] = "; "
        elif self.state.skipped and not self.in_fonts:
            pass
        elif word == b"f" and number is not None:
            self.font = self.state.font = number
            self.state.encoding = self.fonts.get(number, "")
        elif word == b"fcharset" and self.in_fonts:
            self.fonts[self.font] = _CHARSETS.get(number or 0, "")
        elif word == b"ansicpg" and number:
            self.default = web_encoding(f"cp{number}") or self.default
        elif word == b"mac":
            self.default = "mac_roman"
        elif word == b"listtext":
            self.state.marks = True
        elif word == b"v":
            self.state.hidden = number != 0
        elif word == b"deleted":
            self.state.deleted = number != 0
        elif word in (b"super", b"sub", b"nosupersub", b"up"):
            self.state.above = number != 0 if word in (b"super", b"up") else False
        elif word == b"plain":
            self.state.hidden = self.state.deleted = self.state.above = False
        elif word == b"uc":
            self.state.after_unicode = number or 0
        elif word == b"u" and number is not None:
            self._unicode(number % 65_536)
        elif word == b"nestcell" or (word == b"cell" and self.state.into is not None):
            self._put(_NEXT_CELL)  # of a table in a cell or a note
        elif word in _ROWS and self.state.into is None:
            self._of_row(word)
        elif word in _SIGNS:
            self._put(_SIGNS[word])

    def _of_row(self, word: bytes) -> None:
        if word == b"pard":
            self.in_table = False
        elif word == b"cell" and self.in_row:
            self.cells.append("".join(self.cell))
            self.cell, self.outside = [], False
        elif word == b"row":
            self.outside = False
            self._end_row()
        elif word in (b"trowd", b"intbl"):
            # Word says trowd at the end of a row as well, and not at the start of one like that before
            if self.outside:
                self._end_row()
            self.in_row = self.in_table = True

    def _unicode(self, unit: int) -> None:
        self.skip = self.state.after_unicode
        if 0xD800 <= unit < 0xDC00:
            self.half = chr(unit)
            return
        units = (self.half + chr(unit)).encode("utf-16-le", "surrogatepass")
        self.half = ""
        self._put(self._signs(units.decode("utf-16-le", "replace")))

    def _bytes(self, data: bytes, single: bool = False) -> None:
        if self.skip:
            left = max(0, self.skip - len(data))
            data = data[self.skip :]
            self.skip = left
        if not self.state.skipped:
            self.pending += data
        elif self.in_fonts:
            name = data.decode("latin-1").rstrip(";").strip()
            self.names.setdefault(self.font, name)

    def _flush(self) -> None:
        if self.pending:
            encoding = self.state.encoding or self.default
            text = bytes(self.pending).decode("cp1252" if encoding == "signs" else encoding, "replace")
            bullet = len(text) == 1 and (text.isalpha() or not text.isascii())
            if encoding == "signs" and self.state.marks and bullet:  # as Word has it in Unicode
                text = chr(0xF000 + self.pending[0])
            text = self._signs(text)
            self.pending.clear()
            self._put(raised(text) if self.state.above else text)

    def _signs(self, text: str) -> str:
        """Text as its font shows it, but for the bullet of an item."""
        return text if self.state.marks else in_font(text, self.names.get(self.state.font, ""))

    def _put(self, text: str) -> None:
        if self.state.skipped or self.state.hidden or self.state.deleted:
            return
        if self.state.into is not None:
            self.state.into.append(text)
            return
        counts = bool(text.strip()) or text == _PARAGRAPH
        if self.in_row:
            self.cell.append(text)
            self.outside |= counts and not self.in_table
            return
        if counts:
            self.end_table()
        self.parts.append(text)

    def _end_apart(self, word: bytes, text: str) -> None:
        """Put the words of a note, a comment, a header or what is told of the document into its place."""
        flat = " ".join(text.split())
        who = self.info.pop(b"atnauthor", "") if word == b"annotation" else ""
        if not flat:  # what is deleted or hidden
            return
        if word in _MARGINS:
            self.margins.setdefault(text.strip())
        elif word == b"footnote":
            self.footnotes += 1
            self.notes.append(f"Note {self.footnotes}: {flat}")
        elif word == b"annotation":
            self.notes.append(f"Comment ({who}): {flat}" if who else f"Comment: {flat}")
        else:
            self.info[word] = flat

    def end(self) -> None:
        """The end of the file, where groups and rows may be open that nothing has closed."""
        self._flush()
        while self.stack:
            self._end_group()
        self._end_row()
        self.end_table()

    def _end_row(self) -> None:
        """End the open row. Paragraphs behind its last cell that are outside of the table follow it."""
        words, self.cell = "".join(self.cell), []
        outside, self.outside, self.in_row = self.outside, False, False
        if words.strip() and not outside:
            self.cells.append(words)
        self.rows.append(self.cells)
        self.cells = []
        if outside:
            self.end_table()
            self.parts.append(words)

    def end_table(self) -> None:
        self._flush()
        rows, self.rows = self.rows, []
        rows = [row for row in rows if any(cell.strip() for cell in row)]
        if rows:
            width = max(map(len, rows))
            self.parts.append("\n\n" + table_text([row + [""] * (width - len(row)) for row in rows]) + "\n\n")
