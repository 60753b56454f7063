"""A function over items: in this process, in processes of this machine, or as Ray's tasks.

The function is of a module and depends on its item alone; results come in the order of the items.
Work goes out in parts, some ahead. Another process does the part of one that dies.

`python -m graphrag_mcp.executors` is such a process: it takes parts until its input ends."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import pickle
import queue
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from graphrag_mcp import __version__
from graphrag_mcp.errors import BadInput, GraphRAGError, extra

T = TypeVar("T")
R = TypeVar("R")
Done = tuple[bool, Any]  # True and the results of a part, or False and the error of its first item that has one

PART, PART_WEIGHT = 32, 64 * 1024  # items, or units of weight, that go out together at most
AHEAD, AHEAD_WEIGHT = 40, 16 * 1024 * 1024  # parts, or units of weight, that are under way at most
GREETED = 10.0  # seconds for a cluster to accept a connection
TRIES = 3  # processes that may die of one part
FEW = 300  # items below which starting processes takes longer than they save
# New objects, and rounds, between searches for circles of garbage, a fifth of indexing's CPU.
RARELY = (100_000, 20, 100)
MOST = 8  # processes; more do not help, since one process takes what they give


def _light(_: object) -> int:
    return 0


class Executor:
    """`weigh`: how much memory an item takes. `close` ends what was started."""

    # has a part computed, and gives what waits for its results, or its error
    _begin: Callable[[bytes], Callable[[], Done]]
    _least, _ahead = 1, AHEAD  # parts below which this process does them; parts under way at most

    def map(self, function: Callable[[T], R], items: Iterable[T], weigh: Callable[[T], int] = _light) -> Iterator[R]:
        """The results in the order of the items. Bytes take a tenth of the memory."""
        under_way: deque[tuple[int, Callable[[], Done]]] = deque()
        total = 0
        parts = _parts(items, weigh)
        first = list(itertools.islice(parts, self._least))
        if len(first) < self._least:
            for _, part in first:
                yield from map(function, part)
            return
        for weight, part in itertools.chain(first, parts, [(0, [])]):
            if part:
                under_way.append((weight, self._begin(pickle.dumps((function, part), 5))))
                total += weight
            while under_way and (
                not part or len(under_way) >= self._ahead or (total > AHEAD_WEIGHT and len(under_way) > 1)
            ):
                weight, result = under_way.popleft()
                total -= weight
                good, found = result()
                if not good:
                    raise found
                yield from found

    def close(self) -> None:
        pass


class InProcess(Executor):
    """Each item when its result is taken."""

    def map(self, function: Callable[[T], R], items: Iterable[T], weigh: Callable[[T], int] = _light) -> Iterator[R]:
        return map(function, items)


class Processes(Executor):
    """Processes of this machine, started when there is work. They end with this process, which, where it
    `shares` the work, does parts that none of them has begun instead of waiting for those under way. Where it is
    `busy` with other work, it does the first part alone, since they take half a second to start, and none
    where there is no other part; few parts are ahead of the one whose results it takes."""

    def __init__(self, count: int, shares: bool = False, busy: bool = False) -> None:
        self._shares, self._first_here = shares, busy
        if busy:
            self._least, self._ahead = 2, 2 * count + 1
        self._waiting: deque[tuple[Future[bytes], bytes]] = deque()  # and what is done or begun since
        self._here: dict[Future[bytes], Done] = {}  # parts that this process has done
        self._threads = ThreadPoolExecutor(count, "executor")
        self._idle: queue.SimpleQueue[Child] = queue.SimpleQueue()
        self._children: list[Child] = []
        self._closed = False

    def _begin(self, part: bytes) -> Callable[[], Done]:
        if self._first_here:
            self._first_here = False
            return partial(_computed, part)
        future = self._threads.submit(self._do, part)
        if self._shares:
            self._waiting.append((future, part))
        return partial(self._result, future)

    def _result(self, future: Future[bytes]) -> Done:
        while self._waiting and self._waiting[0][0].done():  # its part and its result would stay in memory
            self._waiting.popleft()
        while not future.done() and self._waiting:
            first, part = self._waiting.popleft()
            if first.cancel():
                self._here[first] = _computed(part)
        return self._here.pop(future) if future in self._here else pickle.loads(future.result())

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        for child in self._children:
            child.end()

    def _do(self, part: bytes) -> bytes:
        for _ in range(TRIES):
            try:
                child = self._idle.get_nowait()
            except queue.Empty:
                child = Child("executors", os.environ)
                self._children.append(child)
            if self._closed:  # meanwhile, so that nothing else ends this one
                child.end()
                break
            try:
                done = child.do(part)
            except (OSError, EOFError, pickle.UnpicklingError):
                child.end()
                continue
            self._idle.put(child)
            return done
        what = f"{TRIES} processes ended over the same part of the work"
        advice = "Set engine to inline to see which document it is, or give the machine more memory"
        raise GraphRAGError(what, advice)


def with_package(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a process of this interpreter finds this package, also in a checkout."""
    package = Path(__file__).resolve().parents[1]
    if package.name in ("site-packages", "dist-packages"):
        return dict(environment)
    paths = filter(None, [str(package), environment.get("PYTHONPATH")])
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}


class Child:
    """A process of a module of this package and its two pipes."""

    def __init__(self, module: str, environment: Mapping[str, str], **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"graphrag_mcp.{module}"],
            env=with_package(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **options,
        )

    def do(self, part: bytes) -> bytes:
        """OSError, EOFError or UnpicklingError when the process has died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        pickle.dump(part, self.process.stdin, 5)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


class Ray(Executor):
    """Tasks of a Ray cluster: that of an address, else one of this machine. Ray does a task again
    whose process or node has died. Every node needs the same release of this package."""

    def __init__(self, address: str = "") -> None:
        try:
            import ray  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            what = "the engine ray needs Ray"
            raise BadInput(what, f"Install {extra('ray')}") from error
        self._ray = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            here = {"address": "local", "include_dashboard": False}
            options: dict[str, Any] = {"address": address} if address else here
            try:
                # Ray itself would go on for minutes where nothing listens at the address.
                host, colon, port = address.rpartition("://")[2].rpartition(":")
                if colon and port.isdigit():
                    socket.create_connection((host.strip("[]"), int(port)), GREETED).close()
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
            except (OSError, ValueError, RuntimeError) as error:
                raise BadInput(
                    f"the Ray cluster cannot be reached ({error})"[:300],
                    "Give its --address, such as ray://head:10001, or leave it out for this machine",
                ) from error
        self._task = ray.remote(max_retries=TRIES, num_cpus=1)(_of_release)

    def _begin(self, part: bytes) -> Callable[[], Done]:
        task = self._task.remote(__version__, part)
        return lambda: pickle.loads(self._ray.get(task))

    def close(self) -> None:
        if self._ours:
            self._ray.shutdown()


def executor(engine: str, processes: int = 0, address: str = "", items: int = 0, busy: bool = False) -> Executor:
    """Who does work of so many items. `engine`: inline, processes, ray, or auto: processes where
    there are several cores and FEW items, of which this process is one and shares the work, or where it is
    `busy` with other work meanwhile. `processes` 0: one for each core, at most MOST."""
    if engine == "ray":
        return Ray(address)
    count = processes or min(cores(), MOST)
    if engine == "processes":
        return Processes(count)
    if engine == "auto" and count > 1 and (busy or items >= FEW):
        return Processes(count - 1, shares=not busy, busy=busy)
    return InProcess()


def cores() -> int:
    """Processor cores that this process may use."""
    found = getattr(os, "sched_getaffinity", None)
    return len(found(0)) if found else os.cpu_count() or 1


def _parts(items: Iterable[T], weigh: Callable[[T], int]) -> Iterator[tuple[int, list[T]]]:
    part: list[T] = []
    weight = 0
    for item in items:
        part.append(item)
        weight += weigh(item)
        if len(part) == PART or weight >= PART_WEIGHT:
            yield weight, part
            part, weight = [], 0
    if part:
        yield weight, part


def _computed(part: bytes) -> Done:
    try:
        function, items = pickle.loads(part)
        return True, [function(item) for item in items]
    except Exception as error:
        return False, error


def _done(part: bytes) -> bytes:
    """A part computed, as another process is told of it."""
    done = _computed(part)
    try:
        return pickle.dumps(done, 5)
    except Exception as error:
        error = error if done[0] else done[1]
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")), 5)


def _of_release(version: str, part: bytes) -> bytes:
    """A part as a task of a cluster."""
    if version != __version__:
        what = f"a node of the cluster has graphrag-mcp {__version__} and this machine {version}"
        return pickle.dumps((False, BadInput(what, "Install the same release on all nodes")), 5)
    return _done(part)


def main() -> None:
    """Do parts until the input ends. What functions print goes to stderr."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.set_threshold(*RARELY)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            pickle.dump(_done(pickle.load(incoming)), outgoing, 5)
            outgoing.flush()


if __name__ == "__main__":
    main()
