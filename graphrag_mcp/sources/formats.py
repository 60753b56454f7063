"""One function per file type: bytes in, pieces of text out. A new one is named in FORMATS.

A function takes (bytes, suffix) and yields `Piece`s: one for a plain document, one per row for
tables. It raises ReadError with a reason. HTML is read in one pass without the standard library's
HTMLParser, which is quadratic on unclosed tags (`<a<a...`: 4.6 s for 80 KB on Python 3.11)."""

from __future__ import annotations

import codecs
import contextlib
import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from typing import Any

from graphrag_mcp.sources import office as packed
from graphrag_mcp.sources.decode import ReadError, clean, decode, decode_as, front_matter, utc

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40}+)(?=[\s/>])")
_QUOTED_END = re.compile(r"""(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_RAW = {  # nothing inside is text for a reader, up to the closing tag
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in tuple("script style svg template iframe canvas math object title".split())
}
_BLOCK = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section select summary table "
    "tbody tfoot thead title tr ul".split()
)
_GAP = frozenset("p h1 h2 h3 h4 h5 h6 table ul ol dl pre blockquote section article div hr".split())
# int() refuses thousands of digits; no character has eight
_NUMERIC = re.compile(r"&#[xX]?[0-9a-fA-F]{8,}+;?")
_SPACE = re.compile(r"[ \t\n\f]+")


def readable(markup: str) -> tuple[str, str]:
    """(title, text) of an HTML page; the title is "" when the page has none."""
    writer = _Writer()
    position, last_end, quoted = 0, markup.rfind(">"), True
    while True:
        at = markup.find("<", position)
        if at < 0 or at > last_end:  # no tag can end any more: the rest is text
            writer.text(markup[position:])
            break
        writer.text(markup[position:at])
        if markup.startswith("<!--", at):
            end = markup.find("-->", at + 4)
            position = len(markup) if end < 0 else end + 3
            continue
        tag = _TAG.match(markup, at)
        if tag is None:
            if markup[at + 1 : at + 2] in ("!", "?", "/"):
                position = markup.find(">", at) + 1
            else:
                writer.text("<")
                position = at + 1
            continue
        closed = _QUOTED_END.match(markup, tag.end()) if quoted else None
        # A quote that never closes fails once, after which quotes are not looked at.
        quoted = quoted and closed is not None
        position = closed.end() if closed else markup.find(">", tag.end()) + 1
        name = tag[2].lower()
        if not tag[1] and name in _RAW and not markup.startswith("/>", position - 2):
            end_tag = _RAW[name].search(markup, position)
            end = end_tag.start() if end_tag else len(markup)
            if name == "title" and not writer.title:
                words = html.unescape(_NUMERIC.sub("", markup[position:end])).split()
                writer.title = " ".join(words)
            position = end
        else:
            writer.tag(name, closing=bool(tag[1]))
    return writer.title, writer.result()


class _Writer:
    """Collects text between tags: whitespace as in a browser, structure as in Markdown."""

    def __init__(self) -> None:
        self.title = ""
        self._parts: list[str] = []
        self._line: list[str] = []  # pieces of the line being written
        self._prefix = ""
        self._row: list[str] | None = None
        self._pre = 0
        # one number per open list: 0 for bullets, else the next item's number
        self._lists: list[int] = []

    def text(self, raw: str) -> None:
        if not raw:
            return
        piece = html.unescape(_NUMERIC.sub("", raw) if "&#" in raw else raw) if "&" in raw else raw
        self._line.append(piece if self._pre else _SPACE.sub(" ", piece))

    def tag(self, name: str, *, closing: bool) -> None:
        if name in ("td", "th"):
            self._cell()
        elif name == "br":
            self._line.append("\n" if self._row is None else " ")
        elif name in _BLOCK:
            if self._row is not None and name not in ("tr", "table", "tbody", "thead", "tfoot"):
                self._line.append(" ")  # a paragraph inside a cell stays in its row
                return
            self._end_line()
            if name in _GAP and not (self._lists and name in ("ul", "ol", "p")):
                self._parts.append("")
            self._structure(name, closing)

    def _structure(self, name: str, closing: bool) -> None:
        if name == "tr":
            self._row = None if closing else []
        elif name == "table":
            self._row = None
        elif name == "pre":
            self._pre = max(0, self._pre + (-1 if closing else 1))
        elif name in ("ul", "ol", "dl"):
            if closing:
                del self._lists[-1:]
            elif len(self._lists) < 1000:
                self._lists.append(1 if name == "ol" else 0)
        elif name[0] == "h" and name[1:].isdigit():
            self._prefix = "" if closing else "#" * int(name[1:]) + " "
        elif name == "li" and not closing:
            number = self._lists[-1] if self._lists else 0
            self._prefix = "  " * min(len(self._lists) - 1, 8) + (f"{number}. " if number else "- ")
            if number:
                self._lists[-1] += 1

    def _cell(self) -> None:
        if self._row is not None:
            content = " ".join("".join(self._line).split())
            self._line = []
            if content:
                self._row.append(content.replace("|", "\\|"))

    def _end_line(self) -> None:
        if self._row is not None:
            self._cell()
            if self._row:
                self._parts.append(f"| {' | '.join(self._row)} |")
                self._row = []
            return
        content = "".join(self._line)
        self._line = []
        if self._pre:
            self._parts.append(content.strip("\n"))
            return
        content = "\n".join(line.strip() for line in content.split("\n")).strip()
        if content:
            self._parts.append(self._prefix + _SPACE_RUN.sub(" ", content))
            self._prefix = ""

    def result(self) -> str:
        self._end_line()
        lines: list[str] = []
        for part in self._parts:
            if part.strip() or (lines and lines[-1]):
                lines.append(part if part.strip() else "")
        return "\n".join(lines).strip() + "\n" if lines else ""


_SPACE_RUN = re.compile(r" {2,}")


_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset=["' ]{0,2}([A-Za-z0-9_.:-]{2,40})""", re.I)
UNPACKED = 500_000_000  # a Parquet file that holds more than this is taken for a bomb
COLUMNS = 2_000  # of a table; each is looked at in every row


@dataclass(frozen=True, slots=True)
class Piece:
    """One document of a file. `key` names a row in the file ("" for the whole file)."""

    text: str
    title: str = ""
    key: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    prose: bool = True  # False: a `#` at the start of a line is a comment, not a heading


# ---- text -----------------------------------------------------------------------------------------


def prose(data: bytes, suffix: str) -> Iterator[Piece]:
    text, metadata = decode(data)
    matter, _ = front_matter(text)
    yield Piece(text, matter.get("title", ""), metadata=matter | metadata)


def code(data: bytes, suffix: str) -> Iterator[Piece]:
    text, metadata = decode(data)
    yield Piece(text, metadata=metadata, prose=False)


def read_html(data: bytes, suffix: str) -> Iterator[Piece]:
    declared = _DECLARED.search(data[:4096])
    try:
        data.decode("utf-8")
        known = "utf-8"  # whatever it says
    except UnicodeDecodeError:
        known = ""
        with contextlib.suppress(LookupError):  # what Python does not know by this name
            known = codecs.lookup(declared[1].decode("ascii")).name if declared else ""
    markup, metadata = decode(data) if known in ("", "utf-8") else decode_as(data, known)
    title, text = readable(markup)
    yield Piece(clean(text), title, metadata=metadata)


# ---- rows -----------------------------------------------------------------------------------------

_ID, _TITLE, _TEXT = ("id", "_id", "doc_id"), ("title",), ("text", "content", "body")


def row(values: Mapping[str, Any], number: int) -> Piece:
    """A row as a document: its text column or `key: value` lines; other scalars are metadata."""
    if len(values) > COLUMNS:
        raise ReadError(f"it has {len(values):,} columns; {COLUMNS:,} are read")
    names = {str(name).strip().casefold(): name for name in reversed(list(values))}

    def pick(wanted: tuple[str, ...]) -> Any:
        given = (names[name] for name in wanted if name in names)
        return next((name for name in given if values[name] not in (None, "")), None)

    id_, title, text = pick(_ID), pick(_TITLE), pick(_TEXT)
    if text is not None and not isinstance(values[text], str):
        text = None
    plain = {name: _plain(value) for name, value in values.items()}
    metadata = {
        clean(str(name)): value
        for name, value in plain.items()
        if name not in (id_, title, text) and value is not None
        # in a row without a text a long value stands in the text that is made of it
        if text is not None or len(str(value)) <= 200
    }
    if text is not None:
        body = values[text]
    else:
        lines = ((name, _shown(value)) for name, value in values.items())
        body = "\n".join(f"{name}: {said}" for name, said in lines if said.strip())
    key = " ".join(str(values[id_]).split())[:200] if id_ is not None else ""
    heading = str(values[title]) if title is not None and plain[title] is not None else ""
    return Piece(clean(body), clean(heading), clean(key) or str(number), metadata)


def _plain(value: Any) -> Any:
    """A scalar or a list of scalars as JSON knows it, else None."""
    if isinstance(value, str):
        return clean(value) if value.strip() else None
    if isinstance(value, bool | int):
        return value if abs(value) < 2**63 else str(value)  # as far as filters count
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        items = [_plain(item) for item in value[:1000]]
        return [item for item in items if item is not None] or None
    return None if value is None or isinstance(value, list | dict | bytes) else clean(str(value))


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str) if value else ""
    plain = _plain(value)
    return "" if plain is None else str(plain)


def table(data: bytes, suffix: str) -> Iterator[Piece]:
    """csv and tsv: the first line names the columns; the separator is what it uses most."""
    text, _ = decode(data)
    first = text.lstrip("\n").partition("\n")[0]
    separator = "\t" if suffix in ("tsv", "tab") else max(",;\t|", key=first.count)
    csv.field_size_limit(2**31 - 1)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header = next((line for line in lines if any(map(str.strip, line))), [])
    if len(header) > COLUMNS:
        raise ReadError(f"it has {len(header):,} columns; {COLUMNS:,} are read")
    names: list[str] = []
    for position, cell in enumerate(header, 1):
        name = cell.strip()
        names.append(name if name and name not in names else f"column {position}")
    filled = (line for line in lines if any(cell.strip() for cell in line))
    for number, line in enumerate(filled, 1):
        names += [f"column {position}" for position in range(len(names) + 1, len(line) + 1)]
        yield row(dict(zip(names, line, strict=False)), number)


def json_file(data: bytes, suffix: str) -> Iterator[Piece]:
    """Rows of an array of objects or {"documents": [...]}; an object with a text; else text."""
    text, metadata = decode(data)
    value = _parsed(text)
    if isinstance(value, dict) and isinstance(value.get("documents"), list):
        value = value["documents"]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        yield from (row(values, number) for number, values in enumerate(value, 1))
    elif isinstance(value, dict) and (piece := _alone(value)):
        yield piece
    else:
        yield Piece(text, metadata=metadata, prose=False)


def _parsed(text: str) -> Any:
    """The JSON value; None for what is none, is nested too deeply or has a number of 5,000 digits."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


SHOWN = 2_000  # characters of the text that a cell of a notebook has printed


def notebook(data: bytes, suffix: str) -> Iterator[Piece]:
    """The cells of a Jupyter notebook: text, and code between fences with what it printed."""
    text, metadata = decode(data)
    try:
        book = json.loads(text)
        language = str(book["metadata"].get("language_info", {}).get("name", "python"))
        parts = [_cell(cell, language) for cell in book["cells"]]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        yield Piece(text, metadata=metadata, prose=False)
        return
    yield Piece(clean("\n\n".join(filter(None, parts))), metadata=metadata)


def _cell(cell: Mapping[str, Any], language: str) -> str:
    source = _joined(cell.get("source", "")).strip("\n")
    if cell["cell_type"] != "code":
        return source
    blocks = [(language, source)]
    for one in cell.get("outputs", ()):
        printed = _joined(one.get("text", "") or one.get("data", {}).get("text/plain", ""))
        blocks.append(("text", printed[:SHOWN].strip("\n")))
    return "\n\n".join(f"```{name}\n{block}\n```" for name, block in blocks if block)


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(map(str, lines))


def _alone(values: Mapping[str, Any]) -> Piece | None:
    """The document of a file's only object: a text, and a title or nothing that a row loses."""
    texts = {name: one for name, one in values.items() if isinstance(one, str) and one.strip()}
    names = {name.strip().casefold() for name in texts}
    tables = (one for one in values.values() if one and isinstance(one, dict | list))
    nested = any(_plain(one) is None for one in tables)
    if names.isdisjoint(_TEXT) or (nested and "title" not in names):
        return None
    return replace(row(values, 1), key="")


def json_lines(data: bytes, suffix: str) -> Iterator[Piece]:
    """One object a line. A line that is none (a torn last one) is kept as it stands."""
    text, metadata = decode(data)
    lines = [line for line in text.split("\n") if line.strip()]
    values = [_parsed(line) for line in lines]
    if not any(isinstance(value, dict) for value in values):
        yield Piece(text, metadata=metadata, prose=False)
        return
    for number, (line, value) in enumerate(zip(lines, values, strict=True), 1):
        torn = Piece(line, key=str(number), prose=False)
        yield row(value, number) if isinstance(value, dict) else torn


def parquet(data: bytes, suffix: str) -> Iterator[Piece]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    groups = (file.metadata.row_group(index) for index in range(file.metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > UNPACKED:
        raise ReadError("it unpacks to more than 500 MB")
    size = 0
    # few rows at once: a dictionary can make each of them huge
    batches = (batch.to_pylist() for batch in file.iter_batches(batch_size=16))
    for number, values in enumerate(chain.from_iterable(batches), 1):
        piece = row(values, number)
        size += len(piece.text)
        if size > UNPACKED:
            raise ReadError("it unpacks to more than 500 MB")
        yield piece


def office(data: bytes, suffix: str) -> Iterator[Piece]:
    """pdf, docx, pptx, xlsx, epub, msg (the extra graphrag-mcp[docs])."""
    text, title, metadata = packed.text_of(data, suffix)
    yield Piece(clean(text), clean(title), metadata=metadata, prose=suffix != "xlsx")


# Parsed in a process of their own (read.py): always; and when they are large.
APART = packed.OFFICE | {"parquet"}
ROWS = frozenset(("json", "jsonl", "ndjson", "csv", "tsv", "tab"))

# suffix -> function; what is not named here is read as source code or other plain text.
FORMATS: dict[str, Callable[[bytes, str], Iterator[Piece]]] = {
    "": prose,
    **dict.fromkeys("txt text md markdown mdx rst adoc asciidoc org tex".split(), prose),
    **dict.fromkeys(("html", "htm", "xhtml"), read_html),
    **dict.fromkeys(("csv", "tsv", "tab"), table),
    "json": json_file,
    "ipynb": notebook,
    **dict.fromkeys(("jsonl", "ndjson"), json_lines),
    "parquet": parquet,
    **dict.fromkeys(packed.OFFICE, office),
}
