"""Writes compound files (MS-CFB, version 3), the container of msg, doc and ppt, for tests of their readers."""

from __future__ import annotations

import struct
from collections.abc import Mapping

SECTOR, MINI, CUTOFF = 512, 64, 4096
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

Tree = Mapping[str, "bytes | Tree"]  # a stream, or a storage with its entries


def compound(tree: Tree) -> bytes:
    """A compound file with these streams and storages; up to 109 sectors of FAT, some 7 MB."""
    entries: list[dict[str, object]] = [{"name": "Root Entry", "kind": 5}]

    def add(inside: Tree, parent: int) -> None:
        """Entries of a storage as a chain of right siblings, which readers take for a tree."""
        before = 0
        for name in sorted(inside, key=lambda name: (len(name), name.upper())):
            held, at = inside[name], len(entries)
            stream = isinstance(held, bytes)
            entries.append({"name": name, "kind": 2 if stream else 1, "data": held if stream else b""})
            entries[before or parent]["right" if before else "child"] = at
            before = at
            if not isinstance(held, bytes):
                add(held, at)

    add(tree, 0)
    fat: list[int] = []
    mini_fat: list[int] = []
    body, mini = bytearray(), bytearray()

    def put(data: bytes, into: bytearray, table: list[int], size: int) -> int:
        if not data:
            return END
        count, first = -(-len(data) // size), len(table)
        table += [*range(first + 1, first + count), END]
        into += data.ljust(count * size, b"\0")
        return first

    for entry in entries[1:]:
        data = entry.get("data", b"")
        assert isinstance(data, bytes)
        small = len(data) < CUTOFF
        entry["start"] = put(data, mini if small else body, mini_fat if small else fat, MINI if small else SECTOR)
        entry["size"] = len(data)
    entries[0] |= {"start": put(bytes(mini), body, fat, SECTOR), "size": len(mini)}
    minis = (
        put(struct.pack(f"<{len(mini_fat)}I", *mini_fat).ljust(SECTOR, b"\xff"), body, fat, SECTOR) if mini_fat else END
    )
    while len(entries) % 4:
        entries.append({"name": "", "kind": 0})
    directory = put(b"".join(map(_entry, entries)), body, fat, SECTOR)
    sectors = 1
    while sectors * (SECTOR // 4) < len(fat) + sectors:
        sectors += 1
    places = list(range(len(fat), len(fat) + sectors))
    table = [*fat, *[FAT] * sectors]
    body += struct.pack(f"<{len(table)}I", *table).ljust(sectors * SECTOR, b"\xff")
    header = struct.pack(
        "<8s16sHHHHHHIIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, 0, 0, 0, sectors,
        directory, 0, CUTOFF, minis, -(-len(mini_fat) * 4 // SECTOR), END, 0,
    )  # fmt: skip
    return header + struct.pack("<109I", *places, *[FREE] * (109 - sectors)) + bytes(body)


def _entry(entry: Mapping[str, object]) -> bytes:
    name = str(entry["name"]).encode("utf-16-le")
    links = (entry.get("left", FREE), entry.get("right", FREE), entry.get("child", FREE))
    length = len(name) + 2 if name else 0
    return struct.pack(
        "<64sHBBIII16sIQQIQ",
        name,
        length,
        entry["kind"],
        1,
        *links,
        bytes(16),
        0,
        0,
        0,
        entry.get("start", 0),
        entry.get("size", 0),
    )


def msg(attachments: Mapping[str, bytes], inside: Tree | None = None, code_page: int = 0, **properties: str) -> bytes:
    """An Outlook mail; `properties`: texts by the tag of their property, as `p0037`. `inside`: an attached
    mail, as `mail_tree` gives it. `code_page`: texts are in this encoding, else in UTF-16."""
    tree = mail_tree(code_page, **properties)
    tree["__properties_version1.0"] = bytes(32) + _code_page(code_page)
    if inside is not None:
        tree["__attach_version1.0_#00000009"] = {
            "__properties_version1.0": bytes(8), "__substg1.0_3701000D": inside,
        }  # fmt: skip
    for number, (name, data) in enumerate(attachments.items()):
        tree[f"__attach_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            "__substg1.0_37010102": data,
        }
    return compound(tree)


def mail_tree(code_page: int = 0, **properties: str) -> dict[str, bytes | Tree]:
    kind, encoding = ("001E", f"cp{code_page}") if code_page else ("001F", "utf-16-le")
    tree: dict[str, bytes | Tree] = {"__properties_version1.0": bytes(24) + _code_page(code_page)}
    return tree | {f"__substg1.0_{tag[1:]}{kind}": text.encode(encoding) for tag, text in properties.items()}


def _code_page(number: int) -> bytes:
    return struct.pack("<HHIII", 3, 0x3FDE, 6, number, 0) if number else b""


def xls(
    formats: Mapping[int, str],
    sheets: Mapping[str, Mapping[tuple[int, int], str | tuple[float, int]]],
    hidden: str = "",
) -> bytes:
    """A workbook of Excel 97 (MS-XLS). `formats`: number formats from 164 on; `sheets`: cells by (row, column)
    from 0, each a text or (number, key of a format)."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def text(words: str) -> bytes:
        return struct.pack("<HB", len(words), 1) + words.encode("utf-16-le")

    keys = [0, 14, 10, *formats]
    font = struct.pack("<HHHHHBBBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0, 1, 0) + b"A"
    head = record(0x0809, struct.pack("<HHHHII", 0x0600, 5, 0, 1997, 0, 0)) + record(0x31, font) * 4
    head += b"".join(record(0x041E, struct.pack("<H", key) + text(code)) for key, code in formats.items())
    head += record(0xE0, struct.pack("<HHH", 0, 0, 0xFFF5) + bytes(14))
    head += b"".join(record(0xE0, struct.pack("<HHH", 0, key, 1) + bytes(14)) for key in keys)
    bodies: list[bytes] = []
    for cells in sheets.values():
        body = record(0x0809, struct.pack("<HHHHII", 0x0600, 0x10, 0, 1997, 0, 0))
        for (row, column), value in cells.items():
            if isinstance(value, str):
                body += record(0x0204, struct.pack("<HHH", row, column, 1) + text(value))
            else:
                body += record(0x0203, struct.pack("<HHHd", row, column, keys.index(value[1]) + 1, value[0]))
        bodies.append(body + record(0x0A, b""))
    at = len(head) + sum(12 + 2 * len(name) for name in sheets) + 4
    for name, body in zip(sheets, bodies, strict=True):
        head += record(0x85, struct.pack("<IBBBB", at, name == hidden, 0, len(name), 1) + name.encode("utf-16-le"))
        at += len(body)
    return compound({"Workbook": (head + record(0x0A, b"") + b"".join(bodies)).ljust(4096, b"\0")})


def doc(text: str) -> bytes:
    """A Word 97 file of one piece of text (MS-DOC 2.5, 2.8.35); paragraphs end with a carriage return."""
    words = text.encode("utf-16-le")
    start = 2048
    clx = b"\x02" + struct.pack("<I", 16) + struct.pack("<II", 0, len(text)) + struct.pack("<HIH", 0, start, 0)
    fib = bytearray(start)
    struct.pack_into("<HHHHHHH", fib, 0, 0xA5EC, 0xC1, 0, 0x409, 0, 0x1200, 0xBF)  # table stream: 1Table
    struct.pack_into("<H", fib, 32, 14)
    struct.pack_into("<H", fib, 62, 22)
    struct.pack_into("<II", fib, 24, start, start + len(words))
    struct.pack_into("<I", fib, 64, start + len(words))
    struct.pack_into("<I", fib, 76, len(text))
    struct.pack_into("<H", fib, 152, 93)
    struct.pack_into("<II", fib, 154 + 33 * 8, 0, len(clx))
    return compound({"WordDocument": bytes(fib) + words.ljust(4096, b"\0"), "1Table": clx.ljust(4096, b"\0")})


def ppt(*slides: str) -> bytes:
    """A PowerPoint 97 file (MS-PPT 2.4.14.3): the outline text of its slides."""

    def record(kind: int, data: bytes, version: int = 0, instance: int = 0) -> bytes:
        return struct.pack("<HHI", version | instance << 4, kind, len(data)) + data

    listed = b""
    for number, text in enumerate(slides):
        listed += record(0x03F3, struct.pack("<IIiII", number + 2, 4, 1, 256 + number, 0))
        listed += record(0x0F9F, struct.pack("<I", 0)) + record(0x0FA0, text.encode("utf-16-le"))
    document = record(0x03E8, record(0x0FF0, listed, 15), 15)
    slide_places = []
    body = document
    for _ in slides:
        slide_places.append(len(body))
        body += record(0x03EE, record(0x03EF, bytes(24), 2), 15)
    directory = len(body)
    places = [0, *slide_places]
    body += record(0x1772, struct.pack("<I", 1 | len(places) << 20) + struct.pack(f"<{len(places)}I", *places))
    edit = len(body)
    body += record(0x0FF5, struct.pack("<IHBBIIIIHH", 0, 0, 0, 3, 0, directory, 1, len(places) + 1, 1, 0))
    user = record(
        0x0FF6, struct.pack("<IIIHHBBH", 20, 0xE391C05F, edit, 4, 0x03F4, 3, 0, 0) + b"ana\0" + struct.pack("<I", 8)
    )
    return compound({"PowerPoint Document": body.ljust(4096, b"\0"), "Current User": user})
