"""MCP prompts (whole tasks that a person picks in a client), and completions of arguments.

A prompt is offered only where the tools that it speaks of are. Completions are at most 100 values,
the likeliest first, and never an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server.mcpserver.prompts.base import Prompt, PromptArgument
from mcp.types import INVALID_PARAMS, Completion

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import queue
from graphrag_mcp.llm import prompts
from graphrag_mcp.store import sessions
from graphrag_mcp.tools.contract import TABLES
from graphrag_mcp.trust import fencing

if TYPE_CHECKING:
    from mcp.server import MCPServer


MOST = 100  # as the protocol allows
SECONDS = 3.0  # then the host has typed on
TABLE = {"entity": "entities", "community": "reports", "text_unit": "text_units", "document": "documents"}


def register_completion(server: MCPServer[Any], app: App) -> None:
    """Answer `completion/complete` for every template and prompt of a server."""

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        arguments = dict(context.arguments or {}) if context is not None else {}
        target = str(getattr(ref, "uri", "") or getattr(ref, "name", ""))
        found: Sequence[str] = ()
        with anyio.move_on_after(SECONDS):

            def work() -> list[str]:
                values = _values(app, target, argument.name, argument.value, arguments)
                return [fencing.shown(text) for text in values]

            found = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        return Completion(values=list(found[:MOST]), total=len(found), has_more=len(found) > MOST)


def _values(app: App, target: str, name: str, value: str, arguments: Mapping[str, str]) -> list[str]:
    """All values that fit: those that begin with what is typed before those that hold it."""
    try:
        if name == "corpus":
            return _matching(app.corpora(), value)
        if name == "name":
            return _matching(prompts.names(), value)
        if name == "job_id":
            return _matching([job.job_id for job in queue.listing(app.home)], value)
        if name == "session_id":
            paths = sessions.listing(app.drift_path("x").parent)
            return _matching([path.stem for path in paths[: 10 * MOST]], value)
        kind = next((kind for kind in TABLE if kind == name or f"/{kind}/" in target), "")
        if kind and name in ("id", "entity"):
            return _ids(app, arguments.get("corpus", ""), kind, value.strip())
        return []
    except (GraphRAGError, OSError):
        return []


def _matching(known: Sequence[str], value: str) -> list[str]:
    typed = value.casefold().strip()
    begin = [name for name in known if name.casefold().startswith(typed)]
    return begin + [name for name in known if typed in name.casefold() and name not in begin]


def _ids(app: App, corpus: str, kind: str, value: str) -> list[str]:
    snapshot = app.snapshot(app.corpus_for_reading(corpus))
    if kind == "entity" and not re.fullmatch(r"e?\d+", value):
        title = value.casefold().replace("'", "''")
        where = f"contains(lower(title), '{title}')" if title else "degree > 0"
        rows = snapshot.rows("entities", where, ["n", "title", "degree"], limit=2_000).to_pylist()
        rows.sort(key=lambda row: (-row["degree"], row["n"]))
        return _matching(list(dict.fromkeys(row["title"] for row in rows)), value)
    numbers = sorted(snapshot.column(TABLE[kind], "n"))
    ids = ((f"{kind[0]}{n}", str(n)) for n in numbers)
    return [id for id, n in ids if id.startswith(value) or n.startswith(value)]


class OurPrompt(Prompt):
    """A prompt that says what is wrong with a request for it."""

    async def render(self, arguments: dict[str, Any] | None, context: Any) -> Any:
        supplied, known = arguments or {}, self.arguments or []
        needed = [argument.name for argument in known if argument.required]
        missing = [name for name in needed if not str(supplied.get(name, "")).strip()]
        strange = [name[:60] for name in supplied if name not in {argument.name for argument in known}]
        if missing or strange:
            wrong = f"needs {missing[0]!r}" if missing else f"has no argument {strange[0]!r}"
            names = (argument.name if argument.required else f"{argument.name} (optional)" for argument in known)
            message = f"{self.name} {wrong}. Its arguments are: {', '.join(names)}."
            raise MCPError(INVALID_PARAMS, message)
        return await super().render(arguments, context)


OPTIONAL = ("corpus", "path")
DERIVED = ("folder", "in_every_call")  # variables that follow from the corpus


def register(server: MCPServer[Any], app: App, tools: Collection[str]) -> dict[str, Prompt]:
    """Put the prompts on a server whose tools are these; gives what was put there, by name. The arguments of a prompt
    are the variables of its text."""
    known: dict[str, Prompt] = {}
    for name, (description, needs) in TABLES["prompts"].items():
        if set(needs.split()) <= set(tools):
            variables = dict.fromkeys([*prompts.load(name).get_identifiers(), "corpus"])
            arguments = [
                PromptArgument(name=each, description=TABLES["prompt_arguments"][each], required=each not in OPTIONAL)
                for each in variables
                if each not in DERIVED
            ]
            title, fill = name.replace("_", " ").capitalize(), partial(_filled, app, name)
            known[name] = OurPrompt(
                name=name, title=title, description=description, arguments=arguments, fn=fill, context_kwarg=None
            )
            server.add_prompt(known[name])
    return known


def _filled(app: App, name: str, corpus: str = "", path: str = ".", **values: str) -> str:
    """The prompt with the person's words on one line each, so that they are no structure of it."""
    prompt, words = prompts.load(name), {"corpus": corpus, "path": path, **values}
    if "folder" in prompt.get_identifiers():
        try:
            words["corpus"] = app.corpus_for_reading(corpus.strip())
        except GraphRAGError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        words["folder"] = str(app.folder(words["corpus"]) / "prompts")
    lines = {key: " ".join(value.split())[:4_000] for key, value in words.items()}
    named = lines["corpus"]
    lines["in_every_call"] = f' (corpus="{named}" in every call)' if named else ""
    return prompt.substitute({key: line.replace("</", "<\\/") for key, line in lines.items()})
