"""The layout of the package: its layers, and who imports whom. `python -m tests.support.layout` prints its size."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "graphrag_mcp"

# Layers: a module imports from lower layers and from its own package.
LAYERS = {
    "__init__": 0,
    **dict.fromkeys(("errors", "types", "settings", "logs", "plugins", "text", "trust"), 1),
    **dict.fromkeys(("store", "names", "executors"), 2),
    **dict.fromkeys(("sources", "llm"), 3),
    "packing": 4,
    **dict.fromkeys(("index", "query", "evaluate", "install"), 5),
    **dict.fromkeys(("app", "code", "jobs", "doctor", "exchange", "notes"), 6),
    **dict.fromkeys(("tools", "connections", "explorer"), 7),
    **dict.fromkeys(("server", "http"), 8),
    **dict.fromkeys(("cli", "__main__"), 9),
}
WITHIN_A_LAYER = {("settings", "errors"), ("settings", "trust"), ("http", "server"), ("tools", "explorer"), ("__main__", "cli")}


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


def main() -> None:
    lines: Counter[str] = Counter()
    for path in modules():
        lines[package_of(name_of(path))] += len(path.read_text("utf-8").splitlines())
    for package, count in lines.most_common():
        print(f"{count:>7,} {package}")
    print(f"{lines.total():>7,} in {len(modules())} modules")


if __name__ == "__main__":
    main()
