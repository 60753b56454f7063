"""Text of pdf, docx, pptx, xlsx, epub and msg files, by libraries of graphrag-mcp[docs].

Runs in the parser's process only (parser_child.py). What a file would unpack to is added up first.
`<!-- page 3 -->` and `<!-- slide 3 -->` stand before each page and slide, `## name` before each
sheet."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import date, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from graphrag_mcp.sources.decode import ReadError

# suffix -> (module without which it cannot be read, the distributions whose versions decide its
# text, markitdown's converter). PDF is read by pdfium and not by markitdown: 100 pages in 0.2 s against 28 s, and with the
# pages told apart. Sheets are read row by row; markitdown makes a page of HTML of them first.
NEEDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "pdf": ("pypdfium2", ("pypdfium2",), ""),
    "xlsx": ("openpyxl", ("openpyxl",), ""),
    "docx": ("mammoth", ("markitdown", "mammoth"), "DocxConverter"),
    "pptx": ("pptx", ("markitdown", "python-pptx"), "PptxConverter"),
    "epub": ("markitdown", ("markitdown",), "EpubConverter"),
    "msg": ("olefile", ("markitdown", "olefile"), "OutlookMsgConverter"),
}
OFFICE = frozenset(NEEDS)
NO_EXTRA = 'needs more to be read: pip install "graphrag-mcp[docs]"'

TEXT_LIMIT = 20_000_000  # characters of one document's text
UNPACKED = 300_000_000  # bytes that a zip may hold in all
_ENTRIES = 10_000
# a part over 10 MB that was packed 200 times smaller is a bomb; sheets reach 40
_RATIO, _SMALL = (200, 10_000_000)
_PAGES = 20_000
_WIDE = 256  # columns from which on empty cells are left out, else a stray cell takes 16,000 bars
_ROWS = 1_048_576  # of a sheet, as Excel has it
_ENTITY = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_XML = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".vml")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")
_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.M)


def missing(suffix: str) -> bool:
    """Whether the library that reads such a file is not installed."""
    return suffix in NEEDS and find_spec(NEEDS[suffix][0]) is None


def prepare(suffix: str) -> None:
    """Import what a suffix needs. ReadError where the extra is not installed."""
    try:
        if NEEDS[suffix][2]:
            import_module("markitdown.converters")
        import_module(NEEDS[suffix][0])
    except ImportError as error:
        raise ReadError(NO_EXTRA) from error


def text_of(data: bytes, suffix: str) -> tuple[str, str, dict[str, Any]]:
    """(text, title or "", metadata). ReadError says why there is none."""
    prepare(suffix)
    if suffix in ("docx", "pptx", "xlsx", "epub"):
        _check_zip(data, suffix)
    try:
        reader = {"pdf": _pdf, "xlsx": _xlsx}.get(suffix, _converted)
        text, title, metadata = reader(data, suffix)
    except (MemoryError, ReadError):
        raise
    except Exception as error:  # whatever the libraries say of bytes that they do not expect
        raise ReadError(f"it is damaged, or no {suffix} file ({type(error).__name__})") from error
    _check_size(len(text))
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" if text.strip() else ""
    return text, " ".join(title.split()), {**metadata, "parser": parser(suffix)}


def parser(suffix: str) -> str:
    """What read it, e.g. "markitdown 0.1.8, mammoth 1.11.0", so that another version is seen."""
    named = []
    for name in NEEDS[suffix][1]:
        try:
            named.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            named.append(name)
    return ", ".join(named)


def _check_size(characters: int) -> None:
    if characters > TEXT_LIMIT:
        raise ReadError(f"its text is over {TEXT_LIMIT / 1e6:g} million characters")


def _check_zip(data: bytes, suffix: str) -> None:
    """Refuses what is no zip, what would unpack to too much, and XML that declares entities."""
    import zipfile

    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is encrypted with a password, or of an older Office than its name says")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise ReadError(f"it is damaged, or no {suffix} file") from error
    if len(entries) > _ENTRIES:
        raise ReadError(f"it holds over {_ENTRIES:,} files")
    total = 0
    for entry in entries:
        total += entry.file_size
        if total > UNPACKED:
            raise ReadError(f"it unpacks to more than {UNPACKED / 1e6:g} MB")
        if entry.file_size > _SMALL and entry.file_size > _RATIO * max(1, entry.compress_size):
            raise ReadError("it unpacks to far more than it should (a zip bomb)")
        if entry.flag_bits & 1:
            raise ReadError("it is encrypted with a password")
    for entry in entries:
        if entry.filename.lower().endswith(_XML) and _declares_entities(archive, entry):
            raise ReadError("its XML declares entities, which such a file has no use for")


def _declares_entities(archive: Any, entry: Any) -> bool:
    try:
        with archive.open(entry) as part:
            before = b""
            while block := part.read(1 << 20):
                if any(word in before + block for word in _ENTITY):
                    return True
                before = block[-32:]
    except Exception as error:  # a damaged part: whatever zipfile or zlib says of it
        raise ReadError("it is damaged: a part of it cannot be unpacked") from error
    return False


def _pdf(data: bytes, suffix: str) -> tuple[str, str, dict[str, Any]]:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise ReadError(
            "it is encrypted with a password" if locked else "it is damaged, or no PDF file"
        ) from error
    if len(pdf) > _PAGES:
        raise ReadError(f"it says that it has {len(pdf):,} pages; {_PAGES:,} are read")
    parts, size, broken = [], 0, 0
    for number in range(len(pdf)):
        try:
            page = pdf[number]
            words = page.get_textpage().get_text_bounded()
            page.close()
        except pypdfium2.PdfiumError:
            broken += 1
            continue
        size += len(words)
        _check_size(size)
        # pdfium marks a hyphen at the end of a line with U+0002, which `text_of` takes out.
        parts.append(f"<!-- page {number + 1} -->\n\n{words}\n\n")
    if not size or not "".join(part.partition("-->")[2] for part in parts).strip():
        if broken and broken == len(pdf):
            raise ReadError("it is damaged: no page can be read")
        raise ReadError("no text in it; scanned pages are not read")
    title = str(pdf.get_metadata_dict().get("Title", ""))
    # Many PDFs name another document, or a program: a title that the first page bears is one.
    borne = "".join(title.split()).casefold() in "".join(parts[0].split()).casefold()
    pages = {"pages": len(pdf)} | ({"pages_not_read": broken} if broken else {})
    return "".join(parts), title if borne else "", pages


def _xlsx(data: bytes, suffix: str) -> tuple[str, str, dict[str, Any]]:
    import openpyxl

    options = {"read_only": True, "data_only": True, "keep_links": False}
    book = openpyxl.load_workbook(io.BytesIO(data), **options)
    parts: list[str] = []
    size = 0
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # what a sheet says of its own size is not to be believed
        rows = _table(sheet.iter_rows(values_only=True))
        heading = f"## {_cell(sheet.title)}\n\n"
        for line in rows:
            size += len(line)
            _check_size(size)
            parts.append(heading + line)
            heading = ""
        parts.append("" if heading else "\n")
    return "".join(parts), "", {}


def _table(rows: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    """Rows as a Markdown table, empty ones left out; the first is its head."""
    columns = 0
    for number, row in enumerate(rows):
        if number > _ROWS:
            raise ReadError("a sheet has more rows than Excel allows")
        cells = [_cell(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            continue
        cells = [cell for column, cell in enumerate(cells) if cell or column < _WIDE]
        cells += [""] * (columns - len(cells))
        yield f"| {' | '.join(cells)} |\n"
        if not columns:
            columns = len(cells)
            yield "|" + " --- |" * columns + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, datetime):
        return (value if value.hour or value.minute or value.second else value.date()).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return " ".join(str(value).split()).replace("|", "\\|")


def _converted(data: bytes, suffix: str) -> tuple[str, str, dict[str, Any]]:
    """docx, pptx, epub, msg: by markitdown's converter of that type, which guesses nothing."""
    from markitdown import StreamInfo, converters

    converter = getattr(converters, NEEDS[suffix][2])()
    result = converter.convert(io.BytesIO(data), StreamInfo(extension=f".{suffix}"))
    return _SLIDE.sub(r"<!-- slide \1 -->", result.markdown or ""), result.title or "", {}
