"""What a model meant: entity and relationship records out of its reply, however it was written.

Takes a reply and the configured types; gives `Records`, or raises BadReply in a few words when
nothing usable is in it. Reads the tuple protocol of the prompt with the damage that models do to
it, one record a line, and JSON (whole, cut off, in fences, amid prose). Pure, in linear time, at
most MOST_ENTITIES and MOST_RELATIONS. Knows no prompt but the names of its example, and neither
documents nor the graph.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.llm.replies import (
    FULL,
    HALF,
    clean,
    clean_name,
    json_items,
    plain_reply,
    split_fields,
    unescaped,
)
from graphrag_mcp.text.terms import normalise_name

MOST_ENTITIES, MOST_RELATIONS = (
    500,
    1000,
)  # a unit of 1,200 tokens has some 40; what is over comes from a loop
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
    records.
    """

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()
    complete: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)


def parse(
    reply: str,
    types: Sequence[str] = (),
    text: str = "",
    echoes: Iterable[str] = EXAMPLE_NAMES,
    said: int = 60,
) -> Records:
    """The records of `reply`. `types` empty = any type. Names of the prompt (`echoes`, lower case,
    and placeholders) are dropped unless they occur in `text`. A reply that says that there is
    nothing is an empty, complete `Records`; it may do so in `said` characters beside the end mark.
    """
    found = _Found(tuple(types), " ".join(text.casefold().split()), frozenset(echoes))
    plain, marked = plain_reply(reply)
    tuples = _STRONG_START.search(plain)
    closed, items = False, []
    if not tuples and ("{" in plain or "[" in plain):
        items, closed = json_items(plain)
        if not items and "&quot;" in plain:
            items, closed = json_items(unescaped(plain))
        for key, item in items[:MOST_SEEN]:
            found.add_item(key, item)
    if not found.seen:
        _read_tuples(found, unescaped(plain), marked)
    if not found.entities and not found.relations:
        _read_claims(found, plain)
    if not found.entities and not found.relations:
        hollow = closed and all(
            isinstance(item, dict) and not any(item.values()) for _, item in items
        )
        _reject(
            plain, found.dropped, marked or (hollow and _SAYS_NONE.match(plain) is not None), said
        )
    return Records(
        tuple(found.entities), tuple(found.relations), marked or closed, dict(found.dropped)
    )


def _reject(plain: str, dropped: Mapping[str, int], complete: bool, said: int) -> None:
    """Raises BadReply, unless the reply says properly that there is nothing."""
    start = plain[:2000].lstrip().lower()
    if dropped:
        raise BadReply(
            "no usable record: "
            + ", ".join(f"{count} x {why}" for why, count in sorted(dropped.items()))
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

_TAG = r"[\"'“”‘’`*＂「『]{0,4}(entity|entities|relationships?|relations?)[\"'“”‘’`*＂」』]{0,4}[ \t]{0,4}"
_STRONG_START = re.compile(rf"(?<!\w){_TAG}(?={HALF})", re.IGNORECASE)
_WEAK_START = re.compile(
    rf"(?:^|(?<=[(（\[#|]))[ \t|*•+-]{{0,6}}{_TAG}(?=[|｜\t]|,[ ]{{0,4}}[\"'“])",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSE = re.compile(r"[)）\]](?=[ \t*`,;]{0,8}(?:\n|##|\Z))")
_TAIL = " \t\r\n(（[\"'“#*•-"


def _read_tuples(found: _Found, plain: str, complete: bool) -> None:
    """Every record from its tag on; where it ends is seen from its form, since separators get lost."""
    starts = list(_STRONG_START.finditer(plain)) or list(_WEAK_START.finditer(plain))
    found.note_strangers(plain[: starts[0].start()] if starts else plain)
    for index, match in enumerate(starts[:MOST_SEEN]):
        last = index + 1 == len(starts)
        opened = (
            plain[max(0, match.start() - 4) : match.start()]
            .rstrip(" \t\"'“")
            .endswith(("(", "（", "["))
        )
        segment = plain[match.end() : len(plain) if last else starts[index + 1].start()].rstrip(
            _TAIL
        )
        kind = match[1][0].lower()
        if found.full(kind):
            found.dropped["too many"] += 1
            continue
        fields, rest, closed = _record(segment, opened, kind)
        found.note_strangers(rest)
        if last and opened and not closed and not complete:
            found.seen += 1
            found.dropped["cut off"] += 1
        else:
            found.add_fields(kind, fields, "<|#|>" in segment)
    if len(starts) > MOST_SEEN:
        found.dropped["too many"] += len(starts) - MOST_SEEN


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


def _record(segment: str, opened: bool, kind: str) -> tuple[list[str], str, bool]:
    """Fields of the record that `segment` begins with, what follows it, and whether its closing
    bracket was seen.

    The first end that leaves enough fields is taken: a description may hold brackets and line
    breaks.
    """
    ends = _CLOSE.finditer(segment) if opened else re.finditer(r"\n", segment)
    for _, match in zip(range(4), ends, strict=False):
        fields = split_fields(segment[: match.start()])
        if len(fields) >= 3 and (kind == "e" or not opened or strength_of(fields[-1]) is not None):
            return fields, segment[match.end() :], True
    body = segment.rstrip()
    closed = body.endswith((")", "）", "]"))
    return split_fields(body[:-1] if opened and closed else body), "", closed


# ---- records --------------------------------------------------------------------------------------

_STRENGTH = re.compile(
    r"[^\w-]{0,4}(?:relationship[ _-]?)?(?:strength|weight|score|强度|強度)?[^\w-]{0,4}(-?\d{1,9}(?:[.,]\d{1,9})?) ?"
    r"(/ ?(?:5|10|100)|out of (?:5|10|100)|%|points?|分)?\W{0,4}",
    re.IGNORECASE,
)
_WORDS_OF_STRENGTH = {
    "very high": 9.0,
    "very strong": 9.0,
    "high": 8.0,
    "strong": 8.0,
    "medium": 5.0,
    "moderate": 5.0,
    "low": 2.0,
    "weak": 2.0,
    "very low": 1.0,
    "very weak": 1.0,
    "高": 8.0,
    "强": 8.0,
    "中": 5.0,
    "低": 2.0,
    "弱": 2.0,
}


def strength_of(value: object) -> float | None:
    """0 to 10, or None for what is no strength. Below 0 counts as 1, the least that the prompt
    offers.
    """
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


# What models call the same thing in JSON, lower case without `_`, `-` and blanks; the first that is
# there counts.
_NAME = "name entityname title entity nodename node id label".split()
_TYPE = "entitytype type category kind class label".split()
_DESCRIPTION = (
    "description desc entitydescription relationshipdescription relationdescription summary details explanation text"
).split()
_SOURCE = (
    "source src sourceentity sourcename sourceid srcid from head subject entity1 start".split()
)
_TARGET = "target tgt dst targetentity targetname targetid tgtid to tail object entity2 end".split()
_CONTAINERS = frozenset(
    "entities nodes items data records results result output graph relationships edges".split()
)
_KEYWORDS = (
    "keywords keyword relationshipkeywords tags relation relationship predicate type label".split()
)
_PREDICATE = "relation relationship predicate type label".split()
_SCORE = "strength relationshipstrength weight score importance".split()


class _Found:
    """Records as they are collected: cleaned, checked, each once, up to the caps."""

    def __init__(self, types: tuple[str, ...], text: str, echoes: frozenset[str]) -> None:
        self.types, self.text, self.echoes = types, text, echoes
        self.entities: list[EntityRecord] = []
        self.relations: list[RelationRecord] = []
        self.dropped: Counter[str] = Counter()
        self.known: set[tuple[str, ...]] = set()
        self.seen = 0

    def full(self, kind: str) -> bool:
        return (
            len(self.entities) >= MOST_ENTITIES
            if kind == "e"
            else len(self.relations) >= MOST_RELATIONS
        )

    def note_strangers(self, between: str) -> None:
        """Counts what looks like a record of another kind: claims have at least six fields."""
        if "|" in between or "｜" in between:
            for piece in re.split(r"##|\n", between)[:MOST_SEEN]:
                if (marks := len(re.findall(FULL, piece))) > 1:
                    self.dropped["claim" if marks > 4 else "unknown record"] += 1

    def add_fields(self, kind: str, fields: list[str], lightrag: bool = False) -> None:
        """A tuple's fields after its tag. `lightrag`: its delimiters are LightRAG's, which has
        keywords first.
        """
        self.seen += 1
        if kind == "e":
            if len(fields) > 3 and strength_of(fields[-1]) is not None:
                fields = fields[:-1]  # a rating that nobody asked for
            if (
                len(fields) == 2
                and len(fields[1].split()) > 3
                and type_of(fields[1], self.types) == "other"
            ):
                fields = [fields[0], "", fields[1]]
            name, kind_of, *rest = [*fields, "", ""][: max(2, len(fields))]
            self.add_entity(name, kind_of, " ".join(rest))
            return
        source, target, *rest = [*fields, "", ""][: max(2, len(fields))]
        strength = strength_of(rest[-1]) if rest else None
        if strength is not None:
            rest = rest[:-1]
        keywords = ""
        ends = [part.rstrip(" \"'").endswith((".", "。")) for part in rest]
        if len(rest) == 2 and strength is None and ends[0] == ends[1] and not lightrag:
            keywords, rest = min(rest, key=len), [max(rest, key=len)]
        elif len(rest) > 1:
            first = len(rest) == 2 and (
                ends == [False, True] or (lightrag and ends != [True, False])
            )
            if len(rest[0 if first else -1]) < 200:
                keywords, rest = (rest[0], rest[1:]) if first else (rest[-1], rest[:-1])
        self.add_relation(source, target, " ".join(rest), keywords, strength)

    def add_item(self, key: str, item: dict[str, Any] | list[Any]) -> None:
        """An object or array of JSON; `key` is what it stood under."""
        if isinstance(item, list):
            self._add_array(
                key.lower(), [str(part) for part in item if not isinstance(part, dict | list)]
            )
            return
        values = {
            re.sub(r"[\s_-]", "", str(name).lower()): value
            for name, value in item.items()
            if value != ""
        }
        source, target = _first(values, _SOURCE), _first(values, _TARGET)
        if "status" in values and source:
            self.dropped["claim"] += 1
        elif source or target:
            self.seen += 1
            words = next((values[name] for name in _KEYWORDS if values.get(name)), "")
            description = _first(values, _DESCRIPTION) or _first(values, _PREDICATE)
            score = next((values[name] for name in _SCORE if name in values), None)
            self.add_relation(source, target, description, words, strength_of(score))
        elif _first(values, _NAME + _TYPE + _DESCRIPTION):
            self.seen += 1
            key = (
                "" if key.lower() in _CONTAINERS else key
            )  # {"Ada": {"type": ...}} names its items by their keys
            names = [name for name in _NAME if name != "label" or "type" in values]
            kinds = [
                kind
                for kind in _TYPE
                if str(values.get(kind, "")).lower() not in ("entity", "node", "")
            ]
            self.add_entity(
                _first(values, names) or key, _first(values, kinds), _first(values, _DESCRIPTION)
            )

    def _add_array(self, key: str, fields: list[str]) -> None:
        tag = re.fullmatch(_TAG, fields[0] if fields else "", re.IGNORECASE)
        if tag:
            self.add_fields(tag[1][0].lower(), fields[1:])
        elif len(fields) > 2:
            self.add_fields(
                "r" if key.startswith(("relation", "edge", "link", "triple")) else "e", fields
            )

    def add_entity(self, name: str, kind: str, description: str) -> None:
        name, description = self._name(name), clean(description, LONGEST_DESCRIPTION)
        if not name:
            return
        if not re.search(r"\w", description):
            self.dropped["no description"] += 1
            return
        record = EntityRecord(name, type_of(kind[:200], self.types), description)
        if self._new("entity", normalise_name(name), record.type, description) and not self.full(
            "e"
        ):
            self.entities.append(record)

    def add_relation(
        self, source: str, target: str, description: str, keywords: object, strength: float | None
    ) -> None:
        source = self._name(source)
        target = self._name(target) if source else ""
        description = clean(description, LONGEST_DESCRIPTION)
        if not source or not target:
            return
        ends = sorted((normalise_name(source), normalise_name(target)))
        if ends[0] == ends[1]:
            self.dropped["self-loop"] += 1
        elif not re.search(r"\w", description):
            self.dropped["no description"] += 1
        elif self._new("relation", *ends, description) and not self.full("r"):
            strength = 1.0 if strength is None else strength
            self.relations.append(
                RelationRecord(source, target, description, keywords_of(keywords), strength)
            )

    def _name(self, value: str) -> str:
        name = without_gloss(clean_name(value))
        low = name.casefold().strip("<>{}[]$")
        if not name:
            self.dropped["no name"] += 1
        elif len(name) > LONGEST_NAME:
            self.dropped["name too long"] += 1
        elif self._echo(low):
            self.dropped["prompt echo"] += 1
        else:
            return name
        return ""

    def _echo(self, name: str) -> bool:
        """Is this a name of the prompt's own example? One that shares a word with the text may be a
        fuller form.
        """
        if name in self.text or not (name in self.echoes or name.replace(" ", "_") in PLACEHOLDERS):
            return False
        invented = name in EXAMPLE_NAMES or name not in self.echoes
        return invented or not any(len(word) > 3 and word in self.text for word in name.split())

    def _new(self, *identity: str) -> bool:
        if identity in self.known:
            self.dropped["duplicate"] += 1
            return False
        self.known.add(identity)
        return True


_GLOSS = re.compile(r"([^()（）]{2,150}?)\s{0,4}[(（]([^()（）]{2,150})[)）]")
_SAYS_SHORT = re.compile(r"(?:以下)?[简簡][称稱]|英[文语語]名?|[，,、:：“”\"]")
_WORD, _NUMERAL = re.compile(r"[^\W\d_a-zA-Z]{2}|[^\W\d_]{3}"), re.compile(r"[IVXLC]+")


def without_gloss(name: str) -> str:
    """`World Health Organization (WHO)` and `回流（back-run）` without what repeats the name in short
    or in another script: with it the name would be another one than without, and stand nearly
    nowhere. `Mercury (planet)` stays."""
    match = _GLOSS.fullmatch(name)
    if match is None:
        return name
    head, gloss = match[1].strip(), match[2].strip()
    for short, long in ((gloss, head), (head, gloss)):
        if (
            " " in long
            and short.isupper()
            and short.isascii()
            and short.isalnum()
            and len(short) <= 10
        ):
            initials = iter(re.sub(r"\B\w|[\W_]", "", long).upper())
            if all(letter in initials for letter in short if letter.isalpha()):
                return long
    gloss = _SAYS_SHORT.sub("", gloss)
    translated = (
        _latin(head) != _latin(gloss) and _WORD.search(gloss) and not _NUMERAL.fullmatch(gloss)
    )
    return head if translated else name


def _latin(name: str) -> bool:
    return all(ord(ch) < 0x250 for ch in name if ch.isalpha())


def _first(values: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these keys with a text or number in it."""
    return next(
        (str(values[name]) for name in names if isinstance(values.get(name), str | int | float)), ""
    )
