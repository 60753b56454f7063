"""What rows are derived by: the parameters that decide whether they still hold.

Takes settings, chosen models and a manifest; gives parameters, the manifest that this release goes on from, and how a
document is cut by them. Reads documents and their log; takes no lock and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_mcp import extract
from graphrag_mcp.index import rows as building
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.models import Models
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.edits import renamed
from graphrag_mcp.store.manifest import DERIVATION, FORMAT, Manifest
from graphrag_mcp.store.truth import live_documents
from graphrag_mcp.types import Document

Spans = set[tuple[int, int]]
Cut = tuple[Spans, Spans, dict[str, set[str]]]  # of text units, of passages; text unit -> names in it


def of_this_release(folder: Path, manifest: Manifest | None) -> Manifest | None:
    """A generation whose tables have older columns goes on from its originals alone: everything is derived again. So
    does one with edits of names that were normalised otherwise: no document takes away what these made without any."""
    if manifest is None:
        return None
    if manifest.format == FORMAT and not (manifest.of_another_release() and renamed(folder, manifest)):
        return manifest
    counters = {"documents": live_documents(folder, manifest).num_rows}
    # Who has read the texts stays known: then what they answered is looked up, and not thrown away.
    parameters = {name: manifest.parameters[name] for name in ("extraction", "agent") if name in manifest.parameters}
    return replace(manifest, format=FORMAT, tables={}, counters=counters, parameters=parameters, stale=[])


def parameters(settings: Settings, chosen: Models) -> dict[str, Any]:
    """What the derived rows depend on besides the documents; another value here means deriving everything again."""
    named = chosen.parameters()
    return {
        "derivation": DERIVATION, "extractor": extract.VERSION, "chunk_size": settings.chunk_size,
        "chunk_overlap": settings.chunk_overlap, "chunk_mode": settings.chunk_mode,
        "chunk_separator": settings.chunk_separator, "passage_size": settings.passage_size,
        **{name: named[name] for name in ("extraction", "claims", "descriptions")},
    }  # fmt: skip


def chunk_params(settings: Settings) -> ChunkParams:
    s = settings
    return ChunkParams(s.chunk_size, s.chunk_overlap, s.chunk_mode, s.chunk_separator, s.passage_size)


def cut(document: Mapping[str, Any], named: Mapping[str, Any], names: bool) -> Cut | None:
    """How a document (uri, title, text) is cut by parameters that a manifest names, and with `names` what is found in
    it; None where they are not such as this release derives by."""
    sizes = ("chunk_size", "chunk_overlap", "chunk_mode", "chunk_separator", "passage_size")
    if named.get("derivation") != DERIVATION or not all(name in named for name in sizes):
        return None
    params = ChunkParams(*(named[name] for name in sizes))
    found = chunk(document["text"], params)
    units = {(unit.span.start, unit.span.end) for unit in found}
    passages = {(part.start, part.end) for unit in found for part in unit.passages}
    if not names or named.get("extractor") != extract.VERSION:
        return units, passages, {}
    numbers = dict(Manifest(corpus="").next)
    whole = Document(document["uri"], document["title"], document["text"])
    rows = building.build(whole, building.Before(), params, numbers)
    return units, passages, {id: {named.key for named in unit.named} for id, unit in rows.fresh.items()}
