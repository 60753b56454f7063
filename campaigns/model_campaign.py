"""Indexing with a model under attack: processes killed at random moments, and a model that
misbehaves half of the time.

    python campaigns/model_campaign.py [--kills 20] [--bad 30] [--documents 40] [--seed 1]

The model is a real HTTP server on this machine whose answers are made of the prompt
(tests/support/scripted.py), so an undisturbed run says what every disturbed one has to end with.
Prints a table for each campaign; exit status 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import hashlib
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import key_of
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.reply_cache import REFUSED, AnswerBook
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.demonstration import demonstration
from tests.support.openai_server import Server, error, openai_server
from tests.support.promises import doctor

RULES = demonstration()
# Everything that a model is asked for happens already in a corpus of a few pages.
EAGER: dict[str, Any] = {"report_min_size": 3, "report_min_units": 1, "embedding_model": "vectors"}
LONGEST = 60.0  # seconds in which an answer that was sent is written down, on the busiest machine

PEOPLE = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Luigi Menabrea", "Sophia Frend", "Augustus De Morgan"]
PLACES = ["London", "Turin", "Edinburgh", "Bournemouth", "Cambridge"]
THINGS = ["Analytical Engine", "Difference Engine", "Royal Society", "Lunar Tables", "Punched Cards"]

# What a model said that is no answer to anything; None: the prompt itself.
REPLIES: dict[str, str | None] = {
    "empty": "",
    "blank": " \n\t ",
    "refusal": "I'm sorry, but I can't help with that request.",
    "web page": "<!doctype html><html><body>502 Bad Gateway</body></html>",
    "error as text": '{"error": {"message": "overloaded"}}',
    "number": "42",
    "empty object": "{}",
    "array of numbers": "[1, 2, 3]",
    "cut record": '{"entities": [{"name": "Ada',
    "empty fields": '{"entities": [{"name": "", "type": "", "description": ""}]}',
    "cut JSON": '{"title": "A report", "summary": "It beg',
    "thinking only": "<think>I should look for names.</think>",
    "thinking without end": "<think>I should look for names. " * 50,
    "control characters": "\0" * 50,
    "half characters": "\ud83d",
    "bidi": "\u202e\u2066" * 30,
    "punctuation": "... !!! ???",
    "huge": "x" * 900_000,
    "brackets": "[" * 3000,
    "prompt again": None,
}
# What a server did instead of answering, as tests/support/openai_server.py knows it.
FAULTS: dict[str, Any] = {
    "429 with Retry-After": (429, {"Retry-After": "0"}, error("slow down")),
    "429": 429,
    "500": 500,
    "503": 503,
    "529 page": (529, {"Content-Type": "text/html"}, "<html>busy</html>"),
    "error inside 200": (200, {}, error("broken")),
    "reset": "reset",
    "time-out": "hang",
    "page instead of JSON": "html",
    "empty body": "empty",
    "cut body": "cut",
    "400": (400, {}, error("bad request")),
}


def demo(messages: list[dict[str, Any]], body: dict[str, Any] | None = None) -> str:
    """What the demonstration model answers."""
    said = [Message(message["role"], str(message["content"])) for message in messages]
    return next(str(text) for text in (rule(said, None) for rule in RULES) if text is not None)


def sentence(rng: random.Random) -> str:
    a, b = rng.sample(PEOPLE, 2)
    return rng.choice(
        [
            f"{a} wrote to {b} about the {rng.choice(THINGS)}.",
            f"In {rng.choice(PLACES)}, {a} met {b} and spoke of the {rng.choice(THINGS)}.",
            f"The {rng.choice(THINGS)} was described by {a} in {rng.choice(PLACES)}.",
            f"{a} of {rng.choice(PLACES)} disagreed with {b} in {rng.randint(1820, 1850)}.",
        ]
    )


def document(rng: random.Random) -> str:
    return f"# {rng.choice(PEOPLE + PLACES)}\n\n" + "\n\n".join(
        " ".join(sentence(rng) for _ in range(rng.randint(2, 6))) for _ in range(rng.randint(2, 4))
    )


def write_documents(folder: Path, count: int, seed: int = 7) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    for number in range(count):
        (folder / f"note{number:03d}.md").write_text(document(rng), "utf-8")
    return folder


def same(corpus: Path) -> dict[str, str]:
    return digest(open_snapshot(corpus))


# ---- killed --------------------------------------------------------------------------------------


class Holding:
    """Answers like the demonstration model, so many times; then it lets everybody wait until it is
    `open` again.
    """

    def __init__(self) -> None:
        self.left, self.open, self.lock = 0, threading.Event(), threading.Lock()
        self.answered: list[str] = []  # keys of questions whose answers are on their way, or were sent
        self.open.set()

    def hold_after(self, answers: int) -> None:
        with self.lock:
            self.left, self.answered = answers, []
            self.open.clear()

    def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        with self.lock:
            self.left -= 1
            held = self.left < 0
            if not held:
                self.answered += keys_of(body)
        if held:
            self.open.wait(LONGEST)
        return demo(messages)


def keys_of(body: dict[str, Any]) -> list[str]:
    """What the answer book knows the question by, or each text that is to be embedded."""
    if "input" in body:
        return [hashlib.sha256(text.encode("utf-8", "replace")).hexdigest() for text in body["input"]]
    if "messages" not in body:
        return []
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return [key_of([Message(one["role"], one["content"]) for one in body["messages"]], schema)]


def standing(corpus: Path, keys: set[str]) -> set[str]:
    """Those of the keys under which the book has an answer or a vector."""
    book = AnswerBook(corpus)
    try:
        return {key for key in keys if book.get(key)} | book.vectors(sorted(keys), "vectors").keys()
    finally:
        book.close()


@dataclass
class Killed:
    """What came of one corpus: how often its process was killed, and what should not have happened."""

    kills: int = 0
    calls: int = 0
    bought_again: int = 0
    unwritten: int = 0  # kills before which an answer that was sent did not come to stand in the book
    same: bool = False
    found: list[str] = field(default_factory=list)  # by doctor

    @property
    def good(self) -> bool:
        return self.same and not self.found and not self.bought_again and not self.unwritten


def killed(work: Path, kills: int, documents: int, seed: int, latency: float = 0.08) -> list[Killed]:
    """Index a folder with processes that are killed until so many were; then let one finish, and
    start over.
    """
    files = write_documents(work / "documents", documents)
    rng = random.Random(seed)
    chosen = {**EAGER, "concurrency": 8}
    with openai_server(Holding(), latency=latency) as server, _settings_file(work, chosen) as settings:
        environment = _environment(server, settings)
        began = time.monotonic()
        subprocess.run(_command(files, work / "calm"), env=environment, check=True, capture_output=True)
        whole, calls = time.monotonic() - began, len(server.requests)
        wanted = same(work / "calm" / "corpora" / "c")
        found: list[Killed] = []
        while sum(one.kills for one in found) < kills:
            home, left = work / f"home{len(found)}", kills - sum(one.kills for one in found)
            one = _one_corpus(server, files, home, environment, rng, (whole, calls), left)
            one.same = same(home / "corpora" / "c") == wanted
            found.append(one)
        return found


def _one_corpus(
    server: Server,
    files: Path,
    home: Path,
    environment: dict[str, str],
    rng: random.Random,
    size: tuple[float, int],
    most: int,
) -> Killed:
    """Every other process is killed at any moment: what stands in its book then is not bought
    again. The others are killed while the server holds back all answers but some: these must come
    to stand in the book, however long that takes, so no speed of a machine has a part in it."""
    made, first, corpus = Killed(), len(server.requests), home / "corpora" / "c"
    bought: set[str] = set()
    for number in range(min(most, rng.randint(2, 6))):
        before = len(server.requests)
        process = subprocess.Popen(
            _command(files, home), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if number % 2:
            died = _killed_after(process, rng.uniform(0.25, 0.8) * size[0])
        else:
            died = _killed_when_written(process, server, corpus, rng.randint(1, size[1] // 2), made)
        made.kills += died
        made.bought_again += _again(server, before, bought)
        bought = standing(corpus, {key for one in server.requests[first:] for key in keys_of(one.body)})
    before = len(server.requests)
    subprocess.run(_command(files, home), env=environment, check=True, capture_output=True)
    made.bought_again += _again(server, before, bought)
    made.calls, made.found = len(server.requests) - first, findings(corpus)
    return made


def _again(server: Server, since: int, bought: set[str]) -> int:
    """Calls for what was answered before."""
    return sum(not bought.isdisjoint(keys_of(one.body)) for one in server.requests[since:])


def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True


def _killed_when_written(
    process: subprocess.Popen[bytes], server: Server, corpus: Path, answers: int, made: Killed
) -> bool:
    """Kill it when it waits for answers that do not come, and all that it got stand in its book."""
    holding: Holding = server.answer  # type: ignore[assignment]
    holding.hold_after(answers)
    try:
        until = time.monotonic() + LONGEST
        while process.poll() is None:
            time.sleep(0.02)
            if holding.left < 0 and standing(corpus, set(holding.answered)) == set(holding.answered):
                return _killed_after(process, 0)
            if time.monotonic() > until:
                made.unwritten += 1
                return _killed_after(process, 0)
        return False
    finally:
        holding.open.set()
        holding.left = 1 << 30


def findings(corpus: Path) -> list[str]:
    return [f"{one.kind} {one.where}: {one.what}" for one in doctor(corpus)]


def _command(files: Path, home: Path) -> list[str]:
    options = ["--method", "llm", "--home", str(home), "--corpus", "c", "--json"]
    return [sys.executable, "-m", "graphrag_mcp", "index", str(files), *options]


def _environment(server: Server, settings: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_MCP_", "OPENAI_"))}
    return kept | {
        "OPENAI_BASE_URL": server.url,
        "GRAPHRAG_MCP_CHAT_MODEL": "demonstration",
        "PYTHONPATH": str(ROOT),
        "GRAPHRAG_MCP_SETTINGS": str(settings),
    }


@contextmanager
def _settings_file(work: Path, values: dict[str, Any]) -> Iterator[Path]:
    path = work / "settings.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()), "utf-8")
    yield path


# ---- misbehaving ---------------------------------------------------------------------------------


@dataclass
class Bad:
    """One kind of trouble: what the run said of it, and what the next, untroubled one made of it."""

    kind: str
    status: str = ""
    seconds: float = 0.0
    degraded: int = 0
    unexplained: int = 0  # degraded without a reason
    kept: int = 0  # bad replies in the answer book
    asked_again: int = 0  # questions of the second run that had been answered already
    left: int = 0  # pending after it
    same: bool = False
    found: list[str] = field(default_factory=list)  # by doctor
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def good(self) -> bool:
        wrong = self.unexplained or self.kept or self.asked_again or self.left
        return self.status == "done" and self.same and not self.found and not wrong


class Half:
    """Answers every other call of each kind of question badly."""

    def __init__(self, kind: str) -> None:
        self.kind, self.lock, self.count = kind, threading.Lock(), 0

    def __call__(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        with self.lock:
            self.count += 1
            odd = self.count % 2
        said = REPLIES[self.kind]
        return (str(messages[-1]["content"]) if said is None else said) if odd else demo(messages)


def troubled(work: Path, kind: str, files: Path, wanted: dict[str, str]) -> Bad:
    """One run with this trouble at every other call, then one without."""
    made = Bad(kind)
    corpus = work / "corpus"
    shutil.rmtree(corpus, ignore_errors=True)
    request = IndexRequest(paths=(str(files),), method="llm", retry_refused=True)
    with openai_server(Half(kind) if kind in REPLIES else demo) as server:
        server.script = [FAULTS[kind], None] * 5000 if kind in FAULTS else []
        seconds = 0.4 if kind == "time-out" else 30.0
        settings = Settings(
            chat_model="demonstration",
            base_url=server.url,
            max_retries=0,
            concurrency=4,
            timeout_seconds=seconds,
            **EAGER,
        )
        began = time.monotonic()
        result = index_documents(corpus, request, settings)
        made.status, made.seconds = result.status, time.monotonic() - began
        made.degraded = len(result.degraded)
        made.unexplained = sum(not one["reason"] for one in result.degraded)
        made.reasons.update(one["reason"][:80] for one in result.degraded)
        made.kept = _kept(corpus, kind)
        known = set(_keys(corpus))
        server.script, server.answer = [], demo
        result = index_documents(corpus, request, settings)
        made.asked_again = len(known) - len(known & set(_keys(corpus)))
        made.left = sum(result.pending.values())
        index_documents(corpus, IndexRequest(paths=(str(files),), method="llm", recluster=True), settings)
        made.same, made.found = same(corpus) == wanted, findings(corpus)
    return made


def _keys(corpus: Path) -> list[str]:
    book = AnswerBook(corpus)
    try:
        answers = (one for one in book.listing() if one["kind"] != REFUSED)
        return [f"{answer['key']} {answer['time']}" for answer in answers]
    finally:
        book.close()


def _kept(corpus: Path, kind: str) -> int:
    """Answers in the book that are the bad reply."""
    if kind not in REPLIES or REPLIES[kind] is None:
        return 0
    book = AnswerBook(corpus)
    try:
        texts = [stored.text for one in book.listing() for stored in book.get(one["key"])]
        return texts.count(str(REPLIES[kind]))
    finally:
        book.close()


def misbehaving(work: Path, kinds: list[str], documents: int) -> list[Bad]:
    files = write_documents(work / "documents", documents)
    with openai_server(demo) as server:
        settings = Settings(chat_model="demonstration", base_url=server.url, **EAGER)
        index_documents(work / "calm", IndexRequest(paths=(str(files),), method="llm"), settings)
    wanted = same(work / "calm")
    return [troubled(work, kind, files, wanted) for kind in kinds]


# ---- both ----------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = [*REPLIES, *FAULTS]
    parser.add_argument("--kills", type=int, default=20, help="how many processes are killed (0: none)")
    parser.add_argument("--bad", type=int, default=len(every), help="how many kinds of trouble (0: none)")
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        if options.kills:
            _head("corpus", "kills", "calls", "bought again", "never written", "same digest", "doctor")
            corpora = killed(Path(scratch) / "killed", options.kills, options.documents, options.seed)
            for number, one in enumerate(corpora, 1):
                good &= one.good
                _row(number, one.kills, one.calls, one.bought_again, one.unwritten, one.same, one.found)
        if options.bad:
            _head("trouble", "s", "degraded", "bad kept", "asked again", "left after", "same digest", "doctor", "")
            work, count = Path(scratch) / "misbehaving", max(4, options.documents // 5)
            for made in misbehaving(work, every[: options.bad], count):
                good &= made.good
                counts = (made.degraded, made.kept, made.asked_again, made.left)
                _row(made.kind, f"{made.seconds:.1f}", *counts, made.same, made.found, "" if made.good else "BROKEN")
    return 0 if good else 1


def _head(*names: str) -> None:
    print()
    _row(*names)
    _row(*("---" for _ in names))


def _row(*values: object) -> None:
    print(f"| {' | '.join(map(str, values))} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
