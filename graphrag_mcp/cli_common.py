"""What every command needs: the settings and the open index, and how to talk to people.

Takes parsed arguments and results; gives an `App`, snapshots and paths, and prints Markdown, or one JSON object, on
stdout and everything else on stderr. Knows no command.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp import fences
from graphrag_mcp.errors import BadInput
from graphrag_mcp.settings import Settings, load

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import Result


_UNSEEN = re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class Bar:
    """A progress bar on stderr, at most ten times a second, wiped when done; silent unless `shown`."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.last = 0.0
        self.width = 0

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self.shown or (now - self.last < 0.1 and done < total):
            return
        self.last = now
        share = min(done / total, 1.0) if total else 0.0
        line = f"{phase:<12} [{'#' * int(30 * share):<30}] {done:,}/{total:,}"
        print(f"\r{line:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def clear(self) -> None:
        if self.width:
            print("\r" + " " * self.width, end="\r", file=sys.stderr, flush=True)


def show(options: argparse.Namespace, result: Result) -> int:
    if options.json:
        print_json(result.model_dump(mode="json"))
        return 0
    print(fences.clean(result.text))
    if result.truncated:
        print("cut to fit: --max-tokens N shows more", file=sys.stderr)
    if result.hint and result.hint not in result.text:
        print(f"hint: {fences.clean(result.hint)}", file=sys.stderr)
    return 0


def counted(counts: Mapping[str, int], names: Sequence[str] = ()) -> str:
    """`26 documents, 44 passages`, zeros left out."""
    shown = [(name.removesuffix("_total").replace("_", " "), counts.get(name, 0)) for name in names or counts]
    return ", ".join(f"{count:,} {name}" for name, count in shown if count)


def print_json(value: Any) -> None:
    said = json.dumps(value, ensure_ascii=False, indent=None, separators=(", ", ": "))
    print(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", said))  # the same value, and nothing for the terminal


def failed(options: argparse.Namespace, message: str, status: int) -> int:
    if getattr(options, "json", False):
        print_json({"error": message})
    print(f"graphrag-mcp: {message}", file=sys.stderr)
    return status


def as_utf8(stream: Any) -> None:
    """Windows pipes are not UTF-8 by themselves, and a text may hold what a terminal cannot show."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")


# ---- settings ----------------------------------------------------------------------------------


def app_of(options: argparse.Namespace) -> App:
    from graphrag_mcp.app import App

    return App(settings_of(options))


def snapshot_of(options: argparse.Namespace) -> Snapshot:
    return app_of(options).snapshot(options.corpus)


def settings_of(options: argparse.Namespace, **overrides: Any) -> Settings:
    return load(home=options.home or None, **overrides)


def existing(path: str) -> Path:
    """The path with links resolved. The command line may read anything that its user may."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"there is no file or folder {path!r}", "Check the spelling; paths start at the working directory"
        ) from error
