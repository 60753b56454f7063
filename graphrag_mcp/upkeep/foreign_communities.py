"""Faults of GraphRAG's communities, reports, claims and vector store.

Takes tables that could be read; gives faults. An update of GraphRAG appends the new documents' communities to the old
ones, so two hierarchies stand in one table, entities are in both, and old reports speak of what has changed since: that
is told here by its own name. Changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from graphrag_mcp.references import cited
from graphrag_mcp.store.outside import Row, Unreadable, ids, lance_ids, number, text, whole
from graphrag_mcp.upkeep.fault import AGAIN, UPDATE, Fault, Tables, dangling, fault

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


def faults(tables: Tables) -> Iterator[Fault]:
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
    yield from fault("duplicate", "communities", twice, "numbers stand for several communities", CLUSTER)
    yield from fault(
        "nan",
        "communities",
        [text(row, "id") for row in rows if whole(row, "community") is None],
        "community is missing or no number",
        CLUSTER,
    )
    yield from _tree(by_number)
    yield from _members(tables, rows, by_number)
    for column, table in (("entity_ids", "entities"), ("relationship_ids", "relationships"),
                          ("text_unit_ids", "text_units")):  # fmt: skip
        yield from dangling(tables, "communities", rows, column, table, _shown)
    wrong = [
        f"{_shown(row)}: {number(row, 'size'):g}, recounted {len(set(ids(row, 'entity_ids')))}" for row in rows
        if number(row, "size") is not None and "entity_ids" in row
        and number(row, "size") != len(set(ids(row, "entity_ids")))
    ]  # fmt: skip
    yield from fault("size", "communities", wrong, "sizes are not the number of their entities", CLUSTER)
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
            levels.append(f"{_shown(row)}: level {whole(row, 'level')} under level {whole(above, 'level')}")
        extra = set(ids(row, "entity_ids")) - set(ids(above, "entity_ids"))
        if extra and "entity_ids" in above:
            outside.append(f"{_shown(row)}: {len(extra)} of its entities are not in community {parent}")
    for own, row in by_number.items():
        said = {int(one) for one in ids(row, "children") if one.lstrip("-").isdigit()}
        if "children" in row and said != children.get(own, set()):
            apart.append(
                f"{_shown(row)} names {sorted(said)}, as parent it is named by {sorted(children.get(own, ()))}"
            )
    yield from fault("dangling", "communities", lost, "parents are not there", CLUSTER)
    yield from fault("level", "communities", levels, "levels do not follow from the parents", CLUSTER)
    yield from fault("children", "communities", apart, "parents and children disagree", CLUSTER)
    yield from fault("members", "communities", outside, "communities hold entities that their parent does not", CLUSTER)


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
    yield from fault("outside", "entities", out, "entities have relationships and are in no community: no report and "
                     "no global search speaks of them", CLUSTER)  # fmt: skip
    both = []
    for id, places in held.items():
        levels = Counter(whole(row, "level") or 0 for row in places)
        if max(levels.values()) > 1:
            level = min(one for one, count in levels.items() if count > 1)
            numbers = [str(whole(row, "community")) for row in places if (whole(row, "level") or 0) == level]
            both.append(f"{title_of.get(id, id)}: communities {', '.join(numbers)} of level {level}")
    periods = sorted({text(row, "period") for row in rows} - {""})
    appended = len(periods) > 1
    what = "entities are in several communities of one level"
    yield from fault("overlap", "communities", both, what + (": an update was appended" if appended else ""), CLUSTER)
    several = [
        f"period {period}: {sum(text(row, 'period') == period for row in rows)} communities" for period in periods
    ]
    yield from fault("period", "communities", several if appended else [], "hierarchies of several runs stand beside "
                     "each other: communities were appended by an update", CLUSTER)  # fmt: skip


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
            f"{_shown(row)}: {text(row, 'title')[:60]}" for own in sorted(of) if own not in by_number for row in of[own]
        ]
        yield from fault(
            "dangling", "community_reports", lost, "reports speak of communities that are not there", REPORT
        )
    twice = [f"community {own}" for own, several in of.items() if len(several) > 1]
    yield from fault("duplicate", "community_reports", twice, "communities have several reports", REPORT)
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
                if whole(row, column) is not None and whole(row, column) != whole(community, column):
                    apart.append(f"community {own}: {column} {whole(row, column)}, the community says "
                                 f"{whole(community, column)}")  # fmt: skip
            if (
                "children" in row
                and "children" in community
                and set(ids(row, "children")) != set(ids(community, "children"))
            ):
                apart.append(f"community {own}: other children than the community")
    yield from fault(
        "stale", "community_reports", stale, "communities have changed since their report was written", REPORT
    )
    yield from fault("disagree", "community_reports", apart, "reports and communities disagree", REPORT)
    for column in ("title", "summary", "full_content"):
        blank = [_shown(row) for row in rows if column in row and not text(row, column)]
        yield from fault("empty", "community_reports", blank, f"reports have an empty {column}", REPORT)
    odd = [f"{_shown(row)}: {row['rank']}" for row in rows if "rank" in row and number(row, "rank") is None]
    yield from fault("nan", "community_reports", odd, "ranks are missing or no numbers", REPORT)
    far = [f"{_shown(row)}: {number(row, 'rank'):g}" for row in rows if not 0 <= (number(row, "rank") or 0) <= 10]
    yield from fault("rank", "community_reports", far, "ranks are not from 0 to 10", REPORT)


def _references(tables: Tables) -> Iterator[Fault]:
    """Numbers in reports that no row has: the model made them up, or the rows have gone."""
    groups = {"Entities": "entities", "Relationships": "relationships", "Sources": "text_units"}
    known = {group: {whole(row, "human_readable_id") for row in tables.of(name)} for group, name in groups.items()}
    lost = []
    for row in tables.of("community_reports"):
        for one in cited(text(row, "full_content", "summary")):
            lost += [f"{_shown(row)}: {group} ({each})" for group, numbers in one.numbers.items()
                     for each in numbers if group in known and groups[group] in tables.rows
                     and each not in known[group]]  # fmt: skip
    yield from fault(
        "reference", "community_reports", list(dict.fromkeys(lost)), "references name rows that are not there", REPORT
    )


def _claims(tables: Tables) -> Iterator[Fault]:
    rows = tables.of("covariates")

    def shown(row: Row) -> str:
        return text(row, "id")[:32]

    units, titles = tables.known("text_units"), {text(row, "title", "name") for row in tables.of("entities")}
    lost = [
        f"{shown(row)} names {text(row, 'text_unit_id')[:32]}" for row in rows if text(row, "text_unit_id") not in units
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
        yield from fault("orphans", where, sorted(held - rows), f"vectors belong to no row of {table}", EMBED)
        twice = [id for id, count in Counter(found).items() if count > 1]
        yield from fault("duplicate", where, twice, "ids have several vectors", EMBED)
