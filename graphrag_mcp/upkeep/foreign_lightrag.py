"""Faults of a working directory of LightRAG: documents, chunks, graph, vectors and their lists.

Takes the folder; gives faults. Reads the JSON, GraphML and vector files as they are, and changes none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphrag_mcp.store.outside import (
    CHUNKS,
    DOCS,
    GRAPH,
    SEP,
    Row,
    Unreadable,
    graph_of,
    json_of,
    number,
    parts,
    text,
    vectors_of,
)
from graphrag_mcp.upkeep.fault import Fault, fault

AGAIN = "Delete these documents in LightRAG and insert them again; its cache answers what was asked before"
VECTORS = "Delete the vdb_*.json files and insert the documents again, or rebuild the vectors with LightRAG's own tool"
BROKEN = "\ufffd"


def faults(folder: Path) -> Iterator[Fault]:
    """Every fault, in the order of the files."""
    found: list[Fault] = []
    docs = _read(folder, DOCS, found, True)
    chunks = _read(folder, CHUNKS, found, True)
    status = _read(folder, "kv_store_doc_status.json", found, False)
    nodes, edges = _graph(folder, found)
    yield from found
    yield from _chunks(docs, chunks)
    yield from _status(status, docs, chunks)
    yield from _nodes(nodes, edges, chunks)
    yield from _edges(nodes, edges, chunks)
    yield from _vectors(folder, nodes, edges, chunks)
    yield from _lists(folder, docs, nodes, edges)


Nodes = dict[str, Row]
Edges = list[tuple[str, str, Row]]
Store = dict[str, Row] | None


def _read(folder: Path, name: str, found: list[Fault], needed: bool) -> Store:
    try:
        rows = json_of(folder, name)
    except Unreadable as error:
        found += fault("unreadable", name, [str(error)], "the file does not open as JSON", AGAIN)
        return None
    if rows is None and needed:
        found += fault("missing", name, [name], "the file is missing", AGAIN)
    return rows


def _graph(folder: Path, found: list[Fault]) -> tuple[Nodes | None, Edges]:
    try:
        graph = graph_of(folder)
    except Unreadable as error:
        found += fault("unreadable", GRAPH, [str(error)], "the file does not open as GraphML", AGAIN)
        return None, []
    if graph is None:
        found += fault("missing", GRAPH, [GRAPH], "the file is missing", AGAIN)
        return None, []
    twice = [name for name, count in Counter(name for name, _ in graph[0]).items() if count > 1]
    found += fault("duplicate", GRAPH, twice, "names stand for several entities", AGAIN)
    return dict(graph[0]), graph[1]


def _chunks(docs: Store, chunks: Store) -> Iterator[Fault]:
    if chunks is None:
        return
    homes: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for id, row in chunks.items():
        homes[text(row, "full_doc_id")].append((id, row))
    yield from fault("homeless", CHUNKS, [id for id, _ in homes.get("", ())], "chunks name no document", AGAIN)
    yield from fault(
        "empty", CHUNKS, [id for id, row in chunks.items() if not text(row, "content")], "chunks have no text", AGAIN
    )
    broken = [id for id, row in chunks.items() if BROKEN in text(row, "content")]
    yield from fault(
        "broken",
        CHUNKS,
        broken,
        "texts hold U+FFFD: characters were cut in halves by tokens",
        "Insert the documents again, split by a character or with another tokenizer",
    )
    orders = []
    for home, rows in homes.items():
        places = sorted(place for _, row in rows if isinstance(place := row.get("chunk_order_index"), int))
        if home and places and places != list(range(len(rows))):
            orders.append(home)
    yield from fault("order", CHUNKS, orders, "documents whose chunks are not numbered 0, 1, 2, ...", AGAIN)
    if docs is None:
        return
    lost = [f"{rows[0][0]} names {home}" for home, rows in homes.items() if home and home not in docs]
    yield from fault("dangling", CHUNKS, lost, "documents of chunks are not there", AGAIN)
    bare = [id for id, row in docs.items() if id not in homes and text(row, "content")]
    yield from fault("bare", DOCS, bare, "documents have no chunk, so no search finds them", AGAIN)
    yield from fault(
        "empty", DOCS, [id for id, row in docs.items() if not text(row, "content")], "documents have no text", AGAIN
    )
    apart = []
    for home, rows in homes.items():
        flat = "".join(text(docs.get(home, {}), "content").split())
        apart += [
            id for id, row in rows if flat and "".join(text(row, "content").replace(BROKEN, "").split()) not in flat
        ]
    yield from fault("elsewhere", CHUNKS, apart, "texts do not stand in their document as they are", AGAIN, remark=True)


def _status(status: Store, docs: Store, chunks: Store) -> Iterator[Fault]:
    where = "kv_store_doc_status.json"
    if status is None:
        return
    said = {id: text(row, "status").lower().rpartition(".")[2] for id, row in status.items()}
    failed = [f"{id}: {text(status[id], 'error_msg', 'error')[:80]}" for id, one in said.items() if one == "failed"]
    yield from fault("failed", where, failed, "documents failed", "Run LightRAG's retry of failed documents")
    open_ = [id for id, one in said.items() if one in ("pending", "processing", "parsing", "analyzing", "preprocessed")]
    yield from fault("pending", where, open_, "documents are not done", "Let LightRAG finish its queue")
    if docs is not None:
        lost = [id for id, one in said.items() if one == "processed" and id not in docs]
        yield from fault("dangling", where, lost, "processed documents are not in the store of documents", AGAIN)
        unknown = [id for id in docs if id not in status]
        yield from fault("unknown", DOCS, unknown, "documents have no status", AGAIN)
    if chunks is not None:
        listed = [f"{id} names {one}" for id, row in status.items() for one in row.get("chunks_list") or ()
                  if one not in chunks]  # fmt: skip
        yield from fault("dangling", where, listed, "chunks of documents are not there", AGAIN)
        counts = Counter(text(row, "full_doc_id") for row in chunks.values())
        wrong = [
            f"{id}: {number(row, 'chunks_count'):g}, recounted {counts[id]}"
            for id, row in status.items()
            if said[id] == "processed" and number(row, "chunks_count") not in (None, float(counts[id]))
        ]
        yield from fault("count", where, wrong, "counts of chunks are not those of the store", AGAIN)


def _nodes(nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    if nodes is None:
        return
    yield from fault(
        "empty",
        GRAPH,
        [name for name, row in nodes.items() if not text(row, "description")],
        "entities have an empty description",
        AGAIN,
    )
    bare = [name for name, row in nodes.items() if not text(row, "entity_type")]
    yield from fault("type", GRAPH, bare, "entities have no type", AGAIN, remark=True)
    none = [name for name, row in nodes.items() if not parts(row, "source_id")]
    yield from fault("empty", GRAPH, none, "entities rest on no chunk, so nothing can be cited for them", AGAIN)
    if chunks is not None:
        lost = [f"{name} names {id}" for name, row in nodes.items() for id in parts(row, "source_id")
                if id not in chunks]  # fmt: skip
        yield from fault("dangling", GRAPH, lost, "chunks of entities are not there", AGAIN)
    linked = {end for source, target, _ in edges for end in (source, target)}
    yield from fault(
        "alone",
        GRAPH,
        [name for name in nodes if name not in linked],
        "entities have no relationship",
        "Nothing, if the texts say no more of them",
        remark=True,
    )


def _edges(nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    def shown(edge: tuple[str, str, Row]) -> str:
        return f"{edge[0]} - {edge[1]}"

    if nodes is not None:
        lost = [f"{end} ({shown(edge)})" for edge in edges for end in edge[:2] if end not in nodes]
        yield from fault("dangling", GRAPH, lost, "ends of relationships are no entity", AGAIN)
    once = Counter(tuple(sorted(edge[:2])) for edge in edges)
    yield from fault(
        "duplicate",
        GRAPH,
        [" - ".join(pair) for pair, count in once.items() if count > 1],
        "pairs have several relationships",
        AGAIN,
    )
    yield from fault(
        "loop",
        GRAPH,
        [shown(edge) for edge in edges if edge[0] == edge[1]],
        "relationships join an entity with itself",
        AGAIN,
    )
    yield from fault(
        "empty",
        GRAPH,
        [shown(edge) for edge in edges if not text(edge[2], "description")],
        "relationships have an empty description",
        AGAIN,
    )
    yield from fault(
        "nan",
        GRAPH,
        [shown(edge) for edge in edges if number(edge[2], "weight") is None],
        "weights are missing or no numbers",
        AGAIN,
    )
    if chunks is not None:
        lost = [f"{shown(edge)} names {id}" for edge in edges for id in parts(edge[2], "source_id") if id not in chunks]
        yield from fault("dangling", GRAPH, lost, "chunks of relationships are not there", AGAIN)


def _vectors(folder: Path, nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    """The vector files hold what the graph and the chunks hold, no fewer and no more."""
    wanted: dict[str, set[Any] | None] = {
        "chunks": set(chunks) if chunks is not None else None,
        "entities": {_bare(name) for name in nodes} if nodes is not None else None,
        "relationships": {tuple(sorted(map(_bare, edge[:2]))) for edge in edges} if nodes is not None else None,
    }
    for kind, there in wanted.items():
        where = f"vdb_{kind}.json"
        try:
            rows = vectors_of(folder, kind)
        except Unreadable as error:
            yield from fault("unreadable", where, [str(error)], "the vectors do not open", VECTORS)
            continue
        if there is None:
            continue
        if rows is None:
            if there and any((folder / f"vdb_{one}.json").exists() for one in wanted):
                yield from fault("missing", where, [where], f"{kind} have no vectors", VECTORS)
            continue
        held = [_subject(kind, row) for row in rows]
        without = sorted(str(one) for one in there - set(held))
        yield from fault("vectors", where, without, f"{kind} have no vector", VECTORS)
        orphans = sorted(str(one) for one in set(held) - there)
        yield from fault("orphans", where, orphans, f"vectors belong to no {kind} that are there", VECTORS)
        twice = [str(one) for one, count in Counter(held).items() if count > 1]
        yield from fault("duplicate", where, twice, "several vectors belong to one thing", VECTORS)


def _subject(kind: str, row: Row) -> Any:
    if kind == "chunks":
        return text(row, "__id__")
    if kind == "entities":
        return _bare(text(row, "entity_name"))
    return tuple(sorted((_bare(text(row, "src_id")), _bare(text(row, "tgt_id")))))


def _bare(name: str) -> str:
    return name.strip().strip('"')


def _lists(folder: Path, docs: Store, nodes: Nodes | None, edges: Edges) -> Iterator[Fault]:
    """The lists by document and by entity that newer versions keep name what is there."""
    found: list[Fault] = []
    entities = _read(folder, "kv_store_full_entities.json", found, False)
    relations = _read(folder, "kv_store_full_relations.json", found, False)
    of_entity = _read(folder, "kv_store_entity_chunks.json", found, False)
    yield from found
    for name, rows in (("kv_store_full_entities.json", entities), ("kv_store_full_relations.json", relations)):
        if rows and docs is not None:
            yield from fault("dangling", name, [id for id in rows if id not in docs], "documents are not there", AGAIN)
    if nodes is None:
        return
    lost = [f"{id} names {one}" for id, row in (entities or {}).items() for one in row.get("entity_names") or ()
            if one not in nodes]  # fmt: skip
    yield from fault(
        "dangling", "kv_store_full_entities.json", lost, "entities of documents are not in the graph", AGAIN
    )
    pairs = {tuple(sorted(edge[:2])) for edge in edges}
    lost = [f"{id} names {' - '.join(map(str, one))}" for id, row in (relations or {}).items()
            for one in row.get("relation_pairs") or () if tuple(sorted(map(str, one))) not in pairs]  # fmt: skip
    yield from fault("dangling", "kv_store_full_relations.json", lost, "pairs of documents are not in the graph", AGAIN)
    lost = [name for name in of_entity or () if name.split(SEP)[0] not in nodes]
    yield from fault("dangling", "kv_store_entity_chunks.json", lost, "entities are not in the graph", AGAIN)
