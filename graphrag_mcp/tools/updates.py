"""Subscriptions to resources, and the task that notifies subscribers when the files behind a
resource change."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import queue

if TYPE_CHECKING:
    from mcp.server import MCPServer

EVERY = 0.5  # seconds between two looks: a job writes its progress that often
MOST = 2_000  # subscriptions of one server; looking at that many files costs some 5 ms
PATIENCE = 2.0  # seconds for a client to take a notification before it is dropped
Stamp = Callable[[], object]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Wish:
    """One subscription. `session` is that of the old era; the new one is told through the bus."""

    uri: str
    stamp: Stamp
    seen: object
    session: Any = None
    connection: Any = None


class Updates:
    """The subscriptions of one server. Everything but the looking itself happens on the server's
    event loop."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.bus = InMemorySubscriptionBus()
        self.wishes: list[Wish] = []
        self.some: anyio.Event | None = None

    def attach(self, server: MCPServer[Any]) -> None:
        """Serve the old era's two methods; MCPServer itself serves only `subscriptions/listen`."""
        lowlevel = server._lowlevel_server
        lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, self.subscribe)
        lowlevel.add_request_handler(
            "resources/unsubscribe", UnsubscribeRequestParams, self.unsubscribe
        )

    # ---- who listens -----------------------------------------------------------------------------

    async def subscribe(self, ctx: Any, params: SubscribeRequestParams) -> EmptyResult:
        uri, connection = str(params.uri), ctx.session._connection
        if not any(wish.connection is connection for wish in self.wishes):
            connection.exit_stack.callback(self._leave, connection)
        if not self._wish(uri, ctx.session, connection):
            raise MCPError(INVALID_PARAMS, f"Unknown resource: {uri[:200]}", {"uri": uri[:200]})
        return EmptyResult()

    async def unsubscribe(self, ctx: Any, params: UnsubscribeRequestParams) -> EmptyResult:
        uri, connection = str(params.uri), ctx.session._connection
        self.wishes = [
            wish for wish in self.wishes if (wish.uri, wish.connection) != (uri, connection)
        ]
        return EmptyResult()

    async def listen(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Serve one `subscriptions/listen` stream; what may not be listened to is left out of its
        acknowledgement.
        """
        params = dict(ctx.params or {})
        asked = params.get("notifications")
        uris = asked.get("resourceSubscriptions") if isinstance(asked, Mapping) else None
        if not isinstance(uris, list):
            return await call_next(ctx)
        stream = object()
        good = [uri for uri in uris if isinstance(uri, str) and self._wish(uri, None, stream)]
        params["notifications"] = {**asked, "resourceSubscriptions": good}
        try:
            return await call_next(replace(ctx, params=params))
        finally:
            self._leave(stream)

    def _wish(self, uri: str, session: Any, connection: Any) -> bool:
        """Remember a subscription; False when there is no such resource for this caller, or no
        place."""
        if any(wish.uri == uri and wish.connection is connection for wish in self.wishes):
            return True
        try:
            stamp = stamp_of(self.app, uri)
        except GraphRAGError:
            return False
        if len(self.wishes) >= MOST:
            return False
        self.wishes.append(wish := Wish(uri, stamp, None, session, connection))
        wish.seen = _now(wish)
        if self.some is not None:
            self.some.set()
        return True

    def _leave(self, connection: Any) -> None:
        self.wishes = [wish for wish in self.wishes if wish.connection is not connection]

    # ---- telling them ----------------------------------------------------------------------------

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """For the server's lifespan."""
        self.some = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        while True:
            if not self.wishes:
                self.some = anyio.Event()
                await self.some.wait()
            await anyio.sleep(EVERY)
            try:
                await self._look()
            except Exception as error:  # the next look may do better; the server goes on
                log.warning("resources were not looked at: %s", error)

    async def _look(self) -> None:
        wishes = list(self.wishes)
        stamps = await anyio.to_thread.run_sync(
            lambda: [_now(wish) for wish in wishes], abandon_on_cancel=True
        )
        published = set()
        for wish, stamp in zip(wishes, stamps, strict=True):
            if stamp == wish.seen:
                continue
            wish.seen = stamp
            if wish.session is not None:
                with anyio.move_on_after(PATIENCE):
                    await wish.session.send_resource_updated(wish.uri)
            elif wish.uri not in published:  # the bus gives it to all who listen to it
                published.add(wish.uri)
                await self.bus.publish(ResourceUpdated(uri=wish.uri))


def stamp_of(app: App, uri: str) -> Stamp:
    """What changes whenever the resource does. GraphRAGError when the caller may not know of it.

    A resource that is not there yet has a stamp too: a corpus may be about to be indexed. An
    address that is not ours never changes."""
    match = re.fullmatch(r"graphrag://([^/?#]+)(?:/([^/?#]+))?(?:/[^/?#]+)?", uri)
    if match is None:
        return lambda: None
    first, second = unquote(match[1]), unquote(match[2] or "")
    if not second:
        return lambda: [(name, _file(app.folder(name) / "manifest.json")) for name in app.corpora()]
    if first == "drift" and second != "stats":
        path = app.drift_path(second)
        return lambda: _file(path)
    if first == "jobs" and second != "stats":
        queue.load(app.home, second)  # NotFound for what is not the caller's
        record = app.home / "jobs" / f"{second}.json"
        return lambda: _file(record)
    if first == "prompts":
        return lambda: None
    manifest = app.folder(first) / "manifest.json"
    return lambda: _file(manifest)


def _now(wish: Wish) -> object:
    try:
        return wish.stamp()
    except OSError:  # a folder that cannot be listed just now
        return wish.seen


def _file(path: Path) -> tuple[int, int, int]:
    try:
        stat = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
