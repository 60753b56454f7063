"""Text of pictures and scanned pages, read by rapidocr (the extra graphrag-mcp[ocr]).

Its models (PP-OCRv6: Latin scripts, Chinese, Japanese) lie in its wheel, so nothing is fetched."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import extra
from graphrag_mcp.sources.decode import ReadError, library
from graphrag_mcp.sources.piece import Piece, Writer, tidy

if TYPE_CHECKING:
    from PIL import Image

# Of 56 lines of 8.6 points, and of 80 lines of 5.8 points, on a page of 1654 x 2339 pixels all are found with
# a longest side of 960, in 1.0 s of CPU instead of 5.5. Lines one at a time are not padded to the longest of
# six, and one thread does not spin: 12 lines take 2.3 s of CPU instead of 8.3, read with 0.994 instead of 0.996.
PARAMETERS = {
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "Rec.rec_batch_num": 1,
    "Det.limit_side_len": 960,
    "Det.limit_type": "max",
}
DPI = 200  # of a page's picture: letters of 10 points are 28 pixels high
SIDE = 2_000  # pixels: the engine makes larger pictures so small before it looks at them
PIXELS = 90_000_000  # of a picture: 360 MB as it is opened; A3 at 600 dots per inch has 70 million
MOST = 500  # pictures of one file; each has the time of a file
LEAST = 0.5  # of the confidence of a line that is kept; what is less is mostly no text
INSTALL = extra("ocr")
PAGES = "its pages are pictures"  # by which a scan is known in an index: it does not change
SCANNED = f"{PAGES}; {INSTALL} reads them"
DAMAGED = "it is damaged, or no picture"
SCANS = f"{INSTALL} reads them, an index without it does not"
PICTURES = frozenset("png jpg jpeg tif tiff bmp webp".split())
# of files that are documents themselves
CARRIERS = frozenset("eml emlx mbox msg zip gz tgz tar".split())
READ = PICTURES | CARRIERS | {"pdf"}  # files that are pictures or may hold some


# Called before each picture: the process that reads files gives each of them the time of a file.
signals: list[Callable[[], None]] = []


class TooMany(ReadError):
    """The file holds more pictures than are read."""


@dataclass(frozen=True)
class Reading:
    """The text that was read in a picture."""

    text: str
    confidence: float  # the mean over its lines, from 0 to 1


@lru_cache(maxsize=1)
def engine() -> Any:
    """The engine with its models; a second to load."""
    import logging

    logging.disable(logging.INFO)
    from rapidocr import RapidOCR  # pyright: ignore[reportMissingImports]

    return RapidOCR(params=PARAMETERS)


def read(picture: bytes) -> Reading:
    """The lines of a picture, from top to bottom. ReadError where it is none, or too large."""
    return read_opened(_opened(picture))


def _opened(data: bytes) -> Image.Image:
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # pixels are counted here
    with library(DAMAGED):
        return Image.open(io.BytesIO(data))


def read_opened(picture: Image.Image) -> Reading:
    """The lines of a picture, as in `read`."""
    for signal in signals:
        signal()
    if picture.width * picture.height > PIXELS:
        many = f"{picture.width * picture.height / 1e6:,.0f} million pixels"
        raise ReadError(f"it is a picture of {many}, and {PIXELS / 1e6:g} million are read")
    with library(DAMAGED):
        small = _upright(picture)
        if all(least == most for least, most in _extremes(small)):
            return Reading("", 0.0)  # a blank page
        found = engine()(small)
    texts = [] if found.txts is None else list(found.txts)
    scores = [] if found.scores is None else list(found.scores)
    kept = [(text, score) for text, score in zip(texts, scores, strict=True) if score >= LEAST]
    if not kept:
        return Reading("", 0.0)
    return Reading(tidy("\n".join(text for text, _ in kept)), sum(score for _, score in kept) / len(kept))


def _upright(picture: Image.Image) -> Image.Image:
    """The picture as its camera was held, in grey or colours, at most SIDE pixels long."""
    from PIL import ImageOps

    picture.draft("RGB", (SIDE, SIDE))  # a JPEG is opened no larger than is needed
    if picture.mode.startswith("I;"):  # 16 bits in either order of bytes
        picture = picture.convert("I")
    if picture.mode in ("I", "F"):
        least, most = _extremes(picture)[0]
        scale = 255 / max(most - least, 1)
        picture = picture.point(lambda value: value * scale - least * scale).convert("L")
    elif picture.mode not in ("L", "LA", "RGB", "RGBA"):
        picture = picture.convert("L" if picture.mode == "1" else "RGB")
    picture.thumbnail((SIDE, SIDE))
    return ImageOps.exif_transpose(picture)


def _extremes(picture: Image.Image) -> list[tuple[float, float]]:
    """The least and the largest value of each band."""
    found: Any = picture.getextrema()
    return [found] if len(picture.getbands()) == 1 else list(found)


def picture(data: bytes, suffix: str) -> Iterator[Piece]:
    """The text of a picture; of a TIFF with several, each is a page."""
    picture = _opened(data)
    several = picture.format == "TIFF" and _has(picture, 1)
    if several and _has(picture, MOST):
        raise ReadError(f"it holds over {MOST} pictures, which is as many as are read. Split it")
    writer, confidence, page = Writer(), list[float](), 0
    while page < (MOST if several else 1) and _has(picture, page):
        reading = read_opened(picture.copy() if several else picture)
        page += 1
        if reading.text:
            writer.add(reading.text, f"p. {page}" if several else "")
            confidence.append(reading.confidence)
    if not confidence:
        raise ReadError(f"no text was found in the picture{'s' * several}")
    pages = {"pages": page} if several else {}
    yield writer.piece(metadata=pages | {"read_by": "ocr", "ocr_confidence": round(min(confidence), 3)})


def _has(picture: Image.Image, page: int) -> bool:
    """Goes to a page; False where there is none."""
    with library(DAMAGED), suppress(EOFError):
        picture.seek(page)
        return True
    return False
