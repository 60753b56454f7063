"""Pictures that a model can describe: a file that is one, and those inside of a PDF, an Office file or a book.

Runs in the parser's process (parser_child.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from zipfile import ZipFile

from graphrag_mcp.sources import archive, ocr, pdf
from graphrag_mcp.sources.archive import tree
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import NotRead, Picture

MOST = 100  # pictures of one file
LIMIT = 10_000_000  # bytes of a picture: servers take 20 MB as base64, or a little less
SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
PREVIEWS = ("docProps/", "Thumbnails/")  # small pictures of the whole file
PACKED = frozenset(
    "docx docm dotx dotm pptx pptm potx potm ppsx ppsm xlsx xlsm xltx xltm odt ott odp otp ods ots epub".split()
)
HOLDERS = PACKED | ocr.CARRIERS | ocr.PICTURES | {"pdf"}


def media_type(data: bytes) -> str:
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`, which models take; "" for anything else."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in SIGNATURES.items() if data.startswith(start)), "")


def pictures(data: bytes, suffix: str) -> Iterator[Picture | NotRead]:
    """The pictures of a file in their order, each once, with the page or slide on which it is first."""
    seen: set[bytes] = set()
    for name, place, picture in _pictures_in(data, suffix):
        if picture in seen:
            continue
        seen.add(picture)
        if len(seen) > MOST:
            yield NotRead("", f"it holds over {MOST} pictures, which is as many as are described")
            return
        if not media_type(picture):
            yield NotRead(name, "a picture of a kind that models do not take")
        elif len(picture) > LIMIT:
            yield NotRead(name, f"a picture over {LIMIT / 1e6:g} MB")
        else:
            yield Picture(picture, place)


def _pictures_in(data: bytes, suffix: str) -> Iterator[tuple[str, str, bytes]]:
    """(name, place, bytes) of each picture."""
    if suffix in ocr.PICTURES:
        yield "picture", "", data
    elif suffix == "pdf":
        yield from _of_pages(data)
    elif suffix in PACKED:
        with suppress(ReadError):  # the reader of its text says what is wrong
            yield from _of_parts(archive.checked(data, suffix))


def _of_pages(data: bytes) -> Iterator[tuple[str, str, bytes]]:
    count: dict[int, int] = {}  # pictures of a page
    with suppress(ReadError):  # the reader of its text says what is wrong
        for page, picture in pdf.pictures(data):
            count[page] = count.get(page, 0) + 1
            yield f"picture {count[page]} of p. {page}", f"p. {page}", picture


def _of_parts(parts: ZipFile) -> Iterator[tuple[str, str, bytes]]:
    """Of slides in their order; then of the other parts, by name."""
    kinds = ocr.PICTURES | {"gif", "emf", "wmf", "svg"}
    names = [
        name
        for name in parts.namelist()
        if name.rpartition(".")[2].casefold() in kinds and not name.startswith(PREVIEWS)
    ]
    shown = [(place, name) for place, name in _of_slides(parts) if name in names]
    rest = sorted(set(names) - {name for _, name in shown})
    for place, name in [*shown, *(("", name) for name in rest)]:
        yield name.rpartition("/")[2], place, archive.part(parts, name)


def _of_slides(parts: ZipFile) -> Iterator[tuple[str, str]]:
    """(`slide 4`, name of the part) for each picture on a slide."""
    root = tree(parts, "ppt/presentation.xml")
    links = archive.links(parts, "ppt/presentation.xml")
    for number, slide in enumerate(root.iter("sldId"), 1):
        _, path = links.get(slide.get("id", ""), ("", ""))
        for kind, target in archive.links(parts, path).values() if path else ():
            if kind == "image":
                yield f"slide {number}", target
