"""Files made to do harm: each is reported, none ends the run, takes the machine's memory or brings in what lies outside.

The short form of campaigns/hostile.py, which makes all of them as large as an attacker would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.sources import piece as pieces
from graphrag_mcp.sources import read as parsers
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.store import manifest
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.text.uris import file_and_key
from tests.support import hostile_archives, hostile_files
from tests.support.command import ROOT, clean_environment

# Without the engine for pictures, which takes seconds to load: what harms it stands in test_ocr.py.
pytestmark = pytest.mark.usefixtures("without_ocr")

posix = pytest.mark.skipif(os.name != "posix", reason="needs FIFOs, links and strange names")


@posix
def test_a_folder_of_hostile_files_is_indexed_and_each_is_accounted_for(tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    there = hostile_files.write(folder, only=hostile_files.short())
    command = [
        sys.executable,
        "-m",
        "graphrag_mcp",
        "index",
        str(folder),
        "--home",
        str(home),
        "--corpus",
        "c",
        "--json",
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(GRAPHRAG_MCP_OCR="off"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    most = hostile_files.watch(process.pid)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err.decode()[-2000:]  # files that cannot be read are no failure
    assert most() < 1_100_000_000  # 600 MB for a file; the rest is Python, and what both processes share
    result = json.loads(out)
    log = live_documents(home / "corpora/c", manifest.read(home / "corpora/c"), ["uri", "file", "text"]).to_pylist()
    read = {row["file"] for row in log}
    in_part = [  # pages or lines of a file that are not read
        one for one in result["skipped_files"] if one["path"] in read or one["reason"].startswith("in another file: ")
    ]
    none_read = {file_and_key(one["path"])[0] for one in in_part} - read  # each part of these is named
    skipped = sum(result["skipped"].values()) - len(in_part) + len(none_read)
    assert len(read) + len(result["errors"]) + skipped == there
    texts = "\n".join(row["text"] for row in log)
    assert hostile_files.SECRET not in texts and "root:" not in texts
    assert not [row["uri"] for row in log if any(ch in row["uri"] for ch in "\n\r\t\x1b\x07\u2028")]
    assert not [
        error for error in result["errors"] if len(error["reason"]) > 200 or not error["path"].startswith("in/")
    ]
    assert {"in/parent-loop.pdf", "in/one-line.txt", "in/tables.html"} <= {row["file"] for row in log}


@pytest.mark.parametrize(
    "name", ["entity-late.docx", "laughs-utf16.xlsx", "bomb.pptx", "parts.epub", "locked.docx", "scanned.pdf"]
)
def test_the_reason_is_in_plain_words(name: str) -> None:
    with pytest.raises(ReadError) as said:
        parsers.parse(hostile_archives.CASES[name](False), name.rpartition(".")[2])
    assert "Error" not in str(said.value) and "Traceback" not in str(said.value)


def test_a_file_that_never_ends_costs_its_seconds_and_the_next_is_read() -> None:
    parsers.parse(hostile_archives.document("warm"), "docx")
    # Near its limit of memory the library may crash before its time is over.
    with pytest.raises(ReadError, match="over 1 seconds|crashed"):
        parsers.parse(hostile_archives.CASES["cells.xlsx"](True), "xlsx", seconds=1)
    assert parsers.parse(hostile_archives.pages("after"), "pdf")[0].text == "after\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on memory are those of Linux")
def test_a_file_that_takes_too_much_memory_is_named_and_the_next_is_read() -> None:
    with pytest.raises(ReadError, match="memory"):
        parsers.parse(hostile_archives.CASES["deep-state.pdf"](True), "pdf")
    assert parsers.parse(hostile_archives.pages("after"), "pdf")[0].text == "after\n"


def test_a_parser_that_is_killed_is_that_files_error() -> None:
    parsers.parse(hostile_archives.pages("before"), "pdf")
    child = parsers._child
    assert child is not None
    child.process.kill()
    child.process.wait()
    assert parsers.parse(hostile_archives.pages("after"), "pdf")[0].text == "after\n"
    assert parsers._child is not child


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_parser_knows_neither_keys_nor_names_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers.close()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-31337")
    monkeypatch.setenv("GRAPHRAG_MCP_TOKENS", "me=canary-canary-31337")
    parsers.parse(hostile_archives.pages("words"), "pdf")
    child = parsers._child
    assert child is not None
    environment = Path(f"/proc/{child.process.pid}/environ").read_bytes()
    assert b"canary" not in environment and b"PATH=" in environment
    held = [os.readlink(f"/proc/{child.process.pid}/fd/{one}") for one in os.listdir(f"/proc/{child.process.pid}/fd")]
    assert not [one for one in held if not one.startswith(("pipe:", "/dev/null"))]


FORBIDDEN = {
    "a file": "open('/etc/hostname')", "a key": "open(os.path.expanduser('~/.bashrc'))",
    "writing": "open(os.path.join(sys.prefix, 'x'), 'w')", "a socket": "socket.create_connection(('127.0.0.1', 9))",
    "a name": "socket.getaddrinfo('localhost', 80)", "a process": "subprocess.run(['true'])", "a shell": "os.system('true')",
    "a fork": "os.fork()", "removing": "os.remove('/nowhere/at/all')", "a page": "urllib.request.urlopen('http://127.0.0.1:9')",
    "a pipe": "os.open('/etc/hostname', os.O_RDONLY)", "another process": "os.execv('/bin/true', ['true'])",
}  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="names of this platform")
def test_while_bytes_are_parsed_nothing_else_can_be_opened() -> None:
    lines = [
        "import os, socket, subprocess, sys, urllib.request",
        "from graphrag_mcp.sources import parser_child as child",
    ]
    lines += ["sys.addaudithook(child._guard)", "child._sealed = True", "import email.charset, encodings.cp037"]
    for name, code in FORBIDDEN.items():
        lines += ["try:", f"    {code}", f"    print({name!r}, 'was possible')", "except PermissionError as error:"]
        lines += [f"    'a parser may' in str(error) or print({name!r}, error)"]
    lines += ["print('end')"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env=clean_environment(GRAPHRAG_MCP_OCR="off"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr


def test_what_the_child_says_is_not_believed() -> None:
    parts = (b'["a", "b", "c", [], true, [], []]', b'[1, "b", "c", {}, true, [], []]', b'["a", "b", "c", {}, true, [[9, "p. 1"]], []]')
    written = (b'["a", "b", "c", {}, true, [], [["x", 1, "a", ""]]]', b'["a", "b", "c", {}, true, [], [[0, 1]]]', b'["a", "b", "c", {}, true, []]')
    for line in (b"[]", b"nonsense", *parts, *written, b"[" * 100_000, b"7"):
        with pytest.raises(ReadError, match="its parser crashed"):
            parsers._read(line + b"\n")
    frame = ["a\0\r\nb\ud800", "t", "", {"n": 1}, True, [[1, "p. 2"]], [[0, 1, "a.html", ""]]]
    piece = parsers._read(json.dumps(frame).encode() + b"\n")
    assert isinstance(piece, pieces.Piece) and piece.text == "a\nb\ufffd"
