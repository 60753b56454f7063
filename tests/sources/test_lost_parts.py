"""Parts of files that are in no document: each is named with its reason, and ends nothing else."""

from __future__ import annotations

import base64
import html
import io
import struct
from pathlib import Path
from zipfile import ZipFile

import pypdfium2
import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import formats
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.embedded import embedded
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece
from graphrag_mcp.sources.read import parse
from graphrag_mcp.types import IndexRequest
from tests.support import hostile_archives, ole

PLACES = "Lerwick Skarholm Tarbet Oban Mallaig Barra Tiree Coll Islay Jura Rum Eigg Muck Canna".split()
WORDS = "Die Fähre kostet 12 Kronen.".encode()


def mail(body: bytes, charset: str = "utf-8", coding: str = "8bit") -> bytes:
    head = (
        f"From: a@b.example\nTo: c@d.example\nSubject: Ferry\nContent-Type: text/plain; charset={charset}\n"
        f"Content-Transfer-Encoding: {coding}\nMIME-Version: 1.0\n\n"
    )
    return head.encode() + body + b"\n"


def alternatives(plain: str, page: str) -> bytes:
    parts = "".join(f"--B\nContent-Type: text/{kind}; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{body}\n" for kind, body in (("plain", plain), ("html", page)))
    return f"From: a@b.example\nContent-Type: multipart/alternative; boundary=B\n\n{parts}--B--\n".encode()


def read(data: bytes, suffix: str) -> tuple[list[str], list[NotRead]]:
    found = list(formats.pieces(data, suffix))
    texts = [piece.text for piece in found if isinstance(piece, Piece)]
    return texts, [part for part in found if isinstance(part, NotRead)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (mail(base64.b64encode(bytes(range(256)) * 4), coding="base64"), "its body: its encoding is not known"),
        (mail(b"+AGE-x +ZZZ! " + bytes([*range(1, 9), *range(127, 256)]) * 2, "utf-7"), "its body: its encoding is not known"),
        (mail(base64.encodebytes(WORDS * 20), coding="7bit"), "its body: it is mostly base64"),
        (
            b"From: a@b.example\nSubject: Ferry\nContent-Type: multipart/mixed; boundary=B\n\n--B\n"
            b"Content-Type: application/x-secret\n\nabc\n--B--\n",
            "its body is application/x-secret",
        ),
    ],
)  # fmt: skip
def test_a_mail_whose_body_is_not_read_keeps_its_head_and_says_so(data: bytes, reason: str) -> None:
    (text,), (lost,) = read(data, "eml")
    assert "# Ferry" in text and lost.reason.startswith(reason)
    box = b"".join(b"From x Mon Jan  6 10:00:00 2025\n" + each + b"\n" for each in (mail(WORDS), data, mail(WORDS)))
    texts, (lost,) = read(box, "mbox")
    assert len(texts) == 3 and "12 Kronen" in texts[0] and "12 Kronen" in texts[2]
    assert lost.name == "2" and lost.reason.startswith(reason)


@pytest.mark.parametrize(
    ("charset", "coding", "body"),
    [
        ("unknown-8bit", "8bit", WORDS), ('"utf-8\0"', "8bit", WORDS), ("undefined", "8bit", WORDS), ("ascii", "8bit", WORDS),
        ("utf-8", "base64", base64.b64encode(WORDS) + b"A"), ("utf-8", "base64", base64.b64encode(WORDS).rstrip(b"=")),
    ],
)  # fmt: skip
def test_a_body_with_a_wrong_charset_or_length_is_read_without_a_loss(charset: str, coding: str, body: bytes) -> None:
    (text,), lost = read(mail(body, charset, coding), "eml")
    assert "Die Fähre kostet 12 Kronen" in text and not lost


BASE64 = base64.encodebytes(WORDS * 20)
SIGNATURE = b"-----BEGIN PGP SIGNATURE-----\n\n" + BASE64 + b"=aB3d\n-----END PGP SIGNATURE-----\n"


@pytest.mark.parametrize("body", [b"It costs 88.\n\n" + SIGNATURE, b"Gr=C3=BC=C3=9Fe aus K=C3=B6ln und M=C3=BCnchen."])
def test_a_readable_body_with_a_signature_or_coded_letters_is_no_loss(body: bytes) -> None:
    (text,), lost = read(mail(body), "eml")
    assert text.endswith(body.decode().strip() + "\n") and not lost


def test_a_member_that_its_reader_cannot_take_ends_no_other() -> None:
    out = io.BytesIO()
    with ZipFile(out, "w") as bundle:
        bundle.writestr("a.parquet", "PAR1 is all of it")
        bundle.writestr("b.md", "The ferry.")
    texts, lost = read(out.getvalue(), "zip")
    assert texts == ["The ferry."] and lost == [NotRead("a.parquet", "cannot be read as parquet (ArrowInvalid)")]


def test_a_mail_of_parts_in_parts_is_named_with_a_sentence_and_ends_no_other() -> None:
    parts = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (at, at) for at in range(5_000))
    deep = b"From: a@b.example\nSubject: Deep\nMIME-Version: 1.0\n" + parts + b"\nThe end.\n"
    reason = "its parts are nested too deeply"
    out = io.BytesIO()
    with ZipFile(out, "w") as bundle:
        bundle.writestr("a.eml", deep)
        bundle.writestr("b.md", "The ferry.")
    assert read(out.getvalue(), "zip") == (["The ferry."], [NotRead("a.eml", reason)])
    box = b"".join(b"From x Mon Jan  6 10:00:00 2025\n" + each + b"\n" for each in (mail(WORDS), deep, mail(WORDS)))
    texts, lost = read(box, "mbox")
    assert len(texts) == 2 and lost == [NotRead("2", reason)]
    with pytest.raises(ReadError, match=f"^{reason}$"):
        parse(deep, "eml")


@pytest.mark.parametrize("kind", ["mixed", "alternative"])
def test_a_mail_of_a_hundred_parts_in_parts_is_read(kind: str) -> None:
    begin = "".join(f"Content-Type: multipart/{kind}; boundary=b{at}\n\n--b{at}\n" for at in range(100))
    end = "".join(f"--b{at}--\n" for at in reversed(range(100)))
    (text,), lost = read(f"From: a@b.example\n{begin}Content-Type: text/plain\n\nThe core.\n{end}".encode(), "eml")
    assert text.endswith("The core.\n") and not lost


@pytest.mark.parametrize(("levels", "lost"), [(50, 0), (1_500, 1)])
def test_what_stands_in_very_many_tables_of_word_is_read_or_named(levels: int, lost: int) -> None:
    core = "<w:tbl><w:tr><w:tc>" * levels + "<w:p><w:r><w:t>The core.</w:t></w:r></w:p>" + "</w:tc></w:tr></w:tbl>" * levels
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    document = f'<w:document xmlns:w="{space}"><w:body>{core}<w:p><w:r><w:t>After.</w:t></w:r></w:p></w:body></w:document>'
    (text,), not_read = read(hostile_archives.packed("docx", document), "docx")
    assert "After." in text and ("The core." in text) is not bool(lost)
    assert [part.reason[:21] for part in not_read] == ["a part of its text: i"] * lost


def test_what_stands_before_the_first_mail_of_a_box_is_named() -> None:
    box = b"From x Mon Jan  6 10:00:00 2025\n" + mail(WORDS)
    assert read(b"\n" + box, "mbox") == read(box, "mbox")
    assert read(b"the end of a mail.\n\n" + box, "mbox")[1] == [NotRead("", "what stands before its first mail")]


def test_mails_of_outlook_in_mails_are_read_to_a_depth_and_the_next_is_named() -> None:
    inside: ole.Tree = ole.mail_tree(p0037="Mail 6", p1000="The core.")
    for level in range(5, 0, -1):
        attached = {"__properties_version1.0": bytes(8), "__substg1.0_3701000D": inside}
        inside = {**ole.mail_tree(p0037=f"Mail {level}"), "__attach_version1.0_#00000000": attached}
    texts, (lost,) = read(ole.msg({}, inside, p0037="Mail 0"), "msg")
    assert [text.partition("\n")[0] for text in texts] == [f"# Mail {level}" for level in range(5)]
    assert lost.reason == "mails in mails are read to a depth of 4"


def test_a_page_in_very_many_frames_is_read_and_a_chapter_that_is_missing_named() -> None:
    page = "<p>The core."
    for _ in range(5):
        page = f'<iframe srcdoc="{html.escape(page)}"></iframe>'
    (text,), lost = read(page.encode(), "html")
    assert "The core." in text and not lost
    out = io.BytesIO()
    with ZipFile(out, "w") as book:
        book.writestr("META-INF/container.xml", '<container><rootfile full-path="c.opf"/></container>')
        items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in "ab")
        book.writestr("c.opf", f'<package>{items}<itemref idref="a"/><itemref idref="b"/></package>')
        book.writestr("a.xhtml", "<p>The ferry.</p>")
    assert read(out.getvalue(), "epub") == (["The ferry.\n"], [NotRead("b.xhtml", "it is missing in the file")])


def test_a_file_of_which_no_part_is_read_is_named_once(tmp_path: Path) -> None:
    data = b"The core."
    for level in range(6):
        out = io.BytesIO()
        with ZipFile(out, "w") as bundle:
            bundle.writestr(f"{level}.zip" if level else "core.txt", data)
        data = out.getvalue()
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "dolls.zip").write_bytes(data)
    result = index_documents(tmp_path / "home/c", IndexRequest(paths=(str(folder),)), Settings(home=tmp_path / "home"))
    assert [*result.skipped] == ["in another file: files inside of files are read to a depth of 4"]


@pytest.mark.parametrize("suffix", ["json", "ipynb", "canvas"])
@pytest.mark.parametrize("data", ["[" * 100_000 + "]" * 100_000, '{"cells":' * 100_000 + "1" + "}" * 100_000])
def test_json_of_very_many_brackets_is_refused_with_the_reason(suffix: str, data: str) -> None:
    with pytest.raises(ReadError, match="nested too deeply"):
        read(data.encode(), suffix)


@pytest.mark.parametrize(
    ("plain", "page", "body"),
    [
        ("Tow rope: 88 marks", "<table><tr><td>Tow rope:</td><td>88 marks</td></tr></table>", "Tow rope: 88 marks"),
        ("The tow rope costs 88 marks. https://a.example/b", "<p>The <a href='b'>tow rope</a> costs 88 marks.</p>",
         "The tow rope costs 88 marks. https://a.example/b"),
        ("渡船的票价是每人十二克朗", "<p>渡船的票价是<br>每人十二克朗</p>", "渡船的票价是每人十二克朗"),
        ("It costs 88. https://a.example/b", f"<p>It costs 88.</p><p>{' '.join(PLACES)}</p>",
         f"It costs 88.\n\n{' '.join(PLACES)}"),
        ("Your program shows no HTML.", "<p>The tow rope costs 88 marks.</p>",
         "Your program shows no HTML.\n\nThe tow rope costs 88 marks."),
        ("The rope costs 88 marks. See https://a.example", "<p>The rope costs 88 marks.</p><table><tr><td>Buoy</td><td>88</td></tr></table>",
         "The rope costs 88 marks. See https://a.example\n\n| Buoy | 88 |"),
        ("The rope costs 88 marks. (Note)", "<table><tr><td><p>The rope costs 88 marks.</p><p>Reply</p></td><td>View</td></tr></table>",
         "The rope costs 88 marks. (Note)\n\nReply View"),
        ("Our offer: 20 loads of slate at 410 crowns.", '<a href=x><img alt="Spring sale"></a><p>Unsubscribe</p>',
         "Our offer: 20 loads of slate at 410 crowns.\n\n[image: Spring sale]\n\nUnsubscribe"),
    ],
)  # fmt: skip
def test_of_two_alternatives_no_words_are_lost_and_none_stand_twice(plain: str, page: str, body: str) -> None:
    (text,), lost = read(alternatives(plain, page), "eml")
    assert text.split("\n\n", 1)[1].strip() == body and not lost


def test_files_in_a_pdf_are_read_or_named() -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(100, 100)
    for name, data in (("total.xml", b"<total>88</total>"), ("run.exe", b"MZ")):
        document.new_attachment(name).set_data(data)
    out = io.BytesIO()
    document.save(out)
    texts, lost = read(out.getvalue(), "pdf")
    assert [text for text in texts if text] == ["total: 88\n"] and lost == [NotRead("run.exe", "binary")]


def test_objects_in_a_file_of_office_are_read_or_named() -> None:
    words = b"The pump is sold."
    native = struct.pack("<IH", 0, 2) + b"pump.txt\0C:\\pump.txt\0" + struct.pack("<II", 3, 2) + b"C\0" + struct.pack("<I", len(words)) + words
    related = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    objects = {"a.bin": ole.compound({"\1Ole10Native": native}), "b.bin": ole.compound({"Visio": b"x"}), "c.csv": b"a,b\n1,2\n"}
    targets = "".join(f'<Relationship Id="{name}" Type="{related}/oleObject" Target="embeddings/{name}"/>' for name in [*objects, "d.bin"])
    out = io.BytesIO()
    with ZipFile(out, "w") as bundle:
        bundle.writestr("ppt/slides/_rels/slide1.xml.rels", f"<Relationships>{targets}</Relationships>")
        bundle.writestr("ppt/charts/_rels/chart1.xml.rels", f"<Relationships>{targets.replace('c.csv', 'chart.csv')}</Relationships>")
        for name, data in objects.items():
            bundle.writestr(f"ppt/slides/embeddings/{name}", data)
    found = list(embedded(out.getvalue(), "pptx"))
    assert [(part.name, part.data) for part in found if isinstance(part, Attachment)] == [("pump.txt", words), ("c.csv", b"a,b\n1,2\n")]
    assert [part for part in found if isinstance(part, NotRead)] == [
        NotRead("b.bin", "an object of a program whose files are not read"), NotRead("d.bin", "it is missing in the file")
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "reasons"), [("02", []), ("03", ["its body is encrypted (S/MIME)"])])
def test_the_body_in_a_signature_is_read_and_an_encrypted_one_is_named(kind: str, reasons: list[str]) -> None:
    name = bytes.fromhex("06092a864886f70d0107")
    body = b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + WORDS + b"\r\n"
    chunks = b"\x04\x10" + body[:16] + b"\x04\x81" + bytes([len(body) - 16]) + body[16:]
    wrapped = b"\x30\x80" + name + bytes.fromhex(kind) + bytes.fromhex("a08030800201013100 3080") + name + b"\1\xa0\x80\x24\x80" + chunks + bytes(8)
    head = b"Subject: Ferry\nContent-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n"
    (text,), lost = read(head + base64.encodebytes(wrapped), "eml")
    assert (WORDS.decode() in text) == (not reasons) and [part.reason for part in lost] == reasons


@pytest.mark.parametrize(
    "page",
    [
        '<p>First part.</p><img alt="A map of the port src=x.png><p>Second part.</p><p>Third part.</p>',
        "<p>First part.</p><img alt='A map of the port src=x.png><p>Second part.</p><p>Third part.</p>",
        '<p>First part.</p><img alt="A map src=x.png><p>Second part.</p><a href="/more"></a><p>Third part.</p>',
        '<!-- <a href="x --><p>First part.</p><noframes><p>Second <a href="b.html">part.</a></p></noframes><xmp><p>Third part.</p></xmp>',
        '<p>First part.</p><script>a = "<p title=\'"</script><p title="if 1 < 2">Second part.</p><p title=it\'s>Third part.</p>',
    ],
)  # fmt: skip
def test_a_quote_that_never_closes_and_elements_without_markup_lose_no_words_of_a_page(page: str) -> None:
    texts, lost = read(page.encode(), "html")
    assert not lost and "<" not in texts[0]
    shown = [line for line in texts[0].split("\n") if line and not line.startswith("[image")]
    assert shown == ["First part.", "Second part.", "Third part."]
