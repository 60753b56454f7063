"""The arguments that the tools share: types that forgive, with schemas that stay flat.

Takes what models really send (numbers as strings, one string for a list, null for "not given", other names
for the same thing) and gives plain Python values. Schemas have no anyOf, oneOf, allOf or $ref, because hosts
reject them. Knows no tool; bounds are not here but in the tools, which clamp and say so.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema

FALSE_WORDS = {"false": False, "no": False, "0": False, "": False, "true": True, "yes": True, "1": True}


def as_text(value: Any) -> Any:
    """null is "", a number is its digits; anything else is left to the validator."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def as_int(default: int) -> Any:
    """A converter: null and "" are the default, "1,200" and 1200.7 are numbers."""

    def convert(value: Any) -> Any:
        if value is None or value == "":
            return default
        if isinstance(value, str):
            try:
                value = float(value.replace(",", "").replace("_", "").strip())
            except ValueError:
                return value
        if isinstance(value, float) and math.isfinite(value):
            return int(value)
        return 10**9 if isinstance(value, float) and value == math.inf else value

    return convert


def as_flag(value: Any) -> Any:
    if value is None:
        return False
    return FALSE_WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def as_list(value: Any) -> Any:
    """null is [], a JSON list in a string is that list, a single value is a list of one."""
    if value is None or value == "":
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
        return parsed if isinstance(parsed, list) else [value]
    return value if isinstance(value, list) else [value]


def as_strings(value: Any) -> Any:
    listed = as_list(value)
    return [as_text(item) for item in listed if item is not None] if isinstance(listed, list) else listed


def as_turns(value: Any) -> Any:
    """Turns as `role: content`, whether they come as strings or as messages."""
    listed = as_list(value)
    return [_turn(item) for item in listed if item is not None] if isinstance(listed, list) else listed


def _turn(item: Any) -> Any:
    if not isinstance(item, dict):
        return as_text(item)
    content = item.get("content", item.get("text", item.get("query", "")))
    if isinstance(content, list):  # parts of a message
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return f"{item.get('role', 'user')}: {content}"


def as_word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def names(*choices: str) -> AliasChoices:
    return AliasChoices(*choices)


Text = Annotated[str, BeforeValidator(as_text)]
Flag = Annotated[bool, BeforeValidator(as_flag)]
Strings = Annotated[list[str], BeforeValidator(as_strings)]

Query = Annotated[Text, Field(
    description="Question or names, any language",
    validation_alias=names("query", "q", "question", "text", "search", "prompt", "input"),
)]
_CORPUS = names("corpus", "index", "collection", "corpus_name", "index_name", "workspace")
Corpus = Annotated[Text, Field(
    description="Empty: this project's", validation_alias=_CORPUS,
)]
Corpora = Annotated[Text, Field(
    description="Empty: this project's; or a,b or *", validation_alias=_CORPUS,
)]
_BUDGET = names("max_tokens", "budget", "token_budget", "maxTokens", "max_token", "tokens")
Budget6000 = Annotated[int, BeforeValidator(as_int(6000)), Field(validation_alias=_BUDGET)]
Budget4000 = Annotated[int, BeforeValidator(as_int(4000)), Field(validation_alias=_BUDGET)]
Budget3000 = Annotated[int, BeforeValidator(as_int(3000)), Field(validation_alias=_BUDGET)]
Format = Annotated[Literal["concise", "detailed"], BeforeValidator(lambda value: as_word(value) or "concise"), Field(
    description="detailed: all columns",
    validation_alias=names("response_format", "format", "detail"),
)]
Cursor = Annotated[Text, Field(
    description="next_cursor",
    validation_alias=names("cursor", "next_cursor", "page", "page_token"),
)]
Answer = Annotated[Flag, Field(
    description="Let the server's model answer", validation_alias=names("answer", "generate_answer"),
)]
ResponseType = Annotated[Text, Field(
    description="Its form, e.g. a table", validation_alias=names("response_type", "answer_type"),
)]
Instructions = Annotated[Text, Field(
    description="More wishes for it", validation_alias=names("instructions", "user_prompt", "system_prompt"),
)]
GeneralKnowledge = Annotated[Flag, Field(
    description="It may add general knowledge, marked",
    validation_alias=names("general_knowledge", "allow_general_knowledge"),
)]
Filters = Annotated[Strings, Field(
    description="field=value, !=, >=, <=: document, uri, entity, type, date, rating, metadata",
    validation_alias=names("filters", "filter", "where"),
)]
History = Annotated[list[str], BeforeValidator(as_turns), Field(
    description="Earlier user turns", validation_alias=names("history", "conversation_history", "messages"),
)]
Explain = Annotated[Flag, Field(description="Why each item is there", validation_alias=names("explain", "why"))]
Keywords = Annotated[Strings, Field(
    description="Look for these too", validation_alias=names("keywords", "keyword", "terms"),
)]
SessionId = Annotated[Text, Field(
    description="From drift_search",
    validation_alias=names("session_id", "session", "sessionId", "drift_session", "id"),
)]
JobId = Annotated[Text, Field(
    description="From index_documents", validation_alias=names("job_id", "job", "jobId", "id", "task_id"),
)]
_TEXT_ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Your key: the same id again replaces the text"},
        "text": {"type": "string"}, "title": {"type": "string"}, "metadata": {"type": "object"},
    },
    "required": ["text"],
}
Texts = Annotated[
    list[Any], BeforeValidator(as_list), WithJsonSchema({"type": "array", "items": _TEXT_ITEM}),
    Field(
        description="Texts themselves",
        validation_alias=names("texts", "documents", "docs", "content", "contents", "text"),
    ),
]
