"""The rules of the layout: layers, no circles, what an import costs, what is public, what an agent sees."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

import graphrag_mcp
from graphrag_mcp.app import App
from graphrag_mcp.plugins import PLUGGED
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.conftest import LONGEST, SLOW
from tests.support import layout
from tests.support.command import ROOT, SAMPLE, clean_environment

PACKAGE = ROOT / "graphrag_mcp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


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


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.read_text("utf-8").strip() and len(ast.get_docstring(layout.parsed(path)) or "") < 40
    ]
    assert silent == []


def test_no_function_of_a_module_replaces_another_of_its_name() -> None:
    twice = []
    for path in SOURCES:
        names = [node.name for node in layout.parsed(path).body if isinstance(node, ast.FunctionDef)]
        twice += [f"{path.name}: {name}" for name in set(names) if names.count(name) > 1]
    assert twice == []


def test_only_the_command_line_prints() -> None:
    printing = {
        layout.package_of(layout.name_of(path))
        for path in SOURCES
        for node in ast.walk(layout.parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == {"cli"}


def test_the_stems_of_test_files_are_unique_and_those_of_slow_ones_are_there() -> None:
    stems = [path.stem for path in TESTS if path.name.startswith("test_")]
    assert len(stems) == len(set(stems))
    assert {*LONGEST, *(f"test_{one}" for one in SLOW)} - set(stems) == set()


def test_ruff_finds_nothing() -> None:
    pytest.importorskip("ruff")
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


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


def test_the_command_line_does_not_import_the_protocol() -> None:
    code = "import sys, graphrag_mcp.cli; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


# ---- what is public ---------------------------------------------------------------------------------


def test_the_public_names_are_these() -> None:
    assert sorted(graphrag_mcp.__all__) == [
        "App", "Drift", "GraphRAGError", "Settings", "__version__", "build_server", "digest", "export",
        "global_search", "index_documents", "local_search",
    ]  # fmt: skip


def test_every_public_name_is_there() -> None:
    assert [name for name in graphrag_mcp.__all__ if getattr(graphrag_mcp, name, None) is None] == []


# ---- what an agent sees -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools(sample_home: Path) -> list[dict[str, Any]]:
    """tools/list as it goes over the wire."""

    async def listed() -> list[dict[str, Any]]:
        async with Client(build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))) as client:
            listing = await client.list_tools()
            return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listing.tools]

    return anyio.run(listed)


def test_the_tools_are_these(tools: list[dict[str, Any]]) -> None:
    assert sorted(tool["name"] for tool in tools) == [
        "cancel_job", "claim_work", "drift_finish", "drift_search", "drift_step", "edit_graph", "explore_graph",
        "get_community_report", "get_entity", "get_source", "global_search", "graph_status", "index_documents",
        "list_documents", "local_search", "remove_documents", "search_text", "submit_work",
    ]  # fmt: skip


def test_no_input_schema_has_a_choice_or_a_reference(tools: list[dict[str, Any]]) -> None:
    def keys(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from node
            for value in node.values():
                yield from keys(value)
        elif isinstance(node, list):
            for value in node:
                yield from keys(value)

    banned = {"anyOf", "oneOf", "allOf", "$ref", "$defs", "not"}
    assert {
        tool["name"]: banned & set(keys(tool["inputSchema"]))
        for tool in tools
        if banned & set(keys(tool["inputSchema"]))
    } == {}


def test_the_tool_list_fits_in_16000_characters(tools: list[dict[str, Any]]) -> None:
    seen = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(seen, ensure_ascii=False, separators=(",", ":"))) <= 16_000


def test_every_tool_says_truthfully_whether_it_writes(tools: list[dict[str, Any]]) -> None:
    writers = {tool["name"] for tool in tools if not tool["annotations"]["readOnlyHint"]}
    assert "index_documents" in writers and "local_search" not in writers
    assert {tool["name"] for tool in tools if "openWorldHint" not in tool["annotations"]} == set()


# ---- no test measures time --------------------------------------------------------------------------

# On a busy machine it would fail on a good tree. Speed is measured in `benchmarks/`.
CLOCKS = re.compile(r"\b(perf_counter|process_time|thread_time|monotonic|timeit|default_timer|clock_gettime)(_ns)?\b")
ALLOWED = {"workload.py", "test_layout.py"}  # limits that fail what would never end


def clocks(text: str) -> list[str]:
    return [found[0] for found in CLOCKS.finditer(text)]


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_no_test_reads_a_clock(path: Path) -> None:
    assert path.name in ALLOWED or not clocks(path.read_text("utf-8"))
