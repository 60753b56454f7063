"""What names mean by the rules of each language: variables hide definitions, exports have other names, traits and
interfaces stand for what implements them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from graphrag_mcp.code.parse import parse, parse_prose
from graphrag_mcp.code.resolve import resolve

SET = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
RULES = {rule["name"]: rule for rule in SET["rule"]}
SHADOWS = {shadow["file"]: shadow for shadow in SET["shadow"]}
ONE_NAME = {one["language"]: one for one in SET["one_name"]}


def pairs(listed: list[str]) -> set[tuple[str, str]]:
    """Edges of `names.toml`, as `a -> b`."""
    return {(source, target) for source, _, target in (edge.partition(" -> ") for edge in listed)}


def edges(files: dict[str, str], kind: str = "calls") -> set[tuple[str, str]]:
    """The calls of some files as (caller, callee), without the names of their modules."""
    uris = {f"lab/{name}": text for name, text in files.items()}
    parsed = [parse(uri, text) or parse_prose(uri, text) for uri, text in uris.items()]
    assert None not in parsed
    modules = sorted((file.module + "." for file in parsed if file.module), key=len, reverse=True)

    def short(name: str) -> str:
        name = name.removeprefix(":")
        return next((name[len(one) :] for one in modules if name.startswith(one)), name)

    return {(short(one.source), short(one.target)) for one in resolve(parsed) if one.kind == kind}


@pytest.mark.parametrize("name", SHADOWS)
def test_a_variable_hides_a_definition(name: str) -> None:
    if not name.endswith(".py"):
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    found = edges({name: SHADOWS[name]["text"], "other/scales.py": "class Scale: pass\n", "b/scales.py": "class Scale: pass\n"})
    assert found == pairs(SHADOWS[name]["edges"])


def test_an_import_in_a_function_hides_a_definition_of_the_module() -> None:
    text = "def weigh(x): pass\ndef f():\n    from other import weigh\n    weigh(1)\ndef g(): weigh(2)\n"
    found = resolve([file for name in ("a", "other") if (file := parse(f"lab/{name}.py", text if name == "a" else "def weigh(x): pass\n"))])
    calls = {(one.source, one.target) for one in found if one.kind == "calls"}
    assert calls == {("lab.a.f", "lab.other.weigh"), ("lab.a.g", "lab.a.weigh")}


# Of names that a class body or a comprehension binds, and of those that a module binds again.
KINDS = "class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\n"
BOUND = {
    "def weigh(): pass\nclass A:\n    weigh = load()\n    x = weigh(1)\n    y = [1 for q in weigh()]\n    def m(self): weigh()\n": {("A.m", "weigh")},
    "def f(): pass\ndef inner(f): return [f for f in f()]\ndef outer(xs): return [f for f in f(xs)]\n": {("outer", "f")},
    "def f(): pass\ndef g(xs):\n    [(f := x) for x in xs]\n    return f()\n": set(),
    "from other import f\ndef f(): pass\ndef u(): f()\n": {("u", "f")},
    "def f(): pass\nfrom other import f\ndef u(): f()\n": {("u", "other.f")},
    "try:\n    from other import f\nexcept ImportError:\n    def f(): pass\ndef u(): f()\n": {("u", "other.f")},
    "try:\n    from other import f\nexcept ImportError:\n    f = None\ndef u(): f()\n": {("u", "other.f")},
    "def f(): pass\nf = wrap(f)\ndef u(): f()\n": {("u", "f")},
    "x = None\nclass A:\n    def go(self): pass\nx: A = make()\nx = None\ndef u(): x.go()\n": {("u", "A.go")},
    "def f(): pass\nclass A:\n    def f(): pass\n    def g(): pass\n    x = [f() for q in g()]\nclass B:\n    def f(): pass\n    x = f()\n": {("A", "f"), ("A", "A.g"), ("B", "B.f")},
    "def f(): pass\nclass A:\n    def f(): pass\n    def g(): pass\n    x = lambda: f()\n    y = [1 for q in [] for r in g() if f()]\n": {("A", "f")},
    f"{KINDS}def g(a: A, c):\n    if c: a = load()\n    a.go()\n": {("g", "A.go")},
    f"{KINDS}def f(c):\n    x = A() if c else B()\n    x.go()\n": {("f", "A"), ("f", "B")},
    f"{KINDS}def f(c):\n    x = None\n    if c: x = A()\n    x.go()\ndef g():\n    x = A()\n    x = B()\n    x.go()\n": {
        ("f", "A"), ("f", "A.go"), ("g", "A"), ("g", "B"), ("g", "B.go"),
    },
}


@pytest.mark.parametrize("text", BOUND)
def test_a_name_of_python_means_what_was_bound_to_it_last(text: str) -> None:
    files = [parse(f"lab/{name}.py", one) for name, one in (("a", text), ("other", "def f(): pass\n"))]
    calls = (one for one in resolve([file for file in files if file]) if one.kind == "calls")
    assert {tuple(name.removeprefix(":").removeprefix("lab.").removeprefix("a.") for name in (one.source, one.target)) for one in calls} == BOUND[text]


METHODS = {
    "a.js": "function weigh() {}\nclass A { weigh() { weigh() } }\n", "a.ts": "function weigh() {}\nclass A { weigh() { weigh() } }\n",
    "a.go": "package a\nfunc weigh() {}\ntype A struct{}\nfunc (a A) weigh() { weigh() }\n",
    "a.rs": "fn weigh() {}\nstruct A;\nimpl A { fn weigh(&self) { weigh() } }\n", "a.py": "def weigh(): pass\nclass A:\n    def weigh(self): weigh()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_bare_name_in_a_method_means_no_method_of_its_class(name: str) -> None:
    if not name.endswith(".py"):
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    assert edges({name: METHODS[name]}) == {("A.weigh", "weigh")}


@pytest.mark.parametrize("rule", RULES)
def test_names_mean_what_the_language_says(rule: str) -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    assert edges(RULES[rule]["files"], RULES[rule]["kind"]) == pairs(RULES[rule]["edges"])


@pytest.mark.parametrize("language", ONE_NAME)
def test_a_module_and_a_definition_of_one_name_are_two(language: str) -> None:
    if language != "Python":
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    files = ONE_NAME[language]["files"]
    found = resolve([file for name, text in files.items() if (file := parse(f"lab/{name}", text))])
    assert {(one.source, one.target) for one in found if one.kind == "calls"} == pairs(ONE_NAME[language]["edges"])
    inside = {one.target: one.source for one in found if one.kind == "contains"}
    assert all(inside[name].startswith(":") for name in inside)


def test_calls_in_the_arguments_of_a_rust_macro_and_macros_with_the_name_of_a_function() -> None:
    text = (
        "fn hx() -> u8 { 1 }\nfn print(x: u8) {}\nfn all(x: u8) {}\nstruct S;\nimpl S { fn lone(&self) {} }\n"
        "macro_rules! own { ($x:expr) => { hx() } }\n"
        "fn a() { assert_eq!(hx(), 1); }\nfn b() { println!(\"{}\", vec![hx()].len()); }\nfn c(hx: fn() -> u8) { assert!(hx() == 1); }\n"
        "fn d() { print!(\"x\"); own!(1); }\n#[cfg(all(test, unix))]\nfn e(s: S) { dbg!(s.lone()); format!(\"{}\", other::hx()); }\n"
    )
    found = edges({"a.rs": text})
    assert {("a", "hx"), ("b", "hx"), ("d", "own")} <= found
    assert not {("c", "hx"), ("d", "print"), ("e", "all"), ("e", "hx"), ("own", "hx")} & found
