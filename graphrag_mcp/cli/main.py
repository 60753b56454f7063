"""The command line: commands, their arguments and help, and the exit status (0 done, 1 something
failed or was left out, 2 wrong use).

Commands are functions of the other modules in this folder, described by their docstring. Such a module
is imported when its command is given, or when the help of all is asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from typing import Any

from graphrag_mcp import __version__
from graphrag_mcp.cli.output import as_utf8, failed
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.text.terms import table

Run = Callable[[argparse.Namespace], int]
_TABLES = table(__file__)
GROUPS: dict[str, list[str]] = {name: text.split() for name, text in _TABLES["groups"].items()}
EXAMPLES: dict[str, list[str]] = _TABLES["examples"]
_TYPES = {"int": int, "float": float}
COMMANDS: dict[str, str] = _TABLES["commands"]  # command -> module.function in this folder


class Parser(argparse.ArgumentParser):
    """A parser that knows its commands, so that its help can group them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        name = str(options.get("prog", "")).partition(" ")[2]
        if name in EXAMPLES and "epilog" not in options:
            lines = [f"  graphrag-mcp {example}" for example in EXAMPLES[name]]
            options["epilog"] = "examples:\n" + "\n".join(lines)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)
        self.commands: dict[str, argparse.ArgumentParser] = {}

    def format_help(self) -> str:
        return self._in_groups() if self.commands else super().format_help()

    def _in_groups(self) -> str:
        width = shutil.get_terminal_size().columns - 2
        lines = [f"usage: {self.prog} COMMAND [OPTIONS]", "", str(self.description), ""]
        for title, names in GROUPS.items():
            listed = [f"  {name:<11} {self.commands[name].description}" for name in names]
            wrapped = [textwrap.fill(line, width, subsequent_indent=" " * 14) for line in listed]
            lines += [f"{title}:", *wrapped, ""]
        lines += [f"{self.prog} COMMAND --help describes a command. {self.prog} --version", ""]
        return "\n".join([*lines, str(self.epilog), ""])


def _add(parser: argparse.ArgumentParser, arguments: Mapping[str, Any]) -> None:
    """The arguments of a command, as main.toml has them."""
    for name, argument in arguments.items():
        if isinstance(argument, str):
            parser.add_argument(name, action="store_true", help=argument)
            continue
        how = {key: value for key, value in argument.items() if key != "unset"}
        optional = name.startswith("-") or argument.get("nargs") == "?"
        if optional and not argument.keys() & {"type", "action", "unset"}:
            how.setdefault("default", argument.get("choices", [""])[0])
        if how.get("help") == argparse.SUPPRESS:  # which argparse knows by identity
            how["help"] = argparse.SUPPRESS
        if "type" in argument:
            how["type"] = _TYPES[argument["type"]]
        parser.add_argument(name, **how)


def run_of(name: str) -> Run:
    """The function that runs a command."""
    module, _, function = COMMANDS[name].partition(".")
    return getattr(importlib.import_module(f"graphrag_mcp.cli.{module}"), function)


def parser(names: Iterable[str] = COMMANDS) -> Parser:
    """The command line with these commands; without an argument, with all."""
    common = argparse.ArgumentParser(add_help=False)
    _add(common, _TABLES["common"])
    about = "Turn a folder of documents into a knowledge graph, and search it."
    parser = Parser(prog="graphrag-mcp", description=about)
    parser.add_argument("--version", action="version", version=f"graphrag-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    parents: Any = [common]  # typeshed wants the class of the parser itself
    for name in names:
        run = run_of(name)
        about = " ".join((run.__doc__ or "").partition("\n\n")[0].split())
        command = commands.add_parser(name, help=about, description=about, parents=parents)
        command.set_defaults(run=run)
        _add(command, _TABLES["arguments"].get(name, {}))
        parser.commands[name] = command
    return parser


STOPPED = 130  # what shells report for Ctrl-C


class _WithoutPandas(MetaPathFinder):
    """Hides pandas, where it is installed. Arrow imports it with the first array that it makes, for half
    a second of CPU, and no command makes a data frame."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("no command needs pandas", name=fullname)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (argparse exits with 2 for unknown arguments)."""
    if arguments is None and os.environ.get("HOME") == "":
        del os.environ["HOME"]  # set to nothing it would make "~" the root of the disk
    if arguments is None:
        sys.meta_path.insert(0, _WithoutPandas())
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "serve")  # `graphrag-mcp --home X` is what a host's configuration says
    known: Iterable[str] = words[:1] if words[0] in COMMANDS else COMMANDS
    options = parser(() if words == ["--version"] else known).parse_args(words)
    if words[0] != "serve":
        as_utf8(sys.stdout)
        as_utf8(sys.stderr)
    try:
        return options.run(options)
    except GraphRAGError as error:
        return failed(options, error, 2 if isinstance(error, BadInput | NotFound) else 1)
    except BrokenPipeError:  # `graphrag-mcp ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = error.filename or options.home or "the index folder"
        return failed(options, f"{error.strerror or error}: {where}", 1)
    except KeyboardInterrupt:
        message = "Stopped. What was committed stays; the same command goes on from there."
        return failed(options, message, STOPPED)
