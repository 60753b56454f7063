"""Filters of a search: conditions on documents, entities and reports, such as `uri=notes/*`,
`date>=2024`, `entity!=Ada`.

A `Narrowed` snapshot proposes only what passes. Conditions `=` on one field are alternatives;
everything else must hold together."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import context, entities, links, times
from graphrag_mcp.query.rank import Ranked
from graphrag_mcp.query.times import documents
from graphrag_mcp.settings import DEFAULT_TYPES
from graphrag_mcp.store.tables import Snapshot, Values, Wanted, rows_of, values_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.citing import is_note
from graphrag_mcp.text.terms import counted

OF_ROWS = ("topic", "entity", "type", "rating")  # of more than what is known of a document
TIME = ("when", "said", "as_of")  # of passages: the days that they speak of, and their own
DATES = (*dates.KEYS, "valid_from", "valid_until", "committed")  # are compared by their days
FIELDS = (
    "document",
    "title",
    "uri",
    "kind",
    "tag",
    "topic",
    "entity",
    "type",
    "date",
    "rating",
    *TIME,
)
MOST = 20  # filters of one call
LISTED = 20  # documents that pass, where no word of the question is in them
SHOWN = 12  # metadata keys that an error lists
FIRST_PROBE = 800  # candidates that are read at first; four times as many each time after
FORM = "Write filters as field=value, field!=value, field>=value, field>value, field<=value or field<value"

ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

_TOPIC = re.compile(r"\[?c\d{1,9}\]?")
_FORM = re.compile(
    r"\s*([^\s!<>=][^!<>=]{0,100}?)\s*(!=|>=|<=|==?|>|<)\s*(.{0,1000}?)\s*\Z", re.DOTALL
)

Fact = Mapping[str, Any]
Part = tuple[str, Snapshot, "Filters | None"]  # a corpus, as its filters narrow it


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter as written: `op` is =, != or one of ORDERED."""

    field: str
    op: str
    value: str


@dataclass(slots=True)
class Filters:
    """What a search may show. `documents` are content ids of documents, None for all. `first` are
    rows of entities; a passage must name at least one of them, and they come first among
    entities. `without` are ids of entities that a passage must not name."""

    conditions: tuple[Condition, ...] = ()
    documents: frozenset[str] | None = None
    first: list[dict[str, Any]] = field(default_factory=list)
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
        return not self.first or not {row["id"] for row in self.first}.isdisjoint(entity_ids)

    def timely(self, snapshot: Snapshot, ids: Sequence[str]) -> set[str]:
        """Of these passages (content ids) those that pass the conditions on their time."""
        if not self.of(*TIME):
            return set(ids)
        found = times.of_passages(snapshot, ids)
        return {id for id in ids if id in found and _timely(found[id], self.of(*TIME))}

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
        of_then = not conditions or any(_fit(conditions, interval) for interval in intervals)
        return of_then and _was_said(self.of("said", "as_of"), day)

    def in_time(self, snapshot: Snapshot, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Passages cut to the longest part that passes the conditions on `said` and `as_of`."""
        if not (conditions := self.of("said", "as_of")):
            return rows
        spoken, found = times.read(snapshot, rows), []
        for row in rows:
            runs = groupby(spoken[row["id"]].parts(), lambda part: _was_said(conditions, part[2]))
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
            ids = [id for id in ids if any(_timely(passage, conditions) for passage in found[id])]
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
        return row["id"] not in self.without and _all(self.of("type"), [row.get("type", "")])

    def report(self, rank: float) -> bool:
        return _all(self.of("rating"), [rank])

    def nothing(self, snapshot: Snapshot) -> tuple[str, str]:
        """The text of a result if no passage that passes the filters speaks of the question, and an
        advice. The text lists the first documents that pass."""
        facts = documents(snapshot)
        passed = len(self.passing_documents(snapshot))
        texts = (
            one_line(f"{condition.field}{condition.op}{condition.value}", 80)
            for condition in self.conditions
        )
        listed = f"({', '.join(texts)})"
        if not passed and self.of("date"):  # the note says how many have none
            dated = sorted(fact["date"] for fact in facts.values() if fact["date"])
            span = f" Dates go from {dated[0]} to {dated[-1]}." if dated else ""
            every = counted(len(facts), "documents")
            return f"0 of {every} pass the filters {listed}.{span}", "Ask again with fewer filters."
        text = f"Nothing that passes the filters {listed} speaks of this question."
        text += f" {passed} of {counted(len(facts), 'documents')} pass."
        advice = f"Ask again with fewer filters{', or read one with get_source' * bool(passed)}."
        if self.documents:
            passing = [facts[id] for id in self.documents]
            passing.sort(key=lambda fact: (fact["moment"], fact["uri"]))
            shown = times.shown(passing[:LISTED])
            names = (fact["document"][:3] for fact in passing[:LISTED])
            lines = [f"- [{alias}] {shown[id]} {one_line(title, 80)}" for alias, id, title in names]
            more = [f"- and {len(passing) - LISTED} more"] if len(passing) > LISTED else []
            text = "\n".join([text, "These pass:", *lines, *more])
        return text, advice


def read(snapshot: Snapshot, texts: Sequence[str], min_rating: float = 0.0) -> Filters | None:
    """The filters of a call; None when there are none. BadInput says what cannot be read."""
    written = [text for text in texts if text.strip()]
    if len(written) > MOST:
        what = f"{len(written)} filters were given, and a call takes at most {MOST}"
        raise BadInput(what, "Join conditions with * (uri=notes/*), or search in several calls")
    conditions = [_condition(snapshot, text) for text in written]
    if min_rating > 0:
        conditions.append(Condition("rating", ">=", f"{min_rating:g}"))
    if not conditions:
        return None
    filters = Filters(tuple(conditions))
    _add_entities(snapshot, filters)
    facts = documents(snapshot)
    about = [
        condition for condition in conditions if condition.field not in ("tag", *OF_ROWS, *TIME)
    ]
    about += [replace(condition, field="valid") for condition in filters.of("as_of")]
    if about:
        filters.documents = frozenset(id for id, fact in facts.items() if _holds(fact, about))
    if topics := filters.of("topic"):
        ids = _in_topics(snapshot, topics)
        filters.documents = ids if filters.documents is None else ids & filters.documents
    if tagged := filters.of("tag"):
        ids = _with_tags(snapshot, tagged)
        filters.documents = ids if filters.documents is None else ids & filters.documents
    notes = [_undated(facts, filters)]
    if of_type := filters.of("type"):
        types = values_of(snapshot.rows("entities", "", ["type"])["type"].unique())
        usual = [kind for kind in DEFAULT_TYPES if kind in types]  # not what a model made up
        notes.insert(0, _no_such("No entity is of type", of_type, types, usual))
    if tagged:
        counts = Counter(tag for tags in links.tags_of_documents(snapshot).values() for tag in tags)
        most = sorted(counts, key=lambda tag: (-counts[tag], tag))
        notes.append(_no_such("No document has the tag", tagged, counts, most))
    wrong = [
        condition.value.strip("*")
        for condition in filters.of("document", "uri")
        if condition.op == "="
    ]
    if facts and not filters.documents and wrong:
        pattern = f"uri=*{one_line(wrong[0], 60)}*"
        notes.append(f'No document passes; * stands for anything, as in "{pattern}".')
    filters.note = " ".join(filter(None, notes))
    return filters


def _add_entities(snapshot: Snapshot, filters: Filters) -> None:
    """The entities that are included and excluded, with those that are part of them."""
    for condition in filters.of("entity"):
        row, near = entities.resolve(snapshot, condition.value)
        if row is None:
            raise BadInput(
                f"a filter names the entity {one_line(condition.value, 60)!r}, which is not there",
                "search_text finds words that are no entity",
                names=f"Nearest: {entities.named_list(near[:5])}" if near else "",
            )
        parts = [id for id, whole in entities.part_of(snapshot).items() if row["id"] in whole]
        if condition.op == "!=":
            filters.without |= {row["id"], *parts}
        else:
            known = {entity["id"] for entity in filters.first}
            rows = [row, *snapshot.served("entities", parts)]
            filters.first += [entity for entity in rows if entity["id"] not in known]


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
        return _together(
            conditions, lambda condition: (number[condition] in numbers) == (condition.op == "=")
        )

    return frozenset(id for id, topics in found.items() if passes(topics))


def _with_tags(snapshot: Snapshot, conditions: Sequence[Condition]) -> frozenset[str]:
    """The documents whose tags, in their text or metadata, pass these conditions; `harbour` is a tag of what has
    `harbour/sill`."""
    plain = [replace(condition, value=condition.value.strip("#/ ")) for condition in conditions]
    by_document = links.tags_of_documents(snapshot)
    return frozenset(id for id, tags in by_document.items() if _all(plain, tags))


# ---- notes -------------------------------------------------------------------------------------


def _no_such(
    what: str, conditions: Sequence[Condition], known: Iterable[str], shown: Sequence[str]
) -> str:
    """That there is nothing of a value that was asked for, and which values there are."""
    values = {value.casefold() for value in known}
    lost = [one for one in conditions if one.value.casefold().strip("#/ ") not in values]
    listed = ", ".join(one_line(value, 40) for value in shown[:SHOWN]) or "none"
    return f"{what} {one_line(lost[0].value, 40)!r}; there are {listed}." if lost else ""


def _undated(facts: Mapping[str, Fact], filters: Filters) -> str:
    """How many documents have no date of their own, and what conditions on time make of them."""
    undated, notes = sum(not fact["date"] for fact in facts.values()), []
    every = counted(len(facts), "documents")
    for condition in filters.of("as_of"):
        later = sum(not _valid(fact, condition.value) for fact in facts.values())
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


# ---- reading -----------------------------------------------------------------------------------


def _condition(snapshot: Snapshot, written: str) -> Condition:
    match = _FORM.match(written)
    if match is None or not match[3]:
        what = f"filter {one_line(written, 80)!r} cannot be read"
        raise BadInput(what, f'{FORM}, e.g. "uri=notes/*"')
    name = match[1].strip().casefold().removeprefix("metadata.")
    op, value = match[2].replace("==", "="), match[3].strip("\"'“”")
    keys = sorted({key for fact in documents(snapshot).values() for key in fact["metadata"]})
    if name not in keys and name not in FIELDS:
        near = difflib.get_close_matches(name, [*FIELDS, *keys], n=1, cutoff=0.6)
        guess = next(iter(near), "")
        listed = ", ".join(one_line(key, 40) for key in keys[:SHOWN])
        listed += f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
        meant = f"Did you mean {one_line(guess, 40)!r}? " if guess else ""
        raise BadInput(
            f"there is no field {one_line(name, 40)!r} to filter by",
            f"Known are {', '.join(FIELDS)}, and metadata",
            names=f"{meant}Metadata: {listed or 'none'}",
        )
    date = dates.read(value) if name in (*DATES, *TIME) else ""
    _check_value(name, op, value, date)
    return Condition(name, op, date or value)


def _check_value(name: str, op: str, value: str, date: str) -> None:
    """BadInput where a field does not take this operator or value, which is read as `date`."""
    ordered, shown = op in ORDERED, one_line(value, 40)
    if ordered and name in ("document", "title", "uri", "tag", "topic", "entity", "type"):
        what = f"{name} has no order, so {name}{op} cannot be used"
        raise BadInput(what, f"Use {name}= or {name}!=")
    if name == "topic" and not _TOPIC.fullmatch(value):
        what = f"{shown!r} is no topic"
        raise BadInput(what, "Write its id, as in topic=c5; global_search shows them")
    if name == "rating" and _number(value) is None:
        raise BadInput(f"rating must be a number, not {shown!r}", "Ratings go from 0 to 10")
    if name in ("date", *TIME) and not date:
        advice = f"After {name}{op} write {dates.advice(value)}"
        raise BadInput(f"{shown!r} is no date, or could be two", advice)
    if name == "as_of" and op != "=":
        raise BadInput(f"as_of{op} cannot be used", "Use as_of=2024-05-03, or said>= and said<=")


# ---- testing -----------------------------------------------------------------------------------


def _holds(fact: Fact, conditions: Sequence[Condition]) -> bool:
    for name in dict.fromkeys(condition.field for condition in conditions):
        of_field = [condition for condition in conditions if condition.field == name]
        if name == "valid":
            passes = all(_valid(fact, condition.value) for condition in of_field)
        else:
            is_fact = name in ("document", "title", "uri", "date")
            value = fact[name] if is_fact else fact["metadata"].get(name)
            values = value if isinstance(value, list) else [] if value is None else [value]
            if name == "kind" and not is_note(fact["uri"], fact["metadata"]):
                # A row or a list of kinds with this value makes no note, and would hide those that are.
                values = [kind for kind in values if str(kind).casefold() != "note"]
            passes = _all(of_field, values)
        if not passes:
            return False
    return True


def _all(conditions: Sequence[Condition], values: Sequence[Any]) -> bool:
    """One of the `=`, and every other condition, holds; `!=` holds where no value is equal."""

    def holds(condition: Condition) -> bool:
        if condition.op == "!=":
            return not any(_compare(value, replace(condition, op="=")) for value in values)
        return any(_compare(value, condition) for value in values)

    return _together(conditions, holds)


def _together(conditions: Sequence[Condition], holds: Callable[[Condition], bool]) -> bool:
    same = [condition for condition in conditions if condition.op == "="]
    others = [condition for condition in conditions if condition.op != "="]
    return (not same or any(map(holds, same))) and all(map(holds, others))


def _compare(value: Any, condition: Condition) -> bool:
    text, operand = str(value).casefold().strip(), condition.value.casefold()
    if (
        condition.field in DATES
        and (day := dates.read(text))
        and dates.read(condition.value) == condition.value
    ):
        inside, period = dates.days(day), dates.days(condition.value)
        if condition.op == "=":
            return period[0] <= inside[0] and inside[1] <= period[1]
        return _shares(condition.op, inside, period)
    left, right = _number(text), _number(operand)
    numbers = left is not None and right is not None
    if condition.op == "=":
        pattern = condition.field in ("title", "uri") and fnmatchcase(text, operand)
        pattern = pattern or (condition.field == "uri" and text.endswith("/" + operand))
        return text == operand or pattern or (numbers and left == right)
    if left is None or right is None:
        text = text[: len(operand)]  # 2024-05-03 is within <=2024-05, and within <=2024
        return bool(text) and ORDERED[condition.op](text, operand)
    return ORDERED[condition.op](left, right)


def _shares(op: str, days: tuple[str, str], period: tuple[str, str]) -> bool:
    """Do these days share one with the period, or with the time from it on, behind it, up to it or
    before it?"""
    after, before = days[1] >= period[0], days[0] <= period[1]
    return {
        ">=": after,
        "<=": before,
        ">": days[1] > period[1],
        "<": days[0] < period[0],
        "=": after and before,
        "!=": not (after and before),
    }[op]


def _valid(fact: Fact, period: str) -> bool:
    """Was there such a document by then, and was it valid? One that states no date is."""
    first, last = dates.days(period)
    begins, until = fact["valid"]
    begun = (fact["date"], begins)
    over = bool(until) and dates.days(until)[1] < first
    return not over and all(dates.days(date)[0] <= last for date in begun if date)


def _timely(found: times.Times, conditions: Sequence[Condition]) -> bool:
    """Do the times of a passage pass? Conditions on `when` must hold for one interval, those on
    `said` for one day, and of `=` one is enough; a passage without a day of its own passes `as_of`.
    """
    if not any(_was_said(conditions, day) for _, _, day in found.parts()):
        return False
    when = [condition for condition in conditions if condition.field == "when"]
    return not when or any(
        _fit(when, (time.start, time.end))
        for time in found.days()
        if _was_said(conditions, time.anchor or found.said_at(time.char_start))
    )


def _was_said(conditions: Sequence[Condition], day: str) -> bool:
    """Does a day on which something was said ("" for none) pass the conditions on it?"""
    of_day = [condition for condition in conditions if condition.field == "said"]
    limits = [
        dates.days(condition.value)[1] for condition in conditions if condition.field == "as_of"
    ]
    if of_day and not (day and _fit(of_day, (day, day))):
        return False
    return not day or all(day <= limit for limit in limits)


def _fit(conditions: Sequence[Condition], interval: tuple[str, str]) -> bool:
    return _together(
        conditions, lambda condition: _shares(condition.op, interval, dates.days(condition.value))
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ---- before the cut ----------------------------------------------------------------------------


class Narrowed(Snapshot):
    """A snapshot whose full text and reports are limited to what passes the filters; everything
    else is read through the snapshot that it is made of. It counts as the same key in caches by
    snapshot."""

    def __init__(self, inner: Snapshot, filters: Filters) -> None:
        self.__dict__["inner"], self.__dict__["filters"] = inner, filters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.inner

    def full_text(
        self, table: str, terms: Sequence[str], limit: int = 200, columns: Wanted = None
    ) -> pa.Table:
        """From as many candidates as it takes to find `limit` that pass."""
        if table not in ("passages", "reports"):
            return self.inner.full_text(table, terms, limit, columns)
        probe, total = max(limit, FIRST_PROBE), self.count(table)
        while True:
            found = self.inner.full_text(table, terms, min(probe, total))
            passages = table == "passages"
            kept = self.filters.rows(self.inner, found) if passages else self._reports(found)
            if kept.num_rows >= limit or probe >= total or found.num_rows < probe:
                names = columns or [name for name in kept.column_names if name != "_score"]
                return kept.slice(0, limit).select([*names, "_score"])
            probe *= 4

    def rows(
        self, table: str, where: str = "", columns: Wanted = None, limit: int | None = None
    ) -> pa.Table:
        if table != "reports":
            return self.inner.rows(table, where, columns, limit)
        found = self._reports(self.inner.rows(table, where, None, limit))
        return found.select(columns or found.column_names)

    def by_key(
        self, table: str, values: Values, key: str | None = None, columns: Wanted = None
    ) -> pa.Table:
        if table != "reports":
            return self.inner.by_key(table, values, key, columns)
        found = self._reports(self.inner.by_key(table, values, key))
        return found.select(columns or found.column_names)

    def served(
        self, table: str, ids: Sequence[str], columns: Wanted = None
    ) -> list[dict[str, Any]]:
        rows = self.inner.served(table, ids, columns)
        return self.filters.in_time(self.inner, rows) if table == "passages" else rows

    def _reports(self, found: pa.Table) -> pa.Table:
        """Reports of enough rating, on text of a document that passes, on communities without
        excluded entities."""
        passes = [self.filters.report(rank) for rank in values_of(found["rank"])]
        found = found.filter(pa.array(passes, pa.bool_()))
        if self._allowed is None:
            return found
        return found.filter(pc.is_in(found["id"], self._allowed))

    @cached_property
    def _allowed(self) -> pa.Array | None:
        """Communities with no excluded entity, with one of a wanted type, and with one that a
        document that passes names; None for all. A report lists only the heaviest members."""
        filters = self.filters
        types, documents = filters.of("type"), filters.documents
        if documents is None and not types and not filters.without:
            return None
        rows = self.inner.rows("entities", "", ["id", "type", "text_unit_ids"]).to_pylist()
        groups = []
        if types:
            groups.append({row["id"] for row in rows if filters.entity(row)})
        if documents is not None:
            listed = self.inner.by_key("text_units", sorted(documents), "document_id", ["id"])
            units = set(values_of(listed["id"]))
            groups.append({row["id"] for row in rows if not units.isdisjoint(row["text_unit_ids"])})
        members = self.inner.rows("communities", "", ["id", "entity_ids"]).to_pylist()
        allowed = [
            row["id"]
            for row in members
            if filters.without.isdisjoint(row["entity_ids"])
            and not any(group.isdisjoint(row["entity_ids"]) for group in groups)
        ]
        return pa.array(allowed, pa.string())
