"""Mail of Outlook: msg files (MS-OXMSG), and winmail.dat, into which it packs bodies and files (MS-OXTNEF). Both hold
properties of MAPI, by kind and tag."""

from __future__ import annotations

import codecs
import email
import email.policy
import io
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from graphrag_mcp.sources.decode import ReadError, decode, library, utc, web_encoding
from graphrag_mcp.sources.embedded import file_name
from graphrag_mcp.sources.headers import IDS, day, header, people, person
from graphrag_mcp.sources.html import DECLARED, readable
from graphrag_mcp.sources.letter import Mail, written
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece
from graphrag_mcp.sources.rtf import rtf

_ANSI, _UNICODE, _BINARY, _OBJECT, _INTEGER, _TIME = 0x1E, 0x1F, 0x102, 0x0D, 0x03, 0x40  # kinds
_SUBJECT, _BODY, _BODY_RTF, _BODY_PAGE = 0x0037, 0x1000, 0x1009, 0x1013  # tags
_SENDER, _ADDRESS, _SMTP, _TO, _CC = 0x0C1A, 0x0C1F, 0x5D01, 0x0E04, 0x0E03
_HEADERS, _ID, _REFERENCES, _IN_REPLY_TO = 0x007D, 0x1035, 0x1039, 0x1042
_SENT, _CAME, _PAGE_OF_MESSAGE, _PAGE_OF_BODY = 0x0039, 0x0E06, 0x3FFD, 0x3FDE
_CONTENT, _NAME, _SHORT_NAME, _LONG_NAME = 0x3701, 0x3001, 0x3704, 0x3707  # of an attachment
DEPTH = 4  # of mails in mails
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
TNEF = b"\x78\x9f\x3e\x22"
Property = Callable[[int, int], bytes]  # the value of a kind and a tag; b"" for none


def msg(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """A mail as Outlook saves it, and what is attached to it. ReadError for a damaged one."""
    import olefile

    if not data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is damaged, or no msg file")
    with library("it is damaged, or no msg file"):
        yield from written(_of_msg(olefile.OleFileIO(io.BytesIO(data)), []))


def _text(of: Property, tag: int, encoding: str) -> str:
    """A property that is text; its bytes, if they are no Unicode, in this encoding where they can be."""
    if found := of(_UNICODE, tag):
        return found.decode("utf-16-le", "replace").rstrip("\0")
    data = of(_ANSI, tag)
    with suppress(UnicodeDecodeError, LookupError):
        return data.decode(encoding).rstrip("\0")
    return decode(data)[0].rstrip("\0")


def _take_body(mail: Mail, of: Property, of_message: str, of_bodies: str) -> None:
    """The body as text, HTML or compressed RTF (MS-OXRTFCP), whichever there is. `of_message`, `of_bodies`: encodings."""
    try:
        body = _text(of, _BODY, of_message)
        if not body.strip():
            body = _page(of(_BINARY, _BODY_PAGE), of_bodies or of_message)
            body = body or readable(_text(of, _BODY_PAGE, of_message), mail=True).text
            body = body or _of_rtf(of(_BINARY, _BODY_RTF))
        mail.body = mail.take_body(body)
    except ReadError as error:
        mail.lost.append(f"its body: {error}")


def _page(markup: bytes, encoding: str) -> str:
    """A body of HTML: UTF-8 where it is such, else in the encoding that it declares, else in that of bodies."""
    declared = DECLARED.search(markup[:4096])
    names = ["utf-8"] if b"\x1b" not in markup else []  # ISO-2022-JP is valid UTF-8 as well
    names += [web_encoding(declared[1].decode("ascii")) if declared else "", encoding]
    for name in filter(None, names):
        with suppress(UnicodeDecodeError, LookupError):
            return readable(markup.decode(name), mail=True).text
    return readable(decode(markup)[0], mail=True).text


def _of_rtf(packed: bytes) -> str:
    if not packed:
        return ""
    from compressed_rtf import decompress

    with library("its compressed RTF is damaged"):
        data = decompress(packed)
    return "\n".join(piece.text for piece in rtf(data, "rtf"))


def _encoding(page: int) -> str:
    """The encoding of a code page; "" where it is not known."""
    with suppress(LookupError):
        name = {65001: "utf-8", 936: "gb18030", 20866: "koi8-r"}.get(page, f"cp{page}")
        return codecs.lookup(name).name
    return ""


def _sender(who: str, address: str) -> list[str]:
    """Beside a name, an address of Exchange (X.500) says nothing."""
    found = person(who, address if "@" in address or not who else "")
    return [found] if found else []


# ---- msg -------------------------------------------------------------------------------------------


def _of_msg(file: Any, folder: list[str]) -> Mail:
    def property_at(at: list[str]) -> Property:
        def of(kind: int, tag: int) -> bytes:
            path = [*at, f"__substg1.0_{tag:04X}{kind:04X}"]
            return file.openstream(path).read() if file.exists(path) else b""

        return of

    numbers = _numbers(file, folder)
    of_bodies = _encoding(numbers.get(_PAGE_OF_BODY, 0))
    encoding = _encoding(numbers.get(_PAGE_OF_MESSAGE, 0)) or of_bodies
    of = property_at(folder)

    def text(tag: int) -> str:
        return _text(of, tag, encoding)

    headers = email.message_from_string(text(_HEADERS), policy=email.policy.default)
    mail = Mail(subject=text(_SUBJECT) or header(headers, "Subject"), id=text(_ID).strip("<> "))
    mail.sender = _sender(text(_SENDER), text(_SMTP) or text(_ADDRESS)) or people(headers, "From")
    mail.to = people(headers, "To") or _split(text(_TO))
    mail.cc = people(headers, "Cc") or _split(text(_CC))
    mail.date = day(header(headers, "Date")) or _time(numbers)
    earlier = IDS.findall(text(_REFERENCES)) + IDS.findall(text(_IN_REPLY_TO))
    mail.reply_to = list(dict.fromkeys(earlier or IDS.findall(header(headers, "In-Reply-To"))))
    _take_body(mail, of, encoding, of_bodies)
    entries = (path[: len(folder) + 1] for path in file.listdir(streams=True, storages=True))
    inside = {tuple(path) for path in entries if path[:-1] == folder}
    for at in map(list, sorted(inside)):
        if not at[-1].startswith("__attach_version1.0_"):
            continue
        inner = [*at, f"__substg1.0_{_CONTENT:04X}{_OBJECT:04X}"]
        if file.exists([*inner, "__properties_version1.0"]):
            if len(folder) < 2 * DEPTH:
                mail.mails.append(_of_msg(file, inner))
            else:
                mail.lost.append(f"mails in mails are read to a depth of {DEPTH}")
            continue
        names = (_text(property_at(at), tag, encoding) for tag in (_LONG_NAME, _SHORT_NAME, _NAME))
        name = " ".join(next(filter(None, names), "attachment").split())[:200]
        mail.attachments.append(Attachment(name, property_at(at)(_BINARY, _CONTENT)))
    return mail


def _split(names: str) -> list[str]:
    return [person(" ".join(name.split()), "") for name in names.split(";") if name.strip()]


def _numbers(file: Any, folder: list[str]) -> dict[int, int]:
    """The properties of up to 8 bytes that a mail has, by tag."""
    path = [*folder, "__properties_version1.0"]
    data = file.openstream(path).read() if file.exists(path) else b""
    found: dict[int, int] = {}
    for at in range(32 if not folder else 24, len(data) - 15, 16):
        kind, tag = struct.unpack_from("<HH", data, at)
        if kind in (_INTEGER, _TIME):
            found[tag] = struct.unpack_from("<Q" if kind == _TIME else "<I", data, at + 8)[0]
    return found


def _time(numbers: dict[int, int]) -> str:
    """When it was sent, or came: 100 nanoseconds since 1601."""
    ticks = numbers.get(_SENT) or numbers.get(_CAME) or 0
    return utc(_EPOCH + timedelta(microseconds=ticks // 10)) if 0 < ticks < 2**62 else ""


# ---- winmail.dat -----------------------------------------------------------------------------------

# Attributes (MS-OXTNEF, 2.1.3.2): of the mail, and of each file behind one that begins it.
_MAIL_SUBJECT, _MAIL_SENT, _MAIL_BODY, _MAIL_PROPERTIES, _MAIL_PAGE = (0x8004, 0x8005, 0x800C, 0x9003, 0x9007)
_FILE_BEGINS, _FILE_TITLE, _FILE_DATA, _FILE_PROPERTIES = 0x9002, 0x8010, 0x800F, 0x9005


def of_tnef(data: bytes, depth: int = 1) -> Mail:
    """The mail that winmail.dat holds, as far as it is not damaged, with its files and the mails that are attached."""
    about: dict[int, bytes] = {}
    files: list[dict[int, bytes]] = []
    at = 6  # behind signature and key
    while data.startswith(TNEF) and at + 9 <= len(data):
        tag, _, size = struct.unpack_from("<HHI", data, at + 1)
        if tag == _FILE_BEGINS:
            files.append({})
        (files[-1] if files else about)[tag] = data[at + 9 : at + 9 + size]
        at += 9 + size + 2  # a sum of the bytes
    properties = about.get(_MAIL_PROPERTIES, b"")

    def of(kind: int, tag: int) -> bytes:
        if (kind, tag) == (_ANSI, _BODY):
            return about.get(_MAIL_BODY, b"").rstrip(b"\0")
        return _property(properties, kind, tag)

    mail = Mail(" ".join(decode(about.get(_MAIL_SUBJECT, b"").rstrip(b"\0"))[0].split())[:200])
    encoding = _encoding(int.from_bytes(about.get(_MAIL_PAGE, b"")[:4], "little"))
    mail.sender = _sender(_text(of, _SENDER, encoding), _text(of, _ADDRESS, encoding))
    with suppress(ValueError, struct.error):
        mail.date = datetime(*struct.unpack("<6H", about.get(_MAIL_SENT, b"")[:12])).isoformat()
    _take_body(mail, of, encoding, "")
    for number, file in enumerate(files, 1):
        attached = _file(file, f"attachment {number}")
        if attached.data.startswith(TNEF) and depth < DEPTH:
            inner = of_tnef(attached.data, depth + 1)
            inner.subject = inner.subject or attached.name
            mail.mails.append(inner)
        else:
            mail.attachments.append(attached)
    return mail


def _file(attributes: dict[int, bytes], name: str) -> Attachment:
    """A file of winmail.dat, which may be an object, behind the name of its interface."""
    properties = attributes.get(_FILE_PROPERTIES, b"")
    inside = _property(properties, _OBJECT, _CONTENT)
    if inside:  # which may have properties itself
        properties = properties.replace(inside, b"")
    long = file_name(_property(properties, _UNICODE, _LONG_NAME), "utf-16-le")
    long = long or file_name(_property(properties, _ANSI, _LONG_NAME))
    data = attributes.get(_FILE_DATA, b"") or _property(properties, _BINARY, _CONTENT)
    title = file_name(attributes.get(_FILE_TITLE, b""))
    return Attachment(long or title or name, data or inside[16:])


def _property(properties: bytes, kind: int, tag: int) -> bytes:
    """The value of a property of variable size (MS-OXTNEF, 2.1.3.4); b"" for none."""
    at = properties.find(struct.pack("<HHI", kind, tag, 1))
    if at < 0 or at + 12 > len(properties):
        return b""
    return properties[at + 12 : at + 12 + struct.unpack_from("<I", properties, at + 8)[0]]
