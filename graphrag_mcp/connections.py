"""Connections and processes of the HTTP server: uvicorn, with limits for slow clients, in one
process or in several that are given their clients by another.

uvicorn answers 503 when there are too many connections, also idle ones, and does not limit the time
of a client's request or reading. A connection whose request is being answered is never closed here:
a call may take minutes, an event stream days. Knows no MCP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from graphrag_mcp.errors import BadInput

MOST = 1_000  # connections, where the limit of open files does not ask for fewer
PATIENCE = 60.0  # seconds that a client has to send a request, and to read a response
GRACE = 8  # seconds for calls to finish after SIGTERM; containers are killed after 10
WORKERS = 64
PAUSE = 0.5  # seconds before a worker that has ended is replaced
QUEUE = 512  # connections that the system holds until they are accepted
TAKEN, ENDED = b"+", b"-"  # what a worker says of a connection
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

log = logging.getLogger(__name__)


def most_connections() -> int:
    """At most half of the files that this process may open: the index needs the others."""
    try:
        import resource
    except ImportError:  # Windows has no such limit for sockets
        return MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else min(MOST, max(16, files // 2))


class Pool(ServerState):
    """All connections of a server, and those that wait for their client, longest first."""

    def __init__(self, most: int, patience: float, channel: socket.socket | None = None) -> None:
        super().__init__()
        self.most, self.patience, self.channel = most, patience, channel
        self.waiting: dict[Connection, asyncio.TimerHandle] = {}

    def has_room(self) -> bool:
        """Is there room for the newest connection, if need be after closing one that waits?"""
        if len(self.connections) <= self.most:
            return True
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            log.warning("a new connection was refused: %d are being served", self.most)
            return False
        log.warning("%d connections are open; the one that waited longest was closed", self.most)
        oldest.drop()
        return True


class Connection(H11Protocol):
    """One connection, which is closed when its client keeps it waiting for too long."""

    server_state: Pool

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.server_state.has_room():
            self._update()
        else:
            transport.write(BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        if channel := self.server_state.channel:
            with contextlib.suppress(OSError):
                channel.send(ENDED)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        # A client that sends on never waits, and gives way to no one.
        if self.conn.trailing_data[0]:
            self.transport.close()
        super().on_response_complete()
        self._update()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update()

    def drop(self) -> None:
        """Close it at once, whatever has not been written."""
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def _update(self) -> None:
        """Begin or end the time that the client has."""
        answering = self.cycle is not None and not self.cycle.response_complete
        receiving = self.conn.their_state is h11.SEND_BODY
        if answering and not receiving and not self.flow.write_paused:
            self._stop_waiting()
        elif self not in self.server_state.waiting and not self.transport.is_closing():
            patience = self.server_state.patience
            self.server_state.waiting[self] = self.loop.call_later(patience, self.drop)

    def _stop_waiting(self) -> None:
        if timer := self.server_state.waiting.pop(self, None):
            timer.cancel()


class Server(uvicorn.Server):
    """uvicorn with `Connection`. `ending` ends event streams, which do not end by themselves."""

    def __init__(
        self,
        app: Any,
        ending: Callable[[], None] = lambda: None,
        *,
        most: int = 0,
        patience: float = PATIENCE,
        channel: socket.socket | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=1,  # accepted at once, before they are counted
            timeout_graceful_shutdown=GRACE,
        )
        super().__init__(config)
        self.server_state = Pool(most or most_connections(), patience, channel)
        self.ending = ending

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A stop by SIGTERM, Ctrl-C, or the end of the parent process. sse-starlette looks for
        uvicorn's own handler, and would end streams in which calls are answered."""

        def stop(*_: Any) -> None:
            self.should_exit = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        if hasattr(os, "fork") and (parent := multiprocessing.parent_process()):
            asyncio.get_running_loop().add_reader(parent.sentinel, stop)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)
        if channel := self.server_state.channel:
            channel.setblocking(False)
            asyncio.get_running_loop().add_reader(channel, self._take, channel)

    def _take(self, channel: socket.socket) -> None:
        """Serve the clients that the supervisor has accepted."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(BlockingIOError):
            while fds := socket.recv_fds(channel, 1, 1)[1]:
                channel.send(TAKEN)
                client = socket.socket(fileno=fds[0])
                client.setblocking(False)
                state = self.lifespan.state
                factory = partial(Connection, self.config, self.server_state, state)
                task = loop.create_task(loop.connect_accepted_socket(factory, client))
                self.server_state.tasks.add(cast("asyncio.Task[None]", task))  # only awaited
                task.add_done_callback(self.server_state.tasks.discard)
            loop.remove_reader(channel)  # the supervisor has ended

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending()
        for connection in list(self.server_state.waiting):
            if not connection.flow.write_paused:  # else a response is on its way
                connection.drop()
        await super().shutdown(sockets)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one. BadInput when it cannot be had."""
    where = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    try:
        family, *_, address = socket.getaddrinfo(where, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # :: is every address
        return socket.create_server(address, family=family, backlog=QUEUE, dualstack_ipv6=both)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", "") or error).partition(" (while attempting")[0]
        what = f"{host}:{port} cannot be listened on ({reason})"
        raise BadInput(what, "Choose another --port or --host") from error


# ---- workers --------------------------------------------------------------------------------------


def checked(count: int) -> int:
    """The number of workers. BadInput where that many cannot be had."""
    if not 1 <= count <= WORKERS:
        raise BadInput(f"--workers {count} is not possible", f"Give a number from 1 to {WORKERS}")
    if count > 1 and not hasattr(os, "fork"):
        what = "several workers need a system that forks processes"
        raise BadInput(what, "Leave --workers out, or serve from Linux or macOS")
    return count


@dataclass(slots=True)
class Worker:
    """A process that serves. Connections are sent to it through `channel`; it answers TAKEN for each,
    and ENDED when one ends. `connections`: how many it has; `sent`: those that it has not taken.
    `since`: when it was found ended, 0 while it runs."""

    process: Any
    channel: socket.socket
    connections: int = 0
    sent: deque[socket.socket] = field(default_factory=deque)
    since: float = 0.0


class Supervisor:
    """Runs `work(channel)` in so many processes, gives each new client to the one that has fewest, and
    replaces those that end, until SIGTERM or Ctrl-C; then they get `grace` seconds to end. Were the
    socket shared, the worker that is idle would take nearly all of the clients that come at once."""

    def __init__(self, work: Callable[[socket.socket], Any], count: int, grace: float) -> None:
        self.work, self.grace = work, grace
        self.context = multiprocessing.get_context("fork")
        self.stopped: list[int] = []
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self.stopped.append(number))
        self.workers: list[Worker] = []
        for number in range(count):
            self.workers.append(self._started(number))

    def _started(self, number: int) -> Worker:
        ours, theirs = socket.socketpair()
        process = self.context.Process(target=self._child, args=(theirs,))
        process.start()
        theirs.close()
        ours.setblocking(False)
        log.info("worker %d is process %d", number, process.pid)
        return Worker(process, ours)

    def _child(self, channel: socket.socket) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        for worker in self.workers:
            worker.channel.close()
        self.work(channel)

    def run(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        while not self.stopped:
            alive = [worker for worker in self.workers if not worker.since]
            sentinels = [worker.process.sentinel for worker in alive]
            ready = wait([listener, *sentinels, *(worker.channel for worker in alive)], PAUSE)
            for number, worker in enumerate(self.workers):
                if worker.channel in ready:
                    self._hear(worker)
                if not worker.since and worker.process.exitcode is not None and not self.stopped:
                    ended = worker.process.exitcode
                    log.warning("worker %d ended with %d and is replaced", number, ended)
                    worker.channel.close()
                    worker.since = time.monotonic()
                    for client in worker.sent:
                        self._hand_over(client)
                elif worker.since and time.monotonic() - worker.since >= PAUSE:
                    self.workers[number] = self._started(number)
            if listener in ready:
                with contextlib.suppress(OSError):
                    self._hand_over(listener.accept()[0])
        listener.close()
        self._end()

    def _hear(self, worker: Worker) -> None:
        with contextlib.suppress(OSError):
            for message in worker.channel.recv(QUEUE):
                if message == TAKEN[0]:
                    worker.sent.popleft().close()
                else:
                    worker.connections -= 1

    def _hand_over(self, client: socket.socket) -> None:
        """Give a client to the worker with fewest; one that reads nothing is passed over."""
        for worker in sorted(self.workers, key=lambda worker: worker.connections):
            with contextlib.suppress(OSError):
                if not worker.since:
                    socket.send_fds(worker.channel, [TAKEN], [client.fileno()])
                    worker.connections += 1
                    worker.sent.append(client)
                    return
        client.close()

    def _end(self) -> None:
        processes = [worker.process for worker in self.workers]
        for process in processes:
            process.terminate()
        end = time.monotonic() + self.grace
        while len(self.stopped) < 2 and time.monotonic() < end:  # a second Ctrl-C does not wait
            left = [process.sentinel for process in processes if process.exitcode is None]
            if not left:
                return
            wait(left, PAUSE)
        for process in processes:
            process.kill()
