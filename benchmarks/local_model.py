"""A small local model on real documents: which share of its replies can be read, by kind of question.

    python benchmarks/local_model.py [--files 4] [--tokens 400] [--base-url URL --model NAME]

Indexes the first files of the sample with `--method light` and `llm` and `preset = "small"`, then
asks three questions. Without a base URL the server is that of the tests (llama.cpp with a model of 135
million parameters). A reply is read at once, read after one more question with the reason, or refused."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.llm.budget import Budget
from graphrag_mcp.llm.openai_chat import OpenAIChat
from graphrag_mcp.llm.transport import Pace
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings, load
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

SAMPLE = Path(__file__).parent.parent / "docs" / "sample"
QUESTIONS = ("Who was right about the back-run?", "What is the sounding roll?", "Who is Lucia Marsh?")


class Counting(Asker):
    """Counts what becomes of each question: read at once, read after repair, refused."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.ends: dict[str, Counter[str]] = {}

    async def ask(self, ask: Any, **more: Any) -> Any:
        before = self.spent().by_stage.get(ask.kind, Counter())["calls"]
        answer = await super().ask(ask, **more)
        calls = self.spent().by_stage.get(ask.kind, Counter())["calls"] - before
        if calls:  # with one call at a time the calls between are this question's
            end = "refused" if not answer.by else "at once" if calls == 1 else "after repair"
            self.ends.setdefault(ask.kind, Counter())[end] += 1
        return answer


def run(settings: Settings, folder: Path, method: str, files: list[Path]) -> None:
    began = time.monotonic()
    chat = OpenAIChat(settings, os.environ, Pace())
    asker = Counting(AnswerBook(folder), chat, None, budget=Budget(gives_up=True), concurrency=1)
    try:
        request = IndexRequest(paths=tuple(map(str, files)), method=method)
        result = index_documents(folder, request, settings, asker=asker)
        for question in QUESTIONS if method == "llm" else ():
            local_search(open_snapshot(folder), question, asker=asker, answer=True, max_tokens=1000)
        usage = asker.spent().record()
    finally:
        asker.close()
    seconds = time.monotonic() - began
    spent = f"{usage['prompt_tokens']:,} tokens in, {usage['output_tokens']:,} out, {seconds:.0f} s"
    print(f"{method}: {usage['calls']} calls, {spent}", flush=True)
    for kind, ends in sorted(asker.ends.items()):
        asked = sum(ends.values())
        shares = ", ".join(f"{100 * ends[end] / asked:.0f} % {end}" for end in ("at once", "after repair", "refused"))
        print(f"  {kind}: {asked} asked, {shares}")
    print(f"  records: {result.losses or 'none lost'}; open: {result.pending or 'nothing'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=400, help="limit of a reply")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--model", default="smollm2")
    options = parser.parse_args()
    with ExitStack() as stack:
        if not options.base_url:
            from tests.support.llama_server import llama_server

            options.base_url = stack.enter_context(llama_server()).url
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        limits = {"max_tokens": options.tokens, "temperature": 0, "seed": 1}
        model = {"chat_model": options.model, "base_url": options.base_url, "chat_options": limits}
        settings = load({}, preset="small", concurrency=1, **model)
        files = sorted(path for path in SAMPLE.rglob("*.md"))[: options.files]
        for method in ("light", "llm"):
            run(settings, work / method, method, files)


if __name__ == "__main__":
    main()
