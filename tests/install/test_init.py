"""`init`: a settings file that says everything and changes nothing, and prompts to edit."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.install.init import FILE, GROUPS, init, settings_text
from graphrag_mcp.llm import prompts
from graphrag_mcp.settings import Settings, load
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.openai_server import openai_server

SETTING = re.compile(r"^# (\w+) = (.*)$", re.MULTILINE)


def loaded(path: Path) -> Settings:
    return load({"GRAPHRAG_MCP_SETTINGS": str(path)}, roots=["somewhere"])


def test_every_setting_is_in_the_file_once_in_the_order_of_the_code_with_a_line_that_explains_it() -> None:
    assert sorted(name for name, _ in SETTING.findall(settings_text())) == sorted(f.name for f in fields(Settings))
    explained = {name: line for group in GROUPS.values() for name, line in group.items()}
    assert list(explained) == [f.name for f in fields(Settings)]
    assert [name for name, line in explained.items() if len(line) < 10 or not line.endswith((".", ","))] == []


def test_the_file_as_written_changes_nothing(tmp_path: Path) -> None:
    path = init(tmp_path)[0]
    assert path == tmp_path / FILE
    assert loaded(path) == load({}, roots=["somewhere"])


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


def test_the_preset_for_small_models_gives_way_to_what_is_set(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('preset = "small"\n[report]\ntokens = 2000\n', "utf-8")
    small = loaded(file)
    assert (small.chunk_size, small.gleanings, len(small.entity_types)) == (600, "0", 4)
    assert small.report_tokens == 2000
    file.write_text("[claims]\nenabled = true\n", "utf-8")
    with pytest.raises(BadInput, match="unknown setting 'claims_enabled'.*Remove it if it is of an earlier release"):
        loaded(file)
    file.write_text('preset = "tiny"\n', "utf-8")
    with pytest.raises(BadInput, match="preset"):
        loaded(file)


def test_the_preset_for_small_models_shortens_what_is_sent(tmp_path: Path) -> None:
    sent: dict[str, list[str]] = {}
    text = " ".join(f"Keeper {n} of Tesk repaired lock {n} for Orla Venn and rang the bell." for n in range(120))
    for name in ("", "small"):
        file = tmp_path / f"{name}.toml"
        with openai_server(lambda messages, body: "<|COMPLETE|>") as server:
            file.write_text(f'chat_model = "m"\nbase_url = "{server.url}"\nmax_retries = 0\npreset = "{name}"\n', "utf-8")
            request = IndexRequest(texts=(InlineText(text, "a"),), method="llm")
            index_documents(tmp_path / f"c{name}", request, loaded(file))
            sent[name] = [seen.body["messages"][0]["content"] for seen in server.requests]
    assert max(map(len, sent["small"])) < 0.8 * max(map(len, sent[""]))
    texts = [one for one in sent["small"] if "\nTypes: " in one]
    assert texts and all("\nTypes: person, organization, location, event\n" in one for one in texts)
