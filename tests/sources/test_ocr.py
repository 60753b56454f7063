"""Pictures and scanned pages are read by the extra [ocr], one process for all of them."""

from __future__ import annotations

import ctypes
import io
import re
import struct
import zlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import ocr, read
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece
from graphrag_mcp.sources.walk import ocr_installed
from graphrag_mcp.store import manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.types import IndexRequest, IndexResult

pytestmark = pytest.mark.skipif(not ocr_installed(), reason="the extra [ocr] is not installed")
LINES = ("The shed costs 1,850 euros.", "Nordfisch GmbH in Emden")


def scan(kind: str, pages: int = 1) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (620, 200), "white")
    for at, line in enumerate(LINES):
        ImageDraw.Draw(page).text((20, 30 + 60 * at), line, fill="black", font=ImageFont.load_default(size=28))
    out = io.BytesIO()
    more = {"save_all": True, "append_images": [page] * (pages - 1)} if pages > 1 else {}
    page.save(out, kind, **more)
    return out.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_pictures_and_scanned_pages_are_read_by_one_process() -> None:
    read.close()
    processes = set()
    for kind in ("PNG", "JPEG", "TIFF"):
        (piece,) = read.parse(scan(kind), kind.lower())
        assert isinstance(piece, Piece) and all(plain(line) in plain(piece.text) for line in LINES)
        assert piece.metadata["read_by"] == "ocr" and piece.metadata["ocr_confidence"] > 0.8
        processes.add(read._child and read._child.process.pid)
    (piece,) = read.parse(scan("PDF", pages=3), "pdf")
    assert isinstance(piece, Piece) and piece.metadata["pages_by_ocr"] == 3
    assert [name for _, name in piece.places] == ["p. 1", "p. 2", "p. 3"]
    processes.add(read._child and read._child.process.pid)
    assert len(processes) == 1


def test_pictures_in_a_zip_are_read() -> None:
    box = io.BytesIO()
    with ZipFile(box, "w") as packed:
        packed.writestr("in/scan.png", scan("PNG"))
    (piece,) = read.parse(box.getvalue(), "zip")
    assert isinstance(piece, Piece) and piece.key == "in/scan.png" and plain(LINES[0]) in plain(piece.text)


def test_a_damaged_picture_ends_with_its_reason() -> None:
    with pytest.raises(ReadError, match="it is damaged, or no picture"):
        read.parse(b"\x89PNG\r\n\x1a\n", "png")


def test_the_frames_of_a_tiff_are_its_pages() -> None:
    (piece,) = read.parse(scan("TIFF", pages=2), "tif")
    assert isinstance(piece, Piece) and piece.metadata["pages"] == 2
    assert [name for _, name in piece.places] == ["p. 1", "p. 2"]
    assert plain(piece.text).count(plain(LINES[0])) == 2


def test_a_photo_is_read_as_its_camera_was_held() -> None:
    from PIL import Image

    turned = Image.open(io.BytesIO(scan("PNG"))).rotate(90, expand=True)
    told = Image.Exif()
    told[0x0112] = 6  # the camera was held upright
    out = io.BytesIO()
    turned.save(out, "JPEG", exif=told)
    (piece,) = read.parse(out.getvalue(), "jpg")
    assert isinstance(piece, Piece) and all(plain(line) in plain(piece.text) for line in LINES)


def png(wide: int, high: int) -> bytes:
    """A white picture of one bit for each pixel, some hundred kilobytes for 900 million pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packed = zlib.compress((b"\0" + b"\xff" * (wide // 8)) * high, 6)
    head = struct.pack(">IIBBBBB", wide, high, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def frames(count: int) -> bytes:
    """A TIFF of white frames that share one strip of pixels."""
    tags = [(256, 3, 64), (257, 3, 64), (258, 3, 1), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1), (278, 3, 64), (279, 4, 512)]
    out = b"II*\0" + struct.pack("<I", 520) + b"\xff" * 512
    page = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    at = [520 + (len(page) + 4) * number for number in range(1, count)] + [0]
    return out + b"".join(page + struct.pack("<I", following) for following in at)


def pages(count: int, picture: bytes, wide: int, high: int) -> bytes:
    """A PDF of pages that show one JPEG in grey."""
    shown = b"q 595 0 0 842 0 0 cm /I Do Q"
    kids = b" ".join(b"%d 0 R" % (5 + number) for number in range(count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /XObject << /I 3 0 R >> >> /Contents 4 0 R >>"
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, kids),
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /DCTDecode "
        b"/Length %d >>\nstream\n%s\nendstream" % (wide, high, len(picture), picture),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown),
        *[page] * count,
    ]
    objects = [b"%d 0 obj\n%s\nendobj\n" % (number, body) for number, body in enumerate(bodies, 1)]
    places, at = [], 9
    for one in objects:
        places.append(b"%010d 00000 n \n" % at)
        at += len(one)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, at)
    return b"%PDF-1.4\n" + b"".join(objects) + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(places) + end


def grey() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(scan("PNG"))).convert("L").save(out, "JPEG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("suffix", "make", "reason"),
    [
        ("png", lambda: png(30_000, 30_000), "900 million pixels, and 90 million are read"),
        ("tiff", lambda: frames(10_000), "it holds over 500 pictures"),
        ("pdf", lambda: pages(2_000, grey(), 620, 200), "2,000 of its pages are without text, and 500 are read"),
    ],
)
def test_pictures_that_are_too_large_or_too_many_are_one_line_and_cost_nothing(suffix: str, make, reason: str) -> None:
    began = read.parse(scan("PNG"), "png")
    with pytest.raises(ReadError, match=reason):
        read.parse(make(), suffix)
    assert read.parse(scan("PNG"), "png") == began


def test_a_file_with_pictures_has_the_memory_of_any_file() -> None:
    """A picture of nearly as many pixels as are read, twice in one process."""
    read.close()
    with pytest.raises(ReadError, match="no text was found"):
        read.parse(png(9_400, 9_400), "png")
    with pytest.raises(ReadError, match="no text was found"):
        read.parse(png(9_400, 9_400), "png")
    assert ocr.PIXELS >= 9_400**2


def test_pages_that_show_a_picture_are_read_beside_pages_of_text() -> None:
    (piece,) = read.parse(pages(2, grey(), 620, 200), "pdf")
    assert isinstance(piece, Piece) and piece.metadata["pages_by_ocr"] == 2


def letter_with_scan() -> bytes:
    """A PDF of two pages: words, and a picture of a page."""
    import pypdfium2
    from pypdfium2 import raw

    document = pypdfium2.PdfDocument(scan("PDF"))
    page = document.new_page(595, 842, 0)
    words = raw.FPDFPageObj_NewTextObj(document, b"Helvetica", 12)
    letters = [*map(ord, "The lease of Skerrow is attached."), 0]
    raw.FPDFText_SetText(words, (ctypes.c_ushort * len(letters))(*letters))
    raw.FPDFPage_InsertObject(page, words)
    page.gen_content()
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_files_with_pictures_are_read_again_once_when_the_extra_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, corpus = tmp_path / "in", tmp_path / "home" / "c"
    folder.mkdir()
    (folder / "lease.pdf").write_bytes(letter_with_scan())
    with ZipFile(folder / "box.zip", "w") as box:
        box.writestr("note.txt", "A note of the harbour.")
        box.writestr("scan.png", scan("PNG"))
    (folder / "plain.txt").write_text("Nothing to see.")

    def index() -> IndexResult:
        read.close()  # the process that parses has the environment of its start
        return index_documents(
            corpus, IndexRequest(paths=(str(folder),)), Settings(home=corpus.parent)
        )

    def held() -> dict[str, str]:
        rows = live_documents(corpus, manifest.read(corpus), ["uri", "text"]).to_pylist()
        return {row["uri"].partition("/")[2]: plain(row["text"]) for row in rows}

    monkeypatch.setenv("GRAPHRAG_MCP_OCR", "off")
    left = index().skipped
    assert any(reason.startswith("some of its pages are pictures") for reason in left)
    assert plain(LINES[0]) not in held()["lease.pdf"] and "box.zip#scan.png" not in held()
    assert index().counts["unchanged"] == 3
    monkeypatch.delenv("GRAPHRAG_MCP_OCR")
    counts = index().counts
    assert (counts["changed"], counts["added"], counts["unchanged"]) == (1, 1, 2)
    assert plain(LINES[0]) in held()["lease.pdf"] and plain(LINES[0]) in held()["box.zip#scan.png"]
    whole = manifest.read(corpus)
    assert whole is not None and "without_ocr" not in next(iter(whole.sources.values()))
