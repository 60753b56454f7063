"""Source code: what a question names is defined once and used everywhere; the definition comes first."""

from __future__ import annotations

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import rank
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest

FILLER = "\n".join(f"    total_{at} = weigh(crate_{at}, scale)  # one more crate of the load" for at in range(8))
FILES = {
    "harbour.py": f"import math\n\n\ndef berth_ship(ship, quay, *, tugs=2):\n{FILLER}\n    return total_0\n",
    "uses.py": f"def plan(quay):\n{FILLER}\n    return berth_ship(1, quay) or berth_ship(0, quay)\n",
    "pier.rs": f"pub struct Bollard {{\n    load: u32,\n}}\n// {FILLER}\n",
    "rope.rs": "fn tie(b: &Bollard) -> Bollard { let c: Bollard = Bollard::of(b); c.pull(Bollard::MOST); c }\n",
    "notes.md": "# Node.js and the pier\n\nThe struct Bollard is for ropes. A Bollard, two bollards.\n\nWho calls berth_ship today?\n",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder, home = tmp_path_factory.mktemp("code"), tmp_path_factory.mktemp("home")
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    index_documents(home / "c", IndexRequest(paths=(str(folder),)), Settings(home=home, roots=[str(folder)]))
    return open_snapshot(home / "c")


@pytest.mark.parametrize(
    ("question", "file"),
    [("Where is berth_ship defined?", "harbour.py"), ("show me the struct Bollard in the code", "pier.rs")],
)
def test_the_definition_comes_before_its_uses(snapshot: Snapshot, question: str, file: str) -> None:
    result = local_search(snapshot, question, max_tokens=2_000)
    assert result.citations[0].uri.endswith(file)
    first, second, *_ = rank.retrieve(snapshot, question).passages
    assert first.total > second.total


def test_only_source_code_defines_anything(snapshot: Snapshot) -> None:
    found = rank.retrieve(snapshot, "show me the struct Bollard in the code").passages
    titles = {row["id"]: row["title"] for row in snapshot.rows("passages", "", ["id", "title"]).to_pylist()}
    assert titles[found[0].id] == "pier.rs"
