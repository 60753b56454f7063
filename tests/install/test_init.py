"""`init`: a settings file that says everything and changes nothing, and prompts to edit."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput
from graphrag_mcp.install.init import GROUPS, init, settings_text
from graphrag_mcp.llm import prompts
from graphrag_mcp.settings import Settings, load

SETTING = re.compile(r"^# (\w+) = (.*)$", re.MULTILINE)


def loaded(path: Path) -> Settings:
    return load({"GRAPHRAG_MCP_SETTINGS": str(path)}, roots=["somewhere"])


def test_every_setting_is_in_the_file_once_in_the_order_of_the_code_with_a_line_that_explains_it() -> None:
    assert sorted(name for name, _ in SETTING.findall(settings_text())) == sorted(f.name for f in fields(Settings))
    explained = {name: line for group in GROUPS.values() for name, line in group.items()}
    assert list(explained) == [f.name for f in fields(Settings)]
    assert [name for name, line in explained.items() if len(line) < 10 or not line.endswith((".", ","))] == []


def test_the_file_without_its_comment_signs_holds_every_default(tmp_path: Path) -> None:
    path = init(tmp_path)[0]
    path.write_text(SETTING.sub(r"\1 = \2", path.read_text("utf-8")), "utf-8")
    assert loaded(path) == load({}, roots=["somewhere"])
    edited = SETTING.sub(r"\1 = \2", settings_text()).replace("chunk_size = 1200", "chunk_size = 900")
    path.write_text(edited, "utf-8")
    assert loaded(path) == replace(load({}, roots=["somewhere"]), chunk_size=900)


def test_the_prompts_are_the_shipped_ones_and_work_where_the_readme_says(tmp_path: Path) -> None:
    written = init(tmp_path / "mine")
    names = sorted(path.stem for path in written if path.parent.name == "prompts" and path.stem != "README")
    assert names == prompts.names()
    for name in names:
        shipped = (prompts.folder() / f"{name}.md").read_bytes()
        assert (tmp_path / "mine" / "prompts" / f"{name}.md").read_bytes() == shipped
        assert prompts.load(name, tmp_path / "mine").template == prompts.load(name).template
    assert "corpora/NAME/prompts" in (tmp_path / "mine" / "prompts" / "README.md").read_text("utf-8")


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path = init(tmp_path)[0]
    path.write_text("chunk_size = 700\n", "utf-8")
    with pytest.raises(BadInput, match="--force"):
        init(tmp_path)
    assert loaded(path).chunk_size == 700
    init(tmp_path, force=True)
    assert loaded(path).chunk_size == 1200
