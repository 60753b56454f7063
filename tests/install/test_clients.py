"""Install, the rest: where hosts keep their files, what is never written down, what is found, and what doctor says of it."""

# ruff: noqa: F811 (fixtures of the other file)
from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.errors import Busy
from graphrag_mcp.install import install as installs
from graphrag_mcp.install.hosts import BY_NAME, PRINTED, Host, user_file
from tests.install.test_install import KEY, NAMES, file_of, install, started, tools_of, user  # noqa: F401
from tests.support.command import SAMPLE, clean_environment, run_here

Install = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    "platform,host,file",
    [
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("linux", "vscode", ".config/Code/User/mcp.json"),
        *[(platform, "claude-code", ".claude.json") for platform in ("darwin", "win32", "linux")],
        *[(platform, "cursor", ".cursor/mcp.json") for platform in ("darwin", "win32", "linux")],
        *[(platform, "codex", ".codex/config.toml") for platform in ("darwin", "win32", "linux")],
    ],
)
def test_each_host_has_its_file_on_each_platform(platform: str, host: str, file: str, tmp_path: Path) -> None:
    assert user_file(BY_NAME[host], {}, tmp_path, platform) == tmp_path / file


def test_what_moves_a_configuration_moves_ours_too(tmp_path: Path) -> None:
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/d", "APPDATA": str(tmp_path / "R")}
    found = {host: user_file(BY_NAME[host], moved, tmp_path, "linux") for host in ("claude-code", "codex", "vscode")}
    assert found == {
        "claude-code": Path("/c/.claude.json"),
        "codex": Path("/x/config.toml"),
        "vscode": Path("/d/Code/User/mcp.json"),
    }
    desktop = BY_NAME["claude-desktop"]
    assert user_file(desktop, moved, tmp_path, "win32").parent == tmp_path / "R" / "Claude"
    packaged = (
        tmp_path / "AppData" / "Local" / "Packages" / "Claude_pzs8sxrjxfjjc" / "LocalCache" / "Roaming" / "Claude"
    )
    packaged.mkdir(parents=True)
    assert user_file(desktop, moved, tmp_path, "win32").parent == packaged


# ---- what is never written down ------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", NAMES)
def test_a_key_stands_in_no_file(host: str, user: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GRAPHRAG_MCP_CHAT_MODEL", "the-model")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:pass-word@127.0.0.1:1/v1")
    wanted = ["--client", host, "--no-check", "--env", "GRAPHRAG_MCP_CHAT_MODEL"]
    done = install(*wanted)
    followed = any("hands GRAPHRAG_MCP_CHAT_MODEL on by itself" in note for note in done["notes"])
    handed = json.dumps(done["entry"])
    assert followed == (host == "claude-code") and ("GRAPHRAG_MCP_CHAT_MODEL" in handed) != followed
    assert host == "claude-code" or any("OPENAI_BASE_URL" in note and "--env" in note for note in done["notes"])
    if host == "claude-desktop":
        assert done["entry"]["env"]["GRAPHRAG_MCP_CHAT_MODEL"] == "the-model"
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            assert "mcpb" in install(*wanted, "--env", name, status=2)["error"]
    else:
        install(*wanted, "--env", "OPENAI_API_KEY", "--env", "OPENAI_BASE_URL")
    for secret in (
        "OPENAI_API_KEY=" + KEY,
        "GRAPHRAG_MCP_TOKENS=me=x",
        "OPENAI_BASE_URL=http://a:b@c/v1",
        "MY_VAR=1",
        "1=2",
    ):
        said = install(*wanted, "--env", secret, status=2)["error"]
        assert KEY not in said
    texts = [path.read_text("utf-8") for path in user.rglob("*") if path.is_file()]
    assert texts and not any(KEY in text or "pass-word" in text for text in texts)


def test_a_project_has_a_file_of_its_own(user: Path, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for host, name in (
        ("claude-code", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("codex", ".codex/config.toml"),
    ):
        done = install("--client", host, "--project", "--env", "OPENAI_API_KEY", "--no-check")
        assert done["file"] == str(user / "papers" / name) and done["entry"]["args"][-1] == str(user / "papers")
        assert not file_of(host, user).exists() and KEY not in Path(done["file"]).read_text("utf-8")
    assert "${OPENAI_API_KEY:-}" in (user / "papers" / ".mcp.json").read_text("utf-8")
    assert "no configuration for one project" in install("--client", "claude-desktop", "--project", status=2)["error"]


# ---- names, files, forms -------------------------------------------------------------------------------------------


def test_another_server_of_the_same_name_is_not_touched(user: Path, install: Install) -> None:
    file = file_of("cursor", user)
    file.parent.mkdir()
    theirs = '{"mcpServers": {"graphrag": {"command": "npx", "args": ["other", "/home/u/graphrag-mcp"]}}}'
    file.write_text(theirs)
    assert "another server" in install("--client", "cursor", "--no-check", status=2)["error"]
    assert (
        "is not graphrag-mcp" in install("--client", "cursor", "--undo", status=2)["error"]
        and file.read_text() == theirs
    )
    install("--client", "cursor", "--name", "papers", "--no-check")
    assert set(json.loads(file.read_text())["mcpServers"]) == {"graphrag", "papers"}
    assert "cannot be named" in install("--client", "cursor", "--name", "a b", "--no-check", status=2)["error"]


def test_printing_writes_nothing(user: Path, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {host: install("--client", host, "--print") for host in NAMES}
    assert [path for path in user.rglob("*") if path.is_file()] == []
    assert json.loads(shown["cursor"]["block"])["mcpServers"] == {"graphrag": shown["cursor"]["entry"]}
    assert main(["install", "--client", "codex", "--print"]) == 0
    assert shown["codex"]["block"] in capsys.readouterr().out


def test_a_file_that_its_host_writes_meanwhile_is_left_alone(user: Path) -> None:
    host, file = BY_NAME["claude-code"], file_of("claude-code", user)
    file.write_text('{"numStartups": 1}')
    made = installs.entry(host, ["/v/bin/graphrag-mcp", "serve"], {}, [])
    planned = installs.installing(host, file, "graphrag", made)
    file.write_text('{"numStartups": 2}')
    with pytest.raises(Busy, match="has changed meanwhile"):
        installs.apply(planned)
    assert json.loads(file.read_text()) == {"numStartups": 2}


def unread(status: os.stat_result) -> tuple[int, ...]:
    """What a write changes and a look at a link does not: everything but the time of the last access."""
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@pytest.mark.skipif(os.name == "nt", reason="there are no such files there")
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "linked pipe"])
def test_what_is_no_file_is_neither_waited_for_nor_written(kind: str, user: Path, install: Install) -> None:
    file = file_of("cursor", user)
    file.parent.mkdir()
    if kind == "folder":
        file.mkdir()
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        os.mkfifo(file if kind == "pipe" else user / "pipe")
        if kind == "linked pipe":
            file.symlink_to(user / "pipe")
    before = unread(os.lstat(file))
    for arguments in (["--no-check"], ["--undo"]):
        said = install("--client", "cursor", *arguments, status=2)["error"]
        assert "cannot be read: it is" in said and "--config" in said
    assert unread(os.lstat(file)) == before
    (mine,) = [one for one in install()["hosts"] if one["client"] == "cursor"]
    assert "cannot be read" in mine["installed"][0]["problem"]


# ---- what doctor says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", PRINTED, ids=lambda host: host.name)
def test_the_block_to_paste_is_in_the_form_of_its_client_and_starts_the_server(host: Host, tmp_path: Path) -> None:
    env = clean_environment(HOME=str(tmp_path), USERPROFILE=str(tmp_path), XDG_CONFIG_HOME="")
    told = run_here("install", "--client", host.name, "--root", SAMPLE, "--print", "--json", env=env)
    assert told.returncode == 0, told.stderr
    record = json.loads(told.stdout)
    block = yaml_of(record["block"]) if host.name == "goose" else json.loads(record["block"])
    assert list(block) == [host.key] and list(block[host.key]) == ["graphrag"]
    one = block[host.key]["graphrag"]
    words = one["command"] if host.name == "opencode" else [one.get("cmd") or one["command"], *one["args"]]
    assert words == [record["entry"]["command"], *record["entry"]["args"]] and words[-2:] == ["--root", str(SAMPLE)]
    with started({"command": words[0], "args": words[1:]}, tmp_path, tmp_path, os.environ["PATH"]) as call:
        assert "local_search" in tools_of(call)
    said = run_here("install", "--client", host.name, "--root", SAMPLE, "--print", env=env).stdout
    assert record["block"] in said and host.reload in said
    refused = run_here("install", "--client", host.name, env=env)
    assert refused.returncode == 2 and f"--client {host.name} --print" in refused.stderr


def yaml_of(text: str) -> dict[str, Any]:
    """The few lines of YAML that are printed: nested names by indentation, values in JSON or bare."""
    root: dict[str, Any] = {}
    levels = [root]
    for line in text.splitlines():
        name, _, value = line.strip().partition(":")
        depth = (len(line) - len(line.lstrip())) // 2
        del levels[depth + 1 :]
        if not value:
            levels[depth][name] = {}
            levels.append(levels[depth][name])
        else:
            bare = value.strip()
            levels[depth][name] = json.loads(bare) if bare[0] in '"[{0123456789tf' else bare
    return root
