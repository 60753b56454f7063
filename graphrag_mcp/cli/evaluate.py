"""The command eval: questions from a file asked of an index. What is measured stands in
evaluate/evaluate.py."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from graphrag_mcp.cli.output import Bar, app_of, existing, print_json, show
from graphrag_mcp.errors import BadInput
from graphrag_mcp.types import Citation, Result, SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.evaluate.evaluate import Search


MODES = ("local", "global", "text")


def eval(options: argparse.Namespace) -> int:
    """Measure how well an index answers your questions."""
    from graphrag_mcp.evaluate import evaluate

    path = existing(options.file)
    questions = evaluate.read_questions(path)[: options.limit or None]
    named = (mode.strip().lower() for mode in options.modes.split(","))
    modes = list(dict.fromkeys(filter(None, named)))
    if not modes or not set(modes) <= set(MODES):
        unknown = [mode for mode in modes if mode not in MODES]
        what = f"there is no mode {unknown[0]!r} to evaluate" if unknown else "no mode was named"
        raise BadInput(what, f"Use some of {','.join(MODES)}")

    app = app_of(options)
    corpus = app.corpus_for_reading(options.corpus)
    rows = app.snapshot(corpus).rows("documents", "", ["id", "uri", "title"]).to_pylist()
    nowhere = {"id": "", "char_start": 0, "char_end": 0}
    documents = [Citation(**row | {"document_id": row["id"]} | nowhere) for row in rows]
    with Bar(options) as bar:
        result = evaluate.evaluate(
            corpus, questions, modes, engine(app, corpus), tokens=options.tokens, documents=documents, progress=bar
        )
    if options.json:
        print_json(asdict(result))
    else:
        show(options, Result(text=evaluate.table(result)))
    return 1 if any(scores.failed for scores in result.modes) else 0


def engine(app: App, corpus: str) -> Search:
    """Searches in this process: the functions that the tools call."""
    from graphrag_mcp.query.global_ import global_search
    from graphrag_mcp.query.local import local_search
    from graphrag_mcp.query.text_search import search_text

    snapshot = app.snapshot(corpus)
    asker = app.asker(corpus) if app.settings.embedding_model else None

    def search(mode: str, question: str, max_tokens: int) -> SearchResult:
        if mode == "text":
            return search_text(snapshot, question, max_tokens=max_tokens)
        if mode == "global":
            return global_search(snapshot, question, max_tokens=max_tokens)
        return local_search(snapshot, question, max_tokens=max_tokens, asker=asker)

    return search
