"""Doctor for other people's indexes: what is wrong in a folder of GraphRAG's tables or a storage of LightRAG.

Takes the folder; gives faults, each with a count, up to three examples and what to do about it; none for a sound one.
Reads files and changes none. Tables, entities, relationships, text units and documents are looked at here, communities,
reports, claims and vectors in foreign_communities.py, LightRAG in foreign_lightrag.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from graphrag_mcp.errors import NotFound
from graphrag_mcp.store.outside import (
    TABLES,
    Row,
    Unreadable,
    empty,
    ids,
    kind_of,
    number,
    path_of,
    rows_of,
    text,
    whole,
)
from graphrag_mcp.upkeep import foreign_communities, foreign_lightrag
from graphrag_mcp.upkeep.fault import AGAIN, UPDATE, Fault, Tables, dangling, fault

NEEDED = {
    "documents": ("id", "text"), "text_units": ("id", "text"), "entities": ("id", "title", "text_unit_ids"),
    "relationships": ("id", "source", "target"), "communities": ("community", "level"),
    "community_reports": ("community", "summary"), "covariates": ("id", "subject_id", "text_unit_id"),
}  # fmt: skip
NAMES = {"title": ("title", "name"), "text": ("text", "raw_content", "chunk")}  # what a column was called before
BROKEN = "\ufffd"


def examine(folder: Path) -> list[Fault]:
    """Every fault, in the order of the tables. Raises NotFound for a folder that is no index of these kinds."""
    kind = kind_of(folder)
    if kind == "lightrag":
        return list(foreign_lightrag.faults(folder))
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
    found += foreign_communities.faults(tables)
    found += foreign_communities.vector_faults(folder, tables)
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
            found += fault("unreadable", name, [f"{path.name if path else name}: {error}"], what, AGAIN)
            continue
        if rows is None:
            if name != "covariates":
                found += fault("missing", name, [f"{name}.parquet"], "the table is missing", AGAIN)
            continue
        tables.rows[name] = rows
        lost = [
            column for column in NEEDED[name]
            if rows and not any(one in rows[0] for one in NAMES.get(column, (column,)))
        ]  # fmt: skip
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
        f"{_named(row)}: {number(row, 'frequency'):g}, recounted {len(set(ids(row, 'text_unit_ids')))}" for row in rows
        if number(row, "frequency") is not None and number(row, "frequency") != len(set(ids(row, "text_unit_ids")))
    ]  # fmt: skip
    yield from fault("frequency", "entities", wrong, "frequencies are not the number of their text units", UPDATE)
    degree = degrees(tables)
    wrong = [
        f"{_named(row)}: {number(row, 'degree'):g}, recounted {degree[text(row, 'title', 'name')]}" for row in rows
        if number(row, "degree") is not None and number(row, "degree") != degree[text(row, "title", "name")]
    ]  # fmt: skip
    if "relationships" in tables.rows:
        yield from fault("degree", "entities", wrong, "degrees are not the number of their neighbours", UPDATE)
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
    pairs = {tuple(sorted((text(row, "source"), text(row, "target")))) for row in tables.of("relationships")}
    return Counter(title for pair in pairs for title in pair)


def _relationships(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("relationships")

    def shown(row: Row) -> str:
        return f"{text(row, 'source') or '(nothing)'} - {text(row, 'target') or '(nothing)'}"

    titles = {text(row, "title", "name") for row in tables.of("entities")}
    ends = Counter(
        f"{text(row, end) or '(nothing)'} ({shown(row)})" for row in rows for end in ("source", "target")
        if text(row, end) not in titles
    )  # fmt: skip
    if "entities" in tables.rows:
        yield from fault("dangling", "relationships", list(ends), "ends are no entity of the entities table", AGAIN)
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
    loops = [shown(row) for row in rows if text(row, "source") and text(row, "source") == text(row, "target")]
    yield from fault("loop", "relationships", loops, "relationships join an entity with itself", AGAIN)
    blank = [shown(row) for row in rows if not text(row, "description")]
    yield from fault(
        "empty",
        "relationships",
        blank,
        "relationships have an empty description",
        "Run the extraction of their text units again",
    )
    yield from _not_a_number("relationships", rows, ("weight", "combined_degree"), shown)
    light = [f"{shown(row)}: {number(row, 'weight'):g}" for row in rows if (number(row, "weight") or 1) < 0
             or number(row, "weight") == 0]  # fmt: skip
    yield from fault("weight", "relationships", light, "weights are not above 0: clustering leaves these out", AGAIN)
    yield from dangling(tables, "relationships", rows, "text_unit_ids", "text_units", shown)
    none = [shown(row) for row in rows if "text_unit_ids" in row and not ids(row, "text_unit_ids")]
    yield from fault("empty", "relationships", none, "relationships rest on no text unit", AGAIN)
    degree = degrees(tables)
    wrong = []
    for row in rows:
        said, counted = number(row, "combined_degree"), degree[text(row, "source")] + degree[text(row, "target")]
        if said is not None and said != counted:
            wrong.append(f"{shown(row)}: {said:g}, recounted {counted}")
    yield from fault("combined_degree", "relationships", wrong, "combined degrees are not the sum of both ends", UPDATE)


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
        lost = [f"{id[:32]} names {one[:32]}" for id, home in homes.items() for one in home if one not in documents]
        yield from fault("dangling", "text_units", lost, "ids of documents lead nowhere", UPDATE)
        apart, listed = [], {id: set(ids(row, "text_unit_ids")) for id, row in documents.items()}
        for row in rows:
            body = text(row, "text", "chunk").replace(BROKEN, "").strip()
            texts = [text(documents[id], "text", "raw_content") for id in homes[text(row, "id")] if id in documents]
            flat = "".join(body.split())
            if body and texts and not any(body in one or flat in "".join(one.split()) for one in texts):
                apart.append(shown(row))
        yield from fault(
            "elsewhere",
            "text_units",
            apart,
            "texts do not stand in their document as they are",
            "Nothing, if metadata is put before each text unit; else index these documents again",
            remark=True,
        )
        unlisted = [id[:32] for id, home in homes.items() for one in home
                    if one in documents and "text_unit_ids" in documents[one] and id not in listed[one]]  # fmt: skip
        yield from fault("unlisted", "text_units", unlisted, "text units are not in the list of their document", UPDATE)
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
    for column, table in (("entity_ids", "entities"), ("relationship_ids", "relationships"),
                          ("covariate_ids", "covariates")):  # fmt: skip
        yield from dangling(tables, "text_units", rows, column, table, shown)
    if rows and "entity_ids" in rows[0] and "entities" in tables.rows:
        said = {(text(row, "id"), id) for row in rows for id in ids(row, "entity_ids")}
        told = {(unit, text(row, "id")) for row in tables.of("entities") for unit in ids(row, "text_unit_ids")}
        there = {text(row, "id") for row in rows}
        apart = sorted(f"{unit[:32]} and {id}" for unit, id in said ^ told if unit in there)
        yield from fault("disagree", "text_units", apart, "a text unit and an entity do not name each other", UPDATE)


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
    homes = {id for row in tables.of("text_units") for id in ids(row, "document_ids") or ids(row, "document_id")}
    bare = [shown(row) for row in rows if text(row, "text", "raw_content") and text(row, "id") not in homes]
    if "text_units" in tables.rows:
        yield from fault("bare", "documents", bare, "documents have no text unit, so no search finds them", AGAIN)
    twice = [text_[:60] for text_, count in Counter(text(row, "text", "raw_content") for row in rows).items()
             if count > 1 and text_]  # fmt: skip
    yield from fault("twins", "documents", twice, "texts stand in several documents", "Keep one of each", remark=True)
    gone = [shown(row) for row in rows if whole(row, "human_readable_id") is None and "human_readable_id" in row]
    yield from fault("nan", "documents", gone, "human_readable_id is no number", AGAIN)
