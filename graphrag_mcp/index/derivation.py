"""What rows are derived by: the parameters that decide whether they still hold, and what deriving would cost.

Takes settings, chosen models and a manifest; gives parameters, the manifest that this release goes on from, and for a
dry run an estimate. Reads documents and their log; takes no lock and writes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_mcp import extract
from graphrag_mcp.ask import Asker
from graphrag_mcp.index import estimate as estimating
from graphrag_mcp.index import models
from graphrag_mcp.index import plan as planning
from graphrag_mcp.index import rows as building
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.imported import PREFIX
from graphrag_mcp.index.models import Models
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import edits, tables
from graphrag_mcp.store.manifest import FORMAT, Manifest, read
from graphrag_mcp.store.truth import live_documents
from graphrag_mcp.types import Document, IndexRequest, IndexResult

# Bump when the meaning of stored rows changes: everything is then derived again from the truth.
DERIVATION = 4
Spans = set[tuple[int, int]]
Cut = tuple[Spans, Spans, dict[str, set[str]]]  # of text units, of passages; text unit -> names in it


def of_this_release(folder: Path, manifest: Manifest | None) -> Manifest | None:
    """A generation whose tables have older columns goes on from its originals alone: everything is derived again."""
    if manifest is None or manifest.format == FORMAT:
        return manifest
    counters = {"documents": live_documents(folder, manifest).num_rows}
    return replace(manifest, format=FORMAT, tables={}, counters=counters, parameters={}, stale=[])


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


def estimate(folder: Path, request: IndexRequest, settings: Settings, asker: Asker) -> IndexResult:
    """What a call would read and ask, without a lock, a write or a call."""
    manifest = of_this_release(folder, read(folder))
    in_force = edits.fold(edits.load(folder, manifest))
    plan = planning.make(folder, manifest, request, settings, in_force)
    chosen = models.choose(request.method, settings, manifest, folder, asker)
    again, waiting = set(), Counter[str]()
    if manifest is not None and any(
        manifest.parameters.get(name) != value for name, value in parameters(settings, chosen).items()
    ):
        again = set(plan.live)
    elif manifest is not None and asker.on and "pending" in manifest.tables:
        rows = tables.open_snapshot(folder, manifest).rows("pending", columns=["kind", "uri"]).to_pylist()
        again = {row["uri"] for row in rows if row["uri"]}
        waiting.update(row["kind"] for row in rows)
    if again and not waiting:
        plan.notes.append(f"All {len(again)} documents are derived again: settings, models or the release are others.")
    units, passages, counts = [], [], Counter[str]()
    if chosen.extract is not None or chosen.embedding:
        numbers = dict(Manifest(corpus="").next)
        for edit in planning.edits(folder, manifest, plan, request, settings, again):
            if edit.document is not None and edit.what != "relog" and not edit.document.file.startswith(PREFIX):
                rows = building.build(edit.document, building.Before(), chunk_params(settings), numbers)
                units += rows.fresh.values()
                passages += rows.passages
        counts.update(text_units=len(units), passages=len(passages))
    guess = estimating.estimate(units, passages, chosen, settings, asker.answered, waiting)
    size = sum(Path(file.path).stat().st_size for file in plan.to_read)
    return IndexResult(
        status="estimate", corpus=folder.name, total=len(plan.to_read) + len(request.texts), errors=plan.errors,
        counts={"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged, **counts},
        skipped=dict(sorted(plan.found.skipped.items())),
        hint=" ".join(plan.notes), estimate={"files": len(plan.to_read), "bytes": size, **guess.record(asker.budget)},
    )  # fmt: skip
