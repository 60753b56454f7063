"""One function per file type: bytes in, pieces of text out. To add a type, write one and name it in FORMATS.

A function takes (bytes, suffix) and yields `Piece`s: one for a plain document, one per row for tables. It raises
ReadError with a reason in plain words; anything else it raises becomes one too (read.py). Knows neither paths nor
corpora. What happens to line ends and stray bytes is said in decode.py; the text of HTML is its readable text.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from graphrag_mcp.index import office as packed
from graphrag_mcp.index.decode import ReadError, clean, decode, decode_as, front_matter, utc
from graphrag_mcp.index.html_text import readable

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


def html(data: bytes, suffix: str) -> Iterator[Piece]:
    declared = re.search(rb"""<meta[^>]{0,200}?charset=["' ]{0,2}([A-Za-z0-9_.:-]{2,40})""", data[:4096], re.I)
    try:
        data.decode("utf-8")
        markup, metadata = decode(data)
    except UnicodeDecodeError:
        try:
            known = codecs.lookup(declared[1].decode("ascii")).name if declared else ""
            markup, metadata = decode_as(data, known) if known not in ("", "utf-8") else decode(data)
        except LookupError:
            markup, metadata = decode(data)
    title, text = readable(markup)
    yield Piece(clean(text), title, metadata=metadata)


# ---- rows -----------------------------------------------------------------------------------------

_ID, _TITLE, _TEXT = ("id", "_id", "doc_id"), ("title",), ("text", "content", "body")


def row(values: Mapping[str, Any], number: int) -> Piece:
    """A row as a document: its text column, or all of it as `key: value` lines; other scalars are metadata."""
    if len(values) > COLUMNS:
        raise ReadError(f"it has {len(values):,} columns; {COLUMNS:,} are read")
    names = {str(name).strip().casefold(): name for name in reversed(list(values))}

    def pick(wanted: tuple[str, ...]) -> Any:
        return next((names[name] for name in wanted if name in names and values[names[name]] not in (None, "")), None)

    id_, title, text = pick(_ID), pick(_TITLE), pick(_TEXT)
    if text is not None and not isinstance(values[text], str):
        text = None
    metadata = {}
    for name, value in values.items():
        value = _plain(value)
        if name not in (id_, title, text) and value is not None and (text is not None or len(str(value)) <= 200):
            metadata[clean(str(name))] = value
    body = (
        values[text]
        if text is not None
        else "\n".join(f"{name}: {shown}" for name, value in values.items() if (shown := _shown(value)).strip())
    )
    key = " ".join(str(values[id_]).split())[:200] if id_ is not None else ""
    heading = str(values[title]) if title is not None and _plain(values[title]) is not None else ""
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
    if isinstance(value, list) and value and not any(isinstance(item, list | dict) for item in value):
        items = [_plain(item) for item in value[:1000]]
        return [item for item in items if item is not None] or None
    return None if value is None or isinstance(value, list | dict | bytes) else clean(str(value))


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str) if value else ""
    plain = _plain(value)
    return "" if plain is None else str(plain)


def _rows(objects: Iterable[Mapping[str, Any]]) -> Iterator[Piece]:
    for number, values in enumerate(objects, 1):
        yield row(values, number)


def table(data: bytes, suffix: str) -> Iterator[Piece]:
    """csv and tsv: the first line names the columns; the separator of a csv is the one its first line uses most."""
    text, _ = decode(data)
    first = text.lstrip("\n").partition("\n")[0]
    separator = "\t" if suffix in ("tsv", "tab") else max(",;\t|", key=first.count)
    csv.field_size_limit(2**31 - 1)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header = next((line for line in lines if any(cell.strip() for cell in line)), [])
    if len(header) > COLUMNS:
        raise ReadError(f"it has {len(header):,} columns; {COLUMNS:,} are read")
    names: list[str] = []
    for position, cell in enumerate(header, 1):
        name = cell.strip()
        names.append(name if name and name not in names else f"column {position}")
    for number, line in enumerate((line for line in lines if any(cell.strip() for cell in line)), 1):
        names += [f"column {position}" for position in range(len(names) + 1, len(line) + 1)]
        yield row(dict(zip(names, line, strict=False)), number)


def json_file(data: bytes, suffix: str) -> Iterator[Piece]:
    """An array of objects, or {"documents": [...]}, gives rows; an object with a text a document; else text."""
    text, metadata = decode(data)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # not JSON, nested too deeply, a number of 5,000 digits: still text
        value = None
    if isinstance(value, dict) and isinstance(value.get("documents"), list):
        value = value["documents"]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        yield from _rows(value)
    elif isinstance(value, dict) and (piece := _alone(value)):
        yield piece
    else:
        yield Piece(text, metadata=metadata, prose=False)


def _alone(values: Mapping[str, Any]) -> Piece | None:
    """The document that a file's only object is: it has a text, and a title or nothing that a row would lose."""
    names = {name.strip().casefold() for name, value in values.items() if isinstance(value, str) and value.strip()}
    nested = any(isinstance(value, dict | list) and _plain(value) is None for value in values.values() if value)
    if names.isdisjoint(_TEXT) or (nested and "title" not in names):
        return None
    return replace(row(values, 1), key="")


def json_lines(data: bytes, suffix: str) -> Iterator[Piece]:
    """One object a line. A line that is none (a torn last line) is kept as it stands, so that nothing is lost."""
    text, metadata = decode(data)
    number = parsed = 0
    pieces: list[Piece] = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        number += 1
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        parsed += isinstance(value, dict)
        pieces.append(row(value, number) if isinstance(value, dict) else Piece(line, key=str(number), prose=False))
    yield from pieces if parsed else [Piece(text, metadata=metadata, prose=False)]


def parquet(data: bytes, suffix: str) -> Iterator[Piece]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    groups = (file.metadata.row_group(index) for index in range(file.metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > UNPACKED:
        raise ReadError("it unpacks to more than 500 MB")
    number = size = 0
    for batch in file.iter_batches(batch_size=16):  # few rows at once: a dictionary can make each of them huge
        for values in batch.to_pylist():
            number += 1
            piece = row(values, number)
            size += len(piece.text)
            if size > UNPACKED:
                raise ReadError("it unpacks to more than 500 MB")
            yield piece


def office(data: bytes, suffix: str) -> Iterator[Piece]:
    """pdf, docx, pptx, xlsx, epub, msg (the extra graphrag-mcp[docs])."""
    text, title, metadata = packed.text_of(data, suffix)
    yield Piece(clean(text), clean(title), metadata=metadata, prose=suffix != "xlsx")


# Parsed in a process of their own (parsers.py), whatever their size; the next ones when they are large.
APART = packed.OFFICE | {"parquet"}
ROWS = frozenset(("json", "jsonl", "ndjson", "csv", "tsv", "tab"))

# suffix -> function; what is not named here is read as source code or other plain text.
FORMATS: dict[str, Callable[[bytes, str], Iterator[Piece]]] = {
    **dict.fromkeys(("", "txt", "text", "md", "markdown", "mdx", "rst", "adoc", "asciidoc", "org", "tex"), prose),
    **dict.fromkeys(("html", "htm", "xhtml"), html),
    **dict.fromkeys(("csv", "tsv", "tab"), table),
    "json": json_file,
    **dict.fromkeys(("jsonl", "ndjson"), json_lines),
    "parquet": parquet,
    **dict.fromkeys(packed.OFFICE, office),
}
