"""Commands that read an index: search, list, entity, explore, report, source, drift, status.

Takes parsed arguments; prints what the searches give. Each command imports what it needs when it
runs.

Commands that walk: explore (the graph of an index) and drift (the sessions that agents walked).

Takes parsed arguments; gives results and sessions through the printing of the other commands. Each
command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli import terminal
from graphrag_mcp.cli.output import app_of, as_commands, parts_of, print_json, show, snapshot_of
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.text.terms import counted
from graphrag_mcp.trust import fencing
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import StatusResult


def explore(options: argparse.Namespace) -> int:
    """Open the graph as a page in the browser; with START what is around an entity, in the terminal."""
    if not options.start and not options.json:
        return _page(options)
    from graphrag_mcp.query.explore import explore_graph
    from graphrag_mcp.query.federated import ends

    given = {} if options.max_tokens is None else {"max_tokens": options.max_tokens}
    options.corpus, start, goal = ends(
        options.start, options.goal, options.corpus, app_of(options).corpora()
    )
    found = explore_graph(
        snapshot_of(options), start, goal, hops=options.hops, max_nodes=options.max_nodes, **given
    )
    return show(options, found)


def _page(options: argparse.Namespace) -> int:
    """The explorer page on this machine until Ctrl-C."""
    from graphrag_mcp import http
    from graphrag_mcp.explorer.data import load

    app = app_of(options)
    corpus = app.corpus_for_reading(options.corpus)
    load(
        app, "overview", {}, corpus
    )  # what is wrong with the index is said here, and the map is ready

    def opened(address: str) -> None:
        print(f"{address}\nThis address works once. Ctrl-C ends it.", flush=True)
        # Without a screen Python would start a browser for terminals in this one.
        screen = (
            sys.platform != "linux"
            or os.environ.get("DISPLAY")
            or os.environ.get("WAYLAND_DISPLAY")
        )
        if screen and not options.no_browser:
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    http.explore(app, corpus, opened)
    return 0


def drift(options: argparse.Namespace) -> int:
    """A DRIFT session as a tree, as JSON or as a chart; without a session, which there are."""
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.query.drift_export import export
    from graphrag_mcp.query.drift_state import Walk
    from graphrag_mcp.query.federated import wanted
    from graphrag_mcp.store import sessions

    app = app_of(options)
    if not options.session:
        names = wanted(options.corpus, app.corpora()) or [options.corpus]
        return _listed(
            options, app.home / "drift", [app.corpus_for_reading(name) for name in names if name]
        )
    path = app.drift_path(options.session)
    walk = Walk(sessions.read(path))
    if not walk.header:
        raise NotFound(
            f"there is no session {options.session[:60]!r}",
            "Call graphrag-mcp drift for those there are",
        )
    text = export(
        Drift(app.snapshot(walk.header["corpus"]), path), "json" if options.json else options.format
    )
    if options.json:
        print_json(json.loads(text))
        return 0
    return show(options, Result(text=text))


def _listed(options: argparse.Namespace, folder: Path, corpora: Sequence[str]) -> int:
    """The sessions of a home, the one touched last first; those of `corpora`, where any are named."""
    from graphrag_mcp.packing.budget import one_line
    from graphrag_mcp.query.drift_state import Walk
    from graphrag_mcp.store import sessions

    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (-path.stat().st_mtime, path.name))
    walks = {path.stem: Walk(sessions.read(path)) for path in paths}
    rows = [
        {
            "session": name,
            "corpus": walk.header["corpus"],
            "question": walk.header["query"],
            "answered": len(walk.with_status("answered")),
            "nodes": len(walk.graph),
        }
        for name, walk in walks.items()
        if walk.header and (not corpora or walk.header["corpus"] in corpora)
    ]
    if options.json:
        print_json({"sessions": rows})
        return 0
    lines = [
        f"{row['session']}  {row['corpus']}  {row['answered']}/{row['nodes']}  {one_line(row['question'], 100)}"
        for row in rows
    ]
    return show(options, Result(text="\n".join(lines) or "There is no DRIFT session."))


MODES = ("auto", "fused", "hybrid", "local", "global", "drift", "basic", "text")


def search(options: argparse.Namespace) -> int:
    """Cited context for a question; with --answer a model's answer from it."""
    from graphrag_mcp.query import federated
    from graphrag_mcp.query.passages import Form
    from graphrag_mcp.query.route import choose

    if options.mode not in MODES:
        raise BadInput(f"search mode {options.mode!r} is unknown", f"Use one of {', '.join(MODES)}")
    app = app_of(options)
    given: dict[str, Any] = _budget(options)
    if names := federated.wanted(options.corpus, app.corpora()):
        return show(options, _in_several(app, names, options, given))
    corpus = app.corpus_for_reading(options.corpus)
    snapshot = app.snapshot(corpus)
    mode, reason = choose(options.query, snapshot) if options.mode == "auto" else (options.mode, "")
    told = reason and (
        options.json or options.explain or mode != "fused"
    )  # of the usual mode only on request
    reason = f"Mode {mode}: {reason}" if told else ""
    if mode == "drift":
        return show(options, _drift(app, corpus, options.query, given))
    if mode == "text":
        from graphrag_mcp.query.text_search import search_text

        found = search_text(snapshot, options.query, filters=options.filter, **given)
        return _shown(options, found, reason, snapshot)
    given |= {
        "answer": options.answer,
        "response_format": options.format,
        "response_type": options.response_type,
        "filters": options.filter,
        "explain": options.explain,
    }
    form = Form(options.breadth, options.sort)
    asked = options.answer or app.settings.embedding_model or app.settings.rerank_model
    given["asker"] = app.asker(corpus) if asked else None
    if mode == "global":
        from graphrag_mcp.query.global_ import global_search

        return _shown(
            options, global_search(snapshot, options.query, level=options.level, **given), reason
        )
    from graphrag_mcp.query.local import local_search

    found = local_search(snapshot, options.query, mode=mode, form=form, **given)
    return _shown(options, found, reason, snapshot)


def _shown(
    options: argparse.Namespace, result: Any, reason: str, snapshot: Snapshot | None = None
) -> int:
    """The result, with the reason of an automatic choice of mode in its hint; on a terminal the best
    hits of `snapshot` alone, unless an option asks for more."""
    result.hint = " ".join(filter(None, [result.hint, reason]))
    more = options.max_tokens or options.answer or options.explain or options.format != "concise"
    plain = options.json or more or options.breadth != "passages"
    if snapshot is None or plain or not result.citations or not terminal.wanted():
        return show(options, result)
    terminal.show_hits(options.query, result, snapshot)
    if result.hint:
        print(f"hint: {fencing.clean(as_commands(result.hint, options.corpus))}", file=sys.stderr)
    return 0


def _in_several(
    app: App, names: Sequence[str], options: argparse.Namespace, given: dict[str, Any]
) -> Result:
    from graphrag_mcp.query import federated

    parts = [(name, app.snapshot(app.corpus_for_reading(name))) for name in names]
    if options.mode == "text":
        return federated.search_text(parts, options.query, filters=options.filter, **given)
    given |= {
        "response_format": options.format,
        "filters": options.filter,
        "explain": options.explain,
    }
    if options.mode == "global":
        return federated.global_search(parts, options.query, **given)
    from graphrag_mcp.query.passages import Form

    form = Form(options.breadth, options.sort)
    return federated.local_search(parts, options.query, form=form, **given)


def _drift(app: App, corpus: str, query: str, given: Mapping[str, Any]) -> Result:
    """The whole walk by the configured model; the same command goes on where it was stopped."""
    from graphrag_mcp.query import drift_llm
    from graphrag_mcp.query.drift import Drift

    snapshot, asker = app.snapshot(corpus), app.asker(corpus)
    if not asker.on:
        raise BadInput(
            "search mode 'drift' needs a chat model and none is configured",
            "Set GRAPHRAG_MCP_CHAT_MODEL, or leave --mode drift out: walking without a model is for an agent",
        )
    session = Drift(snapshot, app.drift_path(drift_llm.session_name(snapshot, query, 3, 20, 40)))
    return drift_llm.run(session, query, asker, **given)


def entity(options: argparse.Namespace) -> int:
    """One entity: description, relationships, where it is named."""
    from graphrag_mcp.query import federated
    from graphrag_mcp.query.lookup import get_entity

    timeline = {"order": options.order, "other": options.other}
    given = {"response_format": options.format, **timeline, **_budget(options)}
    if parts := parts_of(options, [options.name]):
        return show(
            options, federated.get_entity(parts, federated.qualified(options.name)[1], **given)
        )
    return show(options, get_entity(snapshot_of(options), options.name, **given))


def report(options: argparse.Namespace) -> int:
    """One community report."""
    from graphrag_mcp.query import federated
    from graphrag_mcp.query.lookup import get_community_report

    given = {"response_format": options.format, **_budget(options)}
    if parts := parts_of(options, [options.community]):
        return show(options, federated.get_community_report(parts, options.community, **given))
    return show(options, get_community_report(snapshot_of(options), options.community, **given))


def list(options: argparse.Namespace) -> int:
    """Which documents there are; with a query a timeline of those that speak of it."""
    from graphrag_mcp.query.listing import list_documents

    found = list_documents(
        snapshot_of(options),
        filters=options.filter,
        query=options.query,
        sort=options.sort,
        by=options.by,
        document=options.document,
        cursor=options.cursor,
        **_budget(options),
    )
    return show(options, found)


def source(options: argparse.Namespace) -> int:
    """The exact text behind ids."""
    from graphrag_mcp.query import federated
    from graphrag_mcp.query.lookup import get_source

    given = {"around": options.around, **_budget(options)}
    if parts := parts_of(options, options.ids):
        return show(options, federated.get_source(parts, options.ids, **given))
    return show(options, get_source(snapshot_of(options), options.ids, **given))


def _budget(options: argparse.Namespace) -> dict[str, int]:
    return {"max_tokens": options.max_tokens} if options.max_tokens is not None else {}


def status(options: argparse.Namespace) -> int:
    """What is indexed, and what is running."""
    app = app_of(options)
    if options.since is not None:
        from graphrag_mcp.doctor.generations import changes, generation_of, told

        folder = app.folder(app.corpus_for_reading(options.corpus))
        found = changes(folder, generation_of(folder, options.since), options.about)
        if options.json:
            print_json(found.record())
        else:
            print(fencing.clean("\n".join(told(found))))
        return 0
    from graphrag_mcp.tools.index import (
        status as status_of,
    )  # the graph_status tool, without its wire

    result = status_of(app, options.corpus)
    disk = _on_disk(app, result)
    if options.json:
        print_json(result.model_dump(mode="json") | {"disk": disk})
        return 0
    said = _disk_line(disk) if disk else ""
    if result.corpus and terminal.wanted():
        title, counts, *rest = result.text.split("\n")
        rows = [("holds", counts), *(_row(line) for line in rest), ("on disk", said)]
        terminal.show_table(title, [row for row in rows if row[1]])
        return 0
    result.text += f"\nOn disk: {said}" if said else ""
    return show(options, result)


def _row(line: str) -> tuple[str, str]:
    """`Model: none` as two cells."""
    name, colon, said = line.partition(": ")
    return (name.lower(), said) if colon and len(name) < 24 else ("", line)


def _on_disk(app: App, result: StatusResult) -> dict[str, Sequence[str]]:
    """Files that are new, changed or deleted since the corpus was indexed; {} without a corpus."""
    if not result.corpus or not result.generation:
        return {}
    from graphrag_mcp.sources.diff import changes

    snapshot = app.snapshot(result.corpus)
    return changes(app.folder(result.corpus), snapshot.manifest, app.settings)


def _disk_line(disk: Mapping[str, Sequence[str]]) -> str:
    said = [f"{counted(len(names), 'files')} {how}" for how, names in disk.items() if names]
    if not said:
        return "nothing has changed since."
    first = [name for names in disk.values() for name in names][:3]
    return f"{', '.join(said)} since: {', '.join(first)}{' ...' if sum(map(len, disk.values())) > 3 else ''}. graphrag-mcp index reads them."
