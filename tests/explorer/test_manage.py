"""Uploads, originals and the state of the server, over HTTP without a browser: names, rights, tickets, limits."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput
from graphrag_mcp.explorer import files
from graphrag_mcp.explorer.data import load
from graphrag_mcp.explorer.manage import Manager
from graphrag_mcp.explorer.search import narrowing
from graphrag_mcp.http import Door
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.tools import index
from graphrag_mcp.trust.fencing import SUBJECT, TELL_PATHS
from graphrag_mcp.types import IndexRequest, InlineText

BYTES = {"content-type": "application/octet-stream"}
TOOLS = ("index_documents", "remove_documents", "edit_graph", "local_search")
PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"
HTML = "<h1>Lamp</h1><script>alert(1)</script><p>Ida Noll lit the lamp of Ostra Point.</p>"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    """An index of a folder with a page, a letter and a link that leads out, and of a text."""
    folder, home = tmp_path_factory.mktemp("managed"), tmp_path_factory.mktemp("managed-home")
    (folder / "page.html").write_text(HTML, "utf-8")
    (folder / "letters").mkdir()
    (folder / "letters" / "2024-05-02 lamp.md").write_text("# Lamp\n\nTobias Fenn kept the lamp of Ostra Point.\n", "utf-8")
    settings = Settings(home=home, roots=(folder,), max_file_bytes=1_000_000)
    given = IndexRequest(paths=(str(folder),), texts=(InlineText("Olga Tamm painted Ostra Point.", "note", "A note"),))
    index_documents(home / "corpora" / "sample", given, settings)
    return App(settings, "sample")


def client_of(app: App, tools: tuple[str, ...] = TOOLS, local: bool = False) -> TestClient:
    made = [Route(path, call, methods=[how]) for path, how, call in Manager(app, "sample", tools, local).routes()]
    return TestClient(Starlette(routes=made))


@pytest.fixture(scope="module")
def client(app: App) -> Iterator[TestClient]:
    with client_of(app) as made:
        yield made


def numbers(app: App) -> dict[str, int]:
    return {one["uri"].rpartition("/")[2]: one["n"] for one in load(app, "library", {})["documents"]}


# ---- uploads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "", "/", "..", "../a.md", "a/../../b.md", "/etc/passwd", "a//b.md", "a/./b.md", "C:\\a.md", "a\\b.md", "c:a.md", ".hidden", "a/.ssh/key", "~/a.md",
    "a\0b.md", "a\nb.md", "con", "NUL.txt", "a/aux.md", "a.", "a ", "x" * 201, "/".join("a" * 13), "a\u202eb.md", "a\u200bb.md", "a:b.md", "a|b", "a?.md", "\ud800.md", "CON .md", "com¹.txt",
])  # fmt: skip
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        files.checked(name)


def test_an_upload_lies_in_its_folder_and_replaces_nothing_without_a_word(app: App, client: TestClient) -> None:
    folder = app.settings.roots[0] / files.UPLOADS
    done = client.post("/explore/upload", params={"name": "notes/Tagebuch ü.md"}, content=b"one", headers=BYTES)
    assert done.status_code == 200 and done.json()["path"] == f"{files.UPLOADS}/notes/Tagebuch ü.md"
    again = client.post("/explore/upload", params={"name": "notes/Tagebuch ü.md"}, content=b"two", headers=BYTES)
    assert again.status_code == 409 and again.json()["exists"] and (folder / "notes" / "Tagebuch ü.md").read_bytes() == b"one"
    assert client.post("/explore/upload", params={"name": "notes/Tagebuch ü.md", "replace": "1"}, content=b"two", headers=BYTES).status_code == 200
    assert (folder / "notes" / "Tagebuch ü.md").read_bytes() == b"two"
    assert client.post("/explore/upload", params={"name": "notes", "replace": "1"}, content=b"x", headers=BYTES).status_code == 400
    assert client.post("/explore/upload", params={"name": "../x.md"}, content=b"x", headers=BYTES).status_code == 400
    large = client.post("/explore/upload", params={"name": "large.bin"}, content=b"x" * 1_000_001, headers=BYTES)
    assert large.status_code == 400 and "over 1 MB" in large.json()["error"]
    assert sorted(path.name for path in folder.rglob("*")) == ["Tagebuch ü.md", "notes"]


def test_the_folder_of_uploads_has_a_quota_and_a_refused_upload_leaves_no_folder(tmp_path: Path) -> None:
    app = App(Settings(home=tmp_path / "home", roots=(tmp_path,), max_upload_bytes=1_000, max_files=3), "sample")
    folder = tmp_path / files.UPLOADS

    def sent(client: TestClient, name: str, size: int, **more: str) -> tuple[int, str]:
        done = client.post("/explore/upload", params={"name": name, **more}, content=b"x" * size, headers=BYTES)
        return done.status_code, done.json().get("error", "")

    with client_of(app) as client:
        assert sent(client, "a.md", 600)[0] == 200
        status, why = sent(client, "deep/er/b.md", 500)
        assert status == 400 and "all files together may have 0.001 MB" in why and not (folder / "deep").exists()
        assert sent(client, "a.md", 300, replace="1")[0] == 200
        assert sent(client, "deep/b.md", 500)[0] == 200  # the place of what was replaced is free again
        assert sent(client, "c.md", 0)[0] == 200
        assert "may hold 3 files" in sent(client, "d.md", 0)[1]
        for path in folder.rglob("*.md"):  # outside of the page
            path.unlink()
        assert sent(client, "e.md", 900)[0] == 200
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["e.md"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_no_refusal_names_a_path_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "other" / files.UPLOADS).mkdir(parents=True)
    (tmp_path / "docs" / "letter.md").write_text("# Lamp\n\nIda Noll lit the lamp.\n", "utf-8")
    (tmp_path / "other" / files.UPLOADS / "there").symlink_to(tmp_path / "docs")
    index_documents(tmp_path / "home" / "corpora" / "sample", IndexRequest(paths=(str(tmp_path / "docs"),)), Settings(home=tmp_path / "home"))
    app = App(Settings(home=tmp_path / "home", roots=(tmp_path / "other",)), "sample")
    number = numbers(app)["letter.md"]
    with client_of(app, local=True) as client:
        address = client.get("/explore/original", params={"id": f"d{number}"}).json()["address"]
    with client_of(app) as client:
        refused = [
            client.get("/explore/original", params={"id": f"d{number}"}),
            client.get(address),
            client.post("/explore/upload", params={"name": "there/a.md"}, content=b"x", headers=BYTES),
            client.post("/explore/watch", json={"on": True}),
        ]
    for one in refused:
        assert one.status_code in (403, 404) and str(tmp_path) not in one.text, one.text
    token = SUBJECT.set("alice")  # as the door does for a caller with a token
    try:
        told = index.status(app, "sample").text
    finally:
        SUBJECT.reset(token)
    assert "Folders: docs." in told and str(tmp_path / "docs") in index.status(app, "sample").text


def test_a_caller_of_another_machine_is_told_no_path_of_this_one(app: App) -> None:
    root = app.settings.roots[0]
    with client_of(app) as client:
        state = client.get("/explore/state").json()
        TELL_PATHS.set(False)  # as `caller` does for a request
        data = load(app, "library", {})
        assert state["uploads"] == files.UPLOADS and state["roots"] == [] and [one["path"] for one in data["folders"]] == ["."]
        for path in (root, app.home):
            assert str(path) not in json.dumps([state, data])
        assert ["roots", "(not shown)"] in data["settings"]
        done = client.post("/explore/upload", params={"name": "told.md"}, content=b"x", headers=BYTES)
        assert done.json()["path"] == f"{files.UPLOADS}/told.md"
        (root / files.UPLOADS / "told.md").unlink()
    with client_of(app, local=True) as client:
        state = client.get("/explore/state").json()
        assert state["uploads"] == str(root / files.UPLOADS) and state["roots"] == [str(root)]


SECRET = "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc"


def test_an_original_shows_others_no_credential(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "keys.md").write_text(f"# Keys\n\nIda Noll has api_key = {SECRET} on the wall.\n", "utf-8")
    (folder / "utf16.txt").write_text(f"Tobias Fenn has api_key = {SECRET} in a drawer.\n", "utf-16")
    (folder / "plain.eml").write_text("From: a@example.org\nSubject: Lamp\n\nOlga Tamm painted Ostra Point.\n", "utf-8")
    with zipfile.ZipFile(folder / "both.zip", "w") as archive:
        archive.writestr("lamp.md", "# Lamp\n\nMarta Quill lit the lamp.\n")
        archive.writestr("tool.exe", b"MZ\0" * 50)
    given = IndexRequest(paths=(str(folder),), texts=(InlineText(f"Jon Reed keeps api_key = {SECRET} here.", "note", "A note"),))
    index_documents(tmp_path / "home" / "corpora" / "sample", given, Settings(home=tmp_path / "home"))

    def original(app: App, name: str, local: bool) -> tuple[int, bytes]:
        with client_of(app, local=local) as client:
            number = next(n for uri, n in numbers(app).items() if uri.startswith(name))
            given = client.get(client.get("/explore/original", params={"id": f"d{number}"}).json()["address"])
            return given.status_code, given.content

    app = App(Settings(home=tmp_path / "home", roots=(folder,)), "sample")
    for name, status in (("keys.md", 200), ("text:note", 200), ("utf16.txt", 403), ("both.zip", 403), ("plain.eml", 200)):
        assert original(app, name, False)[0] == status, name
        assert SECRET.encode() not in original(app, name, False)[1], name
    assert b"api_key = sk-p****" in original(app, "keys.md", False)[1]
    assert b"credential" in original(app, "utf16.txt", False)[1] and b"cannot be checked" in original(app, "both.zip", False)[1]
    shown = App(Settings(home=tmp_path / "home", roots=(folder,), show_secrets=True), "sample")
    for one, local in ((app, True), (shown, False)):
        assert SECRET.encode() in original(one, "keys.md", local)[1] and original(one, "both.zip", local)[0] == 200


CODED = base64.encodebytes(f"Ida Noll has api_key = {SECRET} on the wall.\n".encode()).decode()
MAIL = "From: a@example.org\nSubject: Lamp\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {}\n\n{}"


@pytest.mark.parametrize(("name", "text", "why"), [
    ("base64.eml", MAIL.format("base64", CODED), "credential"),
    ("quoted.eml", MAIL.format("quoted-printable", f"Ida Noll has api_key =3D {SECRET[:12]}=\n{SECRET[12:]} on the wall.\n"), "credential"),
    ("page.html", f"<p>Ida Noll has api_key = {SECRET[:12]}<b></b>{SECRET[12:]} on the wall.</p>", "credential"),
    ("note.rtf", "{\\rtf1\\ansi Ida Noll has api_key = " + SECRET[:12] + "{\\b " + SECRET[12:] + "} on the wall.}", "credential"),
    ("plain.html", f"<p>Ida Noll has api_key = {SECRET} on the wall.</p>", ""),
    ("lamp.eml", MAIL.format("8bit", "Olga Tamm painted Ostra Point.\n"), ""),
])  # fmt: skip
def test_a_text_whose_reader_finds_a_credential_that_no_mask_covers_is_not_given(tmp_path: Path, name: str, text: str, why: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    kind, _ = files.kind_of(path)
    assert kind.startswith("text/plain")
    before = files.withheld.cache_info()
    for _ in range(2):
        if why:
            with pytest.raises(BadInput, match=why):
                files.for_others(path, kind)
        else:
            assert SECRET.encode() not in (files.for_others(path, kind) or b"")
    after = files.withheld.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 1), "each version of a file is parsed once"


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "multipart/form-data; boundary=x"}, {"content-type": "application/x-www-form-urlencoded"}])
def test_what_a_form_of_another_page_could_send_is_refused(app: App, client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/explore/upload", params={"name": "form.md"}, content=b"x", headers=headers).status_code == 415
    assert client.post("/explore/watch", content=b'{"on": true}', headers=headers).status_code == 415
    assert not (app.settings.roots[0] / files.UPLOADS / "form.md").exists()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_a_link_leads_no_upload_and_no_original_out_of_its_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / files.UPLOADS).mkdir(parents=True)
    outside.mkdir()
    (root / files.UPLOADS / "there").symlink_to(outside)
    app = App(Settings(home=tmp_path / "home", roots=(root,)), "sample")
    with client_of(app) as client:
        assert client.post("/explore/upload", params={"name": "there/a.md"}, content=b"x", headers=BYTES).status_code in (400, 403)
        assert client.post("/explore/upload", params={"name": "there/b/c/a.md"}, content=b"x", headers=BYTES).status_code in (400, 403)
        assert client.post("/explore/upload", params={"name": "there", "replace": "1"}, content=b"x", headers=BYTES).status_code == 400
    assert list(outside.iterdir()) == []  # nor a folder
    (root / "letter.md").write_text("# Lamp\n\nIda Noll lit the lamp.\n", "utf-8")
    index_documents(tmp_path / "home" / "corpora" / "sample", IndexRequest(paths=(str(root),)), app.settings)
    (outside / "secret.md").write_text("secret", "utf-8")
    (root / "letter.md").unlink()
    (root / "letter.md").symlink_to(outside / "secret.md")
    with client_of(app, local=True) as client:
        given = client.get("/explore/original", params={"id": f"d{numbers(app)['letter.md']}"})
        assert given.status_code == 404 and "link" in given.json()["error"]


@pytest.mark.parametrize("path", ["/explore/upload", "/explore/watch"])
def test_a_client_that_goes_away_leaves_no_part_and_no_trace(app: App, path: str) -> None:
    made = Starlette(routes=[Route(one, call, methods=[how]) for one, how, call in Manager(app, "sample", TOOLS, False).routes()])
    kind = BYTES["content-type"] if path.endswith("upload") else "application/json"
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"name=gone.md", "headers": [(b"content-type", kind.encode())]}
    came = iter([{"type": "http.request", "body": b"half", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(came)

    async def send(_: Any) -> None: ...

    asyncio.run(made(scope, receive, send))  # an exception here would be a trace in the log
    assert not list((app.settings.roots[0] / files.UPLOADS).glob("*gone*")) and not list((app.settings.roots[0] / files.UPLOADS).glob(".*"))


@pytest.mark.parametrize("body", [b"", b"on", b"[]", b"null", b'{"on": true}' + b" " * 10_000])
def test_a_request_that_cannot_be_read_ends_no_watch(client: TestClient, body: bytes) -> None:
    refused = client.post("/explore/watch", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 400 and "JSON object" in refused.json()["error"]


def test_a_folder_is_shown_and_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS `open` starts a folder whose name ends in .app."""
    file, ran = tmp_path / "Notes.app" / "a.md", list[list[str]]()
    file.parent.mkdir()
    file.write_text("x", "utf-8")
    monkeypatch.setattr(files.subprocess, "Popen", lambda command, **_: ran.append(command))
    for platform in ("darwin", "linux"):
        monkeypatch.setattr(files.sys, "platform", platform)
        files.show_folder(file)
    assert ran == [["open", "-R", str(file)], ["xdg-open", str(file.parent)]]


def test_a_server_that_only_reads_takes_nothing(app: App) -> None:
    with client_of(app, ("local_search",)) as client:
        for path in ("/explore/upload?name=a.md", "/explore/watch"):
            assert client.post(path, content=b"{}", headers=BYTES).status_code in (404, 405)
        state = client.get("/explore/state").json()
        assert (state["writes"], state["uploads"], state["watches"]) == (False, "", False)


# ---- originals ------------------------------------------------------------------------------------


def test_an_original_is_shown_as_text_and_never_runs(app: App, client: TestClient) -> None:
    given = client.get("/explore/original", params={"id": f"d{numbers(app)['page.html']}"}).json()
    shown = client.get(given["address"])
    assert shown.status_code == 200 and shown.text == HTML
    assert shown.headers["content-type"] == "text/plain; charset=utf-8" and "sandbox" in shown.headers["content-security-policy"]
    assert shown.headers["x-content-type-options"] == "nosniff" and shown.headers["content-disposition"].startswith("inline; filename=\"page.html\"")
    assert given["folder"] == ""  # a caller from elsewhere is told no path
    text = client.get(client.get("/explore/original", params={"id": f"d{numbers(app)['text:note']}"}).json()["address"])
    assert text.text == "Olga Tamm painted Ostra Point."


@pytest.mark.parametrize(("name", "first", "kind", "shown"), [
    ("a.pdf", PDF, "application/pdf", True), ("a.txt", PDF, "application/pdf", True), ("a.pdf", b"<script>", "text/plain; charset=utf-8", True),
    ("a.svg", b"<svg onload=alert(1)>", "text/plain; charset=utf-8", True), ("a.html", HTML.encode(), "text/plain; charset=utf-8", True),
    ("a.png", b"\x89PNG\0", "image/png", True), ("a.docx", b"PK\x03\x04\0", "application/octet-stream", False), ("a.exe", b"MZ\0", "application/octet-stream", False),
    ("a.txt", b"\xff\xfe<\0s\0", "application/octet-stream", False), ("a.md", "ü".encode() * 2048, "text/plain; charset=utf-8", True),
])  # fmt: skip
def test_the_bytes_decide_how_an_original_is_given(name: str, first: bytes, kind: str, shown: bool) -> None:
    assert files.type_of(name, first, len(first)) == (kind, shown)
    headers = files.headers_of(name, kind, shown)
    assert headers["Content-Disposition"].startswith("inline" if shown else "attachment")
    assert kind == "application/pdf" or "sandbox" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", ['a".md', "a\r\nX-Evil: 1.md", "ü; filename=evil.exe", "a/b"])
def test_a_name_ends_no_header(name: str) -> None:
    disposition = files.headers_of(name, "text/plain", True)["Content-Disposition"]
    assert re.fullmatch(r"inline; filename=\"[A-Za-z0-9._ -]*\"; filename\*=UTF-8''[A-Za-z0-9%._~-]*", disposition)


def test_a_ticket_opens_one_file_for_a_while(app: App, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    known = numbers(app)
    address = client.get("/explore/original", params={"id": f"d{known['page.html']}"}).json()["address"]
    other = address.replace(f"/{known['page.html']}/", f"/{known['text:note']}/", 1)
    for wrong in (other, address.replace("sample", "other"), address.rsplit("/", 2)[0] + "/x/page.html", files.FILE, files.FILE + "a/1/x/y/z/w"):
        assert client.get(wrong).status_code == 404
    now = files.time.time()
    monkeypatch.setattr(files.time, "time", lambda: now + files.VALID + 1)
    assert client.get(address).status_code == 404


def test_a_tab_without_a_token_opens_what_its_ticket_names_in_its_tenant_alone(app: App) -> None:
    """Two tenants behind one door: the ticket of one leads to its own documents, never to those of the other."""
    home = app.home.parent / "tenant-b"
    b = App(replace(app.settings, home=home), "sample")
    index_documents(home / "corpora" / "sample", IndexRequest(texts=(InlineText("The other tenant.", "b", "B"),)), b.settings)
    import hashlib

    apps = {name: Starlette(routes=[Route(path, call, methods=[how]) for path, how, call in Manager(one, "sample", TOOLS, False).routes()]) for name, one in (("a", app), ("b", b))}
    tokens = {hashlib.sha256(f"token-of-{name}".encode()).digest(): name for name in "ab-"}
    door = Door(apps, tenants={"a": "a", "b": "b", "-": "b"}, tokens=tokens)
    with TestClient(door, base_url="http://localhost") as client:
        assert client.get("/explore/original", params={"id": "d1"}).status_code == 401
        for name in ("-", "b"):  # no token has the name that stands for "no token"
            given = client.get("/explore/original", params={"id": "d1"}, headers={"Authorization": f"Bearer token-of-{name}"}).json()
            opened = client.get(given["address"])
            assert opened.status_code == 200 and opened.text == "The other tenant."
        assert client.get(given["address"].replace("/b/", "/a/")).status_code == 401
        assert client.post(given["address"]).status_code in (401, 405)


# ---- what the views say -----------------------------------------------------------------------------


def test_a_search_is_narrowed_by_kind_folder_and_day(app: App) -> None:
    def found(**given: str) -> set[str]:
        hits: dict[str, Any] = load(app, "search", {"query": "Ostra Point", **given})
        return {one["uri"].rpartition("/")[2] for one in hits["documents"]}

    everything = found()
    assert everything == {"page.html", "2024-05-02 lamp.md", "text:note"}
    assert found(kind="html") == {"page.html"} and found(kind="md") == {"2024-05-02 lamp.md"}
    folders = [one["name"] for one in load(app, "search", {"query": "x"})["facets"]["folders"]]
    letters = next(name for name in folders if name.endswith("/letters"))
    assert found(folder=letters) == {"2024-05-02 lamp.md"} and found(folder=letters, kind="html") == set()
    assert found(**{"from": "2024-05"}) == {"2024-05-02 lamp.md"} and found(to="2023") == set()
    assert narrowing({"kind": "*", "folder": "[a]"}) == ["uri=?a?/*.?", "uri=?a?/*.?#*"]


def test_settings_are_told_without_keys(app: App) -> None:
    secret = "sk-canary-91aa30c7f6d2aa41"
    told = replace(app.settings, chat_model="small", chat_options={"extra_headers": {"Authorization": f"Bearer {secret}"}})
    shown = json.dumps(load(App(told, "sample"), "library", {}))
    assert "small" in shown and secret not in shown
