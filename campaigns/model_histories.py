"""Random histories with a model: whatever failed, was off, was set otherwise or was edited by hand
on the way, the index is that of one undisturbed run.

    python campaigns/model_histories.py [--histories 50] [--seed 0]

The model is a real HTTP server on this machine whose answers are made of the prompt, so a fresh
index of the last folder under the last settings, with the same edits by hand, says what every
history has to end with: the same digests, a vector for every row, nothing pending, nothing that
doctor finds. Exit status 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from campaigns.model_campaign import EAGER, demo, findings, same
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.index.edits import Target, Wish, edit, replay
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.work import claim as claim_work
from graphrag_mcp.index.work import submit
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.manifest import read
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.openai_server import Server, openai_server
from tests.support.reply_forms import NOTHING, entity, records

Messages = list[dict[str, Any]]
PEOPLE = [f"{first} {last}" for first in "Ada Brynn Corvin Della Edda Falk".split() for last in ("Ashdown", "Brandt")]
BOARDS = [("Northern Harbour Board", "NHB"), ("Royal Tide Society", "RTS"), ("北方港口管理局", "北港局")]
KINDS = ("extract", "glean", "report")
# Communities of several levels, whose reports are made of reports; second looks; small texts.
DEEP = {**EAGER, "report_tokens": 400, "max_cluster_size": 6, "chunk_size": 200, "chunk_overlap": 20, "gleanings": "1"}
OTHER: dict[str, tuple[Any, ...]] = {
    "report_min_size": (2, 5),
    "report_min_units": (2,),
    "report_tokens": (300, 8000),
    "chunk_size": (300,),
    "entity_types": (("person", "event"),),
    "gleanings": ("0", "auto"),
    "output_language": ("French",),
    "embedding_model": ("", "other"),
}


def kind_of(messages: Messages) -> str:
    words = str(messages[0]["content"])
    if '"rating_explanation"' in words:
        return "report"
    return "glean" if len(messages) > 1 else "extract"


class Model:
    """Answers by what stands in the prompt, and nothing to a share of the questions of the kinds
    that are `bad`.
    """

    def __init__(self) -> None:
        self.bad: set[str] = set()
        self.share, self.day = 0.0, 0.0

    def __call__(self, messages: Messages, body: dict[str, Any]) -> str:
        chance = _number(self.day, str(messages[0]["content"]).split("A first reply")[0]) % 1000 / 1000
        kind = kind_of(messages)
        return "" if kind in self.bad and chance < self.share else said(messages, kind)


def said(messages: Messages, kind: str) -> str:
    """The demonstration model's answer; names by their short forms, second looks."""
    words = str(messages[0]["content"])
    text = (["", *re.findall(r"<text>\n(.*?)\n?</text>", words, re.DOTALL)])[-1]
    short = sorted(set(re.findall(r"\b[A-Z]{3}\b|北港局", text)))
    if kind == "glean":
        name = next((one for one in PEOPLE if one in text), "")
        return records(entity(name, f"{name} has a circle.", "concept")) if name else NOTHING
    reply = demo(messages)
    if kind == "extract":
        given = json.loads(reply)
        named = [entity(one, f"{one} is named in short.", "organization") for one in short]
        return records(*named, *given["entities"], *given["relationships"])
    return reply


def _number(*of: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(of).encode(), digest_size=6).digest())


def sentence(rng: random.Random) -> str:
    one, other = rng.sample(PEOPLE, 2)
    board, short = rng.choice(BOARDS)
    board = board.upper() if rng.random() < 0.2 else board
    return rng.choice(
        [
            f"{one} wrote to {other} about the {board}.",
            f"The {board} ({short}) was led by {one}.",
            f"The {short} paid {other}.",
            f"{one}在{short}会见了{other}。",
            f"{one} met {other} at the {board}.",
        ]
    )


def document(rng: random.Random) -> str:
    return "\n\n".join(" ".join(sentence(rng) for _ in range(rng.randint(2, 6))) for _ in range(rng.randint(2, 4)))


class History:
    """One folder and its index, and how it came about."""

    def __init__(self, home: Path, seed: int, server: Server, model: Model) -> None:
        self.rng, self.server, self.model = random.Random(seed), server, model
        self.home, self.docs, self.corpus = home, home / "docs", home / "corpora" / "c"
        self.chosen: dict[str, Any] = dict(DEEP)
        self.told: list[str] = []
        self.docs.mkdir(parents=True)
        for number in range(self.rng.randint(4, 7)):
            (self.docs / f"{number}.md").write_text(document(self.rng), "utf-8")

    def run(self, corpus: Path | None = None, method: str = "", **more: Any) -> IndexResult:
        cancelled, recluster = more.pop("cancelled", lambda: False), more.pop("recluster", False)
        on = {"chat_model": "m", "base_url": self.server.url, "max_retries": 0, "home": self.home}
        method = method or ("llm" if more.get("chat_model", "m") else "auto")
        request = IndexRequest(
            (str(self.docs),),
            remove_missing=True,
            method=method,
            recluster=recluster,
            retry_refused=True,  # the model that refuses is another one after a while
        )
        given = Settings(**{**self.chosen, **on, **more})
        result = index_documents(corpus or self.corpus, request, given, cancelled=cancelled)
        self.told.append(f"{method} {more} {sorted(self.model.bad)} {result.status} {result.pending}")
        return result

    def step(self) -> None:
        rng = self.rng
        for _ in range(rng.randint(0, 2)):
            self.edit_folder()
        if rng.random() < 0.3:
            name = rng.choice(sorted(OTHER))
            self.chosen[name] = rng.choice((DEEP.get(name, getattr(Settings(), name)), *OTHER[name]))
            self.told.append(f"{name} = {self.chosen[name]}")
        self.model.day, self.model.share = rng.random(), rng.choice((0.3, 0.6, 1.0))
        what = rng.choice(("good", "bad", "bad", "bad", "off", "budget", "cancelled", "agent"))
        if what == "bad":
            self.model.bad = set(rng.sample(KINDS, rng.choice((1, 1, 2, 5))))
            self.run(**({"embedding_base_url": "http://127.0.0.1:9/v1"} if rng.random() < 0.3 else {}))
            self.model.bad = set()
        elif what == "cancelled":
            left = iter(range(rng.randint(1, 20)))
            self.run(cancelled=lambda: next(left, None) is None)
        elif what == "agent":
            self.agent()
        else:
            self.run(**{"off": {"chat_model": ""}, "budget": {"max_calls": rng.randint(1, 50)}}.get(what, {}))
        if rng.random() < 0.4 and read(self.corpus) is not None:
            self.by_hand()

    def edit_folder(self) -> None:
        rng, files = self.rng, sorted(self.docs.iterdir())
        what, path = rng.choice(("add", "edit", "rename", "delete", "copy")), rng.choice(files)
        new = self.docs / f"f{rng.randrange(10**6)}.md"
        if what == "add" or len(files) < 4:
            new.write_text(document(rng), "utf-8")
        elif what == "edit":
            parts = path.read_text("utf-8").split("\n\n")
            parts[rng.randrange(len(parts))] = sentence(rng)
            path.write_text("\n\n".join(parts), "utf-8")
        elif what == "copy":
            new.write_bytes(path.read_bytes())
        else:
            path.rename(new)
            if what == "delete":
                new.unlink()

    def agent(self) -> None:
        """Some of the work is done by an agent, perhaps after a text has changed."""
        rng, given = self.rng, Settings(**{**self.chosen, "home": self.home})
        self.run(method="agent", chat_model="")
        items = claim_work(self.corpus, given, "ada", max_items=20).items
        if rng.random() < 0.4:
            self.edit_folder()
            self.run(chat_model="")
        results = []
        for item in rng.sample(items, rng.randint(0, len(items))):
            asked = [{"role": "user", "content": item.prompt}]
            results.append({"work_id": item.work_id, "text": said(asked, kind_of(asked))})
        submit(self.corpus, given, "ada", results)
        self.run(method="agent", chat_model="")

    def by_hand(self) -> None:
        rows = open_snapshot(self.corpus).rows("entities", columns=["key", "title"]).to_pylist()
        if len(rows) < 2:
            return
        one, other = self.rng.sample(sorted(rows, key=lambda row: row["key"]), 2)
        op = self.rng.choice(("merge", "rename", "update", "delete"))
        targets = [Target((row["key"],), (row["title"],)) for row in (one, other)[: 2 if op == "merge" else 1]]
        words = {"rename": {"title": f"{one['title']} by hand"}, "update": {"description": "Said by hand."}}
        try:
            edit(self.corpus, Wish(op, targets, words.get(op, {}), "ada"), dry_run=False)
            self.told.append(f"{op} {one['key']} {other['key']}")
        except GraphRAGError as error:
            self.told.append(f"{op}: {error}")

    def wrong(self) -> list[str]:
        """What a good run leaves that is not as a fresh index has it."""
        left = {kind: count for kind, count in self.run().pending.items() if kind != "embedding"}
        fresh, found = self.home / "corpora" / "fresh", [f"pending: {left}"] if left else []
        self.run(fresh)
        if rows := logs.load(self.corpus, read(self.corpus)):
            replay(fresh, rows)
            self.run(fresh)
        if same(self.corpus)["content"] != same(fresh)["content"]:
            found.append("the content is not that of a fresh index")
        for corpus in (self.corpus, fresh):
            self.run(corpus, recluster=True)
        if same(self.corpus) != same(fresh):
            found.append("after recluster it is not a fresh index")
        snapshot = open_snapshot(self.corpus)
        for table, vectors in VECTORS.items() if self.chosen["embedding_model"] else ():
            if snapshot.count(table) != snapshot.count(vectors):
                found.append(f"{snapshot.count(table)} {table}, {snapshot.count(vectors)} vectors")
        return found + findings(self.corpus)


def history(home: Path, seed: int, server: Server, model: Model) -> tuple[list[str], list[str]]:
    """What is wrong after one random history, and the history."""
    made = History(home, seed, server, model)
    try:
        for _ in range(made.rng.randint(2, 5)):
            made.step()
        return made.wrong(), made.told
    except Exception as error:  # the campaign goes on
        return [f"{type(error).__name__}: {error}"], made.told


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--histories", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.ERROR)
    model, faults = Model(), 0
    with openai_server(model) as server:
        for seed in range(options.seed, options.seed + options.histories):
            with tempfile.TemporaryDirectory() as home:
                wrong, told = history(Path(home), seed, server, model)
            server.requests.clear()
            faults += bool(wrong)
            print(json.dumps({"history": seed, "wrong": wrong, **({"told": told} if wrong else {})}), flush=True)
    print(f"{options.histories} histories, {faults} with a fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
