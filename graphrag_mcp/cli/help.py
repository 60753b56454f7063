"""The help of the command line: commands in groups, examples, and the nearest name after a mistake.

Takes the arguments that were given; gives an `argparse` parser that prints its help in groups and
ends a wrong command or option with the nearest right one. Bold only on a terminal, and never where
NO_COLOR is set. Runs no command.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

GROUPS = {
    "To begin": ("try", "index", "install", "serve", "completion"),
    "To ask": ("search", "entity", "explore", "list", "report", "source", "drift"),
    "To look after an index": ("status", "doctor", "edit", "remove", "rollback", "digest"),
    "To move, share and delete": ("export", "import", "delete"),
    "For models and measuring": ("init", "tune", "answers", "eval"),
}
EXAMPLES = {
    "": ("try", "index ~/papers", 'search "Who changed their mind, and why?"'),
    "try": ("try", "try ~/papers"),
    "index": ("index ~/papers", "index ~/papers --dry-run", "index ~/papers --watch"),
    "completion": ("completion bash", "completion zsh"),
    "install": ("install", "install --client cursor --root ~/papers", "install --client all"),
    "search": (
        'search "Who opened the canister?"',
        'search "the main topics" --mode global',
        "search '\"exact words\"' --mode text --filter year=2021",
    ),
    "entity": ('entity "Ines Calloway"', "entity e12 --format detailed"),
    "explore": ("explore", 'explore "Tobias Fenn" "Tide Office"'),
    "list": ("list --by year", "list --sort size"),
    "source": ("source t33", "source t33.2 --around 1"),
    "status": ("status", "status --since 3"),
    "export": ("export out --graphml",),
    "edit": ("edit proposals", "edit merge e4 e9 --yes"),
}


class Parser(argparse.ArgumentParser):
    """A parser that knows its commands, so that it can group them and name the nearest."""

    def __init__(self, *args: Any, **options: Any) -> None:
        name = str(options.get("prog", "")).partition(" ")[2]
        if name in EXAMPLES and "epilog" not in options:
            lines = [f"  graphrag-mcp {one}" for one in EXAMPLES[name]]
            options["epilog"] = "examples:\n" + "\n".join(lines)
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **options)
        self.commands: dict[str, argparse.ArgumentParser] = {}
        self.given: Sequence[str] = ()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = list(sys.argv[1:] if args is None else args)
        return super().parse_args(args, namespace)

    def format_help(self) -> str:
        said = self._in_groups() if self.commands else super().format_help()
        return re.sub(r"(?m)^(\S.*):$", lambda found: bold(found[0]), said)

    def _in_groups(self) -> str:
        lines = [f"usage: {self.prog} COMMAND [OPTIONS]", "", str(self.description), ""]
        for title, names in GROUPS.items():
            lines += [f"{title}:"]
            lines += [f"  {name:<11} {self.commands[name].description}" for name in names]
            lines += [""]
        lines += [f"{self.prog} COMMAND --help says more of one. {self.prog} --version", ""]
        return "\n".join([*lines, str(self.epilog), ""])

    def error(self, message: str) -> NoReturn:
        """Ends with status 2. A long list of choices is left out where the nearest is named."""
        if found := re.search(r"invalid choice: '([^']*)'", message):
            known: Iterable[str] = self.commands or _choices(self, message)
            if near := nearest(found[1], known):
                message = f"{message[: found.start()]}there is no {found[1]!r}. {near}"
        elif found := re.match(r"unrecognized arguments: (--[^\s=]+)", message):
            command = self.commands.get(self.given[0]) if self.given else None
            if near := nearest(found[1], command._option_string_actions if command else ()):
                message = f"there is no option {found[1]}. {near}"
        super().error(message)


def nearest(word: str, known: Iterable[str]) -> str:
    """A question that names the most similar known word; "" where none is similar."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"Did you mean {found[0]}?" if found else ""


def bold(text: str) -> str:
    """The text in bold, where stdout is a terminal and NO_COLOR is not set."""
    shown = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return f"\033[1m{text}\033[0m" if shown else text


def _choices(parser: argparse.ArgumentParser, message: str) -> list[str]:
    """The choices of the argument that an error message names."""
    for action in parser._actions:
        names = ("/".join(action.option_strings), action.metavar, action.dest)
        if action.choices and any(name and f"argument {name}:" in message for name in names):
            return [str(one) for one in action.choices]
    return []
