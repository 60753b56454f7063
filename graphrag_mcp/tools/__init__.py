"""The MCP tools, in a fixed order.

Gives the `Tool` objects of a server, with flat schemas. Only this package and server.py know
MCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

from graphrag_mcp.errors import BadInput
from graphrag_mcp.tools import drift, edit, explorer, index, lookup, notes, search, work
from graphrag_mcp.tools.contract import TABLES, OurTool, described
from graphrag_mcp.types import is_list, is_object


def _annotations(*true: str) -> ToolAnnotations:
    names = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")
    return ToolAnnotations.model_validate({name: name in true for name in names})


READS = _annotations("read_only_hint", "idempotent_hint")
# Vanished files leave the index: it destroys, and a second call changes nothing more.
SYNCHRONISES = _annotations("destructive_hint", "idempotent_hint")
RECORDS = _annotations("idempotent_hint")
STARTS = _annotations()
CHANGES = _annotations("destructive_hint")

TOOLS: tuple[tuple[Callable[..., Any], str, ToolAnnotations], ...] = (
    (index.index_documents, "Index documents", SYNCHRONISES),
    (search.local_search, "Local search", READS),
    (search.global_search, "Global search", READS),
    (drift.drift_search, "DRIFT search", STARTS),
    (lookup.get_entity, "Get an entity", READS),
    (lookup.get_community_report, "Get a community report", READS),
    (drift.drift_step, "DRIFT step", RECORDS),
    (drift.drift_finish, "DRIFT finish", READS),
    (search.search_text, "Search text", READS),
    (lookup.list_documents, "List documents", READS),
    (lookup.get_source, "Get sources", READS),
    (lookup.explore_graph, "Explore the graph", READS),
    (index.graph_status, "Graph status", READS),
    (index.cancel_job, "Cancel a job", RECORDS),
    (edit.remove_documents, "Remove documents", SYNCHRONISES),
    (edit.edit_graph, "Edit the graph", CHANGES),
    (work.claim_work, "Claim work", STARTS),
    (work.submit_work, "Submit work", RECORDS),
    (notes.write_note, "Write a note", CHANGES),
)


# What `--tools` leaves: to ask with, or to feed and tend an index with; "all": every tool.
SETS = {name: frozenset(tools.split()) for name, tools in TABLES["sets"].items()}
# What a set has as well for agents that write summaries and reports.
WRITERS = {name: frozenset(tools.split()) for name, tools in TABLES["writers"].items()}
# Arguments that only a model of the server uses, and others that are taken but not listed: every
# character of the list is read by every agent. docs/tools.md has them all.
MODEL_ONLY = set("answer instructions auto reduce mode".split())
SELDOM = {tool: frozenset(names.split()) for tool, names in TABLES["seldom"].items()}


def offered(
    tools: str = "all",
    read_only: bool = False,
    compat: bool = False,
    model: bool = True,
    writers: bool = False,
    notes: bool = False,
) -> list[Tool]:
    """The tools of one server, in the fixed order; `compat` adds the pair `search` and `fetch` at
    the end, `writers` those by which agents write summaries. Without a `model` the arguments that
    only it uses are not listed, without a folder of `notes` the tool that writes them."""
    if tools != "all" and tools not in SETS:
        raise BadInput(f"there is no set of tools {tools!r}", f"Use one of all, {', '.join(SETS)}")
    nothing: frozenset[str] = frozenset()
    names = SETS.get(tools, nothing) | (WRITERS.get(tools, nothing) if writers else nothing)
    kept = [tool for tool in all_tools() if tools == "all" or tool.name in names]
    if not notes:
        kept = [tool for tool in kept if tool.name != "write_note"]
    if read_only:
        kept = [tool for tool in kept if tool.annotations and tool.annotations.read_only_hint]
        kept = [tool for tool in kept if tool.name != "drift_finish"]  # there is no drift_search
    described: set[tuple[str, str]] = set()
    return [_shortened(tool, model, described) for tool in kept] + [*(_pair() if compat else [])]


def with_page(tools: Sequence[Tool]) -> tuple[list[Tool], list[Any]]:
    """Tools and extensions of a server for hosts that render apps, where a tool has a page."""
    extensions = explorer.extension(tools)
    data = _tool(explorer.explore_data, "Explorer data", READS)
    data.meta = {"ui": {"resourceUri": explorer.URI, "visibility": ["app"]}}
    return [*tools, *([data] if extensions else [])], extensions


def _shortened(tool: Tool, model: bool, described: set[tuple[str, str]]) -> Tool:
    """The tool with the arguments that are listed; the others are taken all the same. What is said of
    an argument stands in the first tool of the list that has it (`described`), and of the defaults only
    a number of tokens says more than the descriptions do."""
    hidden = set(SELDOM.get(tool.name, ()))
    if not model:
        hidden |= {"auto"} if tool.name == "drift_step" else MODEL_ONLY
    kept = {}
    for name, schema in tool.parameters["properties"].items():
        if name in hidden:
            continue
        pair = name, schema.get("description", "")
        silent = {"description"} if pair in described else set[str]()
        silent |= set() if name == "max_tokens" else {"default"}
        kept[name] = {key: value for key, value in schema.items() if key not in silent}
        described.add(pair)
    tool.parameters = {**tool.parameters, "properties": kept}
    return tool


def _pair() -> Sequence[Tool]:
    from graphrag_mcp.tools import compat

    return [_tool(compat.search, "Search", READS), _tool(compat.fetch, "Fetch", READS)]


def all_tools() -> list[Tool]:
    """Every tool, built again: name and description from the function, schemas without noise."""
    return [_tool(function, title, annotations) for function, title, annotations in TOOLS]


def _tool(function: Callable[..., Any], title: str, annotations: ToolAnnotations) -> Tool:
    description = " ".join((function.__doc__ or "").split())
    labels: dict[str, Any] = {"title": title, "description": description}
    tool = OurTool.from_function(_described(function), annotations=annotations, **labels)
    tool.parameters = _bare(tool.parameters)
    if tool.fn_metadata.output_schema is not None:
        schema = tool.fn_metadata.output_schema
        tool.fn_metadata.output_schema = _bare(schema, schema.get("$defs", {}))
    return tool


@cache
def _described(function: Callable[..., Any]) -> Callable[..., Any]:
    vars(function)["__signature__"] = described(function)
    return function


def _bare(schema: Any, definitions: Any = None, names: bool = False) -> Any:
    """The schema without pydantic's titles and docstrings, each $ref replaced by what it names.

    `names` is True inside `properties`, where "title" is a field and not a keyword."""
    if is_list(schema):
        return [_bare(item, definitions) for item in schema]
    if not is_object(schema):
        return schema
    if "$ref" in schema and definitions:
        named = dict(definitions[schema["$ref"].rpartition("/")[2]])
        named.pop("description", None)
        return _bare(named, definitions)
    # Empty defaults of results say nothing; those of arguments are shown in examples of calls.
    noise: list[Any] = [None] if definitions is None else [None, [], {}]
    kept = {
        key: _bare(value, definitions, names=key == "properties" and not names)
        for key, value in schema.items()
        if names or (key not in ("title", "$defs") and not (key == "default" and value in noise))
    }
    kinds = [option.get("type") for option in kept.get("anyOf", [])] if not names else []
    if kinds[1:] == ["null"]:  # X | None, without anyOf
        first = kept.pop("anyOf")[0]
        kept = {**first, **kept, "type": [first["type"], "null"]}
    return kept
