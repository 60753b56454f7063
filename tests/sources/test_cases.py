"""Files of the kinds that people bring, each with what a reader of it must find: the shared cases, and our own."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import random
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from compressed_rtf import compress

from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.cards import cards
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.html import readable
from graphrag_mcp.sources.letter import without_quotes
from graphrag_mcp.sources.mail import eml
from graphrag_mcp.sources.piece import MOST_BLANK, grid
from graphrag_mcp.sources.read import load
from graphrag_mcp.sources.rtf import rtf
from graphrag_mcp.sources.walk import find
from tests.support import hostile_archives, ole
from tests.support.hostile_archives import sheet, text_cell
from tests.support.workload import calls, ends, linear

SHARED = Path(__file__).parents[3] / "shared/data/cases"
SETTINGS = Settings(home=Path("unused"))

# file -> what its text, titles and metadata hold, and (behind "!") what they do not.
CASES: dict[str, list[str]] = {
    "eml/german-qp.eml": ["Kündigung des Lagers in Görlitz", "das Lager in Görlitz wird", "Lena Brück wrote to Oskar Wilde", "2024-03-04", "!=C3"],
    "eml/bridge-base64.eml": ["Budget for the Halloway bridge", "418,000 pounds", "costs.csv, plan.pdf", "cost: 210000", "!VGhl"],
    "mailkin/takeout.mbox": ["Roof of the chapel", "Möller & Söhne", "Keys", "Aurélie Béranger", "!RGll"],
    "mailkin/standup.vtt": ["Ingrid Halvorsen: We lost the Tresco pump station on Friday night.", "Peter O'Dowd: The relay from Brandt & Co", "!-->", "!<v"],
    "docx/lease.docx": ["Field of Fieldston", "Comment (Bettina Kohl): The insurer Harcastle", "ZX-7741", "Prepared by Osman Yildiz", "1250 euros", "!900"],
    "docx/only-note.docx": ["Farrow ledger of 1911"],
    "docxpipe/table.docx": ["See Figure 12 for Bea Holt.", "│ Item │ A | B │ Note │", "│  │ 30 │ third │"],
    "xlsx/progress.xlsx": ["=SUM(B4:B6)", "Comment (Ana): Lindqvist is on leave", "7.5%", "1,234,567.50 €", "2026-01-05", "Hidden costs (hidden sheet)"],
    "html/page.html": ["│  │ Adult │ Child │", "│  │ 60 € │ 30 € │", "Map of the Kvarken strait", "Agneta Falk", "!SCRIPTLEAK", "!Navlink", "!Buttontext"],
    "csv/sep.csv": ["Ort: Gera\nLeiter: Ines Kolb"],
    "csv/preamble.csv": ["Region: North\nManager: Ida Berg", "Sales report 2024"],
    "csv/pipe-desc.csv": ["Pump A feeds, cools, and drains; tanks; lines; valves", "Wanda Roy"],
    "csv/german.csv": ["Kunde: Böhm; Söhne", "Ärzte GmbH"],
    "csv/utf16.csv": ["Name: Zoë Ferrari"],
    "ipynb/study.ipynb": ["ValueError: soil sample 19 is missing", "Verdict: reject Lot 44", "Kessel", "!Figure size"],
    "enc/cp1250.txt": ["Jiří Dvořák"], "enc/cp1251.txt": ["Сергей Громов"], "enc/cp1252.txt": ["Møller’s”"], "enc/cp1253.txt": ["Νίκος Παπάς"],
    "enc/cp1255.txt": ["דוד לוי"], "enc/cp1256.txt": ["أحمد منصور"], "enc/euckr.txt": ["김철수"], "enc/gbk.txt": ["王建国"], "enc/sjis.txt": ["佐藤健一"],
    "enc/tis620.txt": ["สมชาย"], "enc/mixed.txt": ["Grüße von Günther Förster", "1 lines of cp1252"], "enc/utf16le-nobom.txt": ["Сергей Громов"],
    "enc/cp437.txt": ["Die Größe der Tür: 3 Fuß. Käthe Jäger übergab sie."], "enc/macroman.txt": ["Le café de René à Besançon, où Éloïse naquit."],
    "fm/double.md": ["Minutes of the Tern Society\n", "2024-05-06"], "fm/bomfm.md": ["With BOM\n"], "fm/tabs.md": ["Tabbed\n"], "fm/unclosed.md": ["Never closed\n"],
    "unsup/deed.rtf": ["The deed of Ronan Pike."], "unsup/old.doc": ["ERROR it is damaged"], "unsup/sheet.ods": ["ERROR it is damaged"],
}  # fmt: skip


def said(path: Path) -> str:
    """Titles, texts and metadata of a file, or `ERROR reason`."""
    (file,) = find([str(path)], {}, SETTINGS).files
    try:
        found = list(load(file, SETTINGS, not_read := []))
    except ReadError as error:
        return f"ERROR {error}"
    parts = [
        "\n".join(
            [one.title, one.text, str(one.metadata), *(f"at {name}" for _, name in one.places)]
        )
        for one in found
    ]
    return "\n".join([*parts, *(f"NOT READ {one.name}: {one.reason}" for one in not_read)])


def wrong(text: str, wanted: list[str]) -> list[str]:
    return [
        one
        for one in wanted
        if (one[1:] in text) == one.startswith("!") and (one.startswith("!") or one not in text)
    ]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the evaluation data is not beside the checkout")
def test_all_shared_cases_are_read_right() -> None:
    found = {name: wrong(said(SHARED / name), wanted) for name, wanted in CASES.items()}
    assert {name: one for name, one in found.items() if one} == {}


# ---- our own, which are read everywhere -------------------------------------------------------------

REPLY = """From: Oskar Wilde <oskar@example.org>
To: Lena Holt <lena@example.org>
Subject: Re: The pump
Date: Tue, 05 Mar 2024 00:30:00 +0100
Message-ID: <b@x>
In-Reply-To: <a@x>
Content-Type: text/plain; charset="iso-2022-jp"
Content-Transfer-Encoding: 7bit

The pump is sold.

On Mon, 4 Mar 2024, Lena Holt wrote:
> Is the Kestrel pump still ours?
"""
RTF = rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator x;}Gr\'fc\'dfe an \u29579?\u24314? Holt.\par\trowd Item\cell Price\cell\row\trowd Steel\cell 210\cell\row\pard End.\par}"
ICS = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:7\nSUMMARY:Launch of\n  the ferry\nDTSTART:20240506T090000Z\nDTEND;TZID=Europe/Brussels:20240506T113000\nLOCATION:Ostend\\, quay 4\nATTENDEE;CN=Ana Holm:mailto:ana@x.org\nEND:VEVENT\nEND:VCALENDAR\n"
VCF = "BEGIN:VCARD\nVERSION:2.1\nFN;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:J=C3=B6rg Kolb\nORG:Brandt;Pumps\nEND:VCARD\n"
SRT = "1\n00:00:01,000 --> 00:00:02,000\n<i>ANA:</i> We lost\n\n2\n00:00:02,000 --> 00:00:03,000\nthe pump.\n"
ODT = (
    '<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:dc="d"><office:body><office:text>'
    '<text:h text:outline-level="1">Lease</text:h><text:p>Rent is<text:s text:c="2"/>due<office:annotation><dc:creator>Ana</dc:creator>'
    "<text:p>ask Tom</text:p></office:annotation>.</text:p><table:table><table:table-row><table:table-cell><text:p>Item</text:p></table:table-cell>"
    "<table:table-cell><text:p>Cost</text:p></table:table-cell></table:table-row></table:table></office:text></office:body></office:document-content>"
)


def packed(**parts: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


ODF = 'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="g" xmlns:presentation="p" xmlns:dc="d"'
ODS = (
    f"<office:document-content {ODF}><office:body><office:spreadsheet>"
    '<table:table table:name="Berths"><table:table-row><table:table-cell><text:p>Berth</text:p></table:table-cell>'
    '<table:table-cell table:number-columns-repeated="2"><text:p>Depth</text:p></table:table-cell></table:table-row>'
    '<table:table-row table:number-rows-repeated="2"/><table:table-row><table:table-cell><text:p>North quay</text:p></table:table-cell>'
    '<table:table-cell office:value-type="float" office:value="8.4"><text:p>8.4 m</text:p></table:table-cell></table:table-row></table:table>'
    "</office:spreadsheet></office:body></office:document-content>"
)
ODP = (
    f"<office:document-content {ODF}><office:body><office:presentation>"
    '<draw:page draw:name="one"><draw:frame><draw:text-box><text:p>Harbour plan</text:p></draw:text-box></draw:frame></draw:page>'
    '<draw:page draw:name="two"><draw:frame><draw:text-box><text:p>The dredger Marigold is sold</text:p></draw:text-box></draw:frame>'
    "<presentation:notes><draw:frame><draw:text-box><text:p>Ask Ruth Behrens</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>"
    "</office:presentation></office:body></office:document-content>"
)
MHTML = (
    "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/ferry\nSubject: =?utf-8?Q?F=C3=A4hre?=\nMIME-Version: 1.0\n"
    'Content-Type: multipart/related; type="text/html"; boundary="b"\n\n--b\nContent-Type: text/html; charset=utf-8\n'
    "Content-Transfer-Encoding: quoted-printable\n\n<html><head><title>F=C3=A4hre</title></head><body><nav>Menu</nav>"
    "<main><p>Die F=C3=A4hre f=C3=A4hrt ab M=C3=A4rz nach Borkum.</p></main></body></html>\n\n"
    "--b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n"
)
OPF = (
    '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Light</dc:title>'
    '<dc:creator>Ana Holm</dc:creator></metadata><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
)
CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/c.opf"/></rootfiles></container>'
MSG = ole.msg(
    {"costs.csv": b"item,cost\nengine,99000\n"},
    p0037="Offer for the Skua", p0C1A="Jörg Vos", p5D01="joerg@x.org", p0E04="Mara Lindt; Tom Reed", p1035="<o1@x>",
    p1000="The pilot boat costs 418,000 euros.\r\n",
    p007D="From: Jörg Vos <joerg@x.org>\nDate: Mon, 04 Mar 2024 09:15:00 +0100\n",
)  # fmt: skip
FORWARDED = ole.msg(
    {},
    ole.mail_tree(950, p0037="合約", p0C1A="Holt, Lena (Sales)", p5D01="lena.holt@x.org", p1000="合約金額為三十萬元。\r\n"),
    1251, p0037="Договор", p0C1A="'Иван Петров'", p0E04="Reed, Tom; Acme, Inc.\0", p1013="<p>Цена &mdash; 5 млн.</p>",
)  # fmt: skip
# bodies of HTML: UTF-8 whatever the code pages say; else the code page of bodies, not that of the message
BODIES = {
    f"body.{name}.msg": (
        ole.compound({
            "__properties_version1.0": bytes(32) + b"".join(struct.pack("<HHIII", 3, tag, 6, page, 0) for tag, page in pages),
            "__substg1.0_10130102": "<p>Größe: 5 млн.</p>".encode(name, "ignore"),
        }),
        [said],
    )
    for name, pages, said in (
        ("utf-8", [(0x3FFD, 1252), (0x3FDE, 1252)], "Größe: 5 млн."),
        ("cp1251", [(0x3FFD, 1252), (0x3FDE, 1251)], "Gre: 5 млн."),
    )
}  # fmt: skip
XLS = ole.xls(
    {164: '0.0" km"'},
    {
        "Costs": {(4, 1): "Item", (4, 2): "Share", (4, 3): "Due", (6, 1): "Kräne", (6, 2): (0.075, 10), (6, 3): (45000.0, 14), (7, 2): (12.25, 164)},
        "Old": {(0, 0): "Boat"}, "Empty": {},
    },
    hidden="Old",
)  # fmt: skip


NAMES = f'{ODF} xmlns:svg="s" xmlns:x="x" xmlns:style="y"'


def odf(kind: str, body: str, styles: str = "", end: str = "</office:document-content>") -> bytes:
    """An OpenDocument file with a chart in it. `end`: of the chart."""
    chart = "<table:table><table:table-row><table:table-cell><text:p>East</text:p></table:table-cell><table:table-cell/></table:table-row>"
    chart = f'{chart}<table:table-row><table:table-cell/><table:table-cell><text:p>19.2</text:p></table:table-cell></table:table-row></table:table>'
    return packed(**{
        "content.xml": f"<office:document-content {NAMES}><office:styles>{styles}</office:styles><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        "Object 1/content.xml": f"<office:document-content {NAMES}><text:p>Sales by region</text:p>{chart}{end}",
    })  # fmt: skip


CHART = '<draw:frame><draw:object x:href="./Object 1"/></draw:frame>'
SHIP = '<draw:frame><draw:image x:href="a.png"/><svg:title>Tern</svg:title><svg:desc>The ship at the quay</svg:desc></draw:frame>'
REMARK = "<office:annotation><dc:creator>Bea Holt</dc:creator><text:p>Too high?</text:p></office:annotation>"
HIDDEN = '<style:style style:name="h"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
LETTER = (
    f"<text:p>The\n  tide <draw:frame><draw:text-box><text:p>Box one.</text:p><text:p>Box two.</text:p></draw:text-box></draw:frame> rose.</text:p>{SHIP}"
    "<text:p>漢<text:ruby><text:ruby-base>字</text:ruby-base><text:ruby-text>じ</text:ruby-text></text:ruby>です。</text:p>"
    f"<text:p>Sales: {CHART}</text:p><text:list><text:list-item><text:p>First</text:p><table:table><table:table-row><table:table-cell><text:p>in list</text:p>"
    "<table:table><table:table-row><table:table-cell><text:p>inner</text:p></table:table-cell></table:table-row></table:table></table:table-cell></table:table-row></table:table></text:list-item></text:list>"
)
GRID = "<table:table><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell></table:table-row><table:table-row><table:table-cell><text:p>B</text:p></table:table-cell></table:table-row></table:table>"
BOXES = (
    f'<text:p>Tide<draw:frame><draw:text-box>{GRID}</draw:text-box></draw:frame> rose<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>In May.</text:p></text:note-body></text:note>.</text:p>'
    '<text:list><text:list-item><text:h text:outline-level="2">Scope</text:h></text:list-item></text:list>'
    '<text:p>End<office:annotation><text:p>Ask<text:s/>Tom<text:line-break/>now</text:p><text:list><text:list-item><text:p>one</text:p></text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list></office:annotation>.</text:p>'
)
VALUES = (
    f'<table:table table:name="S"><table:shapes>{CHART}</table:shapes><table:table-row><table:table-cell><text:p>A</text:p></table:table-cell><table:table-cell>{REMARK}<text:p>5</text:p>{SHIP}</table:table-cell></table:table-row>'
    '<table:table-row><table:table-cell office:value="4"/><table:table-cell table:formula="of:=SUM([.A2:.A3])"/></table:table-row>'
    '<table:table-row><table:table-cell office:date-value="2024-05-03"/><table:table-cell table:formula="of:=[.A2]*2" office:value="8"/></table:table-row></table:table>'
)
SLIDES = (
    '<presentation:footer-decl presentation:name="f">Nordfisch, internal</presentation:footer-decl>'
    f'<draw:page presentation:use-footer-name="f"><draw:frame><draw:text-box><text:p>Open</text:p></draw:text-box></draw:frame>{REMARK}{SHIP}</draw:page>'
    f'<draw:page draw:style-name="h" presentation:use-footer-name="f">{CHART}</draw:page>'
)
BOOK = '<header><h1>The Storm</h1></header><p>It rose<a href="#n">1</a>.</p><aside id="n"><p>Measured at Emden.</p></aside><footer>End of part one.</footer><nav><a href="b">Next chapter</a></nav>'
NOTES_RTF = (
    rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\info{\title Deed}{\subject Other}{\author Bea Holt}}{\header Nordfisch\par}The dredger{\footnote {\super\chftn} Built in 1969.} is"
    rb" {\deleted 99 }sold{\*\atnauthor Tom}{\*\annotation Too high?} today.\par\sect{\header Nordfisch\par}{\pict\bin4 }}\par}{\sp{\sn wzName}{\sv x}}"
    rb"\trowd\cellx1\cellx2\pard\intbl {Left {in1\nestcell in2\nestcell{\*\nesttableprops\trowd\nestrow}}\cell Right\cell}\pard{\trowd\cellx1\cellx2\row}\pard\intbl {Under\cell it\cell}\pard\intbl{\trowd\cellx1\cellx2\row}\pard End.\par}"
)
THIRD = '{"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "code", "language": "julia", "input": "x", "outputs": [{"output_type": "pyerr", "ename": "NameError", "evalue": "x is missing"}, {"output_type": "pyout", "latex": "$a$", "text": "b"}, {"output_type": "pyout", "html": "<table><tr><td>9<td>8</table>", "text": "t"}]}]}]}'
MIXED = "<p>The <b><i>Tern</i></b>, a ship, sank near <place ref='x1'>Emden<lb n='3'/>harbour</place>.</p><q><k>one</k></q>"


JP = "横浜港の防波堤は三百メートルです。\n"
RAW_JP = b"From: y@x.jp\nSubject: " + "見積り".encode("iso2022_jp") + b"\nContent-Type: text/plain; charset=x-unknown\n\n" + JP.encode("iso2022_jp")
INNER = base64.encodebytes(b"From: Tom Reed <tom@x.org>\nSubject: Old offer\n\nThe crane costs 99,000 euros.\n")
BASE64_MAIL = b'From: a@x.org\nSubject: Fwd\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n' + INNER + b"--b--\n"
def quoted_mail(inner: bytes) -> bytes:
    """A mail with a mail in it that is labelled as quoted-printable."""
    head = b'From: a@x.org\nSubject: Fwd\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: message/rfc822\n'
    return head + b"Content-Transfer-Encoding: quoted-printable\n\n" + inner + b"\n--b--\n"


QP_INNER = 'From: Tom Reed <tom@x.org>\nSubject: Old offer\nContent-Type: text/plain; charset="utf-8"\n\nDer Kran in Köln kostet 99,000 euros, a=20b.\n'
VOICES = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ana Holm>The relay\n\n00:02.000 --> 00:03.000\n<v Ana Holm>burned out.\n\n00:03.000 --> 00:04.000\n- Who pays?\n- Bea\n\n00:04.000 --> 00:05.000\ndoes.\n"
MILLIONS = {"S": {(0, 0): (12_345_678.0, 164), (0, 1): (-1_500.0, 165)}}


HEAD = "From: Oskar Wilde <oskar@x.org>\nTo: Lena Holt <lena@x.org>\nSubject: Re: The pump\nMessage-ID: <b@x>\nIn-Reply-To: <a@x>\n"
PAGE = "MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n"
_RUN = "<w:r>{}<w:t>{}</w:t></w:r>"
_ABOVE, _BELOW = ('<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>', '<w:rPr><w:vertAlign w:val="subscript"/></w:rPr>')
_SYMBOL = '<w:rPr><w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/></w:rPr>'
_RUNS = [(_SYMBOL, "D"), ("", " of 5 "), (_SYMBOL, "\uf06d"), ("", "m. Revenue 410"), (_ABOVE, "1"), (_ABOVE, "2"), ("", " and H"), (_BELOW, "2"), ("", "O m"), (_ABOVE, "2")]
WORD_RAISED = hostile_archives.packed(
    "docx",
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p>'
    + "".join(_RUN.format(*run) for run in _RUNS) + "</w:p></w:body></w:document>",
)  # fmt: skip
_ITEM = '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def counted(start: int) -> bytes:
    return hostile_archives.packed(
        "docx",
        f"<w:document {_WORD}><w:body>{_ITEM.format('Hull')}{_ITEM.format('Mast')}<w:p><w:r><w:t>Then</w:t></w:r></w:p>{_ITEM.format('Sail')}</w:body></w:document>",
        **{
            "word/numbering.xml": f'<w:numbering {_WORD}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="{start}"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
            "word/_rels/document.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/numbering" Target="numbering.xml"/></Relationships>',
        },
    )  # fmt: skip


_M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def _field(instruction: str, result: str) -> str:
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return f"{mark.format('begin')}{instruction}{mark.format('separate')}{_RUN.format('', result)}{mark.format('end')}"


def _formula(*runs: str) -> str:
    return "".join(f"<m:r><m:t>{run}</m:t></m:r>" for run in runs)


WORD_FORMULAS = hostile_archives.packed(
    "docx",
    f'<w:document xmlns:w="{_W}" xmlns:m="{_M}"><w:body><w:p>{_RUN.format("", "Share ")}<m:oMath><m:f><m:num>{_formula("1")}</m:num>'
    f'<m:den>{_formula("a", "+", "b")}</m:den></m:f><m:sSup><m:e>{_formula("10")}</m:e><m:sup>{_formula("6")}</m:sup></m:sSup></m:oMath></w:p>'
    f'<w:p>{_field("<w:r><w:instrText> IF </w:instrText></w:r>" + _field("", "17"), "25")}{_RUN.format("", " EUR")}</w:p></w:body></w:document>',
)  # fmt: skip
TWO = [(3, "Item", "Cost"), (4, "Tar", "5"), (8, "Name", "Age"), (9, "Ann", "30")]


def _word(body: str, numbering: str = "", styles: str = "") -> bytes:
    more = {"word/numbering.xml": f"<w:numbering {_WORD}>{numbering}</w:numbering>", "word/styles.xml": f"<w:styles {_WORD}>{styles}</w:styles>"}
    return hostile_archives.packed(
        "docx", f'<w:document {_WORD} xmlns:m="{_M}"><w:body>{body}</w:body></w:document>', **more if numbering else {}
    )


def _clause(text: str, level: int, style: str = "") -> str:
    of = f'<w:pStyle w:val="{style}"/>' if style else f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>'
    return f"<w:p><w:pPr>{of}</w:pPr>{_RUN.format('', text)}</w:p>"


_LEVELS = (("decimal", "§ %1", '<w:pStyle w:val="Heading1"/>'), ("decimal", "%1.%2", ""), ("lowerLetter", "%3)", ""))
NUMBERING = '<w:abstractNum w:abstractNumId="0">' + "".join(
    f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>{style}<w:lvlText w:val="{text}"/></w:lvl>'
    for at, (kind, text, style) in enumerate(_LEVELS)
) + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'  # fmt: skip
STYLES = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
CLAUSES = (
    _clause("Scope", 0, "Heading1") + _clause("Hull", 1) + f"<w:p>{_RUN.format('', 'Then')}</w:p>" + _clause("Mast", 1) + _clause("Oak", 2)
    + _clause("Price", 0, "Heading1") + _clause("Sum", 1)
)  # fmt: skip

_OLD = '<w:pPrChange w:id="1" w:author="Ana"><w:pPr{}</w:pPrChange>'
_MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
_BOX = f"<w:txbxContent>{_clause('Sail', 0)}</w:txbxContent>"
CHANGED = (  # earlier properties of two paragraphs, a paragraph that is deleted, a box in two forms
    _clause("Hull", 0).replace("</w:pPr>", _OLD.format("/>") + "</w:pPr>")
    + _clause("Mast", 0).replace("</w:pPr>", _OLD.format('><w:jc w:val="left"/></w:pPr>') + "</w:pPr>", 1)
    + _clause("", 0).replace("</w:pPr>", '<w:rPr><w:del w:id="2" w:author="Ana"/></w:rPr></w:pPr>')
    + f'<w:p><w:r><mc:AlternateContent {_MC}><mc:Choice Requires="wps">{_BOX}</mc:Choice><mc:Fallback>{_BOX}</mc:Fallback></mc:AlternateContent></w:r></w:p>'
    + _clause("Keel", 0)
)  # fmt: skip


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _linked_tar() -> bytes:
    """A tar of a file, two names for it, a link to nothing, a symbolic link, and a file of 3,000 bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target, data in (
            ("in/a.txt", tarfile.REGTYPE, "", b"Sold 42.\n"), ("hard.csv", tarfile.LNKTYPE, "in/a.txt", b""), ("twice.txt", tarfile.LNKTYPE, "hard.csv", b""),
            ("lost.txt", tarfile.LNKTYPE, "b.txt", b""), ("soft.txt", tarfile.SYMTYPE, "in/a.txt", b""), ("last.txt", tarfile.REGTYPE, "", b"The last. " * 300),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _packed(data: bytes, name: bytes = b"") -> bytes:
    """What gzip packs, with this name."""
    packed = gzip.compress(data)
    return packed[:3] + b"\x08" + packed[4:10] + name + b"\0" + packed[10:] if name else packed


def _sparse(name: bytes, size: int) -> bytes:
    """The header of a file of so many zeros in a tar, of which none is stored (format of GNU)."""
    header = bytearray(512)
    for at, value in ((0, name), (124, b"%011o\0" % 0), (148, b" " * 8), (156, b"S"), (257, b"ustar  \0"), (483, b"%011o\0" % size)):
        header[at : at + len(value)] = value
    header[148:155] = b"%06o\0" % sum(header)
    return bytes(header)


def _row(number: int, *cells: str | int) -> str:
    return f'<row r="{number}">' + "".join(
        f'<c r="{column}{number}"><v>{cell}</v></c>' if isinstance(cell, int) else text_cell(f"{column}{number}", cell)
        for column, cell in zip("ABCD", cells, strict=False)
    ) + "</row>"  # fmt: skip


LONG_SHEET = sheet(
    _row(1, "City", "People") + "".join(_row(row, f"Town {row}", row) for row in range(2, 250)) + _row(260, "River", "Length") + _row(261, "Aare", 9)
)
LINKED_SHEET = hostile_archives.packed(
    "xlsx",
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
    f'<sheetData>{_row(1, "Site")}{_row(2, "Portal")}{_row(3, "Mill", "Oak")}{_row(4, "Pier")}</sheetData><hyperlinks><hyperlink ref="A2" r:id="rId1"/><hyperlink ref="A3:A1048576" r:id="rId1"/></hyperlinks></worksheet>',
    **{"xl/worksheets/_rels/sheet1.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink" Target="https://example.org/p" TargetMode="External"/></Relationships>'},
)  # fmt: skip


def _attribute(tag: int, data: bytes) -> bytes:
    return struct.pack("<BHHI", 2, tag, 6, len(data)) + data + struct.pack("<H", sum(data) % 65_536)


TNEF = struct.pack("<IH", 0x223E9F78, 1) + _attribute(0x9002, bytes(14)) + _attribute(0x8010, "Pläne für Öl.txt\0".encode("cp1252")) + _attribute(0x800F, b"The plan is 42.\n")
LONG_NAME = "Plan of the mill.csv\0".encode("utf-16-le")
TNEF += _attribute(0x9002, bytes(14)) + _attribute(0x8010, b"PLANOF~1.CSV\0") + _attribute(0x9005, struct.pack("<IHHII", 2, 0x1F, 0x3707, 1, len(LONG_NAME)) + LONG_NAME + struct.pack("<HHII", 0x0102, 0x3701, 1, 15) + b"Name,Age\nEva,5\n")


def _winmail(data: bytes, text: bytes = b"") -> bytes:
    """A mail with what Outlook packs, below a text."""
    head = b"Subject: Plan\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n" + text
    return head + b"\n--b\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(data) + b"--b--\n"


def _properties(kind: int, tag: int, value: bytes) -> bytes:
    return struct.pack("<IHHII", 1, kind, tag, 1, len(value)) + value


SIGNED_TNEF = struct.pack("<IH", 0x223E9F78, 1)
BODY_TNEF = SIGNED_TNEF + _attribute(0x9007, struct.pack("<II", 1252, 0)) + _attribute(0x800C, "The crane in Köln is sold. Ask Ana.\0".encode("cp1252"))
INNER_TNEF = SIGNED_TNEF + _attribute(0x8004, b"Old offer\0") + _attribute(0x8005, struct.pack("<7H", 2024, 5, 6, 9, 30, 0, 1)) + _attribute(0x9003, _properties(0x0102, 0x1009, compress(rb"{\rtf1\ansi The dock in K\'f6ln.\par}")) + b"".join(_properties(0x1F, tag, f"{text}\0".encode("utf-16-le"))[4:] for tag, text in ((0x0C1A, "Bo Lind"), (0x0C1F, "/O=X/CN=BO")))) + TNEF[6:]
OUTER_TNEF = SIGNED_TNEF + _attribute(0x9002, bytes(14)) + _attribute(0x8010, b"Old offer\0") + _attribute(0x9005, _properties(0x0D, 0x3701, bytes(16) + INNER_TNEF))


OWN: dict[str, tuple[bytes, list[str]]] = {
    "raw.eml": (RAW_JP, ["# 見積り", JP]),
    "plain.jp.txt": (JP.encode("iso2022_jp"), [JP]),
    "nec.jp.txt": (b"\x1b$BF|K\\\x2d\x218l\x1b(B and \x1b$B\x2d\x6a8l\x1b(B", ["日本①語 and ㈱語"]),
    "sender.eml": (b"From: \x1b$BF|K\\8l\x1b(B <a@b.c>\nSubject: S\n\nHi\n", ["From: 日本語 <a@b.c>"]),
    "emoji.mbox": (b"From a@b.c Mon Jan  1 00:00:00 2020\nSubject: One\n\ngood\n\nFrom a@b.c Mon Jan  1 00:00:00 2020\nSubject: Two\nContent-Type: text/plain; charset=iso-8859-1\n\ncaf\xe9 \x1b$5\n", ["good", "café"]),
    "escapes.txt": (b"\x1b[31mred\x1b[0m \x1b$<5> costs $5\n", ["red", "costs $5"]),
    "inner.eml": (BASE64_MAIL, ["Tom Reed <tom@x.org>", "The crane costs 99,000 euros."]),
    "label.quoted.eml": (quoted_mail(QP_INNER.encode()), ["Tom Reed <tom@x.org>", "Der Kran in Köln kostet 99,000 euros, a=20b."]),
    "voices.vtt": (VOICES.encode(), ["Ana Holm: The relay burned out.\n\nWho pays?\n\nBea does."]),
    "dashes.srt": (b"1\n00:00:01,000 --> 00:00:02,000\nTOM: We lost\n\n2\n00:00:02,000 --> 00:00:03,000\nthe pump.\n- Who pays?\n", ["TOM: We lost the pump.\n\nWho pays?"]),
    "home.srt": (b"1\n00:00:01,000 --> 00:00:02,000\n-Home.\n-Why?\n", ["Home.\n\nWhy?\n"]),
    "aside.srt": (b"1\n00:00:01,000 --> 00:00:02,000\nTOM: The pump\n- the old pump -\nis lost.\n\n2\n00:00:02,000 --> 00:00:03,000\nANA: It is\n\n3\n00:00:03,000 --> 00:00:04,000\n-5 degrees.\n", ["TOM: The pump - the old pump - is lost.\n\nANA: It is -5 degrees.\n"]),
    "rest.vtt": (b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ana>The relay\n\n00:02.000 --> 00:03.000\nburned out.\n\n00:03.000 --> 00:04.000\nWho pays?\n", ["Ana: The relay burned out.\n\nWho pays?\n"]),
    "dialogue.srt": (b"1\n00:00:01,000 --> 00:00:02,000\n-Home.\n-Why?\n\n2\n00:00:03,000 --> 00:00:04,000\nANA: We sold the pump\n- the last one -\nat -5 degrees.\n\n3\n00:00:05,000 --> 00:00:06,000\n- hi\n- hello\n", ["Home.\n\nWhy?\n\nANA: We sold the pump - the last one - at -5 degrees.\n\nhi\n\nhello"]),
    "millions.xls": (ole.xls({164: '0.0,,"M"', 165: "#,##0.0"}, MILLIONS), ["12.3M", "-1,500.0"]),
    "raised.rtf": (rb"{\rtf1 Revenue 410{\super 1} and 10\super 6\nosupersub  m, H{\sub 2}O, 1{\super st}\par}", ["Revenue 410^1 and 10^6 m, H2O, 1st"]),
    "raised.html": (b"<p>Revenue 410<sup>1</sup>, 10<sup>-6</sup>, 1<sup>st</sup>, a<sup><a href='#f'>[2]</a></sup> b<sup>3<p>4</p>", ["Revenue 410^1, 10^-6, 1st, a[2] b^3\n\n4\n"]),
    "raised.odt": (odf("text", '<text:p>Revenue 410<text:span text:style-name="T1">1</text:span> m<text:span text:style-name="T2">2</text:span></text:p>', '<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style><style:style style:name="T2"><style:text-properties style:text-position="-33% 58%"/></style:style>'), ["Revenue 410^1 m2\n"]),
    "counted.docx": (counted(1), ["a. Hull\nb. Mast\n\nThen\n\nc. Sail\n"]),
    "from-c.docx": (counted(3), ["c. Hull\nd. Mast\n\nThen\n\ne. Sail\n"]),
    "account.csv": (b"Account:;DE12 3456\nOwner;Ines Kolb\n;;\nDate;Text;Amount\n05.01.2024;Rent;-800,00\n06.01.2024;Pay;2500,00\n", ["Date: 05.01.2024\nText: Rent\nAmount: -800,00\n", "'preamble': ['Account: DE12 3456', 'Owner Ines Kolb']"]),
    "corner.csv": (b";Q1;Q2\nNorth;10;20\nSouth;11;22\n", ["column 1: North\nQ1: 10\nQ2: 20"]),
    "raised.docx": (WORD_RAISED, ["Δ of 5 μm. Revenue 410^12 and H2O m^2\n"]),
    "formulas.docx": (WORD_FORMULAS, ["Share 1/(a+b)10^6\n", "\n25 EUR\n"]),
    "formulas.html": (b"<p>Share <math><mfrac><mn>1</mn><mrow><mi>a</mi><mo>&plus;</mo><mi>b</mi></mrow></mfrac></math> of <math><msup><mn>10</mn><mn>6</mn></msup></math>, <math><mi>x<mn>2</math>", ["Share 1/(a+b) of 10^6, x2"]),
    "formula-words.html": (b"<p>In <math><mtext>cases where <b>x</b> is big</mtext><mo>=</mo><msub><mi>a</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub><msubsup><mi>b</mi><mi>i</mi><mn>2</mn></msubsup></math></p>", ["In cases where x is big=a(i+1)bi^2\n"]),
    "formula-accent.docx": (_word('<w:p><m:oMath><m:acc><m:accPr><m:chr m:val="\u0304"/></m:accPr><m:e><m:r><m:t>y</m:t></m:r></m:e></m:acc><m:acc><m:e><m:r><m:t>x</m:t></m:r></m:e></m:acc><m:sSub><m:e><m:r><m:t>z</m:t></m:r></m:e><m:sub><m:r><m:t>i+1</m:t></m:r></m:sub></m:sSub></m:oMath></w:p>'), ["y\u0304x\u0302z(i+1)\n"]),
    "formula-sum.docx": (_word('<w:p><m:oMath><m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e><m:r><m:t>a+b</m:t></m:r></m:e></m:d></m:e></m:nary></m:oMath></w:p>'), ["∑i=1^n [a+b]\n"]),
    "signs.docx": (_word(f'<w:p>{_RUN.format("", "Paid ")}<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>{_RUN.format("", " in ")}<w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>'), ["Paid ✓ in 東京\n"]),
    "clauses.docx": (_word(CLAUSES, NUMBERING, STYLES), ["§ 1 Scope\n\n1.1 Hull\n\nThen\n\n1.2 Mast\n  a) Oak\n\n§ 2 Price\n\n2.1 Sum\n"]),
    "changed-list.docx": (_word(CHANGED, NUMBERING, STYLES), ["§ 1 Hull\n§ 2 Mast\n\n§ 3 Sail\n\n§ 4 Keel\n"]),
    "template.dotx": (_word(f'<w:p>{_RUN.format("", "Form 7")}</w:p>'), ["Form 7\n"]),
    "signs.rtf": (rb"{\rtf1\ansi{\fonttbl{\f0\fcharset0 A;}{\f3\fcharset2 Symbol;}{\f4\fcharset2 Wingdings;}}\f0 Width {\f3 m}m, paid {\f4\'fc} or {\f4\u-3844?}}", ["Width μm, paid ✓ or ✓\n"]),
    "seen.html": (b"<p>Sales</p><svg><title>No</title><text x=1>North <tspan>42</tspan></text></svg><object data=a.pdf><p>Report 7</p></object><noscript>Turn on scripts</noscript>", ["Sales\n\nNorth 42\n\nReport 7\n"]),
    "unseen.svg.html": (b'<p>Sales<svg/> rise</p><svg style="display:none"><text>Gone1</text></svg><svg><title>Gone2</title><!-- <text>Gone3</text> --><defs><text>Gone4</defs><desc>Gone5</desc>Gone6<path style="display:none"/><svg display=none><text>Gone7</text></svg><g display="none"><text>Gone8</text></g><text>Q1</text><text><tspan x=0>North</tspan><tspan x=0>42 H<tspan>2</tspan>O</tspan></text><foreignObject><div>Pump <p>sold</div></foreignObject></svg><div><svg aria-hidden="true"></div>End', ["Sales rise\n\nQ1\nNorth 42 H2O\n\nPump\n\nsold\n\nEnd\n", "!Gone"]),
    "two.csv": (b"Quarter,Sales\nQ1,10\nQ2,20\n\nStaff,Hours\nEva,5\nTom,6\n", ["Quarter: Q2\nSales: 20\n", "Staff: Tom\nHours: 6\n", "#4"]),
    "unknown.xml": (b'<?xml version="1.0" encoding="foo"?><a><b>Price 42</b></a>', ["b: Price 42\n"]),
    "alias.xml": ('<?xml version="1.0" encoding="utf8"?><a><b>Préis 42</b></a>'.encode(), ["b: Préis 42\n"]),
    "a.tgz": (_tar({"notes/a.txt": b"Sold 42.\n", "b.csv": b"Name,Age\nEva,5\n"}), ["Sold 42.\n", "Name: Eva\nAge: 5\n", "#notes/a.txt"]),
    "torn.tgz": (gzip.compress(b"Sold 42.\n" * 99)[:30], ["ERROR it is damaged, or no tgz file"]),
    "outside.tar": (gzip.decompress(_tar({"../x.txt": b"Out.\n", "y.txt": b"In.\n"})), ["In.\n", "leads out of the archive", "!Out."]),
    "sparse.tar": (_sparse(b"holes.txt", 2_000_000_000) + gzip.decompress(_tar({"y.txt": b"In.\n"})), ["In.\n", "with it the archive unpacks to more than 300 MB"]),
    "a.txt.gz": (gzip.compress(b"Sold 42.\n"), ["Sold 42.\n"]),
    "linked.tar": (_linked_tar(), ["#in/a.txt", "#hard.csv/1", "#twice.txt", "NOT READ lost.txt: a link or a device", "NOT READ soft.txt: a link or a device", "The last.", "!cut off"]),
    "cut.tar": (_linked_tar()[:512 * 8], ["Sold 42.\n", "it is damaged or cut off behind soft.txt", "!The last."]),
    "cut.tgz": (gzip.compress(_linked_tar() + random.Random(1).randbytes(9_000))[:4_000], ["Sold 42.\n", "it is damaged or cut off behind"]),
    "cut.txt.gz": (gzip.compress(b"Sold 42.\n" + random.Random(1).randbytes(3_000).hex().encode())[:1_000], ["Sold 42.\n", "NOT READ : it is damaged or cut off; what stands before is read"]),
    "cut-header.tar": (_linked_tar()[:512 * 6 + 99], ["Sold 42.\n", "it is damaged or cut off behind soft.txt"]),
    "no-end.tar": (_linked_tar()[:512 * 6], ["Sold 42.\n", "it is damaged or cut off behind soft.txt"]),
    "rows.csv.gz": (_packed(b"Name,Age\nEva,5\n"), ["#rows.csv/1", "Name: Eva\nAge: 5\n"]),
    "paper.docx.gz": (_packed(_word(f'<w:p>{_RUN.format("", "Form 7")}</w:p>')), ["Form 7\n"]),
    "rows.csv.gz.zip": (packed(**{"in/rows.csv.gz": _packed(b"Name,Age\nEva,5\n")}), ["#in/rows.csv.gz/rows.csv/1"]),
    "named.gz": (_packed(b"Name,Age\nEva,5\n", "Grüße.csv".encode("latin-1")), ["#Grüße.csv/1", "Name: Eva"]),
    "links.xlsx": (LINKED_SHEET, ["| Site |  |\n| [Portal](https://example.org/p) |  |\n| [Mill](https://example.org/p) | Oak |\n| [Pier](https://example.org/p) |  |\n"]),
    "literals.xls": (ole.xls({164: "(000) 000-0000", 165: "#'##0.00", 166: "# ?/?", 167: "000-0000", 168: "# ?/?;(# ?/?)", 169: '0.0;"less"'}, {"S": {(0, 0): (2125551234.0, 164), (0, 1): (1234.5, 165), (0, 2): (2.5, 166), (0, 3): (-5551234.0, 167), (0, 4): (-2.5, 168), (0, 5): (-1.5, 169)}}), ["| 2125551234 | 1234.5 | 2.5 | -5551234 | -2.5 | -1.5 |"]),
    "bars.xls": (ole.xls({164: "0.00\\/\\k\\g", 165: '0.0 "EUR"/"kg"', 166: '00"/"00', 167: '"$"# ?/?" kg"', 168: "# ?/?8", 169: "# ?/?%"}, {"S": {(0, 0): (12.5, 164), (0, 1): (12.5, 165), (0, 2): (2324.0, 166), (0, 3): (-2.5, 167), (0, 4): (0.5, 168), (0, 5): (0.025, 169), (0, 6): (math.inf, 168)}}), ["| 12.50/kg | 12.5 EUR/kg | 2324 | -2.5 | 0.5 | 0.025 | inf |", "S!A1"]),
    "long.xlsx": (LONG_SHEET, ["\n\n| River | Length |\n| Aare | 9 |"]),
    "japan.eml": ("From: 山田太郎 <y@x.jp>\nTo: 佐藤 <s@x.jp>\nSubject: 見積り\nContent-Type: text/plain; charset=us-ascii\n\nHi\n".encode("cp932"), ["From: 山田太郎 <y@x.jp>", "To: 佐藤 <s@x.jp>", "# 見積り"]),
    "boundary.eml": ("From: Jürgen <a@x.org>\nSubject: Grüße aus Köln\nContent-Type: multipart/mixed; boundary=y\n\n--x\n\nHellö wörld\n--x--\n".encode("latin-1"), ["# Grüße aus Köln", "From: Jürgen <a@x.org>", "Hellö wörld"]),
    "wide.eml": ("From: Ana Holm <a@x.org>\nSubject: Kräne\n\nZwei für Köln.\n".encode("utf-16"), ["# Kräne", "Zwei für Köln.", "Ana Holm <a@x.org>"]),
    "wide-mail.txt": ("From: Ana Holm <a@x.org>\nMIME-Version: 1.0\nSubject: Kräne\n\nZwei für Köln.\n".encode("utf-16-le"), ["# Kräne", "Zwei für Köln."]),
    "status.eml": (b"Subject: Failed\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nAction: failed\nDiagnostic-Code: smtp; " + "用户不存在".encode("gbk") + b"\n\n--b--\n", ["Diagnostic-Code: smtp; 用户不存在"]),
    "below.mbox": (b"From a@x.org Mon Mar  4 09:15:00 2024\nFrom: Ana Holm <a@x.org>\nMessage-ID: <1@x>\n\nHow many cranes?\nWhen?\n\nFrom b@x.org Mon Mar  4 11:15:00 2024\nFrom: Bo Lind <b@x.org>\nTo: Ana Holm <a@x.org>\nSubject: Re: Cranes\nIn-Reply-To: <1@x>\n\nOn Mon, Mar 4, 2024 at 9:15 AM Ana Holm <a@x.org> wrote:\n> How many cranes?\nTwo.\n\n> When?\nIn May.\n\n> 50 units: 3 %\n", ["Two.\n\nIn May.\n\n> 50 units: 3 %\n"]),
    "packed.msg": (ole.compound({"__properties_version1.0": bytes(32), "__substg1.0_0037001F": "Offer".encode("utf-16-le"), "__substg1.0_10090102": compress(rb"{\rtf1\ansi The crane in K\'f6ln.\par Ana}")}), ["# Offer\n\nThe crane in Köln.\n\nAna\n"]),
    "winmail.body.eml": (_winmail(BODY_TNEF), ["\nThe crane in Köln is sold. Ask Ana.\n", "!NOT READ"]),
    "winmail.page.eml": (_winmail(SIGNED_TNEF + _attribute(0x9003, _properties(0x0102, 0x1013, b"<p>The mill is <b>let</b>.</p>"))), ["\nThe mill is let.\n", "!NOT READ"]),
    "winmail.both.eml": (_winmail(BODY_TNEF, "The crane in Köln is sold.".encode("latin-1")), ["\nThe crane in Köln is sold. Ask Ana.\n", "!NOT READ"]),
    "winmail.part.eml": (_winmail(BODY_TNEF, "The crane in Köln is sold. Ask Ana. List: x.org".encode("latin-1")), ["\nThe crane in Köln is sold. Ask Ana. List: x.org\n"]),
    "winmail.mail.eml": (_winmail(OUTER_TNEF, b"See it."), ["See it.", "#Old offer\n", "From: Bo Lind\nDate: 2024-05-06 09:30\n", "The dock in Köln.", "#Old offer/Plan of the mill.csv/1", "The plan is 42.", "'attached_to': 'Plan'", "!NOT READ"]),
    "winmail.damaged.eml": (_winmail(b"\0" + BODY_TNEF, b"See it."), ["See it.", "NOT READ winmail.dat: binary"]),
    "winmail.eml": (b"Subject: Plan\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nSee it.\n--b\nContent-Type: application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(TNEF) + b"--b--\n", ["Attachments: Pläne für Öl.txt, Plan of the mill.csv", "Name: Eva\nAge: 5", "See it.", "The plan is 42.\n"]),
    "numbers.html": (b"<ol start=4><li>Oar<li>Rope<li value=9>Tar<li>Sail</ol>", ["4. Oar\n5. Rope\n9. Tar\n10. Sail\n"]),
    "conditions.xls": (ole.xls({164: '[>=1000000]0.0,,"M";[>=1000]0.0,"k";0'}, {"S": {(0, 0): (2_500_000.0, 164), (0, 1): (1500.0, 164), (0, 2): (7.0, 164)}}), ["| 2500000 | 1500 | 7 |"]),
    "blank.xlsx": (sheet('<row r="1">' + text_cell("A1", "Rope") + '<c r="B1" t="str"><f>IF(A2="","",A2)</f><v></v></c><c r="C1"><f>A2+1</f></c></row>'), ["| Rope |  | =A2+1 |"]),
    "east.xls": (ole.xls({57: "0", 27: "0"}, {"S": {(0, 0): (45000.0, 57), (0, 1): (45000.0, 27)}}), ["| 2023-03-15 | 2023-03-15 |"]),
    "two.xlsx": (sheet("".join(f'<row r="{row}">{text_cell(f"B{row}", name)}{text_cell(f"C{row}", value)}</row>' for row, name, value in TWO)), ["## One\n\n| Item | Cost |\n| Tar | 5 |\n\n| Name | Age |\n| Ann | 30 |"]),
    "zero.xls": (ole.xls({164: '0;-0;"-"', 165: '#,##0.00;-#,##0.00;"-"??', 166: ";;;", 167: "#,##0.00"}, {"S": {(0, column): (0.0, 164 + column) for column in range(4)}}), ["| - | - |  | 0.00 |"]),
    "thousands.xls": (ole.xls({164: "0,.0", 165: "#,##0,.0"}, {"S": {(0, 0): (1_234_567.0, 164), (0, 1): (9_876_543.0, 165)}}), ["1234.6", "9,876.5"]),
    "letter.odt": (odf("text", LETTER), ["The tide  rose.\n\nBox one.\n\nBox two.\n\n[image: Tern: The ship at the quay]\n\n漢字です。\n\nSales:\n\nSales by region\n\n| East |  |\n|  | 19.2 |", "- First\n│ in list | inner | │\n"]),
    "boxes.odt": (odf("text", BOXES), ["Tide rose.\n\n| A |\n| B |\n\n- Scope\n\nEnd.\n\nNote 1: In May.\n\nComment: Ask Tom now - one - two\n"]),
    "chart.odt": (odf("text", f"<text:p>The tide.</text:p>{CHART}{SHIP}", end=""), ["The tide.\n\n[image: Tern", "NOT READ Object 1: it is damaged"]),
    "chart.ods": (odf("spreadsheet", VALUES, end=""), ["| A | 5 |", "NOT READ Object 1: it is damaged"]),
    "values.ods": (odf("spreadsheet", VALUES), ["| A | 5 |\n| 4 | =SUM(A2:A3) |\n| 2024-05-03 | 8 |\n\nB1 Comment (Bea Holt): Too high?\n", "at S!B1", "Sales by region", "[image: Tern: The ship"]),
    "slides.odp": (odf("presentation", SLIDES, HIDDEN), ["Open\n\n[image: Tern: The ship at the quay]\n\nComment (Bea Holt): Too high?\n\nNordfisch, internal\n\n(hidden slide)\n\nSales by region\n\n| East |  |\n|  | 19.2 |\n\n{"]),
    "storm.epub": (packed(**{"META-INF/container.xml": CONTAINER, "OEBPS/c.opf": OPF.replace("</dc:creator>", "</dc:creator><dc:creator>Bea Holt</dc:creator><dc:creator>Ana Holm</dc:creator>"), "OEBPS/a.xhtml": BOOK}), ["# The Storm\n", "Measured at Emden.", "End of part one.", "'author': 'Ana Holm, Bea Holt'}", "!Next chapter"]),
    "notes.rtf": (NOTES_RTF, ["The dredger is sold today.\n\n| Left in1, in2; | Right |\n| Under | it |\n\nEnd.\n\nNote 1: Built in 1969.\n\nComment (Tom): Too high?\n\nNordfisch\n", "'author': 'Bea Holt'", "!Other", "!99", "!wz", "!}}"]),
    "unclosed.rtf": (rb"{\rtf1\ansi First words{\footnote Note\par Body two\par Body three.", ["First words\n\nNote 1: Note Body two Body three.\n"]),
    "unended.rtf": (rb"{\rtf1 \pard\intbl A\cell B\cell\pard One\par\pard\intbl C\cell D\cell\pard\par Two\par Three\par}", ["| A | B |\n\nOne\n\n| C | D |\n\nTwo\n\nThree\n"]),
    "loose.rtf": (rb"{\rtf1 \trowd\cellx1\pard a\par b\cell\pard c\cell\row\pard End\par}", ["| a b | c |\n\nEnd\n"]),
    "deleted.rtf": (rb"{\rtf1 {\info{\title in}}Words in it{\deleted x{\footnote gone}}{\v{\*\atnauthor Tom}{\*\annotation gone}} stay{\footnote kept}{\*\annotation too}.\par}", ["\nWords in it stay.\n\nNote 1: kept\n\nComment: too\n", "!in\nWords"]),
    "titled.rtf": (rb"{\rtf1 {\info{\title Annual Review}}REPORT 2024: Annual Review\par It rose.\par}", ["Annual Review\nREPORT 2024", "!: Annual Review\nREPORT"]),
    "titled-lines.rtf": (rb"{\rtf1 {\info{\title Annual Review 2024}}The Annual\par Review 2024\par}", ["Annual Review 2024\nThe Annual\n"]),
    "titled-word.rtf": (rb"{\rtf1 {\info{\title \u24180?\u25253?}}2024\u24180?\u25253?\par Red.\par}", ["年报\n2024年报\n", "!2024年报\n2024"]),
    "tables.rtf": (rb"{\rtf1 \trowd A\cell\row{\header Head\par}\trowd {Ost,\nestcell{\*\nesttableprops\nestrow}}\cell\row{\pict 00}\trowd B\cell\row}", ["| A |\n| Ost,; |\n\n| B |\n\nHead\n"]),
    "third.error.ipynb": (THIRD.encode(), ["```julia\nx", "NameError: x is missing", "$a$", "| 9 | 8 |"]),
    "long.ipynb": (json.dumps({"metadata": {}, "cells": [{"cell_type": "code", "source": "x", "outputs": [{"text": ["a\n"] * 2_000}]}]}).encode(), ["a\na\n… (1,999 characters more)\n```"]),
    "fourth.ipynb": (b'{"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": [{"cell_type": "code", "source": "x <- 1", "outputs": []}]}', ["```R\nx <- 1"]),
    "mixed.xml": (f"<a>{MIXED}</a>".encode(), ["p: The Tern, a ship, sank near Emden harbour. (ref: x1, n: 3)\nk: one\n"]),
    "blocks.xml": (b"<a>Intro<p>One <b>x</b>.</p><p>Two <i>y</i> <b>z</b>.</p> tail</a>", ["a: Intro\np: One x.\np: Two y z.\ntail\n"]),
    "fields.xml": (b"<a><rec>note <name>Ana</name> <age>33</age></rec><body>Intro <p>One <b>x</b>.</p> <p>Two.</p></body><p>The ion H<sub>2</sub><sup>+</sup> reacts.</p></a>", ["rec: note\nname: Ana\nage: 33\nbody: Intro\np: One x.\np: Two.\np: The ion H2+ reacts.\n"]),
    "chat.xml": (b"<a><div>Tom: <b>no</b>,<br/>not\n now<br />Ana: why?</div></a>", ["div: Tom: no,\nnot now\nAna: why?\n"]),
    "null.ipynb": (b'{"nbformat": 4, "metadata": {"language_info": "x", "kernelspec": null}, "cells": [{"cell_type": "code", "language": ["q"], "source": "x", "outputs": []}]}', ["```python\nx\n```", "!nbformat"]),
    "names.zip": (packed(**{"Mxxller.txt": "Words of Tom."}).replace(b"Mxxller", "Müller".encode()), ["Müller.txt"]),
    "names.old.zip": (packed(**{"Mxller.txt": "Words of Tom."}).replace(b"Mxller", "Müller".encode("cp437")), ["Müller.txt"]),
    "reply.eml": (REPLY.encode(), ["The pump is sold.", "Oskar Wilde wrote to Lena Holt.", "2024-03-05T00:30:00+01:00", "'thread': 'a@x'", "!Kestrel", "!wrote:"]),
    "reply.txt": (("MIME-Version: 1.0\n" + REPLY).encode(), ["The pump is sold.", "!Kestrel"]),
    "deed.rtf": (RTF, ["Grüße an 王建 Holt.", "| Item | Price |\n| Steel | 210 |", "End.", "!Arial", "!generator"]),
    "a.ics": (ICS.encode(), ["event: Launch of the ferry", "start: 2024-05-06 09:00 UTC\n", "end: 2024-05-06 11:30 Europe/Brussels\n", "place: Ostend, quay 4", "attendee: Ana Holm <ana@x.org>"]),
    "a.vcf": (VCF.encode(), ["name: Jörg Kolb", "organization: Brandt, Pumps"]),
    "a.srt": (SRT.encode(), ["ANA: We lost the pump.", "!00:00:01,000"]),
    "a.odt": (packed(**{"content.xml": ODT}), ["# Lease", "Rent is  due.", "Comment (Ana): ask Tom", "| Item | Cost |"]),
    "berths.ods": (packed(**{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": ODS}), ["## Berths", "| Berth | Depth | Depth |", "| North quay | 8.4 m |"]),
    "plan.odp": (packed(**{"content.xml": ODP}), ["Harbour plan", "The dredger Marigold is sold", "Ask Ruth Behrens"]),
    "ferry.mhtml": (MHTML.encode(), ["Fähre", "Die Fähre fährt ab März nach Borkum.", "https://example.org/ferry", "!Menu", "!iVBOR"]),
    "light.epub": (packed(**{"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "OEBPS/c.opf": OPF, "OEBPS/a.xhtml": "<html><body><h1>One</h1><p>Ines rowed &amp; sang.</p></body></html>"}), ["The Light", "Ines rowed & sang."]),
    **BODIES,
    "offer.msg": (MSG, ["# Offer for the Skua", "The pilot boat costs 418,000 euros.", "Jörg Vos wrote to Mara Lindt and Tom Reed.", "2024-03-04T09:15:00+01:00", "cost: 99000", "'message_id': 'o1@x'"]),
    "forwarded.msg": (FORWARDED, ["Иван Петров wrote to Reed, Tom and Acme, Inc.", "Цена — 5 млн.", "Attachments: 合約", "From: Lena Holt (Sales) <lena.holt@x.org>", "合約金額為三十萬元。", "'attached_to': 'Договор'"]),
    "costs.xls": (XLS, ["## Costs\n\n| Item | Share | Due |\n| Kräne | 7.50% | 2023-03-15 |\n|  | 12.3 km |  |", "at Costs!B5", "at Costs!B7", "## Old (hidden sheet)", "!Empty"]),
    "surname.eml": (b'From: "Holm, Ana (IT)" <ana.holm@x.org>\nTo: "Acme, Inc." <a@x.org>, "tom@x.org" <tom@x.org>\nCc: "Martin Luther King, Jr." <king@x.org>, "Support, Europe" <support.europe@x.org>, "=?utf-8?Q?M=C3=BCller=2C_Hans?=" <hans.mueller@x.org>, "Lind, Eva Maria" <eva.lind@x.org>, "Berg, Jan M." <jan.berg@x.org>\nSubject: Fwd: x\n\nSee\n\n---\nFrom: c@x.org\nTo: d@x.org\nDate: 1 May 2024\n\nThe dock is closed.\n', ["Ana Holm (IT) wrote to Acme, Inc., tom@x.org, Martin", "To: Acme, Inc. <a@x.org>, tom@x.org\n", "Cc: Martin Luther King, Jr. <king@x.org>, Support, Europe <support.europe@x.org>, Hans Müller <hans.mueller@x.org>, Eva Maria Lind <eva.lind@x.org>, Jan M. Berg <jan.berg@x.org>\n", "The dock is closed."]),
    "lease.doc": (ole.doc("Lease of shed 4\rThe shed is let to Nordfisch for 1,850 €.\r"), ["# Lease of shed 4", "The shed is let to Nordfisch for 1,850 €."]),
    "plan.ppt": (ole.ppt("Harbour plan", "The dredger Marigold is sold"), ["Harbour plan", "The dredger Marigold is sold", "'slides': 2"]),
    "papers.zip": (packed(**{"in/a.md": "# Alpha\n\nWords of Ana.", "b.exe": b"MZ", "id_rsa": "x", "c.eml": REPLY}), ["Words of Ana.", "The pump is sold.", "NOT READ b.exe: binary", "NOT READ id_rsa: looks like a secret"]),
    "coded.md": (b"aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQgdGV4dCBvZiBtYW55IHdvcmRzIDE=\n" * 40, ["ERROR it is mostly base64"]),
    "page.html": (b'<html><head><meta name="author" content="Ana Holm"><meta property="article:published_time" content="2024-05-06"></head><body><nav>Menu</nav><p>The ferry MAX_RETRY_COUNT sails.</p><footer>Imprint</footer></body></html>', ["The ferry MAX_RETRY_COUNT sails.", "Ana Holm", "2024-05-06", "!Menu", "!Imprint"]),
    "layout.html": ('<table><tr><td><a href=a>Home</a><br>Menu</td><td><h2>港の話</h2><p>浚渫船は売却されました。</p><table><tr><td>船</td><td>5</td></tr><tr><td>灯</td><td>7</td></tr></table></td></tr></table>'.encode("shift_jis"), ["Home\nMenu\n\n## 港の話\n\n浚渫船は売却されました。\n\n| 船 | 5 |\n| 灯 | 7 |"]),
    "author.html": (b'<article><h1>Quay</h1><span itemprop="author" itemscope><span itemprop="name">Tom Reed</span></span><p>It is 12 m deep.</p></article>', ["'author': 'Tom Reed'", "It is 12 m deep."]),
    "byline.html": (b'<h1>Quay</h1><p>By <a rel="author" href="/u">Ana Holm</a></p><p>It is 12 m deep.</p><h3>More</h3><ul><li><a href=1>Ferry</a><li><a href=2>Market</a><li><a href=3>Bridge</a></ul>', ["'author': 'Ana Holm'", "# Quay", "!More"]),
    "ports.html": (b'<p>Ports of the bay, and how deep they are.</p><table><tr><th>Port</th><th>Depth</th></tr><tr><td>Ostend</td><td>9 m</td></tr><tr><td colspan=2><h3>South</h3></td></tr><tr><td>Sete</td><td>12 m</td></tr></table><table><tr><td><h3>Model A</h3></td><td>12 EUR</td></tr><tr><td><h3>Model B</h3></td><td>15 EUR</td></tr></table>', ["| Port | Depth |\n| Ostend | 9 m |\n| South |  |\n| Sete | 12 m |\n\n| Model A | 12 EUR |\n| Model B | 15 EUR |"]),
    "bees.html": (b'<h1>Handbook</h1><ul><li><a href=a>Foreword</a></li><li><a href=b>Thanks</a></li><li><a href=c>Errata</a></li></ul><h2>Chapter 1. The hive</h2><ul><li><a href=#a>Queen</a></li><li><a href=#b>Worker</a></li><li><a href=#c>Drone</a></li></ul><h3>The queen bee</h3><p>She lays two thousand eggs a day.</p>', ["# Handbook\n\n## Chapter 1. The hive\n\n### The queen bee\n\nShe lays", "!Drone", "!Errata"]),
    "void.html": (b'<head><link rel="author" href="humans.txt"></head><p>The ferry stops in May.</p><img itemprop="author" src=x><p>The quay is repaired.</p>', ["The ferry stops in May.", "!author"]),
    "unclosed.html": (b'<h1>Quay</h1><p hidden>Unseen</p><p hidden>Unseen<p>It is deep.<div><nav><a href=a>Home</a></nav></div><p>It is <span hidden>un<span>se</span>en</span>long.<div><p hidden>Unseen</div><p>It is old.<p>Berths: <a name=b>one<p>two<p><a href=x>three<p>four<p>five<p>six', ["# Quay\n\nIt is deep.\n\nIt is long.\n\nIt is old.\n\nBerths: one\n\ntwo\n\nthree\n\nfour\n\nfive\n\nsix\n", "!Unseen", "!Home", "!en<"]),
    "behind.html": (b"<html><body><p>One.</p></body></html>\n<!-- end --><p>Two.</p> Three. <html><body>Four.", ["One.\n\nTwo.\n\nThree.\nFour.\n"]),
    "unclosed.around.html": (b'<div role=main><h1>Quay</h1><p>It is deep.</p></div><div><aside><p>Mind the step.</div><p>It is old.</p><footer><ul><li>Imprint</ul></footer>', ["# Quay\n\nIt is deep.\n\nMind the step.\n\nIt is old.\n", "!Imprint"]),
    "facts.eml": (f"{HEAD}\nThe facts:\n\nPump: Kestrel 9\nPrice: 410 crowns\nYear: 2024\n\n| Rope | 88 |\n\nThe 3 conditions of 2024 are:\n> none\n\nOn 4 March 2024 at 9:12,\nLena Holt <lena@x.org> wrote:\n\n> Is it sold?\n\nEnd.\n".encode(), ["The facts:\n\nPump: Kestrel 9\nPrice: 410 crowns\nYear: 2024\n\n| Rope | 88 |\n\nThe 3 conditions of 2024 are:\n> none\n\nEnd.\n", "!sold", "!wrote:"]),
    "contract.eml": (f"{HEAD}{PAGE}<p>It says:</p><blockquote>The rope costs 88 marks.</blockquote><p>So be it.</p><div>On 4 March 2024 at 9:12 Lena Holt wrote:</div><blockquote type=cite><p>Is it sold?</p><table><tr><td>a<td>b</table></blockquote><p>Yes.</p>".encode(), ["It says:\n\nThe rope costs 88 marks.\n\nSo be it.\n\nYes.\n", "!sold", "!| a"]),
    "apple.eml": (f"{HEAD}\nSee below.\n\nBegin forwarded message:\n\n> From: Ana Holm <ana@x.org>\n> Subject: Dock\n> Date: 4 March 2024\n>\n> The dock is closed.\n\n> It opens in May.\n".encode(), ["> The dock is closed.\n\n> It opens in May.\n"]),
    "gmail.eml": (f'{HEAD}{PAGE}<p>See.</p><div class="gmail_quote"><div class="gmail_attr">---------- Forwarded message ---------<br>From: <b>Ana</b> &lt;ana@x.org&gt;<br>Date: Mon, 4 Mar 2024<br>Subject: Dock<br></div><p>The dock is closed.</p></div>'.encode(), ["See.\n\n---------- Forwarded message ---------\nFrom: Ana <ana@x.org>\nDate: Mon, 4 Mar 2024\nSubject: Dock\n\nThe dock is closed.\n"]),
    "more.eml": (f"{HEAD}\nThe rebates of 2024:\n\n> 50 pumps: 3 %\n> 500 pumps: 7 %\n\n>>> import pumps\n\nLena Holt, in 2024 the price P60 is 4,711 EUR, as you wrote:\n> Fine.\n\nAm Mo., 4. März 2024 um 09:15 Uhr schrieb Lena Holt <lena@x.org>:\n\n> Is it sold?\n\nYes.\n\n> Where?\n".encode(), ["The rebates of 2024:\n\n> 50 pumps: 3 %\n> 500 pumps: 7 %\n\n>>> import pumps\n\nLena Holt, in 2024 the price P60 is 4,711 EUR, as you wrote:\n> Fine.\n\nYes.\n", "!schrieb", "!sold", "!Where"]),
    "inside.eml": (f"{HEAD}\nIt is sold.\n\n> On 4 Mar 2024, at 09:15, Lena Holt wrote:\n>\n> Is the Kestrel sold?\n".encode(), ["It is sold.\n", "!Kestrel", "!wrote:"]),
    "more.mbox": (f"From a@x Mon Mar  4 10:00:00 2024\nFrom: Lena Holt <lena@x.org>\nMessage-ID: <a@x>\n\nIs the Kestrel\nsold?\n\nFrom b@x Tue Mar  5 10:00:00 2024\n{HEAD}\n> Is the Kestrel sold?\n\nYes, at more than\n\n> 50 crowns.\n".encode(), ["Is the Kestrel\nsold?\n", "Yes, at more than\n\n> 50 crowns.\n", "!> Is"]),
    "seats.mbox": (f"From a@x Mon Mar  4 10:00:00 2024\nSubject: Seats\nMessage-ID: <a@x>\n\n12\n\nFrom b@x Tue Mar  5 10:00:00 2024\n{HEAD}\nSeats in hall A:\n\n12\n\nSeats in hall B:\n\n14\n".encode(), ["Seats in hall A:\n\n12\n\nSeats in hall B:\n\n14\n"]),
    "line.mbox": (f"From a@x Mon Mar  4 10:00:00 2024\nSubject: Kestrel\nMessage-ID: <a@x>\n\nIs it sold?\n\nFrom b@x Tue Mar  5 10:00:00 2024\n{HEAD}\nYes.\n\nFrom: Lena Holt\nSubject: Kestrel\n\nIs it sold?\n".encode(), ["Yes.\n\nFrom: Lena Holt\nSubject: Kestrel\n"]),
    "escaped.json": (rb'{"a": [{"name": "\u00d6lwerk \ud83d\ude00\/", "b": "\u0022\\u00d6\n\ud83d", "n": 1.0}]}', ['{"a": [{"name": "Ölwerk 😀/", "b": "\\u0022\\\\u00d6\\n\\ud83d", "n": 1.0}]}']),
    "larger.eml": (b"From: =?ks_c_5601-1987?B?sN/A+4xj?= <a@x.org>\nSubject: =?gb2312?B?sai820xYNzAx6UY=?=\n =?utf-8?Q?_=C3=A9?=\n\nSee.\n", ["# 报价LX701镕 é", "견적똠 <a@x.org>"]),
    "1234.emlx": (b"62\nSubject: Dock\nContent-Transfer-Encoding: base64\n\nVGhlIGRvY2s=\n<?xml version='1.0'?><plist></plist>\n", ["# Dock\n\nThe dock\n", "!plist"]),
    "Inbox": (b"From - Mon Mar  4 10:00:00 2024\nX-Mozilla-Status: 0001\nSubject: Dock\nContent-Transfer-Encoding: base64\n\nVGhlIGRvY2s=\n\nFrom - Tue Mar  5 10:00:00 2024\nSubject: Quay\n\nIt is deep.\n", ["# Dock\n\nThe dock\n", "# Quay\n\nIt is deep.\n", "!Mozilla"]),
    "form.html": ('<p>Form</p><form><label>Name <input value="Ana &amp; Tom"></label><input type=hidden value=gone><input type=password value=gone><select><option>Red<option selected>Blue</select><p><ruby>東京<rp>(</rp><rt>とうきょう</ruby>の<ruby>字<rt>じ</rt></ruby></p><p>End</p></form>'.encode(), ["Form\n\nName Ana & Tom\nBlue\n\n東京の字\n\nEnd\n", "!gone", "!Red"]),
    "thread.mbox": (f"From a@x Mon Mar  4 10:00:00 2024\nSubject: The pump\nMessage-ID: <a@x>\n\nIs the Kestrel pump ours? Tell me\nbefore May.\n\nFrom Monday on\nNote: the quay is closed.\n\nFrom b@x Tue Mar  5 10:00:00 2024\n{HEAD}\nIt is sold.\n\nFrom: Lena Holt\nSubject: The pump\n\nIs the Kestrel pump\nours? Tell me before May.\n\nFrom Monday on Note: the quay is closed.\n\nAnd all is well.\n".encode(), ["From Monday on\nNote: the quay is closed.\n", "It is sold.\n\nFrom: Lena Holt\nSubject: The pump\n\nAnd all is well.\n"]),
    "euro.eml": (f"{HEAD}Content-Type: text/plain; charset=iso-8859-1\n\nIt costs 5 ".encode() + b"\x80.\n", ["It costs 5 €."]),
    "marked.eml": (f"{HEAD}Content-Type: text/plain; charset=iso-8859-1\n\nGrüße aus Köln\n".encode(), ["Grüße aus Köln"]),
    "raw.latin.eml": ("From: Jürgen Müller <j@x.org>\nTo: b@x.org\nSubject: Grüße aus Köln\n\nHi\n".encode("latin-1"), ["# Grüße aus Köln\n", "From: Jürgen Müller <j@x.org>"]),
    "kanji.vcf": (b"BEGIN:VCARD\nVERSION:2.1\nFN;CHARSET=SHIFT_JIS:" + "山田太郎".encode("cp932") + b"\nORG;CHARSET=GBK:" + "华海物流".encode("gbk") + b"\nNOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:K=F6ln\nTEL:123\nEND:VCARD\n", ["name: 山田太郎\norganization: 华海物流\nnote: Köln\ntelephone: 123\n"]),
    "nested.zip": (packed(**{"b.zip": packed(**{"c.eml": REPLY, "d.exe": "x"})}), ["The pump is sold.", "NOT READ b.zip/d.exe: binary"]),
    "gap.srt": (b"1\n00:00:01,000 --> 00:00:02,000\nWe lost\n\nthe pump.\n\n2\n00:00:02,000 --> 00:00:03,000\nOn Friday.\n", ["We lost the pump.\n\nOn Friday.\n"]),
    "named.vtt": (b"WEBVTT\n\nintro\n00:01.000 --> 00:02.000\nWe lost it.\n\nNOTE unsaid\n\nlast\n00:02.000 --> 00:03.000\nOn Friday.\n", ["\nWe lost it.\n\nOn Friday.\n", "!unsaid", "!last"]),
    "notes.vtt": (b"WEBVTT\n\nSTYLE\n::cue {}\n\n00:01.000 --> 00:02.000\nNOTE the date.\n\nSTYLE\n::cue {}\n\n00:02.000 --> 00:03.000\nSTYLE\ncosts 4.\n\nSTYLE of May.\n", ["\nNOTE the date.\n\nSTYLE costs 4. STYLE of May.\n"]),
    "notes.srt": (b"1\n00:00:01,000 --> 00:00:02,000\nNOTE the date.\n\n2\n00:00:02,000 --> 00:00:03,000\nThe town\n\nREGION\n", ["\nNOTE the date.\n\nThe town REGION\n"]),
    "note.vtt": (b"WEBVTT\n\nNOTE nothing is said\n", ["ERROR no text in it: it has no cue"]),
    "frames.mhtml": (b'MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<frameset><frame src="cid:1"><frame src="cid:2"></frameset>\n--b\nContent-Type: text/html\n\n<title>Ferry</title><p>It has a menu.</p>\n--b\nContent-Type: text/html\n\n<p>The ferry sails.</p>\n--b--\n', ["Ferry\nIt has a menu.\n\nThe ferry sails.\n"]),
    "apple.page.eml": (f'{HEAD}{PAGE}<div>See.</div><blockquote type="cite"><div>Begin forwarded message:</div><div><b>From: </b>Ana &lt;ana@x.org&gt;</div><div><b>Subject: </b>Dock</div><div><b>Date: </b>4 March 2024</div><br><div>The dock is closed.</div></blockquote>'.encode(), ["> The dock is closed.\n"]),
    "sign.eml": (b"Subject: =?iso-8859-1?Q?5_=80?=\nContent-Type: multipart/mixed; boundary=z\n\nWords without a boundary.\n", ["# 5 €\n\nWords without a boundary.\n"]),
    "markdown.eml": (b'Subject: Notes\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/markdown\n\nThe *dock*.\n--b\nContent-Type: text/plain; name="Gr\xfc\xdfe.txt"\n\nIn the file.\n--b--\n', ["Attachments: Grüße.txt\n\nThe *dock*.\n", "In the file."]),
    "amp.eml": (b"Subject: Offer\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nOffer of May\n--b\nContent-Type: text/x-amp-html\n\n<html>Offer</html>\n--b--\n", ["\nOffer of May\n", "!<html", "!NOT READ"]),
    "saved.html": (b'<p>Before</p><iframe srcdoc="<body><p>The &quot;ferry&quot; sails.</p></body>"></iframe><form>Remarks: <textarea>Too\nlate &amp; dear</textarea></form><p>After</p>', ['Before\n\nThe "ferry" sails.\n\nRemarks: Too late & dear\n\nAfter\n']),
    "frame.html": (b'<section>Before<div hidden><iframe srcdoc="</div></section>unseen"></iframe>unseen</div><iframe srcdoc="<table><tr><td hidden>x"></iframe><p>After</p><p>' + b'<iframe srcdoc="' + b"." * 4_000 + b' hidden ferry"></iframe>End</p></section>', ["Before\n\nAfter\n", "hidden ferry\n\nEnd", "!unseen"]),
    "fields.html": (b'<p>Before</p><textarea hidden>token</textarea><textarea style="display: none">token</textarea><textarea>Too late</textarea>', ["Before\n\nToo late\n", "!token"]),
    "bounce.eml": (b"From: daemon@x.org\nSubject: Undelivered\nMIME-Version: 1.0\nContent-Type: multipart/report; boundary=b\n\n--b\n\nNot delivered.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.x.org\n\nDiagnostic-Code: smtp; 550 no such user\n\n--b--\n", ["Not delivered.\n\nReporting-MTA: dns; mx.x.org\n\nDiagnostic-Code: smtp; 550 no such user\n"]),
    "names.csv": (b"7,Ana Holm,2024-01-02\n8,Tom Reed,2024-01-03\n", ["column 2: Ana Holm"]),
    "wide.xml": (b'<?xml version="1.0"?><ships><ship name="Tern"><port>Ostend</port></ship></ships>', ["ship: (name: Tern)", "port: Ostend"]),
    "flowed.eml": (b"From: Ana <a@x.org>\nTo: b@x.org\nSubject: Basin\nContent-Type: text/plain; format=flowed; delsp=yes\n\nIt is fourteen me \ntres deep. \n\nEnd\n-- \nAna\n", ["It is fourteen metres deep.\n\nEnd\n--"]),
    "third.ipynb": (b'{"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "heading", "level": 2, "source": ["Waves"]}, {"cell_type": "code", "input": ["x = 1"], "outputs": [{"output_type": "pyout", "text": ["42"]}]}]}]}', ["## Waves", "x = 1", "```text\n42", "!nbformat"]),
    "python.zh.txt": ("我们使用Python和Java开发。请打开GitHub的Issue页面。\n".encode("gb18030") * 3, ["我们使用Python和Java开发。请打开GitHub的Issue页面。"]),
    "headings.ipynb": (b'{"nbformat": 3, "metadata": {}, "worksheets": [{"cells": [{"cell_type": "heading", "level": 30000000, "source": "Waves"}, {"cell_type": "heading", "level": 1e400, "source": "Tides"}, {"cell_type": "heading", "level": -1, "source": "Wind"}]}]}', ["\n###### Waves\n\n# Tides\n\n# Wind\n"]),
    "sjis.xml": ('<?xml version="1.0" encoding="Shift_JIS"?><a><b>佐藤①</b></a>'.encode("cp932"), ["b: 佐藤①"]),
    "gbk.xml": ('<?xml version="1.0" encoding="gb2312"?><a><b>王建国€朱镕基</b></a>'.encode("gb18030"), ["b: 王建国€朱镕基"]),
    "hidden.xml": (b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE a [+ADwAIQ-ENTITY x "y">]><a>+ACY-x;</a>', ["ERROR its XML declares entities"]),
    "laughs.xml": (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', ["ERROR its XML declares entities"]),
}  # fmt: skip


INTRODUCTIONS = """
On Mon, Mar 4, 2024 at 9:15 AM Ana Holm <ana@x.org> wrote:
Am 04.03.2024 um 09:15 schrieb Ana Holm <ana@x.org>:
Le lun. 4 mars 2024 à 09:15, Ana Holm <ana@x.org> a écrit :
El lun, 4 mar 2024 a las 9:15, Ana Holm (<ana@x.org>) escribió:
Il giorno lun 4 mar 2024 alle ore 09:15 Ana Holm <ana@x.org> ha scritto:
pon., 4 mar 2024 o 09:15 Ana Holm <ana@x.org> napisał(a):
Op ma 4 mrt 2024 om 09:15 schreef Ana Holm <ana@x.org>:
2024年3月4日(月) 9:15 Ana Holm <ana@x.org>:
Ana Holm <ana@x.org> 于2024年3月4日周一 09:15写道：
пн, 4 мар. 2024 г. в 09:15, Ana Holm <ana@x.org>:
Ana Holm <ana@x.org>, 4 Mar 2024 Pzt, 09:15 tarihinde şunu yazdı:
""".strip().split("\n")


@pytest.mark.parametrize("line", INTRODUCTIONS)
def test_an_introduction_of_any_language_goes_with_its_quotation_and_the_answers_stay(line: str) -> None:
    people = ["Ana Holm", "ana@x.org"]
    assert without_quotes(f"Two cranes.\n\n{line}\n\n> How many?\n", people) == "Two cranes."
    assert without_quotes(f"{line}\n> How many?\nTwo.\n\n> When?\nIn May.\n", people).split() == "Two. In May.".split()
    fact = line.rstrip(":： ") + ", the price of the crane is 418,000 euros:"
    assert fact in without_quotes(f"So:\n\n{fact}\n\n> How many?\n", people)


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_file_of_ours_is_read_right(tmp_path: Path, name: str) -> None:
    data, wanted = OWN[name]
    (tmp_path / name).write_bytes(data)
    text = said(tmp_path / name)
    assert wrong(text, wanted) == [], text


BEFORE = "<p>" + "The quay is deep. " * 40
UNCLOSED = """
<ASIDE>Q1<p>Q2
</header><header><h1>Q1</h1><p>Q2
<div class=page><footer><p>Q1</div><p>Q2
<!-- <footer> --><footer><p>Q1<p>Q2<!-- </footer> -->
<nav><p>Q1<p>Q2
<noscript><img src=x><p>Q1<p>Q2
<a href=x><button>Menu<a href=y>Q1</a>Q2
<ol><li><svg><div>Q1</ol>Q2
<p><ruby>Q1<rt>reading<p>Q2
<table><tr><th><option>A<th>Q1<tr><td>Q2</table>
<dl><dt><option>A<dt>Q1<dd>Q2</dl>
<select><option>A<option>B<p>Q1<p>Q2
<table><tr><th><select><option>A<th>Q1</select><tr><td>Q2</table>
<script>a = 1;<p>Q1<p>Q2
<script>a = "<title>"</script><title>Quay</title><style>p {}</style><STYLE media=x>p {}<p>Q1<script>b</script><p>Q2
<title>Quay<p>Q1<p>Q2
""".strip().split("\n")


@pytest.mark.parametrize("markup", UNCLOSED)
def test_what_follows_an_element_that_is_never_closed_is_read(markup: str) -> None:
    text = readable(BEFORE + markup).text
    assert "Q1" in text
    assert "Q2" in text


@pytest.mark.parametrize("name", ["aside", "header", "footer", "nav", "noscript", "button", "template", "style"])
def test_an_element_that_is_closed_is_left_out_beside_another_that_is_not(name: str) -> None:
    other = "footer" if name == "aside" else "aside"
    closed = f"<{name}>Gone</{name}><{name}/><{name} id=a>Gone</{name.upper()}><!-- <{name}> --><select><option>Gone</select>"
    for opened in (name, other):
        assert readable(f"{BEFORE}{closed}<{opened}><p>Q1").text.endswith("deep.\n\nQ1\n")


def test_nearly_all_encodings_of_a_set_are_found(tmp_path: Path) -> None:
    """Short texts in the encodings of their languages, some that two encodings could have written."""
    rows = json.loads(Path(__file__).with_name("encodings.json").read_text("utf-8"))
    missed = []
    for number, row in enumerate(rows):
        path = tmp_path / str(number) / row["name"]
        path.parent.mkdir()
        path.write_bytes(row["text"].encode(row["encoding"]))
        missed += [(row["encoding"], row["text"][:40])] * (row["text"].strip() not in said(path))
    assert len(missed) <= 0.05 * len(rows), missed


def test_long_paragraphs_of_a_mail_that_flows_are_joined_in_linear_time() -> None:
    head = b"Subject: Basin\nContent-Type: text/plain; format=flowed\n\n"
    assert linear(lambda size: list(eml(head + b"deep \n" * size, "eml")), 1_000, largest=1_500_000)


def test_a_long_cell_of_rtf_is_read_in_linear_time() -> None:
    words = b"Some words here \\par "
    assert linear(lambda size: list(rtf(b"{\\rtf1\\pard\\intbl " + words * size + b"}", "rtf")), 500, largest=160_000)


def test_lines_of_cards_without_a_charset_are_decoded_together() -> None:
    card = b"BEGIN:VCARD\nFN;CHARSET=GBK:" + "张三\n 李".encode("gbk") + b"\nNOTE:caf\xe9 in M\xfcnchen\nEND:VCARD\n"
    first, *_ = pieces = list(cards(card * 50, "vcf"))
    assert len(pieces) == 50 and first.text == "name: 张三李\nnote: café in München\n"
    assert calls(lambda: list(cards(card * 50, "vcf")), "detect_all") <= 1
    (piece,) = cards(b"BEGIN:VCARD\nFN;CHARSET=UTF-8:Ana\nNOTE:\x81\x8d\xff\x00\x01\x8f\xff\nTITLE:" + b"Head of pumps " * 60 + b"\nEND:VCARD\n", "vcf")
    assert "name: Ana\n" in piece.text and "title: Head of pumps" in piece.text


def test_a_card_whose_line_is_signs_alone_ends_at_once() -> None:
    card = b"BEGIN:VCARD\nFN:Ada\nTEL" + b";" * 400 + b'\nTEL;TYPE="a:b;c";X=1:5551\nEND:VCARD\n'
    with ends():
        (piece,) = cards(card, "vcf")
    assert piece.text == "name: Ada\ntelephone: 5551\n"


def test_spans_of_a_table_make_no_more_places_than_a_table_may_have() -> None:
    rows = [[("x", 900, 60_000)] * 20, *[[("y", 1, 1)]] * 2_000]
    table = grid(rows)
    assert len(table) == 2_001 and sum(map(len, table)) < 2 * MOST_BLANK
    assert table[0][0] == "x" and all("y" in row for row in table[1:])
    assert grid([[("a", 2, 2), ("b", 1, 1)], [("c", 1, 1)]]) == [["a", "", "b"], ["", "", "c"]]
