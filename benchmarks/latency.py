"""Latency: from spawning the server to its first replies, and of every kind of search in a warm
server process.

    python benchmarks/latency.py [SET ...]      (default: musique100 hotpot_train100 together)

Two clocks: wall milliseconds through a real MCP client over stdio, and CPU milliseconds of the
search functions in process (the protocol, the client and the noise of the machine left out).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

sys.path.insert(0, str(Path(__file__).parent))
import corpora


def quantiles(values: list[float]) -> str:
    values = sorted(values)
    return (
        f"p50 {statistics.median(values):6.1f} ms   p95 {values[int(len(values) * 0.95)]:6.1f} ms"
    )


async def start(server: StdioServerParameters) -> tuple[float, float]:
    began = time.perf_counter()
    async with Client(server) as client:
        hello = time.perf_counter() - began
        await client.list_tools()
        return hello * 1000, (time.perf_counter() - began) * 1000


async def over_stdio(server: StdioServerParameters, questions: list[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    async with Client(server) as client:
        for tool in ("local_search", "global_search", "search_text"):
            await client.call_tool(tool, {"query": "warm up"})
            for question in questions:
                began = time.perf_counter()
                await client.call_tool(tool, {"query": question})
                found.setdefault(tool, []).append((time.perf_counter() - began) * 1000)
    return found


def in_process(home: Path, questions: list[str]) -> dict[str, list[float]]:
    from graphrag_mcp import App, global_search, local_search
    from graphrag_mcp.query.text_search import search_text
    from graphrag_mcp.settings import load

    app = App(load({}, home=home))
    began = time.perf_counter()
    snapshot = app.snapshot("")
    print(f"open the index: {(time.perf_counter() - began) * 1000:.1f} ms")
    searches: dict[str, Callable] = {
        "local_search": local_search,
        "global_search": global_search,
        "search_text": search_text,
    }
    found: dict[str, list[float]] = {}
    for name, search in searches.items():
        search(snapshot, "warm up")
        for question in questions:
            cpu = time.process_time()
            search(snapshot, question)
            found.setdefault(name, []).append((time.process_time() - cpu) * 1000)
    return found


def main() -> None:
    names = sys.argv[1:] or ["musique100", "hotpot_train100"]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name in names:
            corpora.write_out(name, work / "files")
        home = work / "home"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "graphrag_mcp",
                "index",
                str(work / "files"),
                "--home",
                str(home),
                "--json",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        asked = [row["question"] for name in names for row in corpora.questions(name)]
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "graphrag_mcp", "serve", "--home", str(home)],
            env=dict(os.environ),
        )
        starts = [anyio.run(start, server) for _ in range(7)]
        print("spawn -> initialize: " + quantiles([hello for hello, _ in starts]))
        print("spawn -> tools/list: " + quantiles([listed for _, listed in starts]))
        for tool, values in anyio.run(over_stdio, server, asked).items():
            print(f"{tool:14} over stdio, wall: {quantiles(values)}")
        for tool, values in in_process(home, asked).items():
            print(f"{tool:14} in process, CPU:  {quantiles(values)}")


if __name__ == "__main__":
    main()
