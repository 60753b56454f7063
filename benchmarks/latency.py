"""Latency beside release 0.1.0: the first search of a command, the start of the server, and every kind
of search in a warm server.

    python benchmarks/latency.py [SET ...] [--alone] [--questions N]

SET: of ../shared/data (default: musique100 hotpot_train100 together). Each package indexes the sets for
itself. CPU seconds are of whole processes, the best of three; CPU milliseconds are of the search functions
of this checkout in process, without the protocol; wall milliseconds go through a real MCP client over stdio, where both
servers run and answer each question in turn, so that other work on the machine slows both.
`--alone`: without the release.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

sys.path.insert(0, str(Path(__file__).parent))
import corpora
from indexing import ROOT, release, run

TOOLS = ("local_search", "global_search", "search_text")
STARTS = 3
# Prints the CPU milliseconds of each search of a warm process: [tool, milliseconds] as JSON.
IN_PROCESS = """
import json, sys, time
from pathlib import Path
from graphrag_mcp import App, global_search, local_search
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.settings import load

home, questions = sys.argv[1], json.loads(sys.stdin.read())
snapshot = App(load({}, home=Path(home))).snapshot("")
for search in (local_search, global_search, search_text):
    search(snapshot, "warm up")
    for question in questions:
        began = time.process_time()
        search(snapshot, question)
        print(json.dumps([search.__name__, 1000 * (time.process_time() - began)]))
"""


def environment(package: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(package)}


def quantiles(values: list[float]) -> str:
    values = sorted(values)
    median, high = statistics.median(values), values[int(len(values) * 0.95)]
    return f"p50 {median:6.1f} ms, p95 {high:6.1f} ms"


def in_process(package: Path, home: Path, questions: list[str]) -> dict[str, list[float]]:
    done = subprocess.run(
        [sys.executable, "-c", IN_PROCESS, str(home)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
        env=environment(package),
        cwd=package,
    )
    found: dict[str, list[float]] = {}
    for name, milliseconds in map(json.loads, done.stdout.splitlines()):
        found.setdefault(name, []).append(milliseconds)
    return found


async def started(server: StdioServerParameters) -> float:
    """Wall seconds from the start of the process to the answer of `tools/list`."""
    began = time.perf_counter()
    async with Client(server) as client:
        await client.list_tools()
        return time.perf_counter() - began


async def over_stdio(
    servers: dict[str, StdioServerParameters], questions: list[str]
) -> dict[tuple[str, str], list[float]]:
    """Wall milliseconds of each call, by tool and package."""
    found: dict[tuple[str, str], list[float]] = {}
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(server)) for name, server in servers.items()}
        for tool in TOOLS:
            for client in clients.values():
                await client.call_tool(tool, {"query": "warm up"})
            for question in questions:
                for name, client in clients.items():
                    began = time.perf_counter()
                    await client.call_tool(tool, {"query": question})
                    taken = 1000 * (time.perf_counter() - began)
                    found.setdefault((tool, name), []).append(taken)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=["musique100", "hotpot_train100"])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        for name in options.sets:
            corpora.write_out(name, work / "files")
        asked = [row["question"] for name in options.sets for row in corpora.questions(name)]
        asked = asked[:: max(1, len(asked) // options.questions)][: options.questions]
        packages = {"now": ROOT}
        if not options.alone:
            packages = {"0.1.0": release(work / "release"), **packages}
        command = [sys.executable, "-m", "graphrag_mcp"]
        homes = {name: work / f"home-{name}" for name in packages}
        for name, package in packages.items():
            run([*command, "index", str(work / "files"), "--home", str(homes[name]), "--json"], package)
        servers = {
            name: StdioServerParameters(
                command=command[0],
                args=[*command[1:], "serve", "--home", str(homes[name])],
                env=environment(package),
                cwd=str(package),
            )
            for name, package in packages.items()
        }
        first: dict[str, list[float]] = {}
        starts: dict[str, list[float]] = {}
        for _ in range(STARTS):
            for name, package in packages.items():
                search = [*command, "search", asked[0], "--home", str(homes[name]), "--json"]
                first.setdefault(name, []).append(run(search, package)[1].cpu)
                starts.setdefault(name, []).append(anyio.run(started, servers[name]))
        for name in packages:
            print(
                f"{name}: first search of a command {min(first[name]):.2f} s CPU; "
                f"from start to tools/list {min(starts[name]):.2f} s wall"
            )
        medians: dict[tuple[str, str, str], float] = {}

        def shown(tool: str, name: str, clock: str, values: list[float]) -> None:
            medians[tool, clock, name] = statistics.median(values)
            print(f"{tool:14} {name:6} {clock}: {quantiles(values)}")

        for (tool, name), values in anyio.run(over_stdio, servers, asked).items():
            shown(tool, name, "over stdio, wall", values)
        for tool, values in in_process(ROOT, homes["now"], asked).items():
            shown(tool, "now", "in process, CPU", values)
        for (tool, clock, name), median in medians.items():
            if name == "now" and (old := medians.get((tool, clock, "0.1.0"))):
                print(f"{tool} {clock}: {median / old:.2f} times the p50 of 0.1.0")


if __name__ == "__main__":
    main()
