"""Install: real files of hosts, edited and put back, and every configuration that was written started as its host would."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from graphrag_mcp.cli.main import main
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.install import install as configuration
from graphrag_mcp.install import launch
from graphrag_mcp.install.hosts import BY_NAME, HOSTS, user_file
from graphrag_mcp.install.install import Unreadable
from tests.support.client import connected

NAMES = [host.name for host in HOSTS]
KEY = "sk-a-secret-that-must-stay-where-it-is"
PATIENCE = 15.0  # seconds from spawning to the list of tools: under one here; on a busy machine more
POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with an empty home, standing in the folder `papers`, with nothing of the developer's in the environment."""
    for name in list(os.environ):
        if name.startswith(("GRAPHRAG_MCP_", "OPENAI_", "XDG_", "CLAUDE_", "CODEX_", "UV")):
            monkeypatch.delenv(name)
    home = tmp_path / "user"
    (home / "papers").mkdir(parents=True)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("APPDATA", str(home / "AppData" / "Roaming"))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "AppData" / "Local"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin" if os.name != "nt" else os.environ["PATH"])
    monkeypatch.chdir(home / "papers")
    return home


@pytest.fixture
def install(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def run(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
        done = main(["install", *map(str, arguments), "--json"])
        said = capsys.readouterr()
        assert done == status, said.out + said.err
        return json.loads(said.out)

    return run


def file_of(host: str, home: Path) -> Path:
    return user_file(BY_NAME[host], os.environ, home)


# ---- what each host does with its file: nothing of the product is used here ----------------------------------------


def as_host(host: str, text: str, environ: dict[str, str]) -> dict[str, Any]:
    """The servers that the host finds in its file, with variables put in."""
    if host == "codex":
        servers = tomllib.loads(text)["mcp_servers"]
        for one in servers.values():
            handed = {name: environ[name] for name in one.get("env_vars", ()) if name in environ}
            one["env"] = {**handed, **one.get("env", {})}
        return servers
    if host == "vscode":
        words = re.findall(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|[^"/]+|/', text, re.DOTALL)
        text = re.sub(r",(\s*[}\]])", r"\1", "".join(word for word in words if not word.startswith(("//", "/*"))))
        return substituted(json.loads(text)["servers"], r"\$\{env:(\w+)()\}", environ)
    pattern = {"cursor": r"\$\{env:(\w+)()\}", "claude-code": r"\$\{(\w+)(?::-([^}]*))?\}"}.get(host, r"(?!)()")
    return substituted(json.loads(text)["mcpServers"], pattern, environ)


def substituted(servers: Any, pattern: str, environ: dict[str, str]) -> Any:
    def put(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(pattern, lambda match: environ.get(match[1], match[2] or ""), value)
        return (
            [put(one) for one in value]
            if isinstance(value, list)
            else {k: put(v) for k, v in value.items()}
            if isinstance(value, dict)
            else value
        )

    return put(servers)


def started(entry: dict[str, Any], home: Path, cwd: Path, path: str = "/usr/bin:/bin") -> Any:
    """A real client over a real process, with no more of an environment than a desktop gives."""
    assert shutil.which(entry["command"], path=path), entry
    base = {"HOME": str(home), "PATH": path} if os.name != "nt" else {name: os.environ[name] for name in os.environ}
    command = StdioServerParameters(
        command=entry["command"], args=entry["args"], env={**base, **entry.get("env", {})}, cwd=cwd
    )
    return connected(command)


def tools_of(call: Any) -> list[str]:
    return [tool.name for tool in call.portal.call(call.client.list_tools).tools]


@pytest.mark.parametrize("host", NAMES)
def test_what_is_written_starts_for_real_as_the_host_starts_it(
    host: str, user: Path, install: Callable[..., Any]
) -> None:
    env = [] if host in ("claude-desktop", "claude-code") else ["--env", "OPENAI_API_KEY"]
    done = install(
        "--client",
        host,
        "--root",
        user / "papers",
        "--home",
        user / "a home",
        "--env",
        "GRAPHRAG_MCP_CHAT_MODEL=m",
        *env,
        "--no-check",
    )
    assert (done["change"], done["file"], Path(done["entry"]["command"]).is_absolute()) == (
        "added",
        str(file_of(host, user)),
        True,
    )
    entry = as_host(host, Path(done["file"]).read_text("utf-8"), {"OPENAI_API_KEY": KEY})["graphrag"]
    assert not env or entry["env"]["OPENAI_API_KEY"] == KEY
    with started(entry, user, user) as call:
        assert "local_search" in tools_of(call)


def test_the_command_itself_starts_the_server_before_it_writes(user: Path, install: Callable[..., Any]) -> None:
    done = install("--client", "cursor", "--tools", "core", "--read-only")
    assert 3 < done["started"]["tools"] < 15 and done["started"]["seconds"] < PATIENCE
    for words, says in (
        ([sys.executable, "-c", "raise SystemExit('no such module')"], "no such module"),
        ([str(user / "gone")], "does not start"),
        ([sys.executable, "-c", "print(1)"], "does not start"),
    ):
        with pytest.raises(GraphRAGError, match=says):
            launch.trial(words, dict(os.environ), user, 5)


# ---- other people's files --------------------------------------------------------------------------------------------

THEIRS = {
    "claude-desktop": '{\n    "globalShortcut": "Ctrl+G",\n    "mcpServers": {\n        "fs": {"command": "npx", "args": ["-y", "fs"]}\n    }\n}\n',
    "claude-code": '{"numStartups":3,"mcpServers":{"fs":{"command":"npx"}},"projects":{"/x":{"mcpServers":{"graphrag":1}}}}',
    "cursor": "\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"fs\": { \"command\": \"npx\" }\r\n\t}\r\n}\r\n",
    "vscode": '{\n  "inputs": [],\n  "servers": {\n    "fs": {"command": "npx", "args": ["é"]}\n  }\n}\n',
    "codex": '# mine\nmodel = "m"\nnotify = ["[mcp_servers.graphrag]"]\n\n[mcp_servers.fs]\ncommand = "npx"\n\n# about projects\n[projects."/a]b"]\ntrust_level = "trusted"\n',
}  # fmt: skip


@POSIX
@pytest.mark.parametrize("host", NAMES)
def test_everything_else_in_a_file_stays_and_undo_gives_it_back(
    host: str, user: Path, install: Callable[..., Any]
) -> None:
    file, theirs = file_of(host, user), THEIRS[host].encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(theirs)
    file.chmod(0o640)
    done = install("--client", host, "--no-check")
    written, backup = file.read_bytes(), Path(done["backup"])
    assert (file.stat().st_mode & 0o777, backup.stat().st_mode & 0o777, backup.read_bytes()) == (0o640, 0o640, theirs)
    assert file.read_text("utf-8-sig").count("npx") == 1 and set(as_host(host, file.read_text("utf-8-sig"), {})) == {
        "fs",
        "graphrag",
    }
    if host == "codex":
        assert written.startswith(theirs)  # ours was put in, and nothing taken out or moved
    else:
        before, after = json.loads(theirs.decode("utf-8-sig")), json.loads(written.decode("utf-8-sig"))
        del after[BY_NAME[host].key]["graphrag"]
        assert json.dumps(after) == json.dumps(before)  # every value, in its order
        assert written.startswith(theirs[:3]) and written.count(b"\r\n") == written.count(b"\n") * (b"\r\n" in theirs)
        for step in re.findall(rb"\n([ \t]+)", theirs)[:1]:
            assert b"\n" + step + b'"' in written and (b" " in step or b"\n  " not in written)
    assert install("--client", host, "--no-check")["change"] == "unchanged" and file.read_bytes() == written
    assert (
        install("--client", host, "--read-only", "--no-check")["change"] == "updated" and backup.read_bytes() == theirs
    )
    assert install("--client", host, "--undo")["change"] == "restored" and file.read_bytes() == theirs
    assert install("--client", host, "--undo")["change"] == "absent" and file.read_bytes() == theirs
    assert sorted(path.name for path in file.parent.iterdir() if path.is_file()) == [file.name]


@pytest.mark.parametrize("host", NAMES)
def test_a_file_of_ours_alone_goes_again_and_what_was_added_since_stays(
    host: str, user: Path, install: Callable[..., Any]
) -> None:
    file = Path(install("--client", host, "--no-check")["file"])
    assert install("--client", host, "--undo")["change"] == "removed" and not file.exists()
    install("--client", host, "--no-check")
    text = file.read_text("utf-8")
    later = text + "\n[features]\nx = true\n" if host == "codex" else text.replace("{\n", '{\n  "later": 1,\n', 1)
    file.write_text(later, "utf-8")
    assert install("--client", host, "--undo")["change"] == "removed"
    left = file.read_text("utf-8")
    assert ("features" if host == "codex" else "later") in left and "graphrag" not in left
    assert (tomllib.loads(left) == {"features": {"x": True}}) if host == "codex" else json.loads(left)["later"] == 1


@POSIX
def test_a_linked_configuration_is_written_where_it_leads(user: Path, install: Callable[..., Any]) -> None:
    real = user / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text('{"mcpServers": {}}')
    file = file_of("cursor", user)
    file.parent.mkdir()
    file.symlink_to(real)
    install("--client", "cursor", "--no-check")
    assert (
        file.is_symlink()
        and "graphrag" in real.read_text("utf-8")
        and sorted(p.name for p in real.parent.iterdir()) == ["cursor.json"]
    )
    assert (
        install("--client", "cursor", "--undo")["change"] == "restored"
        and real.read_text("utf-8") == '{"mcpServers": {}}'
    )


BROKEN = {
    '{\n  "mcpServers": {\n    "a": {}\n    "b": {}\n  }\n}': 4, '{"mcpServers": {\n},\n}': 3, "{\n// mine\n}": 2, '{"a": /* b */ 1}': 1,
    '{"mcpServers": {"a": tru}}': 1, '{\n"mcpServers": []}': 2, "[]": 1, "\n\n{": 3, '{"a": 1} {': 1, '{"a": "\n"}': 1,
    '{"mcpServers": null}': 1, "{'a': 1}": 1, "{/* }": 1, "[" * 100_000: 1, '{"a": NaN}': 1, "{,}": 1,
    '{"a": ' + "1" * 5000 + "}": 1, '{"a": 1e999}': 1, '\n{"a": {"b": 1, "b": 2}}': 2, '{"mcpServers": {},\n"mcpServers": {}}': 2,
}  # fmt: skip
BROKEN_TOML = {
    "model = \n": 1, "[a]\n[a]\n": 2, 'x = """\nfor ever': 2, "mcp_servers = 3": 1, "\nmcp_servers = {a = {command = 'x'}}": 2,
    "[mcp_servers]\ngraphrag = {command = 'graphrag-mcp'}\nb = {}\n": 1, "mcp_servers = {graphrag = {command = 'graphrag-mcp'}}": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "host,text,line",
    [("cursor", *pair) for pair in BROKEN.items()] + [("codex", *pair) for pair in BROKEN_TOML.items()] + [("vscode", '{"a": "\udcff"}', 1)],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named_with_its_line_and_left_alone(
    host: str, text: str, line: int, user: Path, install: Callable[..., Any]
) -> None:
    file = file_of(host, user)
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = file.read_bytes()
    refused = install("--client", host, "--no-check", status=2)
    said = refused["error"]
    assert f"{file}, line {line}: " in said and "Nothing was written" in said and len(said) < 500
    assert set(as_host(host, refused["block"], {})) == {"graphrag"}  # what to paste
    assert file.read_bytes() == before and [path.name for path in file.parent.iterdir()] == [file.name]


def test_any_document_keeps_its_values_its_order_and_its_layout() -> None:
    """Random JSON: the edit means what it should, twice is once, and taking out is the reverse of putting in."""
    entry = {"command": "c", "args": ["a", {"z": 1}]}
    for seed in range(400):
        chance = random.Random(seed)
        document: dict[str, Any] = {f"k{at}": value(chance) for at in range(chance.randint(0, 3))}
        if chance.random() < 0.7:
            document["mcpServers"] = {f"s{at}": {"command": "x"} for at in range(chance.randint(0, 3))}
        newline = chance.choice(["\n", "\r\n", ""])
        indent = chance.choice([1, 2, 4, "\t"]) if newline else None
        text = json.dumps(document, indent=indent, ensure_ascii=chance.random() < 0.5).replace("\n", newline)
        edited = configuration.set_member(text, "mcpServers", "graphrag", entry)
        expected = json.loads(json.dumps(document))
        expected.setdefault("mcpServers", {})["graphrag"] = entry
        assert json.dumps(json.loads(edited)) == json.dumps(expected), seed
        assert configuration.set_member(edited, "mcpServers", "graphrag", entry) == edited, seed
        assert "\r\n" not in text or not re.search(r"(?<!\r)\n", edited), seed
        back = configuration.remove_member(edited, "mcpServers", "graphrag")
        assert json.loads(back) == {**document, "mcpServers": document.get("mcpServers", {})}, seed
        assert back == text or "mcpServers" not in document, seed


def value(chance: random.Random, depth: int = 0) -> Any:
    if depth > 2 or chance.random() < 0.5:
        return chance.choice([1, None, True, "a//b", "/*", 'q"', "é", -1.5e3])
    if chance.random() < 0.4:
        return [value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return {chance.choice("abc") + str(at): value(chance, depth + 1) for at in range(chance.randint(0, 3))}


def test_any_toml_is_edited_without_losing_a_byte_of_the_rest() -> None:
    pieces = [
        '[features]\nx = true # y\n', "\n", '[prompts]\na = """\n[mcp_servers.graphrag]\n\\"""x"""\nb = \'\'\'\n[x]\'\'\'\n',
        '[mcp_servers.other]\ncommand = "npx"\nargs = [\n  "a", # [z]\n  "b"\n]\n', '[mcp_servers.other.env]\nA = "1"\n',
        '# old\n[mcp_servers.graphrag]\ncommand = "old"\n', '[mcp_servers."graphrag".env]\nX = "y"\n', "# last\n[tui]\nn = {a = 1, b = [1,2]}\n",
    ]  # fmt: skip
    entry = {"command": 'c\\d "q" é', "args": ["a"], "env": {"K": "v"}, "startup_timeout_sec": 30}
    for seed in range(150):
        chance = random.Random(seed)
        text = "".join(piece for piece in chance.sample(pieces, len(pieces)) if chance.random() < 0.5)
        text = text.replace("\n", "\r\n") if chance.random() < 0.3 else text.rstrip() if chance.random() < 0.3 else text
        before = tomllib.loads(text)
        edited = configuration.set_table(text, "mcp_servers", "graphrag", entry)
        assert tomllib.loads(edited) == {
            **before,
            "mcp_servers": {**before.get("mcp_servers", {}), "graphrag": entry},
        }, seed
        assert configuration.set_table(edited, "mcp_servers", "graphrag", entry) == edited, seed
        back = configuration.remove_table(edited, "mcp_servers", "graphrag")
        assert "graphrag" in before.get("mcp_servers", {}) or back.rstrip() == text.rstrip(), seed
        assert all(one.count(mark) == text.count(mark) for one in (edited, back) for mark in ("# last", "# old", "# y"))
    with pytest.raises(Unreadable):
        configuration.remove_table("mcp_servers = {graphrag = {}}", "mcp_servers", "graphrag")
