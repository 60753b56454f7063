"""What is made of the package for others: names, versions and commands agree, and what can be started is started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import graphrag_mcp
from graphrag_mcp.cli.main import parser
from graphrag_mcp.install import install as installs
from graphrag_mcp.settings import ENVIRONMENT
from tests.install.test_install import POSIX, started, tools_of
from tests.support.command import ROOT, SAMPLE, clean_environment

PACKAGING = ROOT / "packaging"
PLUGIN = PACKAGING / "claude-code-plugin"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


REGISTRY = read(ROOT / "server.json")
MANIFEST = read(PACKAGING / "mcpb" / "manifest.json")
PLUGIN_MANIFEST = read(PLUGIN / ".claude-plugin" / "plugin.json")


def test_names_and_versions_agree() -> None:
    package = REGISTRY["packages"][0]
    versions = {REGISTRY["version"], package["version"], MANIFEST["version"], PLUGIN_MANIFEST["version"]}
    assert versions == {graphrag_mcp.__version__}
    assert {package["identifier"], MANIFEST["name"], REGISTRY["name"].partition("/")[2]} == {PROJECT["name"]}
    assert {MANIFEST["description"], PLUGIN_MANIFEST["description"]} == {PROJECT["description"]}
    assert f"mcp-name: {REGISTRY['name']}" in (ROOT / "README.md").read_text("utf-8")  # what the registry looks for
    assert {MANIFEST["license"], PLUGIN_MANIFEST["license"]} == {PROJECT["license"]}
    assert {MANIFEST["author"]["name"], PLUGIN_MANIFEST["author"]["name"]} == {PROJECT["authors"][0]["name"]}


def test_the_entry_for_the_registry_is_what_its_schema_asks_for() -> None:
    """The rules of the schema that the file names, by hand: it cannot be fetched here."""
    assert (
        re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", REGISTRY["name"]) and 1 <= len(REGISTRY["description"]) <= 100
    )
    assert set(REGISTRY) == {"$schema", "name", "title", "description", "version", "packages"}
    package = REGISTRY["packages"][0]
    known = {
        "registryType",
        "identifier",
        "version",
        "runtimeHint",
        "transport",
        "packageArguments",
        "environmentVariables",
    }
    assert set(package) == known and package["transport"] == {"type": "stdio"}
    words = []
    for argument in package["packageArguments"]:
        assert argument["type"] == "positional" and argument["value"] or argument["name"].startswith("--")
        words += [argument["value"]] if argument["type"] == "positional" else [argument["name"], "x"]
    assert parser().parse_args(words).root == ["x"]
    variables = {one["name"]: one for one in package["environmentVariables"]}
    assert set(variables) - {"OPENAI_API_KEY"} <= set(ENVIRONMENT)
    assert [name for name, one in variables.items() if one.get("isSecret")] == ["OPENAI_API_KEY"]
    assert not any(one["isRequired"] for one in variables.values())


# ---- what starts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder with `uvx` and `uv` that run this checkout: what they would install is what is here."""
    folder = tmp_path / "commands"
    folder.mkdir()
    run = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m graphrag_mcp "$@"\n'
    scripts = {"uvx": '[ "$1" = graphrag-mcp ] || exit 9\nshift\n', "uv": 'cd "$3" || exit 9\nshift 5\nshift\n'}
    for name, shift in scripts.items():
        (folder / name).write_text("#!/bin/sh\n" + shift + run)
        (folder / name).chmod(0o755)
    return folder


@POSIX
def test_the_example_and_the_plugin_start_for_real(commands: Path, tmp_path: Path) -> None:
    example = read(ROOT / "claude_desktop_config.example.json")["mcpServers"]["graphrag"]
    places = {"/absolute/path/to/your/documents": str(SAMPLE), "/absolute/path/to/a/folder/for/indexes": str(tmp_path)}
    filled = json.loads(re.sub("|".join(places), lambda found: places[found[0]], json.dumps(example)))
    assert filled != example and installs.ours(example)
    plugin = read(PLUGIN / ".mcp.json")["mcpServers"]["graphrag"]
    for entry in (filled, plugin):
        with started(entry, tmp_path, tmp_path, f"{commands}:/usr/bin:/bin") as call:
            assert "local_search" in tools_of(call)


@POSIX
def test_the_bundle_holds_what_it_needs_and_starts(commands: Path, tmp_path: Path) -> None:
    target, again = tmp_path / "a.mcpb", tmp_path / "b.mcpb"
    for file in (target, again):
        command = [sys.executable, PACKAGING / "mcpb" / "pack.py", file]
        done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert target.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(target) as bundle:
        names = set(bundle.namelist())
        bundle.extractall(tmp_path / "opened")
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "graphrag_mcp").rglob("*.py")}
    assert modules | {"manifest.json", "pyproject.toml", "README.md", "LICENSE"} <= names
    assert MANIFEST["server"]["entry_point"] in names and not any(
        "__pycache__" in name or "test" in name for name in names
    )
    wanted = {"manifest_version", "name", "version", "description", "author", "server"}
    assert wanted <= set(MANIFEST) and MANIFEST["server"]["type"] == "uv"
    config = MANIFEST["server"]["mcp_config"]
    used = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(config)))
    assert used == set(MANIFEST["user_config"]) and MANIFEST["user_config"]["api_key"]["sensitive"]
    values = {"__dirname": str(tmp_path / "opened"), "user_config.folders": str(SAMPLE)}
    entry = json.loads(re.sub(r"\$\{([\w.]+)\}", lambda found: values.get(found[1], ""), json.dumps(config)))
    assert entry["args"][:3] == ["run", "--directory", str(tmp_path / "opened")] and "graphrag-mcp" in entry["args"]
    uv = commands / "uv"
    uv.write_text(uv.read_text().replace(f'="{ROOT}"', f'="{tmp_path / "opened"}"'))  # not in the path of Python
    with started(entry, tmp_path, tmp_path, f"{commands}:/usr/bin:/bin") as call:
        assert "local_search" in tools_of(call)


def test_the_container_runs_as_nobody_special_and_keeps_its_indexes() -> None:
    text = (PACKAGING / "Dockerfile").read_text("utf-8")
    steps = [
        line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")
    ]
    last = {name: value for name, value in steps}
    assert last["USER"] not in ("root", "0") and "/data" in last["VOLUME"] and "GRAPHRAG_MCP_HOME=/data" in last["ENV"]
    words = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
    assert words[0] == PROJECT["name"] and parser().parse_args(words[1:]).root == ["/documents"]
    for name, value in steps:
        assert (
            name != "COPY" or value.startswith("--from") or all((ROOT / path).exists() for path in value.split()[:-1])
        )
    assert "KEY" not in last["ENV"] and "TOKEN" not in last["ENV"]
    command = re.search(r"graphrag-mcp (serve --http .*)", text)
    assert command and parser().parse_args(command[1].split()).host == "0.0.0.0"
