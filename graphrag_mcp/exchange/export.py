"""Export of an index as Parquet files with the column names of GraphRAG 3.x, or as one GraphML
file.

`id` is the content id, `human_readable_id` the number behind our alias (e12 is 12). Relationships
name their ends by title, as GraphRAG joins them, so titles are made unique: of several
entities with one title the first by number keeps it, the next are called `Title (type)`, and `Title
(key)` where that is taken."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.references import render_references
from graphrag_mcp.store.schema import columns
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.terms import table

Row = dict[str, Any]
BATCH = 1_000  # rows in memory at once
# What XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def graphml(snapshot: Snapshot, path: Path) -> dict[str, int]:
    """Write the file, over one of the same name; {"nodes": n, "edges": n}.

    Raises BadInput where the path lies inside the index itself or cannot be written."""
    import networkx

    with _beside(snapshot, path, "file") as (target, temporary):
        graph = _graph(snapshot)
        networkx.write_graphml_xml(graph, temporary / "graph")
        os.replace(temporary / "graph", target)
    return {"nodes": len(graph), "edges": graph.number_of_edges()}


@contextlib.contextmanager
def _beside(snapshot: Snapshot, path: Path, kind: str) -> Iterator[tuple[Path, Path]]:
    """Where something is written, and a folder beside it in which it is made. BadInput where that
    lies inside the index or cannot be written."""
    target, home = path.resolve(), snapshot.folder.resolve()
    if target == home or home in target.parents:
        raise BadInput(f"{path} lies inside the index", f"Name a {kind} outside it")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield target, temporary
    except OSError as error:
        what = f"{path} cannot be written ({error.strerror})"
        raise BadInput(what, f"Name another {kind}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _graph(snapshot: Snapshot) -> Any:
    """Entities and relationships as a graph of networkx, with the communities of each entity."""
    import networkx

    numbers = dict(rows_of(snapshot.rows("communities", columns=["id", "n"])))
    paths = dict(rows_of(snapshot.rows("memberships", columns=["entity_id", "path"])))
    graph = networkx.Graph(name=snapshot.manifest.corpus)
    aliases: dict[str, str] = {}
    for row in _in_batches(snapshot, "entities"):
        aliases[row["id"]] = alias = f"e{row['n']}"
        path = enumerate(paths.get(row["id"], ()))
        communities = {f"community_{level}": numbers[id] for level, id in path if id in numbers}
        names = ("title", "type", "description", "degree", "frequency")
        graph.add_node(alias, **_values(row, *names), aliases="; ".join(row["aliases"]), **communities)
    for row in _in_batches(snapshot, "relationships"):
        source, target = aliases.get(row["source_id"]), aliases.get(row["target_id"])
        if source and target:
            named = _values(row, "weight", "description", "keywords")
            graph.add_edge(source, target, id=f"r{row['n']}", **named)
    return graph


def _values(row: Row, *names: str) -> Row:
    """The values of a row as XML can hold them."""
    values = ((name, row[name]) for name in names)
    return {name: _FORBIDDEN.sub(" ", cell) if isinstance(cell, str) else cell for name, cell in values}


DOCUMENTS = 200  # and documents

SCHEMAS: dict[str, pa.Schema] = {name: columns(text) for name, text in table(__file__).items()}


_LISTS = partial(defaultdict, list)


@dataclass
class _Maps:
    """What rows of one table need to know of another; ids and numbers only, no texts."""

    units_of_document: dict[str, list[str]] = field(default_factory=_LISTS)
    entities_of_unit: dict[str, list[str]] = field(default_factory=_LISTS)
    relationships_of_unit: dict[str, list[str]] = field(default_factory=_LISTS)
    title: dict[str, str] = field(default_factory=dict)  # entity id -> unique title
    named: dict[str, str] = field(default_factory=dict)  # name, normalised -> that title
    degree: dict[str, int] = field(default_factory=dict)
    inside: dict[str, list[str]] = field(default_factory=_LISTS)  # community -> relationships
    units_inside: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    communities: dict[str, Row] = field(default_factory=dict)
    report_title: dict[str, str] = field(default_factory=dict)
    # group of references -> content id -> number
    numbers: dict[str, dict[str, str]] = field(default_factory=dict)


def export(snapshot: Snapshot, folder: Path) -> dict[str, int]:
    """Write one Parquet file a table into `folder`, replacing only files of these names; {table:
    rows}.

    Raises BadInput where the folder lies inside the index itself or cannot be written."""
    with _beside(snapshot, folder, "folder") as (target, temporary):
        maps = _maps(snapshot)
        graph = (_entities, _relationships, _communities, _reports, _summaries)
        schemas = dict(SCHEMAS)
        if not snapshot.rows("relationships", "keywords != ''", ["id"], limit=1).num_rows:
            bare = schemas["relationships"]  # only models, agents and imports give keywords
            schemas["relationships"] = bare.remove(bare.get_field_index("keywords"))
        makers = zip(schemas.items(), (_documents, _text_units, *graph, _links), strict=True)
        counts = {
            name: _write(temporary / f"{name}.parquet", schema, rows(snapshot, maps)) for (name, schema), rows in makers
        }
        target.mkdir(exist_ok=True)
        for name in SCHEMAS:
            os.replace(temporary / f"{name}.parquet", target / f"{name}.parquet")
    return counts


def _write(path: Path, schema: pa.Schema, rows: Iterator[Row]) -> int:
    count, batch = 0, []
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for row in rows:
            batch.append(row)
            if len(batch) == (DOCUMENTS if path.stem == "documents" else BATCH):
                writer.write_table(pa.Table.from_pylist(batch, schema))
                count, batch = count + len(batch), []
        writer.write_table(pa.Table.from_pylist(batch, schema))
    return count + len(batch)


def _maps(snapshot: Snapshot) -> _Maps:
    maps = _Maps()
    groups = {"text_units": "Sources", "entities": "Entities", "relationships": "Relationships"}
    for name, group in {**groups, "communities": "Reports"}.items():
        rows = snapshot.rows(name, columns=["id", "n"])
        maps.numbers[group] = {id: str(n) for id, n in rows_of(rows)}
    for row in _by_n(snapshot, "text_units", "document_id", "id").to_pylist():
        maps.units_of_document[row["document_id"]].append(row["id"])
    taken: set[str] = set()
    columns = ("id", "key", "title", "type", "degree", "text_unit_ids", "names")
    for row in _by_n(snapshot, "entities", *columns).to_pylist():
        longer = (f"{row['title']} ({more})" for more in (row["type"] or row["key"], row["key"]))
        choices = (row["title"], *longer, row["id"])
        maps.title[row["id"]] = next(title for title in choices if title not in taken)
        taken.add(maps.title[row["id"]])
        maps.named |= dict.fromkeys(row["names"], maps.title[row["id"]])
        maps.degree[row["id"]] = row["degree"]
        for unit in row["text_unit_ids"]:
            maps.entities_of_unit[unit].append(row["id"])
    path = dict(rows_of(snapshot.rows("memberships", columns=["entity_id", "path"])))
    columns = ("id", "source_id", "target_id", "text_unit_ids")
    for row in _by_n(snapshot, "relationships", *columns).to_pylist():
        for unit in row["text_unit_ids"]:
            maps.relationships_of_unit[unit].append(row["id"])
        for community in commonprefix([path.get(row[end], []) for end in ("source_id", "target_id")]):
            maps.inside[community].append(row["id"])
            maps.units_inside[community].update(row["text_unit_ids"])
    maps.communities = {row["id"]: row for row in snapshot.rows("communities").to_pylist()}
    units = [unit for ids in maps.units_of_document.values() for unit in ids]
    if not path.keys().isdisjoint(units):  # release 0.1.0 placed entities alone
        maps.units_inside.clear()
    for unit in units:
        for community in path.get(unit, ()):
            maps.units_inside[community].add(unit)
    maps.report_title = dict(rows_of(snapshot.rows("reports", columns=["id", "title"])))
    return maps


def _documents(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    for row in _in_batches(snapshot, "documents"):
        units = maps.units_of_document[row["id"]]
        yield {**row, "text_unit_ids": units, "creation_date": row["created"]}


def _text_units(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    for row in _in_batches(snapshot, "text_units"):
        yield {
            **row,
            "entity_ids": maps.entities_of_unit[row["id"]],
            "relationship_ids": maps.relationships_of_unit[row["id"]],
            "covariate_ids": [],
        }


def _entities(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    for row in _in_batches(snapshot, "entities"):
        title = maps.title[row["id"]]
        description = row["description"] or title  # other programs need a description
        yield {**row, "title": title, "description": description}


def _relationships(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    for row in _in_batches(snapshot, "relationships"):
        ends = (row["source_id"], row["target_id"])
        source, target = maps.title.get(ends[0]), maps.title.get(ends[1])
        yield {
            **row,
            "source": source,
            "target": target,
            "description": row["description"] or f"{source}, {target}",
            "combined_degree": sum(maps.degree.get(id, 0) for id in ends),
        }


def _community(snapshot: Snapshot, maps: _Maps, id: str) -> Row:
    """The columns that a community and its report share; number of the parent -1 at the root."""
    row = maps.communities[id]
    parent = maps.communities.get(row["parent"])
    children = (maps.communities[child] for child in row["children"] if child in maps.communities)
    return {
        "id": id,
        "human_readable_id": row["n"],
        "community": row["n"],
        "level": row["level"],
        "parent": parent["n"] if parent else -1,
        "size": row["size"],
        "period": snapshot.manifest.created[:10],
        "children": sorted(child["n"] for child in children),
    }


def _communities(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    for id, row in sorted(maps.communities.items(), key=lambda item: item[1]["n"]):
        yield {
            **_community(snapshot, maps, id),
            "title": maps.report_title.get(id) or f"Community {row['n']}",
            "entity_ids": row["entity_ids"],
            "relationship_ids": maps.inside[id],
            "text_unit_ids": sorted(maps.units_inside[id]),
        }


def _reports(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    stale = bool({"communities", "reports"} & set(snapshot.manifest.stale))
    for row in _in_batches(snapshot, "reports"):
        if row["id"] not in maps.communities:
            continue
        # by `human_readable_id`, as GraphRAG writes them: `[Data: Entities (12, 4)]`
        numbered = partial(render_references, aliases=maps.numbers)
        texts = ("summary", "full_content", "rating_explanation")
        shown = {name: numbered(row[name]) for name in texts}
        findings = [
            {name: numbered(finding.get(name, "")) for name in ("summary", "explanation")}
            for finding in json.loads(row["findings"] or "[]")
        ]
        whole = {"title": row["title"], "summary": shown["summary"], "rating": row["rank"]}
        whole |= {"rating_explanation": shown["rating_explanation"], "findings": findings}
        yield {
            **row,
            **_community(snapshot, maps, row["id"]),
            **shown,
            "findings": findings,
            "stale": stale,
            "entity_ids": maps.communities[row["id"]]["entity_ids"],
            "relationship_ids": maps.inside[row["id"]],
            "text_unit_ids": sorted(maps.units_inside[row["id"]]),
            "full_content_json": json.dumps(whole, ensure_ascii=False),
        }


def _summaries(snapshot: Snapshot, maps: _Maps) -> Iterator[Row]:
    """Documents in the order of their numbers, each with its sections."""
    for id in list(maps.units_of_document):
        rows = snapshot.by_key("summaries", [id], "document_id").to_pylist()
        yield from sorted(rows, key=lambda row: row["place"])


def _links(snapshot: Snapshot, _: _Maps) -> Iterator[Row]:
    """Links and tags of Markdown, with the document that each leads to now; "" for none and for tags."""
    from graphrag_mcp.query.links import links

    found = links(snapshot)
    ids = [*found.pages.ids, ""]  # -1 is the last
    for link in found.all:
        place = {"line": link.line, "char_start": link.start, "char_end": link.end}
        ends = {"document_id": ids[link.source], "target_id": ids[link.target]}
        yield {"kind": link.kind, "target": link.written, "part": link.part, **place, **ends}


def _by_n(snapshot: Snapshot, table: str, *columns: str) -> pa.Table:
    return snapshot.rows(table, columns=["n", *columns]).sort_by("n")


def _in_batches(snapshot: Snapshot, table: str) -> Iterator[Row]:
    """Whole rows in the order of their numbers."""
    ids = values_of(_by_n(snapshot, table, "id")["id"])
    size = DOCUMENTS if table == "documents" else BATCH
    for start in range(0, len(ids), size):
        for row in snapshot.by_key(table, ids[start : start + size], "id").to_pylist():
            yield row | {"human_readable_id": row["n"]}
