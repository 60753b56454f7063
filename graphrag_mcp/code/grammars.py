"""Source code by tree-sitter grammars (extra `code`): definitions, imports, bases and calls.

Each language is a query in queries/ over its grammar. Captures: `@def.KIND` or `@scope` with `@name`
(and `@owner` where a method stands outside its type), `@base`, `@call` with `@callee` and
`@receiver`, `@import`, `@of` that a module exports as `@export` or as its default, `@var` (a variable
or a type parameter) and `@field` with `@type` or a value that states it, `@comment`. Trees of broken
syntax are read as far as they go. The target of an import with "/" is a path of which only the end
is known in the corpus."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphrag_mcp.code import symbols
from graphrag_mcp.code.symbols import MODULE, SIGNATURE, WORDS, Reference, SourceFile, Symbol

Bound = Iterator[tuple[str, str]]  # local name, target
# Before a path of npm, which settings may give a module; of what is never in the corpus.
_OUTSIDE = "="
_SCRIPT_PATH = re.compile(r"""(?:from|require\s*\(|import)\s*["']([^"']+)["']""")
_SCRIPT_NAME = re.compile(r"\s*(?:import\s+(?:type\s+)?|(?:const|let|var)\s+)?([\w$]+)\s*(?:,|=|$)")
_SCRIPT_SUFFIX = re.compile(r"\.(?:js|mjs|cjs|jsx|ts|mts|tsx|vue|json)$")


def _relative(file: SourceFile, path: str) -> str:
    """`./x` and `../x` as the dotted path of a module; others as a path."""
    folders = file.uri.split("/")[:-1]
    if not path.startswith("."):
        return "/" + path.removeprefix("@/").removeprefix("~/")
    for part in path.split("/"):
        if part == "..":
            folders = folders[:-1]
        elif part not in (".", ""):
            folders.append(part)
    if folders and folders[-1] == "index":
        folders.pop()
    return ".".join(part.replace(".", "_").replace(" ", "_") for part in folders)


def _script(file: SourceFile, statement: str) -> Bound:
    found = _SCRIPT_PATH.search(statement)
    if found is None:
        return
    relative = found[1].startswith((".", "@/", "~/"))
    path = _SCRIPT_SUFFIX.sub("", found[1])
    module = _relative(file, path) if relative else _OUTSIDE + path.replace(".", "_")
    whole = MODULE + module
    clause = statement[: found.start()]
    if relative:
        yield "", whole
    if re.match(r"export\s*\*\s*$", clause.strip()):
        yield "*", module
    if spaced := re.search(r"\*\s*as\s+([\w$]+)", clause):
        yield spaced[1], whole
    if braced := re.search(r"\{([^{}]*)\}", clause):
        for item in braced[1].split(","):
            words = re.findall(r"[\w$]+", item.replace("type ", " "))
            if words:
                yield words[-1], f"{module}.{words[0]}"
    alone = _SCRIPT_NAME.match(clause)
    if alone and alone[1] not in ("import", "export"):
        yield alone[1], whole if "require" in statement else f"{module}.default"


_JSON_NOTE = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def aliases(uri: str, text: str) -> dict[str, str]:
    """The modules that a file of settings gives a name: `paths` of tsconfig.json, a package of npm or
    Rust. `*` stands for any path."""
    here = SourceFile(uri, "", "")
    try:
        if uri.endswith(".toml"):
            name = tomllib.loads(text).get("package", {}).get("name", "").replace("-", "_")
            return {f"crate {name}": _relative(here, "./src")} if name else {}
        document = json.loads(_JSON_NOTE.sub(r"\1", text))
        if uri.endswith("package.json"):
            name = document.get("name", "").replace(".", "_")
            found = {f"package {name}{end}": _relative(here, f".{end}") for end in ("", "/*")}
            return found if name else {}
        options = document.get("compilerOptions", {})
        base = f"./{options.get('baseUrl', '.')}/"
        paths = {"*": ["*"]} if "baseUrl" in options else {}
        return {
            f"path {name.replace('.', '_')}": _relative(here, base + _SCRIPT_SUFFIX.sub("", targets[0]))
            for name, targets in (paths | options.get("paths", {})).items()
        }
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return {}


def _jvm(file: SourceFile, statement: str) -> Bound:
    words = statement.strip().removesuffix(";").split()
    bare = " ".join(words[(words[:1] == ["import"]) * (1 + (words[1:2] == ["static"])) :])
    head, brace, inner = bare.partition("{")
    if brace:  # scala
        for item in inner.rstrip("} ").split(","):
            words = re.findall(r"\w+", item)
            whole = words[:1] == ["_"]
            if words:
                place = head.rstrip(". ")
                yield "*" if whole else words[-1], place if whole else f"{place}.{words[0]}"
        return
    name, _, alias = bare.partition(" as ")
    name = name.strip().replace(" ", "")
    if name.endswith((".*", "._")):
        yield "*", name[:-2]
    else:
        yield alias.strip() or name.rpartition(".")[2], name


def _go(file: SourceFile, statement: str) -> Bound:
    bare = statement.strip().removeprefix("import").strip()
    found = re.match(r'([\w.]*)\s*["`]([^"`]+)["`]', bare)
    if found and found[2].partition("/")[0] in WORDS["go"]:
        yield found[1] or found[2].rpartition("/")[2], _OUTSIDE
    elif found:
        last = re.sub(r"[/.]v\d+$", "", found[2]).rpartition("/")[2]
        last = re.sub(r"[-.]go$|^go-", "", last)
        yield ("*" if found[1] == "." else found[1] or last), found[2].replace(".", "_")


_RUST_USE = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|extern\s+crate)\s+|;\s*$|\s+(?!as\b)(?<!\bas )")


def _rust(file: SourceFile, statement: str) -> Bound:
    yield from _use(file, _RUST_USE.sub(" ", statement).strip().replace("\n", " "), "")


def _use(file: SourceFile, tree: str, before: str) -> Bound:
    depth, parts = 0, [""]
    for ch in tree:
        depth += (ch == "{") - (ch == "}")
        if ch == "," and not depth:
            parts.append("")
        else:
            parts[-1] += ch
    for item in map(str.strip, parts):
        head, brace, inner = item.partition("{")
        if brace:
            yield from _use(file, inner.rpartition("}")[0], before + head.strip())
            continue
        path, _, alias = item.partition(" as ")
        full = _crate(file, (before + path.strip()).removesuffix("::self"))
        last = full.rpartition(".")[2]
        if last == "*":
            yield "*", full[:-2]
        elif full:
            yield alias.strip() or last, full


def _crate(file: SourceFile, path: str) -> str:
    parts = [part for part in path.replace(" ", "").split("::") if part]
    here = file.module.split(".")
    root = here[: len(here) - here[::-1].index("src")] if "src" in here else ["crate"]
    places = {"crate": root, "self": here, "super": here[:-1]}
    before = places.get(parts[0], []) if parts else []
    parts = parts[bool(before) :]
    while parts[:1] == ["super"]:
        before, parts = before[:-1], parts[1:]
    return ".".join([*before, *parts])


def _include(file: SourceFile, statement: str) -> Bound:
    if found := re.search(r'"([^"]+)"', statement):
        path = re.sub(r"\.\w+$", "", found[1])
        yield "*", _relative(file, "./" + path)
        yield "*", _relative(file, path) if path.startswith(".") else "/" + path


def _ruby(file: SourceFile, statement: str) -> Bound:
    found = re.search(r"""["']([^"']+)["']""", statement)
    if found and "require_relative" in statement:
        yield "*", _relative(file, "./" + found[1].removesuffix(".rb"))
    elif found and "/" in found[1]:
        yield "*", "/" + found[1].removesuffix(".rb")


def _php(file: SourceFile, statement: str) -> Bound:
    bare = re.sub(r"^\s*use\s+(?:function|const)?\s*", "", statement)
    for item in re.findall(r"[\w\\]+(?:\s+as\s+\w+)?", bare):
        path, _, alias = re.sub(r"\s+", " ", item).partition(" as ")
        parts = path.strip("\\").split("\\")
        if len(parts) > 1:
            yield alias or parts[-1], f"{'/'.join(parts[:-1])}.{parts[-1]}"


def _using(file: SourceFile, statement: str) -> Bound:
    name = re.sub(r"^\s*(?:global\s+)?using\s+(?:static\s+)?|;\s*$", "", statement)
    if "=" not in name and "." in name:
        yield "*", name.strip().replace(".", "/")


_READERS: dict[str, Callable[[SourceFile, str], Bound]] = {
    **dict.fromkeys(("javascript", "typescript", "tsx"), _script),
    **dict.fromkeys(("java", "kotlin", "scala"), _jvm),
    **dict.fromkeys(("c", "cpp"), _include),
    **{"go": _go, "rust": _rust, "ruby": _ruby, "php": _php, "c_sharp": _using},
}

QUERIES = Path(__file__).with_name("queries")
# Language -> module of its grammar, function that gives it, query.
GRAMMARS = {
    "typescript": ("tree_sitter_typescript", "language_typescript", "ecmascript typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx", "ecmascript typescript jsx"),
    "javascript": ("tree_sitter_javascript", "language", "ecmascript javascript jsx"),
    "php": ("tree_sitter_php", "language_php", "php"),
}
SELF = frozenset(("this", "self", "Self", "$this", "static"))
_TYPES = ("class", "interface", "scope", "type")
# Other nodes state their type by a part of this name.
_STATES = dict.fromkeys(WORDS["same"], "") | dict(pair.split(":") for pair in WORDS["states"])
_FUNCTION = ("object", "operand", "value"), ("property", "field", "name")
_REGIONS = WORDS["regions"] | WORDS["comprehensions"]
_MAKER = re.compile(r"(.+)\.(?:new|default|from)\Z")
_DEEPEST = 20  # nodes in each other that state a type
_MARKS = re.compile(r"^[ \t]*(?:/\*\*?|\*/|\*|///?!?|#+!?|--)[ \t]?|\*/[ \t]*$", re.MULTILINE)
_NAMELESS = frozenset(("object", "arrow_function", "function_expression"))
_WHOLE = frozenset(("method_definition", "lambda"))
_GIVES = ("variable_declarator", "assignment_expression")
_DOTTED = re.compile(r"[$\w.]+")
_HEAD = re.compile(r"[$\w]+(?:\s*\.\s*[$\w]+)*|")  # of a type, without its arguments
_NOTE = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)  # not of `https://`
_TAG = re.compile(r"^[@\\]\w+|^:param", re.MULTILINE)


def _head(written: str) -> str:
    """The name of a type that stands with arguments."""
    found = _HEAD.match(written)
    return found[0] if found else ""


def _in_macro(callee: Any) -> str | None:
    """Of a name before brackets in the arguments of a macro: "" for a call, "?" for one on an
    expression, a path, ".x.y" for one on a variable; None where it calls nothing, or what a pattern
    or closure there may bind."""
    before, after, tree = callee.prev_sibling, callee.next_sibling, callee.parent
    while tree.parent.type == "token_tree":
        tree = tree.parent
    if tree.parent.type != "macro_invocation" or not after.text.startswith(b"("):
        return None
    sign, path = before.text if before is not None else b"", list[str]()
    between = sign
    while sign == between in (b"::", b".") and before and before.prev_sibling is not None:
        name = before.prev_sibling
        path.insert(0, name.text.decode())
        before = name.prev_sibling
        sign = before.text if before is not None else b""
    named = path and all(map(str.isidentifier, path)) and sign not in (b"::", b"$")
    if between == b".":
        may_bind = re.search(rb"\||=>|\blet\b", tree.text)
        binds = may_bind and path and path[0].encode() in _alone(tree)
        return "." + ".".join(path) if named and sign != b"." and not binds else "?"
    if path or sign in (b"::", b"!", b"fn", b"$"):
        return "::".join(path) if named else None
    return None if callee.text in _alone(tree) else ""


@lru_cache(maxsize=1)
def _alone(tree: Any) -> set[bytes]:
    """The names in the arguments of a macro that stand alone or are defined there."""
    found, todo = set(), [tree]
    for node in todo:  # which grows
        todo += (each for each in node.children if each.type == "token_tree")
        for name in (each for each in node.children if each.type == "identifier"):
            beside = (name.prev_sibling, name.next_sibling)
            before, after = (each.text if each is not None else b"" for each in beside)
            called = after[:1] == b"(" or after in (b"::", b"!")
            if before == b"fn" or not (called or before in (b".", b"::")):
                found.add(name.text)
    return found


def _parts(node: Any) -> list[Any]:
    """What stands before the dot of a member, and its name."""
    return [next(filter(None, map(node.child_by_field_name, field)), None) for field in _FUNCTION]


def _whole(node: Any) -> bool:
    """Is it a function, not a block in one?"""
    return "function" in node.type or node.type in WORDS["comprehensions"] | _WHOLE


@lru_cache(maxsize=32)
def _query(language: str) -> tuple[Any, Any] | None:
    """Parser and compiled query of a language; None where its grammar is not installed."""
    usual = f"tree_sitter_{language}", "language", language
    module, function, name = GRAMMARS.get(language, usual)
    try:
        from tree_sitter import Language, Parser, Query

        grammar = Language(getattr(importlib.import_module(module), function)())
    except ImportError:
        return None
    texts = ((QUERIES / f"{part}.scm").read_text("utf-8") for part in name.split())
    return Parser(grammar), Query(grammar, "".join(texts))


def read(file: SourceFile, text: str) -> bool:
    """Fill `file`; False where there is no grammar for its language."""
    patterns = _query(file.language)
    if patterns is None:
        return False
    from tree_sitter import QueryCursor

    parser, query = patterns
    file.broken = file.language == "python"
    data = text.encode("utf-8", "replace")
    matches = QueryCursor(query).matches(parser.parse(data).root_node)
    _Reader(file, text, data).fill([found for _, found in matches])
    return True


class _Spans:
    """Nested stretches of bytes, each with a value, added in the order of their starts."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.rows: list[tuple[int, int, Any]] = []  # place of the outer one, end, value

    def add(self, start: int, end: int, value: Any) -> None:
        outer = len(self.rows) - 1
        while outer >= 0 and self.rows[outer][1] < end:
            outer = self.rows[outer][0]
        self.starts.append(start)
        self.rows.append((outer, end, value))

    def around(self, start: int, end: int) -> Any:
        """The value of the innermost stretch around these bytes, None for none."""
        at = bisect_right(self.starts, start) - 1
        while at >= 0 and self.rows[at][1] < end:
            at = self.rows[at][0]
        return self.rows[at][2] if at >= 0 else None


class _Reader:
    def __init__(self, file: SourceFile, text: str, data: bytes) -> None:
        self.file, self.text, self.data = file, text, data
        self.offsets = symbols.Offsets(text)
        self.scopes = _Spans()  # definitions: name, kind
        self.made: set[int] = set()  # nodes of definitions
        self.functions: set[str] = set()  # of Rust, whose macros have names of their own
        self.known: set[str] = set()  # modules and definitions of Rust
        self.returns: dict[int, Any] = {}  # nodes of symbols, by their places
        self.generics: set[str] = set()  # type parameters
        self.inline: set[str] = set()  # modules of Rust that are a part of the file
        self.nameless: dict[int, str] = {}  # objects and functions without a name: labels
        self.local: list[tuple[str, int, int, str]] = []  # functions that are known in these alone
        self.owners: set[str] = set()  # what `this` may be
        self.reader = _READERS.get(file.language)
        self.script = self.reader is _script
        # Types of variables and fields, "" for unknown, and where they are stated.
        self.bound: dict[str, _Spans] = defaultdict(_Spans)
        self.fields: dict[tuple[str, str], tuple[str, int]] = {}
        self.comments: dict[int, tuple[int, int]] = {}  # by the line behind them

    def span(self, node: Any) -> tuple[int, int]:
        return self.offsets.at(*node.start_point), self.offsets.at(*node.end_point)

    def text_of(self, node: Any, most: int = 1 << 30) -> str:
        start = node.start_byte
        return self.data[start : min(node.end_byte, start + most)].decode("utf-8", "replace")

    def fill(self, matches: list[dict[str, list[Any]]]) -> None:
        for node in (node for found in matches for node in found.get("comment", ())):
            self._comment(node)
        definitions = [
            (node, kind, found)
            for found in matches
            for kind, nodes in found.items()
            if kind.startswith("def.") or kind == "scope"
            for node in nodes
        ]
        definitions.sort(key=lambda row: (row[0].start_byte, -row[0].end_byte, row[1] != "scope"))
        for node, kind, found in definitions:
            anonymous = node.type == "class" and node.parent.type in _GIVES  # `const A = class {}`
            if node.id not in self.made and not (anonymous and node.parent.id in self.made):
                self.made.add(node.id)
                self._define(node, kind, found)
        if self.reader is _rust:
            self.known |= {symbol.name for symbol in self.file.symbols}
        imports = (node for found in matches for node in found.get("import", ()))
        for node in imports:
            if self.reader is None:
                break
            here = SourceFile(self.file.uri, self.file.language, self._module(node))
            self._import(node, self.reader(here, _NOTE.sub(" ", self.text_of(node))), here.module)
        named = {node.id for *_, found in definitions for node in found.get("name", ())}
        self._bind(matches, named)
        for at, node in self.returns.items():
            if returned := self._returned(node):
                self.file.symbols[at] = replace(self.file.symbols[at], returns=returned)
        for found in matches:
            for node in found.get("base", ()):
                self._base(node)
            for node in found.get("call", ()):
                self._call(node, found)
            for node in found.get("of", ()):
                name = self.text_of(found["export"][0]) if "export" in found else "default"
                creates = node.type == "new_expression"
                value = f"{self._stated(node)}()" if creates else self.text_of(node)
                known = _DOTTED.fullmatch(value.removesuffix("()"))
                self.file.variables[name] = value if known else ""

    def _module(self, node: Any) -> str:
        """The inline module of Rust around a node, or that of the file."""
        around = self._around(self.inside(node.start_byte, node.end_byte)[0])
        return next((name for name in around if name in self.inline), self.file.module)

    def _import(self, node: Any, bound: Bound, here: str) -> None:
        """What an import in the module `here` binds, in a block with a name that no other block has:
        `x@PLACE`. A path of Rust may begin with what its module defines."""
        inline = here if here in self.inline else ""
        up = node.parent
        while up and up.type not in _REGIONS:
            up = up.parent
        for name, target in bound:
            if up and name not in ("", "*"):
                local, name = name, f"{name}@{node.start_byte}"
                self.local.append((local, up.start_byte, up.end_byte, f"={name}"))
            if f"{here}.{target.partition('.')[0]}" in self.known:
                target = f"{here}.{target}"
            if target:
                self.file.imports.append(symbols.Import(name, target, *self.span(node), inline))

    def _bind(self, matches: list[dict[str, list[Any]]], defined: set[int]) -> None:
        """The variables and fields with what is stated of their types."""
        imports = {node.id for found in matches for node in found.get("import", ())}
        imports = imports if self.reader else set()  # else they only hide
        rows: dict[Any, tuple[Any, ...]] = dict(enumerate((*row, 0) for row in self.local))
        typed: set[int] = set()  # variables with a declared type, which no value changes
        again: dict[str, dict[int, str]] = defaultdict(dict)  # where a variable gets another value
        for found in (match for match in matches if "again" in match):
            node = found["again"][0]
            again[self.text_of(node)][node.start_byte] = self._stated(found["type"][0])
        for found in matches:
            type_name = stated = self._stated(found["type"][0]) if "type" in found else ""
            region = found["within"][0] if "within" in found else None
            if stated and found["type"][0].parent.type in WORDS["rests"]:
                type_name = stated = ""  # several of them
            written = "type" in found and found["type"][0].parent.type == "type_annotation"
            for node in found.get("field", ()):
                owner = self._owner(self.inside(node.start_byte, node.end_byte)[0])
                known = owner if node.parent.type == "enum_constant" else stated
                self.fields.setdefault((owner, self.text_of(node)), (known, node.start_byte))
            for node in found.get("var", ()):
                stated = type_name
                if node.id in defined or (node.id in rows and not (type_name and node.id not in typed)):
                    continue
                if node.parent.type in WORDS["generics"]:
                    self.generics.add(self.text_of(node))
                start, up = (region or node).start_byte, region
                if up is None:
                    start, up = self._reach(node, imports)
                if up is None:
                    continue
                typed |= {node.id} if written else set()
                name = self.text_of(node).lstrip("$")
                if node.parent.type == "class":  # `const A = class B {}`
                    stated = self.inside(start, node.end_byte)[0]
                elif not written:
                    later = again.get(name, {}).items()
                    other = {kind for at, kind in later if start < at < up.end_byte}
                    bare = node.parent.named_child_count == 1  # `let x;`
                    stated = other.pop() if bare and len(other) == 1 else stated * (not other)
                if up.parent:
                    key = node.id if region is None else (node.id, region.id)
                    rows[key] = name, start, up.end_byte, stated, node.start_byte
                elif stated and not any(node.type in WORDS["paths"] for node in found.get("type", ())):
                    rows[node.id] = name, 0, up.end_byte, stated, node.start_byte
                    self.file.variables[name] = stated.removesuffix("()") + "()"
        for name, start, end, *types in sorted(rows.values(), key=lambda row: (row[1], -row[2])):
            self.bound[name].add(start, end, types)
        self._keep(again)

    def _reach(self, node: Any, imports: set[int]) -> tuple[int, Any]:
        """From where and in which node a variable is bound, None for what an import binds."""
        start, up = node.start_byte, node.parent
        hoists = self.file.broken  # or `var` of JavaScript
        past = False  # `if (!(x instanceof Foo f)) return;`, which binds f behind it
        while up.parent and (up.type not in _REGIONS or (hoists and not _whole(up)) or past):
            late = up.type in WORDS["late"] or (past and up.type == "if_statement")
            start = up.end_byte if late else start
            past = (past or up.type == "unary_expression") and up.parent.type != "block"
            hoists |= self.script and up.type == "variable_declaration"
            if up.id in imports:
                return 0, None
            up = up.parent
        return up.start_byte if hoists or up.type in WORDS["comprehensions"] else start, up

    def _keep(self, again: dict[str, dict[int, str]]) -> None:
        """What other files may know: fields, and names that the module binds to something else."""
        for name, places in again.items():
            if any(self.bound_at(name, (at, at)) is None for at in places):
                self.file.variables[name] = ""
        for (owner, name), field in self.fields.items():
            known = self._expanded(*field) if owner else ""
            if known or (owner and self.file.language == "go"):
                self.file.variables[f"{owner[len(self.file.module) + 1 :]}.{name}"] = known

    def _stated(self, node: Any, deep: int = 0) -> str:
        """The stated type: a dotted name, `name()` for what a call gives, "" for unknown."""
        kind = node.type if deep < _DEEPEST else ""
        if kind == "unary_expression" and node.text.startswith(b"<-"):
            return ""  # what a channel of Go gives
        if kind in _STATES:
            part = node.child_by_field_name(_STATES[kind]) if _STATES[kind] else None
            part = part or (node.named_children or [None])[-1 if kind != "bounded_type" else 0]
            return self._stated(part, deep + 1) if part else ""
        if kind in WORDS["named"]:
            return self._name(node)
        if kind in ("generic_type", "new_expression"):
            return self._generic(node, deep)
        if kind == "union_type":
            known = [stated for part in node.named_children if (stated := self._stated(part, deep + 1))]
            return known[0] if len(known) == 1 else ""
        if kind in ("call_expression", "call", "method_invocation"):
            return self._given(node, deep)
        if kind in ("binary_expression", "ternary_expression"):
            sign = node.child_by_field_name("operator")
            if sign and sign.type not in ("??", "||"):
                return ""
            ways = [self._stated(part, deep + 1) for part in node.named_children[-2:]]
            ways = list(filter(None, ways))
            return ways[0] if len({*ways}) == 1 or (ways and sign) else ""
        name = self._name(node) if kind in WORDS["paths"] else ""
        if kind not in WORDS["paths"] or name or not node.child_count:
            return name
        on, member = _parts(node)
        before = self._stated(on, deep + 1) if on and member else ""
        return f"{before}.{self.text_of(member)}" if before else ""

    def _generic(self, node: Any, deep: int) -> str:
        """The type that a type with arguments states: of `Box<X>` it is X."""
        head, *inner = node.named_children
        inner = inner if self.file.language != "go" else []
        arguments = inner[0].named_children if inner and inner[0].type == "type_arguments" else []
        name = re.split(r"::|\.", self.text_of(head))[-1]
        language = "script" if self.script else self.file.language
        if arguments and name in WORDS.get(f"pointers_{language}", ()):
            return self._stated(arguments[0], deep + 1)
        return self._stated(head, deep + 1)

    def _returned(self, node: Any) -> str:
        """The type that a function states for what it gives; `Self` and `this` as they are."""
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if node.type in ("type_alias_declaration", "type_spec", "type_item"):
            return ""
        node = value or node
        fields = (node.child_by_field_name(field) for field in ("return_type", "result", "type"))
        part = next(filter(None, fields), None)
        while part is not None and part.type in ("parameter_list", "parameter_declaration"):  # Go
            part = part.child_by_field_name("type") or next(iter(part.named_children), None)
        known = self._stated(part) if part is not None else ""
        generic = known.partition(".")[0] in self.generics
        return self._expanded(known, part.start_byte) if part is not None and generic else known

    def _given(self, node: Any, deep: int) -> str:
        """The type of what a call gives."""
        function = node.child_by_field_name("function") or node
        if function.type in WORDS["around"]:  # `await get<T>()`, `get::<T>()`, `get[T]()`
            function = function.named_children[0]
        called = "" if function is node else self._name(function)
        if called in SELF:
            return called
        if called in ("new", "make") and self.file.language == "go":
            return self._stated(node.child_by_field_name("arguments").named_children[0], deep + 1)
        if not called:
            on, name = _parts(function)
            before = self._name(on) or self._stated(on, deep + 1) if on else ""
            called = f"{before}." * bool(on) + self._name(name) if before or not on else ""
        maker = _MAKER.match(called)
        return maker[1] if maker else f"{called}()" if called else ""

    def _name(self, node: Any) -> str:
        """A dotted name, "" for other nodes."""
        text = self.text_of(node, 200).replace("::", ".").replace("?.", ".") if node else ""
        return text if _DOTTED.fullmatch(text) and text != "var" else ""

    def _comment(self, node: Any) -> None:
        start, end = self.span(node)
        self.file.prose.append((start, end))
        line = node.end_point[0] + (node.end_point[1] > 0)
        first = self.comments.pop(node.start_point[0], (start, end))[0]
        self.comments[line] = first, end

    def inside(self, start: int, end: int) -> tuple[str, str]:
        """Qualified name and kind of the innermost definition around these bytes."""
        return self.scopes.around(start, end) or (self.file.module, "module")

    def _define(self, node: Any, kind: str, found: dict[str, list[Any]]) -> None:
        name = self.text_of(found["name"][0]) if "name" in found else "default"
        name = re.sub(r"\s+", "", name).replace("::", ".").removeprefix("module.")
        parent, within = self.inside(node.start_byte, node.end_byte)
        if node.type == ("class" if self.script else "object_creation_expression"):
            name = self._anonymous(node, name, parent)
        if "owner" in found:
            parent, within = f"{self.file.module}.{self.text_of(found['owner'][0])}", "class"
            self.owners |= {parent} if self.script else set()
        label = self._label(node, name, parent) if kind != "scope" else ""
        full = f"{parent}.{label}{name.strip('~.')}"
        if kind == "scope":
            self._enter(node, full, "scope")
            self.known |= {full} if node.type == "mod_item" else set()
            if node.type == "mod_item" and node.child_by_field_name("body"):
                self.inline.add(full)
                self.file.imports.append(symbols.Import("self", full, *self.span(node), full))
            return
        member = within in _TYPES or "." in name
        kind = "method" if kind == "def.function" and member else kind.removeprefix("def.")
        above = node.parent
        outer = above if above is not None and above.type.startswith("export") else node
        start, end = self.span(outer)[0], self.span(node)[1]
        body = node.child_by_field_name("body")
        head = self.text[start : self.span(body)[0] if body else end]
        head = head if body else head.partition("\n")[0]
        signature = " ".join(head.split()).rstrip("{=: ")[:SIGNATURE]
        doc = self._doc(outer.start_point[0])
        kind = "method" if label and kind == "function" else kind  # no bare name means it
        parent = parent if label or name.startswith("exports.") else full.rpartition(".")[0]
        self.returns[len(self.file.symbols)] = node
        self.file.symbols.append(Symbol(full, kind, start, end, signature, doc, parent))
        self.functions |= {name} if node.type == "function_item" else set()  # print is not print!
        self._enter(node, full, kind)

    def _anonymous(self, node: Any, name: str, parent: str) -> str:
        """The name of a class that only its place knows: `Task$1`; not of one that a module exports."""
        above = node.parent
        if node.type == "class":
            named = node.child_by_field_name("name")
            left = above.child_by_field_name("left")
            if above.type == "export_statement" or self._name(left) == "module.exports":
                return self.text_of(named) if named else "default"
            name = self.text_of(named) if named else "class"
        name = _head(name).rpartition(".")[2]
        rests = (owner[len(parent) :] for owner in self.owners if owner.startswith(f"{parent}."))
        return f"{name}${sum(f'.{name}$' in rest for rest in rests) + 1}"

    def _label(self, node: Any, name: str, parent: str) -> str:
        """What stands before the name of a definition in an object or a function of JavaScript that is
        no definition itself: `api.` of `const api = {fetch() {}}`."""
        up = node.parent if self.script else None
        while up is not None and up.id not in self.made:
            called = up.parent is not None and up.parent.id in self.made and up.type != "object"
            block = up.type == "statement_block" and not _whole(up.parent)
            if (up.type in _NAMELESS or block) and not called:
                if up.type != "object":
                    full = f"{parent}.{self._number(up)}{name}"
                    self.local.append((name, up.start_byte, up.end_byte, full))
                return self._number(up)
            up = up.parent
        return ""

    def _number(self, node: Any) -> str:
        if node.id not in self.nameless:
            fields = (node.parent.child_by_field_name(field) for field in ("name", "left", "key"))
            name = self._name(next(filter(None, fields), None)) if node.type == "object" else ""
            name = "default" if node.parent.type == "export_statement" else name.rpartition(".")[2]
            self.nameless[node.id] = f"{name or f'${len(self.nameless) + 1}'}."
        return self.nameless[node.id]

    def _enter(self, node: Any, name: str, kind: str) -> None:
        self.scopes.add(node.start_byte, node.end_byte, (name, kind))
        if kind in _TYPES:
            self.owners.add(name)

    def _doc(self, line: int) -> str:
        """The first paragraph of the comment that ends on the line above."""
        comment = self.comments.get(line)
        if comment is None:
            return ""
        bare = _MARKS.sub("", self.text[comment[0] : comment[1]]).strip()
        bare = _TAG.split(bare)[0].strip()
        return " ".join(bare.partition("\n\n")[0].split())[:SIGNATURE]

    def _base(self, node: Any) -> None:
        inside, kind = self.inside(node.start_byte, node.end_byte)
        head = _head(self.text_of(node))
        bound = self.bound_at(head.partition(".")[0], (node.start_byte, node.end_byte))
        hidden = bound is not None and bound[:1] != "="  # by a parameter: `(B) => class extends B`
        if kind in _TYPES and head and not hidden:
            start = self.span(node)[0]
            receiver, _, base = re.sub(r"\s", "", head).rpartition(".")
            place = start, start + len(head), inside
            self.file.references.append(Reference("inherits", base, *place, receiver))

    def _call(self, node: Any, found: dict[str, list[Any]]) -> None:
        callee = found["callee"][0]
        inside, _ = self.inside(callee.start_byte, callee.end_byte)
        name, place = self.text_of(callee), (callee.start_byte, callee.end_byte)
        receiver = known = ""
        written = _in_macro(callee) if callee.parent.type == "token_tree" else ""
        if written is None or (node.type == "macro_invocation" and name in self.functions):
            return
        if "receiver" in found:
            receiver, known = self._receiver(found["receiver"][0])
        elif written[:1] in ("?", "."):
            head, receiver = written[1:].partition(".")[0], "?"
            bound = written[1:] and (written.startswith(".self") or self.bound_at(head, place))
            known = self._expanded(written[1:], callee.start_byte) if bound else ""
        elif written:
            here = SourceFile("", "", self._module(callee))
            receiver, known = _crate(here, written), "!"
        elif callee.type == "this" or name == "Self":
            known = self._owner(inside)
        elif self.file.language != "java" and (bound := self.bound_at(name, place)) is not None:
            known = bound if bound.startswith(("=", self.file.module + ".")) else "?"
        elif callee.parent.type == "token_tree":
            known = "!"
        if (callee.type == "this" or name == "Self") and not (known or receiver):
            return
        (start, end), (named, behind) = self.span(node), self.span(callee)
        start = max(start, self.text.rfind("\n", 0, named) + 1)
        start += len(self.text[start:named]) - len(self.text[start:named].lstrip(" \t"))
        if callee.parent.type == "token_tree":  # of a macro, with what stands before the name
            shown = f"{written[1:]}." if written[:1] == "." else f"{written}::"
            start = named - len(shown) * self.text.endswith(shown, 0, named)
            end = self.span(callee.next_sibling)[1]
        stop = self.text.find("\n", behind, end)
        end = stop if stop >= 0 else end
        self.file.references.append(Reference("calls", name, start, end, inside, receiver, known))

    def bound_at(self, name: str, place: tuple[int, int]) -> str | None:
        """The type of the variable that a name means at a place, "" for unknown; None for no variable."""
        found = self.bound[name].around(*place) if name in self.bound else None
        return found[0] if found else None

    def _receiver(self, node: Any) -> tuple[str, str]:
        """What a call is on, "?" for an expression and a variable; and its type. The receiver of a
        chain of calls is all of the chain before."""
        text = self.text_of(node, 200).replace("::", ".").replace("->", ".").lstrip("&*")
        path = node.type in ("crate", "super", "self", "scoped_identifier")
        if path and node.parent.type == "scoped_identifier":
            here = SourceFile("", "", self._module(node))
            return _crate(here, self.text_of(node, 200)), ""
        if text.endswith(".this"):  # of an outer class of Java
            return "?", self._expanded(text.removesuffix(".this"), node.start_byte)
        if not _DOTTED.fullmatch(text):
            return "?", self._expanded(self._stated(node), node.start_byte)
        head, _, rest = text.partition(".")
        if text == "super":
            return text, "super"
        place = node.start_byte, node.end_byte
        known = "Self" if head in SELF else self.bound_at(head.lstrip("$"), place)
        if known and known[0] == "=":  # an import of this block
            text, known = f"{known[1:]}.{rest}" if rest else known[1:], None
        shown = text if known is None or head in SELF else "?"
        return shown, self._expanded(text.lstrip("$"), node.start_byte) if known is not None else ""

    def _expanded(self, written: str, at: int, deep: int = 0) -> str:
        """A type, of a variable or type parameter at its head what is known of it, "" for nothing."""
        head, dot, rest = written.partition(".")
        if head in SELF:
            return f"{self._owner(self.inside(at, at)[0])}{dot}{rest}"
        found = self.bound[head].around(at, at) if head in self.bound else None
        if found is None or written in self.owners:
            return written
        expanded, place = found
        if expanded[:1] == "=":
            expanded = expanded[1:]
        elif expanded not in (head, ""):  # a type parameter means what it does where it is used
            place = at if expanded[:1].isupper() else place
            expanded = self._expanded(expanded, place, deep + 1) if deep < _DEEPEST else ""
        return f"{expanded}{dot}{rest}" if expanded else ""

    def _owner(self, inside: str) -> str:
        return next((name for name in self._around(inside) if name in self.owners), "")

    def _around(self, name: str) -> list[str]:
        """The name and what contains it, innermost first."""
        parts = name[len(self.file.module) :].split(".")
        return [self.file.module + ".".join(parts[:count]) for count in range(len(parts), 0, -1)]
