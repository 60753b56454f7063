"""Entities and relationships in a model's reply, checked one by one against the text they are from.

A record that cannot be used is left out and counted with its reason; nothing is dropped in silence."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from graphrag_mcp.index.losses import Losses
from graphrag_mcp.index.places import locate
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.text.terms import normalise_name

# a unit of 1,200 tokens has some 40; what is over comes from a loop
MOST_ENTITIES, MOST_RELATIONS = (500, 1000)
MOST_SEEN = 20_000  # records looked at, so that megabytes of broken ones are soon done with
MOST_LOST = 50  # dropped records that are named
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_TYPE, LONGEST_KEYWORD = 200, 4000, 40, 60
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
    found = _Collected(tuple(types), text)
    lists = {"entities", "relationships"}
    forms = [
        form for form in parsed.values if isinstance(form, dict) and not lists.isdisjoint(form)
    ]
    if not forms:
        raise BadReply('the reply has no list "entities" or "relationships"')
    for form in forms:
        for name, add in (("entities", found.add_entity), ("relationships", found.add_relation)):
            for record in _listed(form, name, found):
                if not found.is_repeated(record):
                    add(record)
    found.dropped[CUT_OFF] += not parsed.whole
    return Records(
        tuple(found.entities),
        tuple(found.relations),
        parsed.whole,
        dict(+found.dropped),
        dict(+found.repaired),
        tuple(found.lost),
    )


def _listed(form: Mapping[str, Any], name: str, found: _Collected) -> Iterator[object]:
    """The elements of a list of the reply, up to what is looked at."""
    value = form.get(name)
    parts = value if isinstance(value, list) else [] if value is None else [value]
    found.dropped["too many"] += max(0, len(parts) - MOST_SEEN)
    yield from parts[:MOST_SEEN]


class _Collected:
    """Records as they are collected: validated, cleaned, each once, up to the limits."""

    def __init__(self, types: tuple[str, ...], text: str) -> None:
        self.types, self.text = {_plain(name): name.strip().lower() for name in types}, text
        self.entities: list[EntityRecord] = []
        self.relations: list[RelationRecord] = []
        self.dropped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.lost: list[tuple[str, str]] = []
        self._known: set[tuple[str, ...]] = set()
        self._read: set[str] = set()  # the records as they were given

    def is_repeated(self, value: object) -> bool:
        """Was the same record given before? It counts once, whether it is kept or dropped. A record
        that could not be read is None, and each of these counts."""
        written = json.dumps(value, sort_keys=True)
        repeated = value is not None and written in self._read
        self._read.add(written)
        self.dropped["duplicate"] += repeated
        return repeated

    def add_entity(self, value: object) -> None:
        try:
            entity = EntitySaid.model_validate(value)
        except ValidationError as error:
            return self._drop(replies.fault(error))
        called = f"entity {_quoted(entity.name)}"
        name = self._name(entity.name, called)
        if not name:
            return None
        description, kind = self._description(entity.description), self._type(entity.type)
        if not description:
            return self._drop("no description", called)
        if self._is_new(MOST_ENTITIES, self.entities, normalise_name(name), kind, description):
            self.entities.append(EntityRecord(name, kind, description))
        return None

    def add_relation(self, value: object) -> None:
        try:
            relation = RelationSaid.model_validate(value)
        except ValidationError as error:
            return self._drop(replies.fault(error))
        called = f"relationship {_quoted(relation.source)} - {_quoted(relation.target)}"
        source = self._name(relation.source, called)
        target = self._name(relation.target, called) if source else ""
        if not source or not target:
            return None
        ends = sorted((normalise_name(source), normalise_name(target)))
        if ends[0] == ends[1]:
            return self._drop("self-loop", called)
        description = self._description(relation.description)
        if not description:
            return self._drop("no description", called)
        if self._is_new(MOST_RELATIONS, self.relations, *ends, description):
            self.repaired["no strength from 0 to 10"] += relation.strength is None
            strength = 1.0 if relation.strength is None else relation.strength
            words = self._keywords(relation.keywords)
            self.relations.append(RelationRecord(source, target, description, words, strength))
        return None

    def _name(self, value: str, called: str) -> str:
        """The name; "" when the record is dropped."""
        name = replies.clean(value, LONGEST_NAME + 1)
        if not re.search(r"\w", name):
            self._drop("no name", called)
        elif len(name) > LONGEST_NAME:
            self._drop("name too long", called)
        elif not locate(self.text, name):
            self._drop(NOT_IN_TEXT, called)
        else:
            return name
        return ""

    def _description(self, value: str) -> str:
        """The description in one line; "" for one without a word."""
        self.repaired["description too long"] += len(value) > LONGEST_DESCRIPTION
        text = replies.clean(value, LONGEST_DESCRIPTION)
        return text if re.search(r"\w", text) else ""

    def _type(self, value: str) -> str:
        """One of the types asked for, or "other"; any word where no types were asked for."""
        word = replies.clean(value, LONGEST_TYPE).lower()
        return self.types.get(_plain(word), "other") if self.types else word or "other"

    def _keywords(self, words: Sequence[str]) -> tuple[str, ...]:
        keywords = [replies.clean(word, LONGEST_KEYWORD).strip(" .") for word in words]
        distinct = {word.casefold(): word for word in keywords if word}
        self.repaired["too many keywords"] += len(distinct) > MOST_KEYWORDS
        return tuple(distinct.values())[:MOST_KEYWORDS]

    def _is_new(self, most: int, found: Sequence[object], *identity: str) -> bool:
        new = identity not in self._known and len(found) < most
        if not new:
            self._drop("duplicate" if identity in self._known else "too many")
        self._known.add(identity)
        return new

    def _drop(self, reason: str, record: str = "") -> None:
        self.dropped[reason] += 1
        if record and len(self.lost) < MOST_LOST:
            self.lost.append((reason, record))


def _plain(kind: str) -> str:
    return " ".join(re.split(r"[\s_-]+", kind.casefold().strip()))


def _quoted(name: str) -> str:
    return f'"{replies.clean(name, 60)}"'
