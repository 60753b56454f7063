"""The command line: commands, their arguments, and the exit status.

Takes arguments; gives 0 where all is done, 1 where something failed or was left out (named), 2 for
wrong use. Commands are functions of the other modules in this folder, described by their docstring.
Only this folder prints.

The help of the command line: commands in groups, examples, and the nearest name after a mistake.

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


METHODS = ("auto", "fast", "llm", "agent")
Run = Callable[[argparse.Namespace], int]
BUDGET: dict[str, Any] = {"type": int, "metavar": "N", "help": "budget of the result"}
FORMATS: dict[str, Any] = {
    "choices": ("concise", "detailed"),
    "default": "concise",
    "help": "how much of each item",
}


def parser(runs: Sequence[Run]) -> Parser:
    """The whole command line; each of `runs` is a command named after it and described by its
    docstring.
    """
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--home",
        default="",
        metavar="DIR",
        help="where indexes are kept, a folder or s3://bucket/prefix (else GRAPHRAG_MCP_HOME)",
    )
    common.add_argument(
        "--corpus", default="", metavar="NAME", help="which index (else that of this folder)"
    )
    common.add_argument("--json", action="store_true", help="print one JSON object")
    about = "A folder of documents in, a knowledge graph and tools for agents out."
    parser = Parser(prog="graphrag-mcp", description=about)
    parser.add_argument("--version", action="version", version=f"graphrag-mcp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    by_name = {run.__name__: run for run in runs}

    def command(name: str) -> Callable[..., Any]:
        run = by_name[name]
        about = " ".join((run.__doc__ or "").partition("\n\n")[0].split())
        made = commands.add_parser(name, help=about, description=about, parents=[common])
        made.set_defaults(run=run)
        parser.commands[name] = made
        return made.add_argument

    for add_all in (_serving, _reading, _upkeep, _installing):
        add_all(command)
    return parser


def _serving(command: Callable[[str], Callable[..., Any]]) -> None:
    add = command("serve")
    add(
        "--root",
        action="append",
        metavar="DIR",
        help="a folder that tools may index; repeat it for more",
    )
    add(
        "--tools",
        choices=("core", "all", "index"),
        default="core",
        help="core: to index and ask; index: to feed an index; all: these and editing",
    )
    add("--read-only", action="store_true", help="without the tools that write")
    add(
        "--chatgpt",
        action="store_true",
        help="with the tools search and fetch, which some hosts ask for by name",
    )
    add("--http", action="store_true", help="over HTTP instead of stdin and stdout")
    add(
        "--host",
        default="127.0.0.1",
        help="the address to listen on; another than this needs GRAPHRAG_MCP_TOKENS",
    )
    add("--port", type=int, default=8765, metavar="N", help="the port; 0 takes a free one")
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="with --http: processes that serve the address, best one for each core",
    )
    add(
        "--allow-host",
        action="append",
        metavar="NAME",
        help="a name this server is reached by; repeat it for more",
    )
    add = command("try")
    add("folder", nargs="?", default="", metavar="FOLDER", help="of documents; else the sample")
    add = command("index")
    add("paths", nargs="*", metavar="PATH", help="folders and files")
    add(
        "--remove-missing",
        action="store_true",
        help="let it remove more than half of a corpus of over 20 documents",
    )
    add(
        "--recluster",
        action="store_true",
        help="compute communities again, as after other settings",
    )
    add("--dry-run", action="store_true", help="only read and estimate")
    add("--watch", action="store_true", help="stay, and index again after every change of a file")
    add(
        "--engine",
        choices=("auto", "inline", "processes", "ray"),
        help="who computes: this process, several, or a Ray cluster; auto: several from 300 documents on",
    )
    add("--address", metavar="URL", help="with --engine ray: of the cluster; else of this machine")
    add(
        "--method",
        choices=METHODS,
        default="auto",
        help="fast: without any model; auto: with the configured one",
    )
    add(
        "--max-calls",
        type=int,
        metavar="N",
        help="stop asking models after N calls; 0: ask nothing, keep the answers",
    )
    add("--max-tokens", type=int, metavar="N", help="the same for tokens, in and out")
    add(
        "--max-cost",
        type=float,
        metavar="X",
        help="the same for money, by the prices in the settings",
    )
    add(
        "--refresh-answers",
        action="store_true",
        help="ask the model again, whatever it answered before",
    )
    add("--job", default="", help=argparse.SUPPRESS)


def _reading(command: Callable[[str], Callable[..., Any]]) -> None:
    add = command("search")
    add("query", metavar="QUERY")
    add(
        "--mode",
        default="auto",
        help="auto, fused, hybrid, local, global, basic, text, or drift (with a model)",
    )
    add(
        "--filter",
        action="append",
        default=[],
        metavar="X",
        help="field=value, !=, >=, <=; repeat it for more",
    )
    add(
        "--breadth",
        choices=("passages", "sentences"),
        default="passages",
        help="sentences: one from each of up to 40 places",
    )
    add("--sort", choices=("rank", "time"), default="rank", help="time: oldest first")
    add("--explain", action="store_true", help="say of each item what brought it in")
    add("--answer", action="store_true", help="let the configured model answer from the context")
    add(
        "--response-type",
        default="",
        metavar="TEXT",
        help='form of that answer, e.g. "a table of three rows"',
    )
    add(
        "--level",
        type=int,
        default=-1,
        metavar="N",
        help="community level for global: 0 is the coarsest, -1 chooses",
    )
    add("--max-tokens", type=int, metavar="N", help="budget of the result")
    add("--format", **FORMATS)
    add = command("entity")
    add("name", metavar="NAME", help="a name or an id such as e12")
    add("--order", choices=("", "time"), default="", help="time: what is said of it, by day")
    add("--other", default="", metavar="NAME", help="only what names this entity too, by day")
    add("--max-tokens", **BUDGET)
    add("--format", **FORMATS)
    add = command("list")
    add("query", nargs="?", default="", metavar="QUERY", help="only documents that speak of this")
    add("--filter", action="append", default=[], metavar="X", help="as search; repeat it for more")
    add("--sort", choices=("date", "title", "size"), default="date", help="order")
    kinds = ("person", "organization", "location", "event")
    add(
        "--by",
        choices=("year", "month", "day", *kinds, "statement"),
        default="",
        help="one line a period, a name by the number of documents that hold it, or a statement",
    )
    add("--document", default="", metavar="ID", help="the headings of one document, as d4")
    add("--cursor", default="", metavar="CURSOR", help="of the last page")
    add("--max-tokens", **BUDGET)
    add = command("report")
    add("community", metavar="COMMUNITY", help="an id such as c5")
    add("--max-tokens", **BUDGET)
    add("--format", **FORMATS)
    add = command("source")
    add("ids", nargs="+", metavar="ID", help="ids such as t33 or d4")
    add("--around", type=int, default=0, metavar="N", help="so many text units before and after")
    add("--max-tokens", **BUDGET)
    add = command("status")
    add("--since", metavar="N", help="what changed since generation N, or since a day (2024-05-03)")
    add(
        "--about",
        default="",
        metavar="NAME",
        help="with --since: what new text says of this entity",
    )


def _upkeep(command: Callable[[str], Callable[..., Any]]) -> None:
    add = command("doctor")
    add(
        "folder",
        nargs="?",
        default="",
        metavar="DIR",
        help="a folder of GraphRAG's tables or LightRAG's storage",
    )
    add(
        "--repair", action="store_true", help="derive what is wrong again from the stored originals"
    )
    command("digest")
    add = command("export")
    add("folder", nargs="?", default="", metavar="DIR", help="where the Parquet files go")
    add(
        "--html",
        default="",
        metavar="FILE",
        help="write the graph as one page, to open without a server",
    )
    add(
        "--graphml",
        action="store_true",
        help="also write graph.graphml, for networkx, Gephi and others",
    )
    add = command("import")
    add(
        "folder",
        metavar="DIR",
        help="tables of GraphRAG, a storage of LightRAG, or what export wrote",
    )
    add = command("remove")
    add("ids", nargs="+", metavar="ID", help="documents: d4, a uri, a file name, the id of a text")
    add("--yes", action="store_true", help="do it; without, only say what would go")
    add = command("delete")
    add("name", metavar="CORPUS", help="the corpus, by its name")
    add("--yes", action="store_true", help="do it; without, only say what would go")
    add = command("edit")
    ops = (
        "create",
        "update",
        "rename",
        "merge",
        "delete",
        "undo",
        "proposals",
        "reject",
        "log",
        "replay",
    )
    add("op", choices=ops, metavar="OP", help=f"one of {', '.join(ops)}")
    add(
        "ids", nargs="*", metavar="ID", help="e12, r7 or names; of an undo its id; of replay a file"
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="X",
        help="name=value, e.g. type=person; repeat it",
    )
    add("--yes", action="store_true", help="do it; without, only say what would change")
    add = command("rollback")
    add("generation", type=int, metavar="N", help="a generation that is still kept")
    add = command("tune")
    add(
        "--selection",
        choices=("random", "top", "centroid"),
        default="random",
        help="which texts the sample is of",
    )
    add("--limit", type=int, default=15, metavar="N", help="text units of the sample")
    add(
        "--max-tokens", type=int, default=2000, metavar="N", help="of the question about the sample"
    )
    add(
        "--min-examples",
        type=int,
        default=2,
        metavar="N",
        help="worked examples in the extraction prompt",
    )
    add("--domain", default="", help="what the texts are about, where you know it")
    add(
        "--language",
        default="",
        help="of descriptions and reports, where it shall be another than the texts'",
    )
    add("--no-entity-types", action="store_true", help="let extraction use any type")
    add("--seed", type=int, default=42, metavar="N", help="of the random sample")
    add("--output", default="", metavar="DIR", help="write there instead of into the index")
    add = command("init")
    add("folder", nargs="?", default=".", metavar="DIR", help="where the files go")
    add("--force", action="store_true", help="overwrite")
    add = command("explore")
    add(
        "start",
        nargs="?",
        default="",
        metavar="START",
        help="an entity (name or e12) or a community (c5); without it the page opens",
    )
    add("goal", nargs="?", default="", metavar="GOAL", help="an entity to connect it with")
    add("--hops", type=int, default=1, metavar="N", help="steps around START, 1 to 4")
    add("--max-nodes", type=int, default=30, metavar="N", help="entities, 2 to 200")
    add(
        "--kind",
        action="append",
        default=[],
        metavar="KIND",
        help="of source code: calls, inherits, imports, contains, impact or tests",
    )
    add("--direction", default="", metavar="WAY", help="in: what uses START, out: what it uses")
    add("--no-browser", action="store_true", help="only print the address of the page")
    add("--max-tokens", type=int, metavar="N", help="budget of the result")
    add = command("drift")
    add(
        "session",
        nargs="?",
        default="",
        metavar="SESSION",
        help="from drift_search; none: list them",
    )
    add("--format", default="tree", help="tree, json (node-link) or mermaid")
    add = command("eval")
    add(
        "file",
        metavar="FILE",
        help="questions (.jsonl, .json, .csv), or a folder with corpus.jsonl and queries.jsonl",
    )
    add(
        "--modes",
        default="local,fused,basic,global,text",
        metavar="LIST",
        help="which searches; also hybrid",
    )
    add(
        "--tokens",
        type=int,
        default=2000,
        metavar="N",
        help="of the context in which evidence is looked for",
    )
    add("--limit", type=int, default=0, metavar="N", help="only the first N questions")
    add(
        "--against",
        default="",
        metavar="HOME/CORPUS",
        help="compare with another index, question by question",
    )
    add(
        "--judge",
        action="store_true",
        help="let the configured model compare the answers of the two",
    )
    add = command("answers")
    add("action", choices=("list", "clear"))
    add(
        "--kind",
        default="",
        help="extract, glean, describe, claims, report, answer, ...; embedding for vectors",
    )


def _installing(command: Callable[[str], Callable[..., Any]]) -> None:
    add = command("install")
    hosts = ("all", "claude-desktop", "claude-code", "cursor", "vscode", "codex")
    pasted = (
        "windsurf",
        "zed",
        "gemini-cli",
        "opencode",
        "cline",
        "jetbrains",
        "goose",
        "lm-studio",
    )
    about = "the client, or all that are here; those after codex with --print; without it: a list"
    add("--client", choices=(*hosts, *pasted), default="", help=about)
    add(
        "--root",
        action="append",
        metavar="DIR",
        help="a folder that tools may index; repeat it for more",
    )
    add("--tools", choices=("core", "all", "index"), default="core", help="as serve")
    add("--read-only", action="store_true", help="without the tools that write")
    add(
        "--env",
        action="append",
        metavar="NAME",
        help="a variable the server shall see; a key is never written down",
    )
    add("--name", default="graphrag", help="of the server, in the host")
    add(
        "--project",
        nargs="?",
        const=".",
        metavar="DIR",
        help="for this project only, in its own file",
    )
    add("--config", default="", metavar="FILE", help="another file than the host's usual one")
    add("--print", action="store_true", help="show the block to paste, and write nothing")
    add("--undo", action="store_true", help="take it out again")
    add("--no-check", action="store_true", help="write it without starting the server once")
    add = command("completion")
    add("shell", choices=("bash", "zsh", "fish", "powershell"), help="the shell")


def completion(options: argparse.Namespace) -> int:
    """Print the script that completes commands and options in a shell."""
    import shtab

    whole = parser(COMMANDS)
    kinds = {
        "DIR": shtab.DIRECTORY,
        "FOLDER": shtab.DIRECTORY,
        "PATH": shtab.FILE,
        "FILE": shtab.FILE,
    }
    for command in whole.commands.values():
        for action in command._actions:
            if kind := kinds.get(str(action.metavar)):
                action.complete = kind  # type: ignore[attr-defined]
    print(shtab.complete(whole, options.shell))
    return 0


STOPPED = 130  # what shells report for Ctrl-C
COMMANDS = (
    try_,
    serve,
    index,
    search,
    entity,
    list_documents,
    report,
    source,
    status,
    doctor,
    digest,
    export,
    rollback,
    tune,
    init,
    answers,
)
COMMANDS += (remove, delete, edit, explore, drift, evaluate, install, import_, completion)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (argparse itself exits with 2 for arguments it does
    not know).
    """
    if arguments is None:
        if not os.environ.get("HOME", "?"):
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
        return failed(
            options,
            f"{error.strerror or error}: {error.filename or options.home or 'the index folder'}",
            1,
        )
    except KeyboardInterrupt:
        return failed(
            options,
            "Stopped. What was committed stays; the same command goes on from there.",
            STOPPED,
        )
