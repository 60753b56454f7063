"""Arguments: the types that the tools share, and tools that say what is wrong with a call.

The SDK drops an unknown argument silently and shows pydantic's text for a wrong one; here the first
is named with its nearest known name, the second becomes two sentences. A tool that reads says what
it ignored; one that writes refuses. Types take what models send (numbers as strings, null for "not
given"); their schemas have no anyOf, oneOf, allOf or $ref, which clients reject.

From engine to MCP result: worker threads, time limits, errors, one shape of result. Only here a
`GraphRAGError` becomes a `ToolError`."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import logging
import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, get_origin
from urllib.parse import quote

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent
from pydantic import AliasChoices, BeforeValidator, Field, ValidationError, WithJsonSchema

from graphrag_mcp import types
from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError, out_of_files, too_many_files
from graphrag_mcp.logs import place_of
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import Size
from graphrag_mcp.packing.page import finish
from graphrag_mcp.text.terms import lists_of, table
from graphrag_mcp.tools.limits import CHARACTERS, as_json, excess
from graphrag_mcp.trust import fencing
from graphrag_mcp.trust.fencing import SUBJECT, sealed, unsealed
from graphrag_mcp.types import is_list, is_object

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

    Parts = list[tuple[str, Snapshot]]

T = TypeVar("T")
SECONDS = 45.0  # hosts cut a call at 60; what is not done by then is answered with what to do next
MOST = 20_000  # tokens of any reply: hosts cut at 25,000
# Of a result of over 8,192 characters of JSON VS Code's chat shows its model the name of a file, and
# of a line of that, which our text is, 2,000 characters. See docs/hosts.md.
SHORT = 2_000
SHOW_SHORT = re.compile("visual studio code|code - oss|code-server|vscodium", re.IGNORECASE)
EXPLORER = "graphrag/explorer"  # in `_meta` of a result: {"view", "corpus"}
SHOWN = ("explore_graph", "global_search", "drift_search")  # tools whose results the page shows
MOST_OF_VIEW = 160  # characters in an address: some 60 tokens, as below
PAGE_TOKENS = 70
# Engine calls at a time. Those that compute share the interpreter's lock: with more of them all end
# late. Those that wait for a model or for object storage must not hold up the others.
THREADS, WAITING = 2, 8

TABLES = table(__file__)
# What a call gives that took too long: its kind of result, and what to call then.
LATE: dict[str, tuple[type[types.Result], str]] = {
    tool: (getattr(types, kind), instead) for tool, (kind, instead) in TABLES["late"].items()
}
# Calls in advice that may name a corpus.
_ADVISED = re.compile(
    r"\b(get_source|get_entity|get_community_report|explore_graph|local_search|list_documents|"
    r'index_documents|edit_graph)\(((?:[^()"]|"[^"]*")*)\)'
)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """What every call of one server shares."""

    app: App
    threads: anyio.CapacityLimiter
    tools: Sequence[Tool] = ()


Ctx = Context[Desk]


@dataclass(slots=True)
class ApiCall:
    """A call over plain HTTP (api.py), which is answered with the result of the engine itself."""

    result: types.Result | None = None
    error: Exception | None = None


API_CALL: ContextVar[ApiCall | None] = ContextVar("API_CALL", default=None)

# Remarks about the arguments of this call (clamped, unknown, cut); they end in its `hint`.
REMARKS: ContextVar[list[str] | None] = ContextVar("REMARKS", default=None)


def desk_of(ctx: Ctx) -> Desk:
    """The application and the state of the server behind a call."""
    return ctx.request_context.lifespan_context


def remark(sentence: str) -> None:
    """Add a sentence to the hint of the call's result, once."""
    remarks = REMARKS.get()
    if remarks is None:
        REMARKS.set(remarks := [])
    if sentence and sentence not in remarks:
        remarks.append(sentence)


def clamp(name: str, value: int, low: int, high: int) -> int:
    """`value` brought into its range, with a remark when it was not in it."""
    used = min(max(value, low), high)
    if used != value:
        size = str(value) if abs(value) < 10**12 else "of that size"
        remark(f"{name} {size} was changed to {used} ({low} to {high}).")
    return used


# ---- budgets --------------------------------------------------------------------------------------


def budgets(ctx: Ctx, max_tokens: int, default: int, corpus: str = "", page: bool = False) -> tuple[int, int]:
    """(for the engine, for the whole reply); a remark when what was asked for had to be changed.

    Room is kept for remarks, for a cursor's mark, for a `corpus` that the next call names too, and
    for the address of the `page`. A default is less in a host that does not show longer results."""
    from graphrag_mcp.text.tokens import count_tokens

    if max_tokens == default and shows_short(ctx):
        max_tokens = min(default, SHORT)
    used, hint = packing_budget.clamp_budget(min(max(max_tokens, -(10**9)), 10**9), default)
    remark(hint)
    remarks = " ".join(REMARKS.get() or ())  # it will stand in the hint and under the text
    kept = (count_tokens(remarks) + 6 if remarks else 0) + (30 if SUBJECT.get() else 0)
    kept += count_tokens(corpus) + 6 if corpus.strip() else 0
    kept += PAGE_TOKENS if page and _base_of_page(ctx) else 0
    return max(packing_budget.LOWEST, used - kept), used


def reply(result: types.Result, budget: int = MOST, page: str = "") -> CallToolResult:
    """The result as it is sent. Hint, next page, next call and the address of the page end the text.

    No reply passes its budget: the address and the hint give way before the text does, what leads on never."""
    if result.next_cursor and SUBJECT.get():
        result.next_cursor = sealed(result.next_cursor)
    if not fits_whole(result, budget, page):
        finish(result, budget)
        lines = sending.onward(result)
        result.text, result.suspicious = sending.dressed(result, result.text, lines)
        result.tokens = sending.size(result).tokens
    return _sent(result)


def fits_whole(result: types.Result, budget: int, page: str = "") -> bool:
    """Make the result ready to be sent uncut, with as much below its text as has room; False where there is no
    room for the text, which then stands as it was."""
    advice, remarks, body = result.hint.strip(), " ".join(REMARKS.get() or ()), result.text.rstrip()
    both, one = f"{advice} {remarks}".strip(), remarks or advice
    forms = [(both, page), (both, ""), (one, "")]
    # Fields that programs read give way before the hint does (`finish`).
    forms += [] if sending.structured(result) else [("", "")]
    for hint, address in dict.fromkeys(forms):
        result.hint, result.text, result.tokens = hint, body, budget
        footer = sending.footer(result, address)
        result.text, result.suspicious = sending.dressed(result, body, footer)
        size = sending.size(result)
        if size.within(Size(budget, packing_budget.CHARACTERS)):
            result.tokens = size.tokens
            return True
    result.hint, result.text, result.suspicious = one, body, {}
    return False


def _sent(result: types.Result) -> CallToolResult:
    """Text; fields only of results on which programs act: hosts may show models these alone."""
    if (call := API_CALL.get()) is not None:
        call.result = result
    fields = sendable(sending.fields(result)) if sending.structured(result) else None
    return sent(sendable(result.text), fields, _meta=meta_of(result))


def sent(text: str, fields: Any = None, **more: Any) -> CallToolResult:
    """A result of the protocol with one text, and with `fields` where a program acts on them."""
    content = TextContent(type="text", text=text)
    return CallToolResult(content=[content], structured_content=fields, **more)


def encodable(text: str) -> str:
    """A text of its own (an error, a resource) as it can be sent, with nothing in it unseen."""
    return sendable(fencing.shown(text))


def sendable(value: Any) -> Any:
    """The value as it can be sent: lone surrogates (of file names, not UTF-8) are escaped."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if is_list(value) or isinstance(value, tuple):
        return [sendable(item) for item in cast(Iterable[Any], value)]
    if is_object(value):
        return {sendable(name): sendable(item) for name, item in value.items()}
    return value


# ---- clients and the page -------------------------------------------------------------------------


def client_name(ctx: Ctx) -> str:
    """How the client calls itself; "" if it did not say."""
    params = getattr(ctx.session, "client_params", None)
    return str(getattr(getattr(params, "client_info", None), "name", "") or "")


def shows_short(ctx: Ctx) -> bool:
    """Does the host show its model no more of a result than SHORT?"""
    return bool(SHOW_SHORT.match(client_name(ctx)))


def who(ctx: Ctx) -> str:
    """The client's name for itself, as provenance."""
    return re.sub(r"[^\w.@-]+", "-", client_name(ctx) or "unknown")[:60]


def meta_of(result: types.Result) -> dict[str, Any] | None:
    """Which view of the page shows a result; None for results that it does not show."""
    view = result.view
    if isinstance(result, types.ExploreResult):
        view = view or "map"
        if result.start.startswith("e"):
            view = f"entity/{result.start[1:]}"
        if result.goal.startswith("e"):
            view = f"path/{result.start[1:]}/{result.goal[1:]}"
    elif isinstance(result, types.DriftResult) and result.session_id:
        view = f"drift/{result.session_id}"
    corpus = getattr(result, "corpus", "")
    return {EXPLORER: {"view": view, "corpus": corpus}} if view and "," not in corpus else None


def _base_of_page(ctx: Ctx) -> str:
    """The address of the page as this client reaches the server; "" where no page is served."""
    app, request = desk_of(ctx).app, ctx.request_context.request
    return f"{request.url.scheme}://{request.url.netloc}{app.page}" if app.page and request else ""


def _address(ctx: Ctx, result: types.Result) -> str:
    """Where the page shows a result (a long question: the map). It never holds a token. Of a search the map alone has an
    address: agents search often, and an address is as long as the line of a document."""
    base, shown = _base_of_page(ctx), (meta_of(result) or {}).get(EXPLORER)
    if not base or not shown or (isinstance(result, types.SearchResult) and "topics" not in result.coverage):
        return ""
    corpus, view = shown["corpus"], shown["view"]
    several = corpus and len(desk_of(ctx).app.corpora()) > 1
    named = f"?corpus={quote(corpus, safe='')}" if several else ""
    return f"{base}{named}#{view if len(view) <= MOST_OF_VIEW else 'map'}"


# ---- calls ----------------------------------------------------------------------------------------


async def serve(ctx: Ctx, tool: str, work: Callable[[App], types.Result], budget: int = MOST) -> CallToolResult:
    """Run `work` in a worker thread and reply; when it takes longer than a host waits, say so."""
    desk = desk_of(ctx)
    kind, instead = LATE[tool]

    def finished() -> CallToolResult:
        try:
            result = work(desk.app)
        except GraphRAGError as error:
            if not error.names or "state" not in kind.model_fields:
                raise
            # The advice stands outside of the fence; names of documents are within.
            advice = str(error)[:1].upper() + str(error)[1:]
            fields = {"state": "not_found", "text": f"{error.names}.", "hint": advice}
            result = kind.model_validate(fields)
        page = _address(ctx, result) if tool in SHOWN else ""
        return reply(result, budget + result.beside, page)

    with anyio.move_on_after(SECONDS):
        return await apart(ctx, tool, finished)
    with telling(tool):
        fields = {
            "state": "partial",
            "text": f"{tool} was not finished after {SECONDS:.0f} s.",
            "hint": "Try again (what was read is warm now), with a shorter question or a smaller max_tokens.",
            "next_call": instead,
        }
        late = kind.model_validate(fields)
        return reply(late)


async def apart(ctx: Ctx, tool: str, work: Callable[[], T]) -> T:
    """The result of `work`, which only reads, in a thread: a cancelled call does not wait."""
    with telling(tool):
        threads = desk_of(ctx).threads
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=threads)


async def read(
    ctx: Ctx,
    tool: str,
    corpus: str,
    work: Callable[[Parts], types.Result],
    budget: int,
    ids: Sequence[str] | None = None,
) -> CallToolResult:
    """`serve` for work on the newest generation of the corpus that is meant, under the name "". With
    `ids` it may also be on several: all that `corpus` lists or ids such as `a/e12` name."""

    def on_newest(app: App) -> types.Result:
        if ids is not None and (names := app.several(corpus, ids)):
            return work([(name, app.snapshot(name)) for name in names])
        name = app.corpus_for_reading(corpus)
        result = app.newest(name, lambda snapshot: work([("", snapshot)]))
        if corpus.strip():
            result.next_call = staying(result.next_call, name)
            result.hint = staying(result.hint, name)
        if "corpus" in type(result).model_fields:
            setattr(result, "corpus", name)  # noqa: B010 (not every result has it)
        return result

    return await serve(ctx, tool, on_newest, budget)


def staying(advice: str, corpus: str) -> str:
    """Advice whose calls name the corpus that was named: without it they might mean another one."""

    def named(call: re.Match[str]) -> str:
        if "corpus=" in call[2]:
            return call[0]
        return f'{call[1]}({call[2]}{", " if call[2] else ""}corpus="{corpus}")'

    return _ADVISED.sub(named, advice)


@contextmanager
def telling(tool: str) -> Generator[None]:
    """Where failures become text for a model: ours as they are, others without their insides."""
    try:
        yield
    except ToolError:
        raise
    except Exception as error:
        if (call := API_CALL.get()) is not None:
            call.error = error
        raise ToolError(encodable(_explained(tool, error))) from None


def _explained(tool: str, error: Exception) -> str:
    if out_of_files(error):
        log.error("%s could not open a file", tool, exc_info=error)
        return str(too_many_files())
    if isinstance(error, GraphRAGError):
        return " ".join([str(error), *(REMARKS.get() or ())])
    if isinstance(error, OSError):
        log.error("%s could not read or write", tool, exc_info=error)
        reason = f"{error.strerror or type(error).__name__}: {error.filename or 'the index folder'}"
        advice = "Free disk space or give this user the right to read and write there"
        return f"{tool} could not read or write ({reason}). {advice}, then call again."
    # The same error has the same mark: a log that counts repetitions has it once.
    mark = hashlib.sha256(repr((type(error).__name__, place_of(error))).encode()).hexdigest()[:8]
    log.error("internal error in %s (%s)", tool, mark, exc_info=error)
    searches = tool.startswith(("search", "graph", "index", "cancel"))
    other = "graph_status" if searches else "search_text"
    return f"internal error in {tool} (logged as {mark}). Try {other}, or other arguments."


# ---- arguments -----------------------------------------------------------------------------------

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


def as_int(value: Any) -> Any:
    """ "1,200" and 1200.7 are numbers."""
    if isinstance(value, str):
        try:
            value = float(value.replace(",", "").replace("_", ""))
        except ValueError:
            return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 10**9
    return value


def as_list(value: Any) -> Any:
    """null is [], a JSON list in a string is that list, a single value is a list of one."""
    if value is None or value == "":
        return []
    value = as_json(value, "[")
    return value if is_list(value) else [value]


def as_strings(value: Any) -> Any:
    """The items of a list as text; one value is a list of one."""
    return [as_text(item) for item in as_list(value) if item is not None]


def as_word(value: Any) -> Any:
    """Text without blanks around it, in lower case; other values as they are."""
    return value.strip().lower() if isinstance(value, str) else value


class NotGiven(int):
    """The number of an argument that the caller did not give; an equal number that it gave is an int."""


Objects = list[Any]  # which the tool itself looks at
Cursor = Annotated[str, BeforeValidator(as_cursor)]
# How values of a type are read in the forms in which models write them. pydantic reads yes and no, on and off.
READ_AS: dict[Any, Callable[[Any], Any]] = {
    str: as_text,
    int: as_int,
    bool: as_word,
    list[str]: as_strings,
    Objects: as_list,
}


def described(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a tool with what contract.toml says of its arguments: a description and other names. Their
    values are read in the forms in which models write them; null and "" are the default."""
    signature = inspect.signature(function, eval_str=True)
    arguments = TABLES["arguments"]
    of_tool = arguments.get(function.__name__, {})

    def argument(parameter: inspect.Parameter) -> inspect.Parameter:
        kind, name, default = parameter.annotation, parameter.name, parameter.default
        if kind is Ctx:
            return parameter
        told = of_tool.get(name, name)
        description, others = arguments[told] if isinstance(told, str) else told
        given = Field(
            description=description or None, validation_alias=AliasChoices(*others.split()) if others else None
        )
        forms: list[Any] = []
        if get_origin(kind) is not Annotated:  # which says itself how it is read
            forms.append(BeforeValidator(as_word if get_origin(kind) is Literal else READ_AS[kind]))
        if default is not inspect.Parameter.empty:
            forms.append(BeforeValidator(lambda value: default if value is None or value == "" else value))
        if kind is Objects:
            forms.append(WithJsonSchema({"type": "array", "items": {"type": "object"}}))
        return parameter.replace(annotation=Annotated[(kind, *forms, given)])

    return signature.replace(parameters=list(map(argument, signature.parameters.values())))


# ---- wrong calls ----------------------------------------------------------------------------------

GUESSES, EXPECTED = TABLES["guesses"], TABLES["expected"]
OF_ANY_SIZE = ("texts", "results", "answer", "text")  # documents and what an agent read in them
LONG_WORD = 100  # characters; the longest word of German in print has 79
STRANGE = 5  # unknown arguments that are named, each with its nearest known name


class OurTool(Tool):
    """A tool of this server: a call that it cannot serve is answered with what is wrong."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        names = accepted(self)
        whole = {alias for alias, name in names.items() if name in OF_ANY_SIZE}
        questions = [alias for alias, name in names.items() if name == "query"]
        arguments, notes = _cut(arguments, questions)
        if what := excess(arguments, whole):
            message = f"{what[:1].upper()}{what[1:]} Call it as {usage(self)}."
            return sent(encodable(message), is_error=True)
        strange = _unknown(self, arguments)
        wrong = [*_twice(names, arguments), *_wrong(self, arguments)]
        reads = self.annotations is not None and self.annotations.read_only_hint
        if wrong or (strange and not reads):
            message = " ".join([*wrong[:4], *strange, f"Call it as {usage(self)}."])
            return sent(message, is_error=True)
        notes += [f"{sentence} It was ignored." for sentence in strange]
        token = REMARKS.set(notes)
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise
        except ToolError as error:  # the SDK puts its own words before those of the tool
            return sent(str(error.__cause__ or error), is_error=True)
        finally:
            REMARKS.reset(token)


def _cut(arguments: dict[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The arguments with these as long as a text may be, and a remark on each that was longer: who
    asks with a whole text in the question is answered all the same."""
    texts = {name: arguments[name] for name in names if isinstance(arguments.get(name), str)}
    kept = {name: _of_whole_words(text) for name, text in texts.items() if len(text) > CHARACTERS}
    remarks = [f"{name} of {len(texts[name]):,} characters was cut to {len(text):,}." for name, text in kept.items()]
    return {**arguments, **kept}, remarks


def _of_whole_words(text: str) -> str:
    """As much of a text as is read; half a word would be one that the corpus does not have. Without a blank
    in the last LONG_WORD characters the text has no blanks between words, as Chinese, and is cut anywhere."""
    blank = max(text.rfind(sign, CHARACTERS - LONG_WORD, CHARACTERS + 1) for sign in " \n\t")
    return text[: CHARACTERS if blank < 0 else blank]


def usage(tool: Tool) -> str:
    """The call as one would write it: `get_source(ids, corpus="", max_tokens=4000, around=0)`."""
    fields = tool.fn_metadata.arg_model.model_fields
    listed = ((name, fields[name]) for name in tool.parameters["properties"])
    parts = [name if field.is_required() else f"{name}={_shown(field.default)}" for name, field in listed]
    return f"{tool.name}({', '.join(parts)})"


def accepted(tool: Tool) -> dict[str, str]:
    """Every name that an argument goes by -> the name in the schema."""
    found: dict[str, str] = {}
    for name, field in tool.fn_metadata.arg_model.model_fields.items():
        found[name] = name
        if isinstance(field.validation_alias, AliasChoices):
            found |= {str(choice): name for choice in field.validation_alias.choices}
    return found


def _unknown(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """A sentence for each argument that the tool does not have; those set to null do not matter."""
    known = accepted(tool)
    strange = (name for name, value in arguments.items() if name not in known and value is not None)
    sentences: list[str] = []
    for name in islice(strange, STRANGE):
        asked = name[:60].lower()
        found = difflib.get_close_matches(asked, known, n=1, cutoff=0.6)
        near = known.get(found[0] if found else GUESSES.get(asked, ""))
        listed = f"it has {', '.join(tool.parameters['properties'])}."
        advice = f"did you mean {near!r}?" if near else listed
        sentences.append(f"{tool.name} has no argument {name[:60]!r}; {advice}")
    return sentences


def _twice(names: Mapping[str, str], arguments: Mapping[str, Any]) -> list[str]:
    """A sentence for each argument that stands under two of its names with two values, of which one would be lost."""
    given = lists_of(
        (names[written], written) for written, value in arguments.items() if written in names and value is not None
    )
    return [
        f"{' and '.join(written)} are one argument, {name}: give it once."
        for name, written in given.items()
        if any(arguments[other] != arguments[written[0]] for other in written)
    ]


def _wrong(tool: Tool, arguments: dict[str, Any]) -> list[str]:
    """A sentence for each argument that cannot be used as given."""
    try:
        tool.fn_metadata.validate_arguments(dict(arguments))
    except ValidationError as error:
        known = accepted(tool)
        found = (_sentence(tool.name, known, mistake) for mistake in error.errors(include_url=False))
        return list(dict.fromkeys(found))
    return []


def _sentence(tool: str, known: Mapping[str, str], error: Any) -> str:
    first, *rest = [str(part) for part in error["loc"]] or ["the arguments"]
    where = known.get(first, first)
    kind = error["type"]
    if kind == "missing":
        return f"{tool} needs {where!r}."
    where += "".join(f"[{part}]" for part in rest if part.isdigit())
    expected = next((words for start, words in EXPECTED.items() if kind.startswith(start)), "")
    if kind == "literal_error":
        expected = str(error["ctx"].get("expected", "")).replace("'", '"')
    if not expected:
        return f"{where} cannot be used: {error['msg']}."
    return f"{where} must be {expected}, not {_shown(error['input'])}."


def _shown(value: Any) -> str:
    """A value as JSON would show it, short: it is the caller's own."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list) and value:
        return "a list"
    if isinstance(value, str):
        value = (value if len(value) <= 40 else value[:39] + "…").replace('"', "'")
    return json.dumps(value, ensure_ascii=False, default=str)[:42]
