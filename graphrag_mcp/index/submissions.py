"""What an agent hands in for a work item, read as strictly as it can be told to the agent.

Takes a result and the question that it answers; gives the text that is kept as the answer, and
which records were left out of it and why. Where a model's reply would be repaired an agent is told,
and can correct it. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphrag_mcp.index.extraction import locate, spelled
from graphrag_mcp.index.losses import UNCOUNTED, listed
from graphrag_mcp.index.records import Records
from graphrag_mcp.llm.asker import Ask, BadReply
from graphrag_mcp.sources.decode import clean
from graphrag_mcp.text.terms import normalise_name

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
    value = (ask.strictly or ask.parse)(text)
    if isinstance(value, Records):
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
        raise BadReply(f"no usable record: {listed(dropped, lost)}")
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
