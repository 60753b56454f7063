"""Texts that are crowded with names: how many names and pairs are kept, who indexes them, and in how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.index import graph
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.extract import UnitNames, rules
from graphrag_mcp.names.extract import most
from tests.support import dense_texts, hostile_files
from tests.support.command import ROOT, clean_environment, run_cli

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="nothing tells the memory of a process")


def crowd(size: int, name: str = "latin") -> str:
    return dense_texts.make(name, size)[1].decode()


def read(text: str) -> list[tuple[UnitNames, int, bool]]:
    """Of each text unit its names, the number of its pairs, and whether any were left out."""
    found = []
    for number, unit in enumerate(chunk(text, ChunkParams())):
        own, core = text[unit.span.start : unit.span.end], unit.passages[0].start - unit.span.start
        names, places = rules.collect(f"u{number}", own, core)
        assert {key for _, key in places} == {one.key for one in names.named}
        pairs = graph.pairs(names.named, {one.key: one.key for one in names.named})
        found.append((names, len(pairs), names.capped))
    return found


# ---- names and pairs


@pytest.mark.parametrize("name", dense_texts.FAMILIES)
def test_no_text_unit_has_more_names_than_the_cap(name: str) -> None:
    for names, pairs, _ in read(crowd(12_000, name)):
        assert len(names.named) <= rules.MOST_NAMES
        assert pairs <= graph.REACH * sum(len(one.sentences) // 2 for one in names.named)


@pytest.mark.parametrize("name", ["latin", "latin-comma", "cyrillic", "chinese"])
def test_a_list_relates_none_of_its_names_and_what_is_left_out_is_told(name: str) -> None:
    text = crowd(30_000, name)
    found = read(text)
    assert any(capped for _, _, capped in found)
    for (names, _, capped), unit in zip(found, chunk(text, ChunkParams()), strict=True):
        crowded = len(names.named) >= most(text[unit.passages[0].start : unit.span.end])
        assert capped or not crowded
        assert not capped or crowded or len(names.named) <= rules.KEPT


# ---- memory


@LINUX
def test_a_run_over_its_memory_says_so_and_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("Ada Lovelace met Charles Babbage in London.", "utf-8")
    home = tmp_path / "home"
    assert run_cli("index", tmp_path / "in", "--home", home).returncode == 0
    (manifest,) = (home / "corpora").glob("*/manifest.json")
    before = json.loads(manifest.read_bytes())
    (tmp_path / "in" / "b.txt").write_text(crowd(1_500_000), "utf-8")
    (tmp_path / "settings.toml").write_text("max_memory = 250\n", "utf-8")
    environment = clean_environment(GRAPHRAG_MCP_SETTINGS=str(tmp_path / "settings.toml"))
    ended = run_cli("index", tmp_path / "in", "--home", home, env=environment)
    assert ended.returncode == 1 and "more than 250 MB of memory" in ended.stderr
    assert "Traceback" not in ended.stderr
    after = json.loads(manifest.read_bytes())
    assert after["generation"] == before["generation"] and after["counters"] == before["counters"]
    assert "Ada Lovelace" in run_cli("entity", "Ada Lovelace", "--home", home).stdout
    assert run_cli("doctor", "--home", home).returncode == 0


@LINUX
@pytest.mark.parametrize("name", ["latin", "chinese-none"])
def test_two_megabytes_of_names_take_little_memory(name: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(crowd(2_000_000, name), "utf-8")
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(tmp_path / "in"), "--home", str(tmp_path / "home")]
    process = subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stdout=subprocess.DEVNULL)
    most = hostile_files.watch(process.pid)
    assert process.wait() == 0
    assert 0 < most() < 1_000_000_000  # about 450 MB; without caps 3,300
