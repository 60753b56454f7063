"""The data of every view of the explorer, without a browser: a result or an error in words, never an exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.explorer.citing import place_of
from graphrag_mcp.explorer.data import VIEWS, load
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
TURNED = "abc\u202etxt.exe"
LONG = "Bartholomew" * 910
HOSTILE = {
    "<img src=x onerror=alert(2)>.md": f"# {SCRIPT}\n\nAda Lovelace met Charles Babbage in London. {SCRIPT}\n",
    "turned.md": f"# {TURNED}\n\nAda Lovelace wrote to {TURNED}. كتبت ليلى حداد رسالة إلى سامي نصار. 😀 Ada Lovelace laughed.\n",
    "long.md": f"# {LONG}\n\n{LONG} met Ada Lovelace. Mr {LONG} Smith wrote to Charles Babbage.\n",
    "json.md": '# </script>\n\nAda Lovelace said "</script>" -->. api_key = "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc"\n',
}
SMALL = {
    "a.md": "# Anna\n\n2024-03-01\n\nAnna Meier met Beat Zumstein in Bern. Beat Zumstein signed the accord of Bern.\n",
    "b.md": "# Beat\n\n2025-05-02\n\nBeat Zumstein wrote to Carla Rossi in Milan. Carla Rossi answered Beat Zumstein.\n",
}
ARGUMENTS = {"map": ("under",), "community": ("id",), "entity": ("id",), "passage": ("id",), "document": ("id",),
             "path": ("id", "to"), "search": ("query",), "drift": ("id",), "changes": ("since",)}  # fmt: skip
VALUES = ("", "0", "1", "2", "c1", "e2", "t1", "d1", "t1.1", "-1", "999999999999", "9" * 40, "e\u0661", "' OR '1'='1",
          "../../x", "\x00", "\ud800", "%00", SCRIPT, TURNED, LONG, "Ada Lovelace", "Who met Anna Meier?", "*" * 3000)  # fmt: skip


@pytest.fixture(scope="module", params=["empty", "small", "hostile"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An index without documents, one that was updated once, and one of texts that attack a page."""
    folder, home = tmp_path_factory.mktemp("texts"), tmp_path_factory.mktemp("home")
    settings, asked = Settings(home=home, roots=(folder,)), IndexRequest(paths=(str(folder),), remove_missing=True)
    texts = {"empty": {"gone.md": "Nothing here.\n"}, "small": SMALL, "hostile": HOSTILE}[request.param]
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    assert index_documents(home / "corpora" / "sample", asked, settings).errors == []
    changed = next(iter(texts))
    if request.param == "empty":
        (folder / changed).unlink()
    else:
        (folder / changed).write_text(texts[changed] + "\nDora Keller came to Bern later.\n", "utf-8")
    assert index_documents(home / "corpora" / "sample", asked, settings).errors == []
    yield App(settings, "sample")


@pytest.fixture
def door(app: App) -> Iterator[TestClient]:
    from starlette.applications import Starlette
    from starlette.routing import Route

    from graphrag_mcp.explorer.page import routes

    made = [Route(path, handler, methods=[method]) for path, method, handler in routes(app, "sample")]
    with TestClient(Starlette(routes=made)) as client:
        yield client


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_loads_with_and_without_arguments(app: App, view: str) -> None:
    shown = 0
    for given in [{}, {"unknown": SCRIPT}, *({name: value} for name in ARGUMENTS.get(view, ()) for value in VALUES)]:
        try:
            data = load(app, view, given)
        except GraphRAGError:
            continue
        json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")
        assert data["corpus"] == "sample"
        assert "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc" not in json.dumps(data)
        shown += 1
    views_of_one = {"community", "entity", "passage", "document", "path"}
    assert shown or (view in views_of_one)


@pytest.mark.core
def test_no_view_answers_with_status_500(door: TestClient) -> None:
    asked = [(view, {}) for view in VIEWS]
    asked += [(view, {name: value}) for view in VIEWS for name in ARGUMENTS.get(view, ()) for value in ("1", "x'")]
    found = [(view, given, door.get(f"/explore/data/{view}", params=given).status_code) for view, given in asked]
    assert [one for one in found if one[2] not in (200, 400, 404)] == []
    assert {view for view, given, status in found if status == 200 and not given} >= {
        "overview", "map", "search", "drift", "changes", "timeline",
    }  # fmt: skip


def test_every_row_has_its_view(app: App) -> None:
    snapshot = app.snapshot("sample")
    for table, view in (("entities", "entity"), ("documents", "document"), ("text_units", "passage"), ("reports", "community")):
        for n in snapshot.rows(table, "", ["n"])["n"].to_pylist():
            assert load(app, view, {"id": str(n)})["generation"] == snapshot.manifest.generation
    numbers = snapshot.rows("entities", "", ["n"])["n"].to_pylist()
    for other in numbers[1:]:
        assert load(app, "path", {"id": str(numbers[0]), "to": str(other)})["to"]["n"] == other


def test_the_sentences_of_a_search_stand_at_their_place(app: App) -> None:
    hits: list[dict[str, Any]] = load(app, "search", {"query": "Who met Ada Lovelace, and who met Anna Meier?"})["passages"]
    texts = {f"t{row['n']}": row["text"] for row in app.snapshot("sample").rows("text_units", "", ["n", "text"]).to_pylist()}
    assert hits or not texts
    for hit in hits:
        cite = hit["cites"][0]
        place = texts[cite["id"]][cite["start"] : cite["end"]]
        assert place.split()[0].lstrip("#> ") in hit["text"] or LONG[:300] in place


@pytest.mark.core
@pytest.mark.parametrize("sign", ["-", "|", "* -", "_", ">"])
def test_a_row_of_marks_in_a_sentence_is_no_row_of_guesses(sign: str) -> None:
    """It took twice the time for each mark more, and held the interpreter's lock: no call was answered."""
    text = f"A **Harbour\nBoard** of Anna {f'{sign} ' * 200}and Beat closed the port."
    start, end = place_of(" ".join(text[2:].split()), text)
    assert text[start:end].startswith("Harbour\nBoard") and text[start:end].endswith("the port.")
    assert place_of(f"Anna {f'{sign} ' * 200}and Carla", text) == (0, 0)


@pytest.mark.core
def test_a_sentence_is_found_in_a_text_of_equal_words_and_across_marks() -> None:
    assert place_of("a " * 498 + "b", "a " * 25_000) == (0, 0)
    assert place_of("one two three", "no one\n> two | **three** four") == (3, 22)


def test_a_change_is_shown_since_a_generation(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    settings = Settings(home=tmp_path / "home", roots=(folder,))
    for name, text in SMALL.items():
        (folder / name).write_text(text, "utf-8")
        index_documents(tmp_path / "home" / "corpora" / "sample", IndexRequest(paths=(str(folder),)), settings)
    app = App(settings, "sample")
    since = load(app, "changes", {})["since"]
    for given in ({}, {"since": str(since)}):
        assert [one["title"] for one in load(app, "changes", given)["documents"]["added"]] == ["Beat"]


def test_links_are_shown_of_a_document_and_of_all(tmp_path: Path) -> None:
    notes = {"ada.md": "# Ada\n\nSee [[sill#Costs]] and [[Lost]].\n", "sill.md": "# Sill\n\n## Costs\n\n[[ada]] #tide\n",
             "day.md": "# Day\n\n[[ada]]\n"}  # fmt: skip
    for name, text in notes.items():
        (tmp_path / name).write_text(text, "utf-8")
    home = tmp_path / "home"
    settings = Settings(home=home, roots=(tmp_path,))
    index_documents(home / "corpora" / "sample", IndexRequest(paths=tuple(str(tmp_path / name) for name in notes)), settings)
    app = App(settings, "sample")
    every = load(app, "links", {})
    name = {node["n"]: node["title"] for node in every["nodes"]}
    assert {(name[a], name[b], count) for a, b, count in every["edges"]} == {("Ada", "Sill", 1), ("Sill", "Ada", 1), ("Day", "Ada", 1)}
    assert name[every["nodes"][0]["n"]] == "Ada" and every["nodes"][0]["degree"] == 2
    assert [(page["written"], page["count"]) for page in every["missing"]] == [("Lost", 1)] and every["tags"][0]["tag"] == "tide"
    links = load(app, "document", {"id": f"d{every['nodes'][0]['n']}"})["links"]
    assert {link["from"]["title"] for link in links["in"]} == {"Sill", "Day"}
    (out,) = links["out"]
    assert (out["to"]["title"], out["part"]) == ("Sill", "Costs") and out["cites"][0]["id"].startswith("t")
    assert [link["written"] for link in links["missing"]] == ["Lost"] and links["more"] == 0
