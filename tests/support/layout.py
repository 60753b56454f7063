"""Measurements of the package's layout, and the limits that they may not pass.

`python -m tests.support.layout` prints what is measured beside its limit; `--trace` adds the files that one
local_search runs through; `--write` lowers the limits to what is measured. A limit is a number that may not grow, or
a list of exceptions to a rule that may not gain a member.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "graphrag_mcp"
LIMITS = Path(__file__).with_name("layout_limits.json")

# Layers: a module imports from lower layers and from its own package.
LAYERS = {
    "__init__": 0,
    **dict.fromkeys(("errors", "types", "settings", "logs", "text", "trust"), 1),
    **dict.fromkeys(("store", "names", "code", "executors"), 2),
    **dict.fromkeys(("sources", "llm"), 3),
    "packing": 4,
    **dict.fromkeys(("index", "query", "evaluate", "install"), 5),
    **dict.fromkeys(("app", "jobs", "doctor", "exchange"), 6),
    **dict.fromkeys(("tools", "connections", "explorer"), 7),
    **dict.fromkeys(("server", "http"), 8),
    **dict.fromkeys(("cli", "__main__"), 9),
}
WITHIN_A_LAYER = {("settings", "errors"), ("settings", "trust"), ("http", "server"), ("tools", "explorer"), ("doctor", "exchange"), ("__main__", "cli")}

# Front ends. What only one of them imports is a door of its package: there is nothing below to merge it with.
FRONT_ENDS = ("cli", "tools", "server", "http", "__main__")
# Imported inside a function, and not at the start, because of what they load or hold.
LATE = {
    "llm.openai_chat": "the client openai, for those who have a model",
    "llm.check": "five calls of a model, for one command",
    "llm.local": "ONNX Runtime, for users who have a local model",
    "index.dry_run": "a run in memory with imitated replies, which no other run needs",
}
# A tool's signature is its MCP schema: an argument more is a promise to agents, and no parameter to be merged.
SIGNATURES = "tools"

# Words and phrases of an earlier manner of writing. New text does without them.
AVOIDED = re.compile(
    r"\b(nobody|somebody|whoever|whomever|thereof|therein|anew|goners|of before|no more than is|by rules|answer book|"
    r"unheard of|had anew|out of hand|beforehand|hereby|wherein|withal|henceforth)\b",
    re.IGNORECASE,
)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """`graphrag_mcp/query/local.py` is `query.local`; a package's `__init__.py` is the package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def package_of(name: str) -> str:
    return name.partition(".")[0]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of this package that a module imports anywhere, functions and TYPE_CHECKING included."""
    known = {name_of(path) for path in modules()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "graphrag_mcp":
                continue
            full = ".".join(parts[1:])
            yield full if full in known else ".".join(parts[1:-1]) or "__init__"


@cache
def imports(at_load: bool = False) -> dict[str, set[str]]:
    """For each module the modules it imports; `at_load`: only those imported when it is loaded."""
    found: dict[str, set[str]] = {}
    for path in modules():
        tree: ast.AST = parsed(path)
        if at_load:
            body = [node for node in parsed(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
            tree = ast.Module(body=body, type_ignores=[])
        found[name_of(path)] = set(imported(tree)) - {name_of(path)}
    return found


def wrong_layers() -> list[str]:
    return sorted(
        f"{name} imports {target}"
        for name, targets in imports().items()
        for target in targets
        if package_of(target) != package_of(name)
        and LAYERS[package_of(target)] >= LAYERS[package_of(name)]
        and (package_of(name), package_of(target)) not in WITHIN_A_LAYER
    )


def circles() -> list[str]:
    """Modules that import each other, by any way, also through imports inside functions."""
    graph = {name: {one for one in targets if one in imports()} for name, targets in imports().items()}
    reach: dict[str, set[str]] = {}
    for name in graph:
        seen: set[str] = set()
        stack = list(graph[name])
        while stack:
            one = stack.pop()
            if one not in seen:
                seen.add(one)
                stack += graph[one]
        reach[name] = seen
    return sorted(name for name in graph if name in reach[name])


def levels() -> int:
    """The longest chain of imports made when modules are loaded."""
    graph, depth = imports(at_load=True), {}

    def of(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in depth and name not in above:
            depth[name] = 1 + max((of(one, (*above, name)) for one in graph.get(name, ())), default=0)
        return depth.get(name, 0)

    return max(of(name) for name in graph)


def single_importers() -> list[str]:
    """Modules that only one other module imports, but for doors and what is imported late."""
    by: dict[str, set[str]] = defaultdict(set)
    for name, targets in imports().items():
        for target in targets:
            by[target].add(name)
    alone = {name: next(iter(by[name])) for name in imports() if len(by[name]) == 1}
    return sorted(
        f"{name} ({importer})"
        for name, importer in alone.items()
        if package_of(importer) not in FRONT_ENDS
        and not (name in LATE and name not in imports(at_load=True)[importer])
    )


def long_functions(most: int = 60) -> list[str]:
    return sorted(
        f"{name_of(path)}.{node.name}"
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > most
    )


def ruff(rule: str, *settings: str) -> list[str]:
    """Functions that break a rule of ruff."""
    options = [part for one in settings for part in ("--config", one)]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", rule, "--output-format", "json"]
    done = subprocess.run([*command, *options, str(PACKAGE)], cwd=ROOT, capture_output=True, text=True)
    found = []
    for one in json.loads(done.stdout):
        named = re.search(r"`(\w+)`", one["message"])
        found.append(f"{name_of(Path(one['filename']))}.{named[1] if named else _function_at(one)}")
    return sorted(found)


def _function_at(found: dict[str, Any]) -> str:
    line = found["location"]["row"]
    for node in ast.walk(parsed(Path(found["filename"]))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            return node.name
    return str(line)


def many_parameters(most: int = 8) -> list[str]:
    found = ruff("PLR0913", f"lint.pylint.max-args={most}")
    return [name for name in found if package_of(name) != SIGNATURES]


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


SEARCH = "files of a local_search"
QUESTION = "Who was right about the back-run, and how was it proved?"


def files_of_a_search(home: Path) -> list[str]:
    """The files that one local_search through an MCP client runs through; nothing is subtracted. `home` has an
    index of the sample as corpus `sample`."""
    import anyio
    from mcp import Client

    from graphrag_mcp.app import App
    from graphrag_mcp.server import build_server
    from graphrag_mcp.settings import Settings

    async def called(trace: Trace) -> Any:
        async with Client(build_server(App(Settings(home=home)))) as client:
            trace.recording = True
            return await client.call_tool("local_search", {"query": QUESTION, "corpus": "sample"})

    with Trace() as trace:
        result = anyio.run(called, trace)
    assert not result.is_error, result.content
    return sorted(trace.files)


def traced() -> list[str]:
    """`files_of_a_search` on an index of the sample made for it."""
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.types import IndexRequest

    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        request = IndexRequest((str(ROOT / "docs" / "sample"),))
        index_documents(home / "corpora" / "sample", request, Settings(home=home))
        return files_of_a_search(home)


def avoided_words() -> int:
    """How often the avoided words stand in the package, the prompts and the documentation."""
    pages = [ROOT / "README.md", ROOT / "AGENTS.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "prompts").glob("*.md")]
    pages = [page for page in pages if "sample" not in page.parts]
    return sum(len(AVOIDED.findall(path.read_text("utf-8"))) for path in [*modules(), *pages])


def measured() -> dict[str, Any]:
    return {
        "files": len(modules()),
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in modules()),
        "import levels": levels(),
        "avoided words": avoided_words(),
        "modules in import circles": circles(),
        "modules with a single importer": single_importers(),
        "functions over 60 lines": long_functions(),
        "functions of a complexity over 15": ruff("C901", "lint.mccabe.max-complexity=15"),
        "functions with more than 8 parameters": many_parameters(),
    }


def over() -> dict[str, Any]:
    """What is over its limit: numbers with their limits, and members that a list may not have gained."""
    limits = json.loads(LIMITS.read_text("utf-8"))
    found: dict[str, Any] = {}
    for rule, now in measured().items():
        limit = limits[rule]
        if isinstance(now, int):
            if now > limit:
                found[rule] = f"{now}, at most {limit}"
        elif new := sorted(set(now) - set(limit)):
            found[rule] = new
    return found


def main() -> int:
    now, limits = measured(), json.loads(LIMITS.read_text("utf-8"))
    if "--trace" in sys.argv[1:] or "--write" in sys.argv[1:]:
        files = traced()
        now[SEARCH] = len(files)
        print("\n".join(files) if "--trace" in sys.argv[1:] else "", end="\n\n")
    if "--write" in sys.argv[1:]:
        LIMITS.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
        limits = now
    for rule, value in now.items():
        count, limit = (len(one) if isinstance(one, list) else one for one in (value, limits[rule]))
        print(f"{rule}: {count}, at most {limit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
