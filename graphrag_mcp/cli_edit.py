"""Commands that change an index by hand: edit (the graph), remove (documents).

Takes parsed arguments; prints what would change, and with --yes what has changed and how to undo it. Each command
imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli_common import app_of, existing, print_json, show
from graphrag_mcp.errors import BadInput
from graphrag_mcp.text import counted
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.app import App

YES = "Nothing was changed. The same with --yes does it."


def edit(options: argparse.Namespace) -> int:
    """Create, update, rename, merge or delete entities and relationships; undo; proposals of names; the log."""
    from graphrag_mcp.tools.edit import edit as change  # the edit_graph tool, without its wire

    app = app_of(options)
    if options.op == "replay":
        return _replay(app, options)
    if options.op == "log" and options.json:
        return _log(app, options)
    result = change(
        app, options.corpus, options.op, options.ids, options.set, f"cli:{_user()}", not options.yes, wait=True
    )
    return _shown(options, result, result.dry_run and options.op not in ("log", "proposals"))


def remove(options: argparse.Namespace) -> int:
    """Take documents out of the index, for good: their folder, indexed again, leaves them out."""
    from graphrag_mcp.tools.edit import remove as take_out

    result = take_out(app_of(options), options.corpus, options.ids, f"cli:{_user()}", not options.yes, wait=True)
    _shown(options, result, result.dry_run)
    return 1 if result.unknown else 0


def _shown(options: argparse.Namespace, result: Any, tried: bool) -> int:
    if tried and not options.json and not result.text.startswith("Nothing"):
        result.text += f"\n{YES}"
    result.next_call = ""
    return show(options, result)


def _log(app: App, options: argparse.Namespace) -> int:
    """Every row of the log as it is: what `edit replay` takes."""
    from graphrag_mcp.store.edits import in_force

    snapshot = app.snapshot(options.corpus)
    names = ("id", "op", "kind", "keys", "forms", "fields", "by", "time")
    print_json({"edits": [{name: getattr(row, name) for name in names} for row in in_force(snapshot).log]}, exact=True)
    return 0


def _replay(app: App, options: argparse.Namespace) -> int:
    """The edits of a file that `edit log --json` wrote, put into an index without any."""
    from graphrag_mcp.index.edits import replay
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.store.edits import LogRow
    from graphrag_mcp.types import IndexRequest

    if len(options.ids) != 1:
        raise BadInput("replay takes one file", "Write it with graphrag-mcp edit log --json")
    path = existing(options.ids[0])
    try:
        rows = [LogRow(**{**row, "keys": tuple(row["keys"]), "forms": tuple(row["forms"])})
                for row in json.loads(Path(path).read_text("utf-8"))["edits"]]  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path.name} is no log of edits", "Write it with graphrag-mcp edit log --json") from error
    if not options.yes:
        return show(options, Result(text=f"The log has {counted(len(rows), 'rows')}. {YES}"))
    folder = app.folder(app.corpus_for_reading(options.corpus))
    result = replay(folder, app.settings, rows)
    index_documents(folder, IndexRequest(), app.settings)
    return show(options, result)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
