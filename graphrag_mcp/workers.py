"""Several processes that serve one address: who gets a connection, what they count together, and the
replacement of one that has ended.

Takes a listening socket and the function that a worker runs. The parent accepts and hands each
connection to the worker that holds the fewest. A session lives in the worker that opened it, whose
number is part of the session id: a request that arrives elsewhere is handed on with its connection.
Knows no HTTP beyond the header of a session, no MCP and no index. Needs processes that can be forked
and sockets that can be handed over, so there are no workers on Windows.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import multiprocessing
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any

from graphrag_mcp.errors import BadInput

MOST = 64
RETRY = 0.02  # seconds until a connection is offered again to workers whose inboxes are full
YOUNG = 5.0  # seconds; one that ends earlier is replaced after a pause, which doubles each time
PAUSE, LONGEST_PAUSE = 0.5, 30.0
# What is counted; the last four by token.
CLOSED, TAKEN, SESSIONS, BUSY, SERVING, STREAMING = range(6)
_SESSION = re.compile(rb"(?i)\r?\nmcp-session-id:[ \t]*[!-~]{1,200}-(\d{1,3})[ \t]*\r?\n")
_WOKEN = 255  # on the pipe of the parent: a signal came; other bytes are numbers of workers

log = logging.getLogger(__name__)


class Tally:
    """Numbers that all workers see. Each writes its own row only, so there is no lock that a killed
    worker could leave behind. One process alone has one row.
    """

    def __init__(self, names: Sequence[str] = (), workers: int = 1) -> None:
        self.workers, self.number = workers, 0
        self._places = {name: place for place, name in enumerate(names or ("",))}
        self._width = 6 * len(self._places)
        self._cells = memoryview(mmap.mmap(-1, 8 * self._width * workers)).cast("q")

    def put(self, kind: int, value: int, name: str = "") -> None:
        self._cells[self._cell(self.number, kind, name)] = value

    def add(self, kind: int, more: int) -> None:
        self._cells[self._cell(self.number, kind, "")] += more

    def of(self, number: int, kind: int, name: str = "") -> int:
        return self._cells[self._cell(number, kind, name)]

    def others(self, kind: int, name: str = "") -> int:
        """The sum over the other workers."""
        rows = (row for row in range(self.workers) if row != self.number)
        return sum(self.of(row, kind, name) for row in rows)

    def clear(self, number: int) -> None:
        for cell in range(number * self._width, (number + 1) * self._width):
            self._cells[cell] = 0

    def _cell(self, number: int, kind: int, name: str) -> int:
        return number * self._width + 6 * self._places.get(name, 0) + kind


class Inbox:
    """Where a worker gets its connections: from the parent, and from workers that read a request
    for one of its sessions.
    """

    def __init__(
        self,
        number: int,
        tally: Tally,
        channels: Sequence[tuple[socket.socket, socket.socket]],
        parent: int,
        ready: Callable[[], None],
    ) -> None:
        self.number, self.tally, self.ready = number, tally, ready
        self.parent = parent  # a pipe that ends with the parent
        self.channel = channels[number][1]
        self._senders = [sender for sender, _ in channels]

    def owner(self, head: bytes) -> int:
        """The worker that a request with this header is for."""
        found = _SESSION.search(head)
        number = int(found[1]) if found else self.number
        return number if number < len(self._senders) else self.number

    def give(self, number: int, connection: socket.socket, head: bytes) -> bool:
        """Hand a connection to another worker, with what was read of it; False when it takes none
        now.
        """
        return _post(self._senders[number], connection, head)

    def take(self) -> tuple[socket.socket, bytes] | None:
        """The next connection and what another worker has read of it; None when there is none."""
        try:
            _, files, _, _ = socket.recv_fds(self.channel, 1, 2)
        except (BlockingIOError, InterruptedError):
            return None
        head = b""
        if len(files) > 1:
            with open(files[1], "rb") as read:
                read.seek(0)
                head = read.read()
            self.tally.add(TAKEN, 1)
        return socket.socket(fileno=files[0]), head


class Workers:
    """The parent: accepts connections, and has `count` processes that run `work` with an inbox."""

    def __init__(
        self, listener: socket.socket, count: int, tally: Tally, work: Callable[[Inbox], Any]
    ) -> None:
        self.listener, self.count, self.tally, self.work = listener, count, tally, work
        self.channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        for end in (end for pair in self.channels for end in pair):
            end.setblocking(False)
        self.context: Any = multiprocessing.get_context("fork")
        self.processes: dict[int, Any] = {}
        self.ready: set[int] = set()
        self.handed = [0] * count
        self.began, self.pauses = [0.0] * count, [0.0] * count
        self.due: dict[int, float] = {}  # workers to be started, and when
        self.accepted: socket.socket | None = None  # waits for an inbox with room
        self.woken, self.wake = os.pipe()
        self.alive = os.pipe()
        self.signals: list[int] = []

    def run(self, opened: Callable[[], None], grace: float) -> int:
        """Serve until SIGTERM or Ctrl-C; then workers get `grace` seconds to end. `opened` is called
        when all of them serve. Returns the exit status.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signal)
        self.listener.setblocking(False)
        self.due = dict.fromkeys(range(self.count), 0.0)
        announced = failed = False
        while not self.signals and not failed:
            self._start_due()
            pauses = [at - time.monotonic() for at in self.due.values()]
            sources = [self.woken, *(process.sentinel for process in self.processes.values())]
            if self.accepted is not None:
                pauses.append(RETRY)
            elif self.ready:
                sources.append(self.listener)
            found = wait(sources, max(0.0, min(pauses)) if pauses else None)
            if self.woken in found:
                told = os.read(self.woken, 1024)
                self.ready |= {number for number in told if number != _WOKEN}
            failed = self._bury(announced)
            if not announced and len(self.ready) == self.count:
                announced = True
                opened()
            if self.listener in found:
                self._accept()
            self._hand_out()
        self._stop(grace)
        return 1 if failed else 130 if self.signals[0] == signal.SIGINT else 0

    # ---- processes -------------------------------------------------------------------------------

    def _start_due(self) -> None:
        for number in [one for one, at in self.due.items() if at <= time.monotonic()]:
            del self.due[number]
            self.tally.clear(number)
            self.handed[number] = 0
            self.began[number] = time.monotonic()
            process = self.context.Process(target=self._child, args=(number,))
            process.start()
            self.processes[number] = process
            log.info("worker %d is process %d", number, process.pid)

    def _child(self, number: int) -> None:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        self.listener.close()
        os.close(self.alive[1])
        self.tally.number = number
        tell = partial(self._tell, number)
        self.work(Inbox(number, self.tally, self.channels, self.alive[0], tell))

    def _tell(self, number: int) -> None:
        os.write(self.wake, bytes([number]))

    def _signal(self, number: int, _: Any) -> None:
        self.signals.append(number)
        self._tell(_WOKEN)

    def _bury(self, announced: bool) -> bool:
        """See to workers that have ended; True when one could not begin and none ever served."""
        for number, process in list(self.processes.items()):
            if process.exitcode is None:
                continue
            del self.processes[number]
            self.ready.discard(number)
            if self.signals:
                continue
            if not announced:
                log.error("worker %d ended with %d before it served", number, process.exitcode)
                return True
            young = time.monotonic() - self.began[number] < YOUNG
            longer = min(LONGEST_PAUSE, max(PAUSE, 2 * self.pauses[number]))
            self.pauses[number] = longer if young else 0.0
            log.warning("worker %d ended with %d and is replaced", number, process.exitcode)
            self.due[number] = time.monotonic() + self.pauses[number]
        return False

    def _stop(self, grace: float) -> None:
        self.listener.close()
        for process in self.processes.values():
            process.terminate()
        end = time.monotonic() + grace
        while time.monotonic() < end and len(self.signals) < 2:  # a second Ctrl-C does not wait
            left = [one.sentinel for one in self.processes.values() if one.exitcode is None]
            if not left:
                return
            wait([self.woken, *left], end - time.monotonic())
            with contextlib.suppress(BlockingIOError):
                os.set_blocking(self.woken, False)
                os.read(self.woken, 1024)
        for process in self.processes.values():
            process.kill()

    # ---- connections -----------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            self.accepted = self.listener.accept()[0]
        except (BlockingIOError, ConnectionError):
            return
        except OSError as error:  # no descriptor is left
            log.error("no connection could be accepted (%s)", error.strerror)
            time.sleep(PAUSE)

    def _hand_out(self) -> None:
        if self.accepted is None:
            return
        for number in sorted(self.ready, key=lambda one: (self._held(one), self.handed[one])):
            if _post(self.channels[number][0], self.accepted, b""):
                self.handed[number] += 1
                self.accepted.close()
                self.accepted = None
                return

    def _held(self, number: int) -> int:
        """Connections of a worker, those included that it has not looked at yet."""
        closed = self.tally.of(number, CLOSED)
        return self.handed[number] + self.tally.of(number, TAKEN) - closed


def _post(channel: socket.socket, connection: socket.socket, head: bytes) -> bool:
    """What was read goes as a file: a message of this kind may be as short as 2 kB on some systems."""
    with contextlib.ExitStack() as files:
        numbers = [connection.fileno()]
        if head:
            file = files.enter_context(tempfile.TemporaryFile())
            file.write(head)
            file.flush()
            numbers.append(file.fileno())
        try:
            socket.send_fds(channel, [b"c"], numbers)
        except OSError:  # its inbox is full
            return False
    return True


def checked(count: int) -> int:
    """The number of workers. BadInput where that many cannot be had."""
    if not 1 <= count <= MOST:
        raise BadInput(f"--workers {count} is not possible", f"Give a number from 1 to {MOST}")
    if count > 1 and not (hasattr(os, "fork") and hasattr(socket, "send_fds")):
        raise BadInput(
            "several workers need a system that hands sockets from process to process",
            "Leave --workers out, or serve from Linux or macOS",
        )
    return count
