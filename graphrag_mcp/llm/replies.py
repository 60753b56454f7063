"""JSON in the reply of a model: found amid prose, thoughts and fences, completed where the reply was
cut off, repaired where it is broken, and read by a pydantic model."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, WithJsonSchema

from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import is_cjk

Model = TypeVar("Model", bound=BaseModel)
# What is asked for where a value of another form is read as None.
NUMBER = WithJsonSchema({"type": "number"})
LONGEST_REPLY = 4_000_000  # characters: a wall against replies without end, not a usual length
# Of a reply with bounds: no prompt asks for more.
LONGEST_TEXT, LONGEST_LIST = 2_000, 100
THOUGHTS = ("<think>", "<thinking>", "<thought>", "<reasoning>")  # what models write before them
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[ \t]{0,8}\w{0,20}[ \t]{0,8}$", re.MULTILINE)
_BEGIN = re.compile(r"\{(?=\s*+(?:[\"'“}]|\w{1,40}+\s*+:))|\[(?=\s*+[\"'“{\[\]])")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
# An object begins before its first key, and ends before a comma, a bracket or the end.
_OBJECT = re.compile(r"\{(?=\s*+(?:[\"'“]\w{1,40}+[\"'”]|\w{1,40}+)\s*+:)")
_OBJECT_END = re.compile(r"\}(?=\s*+(?:[,\]]|\Z))")
_KEY = re.compile(r"[\"'“]?(\w{1,40}+)[\"'”]?(?=\s*+:)")
_TRAILING_COMMA = re.compile(r",(?=\s*+[\]}])")
# json_repair takes quadratic time and more: 0.9 s for 2,500 characters of `{a:`. So it is given one
# object at a time, and no more than this of a reply.
LONGEST_OBJECT, MOST_REPAIRED = 2_000, 20_000
_CLOSING = {"{": "}", "[": "]"}
# Control characters, halves of surrogate pairs, direction marks and other invisible signs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


class BadReply(Exception):
    """A reply that cannot be used; its text is the reason, with nothing of the reply."""


@dataclass(frozen=True, slots=True)
class JsonReply:
    """The JSON values of a reply in their order. `whole`: each was closed, so that nothing was cut
    off. `repaired`: how many objects were broken; one that could not be repaired stands as None."""

    values: tuple[Any, ...]
    whole: bool = True
    repaired: int = 0


def read(reply: str) -> JsonReply:
    """The JSON in `reply`; raises BadReply when there is none, or when it cannot be repaired.

    Of a reply that was cut off the complete elements of its lists are kept."""
    text = without_thoughts(reply[:LONGEST_REPLY].lstrip("\ufeff"))
    text = _FENCE.sub("", text).strip()
    if not text:
        raise BadReply("the reply is empty")
    values: list[Any] = []
    at, whole, repaired = 0, True, 0
    while whole and (begin := _BEGIN.search(text, at)):
        value, at = _strict(text, begin.start())
        if not at:
            text, at = text[begin.start() :], 0
            value, whole, at = _completed(text)
            if not at and not repaired:
                text, repaired = _repaired(text)
                continue
            if not at:
                raise BadReply("the JSON in the reply is broken")
        values.append(value)
    if not values:
        raise BadReply("there is no JSON in the reply")
    return JsonReply(tuple(values), whole, repaired)


def _strict(text: str, at: int = 0) -> tuple[Any, int]:
    """The value at this place and where it ends; the end is 0 when it is not JSON to the letter."""
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, 0


def _completed(text: str) -> tuple[Any, bool, int]:
    """The value of a text that was cut off, up to the last complete element of its lists, False, and
    where that ends; the end is 0 when it is something else."""
    open_: list[str] = []
    complete, closers = 0, ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in _CLOSING:
            open_.append(_CLOSING[sign])
        elif sign in "}]":
            if not open_ or open_.pop() != sign:
                return None, True, 0
            if open_ and open_[-1] == "]":
                complete, closers = token.end(), "".join(reversed(open_))
    value, end = _strict(text[:complete] + closers) if open_ and complete else (None, 0)
    return value, not end, end


def _repaired(text: str) -> tuple[str, int]:
    """The text with its broken objects repaired one by one, and how many these are; at least 1."""
    from json_repair import loads

    starts = [match.start() for match in _OBJECT.finditer(text)]
    parts, left, count = [text[: starts[0]] if starts else text], MOST_REPAIRED, 0
    for start, stop in pairwise([*starts, len(text)]):
        piece = text[start:stop]
        end = _OBJECT_END.search(piece)
        is_list = end is None and piece.rstrip().endswith("[")
        body = piece if end is None else piece[: end.end()]
        after = "" if end is None else _KEY.sub(r'"\1"', piece[end.end() :])
        parts.append(body)
        if not (is_list or _strict(body)[1] or (end is None and stop == len(text))):
            count, left = count + 1, left - len(body)
            parts[-1] = "null" if end else "null,"
            with suppress(ValueError, RecursionError):
                if len(body) <= LONGEST_OBJECT and left >= 0:
                    whole = json.dumps(loads(body, skip_json_loads=True), ensure_ascii=False)
                    parts[-1] = whole if end else f"{whole},"
        elif is_list:
            parts[-1] = _KEY.sub(r'"\1"', body) if '"' not in body else body
        parts.append(after)
    return _TRAILING_COMMA.sub("", "".join(parts)), max(count, 1)


def validated(model: type[Model], reply: str) -> Model:
    """The first object of `reply` that is one of `model`, or alone in a list. Raises BadReply with
    the first thing that is wrong; a reply that was cut off is refused as well."""
    found, reason = read(reply), ""
    if not found.whole:
        raise BadReply("the reply was cut off")
    for value in found.values:
        try:  # some models put their one object into a list
            return model.model_validate(value[0] if value and isinstance(value, list) else value)
        except ValidationError as error:
            reason = reason or fault(error)
    raise BadReply(reason or "there is no JSON object in the reply")


def fault(error: ValidationError) -> str:
    """The first fault in one line, without the value (which is the model's text)."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "the reply"
    return f"{place}: {first['msg']}"


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in the form that strict servers take: no references, every
    property required, no other property allowed."""
    whole = model.model_json_schema()
    parts = whole.pop("$defs", {})

    def plain(part: Any) -> Any:
        if isinstance(part, list):
            return [plain(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return plain(parts[part["$ref"].rpartition("/")[2]])
        kept = {name: value for name, value in part.items() if name not in ("title", "default")}
        if kept.get("type") != "object":
            return {name: plain(value) for name, value in kept.items()}
        properties = {name: plain(value) for name, value in kept["properties"].items()}
        form = {"properties": properties, "required": list(properties)}
        return {"type": "object", **form, "additionalProperties": False}

    return {"title": model.__name__, **plain(whole)}


def bounded(schema: Any, longest_text: int = LONGEST_TEXT, longest_list: int = LONGEST_LIST) -> Any:
    """The schema with a limit of characters for each text and of items for each list. A small model may
    repeat itself without end; a server that keeps to the schema then still ends the reply."""
    if isinstance(schema, list):
        return [bounded(part, longest_text, longest_list) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: bounded(part, longest_text, longest_list) for name, part in schema.items()}
    limits = {"string": {"maxLength": longest_text}, "array": {"maxItems": longest_list}}
    return parts | limits.get(str(schema.get("type")), {})


def without_thoughts(text: str) -> str:
    """The text without blocks of thinking. A block opens at the start of a line; some chat templates
    write the opening of the first one into the prompt. One that is never closed was cut off."""
    kept: list[str] = []
    at, inside = 0, False
    for tag in _THOUGHT.finditer(text):
        start, end = tag.span()
        if tag[1]:
            beside = {text[max(0, start - 1) : start], text[end : end + 1]}
            alone = not beside.isdisjoint(("", "\n"))
            if inside or (not kept and alone):
                kept, at, inside = kept or [""], end, False
        elif not inside and not text[max(at, start - 200) : start].rpartition("\n")[2].strip():
            kept.append(text[at:start])
            inside = True
    answer = "".join(kept) + ("" if inside else text[at:])
    return answer if answer == text else answer.lstrip()


def storable(text: str) -> str:
    """Halves of characters replaced, as a reply cut inside one has them: nothing can store them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(value: str, longest: int) -> str:
    """The text in one line of at most `longest` characters, without invisible signs."""
    return " ".join(_INVISIBLE.sub("", value[: 4 * longest]).split())[:longest].rstrip()


def words(text: str) -> int:
    """Words of a text, two CJK characters as one."""
    dense = sum(is_cjk(ch) for ch in text if ch > "\u10ff")
    return dense // 2 + len(text.split())


def cut(text: str, limit: int) -> str:
    """The text up to the last sentence end within `limit` characters, with the reference after it."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    ends = [end for _, end in sentences(head)][:-1]
    end = ends[-1] if ends and ends[-1] > limit // 3 else max(head.rfind(" "), limit // 2)
    after = re.compile(r"\s*[\[【［][^\[\]【】［］]{0,400}[\]】］]").match(text, end)
    return text[: after.end() if after else end].rstrip()
