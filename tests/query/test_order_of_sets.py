"""Results are the same whatever the order in which Python goes through a set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest
from tests.support.command import clean_environment

SAMPLE = Path(__file__).resolve().parents[2] / "docs" / "sample"
SEARCHES = """
import sys
from pathlib import Path
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.tables import open_snapshot

snapshot = open_snapshot(Path(sys.argv[1]))
for question in ("Why was the tidal array moved out of the Narrows?", "Who first timed the back-run?", "Tobias Fenn"):
    print(global_search(snapshot, question, max_tokens=2000).text, local_search(snapshot, question).text)
"""


@pytest.mark.slow
def test_results_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    index_documents(tmp_path / "kb", IndexRequest(paths=(str(SAMPLE),)), Settings())
    results = {
        subprocess.run(
            [sys.executable, "-c", SEARCHES, str(tmp_path / "kb")],
            env=clean_environment(PYTHONHASHSEED=str(seed), PYTHONUTF8="1"), capture_output=True, encoding="utf-8", check=True,
        ).stdout
        for seed in range(1, 5)
    }  # fmt: skip
    assert len(results) == 1 and all(len(result) > 5_000 for result in results)
