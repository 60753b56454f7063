"""Source code: which file and which function an issue is about, and how exact call edges are.

    python benchmarks/code.py find TASKS REPOSITORIES WORK [--only NAME] [--most N]
    python benchmarks/code.py calls FOLDER

`find`: TASKS is a JSONL file of {id, repo, base_commit, issue, gold_files, patch}; REPOSITORIES has a git directory
`owner+name/repo` for each repository. The source files of the commit, without tests, docs and examples, are
indexed in WORK, and the text of the issue is searched for as it is. The rank of a file is its place among the files
of the citations of `local_search` with 20,000 tokens, that of a function its place among the functions in them.
`calls`: edges between functions of a Python package against those that its syntax trees state.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RANKS = (1, 3, 5, 10, 20)
SOURCE = re.compile(
    r"\.(py|pyi|js|mjs|jsx|ts|tsx|java|go|rs|c|h|cc|cpp|hpp|cs|rb|php|kt|scala|swift)$"
)
LEFT_OUT = re.compile(
    r"(^|/)(tests?|testing|docs?|doc|examples?|bench(marks)?|asv_bench)/|(^|/)(test_[^/]*|conftest)\.py$"
)


def checkout(git: Path, commit: str, folder: Path) -> int:
    """Write the source files of a commit into a folder; bytes written."""
    if folder.exists():
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    archive = subprocess.Popen(["git", "-C", str(git), "archive", commit], stdout=subprocess.PIPE)
    total = 0
    with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
        for member in tar:
            name = member.name
            if member.isfile() and SOURCE.search(name) and not LEFT_OUT.search(name):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
                total += member.size
    archive.wait()
    return total


def changed_lines(patch: str) -> Iterator[tuple[str, int]]:
    """(file, line of the old text) of what a patch removes or puts something behind."""
    file, line = "", 0
    for row in patch.splitlines():
        if row.startswith("--- a/"):
            file = row[6:]
        elif row.startswith("@@"):
            line = int(re.match(r"@@ -(\d+)", row)[1])
        elif row.startswith("-") and not row.startswith("---"):
            yield file, line
            line += 1
        elif row.startswith("+") and not row.startswith("+++"):
            yield file, max(line - 1, 1)
        elif row.startswith(" "):
            line += 1


def functions(path: Path) -> list[tuple[str, int, int]]:
    """(qualified name, first line, last line) of the functions of a Python file."""
    found = []

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = (
                f"{prefix}.{child.name}"
                if hasattr(child, "name") and not isinstance(child, ast.ExceptHandler | ast.alias)
                else prefix
            )
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append((name.strip("."), child.lineno, child.end_lineno))
            walk(child, name)

    try:
        walk(ast.parse(path.read_text("utf-8", "replace")), "")
    except SyntaxError:
        pass
    return found


def innermost(known: list[tuple[str, int, int]], line: int) -> str:
    around = [one for one in known if one[1] <= line <= one[2]]
    return min(around, key=lambda one: one[2] - one[1])[0] if around else ""


def rank_of(gold: set[Any], ranked: list[Any]) -> int:
    """The place of the last of `gold` to be found, 0 where one is missing."""
    places = [ranked.index(one) + 1 if one in ranked else 0 for one in gold]
    return max(places) if places and all(places) else 0


def solve(task: dict[str, Any], repositories: Path, work: Path) -> dict[str, Any]:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.query.local import local_search
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.store.tables import open_snapshot
    from graphrag_mcp.types import IndexRequest

    folder, home = work / task["id"], work / "home" / task["id"]
    git = repositories / task["repo"].replace("/", "+") / "repo"
    size = checkout(git, task["base_commit"], folder)
    shutil.rmtree(home, ignore_errors=True)
    began = time.process_time()
    index_documents(
        home / "c", IndexRequest(paths=(str(folder),)), Settings(home=home, roots=[str(folder)])
    )
    spent = time.process_time() - began
    found = local_search(open_snapshot(home / "c"), task["issue"], max_tokens=20_000)
    files: dict[str, None] = {}
    named: dict[tuple[str, str], None] = {}
    known: dict[str, list[tuple[str, int, int]]] = {}
    for cited in found.citations:
        file = cited.uri.partition("/")[2]
        files.setdefault(file)
        spans = known.setdefault(file, functions(folder / file))
        for name, first, last in spans:
            if first <= cited.line_end and last >= cited.line_start:
                named.setdefault((file, name))
    gold = set()
    for file, line in changed_lines(task["patch"]):
        if name := innermost(functions(folder / file) if file.endswith(".py") else [], line):
            gold.add((file, name))
    ranks = {
        "file": rank_of(set(task["gold_files"]), list(files)),
        "functions": rank_of(gold, list(named)) if gold else -1,
    }
    return {
        "id": task["id"],
        **ranks,
        "files": len(files),
        "cpu": round(spent, 2),
        "mb": round(size / 1e6, 2),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    lines = []
    for kind in ("file", "functions"):
        ranks = [row[kind] for row in rows if row[kind] >= 0]
        shares = (
            f"@{most} {100 * sum(0 < rank <= most for rank in ranks) / max(len(ranks), 1):.1f}"
            for most in RANKS
        )
        lines.append(f"{kind} ({len(ranks)}): {'  '.join(shares)}")
    cpu, mb = sum(row["cpu"] for row in rows), sum(row["mb"] for row in rows)
    lines.append(f"index: {cpu:.1f} s CPU for {mb:.1f} MB, {cpu / max(mb, 0.001):.2f} s a MB")
    return "\n".join(lines)


def find(args: argparse.Namespace) -> None:
    tasks = [json.loads(line) for line in Path(args.tasks).read_text("utf-8").splitlines()]
    tasks = [one for one in tasks if re.search(args.only, one["id"])][:: args.every][: args.most]
    rows = []
    for task in tasks:
        rows.append(solve(task, Path(args.repositories), Path(args.work)))
        print(json.dumps(rows[-1]), flush=True)
    print(summary(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("find")
    for name in ("tasks", "repositories", "work"):
        one.add_argument(name)
    one.add_argument("--only", default="")
    one.add_argument("--every", type=int, default=1)
    one.add_argument("--most", type=int, default=1_000)
    one.set_defaults(run=find)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
