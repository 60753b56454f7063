"""Source code as a graph: symbols as entities, edges by four rules, the same after edits as from a fresh index."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.code.parse import parse, parse_prose
from graphrag_mcp.code.resolve import resolve
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.query.source import get_source
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.promises import doctor

FILES = {
    "pkg/__init__.py": '"""A package for crates."""\nfrom .core import Crate as Crate, weigh\n',
    "pkg/core.py": '''"""Crates and their weight."""
from . import scales


class Base:
    def close(self):
        """Close the crate."""


class Crate(Base):
    """A crate of mussels."""

    def open(self):
        self.close()
        return weigh(self)

    def seal(self):
        super().close()


def weigh(crate, unit="kg"):
    """Weigh `Crate.open` of a crate."""
    return scales.Scale().measure_mass(crate)
''',
    "pkg/scales.py": '''# Tobias Fenn asked Ines Calloway for this at Port Kell.
class Scale:
    def measure_mass(self, thing):
        return self.get(thing)

    def get(self, thing):
        return 1
''',
    "app.py": '''import pkg
from pkg import Crate
import logging


def main(item):
    crate = Crate()
    crate.open()
    pkg.weigh(crate)
    item.measure_mass(crate)
    item.get("x")
    logging.info("done")
''',
    "docs/guide.md": "# Guide\n\nA crate is opened with `Crate.open()` and weighed by pkg.core.weigh in the harbour of Port Kell.\n\nNobody opens a crate with get.\n",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def index(folder: Path, home: Path) -> Snapshot:
    settings = Settings(home=home, roots=[str(folder)])
    result = index_documents(home / "c", IndexRequest(paths=(str(folder),)), settings)
    assert result.status == "done" and not result.errors
    return open_snapshot(home / "c")


def edges(snapshot: Snapshot) -> set[tuple[str, str, str, float]]:
    rows = snapshot.rows("evidence").to_pylist()
    return {
        (row["keywords"], short(row["source_key"]), short(row["target_key"]), round(row["weight"], 2))
        for row in rows
        if row["keywords"]
    }


def short(key: str) -> str:
    return key.removeprefix(":").removeprefix("crates.")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("a") / "crates"
    write(folder, FILES)
    return index(folder, tmp_path_factory.mktemp("home"))


def test_each_of_the_four_rules_gives_its_certainty_and_nothing_is_guessed(snapshot: Snapshot) -> None:
    calls = {(source, target, weight) for kind, source, target, weight in edges(snapshot) if kind == "calls"}
    assert calls == {
        ("pkg.core.Crate.open", "pkg.core.weigh", 1.0),  # the same file
        ("pkg.core.Crate.open", "pkg.core.Base.close", 0.8),  # self, in a base
        ("pkg.core.Crate.seal", "pkg.core.Base.close", 0.8),  # super
        ("pkg.core.weigh", "pkg.scales.Scale", 0.9),  # an imported module
        ("pkg.core.weigh", "pkg.scales.Scale.measure_mass", 0.8),  # what a constructor gives
        ("pkg.scales.Scale.measure_mass", "pkg.scales.Scale.get", 0.8),
        ("app.main", "pkg.core.Crate", 0.9),  # through the package that imports it
        ("app.main", "pkg.core.Crate.open", 0.8),  # a variable of a known class
        ("app.main", "pkg.core.weigh", 0.9),
        ("app.main", "pkg.scales.Scale.measure_mass", 0.6),  # the only one of that name; `get` is too common
    }  # fmt: skip


def test_containment_imports_and_bases_have_their_direction(snapshot: Snapshot) -> None:
    found = {(kind, source, target) for kind, source, target, _ in edges(snapshot)}
    assert {
        ("inherits", "pkg.core.Crate", "pkg.core.Base"), ("contains", "pkg.core", "pkg.core.Crate"),
        ("contains", "pkg.core.Crate", "pkg.core.Crate.open"), ("imports", "pkg.core", "pkg.scales"),
        ("imports", "app", "pkg"), ("imports", "pkg", "pkg.core.weigh"), ("imports", "app", "pkg.core.Crate"),
    } <= found  # fmt: skip


def test_symbols_are_entities_of_their_own_with_signature_and_docstring(snapshot: Snapshot) -> None:
    keys = snapshot.rows("entities")["key"].to_pylist()
    assert len({short(key) for key in keys}) == len(keys)  # no name of prose beside its symbol
    rows = {short(row["key"]): row for row in snapshot.rows("entities").to_pylist()}
    weigh = rows["pkg.core.weigh"]
    assert (weigh["title"], weigh["type"]) == ("weigh", "function")
    assert weigh["description"] == 'def weigh(crate, unit="kg") Weigh `Crate.open` of a crate.'
    assert rows["pkg.core.Crate.open"]["title"] == "Crate.open" and rows["pkg.core"]["type"] == "module"
    assert rows["pkg.core.Crate"]["evidence"][0]["text"].startswith("class Crate(Base):")
    assert "port kell" in rows and "tobias fenn" not in rows  # names of documents, none of comments


def test_call_sites_are_exact(snapshot: Snapshot) -> None:
    texts = {row["id"]: row["text"] for row in snapshot.rows("text_units").to_pylist()}
    rows = [row for row in snapshot.rows("evidence").to_pylist() if row["keywords"] == "calls"]
    assert rows
    for row in rows:
        said = texts[row["text_unit_id"]][row["start"] : row["end"]]
        assert row["target_key"].rpartition(".")[2] in said and "\n" not in said


def test_documents_and_docstrings_name_symbols(snapshot: Snapshot) -> None:
    units = {row["id"]: row["text"] for row in snapshot.rows("text_units").to_pylist()}
    rows = {short(row["key"]): row for row in snapshot.rows("entities").to_pylist()}
    for name in ("pkg.core.Crate.open", "pkg.core.weigh"):
        assert any("# Guide" in units[id] for id in rows[name]["text_unit_ids"]), name
    assert not any("# Guide" in units[id] for id in rows["pkg.scales.Scale.get"]["text_unit_ids"])


STEPS: dict[str, dict[str, str | None]] = {
    "a definition elsewhere is renamed": {"pkg/scales.py": FILES["pkg/scales.py"].replace("measure_mass", "measure_load")},
    "a second definition of the only name": {"other.py": "def measure_mass(x):\n    return x\n"},
    "a file goes": {"pkg/scales.py": None},
    "a base gets the method": {"pkg/core.py": FILES["pkg/core.py"].replace("class Crate(Base)", "class Crate")},
    "lines above": {"pkg/core.py": "# one\n\n" + FILES["pkg/core.py"]},
    "a document names another": {"docs/guide.md": FILES["docs/guide.md"].replace("Crate.open()", "Scale.measure_mass")},
    "broken": {"pkg/core.py": "def weigh(:\n"},
    "only prose is left": {name: None for name in FILES if name.endswith(".py")},
}


@pytest.mark.parametrize("step", STEPS)
def test_after_an_edit_the_graph_is_that_of_a_fresh_index(step: str, tmp_path: Path) -> None:
    folder = tmp_path / "crates"
    write(folder, FILES)
    index(folder, tmp_path / "one")
    for name, text in STEPS[step].items():
        if text is None:
            (folder / name).unlink()
        else:
            write(folder, {name: text})
    settings = Settings(home=tmp_path / "one", roots=[str(folder)])
    index_documents(tmp_path / "one" / "c", IndexRequest(paths=(str(folder),), remove_missing=True), settings)
    after, fresh = open_snapshot(tmp_path / "one" / "c"), index(folder, tmp_path / "two")
    assert edges(after) == edges(fresh) and doctor(tmp_path / "one" / "c") == []
    assert digest(after) == digest(fresh)
    shutil.rmtree(tmp_path / "one")


GO_TYPES = {
    "b.go": "package g\nfunc (t *T) Going() {}\nfunc (t *T) Other() { t.Going() }\n",
    "c.go": "package g\nfunc f(x any) { x.Going() }\n",
}
OWNERS = {
    "renamed in Go": ("a.go", "package g\ntype T struct{}\n", "package g\ntype T2 struct{}\n"),
    "removed in Go": ("a.go", "package g\ntype T struct{}\ntype Z struct{}\n", "package g\ntype Z struct{}\n"),
    "of another kind in Go": ("a.go", "package g\ntype T struct{}\n", "package g\nfunc T() {}\n"),
    "renamed in Swift": ("a.swift", "class Foo {}\n", "class Foo2 {}\n"),
    "renamed in Rust": ("a.rs", "pub struct Foo;\n", "pub struct Foo2;\n"),
}  # fmt: skip


@pytest.mark.parametrize("step", OWNERS)
def test_members_in_other_files_outlive_what_owns_them(step: str, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    name, before, after = OWNERS[step]
    folder = tmp_path / "g"
    write(folder, {name: before, "b.swift": "extension Foo { func bee() {} }\n", **GO_TYPES})
    write(folder, {"b.rs": "trait Bar { fn bee(&self); }\nimpl Bar for Foo { fn bee(&self) {} }\n"})
    index(folder, tmp_path / "one")
    write(folder, {name: after})
    assert digest(index(folder, tmp_path / "one")) == digest(index(folder, tmp_path / "two"))
    write(folder, {"d.md": "`Going`\n"})
    assert digest(index(folder, tmp_path / "one")) == digest(index(folder, tmp_path / "three"))


def test_the_order_of_files_changes_no_edge() -> None:
    files = [parse(f"crates/{name}", text) for name, text in FILES.items()]
    known: list[Any] = [one for one in files if one is not None]
    assert resolve(known) == resolve(known[::-1]) and len(resolve(known)) > 20


def test_only_names_written_as_code_are_read_in_prose() -> None:
    text = "The open crate is `Crate` or `close`, run pkg.run or `weigh(x)`; see https://a.example.org/x.y and file a/b.py, e.g. this."
    file = parse_prose("d.md", text)
    assert file is not None
    names = [one.name for one in file.references]
    assert [text[one.start : one.end] for one in file.references] == names
    assert names == ["Crate", "pkg.run", "weigh"]


# ---- questions of an agent --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("b") / "crates"
    tests = "from pkg.core import weigh\n\n\ndef test_weigh():\n    assert weigh(1)\n"
    write(folder, FILES | {"tests/test_core.py": tests, "more.py": "def open(x):\n    return x\n\n\nclass Crate:\n    pass\n"})
    return index(folder, tmp_path_factory.mktemp("home"))


def walked(snapshot: Snapshot, start: str, **options: Any) -> list[tuple[str, int]]:
    result = explore_graph(snapshot, start, **options)
    titles = {node["id"]: node["title"] for node in result.nodes}
    back = options.get("direction") != "out"
    return [(titles[one["source" if back else "target"]], one["hops"]) for one in result.edges]


def test_who_calls_and_what_breaks_are_one_call_each(asked: Snapshot) -> None:
    assert walked(asked, "pkg.core.weigh", kinds=["calls"]) == [("Crate.open", 1), ("main", 1), ("test_weigh", 1)]
    assert sorted(walked(asked, "Scale.get", kinds=["impact"], hops=3)) == [
        ("Crate.open", 3), ("Scale.measure_mass", 1), ("main", 2), ("pkg", 3), ("test_weigh", 3), ("tests.test_core", 3),
        ("weigh", 2),
    ]  # fmt: skip
    result = explore_graph(asked, "pkg.core.weigh", kinds=["calls"])
    line = next(one for one in result.text.splitlines() if "Crate.open" in one)
    assert "crates/pkg/core.py:15 `weigh(self)`" in line and "certainty" not in line
    assert "certainty 0.9: crates/app.py:9 `pkg.weigh(crate)`" in result.text
    assert all(cited.line_start == cited.line_end for cited in result.citations) and result.citations


def test_what_it_uses_what_implements_and_which_tests(asked: Snapshot) -> None:
    assert walked(asked, "pkg.core.weigh", direction="out") == [("Scale", 1), ("Scale.measure_mass", 1)]
    assert walked(asked, "Base", kinds=["inherits"], direction="in") == [("Crate", 1)]
    assert walked(asked, "pkg.scales.Scale.get", kinds=["tests"]) == [("test_weigh", 3)]
    assert "Nothing of this kind" in explore_graph(asked, "app.main", kinds=["calls"]).text


def test_the_text_of_a_definition_is_its_own_lines(tmp_path: Path) -> None:
    folder = tmp_path / "crates"
    body = "".join(f"        total_{n} = self.measure_mass({n})\n" for n in range(80))
    wide = f"import functools\n\n\nclass Wide:\n    def before(self):\n        return 0\n\n    @functools.cache\n    def weigh_all(self):\n{body}        return total_7\n\n    def after(self):\n        return 2\n"
    write(folder, FILES | {"wide.py": wide, "big.py": "class Big:\n" + "".join(f"    def m{n}(self):\n        return {n}\n\n" for n in range(400))})
    snapshot = index(folder, tmp_path / "home")
    named = get_source(snapshot, ["Wide.weigh_all"])
    entity = get_entity(snapshot, "Wide.weigh_all")
    assert f'get_source(ids=["{entity.id}"])' in entity.hint
    assert entity.id in explore_graph(snapshot, "Wide.weigh_all", kinds=["calls"]).hint
    assert named.text == get_source(snapshot, [entity.id]).text and len(named.sources) == 1
    assert f"[{entity.id}] " in named.text and "(crates/wide.py:8-90)" in named.text and "@functools.cache" in named.text
    assert "before" not in named.text and "after" not in named.text and "total_79" in named.text
    assert named.sources[0]["id"] == entity.id and named.sources[0]["line_start"] == 8
    around = get_source(snapshot, [entity.id], around=1).text
    assert "def before" in around and "def after" in around and "total_79" in around
    assert all(one["id"].startswith("t") for one in get_source(snapshot, ["Big"], max_tokens=20_000).sources)
    assert get_source(snapshot, ["weigh", "Crate"]).text.count("crates/pkg/core.py:") == 2
    cut = get_source(snapshot, [entity.id], max_tokens=400)
    assert cut.truncated and entity.id in cut.next_call


def test_a_short_name_of_several_symbols_gives_candidates(asked: Snapshot) -> None:
    result = get_entity(asked, "open")
    assert result.state == "not_found" and {one["title"] for one in result.candidates} == {"Crate.open", "open"}
    assert get_entity(asked, "Crate.open()").title == get_entity(asked, "pkg/core.py::Crate.open").title == "Crate.open"
    assert get_entity(asked, "Crate").state == "not_found" and get_entity(asked, "core.Crate").type == "class"


def test_an_entity_says_where_it_is_defined_its_signature_and_its_callers(asked: Snapshot) -> None:
    text = get_entity(asked, "pkg.core.weigh").text
    assert 'def weigh(crate, unit="kg") Weigh `Crate.open` of a crate.' in text and "(e" in text
    assert "## Used by" in text and "app.py:9 `pkg.weigh(crate)`" in text and "## Uses" in text
    module = get_entity(asked, "pkg.core").text  # a report of a module: what it defines, who uses it
    assert "Crates and their weight." in module and re.search(r"\] Crate \(class\): crates/pkg/core.py:\d", module)
    assert "imports weigh" in module  # few imports are a line each
    assert "## In (1)\n- [" in module and re.search(r"contains pkg.core: crates/pkg/core.py:1 \[t", module)


def test_the_outline_of_a_source_file_is_its_definitions(asked: Snapshot) -> None:
    text = list_documents(asked, document="crates/pkg/core.py").text
    assert "class Crate(Base), lines 10-18: A crate of mussels." in text
    assert "  - [" in text and "def seal(self), lines 17-18" in text
    number = next(line for line in text.splitlines() if "def seal" in line).partition("[")[2].partition("]")[0]
    assert "super().close()" in get_source(asked, [number]).text


STORES = {
    "svc.py": "from typing import Protocol\n\n\nclass Store(Protocol):\n    def get(self, k): ...\n    def drop_all(self): ...\n\n\n"
    "class Svc:\n    def __init__(self, store: Store):\n        self.store = store\n\n    def go(self):\n        return self.store.get('x')\n",
    "mem.py": "class Mem:\n    def get(self, k):\n        return 1\n\n    def drop_all(self):\n        pass\n\n\nclass Half:\n    def get(self, k):\n        return 1\n\n\n"
    "def loose(x):\n    x.drop_all()\n    x.get(1)\n",
    "tests/test_svc.py": "from mem import Mem\nfrom svc import Svc\n\n\ndef test_go():\n    assert Svc(Mem()).go()\n",
}
STORES_OF_JAVA = {
    "Store.java": "interface Store { int get(); }\n", "Svc.java": "class Svc { Store store; Svc(Store s) { store = s; } int go() { return store.get(); } }\n",
    "MemStore.java": "class MemStore implements Store { public int get() { return 1; } }\n",
    "Half.java": "class Half { int go() { return 2; } }\n", "test/SvcTest.java": "class SvcTest { void testGo() { new Svc(new MemStore()).go(); } }\n",
}  # fmt: skip


def test_what_breaks_goes_on_through_what_implements(tmp_path: Path) -> None:
    write(tmp_path / "a", STORES)
    snapshot = index(tmp_path / "a", tmp_path / "home")
    assert walked(snapshot, "Store", kinds=["inherits"]) == [("Mem", 1)]
    assert ("Svc.go", 1) in walked(snapshot, "Mem.get", kinds=["impact"])
    assert walked(snapshot, "Mem.get", kinds=["calls"]) == [] and walked(snapshot, "Half.get", kinds=["impact"]) == []
    text = explore_graph(snapshot, "Mem.get", kinds=["impact"]).text
    assert "calls Store.get, certainty 0.28: a/svc.py:14" in text
    assert "a/mem.py:16" in text.partition("## Not resolved, same name")[2]
    assert {("Mem.get", 1), ("Svc.go", 1)} <= set(walked(snapshot, "Store.get", kinds=["impact"]))
    assert ("test_go", 2) in walked(snapshot, "Mem.get", kinds=["tests"])
    other = explore_graph(snapshot, "Mem", kinds=["impact"]).text.partition("## Not resolved, same name")[2]
    assert "Calls of the names of members: drop_all 1, get 1" in other


def test_tests_are_found_behind_constructors_and_interfaces(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter", reason="needs the extra [code]")
    write(tmp_path / "a", STORES_OF_JAVA)
    snapshot = index(tmp_path / "a", tmp_path / "home")
    assert walked(snapshot, "MemStore.get", kinds=["tests"]) == [("SvcTest.testGo", 2)]
    assert walked(snapshot, "Svc.go", kinds=["tests"]) == [("SvcTest.testGo", 1)] and walked(snapshot, "Half.go", kinds=["tests"]) == []
