"""MCP resources: corpora, entities, reports, texts, sessions, jobs, prompts; as in the tools.

And subscriptions to them: a task tells when the files behind a resource have changed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from graphrag_mcp.app import App, file_stamp
from graphrag_mcp.errors import BadInput, Damaged, GraphRAGError, NotFound
from graphrag_mcp.jobs import queue
from graphrag_mcp.llm import prompts
from graphrag_mcp.store import manifest
from graphrag_mcp.tools import index
from graphrag_mcp.tools.contract import encodable
from graphrag_mcp.trust import fencing
from graphrag_mcp.types import is_list, is_object

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from mcp.server import MCPServer

    from graphrag_mcp.store.tables import Snapshot

CHARACTERS = 48_000  # of one resource: hosts put a resource into the context whole
TOKENS = 10_000  # of one that the engine packs
TREE_TOKENS = 2_000  # of a DRIFT session
SHOWN = 500  # corpora or errors listed
Read = Callable[..., str]
JSON, MARKDOWN, PLAIN = "application/json", "text/markdown", "text/plain"


def _resources(server: MCPServer[Any]) -> Callable[..., Callable[[Read], Read]]:
    """A decorator that makes a function a resource of a server. `fence`: for documents' words."""

    def resource(uri: str, title: str, kind: str, fence: bool = False) -> Callable[[Read], Read]:
        def add(function: Read) -> Read:
            @wraps(function)
            def read(**arguments: str) -> str:
                try:
                    text = function(**arguments)
                except (NotFound, BadInput) as error:
                    raise ResourceNotFoundError(encodable(str(error))) from None
                except GraphRAGError as error:
                    raise ResourceError(encodable(str(error))) from None
                return encodable(fencing.fenced(fencing.clean(text)) if fence else text)

            server.resource(uri, name=function.__name__, title=title, mime_type=kind)(read)
            return function

        return add

    return resource


def register(server: MCPServer[Any], app: App) -> None:
    """Put all resources and templates on a server; the docstrings are what a client shows."""
    resource = _resources(server)

    def newest(corpus: str, work: Callable[[Snapshot, str], str], id: str) -> str:
        return app.newest(app.corpus_for_reading(corpus), lambda snapshot: work(snapshot, id))

    @resource("graphrag://corpora", "Corpora", JSON)
    def corpora() -> str:
        """What is indexed: every corpus with its number of documents and its generation."""
        return all_corpora(app)

    # Before the other templates: a corpus may be called "jobs", and no job is called "stats".
    @resource("graphrag://{corpus}/stats", "Corpus statistics", JSON)
    def stats(corpus: str) -> str:
        """Counts, community levels, generation, model and recent jobs of a corpus."""
        return _json(index.status(app, corpus).model_dump(mode="json"))

    @resource("graphrag://drift/{session_id}", "DRIFT session", JSON)
    def drift(session_id: str) -> str:
        """A DRIFT session: its graph of questions (node-link), the same as a tree, and the answers
        ranked by score."""
        return session(app, session_id)

    @resource("graphrag://jobs/{job_id}", "Indexing job", JSON)
    def job(job_id: str) -> str:
        """An indexing job: status, progress, counts and errors."""
        return job_record(app, job_id)

    @resource("graphrag://prompts/{name}", "Prompt text", MARKDOWN)
    def prompt(name: str) -> str:
        """The text of one of the server's prompts, with its $variables."""
        return prompts.load(name).template

    @resource("graphrag://{corpus}/entity/{id}", "Entity", MARKDOWN, fence=True)
    def entity(corpus: str, id: str) -> str:
        """One entity by id (e12) or name: description, evidence, relationships, communities."""
        return newest(corpus, entity_text, id)

    @resource("graphrag://{corpus}/community/{id}", "Community report", MARKDOWN, fence=True)
    def community(corpus: str, id: str) -> str:
        """The report on one community (c5), with its members."""
        return newest(corpus, report_text, id)

    @resource("graphrag://{corpus}/text_unit/{id}", "Text unit", MARKDOWN, fence=True)
    def text_unit(corpus: str, id: str) -> str:
        """The exact original text of one text unit (t33) or passage (t33.2), with where it stands."""
        return newest(corpus, source_text, id)

    @resource("graphrag://{corpus}/document/{id}", "Document", PLAIN)
    def document(corpus: str, id: str) -> str:
        """One document (d4) as it was read."""
        return newest(corpus, document_text, id)


def all_corpora(app: App) -> str:
    names = app.corpora()
    found: list[dict[str, str | int]] = []
    for name in names[:SHOWN]:
        try:
            stored = manifest.read(app.folder(name))
        except Damaged:
            found.append({"name": name, "error": "damaged"})
            continue
        documents = stored.counters.get("documents", 0) if stored else 0
        generation = stored.generation if stored else 0
        found.append({"name": name, "documents": documents, "generation": generation})
    return _json({"corpora": found, "more": max(0, len(names) - SHOWN)})


def entity_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.entity import get_entity

    found = get_entity(snapshot, id, max_tokens=TOKENS)
    if found.state == "not_found":
        near = [str(candidate["id"]) for candidate in found.candidates[:5]]
        advice = f"Nearest: {', '.join(near)}" if near else "Call search_text for the words"
        raise NotFound(f"there is no entity {id[:60]!r}", advice)
    return found.text


def report_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.community import get_community_report

    return get_community_report(snapshot, id, max_tokens=TOKENS).text


def source_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.source import get_source

    if not re.fullmatch(r"t\d{1,12}(\.\d{1,6})?|[0-9a-f]{32}", id):
        raise BadInput(f"{id[:60]!r} is no text unit", "Give an id such as t33 or t33.2")
    return get_source(snapshot, [id], max_tokens=TOKENS, raw=True).text


def document_text(snapshot: Snapshot, id: str) -> str:
    row = document_row(snapshot, id)
    if row is None:
        last = snapshot.manifest.next.get("d", 1) - 1
        raise NotFound(f"there is no document {id[:60]!r}", f"Known are documents d1 to d{last}")
    text = row["text"]
    if len(text) <= CHARACTERS:
        return text
    return f"{text[:CHARACTERS]}\n\n[{len(text) - CHARACTERS:,} more characters: get_source reads them by id]"


def document_row(snapshot: Snapshot, id: str) -> dict[str, Any] | None:
    """The whole row of a document by d4 or its full id; None when it is unknown or damaged."""
    if match := re.fullmatch(r"d(\d{1,12})", id):
        rows = snapshot.by_key("documents", [int(match[1])], "n")
    elif re.fullmatch(r"[0-9a-f]{32}", id):
        rows = snapshot.by_key("documents", [id], "id")
    else:
        return None
    return next(iter(rows.to_pylist()), None)


def session(app: App, session_id: str) -> str:
    """A session as data, shortened until it is small enough, its tree and its answers by their scores."""
    from graphrag_mcp.query.drift_view import shortened, view
    from graphrag_mcp.tools.drift import session_of

    found, corpus = session_of(app, session_id, TREE_TOKENS)
    nodes = found.walk().graph.nodes
    ranked = sorted((-(node["score"] or 0.0), id) for id, node in nodes(data=True) if node["status"] == "answered")
    graph = shortened(found, CHARACTERS // 2)
    body = {
        "session_id": session_id,
        "question": graph["session"]["query"],
        "corpus": corpus,
        "graph": graph,
        "ranked": [{"id": id, "score": -score} for score, id in ranked],
        "tree": view(found).text,
        "left_out": len(nodes) - len(graph["nodes"]),
    }
    return _json(body)


def job_record(app: App, job_id: str) -> str:
    """The record without the request: that may hold whole texts."""
    job = queue.load(app.home, job_id)
    names = "job_id corpus status phase done total error started updated".split()
    shown = {name: getattr(job, name) for name in names}
    fields = ("counts", "skipped", "errors", "usage", "degraded", "pending", "losses", "seconds")
    result = {name: job.result[name] for name in fields if job.result.get(name)}
    parts = {name: part[:SHOWN] if is_list(part) else part for name, part in result.items()}
    return _json(shown | parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# ---- subscriptions -------------------------------------------------------------------------------

EVERY = 0.5  # seconds between two looks: a job writes its progress that often
MOST = 2_000  # subscriptions of one server; looking at that many files costs some 5 ms
PATIENCE = 2.0  # seconds for a client to take a notification before it is dropped
Stamp = Callable[[], object]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Subscription:
    """`seen`: the last of `stamp`. `session`: of protocols before 2026-07-28; else the bus."""

    stamp: Stamp
    seen: object
    session: Any = None


class Updates:
    """The subscriptions of one server, by who subscribed (a connection or a stream) and address.
    Everything but the looking itself happens on the server's event loop."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.bus = InMemorySubscriptionBus()
        self.subscriptions: dict[tuple[object, str], Subscription] = {}
        self.tasks: TaskGroup | None = None  # where the watch begins with the first subscription

    def attach(self, server: MCPServer[Any]) -> None:
        """Serve the two methods of earlier protocols; MCPServer serves only `subscriptions/listen`."""
        add = server._lowlevel_server.add_request_handler  # pyright: ignore[reportPrivateUsage]
        add("resources/subscribe", SubscribeRequestParams, self.subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self.unsubscribe)

    # ---- who listens -----------------------------------------------------------------------------

    async def subscribe(self, ctx: Any, params: SubscribeRequestParams) -> EmptyResult:
        uri, connection = str(params.uri), ctx.session._connection
        if not any(owner is connection for owner, _ in self.subscriptions):
            connection.exit_stack.callback(self._leave, connection)
        if not self._add(connection, uri, ctx.session):
            raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri[:200]}", {"uri": uri[:200]})
        return EmptyResult()

    async def unsubscribe(self, ctx: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        self.subscriptions.pop((ctx.session._connection, str(params.uri)), None)
        return EmptyResult()

    async def listen(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Serve a `subscriptions/listen` stream; what is not allowed is not acknowledged."""
        params: dict[str, Any] = dict(ctx.params or {})
        asked = params.get("notifications")
        if not is_object(asked) or not is_list(uris := asked.get("resourceSubscriptions")):
            return await call_next(ctx)
        stream = object()
        good = [uri for uri in uris if isinstance(uri, str) and self._add(stream, uri)]
        params["notifications"] = {**asked, "resourceSubscriptions": good}
        try:
            return await call_next(replace(ctx, params=params))
        finally:
            self._leave(stream)

    def _add(self, owner: object, uri: str, session: Any = None) -> bool:
        """False when there is no such resource for this caller, or no place."""
        if (owner, uri) in self.subscriptions:
            return True
        try:
            stamp = stamp_of(self.app, uri)
        except GraphRAGError:
            return False
        if len(self.subscriptions) >= MOST:
            return False
        self.subscriptions[owner, uri] = Subscription(stamp, stamp(), session)
        if self.tasks is not None:
            self.tasks.start_soon(self._watch)
            self.tasks = None
        return True

    def _leave(self, owner: object) -> None:
        for key in [key for key in self.subscriptions if key[0] is owner]:
            del self.subscriptions[key]

    # ---- telling them ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(EVERY)
            try:
                await self._look()
            except Exception as error:  # the next look may do better; the server goes on
                log.warning("resources were not looked at: %s", error)

    async def _look(self) -> None:
        looked = list(self.subscriptions.items())
        if not looked:
            return
        stamps = await anyio.to_thread.run_sync(
            lambda: [subscription.stamp() for _, subscription in looked], abandon_on_cancel=True
        )
        changed: set[str] = set()
        for ((_, uri), subscription), stamp in zip(looked, stamps, strict=True):
            if stamp == subscription.seen:
                continue
            subscription.seen = stamp
            if subscription.session is None:
                changed.add(uri)
                continue
            with anyio.move_on_after(PATIENCE):
                await subscription.session.send_resource_updated(uri)
        for uri in changed:  # the bus gives it to all who listen to it
            await self.bus.publish(ResourceUpdated(uri=uri))


def stamp_of(app: App, uri: str) -> Stamp:
    """What changes whenever the resource does. GraphRAGError when the caller may not know of it.

    A resource that is not there yet has a stamp too: a corpus may be about to be indexed. An
    address that is not ours never changes."""
    match = re.fullmatch(r"graphrag://([^/?#]+(?:/[^/?#]+){0,2})", uri)
    if match is None:
        return lambda: None
    first, *rest = map(unquote, match[1].split("/"))
    if not rest:
        return lambda: [(name, file_stamp(app.folder(name) / "manifest.json")) for name in app.corpora()]
    if len(rest) == 2 or rest == ["stats"]:  # of a corpus, which may be called "jobs"
        path = app.folder(first) / "manifest.json"
    elif first == "drift":
        path = app.drift_path(rest[0])
    elif first == "jobs":
        queue.load(app.home, rest[0])  # NotFound for what is not the caller's
        path = app.home / "jobs" / f"{rest[0]}.json"
    else:
        return lambda: None
    return lambda: file_stamp(path)
