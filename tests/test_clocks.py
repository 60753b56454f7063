"""No test measures time: on a busy machine it would fail on a good tree. Speed is measured in `benchmarks/`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = re.compile(r"\b(perf_counter|process_time|thread_time|monotonic|timeit|default_timer|clock_gettime)(_ns)?\b")
ALLOWED = {"workload.py", "test_clocks.py"}  # limits that fail what would never end


def clocks(text: str) -> list[str]:
    return [found[0] for found in CLOCKS.finditer(text)]


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_test_reads_a_clock(path: Path) -> None:
    assert path.name in ALLOWED or not clocks(path.read_text("utf-8"))


@pytest.mark.parametrize("line", ["began = time.perf_counter()", "from time import monotonic_ns", "import timeit"])
def test_a_clock_would_be_found(line: str) -> None:
    assert clocks(line)
