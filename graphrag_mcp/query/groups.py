"""Documents by year, month or day, with their numbers; the people and organizations that most of them name."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.terms import counted, lists_of

PERIODS = {"year": 4, "month": 7, "day": 10}  # characters of a date
KINDS = {"person": "People", "organization": "Organizations"}
NAMES = 5  # that characterise a period
MOST_NAMED = 10  # names of a kind in an overview
NAMED_BY = 2  # documents that name what an overview shows


def by_period(snapshot: Snapshot, dates: Mapping[str, str], length: int) -> list[str]:
    """`- 2024-05, 12 documents: names` for each period, with the names that it has more than others.
    `dates` of documents by id; a period is the first `length` characters of a date."""
    names = characteristic(snapshot, dates, length)
    periods = Counter(date[:length] for date in dates.values() if date)
    lines = []
    for period in sorted(periods):
        listed = f": {', '.join(names[period])}" if names.get(period) else ""
        lines.append(f"- {period}, {counted(periods[period], 'documents')}{listed}")
    return lines


def most_named(snapshot: Snapshot, kind: str, documents: Collection[str] | None = None) -> list[tuple[str, int]]:
    """(id, number of documents) of the entities of a type, those that most documents name first.
    `documents` are the content ids of those that count; None: all."""
    document_of = dict(rows_of(snapshot.rows("text_units", "", ["id", "document_id"])))
    columns = ["id", "title", "degree", "text_unit_ids"]
    rows = snapshot.rows("entities", f"type = '{kind}'", columns).to_pylist()
    degree = {row["id"]: row["degree"] for row in rows}
    named: dict[str, set[str]] = {}
    for row in rows:
        naming = {document_of[unit] for unit in row["text_unit_ids"] if unit in document_of}
        named[row["id"]] = naming if documents is None else naming.intersection(documents)
    if kind == "person":
        _count_once(named, {row["id"]: row["title"] for row in rows})
    found = [(id, len(found_in)) for id, found_in in named.items() if found_in]
    return sorted(found, key=lambda pair: (-pair[1], -degree[pair[0]], pair[0]))


def _count_once(named: dict[str, set[str]], title: Mapping[str, str]) -> None:
    """Count each document for one name of a person: those of a longer name that ends with a full name (President
    George W Bush) for that; those of a family name (Ferguson) for the only full name with it, where most documents of
    this hold the family name alone too. A family name of several people is not counted."""
    by_title = {title[id]: id for id in named}
    for id in sorted(named, key=lambda id: -len(title[id])):  # Since President George W Bush
        words = title[id].split()
        ends = (by_title.get(" ".join(words[at:]), "") for at in range(1, len(words) - 1))
        if person := next((end for end in ends if end and len(named[end]) >= NAMED_BY), ""):  # not W Bush
            named[person] |= named[id]
            named[id] = set()
    full = (id for id in named if " " in title[id] and named[id])
    bearers = lists_of((title[id].split()[-1], id) for id in full)
    for id in named:
        people = bearers.get(title[id], [])
        if len(people) == 1 and len(named[people[0]]) >= NAMED_BY:
            (person,) = people
            if 2 * len(named[id] & named[person]) > len(named[person]):
                named[person] |= named[id]
        if people:
            named[id] = set()


def overview(snapshot: Snapshot, documents: Collection[str] | None = None, prefix: str = "") -> str:
    """`People: Tony Blair [e3] 55, ...`: a line for each type; "" if no name of the type occurs in
    two documents. `prefix` is put before ids."""
    lines = []
    for kind, label in KINDS.items():
        found = most_named(snapshot, kind, documents)[:MOST_NAMED]
        number = {id: count for id, count in found if count >= NAMED_BY}
        rows = snapshot.served("entities", list(number), ["id", "n", "title"])
        names = [f"{one_line(row['title'], 40)} [{prefix}e{row['n']}] {number[row['id']]}" for row in rows]
        if names:
            lines.append(f"{label}: {', '.join(names)}")
    return "\n".join(["Named by most documents:", *lines]) if lines else ""


def characteristic(snapshot: Snapshot, dates: Mapping[str, str], length: int) -> dict[str, list[str]]:
    """By period (the first `length` characters of a date): up to NAMES names that it has more than
    others. `dates` of documents by id."""
    rows = snapshot.rows("passages", "", ["document_id", "entity_ids"])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for id, ids in rows_of(rows):
        if dates.get(id):
            counts[dates[id][:length]].update(ids)
    within = Counter(id for counter in counts.values() for id in counter)
    best: dict[str, list[str]] = {}
    for period, counter in counts.items():
        value = {id: counter[id] * math.log(1 + len(counts) / within[id]) for id in counter}
        best[period] = sorted(value, key=lambda id: (-value[id], id))[: NAMES * 3]
    entity_ids = list(dict.fromkeys(id for ids in best.values() for id in ids))
    found = snapshot.served("entities", entity_ids, ["id", "title"])
    title = {row["id"]: one_line(row["title"], 40) for row in found}
    return {period: [title[id] for id in ids if id in title][:NAMES] for period, ids in best.items()}
