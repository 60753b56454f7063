"""Shared by all commands: settings, the open index, and what is printed.

Markdown or one JSON object goes to stdout, everything else to stderr. Advice written for agents
(`Call index_documents(paths=["."])`) is translated into commands and options here; what stands in
quotation marks, or is a name with its id behind it, is data of a user and stays as it is."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.settings import Settings, load
from graphrag_mcp.text import terms
from graphrag_mcp.trust import fencing
from graphrag_mcp.trust.fencing import HOME
from graphrag_mcp.trust.private import keep_private

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import IndexResult, Result


PROGRAM = "graphrag-mcp"
# tool -> command, and which arguments come after it in which order
_TOOLS: dict[str, dict[str, str]] = terms.table(f"{Path(__file__).parent}/main")["tools"]
COMMANDS = {tool: (places.pop("command"), places) for tool, places in _TOOLS.items()}
ONLY_TOOLS = ("claim_work", "submit_work", "cancel_job")  # what only an agent does
OPTIONS = ("query", "max_tokens", "max_nodes", "hops", "around", "level", "method", "kinds", "corpus")
_NAMES = "|".join(sorted((*COMMANDS, *ONLY_TOOLS), key=len, reverse=True))
_CALL = re.compile(rf'\b({_NAMES})\(((?:[^()"]|"[^"]*")*)\)')
_ARGUMENT = re.compile(r'(?<!\w)(\w{1,40})=(\[(?:[^\[\]"]|"[^"]*")*\]|"[^"]*"|[^,\s()]+)')
_BARE = re.compile(rf"(?<![\w/.'\"`]|-)({_NAMES})(?![\w'\"`(]| \([tderck]\d| \d)")
_QUALIFIED = re.compile(r"[^\s/]+/[tderck]\d[\d.]*\+?")
_FLAG = re.compile(r"\b(\w{1,40})=true\b")
_CORPUS = re.compile(r"\bcorpus(?:= ?| (?='))")


def _option(name: str) -> str:
    return "--kind" if name == "kinds" else f"--{name.replace('_', '-')}"


def as_commands(advice: str, corpus: str = "") -> str:
    """A sentence of advice: whole calls, tools that are only named, flags and the corpus."""
    advice = calls_as_commands(_BARE.sub(lambda found: _named(found[1]), advice), corpus)
    advice = _FLAG.sub(lambda found: _option(found[1]), advice)
    return _CORPUS.sub("--corpus ", advice).replace("dry_run=false", "--yes")


def calls_as_commands(advice: str, corpus: str = "") -> str:
    """Only whole calls, for text with words of documents; with the `corpus` that was asked for."""
    return _CALL.sub(lambda found: _command(found[1], found[2], corpus), advice)


def _named(tool: str) -> str:
    return f"the tool {tool}" if tool in ONLY_TOOLS else f"{PROGRAM} {COMMANDS[tool][0]}"


def _command(tool: str, arguments: str, corpus: str) -> str:
    """`get_source(ids=["t3"])` as `graphrag-mcp source t3`, and the corpus where no id says it."""
    if tool in ONLY_TOOLS:
        return _named(tool)
    command, places = COMMANDS[tool]
    by_name = {found[1]: found[2] for found in _ARGUMENT.finditer(arguments)}
    ids = re.findall(r'"([^"]*)"', " ".join(by_name.get(name, "") for name in places))
    if corpus.strip() and not (ids and all(_QUALIFIED.fullmatch(id) for id in ids)):
        by_name.setdefault("corpus", f'"{corpus}"')
    words = [PROGRAM, command]
    for name, unknown in places.items():
        words += [_all(by_name[name]) if name in by_name and "..." not in by_name[name] else unknown]
    named = (name for name in OPTIONS if name in by_name and name not in places)
    words += [f"{_option(name)} {_all(by_name[name])}" for name in named]
    words += [_option(name) for name in ("raw", "changes") if by_name.get(name) == "true"]
    fields = re.findall(r'"([^"]*)"', by_name.get("fields", ""))
    words += [f"--set {shlex.quote(field)}" for field in fields]
    words += ["--yes"] if by_name.get("dry_run") == "false" else []
    return " ".join(filter(None, words))


def _all(written: str) -> str:
    """The values of a list, or the one value, as a shell takes them."""
    quoted = re.findall(r'"([^"]*)"', written)
    values = quoted or [part.strip() for part in written.strip("[]").split(",")]
    rest = ["..."] if written.strip("[] ").endswith("...") and '"' in written else []
    return " ".join([*(shlex.quote(word) for word in values if word), *rest])


_UNSEEN = re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class Bar:
    """A progress bar on stderr, wiped when left; silent with --json and without a terminal."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.shown = sys.stderr.isatty() and not options.json
        self.last = 0.0
        self.width = 0
        self.phase = ""
        self.start = (0.0, 0)  # of the phase: the time, and how many were done then

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase != self.phase:
            self.phase, self.start = phase, (now, done)
        if not self.shown or (now - self.last < 0.1 and done < total):
            return
        self.last = now
        share = min(done / total, 1.0) if total else 0.0
        line = f"{phase:<12} [{'#' * int(30 * share):<30}] {done:,}/{total:,}"
        line += pace(now - self.start[0], done - self.start[1], total - done)
        print(f"\r{line:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(line)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self.width:
            print("\r" + " " * self.width, end="\r", file=sys.stderr, flush=True)


def pace(seconds: float, done: int, left: int) -> str:
    """`, 12/s, 2:05 left`: the rate of a phase and the time that it still takes; "" in its first second."""
    if seconds < 1 or done <= 0:
        return ""
    rate = done / seconds
    minutes, rest = divmod(round(left / rate), 60)
    speed = f", {rate:,.0f}/s" if rate >= 1 else ""
    return f"{speed}, {minutes}:{rest:02d} left"


def show(options: argparse.Namespace, result: Result) -> int:
    """The result as JSON, or its text with what is advised on stderr, in words of commands."""
    hint = as_commands(result.hint, options.corpus)
    following = calls_as_commands(result.next_call, options.corpus)
    if options.json:
        print_json(result.model_dump(mode="json") | {"hint": hint, "next_call": following})
        return 0
    print(fencing.clean(_worded(result, options.corpus)))
    if result.truncated:
        from graphrag_mcp.packing.budget import HIGHEST

        all_shown = (getattr(options, "max_tokens", 0) or 0) >= HIGHEST
        print(f"cut to fit{'' if all_shown else ': --max-tokens N shows more'}", file=sys.stderr)
    if cursor := getattr(result, "next_cursor", ""):
        print(f"next page: --cursor {cursor}", file=sys.stderr)
    if following and (result.truncated or not _answers(result)):
        print(f"next: {fencing.clean(following)}", file=sys.stderr)
    if hint and result.hint not in result.text:
        print(f"hint: {fencing.clean(hint)}", file=sys.stderr)
    return 0


def _worded(result: Result, corpus: str) -> str:
    """A report of our own in the words of the command line, but for lines that list what is
    someone's. A text that quotes documents at length stays to the letter."""
    from graphrag_mcp.types import EditResult, RemoveResult, StatusResult

    if not isinstance(result, EditResult | RemoveResult | StatusResult):
        return result.text
    theirs = ("- ", "Folders: ", "Other corpora: ", "Unknown: ")
    lines = result.text.split("\n")
    return "\n".join(line if line.startswith(theirs) else as_commands(line, corpus) for line in lines)


def _answers(result: Result) -> bool:
    """Does it say something, or only where to go?"""
    nothing = getattr(result, "state", "") == "not_found"
    return not nothing and getattr(result, "generation", 1) != 0


def counts_line(counts: Mapping[str, int], names: Sequence[str] = ()) -> str:
    """`26 documents, 1 passage`, zeros left out; a reason stays as it is."""
    shown = [(name.removesuffix("_total"), counts.get(name, 0)) for name in names or counts]
    return ", ".join(
        terms.counted(count, name) if " " not in name else f"{count:,} {name}" for name, count in shown if count
    )


def estimated(result: IndexResult) -> list[str]:
    """What `index --dry-run` found: what would be read, what a model would be asked, the price."""
    guess, counts = result.estimate, result.counts
    size = f"{guess.get('bytes', 0) / 1000:,.1f} kB"
    lines = [
        f"{result.corpus}: nothing was written; this is what would be done",
        f"read {terms.counted(guess.get('files', 0), 'files')} ({size})",
    ]
    if removed := counts.get("removed"):
        lines.append(f"take out {terms.counted(removed, 'documents')} no longer there")
    if same := counts.get("unchanged"):
        lines.append(f"leave {terms.counted(same, 'documents')} as they are")
    if not guess.get("calls"):
        return [*lines, "ask no model, so it costs nothing"]
    cost = guess.get("cost")
    price = f", at a cost of about {cost:,.4g} by the prices in the settings" if cost else ""
    lines.append(f"ask a model about {asked(guess)}{price}")
    lines += [f"  {kind}: {asked(usage)}" for kind, usage in guess.get("by_stage", {}).items()]
    return lines


def asked(usage: Mapping[str, Any], between: str = ", ") -> str:
    """`3 times, 1,200 tokens in, 90 out`: what a model was or would be asked."""
    tokens = f"{usage['prompt_tokens']:,} tokens in, {usage['output_tokens']:,} out"
    return f"{terms.counted(usage['calls'], 'times')}{between}{tokens}"


CHANGES = ("added", "changed", "removed", "unchanged")


def changed(result: IndexResult, corpus: str, elapsed: float) -> str:
    """What a run has done, and what the corpus holds now."""
    contents = counts_line({name: n for name, n in result.counts.items() if name not in CHANGES})
    changes = counts_line(result.counts, CHANGES) or "nothing to do"
    return f"{corpus}: {changes} ({elapsed:.1f} s)" + (f"\nit holds {contents}" if contents else "")


def say(options: argparse.Namespace, record: Mapping[str, Any], *lines: str) -> int:
    """Print the record with --json, else the lines; the exit status of what is done."""
    print_json(record) if options.json else print("\n".join(lines))
    return 0


def print_json(value: Any, exact: bool = False) -> None:
    """One object; credentials are masked, unless it is `exact` because it will be read back."""
    from graphrag_mcp.packing.sending import shown

    as_is = exact or fencing.SHOW_SECRETS.get()
    text = json.dumps(value if as_is else shown(value, fencing.masked), ensure_ascii=False)
    # the same value, and nothing for the terminal
    print(_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def failed(options: argparse.Namespace, error: GraphRAGError | str, status: int, **more: str) -> int:
    """Says what is wrong as it is, for it may quote anything; and the next move in the words of the
    command line. `more` are further fields of the JSON object."""
    message = str(error)
    if isinstance(error, GraphRAGError):
        message = f"{error.what}. {as_commands(error.next_move, getattr(options, 'corpus', ''))}."
        message += f" {error.names}." if error.names else ""
    if getattr(options, "json", False):
        print_json({"error": message, **more})
    print(f"graphrag-mcp: {message}", file=sys.stderr)
    return status


def as_utf8(stream: Any) -> None:
    """Windows pipes are not UTF-8 by themselves, and a text may hold what a terminal cannot show."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(encoding="utf-8", errors="replace")


# ---- settings ----------------------------------------------------------------------------------


def app_of(options: argparse.Namespace) -> App:
    """The application over the settings of these options."""
    from graphrag_mcp.app import App

    return App(settings_of(options))


def snapshot_of(options: argparse.Namespace) -> Snapshot:
    """The generation of the corpus that the options mean. NotFound where there is none."""
    return app_of(options).snapshot(options.corpus)


def parts_of(options: argparse.Namespace, ids: Sequence[str]) -> list[tuple[str, Snapshot]]:
    """The corpora that ids such as `a/e12` name or --corpus lists, or the one of the command as ""."""
    app = app_of(options)
    several = [(name, app.snapshot(name)) for name in app.several(options.corpus, ids)]
    return several or [("", snapshot_of(options))]


def elsewhere(app: App, corpus: str) -> str:
    """How to reach this corpus, where commands without `--corpus` mean another one or none."""
    try:
        meant = app.corpus_for_reading()
    except GraphRAGError:
        meant = ""
    return "" if meant == corpus else f"note: in this folder add --corpus {corpus} to every command"


def settings_of(options: argparse.Namespace, **overrides: Any) -> Settings:
    """The settings: those of files and of the environment, below options and `overrides`.
    Credentials are masked in all output from here on, and the home is made private. BadInput for
    a setting that cannot be read."""
    settings = load(home=options.home or None, **overrides)
    fencing.SHOW_SECRETS.set(settings.show_secrets)
    HOME.set(settings.home)
    keep_private(settings.home)
    return settings


def existing(path: str) -> Path:
    """The path with links resolved. The command line may read anything that its user may."""
    try:
        return Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        what = f"there is no file or folder {path!r}"
        raise BadInput(what, "Check the spelling; paths start at the working directory") from error
