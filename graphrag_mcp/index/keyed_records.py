"""Records with named fields in a model's reply: JSON objects, and tables with a header. What an
object is for is told from its own keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DEEPEST = 32

# What models call the same thing, lower case without `_`, `-` and blanks; the first that is there
# counts.
_NAME = "name entityname title entity nodename node id label".split()
_TYPE = "entitytype type category kind class label".split()
_DESCRIPTION = (
    "description desc entitydescription relationshipdescription relationdescription summary details explanation text"
).split()
_SOURCE = "source src sourceentity sourcename sourceid sourcenode srcid from head subject entity1 start".split()
_TARGET = "target tgt dst targetentity targetname targetid targetnode tgtid to tail object entity2 end".split()
_KEYWORDS = (
    "keywords keyword relationshipkeywords tags relation relationship predicate type label".split()
)
_PREDICATE = "relation relationship predicate type label".split()
_SCORE = "strength relationshipstrength weight score importance".split()
_CONTAINERS = frozenset("items data records results result output graph".split())
_OF_ENTITIES, _OF_RELATIONS = ("entit", "node"), ("relation", "edge", "link", "triple")
_RULE = re.compile(
    r"[ \t>]{0,9}\|?(?:[ \t]{0,9}:?-{2,99}:?[ \t]{0,9}\|){1,12}(?:[ \t]{0,9}:?-{2,99}:?[ \t]{0,9})?"
)
_TAG = re.compile(r"\W{0,4}(entity|entities|relationships?|relations?)\W{0,4}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Found:
    """One record. `kind`: "e" (`names` is one), "r" (`names` are two) or "claim". `fields` instead
    of all others: an array, whose places say what its values are. `strength` None: none was
    said."""

    kind: str
    names: tuple[str, ...] = ()
    type: str = ""
    description: str = ""
    keywords: object = ""
    strength: object = None
    fields: tuple[str, ...] = ()


def records_in(
    key: str, value: Any, owner: str = "", depth: int = 0, listed: bool = False, parent: str = ""
) -> Iterator[Found]:
    """The records of a value under `key`, which stands in an object under `parent`. `owner`: the
    entity within whose object it stands; `listed`: it is an element of an array."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        if _is_array_of_fields(value, listed):
            yield from _of_array(key, value)
            return
        for one in value:
            yield from records_in(key, one, owner, depth + 1, True)
            if isinstance(one, str) and _is_container(key):  # a bare name among records
                yield _nothing(key, one)
    elif isinstance(value, dict):
        inner = [(str(name), one) for name, one in value.items() if isinstance(one, dict | list)]
        # {"Ada": {"type": ...}} names its objects by their keys
        name = key
        if listed or (_is_container(key) and not _bare(parent).startswith(_OF_ENTITIES)):
            name = ""
        found = _of_object(key, value, owner, name)
        if found is not None:
            inner = [(name, one) for name, one in inner if _is_container(name)]
            # A title and a summary beside the entities are those of the whole graph.
            if not inner or (
                depth and all(_bare(name).startswith(_OF_RELATIONS) for name, _ in inner)
            ):
                yield found
                owner = found.names[0] if found.kind == "e" else ""
        elif listed and not inner and _is_container(key):
            yield _nothing(key, "")
        for name, one in inner:
            yield from records_in(name, one, owner, depth + 1, parent=key)


def _nothing(key: str, name: str) -> Found:
    """What stands where a record should and is none."""
    return Found("r", (name, "")) if _bare(key).startswith(_OF_RELATIONS) else Found("e", (name,))


def _of_object(key: str, item: Mapping[str, Any], owner: str, called: str) -> Found | None:
    """The object as a record; None where it only holds others. `called`: its name where it says
    none."""
    values = {_bare(str(name)): one for name, one in item.items() if one != ""}
    source, target = _text(values, _SOURCE), _text(values, _TARGET)
    name = _text(values, [one for one in _NAME if one != "label" or "type" in values])
    description = _text(values, _DESCRIPTION)
    if (
        name
        and description
        and (_bare(key).startswith(_OF_ENTITIES) or not (source and target or owner))
    ):
        source = target = ""  # of an entity: where it was read, when an event began and ended
    if source or target:
        if "status" in values:
            return Found("claim")
        keywords = next((values[one] for one in _KEYWORDS if values.get(one)), "")
        score = next((values[one] for one in _SCORE if one in values), None)
        description = description or _text(values, _PREDICATE)
        return Found("r", (source or owner, target), "", description, keywords, score)
    kinds = [one for one in _TYPE if str(values.get(one, "")).lower() not in ("entity", "node", "")]
    kind = _text(values, kinds, ", ")
    return Found("e", (name or called,), kind, description) if name or kind or description else None


def records_of_tables(plain: str) -> Iterator[Found]:
    """The rows of Markdown tables whose columns have names. Rows that begin with a tag are tuples."""
    lines = plain.split("\n")
    header: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        if _RULE.fullmatch(line):
            header = [_bare(cell).strip("*`") for cell in _cells(before)]
        elif "|" not in line:
            header = []
        elif header and not _TAG.fullmatch((cells := _cells(line))[0]):
            item = dict(
                zip(
                    header,
                    [*cells[: len(header) - 1], " ".join(cells[len(header) - 1 :])],
                    strict=False,
                )
            )
            if (found := _of_object("", item, "", "")) is not None:
                yield found


def _cells(row: str) -> list[str]:
    return [
        cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))
    ]


def _is_array_of_fields(value: list[Any], listed: bool) -> bool:
    """`["entity", "Ada", "person", "..."]`, or without the tag within an array of such."""
    if not value or not isinstance(value[0], str):
        return False
    plain = all(
        not isinstance(one, dict | list) or (isinstance(one, list) and _is_plain(one))
        for one in value
    )
    return plain and (listed or _TAG.fullmatch(value[0]) is not None)


def _is_plain(value: list[Any]) -> bool:
    return not any(isinstance(one, dict | list) for one in value)


def _of_array(key: str, value: list[Any]) -> Iterator[Found]:
    fields = [
        ", ".join(map(str, one)) if isinstance(one, list) else str(one)
        for one in value
        if one is not None
    ]
    if tag := _TAG.fullmatch(fields[0]):
        yield Found(tag[1][0].lower(), fields=tuple(fields[1:]))
    elif len(fields) > 2:
        yield Found("r" if _bare(key).startswith(_OF_RELATIONS) else "e", fields=tuple(fields))


def _is_container(key: str) -> bool:
    word = _bare(key)
    return word in _CONTAINERS or word.startswith(_OF_ENTITIES + _OF_RELATIONS)


def _bare(key: str) -> str:
    return re.sub(r"[\s_-]", "", key.lower())


def _text(values: Mapping[str, Any], names: Sequence[str], between: str = " ") -> str:
    """The first of these keys with something to read in it: a text, a number, a list of texts, an
    object's name."""
    for name in names:
        value = values.get(name)
        if isinstance(value, dict):
            value = _text(
                {_bare(str(key)): one for key, one in value.items()}, ("name", "title", "id")
            )
        elif isinstance(value, list) and _is_plain(value):
            value = between.join(str(one) for one in value if one is not None)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""
