"""Zip archives that are not trusted: Office files, books, and folders of documents in one file."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from posixpath import join, normpath
from xml.etree import ElementTree

from graphrag_mcp.sources.decode import ReadError, decode, decode_as, library, web_encoding

UNPACKED = 300_000_000  # bytes that a zip may hold in all
_ENTRIES = 10_000
# a part over 10 MB that was packed 200 times smaller is a bomb; sheets reach 40
_RATIO, _SMALL = (200, 10_000_000)
ENTITY = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_XML = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".vml")

Element = ElementTree.Element
ParseError = ElementTree.ParseError
_OF_EXPAT = (b"utf-8", b"utf-16", b"us-ascii", b"iso-8859-1")
_DECLARED = re.compile(rb"<\?xml[^>]{0,100}?encoding=[\"']([\w.:-]{1,40})[\"']")


def parsed(data: bytes) -> Element:
    """The root element of an XML file. Encodings that expat does not know by the declared name are decoded here;
    the encoding of an unknown name is detected."""
    declared = _DECLARED.match(data)
    if declared is None or declared[1].lower() in _OF_EXPAT:
        return ElementTree.fromstring(data)
    encoding = web_encoding(declared[1].decode())
    text, _ = decode_as(data, encoding) if encoding else decode(data)
    if "<!ENTITY" in text:  # which bytes of UTF-7 may hide
        raise ReadError("its XML declares entities, which are not resolved")
    return ElementTree.fromstring(text)


def opened(data: bytes, suffix: str) -> zipfile.ZipFile:
    """The archive. Refuses what is no zip, what would unpack to too much, and XML that declares
    entities."""
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is encrypted with a password, or of an older Office than its name says")
    with library(f"it is damaged, or no {suffix} file"):
        archive = zipfile.ZipFile(io.BytesIO(data))
    entries = archive.infolist()
    if len(entries) > _ENTRIES:
        raise ReadError(f"it holds over {_ENTRIES:,} files")
    total = 0
    for entry in entries:
        total += entry.file_size
        if total > UNPACKED:
            raise ReadError(f"it unpacks to more than {UNPACKED / 1e6:g} MB")
        if entry.file_size > _SMALL and entry.file_size > _RATIO * max(1, entry.compress_size):
            raise ReadError("it unpacks to far more than it should (a zip bomb)")
        if entry.flag_bits & 1:
            raise ReadError("it is encrypted with a password")
    return archive


def checked(data: bytes, suffix: str) -> zipfile.ZipFile:
    """As `opened`, for formats whose parts are XML: none may declare entities."""
    archive = opened(data, suffix)
    for entry in archive.infolist():
        if entry.filename.lower().endswith(_XML):
            _refuse_entities(archive, entry)
    return archive


def _refuse_entities(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    before = b""
    for block in _blocks(archive, entry):
        if any(word in before + block for word in ENTITY):
            raise ReadError("its XML declares entities, which such a file has no use for")
        before = block[-32:]


def _blocks(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    left = entry.file_size + 1  # what it says; a part that holds more is damaged or worse
    with library("it is damaged: a part of it cannot be unpacked"), archive.open(entry) as part:
        while left > 0 and (block := part.read(min(1 << 20, left))):
            left -= len(block)
            yield block


def part(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of a part; b"" where there is none of this name."""
    try:
        entry = archive.getinfo(name)
    except KeyError:
        return b""
    return b"".join(_blocks(archive, entry))


def tree(archive: zipfile.ZipFile, name: str) -> Element:
    """The XML of a part without namespaces; an element without a name where there is none. ReadError where it is no XML."""
    data = part(archive, name)
    with library(f"it is damaged: {name} is no XML"):
        root = parsed(data) if data else Element("")
    for element in root.iter():
        bare(element)
    return root


def bare(element: Element) -> None:
    """Take away the namespaces of an element's names, which tell those of Office apart without them; of `id` and `r:id`
    the latter counts."""
    element.tag = local(element.tag)
    for key in [key for key in element.keys() if key.startswith("{")]:
        element.set(local(key), element.attrib.pop(key))


def links(archive: zipfile.ZipFile, part: str, external: bool = False) -> dict[str, tuple[str, str]]:
    """The relationships of a part of an Office file (ECMA-376 part 2, 9.3): id -> (kind, name of the part).
    `external`: those to addresses, with the address."""
    folder, _, name = part.rpartition("/")
    found = {}
    for relationship in tree(archive, f"{folder}/_rels/{name}.rels"):
        if (relationship.get("TargetMode") == "External") is not external:
            continue
        target = path = relationship.get("Target", "")
        if not external:
            path = target[1:] if target.startswith("/") else normpath(join(folder, target))
        found[relationship.get("Id", "")] = (relationship.get("Type", "").rpartition("/")[2], path)
    return found


def local(name: str) -> str:
    """The name of an element or an attribute without its namespace."""
    return name.rpartition("}")[2]
