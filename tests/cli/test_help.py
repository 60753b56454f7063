"""The help of the command line: groups, and examples that parse."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from graphrag_mcp.cli.main import COMMANDS, EXAMPLES, GROUPS, parser, run_of
from graphrag_mcp.cli.output import pace
from tests.support.command import clean_environment, run_cli, run_here


def test_every_command_stands_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(COMMANDS)


def test_every_example_is_accepted_and_shown() -> None:
    whole = parser()
    for name, lines in EXAMPLES.items():
        said = whole.commands[name].format_help() if name else whole.format_help()
        for line in lines:
            assert f"graphrag-mcp {line}\n" in said
            assert whole.parse_args(shlex.split(line)).run is run_of(name or line.split()[0])


def test_the_help_names_all_groups_and_has_no_colour_in_a_pipe() -> None:
    done = run_here("--help")
    assert done.returncode == 0 and [title for title in GROUPS if f"\n{title}:\n" not in done.stdout] == []
    assert "\x1b" not in done.stdout and "examples:" in done.stdout


def test_a_word_that_is_no_command_gets_the_list_of_them() -> None:
    done = run_here("serch", "x")
    assert done.returncode == 2 and "invalid choice: 'serch'" in done.stderr and "search" in done.stderr


def test_the_pace_of_a_phase_says_its_rate_and_what_is_left() -> None:
    assert pace(2.0, 100, 6_250) == ", 50/s, 2:05 left"
    assert pace(20.0, 10, 30) == ", 1:00 left"
    assert pace(0.5, 100, 100) == pace(5.0, 0, 100) == ""


def test_install_for_all_writes_to_every_host_that_is_here(tmp_path: Path) -> None:
    for folder in (".cursor", ".codex"):
        (tmp_path / folder).mkdir()
    places = {"HOME": tmp_path, "USERPROFILE": tmp_path, "APPDATA": tmp_path / "r", "LOCALAPPDATA": tmp_path / "l"}
    env = clean_environment(PATH=str(Path(sys.executable).parent), XDG_CONFIG_HOME="", CLAUDE_CONFIG_DIR="",
                            CODEX_HOME="", **{name: str(place) for name, place in places.items()})  # fmt: skip
    done = run_cli("install", "--client", "all", "--root", tmp_path, "--no-check", env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "graphrag" in (tmp_path / ".cursor" / "mcp.json").read_text("utf-8")
    assert "graphrag" in (tmp_path / ".codex" / "config.toml").read_text("utf-8")
    assert not (tmp_path / ".claude.json").exists()
    (tmp_path / "none").mkdir()
    nowhere = {**env, "HOME": str(tmp_path / "none"), "USERPROFILE": str(tmp_path / "none")}
    assert "no client was found" in run_cli("install", "--client", "all", env=nowhere, cwd=tmp_path).stderr


def test_no_help_shows_an_argument_that_is_hidden() -> None:
    shown = run_here("index", "--help").stdout
    assert "SUPPRESS" not in shown and "--job" not in shown


def test_tune_without_a_model_refuses_before_it_looks_at_anything(sample_home: Path) -> None:
    done = run_cli("tune", "--home", sample_home)
    assert done.returncode == 2 and "tuning needs a chat model" in done.stderr
