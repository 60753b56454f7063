"""Filters of a search: what passes conditions such as `uri=notes/*`, `date>=2024`, `entity!=Ada` (conditions.py), and
a snapshot that proposes nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import conditions as reading
from graphrag_mcp.query import context, entities, links, times
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.conditions import (
    TIME,
    Condition,
    Days,
    all_hold,
    hold_of,
    hold_of_days,
    hold_of_document,
    hold_of_times,
    is_valid,
    was_said,
)
from graphrag_mcp.query.times import documents
from graphrag_mcp.store.tables import Snapshot, Values, Wanted, rows_of, values_of
from graphrag_mcp.text.terms import counted

MOST = 20  # filters of one call
FIRST_PROBE = 800  # candidates that are read at first; four times as many each time after
# Fields that a document does not state of itself.
OF_ROWS = ("topic", "tag", "entity", "type", "rating", "when", "said")

Row = dict[str, Any]
Part = tuple[str, Snapshot, "Filters | None"]  # a corpus, as its filters narrow it


@dataclass(frozen=True)
class Filters:
    """What a search may show. `documents` are content ids of documents, None for all. `first` are
    rows of entities: a passage must name at least one of them, and they come first among
    entities. `without` are ids of the names of entities that a passage must not name. `note`: what a
    reader should know about how the conditions were applied."""

    snapshot: Snapshot
    conditions: tuple[Condition, ...] = ()
    documents: frozenset[str] | None = None
    first: Sequence[Row] = ()
    without: frozenset[str] = frozenset()
    note: str = ""

    def of(self, *names: str) -> list[Condition]:
        """The conditions on these fields."""
        return [condition for condition in self.conditions if condition.field in names]

    @property
    def of_passages(self) -> bool:
        """May some passages of a document pass, and others not?"""
        return bool(self.first or self.without or self.of(*TIME))

    @property
    def narrows(self) -> bool:
        """Are there passages that might not pass?"""
        return self.documents is not None or self.of_passages

    def passing(self, passages: Iterable[tuple[str, str, Sequence[str]]]) -> set[str]:
        """The ids of the passages that pass, of (id, document, entities)."""
        included = entities.name_ids(self.first)
        ids = [
            id
            for id, document, named in passages
            if (self.documents is None or document in self.documents)
            and (not self.first or not included.isdisjoint(named))
            and self.without.isdisjoint(named)
        ]
        if timed := self.of(*TIME):
            found = times.of_passages(self.snapshot, ids)
            ids = [id for id in ids if id in found and hold_of_times(timed, found[id])]
        return set(ids)

    def rows(self, found: pa.Table) -> pa.Table:
        """Of rows of passages those that pass."""
        passing = self.passing(rows_of(found.select(["id", "document_id", "entity_ids"])))
        return found.filter(pc.is_in(found["id"], pa.array(sorted(passing), pa.string())))

    @cached_property
    def _places(self) -> list[tuple[str, str]]:
        """The document and the text unit of each passage that passes."""
        names = ["id", "document_id", "entity_ids", "text_unit_id"]
        if self.documents is None:
            table = self.snapshot.rows("passages", "", names)
        else:
            ids = sorted(self.documents)
            table = self.snapshot.by_key("passages", ids, "document_id", names)
        passing = self.passing(rows_of(table.select(names[:3])))
        return [(document, unit) for id, document, _, unit in rows_of(table) if id in passing]

    @property
    def units(self) -> set[str]:
        """The text units of the passages that pass."""
        return {unit for _, unit in self._places}

    @property
    def passing_documents(self) -> list[str]:
        """The documents with a passage that passes."""
        if self.of_passages:
            return list(dict.fromkeys(document for document, _ in self._places))
        known = documents(self.snapshot)
        return [id for id in known if self.documents is None or id in self.documents]

    def including(self, passages: Sequence[Passage], count: int | None) -> list[Passage]:
        """The passages of a question, then some that name an included entity and hold no word of it."""
        naming = [one for row in self.first for one in entities.naming(self.snapshot, row)]
        ids = self.passing((one.id, one.document_id, one.entity_ids) for one in naming)
        ids -= {passage.id for passage in passages}
        lowest = 0.5 if passages else 1.0
        others = {one.id: replace(one, score=lowest) for one in naming if one.id in ids}
        ranked = [replace(passage, score=0.5 + passage.score / 2) for passage in passages]
        return [*ranked, *list(others.values())[:count]]

    def pass_time(self, intervals: Sequence[Days], day: str) -> bool:
        """Does a sentence that speaks of these days and was said on this one pass?"""
        return hold_of_days(self.conditions, intervals) and was_said(self.conditions, day)

    def in_time(self, rows: list[Row]) -> list[Row]:
        """Passages cut to the longest part that passes the conditions on `said` and `as_of`."""
        if not self.of("said", "as_of"):
            return rows
        spoken, found = times.read(self.snapshot, rows), []
        for row in rows:
            parts = spoken[row["id"]].parts()
            runs = groupby(parts, lambda part: was_said(self.conditions, part[2]))
            kept = [[*run] for passes, run in runs if passes]
            spans = [(run[0][0], run[-1][1]) for run in kept]
            start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
            found.append(context.part_of(row, start, end) if start < end else row)
        return found

    def entity(self, row: Mapping[str, Any]) -> bool:
        return row["id"] not in self.without and hold_of(self.of("type"), [row.get("type", "")])

    def report(self, rank: float) -> bool:
        return hold_of(self.of("rating"), [rank])

    def nothing(self) -> tuple[str, str]:
        """The text of a result if no passage that passes the filters speaks of the question, and an advice."""
        every = counted(len(documents(self.snapshot)), "documents")
        passed = len(self.passing_documents)
        listed = f"({', '.join(map(str, self.conditions))})"
        text = f"{passed} of {every} pass the filters {listed}"
        text += ", and none of them speaks of this question." if passed else "."
        return text, "Ask again with fewer filters, or list what passes with list_documents."


class Narrowed(Snapshot):
    """A snapshot whose full text and reports are limited to what passes the filters, and whose passages are cut to
    what was said in time; everything else is read through the snapshot that it is made of. It counts as the same
    key in caches by snapshot."""

    def __init__(self, filters: Filters) -> None:
        self.__dict__["inner"], self.__dict__["filters"] = filters.snapshot, filters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    @property
    def whole(self) -> Snapshot:
        return self.inner.whole

    def full_text(self, table: str, terms: Sequence[str], limit: int = 200, columns: Wanted = None) -> pa.Table:
        """From as many candidates as it takes to find `limit` that pass."""
        if table not in ("passages", "reports"):
            return self.inner.full_text(table, terms, limit, columns)
        keep = self.filters.rows if table == "passages" else self._reports
        probe, total = max(limit, FIRST_PROBE), self.count(table)
        while True:
            found = self.inner.full_text(table, terms, min(probe, total))
            kept = keep(found)
            if kept.num_rows >= limit or probe >= total or found.num_rows < probe:
                names = columns or [name for name in kept.column_names if name != "_score"]
                return kept.slice(0, limit).select([*names, "_score"])
            probe *= 4

    def rows(self, table: str, where: str = "", columns: Wanted = None, limit: int | None = None) -> pa.Table:
        if table != "reports":
            return self.inner.rows(table, where, columns, limit)
        found = self._reports(self.inner.rows(table, where, None, limit))
        return found.select(columns or found.column_names)

    def by_key(self, table: str, values: Values, key: str | None = None, columns: Wanted = None) -> pa.Table:
        if table != "reports":
            return self.inner.by_key(table, values, key, columns)
        found = self._reports(self.inner.by_key(table, values, key))
        return found.select(columns or found.column_names)

    def served(self, table: str, ids: Sequence[str], columns: Wanted = None) -> list[Row]:
        rows = self.inner.served(table, ids, columns)
        return self.filters.in_time(rows) if table == "passages" else rows

    def _reports(self, found: pa.Table) -> pa.Table:
        """Reports of enough rating, on communities that may be shown."""
        passes = [self.filters.report(rank) for rank in values_of(found["rank"])]
        found = found.filter(pa.array(passes, pa.bool_()))
        if not (self.filters.narrows or self.filters.of("type")):
            return found
        return found.filter(pc.is_in(found["id"], self._communities))

    @cached_property
    def _communities(self) -> pa.Array:
        """Communities with an entity that passes and that a passage names which passes, and with no excluded one."""
        filters, columns = self.filters, ["id", "type", "text_unit_ids"]
        rows = [row for row in self.inner.rows("entities", "", columns).to_pylist()]
        units = filters.units if filters.narrows else None
        named = {
            row["id"]
            for row in rows
            if filters.entity(row) and (units is None or not units.isdisjoint(row["text_unit_ids"]))
        }
        members = rows_of(self.inner.rows("communities", "", ["id", "entity_ids"]))
        allowed = [id for id, ids in members if filters.without.isdisjoint(ids) and not named.isdisjoint(ids)]
        return pa.array(allowed, pa.string())


# ---- reading -------------------------------------------------------------------------------------


def read(snapshot: Snapshot, texts: Sequence[str], min_rating: float = 0.0) -> Filters | None:
    """The filters of a call; None when there are none. BadInput says what cannot be read."""
    written = [text for text in texts if text.strip()]
    if len(written) > MOST:
        what = f"{len(written)} filters were given, and a call takes at most {MOST}"
        raise BadInput(what, "Join conditions with * (uri=notes/*), or search in several calls")
    facts = documents(snapshot)
    keys = {key for fact in facts.values() for key in fact.metadata} if written else set[str]()
    conditions = [reading.read(text, keys) for text in written]
    if min_rating > 0:
        conditions.append(Condition("rating", ">=", f"{min_rating:g}"))
    if not conditions:
        return None
    filters = Filters(snapshot, tuple(conditions))
    included = _named(snapshot, [each for each in filters.of("entity") if each.op == "="])
    excluded = _named(snapshot, [each for each in filters.of("entity") if each.op == "!="])
    return replace(
        filters, documents=_documents(filters), first=included, without=entities.name_ids(excluded), note=_note(filters)
    )


def _documents(filters: Filters) -> frozenset[str] | None:
    """The documents that pass the conditions on what they state, on their tags and their topics; None for all."""
    facts, passing = documents(filters.snapshot), list[frozenset[str]]()
    if stated := [each for each in filters.conditions if each.field not in OF_ROWS]:
        passing.append(frozenset(id for id in facts if hold_of_document(facts[id], stated)))
    if tags := [replace(tag, value=tag.value.strip("#/ ")) for tag in filters.of("tag")]:
        known = links.tags_of_documents(filters.snapshot)
        passing.append(frozenset(id for id in facts if hold_of(tags, known[id])))
    if topics := filters.of("topic"):
        passing.append(_in_topics(filters.snapshot, topics))
    return frozenset.intersection(*passing) if passing else None


def _named(snapshot: Snapshot, conditions: Sequence[Condition]) -> list[Row]:
    """The entities that conditions name, each with those that are part of it."""
    found: dict[str, Row] = {}
    for condition in conditions:
        row, near = entities.resolve(snapshot, condition.value)
        if row is None:
            raise BadInput(
                f"a filter names the entity {one_line(condition.value, 60)!r}, which is not there",
                "search_text finds words that are no entity",
                names=f"Nearest: {entities.named_list(near[:5])}" if near else "",
            )
        parts = [id for id, whole in entities.part_of(snapshot).items() if row["id"] in whole]
        found |= {entity["id"]: entity for entity in [row, *snapshot.served("entities", parts)]}
    return list(found.values())


def _in_topics(snapshot: Snapshot, conditions: Sequence[Condition]) -> frozenset[str]:
    """The documents whose main topic, of the topics of its level, passes these conditions."""
    numbers = {condition.number for condition in conditions}
    rows = snapshot.by_key("reports", sorted(numbers), "n", ["id", "n", "level"]).to_pylist()
    if lost := numbers - {row["n"] for row in rows}:
        what = f"there is no topic c{min(lost)}"
        raise BadInput(what, "list_documents and global_search show them")
    document_of = dict(rows_of(snapshot.rows("text_units", "", ["id", "document_id"])))
    paths = context.topic_paths(snapshot, document_of)
    number_of = {row["id"]: row["n"] for row in rows}
    found: dict[str, set[int]] = {id: set() for id in document_of.values()}
    for level in {row["level"] for row in rows}:
        at_level = {unit: context.topic_at(path, level) for unit, path in paths.items() if path}
        for document, topic in context.main_topics(at_level, document_of).items():
            found[document].add(number_of.get(topic, 0))

    def passes(topics: set[int]) -> bool:
        return all_hold(conditions, lambda each: (each.number in topics) == (each.op == "="))

    return frozenset(id for id, topics in found.items() if passes(topics))


def _note(filters: Filters) -> str:
    """Values that nothing has, and how many documents have no date of their own."""
    snapshot, notes = filters.snapshot, list[str]()
    if of_type := filters.of("type"):
        types = Counter(values_of(snapshot.rows("entities", "", ["type"])["type"]))
        notes.append(_no_such("No entity is of type", of_type, types))
    if tagged := filters.of("tag"):
        tags = Counter(tag for of in links.tags_of_documents(snapshot).values() for tag in of)
        notes.append(_no_such("No document has the tag", tagged, tags))
    facts = documents(snapshot).values()
    undated, every = sum(not fact.date for fact in facts), counted(len(facts), "documents")
    for condition in filters.of("as_of"):
        later = sum(not is_valid(fact, condition.value) for fact in facts)
        what = f"are later than {condition.value} or no longer valid then, and left out."
        notes.append(f"{later} of {every} {what}")
    if undated and filters.of("as_of"):
        notes.append(f"{undated} without a date stay in.")
    elif undated and filters.of("when", "said"):
        which = "only passages under a dated heading or with a date in words can pass."
        notes.append(f"{undated} of {every} state no date: of them {which}")
    elif undated and filters.of("date"):
        notes.append(f"{undated} of {every} state no date and pass no date filter.")
    return " ".join(filter(None, notes))


def _no_such(what: str, conditions: Sequence[Condition], known: Counter[str]) -> str:
    """That there is nothing of a value that was asked for, and which values there are."""
    values = {value.casefold() for value in known}
    lost = [each for each in conditions if each.value.casefold().strip("#/ ") not in values]
    shown = ", ".join(sorted(known, key=lambda value: (-known[value], value))) or "none"
    return f"{what} {one_line(lost[0].value, 40)!r}; there are {one_line(shown, 200)}." if lost else ""
