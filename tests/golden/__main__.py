"""The golden set: what a change of layout must leave exactly as it is.

`python -m tests.golden` compares, `python -m tests.golden --write` records. Three corpora are indexed (the sample
without a model, the sample with the scripted model, Chinese texts without a model). Recorded are the digests of each
corpus, the keys of the reply cache, the text of 40 results, and what an
index written by release 0.1.0 answers. A difference is printed as a unified diff; the exit status is then 1.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORD = HERE / "record.json"
OLD_INDEX = HERE / "index-0.1.0.tar.gz"

QUESTIONS = [
    "Why was the tidal array moved out of the Narrows?",
    "Who first timed the back-run?",
    "Tobias Fenn",
    "How are Marit Fenn and the Skerrow Light Cooperative connected?",
    "海槛有多深？",
]
CHINESE = ["谁反对填平老井？", "望沙湾围垦工程为什么暂停？", "岑一苇", "读书会读什么书？"]


def calls() -> list[tuple[str, dict[str, Any]]]:
    """40 calls of tools that only read, over the three corpora."""
    made: list[tuple[str, dict[str, Any]]] = []
    for question in QUESTIONS:
        made.append(("local_search", {"query": question, "corpus": "sample"}))
        made.append(("local_search", {"query": question, "corpus": "sample", "max_tokens": 800}))
        made.append(("search_text", {"query": question, "corpus": "sample"}))
        made.append(("global_search", {"query": question, "corpus": "sample", "max_tokens": 2000}))
    for question in CHINESE:
        made.append(("local_search", {"query": question, "corpus": "zh"}))
        made.append(("global_search", {"query": question, "corpus": "zh"}))
    for name in ("Tobias Fenn", "HTA", "no such name"):
        made.append(("get_entity", {"id_or_name": name, "corpus": "sample"}))
    made += [
        ("get_entity", {"id_or_name": "岑一苇", "corpus": "zh"}),
        ("explore_graph", {"start": "Tobias Fenn", "goal": "Tide Office", "corpus": "sample"}),
        ("explore_graph", {"start": "Ines Calloway", "corpus": "sample"}),
        ("get_community_report", {"community_id": "c1", "corpus": "sample"}),
        ("get_source", {"ids": ["t1", "t3"], "corpus": "sample"}),
        ("local_search", {"query": QUESTIONS[0], "corpus": "read"}),
        ("global_search", {"query": QUESTIONS[0], "corpus": "read"}),
        ("get_entity", {"id_or_name": "Tobias Fenn", "corpus": "read"}),
        ("get_community_report", {"community_id": "c1", "corpus": "read"}),
    ]
    assert len(made) == 40, len(made)
    return made


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_MCP_", "OPENAI_"))}
    return {**kept, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), **extra}


def command(*arguments: str | Path, env: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "graphrag_mcp", *map(str, arguments), "--json"],
        cwd=ROOT, env=env, capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def indexed(home: Path) -> dict[str, Any]:
    """Index the three corpora into `home`; the digests of each and the keys of the reply cache."""
    from tests.support.openai_server import demonstrated, openai_server

    plain = environment()
    command("index", ROOT / "docs" / "sample", "--home", home, "--corpus", "sample", env=plain)
    command("index", HERE / "zh", "--home", home, "--corpus", "zh", env=plain)
    with openai_server(answer=demonstrated()) as server:
        env = environment(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k", GRAPHRAG_MCP_CHAT_MODEL="demo")
        command("index", ROOT / "docs" / "sample", "--home", home, "--corpus", "read", "--method", "llm", env=env)
    digests = {corpus: command("digest", "--home", home, "--corpus", corpus, env=plain) for corpus in CORPORA}
    return {"digests": digests, "reply keys": reply_keys(home / "corpora" / "read")}


CORPORA = ("sample", "zh", "read")


def reply_keys(folder: Path) -> list[str]:
    """Kind and key of every stored reply, sorted."""
    book = folder / "answers.db"
    connection = sqlite3.connect(book)
    try:
        return sorted(f"{kind} {key}" for kind, key in connection.execute("SELECT kind, key FROM answers"))
    finally:
        connection.close()


def stable(text: str) -> str:
    """Without what another run says differently: the marks of fences."""
    return re.sub(r"(documents-)[0-9a-z]+", r"\1N", text)


def results(home: Path) -> dict[str, Any]:
    """The text of every call, through a real client over stdio."""
    env = environment(GRAPHRAG_MCP_HOME=str(home), GRAPHRAG_MCP_ROOTS=str(ROOT / "docs" / "sample"))
    server = StdioServerParameters(command=sys.executable, args=["-m", "graphrag_mcp"], env=env)

    async def asked() -> dict[str, Any]:
        async with Client(server) as client:
            said = {}
            for name, arguments in calls():
                result = await client.call_tool(name, arguments)
                texts = [block.text for block in result.content if block.type == "text"]
                said[f"{name} {json.dumps(arguments, ensure_ascii=False)}"] = stable("\n".join(texts)).splitlines()
            return {"results": said}

    return anyio.run(asked)


def old_index(home: Path) -> dict[str, Any]:
    """What an index written by release 0.1.0 says: its digest, its counts, and that doctor finds nothing wrong."""
    (home / "corpora").mkdir(parents=True)
    with tarfile.open(OLD_INDEX) as archive:
        archive.extractall(home / "corpora", filter="data")
    env = environment()
    status = command("status", "--home", home, "--corpus", "old", env=env)
    found = command("search", "Why was the array moved?", "--home", home, "--corpus", "old", env=env)
    return {
        "digest": command("digest", "--home", home, "--corpus", "old", env=env),
        "counts": status["counts"],
        "first": [place["title"] for place in found["citations"]][:3],
        "doctor": command("doctor", "--home", home, "--corpus", "old", env=env)["findings"],
    }


def record() -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        (folder / "home").mkdir(mode=0o700)
        (folder / "home" / "key").write_bytes(bytes(range(32)))  # cursors are made with it
        made = indexed(folder / "home")
        return {**made, **results(folder / "home"), "index of 0.1.0": old_index(folder / "old")}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compared() -> list[str]:
    """Lines of a unified diff between the record and today's; empty when they are equal."""
    before = RECORD.read_text("utf-8").splitlines()
    return list(difflib.unified_diff(before, dumped(record()).splitlines(), "recorded", "now", lineterm="", n=1))


def dumped(made: dict[str, Any]) -> str:
    return json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def main() -> int:
    if "--write" in sys.argv[1:]:
        RECORD.write_text(dumped(record()), "utf-8")
        print(f"wrote {RECORD.relative_to(ROOT)}")
        return 0
    lines = compared()
    print("\n".join(lines[:200]) if lines else "the golden set is unchanged")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
