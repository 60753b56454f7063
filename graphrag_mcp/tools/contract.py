"""Arguments: the types that the tools share, and tools that say what is wrong with a call.

The SDK drops an unknown argument silently and shows pydantic's own text for a wrong one; here the
first is named with its nearest known name, the second becomes two sentences. A tool that only reads
still answers and says what it ignored; one that writes refuses. Types take what models send
(numbers as strings, one string for a list, null for "not given"); their schemas have no anyOf,
oneOf, allOf or $ref, because clients reject them."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent
from pydantic import AliasChoices, BeforeValidator, Field, ValidationError, WithJsonSchema

from graphrag_mcp.tools.results import REMARKS
from graphrag_mcp.trust.key import unsealed

NO_PAGE = "0.00000000.0"  # a cursor of no generation: searches say that they do not know it


def as_text(value: Any) -> Any:
    """null is "", a number is its digits; anything else is left to the validator."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def as_cursor(value: Any) -> Any:
    """The cursor as the engine wrote it. Another's cursor names no page at all."""
    value = as_text(value)
    if not isinstance(value, str):
        return value
    return NO_PAGE if (plain := unsealed(value)) is None else plain


def as_int(default: int) -> Any:
    """A converter: null and "" are the default, "1,200" and 1200.7 are numbers."""

    def convert(value: Any) -> Any:
        if value is None or value == "":
            return default
        if isinstance(value, str):
            try:
                value = float(value.replace(",", "").replace("_", ""))
            except ValueError:
                return value
        if isinstance(value, float):
            return int(value) if math.isfinite(value) else 10**9
        return value

    return convert


def as_flag(default: bool) -> Any:
    """A converter: null and "" are the default; pydantic takes yes and no, on and off, 1 and 0."""
    return lambda value: default if value in (None, "") else as_word(value)


def as_list(value: Any) -> Any:
    """null is [], a JSON list in a string is that list, a single value is a list of one."""
    if value is None or value == "":
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return [value]
    return value if isinstance(value, list) else [value]


def as_strings(value: Any) -> Any:
    return [as_text(item) for item in as_list(value) if item is not None]


def as_turns(value: Any) -> Any:
    """Turns as `role: content`, whether they come as strings or as messages."""
    return [_turn(item) for item in as_list(value) if item is not None]


def _turn(item: Any) -> Any:
    if not isinstance(item, dict):
        return as_text(item)
    content = item.get("content", item.get("text", item.get("query", "")))
    if isinstance(content, list):  # parts of a message
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return f"{item.get('role', 'user')}: {content}"


def as_word(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def argument(kind: Any, description: str, called: str = "") -> Any:
    """The type of an argument, with the names that models call it by, its own first."""
    alias = AliasChoices(*called.split()) if called else None
    return Annotated[kind, Field(description=description or None, validation_alias=alias)]


def number(default: int, description: str, called: str = "") -> Any:
    return argument(Annotated[int, BeforeValidator(as_int(default))], description, called)


def choice(choices: tuple[str, ...], description: str, called: str = "") -> Any:
    """One of these words, in any case; the first for an empty one."""
    read = BeforeValidator(lambda value: as_word(value) or choices[0])
    return argument(Annotated[Literal[choices], read], description, called)


def objects(schema: dict[str, Any], description: str, called: str) -> Any:
    """A list of objects, which the tool itself looks at."""
    listed = WithJsonSchema({"type": "array", "items": schema})
    return argument(Annotated[list[Any], BeforeValidator(as_list), listed], description, called)


Text = Annotated[str, BeforeValidator(as_text)]
Flag = Annotated[bool, BeforeValidator(as_flag(False))]
Strings = Annotated[list[str], BeforeValidator(as_strings)]

Query = argument(
    Text, "A question or names, in any language", "query q question text search prompt input"
)
_CORPUS = "corpus index collection corpus_name index_name workspace"
Corpus = argument(Text, "Another index", _CORPUS)
Corpora = argument(Text, "Another index; a,b or *: several", _CORPUS)
_BUDGET = "max_tokens budget token_budget maxTokens max_token tokens"


Budget1200, Budget2000, Budget3000, Budget4000, Budget6000 = (
    number(most, "Longest result", _BUDGET) for most in (1200, 2000, 3000, 4000, 6000)
)
Format = choice(("concise", "detailed"), "detailed: all columns", "response_format format detail")
Cursor = argument(
    Annotated[str, BeforeValidator(as_cursor)],
    "Of the last page",
    "cursor next_cursor page page_token",
)
Answer = argument(Flag, "Let the server's model answer", "answer generate_answer")
ResponseType = argument(Text, "Its form, e.g. a table", "response_type answer_type")
Instructions = argument(Text, "More wishes for it", "instructions user_prompt system_prompt")
GeneralKnowledge = argument(
    Flag, "It may add general knowledge, marked", "general_knowledge allow_general_knowledge"
)
Filters = argument(
    Strings,
    'As "date>=2024-05", "uri=notes/*", "entity=Ada", "author!=Bo" (any metadata), "when=2023-05", "as_of=2024"',
    "filters filter where",
)
History = argument(
    Annotated[list[str], BeforeValidator(as_turns)],
    "Earlier user turns",
    "history conversation_history messages",
)
Explain = argument(Flag, "Why each item is there", "explain why")
Keywords = argument(Strings, "Look for these too", "keywords keyword terms")
Queries = argument(
    Strings, "Up to 8 questions at once instead of query; short hits for each", "queries questions"
)
Breadth = choice(("passages", "sentences"), "sentences: one from each of up to 40 places")
Sort = choice(("rank", "time"), "time: oldest first", "sort order")
SessionId = argument(Text, "From drift_search", "session_id session sessionId drift_session id")
JobId = argument(Text, "From index_documents", "job_id job jobId id task_id")
Texts = objects(
    {
        "type": "object",
        "properties": {
            "id": {
                "type": "string",
                "description": "Your key: the same id again replaces the text",
            },
            "text": {"type": "string"},
            "title": {"type": "string"},
            "metadata": {"type": "object"},
        },
        "required": ["text"],
    },
    "Texts themselves",
    "texts documents docs content contents text",
)


# ---- wrong calls ----------------------------------------------------------------------------------

# What models call things that go by another name here, where the spelling gives no clue.
GUESSES = {
    **dict.fromkeys(("top_k", "k", "n", "limit", "num_results", "max_results"), "max_tokens"),
    **dict.fromkeys(("community", "depth", "mode"), "level"),
    "offset": "cursor",
}
# What pydantic's error types are about, by how they begin.
EXPECTED = {
    "int": "a whole number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "float": "a number",
}


class OurTool(Tool):
    """A tool of this server: a call that it cannot serve is answered with what is wrong."""

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        strange, wrong = _unknown(self, arguments), _wrong(self, arguments)
        reads = self.annotations is not None and self.annotations.read_only_hint
        if wrong or (strange and not reads):
            return _refusal(" ".join([*wrong[:4], *strange, f"Call it as {usage(self)}."]))
        token = REMARKS.set([f"{sentence} It was ignored." for sentence in strange])
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:  # the SDK puts its own words before those of the tool
            return _refusal(str(error.__cause__ or error))
        finally:
            REMARKS.reset(token)


def _refusal(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def usage(tool: Tool) -> str:
    """The call as one would write it: `get_source(ids, corpus="", max_tokens=4000, around=0)`."""
    required = tool.parameters.get("required", [])
    parts = [
        name if name in required else f"{name}={_shown(part.get('default'))}"
        for name, part in tool.parameters["properties"].items()
    ]
    return f"{tool.name}({', '.join(parts)})"


def accepted(tool: Tool) -> dict[str, str]:
    """Every name that an argument goes by -> the name in the schema."""
    found = {}
    for name, field in tool.fn_metadata.arg_model.model_fields.items():
        found[name] = name
        if isinstance(field.validation_alias, AliasChoices):
            found |= {str(choice): name for choice in field.validation_alias.choices}
    return found


def _unknown(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """A sentence for each argument that the tool does not have; those set to null do not matter."""
    known, sentences = accepted(tool), []
    for name, value in arguments.items():
        if name in known or value is None:
            continue
        found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
        near = known.get(found[0] if found else GUESSES.get(name.lower(), ""))
        listed = f"it has {', '.join(tool.parameters['properties'])}."
        said = f"did you mean {near!r}?" if near else listed
        sentences.append(f"{tool.name} has no argument {name[:60]!r}; {said}")
    return sentences[:5]


def _wrong(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """A sentence for each argument that cannot be used as given."""
    try:
        tool.fn_metadata.validate_arguments(dict(arguments))
    except ValidationError as error:
        known = accepted(tool)
        found = (_sentence(tool.name, known, one) for one in error.errors(include_url=False))
        return list(dict.fromkeys(found))
    return []


def _sentence(tool: str, known: Mapping[str, str], error: Any) -> str:
    first, *rest = [str(part) for part in error["loc"]] or ["the arguments"]
    where = known.get(first, first)
    kind = error["type"]
    if kind == "missing":
        return f"{tool} needs {where!r}."
    where += "".join(f"[{part}]" for part in rest if part.isdigit())
    wanted = next((words for start, words in EXPECTED.items() if kind.startswith(start)), "")
    if kind == "literal_error":
        wanted = str(error["ctx"].get("expected", "")).replace("'", '"')
    if not wanted:
        return f"{where} cannot be used: {error['msg']}."
    return f"{where} must be {wanted}, not {_shown(error['input'])}."


def _shown(value: Any) -> str:
    """A value as JSON would show it, short: it is the caller's own."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list) and value:
        return "a list"
    if isinstance(value, str):
        value = (value if len(value) <= 40 else value[:39] + "…").replace('"', "'")
    return json.dumps(value, ensure_ascii=False, default=str)[:42]
