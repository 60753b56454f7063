"""Retrieval quality: the ranking by itself, and through the real tools, where budget and packing
count as well.

    python benchmarks/retrieval.py [SET ...] [--tool local_search] [--keep DIR] [--data DIR]
    [--no-graph] [--no-tool] [--tokens N]

Each set is written out as files, indexed by the command line and asked twice: in this process,
where `rank` is the order of the passages, and through a MCP client over stdio, where `tool` is what
a caller gets. With GRAPHRAG_MCP_ EMBEDDING_MODEL set there are vectors, and questions have theirs;
`--no-graph` adds the ranking by words and vectors alone. recall@k: share of the gold documents
among the first k distinct documents, mean over questions. evidence: share of the evidence strings
(NFKC, lower case, letters and digits only) in the whole passages that fit into N tokens (rank), in
the text of a call with max_tokens N (tool), 2,000 by default; mean over questions. characters: of
that text.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

sys.path.insert(0, str(Path(__file__).parent))
import corpora

from graphrag_mcp.query.features import Weights

COLUMNS = (("recall@5", 9), ("recall@20", 9), ("evidence", 8), ("characters", 10), ("ms/call", 8))
PASSED_ON = ("GRAPHRAG_MCP_", "OPENAI_", "HF_", "PYTHON", "PATH", "HOME")  # of the environment, to the server


def plain(text: str) -> str:
    return "".join(ch for ch in unicodedata.normalize("NFKC", text).lower() if ch.isalnum())


def index(name: str, work: Path, data: Path = corpora.DATA) -> tuple[Path, dict]:
    folder = corpora.write_out(name, work / "files", data)
    home = work / f"home-{name}"
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--home", str(home), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    return home, json.loads(done.stdout.strip().splitlines()[-1])


class Tally:
    """Sums over questions."""

    def __init__(self) -> None:
        self.recall5 = self.recall20 = self.evidence = self.seconds = 0.0
        self.asked = self.evident = self.characters = 0

    def add(self, question: dict, documents: Sequence[str], context: str, seconds: float) -> None:
        ranked, gold = list(dict.fromkeys(documents)), set(question["gold"])
        self.recall5 += len(gold & set(ranked[:5])) / len(gold)
        self.recall20 += len(gold & set(ranked[:20])) / len(gold)
        self.seconds += seconds
        self.asked += 1
        self.characters += len(context)
        if question["evidence"]:
            text = plain(context)
            self.evidence += sum(plain(one) in text for one in question["evidence"]) / len(question["evidence"])
            self.evident += 1

    def figures(self) -> dict[str, float]:
        count = self.asked or 1
        return {
            "recall@5": 100 * self.recall5 / count,
            "recall@20": 100 * self.recall20 / count,
            "characters": self.characters / count,
            "evidence": 100 * self.evidence / self.evident if self.evident else float("nan"),
            "ms/call": 1000 * self.seconds / count,
        }


def rank(home: Path, questions: list[dict], tokens: int, graph: bool = True) -> dict[str, float]:
    """The order of the passages, asked of the engine itself; time without making the question's
    vector.
    """
    from graphrag_mcp.llm.opening import open_asker
    from graphrag_mcp.query import rank
    from graphrag_mcp.settings import load
    from graphrag_mcp.store.tables import open_snapshot
    from graphrag_mcp.text.tokens import count_tokens

    snapshot = open_snapshot(next(home.rglob("tables")).parent)
    asker = open_asker(snapshot.folder, load(home=home), limited=False)
    weights = Weights() if graph else Weights(named_title=0, title_link=0, shared_name=0)
    vectors: list[bytes | None] = asker.wait(question_vectors(asker, [one["question"] for one in questions]))
    listed = snapshot.rows("passages", "", ["id", "uri", "text"])
    rows = {row["id"]: (Path(row["uri"]).stem, row["text"], count_tokens(row["text"])) for row in listed.to_pylist()}
    tally = Tally()
    rank.retrieve(snapshot, "warm up", vector=vectors[0])
    for question, vector in zip(questions, vectors, strict=True):
        began = time.perf_counter()
        found = rank.retrieve(snapshot, question["question"], weights, vector=vector)
        took = time.perf_counter() - began
        chosen, left = [], tokens
        for one in found.passages:
            left -= rows[one.id][2]
            if left < 0:
                break
            chosen.append(rows[one.id][1])
        tally.add(question, [rows[one.id][0] for one in found.passages], "".join(chosen), took)
    asker.close()
    return tally.figures()


async def question_vectors(asker: Any, questions: Sequence[str]) -> list[bytes | None]:
    """Each embedded alone, as a search does: with 8-bit weights the others of a batch change a vector."""
    if not asker.embeds:
        return [None] * len(questions)
    return [(await asker.embed([question], query=True))[0] for question in questions]


async def ask(home: Path, folder: Path, tool: str, questions: list[dict], tokens: int) -> dict[str, float]:
    """The same through a tool of the real server."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    command = ["-m", "graphrag_mcp", "serve", "--home", str(home), "--root", str(folder)]
    tally, stems = Tally(), stems_of(home)
    async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment)) as client:
        for _ in range(2):  # a local model is loaded meanwhile
            await client.call_tool(tool, {"query": "warm up"})
            if os.environ.get("GRAPHRAG_MCP_EMBEDDING_MODEL"):
                await anyio.sleep(20)
        for question in questions:
            asking = {"query": question["question"]}
            wide = await client.call_tool(tool, asking | {"max_tokens": 20000})
            began = time.perf_counter()
            narrow = await client.call_tool(tool, asking | {"max_tokens": tokens})
            took = time.perf_counter() - began
            shown = [stems[int(n)] for n in HEAD.findall(wide.content[0].text)]
            tally.add(question, shown, narrow.content[0].text, took)
    return tally.figures()


HEAD = re.compile(r"^(?:- )?\[t(\d+)", re.MULTILINE)  # of a hit, in full or on a line


def stems_of(home: Path) -> dict[int, str]:
    """The file of each text unit, by the number in its id, without its suffix."""
    from graphrag_mcp.store.tables import open_snapshot

    snapshot = open_snapshot(next(home.rglob("tables")).parent)
    uris = {row["id"]: row["uri"] for row in snapshot.rows("documents", "", ["id", "uri"]).to_pylist()}
    units = snapshot.rows("text_units", "", ["n", "document_id"]).to_pylist()
    return {unit["n"]: Path(uris[unit["document_id"]]).stem for unit in units}


def line(name: str, way: str, documents: int, found: dict[str, float], after: str = "") -> str:
    figures = " ".join(f"{found[key]:{width}.1f}" for key, width in COLUMNS)
    return f"{name:16} {documents:5} {way:8} {figures}  {after}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[])
    parser.add_argument("--tool", default="local_search")
    parser.add_argument("--keep", type=Path, help="keep files and indexes here and use them again")
    parser.add_argument("--data", type=Path, default=corpora.DATA, help="a folder of other sets in the same form")
    parser.add_argument("--no-graph", action="store_true", help="also rank by words and vectors alone")
    parser.add_argument("--no-tool", action="store_true", help="only the ranking: a tenth of the time")
    parser.add_argument("--tokens", type=int, default=2_000, help="of a result, for `evidence`")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = args.keep or Path(scratch)
        print(f"{'set':16} {'docs':>5} {'way':8} " + " ".join(f"{key:>{width}}" for key, width in COLUMNS))
        for name in args.sets or corpora.sets(args.data):
            home, result = index(name, work, args.data)
            questions = corpora.questions(name, args.data)
            documents, seconds = (result["counts"].get("documents_total", 0), sum(result["seconds"].values()))
            print(
                line(name, "rank", documents, rank(home, questions, args.tokens), f"indexed in {seconds:.1f} s CPU"),
                flush=True,
            )
            if args.no_graph:
                print(line(name, "no graph", documents, rank(home, questions, args.tokens, graph=False)), flush=True)
            if not args.no_tool:
                found = anyio.run(ask, home, work / "files" / name, args.tool, questions, args.tokens)
                print(line(name, "tool", documents, found), flush=True)


if __name__ == "__main__":
    main()
