"""A chat model played by a reader: requests wait as files, replies are read from files.

    live.py run WORK        index documents/ and ask questions.json; WORK/asks fills with requests
    live.py open WORK       the requests that have no reply yet
    live.py record WORK     keep requests and replies in recorded/
    live.py replay          records in each kept reply against records that the parsers keep
    live.py judged          the marks of judged.json by way of searching

Knows the OpenAI protocol, and of the product its commands, its prompts and its parsers.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
# One reader answers all: a request waits for ten hours.
SETTINGS = 'chat_model = "live"\ntimeout_seconds = 36000\nmax_retries = 0\n'


# ---- requests and replies as files ----------------------------------------------------------------


class Folder:
    """Requests as NNNN.ask.md, replies as NNNN.reply.md. The same request is the same file."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        path.mkdir(parents=True, exist_ok=True)
        self.known = {one.read_text("utf-8"): one.name[:4] for one in sorted(path.glob("*.ask.md"))}

    def number(self, body: dict[str, Any]) -> str:
        asked = "\n\n".join(f"=== {m['role']} ===\n{m['content']}" for m in body["messages"])
        if form := body.get("response_format"):
            asked += f"\n\n=== response_format ===\n{json.dumps(form, ensure_ascii=False)}"
        with self.lock:
            if asked not in self.known:
                self.known[asked] = number = f"{len(self.known) + 1:04d}"
                held = self.path / f"{number}.json"
                kept = {"messages": body["messages"], "response_format": form}
                held.write_text(json.dumps(kept, ensure_ascii=False), "utf-8")
                (self.path / f"{number}.ask.md").write_text(asked, "utf-8")
            return self.known[asked]

    def reply(self, number: str) -> str:
        path = self.path / f"{number}.reply.md"
        while not path.exists():
            time.sleep(0.1)
        return path.read_text("utf-8")

    def open(self) -> list[Path]:
        asked = sorted(self.path.glob("*.ask.md"))
        return [one for one in asked if not (self.path / f"{one.name[:4]}.reply.md").exists()]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "live", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = self.server.folder.number(body)
        text = self.server.folder.reply(number)
        sent = len(json.dumps(body["messages"], ensure_ascii=False)) // 4
        usage = {"prompt_tokens": sent, "completion_tokens": len(text) // 4, "total_tokens": sent + len(text) // 4}
        made = {"id": number, "created": 0, "model": "live", "usage": usage}
        said = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop"}
        if not body.get("stream"):
            self._send({**made, "object": "chat.completion", "choices": [{**choice, "message": said}]})
            return
        part = {**made, "object": "chat.completion.chunk", "choices": [{**choice, "delta": said}]}
        events = f"data: {json.dumps(part)}\n\ndata: [DONE]\n\n"
        self._send_bytes(events.encode(), "text/event-stream")

    def _send(self, value: object) -> None:
        self._send_bytes(json.dumps(value).encode(), "application/json")

    def _send_bytes(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def bridge(folder: Path, port: int = 0) -> Iterator[str]:
    """The address of a server that has `folder` answer."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads, server.folder = True, Folder(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


# ---- the run --------------------------------------------------------------------------------------


def run(work: Path) -> None:
    """Index, then ask; every result is kept, so a run that was stopped goes on."""
    home, results = work / "home", work / "results"
    for folder in (home, results):
        folder.mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(SETTINGS, "utf-8")
    with bridge(work / "asks") as url:
        environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x"}
        environment["GRAPHRAG_MCP_SETTINGS"] = str(home / "settings.toml")
        environment["GRAPHRAG_MCP_ROOTS"] = str(HERE)
        call = partial(_command, home, environment)
        print(f"requests: {work / 'asks'}", flush=True)
        index = ["index", str(HERE / "documents"), "--method", "llm"]
        for name, more in (("dry-run", ["--dry-run"]), ("index", [])):
            if not (results / f"{name}.json").exists():
                _keep(results / f"{name}.json", call(*index, *more))
        for one in json.loads((HERE / "questions.json").read_text("utf-8")):
            path = results / f"{one['id']}.json"
            if path.exists():
                continue
            print(f"{one['id']}: {one['question']}", flush=True)
            words = ["search", one["question"], "--mode", one["mode"], "--max-tokens", "6000"]
            said = call(*words, *([] if one["mode"] == "drift" else ["--answer"]))
            _keep(path, {**one, "result": said})


def _command(home: Path, environment: dict[str, str], *words: str) -> Any:
    command = [sys.executable, "-m", "graphrag_mcp", *words, "--home", str(home), "--corpus", "live", "--json"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8")
    if not done.stdout.strip():
        raise SystemExit(f"no result of: {' '.join(words)}")
    return json.loads(done.stdout)


def _keep(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


# ---- fixtures -------------------------------------------------------------------------------------


def kind_of(messages: Sequence[dict[str, str]]) -> str:
    """The prompt that a request was made from: the one whose longest constant part it holds."""
    from graphrag_mcp.llm import prompts

    asked = messages[-1]["content"]
    found = ("", 0)
    for name in prompts.names():
        if name == "extract_examples":  # a part of extract
            continue
        template = prompts.load(name).template
        parts = re.split(r"\$\{?\w+\}?", template)
        longest = max(parts, key=len).strip()
        if longest and longest in asked and len(longest) > found[1]:
            found = (name, len(longest))
    return found[0]


def about(kind: str, messages: Sequence[dict[str, str]]) -> str:
    """What a request is about, whatever the words of its prompt: the text that is read, the
    entities of a report one a line, else the question."""
    asked = messages[0]["content"]
    if kind in ("extract", "extract_more"):
        return asked.rpartition("<text>")[2].rpartition("</text>")[0].strip()
    if kind == "report":
        table = asked.rpartition("<context>")[2].partition("\nRelationships\n")[0]
        return "\n".join(row[1] for row in csv.reader(table.splitlines()) if row and row[0].isdecimal())
    questions = re.findall(r"^Question: (.+)$", messages[-1]["content"], re.MULTILINE)
    return questions[-1] if questions else messages[-1]["content"].strip().splitlines()[-1]


class Recorded:
    """The kept replies as a model: a request gets the reply to a request of its kind that was about
    the same. `missing`: kind and subject of requests that no reply was kept for."""

    def __init__(self, folder: Path) -> None:
        self.kept = [json.loads(one.read_text("utf-8")) for one in sorted(folder.glob("*.json"))]
        self.missing: list[tuple[str, str]] = []

    def reply(self, messages: Sequence[dict[str, str]]) -> str:
        kind = kind_of(messages)
        wanted = about(kind, messages)
        of_kind = [one for one in self.kept if one["kind"] == kind]
        same = [one for one in of_kind if one["about"] == wanted]
        if not same and kind == "report":  # of the community that has most entities with it
            same = sorted(of_kind, key=lambda one: -_shared(one["about"], wanted))[:1]
            same = [one for one in same if _shared(one["about"], wanted) >= 0.5]
        if not same and kind == "extract_more":
            return '{"entities": [], "relationships": []}'
        if not same:
            self.missing.append((kind, wanted[:80]))
        return same[0]["reply"] if same else ""


def _shared(some: str, others: str) -> float:
    one, other = set(some.splitlines()), set(others.splitlines())
    return len(one & other) / max(1, len(one | other))


def record(work: Path, reader: str) -> int:
    """Keep replies as recorded/NNNN.json in the place of those that were there; gives how many."""
    RECORDED.mkdir(exist_ok=True)
    for old in RECORDED.glob("*.json"):
        old.unlink()
    count = 0
    for held in sorted((work / "asks").glob("*.json")):
        reply = held.with_name(f"{held.stem}.reply.md")
        if not reply.exists():
            continue
        asked = json.loads(held.read_text("utf-8"))
        kind = kind_of(asked["messages"])
        one = {
            "kind": kind,
            "reader": reader,
            "about": about(kind, asked["messages"]),
            "reply": reply.read_text("utf-8"),
        }
        _keep(RECORDED / held.name, one)
        count += 1
    return count


def replay(one: dict[str, Any]) -> tuple[int, int]:
    """Records in a kept reply, and those that the product's parser keeps or counts as left out."""
    from graphrag_mcp.index import records, report_reply
    from graphrag_mcp.query import model_replies

    kind, reply = one["kind"], one["reply"]
    if kind in ("extract", "extract_more"):
        found = records.parse(reply, (), one["about"])
        kept = len(found.entities) + len(found.relations) + sum(found.dropped.values())
        return _listed(reply, "entities") + _listed(reply, "relationships"), kept
    if kind == "report":
        return _listed(reply, "findings"), len(report_reply.parse_report(reply).findings)
    if kind in ("drift_auto_primer", "drift_auto_step"):  # follow-ups that ask nearly the same are one
        return 1, int(bool(model_replies.read_node(reply).answer))
    return 1, int(bool(model_replies.read_answer(reply)))


def _listed(reply: str, key: str) -> int:
    """Entries of one list of the JSON in a reply; 0 where it is no JSON."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        held = json.loads(reply[start : end + 1])
    except ValueError:
        return 0
    return len([one for one in held.get(key, ()) if not isinstance(one, dict) or one.get("score") != 0])


def report() -> int:
    """Print what was in and what was kept by kind; 1 when anything well-formed was lost."""
    totals: dict[str, list[int]] = {}
    for path in sorted(RECORDED.glob("*.json")):
        one = json.loads(path.read_text("utf-8"))
        there, kept = replay(one)
        sums = totals.setdefault(one["kind"], [0, 0, 0])
        totals[one["kind"]] = [sums[0] + 1, sums[1] + there, sums[2] + min(kept, there)]
        if kept < there:
            print(f"{path.name} ({one['kind']}): {there} records, {kept} kept")
    for kind, (replies, there, kept) in sorted(totals.items()):
        print(f"{kind}: {replies} replies, {there} records, {kept} kept")
    return int(any(there > kept for _, there, kept in totals.values()))


CRITERIA = ("comprehensiveness", "diversity", "empowerment", "directness")


def judged() -> int:
    """Print the means of the marks by way and mode of the question, and the claims."""
    answers = json.loads((HERE / "judged.json").read_text("utf-8"))["answers"]
    questions = json.loads((HERE / "questions.json").read_text("utf-8"))
    modes = {one["id"]: one["mode"] for one in questions}
    print("way | questions |", " | ".join(CRITERIA), "| claims supported")
    for way in ("local", "global", "drift", "vector"):
        for mode in ("all", "local", "global", "drift"):
            of = [one for one in answers if one["way"] == way and mode in ("all", modes[one["question"]])]
            means = (f"{sum(one[name] for one in of) / len(of):.1f}" for name in CRITERIA)
            claims = (sum(one[name] for one in of) for name in ("claims_supported", "claims"))
            print(f"{way} | {mode} ({len(of)}) |", " | ".join(means), "|", " of ".join(map(str, claims)))
    return 0


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "open", "record", "replay", "judged"))
    parser.add_argument("work", type=Path, nargs="?")
    parser.add_argument("--reader", default="", help="record: who wrote the replies, e.g. a model's name")
    options = parser.parse_args(words)
    if options.command in ("replay", "judged"):
        return report() if options.command == "replay" else judged()
    if options.work is None:
        parser.error(f"{options.command} needs the folder WORK")
    if options.command == "run":
        run(options.work.resolve())
    elif options.command == "open":
        print(*Folder(options.work / "asks").open(), sep="\n")
    else:
        print(f"{record(options.work, options.reader)} replies in {RECORDED}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
