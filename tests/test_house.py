"""The house rules of ARCHITECTURE: floors, sizes, files per request, what an import costs, what is public."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest
from mcp import Client

import graphrag_mcp
from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest
from tests.conftest import ROOT, SAMPLE, clean_environment

PACKAGE = ROOT / "graphrag_mcp"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

# A room's floor; imports go to a lower floor or stay inside the room.
FLOORS = {
    "__init__": 1, "types": 1, "settings": 1, "errors": 1, "subject": 1,
    "prompts": 2, "text": 2, "seams": 2, "loose_json": 2, "references": 2, "lean": 2, "fences": 2,
    "store": 3, "models": 3,
    "ask": 4, "pack": 4, "extract": 4,
    "index": 5, "query": 5, "upkeep": 5,
    "app": 6, "jobs": 6,
    "tools": 7,
    "server": 8,
    "cli": 9,
}  # fmt: skip
# Rooms of several files without a folder of their own.
PART_OF = {
    "suspicious": "fences", "credentials": "fences", "lexicon": "extract", "lexicon_han": "extract", "han": "extract", "names": "extract",
    "lexicon_east": "extract", "lexicon_foreign": "extract", "lexicon_kinds": "extract", "lexicon_uncased": "extract",
    "east": "extract", "foreign": "extract", "kinds": "extract", "letters": "extract", "uncased": "extract", "markup": "extract",
    "stems": "text", "decomposed": "text", "lexicon_variants": "text", "dates": "text", "tokens": "text", "lexicon_tokens": "text",
    "ask_limits": "ask", "ask_writer": "ask", "ask_threads": "ask", "ask_open": "ask", "pack_ids": "pack", "pack_wire": "pack", "http": "server", "stdio": "server",
    "cli_arguments": "cli", "cli_common": "cli",
    "jobs_record": "jobs", "jobs_documents": "jobs", "jobs_run": "jobs", "jobs_process": "jobs",
    "jobs_delete": "jobs",
    "cli_read": "cli", "cli_write": "cli", "cli_upkeep": "cli", "cli_eval": "cli", "cli_edit": "cli", "cli_graph": "cli",
    "cli_install": "cli", "cli_words": "cli", "__main__": "cli",
}  # fmt: skip
SAME_FLOOR = {("settings", "errors")}  # the one stair inside a floor: settings raise errors


def room(path: Path) -> str:
    """`graphrag_mcp/query/local.py` is in the room `query`, `graphrag_mcp/text/terms.py` in `text`."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return PART_OF.get(first, first)


def imported_rooms(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Rooms of this package that a module imports anywhere, functions and TYPE_CHECKING included, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "graphrag_mcp" else [base]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "graphrag_mcp":
                second = parts[1] if len(parts) > 1 else "__init__"
                second = PART_OF.get(second, second)
                yield (second if second in FLOORS else "__init__"), node.lineno


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def test_every_module_has_a_floor() -> None:
    assert {room(path) for path in SOURCES} <= set(FLOORS)


def test_imports_go_down_only_and_neighbours_never_meet() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {target}"
        for path in SOURCES
        for target, line in imported_rooms(parsed(path))
        if target != room(path) and FLOORS[target] >= FLOORS[room(path)] and (room(path), target) not in SAME_FLOOR
    ]
    assert wrong == []


def test_the_floor_rule_would_catch_a_query_that_imports_the_index() -> None:
    tree = ast.parse("def f():\n    from graphrag_mcp.index.graph import merge\n    from graphrag_mcp import app")
    assert list(imported_rooms(tree)) == [("index", 2), ("app", 3)]


def test_no_file_is_over_400_lines() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in SOURCES + TESTS}
    assert {name: lines for name, lines in sizes.items() if lines > 400} == {}


def test_no_function_is_over_60_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert long == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.read_text("utf-8").strip() and len(ast.get_docstring(parsed(path)) or "") < 40
    ]
    assert silent == []


def test_only_the_command_line_prints() -> None:
    printing = {
        str(path.relative_to(PACKAGE))
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == {f"cli_{part}.py" for part in ("common", "install", "read", "upkeep", "write")} & printing
    assert printing


def test_nothing_is_left_to_do_in_a_comment() -> None:
    mark = re.compile("#.*(" + "|".join(("TO" + "DO", "FIX" + "ME")) + ")")
    marked = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES + TESTS
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if mark.search(line)
    ]
    assert marked == []


def test_every_test_file_tests_something() -> None:
    empty = [
        path.name
        for path in TESTS
        if path.name.startswith("test_")
        and not any(
            isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) and n.name.startswith("test_")
            for n in ast.walk(parsed(path))
        )
    ]
    assert empty == []


def test_ruff_finds_nothing() -> None:
    pytest.importorskip("ruff")
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# ---- what an import costs ---------------------------------------------------------------------------

HEAVY = "lancedb pandas pyarrow numpy openai networkx sklearn scipy tiktoken rjieba graspologic_native".split()


@pytest.mark.parametrize("module", ["graphrag_mcp", "graphrag_mcp.server", "graphrag_mcp.cli"])
def test_importing_a_door_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_starting_server_compiles_none_of_the_patterns_that_searches_need() -> None:
    later = {f"graphrag_mcp.{name}" for name in ("text", "pack", "suspicious", "credentials", "extract", "names", "stems")}
    code = f"import sys, graphrag_mcp.server, graphrag_mcp.tools; print(sorted({later!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


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


# ---- one request can be read in one sitting ---------------------------------------------------------


class Trace:
    """Files of this package in which a function ran while recording, in any thread started under it."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.recording = False

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if self.recording and event == "call" and name.startswith(str(PACKAGE)) and frame.f_code.co_name != "<module>":
            self.files.add(str(Path(name).relative_to(PACKAGE)))

    def __enter__(self) -> Trace:
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


async def _call(trace: Trace, home: Path, tool: str, arguments: dict[str, Any]) -> Any:
    async with Client(build_server(App(Settings(home=home, roots=(SAMPLE,))))) as client:
        trace.recording = True
        result = await client.call_tool(tool, arguments)
        trace.recording = False
        return result


# What every tool call passes alike, read once: checking arguments, unknown ones named, errors into messages.
DOOR = {"server.py", "tools/arguments.py", "tools/results.py", "tools/teach.py"}
BESIDE = {"jobs.py", "jobs_record.py"}  # the thread that looks, twice a second, for work that nobody does
DOOR |= {"pack_wire.py", "fences.py", "suspicious.py", "credentials.py"}  # and how whatever was found is shown


def test_local_search_is_read_in_at_most_16_files_behind_the_door(sample_home: Path) -> None:
    arguments = {"query": "Who was right about the back-run, and how was it proved?", "corpus": "sample"}
    with Trace() as trace:
        result = anyio.run(_call, trace, sample_home, "local_search", arguments)
    assert not result.is_error, result.content
    assert {"tools/search.py", "query/local.py"} <= trace.files
    assert len(trace.files - DOOR - BESIDE - BEHIND_EXTRACT - BEHIND_TABLES) <= 16, sorted(trace.files)


# Two workshops that are entered by one door each and never look out again: files into documents (read.py), text into
# names (extract.py). Whoever follows a document through indexing reads their doors; what lies behind is counted apart.
BEHIND_READ = {"dates.py"} | {f"index/{name}.py" for name in ("find", "formats", "html_text", "decode", "opening", "skip", "office", "parsers", "quota")}
BEHIND_EXTRACT = {f"{name}.py" for name in ("names", "kinds", "han", "east", "uncased", "foreign", "lexicon_foreign", "markup")}
BEHIND_EXTRACT |= {"stems.py", "tokens.py"}  # behind text.py: word forms, and counting
# A third one: questions go in by ask.py, and what is answered comes out.
BEHIND_ASK = {"ask_open.py", "ask_limits.py", "ask_writer.py", "store/answers.py"}
# A fourth: hierarchy.py goes in by reports.py, and takes out what a report says.
BEHIND_REPORTS = {"index/inside.py", "index/evidence.py"}
# A fifth: a graph goes in by communities.py, and a tree comes out.
BEHIND_COMMUNITIES = {"index/adjacency.py", "index/greedy.py"}
BEHIND_TABLES = {"store/lance.py", "lean.py", "store/kept.py"}  # how lancedb is imported, and rows that searches keep


def test_index_documents_is_read_in_at_most_27_files(tmp_path: Path) -> None:
    request = IndexRequest(paths=(str(SAMPLE),))
    with Trace() as trace:
        trace.recording = True
        result = index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    assert result.errors == []
    assert {"index/pipeline.py", "index/read.py", "store/manifest.py"} <= trace.files
    # 20, and what a model added: its door, which models a run has, the second commit and the outcome in files of their
    # own; then edits by hand, what rows are derived from, credentials that are no names, and markup.
    behind = BEHIND_READ | BEHIND_EXTRACT | BEHIND_ASK | BEHIND_REPORTS | BEHIND_COMMUNITIES | BEHIND_TABLES
    assert len(trace.files - behind) <= 27, sorted(trace.files)
    assert len(trace.files) <= 55, sorted(trace.files)


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
        "local_search", "remove_documents", "search_text", "submit_work",
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


def test_the_tool_list_fits_in_14000_characters(tools: list[dict[str, Any]]) -> None:
    seen = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    assert len(json.dumps(seen, ensure_ascii=False, separators=(",", ":"))) <= 14_000


def test_every_tool_says_truthfully_whether_it_writes(tools: list[dict[str, Any]]) -> None:
    writers = {tool["name"] for tool in tools if not tool["annotations"]["readOnlyHint"]}
    assert "index_documents" in writers and "local_search" not in writers
    assert {tool["name"] for tool in tools if "openWorldHint" not in tool["annotations"]} == set()
