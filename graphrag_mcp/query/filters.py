"""Filters of a search: conditions on documents, entities and reports, such as `uri=notes/*`,
`date>=2024`, `entity!=Ada`.

A `Narrowed` snapshot proposes only what passes. Conditions `=` on one field are alternatives;
everything else must hold together."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import context, times
from graphrag_mcp.query.context import resolve
from graphrag_mcp.query.times import documents
from graphrag_mcp.settings import DEFAULT_TYPES
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import counted

TIME = ("when", "said", "as_of")  # of passages: the days that they speak of, and their own
DATES = (*dates.KEYS, "valid_from", "valid_until", "committed")  # are compared by their days
FIELDS = ("document", "uri", "entity", "type", "date", "rating", *TIME)
GUESSES = {"doc": "document", "path": "uri", "file": "uri", "name": "entity", "rank": "rating"}
MOST = 20  # filters of one call
LISTED = 20  # documents that pass, where no word of the question is in them
SHOWN = 12  # metadata keys that an error lists
# candidates read when 200 unfiltered ones do not suffice; four times as many each time after
FIRST_PROBE = 800
FORM = "Write filters as field=value, field!=value, field>=value or field<=value"

_FORM = re.compile(r"\s*([^\s!<>=][^!<>=]{0,100}?)\s*(!=|>=|<=|==?)\s*(.{0,1000}?)\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter as written: `op` is =, !=, >= or <=."""

    field: str
    op: str
    value: str


@dataclass(slots=True)
class Filters:
    """What may be shown. `documents`: content ids, None for all; `first`: rows of entities one of
    which a passage must name; of entities they come first."""

    conditions: tuple[Condition, ...] = ()
    documents: frozenset[str] | None = None
    first: list[dict[str, Any]] = field(default_factory=list)
    without: frozenset[str] = frozenset()
    note: str = ""  # what a reader should know about how the conditions were applied

    def of(self, name: str) -> list[Condition]:
        return [one for one in self.conditions if one.field == name]

    def passage(self, document_id: str, entity_ids: Iterable[str]) -> bool:
        allowed = self.documents is None or document_id in self.documents
        return allowed and (not self.without or self.without.isdisjoint(entity_ids))

    def timely(self, snapshot: Snapshot, ids: Sequence[str]) -> set[str]:
        """Of these passages (content ids) those that pass the conditions on their time."""
        wanted = [one for name in TIME for one in self.of(name)]
        if not wanted:
            return set(ids)
        found = times.of_passages(snapshot, ids)
        return {id for id in ids if id in found and _timely(found[id], wanted)}

    def speaks_of(self, intervals: Sequence[tuple[str, str]]) -> bool:
        """Does one of these (ISO days) pass the conditions on `when`?"""
        wanted = self.of("when")
        return not wanted or any(_fit(wanted, one) for one in intervals)

    def of_time(self, snapshot: Snapshot, documents: Sequence[str]) -> list[str]:
        """Of these documents those with a passage that passes the conditions on its time."""
        wanted = [one for name in TIME for one in self.of(name)]
        if not wanted:
            return list(documents)
        found = times.of_documents(snapshot, documents)
        return [id for id in documents if any(_timely(one, wanted) for one in found[id])]

    def of_names(self, snapshot: Snapshot, documents: Sequence[str]) -> list[str]:
        """Of these documents those with a text unit that names a wanted entity and no unwanted one."""
        if not self.first and not self.without:
            return list(documents)

        def units(ids: Iterable[str]) -> set[str]:
            rows = snapshot.by_key("entities", sorted(ids), "id", ["text_unit_ids"])
            return {id for row in rows["text_unit_ids"].to_pylist() for id in row}

        unwanted = units(self.without)
        rows = snapshot.rows("text_units", "", ["id", "document_id"])
        ids = rows["id"].to_pylist()
        wanted = (units(row["id"] for row in self.first) if self.first else set(ids)) - unwanted
        inside = rows["document_id"].to_pylist()
        named = {document for id, document in zip(ids, inside, strict=True) if id in wanted}
        return [id for id in documents if id in named]

    def entity(self, row: Mapping[str, Any]) -> bool:
        return row["id"] not in self.without and _all(self.of("type"), [row.get("type", "")])

    def report(self, rank: float) -> bool:
        return _all(self.of("rating"), [rank])


def read(snapshot: Snapshot, wanted: Sequence[str], min_rating: float = 0.0) -> Filters | None:
    """The filters of a call; None when there are none. BadInput says what cannot be read, and the
    known fields."""
    written = [one for one in wanted if one.strip()]
    if len(written) > MOST:
        what = f"{len(written)} filters were given, and a call takes at most {MOST}"
        raise BadInput(what, "Join conditions with * (uri=notes/*), or search in several calls")
    conditions = [_condition(snapshot, one) for one in written]
    if min_rating > 0:
        conditions.append(Condition("rating", ">=", f"{min_rating:g}"))
    if not conditions:
        return None
    made = Filters(tuple(conditions))
    without: set[str] = set()
    for one in made.of("entity"):
        row = _entity(snapshot, one.value)
        parts = [id for id, whole in context.part_of(snapshot).items() if row["id"] in whole]
        if one.op == "!=":
            without |= {row["id"], *parts}
            continue
        known = {held["id"] for held in made.first}
        rows = [row, *context.rows(snapshot, "entities", parts)]
        made.first += [held for held in rows if held["id"] not in known]
    made.without = frozenset(without)
    made.note = _no_such_type(snapshot, made.of("type"))
    about = [one for one in conditions if one.field not in ("entity", "type", "rating", *TIME)]
    if made.of("as_of"):
        about += [Condition("valid", "=", one.value) for one in made.of("as_of")]
    facts = documents(snapshot)
    if any(one.field in TIME for one in conditions):
        made.note = f"{made.note} {_time_note(facts, made)}".strip()
    if about:
        made.documents = frozenset(id for id, fact in facts.items() if _holds(fact, about))
        if any(one.field == "date" for one in about):
            made.note = f"{made.note} {_undated(facts)}".strip()
        if not made.documents and facts:
            made.note = f"{made.note} {_none_passes(about)}".strip()
    return made


def _no_such_type(snapshot: Snapshot, wanted: Sequence[Condition]) -> str:
    """That no entity is of a type that was asked for, and which types there are."""
    if not wanted:
        return ""
    known = pc.unique(snapshot.rows("entities", "", ["type"])["type"]).to_pylist()
    lost = [one.value for one in wanted if one.value.casefold() not in map(str.casefold, known)]
    listed = ", ".join(one for one in DEFAULT_TYPES if one in known)  # not what a model made up
    if lost:
        return f"No entity is of type {one_line(lost[0], 40)!r}; there are {listed or 'none'}."
    return ""


def _none_passes(about: Sequence[Condition]) -> str:
    """How documents and addresses are written, where a condition on them let none through."""
    wrong = next(
        (one.value for one in about if one.field in ("document", "uri") and one.op == "="), ""
    )
    if not wrong:
        return ""
    return f'No document passes; * stands for anything, as in "uri=*{one_line(wrong.strip("*"), 60)}*".'


def _undated(facts: Mapping[str, Mapping[str, Any]]) -> str:
    """How many documents no filter on dates lets through, because they state none."""
    without = sum(not fact["date"] for fact in facts.values())
    if not without:
        return ""
    return f"{without} of {counted(len(facts), 'documents')} state no date and pass no date filter."


def _time_note(facts: Mapping[str, Mapping[str, Any]], filters: Filters) -> str:
    """How many documents have no date of their own, and what conditions on time make of them."""
    undated = sum(not fact["date"] for fact in facts.values())
    notes = []
    for one in filters.of("as_of"):
        later = sum(not _valid(fact, one.value) for fact in facts.values())
        notes.append(
            f"{later} of {counted(len(facts), 'documents')} are later than {one.value} or no longer valid then, and left out."
        )
    if undated and notes:
        notes.append(f"{undated} without a date stay in.")
    elif undated:
        notes.append(
            f"{undated} of {counted(len(facts), 'documents')} state no date: of them only passages under a dated heading"
            " or with a date in words can pass."
        )
    return " ".join(notes)


def _valid(fact: Mapping[str, Any], period: str) -> bool:
    """Was there such a document by then, and was it valid? One that states no date is."""
    first, last = dates.days(period)
    held = fact["metadata"]
    begun = (fact["date"], dates.read(str(held.get("valid_from") or "")))
    until = dates.read(str(held.get("valid_until") or ""))
    return all(dates.days(one)[0] <= last for one in begun if one) and not (
        until and dates.days(until)[1] < first
    )


def _timely(found: times.Times, conditions: Sequence[Condition]) -> bool:
    """Do the times of a passage pass? Conditions on `when` must hold for one interval, those on
    `said` for one day, and of `=` one is enough; a passage without a day of its own passes `as_of`."""
    said = [(one, one) for one in found.said]
    of = {name: [one for one in conditions if one.field == name] for name in ("said", "when")}
    if of["said"] and not any(_fit(of["said"], at) for at in said):
        return False
    limits = [dates.days(one.value)[1] for one in conditions if one.field == "as_of"]
    if said and any(said[0][0] > limit for limit in limits):
        return False
    days = found.days() if of["when"] else ()
    return not of["when"] or any(_fit(of["when"], (one.start, one.end)) for one in days)


def _fit(conditions: Sequence[Condition], interval: tuple[str, str]) -> bool:
    same = [one for one in conditions if one.op == "="]
    return (not same or any(_within(one, interval) for one in same)) and all(
        _within(one, interval) for one in conditions if one.op != "="
    )


def _within(condition: Condition, interval: tuple[str, str]) -> bool:
    """Does the interval share a day with the period, or with the time from it on or up to it?"""
    first, last = dates.days(condition.value)
    after, before = interval[1] >= first, interval[0] <= last
    return {">=": after, "<=": before, "=": after and before, "!=": not (after and before)}[
        condition.op
    ]


def described(filters: Filters) -> str:
    return ", ".join(one_line(f"{one.field}{one.op}{one.value}", 80) for one in filters.conditions)


def listed(snapshot: Snapshot, filters: Filters) -> str:
    """The documents that pass, the first ones by date, for a question that has no word but "what
    happened?"."""
    if not filters.documents:
        return ""
    facts = sorted(
        (documents(snapshot)[id] for id in filters.documents),
        key=lambda fact: (fact["date"], fact["uri"]),
    )
    first = [(fact["date"], fact["document"]) for fact in facts[:LISTED]]
    lines = [f"- [{names[0]}] {day} {one_line(names[2], 80)}" for day, names in first]
    more = [f"- and {len(facts) - LISTED} more"] if len(facts) > LISTED else []
    return "\nThese pass:\n" + "\n".join(lines + more)


# ---- reading -----------------------------------------------------------------------------------


def _condition(snapshot: Snapshot, written: str) -> Condition:
    match = _FORM.match(written)
    if match is None or not match[3]:
        raise BadInput(
            f"filter {one_line(written, 80)!r} cannot be read", f'{FORM}, e.g. "uri=notes/*"'
        )
    name, op, value = (
        match[1].strip().casefold(),
        match[2].replace("==", "="),
        match[3].strip("\"'“”"),
    )
    name = name.removeprefix("metadata.")
    if name == "min_rating":
        if op not in ("=", ">="):
            raise BadInput(f"min_rating{op} says nothing", "Use rating<= or rating!=")
        name, op = "rating", ">="
    known = set(FIELDS) | {key for fact in documents(snapshot).values() for key in fact["metadata"]}
    if name not in known:
        keys = sorted(known - set(FIELDS))
        near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6) or [
            GUESSES.get(name, "")
        ]
        listed = ", ".join(one_line(key, 40) for key in keys[:SHOWN])
        listed += f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
        guess = f"Did you mean {one_line(near[0], 40)!r}? " if near[0] else ""
        raise BadInput(
            f"there is no field {one_line(name, 40)!r} to filter by",
            f"Known are {', '.join(FIELDS)}, and metadata",
            names=f"{guess}Metadata: {listed or 'none'}",
        )
    read = dates.read(value) if name in (*DATES, *TIME) else ""
    _check_value(name, op, value, read)
    return Condition(name, op, read or value)


def _check_value(name: str, op: str, value: str, read: str) -> None:
    """BadInput where a field does not take this operator or value, which as a date is `read`."""
    ordered, said = op in (">=", "<="), one_line(value, 40)
    if ordered and name in ("document", "uri", "entity", "type"):
        raise BadInput(
            f"{name} has no order, so {name}{op} says nothing", f"Use {name}= or {name}!="
        )
    if name == "rating" and _number(value) is None:
        raise BadInput(
            f"rating must be a number, not {said!r}", "Ratings of reports go from 0 to 10"
        )
    if name in ("date", *TIME) and not read:
        raise BadInput(
            f"{said!r} is no date, or could be two", f"After {name}{op} write {dates.advice(value)}"
        )
    if name == "as_of" and op != "=":
        raise BadInput(f"as_of{op} says nothing", "Use as_of=2024-05-03, or said>= and said<=")
    if ordered and value.strip("+-").casefold() in ("nan", "inf", "infinity"):
        raise BadInput(f"{said!r} is no number to compare with", f"Write one, as in {name}{op}3")


def _entity(snapshot: Snapshot, value: str) -> dict[str, Any]:
    row, near = resolve(snapshot, value)
    if row is not None:
        return row
    raise BadInput(
        f"a filter names the entity {one_line(value, 60)!r}, which is not there",
        "search_text finds words that are no entity",
        names=f"Nearest: {context.named_list(near[:5])}" if near else "",
    )


# ---- testing -----------------------------------------------------------------------------------


def _holds(fact: Mapping[str, Any], conditions: Sequence[Condition]) -> bool:
    if not all(_valid(fact, one.value) for one in conditions if one.field == "valid"):
        return False
    conditions = [one for one in conditions if one.field != "valid"]
    for name in dict.fromkeys(one.field for one in conditions):
        some = [one for one in conditions if one.field == name]
        value = fact[name] if name in ("document", "uri", "date") else fact["metadata"].get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not _all(some, values):
            return False
    return True


def _all(conditions: Sequence[Condition], values: Sequence[Any]) -> bool:
    """One of the `=`, and every other condition, holds; `!=` holds where no value is equal."""
    same = [one for one in conditions if one.op == "="]
    if same and not any(_compare(value, one) for one in same for value in values):
        return False
    for one in conditions:
        if one.op == "!=" and any(
            _compare(value, Condition(one.field, "=", one.value)) for value in values
        ):
            return False
        if one.op in (">=", "<=") and not any(_compare(value, one) for value in values):
            return False
    return True


def _compare(value: Any, one: Condition) -> bool:
    if (
        one.field in DATES
        and (day := dates.read(str(value)))
        and dates.read(one.value) == one.value
    ):
        return _dated(dates.days(day), one)
    held = str(value).casefold().strip() if not isinstance(value, bool) else str(value).lower()
    wanted = one.value.casefold()
    if one.op == "=":
        if one.field == "uri":
            return fnmatchcase(held, wanted) or held == wanted or held.endswith("/" + wanted)
        left, right = _number(held), _number(wanted)
        return held == wanted if left is None or right is None else left == right
    left, right = _number(held), _number(wanted)
    if left is not None and right is not None:
        return left >= right if one.op == ">=" else left <= right
    held = held[: len(wanted)]  # 2024-05-03 is within <=2024-05, and within <=2024
    return bool(held) and (held >= wanted if one.op == ">=" else held <= wanted)


def _dated(held: tuple[str, str], one: Condition) -> bool:
    """`=`: the days of the document are within the period; `>=` and `<=`: one of them is."""
    first, last = dates.days(one.value)
    if one.op == "=":
        return first <= held[0] and held[1] <= last
    return held[1] >= first if one.op == ">=" else held[0] <= last


def _number(text: str) -> float | None:
    """A finite number, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ---- before the cut ----------------------------------------------------------------------------


class Narrowed(Snapshot):
    """A snapshot whose full text and reports hold only what passes; all else is read through the
    one it is made of.

    It counts as the same key where something is remembered by snapshot."""

    def __init__(self, inner: Snapshot, filters: Filters) -> None:
        self.__dict__["inner"], self.__dict__["filters"] = inner, filters

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.inner

    def full_text(
        self,
        table: str,
        terms: Sequence[str],
        limit: int = 200,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """As ever, from as many candidates as it takes to find `limit` that pass."""
        passes = {"passages": self._passes, "reports": self._allowed}.get(table)
        if passes is None:
            return self.inner.full_text(table, terms, limit, columns)
        probe, total = max(limit, FIRST_PROBE), self.count(table)
        while True:
            found = self.inner.full_text(table, terms, min(probe, total), None)
            kept = found.filter(passes(found))
            if kept.num_rows >= limit or probe >= total or found.num_rows < probe:
                return kept.slice(0, limit).select([*(columns or self._columns(kept)), "_score"])
            probe *= 4

    def rows(
        self,
        table: str,
        where: str = "",
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        if table != "reports":
            return self.inner.rows(table, where, columns, limit)
        found = self.inner.rows(table, where, None, limit)
        return found.filter(self._allowed(found)).select(columns or found.column_names)

    def by_key(
        self,
        table: str,
        values: Sequence[str] | Sequence[int],
        key: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        if table != "reports":
            return self.inner.by_key(table, values, key, columns)
        found = self.inner.by_key(table, values, key)
        return found.filter(self._allowed(found)).select(columns or found.column_names)

    def _columns(self, found: pa.Table) -> list[str]:
        return [name for name in found.column_names if name != "_score"]

    def _passes(self, found: pa.Table) -> pa.Array:
        pairs = zip(found["document_id"].to_pylist(), found["entity_ids"].to_pylist(), strict=True)
        passing = [self.filters.passage(document, ids) for document, ids in pairs]
        names = found["id"].to_pylist()
        kept = [id for id, passes in zip(names, passing, strict=True) if passes]
        timely = self.filters.timely(self.inner, kept)
        return pa.array(
            [passes and id in timely for id, passes in zip(names, passing, strict=True)], pa.bool_()
        )

    def _allowed(self, found: pa.Table) -> pa.Array:
        """Reports of enough rating, on text of a document that passes, on communities without
        excluded entities."""
        kept = pa.array(
            [self.filters.report(rank) for rank in found["rank"].to_pylist()], pa.bool_()
        )
        wanted = [
            group()
            for group, asked in (
                (self._told, self.filters.documents is not None),
                (self._typed, bool(self.filters.of("type"))),
            )
            if asked
        ]
        if wanted or self.filters.without:
            members = self._members(found["id"].to_pylist())
            fits = [
                self.filters.without.isdisjoint(ids)
                and not any(group.isdisjoint(ids) for group in wanted)
                for ids in members
            ]
            kept = pc.and_(kept, pa.array(fits, pa.bool_()))
        return kept

    def _members(self, communities: list[str]) -> list[list[str]]:
        """All members of each: its report lists only the heaviest."""
        rows = self.inner.by_key("communities", communities, "id", ["id", "entity_ids"])
        known = dict(zip(rows["id"].to_pylist(), rows["entity_ids"].to_pylist(), strict=True))
        return [known.get(id, []) for id in communities]

    def _told(self) -> set[str]:
        """The entities that the documents name."""
        units, rows = self._units(), self.inner.rows("entities", "", ["id", "text_unit_ids"])
        return self._once(
            "told",
            lambda: [
                row["id"] for row in rows.to_pylist() if not units.isdisjoint(row["text_unit_ids"])
            ],
        )

    def _units(self) -> set[str]:
        return self._once(
            "units",
            lambda: self.inner.by_key(
                "text_units", sorted(self.filters.documents or ()), "document_id", ["id"]
            )["id"].to_pylist(),
        )

    def _typed(self) -> set[str]:
        rows = self.inner.rows("entities", "", ["id", "type"])
        return self._once(
            "typed", lambda: [row["id"] for row in rows.to_pylist() if self.filters.entity(row)]
        )

    def _once(self, name: str, make: Callable[[], list[str]]) -> set[str]:
        if name not in self.__dict__:
            self.__dict__[name] = set(make())
        return self.__dict__[name]
