"""Import of a working directory of LightRAG (JSON and GraphML files), which has no communities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from graphrag_mcp.exchange import files
from graphrag_mcp.sources.decode import clean, iso_date

NO_PATH = ("", "unknown_source", "no-file-path", "custom_kg", "unknown")
Row = dict[str, Any]


def read(folder: Path) -> files.Foreign:
    """Everything that can be read of the folder's files."""
    found = files.Foreign("lightrag")
    docs, chunks = _json(folder, files.DOCS, found), _json(folder, files.CHUNKS, found)
    status = _json(folder, files.STATUS, found, needed=False)
    found.documents = [_document(id, row, status.get(id, {})) for id, row in docs.items()]
    order = {id: files.whole(row, "chunk_order_index") or 0 for id, row in chunks.items()}
    home = {id: _text(row, "full_doc_id") for id, row in chunks.items()}
    for place, id in enumerate(sorted(chunks, key=lambda id: (home[id], order[id]))):
        homes = [home[id]] if home[id] else []
        found.units.append(files.SourceUnit(id, place, _text(chunks[id], "content"), homes))
    states = (str(row.get("status", "")).lower() for row in status.values())
    failed = sum(state.endswith("failed") for state in states)
    found.note(failed, "documents", "failed in LightRAG, imported as far as they are there")
    nodes, edges = found.opened(files.GRAPH, partial(files.graph_of, folder)) or ([], [])
    of_entity = _json(folder, "kv_store_entity_chunks.json", found, needed=False)
    of_pair = _json(folder, "kv_store_relation_chunks.json", found, needed=False)
    for place, (name, row) in enumerate(nodes):
        units = _units(of_entity.get(name), row)
        kind = " ".join(_text(row, "entity_type").strip("\"' ").split())[:80]
        fields = name_of(name), kind, _joined(row, "description")
        found.entities.append(files.SourceEntity(name, place, *fields, units))
    for place, (source, target, row) in enumerate(edges):
        pair, turned = f"{source}{files.SEP}{target}", f"{target}{files.SEP}{source}"
        listed = _text(row, "keywords").replace(files.SEP, ",").split(",")
        words = ", ".join(filter(None, dict.fromkeys(word.strip() for word in listed)))
        fields = name_of(source), name_of(target), _joined(row, "description"), words
        units = _units(of_pair.get(pair) or of_pair.get(turned), row)
        found.relations.append(files.SourceRelation(pair, place, *fields, _weight(row), units))
    return found


def _json(folder: Path, name: str, found: files.Foreign, needed: bool = True) -> dict[str, Row]:
    return found.opened(name, partial(files.json_of, folder, name), needed, needed) or {}


def _document(id: str, row: Row, status: Row) -> files.SourceDocument:
    path = (_text(row, "file_path") or _text(status, "file_path")).split(files.SEP)[0].strip()
    name = PureWindowsPath(PurePosixPath(path).name).name if path.lower() not in NO_PATH else ""
    created = iso_date(status.get("created_at", ""))
    return files.SourceDocument(id, name or id, _text(row, "content"), created=created)


def _units(known: Mapping[str, Any] | None, row: Row) -> list[str]:
    """Ids of chunks: the complete list, else the one in the graph, which may be cut short."""
    listed = known.get("chunk_ids") if known else None
    return list(map(str, listed)) if isinstance(listed, list) else files.parts(row, "source_id")


def _joined(row: Row, name: str) -> str:
    return clean("\n".join(files.parts(row, name)))


def name_of(name: str) -> str:
    """A name as LightRAG stores it, without quotation marks; at most 300 characters."""
    return " ".join(clean(name).strip().strip('"').split())[:300]


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return clean(value) if isinstance(value, str) else ""


def _weight(row: Row) -> float:
    value = files.number(row, "weight") or 1.0
    return value if 0 < value < 1e12 else 1.0
