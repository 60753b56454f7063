"""A call of indexing while it runs: where it writes, what it counted, what it commits.

Loads nothing of the stages: a run in which nothing changed needs this module and none of them."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_mcp import names, plugins
from graphrag_mcp.executors import Executor, InProcess, executor
from graphrag_mcp.index.chunk import SIZES
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.edit_log import Overlay, renamed
from graphrag_mcp.store.manifest import DERIVATION, FORMAT, Manifest, commit
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.segments import GRAPHS, live_documents
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.types import IndexRequest

if TYPE_CHECKING:
    from graphrag_mcp.index.communities import Topics
    from graphrag_mcp.index.imported import ImportLog
    from graphrag_mcp.index.models import Models
    from graphrag_mcp.index.vectors import Vectors
    from graphrag_mcp.store.leases import Correction

Row = dict[str, Any]

# ---- what rows depend on ------------------------------------------------------------------------


def of_this_release(folder: Path, manifest: Manifest | None) -> Manifest | None:
    """A generation whose tables have older columns goes on from its originals alone: everything is
    derived again. So does one with edits of names that were normalised otherwise: no document takes
    away what these made without any."""
    if manifest is None:
        return None
    if manifest.format == FORMAT and not (manifest.of_another_release() and renamed(folder, manifest)):
        return manifest
    counters = {"documents": live_documents(folder, manifest).num_rows}
    kept = manifest.readers()
    return replace(manifest, format=FORMAT, tables={}, counters=counters, parameters=kept, stale=[])


def parameters(settings: Settings, chosen: Models) -> dict[str, Any]:
    """What derived rows depend on besides the documents; another value derives all again."""
    named = chosen.parameters()
    return {
        "derivation": DERIVATION,
        "extractor": names.VERSION,
        **plugins.parameters(),
        **{name: getattr(settings, name) for name in SIZES},
        "extraction": named["extraction"],
        # An index of an earlier release may have descriptions that a model joined.
        "descriptions": "",
    }


def derives_all(run: Run, request: IndexRequest) -> bool:
    """Are all documents derived again, since something else that their rows depend on is another now?"""
    if run.manifest is None:
        return False
    before, now = run.manifest.parameters, parameters(run.settings, run.models)
    another = any(before.get(name) != value for name, value in now.items())
    return another or (request.refresh_answers and run.models.extract is not None)


# ---- a run --------------------------------------------------------------------------------------

T = TypeVar("T")
Progress = Callable[[str, int, int], None]


class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


@dataclass
class Run:
    """One call while it runs: where it writes, what it counted, CPU seconds of each stage."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    # text units with names or pairs that were left out
    capped: set[str] = field(default_factory=set)
    began: int = 0  # the first generation that this call commits
    # what the next commit says its rows follow
    parameters: dict[str, Any] = field(default_factory=dict)
    models: Models = None  # type: ignore[assignment]  # chosen before anything is read
    # uri -> units that a model is asked about once more
    redo: dict[str, set[str]] = field(default_factory=dict)
    losses: list[Row] = field(default_factory=list)  # of the replies that this call read
    # questions whose answer was replaced after it had been merged
    corrections: list[Correction] = field(default_factory=list)
    edits: Overlay = field(default_factory=Overlay)  # what was changed by hand, as of this call
    imports: ImportLog | None = None  # where something was ever imported
    # edits of the documents that this call imports
    brought: list[Any] = field(default_factory=list)
    # rows for the log of imports that belong to no document
    apart: list[Row] = field(default_factory=list)
    executor: Executor = field(default_factory=InProcess)
    # a thread for work that lets Python go on
    beside: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "beside"))
    # set when nothing waits for that thread any longer
    ended: threading.Event = field(default_factory=threading.Event)
    # of the texts of the last batch, if something was written
    topics: Future[Topics | None] | None = None
    # by table, vectors that are asked for before they are written; whether that was done
    vectors: dict[str, Vectors] = field(default_factory=dict)
    embedded: bool = False
    _draft: Manifest | None = None  # with the tables that were written since the last commit
    _snapshot: Snapshot | None = None

    def take(self, future: Future[T]) -> T:
        """The result of work on the asker's loop; looks now and then for a cancelled call."""
        while True:
            try:
                return future.result(0.25)
            except TimeoutError:
                if future.done():
                    return future.result()
                self.check()

    def spread(self, items: int) -> Executor:
        """Who computes what follows from so many documents alone. Where a model reads them this process is
        busy with questions and replies."""
        if items and isinstance(self.executor, InProcess):
            of, models = self.settings, self.models
            busy = models.extract is not None and models.asker.on
            self.executor = executor(of.engine, of.processes, of.engine_address, items, busy)
        return self.executor

    def check_ended(self) -> None:
        """`check` for the thread beside, which does not ask the caller."""
        if self.ended.is_set():
            raise Cancelled

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled

    @property
    def committed(self) -> Manifest:
        """The last generation. Raises LookupError before the first."""
        if self.manifest is None:
            raise LookupError("nothing is committed yet")
        return self.manifest

    def snapshot(self) -> Snapshot:
        """The tables of the last generation. Raises LookupError before the first."""
        manifest = self.committed
        if self._snapshot is None or self._snapshot.manifest is not manifest:
            self._snapshot = Snapshot(self.folder, manifest)
        return self._snapshot

    def snapshot_before(self) -> Snapshot | None:
        """The tables of the last generation, None before the first."""
        return self.snapshot() if self.manifest is not None else None

    @property
    def draft(self) -> Manifest:
        """The generation to come, as far as it is written."""
        return self._draft or self.manifest or Manifest(corpus=self.folder.name)

    def draft_snapshot(self) -> Snapshot:
        return Snapshot(self.folder, self.draft)

    def write(self, changes: Mapping[str, Change], keeps_vectors: Collection[str] = ()) -> None:
        """Write these changes, and those of vectors, into the draft. NOT a commit. `keeps_vectors`: tables
        whose changed rows keep their texts, and so their vectors."""
        draft = self.draft
        changed_texts = {name: change for name, change in changes.items() if name not in keeps_vectors}
        changes = {**changes, **forgotten(changed_texts, draft.tables)}
        self._draft = replace(draft, tables=tables.apply(self.folder, draft, changes))

    def commit(self, manifest: Manifest) -> None:
        """From now on this is the generation."""
        self._draft = None
        counted = tables.with_open_questions(self.folder, self.manifest, manifest)
        self.manifest = manifest = replace(counted, began=self.began)
        commit(self.folder, manifest)

    def compact(self, idle: bool = False) -> None:
        """What has become many small files, as a generation of its own; `idle`: see tables.compact."""
        with self.stage("compact"):
            versions = tables.compact(self.folder, self.committed, idle=idle)
            if versions is not None:
                self.commit(self.committed.following(tables=versions))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds[name] += time.process_time() - began


def forgotten(changes: Mapping[str, Change], named: Mapping[str, int]) -> dict[str, Change]:
    """The vectors of the rows that these changes take away, of the tables that there are."""
    return {
        vectors: Change(changes[table].gone)
        for table, vectors in VECTORS.items()
        if table in changes and changes[table].gone and vectors in named
    }


# ---- the commit ---------------------------------------------------------------------------------


def commit_draft(
    run: Run,
    sources: Mapping[str, Any],
    segments: Sequence[Row],
    numbers: Mapping[str, int],
    moved: Mapping[str, int],
    topics: bool = True,
) -> None:
    """Commit what was written, with all `segments` of the generation. Communities are stale where the texts
    or the graph are others; without `topics` the texts that changed are in none."""
    old = run.manifest or Manifest(corpus=run.folder.name)
    counters = Counter(old.counters)
    counters.update(moved)
    versions = run.draft.tables
    tables_of_graph = ["entities", "relationships", *(["passages"] if topics else [])]
    if run.parameters.get("reports"):  # which are written from summaries
        tables_of_graph.append("summaries")
    stale = any(versions.get(name, 0) != old.tables.get(name, 0) for name in tables_of_graph)
    new = [segment for segment in segments if segment not in old.segments]
    stale |= any(segment["kind"] == GRAPHS for segment in new)  # of imported communities
    kept = {"communities_generation": old.communities_generation} if stale else {}
    run.commit(
        old.following(
            **kept,
            segments=list(segments),
            tables=dict(versions),
            # An index of a release without one of the counters begins it at what is added.
            counters={name: max(count, 0) for name, count in counters.items()},
            next=dict(numbers),
            sources=dict(sources),
            parameters=run.parameters,
            stale=["communities"] if stale or old.stale else [],
        )
    )
