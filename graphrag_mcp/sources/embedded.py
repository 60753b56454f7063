"""Files that Office documents hold as objects (ECMA-376 part 1, 15.2.10 and 15.2.11; MS-OLEDS): whole files of
Office, and those that OLE packs."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from zipfile import ZipFile

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.decode import ReadError, decode
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
            for kind, path in archive.links(
                parts, f"{folder}/{name.removesuffix('.rels')}"
            ).values():
                if kind in ("package", "oleObject"):
                    yield path


def _unpacked(content: bytes, name: str) -> Attachment | NotRead:
    """The file in a compound file, which may be that of a program itself."""
    import olefile

    stem = name.rpartition(".")[0]
    try:
        file = olefile.OleFileIO(io.BytesIO(content))
        if file.exists("\1Ole10Native"):
            return _native(file.openstream("\1Ole10Native").read())
        for stream in ("Package", "CONTENTS"):
            inside = file.openstream(stream).read() if file.exists(stream) else b""
            if suffix := _suffix(inside) or ("docx" if inside and stream == "Package" else ""):
                return Attachment(f"{stem}.{suffix}", inside)
        suffix = next((_STREAMS[stream] for stream in _STREAMS if file.exists(stream)), "")
    except (OSError, ValueError, struct.error, AttributeError, TypeError, IndexError) as error:
        raise ReadError("it is damaged") from error
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
    return Attachment(_name(names or source) or "object", rest[at + 4 : at + 4 + size])


def _name(path: bytes, encoding: str = "") -> str:
    """The name of a file by its path on Windows, which may end in zeros."""
    text = path.decode(encoding, "replace") if encoding else decode(path.rstrip(b"\0"))[0]
    return " ".join(text.rstrip("\0").replace("\\", "/").rpartition("/")[2].split())[:200]


_TITLE, _DATA, _BEGINS, _PROPERTIES = 0x8010, 0x800F, 0x9002, 0x9005  # attributes
_TEXT, _UNICODE, _BINARY, _OBJECT = 0x1E, 0x1F, 0x102, 0x0D  # kinds of properties
_CONTENT, _LONG_NAME = 0x3701, 0x3707
# Attributes of the mail, and its properties.
_SUBJECT, _SENT, _BODY, _OF_MAIL, _CODE_PAGE = 0x8004, 0x8005, 0x800C, 0x9003, 0x9007
_BODY_TEXT, _BODY_RTF, _BODY_PAGE, _SENDER, _ADDRESS = 0x1000, 0x1009, 0x1013, 0x0C1A, 0x0C1F
TNEF = b"\x78\x9f\x3e\x22"


@dataclass
class Packed:
    """What Outlook packs into winmail.dat: of a mail the subject, sender and time, and the body in up to four forms; and
    files."""

    subject: str = ""
    sender: list[str] = field(default_factory=list)  # name and address
    date: str = ""  # ISO 8601
    text: str = ""
    ansi: bytes = b""  # in the code page
    page: bytes = b""
    rtf: bytes = b""  # compressed
    code_page: int = 0
    files: list[Attachment] = field(default_factory=list)


def of_tnef(data: bytes) -> Packed:
    """What winmail.dat holds (MS-OXTNEF, 2.1.3), as far as it is not damaged."""
    packed = Packed()
    found = packed.files
    at = 6  # behind signature and key
    while data.startswith(TNEF) and at + 9 <= len(data):
        tag, _, size = struct.unpack_from("<HHI", data, at + 1)
        content = data[at + 9 : at + 9 + size]
        at += 9 + size + 2  # a sum of the bytes
        if tag == _BEGINS:
            found.append(Attachment(f"attachment {len(found) + 1}", b""))
        if not found:
            if tag == _SUBJECT:
                packed.subject = " ".join(decode(content.rstrip(b"\0"))[0].split())[:200]
            elif tag == _SENT:
                with suppress(ValueError, struct.error):
                    packed.date = datetime(*struct.unpack("<6H", content[:12])).isoformat()
            elif tag == _BODY:
                packed.ansi = content.rstrip(b"\0")
            elif tag == _CODE_PAGE and size >= 4:
                packed.code_page = int.from_bytes(content[:4], "little")
            elif tag == _OF_MAIL:
                values = (
                    _property(content, _UNICODE, tag).decode("utf-16-le", "replace").rstrip("\0")
                    for tag in (_BODY_TEXT, _SENDER, _ADDRESS)
                )
                packed.text, *packed.sender = values
                packed.page = _property(content, _BINARY, _BODY_PAGE)
                packed.rtf = _property(content, _BINARY, _BODY_RTF)
            continue
        file = found[-1]
        if tag == _TITLE:
            found[-1] = replace(file, name=_name(content) or file.name)
        elif tag == _DATA:
            found[-1] = replace(file, data=content)
        elif tag == _PROPERTIES:  # the long name, and files that are objects
            packed_object = _property(content, _OBJECT, _CONTENT)
            if packed_object:  # which may have properties itself
                content = content.replace(packed_object, b"")
            long = _name(_property(content, _UNICODE, _LONG_NAME), "utf-16-le")
            long = long or _name(_property(content, _TEXT, _LONG_NAME))
            inside = file.data or _property(content, _BINARY, _CONTENT)
            # behind the name of its interface
            inside = inside or packed_object[16:]
            found[-1] = replace(file, name=long or file.name, data=inside)
    return packed


def _property(properties: bytes, kind: int, tag: int) -> bytes:
    """The value of a property of variable size (MS-OXTNEF, 2.1.3.4); b"" for none."""
    at = properties.find(struct.pack("<HHI", kind, tag, 1))
    if at < 0 or at + 12 > len(properties):
        return b""
    return properties[at + 12 : at + 12 + struct.unpack_from("<I", properties, at + 8)[0]]
