"""Text of pictures and scanned pages, read by rapidocr (the extra graphrag-mcp[ocr]).

Its models (PP-OCRv6: Latin scripts, Chinese, Japanese) lie in its wheel, so nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Piece, tidy

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
LEAST = 0.5  # of the confidence of a line that is kept; what is less is mostly no text
INSTALL = 'pip install "graphrag-mcp[ocr]"'
SCANNED = f"its pages are pictures; {INSTALL} reads them"
SCANS = f"{INSTALL} reads them, an index without it does not"
PICTURES = frozenset("png jpg jpeg tif tiff bmp webp".split())
READ = PICTURES | frozenset(
    "pdf eml mbox msg zip".split()
)  # files that are pictures or may hold some


# Called before each picture: the process that reads files gives each of them the time of a file.
signals: list[Callable[[], None]] = []


@dataclass(frozen=True)
class Reading:
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
    """The lines of a picture, from top to bottom. ReadError where it is none."""
    for signal in signals:
        signal()
    try:
        found = engine()(picture)
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # what its library says of damaged pictures
        raise ReadError("it is damaged, or no picture") from error
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
