"""Files made to do harm, as large as an attacker would make them, each indexed by a process of its
own; then the races.

    python campaigns/hostile.py [part of a name ...] [--swaps 1000]

For each of the cases of tests/support/hostile_files.py: CPU seconds (and those of the clock), the most
memory that the process and its parser held together (Linux), and whether it was accounted for. Then
each swap of tests/sources/test_escape.py, 1,000 times. Ends with the worst of each, and with exit
status 1 when one crashed, took over 30 seconds a file or over 1 GB, or was silent.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support import hostile_files
from tests.support.command import clean_environment

# Reading a file may take 30 seconds; starting, writing and describing the index come on top. A few
# cases are millions of words, which are indexed: their time is that of any text of that length.
SECONDS, STARTING, MEMORY = 30.0, 10.0, 1_000_000_000
MANY = ("crowd", *(name for name in hostile_files.CASES if name.startswith("many-names")))
MADE = (
    "import sys; from pathlib import Path; from tests.support import hostile_files as files; "
    "print(files.write(Path(sys.argv[1]), sys.argv[3] == 'True', [sys.argv[2]]))"
)


def one(name: str, work: Path, heavy: bool = True, planted: str = "") -> dict[str, object]:
    """Make a case and index its folder. `planted`: a program that runs first in the process that
    indexes, to see that a fault is found.
    """
    folder, home = work / "in", work / "home"
    made = [sys.executable, "-c", MADE, str(folder), name, str(heavy)]
    there = int(subprocess.check_output(made, cwd=ROOT, text=True))
    program = ["-m", "graphrag_mcp"]
    if planted:
        begin = "import runpy; runpy.run_module('graphrag_mcp', run_name='__main__')"
        program = ["-c", f"{planted}\n{begin}"]
    command = [sys.executable, *program, "index", str(folder), "--home", str(home), "--json"]
    began, used = time.monotonic(), sum(os.times()[2:4])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=ROOT, env=clean_environment(), **pipes)
    most = hostile_files.watch(process.pid)
    out, err = process.communicate(timeout=3600)
    wall, seconds, held = time.monotonic() - began, sum(os.times()[2:4]) - used, most()
    record: dict[str, object] = {
        "name": name,
        "seconds": round(seconds, 1),
        "wall": round(wall, 1),
        "MB": held // 1_000_000,
        "said": "",
    }
    try:
        result = json.loads(out)
    except ValueError:
        return record | {"wrong": f"crashed with status {process.returncode}: {err.decode()[-300:]}"}
    said = [error["reason"] for error in result["errors"]] + [f"{n} {why}" for why, n in result["skipped"].items()]
    said += [f"{result['counts']['added']} documents, {result['counts']['text_units']} text units"]
    record["said"] = "; ".join(said)
    accounted = len(result["errors"]) + sum(result["skipped"].values()) + result["counts"]["added"]
    wrong = [] if accounted >= there else [f"{there} entries and {accounted} accounted for"]
    wrong += [] if process.returncode in (0, 1) else [f"status {process.returncode}"]
    wrong += [] if seconds < SECONDS + STARTING or name in MANY else ["too slow"]
    wrong += [] if record["MB"] < MEMORY // 1_000_000 else ["too much memory"]  # type: ignore[operator]
    return record | {"wrong": ", ".join(wrong)}


def races(swaps: int) -> list[str]:
    """Each swap so often, while another thread reads; what was wrong."""
    import pytest

    tests = [str(ROOT / "tests/sources/test_escape.py"), "-k", "swap", f"--rootdir={ROOT}", "-p", "no:cacheprovider"]
    code = pytest.main(["-q", *tests], plugins=[_More(swaps)])
    return [] if code == 0 else [f"races ended with status {int(code)}"]


class _More:
    def __init__(self, swaps: int) -> None:
        self.swaps = swaps

    def pytest_collection_modifyitems(self, items: list) -> None:
        for item in items:
            item.module.SWAPS = self.swaps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only cases whose name holds one of these")
    parser.add_argument("--swaps", type=int, default=1000)
    options = parser.parse_args()
    names = [
        name
        for name in (*hostile_files.CASES, *hostile_files.THINGS)
        if not options.names or any(part in name for part in options.names)
    ]
    records = []
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            records.append(record := one(name, Path(work)))
        figures = f"{record['seconds']:>6} s ({record['wall']:>5}) {record['MB']:>5} MB"
        print(f"{figures}  {record['wrong'] or 'ok':<8} {name!r}: {str(record['said'])[:110]}", flush=True)
    wrong = [f"{record['name']!r}: {record['wrong']}" for record in records if record["wrong"]]
    if options.swaps and not options.names:
        wrong += races(options.swaps)
    if records:
        slow, large = (max(records, key=lambda record: record[key]) for key in ("seconds", "MB"))
        print(f"{len(records)} cases; slowest {slow['name']!r}: {slow['seconds']} s")
        print(f"most memory {large['name']!r}: {large['MB']} MB")
    print("\n".join(wrong) or "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
