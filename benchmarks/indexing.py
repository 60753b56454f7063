"""Keyless indexing speed: CPU seconds per stage, passages per CPU second, whole process, memory, an
unchanged run.

    python benchmarks/indexing.py [SET ...]      (default: musique100 hotpot_train100 together)

The rate is passages over the CPU seconds of the index stages, clustering (communities) shown apart.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpora


def run(command: list[str]) -> tuple[dict, float, float, int]:
    """Output of `--json`, CPU seconds, wall seconds, peak RSS in MB of one whole process."""
    import os
    import resource
    import subprocess
    import time

    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # as installed
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        json.loads(done.stdout.strip().splitlines()[-1]),
        cpu,
        time.perf_counter() - began,
        after.ru_maxrss // 1024,
    )


def main() -> None:
    names = sys.argv[1:] or ["musique100", "hotpot_train100"]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name in names:
            corpora.write_out(name, work / "files")
        folders = [str(work / "files"), "--home", str(work / "home")]
        command = [sys.executable, "-m", "graphrag_mcp", "index", *folders, "--json"]
        result, cpu, wall, rss = run(command)
        stages = result["seconds"]
        own = sum(value for stage, value in stages.items() if stage not in ("start", "communities"))
        passages = result["counts"]["passages"]
        print(f"{' + '.join(names)}: {result['counts']}")
        print(
            "CPU seconds per stage: "
            + ", ".join(f"{stage} {value:.2f}" for stage, value in stages.items())
        )
        rate = f"{passages / own:,.0f} passages per CPU second"
        print(f"{rate} over the stages ({own:.2f} s), start and clustering apart")
        print(f"whole process: {cpu:.1f} s CPU, {wall:.1f} s wall, peak {rss} MB")
        _, cpu, wall, rss = run(command)
        print(
            f"the same command again: {cpu:.2f} s CPU, {wall:.2f} s wall, peak {rss} MB (maximum of both runs)"
        )


if __name__ == "__main__":
    main()
