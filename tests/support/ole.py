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
            entries.append(
                {"name": name, "kind": 2 if stream else 1, "data": held if stream else b""}
            )
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
        entry["start"] = put(
            data, mini if small else body, mini_fat if small else fat, MINI if small else SECTOR
        )
        entry["size"] = len(data)
    entries[0] |= {"start": put(bytes(mini), body, fat, SECTOR), "size": len(mini)}
    minis = (
        put(struct.pack(f"<{len(mini_fat)}I", *mini_fat).ljust(SECTOR, b"\xff"), body, fat, SECTOR)
        if mini_fat
        else END
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


def msg(attachments: Mapping[str, bytes], **properties: str) -> bytes:
    """An Outlook mail; `properties`: texts by the tag of their property, as `p0037`."""
    tree: dict[str, bytes | Tree] = {"__properties_version1.0": bytes(32)}
    tree |= {
        f"__substg1.0_{tag[1:]}001F": text.encode("utf-16-le") for tag, text in properties.items()
    }
    for number, (name, data) in enumerate(attachments.items()):
        tree[f"__attach_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            "__substg1.0_37010102": data,
        }
    return compound(tree)


def doc(text: str) -> bytes:
    """A Word 97 file of one piece of text (MS-DOC 2.5, 2.8.35); paragraphs end with a carriage return."""
    words = text.encode("utf-16-le")
    start = 2048
    clx = (
        b"\x02"
        + struct.pack("<I", 16)
        + struct.pack("<II", 0, len(text))
        + struct.pack("<HIH", 0, start, 0)
    )
    fib = bytearray(start)
    struct.pack_into(
        "<HHHHHHH", fib, 0, 0xA5EC, 0xC1, 0, 0x409, 0, 0x1200, 0xBF
    )  # table stream: 1Table
    struct.pack_into("<H", fib, 32, 14)
    struct.pack_into("<H", fib, 62, 22)
    struct.pack_into("<II", fib, 24, start, start + len(words))
    struct.pack_into("<I", fib, 64, start + len(words))
    struct.pack_into("<I", fib, 76, len(text))
    struct.pack_into("<H", fib, 152, 93)
    struct.pack_into("<II", fib, 154 + 33 * 8, 0, len(clx))
    return compound(
        {"WordDocument": bytes(fib) + words.ljust(4096, b"\0"), "1Table": clx.ljust(4096, b"\0")}
    )


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
    body += record(
        0x1772, struct.pack("<I", 1 | len(places) << 20) + struct.pack(f"<{len(places)}I", *places)
    )
    edit = len(body)
    body += record(
        0x0FF5, struct.pack("<IHBBIIIIHH", 0, 0, 0, 3, 0, directory, 1, len(places) + 1, 1, 0)
    )
    user = record(
        0x0FF6,
        struct.pack("<IIIHHBBH", 20, 0xE391C05F, edit, 4, 0x03F4, 3, 0, 0)
        + b"ana\0"
        + struct.pack("<I", 8),
    )
    return compound({"PowerPoint Document": body.ljust(4096, b"\0"), "Current User": user})
