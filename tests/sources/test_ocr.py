"""Pictures and scanned pages are read by the extra [ocr], one process for all of them."""

from __future__ import annotations

import io
import re
from zipfile import ZipFile

import pytest

from graphrag_mcp.sources import read
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece
from graphrag_mcp.sources.walk import ocr_installed

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
