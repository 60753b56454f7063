"""Commands that look after an index: doctor, digest, export.

Takes parsed arguments; prints what was found. Each command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

from graphrag_mcp.cli_common import app_of, print_json, snapshot_of
from graphrag_mcp.settings import Settings


def doctor(options: argparse.Namespace) -> int:
    """Check everything that is stored; exit status 1 when something is still wrong."""
    from graphrag_mcp.upkeep.doctor import doctor as examine

    app = app_of(options)
    folder = app.folder(app.corpus_for_reading(options.corpus))
    findings = examine(folder, options.repair, lambda folder: _derive(folder, app.settings))
    wrong = [found for found in findings if not found.repaired]
    if options.json:
        print_json({"sound": not wrong, "findings": [asdict(found) for found in findings]})
    else:
        for found in findings:
            print(f"{found.kind} {found.where}: {found.what}. {'Repaired' if found.repaired else found.repair}.")
        print(f"{len(wrong)} wrong" if wrong else "Everything that is stored is sound.")
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
