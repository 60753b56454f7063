"""The first commit of a run: documents, text units, passages, mentions and their merge into the
graph.

A unit's id is a hash of the document's uri and the unit's own text, so text that did not change
keeps its id, alias and names wherever it has moved. `cut` says what the text units are, in a
quarter of the time, so that a model can be asked about them while `fill` looks for names and search
terms."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.code import grammars
from graphrag_mcp.code.parse import parse, parse_prose
from graphrag_mcp.code.symbols import SourceFile
from graphrag_mcp.executors import Executor, InProcess, executor
from graphrag_mcp.index import descriptions, source_code
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.claims import Claim
from graphrag_mcp.index.graph import UnitNames, collect, entity_id, graph_to_table, merge
from graphrag_mcp.index.imported import DocumentRecord, ImportLog, UnitRecord
from graphrag_mcp.index.imported import segments as import_segments
from graphrag_mcp.index.units import Context, Reading, begin, claims_as_rows, pending, settle
from graphrag_mcp.index.vectors import Vectors, forgotten
from graphrag_mcp.names import extract
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import tables
from graphrag_mcp.store.edit_log import Overlay, renamed
from graphrag_mcp.store.leases import Correction
from graphrag_mcp.store.manifest import DERIVATION, FORMAT, Manifest, commit
from graphrag_mcp.store.schema import DOCUMENT_LOG, TABLES
from graphrag_mcp.store.segments import DOCUMENTS, append, live_documents
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.text.terms import normalise_name, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.credentials import masked
from graphrag_mcp.types import Document, Span, Unit, content_id

if TYPE_CHECKING:
    from graphrag_mcp.index.models import Models


def of_this_release(folder: Path, manifest: Manifest | None) -> Manifest | None:
    """A generation whose tables have older columns goes on from its originals alone: everything is
    derived again. So does one with edits of names that were normalised otherwise: no document takes
    away what these made without any."""
    if manifest is None:
        return None
    if manifest.format == FORMAT and not (
        manifest.of_another_release() and renamed(folder, manifest)
    ):
        return manifest
    counters = {"documents": live_documents(folder, manifest).num_rows}
    # Who has read the texts stays known: then what they answered is looked up, and not thrown away.
    told = manifest.parameters
    kept = {name: told[name] for name in ("extraction", "agent") if name in told}
    return replace(manifest, format=FORMAT, tables={}, counters=counters, parameters=kept, stale=[])


def parameters(settings: Settings, chosen: Models) -> dict[str, Any]:
    """What the derived rows depend on besides the documents; another value here means deriving
    everything again."""
    named = chosen.parameters()
    return {
        "derivation": DERIVATION,
        "extractor": extract.VERSION,
        "grammars": grammars.installed(),
        "chunk_size": settings.chunk_size,
        "chunk_overlap": settings.chunk_overlap,
        "chunk_mode": settings.chunk_mode,
        "chunk_separator": settings.chunk_separator,
        "passage_size": settings.passage_size,
        **{name: named[name] for name in ("extraction", "claims", "descriptions")},
    }


def chunk_params(settings: Settings) -> ChunkParams:
    s = settings
    return ChunkParams(
        s.chunk_size, s.chunk_overlap, s.chunk_mode, s.chunk_separator, s.passage_size
    )


Row = dict[str, Any]


@dataclass
class Before:
    """What the previous generation held of a document (empty for a new one)."""

    n: int = 0
    units: dict[str, int] = field(default_factory=dict)  # id -> n
    passages: dict[str, Sequence[str]] = field(default_factory=dict)  # id -> entity_ids
    # units to be read again although their text is the same
    redo: set[str] = field(default_factory=set)


Found = tuple[UnitNames, list[tuple[int, str]]]  # the names of a text unit, and every mention


@dataclass(slots=True)
class Derived:
    """What follows from a document and the parameters alone, as an executor computes it: its text
    units, and of each its names and what is counted of its passages."""

    code: SourceFile | None  # of source code that is parsed: its names are taken from it
    cuts: list[Unit]
    names: list[Found | None]
    passages: list[list[tuple[int, str, int]]]  # tokens, search terms, number of these


def derive(item: tuple[Document, ChunkParams]) -> Derived:
    document, params = item
    code = parse(document.uri, document.text)
    derived = Derived(code, _chunked(code, document.text, params), [], [])
    name_of, searched = unit_ids(document.uri), _searched(document.title, code)
    for unit in derived.cuts:
        start, end = unit.span.start, unit.span.end
        text = document.text[start:end]
        found = None
        if code is None:
            core = unit.passages[0].start - start
            found = collect(name_of(unit, text), masked(text), core)
            found[0].text = ""  # the other side has it
        derived.names.append(found)
        derived.passages.append(
            [_counts(document.text, unit, part, searched) for part in unit.passages]
        )
    return derived


Searched = Callable[[int, int], list[str]]


def _searched(title: str, code: SourceFile | None) -> Searched:
    """The terms by which a span is found besides its own: the title, and of source code the names
    of what is defined there."""
    title_terms, known = terms(title), dict[str, list[str]]()

    def of(start: int, end: int) -> list[str]:
        inside = code.names(start, end) if code else []
        known.update((name, terms(name)) for name in inside if name not in known)
        return [*title_terms, *(term for name in inside for term in known[name])]

    return of


def _counts(text: str, unit: Unit, part: Span, searched: Searched) -> tuple[int, str, int]:
    """The tokens of a passage, its search terms and their number."""
    said = text[part.start : part.end]
    words = [*searched(part.start, part.end), *terms(said)]
    n_tokens = unit.n_tokens if part == unit.span else count_tokens(said)
    return n_tokens, " ".join(words), len(words)


class Names:
    """The keyless names of a text unit, looked for once, by whichever thread needs them first."""

    def __init__(
        self,
        id: str,
        text: str,
        core: int,
        found: Found | None = None,
        context: Callable[[], str] = str,
    ) -> None:
        self.id, self.text, self._core, self.context = id, text, core, context
        self._lock = threading.Lock()
        self._found = found
        if found is not None:
            found[0].text = text  # it was not sent back

    def found(self) -> Found:
        with self._lock:
            if self._found is None:
                self._found = collect(self.id, self.text, self._core)
            return self._found

    def repeated(self) -> UnitNames:
        """Those in the part that the unit before holds as well: who reads the whole text finds them
        again."""
        return collect(self.id, self.text[: self._core], 0)[0]


@dataclass
class DocumentRows:
    """Rows of a document; `passages`, `fresh` and `claims` only once they are filled."""

    document: Row
    source: Document
    before: Before
    given: DocumentRecord | None
    derived: Derived | None = None
    cuts: list[tuple[Unit, UnitRecord | None]] = field(default_factory=list)  # as `units` are
    to_read: dict[str, Names] = field(default_factory=dict)  # units whose names are new, by id
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)  # units to merge into the graph
    kept: set[str] = field(default_factory=set)  # units whose names are already there
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units
    code: SourceFile | None = None  # of source code that is parsed
    facts: list[Row] = field(default_factory=list)  # the row of `code`, where it has one


def build(
    document: Document, before: Before, params: ChunkParams, number: dict[str, int]
) -> DocumentRows:
    """Both steps at once."""
    rows = cut_rows(document, before, params, number)
    fill(rows)
    return rows


def cut_rows(
    document: Document,
    before: Before,
    params: ChunkParams,
    number: dict[str, int],
    given: DocumentRecord | None = None,
    derived: Derived | None = None,
) -> DocumentRows:
    """`number` holds the next free alias number of "d" and "t" and is advanced.

    `given`: what an import says of the document; then units and names are those, and nothing is
    extracted. `derived`: what an executor has computed of it."""
    row = _document_row(document, before, number)
    rows = DocumentRows(row, document, before, given, derived)
    if given:
        rows.cuts = given.cut(document.text, params)
    elif derived:
        rows.code = derived.code
        rows.cuts = [(unit, None) for unit in derived.cuts]
    else:
        rows.code = parse(document.uri, document.text)
        rows.cuts = [(unit, None) for unit in _chunked(rows.code, document.text, params)]
    name_of = unit_ids(document.uri)
    context = Context(document.uri, document.title, document.text, document.metadata)
    for place, (unit, _) in enumerate(rows.cuts):
        start, end = unit.span.start, unit.span.end
        text = document.text[start:end]
        unit_id = name_of(unit, text)
        number_of_unit = before.units.get(unit_id)
        if number_of_unit is None:
            number_of_unit, number["t"] = number["t"], number["t"] + 1
        rows.units.append(
            {
                "id": unit_id,
                "n": number_of_unit,
                "document_id": row["id"],
                "chunk_index": unit.index,
                "char_start": start,
                "char_end": end,
                "line_start": unit.span.line_start,
                "line_end": unit.span.line_end,
                "n_tokens": unit.n_tokens,
                "text": text,
            }
        )
        # The qualified names of source code depend on what stands in other units.
        known = unit_id in before.units and unit_id not in before.redo and rows.code is None
        if known and all(id in before.passages for id in _passage_ids(unit, unit_id)):
            rows.kept.add(unit_id)
        else:  # a key in a text is no name, stands in no evidence, and no model is shown it
            found = derived.names[place] if derived else None
            core = unit.passages[0].start - start
            rows.to_read[unit_id] = Names(
                unit_id, masked(text), core, found, partial(context.line, start)
            )
    return rows


def _document_row(document: Document, before: Before, number: dict[str, int]) -> Row:
    n = before.n or number["d"]
    number["d"] += not before.n
    return {
        "id": document.id,
        "n": n,
        "uri": document.uri,
        "title": document.title,
        "text": document.text,
        "metadata": metadata_json(document.metadata),
        "created": document.created,
    }


def _chunked(code: SourceFile | None, text: str, params: ChunkParams) -> list[Unit]:
    return chunk(text, params, code.breaks(text) if code else None)


def fill(rows: DocumentRows, check: Callable[[], object] = lambda: None) -> None:
    """Names, passages and search terms; `check` may raise to stop early."""
    searched = _searched(rows.source.title, rows.code)
    title_key = normalise_name(rows.source.title)
    shared = {
        "document_id": rows.document["id"],
        "uri": rows.source.uri,
        "title": rows.source.title,
        "title_id": entity_id(title_key) if title_key else "",
    }
    for place, ((unit, record), row) in enumerate(zip(rows.cuts, rows.units, strict=True)):
        check()
        counts = (
            rows.derived.passages[place]
            if rows.derived
            else [_counts(rows.source.text, unit, part, searched) for part in unit.passages]
        )
        _passages(rows, unit, record, row["id"], row["n"], shared, counts)
    told = rows.code or parse_prose(rows.source.uri, rows.source.text)
    if told is not None and rows.units and rows.given is None:
        cuts = [unit for unit, _ in rows.cuts]
        rows.facts = [source_code.row_of(rows.document["id"], told, rows.units, cuts)]


def unit_ids(uri: str) -> Callable[[Unit, str], str]:
    """Names the units of one document, in their order: by their text, and equal ones by their place
    among these."""
    seen: Counter[str] = Counter()

    def name(unit: Unit, text: str) -> str:
        same = content_id(uri, str(unit.passages[0].start - unit.span.start), text)
        seen[same] += 1
        return content_id("unit", same, str(seen[same] - 1))

    return name


def _passage_ids(unit: Unit, unit_id: str) -> list[str]:
    origin = unit.span.start
    return [
        content_id("passage", unit_id, str(p.start - origin), str(p.end - origin))
        for p in unit.passages
    ]


def _passages(
    rows: DocumentRows,
    unit: Unit,
    record: UnitRecord | None,
    unit_id: str,
    n: int,
    shared: Mapping[str, str],
    counts: Sequence[tuple[int, str, int]],
) -> None:
    document = rows.source
    ids = _passage_ids(unit, unit_id)
    entity_ids = _named(rows, unit, record, unit_id, ids)
    for part, (id, span, named) in enumerate(zip(ids, unit.passages, entity_ids, strict=True), 1):
        n_tokens, words, n_terms = counts[part - 1]
        rows.passages.append(
            {
                "id": id,
                "n": n,
                "part": part,
                "parts": len(ids),
                "text_unit_id": unit_id,
                **shared,
                "position": len(rows.passages),
                "char_start": span.start,
                "char_end": span.end,
                "line_start": span.line_start,
                "line_end": span.line_end,
                "n_tokens": n_tokens,
                "text": document.text[span.start : span.end],
                "terms": words,
                "n_terms": n_terms,
                "entity_ids": list(named),
            }
        )


def _named(
    rows: DocumentRows, unit: Unit, record: UnitRecord | None, unit_id: str, ids: Sequence[str]
) -> list[Sequence[str]]:
    """Ids of what each passage of a unit names; fills `rows.fresh` where the unit is read."""
    if unit_id in rows.kept:
        return [rows.before.passages[id] for id in ids]
    to_read = rows.to_read.pop(unit_id)  # it holds every mention: a third of the memory
    if rows.code is not None:
        names, mentions = source_code.names_of(rows.code, unit, unit_id, to_read.text)
    elif rows.given is None:
        names, mentions = to_read.found()
    else:
        names, mentions = rows.given.names_of(unit_id, to_read.text, record)
        rows.claims[unit_id] = rows.given.claims_of(to_read.text, record)
    rows.fresh[unit_id] = names
    if len(ids) == 1:
        return [[entity_id(named.key) for named in names.named]]
    origin = unit.span.start
    held = [
        [key for start, key in mentions if p.start <= start + origin < p.end] for p in unit.passages
    ]
    return [list(dict.fromkeys(map(entity_id, keys))) for keys in held]


def metadata_json(metadata: Mapping[str, Any]) -> str:
    return json.dumps(metadata, ensure_ascii=False, sort_keys=True) if metadata else "{}"


# Names of text units that are merged at once: 20,000 of them, with their relationships, take 150 MB.
MERGED_NAMES = 20_000
T = TypeVar("T")
Progress = Callable[[str, int, int], None]


class Cancelled(Exception):
    """The caller asked to stop; what was committed stays."""


@dataclass
class Run:
    """One call while it runs: where it writes, what it has counted, how long each stage took (CPU
    seconds)."""

    folder: Path
    settings: Settings
    manifest: Manifest | None
    progress: Progress
    cancelled: Callable[[], bool]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    touched: set[str] = field(default_factory=set)
    # text units with names or pairs that were left out
    capped: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)  # names of which claims came or went
    first_generation: int = 0  # the generation this call found
    began: int = 0  # the first one that this call commits
    # what the next commit says its rows follow
    parameters: dict[str, Any] = field(default_factory=dict)
    models: Models | None = None
    # uri -> units that a model is asked about once more
    redo: dict[str, set[str]] = field(default_factory=dict)
    losses: list[Row] = field(default_factory=list)  # of the replies that this call read
    # questions whose answer was replaced after it had been merged
    corrections: list[Correction] = field(default_factory=list)
    vectors: Vectors | None = None
    edits: Overlay = field(default_factory=Overlay)  # what was changed by hand, as of this call
    imports: ImportLog | None = None  # where something was ever imported
    # long descriptions that are being made one already
    asked: descriptions.Asked = field(default_factory=dict)
    # edits of the documents that this call imports
    brought: list[Any] = field(default_factory=list)
    # rows for the log of imports that belong to no document
    apart: list[Row] = field(default_factory=list)
    executor: Executor = field(default_factory=InProcess)
    _snapshot: Snapshot | None = None

    def take(self, future: Future[T]) -> T:
        """The result of work on the asker's loop, looking now and then whether the call was
        cancelled meanwhile."""
        while True:
            try:
                return future.result(0.25)
            except TimeoutError:
                if future.done():
                    return future.result()
                if self.cancelled():
                    raise Cancelled from None

    def spread(self, items: int) -> Executor:
        """Who computes what follows from so many documents or communities alone."""
        if items and isinstance(self.executor, InProcess):
            of = self.settings
            self.executor = executor(of.engine, of.processes, of.engine_address, items)
        return self.executor

    def check(self) -> None:
        if self.cancelled():
            raise Cancelled

    def snapshot(self) -> Snapshot | None:
        if self.manifest is None:
            return None
        if self._snapshot is None or self._snapshot.manifest is not self.manifest:
            self._snapshot = self.opened(self.manifest)
        return self._snapshot

    # ---- whatever leaves a trace: a run that is only rehearsed has other ways (dry_run.py) ----

    writes: ClassVar[bool] = True

    def opened(self, manifest: Manifest) -> Snapshot:
        return Snapshot(self.folder, manifest)

    def begin(self, uri: str, id: str, unit: Names) -> Reading | None:
        """Have a text unit read; None when no one could."""
        return begin(self.models.reader, uri, id, unit.text, lambda: unit.found()[0], unit.context)

    def originals(self, batch: Batch) -> list[Row]:
        """Write the documents of a batch into the log of originals; the entries for the manifest."""
        segments = []
        if batch.log:
            segments.append(
                append(self.folder, DOCUMENTS, pa.Table.from_pylist(batch.log, DOCUMENT_LOG))
            )
        return segments + (import_segments(self.folder, batch.imports) if batch.imports else [])

    def apply(self, base: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        """Write these changes beside what `base` names; versions for the next manifest. NOT a
        commit."""
        return tables.apply(self.folder, base, changes)

    def commit(self, manifest: Manifest) -> None:
        """From now on this is the generation."""
        self.manifest = manifest = replace(manifest, began=self.began)
        commit(self.folder, manifest)

    def compacted(self, idle: bool = False) -> dict[str, int] | None:
        return tables.compact(self.folder, self.manifest, idle=idle)

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

    # documents that are cut and not yet rows
    opened: list[DocumentRows] = field(default_factory=list)
    size: int = 0  # passages, those of `opened` included
    log: list[Row] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # ids of document rows that go or are replaced
    documents: list[Row] = field(default_factory=list)
    units: list[Row] = field(default_factory=list)
    passages: list[Row] = field(default_factory=list)
    fresh: dict[str, UnitNames] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    readings: dict[str, Reading] = field(default_factory=dict)  # units that a model is reading
    # units that one should read and no one can -> uri
    unread: dict[str, str] = field(default_factory=dict)
    imports: list[Row] = field(default_factory=list)  # for the log of imports
    code: list[Row] = field(default_factory=list)  # of the table `code`
    claims: dict[str, list[Claim]] = field(default_factory=dict)  # of imported units


def documents(
    run: Run, sources: Mapping[str, Any], batch: Batch, numbers: dict[str, int], last: bool = False
) -> None:
    """Everything of one batch becomes visible at once, or not at all.

    What no model has a part in is written first, while its answers are still on their way; and when
    the `last` batch is written, long descriptions are asked for."""
    snapshot = run.snapshot()
    with run.stage("terms"):
        old_units, old_passages = _replaced(snapshot, batch.gone)
        term_change, moved = _terms(snapshot, old_passages, batch.passages)
    with run.stage("write"):
        segments = run.originals(batch)
        more_passages = len(batch.passages) - len(old_passages)
        more_units = len(batch.units) - len(old_units)
        versions = _write_texts(run, batch, old_units, old_passages, term_change)
        del term_change
    gone_units = set(old_units) - batch.kept
    with run.stage("merge"):
        read = _read(run, snapshot, batch, gone_units, numbers)
        units = gone_units | batch.fresh.keys()
        linked = _linked(run, snapshot, batch, gone_units, last)
        parts = [batch.fresh] if linked else _in_parts(run, batch.fresh)
        batch.fresh = {}  # each part is given up when it is merged
        before = _Merging(snapshot, versions, gone_units)
        while len(parts) > 1:
            _merge_ahead(run, before, parts.pop(0), numbers, moved)
        snapshot, versions = before.snapshot, before.versions
        long = getattr(run.models, "is_long", None)
        merged = merge(snapshot, before.gone, parts.pop(), numbers, long, run.edits)
        if run.models is not None and run.models.describe is not None:
            merged.long |= descriptions.retitled(snapshot, merged.changes, run.models, run.edits)
        for id in sorted(merged.long):
            read["pending"].append(pending(merged.long[id][0], id, "", "not yet asked"))
        if last and run.models is not None and run.models.asker.on:
            run.asked = descriptions.early(
                run.models, merged.long, merged.changes, snapshot, run.edits
            )
        changes = {**merged.changes, **_side_tables(run, units, read), **linked}
        if run.vectors is not None:
            changes |= forgotten(changes, versions)
    moved.update(
        documents=len(batch.documents) - len(batch.gone),
        text_units=more_units,
        passages=more_passages,
        entities=merged.entities,
        relationships=merged.relationships,
    )
    run.touched |= merged.touched
    run.capped |= merged.capped
    if (
        run.vectors is not None
    ):  # entities while the tables are written; others name what is written
        _want(run, "entities", changes["entities"], merged.long)
    with run.stage("write"):
        base = replace(run.manifest or Manifest(corpus=run.folder.name), tables=versions)
        versions = run.apply(base, changes)
        swap(run, sources, versions, segments, numbers, moved)
    if run.vectors is not None:
        _want(run, "relationships", changes["relationships"], merged.long)


def has_code(run: Run) -> bool:
    """Does the corpus hold documents that define or name symbols of source code?"""
    return run.manifest is not None and "code" in run.manifest.tables


def _linked(
    run: Run, snapshot: Snapshot | None, batch: Batch, gone_units: set[str], last: bool
) -> dict[str, Change]:
    """The change of the table `code`. With the `last` batch the names of all source code are
    resolved; text units of other documents whose statements change join the batch and
    `gone_units`. Such a batch is merged as one: its statements name what any of its units defines."""
    there = has_code(run)
    if not batch.code and not there:
        return {}
    gone, rows = set(batch.gone), batch.code
    held = snapshot.rows("code").to_pylist() if snapshot is not None else []
    left = [row for row in held if row["id"] not in gone]
    if last:
        # What an earlier batch replaced is not known any more: then all is resolved.
        whole = any(row["links"] == source_code.UNLINKED for row in held)
        before = None if whole or not held else [row for row in held if row["id"] in gone]
        links = source_code.link([*left, *rows], before)
        gone_units |= source_code.apply(snapshot, batch.fresh, links)
        again = {row["id"] for row in links.rows}
        rows = [*(row for row in rows if row["id"] not in again), *links.rows]
        gone |= again
    elif len(left) < len(held) and left:
        gone.add(left[0]["id"])
        rows = [*rows, left[0] | {"links": source_code.UNLINKED}]
    return {"code": Change(sorted(gone), graph_to_table("code", rows))}


def _write_texts(
    run: Run,
    batch: Batch,
    old_units: list[str],
    old_passages: Mapping[str, Row],
    term_change: Change,
) -> dict[str, int]:
    """Write what no model has a part in; versions. Not a commit. The rows of units and passages are
    given up as soon as they are in tables: of a large text they are a third of the memory."""
    first = {
        "terms": term_change,
        "documents": Change(sorted(batch.gone), graph_to_table("documents", batch.documents)),
        "text_units": Change(sorted(old_units), graph_to_table("text_units", batch.units)),
        "passages": Change(sorted(old_passages), graph_to_table("passages", batch.passages)),
    }
    batch.units, batch.passages = [], []
    if run.vectors is not None:
        run.vectors.want("passages", first["passages"].rows, old_passages)
        first |= dict(run.vectors.changes())
    return run.apply(run.manifest, first)


@dataclass
class _Merging:
    """How far the merge of one batch is: what its next part builds upon."""

    snapshot: Snapshot | None
    versions: dict[str, int]
    gone: set[str]  # text units that the next part takes away


def _in_parts(run: Run, fresh: Mapping[str, UnitNames]) -> list[dict[str, UnitNames]]:
    """The text units in parts that are merged one after another, or memory would grow with the
    document. Long descriptions are asked for once, of the whole: with a model there is one part."""
    parts: list[dict[str, UnitNames]] = [{}]
    size = 0
    for id, unit in fresh.items():
        if size >= MERGED_NAMES and not (run.models and run.models.describe):
            parts.append({})
            size = 0
        parts[-1][id] = unit
        size += len(unit.named)
    return parts


def _merge_ahead(
    run: Run,
    before: _Merging,
    part: Mapping[str, UnitNames],
    numbers: dict[str, int],
    moved: Counter[str],
) -> None:
    """Merge and write a part of a batch. Not a commit: the versions are named by the last part's."""
    run.check()
    merged = merge(before.snapshot, before.gone, part, numbers, None, run.edits)
    changes = dict(merged.changes)
    base = replace(run.manifest or Manifest(corpus=run.folder.name), tables=before.versions)
    if run.vectors is not None:
        changes |= forgotten(changes, before.versions)
        _want(run, "entities", changes["entities"], ())
    before.versions = run.apply(base, changes)
    before.snapshot, before.gone = run.opened(replace(base, tables=before.versions)), set()
    if run.vectors is not None:
        _want(run, "relationships", changes["relationships"], (), before.snapshot)
    run.touched |= merged.touched
    run.capped |= merged.capped
    moved.update(entities=merged.entities, relationships=merged.relationships)


def _want(
    run: Run, table: str, change: Change, long: Collection[str], snapshot: Snapshot | None = None
) -> None:
    """Have the rows embedded, but for those whose long descriptions are made one first."""
    rows = change.rows
    short = rows.filter(pc.invert(pc.is_in(rows["id"], pa.array(list(long), pa.string()))))
    run.vectors.want(table, short, change.gone, snapshot or run.snapshot())


def _read(
    run: Run, snapshot: Snapshot | None, batch: Batch, gone_units: set[str], numbers: dict[str, int]
) -> dict[str, list[Row]]:
    """Wait for the model's reading of the batch; rows of claims and of what is still to be asked."""
    before = _claims(snapshot, gone_units)
    known = dict(zip(before["id"].to_pylist(), before["n"].to_pylist(), strict=True))
    given = claims_as_rows(batch.claims, known, numbers) if batch.claims else []
    read: dict[str, list[Row]] = {"claims": given, "pending": [], "losses": []}
    if run.models is not None and (batch.readings or batch.unread):
        settled = settle(
            run.models.reader, batch.readings, batch.fresh, batch.unread, known, numbers, run.take
        )
        read = {**vars(settled), "claims": settled.claims + given}
        run.losses += settled.losses
    # A unit that is only read again keeps its place and perhaps its names: then nothing else says
    # what changed.
    subjects = [*before["subject"].to_pylist(), *(str(row["subject"]) for row in read["claims"])]
    run.claimed.update(map(normalise_name, subjects))
    return read


def _claims(snapshot: Snapshot | None, units: Collection[str]) -> pa.Table:
    columns = ["id", "n", "subject"]
    if snapshot is None:
        return graph_to_table("claims", []).select(columns)
    return snapshot.by_key("claims", sorted(units), "text_unit_id", columns)


def _side_tables(run: Run, units: set[str], read: Mapping[str, list[Row]]) -> dict[str, Change]:
    """Changes of claims and of the lists of what is pending and of what was lost; nothing where
    there was and is none."""
    there = run.manifest.tables if run.manifest else {}
    changes = {}
    if read["claims"] or "claims" in there:
        changes["claims"] = Change(sorted(units), graph_to_table("claims", read["claims"]))
    for name in ("pending", "losses"):
        if read[name] or name in there:
            gone = {f"{kind}:{unit}" for unit in units for kind in ("extract", "claims")}
            gone.update(row["id"] for row in read[name])
            changes[name] = Change(sorted(gone), graph_to_table(name, read[name]))
    return changes


def _replaced(snapshot: Snapshot | None, documents: set[str]) -> tuple[list[str], dict[str, Row]]:
    """Ids of the text units, and the passages by id, that the documents had."""
    if snapshot is None or not documents:
        return [], {}
    ids, columns = sorted(documents), ["id", "terms", "n_terms"]
    units = snapshot.by_key("text_units", ids, "document_id", ["id"])["id"].to_pylist()
    passages = snapshot.by_key("passages", ids, "document_id", columns).to_pylist()
    return units, {row["id"]: row for row in passages}


def _terms(
    snapshot: Snapshot | None, old: Mapping[str, Row], new: list[Row]
) -> tuple[Change, Counter[str]]:
    """How many passages hold each term, for the terms whose number moves; and by how much the total
    length moves."""
    rows = _counted(new)
    known: list[str] = []
    if snapshot is not None and (new or old):
        gone = _counted(list(old.values()))
        gone = gone.set_column(1, "passages", pc.negate(gone["passages"]))
        words = pc.unique(
            pa.chunked_array([*rows["term"].chunks, *gone["term"].chunks], pa.string())
        )
        before = snapshot.by_key("terms", words.to_pylist(), "term", ["term", "passages"])
        known = before["term"].to_pylist()
        summed = pa.concat_tables([rows, gone, before]).group_by("term")
        rows = summed.aggregate([("passages", "sum")]).rename_columns(TABLES["terms"].names)
        rows = rows.filter(pc.greater(rows["passages"], 0)).sort_by("term")
    length = sum(row["n_terms"] for row in new) - sum(row["n_terms"] for row in old.values())
    return Change(known, rows), Counter({"passage_terms": length})


def _counted(passages: Sequence[Row]) -> pa.Table:
    """In how many of the passages each term is, in order of term. In Arrow: all terms of a large
    text may be different, and Python would take ten times as much for each."""
    words = [
        pa.array([term for row in some for term in set(row["terms"].split())], pa.string())
        for some in (passages[at : at + 500] for at in range(0, len(passages), 500))
    ]
    found = pc.value_counts(pa.chunked_array(words, pa.string()))
    rows = pa.table(found.flatten(), schema=TABLES["terms"])
    return rows.take(pc.sort_indices(rows["term"]))


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
    texts = versions.get("passages", 0) != old.tables.get("passages", 0)  # topics may be others now
    run.commit(
        old.following(
            communities_generation=old.communities_generation,
            segments=[*old.segments, *segments],
            tables={**old.tables, **versions},
            counters=dict(counters),
            next=dict(numbers),
            sources=dict(sources),
            parameters=run.parameters,
            stale=["communities"] if run.touched or run.claimed or texts or old.stale else [],
        )
    )
