"""Files that Office documents hold as objects (ECMA-376 part 1, 15.2.10 and 15.2.11; MS-OLEDS): whole files of
Office, and those that OLE packs."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from zipfile import ZipFile

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.decode import ReadError, decode, library
from graphrag_mcp.sources.piece import Attachment, NotRead

# The stream by which a compound file of a program is known, and the suffix of its files.
_STREAMS = {"WordDocument": "doc", "Workbook": "xls", "Book": "xls", "PowerPoint Document": "ppt"}
_FOLDERS = {"word": "docx", "xl": "xlsx", "ppt": "pptx"}  # and that of a zip


def embedded(data: bytes, suffix: str) -> Iterator[Attachment | NotRead]:
    """The objects of a file; not the sheets of charts, whose text the charts have."""
    with archive.opened(data, suffix) as parts:
        try:
            names = list(dict.fromkeys(_names(parts)))
        except ReadError as error:
            yield NotRead("", f"its objects: {error}")
            return
        for name in names:
            short = name.rpartition("/")[2]
            try:
                content = archive.part(parts, name)
                if content.startswith(b"\xd0\xcf\x11\xe0"):
                    yield _unpacked(content, short)
                elif content:
                    yield Attachment(short, content)
                else:
                    yield NotRead(short, "it is missing in the file")
            except ReadError as error:
                yield NotRead(short, str(error))


def _names(parts: ZipFile) -> Iterator[str]:
    for entry in parts.namelist():
        folder, _, name = entry.rpartition("/_rels/")
        if name.endswith(".rels") and folder and not folder.endswith("/charts"):
            for kind, path in archive.links(parts, f"{folder}/{name.removesuffix('.rels')}").values():
                if kind in ("package", "oleObject"):
                    yield path


def _unpacked(content: bytes, name: str) -> Attachment | NotRead:
    """The file in a compound file, which may be that of a program itself."""
    import olefile

    stem = name.rpartition(".")[0]
    with library("it is damaged"):
        file = olefile.OleFileIO(io.BytesIO(content))
        if file.exists("\1Ole10Native"):
            return _native(file.openstream("\1Ole10Native").read())
        for stream in ("Package", "CONTENTS"):
            inside = file.openstream(stream).read() if file.exists(stream) else b""
            if suffix := _suffix(inside) or ("docx" if inside and stream == "Package" else ""):
                return Attachment(f"{stem}.{suffix}", inside)
        suffix = next((_STREAMS[stream] for stream in _STREAMS if file.exists(stream)), "")
    if not suffix:
        return NotRead(name, "an object of a program whose files are not read")
    return Attachment(f"{stem}.{suffix}", content)


def _suffix(data: bytes) -> str:
    """The suffix of a PDF, or of a file of Office, from what it holds; "" for others."""
    if data.startswith(b"%PDF"):
        return "pdf"
    try:
        folders = {name.partition("/")[0] for name in archive.opened(data, "zip").namelist()}
    except ReadError:
        return ""
    return next((_FOLDERS[folder] for folder in _FOLDERS if folder in folders), "")


def _native(data: bytes) -> Attachment:
    """MS-OLEDS 2.3.6: sizes, the name, its path, the path that it was read from, and the file."""
    names, _, rest = data[6:].partition(b"\0")
    source, _, rest = rest.partition(b"\0")
    length = struct.unpack_from("<I", rest, 4)[0]
    at = 8 + length
    size = struct.unpack_from("<I", rest, at)[0]
    return Attachment(file_name(names or source) or "object", rest[at + 4 : at + 4 + size])


def file_name(path: bytes, encoding: str = "") -> str:
    """The name of a file by its path on Windows, which may end in zeros."""
    text = path.decode(encoding, "replace") if encoding else decode(path.rstrip(b"\0"))[0]
    return " ".join(text.rstrip("\0").replace("\\", "/").rpartition("/")[2].split())[:200]
