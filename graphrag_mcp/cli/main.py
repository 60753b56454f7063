"""The command line: commands, their arguments and help, and the exit status (0 done, 1 something
failed or was left out, 2 wrong use).

Commands are functions of the other modules in this folder, described by their docstring."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from graphrag_mcp import __version__
from graphrag_mcp.cli.evaluate import eval as evaluate
from graphrag_mcp.cli.output import as_utf8, failed
from graphrag_mcp.cli.read import drift, entity, explore, report, search, source, status
from graphrag_mcp.cli.read import list as list_documents
from graphrag_mcp.cli.upkeep import delete, digest, doctor, export, import_, install, rollback
from graphrag_mcp.cli.write import answers, edit, index, init, remove, serve, try_, tune
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound

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
        width = shutil.get_terminal_size().columns - 2
        lines = [f"usage: {self.prog} COMMAND [OPTIONS]", "", str(self.description), ""]
        for title, names in GROUPS.items():
            listed = [f"  {name:<11} {self.commands[name].description}" for name in names]
            wrapped = [textwrap.fill(one, width, subsequent_indent=" " * 14) for one in listed]
            lines += [f"{title}:", *wrapped, ""]
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


METHODS = ("auto", "fast", "llm", "agent")
Run = Callable[[argparse.Namespace], int]
FORMATS = ("concise", "detailed")


class Options:
    """Adds the arguments of one command; of an option without a default it is ""."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser

    def __call__(self, name: str, help: str, metavar: str | None = None, **more: Any) -> None:
        if name.startswith("-"):
            more.setdefault("default", "")
        self.parser.add_argument(name, help=help or None, metavar=metavar, **more)

    def flag(self, name: str, help: str) -> None:
        self.parser.add_argument(name, action="store_true", help=help)

    def number(self, name: str, help: str, default: int | None = None) -> None:
        self(name, help, "N", type=int, default=default)

    def choice(self, name: str, choices: Sequence[str], help: str, **more: Any) -> None:
        """The first of the choices is the default."""
        self(name, help, choices=choices, **{"default": choices[0], **more})

    def many(self, name: str, metavar: str, help: str, default: Any = None) -> None:
        """An option that can be repeated."""
        self(name, help, metavar, action="append", default=default)

    def maybe(self, name: str, metavar: str, help: str) -> None:
        """An argument that can be left out."""
        self(name, help, metavar, nargs="?", default="")


def parser(runs: Sequence[Run]) -> Parser:
    """The whole command line; each of `runs` is a command named after it and described by its
    docstring."""
    common = argparse.ArgumentParser(add_help=False)
    add = Options(common)
    where = "where indexes are kept, a folder or s3://bucket/prefix (else GRAPHRAG_MCP_HOME)"
    add("--home", where, "DIR")
    add("--corpus", "which index (else that of this folder)", "NAME")
    add.flag("--json", "print one JSON object")
    about = "A folder of documents in, a knowledge graph and tools for agents out."
    parser = Parser(prog="graphrag-mcp", description=about)
    parser.add_argument("--version", action="version", version=f"graphrag-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    by_name = {run.__name__: run for run in runs}

    def command(name: str) -> Options:
        run = by_name[name]
        about = " ".join((run.__doc__ or "").partition("\n\n")[0].split())
        made = commands.add_parser(name, help=about, description=about, parents=[common])
        made.set_defaults(run=run)
        parser.commands[name] = made
        return Options(made)

    for add_all in (_serving, _reading, _upkeep, _measuring, _installing):
        add_all(command)
    return parser


def _serving(command: Callable[[str], Options]) -> None:
    add = command("serve")
    add.many("--root", "DIR", "a folder that tools may index; repeat it for more")
    what = "core: to index and ask; index: to feed an index; all: these and editing"
    add.choice("--tools", ("core", "all", "index"), what)
    add.flag("--read-only", "without the tools that write")
    add.flag("--chatgpt", "with the tools search and fetch, which some hosts ask for by name")
    add.flag("--http", "over HTTP instead of stdin and stdout")
    what = "the address to listen on; another than this needs GRAPHRAG_MCP_TOKENS"
    add("--host", what, default="127.0.0.1")
    add.number("--port", "the port; 0 takes a free one", 8765)
    what = "with --http: processes that serve the address, best one for each core"
    add.number("--workers", what, 1)
    add.many("--allow-host", "NAME", "a name this server is reached by; repeat it for more")
    add = command("try")
    add.maybe("folder", "FOLDER", "of documents; else the sample")
    add = command("index")
    add("paths", "folders and files", "PATH", nargs="*")
    add.flag("--remove-missing", "let it remove more than half of a corpus of over 20 documents")
    add.flag("--recluster", "compute communities again, as after other settings")
    add.flag("--dry-run", "only read and estimate")
    add.flag("--watch", "stay, and index again after every change of a file")
    engines = ("auto", "inline", "processes", "ray")
    what = (
        "who computes: this process, several, or a Ray cluster; auto: several from 300 documents on"
    )
    add.choice("--engine", engines, what, default=None)
    add("--address", "with --engine ray: of the cluster; else of this machine", "URL", default=None)
    add.choice("--method", METHODS, "fast: without any model; auto: with the configured one")
    add.number("--max-calls", "stop asking models after N calls; 0: ask nothing, keep the answers")
    add.number("--max-tokens", "the same for tokens, in and out")
    what = "the same for money, by the prices in the settings"
    add("--max-cost", what, "X", type=float, default=None)
    add.flag("--refresh-answers", "ask the model again, whatever it answered before")
    add("--job", argparse.SUPPRESS, default="")


def _reading(command: Callable[[str], Options]) -> None:
    add = command("search")
    add("query", "", "QUERY")
    what = "auto, fused, hybrid, local, global, basic, text, or drift (with a model)"
    add("--mode", what, default="auto")
    add.many("--filter", "X", "field=value, !=, >=, <=; repeat it for more", [])
    add.choice(
        "--breadth", ("passages", "sentences"), "sentences: one from each of up to 40 places"
    )
    add.choice("--sort", ("rank", "time"), "time: oldest first")
    add.flag("--explain", "say of each item what brought it in")
    add.flag("--answer", "let the configured model answer from the context")
    add("--response-type", 'form of that answer, e.g. "a table of three rows"', "TEXT")
    add.number("--level", "community level for global: 0 is the coarsest, -1 chooses", -1)
    add.number("--max-tokens", "budget of the result")
    add.choice("--format", FORMATS, "how much of each item")
    add = command("entity")
    add("name", "a name or an id such as e12", "NAME")
    add.choice("--order", ("", "time"), "time: what is said of it, by day")
    add("--other", "only what names this entity too, by day", "NAME")
    add.number("--max-tokens", "budget of the result")
    add.choice("--format", FORMATS, "how much of each item")
    add = command("list")
    add.maybe("query", "QUERY", "only documents that speak of this")
    add.many("--filter", "X", "as search; repeat it for more", [])
    add.choice("--sort", ("date", "title", "size"), "order")
    kinds = ("person", "organization", "location", "event")
    what = "one line a period, a name by the number of documents that hold it, or a statement"
    add.choice("--by", ("year", "month", "day", *kinds, "statement"), what, default="")
    add("--document", "the headings of one document, as d4", "ID")
    add("--cursor", "of the last page", "CURSOR")
    add.number("--max-tokens", "budget of the result")
    add = command("report")
    add("community", "an id such as c5", "COMMUNITY")
    add.number("--max-tokens", "budget of the result")
    add.choice("--format", FORMATS, "how much of each item")
    add = command("source")
    add("ids", "ids such as t33 or d4", "ID", nargs="+")
    add.number("--around", "so many text units before and after", 0)
    add("--query", "a question: only the sentences that bear on it", "TEXT", default="")
    add.flag("--raw", "to the letter: with marks, menus and addresses of links")
    add.number("--max-tokens", "budget of the result")
    add = command("status")
    what = "what changed since generation N, or since a day (2024-05-03)"
    add("--since", what, "N", default=None)
    add("--about", "with --since: what new text says of this entity", "NAME")


def _upkeep(command: Callable[[str], Options]) -> None:
    add = command("doctor")
    add.maybe("folder", "DIR", "a folder of GraphRAG's tables or LightRAG's storage")
    add.flag("--repair", "derive what is wrong again from the stored originals")
    command("digest")
    add = command("export")
    add.maybe("folder", "DIR", "where the Parquet files go")
    add("--html", "write the graph as one page, to open without a server", "FILE")
    add.flag("--graphml", "also write graph.graphml, for networkx, Gephi and others")
    add = command("import")
    add("folder", "tables of GraphRAG, a storage of LightRAG, or what export wrote", "DIR")
    add = command("remove")
    add("ids", "documents: d4, a uri, a file name, the id of a text", "ID", nargs="+")
    add.flag("--yes", "do it; without, only say what would go")
    add = command("delete")
    add("name", "the corpus, by its name", "CORPUS")
    add.flag("--yes", "do it; without, only say what would go")
    add = command("edit")
    ops = "create update rename merge delete undo proposals reject log replay".split()
    add("op", f"one of {', '.join(ops)}", "OP", choices=ops)
    add("ids", "e12, r7 or names; of an undo its id; of replay a file", "ID", nargs="*")
    add.many("--set", "X", "name=value, e.g. type=person; repeat it", [])
    add.flag("--yes", "do it; without, only say what would change")
    add = command("rollback")
    add("generation", "a generation that is still kept", "N", type=int)


def _measuring(command: Callable[[str], Options]) -> None:
    add = command("tune")
    add.choice("--selection", ("random", "top", "centroid"), "which texts the sample is of")
    add.number("--limit", "text units of the sample", 15)
    add.number("--max-tokens", "of the question about the sample", 2000)
    add.number("--min-examples", "worked examples in the extraction prompt", 2)
    add("--domain", "what the texts are about, where you know it")
    add("--language", "of descriptions and reports, where it shall be another than the texts'")
    add.flag("--no-entity-types", "let extraction use any type")
    add.number("--seed", "of the random sample", 42)
    add("--output", "write there instead of into the index", "DIR")
    add = command("init")
    add("folder", "where the files go", "DIR", nargs="?", default=".")
    add.flag("--force", "overwrite")
    add = command("explore")
    what = "an entity (name or e12) or a community (c5); without it the page opens"
    add.maybe("start", "START", what)
    add.maybe("goal", "GOAL", "an entity to connect it with")
    add.number("--hops", "steps around START, 1 to 4", 1)
    add.number("--max-nodes", "entities, 2 to 200", 30)
    kinds = "of source code: calls, inherits, imports, contains, impact or tests"
    add.many("--kind", "KIND", kinds, default=[])
    way = "in: what uses START, out: what it uses"
    add("--direction", way, "WAY", default="")
    add.flag("--no-browser", "only print the address of the page")
    add.number("--max-tokens", "budget of the result")
    add = command("drift")
    add.maybe("session", "SESSION", "from drift_search; none: list them")
    add("--format", "tree, json (node-link) or mermaid", default="tree")
    add = command("eval")
    what = "questions (.jsonl, .json, .csv), or a folder with corpus.jsonl and queries.jsonl"
    add("file", what, "FILE")
    add("--modes", "which searches; also hybrid", "LIST", default="local,fused,basic,global,text")
    add.number("--tokens", "of the context in which evidence is looked for", 2000)
    add.number("--limit", "only the first N questions", 0)
    add("--against", "compare with another index, question by question", "HOME/CORPUS")
    add.flag("--judge", "let the configured model compare the answers of the two")
    add = command("answers")
    add("action", "", choices=("list", "clear"))
    add("--kind", "extract, glean, describe, claims, report, answer, ...; embedding for vectors")


def _installing(command: Callable[[str], Options]) -> None:
    add = command("install")
    hosts = ("all", "claude-desktop", "claude-code", "cursor", "vscode", "codex")
    pasted = "windsurf zed gemini-cli opencode cline jetbrains goose lm-studio".split()
    about = "the client, or all that are here; those after codex with --print; without it: a list"
    add.choice("--client", (*hosts, *pasted), about, default="")
    add.many("--root", "DIR", "a folder that tools may index; repeat it for more")
    add.choice("--tools", ("core", "all", "index"), "as serve")
    add.flag("--read-only", "without the tools that write")
    add.many("--env", "NAME", "a variable the server shall see; a key is never written down")
    add("--name", "of the server, in the host", default="graphrag")
    what = "for this project only, in its own file"
    add("--project", what, "DIR", nargs="?", const=".", default=None)
    add("--config", "another file than the host's usual one", "FILE")
    add.flag("--print", "show the block to paste, and write nothing")
    add.flag("--undo", "take it out again")
    add.flag("--no-check", "write it without starting the server once")
    add = command("completion")
    add("shell", "the shell", choices=("bash", "zsh", "fish", "powershell"))


def completion(options: argparse.Namespace) -> int:
    """Print the script that completes commands and options in a shell."""
    import shtab

    whole = parser(COMMANDS)
    folder, file = shtab.DIRECTORY, shtab.FILE
    kinds = {"DIR": folder, "FOLDER": folder, "PATH": file, "FILE": file}
    for command in whole.commands.values():
        for action in command._actions:
            if kind := kinds.get(str(action.metavar)):
                action.complete = kind  # type: ignore[attr-defined]
    print(shtab.complete(whole, options.shell))
    return 0


STOPPED = 130  # what shells report for Ctrl-C
COMMANDS = (
    *(try_, serve, index, search, entity, list_documents, report, source, status, doctor, digest),
    *(export, rollback, tune, init, answers, remove, delete, edit, explore, drift, evaluate),
    *(install, import_, completion),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (argparse itself exits with 2 for arguments it does
    not know)."""
    if arguments is None and os.environ.get("HOME") == "":
        del os.environ["HOME"]  # set to nothing it would make "~" the root of the disk
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "serve")  # `graphrag-mcp --home X` is what a host's configuration says
    options = parser(COMMANDS).parse_args(given)
    if options.run is not serve:
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
        said = "Stopped. What was committed stays; the same command goes on from there."
        return failed(options, said, STOPPED)
