"""Doctor for indexes of other programs: damage in GraphRAG's tables or LightRAG's storage.

Gives faults, each with a count, up to three examples and what to do about it; none for a sound
index. Changes no file. An update of GraphRAG appends the communities of new documents to the old
ones, so two hierarchies stand in one table; that has a fault of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
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
EXTRACT = "Run the extraction of their text units again"
CLUSTER = "Run `graphrag index` afresh: communities and reports are made of the whole graph then"
REPORT = "Write these reports again: run the workflow create_community_reports"
EMBED = "Run the workflow generate_text_embeddings over the whole index"
NO_MORE = "Nothing, if the texts say no more of them"
LIGHTRAG_AGAIN = "Delete these documents in LightRAG and insert them again; its cache answers what was asked before"
LIGHTRAG_VECTORS = "Delete the vdb_*.json files and insert the documents again, or rebuild the vectors with LightRAG's own tool"

BROKEN = "\ufffd"
ELSEWHERE = "texts do not stand in their document as they are"
CUT = "texts hold U+FFFD: characters were cut in halves by tokens"
VECTORS = {  # table -> names of its Lance tables, the newest first
    "entities": ("entity_description", "default-entity-description"),
    "text_units": ("text_unit_text", "default-text_unit-text"),
    "community_reports": ("community_full_content", "default-community-full_content"),
}
NEEDED = {
    "documents": ("id", "text"),
    "text_units": ("id", "text"),
    "entities": ("id", "title", "text_unit_ids"),
    "relationships": ("id", "source", "target"),
    "communities": ("community", "level"),
    "community_reports": ("community", "summary"),
    "covariates": ("id", "subject_id", "text_unit_id"),
}
TITLE, TEXT = ("title", "name"), ("text", "raw_content", "chunk")  # also as they were called before
NAMES = {"title": TITLE, "text": TEXT}
POINTERS = {  # column of ids -> the table that they point to
    "entity_ids": "entities",
    "relationship_ids": "relationships",
    "covariate_ids": "covariates",
    "text_unit_ids": "text_units",
}
Shown = Callable[[Row], str]
Add = Callable[..., None]


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


class Faults:
    def __init__(self) -> None:
        self.found: list[Fault] = []

    def of(self, where: str, repair: str) -> Add:
        """`add(kind, examples, what)` for one table or file; `repair` unless another is given."""
        return partial(self._add, where, repair)

    def _add(
        self,
        where: str,
        usual: str,
        kind: str,
        examples: Iterable[object],
        what: str,
        repair: str = "",
        remark: bool = False,
    ) -> None:
        every = [str(one) for one in examples]
        if every:
            first = [" ".join(one.split())[:LONGEST] for one in every[:EXAMPLES]]
            self.found.append(Fault(kind, where, len(every), what, first, repair or usual, remark))


def _named(row: Row) -> str:
    return text(row, *TITLE, "id") or "(nothing)"


def _ends(row: Row) -> tuple[str, str]:
    return text(row, "source"), text(row, "target")


def _pair(row: Row) -> str:
    return " - ".join(end or "(nothing)" for end in _ends(row))


def _short(row: Row) -> str:
    return text(row, "id")[:32]


def _number(row: Row) -> int | None:
    return whole(row, "community", "human_readable_id")


def _shown(row: Row) -> str:
    return f"community {_number(row)}"


SHOWN: dict[str, Shown] = {  # a row of a table as an example
    "documents": lambda row: text(row, "title", "id")[:60],
    "text_units": lambda row: _short(row) or "(no id)",
    "entities": _named,
    "relationships": _pair,
    "communities": _shown,
    "community_reports": _shown,
    "covariates": _short,
}


class Tables(Faults):
    """The tables of GraphRAG that could be read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.rows: dict[str, list[Row]] = {}

    def rows_of(self, name: str) -> list[Row]:
        return self.rows.get(name, [])

    def known(self, name: str) -> set[str]:
        return {str(row.get("id")) for row in self.rows_of(name)}

    def titles(self) -> set[str]:
        return {text(row, *TITLE) for row in self.rows_of("entities")}

    def dangling(self, where: str) -> None:
        """Ids in columns that are not in the table they point to, where that could be read."""
        shown, rows = SHOWN[where], self.rows_of(where)
        for column, table in POINTERS.items():
            known = self.known(table)
            named = ((row, id) for row in rows for id in ids(row, column) if id not in known)
            lost = [f"{shown(row)} names {id[:32]}" for row, id in named]
            if table in self.rows:
                self.of(where, AGAIN)("dangling", lost, f"{column} lead nowhere in {table}")

    def recount(self, where: str, column: str, counted: Callable[[Row], int], what: str) -> None:
        """Numbers that are not what is counted."""
        wrong = recounted(self.rows_of(where), column, counted, SHOWN[where])
        self.of(where, UPDATE)(column, wrong, what)

    def blank(self, where: str, columns: Sequence[str], what: str, repair: str = AGAIN) -> None:
        """Rows that hold nothing in any of these columns."""
        rows = (row for row in self.rows_of(where) if not text(row, *columns))
        self.of(where, repair)("empty", map(SHOWN[where], rows), what)

    def not_a_number(self, where: str, *columns: str) -> None:
        for column in columns:
            rows = (row for row in self.rows_of(where) if column in row)
            wrong = [SHOWN[where](row) for row in rows if number(row, column) is None]
            self.of(where, AGAIN)("nan", wrong, f"{column} is missing or no number")


def recounted(
    rows: Iterable[Row], column: str, counted: Callable[[Row], int], shown: Shown
) -> list[str]:
    said = ((row, number(row, column)) for row in rows)
    return [
        f"{shown(row)}: {value:g}, recounted {counted(row)}"
        for row, value in said
        if value is not None and value != counted(row)
    ]


def opened(add: Add, kind: str, read: Callable[[], Any], name: str, missing: str = "") -> Any:
    """What `read` gives. None for a file that does not open as its kind, which is a fault, and for
    one that is not there, which is one where `missing` says so."""
    try:
        found = read()
    except Unreadable as error:
        return add("unreadable", [error], f"the {kind}")
    if found is None and missing:
        add("missing", [name], missing)
    return found


def flat(row: Row, *columns: str) -> str:
    """A text without blanks and halves of characters, as it is looked for in another."""
    return "".join(text(row, *columns).replace(BROKEN, "").split())


def several(values: Iterable[Any]) -> list[Any]:
    """Those that stand more than once."""
    return [one for one, count in Counter(values).items() if count > 1]


def examine(folder: Path) -> list[Fault]:
    """Every fault, in the order of the tables. Raises NotFound for a folder that is no index of
    these kinds."""
    kind = kind_of(folder)
    if kind == "lightrag":
        storage = Storage(folder)
        for check in (_chunks, _sources, _status, _nodes, _edges, _vectors, _lists):
            check(storage)
        return storage.found
    if not kind:
        raise NotFound(
            f"{folder} holds neither tables of GraphRAG nor a storage of LightRAG",
            "Name the folder with entities.parquet, or the one with kv_store_text_chunks.json",
        )
    tables = Tables(folder)
    rows = (_read_tables, _ids, _entities, _relationships, _units, _documents)
    for look in (*rows, _communities, _reports, _references, _claims, _lance):
        look(tables)
    return tables.found


# ---- GraphRAG ------------------------------------------------------------------------------------


def _read_tables(tables: Tables) -> None:
    folder = tables.folder
    for name in TABLES:
        add = tables.of(name, AGAIN)
        try:
            rows = rows_of(folder, name)
        except Unreadable as error:
            path = path_of(folder, name)
            where = path.name if path else name
            add("unreadable", [f"{where}: {error}"], "the file does not open as Parquet")
            continue
        if rows is None:
            if name != "covariates":
                add("missing", [f"{name}.parquet"], "the table is missing")
            continue
        tables.rows[name] = rows
        first = rows[0] if rows else dict.fromkeys(NEEDED[name])
        lost = [one for one in NEEDED[name] if first.keys().isdisjoint(NAMES.get(one, (one,)))]
        add("columns", lost, "columns that are needed are not there")
        if not rows and name != "covariates":
            add("empty", [name], "the table holds no row")


def _ids(tables: Tables) -> None:
    for name, rows in tables.rows.items():
        for column, what in (("id", "ids"), ("human_readable_id", "short ids")):
            if rows and column in rows[0]:
                values = [row[column] for row in rows]
                twice = several(str(one) for one in values if not empty(one))
                blank = [f"row {place}" for place, one in enumerate(values) if empty(one)]
                tables.of(name, AGAIN)("duplicate", twice, f"{what} stand for several rows")
                tables.of(name, AGAIN)("empty", blank, f"rows have no {column}")


def _entities(tables: Tables) -> None:
    rows, add = tables.rows_of("entities"), tables.of("entities", AGAIN)
    titles = [text(row, *TITLE) for row in rows]
    add("duplicate", filter(None, several(titles)), "titles stand for several entities")
    folded: dict[str, set[str]] = defaultdict(set)
    for title in filter(None, titles):
        folded[" ".join(title.casefold().split())].add(title)
    alike = [" / ".join(sorted(some)) for some in folded.values() if len(some) > 1]
    repair = "Join them in the source, or leave them: an import makes them one"
    add("alike", alike, "titles differ only in case or blanks", repair, True)
    tables.blank("entities", TITLE, "entities have no title")
    tables.blank("entities", ["description"], "entities have an empty description", EXTRACT)
    bare = [_named(row) for row in rows if not ids(row, "text_unit_ids")]
    add("empty", bare, "entities rest on no text unit, so nothing can be cited for them")
    tables.not_a_number("entities", "frequency", "degree")
    tables.dangling("entities")
    what = "frequencies are not the number of their text units"
    tables.recount("entities", "frequency", lambda row: len(set(ids(row, "text_unit_ids"))), what)
    if "relationships" not in tables.rows:
        return
    degree = degrees(tables)
    what = "degrees are not the number of their neighbours"
    tables.recount("entities", "degree", lambda row: degree[text(row, *TITLE)], what)
    alone = [_named(row) for row in rows if not degree[text(row, *TITLE)]]
    what = "entities have no relationship, so they are in no community"
    add("alone", alone, what, NO_MORE, True)


def degrees(tables: Tables) -> Counter[str]:
    """Neighbours by title: pairs count once whatever their direction, as GraphRAG counts them."""
    pairs = {tuple(sorted(_ends(row))) for row in tables.rows_of("relationships")}
    return Counter(title for pair in pairs for title in pair)


def _relationships(tables: Tables) -> None:
    rows, add = tables.rows_of("relationships"), tables.of("relationships", AGAIN)
    if "entities" in tables.rows:
        titles = tables.titles()
        lost = ((end, row) for row in rows for end in _ends(row) if end not in titles)
        ends = dict.fromkeys(f"{end or '(nothing)'} ({_pair(row)})" for end, row in lost)
        add("dangling", ends, "ends are no entity of the entities table")
    twice = [" - ".join(pair) for pair in several(map(_ends, rows))]
    add("duplicate", twice, "pairs have several rows")
    once = dict.fromkeys(map(_ends, rows))
    turned = [f"{a} - {b}" for a, b in once if a < b and (b, a) in once]
    repair = "Nothing: each direction is a statement of its own; degrees count them once"
    add("turned", turned, "pairs have a row for each direction", repair, True)
    loops = [_pair(row) for row in rows if _ends(row)[0] and len(set(_ends(row))) == 1]
    add("loop", loops, "relationships join an entity with itself")
    what = "relationships have an empty description"
    tables.blank("relationships", ["description"], what, EXTRACT)
    tables.not_a_number("relationships", "weight", "combined_degree")
    weights = ((row, number(row, "weight")) for row in rows)
    light = [f"{_pair(row)}: {one:g}" for row, one in weights if one is not None and one <= 0]
    add("weight", light, "weights are not above 0: clustering leaves these out")
    tables.dangling("relationships")
    none = [_pair(row) for row in rows if "text_unit_ids" in row and not ids(row, "text_unit_ids")]
    add("empty", none, "relationships rest on no text unit")
    degree = degrees(tables)
    what = "combined degrees are not the sum of both ends"

    def of_both(row: Row) -> int:
        return sum(degree[end] for end in _ends(row))

    tables.recount("relationships", "combined_degree", of_both, what)


def _homes_of(row: Row) -> list[str]:
    return ids(row, "document_ids") or ids(row, "document_id")


def _units(tables: Tables) -> None:
    rows, add = tables.rows_of("text_units"), tables.of("text_units", AGAIN)
    homes = {text(row, "id"): _homes_of(row) for row in rows}
    none = [id[:32] for id, home in homes.items() if not home]
    add("homeless", none, "text units name no document")
    if "documents" in tables.rows:
        _places(tables, homes)

    tables.blank("text_units", ("text", "chunk"), "text units have no text")
    broken = [SHOWN["text_units"](row) for row in rows if BROKEN in text(row, "text", "chunk")]
    repair = "Chunk by sentences, or with a tokenizer that keeps characters whole, and index again"
    add("broken", broken, CUT, repair)
    tables.dangling("text_units")
    if rows and "entity_ids" in rows[0] and "entities" in tables.rows:
        entities = tables.rows_of("entities")
        said = {(text(row, "id"), id) for row in rows for id in ids(row, "entity_ids")}
        told = {(unit, text(row, "id")) for row in entities for unit in ids(row, "text_unit_ids")}
        apart = sorted(f"{unit[:32]} and {id}" for unit, id in said ^ told if unit in homes)
        add("disagree", apart, "a text unit and an entity do not name each other", UPDATE)


def _places(tables: Tables, homes: dict[str, list[str]]) -> None:
    """Text units stand in the documents that they name, and these list them."""
    rows, add = tables.rows_of("text_units"), tables.of("text_units", UPDATE)
    documents = {text(row, "id"): row for row in tables.rows_of("documents")}
    pairs = [(id, one) for id, home in homes.items() for one in home]
    lost = [f"{id[:32]} names {one[:32]}" for id, one in pairs if one not in documents]
    add("dangling", lost, "ids of documents lead nowhere")
    apart = []
    for row in rows:
        body = flat(row, "text", "chunk")
        named = [documents[id] for id in homes[text(row, "id")] if id in documents]
        texts = ("".join(text(one, "text", "raw_content").split()) for one in named)
        if body and named and not any(body in one for one in texts):
            apart.append(SHOWN["text_units"](row))
    repair = "Nothing, if metadata is put before each text unit; else index these documents again"
    add("elsewhere", apart, ELSEWHERE, repair, True)
    listed = {id: set(ids(row, "text_unit_ids")) for id, row in documents.items()}
    listing = {id for id, row in documents.items() if "text_unit_ids" in row}
    unlisted = [id[:32] for id, one in pairs if one in listing and id not in listed[one]]
    add("unlisted", unlisted, "text units are not in the list of their document")


def _documents(tables: Tables) -> None:
    rows, add = tables.rows_of("documents"), tables.of("documents", AGAIN)
    shown, repair = SHOWN["documents"], "Look at the input files, then index again"
    tables.blank("documents", ("text", "raw_content"), "documents have no text", repair)
    tables.dangling("documents")
    texts = [(row, text(row, "text", "raw_content")) for row in rows]
    if "text_units" in tables.rows:
        homes = {id for row in tables.rows_of("text_units") for id in _homes_of(row)}
        bare = [shown(row) for row, body in texts if body and text(row, "id") not in homes]
        add("bare", bare, "documents have no text unit, so no search finds them")
    twice = [one[:60] for one in several(body for _, body in texts if body)]
    add("twins", twice, "texts stand in several documents", "Keep one of each", True)
    tables_with = [row for row in rows if "human_readable_id" in row]
    gone = [shown(row) for row in tables_with if whole(row, "human_readable_id") is None]
    add("nan", gone, "human_readable_id is no number")


def _communities(tables: Tables) -> None:
    rows, add = tables.rows_of("communities"), tables.of("communities", CLUSTER)
    by_number = _by_number(tables)
    twice = several(_number(row) for row in rows if _number(row) is not None)
    again = [f"community {own}" for own in twice]
    add("duplicate", again, "numbers stand for several communities")
    none = [text(row, "id") for row in rows if whole(row, "community") is None]
    add("nan", none, "community is missing or no number")
    _tree(by_number, add)
    _members(tables, by_number)
    tables.dangling("communities")
    sized = (row for row in rows if "entity_ids" in row)
    wrong = recounted(sized, "size", lambda row: len(set(ids(row, "entity_ids"))), _shown)
    add("size", wrong, "sizes are not the number of their entities")


def _by_number(tables: Tables) -> dict[int, Row]:
    """The first community of each number."""
    found: dict[int, Row] = {}
    for row in tables.rows_of("communities"):
        if (own := _number(row)) is not None:
            found.setdefault(own, row)
    return found


def _tree(by_number: dict[int, Row], add: Add) -> None:
    """Parents and children say the same of each other, one level apart."""
    lost, levels, apart, outside = [], [], [], []
    children: dict[int, set[int]] = defaultdict(set)
    for own, row in by_number.items():
        parent, level = whole(row, "parent"), whole(row, "level")
        if parent is None or parent == -1:
            if (level or 0) > 0 and "parent" in row:
                levels.append(f"{_shown(row)}: level {level} without a parent")
            continue
        children[parent].add(own)
        above = by_number.get(parent)
        if above is None:
            lost.append(f"{_shown(row)} names {parent}")
            continue
        if (level or 0) != (whole(above, "level") or 0) + 1:
            levels.append(f"{_shown(row)}: level {level} under level {whole(above, 'level')}")
        extra = set(ids(row, "entity_ids")) - set(ids(above, "entity_ids"))
        if extra and "entity_ids" in above:
            more = f"{len(extra)} of its entities are not in community {parent}"
            outside.append(f"{_shown(row)}: {more}")
    for own, row in by_number.items():
        said = {int(one) for one in ids(row, "children") if one.lstrip("-").isdigit()}
        if "children" in row and said != children[own]:
            named = f"as parent it is named by {sorted(children[own])}"
            apart.append(f"{_shown(row)} names {sorted(said)}, {named}")
    add("dangling", lost, "parents are not there")
    add("level", levels, "levels do not follow from the parents")
    add("children", apart, "parents and children disagree")
    add("members", outside, "communities hold entities that their parent does not")


def _members(tables: Tables, by_number: dict[int, Row]) -> None:
    """Every linked entity is in one community of each hierarchy."""
    rows, add = tables.rows_of("communities"), tables.of("communities", CLUSTER)
    if not rows or "entity_ids" not in rows[0]:
        return
    title_of = {text(row, "id"): text(row, *TITLE) for row in tables.rows_of("entities")}
    held: dict[str, list[Row]] = defaultdict(list)
    for row in by_number.values():
        for id in dict.fromkeys(ids(row, "entity_ids")):
            held[id].append(row)
    linked = {end for row in tables.rows_of("relationships") for end in _ends(row)}
    out = [title or id for id, title in title_of.items() if id not in held and title in linked]
    what = "entities have relationships and are in no community: no report and no global search speaks of them"
    tables.of("entities", CLUSTER)("outside", out, what)
    both = []
    for id, places in held.items():
        twice = several(whole(row, "level") or 0 for row in places)
        if twice:
            level = min(twice)
            some = [row for row in places if (whole(row, "level") or 0) == level]
            numbers = ", ".join(str(whole(row, "community")) for row in some)
            both.append(f"{title_of.get(id, id)}: communities {numbers} of level {level}")
    periods = Counter(sorted(filter(None, (text(row, "period") for row in rows))))
    appended = len(periods) > 1
    what = "entities are in several communities of one level"
    add("overlap", both, what + (": an update was appended" if appended else ""))
    runs = [f"period {period}: {count} communities" for period, count in periods.items()]
    what = "hierarchies of several runs stand beside each other: communities were appended by an update"
    add("period", runs if appended else (), what)


def _reports(tables: Tables) -> None:
    rows, add = tables.rows_of("community_reports"), tables.of("community_reports", REPORT)
    if "community_reports" not in tables.rows:
        return
    by_number = _by_number(tables)
    of: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        of[_number(row) or 0].append(row)
    if "communities" in tables.rows:
        without = [f"community {own}" for own in sorted(by_number) if own not in of]
        tables.of("communities", REPORT)("unreported", without, "communities have no report")
        gone = [row for own in sorted(of) if own not in by_number for row in of[own]]
        lost = [f"{_shown(row)}: {text(row, 'title')[:60]}" for row in gone]
        add("dangling", lost, "reports speak of communities that are not there")
    twice = [f"community {own}" for own, some in of.items() if len(some) > 1]
    add("duplicate", twice, "communities have several reports")
    stale, apart = [], []
    for own in sorted(of.keys() & by_number):
        for row in of[own]:
            stale += _changed(row, by_number[own])
            apart += _contradicted(row, by_number[own])
    add("stale", stale, "communities have changed since their report was written")
    add("disagree", apart, "reports and communities disagree")
    for column in ("title", "summary", "full_content"):
        blank = [_shown(row) for row in rows if column in row and not text(row, column)]
        add("empty", blank, f"reports have an empty {column}")
    ranks = [(row, number(row, "rank")) for row in rows if "rank" in row]
    odd = [f"{_shown(row)}: {row['rank']}" for row, rank in ranks if rank is None]
    add("nan", odd, "ranks are missing or no numbers")
    far = [f"{_shown(row)}: {rank:g}" for row, rank in ranks if not 0 <= (rank or 0) <= 10]
    add("rank", far, "ranks are not from 0 to 10")


def _changed(report: Row, community: Row) -> list[str]:
    """The first thing of a community that its report says otherwise because it is older."""
    for column in ("size", "period"):
        said, there = text(report, column), text(community, column)
        if said and there and said != there:
            return [f"{_shown(report)}: {column} {said} in the report, {there} now"]
    return []


def _contradicted(report: Row, community: Row) -> list[str]:
    found = []
    for column in ("level", "parent"):
        said, there = whole(report, column), whole(community, column)
        if said is not None and said != there:
            found.append(f"{_shown(report)}: {column} {said}, the community says {there}")
    if "children" in report and "children" in community:
        if set(ids(report, "children")) != set(ids(community, "children")):
            found.append(f"{_shown(report)}: other children than the community")
    return found


def _references(tables: Tables) -> None:
    """Numbers in reports that no row has: the model made them up, or the rows have gone."""
    groups = {"Entities": "entities", "Relationships": "relationships", "Sources": "text_units"}
    known = {
        group: {whole(row, "human_readable_id") for row in tables.rows[name]}
        for group, name in groups.items()
        if name in tables.rows
    }
    lost: dict[str, None] = {}
    for row in tables.rows_of("community_reports"):
        for one in cited(text(row, "full_content", "summary")):
            for group, numbers in one.numbers.items():
                unknown = [each for each in numbers if each not in known.get(group, numbers)]
                lost |= dict.fromkeys(f"{_shown(row)}: {group} ({each})" for each in unknown)
    add = tables.of("community_reports", REPORT)
    add("reference", lost, "references name rows that are not there")


def _claims(tables: Tables) -> None:
    rows, add = tables.rows_of("covariates"), tables.of("covariates", AGAIN)
    if "text_units" in tables.rows:
        units = tables.known("text_units")
        named = ((row, text(row, "text_unit_id")) for row in rows)
        lost = [f"{_short(row)} names {unit[:32]}" for row, unit in named if unit not in units]
        add("dangling", lost, "text_unit_id leads nowhere")
    tables.blank("covariates", ["description"], "claims have an empty description")
    if "entities" in tables.rows:
        titles = tables.titles()
        strange = [one for row in rows if (one := text(row, "subject_id")) not in titles]
        what = "subjects are no entity, so no search joins these claims"
        add("subject", strange, what, UPDATE, True)


def _lance(tables: Tables) -> None:
    """The Lance tables hold the ids of their tables, no fewer and no more."""
    home = tables.folder / "lancedb"
    for table, names in VECTORS.items() if home.is_dir() else ():
        add = tables.of(f"lancedb/{names[0]}", EMBED)
        missing = f"{table} have no vectors" if tables.rows_of(table) else ""
        found = opened(
            add, "vectors do not open", partial(lance_ids, home, names), names[0], missing
        )
        if found is None or table not in tables.rows:
            continue
        rows, held = tables.known(table), set(found)
        without, with_one = sorted(rows - held), len(held & rows)
        what = f"{table} have no vector: {with_one:,} of {len(rows):,} have one"
        if without and held and with_one * 2 <= len(rows):
            what += ", as after an update that embedded only what was new"
        add("vectors", without, what)
        add("orphans", sorted(held - rows), f"vectors belong to no row of {table}")
        add("duplicate", several(found), "ids have several vectors")


# ---- LightRAG ------------------------------------------------------------------------------------

STATUS = "kv_store_doc_status.json"
FULL_ENTITIES, FULL_RELATIONS = "kv_store_full_entities.json", "kv_store_full_relations.json"
ENTITY_CHUNKS = "kv_store_entity_chunks.json"
NOT_DONE = ("pending", "processing", "parsing", "analyzing", "preprocessed")


class Storage(Faults):
    """The files of a working directory; None for one that is not there or does not open."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.docs, self.chunks = self.read(DOCS, True), self.read(CHUNKS, True)
        self.status = self.read(STATUS)
        self.nodes: dict[str, Row] | None = None
        self.edges: list[tuple[str, str, Row]] = []
        add, read = self.of(GRAPH, LIGHTRAG_AGAIN), partial(graph_of, folder)
        graph = opened(add, "file does not open as GraphML", read, GRAPH, "the file is missing")
        if graph is not None:
            names = several(name for name, _ in graph[0])
            add("duplicate", names, "names stand for several entities")
            self.nodes, self.edges = dict(graph[0]), graph[1]

    def read(self, name: str, needed: bool = False) -> dict[str, Row] | None:
        add, read = self.of(name, LIGHTRAG_AGAIN), partial(json_of, self.folder, name)
        missing = "the file is missing" if needed else ""
        return opened(add, "file does not open as JSON", read, name, missing)


def _chunks(storage: Storage) -> None:
    chunks, add = storage.chunks, storage.of(CHUNKS, LIGHTRAG_AGAIN)
    if chunks is None:
        return
    none = [id for id, row in chunks.items() if not text(row, "full_doc_id")]
    add("homeless", none, "chunks name no document")
    bare = [id for id, row in chunks.items() if not text(row, "content")]
    add("empty", bare, "chunks have no text")
    broken = [id for id, row in chunks.items() if BROKEN in text(row, "content")]
    repair = "Insert the documents again, split by a character or with another tokenizer"
    add("broken", broken, CUT, repair)
    orders = []
    for home, rows in _by_document(chunks).items():
        places = [row.get("chunk_order_index") for _, row in rows]
        numbers = sorted(place for place in places if isinstance(place, int))
        if home and numbers and numbers != list(range(len(rows))):
            orders.append(home)
    add("order", orders, "documents whose chunks are not numbered 0, 1, 2, ...")


def _by_document(chunks: dict[str, Row]) -> dict[str, list[tuple[str, Row]]]:
    homes: dict[str, list[tuple[str, Row]]] = defaultdict(list)
    for id, row in chunks.items():
        homes[text(row, "full_doc_id")].append((id, row))
    return homes


def _sources(storage: Storage) -> None:
    """Chunks stand in the documents that they name."""
    docs, chunks = storage.docs, storage.chunks
    if docs is None or chunks is None:
        return
    add, of_docs = storage.of(CHUNKS, LIGHTRAG_AGAIN), storage.of(DOCS, LIGHTRAG_AGAIN)
    homes = _by_document(chunks)
    gone = [home for home in homes if home and home not in docs]
    lost = [f"{homes[home][0][0]} names {home}" for home in gone]
    add("dangling", lost, "documents of chunks are not there")
    bare = [id for id, row in docs.items() if id not in homes and text(row, "content")]
    of_docs("bare", bare, "documents have no chunk, so no search finds them")
    blank = [id for id, row in docs.items() if not text(row, "content")]
    of_docs("empty", blank, "documents have no text")
    apart = []
    for home, rows in homes.items():
        whole_text = "".join(text(docs.get(home, {}), "content").split())
        apart += [id for id, row in rows if whole_text and flat(row, "content") not in whole_text]
    add("elsewhere", apart, ELSEWHERE, "", True)


def _status(storage: Storage) -> None:
    status, docs, chunks = storage.status, storage.docs, storage.chunks
    if status is None:
        return
    add = storage.of(STATUS, LIGHTRAG_AGAIN)
    said = {id: text(row, "status").lower().rpartition(".")[2] for id, row in status.items()}
    bad = {id: text(status[id], "error_msg", "error") for id in said if said[id] == "failed"}
    failed = [f"{id}: {message[:80]}" for id, message in bad.items()]
    add("failed", failed, "documents failed", "Run LightRAG's retry of failed documents")
    waiting = [id for id, one in said.items() if one in NOT_DONE]
    add("pending", waiting, "documents are not done", "Let LightRAG finish its queue")
    done = [id for id, one in said.items() if one == "processed"]
    if docs is not None:
        lost = [id for id in done if id not in docs]
        add("dangling", lost, "processed documents are not in the store of documents")
        unknown = [id for id in docs if id not in status]
        storage.of(DOCS, LIGHTRAG_AGAIN)("unknown", unknown, "documents have no status")
    if chunks is not None:
        listed = ((id, one) for id, row in status.items() for one in row.get("chunks_list") or ())
        lost = [f"{id} names {one}" for id, one in listed if one not in chunks]
        add("dangling", lost, "chunks of documents are not there")
        counts = Counter(text(row, "full_doc_id") for row in chunks.values())
        for_done = [{**status[id], "id": id} for id in done]
        counted = recounted(
            for_done, "chunks_count", lambda row: counts[row["id"]], lambda row: row["id"]
        )
        add("count", counted, "counts of chunks are not those of the store")


def _gone(named: Iterable[tuple[str, Row]], chunks: dict[str, Row]) -> list[str]:
    """Chunks that are named and not there."""
    sources = ((name, id) for name, row in named for id in parts(row, "source_id"))
    return [f"{name} names {id}" for name, id in sources if id not in chunks]


def _nodes(storage: Storage) -> None:
    nodes, add = storage.nodes, storage.of(GRAPH, LIGHTRAG_AGAIN)
    if nodes is None:
        return
    blank = [name for name, row in nodes.items() if not text(row, "description")]
    add("empty", blank, "entities have an empty description")
    bare = [name for name, row in nodes.items() if not text(row, "entity_type")]
    add("type", bare, "entities have no type", "", True)
    none = [name for name, row in nodes.items() if not parts(row, "source_id")]
    add("empty", none, "entities rest on no chunk, so nothing can be cited for them")
    if storage.chunks is not None:
        add("dangling", _gone(nodes.items(), storage.chunks), "chunks of entities are not there")
    linked = {end for edge in storage.edges for end in edge[:2]}
    alone = [name for name in nodes if name not in linked]
    add("alone", alone, "entities have no relationship", NO_MORE, True)


def _edges(storage: Storage) -> None:
    nodes, edges, add = storage.nodes, storage.edges, storage.of(GRAPH, LIGHTRAG_AGAIN)
    shown = [(f"{source} - {target}", row) for source, target, row in edges]
    if nodes is not None:
        ends = ((end, edge) for edge in edges for end in edge[:2] if end not in nodes)
        lost = [f"{end} ({edge[0]} - {edge[1]})" for end, edge in ends]
        add("dangling", lost, "ends of relationships are no entity")
    twice = [" - ".join(pair) for pair in several(tuple(sorted(edge[:2])) for edge in edges)]
    add("duplicate", twice, "pairs have several relationships")
    loops = [f"{source} - {target}" for source, target, _ in edges if source == target]
    add("loop", loops, "relationships join an entity with itself")
    blank = [name for name, row in shown if not text(row, "description")]
    add("empty", blank, "relationships have an empty description")
    odd = [name for name, row in shown if number(row, "weight") is None]
    add("nan", odd, "weights are missing or no numbers")
    if storage.chunks is not None:
        add("dangling", _gone(shown, storage.chunks), "chunks of relationships are not there")


def _vectors(storage: Storage) -> None:
    """The vector files hold what the graph and the chunks hold, no fewer and no more."""
    chunks = None if storage.chunks is None else set(storage.chunks)
    wanted: dict[str, set[Any] | None] = {"chunks": chunks, "entities": None, "relationships": None}
    if storage.nodes is not None:
        wanted["entities"] = {_bare(name) for name in storage.nodes}
        wanted["relationships"] = {tuple(sorted(map(_bare, edge[:2]))) for edge in storage.edges}
    for kind, there in wanted.items():
        where = f"vdb_{kind}.json"
        add = storage.of(where, LIGHTRAG_VECTORS)
        some = there and any((storage.folder / f"vdb_{one}.json").exists() for one in wanted)
        read, missing = partial(vectors_of, storage.folder, kind), f"{kind} have no vectors"
        rows = opened(add, "vectors do not open", read, where, missing if some else "")
        if there is None or rows is None:
            continue
        held = [_subject(kind, row) for row in rows]
        add("vectors", sorted(map(str, there - set(held))), f"{kind} have no vector")
        orphans = sorted(map(str, set(held) - there))
        add("orphans", orphans, f"vectors belong to no {kind} that are there")
        add("duplicate", several(held), "several vectors belong to one thing")


def _subject(kind: str, row: Row) -> Any:
    if kind == "chunks":
        return text(row, "__id__")
    if kind == "entities":
        return _bare(text(row, "entity_name"))
    return tuple(sorted((_bare(text(row, "src_id")), _bare(text(row, "tgt_id")))))


def _bare(name: str) -> str:
    return name.strip().strip('"')


def _lists(storage: Storage) -> None:
    """The lists by document and by entity that newer versions keep name what is there."""
    docs, nodes = storage.docs, storage.nodes
    names = (FULL_ENTITIES, FULL_RELATIONS, ENTITY_CHUNKS)
    entities, relations, of_entity = (storage.read(name) or {} for name in names)
    add = {name: storage.of(name, LIGHTRAG_AGAIN) for name in names}
    for name, rows in ((FULL_ENTITIES, entities), (FULL_RELATIONS, relations)):
        if docs is not None:
            add[name]("dangling", [id for id in rows if id not in docs], "documents are not there")
    if nodes is None:
        return
    named = ((id, one) for id, row in entities.items() for one in row.get("entity_names") or ())
    lost = [f"{id} names {one}" for id, one in named if one not in nodes]
    add[FULL_ENTITIES]("dangling", lost, "entities of documents are not in the graph")
    pairs = {tuple(sorted(edge[:2])) for edge in storage.edges}
    said = ((id, one) for id, row in relations.items() for one in row.get("relation_pairs") or ())
    wrong = ((id, one) for id, one in said if tuple(sorted(map(str, one))) not in pairs)
    lost = [f"{id} names {' - '.join(map(str, one))}" for id, one in wrong]
    add[FULL_RELATIONS]("dangling", lost, "pairs of documents are not in the graph")
    lost = [name for name in of_entity if name.split(SEP)[0] not in nodes]
    add[ENTITY_CHUNKS]("dangling", lost, "entities are not in the graph")
