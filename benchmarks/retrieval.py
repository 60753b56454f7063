"""Retrieval quality through the real tools: recall@5, recall@20 and evidence within 2,000 tokens.

    python benchmarks/retrieval.py [SET ...] [--tool local_search] [--keep DIR]

Each set is written out as files, indexed by the command line and asked through a real MCP client over stdio.
recall@k: share of the gold documents among the first k distinct documents of `citations`, mean over questions.
ev@2k: share of the evidence strings (NFKC, lower case, letters and digits only) in the text of a call with
max_tokens 2000, mean over questions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

sys.path.insert(0, str(Path(__file__).parent))
import corpora


def plain(text: str) -> str:
    return "".join(ch for ch in unicodedata.normalize("NFKC", text).lower() if ch.isalnum())


def index(name: str, work: Path) -> tuple[Path, dict]:
    folder = corpora.write_out(name, work / "files")
    home = work / f"home-{name}"
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--home", str(home), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr or done.stdout)
    return home, json.loads(done.stdout.strip().splitlines()[-1])


async def ask(home: Path, folder: Path, tool: str, questions: list[dict]) -> dict[str, float]:
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "graphrag_mcp", "serve", "--home", str(home), "--root", str(folder)]
    )
    recall5 = recall20 = evidence = 0.0
    asked = times = 0
    async with Client(server) as client:
        await client.call_tool(tool, {"query": "warm up"})
        for question in questions:
            asking = {"query": question["question"]}
            wide = (await client.call_tool(tool, asking | {"max_tokens": 20000})).structured_content
            began = time.perf_counter()
            narrow = (await client.call_tool(tool, asking | {"max_tokens": 2000})).structured_content
            times += time.perf_counter() - began
            ranked = list(dict.fromkeys(Path(item["uri"]).stem for item in wide["citations"]))
            gold = set(question["gold"])
            recall5 += len(gold & set(ranked[:5])) / len(gold)
            recall20 += len(gold & set(ranked[:20])) / len(gold)
            if question["evidence"]:
                text = plain(narrow["text"])
                evidence += sum(plain(e) in text for e in question["evidence"]) / len(question["evidence"])
                asked += 1
    count = len(questions)
    return {
        "recall@5": 100 * recall5 / count, "recall@20": 100 * recall20 / count,
        "ev@2k": 100 * evidence / asked if asked else float("nan"), "ms/call": 1000 * times / count,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[])
    parser.add_argument("--tool", default="local_search")
    parser.add_argument("--keep", type=Path, help="keep files and indexes here and use them again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = args.keep or Path(scratch)
        print(f"{'set':16} {'docs':>5} {'recall@5':>9} {'recall@20':>9} {'ev@2k':>6} {'ms/call':>8}  index CPU s")
        for name in args.sets or corpora.sets():
            home, result = index(name, work)
            found = anyio.run(ask, home, work / "files" / name, args.tool, corpora.questions(name))
            figures = " ".join(f"{found[key]:{width}.1f}" for key, width in
                               (("recall@5", 9), ("recall@20", 9), ("ev@2k", 6), ("ms/call", 8)))  # fmt: skip
            documents, seconds = result["counts"].get("documents_total", 0), sum(result["seconds"].values())
            print(f"{name:16} {documents:5} {figures}  {seconds:.1f}")


if __name__ == "__main__":
    main()
