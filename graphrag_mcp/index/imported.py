"""Imported content as each later run needs it.

The log of imports is part of the truth, as the documents are: it gives for a document its text
units with their names and statements, so whatever derives the tables again gives what was
imported. Imported communities and reports stand in the place of computed ones: a top community keeps its
subtree as long as its entities are there and none is linked with an entity that no import brought."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from typing_extensions import TypedDict

from graphrag_mcp.errors import Damaged
from graphrag_mcp.index import communities
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.communities import ClusterParams, Community, Hierarchy, Texts, Way
from graphrag_mcp.index.extract import Mentions, StatedRelation, UnitNames
from graphrag_mcp.index.extract.placing import Placing
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import REPAIR, Manifest
from graphrag_mcp.store.segments import GRAPHS, IMPORTS
from graphrag_mcp.store.stored import Count, Finite
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.spans import Span, Unit
from graphrag_mcp.text.terms import Lines, content_id, lists_of, normalise_name
from graphrag_mcp.text.tokens import count_tokens

Edges = Sequence[tuple[str, str, float]]
Row = dict[str, Any]


class _Community(TypedDict):
    id: str
    level: Count
    parent: str
    members: list[str]


class _Report(TypedDict):
    community: str
    members: list[str]
    title: str
    summary: str
    full_content: str
    rank: Finite | None
    rating_explanation: str
    findings: list[dict[str, str]]
    method: str


class _Graph(TypedDict):
    """Communities and reports in the log of imports."""

    communities: list[_Community]
    reports: list[_Report]


@dataclass
class ImportedGraphs:
    """What all imports of a corpus brought: by the top community, the communities of each of its entities,
    coarsest first; and reports."""

    ways: dict[str, dict[str, Way]] = field(default_factory=dict)
    reports: dict[str, Row] = field(default_factory=dict)  # by the hash of their members

    def report(self, community: Community) -> Row | None:
        """The report that was imported for these members."""
        found = self.reports.get(content_id(*community.members))
        return found.get(community.id) or next(iter(found.values())) if found else None

    def fitting(self, entities: Container[str], edges: Edges) -> dict[str, Way]:
        """The ways of the entities of top communities whose entities are all there, in no other one, and
        linked with no stranger."""
        root_of: dict[str, str] = {}
        for root, ways in sorted(self.ways.items()):
            if all(member in entities and member not in root_of for member in ways):
                root_of |= dict.fromkeys(ways, root)
        linked = {
            root_of[one]
            for ends in edges
            for one, other in (ends[:2], ends[1::-1])
            if one in root_of and other not in root_of
        }
        return {id: self.ways[root][id] for id, root in root_of.items() if root not in linked}


def imported_graphs(snapshot: Snapshot) -> ImportedGraphs:
    """From the log of imports; the last word of each import counts."""
    found = ImportedGraphs()
    for _, data in sorted(_latest(snapshot.folder, snapshot.manifest).items()):
        body = _read(data, _Graph)
        ways: dict[str, Way] = {}
        for entry in body["communities"]:  # parents come before children
            for member in entry["members"]:
                ways[member] = (*ways.get(member, ()), entry["id"])
        for root, pairs in lists_of((way[0], (id, way)) for id, way in ways.items()).items():
            found.ways.setdefault(root, dict(pairs))
        for report in body["reports"]:
            found.reports.setdefault(content_id(*report["members"]), {})[report["community"]] = report
    return found


def hierarchy(
    found: ImportedGraphs, texts: Texts, entities: Mapping[str, Sequence[str]], edges: Edges, params: ClusterParams
) -> Hierarchy:
    """Imported subtrees that still fit, and the rest clustered as ever. A text unit belongs to the
    imported community of most of its entities where all of these are in one."""
    given = found.fitting(entities, edges)
    left = {id: units for id, units in entities.items() if id not in given}
    open_ = {unit for units in left.values() for unit in units}
    ways_of: dict[str, Counter[Way]] = defaultdict(Counter)
    for id in sorted(given):
        for unit in entities[id]:
            ways_of[unit][given[id]] += 1
    closed = ((unit, ways) for unit, ways in ways_of.items() if unit not in open_)
    placed = {unit: min(ways, key=lambda way: (-ways[way], way)) for unit, ways in closed}
    rest = communities.ways_of(communities.without(texts, placed), params, {})
    links = [edge for edge in edges if edge[0] not in given and edge[1] not in given]
    return communities.tree_with(rest | placed, left, links, given=given)


def report(row: Row, base: Report) -> Report:
    """The imported words on the rows of the community as it is."""
    return replace(
        base,
        title=row["title"] or base.title,
        summary=row["summary"] or base.summary,
        full_content=row["full_content"] or base.full_content,
        rank=base.rank if row["rank"] is None else row["rank"],
        rating_explanation=row["rating_explanation"],
        findings=json.dumps(row["findings"], ensure_ascii=False),
        method=row["method"],
    )


# uri: of a document, or of the import itself for its communities and reports; id: hash of `data`,
# which is JSON. A row counts for a document whose `file_sha` is that hash.
IMPORT_LOG = pa.schema([("uri", pa.string()), ("id", pa.string()), ("data", pa.string())])
PREFIX = "import:"  # of `Document.file`; no folder's label holds a colon
WHOLE = 1 << 40  # tokens: a unit as the import cut it is never cut again


@dataclass(frozen=True, slots=True)
class Name:
    key: str
    title: str
    type: str
    description: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    source: str  # keys of names
    target: str
    description: str
    keywords: str
    weight: float


@dataclass(slots=True)
class UnitRecord:
    """A text unit as characters of its document, with what was found in it."""

    start: int
    end: int
    names: list[int] = field(default_factory=list)  # places in the document's lists
    statements: list[int] = field(default_factory=list)


@dataclass(slots=True)
class DocumentRecord:
    """What one document of an import has besides its text; `by` is `imported:<program>`."""

    by: str
    units: list[UnitRecord] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    # ---- what indexing asks for -------------------------------------------------------------------

    def cut(self, text: str, params: ChunkParams) -> list[tuple[Unit, UnitRecord | None]]:
        """The document's units as imported, with the passages that tile them, and the record of
        each; what none of them holds is cut by us and has no record."""
        lines, found, reached = Lines(text), [], 0
        inner = ChunkParams(size=WHOLE, overlap=0, passage_size=params.passage_size)
        for record in sorted(self.units, key=lambda unit: (unit.start, unit.end)):
            found += [(unit, None) for unit in _between(text, reached, record.start, params, lines)]
            core = max(record.start, min(reached, record.end))
            tiles = _passages(text, core, record.end, inner, lines)
            tiles = tiles or _passages(text, record.start, record.end, inner, lines)
            if tiles:
                tokens = count_tokens(text[record.start : record.end])
                span = _span(lines, record.start, record.end)
                found.append((Unit(0, span, tokens, tiles), record))
            reached = max(reached, record.end)
        found += [(unit, None) for unit in _between(text, reached, len(text), params, lines)]
        return [(replace(unit, index=at), record) for at, (unit, record) in enumerate(found)]

    def extractor(self, record: UnitRecord | None) -> RecordExtractor:
        return RecordExtractor(self, record)

    def names_of(self, unit_id: str, text: str, record: UnitRecord | None) -> tuple[UnitNames, Mentions]:
        """The unit's names and statements as rows, and every mention as its start in the unit's
        text and its key."""
        statements: list[StatedRelation] = []
        names = UnitNames(unit_id, text, [], statements)
        if record is None:
            return names, []
        placing = Placing(unit_id, text, self.by, "\n")
        for name in map(self.names.__getitem__, record.names):
            placing.find(name.key, name.title)
            row = placing.row(name.key, name.title, name.type, name.description)
            row.count = max(row.count, len(name.aliases) + 1)  # its own form is the commonest
            placing.add(row, name.title)
            for rank, form in enumerate(name.aliases):
                if key := normalise_name(form):
                    placing.find(key, form)
                    row = placing.row(key, form, name.type, name.description)
                    row.count, row.description = len(name.aliases) - rank, ""  # in the order given
                    row.alias_of = name.key if key != name.key else ""
                    placing.add(row, form)
        names.named = list(placing.named.values())
        for said in map(self.statements.__getitem__, record.statements):
            words = f"{said.source} {said.target} {said.description}"
            told = said.description, said.keywords, said.weight
            statements.append(placing.stated(said.source, said.target, told, words))
        mentions = {(start, key) for key, found in placing.found.items() for start, _ in found}
        mentions |= {(row.start, row.key) for row in names.named}
        return names, sorted(mentions)


@dataclass(frozen=True)
class RecordExtractor:
    """The names and statements that an import has of one text unit; none for a unit between."""

    document: DocumentRecord
    record: UnitRecord | None

    def extract(self, unit: Unit, id: str, text: str) -> tuple[UnitNames, Mentions]:
        return self.document.names_of(id, text, self.record)


def record_of(data: str) -> DocumentRecord:
    """The record of a document, with keys as this release makes them: an earlier one may have folded
    less. Damaged where it is none."""
    found = _read(data, DocumentRecord)
    sizes = {name: len(getattr(found, name)) for name in ("names", "statements")}
    if any(not 0 <= at < sizes[name] for unit in found.units for name in sizes for at in getattr(unit, name)):
        raise Damaged("a record of an import names what it does not hold", REPAIR)
    found.names = [replace(name, key=normalise_name(name.key)) for name in found.names]
    found.statements = [
        replace(statement, source=normalise_name(statement.source), target=normalise_name(statement.target))
        for statement in found.statements
    ]
    return found


def _read(data: str, schema: Any) -> Any:
    try:
        return stored.parsed(data, schema)
    except ValueError as error:
        raise Damaged(f"a record of an import cannot be read ({error})", REPAIR) from error


# ---- places in a text ----------------------------------------------------------------------------


def _between(text: str, start: int, end: int, params: ChunkParams, lines: Lines) -> Iterator[Unit]:
    """Units of our own for text that no imported unit holds, so that all can be found."""
    for unit in chunk(text[start:end], params):
        spans = (unit.span, *unit.passages)
        span, *tiles = (_span(lines, place.start + start, place.end + start) for place in spans)
        yield Unit(0, span, unit.n_tokens, tuple(tiles))


def _passages(text: str, start: int, end: int, params: ChunkParams, lines: Lines) -> tuple[Span, ...]:
    units = _between(text, start, end, params, lines)
    return tuple(passage for unit in units for passage in unit.passages)


def _span(lines: Lines, start: int, end: int) -> Span:
    return Span(start, end, lines.at(start), lines.at(max(start, end - 1)))


# ---- the log of imports --------------------------------------------------------------------------


class ImportLog:
    """What was imported before, and in this call. Reads nothing where nothing ever was."""

    def __init__(self, folder: Path, manifest: Manifest | None) -> None:
        self.folder, self.manifest = folder, manifest
        self._table: pa.Table | None = None
        self._place: dict[tuple[str, str], int] = {}
        self.new: dict[tuple[str, str], str] = {}  # (uri, hash) -> data of this call

    def of(self, document: Document) -> DocumentRecord | None:
        """The record of a document that came by an import; None for every other."""
        if not document.file.startswith(PREFIX):
            return None
        at = (document.uri, document.file_sha)
        if at in self.new:
            return record_of(self.new[at])
        if self._table is None:
            self._table = load(self.folder, self.manifest, IMPORTS)
            pairs = zip(values_of(self._table["uri"]), values_of(self._table["id"]), strict=True)
            for place, key in enumerate(pairs):
                self._place.pop(key, None)  # what was said again is the newest
                self._place[key] = place
        if at not in self._place:
            what = f"what was imported with {document.uri} is not in the log of imports"
            raise Damaged(what, "Run graphrag-mcp import again with the folder it came from")
        return record_of(self._table["data"][self._place[at]].as_py())

    def rows(self, document: Document) -> list[Row]:
        """What this call has to write for a document."""
        at = (document.uri, document.file_sha)
        return [row_of(document.uri, self.new[at])] if at in self.new else []

    def latest(self, uri: str) -> str:
        """What an import brought last of communities and reports, "" where it never did."""
        return _latest(self.folder, self.manifest).get(uri, "")


def _latest(folder: Path, manifest: Manifest | None) -> dict[str, str]:
    """What each import brought last of communities and reports, by its uri."""
    table = load(folder, manifest, GRAPHS)
    return dict(zip(values_of(table["uri"]), values_of(table["data"]), strict=True))


def load(folder: Path, manifest: Manifest | None, kind: str) -> pa.Table:
    """All rows of a kind, oldest first. Raises Damaged where they cannot be trusted."""
    if manifest is None or not any(segment["kind"] == kind for segment in manifest.segments):
        return IMPORT_LOG.empty_table()
    table = segment_store.load(folder, manifest, kind)
    if table.schema.names != IMPORT_LOG.names:
        what = "the log of imports has other columns than were written"
        raise Damaged(what, "Restore truth/ from a backup")
    return table.combine_chunks()


def segments(folder: Path, rows: Sequence[Row]) -> list[Row]:
    """Write rows durably; the entries for the manifest."""
    entries = []
    for kind in (IMPORTS, GRAPHS):
        rows_of_kind = [row for row in rows if row["uri"].startswith(PREFIX) == (kind == GRAPHS)]
        if rows_of_kind:
            entries.append(segment_store.append(folder, kind, pa.Table.from_pylist(rows_of_kind, IMPORT_LOG)))
    return entries


def row_of(uri: str, data: str) -> Row:
    return {"uri": uri, "id": sha_of(data), "data": data}


def sha_of(data: str) -> str:
    return content_id("import", data)
