"""The graph as one GraphML file, for networkx, Gephi, Cytoscape and whatever else reads it.

Takes a snapshot and a path; writes entities as nodes (title, type, description, degree, frequency, aliases, and of each
level of the community tree the number of the community that holds it) and relationships as undirected edges (weight,
description, keywords). Node and edge ids are the short ones (e12, r7). Row by row, so a graph of any size is written.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

from graphrag_mcp.errors import BadInput
from graphrag_mcp.store.tables import Snapshot

Row = dict[str, Any]
BATCH = 1_000  # rows in memory at once
NODE = {"title": "string", "type": "string", "description": "string", "degree": "long", "frequency": "long",
        "aliases": "string"}  # fmt: skip
EDGE = {"weight": "double", "description": "string", "keywords": "string"}
# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def graphml(snapshot: Snapshot, path: Path) -> dict[str, int]:
    """Write the file, over one of the same name; {"nodes": n, "edges": n}.

    Raises BadInput where the path lies inside the index itself or cannot be written.
    """
    target, home = path.resolve(), snapshot.folder.resolve()
    if home in target.parents:
        raise BadInput(f"{path} lies inside the index", "Name a file outside it")
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            counts = _write(snapshot, file)
        os.replace(beside, target)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror})", "Name another file") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return counts


def _write(snapshot: Snapshot, file: TextIO) -> dict[str, int]:
    numbers, levels = _communities(snapshot)
    paths = dict(_pairs(snapshot, "memberships", "entity_id", "path"))
    aliases = {id: f"e{n}" for id, n in _pairs(snapshot, "entities", "id", "n")}
    node = NODE | {f"community_{level}": "long" for level in range(levels)}
    file.write('<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
    for kind, keys in (("node", node), ("edge", EDGE)):
        for name, type in keys.items():
            file.write(f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="{type}"/>\n')
    file.write(f"<graph id={quoteattr(snapshot.manifest.corpus)} edgedefault=\"undirected\">\n")
    counts = {"nodes": 0, "edges": 0}
    for row in _rows(snapshot, "entities"):
        held = {f"community_{level}": numbers[id] for level, id in enumerate(paths.get(row["id"], ())) if id in numbers}
        file.write(f'<node id="e{row["n"]}">{_data("node", node, {**row, **held})}</node>\n')
        counts["nodes"] += 1
    for row in _rows(snapshot, "relationships"):
        source, target = aliases.get(row["source_id"]), aliases.get(row["target_id"])
        if source and target:
            head = f'<edge id="r{row["n"]}" source="{source}" target="{target}">'
            file.write(f"{head}{_data('edge', EDGE, row)}</edge>\n")
            counts["edges"] += 1
    file.write("</graph>\n</graphml>\n")
    return counts


def _data(kind: str, keys: Mapping[str, str], row: Row) -> str:
    """The values that there are; a list becomes a text with semicolons."""
    parts = []
    for name in keys:
        value = row.get(name)
        value = "; ".join(value) if isinstance(value, list) else value
        if value not in (None, ""):
            parts.append(f'<data key="{kind}_{name}">{escape(_FORBIDDEN.sub(" ", str(value)))}</data>')
    return "".join(parts)


def _communities(snapshot: Snapshot) -> tuple[dict[str, int], int]:
    """The number of every community, and how many levels there are."""
    rows = snapshot.rows("communities", "", ["id", "n", "level"])
    levels = rows["level"].to_pylist()
    return dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)), 1 + max(levels, default=-1)


def _pairs(snapshot: Snapshot, table: str, key: str, value: str) -> Iterator[tuple[Any, Any]]:
    rows = snapshot.rows(table, "", [key, value])
    return zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True)


def _rows(snapshot: Snapshot, table: str) -> Iterator[Row]:
    """Whole, verified rows in the order of their numbers."""
    ids = snapshot.rows(table, "", ["id", "n"]).sort_by("n")["id"].to_pylist()
    for start in range(0, len(ids), BATCH):
        yield from snapshot.verified(table, snapshot.by_key(table, ids[start : start + BATCH])).to_pylist()
