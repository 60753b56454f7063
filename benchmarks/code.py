"""Source code: which file and which function an issue is about, and how exact call edges are.

    python benchmarks/code.py find TASKS REPOSITORIES WORK [--only NAME] [--most N] [--kept]
    python benchmarks/code.py calls FOLDER
    python benchmarks/code.py callers FOLDER [--symbols 50]
    python benchmarks/code.py edit FOLDER

`find`: TASKS is a JSONL file of {id, repo, base_commit, issue, gold_files, patch}; REPOSITORIES has a git directory
`owner+name/repo` for each repository. The source files of the commit, without tests, docs and examples, are
indexed in WORK, and the text of the issue is searched for as it is. The rank of a file is its place among the files
of the citations of `local_search` with 20,000 tokens, that of a function its place among the functions in them. The halves
are those of the checksum of the id.
`calls`: edges between functions of a Python package against those that its syntax trees state.
`callers`: the callers of some symbols, each asked for in one call, and by grep for the name and a bracket, against the
same syntax trees.
`edit`: CPU of indexing a copy of a folder, and of indexing it again after a function was added to one file. The second
call runs in the same process, which has imported everything.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RANKS = (1, 3, 5, 10, 20)
SOURCE = re.compile(r"\.(py|pyi|js|mjs|jsx|ts|tsx|java|go|rs|c|h|cc|cpp|hpp|cs|rb|php|kt|scala|swift)$")
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


def solve(task: dict[str, Any], repositories: Path, work: Path, kept: bool) -> dict[str, Any]:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.query.local import local_search
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.store.tables import open_snapshot
    from graphrag_mcp.types import IndexRequest

    folder, home = work / task["id"], work / "home" / task["id"]
    git = repositories / task["repo"].replace("/", "+") / "repo"
    size = checkout(git, task["base_commit"], folder)
    if not kept:
        shutil.rmtree(home, ignore_errors=True)
    began = time.process_time()
    if not (home / "c").exists():
        settings = Settings(home=home, roots=[str(folder)], engine="inline")
        index_documents(home / "c", IndexRequest(paths=(str(folder),)), settings)
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
    return {"id": task["id"], **ranks, "files": len(files), "cpu": round(spent, 2), "mb": round(size / 1e6, 2)}


def summary(rows: list[dict[str, Any]]) -> str:
    lines = []
    for kind in ("file", "functions"):
        ranks = [row[kind] for row in rows if row[kind] >= 0]
        shares = (f"@{most} {100 * sum(0 < rank <= most for rank in ranks) / max(len(ranks), 1):.1f}" for most in RANKS)
        lines.append(f"{kind} ({len(ranks)}): {'  '.join(shares)}")
    cpu, mb = sum(row["cpu"] for row in rows), sum(row["mb"] for row in rows)
    lines.append(f"index: {cpu:.1f} s CPU for {mb:.1f} MB, {cpu / max(mb, 0.001):.2f} s a MB")
    return "\n".join(lines)


def find(args: argparse.Namespace) -> None:
    tasks = [json.loads(line) for line in Path(args.tasks).read_text("utf-8").splitlines()]
    tasks = [one for one in tasks if re.search(args.only, one["id"])][:: args.every][: args.most]
    rows = []
    for task in tasks:
        rows.append(solve(task, Path(args.repositories), Path(args.work), args.kept))
        print(json.dumps(rows[-1]), flush=True)
    for name, half in (("all", (0, 1)), ("first half", (0,)), ("second half", (1,))):
        some = [row for row in rows if zlib.crc32(row["id"].encode()) % 2 in half]
        print(f"{name}:\n{summary(some)}")


LISTED = frozenset(
    "list List set Set frozenset deque Sequence Iterable Iterator Collection AsyncIterator Generator".split()
)
MAPPED = frozenset("dict Dict Mapping MutableMapping defaultdict OrderedDict".split())

# ---- call edges ------------------------------------------------------------------------------------


class Oracle:
    """Call edges of a Python package as its syntax trees state them, by rules of Python's own: scopes,
    imports, `super()`, class names, and the classes of variables, attributes and results, as annotations
    or constructors state them, `isinstance`, and elements of annotated collections ("[]X", "{}X").
    Written apart from the package's resolver, with which it shares nothing."""

    def __init__(self, folder: Path) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.packages: set[str] = set()
        for path in sorted(folder.rglob("*.py")):
            parts = list(path.relative_to(folder).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
                self.packages.add(".".join(parts))
            try:
                self.trees[".".join(parts)] = ast.parse(path.read_text("utf-8", "replace"))
            except (SyntaxError, ValueError):
                pass
        self.names: dict[str, dict[str, str]] = {}  # of modules, classes and functions
        self.classes: dict[str, tuple[str, list[ast.expr]]] = {}
        self.functions: set[str] = set()
        self.returned: dict[str, str] = {}  # function: class of its result
        self.properties: set[str] = set()
        self.fields: dict[tuple[str, str], set[str]] = {}  # class and attribute: classes, "" unknown
        for module, tree in self.trees.items():
            self.names[module] = {}
            self._collect(tree, module, module)
        for module, tree in self.trees.items():
            self._results(tree, [module], "")
        for module, tree in self.trees.items():
            self._fields(tree, [module], "", {})
        self.edges: set[tuple[str, str]] = set()
        for module, tree in self.trees.items():
            self._visit(tree, module, [module], "", {})

    def _collect(self, node: ast.AST, place: str, module: str) -> None:
        names = self.names.setdefault(place, {})
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names[one.name] = f"{place}.{one.name}"
                if isinstance(one, ast.ClassDef):
                    self.classes[f"{place}.{one.name}"] = module, one.bases
                else:
                    self.functions.add(f"{place}.{one.name}")
                    self.names[f"{place}.{one.name}"] = self._parameters(one.args)
                self._collect(one, f"{place}.{one.name}", module)
            elif isinstance(one, ast.Import):
                for alias in one.names:
                    names[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(one, ast.ImportFrom):
                base = module.split(".") if module in self.packages else module.split(".")[:-1]
                base = base[: len(base) - one.level + 1] if one.level else []
                origin = ".".join([*base, *([one.module] if one.module else [])])
                for alias in one.names:
                    names[alias.asname or alias.name] = f"{origin}.{alias.name}"
                    if alias.name == "*":
                        names.setdefault(f"*{origin}", origin)
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                if place in self.functions:
                    names.setdefault(one.id, "")
            else:
                self._collect(one, place, module)

    def _parameters(self, args: ast.arguments) -> dict[str, str]:
        """Names that hide what a module defines; not `Event=Event`, which means what it did."""
        plain = [*args.posonlyargs, *args.args]
        given = [*zip(plain[::-1], args.defaults[::-1], strict=False)]
        given += zip(args.kwonlyargs, args.kw_defaults, strict=True)
        same = {one.arg for one, value in given if isinstance(value, ast.Name) and value.id == one.arg}
        rest = [one for one in (args.vararg, args.kwarg) if one]
        every = {one.arg for one in (*plain, *args.kwonlyargs, *rest)}
        return dict.fromkeys(every - same, "")

    def meaning(self, name: str, seen: frozenset[str] = frozenset()) -> str:
        if name in self.functions or name in self.classes or name in self.trees or name in seen:
            return name if name not in seen else ""
        head, _, last = name.rpartition(".")
        owner = self.meaning(head, seen | {name}) if head else ""
        if owner in self.classes:
            return self.member(owner, last)
        names = self.names.get(owner, {}) if owner in self.trees else {}
        if last in names and names[last] != name:
            return self.meaning(names[last], seen | {name})
        for star in (value for key, value in names.items() if key.startswith("*")):
            if found := self.meaning(f"{star}.{last}", seen | {name}):
                return found
        return ""

    def member(self, owner: str, name: str, seen: frozenset[str] = frozenset()) -> str:
        if owner not in self.classes or owner in seen:
            return ""
        if f"{owner}.{name}" in self.functions:
            return f"{owner}.{name}"
        module, bases = self.classes[owner]
        ways = (self.member(self.named(base, [module]), name, seen | {owner}) for base in bases)
        return next(filter(None, ways), "")

    def named(self, node: ast.expr, scopes: list[str]) -> str:
        said = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        head, dot, rest = said.partition(".")
        for scope in reversed(scopes):
            if scope in self.classes and scope != scopes[-1]:
                continue
            if head in self.names.get(scope, {}):
                return self.meaning(self.names[scope][head] + dot + rest)
        stars = (value for key, value in self.names[scopes[0]].items() if key.startswith("*"))
        return next(filter(None, (self.meaning(f"{star}.{said}") for star in stars)), "") if said else ""

    def _inner(self, one: ast.AST, scopes: list[str], owner: str) -> tuple[list[str], str]:
        inner = f"{scopes[-1]}.{one.name}"
        return [*scopes, inner], inner if isinstance(one, ast.ClassDef) else owner

    def _class(self, node: ast.expr | None, scopes: list[str], owner: str) -> str:
        """The class that an annotation states: `X`, "X", `X | None`, `Optional[X]`, `Self`."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return ""
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            return self._class(node.left, scopes, owner)
        if isinstance(node, ast.Subscript):
            outer = ast.unparse(node.value).rpartition(".")[2]
            each = getattr(node.slice, "elts", None) or [node.slice]
            if outer in ("Optional", "Annotated", "ClassVar", "Final", "type", "Type"):
                return self._class(each[0], scopes, owner)
            mark = "[]" if outer in LISTED else "{}" if outer in MAPPED else ""
            if outer in ("tuple", "Tuple") and ast.unparse(each[-1]) == "...":
                mark = "[]"
            held = self._class(each[-1 if mark == "{}" else 0], scopes, owner) if mark else ""
            return mark + held if held else ""
        said = ast.unparse(node).strip("'\"") if node else ""
        said = re.sub(r"^(?:typing\.)?Optional\[(.*)\]$|\s*\|\s*None$", r"\1", said)
        if said in ("Self", "typing.Self"):
            return owner
        if not re.fullmatch(r"[\w.]+", said):
            return ""
        made = self.named(ast.parse(said, mode="eval").body, scopes)
        return made if made in self.classes else ""

    def _results(self, node: ast.AST, scopes: list[str], owner: str) -> None:
        for one in ast.iter_child_nodes(node):
            if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._results(one, scopes, owner)
                continue
            inner, within = self._inner(one, scopes, owner)
            if not isinstance(one, ast.ClassDef):
                self.returned[inner[-1]] = self._class(one.returns, scopes, owner)
                if any("property" in ast.unparse(by) for by in one.decorator_list):
                    self.properties.add(inner[-1])
            self._results(one, inner, within)

    def _fields(self, node: ast.AST, scopes: list[str], owner: str, known: dict[str, str]) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner, within = self._inner(one, scopes, owner)
                fresh = {} if isinstance(one, ast.ClassDef) else self._known(one, inner, within)
                self._fields(one, inner, within, fresh)
                continue
            self._fields(one, scopes, owner, known)
            if not owner or not isinstance(one, ast.Assign | ast.AnnAssign):
                continue
            for at in one.targets if isinstance(one, ast.Assign) else [one.target]:
                name = at.id if isinstance(at, ast.Name) and scopes[-1] == owner else ""
                if isinstance(at, ast.Attribute) and ast.unparse(at.value) == "self":
                    name = at.attr
                if name and not (isinstance(one.value, ast.Constant) and one.value.value is None):
                    stated = isinstance(one, ast.AnnAssign)
                    of = self._class(one.annotation, scopes, owner) if stated else ""
                    of = of or ("" if stated else self.type_of(one.value, scopes, owner, known))
                    self.fields.setdefault((owner, name), set()).add(of)

    def _known(self, node: ast.FunctionDef, scopes: list[str], owner: str) -> dict[str, str]:
        """The classes of parameters and variables of a function; not of those with several."""
        args = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found = {one.arg: {self._class(one.annotation, scopes[:-1], owner)} for one in args}
        known = {name: next(iter(of)) for name, of in found.items()}
        for one in ast.walk(node):
            pairs: list[tuple[ast.expr | None, str]] = []
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                pairs = [(one.targets[0], self.type_of(one.value, scopes, owner, known))]
            elif isinstance(one, ast.For | ast.AsyncFor | ast.comprehension):
                pairs = self._looped(one.target, one.iter, scopes, owner, known)
            elif isinstance(one, ast.ExceptHandler) and one.name:
                of = self.named(one.type, scopes) if one.type else ""
                pairs = [(ast.Name(one.name), of if of in self.classes else "")]
            elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                pairs = [(one.target, self._class(one.annotation, scopes, owner))]
            for at, of in pairs:
                if isinstance(at, ast.Name):
                    found.setdefault(at.id, set()).add(of)
                    known[at.id] = of
        return {name: next(iter(of)) for name, of in found.items() if len(of) == 1 and of != {""}}

    def _looped(
        self, target: ast.expr, over: ast.expr, scopes: list[str], owner: str, known: dict[str, str]
    ) -> list[tuple[ast.expr | None, str]]:
        """What a loop over an expression binds: an element, of pairs the second."""
        called = over.func if isinstance(over, ast.Call) else None
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            if isinstance(called, ast.Attribute) and called.attr == "items":
                of = self.type_of(called.value, scopes, owner, known)
                return [(target.elts[1], of[2:] if of[:2] == "{}" else "")]
            if isinstance(called, ast.Name) and called.id == "enumerate":
                return self._looped(target.elts[1], over.args[0], scopes, owner, known)
            return []
        of = self.type_of(over, scopes, owner, known)
        return [(target, of[2:] if of[:2] == "[]" else "")]

    def _narrowed(self, test: ast.expr, scopes: list[str]) -> dict[str, str]:
        """The classes that `isinstance(x, X)` gives names."""
        found: dict[str, str] = {}
        for one in test.values if isinstance(test, ast.BoolOp) else [test]:
            if isinstance(one, ast.Call) and ast.unparse(one.func) == "isinstance":
                of = self.named(one.args[1], scopes)
                if isinstance(one.args[0], ast.Name) and of in self.classes:
                    found[one.args[0].id] = of
        return {} if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else found

    def type_of(self, node: ast.expr | None, scopes: list[str], owner: str, known: dict[str, str]) -> str:
        if isinstance(node, ast.Await):
            return self.type_of(node.value, scopes, owner, known)
        if isinstance(node, ast.Name):
            return owner if node.id in ("self", "cls") else known.get(node.id, "")
        if isinstance(node, ast.Subscript):
            of = self.type_of(node.value, scopes, owner, known)
            one = not isinstance(node.slice, ast.Slice)
            return of[2 * one :] if of[:2] in ("[]", "{}") else ""
        if isinstance(node, ast.ListComp):
            of = self.type_of(node.elt, scopes, owner, known)
            return f"[]{of}" if isinstance(node.elt, ast.Call) and of else ""
        if isinstance(node, ast.Call):
            on = node.func.value if isinstance(node.func, ast.Attribute) else None
            of = self.type_of(on, scopes, owner, known) if on else ""
            if of[:2] in ("[]", "{}"):
                method = node.func.attr
                return of[2:] if method in ("get", "pop") else "[]" + of[2:] if method == "values" else ""
            if isinstance(node.func, ast.Name) and node.func.id in ("list", "sorted", "reversed", "set"):
                of = self.type_of(node.args[0], scopes, owner, known) if node.args else ""
                return of if of[:2] == "[]" else ""
            made = self._called(node.func, scopes, owner, known)
            return made if made in self.classes else self.returned.get(made, "")
        if isinstance(node, ast.Attribute):
            of = self.type_of(node.value, scopes, owner, known)
            method = self.member(of, node.attr)
            return self.returned[method] if method in self.properties else self.field(of, node.attr)
        return ""

    def field(self, owner: str, name: str, seen: frozenset[str] = frozenset()) -> str:
        if owner not in self.classes or owner in seen:
            return ""
        if of := self.fields.get((owner, name)):
            return next(iter(of)) if len(of) == 1 else ""
        module, bases = self.classes[owner]
        ways = (self.field(self.named(base, [module]), name, seen | {owner}) for base in bases)
        return next(filter(None, ways), "")

    def _visit(self, node: ast.AST, module: str, scopes: list[str], owner: str, known: dict[str, str]) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner, within = self._inner(one, scopes, owner)
                fresh = {} if isinstance(one, ast.ClassDef) else self._known(one, inner, within)
                self._visit(one, module, inner, within, {**known, **fresh})
                continue
            if isinstance(one, ast.Call) and (target := self._called(one.func, scopes, owner, known)):
                self.edges.add((scopes[-1], target))
            if isinstance(one, ast.If):
                self._visit(ast.Module([ast.Expr(one.test)], []), module, scopes, owner, known)
                narrowed = {**known, **self._narrowed(one.test, scopes)}
                self._visit(ast.Module(one.body, []), module, scopes, owner, narrowed)
                self._visit(ast.Module(one.orelse, []), module, scopes, owner, known)
                continue
            self._visit(one, module, scopes, owner, known)

    def _called(self, func: ast.expr, scopes: list[str], owner: str, known: dict[str, str]) -> str:
        if ast.unparse(func) in ("cls", "type(self)", "self.__class__") and owner:
            return owner
        if isinstance(func, ast.Attribute):
            value = func.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "super" and owner:
                module, bases = self.classes[owner]
                ways = (self.member(self.named(base, [module]), func.attr) for base in bases)
                return next(filter(None, ways), "")
            if of := self.type_of(value, scopes, owner, known):
                return self.member(of, func.attr)
        found = self.named(func, scopes)
        return found if found in self.functions or found in self.classes else ""


def calls(args: argparse.Namespace) -> None:
    from graphrag_mcp.code.parse import parse
    from graphrag_mcp.code.resolve import resolve

    folder = Path(args.folder)
    began = time.process_time()
    files = [
        parse(f"x/{path.relative_to(folder).as_posix()}", path.read_text("utf-8", "replace"))
        for path in sorted(folder.rglob("*.py"))
    ]
    found = [one for one in resolve([file for file in files if file]) if one.kind == "calls"]
    spent = time.process_time() - began
    gold = Oracle(folder).edges
    for least in (0.0, 0.7):
        ours = {
            tuple(name.removeprefix(":").removeprefix("x.") for name in (one.source, one.target))
            for one in found
            if one.certainty > least
        }
        right = len(ours & gold)
        precision, recall = right / max(len(ours), 1), right / max(len(gold), 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        print(
            f"certainty over {least}: {len(ours)} edges, oracle {len(gold)}: P {precision:.3f} R {recall:.3f} F1 {f1:.3f}"
        )
        if args.differences:
            print("\n".join(f"  - {a} -> {b}" for a, b in sorted(gold - ours)[:: args.differences]))
            print("\n".join(f"  + {a} -> {b}" for a, b in sorted(ours - gold)[:: args.differences]))
    print(f"parsed and resolved in {spent:.2f} s CPU")


def grepped(folder: Path, name: str) -> tuple[set[str], int]:
    """The functions with a line that grep finds for a call of this name; and characters of these lines."""
    said = re.compile(rf"\b{re.escape(name)}\s*\(")
    found: set[str] = set()
    characters = 0
    for path in sorted(folder.rglob("*.py")):
        lines = path.read_text("utf-8", "replace").splitlines()
        hits = [
            at
            for at, line in enumerate(lines, 1)
            if said.search(line) and not re.match(rf"\s*(async\s+def|def|class)\s+{name}\b", line)
        ]
        parts = list(path.relative_to(folder).with_suffix("").parts)
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        known = functions(path) if hits else []
        for at in hits:
            inner = innermost(known, at)
            found.add(f"{module}.{inner}" if inner else module)
            characters += len(f"{path.relative_to(folder)}:{at}:{lines[at - 1]}\n")
    return found, characters


def callers(args: argparse.Namespace) -> None:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.query.explore import explore_graph
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.store.tables import open_snapshot
    from graphrag_mcp.types import IndexRequest

    folder = Path(args.folder).resolve()
    gold: dict[str, set[str]] = {}
    oracle = Oracle(folder)
    for source, target in oracle.edges:  # of a class explore_graph also shows who uses its methods
        if target in oracle.functions:
            gold.setdefault(target, set()).add(source)
    asked = sorted(target for target, sources in gold.items() if len(sources) > 1)
    asked = asked[:: max(len(asked) // args.symbols, 1)][: args.symbols]
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home), roots=[str(folder)])
        index_documents(Path(home) / "c", IndexRequest(paths=(str(folder),)), settings)
        snapshot = open_snapshot(Path(home) / "c")
        rows = snapshot.rows("entities", columns=["n", "key"]).to_pylist()
        key = {f"e{row['n']}": row["key"].partition(".")[2] for row in rows}
        ours: dict[str, tuple[set[str], int]] = {}
        for name in asked:
            label = f"{folder.name.replace('.', '_')}.{name}"
            result = explore_graph(snapshot, label, kinds=["calls"], max_tokens=20_000, max_nodes=200)
            ours[name] = {key[edge["source"]] for edge in result.edges}, len(result.text)
    by_grep = {name: grepped(folder, name.rpartition(".")[2]) for name in asked}
    for who, found in (("explore_graph", ours), ("grep", by_grep)):
        right = sum(len(found[name][0] & gold[name]) for name in asked)
        precision = right / max(sum(len(some) for some, _ in found.values()), 1)
        recall = right / sum(len(gold[name]) for name in asked)
        whole = sum(found[name][0] == gold[name] for name in asked)
        characters = sum(size for _, size in found.values()) // len(asked)
        print(
            f"{who}: {len(asked)} symbols, P {precision:.3f} R {recall:.3f}, "
            f"exactly right {whole}, {characters} characters a symbol"
        )


def edit(args: argparse.Namespace) -> None:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.types import IndexRequest

    with tempfile.TemporaryDirectory() as work:
        folder, home = Path(work) / "code", Path(work) / "home"
        shutil.copytree(args.folder, folder)
        files = sorted(folder.rglob("*.py"), key=lambda path: (path.stat().st_size, path))
        for what in ("fresh", "a function more"):
            began = time.process_time()
            settings = Settings(home=home, roots=[str(folder)], engine="inline")
            result = index_documents(home / "c", IndexRequest(paths=(str(folder),)), settings)
            spent = time.process_time() - began
            print(f"{what}: {result.total} files, {spent:.2f} s CPU, {result.seconds}", flush=True)
            with open(files[len(files) // 2], "a", encoding="utf-8") as file:
                file.write("\n\ndef added_for_measuring(thing):\n    return thing\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("find")
    for name in ("tasks", "repositories", "work"):
        one.add_argument(name)
    one.add_argument("--only", default="")
    one.add_argument("--every", type=int, default=1)
    one.add_argument("--most", type=int, default=1_000)
    one.add_argument("--kept", action="store_true", help="search the indexes that are in WORK")
    one.set_defaults(run=find)
    other = commands.add_parser("calls")
    other.add_argument("folder")
    other.add_argument("--differences", type=int, default=0, help="print every Nth difference")
    other.set_defaults(run=calls)
    third = commands.add_parser("callers")
    third.add_argument("folder")
    third.add_argument("--symbols", type=int, default=50)
    third.set_defaults(run=callers)
    fourth = commands.add_parser("edit")
    fourth.add_argument("folder")
    fourth.set_defaults(run=edit)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
