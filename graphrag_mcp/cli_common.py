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

from graphrag_mcp import fences, text
from graphrag_mcp.cli_words import as_commands, calls_as_commands
from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.settings import Settings, load

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import IndexResult, Result


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
    """The result in the words of the command line: JSON, or its text with what is advised on stderr."""
    hint = as_commands(result.hint, options.corpus)
    following = calls_as_commands(result.next_call, options.corpus)
    if options.json:
        print_json(result.model_dump(mode="json") | {"hint": hint, "next_call": following})
        return 0
    print(fences.clean(_own_words(result.text, options.corpus) if _is_ours(result) else result.text))
    if result.truncated:
        from graphrag_mcp.pack import HIGHEST

        more = ": --max-tokens N shows more" if (getattr(options, "max_tokens", 0) or 0) < HIGHEST else ""
        print(f"cut to fit{more}", file=sys.stderr)
    if following and (result.truncated or not _answers(result)):
        print(f"next: {fences.clean(following)}", file=sys.stderr)
    if hint and result.hint not in result.text:
        print(f"hint: {fences.clean(hint)}", file=sys.stderr)
    return 0


def _is_ours(result: Result) -> bool:
    """Is the text our own report, in which no document is quoted at length? That of documents stays to the letter."""
    from graphrag_mcp.types import EditResult, RemoveResult, StatusResult

    return isinstance(result, EditResult | RemoveResult | StatusResult)


def _own_words(said: str, corpus: str) -> str:
    """Our report in the words of the command line, but for lines that list what is somebody's."""
    theirs = ("- ", "Folders: ", "Other corpora: ", "Unknown: ")
    return "\n".join(line if line.startswith(theirs) else as_commands(line, corpus) for line in said.split("\n"))


def _answers(result: Result) -> bool:
    """Does it say something, or only where to go?"""
    nothing = getattr(result, "state", "") == "not_found"
    return not nothing and not (hasattr(result, "generation") and not result.generation)


def counted(counts: Mapping[str, int], names: Sequence[str] = ()) -> str:
    """`26 documents, 1 passage`, zeros left out; what is no plain noun, such as a reason, stays as it is."""
    shown = [(name.removesuffix("_total"), counts.get(name, 0)) for name in names or counts]
    return ", ".join(
        text.counted(count, name) if " " not in name else f"{count:,} {name}" for name, count in shown if count
    )


def estimated(result: IndexResult) -> list[str]:
    """What `index --dry-run` found, line by line: what would be read, what a model would be asked, at what price."""
    guess, counts = result.estimate, result.counts
    size = f"{guess.get('bytes', 0) / 1000:,.1f} kB"
    lines = [
        f"{result.corpus}: nothing was written; this is what would be done",
        f"read {text.counted(guess.get('files', 0), 'files')} ({size})",
    ]
    if gone := counts.get("removed"):
        lines.append(f"take out {text.counted(gone, 'documents')} no longer there")
    if same := counts.get("unchanged"):
        lines.append(f"leave {text.counted(same, 'documents')} as they are")
    if not guess.get("calls"):
        return [*lines, "ask no model, so it costs nothing"]
    cost = f", at a cost of about {guess['cost']:,.4g} by the prices in the settings" if guess.get("cost") else ""
    lines.append(f"ask a model about {_asked(guess)}{cost}")
    lines += [f"  {kind}: {_asked(one)}" for kind, one in guess.get("by_stage", {}).items()]
    if why := guess.get("because"):
        lines.append(f"assumed: {why}")
    return lines


def _asked(guess: Mapping[str, Any]) -> str:
    tokens = f"{guess['prompt_tokens']:,} tokens in, {guess['output_tokens']:,} out"
    return f"{text.counted(guess['calls'], 'times')}, {tokens}"


def print_json(value: Any, exact: bool = False) -> None:
    """One object; credentials in it are masked as in the tools, unless it is `exact` because it will be read back."""
    shown = value if exact or fences.SHOW_SECRETS.get() else _without_credentials(value)
    said = json.dumps(shown, ensure_ascii=False, indent=None, separators=(", ", ": "))
    print(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", said))  # the same value, and nothing for the terminal


def _without_credentials(value: Any) -> Any:
    from graphrag_mcp.credentials import masked
    from graphrag_mcp.pack_wire import EXACT

    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list | tuple):
        return [_without_credentials(one) for one in value]
    if isinstance(value, dict):
        kept = EXACT - {"text"}
        return {name: one if name in kept else _without_credentials(one) for name, one in value.items()}
    return value


def failed(options: argparse.Namespace, error: GraphRAGError | str, status: int) -> int:
    """Says what is wrong as it is, for it may quote anything; and the next move in the words of the command line."""
    message = str(error)
    if isinstance(error, GraphRAGError):
        message = f"{error.what}. {as_commands(error.next_move, getattr(options, 'corpus', ''))}."
        message += f" {error.names}." if error.names else ""
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


def parts_of(options: argparse.Namespace, ids: Sequence[str]) -> list[tuple[str, Snapshot]]:
    """The corpora that ids such as `a/e12` name or --corpus lists; [] where the one corpus of the command is meant."""
    from graphrag_mcp.query.several import named_by, wanted

    app = app_of(options)
    known = app.corpora()
    named, every = named_by(ids, known)
    listed = wanted(options.corpus, known)
    if not named and not listed:
        return []
    rest = [] if every else listed or [options.corpus]
    names = dict.fromkeys([*named, *(app.corpus_for_reading(name) for name in rest)])
    return [(name, app.snapshot(name)) for name in names]


def elsewhere(app: App, corpus: str) -> str:
    """A line that says how to reach this corpus, where commands without `--corpus` mean another one or none."""
    try:
        meant = app.corpus_for_reading()
    except GraphRAGError:
        meant = ""
    return "" if meant == corpus else f"note: from here, its commands need --corpus {corpus}"


def settings_of(options: argparse.Namespace, **overrides: Any) -> Settings:
    settings = load(home=options.home or None, **overrides)
    fences.SHOW_SECRETS.set(settings.show_secrets)
    return settings


def existing(path: str) -> Path:
    """The path with links resolved. The command line may read anything that its user may."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput(
            f"there is no file or folder {path!r}", "Check the spelling; paths start at the working directory"
        ) from error
