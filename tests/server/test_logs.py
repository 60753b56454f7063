"""A log in which one error of a kind stands a minute, with the number of those left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from graphrag_mcp import logs
from graphrag_mcp.logs import Repeats

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
    handler.addFilter(repeats := Repeats())
    yield log, lines, repeats
    log.removeHandler(handler)


def failed(log: logging.Logger, kind: type[Exception], text: str) -> None:
    try:
        raise kind(text)
    except Exception as error:
        log.error("%s failed", text, exc_info=error)


def test_one_of_a_kind_is_written_a_minute_with_the_number_of_the_others(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    log, lines, repeats = written
    for number in range(1000):
        log.warning("connection %d was lost", number)
        failed(log, ValueError, f"value {number}")
    assert lines == ["WARNING connection 0 was lost", "ERROR value 0 failed"]
    monkeypatch.setattr(logs, "PAUSE", 0.0)
    log.warning("connection %d was lost", 1000)
    log.warning("connection %d was lost", 1001)
    assert lines[2:] == ["WARNING connection 1000 was lost (999 more before)", "WARNING connection 1001 was lost"]


def test_another_kind_and_what_is_no_warning_are_written(written: Written) -> None:
    log, lines, _ = written
    for _ in range(2):
        log.info("information")
        failed(log, ValueError, "one")
        failed(log, KeyError, "one")
        log.warning("one")
    assert lines == ["INFO information", "ERROR one failed", "ERROR one failed", "WARNING one", "INFO information"]
