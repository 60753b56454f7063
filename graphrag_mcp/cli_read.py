"""Commands that read an index: search, entity, report, source, status.

Takes parsed arguments; prints what the searches give. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli_common import app_of, show, snapshot_of
from graphrag_mcp.errors import BadInput

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.types import Result

MODES = ("auto", "local", "global", "drift", "text")
LATER_MODES = ("fused", "hybrid", "basic")


def search(options: argparse.Namespace) -> int:
    """Cited context for a question; with --answer a model's answer from it."""
    if options.mode not in MODES:
        when = "comes with a later release" if options.mode in LATER_MODES else "is unknown"
        raise BadInput(f"search mode {options.mode!r} {when}", f"Use one of {', '.join(MODES)}")
    app = app_of(options)
    corpus = app.corpus_for_reading(options.corpus)
    snapshot = app.snapshot(corpus)
    given: dict[str, Any] = {"max_tokens": options.max_tokens} if options.max_tokens is not None else {}
    if options.mode == "drift":
        return show(options, _drift(app, corpus, options.query, given))
    if options.mode == "text":
        from graphrag_mcp.query.lookup import search_text

        return show(options, search_text(snapshot, options.query, **given))
    given |= {"answer": options.answer, "response_format": options.format, "response_type": options.response_type}
    given["asker"] = app.asker(corpus) if options.answer or app.settings.embedding_model else None
    if options.mode == "global":
        from graphrag_mcp.query.global_ import global_search

        return show(options, global_search(snapshot, options.query, level=options.level, **given))
    from graphrag_mcp.query.local import local_search

    return show(options, local_search(snapshot, options.query, **given))


def _drift(app: App, corpus: str, query: str, given: Mapping[str, Any]) -> Result:
    """The whole walk by the configured model; the same command goes on where it was stopped."""
    from graphrag_mcp.query import drift_auto
    from graphrag_mcp.query.drift import Drift

    snapshot, asker = app.snapshot(corpus), app.asker(corpus)
    if not asker.on:
        raise BadInput(
            "search mode 'drift' needs a chat model and none is configured",
            "Set GRAPHRAG_MCP_CHAT_MODEL, or let an agent walk with the tools drift_search and drift_step",
        )
    session = Drift(snapshot, app.drift_path(drift_auto.session_name(snapshot, query, 3, 20, 40)))
    return drift_auto.run(session, query, asker, **given)


def entity(options: argparse.Namespace) -> int:
    """One entity: description, relationships, where it is named."""
    from graphrag_mcp.query.lookup import get_entity

    return show(options, get_entity(snapshot_of(options), options.name, response_format=options.format))


def report(options: argparse.Namespace) -> int:
    """One community report."""
    from graphrag_mcp.query.lookup import get_community_report

    return show(options, get_community_report(snapshot_of(options), options.community, response_format=options.format))


def source(options: argparse.Namespace) -> int:
    """The exact text behind ids."""
    from graphrag_mcp.query.lookup import get_source

    return show(options, get_source(snapshot_of(options), options.ids, around=options.around))


def status(options: argparse.Namespace) -> int:
    """What is indexed, and what is running."""
    from graphrag_mcp.tools.index import status as status_of  # the graph_status tool, without its wire

    return show(options, status_of(app_of(options), options.corpus))
