"""Commands that write: serve, index, edit, remove, tune, init, answers; and `try`, which shows what
a folder is about."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli import output
from graphrag_mcp.cli.output import asked
from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.index.losses import RECORDS, in_words
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.settings import VECTORS
from graphrag_mcp.text.terms import by_reason, counted
from graphrag_mcp.text.uris import file_and_key
from graphrag_mcp.trust import fencing
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.install.hosts import Host
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import IndexResult


PACKAGE = Path(__file__).resolve().parent.parent
TOPICS, QUESTIONS = 5, 3
READ = 5  # passages whose sentences are compared for an answer


def try_(options: argparse.Namespace) -> int:
    """Index a folder (or the sample), show its topics and three answers, and say how to connect."""
    from graphrag_mcp.install.hosts import here
    from graphrag_mcp.query import topics

    folder = output.existing(options.folder) if options.folder else sample()
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder", "Name a folder of documents")
    corpus = _index(options, folder)
    if not corpus:
        print(f"There is no text in {folder} that can be read.", file=sys.stderr)
        return 1
    app = output.app_of(options)
    snapshot = app.snapshot(corpus)
    about = [f"{share}: {topic.title}" for topic, share in topics.largest(snapshot, TOPICS)]
    questions = _questions(snapshot)
    record = {"corpus": corpus, "about": about, "questions": questions}
    found = here(os.environ, Path.home())
    of_home = ["--home", options.home] if options.home else []
    words = ["graphrag-mcp", "install", "--client"]
    commands = [[*words, host.name, "--root", str(folder), *of_home] for host in found]
    if options.json:
        return output.say(options, record | {"connect": [shlex.join(words) for words in commands]})
    print("\nWhat it is about:", *about, sep="\n  ")
    print("\nQuestions that it answers, with their sources:")
    for example in questions:
        print(f"  {example['question']}", one_line(example["answer"], 240), example["source"], sep="\n    ")
    question = questions[0]["question"] if questions else "What is this about?"
    print(f"\nAsk your own: graphrag-mcp search {shlex.quote(question)}")
    if note := output.elsewhere(app, corpus):
        print(f"  ({note})")
    return _connect(found, commands)


def sample() -> Path:
    """The sample corpus: inside the package, or in the checkout that it belongs to."""
    for place in (PACKAGE / "_data" / "sample", PACKAGE.parent / "docs" / "sample"):
        if place.is_dir():
            return place
    raise BadInput("the sample is not part of this installation", "Name a folder")


def _index(options: argparse.Namespace, folder: Path) -> str:
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    app = output.app_of(options)
    corpus = options.corpus or ("" if options.folder else "sample")
    corpus = app.corpus_for_writing(corpus, folder)
    request, began = IndexRequest((str(folder),)), time.monotonic()
    with output.Bar(options) as bar:
        result = index_documents(app.folder(corpus), request, app.settings, progress=bar)
    counts = dict(result.counts) | {"documents": result.counts["documents_total"]}
    uris = app.snapshot(corpus).rows("documents", "", ["uri"])["uri"].to_pylist() if counts["documents"] else []
    counts["files"] = len({file_and_key(str(uri))[0] for uri in uris})  # a row of a table is a document
    names = ("files", "documents", "passages", "entities", "relationships")
    listed = ", ".join(counted(counts[name], name) for name in names)
    print(f"{folder}: {listed}, in {time.monotonic() - began:.1f} s.", file=sys.stderr)
    for error in result.errors[:5]:
        print(f"left out: {error['path']}: {error['reason']}", file=sys.stderr)
    return corpus if counts["passages"] else ""


def _questions(snapshot: Snapshot) -> list[dict[str, str]]:
    """A question on each of the largest topics, with the sentence that names what is asked about and says
    most on the topic. Names alone say nothing on it: a list of those who took part has most of them."""
    from graphrag_mcp.query import local, topics
    from graphrag_mcp.query.question import term_worth
    from graphrag_mcp.query.survey import survey
    from graphrag_mcp.text import quote

    asked: list[dict[str, str]] = []
    seen: set[str] = set()
    for topic, _ in topics.largest(snapshot, 4 * QUESTIONS):
        worth = quote.weights_of([text for text, _ in topic.said], lambda found: term_worth(snapshot, found)[0])
        for name in topic.names:
            question = f"What is said about {name}?"
            ranked = local.asked(("", snapshot, None), question)
            lines = survey([ranked]).lines[:READ] if ranked else []
            found = [
                (quotation.score, -place, quotation.text)
                for place, line in enumerate(lines)
                for quotation in quote.scored(line.hit.body, worth)
                if name in quotation.text and quotation.text not in seen
            ]
            if found:
                _, place, text = max(found)
                seen.add(text)
                hit = lines[-place].hit
                source = f"{hit.uri}:{hit.citation.line_start}"
                asked.append({"question": question, "answer": text, "source": source})
                break
        if len(asked) == QUESTIONS:
            break
    return asked


def _connect(found: Sequence[Host], commands: Sequence[list[str]]) -> int:
    """Connect assistants that the user says yes to; print the commands where no one is asked."""
    if not found:
        print("\nConnect an assistant: graphrag-mcp install --client NAME (--help lists them)")
        return 0
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        heading = "\nConnect an assistant that was found on this machine:"
        print(heading, *map(shlex.join, commands), sep="\n  ")
        return 0
    status = 0
    for host, words in zip(found, commands, strict=True):
        if input(f"\nConnect {host.title}? [y/N] ").strip().lower() in ("y", "yes"):
            command = [sys.executable, "-m", "graphrag_mcp", *words[1:]]
            done = subprocess.run(command, check=False)
            status = status or done.returncode
    return status


YES = "Nothing was changed. The same with --yes does it."


def edit(options: argparse.Namespace) -> int:
    """Create, update, rename, merge or delete entities and relationships; undo edits; list edits, and
    names that may mean the same entity."""
    from graphrag_mcp.store.edit_log import in_force
    from graphrag_mcp.tools.edit import edit as change  # the edit_graph tool, without its wire

    app = output.app_of(options)
    if options.op == "replay":
        return _replay(app, options)
    if options.op == "log" and options.json:
        rows = in_force(app.snapshot(options.corpus)).log  # as they are: what `edit replay` takes
        output.print_json({"edits": list(map(asdict, rows))}, exact=True)
        return 0
    arguments = (options.corpus, options.op, options.ids, options.set)
    result = change(app, *arguments, f"cli:{_user()}", not options.yes, wait=True)
    return _shown(options, result, result.dry_run and options.op not in ("log", "proposals"))


def remove(options: argparse.Namespace) -> int:
    """Remove documents from the index for good: indexing their folder again does not add them."""
    from graphrag_mcp.tools.edit import remove as take_out

    arguments = (options.corpus, options.ids, f"cli:{_user()}", not options.yes)
    result = take_out(output.app_of(options), *arguments, wait=True)
    _shown(options, result, result.dry_run)
    return 1 if result.unknown else 0


def note(options: argparse.Namespace) -> int:
    """Write a Markdown note whose ids become links to their sources; undo the last write."""
    from graphrag_mcp.app import App
    from graphrag_mcp.tools.notes import Note, write_now

    settings = output.settings_of(options, notes=options.notes)
    if settings.notes:  # the command line may write where its user may
        settings = replace(settings, roots=(*settings.roots, Path(settings.notes)))
    text = options.text
    if not text and options.op != "undo" and not sys.stdin.isatty():
        text = sys.stdin.read()
    draft = Note(options.title, text, options.folder, options.op, options.check)
    result = write_now(App(settings), draft, options.corpus, f"cli:{_user()}")
    return output.show(options, result)


def _shown(options: argparse.Namespace, result: Any, tried: bool) -> int:
    if tried and not options.json and not result.text.startswith("Nothing"):
        result.text += f"\n{YES}"
    result.next_call = ""
    return output.show(options, result)


def _replay(app: App, options: argparse.Namespace) -> int:
    """The edits of a file that `edit log --json` wrote, put into an index without any."""
    from graphrag_mcp.index.edits import replay
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.store import stored
    from graphrag_mcp.store.edit_log import LogRow
    from graphrag_mcp.types import IndexRequest

    if len(options.ids) != 1:
        raise BadInput("replay takes one file", "Write it with graphrag-mcp edit log --json")
    path = output.existing(options.ids[0])
    try:
        content = stored.parsed(path.read_bytes(), dict[str, Any])
        rows = stored.shaped(content.get("edits"), list[LogRow])
    except ValueError as error:
        what = f"{path.name} is no log of edits"
        raise BadInput(what, "Write it with graphrag-mcp edit log --json") from error
    if not options.yes:
        return output.show(options, Result(text=f"The log has {counted(len(rows), 'rows')}. {YES}"))
    folder = app.folder(app.corpus_for_reading(options.corpus))
    result = replay(folder, rows)
    index_documents(folder, IndexRequest(), app.settings)
    return output.show(options, result)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "someone"


SHOWN_REASONS = 20  # for which files were passed over, with their names
SHOWN_LOSSES = 20  # text units whose losses are told with their reasons; all of them with --json


def serve(options: argparse.Namespace) -> int:
    """Serve the tools to a client over MCP, on stdin and stdout or over HTTP."""
    settings = output.settings_of(options, roots=options.root, notes=options.notes)
    offer = {"tools": options.tools, "read_only": options.read_only, "compat": options.chatgpt}
    offer["corpus"] = options.corpus
    if options.http:
        from graphrag_mcp import http

        offer |= {"allow_hosts": options.allow_host or (), "workers": options.workers}
        http.serve(settings, options.host, options.port, **offer)
        return 0
    from graphrag_mcp import server

    if sys.stdin.isatty():
        message = "This terminal now speaks MCP, which is for a host. Ctrl-C, then: graphrag-mcp --help"
        print(message, file=sys.stderr)
    server.serve(settings, **offer)
    return 0


def index(options: argparse.Namespace) -> int:
    """Index folders and files: add new ones, update changed ones, remove deleted ones."""
    if options.job:
        from graphrag_mcp.jobs import start

        return 0 if start.run_job(output.settings_of(options), options.job).status == "done" else 1
    if not options.paths:
        advice = "Name one, for example: graphrag-mcp index docs"
        raise BadInput("index needs a folder or file", advice)
    if options.watch:
        return _watch(options)
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    paths = tuple(str(output.existing(path)) for path in options.paths)
    app = output.app_of(options)
    budget = {name: getattr(options, name) for name in ("max_calls", "max_tokens", "max_cost")}
    engine = {"engine": options.engine, "engine_address": options.address}
    settings = output.settings_of(options, **budget, **engine)
    if options.vectors and not settings.embedding_model:
        settings = replace(settings, embedding_model=VECTORS)
    nothing = any(value == 0 for value in budget.values())
    if nothing:  # said here, a budget of 0 is one; in the settings 0 is none
        settings = replace(settings, max_calls=-1)
    corpus = app.corpus_for_writing(options.corpus, paths[0])
    names = ("method", "remove_missing", "recluster", "dry_run", "refresh_answers", "retry_refused")
    request = IndexRequest(paths, **{name: getattr(options, name) for name in names})
    began = time.monotonic()
    if not options.dry_run and not nothing:  # an open job has a budget of its own
        from graphrag_mcp.jobs import start

        start.finish_open(settings, corpus)
    ended = partial(print, "graphrag-mcp:", file=sys.stderr, flush=True)
    with output.Bar(options) as bar:
        result = index_documents(app.folder(corpus), request, settings, progress=bar, ended=ended)
    result = result.model_copy(update={"corpus": corpus})
    elapsed = time.monotonic() - began
    if options.json:
        output.print_json(_index_record(result, elapsed))
    else:
        _print_index(result, elapsed)
    if result.status == "done" and not options.json:
        if remark := output.elsewhere(app, corpus):
            print(remark, file=sys.stderr)
        if sys.stderr.isatty():
            named = f" --corpus {corpus}" if remark else ""
            print(f'next: graphrag-mcp search "YOUR QUESTION"{named}', file=sys.stderr)
            print("      graphrag-mcp install    connects an MCP client", file=sys.stderr)
    if settings.chat_model and _still_open(result) and not nothing:
        answered = result.usage.get("output_tokens", 0)
        if not answered and result.degraded:
            print("graphrag-mcp: the model answered none of its questions", file=sys.stderr)
            return 1
    from graphrag_mcp.sources.diff import UNREAD

    # A file in a folder that cannot be read is named; the run fails only where it leaves nothing to search.
    nothing_read = result.errors and not result.counts.get("documents_total")
    failed = [error for error in result.errors if error.get("kind") != UNREAD]
    return 0 if result.status in ("done", "estimate") and not failed and not nothing_read else 1


def _watch(options: argparse.Namespace) -> int:
    """Indexes, then again after every change of a file, until Ctrl-C."""
    from graphrag_mcp.jobs.watch import changes

    if options.dry_run:
        raise BadInput("--watch and --dry-run exclude each other", "Leave one of them out")
    named = [Path(path).expanduser().absolute() for path in options.paths]
    for path in options.paths:
        output.existing(path)

    def gone(path: str) -> None:
        print(f"{path} is gone; waiting until it is there again", file=sys.stderr, flush=True)

    home = output.settings_of(options).home.resolve()
    for number, folders in enumerate(changes(named, home, gone)):
        paths = [str(path) for path in folders]
        _again(argparse.Namespace(**{**vars(options), "watch": False, "paths": paths}))
        if not number:
            print("watching for changes; Ctrl-C ends it", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _again(options: argparse.Namespace) -> None:
    try:
        index(options)
    except GraphRAGError as error:  # such as a folder that is empty for a moment
        output.failed(options, error, 1)


def _index_record(result: IndexResult, elapsed: float) -> dict[str, Any]:
    """What `index --json` prints: no budget fields, and what was asked of models."""
    of_budget = {"text", "tokens", "truncated", "next_cursor", "next_call", "poll_after_ms"}
    record, usage = result.model_dump(mode="json", exclude=of_budget), result.usage
    tokens = usage.get("prompt_tokens", 0) + usage.get("output_tokens", 0)
    record |= {"calls": usage.get("calls", 0), "tokens": tokens}
    return {**record, "elapsed_seconds": round(elapsed, 3)}


def _still_open(result: IndexResult) -> Counter[str]:
    """The questions that the next run asks, by kind: without those that were refused twice."""
    return Counter(result.pending) - Counter(result.refused)


def _print_index(result: IndexResult, elapsed: float) -> None:
    if result.status == "estimate":
        print("\n".join(output.estimated(result)))
    else:
        print(output.changed(result, result.corpus, elapsed))
    if result.usage.get("calls"):
        print(f"asked models {asked(result.usage, ': ')}")
    if open_ := _still_open(result):
        what = f"a model has still to answer: {output.counts_line(open_)} (run it again)"
        print(what, file=sys.stderr)
    if result.refused:
        what = f"replies were refused twice: {output.counts_line(result.refused)}"
        print(f"{what} (asked again with --retry-refused)", file=sys.stderr)
    if result.pending:
        reasons = Counter(question["reason"] for question in result.degraded if question["kind"] != RECORDS)
        for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
            print(f"  {count:,} x {reason}", file=sys.stderr)
    if losses := in_words(result.losses):
        print(f"records of the replies: {losses}", file=sys.stderr)
        for loss in [loss for loss in result.degraded if loss["kind"] == RECORDS][:SHOWN_LOSSES]:
            print(f"  {loss['id']} {loss['document']}: {loss['reason']}", file=sys.stderr)
    if result.skipped:
        named = list(by_reason(result.skipped_files).items())[:SHOWN_REASONS]
        rest = {reason: n for reason, n in result.skipped.items() if reason not in dict(named)}
        counts = f" {output.counts_line(rest)}" if rest else ""
        print(f"skipped by rule:{counts}")
        for reason, paths in named:
            print(fencing.clean(f"  {result.skipped.get(reason, 0):,} {reason}: {paths}"))
    if result.hint:
        print(f"hint: {output.as_commands(result.hint)}", file=sys.stderr)
    for reason, paths in by_reason(result.errors).items():
        print(f"left out: {paths}: {reason}", file=sys.stderr)


def tune(options: argparse.Namespace) -> int:
    """Fit the prompts of an index to its texts, with the configured model."""
    from graphrag_mcp.evaluate.tune import tune as fit

    app = output.app_of(options)
    corpus = app.corpus_for_reading(options.corpus)
    if not app.settings.chat_model:
        advice = "Set GRAPHRAG_MCP_CHAT_MODEL, or give an agent the MCP prompt tune_prompts"
        raise BadInput("tuning needs a chat model and none is configured", advice)
    found = fit(
        app.folder(corpus), app.snapshot(corpus), app.settings, app.asker(corpus), options.domain, options.language
    )
    files, hint = [str(path) for path in found.files], ""
    if found.files:
        hint = "; index --method llm reads the texts with these prompts"
    domain, language = found.domain or "domain unknown", found.language or "an unknown language"
    types = ", ".join(found.entity_types) or "any"
    lines = [f"{corpus}: {domain}, in {language}"]
    lines.append(f"entity types: {types}")
    lines += [f"wrote {path}" for path in files] or ["nothing was written"]
    lines.append(f"asked {counted(found.usage.get('calls', 0), 'times')}{hint}")
    output.say(options, {**asdict(found), "files": files}, *lines)
    for reason in found.degraded:
        print(f"default kept: {reason}", file=sys.stderr)
    return 0 if found.files else 1


def init(options: argparse.Namespace) -> int:
    """Write a settings file with every default, and the prompts, into a folder."""
    from graphrag_mcp.install.init import init as write

    written = write(Path(options.folder).expanduser().absolute(), options.force)
    lines = [f"wrote {written[0]} and {len(written) - 1} files of prompts"]
    lines.append(f"use it with GRAPHRAG_MCP_SETTINGS={written[0]}")
    return output.say(options, {"files": [str(path) for path in written]}, *lines)


def answers(options: argparse.Namespace) -> int:
    """List or delete the stored replies of models and agents for an index."""
    from graphrag_mcp.store.shared_replies import book as opened

    app = output.app_of(options)
    with contextlib.closing(opened(app.folder(app.corpus_for_reading(options.corpus)))) as book:
        book.probe()
        if options.action == "clear":
            removed = book.clear(options.kind)
            print(json.dumps({"cleared": removed}) if options.json else f"forgot {removed:,} answers")
        elif options.json:
            output.print_json({"kinds": book.kinds(), "answers": list(book.listing(options.kind))})
        elif options.kind:
            if not (found := list(book.listing(options.kind))):
                kinds = ", ".join(book.kinds()) or "none at all"
                print(f"no answers of the kind {options.kind!r}; there are: {kinds}")
            for answer in found:
                tokens = f"{answer['prompt_tokens']:,} in, {answer['output_tokens']:,} out"
                print(f"{answer['time']} {answer['key'][:12]} {answer['answerer']} {tokens}")
        else:
            lines = [f"{kind} {count:,}" for kind, count in book.kinds().items()]
            print("\n".join(lines) or "the reply cache is empty")
    return 0
