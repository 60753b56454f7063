"""The command `try`: indexes a folder and shows what it is about.

Takes parsed arguments; prints what the folder is about, three questions with the sentences that
answer them, and how to connect the assistants that are found on this machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli.output import Bar, app_of, elsewhere, existing, print_json, settings_of
from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.text.terms import counted

if TYPE_CHECKING:
    from graphrag_mcp.install.hosts import Host
    from graphrag_mcp.query.breadth import Line
    from graphrag_mcp.store.tables import Snapshot

PACKAGE = Path(__file__).resolve().parent.parent
TOPICS, QUESTIONS = 5, 3
READ = 5  # sentences of which one is chosen as the answer


def try_(options: argparse.Namespace) -> int:
    """Index a folder (a sample without one) and show what it is about, questions, how to connect."""
    folder = existing(options.folder) if options.folder else sample()
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder", "Name a folder of documents")
    corpus = _index(options, folder)
    if not corpus:
        print(f"There is no text in {folder} that can be read.", file=sys.stderr)
        return 1
    app = app_of(options)
    snapshot = app.snapshot(corpus)
    told = {"corpus": corpus, "about": _about(snapshot), "questions": _questions(snapshot)}
    found = _assistants()
    commands = [_connecting(host, folder, options) for host in found]
    if options.json:
        print_json(told | {"connect": [shlex.join(words) for words in commands]})
        return 0
    _print(told, elsewhere(app, corpus))
    return _connect(found, commands)


def sample() -> Path:
    """The sample corpus: inside the package, or in the checkout that it belongs to."""
    for place in (PACKAGE / "_sample", PACKAGE.parent / "docs" / "sample"):
        if place.is_dir():
            return place
    raise BadInput("the sample is not part of this installation", "Name a folder")


def _index(options: argparse.Namespace, folder: Path) -> str:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    app = app_of(options)
    corpus = options.corpus or ("" if options.folder else "sample")
    corpus = app.corpus_for_writing(corpus, folder)
    settings = settings_of(options)
    bar = Bar(sys.stderr.isatty() and not options.json)
    began = time.monotonic()
    try:
        result = index_documents(
            app.folder(corpus), IndexRequest((str(folder),)), settings, progress=bar
        )
    finally:
        bar.clear()
    counts = dict(result.counts) | {"documents": result.counts["documents_total"]}
    names = ("documents", "passages", "entities", "relationships")
    told = ", ".join(counted(counts[name], name) for name in names)
    print(f"{folder}: {told}, in {time.monotonic() - began:.1f} s.", file=sys.stderr)
    for error in result.errors[:5]:
        print(f"left out: {error['path']}: {error['reason']}", file=sys.stderr)
    return corpus if counts["passages"] else ""


def _about(snapshot: Snapshot) -> list[str]:
    from graphrag_mcp.query import topics

    return [f"{share}: {topic.title}" for topic, share in topics.largest(snapshot, TOPICS)]


def _questions(snapshot: Snapshot) -> list[dict[str, str]]:
    """A question on each of the largest topics, with the sentence that says most on it."""
    from graphrag_mcp.query import topics
    from graphrag_mcp.text.prose import stands_alone

    asked: list[dict[str, str]] = []
    seen: set[str] = set()
    for topic, _ in topics.largest(snapshot, 4 * QUESTIONS):
        best, chosen = 0.7, None  # a worse sentence answers nothing by itself
        for name in topic.names:
            question = f"What is said about {name}?"
            for line in _answers(snapshot, question):
                at = line.text.find(name)  # Sound is not in soundings
                value = stands_alone(line.text) * (0 if at < 0 else 1.5 if at < 5 else 1)
                value *= 0.5 + 0.5 * line.value
                if value > best and line.text not in seen:
                    best, chosen = value, (question, line)
        if chosen is not None:
            question, line = chosen
            seen.add(line.text)
            place = f"{line.hit.uri}:{line.hit.citation.line_start}"
            asked.append({"question": question, "answer": line.text, "source": place})
        if len(asked) == QUESTIONS:
            break
    return asked


def _answers(snapshot: Snapshot, question: str) -> list[Line]:
    from graphrag_mcp.query import local, passages

    found = local.find(snapshot, question)
    lines = passages.lines([local.source_of(snapshot, found)]) if found.passages else []
    return lines[:READ]


def _print(told: dict[str, Any], note: str) -> None:
    print("\nWhat it is about:")
    for line in told["about"]:
        print(f"  {line}")
    print("\nQuestions that it answers, with their sources:")
    for one in told["questions"]:
        print(f"  {one['question']}")
        print(f"    {one_line(one['answer'], 240)}")
        print(f"    {one['source']}")
    question = told["questions"][0]["question"] if told["questions"] else "What is this about?"
    print(f"\nAsk your own: graphrag-mcp search {shlex.quote(question)}")
    if note:
        print(f"  ({note})")


def _assistants() -> list[Host]:
    from graphrag_mcp.install.hosts import HOSTS, seen

    return [host for host in HOSTS if seen(host, os.environ, Path.home())]


def _connecting(host: Host, folder: Path, options: argparse.Namespace) -> list[str]:
    words = ["graphrag-mcp", "install", "--client", host.name, "--root", str(folder)]
    return [*words, "--home", options.home] if options.home else words


def _connect(found: Sequence[Host], commands: Sequence[list[str]]) -> int:
    """Connect assistants that the user says yes to; print the commands where no one is asked."""
    if not found:
        print("\nConnect an assistant: graphrag-mcp install --client NAME (--help lists them)")
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("\nConnect an assistant that was found on this machine:")
        for words in commands:
            print(f"  {shlex.join(words)}")
        return 0
    status = 0
    for host, words in zip(found, commands, strict=True):
        if input(f"\nConnect {host.title}? [y/N] ").strip().lower() in ("y", "yes"):
            done = subprocess.run([sys.executable, "-m", *_module(words)], check=False)
            status = status or done.returncode
    return status


def _module(words: Sequence[str]) -> list[str]:
    return ["graphrag_mcp", *words[1:]]


try_.__name__ = "try"  # what the user types
