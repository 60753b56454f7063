"""What a run would ask models, before it asks: the run itself, rehearsed with imitated answers and written nowhere.

Takes a request and the work of a run; gives calls, tokens and cost by stage. Texts are read, cut and asked about, names
merged, communities found and reports asked for by the code that does so in earnest, so everything that follows from the
documents, the settings, the index and the answer book is exact; only what a model will say is imitated (imitated.py).
No lock, no write, no call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from graphrag_mcp.ask import Asker
from graphrag_mcp.ask_limits import Spent
from graphrag_mcp.ask_open import book_of, rehearsing, text_prompt
from graphrag_mcp.index import derivation, models
from graphrag_mcp.index import plan as planning
from graphrag_mcp.index.commits import Batch, Row, Run
from graphrag_mcp.index.habits import Habits, learnt, tokens_of
from graphrag_mcp.index.imitated import ImitatedChat, ImitatedEmbedder
from graphrag_mcp.index.model_units import Reading
from graphrag_mcp.index.plan import Plan
from graphrag_mcp.index.rows import Names
from graphrag_mcp.store import edits
from graphrag_mcp.store.imagined import Imagination
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.types import IndexRequest, IndexResult

Work = Callable[[Run, IndexRequest, Asker], tuple[Plan, str]]


class Rehearsal(Run):
    """A run whose generations are imagined and whose models are imitated."""

    writes: ClassVar[bool] = False
    chat: ImitatedChat
    imagination: Imagination

    def opened(self, manifest: Manifest) -> Snapshot:
        return self.imagination.snapshot(manifest)

    def begin(self, uri: str, id: str, unit: Names) -> Reading | None:
        reader = self.models.reader
        self.chat.read(unit, *(one.prompt(unit.text) for one in (reader.extract, reader.claims) if one is not None))
        return super().begin(uri, id, unit)

    def originals(self, batch: Batch) -> list[Row]:
        return []

    def apply(self, base: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        for name in ("text_units", "passages"):
            self.counts[name] += changes[name].rows.num_rows if name in changes else 0
        return self.imagination.apply(base, changes)

    def commit(self, manifest: Manifest) -> None:
        self.manifest = manifest

    def compacted(self) -> dict[str, int] | None:
        return None


def estimate(run: Rehearsal, request: IndexRequest, asker: Asker, work: Work) -> IndexResult:
    """What a call would read and ask. `asker`: whom it would ask; `work`: what it would do."""
    folder, before, notes, status = run.folder, run.manifest, "", "done"
    run.chat, run.imagination = ImitatedChat(asker.model, Habits()), Imagination(folder, before)
    embedder = ImitatedEmbedder(asker.embedding_model, text_prompt(asker))
    door = rehearsing(asker, run.chat if asker.on else None, embedder if asker.embeds else None)
    embedder.length = lambda: door.length
    try:
        chosen = models.choose(request.method, run.settings, before, folder, door)
        if chosen.extract is not None and asker.on:
            run.chat.habits = learnt(book_of(asker), asker.model, tokens_of(chosen.extract.prompt("")))
        if chosen.extract is not None or chosen.embedding:
            plan, status = work(run, request, door)
        else:
            in_force = edits.fold(edits.load(folder, before))
            plan = planning.make(folder, before, request, run.settings, in_force)
        wanted = derivation.parameters(run.settings, chosen)
        if before is not None and any(before.parameters.get(name) != value for name, value in wanted.items()):
            notes = f"All {len(plan.live)} documents are derived again: settings, models or the release are others."
    finally:
        door.close()
    counts = {"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged}
    counts |= {name: run.counts[name] for name in ("text_units", "passages") if run.counts[name]}
    size = sum(Path(file.path).stat().st_size for file in plan.to_read)
    return IndexResult(
        status="estimate" if status == "done" else status, corpus=folder.name, errors=plan.errors,
        total=len(plan.to_read) + len(request.texts),
        counts=counts, skipped=dict(sorted(plan.found.skipped.items())),
        hint=" ".join(filter(None, [*plan.notes, notes])),
        estimate={"files": len(plan.to_read), "bytes": size, **record(door.spent(), run.chat.habits)},
    )  # fmt: skip


def record(spent: Spent, habits: Habits) -> dict[str, Any]:
    """Totals, cost by the prices of the settings, and the same by stage; `because`: what is assumed of the model."""
    found: dict[str, Any] = {**spent.record(), "cost": round(spent.cost, 4)}
    if "extract" in spent.by_stage:
        why = f"as in {habits.answers} answers of" if habits.answers else "since no answer is known yet of"
        found["because"] = f"up to {habits.names} names a text, {why} this model"
    return found
