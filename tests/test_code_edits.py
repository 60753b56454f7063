"""An edit of source code: what is resolved again, communities by folder, and reports by rule."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.code.parse import parse
from graphrag_mcp.code.resolve import Edge, affected, resolve
from graphrag_mcp.code.symbols import SourceFile, dumped
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index import pipeline
from graphrag_mcp.index.communities import SMALL, cluster, texts_of
from graphrag_mcp.index.documents import Cancelled
from graphrag_mcp.query.lookup import get_entity
from graphrag_mcp.store.tables import Snapshot
from tests.test_code_graph import FILES, index, write

NAMES = ("weigh", "open_lid", "seal", "Crate", "Scale", "Lid", "count_all", "ship_it")


def file_of(turn: random.Random, number: int) -> str:
    """A module with imports under other names, classes with bases, annotated results and calls."""
    lines = []
    for _ in range(turn.randrange(3)):
        other, name = turn.randrange(5), turn.choice(NAMES)
        alias = f" as {turn.choice(NAMES)}" if turn.random() < 0.4 else ""
        lines.append(turn.choice([f"from .m{other} import {name}{alias}", f"from . import m{other}",
                                  f"from .m{other} import *"] if turn.random() < 0.2 else
                                 [f"from .m{other} import {name}{alias}"]))  # fmt: skip
    if turn.random() < 0.4:
        lines.append(f"{turn.choice(NAMES)} = {turn.choice(NAMES)}{turn.choice(('()', ''))}")
    for name in turn.sample(NAMES, 3):
        if name[0].isupper():
            base = f"({turn.choice(('Crate', 'Scale', 'Lid'))})" if turn.random() < 0.4 else ""
            lines += [f"class {name}{base}:", f"    def {turn.choice(NAMES[:3])}(self):",
                      f"        return self.{turn.choice(NAMES[:3])}()"]  # fmt: skip
        else:
            back = f" -> {turn.choice(('Crate', 'Scale'))}" if turn.random() < 0.5 else ""
            lines += [f"def {name}(thing){back}:", f"    x = {turn.choice(NAMES)}(thing)",
                      f"    x.{turn.choice(NAMES[:3])}()", f"    m{number}.{turn.choice(NAMES)}(x)"]  # fmt: skip
    return "\n".join(lines) + "\n"


def parsed(texts: dict[str, str]) -> dict[str, SourceFile]:
    return {uri: parse(uri, text) for uri, text in texts.items()}


def by_file(edges: list[Edge]) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = {}
    for one in edges:
        found.setdefault(one.uri, []).append(one)
    return found


def touched(before: dict[str, SourceFile], now: dict[str, SourceFile], uri: str) -> set[str] | None:
    facts = {name: dumped(file, []) for name, file in now.items() if name != uri}
    return affected({uri: before[uri]}, {uri: now[uri]}, list(now.values()), facts)


@pytest.mark.parametrize("seed", range(8))
def test_files_that_an_edit_does_not_touch_have_the_edges_they_had(seed: int) -> None:
    turn, partly = random.Random(seed), 0
    for _ in range(60):
        texts = {f"x/p/m{number}.py": file_of(turn, number) for number in range(5)}
        texts["x/p/__init__.py"] = "from .m0 import *\n"
        uri = f"x/p/m{turn.randrange(5)}.py"
        lines = texts[uri].splitlines()
        if turn.random() < 0.5:
            lines += file_of(turn, 9).splitlines()[-3:]
        else:
            at = turn.randrange(len(lines))
            lines[at] = lines[at].replace(turn.choice(NAMES), turn.choice(NAMES))
        before, now = parsed(texts), parsed(texts | {uri: "\n".join(lines) + "\n"})
        found = touched(before, now, uri)
        if found is None:
            continue
        assert uri in found
        old, new = by_file(resolve(before.values())), by_file(resolve(now.values()))
        assert [one for one in now if one not in found and old.get(one) != new.get(one)] == []
        assert by_file(resolve(now.values(), found)) == {one: new[one] for one in new if one in found}
        partly += len(found) < len(now)
    assert partly > 5


def test_an_edit_inside_a_function_touches_its_file_alone() -> None:
    texts = {f"x/{name}": text for name, text in FILES.items() if name.endswith(".py")}
    before = parsed(texts)
    edited = texts["x/pkg/core.py"].replace("return weigh(self)", "return None")
    assert touched(before, parsed(texts | {"x/pkg/core.py": edited}), "x/pkg/core.py") == {"x/pkg/core.py"}
    renamed = texts["x/pkg/core.py"].replace("def seal", "def close_lid")
    found = touched(before, parsed(texts | {"x/pkg/core.py": renamed}), "x/pkg/core.py")
    assert found == {"x/pkg/core.py"}  # nobody else says seal or close_lid
    moved = texts["x/pkg/core.py"].replace("def weigh", "def weigh_all")
    found = touched(before, parsed(texts | {"x/pkg/core.py": moved}), "x/pkg/core.py")
    assert found == {"x/pkg/core.py", "x/pkg/__init__.py", "x/app.py"}


def test_a_run_that_ends_between_two_batches_leaves_no_old_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch takes a definition away, the second is never written: the next run knows."""
    folder, prose = tmp_path / "crates", {f"docs/n{n}.md": f"# Note {n}\n\nCrate {n}." for n in range(4)}
    write(folder, FILES)
    index(folder, tmp_path / "home")
    (folder / "pkg/scales.py").unlink()
    write(folder, prose)
    monkeypatch.setattr(pipeline, "BATCH_PASSAGES", 2)
    written = pipeline.documents.commit_batch
    calls: list[bool] = []

    def once(*args: object, **named: bool) -> None:
        calls.append(bool(named.get("last")))
        if named.get("last"):
            raise Cancelled
        written(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.documents, "commit_batch", once)
        with pytest.raises(AssertionError):
            index(folder, tmp_path / "home")
    assert calls[0] is False and calls[-1] is True
    monkeypatch.undo()
    again = index(folder, tmp_path / "home")
    assert digest(again) == digest(index(folder, tmp_path / "fresh"))


def test_source_code_is_divided_by_folder_and_small_files_lie_together() -> None:
    names = [f"lab/pkg/net/tcp.py {n}" for n in range(6)] + [f"lab/pkg/net/udp.py {n}" for n in range(7)]
    names += [f"lab/pkg/store.py {n}" for n in range(8)] + ["lab/pkg/a.py 0", "lab/pkg/b.py 0", "lab/run.py 0"]
    files = {f"{at:032x}": name.partition(" ")[0] for at, name in enumerate(names)}
    assert SMALL == 3
    tree = cluster(texts_of([], {}), {}, files=files)
    titles = {tree.titles[one.id]: [tree.titles[id] for id in one.children] for one in tree.communities.values()}
    assert titles.keys() == {"pkg", "run.py", "pkg/net", "pkg/net/tcp.py", "pkg/net/udp.py", "pkg/store.py",
                             "pkg: a.py, b.py"}  # fmt: skip
    assert sorted(titles["pkg/net"]) == ["pkg/net/tcp.py", "pkg/net/udp.py"]
    more = {**files, "f" * 32: "lab/run.py"}
    after = cluster(texts_of([], {}), {}, files=more)
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
    assert whole["summary"].startswith("Transport of crates by sea and rail. [Data: Entities (")
    assert "Holds __init__.py, bare.py, ships.py, trains.py." in whole["summary"]
    assert "ships.py: Ships that carry crates." in whole["full_content"]
    file = reports["pkg/ships.py"]
    assert file["summary"].startswith("Ships that carry crates.") and "function load_" in file["summary"]
    assert "def load_0(crate) Load crate number 0." in file["full_content"]
    assert reports["pkg/bare.py"]["summary"].startswith("Defines function drop_")
    rows = large.rows("entities", "key = 'crates.pkg.bare'", ["description"]).to_pylist()
    assert rows == [{"description": "Module pkg.bare."}]  # and not the first lines


def test_an_entity_of_a_package_or_file_shows_what_it_does(large: Snapshot) -> None:
    package = get_entity(large, "pkg").text
    assert "Transport of crates by sea and rail." in package and "trains.py: Trains of the harbour line." in package
    assert "Ships that carry crates." in get_entity(large, "pkg/ships.py").text


def test_the_command_follows_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crates"
    write(folder, FILES)
    home = ["--home", str(tmp_path / "home"), "--corpus", "c"]
    assert main(["index", str(folder), *home]) == 0
    capsys.readouterr()
    assert main(["explore", "Scale.measure_mass", "--kind", "calls", "--direction", "in", *home]) == 0
    told = capsys.readouterr().out
    assert "pkg/core.py:23 `scales.Scale().measure_mass(crate)`" in told and "Scale.get" not in told


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
        "deep/sum.py": "x = " + "+".join(["a"] * 9000) + "\n", "deep/list.json": "[" * 9000 + "]" * 9000,
        "bad/open.py": "def weigh(:\n  x = (\n", "bad/old.py": 'print "two"\n', "bad/tabs.py": "def a():\n\tif 1:\n        pass\n",
        "empty.py": "",
    })  # fmt: skip
    encoded = {"latin.py": ('# -*- coding: latin-1 -*-\ndef größe():\n    return 1\n', "latin-1"),
               "wide.py": ("def sixteen():\n    return 1\n", "utf-16")}  # fmt: skip
    for name, (text, encoding) in encoded.items():
        (folder / name).write_bytes(text.encode(encoding))
    snapshot = index(folder, tmp_path / "home")
    keys = set(snapshot.rows("entities")["key"].to_pylist())
    assert {"mixed.src.scales.measure_mass", "mixed.latin.größe", "mixed.wide.sixteen", "mixed.gen.many.f1999"} <= keys
    assert not any(key.endswith("gone") for key in keys)
    rows = {row["uri"]: row["text"] for row in snapshot.rows("documents").to_pylist()}
    told = rows["mixed/nb/mass.ipynb"]
    assert "```python\nprint(weigh_all(crates))\n```\n\n```text\n41.2 tonnes\n```" in told and "iVBOR" not in told
    assert rows["mixed/nb/broken.ipynb"] == '{"cells": ['
    named = snapshot.rows("entities", "key = 'mixed.src.scales.measure_mass'", ["text_unit_ids"]).to_pylist()
    assert len(named[0]["text_unit_ids"]) == 2  # the definition and the notebook
