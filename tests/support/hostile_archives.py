"""Packed files made to do harm: zips of Office, PDF, Parquet. Each case is a function of (heavy) that gives the bytes.

`CASES` maps a file name to such a function; heavy ones are as large as an attacker would make them, the others show
the same trick in little. Nothing of the product is used here.
"""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

Make = Callable[[bool], bytes]

MAIN = {
    "docx": "word/document.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "pptx": "ppt/presentation.xml",
    "epub": "content.opf",
}
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND = {
    "docx": ("wordprocessingml.document.main", "word/document.xml"),
    "xlsx": ("spreadsheetml.sheet.main", "xl/workbook.xml"),
    "pptx": ("presentationml.presentation.main", "ppt/presentation.xml"),
}
_SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'


def frame(kind: str) -> dict[str, str]:
    """The parts around the main one, as a good file has them."""
    if kind == "epub":
        inner = '<rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles>'
        return {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">{inner}</container>',
        }  # fmt: skip
    name, main = _KIND[kind]
    said = f"application/vnd.openxmlformats-officedocument.{name}+xml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/{main}" ContentType="{said}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELS}"><Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="{main}"/></Relationships>',
    }  # fmt: skip
    if kind == "xlsx":
        parts["xl/workbook.xml"] = (
            f'<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{_OFFICE}">'
            '<sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets></workbook>'
        )
        parts["xl/_rels/workbook.xml.rels"] = (
            f'<Relationships xmlns="{_RELS}"><Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>'
        )
    return parts


def packed(kind: str, main: str | bytes, **more: str | bytes) -> bytes:
    """A file of that kind whose main part is `main`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in {**frame(kind), MAIN[kind]: main, **more}.items():
            archive.writestr(name, part)
    return out.getvalue()


def document(*paragraphs: str) -> bytes:
    """A good docx."""
    body = "".join(f"<w:p><w:r><w:t>{one}</w:t></w:r></w:p>" for one in paragraphs)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return packed("docx", f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>')


def sheet(rows: str, dimension: str = "A1") -> bytes:
    return packed("xlsx", f'{_SHEET}<dimension ref="{dimension}"/><sheetData>{rows}</sheetData></worksheet>')


def text_cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def _laughs(levels: int) -> str:
    named = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, levels))
    return f'<?xml version="1.0"?><!DOCTYPE d [{named}]><d>&a{levels - 1};</d>'


_OUTSIDE = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d>&x;</d>'


def _nested(kind: str, depth: int) -> bytes:
    inner = b"0" * 1000
    for number in range(depth):
        inner = packed(kind, inner, **{f"inner{number}.zip": inner})
    return inner


def _many_parts(kind: str, count: int) -> bytes:
    return packed(kind, "<d/>", **{f"part{number}.xml": "<d/>" for number in range(count)})


def _locked(kind: str) -> bytes:
    data = bytearray(packed(kind, "<d/>"))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def _lying(kind: str) -> bytes:
    """The directory says that every part is 10 bytes long."""
    data = bytearray(packed(kind, "<d>" + "x" * 100_000 + "</d>"))
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 24 : at + 28] = struct.pack("<I", 10)
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def _wrong_sum(kind: str) -> bytes:
    data = bytearray(packed(kind, random.Random(1).randbytes(5000)))
    data[2500] ^= 0xFF
    return bytes(data)


def _zip_cases(kind: str) -> dict[str, Make]:
    deep = lambda heavy: "<d>" * (1_000_000 if heavy else 20_000)  # noqa: E731
    noise = random.Random(kind).randbytes(20_000)
    return {
        f"bomb.{kind}": lambda heavy: packed(kind, b"\0" * (280_000_000 if heavy else 12_000_000)),
        f"bomb-in-parts.{kind}": lambda heavy: packed(kind, "<d/>", **{f"p{n}.bin": b"\0" * 9_900_000 for n in range(40 if heavy else 31)}),
        f"nested.{kind}": lambda heavy: _nested(kind, 8),
        f"torn.{kind}": lambda heavy: packed(kind, noise)[:9000],
        f"noise.{kind}": lambda heavy: noise,
        f"noise-in-main.{kind}": lambda heavy: packed(kind, noise),
        f"empty-zip.{kind}": lambda heavy: b"PK\x05\x06" + b"\0" * 18,
        f"laughs.{kind}": lambda heavy: packed(kind, _laughs(10)),
        f"laughs-utf16.{kind}": lambda heavy: packed(kind, _laughs(10).replace("?>", ' encoding="utf-16"?>', 1).encode("utf-16")),
        f"entity.{kind}": lambda heavy: packed(kind, _OUTSIDE),
        f"entity-late.{kind}": lambda heavy: packed(kind, "<!-- " + "x" * 2_000_000 + "-->" + _OUTSIDE[21:]),
        f"deep.{kind}": lambda heavy: packed(kind, deep(heavy)),
        f"locked.{kind}": lambda heavy: _locked(kind),
        f"ole.{kind}": lambda heavy: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + noise,
        f"text.{kind}": lambda heavy: b"Only a text, whatever its name says.\n",
        f"parts.{kind}": lambda heavy: _many_parts(kind, 60_000 if heavy else 10_001),
        f"climbing.{kind}": lambda heavy: packed(kind, "<d/>", **{"../../../../tmp/escaped.xml": "<d/>", "/etc/escaped.xml": "<d/>"}),
        f"lying.{kind}": lambda heavy: _lying(kind),
        f"sum.{kind}": lambda heavy: _wrong_sum(kind),
    }  # fmt: skip


_SHEETS: dict[str, Make] = {
    "columns.xlsx": lambda heavy: sheet(f'<row r="1">{text_cell("A1", "kept")}</row>', "A1:XFD1048576"),
    "too-many-columns.xlsx": lambda heavy: sheet(f'<row r="1">{text_cell("A1", "kept")}</row>', "A1:ZZZZ1048576"),
    "last-cell.xlsx": lambda heavy: sheet(f'<row r="1048576">{text_cell("XFD1048576", "kept")}</row>'),
    "bad-cells.xlsx": lambda heavy: sheet('<row r="x"><c r="999"><v>zz</v></c><c r="A1" t="s"><v>99999</v></c></row>'),
    "wide-rows.xlsx": lambda heavy: sheet("".join(f'<row r="{n}">{text_cell(f"XFD{n}", "x")}</row>' for n in range(1, 20_000 if heavy else 200))),
    "cells.xlsx": lambda heavy: sheet("".join(f'<row r="{n}">{text_cell(f"A{n}", "fish " * 5)}</row>' for n in range(1, 600_000 if heavy else 5_000))),
    "huge-number.xlsx": lambda heavy: sheet(f'<row r="1"><c r="A1"><v>{"9" * 100_000}</v></c></row>'),
    "far-date.xlsx": lambda heavy: sheet('<row r="1"><c r="A1" t="d"><v>99999-99-99</v></c></row>'),
}  # fmt: skip


# ---- PDF ------------------------------------------------------------------------------------------


def pdf(*objects: bytes, trailer: bytes = b"", table: bool = True) -> bytes:
    """A file of these objects, numbered from 1; the first is the catalogue."""
    out, places = b"%PDF-1.5\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    start = len(out)
    if table:
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
        out += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = trailer or b"/Root 1 0 R"
    return out + b"trailer << /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)


def stream(data: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), more, data)


_ROOT = b"<< /Type /Catalog /Pages 2 0 R >>"
_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>"
)
_ONE = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"


def page(contents: bytes, pages: bytes = _ONE, one: bytes = _PAGE, **more: bytes) -> bytes:
    return pdf(_ROOT, pages, one, contents, _FONT, **more)


def scan() -> bytes:
    """A PDF whose one page is a picture."""
    image = b"/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8"
    shown = _PAGE.replace(b"/Font << /F1 5 0 R >>", b"/XObject << /I 5 0 R >>")
    return pdf(_ROOT, _ONE, shown, stream(b"q 600 0 0 700 0 0 cm /I Do Q"), stream(b"w" * 64, image))


def pages(*texts: str) -> bytes:
    """A good PDF, one page a text; a line is a line."""
    objects, kids = [_ROOT, b"", _FONT], []
    for text in texts:
        lines = b" ".join(b"(%s) Tj T*" % line.encode("latin-1") for line in text.split("\n"))
        objects.append(stream(b"BT /F1 10 Tf 12 TL 50 750 Td " + lines + b" ET"))
        objects.append(_PAGE.replace(b"4 0 R", b"%d 0 R" % len(objects)).replace(b"5 0 R", b"3 0 R"))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    return pdf(*objects)


_WORDS = b"BT /F1 10 Tf 50 750 Td (kept words) Tj ET"
_PDFS: dict[str, Make] = {
    "noise.pdf": lambda heavy: b"%PDF-1.7\n" + random.Random(3).randbytes(50_000),
    "torn.pdf": lambda heavy: page(stream(_WORDS))[:300],
    "header.pdf": lambda heavy: b"%PDF-1.7\n",
    "text.pdf": lambda heavy: b"Only a text.\n",
    "kids-loop.pdf": lambda heavy: page(stream(_WORDS), b"<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 3 >>"),
    "parent-loop.pdf": lambda heavy: page(stream(_WORDS), b"<< /Type /Pages /Parent 3 0 R /Kids [3 0 R] /Count 1 >>"),
    "count.pdf": lambda heavy: page(stream(_WORDS), b"<< /Type /Pages /Kids [3 0 R] /Count 999999999 >>"),
    "below-none.pdf": lambda heavy: page(stream(_WORDS), b"<< /Type /Pages /Kids [3 0 R] /Count -5 >>"),
    "length-loop.pdf": lambda heavy: page(b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream"),
    "xref-loop.pdf": lambda heavy: page(stream(_WORDS), trailer=b"/Root 1 0 R /Prev 9"),
    "root-loop.pdf": lambda heavy: page(stream(_WORDS), trailer=b"/Root 9 0 R"),
    "flate-bomb.pdf": lambda heavy: page(stream(zlib.compress(b"q " * (400_000_000 if heavy else 5_000_000), 9), b"/Filter /FlateDecode")),
    "filters.pdf": lambda heavy: page(stream(b"x", b"/Filter [" + b"/FlateDecode " * 20_000 + b"]")),
    "form-loop.pdf": lambda heavy: pdf(_ROOT, _ONE, _PAGE.replace(b"/Font", b"/XObject << /X 6 0 R >> /Font"), stream(b"/X Do"), _FONT,
                                        stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>")),
    "deep-array.pdf": lambda heavy: page(stream(_WORDS), one=_PAGE[:-2] + b"/A " + b"[" * 200_000 + b"]" * 200_000 + b">>"),
    "deep-dict.pdf": lambda heavy: page(stream(_WORDS), one=_PAGE[:-2] + b"/A " + b"<< /A " * 100_000 + b">>" * 100_000 + b">>"),
    "deep-state.pdf": lambda heavy: page(stream(b"q " * (5_000_000 if heavy else 200_000) + _WORDS)),
    "big-page.pdf": lambda heavy: page(stream(_WORDS), one=_PAGE.replace(b"612 792", b"9e30 9e30")),
    "scanned.pdf": lambda heavy: page(stream(b"0 0 10 10 re f")),
    "locked.pdf": lambda heavy: pdf(_ROOT, _ONE, _PAGE, stream(_WORDS), _FONT, b"<< /Filter /Standard /V 2 /R 3 /Length 128 /P -4 "
                                    b"/O <" + b"41" * 32 + b"> /U <" + b"42" * 32 + b"> >>", trailer=b"/Root 1 0 R /Encrypt 6 0 R /ID [<00><00>]"),
    "script.pdf": lambda heavy: pdf(_ROOT[:-2] + b"/OpenAction << /S /JavaScript /JS (while(true){}) >> >>", _ONE, _PAGE, stream(_WORDS), _FONT),
    "letters.pdf": lambda heavy: page(stream(b"BT /F1 1 Tf " + b"(aaaaaaaaaa) Tj " * (1_000_000 if heavy else 20_000) + b"ET")),
    "many-pages.pdf": lambda heavy: page(stream(_WORDS), b"<< /Type /Pages /Kids [" + b"3 0 R " * (100_000 if heavy else 20_001) + b"] /Count %d >>" % (100_000 if heavy else 20_001)),
}  # fmt: skip


# ---- Parquet --------------------------------------------------------------------------------------


def _parquet(**columns: list[object]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="zstd")
    return out.getvalue()


def _repeated(times: int) -> bytes:
    """Half a megabyte of text, stored once, in so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array(["fish " * 100_000]))
    pq.write_table(pa.table({"text": column}), out, compression="zstd")
    return out.getvalue()


def _footer(change: Callable[[bytearray], None]) -> bytes:
    data = bytearray(_parquet(text=["The light was burning."] * 50))
    change(data)
    return bytes(data)


def _set(place: int, value: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[place : place + len(value) or None] = value

    return change


def _scrambled(seed: int) -> bytes:
    def change(data: bytearray) -> None:
        chance = random.Random(seed)
        for _ in range(12):
            data[chance.randrange(len(data) - 400, len(data) - 8)] = chance.randrange(256)

    return _footer(change)


_PARQUETS: dict[str, Make] = {
    "noise.parquet": lambda heavy: random.Random(5).randbytes(9000),
    "text.parquet": lambda heavy: b"PAR1 not at all PAR1",
    "torn.parquet": lambda heavy: _parquet(text=["x"] * 500)[:-20],
    "footer-long.parquet": lambda heavy: _footer(_set(-8, b"\xff\xff\xff\x7f")),
    "footer-short.parquet": lambda heavy: _footer(_set(-8, b"\x01\x00\x00\x00")),
    "page-broken.parquet": lambda heavy: _footer(_set(40, b"\xff" * 20)),
    "dictionary.parquet": lambda heavy: _repeated(100_000 if heavy else 1_100),
    "columns.parquet": lambda heavy: _parquet(**{f"c{n}": [n] for n in range(20_000 if heavy else 2_001)}),
    "rows.parquet": lambda heavy: _parquet(text=["x"] * (3_000_000 if heavy else 200_001)),
    **{f"scrambled-{seed}.parquet": (lambda heavy, seed=seed: _scrambled(seed)) for seed in range(8)},
}  # fmt: skip


CASES: dict[str, Make] = {
    **{name: make for kind in MAIN for name, make in _zip_cases(kind).items()},
    **_SHEETS, **_PDFS, **_PARQUETS,
    "noise.msg": lambda heavy: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + random.Random(7).randbytes(9000),
    "text.msg": lambda heavy: b"Only a text.\n",
}  # fmt: skip
