"""Logging: of warnings and errors of one kind (exception and its place, or message without numbers)
one a minute is written, with the number of those left out before it."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Hashable

KINDS = 100  # that are told apart
PAUSE = 60.0  # seconds between two records of one kind


def to_stderr() -> None:
    """Send warnings to stderr: stdout belongs to the protocol."""
    form = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=form)


class Repeats(logging.Filter):
    """For a handler: passes a warning or error when none of its kind has passed for a minute."""

    def __init__(self) -> None:
        super().__init__()
        # when, and how many were left out since
        self.passed: dict[Hashable, tuple[float, int]] = {}
        self.lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now = time.monotonic()
        with self.lock:
            kind = kind_of(record)
            if kind not in self.passed and len(self.passed) >= KINDS:
                kind = "others"
            last, left_out = self.passed.get(kind, (-PAUSE, 0))
            if now - last < PAUSE:
                self.passed[kind] = last, left_out + 1
                return False
            self.passed[kind] = now, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} more before)", None
        return True


def kind_of(record: logging.LogRecord) -> Hashable:
    """What records of the same kind have in common."""
    if record.exc_info and record.exc_info[0] is not None:
        return record.name, record.exc_info[0], place_of(record.exc_info[1])
    return record.name, record.levelno, re.sub(r"\d+", "#", str(record.msg).partition("\n")[0])


def place_of(error: BaseException | None) -> tuple[str, int]:
    """(file, line) where an exception was raised."""
    places = list(traceback.walk_tb(error.__traceback__ if error is not None else None))
    return (places[-1][0].f_code.co_filename, places[-1][1]) if places else ("", 0)
