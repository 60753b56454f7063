"""Commands that walk: explore (the graph of an index) and drift (the sessions that agents walked).

Takes parsed arguments; gives results and sessions through the printing of the other commands. Each command imports
what it needs when it runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from graphrag_mcp.cli_common import app_of, print_json, show, snapshot_of
from graphrag_mcp.errors import NotFound
from graphrag_mcp.types import Result


def explore(options: argparse.Namespace) -> int:
    """What is around an entity, how two are connected, or where to begin."""
    from graphrag_mcp.query.explore import explore_graph
    from graphrag_mcp.query.several import ends

    given = {} if options.max_tokens is None else {"max_tokens": options.max_tokens}
    options.corpus, start, goal = ends(options.start, options.goal, options.corpus, app_of(options).corpora())
    found = explore_graph(snapshot_of(options), start, goal, hops=options.hops, max_nodes=options.max_nodes, **given)
    return show(options, found)


def drift(options: argparse.Namespace) -> int:
    """A DRIFT session as a tree, as JSON or as a chart; without a session, which there are."""
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.query.drift_export import export
    from graphrag_mcp.query.several import wanted
    from graphrag_mcp.query.walk import Walk
    from graphrag_mcp.store import sessions

    app = app_of(options)
    if not options.session:
        names = wanted(options.corpus, app.corpora()) or [options.corpus]
        return _listed(options, app.home / "drift", [app.corpus_for_reading(name) for name in names if name])
    path = app.drift_path(options.session)
    walk = Walk(sessions.read(path))
    if not walk.header:
        raise NotFound(f"there is no session {options.session[:60]!r}", "Call graphrag-mcp drift for those there are")
    text = export(Drift(app.snapshot(walk.header["corpus"]), path), "json" if options.json else options.format)
    if options.json:
        print_json(json.loads(text))
        return 0
    return show(options, Result(text=text))


def _listed(options: argparse.Namespace, folder: Path, corpora: Sequence[str]) -> int:
    """The sessions of a home, the one touched last first; those of `corpora`, where any are named."""
    from graphrag_mcp.pack import one_line
    from graphrag_mcp.query.walk import Walk
    from graphrag_mcp.store import sessions

    paths = sorted(folder.glob("*.jsonl"), key=lambda path: (-path.stat().st_mtime, path.name))
    walks = {path.stem: Walk(sessions.read(path)) for path in paths}
    rows = [
        {"session": name, "corpus": walk.header["corpus"], "question": walk.header["query"],
         "answered": len(walk.with_status("answered")), "nodes": len(walk.graph)}
        for name, walk in walks.items() if walk.header and (not corpora or walk.header["corpus"] in corpora)
    ]  # fmt: skip
    if options.json:
        print_json({"sessions": rows})
        return 0
    lines = [
        f"{row['session']}  {row['corpus']}  {row['answered']}/{row['nodes']}  {one_line(row['question'], 100)}"
        for row in rows
    ]
    return show(options, Result(text="\n".join(lines) or "There is no DRIFT session."))
