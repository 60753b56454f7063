"""Indexing with a small local model for as long as it takes, while processes are killed: graphrag-mcp
at random moments, and sometimes the model's server.

    python campaigns/local_model_kills.py [--documents 400] [--minutes 60] [--most 120] [--seed 1]

The server is that of the tests (llama.cpp, 135 million parameters). A counting proxy stands before it.
After `--minutes` nothing is killed any more, after `--most` the server goes away for good. At the end the index must have every document, each text must be read or named as open, no question may
have been sent again whose reply was in the reply cache, and a fresh index with the same reply cache
must have the same digest without a call. Prints a table; exit status 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns.model_campaign import findings, same, sentence
from graphrag_mcp.llm.asker import key_of
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import open_snapshot
from tests.support.llama_server import PARALLEL, Llama, llama_server

SECOND_TRY = "\n\nA first reply could"  # what a second question has behind the words of the first
# A corpus may have its prompt. A model on one processor reads and writes some ten words a second, and
# without an example it writes until it is cut off.
PROMPT = """List the names of a text. Types: $entity_types
<text>
Ada met Tom in Rome.
</text>
{"entities": [{"name": "Ada", "type": "person", "description": "met Tom"}, \
{"name": "Rome", "type": "location", "description": "a place"}], "relationships": []}
<text>
$text
</text>
"""


@dataclass
class Sent:
    """The questions that came to the server. `bodies`: how often each came, word by word."""

    keys: list[str] = field(default_factory=list)
    bodies: Counter[str] = field(default_factory=Counter)
    failed: int = 0  # without a reply, since the server or the client was gone
    lock: threading.Lock = field(default_factory=threading.Lock)


def question(body: dict[str, Any]) -> str:
    """The key that the reply cache knows the question by, also of its second try."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    told = [Message(one["role"], one["content"].partition(SECOND_TRY)[0]) for one in body["messages"]]
    return key_of(told, schema)


@contextmanager
def proxy(port: int, sent: Sent) -> Iterator[str]:
    """The address of a proxy before the server at this port of the machine."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is printed."""

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            with sent.lock:
                sent.keys.append(question(json.loads(raw)))
                sent.bodies[raw.decode()] += 1
            self.close_connection = True
            upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
            try:
                upstream.request("POST", self.path, raw, {"Content-Type": "application/json"})
                reply = upstream.getresponse()
                data = reply.read()
                self.send_response(reply.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (OSError, http.client.HTTPException):
                with sent.lock:
                    sent.failed += 1
            finally:
                upstream.close()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def write_documents(folder: Path, count: int, seed: int) -> Path:
    folder.mkdir(parents=True)
    rng = random.Random(seed)
    for number in range(count):
        (folder / f"note{number:03d}.md").write_text(f"Note {number}. {sentence(rng)}\n", "utf-8")
    return folder


def kept(corpus: Path) -> set[str]:
    """Keys of the questions that are settled: their reply is in the reply cache, or was refused twice."""
    book = AnswerBook(corpus)
    try:
        return {one["key"] for one in book.listing()}
    finally:
        book.close()


@dataclass
class Campaign:
    """One folder that is indexed by processes that are killed. `sent`: what reached the server."""

    work: Path
    files: Path
    environment: dict[str, str]
    server: Llama
    sent: Sent
    rng: random.Random
    longest: float  # seconds that a process may live while processes are killed
    kills: int = 0
    server_kills: int = 0
    again: int = 0  # questions that were sent though they were settled

    def corpus(self, home: str) -> Path:
        return self.work / home / "corpora" / "c"

    def index(self, home: str) -> subprocess.Popen[str]:
        options = ["--method", "llm", "--home", str(self.work / home), "--corpus", "c", "--json"]
        command = [sys.executable, "-m", "graphrag_mcp", "index", str(self.files), *options]
        # Files, since the result of 400 documents is longer than the buffer of a pipe.
        with (self.work / "stdout").open("w") as output, (self.work / "stderr").open("w") as errors:
            return subprocess.Popen(command, env=self.environment, text=True, stdout=output, stderr=errors)

    def turn(self, until: float, most: float) -> dict[str, Any] | None:
        """One process, killed at a random moment before `until`; its result when it came to its end."""
        settled, before = kept(self.corpus("killed")), len(self.sent.keys)
        process = self.index("killed")
        dies = time.monotonic() + self.rng.uniform(10, self.longest)
        server_dies = time.monotonic() + self.rng.uniform(10, 3 * self.longest)
        try:
            while process.poll() is None:
                time.sleep(0.1)
                now = time.monotonic()
                if server_dies < now < until:
                    self.server.kill()
                    self.server_kills += 1
                    time.sleep(self.rng.uniform(0, 10))
                    self.server.start()
                    server_dies = now + self.rng.uniform(60, 3 * self.longest)
                if dies < now < until:
                    process.kill()
                    self.kills += 1
                    return None
                if now > most and self.server.process is not None:
                    self.server.kill()
            printed = (self.work / "stdout").read_text("utf-8")
            if not printed:
                # A message without a result, as when the model's server was gone at the first call.
                told = (self.work / "stderr").read_text("utf-8")[-2000:]
                if self.server.process is None:
                    raise RuntimeError(f"no run came to a result before the server went:\n{told}")
                print(told, flush=True)
                return None
            return json.loads(printed)
        finally:
            process.wait()
            self.again += sum(key in settled for key in self.sent.keys[before:])
            done = len(kept(self.corpus("killed")))
            print(f"{self.kills} kills, {len(self.sent.keys)} questions, {done} settled", flush=True)

    def run(self, minutes: float, most: float) -> list[str]:
        """What was broken."""
        began, result = time.monotonic(), None
        until, last = began + 60 * minutes, began + 60 * most
        while result is None or (self.server.process and set(result["pending"]) - set(result["refused"])):
            result = self.turn(until, last)
        seconds = time.monotonic() - began
        corpus, calm, before = self.corpus("killed"), self.corpus("calm"), len(self.sent.keys)
        for name in (corpus / "prompts", *corpus.glob("answers.db*")):
            copy = shutil.copytree if name.is_dir() else shutil.copy
            copy(name, calm / name.name)
        self.index("calm").wait()
        snapshot = open_snapshot(corpus)
        units = snapshot.count("text_units")
        read = {row["text_unit_id"] for row in snapshot.rows("mentions").to_pylist() if row["by"]}
        named = {row["subject"] for row in snapshot.rows("pending").to_pylist()}
        # A reply without a name that stands in the text leaves no mention: it is in the cache.
        answered = len(kept(corpus))
        twice = sum(count - 1 for count in self.sent.bodies.values())
        figures = {
            "documents": snapshot.count("documents"),
            "text units": units,
            "read by the model": len(read),
            "named as open": len(named),
            "of these refused twice": result["refused"].get("extract", 0),
            "settled in the reply cache": answered,
            "minutes": round(seconds / 60, 1),
            "kills of graphrag-mcp": self.kills,
            "kills of the server": self.server_kills,
            "calls": before,
            "calls without a reply": self.sent.failed,
            "calls with the words of another": twice,
            "calls for a settled question": self.again,
            "calls of the undisturbed run": len(self.sent.keys) - before,
            "same digest": same(corpus) == same(calm),
            "doctor": findings(corpus) + findings(calm),
        }
        for name, value in figures.items():
            print(f"| {name} | {value} |", flush=True)
        broken = {
            "a document is missing": figures["documents"] != len(list(self.files.iterdir())),
            # Texts that were refused twice are settled in the cache and named.
            "a text is neither read nor named": units > answered + len(named) - result["refused"].get("extract", 0),
            "a reply was paid twice": bool(self.again),
            "more than the calls under way were repeated": twice > PARALLEL * (self.kills + 1) + self.sent.failed,
            "the undisturbed run asked": bool(figures["calls of the undisturbed run"])
            and self.server.process is not None,
            "the digests differ": not figures["same digest"],
            "doctor found something": bool(figures["doctor"]),
        }
        return [words for words, is_so in broken.items() if is_so]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--most", type=float, default=120)
    parser.add_argument("--longest", type=float, default=200, help="seconds between two kills at most")
    parser.add_argument("--tokens", type=int, default=130, help="limit of a reply")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sent = Sent()
    with tempfile.TemporaryDirectory() as scratch, llama_server() as server, proxy(server.port, sent) as url:
        work = Path(scratch)
        limits = f"{{ max_tokens = {options.tokens}, temperature = 0, seed = 1 }}"
        chosen = f'preset = "small"\nchat_options = {limits}\nreport_min_size = 1000000\n'
        (work / "settings.toml").write_text(chosen, "utf-8")
        variables = {"OPENAI_BASE_URL": url, "GRAPHRAG_MCP_CHAT_MODEL": "smollm2", "PYTHONPATH": str(ROOT)}
        variables["GRAPHRAG_MCP_SETTINGS"] = str(work / "settings.toml")
        unset = ("GRAPHRAG_MCP_", "OPENAI_")
        outer = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        files = write_documents(work / "documents", options.documents, options.seed)
        campaign = Campaign(work, files, outer | variables, server, sent, random.Random(options.seed), options.longest)
        for home in ("killed", "calm"):
            campaign.corpus(home).mkdir(parents=True)
        (campaign.corpus("killed") / "prompts").mkdir()
        (campaign.corpus("killed") / "prompts" / "extract.md").write_text(PROMPT, "utf-8")
        broken = campaign.run(options.minutes, options.most)
    print(*(f"BROKEN: {words}" for words in broken), sep="\n")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
