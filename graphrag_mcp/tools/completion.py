"""Completions of arguments: corpora, entities, ids, prompts, sessions and jobs.

Takes the argument being typed and what is typed already; gives at most 100 values, the likeliest
first. Never an error: where nothing is known there is nothing to offer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.types import Completion

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import queue
from graphrag_mcp.llm import prompts
from graphrag_mcp.trust import fencing
from graphrag_mcp.trust.principal import SUBJECT, folder_name

if TYPE_CHECKING:
    from mcp.server import MCPServer

MOST = 100  # as the protocol allows
SECONDS = 3.0  # then the host has typed on
LETTER = {"entity": "e", "community": "c", "text_unit": "t", "document": "d"}


def register(server: MCPServer[Any], app: App) -> None:
    """Answer `completion/complete` for every template and prompt of a server."""

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        said = dict(context.arguments or {}) if context is not None else {}
        target = str(getattr(ref, "uri", "") or getattr(ref, "name", ""))
        found: Sequence[str] = ()
        with anyio.move_on_after(SECONDS):

            def work() -> list[str]:
                values = _values(app, target, argument.name, argument.value, said)
                return [fencing.shown(one) for one in values]

            found = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        return Completion(values=list(found[:MOST]), total=len(found), has_more=len(found) > MOST)


def _values(app: App, target: str, name: str, value: str, said: Mapping[str, str]) -> list[str]:
    """All values that fit, best first: those that begin with what is typed before those that hold
    it.
    """
    try:
        if name == "corpus":
            return _matching(app.corpora(), value)
        if name == "name":
            return _matching(prompts.names(), value)
        if name == "job_id":
            return _matching([job.job_id for job in queue.listing(app.home)], value)
        if name == "session_id":
            return _matching(_sessions(app), value)
        kind = (
            "entity"
            if name == "entity"
            else next((kind for kind in LETTER if f"/{kind}/" in target), "")
        )
        return (
            _ids(app, said.get("corpus", ""), kind, value.strip())
            if kind and name in ("id", "entity")
            else []
        )
    except (GraphRAGError, OSError):
        return []


def _matching(known: Sequence[str], value: str) -> list[str]:
    typed = value.casefold().strip()
    begin = [one for one in known if one.casefold().startswith(typed)]
    return begin + [one for one in known if typed in one.casefold() and one not in begin]


def _sessions(app: App) -> list[str]:
    subject = SUBJECT.get()
    folder = app.home / "drift" / (folder_name(subject) if subject else "")
    held = sorted(folder.glob("*.jsonl"), key=lambda path: -path.stat().st_mtime)
    return [path.stem for path in held[: 10 * MOST]]


def _ids(app: App, corpus: str, kind: str, value: str) -> list[str]:
    snapshot = app.snapshot(app.corpus_for_reading(corpus))
    letter = LETTER[kind]
    if kind == "entity" and not re.fullmatch(r"e?\d+", value):
        wanted = value.casefold().replace("'", "''")
        where = f"contains(lower(title), '{wanted}')" if wanted else "degree > 0"
        rows = snapshot.rows("entities", where, ["n", "title", "degree"], limit=2_000).to_pylist()
        typed = value.casefold()
        rows.sort(
            key=lambda row: (
                not row["title"].casefold().startswith(typed),
                -row["degree"],
                row["n"],
            )
        )
        return list(dict.fromkeys(row["title"] for row in rows))
    table = {"community": "reports", "text_unit": "text_units", "document": "documents"}.get(
        kind, "entities"
    )
    numbers = sorted(snapshot.rows(table, columns=["n"])["n"].to_pylist())
    return [
        f"{letter}{n}"
        for n in numbers
        if f"{letter}{n}".startswith(value) or str(n).startswith(value)
    ]
