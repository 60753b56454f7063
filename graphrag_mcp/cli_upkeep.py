"""Commands that look after an index: doctor, digest, export, import, rollback, delete.

Takes parsed arguments; prints what was found. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from graphrag_mcp.cli_common import Bar, app_of, counted, elsewhere, existing, print_json, snapshot_of
from graphrag_mcp.cli_words import as_commands
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.settings import Settings


def doctor(options: argparse.Namespace) -> int:
    """Check everything that is stored; exit status 1 when something is still wrong."""
    if options.folder:
        return _examine(options)
    from graphrag_mcp.index.derivation import cut
    from graphrag_mcp.upkeep.about import about, lines
    from graphrag_mcp.upkeep.doctor import doctor as examine

    app = app_of(options)
    some = options.corpus or options.repair or app.corpora()  # else there is nothing to examine yet
    try:
        folder = app.folder(app.corpus_for_reading(options.corpus)) if some else None
    except NotFound as error:
        if options.corpus or options.repair:
            raise
        here = about(app.settings, app.corpora(), None)  # which is meant is open; how this is installed is not
        if not options.json:
            print("\n".join(lines(here)) + "\n", flush=True)
            raise
        said = f"{error.what}. {as_commands(error.next_move)}."
        print_json({"sound": None, "findings": [], "about": here, "error": said})
        return 2
    findings = examine(folder, options.repair, lambda folder: _derive(folder, app.settings), cut) if folder else []
    wrong = [found for found in findings if not found.repaired and not found.remark]
    if options.json:
        here = about(app.settings, app.corpora(), folder, bool(wrong))
        print_json({"sound": not wrong, "findings": [asdict(found) for found in findings], "about": here})
    else:
        for found in findings:
            mark = "remark: " if found.remark and not found.repaired else ""
            print(f"{mark}{found.kind} {found.where}: {found.what}. {'Repaired' if found.repaired else found.repair}.")
        print(f"{len(wrong)} wrong" if wrong else "Everything that is stored is sound." if folder else "No index yet.")
        print("\n" + "\n".join(lines(about(app.settings, app.corpora(), folder, bool(wrong)))))
    return 1 if wrong else 0


def _examine(options: argparse.Namespace) -> int:
    """The same for a folder of GraphRAG or LightRAG, which is only read."""
    from graphrag_mcp.store.outside import located
    from graphrag_mcp.upkeep.foreign import examine

    if options.repair:
        raise BadInput("doctor repairs only indexes of its own", "Leave --repair out; each fault says what to do")
    found = examine(located(existing(options.folder)))
    wrong = [one for one in found if not one.remark]
    if options.json:
        print_json({"sound": not wrong, "findings": [asdict(one) for one in found]})
        return 1 if wrong else 0
    for one in found:
        shown = "; ".join(one.examples) + ("; ..." if one.count > len(one.examples) else "")
        mark = "remark: " if one.remark else ""
        print(f"{mark}{one.kind} {one.where}: {one.count:,} {one.what} ({shown}). {one.repair}.")
    print(f"{len(wrong)} wrong" if wrong else "No faults: ids, counts, communities and vectors agree.")
    return 1 if wrong else 0


def _derive(folder: Path, settings: Settings) -> None:
    """All tables again from the stored originals: what indexing does when it finds a generation without tables."""
    from graphrag_mcp.index.pipeline import index_documents
    from graphrag_mcp.types import IndexRequest

    # A budget that is spent from the start: what models answered comes from the answer book, nothing is bought.
    index_documents(folder, IndexRequest(), replace(settings, max_calls=-1))


def digest(options: argparse.Namespace) -> int:
    """Two stable hashes of an index: its content, and its communities."""
    from graphrag_mcp.upkeep.digest import digest as hashes

    found = hashes(snapshot_of(options))
    if options.json:
        print_json(found)
    else:
        print("\n".join(f"{name} {found[name]}" for name in ("content", "communities")))
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the index as Parquet files with GraphRAG's column names."""
    from graphrag_mcp.upkeep.export import export as write

    snapshot, folder = snapshot_of(options), Path(options.folder).expanduser().absolute()
    rows = write(snapshot, folder)
    if options.graphml:
        from graphrag_mcp.upkeep.export_graph import graphml

        graphml(snapshot, folder / "graph.graphml")
    if options.json:
        print_json(rows)
    else:
        print("\n".join(f"{name}.parquet {count:,} rows" for name, count in rows.items()))
    return 0


def import_(options: argparse.Namespace) -> int:
    """Bring in what GraphRAG, LightRAG or export has written, without asking a model."""
    from graphrag_mcp.index.importing import import_folder
    from graphrag_mcp.store.outside import located

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
        print_json({
            "status": result.status, "corpus": corpus, "counts": result.counts, "notes": notes, "errors": result.errors,
            "elapsed_seconds": round(elapsed, 3),
        })  # fmt: skip
    else:
        held = counted({name: count for name, count in result.counts.items() if name not in changes})
        print(f"{corpus}: {counted(result.counts, changes) or 'nothing to do'} ({elapsed:.1f} s)\nit holds {held}")
        print("\n".join(f"note: {note}" for note in notes), end="\n" if notes else "")
        if said := elsewhere(app, corpus):
            print(said, file=sys.stderr)
    return 0 if result.status == "done" and not result.errors else 1


import_.__name__ = "import"  # a command is called like its function, and this is a word of the language


def rollback(options: argparse.Namespace) -> int:
    """Make the content of an earlier generation current again."""
    from graphrag_mcp.upkeep.generations import rollback as back

    app = app_of(options)
    new = back(app.folder(app.corpus_for_reading(options.corpus)), options.generation)
    if options.json:
        print_json({"generation": new.generation, "content_of": options.generation})
    else:
        print(f"The content of generation {options.generation} is current again, as generation {new.generation}.")
    return 0


def delete(options: argparse.Namespace) -> int:
    """Delete a corpus with all that is kept of it; the documents that were indexed stay where they are."""
    from graphrag_mcp import jobs_delete

    app = app_of(options)
    if not app.folder(options.name).is_dir():
        app.corpus_for_reading(options.name)  # says which there are
    found = (jobs_delete.delete if options.yes else jobs_delete.stored)(app.home, options.name)
    if options.json:
        print_json({**found.record(), "deleted": options.yes})
        return 0
    documents = counted({"documents": found.documents}) or "no document"
    size = f"{documents}, {found.files:,} files, {found.bytes / 1e6:,.1f} MB"
    if options.yes:
        print(f"Deleted corpus {found.corpus}: {size}.")
    else:
        print(f"Corpus {found.corpus} in {found.path}: {size}.\nNothing was deleted. The same with --yes does it.")
    return 0
