"""Entity and relationship records from a model's reply: the tuple protocol of the prompt with the
damage that models do to it, one record a line, or JSON (whole, cut off, in fences, amid prose)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from graphrag_mcp.index.keyed_records import Found, records_in, records_of_tables
from graphrag_mcp.index.losses import Losses, listed
from graphrag_mcp.index.tuples import first_start, read_tuples
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.llm.replies import (
    FULL,
    clean,
    clean_name,
    json_start,
    json_values,
    plain_reply,
    unescaped,
    without_gloss,
)
from graphrag_mcp.text.terms import normalise_name

# a unit of 1,200 tokens has some 40; what is over comes from a loop
MOST_ENTITIES, MOST_RELATIONS = (500, 1000)
NOTHING_USABLE = "no usable record"
CUT_OFF = "cut off"  # why the last record of a reply without an end is dropped
MOST_LOST = 50  # dropped records that are named
MOST_SEEN = 20_000  # records looked at, so that megabytes of broken ones are soon done with
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_TYPE = 200, 4000, 40
EXAMPLE_NAMES = frozenset(
    {"tamsin orrery", "orrery lantern works", "port velling", "velling light fair"}
)
# Words that stand for a value in a format line; a reply that repeats the prompt has them as names.
PLACEHOLDERS = frozenset(
    "name title entity entity_name entityname source target source_entity target_entity source_name target_name "
    "entity_1 entity_2 entity1 entity2 type entity_type description string".split()
)


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
    """`complete`: the end mark was there (or the JSON was closed). `dropped`: reason -> how many
    records; `repaired`: the same of records that are kept with a value that the reply did not say;
    `lost`: reason and record of some that were dropped."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    complete: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[tuple[str, str], ...] = ()

    @property
    def losses(self) -> Losses:
        return Losses(len(self.entities) + len(self.relations), self.dropped, self.repaired)

    def doubt(self) -> str:
        return self.losses.doubt()

    def whole(self) -> int:
        """How many records nothing was missing of."""
        return self.losses.kept - sum(self.repaired.values())


def parse(
    reply: str,
    types: Sequence[str] = (),
    text: str = "",
    echoes: Iterable[str] = EXAMPLE_NAMES,
    said: int = 60,
    strict: bool = False,
) -> Records:
    """The records of `reply`. `types` empty = any type. Names of the prompt (`echoes`, lower case,
    and placeholders) are dropped unless they occur in `text`. A reply that says that there is
    nothing is an empty, complete `Records`; it may do so in `said` characters beside the end mark.
    `strict`: a strength that is no number from 0 to 10 is dropped with its relationship, and not
    replaced."""
    found = _Found(tuple(types), " ".join(text.casefold().split()), frozenset(echoes), strict)
    plain, marked = plain_reply(reply)
    tuples, json = first_start(plain), json_start(plain)
    closed = hollow = False
    if 0 <= json and (tuples < 0 or json < tuples):
        values, closed, mended = json_values(plain)
        if not values and "&quot;" in plain:
            values, closed, mended = json_values(unescaped(plain))
        for one in islice((one for value in values for one in records_in("", value)), MOST_SEEN):
            found.add_keyed(one)
        found.repaired["broken JSON"] += min(mended, found.seen)
        hollow = closed and bool(values) and not any(map(_says_anything, values))
        closed = closed and (found.seen > 0 or hollow)
    if not found.seen and tuples < 0:
        for one in islice(records_of_tables(plain), MOST_SEEN):
            found.add_keyed(one)
    if not found.seen:
        _read_tuples(found, unescaped(plain), marked)
    if not found.entities and not found.relations:
        _read_claims(found, plain)
    if not found.entities and not found.relations:
        _reject(plain, found, marked or (hollow and _SAYS_NONE.match(plain) is not None), said)
    return Records(
        tuple(found.entities),
        tuple(found.relations),
        marked or closed,
        dict(found.dropped),
        dict(+found.repaired),
        tuple(found.lost),
    )


def _says_anything(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_says_anything, value.values() if isinstance(value, dict) else value))
    return bool(value)


def _reject(plain: str, found: _Found, complete: bool, said: int) -> None:
    """Raises BadReply, unless the reply says properly that there is nothing."""
    start = plain[:2000].lstrip().lower()
    if found.dropped:
        raise BadReply(
            f"{NOTHING_USABLE}: {listed(found.dropped, found.lost if found.strict else ())}"
        )
    if start.startswith(("<!doctype", "<html", "<head", "<?xml")):
        raise BadReply("an HTML page")
    if not complete:
        raise BadReply("no records" if start else "empty reply")
    if start and start[0] not in "{[" and len(start) > said:
        raise BadReply("prose instead of records")


_SAYS_NONE = re.compile(
    r"\{\s{0,9}\}|\[\s{0,9}\]|\{\s{0,99}\"(?:entit|node|relation|edge)\w{0,20}\"", re.IGNORECASE
)

# ---- tuples ---------------------------------------------------------------------------------------


def _read_tuples(found: _Found, plain: str, complete: bool) -> None:
    records, between = read_tuples(plain, complete, _whole)
    for part in between:
        found.note_strangers(part)
    for one in records[:MOST_SEEN]:
        if found.full(one.kind):
            found.dropped["too many"] += 1
        elif one.cut_off:
            found.seen += 1
            found.drop(CUT_OFF)
        else:
            found.add_fields(one.kind, one.fields, one.keywords_first)
    if len(records) > MOST_SEEN:
        found.dropped["too many"] += len(records) - MOST_SEEN


def _whole(kind: str, fields: list[str]) -> bool:
    """Every field of a record: name, type and description, or what relates two names and its
    strength."""
    if len(fields) < 3 or not all(field.strip() for field in fields[:3]):
        return False
    return kind == "e" or (len(fields) > 3 and strength_of(fields[-1]) is not None)


_STATUS = frozenset(("TRUE", "FALSE", "SUSPECTED"))


def _read_claims(found: _Found, plain: str) -> None:
    """Claims where there is nothing else: some models answer texts about suspicions so, each time
    they are asked. What is claimed of one towards another is a relationship of the two."""
    for piece in re.split(r"##|\n", plain)[:MOST_SEEN]:
        fields = [
            clean(field, LONGEST_DESCRIPTION) for field in re.split(FULL, piece.strip(" \t()（）"))
        ]
        if (
            len(fields) >= 7
            and fields[3].upper() in _STATUS
            and "NONE" not in (fields[0].upper(), fields[1].upper())
        ):
            found.seen += 1
            found.add_relation(fields[0], fields[1], fields[6], fields[2].lower(), None)


# ---- records --------------------------------------------------------------------------------------

_STRENGTH = re.compile(
    r"[^\w-]{0,4}(?:relationship[ _-]?)?(?:strength|weight|score|强度|強度)?[^\w-]{0,4}(-?\d{1,9}(?:[.,]\d{1,9})?) ?"
    r"(/ ?(?:5|10|100)|out of (?:5|10|100)|%|points?|分)?\W{0,4}",
    re.IGNORECASE,
)
_WORDS_OF_STRENGTH = {
    **dict.fromkeys(("very high", "very strong"), 9.0),
    **dict.fromkeys(("high", "strong", "高", "强"), 8.0),
    **dict.fromkeys(("medium", "moderate", "中"), 5.0),
    **dict.fromkeys(("low", "weak", "低", "弱"), 2.0),
    **dict.fromkeys(("very low", "very weak"), 1.0),
}


def strength_of(value: object) -> float | None:
    """0 to 10, or None for what is no strength. Below 0 counts as 1, the least that the prompt
    offers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    said = unicodedata.normalize("NFKC", str(value)[:60]).strip()
    if match := _STRENGTH.fullmatch(said):
        number = float(match[1].replace(",", "."))
        scale = re.sub(r"\D", "", match[2] or "") or ("100" if match[2] == "%" else "10")
        number = number * 10 / int(scale)
        return 1.0 if number < 0 else min(10.0, number)
    return _WORDS_OF_STRENGTH.get(re.sub(r"^strength\W+", "", said.strip(" .\"'()").lower()))


def keywords_of(value: object) -> tuple[str, ...]:
    """At most 12, in order, each once."""
    if not isinstance(value, list):
        text = str(value or "")[:2000].strip()
        value = re.split(r"[,，、;；\n|]+", text[1:-1] if text[:1] in ("(", "[", "（") else text)
    words = (clean(str(part), 60).strip(" .\"'") for part in value[:50])
    return tuple({word.casefold(): word for word in words if word}.values())[:12]


@lru_cache(maxsize=256)
def _folded_types(types: tuple[str, ...]) -> dict[str, str]:
    return {_folded_type(name): name.strip().lower() for name in reversed(types)}


def _folded_type(word: str) -> str:
    word = " ".join(re.split(r"[\s_-]+", word.casefold().strip())).replace("isation", "ization")
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


@lru_cache(maxsize=4096)
def type_of(value: str, types: tuple[str, ...]) -> str:
    """One of `types` in lower case, or "other"; with no `types` the model's own word."""
    word = clean(value, LONGEST_TYPE).strip(" .()[]<>#*").lower()
    if not types:
        return word if re.search(r"\w", word) else "other"
    known = _folded_types(types)
    for part in (word, *re.split(r"[/,|;、]| or ", word)):
        if (kind := known.get(_folded_type(part))) is not None:
            return kind
    return "other"


class _Found:
    """Records as they are collected: cleaned, checked, each once, up to the caps."""

    def __init__(
        self, types: tuple[str, ...], text: str, echoes: frozenset[str], strict: bool = False
    ) -> None:
        self.types, self.text, self.echoes, self.strict = types, text, echoes, strict
        self.entities: list[EntityRecord] = []
        self.relations: list[RelationRecord] = []
        self.dropped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()
        self.lost: list[tuple[str, str]] = []
        self.known: set[tuple[str, ...]] = set()
        self.seen = 0

    def drop(self, reason: str, record: str = "") -> None:
        self.dropped[reason] += 1
        if record and len(self.lost) < MOST_LOST:
            self.lost.append((reason, record))

    def full(self, kind: str) -> bool:
        if kind == "e":
            return len(self.entities) >= MOST_ENTITIES
        return len(self.relations) >= MOST_RELATIONS

    def note_strangers(self, between: str) -> None:
        """Counts what looks like a record of another kind: claims have at least six fields."""
        if "|" in between or "｜" in between:
            for piece in re.split(r"##|\n", between)[:MOST_SEEN]:
                if (marks := len(re.findall(FULL, piece))) > 1:
                    self.dropped["claim" if marks > 4 else "unknown record"] += 1

    def add_fields(self, kind: str, fields: list[str], lightrag: bool = False) -> None:
        """A tuple's fields after its tag. `lightrag`: its delimiters are LightRAG's, which has
        keywords first."""
        self.seen += 1
        if kind == "e":
            if len(fields) > 3 and strength_of(fields[-1]) is not None:
                fields = fields[:-1]  # a rating that no one asked for
            if (
                len(fields) == 2
                and len(fields[1].split()) > 3
                and type_of(fields[1], self.types) == "other"
            ):
                fields = [fields[0], "", fields[1]]
                self.repaired["no type"] += 1
            name, kind_of, *rest = [*fields, "", ""][: max(2, len(fields))]
            self.repaired["too many fields"] += len(rest) > 1
            self.add_entity(name, kind_of, " ".join(rest))
            return
        source, target, *rest = [*fields, "", ""][: max(2, len(fields))]
        strength: object = rest[-1] if rest else None
        if strength_of(strength) is not None or (
            len(rest) == 3 and len(rest[2].split()) < 3
        ):  # in other words
            rest = rest[:-1]
        else:
            strength = None
        self.repaired["too many fields"] += len(rest) > 2
        keywords = ""
        ends = [part.rstrip(" \"'").endswith((".", "。")) for part in rest]
        if len(rest) == 2 and strength is None and ends[0] == ends[1] and not lightrag:
            keywords, rest = min(rest, key=len), [max(rest, key=len)]
        elif len(rest) > 1:
            between = (ends[0], ends[-1])
            first = between == (False, True) if len(rest) == 2 else False
            first = first or (lightrag and between != (True, False))
            if len(rest[0 if first else -1]) < 200:
                keywords, rest = (rest[0], rest[1:]) if first else (rest[-1], rest[:-1])
        self.add_relation(source, target, " ".join(rest), keywords, strength)

    def add_keyed(self, one: Found) -> None:
        if one.kind == "claim":
            self.drop("claim")
        elif one.fields:
            self.add_fields(one.kind, [*one.fields])
        elif one.kind == "e":
            self.seen += 1
            self.add_entity(one.names[0], one.type, one.description)
        else:
            self.seen += 1
            self.add_relation(*one.names, one.description, one.keywords, one.strength)

    def add_entity(self, name: str, kind: str, description: str) -> None:
        name, description = (
            self._name(name, f"entity {_quoted(name)}"),
            clean(description, LONGEST_DESCRIPTION),
        )
        if not name:
            return
        record = EntityRecord(name, type_of(kind[:200], self.types), description)
        if not re.search(r"\w", description):
            self.drop("no description", f"entity {_quoted(name)}")
        elif not self._new("entity", normalise_name(name), record.type, description):
            self.drop("duplicate")
        elif self.full("e"):
            self.drop("too many")
        else:
            self.entities.append(record)

    def add_relation(
        self, source: str, target: str, description: str, keywords: object, said: object
    ) -> None:
        """`said`: the strength as it was said."""
        called = f"relationship {_quoted(source)} - {_quoted(target)}"
        source = self._name(source, called)
        target = self._name(target, called) if source else ""
        description = clean(description, LONGEST_DESCRIPTION)
        if not source or not target:
            return
        ends = sorted((normalise_name(source), normalise_name(target)))
        strength = strength_of(said)
        vague = said not in (None, "") and (strength is None or (self.strict and _is_beyond(said)))
        if ends[0] == ends[1]:
            self.drop("self-loop", called)
        elif not re.search(r"\w", description):
            self.drop("no description", called)
        elif vague and self.strict:
            self.drop("strength is no number from 1 to 10", f"{called}: {_quoted(str(said))}")
        elif not self._new("relation", *ends, description):
            self.drop("duplicate")
        elif self.full("r"):
            self.drop("too many")
        else:
            if strength is None:
                self.repaired["strength is no number" if vague else "no strength"] += 1
                strength = 1.0
            self.relations.append(
                RelationRecord(source, target, description, keywords_of(keywords), strength)
            )

    def _name(self, value: str, called: str) -> str:
        name = without_gloss(clean_name(value))
        low = name.casefold().strip("<>{}[]$")
        if not name:
            self.drop("no name", called)
        elif len(name) > LONGEST_NAME:
            self.drop("name too long", called)
        elif self._echo(low):
            self.drop("prompt echo", called)
        else:
            return name
        return ""

    def _echo(self, name: str) -> bool:
        """Is this a name of the prompt's own example? One that shares a word with the text may be a
        fuller form."""
        if name in self.text or not (name in self.echoes or name.replace(" ", "_") in PLACEHOLDERS):
            return False
        invented = name in EXAMPLE_NAMES or name not in self.echoes
        return invented or not any(len(word) > 3 and word in self.text for word in name.split())

    def _new(self, *identity: str) -> bool:
        new = identity not in self.known
        self.known.add(identity)
        return new


def _quoted(name: str) -> str:
    return f'"{clean(name, 60)}"'


def _is_beyond(said: object) -> bool:
    """Is it a plain number that is no strength?"""
    try:
        return not 0 <= float(said) <= 10  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
