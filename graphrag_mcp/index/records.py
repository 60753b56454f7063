"""Entity and relationship records from a model's reply: the tuples of the prompt, with any of its
usual delimiters and brackets, or JSON (whole, cut off, in fences, amid prose)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from graphrag_mcp.index.losses import Losses, listed
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import BadReply
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
    plain, marked = replies.plain_reply(reply)
    first, json = _STRICT.search(plain), replies.json_start(plain)
    closed = empty = False
    if 0 <= json and (first is None or json < first.start()):
        values, closed, mended = replies.json_values(plain)
        for one in islice(chain.from_iterable(_in_json("", one) for one in values), MOST_SEEN):
            found.add(one)
        found.repaired["broken JSON"] += min(mended, found.seen)
        empty = closed and _SAYS_NONE.match(plain) is not None and not found.seen
        closed = closed and (found.seen > 0 or empty)
    if not found.seen:
        for one in islice(_in_tuples(replies.unescaped(plain), marked), MOST_SEEN):
            found.add(one)
    if not found.entities and not found.relations:
        _reject(plain, found, marked or empty, said)
    return Records(
        tuple(found.entities),
        tuple(found.relations),
        marked or closed,
        dict(found.dropped),
        dict(+found.repaired),
        tuple(found.lost),
    )


_SAYS_NONE = re.compile(
    r"\{\s{0,9}\}|\[\s{0,9}\]|\{\s{0,99}\"(?:entit|node|relation|edge)\w{0,20}\"", re.IGNORECASE
)


def _reject(plain: str, found: _Found, complete: bool, said: int) -> None:
    """Raises BadReply, unless the reply says properly that there is nothing."""
    start = plain[:2000].lstrip().lower()
    if found.dropped:
        named = found.lost if found.strict else ()
        raise BadReply(f"{NOTHING_USABLE}: {listed(found.dropped, named)}")
    if start.startswith(("<!doctype", "<html", "<head", "<?xml")):
        raise BadReply("an HTML page")
    if not complete:
        raise BadReply("no records" if start else "empty reply")
    if start and start[0] not in "{[" and len(start) > said:
        raise BadReply("prose instead of records")


@dataclass(frozen=True, slots=True)
class _Raw:
    """One record as the reply has it. `kind`: "e" (`names` is one), "r" (`names` are two), or a
    reason to drop it. `fields`: what follows the names, where places say what it is."""

    kind: str
    names: tuple[str, ...] = ()
    type: str = ""
    description: str = ""
    keywords: object = ""
    strength: object = None
    fields: tuple[str, ...] | None = None
    lightrag: bool = False  # by its delimiters; there the keywords stand before the description


# ---- tuples -------------------------------------------------------------------------------------
# A record starts with its tag (entity, relationship) behind an opening bracket, at the start of a
# line or behind the record mark.

ENOUGH = 3  # fields: name, type, description; or source, target, description
MOST_ENDS = 8  # brackets and line ends at which a record might end
_OPENING, _CLOSING = "(（[［{｛【", ")）]］}｝】"
_QUOTES = r"[\"'“”‘’`*＂「『」』\\]{0,4}"
_TAG = rf"{_QUOTES}(?P<tag>entity|entities|relationships?|relations?){_QUOTES}[ \t]{{0,4}}"
# Before a record that starts a line: the marks of lists, quotations, emphasis and tables.
_LIST = r"[ \t>]{0,8}(?:[-*•+–]{1,3}[ \t]|[(（]?\d{1,4}[.)）、:：])?[ \t*]{0,4}[|｜]?[ \t]{0,4}"
_OPEN = rf"[{re.escape(_OPENING)}]"
_BETWEEN = "(?<![<＜])(?:##|＃＃)(?![>＞])"  # the mark between records, which is no delimiter
_PLACE = rf"(?:(?:^|{_BETWEEN}){_LIST}(?:(?P<open>{_OPEN})\s{{0,9}})?|(?P<within>{_OPEN})\s{{0,9}})"
_STRICT = re.compile(rf"{_PLACE}{_TAG}(?={replies.HALF})", re.IGNORECASE | re.MULTILINE)
_PLAIN = re.compile(rf"{_PLACE}{_TAG}(?=[|｜\t])", re.IGNORECASE | re.MULTILINE)
_DELIMITERS = tuple(map(re.compile, (replies.FULL, replies.HALF, r"[|｜]", r"\t")))
_CLOSE = re.compile(rf"[{re.escape(_CLOSING)}](?=[ \t*`\"'.,;。，；、]{{0,8}}(?:\n|##|＃＃|\Z))")
_BRACKET = re.compile(rf"[{re.escape(_OPENING + _CLOSING)}]")
_LINE_END = re.compile(r"\n")
_TAIL = " \t\r\n\"'“`#＃*•–>-"  # what stands before the next record


def _in_tuples(plain: str, complete: bool) -> Iterator[_Raw]:
    """`complete`: it had an end mark, so that a last record without a bracket is whole."""
    starts = list(_STRICT.finditer(plain)) or list(_PLAIN.finditer(plain))
    for place, start in enumerate(starts, 1):
        last = place == len(starts)
        end = len(plain) if last else starts[place].start()
        opened = bool(start["open"] or start["within"])
        segment = plain[start.end() : end].rstrip(_TAIL)
        fields, closed = _fields(segment, start["tag"][0].lower(), opened)
        if last and opened and not closed and not complete:
            yield _Raw(CUT_OFF)
        else:
            yield _of_fields(start["tag"], fields, "<|#|>" in segment)


def _fields(segment: str, kind: str, opened: bool) -> tuple[list[str], bool]:
    """Fields of the record that `segment` begins with, and whether its end was seen.

    A description may hold brackets and line breaks. Of the places where the record might end, the
    first counts that leaves all fields and no bracket open; else the first that leaves enough."""
    best: list[str] = []
    depth = at = 0
    for match in islice((_CLOSE if opened else _LINE_END).finditer(segment), MOST_ENDS):
        brackets = _BRACKET.findall(segment, at, match.start())
        depth += sum(1 if sign in _OPENING else -1 for sign in brackets)
        at = match.start()
        fields = _split(segment[:at])
        if len(fields) >= ENOUGH and (not best or (not depth and _is_whole(kind, fields))):
            best = fields
            if not depth and _is_whole(kind, fields):
                break
    if best:
        return best, True
    closed = opened and segment.endswith(tuple(_CLOSING))
    return _split(segment[:-1] if closed else segment), closed


def _split(body: str) -> list[str]:
    """The fields, by the kind of delimiter behind the tag: others are part of the text."""
    body = body.strip(" ")
    mark = next((mark for mark in _DELIMITERS if mark.match(body)), _DELIMITERS[0])
    fields = mark.split(body)[1:]
    if len(fields) > ENOUGH and not fields[-1].strip():
        fields = fields[:-1]  # the bar that closes a table's row
    return fields


def _is_whole(kind: str, fields: Sequence[str]) -> bool:
    """All fields: name, type, description; or two names, what relates them, strength."""
    if not all(field.strip() for field in fields[:ENOUGH]):
        return False
    return kind == "e" or (len(fields) > ENOUGH and strength_of(fields[-1]) is not None)


def _of_fields(tag: str, fields: Sequence[str], lightrag: bool = False) -> _Raw:
    kind = tag[0].lower()
    names = 1 if kind == "e" else 2
    padded = (*fields, "", "")[: max(names, len(fields))]
    return _Raw(kind, padded[:names], fields=padded[names:], lightrag=lightrag)


# ---- JSON ---------------------------------------------------------------------------------------

# What models call the same thing, lower case without `_`, `-` and blanks; the first that is there
# counts.
_NAME = "name entityname title entity nodename node id label".split()
_TYPE = "entitytype type category kind class label".split()
_DESCRIPTION = (
    "description desc entitydescription relationshipdescription summary details explanation text"
).split()
_SOURCE = "source src sourceentity sourcename sourceid from head subject".split()
_TARGET = "target tgt targetentity targetname targetid to tail object".split()
_KEYWORDS = "keywords keyword relationshipkeywords tags relation relationship predicate type label"
_STRENGTH = "strength relationshipstrength weight score importance".split()
_OF_ENTITIES, _OF_RELATIONS = ("entit", "node"), ("relation", "edge", "link", "triple")
_CONTAINERS = ("items", "data", "records", "result", "output", "graph")
DEEPEST = 32


def _in_json(
    key: str, value: Any, owner: str = "", listed: bool = False, depth: int = 0
) -> Iterator[_Raw]:
    """The records of a value under `key`. `owner`: the entity within whose object it stands;
    `listed`: it is an element of an array."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        words = [str(one) for one in value if not isinstance(one, dict | list)]
        tag = words[0].lower() if words else ""
        if tag.startswith(("entit", "relation")) and len(words) == len(value):
            yield _of_fields(tag, words[1:])
        elif listed and len(words) == len(value) >= ENOUGH:
            yield _of_fields("r" if _bare(key).startswith(_OF_RELATIONS) else "e", words)
        else:
            for one in value:
                yield from _in_json(key, one, owner, True, depth + 1)
    elif isinstance(value, dict):
        values = {_bare(str(name)): one for name, one in value.items() if one not in ("", None)}
        inner = {name: one for name, one in values.items() if isinstance(one, dict | list)}
        # {"Ada": {"type": ...}} names its objects by their keys
        record = _of_object(key, values, owner, "" if listed or _is_container(key) else key)
        if record is not None:
            inner = {name: one for name, one in inner.items() if _is_container(name)}
            # A title and a summary beside the entities are those of the whole graph.
            if not inner or (listed and all(name.startswith(_OF_RELATIONS) for name in inner)):
                yield record
                owner = record.names[0] if record.kind == "e" else ""
        for name, one in value.items():
            if _bare(str(name)) in inner:
                yield from _in_json(str(name), one, owner, False, depth + 1)


def _of_object(key: str, values: Mapping[str, Any], owner: str, called: str) -> _Raw | None:
    """The object as a record, or None; `called`: its name where it says none."""
    source, target = _text(values, _SOURCE), _text(values, _TARGET)
    name = _text(values, [one for one in _NAME if one != "label" or "type" in values])
    description = _text(values, _DESCRIPTION)
    of_entities = _bare(key).startswith(_OF_ENTITIES)
    if name and description and (of_entities or not (source and target or owner)):
        source = target = ""  # of an entity: where it was read, when an event began and ended
    if source or target:
        if "status" in values:
            return _Raw("claim")
        keywords = next((values[one] for one in _KEYWORDS.split() if values.get(one)), "")
        strength = next((values[one] for one in _STRENGTH if one in values), None)
        return _Raw("r", (source or owner, target), "", description, keywords, strength)
    kind = _text(values, _TYPE)
    return _Raw("e", (name or called,), kind, description) if name or kind or description else None


def _is_container(key: str) -> bool:
    return _bare(key).startswith(_OF_ENTITIES + _OF_RELATIONS + _CONTAINERS)


def _bare(key: str) -> str:
    return re.sub(r"[\s_-]", "", key.lower())


def _text(values: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these keys with something to read in it: a text, a number, an object's name."""
    for name in names:
        value = values.get(name)
        if isinstance(value, dict):
            value = next((value[one] for one in ("name", "title", "id") if one in value), "")
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


# ---- values -------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"[^\w-]{0,4}(?:strength|weight|score)?[^\w-]{0,4}(-?\d{1,9}(?:[.,]\d{1,9})?) ?"
    r"(/ ?(?:5|10|100)|%)?(?: ?points?)?\W{0,4}",
    re.IGNORECASE,
)
_IN_WORDS = {"very high": 9.0, "high": 8.0, "strong": 8.0, "medium": 5.0, "low": 2.0, "weak": 2.0}
_IN_WORDS |= {"高": 8.0, "中": 5.0, "低": 2.0}


def strength_of(value: object) -> float | None:
    """0 to 10, None for no strength. Below 0 counts as 1, the least of the prompt."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    said = unicodedata.normalize("NFKC", str(value)[:60]).strip()
    match = _NUMBER.fullmatch(said)
    if match is None:
        return _IN_WORDS.get(said.strip(" .\"'()").lower())
    number = float(match[1].replace(",", "."))
    scale = {"": 10, "%": 100}.get(match[2] or "") or int(match[2].strip("/ "))
    return 1.0 if number < 0 else min(10.0, number * 10 / scale)


def keywords_of(value: object) -> tuple[str, ...]:
    """At most 12, in order, each once."""
    if not isinstance(value, list):
        text = str(value or "")[:2000].strip()
        value = re.split(r"[,，、;；\n|]+", text[1:-1] if text[:1] in ("(", "[", "（") else text)
    words = (replies.clean(str(part), 60).strip(" .\"'") for part in value[:50])
    return tuple({word.casefold(): word for word in words if word}.values())[:12]


@lru_cache(maxsize=4096)
def type_of(value: str, types: tuple[str, ...]) -> str:
    """One of `types` in lower case, or "other"; with no `types` the model's own word."""
    word = replies.clean(value, LONGEST_TYPE).strip(" .()[]<>#*").lower()
    if not types:
        return word if re.search(r"\w", word) else "other"
    known = {_folded_type(name): name.strip().lower() for name in reversed(types)}
    parts = (word, *re.split(r"[/,|;、]| or ", word))
    return next((known[one] for one in map(_folded_type, parts) if one in known), "other")


def _folded_type(word: str) -> str:
    word = " ".join(re.split(r"[\s_-]+", word.casefold().strip())).replace("isation", "ization")
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


# ---- records ------------------------------------------------------------------------------------


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

    def add(self, raw: _Raw) -> None:
        self.seen += raw.kind != "claim"
        if raw.kind not in ("e", "r"):
            self._drop(raw.kind)
        elif raw.kind == "e" and len(self.entities) < MOST_ENTITIES:
            kind, description = raw.type, raw.description
            if raw.fields is not None:
                kind, description = self._entity_fields(raw.fields)
            self._add_entity(raw.names[0], kind, description)
        elif raw.kind == "r" and len(self.relations) < MOST_RELATIONS:
            rest = (raw.description, raw.keywords, raw.strength)
            if raw.fields is not None:
                rest = self._relation_fields(raw.fields, raw.lightrag)
            self._add_relation(*raw.names, *rest)
        else:
            self._drop("too many")

    def _entity_fields(self, fields: Sequence[str]) -> tuple[str, str]:
        """Type and description."""
        if len(fields) > 2 and strength_of(fields[-1]) is not None:
            fields = fields[:-1]  # a rating that no one asked for
        if len(fields) == 1 and len(fields[0].split()) > 3:
            self.repaired["no type"] += 1
            return "", fields[0]
        self.repaired["too many fields"] += len(fields) > 2
        return (fields[0] if fields else ""), " ".join(fields[1:])

    def _relation_fields(self, fields: Sequence[str], lightrag: bool) -> tuple[str, str, object]:
        """Description, keywords and strength."""
        rest, strength = list(fields), None
        if rest and (strength_of(rest[-1]) is not None or len(rest) > 2):
            strength = rest.pop()
        if strength is not None and strength_of(strength) is None and len(strength.split()) > 2:
            rest, strength = [*rest, strength], None
        self.repaired["too many fields"] += len(rest) > 2
        if len(rest) < 2:
            return "".join(rest), "", strength
        # Of two the one that ends as a sentence does is the description, whatever the order.
        ended = [part.rstrip(" \"'").endswith((".", "。")) for part in (rest[0], rest[-1])]
        keywords_first = ended[1] if ended[0] != ended[1] and len(rest) == 2 else lightrag
        keywords = rest.pop(0 if keywords_first else -1)
        return " ".join(rest), keywords, strength

    def _add_entity(self, name: str, kind: str, description: str) -> None:
        called = f"entity {_quoted(name)}"
        name = self._name(name, called)
        description = replies.clean(description, LONGEST_DESCRIPTION)
        if not name:
            return
        record = EntityRecord(name, type_of(kind[:200], self.types), description)
        if not re.search(r"\w", description):
            self._drop("no description", called)
        elif self._is_new("entity", normalise_name(name), record.type, description):
            self.entities.append(record)

    def _add_relation(
        self, source: str, target: str, description: str, keywords: object, said: object
    ) -> None:
        """`said`: the strength as it was said."""
        called = f"relationship {_quoted(source)} - {_quoted(target)}"
        source = self._name(source, called)
        target = self._name(target, called) if source else ""
        description = replies.clean(description, LONGEST_DESCRIPTION)
        if not source or not target:
            return
        ends = sorted((normalise_name(source), normalise_name(target)))
        strength = strength_of(said)
        vague = said not in (None, "") and (strength is None or (self.strict and _is_beyond(said)))
        if ends[0] == ends[1]:
            self._drop("self-loop", called)
        elif not re.search(r"\w", description):
            self._drop("no description", called)
        elif vague and self.strict:
            self._drop("strength is no number from 1 to 10", f"{called}: {_quoted(str(said))}")
        elif self._is_new("relation", *ends, description):
            if strength is None:
                self.repaired["strength is no number" if vague else "no strength"] += 1
                strength = 1.0
            words = keywords_of(keywords)
            self.relations.append(RelationRecord(source, target, description, words, strength))

    def _name(self, value: str, called: str) -> str:
        name = replies.without_gloss(replies.clean_name(value))
        if not name:
            self._drop("no name", called)
        elif len(name) > LONGEST_NAME:
            self._drop("name too long", called)
        elif self._is_echo(name.casefold().strip("<>{}[]$")):
            self._drop("prompt echo", called)
        else:
            return name
        return ""

    def _is_echo(self, name: str) -> bool:
        """Is it a name of the prompt's example? With a word of the text it may be a fuller form."""
        if name in self.text or not (name in self.echoes or name.replace(" ", "_") in PLACEHOLDERS):
            return False
        invented = name in EXAMPLE_NAMES or name not in self.echoes
        return invented or not any(len(word) > 3 and word in self.text for word in name.split())

    def _is_new(self, *identity: str) -> bool:
        if identity in self.known:
            self._drop("duplicate")
            return False
        self.known.add(identity)
        return True

    def _drop(self, reason: str, record: str = "") -> None:
        self.dropped[reason] += 1
        if record and len(self.lost) < MOST_LOST:
            self.lost.append((reason, record))


def _quoted(name: str) -> str:
    return f'"{replies.clean(name, 60)}"'


def _is_beyond(said: object) -> bool:
    """Is it a plain number that is no strength?"""
    try:
        return not 0 <= float(said) <= 10  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
