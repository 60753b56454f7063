"""Source code to symbols. `parse(uri, text)` gives a `SourceFile`, or None for no known language.

Python is read by the interpreter's own parser; other languages, and Python of another version, by
tree-sitter grammars (extra `code`). The type of a receiver is inferred where the text states it: an
annotation, a constructor, `self` and `cls`, attributes that `__init__` assigns. Nothing is executed.
Broken syntax, generated and minified files never raise."""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import StringIO
from typing import TypeGuard

from graphrag_mcp.code import grammars, symbols
from graphrag_mcp.code.languages import language_of
from graphrag_mcp.code.resolve import COMMON
from graphrag_mcp.code.symbols import MODULE, SIGNATURE, WORDS, Reference, SourceFile, Symbol

_LINE_END = r"\r\n|\n|\r"
_COLON = re.compile(r":\s*(?:#[^\n]*\s*)*\Z")  # and comments between it and the body
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
_Assignment = ast.Assign | ast.AnnAssign


def read(file: SourceFile, text: str) -> bool:
    """Fill `file`; False when the text is not Python that this interpreter can parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(text)
            except (SyntaxError, RecursionError, MemoryError):
                tree = ast.parse(_without_deep(text))  # or as the grammar of the extra reads it
        _Reader(file, text).module(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return False
    return True


def _without_deep(text: str) -> str:
    """The text without the statements of more than MOST_SIGNS operators and brackets, which nest
    deeper than the parser follows; all others stay where they are."""
    lines, signs, start, last = text.split("\n"), 0, (0, 0), ""
    for kind, token, began, (end, _), _ in tokenize.generate_tokens(StringIO(text).readline):
        if kind == tokenize.OP:
            signs, last = signs + 1, token
        elif kind == tokenize.NEWLINE:
            if signs > MOST_SIGNS and last != ":":
                first = start[0] - 1
                lines[first:end] = (" " * len(line) for line in lines[first:end])
                lines[first] = lines[first][: start[1]] + "0" + lines[first][start[1] + 1 :]
            signs, start = 0, (0, 0)
        if kind not in _BETWEEN and not start[0]:
            start = began
    return "\n".join(lines)


MOST_SIGNS = 800  # the parser follows about 2,900 in a chain, of brackets 200
_BETWEEN = {tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT}


@dataclass(slots=True)
class _Scope:
    """A module, class or function: its qualified name, what is known of the types of names in it,
    names that functions bind: "?" variables, "=" imports, "" definitions."""

    name: str
    kind: str
    types: dict[str, str] = field(default_factory=dict)
    local: dict[str, str] = field(default_factory=dict)
    around: dict[str, str] | None = None  # of a class: the types that its methods see

    def within(self, name: str, kind: str, arguments: ast.arguments | None) -> _Scope:
        """A scope inside, with the names of its arguments bound."""
        seen = self.types if self.around is None else self.around
        inner = _Scope(name, kind, dict(seen), dict(self.local))
        if arguments:
            plain = [*arguments.posonlyargs, *arguments.args]
            rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
            for argument in (*plain, *arguments.kwonlyargs, *rest):
                known = "" if argument in rest else _annotation(argument.annotation)
                inner.types[argument.arg], inner.local[argument.arg] = (known, _TYPED if known else "?")
        return inner

    def bind(self, names: Iterable[str]) -> None:
        for name in (name for name in names if self.local.get(name) != _TYPED):
            self.types[name] = ""
            if self.kind in ("function", "<"):
                self.local.setdefault(name, "?")


class _Reader:
    def __init__(self, file: SourceFile, text: str) -> None:
        self.file, self.text, self.offsets = file, text, symbols.Offsets(text, _LINE_END)
        self.meta: set[str] = set()  # classes of classes
        self.named: list[tuple[str, ast.expr]] = []  # what `:=` binds in a statement

    def module(self, tree: ast.Module) -> None:
        symbol = self.file.symbols[0]
        self.file.symbols[0] = Symbol(symbol.name, "module", symbol.start, symbol.end, "", _doc(tree))
        self._docstring(tree)
        bound = _bound_in(tree.body)
        defined = {node.name for node in ast.walk(tree) if isinstance(node, _Definition)}
        local = {name: how for name, how in bound.items() if how == "=" and name in defined}
        self._block(tree.body, _Scope(self.file.module, "module", local=local))
        plain = {self._span(node) for node in tree.body if isinstance(node, ast.ImportFrom)}
        last = [entry for entry in self.file.imports if (entry.start, entry.end) in plain]
        self.file.imports.sort(key=lambda entry: last[::-1].index(entry) if entry in last else len(last))
        kept = [symbol for symbol in self.file.symbols if symbol.kind != "constant"]
        if len(self.file.symbols) > len(kept) + MOST_CONSTANTS:  # a table that a program wrote
            self.file.symbols = kept

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        first = self.offsets.at(node.lineno - 1, node.col_offset)
        return first, self.offsets.at(end[0] - 1, end[1])

    def _block(self, body: Iterable[_Step], scope: _Scope) -> None:
        todo = [*body][::-1]  # a stack: a long chain of `elif` is as deep as it is long
        while todo:
            node = todo.pop()
            if isinstance(node, tuple):
                scope.types[node[0]] = node[1]
            elif isinstance(node, ast.ClassDef):
                self._class(node, scope)
            elif isinstance(node, _Function):
                self._function(node, scope)
            else:
                todo += self._statement(node, scope)[::-1]

    def _statement(self, node: ast.AST, scope: _Scope) -> list[_Step]:
        """The calls of a statement and what it binds; gives the statements inside of it, between
        them types that names have in a part of them."""
        inner: list[_Step] = []
        bound: list[str] = []
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
                inner.append(part)
            else:
                bound += self._calls(part, scope)
                if isinstance(part, ast.withitem) and isinstance(part.optional_vars, ast.Name):
                    scope.bind(bound)
                    scope.types[part.optional_vars.id] = self._type(part.context_expr, scope)
                    bound = []
        if isinstance(node, ast.ExceptHandler) and node.name:
            bound.append(node.name)
        scope.bind(bound)
        for name, value in self.named:
            scope.types[name] = self._type(value, scope)
        self.named.clear()
        if isinstance(node, ast.ExceptHandler) and node.name:
            kinds = getattr(node.type, "elts", [node.type])
            scope.types[node.name] = _dotted(kinds[0]) if kinds else ""
        elif isinstance(node, ast.If):
            inner = _narrowed(node, scope)
        if isinstance(node, ast.Global):
            scope.local |= dict.fromkeys(node.names, "")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._imports(node, scope)
        elif isinstance(node, _Assignment):
            self._assign(node, scope)
        return inner

    # ---- definitions -----------------------------------------------------------------------------

    def _class(self, node: ast.ClassDef, scope: _Scope) -> None:
        self._define(node, scope, "class")
        around = scope.types if scope.around is None else scope.around
        inner = _Scope(f"{scope.name}.{node.name}", "class", {}, scope.local, around)
        bases = {_dotted(base).rpartition(".")[2] for base in node.bases}
        if any(base == "type" or base.endswith("Meta") for base in bases):
            self.meta.add(inner.name)
        for base in node.bases:
            self._reference(_base_of(base), _Scope(inner.name, "class", scope.types))
        for expression in (*node.decorator_list, *node.keywords):
            self._calls(expression, scope)
        self._block(node.body, inner)

    def _function(self, node: _Function, scope: _Scope) -> None:
        self._define(node, scope, "method" if scope.kind == "class" else "function")
        for part in (*node.decorator_list, node.args):
            self._calls(part, scope)
        inner = scope.within(f"{scope.name}.{node.name}", "function", node.args)
        decorators = [node.id for node in node.decorator_list if isinstance(node, ast.Name)]
        arguments = [*node.args.posonlyargs, *node.args.args]
        if scope.kind == "class" and arguments and "staticmethod" not in decorators:
            inner.types[arguments[0].arg] = scope.name
            of_class = arguments[0].arg == "cls" and scope.name not in self.meta
            inner.local[arguments[0].arg] = _CLS if of_class else "?"
        names = {node.arg for node in ast.walk(node.args) if isinstance(node, ast.arg)}
        later = {name: how for name, how in _bound_in(node.body).items() if name not in names}
        inner.local |= later
        inner.types |= dict.fromkeys(later, "")
        self._block(node.body, inner)

    def _define(self, node: _Definition, scope: _Scope, kind: str) -> None:
        decorated = min([node, *node.decorator_list], key=lambda node: node.lineno)
        start = self._span(decorated)[0] - (decorated is not node)
        head, end = self._span(node)
        body = self._span(node.body[0])[0]
        signature = " ".join(_COLON.sub("", self.text[head:body]).split())[:SIGNATURE]
        if any(getattr(node, "attr", "") in ("setter", "deleter") for node in node.decorator_list):
            signature = f"@{node.name}.setter {signature}"
        place = f"{scope.name}.{node.name}", kind, start, end
        returns = "" if isinstance(node, ast.ClassDef) else _annotation(node.returns)
        self.file.symbols.append(Symbol(*place, signature, _doc(node), scope.name, returns))
        scope.local |= {node.name: ""} if scope.kind == "function" else {}
        self._docstring(node)

    def _docstring(self, node: ast.Module | _Definition) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            self.file.prose.append(self._span(node.body[0]))

    # ---- what statements bind --------------------------------------------------------------------

    def _imports(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        span = self._span(node)
        for alias in node.names:
            if scope.kind == "function":
                scope.local[alias.asname or alias.name.partition(".")[0]] = "="
            name, head = alias.name, alias.name.partition(".")[0]
            bound = [(alias.asname or head, MODULE + (name if alias.asname else head))]
            if isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parts = self.file.module.split(".")
                    is_package = self.file.uri.rpartition("/")[2].startswith("__init__.")
                    above = parts[: len(parts) - node.level + is_package]
                    base = ".".join([*above, *([node.module] if node.module else [])])
                target = f"{base}.{name}".strip(".") if name != "*" else base
                bound = [(alias.asname or name, target)]
            elif not alias.asname and "." in name:
                bound.append((name, MODULE + name))
            self.file.imports += (symbols.Import(*entry, *span) for entry in bound)

    def _assign(self, node: _Assignment, scope: _Scope) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        stated = _annotation(node.annotation) if isinstance(node, ast.AnnAssign) else ""
        known = stated or self._type(node.value, scope)
        for name in names if len(targets) == 1 else ():
            if stated or scope.local.get(name) != _TYPED:
                scope.types[name] = known
        owner = scope.name if scope.kind == "class" else scope.types.get("self", "")
        members = [target for target in targets if isinstance(target, ast.Attribute)]
        inner = [target.attr for target in members if _dotted(target.value) == "self"]
        for name in names if scope.kind == "class" else inner:
            if known and owner:
                place = f"{owner[len(self.file.module) + 1 :]}.{name}"
                before = self.file.variables.setdefault(place, known)
                if before != known and known.endswith("()") and before.endswith("()"):
                    self.file.variables[place] = "?"  # objects of several classes
        for name in names if scope.kind == "module" else ():
            base = _base_of(node.value) if node.value else None
            value = f"{stated}()" if stated else self._type(base, scope)
            if not stated and not isinstance(base, ast.Call):
                value = _dotted(base)
            if value:
                self.file.variables[name] = value
            if name.isupper() and len(name) > 1:
                start, end = self._span(node)
                place = f"{scope.name}.{name}", "constant", start, end
                text = " ".join(self.text[start:end].split())[:120]
                self.file.symbols.append(Symbol(*place, text, "", scope.name))

    # ---- uses ------------------------------------------------------------------------------------

    def _calls(self, node: ast.AST, scope: _Scope) -> list[str]:
        """Adds the calls in an expression; gives the variables that it binds."""
        todo: list[ast.AST] = [node]
        later: list[ast.expr] = []
        bound: list[str] = []
        for inner in todo:  # which grows
            kind = inner.__class__
            if kind in _ENDS:
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    bound.append(inner.id)
                continue
            if isinstance(inner, ast.Call):
                self._reference(inner, scope)
            elif isinstance(inner, ast.NamedExpr):
                self.named.append((inner.target.id, inner.value))
            elif isinstance(inner, ast.expr) and kind in _BINDING:
                later.append(inner)
                todo += [each.iter for each in getattr(inner, "generators", ())[:1]]  # as outside
                continue
            elif kind in _CAPTURES and (name := getattr(inner, _CAPTURES[kind])):
                bound.append(name)
            todo += ast.iter_child_nodes(inner)
        for call in later:
            bound += self._apart(call, scope)
        return bound

    def _apart(self, node: ast.expr, scope: _Scope) -> list[str]:
        """The same of an expression with names of its own."""
        bound: list[str] = []
        # What stands in a class body sees no names of the class.
        inner = "<" if scope.kind in ("class", "<") else "function"
        nested = scope.within(scope.name, inner, getattr(node, "args", None))
        targets = (each.target for each in getattr(node, "generators", ()))
        nested.bind(each.id for target in targets for each in ast.walk(target) if _stored(each))
        generators: list[ast.comprehension] = getattr(node, "generators", [])
        for part in ast.iter_child_nodes(node):
            if not isinstance(part, ast.comprehension):
                bound += self._calls(part, nested)  # by `:=`
                continue
            for each in (*part.ifs, *([] if part is generators[0] else [part.iter])):
                bound += self._calls(each, nested)
        return bound

    def _reference(self, node: ast.expr, scope: _Scope) -> None:
        """A call, or else a base; its span is the expression on the line of the name."""
        kind, target = ("calls", node.func) if isinstance(node, ast.Call) else ("inherits", node)
        start, end = self._span(node)
        named = self._span(target)[1]
        if isinstance(target, ast.Attribute):
            start = max(start, self.offsets.starts[(target.end_lineno or target.lineno) - 1])
            start += len(self.text[start:named]) - len(self.text[start:named].lstrip())
        if (line := self.text.find("\n", named, end)) >= 0:
            end = line - (self.text[line - 1] == "\r")
        if kind == "calls" and (of_self := _class_of_self(target, scope)):
            name = "cls" if isinstance(target, ast.Name) else "type"
            self.file.references.append(Reference(kind, name, start, end, scope.name, "", of_self))
        elif isinstance(target, ast.Name):
            place = kind, target.id, start, end, scope.name
            hidden = scope.kind == "class" and target.id in scope.types  # what its body assigns
            how = "?" if hidden else scope.local.get(target.id, "<" if scope.kind == "<" else "")
            self.file.references.append(Reference(*place, "", how))
        elif isinstance(target, ast.Attribute):
            receiver, known = _dotted(target.value) or "?", self._type(target.value, scope)
            head = receiver.partition(".")[0]
            of_self = known and head in ("self", "cls")
            receiver = "?" if scope.local.get(head, "")[:1] == "?" and not of_self else receiver
            place = kind, target.attr, start, end, scope.name
            self.file.references.append(Reference(*place, receiver, known))

    def _type(self, node: ast.expr | None, scope: _Scope, deep: int = 0) -> str:
        """The type of an expression as far as the text states it: a dotted name, "" for unknown.

        What a call returns is written `name()`; resolving it is left to what knows all files."""
        if isinstance(node, ast.Name):
            return scope.types.get(node.id, "")
        if isinstance(node, ast.Attribute):
            on = self._type(node.value, scope, deep + 1) if deep < _DEEPEST else ""
            return f"{on}.{node.attr}" if on and on != "super" else ""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "super":
                return "super"
            if type_name := _class_of_self(node.func, scope):
                return type_name
            member = isinstance(node.func, ast.Attribute) and self._type(node.func, scope, deep + 1)
            called = member or _dotted(node.func)
            return f"{called}()" if called else ""
        ways = [getattr(node, name) for name in _SAME_TYPE.get(node.__class__, ())]
        ways = ways[0][:_DEEPEST] if isinstance(node, ast.BoolOp) else ways
        found = {self._type(way, scope, deep + 1) for way in ways if deep < _DEEPEST} - {""}
        found = {name for name in found if not name.startswith(self.file.module)} or found
        found = {name.removesuffix("()"): name for name in sorted(found)}
        return found.popitem()[1] if len(found) == 1 else ""


# Expressions with names of their own, and patterns that bind one.
_BINDING = frozenset((ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
# Parts of expressions that have the type of the whole, so deep in each other.
_SAME_TYPE = {ast.Await: ["value"], ast.IfExp: ["body", "orelse"], ast.BoolOp: ["values"]}
_SAME_TYPE |= {ast.NamedExpr: ["value"]}
_DEEPEST = 20
_CAPTURES = {ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest"}
_ENDS = frozenset((ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del))  # with no call inside
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_Step = ast.AST | tuple[str, str]  # a statement, or the type that a name has from here on


def _class_of_self(node: ast.expr, scope: _Scope) -> str:
    """The class of which `cls`, `type(self)` or `self.__class__` is one; "" for others."""
    if isinstance(node, ast.Name):
        return scope.types.get(node.id, "") if scope.local.get(node.id) == _CLS else ""
    on = node.value if isinstance(node, ast.Attribute) and node.attr == "__class__" else None
    if isinstance(node, ast.Call) and _dotted(node.func) == "type" and len(node.args) == 1:
        on = node.args[0]
    return scope.types.get("self", "") if _dotted(on) == "self" else ""


def _narrowed(node: ast.If, scope: _Scope) -> list[_Step]:
    """The statements inside, with the types that `isinstance` gives a name."""
    test = node.test
    every = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    before = [known for test in every if (known := _instance(test))]
    after = [(name, scope.types.get(name, "")) for name, _ in before]
    return [*before, *node.body, *after, *node.orelse]


def _instance(test: ast.expr) -> tuple[str, str] | None:
    """The name and the class of `isinstance(x, X)`."""
    if not isinstance(test, ast.Call) or _dotted(test.func) != "isinstance" or len(test.args) != 2:
        return None
    name, known = map(_dotted, test.args)
    return (name, known) if name and known and "." not in name else None


def _bound_in(body: Sequence[ast.AST]) -> dict[str, str]:
    """What the statements of a function or module bind, also below a use, as `_Scope.local` has it. Of an
    import and a definition the last one; where each is one of several ways the first."""
    found: dict[str, str] = {}
    outer: list[str] = []
    todo = [(node, False) for node in reversed(body)]
    while todo:
        node, other = todo.pop()
        if isinstance(node, _Definition):
            found[node.name] = "=" if other and found.get(node.name) == "=" else ""
            continue
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            name = alias.asname or alias.name.partition(".")[0]
            found[name] = "" if other and found.get(name) == "" else "="
        outer += node.names if isinstance(node, ast.Global | ast.Nonlocal) else ()
        targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
        targets += (item.optional_vars for item in getattr(node, "items", ()))
        for target in filter(None, targets):
            for each in ast.walk(target):
                if _stored(each):
                    found.setdefault(each.id, "?")
        other |= isinstance(node, ast.If | ast.ExceptHandler)
        todo += [(each, other) for name in _BODIES[::-1] for each in getattr(node, name, ())[::-1]]
    return {name: how for name, how in found.items() if name not in outer}


# Ways to be bound as `_Scope.local` has them: as a parameter with a type, and as the class of a class method.
_TYPED, _CLS = "?:", "?c"


def _stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _doc(node: ast.Module | _Definition) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())[:SIGNATURE]


def _dotted(node: ast.expr | None) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _base_of(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node  # Generic[T]


def _annotation(node: ast.expr | None) -> str:
    """The class an annotation names: of `X | None`, `Optional[X]`, "X" it is X."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotation(ast.parse(node.value, mode="eval").body)
        except (SyntaxError, ValueError):
            return ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        known = [stated for side in (node.left, node.right) if (stated := _annotation(side))]
        return known[0] if len(known) == 1 else ""
    if isinstance(node, ast.Subscript):
        outer = _dotted(node.value).rpartition(".")[2]
        parameters = getattr(node.slice, "elts", [node.slice]) or [node.slice]
        if outer in WORDS["pointers_python"]:
            return _annotation(parameters[-1 if outer == "Coroutine" else 0])
        if outer == "Union":
            known = {stated for each in parameters if (stated := _annotation(each))}
            return known.pop() if len(known) == 1 else ""
        return _dotted(node.value) if outer[:1].isupper() and outer != "Callable" else ""
    return _dotted(node) if node is not None else ""


PROSE = "prose"  # the language of a document whose names may mean symbols
PROSE_SUFFIXES = frozenset("md markdown mdx rst adoc asciidoc txt ipynb".split())
_SPOKEN = re.compile(
    r"`{1,2}~?(?P<quoted>[A-Za-z_][\w.]{2,100})(?:\([^`\n]{0,60}\))?`"
    r"|(?<![\w./`:-])(?P<called>[A-Za-z_][\w.]{2,100})\(\)"
    r"|(?<![\w./`@:-])(?P<dotted>[A-Za-z_]\w{1,60}(?:\.[A-Za-z_]\w{1,60}){1,6})(?![\w/@(-]|\.\w)"
)

# What stands in every name of `_SPOKEN` that is in no backticks: found ten times as fast.
_CALLED_OR_DOTTED = re.compile(r"\(\)|\.[A-Za-z_]\w")

MOST_CONSTANTS = 1_000  # of a module whose constants are entities
LARGEST = 2_000_000  # characters of a file that is parsed; larger ones are generated
LONGEST_LINE = 20_000  # lines that are longer hold data or minified code: they are read as blank


@lru_cache(maxsize=4)
def parse(uri: str, text: str) -> SourceFile | None:
    """What a source file defines and uses, of a generated one its module; None for no language."""
    language = language_of(uri)
    if not language:
        return None
    file = _module(uri, language, text)
    if len(text) > LARGEST:
        return file
    lines = text.split("\n")
    text = "\n".join(line if len(line) <= LONGEST_LINE else " " * len(line) for line in lines)
    if language == "python" and read(file, text):
        file.prose += [match.span() for match in _COMMENT.finditer(text)]
    elif not grammars.read(file := _module(uri, language, text), text):
        return None
    prose, file.prose, at = sorted(file.prose), [], 0
    for start, end in prose:
        if end > at:  # no line of a docstring that begins with "#"
            file.prose.append((start, end))
            file.references += spoken(text[start:end], start, file.module)
            at = end
    file.symbols[1:] = sorted(file.symbols[1:], key=lambda symbol: (symbol.start, -symbol.end, symbol.name))
    file.references.sort(key=lambda reference: (reference.start, reference.end, reference.kind))
    return file


_OUTER_TEST = re.compile(r"^package\s+\w+_test\b", re.MULTILINE)
_PROGRAM = re.compile(r"^//\s*(?:go:build|\+build)\s+ignore\b", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#(?!!)[^\n]*", re.MULTILINE)


def _module(uri: str, language: str, text: str) -> SourceFile:
    module = symbols.module_name(uri, language)
    if uri.endswith("_test.go") and _OUTER_TEST.search(text):
        module += "_test"  # a package of its own in the same folder
    elif language == "go" and _PROGRAM.search(text[:LONGEST_LINE]):
        module += "_" + uri.rpartition("/")[2].removesuffix(".go")
    file = SourceFile(uri, language, module)
    file.symbols.append(Symbol(file.module, "module", 0, len(text)))
    return file


_SETTINGS = re.compile(r"(?:.*/)?(?:[jt]sconfig[\w.-]*\.json|package\.json|Cargo\.toml)")


def parse_prose(uri: str, text: str) -> SourceFile | None:
    """The names that prose writes as code, or that settings give modules; None for none."""
    if _SETTINGS.fullmatch(uri):
        paths = grammars.aliases(uri, text)
        return SourceFile(uri, PROSE, "", variables=paths) if paths else None
    if uri.rpartition(".")[2].lower() not in PROSE_SUFFIXES:
        return None
    names = spoken(text, 0, "")
    return SourceFile(uri, PROSE, "", references=names) if names else None


def spoken(text: str, start: int, inside: str) -> list[Reference]:
    """Names in backticks, names with `()` behind them and dotted names, each once a place."""
    found: list[Reference] = []
    if "`" not in text and _CALLED_OR_DOTTED.search(text) is None:
        return found
    for match in _SPOKEN.finditer(text):
        group = match.lastgroup or ""
        name = match[group].strip(".")
        plain = group == "quoted" and "." not in name and "(" not in match[0]
        if plain and name.islower() and "_" not in name and (len(name) < 4 or name in COMMON):
            continue
        at = start + match.start(group)
        found.append(Reference("documents", name, at, at + len(name), inside))
    return found
