"""Text units that a model is asked about again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from graphrag_mcp.index.run import Run
from graphrag_mcp.index.units import Context, stored
from graphrag_mcp.llm.asker import key_of


def open_units(run: Run) -> set[str]:
    """Uris of documents with text units that a model may read now and could not before, or whose
    answer was replaced; fills `run.redo`."""
    if run.manifest is None or not run.models.extract:
        return set()
    refused = run.models.asker.still_refused
    rows = run.snapshot().rows("pending").to_pylist()
    rows = [row for row in rows if not refused(row["reason"])]
    open_ = {row["subject"]: row["uri"] for row in rows if row["kind"] == "extract"}
    if not run.models.asker.on:
        by_document = sorted(open_, key=lambda unit: (open_[unit], unit))
        open_ = {unit: open_[unit] for unit in _answered(run, by_document)}
    for unit, uri in chain(open_.items(), _corrected_units(run).items()):
        run.redo.setdefault(uri, set()).add(unit)
    return set(run.redo)


def _corrected_units(run: Run) -> dict[str, str]:
    """Text units whose answer was replaced, with the uri of their document."""
    ids = {correction.subject for correction in run.corrections if correction.kind == "extract"}
    if not ids:
        return {}
    snapshot = run.snapshot()
    units = snapshot.served("text_units", sorted(ids), ["id", "document_id"])
    of = sorted({row["document_id"] for row in units})
    found = snapshot.served("documents", of, ["id", "uri"])
    uris = {row["id"]: row["uri"] for row in found}
    return {row["id"]: uris[row["document_id"]] for row in units if row["document_id"] in uris}


def _answered(run: Run, units: list[str]) -> Iterator[str]:
    """Those of the units about which the book holds an answer by now: an agent has read them."""
    asker = run.models.asker
    reader = run.models.extract
    if reader is None or not asker.may_answer("extract"):
        return
    known: dict[str, Context] = {}
    for start in range(0, len(units), 500):
        for id, text, context in stored(run.snapshot(), units[start : start + 500], known):
            if asker.answered(key_of(*reader.question(text, context))):
                yield id
