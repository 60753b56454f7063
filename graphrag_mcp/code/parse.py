"""Source code to symbols. `parse(uri, text)` gives a `SourceFile`, or None for no known language.

Python is read by the interpreter's own parser; other languages, and Python of another version, by
tree-sitter grammars (extra `code`). The type of a receiver is inferred where the text states it: an
annotation, a constructor, `self` and `cls`, attributes that `__init__` assigns. Nothing is executed.
Broken syntax, generated and minified files never raise.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeGuard

from graphrag_mcp.code import grammars
from graphrag_mcp.code.resolve import COMMON
from graphrag_mcp.code.symbols import SIGNATURE, Import, Reference, SourceFile, Symbol, module_name
from graphrag_mcp.text.prose import language_of

_LINE_END = re.compile(r"\r\n|\n|\r")
_COLON = re.compile(r":\s*(?:#[^\n]*\s*)*\Z")  # and comments between it and the body
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef


def read(file: SourceFile, text: str) -> bool:
    """Fill `file`; False when the text is not Python that this interpreter can parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    try:
        _Reader(file, text).module(tree)
    except RecursionError:
        return False
    return True


class _Offsets:
    """Characters of (line, column in UTF-8 bytes)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
        self.plain = text.isascii()

    def at(self, line: int, column: int) -> int:
        start = self.starts[min(line - 1, len(self.starts) - 1)]
        held = "" if self.plain else self.text[start : start + column]
        if not held.isascii():
            column = len(held.encode("utf-8", "replace")[:column].decode("utf-8", "ignore"))
        return start + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = self.at(node.lineno, node.col_offset)
        return start, self.at(
            node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        )


class _Reader:
    def __init__(self, file: SourceFile, text: str) -> None:
        self.file, self.text, self.offsets = file, text, _Offsets(text)
        self.classes: set[str] = set()

    def module(self, tree: ast.Module) -> None:
        own = self.file.symbols[0]
        doc = _doc(tree)
        self.file.symbols[0] = Symbol(own.name, "module", own.start, own.end, "", doc)
        self._imports(tree)
        self._docstring(tree)
        self._body(tree.body, self.file.module, "module")
        self._uses(tree.body, self.file.module, {}, {})
        said: dict[str, set[str]] = {}
        self._variables(tree.body, said)
        known = ((name, values.pop()) for name, values in said.items() if len(values) == 1)
        self.file.variables = {name: value for name, value in known if value}

    # ---- definitions -----------------------------------------------------------------------------

    def _body(self, body: list[ast.stmt], prefix: str, within: str) -> None:
        for node in body:
            if isinstance(node, _Function):
                self._define(node, prefix, "method" if within == "class" else "function")
                self._body(node.body, f"{prefix}.{node.name}", "function")
            elif isinstance(node, ast.ClassDef):
                self._define(node, prefix, "class")
                self._body(node.body, f"{prefix}.{node.name}", "class")
            elif within == "module" and isinstance(node, ast.Assign | ast.AnnAssign):
                self._constant(node, prefix)
            else:
                for inner in _blocks(node):
                    self._body(inner, prefix, within)

    def _define(self, node: _Scope, prefix: str, kind: str) -> None:
        decorated = min([node, *node.decorator_list], key=lambda one: one.lineno)
        start = self.offsets.at(decorated.lineno, decorated.col_offset) - (decorated is not node)
        end = self.offsets.at(node.end_lineno or node.lineno, node.end_col_offset or 0)
        head = self.offsets.at(node.lineno, node.col_offset)
        body = self.offsets.at(node.body[0].lineno, node.body[0].col_offset)
        name, signature = f"{prefix}.{node.name}", _folded(_COLON.sub("", self.text[head:body]))
        self.file.symbols.append(
            Symbol(name, kind, start, end, signature[:SIGNATURE], _doc(node), prefix)
        )
        if kind == "class":
            self.classes.add(name)
        self._docstring(node)

    def _docstring(self, node: ast.Module | _Scope) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            self.file.prose.append(self.offsets.span(node.body[0]))

    def _constant(self, node: ast.Assign | ast.AnnAssign, prefix: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and len(target.id) > 1:
                start, end = self.offsets.span(node)
                said = _folded(self.text[start:end])[:120]
                name = f"{prefix}.{target.id}"
                self.file.symbols.append(Symbol(name, "constant", start, end, said, "", prefix))

    def _variables(self, body: list[ast.stmt], said: dict[str, set[str]]) -> None:
        """What is assigned to each variable of the module, "" for what is no name and no call."""
        for node in body:
            if isinstance(node, ast.AnnAssign):
                targets, kind = [node.target], _annotation(node.annotation)
                value = f"{kind}()" if kind else ""
            elif isinstance(node, ast.Assign):
                targets, given = node.targets, _base_of(node.value)
                call = isinstance(given, ast.Call)
                value = self._type(given, {}, {}) if call else _dotted(given)
            else:
                for block in _blocks(node):
                    self._variables(block, said)
                continue
            for target in targets:
                if isinstance(target, ast.Name):
                    said.setdefault(target.id, set()).add(value)

    # ---- imports ---------------------------------------------------------------------------------

    def _imports(self, tree: ast.Module) -> None:
        for one in _statements(tree.body):
            if isinstance(one, ast.Import):
                for alias in one.names:
                    local = alias.asname or alias.name.partition(".")[0]
                    target = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._import(local, target, one)
                    if not alias.asname and "." in alias.name:
                        self._import(alias.name, alias.name, one)
            elif isinstance(one, ast.ImportFrom):
                base = self._base(one)
                for alias in one.names:
                    target = f"{base}.{alias.name}".strip(".") if alias.name != "*" else base
                    self._import(
                        "*" if alias.name == "*" else alias.asname or alias.name, target, one
                    )

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.file.module.split(".")
        package = self.file.uri.rpartition("/")[2].startswith("__init__.")
        kept = parts[: len(parts) - node.level + package]
        return ".".join([*kept, *([node.module] if node.module else [])])

    def _import(self, local: str, target: str, node: ast.stmt) -> None:
        self.file.imports.append(Import(local, target, *self.offsets.span(node)))

    # ---- uses ------------------------------------------------------------------------------------

    def _uses(
        self, body: list[ast.stmt], inside: str, types: Mapping[str, str], fields: Mapping[str, str]
    ) -> None:
        """Calls and bases of a block, its functions and classes included, with the types of names."""
        types = dict(types)
        for node in body:
            if isinstance(node, ast.ClassDef):
                name = f"{inside}.{node.name}"
                for base in node.bases:
                    self._reference(_base_of(base), name, types, fields)
                self._expressions([*node.decorator_list, *node.keywords], inside, types, fields)
                self._uses(node.body, name, {}, self._fields(node, name))
            elif isinstance(node, _Function):
                self._function(node, inside, types, fields)
            else:
                self._statement(node, inside, types, fields)

    def _function(
        self, node: _Function, inside: str, types: Mapping[str, str], fields: Mapping[str, str]
    ) -> None:
        name = f"{inside}.{node.name}"
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        inner = dict(types)
        for argument in arguments:
            inner.pop(argument.arg, None)
            if argument.annotation is not None:
                inner[argument.arg] = _annotation(argument.annotation)
        static = any(
            isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list
        )
        if inside in self.classes and arguments and not static:
            inner[arguments[0].arg] = inside
        self._expressions([*node.decorator_list, node.args], inside, types, fields)
        self._uses(node.body, name, inner, fields)

    def _statement(
        self, node: ast.stmt, inside: str, types: dict[str, str], fields: Mapping[str, str]
    ) -> None:
        blocks = _blocks(node)
        if not blocks:
            self._expressions([node], inside, types, fields)
            self._learn(node, types, fields)
            return
        inner = [one for block in blocks for one in block]
        heads = [*ast.iter_child_nodes(node)]
        heads = [one for one in heads if isinstance(one, ast.expr | ast.withitem | ast.arguments)]
        self._expressions(heads, inside, types, fields)
        for one in heads:
            if isinstance(one, ast.withitem) and isinstance(one.optional_vars, ast.Name):
                types[one.optional_vars.id] = self._type(one.context_expr, types, fields)
        for handler in getattr(node, "handlers", []):
            self._expressions([handler.type] if handler.type else [], inside, types, fields)
        for one in inner:
            if isinstance(one, _Scope):
                self._uses([one], inside, types, fields)
            else:
                self._statement(one, inside, types, fields)

    def _learn(self, node: ast.stmt, types: dict[str, str], fields: Mapping[str, str]) -> None:
        target = node.targets[-1] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and len(node.targets) == 1:
            known = self._type(node.value, types, fields)
            types.pop(target.id, None)
            if known:
                types[target.id] = known
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            types[node.target.id] = _annotation(node.annotation)

    def _expressions(
        self, nodes: list[ast.AST], inside: str, types: Mapping[str, str], fields: Mapping[str, str]
    ) -> None:
        for node in nodes:
            for one in _calls_in(node):
                self._reference(one, inside, types, fields)

    def _reference(
        self, node: ast.expr, inside: str, types: Mapping[str, str], fields: Mapping[str, str]
    ) -> None:
        """A call, or else a base; its span is the expression on the line of the name."""
        kind, target = ("calls", node.func) if isinstance(node, ast.Call) else ("inherits", node)
        start, end = self.offsets.span(node)
        named = self.offsets.span(target)[1]
        if isinstance(target, ast.Attribute):
            start = max(start, self.offsets.starts[(target.end_lineno or target.lineno) - 1])
            start += len(self.text[start:named]) - len(self.text[start:named].lstrip())
        if (line := self.text.find("\n", named, end)) >= 0:
            end = line - (self.text[line - 1] == "\r")
        if isinstance(target, ast.Name):
            self.file.references.append(Reference(kind, target.id, start, end, inside))
        elif isinstance(target, ast.Attribute):
            receiver, known = _dotted(target.value), self._type(target.value, types, fields)
            self.file.references.append(
                Reference(kind, target.attr, start, end, inside, receiver or "?", known)
            )

    def _fields(self, node: ast.ClassDef, name: str) -> dict[str, str]:
        """Types of `self.x`: from annotations of the class and from what its methods assign."""
        found = {
            one.target.id: _annotation(one.annotation)
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        for method in (one for one in node.body if isinstance(one, _Function)):
            arguments = {
                one.arg: _annotation(one.annotation) for one in method.args.args if one.annotation
            }
            for one in _statements(method.body):
                if isinstance(one, ast.AnnAssign):
                    targets, known = [one.target], _annotation(one.annotation)
                elif isinstance(one, ast.Assign):
                    targets, known = one.targets, self._type(one.value, arguments, {})
                else:
                    continue
                for target in targets if known else ():
                    if _of_self(target, "self"):
                        found.setdefault(target.attr, known)
        return found

    def _type(
        self, node: ast.expr | None, types: Mapping[str, str], fields: Mapping[str, str]
    ) -> str:
        """The type of an expression as far as the text states it: a dotted name, "" for unknown.

        What a call returns is written `name()`; resolving it is left to what knows all files.
        """
        if isinstance(node, ast.Name):
            return types.get(node.id, "")
        if _of_self(node, "self", "cls"):
            return fields.get(node.attr, "")
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "super":
                return "super"
            called = _dotted(node.func)
            head, _, rest = called.partition(".")
            if rest and head in types and "." not in rest:
                return f"{types[head]}.{rest}()"
            return f"{called}()" if called else ""
        if isinstance(node, ast.Await):
            return self._type(node.value, types, fields)
        if isinstance(node, ast.IfExp):
            return self._type(node.body, types, fields) or self._type(node.orelse, types, fields)
        if isinstance(node, ast.BoolOp):
            return next(filter(None, (self._type(one, types, fields) for one in node.values)), "")
        return ""


def _of_self(node: ast.AST | None, *names: str) -> TypeGuard[ast.Attribute]:
    """Is it `self.x`?"""
    value = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(value, ast.Name) and value.id in names


_PLAIN = frozenset("id attr arg ctx op ops name names asname level type_comment kind".split())


@cache
def _inner(kind: type) -> tuple[str, ...]:
    """Fields of a node that may hold calls; names and constants are half of all nodes."""
    return tuple(name for name in getattr(kind, "_fields", ()) if name not in _PLAIN)


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """All calls, faster than by `ast.walk`."""
    todo: list[Any] = [node]
    while todo:
        one = todo.pop()
        kind = type(one)
        if kind is list:
            todo += one
            continue
        if kind is ast.Call:
            yield one
        for name in _inner(kind):
            if inner := getattr(one, name):
                todo.append(inner)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements, also those inside others; no expression is looked at."""
    todo = body[::-1]
    while todo:
        node = todo.pop()
        yield node
        for block in reversed([node.body] if isinstance(node, _Scope) else _blocks(node)):
            todo += reversed(block)


_TRY = "body orelse finalbody handlers".split()
_COMPOUND: dict[type, Sequence[str]] = {
    **dict.fromkeys((ast.If, ast.For, ast.AsyncFor, ast.While), ("body", "orelse")),
    **dict.fromkeys((ast.With, ast.AsyncWith), ("body",)),
    **dict.fromkeys((ast.Try, getattr(ast, "TryStar", ast.Try)), _TRY),
    ast.Match: ("cases",),
}


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a compound statement that are no scope of their own."""
    found: list[list[ast.stmt]] = []
    for name in _COMPOUND.get(type(node), ()):
        held = getattr(node, name)
        found += [one.body for one in held] if name in ("handlers", "cases") else [held]
    return [block for block in found if block] if found else found


def _folded(text: str) -> str:
    return " ".join(text.split())


def _doc(node: ast.Module | _Scope) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())[:SIGNATURE]


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _base_of(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node  # Generic[T]


_CONTAINERS = frozenset(
    "Union Callable Sequence Mapping Iterable Iterator List Dict Tuple Set".split()
)


def _annotation(node: ast.expr | None) -> str:
    """The class an annotation names: of `X | None`, `Optional[X]`, "X" it is X; of list[X] nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotation(ast.parse(node.value, mode="eval").body)
        except (SyntaxError, ValueError):
            return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        known = [one for side in (node.left, node.right) if (one := _annotation(side))]
        return known[0] if len(known) == 1 else ""
    if isinstance(node, ast.Subscript):
        outer = _dotted(node.value).rpartition(".")[2]
        if outer in ("Optional", "Annotated", "Final", "ClassVar", "Type", "type"):
            several = isinstance(node.slice, ast.Tuple) and node.slice.elts
            return _annotation(node.slice.elts[0] if several else node.slice)
        return _dotted(node.value) if outer[:1].isupper() and outer not in _CONTAINERS else ""
    return _dotted(node) if node is not None else ""


PROSE = "prose"  # the language of a document whose names may mean symbols
PROSE_SUFFIXES = frozenset("md markdown mdx rst adoc asciidoc txt ipynb".split())
_SPOKEN = re.compile(
    r"`{1,2}~?(?P<quoted>[A-Za-z_][\w.]{2,100})(?:\([^`\n]{0,60}\))?`"
    r"|(?<![\w./`:-])(?P<called>[A-Za-z_][\w.]{2,100})\(\)"
    r"|(?<![\w./`@:-])(?P<dotted>[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{1,60}){1,6})(?![\w/@(-]|\.\w)"
)

LARGEST = 2_000_000  # characters of a file that is parsed; larger ones are generated
LONGEST_LINE = 20_000  # characters of a line; longer ones are minified


@lru_cache(maxsize=4)
def parse(uri: str, text: str) -> SourceFile | None:
    """What a source file defines and uses; None where its language is unknown or it is generated."""
    language = language_of(uri)
    if not language or len(text) > LARGEST or _minified(text):
        return None
    file = SourceFile(uri, language, module_name(uri, language))
    file.symbols.append(Symbol(file.module, "module", 0, len(text)))
    if language == "python" and read(file, text):
        file.prose += [match.span() for match in _COMMENT.finditer(text)]
    elif not grammars.read(file, text):
        return None
    prose, file.prose, at = sorted(file.prose), [], 0
    for start, end in prose:
        if end > at:  # no line of a docstring that begins with "#"
            file.prose.append((start, end))
            file.references += spoken(text[start:end], start, file.module)
            at = end
    return _ordered(file)


def parse_prose(uri: str, text: str) -> SourceFile | None:
    """The names that a document writes as code; None where it writes none."""
    if uri.rpartition(".")[2].lower() not in PROSE_SUFFIXES:
        return None
    names = spoken(text, 0, "")
    return SourceFile(uri, PROSE, "", references=names) if names else None


def spoken(text: str, start: int, inside: str) -> list[Reference]:
    """Names in backticks, names with `()` behind them and dotted names, each once a place."""
    found = []
    for match in _SPOKEN.finditer(text):
        group = match.lastgroup or ""
        name = match[group].strip(".")
        plain = group == "quoted" and "." not in name and "(" not in match[0]
        if plain and name.islower() and "_" not in name and (len(name) < 4 or name in COMMON):
            continue
        at = start + match.start(group)
        found.append(Reference("documents", name, at, at + len(name), inside))
    return found


def _minified(text: str) -> bool:
    at = 0
    while len(text) - at > LONGEST_LINE:
        end = text.rfind("\n", at, at + LONGEST_LINE)
        if end < 0:
            return True
        at = end + 1
    return False


_COMMENT = re.compile(r"^[ \t]*#(?!!)[^\n]*", re.MULTILINE)


def _ordered(file: SourceFile) -> SourceFile:
    file.symbols[1:] = sorted(file.symbols[1:], key=lambda one: (one.start, -one.end, one.name))
    file.references.sort(key=lambda one: (one.start, one.end, one.kind))
    return file
