"""PDF, Office files, books and mails: their text, their marks, what stands in the metadata, and life without the extra."""

from __future__ import annotations

import datetime
import io
import os
import zipfile
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import decode, ocr, piece
from graphrag_mcp.sources import read as parsers
from graphrag_mcp.sources.read import Document, load
from graphrag_mcp.sources.walk import find
from graphrag_mcp.store import tables
from graphrag_mcp.store.manifest import read as read_manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.text.places import place_of
from graphrag_mcp.types import IndexRequest
from tests.support import hostile_archives

SETTINGS = Settings(home=Path("unused"))


def one(folder: Path, name: str, data: bytes) -> Document:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    (file,) = (file for file in find([str(folder)], {}, SETTINGS).files if file.uri.endswith(name))
    (document,) = load(file, SETTINGS)
    return document


def test_a_pdf_is_text_and_knows_its_pages(tmp_path: Path) -> None:
    document = one(
        tmp_path / "d", "tides.pdf", hostile_archives.pages("Report on tides\nInes Calloway rowed.", "Second page (here)")
    )
    assert (
        document.text
        == "Report on tides\nInes Calloway rowed.\n\nSecond page (here)\n"
    )
    assert document.places == ((0, "p. 1"), (38, "p. 2"))
    assert place_of(document, 3, 9) == "p. 1" and place_of(document, 3, 50) == "pp. 1-2"
    assert document.metadata == {"pages": 2, "parser": piece.parser("pypdfium2")} and document.title == "tides.pdf"


@pytest.mark.parametrize(
    ("said", "title"), [("Report on Tides", "Report on Tides"), ("Microsoft Word - x.doc", "a.pdf")]
)
def test_a_pdf_has_the_title_that_it_says_where_its_first_page_bears_it(tmp_path: Path, said: str, title: str) -> None:
    data = hostile_archives.pages("REPORT ON\nTIDES", "More")
    data = data.replace(b"trailer << ", b"9 0 obj\n<< /Title (%s) >>\nendobj\ntrailer << /Info 9 0 R " % said.encode())
    assert one(tmp_path / "d", "a.pdf", data).title == title


def at(x: int, y: int, words: str, size: int = 10) -> bytes:
    return b"BT /F1 %d Tf 1 0 0 1 %d %d Tm (%s) Tj ET\n" % (size, x, y, words.encode("latin-1"))


LAID_OUT = (
    at(50, 750, "The harbour of Helm is closed for re-") + at(50, 738, "pairs until May, says the harbour") + at(50, 726, "master, who counts 40 ships")
    + at(178, 731, "1", 5) + at(186, 726, "none of them") + at(320, 750, "may enter.") + at(320, 738, "Ana Holm is the state-")
    + at(320, 710, "The pilots wait.") + at(320, 698, "They are paid.") + at(50, 40, "Page 7")
)  # fmt: skip


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_pdf_has_paragraphs_columns_hyphens_and_marks_as_they_are_read(tmp_path: Path, turn: int) -> None:
    drawn = {0: b"", 90: b"0 1 -1 0 800 0 cm ", 180: b"-1 0 0 -1 612 800 cm ", 270: b"0 -1 1 0 0 612 cm "}[turn]
    whole = hostile_archives.page(hostile_archives.stream(drawn + LAID_OUT))
    data = whole.replace(b"/MediaBox [0 0 612 792]", b"/MediaBox [0 0 800 800] /Rotate %d" % turn)
    assert one(tmp_path / "d", "a.pdf", data).text == (
        "The harbour of Helm is closed for repairs until May, says the harbour\nmaster, who counts 40 ships 1 none of them\n"
        "may enter.\nAna Holm is the state-\n\nThe pilots wait.\nThey are paid.\n\nPage 7\n"
    )


def test_fields_and_comments_of_a_pdf_stand_below_its_page(tmp_path: Path) -> None:
    shown = b"/Type /Annot /Rect [50 600 300 620] /P 3 0 R"
    annotations = (
        b"<< %s /Subtype /Widget /FT /Tx /T (surname) /TU (Family name) /V (Calloway) >>" % shown,
        b"<< %s /Subtype /Widget /FT /Btn /T (member) /V /Yes /AS /Yes /AP << /N << /Yes 4 0 R /Off 4 0 R >> >> >>" % shown,
        b"<< %s /Subtype /Widget /FT /Tx /T (empty) >>" % shown,
        b"<< %s /Subtype /Text /T (Tom Reed) /Contents <FEFF0057006100720075006D003F00204E2D6587> >>" % shown,
        b"<< %s /Subtype /FreeText /Contents (Urgent) >>" % shown,
        b"<< %s /Subtype /Link /Contents (a link) >>" % shown,
        b"<< %s /Subtype /Text /T (Tom Reed) /Contents (a hidden comment) /F 2 >>" % shown,
        b"<< %s /Subtype /Widget /FT /Tx /T (state) /V (hidden) /F 6 >>" % shown,
    )
    names = b" ".join(b"%d 0 R" % number for number in range(6, 14))
    data = hostile_archives.pdf(
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R 8 0 R 13 0 R] >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R "
        b"/Annots [" + names + b"] >>",
        hostile_archives.stream(at(50, 750, "Entry form")),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *annotations,
    )
    assert one(tmp_path / "d", "a.pdf", data).text == (
        "Entry form\n\nFamily name: Calloway\nmember: Yes\n\nComment (Tom Reed): Warum? 中文\n\nUrgent\n"
    )


@pytest.mark.usefixtures("without_ocr")
def test_a_scan_with_a_comment_is_told_as_a_scan_where_pictures_are_not_read(tmp_path: Path) -> None:
    data = hostile_archives.page(hostile_archives.stream(b"q 400 0 0 400 50 50 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q"))
    note = b"<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /T (Bo) /Contents (ask Tom) >>"
    (tmp_path / "a.pdf").write_bytes(data.replace(b"/MediaBox", b"/Annots [%s] /MediaBox" % note))
    result = index_documents(tmp_path / "c", IndexRequest(paths=(str(tmp_path / "a.pdf"),)), SETTINGS)
    assert result.counts["added"] == 1 and result.skipped == {ocr.SCANNED: 1}
    (row,) = live_documents(tmp_path / "c", read_manifest(tmp_path / "c"), ["metadata"]).to_pylist()
    assert '"pages_without_text": 1' in row["metadata"]


def test_a_page_of_a_pdf_that_is_damaged_is_told_with_the_file(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "d", tmp_path / "c"
    folder.mkdir()
    data = hostile_archives.pages("Ines Calloway rowed.", "Tom Reed waited.")
    (folder / "a.pdf").write_bytes(data.replace(b"/Count 2", b"/Count 3"))
    result = index_documents(corpus, IndexRequest(paths=(str(folder),)), SETTINGS)
    assert result.counts["added"] == 1 and result.skipped == {"some pages are damaged": 1}
    (row,) = live_documents(corpus, read_manifest(corpus), ["metadata"]).to_pylist()
    assert '"pages_not_read": [3]' in row["metadata"]


def test_sheets_are_tables(tmp_path: Path) -> None:
    import openpyxl

    book, out = openpyxl.Workbook(), io.BytesIO()
    book.active.title = "Catch"
    for row in (
        ["name", "kg", "day"],
        [],
        ["cod", 3.0, datetime.datetime(2024, 1, 2)],
        ["a|b\nc", 2.5, True],
        [None, None, "late"],
    ):
        book.active.append(row)
    book.create_sheet("Empty")
    book.create_sheet("Second").append(["only"])
    book.save(out)
    document = one(tmp_path / "d", "catch.xlsx", out.getvalue())
    assert document.text == (
        "## Catch\n\n│ name │ kg │ day │\n│ cod │ 3 │ 2024-01-02 │\n│ a|b c │ 2.5 │ TRUE │\n│  │  │ late │\n\n"
        "## Second\n\n| only |\n"
    )
    at = document.text.index("2.5")
    assert place_of(document, at, at + 3) == "Catch!B4"
    assert place_of(document, document.text.index("│ cod"), document.text.index("TRUE")) == "Catch!A3:C4"


def test_slides_are_marked_and_give_a_title(tmp_path: Path) -> None:
    import pptx

    deck, out = pptx.Presentation(), io.BytesIO()
    for words in ("Harbour budget", "Second"):
        deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = words
    deck.save(out)
    document = one(tmp_path / "d", "deck.pptx", out.getvalue())
    assert document.text == "## Harbour budget\n\n## Second\n"
    assert place_of(document, 20, 24) == "slide 2"
    assert document.title == "Harbour budget"


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        '<dc:title>The Light</dc:title></metadata><manifest><item id="b" href="b.xhtml"/><item id="a" href="a.xhtml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    chapters = {
        f"{name}.xhtml": f"<!DOCTYPE html><html><body><h1>Chapter {name}</h1><p>Ines rowed.</p></body></html>"
        for name in "ab"
    }
    document = one(tmp_path / "d", "light.epub", hostile_archives.packed("epub", opf, **chapters))
    assert document.title == "The Light" and 0 < document.text.index("Chapter a") < document.text.index("Chapter b")


def test_a_docx_cannot_bring_in_a_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("outside-0f8e1c")
    drawing = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:v="urn:schemas-microsoft-com:vml" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:body><w:p><w:r><w:t>kept</w:t></w:r>'
        '<w:r><w:pict><v:shape><v:imagedata r:link="rId7" r:id="rId7"/></v:shape></w:pict></w:r></w:p></w:body></w:document>'
    )
    links = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId7" TargetMode="External" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="{}"/></Relationships>'
    )
    for target in (f"file://{tmp_path}/secret.txt", f"{tmp_path}/secret.txt", "http://127.0.0.1:9/x.png"):
        data = hostile_archives.packed("docx", drawing, **{"word/_rels/document.xml.rels": links.format(target)})
        try:
            pieces = parsers.parse(data, "docx")
        except decode.ReadError:
            continue
        assert "outside-0f8e1c" not in pieces[0].text and "b3V0c2lkZS0wZjhlMWM" not in pieces[0].text


def test_large_tables_are_parsed_apart_with_the_same_result(tmp_path: Path) -> None:
    data = b"id,text,kind\n" + b"".join(
        b"%d,%s,fish\n" % (number, b"The light was burning. " * 20) for number in range(9000)
    )
    assert len(data) > parsers.LARGE
    (tmp_path / "rows.csv").write_bytes(data)
    (tmp_path / "few.csv").write_bytes(data[: data.index(b"\n100,") + 1])
    large, few = find([str(tmp_path)], {}, SETTINGS).files[::-1]
    there = list(load(large, SETTINGS))
    assert len(there) == 9000
    assert [(one.text, one.title[-3:], one.metadata) for one in there[:100]] == [
        (one.text, one.title[-3:], one.metadata) for one in load(few, SETTINGS)
    ]


def test_a_file_is_parsed_again_only_when_its_bytes_change(tmp_path: Path) -> None:
    corpus, folder = tmp_path / "c", tmp_path / "in"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(hostile_archives.pages("Ines Calloway rowed to the Narrows.", "Tom Reed waited."))
    request = IndexRequest(paths=(str(folder),))
    first = index_documents(corpus, request, SETTINGS)
    parsers.close()
    assert first.counts["added"] == 1 and not first.errors
    again = index_documents(corpus, request, SETTINGS)
    assert again.counts["unchanged"] == 1 and parsers._child is None, "nothing had to be parsed"
    (unit,) = tables.open_snapshot(corpus).rows("text_units", columns=["text", "char_start", "char_end"]).to_pylist()
    (row,) = live_documents(corpus, read_manifest(corpus), ["text", "metadata"]).to_pylist()
    assert row["text"][unit["char_start"] : unit["char_end"]] == unit["text"] and "Tom Reed" in unit["text"]
    assert '"parser": "pypdfium2' in row["metadata"]
    (folder / "a.pdf").write_bytes(hostile_archives.pages("Ines Calloway stayed."))
    assert index_documents(corpus, request, SETTINGS).counts["changed"] == 1


# ---- quotas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "calls"),
    [({"max_files": 4}, [4, 4, 2]), ({"max_bytes": 250}, [3, 3, 3, 1]), ({"max_text_units": 5}, [5, 5])],
)
def test_one_call_takes_so_much_and_the_next_goes_on(tmp_path: Path, limit: dict[str, int], calls: list[int]) -> None:
    corpus, folder = tmp_path / "c", tmp_path / "in"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.md").write_text(f"Text {number} on the light at Skerrow.".ljust(100))
    settings = Settings(home=tmp_path, **limit)
    (name,) = limit
    added = []
    while True:
        result = index_documents(corpus, IndexRequest(paths=(str(folder),)), settings)
        added.append(result.counts["added"])
        if not result.errors:
            break
        (error,) = result.errors
        assert error["path"] == f"in/{sum(added)}.md" and f"one call takes {name} = {limit[name]}" in error["reason"]
        assert f"raise {name} in the settings" in error["reason"]
    assert added == calls and result.counts["documents_total"] == 10
    whole = index_documents(tmp_path / "whole", IndexRequest(paths=(str(folder),)), SETTINGS)
    assert whole.counts["text_units"] == result.counts["text_units"]


def test_what_is_left_for_the_next_call_is_not_gone(tmp_path: Path) -> None:
    corpus, folder = tmp_path / "c", tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.md").write_text(f"Text {number}.")
    index_documents(corpus, IndexRequest(paths=(str(folder),)), SETTINGS)
    for number in range(6):
        (folder / f"{number}.md").write_text(f"Text {number} edited.")
    os.unlink(folder / "5.md")
    result = index_documents(
        corpus, IndexRequest(paths=(str(folder),)), Settings(home=tmp_path, max_files=2, chunk_size=400)
    )
    assert {name: result.counts[name] for name in ("changed", "removed", "documents_total")} == {
        "changed": 2,
        "removed": 1,
        "documents_total": 5,
    }
    texts = sorted(row["text"] for row in tables.open_snapshot(corpus).rows("text_units", columns=["text"]).to_pylist())
    assert texts == ["Text 0 edited.", "Text 1 edited.", "Text 2.", "Text 3.", "Text 4."]


def odt_list(tmp_path: Path, body: str, levels: str = "") -> str:
    """The text of lists in the short form `<list>`, `<item>`, `<p>`; style L1 has `levels`, else numbers and bullets."""
    level = '<text:list-level-style-{} text:level="{}" style:num-format="1"{}/>'
    levels = levels or level.format("number", 1, "") + level.format("bullet", 2, "")
    for short in ("list", "item", "p"):
        tag = "text:list-item" if short == "item" else f"text:{short}"
        body = body.replace(f"<{short}>", f"<{tag}>").replace(f"<{short} ", f"<{tag} ").replace(f"</{short}>", f"</{tag}>")
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "style")
    )
    content = (
        f"<office:document-content {names}><office:automatic-styles>"
        f'<text:list-style style:name="L1">{levels}</text:list-style>'
        '<text:list-style style:name="L2"><text:list-level-style-number text:level="1" style:num-format=""/></text:list-style>'
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as parts:
        parts.writestr("content.xml", content)
    return one(tmp_path, "a.odt", out.getvalue()).text


def test_lists_of_odt_have_their_numbers(tmp_path: Path) -> None:
    """Numbers go on in a list that continues; bullets and styles without a format have none."""
    text = odt_list(
        tmp_path,
        '<list text:style-name="L1"><item><p>Pay.</p></item><item><p>Sign.</p><p>In ink.</p>'
        "<list><item><p>Blue.</p></item></list></item></list><p>Then:</p>"
        '<list text:continue-numbering="true" text:style-name="L1"><item><p>Swim.</p></item></list>'
        '<list text:style-name="L1"><item><p>Rest.</p></item></list>'
        '<list text:style-name="L2"><item><p>No glass.</p></item></list>',
    )
    assert text == "1. Pay.\n2. Sign.\n   In ink.\n  - Blue.\n\nThen:\n\n3. Swim.\n\n1. Rest.\n\n- No glass.\n"
