"""What names in source code mean, over all files: edges between definitions, each with its certainty.

Takes the `SourceFile`s of a corpus; gives edges of the kinds contains, imports, inherits and calls,
and which symbols documents name. A name is resolved by the first of four rules that gives exactly
one definition: the same file, an imported name (also of a variable that holds an instance or stands
for a class), a member of the receiver's class or its bases, the only definition of that name in the
corpus. Where several remain there is no edge. The order of the files does not matter."""

from __future__ import annotations

import builtins
import re
import sys
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from io import TextIOWrapper
from os.path import commonprefix
from pathlib import Path

from graphrag_mcp.code.symbols import MODULE, WORDS, Reference, SourceFile, Symbol, module_name

SAME_FILE, IMPORTED, MEMBER, IMPLEMENTS, ONLY = 1.0, 0.9, 0.8, 0.7, 0.6
CALLABLE = frozenset(("function", "method", "class", "interface", "type"))
TYPES = frozenset(("class", "interface", "type"))
# Methods of built-in types: a call of one on an unknown receiver says nothing about the corpus.
_BUILT_IN = (str, bytes, list, dict, set, frozenset, int, type)
_BUILT_IN += (TextIOWrapper, Path, re.Pattern, re.Match, datetime)  # and of Python's library
COMMON = WORDS["common"] | {name for kind in _BUILT_IN for name in dir(kind)}
DEEPEST = 6  # bases that are followed
Seen = set[tuple[str, str]]
_UNDONE = re.compile(rf"\.(?:{'|'.join(WORDS['through'])})\(\)")


@dataclass(frozen=True, slots=True)
class Edge:
    """`start:end` is the place in `uri` that says it: the definition, the import, the call."""

    kind: str
    source: str
    target: str
    certainty: float
    uri: str
    start: int
    end: int


_LISTS = partial(defaultdict, list)


@dataclass
class Corpus:
    """Definitions of all files by key and by short name."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    short: dict[str, list[str]] = field(default_factory=_LISTS)
    modules: dict[str, list[str]] = field(default_factory=_LISTS)
    # By module, and by the uri of a file: files of one module may differ in what they import.
    imports: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    stars: dict[str, list[str]] = field(default_factory=_LISTS)
    variables: dict[tuple[str, str], tuple[SourceFile, str]] = field(default_factory=dict)
    home: dict[str, SourceFile] = field(default_factory=dict)  # of a symbol, a module's first file
    crates: dict[str, str] = field(default_factory=dict)  # of Rust, by the name of their folder
    # Of files of settings by the first word of a path: folder, path, module.
    aliases: dict[str, list[tuple[str, str, str]]] = field(default_factory=_LISTS)
    packages: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # of Go
    bases: dict[str, list[str]] = field(default_factory=_LISTS)
    foreign: set[str] = field(default_factory=set)  # classes with a base that is not of the corpus
    members: dict[tuple[str, str], str] = field(default_factory=dict)
    impls: dict[str, str] = field(default_factory=dict)  # of Rust: types of other files by name
    # What dotted names mean in a module, while the bases of classes are the same.
    found: dict[tuple[str, str], str] = field(default_factory=dict)
    near: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # `_nearest`


def resolve(
    files: Iterable[SourceFile], corpus: Corpus | None = None, only: Container[str] | None = None
) -> list[Edge]:
    """All edges, or those that the files with the uris `only` say, in the order of uri and place.
    `corpus`: what is `known` of the files in the order of their uris."""
    ordered = sorted(files, key=lambda file: file.uri)
    corpus = corpus or known(ordered)
    asked = [file for file in ordered if only is None or file.uri in only]
    edges = [edge for file in asked for edge in _contained(corpus, file)]
    edges += (edge for file in asked for edge in _imported(corpus, file))
    inherits = [edge for file in ordered for edge in _inherited(corpus, file)]
    for edge in inherits:
        corpus.bases[edge.source].append(edge.target)
    read = {(edge.uri, edge.start, edge.source) for edge in inherits}
    corpus.foreign = {
        reference.inside
        for file in ordered
        for reference in file.references
        if reference.kind == "inherits" and (file.uri, reference.start, reference.inside) not in read
    }
    for language in ("go", "python"):
        inherits += _implemented(corpus, [file for file in ordered if file.language == language])
    ours = (edge for edge in inherits if only is None or edge.uri in only)
    edges += [edge for edge in ours if edge.source in corpus.symbols]
    corpus.found.clear()
    corpus.near.clear()
    edges += (edge for file in asked for edge in _calls(corpus, file))
    return sorted(edges, key=lambda edge: (edge.uri, edge.start, edge.end, edge.kind, edge.target))


# ---- what an edit can touch ------------------------------------------------------------------------

_SEGMENT = re.compile(r"[^./():]+")
Facts = dict[str, list[tuple[str, ...]]]


def touched(before: Sequence[SourceFile], after: Sequence[SourceFile], files: Iterable[SourceFile]) -> set[str] | None:
    """The uris of the `files` whose names may mean something else after some of them were read
    again, these among them; None where all may. A name's meaning depends on what is said of it and,
    through imports, variables, bases and returned types, of other names."""
    files = list(files)
    changed = _changed(before, after)
    folders = {part for file in files for part in file.module.split(".")[:-1]}
    if changed is None or changed & folders or changed & _of_interfaces((*before, *files)):
        return None
    owners = _other_kinds(before, after)
    members = [(file.uri, symbol) for file in files for symbol in file.symbols if symbol.parent in owners]
    changed |= {member.short for _, member in members}
    left = [
        (name, parts)
        for file in files
        for name, facts in (_facts(file) if changed else {}).items()
        if (parts := {part for fact in facts for text in fact[1:] for part in _SEGMENT.findall(text)})
    ]
    while more := {name for name, parts in left if name not in changed and changed & parts}:
        changed |= more
    found = {file.uri for file in after} | {uri for uri, _ in members}
    return found | {file.uri for file in files if changed and not changed.isdisjoint(_named(file))}


def _of_interfaces(files: Iterable[SourceFile]) -> set[str]:
    """The short names of interfaces and their methods: no type that implements them names them."""
    found: set[str] = set()
    for file in files:
        names = _interfaces(file)
        found |= {symbol.short for symbol in file.symbols if symbol.name in names or symbol.parent in names}
    return found


def _changed(before: Sequence[SourceFile], after: Sequence[SourceFile]) -> set[str] | None:
    """The names of which other things are said now; None where files of source code came or went."""
    old, new = ({(file.uri, file.module): file for file in files} for files in (before, after))
    named, named_before = ({key: file.variables for key, file in files.items() if not key[1]} for files in (old, new))
    if {key for key in old if key[1]} != {key for key in new if key[1]} or named != named_before:
        return None
    facts = ((_facts(old[key]), _facts(new[key])) for key in old.keys() & new.keys())
    every = ((was, now, was.keys() | now.keys()) for was, now in facts)
    return {name for was, now, names in every for name in names if was.get(name) != now.get(name)}


def _other_kinds(before: Sequence[SourceFile], after: Sequence[SourceFile]) -> set[str]:
    """The definitions that came, went or are of another kind: their members have other titles."""
    sides = ((symbol for file in files for symbol in file.symbols) for files in (before, after))
    old, new = ({(symbol.name, symbol.kind) for symbol in side} for side in sides)
    return {name for name, _ in old ^ new}


def _facts(file: SourceFile) -> Facts:
    """What a file says of names: of each a first word that is compared, and texts that name others."""
    found: Facts = defaultdict(list)
    for symbol in file.symbols:
        fact = _of_method(symbol) if symbol.kind == "method" else symbol.signature * (symbol.kind in TYPES)
        what = f"{symbol.kind} {symbol.name} {fact} {file.by_name[symbol.name] is symbol}"
        owner = symbol.parent if symbol.parent not in file.by_name else ""
        found[symbol.short].append((what, symbol.returns, owner))
    for entry in file.imports:
        local = file.module.rpartition(".")[2] if entry.local == "*" else entry.local
        found[local].append((f"import {entry.local} {entry.module}", entry.target))
    for name, value in file.variables.items():
        found[name.rpartition(".")[2]].append((f"variable {name}", value))
    # which a file that imports the module may not name
    found[file.module.rpartition(".")[2]] += found.get("default", [])
    for base in file.references:
        if base.kind == "inherits":
            found[base.inside.rpartition(".")[2]].append(("base", base.receiver, base.name))
    return found


def _of_method(symbol: Symbol) -> str:
    """What rules read in the signature of a method beside the type that it returns."""
    words = (pattern for pattern in (_PRIVATE, _STATIC, _SET) if pattern.search(symbol.signature))
    return " ".join([str(_parameters(symbol)), *(pattern.pattern for pattern in words)])


def _named(file: SourceFile) -> set[str]:
    """The parts of all names that a file uses."""
    texts = {text for reference in file.references for text in (reference.name, reference.receiver, reference.type)}
    texts.update(entry.target for entry in file.imports)
    texts.update(file.variables.values())
    return {part for text in texts for part in _SEGMENT.findall(text)}


def known(files: Sequence[SourceFile]) -> Corpus:
    """All definitions of these files, by full name, by short name and by module."""
    corpus = Corpus()
    for file in files:
        for symbol in file.symbols:
            key = file.key(symbol.name)
            if key not in corpus.symbols:
                corpus.symbols[key], corpus.home[key] = file.by_name[symbol.name], file
                named = corpus.modules if symbol.kind == "module" else corpus.short
                named[symbol.short].append(key)
                if symbol.name.rpartition(".")[0] == symbol.parent:  # not in an object of JavaScript
                    corpus.members[file.key(symbol.parent), symbol.short] = key
        if file.uri.endswith(("/src/lib.rs", "/src/main.rs")):
            corpus.crates.setdefault(file.uri.split("/")[-3].replace("-", "_"), file.module)
        if file.language == "go":
            corpus.packages[file.variables.get("package", "")].add(file.module)
        for name, value in file.variables.items():
            if file.module:
                corpus.variables.setdefault((file.module, name), (file, value))
            else:
                _name_module(corpus, file, name, value)
        for entry in file.imports:
            for place in (entry.module,) if entry.module else (file.module, file.uri):
                if entry.local == "*":
                    corpus.stars[place].append(entry.target)
                else:
                    corpus.imports[place].setdefault(entry.local, entry.target)
    for file in (source for source in files if source.language == "rust"):
        _members_of_impls(corpus, file)
    corpus.found.clear()
    corpus.near.clear()
    return corpus


def _name_module(corpus: Corpus, file: SourceFile, name: str, module: str) -> None:
    """A name that a file of settings gives a module."""
    kind, _, path = name.partition(" ")
    folder = module_name(file.uri).rpartition(".")[0] if kind == "path" else ""
    corpus.aliases[path.partition("/")[0].replace("*", "")].append((folder, path, module))
    if kind == "crate":
        corpus.crates.setdefault(path, module)


def _members_of_impls(corpus: Corpus, file: SourceFile) -> None:
    for symbol in file.symbols:
        if symbol.parent and symbol.parent not in file.by_name:
            scope, _, name = symbol.parent.rpartition(".")
            owner = meant(corpus, file, name, scope)[0]
            if owner and corpus.symbols[owner].kind in TYPES:
                corpus.impls[symbol.parent] = owner
                corpus.members.setdefault((owner, symbol.short), symbol.name)


# ---- names -----------------------------------------------------------------------------------------


def dotted(corpus: Corpus, target: str, module: str, seen: Seen | None = None) -> str:
    """The definition that a dotted name means where `module` imports it; "" for none. `seen`: names
    of modules that are being looked for, each of them once in all."""
    if seen is not None:
        return _dotted(corpus, target, module, seen)
    if (target, module) not in corpus.found:
        corpus.found[target, module] = _dotted(corpus, target, module, set())
    return corpus.found[target, module]


def _dotted(corpus: Corpus, target: str, module: str, seen: Seen) -> str:
    bare = target.removeprefix(MODULE)
    if bare[:1] == "=":
        return _aliased(corpus, target, module, seen)
    if "/" in target:
        return _by_path(corpus, bare, module, seen)
    parts = bare.split(".")
    root = module
    while parts[0] == "crate" and root:  # of Rust, without a folder `src`
        if MODULE + root in corpus.home and corpus.home[MODULE + root].uri.endswith(_ROOTS):
            parts = [*root.split("."), *parts[1:]]
            bare = ".".join(parts)
            target = bare if target[0] != MODULE else MODULE + bare
        root = root.rpartition(".")[0]
    for count in range(len(parts), 0, -1):
        prefix = ".".join(parts[:count])
        for place in (prefix, MODULE + prefix)[prefix == bare != target :] if count > 1 else ():
            if place in corpus.symbols and (found := _within(corpus, place, parts[count:], seen)):
                return found
        for place in _nearest(corpus, prefix, module):
            package = place.rpartition(".")[0]
            key = corpus.members.get((package, parts[-1]), "") if prefix == target else ""
            if found := key or _within(corpus, place, parts[count:], seen):
                return found
    words = parts[0].split("_")  # `lab_core` in the folder `core`
    crates = (corpus.crates.get("_".join(words[at:]), "") for at in range(len(words)))
    home = corpus.home.get(MODULE + module)
    ours = home and home.language == "rust" and parts[0] not in _RUST
    crate = next(filter(None, crates), "") if ours else ""
    return _within(corpus, MODULE + crate, parts[1:], seen) if crate else ""


_ROOTS = ("/lib.rs", "/main.rs")
_RUST = frozenset(("std", "core", "alloc"))  # its library
_JVM = ("java", "kotlin", "scala")  # a root may hold a file: module-info.java


def _aliased(corpus: Corpus, target: str, module: str, seen: Seen) -> str:
    """What the name of a package or a path means by the settings of the nearest folder."""
    path, dot, rest = target.removeprefix(MODULE)[1:].partition(".")
    aliases = corpus.aliases.get(path.partition("/")[0], []) + corpus.aliases.get("", [])
    for folder, alias, value in sorted(aliases, key=lambda alias: (-len(alias[0]), -len(alias[1]), alias)):
        before, star, after = alias.partition("*")
        fits = path.startswith(before) and path.endswith(after) if star else path == alias
        if not fits or not f"{module}.".startswith(folder and f"{folder}."):
            continue
        inner = path[len(before) : len(path) - len(after)].replace("/", ".").removesuffix(".index")
        for root in (value, f"{value[:-1]}src.*" if star else f"{value}.src"):
            place = target[: target.index("=")] + root.replace("*", inner)
            if found := _dotted(corpus, place + dot + rest, module, seen):
                return found
    return ""


def _by_path(corpus: Corpus, target: str, module: str, seen: Seen) -> str:
    """What a path means of which the corpus may hold only the end: `example.org/lab/crates.Open`."""
    folders, _, last = target.rpartition("/")
    name, *rest = last.split(".")
    parts = [part for part in [*folders.split("/"), name] if part]
    version = bool(_VERSION.search(name))
    for at in range(len(parts) - version):
        ends = (f".{'.'.join(parts[at:])}", f"{MODULE}{'.'.join(parts[at:])}")
        found = [path for path in corpus.modules.get(parts[-1], ()) if path.endswith(ends)]
        if found:
            here = MODULE + module
            nearest = min(found, key=lambda path: (-len(commonprefix([path, here])), len(path), path))
            return _within(corpus, nearest, rest, seen)
    if version and folders:  # `chi/v5` without a folder v5
        return _by_path(corpus, ".".join([folders, *rest]), module, seen)
    around = f"{module.removesuffix('_test')}."  # the root of a module, in a folder of another name
    named = sorted(corpus.packages.get(_OF_GO.sub("", name), ()))
    roots = (MODULE + root for root in named if around.startswith(f"{root}."))
    return next((_within(corpus, root, rest, seen) for root in roots), "")


_VERSION = re.compile(r"^v\d+$")
_OF_GO = re.compile(r"^go-|[-_]go$|_v\d+$")


def _nearest(corpus: Corpus, prefix: str, module: str) -> list[str]:
    """Modules whose path ends with `prefix` and begins at a root, the nearest to `module` first."""
    if (known := corpus.near.get((prefix, module))) is not None:
        return known
    found = [
        place
        for place in corpus.modules.get(prefix.rpartition(".")[2], ())
        if place.endswith("." + prefix)
        and (place[: -len(prefix) - 1] not in corpus.symbols or corpus.home[place].language in _JVM)
    ]
    if "." not in prefix and prefix in sys.stdlib_module_names:
        found = [place for place in found if place.count(".") == 1]
    here = MODULE + module
    found.sort(key=lambda path: (-len(commonprefix([path, here])), len(path), path))
    return corpus.near.setdefault((prefix, module), found)


def _within(corpus: Corpus, place: str, rest: Sequence[str], seen: Seen) -> str:
    """What `rest` means inside a module or class, through what it imports from elsewhere."""
    for at, name in enumerate(rest, 1):
        below, module = f"{place}.{name}", place.removeprefix(MODULE)
        if _inline(corpus, below[1:]) and rest[at:]:
            place = below
            continue
        ways = (below, f"{module}.exports.{name}")  # of `module.exports = {...}`
        inner = corpus.members.get((place, name), "")
        if inner and rest[at:] and below != inner and below in corpus.symbols:
            ways = (_within(corpus, way, rest[at:], seen) for way in (inner, below))
            return next(filter(None, ways), "")
        inner = inner or next((way for way in ways if way in corpus.symbols), "")
        if not inner and place in corpus.symbols and corpus.symbols[place].kind in TYPES:
            inner = member(corpus, place, name)
        shown = not inner or inner[:1] == MODULE and name in corpus.imports.get(module, ())
        if shown and module != place and (place, name) not in seen:
            seen.add((place, name))
            more = {_OBJECT} - seen if rest[at:] else set()
            seen |= more
            inner = _reexported(corpus, module, name, seen) or inner
            seen -= more
        if module != place and (not inner or corpus.symbols[inner].kind == "constant"):
            inner = _variable(corpus, module, name, at < len(rest) or _OBJECT in seen) or inner
        home = corpus.home.get(place)
        if not inner and module != place and home and home.language in _SCRIPTS:
            # `module.exports = Board`
            other = name != "default" and corpus.variables.get((module, "default"))
            return _within(corpus, place, ["default", *rest[at - 1 :]], seen) if other else ""
        if not inner:
            return ""
        place = inner
    return place


_OBJECT = ("", "")  # among names looked for: what is asked is a member of what is found


def _reexported(corpus: Corpus, module: str, name: str, seen: Seen) -> str:
    target = corpus.imports.get(module, {}).get(name, "")
    if target and target != f"{module}.{name}":
        return dotted(corpus, target, module, seen)
    for star in corpus.stars.get(module, ()):
        if star != module and (found := dotted(corpus, f"{star}.{name}", module, seen)):
            return found
    return ""


def _variable(corpus: Corpus, module: str, name: str, instance: bool) -> str:
    """What a variable of a module stands for: a definition under another name, or with `instance`
    the class of the object that it holds."""
    if (module, name) not in corpus.variables:
        return ""
    file, value = corpus.variables[module, name]
    if value.endswith("()") and not instance:
        return ""
    place = f"={name}", module
    if place not in corpus.found:
        corpus.found[place] = ""  # of variables that stand for each other
        found = _type_of(corpus, file, value, module)
        kind = corpus.symbols[found].kind if found in corpus.symbols else ""
        corpus.found[place] = found if kind in CALLABLE else ""
    return corpus.found[place]


def member(corpus: Corpus, owner: str, name: str) -> str:
    """The method of a class or of its nearest base that has it."""
    for base in _with_bases(corpus, owner):
        home = corpus.home.get(base)
        if found := corpus.members.get((base, name), ""):
            return found
        field = f"{base[len(home.module) + 1 :]}.{name}" if home else ""
        if home and home.language == "go" and field in home.variables:
            break  # a field hides a method of what is embedded
    return ""


def _with_bases(corpus: Corpus, owner: str) -> Iterator[str]:
    """A class and its bases, the nearest first."""
    seen, rim = {owner}, [owner]
    for _ in range(DEEPEST):
        yield from rim
        rim = [base for key in rim for base in corpus.bases.get(key, ()) if base not in seen]
        seen.update(rim)


_BY_RECEIVER = frozenset("python javascript typescript tsx go rust".split())


def meant(corpus: Corpus, file: SourceFile, name: str, inside: str) -> tuple[str, float]:
    """What a name or dotted name means inside a definition of a file: rules one and two."""
    head, _, rest = name.partition(".")
    scope, passed = inside, list[str]()
    while scope.startswith(file.module):
        place = file.key(scope)
        kind = corpus.symbols[place].kind if place in corpus.symbols else "module"
        plain = file.language in _BY_RECEIVER  # `name()` is no method of the class around it
        if kind not in TYPES or not plain or (scope == inside and file.language == "python"):
            found = corpus.members.get((place, head), "")
            if found and file.language in _SCRIPTS and _SET.match(corpus.symbols[found].signature):
                found = ""  # no bare name means it
            if not found and kind in TYPES and not plain:
                found = member(corpus, scope, head)  # of a base
                found = "" if found and _PRIVATE.search(corpus.symbols[found].signature) else found
            if found.endswith(f".{head}.{head}") and kind in TYPES:
                # in Java a constructor, but the name means its class
                found = found.rpartition(".")[0]
            if found and passed and corpus.symbols[found].kind == "method":
                return _of_outer(corpus, found, passed)
            passed += [scope] if kind in TYPES and not plain else []
            if found:
                inner = _within(corpus, found, rest.split("."), set()) if rest else found
                if inner or f"{MODULE}{scope}.{head}" not in corpus.symbols:
                    return inner, SAME_FILE
        if scope == file.module or _inline(corpus, scope):
            break
        scope = scope.rpartition(".")[0]
    return _outside(corpus, file, name, scope)


def _inline(corpus: Corpus, name: str) -> bool:
    """Is it a module inside a file of Rust? It sees nothing of what is around it."""
    return "self" in corpus.imports.get(name, ())


def _outside(corpus: Corpus, file: SourceFile, name: str, module: str) -> tuple[str, float]:
    """What a name means that no definition around it binds: what the module imports."""
    head, _, rest = name.partition(".")
    place = module if _inline(corpus, module) else file.uri
    if target := corpus.imports.get(place, {}).get(head, ""):
        return _by_import(corpus, file, name, target), IMPORTED
    if found := _variable(corpus, module, head, False):
        return _within(corpus, found, rest.split("."), set()) if rest else found, SAME_FILE
    objects = file.language in _SCRIPTS  # `const api = { run() {} }`
    paths = [f"{module}.{name}", name] if file.language == "rust" and rest else []
    paths = [f"{module}.{name}"] if objects and rest else paths
    main = MODULE + module.replace(".src.test.", ".src.main.")
    if ".src.test." in module and (main, head) in corpus.members:
        paths = [f"{main[1:]}.{name}"]  # a package of Java has its tests in another folder
    if found := next(filter(None, (dotted(corpus, path, file.module) for path in paths)), ""):
        return found, IMPORTED
    if place not in corpus.stars:
        return "", SAME_FILE if place == module else 0.0
    known = f"*.{name}", place
    if known not in corpus.found:
        seen: Seen = set()
        stars = corpus.stars[place]
        ways = (dotted(corpus, f"{star}.{name}", file.module, seen) for star in stars)
        corpus.found[known] = next(filter(None, ways), "")
    found = corpus.found[known]
    return found, IMPORTED if found else 0.0


def _by_import(corpus: Corpus, file: SourceFile, name: str, target: str) -> str:
    """What a name means of which the first part is imported as `target`."""
    before, _, last = name.rpartition(".")
    if before:  # `import a.b` binds `a`, and knows `a.b`
        whole = corpus.imports[file.uri].get(before, "")
        ways = ((whole, last), (target, name.partition(".")[2]))
        paths = (f"{path.removeprefix(MODULE)}.{rest}" for path, rest in ways if path)
        return next(filter(None, (dotted(corpus, path, file.module) for path in paths)), "")
    found = dotted(corpus, target, file.module)
    if found[:1] == MODULE != target[:1]:  # what a package imports hides its module of that name
        module, _, last = found[1:].rpartition(".")
        found = _reexported(corpus, module, last, set()) or found
    if found[:1] == MODULE and (target[:1] == MODULE or file.language in _SCRIPTS):
        found = _within(corpus, found, ["default"], set()) or found  # `require("./run")`
    return found


_OF_ALL = {*"toString hashCode equals getClass notify notifyAll wait finalize clone".split()}
_SET = re.compile(r"^(?!(?:module\.)?exports\.)[$\w]+\.[$\w.]+ =")  # `Foo.prototype.bar = function`
_PRIVATE = re.compile(r"\bprivate\b")
_STATIC = re.compile(r"\b(?:static|enum|record|interface)\b")


def _of_outer(corpus: Corpus, found: str, passed: Sequence[str]) -> tuple[str, float]:
    """Is it this method of an outer class that a bare call in the classes `passed` means? A base that
    is not of the corpus may have one of that name, and every object has some."""
    symbol = corpus.symbols[found]
    bound = any(_STATIC.search(corpus.symbols[name].signature) for name in passed)
    if symbol.short in _OF_ALL or (bound and not _STATIC.search(symbol.signature)):
        return "", 0.0
    if not any(base in corpus.foreign for name in passed for base in _with_bases(corpus, name)):
        return found, SAME_FILE
    lone = symbol.short not in COMMON and _only(corpus, symbol.short, CALLABLE) == found
    return (found, ONLY) if lone else ("", 0.0)


def _object(corpus: Corpus, file: SourceFile, written: str, inside: str) -> str:
    """The class of an object that the reader wrote as a class, a member of one (`S.field`, a property)
    or what a call gives (`make()`, `S.get().next()`)."""
    bare = written.removesuffix("()")
    found = _type_of(corpus, file, bare, inside, bare != written)
    symbol = corpus.symbols.get(found)
    plain = written == bare and file.language in _SCRIPTS  # a function with a prototype
    if symbol is None or symbol.kind in TYPES or (plain and symbol.kind == "function"):
        return found
    if symbol.returns in ("Self", "this"):
        owner = _object(corpus, file, bare.rpartition(".")[0], inside) if "." in bare else ""
        return owner or symbol.parent
    home = corpus.home[found]
    return meant(corpus, home, symbol.returns, symbol.parent)[0] if symbol.returns else ""


def _type_of(corpus: Corpus, file: SourceFile, written: str, inside: str, called: bool = False) -> str:
    """The definition that a type as the reader wrote it means; of a field the class of its value."""
    if written.endswith("()"):
        return _object(corpus, file, written, inside)
    owner, _, last = written.rpartition(".")
    symbol = corpus.symbols.get(written)
    if not written or (symbol and symbol.kind != "method"):
        return written
    known = "()" in owner or (owner in corpus.symbols and corpus.symbols[owner].kind in TYPES)
    found = "" if known else meant(corpus, file, written, inside)[0]
    if found or not owner or not (on := _object(corpus, file, owner, inside)):
        return found
    passed = on if last in WORDS["through"] and file.language == "rust" else ""
    if not called and file.language in ("java", "rust") and (field := _field(corpus, on, last)):
        return field  # beside a method of that name
    return member(corpus, on, last) or _field(corpus, on, last) or passed


def _field(corpus: Corpus, owner: str, name: str) -> str:
    """The class of a field of a class or its bases."""
    file, value, inside = _stated(corpus, owner, name)
    place = f"{inside}.{name}", ""
    if file and place not in corpus.found:
        corpus.found[place] = ""  # of fields that stand for each other
        corpus.found[place] = _object(corpus, file, value, inside)
    return corpus.found.get(place, "")


def _stated(corpus: Corpus, owner: str, name: str) -> tuple[SourceFile | None, str, str]:
    """What a class or its nearest base states of a field: the file, the type and the class."""
    for base in _with_bases(corpus, owner) if owner in corpus.home else ():
        module = corpus.home[base].module
        file, value = corpus.variables.get((module, f"{base[len(module) + 1 :]}.{name}"), (None, ""))
        if file:
            return file, value, base
    return None, "", ""


def _parent(corpus: Corpus, name: str) -> str:
    return corpus.home[name].key(corpus.symbols[name].parent)


# ---- edges -----------------------------------------------------------------------------------------


def _contained(corpus: Corpus, file: SourceFile) -> Iterator[Edge]:
    module = file.key(file.module)
    package = MODULE + file.module.rpartition(".")[0]
    if package in corpus.symbols:
        yield Edge("contains", package, module, SAME_FILE, file.uri, 0, 1)
    for symbol in file.symbols:
        if symbol.parent:  # of what is no symbol, a namespace, the module
            parent = file.key(symbol.parent)
            parent = parent if parent in corpus.symbols else module
            yield Edge("contains", parent, symbol.name, SAME_FILE, file.uri, symbol.start, symbol.end)


def _imported(corpus: Corpus, file: SourceFile) -> Iterator[Edge]:
    seen, module = set(), file.key(file.module)
    for entry in (entry for entry in file.imports if entry.local != "self"):
        found = dotted(corpus, entry.target, file.module)
        if found and found != module and (found, entry.start) not in seen:
            seen.add((found, entry.start))
            yield Edge("imports", module, found, IMPORTED, file.uri, entry.start, entry.end)


def _inherited(corpus: Corpus, file: SourceFile) -> Iterator[Edge]:
    for reference in file.references:
        if reference.kind != "inherits":
            continue
        name = f"{reference.receiver}.{reference.name}" if reference.receiver not in ("", "?") else reference.name
        outer = reference.inside.rpartition(".")[0]
        found, certainty = meant(corpus, file, name, outer)
        if not found and not certainty:
            found, certainty = _only(corpus, reference.name, TYPES), ONLY
        if found and found != reference.inside and corpus.symbols[found].kind in TYPES:
            source = corpus.impls.get(reference.inside, reference.inside)
            yield Edge("inherits", source, found, certainty, file.uri, reference.start, reference.end)


def _interfaces(file: SourceFile) -> set[str]:
    """What a type implements by having its methods: interfaces of Go, protocols of Python."""
    if file.language == "go":
        return {symbol.name for symbol in file.symbols if symbol.kind == "interface"}
    bases = (
        reference for reference in file.references if reference.kind == "inherits" and reference.name == "Protocol"
    )
    return {reference.inside for reference in bases if file.language == "python"}


def _implemented(corpus: Corpus, files: Sequence[SourceFile]) -> list[Edge]:
    """Interfaces of which a type has all methods, each with as many parameters. Not those of no
    method or of a single common one, nor of Go those that embed what is not of the corpus."""
    interfaces = sorted(set().union(*(_interfaces(file) for file in files)))
    if not interfaces:
        return []
    places = {file.key(symbol.name): (file.uri, symbol) for file in files for symbol in file.symbols}
    methods_of: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for _, symbol in places.values():
        if symbol.kind == "method":
            methods_of[symbol.parent].add((symbol.short, _parameters(symbol)))
    methods = {
        name: set().union(*(methods_of.get(base, ()) for base in _with_bases(corpus, name)))
        for name, (_, symbol) in places.items()
        if symbol.kind in TYPES
    }
    having: dict[tuple[str, int], set[str]] = defaultdict(set)
    for name in methods.keys() - interfaces:
        for method in methods[name]:
            having[method].add(name)
    edges: list[Edge] = []
    for interface in interfaces:
        required = methods.get(interface, set())
        if places[interface][1].kind == "interface" and interface in corpus.foreign:
            continue
        if len(required) < 2 and all(name in COMMON for name, _ in required):
            continue
        for name in sorted(set.intersection(*(having[method] for method in required))):
            if interface not in _with_bases(corpus, name):
                uri, symbol = places[name]
                place = uri, symbol.start, symbol.end
                edges.append(Edge("inherits", name, interface, IMPLEMENTS, *place))
    return edges


def _parameters(symbol: Symbol) -> int:
    """How many parameters a signature has: the commas of its outermost brackets, and one."""
    depth, inner = 0, ""
    for ch in symbol.signature.partition(symbol.short + "(")[2]:
        depth += (ch in "([{") - (ch in ")]}")
        if depth < 0:
            break
        inner += ch if depth == 0 else "."
    inner = inner.strip(" ,")
    return inner.count(",") + 1 if inner else 0


def _calls(corpus: Corpus, file: SourceFile) -> Iterator[Edge]:
    for reference in (reference for reference in file.references if reference.kind == "calls"):
        target, certainty = _called(corpus, file, reference)
        kind = corpus.symbols[target].kind if target in corpus.symbols else ""
        inside = file.key(reference.inside)
        inside = inside if inside in corpus.symbols else file.key(file.module)  # a namespace
        if kind in CALLABLE and inside in corpus.symbols and not _rebound(corpus, target):
            unsure = file.broken or (reference.type == "!" and not reference.receiver)
            certainty = min(certainty, ONLY) if unsure else certainty
            yield Edge("calls", inside, target, certainty, file.uri, reference.start, reference.end)


def _rebound(corpus: Corpus, name: str) -> bool:
    """Does a module bind the name of this definition to something else too?"""
    short, home = corpus.symbols[name].short, corpus.home[name]
    return home.variables.get(short) == "" and name == f"{home.module}.{short}"


def _bare(corpus: Corpus, file: SourceFile, reference: Reference) -> tuple[str, float]:
    if reference.type not in ("", "<", "!"):  # known in a part of the file
        sure = reference.name not in _OR_LESS or file.language == "java"
        return corpus.impls.get(reference.type, reference.type), SAME_FILE if sure else MEMBER
    if reference.name == "super" and file.language != "python":
        return next(iter(corpus.bases.get(_class_around(corpus, reference.inside), ())), ""), MEMBER
    place = f"{reference.inside}.{reference.type}" if reference.type else reference.inside
    found, certainty = meant(corpus, file, reference.name, place)
    # A bare name of these that no import binds is a variable, or comes from elsewhere.
    free = file.language not in ("python", "go") or file.uri in corpus.stars
    if found or certainty or reference.name in _BUILTINS or not free:
        return found, certainty
    return _only(corpus, reference.name, CALLABLE - {"method"}), ONLY


def _called(corpus: Corpus, file: SourceFile, reference: Reference) -> tuple[str, float]:
    imports = corpus.imports.get(file.uri, {})
    if reference.type[:1] in ("?", "="):  # a variable or an import of its function hides the definition
        imported = imports.get(reference.type[1:] or reference.name, "") if reference.type[0] == "=" else ""
        return dotted(corpus, imported, file.module) if imported else "", IMPORTED
    if not reference.receiver:
        return _bare(corpus, file, reference)
    if reference.type == "!":
        return meant(corpus, file, f"{reference.receiver}.{reference.name}", reference.inside)
    if reference.type == "super":
        bases = corpus.bases.get(_class_around(corpus, reference.inside), ())
        ways = (member(corpus, base, reference.name) for base in bases)
        return next(filter(None, ways), ""), MEMBER
    if reference.type:
        if found := corpus.members.get((reference.type, reference.name), ""):
            return found, MEMBER
        if owner := _object(corpus, file, reference.type, reference.inside):
            return member(corpus, owner, reference.name), MEMBER
        known = _of_unknown(corpus, file, reference)
        if known is not None:
            return known
    if reference.receiver != "?":
        found, certainty = meant(corpus, file, f"{reference.receiver}.{reference.name}", reference.inside)
        head = reference.receiver.partition(".")[0]
        std = file.language == "rust" and head in _RUST
        if found or std or (certainty and head in imports):
            return found, certainty
        if owner := _object(corpus, file, reference.receiver, reference.inside) if "." in reference.receiver else "":
            return member(corpus, owner, reference.name), MEMBER
        if _elsewhere(file, head):
            return "", 0.0
    found = _only(corpus, reference.name, CALLABLE) if reference.name not in COMMON else ""
    return found * (found != reference.inside), ONLY  # what has its own name is what it wraps


_SCRIPTS = frozenset(("javascript", "typescript", "tsx"))
_OR_LESS = frozenset(("cls", "this", "type"))  # the class around or one that extends it


def _elsewhere(file: SourceFile, head: str) -> bool:
    """Is a name before a dot that nothing binds one that every file knows: a class of the library of
    Java or Rust, an object of JavaScript?"""
    plain = head not in ("this", "super") and not head.isupper()
    typed = file.language in ("java", "rust") and head[:1].isupper()
    return plain and (typed or file.language in _SCRIPTS)


def _of_unknown(corpus: Corpus, file: SourceFile, reference: Reference) -> tuple[str, float] | None:
    """What a call means on a type that no rule finds; None where nothing states the type."""
    before = reference.type.rpartition(".")[0]
    owner = ""
    while before and not (owner := _object(corpus, file, before, reference.inside)):
        before = before.rpartition(".")[0]
    name = reference.type[len(before) + 1 :].partition(".")[0]
    # The type, of a member what its class states of it; `made`: the class states nothing.
    value = _stated(corpus, owner, name)[1] if before else ""
    written, type_name = value or reference.type, bool(before and not value)
    imports = corpus.imports.get(file.uri, {})
    head = written.partition(".")[0].removesuffix("()")
    if (target := imports.get(head, "")) and not dotted(corpus, target, file.module):
        return "", 0.0
    while written != (fewer := _UNDONE.sub("", written)):
        written = fewer
    type_name |= "()." in written or (written.endswith("()") and file.language != "python")
    if type_name or not (written[:1].isupper() or "." in written):
        return None
    last = written.rpartition(".")[2]
    owner = "" if written.partition(".")[0] in imports else _only(corpus, last, TYPES)
    return member(corpus, owner, reference.name), ONLY  # else the type is not of this corpus


_BUILTINS = frozenset(dir(builtins))


def _class_around(corpus: Corpus, name: str) -> str:
    while name in corpus.symbols and corpus.symbols[name].kind not in TYPES:
        name = _parent(corpus, name)
    return name if name in corpus.symbols else ""


def _only(corpus: Corpus, name: str, kinds: frozenset[str]) -> str:
    """The only definition of this name in the corpus, if it is of one of these kinds."""
    found = corpus.short.get(name, ())
    if len(found) > 1:  # a class, not its constructor
        found = [key for key in found if _parent(corpus, key) not in found]
    if len(found) != 1 or corpus.symbols[found[0]].kind not in kinds:
        return ""
    parent = corpus.symbols.get(_parent(corpus, found[0]))
    return "" if parent is not None and parent.kind in ("function", "method") else found[0]


def documented(corpus: Corpus, name: str) -> str:
    """The symbol that a document means by a name as written; "" where none or several could be."""
    last = name.rpartition(".")[2]
    found = [*corpus.short.get(last, ()), *corpus.modules.get(last, ())]
    found = [path for path in found if path in (name, MODULE + name) or path.endswith("." + name)]
    if not found and "." in name:  # by a module that imports it from elsewhere
        return dotted(corpus, name, "")
    return found[0] if len(found) == 1 else ""
