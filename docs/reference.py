"""`python docs/reference.py`: writes the reference pages beside it, from the code and nothing else.

Takes no arguments; gives reference.md (settings, environment, tables, prompts, errors),
reference-tools.md, reference-results.md and reference-commands.md. `pages()` is what it would
write; a test compares that with what lies here. What the code does not say of a result's field
stands below, once; a field without words is an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

NOTE = "<!-- Written by `python docs/reference.py`. Do not edit: change the code, and run it again. -->\n"
# What the fields of results mean, where the code does not say it beside them.
FIELDS = {
    "text": "all of the result as Markdown, the same as the text channel",
    "tokens": "size of the result, by the counter of this package",
    "truncated": "something was left out to stay within the budget",
    "next_cursor": "give it as `cursor` to read on; empty: there is no more",
    "hint": "what was changed in the arguments, what is missing, what to try next",
    "next_call": "the call that goes on from here, ready to be made",
    "state": "`answered`, `context`, `not_found`, `partial`, `stale` or `failed`",
    "mode": "which search it was",
    "corpus": "the corpus that was used",
    "corpora": "all corpora of this home",
    "citations": "where each piece stands, best first",
    "communities": "ids of the communities that were used",
    "session_id": "of the investigation; every later call takes it",
    "open_node": "the node that waits for an answer",
    "frontier": "questions that wait to be opened",
    "answered": "nodes that have an answer",
    "budget_left": "nodes that may still be opened",
    "done": "pieces done; of an investigation: whether it is over",
    "answer": "the model's answer, where one was asked for and given",
    "method": "who wrote it: `llm:<model>`, `agent:<name>`, `extractive`, or empty for none",
    "usage": "calls, prompt_tokens, output_tokens, by_stage",
    "id": "short id",
    "title": "title",
    "type": "type",
    "description": "what is said of it",
    "aliases": "other names of it",
    "degree": "relationships it has",
    "frequency": "text units that name it",
    "relationships": "with id, the other end, weight and evidence",
    "candidates": "what may have been meant, or the nearest names",
    "level": "0 is the coarsest",
    "rating": "0 to 10: how much the community matters to the corpus",
    "parent": "the community or node above",
    "children": "the communities below",
    "members": "its entities",
    "stale": "what is out of date, or whether it is",
    "sources": "each with id, text, document, lines and offsets",
    "start": "the entity or community that was meant",
    "goal": "the entity to be reached",
    "job_id": "of the job; `graph_status` and `cancel_job` take it",
    "status": "`queued`, `running`, `done`, `failed` or `cancelled`",
    "total": "pieces in all",
    "skipped": "files left out by rule, by reason",
    "estimate": "calls, tokens and cost that a run with a model needs, by stage; `full`: the same with method `llm`, before the first run",
    "poll_after_ms": "when to ask again",
    "generation": "of the index: one more with every commit",
    "counts": "how many, by kind",
    "model": "who is the model",
    "jobs": "recent jobs, newest first",
    "accepted": "work_ids that are on disk now",
    "lease_seconds": "how long the items are kept from others",
    "op": "the operation",
    "dry_run": "whether it was only said, not done",
    "undo_id": "`op` undo of `edit_graph` takes it",
    "uri": "of the document, relative to the folder indexed",
    "document_id": "of the document",
    "char_start": "first character, counted in the document's text",
    "char_end": "one past the last",
    "line_start": "1-based; 0: unknown",
    "line_end": "inclusive",
    "score": "worth for this question",
    "query": "the question of the node",
    "kind": "`primer`, `local` or `follow-up`",
}
LABELS = {
    "read_only_hint": ("reads only", ""),
    "destructive_hint": ("can remove or replace", ""),
    "idempotent_hint": ("a second call changes nothing more", "each call is a new one"),
}
WIDTH = 120  # characters of a line of prose
SETTING = ("setting", "type", "default", "meaning")


def pages() -> dict[str, str]:
    """Name of each page and its whole text."""
    made = {
        "reference.md": _settings(),
        "reference-tools.md": _tools(),
        "reference-results.md": _results(),
        "reference-commands.md": _commands(),
    }
    return {name: "\n".join(map(_wrapped, lines)).rstrip() + "\n" for name, lines in made.items()}


def _wrapped(line: str) -> str:
    """A line of prose as lines of at most 120 characters; tables, headings and comments stay one."""
    if len(line) <= WIDTH or line.startswith(("|", "#", "<!--", "```", "    ")):
        return line
    return "\n".join(textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    heads = list(heads)
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *lines, ""]


def _code(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


# What the engine makes for tools that send its text alone.
TEXT = {
    **dict.fromkeys(("local_search", "global_search", "search_text"), "SearchResult"),
    "get_entity": "EntityResult",
    "get_community_report": "ReportResult",
    "get_source": "SourceResult",
    "list_documents": "ListResult",
    "explore_graph": "ExploreResult",
}


# ---- tools ----------------------------------------------------------------------------------------------------------


def _tools() -> Iterator[str]:
    from graphrag_mcp.tools import SETS, all_tools

    yield from (
        "# Reference: tools",
        "",
        NOTE,
        "The arguments of every tool, made from the code. An argument with a default may be left out. The names in the",
        "last column are understood too. An unknown argument is named in `hint`.",
        "",
    )
    for tool in all_tools():
        model = _model(tool).__name__
        sets = ", ".join(["all", *(name for name, kept in SETS.items() if tool.name in kept)])
        behaviour = _behaviour(tool.annotations)
        yield from (f"## {tool.name}", "", f"What it is for: [{tool.name}](tools.md#{tool.name}).", "")
        gives = f"[{model}](reference-results.md#{model.lower()})"
        if tool.fn_metadata.output_schema is None:
            gives = f"text; `--json` and Python give {gives}"
        yield from (f"In `--tools` {sets}. {behaviour} Gives {gives}.", "")
        yield from _table(("argument", "type", "default", "meaning", "also"), _arguments(tool))


def _results() -> Iterator[str]:
    from graphrag_mcp import types
    from graphrag_mcp.tools import all_tools

    yield from (
        "# Reference: results",
        "",
        NOTE,
        "What Python functions and commands with `--json` give. Of the [tools](reference-tools.md) those on whose",
        "result a program acts give these fields as structured content; the others give text. Fields of every result:",
        "",
    )
    yield from _table(("field", "type", "meaning"), _fields(types.Result))
    used: dict[Any, list[str]] = {}
    for tool in all_tools():
        used.setdefault(_model(tool), []).append(f"`{tool.name}`")
    for model, names in used.items():
        yield from (f"## {model.__name__}", "", f"Of {', '.join(names)}; beside the fields of every result:", "")
        yield from _table(("field", "type", "meaning"), _fields(model, set(types.Result.model_fields)))
    for model, what in ((types.Citation, "One of `citations`."), (types.DriftNode, "One of `frontier`.")):
        yield from (f"## {model.__name__}", "", what, "")
        yield from _table(("field", "type", "meaning"), _fields(model))


def _model(tool: Any) -> Any:
    """The class of types.py whose fields the tool's output schema has; for a tool that gives text,
    what `--json` and the Python API give."""
    from graphrag_mcp import types

    if tool.fn_metadata.output_schema is None:
        return getattr(types, TEXT[tool.name])
    fields = set(tool.fn_metadata.output_schema["properties"])
    return next(
        model for model in types.Result.__subclasses__() if set(model.model_json_schema()["properties"]) == fields
    )


def _behaviour(annotations: Any) -> str:
    said = []
    for name, (yes, no) in LABELS.items():
        said.append(yes if getattr(annotations, name) else no)
        if said[-1] == "reads only":
            break
    words = "; ".join(one for one in said if one)
    return words[:1].upper() + words[1:] + "."


def _arguments(tool: Any) -> Iterator[tuple[str, ...]]:
    schema = tool.parameters
    for name, spec in schema["properties"].items():
        field = tool.fn_metadata.arg_model.model_fields[name]
        others = [one for one in getattr(field.validation_alias, "choices", ()) if one != name]
        default = _code(spec["default"]) if "default" in spec else "none"
        default = "needed" if name in schema.get("required", ()) else default
        meaning = spec.get("description", "")
        if inner := spec.get("items", {}).get("properties"):
            meaning = f"{meaning}: objects of {', '.join(inner)}"
        yield f"`{name}`", _kind(spec), default, meaning, ", ".join(f"`{one}`" for one in others)


def _kind(spec: dict[str, Any]) -> str:
    if "enum" in spec:
        return ", ".join(f"`{one}`" for one in spec["enum"])
    if spec.get("type") == "array":
        return f"list of {_kind(spec.get('items', {}))}s"
    return {"boolean": "true or false"}.get(spec.get("type", ""), spec.get("type", "any"))


def _fields(model: Any, without: Iterable[str] = ()) -> Iterator[tuple[str, str, str]]:
    schema = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        if name in set(without) or name not in schema:
            continue
        meaning = field.description or FIELDS.get(name)
        if not meaning:
            raise SystemExit(f"{model.__name__}.{name} has no words: describe it in types.py, or in FIELDS here")
        spec = schema[name]
        kind = "object" if "$ref" in spec else spec.get("type") or "number or null"
        yield f"`{name}`", kind, meaning


# ---- the command line -----------------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    from graphrag_mcp.cli.main import parser

    whole = parser()
    commands = next(one for one in whole._actions if isinstance(one, argparse._SubParsersAction)).choices
    yield from (
        "# Reference: command line",
        "",
        NOTE,
        "`graphrag-mcp COMMAND ...`, or `python -m graphrag_mcp COMMAND ...`. Without a command it is `serve`. It ends",
        "with 0 when all was done, 1 when something failed or was left out (it is named), 2 when it was used wrongly,",
        "130 after Ctrl-C. Results go to stdout, everything else to stderr.",
        "",
        "Every command takes these:",
        "",
    )
    first = next(iter(commands.values()))
    shared = {action.dest for action in first._actions[1:4]}
    yield from _table(("option", "default", "meaning"), _options(first, only=shared))
    for name, command in commands.items():
        yield from (f"## {name}", "", command.description or "", "")
        rows = list(_options(command, without=shared))
        yield from _table(("argument", "default", "meaning"), rows) if rows else ()


def _options(command: argparse.ArgumentParser, only: Any = (), without: Any = ()) -> Iterator[tuple[str, str, str]]:
    for action in command._actions:
        hidden = action.help == argparse.SUPPRESS or action.dest == "help"
        if hidden or action.dest in without or (only and action.dest not in only):
            continue
        takes = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
        if action.choices:
            takes = "\\|".join(action.choices) if action.option_strings else action.dest.upper()
        more = {"*": " ...", "+": " ..."}.get(str(action.nargs), "")
        shown = " ".join([*action.option_strings[-1:], f"{takes}{more}"] if takes else action.option_strings[-1:])
        needed = not action.option_strings and action.nargs not in ("*", "?")
        empty = action.default is None or action.default is False or action.default in ("", [])
        default = "needed" if needed else "" if empty else f"`{action.default}`"
        choices = f"{', '.join(action.choices)}" if action.choices and not action.option_strings else ""
        yield (f"`{shown}`".replace("\\|", "|"), default, (action.help or choices or "what to look for"))


# ---- settings, tables, prompts, errors ------------------------------------------------------------------------------


def _settings() -> Iterator[str]:
    from graphrag_mcp.install.init import GROUPS
    from graphrag_mcp.settings import Settings

    yield from (
        "# Reference: settings, tables, prompts, errors",
        "",
        NOTE,
        "Beside it: [tools](reference-tools.md), their [results](reference-results.md), and the",
        "[command line](reference-commands.md).",
        "",
        "- [Settings](#settings)",
        "- [Environment](#environment)",
        "- [Tables of an index](#tables-of-an-index)",
        "- [Tables of an export](#tables-of-an-export)",
        "- [Prompts](#prompts)",
        "- [Errors](#errors)",
        "",
        "## Settings",
        "",
        "How they are read, and what a change brings with it: [settings](settings.md).",
        "",
    )
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    hints = get_type_hints(Settings, include_extras=True)
    least = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    for heading, names in GROUPS.items():
        yield from (f"{heading.rstrip('.')}.", "")
        yield from _table(SETTING, (_setting(fields.pop(name), what, least) for name, what in names.items()))
    if fields:
        yield from ("Not in the file that `init` writes.", "")
        yield from _table(SETTING, (_setting(field, "", least) for field in fields.values()))
    yield from _environment()
    yield from _data()
    yield from _words()
    yield from _errors()


def _setting(field: Any, what: str, least: dict[str, tuple[Any, ...]]) -> tuple[str, ...]:
    default = field.default_factory() if field.default is dataclasses.MISSING else field.default
    shown = {"home": "the platform's data folder", "roots": "the working directory"}.get(field.name)
    kinds = {str: "text", int: "number", float: "number", bool: "true or false", dict: "table"}
    said = "folder" if isinstance(default, Path) else kinds.get(type(default), "list")
    bounds = [one.ge for one in least[field.name] if getattr(one, "ge", 0)]
    more = f" At least {bounds[0]}." if bounds else ""
    default = shown or _code(dict(default) if said == "table" else default)
    return f"`{field.name}`", said, default, f"{what.rstrip(',.')}.{more}".lstrip(".")


def _environment() -> Iterator[str]:
    from graphrag_mcp.settings import ENVIRONMENT, Settings

    yield from ("## Environment", "")
    rows = [(f"`{name}`", f"`{to}`" if to.isidentifier() else to.strip("()")) for name, to in ENVIRONMENT.items()]
    key = "the key itself, never a setting; `api_key_variable` names another variable"
    rows.append((f"`{Settings().api_key_variable}`", key))
    yield from _table(("variable", "setting"), rows)


def _data() -> Iterator[str]:
    from graphrag_mcp.exchange.export import SCHEMAS
    from graphrag_mcp.store.schema import TABLES

    yield from ("## Tables of an index", "", "In `tables/` of a corpus (LanceDB). What they hold: [data](data.md).", "")
    yield from _table(("table", "columns"), ((f"`{name}`", _columns(schema)) for name, schema in TABLES.items()))
    yield from (
        "## Tables of an export",
        "",
        "What `graphrag-mcp export` writes, one Parquet file each. `keywords` is there only where some were given.",
        "",
    )
    yield from _table(("table", "columns"), ((f"`{name}`", _columns(schema)) for name, schema in SCHEMAS.items()))


def _columns(schema: Any) -> str:
    short = {"string": "", "int64": " int", "double": " float", "bool": " bool"}
    return ", ".join(f"{field.name}{short.get(str(field.type), ' ' + _arrow(str(field.type)))}" for field in schema)


def _arrow(kind: str) -> str:
    kind = re.sub(r"(element|item|child \d+): ", "", kind).replace("int64", "int").replace("double", "float")
    return kind.replace("<", "&lt;").replace(">", "&gt;")


def _words() -> Iterator[str]:
    from graphrag_mcp.llm import prompts

    yield from ("## Prompts", "", "Who sees which: [prompts](../prompts/README.md).", "")
    rows = []
    for name in prompts.names():
        note = re.match(r"<!--\s*(.*?)\s*-->", (prompts.folder() / f"{name}.md").read_text("utf-8"), re.DOTALL)
        first = re.split(r"(?<=[.;])\s", " ".join(note[1].split()) if note else "", maxsplit=1)[0]
        variables = ", ".join(f"`${one}`" for one in prompts.load(name).get_identifiers())
        rows.append((f"[{name}](../prompts/{name}.md)", first, variables or "none"))
    yield from _table(("prompt", "what its file says of it", "variables"), rows)


def _errors() -> Iterator[str]:
    from graphrag_mcp import errors

    yield from (
        "## Errors",
        "",
        "Each has two sentences: what is wrong, and what to do next. A tool gives them as its text with `isError`, the",
        "command line on stderr, Python as an exception of `graphrag_mcp.errors`.",
        "",
    )
    kinds = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.GraphRAGError)]
    kinds.sort(key=lambda one: [base.__name__ for base in reversed(one.__mro__)])
    wrong_use = (errors.BadInput, errors.NotFound)  # cli.py
    rows = []
    for one in kinds:
        status = "2" if issubclass(one, wrong_use) else "1"
        rows.append(
            (f"`{one.__name__}`", f"`{one.__base__.__name__}`", " ".join((inspect.getdoc(one) or "").split()), status)
        )
    yield from _table(("error", "is a", "means", "exit status"), rows)


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, "utf-8", newline="\n")
        sys.stdout.write(f"docs/{name}: {len(text.splitlines())} lines\n")
