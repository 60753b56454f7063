"""Files that Office documents hold as objects (ECMA-376 part 1, 15.2.10 and 15.2.11; MS-OLEDS): whole files of
Office, and those that OLE packs."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import replace
from zipfile import ZipFile

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.piece import Attachment, NotRead

# The stream by which a compound file of a program is known, and the suffix of its files.
_STREAMS = {"WordDocument": "doc", "Workbook": "xls", "Book": "xls", "PowerPoint Document": "ppt"}


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
            for kind, path in archive.links(
                parts, f"{folder}/{name.removesuffix('.rels')}"
            ).values():
                if kind in ("package", "oleObject"):
                    yield path


def _unpacked(content: bytes, name: str) -> Attachment | NotRead:
    """The file in a compound file, which may be that of a program itself."""
    import olefile

    try:
        file = olefile.OleFileIO(io.BytesIO(content))
        if file.exists("\1Ole10Native"):
            return _native(file.openstream("\1Ole10Native").read())
        for stream in ("Package", "CONTENTS"):
            if file.exists(stream):
                inside = file.openstream(stream).read()
                suffix = (
                    "pdf" if inside.startswith(b"%PDF") else "docx" if stream == "Package" else ""
                )
                if suffix:
                    return Attachment(
                        f"{name.rpartition('.')[0]}.{_office(inside) or suffix}", inside
                    )
        suffix = next((_STREAMS[stream] for stream in _STREAMS if file.exists(stream)), "")
    except (OSError, ValueError, struct.error, AttributeError, TypeError, IndexError) as error:
        raise ReadError("it is damaged") from error
    if not suffix:
        return NotRead(name, "an object of a program whose files are not read")
    return Attachment(f"{name.rpartition('.')[0]}.{suffix}", content)


def _office(data: bytes) -> str:
    """The suffix of a file of Office from what it holds; "" for none."""
    try:
        names = archive.opened(data, "zip").namelist()
    except ReadError:
        return ""
    folders = {"word": "docx", "xl": "xlsx", "ppt": "pptx"}
    return next(
        (folders[folder] for folder in folders if any(n.startswith(f"{folder}/") for n in names)),
        "",
    )


def _native(data: bytes) -> Attachment:
    """MS-OLEDS 2.3.6: sizes, the name, its path, the path that it was read from, and the file."""
    names, _, rest = data[6:].partition(b"\0")
    source, _, rest = rest.partition(b"\0")
    length = struct.unpack_from("<I", rest, 4)[0]
    at = 8 + length
    size = struct.unpack_from("<I", rest, at)[0]
    label = (names or source).decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    return Attachment(" ".join(label.split())[:200] or "object", rest[at + 4 : at + 4 + size])


_TITLE, _DATA, _BEGINS, _PROPERTIES = 0x8010, 0x800F, 0x9002, 0x9005


def of_tnef(data: bytes, name: str) -> list[Attachment]:
    """The files that Outlook packs into winmail.dat (MS-OXTNEF, 2.1.3); this itself where it is damaged."""
    found: list[Attachment] = []
    at = 6  # behind signature and key
    while data.startswith(b"\x78\x9f\x3e\x22") and at + 9 <= len(data):
        tag, _, size = struct.unpack_from("<HHI", data, at + 1)
        content = data[at + 9 : at + 9 + size]
        at += 9 + size + 2  # a sum of the bytes
        if tag == _BEGINS:
            found.append(Attachment(f"attachment {len(found) + 1}", b""))
        elif tag == _TITLE and found:
            title = content.rstrip(b"\0").decode("utf-8", "replace").replace("\\", "/")
            found[-1] = replace(found[-1], name=title.rpartition("/")[2] or found[-1].name)
        elif tag == _DATA and found:
            found[-1] = replace(found[-1], data=content)
        elif tag == _PROPERTIES and found:  # the long name, and files that are objects
            title = _property(content, 0x1F, 0x3707).decode("utf-16-le", "replace")
            title = title or _property(content, 0x1E, 0x3707).decode("utf-8", "replace")
            title = title.rstrip("\0").replace("\\", "/").rpartition("/")[2]
            file = found[-1].data or _property(content, 0x0102, 0x3701)
            file = (
                file or _property(content, 0x000D, 0x3701)[16:]
            )  # behind the name of its interface
            found[-1] = Attachment(title or found[-1].name, file)
    return found or [Attachment(name, data)]


def _property(properties: bytes, kind: int, tag: int) -> bytes:
    """The value of a property of variable size (MS-OXTNEF, 2.1.3.4); b"" for none."""
    at = properties.find(struct.pack("<HHI", kind, tag, 1))
    if at < 0 or at + 12 > len(properties):
        return b""
    return properties[at + 12 : at + 12 + struct.unpack_from("<I", properties, at + 8)[0]]
