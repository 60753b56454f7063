"""The help of the command line: groups, and examples that parse."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from graphrag_mcp.cli.main import EXAMPLES, parser, run_of
from tests.support.command import clean_environment, run_cli


def test_every_example_is_accepted_and_shown() -> None:
    whole = parser()
    for name, lines in EXAMPLES.items():
        said = whole.commands[name].format_help() if name else whole.format_help()
        for line in lines:
            assert f"graphrag-mcp {line}\n" in said
            assert whole.parse_args(shlex.split(line)).run is run_of(name or line.split()[0])


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
