"""Keyless indexing beside release 0.1.0: CPU and wall seconds of whole processes, of a first run and
of one where nothing changed; CPU seconds of the stages; and the CPU as a multiple of a fixed
yardstick (yardstick.py), which is recorded in indexing.json.

    python benchmarks/indexing.py [SET ...] [--runs N] [--alone] [--record]

SET: of ../shared/data (default: musique100 hotpot_train100 together). The release is taken from the
tag v0.1.0 of this repository into a folder of its own and run by the same interpreter, so it uses
the same libraries. Both run in turn, N times each; the best of each counts, since other processes
only add to it. `--alone`: without the release. `--record`: writes indexing.json.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import corpora
import yardstick

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_suffix(".json")
TAG, COMMIT = "v0.1.0", "67ac5455"  # the commit where the tag is missing


@dataclass(frozen=True)
class Cost:
    """Of one process: CPU and wall seconds, and the peak of memory in MB of all up to now."""

    cpu: float
    wall: float
    peak: int

    def __str__(self) -> str:
        return f"{self.cpu:.1f} s CPU, {self.wall:.1f} s wall"


def run(command: list[str], package: Path) -> tuple[dict[str, Any], Cost]:
    """Result (`--json`) and cost of a command with the package of this folder."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPATH"] = str(package)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ, cwd=package)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout.strip().splitlines()[-1]), Cost(cpu, wall, after.ru_maxrss // 1024)


def release(folder: Path) -> Path:
    """The package of release 0.1.0, from the history of this repository."""
    for name in (TAG, COMMIT):
        done = subprocess.run(["git", "-C", str(ROOT), "archive", name, "graphrag_mcp", "prompts"], capture_output=True)
        if done.returncode == 0:
            tarfile.open(fileobj=io.BytesIO(done.stdout)).extractall(folder, filter="data")
            return folder
    raise SystemExit(f"No {TAG} and no {COMMIT} in this repository: fetch its tags, or use --alone")


def measured(package: Path, files: Path, home: Path) -> tuple[dict[str, Any], Cost, Cost]:
    """The result of a first run, its cost, and that of a run where nothing changed."""
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(files), "--home", str(home), "--json"]
    result, first = run(command, package)
    return result, first, run(command, package)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=["musique100", "hotpot_train100"])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    names = options.sets or ["musique100", "hotpot_train100"]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name in names:
            corpora.write_out(name, work / "files")
        texts = [file.read_text("utf-8") for file in sorted((work / "files").rglob("*")) if file.is_file()]
        packages = {"now": ROOT}
        if not options.alone:
            packages = {"0.1.0": release(work / "release"), **packages}
        best: dict[str, tuple[Cost, Cost]] = {}
        unit = yardstick.seconds(texts, work)
        for turn in range(options.runs):
            for name, package in packages.items():
                result, *costs = measured(package, work / "files", work / f"home-{name}-{turn}")
                before = best.get(name, costs)
                best[name] = tuple(min(pair, key=lambda one: one.cpu) for pair in zip(before, costs, strict=True))
            unit = min(unit, yardstick.seconds(texts, work))
    stages = ", ".join(f"{stage} {value:.2f}" for stage, value in result["seconds"].items())
    print(f"{' + '.join(names)}: {result['counts']}\nCPU seconds of stages: {stages}")
    for name, (first, again) in best.items():
        print(f"{name}: {first}, peak {first.peak} MB; nothing changed: {again}")
    first, again = best["now"]
    ratio = {"index": round(first.cpu / unit, 1), "nothing changed": round(again.cpu / unit, 1)}
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    print(f"yardstick {unit:.3f} s; in yardsticks: {ratio}, recorded {known}")
    if "0.1.0" in best:
        old, unchanged = best["0.1.0"]
        print(
            f"beside 0.1.0: {first.cpu / old.cpu:.2f} times its CPU, {first.wall / old.wall:.2f} times its wall; "
            f"nothing changed: {again.cpu / unchanged.cpu:.2f} times its CPU"
        )
    if options.record:
        RECORD.write_text(json.dumps(ratio, indent=1) + "\n")


if __name__ == "__main__":
    main()
