"""Doctor for indexes of other programs: damage in GraphRAG's tables or LightRAG's storage.

Gives faults, each with a count, up to three examples and what to do about it; none for a sound
index. Changes no file. An update of GraphRAG appends the communities of new documents to the old
ones, so two hierarchies stand in one table; that has a fault of its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import NotFound
from graphrag_mcp.exchange.files import (
    CHUNKS,
    DOCS,
    GRAPH,
    SEP,
    TABLES,
    Row,
    Unreadable,
    empty,
    graph_of,
    ids,
    json_of,
    kind_of,
    lance_ids,
    number,
    parts,
    path_of,
    rows_of,
    text,
    vectors_of,
    whole,
)
from graphrag_mcp.packing.citations import cited

EXAMPLES = 3
LONGEST = 160  # characters of an example
AGAIN = "Run `graphrag index` again; its cache answers what was asked before"
UPDATE = "Run `graphrag index` afresh: an update does not count these again"


@dataclass(frozen=True)
class Fault:
    """`kind` names the sort of fault, `where` the table or file. A remark is worth knowing and
    harms nothing.
    """

    kind: str
    where: str
    count: int
    what: str
    examples: list[str]
    repair: str
    remark: bool = False


@dataclass
class Tables:
    """Rows of the tables that could be read, by name."""

    rows: dict[str, list[Row]] = field(default_factory=dict)

    def of(self, name: str) -> list[Row]:
        return self.rows.get(name, [])

    def known(self, name: str) -> set[str]:
        return {str(row.get("id")) for row in self.of(name)}


def fault(
    kind: str, where: str, examples: Sequence[str], what: str, repair: str, *, remark: bool = False
) -> list[Fault]:
    """One fault of these, none for an empty list."""
    if not examples:
        return []
    first = [" ".join(str(one).split())[:LONGEST] for one in examples[:EXAMPLES]]
    return [Fault(kind, where, len(examples), what, first, repair, remark)]


def dangling(
    tables: Tables,
    where: str,
    rows: Sequence[Row],
    column: str,
    table: str,
    shown: Callable[[Row], str],
) -> Iterator[Fault]:
    """Ids in a column that are not in the table they point to; nothing is said of a table that
    could not be read.
    """
    if table not in tables.rows:
        return
    known = tables.known(table)
    lost = [
        f"{shown(row)} names {id[:32]}"
        for row in rows
        for id in ids(row, column)
        if id not in known
    ]
    yield from fault("dangling", where, lost, f"{column} lead nowhere in {table}", AGAIN)


VECTORS = {  # table -> names of its Lance tables, the newest first
    "entities": ("entity_description", "default-entity-description"),
    "text_units": ("text_unit_text", "default-text_unit-text"),
    "community_reports": ("community_full_content", "default-community-full_content"),
}
CLUSTER = "Run `graphrag index` afresh: communities and reports are made of the whole graph then"
REPORT = "Write these reports again: run the workflow create_community_reports"
EMBED = "Run the workflow generate_text_embeddings over the whole index"


def _shown(row: Row) -> str:
    return f"community {whole(row, 'community', 'human_readable_id')}"


def community_faults(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("communities")
    by_number: dict[int, Row] = {}
    twice = []
    for row in rows:
        own = whole(row, "community", "human_readable_id")
        if own is None:
            continue
        if own in by_number:
            twice.append(_shown(row))
        by_number.setdefault(own, row)
    yield from fault(
        "duplicate", "communities", twice, "numbers stand for several communities", CLUSTER
    )
    yield from fault(
        "nan",
        "communities",
        [text(row, "id") for row in rows if whole(row, "community") is None],
        "community is missing or no number",
        CLUSTER,
    )
    yield from _tree(by_number)
    yield from _members(tables, rows, by_number)
    for column, table in (
        ("entity_ids", "entities"),
        ("relationship_ids", "relationships"),
        ("text_unit_ids", "text_units"),
    ):
        yield from dangling(tables, "communities", rows, column, table, _shown)
    wrong = [
        f"{_shown(row)}: {number(row, 'size'):g}, recounted {len(set(ids(row, 'entity_ids')))}"
        for row in rows
        if number(row, "size") is not None
        and "entity_ids" in row
        and number(row, "size") != len(set(ids(row, "entity_ids")))
    ]
    yield from fault(
        "size", "communities", wrong, "sizes are not the number of their entities", CLUSTER
    )
    yield from _reports(tables, by_number)
    yield from _references(tables)
    yield from _claims(tables)


def _tree(by_number: dict[int, Row]) -> Iterator[Fault]:
    """Parents and children say the same of each other, one level apart."""
    lost, levels, apart, outside = [], [], [], []
    children: dict[int, set[int]] = defaultdict(set)
    for own, row in by_number.items():
        parent = whole(row, "parent")
        if parent is None or parent == -1:
            if (whole(row, "level") or 0) > 0 and "parent" in row:
                levels.append(f"{_shown(row)}: level {whole(row, 'level')} without a parent")
            continue
        children[parent].add(own)
        above = by_number.get(parent)
        if above is None:
            lost.append(f"{_shown(row)} names {parent}")
            continue
        if (whole(row, "level") or 0) != (whole(above, "level") or 0) + 1:
            levels.append(
                f"{_shown(row)}: level {whole(row, 'level')} under level {whole(above, 'level')}"
            )
        extra = set(ids(row, "entity_ids")) - set(ids(above, "entity_ids"))
        if extra and "entity_ids" in above:
            outside.append(
                f"{_shown(row)}: {len(extra)} of its entities are not in community {parent}"
            )
    for own, row in by_number.items():
        said = {int(one) for one in ids(row, "children") if one.lstrip("-").isdigit()}
        if "children" in row and said != children.get(own, set()):
            apart.append(
                f"{_shown(row)} names {sorted(said)}, as parent it is named by {sorted(children.get(own, ()))}"
            )
    yield from fault("dangling", "communities", lost, "parents are not there", CLUSTER)
    yield from fault(
        "level", "communities", levels, "levels do not follow from the parents", CLUSTER
    )
    yield from fault("children", "communities", apart, "parents and children disagree", CLUSTER)
    yield from fault(
        "members",
        "communities",
        outside,
        "communities hold entities that their parent does not",
        CLUSTER,
    )


def _members(tables: Tables, rows: list[Row], by_number: dict[int, Row]) -> Iterator[Fault]:
    """Every linked entity is in one community of each hierarchy."""
    if not rows or "entity_ids" not in rows[0]:
        return
    title_of = {text(row, "id"): text(row, "title", "name") for row in tables.of("entities")}
    held: dict[str, list[Row]] = defaultdict(list)
    for row in by_number.values():
        for id in dict.fromkeys(ids(row, "entity_ids")):
            held[id].append(row)
    linked = {text(row, end) for row in tables.of("relationships") for end in ("source", "target")}
    out = [title or id for id, title in title_of.items() if id not in held and title in linked]
    yield from fault(
        "outside",
        "entities",
        out,
        "entities have relationships and are in no community: no report and "
        "no global search speaks of them",
        CLUSTER,
    )
    both = []
    for id, places in held.items():
        levels = Counter(whole(row, "level") or 0 for row in places)
        if max(levels.values()) > 1:
            level = min(one for one, count in levels.items() if count > 1)
            numbers = [
                str(whole(row, "community"))
                for row in places
                if (whole(row, "level") or 0) == level
            ]
            both.append(
                f"{title_of.get(id, id)}: communities {', '.join(numbers)} of level {level}"
            )
    periods = sorted({text(row, "period") for row in rows} - {""})
    appended = len(periods) > 1
    what = "entities are in several communities of one level"
    yield from fault(
        "overlap",
        "communities",
        both,
        what + (": an update was appended" if appended else ""),
        CLUSTER,
    )
    several = [
        f"period {period}: {sum(text(row, 'period') == period for row in rows)} communities"
        for period in periods
    ]
    yield from fault(
        "period",
        "communities",
        several if appended else [],
        "hierarchies of several runs stand beside "
        "each other: communities were appended by an update",
        CLUSTER,
    )


def _reports(tables: Tables, by_number: dict[int, Row]) -> Iterator[Fault]:
    rows = tables.of("community_reports")
    if "community_reports" not in tables.rows:
        return
    of: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of[whole(row, "community", "human_readable_id") or 0].append(row)
    if "communities" in tables.rows:
        without = [f"community {own}" for own in sorted(by_number) if own not in of]
        yield from fault("unreported", "communities", without, "communities have no report", REPORT)
        lost = [
            f"{_shown(row)}: {text(row, 'title')[:60]}"
            for own in sorted(of)
            if own not in by_number
            for row in of[own]
        ]
        yield from fault(
            "dangling",
            "community_reports",
            lost,
            "reports speak of communities that are not there",
            REPORT,
        )
    twice = [f"community {own}" for own, several in of.items() if len(several) > 1]
    yield from fault(
        "duplicate", "community_reports", twice, "communities have several reports", REPORT
    )
    stale, apart = [], []
    for own, several in sorted(of.items()):
        community = by_number.get(own)
        for row in several if community else ():
            for column in ("size", "period"):
                said, there = text(row, column), text(community, column)
                if said and there and said != there:
                    stale.append(f"community {own}: {column} {said} in the report, {there} now")
                    break
            for column in ("level", "parent"):
                if whole(row, column) is not None and whole(row, column) != whole(
                    community, column
                ):
                    apart.append(
                        f"community {own}: {column} {whole(row, column)}, the community says "
                        f"{whole(community, column)}"
                    )
            if (
                "children" in row
                and "children" in community
                and set(ids(row, "children")) != set(ids(community, "children"))
            ):
                apart.append(f"community {own}: other children than the community")
    yield from fault(
        "stale",
        "community_reports",
        stale,
        "communities have changed since their report was written",
        REPORT,
    )
    yield from fault(
        "disagree", "community_reports", apart, "reports and communities disagree", REPORT
    )
    for column in ("title", "summary", "full_content"):
        blank = [_shown(row) for row in rows if column in row and not text(row, column)]
        yield from fault(
            "empty", "community_reports", blank, f"reports have an empty {column}", REPORT
        )
    odd = [
        f"{_shown(row)}: {row['rank']}"
        for row in rows
        if "rank" in row and number(row, "rank") is None
    ]
    yield from fault("nan", "community_reports", odd, "ranks are missing or no numbers", REPORT)
    far = [
        f"{_shown(row)}: {number(row, 'rank'):g}"
        for row in rows
        if not 0 <= (number(row, "rank") or 0) <= 10
    ]
    yield from fault("rank", "community_reports", far, "ranks are not from 0 to 10", REPORT)


def _references(tables: Tables) -> Iterator[Fault]:
    """Numbers in reports that no row has: the model made them up, or the rows have gone."""
    groups = {"Entities": "entities", "Relationships": "relationships", "Sources": "text_units"}
    known = {
        group: {whole(row, "human_readable_id") for row in tables.of(name)}
        for group, name in groups.items()
    }
    lost = []
    for row in tables.of("community_reports"):
        for one in cited(text(row, "full_content", "summary")):
            lost += [
                f"{_shown(row)}: {group} ({each})"
                for group, numbers in one.numbers.items()
                for each in numbers
                if group in known and groups[group] in tables.rows and each not in known[group]
            ]
    yield from fault(
        "reference",
        "community_reports",
        list(dict.fromkeys(lost)),
        "references name rows that are not there",
        REPORT,
    )


def _claims(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("covariates")

    def shown(row: Row) -> str:
        return text(row, "id")[:32]

    units, titles = (
        tables.known("text_units"),
        {text(row, "title", "name") for row in tables.of("entities")},
    )
    lost = [
        f"{shown(row)} names {text(row, 'text_unit_id')[:32]}"
        for row in rows
        if text(row, "text_unit_id") not in units
    ]
    if "text_units" in tables.rows:
        yield from fault("dangling", "covariates", lost, "text_unit_id leads nowhere", AGAIN)
    blank = [shown(row) for row in rows if not text(row, "description")]
    yield from fault("empty", "covariates", blank, "claims have an empty description", AGAIN)
    strange = [text(row, "subject_id") for row in rows if text(row, "subject_id") not in titles]
    if "entities" in tables.rows:
        yield from fault(
            "subject",
            "covariates",
            strange,
            "subjects are no entity, so no search joins these claims",
            UPDATE,
            remark=True,
        )


def vector_faults(folder: Path, tables: Tables) -> Iterator[Fault]:
    """The Lance tables hold the ids of their tables, no fewer and no more."""
    home = folder / "lancedb"
    if not home.is_dir():
        return
    for table, names in VECTORS.items():
        where = f"lancedb/{names[0]}"
        try:
            found = lance_ids(home, names)
        except Unreadable as error:
            yield from fault("unreadable", where, [str(error)], "the vectors do not open", EMBED)
            continue
        if table not in tables.rows:
            continue
        if found is None:
            if tables.of(table):
                yield from fault("missing", where, [names[0]], f"{table} have no vectors", EMBED)
            continue
        rows, held = tables.known(table), set(found)
        without = sorted(rows - held)
        what = f"{table} have no vector: {len(held & rows):,} of {len(rows):,} have one"
        if without and held and len(held & rows) * 2 <= len(rows):
            what += ", as after an update that embedded only what was new"
        yield from fault("vectors", where, without, what, EMBED)
        yield from fault(
            "orphans", where, sorted(held - rows), f"vectors belong to no row of {table}", EMBED
        )
        twice = [id for id, count in Counter(found).items() if count > 1]
        yield from fault("duplicate", where, twice, "ids have several vectors", EMBED)


LIGHTRAG_AGAIN = "Delete these documents in LightRAG and insert them again; its cache answers what was asked before"
LIGHTRAG_VECTORS = "Delete the vdb_*.json files and insert the documents again, or rebuild the vectors with LightRAG's own tool"
BROKEN = "\ufffd"


def lightrag_faults(folder: Path) -> Iterator[Fault]:
    """Every fault, in the order of the files."""
    found: list[Fault] = []
    docs = _read(folder, DOCS, found, True)
    chunks = _read(folder, CHUNKS, found, True)
    status = _read(folder, "kv_store_doc_status.json", found, False)
    nodes, edges = _graph(folder, found)
    yield from found
    yield from _chunks(docs, chunks)
    yield from _status(status, docs, chunks)
    yield from _nodes(nodes, edges, chunks)
    yield from _edges(nodes, edges, chunks)
    yield from _vectors(folder, nodes, edges, chunks)
    yield from _lists(folder, docs, nodes, edges)


Nodes = dict[str, Row]
Edges = list[tuple[str, str, Row]]
Store = dict[str, Row] | None


def _read(folder: Path, name: str, found: list[Fault], needed: bool) -> Store:
    try:
        rows = json_of(folder, name)
    except Unreadable as error:
        found += fault(
            "unreadable", name, [str(error)], "the file does not open as JSON", LIGHTRAG_AGAIN
        )
        return None
    if rows is None and needed:
        found += fault("missing", name, [name], "the file is missing", LIGHTRAG_AGAIN)
    return rows


def _graph(folder: Path, found: list[Fault]) -> tuple[Nodes | None, Edges]:
    try:
        graph = graph_of(folder)
    except Unreadable as error:
        found += fault(
            "unreadable", GRAPH, [str(error)], "the file does not open as GraphML", LIGHTRAG_AGAIN
        )
        return None, []
    if graph is None:
        found += fault("missing", GRAPH, [GRAPH], "the file is missing", LIGHTRAG_AGAIN)
        return None, []
    twice = [name for name, count in Counter(name for name, _ in graph[0]).items() if count > 1]
    found += fault("duplicate", GRAPH, twice, "names stand for several entities", LIGHTRAG_AGAIN)
    return dict(graph[0]), graph[1]


def _chunks(docs: Store, chunks: Store) -> Iterator[Fault]:
    if chunks is None:
        return
    homes: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for id, row in chunks.items():
        homes[text(row, "full_doc_id")].append((id, row))
    yield from fault(
        "homeless",
        CHUNKS,
        [id for id, _ in homes.get("", ())],
        "chunks name no document",
        LIGHTRAG_AGAIN,
    )
    yield from fault(
        "empty",
        CHUNKS,
        [id for id, row in chunks.items() if not text(row, "content")],
        "chunks have no text",
        LIGHTRAG_AGAIN,
    )
    broken = [id for id, row in chunks.items() if BROKEN in text(row, "content")]
    yield from fault(
        "broken",
        CHUNKS,
        broken,
        "texts hold U+FFFD: characters were cut in halves by tokens",
        "Insert the documents again, split by a character or with another tokenizer",
    )
    orders = []
    for home, rows in homes.items():
        places = sorted(
            place for _, row in rows if isinstance(place := row.get("chunk_order_index"), int)
        )
        if home and places and places != list(range(len(rows))):
            orders.append(home)
    yield from fault(
        "order",
        CHUNKS,
        orders,
        "documents whose chunks are not numbered 0, 1, 2, ...",
        LIGHTRAG_AGAIN,
    )
    if docs is None:
        return
    lost = [
        f"{rows[0][0]} names {home}" for home, rows in homes.items() if home and home not in docs
    ]
    yield from fault("dangling", CHUNKS, lost, "documents of chunks are not there", LIGHTRAG_AGAIN)
    bare = [id for id, row in docs.items() if id not in homes and text(row, "content")]
    yield from fault(
        "bare", DOCS, bare, "documents have no chunk, so no search finds them", LIGHTRAG_AGAIN
    )
    yield from fault(
        "empty",
        DOCS,
        [id for id, row in docs.items() if not text(row, "content")],
        "documents have no text",
        LIGHTRAG_AGAIN,
    )
    apart = []
    for home, rows in homes.items():
        flat = "".join(text(docs.get(home, {}), "content").split())
        apart += [
            id
            for id, row in rows
            if flat and "".join(text(row, "content").replace(BROKEN, "").split()) not in flat
        ]
    yield from fault(
        "elsewhere",
        CHUNKS,
        apart,
        "texts do not stand in their document as they are",
        LIGHTRAG_AGAIN,
        remark=True,
    )


def _status(status: Store, docs: Store, chunks: Store) -> Iterator[Fault]:
    where = "kv_store_doc_status.json"
    if status is None:
        return
    said = {id: text(row, "status").lower().rpartition(".")[2] for id, row in status.items()}
    failed = [
        f"{id}: {text(status[id], 'error_msg', 'error')[:80]}"
        for id, one in said.items()
        if one == "failed"
    ]
    yield from fault(
        "failed", where, failed, "documents failed", "Run LightRAG's retry of failed documents"
    )
    open_ = [
        id
        for id, one in said.items()
        if one in ("pending", "processing", "parsing", "analyzing", "preprocessed")
    ]
    yield from fault(
        "pending", where, open_, "documents are not done", "Let LightRAG finish its queue"
    )
    if docs is not None:
        lost = [id for id, one in said.items() if one == "processed" and id not in docs]
        yield from fault(
            "dangling",
            where,
            lost,
            "processed documents are not in the store of documents",
            LIGHTRAG_AGAIN,
        )
        unknown = [id for id in docs if id not in status]
        yield from fault("unknown", DOCS, unknown, "documents have no status", LIGHTRAG_AGAIN)
    if chunks is not None:
        listed = [
            f"{id} names {one}"
            for id, row in status.items()
            for one in row.get("chunks_list") or ()
            if one not in chunks
        ]
        yield from fault(
            "dangling", where, listed, "chunks of documents are not there", LIGHTRAG_AGAIN
        )
        counts = Counter(text(row, "full_doc_id") for row in chunks.values())
        wrong = [
            f"{id}: {number(row, 'chunks_count'):g}, recounted {counts[id]}"
            for id, row in status.items()
            if said[id] == "processed"
            and number(row, "chunks_count") not in (None, float(counts[id]))
        ]
        yield from fault(
            "count", where, wrong, "counts of chunks are not those of the store", LIGHTRAG_AGAIN
        )


def _nodes(nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    if nodes is None:
        return
    yield from fault(
        "empty",
        GRAPH,
        [name for name, row in nodes.items() if not text(row, "description")],
        "entities have an empty description",
        LIGHTRAG_AGAIN,
    )
    bare = [name for name, row in nodes.items() if not text(row, "entity_type")]
    yield from fault("type", GRAPH, bare, "entities have no type", LIGHTRAG_AGAIN, remark=True)
    none = [name for name, row in nodes.items() if not parts(row, "source_id")]
    yield from fault(
        "empty",
        GRAPH,
        none,
        "entities rest on no chunk, so nothing can be cited for them",
        LIGHTRAG_AGAIN,
    )
    if chunks is not None:
        lost = [
            f"{name} names {id}"
            for name, row in nodes.items()
            for id in parts(row, "source_id")
            if id not in chunks
        ]
        yield from fault(
            "dangling", GRAPH, lost, "chunks of entities are not there", LIGHTRAG_AGAIN
        )
    linked = {end for source, target, _ in edges for end in (source, target)}
    yield from fault(
        "alone",
        GRAPH,
        [name for name in nodes if name not in linked],
        "entities have no relationship",
        "Nothing, if the texts say no more of them",
        remark=True,
    )


def _edges(nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    def shown(edge: tuple[str, str, Row]) -> str:
        return f"{edge[0]} - {edge[1]}"

    if nodes is not None:
        lost = [f"{end} ({shown(edge)})" for edge in edges for end in edge[:2] if end not in nodes]
        yield from fault(
            "dangling", GRAPH, lost, "ends of relationships are no entity", LIGHTRAG_AGAIN
        )
    once = Counter(tuple(sorted(edge[:2])) for edge in edges)
    yield from fault(
        "duplicate",
        GRAPH,
        [" - ".join(pair) for pair, count in once.items() if count > 1],
        "pairs have several relationships",
        LIGHTRAG_AGAIN,
    )
    yield from fault(
        "loop",
        GRAPH,
        [shown(edge) for edge in edges if edge[0] == edge[1]],
        "relationships join an entity with itself",
        LIGHTRAG_AGAIN,
    )
    yield from fault(
        "empty",
        GRAPH,
        [shown(edge) for edge in edges if not text(edge[2], "description")],
        "relationships have an empty description",
        LIGHTRAG_AGAIN,
    )
    yield from fault(
        "nan",
        GRAPH,
        [shown(edge) for edge in edges if number(edge[2], "weight") is None],
        "weights are missing or no numbers",
        LIGHTRAG_AGAIN,
    )
    if chunks is not None:
        lost = [
            f"{shown(edge)} names {id}"
            for edge in edges
            for id in parts(edge[2], "source_id")
            if id not in chunks
        ]
        yield from fault(
            "dangling", GRAPH, lost, "chunks of relationships are not there", LIGHTRAG_AGAIN
        )


def _vectors(folder: Path, nodes: Nodes | None, edges: Edges, chunks: Store) -> Iterator[Fault]:
    """The vector files hold what the graph and the chunks hold, no fewer and no more."""
    wanted: dict[str, set[Any] | None] = {
        "chunks": set(chunks) if chunks is not None else None,
        "entities": {_bare(name) for name in nodes} if nodes is not None else None,
        "relationships": {tuple(sorted(map(_bare, edge[:2]))) for edge in edges}
        if nodes is not None
        else None,
    }
    for kind, there in wanted.items():
        where = f"vdb_{kind}.json"
        try:
            rows = vectors_of(folder, kind)
        except Unreadable as error:
            yield from fault(
                "unreadable", where, [str(error)], "the vectors do not open", LIGHTRAG_VECTORS
            )
            continue
        if there is None:
            continue
        if rows is None:
            if there and any((folder / f"vdb_{one}.json").exists() for one in wanted):
                yield from fault(
                    "missing", where, [where], f"{kind} have no vectors", LIGHTRAG_VECTORS
                )
            continue
        held = [_subject(kind, row) for row in rows]
        without = sorted(str(one) for one in there - set(held))
        yield from fault("vectors", where, without, f"{kind} have no vector", LIGHTRAG_VECTORS)
        orphans = sorted(str(one) for one in set(held) - there)
        yield from fault(
            "orphans",
            where,
            orphans,
            f"vectors belong to no {kind} that are there",
            LIGHTRAG_VECTORS,
        )
        twice = [str(one) for one, count in Counter(held).items() if count > 1]
        yield from fault(
            "duplicate", where, twice, "several vectors belong to one thing", LIGHTRAG_VECTORS
        )


def _subject(kind: str, row: Row) -> Any:
    if kind == "chunks":
        return text(row, "__id__")
    if kind == "entities":
        return _bare(text(row, "entity_name"))
    return tuple(sorted((_bare(text(row, "src_id")), _bare(text(row, "tgt_id")))))


def _bare(name: str) -> str:
    return name.strip().strip('"')


def _lists(folder: Path, docs: Store, nodes: Nodes | None, edges: Edges) -> Iterator[Fault]:
    """The lists by document and by entity that newer versions keep name what is there."""
    found: list[Fault] = []
    entities = _read(folder, "kv_store_full_entities.json", found, False)
    relations = _read(folder, "kv_store_full_relations.json", found, False)
    of_entity = _read(folder, "kv_store_entity_chunks.json", found, False)
    yield from found
    for name, rows in (
        ("kv_store_full_entities.json", entities),
        ("kv_store_full_relations.json", relations),
    ):
        if rows and docs is not None:
            yield from fault(
                "dangling",
                name,
                [id for id in rows if id not in docs],
                "documents are not there",
                LIGHTRAG_AGAIN,
            )
    if nodes is None:
        return
    lost = [
        f"{id} names {one}"
        for id, row in (entities or {}).items()
        for one in row.get("entity_names") or ()
        if one not in nodes
    ]
    yield from fault(
        "dangling",
        "kv_store_full_entities.json",
        lost,
        "entities of documents are not in the graph",
        LIGHTRAG_AGAIN,
    )
    pairs = {tuple(sorted(edge[:2])) for edge in edges}
    lost = [
        f"{id} names {' - '.join(map(str, one))}"
        for id, row in (relations or {}).items()
        for one in row.get("relation_pairs") or ()
        if tuple(sorted(map(str, one))) not in pairs
    ]
    yield from fault(
        "dangling",
        "kv_store_full_relations.json",
        lost,
        "pairs of documents are not in the graph",
        LIGHTRAG_AGAIN,
    )
    lost = [name for name in of_entity or () if name.split(SEP)[0] not in nodes]
    yield from fault(
        "dangling",
        "kv_store_entity_chunks.json",
        lost,
        "entities are not in the graph",
        LIGHTRAG_AGAIN,
    )


NEEDED = {
    "documents": ("id", "text"),
    "text_units": ("id", "text"),
    "entities": ("id", "title", "text_unit_ids"),
    "relationships": ("id", "source", "target"),
    "communities": ("community", "level"),
    "community_reports": ("community", "summary"),
    "covariates": ("id", "subject_id", "text_unit_id"),
}
NAMES = {
    "title": ("title", "name"),
    "text": ("text", "raw_content", "chunk"),
}  # what a column was called before


def examine(folder: Path) -> list[Fault]:
    """Every fault, in the order of the tables. Raises NotFound for a folder that is no index of
    these kinds.
    """
    kind = kind_of(folder)
    if kind == "lightrag":
        return list(lightrag_faults(folder))
    if not kind:
        raise NotFound(
            f"{folder} holds neither tables of GraphRAG nor a storage of LightRAG",
            "Name the folder with entities.parquet, or the one with kv_store_text_chunks.json",
        )
    tables, found = _tables(folder)
    found += _ids(tables)
    found += _entities(tables)
    found += _relationships(tables)
    found += _units(tables)
    found += _documents(tables)
    found += community_faults(tables)
    found += vector_faults(folder, tables)
    return found


def _tables(folder: Path) -> tuple[Tables, list[Fault]]:
    """The tables that can be read; the others as faults."""
    tables, found = Tables(), []
    for name in TABLES:
        try:
            rows = rows_of(folder, name)
        except Unreadable as error:
            path = path_of(folder, name)
            what = "the file does not open as Parquet"
            found += fault(
                "unreadable", name, [f"{path.name if path else name}: {error}"], what, AGAIN
            )
            continue
        if rows is None:
            if name != "covariates":
                found += fault("missing", name, [f"{name}.parquet"], "the table is missing", AGAIN)
            continue
        tables.rows[name] = rows
        lost = [
            column
            for column in NEEDED[name]
            if rows and not any(one in rows[0] for one in NAMES.get(column, (column,)))
        ]
        found += fault("columns", name, lost, "columns that are needed are not there", AGAIN)
        if not rows and name not in ("covariates",):
            found += fault("empty", name, [name], "the table holds no row", AGAIN)
    return tables, found


def _ids(tables: Tables) -> Iterator[Fault]:
    for name, rows in tables.rows.items():
        for column, what in (("id", "ids"), ("human_readable_id", "short ids")):
            if not rows or column not in rows[0]:
                continue
            counts = Counter(str(row[column]) for row in rows if not empty(row[column]))
            twice = [one for one, count in counts.items() if count > 1]
            yield from fault("duplicate", name, twice, f"{what} stand for several rows", AGAIN)
            blank = [f"row {place}" for place, row in enumerate(rows) if empty(row[column])]
            yield from fault("empty", name, blank, f"rows have no {column}", AGAIN)


def _named(row: Row) -> str:
    return text(row, "title", "name", "id") or "(nothing)"


def _entities(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("entities")
    titles = Counter(text(row, "title", "name") for row in rows)
    twice = [title for title, count in titles.items() if count > 1 and title]
    yield from fault("duplicate", "entities", twice, "titles stand for several entities", AGAIN)
    folded: dict[str, set[str]] = defaultdict(set)
    for title in filter(None, titles):
        folded[" ".join(title.casefold().split())].add(title)
    alike = [" / ".join(sorted(several)) for several in folded.values() if len(several) > 1]
    yield from fault(
        "alike",
        "entities",
        alike,
        "titles differ only in case or blanks",
        "Join them in the source, or leave them: an import makes them one",
        remark=True,
    )
    yield from fault(
        "empty",
        "entities",
        [text(row, "id") for row in rows if not text(row, "title", "name")],
        "entities have no title",
        AGAIN,
    )
    yield from fault(
        "empty",
        "entities",
        [_named(row) for row in rows if not text(row, "description")],
        "entities have an empty description",
        "Run the extraction of their text units again",
    )
    yield from fault(
        "empty",
        "entities",
        [_named(row) for row in rows if not ids(row, "text_unit_ids")],
        "entities rest on no text unit, so nothing can be cited for them",
        AGAIN,
    )
    yield from _not_a_number("entities", rows, ("frequency", "degree"), _named)
    yield from dangling(tables, "entities", rows, "text_unit_ids", "text_units", _named)
    yield from _entity_counts(tables, rows)


def _entity_counts(tables: Tables, rows: list[Row]) -> Iterator[Fault]:
    wrong = [
        f"{_named(row)}: {number(row, 'frequency'):g}, recounted {len(set(ids(row, 'text_unit_ids')))}"
        for row in rows
        if number(row, "frequency") is not None
        and number(row, "frequency") != len(set(ids(row, "text_unit_ids")))
    ]
    yield from fault(
        "frequency", "entities", wrong, "frequencies are not the number of their text units", UPDATE
    )
    degree = degrees(tables)
    wrong = [
        f"{_named(row)}: {number(row, 'degree'):g}, recounted {degree[text(row, 'title', 'name')]}"
        for row in rows
        if number(row, "degree") is not None
        and number(row, "degree") != degree[text(row, "title", "name")]
    ]
    if "relationships" in tables.rows:
        yield from fault(
            "degree", "entities", wrong, "degrees are not the number of their neighbours", UPDATE
        )
    alone = [_named(row) for row in rows if not degree[text(row, "title", "name")]]
    if "relationships" in tables.rows:
        yield from fault(
            "alone",
            "entities",
            alone,
            "entities have no relationship, so they are in no community",
            "Nothing, if the texts say no more of them",
            remark=True,
        )


def degrees(tables: Tables) -> Counter[str]:
    """Neighbours by title: pairs count once whatever their direction, as GraphRAG counts them."""
    pairs = {
        tuple(sorted((text(row, "source"), text(row, "target"))))
        for row in tables.of("relationships")
    }
    return Counter(title for pair in pairs for title in pair)


def _relationships(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("relationships")

    def shown(row: Row) -> str:
        return f"{text(row, 'source') or '(nothing)'} - {text(row, 'target') or '(nothing)'}"

    titles = {text(row, "title", "name") for row in tables.of("entities")}
    ends = Counter(
        f"{text(row, end) or '(nothing)'} ({shown(row)})"
        for row in rows
        for end in ("source", "target")
        if text(row, end) not in titles
    )
    if "entities" in tables.rows:
        yield from fault(
            "dangling",
            "relationships",
            list(ends),
            "ends are no entity of the entities table",
            AGAIN,
        )
    once = Counter((text(row, "source"), text(row, "target")) for row in rows)
    twice = [f"{a} - {b}" for (a, b), count in once.items() if count > 1]
    yield from fault("duplicate", "relationships", twice, "pairs have several rows", AGAIN)
    turned = [f"{a} - {b}" for a, b in once if a < b and (b, a) in once]
    yield from fault(
        "turned",
        "relationships",
        turned,
        "pairs have a row for each direction",
        "Nothing: each direction is a statement of its own; degrees count them once",
        remark=True,
    )
    loops = [
        shown(row)
        for row in rows
        if text(row, "source") and text(row, "source") == text(row, "target")
    ]
    yield from fault(
        "loop", "relationships", loops, "relationships join an entity with itself", AGAIN
    )
    blank = [shown(row) for row in rows if not text(row, "description")]
    yield from fault(
        "empty",
        "relationships",
        blank,
        "relationships have an empty description",
        "Run the extraction of their text units again",
    )
    yield from _not_a_number("relationships", rows, ("weight", "combined_degree"), shown)
    light = [
        f"{shown(row)}: {number(row, 'weight'):g}"
        for row in rows
        if (number(row, "weight") or 1) < 0 or number(row, "weight") == 0
    ]
    yield from fault(
        "weight",
        "relationships",
        light,
        "weights are not above 0: clustering leaves these out",
        AGAIN,
    )
    yield from dangling(tables, "relationships", rows, "text_unit_ids", "text_units", shown)
    none = [shown(row) for row in rows if "text_unit_ids" in row and not ids(row, "text_unit_ids")]
    yield from fault("empty", "relationships", none, "relationships rest on no text unit", AGAIN)
    degree = degrees(tables)
    wrong = []
    for row in rows:
        said, counted = (
            number(row, "combined_degree"),
            degree[text(row, "source")] + degree[text(row, "target")],
        )
        if said is not None and said != counted:
            wrong.append(f"{shown(row)}: {said:g}, recounted {counted}")
    yield from fault(
        "combined_degree",
        "relationships",
        wrong,
        "combined degrees are not the sum of both ends",
        UPDATE,
    )


def _not_a_number(
    table: str, rows: Sequence[Row], columns: Iterable[str], shown: Callable[[Row], str]
) -> Iterator[Fault]:
    for column in columns:
        wrong = [shown(row) for row in rows if column in row and number(row, column) is None]
        yield from fault("nan", table, wrong, f"{column} is missing or no number", AGAIN)


def _units(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("text_units")

    def shown(row: Row) -> str:
        return text(row, "id")[:32] or "(no id)"

    documents = {text(row, "id"): row for row in tables.of("documents")}
    homes = {text(row, "id"): ids(row, "document_ids") or ids(row, "document_id") for row in rows}
    none = [id[:32] for id, home in homes.items() if not home]
    yield from fault("homeless", "text_units", none, "text units name no document", AGAIN)
    if "documents" in tables.rows:
        lost = [
            f"{id[:32]} names {one[:32]}"
            for id, home in homes.items()
            for one in home
            if one not in documents
        ]
        yield from fault("dangling", "text_units", lost, "ids of documents lead nowhere", UPDATE)
        apart, listed = [], {id: set(ids(row, "text_unit_ids")) for id, row in documents.items()}
        for row in rows:
            body = text(row, "text", "chunk").replace(BROKEN, "").strip()
            texts = [
                text(documents[id], "text", "raw_content")
                for id in homes[text(row, "id")]
                if id in documents
            ]
            flat = "".join(body.split())
            if (
                body
                and texts
                and not any(body in one or flat in "".join(one.split()) for one in texts)
            ):
                apart.append(shown(row))
        yield from fault(
            "elsewhere",
            "text_units",
            apart,
            "texts do not stand in their document as they are",
            "Nothing, if metadata is put before each text unit; else index these documents again",
            remark=True,
        )
        unlisted = [
            id[:32]
            for id, home in homes.items()
            for one in home
            if one in documents and "text_unit_ids" in documents[one] and id not in listed[one]
        ]
        yield from fault(
            "unlisted",
            "text_units",
            unlisted,
            "text units are not in the list of their document",
            UPDATE,
        )
    yield from fault(
        "empty",
        "text_units",
        [shown(row) for row in rows if not text(row, "text", "chunk")],
        "text units have no text",
        AGAIN,
    )
    broken = [shown(row) for row in rows if BROKEN in text(row, "text", "chunk")]
    yield from fault(
        "broken",
        "text_units",
        broken,
        "texts hold U+FFFD: characters were cut in halves by tokens",
        "Chunk by sentences, or with a tokenizer that keeps characters whole, and index again",
    )
    for column, table in (
        ("entity_ids", "entities"),
        ("relationship_ids", "relationships"),
        ("covariate_ids", "covariates"),
    ):
        yield from dangling(tables, "text_units", rows, column, table, shown)
    if rows and "entity_ids" in rows[0] and "entities" in tables.rows:
        said = {(text(row, "id"), id) for row in rows for id in ids(row, "entity_ids")}
        told = {
            (unit, text(row, "id"))
            for row in tables.of("entities")
            for unit in ids(row, "text_unit_ids")
        }
        there = {text(row, "id") for row in rows}
        apart = sorted(f"{unit[:32]} and {id}" for unit, id in said ^ told if unit in there)
        yield from fault(
            "disagree",
            "text_units",
            apart,
            "a text unit and an entity do not name each other",
            UPDATE,
        )


def _documents(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("documents")

    def shown(row: Row) -> str:
        return text(row, "title", "id")[:60]

    yield from fault(
        "empty",
        "documents",
        [shown(row) for row in rows if not text(row, "text", "raw_content")],
        "documents have no text",
        "Look at the input files, then index again",
    )
    yield from dangling(tables, "documents", rows, "text_unit_ids", "text_units", shown)
    homes = {
        id
        for row in tables.of("text_units")
        for id in ids(row, "document_ids") or ids(row, "document_id")
    }
    bare = [
        shown(row)
        for row in rows
        if text(row, "text", "raw_content") and text(row, "id") not in homes
    ]
    if "text_units" in tables.rows:
        yield from fault(
            "bare", "documents", bare, "documents have no text unit, so no search finds them", AGAIN
        )
    twice = [
        text_[:60]
        for text_, count in Counter(text(row, "text", "raw_content") for row in rows).items()
        if count > 1 and text_
    ]
    yield from fault(
        "twins",
        "documents",
        twice,
        "texts stand in several documents",
        "Keep one of each",
        remark=True,
    )
    gone = [
        shown(row)
        for row in rows
        if whole(row, "human_readable_id") is None and "human_readable_id" in row
    ]
    yield from fault("nan", "documents", gone, "human_readable_id is no number", AGAIN)
