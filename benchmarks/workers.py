"""Serving on several cores: 50 clients that call mixed tools over HTTP, with 1 and with 2 workers.

    python benchmarks/workers.py [--documents 3000] [--clients 50] [--workers 1 2] [--seconds 30]
                                 [--home DIR]

The documents are those of large.py. Each client has a connection and an MCP session of its own and
calls one tool after another, in a fixed mixture; the client is plain HTTP, because it runs on the
same cores. Per number of workers: calls a second, p50 and p99 in milliseconds, errors, CPU time of
the server's processes per call, which other programs do not change, and their memory. Both servers run at the same time and are measured in turns, so that
other programs on the machine slow both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import large

TURN = 5.0  # seconds that one server is measured at a time
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}


class Caller:
    """One client: one connection, one session."""

    def __init__(self, port: int, number: int, words: list[str]) -> None:
        self.port, self.session, self.words = port, "", words
        self.draw = random.Random(number)

    async def connect(self) -> None:
        """A new connection for the same session: the server closes those that are idle for 5 s."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)

    async def open(self) -> None:
        await self.connect()
        await self.ask({"id": 1, "method": "initialize", "params": HELLO})
        await self.ask({"method": "notifications/initialized"})

    async def ask(self, message: dict) -> tuple[int, bytes]:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        session = f"Mcp-Session-Id: {self.session}\r\n" if self.session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{session}"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        said = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        if found := re.search(r"mcp-session-id: (\S+)", said, re.IGNORECASE):
            self.session = found[1]
        length = re.search(r"content-length: (\d+)", said, re.IGNORECASE)
        if length:
            return int(said[9:12]), await self.reader.readexactly(int(length[1]))
        text = b""
        while size := int(await self.reader.readline(), 16):
            text += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return int(said[9:12]), text

    async def call(self) -> bool:
        """One call of the mixture; False when it gave an error."""
        one, other = self.draw.choice(self.words), self.draw.choice(self.words)
        tool, arguments = self.draw.choices(
            [
                ("local_search", {"query": f"Who signed the treaty with {one} and {other}?"}),
                ("search_text", {"query": f"{one} ledger survey"}),
                ("get_entity", {"name": one}),
                ("global_search", {"query": f"What connects {one} with the others?"}),
                ("drift_search", {"query": f"What became of {one} and {other}?"}),
            ],
            (40, 30, 15, 10, 5),
        )[0]
        message = {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        status, text = await self.ask(message)
        return status == 200 and b'"isError":true' not in text


async def turn(callers: list[Caller], seconds: float, found: list[float]) -> int:
    """All clients call for so long; the errors."""
    for caller in callers:
        caller.writer.close()
        await caller.connect()
    end, errors = time.perf_counter() + seconds, 0

    async def one(caller: Caller) -> None:
        nonlocal errors
        while (began := time.perf_counter()) < end:
            errors += not await caller.call()
            found.append(time.perf_counter() - began)

    await asyncio.gather(*map(one, callers))
    return errors


def started(home: Path, workers: int, log: Path) -> tuple[subprocess.Popen, int]:
    command = [sys.executable, "-m", "graphrag_mcp", "serve", "--http", "--port", "0"]
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            [*command, "--home", str(home), "--workers", str(workers), "--tools", "all"],
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    while not (said := re.search(rb"listening on http://[\d.]+:(\d+)", log.read_bytes())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    return process, int(said[1])


def family(process: int) -> list[str]:
    """A process and its children."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [str(process), *children]


def busy(process: int) -> float:
    """Seconds of CPU that a process and its children have taken."""
    ticks = 0
    for one in family(process):
        said = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(said[11]) + int(said[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """Megabytes of a process and its children; pages that they share are counted once."""
    kilobytes = 0
    for one in family(process):
        said = Path(f"/proc/{one}/smaps_rollup").read_text()
        kilobytes += int(re.search(r"^Pss:\s+(\d+)", said, re.MULTILINE)[1])
    return kilobytes / 1000


async def measure(
    servers: dict[int, tuple[subprocess.Popen, int]], clients: int, seconds: float, words: list[str]
) -> dict[int, tuple[list[float], float, int, float]]:
    callers = {
        workers: [Caller(port, number, words) for number in range(clients)] for workers, (_, port) in servers.items()
    }
    for several in callers.values():
        await asyncio.gather(*(caller.open() for caller in several))
        await turn(several, 3.0, [])
    times: dict[int, list[float]] = {workers: [] for workers in servers}
    took, errors = dict.fromkeys(servers, 0.0), dict.fromkeys(servers, 0)
    cpu = {workers: -busy(process.pid) for workers, (process, _) in servers.items()}
    for _ in range(max(1, round(seconds / TURN))):
        for workers, several in callers.items():
            began = time.perf_counter()
            errors[workers] += await turn(several, TURN, times[workers])
            took[workers] += time.perf_counter() - began
    return {
        workers: (times[workers], took[workers], errors[workers], cpu[workers] + busy(process.pid))
        for workers, (process, _) in servers.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--home", type=Path, help="an index of large.py's documents, made if absent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        files, home = work / "files", options.home or work / "home"
        large.write_out(files, options.documents * large.NEW_A_DOCUMENT)
        texts = sorted(files.rglob("*.md"))
        words = [path.read_text("utf-8").split(": ", 1)[1].splitlines()[0] for path in texts]
        if not (home / "corpora").exists():
            indexing = [sys.executable, "-m", "graphrag_mcp", "index", str(files)]
            done = subprocess.run([*indexing, "--home", str(home), "--json"], cwd=ROOT, stdout=subprocess.DEVNULL)
            assert done.returncode == 0
        servers = {number: started(home, number, work / f"{number}.log") for number in options.workers}
        try:
            found = asyncio.run(measure(servers, options.clients, options.seconds, words))
            print(f"{len(texts):,} documents, {options.clients} clients, {os.cpu_count()} cores")
            print(f"load of the machine, 1 minute: {os.getloadavg()[0]:.1f}")
            for number, (times, took, errors, cpu) in found.items():
                times.sort()
                p50, p99 = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
                print(
                    f"{number} workers: {len(times) / took:6.1f} calls/s   p50 {p50:6.0f} ms   "
                    f"p99 {p99:6.0f} ms (x {p99 / p50:.2f})   {errors} errors   "
                    f"{cpu / len(times) * 1000:.1f} ms CPU a call   {cpu / took:.2f} cores   "
                    f"{resident(servers[number][0].pid):.0f} MB"
                )
        finally:
            for process, _ in servers.values():
                process.terminate()
            for process, _ in servers.values():
                process.wait(30)


if __name__ == "__main__":
    main()
