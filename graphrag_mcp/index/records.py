"""Entities and relationships in a model's reply, checked one by one against the text they are from.

A record that cannot be used is left out and counted with its reason; nothing is dropped in silence."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from graphrag_mcp.index.losses import DUPLICATE, Losses
from graphrag_mcp.index.places import locate
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.text.terms import normalise_name

# a unit of 1,200 tokens has some 40; what is over comes from a loop
MOST_ENTITIES, MOST_RELATIONS = (500, 1000)
MOST_SEEN = 20_000  # records looked at, so that megabytes of broken ones are soon done with
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_WORD = 200, 4000, 60
MOST_KEYWORDS = 12
NOTHING_USABLE = "no usable record"
CUT_OFF = "cut off"  # why the last record of a reply without an end is dropped
NOT_IN_TEXT = "name not in the text"


@dataclass(frozen=True, slots=True)
class EntityRecord:
    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class RelationRecord:
    source: str
    target: str
    description: str
    keywords: tuple[str, ...] = ()
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Records:
    """`complete`: the reply was not cut off. `dropped`: reason -> how many records; `repaired`: the
    same of records that are kept with a value that the reply did not say; `lost`: reason and record
    of some that were dropped."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    complete: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[tuple[str, str], ...] = ()

    @property
    def losses(self) -> Losses:
        return Losses(self.dropped, self.repaired)

    def as_json(self) -> str:
        """The records as a reply that is read as the same records."""
        entities, relations = map(asdict, self.entities), map(asdict, self.relations)
        whole = {"entities": list(entities), "relationships": list(relations)}
        return json.dumps(whole, ensure_ascii=False)


# ---- the form of a reply ------------------------------------------------------------------------


def _keywords(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value or []


def _strength(value: Any) -> float | None:
    """The number that is meant, or None: a relationship is worth more than its strength."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number <= 10 and not isinstance(value, bool) else None


class EntitySaid(BaseModel):
    name: str
    type: str
    description: str


class RelationSaid(BaseModel):
    source: str
    target: str
    description: str
    keywords: Annotated[list[str], BeforeValidator(_keywords)] = []
    strength: Annotated[float | None, BeforeValidator(_strength), replies.NUMBER] = None


class Extracted(BaseModel):
    """The form of a reply. Its parts are validated one by one, so that one bad record is one loss."""

    entities: list[EntitySaid]
    relationships: list[RelationSaid]


SCHEMA = replies.schema_of(Extracted)


# ---- reading ------------------------------------------------------------------------------------


def parse(reply: str, types: Sequence[str], text: str) -> Records:
    """The records of `reply` about `text`. `types` empty = any type.

    Raises BadReply when the reply is no JSON of the form asked for. A reply with empty lists is an
    empty `Records`."""
    parsed = replies.read(reply)
    reader = _Reader({_plain(name): name.strip().lower() for name in types}, text)
    lists = (("entities", reader.entity), ("relationships", reader.relation))
    forms = [form for form in parsed.values if isinstance(form, dict) and any(name in form for name, _ in lists)]
    if not forms:
        raise BadReply('the reply has no list "entities" or "relationships"')
    for form in forms:
        for name, read in lists:
            value = form.get(name)
            parts = value if isinstance(value, list) else [] if value is None else [value]
            reader.dropped["too many"] += max(0, len(parts) - MOST_SEEN)
            for part in parts[:MOST_SEEN]:
                try:
                    read(part)
                except ValidationError as error:
                    reader.dropped[replies.fault(error)] += 1
                except _Lost as lost:
                    reader.dropped[lost.reason] += 1
                    reader.lost.append((lost.reason, lost.record))
    reader.dropped[CUT_OFF] += not parsed.whole
    return Records(
        tuple(reader.entities.values()),
        tuple(reader.relations.values()),
        parsed.whole,
        dict(+reader.dropped),
        dict(+reader.repaired),
        tuple(pair for pair in reader.lost if pair[0] != DUPLICATE),
    )


@dataclass(frozen=True)
class _Lost(Exception):
    """Why a record is left out, and what names it."""

    reason: str
    record: str


@dataclass
class _Reader:
    """Records are cleaned and kept, each once, up to the limits; what is left out is raised."""

    types: Mapping[str, str]
    text: str
    entities: dict[tuple[str, ...], EntityRecord] = field(default_factory=dict)
    relations: dict[tuple[str, ...], RelationRecord] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    lost: list[tuple[str, str]] = field(default_factory=list)

    def entity(self, value: object) -> None:
        said = EntitySaid.model_validate(value)
        called = f'entity "{replies.clean(said.name, LONGEST_WORD)}"'
        name, description = self._name(said.name, called), self._words(said.description, called)
        word = replies.clean(said.type, LONGEST_WORD).lower()
        # one of the types asked for, or "other"; any word where no types were asked for
        kind = self.types.get(_plain(word), "other") if self.types else word or "other"
        key = normalise_name(name), kind, description
        _check_new(key, self.entities, MOST_ENTITIES, called)
        self.entities[key] = EntityRecord(name, kind, description)

    def relation(self, value: object) -> None:
        said = RelationSaid.model_validate(value)
        ends = (replies.clean(end, LONGEST_WORD) for end in (said.source, said.target))
        called = "relationship " + " - ".join(f'"{end}"' for end in ends)
        source, target = self._name(said.source, called), self._name(said.target, called)
        first, second = sorted((normalise_name(source), normalise_name(target)))
        if first == second:
            raise _Lost("self-loop", called)
        description = self._words(said.description, called)
        key = first, second, description
        _check_new(key, self.relations, MOST_RELATIONS, called)
        words = (replies.clean(word, LONGEST_WORD).strip(" .") for word in said.keywords)
        keywords = tuple({word.casefold(): word for word in words if word}.values())
        self.repaired["too many keywords"] += len(keywords) > MOST_KEYWORDS
        self.repaired["no strength from 0 to 10"] += said.strength is None
        strength = 1.0 if said.strength is None else said.strength
        found = RelationRecord(source, target, description, keywords[:MOST_KEYWORDS], strength)
        self.relations[key] = found

    def _name(self, value: str, called: str) -> str:
        name = replies.clean(value, LONGEST_NAME + 1)
        if not re.search(r"\w", name):
            raise _Lost("no name", called)
        if len(name) > LONGEST_NAME:
            raise _Lost("name too long", called)
        if not locate(self.text, name):
            raise _Lost(NOT_IN_TEXT, called)
        return name

    def _words(self, value: str, called: str) -> str:
        """A description in one line."""
        text = replies.clean(value, LONGEST_DESCRIPTION)
        if not re.search(r"\w", text):
            raise _Lost("no description", called)
        self.repaired["description too long"] += len(value) > LONGEST_DESCRIPTION
        return text


def _check_new(key: tuple[str, ...], found: Mapping[tuple[str, ...], object], most: int, called: str) -> None:
    if key in found:
        raise _Lost(DUPLICATE, called)
    if len(found) >= most:
        raise _Lost("too many", called)


def _plain(kind: str) -> str:
    return " ".join(re.split(r"[\s_-]+", kind.casefold().strip()))
