"""Many agents at once: real servers over stdio write into one corpus, others read it, and who leads
is killed.

    python campaigns/many_agents.py [--servers 8] [--calls 50] [--readers 8] [--kills 1]

Every server gets `--calls` calls of index_documents, texts and files in turn, one after another; a
call counts when it has answered "done". Meanwhile `--readers` processes search: any error, rows of
two generations in one answer, and a reader that read nothing are faults. `--kills` times the
process that leads the corpus gets kill -9: printed is how long until another one led. At the end
every acknowledged document must be there, the content the same as that of a fresh index, and doctor
silent.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp import Client
from mcp.client.stdio import StdioServerParameters

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import queue
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

CORPUS = "kb"
PEOPLE = ("Ingrid Moe", "Tomas Reyes", "Calloway", "Devi Rao", "Mira Castellan")


@dataclass
class Told:
    """What the agents saw: uris that were acknowledged, seconds a call, what went wrong, seconds
    without a leader.
    """

    acknowledged: set[str] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost_servers: int = 0
    successions: list[float] = field(default_factory=list)


def text_of(agent: int, call: int) -> str:
    one, other = PEOPLE[(agent + call) % 5], PEOPLE[(agent + 2 * call + 1) % 5]
    return f"Note {call} of agent {agent}. {one} met {other} at the Harbour Trust and spoke of buoy B{agent}x{call}."


def server(home: Path, root: Path) -> StdioServerParameters:
    environment = {"GRAPHRAG_MCP_HOME": str(home), "GRAPHRAG_MCP_ROOTS": str(root), "PYTHONPATH": str(ROOT)}
    arguments = ["-m", "graphrag_mcp", "serve"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=str(root))


async def agent(home: Path, root: Path, number: int, calls: int, told: Told) -> None:
    """One agent: its calls one after another; when its server dies, another server and the same
    call again.
    """
    done = 0
    while done < calls:
        try:
            async with Client(server(home, root)) as client:
                while done < calls:
                    await one_call(client, root, number, done, told)
                    done += 1
        except Exception:  # the connection, when its server is killed; anything else comes again and again
            told.lost_servers += 1
            if told.lost_servers > 50:
                told.wrong.append(f"agent {number} gave up")
                return


async def one_call(client: Client, root: Path, number: int, call: int, told: Told) -> None:
    if call % 2:
        path = root / f"agent{number}-{call}.md"
        path.write_text(text_of(number, call), "utf-8")
        uri, what = f"{root.name}/{path.name}", {"paths": [str(path)]}
    else:
        uri = f"text:agent{number}-{call}"
        what = {"texts": [{"id": uri.removeprefix("text:"), "text": text_of(number, call)}]}
    began = time.monotonic()
    with anyio.fail_after(120):
        result = await client.call_tool("index_documents", {**what, "corpus": CORPUS, "wait_seconds": 48})
        while not result.is_error and result.structured_content["status"] in ("queued", "running"):
            shown = await client.call_tool("graph_status", {"job_id": result.structured_content["job_id"]})
            if shown.structured_content["jobs"][0]["status"] in queue.FINAL:
                break
            await anyio.sleep(0.1)
    status = result.structured_content["status"]
    if result.is_error or status not in ("done", "queued", "running"):
        told.wrong.append(f"agent {number} call {call}: {result.content[0].text[:200]}")
    else:
        told.acknowledged.add(uri)
    told.seconds.append(time.monotonic() - began)


# ---- who leads is killed ------------------------------------------------------------------------------


def led_by(home: Path) -> tuple[int, str]:
    """The process that does a job now, and when it last said so."""
    found = [(job.updated, job.pid) for job in queue.listing(home, CORPUS) if job.status == "running"]
    return (max(found)[1], max(found)[0]) if found else (0, "")


async def killer(home: Path, told: Told, kills: int, every: int) -> None:
    """Kill -9 whoever leads, after each `every` calls; measure until another process has done or
    does a job.
    """
    for number in range(1, kills + 1):
        while len(told.acknowledged) < number * every:
            await anyio.sleep(0.02)
        pid = 0
        while not pid:
            pid, _ = await anyio.to_thread.run_sync(led_by, home)
        os.kill(pid, signal.SIGKILL)
        at, began = (queue.datetime.now(queue.UTC).isoformat(timespec="milliseconds"), time.monotonic())
        while not await anyio.to_thread.run_sync(succeeded, home, pid, at):
            if time.monotonic() - began > 60:
                told.wrong.append("no other process took the lead within a minute")
                return
            await anyio.sleep(0.02)
        told.successions.append(time.monotonic() - began)


def succeeded(home: Path, dead: int, at: str) -> bool:
    return any(
        job.updated > at and job.pid != dead and job.status in ("running", "done")
        for job in queue.listing(home, CORPUS)
    )


# ---- who reads ----------------------------------------------------------------------------------------

READER = "import sys; sys.path.insert(0, sys.argv[2]); from campaigns.many_agents import read; read(sys.argv[1])"


def read(folder: str) -> None:
    """Until the file `stop` is there, once the index is: looks at it, and prints what is wrong."""
    rounds, stop = 0, Path(folder).parent / "stop"
    while not stop.exists():
        if rounds or manifests.read(Path(folder)) is not None:
            if wrong := look(Path(folder)):
                print(wrong, flush=True)
            rounds += 1
        time.sleep(0.05)
    print("rounds", rounds, flush=True)


def look(folder: Path) -> str:
    """What is wrong with one look: tables of one generation must agree with each other and with the
    counters. A generation that is cleaned away meanwhile is followed by the next one, once.
    """
    for again in (False, True):
        try:
            return disagreement(open_snapshot(folder))
        except NotFound as error:
            if again:
                return f"error {error!r}"[:300]
        except Exception as error:
            return f"error {error!r}"[:300]
    return ""


def disagreement(snapshot: Snapshot) -> str:
    rows = snapshot.rows("documents", columns=["id", "uri"])
    documents, uris = set(rows["id"].to_pylist()), set(rows["uri"].to_pylist())
    owners = set(snapshot.rows("passages", columns=["document_id"])["document_id"].to_pylist())
    counted = snapshot.manifest.counters["documents"] == len(documents)
    found = local_search(snapshot, "Who spoke of a buoy at the Harbour Trust?")
    agree = owners == documents and counted and {citation.uri for citation in found.citations} <= uris
    return "" if agree else f"mixed {snapshot.manifest.generation}"


# ---- the whole ------------------------------------------------------------------------------------------


async def campaign(home: Path, root: Path, servers: int, calls: int, kills: int) -> Told:
    told = Told()
    async with anyio.create_task_group() as agents:
        agents.start_soon(killer, home, told, kills, max(1, servers * calls // (kills + 1)))
        for number in range(servers):
            agents.start_soon(agent, home, root, number, calls, told)
    return told


def judged(home: Path, root: Path, told: Told) -> list[str]:
    """What is wrong at the end."""
    folder = home / "corpora" / CORPUS
    end = time.monotonic() + 30
    while queue.waiting(home, CORPUS) and time.monotonic() < end:
        time.sleep(0.1)
    manifest = manifests.read(folder)
    if manifest is None:
        return ["there is no index"]
    rows = {row["uri"]: row["text"] for row in live_documents(folder, manifest, ["uri", "text"]).to_pylist()}
    lost = sorted(told.acknowledged - set(rows))
    left = [found for found in doctor(folder) if not found.remark]
    wrong = [*told.wrong, *(f"{uri} was acknowledged and is not there" for uri in lost)]
    wrong += [f"doctor: {found.kind} {found.what}" for found in left]
    wrong += ["the communities are out of date"] if manifest.stale else []
    texts = tuple(InlineText(text, uri[5:]) for uri, text in rows.items() if uri.startswith("text:"))
    fresh = home / "corpora" / "fresh"
    paths = tuple(str(path) for path in sorted(root.glob("*.md")))
    index_documents(fresh, IndexRequest(paths=paths, texts=texts), Settings(home=home))
    same = digest(open_snapshot(fresh))["content"] == digest(open_snapshot(folder))["content"]
    return wrong + ([] if same else ["a fresh index of the same has another content"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("servers", 8), ("calls", 50), ("readers", 8), ("kills", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as place:
        home, root = Path(place) / "home", Path(place) / "notes"
        root.mkdir(parents=True)
        (home / "corpora").mkdir(parents=True)
        print(report(home, root, options))
        wrong = options.wrong
        print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong else 0


def report(home: Path, root: Path, options: Any) -> str:
    command = [sys.executable, "-c", READER, str(home / "corpora" / CORPUS), str(ROOT)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(options.readers)]
    began = time.monotonic()
    try:
        told = anyio.run(campaign, home, root, options.servers, options.calls, options.kills)
    finally:
        (home / "corpora" / "stop").touch()
    wall = time.monotonic() - began
    said = [line for reader in readers for line in reader.communicate()[0].splitlines()]
    options.wrong = [line for line in said if not line.startswith("rounds")] + judged(home, root, told)
    idle = options.readers - sum(line.startswith("rounds") and line != "rounds 0" for line in said)
    options.wrong += [f"{idle} readers read nothing"] if idle else []
    if len(told.acknowledged) != options.servers * options.calls:
        options.wrong.append(f"only {len(told.acknowledged)} calls were acknowledged")
    manifest = manifests.read(home / "corpora" / CORPUS)
    generations = manifest.generation if manifest else 0
    spent = sorted(told.seconds)
    rounds = sum(int(line.split()[1]) for line in said if line.startswith("rounds"))
    return (
        f"{len(told.acknowledged)} calls acknowledged in {wall:.1f} s, {generations} generations; a call "
        f"{statistics.median(spent):.2f} s (median), {spent[int(len(spent) * 0.95)]:.2f} s (95 %), {spent[-1]:.2f} s "
        f"(longest); readers looked {rounds} times; {told.lost_servers} servers lost; another led after "
        + (", ".join(f"{one:.2f} s" for one in told.successions) or "(nobody was killed)")
    )


if __name__ == "__main__":
    sys.exit(main())
