"""Replies of models to the questions of searches, and what agents send in a DRIFT session: what it may be, and how
it is read.

A reply of another form is refused with the reason, and the model is asked once more
(`llm/asker.py`). A score that cannot be read is none, and it is said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from graphrag_mcp.llm import replies
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.query.drift_state import clean_query, near, words

ANSWER_CHARACTERS = 40_000
FOLLOW_UPS = 12  # read of one reply at most
_SCORE = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:(?:/|of|out of)\s*(\d{1,4})|(%))?\s*\.?\s*")


def read_score(value: object) -> tuple[float | None, str]:
    """A score of 0 to 100, and a sentence when it is not what was sent. "85/100", "8/10", "85%" are
    understood. A fraction between 0 and 1 is a share of 100."""
    if value is None or value == "":
        return None, ""
    sent, match = str(value)[:40], _SCORE.fullmatch(str(value))
    if isinstance(value, bool) or match is None or (match[2] and int(match[2]) == 0):
        return None, f"The score {sent!r} cannot be read, so this node has none and ranks last."
    number = float(match[1])
    if match[2]:
        number *= 100 / int(match[2])
    elif 0 < number < 1 and not match[3]:
        number *= 100
    score = min(max(number, 0.0), 100.0)
    moved = "" if score == number else f"The score {sent!r} was moved into 0 to 100."
    return round(score, 2), moved


def read_follow_ups(value: object, most: int) -> tuple[list[str], str]:
    """At most `most` questions, and a sentence if more were sent. `value` may be a list, JSON,
    lines of text, {query: ...}, or an object with a list under any name."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] in ("[", "{") else value.splitlines()
        except ValueError:
            value = value.splitlines()
    if isinstance(value, Mapping):
        value = next((part for part in value.values() if isinstance(part, list)), [value])
    found: Iterable[object] = value if isinstance(value, list | tuple) else ()
    queries: dict[str, None] = {}
    for entry in found:
        if isinstance(entry, Mapping):
            entry = entry.get("query") or entry.get("question")
        if isinstance(entry, str) and (query := clean_query(entry)):
            queries[query] = None
    note = ""
    if len(queries) > most:
        note = f"{len(queries)} follow-ups were sent; the first {most} are kept."
    return list(queries)[:most], note


def _queries(value: Any) -> list[str]:
    """The questions of a list, each on a line, without those that ask nearly the same as an earlier one."""
    found: dict[str, frozenset[str]] = {}
    for text in value if isinstance(value, list) else ():
        query = clean_query(text) if isinstance(text, str) else ""
        bag = words(query)
        if query and query not in found and not any(near(bag, other) for other in found.values()):
            found[query] = bag
    return list(found)[:FOLLOW_UPS]


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Score = Annotated[
    float | None,
    BeforeValidator(lambda value: read_score(value)[0]),
    WithJsonSchema({"type": "integer"}),
]


class Node(BaseModel):
    """A model's reply to a node of a DRIFT walk. A score that cannot be read is None."""

    answer: Text = Field(validation_alias=AliasChoices("answer", "intermediate_answer"))
    score: Score = None
    follow_up_queries: Annotated[list[str], BeforeValidator(_queries)] = []


NODE_SCHEMA = replies.schema_of(Node)


def read_node(text: str) -> Node:
    """An answer with its score and follow-ups, of the primer or of a step."""
    return replies.validated(Node, text)


def read_answer(text: str) -> str:
    """Free text, without thoughts and without a fence around the whole."""
    text = replies.without_thoughts(text).strip()
    fenced = re.fullmatch(r"```(?:markdown|md|text)?[ \t]*\n(.*?)\n?```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).strip()[:ANSWER_CHARACTERS]
    if not text:
        raise BadReply("the answer is empty")
    return text
