"""What the command line advises can be typed there: no message that reaches it speaks of a tool or its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.cli.output import COMMANDS, ONLY_TOOLS
from graphrag_mcp.tools import all_tools
from tests.support.command import SAMPLE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three documents, indexed into a home of its own."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "notes").mkdir()
    for name, text in (
        ("a.md", "# Heron\n\nThe Heron scheduler was written by Adaeze Lindholm in Trondheim.\n"),
        ("b.md", "# Ibis\n\nMateus Ferreira gave the Ibis archive to Adaeze Lindholm.\n"),
        ("c.md", "# get_source\n\n`get_source` is a tool, says Mateus Ferreira; call get_source(ids=[1]).\n"),
        ("d.md", "# Log\n\n" + "".join(f"Entry {n}: the engine was oiled and ran until noon.\n" for n in range(40))),
    ):
        (folder / "notes" / name).write_text(text, "utf-8")
    assert main(["index", str(folder / "notes"), "--home", str(folder / "home")]) == 0
    return folder


def ran(capsys: pytest.CaptureFixture[str], place: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command."""
    capsys.readouterr()
    status = main([*arguments, "--home", str(place / "home")])
    return status, *capsys.readouterr()


def test_every_tool_has_a_command_or_is_known_to_have_none() -> None:
    assert {tool.name for tool in all_tools()} == {*COMMANDS, *ONLY_TOOLS}


def test_the_next_command_can_be_typed_as_it_stands(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first, err = ran(capsys, place, "source", "d.md", "a.md", "--max-tokens", "200")
    following = next(line for line in err.splitlines() if line.startswith("next: graphrag-mcp "))
    status, out, _ = ran(capsys, place, *following.split()[2:])
    assert status == 0 and "Lindholm" in first and "Entry 39" in out.replace(first, "")


def test_the_next_page_of_a_search_is_named_and_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, word in enumerate("amber birch cedar delta ember fjord grove haven inlet jetty knoll ledge".split()):
        (tmp_path / f"{word}.md").write_text(f"# {word.title()}\n\nThe {word} engine of boat {n} was oiled by the {word} crew until noon.\n", "utf-8")
    assert ran(capsys, tmp_path, "index", str(tmp_path))[0] == 0
    for search in (["search", '"engine"', "--mode", "text"], ["search", "engine oiled until noon"], ["list"]):
        command = [*search, "--max-tokens", "200"]
        _, first, err = ran(capsys, tmp_path, *command)
        following = next(line for line in err.splitlines() if line.startswith("next page: "))
        status, second, _ = ran(capsys, tmp_path, *command, *following.removeprefix("next page: ").split())
        assert status == 0 and second.strip() and second != first, command


def test_where_there_is_no_index_the_first_command_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = ran(capsys, tmp_path, "search", "anything")
    assert status == 2 and err == "graphrag-mcp: there is no index yet. Call graphrag-mcp index . or give it texts first.\n"
    assert "next: graphrag-mcp index ." in ran(capsys, tmp_path, "status")[2]


def test_an_estimate_and_what_has_changed_are_sentences(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ran(capsys, tmp_path, "index", str(SAMPLE), "--dry-run")[1]
    assert "read 18 files (" in said and "ask no model, so it costs nothing" in said
    for text in (said, ran(capsys, place, "status", "--since", "1")[1]):
        assert "{" not in text and "[" not in text and "_" not in text.replace(str(place), ""), text
    record: dict[str, Any] = json.loads(ran(capsys, place, "status", "--since", "1", "--json")[1])
    assert record["since"] == 1 and isinstance(record["counts"], dict)
