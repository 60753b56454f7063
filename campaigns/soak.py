"""Does a server that runs for long keep what it took? Memory, descriptors, threads and files under
mixed calls.

    python campaigns/soak.py [--minutes 60] [--json]

One real server over stdio, given what hosts give it all day: searches, look-ups, walks, small texts
indexed and indexed again, DRIFT sessions, calls that are cancelled, calls that are wrong. Samples
its resident memory, open descriptors, threads and the files of its corpora, the first fifth being
its warm-up. Exit status 1 when something grew: memory by more than 15 % and 40 MB, descriptors by
more than 8, threads by more than 4, those of the database's own pool by more than 32, files by more
than 25 for each text that was indexed within the time that generations stay readable (ten minutes):
so many are rightly there, and how many texts that were depends on how busy the machine was. Files
are judged only in runs whose warm-up is longer than that. Records of jobs and sessions are kept for
days and not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "docs" / "sample"
EVERY = 4.0  # seconds between samples; less in a short run
KEPT = 600.0 + 60  # seconds for which a generation stays, and until the next one clears up
TEXTS = 40  # inline texts that are written again and again, so that the corpus does not grow
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("local_search", {"query": "What did the court conclude about Captain Renwick?"}),
    ("search_text", {"query": "eelgrass"}),
    ("global_search", {"query": "What are the main themes?"}),
    ("get_entity", {"id_or_name": "Corrie Head"}),
    ("explore_graph", {"start": "Corrie Head"}),
    ("local_search", {"query": "回流与海草", "response_format": "detailed"}),
    ("get_source", {"ids": ["d1", "d2"]}),
    ("graph_status", {}),
    ("explore_graph", {"start": "Corrie Head", "goal": "Tobias Fenn"}),
    ("get_source", {"ids": ["t99999"]}),
    ("local_search", {"query": "", "max_tokens": 300}),
)


def server_of(home: Path) -> int:
    """The process of the server that was started with this home."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if (
                int(entry.name) != os.getpid()
                and f"GRAPHRAG_MCP_HOME={home}".encode() in (entry / "environ").read_bytes()
            ):
                if b"serve" in (entry / "cmdline").read_bytes():
                    return int(entry.name)
    raise SystemExit("the server's process was not found (this needs /proc)")


def sample(process: int, home: Path) -> dict[str, float]:
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    values = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(("VmRSS", "Threads"))
    }
    ours = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):
            ours += (task / "comm").read_text("utf-8").startswith("python")
    return {
        "rss_mb": int(values["VmRSS"]) / 1024,
        "threads": ours,
        "native_threads": int(values["Threads"]) - ours,
        "descriptors": len(list(Path(f"/proc/{process}/fd").iterdir())),
        "files": sum(len(names) for _, _, names in os.walk(home / "corpora")),
    }


async def one_round(client: Client, number: int, counts: dict[str, int]) -> None:
    """What one agent does in a moment; every kind comes round."""

    async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        counts["errors" if result.is_error else "calls"] += 1
        return dict(result.structured_content or {})

    tool, arguments = READS[number % len(READS)]
    await call(tool, {"corpus": "sample", **arguments} if tool != "graph_status" else arguments)
    if number % 12 == 3:  # a call that its host gives up
        with anyio.move_on_after(0.01):
            await client.call_tool("local_search", {"query": f"lamp {number}", "corpus": "sample"})
        counts["cancelled"] += 1
    if number % 40 == 7:
        text = {
            "id": f"note{number // 40 % TEXTS}",
            "text": f"Keeper {number % 17} Aldous Finch met Mary Somerville at Bell Rock on day {number}.",
        }
        await call("index_documents", {"texts": [text], "corpus": "notes", "wait_seconds": 30})
        counts["indexed"] += 1
    if number % 60 == 11:
        walk = await call(
            "drift_search", {"query": "How did the survey find the sill?", "corpus": "sample", "max_tokens": 900}
        )
        for _ in range(2):
            given = {
                "session_id": walk["session_id"],
                "node_id": walk["open_node"],
                "answer": f"By radar {number} [t1].",
                "score": 50,
                "max_tokens": 900,
            }
            walk = await call("drift_step", given)
        await call("drift_step", {"session_id": walk["session_id"], "finish": True, "max_tokens": 900})
        counts["walks"] += 1


async def soak(seconds: float, home: Path) -> dict[str, Any]:
    environment = {"GRAPHRAG_MCP_HOME": str(home), "GRAPHRAG_MCP_ROOTS": str(SAMPLE), "PYTHONPATH": str(ROOT)}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "graphrag_mcp", "serve"], env=environment, cwd=str(SAMPLE)
    )
    counts = {"calls": 0, "errors": 0, "cancelled": 0, "indexed": 0, "walks": 0}
    samples: list[dict[str, float]] = []
    written: list[float] = []  # when a text was indexed
    async with Client(command) as client:
        await client.call_tool("index_documents", {"paths": [str(SAMPLE)], "corpus": "sample", "wait_seconds": 50})
        process, began, number, last = server_of(home), time.monotonic(), 0, 0.0
        while (passed := time.monotonic() - began) < seconds:
            await one_round(client, number, counts)
            written += [time.monotonic()] * (counts["indexed"] - len(written))
            number += 1
            if passed - last >= min(EVERY, seconds / 20):
                last = passed
                recent = sum(time.monotonic() - one < KEPT for one in written)
                samples.append({**await asyncio.to_thread(sample, process, home), "recent": recent})
                samples[-1]["files"] /= max(recent, 1)
    return judged(samples, counts, seconds)


def judged(samples: list[dict[str, float]], counts: dict[str, int], seconds: float) -> dict[str, Any]:
    """The warm state, the last fifth, and what grew between them."""
    fifth = max(1, len(samples) // 5)
    warm, end = samples[fifth : 2 * fifth] or samples[:1], samples[-fifth:]

    def middle(some: list[dict[str, float]], name: str) -> float:
        return round(statistics.median(one[name] for one in some), 1)

    state = {name: (middle(warm, name), middle(end, name)) for name in samples[0]}
    files = 25 if seconds / 5 > KEPT else math.inf
    allowed = {
        "native_threads": 32,
        "rss_mb": max(40.0, 0.15 * state["rss_mb"][0]),
        "threads": 4,
        "descriptors": 8,
        "files": files,
        "recent": math.inf,
    }
    course = {name: [round(one[name]) for one in samples[:: max(1, len(samples) // 12)]] for name in samples[0]}
    grown = [name for name, (before, after) in state.items() if after - before > allowed[name]]
    return {
        "seconds": round(seconds),
        **counts,
        "samples": len(samples),
        **{name: list(pair) for name, pair in state.items()},
        "course": course,
        "grown": grown,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--json", action="store_true", help="one line")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(soak, given.minutes * 60, Path(folder) / "home")
    print(json.dumps(found, indent=None if given.json else 1))
    sys.exit(bool(found["grown"]))


if __name__ == "__main__":
    main()
