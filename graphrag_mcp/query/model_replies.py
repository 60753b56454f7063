"""Replies of models to the questions of searches, and what agents send in a DRIFT session: what it may be, and how
it is read.

A reply of another form is refused with the reason, and the model is asked once more
(`llm/asker.py`). A score that cannot be read is none, and it is said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StringConstraints, WithJsonSchema

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
    whole = float(match[2] or 100) if match is not None else 0.0
    if isinstance(value, bool) or match is None or not whole:
        return None, f"The score {sent!r} cannot be read, so this node has none and ranks last."
    number = float(match[1])
    if not match[2] and not match[3] and 0 < number < 1:
        whole = 1.0
    number *= 100 / whole
    score = min(max(number, 0.0), 100.0)
    moved = "" if score == number else f"The score {sent!r} was moved into 0 to 100."
    return round(score, 2), moved


def read_follow_ups(value: object, most: int) -> tuple[list[str], str]:
    """At most `most` questions without repetitions, and a sentence if more were sent. `value` may be a list,
    JSON, lines of text, {query: ...}, or an object with a list under any name."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] in ("[", "{") else value.splitlines()
        except ValueError:
            value = value.splitlines()
    if isinstance(value, Mapping):
        value = next((part for part in value.values() if isinstance(part, list)), [value])
    entries = list(value) if isinstance(value, list | tuple) else []
    asked = (entry.get("query") or entry.get("question") if isinstance(entry, Mapping) else entry for entry in entries)
    sent = list(dict.fromkeys(clean_query(text) for text in asked if isinstance(text, str)))
    kept: dict[str, frozenset[str]] = {}
    for query in filter(None, sent):
        bag = words(query)
        if len(kept) < most and not any(near(bag, other) for other in kept.values()):
            kept[query] = bag
    more = len(kept) == most < len(sent)
    note = f"{len(sent)} follow-ups were sent; the first {most} are kept." if more else ""
    return list(kept), note


class Node(BaseModel):
    """A model's reply to a node of a DRIFT walk. A score that cannot be read is None."""

    answer: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        validation_alias=AliasChoices("answer", "intermediate_answer")
    )
    score: Annotated[
        float | None, BeforeValidator(lambda value: read_score(value)[0]), WithJsonSchema({"type": "integer"})
    ] = None
    follow_up_queries: Annotated[list[str], BeforeValidator(lambda value: read_follow_ups(value, FOLLOW_UPS)[0])] = []


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
