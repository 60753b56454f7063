"""What a model says about a corpus, made fit to stand in prompts: a profile, and worked examples of extraction.

Takes replies; gives cleaned values, or raises BadReply in a few words. What a model makes of documents that nobody
has checked ends up in instructions here, so it is short, one paragraph, and holds no variable, tag or delimiter.
Knows no prompt and no file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp import loose_json
from graphrag_mcp.ask import BadReply
from graphrag_mcp.text import normalise_name, sentences

MOST_TYPES, LONGEST_TYPE = 20, 40
MOST_WORDS = 4
NO_TYPE = ("other", "none", "entity", "unknown")  # what models say instead of a type
# Characters of each text; a persona of four long sentences has some 700.
LONGEST = {
    "domain": 120, "language": 40, "persona": 900, "role": 500, "rating_criteria": 600, "claim_description": 400,
}  # fmt: skip
PROFILE_SCHEMA: dict[str, Any] = {
    "title": "corpus_profile",
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in LONGEST},
        "entity_types": {"type": "array", "items": {"type": "string"}},
    },
    "required": [*LONGEST, "entity_types"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What was found of a corpus; "" or () where nothing was, and then the default stays."""

    domain: str = ""
    language: str = ""
    persona: str = ""
    role: str = ""
    rating_criteria: str = ""
    claim_description: str = ""
    entity_types: tuple[str, ...] = ()


def read_profile(reply: str) -> Profile:
    """The profile in a reply; BadReply when it holds neither a persona nor types, which is what tuning is for."""
    try:
        found = loose_json.read(reply)
    except ValueError as error:
        raise BadReply("no JSON object") from error
    if isinstance(found, list):
        found = next((one for one in found if isinstance(one, dict)), {})
    if not isinstance(found, dict):
        raise BadReply("no JSON object")
    values = {str(name).strip().lower().replace(" ", "_"): value for name, value in found.items()}
    texts = {name: clean(_text(values.get(name)), longest) for name, longest in LONGEST.items()}
    texts["rating_criteria"] = re.sub(
        r"^(?:it is |this is )?an? (?:number|rating|score) from 0 to 10 (?:of|for) ", "", texts["rating_criteria"],
        flags=re.IGNORECASE,
    ).rstrip(" .")  # fmt: skip
    profile = Profile(**texts, entity_types=clean_types(values.get("entity_types")))
    if not profile.persona and not profile.entity_types:
        raise BadReply("neither a persona nor entity types")
    return profile


def clean(text: str, longest: int) -> str:
    """One paragraph without variables, tags, delimiters and control characters, cut at a sentence end if too long."""
    return _plain(re.sub(r"<[^<>]{0,200}>|[$`{}]", " ", text[: 10 * longest]), longest)


def _plain(text: str, longest: int) -> str:
    """The same for what stands in an example, where a dollar is written twice and `C++ {…}` may be a name."""
    text = re.sub(r"[<>|]|#{2,}", " ", text[: 10 * longest])
    text = "".join(" " if unicodedata.category(ch) in ("Cc", "Cs", "Co", "Zl", "Zp") else ch for ch in text)
    text = " ".join(text.split())
    if len(text) <= longest:
        return text
    ends = [end for _, end in sentences(text) if end <= longest]
    return text[: ends[-1]].rstrip() if ends else text[:longest].rpartition(" ")[0].rstrip() or text[:longest]


def clean_types(value: Any) -> tuple[str, ...]:
    """Entity types: lower case, 1 to MOST_WORDS words each, no two the same, at most MOST_TYPES."""
    if isinstance(value, str):
        value = re.split(r"[,;、，\n]", value)
    elif isinstance(value, Mapping):
        value = list(value)
    found: dict[str, None] = {}
    for one in value if isinstance(value, list | tuple) else ():
        words = clean(_text(one), 200).strip(" .-*\"'").casefold().replace("_", " ").split()
        kind = " ".join(words)
        if 1 <= len(words) <= MOST_WORDS and len(kind) <= LONGEST_TYPE and kind[0].isalpha() and kind not in NO_TYPE:
            found.setdefault(kind)
    return tuple(found)[:MOST_TYPES]


def _text(value: Any) -> str:
    """A value as text: models give lists of sentences, and objects with a name, where a text was asked for."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(_text(one) for one in value)
    if isinstance(value, Mapping):
        return _text(next((value[name] for name in ("name", "type", "text") if name in value), ""))
    return "" if value is None or isinstance(value, bool) else str(value)


# ---- worked examples ------------------------------------------------------------------------------

MARK, FIELD = "<|COMPLETE|>", "<|>"
LEAST_ENTITIES, LEAST_RELATIONS = 2, 1
MOST_RECORDS = 25  # of a kind; an example goes with every question, and passages have some 10
LONGEST_NAME, LONGEST_DESCRIPTION = 100, 400
LONGEST_REPLY = 100_000  # characters that are looked at
_SEPARATOR = re.compile(r"##|\n(?=[(\"'` ]{0,4}(?:entity|relationship)[\"']?[ ]?<\|>)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Example:
    """A text and what is to be found in it: fields after the tag, entities first, strong relationships first."""

    text: str
    entities: tuple[tuple[str, ...], ...]
    relations: tuple[tuple[str, ...], ...]

    def records(self) -> list[str]:
        tagged = [("entity", entity) for entity in self.entities] + [("relationship", one) for one in self.relations]
        return [f'("{tag}"{FIELD}{FIELD.join(fields)})' for tag, fields in tagged]


def read_example(reply: str, text: str, types: Sequence[str], literal: bool = True) -> Example:
    """The records of a reply that are well formed: an example that is wrong teaches every later reply to be wrong.

    Only relationships between entities of the example stay. BadReply when too little is left, or, with `literal`,
    when most names do not stand in the text (with a language for the results they may be translated).
    """
    body = loose_json.without_thoughts(reply[:LONGEST_REPLY]).partition(MARK)[0]
    lines = "\n".join(line for line in map(str.strip, body.splitlines()) if line)
    pieces = [_fields(piece) for piece in _SEPARATOR.split(lines) if FIELD in piece]
    entities: dict[str, tuple[str, ...]] = {}
    for tag, *fields in pieces:
        if tag == "entity" and len(fields) == 3:
            name, kind, description = _plain(fields[0], LONGEST_NAME), _type(fields[1], types), _said(fields[2])
            if kind and description and (key := normalise_name(name)) and len(entities) < MOST_RECORDS:
                entities.setdefault(key, (name, kind, description))
    relations: dict[frozenset[str], tuple[str, ...]] = {}
    for tag, *fields in pieces:
        if tag == "relationship" and len(fields) == 5 and (strength := _strength(fields[-1])):
            ends = [normalise_name(_plain(end, LONGEST_NAME)) for end in fields[:2]]
            said = [_said(part) for part in fields[2:-1]]
            if ends[0] != ends[1] and all(end in entities for end in ends) and all(said):
                names = [entities[end][0] for end in ends]
                relations.setdefault(frozenset(ends), (*names, *said, strength))
    if len(entities) < LEAST_ENTITIES or len(relations) < LEAST_RELATIONS:
        raise BadReply(f"{len(entities)} usable entities and {len(relations)} usable relationships")
    folded = " ".join(text.split()).casefold()
    found = sum(name.casefold() in folded for name, *_ in entities.values())
    if literal and found * 2 < len(entities):
        raise BadReply("most names do not stand in the text")
    strongest = sorted(relations.values(), key=lambda fields: -float(fields[-1]))[:MOST_RECORDS]
    return Example(text, tuple(entities.values()), tuple(strongest))


def _fields(piece: str) -> list[str]:
    """The tag in lower case and the fields of one record, without its brackets."""
    piece = piece.strip().strip("`").strip()
    if piece.startswith("("):
        piece = piece[1:].rpartition(")")[0] or piece[1:]
    tag, *fields = (field.strip().strip("\"“”").strip() for field in piece.split(FIELD))
    return [tag.lower(), *fields]


def _type(said: str, types: Sequence[str]) -> str:
    """One of `types` or `other`; any clean type where there are none; "" for no type at all."""
    cleaned = (clean_types([said]) or ("",))[0]
    if not types or not cleaned:
        return cleaned or ("other" if said.strip().lower() == "other" else "")
    return cleaned if cleaned in types else "other"


def _said(text: str) -> str:
    return _plain(text, LONGEST_DESCRIPTION)


def _strength(said: str) -> str:
    match = re.fullmatch(r"(\d{1,2}(?:\.\d{1,3})?)", said)
    return f"{float(match[1]):g}" if match and 0 < float(match[1]) <= 10 else ""
