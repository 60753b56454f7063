"""Commands that maintain an index (doctor, digest, export, import, rollback, delete), and install."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.cli.output import (
    Bar,
    app_of,
    as_commands,
    counts_line,
    elsewhere,
    existing,
    failed,
    print_json,
    settings_of,
    snapshot_of,
)
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.settings import Settings, default_roots

if TYPE_CHECKING:
    from graphrag_mcp.install.hosts import Host


MODEL_VARIABLES = ("GRAPHRAG_MCP_CHAT_MODEL", "GRAPHRAG_MCP_EMBEDDING_MODEL", "OPENAI_BASE_URL")


def install(options: argparse.Namespace) -> int:
    """Put this server into a host's configuration, or take it out again with --undo."""
    from graphrag_mcp.install import install as installs
    from graphrag_mcp.install import launch
    from graphrag_mcp.install.hosts import BY_NAME, PRINTED

    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", options.name):
        raise BadInput(
            f"a server cannot be named {options.name[:40]!r}", "Use letters, digits, - and _"
        )
    if not options.client:
        if options.undo:
            raise BadInput("--undo takes the server out of one host", "Say which with --client")
        return _overview(options)
    if options.client == "all":
        return _everywhere(options)
    for one in PRINTED:
        if one.name == options.client:
            return _to_paste(options, one)
    host = BY_NAME[options.client]
    project = _project(options, host)
    file = Path(options.config).expanduser().absolute() if options.config else _file(host, project)
    if options.undo:
        return _undo(options, host, file)
    made, notes = _entry(options, host, project)
    if options.print:
        return _show(options, host, file, made, notes)
    started: dict[str, Any] = {}
    if not options.no_check:
        seconds, tools = launch.trial(
            *_as_started(host, made), installs.START_SECONDS[installs.is_uvx(made["command"])]
        )
        started = {"seconds": round(seconds, 2), "tools": tools}
    try:
        change, backup = installs.retrying(
            lambda: installs.installing(host, file, options.name, made)
        )
    except installs.NotEdited as error:
        block = installs.block(host, options.name, made)
        if not options.json:
            print(f"{host.title}: not added. To paste into {file}:\n\n{block}")
        return failed(options, error, 2, block=block)
    notes += change.notes
    record = {"client": host.name, "file": str(file), "name": options.name, "change": change.change}
    record |= {"backup": str(backup or ""), "entry": change.entry or made, "started": started}
    record["notes"] = notes
    record |= {"next": [host.reload, f"To see that it is there: {host.check}"]}
    if options.json:
        print_json(record)
        return 0
    print(f"{host.title}: {change.change} {options.name!r} in {file}")
    if backup:
        print(f"the file as it was: {backup}")
    if started:
        print(
            f"started it as the host would: {started['tools']} tools after {started['seconds']} s"
        )
    _tell(notes, [*record["next"], "Then say: index this folder, and tell me what it is about"])
    return 0


def _to_paste(options: argparse.Namespace, host: Host) -> int:
    """The entry of a client whose file is the user's to edit."""
    from graphrag_mcp.install.hosts import printed

    if not options.print or options.undo or options.project is not None or options.config:
        raise BadInput(
            f"the configuration of {host.title} is not edited by install",
            f"Use graphrag-mcp install --client {host.name} --print, and paste what it shows",
        )
    made, notes = _entry(options, host, None)
    text = printed(host, options.name, made)
    if options.json:
        print_json({"client": host.name, "entry": made, "block": text, "notes": notes})
        return 0
    print(f"{host.title}:\n\n{text}\n")
    _tell(notes, [host.reload])
    return 0


def _everywhere(options: argparse.Namespace) -> int:
    """The same for each host that seems to be on this machine; the highest exit status of them."""
    from graphrag_mcp.install.hosts import HOSTS, seen

    if options.config or options.json:
        raise BadInput("--client all takes no --config and no --json", "Name one host")
    here = [host.name for host in HOSTS if seen(host, os.environ, Path.home())]
    if not here:
        raise BadInput("no host was found on this machine", "Name one with --client")
    worst = 0
    for name in here:
        one = argparse.Namespace(**{**vars(options), "client": name})
        try:
            worst = max(worst, install(one))
        except GraphRAGError as error:
            worst = max(worst, failed(one, error, 1))
    return worst


def _undo(options: argparse.Namespace, host: Host, file: Path) -> int:
    from graphrag_mcp.install import install as installs

    change, _ = installs.retrying(lambda: installs.undoing(host, file, options.name))
    if options.json:
        print_json(
            {"client": host.name, "file": str(file), "name": options.name, "change": change.change}
        )
    elif change.change == "absent":
        print(f"{host.title}: there is no server {options.name!r} in {file}; nothing was changed")
    else:
        how = "is as it was before" if change.change == "restored" else "has it no more"
        print(
            f"{host.title}: {file} {how}"
            + ("; it held nothing else and is gone" if change.after is None else "")
        )
        _tell([], [host.gone or host.reload])
    return 0


def _show(
    options: argparse.Namespace, host: Host, file: Path, made: dict[str, Any], notes: list[str]
) -> int:
    from graphrag_mcp.install import install as installs
    from graphrag_mcp.install.hosts import own_way

    text = installs.block(host, options.name, made)
    own = own_way(host, options.name, made)
    if options.json:
        print_json(
            {
                "client": host.name,
                "file": str(file),
                "entry": made,
                "block": text,
                "own": own,
                "notes": notes,
            }
        )
        return 0
    print(f"{host.title}, for {file}:\n\n{text}")
    _tell(notes, [f"the host's own way to the same: {own}"] if own else [])
    return 0


def _overview(options: argparse.Namespace) -> int:
    """Which hosts are here, and what each would get."""
    from graphrag_mcp.install.hosts import HOSTS, PRINTED, seen
    from graphrag_mcp.install.install import installed

    home, here = Path.home(), Path.cwd()
    inside = installed(os.environ, home, here)
    rows = []
    for host in HOSTS:
        made, notes = _entry(options, host, None)
        mine = [
            {"file": one["file"], "name": one["name"], "problem": one["problem"]}
            for one in inside
            if one["host"] == host.name
        ]
        rows.append(
            {
                "client": host.name,
                "found": seen(host, os.environ, home),
                "file": str(_file(host, None)),
                "installed": mine,
                "entry": made,
                "notes": notes,
            }
        )
    if options.json:
        print_json({"hosts": rows})
        return 0
    for row in rows:
        print(f"{row['client']:<15} {'found' if row['found'] else 'not found'}: {row['file']}")
        for one in row["installed"]:
            state = "its configuration cannot be read"
            if one["name"]:
                state = f"installed as {one['name']!r}"
            print(
                f"{'':<16}{state} in {one['file']}"
                + (f": {one['problem']}" if one["problem"] else "")
            )
        print(f"{'':<16}would start: {' '.join([row['entry']['command'], *row['entry']['args']])}")
    print("\nTo put it into one of them: graphrag-mcp install --client NAME [--root FOLDER]")
    others = ", ".join(host.name for host in PRINTED)
    print(f"With --print, a block to paste for: {others}")
    return 0


# ---- what the server is started with -----------------------------------------------------------


def _entry(
    options: argparse.Namespace, host: Host, project: Path | None
) -> tuple[dict[str, Any], list[str]]:
    from graphrag_mcp.app import checked_name
    from graphrag_mcp.install import install as installs
    from graphrag_mcp.install import launch

    settings = settings_of(options)
    values, handed, notes = installs.variables(
        host, project is not None, options.env or (), os.environ
    )
    env = launch.environment()
    if path := os.environ.get("GRAPHRAG_MCP_SETTINGS"):
        env["GRAPHRAG_MCP_SETTINGS"] = str(Path(path).expanduser().absolute())
    roots = _roots(options, host, project, settings)
    words = [*launch.command(os.environ), "serve"]
    # The platform's folder is the host's own guess too, unless this shell has moved it.
    if settings.home != Settings().home or os.environ.get("XDG_DATA_HOME"):
        words += ["--home", str(settings.home)]
    words += [part for root in roots for part in ("--root", str(root))]
    words += ["--corpus", checked_name(options.corpus)] if options.corpus else []
    words += ["--tools", options.tools] if options.tools != "core" else []
    words += ["--read-only"] if options.read_only else []
    if project is not None:
        notes.append(
            "this file names places of this machine, so the one that shares the project needs one of their own"
        )
    if not roots and not host.follows:
        notes.append(
            "no folder was named, so tools cannot index files; give --root FOLDER, or index with graphrag-mcp index"
        )
    unsaid = [
        name for name in MODEL_VARIABLES if os.environ.get(name) and name not in {*values, *handed}
    ]
    if unsaid and (host.toml or not host.follows):
        notes.append(
            f"{', '.join(unsaid)}: set here, not seen by {host.title}; give --env NAME to hand it on"
        )
    return installs.entry(host, words, {**env, **values}, handed), notes


def _roots(
    options: argparse.Namespace, host: Host, project: Path | None, settings: Settings
) -> tuple[Path, ...]:
    """Folders named here or in the settings; else the project; else this folder where the host has
    none of its own."""
    if options.root:
        roots = tuple(existing(root) for root in options.root)
        if files := [root for root in roots if not root.is_dir()]:
            raise BadInput(f"{files[0]} is no folder", "Name the folder that it lies in")
        return roots
    if settings.roots != default_roots():
        return settings.roots
    if project is not None:
        return (project,)
    return () if host.follows else settings.roots


def _as_started(host: Host, made: dict[str, Any]) -> tuple[list[str], dict[str, str], Path]:
    """The command, the environment and the folder of a server as the host starts it."""
    from graphrag_mcp.install.launch import poorest_environment

    given = made.get("env", {})
    resolved = {
        name: os.environ.get(name, "") if "${" in value else value for name, value in given.items()
    }
    resolved |= {name: os.environ[name] for name in made.get("env_vars", ()) if name in os.environ}
    folder = Path.cwd() if host.follows else Path.home()
    return [made["command"], *made["args"]], poorest_environment(os.environ) | resolved, folder


def _project(options: argparse.Namespace, host: Host) -> Path | None:
    if options.project is None:
        return None
    if not host.project:
        raise BadInput(f"{host.title} has no configuration for one project", "Leave --project out")
    return existing(options.project)


def _file(host: Host, project: Path | None) -> Path:
    from graphrag_mcp.install.hosts import user_file

    return (
        project / host.project if project else user_file(host, os.environ, Path.home()).absolute()
    )


def _tell(notes: list[str], following: list[str]) -> None:
    for note in notes:
        print(f"note: {note}.")
    for step in following:
        print(f"{step}." if not step.startswith("the host's") else step)


def doctor(options: argparse.Namespace) -> int:
    """Check everything that is stored; exit status 1 when something is still wrong."""
    if options.folder:
        return _examine(options)
    from graphrag_mcp.doctor.doctor import about, lines
    from graphrag_mcp.doctor.doctor import doctor as examine
    from graphrag_mcp.index.documents import cut

    app = app_of(options)
    some = options.corpus or options.repair or app.corpora()  # else there is nothing to examine yet
    try:
        folder = app.folder(app.corpus_for_reading(options.corpus)) if some else None
    except NotFound as error:
        if options.corpus or options.repair:
            raise
        # which is meant is open; how this is installed is not
        here = about(app.settings, app.corpora(), None)
        if not options.json:
            print("\n".join(lines(here)) + "\n", flush=True)
            raise
        said = f"{error.what}. {as_commands(error.next_move)}."
        print_json({"sound": None, "findings": [], "about": here, "error": said})
        return 2
    findings = (
        examine(folder, options.repair, lambda folder: _derive(folder, app.settings), cut)
        if folder
        else []
    )
    wrong = [found for found in findings if not found.repaired and not found.remark]
    if options.json:
        here = about(app.settings, app.corpora(), folder, bool(wrong))
        print_json(
            {"sound": not wrong, "findings": [asdict(found) for found in findings], "about": here}
        )
    else:
        for found in findings:
            mark = "remark: " if found.remark and not found.repaired else ""
            print(
                f"{mark}{found.kind} {found.where}: {found.what}. {'Repaired' if found.repaired else found.repair}."
            )
        print(
            f"{len(wrong)} wrong"
            if wrong
            else "Everything that is stored is sound."
            if folder
            else "No index yet."
        )
        print("\n" + "\n".join(lines(about(app.settings, app.corpora(), folder, bool(wrong)))))
    return 1 if wrong else 0


def _examine(options: argparse.Namespace) -> int:
    """The same for a folder of GraphRAG or LightRAG, which is only read."""
    from graphrag_mcp.doctor.foreign import examine
    from graphrag_mcp.exchange.files import located

    if options.repair:
        what = "doctor repairs only indexes of its own"
        raise BadInput(what, "Leave --repair out; each fault says what to do")
    found = examine(located(existing(options.folder)))
    wrong = [one for one in found if not one.remark]
    if options.json:
        print_json({"sound": not wrong, "findings": [asdict(one) for one in found]})
        return 1 if wrong else 0
    for one in found:
        shown = "; ".join(one.examples) + ("; ..." if one.count > len(one.examples) else "")
        mark = "remark: " if one.remark else ""
        print(f"{mark}{one.kind} {one.where}: {one.count:,} {one.what} ({shown}). {one.repair}.")
    print(
        f"{len(wrong)} wrong" if wrong else "No faults: ids, counts, communities and vectors agree."
    )
    return 1 if wrong else 0


def _derive(folder: Path, settings: Settings) -> None:
    """All tables again from the stored originals: what indexing does when it finds a generation
    without tables."""
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    # A budget that is spent from the start: what models answered comes from the reply cache,
    # nothing is bought.
    index_documents(folder, IndexRequest(), replace(settings, max_calls=-1))


def digest(options: argparse.Namespace) -> int:
    """Two stable hashes of an index: its content, and its communities."""
    from graphrag_mcp.doctor.generations import digest as hashes

    found = hashes(snapshot_of(options))
    if options.json:
        print_json(found)
    else:
        print("\n".join(f"{name} {found[name]}" for name in ("content", "communities")))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the index as Parquet files with GraphRAG's column names, or its graph as one page."""
    if options.html:
        return _html(options)
    if not options.folder:
        raise BadInput("export needs a folder", "Name one, or a file for the page with --html FILE")
    from graphrag_mcp.exchange.export import export as write

    snapshot, folder = snapshot_of(options), Path(options.folder).expanduser().absolute()
    rows = write(snapshot, folder)
    if options.graphml:
        from graphrag_mcp.exchange.export import graphml

        graphml(snapshot, folder / "graph.graphml")
    if options.json:
        print_json(rows)
    else:
        print("\n".join(f"{name}.parquet {count:,} rows" for name, count in rows.items()))
    return 0


def _html(options: argparse.Namespace) -> int:
    """The explorer page as one file that needs no server."""
    from graphrag_mcp.explorer.file import document

    text, held = document(app_of(options), options.corpus)
    path = Path(options.html).expanduser().absolute()
    path.write_text(text, "utf-8", "replace")
    if options.json:
        print_json({"file": str(path), "bytes": path.stat().st_size, **held})
    else:
        print(f"{path} {path.stat().st_size:,} bytes: {counts_line(held)}")
    return 0


def import_(options: argparse.Namespace) -> int:
    """Bring in what GraphRAG, LightRAG or export has written, without asking a model."""
    from graphrag_mcp.exchange.files import located
    from graphrag_mcp.exchange.importing import import_folder

    app = app_of(options)
    source = located(existing(options.folder))
    corpus = app.corpus_for_writing(options.corpus, source)
    bar = Bar(sys.stderr.isatty() and not options.json)
    began = time.monotonic()
    try:
        result, notes = import_folder(app.folder(corpus), source, app.settings, progress=bar)
    finally:
        bar.clear()
    elapsed = time.monotonic() - began
    changes = ("added", "changed", "removed", "unchanged")
    if options.json:
        print_json(
            {
                "status": result.status,
                "corpus": corpus,
                "counts": result.counts,
                "notes": notes,
                "errors": result.errors,
                "elapsed_seconds": round(elapsed, 3),
            }
        )
    else:
        held = counts_line(
            {name: count for name, count in result.counts.items() if name not in changes}
        )
        print(
            f"{corpus}: {counts_line(result.counts, changes) or 'nothing to do'} ({elapsed:.1f} s)\nit holds {held}"
        )
        print("\n".join(f"note: {note}" for note in notes), end="\n" if notes else "")
        if said := elsewhere(app, corpus):
            print(said, file=sys.stderr)
    return 0 if result.status == "done" and not result.errors else 1


import_.__name__ = (
    "import"  # a command is called like its function, and this is a word of the language
)


def rollback(options: argparse.Namespace) -> int:
    """Make the content of an earlier generation current again."""
    from graphrag_mcp.doctor.generations import rollback as back

    app = app_of(options)
    new = back(app.folder(app.corpus_for_reading(options.corpus)), options.generation)
    if options.json:
        print_json({"generation": new.generation, "content_of": options.generation})
    else:
        print(
            f"The content of generation {options.generation} is current again, as generation {new.generation}."
        )
    return 0


def delete(options: argparse.Namespace) -> int:
    """Delete a corpus with all that is kept of it; the documents that were indexed stay where they
    are."""
    from graphrag_mcp.jobs import delete

    app = app_of(options)
    if not app.folder(options.name).is_dir():
        app.corpus_for_reading(options.name)  # says which there are
    found = (delete.delete if options.yes else delete.stored)(app.home, options.name)
    if options.json:
        print_json({**found.record(), "deleted": options.yes})
        return 0
    documents = counts_line({"documents": found.documents}) or "no document"
    size = f"{documents}, {found.files:,} files, {found.bytes / 1e6:,.1f} MB"
    if options.yes:
        print(f"Deleted corpus {found.corpus}: {size}.")
    else:
        print(
            f"Corpus {found.corpus} in {found.path}: {size}.\nNothing was deleted. The same with --yes does it."
        )
    return 0
