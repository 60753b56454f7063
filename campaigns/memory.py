"""Memory by text: every family of tests/support/dense_texts.py at several sizes, each indexed by a process of its own.

    python campaigns/memory.py [part of a name ...] [--sizes 1,3,11,20] [--limit 1000] [--stop 8000]

For each case: the most memory that the process and its children held together (MB, Linux only), CPU seconds, and what
the run said of itself: documents, text units, entities, relationships, notes and errors. A process over `--stop` MB is
ended. Exit status 1 when a case held more than `--limit` MB, crashed, or said nothing of a text.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support import dense_texts, hostile_files
from tests.support.command import clean_environment

KINDS = ("documents_total", "text_units", "passages", "entities", "relationships", "communities")


def one(name: str, megabytes: float, work: Path, stop: int) -> dict[str, object]:
    """Write one text, index it, and say what it took."""
    suffix, data = dense_texts.make(name, int(megabytes * 1e6))
    folder, home = work / "in", work / "home"
    folder.mkdir()
    (folder / f"{name}.{suffix}").write_bytes(data)
    del data
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--home", str(home), "--json"]
    used = sum(os.times()[2:4])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=ROOT, env=clean_environment(), **pipes)
    most = hostile_files.watch(process.pid)
    threading.Thread(target=_end, args=(process, stop), daemon=True).start()
    out, err = process.communicate()
    record: dict[str, object] = {"name": name, "size": megabytes, "MB": most() // 1_000_000}
    record["seconds"] = round(sum(os.times()[2:4]) - used, 1)
    try:
        result = json.loads(out)
    except ValueError:
        return record | {"wrong": f"ended with status {process.returncode}: {err.decode()[-200:].strip()}"}
    counts = " ".join(f"{kind} {result['counts'].get(kind, 0):,}" for kind in KINDS)
    said = [error["reason"] for error in result["errors"]] + [result.get("hint", "")]
    record["said"] = f"{counts} {'; '.join(filter(None, said))}"
    accounted = len(result["errors"]) + sum(result["skipped"].values()) + result["counts"]["added"]
    return record | {"wrong": "" if accounted else "said nothing of the text"}


def _end(process: subprocess.Popen[bytes], stop: int) -> None:
    """End a process that holds too much for this machine."""
    while process.poll() is None:
        if hostile_files.resident(process.pid) > stop * 1_000_000:
            process.kill()
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sizes", default="1,3,11,20")
    parser.add_argument("--limit", type=int, default=1000, help="MB that a case may hold")
    parser.add_argument("--stop", type=int, default=8000, help="MB at which a process is ended")
    arguments = parser.parse_args()
    exact = set(arguments.names) & dense_texts.FAMILIES.keys()
    parts = [part for part in arguments.names if part not in exact]
    names = [name for name in dense_texts.FAMILIES if name in exact or any(part in name for part in parts)
             or not arguments.names]  # fmt: skip
    worst, wrong = 0, 0
    for name in names:
        for size in map(float, arguments.sizes.split(",")):
            with tempfile.TemporaryDirectory(prefix="memory-", ignore_cleanup_errors=True) as work:
                record = one(name, size, Path(work), arguments.stop)
            over = "too much memory" if int(record["MB"]) > arguments.limit else ""
            fault = "; ".join(filter(None, [str(record["wrong"]), over]))
            worst, wrong = max(worst, int(record["MB"])), wrong + bool(fault)
            size_and_cost = f"{size:5g} MB {record['MB']:6} MB {record['seconds']:7} s"
            print(f"{name:22} {size_and_cost}  {record.get('said', '')} {fault and '! ' + fault}", flush=True)
    print(f"{len(names)} families; worst {worst} MB; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
