"""Does anything but the protocol ever reach the standard output of a server? Thousands of calls
beside planted noise.

    python campaigns/stdout_purity.py [--calls 10000]

A real server over stdio runs beside threads that write to its standard output in every way that a
library does: prints, `sys.__stdout__`, raw writes to descriptor 1, a C library's buffered output,
child processes that inherit it, a progress bar, warnings. Every line that comes out must be a
message of the protocol, every call answered once; and every kind of noise must have been heard on
standard error beside the calls, or nothing was tried. Prints one JSON and what is wrong; exit
status 1 when something is.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

NOISY = """
import ctypes, os, subprocess, sys, threading, time, warnings
libc = ctypes.CDLL(None)
early = sys.stdout
def noise():
    while sys.stdout is early:
        time.sleep(0.001)
    try:
        from tqdm import tqdm
        bar = tqdm(total=10**9, file=sys.stdout, mininterval=0)
    except ImportError:
        bar = None
    turn = 0
    while True:
        turn += 1
        print("python noise", flush=True)
        print("kept in a buffer")
        sys.__stdout__.write("noise of the first standard output")
        os.write(1, b"raw noise\\n")
        libc.puts(b"C noise")
        libc.fflush(None)
        libc.puts(b"kept in a buffer of C")
        warnings.warn("noise of a warning %d" % turn)
        if bar is not None:
            bar.update(1)
        if turn % 50 == 1:
            subprocess.run(["echo", "noise of a child"])
            subprocess.run([sys.executable, "-S", "-c", "print('noise of another Python')"])
        time.sleep(0.004)
threading.Thread(target=noise, daemon=True).start()
from graphrag_mcp.cli.main import main
main()
"""
KINDS = ("python noise", "raw noise", "C noise", "noise of a child", "noise of another Python", "noise of a warning")
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("local_search", {"query": "Who met Ada Lovelace?", "max_tokens": 600}),
    ("search_text", {"query": "lamp", "max_tokens": 300}),
    ("graph_status", {}),
    ("get_entity", {"id_or_name": "Ada Lovelace", "max_tokens": 400}),
    ("get_source", {"ids": ["t1"]}),
    ("global_search", {"query": "themes", "max_tokens": 400}),
    ("explore_graph", {"max_tokens": 400}),
    ("get_source", {"ids": ["t999"]}),
)


def run(calls: int, folder: Path, server: str = NOISY) -> dict[str, Any]:
    """So many calls; gives what came out: lines, answers, what was no message, and the noise on
    stderr: how many lines of each kind came while calls were answered.
    """
    (folder / "a.md").write_text("# A\n\nMary Somerville met Ada Lovelace. The lamp was lit.\n", "utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_MCP_", "OPENAI_"))}
    environment = {
        **kept,
        "GRAPHRAG_MCP_HOME": str(folder / "home"),
        "GRAPHRAG_MCP_ROOTS": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=folder,
    )
    assert process.stdin and process.stdout and process.stderr
    heard = dict.fromkeys(KINDS, 0)
    calling = threading.Event()

    def listen() -> None:
        for line in process.stderr:  # type: ignore[union-attr]
            for kind in KINDS:
                heard[kind] += calling.is_set() and kind.encode() in line

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    impure: list[str] = []
    answered: list[int] = []

    def until(id: int) -> None:
        while not impure and (not answered or answered[-1] != id):  # what stands in its place may have cut an answer
            line = process.stdout.readline()  # type: ignore[union-attr]
            assert line, "the server went away"
            take(line)

    def take(line: bytes) -> None:
        try:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0" and ("id" in message or "method" in message)
        except (ValueError, AssertionError, KeyError, TypeError):
            impure.append(line[:200].decode("utf-8", "replace"))
            return
        if "id" in message and "method" not in message:
            answered.append(message["id"])

    def send(message: dict[str, Any]) -> None:
        process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]

    began = time.monotonic()
    client = {"name": "purity", "version": "1"}
    send(
        {
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client},
        }
    )
    until(0)
    send({"method": "notifications/initialized"})
    send(
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": "index_documents", "arguments": {"paths": ["a.md"], "wait_seconds": 40}},
        }
    )
    until(1)
    calling.set()
    for number in range(2, calls + 2):
        if impure:
            break
        tool, arguments = CALLS[number % len(CALLS)]
        send({"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        until(number)
    calling.clear()
    process.stdin.close()
    for line in process.stdout.readlines():
        take(line)
    status = process.wait(30)
    listener.join(10)
    return {
        "calls": calls,
        "answers": len(answered),
        "each once": answered == list(range(calls + 2)),
        "impure lines": impure[:5],
        "exit": status,
        "noise on stderr": heard,
        "seconds": round(time.monotonic() - began, 1),
    }


def faults(found: dict[str, Any]) -> list[str]:
    """What is wrong with a run."""
    wrong = [f"no message of the protocol: {line!r}" for line in found["impure lines"]]
    wrong += [] if found["each once"] else ["not every call was answered once"]
    wrong += [f"the server ended with status {found['exit']}"] if found["exit"] else []
    heard = found["noise on stderr"].items()
    return wrong + [f"no {kind!r} was heard beside the calls" for kind, lines in heard if not lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    with tempfile.TemporaryDirectory() as folder:
        found = run(parser.parse_args().calls, Path(folder))
    print(json.dumps(found, indent=1))
    wrong = faults(found)
    print("\n".join(wrong) or "nothing is wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
