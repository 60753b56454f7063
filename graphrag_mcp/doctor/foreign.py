"""Faults in the index of another program: the tables of GraphRAG or a working directory of LightRAG.

Both are read as the import reads them (exchange/files.py), so one list of checks serves both. Three
more checks need what only one of the programs stores: ids and counts in GraphRAG's tables, its
Lance tables, and LightRAG's status of documents. Changes no file.

An update of GraphRAG appends the communities of new documents to the old ones, so two hierarchies
stand in one table. Entities are then in two communities of one level (`overlap`)."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from graphrag_mcp.exchange import files, graphrag, lightrag
from graphrag_mcp.packing.citations import cited

EXAMPLES = 3
LONGEST = 160  # characters of an example
BROKEN = "\ufffd"
_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
REPAIRS: dict[str, dict[str, str]] = {
    program: {kind: repair for kinds, repair in of.items() for kind in kinds.split() or [""]}
    for program, of in _LISTS["repairs"].items()
}
POINTERS = _LISTS["pointers"]
VECTORS = {table: tuple(names.split()) for table, names in _LISTS["vectors"].items()}
PLACES = _LISTS["places"]
# which `_references` looks at
IMPORTED = (("entities", "text_unit_ids"), ("communities", "entity_ids"))
NOT_DONE = ("pending", "processing", "parsing", "analyzing", "preprocessed")


@dataclass(frozen=True)
class Fault:
    """`kind` names the sort of fault, `where` the table or file. A remark harms nothing."""

    kind: str
    where: str
    count: int
    what: str
    examples: list[str]
    repair: str
    remark: bool = False


class Examination:
    """What is examined, and the faults found so far."""

    def __init__(self, program: str, index: files.Foreign) -> None:
        self.program, self.index = program, index
        self.found: list[Fault] = []

    def add(
        self, kind: str, where: str, examples: Iterable[object], what: str, remark: bool = False
    ) -> None:
        """A fault, unless there is no example of it."""
        repairs, place = REPAIRS[self.program], PLACES[self.program].get(where, where)
        every = iter(examples)
        if first := [
            " ".join(str(example).split())[:LONGEST] for example in islice(every, EXAMPLES)
        ]:
            count = len(first) + sum(1 for _ in every)
            fields = what, first, repairs.get(kind, repairs[""]), remark
            self.found.append(Fault(kind, place, count, *fields))

    def lost(
        self, where: str, pairs: Iterable[tuple[str, str]], known: Collection[str], what: str
    ) -> None:
        """`pairs`: who names what. Nothing is said where the other table could not be read."""
        named = (f"{who} names {id[:32]}" for who, id in pairs if id not in known)
        self.add("dangling", where, named if known else (), what)


def examine(folder: Path) -> list[Fault]:
    """Every fault. Raises BadInput for a folder that is no index of these kinds."""
    kind = files.program_of(folder)
    seen, tables = Examination(kind, files.Foreign(kind)), {}
    if kind == "lightrag":
        seen.index = lightrag.read(folder)
    else:
        tables = graphrag.tables_of(folder, seen.index)
        graphrag.convert(tables, seen.index)
    for name, what in seen.index.faults:
        seen.add("missing" if what == "is missing" else "unreadable", name, [name], what)
    for check in (_duplicates, _references, _gaps, _communities, _reports):
        check(seen)
    if kind == "lightrag":
        _status(seen, folder)
        _vector_files(seen, folder)
    else:
        _pointers(seen, tables)
        _counts(seen, tables)
        home = folder / "lancedb"
        for table, names in VECTORS.items() if home.is_dir() else ():
            ids = {str(row.get("id")) for row in tables[table]}
            read = partial(files.lance_ids, home, names)
            _vectors(seen, f"lancedb/{names[0]}", table, read, ids)
    return seen.found


# ---- checks of both programs ---------------------------------------------------------------------


def _shown(row: Any) -> str:
    """A row as an example."""
    if isinstance(row, files.SourceRelation):
        return f"{row.source or '(nothing)'} - {row.target or '(nothing)'}"
    if isinstance(row, files.SourceCommunity):
        return f"community {row.number}"
    if isinstance(row, files.SourceReport):
        return f"community {row.community}"
    return row.id[:32] if isinstance(row, files.SourceUnit) else row.title or row.id


def _several(values: Iterable[str]) -> list[str]:
    """Those that stand more than once."""
    return [name for name, count in Counter(values).items() if name and count > 1]


def _duplicates(seen: Examination) -> None:
    index = seen.index
    for where in ("documents", "units", "entities", "relations"):
        twice = _several(row.id for row in getattr(index, where))
        seen.add("duplicate", where, twice, "ids stand for several rows")
    for where in ("entities", "relations", "communities", "reports"):
        twice = _several(map(_shown, getattr(index, where)))
        seen.add("duplicate", where, twice, "names stand for several rows")


def _references(seen: Examination) -> None:
    """Every id leads to a row."""
    index = seen.index
    rows = index.documents, index.units, index.entities
    documents, units, entities = ({row.id for row in table} for table in rows)
    titles = {entity.title for entity in index.entities}
    numbers = {f"community {community.number}" for community in index.communities}
    children = (community for community in index.communities if community.parent not in (None, -1))
    parents = ((_shown(community), f"community {community.parent}") for community in children)
    named: list[tuple[str, str, set[str], Iterable[tuple[str, str]]]] = [
        ("units", "documents", documents, _listed(index.units, "documents")),
        ("entities", "text units", units, _listed(index.entities, "units")),
        ("relations", "text units", units, _listed(index.relations, "units")),
        (
            "relations",
            "entities",
            titles,
            ((_shown(relation), relation.source) for relation in index.relations),
        ),
        (
            "relations",
            "entities",
            titles,
            ((_shown(relation), relation.target) for relation in index.relations),
        ),
        ("claims", "text units", units, ((claim.subject, unit) for unit, claim in index.claims)),
        ("communities", "entities", entities, _listed(index.communities, "entities")),
        ("communities", "parents", numbers, parents),
        (
            "reports",
            "communities",
            numbers,
            ((report.title, _shown(report)) for report in index.reports),
        ),
    ]
    for where, others, known, pairs in named:
        seen.lost(where, pairs, known, f"{others} that rows name are not there")


def _listed(rows: Iterable[Any], column: str) -> Iterator[tuple[str, str]]:
    return ((who, id) for row in rows for who in [_shown(row)] for id in getattr(row, column))


def _gaps(seen: Examination) -> None:
    """Rows without a text, a description, a document or a text unit."""
    index = seen.index
    needed: list[tuple[str, Sequence[Any], tuple[str, ...]]] = [
        ("documents", index.documents, ("text",)),
        ("units", index.units, ("text", "documents")),
        ("entities", index.entities, ("title", "description", "units")),
        ("relations", index.relations, ("description", "units")),
        ("reports", index.reports, ("title", "summary", "full_content", "rank")),
    ]
    for where, rows, columns in needed:
        for column in columns:
            bare = (_shown(row) for row in rows if getattr(row, column) in ("", [], None))
            seen.add("empty", where, bare, f"rows have no {column}")
    homes = {id for unit in index.units for id in unit.documents}
    alone = [
        _shown(document)
        for document in index.documents
        if document.text and document.id not in homes
    ]
    what = "documents have no text unit, so no search finds them"
    seen.add("bare", "documents", alone if index.units else (), what)
    broken = [_shown(unit) for unit in index.units if BROKEN in unit.text]
    what = "texts hold U+FFFD: characters were cut in halves by tokens"
    seen.add("broken", "units", broken, what)


def _communities(seen: Examination) -> None:
    """Every entity that has a relationship is in one community of each level."""
    index = seen.index
    title_of = {entity.id: entity.title for entity in index.entities}
    communities_of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for community in index.communities:
        for id in dict.fromkeys(community.entities):
            communities_of[id, community.level].append(community.number)
    linked = {end for relation in index.relations for end in (relation.source, relation.target)}
    inside = {id for id, _ in communities_of}
    outside = [title for id, title in title_of.items() if title in linked and id not in inside]
    what = "entities have relationships and are in no community: no report speaks of them"
    seen.add("outside", "entities", outside if index.communities else (), what)
    overlap = [
        f"{title_of.get(id, id)}: communities {', '.join(map(str, numbers))} of level {level}"
        for (id, level), numbers in communities_of.items()
        if len(numbers) > 1
    ]
    what = "entities are in several communities of one level, as after an update that was appended"
    seen.add("overlap", "communities", overlap, what)


def _reports(seen: Examination) -> None:
    """Communities without a report, and numbers in reports that no row has."""
    index = seen.index
    reported = {report.community for report in index.reports}
    without = [
        _shown(community) for community in index.communities if community.number not in reported
    ]
    seen.add("unreported", "communities", without if reported else (), "communities have no report")
    known = {
        "Entities": {entity.number for entity in index.entities},
        "Relationships": {relation.number for relation in index.relations},
        "Sources": {unit.number for unit in index.units},
    }
    lost = {
        f"{_shown(report)}: {group} ({each})": None
        for report in index.reports
        for citation in cited(report.full_content)
        for group, numbers in citation.numbers.items()
        for each in numbers
        if known.get(group) and each not in known[group]
    }
    seen.add("reference", "reports", lost, "references name rows that are not there")


def _vectors(
    seen: Examination, where: str, rows: str, read: Callable[[], list[str] | None], ids: set[str]
) -> None:
    """A vector store opens and holds what it should, no less and no more."""
    try:
        stored = read() or []
    except files.Unreadable as error:
        seen.add("unreadable", where, [error], "vectors do not open")
        return
    what = f"{rows} have no vector: {len(ids & {*stored}):,} of {len(ids):,} have one"
    seen.add("vectors", where, sorted(ids - {*stored}), what)
    seen.add("orphans", where, sorted({*stored} - ids), f"vectors belong to no row of {rows}")


# ---- GraphRAG ------------------------------------------------------------------------------------

Tables = Mapping[str, list[files.Row]]


def _name(row: files.Row) -> str:
    ends = " - ".join(filter(None, (files.text(row, "source"), files.text(row, "target"))))
    return files.text(row, "title", "name")[:60] or ends or files.text(row, "id")[:32]


def _pointers(seen: Examination, tables: Tables) -> None:
    """Columns of ids that the import does without: an update leaves ids of rows that have gone."""
    known = {name: {str(row.get("id")) for row in rows} for name, rows in tables.items()}
    for table, rows in tables.items():
        for column, other in POINTERS.items():
            if (table, column) not in IMPORTED:
                pairs = (
                    (who, id)
                    for row in rows
                    if (named := files.ids(row, column))
                    for who in [_name(row)]
                    for id in named
                )
                seen.lost(table, pairs, known[other], f"{column} lead nowhere in {other}")


def _counts(seen: Examination, tables: Tables) -> None:
    """Numbers that are not what is counted. Pairs count once whatever their direction."""
    pairs = {tuple(sorted((relation.source, relation.target))) for relation in seen.index.relations}
    degree = Counter(end for pair in pairs for end in pair)
    counted: dict[tuple[str, str], Callable[[files.Row], int]] = {
        ("entities", "frequency"): lambda row: len({*files.ids(row, "text_unit_ids")}),
        ("relationships", "combined_degree"): lambda row: sum(
            degree[files.text(row, end)] for end in ("source", "target")
        ),
        ("communities", "size"): lambda row: len({*files.ids(row, "entity_ids")}),
    }
    if pairs:
        counted["entities", "degree"] = lambda row: degree[files.text(row, "title", "name")]
    for (table, column), count in counted.items():
        wrong = [
            f"{_name(row)}: {row[column]}, recounted {count(row)}"
            for row in tables[table]
            if column in row and files.number(row, column) != count(row)
        ]
        seen.add(column, table, wrong, f"values of {column} are not what is counted")


# ---- LightRAG ------------------------------------------------------------------------------------


def _status(seen: Examination, folder: Path) -> None:
    """Documents that LightRAG has not finished. A status that cannot be read was found before."""
    try:
        status = files.json_of(folder, files.STATUS) or {}
    except files.Unreadable:
        return
    state = {id: files.text(row, "status").lower().rpartition(".")[2] for id, row in status.items()}
    errors = ((id, files.text(row, "error_msg", "error")[:80]) for id, row in status.items())
    failed = [f"{id}: {error}" for id, error in errors if state[id] == "failed"]
    seen.add("failed", files.STATUS, failed, "documents failed")
    waiting = [id for id, name in state.items() if name in NOT_DONE]
    seen.add("pending", files.STATUS, waiting, "documents are not done")


def _vector_files(seen: Examination, folder: Path) -> None:
    index = seen.index
    subjects = {
        "chunks": {unit.id for unit in index.units},
        "entities": {entity.title for entity in index.entities},
        "relationships": {
            " - ".join(sorted((relation.source, relation.target))) for relation in index.relations
        },
    }
    for kind, expected in subjects.items():
        _vectors(seen, f"vdb_{kind}.json", kind, partial(_subjects, folder, kind), expected)


def _subjects(folder: Path, kind: str) -> list[str]:
    """What the vectors of a file stand for."""
    rows = files.vectors_of(folder, kind) or []
    if kind == "chunks":
        return [files.text(row, "__id__") for row in rows]
    names = ("entity_name",) if kind == "entities" else ("src_id", "tgt_id")
    ends = ([lightrag.name_of(files.text(row, name)) for name in names] for row in rows)
    return [" - ".join(sorted(pair)) for pair in ends]
