"""Many agents write the summaries of one corpus at once, while their servers are killed.

    python campaigns/summary_agents.py [--agents 12] [--documents 240] [--kills 24] [--seed 1]

Every agent is a real MCP client over stdio with a server process of its own. It claims documents
(`claim_work(kind="summary")`), writes a summary of each and hands all in with one `submit_work`,
until nothing is open. At random moments the server of a random agent gets kill -9: between a claim
and its results, or in the middle of a call. The agent starts another server and goes on.

At the end every document must have a summary, each accepted summary must be the one that is stored,
no document may have been given to two agents unless a server that held it was killed, and a fresh
index with the same reply cache must have the same digest. Prints a table; exit status 1 when a promise was
broken.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns.model_campaign import findings, same
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import queue
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

CORPUS = "kb"
_ITEM = re.compile(r"^## (w\w+) \(summary\)\n(.*?)(?=^## w|\Z)", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"Report (\d+)")
PEOPLE = ("Ingrid Moe", "Tomas Reyes", "Ada Calloway", "Devi Rao", "Mira Castellan")
PLACES = ("Harbour Trust", "Lantern Yard", "Old Customs House", "North Pier")


def document(number: int) -> str:
    """A text of some 90 words: longer than a summary, so that an agent is asked for it."""
    person, other = PEOPLE[number % 5], PEOPLE[(number * 2 + 1) % 5]
    place = PLACES[number % 4]
    filler = f"The visit to the {place} took {number % 7 + 1} hours and ended without a dispute. "
    return (
        f"Report {number}. {person} inspected buoy B{number} at the {place} together with {other}. "
        + filler * 5
        + f"{other} signed the list of repairs, and {person} filed it as paper {number + 1000}.\n"
    )


def summary(number: int, agent: int) -> dict[str, object]:
    """What agent number `agent` writes. Two agents word it differently."""
    person, place = PEOPLE[number % 5], PLACES[number % 4]
    words = f"{person} inspected buoy B{number} at the {place}, as agent {'abcdefghijklmnopqrstuvwxyz'[agent]} read."
    names = [{"name": person, "type": "person"}, {"name": place, "type": "organization"}]
    return {"text": words, "labels": ["inspection", "buoys"], "names": names}


@dataclass
class Record:
    """What the agents saw. `given`: agents that were given a document; `accepted`: the summaries of
    a document whose acceptance an agent read."""

    pids: dict[int, int] = field(default_factory=dict)
    held: dict[int, set[int]] = field(default_factory=dict)  # open documents by agent
    given: dict[int, list[int]] = field(default_factory=dict)
    accepted: dict[int, list[str]] = field(default_factory=dict)
    freed: set[int] = field(default_factory=set)  # documents whose holder was killed
    unread: set[int] = field(default_factory=set)  # documents handed in by a call without a reply
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    working: int = 0
    calls: Counter[str] = field(default_factory=Counter)


def server(work: Path, agent: int) -> StdioServerParameters:
    pid = work / f"pid{agent}"
    script = f'echo $$ > "{pid}"; exec "{sys.executable}" -m graphrag_mcp serve'
    environment = {
        "GRAPHRAG_MCP_HOME": str(work / "home"),
        "GRAPHRAG_MCP_ROOTS": str(work / "documents"),
        "PYTHONPATH": str(ROOT),
    }
    return StdioServerParameters(command="/bin/sh", args=["-c", script], env=environment, cwd=str(work / "documents"))


async def agent_works(work: Path, agent: int, record: Record) -> None:
    record.working += 1
    lost = 0
    while lost < 30:
        try:
            async with Client(server(work, agent)) as client:
                record.pids[agent] = int((work / f"pid{agent}").read_text())
                await summarise(client, agent, record)
                record.pids.pop(agent, None)
                record.working -= 1
                return
        except Exception:  # the connection ends with its server
            record.pids.pop(agent, None)
            record.freed |= record.held.pop(agent, set())
            lost += 1
    record.working -= 1
    record.wrong.append(f"agent {agent} gave up after {lost} lost servers")


async def summarise(client: Client, agent: int, record: Record) -> None:
    """Claims and hands in until nothing is open and nothing is with another agent."""
    empty = 0
    while empty < 3:
        arguments = {"corpus": CORPUS, "kind": "summary", "max_items": 6, "max_tokens": 6_000}
        with anyio.fail_after(120):
            claimed = await client.call_tool("claim_work", arguments)
        record.calls["claim_work"] += 1
        text = "".join(getattr(block, "text", "") for block in claimed.content)
        if claimed.is_error:
            record.wrong.append(f"claim_work of agent {agent}: {text[:200]}")
            return
        items = {id: int(_NUMBER.findall(body)[0]) for id, body in _ITEM.findall(text)}
        record.held[agent] = set(items.values())
        for number in items.values():
            record.given.setdefault(number, []).append(agent)
        if not items:
            empty = 0 if "with other agents" in text else empty + 1
            await anyio.sleep(0.5)
            continue
        empty = 0
        await anyio.sleep(random.uniform(0, 1.5))  # the time to write
        results = [{"work_id": id, **summary(number, agent)} for id, number in items.items()]
        record.unread |= set(items.values())
        with anyio.fail_after(120):
            handed = await client.call_tool("submit_work", {"corpus": CORPUS, "results": results})
        record.calls["submit_work"] += 1
        taken = set(handed.structured_content["accepted"])
        record.unread -= set(items.values())
        for id in taken & set(items):
            record.accepted.setdefault(items[id], []).append(str(summary(items[id], agent)["text"]))
        for refused in handed.structured_content["rejected"]:
            if items.get(refused["work_id"]) not in record.accepted | dict.fromkeys(record.freed):
                record.wrong.append(f"refused: {refused}"[:300])
        record.held[agent] = set()


async def killer(record: Record, kills: int, rng: random.Random) -> None:
    while record.kills < kills and record.working:
        await anyio.sleep(rng.uniform(0.3, 2.0))
        if not record.pids:
            continue
        agent = rng.choice(sorted(record.pids))
        pid = record.pids.pop(agent)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        record.kills += 1


async def campaign(work: Path, agents: int, kills: int, rng: random.Random) -> Record:
    record = Record()
    async with anyio.create_task_group() as group:
        for agent in range(agents):
            group.start_soon(agent_works, work, agent, record)
        await anyio.sleep(1)
        group.start_soon(killer, record, kills, rng)
    return record


def judged(work: Path, record: Record, documents: int) -> list[str]:
    """What was broken."""
    home = work / "home"
    end = time.monotonic() + 60
    settings = Settings(home=home)
    while queue.waiting(home, CORPUS) and time.monotonic() < end:
        time.sleep(0.2)
    folder, fresh = home / "corpora" / CORPUS, home / "corpora" / "fresh"
    # What a killed server has left is merged by the next indexing call, as for a user.
    index_documents(folder, IndexRequest(paths=(str(work / "documents"),)), settings)
    snapshot = open_snapshot(folder)
    numbers = {row["id"]: number_of(row["uri"]) for row in snapshot.rows("documents").to_pylist()}
    stored: dict[int, list[str]] = {}
    for row in snapshot.rows("summaries").to_pylist():
        stored.setdefault(numbers[row["document_id"]], []).append(row["text"])
    wrong = list(record.wrong)
    wrong += [f"no summary of document {n}" for n in range(documents) if n not in stored]
    wrong += [f"{len(s)} summaries of document {n}" for n, s in stored.items() if len(s) != 1]
    lost = [n for n, texts in record.accepted.items() if not set(texts) & set(stored.get(n, ()))]
    # A call that was killed may have been taken without its reply being read, and may have come last.
    lost = [n for n in lost if n not in record.unread]
    wrong += [f"the accepted summary of document {n} is not stored" for n in lost]
    twice = [n for n, who in record.given.items() if len(who) > 1 and n not in record.freed]
    wrong += [f"document {n} was given to agents {record.given[n]}" for n in twice]
    fresh.mkdir(parents=True)
    for cache in folder.glob("answers.db*"):
        shutil.copy(cache, fresh / cache.name)
    index_documents(fresh, IndexRequest(paths=(str(work / "documents"),)), settings)
    wrong += [] if same(folder) == same(fresh) else ["a fresh index has another digest"]
    return wrong + [str(found) for found in findings(folder)]


def number_of(uri: str) -> int:
    return int(Path(uri).stem.removeprefix("report"))


def run(work: Path, agents: int, documents: int, kills: int, seed: int) -> tuple[str, list[str]]:
    """Figures as rows of a table, and what was broken."""
    files, corpus = work / "documents", work / "home" / "corpora" / CORPUS
    files.mkdir()
    corpus.mkdir(parents=True)
    for number in range(documents):
        (files / f"report{number}.md").write_text(document(number), "utf-8")
    index_documents(corpus, IndexRequest(paths=(str(files),)), Settings(home=work / "home"))
    began = time.monotonic()
    record = anyio.run(campaign, work, agents, kills, random.Random(seed))
    seconds = time.monotonic() - began
    given = Counter(min(len(who), 3) for who in record.given.values())
    figures = {
        "agents": agents,
        "documents": documents,
        "seconds": round(seconds),
        "servers killed": record.kills,
        "calls of claim_work, submit_work": record.calls.total(),
        "documents given once, twice, more often": f"{given[1]}, {given[2]}, {given[3]}",
        # A kill may fall between the storing of a reply and its reading; `judged` looks whether it is stored.
        "documents whose summary was accepted or handed in unread": len(record.accepted.keys() | record.unread),
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in figures.items())
    return rows, judged(work, record, documents)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("agents", 12), ("documents", 240), ("kills", 24), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as place:
        figures, wrong = run(Path(place), **vars(options))
    print(figures)
    print(*(f"BROKEN: {words}" for words in wrong), sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
