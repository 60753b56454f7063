"""One filter as it is written, such as `date>=2024` or `author=Ada`, and of which values it holds.

Filters `=` on one field are alternatives; all others must hold together."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.times import Document, Times
from graphrag_mcp.text import dates
from graphrag_mcp.text.uris import is_note

Days = tuple[str, str]  # the first and the last day (ISO 8601) of a time

TIME = ("when", "said", "as_of")  # the days that a passage speaks of, and its own
NAMES = ("document", "title", "uri", "kind", "tag", "topic", "entity", "type")  # have no order
FIELDS = (*NAMES, "date", "rating", *TIME)
DATES = (*dates.KEYS, "valid_from", "valid_until")  # metadata that state a day
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.eq,  # `Condition.holds` negates it
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*([^\s!<>=][^!<>=]{0,100}?)\s*([!<>]=|==?|[<>])\s*(.{0,1000}?)\s*\Z", re.DOTALL)
_TOPIC = re.compile(r"\[?c(\d{1,9})\]?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter: `op` is one of OPERATORS."""

    field: str
    op: str
    value: str

    def __str__(self) -> str:
        return one_line(f"{self.field}{self.op}{self.value}", 80)

    @property
    def number(self) -> int:
        """The number of the topic that it names."""
        return int(self.value.strip("[c]"))

    def holds(self, values: Iterable[object]) -> bool:
        """Does it hold of one of these values, or with `!=` of all of them?"""
        return any(map(self._meets, values)) != (self.op == "!=")

    def holds_of_days(self, days: Days) -> bool:
        return self._reaches(days) != (self.op == "!=")

    def _reaches(self, days: Days) -> bool:
        """Do these days share one with the period, or with the time from it on, behind it, up to it or before it?"""
        first, last = dates.days(self.value)
        if self.op in (">", "<"):
            return days[1] > last if self.op == ">" else days[0] < first
        return (self.op == "<=" or days[1] >= first) and (self.op == ">=" or days[0] <= last)

    def _meets(self, value: object) -> bool:
        """Is a value as the condition says? Days are compared as days and numbers as numbers; a title or uri may
        be a pattern, and a uri the end of a path."""
        text, wanted = str(value).casefold().strip(), self.value.casefold()
        if not text:
            return False
        if self.field in ("title", "uri") and fnmatchcase(text, wanted):
            return True
        if self.field == "uri" and text.endswith(f"/{wanted}"):
            return True
        if self.field in DATES and dates.read(wanted) == wanted and (day := dates.read(text)):
            days, period = dates.days(day), dates.days(self.value)
            if self.op in ("=", "!="):  # a document of 2024 is not one of 4 March 2024
                return period[0] <= days[0] and days[1] <= period[1]
            return self._reaches(days)
        left, right = _number(text), _number(wanted)
        if left is not None and right is not None:
            return OPERATORS[self.op](left, right)
        if self.op not in ("=", "!="):  # 2024-05-03 is within <=2024-05, and within <=2024
            text = text[: len(wanted)]
        return OPERATORS[self.op](text, wanted)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def read(written: str, keys: Collection[str]) -> Condition:
    """A filter as it is written; BadInput says what cannot be read. `keys`: names of metadata."""
    match = _FORM.match(written)
    if match is None or not match[3]:
        form = (
            "Write filters as field=value, field!=value, field>=value, field>value, "
            'field<=value or field<value, e.g. "uri=notes/*"'
        )
        raise BadInput(f"filter {one_line(written, 80)!r} cannot be read", form)
    name = match[1].strip().casefold().removeprefix("metadata.")
    op, value = match[2].replace("==", "="), match[3].strip("\"'“”")
    shown = one_line(value, 40)
    if name not in keys and name not in FIELDS:
        what = f"there is no field {one_line(name, 40)!r} to filter by"
        listed = ", ".join(one_line(key, 40) for key in sorted(keys)) or "none"
        advice = f"Known are {', '.join(FIELDS)}, and metadata"
        raise BadInput(what, advice, names=f"Metadata: {one_line(listed, 400)}")
    if name in NAMES and op not in ("=", "!="):
        what = f"{name} has no order, so {name}{op} cannot be used"
        raise BadInput(what, f"Use {name}= or {name}!=")
    if name == "topic" and not _TOPIC.fullmatch(value):
        advice = "Write its id, as in topic=c5; global_search shows them"
        raise BadInput(f"{shown!r} is no topic", advice)
    if name == "rating" and _number(value) is None:
        raise BadInput(f"rating must be a number, not {shown!r}", "Ratings go from 0 to 10")
    if name == "as_of" and op != "=":
        raise BadInput(f"as_of{op} cannot be used", "Use as_of=2024-05-03, or said>= and said<=")
    date = dates.read(value) if name in (*DATES, *TIME) else ""
    if name in ("date", *TIME) and not date:
        advice = f"After {name}{op} write {dates.advice(value)}"
        raise BadInput(f"{shown!r} is no date, or could be two", advice)
    return Condition(name, op, date or value)


# ---- several conditions --------------------------------------------------------------------------


def all_hold(conditions: Sequence[Condition], holds: Callable[[Condition], bool]) -> bool:
    """Of the conditions on one field: does one of those with `=` hold, and every other one?"""
    same = [condition for condition in conditions if condition.op == "="]
    others = [condition for condition in conditions if condition.op != "="]
    return (not same or any(map(holds, same))) and all(map(holds, others))


def hold_of(conditions: Sequence[Condition], values: Sequence[object]) -> bool:
    return all_hold(conditions, lambda condition: condition.holds(values))


def hold_of_document(fact: Document, conditions: Sequence[Condition]) -> bool:
    """Do all conditions on the names, the date, the metadata and the validity of a document hold?"""
    for name in {condition.field for condition in conditions}:
        of_field = [condition for condition in conditions if condition.field == name]
        if name == "as_of":
            passes = all(is_valid(fact, condition.value) for condition in of_field)
        else:
            undated = name == "date" and not fact.date  # it passes no filter, also not date!=2024
            passes = not undated and hold_of(of_field, _values(fact, name))
        if not passes:
            return False
    return True


def _values(fact: Document, name: str) -> list[object]:
    """What a document has in a field."""
    own = {"document": list(fact.names), "title": fact.title, "uri": fact.uri, "date": fact.date}
    value = own.get(name, fact.metadata.get(name))
    values = value if isinstance(value, list) else [] if value is None else [value]
    if name == "kind" and not is_note(fact.uri, fact.metadata):
        # A row of a table with this value is no note, and would hide those that are.
        return [kind for kind in values if str(kind).casefold() != "note"]
    return values


def is_valid(fact: Document, period: str) -> bool:
    """Was there such a document by then, and was it valid? One that states no date is."""
    first, last = dates.days(period)
    begins, until = fact.valid
    over = bool(until) and dates.days(until)[1] < first
    return not over and all(dates.days(day)[0] <= last for day in (fact.date, begins) if day)


def hold_of_days(conditions: Sequence[Condition], intervals: Iterable[Days]) -> bool:
    """Does one of these intervals pass the conditions on `when`?"""
    when = [condition for condition in conditions if condition.field == "when"]
    return not when or any(
        all_hold(when, lambda condition: condition.holds_of_days(days))  # noqa: B023
        for days in intervals
    )


def was_said(conditions: Sequence[Condition], day: str) -> bool:
    """Does a day on which something was said ("" for none) pass the conditions on `said` and `as_of`? What has no day
    passes `as_of`."""
    said = [condition for condition in conditions if condition.field == "said"]
    if said and not (day and all_hold(said, lambda each: each.holds_of_days((day, day)))):
        return False
    limits = (condition.value for condition in conditions if condition.field == "as_of")
    return not day or all(day <= dates.days(limit)[1] for limit in limits)


def hold_of_times(conditions: Sequence[Condition], found: Times) -> bool:
    """Was a part of a passage said on a day that passes, and does it speak of days that pass?"""
    days = (
        (time.start, time.end)
        for time in found.days()
        if was_said(conditions, time.anchor or found.said_at(time.char_start))
    )
    return any(was_said(conditions, day) for *_, day in found.parts()) and hold_of_days(conditions, days)
