"""Arguments: the types that the tools share, and middleware for wrong calls.

The SDK drops an unknown argument silently and shows pydantic's own text for a wrong one; here the
first is named with its nearest known name, the second becomes two sentences. A tool that only reads
still answers and says what it ignored; one that writes refuses. Types take what models send
(numbers as strings, one string for a list, null for "not given"); their schemas have no anyOf,
oneOf, allOf or $ref, because clients reject them."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AliasChoices, BeforeValidator, Field, ValidationError, WithJsonSchema

from graphrag_mcp.tools.results import REMARKS

FALSE_WORDS = {
    "false": False,
    "no": False,
    "0": False,
    "": False,
    "true": True,
    "yes": True,
    "1": True,
}


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
    if isinstance(listed, list):
        return [as_text(item) for item in listed if item is not None]
    return listed


def as_turns(value: Any) -> Any:
    """Turns as `role: content`, whether they come as strings or as messages."""
    listed = as_list(value)
    return (
        [_turn(item) for item in listed if item is not None] if isinstance(listed, list) else listed
    )


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
    return Annotated[kind, Field(description=description, validation_alias=alias)]


def number(default: int, description: str, called: str = "") -> Any:
    return argument(Annotated[int, BeforeValidator(as_int(default))], description, called)


def choice(choices: tuple[str, ...], description: str, called: str = "") -> Any:
    """One of these words, in any case; the first for an empty one."""
    read = BeforeValidator(lambda value: as_word(value) or choices[0])
    return argument(Annotated[Literal[choices], read], description, called)


Text = Annotated[str, BeforeValidator(as_text)]
Flag = Annotated[bool, BeforeValidator(as_flag)]
Strings = Annotated[list[str], BeforeValidator(as_strings)]

Query = argument(
    Text, "A question or names, in any language", "query q question text search prompt input"
)
_CORPUS = "corpus index collection corpus_name index_name workspace"
Corpus = argument(Text, "Another index than this project's", _CORPUS)
Corpora = argument(Text, "Another index; a,b or *: several", _CORPUS)
_BUDGET = "max_tokens budget token_budget maxTokens max_token tokens"


Budget1200, Budget2000, Budget3000, Budget4000, Budget6000 = (
    number(most, "Longest result", _BUDGET) for most in (1200, 2000, 3000, 4000, 6000)
)
Format = choice(("concise", "detailed"), "detailed: all columns", "response_format format detail")
Cursor = argument(Text, "Of the last page", "cursor next_cursor page page_token")
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
    Strings, "Up to 5 questions at once instead of query; short hits for each", "queries questions"
)
Breadth = choice(("passages", "sentences"), "sentences: one from each of up to 40 places")
Sort = choice(("rank", "time"), "time: oldest first", "sort order")
SessionId = argument(Text, "From drift_search", "session_id session sessionId drift_session id")
JobId = argument(Text, "From index_documents", "job_id job jobId id task_id")
_TEXT_ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Your key: the same id again replaces the text"},
        "text": {"type": "string"},
        "title": {"type": "string"},
        "metadata": {"type": "object"},
    },
    "required": ["text"],
}
Texts = argument(
    Annotated[
        list[Any], BeforeValidator(as_list), WithJsonSchema({"type": "array", "items": _TEXT_ITEM})
    ],
    "Texts themselves",
    "texts documents docs content contents text",
)


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


def teach(tools: Mapping[str, Tool]) -> Callable[[Any, Any], Awaitable[Any]]:
    """The middleware for a server with these tools."""

    async def middleware(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method != "tools/call" or not isinstance(ctx.params, Mapping):
            return await call_next(ctx)
        name, arguments = ctx.params.get("name"), ctx.params.get("arguments") or {}
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            return await call_next(ctx)
        tool = tools.get(name)
        if tool is None:
            return _refusal(ctx, _no_such_tool(name, tools))
        strange = _unknown(tool, arguments)
        wrong = _wrong(tool, dict(arguments))
        writes = not (tool.annotations and tool.annotations.read_only_hint)
        if wrong or (strange and writes):
            return _refusal(ctx, " ".join([*wrong[:4], *strange, f"Call it as {usage(tool)}."]))
        remarks = [f"{sentence} It was ignored." for sentence in strange]
        token = REMARKS.set(remarks)
        try:
            result = await call_next(ctx)
        finally:
            REMARKS.reset(token)
        return _without_prefix(result, name)

    return middleware


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
            found.update({str(choice): name for choice in field.validation_alias.choices})
    return found


def _unknown(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """A sentence for each argument that the tool does not have; those set to null do not matter."""
    known = accepted(tool)
    sentences = []
    for name in [
        name for name, value in arguments.items() if name not in known and value is not None
    ][:5]:
        near = [
            known[one] for one in difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
        ]
        guess = GUESSES.get(name.lower(), "")
        near = near or ([guess] if guess in known else [])
        listed = (
            f"did you mean {near[0]!r}?"
            if near
            else f"it has {', '.join(tool.parameters['properties'])}."
        )
        sentences.append(f"{tool.name} has no argument {name[:60]!r}; {listed}")
    return sentences


def _wrong(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """A sentence for each argument that cannot be used as given."""
    try:
        tool.fn_metadata.validate_arguments(arguments)
    except ValidationError as error:
        known = accepted(tool)
        return list(
            dict.fromkeys(
                _sentence(tool.name, known, one) for one in error.errors(include_url=False)
            )
        )
    return []


def _sentence(tool: str, known: Mapping[str, str], error: Any) -> str:
    place = [str(part) for part in error["loc"]]
    argument = known.get(place[0], place[0]) if place else "the arguments"
    where = argument + "".join(f"[{part}]" for part in place[1:] if part.isdigit())
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return f"{tool} needs {argument!r}."
    if kind == "literal_error":
        wanted = str(context.get("expected", "")).replace("'", '"')
    else:
        wanted = next((words for start, words in EXPECTED.items() if kind.startswith(start)), "")
    if not wanted:
        return f"{where} cannot be used: {error['msg']}."
    return f"{where} must be {wanted}, not {_shown(error['input'])}."


def _shown(value: Any) -> str:
    """A value as JSON would show it, short: it is the caller's own."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "[]"
    if isinstance(value, str):
        return '"' + (value if len(value) <= 40 else value[:39] + "…").replace('"', "'") + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)[:40]


def _no_such_tool(name: str, tools: Mapping[str, Tool]) -> str:
    near = difflib.get_close_matches(name, tools, n=2, cutoff=0.5)
    advice = f"Nearest: {', '.join(near)}." if near else f"There are: {', '.join(tools)}."
    return f"There is no tool {name[:60]!r}. {advice}"


def _refusal(ctx: Any, text: str) -> dict[str, Any]:
    """The error result, in the envelope of the caller's protocol revision (who answers for the SDK
    must add it)."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        result["resultType"] = "complete"
    return result


def _without_prefix(result: Any, name: str) -> Any:
    """The SDK puts `Error executing tool X: ` before each error; the model has just called X."""
    if isinstance(result, dict) and result.get("isError"):
        for part in result.get("content", ()):
            if part.get("type") == "text":
                part["text"] = part["text"].removeprefix(f"Error executing tool {name}: ")
    return result
