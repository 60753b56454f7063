"""Text of pictures and scanned pages, read by rapidocr (the extra graphrag-mcp[ocr]).

Its models (PP-OCRv6: Latin scripts, Chinese, Japanese) lie in its wheel, so nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece, tidy

DPI = 200  # of a page's picture: letters of 10 points are 28 pixels high
LEAST = 0.5  # of the confidence of a line that is kept; what is less is mostly no text
INSTALL = 'pip install "graphrag-mcp[ocr]"'
SCANNED = f"its pages are pictures; {INSTALL} reads them"
PICTURES = frozenset("png jpg jpeg tif tiff bmp webp".split())


@dataclass(frozen=True)
class Reading:
    text: str
    confidence: float  # the mean over its lines, from 0 to 1


@lru_cache(maxsize=1)
def engine() -> Any:
    """The engine with its models; a second to load."""
    import logging

    logging.disable(logging.INFO)
    from rapidocr import RapidOCR

    return RapidOCR()


def read(picture: bytes) -> Reading:
    """The lines of a picture, from top to bottom."""
    found = engine()(picture)
    texts = [] if found.txts is None else list(found.txts)
    scores = [] if found.scores is None else list(found.scores)
    kept = [(text, score) for text, score in zip(texts, scores, strict=True) if score >= LEAST]
    if not kept:
        return Reading("", 0.0)
    return Reading(
        tidy("\n".join(text for text, _ in kept)), sum(score for _, score in kept) / len(kept)
    )


def picture(data: bytes, suffix: str) -> Iterator[Piece]:
    reading = read(data)
    if not reading.text:
        raise ReadError("no text was found in the picture")
    metadata = {"read_by": "ocr", "ocr_confidence": round(reading.confidence, 3)}
    yield Piece(reading.text + "\n", metadata=metadata)
