"""Commands that read an index: search, list, entity, explore, report, source, drift, status."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from graphrag_mcp.cli.output import app_of, parts_of, say, settings_of, show, snapshot_of
from graphrag_mcp.errors import BadInput
from graphrag_mcp.text.terms import counted
from graphrag_mcp.trust import fencing
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.app import App


def explore(options: argparse.Namespace) -> int:
    """Open the page in the browser; with START show the neighbours of an entity in the terminal."""
    if not options.start and not options.json and not options.kind:
        return _page(options)
    from graphrag_mcp.query.explore import explore_graph
    from graphrag_mcp.query.federated import ends

    known = app_of(options).corpora()
    options.corpus, start, goal = ends(options.start, options.goal, options.corpus, known)
    found = explore_graph(
        snapshot_of(options),
        start,
        goal,
        hops=options.hops,
        max_nodes=options.max_nodes,
        kinds=options.kind,
        direction=options.direction,
        **_budget(options),
    )
    return show(options, found)


def _page(options: argparse.Namespace) -> int:
    """The explorer page on this machine until Ctrl-C."""
    from graphrag_mcp import http
    from graphrag_mcp.app import App
    from graphrag_mcp.explorer.data import load
    from graphrag_mcp.explorer.library import folders_of
    from graphrag_mcp.explorer.page import redirecting

    app = app_of(options)
    app.read_only = options.read_only
    if app.corpora() or options.read_only or not app.settings.roots:
        corpus = app.corpus_for_reading(options.corpus)
        # what is wrong with the index is said here, and the map is ready
        load(app, "overview", {}, corpus)
        # the user of this machine may add to the folders that are indexed
        ours = folders_of(app.snapshot(corpus).manifest)
        roots = tuple(dict.fromkeys([*map(Path, ours), *app.settings.roots]))
        app = App(replace(app.settings, roots=roots), app.corpus)
        app.read_only = options.read_only
    else:
        corpus = app.corpus_for_writing(options.corpus)  # the page begins it

    with contextlib.ExitStack() as files:

        def opened(address: str) -> None:
            print(f"{address}\nThis address works once. Ctrl-C ends it.", flush=True)
            # Without a screen Python would start a browser for terminals in this one.
            screen = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
            if (screen or sys.platform != "linux") and not options.no_browser:
                import webbrowser

                place = files.enter_context(redirecting(app.home, address)).as_uri()
                threading.Thread(target=webbrowser.open, args=(place,), daemon=True).start()

        http.explore(app, corpus, opened)
    return 0


def drift(options: argparse.Namespace) -> int:
    """Show a DRIFT session as a tree, as JSON or as a chart; without a session list all."""
    from graphrag_mcp.query.drift_view import export
    from graphrag_mcp.query.federated import wanted
    from graphrag_mcp.tools.drift import session_of

    app = app_of(options)
    if not options.session:
        names = wanted(options.corpus, app.corpora()) or [options.corpus]
        corpora = [app.corpus_for_reading(name) for name in names if name]
        return _listed(options, app.home / "drift", corpora)
    session, _ = session_of(app, options.session)
    if options.json:
        return say(options, json.loads(export(session, "json")))
    return show(options, Result(text=export(session, options.format)))


def _listed(options: argparse.Namespace, folder: Path, corpora: Sequence[str]) -> int:
    """The sessions of a home, the one touched last first; those of `corpora`, where any are named."""
    from graphrag_mcp.packing.budget import one_line
    from graphrag_mcp.query.drift_state import listed

    rows, lines = [], []
    for name, walk in listed(folder):
        if corpora and walk.header["corpus"] not in corpora:
            continue
        row = {"session": name, "corpus": walk.header["corpus"], "question": walk.header["query"]}
        row |= {"answered": len(walk.with_status("answered")), "nodes": len(walk.graph)}
        rows.append(row)
        question = one_line(row["question"], 100)
        lines.append("{session}  {corpus}  {answered}/{nodes}  ".format(**row) + question)
    if options.json:
        return say(options, {"sessions": rows})
    return show(options, Result(text="\n".join(lines) or "There is no DRIFT session."))


MODES = ("auto", "local", "global", "text", "drift")


def search(options: argparse.Namespace) -> int:
    """Find passages that answer a question; with --answer a model writes the answer."""
    from graphrag_mcp.query import federated, global_, local, text_search
    from graphrag_mcp.query.render import Form
    from graphrag_mcp.query.request import AnswerOptions, Request
    from graphrag_mcp.query.route import choose

    if options.mode not in MODES:
        raise BadInput(f"search mode {options.mode!r} is unknown", f"Use one of {', '.join(MODES)}")
    app, budget, mode, reason = app_of(options), _budget(options), options.mode, ""
    several = federated.wanted(options.corpus, app.corpora())
    corpora = [app.corpus_for_reading(name) for name in several or [options.corpus]]
    parts = [(name if several else "", app.snapshot(name)) for name in corpora]
    snapshot = None if several else parts[0][1]
    if mode == "auto":
        mode, reason = choose(options.query, snapshot) if snapshot else ("local", "")
    with_reason = reason and (options.json or mode != "local")
    reason = f"Mode {mode}: {reason}" if with_reason else ""
    if mode == "drift" and snapshot:
        return show(options, _drift(app, corpora[0], options.query, budget))
    request = Request(
        options.query,
        level=options.level,
        form=Form(options.breadth, options.sort),
        answer=options.answer,
        options=AnswerOptions(options.instructions),
        filters=options.filter,
        cursor=options.cursor,
        **budget,
    )
    asked = snapshot and (options.answer or app.reads_with_models(corpora[0]))
    askers = {"": app.asker(corpora[0])} if asked else {}
    if mode == "text":
        return _shown(options, text_search.search(parts, request), reason)
    if mode == "global":
        return _shown(options, global_.search(parts, request, askers), reason)
    return _shown(options, local.search(parts, request, askers), reason)


def _shown(options: argparse.Namespace, result: Any, reason: str) -> int:
    """The result, with the reason of an automatic choice of mode in its hint."""
    result.hint = " ".join(filter(None, [result.hint, reason]))
    return show(options, result)


def _drift(app: App, corpus: str, query: str, budget: Mapping[str, Any]) -> Result:
    """The whole walk by the configured model; the same command goes on where it was stopped."""
    from graphrag_mcp.query import drift_llm
    from graphrag_mcp.query.drift import Drift, Limits

    snapshot, asker = app.snapshot(corpus), app.asker(corpus)
    if not asker.on:
        what = "search mode 'drift' needs a chat model and none is configured"
        move = "Set GRAPHRAG_MCP_CHAT_MODEL, or leave --mode drift out: walking without a model is for an agent"
        raise BadInput(what, move)
    session = Drift(snapshot, app.drift_path(drift_llm.session_name(snapshot, query, Limits())), **budget)
    return drift_llm.run(session, query, asker)


def entity(options: argparse.Namespace) -> int:
    """Show one entity: description, relationships, documents."""
    from graphrag_mcp.query.federated import get_entity

    timeline = {"order": options.order, "other": options.other}
    arguments = {**timeline, **_budget(options)}
    return show(options, get_entity(parts_of(options, [options.name]), options.name, **arguments))


def report(options: argparse.Namespace) -> int:
    """Show the report of one topic."""
    from graphrag_mcp.query.federated import get_community_report

    budget = _budget(options)
    parts = parts_of(options, [options.community])
    return show(options, get_community_report(parts, options.community, **budget))


def list(options: argparse.Namespace) -> int:
    """List the documents; with a query those about it, each with its best sentences."""
    from graphrag_mcp.query.documents import list_documents

    found = list_documents(
        snapshot_of(options),
        query=options.query,
        sort=options.sort,
        by=options.by,
        document=options.document,
        cursor=options.cursor,
        filters=options.filter,
        **_budget(options),
    )
    return show(options, found)


def source(options: argparse.Namespace) -> int:
    """Show the text of ids, with file and lines."""
    from graphrag_mcp.query.federated import changes, get_source

    if options.changes:
        from graphrag_mcp.tools.notes import kept_text

        kept = kept_text(settings_of(options, notes=options.notes).notes)
        return show(options, changes(parts_of(options, options.ids), options.ids, kept, **_budget(options)))
    arguments = {"around": options.around, "raw": options.raw, "query": options.query}
    arguments |= _budget(options)
    return show(options, get_source(parts_of(options, options.ids), options.ids, **arguments))


class Budget(TypedDict, total=False):
    """The budget of a result, where the command line names one."""

    max_tokens: int


def _budget(options: argparse.Namespace) -> Budget:
    return {"max_tokens": options.max_tokens} if options.max_tokens is not None else {}


def status(options: argparse.Namespace) -> int:
    """Show what is indexed, what has changed on disk, and which jobs run."""
    app = app_of(options)
    if options.since is not None or options.about:
        from graphrag_mcp.doctor.generations import change_lines, changes, generation_of

        folder = app.fetched(options.corpus)
        found = changes(folder, generation_of(folder, options.since or ""), options.about)
        return say(options, asdict(found), fencing.clean("\n".join(change_lines(found, options.about))))
    # the graph_status tool, without its wire
    from graphrag_mcp.tools.index import status as status_of

    result = status_of(app, options.corpus)
    disk: Mapping[str, Sequence[str]] = {}  # files that are others than when they were indexed
    if result.corpus and result.generation:
        from graphrag_mcp.sources import diff

        manifest = app.snapshot(result.corpus).manifest
        disk = diff.changes(app.folder(result.corpus), manifest, app.settings)
    if options.json:
        return say(options, result.model_dump(mode="json") | {"disk": disk})
    if disk:
        result.text += f"\nOn disk: {_disk_line(disk)}"
    return show(options, result)


def _disk_line(disk: Mapping[str, Sequence[str]]) -> str:
    from graphrag_mcp.sources import ocr, walk

    changed = {how: disk[how] for how in ("new", "changed", "deleted") if disk[how]}
    every = [name for names in changed.values() for name in names]
    counts = ", ".join(f"{counted(len(names), 'files')} {how}" for how, names in changed.items())
    line = (
        f"{counts} since: {_first(every)}. graphrag-mcp index reads what can be read."
        if counts
        else "nothing has changed since."
    )
    scans = disk["scans"]
    if scans:
        line += f" {counted(len(scans), 'scans')} without text: {_first(scans)}; {ocr.SCANS}."
    if pictures := disk["pictures"]:
        reads = walk.PICTURE.partition("; ")[2]
        line += f" {counted(len(pictures), 'pictures')}: {_first(pictures)}; {reads}."
    if left := disk["pictures_left_out"]:
        reads = "graphrag-mcp index reads them" if walk.ocr_installed() else ocr.SCANS
        line += f" Pictures in {counted(len(left), 'files')} were left out: {_first(left)}; {reads}."
    if unread := [name for name in disk["unread"] if name not in scans]:
        line += f" {counted(len(unread), 'files')} could not be read: {_first(unread)}; graphrag-mcp index says why."
    return line


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
