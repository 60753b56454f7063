"""The command line: the street door for humans and scripts, and the only module that prints.

Takes arguments; prints Markdown, or with `--json` one JSON object, on stdout; everything else goes to stderr.
Exit status: 0 done, 1 something failed or was left out (named), 2 wrong use. Each command imports what it
needs when it runs, so that `--help` and `--version` cost nothing. Knows no algorithm.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli_arguments import parser
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.settings import Settings, load

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import IndexResult, Result

MODES = ("auto", "local", "global", "text")
LATER_MODES = ("fused", "hybrid", "drift", "basic")
CHANGES = ("added", "changed", "removed", "unchanged")
STOPPED = 130  # what shells report for Ctrl-C


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (argparse itself exits with 2 for arguments it does not know)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "serve")  # `graphrag-mcp --home X` is what a host's configuration says
    options = parser(COMMANDS).parse_args(given)
    if options.run is not serve:
        _utf8(sys.stdout)
        _utf8(sys.stderr)
    try:
        return options.run(options)
    except GraphRAGError as error:
        return _failed(options, str(error), 2 if isinstance(error, BadInput | NotFound) else 1)
    except BrokenPipeError:  # `graphrag-mcp ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _failed(options, f"{error.strerror or error}: {error.filename or options.home or 'the index folder'}", 1)
    except KeyboardInterrupt:
        return _failed(options, "Stopped. What was committed stays; the same command goes on from there.", STOPPED)


# ---- commands -----------------------------------------------------------------------------------


def serve(options: argparse.Namespace) -> int:
    """Speak MCP on stdin and stdout until the host hangs up."""
    from graphrag_mcp import server

    if sys.stdin.isatty():
        print("This terminal now speaks MCP, which is for a host. Ctrl-C, then: graphrag-mcp --help", file=sys.stderr)
    server.serve(_settings(options, roots=[str(root) for root in options.root or ()] or None))
    return 0


def index(options: argparse.Namespace) -> int:
    """Bring a corpus to what the folders and files are: adds, updates, removes."""
    if options.job:
        from graphrag_mcp import jobs

        return 0 if jobs.run(_settings(options), options.job).status == "done" else 1
    if not options.paths:
        raise BadInput("index needs a folder or file", "Name one, for example: graphrag-mcp index docs")
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    paths = tuple(str(_existing(path)) for path in options.paths)
    app = _app(options)
    budget = {"max_calls": options.max_calls, "max_tokens": options.max_tokens, "max_cost": options.max_cost}
    settings = _settings(options, **budget)
    corpus = app.corpus_for_writing(options.corpus, paths[0])
    request = IndexRequest(
        paths, method=options.method, remove_missing=options.remove_missing,
        recluster=options.recluster, dry_run=options.dry_run, refresh_answers=options.refresh_answers,
    )  # fmt: skip
    bar = _Bar(sys.stderr.isatty() and not options.json)
    began = time.monotonic()
    try:
        result = index_documents(app.folder(corpus), request, settings, progress=bar)
    finally:
        bar.clear()
    result = result.model_copy(update={"corpus": corpus})
    elapsed = time.monotonic() - began
    if options.json:
        _print_json(_index_record(result, elapsed))
    else:
        _print_index(result, elapsed)
    return 0 if result.status in ("done", "estimate") and not result.errors else 1


def search(options: argparse.Namespace) -> int:
    """Cited context for a question."""
    if options.mode not in MODES:
        when = "comes with a later release" if options.mode in LATER_MODES else "is unknown"
        raise BadInput(f"search mode {options.mode!r} {when}", f"Use one of {', '.join(MODES)}")
    snapshot = _snapshot(options)
    budget = {"max_tokens": options.max_tokens} if options.max_tokens is not None else {}
    if options.mode == "global":
        from graphrag_mcp.query.global_ import global_search

        result = global_search(snapshot, options.query, level=options.level, **budget)
    elif options.mode == "text":
        from graphrag_mcp.query.lookup import search_text

        result = search_text(snapshot, options.query, **budget)
    else:
        from graphrag_mcp.query.local import local_search

        result = local_search(snapshot, options.query, response_format=options.format, **budget)
    return _show(options, result)


def entity(options: argparse.Namespace) -> int:
    """One entity: description, relationships, where it is named."""
    from graphrag_mcp.query.lookup import get_entity

    return _show(options, get_entity(_snapshot(options), options.name, response_format=options.format))


def report(options: argparse.Namespace) -> int:
    """One community report."""
    from graphrag_mcp.query.lookup import get_community_report

    return _show(options, get_community_report(_snapshot(options), options.community, response_format=options.format))


def source(options: argparse.Namespace) -> int:
    """The exact text behind ids."""
    from graphrag_mcp.query.lookup import get_source

    return _show(options, get_source(_snapshot(options), options.ids, around=options.around))


def status(options: argparse.Namespace) -> int:
    """What is indexed, and what is running."""
    from graphrag_mcp.tools.index import status as status_of  # the graph_status tool, without its wire

    return _show(options, status_of(_app(options), options.corpus))


def doctor(options: argparse.Namespace) -> int:
    """Check everything that is stored; exit status 1 when something is still wrong."""
    from graphrag_mcp.upkeep.doctor import doctor as examine

    app = _app(options)
    folder = app.folder(app.corpus_for_reading(options.corpus))
    findings = examine(folder, options.repair, lambda folder: _derive(folder, app.settings))
    wrong = [found for found in findings if not found.repaired]
    if options.json:
        _print_json({"sound": not wrong, "findings": [asdict(found) for found in findings]})
    else:
        for found in findings:
            print(f"{found.kind} {found.where}: {found.what}. {'Repaired' if found.repaired else found.repair}.")
        print(f"{len(wrong)} wrong" if wrong else "Everything that is stored is sound.")
    return 1 if wrong else 0


def _derive(folder: Path, settings: Settings) -> None:
    """All tables again from the stored originals: what indexing does when it finds a generation without tables."""
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    index_documents(folder, IndexRequest(), settings)


def digest(options: argparse.Namespace) -> int:
    """Two stable hashes of an index: its content, and its communities."""
    from graphrag_mcp.upkeep.digest import digest as hashes

    found = hashes(_snapshot(options))
    if options.json:
        _print_json(found)
    else:
        print("\n".join(f"{name} {found[name]}" for name in ("content", "communities")))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the index as Parquet files with GraphRAG's column names."""
    from graphrag_mcp.upkeep.export import export as write

    rows = write(_snapshot(options), Path(options.folder).expanduser().absolute())
    if options.json:
        _print_json(rows)
    else:
        print("\n".join(f"{name}.parquet {count:,} rows" for name, count in rows.items()))
    return 0


def tune(options: argparse.Namespace) -> int:
    """Fit the prompts of an index to its texts, with the configured model."""
    from graphrag_mcp.upkeep.tune import tune as fit

    app = _app(options)
    corpus = app.corpus_for_reading(options.corpus)
    output = Path(options.output).expanduser().absolute() if options.output else None
    found = fit(
        app.folder(corpus), app.snapshot(corpus), app.settings, app.asker(corpus), selection=options.selection,
        limit=options.limit, min_examples=options.min_examples, max_tokens=options.max_tokens, domain=options.domain,
        language=options.language, untyped=options.no_entity_types, seed=options.seed, output=output,
    )  # fmt: skip
    if options.json:
        _print_json({**asdict(found), "files": [str(path) for path in found.files]})
    else:
        print(f"{corpus}: {found.domain or 'domain unknown'}, in {found.language or 'an unknown language'}")
        print(f"entity types: {', '.join(found.entity_types) or 'any'}; {found.examples} examples")
        print("\n".join(f"wrote {path}" for path in found.files) or "nothing was written")
        print(f"asked {found.usage.get('calls', 0)} times; the next index run reads the texts with these prompts")
    for reason in found.degraded:
        print(f"default kept: {reason}", file=sys.stderr)
    return 0 if found.files else 1


def init(options: argparse.Namespace) -> int:
    """Write a settings file with every default, and the prompts, into a folder."""
    from graphrag_mcp.upkeep.init import init as write

    written = write(Path(options.folder).expanduser().absolute(), options.force)
    if options.json:
        _print_json({"files": [str(path) for path in written]})
    else:
        print(f"wrote {written[0]} and {len(written) - 1} files of prompts")
        print(f"use it with GRAPHRAG_MCP_SETTINGS={written[0]}")
    return 0


def answers(options: argparse.Namespace) -> int:
    """What models and agents answered for an index: list it, or forget it."""
    from graphrag_mcp.store.answers import AnswerBook

    app = _app(options)
    book = AnswerBook(app.folder(app.corpus_for_reading(options.corpus)))
    if options.action == "clear":
        gone = book.clear(options.kind)
        print(json.dumps({"cleared": gone}) if options.json else f"forgot {gone:,} answers")
    elif options.json:
        _print_json({"kinds": book.kinds(), "answers": list(book.listing(options.kind))})
    elif options.kind:
        for one in book.listing(options.kind):
            tokens = f"{one['prompt_tokens']:,} in, {one['output_tokens']:,} out"
            print(f"{one['time']} {one['key'][:12]} {one['answerer']} {tokens}")
    else:
        print("\n".join(f"{kind} {count:,}" for kind, count in book.kinds().items()) or "the answer book is empty")
    return 0


COMMANDS = (serve, index, search, entity, report, source, status, doctor, digest, export, tune, init, answers)


# ---- talking to people --------------------------------------------------------------------------


class _Bar:
    """A progress bar on stderr, at most ten times a second, wiped when done; silent unless `shown`."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.last = 0.0
        self.width = 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self.shown or (now - self.last < 0.1 and done < total):
            return
        self.last = now
        share = min(done / total, 1.0) if total else 0.0
        line = f"{phase:<12} [{'#' * int(30 * share):<30}] {done:,}/{total:,}"
        print(f"\r{line:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def clear(self) -> None:
        if self.width:
            print("\r" + " " * self.width, end="\r", file=sys.stderr, flush=True)


def _show(options: argparse.Namespace, result: Result) -> int:
    if options.json:
        _print_json(result.model_dump(mode="json"))
        return 0
    print(result.text)
    if result.hint and result.hint not in result.text:
        print(f"hint: {result.hint}", file=sys.stderr)
    return 0


def _index_record(result: IndexResult, elapsed: float) -> dict[str, Any]:
    """What `index --json` prints: no budget fields, and what was asked of models."""
    record = result.model_dump(
        mode="json", exclude={"text", "tokens", "truncated", "next_cursor", "next_call", "poll_after_ms"}
    )
    usage = result.usage
    tokens = usage.get("prompt_tokens", 0) + usage.get("output_tokens", 0)
    return {**record, "calls": usage.get("calls", 0), "tokens": tokens, "elapsed_seconds": round(elapsed, 3)}


def _print_index(result: IndexResult, elapsed: float) -> None:
    changes = _counted(result.counts, CHANGES) or "nothing to do"
    held = _counted({name: count for name, count in result.counts.items() if name not in CHANGES})
    print(f"{result.corpus}: {changes} ({elapsed:.1f} s)" + (f"\nit holds {held}" if held else ""))
    if result.estimate:
        print("estimate: " + ", ".join(f"{name} {value}" for name, value in result.estimate.items()))
    if calls := result.usage.get("calls"):
        tokens = f"{result.usage['prompt_tokens']:,} tokens in, {result.usage['output_tokens']:,} out"
        print(f"asked models {calls:,} times: {tokens}")
    if result.pending:
        print(f"a model has still to answer: {_counted(result.pending)} (run it again)", file=sys.stderr)
        for reason, count in _reasons(result.degraded).items():
            print(f"  {count:,} x {reason}", file=sys.stderr)
    if result.skipped:
        print(f"skipped by rule: {_counted(result.skipped)}")
    if result.hint:
        print(f"hint: {result.hint}", file=sys.stderr)
    for error in result.errors:
        print(f"left out: {error['path']}: {error['reason']}", file=sys.stderr)


def _reasons(degraded: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Why models did not answer, the most frequent reason first."""
    reasons = [one["reason"] for one in degraded]
    return {one: reasons.count(one) for one in sorted(set(reasons), key=lambda one: (-reasons.count(one), one))}


def _counted(counts: Mapping[str, int], names: Sequence[str] = ()) -> str:
    """`26 documents, 44 passages`, zeros left out."""
    shown = [(name.removesuffix("_total").replace("_", " "), counts.get(name, 0)) for name in names or counts]
    return ", ".join(f"{count:,} {name}" for name, count in shown if count)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=None, separators=(", ", ": ")))


def _failed(options: argparse.Namespace, message: str, status: int) -> int:
    if getattr(options, "json", False):
        _print_json({"error": message})
    print(f"graphrag-mcp: {message}", file=sys.stderr)
    return status


def _utf8(stream: Any) -> None:
    """Windows pipes are not UTF-8 by themselves, and a text may hold what a terminal cannot show."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")


# ---- settings ----------------------------------------------------------------------------------


def _app(options: argparse.Namespace) -> App:
    from graphrag_mcp.app import App

    return App(_settings(options))


def _snapshot(options: argparse.Namespace) -> Snapshot:
    return _app(options).snapshot(options.corpus)


def _settings(options: argparse.Namespace, **overrides: Any) -> Settings:
    return load(home=options.home or None, **overrides)


def _existing(path: str) -> Path:
    """The path with links resolved. The command line may read anything that its user may."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"there is no file or folder {path!r}", "Check the spelling; paths start at the working directory"
        ) from error
