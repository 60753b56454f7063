"""Books (epub) in the order of their spine, and folders of documents in a zip or a tar."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from posixpath import join, normpath
from urllib.parse import unquote
from zipfile import ZipInfo

from graphrag_mcp.sources import archive
from graphrag_mcp.sources.archive import tree
from graphrag_mcp.sources.decode import ReadError, decode
from graphrag_mcp.sources.html import decoded
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece, Writer

_TOO_MUCH = f"it unpacks to more than {archive.UNPACKED / 1e6:g} MB"
_PAGES = (".xhtml", ".html", ".htm", ".xml")


def epub(data: bytes, suffix: str) -> Iterator[Piece | NotRead]:
    """The chapters of a book in the order of its spine. ReadError for a damaged one."""
    parts = archive.checked(data, suffix)
    roots = tree(parts, "META-INF/container.xml").iter("rootfile")
    path = next((root.get("full-path", "") for root in roots), "")
    package = tree(parts, path)
    if not package.tag:
        raise ReadError("it is damaged, or no epub file")
    if archive.part(parts, "META-INF/encryption.xml") and archive.part(parts, "META-INF/rights.xml"):
        raise ReadError("it is protected against copying")
    items = {
        item.get("id", ""): normpath(join(path, "..", unquote(item.get("href", "")))) for item in package.iter("item")
    }
    spine = [items.get(entry.get("idref", ""), "") for entry in package.iter("itemref")]
    writer = Writer()
    for path in spine or sorted(name for name in parts.namelist() if name.lower().endswith(_PAGES)):
        if page := archive.part(parts, path):
            writer.add(decoded(page, whole=True)[0].text)
        else:
            yield NotRead(path, "it is missing in the file")
    title, author, date = (
        dict.fromkeys(filter(None, (" ".join((x.text or "").split()) for x in package.iter(name))))
        for name in ("title", "creator", "date")
    )
    metadata = {"author": ", ".join(author), "date": next(iter(date), "")}
    metadata = {name: value for name, value in metadata.items() if value}
    yield writer.piece(next(iter(title), ""), metadata=metadata)


def unpacked(data: bytes, suffix: str) -> Iterator[Attachment | NotRead]:
    """The files of a tar, which gzip may have packed, or the one file that it has packed, with "" where it names
    none."""
    name, torn = "", False
    if data.startswith(b"\x1f\x8b"):
        content = io.BytesIO()
        try:
            with gzip.open(io.BytesIO(data)) as stream:
                while part := stream.read1(1_000_000):
                    content.write(part)
                    if content.tell() > archive.UNPACKED:
                        raise ReadError(_TOO_MUCH)
        except (OSError, EOFError, zlib.error) as error:
            if not content.tell():
                raise ReadError(f"it is damaged, or no {suffix} file") from error
            torn = True
        if data[3] & 12 == 8:  # RFC 1952, 2.3.1: its name, and no further fields before it
            name = decode(data[10 : data.find(b"\0", 10)])[0].rpartition("/")[2]
        data = content.getvalue()
    if suffix == "gz" and not tarfile.is_tarfile(io.BytesIO(data)):
        yield Attachment(name, data)
        if torn:
            yield NotRead("", "it is damaged or cut off; what stands before is read")
        return
    left = archive.UNPACKED  # a sparse file of some bytes may be one of terabytes
    known: dict[str, tarfile.TarInfo] = {}
    last = ""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as files:
            for link in files:
                entry = link
                if link.islnk():  # a further name of a file before it
                    entry = copy(known.get(normpath(link.linkname), link))
                    entry.name = link.name
                inside = normpath(entry.name)
                if inside.startswith(("/", "../")):
                    yield NotRead(entry.name, "its name leads out of the archive")
                elif entry.size > left:
                    yield NotRead(entry.name, f"with it the archive {_TOO_MUCH.removeprefix('it ')}")
                elif entry.isfile() and (stream := files.extractfile(entry)):
                    left -= entry.size
                    yield Attachment(inside, stream.read())
                    known[inside] = entry
                elif not entry.isdir():
                    yield NotRead(entry.name, "a link or a device")
                last = entry.name
            # tarfile takes a damaged header for the end, which is blocks of zeros
            if torn or not (end := data[files.offset : files.offset + 512]) or any(end):
                raise tarfile.ReadError
    except (tarfile.TarError, OSError, EOFError) as error:
        if not last:
            raise ReadError(f"it is damaged, or no {suffix} file") from error
        yield NotRead("", f"it is damaged or cut off behind {last}")


def zipped(data: bytes, suffix: str) -> Iterator[Attachment | NotRead]:
    """The files of a zip, each read as if it lay in a folder."""
    parts = archive.opened(data, suffix)
    for entry in sorted(parts.infolist(), key=lambda entry: entry.filename):
        name = normpath(_name(entry).replace("\\", "/"))
        if entry.is_dir() or name.startswith("__MACOSX/"):
            continue
        if name.startswith(("/", "../")):
            yield NotRead(_name(entry), "its name leads out of the archive")
            continue
        try:
            yield Attachment(name, archive.part(parts, entry.filename))
        except ReadError as error:
            yield NotRead(name, str(error))


_UTF_8 = 0x800  # the flag of an entry that says so of its name


def _name(entry: ZipInfo) -> str:
    """The name of an entry. Many programs write UTF-8 without its flag, which zipfile takes for cp437."""
    if not entry.flag_bits & _UTF_8:
        with suppress(UnicodeError):
            return entry.filename.encode("cp437").decode("utf-8")
    return entry.filename
