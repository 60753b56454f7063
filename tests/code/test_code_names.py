"""What names mean by the rules of each language: variables hide definitions, exports have other names, traits and
interfaces stand for what implements them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.code import resolve as names
from graphrag_mcp.code.parse import parse, parse_prose
from graphrag_mcp.code.resolve import resolve
from graphrag_mcp.code.symbols import dumped, loaded
from graphrag_mcp.query.entities import resolve as resolve_name
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.source import get_source
from tests.code.test_code_graph import index, write


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


PYTHON = """
from other import scales

def weigh(x): return x

def parameter(weigh): weigh(1)
def star(*weigh): weigh(1)
def assigned(x):
    weigh = x
    weigh(1)
def loop(x):
    for a, weigh in x: weigh(1)
def opened(x):
    with x() as weigh: weigh(1)
def destructured(x):
    a, (b, *weigh) = x
    weigh(1)
def walrus(x):
    if (weigh := x): weigh(1)
def caught(x):
    try: x()
    except E as weigh: weigh(1)
def matched(x):
    match x:
        case [1, weigh]: weigh(1)
def closure(x): return lambda weigh: weigh(1)
def listed(x): return [weigh(1) for weigh in x]
def outer(weigh):
    def nested(): return weigh(1)
def module(scales): return scales.Scale()

def used(x):
    [weigh for weigh in x]
    return weigh(scales.Scale())
def redefined(x):
    global weigh
    weigh = x
    return weigh(1)
def imported(x):
    from third import weigh
    return weigh(1)
listed_here = [weigh(1) for weigh in [print]]
"""
SHADOWS: dict[str, tuple[str, set[tuple[str, str]]]] = {
    "a.py": (PYTHON, {("used", "weigh"), ("redefined", "weigh"), ("used", "Scale")}),
    "a.js": (
        "function weigh(x) { return x }\n"
        "function parameter(weigh) { weigh(1) }\nfunction destructured({weigh}, [b]) { weigh(1); b() }\n"
        "function renamed({a: weigh = 1}) { weigh(1) }\nfunction local(x) { const weigh = x; weigh(1) }\n"
        "function loop(x) { for (const weigh of x) weigh(1) }\nfunction rest(...weigh) { weigh(1) }\n"
        "function caught() { try {} catch (weigh) { weigh(1) } }\nconst arrow = weigh => weigh(1)\n"
        "function used(x) { { let weigh = x } weigh(2); x.map((weigh) => weigh(1)) }\n",
        {("used", "weigh")},
    ),
    "a.ts": (
        "function weigh(x: number) { return x }\nclass T { run() {} }\n"
        "function parameter(weigh: (x: number) => void, b?: any) { weigh(1) }\n"
        "function generic<T>(x: T) { x.run() }\nfunction typed(x: T) { x.run() }\n"
        "function used() { weigh(1) }\n",
        {("used", "weigh"), ("typed", "T.run")},
    ),
    "a.go": (
        "package a\nfunc weigh(x int) int { return x }\nfunc parameter(weigh func(int)) { weigh(1) }\n"
        "func declared(x func(int)) { weigh := x; weigh(1) }\nfunc ranged(x []func(int)) { for _, weigh := range x { weigh(1) } }\n"
        "func variable() { var weigh func(int); weigh(1) }\nfunc literal() { func(weigh func(int)) { weigh(1) }(nil) }\n"
        "func condition() { if weigh, ok := f(); ok { weigh(1) } }\nfunc used() { weigh := weigh(1); print(weigh) }\n",
        {("used", "weigh")},
    ),
    "a.rs": (
        "fn weigh(x: u32) -> u32 { x }\nfn parameter(weigh: fn(u32)) { weigh(1); }\nfn local(x: fn(u32)) { let weigh = x; weigh(1); }\n"
        "fn closure() { let f = |weigh: fn(u32)| weigh(1); }\nfn pattern(x: Option<fn(u32)>) { if let Some(weigh) = x { weigh(1); } }\n"
        "fn arm(x: A) { match x { A { weigh } => weigh(1), _ => 2 } }\nfn pair(x: (fn(u32), u32)) { let (weigh, b) = x; weigh(1); }\n"
        "fn looped(x: Vec<fn(u32)>) { for weigh in x { weigh(1); } }\nfn used() { let weigh = weigh(1); }\n",
        {("used", "weigh")},
    ),
    "A.java": (
        "class Scale { void get() {} }\nclass Other { void get() {} }\nclass A {\n  Scale s;\n  void field() { s.get(); }\n"
        "  void parameter(Other s) { s.get(); }\n  void lambda(X x) { x.map(s -> s.get()); x.map((s, t) -> s.get()); }\n"
        "  void loop(X x) { for (Other s : x) s.get(); }\n  void caught() { try { } catch (E s) { s.get(); } }\n"
        "  void weigh() {}\n  void used(int weigh) { weigh(); }\n}\n",
        {("A.field", "Scale.get"), ("A.parameter", "Other.get"), ("A.loop", "Other.get"), ("A.used", "A.weigh")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHADOWS)
def test_a_variable_hides_a_definition(name: str) -> None:
    if not name.endswith(".py"):
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    text, wanted = SHADOWS[name]
    found = edges({name: text, "other/scales.py": "class Scale: pass\n", "b/scales.py": "class Scale: pass\n"})
    assert found == wanted


def test_what_a_function_binds_hides_above_the_binding_and_as_a_receiver_of_unknown_type() -> None:
    text = "class parser:\n    def feed(self, x): pass\ndef helper(): pass\ndef f(items):\n    parser = make_parser(items)\n    parser.feed(1)\n"
    text += "def late():\n    def inner(): return helper()\n    helper = load()\n    return inner\ndef g(p: parser):\n    p.feed(1)\n    helper()\n"
    text += "def again():\n    helper()\n    def helper(): pass\ndef changed():\n    global helper\n    helper()\n    helper = 1\n"
    other = "class other:\n    def feed(self): pass\n"
    assert edges({"a.py": text, "b.py": other}) == {
        ("g", "parser.feed"), ("g", "helper"), ("again", "again.helper"), ("changed", "helper"),
    }  # fmt: skip


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
    "from other import f\ndef g(): pass\nh = f\nh = g\ndef u(): h()\ndef v(): g()\n": {("v", "g")},
    "def f(): pass\nf = load()\ndef u(): f()\n": set(),
    "def f(): pass\nf = wrap(f)\ndef u(): f()\n": {("u", "f")},
    "f = None\nif here:\n    f = load()\nelse:\n    def f(): pass\ndef u(): f()\n": set(),
    "class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\nx = A()\ny = A()\ndef s():\n    global x\n    x = B()\ndef u(): x.go()\ndef v(): y.go()\n": {
        ("a", "A"), ("s", "B"), ("v", "A.go"),
    },
    "x = None\nclass A:\n    def go(self): pass\nx: A = make()\nx = None\ndef u(): x.go()\n": {("u", "A.go")},
    "def f(): pass\nclass A:\n    def f(): pass\n    def g(): pass\n    x = [f() for q in g()]\nclass B:\n    def f(): pass\n    x = f()\n": {("A", "f"), ("A", "A.g"), ("B", "B.f")},
    "def f(): pass\nclass A:\n    def f(): pass\n    def g(): pass\n    x = lambda: f()\n    y = [1 for q in [] for r in g() if f()]\n": {("A", "f")},
    f"{KINDS}def f(c):\n    if c: x = A()\n    else: x = B()\n    x.go()\ndef g(a: A, c):\n    if c: a = load()\n    a.go()\n": {("f", "A"), ("f", "B"), ("g", "A.go")},
    f"{KINDS}def f(c):\n    x = A() if c else B()\n    x.go()\ndef g():\n    try: x = A()\n    except E: x = B()\n    x.go()\n": {("f", "A"), ("f", "B"), ("g", "A"), ("g", "B")},
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


def test_python_read_by_its_grammar_hides_the_same() -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    text = PYTHON.replace("    global weigh\n    weigh = x\n", "") + "print 'two'\n"
    assert edges({"a.py": text}) - {("same", "weigh")} == {("used", "weigh"), ("redefined", "weigh")}


def test_what_only_the_grammar_of_python_reads_hides_in_the_whole_function_and_is_never_sure() -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    text = "def weigh(x): return x\ndef above(x):\n    weigh(1)\n    if x:\n        weigh = x\ndef nested(x):\n    def inner(): return weigh(1)\n    weigh = x\n"
    text += "def imported():\n    weigh(1)\n    import weigh\ndef lone(x): return (lambda weigh: weigh(1))(weigh(1))\nprint 'two'\n"
    file = loaded(dumped(parse("lab/a.py", text), []))[0]
    assert {(one.source, one.certainty) for one in resolve([file]) if one.kind == "calls"} == {("lab.a.lone", 0.6)}


# Files by name, and the edges that are found: all calls or all bases of them.
RULES: dict[str, tuple[dict[str, str], str, set[tuple[str, str]]]] = {
    "exports of JavaScript": (
        {
            "a/open.js": "export default function opened() {}\n",
            "a/crate.js": "export default class { close() {} }\n",
            "a/scale.js": "class Scale { weigh() {} }\nexport default Scale\n",
            "a/made.js": "class Made { go() {} }\nexport default new Made()\n",
            "a/arrow.js": "export default () => 1\n",
            "a/other.js": "function inner() {}\nfunction hidden() {}\nexport {inner as outer, hidden as default}\n",
            "a/index.js": "export {outer as last} from './other'\nexport * from './more'\nexport {default as Mass} from './scale'\n",
            "a/more.js": "export function more() {}\n",
            "b/main.js": "import open from '../a/open'\nimport Box from '../a/crate'\nimport Mass from '../a/scale'\nimport one from '../a/made'\n"
            "import arrow from '../a/arrow'\nimport other, {outer} from '../a/other'\nimport {last, more, Mass as M} from '../a'\n"
            "function main() { open(); const c = new Box(); c.close(); new Mass().weigh(); one.go(); arrow(); other(); outer() }\n"
            "function second() { last(); more(); new M() }\n",
        },
        "calls",
        {
            ("main", "opened"), ("main", "default"), ("main", "default.close"), ("main", "Scale"), ("main", "Scale.weigh"),
            ("main", "Made.go"), ("main", "hidden"), ("main", "inner"), ("second", "inner"), ("second", "more"), ("second", "Scale"),
            ("made", "Made"),
        },
    ),
    "elements and private methods of TSX": (
        {
            "a.tsx": "export function Btn() { return <div/> }\nexport default class Card { #turn() {} turn() { this.#turn() } }\nfunction div() {}\n",
            "b.tsx": "import Card, {Btn} from './a'\nimport * as a from './a'\nexport const Page = () => <Card><Btn/><a.Btn x={1}/></Card>\n",
        },
        "calls",
        {("Page", "Btn"), ("Page", "Card"), ("Card.turn", "Card.#turn")},
    ),
    "fields and generic types of TypeScript": (
        {
            "a.ts": "interface Store { get(): void }\nclass Mem<T> { get() {} put() {} }\nclass Other { get() {} put() {} }\n"
            "class Svc { constructor(private store: Store) {}\n  mem: Mem<string> | null\n  other = new Other()\n"
            "  go() { this.store.get(); this.mem.put(); this.other.put() } }\n"
            "function bound<T extends Store>(x: T) { x.get() }\nfunction make(): Svc { return null }\n"
            "function main() { make().go(); const s = make(); s.go(); new Svc(new Mem()).go() }\n",
        },
        "calls",
        {
            ("Svc.go", "Store.get"), ("Svc.go", "Mem.put"), ("Svc.go", "Other.put"), ("bound", "Store.get"), ("main", "make"), ("main", "Svc.go"),
            ("main", "Svc"), ("main", "Mem"), ("Svc", "Other"),
        },
    ),
    "calls of Go": (
        {
            "a/a.go": "package a\n\ntype Store interface {\n\tGet(k string) int\n\tPut(k string)\n}\n\n"
            "type Mem struct{}\n\nfunc (m *Mem) Get(key string) int { return 1 }\nfunc (m *Mem) Put(key string) {}\n\n"
            "type Svc struct{ store Store }\n\nfunc NewSvc(s Store) *Svc { return &Svc{s} }\nfunc Make() (*Svc, error) { return nil, nil }\n"
            "func (s *Svc) Go() { s.store.Get(\"x\") }\n\nfunc F[T any](x T) {}\nfunc G[T Store](x T) { x.Put(\"a\") }\n",
            "main.go": 'package main\n\nimport "example.org/lab/a"\n\nfunc use() { a.F[int](1); a.NewSvc(&a.Mem{}).Go() }\n'
            "func second() { s := a.NewSvc(nil); s.Go() }\nfunc third() { s, err := a.Make(); s.Go() }\n",
            "b/b.go": "package b\n\nfunc F[T any](x T) {}\nfunc H() { F[int](1) }\n\ntype Other struct{}\n\nfunc (o Other) Go() {}\n",
        },
        "calls",
        {
            ("Svc.Go", "Store.Get"), ("G", "Store.Put"), ("use", "F"), ("use", "NewSvc"), ("use", "Mem"), ("use", "Svc.Go"), ("NewSvc", "Svc"),
            ("second", "NewSvc"), ("second", "Svc.Go"), ("third", "Make"), ("third", "Svc.Go"), ("H", "F"),
        },
    ),
    "interfaces of Go": (
        {
            "a/a.go": "package a\n\ntype Getter interface { Get(k string) int }\ntype Store interface {\n\tGetter\n\tPut(k, v string)\n}\n"
            "type Any interface{}\ntype Named interface { String() string }\ntype Alone interface { Missing() }\n",
            "b/b.go": "package b\n\ntype Mem struct{}\n\nfunc (m *Mem) Get(key string) int { return 1 }\nfunc (m *Mem) Put(k string, v string) {}\n"
            "func (m *Mem) String() string { return \"\" }\n\ntype Half struct{}\n\nfunc (h Half) Put(a, b string) {}\n\n"
            "type Few struct{ n int }\n\nfunc (f Few) Get() int { return 1 }\n\ntype Both struct {\n\tHalf\n\tn int\n}\n\nfunc (b Both) Get(k string) int { return 1 }\n",
        },
        "inherits",
        {("Store", "Getter"), ("Mem", "Getter"), ("Mem", "Store"), ("Both", "Half"), ("Both", "Getter"), ("Both", "Store")},
    ),
    "traits of Rust": (
        {
            "src/lib.rs": "pub trait Store { fn get(&self); fn put(&self) {} }\npub struct Mem;\nimpl Store for Mem { fn get(&self) {} }\n"
            "pub struct Other;\nimpl Other { fn get(&self) {} fn put(&self) {} fn own(self) -> Self { self } }\n"
            "fn dynamic(x: &dyn Store) { x.get() }\nfn boxed(x: Box<dyn Store>) { x.get() }\nfn implied(x: impl Store) { x.put() }\n"
            "fn bound<T: Store>(x: &T) { x.get() }\nfn cleared<T>(x: T) where T: Store + Send { x.get() }\n"
            "struct Svc<S: Store> { store: Arc<dyn Store>, s: S }\nimpl<S: Store> Svc<S> { fn go(&self) { self.store.get() } }\n"
            "fn make() -> Other { Other }\nfn made() { make().own().put(); make().put(); Other::<u8>::get() }\n",
        },
        "calls",
        {
            ("dynamic", "Store.get"), ("boxed", "Store.get"), ("implied", "Store.put"), ("bound", "Store.get"), ("cleared", "Store.get"),
            ("Svc.go", "Store.get"), ("made", "make"), ("made", "Other.put"), ("made", "Other.own"), ("made", "Other.get"),
        },
    ),
    "crates of Rust": (
        {
            "crates/lab-core/src/lib.rs": "pub mod scales;\npub fn open() {}\n",
            "crates/lab-core/src/scales.rs": "use crate::open;\npub struct Scale;\nimpl Scale { pub fn weigh(&self) { open() } }\n",
            "crates/app/src/main.rs": "mod more;\nuse lab_core::scales::Scale;\nfn main() { let s: Scale = f(); s.weigh(); lab_core::open(); more::extra() }\n",
            "crates/app/src/more.rs": "pub fn extra() {}\npub fn open() {}\n",
            "crates/app/tests/it.rs": "use lab_app::more;\nfn test() { more::extra() }\n",
        },
        "calls",
        {("Scale.weigh", "open"), ("main", "Scale.weigh"), ("main", "open"), ("main", "extra"), ("test", "extra")},
    ),
    "modules inside a file of Rust": (
        {
            "src/lib.rs": "mod net;\nuse net::Conn;\nuse inl::x;\nfn helper() {}\npub struct Top;\nimpl Top { fn new() -> Self { Top } }\n"
            "mod inl {\n pub fn x() {}\n fn own() { x(); self::x(); helper(); Top::new(); Conn::open(); super::helper(); crate::helper() }\n"
            " mod deep { fn h() { super::x(); super::super::helper(); x() } }\n}\n"
            "mod by_name { use super::{helper as y, Top}; fn q() { y(); Top::new(); helper() } }\nmod prelude { pub use super::net::Conn as Line; }\n"
            "#[cfg(test)]\nmod tests { use super::*; fn t() { helper(); x(); Conn::open() } }\n"
            "fn main() { x(); inl::x(); self::helper(); let c: Conn = y(); c.send(); prelude::Line::open() }\n",
            "src/net.rs": "pub struct Conn;\nimpl Conn { pub fn open() {} pub fn send(&self) {} }\n",
        },
        "calls",
        {
            ("inl.own", "inl.x"), ("inl.own", "helper"), ("inl.deep.h", "inl.x"), ("inl.deep.h", "helper"), ("by_name.q", "helper"), ("by_name.q", "Top.new"),
            ("tests.t", "helper"), ("tests.t", "inl.x"), ("tests.t", "Conn.open"), ("main", "inl.x"), ("main", "helper"), ("main", "Conn.send"), ("main", "Conn.open"),
        },
    ),
    "the name of a base with a constructor of Java": (
        {
            "Base.java": "class Base { Base() {} void go() {} }\n",
            "Kid.java": "class Kid extends Base { Base one() { return null; } void a() { one().go(); Base b = one(); b.go(); new Base(); } }\n",
        },
        "calls",
        {("Kid.a", "Kid.one"), ("Kid.a", "Base.go"), ("Kid.a", "Base")},
    ),
    "imports of a function of Rust": (
        {
            "src/lib.rs": "pub mod types;\nmod user;\npub fn top() {}\n",
            "src/types.rs": "pub struct Foo;\nimpl Foo { pub fn new() -> Self { Foo } pub fn run(&self) {} }\npub struct Bar;\nimpl Bar { pub fn run(&self) {} pub fn new() {} }\npub fn top() {}\n",
            "src/user.rs": "fn a() { use crate::types::Foo; let f = Foo::new(); f.run(); use crate::top; top() }\nfn b() { Foo::new(); top() }\n"
            "fn c() { use crate::types::{Bar as Foo, top}; Foo::new(); top() }\nfn d() { use std::io::IsTerminal; std::io::alone() }\nfn alone() {}\n",
        },
        "calls",
        {("a", "Foo.new"), ("a", "Foo.run"), ("a", "top"), ("c", "Bar.new"), ("c", "top")},
    ),
    "methods that another file gives to a type of Rust": (
        {
            "src/lib.rs": "mod types;\nmod go;\nmod near;\n", "src/types.rs": "pub struct Foo;\nimpl Foo { pub fn run(&self) {} }\n",
            "src/go.rs": "use crate::types::Foo;\npub trait Go { fn go(&self); fn twice(&self) { self.go() } }\nimpl Go for Foo { fn go(&self) { self.run() } }\n"
            "impl Foo { fn more(&self) {} }\nfn near(f: &Foo) { f.go(); f.twice(); f.more() }\n",
            "src/near.rs": "pub struct Foo;\nfn far(f: &Foo) { f.go() }\nstruct Own; impl Own { fn more(&self) {} fn go(&self) {} }\n",
        },
        "calls",
        {("Go.twice", "Go.go"), ("Foo.go", "Foo.run"), ("near", "Foo.go"), ("near", "Go.twice"), ("near", "Foo.more")},
    ),
    "generic and anonymous classes of Java": (
        {
            "Store.java": "interface Store<T> { T get(); }\n", "Mem.java": "class Mem<T> implements Store<T> { public T get() { return null; } void go() {} }\n",
            "Main.java": "class Main<S extends Store<S>> {\n  Store<String> field;\n  S bound;\n  void a() { field.get(); }\n  void b() { Mem<String> m = make(); m.get(); }\n"
            "  void c() { bound.get(); }\n  Store<String> d() { return new Store<String>() { public String get() { return e(); } }; }\n  String e() { return null; }\n"
            "  void f() { new Mem<String>(new Main()).go(); var v = new Mem<>(); v.go(); this.field.get(); }\n}\n",
        },
        "calls",
        {
            ("Main.a", "Store.get"), ("Main.b", "Mem.get"), ("Main.c", "Store.get"), ("Main.d.Store$1", "Store"), ("Main.d.Store$1.get", "Main.e"),
            ("Main.f", "Mem"), ("Main.f", "Main"), ("Main.f", "Mem.go"), ("Main.f", "Store.get"),
        },
    ),
    "tests and returned types of Java": (
        {
            "src/main/java/lab/Foo.java": "package lab;\nclass Foo { void bar() {} static Foo make() { return null; } public List<Foo> all() { return null; } }\n",
            "src/main/java/lab/Other.java": "package lab;\nclass Other { void bar() {} void own() {} }\n",
            "src/main/java/lab/Use.java": "package lab;\nclass Use {\n  Foo one() { return null; }\n  void a() { one().bar(); }\n  void b() { Foo.make().bar(); }\n"
            "  void c() { this.one().bar(); }\n  void d() { Foo.all().bar(); other(1).x().bar(); }\n}\n",
            "src/test/java/lab/FooTest.java": "package lab;\nclass FooTest { void t() { Foo f = Foo.make(); f.bar(); new Foo(); help(); } void help() {} }\n",
            "src/more/java/lab/Foo.java": "package lab;\nclass Foo { void bar() {} static Foo make() { return null; } }\n",
        },
        "calls",
        {
            ("Use.a", "Use.one"), ("Use.a", "Foo.bar"), ("Use.b", "Foo.make"), ("Use.b", "Foo.bar"), ("Use.c", "Use.one"), ("Use.c", "Foo.bar"),
            ("Use.d", "Foo.all"), ("FooTest.t", "Foo.make"), ("FooTest.t", "Foo.bar"), ("FooTest.t", "Foo"), ("FooTest.t", "FooTest.help"),
        },
    ),
    "bases of anonymous classes of Java": (
        {"Main.java": "interface Store<T> {}\nclass Main { Object d() { f(new Store<String>() { int x() { return 1; } }); return new Store() { }; } }\n"},
        "inherits",
        {("Main.d.Store$1", "Store"), ("Main.d.Store$2", "Store")},
    ),
    "imports of Go from elsewhere": (
        {
            "a/a.go": 'package a\nimport (\n "errors"\n "fmt"\n "log"\n)\nfunc New() {}\ntype Logger struct{}\nfunc (l *Logger) Println() {}\n'
            "func (l *Logger) Printf() {}\nfunc f(l *log.Logger) { errors.New(); fmt.Println(); l.Printf(); m := log.New(); m.Printf() }\n"
            "func g(l *Logger) { l.Printf(); New() }\n",
        },
        "calls",
        {("g", "Logger.Printf"), ("g", "New")},
    ),
    "imports of JavaScript from elsewhere": (
        {
            "a.js": "export function readAll() {}\nexport class Client { fetchAll() {} }\n",
            "b.ts": "import { readAll, Client } from 'some-package'\nimport fetchAll, * as ns from '@other/x'\n"
            "class Own extends Client {}\nfunction f(c: Client) { readAll(); fetchAll(); ns.readAll(); c.fetchAll(); new Client() }\n",
            "c.js": "const { readAll } = require('some-package')\nfunction g() { readAll() }\n",
            "d.js": "import { readAll } from './a'\nfunction h() { readAll() }\n",
        },
        "calls",
        {("h", "readAll")},
    ),
    "test packages of Go": (
        {
            "a/a.go": "package a\nfunc F() { helper() }\n",
            "a/a_test.go": 'package a_test\nimport "example.org/lab/a"\nfunc helper() {}\nfunc Outer() { helper(); a.F() }\n',
            "a/b_test.go": "package a\nfunc Inner() { F() }\n",
        },
        "calls",
        {("Outer", "helper"), ("Outer", "F"), ("Inner", "F")},
    ),
    "packages of Go in one folder and programs beside them": (
        {
            "a/a.go": "package a\nfunc helper() {}\nfunc F() { helper(); other() }\n",
            "a/gen.go": "//go:build ignore\n\npackage main\nfunc main() { helper(); run() }\nfunc run() {}\nfunc other() {}\n",
        },
        "calls",
        {("F", "helper"), ("main", "run")},
    ),
    "the root of a module of Go in a folder of another name": (
        {
            "mux.go": "package chi\nfunc New() *Mux { return nil }\ntype Mux struct{}\nfunc (m *Mux) Go() {}\n",
            "mux_test.go": 'package chi_test\nimport "example.org/go-chi/chi/v5"\nfunc Test() { chi.New() }\n',
            "e/e.go": 'package e\nimport "example.org/go-chi/chi/v5"\nfunc use() { chi.New().Go() }\n',
            "f/v2/f.go": "package f\nfunc New() {}\n",
            "g/g.go": 'package g\nimport (\n"example.org/lab/f/v2"\n"gopkg.in/yaml.v3"\n)\nfunc both() { f.New(); yaml.Load() }\n',
            "y/z/y.go": "package yaml\nfunc Load() {}\nfunc load() {}\n",
        },
        "calls",
        {("Test", "New"), ("use", "New"), ("use", "Mux.Go"), ("both", "New")},
    ),
    "type parameters with the name of a class": (
        {
            "A.java": "class Foo { void bar() {} }\nclass T { void bar() {} }\nclass Box<T> { T x; T get() { return x; } void a() { x.bar(); this.x.bar(); get().bar(); } <Foo> Foo make() { return null; } void b() { make().bar(); } }\n"
            "class Use { T t() { return null; } void u(Box<String> b) { t().bar(); } }\n",
            "a.ts": "class Bar { go() {} }\nclass Two { go() {} }\nclass Crate<Bar> { x: Bar; get(): Bar { return this.x }\n a() { this.x.go(); this.get().go() } }\n",
        },
        "calls",
        {("Box.a", "Box.get"), ("Box.b", "Box.make"), ("Use.u", "Use.t"), ("Use.u", "T.bar"), ("Crate.a", "Crate.get")},
    ),
    "patterns of Java and fields of Go": (
        {
            "A.java": "class Foo { void bar() {} void own() {} }\nclass Other { void bar() {} void own() {} }\nclass A {\n Other f;\n"
            " void neg(Object o) { if (!(o instanceof Foo f)) { f.bar(); return; } f.own(); }\n void pos(Object o) { if (o instanceof Foo f) { f.own(); } f.bar(); }\n}\n",
            "a.go": "package a\ntype Base struct{}\nfunc (b Base) Go1() {}\nfunc (b Base) Go2() {}\ntype S struct {\n Base\n Go1 func()\n}\nfunc use(s S) { s.Go1(); s.Go2() }\n",
        },
        "calls",
        {("A.neg", "Other.bar"), ("A.neg", "Foo.own"), ("A.pos", "Foo.own"), ("A.pos", "Other.bar"), ("use", "Base.Go2")},
    ),
    "what methods of a receiver of TypeScript and JavaScript return": (
        {
            "a.ts": "class Run { go(): void {} go2(): Run { return this } self(): this { return this } }\nclass Alt { go() {} go2() {} self() {} get() {} prop() {} }\n"
            "class S { get(): Run { return null }  async later(): Promise<Run> { return null }\n get prop(): Run { return null }\n run: Run }\n"
            "function chain(s: S) { s.get().go2().self().go() }\nfunction local(s: S) { const r = s.get(); const q = r; q.go() }\nasync function later(s: S) { (await s.later()).go() }\n"
            "function field(s: S) { s.run.go() }\nfunction getter(s: S) { s?.prop.go() }\nfunction cast(x: any) { (x as Run).go(); const y = x as S; y!.get() }\n"
            "class D { own: S; constructor(private s: S, t: S) { this.own = t }\n m() { this.s!.get().go(); this.own.later() } }\n",
            "b.js": "const api = { start() {}, inner: { deep() {} } }\nfunction k() { api.start() }\nclass B { start() {} }\nclass C extends B { constructor() { super(1) } }\n",
        },
        "calls",
        {
            ("chain", "S.get"), ("chain", "Run.go2"), ("chain", "Run.self"), ("chain", "Run.go"), ("local", "S.get"), ("local", "Run.go"), ("later", "S.later"),
            ("later", "Run.go"), ("field", "Run.go"), ("getter", "Run.go"), ("cast", "Run.go"), ("cast", "S.get"), ("D.m", "S.get"), ("D.m", "Run.go"), ("D.m", "S.later"),
            ("k", "api.start"), ("C.constructor", "B"),
        },
    ),
    "what methods of a receiver of Go return": (
        {
            "a.go": "package a\ntype Run struct{}\nfunc (r *Run) Go() {}\nfunc (r *Run) Next() *Run { return r }\ntype Alt struct{}\nfunc (a Alt) Go() {}\nfunc (a Alt) Next() {}\n"
            "func (s S) Get() *Run { return s.r }\nfunc (s S) Two() (*Run, error) { return s.r, nil }\ntype Inner struct { r Run }\n"
            "func chain(s S) { s.Get().Next().Go() }\nfunc local(s S) { r := s.Get(); r.Go() }\nfunc two(s S) { r, err := s.Two(); r.Go() }\nfunc field(s S) { s.inner.r.Go() }\n"
            "func cast(x any) { x.(*Run).Go() }\nfunc ok(x any) { r, ok := x.(*Run); r.Go() }\nfunc made() { new(Run).Go(); r := new(Run); r.Next() }\n",
            "b.go": "package a\ntype S struct { r *Run; inner Inner }\nfunc far(s *S) { s.r.Go() }\n",
        },
        "calls",
        {
            ("chain", "S.Get"), ("chain", "Run.Next"), ("chain", "Run.Go"), ("local", "S.Get"), ("local", "Run.Go"), ("two", "S.Two"), ("two", "Run.Go"), ("field", "Run.Go"),
            ("cast", "Run.Go"), ("ok", "Run.Go"), ("made", "Run.Go"), ("made", "Run.Next"), ("far", "Run.Go"),
        },
    ),
    "what methods of a receiver of Rust return": (
        {
            "src/lib.rs": "mod other;\npub struct Run;\nimpl Run { pub fn go(&self) {} fn next(&mut self) -> &mut Self { self } }\nstruct Alt;\nimpl Alt { fn go(&self) {} fn next(&self) {} }\n"
            "pub struct S { pub run: Run }\nimpl S { fn get(&self) -> &Run { &self.run } fn res(&self) -> Result<Run, E> { x } }\n"
            "fn chain(s: &S) { s.get().next().go() }\nfn local(s: &S) { let r = s.get(); r.go() }\nfn tried(s: &S) -> Result<(), E> { let r = s.res()?; r.go() }\nfn opened(s: &S) { s.res().unwrap().go() }\n",
            "src/other.rs": "use crate::S;\nfn far(s: &S) { s.run.go() }\n",
        },
        "calls",
        {
            ("chain", "S.get"), ("chain", "Run.next"), ("chain", "Run.go"), ("local", "S.get"), ("local", "Run.go"), ("tried", "S.res"), ("tried", "Run.go"),
            ("opened", "S.res"), ("opened", "Run.go"), ("far", "Run.go"),
        },
    ),
    "what methods of a receiver of Java return": (
        {
            "Run.java": "class Run { void go() {} Run next() { return this; } }\nclass Alt { void go() {} void next() {} void get() {} }\nclass Base { Base(int x) {} }\n",
            "S.java": "class S extends Base { Run get() { return null; } Run run; static final Run RUN = new Run(); S() { super(1); } }\nenum E { ONE, TWO; void go() {} }\nrecord P(Run run) {}\n",
            "Use.java": "class Use {\n void chain(S s) { s.get().next().go(); }\n void local(S s) { var r = s.get(); r.go(); }\n void field(S s) { s.run.go(); S.RUN.next(); }\n"
            " void constant() { E.ONE.go(); }\n void record(P p) { p.run().go(); }\n void cast(Object o) { ((S) o).get().go(); }\n}\n",
        },
        "calls",
        {
            ("Use.chain", "S.get"), ("Use.chain", "Run.next"), ("Use.chain", "Run.go"), ("Use.local", "S.get"), ("Use.local", "Run.go"), ("Use.field", "Run.go"), ("Use.field", "Run.next"),
            ("Use.constant", "E.go"), ("Use.record", "Run.go"), ("Use.cast", "S.get"), ("Use.cast", "Run.go"), ("S", "Run"), ("S.S", "Base"),
        },
    ),
    "properties and returned types of Python": (
        {
            "a.py": "class Run:\n    def go(self): pass\n    def next(self) -> Self: return self\n    @classmethod\n    def make(cls) -> 'Self': return cls()\nclass Kid(Run):\n    def more(self): pass\n"
            "class Alt:\n    def go(self): pass\n    def next(self): pass\n    def more(self): pass\nclass S:\n    run: Run\n    @property\n    def prop(self) -> Run: return x\n"
            "    def get(self) -> 'Run | None': return x\n    def own(self): self.prop.go()\n",
            "b.py": "from a import Kid, S\ndef prop(s: S): s.prop.go()\ndef chain(s: S): s.get().next().go()\ndef field(s: S):\n    r = s.run\n    r.go()\ndef kid():\n    Kid().next().more()\n    Kid.make().next().more()\n",
        },
        "calls",
        {
            ("S.own", "Run.go"), ("prop", "Run.go"), ("chain", "S.get"), ("chain", "Run.next"), ("chain", "Run.go"), ("field", "Run.go"),
            ("kid", "Kid"), ("kid", "Run.next"), ("kid", "Run.make"), ("kid", "Kid.more"), ("Run.make", "Run"),
        },
    ),
    "bare calls in nested classes of Java": (
        {
            "A.java": "class A {\n void run() {}\n void start2() {}\n void help() {}\n static void make() {}\n public String toString() { return null; }\n"
            " class Inner extends Thread { void go() { run(); start2(); } }\n static class Nested { void go() { help(); make(); } }\n"
            " class Plain { void go() { help(); toString(); } }\n void own() { new Thread() { void x() { run(); } }; toString(); help(); } }\n"
            "class B { void start2() {} }\n",
        },
        "calls",
        {("A.Nested.go", "A.make"), ("A.Plain.go", "A.help"), ("A.own", "A.toString"), ("A.own", "A.help")},
    ),
    "namespaces of TypeScript": (
        {
            "a.ts": "export namespace A { export function make() {} }\nnamespace B { export function make() {}\n export function go() { make() } }\n"
            "module M.N { export function q() {}\n function r() { q() } }\nfunction make2() { q() }\n",
            "b.ts": "import { A } from './a'\nfunction use() { A.make() }\n",
        },
        "calls",
        {("B.go", "B.make"), ("M.N.r", "M.N.q"), ("use", "A.make")},
    ),
    "embedded types of Go": (
        {
            "a/a.go": "package a\ntype User struct{}\ntype Repo[T any] struct{}\ntype Reader interface { ReadAll() }\ntype Set[T any] interface { Add(x T) }\n"
            "type Field struct { users Repo[User] }\ntype Held struct { Repo[User] }\ntype Far interface {\n\tSet[User]\n\tint | User\n}\n",
            "b/b.go": 'package b\nimport "example.org/lab/a"\ntype User struct { *a.User }\ntype Repo struct { a.Repo[User] }\ntype Both interface { a.Reader }\n',
        },
        "inherits",
        {("Held", "Repo"), ("Far", "Set"), ("User", "User"), ("Repo", "Repo"), ("Both", "Reader")},
    ),
    "methods of generic types of Go": (
        {
            "a.go": "package a\ntype Cart[T any] struct{}\nfunc (c *Cart[T]) Total() { c.Each() }\nfunc (c Cart[T]) Each() {}\ntype ID [16]byte\nfunc (i ID) Hex() { show(i) }\n"
            "func show(i ID) { i.Hex() }\nfunc (c Alt) Total() {}\nfunc (c Alt) Hex() {}\nfunc use(c *Cart[int]) { c.Total() }\n",
        },
        "calls",
        {("Cart.Total", "Cart.Each"), ("ID.Hex", "show"), ("show", "ID.Hex"), ("use", "Cart.Total")},
    ),
    "qualified bases": (
        {
            "k/a.kt": "open class State {\n open class Base(x: Int)\n}\nopen class Base(x: Int)\nclass Listeners {\n interface OnClick<T>\n}\nclass Cb : State.Base(2), Listeners.OnClick<Cb>\n",
            "s/a.swift": "class Outer { class Inner {} }\nclass Inner {}\nclass Kid: Outer.Inner {}\n",
            "j/A.java": "class Reg { interface On<T> {} class Base {} }\ninterface On {}\nclass Base {}\nclass Has extends Reg.Base implements Reg.On<Has> { }\nclass Plain implements On { }\n",
            "t.ts": "import * as far from 'far'\nimport * as near from './n'\nclass Top {}\nclass One extends near.Top {}\nclass Two extends far.Top {}\n", "n.ts": "export class Top {}\n",
        },
        "inherits",
        {
            ("Cb", "State.Base"), ("Cb", "Listeners.OnClick"), ("Kid", "Outer.Inner"), ("Has", "Reg.Base"), ("Has", "Reg.On"), ("Plain", "On"),
            ("One", "Top"),
        },
    ),
    "anonymous classes and qualified types of Java": (
        {
            "A.java": "class A {\n Timers.Task t = new Timers.Task() { public void run() { tick(); } void own() { run(); } };\n void tick() {}\n"
            " void go() { new Timers.Task<A>() { public void run() { tick(); } }; run(); }\n void made() { new Timers.Task(); }\n}\nclass Timers { static class Task<T> { Task() {} } }\n",
        },
        "calls",
        {
            ("A.Task$1", "Timers.Task"), ("A.Task$1.run", "A.tick"), ("A.Task$1.own", "A.Task$1.run"), ("A.go.Task$1.run", "A.tick"), ("A.go.Task$1", "Timers.Task"),
            ("A.made", "Timers.Task"),
        },
    ),
    "awaited and super calls of TypeScript": (
        {
            "a.ts": "class Box { open() {} }\nclass Base { constructor(x: number) {} }\nclass Kid extends Base { constructor() { super(1) } }\nfunction load<T>(): Promise<Box> { return x }\n"
            "class Api { get<T>(x: string) {} }\nclass Alt { get() {} open() {} }\nasync function go(api: Api) { await api.get<string>('/u'); const b = await load<Box>(); b.open() }\n",
            "b.tsx": "class B { constructor() {} }\nclass C extends B { constructor() { super() } }\n",
        },
        "calls",
        {("Kid.constructor", "Base"), ("go", "Api.get"), ("go", "load"), ("go", "Box.open"), ("C.constructor", "B")},
    ),
    "comments in imports of JavaScript": (
        {
            "a.js": "export function one() {}\nexport function two() {}\nexport function three() {}\n",
            "d.js": "function one() {}\nfunction two() {}\nfunction three() {}\n",
            "b.js": "import {\n  one, // the first\n  two, /* from 'x' */ three,\n} from './a'\nfunction go() { one(); two(); three() }\n",
            "c.ts": "const { one /* a */, // b\n  two } = require('./a') // from 'z'\nfunction go() { one(); two() }\n",
        },
        "calls",
        {("go", "one"), ("go", "two"), ("go", "three")},
    ),
    "comments in imports of Rust": (
        {
            "src/lib.rs": "mod a;\nuse crate::a::{\n    one, // the first\n    /* and */ two, // {it\n    three,\n};\nfn go() { one(); two(); three() }\n",
            "src/a.rs": "pub fn one() {}\npub fn two() {}\npub fn three() {}\n", "src/b.rs": "fn one() {}\nfn two() {}\nfn three() {}\n",
        },
        "calls",
        {("go", "one"), ("go", "two"), ("go", "three")},
    ),
    "imports of Python that bind a name twice": (
        {
            "a.py": "def load(): pass\nclass A:\n    def make(self): pass\n    weigh = kept = load = make\ndef weigh(): in_a()\ndef in_a(): pass\ndef _own(): pass\n",
            "c.py": "__all__ = ['kept', 'load']\ndef kept(): pass\ndef weigh(): pass\ndef left(): pass\nfrom b import load\n", "b.py": "def load(): pass\n",
            "d.py": "from a import load as used\nfrom d2 import other as used\ndef one(): used()\n", "d2.py": "def other(): pass\nfrom e import *\n", "e.py": "def last(): pass\nlist_all = last\n",
            "f.py": "try:\n    from d2 import other as used\nexcept ImportError:\n    from e import last as used\ndef three(): used()\n",
            "g.py": "from c import *\nfrom a import *\ndef four(): left(); _own(); kept(); weigh()\n", "h.py": "import g\ndef five(): g._own(); g.left(); g.kept()\n",
            "i.py": "from j import *\nfrom k import *\ndef six(): pick().go()\n", "j.py": "def pick() -> 'J': pass\nclass J:\n    def go(self): pass\n", "k.py": "def pick() -> 'K': pass\nclass K:\n    def go(self): pass\n",
        },
        "calls",
        {("weigh", "in_a"), ("one", "other"), ("three", "other"), ("four", "kept"), ("four", "weigh"), ("five", "kept"), ("six", "pick"), ("six", "K.go")},
    ),
    "bare names in tests of Java": (
        {
            "x/src/main/java/p/A.java": "package p;\nimport static q.Checks.check;\nclass A { }\n", "x/src/main/java/q/Checks.java": "package q;\nclass Checks { static void check() {} }\n",
            "x/src/main/java/q/Alt.java": "package q;\nclass Alt { static void check() {} }\n", "x/src/test/java/p/ATest.java": "package p;\nclass ATest { void go() { check(); new A(); } }\n",
        },
        "calls",
        {("ATest.go", "A")},
    ),
    "a common name of Rust": (
        {"src/lib.rs": "struct Doc;\nimpl Doc { fn parse(&self) {} }\nfn go(x: &str) { x.trim().parse(); }\n"}, "calls", set(),
    ),
    "blocks of JavaScript": (
        {
            "a.js": "function f() {}\nfunction deep() {}\n{ function f() {}\n f() }\nf()\nfunction h() { if (y) { const inner = () => 1\n inner() }\n inner() }\n"
            "function k() { { function deep() {}\n deep() } }\nfunction l() { deep() }\nclass A { static { function s() {}\n s() } }\n",
        },
        "calls",
        {("lab.a", "$1.f"), ("lab.a", "f"), ("h", "h.$2.inner"), ("k", "k.$3.deep"), ("l", "deep"), ("A", "A.$4.s")},
    ),
    "exports of CommonJS": (
        {
            "b.js": "exports.open = function () { close() }\nmodule.exports.shut = () => open()\nfunction close() {}\n"
            "function Foo() {}\nFoo.prototype.bar = function () { this.baz() }\nFoo.prototype.baz = () => 2\n",
            "c.js": "module.exports = { x: function () {}, y: () => 1, w }\nfunction w() {}\n", "d.js": "module.exports = function () {}\n",
            "e.ts": "const b = require('./b')\nconst { open } = require('./b')\nimport c = require('./c')\nconst run = require('./d')\n"
            "function t() { b.open(); b.shut(); run() }\nfunction u() { open(); c.x(); c.y(); c.w() }\n",
        },
        "calls",
        {
            ("exports.open", "close"), ("Foo.bar", "Foo.baz"), ("t", "exports.open"), ("t", "exports.shut"), ("t", "default"),
            ("u", "exports.open"), ("u", "exports.x"), ("u", "exports.y"), ("u", "w"),
        },
    ),
    "names of JavaScript that are bound twice": (
        {
            "a.js": "function a() {}\nfunction p() {}\np = a\nvar fn = function () {}\nfn = a\nclass K { go() {} }\nclass L { go() {} }\nlet o = new K(); o = new L()\nlet one = new K()\n"
            "function u() { p(); fn(); o.go() }\nfunction v() { one.go(); let t = new K(); t.go() }\nfunction w() { let t = new K(); t = new L(); t.go() }\nexport { p as q }\n",
            "b.js": "import { q } from './a'\nfunction x() { q() }\n",
            "c.ts": "import { K } from './d'\nfunction y() { let t: K = null; t = make(); t.go() }\n",
            "d.ts": "export class K { go() {} }\n",
        },
        "calls",
        {("lab.a", "K"), ("lab.a", "L"), ("v", "K.go"), ("v", "K"), ("w", "K"), ("w", "L"), ("y", "K.go")},
    ),
    "names of class expressions of JavaScript": (
        {
            "a.js": "const A = class B { m() { new B(); B.s() } static s() {} }\nfunction f() { new B(); new A() }\nfoo(class C {})\nfunction g() { new C() }\n",
            "b.ts": "const T = class U { m() { new U() } }\nfunction h() { new U(); new T() }\n",
        },
        "calls",
        {("A.m", "A"), ("A.m", "A.s"), ("f", "A"), ("T.m", "T"), ("h", "T")},
    ),
    "anonymous classes of JavaScript": (
        {
            "a.js": "import { Base } from './b'\nfunction render() {}\ncustomElements.define('x', class extends Base { go() { render(); this.render() } render() {} })\n"
            "const Timed = (Base) => class extends Base { go() { render() } render() {} }\nfunction mixin(B) { return class Named extends B { go() { render(); new Named() } render() {} } }\n"
            "function two() { on(class { go() { helper() } helper() {} }); on(class { go() { this.helper() } helper() {} }) }\n",
            "b.js": "export class Base { open() {} }\n",
            "c.js": "module.exports = class Crate { open() { close(); new Crate() } close() {} }\n", "d.js": "module.exports = class { close() {} }\n",
            "e.js": "exports.Scale = class { weigh() { weigh() } }\n",
            "f.js": "const Crate = require('./c')\nconst Box = require('./d')\nconst { Scale } = require('./e')\n"
            "function use() { new Crate().open(); new Box().close(); new Scale().weigh() }\n",
            "m.ts": "export function Retry<T>(Base: T) { return class extends Base { fetch() { return this.load(1) } load(u) { return fetch(u) } } }\n",
        },
        "calls",
        {
            ("class$1.go", "render"), ("class$1.go", "class$1.render"), ("Timed.class$1.go", "render"), ("mixin.Named$1.go", "render"), ("mixin.Named$1.go", "mixin.Named$1"),
            ("two.class$2.go", "two.class$2.helper"), ("Crate.open", "Crate"), ("use", "Crate"), ("use", "Crate.open"), ("use", "default"), ("use", "default.close"),
            ("use", "exports.Scale"), ("use", "exports.Scale.weigh"), ("Retry.class$1.fetch", "Retry.class$1.load"),
        },
    ),
    "bases of anonymous classes of JavaScript": (
        {
            "a.js": "import { Base } from './b'\non(class extends Base {})\nconst M = (Base) => class extends Base {}\nfunction f(B) { return class X extends B {} }\nclass B {}\n",
            "b.js": "export class Base {}\n",
        },
        "inherits",
        {("class$1", "Base")},
    ),
    "scopes of JavaScript": (
        {
            "a.js": "const api = { fetch() {} }\nfunction load() { return fetch('/x') }\n(function () { function inner() {}\n inner() })()\n"
            "function g() { inner() }\nfunction m() { const o = { run() { run() } } }\nfunction h() { list.map(() => { function cb() {}\n cb() }); cb() }\nfunction run() {}\n"
            "function i() { const { run } = require('./b'); run() }\nfunction j() { if (x) { var run = 1 } run() }\nfunction k() { run() }\n",
            "b.js": "module.exports = { run() {} }\n",
            "c.js": "const b = require('./b')\nfunction l() { b.run() }\n",
        },
        "calls",
        {("lab.a", "$2.inner"), ("h", "h.$4.cb"), ("i", "exports.run"), ("k", "run"), ("m.o.run", "run"), ("l", "exports.run")},
    ),
    "elements of collections of Python": (
        {
            "a.py": "class Box:\n    def open(self): pass\n    def lid(self) -> 'Box': return self\nclass Crate:\n    boxes: list[Box] = []\n    def __init__(self, more: dict[str, list[Box]]):\n        self.more = more\n"
            "    def __iter__(self) -> Iterator[Box]: yield from self.boxes\n    def each(self):\n        for box in self.boxes: box.open()\n    def pairs(self):\n        for name, some in self.more.items():\n            for box in some: box.open()\n"
            "    def values(self):\n        for n, some in enumerate(self.more.values()): some[0].open()\n    def own(self):\n        for box in self: box.open()\n    def get(self): self.more.get('x').pop().open()\n",
            "b.py": "from a import Box, Crate\ndef listed(xs: Sequence[Box] | None): [x.open() for x in xs or []]\ndef made():\n    xs = [Box(n) for n in range(3)]\n    sorted(xs)[0].open()\ndef zipped(xs: list[Box], ys: set[int]):\n    for x, y in zip(xs, ys):\n        x.open()\n        y.open()\n"
            "def keys(xs: dict[Box, int]):\n    for x in xs: x.open()\ndef whole(xs: list[Box]): xs.open()\ndef of(crate: Crate): crate.boxes[1:][0].lid().open()\nasync def later() -> AsyncIterator[Box]: yield 1\nasync def awaited():\n    async for x in later(): x.open()\n"
            "@contextmanager\ndef held() -> Iterator[Box]: yield 1\ndef within():\n    with held() as x: x.open()\nclass Door:\n    def open(self): pass\n",
        },
        "calls",
        {
            ("Crate.each", "Box.open"), ("Crate.pairs", "Box.open"), ("Crate.values", "Box.open"), ("Crate.own", "Box.open"), ("Crate.get", "Box.open"), ("listed", "Box.open"), ("made", "Box"),
            ("made", "Box.open"), ("zipped", "Box.open"), ("of", "Box.lid"), ("of", "Box.open"), ("awaited", "later"), ("awaited", "Box.open"), ("within", "held"), ("within", "Box.open"),
        },
    ),
    "types that a test or a handler gives a name of Python": (
        {
            "a.py": "class Base:\n    def go(self): pass\nclass Kid(Base):\n    def go(self): pass\nclass Fault(Exception):\n    def told(self): pass\nclass Other:\n    def told(self): pass\n"
            "def tested(x):\n    if isinstance(x, Kid) and x: x.go()\n    x.go()\n"
            "def handled():\n    try: pass\n    except (Fault, OSError) as e: e.told()\n    except OSError as e: e.told()\ndef named():\n    if (x := Kid()): x.go()\ndef said(x): cast('Kid', x).go()\n"
            "def given(x: Kid | None):\n    y = x or Kid()\n    y.go()\n",
        },
        "calls",
        {
            ("tested", "Kid.go"), ("handled", "Fault.told"), ("named", "Kid"), ("named", "Kid.go"),
            ("said", "Kid.go"), ("given", "Kid"), ("given", "Kid.go"),
        },
    ),
    "the class around": (
        {
            "a.py": "class A:\n    @classmethod\n    def make(cls): return cls().go()\n    def go(self): return type(self)()\n    def more(self): return self.__class__()\n    @staticmethod\n    def free(cls): cls()\n    def whole(self): self()\nclass M(type):\n    def of(cls): return cls()\n",
            "a.rs": "pub struct S(u8);\nimpl S { fn new() -> Self { Self(1).low() } fn low(self) -> Self { Self { 0: 1 } } }\nimpl S { fn of() { Self::new().low(); } }\n",
            "B.java": "class B { B() { this(1); } B(int x) { } void self() {} void go() { self(); } }\n",
            "c.ts": "class C { static make() { return new this() } }\n",
        },
        "calls",
        {("A.make", "A"), ("A.make", "A.go"), ("A.go", "A"), ("A.more", "A"), ("S.new", "S"), ("S.new", "S.low"), ("S.low", "S"), ("S.of", "S.new"), ("S.of", "S.low"), ("B.B", "B"), ("B.go", "B.self"), ("C.make", "C")},
    ),
    "variables of Java and Go with the names of a base": (
        {
            "A.java": "class Base { void go() {} }\nclass A extends Base { Node parent; void run() { parent.go(); base.go(); } void go() {} class Inner { void x() { A.this.go(); } } }\nclass Node { void go() {} }\n",
            "a.go": "package a\ntype Root struct{}\nfunc (r Root) Go() {}\ntype Kid struct { Root }\ntype Other struct{}\nfunc (o Other) Go() {}\nfunc (k Kid) Run(base Other) { base.Go() }\n",
        },
        "calls",
        {("A.run", "Node.go"), ("A.Inner.x", "A.go"), ("Kid.Run", "Other.Go")},
    ),
    "elements of collections of TypeScript": (
        {
            "a.ts": "export class Box { open() {} lid(): this { return this } }\nexport class Crate {\n  boxes: readonly Box[] = []\n  readonly named = new Map<string, Box>()\n  constructor(readonly list: Array<Box>, private one?: Box) {}\n"
            "  loop() { for (const b of this.boxes) b.open() }\n  pair() { for (const [k, b] of this.named) b.open() }\n  given() { this.list.filter(b => b.open()) }\n  chain() { this.list.slice(1).forEach((b, i) => b.lid().open()) }\n"
            "  at() { this.boxes[0]?.open(); this.named.get('x')!.open() }\n  async all(): Promise<Box[]> { return [] }\n  async each() { for (const b of await this.all()) b.open() }\n  keys() { for (const k in this.boxes) k.open() }\n  fold() { this.list.reduce((sum, b) => sum.open()) }\n  prop() { this.one.open() } }\n"
            "class Door { open() {} }\nfunction made() { const xs = [new Box(), new Box()]; for (const x of xs) x.open() }\ndescribe('x', () => { let b\n  before(() => { b = new Box() })\n  it('y', () => { b.open() }) })\n",
        },
        "calls",
        {
            ("Crate.loop", "Box.open"), ("Crate.pair", "Box.open"), ("Crate.given", "Box.open"), ("Crate.chain", "Box.lid"), ("Crate.chain", "Box.open"), ("Crate.at", "Box.open"), ("Crate.each", "Crate.all"),
            ("Crate.each", "Box.open"), ("Crate.prop", "Box.open"), ("made", "Box"), ("made", "Box.open"), ("lab.a", "Box"), ("lab.a", "Box.open"),
        },
    ),
    "elements of collections of Java": (
        {
            "A.java": "import java.util.*;\nclass Box { void open() {} }\nclass Door { void open() {} }\nclass Fault extends Exception { void told() {} }\nclass Note { void told() {} }\n"
            "class A { List<Box> list; Map<String, List<Box>> map; Box[] some;\n  void loop() { for (var b : list) b.open(); }\n  void given() { list.stream().filter(b -> b.open()); }\n  void index() { some[0].open(); }\n  void get() { map.get(1).get(2).open(); }\n"
            "  void entry() { for (Map.Entry<String, List<Box>> e : map.entrySet()) e.getKey(); for (var e : map.entrySet()) e.getValue().get(0).open(); }\n  Optional<Box> first() { return null; }\n  void lazy(Supplier<Box> s) { s.get().open(); s.open(); }\n  void maybe() { first().get().open(); first().ifPresent(b -> b.open()); }\n"
            "  void caught() { try { } catch (Fault e) { e.told(); } catch (Other | More e) { e.told(); } }\n  void text() { String.format(1); Objects.told(); }\n  static void format() {} }\n",
            "b/C.java": "class List<T> { void open() {} }\nclass C { List<Box> own; void go() { own.open(); } }\n",
        },
        "calls",
        {("A.loop", "Box.open"), ("A.given", "Box.open"), ("A.index", "Box.open"), ("A.get", "Box.open"), ("A.entry", "Box.open"), ("A.maybe", "A.first"), ("A.lazy", "Box.open"), ("A.maybe", "Box.open"), ("A.caught", "Fault.told"), ("C.go", "List.open")},
    ),
    "elements of collections of Go": (
        {
            "a.go": "package a\ntype Box struct{}\nfunc (b *Box) Open() {}\ntype Door struct{}\nfunc (d *Door) Open() {}\ntype Opener interface { Open(); Shut() }\ntype Crate struct { list []*Box; named map[string]*Box; ch chan *Box }\n"
            "func (c *Crate) Range() { for _, b := range c.list { b.Open() } }\nfunc (c *Crate) Keys() { for b := range c.list { b.Open() } }\nfunc (c *Crate) Recv() { for b := range c.ch { b.Open() } }\nfunc (c *Crate) Index() { c.list[1:][0].Open() }\n"
            "func (c *Crate) Named() { if b, ok := c.named[\"x\"]; ok { b.Open() } }\nfunc (c *Crate) One() { b := <-c.ch; b.Open() }\nfunc Rest(xs ...*Box) { for _, x := range xs { x.Open() } }\nfunc Made() { xs := make([]Box, 2); xs[0].Open() }\n"
            "func Switch(x any) { switch y := x.(type) { case *Box: y.Open(); case *Door, *Crate: y.Open(); case Opener: y.Shut() } }\nfunc Said() { var o Opener = &Box{}; o.Open() }\nfunc Map[T any](x T) *Box { return nil }\nfunc Call() { Map[int](1).Open() }\n",
            "b/b.go": "package b\nimport \"example.org/lab\"\nfunc Far() { lab.Map[string](\"\").Open() }\n",
        },
        "calls",
        {
            ("Crate.Range", "Box.Open"), ("Crate.Recv", "Box.Open"), ("Crate.Index", "Box.Open"), ("Crate.Named", "Box.Open"), ("Crate.One", "Box.Open"), ("Rest", "Box.Open"), ("Made", "Box.Open"), ("Switch", "Box.Open"),
            ("Switch", "Opener.Shut"), ("Said", "Box"), ("Said", "Opener.Open"), ("Call", "Map"), ("Call", "Box.Open"), ("Far", "Map"), ("Far", "Box.Open"),
        },
    ),
    "elements of collections of Rust": (
        {
            "a.rs": "pub struct Fox { n: u8 }\nimpl Fox { fn open(&self) {} fn lock(&self) -> Key { Key } }\npub struct Key;\nimpl Key { fn open(&self) {} }\nstruct Crate { list: Vec<Box<Fox>>, named: HashMap<String, Fox>, one: Option<Fox>, held: Arc<Mutex<Fox>> }\nimpl Crate {\n"
            "fn each(&self) { for b in &self.list { b.open(); } }\nfn count(&self) { for (i, b) in self.list.iter().enumerate() { b.open(); } }\nfn pair(&self) { for (k, b) in &self.named { b.open(); } }\nfn given(&self) { self.list.iter().filter(|b| b.open()).map(|b| b.open()); }\n"
            "fn some(&self) { if let Some(b) = &self.one { b.open(); } }\nfn find(&self) -> Option<&Fox> { None }\nfn taken(&self) { match self.find() { Some(b) => b.open(), None => () } }\nfn maybe(&self) { self.one.as_ref().map(|b| b.open()); }\nfn held(&self) { self.held.lock().unwrap().open(); }\n"
            "fn own(&self, b: Fox) { b.lock().open(); }\nfn index(&self, some: &[Fox]) { some[0].open(); }\nfn told(&self, b: Fox) { println!(\"{}\", b.open()); assert_eq!(self.one.open(), 1); println!(|b| b.open()); }\nfn text(&self) { String::with_size(1); } }\nfn with_size() {}\n",
        },
        "calls",
        {
            ("Crate.each", "Fox.open"), ("Crate.count", "Fox.open"), ("Crate.pair", "Fox.open"), ("Crate.given", "Fox.open"), ("Crate.some", "Fox.open"), ("Crate.taken", "Crate.find"), ("Crate.taken", "Fox.open"),
            ("Crate.maybe", "Fox.open"), ("Crate.held", "Fox.open"), ("Crate.own", "Fox.lock"), ("Crate.own", "Key.open"), ("Crate.index", "Fox.open"), ("Crate.told", "Fox.open"),
        },
    ),
    "variables of a module that hold a collection": (
        {
            "a.ts": "class Box { open() {} }\nfunction named(): Map<string, Box> { return x }\nexport const some = named()\n",
            "b.ts": "import { some } from './a'\nfunction use() { some.get('x').open(); some.open() }\n",
        },
        "calls",
        {("lab.a", "named")},  # not followed into other files
    ),
    "types of properties, rests, choices and names for collections": (
        {
            "a.ts": "class Box { open() {} }\nclass Door { open() {} }\ninterface Parts { box: Box; all: Box[]; open(): void }\ntype Boxes = Box[]\nfunction prop(p: Parts) { p.box.open(); p.all[0].open() }\nfunction rest(...xs: Box[]) { xs[0].open() }\nfunction get(): Box { return x }\n"
            "function either(x) { const y = get() ?? x; y.open() }\nfunction ways(x: boolean) { const y = x ? get() : new Door(); y.open() }\nfunction spread(xs: Box[]) { [...xs].sort()[0].open() }\nfunction named(xs: Boxes) { for (const x of xs) x.open() }\n",
            "A.java": "import java.util.*;\nclass Crate { void shut() {} }\nclass Gate { void shut() {} }\nclass A { void wild(List<? extends Crate> xs) { xs.get(0).shut(); } void more(Crate... xs) { xs[0].shut(); } void top(Deque<Crate> xs) { xs.peek().shut(); } }\n",
            "a.go": "package a\ntype Item struct{}\nfunc (i Item) Go() {}\ntype Other struct{}\nfunc (o Other) Go() {}\ntype Items []Item\nfunc (s Items) Run() { for _, i := range s { i.Go() } }\n",
            "a.rs": "struct Fox;\nimpl Fox { fn go(&self) {} }\nstruct Owl;\nimpl Owl { fn go(&self) {} }\nstruct Den { map: HashMap<u8, Vec<Fox>> }\nimpl Den { fn each(&self) -> impl Iterator<Item = &Fox> + '_ { x }\nfn run(&self) { for f in self.each() { f.go(); } }\nfn pair(&self) { for (_, fs) in self.map.iter() { for f in fs { f.go(); } } } }\n",
        },
        "calls",
        {
            ("prop", "Box.open"), ("rest", "Box.open"), ("either", "get"), ("either", "Box.open"), ("ways", "get"), ("ways", "Door"), ("spread", "Box.open"), ("named", "Box.open"), ("A.wild", "Crate.shut"),
            ("A.more", "Crate.shut"), ("A.top", "Crate.shut"), ("Items.Run", "Item.Go"), ("Den.run", "Den.each"), ("Den.run", "Fox.go"), ("Den.pair", "Fox.go"),
        },
    ),
    "interfaces of Go that embed those of its library": (
        {
            "a.go": "package a\ntype Told interface { fmt.Stringer; Tell(x int) }\ntype Odd interface { other.Thing; Tell(x int) }\ntype Both struct{}\nfunc (b Both) Tell(x int) {}\nfunc (b Both) String() string { return \"\" }\ntype One struct{}\nfunc (o One) Tell(y int) {}\n",
        },
        "inherits",
        {("Both", "Told")},
    ),
    "crates of Rust without a folder src": (
        {"core/main.rs": "mod flags;\n", "core/flags/mod.rs": "pub struct Flag;\nimpl Flag { pub fn on(&self) {} }\n", "core/run.rs": "use crate::flags::Flag;\nfn run(f: Flag) { f.on() }\nfn own() { crate::flags::Flag::on() }\n", "more/lib.rs": "mod flags;\n", "more/flags.rs": "pub struct Flag;\n"},
        "calls",
        {("run", "Flag.on"), ("own", "Flag.on")},
    ),
    "paths and packages that settings name": (
        {
            "tsconfig.json": '{ // paths\n "compilerOptions": {"baseUrl": "./src", "paths": {"@parts": ["parts/index.ts"], "~ui/*": ["ui/*"],}}}\n', "src/parts/index.ts": "export { part, shared } from './part'\n",
            "src/parts/part.ts": "export class Part { go() {} }\nexport function part() {}\nexport const shared = new Part()\n", "src/ui/btn.ts": "export default function btn() {}\n", "src/deep/run.ts": "export function run() {}\n",
            "src/main.ts": "import { part, shared } from '@parts'\nimport btn from '~ui/btn'\nimport { run } from 'deep/run'\nimport { go } from 'react'\nfunction main() { part(); shared.go(); btn(); run(); go() }\n",
            "packages/kit/package.json": '{"name": "@acme/kit"}', "packages/kit/src/index.ts": "export function tool() {}\n", "packages/app/main.ts": "import { tool } from '@acme/kit'\nfunction app() { tool() }\n",
            "Cargo.toml": '[package]\nname = "far-away"\n', "src/lib.rs": "pub fn near() {}\n", "src/bin/x.rs": "use far_away::near;\nfn far() { near() }\n",
        },
        "calls",
        {("main", "part"), ("main", "Part.go"), ("main", "btn"), ("main", "run"), ("app", "tool"), ("far", "near"), ("part", "Part")},
    ),
    "members of functions and modules of JavaScript": (
        {
            "a.js": "function Kid() { return new Kid() }\nKid.make = function () { Promise.all(); console.told() }\nKid.prototype.go = function () {}\nmodule.exports = Kid\nmodule.exports.Kid = Kid\nfunction told() {}\nconst kit = { run: () => told() }\nconst View = memo(() => told())\n",
            "lib/index.js": "const Kid = require('../a')\nmodule.exports = make\nmodule.exports.Kid = Kid\nfunction make() { return View() }\nexports.all = () => 1\n",
            "b.js": "const { Kid } = require('./lib')\nfunction use() { const k = new Kid(); k.go(); Kid.make() }\n",
            "c.js": "var send = require('send')\nvar res = {}\nres.send = function () { send(); res.more() }\nres.more = function more() { this.send() }\n",
        },
        "calls",
        {("res.send", "res.more"), ("res.more", "res.send"), ("Kid", "Kid"), ("kit.run", "told"), ("View", "told"), ("make", "View"), ("use", "Kid"), ("use", "Kid.go"), ("use", "Kid.make")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_names_mean_what_the_language_says(rule: str) -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    files, kind, wanted = RULES[rule]
    assert edges(files, kind) == wanted


# A module and a definition of one qualified name are two; the mark is that of the module.
ONE_NAME = {
    "Go": ({
        "a.go": 'package lab\nimport "example.org/lab/foo"\nfunc foo() {}\nfunc use() { foo() }\nfunc far() { foo.Bar() }\n',
        "foo/b.go": "package foo\nfunc Bar() { inner() }\nfunc inner() {}\n",
    }, {("lab.use", "lab.foo"), ("lab.far", "lab.foo.Bar"), ("lab.foo.Bar", "lab.foo.inner")}),
    "Rust": ({
        "src/lib.rs": "mod parse;\npub fn parse() { parse::go(); helper() }\nfn helper() { parse() }\n",
        "src/parse.rs": "pub fn go() { inner(); crate::parse() }\nfn inner() {}\n",
    }, {
        ("lab.src.parse", "lab.src.parse.go"), ("lab.src.parse", "lab.src.helper"), ("lab.src.helper", "lab.src.parse"),
        ("lab.src.parse.go", "lab.src.parse.inner"), ("lab.src.parse.go", "lab.src.parse"),
    }),
    "JavaScript": ({
        "a/index.js": "export function load() {}\n", "a/load.js": "export function file() {}\nfile()\n",
        "b.js": "import {load} from './a'\nimport * as all from './a/load'\nfunction f() { load(); all.file() }\n",
    }, {(":lab.a.load", "lab.a.load.file"), ("lab.b.f", "lab.a.load"), ("lab.b.f", "lab.a.load.file")}),
    "Python": ({
        "a/__init__.py": "def b(): pass\ndef f(): b()\n", "a/b.py": "def c(): pass\nc()\n",
        "d.py": "import a.b\nfrom a import b\nfrom a.b import c\ndef g():\n    c()\n    b()\ndef h(): a.b.c()\n",
    }, {("lab.a.f", "lab.a.b"), (":lab.a.b", "lab.a.b.c"), ("lab.d.g", "lab.a.b.c"), ("lab.d.g", "lab.a.b"), ("lab.d.h", "lab.a.b.c")}),
}  # fmt: skip


@pytest.mark.parametrize("language", ONE_NAME)
def test_a_module_and_a_definition_of_one_name_are_two(language: str) -> None:
    if language != "Python":
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    files, wanted = ONE_NAME[language]
    found = resolve([file for name, text in files.items() if (file := parse(f"lab/{name}", text))])
    assert {(one.source, one.target) for one in found if one.kind == "calls"} == wanted
    inside = {one.target: one.source for one in found if one.kind == "contains"}
    assert all(inside[name].startswith(":") for name in inside)


def test_a_name_of_a_module_and_a_definition_offers_both(tmp_path: Path) -> None:
    files, _ = ONE_NAME["Python"]
    write(tmp_path / "lab", files)
    corpus = index(tmp_path / "lab", tmp_path / "home")
    candidates = get_entity(corpus, "b").candidates
    assert {(one["title"], one["type"]) for one in candidates} == {("a.b", "module"), ("b", "function")}
    assert {row["key"] for row in (resolve_name(corpus, one["id"])[0] for one in candidates)} == {":lab.a.b", "lab.a.b"}
    assert len(get_entity(corpus, "lab.a.b").candidates) == 2 and get_entity(corpus, "lab.a.b.c").candidates == []
    assert get_source(corpus, [next(one["id"] for one in candidates if one["type"] == "function")]).text.count("def b(): pass") == 1


def test_the_name_of_a_java_class_with_a_constructor_means_the_class_inside_it_too() -> None:
    files = {
        "Foo.java": "class Foo {\n Foo(int x) {}\n static Foo create() { return null; }\n static void other() { Foo.create(); }\n void go() {}\n"
        " void y(Foo f) { f.go(); }\n Foo more() { return new Foo(1); }\n class In { void go() {} void z() { Foo.this.go(); } }\n"
        " static class Kid extends Foo { Kid() { super(1); } }\n}\n",
        "Bar.java": "class Bar { void go() {} static Foo create() { return null; } void k() { new Foo(1).go(); } }\n",
    }
    found = edges(files)
    assert {("Foo.other", "Foo.create"), ("Foo.y", "Foo.go"), ("Foo.more", "Foo"), ("Bar.k", "Foo"), ("Bar.k", "Foo.go")} <= found
    assert not {("Foo.In.z", "Foo.Foo"), ("Foo.more", "Foo.Foo")} & found
    assert ("Foo.Kid", "Foo") in edges(files, "inherits")


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


def test_a_name_in_the_arguments_of_a_rust_macro_is_never_sure_and_may_be_bound_there() -> None:
    files = {
        "src/lib.rs": "mod geometry;\nfn rule(x: u8) -> bool { true }\nfn hx() -> u8 { 1 }\nstruct Stack;\nimpl Stack { fn new() -> Stack { Stack } }\n"
        "fn a(rules: X) { assert!(rules.iter().all(|rule| rule(&x))); }\nfn b() { assert!(match x { Some(rule) => rule(1), _ => hx() }); }\n"
        "fn c() { quote! { fn rule() {} rule() } }\nfn d() { tokio::select! { rule = later() => { rule(1) } } }\nfn e() { assert!(rule(1) && x.rule == 1, \"rule\"); }\n"
        "fn f() { assert_eq!(geometry::area(2, 3), crate::geometry::area(1, 6)); }\nfn g() { dbg!(Stack::new()); dbg!(Vec::<u8>::new()); }\n",
        "src/geometry.rs": "pub fn area(a: u8, b: u8) -> u8 { a }\n",
    }
    found = [one for one in resolve([parse(f"lab/{name}", text) for name, text in files.items()]) if one.kind == "calls"]
    assert {(one.source[8:], one.target[8:], one.certainty) for one in found} == {
        ("b", "hx", 0.6), ("e", "rule", 0.6), ("f", "geometry.area", 0.9), ("g", "Stack.new", 1.0),
    }  # fmt: skip


def test_private_members_are_not_inherited_and_local_constants_of_rust_hide() -> None:
    java = "class Base { private void setup() {} void open() {} }\nclass Outer { void setup() {}\n class In extends Base { void t() { setup(); open(); } } }\n"
    found = edges({"Outer.java": java})
    assert ("Outer.In.t", "Base.open") in found and ("Outer.In.t", "Base.setup") not in found
    rust = "fn twice() -> u8 { 1 }\nfn a() -> u8 { fn three() -> u8 { 3 } const twice: fn() -> u8 = three; twice() }\nfn b() -> u8 { twice() }\n"
    assert ("a", "twice") not in edges({"a.rs": rust}) and ("b", "twice") in edges({"a.rs": rust})


def test_a_variable_of_a_module_that_holds_a_collection_means_no_definition() -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    text = "class Box {}\nfunction named(): Map<string, Box> { return x }\nexport const some = named()\n"
    file = parse("lab/a.ts", text)
    assert file is not None and names._variable(names.known([file]), "lab.a", "some", True) == ""
