"""One function per file type: bytes in, pieces of text out. A new one is named in FORMATS.

A function takes (bytes, suffix) and yields pieces (piece.py); it raises ReadError with a reason. `pieces`
also reads the files inside of a file, each as documents of its own."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from itertools import chain, islice, pairwise
from typing import Any

from graphrag_mcp.sources import archive, ocr
from graphrag_mcp.sources.book import epub, unpacked, zipped
from graphrag_mcp.sources.cards import cards
from graphrag_mcp.sources.decode import ReadError, clean, decode, front_matter, refuse_base64, utc, why_not
from graphrag_mcp.sources.document import PROSE
from graphrag_mcp.sources.embedded import embedded
from graphrag_mcp.sources.html import read_html, readable
from graphrag_mcp.sources.mail import MAILBOX, eml, mbox, mhtml
from graphrag_mcp.sources.office import KINDS, office, xls
from graphrag_mcp.sources.opendocument import opendocument
from graphrag_mcp.sources.outlook import msg
from graphrag_mcp.sources.pdf import pdf
from graphrag_mcp.sources.pictures import pictures
from graphrag_mcp.sources.piece import SAMPLE, Attachment, NotRead, Picture, Piece, header_row, is_number, tables
from graphrag_mcp.sources.rtf import rtf
from graphrag_mcp.sources.sheets import xlsx
from graphrag_mcp.sources.subtitles import subtitles
from graphrag_mcp.sources.walk import HEAD, SECRET, distinct, kind_of, ocr_installed, secret, start_reason, suffix_of
from graphrag_mcp.types import is_object

UNPACKED = 500_000_000  # a Parquet file that holds more than this is taken for a bomb
COLUMNS = 2_000  # of a table; each is looked at in every row
DEPTH = 4  # of files inside of files: a mail in a mail in a zip
INSIDE = 2_000  # files inside of one file
NESTED = "its JSON is nested too deeply"


# ---- text -----------------------------------------------------------------------------------------

_MAIL = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9-]*:.*\n(?:[ \t].*\n)*)*?(?:Content-Transfer-Encoding|MIME-Version):", re.IGNORECASE
)


def prose(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """A text file: mail and mailboxes by their head, else prose with its front matter."""
    if MAILBOX.match(data):  # a folder of Thunderbird has no suffix
        yield from mbox(data, suffix)
        return
    text, metadata = decode(data)
    if _MAIL.match(text):
        yield from eml(data, suffix)
        return
    refuse_base64(text)
    matter, _ = front_matter(text)
    yield Piece(text, matter.get("title", ""), metadata=matter | metadata)


def as_written(data: bytes, suffix: str) -> Iterator[Piece]:
    """A text whose lines are no prose, such as source code or a log."""
    text, metadata = decode(data)
    refuse_base64(text)
    yield Piece(text, metadata=metadata, prose=False)


# ---- rows -----------------------------------------------------------------------------------------

_ID, _TITLE, _TEXT = ("id", "_id", "doc_id"), ("title",), ("text", "content", "body")


def row(values: Mapping[str, Any], number: int, alone: bool = True) -> Piece:
    """A row as a document: its text column or `key: value` lines; other scalars are metadata. `alone`: the text
    column stands alone."""
    if len(values) > COLUMNS:
        raise ReadError(f"it has {len(values):,} columns; {COLUMNS:,} are read")
    names = {str(name).strip().casefold(): name for name in reversed(list(values))}

    def pick(columns: tuple[str, ...]) -> Any:
        present = (names[name] for name in columns if name in names)
        return next((name for name in present if values[name] not in (None, "")), None)

    id_, title, text = pick(_ID), pick(_TITLE), pick(_TEXT)
    if text is not None and not (alone and isinstance(values[text], str)):
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
        body = "\n".join(f"{name}: {value}" for name, value in lines if value.strip())
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
    """csv and tsv: a document a row. Titles and notes above the line that names the columns are one
    document; a table whose first line is a row has columns by number."""
    text, _ = decode(data)
    first, _, rest = text.lstrip("\n").partition("\n")
    separator = "\t" if suffix in ("tsv", "tab") else ""
    if declared := re.fullmatch(r"[ \t\"]*sep=(.)\"?[ \t]*", first, re.IGNORECASE):
        text, separator = rest, declared[1]
    csv.field_size_limit(2**31 - 1)
    separator = separator or _separator(text)
    number = 0
    for lines in tables(csv.reader(io.StringIO(text, newline=""), delimiter=separator), _is_sure):
        sample = list(islice(lines, SAMPLE))
        at = header_row(sample)
        header = sample[at] if at >= 0 else []
        if max(len(header), *(len(line) for line in sample), 0) > COLUMNS:
            raise ReadError(f"it has over {COLUMNS:,} columns, which is as many as are read")
        names: list[str] = []
        for position, cell in enumerate(header, 1):
            name = " ".join(cell.split())
            names.append(name if name and name not in names else f"column {position}")
        above = [" ".join(filter(None, map(str.strip, line))) for line in sample[: max(at, 0)]]
        if above:
            yield Piece("\n".join(above), key="preamble")
        alone = _text_alone(names, sample[at + 1 :])
        for line in chain(sample[at + 1 :], lines):
            number += 1
            names += [f"column {position}" for position in range(len(names) + 1, len(line) + 1)]
            piece = row(dict(zip(names, line, strict=False)), number, alone)
            yield replace(piece, metadata=piece.metadata | {"preamble": above}) if above else piece


def _is_sure(part: Sequence[Sequence[str]], table: Sequence[Sequence[str]]) -> bool:
    """Does a part name columns of its own, by which its rows are read? It does where each row below the header has a
    number, and none is wider than the rows above, as a table is below the facts on an account."""
    numeric = all(any(map(is_number, line)) for line in part[header_row(part) + 1 :])
    return numeric and max(map(len, part)) <= max(map(len, table))


def _text_alone(names: Sequence[str], lines: Sequence[Sequence[str]]) -> bool:
    """Are the rows of a table texts with metadata? Then their text column holds most characters beside id and title.
    The column `Text` of an account statement does not: date and amount say as much."""
    folded = [name.casefold() for name in names]
    position = next((folded.index(name) for name in _TEXT if name in folded), -1)
    sizes = Counter[bool]()
    for line in lines:
        for at, cell in enumerate(line):
            if at >= len(folded) or folded[at] not in (*_ID, *_TITLE):
                sizes[at == position] += len(cell.strip())
    return sizes[True] >= sizes[False]


def _separator(text: str) -> str:
    """The sign by which most lines of the start have the same number of cells, quotes respected."""
    best, found = (0.0, 0), ","
    for sign in ",;\t|":
        rows = csv.reader(io.StringIO(text[:20_000], newline=""), delimiter=sign)
        widths: Counter[int] = Counter()
        with suppress(csv.Error):
            widths.update(len(line) for line in islice(rows, 60) if len(line) > 1)
        lines = max(1, min(60, text[:20_000].count("\n")))
        width, count = max(widths.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))
        if (min(count / lines, 1.0), width) > best:
            best, found = (min(count / lines, 1.0), width), sign
    return found


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
        text = _ESCAPE.sub(_unescaped, text) if value is not None else text
        yield Piece(text, metadata=metadata, prose=False)


_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|.)")


def _unescaped(escape: re.Match[str]) -> str:
    """The character of an escape of JSON, such as `\\u00d6`; the escape of one that is not shown, or has to be
    escaped."""
    character = str(json.loads(f'"{escape[0]}"'))
    return character if character.isprintable() and character not in '"\\' else escape[0]


def canvas(data: bytes, suffix: str) -> Iterator[Piece]:
    """A board of Obsidian (https://jsoncanvas.org/spec/1.0/) as Markdown: the texts of its cards, the pages that it
    shows as embeds, and what its arrows join."""
    text, metadata = decode(data)
    board = _parsed(text)
    if not isinstance(board, dict) or not isinstance(board.get("nodes"), list):
        yield Piece(text, metadata=metadata, prose=False)
        return
    parts: list[str] = []
    names: dict[str, str] = {}
    for node in filter(is_object, board["nodes"]):
        file, below = str(node.get("file") or ""), str(node.get("subpath") or "")
        shown = {
            "file": f"![[{file}{below}]]" if file else "",
            "group": f"## {node.get('label') or ''}".rstrip("# "),
            "link": str(node.get("url") or ""),
        }.get(str(node.get("type")), str(node.get("text") or ""))
        shown, name = _card(shown)
        parts += [shown] if shown.strip() else []
        names[str(node.get("id"))] = f"[[{file}]]" if file else name
    edges = board.get("edges")
    for edge in filter(is_object, edges if isinstance(edges, list) else ()):
        ends = [names.get(str(edge.get(end)), "") for end in ("fromNode", "toNode")]
        if all(ends):
            label = f": {edge['label']}" if edge.get("label") else ""
            parts.append(f"{ends[0]} -> {ends[1]}{label}")
    yield Piece("\n\n".join(parts), metadata=metadata)


_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def _card(text: str) -> tuple[str, str]:
    """The text of a card, in which no block of code is left open for the next card; and its name: the
    first line that is no fence."""
    fence, name = "", ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        else:
            name = name or line.replace("`", "").strip().lstrip("# ")
    return f"{text}\n{fence}" if fence else text, name


def _parsed(text: str) -> Any:
    """The JSON value; None for what is none or has a number of 5,000 digits. ReadError for one that is nested
    too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ReadError(NESTED) from error
    except ValueError:
        return None


SHOWN = 2_000  # characters of each output of a notebook: a log of hours is no text to search
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FIGURE = re.compile(r"<(?:Figure size |[\w.]+(?:Figure|Axes|Plot)\w* )[^>\n]*>")


def notebook(data: bytes, suffix: str) -> Iterator[Piece]:
    """The cells of a Jupyter notebook: text, and code between fences with what it printed."""
    text, metadata = decode(data)
    try:
        book = _parsed(text)
        about = book["metadata"]
        language = "python"
        for kind, name in (("kernelspec", "language"), ("language_info", "name")):
            named = about[kind].get(name) if isinstance(about.get(kind), dict) else ""
            language = named if named and isinstance(named, str) else language
        # format 3 has sheets of cells; `input` is the source of a cell of code
        sheets = [book] if "cells" in book else book["worksheets"]
        parts = [_cell(cell, language) for sheet in sheets for cell in sheet["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        yield Piece(text, metadata=metadata, prose=False)
        return
    yield Piece(clean("\n\n".join(filter(None, parts))), metadata=metadata)


def _cell(cell: Mapping[str, Any], language: str) -> str:
    source = _joined(cell.get("source") or cell.get("input", "")).strip("\n")
    if cell["cell_type"] == "heading":  # of format 3
        level = cell.get("level")
        return f"{'#' * min(max(level, 1), 6) if isinstance(level, int) else '#'} {source}"
    if cell["cell_type"] != "code":
        return source
    named = cell.get("language")  # of format 3
    language = named if isinstance(named, str) and named else language
    blocks = [f"```{language}\n{source}\n```"] if source else []
    blocks += (_output(output) for output in cell.get("outputs", ()))
    return "\n\n".join(filter(None, blocks))


def _output(output: Mapping[str, Any]) -> str:
    """What a cell gave: printed text and errors between fences, Markdown, LaTeX and tables as text."""
    if output.get("output_type") in ("error", "pyerr"):
        printed = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    else:
        data = output.get("data", output)  # format 3 has no `data`, and names without a type
        for kind in ("markdown", "latex"):
            if shown := _joined(data.get(f"text/{kind}") or data.get(kind, "")).strip():
                return _shortened(shown)
        if (page := _joined(data.get("text/html") or data.get("html", ""))) and "<table" in page:
            return _shortened(readable(page[:200_000]).text.strip())
        printed = _joined(output.get("text", "") or data.get("text/plain", ""))
    printed = _shortened(_FIGURE.sub("", _ANSI.sub("", printed)).strip("\n"))
    return f"```text\n{printed}\n```" if printed.strip() else ""


def _shortened(text: str) -> str:
    left = len(text) - SHOWN
    return f"{text[:SHOWN].rstrip()}\n… ({left:,} characters more)" if left > 0 else text


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(map(str, lines))


def _alone(values: Mapping[str, Any]) -> Piece | None:
    """The document of a file's only object: a text, and a title or nothing that a row loses."""
    texts = {name: value for name, value in values.items() if isinstance(value, str) and value.strip()}
    names = {name.strip().casefold() for name in texts}
    tables = (value for value in values.values() if value and isinstance(value, dict | list))
    nested = any(_plain(table) is None for table in tables)
    if names.isdisjoint(_TEXT) or (nested and "title" not in names):
        return None
    return replace(row(values, 1), key="")


def json_lines(data: bytes, suffix: str) -> Iterator[Piece | NotRead]:
    """One object a line. A line that is none (a torn last one) is kept as it stands."""
    text, metadata = decode(data)
    values: list[Any] = []
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            value = _parsed(line)
            torn = Piece(line, key=str(number), prose=False)
            values.append(row(value, number) if isinstance(value, dict) else torn)
        except ReadError as error:
            values.append(NotRead(str(number), str(error)))
    if all(isinstance(value, Piece) and not value.prose for value in values):
        yield Piece(text, metadata=metadata, prose=False)
    else:
        yield from values


def parquet(data: bytes, suffix: str) -> Iterator[Piece]:
    """A document for each row. ReadError over 500 MB unpacked."""
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


def xml(data: bytes, suffix: str) -> Iterator[Piece]:
    """The words of an XML file, an element a line; one line for a sentence with elements in it. The file
    as it stands where it is no XML."""
    if any(mark in data for mark in archive.ENTITY):
        raise ReadError("its XML declares entities, which are not resolved")
    try:
        root = archive.parsed(data)
    except (archive.ParseError, ValueError, LookupError):
        yield from as_written(data, suffix)
        return
    blocks = _with_blocks(root)
    lines: list[str] = []
    left: list[archive.Element | str] = [root]
    while left:
        node = left.pop()
        if isinstance(node, str):
            lines.append(node)
            continue
        tails = [" ".join((inner.tail or "").split()) for inner in node]
        words = " ".join((node.text or "").split())
        is_line = node not in blocks and any((words, *tails))
        attributes = ", ".join(
            f"{archive.local(key)}: {value}"
            for element in (node.iter() if is_line else [node])
            for key, value in element.attrib.items()
            if value.strip()
        )
        words = _words(node) if is_line else words
        text = " ".join(filter(None, (words, f"({attributes})" if attributes else "")))
        lines += [f"{archive.local(node.tag)}: {text}"] if text else []
        for inner, tail in [] if is_line else zip(reversed(node), reversed(tails), strict=True):
            left += [tail, inner] if tail else [inner]
    yield Piece(clean("\n".join(lines) + "\n"), prose=False)


def _with_blocks(root: archive.Element) -> set[archive.Element]:
    """The elements in which, at any depth, two elements with words stand beside each other with nothing
    but blanks between, as fields and paragraphs do. In a sentence, words follow such elements, which stand
    on one line and have different names: `H<sub>2</sub><sup>+</sup> reacts`."""
    worded = set[archive.Element]()
    found = set[archive.Element]()
    for element in reversed([*root.iter()]):
        mixed = any((inner.tail or "").strip() for inner in element)
        if mixed or (element.text or "").strip() or not worded.isdisjoint(element):
            worded.add(element)
        beside = any(
            worded.issuperset(pair) and not gap.strip() and (not mixed or "\n" in gap or pair[0].tag == pair[1].tag)
            for pair in pairwise(element)
            for gap in [pair[0].tail or ""]
        )
        if beside or not found.isdisjoint(element):
            found.add(element)
    return found


def _words(element: archive.Element) -> str:
    """The words in an element. An empty one is a line end, as `<br/>`, and a space where it has attributes,
    as `<xref target="3"/>`."""
    parts: list[str] = []
    left: list[archive.Element | str] = [element]
    while left:
        node = left.pop()
        if isinstance(node, str):
            parts.append(_BLANKS.sub(" ", node))
            continue
        empty = "" if len(node) else " " if node.attrib else "\n"
        parts.append(_BLANKS.sub(" ", node.text or "") or empty)
        for inner in reversed(node):
            left += [inner.tail or "", inner]
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(filter(None, lines))


_BLANKS = re.compile(r"\s+")


# ---- files in files -------------------------------------------------------------------------------

# Read in a process of their own (read.py): always; and when they are large.
OPEN = frozenset("odt ott odp otp ods ots".split())
SHEETS = frozenset("xlsx xlsm xltx xltm".split())
MAIL = frozenset("eml emlx mbox msg mht mhtml".split())
APART = (
    KINDS.keys()
    | OPEN
    | SHEETS
    | MAIL
    | ocr.PICTURES
    | frozenset("pdf epub rtf xls zip gz tgz tar parquet xml html htm xhtml ipynb".split())
)
# Of these the bytes are not the text that they hold.
PACKED = APART - frozenset("eml emlx mbox mht mhtml rtf xml html htm xhtml ipynb".split())
ROWS = frozenset("json jsonl ndjson csv tsv tab vcf ics".split())

Reader = Callable[[bytes, str], Iterator[Piece | Attachment | NotRead]]


def _with_objects(reader: Reader) -> Reader:
    """A reader that also gives the files in a file of Office."""
    return lambda data, suffix: chain(reader(data, suffix), embedded(data, suffix) if data.startswith(b"PK") else ())


# suffix -> function; what is not named here is read as it is written.
FORMATS: dict[str, Reader] = {
    **dict.fromkeys(PROSE, prose),
    **dict.fromkeys(("html", "htm", "xhtml"), read_html),
    **dict.fromkeys(("csv", "tsv", "tab"), table),
    "json": json_file,
    "canvas": canvas,
    "ipynb": notebook,
    **dict.fromkeys(("jsonl", "ndjson"), json_lines),
    "parquet": parquet,
    "pdf": pdf,
    "xls": xls,
    **dict.fromkeys(KINDS, _with_objects(office)),
    **dict.fromkeys(SHEETS, _with_objects(xlsx)),
    **dict.fromkeys(OPEN, opendocument),
    "rtf": rtf,
    "epub": epub,
    "xml": xml,
    "zip": zipped,
    **dict.fromkeys(("gz", "tgz", "tar"), unpacked),
    **dict.fromkeys(("eml", "emlx"), eml),
    "mbox": mbox,
    "msg": msg,
    **dict.fromkeys(("mht", "mhtml"), mhtml),
    **dict.fromkeys(("vtt", "srt"), subtitles),
    **dict.fromkeys(("vcf", "ics"), cards),
    **dict.fromkeys(ocr.PICTURES, ocr.picture),
}


def pieces(
    data: bytes, suffix: str, depth: int = 0, described: bool = False, name: str = ""
) -> Iterator[Piece | NotRead | Picture]:
    """The pieces of a file and of the files inside of it, whose keys begin with their names. `name`: of the file, by
    which gzip calls what it has packed where it stores no other.
    `described`: a model describes pictures, so these are given as well, before the text."""
    has_pictures = False
    if described:
        for picture in pictures(data, suffix):
            has_pictures = has_pictures or isinstance(picture, Picture)
            yield picture
        if suffix in ocr.PICTURES and not ocr_installed():
            return
    names = set[str]()
    try:
        for found in FORMATS.get(suffix, as_written)(data, suffix):
            if not isinstance(found, Attachment):
                yield found
                continue
            if len(names) == INSIDE:
                yield NotRead(found.name, f"the file holds over {INSIDE:,} others")
                return
            # a name that gzip does not store is that of the packed file
            packed = name[:-3] if name.lower().endswith(".gz") else name
            found = replace(found, name=found.name or packed or "file")
            key = distinct(found.name, names)
            names.add(key)
            yield from _inside(found, key, depth + 1, described)
    except ReadError:  # a file of pictures without text
        if not has_pictures:
            raise


def _inside(found: Attachment, key: str, depth: int, described: bool) -> Iterator[Piece | NotRead | Picture]:
    """`key`: the name, which another file may have as well, with a number where one had it before."""
    name = found.name.rpartition("/")[2]
    suffix = suffix_of(name)
    reason = SECRET if secret(name) else kind_of(name)
    reason = reason or start_reason(name, found.data[:HEAD], described)
    if depth > DEPTH:
        reason = f"files inside of files are read to a depth of {DEPTH}"
    if reason:
        yield NotRead(key, reason)
        return
    try:
        for piece in pieces(found.data, suffix, depth, described, name):
            if isinstance(piece, NotRead):
                yield NotRead(f"{key}/{piece.name}" if piece.name else key, piece.reason)
                continue
            full = f"{key}/{piece.key}" if piece.key else key
            metadata = found.metadata | piece.metadata
            if isinstance(piece, Picture):
                yield replace(piece, key=full, metadata=metadata)
            elif piece.text.strip():
                title = piece.title or ("" if piece.prose else name)
                yield replace(piece, key=full, title=title, metadata=metadata)
    except MemoryError:
        raise
    except Exception as error:  # bytes from anywhere: a bad file ends no other in its archive
        yield NotRead(key, why_not(error, suffix))
