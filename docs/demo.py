"""`make demo`: a server as a host starts it, the sample corpus, one call of every tool, and what to
paste.

Nothing is written outside a temporary folder. The answers in the DRIFT walk are scripted, because
no model takes part: in real use your agent writes them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
import unicodedata
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "docs" / "sample"
WIDTH = min(shutil.get_terminal_size((110, 40)).columns, 110)
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ

QUESTION = "Why was the tidal array moved out of the Narrows?"
PRIMER_ANSWER = """\
The Corrie Accord of 2022 moved the array to the Sule Channel because a sill in the Narrows causes the back-run, a
reversal of the current that the Authority's model T4 did not contain. Who first saw it is still open. %s"""
STEP_ANSWER = """\
Ines Calloway timed the back-run in 1936 and guessed at a sill; Tobias Fenn swore to it in 1969; the radar of 2017 and
sounding roll 12 of the Meridian Tern confirmed both. %s"""


def strong(text: str) -> str:
    return f"\033[1m{text}\033[0m" if COLOUR else text


def faint(text: str) -> str:
    return f"\033[2m{text}\033[0m" if COLOUR else text


def cut(text: str, width: int) -> str:
    """One line of at most so many columns; a Chinese character takes two."""
    text = " ".join(text.split())
    taken = 0
    for at, ch in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(ch) in "WF" else 1
        if taken > width - 2:
            return text[:at] + " …"
    return text


def head(text: str, lines: int) -> None:
    """The first lines that say something, each on one line of the terminal."""
    kept = [line for line in text.splitlines() if line.strip() and not re.match(r"</?documents-\d{13}", line)]
    for line in kept[:lines]:
        print("   " + cut(line, WIDTH - 3))
    if len(kept) > lines + 1:
        print(faint(f"   … {len(kept) - lines} more lines"))


def cited(result: dict[str, Any], most: int = 4) -> None:
    """Where the context stands, best first."""
    places = []
    for c in result.get("citations", []):
        places.append(f"{c['id']} {c['said']}")
    for place in dict.fromkeys(places[:most]):
        print(faint("   ↳ " + cut(place, WIDTH - 5)))


class Failed(Exception):
    """A call that had to succeed did not."""


class Guest:
    """A host's side of the conversation: calls a tool, shows the question and how long the answer
    took.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, tool: str, note: str = "", *, may_fail: bool = False, **arguments: Any) -> dict[str, Any]:
        shown = ", ".join(f"{name}={brief(value)}" for name, value in arguments.items())
        began = time.perf_counter()
        result = await self.client.call_tool(tool, arguments)
        took = f"{1000 * (time.perf_counter() - began):,.0f} ms"
        print(f"\n{strong(tool)}({cut(shown, WIDTH - len(tool) - 14)})  {faint(took)}")
        if note:
            print(faint(f"   {note}"))
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error and not may_fail:
            raise Failed(text)
        heads = re.findall(r"^(?:- )?\[(t[\d.]+)\] (.*)", text, re.MULTILINE)
        return {
            "communities": re.findall(r"\b(c\d+)\b", text),
            **(result.structured_content or {}),
            "citations": [{"id": id, "said": said} for id, said in heads],
            "text": text,
        }


def brief(value: Any) -> str:
    if isinstance(value, str):
        value = value.replace(str(ROOT) + os.sep, "")
        return json.dumps(cut(value, 60), ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False).replace(str(ROOT) + os.sep, "")


async def index(guest: Guest) -> None:
    result = await guest.ask("index_documents", paths=[str(SAMPLE)], wait_seconds=50)
    head(result["text"], 1)
    if result.get("status") != "done" or result.get("errors"):
        raise Failed("the sample corpus was not indexed whole")
    status = await guest.ask("graph_status")
    head(status["text"], 4)
    stopped = await guest.ask("cancel_job", "it is over already, and says so", job_id=result["job_id"])
    head(stopped["text"], 1)


async def questions(guest: Guest) -> None:
    result = await guest.ask("local_search", query="What did Tobias Fenn see, and what proved him right?")
    head(result["text"], 6)
    cited(result)
    result = await guest.ask("local_search", query="沈若岚是怎么发现回流的？")
    head(result["text"], 5)
    cited(result)
    result = await guest.ask("global_search", query=QUESTION)
    head(result["text"], 5)
    result = await guest.ask("global_search", query="What is this corpus about?")
    head(result["text"], 3)
    report = result["communities"][0]
    result = await guest.ask("get_community_report", community_id=report)
    head(result["text"], 4)
    result = await guest.ask("get_entity", id_or_name="HTA")
    head(result["text"], 4)
    result = await guest.ask("search_text", query='"the lady\'s step"')
    head(section(result["text"], "## Sources"), 3)
    cited(result, 1)
    result = await guest.ask("search_text", query="海槛 十一点二米")
    cited(result, 2)
    listed = await guest.ask("list_documents", sort="size", max_tokens=400)
    head(listed["text"], 2)
    result = await guest.ask("get_source", ids=[result["citations"][0]["id"]])
    head(section(result["text"], "## Sources"), 4)


async def graph(guest: Guest) -> None:
    result = await guest.ask("explore_graph", "how are the two connected?", start="Tobias Fenn", goal="Tide Office")
    head(result["text"], 6)


async def thinking(guest: Guest) -> None:
    """The calling agent as the model: it reads a text, and what it found becomes the graph of that
    corpus.
    """
    note = {"id": "diary", "text": "Mira Fenn, the keeper's daughter, drew the first chart of the sill in 1911."}
    await guest.ask("index_documents", texts=[note], corpus="diary", method="agent", wait_seconds=30)
    work = await guest.ask("claim_work", "without a key the agent itself can read the texts", corpus="diary")
    head(section(work["text"], "## How to extract"), 3)
    found = {
        "work_id": work["items"][0]["work_id"],
        "entities": [
            {"name": "Mira Fenn", "type": "person", "description": "Mira Fenn drew the first chart of the sill."},
            {"name": "chart of the sill", "type": "artifact", "description": "It was drawn in 1911."},
        ],
        "relationships": [
            {
                "source": "Mira Fenn",
                "target": "chart of the sill",
                "description": "Mira Fenn drew it in 1911.",
                "keywords": ["drawing"],
                "strength": 9,
            }
        ],
    }
    result = await guest.ask("submit_work", results=[found], corpus="diary")
    head(result["text"], 1)


async def drift(guest: Guest) -> None:
    state = await guest.ask("drift_search", query=QUESTION)
    head(state["text"], 5)
    session, node = state["session_id"], state["open_node"]
    state = await guest.ask(
        "drift_step",
        "the agent answers the first node, scores it, asks on, and gets the next node's context",
        session_id=session,
        node_id=node,
        answer=PRIMER_ANSWER % sources(state),
        score=70,
        follow_ups=["Who saw the back-run first?", "What does the sill do to the eelgrass?"],
    )
    waiting(state)
    cited(state, 3)
    state = await guest.ask(
        "drift_step",
        "one node a call, until the agent is satisfied",
        session_id=session,
        node_id=state["open_node"],
        answer=STEP_ANSWER % sources(state),
        score=85,
    )
    waiting(state)
    cited(state, 3)
    result = await guest.ask("drift_finish", session_id=session)
    head(result["text"], 7)
    result = await guest.ask(
        "write_note",
        "kept as a Markdown file, its ids as links to the lines of the documents",
        title="Why the array was moved",
        text=PRIMER_ANSWER % sources(state),
    )
    head(result["text"], 2)


def sources(state: dict[str, Any]) -> str:
    """The reference with which an agent cites what it was shown."""
    return f"[Data: Sources ({', '.join(citation['id'] for citation in state['citations'][:3])})]"


def section(text: str, heading: str) -> str:
    return text.partition(heading + "\n")[2] or text


def waiting(state: dict[str, Any]) -> None:
    """What is open now, and what waits on the frontier."""
    print(f"   now open: {state['open_node']}; answered {state['answered']}, {state['budget_left']} more allowed")
    for node in state["frontier"][:3]:
        print(faint(f"   ? {cut(node['query'], WIDTH - 5)}"))


async def tending(guest: Guest) -> None:
    """What a person or an agent puts right by hand: tried first, then done, then undone."""
    result = await guest.ask("edit_graph", "pairs of names that may be one thing", op="proposals")
    head(result["text"], 3)
    pair = result["proposals"][0]["ids"]
    result = await guest.ask(
        "edit_graph", 'tried; with dry_run=false it is done, and op="undo" takes it back', op="merge", ids=pair
    )
    head(result["text"], 2)
    result = await guest.ask("remove_documents", ids=["text:diary"], corpus="diary", dry_run=False)
    head(result["text"], 2)


async def mistake(guest: Guest) -> None:
    note = "a typing mistake, and an answer that says what to do"
    result = await guest.ask("get_entity", note, may_fail=True, id_or_name="Meridan Tren")
    head(result["text"], 3)
    result = await guest.ask("local_search", "", may_fail=True, query="back-run", corpus="skerow")
    head(result["text"], 2)


def configuration() -> None:
    """What to paste, with the path of this checkout's interpreter, and the command that pastes it."""
    command = [sys.executable, "-m", "graphrag_mcp", "serve", "--root", "/path/to/your/documents"]
    server = {"command": command[0], "args": command[1:]}
    print("\n" + strong("To use it in your host") + ": graphrag-mcp install --client NAME --root YOUR-FOLDER")
    print("NAME: claude-desktop, claude-code, cursor, vscode, codex. Or paste, and put your folder after --root:")
    print("\nClaude Desktop (claude_desktop_config.json) and Cursor (~/.cursor/mcp.json):")
    print(pasted({"mcpServers": {"graphrag": server}}))
    print('\nVS Code (.vscode/mcp.json): the same under "servers", with "type": "stdio" beside the command')
    print("\nClaude Code:")
    print("claude mcp add graphrag -- " + " ".join(f'"{part}"' if " " in part else part for part in command))
    print("\nYour own folder: make demo FOLDER=~/notes     The graph as a page: graphrag-mcp explore")


def pasted(configuration: dict[str, Any]) -> str:
    """JSON with its list of arguments on one line."""
    text = json.dumps(configuration, indent=2, ensure_ascii=False)
    return re.sub(r"\[[^\[\]]*\]", lambda match: json.dumps(json.loads(match[0]), ensure_ascii=False), text)


async def main() -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="graphrag-mcp-demo-", ignore_cleanup_errors=True) as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_MCP_", "OPENAI_"))}
        server = StdioServerParameters(
            command=sys.executable,
            args=[
                "-m",
                "graphrag_mcp",
                "serve",
                "--tools",
                "all",
                "--home",
                home,
                "--root",
                str(SAMPLE),
                "--root",
                os.path.join(home, "written"),
                "--notes",
                os.path.join(home, "written"),
            ],
            env={**kept, "PYTHONUTF8": "1"},
            cwd=ROOT,
        )
        files = sum(1 for path in SAMPLE.rglob("*") if path.is_file())
        print(
            strong("graphrag-mcp")
            + f": {files} files about one island, in English and Chinese; no key, no model, no network."
        )
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            print(f"Server up with {len(tools)} tools after {1000 * (time.perf_counter() - began):,.0f} ms.")
            guest = Guest(client)
            for part in (index, questions, graph, drift, thinking, tending, mistake):
                await part(guest)
    print(f"\nEvery tool called; {time.perf_counter() - began:.1f} s in all.")
    configuration()


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        anyio.run(main)
    except* Failed as group:
        sys.exit(f"\nThe demonstration stopped: {group.exceptions[0]}")
