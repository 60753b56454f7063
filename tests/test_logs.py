"""A log in which errors of one kind stand once, and then as a count."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from graphrag_mcp.logs import KINDS, Repeats

Written = tuple[logging.Logger, list[str], Repeats]


class Lines(logging.Handler):
    """Keeps what it is given to write."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


@pytest.fixture
def written() -> Iterator[Written]:
    lines: list[str] = []
    log = logging.getLogger("tests.repeated")
    log.propagate = False
    log.setLevel(logging.DEBUG)
    log.addHandler(handler := Lines(lines))
    yield log, lines, Repeats(handler)
    log.removeHandler(handler)


def failed(log: logging.Logger, kind: type[Exception], text: str) -> None:
    try:
        raise kind(text)
    except Exception as error:
        log.error("%s failed", text, exc_info=error)


def test_the_first_is_written_and_the_others_are_counted(written: Written) -> None:
    log, lines, repeats = written
    for number in range(1000):
        log.warning("connection %d was lost", number)
        failed(log, ValueError, f"value {number}")
    assert lines == ["WARNING connection 0 was lost", "ERROR value 0 failed"]
    repeats.tell()
    assert lines[2:] == ["WARNING 999 more: connection 0 was lost", "ERROR 999 more: value 0 failed"]
    repeats.tell()
    log.warning("connection %d was lost", 1000)
    assert lines[4:] == ["WARNING connection 1000 was lost"]


def test_another_kind_and_what_is_no_warning_are_written(written: Written) -> None:
    log, lines, _ = written
    for _ in range(2):
        log.info("information")
        failed(log, ValueError, "one")
        failed(log, KeyError, "one")
        log.warning("one")
    assert lines == ["INFO information", "ERROR one failed", "ERROR one failed", "WARNING one", "INFO information"]


def test_kinds_without_end_are_counted_too(written: Written) -> None:
    log, lines, repeats = written
    letters = [chr(97 + number // 26) + chr(97 + number % 26) for number in range(26 * 26)]
    for name in letters:
        log.error(name)
    assert lines == [f"ERROR {name}" for name in letters[: KINDS + 1]]
    repeats.tell()
    assert lines[-1] == f"ERROR {len(letters) - KINDS - 1} more: {letters[KINDS]}"


def test_counts_are_written_again_and_again(written: Written) -> None:
    log, lines, repeats = written
    repeats.tell_every(0.01)
    for _ in range(2000):  # until a count has been written
        log.error("it failed")
        log.error("it failed")
        if any(line.endswith("more: it failed") for line in lines):
            return
        time.sleep(0.01)
    raise AssertionError(lines)
