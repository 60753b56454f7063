"""Subscriptions to resources, and the task that notifies subscribers when the files behind a
resource change."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
import anyio.to_thread
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import INVALID_PARAMS, EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from graphrag_mcp.app import App, file_stamp
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs import queue

if TYPE_CHECKING:
    from mcp.server import MCPServer

EVERY = 0.5  # seconds between two looks: a job writes its progress that often
MOST = 2_000  # subscriptions of one server; looking at that many files costs some 5 ms
PATIENCE = 2.0  # seconds for a client to take a notification before it is dropped
Stamp = Callable[[], object]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Subscription:
    """`seen`: what `stamp` gave last. `session` is that of a protocol before 2026-07-28; streams of
    later ones are told through the bus."""

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
        self.begun = anyio.Event()  # there has been a subscription

    def attach(self, server: MCPServer[Any]) -> None:
        """Serve the two methods of earlier protocols; MCPServer serves only `subscriptions/listen`."""
        add = server._lowlevel_server.add_request_handler
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
        """Serve one `subscriptions/listen` stream; what may not be listened to is left out of its
        acknowledgement."""
        params = dict(ctx.params or {})
        asked = params.get("notifications")
        uris = asked.get("resourceSubscriptions") if isinstance(asked, Mapping) else None
        if not isinstance(uris, list):
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
        self.begun.set()
        return True

    def _leave(self, owner: object) -> None:
        for key in [key for key in self.subscriptions if key[0] is owner]:
            del self.subscriptions[key]

    # ---- telling them ----------------------------------------------------------------------------

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """For the server's lifespan."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def _watch(self) -> None:
        await self.begun.wait()
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
            lambda: [one.stamp() for _, one in looked], abandon_on_cancel=True
        )
        changed = set()
        for ((_, uri), one), stamp in zip(looked, stamps, strict=True):
            if stamp == one.seen:
                continue
            one.seen = stamp
            if one.session is None:
                changed.add(uri)
                continue
            with anyio.move_on_after(PATIENCE):
                await one.session.send_resource_updated(uri)
        for uri in changed:  # the bus gives it to all who listen to it
            await self.bus.publish(ResourceUpdated(uri=uri))


def stamp_of(app: App, uri: str) -> Stamp:
    """What changes whenever the resource does. GraphRAGError when the caller may not know of it.

    A resource that is not there yet has a stamp too: a corpus may be about to be indexed. An
    address that is not ours never changes."""
    match = re.fullmatch(r"graphrag://([^/?#]+)(?:/([^/?#]+))?(?:/[^/?#]+)?", uri)
    if match is None:
        return lambda: None
    first, second = unquote(match[1]), unquote(match[2] or "")
    if not second:
        return lambda: [
            (name, file_stamp(app.folder(name) / "manifest.json")) for name in app.corpora()
        ]
    if first == "prompts":
        return lambda: None
    path = app.folder(first) / "manifest.json"
    if first == "drift" and second != "stats":
        path = app.drift_path(second)
    if first == "jobs" and second != "stats":
        queue.load(app.home, second)  # NotFound for what is not the caller's
        path = app.home / "jobs" / f"{second}.json"
    return lambda: file_stamp(path)
