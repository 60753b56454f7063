"""Source code in other languages than Python: what is defined, imported, inherited and called."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="needs the extra [code]")

from graphrag_mcp.code import grammars
from graphrag_mcp.code.languages import SUFFIXES
from graphrag_mcp.code.parse import parse
from graphrag_mcp.code.resolve import resolve

FULL = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))

# One file in each language of which definitions, imports and bases are read.
PARTS: dict[str, tuple[str, list[str], list[str]]] = {
    "a.c": ('#include "b.h"\nstruct crate { int n; };\nstatic int weigh(int x) { return x; }\nchar *name(void) { return 0; }\n', ["crate", "weigh", "name"], []),
    "a.cpp": ("namespace lab {\nclass Base {};\nclass Crate : public Base {\n public:\n  int open();\n};\nint Crate::open() { return 1; }\n}\n", ["lab.Base", "lab.Crate", "lab.Crate.open"], ["Base"]),
    "A.cs": ("using Lab.Core;\nnamespace Lab { interface IOpen {} class Crate : IOpen { void Open() {} } }\n", ["IOpen", "Crate", "Crate.Open"], ["IOpen"]),
    "a.rb": ("require_relative 'b'\nmodule Lab\n  class Crate < Base\n    include Comparable\n    def open; end\n    def self.make; end\n  end\nend\n", ["Lab", "Lab.Crate", "Lab.Crate.open", "Lab.Crate.make"], ["Base", "Comparable"]),
    "a.php": ("<?php\nnamespace Lab;\nuse Lab\\Core\\Base;\nclass Crate extends Base implements Open { function open() {} }\nfunction weigh() {}\n", ["Crate", "Crate.open", "weigh"], ["Base", "Open"]),
    "a.kt": ("import lab.Base\nclass Crate(val n: Int) : Base(), Open {\n  fun open() {}\n}\nfun weigh() = 1\n", ["Crate", "Crate.open", "weigh"], ["Base", "Open"]),
    "a.scala": ("import lab.{Base, Open}\nclass Crate extends Base with Open {\n  def open(): Int = 1\n}\nobject Main { def weigh = 2 }\n", ["Crate", "Crate.open", "Main", "Main.weigh"], ["Base", "Open"]),
    "a.swift": ("import Foundation\nprotocol Open {}\nclass Crate: Base, Open {\n  func open() -> Int { return 1 }\n}\nextension Crate { func seal() {} }\n", ["Open", "Crate", "Crate.open", "Crate.seal"], ["Base", "Open"]),
}  # fmt: skip


@pytest.mark.parametrize("language", FULL)
def test_definitions_imports_bases_and_calls(language: str) -> None:
    parsed = [parse(f"lab/{name}", text) for name, text in FULL[language]["files"].items()]
    assert None not in parsed
    found = {(one.kind, one.source.removeprefix(":").removeprefix("lab").strip("."), one.target.removeprefix(":").removeprefix("lab.")) for one in resolve(parsed)}
    told = {f"{kind}: {source} -> {target}" for kind, source, target in found}
    assert set(FULL[language]["edges"]) - told == set()
    known = {file.key(one.name) for file in parsed for one in file.symbols}
    assert all(one.source in known and one.target in known for one in resolve(parsed))


@pytest.mark.parametrize("name", PARTS)
def test_definitions_and_bases(name: str) -> None:
    text, wanted, bases = PARTS[name]
    file = parse(f"lab/x/{name}", text)
    assert file is not None
    assert list(dict.fromkeys(one.name.removeprefix(file.module + ".") for one in file.symbols[1:])) == wanted
    assert [one.name for one in file.references if one.kind == "inherits"] == bases
    for one in file.symbols[1:]:
        assert one.short in text[one.start : one.end] and one.signature and one.parent
    if "import" in text or "use " in text or "require" in text or "#include" in text:
        assert file.imports or name == "a.swift"


def test_comments_above_a_definition_are_its_description() -> None:
    file = parse("lab/a.ts", "/**\n * Opens a crate.\n *\n * @param x what\n */\nexport function open(x: number): void {\n}\n")
    assert file is not None
    assert (file.symbols[1].doc, file.symbols[1].signature) == ("Opens a crate.", "export function open(x: number): void")


def test_broken_syntax_and_other_encodings_give_what_can_be_recognised() -> None:
    file = parse("lab/a.go", "package a\n\nfunc good() {}\n\nfunc broken( {\n\nfunc also() { good() }\n")
    assert file is not None and "lab.good" in [one.name for one in file.symbols]
    text = "// größe 😀\nfunction f() { return '😀' }\nfunction g() { f() }\n"
    file = parse("lab/a.js", text)
    assert file is not None
    assert [text[one.start : one.end] for one in file.references if one.kind == "calls"] == ["f()"]
    assert text[file.symbols[2].start : file.symbols[2].end] == "function g() { f() }"
    assert parse("lab/b.js", "\x00\ufffe \ud800 function f( {") is not None


def test_a_file_of_fifty_thousand_lines_is_read_in_steps_that_grow_with_it() -> None:
    text = "".join(f"function f{at}() {{\n  return f{at - 1}(1)\n}}\n\n" for at in range(12_500))
    file = parse("lab/long.js", text)
    assert file is not None and len(file.symbols) == 12_501 and len(file.references) == 12_499
    assert file.references[-1].inside == "lab.long.f12499"


def test_every_language_has_its_query_and_its_grammar() -> None:
    for language in set(SUFFIXES.values()):
        assert grammars._query(language) is not None, language


def test_without_the_extra_other_languages_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    grammars._query.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    assert parse("lab/none.go", "package a\nfunc f() {}\n") is None
    assert parse("lab/none.py", "def f(): pass\n") is not None
    grammars._query.cache_clear()
