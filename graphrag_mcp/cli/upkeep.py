"""Commands that maintain an index (doctor, digest, export, import, rollback, delete), and install."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli import output
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.settings import Settings, default_roots
from graphrag_mcp.text.terms import counted

if TYPE_CHECKING:
    from graphrag_mcp.install.hosts import Host


MODEL_VARIABLES = ("GRAPHRAG_MCP_CHAT_MODEL", "GRAPHRAG_MCP_EMBEDDING_MODEL", "OPENAI_BASE_URL")
NOTHING = "Nothing was deleted. The same with --yes does it."
OF_MACHINE = "this file contains paths of this machine; others who share the project run this command themselves"
NO_FOLDER = "no folder was named, so tools cannot index files; give --root FOLDER, or index with graphrag-mcp index"


def check_model(options: argparse.Namespace) -> int:
    """Make at most six calls of the configured models; say what works, what it costs and what to set."""
    import anyio

    from graphrag_mcp.llm.check import check_settings

    check = anyio.run(check_settings, output.settings_of(options), os.environ)
    usage = check.usage
    if options.json:
        output.print_json(asdict(check) | {"works": check.works, "usage": asdict(usage)})
        return int(not check.works)
    for call in check.calls:
        word = "works" if call.works else "FAILS"
        print(f"{word}  {call.name}, {call.seconds:.1f} s: {one_line(call.sentence, 400)}")
    about = "about " if usage.estimated else ""
    tokens = usage.prompt_tokens + usage.output_tokens
    print(f"\n{counted(len(check.calls), 'calls')}, {about}{tokens:,} tokens.", *check.notes)
    if check.advice:
        lines = [f"{name} = {value}" for name, value in check.advice.items()]
        print("\nWrite into the settings file (graphrag-mcp init writes one):", *lines, sep="\n  ")
    return int(not check.works)


def install(options: argparse.Namespace) -> int:
    """Add this server to a client's configuration, or remove it with --undo."""
    from graphrag_mcp.install import install as installs
    from graphrag_mcp.install import launch
    from graphrag_mcp.install.hosts import BY_NAME, PRINTED

    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", options.name):
        what = f"a server cannot be named {options.name[:40]!r}"
        raise BadInput(what, "Use letters, digits, - and _")
    if not options.client:
        if options.undo:
            raise BadInput("--undo removes the server from one client", "Name it with --client")
        return _overview(options)
    if options.client == "all":
        return _everywhere(options)
    if options.client not in BY_NAME:
        return _to_paste(options, next(client for client in PRINTED if client.name == options.client))
    host = BY_NAME[options.client]
    project = _project(options, host)
    file = Path(options.config).expanduser().absolute() if options.config else _file(host, project)
    if options.undo:
        return _undo(options, host, file)
    entry, notes = _entry(options, host, project)
    if options.print:
        return _show(options, host, file, entry, notes)
    started: dict[str, Any] = {}
    if not options.no_check:
        most = installs.START_SECONDS
        seconds, tools = launch.trial(*_as_started(host, entry), most)
        started = {"seconds": round(seconds, 2), "tools": tools}
    try:
        change = installs.installing(host, file, options.name, entry)
        backup = installs.apply(change)
    except installs.NotEdited as error:
        block = installs.block(host, options.name, entry)
        if not options.json:
            print(f"{host.title}: not added. To paste into {file}:\n\n{block}")
        return output.failed(options, error, 2, block=block)
    notes += change.notes
    following = [host.reload, f"To see that it is there: {host.check}"]
    record = {"client": host.name, "file": str(file), "name": options.name, "change": change.change}
    record |= {"backup": str(backup or ""), "entry": change.entry or entry, "started": started}
    record |= {"notes": notes, "next": following}
    lines = [f"{host.title}: {change.change} {options.name!r} in {file}"]
    lines += [f"the file as it was: {backup}"] if backup else []
    if started:
        how = f"{started['tools']} tools after {started['seconds']} s"
        lines.append(f"started it as the client would: {how}")
    following = [*following, "Then say: index this folder, and tell me what it is about"]
    return output.say(options, record, *lines, *_notes_and_steps(notes, following))


def _to_paste(options: argparse.Namespace, host: Host) -> int:
    """The entry of a client whose file is the user's to edit."""
    from graphrag_mcp.install.hosts import printed

    if not options.print or options.undo or options.project is not None or options.config:
        what = f"the configuration of {host.title} is not edited by install"
        move = f"Use graphrag-mcp install --client {host.name} --print, and paste what it shows"
        raise BadInput(what, move)
    entry, notes = _entry(options, host, None)
    text = printed(host, options.name, entry)
    record = {"client": host.name, "entry": entry, "block": text, "notes": notes}
    return output.say(options, record, f"{host.title}:\n\n{text}\n", *_notes_and_steps(notes, [host.reload]))


def _everywhere(options: argparse.Namespace) -> int:
    """The same for each host that seems to be on this machine; the highest exit status of them."""
    from graphrag_mcp.install.hosts import here

    if options.config or options.json:
        raise BadInput("--client all takes no --config and no --json", "Name one client")
    found = here(os.environ, Path.home())
    if not found:
        raise BadInput("no client was found on this machine", "Name one with --client")
    worst = 0
    for host in found:
        host_options = argparse.Namespace(**{**vars(options), "client": host.name})
        try:
            worst = max(worst, install(host_options))
        except GraphRAGError as error:
            worst = max(worst, output.failed(host_options, error, 1))
    return worst


def _undo(options: argparse.Namespace, host: Host, file: Path) -> int:
    from graphrag_mcp.install import install as installs

    change = installs.undoing(host, file, options.name)
    installs.apply(change)
    if change.change == "absent":
        lines = [f"there is no server {options.name!r} in {file}; nothing was changed"]
    else:
        how = "is as it was before" if change.change == "restored" else "has it no more"
        removed = "; it held nothing else and is gone" if change.after is None else ""
        lines = [f"{file} {how}{removed}", *_notes_and_steps([], [host.gone or host.reload])]
    lines[0] = f"{host.title}: {lines[0]}"
    record = {"client": host.name, "file": str(file), "name": options.name, "change": change.change}
    return output.say(options, record, *lines)


def _show(options: argparse.Namespace, host: Host, file: Path, entry: dict[str, Any], notes: list[str]) -> int:
    from graphrag_mcp.install import install as installs

    text = installs.block(host, options.name, entry)
    record = {"client": host.name, "file": str(file), "entry": entry, "block": text}
    lines = [f"{host.title}, for {file}:\n\n{text}", *_notes_and_steps(notes, [])]
    return output.say(options, {**record, "notes": notes}, *lines)


def _overview(options: argparse.Namespace) -> int:
    """Which hosts are here, and what each would get."""
    from graphrag_mcp.install.hosts import HOSTS, PRINTED, seen
    from graphrag_mcp.install.install import installed

    home, here = Path.home(), Path.cwd()
    inside = installed(os.environ, home, here)
    rows, lines = [], []
    for host in HOSTS:
        entry, notes = _entry(options, host, None)
        mine = [server for server in inside if server["host"] == host.name]
        mine = [{name: server[name] for name in ("file", "name", "problem")} for server in mine]
        found, file = seen(host, os.environ, home), str(_file(host, None))
        row = {"client": host.name, "found": found, "file": file, "installed": mine}
        rows.append({**row, "entry": entry, "notes": notes})
        lines.append(f"{host.name:<15} {'found' if found else 'not found'}: {file}")
        for server in mine:
            unread = "its configuration cannot be read"
            state = f"installed as {server['name']!r}" if server["name"] else unread
            problem = f": {server['problem']}" if server["problem"] else ""
            lines.append(f"{'':<16}{state} in {server['file']}{problem}")
        lines.append(f"{'':<16}would start: {' '.join([entry['command'], *entry['args']])}")
    lines.append("\nTo add it to a client: graphrag-mcp install --client NAME [--root FOLDER]")
    lines.append(f"With --print, an entry to paste for: {', '.join(client.name for client in PRINTED)}")
    return output.say(options, {"hosts": rows}, *lines)


# ---- what the server is started with -----------------------------------------------------------


def _entry(options: argparse.Namespace, host: Host, project: Path | None) -> tuple[dict[str, Any], list[str]]:
    from graphrag_mcp.app import checked_name
    from graphrag_mcp.install import install as installs
    from graphrag_mcp.install import launch

    settings = output.settings_of(options)
    arguments = project is not None, options.env or (), os.environ
    values, handed, notes = installs.variables(host, *arguments)
    env = launch.environment()
    if path := os.environ.get("GRAPHRAG_MCP_SETTINGS"):
        env["GRAPHRAG_MCP_SETTINGS"] = str(Path(path).expanduser().absolute())
    roots = _roots(options, host, project, settings)
    words = [*launch.command(), "serve"]
    # The platform's folder is the host's own guess too, unless this shell has moved it.
    if settings.home != Settings().home or os.environ.get("XDG_DATA_HOME"):
        words += ["--home", str(settings.home)]
    words += [part for root in roots for part in ("--root", str(root))]
    words += _notes(options, roots or settings.roots)
    words += ["--corpus", checked_name(options.corpus)] if options.corpus else []
    words += ["--tools", options.tools] if options.tools != "core" else []
    words += ["--read-only"] if options.read_only else []
    if project is not None:
        notes.append(OF_MACHINE)
    if not roots and not host.follows:
        notes.append(NO_FOLDER)
    passed = {*values, *handed}
    unsaid = [name for name in MODEL_VARIABLES if os.environ.get(name) and name not in passed]
    if unsaid and (host.toml or not host.follows):
        where = f"set here, not seen by {host.title}; give --env NAME to hand it on"
        notes.append(f"{', '.join(unsaid)}: {where}")
    return installs.entry(host, words, {**env, **values}, handed), notes


def _notes(options: argparse.Namespace, roots: Sequence[Path]) -> list[str]:
    """`--notes DIR`, as it was given or as a person answers; [] without one. BadInput for a folder
    outside of the roots, which the server would refuse."""
    path = options.notes
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not options.json and not options.print
    if path is None and asks and not options.read_only and roots:
        print("Assistants can keep what they find as Markdown notes, in a folder that you name.")
        path = input(f"Folder for notes, such as {roots[0] / 'notes'} (empty: none): ").strip()
    if not path:
        return []
    folder = Path(path).expanduser().absolute()
    if not any(folder.resolve().is_relative_to(root.resolve()) for root in roots):
        listed = ", ".join(map(str, roots)) or "none"
        what = f"the folder of notes {folder} is outside the folders that tools may index"
        raise BadInput(what, f"Name one below these: {listed}")
    return ["--notes", str(folder)]


def _roots(options: argparse.Namespace, host: Host, project: Path | None, settings: Settings) -> tuple[Path, ...]:
    """Folders named here or in the settings; else the project, or this folder."""
    if options.root:
        roots = tuple(output.existing(root) for root in options.root)
        if files := [root for root in roots if not root.is_dir()]:
            raise BadInput(f"{files[0]} is no folder", "Name the folder that it lies in")
        return roots
    if settings.roots != default_roots():
        return settings.roots
    if project is not None:
        return (project,)
    return () if host.follows else settings.roots


def _as_started(host: Host, entry: dict[str, Any]) -> tuple[list[str], dict[str, str], Path]:
    """The command, the environment and the folder of a server as the host starts it."""
    env = dict(entry.get("env", {}))
    env |= {name: os.environ.get(name, "") for name, value in env.items() if "${" in value}
    env |= {name: os.environ[name] for name in entry.get("env_vars", ()) if name in os.environ}
    return [entry["command"], *entry["args"]], env, Path.cwd() if host.follows else Path.home()


def _project(options: argparse.Namespace, host: Host) -> Path | None:
    if options.project is None:
        return None
    if not host.project:
        raise BadInput(f"{host.title} has no configuration for one project", "Leave --project out")
    return output.existing(options.project)


def _file(host: Host, project: Path | None) -> Path:
    from graphrag_mcp.install.hosts import user_file

    if project:
        return project / host.project
    return user_file(host, os.environ, Path.home()).absolute()


def _notes_and_steps(notes: list[str], following: list[str]) -> list[str]:
    steps = [step if step.startswith("the client's") else f"{step}." for step in following]
    return [*(f"note: {note}." for note in notes), *steps]


def doctor(options: argparse.Namespace) -> int:
    """Check everything that is stored; the exit status is 1 if something is damaged."""
    from graphrag_mcp.doctor.doctor import doctor as examine
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.install.launch import about, lines
    from graphrag_mcp.types import IndexRequest

    app = output.app_of(options)
    # without any of these there is nothing to examine yet
    known = options.corpus or options.repair or app.corpora()
    try:
        folder = app.fetched(options.corpus) if known else None
    except NotFound as error:
        if options.corpus or options.repair:
            raise
        # which is meant is open; how this is installed is not
        here = about(app.settings, app.corpora(), None)
        if not options.json:
            print(*lines(here), sep="\n", end="\n\n", flush=True)
            raise
        message = f"{error.what}. {output.as_commands(error.next_move)}."
        output.print_json({"sound": None, "findings": [], "about": here, "error": message})
        return 2

    def derive(folder: Path) -> None:
        """All tables again from the stored originals: what indexing does when it finds a generation
        without tables. What models answered comes from the reply cache, since the budget is spent
        from the start."""
        index_documents(folder, IndexRequest(), replace(app.settings, max_calls=-1))

    findings = examine(folder, options.repair, derive) if folder else []
    wrong = sum(not found.repaired and not found.remark for found in findings)
    here = about(app.settings, app.corpora(), folder, bool(wrong))
    sentences = []
    for found in findings:
        mark = "remark: " if found.remark and not found.repaired else ""
        outcome = "Repaired" if found.repaired else found.repair
        sentences.append(f"{mark}{found.kind} {found.where}: {found.what}. {outcome}.")
    sound = "Everything that is stored is sound." if folder else "No index yet."
    sentences += [f"{wrong} wrong" if wrong else sound, "", *lines(here)]
    record = {"sound": not wrong, "findings": [asdict(found) for found in findings]}
    output.say(options, {**record, "about": here}, *sentences)
    return 1 if wrong else 0


def digest(options: argparse.Namespace) -> int:
    """Print two hashes of an index, one of its content and one of its communities."""
    from graphrag_mcp.doctor.generations import digest as hashes

    found = hashes(output.snapshot_of(options))
    lines = (f"{name} {found[name]}" for name in ("content", "communities"))
    return output.say(options, found, *lines)


def export(options: argparse.Namespace) -> int:
    """Write the index as Parquet files with GraphRAG's column names, and its graph as GraphML or an HTML file."""
    if not options.folder and (options.graphml or not options.html):
        raise BadInput("export needs a folder", "Name one, or a file for the page with --html FILE")
    record: dict[str, Any] = {}
    lines: list[str] = []
    if options.folder:
        from graphrag_mcp.exchange import export as exports

        snapshot, folder = output.snapshot_of(options), Path(options.folder).expanduser().absolute()
        record |= exports.export(snapshot, folder)
        lines += [f"{name}.parquet {n:,} rows" for name, n in record.items()]
        if options.graphml:
            exports.graphml(snapshot, folder / "graph.graphml")
    if options.html:
        from graphrag_mcp.explorer.page import document

        text, counts = document(output.app_of(options), options.corpus)
        path = Path(options.html).expanduser().absolute()
        path.write_text(text, "utf-8", "replace")
        size = path.stat().st_size
        record |= {"file": str(path), "bytes": size, **counts}
        lines.append(f"{path} {size:,} bytes: {output.counts_line(counts)}")
    return output.say(options, record, *lines)


def import_(options: argparse.Namespace) -> int:
    """Copy an index of GraphRAG or LightRAG, or what export wrote, without asking a model."""
    from graphrag_mcp.exchange.files import located
    from graphrag_mcp.exchange.importing import import_folder

    app = output.app_of(options)
    source = located(output.existing(options.folder))
    corpus = app.corpus_for_writing(options.corpus, source)
    began = time.monotonic()
    with output.Bar(options) as bar:
        result, notes = import_folder(app.folder(corpus), source, app.settings, progress=bar)
    elapsed = time.monotonic() - began
    record = {"status": result.status, "corpus": corpus, "counts": result.counts, "notes": notes}
    record |= {"errors": result.errors, "elapsed_seconds": round(elapsed, 3)}
    lines = [output.changed(result, corpus, elapsed), *(f"note: {note}" for note in notes)]
    output.say(options, record, *lines)
    if not options.json and (remark := output.elsewhere(app, corpus)):
        print(remark, file=sys.stderr)
    return 0 if result.status == "done" and not result.errors else 1


def rollback(options: argparse.Namespace) -> int:
    """Return to an earlier generation of the index."""
    from graphrag_mcp.doctor.generations import rollback as back

    app = output.app_of(options)
    new = back(app.folder(app.corpus_for_reading(options.corpus)), options.generation)
    record = {"generation": new.generation, "content_of": options.generation}
    old = f"The content of generation {options.generation}"
    return output.say(options, record, f"{old} is current again, as generation {new.generation}.")


def delete(options: argparse.Namespace) -> int:
    """Delete a corpus and all that belongs to it; your documents stay."""
    from graphrag_mcp.jobs import delete

    app = output.app_of(options)
    if not app.folder(options.name).is_dir():
        app.corpus_for_reading(options.name)  # says which there are
    found = (delete.delete if options.yes else delete.stored)(app.home, options.name)
    documents = output.counts_line({"documents": found.documents}) or "no document"
    size = f"{documents}, {found.files:,} files, {found.bytes / 1e6:,.1f} MB"
    nothing = f"Corpus {found.corpus} in {found.path}: {size}.\n{NOTHING}"
    message = f"Deleted corpus {found.corpus}: {size}." if options.yes else nothing
    return output.say(options, {**asdict(found), "deleted": options.yes}, message)
