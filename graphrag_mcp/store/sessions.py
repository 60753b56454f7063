"""Journals: append-only files with one JSON object a line, such as DRIFT sessions. A crash can tear
only the last line, which reading ignores.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)


def append(path: Path, event: dict[str, Any]) -> None:
    """Add one event durably. Parents are made; a torn tail is closed first, so that it spoils only
    itself.
    """
    text = json.dumps(event, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    line = text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line + b"\n")  # one write: appends of two processes do not interleave
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[dict[str, Any]]:
    """All whole events in order; [] when there is no journal. A line that is no JSON object is left
    out and logged.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    events = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict):
            events.append(event)
        else:
            log.warning("%s: line %d is not an event; left out", path, number)
    return events
