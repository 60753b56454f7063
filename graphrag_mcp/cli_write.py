"""Commands that write: serve (which lets agents write), index, tune, init, answers.

Takes parsed arguments; prints what was done. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli_common import Bar, app_of, counted, elsewhere, estimated, existing, print_json, settings_of
from graphrag_mcp.cli_words import as_commands
from graphrag_mcp.errors import BadInput
from graphrag_mcp.lean import is_alone
from graphrag_mcp.text import counted as number_of

if TYPE_CHECKING:
    from graphrag_mcp.types import IndexResult

CHANGES = ("added", "changed", "removed", "unchanged")


def serve(options: argparse.Namespace) -> int:
    """Speak MCP on stdin and stdout until the host hangs up, or over HTTP."""
    settings = settings_of(options, roots=[str(root) for root in options.root or ()] or None)
    offer = {"tools": options.tools, "read_only": options.read_only, "compat": options.chatgpt}
    offer["corpus"] = options.corpus
    if options.http:
        from graphrag_mcp import http

        http.serve(settings, options.host, options.port, **offer, allow_hosts=options.allow_host or ())
        return 0
    from graphrag_mcp import server

    if sys.stdin.isatty():
        print("This terminal now speaks MCP, which is for a host. Ctrl-C, then: graphrag-mcp --help", file=sys.stderr)
    server.serve(settings, **offer)
    return 0


def index(options: argparse.Namespace) -> int:
    """Bring a corpus to what the folders and files are: adds, updates, removes."""
    if options.job:
        from graphrag_mcp import jobs

        return 0 if jobs.run(settings_of(options), options.job).status == "done" else 1
    if not options.paths:
        raise BadInput("index needs a folder or file", "Name one, for example: graphrag-mcp index docs")
    gc.disable()  # modules are no garbage: a tenth of the time of importing them
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    if not is_alone():  # a process that ends with the run would only look through its rows once more: 0.1 s
        gc.enable()
    paths = tuple(str(existing(path)) for path in options.paths)
    app = app_of(options)
    budget = {"max_calls": options.max_calls, "max_tokens": options.max_tokens, "max_cost": options.max_cost}
    settings, nothing = settings_of(options, **budget), any(value == 0 for value in budget.values())
    if nothing:  # said here, a budget of 0 is one; in the settings 0 is none
        settings = replace(settings, max_calls=-1)
    corpus = app.corpus_for_writing(options.corpus, paths[0])
    request = IndexRequest(
        paths, method=options.method, remove_missing=options.remove_missing,
        recluster=options.recluster, dry_run=options.dry_run, refresh_answers=options.refresh_answers,
    )  # fmt: skip
    bar = Bar(sys.stderr.isatty() and not options.json)
    began = time.monotonic()
    if not options.dry_run and not nothing:  # an open job has a budget of its own
        from graphrag_mcp import jobs

        jobs.finish_open(settings, corpus)
    try:
        result = index_documents(app.folder(corpus), request, settings, progress=bar)
    finally:
        bar.clear()
    result = result.model_copy(update={"corpus": corpus})
    elapsed = time.monotonic() - began
    if options.json:
        print_json(_index_record(result, elapsed))
    else:
        _print_index(result, elapsed)
        if result.status == "done" and (said := elsewhere(app, corpus)):
            print(said, file=sys.stderr)
    return 0 if result.status in ("done", "estimate") and not result.errors else 1


def _index_record(result: IndexResult, elapsed: float) -> dict[str, Any]:
    """What `index --json` prints: no budget fields, and what was asked of models."""
    record = result.model_dump(
        mode="json", exclude={"text", "tokens", "truncated", "next_cursor", "next_call", "poll_after_ms"}
    )
    usage = result.usage
    tokens = usage.get("prompt_tokens", 0) + usage.get("output_tokens", 0)
    return {**record, "calls": usage.get("calls", 0), "tokens": tokens, "elapsed_seconds": round(elapsed, 3)}


def _print_index(result: IndexResult, elapsed: float) -> None:
    if result.status == "estimate":
        print("\n".join(estimated(result)))
    else:
        changes = counted(result.counts, CHANGES) or "nothing to do"
        held = counted({name: count for name, count in result.counts.items() if name not in CHANGES})
        print(f"{result.corpus}: {changes} ({elapsed:.1f} s)" + (f"\nit holds {held}" if held else ""))
    if calls := result.usage.get("calls"):
        tokens = f"{result.usage['prompt_tokens']:,} tokens in, {result.usage['output_tokens']:,} out"
        print(f"asked models {number_of(calls, 'times')}: {tokens}")
    if result.pending:
        print(f"a model has still to answer: {counted(result.pending)} (run it again)", file=sys.stderr)
        for reason, count in _reasons(result.degraded).items():
            print(f"  {count:,} x {reason}", file=sys.stderr)
    if result.skipped:
        print(f"skipped by rule: {counted(result.skipped)}")
    if result.hint:
        print(f"hint: {as_commands(result.hint)}", file=sys.stderr)
    for error in result.errors:
        print(f"left out: {error['path']}: {error['reason']}", file=sys.stderr)


def _reasons(degraded: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Why models did not answer, the most frequent reason first."""
    reasons = [one["reason"] for one in degraded]
    return {one: reasons.count(one) for one in sorted(set(reasons), key=lambda one: (-reasons.count(one), one))}


def tune(options: argparse.Namespace) -> int:
    """Fit the prompts of an index to its texts, with the configured model."""
    from graphrag_mcp.upkeep.tune import tune as fit

    app = app_of(options)
    corpus = app.corpus_for_reading(options.corpus)
    output = Path(options.output).expanduser().absolute() if options.output else None
    found = fit(
        app.folder(corpus), app.snapshot(corpus), app.settings, app.asker(corpus), selection=options.selection,
        limit=options.limit, min_examples=options.min_examples, max_tokens=options.max_tokens, domain=options.domain,
        language=options.language, untyped=options.no_entity_types, seed=options.seed, output=output,
    )  # fmt: skip
    if options.json:
        print_json({**asdict(found), "files": [str(path) for path in found.files]})
    else:
        print(f"{corpus}: {found.domain or 'domain unknown'}, in {found.language or 'an unknown language'}")
        print(f"entity types: {', '.join(found.entity_types) or 'any'}; {number_of(found.examples, 'examples')}")
        print("\n".join(f"wrote {path}" for path in found.files) or "nothing was written")
        then = "the next index run reads the texts with these prompts"
        if output is not None:
            then = f"to have them used, put them into {app.folder(corpus) / 'prompts'}"
        print(f"asked {number_of(found.usage.get('calls', 0), 'times')}{f'; {then}' if found.files else ''}")
    for reason in found.degraded:
        print(f"default kept: {reason}", file=sys.stderr)
    return 0 if found.files else 1


def init(options: argparse.Namespace) -> int:
    """Write a settings file with every default, and the prompts, into a folder."""
    from graphrag_mcp.upkeep.init import init as write

    written = write(Path(options.folder).expanduser().absolute(), options.force)
    if options.json:
        print_json({"files": [str(path) for path in written]})
    else:
        print(f"wrote {written[0]} and {len(written) - 1} files of prompts")
        print(f"use it with GRAPHRAG_MCP_SETTINGS={written[0]}")
    return 0


def answers(options: argparse.Namespace) -> int:
    """What models and agents answered for an index: list it, or forget it."""
    from graphrag_mcp.store.answers import AnswerBook

    app = app_of(options)
    book = AnswerBook(app.folder(app.corpus_for_reading(options.corpus)))
    if options.action == "clear":
        gone = book.clear(options.kind)
        print(json.dumps({"cleared": gone}) if options.json else f"forgot {gone:,} answers")
    elif options.json:
        print_json({"kinds": book.kinds(), "answers": list(book.listing(options.kind))})
    elif options.kind:
        if not (found := list(book.listing(options.kind))):
            print(f"no answers of the kind {options.kind!r}; there are: {', '.join(book.kinds()) or 'none at all'}")
        for one in found:
            tokens = f"{one['prompt_tokens']:,} in, {one['output_tokens']:,} out"
            print(f"{one['time']} {one['key'][:12]} {one['answerer']} {tokens}")
    else:
        print("\n".join(f"{kind} {count:,}" for kind, count in book.kinds().items()) or "the answer book is empty")
    return 0
