"""Logging: of records of the same kind (exception and its place, or message without numbers) the
first is written and the others are counted."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, replace

KINDS = 100  # that are told apart
LOWEST = logging.WARNING


@dataclass(slots=True)
class Kind:
    """What was written of the first record, and how many came after it."""

    name: str
    level: int
    headline: str
    more: int = 0


class Repeats(logging.Filter):
    """For a handler: of warnings and errors of one kind the first passes; `tell` writes how many
    more there were."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self.handler = handler
        self.kinds: dict[Hashable, Kind] = {}
        self.lock = threading.Lock()
        handler.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < LOWEST:
            return True
        with self.lock:
            kind = kind_of(record)
            if kind not in self.kinds and len(self.kinds) >= KINDS:
                kind = "others"
            first = kind not in self.kinds
            if first:
                self.kinds[kind] = Kind(
                    record.name, record.levelno, record.getMessage().partition("\n")[0][:200]
                )
            else:
                self.kinds[kind].more += 1
        return first

    def tell(self) -> None:
        """Write the counts. A kind without one is forgotten: the next record of it is written."""
        with self.lock:
            counted = [replace(kind) for kind in self.kinds.values() if kind.more]
            self.kinds = {name: kind for name, kind in self.kinds.items() if kind.more}
            for kind in self.kinds.values():
                kind.more = 0
        with self.handler.lock or contextlib.nullcontext():
            for kind in counted:  # by `emit`, since `handle` would count them
                text = f"{kind.more} more: {kind.headline}"
                self.handler.emit(
                    logging.LogRecord(kind.name, kind.level, __file__, 0, text, (), None)
                )

    def tell_every(self, seconds: float) -> None:
        """Write the counts so often, as long as the process lives."""

        def telling() -> None:
            while True:
                time.sleep(seconds)
                self.tell()

        threading.Thread(target=telling, name="log-counts", daemon=True).start()


def kind_of(record: logging.LogRecord) -> Hashable:
    """What records of the same kind have in common."""
    if record.exc_info and record.exc_info[0] is not None:
        return record.name, record.exc_info[0], place_of(record.exc_info[1])
    return record.name, record.levelno, re.sub(r"\d+", "#", str(record.msg).partition("\n")[0])


def place_of(error: BaseException | None) -> tuple[str, int]:
    """(file, line) where an exception was raised."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (trace.tb_frame.f_code.co_filename, trace.tb_lineno) if trace is not None else ("", 0)
