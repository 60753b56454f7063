"""Text, form fields, comments and pictures of PDF files, by PDFium (pypdfium2).

Runs in the parser's process only (parser_child.py)."""

from __future__ import annotations

import ctypes
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from graphrag_mcp.sources import ocr
from graphrag_mcp.sources.archive import UNPACKED
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece, Writer, borne, parser
from graphrag_mcp.sources.walk import ocr_installed

if TYPE_CHECKING:
    from pypdfium2 import PdfAttachment, PdfDocument, PdfPage, PdfTextPage

PAGES = 20_000  # of a PDF
LONGEST = 2_400  # pixels of a page's picture, about A4 at 200 dots per inch
# Steps between the lines of 40 papers, in usual steps of their page: 19,010 of 27,000 are 1, 127 are 1.15,
# 236 are 1.35. So a step over GAP begins a paragraph. Below half a step stand indices and notes' marks.
GAP, SAME = 1.2, 0.5
LEAST_STEP = 2.0  # points
# A line ends with CR LF, or with U+FFFE where its word goes on and the hyphen is left out.
_LINE_END = re.compile("\r\n|\ufffe")
_CLOSING = tuple(",.;:)]}’”，。；：）")


def opened(data: bytes) -> PdfDocument:
    """The document; ReadError where it is none, or needs a password."""
    import pypdfium2
    from pypdfium2 import raw

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ReadError("it is encrypted with a password") from error
        raise ReadError("it is damaged, or no PDF file") from error


def pdf(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """The text of the pages, and the files in it; pages without any are read from their picture, with the extra [ocr]."""
    if b"%PDF-" not in data[:2_000]:
        raise ReadError("it is damaged, or no PDF file")
    document = opened(data)
    count = len(document)
    if count > PAGES:
        raise ReadError(f"it says that it has {count:,} pages; {PAGES:,} are read")
    if not count:
        raise ReadError("it is damaged: no page can be read")
    if document.get_formtype():
        document.init_forms()
    metadata: dict[str, Any] = {"pages": count, "parser": parser("pypdfium2")}
    files = [_file(document.get_attachment(at)) for at in range(document.count_attachments())]
    texts = _Texts([""] * count, [""] * count)
    for number in range(count):
        page = _page(document, number)
        if page is None:
            texts.broken.append(number + 1)
            continue
        texts.pages[number] = _text(page)
        texts.notes[number] = _notes(document, page)
        files += _files_of_page(document, page)
        page.close()
        if not texts.pages[number].strip():
            texts.scanned.append(number)
    first = next((words for words in texts.pages if words.strip()), "")
    why = ocr.SCANNED
    if texts.scanned and ocr_installed():
        if len(texts.scanned) > ocr.MOST:
            many = f"{len(texts.scanned):,} of its pages are without text"
            why = f"{many}, and {ocr.MOST} are read from their picture. Split it"
        else:
            read, why = _read_scans(document, texts)
            metadata |= read
    writer = Writer()
    for number, words in enumerate(zip(texts.pages, texts.notes, strict=True), 1):
        writer.add("\n\n".join(filter(None, words)), f"p. {number}")
    if len(texts.broken) == count and not writer.size:
        raise ReadError("it is damaged: no page can be read")
    shown = why and _shows_pictures(document, texts.scanned)
    if not writer.size and not files:
        raise ReadError(f"no text in it: {why}" if shown else "no text in it")
    if shown and why == ocr.SCANNED:
        yield NotRead("", f"some of {why}" if any(map(str.strip, texts.pages)) else why)
    if texts.broken:
        metadata["pages_not_read"] = texts.broken[:100]
        yield NotRead("", "some pages are damaged")
    if texts.scanned:
        metadata["pages_without_text"] = len(texts.scanned)
        if why != ocr.SCANNED:
            yield NotRead("", why)
    yield writer.piece(borne(document.get_metadata_value("Title"), first), metadata=metadata)
    yield from files


def _files_of_page(document: PdfDocument, page: PdfPage) -> Iterator[Attachment | NotRead]:
    """The files that are pinned to a page."""
    from pypdfium2 import PdfAttachment, raw

    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_FILEATTACHMENT:
            yield _file(PdfAttachment(raw.FPDFAnnot_GetFileAttachment(annotation), document))
        raw.FPDFPage_CloseAnnot(annotation)


def _file(found: PdfAttachment) -> Attachment | NotRead:
    from pypdfium2 import PdfiumError, raw

    name, size = "attachment", ctypes.c_ulong()
    with suppress(PdfiumError, ValueError):
        name = " ".join(found.get_name().split())[:200] or name
        raw.FPDFAttachment_GetFile(found, None, 0, size)
        if size.value <= UNPACKED:
            return Attachment(name, bytes(found.get_data()))
    large = f"it unpacks to more than {UNPACKED / 1e6:g} MB"
    return NotRead(name, large if size.value > UNPACKED else "it is damaged, or empty")


@dataclass
class _Texts:
    """By page. `notes`: fields and comments. `broken`: numbers, from 1, of pages that cannot be read;
    `scanned`: indices of pages without text."""

    pages: list[str]
    notes: list[str]
    broken: list[int] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)


def _page(document: PdfDocument, number: int) -> PdfPage | None:
    import pypdfium2

    try:
        return document[number]
    except pypdfium2.PdfiumError:
        return None


# ---- text ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """`along` and `height` in points: where its first character stands on the page as it is shown."""

    text: str
    along: float
    height: float
    hyphen: bool  # it ends with one, which is left out


def _text(page: PdfPage) -> str:
    """The text of a page, its paragraphs with blank lines between them."""
    import pypdfium2

    words = ""
    with suppress(pypdfium2.PdfiumError):
        lines = page.get_textpage()
        words = _paragraphs(list(_lines(lines, page.get_rotation())))
        lines.close()
    return words


def _lines(page: PdfTextPage, rotation: int) -> Iterator[_Line]:
    from pypdfium2 import raw

    text = page.get_text_range()
    x, y = ctypes.c_double(), ctypes.c_double()
    start = beyond = 0  # `beyond`: characters before that take two units of UTF-16
    for found in [*_LINE_END.finditer(text), None]:
        line = text[start : found.start() if found else len(text)]
        index = raw.FPDFText_GetCharIndexFromTextIndex(page, start + beyond)
        # leaves both as they were where there is none
        raw.FPDFText_GetCharOrigin(page, index, x, y)
        along, height = {90: (y.value, -x.value), 180: (-x.value, -y.value), 270: (-y.value, x.value)}.get(
            rotation, (x.value, y.value)
        )
        yield _Line(line, along, height, found is not None and found[0] == "\ufffe")
        if not line.isascii():
            beyond += sum(character > "\uffff" for character in line)
        start = found.end() if found else start


def _paragraphs(lines: Sequence[_Line]) -> str:
    """PDF knows letters and their places alone: a paragraph begins where a line stands more than a
    usual step below the line before, or above it (in the next column) and no sentence goes on."""
    steps = [above.height - line.height for above, line in zip(lines, lines[1:], strict=False)]
    usual = median([step for step in steps if step > LEAST_STEP] or [0.0])
    parts = [line.text for line in lines[:1]]
    for step, above, line in zip(steps, lines, lines[1:], strict=False):
        # below the last line of a page may stand its foot, which ends no word
        same_case = above.text[-1:].isupper() == line.text[:1].isupper()
        if above.hyphen and not same_case:
            parts.append("-")
        if above.hyphen and same_case:
            gap = ""
        elif abs(step) < SAME * usual and line.along > above.along:
            gap = "" if line.text.startswith(_CLOSING) else " "
        elif step > GAP * usual > 0 or (step < 0 and not line.text[:1].islower()):
            gap = "\n\n"
        else:
            gap = "\n"
        parts += (gap, line.text)
    return "".join(parts).strip()


# ---- fields and comments -------------------------------------------------------------------------


def _notes(document: PdfDocument, page: PdfPage) -> str:
    """`Name: value` of the fields of a form that are filled in, text that stands on the page as an
    annotation, and comments with their authors; nothing that is hidden. Fields, texts and marks of
    comments are hidden then in the open document, so that OCR does not read them from the picture of the page."""
    from pypdfium2 import raw

    fields: dict[str, None] = {}  # in their order, each once
    texts: list[str] = []
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        flags = raw.FPDFAnnot_GetFlags(annotation)
        shown = not flags & raw.FPDF_ANNOT_FLAG_HIDDEN
        words = ""
        if shown and kind == raw.FPDF_ANNOT_WIDGET and document.formenv is not None:
            words = _field(document.formenv, annotation)
            fields |= {words: None} if words else {}
        elif shown and kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET):
            words = _string(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
            who = _string(raw.FPDFAnnot_GetStringValue, annotation, b"T")
            if words and kind != raw.FPDF_ANNOT_FREETEXT:
                words = f"Comment ({who}): {words}" if who else f"Comment: {words}"
            texts += [words] if words else []
        if words and kind in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_TEXT):
            raw.FPDFAnnot_SetFlags(annotation, flags | raw.FPDF_ANNOT_FLAG_HIDDEN)
        raw.FPDFPage_CloseAnnot(annotation)
    return "\n\n".join(filter(None, ("\n".join(fields), *texts)))


def _field(form: Any, annotation: Any) -> str:
    """`Name: value` of a field that is filled in, else ""."""
    from pypdfium2 import raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    value = _string(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        if not raw.FPDFAnnot_IsChecked(form, annotation):
            return ""
        value = _string(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation) or value
    elif kind in (raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE):
        return ""
    name = _string(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = name or _string(raw.FPDFAnnot_GetFormFieldName, form, annotation)
    return f"{name}: {value}" if name and value else value


def _string(function: Any, *arguments: Any) -> str:
    """What a function of PDFium gives that writes UTF-16 into a buffer."""
    size = function(*arguments, None, 0)  # in bytes, with a zero at the end
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    function(*arguments, buffer, size)
    text = bytes(buffer)[: size - 2].decode("utf-16-le", "replace")
    return " ".join(text.replace("\0", " ").split())


# ---- pictures ------------------------------------------------------------------------------------


def _read_scans(document: PdfDocument, texts: _Texts) -> tuple[dict[str, Any], str]:
    """Put what is read of the pictures of pages into `texts.pages`, and the numbers of those that cannot
    be into `texts.broken`. Gives metadata, and why pages are left in `texts.scanned`."""
    confidence: list[float] = []
    why = ""
    while texts.scanned:
        number = texts.scanned[0]
        try:
            read = _read_scan(document, number)
        except ocr.TooMany as error:
            why = str(error)
            break
        except (ReadError, ValueError, RuntimeError, OSError):
            texts.broken.append(number + 1)
        else:
            texts.pages[number] = read.text
            confidence += [read.confidence] if read.text else []
        del texts.scanned[0]
    texts.broken.sort()
    if not confidence:
        return {}, why
    found = {"pages_by_ocr": len(confidence), "ocr_confidence": round(min(confidence), 3)}
    return found, why


def _read_scan(document: PdfDocument, number: int) -> ocr.Reading:
    page = document[number]
    longest = max(*page.get_size(), 1.0)  # in points
    picture = page.render(scale=min(ocr.DPI / 72, LONGEST / longest)).to_pil()
    page.close()
    return ocr.read_opened(picture)


def _shows_pictures(document: PdfDocument, pages: Sequence[int]) -> bool:
    return any(True for number in pages for _ in _pictures(_page(document, number)))


def _pictures(page: PdfPage | None) -> Iterator[Any]:
    from pypdfium2 import raw

    if page is not None:
        yield from page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])


def pictures(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number of its page from 1, JPEG or PNG) of each picture."""
    import pypdfium2

    document = opened(data)
    for number in range(min(len(document), PAGES)):
        page = _page(document, number)
        for picture in _pictures(page):
            with suppress(pypdfium2.PdfiumError, ValueError):
                if picture.get_filters(skip_simple=True) == ["DCTDecode"]:
                    yield number + 1, bytes(picture.get_data(decode_simple=True))
                else:
                    yield number + 1, _png(picture.get_bitmap())
        if page is not None:
            page.close()


def _png(bitmap: Any) -> bytes:
    """A bitmap of 8 bits in grey, or of blue, green and red (and something that is left out), as PNG
    (RFC 2083)."""
    channels, kind = (1, 0) if bitmap.n_channels == 1 else (3, 2)
    lines = bytearray()
    pixels = bytes(bitmap.buffer)
    for at in range(0, bitmap.stride * bitmap.height, bitmap.stride):
        line = pixels[at : at + bitmap.width * bitmap.n_channels]
        if channels == 3:
            swapped = bytearray(3 * bitmap.width)
            for channel in range(3):
                swapped[2 - channel :: 3] = line[channel :: bitmap.n_channels]
            line = bytes(swapped)
        lines += b"\0" + line
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
