"""Conditions of filters, such as `date>=2024` and `author=Ada`: how they are written, and of which values they hold.

Conditions `=` on one field are alternatives; all others must hold together."""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.times import Fact, Times
from graphrag_mcp.text import dates
from graphrag_mcp.text.citing import is_note

TIME = ("when", "said", "as_of")  # the days that a passage speaks of, and its own
UNORDERED = ("document", "title", "uri", "kind", "tag", "topic", "entity", "type")
FIELDS = (*UNORDERED, "date", "rating", *TIME)
DATES = (*dates.KEYS, "valid_from", "valid_until", "committed")  # are compared by their days
SHOWN = 12  # metadata keys that an error lists

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


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter as it is written: `op` is =, != or one of ORDERED."""

    field: str
    op: str
    value: str

    def __str__(self) -> str:
        return one_line(f"{self.field}{self.op}{self.value}", 80)

    def holds_of(self, values: Sequence[Any]) -> bool:
        """Does it hold of one of these values, or with `!=`, is none of them equal?"""
        if self.op == "!=":
            return not any(self._equals(value) for value in values)
        return any(self._equals(v) if self.op == "=" else self._orders(v) for v in values)

    def shares(self, days: tuple[str, str]) -> bool:
        """Do these days (two ISO days) share one with the period, or with the time from it on, behind it, up to it or
        before it?"""
        period = dates.days(self.value)
        after, before = days[1] >= period[0], days[0] <= period[1]
        if self.op in (">", "<"):
            return days[1] > period[1] if self.op == ">" else days[0] < period[0]
        if self.op in (">=", "<="):
            return after if self.op == ">=" else before
        return (after and before) == (self.op == "=")

    def _day(self, text: str) -> str:
        """The date that a text states where both sides are dates."""
        dated = self.field in DATES and dates.read(self.value) == self.value
        return dates.read(text) if dated else ""

    def _equals(self, value: Any) -> bool:
        text, wanted = str(value).casefold().strip(), self.value.casefold()
        if day := self._day(text):
            first, last = dates.days(day)
            period = dates.days(self.value)
            return period[0] <= first and last <= period[1]
        if text == wanted or (self.field in ("title", "uri") and fnmatchcase(text, wanted)):
            return True
        number = _number(text)
        same = number is not None and number == _number(wanted)
        return same or (self.field == "uri" and text.endswith(f"/{wanted}"))

    def _orders(self, value: Any) -> bool:
        text, bound = str(value).casefold().strip(), self.value.casefold()
        if day := self._day(text):
            return self.shares(dates.days(day))
        left, right = _number(text), _number(bound)
        if left is not None and right is not None:
            return ORDERED[self.op](left, right)
        text = text[: len(bound)]  # 2024-05-03 is within <=2024-05, and within <=2024
        return bool(text) and ORDERED[self.op](text, bound)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ---- several conditions --------------------------------------------------------------------------


def together(conditions: Sequence[Condition], holds: Callable[[Condition], bool]) -> bool:
    """Does one of those with `=` hold, and every other one?"""
    same = [condition for condition in conditions if condition.op == "="]
    others = [condition for condition in conditions if condition.op != "="]
    return (not same or any(map(holds, same))) and all(map(holds, others))


def hold_of(conditions: Sequence[Condition], values: Sequence[Any]) -> bool:
    return together(conditions, lambda condition: condition.holds_of(values))


def hold_of_days(conditions: Sequence[Condition], days: tuple[str, str]) -> bool:
    return together(conditions, lambda condition: condition.shares(days))


def hold_of_document(fact: Fact, conditions: Sequence[Condition]) -> bool:
    """Do all conditions on the names, the date, the metadata and the validity of a document hold?"""
    for name in dict.fromkeys(condition.field for condition in conditions):
        of_field = [condition for condition in conditions if condition.field == name]
        if name == "as_of":
            passes = all(is_valid(fact, condition.value) for condition in of_field)
        else:
            passes = hold_of(of_field, _values(fact, name))
        if not passes:
            return False
    return True


def _values(fact: Fact, name: str) -> list[Any]:
    """What a document has in a field."""
    value = (
        fact[name] if name in ("document", "title", "uri", "date") else fact["metadata"].get(name)
    )
    values = value if isinstance(value, list) else [] if value is None else [value]
    if name == "kind" and not is_note(fact["uri"], fact["metadata"]):
        # A row or a list of kinds with this value makes no note, and would hide those that are.
        values = [kind for kind in values if str(kind).casefold() != "note"]
    return values


def is_valid(fact: Fact, period: str) -> bool:
    """Was there such a document by then, and was it valid? One that states no date is."""
    first, last = dates.days(period)
    begins, until = fact["valid"]
    begun = (fact["date"], begins)
    over = bool(until) and dates.days(until)[1] < first
    return not over and all(dates.days(date)[0] <= last for date in begun if date)


def hold_of_times(conditions: Sequence[Condition], found: Times) -> bool:
    """Do the times of a passage pass? Conditions on `when` must hold for one interval, those on
    `said` for one day, and of `=` one is enough; a passage without a day of its own passes `as_of`."""
    if not any(was_said(conditions, day) for _, _, day in found.parts()):
        return False
    when = [condition for condition in conditions if condition.field == "when"]
    return not when or any(
        hold_of_days(when, (time.start, time.end))
        for time in found.days()
        if was_said(conditions, time.anchor or found.said_at(time.char_start))
    )


def was_said(conditions: Sequence[Condition], day: str) -> bool:
    """Does a day on which something was said ("" for none) pass the conditions on `said` and `as_of`?"""
    of_day = [condition for condition in conditions if condition.field == "said"]
    if of_day and not (day and hold_of_days(of_day, (day, day))):
        return False
    limits = (condition.value for condition in conditions if condition.field == "as_of")
    return not day or all(day <= dates.days(limit)[1] for limit in limits)


# ---- reading -------------------------------------------------------------------------------------


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
    if name not in keys and name not in FIELDS:
        raise _unknown(name, sorted(keys))
    date = dates.read(value) if name in (*DATES, *TIME) else ""
    _check_value(name, op, value, date)
    return Condition(name, op, date or value)


def _unknown(name: str, keys: Sequence[str]) -> BadInput:
    near = difflib.get_close_matches(name, [*FIELDS, *keys], n=1, cutoff=0.6)
    meant = f"Did you mean {one_line(near[0], 40)!r}? " if near else ""
    listed = ", ".join(one_line(key, 40) for key in keys[:SHOWN]) or "none"
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return BadInput(
        f"there is no field {one_line(name, 40)!r} to filter by",
        f"Known are {', '.join(FIELDS)}, and metadata",
        names=f"{meant}Metadata: {listed}{more}",
    )


def _check_value(name: str, op: str, value: str, date: str) -> None:
    """BadInput where a field does not take this operator or value, which is read as `date`."""
    shown = one_line(value, 40)
    if op in ORDERED and name in UNORDERED:
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
