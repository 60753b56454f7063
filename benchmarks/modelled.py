"""Indexing with a model beside release 0.1.0: calls, tokens, CPU and wall seconds against the physical
limit, memory, the estimate before.

    python benchmarks/modelled.py [--base-url URL] [--documents 120] [--latency-ms 300]
    [--concurrency 25] [--alone] [--files FOLDER] [--method light]

Documents of about 2,225 tokens are put together from the passages of musique100 and
hotpot_train100, unless `--files` names a folder. Without a base URL the scripted model of the tests
answers over a real server in a thread of this process; a stand-in of another process (its latency
given by --latency-ms) disturbs the measurement less. The limit is calls x latency / concurrency.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parent.parent))
import corpora
import indexing

LETTERS = 2225 * 4


def write_out(folder: Path, documents: int) -> None:
    """Files of several passages each, every passage under its title."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        passages = []
        for name in ("musique100", "hotpot_train100"):
            passages += [path.read_text("utf-8") for path in sorted(corpora.write_out(name, Path(scratch)).iterdir())]
    unique = iter(dict.fromkeys(passages))
    for number in range(documents):
        text = f"# Collection {number}\n"
        while len(text) < LETTERS and (passage := next(unique, None)):
            text += f"\n#{passage}\n"
        (folder / f"{number:03d}.md").write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", default="")
    parser.add_argument("--documents", type=int, default=120)
    parser.add_argument("--latency-ms", type=float, default=300)
    parser.add_argument("--concurrency", type=int, default=25)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--files", default="", help="a folder of documents")
    parser.add_argument("--method", default="llm")
    options = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if not options.base_url:
            from graphrag_mcp.text.tokens import count_tokens
            from tests.support.openai_server import demonstrated, openai_server

            server = openai_server(
                answer=demonstrated(), latency=options.latency_ms / 1000, count=lambda text, sent: count_tokens(text)
            )
            options.base_url = stack.enter_context(server).url
        os.environ |= {
            "OPENAI_BASE_URL": options.base_url,
            "OPENAI_API_KEY": "none",
            "GRAPHRAG_MCP_CHAT_MODEL": "stand-in",
            "GRAPHRAG_MCP_EMBEDDING_MODEL": "stand-in-vectors",
            "GRAPHRAG_MCP_CONCURRENCY": str(options.concurrency),
        }
        files = options.files or str(work / "files")
        if not options.files:
            write_out(work / "files", options.documents)
        packages = {"now": indexing.ROOT}
        if not options.alone:
            packages = {"0.1.0": indexing.release(work / "release"), **packages}
        costs: dict[str, tuple[float, indexing.Cost]] = {}
        for name, package in packages.items():
            folders = [files, "--home", str(work / f"home-{name}"), "--method", options.method]
            command = [sys.executable, "-m", "graphrag_mcp", "index", *folders, "--json"]
            estimate = indexing.run([*command, "--dry-run"], package)[0]["estimate"]
            result, cost = indexing.run(command, package)
            usage = result["usage"]
            embeddings = usage["by_stage"].get("embedding", {}).get("calls", 0)
            limit = usage["calls"] * options.latency_ms / 1000 / options.concurrency
            costs[name] = limit, cost
            print(f"{name}: {result['counts']}")
            print(f"{usage['calls'] - embeddings} chat and {embeddings} embedding calls, by stage {usage['by_stage']}")
            for of in ("calls", "prompt_tokens", "output_tokens"):
                if of in estimate:
                    share = f"{estimate[of] / usage[of]:.0%}"
                    print(f"{of}: {usage[of]:,}, estimated before {estimate[of]:,} ({share})")
            print(
                f"wall {cost.wall:.1f} s, limit {limit:.1f} s, ratio {cost.wall / limit:.2f}; "
                f"CPU {cost.cpu:.1f} s; peak {cost.peak} MB"
            )
            result, again = indexing.run(command, package)
            print(f"the same command again: {result['usage']['calls']} calls, {again}")
        if "0.1.0" in costs:
            (_, old), (_, now) = costs["0.1.0"], costs["now"]
            print(f"beside 0.1.0: {now.cpu / old.cpu:.2f} times its CPU")


if __name__ == "__main__":
    main()
