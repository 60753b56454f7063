"""What is left of an index when no plug-in is registered: every document is prose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.command import clean_environment

SCRIPT = """
import json, sys
from pathlib import Path
from graphrag_mcp import plugins

plugins.PLUGGED.clear()
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

folder, home = Path(sys.argv[1]), Path(sys.argv[2])
corpus = home / "corpora" / "c"
index_documents(corpus, IndexRequest(paths=(str(folder),)), Settings(home=home, roots=(folder,)))
(folder / "b.py").write_text("def weigh_again(crate):\\n    return 3\\n")
index_documents(corpus, IndexRequest(paths=(str(folder),)), Settings(home=home, roots=(folder,)))
snapshot = open_snapshot(corpus)
print(json.dumps({
    "tables": sorted(snapshot.manifest.tables),
    "found": local_search(snapshot, "weigh the crate").text,
    "types": snapshot.rows("entities", columns=["type"])["type"].to_pylist(),
    "walk": explore_graph(snapshot, "weigh", kinds=["calls"]).state,
    "loaded": [name for name in sys.modules if name.startswith("graphrag_mcp.code")],
}))
"""


def test_without_a_plug_in_source_code_is_plain_text_and_its_package_is_not_imported(tmp_path: Path) -> None:
    folder = tmp_path / "crates"
    folder.mkdir()
    (folder / "a.py").write_text("def weigh(crate):\n    return crate.mass\n\n\ndef main():\n    weigh(1)\n", "utf-8")
    (folder / "b.py").write_text("from a import weigh\n\n\ndef weigh_again(crate):\n    return weigh(crate)\n", "utf-8")
    (folder / "notes.md").write_text("# Crates\n\nTobias Fenn told Ines Calloway to weigh the crate.\n", "utf-8")
    given = [sys.executable, "-c", SCRIPT, str(folder), str(tmp_path / "home")]
    done = subprocess.run(given, env=clean_environment(), capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["loaded"] == [] and "code" not in said["tables"]
    assert "def weigh" in said["found"] and "Tobias Fenn" in said["found"]
    assert not {"function", "module"} & set(said["types"])
    assert said["walk"] == "not_found"
