"""How much work a function does, without a clock; a limit that fails what would go on for ever; waiting for something.

This is the only module of the tests that knows what time it is. Nothing here says how long
something took.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 60.0  # seconds until a hang fails


def until(condition: Callable[[], T], seconds: float = PATIENCE, every: float = 0.02) -> T:
    """Wait for a condition to hold; what it gave. A hang fails."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(every)
    return value


def lines(function: Callable[[], Any]) -> int:
    """How many lines of Python a call executes: the same number each time, on any machine."""
    count = 0

    def each(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return each

    before = sys.gettrace()
    sys.settrace(each)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def calls(function: Callable[[], Any], name: str) -> int:
    """How often a call calls functions of this name, in Python or in C."""
    count = 0

    def each(frame: FrameType, event: str, called: Any) -> None:
        nonlocal count
        count += (event == "call" and frame.f_code.co_name == name) or (
            event == "c_call" and getattr(called, "__name__", "") == name
        )

    before = sys.getprofile()
    sys.setprofile(each)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def linear(function: Callable[[int], Any], size: int, largest: int = 0) -> bool:
    """Whether four times the size takes about four times the lines, after a call that is not counted. Then, on Linux and
    macOS, once with the largest size: what happens inside of C functions is not counted in lines, and a quadratic one
    would go on for minutes."""
    function(size)
    function(4 * size)
    short, long = lines(lambda: function(size)), lines(lambda: function(4 * size))
    if largest:
        with ends():
            function(largest)
    return long <= 6 * short + 1000


@contextlib.contextmanager
def ends(seconds: float = 60.0) -> Iterator[None]:
    """Fail what computes for longer than this, in CPU seconds of this process, so that a busy machine fails nothing. To
    be set to many times what is needed: it tells a minute from for ever."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise AssertionError("it computes without end")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
