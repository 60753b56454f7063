"""benchmarks/retrieval.py: what it says without data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.command import ROOT, clean_environment


def test_without_a_set_it_fails_with_the_reason(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "retrieval.py"), "--data", str(tmp_path)],
        env=clean_environment(), capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 1 and f"no set was found: {tmp_path}" in done.stderr
