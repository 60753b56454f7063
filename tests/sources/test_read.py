"""Files to documents: what is found, what is left out and why, and how each type and encoding is read."""

from __future__ import annotations

import os
import re
import socket
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_mcp import names
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import decode, walk
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.diff import changes
from graphrag_mcp.sources.read import Document, inline, load
from graphrag_mcp.sources.walk import PICTURE, FoundFile, Scope, find, hash_of
from graphrag_mcp.store import manifest
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.uris import file_and_key, is_note
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import write
from tests.support.workload import ends

SETTINGS = Settings(home=Path("unused"))


def uris(found: walk.Found) -> list[str]:
    return [file.uri for file in found.files]


def one(tmp_path: Path, name: str, content: str | bytes) -> list[Document]:
    """The documents of one file named itself."""
    write(tmp_path / "d", {name: content})
    found = find([str(tmp_path / "d" / name)], {}, SETTINGS)
    assert not found.errors, found.errors
    return [document for file in found.files for document in load(file, SETTINGS)]


# ---- finding --------------------------------------------------------------------------------------


def test_a_repository_gives_its_texts_and_a_count_for_everything_else(tmp_path: Path, without_ocr: None) -> None:
    repo = write(tmp_path / "project", {
        "README.md": "# Read me", "src/app.py": "print()", "docs/guide.md": "Guide", "notes/build/plan.txt": "a plan",
        ".gitignore": "*.log\n!keep.log\n/local/\n", "debug.log": "x", "keep.log": "kept", "local/a.txt": "x",
        "docs/.gitignore": "draft-*\n!draft-keep.md\n", "docs/draft-1.md": "x", "docs/draft-keep.md": "kept",
        ".graphragignore": "private/\n", "private/x.md": "x", ".git/config": "x", ".git/info/exclude": "scratch.txt\n",
        "scratch.txt": "x", "node_modules/a/index.js": "x", "package.json": "{}", "dist/app.js": "x", "build/out.js": "x",
        "myenv/pyvenv.cfg": "x", "myenv/lib/x.py": "x", "src/__pycache__/app.pyc": b"\0", "package-lock.json": "{}",
        "lib.min.js": "x", ".env": "KEY=1", "server.pem": "x", "deploy/id_rsa": "x", "deploy/credentials.json": "{}",
        "deploy/key.txt": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc", ".hidden.txt": "x", "logo.png": b"x", "old.pages": b"x",
        "blob.txt": b"ab\0cd", "empty.txt": "", "big.txt": "x" * 3000,
    })  # fmt: skip
    os.symlink(repo / "README.md", repo / "link.md")
    os.symlink(tmp_path, repo / "loop")
    os.mkfifo(repo / "pipe")
    found = find([str(repo)], {}, Settings(home=Path("unused"), max_file_bytes=2000))
    assert uris(found) == [
        "project/README.md", "project/docs/draft-keep.md", "project/docs/guide.md", "project/keep.log",
        "project/notes/build/plan.txt", "project/package.json", "project/src/app.py",
    ]  # fmt: skip
    assert found.skipped == {
        "binary": 1, "dependency or build folder": 5, "empty": 1, "hidden": 5, "ignored by .git/info/exclude": 1,
        "ignored by .gitignore": 3, "ignored by .graphragignore": 1, "lock file": 1,
        "looks like a secret": 5, "minified file": 1, "not a regular file": 1,
        "over 0.002 MB": 1, PICTURE: 1, "symbolic link": 2, "unsupported type": 1,
    }  # fmt: skip
    assert found.errors == [] and found.scopes == [Scope("project/", True)]
    assert found.sources == {"project": {"path": str(repo), "kind": "folder"}}


def test_labels_are_folder_names_and_the_deepest_source_owns_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"a/docs/x.md": "x", "b/docs/y.md": "y", "a/other.md": "o"})
    first = find([str(tmp_path / "a/docs"), str(tmp_path / "b/docs")], {}, SETTINGS)
    assert uris(first) == ["docs/x.md", "docs~2/y.md"]
    outer = find([str(tmp_path / "a")], first.sources, SETTINGS)
    assert uris(outer) == ["a/other.md", "docs/x.md"]
    assert outer.scopes == [Scope("a/", True), Scope("docs/", True)]
    both_orders = [find([str(tmp_path / x) for x in names], {}, SETTINGS) for names in (("a", "a/docs"), ("a/docs", "a"))]
    assert both_orders[0] == both_orders[1] and uris(both_orders[0]) == ["a/docs/x.md", "a/other.md"]
    assert both_orders[0].scopes == [Scope("a/", True), Scope("a/docs/", True)]


def test_a_part_of_a_source_is_a_scope_of_that_part(tmp_path: Path) -> None:
    write(tmp_path / "kb", {"guide/a.md": "a", "other/b.md": "b", ".gitignore": "*.tmp\n", "guide/c.tmp": "c", ".git/HEAD": ""})
    whole = find([str(tmp_path / "kb")], {}, SETTINGS)
    part = find([str(tmp_path / "kb/guide")], whole.sources, SETTINGS)
    assert (uris(part), part.scopes, part.sources) == (["kb/guide/a.md"], [Scope("kb/guide/", True)], whole.sources)
    assert part.skipped == {"ignored by .gitignore": 1}


def test_a_file_named_itself_is_taken_secrets_and_binaries_excepted(tmp_path: Path) -> None:
    base = write(tmp_path / "f", {
        ".hidden.md": "hidden", "node_modules/x.md": "inside", ".env": "KEY=1", "a.bin.txt": b"a\0b", "big.txt": "x" * 5000,
        ".gitignore": "*.md", "p.7z": b"PK", "empty.md": "",
    })  # fmt: skip
    names = [".hidden.md", "node_modules/x.md", ".env", "a.bin.txt", "big.txt", "p.7z", "empty.md"]
    small = Settings(home=Path("unused"), max_file_bytes=100)
    found = find([str(base / name) for name in names], {}, small)
    # The files' own folders become sources of kind "files", and no scope: naming a file removes nothing.
    assert uris(found) == ["f/.hidden.md", "f/big.txt", "f/node_modules/x.md"] and found.scopes == []
    assert found.sources == {"f": {"path": str(base), "kind": "files"}}
    assert found.errors == [
        {"path": "f/.env", "reason": "looks like a secret, and such files are never indexed"},
        {"path": "f/a.bin.txt", "reason": "binary"}, {"path": "f/p.7z", "reason": "binary"},
    ]  # fmt: skip
    assert found.skipped == {"empty": 1}
    assert [document.text for document in load(found.files[1], small)] == ["x" * 5000]
    later = find([str(base)], found.sources, SETTINGS)
    assert later.sources["f"]["kind"] == "folder" and later.scopes == [Scope("f/", True)]


def test_a_path_that_does_not_exist_is_an_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.md": "a"})
    found = find([str(tmp_path / "nowhere"), str(tmp_path / "d"), "bad\0path"], {}, SETTINGS)
    assert uris(found) == ["d/a.md"]
    assert [error["reason"] for error in found.errors] == ["there is no such file or folder", "not a path"]


def test_a_folder_that_is_a_link_is_resolved(tmp_path: Path) -> None:
    write(tmp_path / "real", {"a.md": "a"})
    os.symlink(tmp_path / "real", tmp_path / "link")
    assert uris(find([str(tmp_path / "link")], {}, SETTINGS)) == ["real/a.md"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_makes_the_scope_incomplete(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.md": "a", "shut/b.md": "b"})
    os.chmod(tmp_path / "d/shut", 0)
    found = find([str(tmp_path / "d")], {}, SETTINGS)
    os.chmod(tmp_path / "d/shut", 0o755)
    assert found.scopes == [Scope("d/", False)]
    assert found.errors == [{"path": "d/shut", "reason": "permission denied"}]


def test_a_folder_whose_ignore_file_cannot_be_used_is_left_out_and_named(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.md": "a", "sub/.gitignore": "x\n" * 200_000, "sub/b.md": "b"})
    found = find([str(tmp_path / "d")], {}, SETTINGS)
    assert uris(found) == ["d/a.md"] and found.scopes == [Scope("d/", False)]
    assert found.errors == [{"path": "d/sub", "reason": ".gitignore is over 256 KB, so this folder is left out"}]


def test_ignore_patterns_made_to_hang_do_not(tmp_path: Path) -> None:
    write(tmp_path / "d", {".gitignore": "*a*a*a*a*a*a*a*a*b\n" + "**/a/" * 20 + "b\n[z-a\n\\\n", "a" * 200 + "c": "x", "ok.md": "x"})
    write(tmp_path / "d", {"a/" * 60 + "c.md": "deep"})
    with ends():
        found = find([str(tmp_path / "d")], {}, SETTINGS)
    assert "d/ok.md" in uris(found) and f"d/{'a/' * 60}c.md" in uris(found)


def test_a_folder_swapped_for_a_link_gives_an_error_and_no_bytes(tmp_path: Path) -> None:
    write(tmp_path, {"in/sub/a.txt": "inside", "out/a.txt": "outside"})
    found = find([str(tmp_path / "in")], {}, SETTINGS)
    os.rename(tmp_path / "in/sub", tmp_path / "moved")
    os.symlink(tmp_path / "out", tmp_path / "in/sub")
    with pytest.raises(OSError):
        hash_of(found.files[0])
    with pytest.raises(ReadError, match="a symbolic link on the way"):
        list(load(found.files[0], SETTINGS))


@pytest.mark.parametrize("make", ["fifo", "socket", "link", "folder", "gone"])
def test_what_is_no_regular_file_is_never_read(tmp_path: Path, make: str) -> None:
    path = tmp_path / "thing.txt"
    if make == "fifo":
        os.mkfifo(path)
    elif make == "socket":
        there = os.getcwd()
        os.chdir(tmp_path)  # a socket's path must be short
        socket.socket(socket.AF_UNIX).bind("thing.txt")
        os.chdir(there)
    elif make == "link":
        os.symlink("/dev/zero", path)
    elif make == "folder":
        path.mkdir()
    file = FoundFile(str(path), "x/thing.txt", "x")
    with pytest.raises(OSError):
        hash_of(file)
    with pytest.raises(ReadError):
        list(load(file, SETTINGS))


def test_names_are_nfc_and_two_spellings_stay_two_documents(tmp_path: Path) -> None:
    write(tmp_path / "d", {"cafe\u0301.md": "decomposed", "caf\u00e9.md": "composed"})
    found = find([str(tmp_path / "d")], {}, SETTINGS)
    if len(os.listdir(tmp_path / "d")) == 2:
        assert uris(found) == ["d/caf\u00e9.md", "d/caf\u00e9.md~2"]
    (tmp_path / "e").mkdir()
    try:
        (tmp_path / os.fsdecode(b"e/bad\xff.md")).write_text("x")
    except OSError:
        return  # this file system takes only UTF-8
    assert uris(find([str(tmp_path / "e")], {}, SETTINGS)) == ["e/bad\\xff.md"]


def test_the_hash_is_of_the_bytes(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.md": "abc"})
    file = find([str(tmp_path / "d")], {}, SETTINGS).files[0]
    assert hash_of(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    (document,) = load(file, SETTINGS)
    assert (document.uri, document.file, document.file_sha) == ("d/a.md", "d/a.md", hash_of(file))


# ---- text -----------------------------------------------------------------------------------------


def test_line_ends_marks_and_nuls_are_normalised_and_nothing_else(tmp_path: Path) -> None:
    (document,) = one(tmp_path, "a.txt", b"\xef\xbb\xbfone \r\ntwo\rthree\n\n  four\t" + b"x" * 9000 + b"\0end\x0b\n")
    assert document.text == "one \ntwo\nthree\n\n  four\t" + "x" * 9000 + "end\x0b\n" and document.metadata == {}
    assert one(tmp_path, "blank.txt", " \n\t\n") == []


SPACED = "Mr.{0}Weston sold 40{0}000 bricks to Dr.{0}Ines{0}Faber. Later Mr.{0}Weston met Mrs.{0}Weston in Oslo."


@pytest.mark.parametrize("blank", ["\xa0", "\u2007", "\u2009", "\u202f"])
def test_a_no_break_blank_is_read_as_a_blank_also_in_texts_that_an_earlier_release_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: str
) -> None:
    text = SPACED.format(blank)
    (document,) = one(tmp_path, "a.txt", text)
    assert document.text == SPACED.format(" ") and len(document.text) == len(text)
    corpus, request = tmp_path / "c", IndexRequest(texts=(InlineText(text, "a"),))
    with monkeypatch.context() as earlier:
        earlier.setattr(decode, "_BLANK", re.compile("(?!)"))
        earlier.setattr(names, "VERSION", "nlp-0")
        index_documents(corpus, request, SETTINGS)
    assert open_snapshot(corpus).rows("text_units", "", ["text"])["text"].to_pylist() == [text]
    index_documents(corpus, IndexRequest(), SETTINGS)
    index_documents(tmp_path / "fresh", request, SETTINGS)
    derived, fresh = open_snapshot(corpus), open_snapshot(tmp_path / "fresh")
    assert derived.rows("text_units", "", ["text"])["text"].to_pylist() == [document.text]
    assert digest(derived)["content"] == digest(fresh)["content"]
    assert {"Weston", "Ines Faber"} <= set(fresh.rows("entities", "", ["title"])["title"].to_pylist())


def test_a_few_bad_bytes_in_utf8_are_replaced_and_said(tmp_path: Path) -> None:
    (document,) = one(tmp_path, "a.txt", "Héllo wörld, 世界.\n".encode() * 20 + b"\xff\xfe tail")
    assert document.text.endswith("\ufffd\ufffd tail")
    assert document.metadata == {"encoding": "utf-8 (2 invalid bytes replaced)"}
    (document,) = one(tmp_path, "b.txt", b"plain ascii text\n" * 40 + b"\xff")
    assert document.metadata == {"encoding": "utf-8 (1 invalid bytes replaced)"}


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.md", "---\ntitle: 'Front'\ndate: 2024-05-06\ntags: [one, two]\n---\n# Heading\n", "Front"),
        ("a.md", "intro text\n\n```\n# not this\n```\n\n## Second heading ##\n", "Second heading"),
        ("a.md", "Setext\n======\n\ntext", "Setext"),
        ("a.md", "+++\ntitle = 'Front'\ndate = 2024-05-06\n[extra]\nteam = \"Tide Office\"\n+++\n## Heading\n", "Front"),
        ("a.md", "+++ more and more\n\nText.", "+++ more and more"), ("a.md", "+++\nnot = [toml\n+++\n# Heading\n", "Heading"),
        ("a.md", "---\n\nA break, then text\n\nMore.", "A break, then text"),
        ("a.txt", "A first line\n\nThen the text.", "A first line"),
        ("a.txt", "第一行标题\n\n正文。", "第一行标题"),
        ("a.txt", "Text that goes\non at once.", "a.txt"),
        ("a.txt", "x" * 121 + "\n\ntext", "a.txt"),
        ("a.py", "# Copyright\n\nimport os\n", "a.py"),
        ("a.html", "<h1>Head</h1><p>text", "Head"),
        ("a.html", "<title>The &amp; title</title><h1>Head</h1>", "The & title"),
    ],
)
def test_titles(tmp_path: Path, name: str, text: str, title: str) -> None:
    (document,) = one(tmp_path, name, text)
    assert document.title == title


def test_front_matter_gives_metadata_and_date_and_stays_in_the_text(tmp_path: Path) -> None:
    text = "---\ntitle: The log\ndate: 2024-05-06T07:08:09+02:00\ntags:\n  - sea\n  - light\nnested:\n  a: b\n---\nBody.\n"
    (document,) = one(tmp_path, "a.md", text)
    assert document.text == text and document.created == "2024-05-06T05:08:09+00:00"
    assert document.metadata["title"] == "The log" and document.metadata["tags"] == ["sea", "light"]
    (other,) = one(tmp_path, "b.md", "no front matter")
    assert abs(datetime.fromisoformat(other.created) - datetime.now(UTC)).total_seconds() < 60


def test_comments_of_front_matter_are_no_part_of_its_values(tmp_path: Path) -> None:
    values = [
        "kind: note # yes", 'title: "Lamp # 3" # its name', "writer: 'Ada' #x", "up: a#b", "tags: # these",
        "  - sea # wide", "  - C# code", "also: #sea #light", "by: [Ada, Bo] # both", "link: https://example.org/#top",
        "aliases: [#sea, 'No # 4', \"[x]\"] # [three]",
    ]  # fmt: skip
    (document,) = one(tmp_path, "a.md", "\n".join(["---", *values, "---", "Body."]))
    assert {key: value for key, value in document.metadata.items() if key != "title"} == {
        "kind": "note", "writer": "Ada", "up": "a#b", "tags": ["sea", "C# code"], "also": "#sea #light", "by": ["Ada", "Bo"],
        "link": "https://example.org/#top", "aliases": ["#sea", "No # 4", "[x]"],
    }  # fmt: skip
    assert document.title == "Lamp # 3"


def test_html_becomes_readable_text(tmp_path: Path) -> None:
    (document,) = one(tmp_path, "a.html", """<!doctype html><html><head><title>Lights</title><style>p{color:red}</style>
<script>var x = "<p>no</p>";</script></head><body><!-- no --><h2>North <em>light</em></h2>
<p>Built in   1897 &mdash; by&nbsp;Brun.<br>Oil &lt; gas.</p><ul><li>one<li>two<ul><li>inner</ul></ul>
<ol><li>first<li>second</ol><table><tr><th>name<th>height</tr><tr><td>North<td>21 <b>m</b></tr></table>
<pre>def f():
    return 1</pre><img alt="a > b">end</body></html>""")  # fmt: skip
    assert document.title == "Lights"
    assert document.text.split("\n") == [
        "## North light", "", "Built in 1897 — by Brun.", "Oil < gas.", "", "- one", "- two", "  - inner", "",
        "1. first", "2. second", "", "| name | height |", "| North | 21 m |", "", "def f():", "    return 1", "", "[image: a > b] end", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "markup",
    ["<div>" * 100_000 + "deep", "<a" * 400_000, "<a '" * 200_001, '<a "> <a " ' * 90_000, "<!--" * 200_000, "<ul><li>x" * 60_000,
     "<table><tr>" + "<td>x" * 200_000, "&#" + "9" * 100_000 + ";", "&" * 500_000, "</" * 400_000 + ">", "<script>" * 100_000, "<script><title>" * 100_000, "<footer " * 100_000, "< " * 400_000],
)  # fmt: skip
def test_hostile_html_is_read_in_linear_time(tmp_path: Path, markup: str) -> None:
    with ends():  # about 0.3 s; the standard parser takes minutes on some
        one(tmp_path, "a.html", markup)


# ---- rows -----------------------------------------------------------------------------------------


def rows(documents: list[Document]) -> list[tuple[str, str, str, dict]]:
    return [(document.uri, document.title, document.text, document.metadata) for document in documents]


def test_csv_rows_are_documents_with_metadata(tmp_path: Path) -> None:
    text = 'id,title,text,year\n7,One,"First, with\na line",1999\n7,Two,Second,\n,Three,Third,2001\n\n'
    assert rows(one(tmp_path, "a.csv", text)) == [
        ("d/a.csv#7", "One", "First, with\na line", {"year": "1999"}),
        ("d/a.csv#7~2", "Two", "Second", {}),
        ("d/a.csv#3", "Three", "Third", {"year": "2001"}),
    ]
    assert rows(one(tmp_path, "b.csv", "name;height\nNorth;21\nSouth;14;extra\n")) == [
        ("d/b.csv#1", "b.csv #1", "name: North\nheight: 21", {"name": "North", "height": "21"}),
        ("d/b.csv#2", "b.csv #2", "name: South\nheight: 14\ncolumn 3: extra", {"name": "South", "height": "14", "column 3": "extra"}),
    ]
    assert rows(one(tmp_path, "c.tsv", "body\tlang\n灯塔\tzh\n")) == [("d/c.tsv#1", "c.tsv #1", "灯塔", {"lang": "zh"})]


def test_json_in_its_shapes(tmp_path: Path) -> None:
    objects = '[{"id": "a", "content": "Text A", "n": 1, "ok": true, "deep": {"x": 1}, "tags": ["p", "q"]}, {"x": {"y": 2}}]'
    expected = [
        ("d/a.json#a", "a.json #a", "Text A", {"n": 1, "ok": True, "tags": ["p", "q"]}),
        ("d/a.json#2", "a.json #2", 'x: {"y": 2}', {}),
    ]
    assert rows(one(tmp_path, "a.json", objects)) == expected
    assert rows(one(tmp_path, "a.json", f'{{"documents": {objects}}}')) == expected
    for plain in ('{"a": 1}', "[1, 2]", "not json", "9" * 6000):
        assert rows(one(tmp_path, "a.json", plain)) == [("d/a.json", "a.json", plain, {})]


def test_json_lines_keep_a_torn_last_line(tmp_path: Path) -> None:
    text = '{"_id": 3, "text": "Third \\ud800 \\u0000", "date": "2024-01-02"}\n\n{"text": "torn'
    documents = one(tmp_path, "a.jsonl", text)
    assert rows(documents) == [
        ("d/a.jsonl#3", "a.jsonl #3", "Third \ufffd ", {"date": "2024-01-02"}), ("d/a.jsonl#2", "a.jsonl #2", '{"text": "torn', {}),
    ]  # fmt: skip
    assert documents[0].created == "2024-01-02T00:00:00+00:00"
    assert [document.uri for document in one(tmp_path, "b.jsonl", "just\ntext")] == ["d/b.jsonl"]


def test_parquet_rows(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    table = pa.table({"id": [1, 2], "title": ["One", None], "text": ["First", "Second"], "score": [0.5, float("nan")],
                      "day": [datetime(2024, 1, 2), None], "raw": [b"x", b"y"]})  # fmt: skip
    pq.write_table(table, tmp_path / "d/a.parquet")
    found = find([str(tmp_path / "d")], {}, SETTINGS)
    assert rows(list(load(found.files[0], SETTINGS))) == [
        ("d/a.parquet#1", "One", "First", {"score": 0.5, "day": "2024-01-02T00:00:00+00:00"}),
        ("d/a.parquet#2", "a.parquet #2", "Second", {}),
    ]
    (tmp_path / "d/a.parquet").write_bytes(b"PAR1 broken PAR1")
    with pytest.raises(ReadError, match="cannot be read as parquet"):
        list(load(found.files[0], SETTINGS))


def test_a_file_that_grew_over_the_limit_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "d", {"a.txt": "small"})
    small = Settings(home=Path("unused"), max_file_bytes=1000)
    file = find([str(tmp_path / "d")], {}, small).files[0]
    write(tmp_path / "d", {"a.txt": "x" * 2000})
    with pytest.raises(ReadError, match="over 0.001 MB"):
        list(load(file, small))


def test_inline_texts(tmp_path: Path) -> None:
    given = [
        InlineText("# Note\r\nBody", id="n1", metadata={"who": "me", "when": datetime(2024, 1, 2)}), InlineText("abc"),
        InlineText("  \n"), InlineText("first", id="same"), InlineText("second", id="same", title="T"),
    ]  # fmt: skip
    documents = list(inline(given))
    assert [(document.uri, document.title, document.text) for document in documents] == [
        ("text:n1", "Note", "# Note\nBody"), ("text:ba7816bf8f01", "ba7816bf8f01", "abc"), ("text:same", "T", "second"),
    ]  # fmt: skip
    assert documents[0].metadata == {"who": "me", "when": "2024-01-02 00:00:00"} and documents[0].file == "text:n1"


# ---- objects and rows as documents: a file that is one, and a file that is far too many ----


def test_a_json_file_of_one_object_with_a_text_is_that_document(tmp_path: Path) -> None:
    whole = '{"title": "Lamps", "text": "The lamp was lit.", "date": "2024-05-06", "n": 3, "tags": ["a"], "id": "x7"}'
    (document,) = one(tmp_path, "a.json", whole)
    assert (document.uri, document.title, document.text) == ("d/a.json", "Lamps", "The lamp was lit.")
    assert document.metadata == {"date": "2024-05-06", "n": 3, "tags": ["a"]} and document.created.startswith(
        "2024-05-06"
    )
    for text in (
        '{"Title": "Lamps", "Body": "It burns.", "by": {"name": "Ada"}}',
        '{"content": "It burns.", "title": "Lamps"}',
    ):
        (document,) = one(tmp_path, "a.json", text)
        assert (document.uri, document.title, document.text) == ("d/a.json", "Lamps", "It burns.")
    for plain in (
        '{"title": "Lamps"}',
        '{"text": "", "title": "L"}',
        '{"text": "a", "children": [{"text": "b"}]}',
        '{"text": 3}',
    ):
        assert rows(one(tmp_path, "a.json", plain)) == [("d/a.json", "a.json", plain, {})]


def test_a_small_file_of_very_many_rows_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("n\n" + "1\n" * 5_000)
    (folder / "b.jsonl").write_text('{"text": "a"}\n' * 31)
    (folder / "c.csv").write_text("n\n" + "1\n" * 30)
    with ends():
        result = index_documents(
            tmp_path / "c", IndexRequest(paths=(str(folder),)), Settings(home=tmp_path, max_text_units=30)
        )
    assert result.counts["documents_total"] == 30
    assert {error["path"] for error in result.errors} == {"d/a.csv", "d/b.jsonl"}
    assert all("over 30 rows" in error["reason"] and "max_text_units" in error["reason"] for error in result.errors)


# ---- a home that lies in a folder that is indexed: its own files are no documents ----


def test_a_home_among_the_documents_is_none_of_them(tmp_path: Path) -> None:
    """Read as documents, an index would hold itself, what was removed from it, and what others asked."""
    base = write(tmp_path / "d", {
        "a.md": "a", "idx/b.md": "b", "idx/corpora/k/manifest.json": "{}", "idx/jobs/j.json": '{"text": "x"}',
        "idx/drift/s.jsonl": '{"text": "x"}', "theirs/corpora/k/manifest.json": '{"text": "x"}',
        "theirs/corpora/k/truth/x.md": "x", "theirs/corpora/k/tables/x.md": "x", "drift/c.md": "c", "idx/key": "of the home",
    })  # fmt: skip
    settings = Settings(home=base / "idx")
    found = find([str(base)], {}, settings)
    assert uris(found) == ["d/a.md", "d/drift/c.md", "d/idx/b.md"] and not found.errors
    assert found.skipped == {"dependency or build folder": 1, "index of this server": 4}
    named = find([str(base / "idx/corpora"), str(base / "idx/jobs/j.json"), str(base / "idx/key")], {}, settings)
    assert named.files == [] and named.sources == {} and named.scopes == []
    assert {error["reason"] for error in named.errors} == {"index of this server, and such files are never indexed"}


def test_a_licence_that_lies_in_a_folder_is_its_first_lines_and_a_named_one_is_whole(tmp_path: Path) -> None:
    from identify.vendor.licenses import LICENSES

    texts = dict(LICENSES)
    mit = texts["MIT"].replace("[year]", "2026").replace("[fullname]", "Nordwind AG")
    write(tmp_path / "d", {"LICENSE": mit, "COPYING": texts["GPL-3.0"].replace("\n", "\n "), "contract.md": "# Contract\n\nThe software is provided by Halden Systems, free of charge, for two years."})
    folder, named = tmp_path / "d", tmp_path / "d" / "LICENSE"
    index_documents(tmp_path / "c", IndexRequest(paths=(str(folder),)), SETTINGS)
    rows = {row["uri"]: row for row in open_snapshot(tmp_path / "c").rows("documents").to_pylist()}
    assert {uri: row["title"] for uri, row in rows.items()} == {"d/LICENSE": "Licence MIT", "d/COPYING": "Licence GPL-3.0", "d/contract.md": "Contract"}
    passages = {row["uri"]: row["text"] for row in open_snapshot(tmp_path / "c").rows("passages").to_pylist()}
    assert "Nordwind AG" in passages["d/LICENSE"] and len(passages["d/LICENSE"]) < 100 and len(passages["d/COPYING"]) < 300
    assert "two years" in passages["d/contract.md"]
    result = index_documents(tmp_path / "other", IndexRequest(paths=(str(folder),)), SETTINGS)
    assert result.skipped["terms of a known licence (name the file to index all of it)"] == 2
    assert len(one(tmp_path, "LICENSE", mit)[0].text) > 900 and named.exists()


def test_every_template_of_a_licence_is_known_as_a_licence() -> None:
    from identify.vendor.licenses import LICENSES

    from graphrag_mcp.sources.licences import without_terms
    from graphrag_mcp.sources.piece import Piece

    assert [name for name, text in LICENSES if without_terms(Piece(text))[1] is None] == []


def test_the_table_of_formats_in_the_docs_names_every_suffix_that_has_a_reader() -> None:
    from graphrag_mcp.sources.formats import FORMATS, prose

    page = (Path(__file__).parents[2] / "docs/how-to/folders.md").read_text("utf-8")
    table = page.partition("## What is read")[2].partition("\n\nWhen ")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    named = {suffix for cell in first for suffix in re.findall(r"`(\w+)`", cell)}
    assert named == {suffix for suffix, reader in FORMATS.items() if reader is not prose}


def test_a_file_whose_pictures_were_left_out_is_named_until_it_cannot_be_read(tmp_path: Path, without_ocr: None) -> None:
    with ZipFile(write(tmp_path / "in", {"plain.txt": "Words."}) / "box.zip", "w") as box:
        box.writestr("note.txt", "A note of the harbour.")
        box.writestr("scan.png", b"\x89PNG\r\n\x1a\n")
    corpus, request = tmp_path / "home" / "c", IndexRequest(paths=(str(tmp_path / "in"),))

    def left_out() -> list[str]:
        index_documents(corpus, request, SETTINGS)
        assert (stored := manifest.read(corpus)) is not None
        return changes(corpus, stored, SETTINGS)["pictures_left_out"]

    assert left_out() == ["in/box.zip"]
    (tmp_path / "in/box.zip").write_bytes(b"PK\x03\x04 torn")
    assert left_out() == []  # else each later run reads it again


@pytest.mark.parametrize("name", ["v1.2 #3.md", "notes v1.2#3.md", "C# notes.md", "Minutes #3.md"])
def test_a_number_sign_in_the_name_of_a_file_begins_no_key(name: str) -> None:
    assert file_and_key(f"docs/{name}") == (f"docs/{name}", "")
    assert is_note(f"docs/{name}", {"kind": "note"}) and not is_note("docs/visits.csv#3", {"kind": "note"})
    assert file_and_key(f"docs/v1.2 #3.zip#a/{name}") == ("docs/v1.2 #3.zip", f"a/{name}")


def test_what_stands_beside_a_licence_is_kept(tmp_path: Path) -> None:
    """The history of a project behind the GPL, or a remark behind the MIT licence, could not be found."""
    from identify.vendor.licenses import LICENSES

    from graphrag_mcp.sources.licences import without_terms
    from graphrag_mcp.sources.piece import Piece

    terms = dict(LICENSES)["MIT"]
    between = "Ask Petra Unruh for a commercial licence."
    text = f"# Wrapgear\n\nBuilt by Zelda Kornblum.\n\n{terms}\n\n{between}\n\n{dict(LICENSES)['GPL-3.0']}\n\nReviewed on 3 May by Greta Lindqvist."
    cut, left = without_terms(Piece(text, places=((0, "p. 1"), (text.index(between), "p. 2"), (len(text) - 9, "p. 9"))))
    assert left is not None and len(cut.text) < 600, cut.text
    assert all(own in cut.text for own in ("Zelda Kornblum", between, "Reviewed on 3 May by Greta Lindqvist."))
    named = {name: cut.text[offset : offset + 9] for offset, name in cut.places}
    assert named == {"p. 1": "# Wrapgea", "p. 2": between[:9], "p. 9": cut.text[-9:]}
