"""Source code: an edit, communities by folder, and reports by rule."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from graphrag_mcp.code.folders import SMALL, by_folder
from graphrag_mcp.code.parse import parse, parse_prose
from graphrag_mcp.code.resolve import documented, known, resolve, touched
from graphrag_mcp.code.symbols import SourceFile
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index import batches
from graphrag_mcp.index.communities import ClusterParams, Hierarchy, cluster, texts_of
from graphrag_mcp.index.documents import AS_ONE
from graphrag_mcp.index.run import Cancelled
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.diff import changes
from graphrag_mcp.store.tables import Snapshot
from tests.code.test_code_graph import FILES, index, write


def test_a_run_that_ends_between_two_batches_leaves_no_old_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch takes a definition away, the second is never written: the next run knows."""
    folder, prose = tmp_path / "crates", {f"docs/n{n}.md": f"# Note {n}\n\nCrate {n}." for n in range(4)}
    write(folder, FILES)
    index(folder, tmp_path / "home")
    (folder / "pkg/scales.py").unlink()
    write(folder, prose)
    monkeypatch.setattr(batches, "BATCH_PASSAGES", 2 / AS_ONE)
    written = batches.documents.commit_batch
    calls: list[bool] = []

    def once(*args: object, **named: bool) -> None:
        calls.append(bool(named.get("last")))
        if named.get("last"):
            raise Cancelled
        written(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(batches.documents, "commit_batch", once)
        with pytest.raises(AssertionError):
            index(folder, tmp_path / "home")
    assert calls[0] is False and calls[-1] is True
    monkeypatch.undo()
    again = index(folder, tmp_path / "home")
    assert digest(again) == digest(index(folder, tmp_path / "fresh"))


SHORT = ("load", "weigh", "Crate", "Scale", "get_it", "Cart", "Net", "drop", "send", "Ship")
MODULES = ("core", "scales", "pkg.ships", "pkg.carts")


def random_module(rng: random.Random) -> str:
    """A module that imports, defines, extends, names and calls things of the few names that there are."""
    def name() -> str:
        return rng.choice(SHORT)

    def line() -> str:
        other, star = rng.choice(MODULES), rng.random() < 0.2
        return rng.choice((
            f"from {other} import {'*' if star else name()}", f"from {other} import {name()} as {name()}",
            f"import {other}", f"import {other} as {name()}", f"{name()} = {name()}", f"{name()} = {name()}()",
            f"{other}.{name()}().{name()}()", f"{name()}().{name()}()", f"{name()}({other}.{name()}())",
            f"def {name()}(crate: {name()}) -> {name()}:\n    return crate.{name()}(crate).{name()}()",
            f"class {name()}({name()}):\n    def {name()}(self):\n        super().{name()}()\n        self.{name()}()",
            f"class {name()}(Protocol):\n    def {name()}(self): pass", f"class {name()}(Generic[{name()}]):\n    {name()}: {name()}\n    @property\n    def {name()}(self) -> {name()}: pass",
            f"def {name()}(crate: {name()}):\n    crate.{name()}.{name()}().{name()}.{name()}()\n    x = crate.{name()}\n    x.{name()}()", f"def {name()}():\n    global {name()}\n    {name()} = {name()}()",
            f"def {name()}(crate: list[{name()}]) -> dict[str, {name()}]:\n    for x in crate: x.{name()}()\n    crate[0].{name()}.{name()}()\n    {name()}()['x'].{name()}()",
            f"class {name()}:\n    def __iter__(self) -> Iterator[{name()}]: pass\n    def __getitem__(self, n) -> {name()}: pass",
            f"def {name()}(x: {name()}):\n    for y in x.{name()}: y.{name()}()\n    x[0].{name()}()\n    if isinstance(x, {name()}): x.{name()}()",
            f"class {name()}({other}.{name()}):\n    inner = {name()}()", f"# See `{name()}.{name()}` and `{other}.{name()}`.",
        ))  # fmt: skip

    return "".join(f"{line()}\n" for _ in range(rng.randint(1, 7)))


def random_lines(rng: random.Random, language: str) -> str:
    """The same in Go and in TypeScript."""
    def name() -> str:
        return rng.choice(SHORT)

    def line() -> str:
        other = rng.choice(MODULES).replace(".", "::" if language == "rs" else "/")
        return rng.choice({
            "go": (
                f"type {name()} struct {{ {name()} }}", f"type {name()} struct {{ a {name()} }}", f"type {name()} interface {{ {name()}(a int) }}",
                f"type {name()} interface {{\n  {name()}\n  {name()}(a, b int)\n}}", f"func (s *{name()}) {name()}(a int) {{ s.a.{name()}() }}",
                f"type {name()}[{name()} any] struct {{ {name()} {name()} }}", f"func {name()}(s {name()}) {{ s.{name()}.{name()}().{name()}() }}",
                f"type {name()} []{name()}", f"func {name()}(x {name()}) []{name()} {{ for _, y := range x {{ y.{name()}(); y.{name()}[0].{name()}() }} }}",
                f"type {name()} interface {{\n  fmt.Stringer\n  {name()}(a int)\n}}", f"func (s {name()}) {name()}(a, b int) {name()} {{}}", f"func {name()}(x {name()}) *{name()} {{ x.{name()}(); {name()}().{name()}() }}", f"var {name()} = {name()}()",
            ),
            "rs": (
                f"use crate::{other}::{name()};", f"fn {name()}(x: {name()}) -> {name()} {{ use crate::{other}::{name()}; x.{name()}(); {name()}() }}",
                f"pub struct {name()} {{ {name()}: {name()} }}", f"mod {name()} {{ use {rng.choice(('super::*', f'super::{name()}'))}; fn {name()}(x: {name()}) {{ {name()}(); x.{name()}.{name()}() }} }}",
                f"type {name()} = Vec<{name()}>;", f"fn {name()}(x: Vec<{name()}>) -> Option<{name()}> {{ for y in x {{ y.{name()}(); y.{name()}.{name()}() }} assert!({name()}().{name()}()) }}",
                f"pub struct {name()};", f"fn {name()}(x: {name()}) {{ {name()}::{name()}(); x.{name()}().{name()}() }}", f"impl {name()} {{ fn {name()}(&self) {{ self.{name()}(); {name()}::{name()}() }} }}",
                f"impl {name()} for {name()} {{ fn {name()}(&self) {{}} }}", f"trait {name()} {{ fn {name()}(&self) {{}} }}",
            ),
            "java": (
                f"class {name()} extends {name()} {{ {name()} {name()}() {{ {name()}().{name()}(); }} void go({name()} x) {{ x.{name()}().{name()}(); }} }}",
                f"class {name()}<{name()}> {{ static {name()} {name()}; void go({name()} x) {{ x.{name()}.{name()}(); {name()}.{name()}.{name()}(); }} }}",
                f"class {name()} {{ {name()}[] {name()}; {name()}() {{ this(1); }} void go({name()} x) {{ for (var y : x.{name()}) y.{name()}(); x.{name()}()[0].{name()}(); }} }}",
                f"import {other.replace('/', '.')}.{name()};", f"interface {name()} {{ {name()} {name()}(); }}",
            ),
            "ts": (
                f"type {name()} = {name()}[]", f"function {name()}(x: {name()}[]): Map<string, {name()}> {{ for (const y of x) y.{name()}(); {name()}().map(z => z.{name()}.{name()}()) }}",
                f"{name()}.{name()} = function () {{ {name()}() }}", f"export default class {name()} {{ {name()}() {{}} }}", f"export {{{name()} as {name()}}}", f"export * from '../{other}'",
                f"import {name()} from '../{other}'", f"import {{{name()}}} from '../{other}'", f"export {{{name()}}} from '../{other}'",
                f"export class {name()} extends {name()} {{ {name()}(x: {name()}) {{ this.{name()}(); x.{name()}() }} }}", f"const {name()} = new {name()}()",
                f"export class {name()}<{name()}> {{ {name()}: {name()}; get {name()}(): {name()} {{ return null }} }}", f"function {name()}() {{}}\n{name()} = {name()}",
                f"function {name()}(x: {name()}) {{ x.{name()}.{name()}().{name()}() }}", f"function {name()}(): {name()} {{ {name()}().{name()}(); {name()}.{name()}() }}",
            ),
        }[language])  # fmt: skip

    return "".join(f"{line()}\n" for _ in range(rng.randint(1, 7)))


def said(files: dict[str, SourceFile]) -> dict[str, list[object]]:
    """All that the resolver says, by file."""
    found: dict[str, list[object]] = {uri: [] for uri in files}
    corpus = known(sorted((one for one in files.values() if one.module), key=lambda one: one.uri))
    for one in files.values():
        found[one.uri] += [documented(corpus, use.name) for use in one.references if use.kind == "documents"]
    for edge in resolve([one for one in files.values() if one.module]):
        found[edge.uri].append(edge)
    return found


@pytest.mark.parametrize("language", ["py", "go", "ts", "rs", "java"])
def test_no_edit_changes_the_names_of_a_file_that_it_does_not_touch(language: str) -> None:
    rng, left, some, ends = random.Random(7), 0, 0, {"py": "__init__.py", "go": "a.go", "ts": "index.ts", "rs": "mod.rs", "java": "A.java"}
    if language != "py":
        pytest.importorskip("tree_sitter", reason="needs the extra [code]")

    def more() -> str:
        return random_module(rng) if language == "py" else random_lines(rng, language)

    for _ in range(60):
        texts = {f"x/{name.replace('.', '/')}.{language}": more() for name in MODULES}
        texts |= {f"x/pkg/{ends[language]}": more(), "x/solo.py": "def alone():\n    return alone()\n"}
        files = {uri: parse(uri, text) for uri, text in texts.items()}
        files["x/a.md"] = parse_prose("x/a.md", "Use `Crate.load()` and `weigh` of `scales.Scale`.")
        before = said(files)
        for _ in range(12):
            uri = rng.choice(sorted(texts))
            old, texts[uri] = files[uri], rng.choice((more(), texts[uri] + more()))
            files[uri] = parse(uri, texts[uri])
            now, reached = said(files), touched([old], [files[uri]], files.values())
            for other in files.keys() - (files.keys() if reached is None else reached):
                assert now[other] == before[other], (texts, uri, other)
                left += 1
            some += reached is not None and len(reached) > 1 and now != before
            before = now
    assert left > 200 and some > 10  # files left alone, edits that reached others


# The edited file before and after, and a file that names something else then.
REACHES = {
    "private of Java": ("A.java", "class A { void before() {} }\n", "private void", "void", "B.java", "class B extends A { void go() { before(); } }\n"),
    "static of Java": ("A.java", "class A { void help() {} }\n", "static void", "void", "A2.java", "class Kid extends A { static class In { void go() { help(); } } }\n"),
    "exports of a module": ("lib/index.js", "function createApp() {}\n", "module.exports = createApp\nfunction", "function", "a.js", "const make = require('./lib')\nfunction go() { make() }\n"),
}  # fmt: skip


@pytest.mark.parametrize("case", REACHES)
def test_an_edit_reaches_the_files_whose_names_it_changes(case: str) -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    uri, text, here, there, other, uses = REACHES[case]
    for old, new in ((text, text.replace(there, here)), (text.replace(there, here), text)):
        files = {f"x/{name}": parse(f"x/{name}", one) for name, one in ((uri, old), (other, uses))}
        before, was = said(files)[f"x/{other}"], files[f"x/{uri}"]
        files[was.uri] = parse(was.uri, new)
        assert said(files)[f"x/{other}"] != before
        assert f"x/{other}" in touched([was], [files[was.uri]], files.values())


def test_settings_that_name_modules_reach_every_file() -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    code = parse("x/src/a.ts", "import { b } from '@b'\nfunction a() { b() }\n")
    files = {"x/src/a.ts": code, "x/src/b.ts": parse("x/src/b.ts", "export function b() {}\n")}
    plain, named = (parse_prose("x/tsconfig.json", f'{{"compilerOptions": {{"paths": {{"@{at}": ["src/b"]}}}}}}') for at in "cb")
    assert [[edge.target for edge in resolve([*files.values(), one]) if edge.kind == "calls"] for one in (plain, named)] == [[], ["x.src.b.b"]]
    for before, after in (([plain], [named]), ([], [named]), ([named], [])):
        assert touched(before, after, files.values()) is None
    assert touched([named], [named], [*files.values(), named]) == {"x/tsconfig.json"}


def grouped(files: dict[str, str]) -> Hierarchy:
    return cluster(texts_of([], {}), {}, plugged={"code": list(by_folder(files, ClusterParams()))})


def test_source_code_is_divided_by_folder_and_small_files_lie_together() -> None:
    names = [f"lab/pkg/net/tcp.py {n}" for n in range(6)] + [f"lab/pkg/net/udp.py {n}" for n in range(7)]
    names += [f"lab/pkg/store.py {n}" for n in range(8)] + ["lab/pkg/a.py 0", "lab/pkg/b.py 0", "lab/run.py 0"]
    files = {f"{at:032x}": name.partition(" ")[0] for at, name in enumerate(names)}
    assert SMALL == 3
    tree = grouped(files)
    titles = {tree.titles[one.id]: [tree.titles[id] for id in one.children] for one in tree.communities.values()}
    assert titles.keys() == {"pkg", "run.py", "pkg/net", "pkg/net/tcp.py", "pkg/net/udp.py", "pkg/store.py",
                             "pkg: a.py, b.py"}  # fmt: skip
    assert sorted(titles["pkg/net"]) == ["pkg/net/tcp.py", "pkg/net/udp.py"]
    more = {**files, "f" * 32: "lab/run.py"}
    after = grouped(more)
    assert len(tree.communities.keys() - after.communities.keys()) == 1  # of a longer file only its own


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("a") / "crates"
    body = "".join(f'def load_{n}(crate):\n    """Load crate number {n}."""\n    return crate\n\n\n' for n in range(200))
    files = {f"pkg/{name}.py": f'"""{text}"""\n{body}' for name, text in
             (("ships", "Ships that carry crates."), ("trains", "Trains of the harbour line."))}  # fmt: skip
    files["pkg/__init__.py"] = '"""Transport of crates by sea and rail."""\n' + body.replace("load_", "send_")
    files["pkg/bare.py"] = body.replace("load_", "drop_")
    write(folder, files)
    return index(folder, tmp_path_factory.mktemp("home"))


def test_a_report_on_source_code_says_what_a_folder_or_file_holds(large: Snapshot) -> None:
    reports = {row["title"]: row for row in large.rows("reports").to_pylist()}
    whole = reports["pkg"]
    assert whole["summary"].startswith("Transport of crates by sea and rail. [Data: Sources (")
    assert "Holds __init__.py, bare.py, ships.py, trains.py." in whole["summary"]
    assert "ships.py: Ships that carry crates." in whole["full_content"]
    file = reports["pkg/ships.py"]
    assert file["summary"].startswith("Ships that carry crates.") and "function load_" in file["summary"]
    assert "def load_0(crate) Load crate number 0." in file["full_content"]
    assert reports["pkg/bare.py"]["summary"].startswith("Defines function drop_")
    rows = large.rows("entities", "key = ':crates.pkg.bare'", ["description"]).to_pylist()
    assert rows == [{"description": "Module pkg.bare."}]  # and not the first lines


def test_a_mixed_repository_is_indexed_whatever_its_files_are(tmp_path: Path) -> None:
    """Notebooks, generated, vendored and minified files, other encodings, broken syntax, deep nesting."""
    folder = tmp_path / "mixed"
    image = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 3000}}
    stream = {"output_type": "stream", "name": "stdout", "text": ["41.2 tonnes\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Mass of crates\n", "Weighed with `measure_mass`."]},
        {"cell_type": "code", "source": "print(weigh_all(crates))\n", "outputs": [stream, image]},
    ]
    write(folder, {
        "src/scales.py": "def measure_mass(thing):\n    return 1\n",
        "nb/mass.ipynb": json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}),
        "nb/broken.ipynb": '{"cells": [',
        "gen/many.py": "".join(f"def f{n}(x):\n    return f{max(n - 1, 0)}(x)\n\n\n" for n in range(2000)),
        "web/chain.js": "a" + ".b()" * 9000 + ";\n", "web/one.min.js": "function gone(){}",
        "deep/paren.py": "x = " + "(" * 300 + "1" + ")" * 300 + "\n",
        "deep/sum.py": "x = " + "+".join(["a"] * 9000) + "\n",
        "bad/open.py": "def weigh(:\n  x = (\n", "bad/old.py": 'print "two"\n', "bad/tabs.py": "def a():\n\tif 1:\n        pass\n",
        "empty.py": "", "blank.py": "\n \n", "web/bundle.js": "var hold_all_crates = weigh_it(1);" * 700,
    })  # fmt: skip
    encoded = {"latin.py": ('# -*- coding: latin-1 -*-\ndef größe():\n    return 1\n', "latin-1"),
               "wide.py": ("def sixteen():\n    return 1\n", "utf-16")}  # fmt: skip
    for name, (text, encoding) in encoded.items():
        (folder / name).write_bytes(text.encode(encoding))
    snapshot = index(folder, tmp_path / "home")
    keys = set(snapshot.rows("entities")["key"].to_pylist())
    assert {"mixed.src.scales.measure_mass", "mixed.latin.größe", "mixed.wide.sixteen", "mixed.gen.many.f1999"} <= keys
    assert not any(key.endswith(("gone", "hold_all_crates")) for key in keys)
    settings = Settings(home=tmp_path / "home", roots=[str(folder)])
    assert not any(changes(snapshot.folder, snapshot.manifest, settings).values())
    rows = {row["uri"]: row["text"] for row in snapshot.rows("documents").to_pylist()}
    told = rows["mixed/nb/mass.ipynb"]
    assert "```python\nprint(weigh_all(crates))\n```\n\n```text\n41.2 tonnes\n```" in told and "iVBOR" not in told
    assert rows["mixed/nb/broken.ipynb"] == '{"cells": ['
    named = snapshot.rows("entities", "key = 'mixed.src.scales.measure_mass'", ["text_unit_ids"]).to_pylist()
    assert len(named[0]["text_unit_ids"]) == 2  # the definition and the notebook
