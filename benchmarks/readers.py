"""Documents read beside release 0.1.0 in one run: seconds, memory, and how far the texts agree.

    python benchmarks/readers.py FOLDER --release PYTHON [--suffix pdf] [--worst 10]

PYTHON: the interpreter of an environment with `graphrag-mcp[docs]` 0.1.0. Each file is read by one and
then by the other, in their parser processes with their limits and without OCR, so both share the load of
the machine. Words: those of both texts as bags; `agreement` is the share of words that both have, twice
over the sum of both. Only files that both read count for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = re.compile(r"<!-- page \d+ -->")  # as 0.1.0 marks pages
WORKER = """
import json, resource, sys, time
try:
    from graphrag_mcp.sources import read as parsers
except ImportError:
    from graphrag_mcp.index import parsers
for line in sys.stdin:
    path = line.rstrip("\\n")
    with open(path, "rb") as file:
        data = file.read()
    began, text, error = time.perf_counter(), "", ""
    try:
        text = "\\n".join(getattr(one, "text", "") for one in parsers.parse(data, path.rpartition(".")[2].lower()))
    except Exception as reason:
        error = str(reason) or type(reason).__name__
    print(json.dumps({"wall": time.perf_counter() - began, "text": text, "error": error}), flush=True)
parsers.close()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss // 1024}), flush=True)
"""


@dataclass
class Reader:
    """A process that reads files by one release, and what it gave."""

    python: str
    package: Path | None = None
    texts: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    walls: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        environ = {**os.environ, "GRAPHRAG_MCP_OCR": "off"}
        environ.pop("PYTHONPATH", None)
        if self.package is not None:
            environ["PYTHONPATH"] = str(self.package)
        self.process = subprocess.Popen(
            [self.python, "-P", "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )

    def read(self, path: Path) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        said = self._said()
        self.walls[path.name] = said["wall"]
        if said["error"]:
            self.errors[path.name] = said["error"]
        else:
            self.texts[path.name] = said["text"]

    def end(self) -> dict[str, Any]:
        """CPU seconds and peak of memory in MB of its parser processes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._said()

    def _said(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", PAGE.sub(" ", text).casefold()))


def agreement(one: str, other: str) -> float:
    ours, theirs = words(one), words(other)
    total = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / total if total else 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--release", required=True)
    parser.add_argument("--suffix", default="pdf")
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    files = sorted(options.folder.glob(f"*.{options.suffix}"))
    now, before = Reader(sys.executable, ROOT), Reader(options.release)
    for path in files:
        for reader in (now, before):
            reader.read(path)
    for name, reader in (("0.1.0", before), ("now", now)):
        used = reader.end()
        characters = sum(map(len, reader.texts.values()))
        print(
            f"{name}: {len(reader.texts)} of {len(files)} files read, {characters / 1e6:.1f} million characters, "
            f"{used['cpu']:.0f} s CPU, {sum(reader.walls.values()):.0f} s wall, longest "
            f"{max(reader.walls.values()):.1f} s, {used['peak']} MB"
        )
    both = sorted(now.texts.keys() & before.texts.keys())
    shares = {name: agreement(now.texts[name], before.texts[name]) for name in both}
    ranked = sorted(both, key=lambda name: shares[name])
    if ranked:
        print(
            f"words: agreement {sum(shares.values()) / len(shares):.3f} on average, {shares[ranked[len(ranked) // 2]]:.3f} "
            f"median, below 0.9 in {sum(share < 0.9 for share in shares.values())} of {len(both)} files"
        )
    for name in ranked[: options.worst]:
        print(f"  {shares[name]:.3f} {name}: {len(now.texts[name])} and {len(before.texts[name])} characters")
    for name in sorted(now.errors.keys() | before.errors.keys()):
        if options.worst and (name in now.errors) != (name in before.errors):
            print(f"  {name}: now {now.errors.get(name, 'read')}; 0.1.0 {before.errors.get(name, 'read')}")
    slow = sorted(now.walls, key=lambda name: now.walls[name], reverse=True)[: options.worst]
    for name in slow:
        print(f"  {now.walls[name]:.2f} s and {before.walls[name]:.2f} s: {name}")


if __name__ == "__main__":
    main()
