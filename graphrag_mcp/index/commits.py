"""Commits: what a batch of documents, or the communities after them, write into the next generation.

Takes the run of a call and a batch of rows; gives a new manifest in `run.manifest`. Each function here ends in one
commit: everything of it becomes visible at once, or nothing. Knows no files and no formats.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_mcp.index import hierarchy
from graphrag_mcp.index.communities import ClusterParams
from graphrag_mcp.index.graph import merge, to_table
from graphrag_mcp.index.mentions import UnitNames
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.manifest import Manifest, commit
from graphrag_mcp.store.schema import DOCUMENT_LOG
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.store.truth import DOCUMENTS, append

Row = dict[str, Any]
Progress = Callable[[str, int, int], None]


@dataclass
class Run:
    """One call while it runs: where it writes, what it has counted, how long each stage took (CPU seconds)."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    touched: set[str] = field(default_factory=set)
    first_generation: int = 0  # the generation this call found
    parameters: dict[str, Any] = field(default_factory=dict)  # what the next commit says its rows follow
    _snapshot: Snapshot | None = None

    def snapshot(self) -> Snapshot | None:
        """The generation that this call builds upon, opened once."""
        if self.manifest is None:
            return None
        if self._snapshot is None or self._snapshot.manifest is not self.manifest:
            self._snapshot = tables.open_snapshot(self.folder, self.manifest)
        return self._snapshot

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began


@dataclass
class Batch:
    """Edits of one commit: rows to write and what they replace."""

    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    documents: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    old_units: set[str] = field(default_factory=set)
    old_passages: list[Row] = field(default_factory=list)


def documents(run: Run, sources: Mapping[str, Any], batch: Batch, numbers: dict[str, int]) -> None:
    """Everything of one batch becomes visible at once, or not at all."""
    snapshot = run.snapshot()
    with run.stage("merge"):
        old_units, old_passages = _replaced(snapshot, batch.gone)
        gone_units = set(old_units) - batch.kept
        merged = merge(snapshot, gone_units, batch.fresh, numbers)
    with run.stage("terms"):
        term_change, moved = _terms(snapshot, old_passages, batch.passages)
    changes = {
        **merged.changes,
        "terms": term_change,
        "documents": Change(sorted(batch.gone), to_table("documents", batch.documents)),
        "text_units": Change(sorted(old_units), to_table("text_units", batch.units)),
        "passages": Change(sorted(old_passages), to_table("passages", batch.passages)),
    }
    moved.update(
        documents=len(batch.documents) - len(batch.gone), text_units=len(batch.units) - len(old_units),
        passages=len(batch.passages) - len(old_passages), entities=merged.entities, relationships=merged.relationships,
    )  # fmt: skip
    run.touched |= merged.touched
    with run.stage("write"):
        segments = []
        if batch.log:
            log = pa.Table.from_pylist(batch.log, DOCUMENT_LOG)
            segments.append(append(run.folder, DOCUMENTS, log))
        versions = tables.apply(run.folder, run.manifest, changes)
        swap(run, sources, versions, segments, numbers, moved)


def _replaced(snapshot: Snapshot | None, documents: set[str]) -> tuple[list[str], dict[str, Row]]:
    """Ids of the text units, and the passages by id, that the documents had."""
    if snapshot is None or not documents:
        return [], {}
    units = snapshot.by_key("text_units", sorted(documents), "document_id", ["id"]).column("id").to_pylist()
    passages = snapshot.by_key("passages", sorted(documents), "document_id", ["id", "terms", "n_terms"]).to_pylist()
    return units, {row["id"]: row for row in passages}


def _terms(snapshot: Snapshot | None, old: Mapping[str, Row], new: list[Row]) -> tuple[Change, Counter[str]]:
    """How many passages hold each term, for the terms whose number moves; and by how much the total length moves."""
    moved: Counter[str] = Counter()
    for row in new:
        moved.update(set(row["terms"].split()))
    for row in old.values():
        moved.subtract(set(row["terms"].split()))
    moved = Counter({term: by for term, by in moved.items() if by})
    before: dict[str, int] = {}
    if snapshot is not None and moved:
        known = snapshot.by_key("terms", sorted(moved), "term", ["term", "passages"])
        before = dict(zip(known.column("term").to_pylist(), known.column("passages").to_pylist(), strict=True))
    after = {term: before.get(term, 0) + by for term, by in sorted(moved.items())}
    rows = [{"term": term, "passages": count} for term, count in after.items() if count > 0]
    length = sum(row["n_terms"] for row in new) - sum(row["n_terms"] for row in old.values())
    return Change(sorted(before), to_table("terms", rows)), Counter({"passage_terms": length})


def swap(
    run: Run,
    sources: Mapping[str, Any],
    versions: Mapping[str, int],
    segments: list[Row],
    numbers: Mapping[str, int],
    moved: Counter[str],
) -> None:
    old = run.manifest or Manifest(corpus=run.folder.name)
    counters = Counter(old.counters)
    counters.update(moved)
    run.manifest = replace(
        old, generation=old.generation + 1, created=now(), segments=[*old.segments, *segments],
        tables={**old.tables, **versions}, counters=dict(counters), next=dict(numbers),
        sources=dict(sources), parameters=run.parameters,
        stale=["communities"] if run.touched or old.stale else [],
    )  # fmt: skip
    commit(run.folder, run.manifest)


def communities(run: Run, recluster: bool) -> None:
    """The second commit: the hierarchy of the graph as it is now, and reports where their content changed."""
    if run.manifest is None or not (run.manifest.stale or recluster):
        return
    numbers = dict(run.manifest.next)
    # Without a complete list of what earlier calls touched (one was killed), every report is compared.
    complete = run.manifest.communities_generation == run.first_generation
    params = ClusterParams(max_cluster_size=run.settings.max_cluster_size, seed=run.settings.seed)
    with run.stage("communities"):
        tree = hierarchy.recluster(run.snapshot(), params, fresh=recluster)
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        changes, moved = hierarchy.report(run.snapshot(), tree, run.touched if complete else None, numbers)
    with run.stage("write"):
        versions = tables.apply(run.folder, run.manifest, changes)
        run.manifest = replace(
            run.manifest, generation=run.manifest.generation + 1, created=now(), tables=versions, next=numbers,
            counters={**run.manifest.counters, **moved}, communities_generation=run.manifest.generation + 1, stale=[],
        )  # fmt: skip
        commit(run.folder, run.manifest)
    with run.stage("compact"):
        versions = tables.compact(run.folder, run.manifest)
        if versions is not None:
            generation = run.manifest.generation + 1
            run.manifest = replace(
                run.manifest, generation=generation, created=now(), tables=versions, communities_generation=generation
            )
            commit(run.folder, run.manifest)
    run.progress("reports", len(tree.communities), len(tree.communities))


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
