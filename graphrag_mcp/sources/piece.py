"""What a reader makes of a file: pieces of text with their places, and tables as lines of text.

A reader is a function of (bytes, suffix) that yields `Piece`s: one for a plain document, one a row
of a table of texts, one a mail of a mailbox. It raises ReadError with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate, chain, groupby, islice
from typing import Any

from graphrag_mcp.sources.decode import ReadError, clean
from graphrag_mcp.text.places import BAR, TALL_BAR
from graphrag_mcp.text.tokens import count_tokens

TEXT_LIMIT = 20_000_000  # characters of one document's text
# Tokens of rows after which a table shows its header again, so that a passage of 400 holds them. Their sentences
# are counted one by one there: with 360, of sheets with one to ten sentences a row 79 of 542 passages had no header,
# with 330 none of 594.
BLOCK = 330
SAMPLE = 200  # rows by which a table is judged
MOST_BLANK = 200_000  # places of a table that spans leave blank
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")
_BLANK_LINES = re.compile(r"\n{3,}")
# The bullets of Word in front of a line, as Symbol (F0B7) and Wingdings have them. Other signs of these
# fonts say something: boxes, ticks, Greek letters.
_BULLET = re.compile("^([ \t]*)(?:- )?[\uf076\uf0a7\uf0b7\uf0d8][ \t]+(?=\\S)", re.MULTILINE)
_NUMBER = re.compile(r"[-+(]?[€$£¥]?\s?\d[\d.,' ]*\s?[%€$£¥]?\)?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*|\S+@\S+\.\S+")
_YEAR = re.compile(r"(?:1[89]|20|21)\d\d")


@dataclass(frozen=True, slots=True)
class Piece:
    """One document of a file. `key` names it in the file ("" for the whole file): a row, a mail, an
    attachment. `places`: (offset, name) as text/places.py has them. `links`: as a Document has them."""

    text: str
    title: str = ""
    key: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    prose: bool = True  # False: a `#` at the start of a line is a comment, not a heading
    places: tuple[tuple[int, str], ...] = ()
    links: tuple[tuple[int, int, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside a file, which is read as documents of its own."""

    name: str
    data: bytes
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a file, of a kind that models take. `place`: the page or slide that shows it.
    `key` and `metadata`: those of the document that holds it, as in Piece."""

    data: bytes
    place: str = ""
    key: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Described:
    """What a model says of a picture; "" with the reason where it says nothing. `by`: llm:<model>."""

    text: str
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NotRead:
    """A part of a file that is no part of any text, and why. `name`: of a file inside of it, else ""."""

    name: str
    reason: str


def parser(name: str) -> str:
    """What read a file, e.g. "pypdfium2 5.15.2", so that another version is seen."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


def tidy(text: str) -> str:
    """Text as a document holds it: no control characters, no blanks at line ends, no runs of blank
    lines, none around; `- ` for the bullets of Word."""
    text = _BULLET.sub(r"\1- ", _CONTROL.sub("", clean(text)))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip()


def borne(title: str, text: str) -> str:
    """The title that a file says it has, where the top of its text holds it: many name another document, or the program
    that wrote them. A title of one word must begin or end a line, since it could be any word of a sentence."""
    lines = ["".join(line.lstrip("# ").split()).casefold() for line in text[:2_000].split("\n")]
    wanted = "".join(title.split()).casefold()
    several, bounds = len(title.split()) > 1, {0, *accumulate(map(len, lines))}
    places = (one.span() for one in re.finditer(re.escape(wanted), "".join(lines)))
    return title if any(several or bounds.intersection(place) for place in places) else ""


# Signs of fonts whose bytes are those of Latin letters: Unicode's mapping of Adobe Symbol, and of that of Wingdings
# the ticks, boxes, bullets and arrows of lists and forms.
_FONTS = {
    "Symbol": (
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\xa3\xa5\xae\xb0\xb1\xb3\xb4\xb7\xb9\xba\xbb\xd6\xe5\xf2",
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤∞→°±≥×•≠≡≈√∑∫",
    ),
    "Wingdings": (b"loqnx\xa8\xfb\xfc\xfd\xfe\xdf\xe0\xe1\xe2\xe8\xf0", "●☐❑■☒☐✗✓☒☑←→↑↓➔⇨"),
    "Wingdings 2": (b"OPQRST\xa3", "✗✓☒☑☒☒☐"),
}
_SIGNS = {
    # where Word puts them in Unicode as well
    font: {at + byte: sign for byte, sign in zip(*table, strict=True) for at in (0, 0xF000)}
    for font, table in _FONTS.items()
}


def in_font(text: str, font: str) -> str:
    """A run as its font shows it: the `m` of Symbol is a μ. What stands in Unicode already is kept, and so are words
    in a font that has no letters."""
    is_sign = font == "Symbol" or len(text.strip()) == 1
    return text.translate(_SIGNS.get(font, {})) if is_sign else text


_RAISED_NUMBER = re.compile(r"\s*[-+−]?\d[\d.,]*\s*")


def raised(text: str) -> str:
    """Raised text, of a number as `^2`: a note or an exponent is no part of the number before it. Superscript
    characters of Unicode would be one, since search normalises them to digits."""
    number = text.strip()
    return text.replace(number, f"^{number}", 1) if _RAISED_NUMBER.fullmatch(text) else text


def with_descriptions(piece: Piece, pictures: Sequence[tuple[Picture, Described]]) -> Piece:
    """The piece with a paragraph for each picture that was described, at the end, with its place."""
    text, places, by = piece.text.rstrip("\n"), list(piece.places), ""
    for picture, description in pictures:
        if description.text:
            text += "\n\n" if text else ""
            places += [(len(text), picture.place)] if picture.place else []
            text += f"Picture: {description.text}"
            by = description.by
    if not by:
        return piece
    metadata = {"pictures_described": sum(bool(description.text) for _, description in pictures), "described_by": by}
    return replace(piece, text=text + "\n", places=tuple(places), metadata=piece.metadata | metadata)


@dataclass
class Writer:
    """Collects the parts of a text, with a blank line between them, and the places of each."""

    parts: list[str] = field(default_factory=list)
    places: list[tuple[int, str]] = field(default_factory=list)
    size: int = 0

    def add(self, text: str, place: str = "", places: Sequence[tuple[int, str]] = ()) -> None:
        """Append a part that stands at `place`, or whose own offsets `places` names; a part that
        has `places` is taken as it is."""
        text = text if places else tidy(text)
        if not text:
            return
        if place and (not self.places or self.places[-1][1] != place):
            self.places.append((self.size, place))
        self.places += [(self.size + offset, name) for offset, name in places]
        self.parts.append(text)
        self.size += len(text) + 2
        if self.size > TEXT_LIMIT:
            raise ReadError(f"its text is over {TEXT_LIMIT / 1e6:g} million characters")

    def piece(self, title: str = "", **fields: Any) -> Piece:
        text = "\n\n".join(self.parts)
        title = " ".join(clean(title).split())
        return Piece(text + "\n" if text else "", title, places=tuple(self.places), **fields)


# ---- tables --------------------------------------------------------------------------------------


def is_number(cell: str) -> bool:
    """Is a cell a number, a date or an address, which no column is named by? A year may name one."""
    return bool(_NUMBER.fullmatch(cell.strip())) and not _YEAR.fullmatch(cell.strip())


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """The index of the row that names the columns: the first that fills over half of the columns
    which rows fill (below titles and notes), when no cell of it is a number; -1 for none. A row that
    fills fewer columns than most rows do is a note where it holds a number ("As of; 31.01.2026"), or where
    a row below names all columns: one without a number, of which every full row below has one."""
    filled = [sum(1 for cell in row if cell.strip()) for row in rows[:SAMPLE]]
    width = max(filled, default=0)
    usual = max(filled, key=lambda count: (filled.count(count), count), default=0)
    numeric = [any(map(is_number, row)) for row in rows[:SAMPLE]]
    full = [number for number, count in enumerate(filled) if count >= usual]
    below = next((number for number in full if not numeric[number]), -1)
    names_all = 0 <= below < full[-1] and all(numeric[number] for number in full if number > below)
    for number, count in enumerate(filled):
        if count * 2 > width:
            if count < usual and (numeric[number] or (names_all and number < below)):
                continue
            named = (count > 1 or width == 1) and not numeric[number]
            return number if named and number + 1 < len(rows) else -1
    return -1


def tables(
    lines: Iterable[Sequence[str]],
    begins: Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], bool] = lambda *_: True,
) -> Iterator[Iterator[Sequence[str]]]:
    """The filled rows of each table, which are to be read before the next. Rows below a blank line begin one where
    they and the rows above have a header, and `begins` says so of samples of both."""
    parts = (
        (list(islice(rows, SAMPLE)), rows)
        for filled, rows in groupby(lines, lambda line: any(map(str.strip, line)))
        if filled
    )
    following = next(parts, None)

    def rows() -> Iterator[Sequence[str]]:
        nonlocal following
        table: list[Sequence[str]] = []
        while following:
            part, further = following
            if header_row(table) >= 0 <= header_row(part) and begins(part, table):
                return
            table += part[: SAMPLE - len(table)]
            yield from chain(part, further)
            following = next(parts, None)

    while following:
        yield rows()


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Each row as `| a | b |`; with taller bars where a cell holds one, so that it stays one cell."""
    flat = [[" ".join(cell.split()) for cell in row] for row in rows]
    bar = TALL_BAR if any(BAR in cell for row in flat for cell in row) else BAR
    return [f"{bar} {f' {bar} '.join(row)} {bar}" for row in flat]


def table_text(rows: Sequence[Sequence[str]]) -> str:
    """A table as text; a long one shows its header again, so that each passage has it."""
    return "\n\n".join("\n".join(lines) for lines, _ in blocks(rows))


def blocks(rows: Sequence[Sequence[str]]) -> Iterator[tuple[list[str], list[int]]]:
    """(lines, indices of their rows) of a table, cut at BLOCK tokens; each block after the first
    begins with the header, unless that takes half of it."""
    lines = table_lines(rows)
    header = header_row(rows)
    repeated = [header] if header >= 0 else []
    heading = count_tokens(lines[header]) + 1 if repeated else 0
    if heading * 2 > BLOCK:
        repeated, heading = [], 0
    block: list[int] = []
    size = 0
    for number, line in enumerate(lines):
        tokens = count_tokens(line) + 1
        if block and size + tokens > BLOCK and number > header + 1:
            yield [lines[index] for index in block], block
            block, size = list(repeated), heading
        block.append(number)
        size += tokens
    if block:
        yield [lines[index] for index in block], block


def grid(rows: Iterable[Sequence[tuple[str, int, int]]]) -> list[list[str]]:
    """Rows of (text, column span, row span) as a table in which every cell stands in its column:
    a spanned place is blank. Spans are as in HTML; of a table with MOST_BLANK blank places they count
    no more, since a few bytes can span millions."""
    table: list[list[str]] = []
    taken: dict[int, int] = {}  # column -> rows below for which a cell above holds it
    blank = 0
    for row in rows:
        line: list[str] = []
        below: dict[int, int] = {}
        for text, wide, tall in row:
            while taken.get(len(line), 0):
                line.append("")
            if blank + len(line) >= MOST_BLANK:
                wide = tall = 1
            for column in range(max(1, min(wide, 1000))):
                below[len(line)] = max(1, min(tall, 65_000)) - 1
                line.append(text if column == 0 else "")
        while taken.get(len(line), 0):
            line.append("")
        blank += len(line) - len(row)
        taken = {
            c: below.get(c, taken.get(c, 1) - 1)
            for c in range(len(line))
            if below.get(c, taken.get(c, 1) - 1) > 0 and blank < MOST_BLANK
        }
        table.append(line)
    width = max(map(len, table), default=0)
    if width >= 2_000 or width * len(table) - sum(map(len, table)) > MOST_BLANK:
        return table
    return [line + [""] * (width - len(line)) for line in table]
