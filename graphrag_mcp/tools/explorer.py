"""The explorer as an MCP App: its resource, and the tool `explore_data` of the page alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from mcp.types import CallToolResult
from pydantic import Field

from graphrag_mcp.tools.contract import SHOWN, Corpus, Ctx, Text, apart, desk_of, sendable, sent

if TYPE_CHECKING:
    from mcp.server.extension import Extension
    from mcp.server.mcpserver.tools import Tool

TOOL = "explore_data"
URI = "ui://graphrag/explore.html"


async def explore_data(
    ctx: Ctx,
    view: Annotated[Text, Field(description="overview, map, community, entity, passage, ...")],
    id: Annotated[Text, Field(description="as c5, e12, t33")] = "",
    to: Annotated[Text, Field(description="of a path: its other end")] = "",
    under: Annotated[Text, Field(description="of the map: a community")] = "",
    query: Annotated[Text, Field(description="of a search")] = "",
    since: Annotated[Text, Field(description="of changes: a generation")] = "",
    corpus: Corpus = "",
) -> CallToolResult:
    """Data of one view of the explorer page. For the page itself."""
    app = desk_of(ctx).app
    arguments = {"id": id, "to": to, "under": under, "query": query, "since": since}

    def work() -> dict[str, Any]:
        from graphrag_mcp.explorer.data import load

        return load(app, view, arguments, corpus)

    found = await apart(ctx, "explore_data", work)
    return sent(f"Data of the view {view} for the explorer page.", sendable(found))


def extension(tools: Iterable[Tool]) -> list[Extension]:
    """The extension with the page, where one of the tools is shown by it; these tools get their `_meta`."""
    from mcp.server.apps import Apps

    shown = [tool for tool in tools if tool.name in SHOWN]
    if not shown:
        return []
    from graphrag_mcp.explorer.page import page

    for tool in shown:
        # some hosts know the flat key
        tool.meta = {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}
    apps = Apps()
    about = "The knowledge graph as a page: topics, names, sources"
    document = page({"app": True})
    apps.add_html_resource(URI, document, name="explorer", title="Explorer", description=about)
    return [apps]
