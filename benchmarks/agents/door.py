"""One counted look at a collection: the only way in for an agent that is being measured.

    python door.py LOG tools                                the server's instructions and tools, as a model reads them
    python door.py LOG call TOOL '{"query": "..."}'         one call of the MCP server at URL
    python door.py LOG shell 'grep -rn word . | head'       one shell command in the folder FOLDER

URL, FOLDER and BUDGET are environment variables, so that the agent under test cannot choose. Each look
adds a line {"look", "characters", "seconds", "failed"} to LOG; `python door.py LOG sum` adds them up.

BUDGET is a number of characters for all looks of one LOG: 12,000 for each question is the protocol. A
look is cut where the budget ends, each look says what is left, and a look without budget is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import anyio

MOST = 60_000  # characters of a shell command's output


async def _tool(words: list[str]) -> tuple[str, bool]:
    from mcp import Client

    async with Client(os.environ["URL"]) as client:
        if words[0] == "tools":
            listed = (await client.list_tools()).tools
            schema = [json.dumps(tool.input_schema, ensure_ascii=False) for tool in listed]
            said = [f"## {tool.name}\n{tool.description}" for tool in listed]
            tools = map("\n".join, zip(said, schema, strict=True))
            return "\n\n".join([client.instructions or "", *tools]), False
        result = await client.call_tool(words[1], json.loads(words[2]))
        return "".join(part.text for part in result.content if part.type == "text"), result.is_error


def _shell(command: str) -> tuple[str, bool]:
    done = subprocess.run(
        ["bash", "-c", command], cwd=os.environ["FOLDER"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
    )
    return done.stdout.decode("utf-8", "replace")[:MOST], done.returncode > 1


def total(log: Path) -> dict[str, int]:
    """Looks and characters of a log; a log that is not there has none."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    rows = [json.loads(line) for line in lines]
    return {"looks": len(rows), "characters": sum(row["characters"] for row in rows)}


def main(words: list[str]) -> int:
    log, look = Path(words[0]), words[1:]
    if look == ["sum"]:
        print(json.dumps(total(log)))
        return 0
    budget = int(os.environ.get("BUDGET", "0"))
    left = budget - total(log)["characters"]
    if budget and left <= 0:
        print("The reading budget is used up. Answer from what you have read.")
        return 0  # no look
    began = time.monotonic()
    try:
        text, failed = _shell(look[1]) if look[0] == "shell" else anyio.run(_tool, look)
    except Exception as error:
        print(f"No server answers at {os.environ.get('URL')} ({type(error).__name__}).", file=sys.stderr)
        return 1  # no look
    if budget:
        text = text[:left]
    row = {"look": look, "characters": len(text), "seconds": round(time.monotonic() - began, 2)}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row | {"failed": failed}, ensure_ascii=False) + "\n")
    print(text)
    if budget:
        print(f"({left - len(text):,} characters of the reading budget are left.)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
