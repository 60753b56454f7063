"""Source code: an edit, communities by folder, and reports by rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index import pipeline
from graphrag_mcp.index.communities import SMALL, cluster, texts_of
from graphrag_mcp.index.documents import Cancelled
from graphrag_mcp.query.lookup import get_entity
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
