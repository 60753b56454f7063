"""Validation of what an agent submits for a work item.

Takes a result and the question that it answers; gives the text that is kept as the answer, and
which records were left out of it and why. Where a model's reply would be repaired an agent is told,
and can correct it. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrag_mcp.index.extraction import locate, spelled
from graphrag_mcp.index.losses import UNCOUNTED, listed
from graphrag_mcp.index.records import NOTHING_USABLE, Records
from graphrag_mcp.llm.asker import Ask, BadReply
from graphrag_mcp.sources.decode import clean
from graphrag_mcp.text.terms import normalise_name

NO_RECORD = "shape that is no record"
NO_ENTITY = "end that is not among the entities"


@dataclass(frozen=True, slots=True)
class Reading:
    """A result that can be kept: its text as an answer, and what was left out of it."""

    text: str
    left_out: str = ""


def read_result(
    result: Mapping[str, Any], ask: Ask[Any], others: Mapping[str, Ask[Any]]
) -> Reading:
    """The result, without the records that are refused. Raises BadReply where nothing is left."""
    text = _text(result)
    parse = ask.strictly or ask.parse
    value = parse(text)
    if isinstance(value, Records):
        value = _with_unread(text, value, parse)
        value = _without_unknown_ends(_text_of(ask), value)
        if other := _of_another(value, ask, others):
            raise BadReply(f"its names stand in the text of {other}, none in its own; swapped?")
        dropped = {why: count for why, count in value.dropped.items() if why not in UNCOUNTED}
        left_out = [listed(dropped, value.lost)] if dropped else []
        if value.repaired:
            left_out.append(f"kept with a value of ours: {listed(value.repaired)}")
        return Reading(_as_json(value) if dropped else text, "; ".join(left_out))
    lost = (
        next((part for part in value if isinstance(part, Counter)), None)
        if isinstance(value, tuple)
        else None
    )
    return Reading(text, listed(lost) if lost else "")


def _text(result: Mapping[str, Any]) -> str:
    """What a model would have said: the text handed in, or the records as JSON; without what no
    file can hold.
    """
    text = result.get("text")
    if isinstance(text, str) and text.strip():
        return clean(text).strip()
    if isinstance(text, dict | list):  # a report handed in as an object
        return clean(json.dumps(text, ensure_ascii=False))
    records = {name: result.get(name) or [] for name in ("entities", "relationships")}
    return clean(json.dumps(records, ensure_ascii=False))


def _with_unread(text: str, records: Records, parse: Callable[[str], Any]) -> Records:
    """With what stands in the lists of a JSON object and was taken for no record counted as
    dropped."""
    try:
        said = json.loads(text)
    except ValueError:  # records in another form, which name what they drop themselves
        return records
    given = [
        (name, one)
        for name in ("entities", "relationships")
        for one in _elements(said.get(name) if isinstance(said, dict) else None)
    ]
    read = len(records.entities) + len(records.relations) + sum(records.dropped.values())
    if len(given) <= read:
        return records
    unread = [(NO_RECORD, clean(json.dumps(one, ensure_ascii=False))[:60]) for name, one in given
              if not _is_read(json.dumps({name: [one]}, ensure_ascii=False), parse)]  # fmt: skip
    if not unread:
        return records
    dropped, lost = {**records.dropped, NO_RECORD: len(unread)}, (*records.lost, *unread)
    if not records.entities and not records.relations:
        raise BadReply(f"{NOTHING_USABLE}: {listed(dropped, lost)}")
    return replace(records, dropped=dropped, lost=lost)


def _elements(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]


def _is_read(text: str, parse: Callable[[str], Any]) -> bool:
    """Is this one found to be a record, if only one that is dropped with a reason?"""
    try:
        value = parse(text)
    except BadReply as error:
        return str(error).startswith(NOTHING_USABLE)
    return bool(value.entities or value.relations or value.dropped)


def _as_json(records: Records) -> str:
    """These records alone, as an answer that is read as them again."""
    entities = [
        {"name": one.name, "type": one.type, "description": one.description}
        for one in records.entities
    ]
    relations = [
        {
            "source": one.source,
            "target": one.target,
            "description": one.description,
            "keywords": list(one.keywords),
            "strength": one.strength,
        }
        for one in records.relations
    ]
    return json.dumps({"entities": entities, "relationships": relations}, ensure_ascii=False)


def _without_unknown_ends(text: str, records: Records) -> Records:
    """Without relationships of names that are not among the entities."""
    known = {normalise_name(spelled(text, one.name)) for one in records.entities}
    kept, lost = [], list(records.lost)
    for one in records.relations:
        unknown = [
            end
            for end in (one.source, one.target)
            if normalise_name(spelled(text, end)) not in known
        ]
        if unknown:
            lost.append(
                (NO_ENTITY, f'relationship "{one.source}" - "{one.target}": "{unknown[0]}"')
            )
        else:
            kept.append(one)
    count = len(records.relations) - len(kept)
    dropped = {**records.dropped, NO_ENTITY: count} if count else dict(records.dropped)
    if count and not kept and not records.entities:
        raise BadReply(f"{NOTHING_USABLE}: {listed(dropped, lost)}")
    return replace(records, relations=tuple(kept), dropped=dropped, lost=tuple(lost))


def _of_another(value: Records, ask: Ask[Any], asks: Mapping[str, Ask[Any]]) -> str:
    """The item in whose text all the names stand of which none stands in that of its own; "" where
    there is none.
    """
    names = [one.name for one in value.entities]
    if not names or any(locate(_text_of(ask), name) for name in names):
        return ""
    return next(
        (id for id, one in asks.items() if all(locate(_text_of(one), name) for name in names)), ""
    )


def _text_of(ask: Ask[Any]) -> str:
    return ask.messages[0].content.rpartition("<text>")[2]
