"""Pages, slides, cells and times: where text stands, from the reader to the hit that is shown."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import formats
from graphrag_mcp.sources.piece import Picture, Piece
from graphrag_mcp.store import tables
from graphrag_mcp.text import places
from graphrag_mcp.text.places import Part, place_of
from graphrag_mcp.types import IndexRequest
from tests.support import hostile_archives

SETTINGS = Settings(home=Path("unused"))
SHEET = "## Costs\n\n| Item | Price |\n| Steel | 210 |\n| Paint | 18 |\n"
CELLS = Part(SHEET, ((0, "Costs!A1"), (10, "Costs!A3"), (SHEET.index("| Paint"), "Costs!A9")))
PAGES = Part("one\n\ntwo\n\nthree", ((0, "p. 1"), (5, "p. 2"), (10, "p. 3")))


@pytest.mark.parametrize(
    ("part", "words", "place"),
    [
        (PAGES, "one", "p. 1"), (PAGES, "two", "p. 2"), (PAGES, "two\n\nthree", "pp. 2-3"), (CELLS, "Price", "Costs!B3"),
        (CELLS, "| Steel | 210 |", "Costs!A4:B4"), (CELLS, "Steel", "Costs!A4"), (CELLS, "210 |\n| Paint", "Costs!A4:B9"),
        (Part("a b", ((0, "00:00:03"), (2, "00:01:00"))), "a b", "00:00:03-00:01:00"), (Part("a", ()), "a", ""),
    ],
)  # fmt: skip
def test_a_part_of_a_text_has_its_place(part: Part, words: str, place: str) -> None:
    start = part.text.index(words)
    assert place_of(part, start, start + len(words)) == place


@pytest.mark.parametrize(
    ("text", "marks", "place"),
    [
        ("## S\n\n| a | b |\n| 1 | 2 |\n\nB1 Comment: why", {"## S": "S!A1", "| a": "S!A1", "B1": "S!B1"}, "S!A1:B2"),
        ("| a | b |\n| 8 | 9 |\n| 7 | 6 |\n", {"| a": "S!A$1", "| 8": "S!A290"}, "S!A290:B291"),
        ("| a | b |\n| 8 | 9 |\n\n| a | b |\n| 7 | 6 |", {"| a": "S!A1", "\n| a": "S!A$1", "| 7": "S!A3"}, "S!A1:B3"),
        ("| a | b |", {"| a": "S!A$1"}, "S!A1:B1"), ("| a |\n\nChart", {"| a": "S!A1", "Chart": "S"}, "S!A1"),
    ],
)  # fmt: skip
def test_a_range_of_cells_begins_at_its_first_row_and_ends_at_its_last(
    text: str, marks: dict[str, str], place: str
) -> None:
    found = [(text.index(words) + words.startswith("\n"), name) for words, name in marks.items()]
    assert place_of(Part(text, found), 0, len(text)) == place


def test_each_passage_of_a_long_sheet_has_the_header_and_the_range_of_its_rows() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    sheets = [book.active, book.create_sheet("Long")]
    for sheet, rows in zip(sheets, (90, 300), strict=True):
        sheet.append(("Date", "Product", "Count"))
        for row in range(rows):
            sheet.append((f"2024-01-{row % 28 + 1:02}", f"Goods AG{row:03}", row))
    book.save(stream := io.BytesIO())
    (piece,) = (found for found in formats.pieces(stream.getvalue(), "xlsx") if isinstance(found, Piece))
    units = chunk(piece.text, ChunkParams(), None, places.divisions(piece.places), places.headers(piece))
    rows = 1
    for passage in (passage for unit in units for passage in unit.passages):
        text = piece.text[passage.start : passage.end]
        sheet, _, span = place_of(piece, passage.start, passage.end).partition("!")
        first, last = (int(cell.strip("ABC")) for cell in span.split(":"))
        assert "| Date | Product | Count |" in text
        assert first == (1 if text.startswith("##") else rows + 1) and f"AG{last - 2:03}" in text
        rows = last


def test_places_of_a_part_count_from_its_start() -> None:
    text = "| a |\n| b |\n| c |\n"
    assert places.part(((0, "S!A1"),), text, 6, 17) == [(0, "S!A2")]
    assert places.read(places.write(((0, "p. 1"), (7, "p. 2")))) == [(0, "p. 1"), (7, "p. 2")]
    assert (
        places.read("{") == places.read("") == []
        and places.column_name(27) == "AB"
        and places.column_number("AB") == 27
    )


def folder_of(tmp_path: Path) -> Path:
    import openpyxl
    import pptx

    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "audit-report.pdf").write_bytes(
        hostile_archives.pages(
            "Ines Calloway rowed to the Narrows.", "Tom Reed waited at the sluice."
        )
    )
    deck, book = pptx.Presentation(), openpyxl.Workbook()
    for words in ("Harbour budget", "The dredger Marigold is sold"):
        deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = words
    deck.save(folder / "plan.pptx")
    book.active.title = "Costs"
    for row in (["Item", "Price"], ["Sheet piling", 21500], ["Bollards", 930]):
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    (folder / "budget.xlsx").write_bytes(out.getvalue())
    (folder / "standup.vtt").write_text("WEBVTT\n\n01:02:03.000 --> 01:02:05.000\n<v Ana Holm>The relay burned out.\n")
    return folder


def test_a_picture_that_a_model_describes_has_the_slide_that_shows_it() -> None:
    import pptx
    from PIL import Image

    Image.new("RGB", (2, 2), "green").save(picture := io.BytesIO(), "PNG")
    deck = pptx.Presentation()
    for _ in range(2):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_picture(picture, 0, 0)
    deck.save(stream := io.BytesIO())
    found = formats.pieces(stream.getvalue(), "pptx", described=True)
    assert [one.place for one in found if isinstance(one, Picture)] == ["slide 2"]


def test_every_hit_names_the_page_the_slide_or_the_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, home = folder_of(tmp_path), tmp_path / "home"
    assert main(["index", str(folder), "--home", str(home), "--corpus", "c"]) == 0
    for question, place in (
        ("Where did Tom Reed wait?", "(audit-report.pdf p. 2)"), ("dredger Marigold", "(plan.pptx slide 2)"),
        ("price of bollards", "(budget.xlsx Costs!"), ("relay burned", "(standup.vtt 01:02:03)"),
    ):  # fmt: skip
        capsys.readouterr()
        assert main(["search", question, "--home", str(home)]) == 0
        assert place in capsys.readouterr().out, question


@pytest.mark.slow
def test_places_stay_when_rows_are_derived_again_and_go_with_their_document(tmp_path: Path) -> None:
    folder, corpus = folder_of(tmp_path), tmp_path / "c"
    request = IndexRequest(paths=(str(folder),))
    index_documents(corpus, request, SETTINGS)
    before = tables.open_snapshot(corpus).rows("places").sort_by("id").to_pylist()
    assert len(before) >= 8
    index_documents(corpus, request, replace(SETTINGS, chunk_overlap=90))
    assert tables.open_snapshot(corpus).rows("places").sort_by("id").to_pylist() == before
    for path in folder.iterdir():
        path.unlink()
    (folder / "a.md").write_text("Words.")
    index_documents(corpus, IndexRequest(paths=(str(folder),), remove_missing=True), SETTINGS)
    assert tables.open_snapshot(corpus).rows("places").num_rows == 0


def test_sources_outlines_lists_and_the_explorer_name_the_same_places(tmp_path: Path) -> None:
    from graphrag_mcp.explorer import texts
    from graphrag_mcp.explorer.citing import Sources
    from graphrag_mcp.query import documents
    from graphrag_mcp.query.source import get_source

    corpus = tmp_path / "c"
    index_documents(corpus, IndexRequest(paths=(str(folder_of(tmp_path)),)), SETTINGS)
    snapshot = tables.open_snapshot(corpus)
    rows = snapshot.rows("documents", columns=["n", "id", "uri"]).to_pylist()
    numbers = {row["uri"].rpartition("/")[2]: row["n"] for row in rows}
    whole = get_source(snapshot, [f"d{numbers['audit-report.pdf']}"]).text
    assert "(in/audit-report.pdf p. 1)" in whole and "(p. 2)\nTom Reed waited" in whole
    asked = get_source(snapshot, [f"d{numbers['budget.xlsx']}"], query="price of bollards").text
    assert "budget.xlsx (Costs!A1:B3)" in asked
    assert "(p. 2) Tom Reed waited" in documents.list_documents(snapshot, document="audit-report.pdf").text
    assert "(plan.pptx slide 2)" in documents.list_documents(snapshot, query="dredger Marigold").text
    shown = texts.document(snapshot, numbers["audit-report.pdf"])["units"]
    assert [unit["place"] for unit in shown] == ["pp. 1-2"]
    (unit,) = snapshot.rows("text_units", "text LIKE '%relay%'", ["id", "n"]).to_pylist()
    assert texts.passage(snapshot, unit["n"])["place"] == "01:02:03"
    assert Sources(snapshot, [unit["id"]]).cite(unit["id"])["place"] == "01:02:03"
