"""The command eval: questions from a file asked of an index. What is measured stands in
evaluate/evaluate.py."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli.output import Bar, app_of, existing, print_json, settings_of, show
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.types import Citation, Result, SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.evaluate.evaluate import Search


MODES = ("local", "fused", "hybrid", "basic", "global", "text")


def eval(options: argparse.Namespace) -> int:
    """Measure how well an index answers your questions, or which of two indexes answers better."""
    from graphrag_mcp.evaluate import evaluate

    path = existing(options.file)
    questions = evaluate.read_questions(path)[: options.limit or None]
    named = (mode.strip().lower() for mode in options.modes.split(","))
    modes = list(dict.fromkeys(filter(None, named)))
    if not modes or not set(modes) <= set(MODES):
        unknown = [mode for mode in modes if mode not in MODES]
        what = f"there is no mode {unknown[0]!r} to evaluate" if unknown else "no mode was named"
        raise BadInput(what, f"Use some of {','.join(MODES)}")

    def measured(app: App, corpus: str, name: str) -> evaluate.EvalResult:
        rows = app.snapshot(corpus).rows("documents", "", ["id", "uri", "title"]).to_pylist()
        nowhere = {"id": "", "char_start": 0, "char_end": 0}
        documents = [Citation(**row | {"document_id": row["id"]} | nowhere) for row in rows]
        arguments: dict[str, Any] = {"tokens": options.tokens, "documents": documents}
        asked = name, questions, modes, engine(app, corpus)
        with Bar(options) as bar:
            return evaluate.evaluate(*asked, progress=bar, **arguments)

    with tempfile.TemporaryDirectory() as scratch:
        is_set = evaluate.is_set(path) and not options.corpus
        app = _indexed(options, path, Path(scratch)) if is_set else app_of(options)
        corpus = path.name if is_set else app.corpus_for_reading(options.corpus)
        result = measured(app, corpus, corpus)
        record: dict[str, Any] = asdict(result)
        tables = [evaluate.table(result)]
        if options.against:
            other_app, other_corpus = _other(app, options.against)
            within = f"{other_app.home.name}/" if other_corpus == corpus else ""
            other = measured(other_app, other_corpus, f"{within}{other_corpus}")
            found = evaluate.compare(result, other)
            record = {"one": record, "other": asdict(other)}
            record["differences"] = [asdict(row) for row in found]
            compared = evaluate.comparison_table(result.name, other.name, found)
            tables += [evaluate.table(other), compared]
    if options.json:
        print_json(record)
    else:
        show(options, Result(text="\n\n".join(tables)))
    return 1 if any(scores.failed for scores in result.modes) else 0


def _indexed(options: argparse.Namespace, folder: Path, scratch: Path) -> App:
    """An index of the folder's own documents, made for this evaluation alone, without a model."""
    from graphrag_mcp.app import App
    from graphrag_mcp.evaluate.evaluate import write_documents
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    write_documents(folder, scratch / "files")
    settings = replace(settings_of(options), home=scratch / "home")
    app = App(settings)
    request = IndexRequest(paths=(str(scratch / "files"),), method="fast")
    with Bar(options) as bar:
        index_documents(app.folder(folder.name), request, settings, progress=bar)
    return app


def _other(app: App, named: str) -> tuple[App, str]:
    """The index to compare with: a corpus of this home, `HOME/CORPUS`, `HOME/corpora/CORPUS`."""
    from graphrag_mcp.app import App

    if named in app.corpora():
        return app, named
    path = Path(named).expanduser()
    home = path.parent.parent if path.parent.name == "corpora" else path.parent
    other = App(replace(app.settings, home=home.resolve()))
    if path.name not in other.corpora():
        move = "Give --against HOME/CORPUS, or a corpus of this home"
        raise NotFound(f"there is no index {named!r}", move)
    return other, path.name


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
        return local_search(snapshot, question, max_tokens=max_tokens, mode=mode, asker=asker)

    return search
