"""Replies of models to the questions of searches: what they may be, and how each is read.

A reply of another form is refused with the reason, and the model is asked once more
(`llm/asker.py`)."""

from __future__ import annotations

import re
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
from graphrag_mcp.query.drift_state import clean_query, near, read_score, words

ANSWER_CHARACTERS = 40_000
FOLLOW_UPS = 12  # read of one reply at most


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
