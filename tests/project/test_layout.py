"""The rules of the layout: layers, no circles, what an import costs, what is public, what an agent sees."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.plugins import PLUGGED
from tests.support import layout
from tests.support.command import ROOT, SAMPLE, clean_environment

PACKAGE = ROOT / "graphrag_mcp"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_package_has_a_layer() -> None:
    assert {layout.package_of(layout.name_of(path)) for path in SOURCES} == set(layout.LAYERS)


def test_imports_go_down_only() -> None:
    assert layout.wrong_layers() == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert layout.circles() == []


def test_a_plug_in_is_named_where_it_is_registered_and_nowhere_else() -> None:
    """No module outside imports a plug-in, or names its package; what others know of it are the protocols."""
    outside = [path for path in SOURCES if layout.package_of(layout.name_of(path)) not in PLUGGED]
    importing = {
        layout.name_of(path)
        for path in outside
        for name in layout.imports()[layout.name_of(path)]
        if layout.package_of(name) in PLUGGED
    }
    naming = {
        layout.name_of(path)
        for path in outside
        if any(package in path.read_text("utf-8") for package in PLUGGED.values())
    }
    assert (importing, naming) == (set(), {"plugins"})
    special = re.compile(r"\bsymbols?\b|\bsource.code\b", re.IGNORECASE)
    lines = {
        f"{layout.name_of(path)}: {line.strip()}"
        for path in outside
        if layout.package_of(layout.name_of(path)) in ("index", "query")
        for line in path.read_text("utf-8").splitlines()
        if special.search(line)
    }
    assert lines == set()


# ---- what an import costs ---------------------------------------------------------------------------

HEAVY = "lancedb pandas pyarrow numpy networkx sklearn scipy rjieba graspologic_native".split()


@pytest.mark.parametrize("module", ["graphrag_mcp", "graphrag_mcp.server", "graphrag_mcp.cli"])
def test_importing_a_door_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# Runs a command, then prints the modules that are loaded.
LOADED = """
import json, sys
from graphrag_mcp.cli.main import main
status = main()
print(json.dumps([status, sorted(sys.modules)]))
"""


def loaded(*words: str) -> set[str]:
    """The modules of which a process consists at the end of a command, those of this package without its name."""
    done = subprocess.run([sys.executable, "-c", LOADED, *words], env=clean_environment(), capture_output=True, text=True)
    status, found = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stderr
    return {name.removeprefix("graphrag_mcp.") for name in found}


def within(package: str, modules: set[str]) -> set[str]:
    return {name.removeprefix(f"{package}.") for name in modules if name.startswith(f"{package}.")}


def test_a_run_in_which_nothing_changed_loads_no_stage(tmp_path: Path) -> None:
    """It reads the files and compares them: half its time were imports of what it had no use for."""
    words = ["index", str(SAMPLE), "--home", str(tmp_path)]
    loaded(*words)
    modules = loaded(*words)
    assert within("index", modules) <= set("chunk losses memory models outcome pipeline run vectors".split())
    assert within("sources", modules) <= set("diff document git opening walk".split())
    assert within("cli", modules) <= {"main", "output", "write"}
    assert within("code", modules) <= {"languages", "reading"}
    assert [name for name in ("names", "query", "evaluate", "tools", "doctor", "exchange") if within(name, modules)] == []
    assert {"lancedb", "pandas", "openai", "mcp", "networkx"} & modules == set()


def test_a_search_of_a_command_loads_nothing_of_indexing(tmp_path: Path) -> None:
    loaded("index", str(SAMPLE), "--home", str(tmp_path))
    modules = loaded("search", "Who opened the canister?", "--home", str(tmp_path))
    assert [name for name in ("index", "evaluate", "tools", "jobs", "doctor", "exchange") if within(name, modules)] == []
    assert within("cli", modules) <= {"main", "output", "read"}
    assert {"sources.read", "sources.formats", "pandas", "openai", "mcp", "networkx"} & modules == set()


# ---- what an agent sees -----------------------------------------------------------------------------


