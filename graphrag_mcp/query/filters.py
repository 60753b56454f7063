"""Filters of a search: which documents, passages, entities and reports pass conditions such as `uri=notes/*`,
`date>=2024`, `entity!=Ada` (conditions.py). A snapshot that proposes only what passes: narrowed.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import conditions as reading
from graphrag_mcp.query import context, entities, links, times
from graphrag_mcp.query.conditions import (
    SHOWN,
    TIME,
    Condition,
    hold_of,
    hold_of_days,
    hold_of_document,
    hold_of_times,
    is_valid,
    together,
    was_said,
)
from graphrag_mcp.query.rank import Ranked
from graphrag_mcp.query.times import Fact, documents
from graphrag_mcp.settings import DEFAULT_TYPES
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.terms import counted

MOST = 20  # filters of one call
OF_ROWS = (
    "topic",
    "tag",
    "entity",
    "type",
    "rating",
    "when",
    "said",
)  # not of what documents state

Part = tuple[str, Snapshot, "Filters | None"]  # a corpus, as its filters narrow it


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search may show. `documents` are content ids of documents, None for all. `first` are
    rows of entities; a passage must name at least one of them, and they come first among
    entities. `without` are ids of the names of entities that a passage must not name."""

    conditions: tuple[Condition, ...] = ()
    documents: frozenset[str] | None = None
    first: Sequence[dict[str, Any]] = ()
    without: frozenset[str] = frozenset()
    note: str = ""  # what a reader should know about how the conditions were applied

    def of(self, *names: str) -> list[Condition]:
        return [
            condition for name in names for condition in self.conditions if condition.field == name
        ]

    def passage(self, document_id: str, entity_ids: Iterable[str]) -> bool:
        """Does a passage pass the conditions on documents, and name no excluded entity?"""
        allowed = self.documents is None or document_id in self.documents
        return allowed and (not self.without or self.without.isdisjoint(entity_ids))

    def includes(self, entity_ids: Iterable[str]) -> bool:
        """Does a passage name one of the included entities, if there are any?"""
        return not self.first or not entities.name_ids(self.first).isdisjoint(entity_ids)

    def timely(self, snapshot: Snapshot, ids: Sequence[str]) -> set[str]:
        """Of these passages (content ids) those that pass the conditions on their time."""
        if not self.of(*TIME):
            return set(ids)
        found = times.of_passages(snapshot, ids)
        return {id for id in ids if id in found and hold_of_times(self.of(*TIME), found[id])}

    def rows(self, snapshot: Snapshot, found: pa.Table) -> pa.Table:
        """Of rows of passages those that pass."""
        rows = rows_of(found.select(["id", "document_id", "entity_ids"]))
        passing = [id for id, document, ids in rows if self.passage(document, ids)]
        timely = self.timely(snapshot, passing)
        return found.filter(pc.is_in(found["id"], pa.array(sorted(timely), pa.string())))

    def passing(self, snapshot: Snapshot, passages: Sequence[Ranked]) -> list[Ranked]:
        """The passages that pass."""
        kept = [
            passage for passage in passages if self.passage(passage.document_id, passage.entity_ids)
        ]
        timely = self.timely(snapshot, [passage.id for passage in kept])
        return [passage for passage in kept if passage.id in timely]

    def including(
        self, snapshot: Snapshot, passages: Sequence[Ranked], count: int | None
    ) -> list[Ranked]:
        """Passages that name an included entity: those of the question, then some of no word."""
        known = {passage.id for passage in passages}
        included = [passage for passage in passages if self.includes(passage.entity_ids)]
        naming = [passage for row in self.first for passage in entities.naming(snapshot, row)]
        others = {
            passage.id: passage
            for passage in self.passing(snapshot, naming)
            if passage.id not in known
        }
        ranked = [replace(passage, score=0.5 + passage.score / 2) for passage in included]
        lowest = 0.5 if included else 1.0
        ranked += [replace(passage, score=lowest) for passage in list(others.values())[:count]]
        return [replace(passage, parts={**passage.parts, "included": 1.0}) for passage in ranked]

    def speaks_of(self, intervals: Sequence[tuple[str, str]], day: str) -> bool:
        """Does one of these intervals (pairs of ISO days) pass the conditions on `when`, and the
        day on which a sentence was said the conditions on `said` and `as_of`?"""
        conditions = self.of("when")
        of_then = not conditions or any(
            hold_of_days(conditions, interval) for interval in intervals
        )
        return of_then and was_said(self.of("said", "as_of"), day)

    def in_time(self, snapshot: Snapshot, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Passages cut to the longest part that passes the conditions on `said` and `as_of`."""
        if not (conditions := self.of("said", "as_of")):
            return rows
        spoken, found = times.read(snapshot, rows), []
        for row in rows:
            runs = groupby(spoken[row["id"]].parts(), lambda part: was_said(conditions, part[2]))
            kept = [[*run] for passes, run in runs if passes]
            spans = [(run[0][0], run[-1][1]) for run in kept]
            start, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
            found.append(context.part_of(row, start, end) if start < end else row)
        return found

    def passing_documents(self, snapshot: Snapshot) -> list[str]:
        """Documents with a text unit that names an included entity and no excluded one, and with a
        passage that passes the conditions on time."""
        ids = [id for id in documents(snapshot) if self.passage(id, ())]
        if self.first or self.without:
            rows = snapshot.by_key("text_units", self.units(snapshot), "id", ["document_id"])
            named = set(values_of(rows["document_id"]))
            ids = [id for id in ids if id in named]
        if conditions := self.of(*TIME):
            found = times.of_documents(snapshot, ids)
            ids = [
                id for id in ids if any(hold_of_times(conditions, passage) for passage in found[id])
            ]
        return ids

    def units(self, snapshot: Snapshot) -> list[str]:
        """Text units of the documents that pass which name an included entity and no excluded one."""

        def naming(ids: Iterable[str]) -> set[str]:
            rows = snapshot.by_key("entities", sorted(ids), "id", ["text_unit_ids"])
            return {id for row in values_of(rows["text_unit_ids"]) for id in row}

        rows = snapshot.rows("text_units", "", ["id", "document_id"])
        units = {id for id, document in rows_of(rows) if self.passage(document, ())}
        units &= naming(row["id"] for row in self.first) if self.first else units
        return sorted(units - naming(self.without) if self.without else units)

    def entity(self, row: Mapping[str, Any]) -> bool:
        return row["id"] not in self.without and hold_of(self.of("type"), [row.get("type", "")])

    def report(self, rank: float) -> bool:
        return hold_of(self.of("rating"), [rank])

    def nothing(self, snapshot: Snapshot) -> tuple[str, str]:
        """The text of a result if no passage that passes the filters speaks of the question, and an advice."""
        facts = documents(snapshot)
        every, passed = counted(len(facts), "documents"), len(self.passing_documents(snapshot))
        listed = f"({', '.join(map(str, self.conditions))})"
        dated = sorted(fact["date"] for fact in facts.values() if fact["date"])
        if passed:
            text = f"Nothing that passes the filters {listed} speaks of this question. {passed} of {every} pass."
            return text, "Ask again with fewer filters, or list what passes with list_documents."
        text = f"0 of {every} pass the filters {listed}."
        if self.of("date") and dated:  # the note says how many have none
            text += f" Dates go from {dated[0]} to {dated[-1]}."
        return text, "Ask again with fewer filters."


def read(snapshot: Snapshot, texts: Sequence[str], min_rating: float = 0.0) -> Filters | None:
    """The filters of a call; None when there are none. BadInput says what cannot be read."""
    written = [text for text in texts if text.strip()]
    if len(written) > MOST:
        what = f"{len(written)} filters were given, and a call takes at most {MOST}"
        raise BadInput(what, "Join conditions with * (uri=notes/*), or search in several calls")
    facts = documents(snapshot)
    keys = {key for fact in facts.values() for key in fact["metadata"]} if written else set[str]()
    conditions = [reading.read(text, keys) for text in written]
    if min_rating > 0:
        conditions.append(Condition("rating", ">=", f"{min_rating:g}"))
    if not conditions:
        return None
    filters = Filters(tuple(conditions))
    filters = replace(filters, documents=_documents(snapshot, filters))
    included = _named(snapshot, [each for each in filters.of("entity") if each.op == "="])
    excluded = _named(snapshot, [each for each in filters.of("entity") if each.op == "!="])
    without = entities.name_ids(excluded)
    return replace(filters, first=included, without=without, note=_note(snapshot, filters))


def _documents(snapshot: Snapshot, filters: Filters) -> frozenset[str] | None:
    """The documents that pass the conditions on documents; None where there are none."""
    stated = [condition for condition in filters.conditions if condition.field not in OF_ROWS]
    passing: list[frozenset[str]] = []
    if stated:
        facts = documents(snapshot).items()
        passing.append(frozenset(id for id, fact in facts if hold_of_document(fact, stated)))
    if topics := filters.of("topic"):
        passing.append(_in_topics(snapshot, topics))
    if tags := filters.of("tag"):
        passing.append(_with_tags(snapshot, tags))
    return frozenset.intersection(*passing) if passing else None


def _named(snapshot: Snapshot, conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """The entities that conditions name, each with those that are part of it."""
    found: dict[str, dict[str, Any]] = {}
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
    number = {condition: int(condition.value.strip("[c]")) for condition in conditions}
    rows = snapshot.by_key("reports", sorted(set(number.values())), "n", ["id", "n", "level"])
    rows = rows.to_pylist()
    if lost := set(number.values()) - {row["n"] for row in rows}:
        what = f"there is no topic c{min(lost)}"
        raise BadInput(what, "list_documents and global_search show them")
    document_of = dict(rows_of(snapshot.rows("text_units", "", ["id", "document_id"])))
    paths = context.topic_paths(snapshot, document_of)
    found: dict[str, list[str]] = {id: [] for id in document_of.values()}
    for level in {row["level"] for row in rows}:
        at_level = {unit: context.topic_at(path, level) for unit, path in paths.items() if path}
        for document, topic in context.main_topics(at_level, document_of).items():
            found[document].append(topic)
    ids = {row["n"]: row["id"] for row in rows}

    def passes(topics: Sequence[str]) -> bool:
        numbers = {number for number, id in ids.items() if id in topics}
        return together(
            conditions, lambda condition: (number[condition] in numbers) == (condition.op == "=")
        )

    return frozenset(id for id, topics in found.items() if passes(topics))


def _with_tags(snapshot: Snapshot, conditions: Sequence[Condition]) -> frozenset[str]:
    """The documents whose tags, in their text or metadata, pass these conditions; `harbour` is a tag of what has
    `harbour/sill`."""
    plain = [replace(condition, value=condition.value.strip("#/ ")) for condition in conditions]
    by_document = links.tags_of_documents(snapshot)
    return frozenset(id for id, tags in by_document.items() if hold_of(plain, tags))


# ---- notes -------------------------------------------------------------------------------------


def _note(snapshot: Snapshot, filters: Filters) -> str:
    """What a reader should know about how the conditions were applied."""
    facts, notes = documents(snapshot), list[str]()
    if of_type := filters.of("type"):
        types = values_of(snapshot.rows("entities", "", ["type"])["type"].unique())
        usual = [kind for kind in DEFAULT_TYPES if kind in types]  # not what a model made up
        notes.append(_no_such("No entity is of type", of_type, types, usual))
    notes.append(_undated(facts, filters))
    if tagged := filters.of("tag"):
        counts = Counter(tag for tags in links.tags_of_documents(snapshot).values() for tag in tags)
        most = sorted(counts, key=lambda tag: (-counts[tag], tag))
        notes.append(_no_such("No document has the tag", tagged, counts, most))
    wanted = [each.value for each in filters.of("document", "uri") if each.op == "="]
    if facts and wanted and not filters.documents:
        pattern = f"uri=*{one_line(wanted[0].strip('*'), 60)}*"
        notes.append(f'No document passes; * stands for anything, as in "{pattern}".')
    return " ".join(filter(None, notes))


def _no_such(
    what: str, conditions: Sequence[Condition], known: Iterable[str], shown: Sequence[str]
) -> str:
    """That there is nothing of a value that was asked for, and which values there are."""
    values = {value.casefold() for value in known}
    lost = [each for each in conditions if each.value.casefold().strip("#/ ") not in values]
    listed = ", ".join(one_line(value, 40) for value in shown[:SHOWN]) or "none"
    return f"{what} {one_line(lost[0].value, 40)!r}; there are {listed}." if lost else ""


def _undated(facts: Mapping[str, Fact], filters: Filters) -> str:
    """How many documents have no date of their own, and what conditions on time make of them."""
    undated, notes = sum(not fact["date"] for fact in facts.values()), []
    every = counted(len(facts), "documents")
    for condition in filters.of("as_of"):
        later = sum(not is_valid(fact, condition.value) for fact in facts.values())
        what = f"are later than {condition.value} or no longer valid then, and left out."
        notes.append(f"{later} of {every} {what}")
    if undated and notes:
        notes.append(f"{undated} without a date stay in.")
    elif undated and filters.of("when", "said"):
        which = "only passages under a dated heading or with a date in words can pass."
        notes.append(f"{undated} of {every} state no date: of them {which}")
    elif undated and filters.of("date"):
        notes.append(f"{undated} of {every} state no date and pass no date filter.")
    return " ".join(notes)
