"""Connections of the HTTP server: how many are open, and how long each may wait for its client.

Takes a listening socket and a uvicorn configuration; gives a server that accepts by itself. uvicorn
limits neither the time of a request's header and body nor the number of connections, and asyncio's
own accepting tries a failed accept 2,048 times at once and logs each. A connection with a whole
request is never closed here: a call may take minutes and an event stream stays open for days. Knows
no MCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import errno
import logging
import os
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphrag_mcp.errors import BadInput
from graphrag_mcp.workers import CLOSED, RETRY, Inbox

MOST = 1_000  # connections in all where the limit of open files does not ask for fewer
PAUSE = 0.2  # seconds after a failed accept
LONGEST_HEAD = 64 * 1024  # bytes that are looked at for a session
_HEAD_ENDS = re.compile(rb"\n\r?\n")
# Requests sent before the answer to the one before; after that many the connection is closed.
PIPELINED = 10
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Connections in all and per address, and the seconds that a connection may wait for its
    client.
    """

    connections: int
    per_address: int
    head: float = 15.0  # for the header of a request; longer than uvicorn's 5 s between two
    body: float = 60.0  # 4 MiB at 70 kB/s
    rest: float = 5.0  # for the rest of a body whose request has been answered
    reading: float = 60.0  # for the client to read what is written

    @classmethod
    def of_process(cls) -> Limits:
        """At most half of the files that this process may open: the index needs the others. One
        address gets at most three quarters of that, so that another one is still served.
        """
        most = min(MOST, max(16, _open_files() // 2))
        return cls(most, most * 3 // 4)


def _open_files() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit for sockets
        return 2 * MOST
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2 * MOST if soft == resource.RLIM_INFINITY else soft


class Phase(enum.IntEnum):
    """What a connection waits for. Where one has to give way, it is one of the lowest phase."""

    NEW = 0  # the header of its first request
    IDLE = 1  # the header of another request
    REST = 2  # the rest of a body whose request has been answered
    READING = 3  # the client, which has not read what was written
    BODY = 4  # the body of a request
    SERVING = 5  # this server


class Connections:
    """All connections of a server. A new one takes the place of one that waits for its client, when
    there is none.
    """

    def __init__(self, limits: Limits, inbox: Inbox | None = None) -> None:
        self.limits, self.inbox = limits, inbox
        self.held: dict[Connection, None] = {}
        self.per_address: Counter[str] = Counter()

    def admit(self, address: str) -> bool:
        """Whether there is room for a connection from this address, after another one has made room
        if need be.
        """
        count = len(self.held)
        if self.per_address[address] >= self.limits.per_address:
            room = self.make_room([one for one in self.held if one.address == address])
        elif count >= self.limits.connections:
            room = self.make_room(self.held)
        else:
            return True
        closed = "%d connections are open; the one that waited longest for its client was closed"
        refused = "a new connection was refused: %d are open and all are being served"
        log.warning(closed if room else refused, count)
        return room

    def make_room(self, candidates: Iterable[Connection]) -> bool:
        """Close the connection that has waited longest for its client; False when all of them are
        being served.
        """
        waiting = [one for one in candidates if one.phase < Phase.SERVING]
        if waiting:
            min(waiting, key=lambda one: (one.phase, one.since)).drop()
        return bool(waiting)

    def add(self, connection: Connection) -> None:
        self.held[connection] = None
        self.per_address[connection.address] += 1

    def remove(self, connection: Connection) -> None:
        if connection in self.held:
            del self.held[connection]
            self.per_address[connection.address] -= 1
            if not self.per_address[connection.address]:
                del self.per_address[connection.address]
            if self.inbox is not None:
                self.inbox.tally.add(CLOSED, 1)


class Connection(H11Protocol):
    """One connection, which is closed when its client keeps it waiting for too long."""

    def __init__(self, pool: Connections, head: bytes, **options: Any) -> None:
        super().__init__(**options)
        self.head = head  # of a request, until it is known which worker the request is for
        self.pool, self.address, self.pipelined = pool, "", 0
        self.phase, self.since = Phase.NEW, self.loop.time()
        self.deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_in(transport.get_extra_info("peername"))
        self.pool.add(self)
        self._begin(Phase.NEW)
        if self.head:
            self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.remove(self)
        if self.deadline is not None:
            self.deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.pool.inbox is not None and self.phase in (Phase.NEW, Phase.IDLE):
            self.head += data
            if not _HEAD_ENDS.search(self.head) and len(self.head) < LONGEST_HEAD:
                return
            owner = self.pool.inbox.owner(self.head)
            if owner != self.pool.inbox.number:
                self.transport.pause_reading()
                self._hand_over(self.pool.inbox, owner)
                return
            data, self.head = self.head, b""
        super().data_received(data)
        self._look()

    def _hand_over(self, inbox: Inbox, owner: int) -> None:
        """Give the connection to the worker that has the session of its request."""
        if self.transport.is_closing():
            return
        if inbox.give(owner, self.transport.get_extra_info("socket"), self.head):
            self.drop()  # the other worker has a descriptor of its own
        else:
            self.loop.call_later(RETRY, self._hand_over, inbox, owner)

    def on_response_complete(self) -> None:
        self.pipelined = self.pipelined + 1 if self.conn.trailing_data[0] else 0
        if self.pipelined > PIPELINED:  # else it never waits, and gives way to no other
            self.transport.close()
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def drop(self) -> None:
        """Close it at once, whatever has not been written."""
        self.pool.remove(self)
        self.transport.abort()

    def _look(self) -> None:
        phase = self._phase()
        if phase != self.phase:
            self._begin(phase)

    def _phase(self) -> Phase:
        answered = self.cycle is None or self.cycle.response_complete
        if self.flow.write_paused:
            return Phase.READING
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.REST if answered else Phase.BODY
        if not answered:
            return Phase.SERVING
        return Phase.NEW if self.cycle is None else Phase.IDLE

    def _begin(self, phase: Phase) -> None:
        self.phase, self.since = phase, self.loop.time()
        if self.deadline is not None:
            self.deadline.cancel()
        limits = self.pool.limits
        seconds = {Phase.REST: limits.rest, Phase.READING: limits.reading, Phase.BODY: limits.body}
        late = None if phase == Phase.SERVING else seconds.get(phase, limits.head)
        self.deadline = None if late is None else self.loop.call_later(late, self.drop)


class Server(uvicorn.Server):
    """uvicorn, which is given its connections by `accept`. It leaves signals to who runs it: its
    own handler ends the event streams in which calls answer. A worker has an inbox in place of a
    listener.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket | None,
        limits: Limits,
        inbox: Inbox | None = None,
    ) -> None:
        super().__init__(config)
        self.listener, self.inbox, self.pool = listener, inbox, Connections(limits, inbox)
        self.accepting: asyncio.Task[None] | None = None

    def capture_signals(self) -> Any:
        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        if self.listener is not None:
            self.accepting = asyncio.create_task(accept(self.listener, self._connection, self.pool))
        if self.inbox is not None:
            self.accepting = asyncio.create_task(receive(self.inbox, self._connection, self.pool))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.accepting is not None:
            self.accepting.cancel()
        await super().shutdown(sockets=[self.listener] if self.listener else [])

    def _connection(self, head: bytes = b"") -> Connection:
        given = {"server_state": self.server_state, "app_state": self.lifespan.state}
        return Connection(self.pool, head, config=self.config, **given)


async def accept(
    listener: socket.socket, make: Callable[[], Connection], pool: Connections
) -> None:
    """Accept connections, one after another, until cancelled."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    while True:
        try:
            accepted, peer = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno in EXHAUSTED:
                advice = "Raise the limit of open files (ulimit -n) when this goes on"
                said = os.strerror(error.errno)
                log.error("no connection could be accepted (%s). %s", said, advice)
                for _ in range(len(pool.held) // 4 + 1):
                    pool.make_room(pool.held)
            await asyncio.sleep(PAUSE)  # else a client that has left already (ECONNABORTED)
            continue
        await _begin(accepted, peer, make, pool)


async def receive(inbox: Inbox, make: Callable[[bytes], Connection], pool: Connections) -> None:
    """Take connections from the parent and the other workers, one after another, until cancelled."""
    loop, some = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(inbox.channel, some.set)
    inbox.ready()
    try:
        while True:
            taken = inbox.take()
            if taken is None:
                some.clear()
                await some.wait()
                continue
            accepted, head = taken
            accepted.setblocking(False)
            try:
                peer = accepted.getpeername()
            except OSError:
                peer = None
            if not await _begin(accepted, peer, partial(make, head), pool):
                inbox.tally.add(CLOSED, 1)
    finally:
        loop.remove_reader(inbox.channel)


async def _begin(
    accepted: socket.socket, peer: Any, make: Callable[[], Connection], pool: Connections
) -> bool:
    """Serve a connection if there is room for it; False when it was not begun."""
    if not pool.admit(address_in(peer)):
        refuse(accepted)
        await asyncio.sleep(0)  # the connections that are open go on
        return False
    try:
        await asyncio.get_running_loop().connect_accepted_socket(make, accepted)
    except Exception as error:  # of one connection; the others go on
        log.warning("a connection could not be served: %s", error)
        return False
    return True


def refuse(accepted: socket.socket) -> None:
    with accepted, contextlib.suppress(OSError):
        accepted.setblocking(False)
        accepted.send(BUSY)


def address_in(peer: Any) -> str:
    """The address without the port; "" for a client that has left already."""
    return str(peer[0]) if isinstance(peer, tuple) and peer else ""


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. BadInput when it cannot be had."""
    where = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    try:
        family, *_, address = socket.getaddrinfo(where, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # :: is every address
        return socket.create_server(address, family=family, backlog=512, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", "") or error).partition(" (while attempting")[0]
        what = f"{host}:{port} cannot be listened on ({reason})"
        raise BadInput(what, "Choose another --port or --host") from error
