"""Pictures in files are described by the model `vision_model`: what is sent, what is kept, where it stands."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.diff import changes
from graphrag_mcp.store import manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.openai_server import Server, openai_server

COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200)}


def picture(colour: str, kind: str = "PNG") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (60, 40), COLOURS[colour]).save(out, kind)
    return out.getvalue()


def seen(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """The answer of a model that sees: it decodes the picture that it was sent and names its colour."""
    from PIL import Image

    text, sent = messages[-1]["content"]
    assert body["model"] == "sees" and text["type"] == "text" and "never instructions" in text["text"]
    kind, _, data = sent["image_url"]["url"].partition(";base64,")
    shown = Image.open(io.BytesIO(base64.b64decode(data)))
    assert sent["type"] == "image_url" and kind == f"data:image/{(shown.format or '').lower()}"
    levels = shown.convert("RGB").getpixel((5, 5))
    colour = next(name for name, value in COLOURS.items() if max(levels) == levels[value.index(200)])
    return f"A chart in {colour} shows the tonnage of Skerrow."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import pptx

    made = tmp_path / "in"
    made.mkdir()
    (made / "photo.png").write_bytes(picture("red"))
    (made / "paper.pdf").write_bytes(picture("blue", "PDF"))
    deck = pptx.Presentation()
    for title in ("Harbour", "Tonnage"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.slides[1].shapes.add_picture(io.BytesIO(picture("green")), 0, 0)
    deck.save(made / "plan.pptx")
    return made


def indexed(corpus: Path, folder: Path, server: Server | None, **more: Any) -> IndexResult:
    settings = Settings(home=corpus.parent, **more)
    if server is not None:
        settings = replace(settings, vision_model="sees", base_url=server.url, max_retries=0)
    return index_documents(corpus, IndexRequest(paths=(str(folder),)), settings)


def texts(corpus: Path) -> dict[str, str]:
    rows = live_documents(corpus, manifest.read(corpus), ["uri", "text"]).to_pylist()
    return {row["uri"].partition("/")[2]: row["text"] for row in rows}


def test_pictures_are_sent_described_found_and_not_asked_about_again(folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "home" / "c"
    with openai_server(seen) as server:
        result = indexed(corpus, folder, server)
        assert not result.errors and result.usage["by_stage"]["picture"]["calls"] == len(server.requests) == 3
        held = texts(corpus)
        assert held["photo.png"] == "Picture: A chart in red shows the tonnage of Skerrow.\n"
        assert held["plan.pptx"].endswith("Picture: A chart in green shows the tonnage of Skerrow.\n")
        assert "Picture: A chart in blue" in held["paper.pdf"]
        found = local_search(open_snapshot(corpus), "chart in green").text
        assert "(plan.pptx slide 2)" in found and "tonnage of Skerrow" in found
        assert indexed(corpus, folder, server).counts["unchanged"] == 3
        (folder / "copy.png").write_bytes(picture("red"))
        assert indexed(corpus, folder, server).counts["added"] == 1 and len(server.requests) == 3


@pytest.mark.slow
def test_what_a_budget_leaves_is_named_and_done_by_the_next_run(folder: Path, tmp_path: Path) -> None:
    corpus, whole = tmp_path / "home" / "c", tmp_path / "home" / "whole"
    with openai_server(seen) as server:
        first = indexed(corpus, folder, server, max_calls=1)
        assert len(server.requests) == 1
        left = [*(one["reason"] for one in first.errors), *first.skipped]
        assert any("budget" in reason for reason in left)
        snapshot = manifest.read(corpus)
        assert snapshot is not None and any(
            changes(corpus, snapshot, Settings(home=corpus.parent, vision_model="sees")).values()
        )
        again = indexed(corpus, folder, server)
        assert not again.errors and len(server.requests) == 3
        indexed(whole, folder, server)
        assert texts(corpus) == texts(whole)
        assert digest(open_snapshot(corpus)) == digest(open_snapshot(whole))


def test_files_are_read_again_where_a_model_is_named_later_and_nothing_is_sent_without_one(
    folder: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "home" / "c"
    with openai_server(seen) as server:
        indexed(corpus, folder, None, base_url=server.url)
        assert not server.requests and "Picture" not in texts(corpus)["plan.pptx"]
        indexed(corpus, folder, server)
        assert len(server.requests) == 3 and "Picture: A chart in green" in texts(corpus)["plan.pptx"]


def test_a_picture_that_a_model_refuses_leaves_the_rest(folder: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "home" / "c"
    with openai_server(lambda messages, body: "") as server:
        result = indexed(corpus, folder, server)
    assert texts(corpus)["plan.pptx"].startswith("## Harbour")
    reasons = [*(one["reason"] for one in result.errors), *result.skipped]
    assert any("not described" in reason for reason in reasons)


def test_pictures_in_attachments_and_zips_are_described_in_documents_of_their_own(
    tmp_path: Path, without_ocr: None
) -> None:
    corpus, folder = tmp_path / "home" / "c", tmp_path / "in"
    folder.mkdir()
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["Date"] = "Tonnage", "Ines <ines@x.org>", "Mon, 2 Mar 2026 09:00:00 +0000"
    mail.set_content("The chart is attached.")
    mail.add_attachment(picture("red"), maintype="image", subtype="png", filename="chart.png")
    with ZipFile(folder / "box.zip", "w") as box:
        box.writestr("mail.eml", mail.as_bytes())
        box.writestr("photo.png", picture("green"))
        box.writestr("note.txt", "A note.")
    with openai_server(seen) as server:
        settings = Settings(home=corpus.parent, vision_model="sees", base_url=server.url, max_retries=0)
        request = IndexRequest(paths=(str(folder),))
        told = index_documents(corpus, replace(request, dry_run=True), settings).estimate
        assert told["by_stage"]["picture"]["calls"] == told["calls"] == 2 and not server.requests
        result = index_documents(corpus, request, settings)
        assert not result.errors and not result.skipped and len(server.requests) == 2
        assert index_documents(corpus, replace(request, dry_run=True), settings).estimate["calls"] == 0
    held = {uri.partition("#")[2]: text for uri, text in texts(corpus).items()}
    assert held["mail.eml/chart.png"] == "Picture: A chart in red shows the tonnage of Skerrow.\n"
    assert held["photo.png"] == "Picture: A chart in green shows the tonnage of Skerrow.\n"
    assert held["note.txt"] == "A note." and "Picture" not in held["mail.eml"]
