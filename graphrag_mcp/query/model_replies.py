"""Replies of models to the questions of searches: their schemas, and how each is read.

A reply of another form is refused with the reason, and the model is asked once more
(`llm/asker.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic.dataclasses import dataclass

from graphrag_mcp.llm import replies
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.query.drift_state import clean_query, near, read_score, words

ANSWER_CHARACTERS = 40_000
POINTS, FOLLOW_UPS = 60, 12  # read of one reply at most


def _object_schema(title: str, **properties: Any) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT, _SCORE = {"type": "string"}, {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_ONE_POINT = _object_schema("point", description=_TEXT, score=_SCORE)
POINTS_SCHEMA = _object_schema("points", points={"type": "array", "items": _ONE_POINT})
RATING_SCHEMA = _object_schema("rating", reason=_TEXT, rating=_SCORE)
KEYWORDS_SCHEMA = _object_schema("keywords", high_level=_TEXTS, low_level=_TEXTS)
PRIMER_SCHEMA = _object_schema(
    "primer", intermediate_answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS
)
_STEP = {"answer": _TEXT, "score": _SCORE, "follow_up_queries": _TEXTS}
STEP_SCHEMA = _object_schema("step", **_STEP)
_ONE_STEP = _object_schema("step", question=_SCORE, **_STEP)
STEPS_SCHEMA = _object_schema("steps", answers={"type": "array", "items": _ONE_STEP})


def distinct(queries: Iterable[str]) -> tuple[str, ...]:
    """The questions, each on a line, without questions that ask nearly the same as an earlier
    question."""
    found: dict[str, frozenset[str]] = {}
    for query in filter(None, map(clean_query, queries)):
        bag = words(query)
        if query not in found and not any(near(bag, other) for other in found.values()):
            found[query] = bag
    return tuple(found)


def _texts(value: Any) -> Any:
    """The texts of a list, without those that are empty or no text."""
    if isinstance(value, list):
        return [text for text in value if isinstance(text, str) and text.strip()]
    return value


def _queries(value: Any) -> tuple[str, ...]:
    return distinct(_texts(value))[:FOLLOW_UPS] if isinstance(value, list) else ()


Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Score = Annotated[float | None, BeforeValidator(lambda value: read_score(value)[0])]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Queries = Annotated[tuple[str, ...], BeforeValidator(_queries)]


@dataclass(frozen=True)
class Point:
    """One statement of a map step and how much it helps with the question, 0 to 100."""

    description: Said
    score: Score = None


@dataclass(frozen=True)
class Node:
    """A model's reply to a node of a DRIFT walk. A score that cannot be read is None."""

    answer: Said = Field(validation_alias=AliasChoices("answer", "intermediate_answer"))
    score: Score = None
    follow_ups: Queries = Field(default=(), validation_alias="follow_up_queries")


@dataclass(frozen=True)
class Keywords:
    high_level: Texts
    low_level: Texts


Kind = TypeVar("Kind", Point, Node, Keywords)


def _read(kind: type[Kind], value: Any) -> Kind:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise BadReply(replies.fault(error)) from error


def _each(kind: type[Kind], listed: Iterable[Any]) -> Iterable[Kind | None]:
    for entry in listed:
        try:
            yield _read(kind, entry)
        except BadReply:
            yield None


def _json(text: str) -> Any:
    """The first object of a reply, else its first list."""
    values = replies.read(text).values
    return next((value for value in values if isinstance(value, dict)), values[0])


def _listed(text: str, name: str) -> list[Any]:
    """The list under a name, or alone."""
    reply = _json(text)
    listed = reply.get(name) if isinstance(reply, dict) else reply
    if not isinstance(listed, list):
        raise BadReply(f"there is no list of {name}")
    return listed


def read_answer(text: str) -> str:
    """Free text, without thoughts and without a fence around the whole."""
    text = replies.without_thoughts(text).strip()
    fenced = re.fullmatch(r"```(?:markdown|md|text)?[ \t]*\n(.*?)\n?```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).strip()[:ANSWER_CHARACTERS]
    if not text:
        raise BadReply("the answer is empty")
    return text


def read_points(text: str) -> tuple[Point, ...]:
    """The points that help at all, in their order. A point without a score is kept and ranked last."""
    points = _each(Point, _listed(text, "points")[:POINTS])
    scored = ((point, 1.0 if point.score is None else point.score) for point in points if point)
    return tuple(Point(point.description, score) for point, score in scored if score)


def read_rating(text: str) -> int:
    """A whole number of 0 to 5."""
    reply: Any = replies.without_thoughts(text)
    if "{" in reply:
        reply = _json(text)
    value = reply.get("rating") if isinstance(reply, dict) else reply
    match = re.fullmatch(r"(\d{1,3})(?:\.\d+)?(?:\s*/\s*5)?", str(value).strip())
    if match is None:
        raise BadReply("there is no rating of 0 to 5")
    return min(int(match[1]), 5)


def read_keywords(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(high-level themes, low-level names)."""
    found = _read(Keywords, _json(text))
    if not found.high_level and not found.low_level:
        raise BadReply("there are no keywords")
    return tuple(found.high_level), tuple(found.low_level)


def read_node(text: str) -> Node:
    """An answer with its score and follow-ups, of the primer or of a step."""
    return _read(Node, _json(text))


def read_nodes(text: str, count: int) -> tuple[Node | None, ...]:
    """The replies to `count` numbered questions, in their order; None for a missing reply."""
    listed = [answer for answer in _listed(text, "answers") if isinstance(answer, dict)]
    numbers = [str(answer.get("question", place)) for place, answer in enumerate(listed, 1)]
    found = dict(zip(numbers, _each(Node, listed), strict=True))
    nodes = tuple(found.get(str(number)) for number in range(1, count + 1))
    if not any(nodes):
        raise BadReply("there is no answer to any of the questions")
    return nodes
